"""`python -m oneflow_lite.info`: all that is promised, nothing private, whatever is broken."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import oneflow_lite as flow

info = importlib.import_module("oneflow_lite.info")  # the package has the function
ROOT = Path(info.__file__).resolve().parent


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask no library, which takes seconds."""
    monkeypatch.setattr(info, "_asked", lambda name: "asked")


def told() -> dict[str, str]:
    return dict(line.split(": ", 1) for line in info.info().splitlines())


def test_as_a_command() -> None:
    command = [sys.executable, "-W", "error", "-m", "oneflow_lite.info"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert found["oneflow_lite"].startswith(f"{flow.__version__} at ")
    assert found["Python"].startswith(sys.version.split()[0])
    assert found["numpy"].startswith(f"{np.__version__}, BLAS ")
    assert re.match(r"\d", found["scipy"]) and re.match(r"\d", found["safetensors"])
    for name in ("system", "CPU", "attrs", "numba", "cupy", "mpi4py", "torch", "jit", "cache"):
        assert found[name]
    assert found["default dtype"] == "float32"


def test_settings_of_this_process(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEFLOW_LITE_CACHE", "")
    flow.set_default_dtype(flow.float64)
    try:
        with flow.use_jit(False):
            found = told()
    finally:
        flow.set_default_dtype(flow.float32)
    assert found["default dtype"] == "float64"
    assert found["jit"].startswith("off")
    assert found["cache"] == "none, as ONEFLOW_LITE_CACHE is empty"


def test_the_cache_is_measured(
    quick: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ONEFLOW_LITE_CACHE", str(tmp_path / "none"))
    assert told()["cache"].endswith("not there yet")
    (tmp_path / "some").write_bytes(bytes(3 << 20))
    monkeypatch.setenv("ONEFLOW_LITE_CACHE", str(tmp_path))
    assert told()["cache"].endswith("1 files, 3.0 MiB")


def test_nothing_private_is_told(
    quick: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "home" / "gabriella"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setattr(info.getpass, "getuser", lambda: "gabriella")
    monkeypatch.setenv("ONEFLOW_LITE_CACHE", "/scratch/gabriella/cache")
    monkeypatch.setenv("XDG_CACHE_HOME", f"{home}/caches")
    monkeypatch.setenv("GITHUB_TOKEN", "very-secret")
    monkeypatch.setenv("MY_PASSWORD", "very-secret")
    text = info.info()
    assert "gabriella" not in text and "very-secret" not in text
    assert "XDG_CACHE_HOME: ~/caches" in text
    assert "ONEFLOW_LITE_CACHE: /scratch/<user>/cache" in text
    assert info.without_names(f"{home}2/x /gabriella") == f"{home}2/x /<user>"


def test_broken_and_missing_libraries_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "numba.py").write_text("raise ImportError('its other half is missing')")
    (tmp_path / "mpi4py.py").write_text("import os; os.abort()")
    (tmp_path / "onnx.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("numba", "mpi4py", "onnx"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert info._asked("numba") == ("cannot be imported (ImportError: its other half is missing)")
    assert re.match(r"cannot be imported \(.*\)", info._asked("mpi4py"))
    assert "AttributeError" in info._asked("onnx")
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert info._asked("cupy") == "not installed"


def test_facts_that_cannot_be_found_out(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **options: object) -> str:
        raise OSError("no such thing here")

    for module, name in ((info.platform, "platform"), (np, "show_config"), (info, "_jit")):
        monkeypatch.setattr(module, name, fail)
    found = told()
    for name in ("system", "numpy", "jit"):
        assert found[name] == "not known (OSError: no such thing here)"
    monkeypatch.setattr(info.getpass, "getuser", fail)
    assert told()["Python"]


def test_the_name_is_a_function_however_it_was_imported() -> None:
    code = "import oneflow_lite.info, oneflow_lite as flow; flow.info._asked = str; "
    code += "print(flow.info().splitlines()[0])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("oneflow_lite: ")
    assert callable(flow.info)


def test_every_variable_that_the_package_reads_is_listed() -> None:
    found = set()
    for start in (ROOT, *(ROOT / room for room in ("functors", "grad_funcs", "kernels"))):
        for path in start.rglob("*.py"):
            text = path.read_text("utf-8")
            if "environ" in text and path.name != "info.py":
                words = [n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant)]
                names = [word for word in words if isinstance(word, str)]
                found |= {name for name in names if re.fullmatch(r"[A-Z]+(_[A-Z]+)+", name)}
    assert "ONEFLOW_LITE_KEEP_MEMORY" in found and "OMP_NUM_THREADS" in found
    known = [name.replace("*", ".*") for name in info.ENVIRONMENT]
    assert [n for n in found if not any(re.fullmatch(k, n) for k in known)] == []
