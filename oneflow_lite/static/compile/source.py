"""From a code object to the syntax tree it was compiled from: the first step of observing code.

Its lines, or the whole file for a lambda, are parsed and compiled once more, and only a function
whose code comes out equal, column by column, is accepted: one of a file that was edited since, or
made by `exec`, has no source.
"""

import __future__

import ast
import functools
import linecache
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain, islice, pairwise
from types import CodeType
from typing import Any, NamedTuple

# The features that change what is compiled; the others are mandatory by now.
FUTURES = __future__.annotations.compiler_flag | __future__.barry_as_FLUFL.compiler_flag

NESTED = 16  # CO_NESTED: of a function in a function

IMPORTS = re.compile(r"^(?:from [\w.]+ )?import (\([\w\s,]*\)|[\w., ]*)", re.MULTILINE)

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class NoSource(Exception):
    """The source of a function was not found, or is not what the function was compiled from."""


class Node(NamedTuple):
    """The syntax tree of one function and what it takes to compile it as it was."""

    tree: Any  # a FunctionNode
    private: str | None  # the class whose name goes into names like `__x`
    filename: str
    flags: int  # of `from __future__ import …`


def find(code: CodeType, module_globals: dict[str, Any] | None = None) -> Node:
    """Return the syntax tree that `code` was compiled from; the globals serve modules in archives.

    Raises `NoSource` with the reason where there is none, or where compiling it gives other code.
    """
    name, filename, flags = code.co_qualname, code.co_filename, code.co_flags & FUTURES
    for _ in range(2):
        lines = linecache.getlines(filename, module_globals)
        for text in chain(_own_lines(code, lines), [None]):
            differs = f"differs from what {filename!r} compiles to"
            reason = differs if lines else "has no source lines"
            try:
                tree, codes = _parsed(filename, "".join(lines) if text is None else text, flags)
            except (SyntaxError, ValueError, RecursionError) as error:
                reason = f"is in {filename!r}, which does not compile: {error}"
                continue
            others = codes.get((code.co_name, code.co_firstlineno), ())
            if any(_same(code, other) for other in others):
                return pick(code, Node(tree, None, filename, flags))
        linecache.checkcache(filename)  # it may have been edited and imported anew
    raise NoSource(f"{name!r} {reason}")


def pick(code: CodeType, around: Node) -> Node:
    """Return the function in `around`, or that itself, whose name, line and columns `code` has."""
    module = around._replace(tree=ast.Module([around.tree], []))
    found = list(_functions(module, code.co_name, code.co_firstlineno))
    places = [p for p in code.co_positions() if None not in p and p[::2] != p[1::2]]
    if len(found) > 1 and places:  # lambdas: the innermost in whose body all is; it comes later
        first, last = min(p[::2] for p in places), max(p[1::2] for p in places)
        bodies = [(node, node.tree.body) for node in found if type(node.tree) is ast.Lambda]
        found = [
            node
            for node, body in bodies
            if (body.lineno, body.col_offset) <= first
            and last <= (body.end_lineno, body.end_col_offset)
        ][-1:]
    if len(found) != 1:
        what = "cannot be told from others on its line" if found else "is no function"
        raise NoSource(f"{code.co_qualname!r} in {code.co_filename!r} {what}")
    return found[0]


def forget() -> None:
    """Drop what was parsed; the next `find` parses anew."""
    _parsed.cache_clear()


def _own_lines(code: CodeType, lines: list[str]) -> Iterator[str]:
    """The text of a function alone, in its place under lines that stand for what is around it.

    It ends before a line that is indented no deeper; where such a line is inside a string or
    brackets, the text does not compile, and a longer one follows. That of a lambda is not known.
    """
    first, outer, inner = code.co_firstlineno - 1, [], code.co_qualname.split(".")
    if code.co_name.startswith("<") or first >= len(lines):
        return
    parts = [code, *_codes(code)]
    indent = len(lines[first]) - len(lines[first].lstrip())
    named = [name for part in parts for name in part.co_names]
    known = _imported(code.co_filename, lines).intersection(named)
    above = f"import {', '.join(sorted(known))}\n" if known else ""
    classes = [a for a, b in pairwise(inner) if "<locals>" not in (a, b)]
    if classes:
        outer.append(f"class {classes[-1]}:")
    if code.co_flags & NESTED:
        outer.append(f"def around({', '.join(code.co_freevars)}):")
    if indent and not outer:
        outer.append("if 1:")
    if len(outer) > min(first - bool(above), indent):
        return
    above += "".join(f"{' ' * i}{line}\n" for i, line in enumerate(outer))
    above = "\n" * (first - above.count("\n")) + above
    numbers = [number for part in parts for *_, number in part.co_lines()]
    ends = (
        i
        for i in range(max(number or 0 for number in numbers), len(lines))
        if (rest := lines[i].lstrip()) and rest[0] != "#" and len(lines[i]) - len(rest) <= indent
    )
    for end in chain(islice(ends, 3), [len(lines)]):
        yield above + "".join(lines[first:end])


_imports: dict[str, tuple[list[str], frozenset[str]]] = {}


def _imported(filename: str, lines: list[str]) -> frozenset[str]:
    """The names that a file imports at its margin: calls of what they hold are compiled apart."""
    found = _imports.get(filename)
    if found is None or found[0] is not lines:
        text = "".join(lines)
        parts = [part.split() for names in IMPORTS.findall(text) for part in names.split(",")]
        names = {part[-1].partition(".")[0].strip("()") for part in parts if part}
        found = _imports[filename] = lines, frozenset(names)
    return found[1]


@functools.lru_cache(maxsize=256)
def _parsed(
    filename: str, text: str, flags: int
) -> tuple[ast.AST, dict[tuple[str, int], list[CodeType]]]:
    """Parse and compile a text; the code objects inside by name and first line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were given when the file was imported
        tree = compile(text, filename, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
        module = compile(tree, filename, "exec", flags, dont_inherit=True)
    codes = defaultdict(list)
    for code in _codes(module):
        codes[code.co_name, code.co_firstlineno].append(code)
    return tree, codes


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code objects made inside `code`, at any depth."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _same(left: CodeType, right: CodeType) -> bool:
    """Return whether two code objects, and those inside them, are equal down to the columns."""
    return left == right and all(
        a.co_linetable == b.co_linetable
        for a, b in zip([left, *_codes(left)], [right, *_codes(right)], strict=True)
    )


def _functions(around: Node, name: str, line: int) -> Iterator[Node]:
    """The functions of a name that begin at a line; those inside another come after it."""
    for child in ast.iter_child_nodes(around.tree):
        if name != "<lambda>" and isinstance(child, ast.expr):
            continue
        inside = isinstance(around.tree, ast.ClassDef) and isinstance(child, ast.stmt)
        node = around._replace(tree=child, private=around.tree.name if inside else around.private)
        start = getattr([*getattr(child, "decorator_list", ()), child][0], "lineno", line)
        if start <= line <= getattr(child, "end_lineno", line):
            own = "<lambda>" if isinstance(child, ast.Lambda) else getattr(child, "name", "")
            if isinstance(child, FunctionNode) and own == name and start == line:
                yield node
            yield from _functions(node, name, line)
