"""Transfers: ops that move a Program's data from the host to a CUDA place, and results back.

They are ordinary ops, inserted before the passes run: `to_device` between host and device, and
`cast` where an elementwise op would return another dtype than the declared one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite.arrays.device import CPU, Device
from oneflow_lite.ops.registry import KERNELS
from oneflow_lite.static.ir.program import OpDesc, VarDesc
from oneflow_lite.static.runtime.plan import ExecutionPlan


def insert_transfers(plan: ExecutionPlan) -> None:
    """Insert the transfers that a plan needs; `plan.transfers` are the variables added for them.

    A Program whose variables are all declared on the CPU runs on the place as a whole: feeds are
    copied there before their use and fetches back after theirs. A Program that was captured on
    CUDA tensors keeps the devices that it names, feeds and fetches included.
    """
    before = set(plan.block.vars)
    _cast_operands(plan)
    on_host = all(desc.device.type == "cpu" for desc in plan.block.vars.values())
    if plan.place.type == "cuda" and on_host:
        _move(plan)
    plan.transfers = frozenset(set(plan.block.vars) - before)


def _new_var(plan: ExecutionPlan, source: str, suffix: object, **changes: Any) -> str:
    """Add a variable like another one; return its name."""
    desc = plan.block.var(source)
    name = f"{source}@{suffix}"
    while name in plan.block.vars:
        name += "'"
    fields = {"shape": desc.shape, "dtype": desc.dtype, "device": desc.device, **changes}
    plan.block.create_var(VarDesc(name, **fields))
    return name


def _cast_operands(plan: ExecutionPlan) -> None:
    """Cast operands of functions of the array module to the dtype declared for the result.

    Functors do so when they promote, so this meets Programs that were written by hand.
    """
    ops: list[OpDesc] = []
    var = plan.block.var
    for op in plan.block.ops:
        dtypes = [var(name).dtype for name in op.reads] if len(op.inputs) == 2 else []
        if len(dtypes) == 2 and dtypes[0] != dtypes[1]:
            ufunc, declared = KERNELS.get(op.type).ufunc, var(op.outputs[0]).dtype
            if ufunc is not None and _result(ufunc, dtypes) != declared:
                casts = {}
                for name in op.reads:
                    if var(name).dtype != declared:
                        casts[name] = _new_var(plan, name, declared, dtype=declared)
                        ops.append(_op("cast", name, casts[name], op, dtype=declared))
                op.inputs = tuple(casts.get(name, name) for name in op.inputs if name)
        ops.append(op)
    plan.block.ops = ops


def _result(ufunc: str, dtypes: list[np.dtype[np.generic]]) -> object:
    return getattr(np, ufunc).resolve_dtypes((*dtypes, None))[-1]


def _op(type: str, x: str, y: str, at: OpDesc | None, **attributes: object) -> OpDesc:
    return OpDesc(type, (x,), (y,), attributes, None if at is None else at.location)


def _copy(plan: ExecutionPlan, name: str, target: Device, at: OpDesc | None = None) -> OpDesc:
    """Return the op that copies a variable to another device, into a new variable."""
    made = _new_var(plan, name, target, device=target)
    source = plan.block.var(name).device
    return _op("to_device", name, made, at, target=target, source=source)


def _move(plan: ExecutionPlan) -> None:
    block, place = plan.block, plan.place
    for name, desc in block.vars.items():
        if name not in plan.feeds:
            desc.device = place
            desc.value = None if desc.value is None else place.put(desc.value)
    copied: dict[str | None, str] = {}
    ops: list[OpDesc] = []
    for name in plan.feeds:
        ops.append(_copy(plan, name, place))
        copied[name] = ops[-1].outputs[0]
    for op in block.ops:
        op.inputs = tuple(copied.get(name, name) for name in op.inputs)
        op.outputs = tuple(copied.get(name, name) for name in op.outputs)
        if op.type == "to_device" or (not op.inputs and "device" in op.attrs):
            op.attrs.update(
                {key: place for key in ("device", "target", "source") if key in op.attrs}
            )
        ops += _on_host(plan, op) if _is_host_only(op) else [op]
    fetched: dict[str, str] = {}
    for name in plan.fetches:
        if name not in fetched:
            ops.append(_copy(plan, copied.get(name, name), CPU))
            fetched[name] = ops[-1].outputs[0]
    block.ops = ops
    plan.fetches = tuple(fetched[name] for name in plan.fetches)


def _is_host_only(op: OpDesc) -> bool:
    """Return whether an op has a kernel for the CPU alone; a view has to stay on its device."""
    return set(KERNELS.get(op.type).by_device) == {"cpu"} and op.viewed is None


def _on_host(plan: ExecutionPlan, op: OpDesc) -> list[OpDesc]:
    """Run an op on copies of its inputs on the host, and copy its outputs and writes back."""
    there = {name: _copy(plan, name, CPU, op) for name in op.reads}
    moved: dict[str | None, str] = {name: copy.outputs[0] for name, copy in there.items()}
    back = []
    for name in op.new_outputs:
        moved[name] = _new_var(plan, name, CPU, device=CPU)
        back.append(_op("to_device", moved[name], name, op, target=plan.place, source=CPU))
    for name in op.written:
        copy = _copy(plan, moved[name], plan.place, op)
        back += [copy, OpDesc("copy_", (name, copy.outputs[0]), (name,), {}, op.location)]
    op.inputs = tuple(None if name is None else moved[name] for name in op.inputs)
    op.outputs = tuple(moved[name] for name in op.outputs)
    if not op.inputs and "device" in op.attrs:
        op.attrs["device"] = CPU
    return [*there.values(), op, *back]
