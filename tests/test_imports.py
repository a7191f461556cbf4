"""Arrows go one way: no circle among modules, and each room imports rooms below it alone.

The floors are those of the picture in docs/architecture.md; `pytest -s` prints them, too.

An import counts wherever it stands: at the top, inside a function, under `TYPE_CHECKING`, or as
`import_module` of a name that is written there. A module that is found by a computed name does not
count: the registries and `exposure.py` load ops and methods so, `upward.py` lists the rest, and
nothing above them is named below.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
ROOT = REPOSITORY / "oneflow_lite"
PICTURE = REPOSITORY / "docs" / "architecture.md"
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


@functools.cache
def graph_of(root: Path) -> Graph:
    files = modules(root)
    graph: Graph = {}
    for module, path in files.items():
        found = imports(ast.parse(path.read_text("utf-8")), set(files))
        graph[module] = {name: line for name, line in found if name != module}
    return graph


def floors() -> list[list[str]]:
    """Return the rooms of each floor as the picture has them, the lowest floor first."""
    picture = PICTURE.read_text("utf-8").partition("```text\n")[2].partition("```")[0]
    return [line.partition("|")[0].split() for line in reversed(picture.splitlines())]


def room_of(module: str, rooms: set[str]) -> str:
    """Return the room of a module: the longest name in the picture that it begins with."""
    parts = module.split(".")[1:] or [module]
    for end in range(len(parts), 0, -1):
        if (room := "/".join(parts[:end])) in rooms:
            return room
    raise AssertionError(f"{module} has no room in {PICTURE.name}")


def against_the_picture(graph: Graph) -> list[str]:
    """Return the imports that do not lead to a lower floor, as text."""
    level = {room: number for number, rooms in enumerate(floors()) for room in rooms}
    wrong = []
    for module, imported in graph.items():
        room = room_of(module, set(level))
        for name, line in imported.items():
            other = room_of(name, set(level))
            if other != room and level[other] >= level[room]:
                wrong.append(f"{module}, line {line}: {room} stands below or beside {name}")
    return wrong


def circle(graph: Graph) -> list[str]:
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


def test_each_room_imports_rooms_below_it() -> None:
    for number, rooms in enumerate(floors()):
        print(f"{number:2}  {'  '.join(rooms)}")
    assert len(floors()) > 15
    graph = graph_of(ROOT)
    found = against_the_picture(graph)
    assert not found, "\n".join(found)
    assert {room for rooms in floors() for room in rooms} == {
        room_of(module, {room for rooms in floors() for room in rooms}) for module in graph
    }


def test_an_import_upwards_or_sideways_is_found() -> None:
    graph: Graph = {
        "oneflow_lite.ops.registry": {"oneflow_lite.tensors.tensor": 3},
        "oneflow_lite.tensors.tensor": {"oneflow_lite.kernels": 4, "oneflow_lite.errors": 5},
        "oneflow_lite.static.ir.program": {"oneflow_lite.static": 6},
    }
    wrong = against_the_picture(graph)
    assert [line.partition(":")[0] for line in wrong] == [
        "oneflow_lite.ops.registry, line 3",
        "oneflow_lite.tensors.tensor, line 4",
        "oneflow_lite.static.ir.program, line 6",
    ]


def test_few_files_stand_outside_of_rooms() -> None:
    assert len(list(ROOT.glob("*.py"))) <= 18


def test_each_room_says_what_it_is_for() -> None:
    for room in sorted({room for rooms in floors() for room in rooms}):
        folder = ROOT / room
        if folder.is_dir():
            said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8")))
            assert said is not None and "It imports" in said, room


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
    graph_of.cache_clear()
    assert circle(graph_of(package)) == []
