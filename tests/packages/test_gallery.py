"""The gallery of packages: what it lists, and what of it the environment has."""

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packages import run
from tests.packages.run import Outcome, Start
from tests.scripts.run import PAGE

STARTS = run.starts()
SECTION = PAGE.read_text().split(run.START)[1].split(run.END)[0]


def installed(start: Start) -> bool:
    try:
        return importlib.metadata.version(start.package) == start.version
    except importlib.metadata.PackageNotFoundError:
        return False


def test_quick_starts_are_many_and_small() -> None:
    assert len(STARTS) >= 40
    for start in STARTS:
        text = (run.STARTS / f"{start.name}.py").read_text()
        compile(text, start.name, "exec")
        assert text.count("\n") <= 60 and "print(" in text, start.name


def test_the_page_lists_each() -> None:
    missing = [s.name for s in STARTS if f"{s.package} {s.version} | `{s.name}`: " not in SECTION]
    assert not missing and SECTION.count(" | `") == len(STARTS)


@pytest.mark.slow
@pytest.mark.parametrize("start", [s for s in STARTS if s.quick], ids=lambda start: start.name)
def test_quick_starts_agree(start: Start) -> None:
    if not installed(start):
        pytest.skip(f"{start.package} {start.version} is not there; make packages has it")
    pytest.importorskip("torch")
    python = Path(sys.executable)
    assert run.run(start, python, python).verdict == "agrees"


@pytest.mark.slow
def test_a_log_of_each_side(tmp_path: Path) -> None:
    script = tmp_path / "start.py"
    script.write_text(
        'import torch\nfor i in range(3):\n    print(torch.rand(2) + i)\nprint("x", 1)'
    )
    pytest.importorskip("torch")
    logs = {}
    for library in ("torch", "ours"):
        log = tmp_path / f"{library}.json"
        subprocess.run(
            [sys.executable, "-m", "tests.packages.side", library, script, log],
            cwd=run.ROOT, check=True,
        )  # fmt: skip
        logs[library] = json.loads(log.read_text())
    assert logs["torch"]["values"] == pytest.approx(logs["ours"]["values"])
    assert len(logs["ours"]["values"]) == 7 and len(logs["ours"]["times"]) == 4


def test_what_the_table_says() -> None:
    start = Start("name", "package", "1.0", "it learns.", True)
    theirs = {"values": [1.0, 2.0], "error": "", "runs": [[0.0, 1.0, 1.5, 2.0], [0.0, 2.0, 3.0]]}
    ours = {"values": [1.0, 2.0], "error": "", "runs": [[0.0, 3.0, 4.0, 5.0]]}
    good = Outcome(start, theirs, ours, True)
    assert good.verdict == "agrees" and good.ratios == (2.0, 3.0)
    apart = good._replace(ours={**ours, "values": [1.0, 2.001]})
    assert apart.verdict == "differs by 5.0e-04 in float64"
    nothing = good._replace(ours={"values": [1.0, float("nan")], "error": ""})
    assert nothing.verdict == "differs by inf in float64"
    broken = good._replace(ours={"values": [], "error": "TypeError: a | b"})
    section = run.table([good, apart, broken])
    assert "Of 3 quick-starts 1 agree" in section and "| TypeError: a / b |" in section
    assert "| package 1.0 | `name`: it learns | 0e+00 | 2.0 | 3.0 | float64 |" in section
