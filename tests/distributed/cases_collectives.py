"""The part of each rank in a world of any size: collectives and their gradients."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np

import oneflow_lite as flow
import oneflow_lite.distributed as dist
from oneflow_lite.errors import ArgumentError, DistributedError, DTypeError
from oneflow_lite.ops.op_expr import op_expr

F = dist.nn.functional
DTYPES = "float16 float32 float64 int8 uint8 int16 int32 int64 complex64 complex128 bool".split()
ReduceOp = dist.ReduceOp


def world() -> tuple[int, int]:
    return dist.get_rank(), dist.get_world_size()


def of_rank(rank: int, dtype: str = "float64", shape: tuple[int, ...] = (2, 3)) -> Any:
    """Return the array that a rank has: small whole numbers, exact in every dtype."""
    count = int(np.prod(shape))
    values = (np.arange(count) + 3 * rank + 1) % 5 + 1
    if dtype == "bool":
        return (values > 3).reshape(shape)
    return values.astype(dtype).reshape(shape)


def reduced(op: ReduceOp, arrays: list[Any]) -> Any:
    stacked = np.stack(arrays)
    if stacked.dtype == bool:
        return stacked.any(0) if op in (ReduceOp.SUM, ReduceOp.MAX) else stacked.all(0)
    functions: dict[Any, Any] = {
        ReduceOp.SUM: np.sum,
        ReduceOp.AVG: np.mean,
        ReduceOp.PRODUCT: np.prod,
        ReduceOp.MIN: np.min,
        ReduceOp.MAX: np.max,
        ReduceOp.BAND: np.bitwise_and.reduce,
        ReduceOp.BOR: np.bitwise_or.reduce,
        ReduceOp.BXOR: np.bitwise_xor.reduce,
    }
    return functions[op](stacked, axis=0).astype(stacked.dtype)


def raises(kind: type[Exception], text: str, call: Any, *args: Any, **kwargs: Any) -> None:
    try:
        call(*args, **kwargs)
    except kind as error:
        assert text in str(error), str(error)
    else:
        raise AssertionError(f"{call} raised nothing")


def case_all_reduce_of_every_dtype_and_reduction() -> None:
    rank, n = world()
    for dtype in DTYPES:
        kind = np.dtype(dtype).kind
        for op in ReduceOp:
            if kind in "fc" and op.name.startswith("B"):
                raises(DTypeError, op.name, dist.all_reduce, flow.tensor(of_rank(0, dtype)), op)
                continue
            if (kind == "c" and op.name.startswith("M")) or (kind in "biu" and op.name == "AVG"):
                raises(DTypeError, op.name, dist.all_reduce, flow.tensor(of_rank(0, dtype)), op)
                continue
            if kind == "b" and op.name == "BXOR":
                continue
            arrays = [of_rank(r, dtype) for r in range(n)]
            if op is ReduceOp.BAND and kind == "b":
                wanted = np.stack(arrays).all(0)
            elif op is ReduceOp.BOR and kind == "b":
                wanted = np.stack(arrays).any(0)
            else:
                wanted = reduced(op, arrays)
            for asynchronous in (False, True):
                x = flow.tensor(arrays[rank])
                version = x._version
                work = dist.all_reduce(x, op, async_op=asynchronous)
                assert (work is None) is not asynchronous
                assert work is None or (work.wait() and work.is_completed() and work.is_success())
                assert x._version == version + 1
                assert x.numpy().dtype == dtype
                assert np.array_equal(x.numpy(), wanted), (dtype, op, x, wanted)


def case_halves_are_summed_in_float32() -> None:
    rank, n = world()
    x = flow.full((1,), 2048.0 if rank == 0 else 1.0).half()
    dist.all_reduce(x)
    assert x.item() == np.float16(2048 + n - 1)
    y = flow.full((3,), 256.0 if rank == 0 else 1.0).bfloat16()
    dist.all_reduce(y)
    assert y.dtype == flow.bfloat16
    assert y.float().tolist() == flow.full((3,), 255.0 + n).bfloat16().float().tolist()


def case_layouts_and_sizes() -> None:
    rank, n = world()
    for make in (
        lambda a: flow.tensor(a).t(),
        lambda a: flow.tensor(np.repeat(a, 2, 1))[:, ::2],
        lambda a: flow.tensor(a[0, 0]),
        lambda a: flow.tensor(a[:0]),
    ):
        x = make(of_rank(rank))
        dist.all_reduce(x)
        assert np.array_equal(x.numpy(), sum(make(of_rank(r)).numpy() for r in range(n)))
        x = make(of_rank(rank))
        dist.broadcast(x, n - 1)
        assert np.array_equal(x.numpy(), make(of_rank(n - 1)).numpy())
    big = flow.full((1_000_003,), float(rank + 1))
    address = big.numpy().ctypes.data
    work = dist.all_reduce(big, async_op=True)
    assert work is not None
    work.wait()
    assert big.numpy().ctypes.data == address
    assert (big.numpy() == n * (n + 1) / 2).all()


def case_every_collective_moves_what_it_should() -> None:
    rank, n = world()
    for dtype in DTYPES:
        arrays = [of_rank(r, dtype) for r in range(n)]
        mine = flow.tensor(arrays[rank])
        listed = [flow.zeros_like(mine) for _ in range(n)]
        dist.all_gather(listed, mine)
        assert all(np.array_equal(x.numpy(), a) for x, a in zip(listed, arrays, strict=True))
        for shape in ((n, 2, 3), (2 * n, 3)):
            for asynchronous in (False, True):
                joined = flow.zeros(*shape, dtype=mine.dtype)
                work = dist.all_gather_into_tensor(joined, mine, async_op=asynchronous)
                assert work is None or work.wait()
                assert np.array_equal(joined.numpy().reshape(n, 2, 3), np.stack(arrays))
        for target in range(n):
            listed = [flow.zeros_like(mine) for _ in range(n)] if rank == target else None
            dist.gather(mine, listed, dst=target)
            if listed is not None:
                assert all(
                    np.array_equal(x.numpy(), a) for x, a in zip(listed, arrays, strict=True)
                )
            x = flow.zeros_like(mine)
            sent = [flow.tensor(a) for a in arrays] if rank == target else None
            dist.scatter(x, sent, src=target)
            assert np.array_equal(x.numpy(), arrays[rank])
            x = flow.tensor(arrays[rank])
            dist.broadcast(x, src=target)
            assert np.array_equal(x.numpy(), arrays[target])
            x = flow.tensor(arrays[rank])
            dist.reduce(x, target, async_op=True).wait()
            wanted = reduced(ReduceOp.SUM, arrays) if rank == target else arrays[rank]
            assert np.array_equal(x.numpy(), wanted)
        rows = [of_rank(rank + r, dtype) for r in range(n)]
        wanted = reduced(ReduceOp.SUM, [of_rank(rank + r, dtype) for r in range(n)])
        x = flow.zeros_like(mine)
        dist.reduce_scatter(x, [flow.tensor(a) for a in rows])
        assert np.array_equal(x.numpy(), wanted)
        for asynchronous in (False, True):
            x = flow.zeros_like(mine)
            work = dist.reduce_scatter_tensor(
                x, flow.tensor(np.concatenate(rows)), async_op=asynchronous
            )
            assert work is None or work.wait()
            assert np.array_equal(x.numpy(), wanted)
        x = flow.zeros(2 * n, 3, dtype=mine.dtype)
        dist.all_to_all_single(
            x, flow.tensor(np.concatenate([of_rank(9 * rank + r, dtype) for r in range(n)]))
        )
        wanted = np.concatenate([of_rank(9 * r + rank, dtype) for r in range(n)])
        assert np.array_equal(x.numpy(), wanted)


def case_all_to_all_with_uneven_shares() -> None:
    rank, n = world()
    sent = [r + 1 for r in range(n)]
    got = [rank + 1] * n
    x = flow.cat([flow.full((r + 1, 2), 10.0 * rank + r) for r in range(n)])
    y = flow.zeros(sum(got), 2)
    dist.all_to_all_single(y, x, got, sent)
    wanted = np.concatenate([np.full((rank + 1, 2), 10.0 * r + rank) for r in range(n)])
    assert np.array_equal(y.numpy(), wanted)
    parts = [flow.zeros(rank + 1, 2) for _ in range(n)]
    dist.all_to_all(parts, list(x.split(sent)))
    assert np.array_equal(np.concatenate([p.numpy() for p in parts]), wanted)


def case_from_one_rank_to_another() -> None:
    rank, n = world()
    after, before = (rank + 1) % n, (rank - 1) % n
    if n == 1:
        raises(ArgumentError, "another rank", dist.send, flow.ones(1), 0)
        return
    x, y = flow.full((3,), float(rank)), flow.zeros(3)
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, x, after), dist.P2POp(dist.irecv, y, before)]
    )
    for work in works:
        work.wait()
    assert y.tolist() == [before] * 3
    if rank == 0:
        for other in range(1, n):
            z = flow.zeros(2, dtype=flow.int64)
            sender = dist.recv(z, tag=7)
            assert z.tolist() == [sender, sender]
            assert other in range(1, n)
        dist.send_object_list([1, "two"], 1)
    else:
        dist.send(flow.tensor([rank, rank]), 0, tag=7)
    if rank == 1:
        found = [None, None]
        assert dist.recv_object_list(found, 0) == 0
        assert found == [1, "two"]
    dist.barrier()
    if rank == 0:
        dist.send(flow.ones(3), 1)
    elif rank == 1:
        raises(DistributedError, "expects 16 bytes", dist.recv, flow.ones(4), 0)


def case_objects() -> None:
    rank, n = world()
    found: list[Any] = [None] * n
    dist.all_gather_object(found, {"rank": rank, "text": "x" * rank})
    assert found == [{"rank": r, "text": "x" * r} for r in range(n)]
    gathered: list[Any] | None = [None] * n if rank == n - 1 else None
    dist.gather_object([rank], gathered, dst=n - 1)
    assert gathered is None or gathered == [[r] for r in range(n)]
    listed: list[Any] = [f"of {rank}", None]
    dist.broadcast_object_list(listed, src=n - 1)
    assert listed == [f"of {n - 1}", None]
    got: list[Any] = [None]
    dist.scatter_object_list(got, [f"for {r}" for r in range(n)] if rank == 0 else None)
    assert got == [f"for {rank}"]


def case_groups() -> None:
    rank, n = world()
    assert dist.get_process_group_ranks(None) == list(range(n))
    even = dist.new_group(range(0, n, 2))
    odd = dist.new_group(range(1, n, 2)) if n > 1 else None
    if rank % 2 == 0:
        x = flow.tensor([float(rank)])
        dist.all_reduce(x, group=even)
        assert x.item() == sum(range(0, n, 2))
        assert dist.get_rank(even) == rank // 2 == dist.get_group_rank(even, rank)
        assert dist.get_global_rank(even, dist.get_rank(even)) == rank
        last = 2 * ((n - 1) // 2)
        x = flow.tensor([float(rank)])
        dist.broadcast(x, last, group=even)
        assert x.item() == last
        assert dist.get_rank(odd) == (-1 if n > 1 else rank)
    else:
        assert even is dist.GroupMember.NON_GROUP_MEMBER
        assert dist.all_reduce(flow.ones(1), group=even) is None
        x = flow.tensor([1.0])
        dist.all_reduce(x, group=odd)
        assert x.item() == len(range(1, n, 2))
        assert dist.get_world_size(even) == -1
    raises(ArgumentError, "ranks", dist.new_group, [n])
    again = dist.new_group()
    x = flow.ones(1)
    dist.all_reduce(x, group=again)
    assert x.item() == n
    dist.destroy_process_group(again)
    raises(ArgumentError, "living", dist.all_reduce, x, group=again)


def case_gradients_are_those_of_the_sum_of_all_losses() -> None:
    """Each collective as a function of all ranks' inputs, against differences of that sum."""
    rank, n = world()
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((n, n, 2))
    weights = rng.standard_normal((n, n, n, 2))
    calls: dict[str, Any] = {
        "sum": lambda x: F.all_reduce(x),
        "avg": lambda x: F.all_reduce(x, ReduceOp.AVG),
        "product": lambda x: F.all_reduce(x, ReduceOp.PRODUCT),
        "max": lambda x: F.all_reduce(x, ReduceOp.MAX),
        "min": lambda x: F.all_reduce(x, ReduceOp.MIN),
        "reduce": lambda x: F.reduce(x, n - 1),
        "reduce_avg": lambda x: F.reduce(x, 0, ReduceOp.AVG),
        "broadcast": lambda x: F.broadcast(x, n - 1),
        "all_gather": lambda x: flow.stack(list(F.all_gather(x))),
        "all_gather_tensor": lambda x: F.all_gather_tensor(x, 1),
        "gather": lambda x: flow.stack(list(F.gather(x, 0))),
        "scatter": lambda x: F.scatter(list(x.unbind(0)), n - 1),
        "reduce_scatter": lambda x: F.reduce_scatter(x[0], list(x.unbind(0))),
        "reduce_scatter_avg": lambda x: F.reduce_scatter_tensor(x, ReduceOp.AVG),
        "reduce_scatter_max": lambda x: F.reduce_scatter(x[0], list(x.unbind(0)), ReduceOp.MAX),
        "all_to_all": lambda x: flow.stack(list(F.all_to_all([x[0]] * n, list(x.unbind(0))))),
        "all_to_all_single": lambda x: F.all_to_all_single(None, x),
    }

    def loss(call: Any, array: Any) -> Any:
        x = flow.tensor(array, requires_grad=True)
        y = call(x)
        w = flow.tensor(weights[rank].reshape(-1)[: y.numel()].reshape(tuple(y.shape)))
        return x, (w * y * y).sum() * (rank + 1)

    def total(call: Any, arrays: Any) -> float:
        _, value = loss(call, arrays[rank])
        value = value.detach()
        dist.all_reduce(value)
        return value.item()

    for name, call in calls.items():
        x, value = loss(call, inputs[rank])
        (dx,) = flow.autograd.grad(value, x, create_graph=True)
        for r in {0, n - 1}:
            direction = np.zeros_like(inputs)
            direction[r] = rng.standard_normal((n, 2))
            slope = (
                total(call, inputs + 1e-6 * direction) - total(call, inputs - 1e-6 * direction)
            ) / 2e-6
            if r == rank:
                found = (dx.detach().numpy() * direction[r]).sum()
                assert abs(found - slope) < 1e-6 * (1 + abs(slope)), (name, found, slope)
        # and the gradient of |dx|², all ranks', by differences again
        (ddx,) = flow.autograd.grad((dx * dx).sum(), x)

        def steepness(arrays: Any, call: Any = call) -> float:
            x, value = loss(call, arrays[rank])
            (dx,) = flow.autograd.grad(value, x)
            square = (dx * dx).sum().detach()
            dist.all_reduce(square)
            return square.item()

        for r in {0, n - 1}:
            direction = np.zeros_like(inputs)
            direction[r] = rng.standard_normal((n, 2))
            slope = (
                steepness(inputs + 1e-6 * direction) - steepness(inputs - 1e-6 * direction)
            ) / 2e-6
            if r == rank:
                found = (ddx.numpy() * direction[r]).sum()
                assert abs(found - slope) < 1e-5 * (1 + abs(slope)), (name, found, slope)


