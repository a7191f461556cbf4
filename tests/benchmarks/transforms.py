"""Times the transforms of `flow.func` beside `torch.func`: batches, Jacobians, series.

Each work is one function that reads `lib`, either library. Each side has a process of its own, in
turns, and one thread. The same function under `flow.compile` stands beside `jax.jit` in some works,
where JAX is installed. All sides' results are
compared. `python -m tests.benchmarks.transforms --write` fills its part of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.results import PAGE, table, versions, write
from tests.benchmarks.worker import timings
from tests.benchmarks.works import Digest, difference, digests
from tests.progress import progress

ROOT = Path(__file__).resolve().parents[2]
START, END = "<!-- transforms: begin -->", "<!-- transforms: end -->"
PACKAGES = {"ours": "oneflow_lite", "torch": "torch", "compiled": "oneflow_lite", "jax": "jax"}
TITLES = {
    "ours": "oneflow_lite",
    "torch": "PyTorch",
    "compiled": "flow.compile",
    "jax": "jax.jit",
}
# Whose times a peer's are compared with.
BESIDE = {"torch": "ours", "jax": "compiled"}
ORDERS = range(1, 9)
Step = Callable[[], list[Any]]


def _array(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    drawn = np.random.default_rng(seed).standard_normal(shape) * scale
    return np.asarray(drawn, np.float32)


def _layers(lib: Any, *widths: int, models: tuple[int, ...] = ()) -> dict[str, Any]:
    """Return weights and biases of a network of linear layers, of several with `models`."""
    made: dict[str, Any] = {}
    for i, (a, b) in enumerate(pairwise(widths)):
        made[f"w{i}"] = lib.from_numpy(_array(2 * i, *models, b, a, scale=a**-0.5))
        made[f"b{i}"] = lib.from_numpy(_array(2 * i + 1, *models, b, scale=0.1))
    return made


def _network(lib: Any, p: dict[str, Any], x: Any) -> Any:
    """Return the result of linear layers with tanh between them."""
    F, last = lib.nn.functional, len(p) // 2 - 1
    for i in range(last + 1):
        x = F.linear(x, p[f"w{i}"], p[f"b{i}"])
        if i < last:
            x = lib.tanh(x)
    return x


def _values(found: dict[str, Any]) -> list[Any]:
    return list(found.values())


# --- The works ------------------------------------------------------------------------------------


def per_sample_mlp(lib: Any) -> Step:
    p, x = _layers(lib, 784, 64, 10), lib.from_numpy(_array(10, 256, 784))
    target = lib.from_numpy(np.arange(256) % 10)

    def loss(p: Any, x: Any, target: Any) -> Any:
        logits = _network(lib, p, x[None])
        return lib.nn.functional.cross_entropy(logits, target[None])

    gradients = lib.func.vmap(lib.func.grad(loss), in_dims=(None, 0, 0))
    return lambda: _values(gradients(p, x, target))


def per_sample_conv(lib: Any) -> Step:
    F = lib.nn.functional
    p = {
        "k0": lib.from_numpy(_array(0, 8, 3, 3, 3, scale=0.2)),
        "k1": lib.from_numpy(_array(1, 16, 8, 3, 3, scale=0.1)),
        "w": lib.from_numpy(_array(2, 10, 16 * 4 * 4, scale=0.06)),
    }
    x, target = lib.from_numpy(_array(10, 32, 3, 16, 16)), lib.from_numpy(np.arange(32) % 10)

    def loss(p: Any, x: Any, target: Any) -> Any:
        h = F.max_pool2d(F.relu(F.conv2d(x[None], p["k0"], padding=1)), 2)
        h = F.max_pool2d(F.relu(F.conv2d(h, p["k1"], padding=1)), 2)
        return F.cross_entropy(F.linear(h.flatten(1), p["w"]), target[None])

    gradients = lib.func.vmap(lib.func.grad(loss), in_dims=(None, 0, 0))
    return lambda: _values(gradients(p, x, target))


def _square_map(lib: Any) -> tuple[Callable[[Any], Any], Any]:
    a = lib.from_numpy(_array(0, 100, 100, scale=0.1))
    return lambda x: lib.tanh(a @ x) * x, lib.from_numpy(_array(1, 100))


def jacrev(lib: Any) -> Step:
    f, x = _square_map(lib)
    return lambda: [lib.func.jacrev(f)(x)]


def jacfwd(lib: Any) -> Step:
    f, x = _square_map(lib)
    return lambda: [lib.func.jacfwd(f)(x)]


def hessian(lib: Any) -> Step:
    f, x = _square_map(lib)
    return lambda: [lib.func.hessian(lambda x: f(x).square().sum())(x)]


def elementwise_rows(lib: Any) -> Step:
    x = lib.from_numpy(_array(0, 10_000, 16))
    f = lib.func.vmap(lambda x: lib.sin(x) * lib.exp(-x * x) + x.sum())
    return lambda: [f(x)]


def pinn(lib: Any) -> Step:
    p, points = _layers(lib, 2, 32, 32, 1), lib.from_numpy(_array(10, 64, 2))
    e = lib.from_numpy(np.float32([1, 0])), lib.from_numpy(np.float32([0, 1]))
    func = lib.func

    def left(p: Any, z: Any) -> Any:
        def u(z: Any) -> Any:
            return _network(lib, p, z)[0]

        if hasattr(func, "jet"):
            value, (u_x, u_xx) = func.jet(u, (z,), ((e[0], lib.zeros_like(z)),))
        else:

            def slope(z: Any) -> Any:
                return func.jvp(u, (z,), (e[0],))[::-1]

            (u_x, value), (u_xx, _) = func.jvp(slope, (z,), (e[0],))
        _, u_t = func.jvp(u, (z,), (e[1],))
        return u_t + value * u_x - 0.05 * u_xx

    def loss(p: Any) -> Any:
        return func.vmap(left, in_dims=(None, 0))(p, points).square().mean()

    def step() -> list[Any]:
        gradient, value = func.grad_and_value(loss)(p)
        return [value, *_values(gradient)]

    return step


def maml(lib: Any) -> Step:
    p, func = _layers(lib, 1, 40, 40, 1), lib.func
    xs, ys, xq, yq = (lib.from_numpy(_array(10 + i, 16, 10, 1)) for i in range(4))

    def error(p: Any, x: Any, y: Any) -> Any:
        return (_network(lib, p, x) - y).square().mean()

    def adapted(p: Any, xs: Any, ys: Any, xq: Any, yq: Any) -> Any:
        own = p
        for _ in range(2):
            g = func.grad(error)(own, xs, ys)
            own = {name: own[name] - 0.05 * g[name] for name in own}
        return error(own, xq, yq)

    def outer(p: Any) -> Any:
        return func.vmap(adapted, in_dims=(None, 0, 0, 0, 0))(p, xs, ys, xq, yq).mean()

    return lambda: _values(func.grad(outer)(p))


def ensemble(lib: Any) -> Step:
    nn, func = lib.nn, lib.func
    models = [nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)) for _ in range(10)]
    for number, model in enumerate(models):
        with lib.no_grad():
            for i, q in enumerate(model.parameters()):
                q.copy_(lib.from_numpy(_array(10 * number + i, *q.shape, scale=0.1)))
    params, buffers = func.stack_module_state(models)
    params = {name: q.detach() for name, q in params.items()}
    x, target = lib.from_numpy(_array(7, 128, 64)), lib.from_numpy(np.arange(128) % 10)

    def loss(p: Any, b: Any) -> Any:
        scores = func.functional_call(models[0], (p, b), (x,))
        return nn.functional.cross_entropy(scores, target)

    gradients = func.vmap(func.grad(loss))
    return lambda: _values(gradients(params, buffers))


def batch_jacobian(lib: Any) -> Step:
    p, x = _layers(lib, 20, 32, 5), lib.from_numpy(_array(10, 256, 20))
    jacobians = lib.func.vmap(lib.func.jacrev(lambda x: _network(lib, p, x)))
    return lambda: [jacobians(x)]


def per_sample_jacobian(lib: Any) -> Step:
    p, x = _layers(lib, 20, 16, 4), lib.from_numpy(_array(10, 64, 20))
    jacobians = lib.func.vmap(lib.func.jacrev(lambda p, x: _network(lib, p, x)), in_dims=(None, 0))
    return lambda: _values(jacobians(p, x))


def attention(lib: Any) -> Step:
    d, F = 32, lib.nn.functional
    p = {name: lib.from_numpy(_array(i, d, d, scale=d**-0.5)) for i, name in enumerate("qkvo")}
    x = lib.from_numpy(_array(10, 32, 16, d))

    def loss(p: Any, x: Any) -> Any:
        q, k, v = (x @ p[name] for name in "qkv")
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(d), dim=-1)
        return ((weights @ v) @ p["o"]).square().mean()

    gradients = lib.func.vmap(lib.func.grad(loss), in_dims=(None, 0))
    return lambda: _values(gradients(p, x))


def one_op(lib: Any) -> Step:
    """A batch of 16 numbers through 100 ops, the cost of `vmap` for each op."""
    x = lib.from_numpy(_array(0, 16, 4))

    def chain(x: Any) -> Any:
        for _ in range(50):
            x = lib.sin(x) + x
        return x

    f = lib.func.vmap(chain)
    return lambda: [f(x)]


def _derivative(order: int) -> Callable[[Any], Step]:
    def make(lib: Any) -> Step:
        x = lib.from_numpy(np.linspace(-2, 2, 1000))
        ones = lib.ones_like(x)

        def f(x: Any) -> Any:
            return lib.sin(x) * lib.exp(-x * x)

        if hasattr(lib.func, "taylor"):
            factor = math.factorial(order)
            return lambda: [lib.func.taylor(f, x, order)[order] * factor]

        def slope(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
            return lambda x: lib.func.jvp(f, (x,), (ones,))[1]

        g = f
        for _ in range(order):
            g = slope(g)
        return lambda: [g(x)]

    return make


WORKS: dict[str, tuple[str, Callable[[Any], Step]]] = {
    "per_sample_mlp": ("per-sample gradients, MLP 784-64-10, 256 samples", per_sample_mlp),
    "per_sample_conv": ("per-sample gradients, two convolutions, 32 images", per_sample_conv),
    "jacrev": ("jacrev, 100 to 100", jacrev),
    "jacfwd": ("jacfwd, 100 to 100", jacfwd),
    "hessian": ("hessian, 100", hessian),
    "rows": ("vmap of an elementwise function, 10,000 rows of 16", elementwise_rows),
    "pinn": ("PINN with u_xx, MLP 2-32-32-1, 64 points, and its gradient", pinn),
    "maml": ("MAML, 16 tasks, 2 inner steps, outer gradient", maml),
    "ensemble": ("gradients of an ensemble of 10 MLPs, 128 samples", ensemble),
    "batch_jacobian": ("batch of Jacobians by the input, 256 of 5 × 20", batch_jacobian),
    "per_sample_jacobian": ("Jacobians by the parameters, 64 samples", per_sample_jacobian),
    "attention": ("per-sample gradients, attention, 32 × 16 × 32", attention),
    "one_op": ("vmap, 100 small ops", one_op),
    **{
        f"derivative{k}": (f"derivative {k} of sin(x) exp(-x²), 1,000 points", _derivative(k))
        for k in ORDERS
    },
}


def _jax_derivative(order: int) -> Callable[[], Step]:
    def make() -> Step:
        import jax
        import jax.numpy as jnp
        from jax.experimental.jet import jet

        jax.config.update("jax_enable_x64", True)
        x = jnp.linspace(-2, 2, 1000)
        series = [jnp.ones_like(x), *[jnp.zeros_like(x)] * (order - 1)]

        @jax.jit
        def run(x: Any) -> Any:
            return jet(lambda x: jnp.sin(x) * jnp.exp(-x * x), (x,), (series,))[1][-1]

        return lambda: [np.asarray(run(x))]

    return make


def _jax_matrix(name: str) -> Callable[[], Step]:
    def make() -> Step:
        import jax
        import jax.numpy as jnp

        a, x = jnp.asarray(_array(0, 100, 100, scale=0.1)), jnp.asarray(_array(1, 100))

        def f(x: Any) -> Any:
            return jnp.tanh(a @ x) * x

        whole = f if name != "hessian" else lambda x: jnp.square(f(x)).sum()
        run = jax.jit(getattr(jax, name)(whole))
        return lambda: [np.asarray(run(x))]

    return make


def _jax_network(p: Any, x: Any) -> Any:
    import jax.numpy as jnp

    last = len(p) // 2 - 1
    for i in range(last + 1):
        x = x @ p[f"w{i}"].T + p[f"b{i}"]
        x = jnp.tanh(x) if i < last else x
    return x


class _FromNumPy:
    """The part of a library that `_layers` uses, for arrays of JAX."""

    @staticmethod
    def from_numpy(array: Any) -> Any:
        import jax.numpy as jnp

        return jnp.asarray(array)


def _in_order(found: dict[str, Any], p: dict[str, Any]) -> list[Any]:
    """Return values in the order of the parameters; JAX sorts them by name."""
    return [np.asarray(found[name]) for name in p]


def _jax_per_sample_mlp() -> Step:
    import jax
    import jax.numpy as jnp

    p, x = _layers(_FromNumPy, 784, 64, 10), jnp.asarray(_array(10, 256, 784))
    target = jnp.arange(256) % 10

    def loss(p: Any, x: Any, target: Any) -> Any:
        return -jax.nn.log_softmax(_jax_network(p, x))[target]

    run = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)))
    return lambda: _in_order(run(p, x, target), p)


def _jax_rows() -> Step:
    import jax
    import jax.numpy as jnp

    x = jnp.asarray(_array(0, 10_000, 16))
    run = jax.jit(jax.vmap(lambda x: jnp.sin(x) * jnp.exp(-x * x) + x.sum()))
    return lambda: [np.asarray(run(x))]


def _jax_jacobians(by_parameters: bool) -> Callable[[], Step]:
    def make() -> Step:
        import jax
        import jax.numpy as jnp

        p = _layers(_FromNumPy, 20, 16, 4) if by_parameters else _layers(_FromNumPy, 20, 32, 5)
        x = jnp.asarray(_array(10, 64 if by_parameters else 256, 20))
        which = 0 if by_parameters else 1
        run = jax.jit(jax.vmap(jax.jacrev(_jax_network, argnums=which), in_axes=(None, 0)))
        if by_parameters:
            return lambda: _in_order(run(p, x), p)
        return lambda: [np.asarray(run(p, x))]

    return make


JAX_WORKS: dict[str, Callable[[], Step]] = {
    "per_sample_mlp": _jax_per_sample_mlp,
    "rows": _jax_rows,
    "batch_jacobian": _jax_jacobians(by_parameters=False),
    "per_sample_jacobian": _jax_jacobians(by_parameters=True),
    **{name: _jax_matrix(name) for name in ("jacrev", "jacfwd", "hessian")},
    **{f"derivative{k}": _jax_derivative(k) for k in ORDERS},
}


# --- Measuring ------------------------------------------------------------------------------------


def build(side: str, name: str) -> Step | None:
    """Return one iteration of a work, None where the side does not run it."""
    if side == "jax":
        return JAX_WORKS[name]() if name in JAX_WORKS else None
    lib = importlib.import_module(PACKAGES[side])
    step = WORKS[name][1](lib)
    return lib.compile(step) if side == "compiled" else step  # type: ignore[no-any-return]


def _worker(side: str, budget: float, names: Sequence[str]) -> None:
    if side == "torch":
        importlib.import_module("torch").set_num_threads(1)
    found: dict[str, Any] = {}
    for name in names:
        step = build(side, name)
        if step is None:
            continue
        digest = digests(step, 1)
        timings(step, budget / 4)
        found[name] = {"seconds": statistics.median(timings(step, budget)), "digests": digest}
    print(json.dumps(found))


def measure(
    sides: Sequence[str], names: Sequence[str], rounds: int, budget: float
) -> dict[str, dict[str, float]]:
    """Return the seconds of each work on each side, medians over the rounds.

    Raises `RuntimeError` when a side's results are others than those of ours.
    """
    variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(variables, "1")}
    taken: dict[str, list[Any]] = {side: [] for side in sides}
    turns = [s for n in range(rounds) for s in (sides if n % 2 == 0 else reversed(sides))]
    for side in progress(turns, len(turns), "process"):
        command = [sys.executable, "-m", "tests.benchmarks.transforms", "--side", side]
        command += ["--budget", str(budget), "--works", ",".join(names)]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        taken[side].append(json.loads(done.stdout.splitlines()[-1]))
    found: dict[str, dict[str, float]] = {}
    for name in names:
        ours = [Digest(*d) for d in taken["ours"][0][name]["digests"]]
        found[name] = {}
        for side in sides:
            if name not in taken[side][0]:
                continue
            theirs = [Digest(*d) for d in taken[side][0][name]["digests"]]
            wrong = difference(theirs, ours)
            if wrong is not None:
                raise RuntimeError(f"{name}: {TITLES[side]} computes something else: {wrong}")
            found[name][side] = statistics.median(r[name]["seconds"] for r in taken[side])
    return found


def mean_ratio(found: dict[str, dict[str, float]], peer: str) -> float | None:
    """Return the geometric mean of our times over a peer's; None without a common work."""
    ours = BESIDE[peer]
    ratios = [t[ours] / t[peer] for t in found.values() if peer in t and ours in t]
    return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else None


