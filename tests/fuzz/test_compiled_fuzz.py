"""Random programs do the same compiled by `flow.compile` as they do plain."""

from __future__ import annotations

from collections import Counter

import pytest

import oneflow_lite as flow
from tests.compiler.capture.worlds import snapshot
from tests.fuzz import campaign, compiled
from tests.fuzz.compiled import KINDS, attempt, compare, judge, shares
from tests.fuzz.compiled_programs import write
from tests.fuzz.seeds import Difference, shortest

CHUNKS = 2
SIZE = 100


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_programs_do_the_same_compiled(chunk):
    _, counts, failures = attempt((SIZE, chunk * SIZE))
    print(campaign.report(counts))
    assert not failures, "\n".join(failures)
    assert counts["programs"] == SIZE
    assert not shares(counts, least_replayed=0.6, most_ended=0.1)  # there are few
    assert counts["calls replayed"] > SIZE
    for kind in KINDS:
        assert counts[f"programs with {kind}"] >= SIZE / 50


@pytest.mark.slow
@pytest.mark.own_loops
@pytest.mark.parametrize(
    ("kernels", "count"),
    [("python", 40), ("python joined", 40), ("numba", 10), ("numba joined", 5)],
)
def test_programs_do_the_same_as_machine_code(kernels, count):
    pytest.importorskip("numba", reason="the extra `jit` is not installed")
    _, counts, failures = attempt((count, 500), kernels=kernels)
    assert not failures, "\n".join(failures)
    assert counts["runs of loops"] > count / 2


def test_a_seed_always_writes_the_same_program():
    assert write(3) == write(3) != write(4)


PROGRAM = """
def program(compiled):
    w0 = data((2, 3), 1, requires_grad=True)
    def f(x):
        t1 = x * w0
        t2 = t1 + {change}
        return t2, x
    f = compiled(f)
    for k in range(3):
        x = data((2, 3), k)
        out = f(x)
        yield out, versions(out)
        yield "backward", derive(out, [w0], "backward")
        yield w0
"""


class TestCatches:
    """The verdict on what is not the same; each mistake is made on purpose."""

    def test_nothing_without_a_mistake(self):
        counts: Counter[str] = Counter()
        assert judge(PROGRAM.format(change="1"), counts) == []
        assert counts["calls replayed"] == 2

    def test_a_value_frozen_into_the_recording(self, monkeypatch):
        monkeypatch.setattr(compiled.flow, "compile", remembering_one_number)
        with pytest.raises(Difference, match="yield 3: at "):
            judge(PROGRAM.format(change="x.sum().item()"), Counter())

    def test_a_failure_is_shown_without_what_it_does_not_need(self, monkeypatch):
        monkeypatch.setattr(compiled.flow, "compile", remembering_one_number)
        source = shortest(PROGRAM.format(change="x.sum().item()"), judge)
        assert "derive" not in source and "compiled(f)" in source

    def test_the_last_bit_of_a_value(self):
        a = seen(flow.tensor([1.0, 2.0], dtype=flow.float64))
        b = seen(flow.tensor([1.0, 2.0 + 2**-51], dtype=flow.float64))
        assert compare(a, b, "") and not compare(a, a, "")

    def test_strides_of_results_but_not_of_gradients(self):
        c, f = flow.ones(2, 3), flow.ones(3, 2).t()
        assert compare(seen(c), seen(f), "")
        x, y = flow.ones(2, 3, requires_grad=True), flow.ones(2, 3, requires_grad=True)
        x.grad, y.grad = c, f
        assert not compare(seen(x), seen(y), "")
        y.grad = f * 2
        assert compare(seen(x), seen(y), "")

    def test_gradients_of_several_calls_up_to_rounding(self):
        a = flow.tensor([1.0, 2.0], dtype=flow.float64)
        for off, agrees in ((1e-15, True), (1e-12, False)):
            b = a + off
            assert (compare(seen("several", a), seen("several", b), "") is None) is agrees
            assert compare(seen("backward", a), seen("backward", b), "")

    def test_who_raises(self):
        raised = seen("grad", ["raised", "FreedGraphError"])
        found = seen("grad", [flow.ones(1)])
        known = compiled.raised_by_one
        assert known(raised, found, False) and not known(found, raised, False)
        other = seen("grad", ["raised", "ShapeError"])
        assert not known(other, found, True) and not known(found, other, True)
        assert compare(other, found, "")


def seen(*things):
    return snapshot(things)


class Remembering:
    """Compile badly: what is read as a number stays what it was."""

    def __init__(self, function):
        self.function = function
        self.first = None

    def __call__(self, x):
        if self.first is None:
            self.first = x.sum().item()
        y = self.function(x)
        return (y[0] - x.sum().item() + self.first, y[1])

    def explain(self):
        return compiled.CompiledFunction(self.function, False, None).explain()


def remembering_one_number(function):
    return Remembering(function)
