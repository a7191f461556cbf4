"""GlobalInterpreter: runs an op on global tensors by running it on each rank's part.

It stands below an AutogradInterpreter: functors, modules and gradient rules see the tensor as a
whole. An op goes one of its ways (`sbp_rules.py`) along each axis of the placement. The interpreter
takes the combination of ways whose boxing moves the fewest bytes, boxes, and lets the interpreter
below run the op on this rank.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.distributed import boxing
from oneflow_lite.distributed.global_array import GlobalArray, global_array
from oneflow_lite.distributed.placement import (
    B,
    NdSbp,
    P,
    Sbp,
    pieces,
    placement,
    split,
)
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.interpreter.stack import Interpreter, count_after, count_writes
from oneflow_lite.ops.op_expr import OpExpr
from oneflow_lite.ops.sbp_rules import Way, ways_of
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.mode import local as thread
from oneflow_lite.tensors.storage import NO_GRAD, SPLIT
from oneflow_lite.tensors.tensor import Tensor, make_tensor
from oneflow_lite.tensors.views import link

_BOXING = frozenset(("local_to_global", "global_to_local", "global_to_global"))
_MOST_CHOSEN = 10_000
_warned: set[str] = set()
_chosen: dict[Any, Any] = {}  # the ways chosen, by op, placement, inputs and attributes


class GlobalInterpreter(Interpreter):
    """Runs ops on global tensors; hands all other ops to the interpreter below."""

    def __init__(self, inner: Interpreter) -> None:
        self.inner: Interpreter = inner

    def apply(self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Run one op."""
        for x in inputs:
            if x is not None and type(x._data) is GlobalArray:
                break
        else:
            return self.inner.apply(op_expr, inputs, attrs)
        if op_expr.op_type_name in _BOXING:
            return self._made(op_expr.kernel(np)(inputs[0]._data, **attrs))
        try:
            result = _GlobalCall(self, op_expr, inputs, attrs).run()
            count_writes(op_expr, inputs)
        except BaseException as error:
            count_after(op_expr, inputs, error)
            raise
        return result

    def _made(self, array: Any) -> Tensor:
        made = make_tensor(array)
        made._inference = thread.state.inference
        return made


class _Line:
    """The ranks in line along one axis, for ways that run an op themselves.

    Attributes
    ----------
    op : str
    size, begin, end : int
        The whole's size along the dimension that is split; this rank's part begins at `begin` and
        ends before `end`.
    local, kernel : callable
        Run the op by the interpreter below, `local(arrays, attrs)`, or call its kernel.
    xp : module
    """

    def __init__(
        self, where: placement, axis: int, size: int, op: OpExpr, local: Callable[..., Any]
    ) -> None:
        assert where.place is not None
        self.op, self._where, self._axis = op.op_type_name, where, axis
        self.group = where.group(axis)
        self.size = size
        parts = pieces(size, where.shape[axis])
        self.begin = sum(parts[: where.place[axis]])
        self.end = self.begin + parts[where.place[axis]]
        self.local = local
        self.xp: Any = boxing.array_module_of(where)
        self.kernel = op.kernel(self.xp)

    def reduce(self, array: Any, reduction: str) -> Any:
        """Return the reduction of the arrays of the ranks in line."""
        if self.group.size() == 1:
            return array
        lines = math.prod(self._where.shape) // self.group.size()
        moved = lines * boxing.cost(P, B, array.nbytes, self.group.size())
        boxing.note(self.op, "P", "B", moved)
        return boxing.run("all_reduce", array, reduction=reduction, group=self.group)


