"""Groups as machine code: Numba compiles their loops, and threads share large loops.

Machine code stays in the user's cache folder. `ONEFLOW_LITE_CACHE` names another folder; nothing
stays where it is empty.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib
import itertools
import json
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite import binding
from numba import njit, types
from numba.core.registry import cpu_target
from numba.core.runtime import nrt

from oneflow_lite.arrays.dtype import DType
from oneflow_lite.arrays.threads import in_threads, parts_of
from oneflow_lite.ops.eager_loops import cache_folder
from oneflow_lite.static.fusion import elementary, parts
from oneflow_lite.static.fusion.builder_process import built_apart
from oneflow_lite.static.fusion.building import undisturbed
from oneflow_lite.static.fusion.group import DTYPES, Group
from oneflow_lite.static.fusion.joined import Joined
from oneflow_lite.static.fusion.loops import LoopBuffer, source_of
from oneflow_lite.static.ir.program import Block, VarDesc

_njit: Any = njit
_dynfunc: Any = importlib.import_module("numba._dynfunc")
_runtime: Any = nrt.rtsys


LARGE = 1 << 16  # elements from which a group is rather a loop of its own
_SCOPE = {
    **elementary.FUNCTIONS,
    **parts.NAMES,
    "inf": np.inf,
    "nan": np.nan,
    "uint64": np.uint64,
    **{str(dtype): dtype.type for dtype in DTYPES if dtype.kind != "b"},
}
_versions = (numba.__version__, llvmlite.__version__, np.__version__)
_known: dict[Any, Callable[..., None]] = {}  # by cache folder, source and signature


def compiled(group: Group, block: Block) -> tuple[Callable[..., None], str]:
    """Return a function of a group's inputs and outputs, as arrays, and the source of its loops.

    Raises
    ------
    Exception
        Whatever Numba raises where it cannot.
    """
    source, buffers = source_of(group, block)
    arrays: list[Any] = [
        _array(d, reads)
        for reads, names in ((True, group.inputs), (False, group.outputs))
        for d in map(block.var, names)
    ]
    arrays += [types.Array(numba.from_dtype(np.dtype(b.dtype)), 2, "C") for b in buffers]
    signature = types.void(*[types.int64] * 3, *arrays)
    # A plan gives results memory of their own.
    return ready(_kernel(source, signature, pipeline_class=parts.Apart), group, buffers), source


def _array(desc: VarDesc, is_read: bool) -> Any:
    """Return the type of an array. One that is read may be nobody's to write, at an odd address."""
    return _array_type(desc.dtype, len(desc.shape), "C" if desc.strides is None else "A", is_read)


@cache
def _array_type(dtype: DType, ndim: int, layout: str, is_read: bool) -> Any:
    make: Any = types.Array
    options = {"readonly": is_read, "aligned": not is_read}
    return make(numba.from_dtype(dtype), ndim, layout, **options)


def ready(
    kernel: Callable[..., None], group: Group, buffers: list[LoopBuffer]
) -> Callable[..., None]:
    """Return a function that runs a group's code on its inputs, outputs and names."""
    return _checked(_shared(kernel, group, buffers), group.checks())


def compile_joined(joined: Joined, block: Block) -> None:
    """Compile a joined function.

    Raises
    ------
    Exception
        Whatever Numba raises where it cannot.
    """
    given: list[Any] = [types.Array(types.int64, 1, "C"), types.Array(types.float64, 1, "C")]
    given += [_array(block.var(name), name not in joined.made) for name in joined.given]
    kernel = _kernel(joined.source, types.void(*[types.int64] * 3, *given))
    if joined.threads > 1:
        joined.kernel = partial(run_divided, kernel, joined.elements, joined.threads)
    else:
        joined.kernel = partial(kernel, 2, 0, joined.elements)


