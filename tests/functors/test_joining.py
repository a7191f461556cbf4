"""cat, stack and their kin, meshgrid: values, derivatives, errors."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DimError,
    DTypeError,
    ShapeError,
)
from oneflow_lite.testing import Sample, check_op

RNG = np.random.default_rng(0)


def arrays(*shapes):
    return [RNG.normal(size=shape) for shape in shapes]


CASES = {
    "cat rows": (lambda lib, *xs: lib.cat(xs), arrays((2, 3), (1, 3), (4, 3))),
    "cat columns": (lambda lib, *xs: lib.cat(xs, dim=-1), arrays((2, 3), (2, 1))),
    "cat one": (lambda lib, x: lib.cat([x], 1), arrays((2, 3))),
    "cat twice": (lambda lib, x: lib.cat([x, x], 1), arrays((2, 3))),
    "cat empty": (lambda lib, *xs: lib.cat(xs), arrays((0, 3), (2, 3), (0, 3))),
    "cat skips": (lambda lib, *xs: lib.cat(xs, 1), arrays((2, 3), (0,), (2, 1))),
    "cat vectors": (lambda lib, *xs: lib.cat(xs), arrays((0,), (0,))),
    "concat": (lambda lib, *xs: lib.concat(xs, 1), arrays((2, 3), (2, 1))),
    "concatenate": (lambda lib, *xs: lib.concatenate(xs, 1), arrays((2, 3), (2, 1))),
    "stack": (lambda lib, *xs: lib.stack(xs), arrays((2, 3), (2, 3), (2, 3))),
    "stack last": (lambda lib, *xs: lib.stack(xs, -1), arrays((2, 3), (2, 3))),
    "stack middle": (lambda lib, *xs: lib.stack(xs, dim=1), arrays((2, 3), (2, 3))),
    "stack 0d": (lambda lib, *xs: lib.stack(xs), arrays((), ())),
    "stack empty": (lambda lib, *xs: lib.stack(xs, 1), arrays((0, 2), (0, 2))),
    "hstack": (lambda lib, *xs: lib.hstack(xs), arrays((2, 3), (2, 1))),
    "hstack vectors": (lambda lib, *xs: lib.hstack(xs), arrays((2,), (3,))),
    "hstack 0d": (lambda lib, *xs: lib.hstack(xs), arrays((), ())),
    "vstack": (lambda lib, *xs: lib.vstack(xs), arrays((2, 3), (1, 3))),
    "vstack vectors": (lambda lib, *xs: lib.vstack(xs), arrays((3,), (2, 3))),
    "vstack 0d": (lambda lib, *xs: lib.vstack(xs), arrays((), ())),
    "dstack": (lambda lib, *xs: lib.dstack(xs), arrays((2, 3), (2, 3, 2))),
    "dstack vectors": (lambda lib, *xs: lib.dstack(xs), arrays((3,), (3,))),
    "dstack 0d": (lambda lib, *xs: lib.dstack(xs), arrays((), ())),
    "column_stack": (lambda lib, *xs: lib.column_stack(xs), arrays((2,), (2, 3))),
    "column_stack 0d": (lambda lib, *xs: lib.column_stack(xs), arrays((), ())),
    "meshgrid": (lambda lib, *xs: lib.meshgrid(*xs, indexing="ij"), arrays((2,), (3,), ())),
    "meshgrid xy": (lambda lib, *xs: lib.meshgrid(xs, indexing="xy"), arrays((2,), (3,), (4,))),
    "meshgrid one": (lambda lib, x: lib.meshgrid(x, indexing="xy"), arrays((2,))),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_pytorch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    call, xs = CASES[name]
    compare(
        lambda *xs: call(flow, *[x * x for x in xs]),
        lambda *xs: call(torch, *[x * x for x in xs]),
        *[np.asarray(x, dtype) for x in xs],
    )


def test_dtypes_are_promoted():
    torch = pytest.importorskip("torch")
    for a, b in (("float32", "float64"), ("int64", "float32"), ("bool", "uint8")):
        x, y = np.ones(2, a), np.ones(2, b)
        for op in ("cat", "stack"):
            ours = getattr(flow, op)([flow.tensor(x), flow.tensor(y)])
            theirs = getattr(torch, op)([torch.tensor(x), torch.tensor(y)])
            assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.")
    x = flow.ones(2, requires_grad=True)
    flow.cat([x, flow.ones(1, dtype=flow.float64)]).sum().backward()
    assert x.grad.dtype == flow.float32 and x.grad.tolist() == [1, 1]


def test_derivatives(device):
    a, b = arrays((2, 2), (2, 1))
    check_op(lambda x, y: flow.cat([x, y], 1), [Sample(a, b)], degenerate=False, device=device)
    check_op(lambda x, y: flow.stack([x, y], 1), [Sample(a, a + 1)], device=device)


def test_gradient_goes_to_those_that_need_it():
    x, y = flow.ones(2), flow.ones(3, requires_grad=True)
    (flow.cat([x, y]) * flow.arange(5.0)).sum().backward()
    assert x.grad is None and y.grad.tolist() == [2, 3, 4]
    z = flow.ones(2, requires_grad=True)
    flow.stack([x, z])[1, 0].backward()
    assert z.grad.tolist() == [1, 0]


def test_result_is_new_memory():
    x = flow.ones(2, 3)
    for y in (flow.cat([x]), flow.stack([x]), flow.hstack([x])):
        assert not np.shares_memory(x.numpy(), y.numpy())


X = flow.ones(2, 3)
ERRORS = [
    (lambda: flow.cat([]), ArgumentError, "cat", "tensors"),
    (lambda: flow.cat(X), ArgumentTypeError, "cat", "tensors"),
    (lambda: flow.cat([X, 1]), ArgumentTypeError, "cat", r"tensors\[1\]"),
    (lambda: flow.cat([X, X[0]]), ShapeError, "cat", r"tensors\[1\]"),
    (lambda: flow.cat([X, X, X[:, :2]]), ShapeError, "cat", r"tensors\[2\]"),
    (lambda: flow.cat([X, X], 2), DimError, "cat", "dim"),
    (lambda: flow.cat([X[0, 0]]), ShapeError, "cat", r"tensors\[0\]"),
    (lambda: flow.stack([]), ShapeError, "stack", "tensors"),
    (lambda: flow.stack([X, X[:1]]), ShapeError, "stack", r"tensors\[1\]"),
    (lambda: flow.stack([X, X], 3), DimError, "stack", "dim"),
    (lambda: flow.stack([X, None]), ArgumentTypeError, "stack", r"tensors\[1\]"),
    (lambda: flow.hstack([]), ShapeError, "hstack", "tensors"),
    (lambda: flow.hstack([X, X[0]]), ShapeError, "hstack", r"tensors\[1\]"),
    (lambda: flow.vstack([X, X[:, :2]]), ShapeError, "vstack", r"tensors\[1\]"),
    (lambda: flow.dstack(X), ArgumentTypeError, "dstack", "tensors"),
    (lambda: flow.column_stack([1]), ArgumentTypeError, "column_stack", r"tensors\[0\]"),
    (lambda: flow.meshgrid(), ShapeError, "meshgrid", "tensors"),
    (lambda: flow.meshgrid(X, X), ShapeError, "meshgrid", r"tensors\[0\]"),
    (lambda: flow.meshgrid(X[0], indexing="yx"), ShapeError, "meshgrid", "indexing"),
    (lambda: flow.meshgrid(X[0], X[0].long()), DTypeError, "meshgrid", r"tensors\[1\]"),
]


@pytest.mark.parametrize(("call", "error", "op", "argument"), ERRORS)
def test_errors(call, error, op, argument):
    with pytest.raises(error, match=rf"^{op}\(\): argument '{argument}'"):
        call()
