"""Rewritten functions behave as before: on each interpreter found, over its standard library."""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
WORKLOADS = Path(__file__).with_name("workloads.py")
FOLDERS = (
    "~/.pyenv/versions/{}*/bin",
    "~/.local/share/uv/python/cpython-{}*/bin",
    "/usr/local/bin",
)


@cache
def interpreters() -> dict[str, str]:
    """The interpreters found, by version: this one, those on the path, uv's and pyenv's."""
    found = {".".join(map(str, sys.version_info[:2])): sys.executable}
    for version in VERSIONS:
        name = f"python{version}"
        folders = [os.path.expanduser(folder.format(version)) for folder in FOLDERS]
        paths = [path for folder in folders for path in sorted(glob.glob(f"{folder}/{name}"))]
        for path in filter(None, [*paths, shutil.which(name)]):
            if version not in found and runs(path):
                found[version] = path
    return found


def runs(path: str) -> bool:
    """Return whether an interpreter starts (a shim of a version that is not installed does not)."""
    return subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_standard_library(version: str) -> None:
    """The same results, exceptions and lines of tracebacks, and nothing done unobserved."""
    if version not in interpreters():
        pytest.skip(f"no interpreter of Python {version} was found")
    run = subprocess.run(
        [interpreters()[version], "-BW", "ignore", str(WORKLOADS)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": "0"},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report["different"] == []
    assert report["refused"] == {"f.<locals>.g": "an async function"}  # of a construct
    assert report["native"] == []
    assert report["workloads"] >= 100
    assert report["constructs"] >= 190
    assert report["entered"] >= 1200
