"""Communication hooks for `DistributedDataParallel.register_comm_hook`."""

from oneflow_lite.distributed.algorithms.ddp_comm_hooks import default_hooks as default_hooks