def report(found: dict[str, dict[str, float]], sides: Sequence[str]) -> str:
    """Return the table, and the geometric means below it.

    Higher derivatives, whose ratios fall with the order, have a mean of their own.
    """
    peers = [side for side in sides if side in BESIDE]
    columns = [side for side in sides if side != "ours"]
    rows = []
    for name, times in found.items():
        cells = []
        for side in columns:
            if side not in times:
                cells.append("-")
            elif side in BESIDE:
                cells.append(f"{times[BESIDE[side]] / times[side]:.2f}")
            else:
                cells.append(f"{times[side] * 1e3:.3g}")
        rows.append([WORKS[name][0], f"{times['ours'] * 1e3:.3g}", *cells])
    higher = [f"derivative{k}" for k in ORDERS]
    kinds = {
        "Geometric means": {n: t for n, t in found.items() if n not in higher},
        "of the derivatives of order k": {n: t for n, t in found.items() if n in higher},
    }
    means = []
    for title, works in kinds.items():
        told = [
            f"{'compiled ' if BESIDE[p] == 'compiled' else ''}/ {TITLES[p]} {m:.2f}"
            for p in peers
            if (m := mean_ratio(works, p)) is not None
        ]
        means += [f"{title}: {', '.join(told)}"] if told else []
    titles = {"compiled": "compiled, ms", "torch": "/ PyTorch", "jax": "compiled / jax.jit"}
    header = ["", "ms", *(titles[side] for side in columns)]
    return "\n\n".join([table(header, rows), *(["; ".join(means) + "."] if means else [])])


