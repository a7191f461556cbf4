"""PreparedRun: one analysed Program, and the work that an Executor does around each run.

It checks feeds, finds the arrays of persistable variables, and makes sure that results share memory
with nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import memory_holder
from oneflow_lite.arrays.device import CPU, Device, device_of, on_device, to_device
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    FlowError,
    ShapeError,
    arg_error,
)
from oneflow_lite.static.ir.memory import laid_out, memory_roots
from oneflow_lite.static.ir.program import Program, VarDesc
from oneflow_lite.static.ir.scope import Scope
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from oneflow_lite.static.runtime.plan import ExecutionPlan
from oneflow_lite.tensors.tensor import Tensor

ndarray = np.ndarray
_KINDS = {"b": "b", "u": "bui", "i": "bui", "f": "buif", "c": "buifc"}  # types that a list may hold


class PreparedRun:
    """Connects feeds, a scope and fetches to an InterpreterCore.

    Attributes
    ----------
    core : InterpreterCore
    made : tuple of str
        Persistable variables that ops make anew; they go to the scope after each run.
    """

    def __init__(
        self,
        program: Program,
        given: frozenset[str],
        fetches: tuple[str, ...],
        place: Device,
        mode: str,
        passes: tuple[str, ...] | None,
    ) -> None:
        block = program.global_block()
        self.made = tuple(
            dict.fromkeys(n for op in block.ops for n in op.new_outputs if block.var(n).persistable)
        )
        feeds = [name for name in block.vars if name in given]
        self.core = InterpreterCore(
            program, feeds, (*fetches, *self.made), place, mode=mode, passes=passes
        )
        _check_order(self.core.plan)
        roots = memory_roots(block.ops)  # sub-blocks write nothing outside of themselves
        written = {roots[name] for op in block.ops for name in op.written}
        self._feeds = [(name, block.vars[name], name in written) for name in feeds]
        self._quick = [
            (n, d.shape, d.dtype, is_written or d.device is not CPU)
            for n, d, is_written in self._feeds
        ]
        self._fetched = len(fetches)
        self._place = place
        self._descs = {name: block.var(name) for name in self.core.external_names}
        # From the plan, which also has those that passes folded.
        values = [desc.value for desc in self.core.plan.block.vars.values()]
        self._constants = {id(memory_holder(value)) for value in values if value is not None}
        self._bound: tuple[Scope | None, int, tuple[Any, ...], set[int]] = (None, 0, (), set())

    def run(self, feed: Mapping[str, Any], scope: Scope) -> list[Any]:
        """Check the feeds, run, and return the fetched arrays."""
        bound, version, externals, owned = self._bound
        if bound is not scope or version != scope.version:
            externals, owned = self._bind(scope)
        arrays = []
        taken = set()  # memory that results must not lie in, besides `owned`
        for position, (name, shape, dtype, is_special) in enumerate(self._quick):
            array = feed[name]
            if (
                is_special
                or type(array) is not ndarray
                or array.shape != shape
                or array.dtype != dtype
                or not array.flags.c_contiguous
            ):
                array = self._check_feed(position, array)
            owner = id(array) if array.base is None else id(memory_holder(array))
            if owner in owned:  # it is part of memory that the run may write
                array = array.copy()
                owner = id(array)
            arrays.append(array)
            taken.add(owner)
        results = self.core.run(arrays, externals)
        for i, array in enumerate(results):
            owner = id(array) if array.base is None else id(memory_holder(array))
            if owner in taken or owner in owned or type(array) is not ndarray:
                results[i] = array = array.copy() if isinstance(array, ndarray) else array.get()
                owner = id(array)
            elif not array.flags.writeable:
                results[i] = array.copy()
            taken.add(owner)
        if self.made:
            for name, array in zip(self.made, results[self._fetched :], strict=True):
                scope.put(name, array)
            del results[self._fetched :]
        return results

    def given(self, feed: Mapping[str, Any], scope: Scope) -> tuple[list[Any], list[Any]]:
        """Return the arrays that a run takes: checked feeds, and those of a scope."""
        bound = self._bound
        try:
            externals = list(self._bind(scope)[0])
        finally:
            self._bound = bound  # as if nobody had asked
        feeds = [self._check_feed(i, feed[name]) for i, (name, *_) in enumerate(self._feeds)]
        return feeds, externals

    def _bind(self, scope: Scope) -> tuple[tuple[Any, ...], set[int]]:
        """Find the arrays of the persistable variables, and remember them for this scope."""
        arrays = []
        for name, desc in self._descs.items():
            array = scope.find_var(name)
            if array is None:
                raise arg_error(
                    "Executor.run",
                    "scope",
                    expected=f"a value for the persistable variable {name!r}",
                    got="none",
                    hint="run the startup program first, in the same scope",
                    kind=ArgumentError,
                )
            _check(desc, array, "scope", "set() another value, or run the startup program")
            here = desc.device if desc.device.type == "cuda" else self._place
            moved = array if device_of(array) == here else to_device(array, here)
            moved = laid_out(moved, desc)
            if moved is not array:
                scope.move(name, moved)
                array = moved
            arrays.append(array)
        owned = {id(memory_holder(array)) for array in arrays} | self._constants
        self._bound = (scope, scope.version, tuple(arrays), owned)
        return self._bound[2:]

    def _check_feed(self, position: int, value: Any) -> Any:
        """Return a feed as an array in C order, a copy where an op writes it."""
        _, desc, is_written = self._feeds[position]
        array = value._data if isinstance(value, Tensor) else value
        if getattr(array, "is_symbolic", False):
            raise _no_array_error(desc, "a symbolic tensor", "fetch its value first")
        if not hasattr(array, "dtype"):
            array = _from_python(desc, value)
        elif isinstance(array, (ndarray, np.generic)):
            array = np.asarray(array)  # kernels expect plain arrays, not np.matrix
        _check(desc, array, "feed", f"convert it to {desc.dtype}{list(desc.shape)} first")
        if device_of(array) != desc.device:
            return to_device(array, desc.device)
        if is_written or not array.flags.c_contiguous:
            with on_device(desc.device):
                return array.copy(order="C")
        return array


def _from_python(desc: VarDesc, value: Any) -> Any:
    """Convert numbers, or lists of them, unless that would lose something."""
    try:
        array = np.asarray(value)
    except ValueError:  # the lists differ in length
        array = None
    if array is None or array.dtype.kind not in "biufc":
        raise _no_array_error(desc, type(value).__name__, "convert it with numpy.asarray")
    if array.size and array.dtype.kind not in _KINDS[desc.dtype.kind]:
        raise _wrong_dtype_error(desc, array, "feed", f"convert it to {desc.dtype} first")
    converted = array.astype(desc.dtype)
    if desc.dtype.kind in "iu" and not np.array_equal(converted, array):
        numbers = f"numbers from {array.min()} to {array.max()}"
        raise _no_array_error(desc, numbers, f"choose numbers that {desc.dtype} has")
    return converted


def _check(desc: VarDesc, array: Any, argument: str, hint: str) -> None:
    """Raise unless an array is of the declared shape and dtype."""
    if array.shape != desc.shape:
        raise arg_error(
            "Executor.run",
            argument,
            expected=f"shape {desc.shape} for {desc.name!r}",
            got=f"shape {array.shape}",
            hint=hint,
            kind=ShapeError,
        )
    if array.dtype != desc.dtype:
        raise _wrong_dtype_error(desc, array, argument, hint)


def _wrong_dtype_error(desc: VarDesc, array: Any, argument: str, hint: str) -> FlowError:
    return arg_error(
        "Executor.run",
        argument,
        expected=f"dtype {desc.dtype} for {desc.name!r}",
        got=f"dtype {array.dtype}",
        hint=hint,
        kind=DTypeError,
    )


def _no_array_error(desc: VarDesc, got: str, hint: str) -> FlowError:
    return arg_error(
        "Executor.run",
        "feed",
        expected=f"an array, a Tensor with values or numbers for {desc.name!r}",
        got=got,
        hint=hint,
        kind=ArgumentTypeError,
    )


def _check_order(plan: ExecutionPlan) -> None:
    """Raise when a feed is missing, or a variable is used that nothing has made."""
    known = set(plan.feeds)
    used = [(op.reads, op.outputs) for op in plan.block.ops]
    for reads, outputs in (*used, (plan.fetches, ())):
        for name in reads:
            desc = plan.block.var(name)
            if name in known or desc.persistable or desc.value is not None:
                continue
            argument, expected = "program", f"an op that makes {name!r} before it is used"
            hint = "see print(program); what was removed or not kept cannot be had"
            if desc.need_check_feed:
                argument, expected = "feed", f"a value for {name!r}, {desc.type_text}"
                hint = f"add {name!r} to the feed"
            raise arg_error("Executor.run", argument, expected, "none", hint, ArgumentError)
        known.update(outputs)
