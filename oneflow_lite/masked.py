"""Reductions under a mask, under the names of `torch.masked`: the functors themselves."""

from oneflow_lite.exposure import namespace

__getattr__, __dir__ = namespace("masked", globals())
