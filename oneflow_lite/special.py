"""Special functions under the names of `torch.special`: the functors themselves."""

from oneflow_lite.ops.exposure import expose as _expose

_expose(globals())
