"""Data sets, samplers, and the loader that makes batches of them."""

from oneflow_lite.exposure import old_names as _old_names
from oneflow_lite.utils.data.collate import default_collate
from oneflow_lite.utils.data.dataloader import DataLoader
from oneflow_lite.utils.data.dataset import (
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)
from oneflow_lite.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
)

__getattr__ = _old_names(__name__)

__all__ = [
    "BatchSampler",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "default_collate",
    "random_split",
]
