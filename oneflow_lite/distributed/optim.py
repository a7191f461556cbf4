"""Optimizers on several processes, under PyTorch's name `distributed.optim`."""

from oneflow_lite.ops.exposure import expose as _expose

_expose(globals())  # they stand above this package
