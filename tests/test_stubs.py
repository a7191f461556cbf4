"""The index of names and the stubs say what the declarations say."""

import subprocess
import sys
from pathlib import Path


def test_generated_files_are_up_to_date() -> None:
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "tests.stubs"], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run python -m tests.stubs --write"
