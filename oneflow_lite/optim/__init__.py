"""Optimizers and learning rate schedulers."""

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
