"""What trains on several ranks in other ways, under PyTorch's name."""

from oneflow_lite.distributed.algorithms import ddp_comm_hooks as ddp_comm_hooks
from oneflow_lite.distributed.algorithms.join import (
    Join as Join,
    Joinable as Joinable,
    JoinHook as JoinHook,
)
