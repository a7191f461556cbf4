"""Global tensors of one rank; tests/distributed/test_worlds.py has them in worlds of 1, 2 and 4."""

from __future__ import annotations

import oneflow_lite as flow


def test_without_a_world_one_rank_is_there() -> None:
    where = flow.placement("cpu", ranks=[0])
    x = flow.arange(6.0).reshape(2, 3).to_global(where, flow.sbp.split(0))
    assert not flow.distributed.is_initialized()
    assert x.is_global and not x.to_local().is_global
    assert (x @ x.t()).numpy().tolist() == [[5, 14], [14, 50]]
