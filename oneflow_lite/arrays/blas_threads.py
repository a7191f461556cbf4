"""The threads of NumPy's OpenBLAS: they sleep without work, and leave cores to our threads.

After a product a thread of BLAS spins for 2^26 cycles, some 25 ms, in case another product comes,
unless the environment says otherwise. On two cores the second thread of a loop waits that long for
a core. With 2^21 cycles, about a millisecond, three compiled steps of the demo's network took 0.92,
0.92 and 0.55 of the time. Much less would be too little: with 2^15 an eager step of a small MLP,
which is products with Python in between, took 1.5 times as long (docs/tried.md).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from oneflow_lite.arrays.locks import make_lock

_TIMEOUT = "OPENBLAS_THREAD_TIMEOUT"
_CYCLES = "21"  # as a power of two


def let_blas_sleep() -> bool:
    """Have OpenBLAS read the timeout once more, and start its threads anew; return whether it did.

    Does nothing elsewhere than on Linux, when the user has set the time, when another thread may be
    in a product, or when NumPy does not come with an OpenBLAS of its own.
    """
    if sys.platform != "linux" or _TIMEOUT in os.environ or threading.active_count() > 1:
        return False
    blas = openblas()
    if not (hasattr(blas, "openblas_read_env") and hasattr(blas, "blas_thread_shutdown_")):
        return False
    os.environ[_TIMEOUT] = _CYCLES
    try:
        blas.openblas_read_env()
    finally:
        del os.environ[_TIMEOUT]
    blas.blas_thread_shutdown_()  # the next product starts them
    return True


@functools.cache
def openblas() -> Any:
    """Return the OpenBLAS that NumPy brought and has loaded; None for another BLAS."""
    paths = Path(np.__file__).parent.with_name("numpy.libs").glob("libscipy_openblas*")
    with contextlib.suppress(OSError):  # where no library can be loaded, as in a browser
        return next((ctypes.CDLL(str(path)) for path in paths), None)
    return None


_lock = make_lock()
_inside = 0  # blocks of `products_on_one_thread` that are being run
_before = 0  # the number of threads that the first of them found


@contextlib.contextmanager
def products_on_one_thread() -> Iterator[bool]:
    """Let each product of a block stay on the thread that asks for it; yield whether it does.

    Threads that share blocks of an op's work would otherwise wait for each other at each product.
    Two heads of attention at a time, 1,024 x 64, take 0.6 of the time of one product after another
    on two threads of BLAS. The setting is the process's: a product in another thread is slower
    meanwhile.
    """
    global _inside, _before
    blas = openblas()
    write = getattr(blas, "scipy_openblas_set_num_threads64_", None)
    read = getattr(blas, "scipy_openblas_get_num_threads64_", None)
    if write is None or read is None:
        yield False
        return
    with _lock:
        if _inside == 0:
            _before = read()
            write(1)
        _inside += 1
    try:
        yield True
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                write(_before)


def _leave_blocks() -> None:  # the threads inside of them stayed in the parent
    global _inside
    if _inside:
        openblas().scipy_openblas_set_num_threads64_(_before)
        _inside = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_blocks)
