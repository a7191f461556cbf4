"""Programs whose analysis has something to say, and runs in every order that it allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite.static.runtime.instruction import Instruction
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from oneflow_lite.static.runtime.work_queue import Order, WorkQueue, earliest
from tests.static.build import Builder
from tests.static.reference import run_reference

Case = tuple[Builder, tuple[str, ...]]
FLOAT32 = np.dtype(np.float32)


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def on(place: Any, arrays: list[Any]) -> list[Any]:
    """Put arrays on a device."""
    return [place.put(array) for array in arrays]


def forward() -> Case:
    """Linear(16, 1) on a batch of 4, and the mean squared error: the forward pass of the docs."""
    b = Builder()
    x, label = b.feed("x", numbers(4, 16)), b.feed("label", numbers(4, 1, seed=1))
    weight, bias = b.external("weight", numbers(1, 16)), b.external("bias", numbers(1))
    prediction = b.op("add", b.op("matmul_nt", x, weight), bias)
    difference = b.op("sub", prediction, label)
    return b, (b.op("mean", b.op("square", difference), dim=(0, 1), keepdim=False),)


def training_step() -> Case:
    """Two layers, forward and backward, and SGD updates that must come after the last reads."""
    b = Builder()
    x = b.feed("x", numbers(5, 3))
    w1, w2 = b.external("w1", numbers(4, 3)), b.external("w2", numbers(2, 4, seed=1))
    lr = b.external("lr", np.array(0.5))
    h = b.op("relu", b.op("matmul_nt", x, w1))
    y = b.op("matmul_nt", h, w2)
    dw2 = b.op("matmul_tn", y, h, merge=False)
    dh = b.op("relu_grad", b.op("matmul", y, w2), h)
    dw1 = b.op("matmul_tn", dh, x, merge=False)
    for w, dw in ((w1, dw1), (w2, dw2)):
        b.op("sgd_update", w, dw, None, None, lr, None, None, None)
    return b, (y, dw1)


def written_views() -> Case:
    """Views that are written, read and written again, next to what they are views of."""
    b = Builder()
    x, s = b.feed("x", numbers(2, 3)), b.feed("s", numbers(6, seed=1))
    buffer = b.external("buffer", numbers(6, seed=2))
    a = b.op("exp", x)
    flat = b.op("reshape", a, shape=(6,))
    before = b.op("neg", a)
    b.op("copy_", flat, s)
    middle = b.op("sqrt", b.op("square", a))
    b.op("copy_", flat, buffer)
    after = b.op("add", flat, s)
    b.op("copy_", buffer, after)
    rows = b.op("reshape", buffer, shape=(3, 2))
    return b, (before, middle, after, b.op("add", rows, rows))


def draws() -> Case:
    """Random ops, whose order counts although nothing leads from one to the next."""
    b = Builder()
    generator = flow.Generator().manual_seed(3)
    x, z = b.feed("x", numbers(3)), b.feed("z", numbers(3, seed=1))
    first = b.op("random_uniform", shape=(3,), dtype=FLOAT32, generator=generator)
    mask = b.op("dropout_mask", x, p=0.5, generator=generator)
    second = b.op("random_normal", shape=(3,), dtype=FLOAT32, generator=generator)
    kept = b.op("mul", mask, z)
    return b, (b.op("add", first, x), kept, b.op("sub", second, first))


def shapes_only() -> Case:
    """Ops that want the shape of an input, after its memory has been given back."""
    b = Builder()
    x = b.feed("x", numbers(2, 2))
    a = b.op("exp", x)
    c = b.op("neg", a)
    ones = b.op("ones_like", a)
    return b, (b.op("add", b.op("relu", c), ones), b.op("zeros_like", c))


PROGRAMS: dict[str, Callable[[], Case]] = {
    make.__name__: make for make in (forward, training_step, written_views, draws, shapes_only)
}


def given(b: Builder, core: InterpreterCore) -> tuple[list[Any], list[Any]]:
    """Return fresh feeds and arrays for the persistable variables."""
    fresh = _initial(b)
    return [fresh[n] for n in b.feeds], [fresh[n] for n in core.external_names]


def _initial(b: Builder) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    return {
        name: rng.uniform(0.5, 2, desc.shape).astype(desc.dtype)
        for name, desc in b.block.vars.items()
        if desc.persistable or desc.need_check_feed
    }


def reseed(b: Builder) -> None:
    for op in b.block.ops:
        if "generator" in op.attrs:
            op.attrs["generator"].manual_seed(3)


def expected(b: Builder, fetches: Sequence[str], core: InterpreterCore) -> list[Any]:
    """Return what a run must fetch, and then leave in the persistable variables."""
    reseed(b)
    values = run_reference(b.program, _initial(b))
    return [values[name].copy() for name in (*fetches, *core.external_names)]


def outcome(b: Builder, core: InterpreterCore, order: Order | None, threads: int = 1) -> list[Any]:
    """Return what a run fetches and leaves."""
    reseed(b)
    feeds, externals = given(b, core)
    return [*WorkQueue(core, threads, order).run(feeds, externals), *externals]


def orders(core: InterpreterCore) -> Iterator[Order]:
    """Go through the orders to try: each instruction as soon, and as late, as can be."""
    yield earliest
    yield lambda ready: max(range(len(ready)), key=lambda k: ready[k].index)
    for instruction in core.instructions:
        yield _soon(core, instruction)
        yield lambda ready, late=instruction: min(
            range(len(ready)), key=lambda k: (ready[k] is late, ready[k].index)
        )


def _soon(core: InterpreterCore, wanted: Instruction) -> Order:
    """Run what an instruction waits for before anything else."""
    needed = {wanted.index}
    for i in reversed(range(len(core.instructions))):
        if needed.intersection(core.downstream[i]):
            needed.add(i)
    return lambda ready: min(
        range(len(ready)), key=lambda k: (ready[k].index not in needed, ready[k].index)
    )


def same(results: Sequence[Any], right: Sequence[Any]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(results, right, strict=True))


def survives_all_orders(b: Builder, fetches: Sequence[str], core: InterpreterCore) -> bool:
    """Return whether every order that the tables of a core allow gives the right results."""
    right = expected(b, fetches, core)
    for order in orders(core):
        try:
            if not same(outcome(b, core, order), right):
                return False
        except Exception:  # whatever a kernel says to a variable that is gone or not there yet
            return False
    return True
