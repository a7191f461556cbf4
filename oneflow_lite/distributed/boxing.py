"""Boxing: bringing the ranks' parts of a tensor from one signature to another.

Along an axis of a placement, a change is a single collective of the ranks in line: S→B all_gather,
P→B all_reduce, P→S reduce_scatter, S→S all_to_all; B→S, B→P and S→P move nothing. The cost of a
change is the bytes that all ranks together send, by the ring's lower bound.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oneflow_lite.arrays.device import CPU, Device, array_module, as_device, device_of, to_device
from oneflow_lite.distributed.global_array import GlobalArray, global_array
from oneflow_lite.distributed.objects import broadcast_object_list
from oneflow_lite.distributed.placement import B, NdSbp, P, Sbp, Shape, bytes_of, pieces, placement
from oneflow_lite.distributed.process_group import group_of
from oneflow_lite.interpreter.stack import EagerInterpreter
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import make_tensor

_LOCAL = EagerInterpreter()


class Explanation:
    """The boxing that happened: what `flow.distributed.explain()` returns.

    Attributes
    ----------
    rows : list of (op, from, to, times, bytes)
        In the order in which each change happened first. Bytes are those that all ranks of the
        placement send together, over all times.
    """

    def __init__(self, counted: dict[tuple[str, str, str], list[int]]) -> None:
        self.rows = [(*key, times, moved) for key, (times, moved) in counted.items()]

    @property
    def bytes(self) -> int:
        """Bytes of all changes together."""
        return sum(row[-1] for row in self.rows)

    def __str__(self) -> str:
        table = [("op", "from", "to", "times", "bytes"), *[tuple(map(str, r)) for r in self.rows]]
        widths = [max(len(row[i]) for row in table) for i in range(5)]
        lines = []
        for row in table:
            words = [w.ljust(n) for w, n in zip(row[:3], widths[:3], strict=True)]
            words += [w.rjust(n) for w, n in zip(row[3:], widths[3:], strict=True)]
            lines.append("  ".join(words))
        return "\n".join(lines)

    __repr__ = __str__


_happened: dict[tuple[str, str, str], list[int]] = {}


def explain(reset: bool = False) -> Explanation:
    """Return the boxing of global tensors that happened so far: op, from, to, times and bytes.

    reset: whether to begin the list again.

    >>> import oneflow_lite as flow
    >>> flow.distributed.explain(reset=True).rows
    []
    """
    explanation = Explanation(_happened)
    if reset:
        _happened.clear()
    return explanation


def text(nd_sbp: NdSbp) -> str:
    """Return a signature in short: S(0), B, P, or two of them in parentheses."""
    return str(nd_sbp[0]) if len(nd_sbp) == 1 else f"({', '.join(map(str, nd_sbp))})"


def cost(before: Sbp, after: Sbp, size: float, parts: int) -> float:
    """Return the bytes that `parts` ranks send to change a tensor of `size` bytes."""
    if before is after or parts == 1 or before is B or after is P:
        return 0
    if after is B:  # an all_reduce is a reduce_scatter and an all_gather
        return (parts - 1) * size * (2 if before is P else 1)
    return (parts - 1) * size / (1 if before is P else parts)


def run(op: str, array: Any, **attrs: Any) -> Any:
    """Run an op on an array of this rank; return an array."""
    return _LOCAL.apply(op_expr(op), (make_tensor(array),), attrs)._data


def _starts(sizes: list[int]) -> list[int]:
    return [sum(sizes[:i]) for i in range(len(sizes) + 1)]


def _part(array: Any, dim: int, start: int, stop: int) -> Any:
    return array[(slice(None),) * dim + (slice(start, stop),)]


def _padded(array: Any, dim: int, size: int) -> Any:
    """Return an array with zeros behind it along a dimension, up to a size."""
    missing = size - array.shape[dim]
    if not missing:
        return array
    xp = _module(array)
    rest = (*array.shape[:dim], missing, *array.shape[dim + 1 :])
    return xp.concatenate([array, xp.zeros(rest, array.dtype)], dim)


def _module(array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return np
    import importlib

    return importlib.import_module("cupy")


def _along(array: Any, before: Sbp, after: Sbp, size: int, size2: int, group: Any, me: int) -> Any:
    """Change the signature of one axis; return this rank's part.

    `size` and `size2` are the whole's sizes along the dimensions that are split before and after.
    """
    xp, parts = _module(array), group.size()
    if before is after or parts == 1:
        return array
    if after is B:
        if before is P:
            return run("all_reduce", array, reduction="sum", group=group)
        # An all_gather takes equal parts: smaller parts are padded, and cut again afterwards.
        dim = before.dim or 0
        sizes = pieces(size, parts)
        rows = run("all_gather", _padded(array, dim, sizes[0]), group=group)
        return xp.concatenate([_part(rows[i], dim, 0, n) for i, n in enumerate(sizes)], dim)
    if before is B:
        if after is P:  # the first rank's term is the whole sum
            return array.copy() if me == 0 else xp.zeros_like(array)
        ends = _starts(pieces(size2, parts))
        return _part(array, after.dim or 0, ends[me], ends[me + 1]).copy()
    if after is P:
        dim = before.dim or 0
        ends = _starts(pieces(size, parts))
        shape = (*array.shape[:dim], size, *array.shape[dim + 1 :])
        made = xp.zeros(shape, array.dtype)
        _part(made, dim, ends[me], ends[me + 1])[...] = array
        return made
    to = after.dim or 0
    theirs = pieces(size2, parts)
    ends = _starts(theirs)
    shares = [_part(array, to, ends[i], ends[i + 1]) for i in range(parts)]
    if before is P:
        rows = xp.stack([_padded(share, to, theirs[0]) for share in shares])
        made = run("reduce_scatter", rows, reduction="sum", group=group)
        return _part(made, to, 0, theirs[me])
    dim = before.dim or 0
    mine = pieces(size, parts)
    sent = tuple(int(share.size) for share in shares)
    shapes = []
    for n in mine:
        sizes_in = list(array.shape)
        sizes_in[to], sizes_in[dim] = theirs[me], n
        shapes.append(tuple(sizes_in))
    got = tuple(math.prod(shape) for shape in shapes)
    flat = xp.concatenate([share.reshape(-1) for share in shares])
    made = run("all_to_all", flat, sent=sent, got=got, group=group)
    ends = _starts(list(got))
    parts_in = [made[ends[i] : ends[i + 1]].reshape(shape) for i, shape in enumerate(shapes)]
    return xp.concatenate(parts_in, dim)


def _steps(before: NdSbp, after: NdSbp) -> list[tuple[int, Sbp]]:
    """Return the changes in turn, as pairs of an axis and its new signature."""
    changed = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a is not b]
    if len(before) == 1 or changed in ([], [1]):
        return [(i, after[i]) for i in changed]
    dims = {before[0].dim, after[0].dim} - {None}
    # The inner axis cut pieces out of the outer axis's pieces of this dimension: it gathers first.
    if before[1].dim in dims and before[1].dim is not None:
        return [(1, B), (0, after[0]), (1, after[1])]
    order = [(0, after[0])]
    return [*order, (1, after[1])] if 1 in changed else order


def boxed(op: str, x: GlobalArray, after: NdSbp, version: int | None = None) -> Any:
    """Return this rank's part of a tensor in another signature of the same placement.

    Given the tensor's version, a partial sum keeps the result until the tensor is written: else
    each op that reads the tensor would sum it again.
    """
    before = x.sbp
    if before == after:
        return x.local
    kept = x.boxed.get(after)
    if kept is not None and kept[0] == version is not None:
        return kept[1]
    where = x.placement
    moved = nd_cost(before, after, x.shape, x.dtype, where)
    note(op, text(before), text(after), moved)
    array = x.local
    if where.place is not None:
        now = list(before)
        for axis, to in _steps(before, after):
            shape = list(x.shape)  # as the ranks in line along this axis have it together
            for other, each in enumerate(now):
                if other < axis and each.dim is not None:
                    parts = pieces(shape[each.dim], where.shape[other])
                    shape[each.dim] = parts[where.place[other]]
            size, size2 = (0 if x.dim is None else shape[x.dim] for x in (now[axis], to))
            group, me = where.group(axis), where.place[axis]
            array = _along(array, now[axis], to, size, size2, group, me)
            now[axis] = to
    if P in before and version is not None:
        x.boxed[after] = version, array
    return array


def note(op: str, before: str, after: str, moved: float) -> None:
    """Count one change for `explain`."""
    entry = _happened.setdefault((op, before, after), [0, 0])
    entry[0] += 1
    entry[1] += round(moved)


def nd_cost(before: NdSbp, after: NdSbp, shape: Shape, dtype: Any, where: placement) -> float:
    """Return the bytes that all ranks of a placement send for a change."""
    total, size = 0.0, float(bytes_of(shape, dtype))
    now = list(before)
    for axis, to in _steps(before, after):
        split = math.prod(
            n for i, n in enumerate(where.shape) if i != axis and now[i].dim is not None
        )
        lines = math.prod(where.shape) // where.shape[axis]
        total += lines * cost(now[axis], to, size / split, where.shape[axis])
        now[axis] = to
    return total


def moved_to(op: str, x: GlobalArray, where: placement, after: NdSbp) -> Any:
    """Return this rank's part of a tensor on another placement.

    The whole goes from the first rank of the old placement to all ranks of the world, unless both
    placements have the same ranks.
    """
    if x.placement.members == where.members:
        array = on_placement(boxed(op, x, (B,) * len(x.sbp)), where)
    else:
        array = whole(op, x)
        array = on_placement(array, where)
        if where.place is None:  # a rank outside keeps nothing
            array = array[:0].reshape(-1)[:0]
    all_b = (B,) * len(where.shape)
    return boxed(op, global_array(where, all_b, x.shape, x.dtype, array), after)


def whole(op: str, x: GlobalArray) -> Any:
    """Return the whole of a tensor on every rank of the world; all ranks call it together."""
    array = boxed(op, x, (B,) * len(x.sbp))
    world = group_of(None)
    if world.size() == math.prod(x.placement.shape):
        return array
    if x.placement.place is None:
        array = np.empty(x.shape, x.dtype)
    first = world.ranks.index(x.placement.members[0])
    note(op, "one rank", "the world", (world.size() - 1) * bytes_of(x.shape, x.dtype))
    return run("broadcast_from", array, src=first, group=world)


def device_for(where: placement) -> Device:
    """Return the device of this rank's part."""
    return CPU if where.type == "cpu" else as_device("cuda")