class _GlobalCall:
    """One op on global tensors."""

    def __init__(
        self, owner: GlobalInterpreter, op: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]
    ) -> None:
        self.owner, self.op, self.inputs, self.attrs = owner, op, inputs, attrs
        self.name = op.op_type_name
        self.where = self._placement()
        self.arrays = [self._global(i, x) for i, x in enumerate(inputs)]
        self.axes = len(self.where.shape)
        self.whole = (B,) * self.axes

    def _placement(self) -> placement:
        common: placement | None = None
        for x in self.inputs:
            if x is not None and type(x._data) is GlobalArray:
                where = x._data.placement
                if common is not None and where is not common and where != common:
                    raise arg_error(
                        self.name,
                        "input",
                        expected=f"{common}, the placement of the arguments before it",
                        got=where,
                        hint="move it with to_global(placement, sbp)",
                        kind=ArgumentError,
                    )
                common = common or where
        assert common is not None
        return common

    def _global(self, i: int, x: Any) -> Any:
        """Return an input's global array; a tensor of this rank alone counts as broadcast."""
        if x is None or type(x._data) is GlobalArray:
            return None if x is None else x._data
        if x._edge is not None and thread.state.grad_enabled:
            raise arg_error(
                self.name,
                (*self.op.schema.inputs, *["tensors"] * i)[min(i, len(self.op.schema.inputs))],
                expected="a global tensor, as others are",
                got="a tensor of one rank that requires a gradient",
                hint="call to_global(placement, sbp) on it",
                kind=ArgumentError,
            )
        where = self.where
        array = boxing.on_placement(x._data, where)
        return global_array(where, (B,) * len(where.shape), array.shape, array.dtype, array)

    # Which way

    def _ways(self, shapes: Sequence[Any], attrs: dict[str, Any]) -> list[Way]:
        every = Way(("B",) * len(shapes), ())
        schema = self.op.schema
        if schema.random and not schema.inputs:
            return [every]
        ways = ways_of(self.op, shapes, attrs)
        if ways is None:
            if self.name not in _warned and not schema.random:
                _warned.add(self.name)
                warn_caller(
                    f"{self.name}(): no SBP rule says how parts of global tensors go through this "
                    "op, so each rank gets all of its inputs; see register_op(sbp=...)"
                )
            return [every]
        return [every, *ways]

    def _choose(self) -> tuple[Way, ...] | None:
        """Return one way for each axis; None where all ways would box an input that is written."""
        described = tuple([None if x is None else (x.shape, x.dtype, x.sbp) for x in self.arrays])
        try:
            key = (self.op, self.op.schema, self.where, described, tuple(self.attrs.items()))
            ways = _chosen.get(key, _chosen)  # None is an answer: a miss gives the dict
        except TypeError:  # an attribute that has no hash
            return self._search()
        if ways is _chosen:
            if len(_chosen) >= _MOST_CHOSEN:
                _chosen.clear()
            ways = _chosen[key] = self._search()
        return ways

    def _search(self) -> tuple[Way, ...] | None:
        """Compare all combinations of ways: bytes first, then how many inputs change."""
        best: tuple[Way, ...] | None = None
        least = (math.inf, 0)
        for ways in self._combinations(
            0, [None if x is None else tuple(x.shape) for x in self.arrays], self.attrs
        ):
            moved, changes = 0.0, 0
            for i, x in enumerate(self.arrays):
                after = None if x is None else tuple([_sbp(way.ins[i]) for way in ways])
                if after is None or after == x.sbp:
                    continue
                if i in self.op.schema.written:  # the write would go to the boxed copy
                    moved = math.inf
                    break
                moved += boxing.nd_cost(x.sbp, after, x.shape, x.dtype, self.where)
                changes += sum(a is not b for a, b in zip(x.sbp, after, strict=True))
            for axis, way in enumerate(ways):
                if way.run is not None:
                    moved += self._exchanged(ways, axis)
            if moved < math.inf and (moved, changes) < least:
                best, least = ways, (moved, changes)
        return best

    def _combinations(
        self, axis: int, shapes: list[Any], attrs: dict[str, Any], run: bool = False
    ) -> Iterator[tuple[Way, ...]]:
        """Yield ways for all axes from `axis` on, for parts of these shapes."""
        if axis == self.axes:
            yield ()
            return
        parts = self.where.shape[axis]
        for way in self._ways(shapes, attrs):
            if self._is_refused(way, axis, shapes) or (run and way.run is not None):
                continue
            inner, fitted = shapes, attrs
            # All ranks reckon with the first rank's part, so that they choose alike.
            if axis + 1 < self.axes:
                inner = [
                    s if s is None else _share_of(s, sig, parts, 0)
                    for s, sig in zip(shapes, way.ins, strict=True)
                ]
                if way.fit is not None:
                    fitted = way.fit(attrs, functools.partial(_first_piece, parts))
            for rest in self._combinations(axis + 1, inner, fitted, run or way.run is not None):
                yield way, *rest

    def _is_refused(self, way: Way, axis: int, shapes: list[Any]) -> bool:
        """Return whether a split leaves a rank without rows, or the ranks do not divide `unit`."""
        parts = self.where.shape[axis]
        given = [
            each for each in zip(self.arrays, shapes, way.ins, strict=True) if each[0] is not None
        ]
        split_in = [(x, s[sig], sig) for x, s, sig in given if isinstance(sig, int)]
        few = any(n < parts and x.sbp[axis].dim != sig for x, n, sig in split_in)
        alone = not split_in and any(isinstance(sig, int) for sig in way.outs)
        return few or (alone and way.size < parts) or bool(way.unit and way.unit % parts)

    def _exchanged(self, ways: tuple[Way, ...], axis: int) -> float:
        """Return the bytes that all ranks send in a way that runs the op itself."""
        itemsize = next(x.dtype.itemsize for x in self.arrays if x is not None)
        lines = math.prod(self.where.shape) // self.where.shape[axis]
        size = ways[axis].moved * itemsize
        return lines * boxing.cost(P, B, size, self.where.shape[axis])

    # Running

    def run(self) -> Any:
        schema = self.op.schema
        if schema.random:
            return self._draw()
        ways = self._choose()
        if ways is None:
            return self._write_whole()
        ins: list[Any] = [
            None if x is None else tuple(_sbp(way.ins[i]) for way in ways)
            for i, x in enumerate(self.arrays)
        ]
        arrays = [
            None if x is None else boxing.boxed(self.name, x, ins[i], _version(self.inputs[i]))
            for i, x in enumerate(self.arrays)
        ]
        outs = self._local(ways, arrays)
        many = type(outs) is tuple
        results = []
        for k, out in enumerate(outs if many else (outs,)):
            results.append(self._output(k, out, ways, ins, arrays, many))
        return tuple(results) if many else results[0]

    def _local(self, ways: tuple[Way, ...], arrays: list[Any]) -> Any:
        """Run the op on this rank's part; outside of the placement, find the shapes alone."""
        place = self.where.place
        if place is None:
            return self._outside(arrays)
        attrs = self.attrs
        runner = None
        for axis, way in enumerate(ways):
            parts, here = self.where.shape[axis], place[axis]

            def share(n: int, parts: int = parts, here: int = here) -> int:
                return pieces(n, parts)[here]

            if way.run is not None:
                runner = axis
            elif way.fit is not None:
                attrs = way.fit(attrs, share)
        if runner is not None:
            way = ways[runner]
            line = _Line(self.where, runner, way.size, self.op, self._inner)
            assert way.run is not None
            made = way.run(line, arrays, attrs)
            return made if type(made) is tuple else line.xp.asarray(made)
        outs = self._inner(arrays, attrs)
        xp = boxing.array_module_of(self.where)
        weighed = {way.ins[0] for way in ways if way.mean}
        ratio = math.prod(arrays[0].shape[dim] / self.arrays[0].shape[dim] for dim in weighed)
        # A mean of parts weighs each by its share; the mean of an empty part is nan and weighs 0.
        if ratio != 1:
            return xp.asarray(outs * outs.dtype.type(ratio)) if ratio else xp.zeros_like(outs)
        return outs

    def _inner(self, arrays: Sequence[Any], attrs: dict[str, Any]) -> Any:
        tensors = tuple([None if x is None else make_tensor(x) for x in arrays])
        out = self.owner.inner.apply(self.op, tensors, attrs)
        return tuple([y._data for y in out]) if type(out) is tuple else out._data

    def _outside(self, arrays: list[Any]) -> Any:
        """Return stand-ins for the outputs, with the shapes of the whole."""
        if any(
            x is not None and not x.is_global
            for x in [self.inputs[i] for i in self.op.schema.written]
        ):
            nothing = [
                array if x is None or not x.is_global else np.empty((0,) * x.ndim, array.dtype)
                for x, array in zip(self.inputs, arrays, strict=True)
            ]
            return self._inner(
                nothing, self.attrs
            )  # an optimizer's count of steps, on the CPU, goes on
        specs = [None if x is None else ArraySpec(tuple(x.shape), x.dtype) for x in self.arrays]
        infer = self.op.schema.infer
        outs = None if infer is None else infer(*specs, **self.attrs)
        if outs is None:
            outs = self._inner([None if s is None else s.allocate() for s in specs], self.attrs)
        return outs

    def _output(
        self,
        k: int,
        out: Any,
        ways: tuple[Way, ...],
        ins: list[Any],
        arrays: list[Any],
        many: bool,
    ) -> Tensor:
        """Wrap one output; for an input that was written, return the caller's tensor."""
        schema = self.op.schema
        for i in schema.written:
            if self.inputs[i] is not None and (out is arrays[i] or not many):
                return self.inputs[i]
        nd_sbp = tuple(
            B if not way.outs else _sbp(way.outs[k if len(way.outs) > 1 else 0]) for way in ways
        )
        shape = list(out.shape)
        if self.where.place is not None:
            # The outer axis comes last: where both split a dimension, it knows the whole's size.
            for way, sbp in reversed(list(zip(ways, nd_sbp, strict=True))):
                if sbp.dim is not None:
                    shape[sbp.dim] = way.out_sizes[k] if way.out_sizes else way.size
            local = out
        else:
            local = np.empty(0, out.dtype)
        y = make_tensor(global_array(self.where, nd_sbp, tuple(shape), out.dtype, local))
        if schema.view_of is not None:
            self._link(y, ins, arrays, many)
        if thread.state.inference and y._view is None:
            y._inference = True
        return y

    def _link(self, y: Tensor, ins: list[Any], arrays: list[Any], many: bool) -> None:
        """Make an output a view where this rank's part of it is one."""
        assert self.op.schema.view_of is not None
        i = self.op.schema.inputs.index(self.op.schema.view_of)
        x = self.inputs[i]
        if self.where.place is None or type(x._data) is not GlobalArray:
            return
        if ins[i] != x._data.sbp:
            y._data.flags.writeable = False  # a write to it would not reach x
        elif not y._data.local.size or np.may_share_memory(y._data.local, arrays[i]):
            origin = None if thread.state.grad_enabled else NO_GRAD
            link(self.op, x, y, self.attrs, origin or (SPLIT if many else None))

    def _write_whole(self) -> Any:
        """Write to the whole on every rank, then keep this rank's part: no way writes parts."""
        arrays: list[Any] = [
            None if x is None else boxing.boxed(self.name, x, self.whole) for x in self.arrays
        ]
        written = self.op.schema.written
        for i in written:
            if arrays[i] is not None and self.arrays[i].sbp != self.whole:
                arrays[i] = arrays[i].copy()
        if self.where.place is not None:
            self._inner(arrays, self.attrs)
        for i in written:
            if self.arrays[i] is not None:
                self._take_back(self.arrays[i], arrays[i])
        return self.inputs[written[0]]

    def _take_back(self, x: GlobalArray, array: Any) -> None:
        """Write this rank's part of the whole, which every rank has, back to `x`."""
        if x.sbp == self.whole or self.where.place is None:
            return
        made = global_array(self.where, self.whole, x.shape, x.dtype, array)
        x.local[...] = boxing.boxed(self.name, made, x.sbp)

    def _draw(self) -> Any:
        """Let all ranks draw the same numbers for the whole, as one process would."""
        boxing.agree_on_generator(self.where, self.attrs.get("generator"))
        x, written = self.arrays[0], self.op.schema.written
        # Of inputs that are written, and by dropout_mask, an op that draws reads the shape alone.
        drawn = [
            None
            if a is None
            else boxing.zeros_on(self.where, a)
            if self.name == "dropout_mask" or i in written
            else boxing.boxed(self.name, a, self.whole)
            for i, a in enumerate(self.arrays)
        ]
        outs = self._inner(drawn, self.attrs)
        if written:
            self._take_back(x, outs)
            if x.sbp == self.whole and self.where.place is not None:
                x.local[...] = outs
            return self.inputs[0]
        results = []
        for out in outs if type(outs) is tuple else (outs,):
            made = global_array(self.where, self.whole, out.shape, out.dtype, out)
            if self.where.place is None:
                made.local = np.empty(0, out.dtype)
            sbp = x._data.home[1] if isinstance(x, Tensor) else x.home[1]
            if out.shape == x.shape and sbp != self.whole:
                part = boxing.boxed(self.name, made, sbp)
                made = global_array(self.where, sbp, out.shape, out.dtype, part)
            results.append(make_tensor(made))
        return tuple(results) if type(outs) is tuple else results[0]


def _first_piece(parts: int, size: int) -> int:
    return pieces(size, parts)[0]


def _version(x: Tensor) -> int:
    return x._version


def _sbp(sig: Any) -> Sbp:
    return B if sig == "B" else P if sig == "P" else split(sig)


def _share_of(shape: tuple[int, ...], sig: Any, parts: int, index: int) -> tuple[int, ...]:
    if not isinstance(sig, int):
        return shape
    return (*shape[:sig], pieces(shape[sig], parts)[index], *shape[sig + 1 :])


def as_global(where: placement, nd_sbp: NdSbp, array: Any) -> GlobalArray:
    """Return the global array of a whole that every rank has."""
    whole = (B,) * len(where.shape)
    array = boxing.on_placement(array, where)
    made = global_array(where, whole, array.shape, array.dtype, array)
    if where.place is None:
        made.local = np.empty(0, array.dtype)
    part = boxing.boxed("to_global", made, nd_sbp)
    return global_array(where, nd_sbp, array.shape, array.dtype, part)
