"""The autograd API: `backward`, `grad`, grad modes.

The names are looked up when first used: the core modules of this package stand below Tensor, the
API above it, so importing the API here would be circular.
"""

from oneflow_lite.ops.exposure import expose as _expose

_expose(globals())
