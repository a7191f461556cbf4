"""The parts of joined functions on Numba's side: memory by its address, and inner functions.

Numba is imported with this module, which is itself imported when there is something to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils as _cgutils
from numba.core.compiler import Compiler
from numba.extending import intrinsic
from numba.np.numpy_support import carray

_njit: Any = njit
_checked: Callable[[Callable[..., Any]], Any] = _njit(error_model="python")
_intrinsic: Callable[[Callable[..., Any]], Any] = intrinsic
_Compiler: Any = Compiler
cgutils: Any = _cgutils


@_intrinsic
def pointer(context: Any, address: Any) -> Any:
    """Return an address as what `carray` takes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


@_intrinsic
def stay(context: Any) -> Any:
    """Have LLVM call the function around this, and not copy it to each place that calls it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate


@_checked
def divided(x: float, y: float) -> float:
    """Divide as Python does, which raises for 0."""
    return x / y


class Apart(_Compiler):  # type: ignore[misc]  # of any type: Numba may not be there
    """Tells LLVM that no array that a function is given overlaps another one.

    Otherwise LLVM compares their addresses beforehand. With more than eight pairs to compare it
    gives up SIMD.
    """

    def define_pipelines(self) -> Any:
        self.state.flags.noalias = True
        return super().define_pipelines()


def part(function: Callable[..., Any], **options: Any) -> Any:
    """Have Numba compile a function of a joined one, once that is compiled and not loaded.

    Python does not call it, so it needs no wrappers, which take long to build.
    """
    inner = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return _njit(error_model="numpy", nogil=True, **inner, **options)(function)


def loops(function: Callable[..., Any]) -> Any:
    """Return a `part` whose arrays do not overlap."""
    return part(function, pipeline_class=Apart)


class _Vectors:
    """Writes instructions for vectors of `width` floats."""

    def __init__(self, builder: Any, pointer: Any, width: int) -> None:
        self.builder, self.scalar, self.width = builder, pointer.type.pointee, width
        self.bits = 32 if isinstance(self.scalar, ir.FloatType) else 64
        self.vector = ir.VectorType(self.scalar, width)
        self.zero = ir.Constant(self.vector, None)
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        name = f"llvm.fmuladd.v{width}f{self.bits}"
        self._fmuladd = cgutils.get_or_insert_function(builder.module, kind, name)

    def place(self, pointer: Any, *terms: Any) -> Any:
        """Return the address of an element.

        Each term is an index, or an index with a stride or with a pointer to the offset of each.
        """
        offsets = [self._offset(*term) if isinstance(term, tuple) else term for term in terms]
        index = offsets[0]
        for each in offsets[1:]:
            index = self.builder.add(index, each)
        return self.builder.gep(pointer, [index])

    def _offset(self, index: Any, by: Any) -> Any:
        if isinstance(by.type, ir.PointerType):
            return self.builder.load(self.builder.gep(by, [index]))
        return self.builder.mul(index, by)

    def load(self, address: Any) -> Any:
        at = self.builder.bitcast(address, self.vector.as_pointer())
        return self.builder.load(at, align=self.bits // 8)

    def store(self, value: Any, address: Any) -> None:
        at = self.builder.bitcast(address, self.vector.as_pointer())
        self.builder.store(value, at, align=self.bits // 8)

    def all(self, number: Any) -> Any:
        """Return a vector of one number."""
        undefined, first = ir.Constant(self.vector, ir.Undefined), ir.Constant(_INT32, 0)
        one = self.builder.insert_element(undefined, number, first)
        zeros = ir.Constant(ir.VectorType(_INT32, self.width), None)
        return self.builder.shuffle_vector(one, undefined, zeros)

    def added(self, x: Any, y: Any, place: Any) -> None:
        """Add a product to what stands at a place."""
        total = self.builder.call(self._fmuladd, [x, y, self.builder.load(place)])
        self.builder.store(total, place)

    def sum(self, vector: Any) -> Any:
        """Return the sum of a vector's elements, by halves; their number is a power of two."""
        builder, width = self.builder, self.width
        while width > 1:
            width //= 2
            kind = ir.VectorType(_INT32, width)
            halves = [
                builder.shuffle_vector(
                    vector, vector, ir.Constant(kind, [*range(begin, begin + width)])
                )
                for begin in (0, width)
            ]
            vector = builder.fadd(*halves)
        return builder.extract_element(vector, ir.Constant(_INT32, 0))


_INT32, _INT64 = ir.IntType(32), ir.IntType(64)


