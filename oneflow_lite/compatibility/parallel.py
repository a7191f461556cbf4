"""`nn.DataParallel`: a module on one device, with the keys of a parallel module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite.arrays.device import DeviceLike
from oneflow_lite.nn.module import Module


class DataParallel(Module):
    """Run a module as it is, on one device; its keys in `state_dict()` begin with `module.`.

    `device_ids`, `output_device` and `dim` are taken and not used.

    >>> import oneflow_lite as flow
    >>> list(flow.nn.DataParallel(flow.nn.Linear(2, 1)).state_dict())
    ['module.weight', 'module.bias']
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[int] | None = None,
        output_device: DeviceLike | None = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        self.dim, self.output_device = dim, None
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[int] | None = None,
    output_device: DeviceLike | None = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call a module, on one device."""
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*given, **(module_kwargs or {}))
