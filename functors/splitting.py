"""Taking tensors apart, into views: what users call."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from oneflow_lite.errors import ArgumentError, DimError, FlowError, ShapeError, bad_argument
from oneflow_lite.functors.checks import check_dim, check_int, check_ints, no_dimension
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Int
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.storage import SPLIT
from oneflow_lite.tensor import Tensor

NARROW = op_expr("narrow")
SELECT = op_expr("select")
CLONE = op_expr("clone")


@functor("flow Tensor", samples="x(5, 2), 2; x(2, 5), [1, 0, 4], -1")
def split(
    tensor: AnyTensor, split_size_or_sections: int | Sequence[int], dim: Int = 0
) -> tuple[Tensor, ...]:
    """Cut a tensor along a dimension into views.

    split_size_or_sections: the size of every part (the last one may be smaller), or all sizes.
    ShapeError: when sizes are negative or do not add up, or the tensor is 0-d.
    DimError: when there is no such dimension.

    >>> flow.split(flow.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    >>> flow.split(flow.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    return _split("split", tensor, split_size_or_sections, dim)


def _split(op: str, tensor: Tensor, given: Any, dim: int) -> tuple[Tensor, ...]:
    size, dim = _cut_size(op, "tensor", tensor, dim)
    argument = "split_sizes" if "sizes" in op else "split_size_or_sections"
    if isinstance(given, (list, tuple)):
        sizes = [check_int(op, argument, n) for n in given]
        if sum(sizes) != size or any(n < 0 for n in sizes):
            expected = f"sizes that add up to {size}, dimension {dim} of {tensor.shape}"
            raise bad_argument(ShapeError, op, argument, expected, sizes, "make them add up")
        return _cut(tensor, sizes, dim)
    step = check_int(op, argument, given)
    if step < 0 or (step == 0 and size):
        raise bad_argument(ShapeError, op, argument, "a positive size", step, "pass at least 1")
    return _cut(tensor, _even_sizes(size, step), dim)


@functor("flow Tensor", samples="x(5), [2, 3]")
def split_with_sizes(
    input: AnyTensor, split_sizes: Sequence[int], dim: Int = 0
) -> tuple[Tensor, ...]:
    """Cut a tensor along a dimension into views of these sizes."""
    return _split("split_with_sizes", input, list(split_sizes), dim)


@functor("flow Tensor", samples="x(5), 2; x(2, 5), 4, -1")
def chunk(input: AnyTensor, chunks: Int, dim: Int = 0) -> tuple[Tensor, ...]:
    """Cut a tensor along a dimension into at most so many views of one size.

    The last one may be smaller, and there may be fewer.

    >>> flow.chunk(flow.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    return _chunk("chunk", input, chunks, dim)


def _chunk(op: str, input: Tensor, chunks: int, dim: int) -> tuple[Tensor, ...]:
    size, dim = _cut_size(op, "input", input, dim)
    if chunks < 1:
        mend = "ask for one chunk or more"
        raise bad_argument(ShapeError, op, "chunks", "at least 1", chunks, mend)
    sizes = _even_sizes(size, -(-size // chunks)) if size else [0] * chunks
    return _cut(input, sizes, dim)


@functor("flow Tensor", samples="x(5), 2; x(2, 5), 3, -1")
def unsafe_split(input: AnyTensor, split_size: Int, dim: Int = 0) -> tuple[Tensor, ...]:
    """Do what `split` does, into copies: each part may be written without touching another."""
    return _copied(_split("unsafe_split", input, split_size, dim))


@functor("flow Tensor", samples="x(5), 2")
def unsafe_chunk(input: AnyTensor, chunks: Int, dim: Int = 0) -> tuple[Tensor, ...]:
    """Do what `chunk` does, into copies: each part may be written without touching another."""
    return _copied(_chunk("unsafe_chunk", input, chunks, dim))


def _copied(parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple([dispatch1(CLONE, part) for part in parts])


@functor(
    "flow Tensor",
    samples="x(7), 3; x(2, 5), (1, 3), -1; x(5), (4, 2); x(5), fixed(np.array([1, 3]))",
)
def tensor_split(input: AnyTensor, indices_or_sections: Any, dim: Int = 0) -> tuple[Tensor, ...]:
    """Cut a tensor along a dimension into views: into so many, or at these indices.

    indices_or_sections: of so many parts the first ones are larger by one if need be; also an
        integer tensor on the CPU.
    ShapeError: when the tensor is 0-d.
    ArgumentError: when there are to be fewer parts than one.

    >>> flow.tensor_split(flow.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    >>> flow.tensor_split(flow.arange(5), (1, 3))
    (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    return _tensor_split("tensor_split", input, indices_or_sections, dim)


def _tensor_split(op: str, input: Tensor, given: Any, dim: int) -> tuple[Tensor, ...]:
    size, dim = _cut_size(op, "input", input, dim)
    given = given.tolist() if isinstance(given, Tensor) else given
    places = check_ints(op, "indices_or_sections", given)
    if isinstance(places, int):
        if places < 1:
            what = "indices_or_sections"
            raise bad_argument(
                ArgumentError, op, what, "at least 1", places, "ask for one part or more"
            )
        step, rest = divmod(size, places)
        return _cut(input, [step + (i < rest) for i in range(places)], dim)
    bounds = [0, *[min(max(n + size if n < 0 else n, 0), size) for n in places], size]
    parts = [_part(input, dim, a, max(b - a, 0)) for a, b in pairwise(bounds)]
    return _marked(parts)


def _sides(name: str, dim: int, ndim: int, where: str) -> Any:
    """Declare the tensor_split of one dimension."""

    def author(input: AnyTensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
        rank, place = input._data.ndim, dim
        if rank < ndim:
            expected, got = f"at least {ndim} dimension(s)", f"shape {input.shape}"
            raise bad_argument(ShapeError, name, "input", expected, got, "unsqueeze it")
        if rank == 1:
            place = 0
        if isinstance(indices_or_sections, int) and indices_or_sections > 0:
            size = input._data.shape[place]
            if size % indices_or_sections:
                expected, what = f"a divisor of {size}", "indices_or_sections"
                mend = "use tensor_split(), whose parts may differ"
                raise bad_argument(ShapeError, name, what, expected, indices_or_sections, mend)
        return _tensor_split(name, input, indices_or_sections, place)

    author.__name__ = author.__qualname__ = name
    author.__doc__ = f"""Cut a tensor {where} into views: into so many of one size, or at indices.

    ShapeError: when the tensor has too few dimensions, or the size is no multiple."""
    shape = (4,) * max(ndim, 1)
    return functor("flow Tensor", samples=f"x{shape}, 2; x{shape}, (1, 3)")(author)


hsplit = _sides("hsplit", 1, 1, "along its second dimension, vectors along the first,")
vsplit = _sides("vsplit", 0, 2, "along its first dimension")
dsplit = _sides("dsplit", 2, 3, "along its third dimension")


@functor("flow Tensor", samples="x(2, 3); x(2, 3), -1")
def unbind(input: AnyTensor, dim: Int = 0) -> tuple[Tensor, ...]:
    """Return the entries of one dimension as views.

    DimError: when there is no such dimension.

    >>> flow.unbind(flow.tensor([[1, 2], [3, 4]]), 1)
    (tensor([1, 3]), tensor([2, 4]))
    """
    size, dim = _cut_size("unbind", "input", input, dim, DimError)
    return _marked([dispatch1(SELECT, input, {"dim": dim, "index": i}) for i in range(size)])


def _cut_size(
    op: str, argument: str, tensor: Tensor, dim: int, kind: type[FlowError] = ShapeError
) -> tuple[int, int]:
    """Return the size of the dimension to cut, and the dimension counted from 0."""
    shape = tensor._data.shape
    dim = check_dim(op, dim, len(shape))
    if not shape:
        raise no_dimension(op, argument, kind)
    return shape[dim], dim


def _even_sizes(size: int, step: int) -> list[int]:
    """Return the sizes of parts of `step` entries; the last one may be smaller."""
    if not size:
        return [0]
    return [min(step, size - start) for start in range(0, size, step)]


def _part(tensor: Tensor, dim: int, start: int, length: int) -> Tensor:
    return dispatch1(NARROW, tensor, {"dim": dim, "start": start, "length": length})


def _cut(tensor: Tensor, sizes: Sequence[int], dim: int) -> tuple[Tensor, ...]:
    parts, start = [], 0
    for length in sizes:
        parts.append(_part(tensor, dim, start, length))
        start += length
    return _marked(parts)


def _marked(parts: list[Tensor]) -> tuple[Tensor, ...]:
    """Note that the views were made together: as in PyTorch, none of them is written in place."""
    for part in parts:
        if part._view is not None and part._view.origin is None:
            part._view.origin = SPLIT
    return tuple(parts)
