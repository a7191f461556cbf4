"""Worlds of 1, 2 and 4 under mpiexec: each launch runs all cases of a module on every rank."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import oneflow_lite as flow
from oneflow_lite.distributed import faults
from oneflow_lite.errors import ArgumentError, DistributedError
from tests import strict_cupy
from tests.distributed.launch import start
from tests.distributed.soak import soak

SIZES = (1, 2, 4)
MODULES = ("cases_collectives", "cases_training", "cases_checkpoint", "cases_global")


def run_cases(size: int, *modules: str, **variables: str) -> None:
    command = ("-m", "tests.distributed.launch", *modules)
    status, said = start(size, *command, seconds=240, **variables)
    assert status == 0, said
    assert said.count("all cases passed") == max(size, 1), said


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a directory where a world leaves checkpoints for worlds of other sizes."""
    return str(tmp_path_factory.mktemp("checkpoints"))


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_cases_pass_in_a_world(size: int, checkpoints: str) -> None:
    modules = {1: MODULES[:2], 2: (*MODULES, "cases_global_sweep"), 4: MODULES}[size]
    run_cases(size, *modules, GLOBAL_CHECKPOINTS=checkpoints)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("size", (1, 2))
def test_cases_pass_by_nccl(size: int) -> None:
    if strict_cupy.real_device_present():
        pytest.skip("a real device is here, and the stand-in is not used")
    run_cases(size, "cases_cuda")


