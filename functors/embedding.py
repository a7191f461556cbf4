"""embedding and one_hot: what users call to turn class numbers into rows and units."""

from __future__ import annotations

from typing import Annotated

from oneflow_lite.autograd.mode import no_grad
from oneflow_lite.errors import ArgumentError, bad_argument
from oneflow_lite.functors.checks import check_int, check_ndim
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Flag, Integer, attribute
from oneflow_lite.functors.indexing import setitem
from oneflow_lite.interpreter import dispatch
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import FUNCTORS
from oneflow_lite.tensor import Tensor

EMBEDDING = op_expr("embedding")


@functor("functional flow", samples="i(2, 3, n=4), x(4, 2); i(2, n=4), fixed(x(4, 2)), 1")
def embedding(
    input: Integer,
    weight: AnyTensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: Flag = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of `weight` that `input` names.

    weight: of shape (number of rows, size of a row).
    padding_idx: this row gets no gradient.
    max_norm: rows that are looked up and have a larger norm are first scaled down to it, in place.
    norm_type: which p-norm `max_norm` means.
    scale_grad_by_freq: divide the gradient of a row by how often it was looked up.
    sparse: only False: gradients are dense.
    ArgumentError: when `padding_idx` names no row, or `sparse` is asked for.
    IndexRangeError: when a row number is negative or too large (on CUDA nobody looks).
    ShapeError: when `weight` has not two dimensions.

    >>> weight = flow.tensor([[0., 0.], [1., 2.], [3., 4.]])
    >>> flow.nn.functional.embedding(flow.tensor([2, 1]), weight)
    tensor([[3., 4.],
            [1., 2.]])
    """
    rows = check_ndim("embedding", weight, (2,), "weight").shape[0]
    if sparse:
        raise ArgumentError("embedding(): argument 'sparse': gradients are dense; pass False")
    if padding_idx is not None:
        padding_idx = check_int("embedding", "padding_idx", padding_idx)
        if not -rows <= padding_idx < rows:
            raise bad_argument(
                ArgumentError,
                "embedding",
                "padding_idx",
                expected=f"{-rows} to {rows - 1}",
                got=padding_idx,
                mend="name a row of weight",
            )
        padding_idx %= rows
    if max_norm is not None:
        _shrink_rows(input, weight, float(max_norm), float(norm_type))
    attrs = {"padding_idx": padding_idx, "scale_grad_by_freq": scale_grad_by_freq}
    return dispatch(EMBEDDING, (input, weight), attrs)


def _shrink_rows(input: Tensor, weight: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows that `input` names down to `max_norm`, in place and unseen by autograd."""
    with no_grad():
        rows = dispatch(EMBEDDING, (input, weight))
        norms = FUNCTORS.get("norm")(rows, norm_type, -1, True)
        # As PyTorch, which keeps a row a little below the bound.
        shrunk = rows * (max_norm / (norms + 1e-7))
        setitem(weight, input, FUNCTORS.get("where")(norms > max_norm, shrunk, rows))


@functor("functional", samples="i(2, 3), 5")
def one_hot(
    tensor: Integer, num_classes: Annotated[int, attribute(check_int, ", -1")] = -1
) -> Tensor:
    """Return class numbers as vectors of int64 that are 1 at the class and 0 elsewhere.

    num_classes: the length of the vectors; -1 takes the largest class number plus one, and on CUDA
      waits for the device to know it.
    IndexRangeError: when a class number is negative or too large (on CUDA such a row is all zeros).
    ShapeError: when an empty tensor leaves the number of classes open.

    >>> flow.nn.functional.one_hot(flow.tensor([0, 2]), num_classes=3)
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
