"""Products of matrices in joined functions: the code of a product, by sizes and strides.

A product is made in tiles, whose sums stay in registers: for each of the numbers to add up, a row
of the right matrix is taken times an element of the left one. Where the right matrix is stored the
other way round, long sums are made of contiguous numbers of both; for short ones it is turned
first, once for all products of a function. These loops reach the speed of one core without the cost
of a call of BLAS; larger products are left to BLAS and its threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import attrs

from oneflow_lite.arrays.array_spec import c_strides
from oneflow_lite.arrays.dtype import DType

PRODUCTS = ("matmul", "matmul_nt", "matmul_tn")
LARGEST = 1 << 21  # multiplications from which two threads of BLAS are faster than one of ours
_ALONE = 1 << 18  # up to which OpenBLAS takes one thread for a product
_ROWS, _BYTES = 4, 64  # of a tile
_DOT_ROWS, _DOT_COLUMNS = 4, 4
_LONG = 64  # numbers to add up from which their vectors' last sums cost little
_BLOCK = 512  # numbers that are added up before their sum is stored


@attrs.frozen
class Product:
    """Products of two matrices each, and the strides of the factors, in elements.

    Attributes
    ----------
    rows, inner, columns : int
    x_strides, y_strides : tuple of int
        Along rows and columns.
    counts : tuple of int
        How many products there are, by dimension.
    x_steps, y_steps : tuple of int
        The strides from one product to the next, by dimension.
    """

    rows: int
    inner: int
    columns: int
    x_strides: tuple[int, int]
    y_strides: tuple[int, int]
    counts: tuple[int, ...] = ()
    x_steps: tuple[int, ...] = ()
    y_steps: tuple[int, ...] = ()

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Elements of x and y from the first to the last, and of the result."""
        x = reach((self.rows, self.inner, *self.counts), (*self.x_strides, *self.x_steps))
        y = reach((self.inner, self.columns, *self.counts), (*self.y_strides, *self.y_steps))
        return x, y, self.rows * self.columns * math.prod(self.counts)

    @property
    def is_for_us(self) -> bool:
        """Whether BLAS would not be faster."""
        each = self.rows * self.inner * self.columns
        total = each * math.prod(self.counts)
        return 0 < total <= LARGEST or 0 < each <= min(_ALONE, LARGEST)

    @property
    def adds_contiguous(self) -> bool:
        """Whether the numbers that are multiplied with each other are contiguous."""
        long = self.inner >= _LONG or (self.columns == 1 and self.inner > 1)
        return long and self.x_strides[1] == self.y_strides[0] == 1

    @property
    def must_turn(self) -> bool:
        """Whether the right matrix is to be turned first."""
        return not (self.adds_contiguous or self.y_strides[1] == 1 or self.columns == 1)

    def turned(self) -> Product:
        """Return the product with a right matrix in C order."""
        counts = tuple(
            [n if step else 1 for n, step in zip(self.counts, self.y_steps, strict=True)]
        )
        steps = c_strides(counts, self.inner * self.columns)
        steps = tuple([new if step else 0 for new, step in zip(steps, self.y_steps, strict=True)])
        return attrs.evolve(self, y_strides=(self.columns, 1), y_steps=steps)


def reach(counts: Sequence[int], strides: Sequence[int]) -> int:
    """Return the number of elements from the first to the last one of an array."""
    return 1 + sum(s * (n - 1) for n, s in zip(counts, strides, strict=True))


def turning_lines(product: Product) -> list[str]:
    """Return the lines that write the right matrices of `y` to `z`, in C order."""
    made = product.turned()
    lines: list[str] = []
    at_y = at_z = ""
    for d, (n, y, z) in enumerate(zip(product.counts, product.y_steps, made.y_steps, strict=True)):
        if y:
            lines.append("    " * len(lines) + f"for b{d} in range({n}):")
            at_y, at_z = f"{at_y} + b{d} * {y}", f"{at_z} + b{d} * {z}"
    (along, across), columns = product.y_strides, product.columns
    pad = "    " * len(lines)
    return [
        *lines,
        f"{pad}for k in range(uint64({product.inner})):",
        f"{pad}    for j in range(uint64({columns})):",
        f"{pad}        z[k * {columns} + j{at_z}] = y[k * {along} + j * {across}{at_y}]",
    ]


