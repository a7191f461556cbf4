"""The part of each rank in a world of any size: checkpoints."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import oneflow_lite as flow
import oneflow_lite.distributed as dist
from oneflow_lite import nn
from oneflow_lite.errors import DistributedError, SerializationError
from tests.distributed.cases_collectives import raises, world

checkpoint: Any = dist.checkpoint
Zero = dist.optim.ZeroRedundancyOptimizer


@contextlib.contextmanager
def directory() -> Iterator[Path]:
    """Give all ranks one empty directory."""
    made: list[Any] = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(made, 0)
    yield Path(made[0])
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(made[0])
    dist.barrier()


def network() -> Any:
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))


def steps(net: Any, optimizer: Any, count: int) -> None:
    for step in range(count):
        optimizer.zero_grad()
        net(flow.full((4, 3), 0.5 + step)).square().mean().backward()
        optimizer.step()


def alike(one: Any, other: Any) -> bool:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return all(np.array_equal(a.detach().numpy(), b.detach().numpy()) for a, b in pairs)


def case_training_goes_on_from_a_checkpoint_on_any_number_of_ranks() -> None:
    rank, n = world()
    flow.manual_seed(0)
    net, plain = network(), network()
    plain.load_state_dict(net.state_dict())
    sharded = Zero(net.parameters(), flow.optim.Adam, lr=0.1)
    serial = flow.optim.Adam(plain.parameters(), lr=0.1)
    steps(net, sharded, 3)
    steps(plain, serial, 3)
    generator = flow.Generator().manual_seed(rank)
    flow.rand(2, generator=generator)
    state = {"net": net, "optimizer": sharded, "rng": generator, "at": {"step": 3, "loss": 0.5}}
    few = max(1, n // 2)
    half = dist.new_group(range(few))
    alone = [dist.new_group([each]) for each in range(n)][rank]
    with directory() as place:
        assert checkpoint.save(state, checkpoint_id=place / "all") == 1
        following = flow.rand(2, generator=generator)
        of_rank_0 = flow.rand(4, generator=flow.Generator().manual_seed(0))[2:]
        if rank < few:  # also by fewer ranks
            some = {"optimizer": Zero(net.parameters(), flow.optim.Adam, half, lr=0.1)}
            checkpoint.load(some, checkpoint_id=place / "all", process_group=half)
            checkpoint.save({"net": net, **some}, checkpoint_id=place / "half", process_group=half)
        dist.barrier()
        steps(plain, serial, 2)
        for source, group in (("all", None), ("all", alone), ("half", None), ("all", half)):
            if group is half and rank >= few:
                continue
            again = network()
            optimizer = Zero(again.parameters(), flow.optim.Adam, group, lr=0.9)
            given: dict[str, Any] = {"net": again, "optimizer": optimizer}
            if source == "all":
                given |= {"rng": generator.manual_seed(77), "at": {"step": 0}}
            checkpoint.load(given, checkpoint_id=place / source, process_group=group)
            kept = 0 if optimizer.optim is None else len(optimizer.optim.state)
            assert kept == sum(optimizer.owns(i) for i in range(4))
            steps(again, optimizer, 2)
            assert alike(again, plain), (source, group)
            if source == "all":
                assert given["at"] == {"step": 3, "loss": 0.5}
                wanted = following if group is not alone else of_rank_0
                assert flow.equal(flow.rand(2, generator=generator), wanted)
        plainly = {"optimizer": flow.optim.Adam(network().parameters(), lr=0.1)}
        checkpoint.load(plainly, checkpoint_id=place / "all", number=1)
        assert len(plainly["optimizer"].state) == 4


def global_state(where: Any, weight: Any, bias: Any) -> dict[str, Any]:
    """Return a network of global tensors, its optimizer after a step, and a tensor, all ranks'."""
    flow.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 5, bias=False))
    net.to_global(where, lambda name, _: bias if name.endswith("bias") else weight)
    optimizer = flow.optim.Adam(net.parameters(), lr=0.1)
    return {"net": net, "optimizer": optimizer, "x": flow.zeros(3, 5, placement=where, sbp=weight)}


def trained(state: dict[str, Any], count: int) -> None:
    for _ in range(count):
        state["optimizer"].zero_grad()
        state["net"](state["x"] + 0.5).square().sum().backward()
        state["optimizer"].step()
        with flow.no_grad():
            state["x"].add_(0.25)


