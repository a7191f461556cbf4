"""Starts worlds: `python -m tests.distributed.launch MODULE ...` is what each rank runs."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def mpiexec() -> str:
    """Return the launcher; skip the test where there is none, or no mpi4py."""
    pytest.importorskip("mpi4py", reason="worlds of several processes need mpi4py")
    found = shutil.which("mpiexec", path=sysconfig.get_path("scripts")) or shutil.which("mpiexec")
    if found is None:
        pytest.skip("worlds of several processes need mpiexec, as the wheel mpich brings it")
    return found


def start(size: int, *command: str, seconds: float = 60, **variables: str) -> tuple[int, str]:
    """Run a Python command as a world of `size`; return its exit status and what it printed."""
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    launcher = [mpiexec(), "-n", str(size)] if size else []
    done = subprocess.run(
        [*launcher, sys.executable, *command],
        env=environment | variables,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=seconds,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def main() -> None:
    """Run each case of some modules, in order; the first failure ends the world.

    Words that begin with `case_` choose cases.
    """
    from datetime import timedelta

    import oneflow_lite as flow

    chosen = [word for word in sys.argv[1:] if word.startswith("case_")]
    modules = [word for word in sys.argv[1:] if word.startswith("cases_")]
    flow.distributed.init_process_group(timeout=timedelta(seconds=20))
    for found in [vars(importlib.import_module(f"tests.distributed.{each}")) for each in modules]:
        for name in [name for name in found if name.startswith("case_")]:
            if not chosen or name in chosen:
                flow.distributed.barrier()
                if flow.distributed.get_rank() == 0:
                    print(name, flush=True)
                found[name]()
    flow.distributed.barrier()
    flow.distributed.destroy_process_group()
    print("all cases passed")


if __name__ == "__main__":
    main()
