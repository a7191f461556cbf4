"""The tables of docs/compile_rules.md: each row is run, and does what the page says."""

from __future__ import annotations

import importlib.util
import itertools
import random
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import oneflow_lite as flow
from oneflow_lite.compiler.function import Explanation
from oneflow_lite.errors import CaptureError
from tests.compiler.capture.worlds import snapshot
from tests.compiler.reasons import check_reason
from tests.texts import named

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "compile_rules.md").read_text("utf-8")
(PREAMBLE,) = (b for b in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if ">>>" not in b)

Load = Callable[[str, str], ModuleType]


def rows(title: str) -> list[tuple[str, str, str]]:
    """Return the rows of the table whose first column has this title."""
    (table,) = re.findall(rf"^\| {title} \|.*\n\|[- |]*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    found = [tuple(cell.strip() for cell in row[1:-1].split(" | ")) for row in table.splitlines()]
    assert len(found) > 5
    assert all(len(cells) == 3 for cells in found)
    return found  # type: ignore[return-value]


def by_row(title: str) -> Any:
    return pytest.mark.parametrize(
        ("example", "text"),
        [pytest.param(example, text, id=what) for what, example, text in rows(title)],
    )


def lines(cell: str) -> str:
    """Return the code in a cell, whose statements are parted by semicolons."""
    assert cell.startswith("`"), cell
    assert cell.endswith("`"), cell
    return cell[1:-1].replace("; ", "\n")


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Return a function that makes a module around one more function `f`."""
    numbers = itertools.count()

    def load_module(parameters: str, body: str) -> ModuleType:
        name = f"compile_page_{next(numbers)}"
        path = tmp_path / f"{name}.py"
        code = "\n    ".join(body.splitlines())
        path.write_text(f"{PREAMBLE}\n\ndef f({parameters}):\n    {code}\n", "utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        flow.manual_seed(0)
        spec.loader.exec_module(module)
        return module

    return load_module


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    """Put back what rows switch for the whole process or thread."""
    dtype = flow.get_default_dtype()
    yield
    flow.set_default_dtype(dtype)
    flow.set_grad_enabled(True)


@by_row("what ends a recording")
def test_a_recording_ends(load: Load, example: str, text: str) -> None:
    reason = ".*".join(map(re.escape, text.replace("\\", "").split("…")))
    compiled = flow.compile(load("x", lines(example)).f)
    plain = load("x", lines(example)).f
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(4):
            seen = []
            for function in (compiled, plain):
                flow.manual_seed(i)
                random.seed(i)
                seen.append(snapshot(function(flow.tensor([1.0, 2.0]))))
            assert seen[0] == seen[1]
    said = compiled.explain()
    assert (said.captures, said.hits) == (0, 0)
    assert said.fallbacks
    assert [r for r in said.reasons if re.search(reason, r)] == said.reasons
    for each in (*said.reasons, said.why):
        check_reason(each, ())
    assert sum("runs eagerly" in str(w.message) for w in caught) == 1
    with pytest.raises(CaptureError, match=reason):
        flow.compile(load("x", lines(example)).f, fullgraph=True)(flow.tensor([1.0, 2.0]))


def calls_around(load: Load, example: str, change: str) -> Iterator[Explanation]:
    """Call a function before and after a change, and the plain one next to it; give `explain()`."""
    worlds = [load("x, n", lines(example)) for _ in range(2)]
    compiled = flow.compile(worlds[0].f)
    for world in worlds:
        world.x, world.n = flow.tensor([[1.0, 2.0], [3.0, 4.0]]), 2
    for i in range(4):
        seen = []
        for world, function in zip(worlds, (compiled, worlds[1].f), strict=True):
            flow.manual_seed(i)
            if i == 2:
                exec(compile(lines(change), named(lines(change)), "exec"), vars(world))
            result = function(world.x, world.n)
            seen.append(snapshot([result, world.w, world.net, world.norm, world.optimizer]))
        assert seen[0] == seen[1]
        yield compiled.explain()


@by_row("what becomes a guard")
def test_a_guard_fails(load: Load, example: str, text: str) -> None:
    said = list(calls_around(load, example, text))
    before = said[1].captures
    assert said[2].captures == before + 1
    if not lines(text).startswith("net[0] = "):  # the recording goes with the layer
        check_reason(said[2].why, ("x", "n", "w", "net", "config", "table", "numbers", "optimizer"))
    assert said[3].hits > said[1].hits
    assert said[3].fallbacks == 0


@by_row("what may change")
def test_a_replay_goes_on(load: Load, example: str, text: str) -> None:
    said = list(calls_around(load, example, text))
    assert [s.captures for s in said] == [1] * 4
    assert [s.hits for s in said] == [0, 1, 2, 3]
