"""Activations by name."""

from functools import cache

from oneflow_lite import nn
from oneflow_lite.nn import functional as F

_ACT_LAYER = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU, "swish": nn.SiLU}


class HardMish(nn.Module):
    """The cheap cousin of mish."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def forward(self, x):
        gate = (x + 2).clamp(min=0, max=2)
        return x.mul_(0.5 * gate) if self.inplace else 0.5 * x * gate


_ACT_LAYER["hard_mish"] = HardMish


@cache
def get_act_fn(name):
    """Return the function of an activation."""
    return getattr(F, name)


def get_act_layer(name):
    """Return the class of an activation; a class passes through."""
    return name if isinstance(name, type) else _ACT_LAYER[name.lower()]


def create_act(name, inplace=None, **kwargs):
    """Build an activation, in place where it knows that."""
    layer = get_act_layer(name)
    try:
        return layer(**kwargs) if inplace is None else layer(inplace=inplace, **kwargs)
    except TypeError:
        return layer(**kwargs)
