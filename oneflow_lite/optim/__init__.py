"""Optimizers and learning rate schedulers.

Each update is an op (`kernels/optim.py`), so a training step can be captured.
It imports `nn`, `files` (for sharded state), `distributed` and the rooms below. Capture of Programs
and `flow.compile` know the state of optimizers.
"""

from oneflow_lite.ops.exposure import attach_methods as _attach_methods, expose as _expose
from oneflow_lite.optim import lr_scheduler, swa_utils
from oneflow_lite.optim.adagrad import Adadelta, Adagrad, RMSprop
from oneflow_lite.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from oneflow_lite.optim.lbfgs import LBFGS
from oneflow_lite.optim.muon import Adafactor, Muon
from oneflow_lite.optim.optimizer import Optimizer
from oneflow_lite.optim.sgd import ASGD, SGD, Rprop

_expose(globals())
_attach_methods(Optimizer)

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
    "swa_utils",
]
