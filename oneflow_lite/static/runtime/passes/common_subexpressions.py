"""Common subexpressions: an op that is computed twice from the same operands is computed once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from oneflow_lite.arrays.dtype_object import DTYPE_CLASSES
from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.passes.memory import MemoryGroups, is_pure, writes
from oneflow_lite.static.runtime.plan import ExecutionPlan, PassReport


def merge_equal_ops(plan: ExecutionPlan) -> PassReport:
    """Replace later ops by the results of equal earlier ones, views included.

    Two ops are equal when their type, attributes and operands are (constants by their content) and
    the memory of no operand was written in between. Results that are written, directly or through a
    view, stay apart, and so do two results that are both fetched.
    """
    block = plan.block
    memory = MemoryGroups.of_plan(plan)
    written = _with_bases(plan, [n for op in block.ops for n in writes(op)])
    fetched = _with_bases(plan, plan.fetches)
    versions: dict[str, int] = {}
    firsts: dict[Hashable, OpDesc] = {}
    same = _equal_constants(plan, fetched | written)  # of a variable, the first equal one
    kept: list[OpDesc] = []
    nbytes = 0
    for op in block.ops:
        _rename(op, same)
        if is_pure(op, block) and not written.intersection(op.outputs):
            operands = [(n, n and versions.get(memory.of(n))) for n in op.inputs]
            key = (op.type, tuple(operands), attribute_key(op.attrs))
            first = firsts.setdefault(key, op)
            pairs = list(zip(op.outputs, first.outputs, strict=True))
            if first is not op and not any([a in fetched and b in fetched for a, b in pairs]):
                same.update(pairs)
                fetched.update(b for a, b in pairs if a in fetched)
                nbytes += 0 if op.viewed else sum(block.var(n).nbytes for n in op.outputs)
                continue
        kept.append(op)
        for name in writes(op):
            root = memory.of(name)
            versions[root] = versions.get(root, 0) + 1
    _keep_fetched_names(plan, kept, same)
    merged = len(block.ops) - len(kept)
    if merged:
        block.ops[:] = kept
    return PassReport("common_subexpressions", merged, {"ops": merged, "bytes": nbytes})


def _equal_constants(plan: ExecutionPlan, kept: set[str]) -> dict[str, str]:
    """Return for each constant the first one with the same content and layout."""
    firsts: dict[Hashable, str] = {}
    same: dict[str, str] = {}
    for name, desc in plan.block.vars.items():
        x = desc.value
        if isinstance(x, np.ndarray) and name not in kept:
            first = firsts.setdefault((x.dtype, x.shape, x.strides, x.tobytes()), name)
            if first != name:
                same[name] = first
    return same


def _with_bases(plan: ExecutionPlan, names: Any) -> set[str]:
    """Return variables together with their bases."""
    bases: dict[str, tuple[str, ...]] = {}
    for op in plan.block.ops:
        shared = () if op.viewed is None else (op.viewed,)
        bases.update((n, shared) for n in op.new_outputs)
    reached: set[str] = set()
    stack = list(names)
    while stack:
        name = stack.pop()
        if name not in reached:
            reached.add(name)
            stack.extend(bases.get(name, ()))
    return reached


def _keep_fetched_names(plan: ExecutionPlan, ops: list[OpDesc], same: dict[str, str]) -> None:
    """Give merged results the name under which they are fetched."""
    names = {same[n]: n for n in plan.fetches if n in same}
    for op in ops:
        _rename(op, names)
        if not names.keys().isdisjoint(op.outputs):
            op.outputs = tuple([names.get(n, n) for n in op.outputs])


def _rename(op: OpDesc, names: dict[str, str]) -> None:
    if not names.keys().isdisjoint(op.inputs):
        op.inputs = tuple([None if n is None else names.get(n, n) for n in op.inputs])


def attribute_key(value: Any) -> Hashable:
    """Return a key that is equal exactly for attributes with the same meaning.

    Unlike `==` it tells 1 from 1.0 and True, and 0.0 from -0.0; NaN equals itself. Objects of other
    types (arrays, generators) equal only themselves.
    """
    if isinstance(value, (tuple, list)):
        return (type(value), tuple(map(attribute_key, value)))
    if isinstance(value, dict):
        return (dict, tuple(sorted((str(k), attribute_key(v)) for k, v in value.items())))
    if isinstance(value, slice):
        return (slice, attribute_key((value.start, value.stop, value.step)))
    if isinstance(value, np.generic):
        return (type(value), value.tobytes())
    if type(value) in (float, complex):
        return (type(value), repr(value))
    if value is None or type(value) in (bool, int, str, bytes) or isinstance(value, DTYPE_CLASSES):
        return (type(value), value)
    return (object, id(value))
