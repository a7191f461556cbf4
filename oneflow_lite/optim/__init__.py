"""Optimizers and learning rate schedulers."""

from oneflow_lite.exposure import old_names as _old_names
from oneflow_lite.optim import lr_scheduler
from oneflow_lite.optim.adam import Adam, AdamW
from oneflow_lite.optim.optimizer import Optimizer
from oneflow_lite.optim.sgd import SGD

__getattr__ = _old_names(__name__)

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "lr_scheduler"]
