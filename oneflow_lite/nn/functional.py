"""Functions without state under the names of `torch.nn.functional`: the functors themselves."""

from oneflow_lite.functors.activation import (
    celu,
    elu,
    gelu,
    glu,
    logsigmoid,
    mish,
    selu,
    silu,
    softplus,
    softsign,
    tanhshrink,
)
from oneflow_lite.functors.activation_piecewise import (
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    relu,
    relu6,
    softshrink,
    threshold,
)
from oneflow_lite.functors.embedding import embedding, one_hot
from oneflow_lite.functors.matmul import linear
from oneflow_lite.functors.padding import pad
from oneflow_lite.functors.softmax import log_softmax, softmax, softmin
from oneflow_lite.functors.transcendental import sigmoid, tanh

__all__ = []

from oneflow_lite.registry import FUNCTORS


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return FUNCTORS.get(name)
