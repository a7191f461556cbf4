"""Each row of the table of differences names a test that is there, and each such test has a row."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "coming_from.md").read_text("utf-8")
LIBRARIES = {"PyTorch", "OneFlow", "Paddle", "JAX", "HIPS", "Chainer"}
DEFAULT = "tests/test_differences.py"


@cache
def found_in(file: str) -> set[str]:
    """Return the names of the tests of a file, as `test_a` and `TestB::test_c`."""
    names = set()
    for node in ast.parse((ROOT / file).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            functions = [n.name for n in node.body if isinstance(n, ast.FunctionDef)]
            names.update(f"{node.name}::{name}" for name in functions)
    return {name for name in names if name.rpartition("::")[2].startswith("test_")}


def read_rows() -> list[tuple[str, str, str, list[str]]]:
    """Return the rows of the one table: from, there, here, tests."""
    (table,) = re.findall(
        r"<!-- differences: begin -->\n(.*?)\n<!-- differences: end -->", PAGE, re.S
    )
    rows = []
    for line in table.splitlines()[2:]:
        if not line.startswith("| **"):  # the title of a group
            start, there, here, tests = [c.strip() for c in line.strip("|").split(" | ")]
            rows.append((start, there, here, re.findall(r"`([^`]+)`", tests)))
    return rows


ROWS = read_rows()


@pytest.mark.parametrize("row", ROWS, ids=[row[1] for row in ROWS])
def test_a_row_names_libraries_and_tests(row: tuple[str, str, str, list[str]]) -> None:
    start, there, here, tests = row
    assert set(start.split(", ")) <= LIBRARIES
    assert there
    assert here
    assert tests
    for test in tests:
        file, _, name = test.rpartition("::") if "/" not in test else test.partition("::")
        assert name in found_in(file or DEFAULT), test


def test_each_test_of_a_difference_has_a_row() -> None:
    named = {test for row in ROWS for test in row[3]}
    assert found_in(DEFAULT) - named == set()


def test_each_library_has_rows_and_a_section() -> None:
    assert {name for row in ROWS for name in row[0].split(", ")} == LIBRARIES
    sections = re.findall(r"^## From (\w+)", PAGE, re.MULTILINE)
    assert set(sections) == LIBRARIES


def test_nothing_stands_in_two_rows() -> None:
    assert len({row[1] for row in ROWS}) == len(ROWS) > 80
