"""Growth of training with ranks: measured on two, and a model of many.

`python -m tests.benchmarks.distributed --write` fills the marked part of docs/distributed.md and
draws docs/figures/distributed.svg. `--works`, `--rounds` and `--steps` make it shorter.

All ways to take a step are timed in one launch, in turns, so that other programs disturb them
alike: one process alone, two that know nothing of each other, and two that train together; in
another launch, one process with and without the wrapper, and with reductions that cost nothing.
The time of a step is the median over a turn, then over the rounds; ratios are taken within a round.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.benchmarks.jit import cell
from tests.benchmarks.results import table, versions, write
from tests.progress import progress

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "distributed.md"
FIGURE = ROOT / "docs" / "figures" / "distributed.svg"
START, END = "<!-- growth: begin -->", "<!-- growth: end -->"
WORKS = {
    "digits": "the demo's network, 256 images a rank",
    "transformer": "the character transformer, 32 windows a rank",
}
BATCH = {"digits": 256, "transformer": 32}
SPEED_UP, OF_INDEPENDENT, HIDDEN, COST, MISS = 1.8, 0.9, 0.6, 1.03, 0.2
RANKS = [2**i for i in range(11)]
SIZES = [2**i for i in range(3, 23, 3)]  # bytes of the reductions that are timed


class Network(NamedTuple):
    """A network between the ranks: seconds for a message, and bytes a second, for each rank."""

    name: str
    latency: float
    bandwidth: float

    def all_reduce(self, nbytes: float, ranks: int) -> float:
        """Return the seconds of a reduction: by a ring, or by halving and doubling.

        Both move 2 (n - 1) / n of the bytes; their messages follow each other 2 (n - 1) times, or
        2 log2 n times (Thakur, Rabenseifner and Gropp, 2005). Libraries choose.
        """
        if ranks == 1:
            return 0.0
        messages = 2 * min(ranks - 1, math.ceil(math.log2(ranks)))
        return messages * self.latency + 2 * (ranks - 1) / ranks * nbytes / self.bandwidth


# Assumed: what such networks usually reach, not what was measured.
NETWORKS = (
    Network("Ethernet, 1 Gbit/s", 50e-6, 0.11e9),
    Network("Ethernet, 25 Gbit/s", 20e-6, 2.8e9),
    Network("InfiniBand, 200 Gbit/s", 2e-6, 23e9),
)
FASTER = (1, 100)  # the cores that were measured, and what computes so many times as fast


def step_seconds(found: Mapping[str, Any], network: Network, ranks: int) -> float:
    """Predict a step where reductions take no time of the CPU.

    Buckets are ready one after the other during the backward pass, in proportion to their bytes,
    and travel one after the other.
    """
    total, ready = sum(found["buckets"]), 0.0
    begin, backward = found["forward"], found["backward"] + found["hooks"]
    done = begin
    for nbytes in found["buckets"]:
        ready += nbytes / total
        done = max(done, begin + ready * backward) + network.all_reduce(nbytes, ranks)
    return max(done, begin + backward) + found["update"]


def hastened(found: Mapping[str, Any], times: float) -> dict[str, Any]:
    """Return what would be found where a rank computes faster."""
    parts = ("forward", "backward", "update", "hooks")
    return {**found, **{name: found[name] / times for name in parts}}


def shares(found: Mapping[str, Any], network: Network, ranks: Sequence[int]) -> list[float]:
    """Return the part of a rank's speed that is left among so many."""
    alone = step_seconds(found, network, 1)
    return [alone / step_seconds(found, network, n) for n in ranks]


def limit(found: Mapping[str, Any], network: Network, ranks: int) -> str:
    """Return what a step of many ranks waits for, where they lose a tenth or more."""
    alone = step_seconds(found, network, 1)
    if alone > 0.9 * step_seconds(found, network, ranks):
        return "-"
    free = network._replace(latency=0.0)
    lost_to_latency = step_seconds(found, network, ranks) - step_seconds(found, free, ranks)
    rest = step_seconds(found, free, ranks) - alone
    return "latency" if lost_to_latency > rest else "bandwidth"


def predict_two(found: Mapping[str, Any]) -> float:
    """Predict a step of two ranks that reduce by their own CPUs: nothing is hidden."""
    own = Network("memory", found["latency"] / 2, found["bandwidth"])
    moved = sum(own.all_reduce(nbytes, 2) for nbytes in found["buckets"])
    return float(found["slower"] + found["hooks"] + moved)


