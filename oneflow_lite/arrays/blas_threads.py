"""Let the threads of NumPy's OpenBLAS sleep when they have no work, so that loops get their cores.

After a product a thread of BLAS spins for 2^26 cycles, some 25 ms, in case another product comes,
unless the environment says otherwise. On two cores the second thread of a loop waits that long for
a core. With 2^21 cycles, about a millisecond, three compiled steps of the demo's network took 0.92,
0.92 and 0.55 of the time. Much less would be too little: with 2^15 an eager step of a small MLP,
which is products with Python in between, took 1.5 times as long (docs/tried.md).
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from pathlib import Path

import numpy as np

_TIMEOUT = "OPENBLAS_THREAD_TIMEOUT"
_CYCLES = "21"  # as a power of two


def let_blas_sleep() -> bool:
    """Have OpenBLAS read the timeout once more, and start its threads anew; return whether it did.

    Does nothing elsewhere than on Linux, when the user has set the time, when another thread may be
    in a product, or when NumPy does not come with an OpenBLAS of its own.
    """
    if sys.platform != "linux" or _TIMEOUT in os.environ or threading.active_count() > 1:
        return False
    for path in Path(np.__file__).parent.with_name("numpy.libs").glob("libscipy_openblas*"):
        blas = ctypes.CDLL(str(path))  # NumPy has loaded it
        if hasattr(blas, "openblas_read_env") and hasattr(blas, "blas_thread_shutdown_"):
            os.environ[_TIMEOUT] = _CYCLES
            try:
                blas.openblas_read_env()
            finally:
                del os.environ[_TIMEOUT]
            blas.blas_thread_shutdown_()  # the next product starts them
            return True
    return False
