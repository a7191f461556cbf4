"""`version`: of the library, and of CUDA as CuPy sees it."""

from __future__ import annotations

from typing import Any

from oneflow_lite import __version__ as __version__

debug, hip, xpu, git_version = False, None, None, "unknown"


def __getattr__(name: str) -> Any:
    if name != "cuda":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from oneflow_lite.interop import cuda

    if not cuda.is_available():
        return None
    number = cuda.cupy().cuda.runtime.runtimeGetVersion()
    return f"{number // 1000}.{number % 1000 // 10}"
