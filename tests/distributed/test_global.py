"""Global tensors in worlds of 1, 2 and 4: each launch runs all cases on every rank."""

from __future__ import annotations

import pytest

import oneflow_lite as flow
from tests.distributed.launch import start


@pytest.mark.parametrize("size", (0, 1, 2, 4))
def test_cases_pass_in_a_world(size: int) -> None:
    status, said = start(size, "-m", "tests.distributed.launch", "cases_global", seconds=150)
    assert status == 0, said
    assert said.count("all cases passed") == max(size, 1), said


def test_every_op_in_several_signatures() -> None:
    command = ("-m", "tests.distributed.launch", "cases_global_sweep")
    status, said = start(2, *command, seconds=200)
    assert status == 0 and said.count("all cases passed") == 2, said


def test_without_a_world_one_rank_is_there() -> None:
    where = flow.placement("cpu", ranks=[0])
    x = flow.arange(6.0).reshape(2, 3).to_global(where, flow.sbp.split(0))
    assert not flow.distributed.is_initialized()
    assert x.is_global and not x.to_local().is_global
    assert (x @ x.t()).numpy().tolist() == [[5, 14], [14, 50]]
