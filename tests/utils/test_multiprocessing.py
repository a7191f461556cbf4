"""`torch.multiprocessing`: Python's, with `spawn`."""

from __future__ import annotations

from pathlib import Path

import pytest

import oneflow_lite as flow
from oneflow_lite.errors import WorkerError


def write(number: int, folder: str) -> None:
    (Path(folder) / str(number)).write_text(str(flow.ones(2).sum().item() + number))


def fail(number: int) -> None:
    if number == 1:
        raise ValueError("on purpose")


def test_spawn(tmp_path: Path) -> None:
    mp = flow.multiprocessing
    assert mp.spawn(write, (str(tmp_path),), nprocs=2) is None
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == ["2.0", "3.0"]
    context = mp.spawn(fail, nprocs=2, join=False)
    with pytest.raises(WorkerError, match="process 1"):
        while not context.join():
            pass
    assert mp.get_context("spawn") and mp.Queue and mp.set_sharing_strategy("x") is None
