"""`backends`: switches that can be set and read; the switches of cuDNN have an effect."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from oneflow_lite.compatibility.inert import context, no, none
from oneflow_lite.ops import cudnn as library


class Backend(ModuleType):
    """A backend: a module of switches."""

    def __init__(self, name: str, available: bool = False, **switches: Any) -> None:
        super().__init__(f"{__name__}.{name}", f"Switches of {name}.")
        self.__dict__.update(
            switches, is_available=lambda: available, is_built=lambda: available, __path__=[]
        )

    @contextlib.contextmanager
    def flags(self, *args: Any, **switches: Any) -> Iterator[None]:
        """Set switches for a `with` block."""
        before = {name: getattr(self, name, None) for name in switches}
        self.__dict__.update(switches)
        try:
            yield
        finally:
            self.__dict__.update(before)


def _precision(name: str, **switches: Any) -> Backend:
    return Backend(name, allow_tf32=False, fp32_precision="none", **switches)


cudnn = Backend(
    "cudnn",
    allow_tf32=True,
    benchmark=False,
    benchmark_limit=10,
    deterministic=False,
    enabled=True,
    fp32_precision="none",
    version=library.version,
    is_acceptable=library.is_acceptable,
    conv=_precision("cudnn.conv"),
    rnn=_precision("cudnn.rnn"),
)
vars(cudnn)["is_available"] = library.is_available
library.use_switches(cudnn)
cuda = Backend(
    "cuda",
    matmul=_precision(
        "cuda.matmul",
        allow_bf16_reduced_precision_reduction=True,
        allow_fp16_reduced_precision_reduction=True,
        allow_fp16_accumulation=False,
    ),
    can_use_flash_attention=no,
    sdp_kernel=context,
    flash_sdp_enabled=no,
    mem_efficient_sdp_enabled=no,
    math_sdp_enabled=lambda: True,
    enable_flash_sdp=none,
    enable_mem_efficient_sdp=none,
    enable_math_sdp=none,
    preferred_linalg_library=lambda backend=None: "default",
)


def _cpu_capability() -> str:
    """Return PyTorch's word for the widest vectors that NumPy computes with here."""
    has = importlib.import_module("numpy._core._multiarray_umath").__cpu_features__
    return "AVX512" if has.get("AVX512_SKX") else "AVX2" if has.get("AVX2") else "NO AVX"


cpu = Backend("cpu", True, get_cpu_capability=_cpu_capability)
mps = Backend("mps", is_macos_or_newer=lambda major, minor: False)
mkl = Backend("mkl")
mkldnn = Backend("mkldnn", enabled=False, deterministic=False, allow_tf32=True)
openmp = Backend("openmp")
opt_einsum = Backend("opt_einsum", enabled=False, strategy=None, set_flags=none)
mha = Backend("mha", get_fastpath_enabled=no, set_fastpath_enabled=none)
xeon = Backend("xeon")
quantized = Backend("quantized", engine="none", supported_engines=["none"])
xnnpack = Backend("xnnpack", enabled=False)
settings = Backend("settings")  # of compilers that are not here: what is set can be read again