def case_in_place_collectives_and_autograd() -> None:
    _, n = world()
    x = flow.ones(2, requires_grad=True)
    y = x * 3
    dist.all_reduce(y)  # no leaf: the gradient goes through it
    (y * y).sum().backward()
    assert x.grad.tolist() == [n * 2 * 3 * n * 3] * 2
    dist.all_reduce(x)  # a leaf is written as under no_grad
    assert x.is_leaf and x.tolist() == [n, n]
    z = x * 1
    w = z * z
    dist.broadcast(z, 0)
    raises(flow.errors.StaleTensorError, "modified", w.sum().backward)


def case_bad_arguments_are_refused_on_every_rank() -> None:
    rank, n = world()
    x = flow.arange(3.0)
    raises(ArgumentError, "op", dist.all_reduce, x, "mean")
    raises(TypeError, "ReduceOp", dist.all_reduce, x, 3)
    raises(TypeError, "Tensor", dist.all_reduce, [1.0])
    raises(ArgumentError, "src", dist.broadcast, x, n)
    raises(ArgumentError, "src", dist.broadcast, x)
    raises(ArgumentError, "tensors, one for each rank", dist.all_gather, [x] * (n + 1), x)
    raises(RuntimeError, "alike", dist.all_gather, [flow.ones(2)] * n, x)
    raises(RuntimeError, "elements", dist.all_gather_into_tensor, flow.ones(3 * n + 1), x)
    raises(DTypeError, "convert", dist.all_gather_into_tensor, flow.ones(3 * n).double(), x)
    raises(TypeError, "group", dist.all_reduce, x, group=3)
    raises(ArgumentError, "tag", dist.send, x, (rank + 1) % n, tag=-1) if n > 1 else None
    raises(DistributedError, "exists already", dist.init_process_group)
    assert x.tolist() == [0, 1, 2] and x._version == 0


