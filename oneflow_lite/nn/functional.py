"""Functions without state under the names of `torch.nn.functional`: the functors themselves."""

from oneflow_lite.functors.activation import (
    celu as celu,
    elu as elu,
    gelu as gelu,
    glu as glu,
    logsigmoid as logsigmoid,
    mish as mish,
    selu as selu,
    silu as silu,
    softplus as softplus,
    softsign as softsign,
    tanhshrink as tanhshrink,
)
from oneflow_lite.functors.activation_piecewise import (
    hardshrink as hardshrink,
    hardsigmoid as hardsigmoid,
    hardswish as hardswish,
    hardtanh as hardtanh,
    leaky_relu as leaky_relu,
    relu as relu,
    relu6 as relu6,
    softshrink as softshrink,
    threshold as threshold,
)
from oneflow_lite.functors.adaptive_pooling import (
    adaptive_avg_pool1d as adaptive_avg_pool1d,
    adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_max_pool1d as adaptive_max_pool1d,
    adaptive_max_pool2d as adaptive_max_pool2d,
)
from oneflow_lite.functors.conv import (
    conv1d as conv1d,
    conv2d as conv2d,
)
from oneflow_lite.functors.declare import exposed
from oneflow_lite.functors.dropout import (
    dropout as dropout,
)
from oneflow_lite.functors.embedding import (
    embedding as embedding,
    one_hot as one_hot,
)
from oneflow_lite.functors.loss import (
    huber_loss as huber_loss,
    kl_div as kl_div,
    l1_loss as l1_loss,
    mse_loss as mse_loss,
    smooth_l1_loss as smooth_l1_loss,
)
from oneflow_lite.functors.loss_classification import (
    binary_cross_entropy as binary_cross_entropy,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    cross_entropy as cross_entropy,
    nll_loss as nll_loss,
)
from oneflow_lite.functors.loss_ranking import (
    cosine_embedding_loss as cosine_embedding_loss,
    gaussian_nll_loss as gaussian_nll_loss,
    hinge_embedding_loss as hinge_embedding_loss,
    margin_ranking_loss as margin_ranking_loss,
    poisson_nll_loss as poisson_nll_loss,
)
from oneflow_lite.functors.matmul import (
    linear as linear,
)
from oneflow_lite.functors.normalization import (
    batch_norm as batch_norm,
    group_norm as group_norm,
    instance_norm as instance_norm,
    layer_norm as layer_norm,
    rms_norm as rms_norm,
)
from oneflow_lite.functors.padding import (
    pad as pad,
)
from oneflow_lite.functors.pooling import (
    avg_pool1d as avg_pool1d,
    avg_pool2d as avg_pool2d,
    max_pool1d as max_pool1d,
    max_pool2d as max_pool2d,
)
from oneflow_lite.functors.similarity import (
    cosine_similarity as cosine_similarity,
    normalize as normalize,
)
from oneflow_lite.functors.softmax import (
    log_softmax as log_softmax,
    softmax as softmax,
    softmin as softmin,
)
from oneflow_lite.functors.transcendental import (
    sigmoid as sigmoid,
    tanh as tanh,
)

globals().update(exposed("functional"))