def fit(sizes: Sequence[int], seconds: Sequence[float]) -> tuple[float, float]:
    """Return latency and bandwidth of a line through times, by their relative distances."""
    weights = 1 / np.asarray(seconds)
    matrix = np.stack([np.ones(len(sizes)), np.asarray(sizes, float)], axis=1) * weights[:, None]
    (latency, each), *_ = np.linalg.lstsq(matrix, np.ones(len(sizes)), rcond=None)
    return max(float(latency), 1e-9), 1 / max(float(each), 1e-15)


# In a rank


class _Modelled:
    """A request that is done after a time, for which nobody works."""

    def __init__(self, end: float) -> None:
        self._end = end

    def Test(self) -> bool:
        return time.perf_counter() >= self._end


def modelled_group(seconds_of: Callable[[int], float]) -> Any:
    """Return a group of two ranks whose reductions are done after a time, one after the other."""
    from oneflow_lite.distributed.process_group import ProcessGroup
    from oneflow_lite.distributed.transport import Transport
    from oneflow_lite.distributed.work import Queue, Work

    class Delayed(Transport):
        def __init__(self) -> None:
            super().__init__()
            self.end = 0.0
            self.queue = Queue("the model", 60.0, lambda what: None)

        def all_reduce(self, x: Any, out: Any, op: str) -> Work:
            self.end = max(self.end, time.perf_counter()) + seconds_of(x.nbytes)
            request = _Modelled(self.end)
            return Work("all_reduce", lambda: request, queue=self.queue)

    class Group(ProcessGroup):
        def _make_transport(self, kind: str) -> Transport:
            return Delayed()

        def private(self) -> ProcessGroup:
            return self

    return Group("the model", (0, 1), 0, None, "mpi", 60.0)


class Training:
    """A network, the batch of a rank, and the step on them."""

    def __init__(self, work: str) -> None:
        sys.path.insert(0, str(ROOT / "docs" / "examples"))
        import train_distributed

        import oneflow_lite as flow

        flow.manual_seed(0)
        self.flow, self.task = flow, train_distributed.TASKS[work](0)
        self.network, size = self.task.network, BATCH[work]
        if work == "digits":
            self.batch: Any = self.task.dataset[:size]
        else:
            starts = flow.randint(len(self.task.train) - 100, (size,))
            self.batch = (self.task.example.windows_of(self.task.train, starts),)
        self.nbytes = sum(x.numel() * 4 for x in self.network.parameters())

    def parallel(self, group: Any = None, **options: Any) -> Any:
        """Return a copy of the network, data parallel."""
        import copy

        with_group = {"process_group": group, "init_sync": False} if group else {}
        return self.flow.nn.parallel.DistributedDataParallel(
            copy.deepcopy(self.network), broadcast_buffers=False, **with_group, **options
        )

    def step_of(self, net: Any) -> Callable[[], list[float]]:
        """Return a function that takes a step, and returns when each part of it was done."""
        optimizer = self.flow.optim.SGD(net.parameters(), lr=1e-3, momentum=0.5)

        def step() -> list[float]:
            moments = [time.perf_counter()]
            optimizer.zero_grad()
            loss = self.task.loss(net, *self.batch)
            moments.append(time.perf_counter())
            loss.backward()
            moments.append(time.perf_counter())
            optimizer.step()
            moments.append(time.perf_counter())
            return moments

        for _ in range(3):
            step()
        return step


def turn(step: Callable[[], list[float]], count: int) -> Any:
    """Return the seconds of forward, backward, update and the whole, for each of some steps."""
    moments = np.array([step() for _ in range(count)])
    return np.concatenate([np.diff(moments, axis=1), moments[:, -1:] - moments[:, :1]], axis=1)


