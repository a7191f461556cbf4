"""The layout of a global tensor: `placement`, its ranks, and `Sbp`, each rank's part."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from oneflow_lite.arrays.dtype import DTypeLike
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.distributed import process_group as groups
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, arg_error
from oneflow_lite.ops import upward

Shape = tuple[int, ...]


class Sbp:
    """The share of each rank along one axis of a placement: parts, copies, or terms of a sum.

    Made by `flow.sbp.split(dim)`, `flow.sbp.broadcast` and `flow.sbp.partial_sum`; equal signatures
    are the same object.

    >>> import oneflow_lite as flow
    >>> flow.sbp.split(0), flow.sbp.broadcast, flow.sbp.partial_sum
    (oneflow_lite.sbp.split(dim=0), oneflow_lite.sbp.broadcast, oneflow_lite.sbp.partial_sum)
    """

    __slots__ = ("dim", "name")
    dim: int | None
    name: str
    _made: dict[tuple[str, int | None], Sbp] = {}  # noqa: RUF012  (one for the class)

    def __new__(cls, name: str, dim: int | None = None) -> Sbp:
        made = cls._made.get((name, dim))
        if made is None:
            made = cls._made.setdefault((name, dim), super().__new__(cls))
            made.name, made.dim = name, dim
        return made

    def __call__(self) -> Sbp:
        """Return the signature itself, as some scripts write `broadcast()`."""
        return self

    def __reduce__(self) -> Any:
        return Sbp, (self.name, self.dim)

    def __repr__(self) -> str:
        given = "" if self.dim is None else f"(dim={self.dim})"
        return f"oneflow_lite.sbp.{self.name}{given}"

    def __str__(self) -> str:
        return self.name[0].upper() if self.dim is None else f"S({self.dim})"


B, P = Sbp("broadcast"), Sbp("partial_sum")


def split(dim: int) -> Sbp:
    """Return the signature of parts along a dimension: the first ranks have one row more.

    >>> import oneflow_lite as flow
    >>> flow.sbp.split(1)
    oneflow_lite.sbp.split(dim=1)
    """
    if type(dim) is not int:
        got, hint = type(dim).__name__, "name a dimension"
        raise arg_error("sbp.split", "dim", "an int", got, hint, ArgumentTypeError)
    return Sbp("split", dim)


sbp = SimpleNamespace(sbp=Sbp, split=split, broadcast=B, partial_sum=P)
NdSbp = tuple[Sbp, ...]


def pieces(size: int, parts: int) -> list[int]:
    """Return the sizes of the parts of a dimension, as equal as can be, larger parts first."""
    each, more = divmod(size, parts)
    return [each + (i < more) for i in range(parts)]


class placement:
    """The ranks on which a global tensor lies, in a row or in a grid. All ranks make it.

    Parameters
    ----------
    type : {"cpu", "cuda"}
        The devices of the ranks.
    ranks : sequence of int, or of sequences of int
        Ranks of the world, each once. A grid takes one signature for each of its axes.

    Raises
    ------
    ArgumentError
        When a rank is not in the world, or is named twice.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.placement("cpu", ranks=[0])
    oneflow_lite.placement(type="cpu", ranks=[0])
    """

    __slots__ = ("_axes", "_whole", "place", "ranks", "shape", "type")

    @guarded
    def __init__(self, type: str, ranks: Any) -> None:
        op = "placement"
        if type not in ("cpu", "cuda"):
            raise arg_error(op, "type", "'cpu' or 'cuda'", repr(type), "name one", ArgumentError)
        if not groups.is_initialized() and groups.is_launched():
            groups.init_process_group()
        size = groups.get_world_size() if groups.is_initialized() else 1
        grid = np.array(list(ranks) if isinstance(ranks, Iterable) else ranks)
        if grid.dtype.kind not in "iu" or grid.ndim not in (1, 2) or not grid.size:
            expected, hint = "ranks in a row, or in rows of equal length", "as [0, 1]"
            raise arg_error(op, "ranks", expected, ranks, hint, ArgumentError)
        listed = [int(rank) for rank in grid.flat]
        if len(set(listed)) != len(listed) or not set(listed) <= set(range(size)):
            expected = f"each rank once, from 0 to {size - 1}"
            hint = f"start {max(listed) + 1} ranks with mpiexec -n {max(listed) + 1}"
            raise arg_error(op, "ranks", expected, ranks, hint, ArgumentError)
        if any((np.diff(grid, axis=axis) < 1).any() for axis in range(grid.ndim)):
            expected, hint = "ranks that rise along each axis", "sort them"
            raise arg_error(op, "ranks", expected, ranks, hint, ArgumentError)
        self.type = type
        self.ranks: tuple[Any, ...] = tuple(
            int(row) if grid.ndim == 1 else tuple(map(int, row)) for row in grid
        )
        self.shape: Shape = grid.shape
        here = groups.get_rank() if groups.is_initialized() else 0
        places = np.argwhere(grid == here)
        self.place: Shape | None = tuple(map(int, places[0])) if len(places) else None
        self._whole = _group(tuple(listed))
        lines = [grid.swapaxes(axis, -1).reshape(-1, n) for axis, n in enumerate(self.shape)]
        # Every rank makes the groups of all lines: `new_group` is a call of the whole world.
        self._axes = []
        for rows in lines:
            made = [_group(tuple(map(int, row))) for row in rows]
            mine = [group for group, row in zip(made, rows, strict=True) if here in row]
            self._axes.append(mine[0] if mine else None)

    @property
    def members(self) -> Shape:
        """All ranks, row by row."""
        return tuple(int(rank) for rank in np.ravel(self.ranks))

    def group(self, axis: int | None = None) -> Any:
        """Return the group of all ranks, or of the ranks in line with this rank along an axis."""
        chosen = self._whole if axis is None else self._axes[axis]
        if chosen is not None and getattr(chosen, "closed", False):
            chosen = groups.group_of(chosen.ranks)  # of the world after destroying the first
        return chosen

    def local_shape(self, shape: Shape, nd_sbp: NdSbp, place: Shape | None = None) -> Shape:
        """Return the shape of a rank's part of a tensor, by default of this rank's."""
        place = self.place if place is None else place
        if place is None:
            return (0,) * len(shape)
        sizes = list(shape)
        for each, parts, index in zip(nd_sbp, self.shape, place, strict=True):
            if each.dim is not None:
                sizes[each.dim] = pieces(sizes[each.dim], parts)[index]
        return tuple(sizes)

    def begins(self, shape: Shape, nd_sbp: NdSbp) -> list[int] | None:
        """Return the index at which this rank's part of a tensor begins; None without a part."""
        if self.place is None:
            return None
        starts, sizes = [0] * len(shape), list(shape)
        for each, parts, index in zip(nd_sbp, self.shape, self.place, strict=True):
            if each.dim is not None:
                split = pieces(sizes[each.dim], parts)
                starts[each.dim] += sum(split[:index])
                sizes[each.dim] = split[index]
        return starts

    # Kernels and functors have a placement in hand, and may not import the modules above it.

    def hold(self, array: Any, nd_sbp: NdSbp, shape: Shape, dtype: DTypeLike) -> Any:
        """Return the global array of which `array` is this rank's part."""
        return upward.module("boxing").hold(self, array, nd_sbp, shape, dtype)

    def agreed(self, xp: Any, array: Any, nd_sbp: NdSbp) -> Any:
        """Return this rank's part; along an axis of copies, the copy of the first rank in line."""
        return upward.module("boxing").agreed(self, xp, array, nd_sbp)

    def boxed(self, x: Any, nd_sbp: NdSbp) -> Any:
        """Return a global array on this placement in another signature."""
        return upward.module("boxing").boxed_on(self, x, nd_sbp)

    def fill(
        self, op: str, sbp: Sbp | Sequence[Sbp], make: Callable[..., Any], options: Any
    ) -> Any:
        """Return a new global tensor, each part of which `make` makes."""
        return upward.module("making global tensors").made_global(self, op, sbp, make, options)

    @staticmethod
    def of_gradient(nd_sbp: NdSbp) -> NdSbp:
        """Return the signature of the gradient of a tensor."""
        return tuple(B if each is P else each for each in nd_sbp)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, placement):
            return NotImplemented
        return (self.type, self.ranks) == (other.type, other.ranks)

    def __hash__(self) -> int:
        return hash((self.type, self.ranks))

    def __deepcopy__(self, memo: Any) -> placement:
        return self

    def __reduce__(self) -> Any:
        return placement, (self.type, self.ranks)

    def __repr__(self) -> str:
        ranks = [list(row) if isinstance(row, tuple) else row for row in self.ranks]
        return f'oneflow_lite.placement(type="{self.type}", ranks={ranks})'


