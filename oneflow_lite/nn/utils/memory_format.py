"""Weights of convolutions in a chosen order in memory: no value changes."""

from __future__ import annotations

from typing import Any, TypeVar

from oneflow_lite.arrays.memory_format import check_memory_format, memory_format
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.utils.layers import is_one_of

M = TypeVar("M", bound=Module)


def convert_conv2d_weight_memory_format(module: M, memory_format: memory_format) -> M:
    """Lay the weights of 2-d convolutions, here and below, in a memory format; return the module.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> net = flow.nn.Sequential(flow.nn.Conv2d(3, 4, 2))
    >>> net = flow.nn.utils.convert_conv2d_weight_memory_format(net, flow.channels_last)
    >>> net[0].weight.is_contiguous(memory_format=flow.channels_last)
    True
    """
    return _convert("convert_conv2d_weight_memory_format", module, memory_format, 2)


def convert_conv3d_weight_memory_format(module: M, memory_format: memory_format) -> M:
    """Do what `convert_conv2d_weight_memory_format` does, for 3-d convolutions."""
    return _convert("convert_conv3d_weight_memory_format", module, memory_format, 3)


def _convert(op: str, module: M, memory_format: Any, ndim: int) -> M:
    order = check_memory_format(op, memory_format).order or tuple(range(ndim + 2))
    back = [order.index(dim) for dim in range(len(order))]
    for layer in module.modules():
        if is_one_of(layer, f"Conv{ndim}d", f"ConvTranspose{ndim}d"):
            weight: Any = layer.weight
            weight.data = weight.detach().permute(order).contiguous().permute(back).detach()
    return module


guard_all(globals())
