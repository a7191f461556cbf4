"""Freed memory is kept on glibc, and only where the user has not said otherwise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = "from oneflow_lite.host_memory import keep_freed_memory; print(keep_freed_memory())"


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


STEP = """
import oneflow_lite as flow
from tests.benchmarks.memory import resident

x = flow.randn(1024, 1024).requires_grad_()

@flow.compile
def step():
    y = x
    for _ in range(20):
        y = (y + 1) * 2
    y.sum().backward()
    x.grad = None

flow.use_jit(False)
begin = resident()
step()
recorded = resident()
for _ in range(3):
    step()
print(recorded - begin >> 20, resident() - begin >> 20)
"""


@pytest.mark.skipif(not on_glibc(), reason="the C library is not glibc")
def test_a_replay_gives_back_what_the_recording_freed(tmp_path):
    (tmp_path / "step.py").write_text(STEP, encoding="utf-8")
    there = os.pathsep.join(map(str, [Path(__file__).parents[1], os.environ.get("PYTHONPATH", "")]))
    recorded, replayed = map(int, answer(str(tmp_path / "step.py"), PYTHONPATH=there).split())
    assert recorded > 60 and replayed < recorded - 30
