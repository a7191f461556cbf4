"""Linear algebra under the names of `torch.linalg`: the functors themselves."""

from oneflow_lite.exposure import namespace

__getattr__, __dir__ = namespace("linalg", globals())
