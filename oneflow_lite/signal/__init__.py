"""Signals: window functions under the names of `torch.signal`. It imports functors."""

from oneflow_lite.ops.exposure import expose as _expose
from oneflow_lite.signal import windows as windows

_expose(globals())
