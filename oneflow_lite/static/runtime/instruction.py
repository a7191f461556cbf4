"""Instructions: feeds, ops and fetches of a plan, with variables numbered and kernels found.

`InterpreterCore` makes them once for a Program; every run mode goes through the same list.
"""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from oneflow_lite.arrays.device import CPU, Device, array_module, on_device
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.static.ir.program import Block, OpDesc
from oneflow_lite.static.runtime.plan import ExecutionPlan

# Ops that use only the shape and dtype of these inputs: any array of that kind will do.
SHAPE_ONLY: dict[str, tuple[str, ...]] = {
    "zeros_like": ("x",),
    "ones_like": ("x",),
    "dropout_mask": ("x",),
}


@attrs.define(eq=False)
class Instruction:
    """One step of a run.

    Attributes
    ----------
    index : int
        Its place in the order in which the Program was written.
    name : str
        Unique: "matmul", the second one "matmul#2", "feed(x)", "fetch(y)".
    kind : str
        "feed", "op", "transfer" or "fetch".
    inputs, outputs : tuple of int or None
        Slots. None is for an input that is left out, or given by `stand_ins`.
    device : Device
        Where it runs.
    stream : str
        "" on the host; "compute", "h2d" or "d2h" on a CUDA device.
    op : OpDesc or None
        None for feeds and fetches.
    kernel : callable or None
        The op's kernel for the device, with the array module bound.
    keywords : dict
        The keyword arguments of the kernel.
    stand_ins : dict of int to array
        An array without memory for each position of an input of which only the shape is used.
    copies : bool
        Whether a fetch must copy, because its variable is a constant.
    """

    index: int
    name: str
    kind: str
    inputs: tuple[int | None, ...]
    outputs: tuple[int, ...]
    device: Device = CPU
    stream: str = ""
    op: OpDesc | None = None
    kernel: Callable[..., Any] | None = None
    keywords: dict[str, Any] = attrs.field(factory=dict)
    stand_ins: dict[int, Any] = attrs.field(factory=dict)
    copies: bool = False

    @property
    def queue(self) -> str:
        """ "host" or "device"."""
        return "device" if self.stream else "host"

    @property
    def slots(self) -> tuple[int, ...]:
        """The slots that it reads or fills, each once."""
        return tuple(dict.fromkeys([s for s in (*self.inputs, *self.outputs) if s is not None]))

    def execute(self, slots: list[Any]) -> None:
        """Run the kernel on the arrays in the slots, and fill the slots of the outputs."""
        assert self.kernel is not None
        arrays = [None if slot is None else slots[slot] for slot in self.inputs]
        for position, array in self.stand_ins.items():
            arrays[position] = array
        with contextlib.nullcontext() if self.device is CPU else on_device(self.device):
            result = self.kernel(*arrays, **self.keywords)
        if not self.outputs:
            return
        results = result if type(result) is tuple else (result,)
        for slot, array in zip(self.outputs, results, strict=True):
            slots[slot] = np.asarray(array) if isinstance(array, np.generic) else array

    def __str__(self) -> str:
        return self.name


RUNS_KERNEL = Instruction.execute.__code__  # whose frame a kernel's exception went through


def needs_buffer(op: OpDesc, name: str) -> bool:
    """Return whether an op needs an input's memory under this name.

    It does not where the shape is enough, nor where the output is a view, which keeps the memory.
    """
    return op.viewed != name and name not in shape_only(op)


def shape_only(op: OpDesc) -> frozenset[str]:
    """The variables whose shape and dtype alone an op uses."""
    parameters = SHAPE_ONLY.get(op.type)
    if parameters is None:
        return frozenset()
    schema = op.schema
    wanted = {op.inputs[schema.inputs.index(parameter)] for parameter in parameters}
    others = [n for p, n in zip(schema.inputs, op.inputs, strict=False) if p not in parameters]
    return frozenset(name for name in wanted - set(others) if name is not None)


def has_side_effects(op: OpDesc) -> bool:
    """Return whether an op has an effect beyond its variables, whose order must be kept.

    So have ops that draw random numbers, ops without outputs, and ops that talk to other processes.
    """
    return op.schema.random or op.has_effect or not op.outputs


