"""Reductions under a mask, under the names of `torch.masked`: the functors themselves."""

from oneflow_lite.functors.declare import exposed

globals().update(exposed("masked"))
