"""embedding and one_hot: values, derivatives, options, errors."""

import itertools
import sys

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    IndexRangeError,
    ShapeError,
)
from oneflow_lite.functors.embedding import embedding, one_hot
from oneflow_lite.testing import Sample, check_op

F = flow.nn.functional

RNG = np.random.default_rng(0)
WEIGHT = RNG.normal(size=(6, 3))
INPUTS = {
    "matrix": np.array([[1, 5, 1], [0, 2, 1]]),
    "vector": np.array([3, 3]),
    "0d": np.array(4),
    "empty": np.zeros((0, 2), np.int64),
    "int32": np.array([2, 0], np.int32),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "options",
    [{}, {"padding_idx": 1}, {"padding_idx": -2}, {"scale_grad_by_freq": True}],
    ids=str,
)
@pytest.mark.parametrize("name", INPUTS)
def test_agrees_with_pytorch(name, options, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    index = INPUTS[name]
    compare(
        lambda w: embedding(flow.tensor(index), w * w, **options),
        lambda w: torch.nn.functional.embedding(torch.tensor(index), w * w, **options),
        WEIGHT.astype(dtype),
        # PyTorch cannot differentiate the scaled gradient again.
        orders=1 if "scale_grad_by_freq" in options else 2,
    )


@pytest.mark.parametrize("norm_type", [1.0, 2.0])
def test_max_norm_shrinks_rows_as_pytorch(norm_type):
    torch = pytest.importorskip("torch")
    ours = flow.tensor(WEIGHT, requires_grad=True)
    theirs = torch.tensor(WEIGHT, requires_grad=True)
    index = [[0, 1, 1], [3, 0, 5]]
    options = {"max_norm": 1.5, "norm_type": norm_type}
    y = embedding(flow.tensor(index), ours, **options)
    expected = torch.nn.functional.embedding(torch.tensor(index), theirs, **options)
    np.testing.assert_allclose(y.numpy(), expected.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=1e-12)
    y.sum().backward()
    expected.sum().backward()
    np.testing.assert_array_equal(ours.grad.numpy(), theirs.grad.numpy())
    assert ours.is_leaf and ours._version == 1


def test_derivatives(device):
    index = flow.tensor(INPUTS["matrix"], device=device)
    for options in ({}, {"padding_idx": 1, "scale_grad_by_freq": True}):

        def linear(w, options=options):
            return embedding(index, w, **options)

        if options:  # the gradient is not the derivative then: check the derivative of it alone
            w = flow.tensor(WEIGHT, device=device, requires_grad=True)
            dy = flow.ones(2, 3, 3, dtype=flow.float64, device=device, requires_grad=True)
            (dw,) = flow.autograd.grad(linear(w), w, dy, create_graph=True)
            (ddy,) = flow.autograd.grad(dw, dy, flow.ones_like(dw))
            expected = [[0, 1, 0], [1, 1, 0]]
            np.testing.assert_allclose(ddy.numpy()[..., 0], expected)
            assert dw.numpy()[:, 0].tolist() == [1, 0, 1, 0, 0, 1]
        else:
            check_op(linear, [Sample(WEIGHT)], degenerate=False, device=device)


def test_frequent_rows_count_once(device):
    w = flow.zeros(3, 2, device=device, requires_grad=True)
    index = flow.tensor([0, 2, 2, 2], device=device)
    embedding(index, w, scale_grad_by_freq=True).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), [[1, 1], [0, 0], [1, 1]], rtol=1e-6)


I = flow.tensor([0, 1])  # noqa: E741
W = flow.tensor(WEIGHT)
ERRORS = [
    (lambda: embedding(I + 5, W), IndexRangeError, "input"),
    (lambda: embedding(I - 1, W), IndexRangeError, "input"),
    (lambda: embedding(I.double(), W), DTypeError, "input"),
    (lambda: embedding([0], W), ArgumentTypeError, "input"),
    (lambda: embedding(I, W[0]), ShapeError, "weight"),
    (lambda: embedding(I, W, padding_idx=6), ArgumentError, "padding_idx"),
    (lambda: embedding(I, W, padding_idx=-7), ArgumentError, "padding_idx"),
    (lambda: embedding(I, W, sparse=True), ArgumentError, "sparse"),
    (lambda: embedding(I + 5, W, max_norm=0.1), IndexRangeError, "input"),
]


