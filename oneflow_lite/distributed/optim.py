"""Optimizers on several processes, under PyTorch's name `distributed.optim`."""

from oneflow_lite.ops.exposure import old_names as _old_names

__getattr__ = _old_names(__name__)  # they stand above this package
