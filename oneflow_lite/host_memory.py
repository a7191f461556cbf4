"""Let the C library keep the memory of freed arrays, so that the next array does not fault its
pages in again.

Eager code makes and drops an array per op. glibc returns the top of its heap to the system after
every free beyond 128 kB, and then the kernel clears each page of the next array anew: on arrays of
a few megabytes that is most of the time (docs/benchmarks.md). With M_TOP_PAD the heap keeps up to
64 MiB of freed memory; nothing is allocated ahead.
"""

from __future__ import annotations

import os
import sys

_M_TOP_PAD = -2  # of glibc's <malloc.h>
_KEPT_BYTES = 64 << 20


def keep_freed_memory() -> bool:
    """Ask glibc to keep freed memory; return whether it did.

    Does nothing elsewhere than on Linux with glibc, when the user tunes malloc by environment
    variables, or when `ONEFLOW_LITE_KEEP_MEMORY=0` is set.
    """
    environment = os.environ
    if not sys.platform.startswith("linux") or environment.get("ONEFLOW_LITE_KEEP_MEMORY") == "0":
        return False
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in environment):
        return False
    import ctypes

    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018  (AttributeError in another C library)
        return bool(libc.mallopt(_M_TOP_PAD, _KEPT_BYTES) == 1)
    except (OSError, AttributeError):
        return False
