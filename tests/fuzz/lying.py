"""Programs that lie about their arrays, run as machine code: no crash, and no wrong answer.

`python -m tests.fuzz.lying FIRST COUNT` runs the programs of these seeds, and prints each seed
before it begins: a process that ends meanwhile has crashed at the last one.
"""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.errors import FlowError
from oneflow_lite.static.runtime import takeover

OP = "fuzz_liar"
SHAPES = ((1, 3), (4, 3), (2, 8))
LIES = ("none", "shape", "dtype", "strides", "file", "infer", "layout", "feed", "persistable")
HUGE = 3_000_000
claimed: list[ArraySpec] = []  # of the op's next result; none where it says the truth
laid_out = [False]  # whether the op returns another layout than it says
F = flow.nn.functional


def infer(x: Any) -> Any:
    return claimed[0] if claimed else ArraySpec(x.shape, x.dtype)


def kernel(xp: Any, x: Any) -> Any:
    made = x + 1
    return made.T.copy().T if laid_out[0] else made


@functools.cache
def liar() -> Any:
    """Register the op, where it is wanted: other tests walk all ops that there are."""
    return flow.register_op(OP, infer=infer)(kernel)


STEPS = {
    "exp": lambda x: (x * 0.5).exp() + 1,
    "gelu": F.gelu,
    "sort": lambda x: flow.sort(x, -1)[0] * 2,
    "slice": lambda x: x[:, 1:].tanh(),
    "cat": lambda x: flow.cat([x, x * 2], 0),
    "roll": lambda x: flow.roll(x, 1, 1) + x,
    "pad": lambda x: F.pad(x, (1, 1)) * 0.5,
    "tril": lambda x: flow.tril(x).sigmoid(),
    "reshape": lambda x: x.reshape(-1, 1) * 1.5,
    "transpose": lambda x: x.t().sin() + 1,
    "softmax": lambda x: F.softmax(x, -1),
    "sum": lambda x: x - x.sum(-1, keepdim=True),
    "liar": lambda x: liar()(x) * 3,
}


def run(seed: int) -> str:
    """Run one program; return what came of it, in a word or, of what must not be, a sentence."""
    rng = Random(seed)
    shape, lie = rng.choice(SHAPES), rng.choice(LIES)
    names = rng.choices([*STEPS], k=rng.randint(2, 3))
    if lie in ("infer", "layout"):
        names[0] = "liar"
    claimed.clear()
    laid_out[0] = False
    given = np.random.default_rng(seed).standard_normal(shape).astype("float32")
    w = flow.tensor(np.linspace(1, 2, given.size, dtype="float32").reshape(shape))

    def function(x: Any) -> Any:
        x = x * w
        for name in names:
            x = STEPS[name](x)
        return x.tanh() * 2

    wanted = function(flow.tensor(given)).numpy()
    main, scope, executor = flow.static.Program(), flow.static.Scope(), flow.static.Executor()
    if lie == "infer":
        other = rng.choice([(HUGE, 3), shape[::-1], (1,), (*shape, 1)])
        dtype = np.dtype(rng.choice(["float32", "float32", "float64", "int32"]))
        claimed.append(ArraySpec(other, dtype))
    laid_out[0] = lie == "layout"
    try:
        with flow.static.scope_guard(scope), flow.static.program_guard(main):
            y = function(flow.static.data("x", list(shape)))
            if lie == "file":
                main, fetch = _tampered_file(main, y.name, rng)
            else:
                fetch = y.name
                if lie in ("shape", "dtype", "strides"):
                    _tamper(main, lie, rng)
            for turn in range(5):
                core = executor.analyse(main, ["x"], [fetch])
                if lie == "persistable" and turn == 3:
                    for name in core.external_names:
                        array = scope.find_var(name)
                        scope.put(name, _other_layout(array, rng))
                if lie == "feed" and turn > 2:
                    externals = [scope.find_var(n) for n in core.external_names]
                    fed, is_same = _other_feed(given, rng)
                    (found,) = core.run([fed], externals)
                    if not is_same:
                        continue
                else:
                    (found,) = executor.run(main, {"x": given}, [fetch], scope=scope)
                if found.shape != wanted.shape or found.dtype != wanted.dtype:
                    return f"{names} {shape} {lie}: {found.dtype}{found.shape} at run {turn}"
                if not np.allclose(found, wanted, 1e-4, 1e-5):
                    return f"{names} {shape} {lie}: a wrong answer at run {turn}"
    except (FlowError, ValueError, TypeError, IndexError) as error:
        refused = lie not in ("none", "layout", "persistable")
        return "refused" if refused else f"{names} {shape} {lie}: {error!r}"
    return "right"


