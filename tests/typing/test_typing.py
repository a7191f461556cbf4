"""Type checkers read a script: exact types where it is right, an error on each mistake."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MYPY = [sys.executable, "-m", "mypy", "--strict"]


def complaints(command: list[str], script: str) -> tuple[set[int], str]:
    """Return the lines of a script in which a checker finds errors, and all that it says."""
    done = subprocess.run(
        [*command, str(HERE / script)],
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    found = re.findall(rf"{script}:(\d+)(?::\d+)?(?: - |: )error", said)
    assert found or done.returncode == 0, said
    return {int(line) for line in found}, said


@pytest.fixture(params=["mypy", "pyright"])
def checker(request: pytest.FixtureRequest) -> list[str]:
    """The command of a type checker that is installed."""
    if request.param == "mypy":
        pytest.importorskip("mypy")
        return MYPY
    path = shutil.which("pyright", path=str(Path(sys.executable).parent))
    return [path] if path else pytest.skip("pyright is not installed")


@pytest.mark.slow
def test_common_use_has_exact_types(checker: list[str]) -> None:
    found, said = complaints(checker, "common_use.py")
    assert found == set(), said


@pytest.mark.slow
def test_each_mistake_is_found(checker: list[str]) -> None:
    lines = (HERE / "mistakes.py").read_text().splitlines()
    planted = {number for number, line in enumerate(lines, 1) if "# mistake: " in line}
    found, said = complaints(checker, "mistakes.py")
    assert len(planted) == 10
    assert found == planted, said


def test_common_use_runs() -> None:
    assert runpy.run_path(str(HERE / "common_use.py"))["main"]() > 0