def measure_two(work: str, rounds: int, steps: int) -> dict[str, Any]:
    """Measure on two ranks; rank 0 returns what both found."""
    import oneflow_lite.distributed as dist

    dist.init_process_group()
    training = Training(work)
    together = training.parallel()
    transport: Any = together._reducer.group.transport(np)
    counted: list[int] = []
    reduce = transport.all_reduce

    def counting(x: Any, *rest: Any) -> Any:
        counted.append(x.nbytes)
        return reduce(x, *rest)

    ways = {
        "plain": training.step_of(training.network),
        "together": training.step_of(together),
    }
    transport.all_reduce = counting
    ways["together"]()
    transport.all_reduce = reduce
    buckets = list(counted)
    times: dict[str, list[Any]] = {name: [] for name in ("alone", "plain", "together")}
    slower, reductions = [], []
    for _ in range(rounds):
        dist.barrier()
        if dist.get_rank() == 0:
            times["alone"].append(np.median(turn(ways["plain"], steps), axis=0))
        for name, way in ways.items():
            dist.barrier()
            found = turn(way, steps)
            both: list[Any] = [None] * 2
            dist.all_gather_object(both, found)
            times[name].append(np.median(np.concatenate(both), axis=0))
            if name == "plain":
                slower.append(np.median(np.maximum(both[0][:, -1], both[1][:, -1])))
        reductions.append([reduction_seconds(transport, size) for size in SIZES])
    medians = {name: np.median(found, axis=0) for name, found in times.items() if found}
    latency, bandwidth = fit(SIZES, [float(x) for x in np.median(reductions, axis=0)])
    dist.destroy_process_group()
    if dist.is_initialized() or "alone" not in medians:
        return {}
    forward, backward, update, _ = (float(x) for x in medians["alone"])

    def ratio(name: str, factor: float) -> float:
        pairs = zip(times_of(name), times_of("together"), strict=True)
        return float(np.median([factor * one / other for one, other in pairs]))

    def times_of(name: str) -> list[float]:
        return [float(each[-1]) for each in times[name]]

    return {
        "forward": forward,
        "backward": backward,
        "update": update,
        **{name: float(found[-1]) for name, found in medians.items()},
        "speed_up": ratio("alone", 2.0),
        "of_independent": ratio("plain", 1.0),
        "slower": float(np.median(slower)),
        "buckets": buckets,
        "gradients": training.nbytes,
        "latency": latency,
        "bandwidth": bandwidth,
        "small": [float(x) for x in np.median(reductions, axis=0)],
    }


