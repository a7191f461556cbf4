"""Data loading."""

from oneflow_lite.utils import data

__all__ = ["data"]