@cache
def tile(rows: int, columns: int) -> Any:
    """Return a function that makes a piece of a product of matrices, and keeps it in registers.

    Its arguments are three arrays, each with the place where it begins; the number of products to
    add up; the strides of x along rows and along the products, of y along the products, and of z
    along rows; and whether to add to the content of z. The columns of y and z are contiguous. A
    stride of x or z may be a pointer to offsets.
    """

    @_intrinsic
    def tile(
        context: Any, x: Any, at_x: Any, y: Any, at_y: Any, z: Any, at_z: Any,
        inner: Any, x_row: Any, x_inner: Any, y_inner: Any, z_row: Any, adds: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            x, at_x, y, at_y, z, at_z, inner, x_row, x_inner, y_inner, z_row, adds = arguments
            write = _Vectors(builder, x, columns)
            numbers = [ir.Constant(_INT64, r) for r in range(rows)]
            sums = [cgutils.alloca_once(builder, write.vector) for _ in numbers]
            for total in sums:
                builder.store(write.zero, total)
            with cgutils.for_range(builder, inner) as loop:
                k = loop.index
                row = write.load(write.place(y, at_y, (k, y_inner)))
                for r, total in zip(numbers, sums, strict=True):
                    number = builder.load(write.place(x, at_x, (r, x_row), (k, x_inner)))
                    write.added(write.all(number), row, total)
            # What z has comes last: one sum of all products in turn would lose digits.
            with builder.if_then(builder.trunc(adds, ir.IntType(1))):
                for r, total in zip(numbers, sums, strict=True):
                    known = write.load(write.place(z, at_z, (r, z_row)))
                    builder.store(builder.fadd(known, builder.load(total)), total)
            for r, total in zip(numbers, sums, strict=True):
                write.store(builder.load(total), write.place(z, at_z, (r, z_row)))
            return context.get_dummy_value()

        n = types.int64
        steps = [by if isinstance(by, types.CPointer) else n for by in (x_row, x_inner, z_row)]
        x_row, x_inner, z_row = steps
        return types.void(x, n, y, n, z, n, n, x_row, x_inner, n, z_row, n), generate

    return tile


@cache
def dots(rows: int, columns: int, width: int) -> Any:
    """Return a function like `tile`'s, where the numbers of x and y to multiply are contiguous.

    Its arguments are three arrays, each with the place where it begins, the number of products to
    add up, and the strides: of x along rows, of y along columns, of z along rows. Sums have `width`
    parts.
    """

    @_intrinsic
    def dots(
        context: Any, x: Any, at_x: Any, y: Any, at_y: Any, z: Any, at_z: Any,
        inner: Any, x_row: Any, y_column: Any, z_row: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            x, at_x, y, at_y, z, at_z, inner, x_row, y_column, z_row = arguments
            write = _Vectors(builder, x, width)
            numbers = [ir.Constant(_INT64, n) for n in range(max(rows, columns))]
            pairs = [(r, c) for r in numbers[:rows] for c in numbers[:columns]]
            sums = [cgutils.alloca_once(builder, write.vector) for _ in pairs]
            for total in sums:
                builder.store(write.zero, total)
            parts = ir.Constant(_INT64, width)
            whole = builder.mul(builder.sdiv(inner, parts), parts)
            with cgutils.for_range_slice(builder, numbers[0], whole, parts, _INT64) as (k, _):
                known = [
                    write.load(write.place(y, at_y, (c, y_column), k)) for c in numbers[:columns]
                ]
                for n, total in enumerate(sums):
                    if n % columns == 0:
                        row = write.load(write.place(x, at_x, (numbers[n // columns], x_row), k))
                    write.added(row, known[n % columns], total)
            one = ir.Constant(_INT64, 1)
            for (r, c), total in zip(pairs, sums, strict=True):
                place = write.place(z, at_z, (r, z_row), c)
                builder.store(write.sum(builder.load(total)), place)
                with cgutils.for_range_slice(builder, whole, inner, one, _INT64) as (k, _):
                    product = builder.fmul(
                        builder.load(write.place(x, at_x, (r, x_row), k)),
                        builder.load(write.place(y, at_y, (c, y_column), k)),
                    )
                    builder.store(builder.fadd(builder.load(place), product), place)
            return context.get_dummy_value()

        n = types.int64
        return types.void(x, n, y, n, z, n, n, n, n, n), generate

    return dots


NAMES = {
    "tile": tile, "dots": dots,
    "part": part, "loops": loops, "stay": stay,
    "carray": carray, "pointer": pointer, "divided": divided,
    "zeros": np.zeros, "bool_": np.bool_, "int64": np.int64,
}  # fmt: skip