def case_calls_that_differ_are_an_error_that_names_both_sides() -> None:
    rank, n = world()
    if n == 1:
        return
    first = rank == 0

    def differ(text: str, mine: Any, theirs: Any) -> None:
        for level in (dist.DebugLevel.OFF, dist.DebugLevel.DETAIL):
            dist.barrier()
            dist.set_debug_level(level)
            try:
                (mine if first else theirs)()
            except DistributedError as error:
                said = str(error)
            else:
                raise AssertionError(f"nothing was raised for {text}")
            dist.set_debug_level(dist.DebugLevel.OFF)
            assert "different calls" in said and "rank 0: " in said, said
            assert all(part in said for part in text.split(" | ")), said
            if level is dist.DebugLevel.DETAIL:
                assert "cases_collectives.py:" in said, said
            dist.barrier()

    x, y = flow.ones(3), flow.ones(4)
    differ("(3,) | (4,)", lambda: dist.all_reduce(x), lambda: dist.all_reduce(y))
    differ("float32 | float64", lambda: dist.all_reduce(x), lambda: dist.all_reduce(x.double()))
    differ("sum | max", lambda: dist.all_reduce(x), lambda: dist.all_reduce(x, ReduceOp.MAX))
    differ("all_reduce | broadcast", lambda: dist.all_reduce(x), lambda: dist.broadcast(x, 0))
    differ("src=0 | src=1", lambda: dist.broadcast(x, 0), lambda: dist.broadcast(x, 1))
    differ("all_reduce | barrier", lambda: dist.all_reduce(x), dist.barrier)
    halves = flow.ones(2 * n)
    differ(
        "all_to_all | all_reduce",
        lambda: dist.all_to_all_single(flow.zeros(2 * n), halves),
        lambda: dist.all_reduce(x),
    )
    differ(
        "(3,) | (4,)",
        lambda: dist.all_reduce(x, async_op=True).wait(),
        lambda: dist.all_reduce(y, async_op=True).wait(),
    )
    assert x.tolist() == [1] * 3 and y.tolist() == [1] * 4  # nothing was sent
    sent = [1, *[2] * (n - 1)] if first else [1] * n
    raises(
        DistributedError,
        "rank 0 of the world sends 2 elements to rank 1",
        dist.all_to_all_single,
        flow.zeros(n),
        flow.ones(sum(sent)),
        [1] * n,
        sent,
    )
    x = flow.ones(1)
    dist.all_reduce(x)  # the world goes on
    assert x.item() == n


