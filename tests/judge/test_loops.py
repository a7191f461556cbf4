"""The judge of machine code, on loops that are wrong on purpose."""

import re

import numpy as np
import pytest

import oneflow_lite as flow
from tests.judge import judged_loops

pytest.importorskip("numba", reason="the extra `jit` is not installed")
from oneflow_lite.static.fusion import machine

pytestmark = [pytest.mark.own_loops, pytest.mark.unjudged("loops are wrong on purpose")]


def change(monkeypatch, pattern, text):
    """Have another kernel made of each group."""
    write = machine.source_of

    def source_of(group, block):
        source, buffers = write(group, block)
        changed = re.sub(pattern, text, source)
        assert changed != source
        return changed, buffers

    monkeypatch.setattr(machine, "source_of", source_of)


def run(function, *inputs, kernels="python"):
    """Return the verdicts on a function, and what the last of some calls gave."""
    with judged_loops(kernels) as verdicts:
        compiled = flow.compile(function)
        for _ in range(3):
            found = compiled(*inputs)
    assert verdicts.runs == 2
    assert np.array_equal(found.numpy(), function(*inputs).numpy())
    return verdicts


X = np.linspace(0.1, 2.0, 12).reshape(3, 4)


def chain(x):
    return flow.exp(-x) * x


def total(x):
    return flow.exp(-x).sum(1)


@pytest.mark.parametrize("kernels", ["python", "numba"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", [chain, total])
def test_nothing_is_found_where_nothing_is_wrong(function, dtype, kernels):
    assert not run(function, flow.tensor(X.astype(dtype)), kernels=kernels)


@pytest.mark.parametrize(
    ("function", "pattern", "text"),
    [
        (chain, r"= float64\(exp\((\w+)\)\)", r"= exp(\1) * (1 + 2e-15)"),
        (chain, r"exp\((\w+)\)", r"exp(\1 + 1e-15)"),
        (chain, r"y0\[j\] = t2", "y0[j] = t2 if j != 5 else nan"),
        (chain, r"range\(begin, end\)", "range(begin, end - 1)"),
        (total, r"range\(4\)", "range(3)"),
        (total, r"add\((\w+), (\w+)\)", r"add(\1, \2 * (1 + 1e-13))"),
    ],
)
def test_a_wrong_result_is_found(function, pattern, text, monkeypatch):
    change(monkeypatch, pattern, text)
    verdicts = run(function, flow.tensor(X))
    assert len(verdicts) == 2 and "of NumPy" in verdicts[0]


def test_a_written_input_is_found(monkeypatch):
    change(monkeypatch, r"y0\[j\] = t2", "y0[j] = t2; a0[j] += 1")
    x = flow.tensor(X)
    with judged_loops("python") as verdicts:
        compiled = flow.compile(chain)
        for _ in range(2):
            compiled(x)
    assert any("was written" in each for each in verdicts)


def test_what_is_far_from_numpy_may_be_nearer_to_the_truth():
    """Where numbers cancel NumPy's error is large, and so may be that of others."""

    def cancels(x):
        return flow.exp(x * 3) - flow.exp(x) * flow.exp(x) * flow.exp(x)

    for dtype in ("float32", "float64"):
        assert not run(cancels, flow.tensor(X.astype(dtype)), kernels="numba")


def test_either_side_of_a_jump():
    """The equality of two numbers may depend on their last bits."""

    def jumps(x):
        return flow.where(flow.exp(flow.log(x)) == x, x, -x)

    assert not run(jumps, flow.tensor(np.linspace(1, 9, 1000)), kernels="numba")


def test_a_view_from_before_a_call_sees_what_that_writes():
    w, y = flow.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), flow.tensor([[1.0, -1.0, 1.0]])

    def f(y):
        x = w * 2 + w
        row = x[0, :]
        between = x.cumsum(1)
        x.masked_fill_(y > 0, 0.5)
        return row.mean() + between * 2

    with judged_loops("numba joined") as verdicts:
        compiled = flow.compile(f)
        found = [compiled(y) for _ in range(3)][-1]
        assert any("in one call" in str(loop) for loop in compiled.explain().loops)
    assert not verdicts and verdicts.runs
    assert found.tolist() == f(y).tolist()
