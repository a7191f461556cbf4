"""tril, triu, diagonal, diag, diag_embed and trace: values, derivatives, errors."""

import itertools

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentTypeError, DimError, ShapeError
from oneflow_lite.testing import Sample, check_op

X = np.random.default_rng(0).normal(size=(2, 3, 4))
M = X[0]
OFFSETS = [-5, -2, -1, 0, 1, 3, 5]

CASES = {
    "tril": (lambda lib, x, k: lib.tril(x, k), X),
    "triu": (lambda lib, x, k: lib.triu(x, diagonal=k), X),
    "tril empty": (lambda lib, x, k: lib.tril(x, k), X[:, :0]),
    "diagonal": (lambda lib, x, k: lib.diagonal(x, k), M),
    "diag of a vector": (lambda lib, x, k: lib.diag(x, k), M[0]),
    "diag of a matrix": (lambda lib, x, k: lib.diag(x, k), M),
    "diag_embed": (lambda lib, x, k: lib.diag_embed(x, k), M),
    "diag_embed of a vector": (lambda lib, x, k: lib.diag_embed(x, k), M[0]),
    "diag_embed apart": (lambda lib, x, k: lib.diag_embed(x, k, 0, 2), M),
    "diag_embed swapped": (lambda lib, x, k: lib.diag_embed(x, k, -1, 0), M),
    "trace": (lambda lib, x, k: lib.trace(x), M),
    "trace empty": (lambda lib, x, k: lib.trace(x), M[:0]),
}
for d1, d2 in itertools.permutations(range(3), 2):
    CASES[f"diagonal {d1} {d2}"] = (
        lambda lib, x, k, d1=d1, d2=d2: lib.diagonal(x, k, d1, d2 - 3),
        X,
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    call, x = CASES[name]

    def on(lib):
        return lambda x: tuple(call(lib, x * x, k) for k in OFFSETS)

    compare(on(flow), on(torch), x.astype(dtype))


def test_derivatives(device):
    options = {"degenerate": False, "device": device}
    check_op("tril", [Sample(M, -1)], **options)
    check_op("triu", [Sample(M, 1)], **options)
    check_op("diagonal", [Sample(M, 1), Sample(X[:, :, :2], -1, 2, 0)], **options)
    check_op("diag", [Sample(M[0], -1), Sample(M, 1)], **options)
    check_op("diag_embed", [Sample(M[:, :2], 1, 0, 2)], **options)
    check_op("trace", [Sample(M)], **options)


def test_diagonal_is_a_view_that_can_be_written():
    x = flow.tensor(M)
    y = x.diagonal(1)
    assert y.is_view() and np.shares_memory(y.numpy(), x.numpy())
    y[:] = 7.0
    assert x[0, 1].item() == 7 and x._version == 1
    assert not flow.diag(x).is_view()


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "float16"])
def test_dtypes_agree_with_pytorch(dtype):
    torch = pytest.importorskip("torch")
    x = (M * 3).astype(dtype)
    for call, _ in CASES.values():
        for array in (x, x[0]):
            try:
                theirs = call(torch, torch.tensor(array), 1).numpy()
            except (RuntimeError, IndexError):
                continue
            ours = call(flow, flow.tensor(array), 1).numpy()
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("call", "error", "op", "argument"),
    [
        (lambda x: flow.tril(x[0, 0]), ShapeError, "tril", "input"),
        (lambda x: flow.triu(x, 0.5), ArgumentTypeError, "triu", "diagonal"),
        (lambda x: flow.diagonal(x, 0, 1, -2), ShapeError, "diagonal", "dim2"),
        (lambda x: flow.diagonal(x, 0, 3, 1), DimError, "diagonal", "dim1"),
        (lambda x: flow.diagonal(x[0, 0]), DimError, "diagonal", "dim2"),
        (lambda x: flow.diagonal(x, "a"), ArgumentTypeError, "diagonal", "offset"),
        (lambda x: flow.diag(x), ShapeError, "diag", "input"),
        (lambda x: flow.diag(x[0, 0, 0]), ShapeError, "diag", "input"),
        (lambda x: flow.diag_embed(x[0, 0, 0]), ShapeError, "diag_embed", "input"),
        (lambda x: flow.diag_embed(x, 0, 1, 1), ShapeError, "diag_embed", "dim2"),
        (lambda x: flow.trace(x), ShapeError, "trace", "input"),
        (lambda x: flow.trace(1.0), ArgumentTypeError, "trace", "input"),
    ],
)
def test_errors(call, error, op, argument):
    with pytest.raises(error, match=rf"^{op}\(\): argument '{argument}'"):
        call(flow.tensor(X))
