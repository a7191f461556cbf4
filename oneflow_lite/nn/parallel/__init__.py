"""Modules that train on several processes."""

from oneflow_lite.nn.parallel.clipping import clip_grad_norm_
from oneflow_lite.nn.parallel.distributed import DistributedDataParallel
from oneflow_lite.ops.exposure import expose as _expose

_expose(globals())

__all__ = ["DistributedDataParallel", "clip_grad_norm_"]
