"""The costs of `flow.compile` itself: a call that is replayed, and the call that is recorded."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.compiler import rewrite
from oneflow_lite.ops import function_writer
from tests.benchmarks.works import HIT_COUNTS, check_replayed
from tests.compiler import constructs

LAYERS = 100  # of the network whose training step is recorded: about 2,100 ops
WIDTH = 16


def _of_arguments(count: int) -> tuple[Callable[..., Any], list[flow.Tensor]]:
    """Return a function of ``count`` tensors, and tensors for it."""

    def total(*tensors: flow.Tensor) -> flow.Tensor:
        y = tensors[0] * 2.0
        for x in tensors[1:]:
            y = y + x
        return y

    return total, [flow.ones(2) for _ in range(count)]


def _of_parameters(count: int) -> tuple[Callable[..., Any], list[flow.Tensor]]:
    """Return a function that reads ``count`` parameters from outside; it takes no argument."""
    parameters = [flow.ones(2, requires_grad=True) for _ in range(count)]

    def total() -> flow.Tensor:
        y = parameters[0] * 2.0
        for x in parameters[1:]:
            y = y + x
        return y

    return total, []


class _Shift(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(flow.ones(2))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        return x + self.shift


def _of_modules(count: int) -> tuple[Callable[..., Any], list[flow.Tensor]]:
    """Return a function that calls ``count`` modules with a parameter each."""
    net, x = nn.Sequential(*[_Shift() for _ in range(count)]), flow.ones(2)
    return lambda: net(x), []


KINDS = {"arguments": _of_arguments, "parameters": _of_parameters, "modules": _of_modules}


def _seconds(function: Callable[..., Any], arguments: Sequence[Any], batch: int) -> float:
    start = time.perf_counter()
    for _ in range(batch):
        function(*arguments)
    return (time.perf_counter() - start) / batch


def hit_seconds(kind: str, count: int, turns: int = 40, batch: int = 500) -> float:
    """Return what a replayed call costs beyond the run of its Program.

    Calls and runs take turns; the least of each counts, as others use the machine, too.
    """
    function, tensors = KINDS[kind](count)
    compiled = flow.compile(function)
    with flow.no_grad():
        for _ in range(3):
            compiled(*tensors)
        (recording,) = compiled._recordings
        feeds = [tensors[i]._data for i in recording.feed_positions]
        taken = [
            (
                _seconds(compiled, tensors, batch),
                _seconds(recording.core.run, [feeds, recording.externals], batch),
            )
            for _ in range(turns)
        ]
    check_replayed(compiled)
    calls, runs = map(min, zip(*taken, strict=True))
    return calls - runs


def measure_hits(turns: int = 40, batch: int = 500) -> dict[str, dict[str, Any]]:
    """Return for each kind of guarded tensor the seconds of a hit, and its line: fixed + each * k.

    A least-squares line; `seconds` are those of 1, 10 and 100 tensors.
    """
    found = {}
    for kind in KINDS:
        seconds = [hit_seconds(kind, count, turns, batch) for count in HIT_COUNTS]
        each, fixed = np.polyfit(HIT_COUNTS, seconds, 1)
        found[kind] = {"fixed": float(fixed), "each": float(each), "seconds": seconds}
    return found


def _training_step(layers: int) -> Callable[[], Any]:
    model = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(layers)])
    optimizer = flow.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x, y = flow.randn(8, WIDTH), flow.randn(8, WIDTH)

    def step() -> flow.Tensor:
        optimizer.zero_grad()
        h = x
        for layer in model:
            h = h + 0.1 * flow.tanh(flow.sin(layer(h)) * h)
        loss = nn.functional.mse_loss(h, y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def _small_step() -> Callable[[], Any]:
    """Return an Adam step of a small MLP that has been taken twice: all state is there."""
    model = nn.Sequential(nn.Linear(WIDTH, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = flow.optim.Adam(model.parameters(), lr=0.01)
    x, y = flow.randn(64, WIDTH), flow.randn(64, 1)

    def step() -> flow.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    step(), step()
    return step


def measure_small_recordings(turns: int = 15) -> dict[str, float]:
    """Time recordings of a small training step: `steps` in eager steps, `function` in seconds.

    `function` is what each function costs more that is met for the first time. The least of all
    turns counts.
    """
    flow.compile(lambda x: x + 1)(flow.ones(2))  # everything is loaded
    times: dict[str, list[float]] = {"eager": [], "new": [], "again": []}
    for _ in range(turns):
        times["eager"].append(_seconds(_small_step(), (), 10))
        constructs.forget()
        rewrite._codes.clear()
        function_writer.compiled.cache_clear()
        for kind in ("new", "again"):
            step = flow.compile(_small_step())
            times[kind].append(_seconds(step, (), 1))
            step()
            check_replayed(step)
    eager, new, again = (min(times[kind]) for kind in ("eager", "new", "again"))
    return {"steps": again / eager, "function": (new - again) / len(rewrite._codes)}


def measure_recording(turns: int = 3, layers: int = LAYERS) -> dict[str, float]:
    """Time the first call of a compiled training step against an eager call of the same step.

    Each turn has a network of its own. `ops` counts the ops that a replay runs. The
    numbers of `measure_small_recordings` are added.
    """
    _training_step(1)()
    recorded, eager = [], []
    ops = 0
    for _ in range(turns):
        for times, wrap in ((eager, lambda step: step), (recorded, flow.compile)):
            step = wrap(_training_step(layers))
            gc.collect()
            start = time.perf_counter()
            step()
            times.append(time.perf_counter() - start)
        step(), step()
        check_replayed(step)
        ops = len(step._recordings[0].core.plan.block.ops)
    extra = [a - b for a, b in zip(recorded, eager, strict=True)]
    return {
        "ops": ops,
        "eager": statistics.median(eager),
        "recorded": statistics.median(recorded),
        "extra": statistics.median(extra),
        **measure_small_recordings(5 * turns),
    }
