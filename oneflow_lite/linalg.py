"""Linear algebra under the names of `torch.linalg`: the functors themselves."""

from oneflow_lite.functors.declare import exposed

globals().update(exposed("linalg"))
