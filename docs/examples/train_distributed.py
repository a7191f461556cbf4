"""Train on several processes: each has a share of every batch, and all take the same step.

    python docs/examples/train_distributed.py                             # one process
    mpiexec -n 2 python docs/examples/train_distributed.py                # two, on one machine
    mpiexec -n 2 python docs/examples/train_distributed.py --model transformer
    mpiexec -f hosts -n 8 python docs/examples/train_distributed.py       # on many
    mpiexec -n 2 python docs/examples/train_distributed.py --checkpoints runs/digits

The networks are those of digits.py and char_transformer.py beside this file. A batch has as many
samples for any number of processes, so a step does the same: only dropout draws other numbers, and
sums are taken in another order. `--shard` keeps the optimizer's state in shares, one on each rank.
With `--checkpoints` the state is written to a directory every 20 steps, and a run that was ended
goes on from there, on any number of processes, when the same command starts it again.
At the end the ranks compare their parameters, which are equal to the bit, and evaluate the network
together. docs/distributed.md says more, about SLURM and containers as well.
"""

import argparse
import itertools
import sys
import time
import zlib
from collections.abc import Iterator
from typing import Any

from showing import read_options  # first: it says how many threads there are

import oneflow_lite as flow
import oneflow_lite.distributed as dist
from oneflow_lite import nn
from oneflow_lite.nn.parallel import DistributedDataParallel
from oneflow_lite.utils.data import DataLoader, DistributedSampler, TensorDataset

Batches = Iterator[tuple[flow.Tensor, ...]]


