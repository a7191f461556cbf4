"""Match: a generated function that repeats the reads of a call, and so tells which calls fit.

Guards are written in the order in which the call read. A guard reads by way of objects that the
guards before it found, so it may trust that these are of the types that they were.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Collection
from itertools import combinations, groupby, takewhile
from typing import Any, NamedTuple

from oneflow_lite.arrays.locks import cached_property
from oneflow_lite.compiler.same import is_atom, told
from oneflow_lite.errors import InplaceError
from oneflow_lite.ops.function_writer import FunctionWriter
from oneflow_lite.static.ir.tree import same
from oneflow_lite.tensors.tensor import Tensor

# Attributes that several guards read of one object, outside of string literals.
_SHARED = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|"""
    r"\b([gp]\d+\.(?:__dict__|_parameters|_buffers|_modules|_data))\b"
)
_GONE: Any = (AttributeError, LookupError, NameError, ValueError, TypeError, StopIteration)
_GONE += (ArithmeticError, InplaceError)


class Guard(NamedTuple):
    """A guard in words, its value as expressions now and then, and the condition itself."""

    label: str
    now: str
    then: str
    condition: str


class Match:
    """The guards of a recorded call, kept or not.

    Attributes
    ----------
    tensors : list of Tensor
        Those that the guards find: at the recorded call, in the order in which they were read.
    feed_names : list of str
        Their expressions in the guards.
    holders : dict of int to str
        The expressions of the objects in arguments that are written, by id.
    """

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.feed_names: list[str] = []
        self.holders: dict[int, str] = {}
        self._roots: list[weakref.ref[Any]] = []  # to objects that the guards do not keep alive
        self._writer = FunctionWriter({"same": same, "gone": _GONE})
        self.names = self._writer.names  # of the function that asks
        self.constant = self._writer.value  # the name of an object in the guards
        self.guards: list[Guard] = []
        self._steps: list[str | Guard] = []  # guards, and the lines between them
        self._known: set[str] = set()
        self._bound: dict[str, str] = {}

    # Writing

    def bind(self, expression: str) -> str:
        """Have an expression read once; return the name of its value."""
        if (name := self._bound.get(expression)) is None:
            name = self._bound[expression] = f"p{len(self._bound)}"
            self._steps.append(f"{name} = {expression}")
        return name

    def require(
        self, condition: str, label: str, now: str = "", then: str = "", first: bool = False
    ) -> int:
        """Add a guard; `label` says in words what it is about, `now` and `then` are its values.

        Return its number, if it is new. With `first` that is what `check` gives where it fails.
        """
        if condition not in self._known:
            self._known.add(condition)
            if "._" in condition:
                condition = _SHARED.sub(self._shared, condition)
            if first:
                self._steps.append("pass")
            self.guards.append(Guard(label, now, then, condition))
            self._steps.append(self.guards[-1])
        return len(self.guards) - 1

    def _shared(self, match: re.Match[str]) -> str:
        return self.bind(match[1]) if match[1] else match[0]

    def same(self, expression: str, value: Any, label: str) -> None:
        """Require that an expression gives this object, or the same atom."""
        name = self.constant(value)
        condition = f"{expression} is {name}"
        if value is not None and type(value) not in (bool, type) and is_atom(value):
            condition += f" or same({expression}, {name})"
        self.require(condition, label, expression, name)

    def root(self, expression: str, value: Any, label: str) -> str:
        """Require this object, and do not keep it alive when it can be held weakly."""
        try:
            reference = weakref.ref(value)
        except TypeError:
            self.same(expression, value, label)
            return self.constant(value)
        self._roots.append(reference)
        root, then = self.bind(expression), f"{self.constant(reference)}()"
        self.require(f"{root} is {then}", label, root, then)
        return root

    # Asking

    def settle(self, captured: Collection[int] = ()) -> None:
        """Add the last guards. No argument may be a captured tensor."""
        names = self.feed_names
        if len(names) < 10:
            apart = [f"{a} is not {b}" for a, b in combinations(names, 2)]
        else:  # a set is quicker than all pairs
            plain = {type(tensor).__hash__ for tensor in self.tensors} <= {object.__hash__}
            items = names if plain else [f"id({name})" for name in names]
            apart = [f"len({{{', '.join(items)}}}) == {len(names)}"]
        if apart:
            self.require(" and ".join(apart), "which arguments are one tensor")
        if names and captured:
            known = self.constant(frozenset(captured))
            outer = " and ".join(f"id({name}) not in {known}" for name in names)
            self.require(outer, "which arguments are from outside")
        self.tensors = []  # those of the recorded call may go

    @cached_property
    def check(self) -> Any:
        """The function that asks, made when another call comes.

        It returns what `match` does, or the number of the guard that fails; among guards side by
        side, that of the first.
        """
        names = "".join(f"{name}, " for name in (*self.feed_names, *self.holders.values()))
        lines, number = self._writer.lines, 0
        lines.append("try:")
        for is_line, steps in groupby(self._steps, lambda step: isinstance(step, str)):
            if is_line:
                lines += [f"  {step}" for step in steps]
                continue
            conditions = [f"({step.condition})" for step in steps if isinstance(step, Guard)]
            lines.append(f"  if not ({' and '.join(conditions)}): return {number}")
            number += len(conditions)
        lines += [f"  return ({names})", "except gone: return -1"]
        return self._writer.function("match(args, kwargs)", "<guards of a compiled function>")

    def tie(self, item: Any, items: list[Any]) -> None:
        """Take an item off a list as soon as an object is gone that the guards need."""
        tied = weakref.ref(item)

        def drop(_: Any) -> None:
            if (kept := tied()) in items:
                items.remove(kept)

        alive = [needed for root in self._roots if (needed := root()) is not None]
        self._ties = [weakref.ref(needed, drop) for needed in alive]

    def match(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tensor, ...] | None:
        """Return the tensors of another call, and the holders; None for one that differs."""
        inputs = self.check(args, kwargs)
        return inputs if type(inputs) is tuple else None

    def why(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """Say in words which guard another call does not meet; None when it meets them all."""
        number = self.check(args, kwargs)
        if type(number) is tuple:
            return None
        if number < 0:
            return "something that it read is no longer there"
        names = {**self.names, "args": args, "kwargs": kwargs}
        before = takewhile(lambda step: step is not self.guards[number], self._steps)
        exec("\n".join([step for step in before if isinstance(step, str)]), names)
        while eval((guard := self.guards[number]).condition, names):
            number += 1
        label, now, then, _ = guard
        if now:
            was, now_is = told(eval(then, names)), told(eval(now, names))
            return f"{label} was {was}, is {'another' if now_is == was else now_is}"
        return f"what differs: {label}"
