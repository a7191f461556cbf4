"""Let the C library keep the memory of freed arrays, so that the next array does not fault its
pages in again.

Eager code makes and drops an array per op. glibc returns the top of its heap to the system when
more than its trim threshold is free at the top, and maps each large array by itself; then the
kernel clears each page of the next array anew. For arrays of a few megabytes this is most of the
time (docs/performance.md). With both thresholds raised, arrays of up to 32 MiB come from the heap,
which keeps up to 128 MiB of freed memory at its top; nothing is allocated ahead.

A replay of `flow.compile` has memory of its own. The recorded step's results, which are freed
before the first replay, go back to the system.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from typing import Any

# Of glibc's <malloc.h>. Setting one of them switches off glibc's own adjustment of both.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_KEPT_BYTES = 128 << 20
_MAPPED_BYTES = 32 << 20  # the most that glibc accepts


def keep_freed_memory() -> bool:
    """Ask glibc to keep freed memory; return whether it did.

    Does nothing elsewhere than on Linux with glibc, when the user tunes malloc by environment
    variables, or when `ONEFLOW_LITE_KEEP_MEMORY=0` is set.
    """
    environment = os.environ
    if environment.get("ONEFLOW_LITE_KEEP_MEMORY") == "0":
        return False
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in environment):
        return False
    libc = _glibc()
    if libc is None:
        return False
    kept = libc.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
    mapped = libc.mallopt(_M_MMAP_THRESHOLD, _MAPPED_BYTES)
    return bool(kept == mapped == 1)


@functools.cache
def _glibc() -> Any:
    """Return the C library if it is glibc."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018  (AttributeError in another C library)
    except (OSError, AttributeError):
        return None
    return libc


def give_back_freed_memory() -> None:
    """Give the system all whole pages of freed memory, in some milliseconds."""
    libc = _glibc()
    if libc is not None:
        libc.malloc_trim(0)
