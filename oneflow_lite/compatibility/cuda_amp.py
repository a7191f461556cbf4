"""`cuda.amp`: `autocast` and `GradScaler` for CUDA devices, by their older signatures."""

from __future__ import annotations

from typing import Any

from oneflow_lite.amp import (
    GradScaler as _GradScaler,
    autocast as _autocast,
    custom_bwd as custom_bwd,
    custom_fwd as custom_fwd,
)
from oneflow_lite.arrays.dtype import float16


class autocast(_autocast):
    """`amp.autocast` for CUDA devices."""

    def __init__(
        self, enabled: bool = True, dtype: Any = float16, cache_enabled: bool = True
    ) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(_GradScaler):
    """`amp.GradScaler` for CUDA devices."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
