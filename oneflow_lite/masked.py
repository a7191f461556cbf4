"""Reductions under a mask, under the names of `torch.masked`: the functors themselves."""

from oneflow_lite.ops.exposure import expose as _expose

_expose(globals())