def _tamper(program: Any, lie: str, rng: Random) -> None:
    """Change the description of a variable that an op makes."""
    block = program.global_block()
    made = [name for op in block.ops for name in op.new_outputs]
    desc = block.vars[rng.choice(made)]
    if lie == "shape":
        desc.shape = rng.choice([(HUGE, 3), desc.shape[::-1], (1, *desc.shape)])
    elif lie == "dtype":
        desc.dtype = np.dtype(rng.choice(["float64", "int8", "bool"]))
    elif len(desc.shape) == 2:
        desc.strides = rng.choice([(4, 4 * desc.shape[0]), (0, 4), (4 * HUGE, 4), (-4, 4)])


def _tampered_file(program: Any, fetch: str, rng: Random) -> tuple[Any, str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program"
        _tamper(program, rng.choice(["shape", "dtype", "strides"]), rng)
        flow.static.save(program, path)
        return flow.static.load(path), fetch


def _other_layout(array: np.ndarray, rng: Random) -> np.ndarray:
    """Return the same numbers: with columns side by side, with gaps, or at an odd address."""
    kind = rng.choice(["columns", "gaps", "odd", "read-only"])
    if kind == "columns":
        return np.asfortranarray(array)
    if kind == "gaps":
        return np.repeat(array, 2, -1)[..., ::2]
    if kind == "odd":
        odd = np.frombuffer(b"?" + array.tobytes(), "uint8")[1:].view(array.dtype)
        return odd.reshape(array.shape)
    array = array.copy()
    array.flags.writeable = False
    return array


def _other_feed(array: np.ndarray, rng: Random) -> tuple[np.ndarray, bool]:
    """Return another feed, and whether the answer must be the same."""
    if rng.random() < 0.5:
        return _other_layout(array, rng), True
    other = rng.choice([array[:, :1], array.astype("float64"), array.astype("int32"), array.T])
    return other, other.shape == array.shape and other.dtype == array.dtype


def main(first: int, count: int) -> None:
    """Run programs, and print what came of each."""
    flow.use_deterministic_algorithms(True)
    takeover._AT_LEAST = takeover._AT_MOST = 2
    warnings.simplefilter("ignore")
    with np.errstate(all="ignore"):
        for seed in range(first, first + count):
            print(seed, end=" ", flush=True)
            print(run(seed), flush=True)


def attempt(job: tuple[int, int]) -> tuple[int, Counter[str], list[str]]:
    """Run programs in a process of their own; one that crashes is left out by the next."""
    (count, first), counts, failures = job, Counter[str](), list[str]()
    end = first + count
    while first < end:
        command = [sys.executable, "-m", "tests.fuzz.lying", str(first), str(end - first)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        for line in lines:
            number, _, said = line.partition(" ")
            counts[f"lying: {said}" if said in ("right", "refused") else "lying: wrong"] += 1
            if said not in ("right", "refused"):
                text = said or f"ended with {done.returncode}: {done.stderr[-2000:]}"
                failures.append(f"seed {number} of lying programs: {text}")
        if not lines:
            failures.append(f"seed {first} of lying programs: {done.stderr[-2000:]}")
            break
        first = int(lines[-1].split()[0]) + 1
    return job[1], counts, failures


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
