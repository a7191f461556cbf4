"""embedding and one_hot: what users call to turn class numbers into rows and units."""

from __future__ import annotations

from oneflow_lite.autograd.mode import no_grad
from oneflow_lite.errors import ArgumentError, bad_argument
from oneflow_lite.functors.checks import check_int, check_ndim, check_tensor, require_integer
from oneflow_lite.functors.indexing import setitem
from oneflow_lite.interpreter import dispatch, dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import FUNCTORS, register_functor
from oneflow_lite.tensor import Tensor

EMBEDDING = op_expr("embedding")
ONE_HOT = op_expr("one_hot")


@register_functor("embedding")
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of `weight` that `input` names.

    Parameters
    ----------
    input : Tensor
        Of an integer dtype and any shape.
    weight : Tensor
        Shape (number of rows, size of a row).
    padding_idx : int, optional
        This row gets no gradient.
    max_norm : float, optional
        Rows that are looked up and have a larger norm are first scaled down to it, in place.
    norm_type : float
        Which p-norm `max_norm` means.
    scale_grad_by_freq : bool
        Divide the gradient of a row by how often it was looked up.
    sparse : bool
        Only False: gradients are dense.

    Returns
    -------
    Tensor of shape (*input.shape, size of a row)

    Raises
    ------
    IndexRangeError
        When a row number is negative or too large (on CUDA the values are not looked at).
    ShapeError, DTypeError, ArgumentError
        When `weight` has not two dimensions, `input` is not of integers, `padding_idx` names no
        row, or `sparse` is asked for.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> weight = flow.tensor([[0., 0.], [1., 2.], [3., 4.]])
    >>> flow.nn.functional.embedding(flow.tensor([2, 1]), weight)
    tensor([[3., 4.],
            [1., 2.]])
    """
    require_integer("embedding", input, "input")
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
    attrs = {"padding_idx": padding_idx, "scale_grad_by_freq": bool(scale_grad_by_freq)}
    if max_norm is not None:
        _shrink_rows(input, weight, float(max_norm), float(norm_type))
    return dispatch(EMBEDDING, (input, weight), attrs)


def _shrink_rows(input: Tensor, weight: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows that `input` names down to `max_norm`, in place and unseen by autograd."""
    with no_grad():
        rows = dispatch(EMBEDDING, (input, weight))
        norms = FUNCTORS.get("norm")(rows, norm_type, -1, True)
        # As PyTorch, which keeps a row a little below the bound.
        shrunk = rows * (max_norm / (norms + 1e-7))
        setitem(weight, input, FUNCTORS.get("where")(norms > max_norm, shrunk, rows))


@register_functor("one_hot")
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return class numbers as vectors that are 1 at the class and 0 elsewhere.

    Parameters
    ----------
    tensor : Tensor
        Of an integer dtype and any shape.
    num_classes : int
        The length of the vectors; -1 takes the largest class number plus one, and on CUDA waits
        for the device to know it.

    Returns
    -------
    Tensor of int64, shape (*tensor.shape, num_classes)

    Raises
    ------
    IndexRangeError
        When a class number is negative or too large (on CUDA such a row is all zeros).
    ShapeError
        When an empty tensor leaves the number of classes open.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.one_hot(flow.tensor([0, 2]), num_classes=3)
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    require_integer("one_hot", check_tensor("one_hot", "tensor", tensor), "tensor")
    attrs = {"num_classes": check_int("one_hot", "num_classes", num_classes, -1)}
    return dispatch1(ONE_HOT, tensor, attrs)
