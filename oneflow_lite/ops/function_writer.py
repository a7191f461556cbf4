"""FunctionWriter: Python functions that are written while the package runs."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from types import CodeType
from typing import Any


@functools.lru_cache(maxsize=128)
def compiled(source: str, file: str) -> CodeType:
    """Return the code of a source; equal sources share it."""
    return compile(source, file, "exec")


class FunctionWriter:
    """The lines of a function, and the objects that its globals name.

    Attributes
    ----------
    names : dict
        The globals of the function.
    lines : list of str
        Its body.
    source : str
        The text of the function, once it is made.

    Examples
    --------
    >>> import math
    >>> from oneflow_lite.ops.function_writer import FunctionWriter
    >>> writer = FunctionWriter()
    >>> writer.lines.append(f"return {writer.value(math.sqrt)}(x)")
    >>> root = writer.function("root(x)", "<an example>")
    >>> root(9.0), writer.source
    (3.0, 'def root(x):\\n    return g0(x)\\n')
    """

    def __init__(self, names: dict[str, Any] | None = None, lines: Iterable[str] = ()) -> None:
        self.names = {} if names is None else names
        self.names.setdefault("__name__", __name__)  # whose code it is, in tracebacks
        self.lines = list(lines)
        self.source = ""
        self._known: dict[int, str] = {}

    def value(self, value: Any) -> str:
        """Return the name of a global that holds an object."""
        if (name := self._known.get(id(value))) is None:
            name = self._known[id(value)] = f"g{len(self._known)}"
            self.names[name] = value
        return name

    def function(self, signature: str, file: str, line: int = 1) -> Any:
        """Make the function of a name and parameters, as if it stood in a line of a file."""
        # Empty lines before it let a traceback name the line that the function stands for.
        self.source = "\n    ".join([f"def {signature}:", *self.lines]) + "\n"
        made: dict[str, Any] = {}
        exec(compiled("\n" * (line - 1) + self.source, file), self.names, made)
        return made[signature.partition("(")[0]]
