"""CuPy has every name that the kernels ask of `xp`, on every path, run or not."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.strict_cupy import facts
from tests.strict_cupy.modules import cupy

NUMPY_ONLY = re.compile(r"\bxp is np\b|\bon_host\(xp\)|\bxp\.__name__ == 'numpy'")
KERNELS = sorted((Path(__file__).resolve().parents[2] / "kernels").glob("*.py"))


def dotted_name(node: ast.expr) -> list[str]:
    """["xp", "linalg", "norm"] for `xp.linalg.norm`; an empty list for anything but names."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        owner = dotted_name(node.value)
        return [*owner, node.attr] if owner else []
    return []


def is_offered(names: list[str]) -> bool:
    if len(names) > 1 and names[-1] in facts.UFUNC_METHODS:
        return names[-2] in facts.UFUNC_METHODS[names[-1]]
    found = cupy
    for name in names:
        if not hasattr(found, name):
            return False
        found = getattr(found, name)
    return True


def on_device(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree, without those that only NumPy reaches."""
    if isinstance(tree, ast.If | ast.IfExp) and NUMPY_ONLY.search(ast.unparse(tree.test)):
        rest = tree.orelse if isinstance(tree, ast.If) else [tree.orelse]
        for node in rest:
            yield from on_device(node)
        return
    yield tree
    for node in ast.iter_child_nodes(tree):
        yield from on_device(node)


def offences(source: str) -> Iterator[str]:
    for node in on_device(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            root, *names = dotted_name(node) or [""]
            if root == "xp" and not names[0].startswith("__") and not is_offered(names):
                yield f"line {node.lineno}: CuPy has no {'.'.join(names)}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            # Rules for batches run ops, by `F.reshape(x, shape=...)`, and no functions of CuPy.
            if set(dotted_name(node.func)) & {"F", "call"}:
                continue
            lacking = facts.LACKING_KEYWORDS.get(node.func.attr, frozenset())
            for keyword in node.keywords:
                if keyword.arg in lacking:
                    yield f"line {node.lineno}: CuPy's {node.func.attr} takes no {keyword.arg}"


@pytest.mark.parametrize("path", KERNELS, ids=[path.stem for path in KERNELS])
def test_kernels_use_what_cupy_has(path: Path) -> None:
    assert list(offences(path.read_text())) == []


def test_an_offence_is_found() -> None:
    source = """
def kernel(xp, x, index):
    y = xp.linalg.vector_norm(xp.insert(x, 0, 1)) + x.sum(where=x)
    if xp is np:
        xp.multiply.at(x, index, 2)
    else:
        xp.multiply.at(x, index, 3)
        xp.add.at(x, index, 4)
    return xp.maximum.reduce(x)
"""
    assert sorted(offences(source)) == [
        "line 3: CuPy has no insert",
        "line 3: CuPy has no linalg.vector_norm",
        "line 3: CuPy's sum takes no where",
        "line 7: CuPy has no multiply.at",
        "line 9: CuPy has no maximum.reduce",
    ]
