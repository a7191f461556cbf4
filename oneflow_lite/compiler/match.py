"""Match: a generated function that repeats the reads of a call, and so tells which calls fit.

Guards are written in the order in which the call read. A guard reads by way of objects that the
guards before it found, so it may trust that these are of the types that they were.
"""

from __future__ import annotations

import ast
import weakref
from collections.abc import Collection
from functools import partial
from itertools import combinations, groupby
from typing import Any, NamedTuple

from oneflow_lite.arrays.locks import cached_property
from oneflow_lite.compiler.same import changed, is_atom, told
from oneflow_lite.errors import InplaceError
from oneflow_lite.ops.function_writer import FunctionWriter
from oneflow_lite.static.ir.location import user_location
from oneflow_lite.static.ir.program import Location
from oneflow_lite.static.ir.tree import same
from oneflow_lite.tensors.tensor import Tensor

OUTSIDE = "the tensors from outside"  # the label of their guard
# Guards raise these; what a signal handler raises meanwhile is the caller's.
_GONE: Any = (AttributeError, LookupError, NameError, ValueError, TypeError, StopIteration)
_GONE += (ArithmeticError, InplaceError)


class Guard(NamedTuple):
    """A condition, what it is about in the words of the user's code, and the line that asked."""

    label: str
    condition: str
    where: str

    def asked(self, names: dict[str, Any]) -> tuple[str, str]:
        """Return the expression of the value in question, "" for yes or no, and what that was."""
        test: Any = ast.parse(self.condition, mode="eval").body
        while isinstance(test, ast.BoolOp):  # its parts are alike
            test = test.values[0]
        compares = isinstance(test, ast.Compare)
        how, right = (test.ops[0], test.comparators[0]) if compares else (test, test)
        if isinstance(how, (ast.Is, ast.Eq)) and not self.label.startswith("whether "):
            return ast.unparse(test.left), told(eval(ast.unparse(right), names))
        is_none = isinstance(right, ast.Constant) and right.value is None
        denies = isinstance(how, (ast.NotIn, ast.UnaryOp)) or isinstance(how, ast.IsNot) != is_none
        return "", str(not denies)


class Match:
    """The guards of a recorded call, kept or not.

    Attributes
    ----------
    tensors : list of Tensor
        Those that the guards find: at the recorded call, in the order in which they were read.
    feed_names : dict of str to str
        Their expressions in the guards, and what users call them.
    holders : dict of int to str
        The expressions of the objects in arguments that are written, by id.
    at : Location or None
        Where the first function that the call entered begins, or where it returns. Guards have
        lines while it is set.
    """

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.feed_names: dict[str, str] = {}
        self.holders: dict[int, str] = {}
        self.at: Location | None = None
        # References to objects that the guards do not keep alive, and what is said of each then.
        self._roots: list[tuple[weakref.ref[Any], str]] = []
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

    def require(self, condition: str, label: str) -> None:
        """Add a guard; `label` says what it is about, or begins with "whether"."""
        if condition not in self._known:
            self._known.add(condition)
            where = f", at {user_location()}" if self.at else ""
            self.guards.append(Guard(label, condition, where))
            self._steps.append(self.guards[-1])

    def same(self, expression: str, value: Any, label: str) -> None:
        """Require that an expression gives this object, or the same atom."""
        name = self.constant(value)
        condition = f"{expression} is {name}"
        if value is not None and type(value) not in (bool, type) and is_atom(value):
            condition += f" or same({expression}, {name})"
        self.require(condition, label)

    def root(self, expression: str, value: Any, label: str) -> str:
        """Require this object, and do not keep it alive when it can be held weakly."""
        try:
            reference = weakref.ref(value)
        except TypeError:
            self.same(expression, value, label)
            return self.constant(value)
        root = self.bind(expression)
        self.require(f"{root} is {self.constant(reference)}()", label)
        gone = f"{label} stood for an object that is gone{self.guards[-1].where}"
        self._roots.append((reference, gone))
        return root

    # Asking

    def settle(self, captured: Collection[int] = ()) -> None:
        """Add the last guards. No argument may be a captured tensor."""
        names, told_names = [*self.feed_names], ", ".join(self.feed_names.values())
        if len(names) < 10:
            apart = [f"{a} is not {b}" for a, b in combinations(names, 2)]
        else:  # a set is quicker than all pairs
            plain = {type(tensor).__hash__ for tensor in self.tensors} <= {object.__hash__}
            items = names if plain else [f"id({name})" for name in names]
            apart = [f"not len({{{', '.join(items)}}}) < {len(names)}"]
        if apart:
            self.require(" and ".join(apart), f"whether two of {told_names} are one tensor")
        if names and captured:
            known = self.constant(frozenset(captured))
            outer = " and ".join(f"id({name}) not in {known}" for name in names)
            self.require(outer, f"whether one of {told_names} is read from outside, too")
        self.tensors = []  # those of the recorded call may go

    @cached_property
    def check(self) -> Any:
        """The function that asks, made when another call comes.

        It returns the tensors of another call, and the holders. For a call that differs, it tells
        whether the guard of the tensors from outside fails.
        """
        names = "".join(f"{name}, " for name in (*self.feed_names, *self.holders.values()))
        lines = ["try:"]
        for kind, steps in groupby(self._steps, lambda s: s if type(s) is str else s[0] == OUTSIDE):
            conditions = [f"({step.condition})" for step in steps if isinstance(step, Guard)]
            test = f"if not ({' and '.join(conditions)}): return {kind}"
            lines.append(f"  {test if conditions else kind}")
        lines += [f"  return ({names})", "except gone: return False"]
        self._writer.lines = lines  # all at once: an interrupt may come anywhere
        return self._writer.function("match(args, kwargs)", "<guards of a compiled function>")

    def tie(self, item: Any, items: list[Any], lost: list[str]) -> None:
        """Take an item off a list as soon as an object is gone that the guards need; say which."""
        tied = weakref.ref(item)

        def drop(gone: str, _: Any) -> None:
            if (kept := tied()) in items:
                items.remove(kept)
                lost[:] = [gone]

        alive = [(needed, gone) for root, gone in self._roots if (needed := root()) is not None]
        self._ties = [weakref.ref(needed, partial(drop, gone)) for needed, gone in alive]

    def why(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """Say in words which guard another call does not meet; None when it meets them all."""
        names = {**self.names, "args": args, "kwargs": kwargs}
        for i, step in enumerate(self._steps):
            try:
                if isinstance(step, str):
                    exec(step, names)
                elif not eval(step.condition, names):
                    value, was = step.asked(names)
                    now = told(eval(value, names)) if value else str(was == "False")
                    return changed(step.label, was, now) + step.where
            except _GONE:
                gone = next(each for each in self._steps[i:] if isinstance(each, Guard))
                return f"{gone.label} is no longer there{gone.where}"
        return None
