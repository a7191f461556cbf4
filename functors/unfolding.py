"""Windows along one dimension: what users call."""

from __future__ import annotations

from oneflow_lite.errors import ArgumentError, bad_argument
from oneflow_lite.functors.checks import check_dim, check_int, check_tensor
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

_UNFOLD = op_expr("unfold")


@register_functor("unfold")
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return a view of all windows of `size` entries of one dimension, `step` entries apart.

    Parameters
    ----------
    input : Tensor
        Of any shape and dtype.
    dimension : int
        The dimension along which the windows slide.
    size : int
        Entries in a window; at most as many as the dimension has.
    step : int
        Entries from the beginning of one window to that of the next.

    Returns
    -------
    Tensor
        The dimension counts the windows, (n - size) // step + 1 of them, and a new last dimension
        the entries of each. Where windows overlap it cannot be written in place.

    Raises
    ------
    ArgumentError
        When `size` is negative or larger than the dimension, or `step` is not positive.
    DimError
        When there is no such dimension.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.arange(5).unfold(0, 3, 2)
    tensor([[0, 1, 2],
            [2, 3, 4]])
    """
    shape = check_tensor("unfold", "input", input)._data.shape
    dimension = check_dim("unfold", dimension, len(shape), "dimension")
    entries = shape[dimension] if shape else 1
    size = check_int("unfold", "size", size)
    if not 0 <= size <= entries:
        raise bad_argument(
            ArgumentError,
            "unfold",
            "size",
            expected=f"0 to {entries} for dimension {dimension} of shape {shape}",
            got=size,
            mend="take smaller windows",
        )
    step = check_int("unfold", "step", step)
    if step < 1:
        raise bad_argument(
            ArgumentError, "unfold", "step", expected="at least 1", got=step, mend="use 1"
        )
    return dispatch1(_UNFOLD, input, {"dimension": dimension, "size": size, "step": step})