def section(
    found: dict[str, dict[str, float]], sides: Sequence[str], rounds: int, budget: float
) -> str:
    """Return the part of docs/benchmarks.md that this file measures."""
    used = ", ".join(f"{name} {version}" for name, version in versions().items())
    about = (
        "The transforms of `flow.func` beside `torch.func`, and the same functions under "
        f"`flow.compile` beside `jax.jit`; one thread each, {rounds} rounds of "
        f"{budget:g} s in turns, medians; {used}. Derivatives of order k are `taylor` here, and "
        "`jvp` in `jvp` under PyTorch. Written by `python -m tests.benchmarks.transforms --write`."
    )
    return "\n\n".join([START, "## Transforms", about, report(found, sides), END])


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print the table, and write it if that was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.transforms")
    parser.add_argument("--side", choices=list(PACKAGES))
    parser.add_argument("--works", default=",".join(WORKS), help="names, with commas between them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=0.3, help="seconds for each measurement")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(argv)
    names = options.works.split(",")
    unknown = [name for name in names if name not in WORKS]
    if unknown:
        parser.error(f"--works: {unknown[0]!r} is not one of {', '.join(WORKS)}")
    if options.write and set(names) != set(WORKS):
        parser.error("--write is for a whole run: leave out --works")
    if options.side:
        _worker(options.side, options.budget, names)
        return
    sides = [side for side, package in PACKAGES.items() if importlib.util.find_spec(package)]
    found = measure(sides, names, options.rounds, options.budget)
    print(report(found, sides))
    if options.write:
        write(section(found, sides, options.rounds, options.budget), PAGE, START, END)


if __name__ == "__main__":
    main()
