"""Fixtures: every op test runs on each device that is there; see `tests/strict_cupy`.

All tests run under the judge of `flow.compile`, but for those that say why they cannot. With
`ONEFLOW_LITE_TEST_JIT=numba`, or `python`, Programs run as machine code from their first run on,
and each loop is held against NumPy; see `tests/judge/loops.py`.

Tests marked `slow` are left to `make test-all`. A file of such tests alone is not even imported
for the quick ones, nor a file without any for the slow ones.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import oneflow_lite as flow
import oneflow_lite.static  # the ops of control flow are there in every test
from oneflow_lite import testing
from oneflow_lite.distributed.global_interpreter import GlobalInterpreter
from oneflow_lite.errors import DeviceError
from oneflow_lite.interpreter.stack import DEFAULT_STACK
from oneflow_lite.ops import eager_loops
from oneflow_lite.transforms.levels import TransformInterpreter
from tests.judge import judge, judged_loops

JIT = os.environ.get("ONEFLOW_LITE_TEST_JIT", "")
needs_numba = pytest.mark.skipif(
    not eager_loops.has_numba(), reason="the extra `jit` is not installed"
)


def _real_card() -> bool:
    try:
        return flow.cuda.is_available()
    except DeviceError:
        return False


REAL_CARD = _real_card()
if REAL_CARD:  # results are compared in all digits of float32, and replays to the bit
    flow.backends.cudnn.allow_tf32, flow.backends.cudnn.deterministic = False, True
CUDA = "the real CUDA device" if REAL_CARD else "the strict stand-in (plumbing only)"


def pytest_report_header(config: pytest.Config) -> str:
    """Say what the CUDA tests run on."""
    return f"CUDA tests run on {CUDA}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the Makefile and of `.ci/run`."""
    group = parser.getgroup("tiers of tests")
    group.addoption(
        "--quick",
        action="store_true",
        help="leave out the tests marked `slow`, unless files, -k or -m say which tests to run",
    )
    group.addoption(
        "--all-extras", action="store_true", help="fail where a test needs an extra that is absent"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Let `--quick` stand for a mark, and let a debugger and `-s` have the tests at hand."""
    option = config.option
    if option.quick and not (option.file_or_dir or option.keyword or option.markexpr):
        option.markexpr = "not slow"
    if option.usepdb or option.capture == "no":
        option.numprocesses = 0


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Pass over a file in which no test is asked for."""
    if collection_path.suffix == ".py" and config.option.markexpr in ("slow", "not slow"):
        text = collection_path.read_text("utf-8")
        if config.option.markexpr == "slow":
            return "mark.slow" not in text or None
        return "\npytestmark = pytest.mark.slow\n" in text or None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Take the mark from the first cases of a slow test that are quick ones nevertheless."""
    met: Counter[Any] = Counter()
    for item in items:
        for mark in [m for m in item.own_markers if m.name == "slow" and m.kwargs]:
            met[item.function] += 1
            if met[item.function] <= mark.kwargs["but"]:
                item.own_markers.remove(mark)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks."""
    config.addinivalue_line(
        "markers", "slow(but=0): `make test` leaves it out, but for the first so many cases"
    )
    config.addinivalue_line(
        "markers", "unjudged(reason): replays of compiled functions run alone in this test"
    )
    config.addinivalue_line(
        "markers", "judged(most): so many replays of each compiled function are judged in this test"
    )
    config.addinivalue_line(
        "markers", "own_loops: ONEFLOW_LITE_TEST_JIT changes nothing in this test"
    )


# The extra that is absent, by a word of the reason for which a test is skipped.
EXTRAS = {
    "'torch'": "torch",
    "'autograd.core'": "torch",
    "PyTorch knows": "torch",
    "PyTorch is not": "torch",
    "`jit`": "jit",
    "'numba'": "jit",
    "worlds of several": "distributed",
    "'playwright'": "browser",
    "NVRTC": "nvrtc",
    "frontend": "cudnn12",
    "'sphinx'": "docs",
}


def not_run(config: pytest.Config) -> Counter[str]:
    """Count the skips, of tests and of whole files, by the extra that is absent."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skips = reporter.stats.get("skipped", ()) if reporter else ()  # a worker has none
    reasons = [str(report.longrepr[2]) for report in skips]
    return Counter(next((e for word, e in EXTRAS.items() if word in r), "") for r in reasons)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say in one line which tests did not run for want of an extra, and how to get it."""
    found = not_run(config)
    del found[""]
    if found:
        counts = ", ".join(f"{name} {count:,}" for name, count in found.most_common())
        get = f"pip install -e '.[{','.join(found)}]'"
        terminalreporter.write_line(f"not run for want of an extra: {counts}; {get}", yellow=True)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let an absent extra be an error where all are asked for."""
    found = not_run(session.config)
    del found[""]
    if found and session.config.option.all_extras:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let a worker send only what is shown: four messages of five about a test say nothing new."""
    for plugin in session.config.pluginmanager.get_plugins():
        if hasattr(plugin, "sendevent"):  # xdist's side in a worker
            plugin.sendevent = functools.partial(_send_shown, plugin.sendevent)


def _send_shown(send: Callable[..., None], name: str, **data: Any) -> None:
    """Send a message, but for starts, ends, and the set-ups and tear-downs that passed."""
    if name == "testreport":
        shown = data["data"]["when"] == "call" or data["data"]["outcome"] != "passed"
    else:
        shown = name not in ("logstart", "logfinish")
    if shown:
        send(name, **data)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """Let the collector pass over the tests: it would visit them all each time that it runs."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


@pytest.fixture
def plain_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the interpreters that global tensors and transforms have added for good."""
    below = DEFAULT_STACK.inner
    while isinstance(below, (GlobalInterpreter, TransformInterpreter)):
        below = below.inner
    monkeypatch.setattr(DEFAULT_STACK, "inner", below)


@pytest.fixture(autouse=True)
def judged(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run the plain function beside every replay of a compiled one, and compare, to the bit.

    Machine code takes over at fixed calls, whatever the time that it takes to build.
    """
    monkeypatch.setattr(eager_loops, "deterministic", True)
    if JIT and request.node.get_closest_marker("own_loops") is None:
        with judged_loops(JIT) as found:
            yield from _judged(request)
        assert not found, "\n".join(found)
        return
    with flow.use_jit(False):
        yield from _judged(request)


def _judged(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.node.get_closest_marker("unjudged") is not None:
        yield
        return
    limits = request.node.get_closest_marker("judged")
    with judge(raises=False, **({} if limits is None else limits.kwargs)) as found:
        yield
    assert not found.verdicts, "\n".join(found.verdicts)


@contextlib.contextmanager
def quick_differences() -> Iterator[None]:
    """Let `check_op` compare derivatives along random directions, and not entry by entry.

    This is for calls whose derivatives another test compares entry by entry: on the CPU, for the
    stand-in computes with NumPy, too, or with PyTorch's.
    """
    checks = {name: getattr(testing, name) for name in ("gradcheck", "gradgradcheck")}
    quick = {name: functools.partial(check, fast_mode=True) for name, check in checks.items()}
    with mock.patch.multiple(testing, **quick):
        yield


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The device to test on: the CPU, then CUDA (a real card, or the strict stand-in)."""
    if request.param == "cuda" and not REAL_CARD:
        from tests import strict_cupy

        with strict_cupy.installed(), quick_differences():
            yield "cuda"
    else:
        yield request.param
