"""The list of works, the sides that can run them, and how two sides' results are compared."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import inspect
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

OURS = "oneflow_lite"
COMPILED = "compiled"
EAGER_SIDES = {
    OURS: "oneflow_lite",
    "torch": "PyTorch",
    "autograd": "HIPS/autograd",
    "numpy": "NumPy by hand",
}
COMPILED_SIDES = {
    COMPILED: "flow.compile",
    "torch.compile": "torch.compile",
    "paddle": "Paddle static",
    "jax": "jax.jit",
    "prealloc": "NumPy, preallocated",
}
# Sides of the table on machine code alone: see `jit.py`.
SIDES = {**EAGER_SIDES, **COMPILED_SIDES}
FORWARD = "forward"  # compiled alone; a side of `jit.py` only
NAMES = {**SIDES, FORWARD: "flow.compile of the forward pass"}
# Of the other sides it is their own name.
PACKAGES = {COMPILED: OURS, FORWARD: OURS, "torch.compile": "torch", "prealloc": "numpy"}
TOLERANCE = 1e-3
NOISE = 0.1  # processor cores taken by other programs, above which figures are not to be trusted


@dataclass(frozen=True)
class Work:
    """A work and the ratios that it is to reach: of times, and of bytes for `bytes_target`.

    `target` and `hips_target` are eager oneflow_lite's over PyTorch and HIPS/autograd, `compiled`
    maps sides to what compiled oneflow_lite is to take of their time. `tolerance` is what results
    of two sides may differ by, of their norm.
    """

    name: str
    title: str
    target: float | None
    predicted: float | None = None
    hips_target: float = 0.5
    compiled: Mapping[str, float] = field(default_factory=lambda: {OURS: 1.0})
    bytes_target: float = 1.0
    tolerance: float = TOLERANCE


_AHEAD = {"torch.compile": 1.0, "paddle": 1.0}


WORKS = {
    work.name: work
    for work in (
        Work("relu2", "relu forward + backward, 2 elements", 0.35, 0.12),
        Work(
            "chain300",
            "300 small ops forward + backward",
            0.4,
            0.22,
            compiled={OURS: 0.5, **_AHEAD},
        ),
        Work(
            "mlp",
            "MLP 784-64-64-10, batch 32, training step",
            0.8,
            0.55,
            compiled={OURS: 1 / 1.3, "prealloc": 1.1, **_AHEAD},
        ),
        Work(
            "mlp256",
            "MLP 784-256-256-10, batch 128, training step",
            None,
            compiled={OURS: 1.0, "prealloc": 1.1, **_AHEAD},
        ),
        Work(
            "third_order",
            "third-order gradients, 2-32-32-1 tanh net, 256 points",
            0.75,
            0.53,
            compiled={OURS: 1 / 1.3},
        ),
        Work(
            "lstm50",
            "LSTM cell unrolled 50 steps, 32 units, batch 8",
            None,
            compiled={OURS: 0.5},
        ),
        Work("chain20000", "chain of 20,000 adds, forward + backward", 0.4, 0.22),
        Work("demo_step", "the demo's training step, batch 64", 3.0),
        Work("gelu", "GELU of elementary ops, 1024 x 1024", 3.0, hips_target=0.9, bytes_target=0.7),
        Work(
            "transformer",
            "transformer block, d 128, 4 heads, 8 x 64 tokens",
            3.0,
            bytes_target=0.7,
        ),
        # A layer is one op, compiled or not.
        Work(
            "lstm_layers",
            "LSTM of 2 layers, 128 units, 64 steps, batch 32, training step",
            1.5,
            compiled={OURS: 1.1},
        ),
        Work(
            "gru_layers",
            "GRU of 2 layers, 128 units, 64 steps, batch 32, training step",
            1.5,
            compiled={OURS: 1.1},
        ),
        Work("encoder", "transformer encoder of 4 layers, d 128, 16 x 64, training step", 1.5),
        # Nearly all the time goes to products of matrices, compiled or not.
        Work(
            "resnet18",
            "ResNet-18, 16 images of 32 x 32, training step",
            1.5,
            compiled={OURS: 1.1},
            # Rounding decides where an activation lies near 0. After three steps PyTorch's gradient
            # was off by 2.4e-3 on one processor, ours by 2e-5; in float64 they differ by 4e-14.
            tolerance=1e-2,
        ),
        Work(
            "dcgan",
            "DCGAN, 16 images of 32 x 32, both training steps",
            1.5,
            compiled={OURS: 1.1},
        ),
        Work("char", "GPT of 6 layers, d 256, 8 heads, 8 x 64 tokens, training step", 2.0),
        Work("gpt", "GPT of 6 layers, d 192, 6 heads, 8 x 64 tokens, training step", 2.0),
    )
}
LARGE = ("demo_step", "gelu", "transformer")
LARGE_MEAN_TARGET = 2.0
IMPORT_TARGET_MS = 80.0
SCALING_TARGET = 13.0
BYTES_TARGET = 1.5
ANOMALY_TARGET = 3.0
HIT_COUNTS = (1, 10, 100)  # guarded tensors
HIT_TARGETS_US = {"fixed": 2.5, "each": 0.12}
BLOCK_PARAMETERS, BLOCK_TARGET_US = 75, 55.0  # of a transformer, in modules
RECORDING_TARGET = 2.0  # seconds for the step of more than 2,000 ops
STEPS_TARGET = 15.0  # eager steps for a recording that meets no function for the first time
FUNCTION_TARGET_MS = 1.0  # more for each function that it does
# Works whose compilation takes a side longer than all other measurements together.
TOO_LONG = {"torch.compile": ("chain20000",)}


class Digest(NamedTuple):
    """One result as it is kept for comparing: its shape, its norm and one projection of it."""

    shape: tuple[int, ...]
    norm: float
    projection: float


def installed(side: str) -> bool:
    """Tell whether ``side`` can be imported here, without importing it."""
    return importlib.util.find_spec(PACKAGES.get(side, side)) is not None


def build(side: str, name: str) -> Callable[[], list[Any]] | None:
    """Return one iteration of the work ``name`` on ``side``, None where it does not run there."""
    if name in TOO_LONG.get(side, ()):
        return None
    if side in (OURS, "torch", COMPILED, "torch.compile"):
        works = importlib.import_module("tests.benchmarks.tensor_works")
        lib = importlib.import_module(PACKAGES.get(side, side))
        step: Callable[[], list[Any]] = getattr(works, name)(lib)
        return step if side in (OURS, "torch") else lib.compile(step)  # type: ignore[no-any-return]
    if side == FORWARD:
        make = getattr(importlib.import_module("tests.benchmarks.tensor_works"), name)
        if "forward" not in inspect.signature(make).parameters:
            return None
        lib = importlib.import_module(OURS)
        return make(lib, forward=lib.compile)  # type: ignore[no-any-return]
    file = {
        "autograd": "hips_works",
        "numpy": "numpy_works",
        "paddle": "paddle_works",
        "prealloc": "prealloc_works",
        "jax": "jax_works",
    }[side]
    make = getattr(importlib.import_module(f"tests.benchmarks.{file}"), name, None)
    return None if make is None else make()


def check_replayed(step: Any) -> None:
    """Raise if ``step`` is our compiled code and was not replayed, or ran eagerly at a call."""
    if hasattr(step, "explain"):
        found = step.explain()
        if found.fallbacks or not found.hits:
            raise RuntimeError(f"not replayed: {found}")


def settle(step: Callable[[], Any], turns: int = 5, seconds: float = math.inf) -> None:
    """Run a step of ours until none of the Programs that it runs waits for machine code.

    Where little would be gained, code comes after thousands of runs: `seconds` ends the waiting.
    """
    end = time.perf_counter() + seconds
    importlib.import_module("oneflow_lite.ops.eager_loops").deterministic = True
    takeover = importlib.import_module("oneflow_lite.static.runtime.takeover")
    step(), step()  # recorded, and planned
    runners = [each for each in gc.get_objects() if issubclass(type(each), takeover.TakesOver)]
    while True:
        before = [runner._left for runner in runners]
        for _ in range(turns):
            step()
        if before == [runner._left for runner in runners] or time.perf_counter() > end:
            return


def planned_bytes(step: Any) -> int:
    """Return the size of the buffers that the last recording used keeps between its calls."""
    size: int = step._recordings[0].core.memory_plan.arena_bytes
    return size


def _digest(result: Any) -> Digest:
    if hasattr(result, "detach"):
        result = result.detach().numpy()
    array = np.asarray(result, np.float64)
    flat = array.ravel()
    projection = float(flat @ np.cos(np.arange(flat.size)))
    return Digest(array.shape, float(np.linalg.norm(flat)), projection)


def digests(step: Callable[[], list[Any]], iterations: int = 3) -> list[Digest]:
    """Run ``step`` a few times and digest every result: in the third, momentum shows."""
    return [_digest(result) for _ in range(iterations) for result in step()]


def difference(
    got: Sequence[Digest], expected: Sequence[Digest], tolerance: float = TOLERANCE
) -> str | None:
    """Say in what two sides' results differ beyond float32 rounding, or return None."""
    if len(got) != len(expected):
        return f"{len(got)} results against {len(expected)}"
    for index, (a, b) in enumerate(zip(got, expected, strict=True)):
        if tuple(a.shape) != tuple(b.shape):
            return f"result {index} has shape {tuple(a.shape)} against {tuple(b.shape)}"
        bound = tolerance * max(a.norm, b.norm)
        # Written so that a NaN on either side counts as a difference.
        if not (abs(a.norm - b.norm) <= bound and abs(a.projection - b.projection) <= bound):
            return (
                f"result {index} of shape {tuple(a.shape)}: norm {a.norm:.6g} against "
                f"{b.norm:.6g}, projection {a.projection:.6g} against {b.projection:.6g}"
            )
    return None
