"""Common subexpressions: what is computed twice from the same operands is computed once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.passes.effects import is_library, is_pure, writes
from oneflow_lite.static.runtime.passes.storage import Storage
from oneflow_lite.static.runtime.plan import ExecutionPlan, PassReport


def run(plan: ExecutionPlan) -> PassReport:
    """Let later ops use what an earlier one has made, views included.

    Two ops are the same when type, attributes and operands agree, constants by their content, and
    nothing was written in between to memory in which an operand lies. Results that are written
    through, themselves or a view of them, stay apart; so do two results that are both fetched.
    """
    block = plan.block
    storage = Storage(plan)
    written = _with_bases(plan, [n for op in block.ops for n in writes(op)])
    fetched = _with_bases(plan, plan.fetches)
    versions: dict[str, int] = {}
    found: dict[Hashable, OpDesc] = {}
    same = _equal_constants(plan, fetched | written)  # a variable to the equal one that came first
    kept: list[OpDesc] = []
    nbytes = 0
    for op in block.ops:
        op.inputs = tuple([None if n is None else same.get(n, n) for n in op.inputs])
        if is_pure(op, block) and not written.intersection(op.outputs):
            operands = [(n, n and versions.get(storage.of(n))) for n in op.inputs]
            key = (op.type, tuple(operands), attribute_key(op.attrs))
            first = found.setdefault(key, op)
            pairs = list(zip(op.outputs, first.outputs, strict=True))
            if first is not op and not any([a in fetched and b in fetched for a, b in pairs]):
                same.update(pairs)
                fetched.update(b for a, b in pairs if a in fetched)
                nbytes += 0 if op.viewed else sum(block.var(n).nbytes for n in op.outputs)
                continue
        kept.append(op)
        for name in writes(op):
            root = storage.of(name)
            versions[root] = versions.get(root, 0) + 1
    _keep_fetched_names(plan, kept, same)
    merged = len(block.ops) - len(kept)
    block.ops[:] = kept
    return PassReport("common_subexpressions", merged, {"ops": merged, "bytes": nbytes})


def _equal_constants(plan: ExecutionPlan, kept: set[str]) -> dict[str, str]:
    """Return constants to the first one of the same content and layout."""
    found: dict[Hashable, str] = {}
    same: dict[str, str] = {}
    for name, desc in plan.block.vars.items():
        x = desc.value
        if isinstance(x, np.ndarray) and name not in kept:
            first = found.setdefault((x.dtype, x.shape, x.strides, x.tobytes()), name)
            if first != name:
                same[name] = first
    return same


def _with_bases(plan: ExecutionPlan, names: Any) -> set[str]:
    """Return variables with all that they are views of."""
    bases: dict[str, tuple[str, ...]] = {}
    for op in plan.block.ops:
        shared = op.reads if not is_library(op) else () if op.viewed is None else (op.viewed,)
        bases.update((n, shared) for n in op.new_outputs)
    found: set[str] = set()
    stack = list(names)
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack.extend(bases.get(name, ()))
    return found


def _keep_fetched_names(plan: ExecutionPlan, ops: list[OpDesc], same: dict[str, str]) -> None:
    """Give what was merged the name under which it is fetched."""
    names = {same[n]: n for n in plan.fetches if n in same}
    for op in ops:
        op.inputs = tuple([None if n is None else names.get(n, n) for n in op.inputs])
        op.outputs = tuple([names.get(n, n) for n in op.outputs])


def attribute_key(value: Any) -> Hashable:
    """Return what is equal for attributes with the same meaning, and only for those.

    Unlike `==` it tells 1 from 1.0 and True, and 0.0 from -0.0; NaN equals itself. What it does
    not know (arrays, generators) is equal to itself alone.
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
    if value is None or type(value) in (bool, int, str, bytes) or isinstance(value, np.dtype):
        return (type(value), value)
    return (object, id(value))
