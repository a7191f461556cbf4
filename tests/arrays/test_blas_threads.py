"""OpenBLAS's threads sleep when they have no work, where loops need their cores."""

import os
import subprocess
import sys

import pytest

from tests.conftest import needs_numba

SCRIPT = """
import ctypes, os, threading
from pathlib import Path
import numpy as np

a = np.ones((600, 600), np.float32)
(a @ a).sum()  # its threads are there
{before}
import oneflow_lite as flow
{after}
assert (a @ a == 600).all() and (flow.ones(600, 600) @ flow.ones(600, 600) == 600).all()
assert os.environ.get("OPENBLAS_THREAD_TIMEOUT") == {given!r}
(path,) = Path(np.__file__).parent.with_name("numpy.libs").glob("libscipy_openblas*")
print(ctypes.CDLL(str(path)).openblas_thread_timeout())
"""


def timeout(before="", after="", given=None):
    """Return what OpenBLAS takes for its time after products before and after the import."""
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_THREAD_TIMEOUT"}
    if given is not None:
        environment["OPENBLAS_THREAD_TIMEOUT"] = given
    environment["OMP_NUM_THREADS"] = "2"
    script = SCRIPT.format(before=before, after=after, given=given)
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    if "not enough values to unpack" in done.stderr or "undefined symbol" in done.stderr:
        pytest.skip("NumPy comes with another BLAS")
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@needs_numba
def test_they_sleep_soon():
    assert timeout() == 21


@needs_numba
def test_they_keep_the_time_that_the_user_has_set():
    assert timeout(given="20") == 20


@needs_numba
def test_nothing_is_started_anew_while_another_thread_may_multiply():
    before = "wait = threading.Event(); other = threading.Thread(target=wait.wait); other.start()"
    assert timeout(before, "wait.set(); other.join()") == 0
