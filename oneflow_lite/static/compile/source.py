"""From a code object to the syntax tree it was compiled from: the first step of observing a function.

The file is parsed and compiled once more, and only a function whose code comes out equal, position by
position, is accepted: a file edited since, a code object patched or made by `exec`, is refused.
"""

import __future__

import ast
import functools
import linecache
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any, NamedTuple

# The other features are mandatory by now.
FUTURES = __future__.annotations.compiler_flag | __future__.barry_as_FLUFL.compiler_flag

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class NoSource(Exception):
    """The source of a function was not found, or is not what the function was compiled from."""


class Node(NamedTuple):
    """The syntax tree of one function and what it takes to compile it as it was."""

    tree: FunctionNode
    private: str | None  # the class whose name goes into names like `__x`
    filename: str
    flags: int  # of `from __future__ import …`


class _File(NamedTuple):
    nodes: Mapping[tuple[str, int], list[tuple[FunctionNode, str | None]]]
    codes: Mapping[tuple[str, int], list[CodeType]]


def find(code: CodeType, module_globals: dict[str, Any] | None = None) -> Node:
    """Return the syntax tree that `code` was compiled from; the globals serve modules in archives.

    Raises `NoSource` with the reason where there is none, or where compiling it gives other code.
    """
    key, flags = (code.co_name, code.co_firstlineno), code.co_flags & FUTURES
    name, filename = code.co_qualname, code.co_filename
    for _ in range(2):
        lines = linecache.getlines(filename, module_globals)
        file = _file(filename, "".join(lines), flags)
        if any(_same(code, other) for other in file.codes.get(key, ())):
            break
        linecache.checkcache(filename)  # it may have been edited and imported anew
    else:
        what = f"differs from what {filename!r} compiles to" if lines else "has no source lines"
        raise NoSource(f"{name!r} {what}")
    places = [
        ((line, column), (end_line, end_column))
        for line, end_line, column, end_column in code.co_positions()
        if line is not None and end_line is not None  # an instruction without a place
        if column is not None
        and end_column is not None
        and (line, column) != (end_line, end_column)
    ]
    found = file.nodes.get(key, [])
    if len(found) > 1 and places:  # lambdas: the innermost one in whose body all stands
        spans = [_span(entry[0].body) for entry in found if isinstance(entry[0], ast.Lambda)]
        around = {
            span: entry
            for span, entry in zip(spans, found, strict=True)
            if all(span[0] <= start and end <= span[1] for start, end in places)
        }
        found = [around[max(around)]] if around else []
    if len(found) != 1:
        what = "cannot be told from others on its line" if found else "is no function"
        raise NoSource(f"{name!r} in {filename!r} {what}")
    return Node(*found[0], filename, flags)


def forget() -> None:
    """Drop the parsed files; the next `find` parses anew."""
    _file.cache_clear()


@functools.lru_cache(maxsize=256)
def _file(filename: str, text: str, flags: int) -> _File:
    """Parse and compile a file; its functions by name and first line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were given when the file was imported
            module = compile(text, filename, "exec", flags, dont_inherit=True)
            flags |= ast.PyCF_ONLY_AST
            tree = compile(text, filename, "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise NoSource(f"{filename!r} does not compile: {error}") from None
    codes = defaultdict(list)
    for code in _codes(module):
        codes[code.co_name, code.co_firstlineno].append(code)
    nodes = defaultdict(list)
    todo: list[tuple[ast.AST, str | None]] = [(tree, None)]
    for node, private in todo:
        if isinstance(node, ast.Lambda):
            nodes["<lambda>", node.lineno].append((node, private))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            line = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            nodes[node.name, line].append((node, private))
        body = node.body if isinstance(node, ast.ClassDef) else ()
        for child in ast.iter_child_nodes(node):
            todo.append((child, node.name if child in body else private))
    return _File(nodes, codes)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code objects made inside `code`, at any depth."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _same(left: CodeType, right: CodeType) -> bool:
    """Whether two code objects are equal down to the columns, those inside them included."""
    return (
        left == right
        and left.co_qualname == right.co_qualname
        and list(left.co_positions()) == list(right.co_positions())
        and all(map(_same, _codes(left), _codes(right)))
    )


def _span(node: ast.expr | ast.stmt) -> tuple[tuple[int, int], tuple[int, int]]:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
