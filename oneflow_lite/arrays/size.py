"""Size: the tuple of the sizes of a tensor's dimensions, as `shape` and `size()` return it."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any, SupportsIndex, overload

from oneflow_lite.errors import ArgumentTypeError, arg_error


class Size(tuple[int, ...]):
    """The sizes of a tensor's dimensions: a tuple with `numel`; slices of it are Sizes, too.

    Raises `ArgumentTypeError` unless it is given a sequence of whole numbers.

    >>> import oneflow_lite as flow
    >>> size = flow.ones(2, 3, 4).shape
    >>> size, size.numel(), size[1:].numel(), size == (2, 3, 4)
    ((2, 3, 4), 24, 12, True)
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = ()) -> Size:
        try:
            return tuple.__new__(cls, map(operator.index, sizes))
        except TypeError as error:
            raise arg_error(
                "Size",
                "sizes",
                expected="a sequence of whole numbers",
                got=f"{sizes!r} ({error})",
                hint="pass a list of ints",
                kind=ArgumentTypeError,
            ) from None

    def numel(self) -> int:
        """Return the number of elements of a tensor of this size."""
        return math.prod(self)

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Size: ...
    def __getitem__(self, index: Any) -> Any:
        entry = _entry(self, index)
        return _make(Size, entry) if type(index) is slice else entry

    def __add__(self, other: tuple[int, ...]) -> Size:  # type: ignore[override]
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: tuple[int, ...]) -> Size:
        return Size(tuple.__add__(other, self))

    def __mul__(self, count: SupportsIndex) -> Size:
        return _make(Size, tuple.__mul__(self, count))

    __rmul__ = __mul__


class Sizes(dict[tuple[int, ...], Size]):
    """Sizes by shape: to look a Size up takes less time than to make it."""

    def __missing__(self, shape: tuple[int, ...]) -> Size:
        if len(self) >= _KEPT:  # a program with ever new shapes must not grow without end
            self.clear()
        size = self[shape] = _make(Size, shape)
        return size


_KEPT = 4096
_entry, _make = tuple.__getitem__, tuple.__new__
SIZES = Sizes()


def fits(have: tuple[int, ...], want: tuple[int, ...]) -> bool:
    """Return whether `want` broadcasts to `have`."""
    extra = len(have) - len(want)
    return extra >= 0 and all(w in (1, h) for w, h in zip(want, have[extra:], strict=True))
