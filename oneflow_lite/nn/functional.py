"""Functions without state under the names of `torch.nn.functional`: the functors themselves."""

from oneflow_lite.ops.exposure import expose as _expose

_expose(globals())
