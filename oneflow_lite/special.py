"""Special functions under the names of `torch.special`: the functors themselves."""

from oneflow_lite.exposure import namespace

__getattr__, __dir__ = namespace("special", globals())
