"""Kills ranks of a training at random until it has died often: `python -m tests.distributed.soak`.

A program trains, writes checkpoints and is started again after each death. Whenever it gets to the
end, its parameters and random numbers have to be those of a run that nobody disturbed, to the bit.
Half of the deaths come at a random time, half at a random file operation of a checkpoint.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import shutil
import signal
import sys
import tempfile
from typing import Any

STEPS, EVERY = 12, 2
_EVENTS = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree"}


def _die_at(count: int, directory: str) -> None:
    """Die at a file operation in a directory."""
    seen = 0

    def hook(event: str, args: Any) -> None:
        nonlocal seen
        if event in _EVENTS and str(args[0]).startswith(directory):
            seen += 1
            if seen == count:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def train(directory: str, victim: int, seconds: float, operation: int) -> None:
    """Train on from the last checkpoint; one rank dies after some seconds, or file operations."""
    import oneflow_lite as flow
    import oneflow_lite.distributed as dist
    from oneflow_lite import nn

    dist.init_process_group()
    rank = dist.get_rank()
    flow.manual_seed(rank)
    inner = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Dropout(0.5), nn.Linear(16, 2))
    net = nn.parallel.DistributedDataParallel(inner)
    optimizer = dist.optim.ZeroRedundancyOptimizer(net.parameters(), flow.optim.Adam, lr=0.05)
    scheduler = flow.optim.lr_scheduler.StepLR(optimizer, 3, 0.9)
    state: dict[str, Any] = {
        "net": inner,
        "optimizer": optimizer,
        "scheduler": scheduler,
        "rng": flow.default_generator,
        "step": 0,
    }
    if rank == victim:
        if operation:
            _die_at(operation, directory)
        elif seconds:
            signal.setitimer(signal.ITIMER_REAL, seconds)  # nothing handles the signal: it kills
    if dist.checkpoint.saved(directory):
        dist.checkpoint.load(state, checkpoint_id=directory)
    begun = state["step"]
    for step in range(begun, STEPS):
        optimizer.zero_grad()
        net(flow.randn(8, 4)).square().mean().backward()
        optimizer.step()
        scheduler.step()
        state["step"] = step + 1
        if (step + 1) % EVERY == 0:
            dist.checkpoint.save(state, checkpoint_id=directory)
    signal.setitimer(signal.ITIMER_REAL, 0)
    found = hashlib.sha256(repr([x.tolist() for x in [*net.parameters(), flow.rand(3)]]).encode())
    said: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(said, found.hexdigest()[:16])
    if rank == 0:
        print(f"from step {begun}, ended with {' '.join(said)}.")
    dist.destroy_process_group()


def soak(kills: int, seed: int, ranks: int = 2, say: Any = print) -> int:
    """Kill ranks that often; return how many trainings came to their end in spite of it."""
    from tests.distributed.launch import start

    dice = random.Random(seed)

    def run(directory: str, *how: object) -> tuple[int, str]:
        return start(ranks, "-m", "tests.distributed.soak", "--train", directory, *map(str, how))

    def end(said: str) -> str:
        found = re.search(r"ended with (.*)\.", said)
        assert found, said
        return found[1]

    with tempfile.TemporaryDirectory() as place:
        status, said = run(os.path.join(place, "undisturbed"), -1, 0, 0)
        assert status == 0, said
        wanted, died, ended = end(said), 0, 0
        directory = os.path.join(place, "disturbed")
        while True:
            how: list[Any] = [-1, 0, 0]
            if died < kills:
                operation = dice.randint(1, 60) if dice.random() < 0.5 else 0
                how = [dice.randrange(ranks), dice.uniform(0.001, 0.4), operation]
            status, said = run(directory, *how)
            if status == 0:
                assert end(said) == wanted, f"seed {seed}: {said}, but undisturbed {wanted}"
                ended += 1
                if died == kills:
                    return ended
                shutil.rmtree(directory)
            else:
                assert "was killed" in said or "has ended" in said, said
                died += 1
            say(f"{died} deaths, {ended} trainings ended; {how}: {said.strip().splitlines()[-1:]}")


def main() -> None:
    """Train when told so, else soak."""
    if sys.argv[1:2] == ["--train"]:
        directory, victim, seconds, operation = sys.argv[2:]
        train(directory, int(victim), float(seconds), int(operation))
        return
    parser = argparse.ArgumentParser(description="kill ranks of a training at random")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    args = parser.parse_args()
    print(f"seed {args.seed}")
    ended = soak(args.kills, args.seed, args.ranks)
    print(f"{args.kills} deaths; {ended} trainings ended as the undisturbed one, to the bit")


if __name__ == "__main__":
    main()
