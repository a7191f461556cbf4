"""Data loading, and checkpoints that trade memory for a second run.

It imports `nn`, `distributed`, `autograd`, functors and the rooms below. Nothing below
`compatibility` imports it.
"""

from oneflow_lite.ops.exposure import expose as _expose
from oneflow_lite.utils import checkpoint, data

_expose(globals())

__all__ = ["checkpoint", "data"]
