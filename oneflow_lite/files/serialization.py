"""flow.save and flow.load: state dicts as safetensors files, which hold numbers and never code.

PyTorch's own files are read, too (`oneflow_lite/files/torch_files.py`), and never written.

A file is a safetensors file: flat state dicts keep their names and are read by any safetensors
library. Its metadata holds as JSON the facts that safetensors has no place for: nesting, numbers
and strings between the tensors, kinds of tensors, shared memory (`files/description.py`).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from oneflow_lite.errors import (
    ArgumentTypeError,
    FlowError,
    SerializationError,
    arg_error,
)
from oneflow_lite.files.description import Reader, Writer
from oneflow_lite.files.torch_files import is_torch_file, load_torch, locate
from oneflow_lite.tensors.tensor import make_tensor


def save(
    obj: Any,
    f: str | os.PathLike[str] | BinaryIO,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write a state dict to a file.

    Parameters
    ----------
    obj : dict
        Tensors by name, as `Module.state_dict()` returns them, or an optimizer's state dict:
        tensors, parameters, buffers, NumPy arrays and numbers, Python's numbers, strings, bytes
        and None, dtypes, devices and sizes, and lists, tuples, sets and dicts of these.
    f : path or binary file
        A path is written all at once: after an error an older file is as it was. A pipe or a
        device is written as it is.
    pickle_module, pickle_protocol, _use_new_zipfile_serialization
        Accepted for scripts written for PyTorch; change nothing, since nothing is pickled.

    Raises
    ------
    SerializationError
        When the object holds any other type (a function, a module, a subclass of `dict`).
    OSError
        When the file cannot be written.

    Notes
    -----
    Every kind comes back as it was. A tensor comes back as a leaf, with the attributes that were
    set on it; it requires a gradient if it did. Tensors that share memory share it again.

    Examples
    --------
    >>> import io
    >>> import oneflow_lite as flow
    >>> file = io.BytesIO()
    >>> flow.save({"weight": flow.tensor([1.0, 2.0]), "epoch": 3}, file)
    >>> flow.load(io.BytesIO(file.getvalue()))
    {'weight': tensor([1., 2.]), 'epoch': 3}
    """
    data = Writer().dump(obj)
    if isinstance(f, (str, os.PathLike)):
        replace_file(os.path.realpath(f), data)
    elif hasattr(f, "write"):
        _write_all(f, data)
    else:
        raise _not_a_file_error("save", f)


def load(
    f: str | os.PathLike[str] | BinaryIO,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read a file of `save`, any safetensors file as a dict of tensors, or a file of PyTorch.

    Nothing in a file is executed. A file of PyTorch is read when it holds tensors, parameters,
    numbers, strings, bytes, NumPy arrays of numbers, and containers of these, as the files of
    `torch.save(model.state_dict(), path)` do, and checkpoints of several state dicts.

    Parameters
    ----------
    f : path or binary file
        Where to read.
    map_location : device, dict or callable, optional
        Where the tensors are put; the CPU by default. For PyTorch's files also a dict of devices
        by the device that they were saved from, or a function of elements and that device.
    pickle_module, weights_only, mmap, **pickle_load_args
        Accepted for scripts written for PyTorch; change nothing. A file is always read as with
        `weights_only=True`.

    Returns
    -------
    object
        As it was saved. Tensors require a gradient if they did when they were saved.

    Raises
    ------
    SerializationError
        When the file is damaged, cut short, or of another kind, or holds another type of object:
        it names the file, if it has a name, and the part that is wrong.
    FileNotFoundError
        When there is no such file.
    """
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            data = file.read()
    elif hasattr(f, "read"):
        data = f.read()
    else:
        raise _not_a_file_error("load", f)
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise SerializationError(
            f"load(): the file gives {type(data).__name__} instead of bytes; open it in binary mode"
        )
    with naming("load", f):
        return from_bytes(bytes(data), map_location)


def from_bytes(data: bytes, map_location: Any = None) -> Any:
    """Return the object that the bytes of a file hold."""
    if is_torch_file(data):
        return load_torch(data, map_location)
    device = locate(map_location)(make_tensor(np.empty(0)), "cpu")
    return Reader(data, device).load()


@contextlib.contextmanager
def naming(op: str, file: Any) -> Iterator[None]:
    """Have each `SerializationError` begin with the op and the name of a file."""
    try:
        yield
    except SerializationError as error:
        name = file if isinstance(file, (str, os.PathLike)) else getattr(file, "name", None)
        text = str(error).removeprefix("load(): ").replace("flow.save", f"flow.{op[:-4]}save")
        if isinstance(name, (str, os.PathLike)):
            text = f"file {os.fspath(name)!r}: {text}"
        raise SerializationError(f"{op}(): {text}") from None


def replace_file(path: str, data: bytes) -> None:
    """Write a file beside `path`, then rename it: a reader never sees half a file.

    A process that is killed leaves the file beside it, and the next call removes that.
    """
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):  # a pipe or a device
        with open(path, "wb") as file:
            file.write(data)
        return
    folder, name = os.path.split(path)
    prefix = f".{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}."
    _remove_left(folder, prefix)
    temporary = os.path.join(folder, f"{prefix}{os.urandom(4).hex()}.tmp")
    lock = None
    try:
        with open(temporary, "xb") as file:
            lock = _lock(temporary)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # or a crash could leave the new name with an empty file
        with contextlib.suppress(FileNotFoundError):
            os.chmod(temporary, os.stat(path).st_mode & 0o7777)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    finally:
        if lock is not None:
            os.close(lock)


def _lock(path: str) -> int | None:
    """Return a lock that shows that a process writes this file; None where it is locked already.

    It is also None where the system has no such locks.
    """
    try:
        import fcntl
    except ImportError:
        return None
    lock = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _remove_left(folder: str, prefix: str) -> None:
    """Remove the files that saves of a name left when they were killed."""
    for each in os.scandir(folder or "."):
        if each.name.startswith(prefix) and each.name.endswith(".tmp"):
            with contextlib.suppress(OSError):
                found = each.stat()
                if not found.st_size and time.time() - found.st_mtime < 60:
                    continue  # it was made just now, and its lock comes next
                lock = _lock(each.path)
                if lock is not None:
                    os.unlink(each.path)
                    os.close(lock)


def _write_all(file: Any, data: bytes) -> None:
    """Write all bytes: a file without a buffer may take some of them at a time."""
    left = memoryview(data)
    while left:
        count = file.write(left if len(left) < len(data) else data)
        if type(count) is not int or count >= len(left):
            return
        if count <= 0:
            raise OSError(f"save(): the file takes no more, {len(left)} bytes are left")
        left = left[count:]


def _not_a_file_error(op: str, value: object) -> FlowError:
    return arg_error(
        op,
        "f",
        expected="a path or a binary file",
        got=type(value).__name__,
        hint="pass a path",
        kind=ArgumentTypeError,
    )
