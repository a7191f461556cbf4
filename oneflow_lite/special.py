"""Special functions under the names of `torch.special`: the functors themselves."""

from oneflow_lite.functors.declare import exposed

globals().update(exposed("special"))
