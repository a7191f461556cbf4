"""Holds machine code against NumPy: every group of ops, at every run of it.

While `judged_loops` is on, Programs take machine code over at their first run. Each group then runs
twice, as a loop and op by op. The loop's results may differ as docs/machine_code.md says; NumPy's
results go on from there, so whatever else is compared to the bit still agrees to the bit, unless
the group ran at the wrong place or wrote what it may not.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import truediv
from typing import Any
from unittest import mock

import numpy as np

import oneflow_lite as flow
from oneflow_lite.ops.array_places import evaluated
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.scalar_expression import FUNCTIONS
from oneflow_lite.static.fusion.group import Call
from oneflow_lite.static.fusion.joined import Joined
from oneflow_lite.static.fusion.products import reach
from oneflow_lite.static.ir.program import Block, OpDesc
from oneflow_lite.static.runtime import interpreter_core, takeover
from oneflow_lite.static.runtime.passes.grouping import Later

Kernel = Callable[..., None]
Arrays = dict[str, Any]
Evaluate = Callable[[Call, Sequence[Any]], Sequence[Any]]

LONG = np.longdouble
NOISY_RUNS = 64
GARBAGE = 0xA5
# Of the sum of absolute values.
OF_SUMS = {np.dtype("float32"): 1e-6, np.dtype("float64"): 1e-14}
# What NumPy computes without an error.
_EXACT = {
    np.negative, np.absolute, np.maximum, np.minimum, np.floor, np.ceil, np.trunc, np.isnan,
    np.sign,
}  # fmt: skip


class Verdicts(list[str]):
    """The differences so far; `groups` counts those that were built, and `runs` their runs."""

    def __init__(self) -> None:
        super().__init__()
        self.groups = self.runs = 0


@contextlib.contextmanager
def judged_loops(kernels: str = "numba") -> Iterator[Verdicts]:
    """Build machine code at the first run, and hold every run of a group against NumPy.

    Parameters
    ----------
    kernels : str
        "numba", or "python" to run the same source as Python, with NumPy's functions: that is slow
        for each element, and quick to build. Each loop is judged on its own; with "joined" behind,
        neighbours run as one function, which is held against its ops less closely, for it has no
        arrays to look at in between.
    """
    from oneflow_lite.static.fusion import machine

    verdicts, make = Verdicts(), machine.compiled

    def compiled(group: Any, block: Block) -> tuple[Kernel, str]:
        try:
            kernel, source = make(group, block)
        except Exception as error:
            verdicts.append(f"no code for {_described(group)}: {error!r}")
            raise
        verdicts.groups += 1
        return _judged(kernel, source, group, block, verdicts), source

    bind = Joined.bound

    def bound(joined: Joined, arrays: dict[str, Any]) -> Kernel | None:
        run = bind(joined, arrays)
        return run and _judged_call(run, joined, arrays, verdicts)

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(Joined, "bound", bound))
        stack.enter_context(flow.use_jit(True))
        stack.enter_context(mock.patch.object(takeover, "_AT_LEAST", 1))
        stack.enter_context(mock.patch.object(takeover, "_AT_MOST", 1))
        stack.enter_context(mock.patch.object(machine, "compiled", compiled))
        if "joined" not in kernels:
            stack.enter_context(mock.patch.object(interpreter_core, "BUILDING", ("fusion",)))
        if "python" in kernels:
            stack.enter_context(mock.patch.object(machine, "_kernel", _as_python))
        yield verdicts


def _described(group: Any) -> str:
    return f"a loop of {', '.join(op.type for op in group.ops)}"


def _as_python(source: str, signature: Any, **options: Any) -> Kernel:
    from oneflow_lite.static.fusion import elementary, machine

    own = {name: getattr(elementary, name).py_func for name in ("add", "compensated")}
    memory = {"pointer": int, "carray": _at_address, "divided": truediv}
    memory.update(stay=lambda: None, part=lambda f: f, loops=lambda f: f, tile=_tile, dots=_dots)
    own.update(start=_memory, highest=np.maximum, lowest=np.minimum)
    scope = {**machine._SCOPE, **FUNCTIONS, **own, **memory}
    exec(compile(source, "<fused group, as Python>", "exec"), scope)
    group: Kernel = scope["group"]

    def run(*args: Any) -> None:
        with np.errstate(all="ignore"):
            group(*args)

    return run


def _at_address(address: int, shape: tuple[int, ...], dtype: Any) -> Any:
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.frombuffer((ctypes.c_char * size).from_address(address), np.uint8)
    return raw.view(dtype).reshape(shape)


def _memory(array: Any) -> Any:
    """Return the elements from the first one to the last, as they lie in memory."""
    strides = [s // array.itemsize for s in array.strides]
    size = reach(array.shape, strides) if array.size else 0
    return np.lib.stride_tricks.as_strided(array, (size,), (array.itemsize,))


def _tile(rows: int, columns: int) -> Kernel:
    def tile(x: Any, at_x: int, y: Any, at_y: int, z: Any, at_z: int, *sizes: int) -> None:
        inner, x_row, x_inner, y_inner, z_row, adds = sizes
        for r in range(rows):
            total = z[at_z + r * z_row :][:columns]
            total[:] = total if adds else 0
            for k in range(inner):
                total += x[at_x + r * x_row + k * x_inner] * y[at_y + k * y_inner :][:columns]

    return tile


def _dots(rows: int, columns: int, width: int) -> Kernel:
    def dots(x: Any, at_x: int, y: Any, at_y: int, z: Any, at_z: int, *sizes: int) -> None:
        inner, x_row, y_column, z_row = sizes
        for r, c in itertools.product(range(rows), range(columns)):
            left, right = x[at_x + r * x_row :][:inner], y[at_y + c * y_column :][:inner]
            z[at_z + r * z_row + c] = (left * right).sum()

    return dots


def _judged_call(run: Kernel, joined: Joined, arrays: Arrays, verdicts: Verdicts) -> Kernel:
    """Hold a joined function against its ops, one by one.

    Each op in it is judged by `_judged` where it runs alone; here an operand may be a little off
    already, so numbers need only be near, as the larger ones of the call go.
    """
    fixed = {name: x for name, x in arrays.items() if isinstance(x, np.ndarray)}

    def judged(*given: Any) -> None:
        verdicts.runs += 1
        known = {**fixed, **dict(zip(joined.given, given, strict=True))}
        named = [n for op in joined.ops for n in (*op.reads, *op.outputs) if n in known]
        values = _copies({name: known[name] for name in named})
        changed: dict[str, None] = {}
        with np.errstate(all="ignore"):
            for op in joined.ops:
                if not values.keys() >= {*op.reads}:
                    continue  # it only gives another name to an array of others
                _step(op, values)
                names = op.written or (() if op.viewed else op.outputs)
                for name in [n for n in names if n in known]:
                    changed.pop(name, None)
                    changed[name] = None
        run(*given)
        scale = max([1.0, *map(_largest, values.values())])
        later: list[Any] = []
        for name in reversed(changed):
            have, want = known[name], values[name]
            is_last = not any(np.may_share_memory(have, y) for y in later)
            later.append(have)
            if is_last:
                if not _is_alike(have, want, scale):
                    ops = ", ".join(op.type for op in joined.ops)
                    found = f"{name} is {have!r}, of NumPy {want!r}"
                    verdicts.append(f"a call of {ops}: {found}\n{joined.source}")
                have[...] = want

    return judged


def _copies(arrays: Arrays) -> Arrays:
    """Return copies that share memory where the arrays do."""
    memory: dict[int, tuple[int, Any]] = {}
    found: Arrays = {}
    for name, x in arrays.items():
        root = x
        while isinstance(root.base, np.ndarray):
            root = root.base
        if id(root) not in memory:
            begin, end = np.lib.array_utils.byte_bounds(root)
            raw = (ctypes.c_char * (end - begin)).from_address(begin)
            memory[id(root)] = begin, np.frombuffer(bytearray(raw), np.uint8)
        begin, copy = memory[id(root)]
        found[name] = np.ndarray(x.shape, x.dtype, copy, x.ctypes.data - begin, x.strides)
    return found


def _step(op: OpDesc, values: Arrays) -> None:
    """Do one op on arrays by name."""
    if op.type == "fused":
        run = op.attrs["run"]
        group, block = (run.group, run.block) if isinstance(run, Later) else run.judged
        known = {name: values[name] for name in group.inputs}
        made: Any = tuple([Truth(group, block, known).numpys[n] for n in op.outputs])
    else:
        arrays = [None if n is None else values[n] for n in op.inputs]
        made = op_expr(op.type).kernel(np)(*arrays, **op.attrs)
    made = made if isinstance(made, tuple) else (made,)
    for name, x in zip(op.outputs, made, strict=True):
        values[name] = np.asarray(x)


def _largest(x: Any) -> float:
    usual = x[np.isfinite(x)]
    return float(np.abs(usual).max(initial=0)) if x.dtype.kind == "f" else 0.0


def _is_alike(have: Any, want: Any, scale: float) -> bool:
    if want.dtype.kind != "f":
        return np.array_equal(have, want)
    near = scale * (1e-13 if want.dtype == np.float64 else 1e-5)
    return np.allclose(have, want, rtol=0, atol=near, equal_nan=True)


def _judged(kernel: Kernel, source: str, group: Any, block: Block, verdicts: Verdicts) -> Kernel:
    inputs, outputs = group.inputs, group.outputs

    def run(*arrays: Any) -> None:
        verdicts.runs += 1
        given, made = arrays[: len(inputs)], arrays[len(inputs) :]
        before = [x.copy() for x in given]
        for y in made:
            if not any(np.may_share_memory(x, y) for x in given):
                y.reshape(-1).view(np.uint8)[...] = GARBAGE
        kernel(*arrays)
        known = dict(zip(inputs, before, strict=True))
        want = Truth(group, block, known)
        for name, y in zip(outputs, made, strict=True):
            found = want.difference(name, y.copy())
            if found is not None:
                verdicts.append(f"{_described(group)}: {found}\n{source}")
        for name, x, old in zip(inputs, given, before, strict=True):
            if not any(np.may_share_memory(x, y) for y in made) and x.tobytes() != old.tobytes():
                verdicts.append(f"{_described(group)}: the input {name} was written\n{source}")
        for name, y in zip(outputs, made, strict=True):
            y[...] = want.numpys[name]

    run.judged = group, block  # type: ignore[attr-defined]
    return run


class Truth:
    """The results that a group should make: NumPy's arrays, and how far others may be from them.

    Parameters
    ----------
    group : Group
    block : Block
    known : mapping of str to array
        The inputs.
    """

    def __init__(self, group: Any, block: Block, known: Mapping[str, Any]) -> None:
        self.group, self.block, self.known = group, block, known
        self.numpys = self._run(_by_kernel, known)
        self._exact: Arrays | None = None
        self._noisy: list[Arrays] = []

    def difference(self, name: str, have: Any) -> str | None:
        """Say where an output is not as good as NumPy's; None where it is.

        Of what is rounded a loop may be as far from the truth as twice NumPy's error and 2 ulp.
        NumPy's error is the largest of several runs in which each step of the arithmetic is off by
        an ulp at random: at a single element it may be right by luck, or both fall on one side of a
        jump.
        """
        want = self.numpys[name]
        if (have.shape, have.dtype) != (want.shape, want.dtype):
            return f"{name} is {have.dtype} {have.shape}, of NumPy {want.dtype} {want.shape}"
        with np.errstate(all="ignore"):
            wrong = ~self._is_near(name, have, want)
            if wrong.any():
                wrong &= ~self._is_true(name, have, want)
        if not wrong.any():
            return None
        at = tuple(int(i[0]) for i in np.nonzero(wrong)) if want.shape else ()
        return f"{name} at {at} is {have[at]!r}, of NumPy {want[at]!r}"

    def _is_near(self, name: str, have: Any, want: Any) -> Any:
        same = (have == want) | ((have != have) & (want != want))
        if want.dtype.kind != "f":
            return same
        same &= (np.signbit(have) == np.signbit(want)) | (want != 0)
        usual = np.isfinite(want) & np.isfinite(have)
        return same | (usual & (np.abs(have - want) <= self._slack(name, want, self.numpys)))

    def _slack(self, name: str, want: Any, values: Mapping[str, Any]) -> Any:
        """Return what an output may differ by, whatever error its operands have."""
        call = next(c for c in self.group.calls if name in c.op.outputs)
        if not call.scalar.is_sum:
            return 2 * np.spacing(np.abs(want))
        terms = [np.abs(self._value(call, p, values, LONG)) for p in call.views]
        total = _by_expression(call, terms)[0].reshape(want.shape)
        return np.maximum(OF_SUMS[want.dtype] * total, np.spacing(np.abs(want)))

    def _is_true(self, name: str, have: Any, want: Any) -> Any:
        """Hold what is not near NumPy's against a truth in more digits, and against noise."""
        if self._exact is None:
            known = {n: x.astype(LONG) if x.dtype.kind == "f" else x for n, x in self.known.items()}
            self._exact = self._run(_by_expression, known, LONG)
            rng = np.random.default_rng(0)
            for _ in range(NOISY_RUNS):
                evaluate = _noisy_by_expression(rng)
                self._noisy.append(self._run(evaluate, self.known))
        noisy = np.stack([np.asarray(values[name]) for values in self._noisy])
        usual = np.isfinite(have) if have.dtype.kind == "f" else np.zeros(have.shape, bool)
        same = ((noisy == have) | ((noisy != noisy) & (have != have))).any(0)
        if not usual.any():
            return same
        exact = self._exact[name]
        errors = np.abs(np.stack([*noisy, want]).astype(LONG) - exact)
        allowed = 2 * np.nanmax(errors, 0, initial=0) + self._slack(name, want, self._exact)
        return same | (usual & (np.abs(have - exact) <= allowed))

    def _run(
        self, evaluate: Evaluate, known: Mapping[str, Any], real: Any = None
    ) -> dict[str, Any]:
        values = dict(known)
        with np.errstate(all="ignore"):
            for call in self.group.calls:
                arrays = [
                    None if n is None else self._value(call, p, values, real)
                    for p, n in zip(call.op.schema.inputs, call.op.inputs, strict=True)
                ]
                for name, y in zip(call.op.outputs, evaluate(call, arrays), strict=True):
                    desc = self.block.var(name)
                    dtype = real if real is not None and desc.dtype.kind == "f" else desc.dtype
                    values[name] = np.array(y).astype(dtype).reshape(desc.shape)
        return values

    def _value(self, call: Call, parameter: str, values: Mapping[str, Any], real: Any) -> Any:
        """Return an operand as an array of its own shape."""
        view = call.views[parameter]
        desc = self.block.var(view.root)
        dtype = real if real is not None and desc.dtype.kind == "f" else desc.dtype
        if view.root not in values:
            return np.full(view.shape, self.group.numbers[view.root], dtype)
        root = np.ascontiguousarray(values[view.root].astype(dtype))
        if desc.strides is not None:  # a part of another array
            size, step = desc.dtype.itemsize, root.itemsize
            steps = [n // size for n in desc.strides]
            memory = np.empty(reach(desc.shape, steps), dtype)
            laid = np.lib.stride_tricks.as_strided(memory, desc.shape, [n * step for n in steps])
            laid[...] = root
            root = memory
        strides = [n * root.itemsize for n in view.strides]
        return np.lib.stride_tricks.as_strided(root, view.shape, strides)


def _by_kernel(call: Call, arrays: Sequence[Any]) -> Sequence[Any]:
    found = op_expr(call.op.type).kernel(np)(*arrays, **call.op.attrs)
    return found if isinstance(found, tuple) else [found]


def _by_expression(call: Call, arrays: Sequence[Any]) -> Sequence[Any]:
    given = dict(zip(call.op.schema.inputs, arrays, strict=True))
    if not call.scalar.reduces:
        return [
            call.scalar.evaluate({n: x for n, x in given.items() if x is not None}, call.op.attrs)
        ]
    shapes = [own for _, own in call.frame.outputs]
    return evaluated(call.scalar, given, shapes, call.op.attrs)


def _noisy_by_expression(rng: np.random.Generator) -> Evaluate:
    def evaluate(call: Call, arrays: Sequence[Any]) -> Sequence[Any]:
        noisy = [Noisy.of(x, rng) for x in arrays]
        return [np.asarray(y) for y in _by_expression(call, noisy)]

    return evaluate


class Noisy(np.ndarray[Any, Any]):
    """An array whose arithmetic is off by up to 1 ulp, at random."""

    rng: np.random.Generator

    @staticmethod
    def of(x: Any, rng: np.random.Generator) -> Any:
        """Return an array as one of these."""
        if x is None:
            return None
        made = np.asarray(x).view(Noisy)
        made.rng = rng
        return made

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a ufunc, and change what it returns by an ulp where it rounds."""
        plain = [np.asarray(x) if isinstance(x, Noisy) else x for x in args]
        made = np.asarray(getattr(ufunc, method)(*plain, **kwargs))
        if made.dtype.kind == "f" and ufunc not in _EXACT:
            steps = self.rng.integers(-1, 2, made.shape)
            usual = np.isfinite(made) & (made != 0)
            ulp = np.spacing(np.abs(np.where(usual, made, 1)))
            made = np.where(usual, made + steps * ulp, made).astype(made.dtype)
        return Noisy.of(made, self.rng)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Call a function that only chooses, such as `where`, or a sum, and change that."""
        plain = [np.asarray(x) if isinstance(x, Noisy) else x for x in args]
        made = np.asarray(function(*plain, **kwargs))
        if function is np.sum and made.dtype.kind == "f":
            slack = OF_SUMS[made.dtype] * np.sum(np.abs(plain[0]), *plain[1:], **kwargs)
            made = (made + slack * self.rng.uniform(-1, 1, made.shape)).astype(made.dtype)
        return Noisy.of(made, self.rng)