def case_debug_mode_announces_messages() -> None:
    rank, n = world()
    if n == 1:
        return
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    if rank == 0:
        dist.send(flow.ones(4), 1)
        dist.send(flow.ones(4), 1)
    elif rank == 1:
        x = flow.zeros(2, dtype=flow.float64)
        raises(DistributedError, "sent float32 (4,)", dist.recv, x, 0)
        y = flow.zeros(4)
        dist.recv(y, 0)
        assert y.tolist() == [1] * 4
    dist.barrier()
    dist.set_debug_level(dist.DebugLevel.OFF)


def case_works_overlap_and_keep_their_order() -> None:
    rank, n = world()
    xs = [flow.full((50_000,), float(i + rank)) for i in range(5)]
    works = [dist.all_reduce(x, async_op=True) for x in xs]
    for work in reversed(works):
        assert work is not None
        work.wait()
    for i, x in enumerate(xs):
        assert (x.numpy() == n * i + n * (n - 1) / 2).all()


def case_programs_and_compiled_functions_keep_collectives() -> None:
    rank, n = world()

    @flow.compile
    def both(x: Any, y: Any) -> Any:
        unused = F.all_reduce(y)  # its result is dropped, the others wait for it
        twice = F.all_reduce(x) + F.all_reduce(x)
        return twice * 2, unused.shape

    calls = 4
    plain = both.__wrapped__
    for i in range(calls):
        x, y = flow.full((3,), float(i + rank)), flow.ones(2)
        # Ranks that replay meet ranks that run plainly.
        run = both if rank % 2 == 0 else plain
        z, _ = run(x, y)
        assert z.tolist() == [4 * (n * i + n * (n - 1) / 2)] * 3
    if rank % 2 == 0:
        assert both.explain().hits == calls - 1, both.explain()

    @flow.compile
    def loss(x: Any, w: Any) -> Any:
        return (F.all_reduce(x * w) ** 2).sum()

    for i in range(3):
        w = flow.full((2,), 1.0 + rank, requires_grad=True)
        x = flow.full((2,), 1.0 + i, requires_grad=True)
        run = loss if rank % 2 == 0 else loss.__wrapped__
        value = run(x, w)
        (dw,) = flow.autograd.grad(value, w)  # the other input is pruned
        total = n * (n + 1) / 2
        assert np.allclose(dw.numpy(), n * 2 * (1 + i) ** 2 * total), dw
        value = run(x, w)
        (dw,) = flow.autograd.grad(value, w, create_graph=True)
        (ddw,) = flow.autograd.grad(dw.sum(), w)
        assert np.allclose(ddw.numpy(), n * n * 2 * (1 + i) ** 2), ddw


