"""Dtype promotion for functors with several operands."""

from oneflow_lite.interpreter import promote

__all__ = ["promote"]
