"""Times common operators beside PyTorch, forward and backward.

Each operator runs at a small and at a large size, as one expression that both libraries read. Each
side has a process of its own, in turns. One thread each: NumPy has no more outside of BLAS.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.benchmarks.results import PAGE as BENCHMARKS, write
from tests.progress import progress

ROOT = Path(__file__).resolve().parents[2]
PAGE = BENCHMARKS.with_name("benchmark_operators.md")
START, END = "<!-- operators: begin -->", "<!-- operators: end -->"
_BUILT = 4.0  # seconds, in which loops are built and take over
SMALL_TARGET, LARGE_TARGET, NUMPY_TARGET = 1.5, 3.0, 1.2


class Operator(NamedTuple):
    """An expression over `x`, `y`, `w`, `u` (differentiated), `i` (integers), `m` (bools), `t`.

    Elements of `u` are near 1, so that products of many neither vanish nor overflow.

    `sizes` maps names to their shapes, small and large; `i: (shape, n)` are integers below n.
    """

    name: str
    text: str
    sizes: dict[str, tuple[Any, Any]]


_FLAT = {"x": ((16,), (1000, 1000))}
_TWO = {**_FLAT, "y": ((16,), (1000, 1000))}
_TABLE = {"x": ((4, 8), (1000, 1000))}
_FACTORS = {"u": _TABLE["x"]}
_CLASSES = {"x": ((8, 10), (4096, 256)), "i": (((8,), 10), ((4096,), 256))}
_IMAGE = {"x": ((1, 3, 8, 8), (16, 32, 32, 32))}
_MATRIX = {"x": ((4, 4), (200, 200))}

OPERATORS = [
    *(Operator(name, f"lib.{name}(x)", _FLAT) for name in
      "exp sin cos tanh sigmoid abs sqrt log erf digamma".split()),
    *(Operator(name, f"F.{name}(x)", _FLAT) for name in
      "relu leaky_relu gelu silu softplus elu hardswish".split()),
    Operator("add", "x + y", _TWO),
    Operator("mul", "x * y", _TWO),
    Operator("div", "x / y", _TWO),
    Operator("maximum", "lib.maximum(x, y)", _TWO),
    Operator("add, broadcast", "x + w", {**_TABLE, "w": ((8,), (1000,))}),
    Operator("pow 3", "x ** 3", _FLAT),
    Operator("clamp", "x.clamp(0.5, 1.5)", _FLAT),
    Operator("where", "lib.where(m, x, y)", {**_TWO, "m": ((16,), (1000, 1000))}),
    Operator("lerp", "lib.lerp(x, y, 0.3)", _TWO),
    Operator("sum", "x.sum()", _FLAT),
    *(Operator(f"{name}, dim 1", f"x.{name}(1)", _TABLE) for name in
      "sum mean amax var std logsumexp".split()),
    Operator("max, dim 1", "x.max(1)[0]", _TABLE),
    Operator("norm", "x.norm()", _FLAT),
    Operator("cumsum", "x.cumsum(1)", _TABLE),
    Operator("cumprod", "u.cumprod(1)", _FACTORS),
    Operator("prod", "u.prod()", _FACTORS),
    Operator("prod, dim 1", "u.prod(1)", _FACTORS),
    Operator("sort", "x.sort(1)[0]", _TABLE),
    Operator("topk", "x.topk(3, 1)[0]", _TABLE),
    Operator("matmul", "x @ y", {"x": ((8, 8), (512, 512)), "y": ((8, 8), (512, 512))}),
    Operator("bmm", "lib.bmm(x, y)",
             {"x": ((2, 4, 4), (64, 64, 64)), "y": ((2, 4, 4), (64, 64, 64))}),
    Operator("linear", "F.linear(x, y, w)",
             {"x": ((4, 8), (256, 512)), "y": ((8, 8), (512, 512)), "w": ((8,), (512,))}),
    Operator("mv", "x @ w", {"x": ((8, 8), (1000, 1000)), "w": ((8,), (1000,))}),
    Operator("outer", "lib.outer(x, y)", {"x": ((8,), (1000,)), "y": ((8,), (1000,))}),
    Operator("einsum bij,bjk", "lib.einsum('bij,bjk->bik', x, y)",
             {"x": ((2, 4, 4), (64, 64, 64)), "y": ((2, 4, 4), (64, 64, 64))}),
    Operator("conv1d", "F.conv1d(x, y)",
             {"x": ((1, 3, 16), (16, 32, 256)), "y": ((4, 3, 3), (32, 32, 3))}),
    Operator("conv2d", "F.conv2d(x, y, w, padding=1)",
             {**_IMAGE, "y": ((4, 3, 3, 3), (32, 32, 3, 3)), "w": ((4,), (32,))}),
    Operator("conv2d, stride 2", "F.conv2d(x, y, stride=2)",
             {**_IMAGE, "y": ((4, 3, 3, 3), (32, 32, 3, 3))}),
    Operator("conv_transpose2d", "F.conv_transpose2d(x, y, stride=2)",
             {"x": ((1, 3, 4, 4), (16, 32, 16, 16)), "y": ((3, 4, 2, 2), (32, 32, 2, 2))}),
    *(Operator(f"conv2d, depthwise {name}", f"F.conv2d(x, y, groups=len(y), {steps})",
               {"x": ((1, 3, 8, 8), large), "y": ((3, 1, *[taps] * 2), (large[1], 1, *[taps] * 2))})
      for name, taps, large, steps in [
          ("3×3", 3, (8, 64, 56, 56), "padding=1"),
          ("3×3, 28 wide", 3, (32, 32, 28, 28), "padding=1"),
          ("3×3, 14 wide", 3, (16, 192, 14, 14), "padding=1"),
          ("3×3, 10 wide", 3, (16, 192, 10, 10), "padding=1"),
          ("3×3, 7 wide", 3, (32, 512, 7, 7), "padding=1"),
          ("3×3, one image", 3, (1, 512, 14, 14), "padding=1"),
          ("3×3, stride 2", 3, (8, 64, 56, 56), "stride=2, padding=1"),
          ("3×3, stride 2, 14 wide", 3, (16, 192, 14, 14), "stride=2, padding=1"),
          ("5×5", 5, (16, 192, 14, 14), "padding=2"),
          ("7×7", 7, (16, 96, 28, 28), "padding=3"),
      ]),
    Operator("conv1d, depthwise", "F.conv1d(x, y, groups=len(y), padding=3)",
             {"x": ((1, 3, 16), (16, 128, 1000)), "y": ((3, 1, 7), (128, 1, 7))}),
    Operator("max_pool2d", "F.max_pool2d(x, 2)", _IMAGE),
    Operator("avg_pool2d", "F.avg_pool2d(x, 2)", _IMAGE),
    Operator("adaptive_avg_pool2d", "F.adaptive_avg_pool2d(x, 4)", _IMAGE),
    Operator("interpolate, bilinear", "F.interpolate(x, scale_factor=2, mode='bilinear')", _IMAGE),
    Operator("pad, reflect", "F.pad(x, (1, 1, 1, 1), mode='reflect')", _IMAGE),
    Operator("softmax", "x.softmax(1)", _TABLE),
    Operator("log_softmax", "x.log_softmax(1)", _TABLE),
    Operator("cross_entropy", "F.cross_entropy(x, i)", _CLASSES),
    Operator("mse_loss", "F.mse_loss(x, y)", _TWO),
    Operator("binary_cross_entropy_with_logits", "F.binary_cross_entropy_with_logits(x, t)",
             {**_FLAT, "t": ((16,), (1000, 1000))}),
    Operator("layer_norm", "F.layer_norm(x, x.shape[-1:], w, y)",
             {"x": ((4, 8), (1024, 768)), "w": ((8,), (768,)), "y": ((8,), (768,))}),
    Operator("batch_norm", "F.batch_norm(x, None, None, w, y, True)",
             {**_IMAGE, "w": ((3,), (32,)), "y": ((3,), (32,))}),
    Operator("group_norm", "F.group_norm(x, 1)", _IMAGE),
    Operator("embedding", "F.embedding(i, x)",
             {"x": ((10, 8), (10000, 128)), "i": (((4,), 10), ((4096,), 10000))}),
    Operator("gather", "x.gather(1, i)", {**_TABLE, "i": (((4, 8), 8), ((1000, 1000), 1000))}),
    Operator("scatter_add", "x.scatter_add(1, i, y)",
             {**_TABLE, "y": ((4, 8), (1000, 1000)), "i": (((4, 8), 8), ((1000, 1000), 1000))}),
    Operator("index_select", "x.index_select(0, i)",
             {**_TABLE, "i": (((4,), 4), ((1000,), 1000))}),
    Operator("x[i]", "x[i]", {**_TABLE, "i": (((4,), 4), ((1000,), 1000))}),
    Operator("x[:, 1:]", "x[:, 1:] * 2", _TABLE),
    Operator("masked_fill", "x.masked_fill(m, 0.0)", {**_FLAT, "m": ((16,), (1000, 1000))}),
    Operator("cat", "lib.cat([x, y])", _TWO),
    Operator("split", "lib.cat([2 * part for part in x.split(x.shape[0] // 4)])", _TABLE),
    Operator("unbind", "lib.stack(x.unbind()[::2])", {"x": ((4, 8), (200, 5000))}),
    Operator("transpose, contiguous", "x.t().contiguous()", _TABLE),
    Operator("flip", "x.flip(0)", _TABLE),
    Operator("cdist", "lib.cdist(x, y)",
             {"x": ((4, 3), (500, 64)), "y": ((5, 3), (500, 64))}),
    Operator("inv", "lib.linalg.inv(x)", _MATRIX),
    Operator("solve", "lib.linalg.solve(x, y)", {**_MATRIX, "y": ((4, 2), (200, 20))}),
    Operator("det", "lib.linalg.det(x / 200)", _MATRIX),
    Operator("cholesky", "lib.linalg.cholesky(x @ x.mT)", _MATRIX),
    Operator("svdvals", "lib.linalg.svdvals(x)", _MATRIX),
    Operator("eigh", "lib.linalg.eigh(x + x.mT)[0]", _MATRIX),
    Operator("qr", "lib.linalg.qr(x)[1]", _MATRIX),
    Operator("rfft", "lib.view_as_real(lib.fft.rfft(x))", _TABLE),
]  # fmt: skip


def _array(name: str, size: Any) -> np.ndarray:
    rng = np.random.default_rng(sum(map(ord, name)))
    if name == "i":
        return rng.integers(0, size[1], size[0])
    if name == "m":
        return rng.random(size) < 0.5
    array = rng.uniform(*(0.999, 1.001) if name == "u" else (0.2, 2.0), size).astype(np.float32)
    if len(size) == 2 and size[0] == size[1] and size[0] <= 200 and name == "x":
        array += size[0] * np.eye(size[0], dtype=np.float32)
    return array


def steps(side: str, large: bool, only: str = "") -> dict[str, Callable[[], Any]]:
    """Return for each operator what one forward and backward pass of a side is."""
    lib = __import__("torch" if side == "torch" else "oneflow_lite")
    found: dict[str, Callable[[], Any]] = {}
    for operator in OPERATORS:
        if only and not re.search(only, operator.name):
            continue
        leaves = {n: lib.tensor(_array(n, size[large])) for n, size in operator.sizes.items()}
        scope: dict[str, Any] = {"lib": lib, "F": lib.nn.functional, **leaves}
        wanted = [x.requires_grad_() for n, x in leaves.items() if n in "xywu"]
        forward = eval(f"lambda: {operator.text}", scope)
        dy = lib.ones_like(forward().detach())

        def step(forward: Any = forward, wanted: Any = wanted, dy: Any = dy) -> Any:
            return lib.autograd.grad(forward(), wanted, dy)

        found[operator.name] = step
    return found


def numpy_steps(large: bool) -> dict[str, Callable[[], Any]]:
    """Return the same computations by the best NumPy and SciPy calls, where those are the limit."""
    import scipy.special

    def array(name: str, operator: str) -> np.ndarray:
        sizes = next(o.sizes for o in OPERATORS if o.name == operator)
        return _array(name, sizes[name][large])

    x, table, s = array("x", "erf"), array("x", "sort"), scipy.special
    came = np.ones_like(x)  # the gradient of the result
    scale = np.float32(2 / np.sqrt(np.pi))
    one, half, slope = np.float32(1), np.float32(0.5), np.float32(0.01)
    root, bell = np.float32(0.5**0.5), np.float32((2 * np.pi) ** -0.5)

    def sort() -> Any:
        order = table.argsort(1, kind="stable")
        y = np.take_along_axis(table, order, 1)
        dx = np.empty_like(table)
        np.put_along_axis(dx, order, np.ones_like(y), 1)
        return y, dx

    rows, weight = array("x", "layer_norm"), array("w", "layer_norm")

    def layer_norm() -> Any:
        z = rows - rows.mean(1, keepdims=True)
        z *= (rstd := 1 / np.sqrt((z * z).mean(1, keepdims=True) + np.float32(1e-5)))
        dz = np.ones_like(z) * weight
        dx = dz - dz.mean(1, keepdims=True) - z * (dz * z).mean(1, keepdims=True)
        return z * weight + weight, dx * rstd, z.sum(0), np.ones_like(z).sum(0)

    matrix = _array("x", (200, 200) if large else (4, 4))

    def svdvals() -> Any:
        u, values, vh = np.linalg.svd(matrix)
        return values, u @ vh

    def eigh() -> Any:
        values, q = np.linalg.eigh(matrix + matrix.T)
        return values, q @ q.T

    def inverse() -> Any:
        y = np.linalg.inv(matrix)
        return y, -(y.T @ np.ones_like(y) @ y.T)

    return {
        "erf": lambda: (s.erf(x), scale * np.exp(-x * x)),
        "digamma": lambda: (s.digamma(x), s.polygamma(1, x)),
        "cumsum": lambda: (table.cumsum(1), np.ones_like(table)[:, ::-1].cumsum(1)[:, ::-1]),
        "sort": sort,
        "svdvals": svdvals,
        "eigh": eigh,
        "inv": inverse,
        "add": lambda: (x + x, came.copy(), came.copy()),
        "sum": lambda: (x.sum(), np.broadcast_to(one, x.shape).copy()),
        "sum, dim 1": lambda: (table.sum(1), np.broadcast_to(one, table.shape).copy()),
        "elu": lambda: (np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
                        np.where(x > 0, one, np.exp(np.minimum(x, 0)))),
        "softplus": lambda: (np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0), 1 / (1 + np.exp(-x))),
        "hardswish": lambda: (x * np.clip(x / 6 + half, 0, 1),
                              np.where(x > 3, one, (x > -3) * (x / 3 + half))),
        "leaky_relu": lambda: (np.where(x > 0, x, x * slope), np.where(x > 0, one, slope)),
        "gelu": lambda: (half * x * (one + s.erf(x * root)),
                         half * (one + s.erf(x * root)) + x * np.exp(x * x * -half) * bell),
        "layer_norm": layer_norm,
        "transpose, contiguous": lambda: (table.T.copy(), np.ones_like(table).T.copy()),
        "exp": lambda: (y := np.exp(x), y * np.ones_like(x)),
        "tanh": lambda: (y := np.tanh(x), np.ones_like(x) * (1 - y * y)),
        "sin": lambda: (np.sin(x), np.ones_like(x) * np.cos(x)),
        "cos": lambda: (np.cos(x), np.ones_like(x) * -np.sin(x)),
        "log": lambda: (np.log(x), np.ones_like(x) / x),
        "pow 3": lambda: (x**3, np.ones_like(x) * (3 * x**2)),
    }  # fmt: skip


def _best(step: Callable[[], Any], budget: float, warm: float) -> float:
    """Return the best time of a step in batches of a few milliseconds, after `warm` seconds."""
    begin, runs = time.perf_counter(), 0
    while runs < 3 or time.perf_counter() < begin + warm:
        start = time.perf_counter()
        step()
        once, runs = time.perf_counter() - start, runs + 1
    batch = max(1, int(0.004 / once))
    times: list[float] = []
    end = time.perf_counter() + budget
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        for _ in range(batch):
            step()
        times.append((time.perf_counter() - start) / batch)
    return min(times)


def _worker(side: str, budget: float, threads: int, only: str, jit: bool) -> None:
    if side == "ours":
        import oneflow_lite as flow

        flow.use_jit(jit)
    if side == "torch":
        import torch

        torch.set_num_threads(threads)
    if side == "numpy":  # else it pays for fresh pages, as the rows before have left them
        from oneflow_lite.arrays.host_memory import keep_freed_memory

        keep_freed_memory()
    found: dict[str, list[float]] = {}
    for large in (False, True):
        every = numpy_steps(large) if side == "numpy" else steps(side, large, only)
        for name, step in every.items():
            found.setdefault(name, []).append(
                _best(step, budget, _BUILT if side == "ours" and jit else 0)
            )
    print(json.dumps(found))


def measure(rounds: int, budget: float, threads: int, only: str, jit: bool) -> dict[str, Any]:
    """Return for each operator the medians over the rounds of the ratios to PyTorch and NumPy."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(threads))}
    taken: dict[str, list[dict[str, list[float]]]] = {"ours": [], "torch": [], "numpy": []}
    turns = [side for n in range(rounds) for side in (taken if n % 2 == 0 else reversed(taken))]
    for side in progress(turns, len(turns), "process"):
        command = [sys.executable, "-m", "tests.benchmarks.operators", "--side", side]
        command += ["--budget", str(budget), "--threads", str(threads), "--only", only]
        command += ["--jit"] * jit
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )
        taken[side].append(json.loads(done.stdout.splitlines()[-1]))
    rows: dict[str, Any] = {}
    for name in taken["ours"][0]:

        def ratio(peer: str, size: int, name: str = name) -> float | None:
            if name not in taken[peer][0]:
                return None
            pairs = zip(taken["ours"], taken[peer], strict=True)
            return statistics.median(a[name][size] / b[name][size] for a, b in pairs)

        times = [statistics.median(r[name][size] for r in taken["ours"]) * 1e6 for size in (0, 1)]
        rows[name] = {
            "us": times,
            "torch": [ratio("torch", 0), ratio("torch", 1)],
            "numpy": ratio("numpy", 1),
        }
    return rows


