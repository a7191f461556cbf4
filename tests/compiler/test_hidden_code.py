"""Code of users that Python runs by itself runs when, and as often as, in eager code."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable

import pytest

import oneflow_lite as flow
from tests.compiler.hidden_code import (
    GENERATORS,
    Program,
    asking,
    finalizing,
    hashing,
    patching,
    seen,
    suspending,
)

pytestmark = [
    pytest.mark.unjudged("it runs the plain function beside each call itself"),
    pytest.mark.filterwarnings("ignore"),
]


def check(programs: Iterable[Program]) -> int:
    """Hold that each program does the same compiled; return how many calls were replayed."""
    failed, hits = [], 0
    for program in programs:
        expected, _ = seen(program, compiled=False)
        found, told = seen(program, compiled=True)
        hits += told.hits
        for i, (have, want) in enumerate(zip(found, expected, strict=True)):
            if have != want:
                failed.append(f"{program.name}\n  call {i} gave {have}\n  not {want}; {told}")
                break
    assert not failed, f"{len(failed)} differ:\n" + "\n".join(failed)
    return hits


# A function that drops its argument is called from a frame that keeps it, while it is recorded.
def _is_exact(program: Program) -> bool:
    return "drop(g(x))" not in program.name and "drop_it(D" not in program.name


def test_generators_are_closed_where_python_closes_them():
    """Each use, with one kind of generators."""
    kinds = [[*filter(_is_exact, suspending(kind))] for kind in GENERATORS]
    check(kinds[i % len(kinds)][i] for i in range(len(kinds[0])))


@pytest.mark.slow
@pytest.mark.parametrize("kind", GENERATORS)
def test_generators_of_each_kind_are_closed_where_python_closes_them(kind):
    hits = check(filter(_is_exact, suspending(kind)))
    assert hits > 100 or kind != "plain"


def test_finalizers_run_where_python_runs_them():
    assert not check(filter(_is_exact, finalizing()))


def test_keys_are_hashed_and_compared_as_often_as_in_eager_code():
    check(hashing())


def test_classes_that_are_asked_or_changed():
    assert check(asking())


@pytest.mark.slow(but=1)
def test_methods_of_tensors_that_others_take_the_place_of():
    assert check(patching())


def test_the_reason_names_the_line_in_the_generator():
    program = next(suspending("no_grad"))
    line = program.text[: program.text.rindex("    yield x * 2")].count("\n")
    at = f"at <tests.compiler.hidden_code>:{line} in g"
    reason = f"a generator yields in a try or with statement, {at}"
    assert seen(program, compiled=True)[1].reasons == [reason]


def test_generators_that_end_by_themselves_are_replayed():
    def numbers(n):
        for k in range(n):
            yield k + 1.0
        yield from (0.5, 0.25)

    f = flow.compile(lambda x: x * sum(numbers(3)) + next(numbers(2)))
    for k in range(4):
        assert f(flow.tensor([k + 1.0])).item() == 6.75 * (k + 1) + 1
    assert f.explain().hits == 3


def test_context_managers_that_are_generators_are_replayed():
    @contextlib.contextmanager
    def frozen():
        with flow.no_grad():
            yield

    w = flow.ones(1, requires_grad=True)

    @flow.compile
    def f(x):
        with frozen():
            y = x * w
        return y, x * w

    for _ in range(3):
        assert [y.requires_grad for y in f(flow.ones(1))] == [False, True]
    assert f.explain().hits == 2


class Cyclic:
    """Garbage that only the collector finds, and that is noticed then."""

    def __init__(self, count):
        self.itself, self.count = self, count

    def __del__(self):
        self.count.add_(1)


def test_no_garbage_is_collected_into_a_recording():
    count, thresholds = flow.zeros(()), gc.get_threshold()
    f = flow.compile(lambda x: [[x * k] for k in range(300)][-1])
    gc.disable()
    try:
        Cyclic(count)
        gc.set_threshold(gc.get_count()[0] + 200)
        gc.enable()
        f(flow.ones(1))
        assert gc.isenabled()
    finally:
        gc.enable()
        gc.set_threshold(*thresholds)
    gc.collect()
    assert count.item() == 1
    for _ in range(3):
        f(flow.ones(1))
    assert f.explain().hits == 3 and count.item() == 1


def test_garbage_is_collected_after_a_call_that_raised():
    def f(x):
        raise KeyError

    with pytest.raises(KeyError):
        flow.compile(f)(flow.ones(1))
    assert gc.isenabled()
