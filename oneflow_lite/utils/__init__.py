"""Data loading, and checkpoints that trade memory for a second run."""

from oneflow_lite.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