@pytest.mark.parametrize(("call", "error", "argument"), ERRORS)
def test_errors_leave_everything_as_it_was(call, error, argument):
    with pytest.raises(error, match=rf"^embedding\(\): argument '{argument}'"):
        call()
    np.testing.assert_array_equal(W.numpy(), WEIGHT)
    assert W._version == 0


# one_hot


@pytest.mark.parametrize(
    ("name", "num_classes"),
    [("matrix", -1), ("matrix", 7), ("vector", -1), ("0d", -1), ("0d", 5), ("empty", 7)],
)
def test_one_hot_agrees_with_pytorch(name, num_classes):
    torch = pytest.importorskip("torch")
    index = INPUTS[name]
    ours = one_hot(flow.tensor(index), num_classes).numpy()
    theirs = torch.nn.functional.one_hot(torch.tensor(index), num_classes).numpy()
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


def test_one_hot_on_each_device(device):
    y = one_hot(flow.tensor([2, 0], device=device))
    assert y.tolist() == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize(
    ("index", "num_classes", "error", "argument"),
    [
        ([0, -2], -1, IndexRangeError, "tensor"),
        ([0, 2], 2, IndexRangeError, "tensor"),
        ([0], 0, IndexRangeError, "tensor"),
        ([], -1, ShapeError, "num_classes"),
        ([0], -2, ArgumentError, "num_classes"),
        ([0], 1.5, ArgumentTypeError, "num_classes"),
        ([0.0], -1, DTypeError, "tensor"),
    ],
)
def test_one_hot_errors(index, num_classes, error, argument):
    dtype = flow.int64 if index == [] else None
    with pytest.raises(error, match=rf"^one_hot\(\): argument '{argument}'"):
        one_hot(flow.tensor(index, dtype=dtype), num_classes)


# embedding_bag


def _bag_cases():
    for mode, padding, freq, last, rows, weighted in itertools.product(
        ("sum", "mean", "max"), (None, 0, -1), *[(False, True)] * 4
    ):
        if not ((weighted and mode != "sum") or (freq and mode == "max") or (rows and last)):
            yield mode, padding, freq, last, rows, weighted


@pytest.mark.parametrize("size", [0, 9, 3000], ids=["empty", "few", "many"])
@pytest.mark.parametrize("case", list(_bag_cases()), ids=str)
def test_bags_agree_with_pytorch(case, size):
    torch = pytest.importorskip("torch")
    mode, padding, freq, last, rows, weighted = case
    if rows and not size:
        pytest.skip("PyTorch does not")
    rng = np.random.default_rng(size)
    weight, index = rng.normal(size=(6, 5)), rng.integers(0, 6, size)
    offsets = np.array([0, 0, 3, 3, 7, 9]) if size else np.array([0, 0, 0])
    if last:
        offsets[-1] = size
    index, offsets = (index.reshape(3, -1), None) if rows else (index, offsets)
    numbers = rng.normal(size=index.shape)
    results = []
    for lib, f in ((flow, F), (torch, torch.nn.functional)):
        table, factors = (lib.tensor(x).requires_grad_() for x in (weight, numbers))
        scaled = freq and lib is flow  # PyTorch's CPU kernel divides by the counts of other rows
        y = f.embedding_bag(
            lib.tensor(index),
            table,
            None if offsets is None else lib.tensor(offsets),
            scale_grad_by_freq=scaled,
            mode=mode,
            per_sample_weights=factors if weighted else None,
            include_last_offset=last,
            padding_idx=padding,
        )
        dy = np.random.default_rng(1).normal(size=tuple(y.shape))
        wanted = [table, factors] if weighted else [table]
        grads = lib.autograd.grad(y, wanted, lib.tensor(dy))
        results.append([x.detach().numpy() for x in (y, *grads)])
    if freq:
        counts = np.bincount(index.reshape(-1), minlength=6)
        results[1][1] = results[1][1] / np.maximum(counts, 1)[:, None]
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


