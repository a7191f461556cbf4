"""The layers, by family."""

from oneflow_lite.exposure import old_names as _old_names
from oneflow_lite.nn.modules.activation import (
    CELU,
    ELU,
    GELU,
    SELU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Softsign,
    Tanh,
    Tanhshrink,
)
from oneflow_lite.nn.modules.activation_piecewise import (
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    ReLU,
    ReLU6,
)
from oneflow_lite.nn.modules.conv import Conv1d, Conv2d
from oneflow_lite.nn.modules.dropout import Dropout
from oneflow_lite.nn.modules.embedding import Embedding
from oneflow_lite.nn.modules.flatten import Flatten, Identity, Unflatten
from oneflow_lite.nn.modules.linear import Linear
from oneflow_lite.nn.modules.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CosineSimilarity,
    CrossEntropyLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from oneflow_lite.nn.modules.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    GroupNorm,
    LayerNorm,
    RMSNorm,
)
from oneflow_lite.nn.modules.pooling import (
    AdaptiveAvgPool2d,
    AvgPool1d,
    AvgPool2d,
    MaxPool1d,
    MaxPool2d,
)

__getattr__ = _old_names(__name__)

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "SELU",
    "AdaptiveAvgPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv1d",
    "Conv2d",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "HuberLoss",
    "Identity",
    "KLDivLoss",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "MaxPool1d",
    "MaxPool2d",
    "Mish",
    "NLLLoss",
    "RMSNorm",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "Softmax",
    "Softplus",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Unflatten",
]
