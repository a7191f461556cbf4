"""Other ways to train on several ranks, under PyTorch's name."""

from oneflow_lite.distributed.algorithms import ddp_comm_hooks as ddp_comm_hooks
from oneflow_lite.distributed.algorithms.join import (
    Join as Join,
    Joinable as Joinable,
    JoinHook as JoinHook,
)
from oneflow_lite.ops.exposure import expose as _expose

_expose(globals())
