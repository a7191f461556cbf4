"""Taking tensors apart, into views: what users call."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from oneflow_lite.errors import ArgumentError, DimError, ShapeError
from oneflow_lite.functors.checks import check_dim, check_int, check_ints, no_dimension, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import AnyTensor, Int
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.storage import SPLIT
from oneflow_lite.tensor import Tensor

NARROW = op_expr("narrow")
SELECT = op_expr("select")

Views = tuple[Tensor, ...]


@functor("flow Tensor", samples="x(5, 2), 2; x(2, 5), [1, 0, 4], -1")
def split(tensor: AnyTensor, split_size_or_sections: int | Sequence[int], dim: Int = 0) -> Views:
    """Cut a tensor along a dimension into views.

    split_size_or_sections: the size of every part (the last one may be smaller), or all sizes.
    ShapeError: when sizes are negative or do not add up, or the tensor is 0-d.
    DimError: when there is no such dimension.

    >>> flow.split(flow.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    return _split("split", tensor, split_size_or_sections, dim)


def _split(op: str, tensor: Tensor, given: Any, dim: int) -> Views:
    size, dim = _cut_size(op, "tensor", tensor, dim)
    argument = "split_sizes" if "sizes" in op else "split_size_or_sections"
    if isinstance(given, (list, tuple)):
        sizes = [check_int(op, argument, n) for n in given]
        if sum(sizes) != size or any(n < 0 for n in sizes):
            expected = f"sizes that add up to {size}, dimension {dim} of {tensor.shape}"
            raise wrong(op, argument, expected, sizes, "make them add up")
        return _cut(tensor, sizes, dim)
    step = check_int(op, argument, given)
    if step < 0 or (step == 0 and size):
        raise wrong(op, argument, "a positive size", step, "pass at least 1")
    return _cut(tensor, _even_sizes(size, step), dim)


@functor("flow Tensor", samples="x(5), [2, 3]")
def split_with_sizes(input: AnyTensor, split_sizes: Sequence[int], dim: Int = 0) -> Views:
    """Cut a tensor along a dimension into views of these sizes."""
    return _split("split_with_sizes", input, list(split_sizes), dim)


@functor("flow Tensor", samples="x(5), 2; x(2, 5), 4, -1")
def chunk(input: AnyTensor, chunks: Int, dim: Int = 0) -> Views:
    """Cut a tensor along a dimension into at most so many views; the last one may be smaller."""
    return _chunk("chunk", input, chunks, dim)


def _chunk(op: str, input: Tensor, chunks: int, dim: int) -> Views:
    size, dim = _cut_size(op, "input", input, dim)
    if chunks < 1:
        raise wrong(op, "chunks", "at least 1", chunks, "ask for one chunk or more")
    sizes = _even_sizes(size, -(-size // chunks)) if size else [0] * chunks
    return _cut(input, sizes, dim)


@functor("flow Tensor", samples="x(5), 2; x(2, 5), 3, -1")
def unsafe_split(input: AnyTensor, split_size: Int, dim: Int = 0) -> Views:
    """Do what `split` does, into copies: each part may be written without touching another."""
    return tuple([part.clone() for part in _split("unsafe_split", input, split_size, dim)])


@functor("flow Tensor", samples="x(5), 2")
def unsafe_chunk(input: AnyTensor, chunks: Int, dim: Int = 0) -> Views:
    """Do what `chunk` does, into copies: each part may be written without touching another."""
    return tuple([part.clone() for part in _chunk("unsafe_chunk", input, chunks, dim)])


@functor("flow Tensor", samples="x(7), 3; x(2, 5), (1, 3), -1; x(5), (4, 2); x(5), i(2)")
def tensor_split(input: AnyTensor, indices_or_sections: Any, dim: Int = 0) -> Views:
    """Cut a tensor along a dimension into views: into so many, or at these indices.

    indices_or_sections: of so many parts the first ones are larger by one if need be; also an
        integer tensor on the CPU.
    ShapeError: when the tensor is 0-d.
    ArgumentError: when there are to be fewer parts than one.

    >>> flow.tensor_split(flow.arange(5), (1, 3))
    (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    return _tensor_split("tensor_split", input, indices_or_sections, dim)


def _tensor_split(op: str, input: Tensor, given: Any, dim: int) -> Views:
    size, dim = _cut_size(op, "input", input, dim)
    given = given.tolist() if isinstance(given, Tensor) else given
    given = check_ints(op, "indices_or_sections", given)
    if isinstance(given, int):
        if given < 1:
            mend = "ask for one part or more"
            raise wrong(op, "indices_or_sections", "at least 1", given, mend, ArgumentError)
        step, rest = divmod(size, given)
        return _cut(input, [step + (i < rest) for i in range(given)], dim)
    bounds = [0, *[min(max(n + size if n < 0 else n, 0), size) for n in given], size]
    places = [{"dim": dim, "start": a, "length": max(b - a, 0)} for a, b in pairwise(bounds)]
    return _marked([dispatch1(NARROW, input, place) for place in places])


def _sides(name: str, dim: int, ndim: int, where: str) -> Any:
    """Declare the tensor_split of one dimension."""

    def author(input: AnyTensor, indices_or_sections: Any) -> Views:
        shape, given = input._data.shape, indices_or_sections
        if len(shape) < ndim:
            raise wrong(name, "input", f"at least {ndim} dimension(s)", input, "unsqueeze it")
        place = min(dim, len(shape) - 1)
        if isinstance(given, int) and given > 0 and shape[place] % given:
            expected = f"a divisor of {shape[place]}"
            mend = "use tensor_split(), whose parts may differ"
            raise wrong(name, "indices_or_sections", expected, given, mend)
        return _tensor_split(name, input, given, place)

    author.__name__ = author.__qualname__ = name
    author.__doc__ = f"""Cut a tensor {where} into views: into so many of one size, or at indices.

    ShapeError: when the tensor has too few dimensions, or the size is no multiple."""
    x = f"x{(4,) * ndim}"
    return functor("flow Tensor", samples=f"{x}, 2; {x}, (1, 3)")(author)


hsplit = _sides("hsplit", 1, 1, "along its second dimension, vectors along the first,")
vsplit = _sides("vsplit", 0, 2, "along its first dimension")
dsplit = _sides("dsplit", 2, 3, "along its third dimension")


@functor("flow Tensor", samples="x(2, 3); x(2, 3), -1")
def unbind(input: AnyTensor, dim: Int = 0) -> Views:
    """Return the entries of one dimension as views.

    DimError: when there is no such dimension.
    """
    size, dim = _cut_size("unbind", "input", input, dim, DimError)
    return _marked([dispatch1(SELECT, input, {"dim": dim, "index": i}) for i in range(size)])


def _cut_size(op: str, name: str, x: Tensor, dim: int, kind: Any = ShapeError) -> tuple[int, int]:
    """Return the size of the dimension to cut, and the dimension counted from 0."""
    dim = check_dim(op, dim, x._data.ndim)
    if not x._data.ndim:
        raise no_dimension(op, name, kind)
    return x._data.shape[dim], dim


def _even_sizes(size: int, step: int) -> list[int]:
    """Return the sizes of parts of `step` entries; the last one may be smaller."""
    return [min(step, size - start) for start in range(0, size, step)] if size else [0]


def _cut(tensor: Tensor, sizes: Sequence[int], dim: int) -> Views:
    parts, start = [], 0
    for n in sizes:
        parts.append(dispatch1(NARROW, tensor, {"dim": dim, "start": start, "length": n}))
        start += n
    return _marked(parts)


def _marked(parts: list[Tensor]) -> Views:
    """Note that the views were made together: as in PyTorch, none of them is written in place."""
    for part in parts:
        if part._view is not None and part._view.origin is None:
            part._view.origin = SPLIT
    return tuple(parts)
