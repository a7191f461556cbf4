"""Programs built by hand, a plain way to run them, and a literal way to run an ExecutionPlan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.device import CPU
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.static.ir.program import OpDesc, Program, VarDesc
from oneflow_lite.static.runtime.passes import run_passes
from oneflow_lite.static.runtime.plan import ExecutionPlan

Arrays = Mapping[str, Any]
GARBAGE = 0xA5  # what buffers hold before a run


class Builder:
    """Appends ops to a Program and runs each at once, to know shapes, dtypes and layouts.

    The Program is one of `place`; what is run here stays on the host.

    >>> b = Builder()
    >>> x = b.feed("x", np.ones((2, 3)))
    >>> y = b.op("add", x, x)
    >>> b.program.global_block().ops[0].outputs == (y,)
    True
    """

    place = CPU

    def __init__(self) -> None:
        self.program = Program()
        self.block = self.program.global_block()
        self.arrays: dict[str, Any] = {}
        self.feeds: list[str] = []
        self.initial: dict[str, Any] = {}  # feeds and external variables as they were declared

    def _declare(self, name: str, array: Any, **options: Any) -> str:
        strides = None if array.flags.c_contiguous else array.strides
        options["device"] = self.place
        desc = VarDesc(name, array.shape, array.dtype, strides=strides, **options)
        self.block.create_var(desc)
        self.arrays[name] = array
        return name

    def feed(self, name: str, array: Any) -> str:
        """Declare a fed variable like an array."""
        self.feeds.append(name)
        self.initial[name] = np.copy(array, "K")
        return self._declare(name, np.copy(array, "K"), need_check_feed=True)

    def external(self, name: str, array: Any) -> str:
        """Declare a persistable variable like an array."""
        self.initial[name] = np.copy(array, "K")
        return self._declare(name, np.copy(array, "K"), persistable=True)

    def constant(self, array: Any) -> str:
        """Add a constant."""
        value = np.array(array)
        value.setflags(write=False)
        name = self.program.unique_name("constant")
        return self._declare(name, value, value=self.on_place(value))

    def on_place(self, array: Any) -> Any:
        """Return an array as Programs get it."""
        return array if self.place == CPU else self.place.put(array)

    def op(self, type: str, *inputs: str | None, **attrs: Any) -> Any:
        """Append an op; return the name of its output, or the names."""
        arrays = [None if n is None else self.arrays[n] for n in inputs]
        with np.errstate(all="ignore"):
            result = op_expr(type).kernel(np)(*arrays, **attrs)
        results = result if isinstance(result, tuple) else (result,)
        written = op_expr(type).schema.written
        outputs = []
        for y in results:
            same = [inputs[i] for i in written if arrays[i] is y]
            name = same[0] if same else self._declare(self.program.unique_name(type), np.asarray(y))
            outputs.append(name)
        is_tuple = isinstance(result, tuple)
        self.block.append_op(
            OpDesc(type, tuple(inputs), tuple(outputs), attrs, returns_tuple=is_tuple)
        )
        return tuple(outputs) if is_tuple else outputs[0]

    def plan(self, *fetches: str, passes: Sequence[str] = ()) -> ExecutionPlan:
        """Return the plan after some passes."""
        plan = ExecutionPlan.of(self.program, self.feeds, fetches, self.place)
        run_passes(plan, passes)
        return plan


def run_plainly(program: Program, given: Arrays) -> dict[str, Any]:
    """Run a Program op by op, each with memory of its own; return all variables.

    Arrays that are given are not copied: overlapping ones overlap during the run.
    """
    block = program.global_block()
    env = {**_constants(block.vars), **given}
    for op in block.ops:
        _store(op, env, _call(op, env))
    return env


class LiteralRunner:
    """Runs a plan and does what `in_place` and `memory_plan` say to the letter."""

    def __init__(self, plan: ExecutionPlan) -> None:
        self.plan = plan
        self.memory = np.full(plan.memory_plan.arena_bytes, GARBAGE, np.uint8)

    def run(self, given: Arrays) -> dict[str, Any]:
        """Return all variables; those with a place lie in memory that the next run uses again."""
        plan = self.plan
        env = {**_constants(plan.block.vars), **given}
        for op in plan.block.ops:
            out = self._out(op, env)
            if out is None:
                _store(op, env, _call(op, env))
            else:
                env[op.outputs[0]] = result = _call(op, env, out=out)
                assert result is out
        return env

    def _out(self, op: OpDesc, env: dict[str, Any]) -> Any:
        plan, name = self.plan, op.outputs[0]
        if name not in op.new_outputs:
            return None
        if name in plan.in_place:
            return env[plan.in_place[name]]
        if name in plan.memory_plan.places:
            offset, nbytes = plan.memory_plan.places[name]
            desc = plan.block.var(name)
            piece = self.memory[offset : offset + nbytes]
            return np.ndarray(desc.shape, desc.dtype, piece, strides=desc.strides)
        return None


def assert_same_results(builder: Builder, plan: ExecutionPlan) -> None:
    """Run a plan twice: fetched and given arrays are those of the Program, to the bit."""
    runner = LiteralRunner(plan)
    for _ in range(2):
        given = {name: np.copy(x, "K") for name, x in builder.initial.items()}
        values = runner.run(given)
        wanted = {name: np.copy(x, "K") for name, x in builder.initial.items()}
        expected = run_plainly(builder.program, wanted)
        for name in (*plan.fetches, *given):
            np.testing.assert_array_equal(values[name], expected[name], strict=True)
        for name in plan.fetches:
            assert not np.shares_memory(values[name], runner.memory)
            assert plan.block.var(name).value is None  # else it would be the same at every run


def _constants(variables: Mapping[str, VarDesc]) -> dict[str, Any]:
    found = {name: desc.value for name, desc in variables.items() if desc.value is not None}
    return {n: x if isinstance(x, np.ndarray) else x.get() for n, x in found.items()}


def _call(op: OpDesc, env: dict[str, Any], **out: Any) -> Any:
    arrays = [None if n is None else env[n] for n in op.inputs]
    attrs = {k: v for k, v in op.attrs.items() if arrays or k != "device"}
    with np.errstate(all="ignore"):
        return op_expr(op.type).kernel(np)(*arrays, **attrs, **out)


def _store(op: OpDesc, env: dict[str, Any], result: Any) -> None:
    results = result if isinstance(result, tuple) else (result,)
    for name, y in zip(op.outputs, results, strict=True):
        env[name] = np.asarray(y)
