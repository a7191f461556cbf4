"""The autograd API: `backward`, `grad`, grad modes.

Its rooms stand on three floors: `rules` below the interpreter, `engine` above it, `tools` above the
functors. So a name is loaded when it is first used.
It imports its rooms `rules`, `engine` and `tools`, and the rooms below. `nn`, `utils`, `flow.func`
and `compiler` use it.
"""

from oneflow_lite.ops.exposure import expose as _expose

_expose(globals())
