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
from oneflow_lite.functors.adaptive_pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
)
from oneflow_lite.functors.conv import conv1d, conv2d
from oneflow_lite.functors.dropout import dropout
from oneflow_lite.functors.embedding import embedding, one_hot
from oneflow_lite.functors.loss import huber_loss, kl_div, l1_loss, mse_loss, smooth_l1_loss
from oneflow_lite.functors.loss_classification import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    nll_loss,
)
from oneflow_lite.functors.matmul import linear
from oneflow_lite.functors.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)
from oneflow_lite.functors.padding import pad
from oneflow_lite.functors.pooling import avg_pool1d, avg_pool2d, max_pool1d, max_pool2d
from oneflow_lite.functors.similarity import cosine_similarity, normalize
from oneflow_lite.functors.softmax import log_softmax, softmax, softmin
from oneflow_lite.functors.transcendental import sigmoid, tanh

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "conv1d",
    "conv2d",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "elu",
    "embedding",
    "gelu",
    "glu",
    "group_norm",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "huber_loss",
    "instance_norm",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "max_pool1d",
    "max_pool2d",
    "mish",
    "mse_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "relu",
    "relu6",
    "rms_norm",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
]
