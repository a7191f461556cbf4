"""Turns a copy of a training Program to evaluation: `Program.clone(for_test=True)`."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from oneflow_lite.static.ir.memory import memory_roots
from oneflow_lite.static.ir.program import FOR_TEST, Block, OpDesc, Program


@FOR_TEST.append
def to_evaluation(program: Program) -> None:
    """Keep the forward ops, and rewrite them for evaluation mode.

    Ops that use gradients are removed too, such as updates written by hand. In a branch or body all
    ops stay, since its results may be gradients.
    """
    block = program.global_block()
    others = [op for op in block.ops if op.role != "forward"]
    block.ops = [op for op in block.ops if op.role == "forward"]
    _drop_users(block, {name for op in others for name in op.new_outputs})
    for block in program.blocks:
        for op in block.ops:
            if op.type == "dropout_mask":  # 1 keeps everything, whatever p was
                op.type, op.attrs = "ones_like", {}
        for op in [op for op in block.ops if op.type == "batch_norm"]:
            _BatchNormOp(block, op).use_running_statistics()
        block.ops = [op for op in block.ops if op.type != "update_running"]
        for name in [name for name, desc in block.vars.items() if desc.persistable]:
            _drop_counter(block, name)
    _drop_unused_vars(program)


class _BatchNormOp:
    """One `batch_norm` op, with the updates of the running statistics that follow it."""

    def __init__(self, block: Block, op: OpDesc) -> None:
        self.block = block
        self.op = op
        self.ops: list[OpDesc] = []  # the ops in its place

    def use_running_statistics(self) -> None:
        """Replace the op by x · scale + shift; leave it where no statistics are kept."""
        *_, variance, mean = self.op.outputs
        running_mean = self.find_running(mean)
        running_var = self.find_running(variance)
        if running_mean is None or running_var is None:
            return
        x, weight, bias = self.op.inputs
        assert x is not None
        # The same ops in the same order as in functors/normalization.py.
        scale = self.make("rsqrt", self.binary("add", running_var, self.eps(running_var)))
        if weight is not None:
            scale = self.binary("mul", scale, weight)
        shift = self.binary("mul", self.make("neg", running_mean), scale)
        if bias is not None:
            shift = self.binary("add", shift, bias)
        y = self.binary("mul", x, self.per_channel(scale))
        y = self.binary("add", y, self.per_channel(shift))
        dtype = self.block.var(x).dtype
        if self.block.var(y).dtype != dtype:
            y = self.cast(y, dtype)
        y, *statistics = self.op.outputs
        self.ops[-1].outputs = (y,)
        at = self.block.ops.index(self.op)
        self.block.ops[at : at + 1] = self.ops
        _drop_users(self.block, set(statistics))  # the updated statistics

    def find_running(self, batch: str) -> str | None:
        """Return the running statistic that is updated from one of the batch, scaled or not."""
        names = {batch}
        for op in self.block.ops:
            if op.type == "mul" and names & set(op.reads):
                names.update(op.outputs)  # the unbiased variance
            if op.type == "update_running" and op.inputs[1] in names:
                return op.inputs[0]
        return None

    def eps(self, like: str) -> str:
        """Return a constant of the dtype of the statistics."""
        desc = self.block.var(like)
        value = np.array(self.op.attrs["eps"], desc.dtype)
        value.flags.writeable = False
        return self.name("eps", (), desc.dtype, value)

    def binary(self, op: str, x: str, y: str) -> str:
        """Append an op with two operands, brought to one dtype; return its output."""
        dtype = np.result_type(self.block.var(x).dtype, self.block.var(y).dtype)
        x, y = [n if self.block.var(n).dtype == dtype else self.cast(n, dtype) for n in (x, y)]
        return self.make(op, x, y)

    def cast(self, x: str, dtype: Any) -> str:
        """Append a cast."""
        return self.make("cast", x, dtype=dtype)

    def per_channel(self, x: str) -> str:
        """Append a reshape that lets one number for each channel broadcast over the input."""
        x_desc = self.block.var(self.op.outputs[0])
        return self.make("reshape", x, shape=(-1, *(1,) * (len(x_desc.shape) - 2)))

    def make(self, type: str, *inputs: str, **options: Any) -> str:
        """Append an op with one new output and return that."""
        descs = [self.block.var(name) for name in inputs]
        shape = np.broadcast_shapes(*(desc.shape for desc in descs))
        if type == "reshape":
            shape = (descs[0].shape[0], *options["shape"][1:])
        output = self.name(type, shape, options.get("dtype", descs[0].dtype))
        self.ops.append(
            attrs.evolve(
                self.op,
                type=type,
                inputs=inputs,
                outputs=(output,),
                attrs=options,
                returns_tuple=False,
            )
        )
        return output

    def name(self, prefix: str, shape: tuple[int, ...], dtype: Any, value: Any = None) -> str:
        """Add a variable and return its name."""
        name = self.block.program.unique_name(prefix)
        model = self.block.var(self.op.outputs[0])
        desc = attrs.evolve(
            model, name=name, shape=shape, dtype=dtype, strides=None, stop_gradient=True
        )
        desc.value = value
        return self.block.create_var(desc).name


def _drop_users(block: Block, gone: set[str]) -> None:
    """Remove the ops that use variables which nothing makes any more.

    Where a write to state is removed, the state keeps its value; any other memory no longer counts
    as made from there on.
    """
    roots = memory_roots(block.ops)
    kept = []
    for op in block.ops:
        if gone.isdisjoint([roots[name] for name in op.reads]):
            kept.append(op)
        else:
            written = [roots[name] for name in (*op.outputs, *op.written)]
            gone.update(name for name in written if not block.var(name).persistable)
    block.ops = kept


def _drop_counter(block: Block, name: str) -> None:
    """Remove the updates of a variable on which nothing else depends, as `num_batches_tracked`."""
    depending = {name}
    counters: list[OpDesc] = []
    for op in block.ops:
        if depending & set(op.reads):
            counters.append(op)
            depending.update(op.outputs)
    if not any(name in op.written for op in counters):
        return
    used = {n for op in counters for n in op.reads}
    if depending <= used | {name}:  # all that uses it is part of its updates
        block.ops = [op for op in block.ops if op not in counters]


def _drop_unused_vars(program: Program) -> None:
    """Remove temporaries that no op makes, and state and constants that no op uses.

    Those of sub-blocks stay, since a loop may carry a variable that its body does not use.
    """
    used = {name for block in program.blocks for op in block.ops for name in op.reads}
    used |= {name for block in program.blocks for op in block.ops for name in op.outputs}
    block = program.global_block()
    block.vars = {
        name: desc
        for name, desc in block.vars.items()
        if name in used or desc.need_check_feed or desc.is_parameter
    }
