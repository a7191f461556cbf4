"""Groups as machine code: Numba compiles their loops, and other threads share large ones.

What was compiled stays in the user's cache folder, one file of source for each group, beside what
Numba makes of it: `ONEFLOW_LITE_CACHE` names another folder, and no folder where it is empty.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import njit, types

from oneflow_lite.eager_loops import threads as threads
from oneflow_lite.locks import make_lock
from oneflow_lite.static.fusion import elementary, single
from oneflow_lite.static.fusion.loops import DTYPES, Group, source_of
from oneflow_lite.static.ir.program import Block

_njit: Any = njit
LARGE = 1 << 16  # elements from which other threads pay
_SCOPE = {
    **elementary.FUNCTIONS,
    "inf": np.inf,
    "nan": np.nan,
    **{str(dtype): dtype.type for dtype in DTYPES if dtype.kind != "b"},
}
_versions = (numba.__version__, llvmlite.__version__, np.__version__)
_lock = make_lock()
_pool: ThreadPoolExecutor | None = None


def compiled(group: Group, block: Block) -> tuple[Callable[..., None], str]:
    """Return a function of a group's inputs and outputs, as arrays, and the source of its loops.

    Raises
    ------
    Exception
        Whatever Numba raises where it cannot.
    """
    source = source_of(group, block)
    arrays: list[Any] = [
        types.Array(numba.from_dtype(desc.dtype), len(desc.shape), "C")
        for desc in map(block.var, (*group.inputs, *group.outputs))
    ]
    sums = group.partial_sums
    arrays += [types.Array(types.float64, 1 + len(shape), "C") for shape, _, _ in sums]
    signature = types.void(*[types.int64] * 3, *arrays)
    return _shared(_kernel(source, signature), group), source


def loop(source: str, arguments: Sequence[Any]) -> Callable[..., None]:
    """Return the machine code of a source of `group(part, begin, end, ...)` for such arguments.

    In it `real` is the dtype of the first array, and functions of float32 stay in float32.
    """
    signature = types.void(*[types.int64] * 3, *map(numba.typeof, arguments))
    first = next(a for a in arguments if isinstance(a, np.ndarray) and a.dtype.kind == "f")
    names = single.SINGLE if first.dtype.char == "f" else single.DOUBLE
    return _kernel(source, signature, {**_SCOPE, **names})


def _kernel(source: str, signature: Any, scope: Mapping[str, Any] = _SCOPE) -> Callable[..., None]:
    file = _cached_source(source, signature)
    if file is not None:
        try:
            return _compile(source, signature, file, scope)
        except Exception:  # somebody else's file, or half of one
            for each in file.parent.glob(f"**/{file.stem}*"):
                with contextlib.suppress(OSError):
                    each.unlink()
    return _compile(source, signature, None, scope)


def _compile(
    source: str, signature: Any, file: Path | None, scope: Mapping[str, Any]
) -> Callable[..., None]:
    name = f"oneflow_lite.static.fusion.{'group' if file is None else file.stem}"
    module = ModuleType(name)
    module.__dict__.update(scope)
    exec(compile(source, str(file or "<fused group>"), "exec"), module.__dict__)
    options = {"error_model": "numpy", "nogil": True, "cache": file is not None}
    with _lock:
        sys.modules[name] = module  # where Numba looks for it when it loads
        try:
            kernel: Callable[..., None] = _njit(signature, **options)(module.__dict__["group"])
        finally:
            del sys.modules[name]
    return kernel


def _cached_source(source: str, signature: Any) -> Path | None:
    """Return the file of a group's source in the cache folder; None where there can be none."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    given = os.environ.get("ONEFLOW_LITE_CACHE", str(Path(home) / "oneflow_lite"))
    if not given:
        return None
    library = b"".join([Path(str(m.__file__)).read_bytes() for m in (elementary, single)])
    key = hashlib.sha256(f"{source}{signature}{_versions}".encode() + library).hexdigest()[:32]
    file = Path(given) / "fusion" / f"group_{key}.py"
    try:
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=file.parent)
            with os.fdopen(handle, "w") as stream:
                stream.write(source)
            os.replace(name, file)  # at once, for another process may be doing the same
    except OSError:
        return None
    return file


# Threads


def _shared(kernel: Callable[..., None], group: Group) -> Callable[..., None]:
    """Return what divides the work among threads, and adds up their sums."""
    steps, sums = group.steps, group.partial_sums
    parts = min(threads(), steps) if group.rows * group.columns >= LARGE else 1
    if parts == 1 and not sums:
        return lambda *arrays: kernel(0, 0, steps, *arrays)
    bounds = [steps * i // parts for i in range(parts + 1)]

    def run(*arrays: Any) -> None:
        own = [np.zeros((parts, *shape)) for shape, _, _ in sums]
        others = [
            _threads().submit(kernel, i, bounds[i], bounds[i + 1], *arrays, *own)
            for i in range(1, parts)
        ]
        try:
            kernel(0, 0, bounds[1], *arrays, *own)
        finally:
            wait(others)  # an interrupt must not leave them writing
        for other in others:
            other.result()
        for (_, output, share), part in zip(sums, own, strict=True):
            arrays[len(group.inputs) + output].reshape(-1)[...] = part.sum(0) / share

    return run


def share(kernel: Callable[..., None], steps: int, parts: int, arguments: Sequence[Any]) -> None:
    """Run a loop from step 0 to `steps` in so many parts, all but the first on other threads."""
    bounds = [steps * i // parts for i in range(parts + 1)]
    others = [
        _threads().submit(kernel, i, bounds[i], bounds[i + 1], *arguments) for i in range(1, parts)
    ]
    try:
        kernel(0, 0, bounds[1], *arguments)
    finally:
        wait(others)
    for other in others:
        other.result()


def _threads() -> ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(threads(), "oneflow_lite fusion")
            os.register_at_fork(after_in_child=_forget)
        return _pool


def _forget() -> None:
    global _pool
    _pool = None
