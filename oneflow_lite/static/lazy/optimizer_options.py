"""OptimizerOptions: brings learning rates and the like up to date in a scope before each run."""

from __future__ import annotations

import numpy as np

from oneflow_lite.errors import ArgumentError
from oneflow_lite.optim.optimizer import Optimizer
from oneflow_lite.static.ir.scope import Scope
from oneflow_lite.static.lazy.persistables import Persistables
from oneflow_lite.tensors.tensor import Tensor


class OptimizerOptions:
    """The options of an optimizer as persistable variables, which a Program reads.

    An Executor calls it with the scope before each run of the Program, so that
    `optimizer.param_groups[0]["lr"] = 0.01` takes effect without capturing again.
    """

    def __init__(self, optimizer: Optimizer, persistables: Persistables) -> None:
        self.optimizer = optimizer
        kind = type(optimizer).__name__.lower()
        self.names = [
            None if tensor is None else persistables.keep(tensor, f"{kind}_option_{i}").name
            for i, tensor in enumerate(optimizer.option_tensors())
        ]
        for param, kept in optimizer.state.items():
            known = persistables.find(param)
            name = param.name if known is None else known.name
            for key, value in kept.items():
                if isinstance(value, Tensor):
                    persistables.keep(value, f"{name}_{key}")

    def __call__(self, scope: Scope) -> None:
        """Write the current options into a scope."""
        self.optimizer.refresh_options()
        # Groups that take their first step elsewhere come after the others.
        tensors = self.optimizer.option_tensors()[: len(self.names)]
        if [tensor is None for tensor in tensors] != [name is None for name in self.names]:
            raise ArgumentError(
                f"an option of {type(self.optimizer).__name__} was switched on or off after the "
                "Program was captured, such as momentum set from 0; capture the Program again"
            )
        for name, tensor in zip(self.names, tensors, strict=True):
            if name is None or tensor is None:
                continue
            known = scope.find_var(name)
            if known is None:
                scope.set(name, tensor)
            elif isinstance(tensor._data, np.ndarray):
                known.fill(tensor._data.item())
            else:
                known[...] = tensor._data
