"""The steps of the examples, compiled: replayed without a fallback, with the very bits of eager."""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow

ROOT = Path(__file__).resolve().parents[2]


def load(name: str) -> ModuleType:
    path = ROOT / "docs" / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"compiled_example_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def watched(function: Callable[..., Any], kept: list[np.ndarray]) -> Callable[..., Any]:
    """Return a function that keeps a copy of every tensor that ``function`` returns."""

    def call(*args: Any) -> Any:
        found = function(*args)
        for tensor in found if isinstance(found, tuple) else (found,):
            kept.append(tensor.detach().cpu().numpy().copy())
        return found

    return call


def compare(
    script: ModuleType, captures: dict[str, int], run: Callable[[], Any]
) -> list[np.ndarray]:
    """Run an example eagerly and with the functions named in ``captures`` compiled.

    Both must return the same bits every time. No call may fall back; each function is recorded so
    many times and otherwise replayed. Returns what the eager functions returned.
    """
    originals = {name: getattr(script, name) for name in captures}
    results = []
    for compiled in (False, True):
        kept: list[np.ndarray] = []
        functions = {n: flow.compile(f) if compiled else f for n, f in originals.items()}
        try:
            for name, function in functions.items():
                setattr(script, name, watched(function, kept))
            run()
        finally:
            for name, function in originals.items():
                setattr(script, name, function)
        results.append(kept)
    for name, expected in captures.items():
        found = functions[name].explain()
        assert (found.fallbacks, found.reasons) == (0, []), name
        assert found.captures == expected, (name, found)
        assert found.hits >= 2, (name, found)
    eager, replayed = results
    assert len(eager) == len(replayed) > 0
    for index, (a, b) in enumerate(zip(eager, replayed, strict=True)):
        assert a.dtype == b.dtype and a.shape == b.shape, index
        assert a.tobytes() == b.tobytes(), f"result {index}: {a} against {b}"
    return eager


def test_a_difference_and_a_fallback_are_seen() -> None:
    script = ModuleType("script")
    calls = []

    def step(x: flow.Tensor) -> flow.Tensor:
        calls.append(len(calls))
        return x + len(calls)

    script.__dict__["step"] = step
    with pytest.warns(UserWarning, match="runs eagerly"), pytest.raises(AssertionError):
        compare(script, {"step": 1}, lambda: [script.step(flow.ones(2)) for _ in range(5)])


def test_eager() -> None:
    script = load("eager")
    losses = compare(script, {"train_step": 1}, lambda: script.main(["--steps", "20"]))
    assert losses[-2] < losses[0]


@pytest.mark.slow
def test_higher_order() -> None:
    script = load("higher_order")
    captures = {"train_step": 2, "error_of": 1}  # the first step finds no gradients
    losses = compare(script, captures, lambda: script.main(["--steps", "101"]))
    assert losses[-1] < losses[1]  # the error, before and after


def train_and_read(digits: ModuleType) -> None:
    """Train and evaluate the demo on fewer digits; the last batch is a small one."""
    flow.manual_seed(0)
    (images, labels), held_out = digits.load_scans(0)
    few = digits.Digits(images[:104], labels[:104])
    args = argparse.Namespace(seed=0, epochs=3, batch_size=32, lr=0.1, device="cpu")
    net = digits.Network()
    digits.train(net, few, digits.Digits(held_out.images[:280], held_out.labels[:280]), args)
    for _ in range(3):
        digits.show_second_order(net, held_out, args)


@pytest.mark.slow
def test_digits() -> None:
    script = load("digits")
    # Batches of two sizes each, and the first step of training, which finds no gradients.
    captures = {"train_step": 3, "probabilities_of": 2, "bend": 1}
    compare(script, captures, lambda: train_and_read(script))


def derive_and_fit(script: ModuleType) -> None:
    script.fit(10)
    for _ in range(3):
        script.show_derivatives()


def own_op() -> None:
    script = load("own_op")
    compare(script, {"train_step": 2, "derivatives": 1}, lambda: derive_and_fit(script))


@pytest.mark.slow
def test_own_op() -> None:
    """In a process of its own: the example registers an op."""
    code = "from tests.docs.test_examples_compiled import own_op; own_op()"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


LONGER = {  # how often each step is recorded; the first one finds no gradients
    "char_transformer": {"train_step": 2},
    "gaussian_process": {"train_step": 2},
    "lstm_forecaster": {"train_step": 2},
    "maml": {"meta_step": 4},  # it trains twice, with an inner step and without
    "wgan_gp": {"critic_step": 2, "generator_step": 2},
}


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", LONGER)
def test_longer(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "examples")
    script = load(name)
    compare(script, LONGER[name], lambda: script.main(["--steps", "5", "--out", str(tmp_path)]))