def case_static_programs() -> None:
    rank, n = world()
    program = flow.static.Program()
    with flow.static.program_guard(program):
        x = flow.static.data("x", [2, 2], "float32")
        F.all_gather_tensor(x)  # dropped by nobody
        y = F.all_reduce(x * 2)
        dist.barrier()
        dist.broadcast(y, 0)
        z = F.reduce_scatter_tensor(F.all_gather_tensor(y) * 1.0)
    assert [op.type for op in program.global_block().ops].count("all_gather") == 2
    runner = flow.static.Executor()
    names = [i.op.type for i in runner.analyse(program, ["x"], [z]).instructions if i.op]
    talks = [name for name in names if op_expr(name).schema.effect]
    # Also what is read by nobody, twice the same, or known beforehand; in the order of the calls.
    wanted = "all_gather all_reduce barrier broadcast_from_ all_gather reduce_scatter"
    assert talks == wanted.split(), talks
    for i in range(2):
        feed = {"x": np.full((2, 2), i + rank, np.float32)}
        (found,) = runner.run(program, feed, [z])
        assert (found == n * 2 * (n * i + n * (n - 1) / 2)).all()


def case_pytorchs_other_names() -> None:
    rank, n = world()
    xs = [flow.full((2,), rank + 1.0), flow.full((3,), 1.0)]
    dist.all_reduce_coalesced(xs)
    assert xs[0].tolist() == [n * (n + 1) / 2] * 2 and xs[1].tolist() == [n] * 3
    lists = [[flow.zeros(2), flow.zeros(1)] for _ in range(n)]
    dist.all_gather_coalesced(lists, [flow.full((2,), float(rank)), flow.full((1,), -1.0)])
    assert [[x.tolist() for x in row] for row in lists] == [[[r, r], [-1]] for r in range(n)]
    own, groups = dist.new_subgroups(1)
    assert own.ranks == (rank,) and len(groups) == n and dist.get_pg_count() >= 1
    pairs = [list(range(n))[i : i + 2] for i in range(0, n, 2)]
    own, _ = dist.new_subgroups_by_enumeration(pairs)
    assert rank in own.ranks
    raises(ValueError, "a divisor", dist.new_subgroups, n + 1)
    raises(ValueError, "each rank once", dist.new_subgroups_by_enumeration, [[0], [0]])
    assert dist.Backend("NCCL") == dist.Backend.NCCL and dist.is_backend_available("gloo")
    assert dist.get_default_backend_for_device("cuda:0") == "nccl"
    assert dist.get_backend_config() == "cpu:mpi,cuda:nccl" and not dist.is_ucc_available()
    assert dist.supports_complex(dist.ReduceOp.SUM)
    assert not dist.supports_complex(dist.ReduceOp.MAX)
    dist.barrier(timeout=timedelta(seconds=9))
    x = flow.ones(2)
    work = dist.all_reduce(x, async_op=True)
    twice = work.get_future().then(lambda known: known.value()[0] * 2)
    assert twice.wait().tolist() == [2 * n] * 2
    for name, hint in (("TCPStore", "MPI knows"), ("DeviceMesh", "flow.placement")):
        raises(NotImplementedError, hint, getattr(dist, name))