def case_global_tensors_are_read_under_another_placement_and_signature() -> None:
    rank, n = world()
    split, b, p = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum
    row = flow.placement("cpu", ranks=list(range(n)))
    grid = flow.placement("cpu", ranks=np.arange(n).reshape(-1, 2) if n > 1 else [[0]])
    few = flow.placement("cpu", ranks=list(range(max(1, n // 2))))
    group = dist.new_group(few.members)
    wanted = global_state(row, b, b)
    trained(wanted, 3)
    numbers = [x.numpy() for x in (*wanted["net"].parameters(), wanted["x"])]
    kept = Path(os.environ["GLOBAL_CHECKPOINTS"]) if "GLOBAL_CHECKPOINTS" in os.environ else None
    with directory() as place:
        ways = [
            (row, split(0), b, row, split(1), split(0)),
            (row, split(1), p, grid, (split(0), b), (b, split(0))),
            (grid, (split(0), split(0)), (p, b), few, split(0), b),
            (few, split(1), split(0), grid, (b, split(1)), (split(0), p)),
        ]
        for k, (before, weight, bias, after, weight2, bias2) in enumerate(ways):
            state = global_state(before, weight, bias)
            trained(state, 2)
            checkpoint.save(state, checkpoint_id=place / str(k))
            again = global_state(after, weight2, bias2)
            if after is not few or rank in few.members:  # also by fewer ranks
                process_group = group if after is few else None
                checkpoint.load(again, checkpoint_id=place / str(k), process_group=process_group)
            if k == 0 and kept is not None:  # also what another number of ranks has written
                for other in kept.glob("*"):
                    again = global_state(after, weight2, bias2)
                    checkpoint.load(again, checkpoint_id=other)
                dist.barrier()
                checkpoint.save(state, checkpoint_id=kept / str(n))
            trained(again, 1)
            found = [x.numpy() for x in (*again["net"].parameters(), again["x"])]
            for a, c in zip(found, numbers, strict=True):
                np.testing.assert_allclose(a, c, atol=1e-6)
            plain: dict[str, Any] = {"x": None, "net": nn.Sequential(nn.Linear(5, 7), nn.Tanh())}
            plain["net"].append(nn.Linear(7, 5, bias=False))
            checkpoint.load(plain, checkpoint_id=place / str(k))
            assert plain["x"].tolist() == flow.full((3, 5), 0.5).tolist()
            np.testing.assert_array_equal(
                plain["net"][0].weight.detach(), state["net"][0].weight.numpy()
            )
        stored = sum(each.stat().st_size for each in (place / "0").glob("*/*.safetensors"))
        assert stored < 4 * 3 * (5 * 7 * 2 + 7 + 5) + n * 2500, stored  # each part once
        if n > 1:
            mine = [dist.new_group([each]) for each in range(n)][rank]
            given: Any = {"checkpoint_id": place / "own", "process_group": mine}
            lying = {"x": flow.ones(3, placement=row, sbp=b)}
            raises(SerializationError, "not all call this", checkpoint.save, lying, **given)


def case_what_ranks_have_in_common_is_written_once() -> None:
    rank, n = world()
    common = [flow.arange(1000.0) + i for i in range(8)]
    state = {
        "common": common,
        "own": flow.full((10,), float(rank)),
        "tied": {"a": common[0], "b": common[0]},
        "half": flow.ones(3, dtype=flow.bfloat16),
        "complex": flow.tensor([1 + 2j]),
        "no": [None, True, "x", 2.5, (1, flow.zeros(0))],
    }
    with directory() as place:
        checkpoint.save(state, checkpoint_id=place)
        sizes = [x.stat().st_size for x in sorted(place.glob("*/*.safetensors"))]
        assert len(sizes) == n and 32_000 < sum(sizes) < 32_000 + n * 2_000, sizes
        assert max(sizes) < 8 // min(n, 8) * 4000 + 2_000, sizes
        given: dict[str, Any] = dict.fromkeys(state)
        target = given["own"] = flow.zeros(10)
        checkpoint.load(given, checkpoint_id=place)
        assert given["own"] is target and target.tolist() == [float(rank)] * 10
        assert given["tied"]["a"] is given["tied"]["b"]
        assert given["half"].dtype == flow.bfloat16 and given["complex"].item() == 1 + 2j
        assert given["no"][:4] == [None, True, "x", 2.5] and given["no"][4][0] == 1
        assert all(flow.equal(a, b) for a, b in zip(given["common"], common, strict=True))


def case_old_and_incomplete_checkpoints_are_pruned() -> None:
    rank, _ = world()
    with directory() as place:
        raises(FileNotFoundError, "no complete", checkpoint.load, {"x": 0}, checkpoint_id=place)
        for step in range(4):
            checkpoint.save({"step": step}, checkpoint_id=place, keep=3)
        assert checkpoint.saved(place) == [2, 3, 4]
        dist.barrier()
        if rank == 0:
            (place / "checkpoint-00000004" / "manifest.json").unlink()  # as of one that was ended
        dist.barrier()
        state = {"step": 0}
        assert checkpoint.load(state, checkpoint_id=place) == 3 and state == {"step": 2}
        assert checkpoint.save({"step": 9}, checkpoint_id=place, keep=1) == 5
        dist.barrier()
        assert [x.name for x in place.iterdir()] == ["checkpoint-00000005"]
        raises(
            FileNotFoundError, "there are [5]", checkpoint.load, {}, checkpoint_id=place, number=3
        )
        raises(ValueError, "keep", checkpoint.save, {}, checkpoint_id=place, keep=0)
        raises(TypeError, "checkpoint_id", checkpoint.save, {})
        raises(TypeError, "state_dict", checkpoint.save, [], checkpoint_id=place)


def case_a_damaged_checkpoint_is_named() -> None:
    rank, _ = world()
    state: dict[str, Any] = {"x": flow.arange(100.0), "step": 1}

    def cut(path: Path) -> None:
        path.write_bytes(path.read_bytes()[:-10])

    def flip(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[-10] ^= 1
        path.write_bytes(bytes(data))

    manifest, file = "manifest.json", "rank0.safetensors"
    for name, damage, why in (
        (file, cut, "rank0.safetensors"),
        (file, flip, "the bytes of 'x'"),
        (file, Path.unlink, "No such file"),
        (manifest, cut, "manifest.json"),
        (manifest, flip, "manifest.json"),
    ):
        with directory() as place:
            for _ in range(2):
                checkpoint.save(state, checkpoint_id=place)
            dist.barrier()
            if rank == 0:
                damage(place / "checkpoint-00000002" / name)
            dist.barrier()
            given = {"x": flow.zeros(100), "step": 0}
            raises(SerializationError, why, checkpoint.load, given, checkpoint_id=place)
            text = "load(number=1)"
            raises(SerializationError, text, checkpoint.load, given, checkpoint_id=place)
            assert given["step"] == 0 and not given["x"].any()
            checkpoint.load(given, checkpoint_id=place, number=1)
            assert given["step"] == 1 and flow.equal(given["x"], state["x"])


def case_what_does_not_fit_is_refused_on_every_rank() -> None:
    rank, n = world()
    with directory() as place:
        odd = {"x": object()} if rank == n - 1 else {"x": 1}
        raises(
            SerializationError, "'x' is of type object", checkpoint.save, odd, checkpoint_id=place
        )
        assert not list(place.iterdir())
        checkpoint.save({"x": flow.ones(3), "deep": {"y": flow.ones(2)}}, checkpoint_id=place)
        for given, text in (
            ({"x": flow.zeros(3), "z": 1}, "has no 'z', but 'x', 'deep'"),
            (
                {"x": flow.zeros(3), "deep": {"y": flow.zeros(3)}},
                "'deep.y' is float32 of shape (2,)",
            ),
            ({"x": flow.zeros(3), "deep": {"y": flow.zeros(2, dtype=flow.int64)}}, "int64"),
        ):
            raises(SerializationError, text, checkpoint.load, given, checkpoint_id=place)
            assert not given["x"].any()
        dist.barrier()
        if rank == 0:
            (place / "file").write_text("")
        dist.barrier()
        kind: Any = NotADirectoryError if n == 1 else (NotADirectoryError, DistributedError)
        raises(kind, "", checkpoint.save, {"x": 1}, checkpoint_id=place / "file")
        reader = checkpoint.FileSystemReader(place)
        given = {"x": flow.zeros(3)}
        checkpoint.load(given, storage_reader=reader)
        assert given["x"].all()
