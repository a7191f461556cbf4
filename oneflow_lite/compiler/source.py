"""From a code object to the syntax tree it was compiled from: the first step of observing code.

The file is parsed and compiled once more, and only a function whose code comes out equal, column by
column, is accepted: one of a file that was edited since, or made by `exec`, has no source.
"""

import __future__

import ast
import linecache
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType
from typing import Any, NamedTuple

from oneflow_lite.arrays.locks import make_lock

# The features that change the code; all further features are mandatory by now.
FUTURES = __future__.annotations.compiler_flag | __future__.barry_as_FLUFL.compiler_flag

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class NoSource(Exception):
    """The source of a function was not found, or is not what the function was compiled from."""


# Whether it is of the whole file, a tree, and its code.
Parsed = tuple[bool, ast.AST, CodeType]


class FunctionTree(NamedTuple):
    """The syntax tree of a function, and the options to compile it as it was."""

    tree: Any  # a FunctionNode
    private: str | None  # the class whose name goes into names like `__x`
    filename: str
    flags: int  # of `from __future__ import …`
    module: ast.AST  # the tree around it
    parsed: list[Parsed]  # where `find` looks first


# The lines of files, and what is parsed of them: the file, and the functions that were rewritten.
_files: dict[str, tuple[list[str], list[Parsed]]] = {}
_MOST = 256  # trees that are kept
_kept: deque[tuple[str, list[Parsed], Parsed]] = deque()
_parses = make_lock()  # two threads that change the filters of warnings would leave them changed


def find(code: CodeType, module_globals: dict[str, Any] | None = None) -> FunctionTree:
    """Return the syntax tree that `code` was compiled from; the globals serve modules in archives.

    Raises `NoSource` with the reason where no tree is found, or it compiles to different code.
    """
    name, filename, flags = code.co_qualname, code.co_filename, code.co_flags & FUTURES
    for _ in range(2):
        lines = linecache.getlines(filename, module_globals)
        known = _files.get(filename)
        if known is None or known[0] is not lines:
            known = lines, []
            if lines:
                _files[filename] = known
        parsed = known[1]
        if not any(whole for whole, *_ in [*parsed]):
            _parse("".join(lines), filename, flags, parsed)
        for _, module, compiled in [*parsed]:
            if any(_same(code, other) for other in _codes(compiled)):
                return _pick(code, FunctionTree(module, None, filename, flags, module, parsed))
        linecache.checkcache(filename)  # it may have been edited and imported anew
    reason = f"differs from what {filename!r} compiles to" if lines else "has no source lines"
    raise NoSource(f"{name!r} {reason}")


def _pick(code: CodeType, module: FunctionTree) -> FunctionTree:
    """Return the function in a module whose name, line and columns `code` has."""
    trees = list(_functions(module, code.co_name, code.co_firstlineno))
    positions = code.co_positions() if len(trees) > 1 else ()
    places = [p for p in positions if None not in p and p[::2] != p[1::2]]
    if places:  # lambdas: the innermost in whose body all is; it comes later
        first, last = min(p[::2] for p in places), max(p[1::2] for p in places)
        bodies = [(node, node.tree.body) for node in trees if type(node.tree) is ast.Lambda]
        trees = [
            node
            for node, body in bodies
            if (body.lineno, body.col_offset) <= first
            and last <= (body.end_lineno, body.end_col_offset)
        ][-1:]
    if len(trees) != 1:
        what = "cannot be told from others on its line" if trees else "is no function"
        raise NoSource(f"{code.co_qualname!r} in {code.co_filename!r} {what}")
    return trees[0]


def drop(filename: str, parsed: list[Parsed], entry: Parsed) -> None:
    """Drop a parsed text, and the file with its last one."""
    parsed.remove(entry)
    if not parsed and filename in _files and _files[filename][1] is parsed:
        del _files[filename]


def _parse(text: str, filename: str, flags: int, parsed: list[Parsed]) -> None:
    """Parse and compile a file."""
    with _parses, warnings.catch_warnings(), suppress(SyntaxError, ValueError, RecursionError):
        warnings.simplefilter("ignore")  # they were given when the file was imported
        tree = compile(text, filename, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
        entry = True, tree, compile(tree, filename, "exec", flags, dont_inherit=True)
        parsed.append(entry)
        _kept.append((filename, parsed, entry))
        if len(_kept) > _MOST:
            drop(*_kept.popleft())


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code objects made inside `code`, at any depth."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _same(left: CodeType, right: CodeType) -> bool:
    """Return whether two code objects are equal down to the columns, inner code included."""
    return left == right and all(
        a.co_linetable == b.co_linetable
        for a, b in zip([left, *_codes(left)], [right, *_codes(right)], strict=True)
    )


def _functions(around: FunctionTree, name: str, line: int) -> Iterator[FunctionTree]:
    """The functions of a name that begin at a line; those inside another come after it."""
    for child in ast.iter_child_nodes(around.tree):
        if name != "<lambda>" and isinstance(child, ast.expr):
            continue
        start = getattr([*getattr(child, "decorator_list", ()), child][0], "lineno", line)
        if start <= line <= getattr(child, "end_lineno", line):
            inside = isinstance(around.tree, ast.ClassDef) and isinstance(child, ast.stmt)
            private = around.tree.name if inside else around.private
            node = around._replace(tree=child, private=private)
            own = "<lambda>" if isinstance(child, ast.Lambda) else getattr(child, "name", "")
            if isinstance(child, FunctionNode) and own == name and start == line:
                yield node
            yield from _functions(node, name, line)
