"""Taking tensors apart, into views: what users call."""

from __future__ import annotations

from collections.abc import Sequence

from oneflow_lite.errors import DimError, FlowError, ShapeError, bad_argument
from oneflow_lite.functors.checks import check_dim, check_int, check_tensor
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.storage import SPLIT
from oneflow_lite.tensor import Tensor

NARROW = op_expr("narrow")
SELECT = op_expr("select")


@register_functor("split")
def split(
    tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Cut a tensor along a dimension into views.

    Parameters
    ----------
    tensor : Tensor
        With at least one dimension.
    split_size_or_sections : int or sequence of int
        The size of every part (the last one may be smaller), or all sizes.
    dim : int
        The dimension to cut.

    Raises
    ------
    ShapeError
        When sizes are negative or do not add up, or the tensor is 0-d.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.split(flow.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    >>> flow.split(flow.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    size, dim = _cut_size("split", "tensor", tensor, dim)
    argument = "split_size_or_sections"
    if isinstance(split_size_or_sections, (list, tuple)):
        sizes = [check_int("split", argument, n) for n in split_size_or_sections]
        if sum(sizes) != size or any(n < 0 for n in sizes):
            raise bad_argument(
                ShapeError,
                "split",
                argument,
                expected=f"sizes that add up to {size}, dimension {dim} of {tensor.shape}",
                got=sizes,
                mend="make them add up",
            )
        return _cut(tensor, sizes, dim)
    step = check_int("split", argument, split_size_or_sections)
    if step < 0 or (step == 0 and size):
        raise bad_argument(
            ShapeError,
            "split",
            argument,
            expected="a positive size",
            got=step,
            mend="pass at least 1",
        )
    return _cut(tensor, _even_sizes(size, step), dim)


@register_functor("chunk")
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Cut a tensor along a dimension into at most so many views of one size.

    The last one may be smaller, and there may be fewer.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.chunk(flow.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    size, dim = _cut_size("chunk", "input", input, dim)
    count = check_int("chunk", "chunks", chunks)
    if count < 1:
        raise bad_argument(
            ShapeError,
            "chunk",
            "chunks",
            expected="at least 1",
            got=chunks,
            mend="ask for one chunk or more",
        )
    sizes = _even_sizes(size, -(-size // count)) if size else [0] * count
    return _cut(input, sizes, dim)


@register_functor("unbind")
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the entries of one dimension as views.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.unbind(flow.tensor([[1, 2], [3, 4]]), 1)
    (tensor([1, 3]), tensor([2, 4]))
    """
    shape = check_tensor("unbind", "input", input)._data.shape
    if not shape:
        raise _no_dimension("unbind", "input", DimError)
    dim = check_dim("unbind", dim, len(shape))
    parts = [dispatch1(SELECT, input, {"dim": dim, "index": i}) for i in range(shape[dim])]
    return _marked(parts)


def _cut_size(op: str, argument: str, tensor: Tensor, dim: int) -> tuple[int, int]:
    """Return the size of the dimension to cut, and the dimension counted from 0."""
    shape = check_tensor(op, argument, tensor)._data.shape
    dim = check_dim(op, dim, len(shape))
    if not shape:
        raise _no_dimension(op, argument, ShapeError)
    return shape[dim], dim


def _no_dimension(op: str, argument: str, kind: type[FlowError]) -> FlowError:
    return bad_argument(
        kind,
        op,
        argument,
        expected="at least one dimension",
        got="a 0-d tensor",
        mend="unsqueeze it",
    )


def _even_sizes(size: int, step: int) -> list[int]:
    """Return the sizes of parts of `step` entries; the last one may be smaller."""
    if not size:
        return [0]
    return [min(step, size - start) for start in range(0, size, step)]


def _cut(tensor: Tensor, sizes: Sequence[int], dim: int) -> tuple[Tensor, ...]:
    parts = []
    start = 0
    for length in sizes:
        parts.append(dispatch1(NARROW, tensor, {"dim": dim, "start": start, "length": length}))
        start += length
    return _marked(parts)


def _marked(parts: list[Tensor]) -> tuple[Tensor, ...]:
    """Note that the views were made together: as in PyTorch, none of them is written in place."""
    for part in parts:
        if part._view is not None and part._view.origin is None:
            part._view.origin = SPLIT
    return tuple(parts)
