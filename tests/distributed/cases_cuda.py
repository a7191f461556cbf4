"""The part of each rank with CUDA arrays, by NCCL: on the strict stand-in."""

from __future__ import annotations

from typing import Any

import numpy as np

import oneflow_lite as flow
import oneflow_lite.distributed as dist
from oneflow_lite.errors import DistributedError, DTypeError
from oneflow_lite.nn.parallel import DistributedDataParallel
from tests import strict_cupy
from tests.distributed.cases_collectives import DTYPES, of_rank, raises, reduced, world

strict_cupy.install()
F = dist.nn.functional
ReduceOp = dist.ReduceOp


def on_device(array: Any) -> Any:
    return flow.tensor(array, device="cuda")


def same(x: Any, wanted: Any) -> bool:
    return bool(x.device.type == "cuda") and np.array_equal(x.cpu().numpy(), wanted)


def case_collectives_of_every_dtype() -> None:
    rank, n = world()
    for dtype in DTYPES:
        arrays = [of_rank(r, dtype) for r in range(n)]
        x = on_device(arrays[rank])
        dist.all_reduce(x)
        assert same(x, reduced(ReduceOp.SUM, arrays)), dtype
        work = dist.all_reduce(y := on_device(arrays[rank]), async_op=True)
        assert work is not None
        work.wait()
        assert same(y, reduced(ReduceOp.SUM, arrays)), dtype
        joined = flow.zeros(n, 2, 3, dtype=x.dtype, device="cuda")
        dist.all_gather_into_tensor(joined, on_device(arrays[rank]))
        assert same(joined, np.stack(arrays))
        for target in range(n):
            x = on_device(arrays[rank])
            dist.broadcast(x, target)
            assert same(x, arrays[target])
            x = on_device(arrays[rank])
            dist.reduce(x, target)
            assert rank != target or same(x, reduced(ReduceOp.SUM, arrays))
            listed = None
            if rank == target:
                listed = [flow.zeros(2, 3, dtype=x.dtype, device="cuda") for _ in range(n)]
            dist.gather(on_device(arrays[rank]), listed, target)
            assert listed is None or all(map(same, listed, arrays))
            x = flow.zeros(2, 3, dtype=x.dtype, device="cuda")
            sent = [on_device(a) for a in arrays] if rank == target else None
            dist.scatter(x, sent, target)
            assert same(x, arrays[rank])
        x = flow.zeros(2, 3, dtype=x.dtype, device="cuda")
        dist.reduce_scatter(x, [on_device(of_rank(rank + r, dtype)) for r in range(n)])
        assert same(x, reduced(ReduceOp.SUM, [of_rank(rank + r, dtype) for r in range(n)]))
        x = flow.zeros(2 * n, 3, dtype=x.dtype, device="cuda")
        rows = np.concatenate([of_rank(9 * rank + r, dtype) for r in range(n)])
        dist.all_to_all_single(x, on_device(rows))
        assert same(x, np.concatenate([of_rank(9 * r + rank, dtype) for r in range(n)]))


def case_reductions() -> None:
    rank, n = world()
    arrays = [of_rank(r, "float32") for r in range(n)]
    for op in (ReduceOp.AVG, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX):
        x = on_device(arrays[rank])
        dist.all_reduce(x, op)
        assert same(x, reduced(op, arrays))
    if n > 1:
        raises(
            DTypeError, "NCCL", dist.all_reduce, on_device(of_rank(rank, "int32")), ReduceOp.BXOR
        )
        dist.barrier()


def case_messages() -> None:
    rank, n = world()
    if n == 1:
        return
    if rank == 0:
        dist.send(on_device(np.ones(3)), 1)
    elif rank == 1:
        x = flow.zeros(3, dtype=flow.float64, device="cuda")
        dist.recv(x, 0)
        assert same(x, np.ones(3))
    dist.barrier()


def case_calls_that_differ() -> None:
    rank, n = world()
    if n > 1:
        x = on_device(np.ones(2 + rank))
        raises(DistributedError, "rank 0: all_reduce(float64 (2,)", dist.all_reduce, x)
        dist.barrier()


def case_transfers_have_a_stream_of_their_own() -> None:
    _, n = world()
    if n == 1:
        return
    x = on_device(np.ones(3))
    strict_cupy.clear_log()
    work = dist.all_reduce(x, async_op=True)
    assert work is not None
    work.wait()
    names = [entry.name for entry in strict_cupy.log if isinstance(entry, strict_cupy.Call)]
    launched = names.index("nccl.allReduce")
    assert "Stream.wait_event" in names[:launched] and "Stream.wait_event" in names[launched:]
    assert not strict_cupy.transfers("d2h"), strict_cupy.log


def case_gradients_and_training() -> None:
    rank, n = world()
    x = flow.full((2,), 1.0 + rank, device="cuda", requires_grad=True)
    (dx,) = flow.autograd.grad((F.all_reduce(x) ** 2).sum(), x)
    assert same(dx, np.full(2, n * 2 * n * (n + 1) / 2, np.float32))
    rng = np.random.default_rng(0)
    data = rng.standard_normal((4 * n, 3)).astype(np.float32)
    flow.manual_seed(0)
    serial = flow.nn.Linear(3, 2)
    net = flow.nn.Linear(3, 2)
    net.load_state_dict(serial.state_dict())
    net = DistributedDataParallel(net.to("cuda"), bucket_cap_mb=1e-6)
    for module, inputs in ((net, on_device(data[4 * rank : 4 * rank + 4])), (serial, data)):
        module(flow.as_tensor(inputs)).square().mean().backward()
    for a, b in zip(net.parameters(), serial.parameters(), strict=True):
        assert np.allclose(a.grad.cpu().numpy(), b.grad.numpy(), atol=1e-6)
