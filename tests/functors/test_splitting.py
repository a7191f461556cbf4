"""split, chunk and unbind: values, views, derivatives, errors."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd.engine import rule_namespace
from oneflow_lite.errors import ArgumentTypeError, DimError, ShapeError
from oneflow_lite.testing import Sample, check_op

X = np.random.default_rng(0).normal(size=(3, 5, 2))

CASES = {
    "size": lambda lib, x: lib.split(x, 2, 1),
    "whole": lambda lib, x: lib.split(x, 9, dim=1),
    "sections": lambda lib, x: lib.split(x, [1, 0, 4], -2),
    "empty": lambda lib, x: lib.split(x[:0], 0),
    "chunk": lambda lib, x: lib.chunk(x, 2, 1),
    "fewer chunks": lambda lib, x: lib.chunk(x, 4, 1),
    "many chunks": lambda lib, x: lib.chunk(x, 7),
    "empty chunks": lambda lib, x: lib.chunk(x[:0], 3),
    "unbind": lambda lib, x: lib.unbind(x),
    "unbind last": lambda lib, x: lib.unbind(x, -1),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    call = CASES[name]
    compare(lambda x: call(flow, x * x), lambda x: call(torch, x * x), X.astype(dtype))


@pytest.mark.parametrize("name", CASES)
def test_parts_are_views(name):
    x = flow.tensor(X)
    for part in CASES[name](flow, x):
        assert part.is_view() or not part.numel()


def test_empty_unbind_and_methods():
    assert flow.unbind(flow.zeros(0, 2)) == ()
    x = flow.tensor(X)
    assert [p.shape for p in x.split(2, dim=1)] == [(3, 2, 2), (3, 2, 2), (3, 1, 2)]
    assert len(x.chunk(2)) == 2 and len(x.unbind(1)) == 5


def test_derivatives(device):
    x = X[:2, :3, 0]
    check_op("split", [Sample(x, 2, 1)], degenerate=False, device=device)
    check_op("chunk", [Sample(x, 2, 1)], degenerate=False, device=device)
    check_op("unbind", [Sample(x, 1)], degenerate=False, device=device)


def test_gradient_of_some_parts():
    x = flow.tensor(X, requires_grad=True)
    x.chunk(3)[1].sum().backward()
    expected = np.zeros_like(X)
    expected[1] = 1
    np.testing.assert_array_equal(x.grad.numpy(), expected)


@pytest.mark.parametrize(
    ("call", "error", "op", "argument"),
    [
        (lambda x: x.split(0), ShapeError, "split", "split_size_or_sections"),
        (lambda x: x.split(-1), ShapeError, "split", "split_size_or_sections"),
        (lambda x: x.split([1, 1]), ShapeError, "split", "split_size_or_sections"),
        (lambda x: x.split([4, -1]), ShapeError, "split", "split_size_or_sections"),
        (lambda x: x.split(1.5), ArgumentTypeError, "split", "split_size_or_sections"),
        (lambda x: x.split(1, 3), DimError, "split", "dim"),
        (lambda x: x[0, 0, 0].split(1), ShapeError, "split", "tensor"),
        (lambda x: x.chunk(0), ShapeError, "chunk", "chunks"),
        (lambda x: x.chunk("a"), ArgumentTypeError, "chunk", "chunks"),
        (lambda x: x.chunk(2, -4), DimError, "chunk", "dim"),
        (lambda x: x[0, 0, 0].chunk(1), ShapeError, "chunk", "input"),
        (lambda x: x.unbind(3), DimError, "unbind", "dim"),
        (lambda x: x[0, 0, 0].unbind(), DimError, "unbind", "input"),
        (lambda x: flow.unbind(1.0), ArgumentTypeError, "unbind", "input"),
    ],
)
def test_errors(call, error, op, argument):
    with pytest.raises(error, match=rf"^{op}\(\): argument '{argument}'"):
        call(flow.tensor(X))


def _pieces(x, random):
    """Return sums over pieces of x, which overlap, and over x itself; most weights are -0.0."""
    totals = []
    for _ in range(random.integers(2, 6)):
        i, j = sorted(random.integers(0, 6, 2))
        piece = [lambda: x[i:j], lambda: x[i], lambda: x.narrow(1, i, j - i), lambda: x][
            random.integers(4)
        ]()
        weight = flow.tensor(random.choice([-0.0, -0.0, -0.0, 0.1], piece.shape))
        totals.append((piece * weight).sum())
    return flow.stack(totals).sum()


def test_gradients_of_pieces_have_the_same_bits_in_parts_and_whole(monkeypatch):
    """Large gradients are added where they are not zero, small ones with all their zeros."""
    for seed in range(60):
        found = []
        for small in (-1, 10**6):
            monkeypatch.setattr(rule_namespace, "_SMALL", small)
            x = flow.ones(7, 6, dtype=flow.float64, requires_grad=True)
            y = x * 1
            _pieces(y, np.random.default_rng(seed)).backward()
            found.append(x.grad.numpy().tobytes())
        assert found[0] == found[1], f"seed {seed}"


def test_a_large_gradient_in_parts_makes_no_zeros_for_each(monkeypatch):
    made = []
    whole = rule_namespace.Part.whole
    monkeypatch.setattr(rule_namespace.Part, "whole", lambda part: made.append(part) or whole(part))
    for rows, count in ((100, 2), (10, 0)):
        made.clear()
        x = flow.ones(rows, 100, requires_grad=True)
        flow.stack((x * 1).unbind()).sum().backward()
        assert len(made) == count and (x.grad == 1).all()