# Why an operator is among the slowest, or not within the limits.
_PASSES = (
    "NumPy passes over memory once for each step, PyTorch once for all; a compiled kernel would"
)
_CALLS = "some {} NumPy calls of about a microsecond each, where PyTorch has one kernel"
_STEPS = "every other position of a row is computed in vain; copying columns would cost more"
REASONS = {
    "conv2d, depthwise 3×3, stride 2": _STEPS,
    "conv2d, depthwise 3×3, stride 2, 14 wide": _STEPS,
    "digamma": "SciPy's digamma and polygamma take that long",
    "cumsum": "NumPy's cumsum takes that long",
    "erf": "SciPy's erf takes that long",
    "hardswish": f"six steps of clipping and selecting: {_PASSES}",
    "elu": f"five steps, and NumPy's expm1 is not vectorised: {_PASSES}",
    "gelu": f"eight steps: {_PASSES}",
    "leaky_relu": f"three steps: {_PASSES}",
    "lerp": f"three steps: {_PASSES}",
    "pow 3": "NumPy's power takes that long; products would not have the bits of `**` on arrays",
    "outer": "the gradient's two products of a matrix and a vector each read the whole matrix",
    "layer_norm": _CALLS.format(30) + ", and three gradients to hand out",
    "batch_norm": _CALLS.format(30) + ", and three gradients to hand out",
    "group_norm": _CALLS.format(25),
    "scatter_add": _CALLS.format(15),
    "cross_entropy": _CALLS.format(15) + ", in two ops, each with its passes over memory",
    "binary_cross_entropy_with_logits": f"eight steps: {_PASSES}",
    "conv_transpose2d": _CALLS.format(25) + ", most of them to lay windows out",
    "transpose, contiguous": "NumPy copies a transposed array at that speed",
    "sum": "the gradient is written out, where PyTorch's is a view of one number",
    "sum, dim 1": "the gradient is written out, where PyTorch's is a view of one column",
    "add": "each of the two gradients is an array of its own, PyTorch's are the one that came",
    "relu": f"three steps: {_PASSES}",
    "sigmoid": f"four steps: {_PASSES}",
    "silu": f"six steps: {_PASSES}",
    "cat": "the gradients are copied, where PyTorch's are views",
}


