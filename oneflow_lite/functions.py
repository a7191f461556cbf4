"""The functions of `flow` by themselves: for modules that `oneflow_lite` itself names."""

from oneflow_lite.ops.exposure import namespace as _namespace

__getattr__, __dir__ = _namespace("flow", globals())