def product_lines(product: Product, dtype: DType) -> tuple[list[str], list[str]]:
    """Return the names of tiles and the lines that compute a product of `x` and `y` into `z`."""
    lines: list[str] = []
    places = ["", "", ""]
    steps = c_strides(product.counts, product.rows * product.columns)
    for d, (n, *by) in enumerate(
        zip(product.counts, product.x_steps, product.y_steps, steps, strict=True)
    ):
        if n > 1:
            lines.append("    " * len(lines) + f"for b{d} in range({n}):")
            places = [f"{p} + b{d} * {s}" if s else p for p, s in zip(places, by, strict=True)]
    write = _dots if product.adds_contiguous else _tiles
    names: dict[str, None] = {}
    inner = list(write(product, dtype, places, names))
    return list(names), [*lines, *["    " * len(lines) + line for line in inner]]


def _pieces(size: int, largest: int) -> Iterator[tuple[str, int]]:
    """Yield ranges of the places where pieces begin, each with the size of its pieces."""
    whole = size - size % largest
    if whole:
        yield f"range(0, {whole}, {largest})", largest
    if size > whole:
        yield f"range({whole}, {size}, {size - whole})", size - whole


def _tiles(
    product: Product, dtype: DType, places: list[str], names: dict[str, None]
) -> Iterator[str]:
    (x_row, x_inner), (y_inner, _) = product.x_strides, product.y_strides
    n, is_blocked = product.columns, product.inner > _BLOCK
    at_x, at_y, at_z = places
    if is_blocked:
        yield f"for k in range(0, {product.inner}, {_BLOCK}):"
        at_x, at_y = f"{at_x} + k * {x_inner}", f"{at_y} + k * {y_inner}"
        count, adds = f"min({_BLOCK}, {product.inner} - k)", "int64(k > 0)"
    else:
        count, adds = f"{product.inner}", "0"
    pad = "    " * is_blocked
    arguments = (
        f"x, i * {x_row}{at_x}, y, j{at_y}, z, i * {n} + j{at_z}, "
        f"{count}, {x_row}, {x_inner}, {y_inner}, {n}, {adds}"
    )
    width = _BYTES // dtype.itemsize
    yield from (
        pad + line for line in _calls(product, "tile", (_ROWS, width), (), arguments, names)
    )


def _dots(
    product: Product, dtype: DType, places: list[str], names: dict[str, None]
) -> Iterator[str]:
    (x_row, _), (_, y_column) = product.x_strides, product.y_strides
    n = product.columns
    at_x, at_y, at_z = places
    lanes = _BYTES // dtype.itemsize
    while lanes > product.inner:
        lanes //= 2
    arguments = (
        f"x, i * {x_row}{at_x}, y, j * {y_column}{at_y}, z, i * {n} + j{at_z}, "
        f"{product.inner}, {x_row}, {y_column}, {n}"
    )
    at_once = _DOT_ROWS, _DOT_COLUMNS
    yield from _calls(product, "dots", at_once, (lanes,), arguments, names)


def _calls(
    product: Product,
    kind: str,
    at_once: tuple[int, int],
    more: tuple[int, ...],
    arguments: str,
    names: dict[str, None],
) -> Iterator[str]:
    """Yield loops over pieces of at most so many rows and columns; `names` gets their functions."""
    for columns, width in _pieces(product.columns, at_once[1]):
        yield f"for j in {columns}:"
        for rows, height in _pieces(product.rows, at_once[0]):
            sizes = [str(size) for size in (height, width, *more)]
            name = "_".join([kind, *sizes])
            names[f"{name} = {kind}({', '.join(sizes)})"] = None
            yield f"    for i in {rows}:"
            yield f"        {name}({arguments})"