@pytest.mark.parametrize("module", MODULES)
def test_a_script_that_mpiexec_did_not_start_is_a_world_of_one(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same cases, in this process; mpi4py is not imported."""
    monkeypatch.setattr(sys, "argv", ["launch", module])
    for name in [name for name in sys.modules if name.partition(".")[0] == "mpi4py"]:
        monkeypatch.delitem(sys.modules, name)
    cases = importlib.import_module(f"tests.distributed.{module}")
    flow.distributed.init_process_group()
    try:
        for name, case in list(vars(cases).items()):  # a warning leaves its registry there
            if name.startswith("case_"):
                case()
    finally:
        flow.distributed.destroy_process_group()
    assert "mpi4py" not in sys.modules


# What a program does, whether its output names the rank, and what else it says
FAULTS = {
    "raises": ("[rank 1 of 2] raised KeyError", "a bad sample"),
    "dies": ("[rank 1 of 2] process ", "was killed"),
    "exits_silently": ("[rank 1 of 2] process ", "called os._exit("),
    "destroys": (
        "rank 0 of the world waits in all_reduce",
        "rank 1 of the world has left the world by destroy_process_group()",
    ),
    "destroys_a_group": (
        "rank 0 of group 1 [0, 1] waits in barrier()",
        "rank 1 of the world has left group 1 [0, 1] by destroy_process_group()",
    ),
    "destroys_and_sends_nothing": (
        "got [1.0, 1.0, 1.0]",
        "waits in recv(from rank 1",
        "rank 1 of the world has left the world by destroy_process_group()",
    ),
    "dies_in_backward": ("[rank 1 of 2] process ", "was killed"),
    "exits": ("rank 0 of the world waits in all_reduce", "rank 1 of the world has ended"),
    "leaves_training": ("rank 0 of the world waits in all_reduce", "rank 1 of the world has ended"),
    "begins_again": ("[rank 1 of 2] raised KeyError", "a bad sample"),
    "ends": ("rank 0 of the world waits in all_reduce", "rank 1 of the world has ended"),
    "dawdles": ("rank 0 of the world: all_reduce(float32 (3,), sum) was not done after 2 s",),
    "receives_nothing": ("rank 1 of the world: recv(from rank 0, tag=0)", "after 2 s"),
}


def _processes(pattern: str) -> str:
    """Return the numbers of the processes whose command line has a pattern in it."""
    found = subprocess.run(["pgrep", "-f", pattern], stdout=subprocess.PIPE, text=True, check=False)
    return found.stdout


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("fault", FAULTS)
def test_one_that_fails_ends_the_others(fault: str) -> None:
    begun = time.monotonic()
    status, said = start(2, "-m", "tests.distributed.faults", fault, seconds=25)
    assert status != 0 or fault == "exits_silently", said  # mpiexec returns its 0
    assert time.monotonic() - begun < 15, said
    for text in FAULTS[fault]:
        assert text.lower() in said.lower(), said
    until = time.monotonic() + 5  # they are on their way out when mpiexec ends
    while (left := _processes(f"tests.distributed.faults {fault}$")) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left, "processes were left behind"


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="nothing watches processes here")
def test_ranks_that_were_killed_before_somebody_looks_are_all_named() -> None:
    ranks = [subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1) for _ in range(3)]
    try:
        for rank in ranks[1:]:
            rank.kill()
            os.waitid(os.P_PID, rank.pid, os.WEXITED | os.WNOWAIT)  # it stays to be looked at
        listed = [f"{number}:{rank.pid}" for number, rank in enumerate(ranks)]
        command = [sys.executable, "-c", faults._WATCHER, f"test-{os.getpid()}", "3", *listed]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()
    assert [line.partition("]")[0] for line in said.splitlines()] == [
        "[rank 1 of 3",
        "[rank 2 of 3",
    ]


@pytest.mark.slow
def test_training_survives_the_death_of_ranks() -> None:
    seed = int.from_bytes(os.urandom(4))
    assert soak(5, seed) >= 1


def test_without_a_world() -> None:
    dist = flow.distributed
    assert dist.is_available() and not dist.is_initialized()
    for call in (dist.get_rank, dist.barrier, dist.new_group, dist.destroy_process_group):
        with pytest.raises(ArgumentError, match="has not been initialized"):
            call()
    with pytest.raises(ValueError, match="has not been initialized"):
        dist.all_reduce(flow.ones(1))
    with pytest.raises(ArgumentError, match="'mpi', 'gloo', 'nccl' or None"):
        dist.init_process_group("tcp")
    with pytest.raises(TypeError, match="timeout"):
        dist.init_process_group(timeout=3)
    with pytest.raises(ArgumentError, match="world_size"):
        dist.init_process_group(world_size=4)
    assert not dist.is_initialized()


def test_a_world_of_another_launcher_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(DistributedError, match="start the script with mpiexec"):
        flow.distributed.init_process_group()


def test_programs_with_collectives_are_saved_and_read(tmp_path: Path) -> None:
    dist = flow.distributed
    dist.init_process_group()
    try:
        program = flow.static.Program()
        with flow.static.program_guard(program):
            x = flow.static.data("x", [2], "float32")
            y = dist.nn.functional.all_reduce(x * 2)
        flow.static.save(program, tmp_path / "program")
        read, *_ = flow.static.load(tmp_path / "program")
        (found,) = flow.static.Executor().run(read, {"x": flow.ones(2).numpy()}, [y.name])
        assert found.tolist() == [2, 2]
        assert str(read) == str(program)
    finally:
        dist.destroy_process_group()


SCRIPT = """
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.distributed.algorithms.join import Join
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
assert (rank, size) == (dist.get_rank(), dist.get_world_size())
assert dist.is_initialized() and dist.get_backend() in ("gloo", "nccl")
torch.manual_seed(0)
data = TensorDataset(torch.randn(16, 2), torch.randn(16, 1))
net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4)))
net = DDP(nn.Sequential(net, nn.Linear(4, 1)))
net.register_comm_hook(None, fp16_compress_hook)
sampler = DistributedSampler(data, num_replicas=size, rank=rank)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in DataLoader(data, batch_size=4, sampler=sampler):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()
uneven = DDP(nn.Linear(2, 1))
with Join([uneven]):
    for _ in range(1 + rank):
        uneven(torch.ones(1, 2)).sum().backward()
total = torch.ones(1)
dist.all_reduce(total, op=dist.ReduceOp.SUM)
dist.barrier()
if rank == 0:
    print("summed", total.item(), type(net).__module__)
dist.destroy_process_group()
"""


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("size", (0, 2))
def test_a_script_written_for_pytorch(size: int, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    status, said = start(size, "-m", "oneflow_lite.mock_torch", str(tmp_path / "train.py"))
    assert status == 0, said
    assert f"summed {max(size, 1)}.0 oneflow_lite.nn.parallel.distributed" in said, said


@pytest.mark.slow
def test_the_example_trains(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="the demo's digits come with scikit-learn")
    kept = ("--model", "transformer", "--checkpoints", str(tmp_path))
    for options in (("--shard", "--steps", "1"), (*kept, "--steps", "1"), (*kept, "--steps", "2")):
        command = ("docs/examples/train_distributed.py", *options)
        status, said = start(2, *command)
        assert status == 0 and "The ranks' parameters are equal." in said, said
    assert flow.distributed.checkpoint.saved(tmp_path) == [1, 2]
