"""Functions without state under the names of `torch.nn.functional`: the functors themselves."""

from oneflow_lite.ops.exposure import namespace as _namespace

__getattr__, __dir__ = _namespace("functional", globals())
