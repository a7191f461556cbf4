"""Modules that train on several processes."""

from oneflow_lite.nn.parallel.clipping import clip_grad_norm_
from oneflow_lite.nn.parallel.distributed import DistributedDataParallel
from oneflow_lite.ops.exposure import old_names as _old_names

__getattr__ = _old_names(__name__)

__all__ = ["DistributedDataParallel", "clip_grad_norm_"]