_groups: dict[Shape, Any] = {}


def _group(ranks: Shape) -> Any:
    """Return the group of these ranks, None for a rank outside; all ranks of the world call it."""
    if not groups.is_initialized():
        return groups.group_of(None)
    world = groups.check_group("placement", None)
    if tuple(sorted(ranks)) == world.ranks:
        return world
    known = _groups.get(ranks)
    if known is None or known[0] is not world:
        made = groups.new_group(ranks)
        known = (world, None if made is groups.GroupMember.NON_GROUP_MEMBER else made)
        _groups[ranks] = known
    return known[1]


def as_nd_sbp(op: str, where: placement, value: Any, ndim: int | None = None) -> NdSbp:
    """Return one signature for each axis of a placement, its dimensions counted from 0."""
    given = (value,) if isinstance(value, Sbp) else value
    axes = len(where.shape)
    if isinstance(given, (tuple, list)) and len(given) == 1 and axes > 1:
        given = tuple(given) * axes
    if (
        not isinstance(given, (tuple, list))
        or len(given) != axes
        or not all(isinstance(each, Sbp) for each in given)
    ):
        expected = f"{axes} signature(s), one for each axis of the placement"
        raise arg_error(op, "sbp", expected, value, "as flow.sbp.split(0)", ArgumentTypeError)
    if ndim is None:
        return tuple(given)
    counted = []
    for each in given:
        if each.dim is None:
            counted.append(each)
        elif -ndim <= each.dim < ndim:
            counted.append(split(each.dim % ndim))
        else:
            expected = f"a dimension of a tensor of {ndim} dimensions"
            raise arg_error(op, "sbp", expected, each, "split one that is there", ArgumentError)
    return tuple(counted)


def bytes_of(shape: Shape, dtype: Any) -> int:
    """Return the bytes of an array of a shape and dtype."""
    return math.prod(shape) * int(dtype.itemsize)
