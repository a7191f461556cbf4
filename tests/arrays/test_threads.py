"""Threads that share the work of a large op."""

import threading

import numpy as np
import pytest

from oneflow_lite.arrays.threads import in_threads


def test_settings_of_numpy_hold_in_all_threads():
    seen = []

    def divide():
        seen.append(threading.get_ident())
        barrier.wait(10)  # each thread takes one
        np.divide(np.ones(3), 0)

    barrier = threading.Barrier(2)
    with np.errstate(divide="ignore"):
        in_threads([divide] * 2)
    assert len({*seen}) == 2
    barrier.reset()
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        in_threads([divide] * 2)
