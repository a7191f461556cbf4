"""unique, bincount and histograms: NaN, edges, weights, what has no gradient, errors."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    ArgumentError,
    DimError,
    DTypeError,
    NotDifferentiableError,
    ShapeError,
)

RNG = np.random.default_rng(0)
NAN = float("nan")


@pytest.mark.parametrize("name", ["unique", "unique_consecutive"])
@pytest.mark.parametrize("dim", [None, 0, -1])
@pytest.mark.parametrize("dtype", ["int64", "float32", "bool", "uint8"])
def test_unique(name, dim, dtype, device):
    torch = pytest.importorskip("torch")
    for shape in [(6, 3), (0, 3), (4,), (70, 50)]:
        x = RNG.integers(0, 2, shape).astype(dtype)
        asked = {"return_inverse": True, "return_counts": True, "dim": dim}
        if 0 in shape and dim == -1:
            continue
        ours = getattr(flow, name)(flow.tensor(x, device=device), **asked)
        theirs = getattr(torch, name)(torch.tensor(x), **asked)
        for y, z in zip(ours, theirs, strict=True):
            assert y.shape == tuple(z.shape)
            np.testing.assert_array_equal(y.numpy(), z.numpy())
    alone = getattr(flow, name)(flow.tensor([2, 2, 1]))
    assert alone.tolist() == ([1, 2] if name == "unique" else [2, 1])


def test_nan_equals_nothing():
    values, counts = flow.unique(flow.tensor([NAN, 1.0, NAN]), return_counts=True)
    assert counts.tolist() == [1, 1, 1] and values[0].item() == 1


def test_bincount(device):
    torch = pytest.importorskip("torch")
    x = RNG.integers(0, 5, 9)
    for dtype in ("float64", "float32", "float16", "int64"):
        w = RNG.integers(0, 4, 9).astype(dtype)
        ours = flow.bincount(flow.tensor(x, device=device), flow.tensor(w, device=device), 7)
        theirs = torch.bincount(torch.tensor(x), torch.tensor(w), 7)
        assert str(theirs.dtype) == f"torch.{ours.dtype}"
        np.testing.assert_allclose(ours.numpy(), theirs.numpy())
    assert flow.bincount(flow.tensor([], dtype=flow.int64, device=device), None, 2).tolist() == [
        0,
        0,
    ]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_histograms(dtype, device):
    torch = pytest.importorskip("torch")
    x = np.append(RNG.normal(size=40), [-1.0, 0.0, 0.5, 2.0]).astype(dtype)
    for args in [(5,), (4, -1, 2), (3, 0.5, 0.5), (100,)]:
        ours, theirs = (
            flow.histc(flow.tensor(x, device=device), *args),
            torch.histc(torch.tensor(x), *args),
        )
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    edges, weight = np.array([-1.0, 0.0, 0.5, 2.0], dtype), RNG.uniform(size=44).astype(dtype)
    for density in (False, True):
        hist, _ = flow.histogram(
            flow.tensor(x, device=device),
            flow.tensor(edges, device=device),
            weight=flow.tensor(weight, device=device),
            density=density,
        )
        theirs = torch.histogram(
            torch.tensor(x), torch.tensor(edges), weight=torch.tensor(weight), density=density
        )
        np.testing.assert_allclose(hist.numpy(), theirs.hist.numpy(), rtol=1e-5)


def test_histogramdd():
    torch = pytest.importorskip("torch")
    x = RNG.normal(size=(4, 10, 2))
    edges = [np.array([-1.0, 0.0, 2.0]), np.array([-2.0, 0.5, 1.0, 3.0])]
    weight = RNG.uniform(size=(4, 10))
    calls = [
        lambda lib: lib.histogramdd(lib.tensor(x), [3, 2]),
        lambda lib: lib.histogramdd(lib.tensor(x), 3, range=[-1.0, 1.0, -2.0, 2.0], density=True),
        lambda lib: lib.histogramdd(
            lib.tensor(x), [lib.tensor(e) for e in edges], weight=lib.tensor(weight)
        ),
    ]
    for call in calls:
        ours, theirs = call(flow), call(torch)
        np.testing.assert_allclose(ours.hist.numpy(), theirs.hist.numpy())
        for y, z in zip(ours.bin_edges, theirs.bin_edges, strict=True):
            np.testing.assert_allclose(y.numpy(), z.numpy())


def test_what_has_no_gradient_says_so():
    x = flow.tensor([1.0, 2.0], requires_grad=True)
    index = flow.tensor([0, 1])
    assert not flow.histc(x, 2).requires_grad
    for y in (flow.unique(x), flow.histogram(x, 2).hist, flow.bincount(index, x)):
        with pytest.raises(NotDifferentiableError):
            y.sum().backward()


X = flow.tensor([1.0, 2.0])
NUMBERS = flow.tensor([1, 2])


@pytest.mark.parametrize(
    ("call", "error", "argument"),
    [
        (lambda: flow.unique(X, dim=1), DimError, "dim"),
        (lambda: flow.unique(X + 1j), DTypeError, "input"),
        (lambda: flow.bincount(NUMBERS - 2), ArgumentError, "input"),
        (lambda: flow.bincount(X), DTypeError, "input"),
        (lambda: flow.bincount(flow.ones(2, 2).long()), DimError, "input"),
        (lambda: flow.bincount(NUMBERS, flow.ones(3)), ShapeError, "weights"),
        (lambda: flow.histc(X, 0), ArgumentError, "bins"),
        (lambda: flow.histc(X, 3, 2, 1), ArgumentError, "max"),
        (lambda: flow.histc(X * float("inf"), 3), ArgumentError, "input"),
        (lambda: flow.histc(NUMBERS, 3), DTypeError, "input"),
        (lambda: flow.histogram(X, flow.ones(1)), ShapeError, "bins"),
        (lambda: flow.histogram(X, flow.ones(2).double()), ShapeError, "bins"),
        (lambda: flow.histogram(X, 3, range=(1.0,)), ArgumentError, "bins"),
        (lambda: flow.histogram(X, 3, range=(2.0, 1.0)), ArgumentError, "range"),
        (lambda: flow.histogram(X, 3, weight=flow.ones(3)), ShapeError, "weight"),
        (lambda: flow.histogramdd(X, [3]), ShapeError, "input"),
        (lambda: flow.histogramdd(flow.ones(3, 2), [3]), ArgumentError, "bins"),
    ],
)
def test_errors(call, error, argument):
    with pytest.raises(error, match=rf"^\w+\(\): argument '{argument}'"):
        call()