def device_of_op(op: OpDesc, block: Block) -> Device:
    """Return where an op runs: on the device of its first input or, without any, of its output."""
    for name in op.reads:
        return block.var(name).device
    device = op.attrs.get("device")
    return device if isinstance(device, Device) else block.var(op.outputs[0]).device


def build_instructions(
    plan: ExecutionPlan, fetches: Sequence[str]
) -> tuple[dict[str, int], list[Instruction]]:
    """Number the variables of a plan and list its instructions.

    Parameters
    ----------
    plan : ExecutionPlan
    fetches : sequence of str
        The names of the fetches; `plan.fetches` may name copies of them that transfers made.

    Returns
    -------
    dict of str to int, list of Instruction
        The slot of each variable; the feeds, the ops and the fetches, in order.
    """
    slots: dict[str, int] = {}
    roots = plan.roots
    instructions: list[Instruction] = []
    seen: Counter[str] = Counter()

    def slot(name: str) -> int:
        return slots.setdefault(name, len(slots))

    def add(name: str, kind: str, inputs: Any, outputs: Any, **fields: Any) -> None:
        seen[name] += 1
        unique = name if seen[name] == 1 else f"{name}#{seen[name]}"
        instructions.append(Instruction(len(instructions), unique, kind, inputs, outputs, **fields))

    for name in plan.feeds:
        add(f"feed({name})", "feed", (), (slot(name),))
    for op in plan.block.ops:
        device = device_of_op(op, plan.block)
        if op.type == "to_device" and device.type == "cpu":
            device = op.attrs["target"]  # the device copies to itself
        moves = op.type in ("to_device", "cast") and plan.transfers.intersection(
            (*op.inputs, *op.outputs)
        )
        kind = "transfer" if moves else "op"
        add(op.type, kind, *_variables(op, slot), **_prepared(op, plan.block, device))
    for name, called in zip(plan.fetches, fetches, strict=True):
        copies = plan.block.var(roots.get(name, name)).value is not None
        add(f"fetch({called})", "fetch", (slot(name),), (), copies=copies)
    return slots, instructions


def _variables(op: OpDesc, slot: Callable[[str], int]) -> tuple[Any, Any]:
    unused = shape_only(op)
    inputs = [None if name is None or name in unused else slot(name) for name in op.inputs]
    return tuple(inputs), tuple(slot(name) for name in op.outputs)


def _prepared(op: OpDesc, block: Block, device: Device) -> dict[str, Any]:
    """Return the fields of an instruction that say how an op is run."""
    xp = array_module(device)
    attributes = dict(op.attrs)
    if not op.inputs:
        attributes.pop("device", None)
    stand_ins = {}
    for name in shape_only(op):
        desc = block.var(name)
        with on_device(device):
            array = xp.broadcast_to(xp.zeros((), desc.dtype), desc.shape)
        stand_ins.update({i: array for i, given in enumerate(op.inputs) if given == name})
    kernel = op_expr(op.type).kernel(xp)
    if op.type == "fused":
        made = [(block.var(name).shape, block.var(name).dtype) for name in op.outputs]
        kernel = functools.partial(_into_new, kernel, xp, made)
    return {
        "device": device,
        "stream": _stream(op, device),
        "op": op,
        "kernel": kernel,
        "keywords": attributes,
        "stand_ins": stand_ins,
    }


def _into_new(kernel: Any, xp: Any, made: Any, *inputs: Any, **keywords: Any) -> tuple[Any, ...]:
    """Run a kernel that writes its outputs; return them."""
    outputs = tuple([xp.empty(shape, dtype) for shape, dtype in made])
    kernel(*inputs, *outputs, **keywords)
    return outputs


def _stream(op: OpDesc, device: Device) -> str:
    if device.type == "cpu":
        return ""
    if op.type == "to_device" and op.attrs["source"].type != op.attrs["target"].type:
        return "d2h" if op.attrs["target"].type == "cpu" else "h2d"
    return "compute"
