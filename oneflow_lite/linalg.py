"""Linear algebra under the names of `torch.linalg`: the functors themselves."""

from oneflow_lite.errors import LinAlgError as LinAlgError
from oneflow_lite.ops.exposure import expose as _expose

_expose(globals())
