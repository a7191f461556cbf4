"""Freed memory is kept on glibc, and only where the user has not said otherwise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import oneflow_lite as flow
from oneflow_lite.static.runtime import straight_line

CODE = "from oneflow_lite.arrays.host_memory import keep_freed_memory; print(keep_freed_memory())"


def answer(*run, **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_"))}
    environment.pop("ONEFLOW_LITE_KEEP_MEMORY", None)
    done = subprocess.run(
        [sys.executable, *(run or ("-c", CODE))],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def on_glibc():
    return sys.platform.startswith("linux") and "glibc" in (os.confstr("CS_GNU_LIBC_VERSION") or "")


@pytest.mark.skipif(not on_glibc(), reason="the C library is not glibc")
def test_is_asked_for_on_glibc():
    assert answer() == "True"


@pytest.mark.parametrize(
    "variables",
    [
        {"ONEFLOW_LITE_KEEP_MEMORY": "0"},
        {"MALLOC_TRIM_THRESHOLD_": "131072"},
        {"GLIBC_TUNABLES": "glibc.malloc.check=0"},
    ],
)
def test_leaves_malloc_to_a_user_who_tunes_it(variables):
    assert answer(**variables) == "False"


FREED = """
import numpy as np
from oneflow_lite.arrays.host_memory import give_back_freed_memory, keep_freed_memory
from tests.benchmarks.memory import resident

keep_freed_memory()
arrays = [np.ones(1 << 17) for _ in range(100)]  # of a megabyte each
pins = [np.ones(1 << 12) for _ in range(10)]  # above them in the heap
begin = resident()
arrays.clear()
freed = resident()
give_back_freed_memory()
print(begin - freed >> 20, begin - resident() >> 20)
"""


@pytest.mark.skipif(not on_glibc(), reason="the C library is not glibc")
def test_freed_memory_is_given_back(tmp_path):
    (tmp_path / "freed.py").write_text(FREED, encoding="utf-8")
    there = os.pathsep.join(map(str, [Path(__file__).parents[2], os.environ.get("PYTHONPATH", "")]))
    kept, given = map(int, answer(str(tmp_path / "freed.py"), PYTHONPATH=there).split())
    assert kept < 30 and given > 70


@pytest.mark.parametrize("size, times", [(1024, 1), (8, 0)])
def test_the_first_replay_of_a_large_step_gives_back(size, times, monkeypatch):
    calls = []
    monkeypatch.setattr(straight_line, "give_back_freed_memory", lambda: calls.append(1))
    x = flow.ones(size, size)

    @flow.compile
    def step():
        y = x
        for _ in range(20):
            y = (y + 1) * 2
        return y

    for _ in range(4):
        step()
    assert len(calls) == times
