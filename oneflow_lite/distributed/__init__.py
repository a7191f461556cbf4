"""Several processes: groups, collectives, and training on them.

`mpiexec -n 4 python train.py` starts a world of four; a script that was started plainly is a world
of one, for which every function here works as well. docs/distributed.md is the page about it.
It imports functors and the rooms below. `nn.parallel`, sharded files and optimizers, samplers of
`utils.data` and Programs use it.
"""

from typing import Any as _Any

from oneflow_lite.distributed import (
    algorithms as algorithms,
    checkpoint as checkpoint,
    global_tensor as global_tensor,
    nn as nn,
    optim as optim,
)
from oneflow_lite.distributed.boxing import explain as explain
from oneflow_lite.distributed.collectives import (
    P2POp as P2POp,
    all_gather as all_gather,
    all_gather_coalesced as all_gather_coalesced,
    all_gather_into_tensor as all_gather_into_tensor,
    all_reduce as all_reduce,
    all_reduce_coalesced as all_reduce_coalesced,
    all_to_all as all_to_all,
    all_to_all_single as all_to_all_single,
    barrier as barrier,
    batch_isend_irecv as batch_isend_irecv,
    broadcast as broadcast,
    gather as gather,
    irecv as irecv,
    isend as isend,
    monitored_barrier as monitored_barrier,
    recv as recv,
    reduce as reduce,
    reduce_scatter as reduce_scatter,
    reduce_scatter_tensor as reduce_scatter_tensor,
    scatter as scatter,
    send as send,
)
from oneflow_lite.distributed.debug import (
    DebugLevel as DebugLevel,
    get_debug_level as get_debug_level,
    set_debug_level as set_debug_level,
    set_debug_level_from_env as set_debug_level_from_env,
)
from oneflow_lite.distributed.objects import (
    all_gather_object as all_gather_object,
    broadcast_object_list as broadcast_object_list,
    gather_object as gather_object,
    recv_object_list as recv_object_list,
    scatter_object_list as scatter_object_list,
    send_object_list as send_object_list,
)
from oneflow_lite.distributed.placement import placement as placement, sbp as sbp
from oneflow_lite.distributed.process_group import (
    Backend as Backend,
    GroupMember as GroupMember,
    ProcessGroup as ProcessGroup,
    abort_process_group as abort_process_group,
    default_pg_timeout as default_pg_timeout,
    destroy_process_group as destroy_process_group,
    get_backend as get_backend,
    get_backend_config as get_backend_config,
    get_default_backend_for_device as get_default_backend_for_device,
    get_global_rank as get_global_rank,
    get_group_rank as get_group_rank,
    get_node_local_rank as get_node_local_rank,
    get_pg_count as get_pg_count,
    get_process_group_ranks as get_process_group_ranks,
    get_rank as get_rank,
    get_world_size as get_world_size,
    group as group,
    init_process_group as init_process_group,
    is_available as is_available,
    is_backend_available as is_backend_available,
    is_gloo_available as is_gloo_available,
    is_initialized as is_initialized,
    is_launched as is_launched,
    is_mpi_available as is_mpi_available,
    is_nccl_available as is_nccl_available,
    is_torchelastic_launched as is_torchelastic_launched,
    is_ucc_available as is_ucc_available,
    is_xccl_available as is_xccl_available,
    new_group as new_group,
    new_subgroups as new_subgroups,
    new_subgroups_by_enumeration as new_subgroups_by_enumeration,
)
from oneflow_lite.distributed.reduce_op import (
    ReduceOp as ReduceOp,
    supports_complex as supports_complex,
)
from oneflow_lite.distributed.work import Work as Work
from oneflow_lite.errors import DistributedError as DistributedError
from oneflow_lite.ops.exposure import expose as _expose

GradBucket: _Any  # of nn/parallel/reducer.py, which stands above; by ops/homes.py
DistError = DistBackendError = DistNetworkError = DistStoreError = DistributedError
all_gather_single, reduce_scatter_single = all_gather_into_tensor, reduce_scatter_tensor
_expose(globals())
