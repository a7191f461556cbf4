"""Freed memory is kept on glibc, and only where the user has not said otherwise."""

import os
import subprocess
import sys

import pytest

CODE = "from oneflow_lite.host_memory import keep_freed_memory; print(keep_freed_memory())"


def answer(**variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_"))}
    environment.pop("ONEFLOW_LITE_KEEP_MEMORY", None)
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def on_glibc():
    return sys.platform.startswith("linux") and "glibc" in (os.confstr("CS_GNU_LIBC_VERSION") or "")


@pytest.mark.skipif(not on_glibc(), reason="the C library is not glibc")
def test_is_asked_for_on_glibc():
    assert answer() == "True"


@pytest.mark.parametrize(
    "variables",
    [
        {"ONEFLOW_LITE_KEEP_MEMORY": "0"},
        {"MALLOC_TRIM_THRESHOLD_": "131072"},
        {"GLIBC_TUNABLES": "glibc.malloc.check=0"},
    ],
)
def test_leaves_malloc_to_a_user_who_tunes_it(variables):
    assert answer(**variables) == "False"
