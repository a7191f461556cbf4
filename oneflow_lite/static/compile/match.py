"""Which calls a recording serves: one generated function that reads again what the call read.

Guards are written in the order in which the call read. What a guard reads hangs on what the guards
before it found, so each may trust that the objects on its way are of the types that they were.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable
from typing import Any

from oneflow_lite.function_writer import compiled
from oneflow_lite.static.compile.same import is_atom, told
from oneflow_lite.static.ir.tree import same
from oneflow_lite.tensor import Tensor

# What several guards read of one object, outside of string literals.
_SHARED = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|"""
    r"\b([cp]\d+\.(?:__dict__|_parameters|_buffers|_modules|_data))\b"
)
_GONE = (AttributeError, KeyError, IndexError, NameError, ValueError, TypeError, StopIteration)


class Match:
    """The guards of one recorded call.

    Attributes
    ----------
    tensors : list of Tensor
        Those that the guards find: at the recorded call, in the order in which they were read.
    """

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.feed_names: list[str] = []
        self.holders: dict[int, str] = {}  # objects in arguments that are written, by id
        self.roots: list[weakref.ref[Any]] = []  # to objects that the guards do not keep alive
        self._lines: list[str] = []
        self._labels: list[str] = []
        self._known: set[str] = set()
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []  # so that no id is used twice
        self._bound: dict[str, str] = {}
        self._scope: dict[str, Any] = {"same": same, "gone": _GONE}

    def __len__(self) -> int:
        return len(self._labels)

    # Writing

    def constant(self, value: Any) -> str:
        """Return the name of an object in the guards."""
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = f"c{len(self._names)}"
            self._kept.append(value)
            self._scope[name] = value
        return name

    def bind(self, expression: str) -> str:
        """Have an expression read once; return the name of what it gives."""
        name = self._bound.get(expression)
        if name is None:
            name = self._bound[expression] = f"p{len(self._bound)}"
            self._lines.append(f"{name} = {expression}")
        return name

    def require(self, condition: str, label: str) -> None:
        """Add a guard; `label` says in words what it is about."""
        if condition not in self._known:
            self._known.add(condition)
            if "._" in condition:
                condition = _SHARED.sub(self._shared, condition)
            self._lines.append(f"if not ({condition}): return {len(self._labels)}")
            self._labels.append(label)

    def _shared(self, found: re.Match[str]) -> str:
        return self.bind(found[1]) if found[1] else found[0]

    def same(self, expression: str, value: Any, label: str) -> None:
        """Require that an expression gives this object, or the same atom."""
        name = self.constant(value)
        label = f"`{label}` was {told(value)}, is another"
        if value is None or type(value) in (bool, type) or not is_atom(value):
            self.require(f"{expression} is {name}", label)
        else:
            self.require(f"{expression} is {name} or same({expression}, {name})", label)

    def root(self, expression: str, value: Any, label: str) -> str:
        """Require this object, and do not keep it alive when it can be held weakly."""
        try:
            reference = weakref.ref(value)
        except TypeError:
            self.same(expression, value, label)
            return self.constant(value)
        self.roots.append(reference)
        name = self.constant(reference)
        found = self.bind(expression)
        self.require(f"{found} is {name}()", f"`{label}` was {told(value)}, is another")
        return found

    def written(self, *returned: str) -> Callable[[Any, Any], Any]:
        """Return the function that the guards make.

        It takes args and kwargs of another call and returns these names in a tuple, or the number
        of the guard that does not hold.
        """
        body = "".join(f"    {line}\n" for line in self._lines)
        found = "".join(f"{name}, " for name in returned)
        source = (
            f"def match(args, kwargs):\n  try:\n{body}    return ({found})\n"
            "  except gone: return -1\n"
        )
        exec(compiled(source, "<guards of a compiled function>"), self._scope)
        check: Callable[[Any, Any], Any] = self._scope["match"]
        return check

    def why(self, number: int) -> str:
        """Say what the guard of this number is about."""
        return self._labels[number] if number >= 0 else "something that it read is not there"
