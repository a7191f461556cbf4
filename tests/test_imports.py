"""Arrows go one way: no import circle among the modules of the package, nor among its folders.

An import counts wherever it stands: at the top, inside a function, under `TYPE_CHECKING`, or as
`import_module` of a name that is written there. A module that is found by a computed name does not
count: the registries and `exposure.py` load ops and methods so, and nothing above them is named
below.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1] / "oneflow_lite"
# They stand above Programs, and nothing stands on them.
ABOVE = ("oneflow_lite.explore", "oneflow_lite.onnx")
Graph = dict[str, dict[str, int]]  # module, what it imports, the line


def modules(root: Path) -> dict[str, Path]:
    """Return the files of a package by module; the op folders are links, which glob passes over."""
    starts = [root, *(path for path in root.iterdir() if path.is_symlink())]
    files = {path for start in starts for path in start.rglob("*.py")}
    names = {path: path.relative_to(root.parent).with_suffix("").parts for path in files}
    return {".".join(p[:-1] if p[-1] == "__init__" else p): path for path, p in names.items()}


def imports(tree: ast.Module, known: set[str]) -> Iterator[tuple[str, int]]:
    """Yield the modules that a file imports, and where."""
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        named: list[object] = []
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            named = [name if name in known else node.module for name in inner]
        elif isinstance(node, ast.Call) and node.args:
            function, given = node.func, node.args[0]
            name = function.attr if isinstance(function, ast.Attribute) else function
            if isinstance(name, ast.Name):
                name = name.id
            if name in ("import_module", "_import_module", "__import__"):
                if isinstance(given, ast.Name):
                    named = [constants.get(given.id)]
                elif isinstance(given, ast.Constant):
                    named = [given.value]
        for name in named:
            if name in known:
                yield str(name), node.lineno  # type: ignore[attr-defined]


def graph_of(root: Path) -> Graph:
    files = modules(root)
    graph: Graph = {}
    for module, path in files.items():
        found = imports(ast.parse(path.read_text("utf-8")), set(files))
        graph[module] = {name: line for name, line in found if name != module}
    return graph


def folders(graph: Graph) -> dict[str, set[str]]:
    """Return what folders import of each other.

    `oneflow_lite` itself names everything and is named by nobody below; autograd's modules stand
    partly below Tensor and partly above the functors.
    """

    def folder(module: str) -> str:
        parts = module.split(".")
        depth = 3 if parts[1] == "static" else 2
        return module if parts[1] == "autograd" else ".".join(parts[:depth])

    found: dict[str, set[str]] = {}
    for module, imported in graph.items():
        if "." in module:
            here = folder(module)
            there = {folder(name) for name in imported if "." in name}
            found.setdefault(here, set()).update(there - {here})
    return found


def circle(graph: dict[str, dict[str, int]] | dict[str, set[str]]) -> list[str]:
    """Return a circle, each module after one that it is imported by; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def test_no_module_imports_itself_on_any_way() -> None:
    graph = graph_of(ROOT)
    assert len(graph) > 300
    found = circle(graph)
    lines = [f"{a}, line {graph[a][b]}: {b}" for a, b in pairwise(found)]
    assert not lines, "\n".join(["a circle of imports", *lines])


def test_arrows_among_folders_go_one_way() -> None:
    found = folders(graph_of(ROOT))
    assert circle(found) == []
    assert {name for name in found if ".static." in name} > {
        f"oneflow_lite.static.{name}"
        for name in ("ir", "lazy", "runtime", "control_flow", "compile")
    }
    below = ["ir", "lazy", "runtime", "control_flow", "compile"]
    for i, name in enumerate(below):
        above = {f"oneflow_lite.static.{other}" for other in below[i + 1 :]}
        assert not found[f"oneflow_lite.static.{name}"] & above, name
    for module, imported in found.items():
        if module in ABOVE:
            assert not [name for name in found if module in found[name]], module
        elif ".static" not in module:  # what stands below knows nothing of Programs
            assert not [name for name in imported if ".static" in name], module


@pytest.mark.parametrize(
    "line",
    [
        "import package.a",
        "from package import a",
        "from package.a import x",
        "def late():\n    from package.a import x",
        "if TYPE_CHECKING:\n    from package.a import x",
        "class C:\n    import package.a",
        "import_module('package.a')",
        "def late():\n    return importlib.import_module('package.a').x",
        "WHERE = 'package.a'\ndef late():\n    return import_module(WHERE).x",
        "__import__('package.a')",
    ],
)
def test_every_kind_of_import_is_seen(tmp_path: Path, line: str) -> None:
    package = tmp_path / "package"
    package.mkdir()
    for name, text in {"__init__": "", "a": "import package.b", "b": line, "c": line}.items():
        (package / f"{name}.py").write_text(text)
    assert set(circle(graph_of(package))) == {"package.a", "package.b"}
    (package / "b.py").write_text("import package.d\nimport numpy\nWHERE = 'package.a'")
    assert circle(graph_of(package)) == []