def reduction_seconds(transport: Any, nbytes: int) -> float:
    """Time reductions of that many bytes; return the median."""
    x = np.ones(nbytes // 4, np.float32)
    found = []
    for _ in range(max(5, min(200, 2**22 // nbytes))):
        begun = time.perf_counter()
        transport.all_reduce(x, x, "max").wait()
        found.append(time.perf_counter() - begun)
    return statistics.median(found)


def measure_one(work: str, rounds: int, steps: int) -> dict[str, Any]:
    """Measure in one process: what is hidden of modelled reductions, and what the wrapper costs."""
    import oneflow_lite.distributed as dist

    dist.init_process_group()
    training = Training(work)
    cap = training.nbytes / 8 / 2**20
    plain = training.step_of(training.network)
    wrapped = training.step_of(training.parallel())
    backward = float(np.median(turn(plain, steps), axis=0)[1])
    rate = training.nbytes / (backward / 2)  # the network takes half of the backward pass
    nets = [
        training.parallel(modelled_group(seconds_of), bucket_cap_mb=cap)
        for seconds_of in (lambda _: 0.0, lambda nbytes: nbytes / rate)
    ]
    ways = [plain, wrapped, *map(training.step_of, nets)]
    found = np.array([[turn(way, 1)[0, -1] for way in ways] for _ in range(rounds * steps)])
    shown = np.median(found[:, 3]) - np.median(found[:, 2])
    dist.destroy_process_group()
    return {
        "hooks": max(0.0, float(np.median(found[:, 2]) - np.median(found[:, 0]))),
        "cost": float(np.median(found[:, 1]) / np.median(found[:, 0])),
        "hidden": float(1 - shown / (backward / 2)),
        "moved": backward / 2,
        "buckets_of_model": len(nets[1]._reducer.buckets),
    }


# The report


def section(results: Mapping[str, Mapping[str, Any]], rounds: int, steps: int, load: float) -> str:
    """Return the part of the page that is measured, or follows from it."""
    used = ", ".join(f"{name} {version}" for name, version in versions().items())
    rows, costs, model, limits = [], [], [], []
    for work, found in results.items():
        title, ms = WORKS[work], 1e3
        rows.append(
            [
                title,
                *(f"{ms * found[name]:.3g}" for name in ("alone", "plain", "slower", "together")),
                cell(found["speed_up"], SPEED_UP, at_least=True),
                cell(found["of_independent"], OF_INDEPENDENT, at_least=True),
            ]
        )
        costs.append(
            [
                title,
                cell(found["cost"], COST),
                cell(found["hidden"], HIDDEN, at_least=True),
                f"{found['buckets_of_model']}",
                f"{sum(found['buckets']):,}",
                f"{sum(found['buckets']) / found['gradients']:.2f}",
            ]
        )
        predicted = predict_two(found)
        miss = abs(predicted / found["together"] - 1)
        model.append(
            [
                title,
                f"{1e6 * found['latency']:.3g}",
                f"{found['bandwidth'] / 1e9:.3g}",
                f"{ms * found['hooks']:.2g}",
                f"{ms * predicted:.3g}",
                f"{ms * found['together']:.3g}",
                cell(miss, MISS),
            ]
        )
        for times in FASTER:
            faster = hastened(found, times)
            for network in NETWORKS:
                cells = [f"{share:.0%}" for share in shares(faster, network, (8, 64, 1024))]
                named = f"{title}{f', {times} times as fast' if times > 1 else ''}"
                limits.append([named, network.name, *cells, limit(faster, network, 1024)])
    return "\n\n".join(
        [
            START,
            f"Measured on two cores, one thread a rank, {rounds} rounds of {steps} steps, medians, "
            f"begun at a load of {load:.1f}; {used}.",
            table(
                [
                    "ms for a step",
                    "alone",
                    "two independent",
                    "the slower of both",
                    "two ranks",
                    "times 1",
                    "of independent",
                ],
                rows,
            ),
            table(
                [
                    "",
                    "wrapped / plain, one rank",
                    "hidden of modelled reductions",
                    "buckets",
                    "bytes reduced in a step",
                    "/ the ring's lower bound",
                ],
                costs,
            ),
            "A ring sends 2 (n - 1) / n of the reduced bytes from each rank; no way sends less. "
            "The table compares the bytes that `DistributedDataParallel` reduces with it.",
            "The model of two ranks, beside what was measured:",
            table(
                ["", "latency µs", "GB/s", "hooks ms", "predicted ms", "measured ms", "miss"], model
            ),
            f"![efficiency against ranks]({FIGURE.parent.name}/{FIGURE.name})",
            "The model for more ranks, on networks whose latency and bandwidth are assumed, not "
            "measured: the part of a rank's speed that is left, and what the step waits for at "
            "1,024 ranks where a tenth or more is lost.",
            table(["", "network", "8", "64", "1,024 ranks", "limit"], limits),
            END,
        ]
    )


def draw(results: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Draw the part of a rank's speed that is left against the number of ranks."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    mpl.rcParams.update({"svg.hashsalt": "distributed", "svg.fonttype": "none", "font.size": 9})
    size = (5 * len(results), 3.2 * len(FASTER))
    figure, axes = pyplot.subplots(
        len(FASTER), len(results), figsize=size, layout="constrained", squeeze=False, sharex=True
    )
    for times, row in zip(FASTER, axes, strict=True):
        for (work, found), axis in zip(results.items(), row, strict=True):
            for network in NETWORKS:
                left = shares(hastened(found, times), network, RANKS)
                axis.semilogx(RANKS, left, base=2, marker="o", markersize=3, label=network.name)
            if times == 1:
                axis.plot([2], [found["of_independent"]], "k*", label="measured, shared memory")
                axis.set_title(WORKS[work])
            else:
                axis.set(title=f"{times} times as fast", xlabel="ranks")
            axis.set_ylim(0, 1.1)
            axis.set_xticks(RANKS, [f"{n:,}" for n in RANKS], rotation=45)
            axis.grid(alpha=0.3)
        row[0].set_ylabel("speed of a rank, 1 where it is alone")
    axes[0][-1].legend(loc="lower left")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure all rows, print the tables, and write them if that was asked for."""
    from tests.distributed.launch import start

    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.distributed")
    parser.add_argument("--works", nargs="+", choices=list(WORKS), default=list(WORKS))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="fill docs/distributed.md")
    parser.add_argument("--in", dest="inside", choices=("one", "two"), help="for the processes")
    options = parser.parse_args(argv)
    if options.write and options.works != list(WORKS):
        parser.error("--write is for all rows: leave out --works")
    if options.inside:
        measure = {"one": measure_one, "two": measure_two}[options.inside]
        found = measure(options.works[0], options.rounds, options.steps)
        if found:
            print("found " + json.dumps(found), flush=True)
        return
    results: dict[str, dict[str, Any]] = {}
    load = os.getloadavg()[0]
    turns = ["--rounds", str(options.rounds), "--steps", str(options.steps)]
    for work in progress(options.works, len(options.works), "work"):
        results[work] = {}
        for ranks, name in ((0, "one"), (2, "two")):
            command = ["-m", "tests.benchmarks.distributed", "--in", name, "--works", work, *turns]
            status, said = start(ranks, *command, seconds=1800)
            lines = [line for line in said.splitlines() if line.startswith("found ")]
            if status or not lines:
                raise SystemExit(said)
            results[work] |= json.loads(lines[-1][len("found ") :])
    text = section(results, options.rounds, options.steps, load)
    print(text)
    if options.write:
        draw(results, FIGURE)
        write(text, PAGE, START, END)
        print(f"written: {FIGURE.name} and {PAGE.name}")


if __name__ == "__main__":
    main()
