"""Placing: a sum of arrays that are zero but for a slice each is written slice by slice.

The gradient of a split array is such a sum: each part's gradient stands among zeros, and the arrays
are added. Where no two slices overlap, each element of the sum is one number and zeros.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import attrs

from oneflow_lite.ops.registry import register_kernel
from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.passes.memory import MemoryGroups, is_library, writes
from oneflow_lite.static.runtime.plan import ExecutionPlan, PassReport

Range = tuple[int, int]  # from the first number to behind the last one
_MANY = 64  # pieces from which it takes too long to look at each


@attrs.frozen
class _SliceSum:
    """A sum of slices' gradients, and for each dimension a range in which all its slices lie."""

    pieces: tuple[Any, ...]  # pairs of a variable and an index, and sums
    ranges: list[Range]
    count: int = 1

    @classmethod
    def of(cls, x: _SliceSum, y: _SliceSum) -> _SliceSum:
        """Return the sum of two."""
        pairs = zip(x.ranges, y.ranges, strict=True)
        ranges = [(min(a[0], b[0]), max(a[1], b[1])) for a, b in pairs]
        return cls((x, y), ranges, x.count + y.count)

    def flat(self) -> list[Any]:
        """Return the variables and their indices, in order."""
        pairs, stack = [], [*self.pieces[::-1]]
        while stack:
            each = stack.pop()
            if isinstance(each, _SliceSum):
                stack += each.pieces[::-1]
            else:
                pairs.append(each)
        return pairs


@register_kernel("placed")
def placed(xp: Any, *pieces: Any, indices: Any, shape: Any, whole: bool, out: Any = None) -> Any:
    """Return the sum of pieces, each at its place among zeros; `whole`: they leave nothing out.

    Zero is added to each, as the sum does, for the sake of -0.0.
    """
    made = xp.empty(shape, pieces[0].dtype) if out is None else out
    if not whole:
        made.fill(0)
    for piece, index in zip(pieces, indices, strict=True):
        xp.add(piece, made.dtype.type(0), out=made[index])
    return made


def place_slices(plan: ExecutionPlan) -> PassReport:
    """Replace sums of slices' gradients; the bytes saved are those of the arrays among zeros."""
    block = plan.block
    if not any([op.type == "getitem_grad" for op in block.ops]):
        return PassReport("placing", 0, {"ops": 0, "bytes": 0})
    memory = MemoryGroups.of_plan(plan)
    written = {memory.of(name) for op in block.ops for name in writes(op)}
    uses: dict[str, int] = dict.fromkeys(plan.fetches, 2)
    for name in [name for op in block.ops for name in op.reads]:
        uses[name] = uses.get(name, 0) + 1
    sums_of: dict[str, _SliceSum] = {}
    sums: dict[str, int] = {}  # positions of the additions
    absorbed: dict[str, tuple[str, ...]] = {}  # the terms of each sum
    nbytes = 0
    for position, op in enumerate(block.ops):
        if op.type not in ("getitem_grad", "add") or not is_library(op):
            continue
        (made,) = op.outputs
        desc = block.var(made)
        if desc.strides is not None or not desc.is_temporary or memory.of(made) in written:
            continue
        if op.type == "getitem_grad":
            (piece,) = op.reads
            if memory.of(piece) not in written and desc.nbytes:
                index = op.attrs["index"]
                sums_of[made] = _SliceSum(((piece, index),), _ranges(index, desc.shape))
        elif not op.attrs and all(
            [n in sums_of and uses[n] == 1 and _alike(plan, n, made) for n in op.reads]
        ):
            x, *others = [sums_of[name] for name in op.reads]
            if len(others) == 1 and _are_apart(x, others[0], desc.shape):
                sums_of[made] = _SliceSum.of(x, others[0])
                sums[made], absorbed[made] = position, op.reads
    gone = {name for each in absorbed.values() for name in each}
    for made, position in sums.items():
        if made in gone:
            continue
        op, desc, pieces = block.ops[position], block.var(made), sums_of[made].flat()
        count = sum(math.prod(block.var(name).shape) for name, _ in pieces)
        given = {
            "indices": tuple([index for _, index in pieces]),
            "shape": desc.shape,
            "whole": count == math.prod(desc.shape),
        }
        said: dict[str, Any] = {"location": op.location, "role": op.role, "number": op.number}
        names = tuple([name for name, _ in pieces])
        block.ops[position] = OpDesc("placed", names, op.outputs, given, **said)
        nbytes += desc.nbytes * (2 * len(pieces) - 2)
    if gone:
        block.ops = [op for op in block.ops if not gone.intersection(op.outputs)]
    fired = len(sums.keys() - gone)
    return PassReport("placing", fired, {"ops": len(gone), "bytes": nbytes})


def _alike(plan: ExecutionPlan, name: str, made: str) -> bool:
    x, y = plan.block.var(name), plan.block.var(made)
    return (x.shape, x.dtype, x.device) == (y.shape, y.dtype, y.device)


def _are_apart(x: _SliceSum, y: _SliceSum, shape: tuple[int, ...]) -> bool:
    """Return whether the slices of two sums are apart along some dimension."""
    pairs = zip(x.ranges, y.ranges, strict=True)
    if any([a[1] <= b[0] or b[1] <= a[0] for a, b in pairs]):
        return True
    if x.count + y.count > _MANY:
        return False
    ranges = [_ranges(index, shape) for _, index in (*x.flat(), *y.flat())]
    along = [sorted(each) for each in zip(*ranges, strict=True)]
    return any([all([a[1] <= b[0] for a, b in itertools.pairwise(each)]) for each in along])


def _ranges(index: Any, shape: tuple[int, ...]) -> list[Range]:
    """Return for each dimension the range in which a slice lies."""
    parts = [i for i in (index if isinstance(index, tuple) else (index,)) if i is not None]
    rest = len(shape) - sum(i is not Ellipsis for i in parts)
    if Ellipsis not in parts:
        parts.append(Ellipsis)
    at = parts.index(Ellipsis)
    parts[at : at + 1] = [slice(None)] * rest
    ranges: list[Range] = []
    for part, size in zip(parts, shape, strict=True):
        numbers = range(size)[part] if isinstance(part, slice) else range(size)[part:][:1]
        ends = sorted((numbers[0], numbers[-1])) if numbers else (0, -1)
        ranges.append((ends[0], ends[1] + 1))
    return ranges
