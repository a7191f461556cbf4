"""`python -m tests.installation dist`: install each distribution in a fresh environment, use it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

CHECK = Path(__file__).resolve().with_name("installed_check.py")


def check(distribution: Path) -> None:
    """Install one distribution outside of the tree, and run `installed_check.py` there."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python"
        quiet = ["--quiet", "--disable-pip-version-check"]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        for command in (
            [python, "-m", "pip", "install", *quiet, str(distribution.resolve())],
            [python, "-I", CHECK],  # neither the tree nor the caller's packages are found
        ):
            subprocess.run(command, cwd=folder, env=environment, check=True)


def main() -> int:
    """Check the wheel and the source distribution in a folder."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "dist")
    found = [*folder.glob("*.whl"), *folder.glob("*.tar.gz")]
    if len(found) != 2:
        print(f"{folder}: expected a wheel and a source distribution, got {len(found)} files")
        return 1
    for distribution in found:
        print(distribution.name, flush=True)
        check(distribution)
    return 0


if __name__ == "__main__":
    sys.exit(main())
