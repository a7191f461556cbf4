"""NVRTC compiles CUDA C++ without a device: the package nvidia-cuda-nvrtc-cu12."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path

from oneflow_lite.static.fusion.cuda_text import PRELUDE

ARCHITECTURES = ("compute_75", "compute_90")  # the oldest that CUDA 13 has, and H100's


@functools.cache
def library() -> ctypes.CDLL | None:
    """Return the library; None where the package is not installed."""
    try:
        found = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        return None
    folders = [] if found is None else list(found.submodule_search_locations or ())
    files = [f for folder in folders for f in Path(folder, "lib").glob("libnvrtc.so.*")]
    return ctypes.CDLL(str(files[0])) if files else None


def problems(source: str, options: Sequence[str], architecture: str = ARCHITECTURES[0]) -> str:
    """Compile a source; return what the compiler said, warnings included; empty when it is fine."""
    nvrtc = library()
    assert nvrtc is not None
    program = ctypes.c_void_p()
    name = b"kernels.cu"
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name, 0, None, None)
    given = [o.encode() for o in (*options, f"--gpu-architecture={architecture}")]
    result = nvrtc.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    said = log.value.decode()
    return said or (f"error {result}" if result else "")


def merged(texts: Sequence[str]) -> str:
    """Return one text of many, each with names of its own."""
    bodies = [
        re.sub(r"\b(group|begin\d+|end\d+)\b", rf"\1_{i}", text.removeprefix(PRELUDE))
        for i, text in enumerate(texts)
    ]
    return "\n".join([PRELUDE, *bodies])
