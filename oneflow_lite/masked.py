"""Reductions under a mask, under the names of `torch.masked`: the functors themselves."""

from oneflow_lite.ops.exposure import namespace as _namespace

__getattr__, __dir__ = _namespace("masked", globals())
