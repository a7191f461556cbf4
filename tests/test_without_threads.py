"""The package where no thread, process, C library or `mmap` is, as in a browser's Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
ROOT = Path(__file__).resolve().parents[1]

WITHOUT = """
import _thread, ctypes, importlib.abc, os, sys, threading

ABSENT = {"multiprocessing", "_multiprocessing", "mmap", "fcntl", "resource", "_posixshmem"}

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

class NoLibrary(ctypes.CDLL):
    def __init__(self, *args, **kwargs):
        raise OSError("no library can be loaded")

def start(*given):
    raise RuntimeError("can't start new thread")

for name in list(sys.modules):
    if name.partition(".")[0] in ABSENT:
        del sys.modules[name]
sys.meta_path.insert(0, Absent())
ctypes.CDLL, threading.Thread.start, _thread.start_new_thread = NoLibrary, start, start
for name in ("fork", "register_at_fork", "sched_getaffinity", "posix_spawn"):
    if hasattr(os, name):
        delattr(os, name)
os.environ["OMP_NUM_THREADS"] = "4"
"""
DIGITS = """
import importlib.util, pathlib
import numpy as np
import oneflow_lite as flow

nn = flow.nn
(folder,) = importlib.util.find_spec("sklearn").submodule_search_locations
file = pathlib.Path(folder) / "datasets" / "data" / "digits.csv.gz"  # its code needs processes
scans = np.loadtxt(file, delimiter=",", dtype="float32")
images = flow.tensor(scans[:, :-1] / 16).reshape(-1, 1, 8, 8)
samples = flow.utils.data.TensorDataset(images, flow.tensor(scans[:, -1]).long())
flow.manual_seed(0)
layers = [nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 10)]
network = nn.Sequential(*layers)
optimizer = flow.optim.Adam(network.parameters(), lr=0.01)

@flow.compile
def step(batch, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(network(batch), labels)
    loss.backward()
    optimizer.step()
    return loss.detach()

for batch, labels in flow.utils.data.DataLoader(samples, batch_size=64, shuffle=True):
    loss = step(batch, labels)
assert loss.item() < 1.5, loss
assert step.explain().hits > 20
"""
EVERYTHING_ELSE = """
import io, pathlib, tempfile
import numpy as np
import oneflow_lite as flow

large = flow.randn(2_000_000, requires_grad=True)
flow.nn.functional.gelu(large).sum().backward()
assert flow.isfinite(large.grad).all()
with tempfile.TemporaryDirectory() as folder:
    flow.save({"x": large.detach()}, pathlib.Path(folder) / "x")
    assert flow.equal(flow.load(pathlib.Path(folder) / "x")["x"], large.detach())
program = flow.static.Program()
with flow.static.program_guard(program):
    y = flow.static.data("x", [2]).exp()
for mode in ("straight_line", "numpy", "work_queue"):
    run = flow.static.Executor(mode=mode).run(program, {"x": np.zeros(2, "float32")}, [y])
    assert run[0].tolist() == [1, 1]
with flow.profiler.profile() as profile:
    large.sum()
assert "sum" in str(profile.key_averages())
assert flow.vmap(lambda x: x.sum())(flow.ones(3, 2)).tolist() == [2, 2, 2]
try:
    list(flow.utils.data.DataLoader(list(range(4)), num_workers=2))
except flow.errors.WorkerError as error:
    assert "num_workers" in str(error) and "multiprocessing" in str(error)
else:
    raise AssertionError("processes have been started")
"""


def _run(script: str, folder: Path) -> None:
    file = folder / "script.py"  # flow.compile looks for the text of functions
    file.write_text(WITHOUT + script)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(file)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_digits_are_trained(tmp_path: Path) -> None:
    _run(DIGITS, tmp_path)


def test_all_else_works_or_says_what_it_lacks(tmp_path: Path) -> None:
    _run(EVERYTHING_ELSE, tmp_path)