def on_placement(array: Any, where: placement) -> Any:
    """Return an array on the device that this rank has on a placement."""
    device = device_for(where)
    return array if device_of(array) == device else to_device(array, device)


def array_module_of(where: placement) -> Any:
    """Return numpy or cupy, for this rank's part."""
    return array_module(device_for(where))


def zeros_on(where: placement, x: GlobalArray) -> Any:
    """Return zeros of the shape of the whole."""
    return array_module_of(where).zeros(x.shape, x.dtype)


def agree_on_generator(where: placement, generator: Any) -> None:
    """Give the generators of all ranks of a placement the state of the first rank's generator."""
    group = where.group()
    if generator is None or group is None or group.size() == 1:
        return
    state = [generator.get_state()]
    broadcast_object_list(state, src=group.ranks[0], group=group)
    generator.set_state(state[0])


# Methods of placements and of global arrays, for kernels


def hold(where: placement, array: Any, nd_sbp: NdSbp, shape: Shape, dtype: Any) -> GlobalArray:
    """Return the global array of which `array` is this rank's part."""
    return global_array(where, nd_sbp, shape, dtype, array)


def agreed(where: placement, xp: Any, array: Any, nd_sbp: NdSbp) -> Any:
    """Return this rank's part; along an axis of copies, the copy of the first rank in line."""
    array = on_placement(array, where)
    for axis, each in enumerate(nd_sbp):
        group = where.group(axis)
        if each is B and group is not None and group.size() > 1:
            array = run("broadcast_from", array, src=0, group=group)
    return array


def boxed_on(where: placement, x: GlobalArray, nd_sbp: NdSbp) -> GlobalArray:
    """Return a global array on this placement in another signature."""
    op = "to_global"
    if x.placement == where:
        if x.sbp == nd_sbp:
            return x
        array = boxed(op, x, nd_sbp)
    else:
        array = moved_to(op, x, where, nd_sbp)
    return global_array(where, nd_sbp, x.shape, x.dtype, array)


def gathered(x: GlobalArray) -> Any:
    """Return the whole as a NumPy array; all ranks call it together."""
    array = whole("numpy", x)
    return array if isinstance(array, np.ndarray) else array.get()