def reached(row: dict[str, Any]) -> bool:
    """Return whether an operator keeps within the limits at both sizes."""
    small, large = row["torch"]
    by_numpy = row["numpy"] is not None and row["numpy"] <= NUMPY_TARGET
    return small <= SMALL_TARGET and (large <= LARGE_TARGET or by_numpy)


def section(rows: dict[str, Any], rounds: int, threads: int, jit: bool) -> str:
    """Return the part of the page on operators."""
    lines = [
        f"{len(rows)} operators, forward and backward in float32, oneflow_lite's time over "
        f"PyTorch's; {threads} thread(s), {rounds} rounds in turns, the best time of each turn, "
        f"{'with the loops of `jit`' if jit else 'on NumPy alone, without `jit`'}. "
        f"Wanted: at most {SMALL_TARGET} at the small size; at the large one at most "
        f"{LARGE_TARGET}, or {NUMPY_TARGET} times the best NumPy or SciPy call. "
        f"{sum(map(reached, rows.values()))} of {len(rows)} are within.",
        "",
        "| operator | small, µs | / PyTorch | large, µs | / PyTorch | / NumPy | |",
        "| --- | --: | --: | --: | --: | --: | --- |",
    ]
    for name, row in rows.items():
        numpy = "" if row["numpy"] is None else f"{row['numpy']:.2f}"
        (small, large), (a, b) = row["torch"], row["us"]
        verdict = "" if reached(row) else "not reached"
        lines.append(
            f"| {name} | {a:.1f} | {small:.2f} | {b:.0f} | {large:.2f} | {numpy} | {verdict} |"
        )
    worst = sorted(rows, key=lambda name: -max(rows[name]["torch"]))
    worst = [name for i, name in enumerate(worst) if i < 10 or not reached(rows[name])]
    lines += ["", "The ten slowest by the larger ratio, and those out of the limits, and why:", ""]
    lines += [
        f"- {name}, {max(rows[name]['torch']):.2f}: {REASONS.get(name, 'not explained yet')}"
        for name in worst
    ]
    return "\n".join([START, "", *lines, "", END])


def main() -> None:
    """Measure, print the table, and write it if that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", choices=["ours", "torch", "numpy"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=0.1, help="seconds for each measurement")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="a pattern that the names match")
    parser.add_argument("--jit", action="store_true", help="ours with loops of machine code")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.side:
        _worker(options.side, options.budget, options.threads, options.only, options.jit)
        return
    how = options.rounds, options.budget, options.threads, options.only, options.jit
    text = section(measure(*how), options.rounds, options.threads, options.jit)
    print(text)
    if options.write:
        write(text, PAGE, START, END)


if __name__ == "__main__":
    main()
