"""Threads that share the work of a large op."""

import faulthandler
import signal
import threading
import time

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


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no such timer")
def test_a_signal_handler_may_share_work_while_this_thread_does():
    seen, work = [0, 0], [lambda: None] * 3

    def handler(*_):
        if seen[0] == seen[1]:  # one at a time
            seen[0] += 1
            in_threads(work)
            seen[1] += 1

    before = signal.signal(signal.SIGALRM, handler)
    faulthandler.dump_traceback_later(60, exit=True)  # it used to wait for itself
    signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
    try:
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            in_threads(work)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)
    assert seen[0] == seen[1] > 10


def test_an_error_is_raised_when_all_have_ended():
    ended = []

    def fails():
        raise ValueError("one of them")

    with pytest.raises(ValueError, match="one of them"):
        in_threads([fails, *[lambda: ended.append(1)] * 5])
    assert ended == [1] * 5
