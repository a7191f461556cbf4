"""Data loading, and checkpoints that trade memory for a second run."""

from oneflow_lite.ops.exposure import old_names as _old_names
from oneflow_lite.utils import checkpoint, data

__getattr__ = _old_names(__name__)

__all__ = ["checkpoint", "data"]
