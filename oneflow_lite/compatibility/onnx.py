"""`onnx`: there is no export to ONNX; scripts that import it and do not ask for one run."""

from __future__ import annotations

from typing import Any

from oneflow_lite.compatibility import find


def is_in_onnx_export() -> bool:
    """Return False."""
    return False


def __getattr__(name: str) -> Any:
    return find(__name__.replace("compatibility.", ""), name)