def run_divided(kernel: Callable[..., None], elements: int, parts: int, *arrays: Any) -> None:
    """Run a joined function of updates: their numbers here, their elements in some threads."""
    kernel(0, 0, 0, *arrays)
    if parts == 1:
        kernel(1, 0, elements, *arrays)
        return
    bounds = [elements * i // parts for i in range(parts + 1)]
    in_threads([partial(kernel, 1, *pair, *arrays) for pair in itertools.pairwise(bounds)])


def loop(source: str, arguments: Sequence[Any]) -> Callable[..., None]:
    """Return the machine code of a source of `group(part, begin, end, ...)` for such arguments.

    In it `real` is the dtype of the first array.
    """
    signature = types.void(*[types.int64] * 3, *map(numba.typeof, arguments))
    first = next(a for a in arguments if isinstance(a, np.ndarray) and a.dtype.kind == "f")
    return _kernel(f"real = {first.dtype}\n{source}", signature)


def _kernel(source: str, signature: Any, **options: Any) -> Callable[..., None]:
    """Compile a function, or find the code that this or an earlier process has compiled."""
    text = re.sub(r" *#.*", "", source)
    key = os.environ.get("ONEFLOW_LITE_CACHE"), text, signature, *options
    if (known := _known.get(key)) is None:
        known = _known[key] = _found(source, signature, options, _file(key[1:]))
    return known


def _found(
    source: str, signature: Any, options: dict[str, Any], file: Path | None
) -> Callable[..., None]:
    with undisturbed():
        if file is not None:
            with contextlib.suppress(Exception):  # there is none yet, or it is damaged
                return _loaded(_content_of(file))
    made = built_apart(source, signature, options)
    with undisturbed():
        if made is None:
            made = content(source, signature, options)
        entry = _loaded(made)
    if file is not None:
        with contextlib.suppress(Exception):  # no room
            _write(file, made)
    return entry


def content(source: str, signature: Any, options: dict[str, Any]) -> bytes:
    """Compile a source; return the bytes of its file."""
    scope = dict(_SCOPE)
    exec(compile(source, "<fused group>", "exec"), scope)
    compiler = _njit(signature, error_model="numpy", nogil=True, no_cfunc_wrapper=True, **options)
    function = compiler(scope["group"])
    (compiled,) = function.overloads.values()
    return _content(compiled)


# Files, one for each function: a hash, the names in the object code, and that code


def _file(key: Any) -> Path | None:
    """Return the file in which a function is kept; None where the folder cannot hold it."""
    folder = cache_folder()
    if folder is None:
        return None
    file = folder.absolute() / "fusion" / _hashed(key)
    try:
        for each in (*reversed(file.parent.parents), file.parent):
            each.mkdir(mode=0o700, exist_ok=True)
        folders = {*file.parents, *file.parent.resolve().parents, file.parent.resolve()}
        return file if all(_is_ours(each.stat()) for each in folders) else None
    except OSError:
        return None


def _is_ours(found: os.stat_result) -> bool:
    """Return whether nobody else may change a file or folder: to load code is to run its owner's.

    Root may. In a folder as /tmp others may add files, and not change ours.
    """
    if not hasattr(os, "getuid"):
        return True
    mode = found.st_mode
    if found.st_uid not in (os.getuid(), 0):
        return False
    if stat.S_ISDIR(mode) and mode & stat.S_ISVTX:
        return True
    # A group of the owner's own number is, by custom, the owner alone.
    return not mode & stat.S_IWOTH and (not mode & stat.S_IWGRP or found.st_gid == found.st_uid)


def _content_of(file: Path) -> bytes:
    """Return the bytes of a file that is ours, and stays the same file until it is read."""
    with open(file, "rb") as stream:
        found = os.fstat(stream.fileno())
        if not _is_ours(found):
            raise PermissionError(f"others may write {file}")
        return stream.read()


def _hashed(key: Any) -> str:
    """Return a hash of all that machine code depends on."""
    cpu = cpu_target.target_context.codegen().magic_tuple()
    key = repr((key, _versions, sys.version_info, cpu, _library()))
    return hashlib.sha256(key.encode()).hexdigest()[:32]


@cache
def _library() -> bytes:
    files = [Path(str(module.__file__)).read_bytes() for module in (elementary, parts)]
    return hashlib.sha256(b"".join(files)).digest()


def _content(compiled: Any) -> bytes:
    """Return the bytes of a function's file."""
    library = compiled.library
    module = library._final_module
    entry = compiled.fndesc.llvm_cpython_wrapper_name
    places = [v.name for v in module.global_variables if v.name.startswith("_ZN08NumbaEnv")]
    called = [f.name for f in module.functions if f.is_declaration and f.name[:5] != "llvm."]
    head = json.dumps([entry, places, called]).encode()
    content: bytes = b"\n".join((head, library._get_compiled_object()))
    return hashlib.sha256(content).digest() + content


def _loaded(content: bytes) -> Callable[..., None]:
    """Return a function of which object code was kept."""
    digest, content = content[:32], content[32:]
    if hashlib.sha256(content).digest() != digest:
        raise ValueError("half of it was written, or it was changed since")
    head, _, code = content.partition(b"\n")
    entry, places, called = json.loads(head)
    _runtime.initialize(cpu_target.target_context)
    if not all(map(binding.address_of_symbol, called)):  # LLVM would end the process
        raise ValueError("functions are missing that it calls")
    # An engine of its own, for names in it may mean something else in other files.
    machine = binding.Target.from_triple(binding.get_process_triple()).create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    environment = _dynfunc.Environment({})
    for name in places:
        place = ctypes.c_void_p.from_address(engine.get_global_value_address(name))
        place.value = id(environment)
    address = engine.get_function_address(entry)
    made: Callable[..., None] = _dynfunc.make_function(
        sys.modules[__name__], "group", "", address, environment, (engine,)
    )
    return made


def _write(file: Path, content: bytes) -> None:
    """Write a file at once, for another process may be doing the same."""
    handle, name = tempfile.mkstemp(dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.replace(name, file)
    except OSError:
        os.unlink(name)
        raise


def _shared(
    kernel: Callable[..., None], group: Group, buffers: list[LoopBuffer]
) -> Callable[..., None]:
    """Return the function that divides the work among threads, and adds up their sums."""
    steps = group.steps_of_outer_loop
    parts = parts_of(group.nanoseconds, steps)
    if parts == 1 and not buffers:
        return lambda *arrays: kernel(0, 0, steps, *arrays)
    idle: list[list[Any]] = []  # a run takes one, and puts it back, which needs no lock

    def run(*arrays: Any) -> None:
        try:
            own = idle.pop()
        except IndexError:
            own = [np.empty((parts, b.size), b.dtype) for b in buffers]
        if parts == 1:
            kernel(0, 0, steps, *arrays, *own)
        else:
            share(kernel, steps, parts, (*arrays, *own))
        if parts > 1 and group.ends:
            kernel(-1, 0, 0, *arrays, *own)
        idle.append(own)

    return run


def share(kernel: Callable[..., None], steps: int, parts: int, arguments: Sequence[Any]) -> None:
    """Run a loop from step 0 to `steps` in so many parts, all but the first on other threads."""
    bounds = itertools.pairwise([steps * i // parts for i in range(parts + 1)])
    in_threads([partial(kernel, i, *pair, *arguments) for i, pair in enumerate(bounds)])


def _checked(
    run: Callable[..., None], checks: list[tuple[int, Callable[[Any], None]]]
) -> Callable[..., None]:
    """Return a function that checks inputs first, as the kernels of some ops do."""
    if not checks:
        return run

    def checked(*arrays: Any) -> None:
        for number, check in checks:
            check(arrays[number])
        run(*arrays)

    return checked
