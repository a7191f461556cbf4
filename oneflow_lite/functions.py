"""The functions of `flow` by themselves: for modules that `oneflow_lite` itself names."""

from oneflow_lite.ops.exposure import expose as _expose

_expose(globals())