class Digits:
    """The demo's network, which reads handwritten digits."""

    batch, lr = 256, 0.3

    def __init__(self, seed: int) -> None:
        import digits

        self.train, self.held_out = digits.load_scans(seed)
        self.network = digits.Network()
        self.dataset = TensorDataset(*map(flow.from_numpy, self.train))

    def batches(self, share: int, start: int) -> Batches:
        """Give this rank's share of every batch from one on, epoch after epoch."""
        sampler = DistributedSampler(self.dataset, drop_last=True)
        own = flow.Generator().manual_seed(0)  # not the one that dropout draws from
        loader = DataLoader(
            self.dataset, batch_size=share, sampler=sampler, drop_last=True, generator=own
        )
        for epoch in range(start // len(loader), sys.maxsize):
            sampler.set_epoch(epoch)  # another order in each
            yield from itertools.islice(loader, start % len(loader), None)
            start = 0

    def loss(self, net: nn.Module, images: flow.Tensor, labels: flow.Tensor) -> flow.Tensor:
        return nn.functional.nll_loss(net(images), labels)

    def score(self, net: nn.Module) -> tuple[str, float, int]:
        """Return what is counted in this rank's share of the held-out digits, and of how many."""
        images, labels = (x[dist.get_rank() :: dist.get_world_size()] for x in self.held_out)
        found = net(flow.from_numpy(images)).argmax(1)
        right = (found == flow.from_numpy(labels)).sum().item()
        return "of the held-out digits are read correctly", float(right), len(labels)


class Transformer:
    """The transformer that learns verse by the character."""

    batch, lr = 32, 0.5

    def __init__(self, seed: int) -> None:
        import char_transformer

        self.example = char_transformer
        text = char_transformer.TEXT.read_text(encoding="utf-8")
        alphabet = {character: i for i, character in enumerate(sorted(set(text)))}
        codes = flow.tensor([alphabet[character] for character in text])
        self.train, self.held_out = codes[: -len(codes) // 10], codes[-len(codes) // 10 :]
        self.network = char_transformer.Transformer(len(alphabet))
        self.seed = seed

    def batches(self, share: int, start: int) -> Batches:
        """Give this rank's share of every batch: all draw the same places, and take their own."""
        size, rank = dist.get_world_size(), dist.get_rank()
        generator = flow.Generator().manual_seed(self.seed)
        last = len(self.train) - self.example.CONTEXT
        for step in itertools.count():
            starts = flow.randint(last, (share * size,), generator=generator)
            mine = starts[share * rank : share * (rank + 1)]
            if step >= start:
                yield (self.example.windows_of(self.train, mine),)

    def loss(self, net: nn.Module, windows: flow.Tensor) -> flow.Tensor:
        return self.example.loss_of(net, windows)

    def score(self, net: nn.Module) -> tuple[str, float, int]:
        """Return the nats of this rank's share of the held-out text, and of how many windows."""
        context = self.example.CONTEXT
        starts = flow.arange(0, len(self.held_out) - context, context)
        mine = starts[dist.get_rank() :: dist.get_world_size()]
        loss = self.loss(net, self.example.windows_of(self.held_out, mine)).item()
        return "nats for each held-out character", loss * len(mine), len(mine)


TASKS: dict[str, Any] = {"digits": Digits, "transformer": Transformer}


def train(task: Any, args: Any) -> tuple[DistributedDataParallel, float, float]:
    """Train; return the network, the mean loss of the last step, and samples per second."""
    size = dist.get_world_size()
    share = max(1, task.batch // size)
    net = DistributedDataParallel(task.network)
    flow.manual_seed(args.seed + 1 + dist.get_rank())  # dropout differs from rank to rank
    if args.shard:
        optimizer: Any = dist.optim.ZeroRedundancyOptimizer(
            net.parameters(), flow.optim.SGD, lr=task.lr, momentum=0.5
        )
    else:
        optimizer = flow.optim.SGD(net.parameters(), lr=task.lr, momentum=0.5)
    state: dict[str, Any] = {
        "net": net.module,
        "optimizer": optimizer,
        "rng": flow.default_generator,
        "step": 0,
    }
    if args.checkpoints and dist.checkpoint.saved(args.checkpoints):
        dist.checkpoint.load(state, checkpoint_id=args.checkpoints)
    start = state["step"]
    batches = task.batches(share, start)
    loss = flow.zeros(())
    begun = time.perf_counter()
    for step in range(start, args.steps):
        optimizer.zero_grad()
        loss = task.loss(net, *next(batches))
        loss.backward()  # gradients travel while it runs
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # they are the same on all ranks
        optimizer.step()
        state["step"] = step + 1
        if args.checkpoints and (step % 20 == 19 or step == args.steps - 1):
            dist.checkpoint.save(state, checkpoint_id=args.checkpoints)
    mean = loss.detach()
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    rate = (args.steps - start) * share * size / (time.perf_counter() - begun)
    return net, mean.item(), rate


@flow.no_grad()
def evaluate(task: Any, net: nn.Module) -> tuple[str, float]:
    """Let each rank look at its share of what was held out; return what all found."""
    net.eval()
    what, found, count = task.score(net)
    total = flow.tensor([found, float(count)], dtype=flow.float64)
    dist.all_reduce(total)
    return what, (total[0] / total[1]).item()


def are_equal(net: DistributedDataParallel) -> bool:
    """Return whether all ranks have the same parameters, to the bit."""
    sums = [zlib.crc32(x.detach().numpy().tobytes()) for x in net.parameters()]
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, sums)
    return all(each == sums for each in everyone)


def main(argv: list[str] | None = None) -> int:
    """Train and evaluate; return 1 when the ranks differ."""
    parser = argparse.ArgumentParser(description="train on several processes")
    parser.add_argument("--model", choices=TASKS, default="digits", help="default %(default)s")
    parser.add_argument("--shard", action="store_true", help="share out the optimizer's state")
    parser.add_argument("--checkpoints", help="a directory to write the state to, and go on from")
    chosen, rest = parser.parse_known_args(argv)
    args = read_options(rest, "train on several processes", 100)
    args.shard, args.checkpoints = chosen.shard, chosen.checkpoints
    dist.init_process_group()
    flow.manual_seed(args.seed)
    task = TASKS[chosen.model](args.seed)
    net, loss, rate = train(task, args)
    what, found = evaluate(task, net)
    equal = are_equal(net)
    if dist.get_rank() == 0:  # one of them prints
        print(f"{dist.get_world_size()} ranks, {rate:.0f} samples a second, loss {loss:.4f}")
        print(f"{found:.4f} {what}")
        print(f"The ranks' parameters are {'equal' if equal else 'DIFFERENT'}.")
    dist.destroy_process_group()
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
