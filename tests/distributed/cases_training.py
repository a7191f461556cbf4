"""The part of each rank in a world of any size: data parallel training, against the serial step."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

import oneflow_lite as flow
import oneflow_lite.distributed as dist
from oneflow_lite import nn
from oneflow_lite.errors import ArgumentError, DistributedError
from oneflow_lite.nn.parallel import DistributedDataParallel
from tests.distributed.cases_collectives import raises, world

SHARE = 4  # rows of each rank


def network(*layers: Any) -> Any:
    return nn.Sequential(*layers)


def whole(values: Any) -> Any:
    """Fill parameters with small whole numbers, so that sums are exact in any order."""
    rng = np.random.default_rng(1)
    with flow.no_grad():
        for x in values.parameters():
            x.copy_(flow.tensor(rng.integers(-2, 3, tuple(x.shape)).astype(np.float32)))
    return values


def batch(step: int, width: int, exact: bool = False) -> Any:
    rng = np.random.default_rng(step)
    shape = (SHARE * dist.get_world_size(), width)
    values = rng.integers(-3, 4, shape) if exact else rng.standard_normal(shape)
    return flow.tensor(values.astype(np.float32))


def mine(x: Any) -> Any:
    rank = dist.get_rank()
    return x[SHARE * rank : SHARE * rank + SHARE]


def everywhere(values: Any) -> None:
    """Assert that all ranks have the same bits."""
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, [x.detach().numpy().tobytes() for x in values])
    assert all(each == found[0] for each in found)


def distance(one: Any, other: Any) -> float:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return max(float(np.abs(x.numpy() - y.numpy()).max(initial=0)) for x, y in pairs)


def train(
    make: Any,
    steps: int = 5,
    lr: float = 0.1,
    exact: bool = False,
    serially: bool = True,
    **options: Any,
) -> Any:
    """Train one module data parallel and, unless told not to, one serially; return both."""
    rank, _ = world()
    flow.manual_seed(rank)  # each rank begins elsewhere, and takes over what rank 0 has
    net = DistributedDataParallel(make(), **options)
    serial = make()
    serial.load_state_dict(net.state_dict(bare=True))
    optimizers = [flow.optim.SGD(x.parameters(), lr, momentum=0.5) for x in (net, serial)]
    for step in range(steps):
        x, y = batch(step, 3, exact), batch(step + 1000, 2, exact)
        for module, optimizer, inputs, wanted in (
            (net, optimizers[0], mine(x), mine(y)),
            (serial, optimizers[1], x, y),
        )[: 2 if serially else 1]:
            optimizer.zero_grad()
            nn.functional.mse_loss(module(inputs), wanted).backward()
            optimizer.step()
    everywhere(net.state_dict().values())
    return net, serial


def case_a_step_is_the_serial_step_to_the_bit_with_exact_numbers() -> None:
    for view in (False, True):
        for cap in (None, 1e-5):
            net, serial = train(
                lambda: whole(network(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))),
                steps=1,
                lr=0.5,
                exact=True,
                gradient_as_bucket_view=view,
                bucket_cap_mb=cap,
            )
            assert distance(net.module, serial) == 0


def case_training_is_the_serial_one_up_to_rounding() -> None:
    for options in (
        {},
        {"bucket_cap_mb": 1e-5},
        {"bucket_cap_mb": 1e-5, "gradient_as_bucket_view": True},
        {"find_unused_parameters": True},
        {"static_graph": True},
    ):
        net, serial = train(
            lambda: network(
                nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2)
            ),
            **options,
        )
        assert distance(net.module, serial) < 1e-6


def case_ranks_agree_to_the_bit_after_1000_steps() -> None:
    _, n = world()
    net, _ = train(
        lambda: network(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)),
        steps=1000 if n == 2 else 50,
        lr=0.01,
        serially=False,
    )
    everywhere(net.parameters())


def case_buckets_follow_the_order_of_readiness() -> None:
    _, n = world()

    class Crossed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last, self.first = nn.Linear(3, 2), nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return self.last(self.first(x).tanh())

    net, serial = train(Crossed, steps=3, bucket_cap_mb=1e-6)
    assert distance(net.module, serial) < 1e-6
    if n > 1:
        reducer = net._reducer
        names = [[reducer.names[i] for i in bucket.params] for bucket in reducer.buckets]
        assert sorted(names[-1] + names[-2]) == ["first.bias", "first.weight"], names


def case_gradients_travel_while_backward_runs() -> None:
    _, n = world()
    if n == 1:
        return
    net = DistributedDataParallel(network(*[nn.Linear(3, 3) for _ in range(6)]), bucket_cap_mb=1e-6)
    reducer, begun = net._reducer, []
    first = next(net.module[0].parameters())
    first.register_post_accumulate_grad_hook(
        lambda leaf: begun.append(sum(b.work is not None for b in reducer.buckets))
    )
    for step in range(2):
        net(mine(batch(step, 3))).sum().backward()
    # When the first layer's weight has its gradient, those of the others are on their way.
    assert begun[-1] >= len(reducer.buckets) - 2, (begun, len(reducer.buckets))


def case_no_sync_adds_up() -> None:
    _, n = world()
    net = DistributedDataParallel(nn.Linear(3, 2))
    serial = nn.Linear(3, 2)
    serial.load_state_dict(net.state_dict(bare=True))
    for step in range(3):
        x = batch(step, 3)
        with net.no_sync() if step < 2 else contextlib.nullcontext():
            net(mine(x)).square().mean().backward()
        if step == 0 and n > 1:
            found: list[Any] = [None] * n
            dist.all_gather_object(found, net.module.weight.grad.numpy().tobytes())
            assert len(set(found)) == n
        serial(x).square().mean().backward()
    everywhere([x.grad for x in net.parameters()])
    for a, b in zip(net.parameters(), serial.parameters(), strict=True):
        assert np.allclose(a.grad.numpy(), b.grad.numpy(), atol=1e-6)


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.never = nn.Linear(3, 2), nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, x: Any, which: str) -> Any:
        return {"out": [getattr(self, which)(x)]}


def case_unused_parameters() -> None:
    rank, n = world()
    net = DistributedDataParallel(Branches(), find_unused_parameters=True)
    for step in range(2):
        which = "one" if rank == 0 else "two"
        net(mine(batch(step, 3)), which)["out"][0].sum().backward()
        everywhere([net.module.one.weight.grad])
        assert net.module.never.weight.grad is None
        assert (net.module.two.weight.grad is None) is (n == 1)
        net.zero_grad()
    if n > 1:
        net = DistributedDataParallel(Branches())
        x = mine(batch(0, 3))
        net(x, "one")["out"][0].sum().backward()
        raises(DistributedError, "two.weight", net, x, "one")
        dist.barrier()


def case_dtypes_are_mixed() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 2, dtype=flow.float64)
            self.scale = nn.Parameter(flow.ones(2, dtype=flow.float16))

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x).double()).float() * self.scale.float()

    net, serial = train(Mixed, steps=2)
    assert distance(net.module, serial) < 2e-3
    assert net.module.second.weight.dtype == flow.float64


def case_buffers_are_those_of_rank_0() -> None:
    rank, n = world()
    net = DistributedDataParallel(network(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)))
    for step in range(3):
        net(mine(batch(step, 3)) + rank)
    net(mine(batch(3, 3)))  # begins with them
    norm = net.module[1]
    assert norm.num_batches_tracked.item() == 4
    apart = DistributedDataParallel(nn.BatchNorm1d(3), broadcast_buffers=False)
    apart(mine(batch(0, 3)) + rank)
    found: list[Any] = [None] * n
    dist.all_gather_object(found, apart.module.running_mean.tolist())
    assert len({str(each) for each in found}) == n


def case_batch_normalization_over_all_ranks() -> None:
    def make() -> Any:
        net = network(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 2))
        return nn.SyncBatchNorm.convert_sync_batchnorm(net)

    net, serial = train(make)
    plain = network(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 2))
    rank, n = world()
    _, serial = None, plain
    flow.manual_seed(3)
    net = DistributedDataParallel(make())
    serial.load_state_dict(net.state_dict(bare=True))
    optimizers = [flow.optim.SGD(x.parameters(), 0.1) for x in (net, serial)]
    for step in range(5):
        x = batch(step, 3)
        for module, optimizer, inputs in (
            (net, optimizers[0], mine(x)),
            (serial, optimizers[1], x),
        ):
            optimizer.zero_grad()
            module(inputs).square().mean().backward()
            optimizer.step()
    assert distance(net.module, serial) < 1e-6
    net.eval()
    x = mine(batch(9, 3))
    assert np.allclose(net(x).detach().numpy(), serial.eval()(x).detach().numpy(), atol=1e-6)
    # shares of other sizes, and a cumulative mean
    rows = batch(0, 2)
    cut = [rows[: 2 + r] for r in range(n)]
    sync, norm = nn.SyncBatchNorm(2, momentum=None), nn.BatchNorm1d(2, momentum=None)
    for _ in range(2):
        y, wanted = sync(cut[rank]), norm(flow.cat(cut))
        start = sum(2 + r for r in range(rank))
        assert np.allclose(
            y.detach().numpy(), wanted.detach().numpy()[start : start + 2 + rank], atol=1e-5
        )
    assert np.allclose(sync.running_var.numpy(), norm.running_var.numpy(), atol=1e-6)


def case_sharded_optimizers() -> None:
    rank, n = world()
    for cls, options in (
        (flow.optim.Adam, {"lr": 0.01}),
        (flow.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    ):
        flow.manual_seed(0)
        one, other = (network(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)) for _ in range(2))
        other.load_state_dict(one.state_dict())
        Zero = dist.optim.ZeroRedundancyOptimizer
        sharded = Zero(one.parameters(), cls, **options)
        plain = cls(other.parameters(), **options)
        schedulers = [flow.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in (sharded, plain)]

        def steps(count: int, optimizers: Any, start: int = 0) -> None:
            for step in range(start, start + count):
                for module, optimizer in zip((one, other), optimizers, strict=True):
                    optimizer.zero_grad()
                    module(batch(step, 3)).square().mean().backward()
                    optimizer.step()
                for scheduler in schedulers:
                    scheduler.step()

        steps(4, (sharded, plain))
        assert distance(one, other) == 0
        everywhere(one.parameters())
        kept = sum(len(s) for s in (sharded.optim.state.values() if sharded.optim else ()))
        assert n == 1 or kept < sum(len(s) for s in plain.state.values())
        raises(DistributedError, "consolidate_state_dict", sharded.state_dict)
        sharded.consolidate_state_dict(0)
        states: list[Any] = [sharded.state_dict() if rank == 0 else None]
        if rank == 0:
            wanted = plain.state_dict()
            assert states[0]["state"].keys() == wanted["state"].keys()
            for i, kept in wanted["state"].items():
                for key, value in kept.items():
                    assert np.array_equal(states[0]["state"][i][key], value), (i, key)
        dist.broadcast_object_list(states, 0)
        again = Zero(one.parameters(), cls, **options)
        again.load_state_dict(states[0])
        steps(2, (again, plain), 4)
        assert distance(one, other) == 0
    raises(TypeError, "optimizer_class", Zero, one.parameters(), nn.Linear)


def case_norms_over_ranks() -> None:
    rank, n = world()
    for p in (1.0, 2.0, 3.0, float("inf")):
        x = flow.ones(2, requires_grad=True)
        x.grad = flow.tensor([1.0 + rank, -2.0])
        total = nn.parallel.clip_grad_norm_([x], 1.0, p)
        everyone = np.concatenate([[1.0 + r, -2.0] for r in range(n)])
        norm = np.linalg.norm(everyone, p)
        assert np.isclose(total.item(), norm)
        assert np.allclose(x.grad.numpy(), np.array([1.0 + rank, -2.0]) / (norm + 1e-6))
    # Under data parallel training all ranks have one gradient, and the plain function will do.
    net = DistributedDataParallel(nn.Linear(3, 2))
    net(mine(batch(0, 3)) * 9).square().mean().backward()
    nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    everywhere([x.grad for x in net.parameters()])


def case_a_module_is_refused_on_every_rank() -> None:
    rank, n = world()
    raises(TypeError, "module", DistributedDataParallel, 3)
    raises(ArgumentError, "requires a gradient", DistributedDataParallel, nn.ReLU())
    raises(
        ArgumentError, "bucket_cap_mb", DistributedDataParallel, nn.Linear(1, 1), bucket_cap_mb=0
    )
    if n > 1:
        odd = nn.Linear(3, 2 if rank else 4)
        raises(DistributedError, "rank 0 has weight float32 (4, 3)", DistributedDataParallel, odd)
        dist.barrier()


def case_samplers_share_the_data() -> None:
    rank, n = world()
    sampler = flow.utils.data.DistributedSampler(range(10), shuffle=False)
    assert (sampler.rank, sampler.num_replicas) == (rank, n)
    found: list[Any] = [None] * n
    dist.all_gather_object(found, list(sampler))
    assert sorted({i for each in found for i in each}) == list(range(10))


def case_ranks_with_fewer_batches_join() -> None:
    rank, n = world()
    for initial, options in ((True, {}), (False, {"find_unused_parameters": True})):
        flow.manual_seed(0)
        inner = network(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
        alone = network(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
        net = DistributedDataParallel(inner, bucket_cap_mb=1e-5, **options)
        alone.load_state_dict(inner.state_dict())
        optimizers = [flow.optim.SGD(x.parameters(), 0.1) for x in (net, alone)]
        with net.join(divide_by_initial_world_size=initial):
            for i in range(3 * rank):  # rank 0 has none at all
                optimizers[0].zero_grad()
                net(batch(i + 10 * rank, 3)).square().mean().backward()
                optimizers[0].step()
        for i in range(3 * (n - 1)):  # what all of them together have done
            active = [r for r in range(n) if 3 * r > i]
            kept = {name: x.clone() for name, x in alone.named_buffers()}
            optimizers[1].zero_grad()
            for r in sorted(active, key=lambda r: r == active[0]):  # whose buffers count, last
                for name, x in alone.named_buffers():
                    x.copy_(kept[name])
                loss = alone(batch(i + 10 * r, 3)).square().mean()
                (loss / (n if initial else len(active))).backward()
            optimizers[1].step()
        everywhere(net.parameters())
        for (name, a), b in zip(alone.named_parameters(), net.parameters(), strict=True):
            np.testing.assert_allclose(b.detach(), a.detach(), rtol=1e-5, atol=1e-6, err_msg=name)
    if n > 1:

        def uneven() -> None:
            with net.join(throw_on_early_termination=True):
                for i in range(1 + rank):
                    net(batch(i, 3)).sum().backward()

        raises(DistributedError, "no more batches", uneven)
        assert net._join is None
    kinds: Any = dist.algorithms
    raises(TypeError, "a list of Joinable", kinds.Join, [nn.Linear(1, 1)])


def case_hooks_reduce_buckets() -> None:
    rank, n = world()
    hooks = dist.algorithms.ddp_comm_hooks.default_hooks
    seen: list[Any] = []

    def own(state: Any, bucket: Any) -> Any:
        seen.append((state, bucket.index(), bucket.is_last(), len(bucket.parameters())))
        assert sum(g.numel() for g in bucket.gradients()) == bucket.buffer().numel()
        work = dist.all_reduce(bucket.buffer().mul_(2), async_op=True)
        return work.get_future().then(lambda known: known.value()[0])

    flow.manual_seed(0)
    plain = DistributedDataParallel(network(nn.Linear(3, 4), nn.Linear(4, 2)))
    plain(mine(batch(0, 3))).square().mean().backward()
    for hook, state, factor, accurate in (
        (hooks.allreduce_hook, None, 1, 1e-6),
        (hooks.fp16_compress_hook, None, 1, 1e-2),
        (hooks.bf16_compress_hook, dist.group.WORLD, 1, 5e-2),
        (hooks.fp16_compress_wrapper(hooks.allreduce_hook), None, 1, 1e-2),
        (own, "state", 2 * n, 1e-6),
    ):
        for views in (False, True):
            net = DistributedDataParallel(
                network(nn.Linear(3, 4), nn.Linear(4, 2)), bucket_cap_mb=1e-5,
                gradient_as_bucket_view=views,
            )  # fmt: skip
            net.load_state_dict(plain.state_dict())
            net.register_comm_hook(state, hook)
            for _ in range(2):
                net.zero_grad()
                net(mine(batch(0, 3))).square().mean().backward()
                for a, b in zip(plain.parameters(), net.parameters(), strict=True):
                    scale = factor if n > 1 else 1
                    np.testing.assert_allclose(b.grad, a.grad * scale, rtol=accurate, atol=1e-3)
            everywhere([x.grad for x in net.parameters()])
            if n > 1:
                raises(DistributedError, "already", net.register_comm_hook, None, hook)
    raises(TypeError, "a function", plain.register_comm_hook, None, "fp16")
    if n > 1:
        listed = [("state", 0, False, 2), ("state", 1, False, 1), ("state", 2, True, 1)]
        assert seen == listed * 4, seen
    kept = DistributedDataParallel(network(nn.Linear(3, 4)))
    kept.register_comm_hook(None, hooks.noop_hook)
    kept(flow.ones(1, 3) * (rank + 1)).sum().backward()
    assert kept.module[0].weight.grad[0, 0].item() == rank + 1


def case_compiled_modules_train_beside_plain_ones() -> None:
    rank, n = world()
    make = lambda: network(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2))  # noqa: E731
    for kind in ("module inside", "module outside", "step", "step with views", "step of all"):
        flow.manual_seed(0)
        plain = DistributedDataParallel(make(), bucket_cap_mb=1e-5)
        inner = make()
        inner.load_state_dict(plain.state_dict(bare=True))
        compiles = rank % 2 == 0 or kind == "step of all"
        views = kind == "step with views"
        if kind == "module inside" and compiles:
            inner = flow.compile(inner)
        net: Any = DistributedDataParallel(inner, bucket_cap_mb=1e-5, gradient_as_bucket_view=views)
        run = flow.compile(net) if kind == "module outside" and compiles else net
        optimizers = [flow.optim.SGD(x.parameters(), 0.1) for x in (plain, net)]

        def step(module: Any, optimizer: Any, x: Any) -> Any:
            optimizer.zero_grad()
            loss = module(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        step_of_net = flow.compile(step) if kind.startswith("step") and compiles else step
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # gradients that are views of buckets stay eager
            for i in range(5):
                x = mine(batch(i, 3))
                step(plain, optimizers[0], x)
                step_of_net(run, optimizers[1], x)
                for a, b in zip(plain.parameters(), net.parameters(), strict=True):
                    assert np.array_equal(a.grad.numpy(), b.grad.numpy()), (kind, i)
        everywhere(net.parameters())
        if compiles and kind.startswith("step"):
            said = flow.explain(step_of_net)
            eager = views and n > 1
            assert said.fallbacks == 5 if eager else said.hits >= 3, (kind, said)
            assert not eager or "DistributedDataParallel, with these options" in str(said), said
        if compiles and kind == "module inside":
            assert flow.explain(inner).hits >= 3, flow.explain(inner)
        if compiles and kind == "module outside":
            assert flow.explain(run).hits >= 2, flow.explain(run)
