"""Places in code: the user's line, functors, modules, kernels and gradient rules."""

from __future__ import annotations

import functools
import inspect
import linecache
import os
import re
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from oneflow_lite import errors
from oneflow_lite.autograd.rules.gradient_rules import DeclaredGradFunction, WrappedGradFunction
from oneflow_lite.explore.document import Source, SourceLine
from oneflow_lite.interpreter.dispatch import replay_view
from oneflow_lite.nn.module import Module
from oneflow_lite.ops.op_expr import OpExpr
from oneflow_lite.ops.registry import FUNCTORS, KERNELS
from oneflow_lite.static.ir.location import is_passed_over

_PACKAGE = os.path.dirname(os.path.abspath(errors.__file__))
_ROOMS = ("functors", "grad_funcs", "kernels")
_WHOLE = 1500  # most lines of a file that is shown as a whole
_AROUND = 25  # lines shown of a longer file around the lines that are named


class Where(NamedTuple):
    """The way to an op, from its caller's frames."""

    functors: list[tuple[str, str]]  # name and place, the outermost first
    dispatched: str  # the place of the library's function that dispatched
    source: tuple[str, int] | None  # file and line of the user's
    modules: list[Any]  # called on the way, the outermost first


def look_around(frame: FrameType | None) -> Where:
    """Return the way to an op, read from this frame and those around it."""
    functors, modules = [], []
    source, dispatched = None, ""
    call = vars(Module)["__call__"].__code__
    while frame is not None:
        code = frame.f_code
        if code is call:
            modules.append(frame.f_locals["self"])
        elif is_passed_over(code):
            _, kind, place = _known.get(id(code)) or _learn(code)
            if kind == "functor":
                functors.append((code.co_name, place))
            if kind != "way" and not dispatched:
                dispatched = place
        elif source is None:
            source = code.co_filename, frame.f_lineno
        frame = frame.f_back
    return Where(functors[::-1], dispatched, source, modules[::-1])


def variables(frame: FrameType) -> dict[str, Any]:
    """Return the variables of a frame, and leave no reference to them behind."""
    values = dict(frame.f_locals)
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED and sys.version_info < (3, 13):
        frame.f_locals.clear()  # a copy that the frame keeps, and with it the variables' values
    return values


# The function that makes a view anew from its base after a write, for the new history.
REPLAY = replay_view.__name__
# By id, because code objects that look alike are equal. The entries: the code, so that its id is
# not given to other code; "functor", "way" (from the functor to the explorer) or "" (other code);
# and its place.
_known: dict[int, tuple[CodeType, str, str]] = {}
_WAY = tuple(
    [os.path.join(_PACKAGE, *name) for name in (("interpreter", ""), ("explore", "forward.py"))]
)


def _learn(code: CodeType) -> tuple[CodeType, str, str]:
    """Find the kind and the place of a function of this package."""
    functor = FUNCTORS.find(code.co_name, known_only=True)
    kind = "way" if code.co_filename.startswith(_WAY) else ""
    if code is replay_view.__code__ or (
        functor is not None and getattr(inspect.unwrap(functor), "__code__", None) is code
    ):
        kind = "functor"
    _known[id(code)] = code, kind, place_of(code)
    return _known[id(code)]


def place_of(code: CodeType) -> str:
    """Return file and line of code, as "functors/activation.py:12"; of the user's, the file's name.

    >>> from oneflow_lite.explore.places import place_of
    >>> from oneflow_lite.kernels.activation import relu
    >>> place_of(relu.__code__).partition(":")[0]
    'kernels/activation.py'
    """
    # The file of a functor that was made says where its declaration is.
    file, made, place = code.co_filename.rpartition(".py:")
    file, line = (f"{file}.py", place.split()[0]) if made else (place, code.co_firstlineno)
    return f"{_told(file, is_passed_over(code))}:{line}"


@functools.cache
def _told(file: str, is_own: bool) -> str:
    parts = os.path.relpath(file, _PACKAGE).split(os.sep)
    if parts[0] == "..":  # the op folders stand beside the package
        room = next((i for i, part in enumerate(parts) if part in _ROOMS), None)
        parts = parts[room:] if room is not None and is_own else parts[-1:]
    return "/".join(parts)


def kernel_place(op: OpExpr, device: str) -> str:
    """Return the place of the kernel of an op for a device type, or NumPy's or CuPy's function."""
    entry = KERNELS.get(op.op_type_name)
    kernel = entry.by_device.get(device)
    if kernel is None and entry.ufunc is not None:
        return f"{'numpy' if device == 'cpu' else 'cupy'}.{entry.ufunc}"
    kernel = kernel or entry.by_device.get(None)
    return "" if kernel is None else function_place(kernel)


def function_place(function: Any) -> str:
    """Return the place of a Python function, or the name of a NumPy function; else empty."""
    function = getattr(function, "func", function)
    while hasattr(function, "__wrapped__"):  # inspect.unwrap is slower
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    if isinstance(code, CodeType):
        return place_of(code)
    return f"numpy.{function.__name__}" if isinstance(function, np.ufunc) else ""


