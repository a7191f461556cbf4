"""Checkpoints of several processes (`files/sharded_files.py`), under PyTorch's name."""

from oneflow_lite.ops.exposure import old_names as _old_names

__getattr__ = _old_names(__name__)  # they stand above this package
