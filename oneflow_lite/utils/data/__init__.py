"""Data sets, samplers, and the loader that makes batches of them, here or in worker processes.

PyTorch's data pipes are left out: PyTorch itself has ended their development, and no loader needs
them.
"""

from oneflow_lite.ops.exposure import expose as _expose
from oneflow_lite.utils.data import _utils as _utils
from oneflow_lite.utils.data.dataloader import (
    DataLoader,
    _DatasetKind as _DatasetKind,
    default_collate,
    default_convert,
    get_worker_info,
)
from oneflow_lite.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from oneflow_lite.utils.data.distributed import DistributedSampler
from oneflow_lite.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

_expose(globals())

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]