def test_bags_of_halves_and_shrunk_rows():
    table = flow.tensor([[3.0, 4.0], [0.3, 0.4]], dtype=flow.float16)
    assert F.embedding_bag(flow.tensor([[0, 1]]), table, mode="sum").dtype == flow.float16
    table = flow.tensor([[3.0, 4.0], [0.3, 0.4]])
    y = F.embedding_bag(flow.tensor([[0, 1]]), table, max_norm=1.0, mode="sum")
    np.testing.assert_allclose(y.numpy(), [[0.9, 1.2]], rtol=1e-6)


TABLE, FLAT, BAGS = flow.zeros(4, 2), flow.tensor([0, 3]), flow.tensor([0, 1])


@pytest.mark.parametrize(
    ("given", "options", "error", "argument"),
    [
        ((FLAT, TABLE), {}, ShapeError, "offsets"),
        ((FLAT[None], TABLE, BAGS), {}, ShapeError, "offsets"),
        ((FLAT, TABLE, BAGS[None]), {}, ShapeError, "offsets"),
        ((FLAT + 1, TABLE, BAGS), {}, IndexRangeError, "input"),
        ((FLAT + 1, TABLE, BAGS), {"mode": "max"}, IndexRangeError, "input"),
        ((FLAT.float(), TABLE, BAGS), {}, DTypeError, "input"),
        ((FLAT, TABLE[0], BAGS), {}, ShapeError, "weight"),
        ((FLAT, TABLE, BAGS), {"mode": "x"}, ArgumentError, "mode"),
        ((FLAT, TABLE, BAGS), {"padding_idx": 4}, ArgumentError, "padding_idx"),
        ((FLAT, TABLE, BAGS), {"sparse": True}, ArgumentError, "sparse"),
        (
            (FLAT, TABLE, BAGS),
            {"per_sample_weights": flow.ones(2)},
            ArgumentError,
            "per_sample_weights",
        ),
        (
            (FLAT, TABLE, BAGS),
            {"per_sample_weights": flow.ones(3), "mode": "sum"},
            ArgumentError,
            "per_sample_weights",
        ),
    ],
)
def test_errors_of_bags(given, options, error, argument):
    with pytest.raises(error, match=rf"^embedding_bag\(\): argument '{argument}'"):
        F.embedding_bag(*given, **options)


@pytest.mark.parametrize("width", [2, 4096])  # the large one through SciPy's sparse product
def test_bags_whose_indices_changed_behind_our_back_are_named(width):
    import scipy.sparse  # noqa: F401  (or the product waits until the import pays)

    indices = np.array([0, 2, 1])
    table = flow.ones(3, width, requires_grad=True)
    y = F.embedding_bag(flow.from_numpy(indices), table, flow.tensor([0, 2]), mode="sum")
    indices[1] = 3  # NumPy counts no version
    with pytest.raises(IndexRangeError, match=r"^embedding_bag\(\): argument 'input'"):
        y.sum().backward()


@pytest.mark.parametrize("weighted", [False, True])
def test_bags_are_summed_alike_with_and_without_a_sparse_product(monkeypatch, weighted):
    import scipy.sparse  # noqa: F401

    from oneflow_lite.kernels import index_arrays

    rng = np.random.default_rng(0)
    picks, table = flow.tensor(rng.integers(0, 50, (64, 4))), rng.standard_normal((50, 32))
    shares = flow.tensor(rng.standard_normal((64, 4))) if weighted else None

    def bags():
        weight = flow.tensor(table, requires_grad=True)
        y = F.embedding_bag(picks, weight, mode="sum", per_sample_weights=shares)
        y.square().sum().backward()
        return y.detach().numpy(), weight.grad.numpy()

    by_product = bags()
    monkeypatch.setattr(index_arrays, "_added", [0])
    monkeypatch.delitem(sys.modules, "scipy.sparse")
    monkeypatch.setitem(sys.modules, "scipy", None)  # an import of it raises
    for a, b in zip(bags(), by_product, strict=True):
        np.testing.assert_allclose(a, b, 1e-12, 1e-12)