def bare_function(grad_function: Any) -> Any:
    """Return a gradient function without the wrappers of hooks and modes."""
    while isinstance(grad_function, WrappedGradFunction):
        grad_function = grad_function.inner
    return grad_function


def rules_of(grad_function: Any) -> Iterator[tuple[str, Any, str]]:
    """Yield the declared rules: the input ("" for all), the function, and its `saves`."""
    if isinstance(grad_function, DeclaredGradFunction):
        if grad_function.whole_rule is not None:
            yield "", *grad_function.whole_rule
        for name, (rule, saves) in grad_function.by_name.items():
            yield name, rule, saves


def rule_place(grad_function: Any) -> str:
    """Return the place of the gradient rule of a node."""
    function = bare_function(grad_function)
    for _, rule, _ in rules_of(function):
        return function_place(rule)
    if hasattr(function, "function"):  # a custom Function
        return function_place(function.function._find_backward())
    return function_place(type(function).apply)


def why_saved(grad_function: Any, name: str, edges: Any) -> str:
    """Return the reason in words why a node keeps a tensor."""
    function = bare_function(grad_function)
    if not isinstance(function, DeclaredGradFunction):
        if hasattr(function, "function"):
            return "ctx.save_for_backward() kept it in forward"
        return "capture() of the gradient function kept it"
    base = name.partition("[")[0]
    schema = function.schema
    needed = [n for n, (node, _) in zip(schema.inputs, edges, strict=False) if node is not None]
    wanted, texts = [], []
    for wrt, _, saves in rules_of(function):
        if base in [word.strip() for word in saves.split(",")] and (not wrt or wrt in needed):
            wanted += [wrt] if wrt else needed or [schema.variadic or "the inputs"]
            texts.append(f"saves={saves!r}")
    of = " and ".join(dict.fromkeys(wanted))
    return f"the gradient of {of} needs it: its rule says {' and '.join(dict.fromkeys(texts))}"


def _cell(file: str) -> str:
    """Return the name of a notebook's cell, as the notebook has it: "In[3]", or "cell MJUe"."""
    if found := re.search(r"__marimo__cell_(\w+?)_?(?:\.py)?$", file):
        return f"cell {found[1]}"
    shell = sys.modules["IPython"].get_ipython() if "ipykernel_" in file else None
    return "" if shell is None else str(shell.compile.format_code_name(file)[1])


class Sources:
    """The user's files that the document names, and the lines."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._lines: dict[str, set[int]] = {}

    def place(self, where: tuple[str, int] | list[Any] | None) -> SourceLine | None:
        """Return a file and line with the file's name in the document."""
        if where is None:
            return None
        file, line = where
        self._lines.setdefault(file, set()).add(line)
        return [self._name(file), line]

    def placed(self, part: Any) -> Any:
        """Return a part of the document, with the names of files instead of their paths."""
        if isinstance(part, dict):
            places = {"source"} if isinstance(part.get("source"), list) else set()
            return {
                key: self.place(value) if key in places
                else self._reason(value) if key in ("why", "reason", "reasons")
                else self.placed(value)
                for key, value in part.items()
            }  # fmt: skip
        return [self.placed(each) for each in part] if isinstance(part, list) else part

    def _reason(self, text: Any) -> Any:
        """Return reasons of a compiled function, with the name of the file that each ends with."""
        if isinstance(text, list):
            return [self._reason(each) for each in text]
        found = re.fullmatch(r"(.*, at )(.+):(\d+)( in \S+)", text or "", re.DOTALL)
        if found is None:
            return text
        what, file, line, inside = found.groups()
        self.place((file, int(line)))
        return f"{what}{self._name(file)}:{line}{inside}"

    def place_of_error(self, error: BaseException) -> SourceLine | None:
        """Return the user's line that is nearest to the origin of an exception."""
        nearest = None
        step = error.__traceback__
        while step is not None:
            code = step.tb_frame.f_code
            nearest = nearest if is_passed_over(code) else (code.co_filename, step.tb_lineno)
            step = step.tb_next
        return self.place(nearest)

    def _name(self, file: str) -> str:
        if file not in self._names:
            taken = set(self._names.values())
            parts = file.split(os.sep)
            if cell := _cell(file):
                parts = [cell]
            names = ["/".join(parts[-k:]) for k in range(1, len(parts) + 1)]
            self._names[file] = next((n for n in names if n not in taken), file)
        return self._names[file]

    def texts(self) -> list[Source]:
        """Return the text around all lines that were named."""
        sources = []
        for file, lines in self._lines.items():
            text = linecache.getlines(file)
            first, last = 1, len(text)
            if len(text) > _WHOLE:
                first, last = max(1, min(lines) - _AROUND), max(lines) + _AROUND
            if text:
                part = "".join(text[first - 1 : last])
                sources.append(Source(name=self._name(file), first=first, text=part))
        return sources
