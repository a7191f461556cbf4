"""`xpu`: Intel's devices, which the library does not use."""

from __future__ import annotations


def is_available() -> bool:
    """Return False."""
    return False


def device_count() -> int:
    """Return 0."""
    return 0


def empty_cache() -> None:
    """Do nothing."""


def synchronize() -> None:
    """Do nothing."""


def manual_seed(seed: int) -> None:
    """Do nothing: no device has a generator."""


def manual_seed_all(seed: int) -> None:
    """Do nothing: no device has a generator."""
