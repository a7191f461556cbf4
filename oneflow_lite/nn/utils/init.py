"""A module without drawn parameters, to be filled at once, from a file for example."""

from __future__ import annotations

import inspect
from typing import Any

from oneflow_lite.arrays.device import as_device
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.nn.module import Module


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Return `module_cls(*args, **kwargs)` without the time that its initialisation would take.

    Parameters and buffers hold any values: the module is made on the device "meta", and moved.

    Raises
    ------
    ArgumentError
        When the class is no module, or takes no `device`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.utils.skip_init(flow.nn.Linear, 2, 3)
    Linear(in_features=2, out_features=3, bias=True)
    """
    is_module = isinstance(module_cls, type) and issubclass(module_cls, Module)
    if not is_module or "device" not in inspect.signature(module_cls).parameters:
        raise arg_error(
            "skip_init",
            "module_cls",
            expected="an nn.Module class that takes a device",
            got=getattr(module_cls, "__name__", module_cls),
            hint="give its __init__ the argument device, and pass it on to its layers",
            kind=ArgumentError,
        )
    device = kwargs.pop("device", None)
    return module_cls(*args, device="meta", **kwargs).to_empty(device=as_device(device))


guard_all(globals())
