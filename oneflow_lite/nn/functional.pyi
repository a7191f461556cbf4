"""Signatures, written by `python -m tests.stubs --write` from the declarations; not by hand."""

from collections.abc import Callable, Sequence
from oneflow_lite.tensors.tensor import Tensor
from typing import Any

def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor: ...
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor: ...
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor: ...
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = ...) -> Any: ...
def adaptive_max_pool1d_with_indices(
    input: Tensor,
    output_size: Any,
    return_indices: bool = ...,
) -> Any: ...
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = ...) -> Any: ...
def adaptive_max_pool2d_with_indices(
    input: Tensor,
    output_size: Any,
    return_indices: bool = ...,
) -> Any: ...
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = ...) -> Any: ...
def adaptive_max_pool3d_with_indices(
    input: Tensor,
    output_size: Any,
    return_indices: bool = ...,
) -> Any: ...
def affine_grid(
    theta: Tensor,
    size: Sequence[int],
    align_corners: bool | None = ...,
) -> Tensor: ...
def alpha_dropout(
    input: Tensor,
    p: float = ...,
    training: bool = ...,
    inplace: bool = ...,
) -> Tensor: ...
def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    ceil_mode: bool = ...,
    count_include_pad: bool = ...,
) -> Tensor: ...
def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    ceil_mode: bool = ...,
    count_include_pad: bool = ...,
    divisor_override: int | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    ceil_mode: bool = ...,
    count_include_pad: bool = ...,
    divisor_override: int | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = ...,
    bias: Tensor | None = ...,
    training: bool = ...,
    momentum: float = ...,
    eps: float = ...,
) -> Tensor: ...
def bilinear(
    input1: Tensor,
    input2: Tensor,
    weight: Tensor,
    bias: Tensor | None = ...,
) -> Tensor: ...
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = ...,
    size_average: Any = ...,
    reduce: Any = ...,
    reduction: str = ...,
) -> Tensor: ...
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = ...,
    size_average: Any = ...,
    reduce: Any = ...,
    reduction: str = ...,
    pos_weight: Tensor | None = ...,
) -> Tensor: ...
def celu(input: Tensor, alpha: float = ..., inplace: bool = ...) -> Tensor: ...
def celu_(input: Tensor, alpha: float = ...) -> Tensor: ...
def channel_shuffle(input: Tensor, groups: int) -> Tensor: ...
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = ...,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    groups: int = ...,
) -> Tensor: ...
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = ...,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    groups: int = ...,
) -> Tensor: ...
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = ...,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    groups: int = ...,
) -> Tensor: ...
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = ...) -> Tensor: ...
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = ...,
    stride: Any = ...,
    padding: Any = ...,
    output_padding: Any = ...,
    groups: int = ...,
    dilation: Any = ...,
) -> Tensor: ...
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = ...,
    stride: Any = ...,
    padding: Any = ...,
    output_padding: Any = ...,
    groups: int = ...,
    dilation: Any = ...,
) -> Tensor: ...
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = ...,
    stride: Any = ...,
    padding: Any = ...,
    output_padding: Any = ...,
    groups: int = ...,
    dilation: Any = ...,
) -> Tensor: ...
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = ...,
    size_average: Any = ...,
    reduce: Any = ...,
    reduction: str = ...,
) -> Tensor: ...
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = ..., eps: float = ...) -> Tensor: ...
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = ...,
    size_average: Any = ...,
    ignore_index: int = ...,
    reduce: Any = ...,
    reduction: str = ...,
    label_smoothing: float = ...,
) -> Tensor: ...
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = ...,
    reduction: str = ...,
    zero_infinity: bool = ...,
) -> Tensor: ...
def dropout(
    input: Tensor,
    p: float = ...,
    training: bool = ...,
    inplace: bool = ...,
) -> Tensor: ...
def dropout1d(
    input: Tensor,
    p: float = ...,
    training: bool = ...,
    inplace: bool = ...,
) -> Tensor: ...
def dropout2d(
    input: Tensor,
    p: float = ...,
    training: bool = ...,
    inplace: bool = ...,
) -> Tensor: ...
def dropout3d(
    input: Tensor,
    p: float = ...,
    training: bool = ...,
    inplace: bool = ...,
) -> Tensor: ...
def elu(input: Tensor, alpha: float = ..., inplace: bool = ...) -> Tensor: ...
def elu_(input: Tensor, alpha: float = ...) -> Tensor: ...
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = ...,
    max_norm: float | None = ...,
    norm_type: float = ...,
    scale_grad_by_freq: bool = ...,
    sparse: bool = ...,
) -> Tensor: ...
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = ...,
    max_norm: float | None = ...,
    norm_type: float = ...,
    scale_grad_by_freq: bool = ...,
    mode: str = ...,
    sparse: bool = ...,
    per_sample_weights: Tensor | None = ...,
    include_last_offset: bool = ...,
    padding_idx: int | None = ...,
) -> Tensor: ...
def feature_alpha_dropout(
    input: Tensor,
    p: float = ...,
    training: bool = ...,
    inplace: bool = ...,
) -> Tensor: ...
def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = ...,
    padding: Any = ...,
    stride: Any = ...,
) -> Tensor: ...
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = ...,
    output_ratio: Any = ...,
    return_indices: bool = ...,
    _random_samples: Tensor | None = ...,
) -> Any: ...
def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = ...,
    output_ratio: Any = ...,
    return_indices: bool = ...,
    _random_samples: Tensor | None = ...,
) -> Any: ...
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = ...,
    output_ratio: Any = ...,
    return_indices: bool = ...,
    _random_samples: Tensor | None = ...,
) -> Any: ...
def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = ...,
    output_ratio: Any = ...,
    return_indices: bool = ...,
    _random_samples: Tensor | None = ...,
) -> Any: ...
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: bool = ...,
    eps: float = ...,
    reduction: str = ...,
) -> Tensor: ...
def gelu(input: Tensor, approximate: str = ..., *, out: Any = ...) -> Tensor: ...
def glu(input: Tensor, dim: int = ...) -> Tensor: ...
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = ...,
    padding_mode: str = ...,
    align_corners: bool | None = ...,
) -> Tensor: ...
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = ...,
    bias: Tensor | None = ...,
    eps: float = ...,
) -> Tensor: ...
def gumbel_softmax(
    logits: Tensor,
    tau: float = ...,
    hard: bool = ...,
    eps: float = ...,
    dim: int = ...,
) -> Tensor: ...
def hardshrink(input: Tensor, lambd: float = ..., *, out: Any = ...) -> Tensor: ...
def hardsigmoid(input: Tensor, inplace: bool = ...) -> Tensor: ...
def hardswish(input: Tensor, inplace: bool = ...) -> Tensor: ...
def hardtanh(
    input: Tensor,
    min_val: float = ...,
    max_val: float = ...,
    inplace: bool = ...,
) -> Tensor: ...
def hardtanh_(input: Tensor, min_val: float = ..., max_val: float = ...) -> Tensor: ...
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = ...,
    size_average: Any = ...,
    reduce: Any = ...,
    reduction: str = ...,
) -> Tensor: ...
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = ...,
    delta: float = ...,
    weight: Tensor | None = ...,
) -> Tensor: ...
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = ...,
    running_var: Tensor | None = ...,
    weight: Tensor | None = ...,
    bias: Tensor | None = ...,
    use_input_stats: bool = ...,
    momentum: float = ...,
    eps: float = ...,
) -> Tensor: ...
def interpolate(
    input: Tensor,
    size: Any = ...,
    scale_factor: Any = ...,
    mode: str = ...,
    align_corners: bool | None = ...,
    recompute_scale_factor: bool | None = ...,
    antialias: bool = ...,
) -> Tensor: ...
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = ...,
    reduce: Any = ...,
    reduction: str = ...,
    log_target: bool = ...,
) -> Tensor: ...
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = ...,
    reduce: Any = ...,
    reduction: str = ...,
    weight: Tensor | None = ...,
) -> Tensor: ...
def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = ...,
    bias: Tensor | None = ...,
    eps: float = ...,
) -> Tensor: ...
def leaky_relu(input: Tensor, negative_slope: float = ..., inplace: bool = ...) -> Tensor: ...
def leaky_relu_(input: Tensor, negative_slope: float = ...) -> Tensor: ...
def linear(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = ...,
    weight: Tensor | None = ...,
    reduction: str = ...,
    ignore_index: int | None = ...,
    label_smoothing: float = ...,
    options: Any = ...,
) -> Tensor: ...
def local_response_norm(
    input: Tensor,
    size: int,
    alpha: float = ...,
    beta: float = ...,
    k: float = ...,
) -> Tensor: ...
def log_softmax(
    input: Tensor,
    dim: int | None = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def logsigmoid(input: Tensor, *, out: Any = ...) -> Tensor: ...
def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: Any = ...,
    ceil_mode: bool = ...,
) -> Tensor: ...
def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: Any = ...,
    ceil_mode: bool = ...,
) -> Tensor: ...
def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: Any = ...,
    ceil_mode: bool = ...,
) -> Tensor: ...
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = ...,
    size_average: Any = ...,
    reduce: Any = ...,
    reduction: str = ...,
) -> Tensor: ...
def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: bool = ...,
    return_indices: bool = ...,
) -> Any: ...
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: bool = ...,
    return_indices: bool = ...,
) -> Any: ...
def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: bool = ...,
    return_indices: bool = ...,
) -> Any: ...
def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: bool = ...,
    return_indices: bool = ...,
) -> Any: ...
def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: bool = ...,
    return_indices: bool = ...,
) -> Any: ...
def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: bool = ...,
    return_indices: bool = ...,
) -> Any: ...
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    output_size: Any = ...,
) -> Tensor: ...
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    output_size: Any = ...,
) -> Tensor: ...
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    output_size: Any = ...,
) -> Tensor: ...
def mish(input: Tensor, inplace: bool = ...) -> Tensor: ...
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = ...,
    reduce: Any = ...,
    reduction: str = ...,
    weight: Tensor | None = ...,
) -> Tensor: ...
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = ...,
    key_padding_mask: Tensor | None = ...,
    need_weights: bool = ...,
    attn_mask: Tensor | None = ...,
    use_separate_proj_weight: bool = ...,
    q_proj_weight: Tensor | None = ...,
    k_proj_weight: Tensor | None = ...,
    v_proj_weight: Tensor | None = ...,
    static_k: Tensor | None = ...,
    static_v: Tensor | None = ...,
    average_attn_weights: bool = ...,
    is_causal: bool = ...,
) -> tuple[Tensor, Tensor | None]: ...
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = ...,
    margin: float = ...,
    weight: Tensor | None = ...,
    size_average: Any = ...,
    reduce: Any = ...,
    reduction: str = ...,
) -> Tensor: ...
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = ...,
    reduce: Any = ...,
    reduction: str = ...,
) -> Tensor: ...
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = ...,
    size_average: Any = ...,
    reduce: Any = ...,
    reduction: str = ...,
) -> Tensor: ...
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = ...,
    size_average: Any = ...,
    ignore_index: int = ...,
    reduce: Any = ...,
    reduction: str = ...,
) -> Tensor: ...
def normalize(
    input: Tensor,
    p: float = ...,
    dim: Any = ...,
    eps: float = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def one_hot(tensor: Tensor, num_classes: int = ...) -> Tensor: ...
def pad(
    input: Tensor,
    pad: Sequence[int],
    mode: str = ...,
    value: float | None = ...,
) -> Tensor: ...
def pairwise_distance(
    x1: Tensor,
    x2: Tensor,
    p: float = ...,
    eps: float = ...,
    keepdim: bool = ...,
) -> Tensor: ...
def pdist(input: Tensor, p: float = ...) -> Tensor: ...
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor: ...
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor: ...
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = ...,
    full: bool = ...,
    size_average: Any = ...,
    eps: float = ...,
    reduce: Any = ...,
    reduction: str = ...,
) -> Tensor: ...
def prelu(input: Tensor, weight: Tensor) -> Tensor: ...
def relu(input: Tensor, inplace: bool = ...) -> Tensor: ...
def relu6(input: Tensor, inplace: bool = ...) -> Tensor: ...
def relu_(input: Tensor) -> Tensor: ...
def rms_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = ...,
    eps: float | None = ...,
) -> Tensor: ...
def rrelu(
    input: Tensor,
    lower: float = ...,
    upper: float = ...,
    training: bool = ...,
    inplace: bool = ...,
) -> Tensor: ...
def rrelu_(
    input: Tensor,
    lower: float = ...,
    upper: float = ...,
    training: bool = ...,
) -> Tensor: ...
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = ...,
    dropout_p: float = ...,
    is_causal: bool = ...,
    scale: float | None = ...,
    enable_gqa: bool = ...,
) -> Tensor: ...
def selu(input: Tensor, inplace: bool = ...) -> Tensor: ...
def selu_(input: Tensor) -> Tensor: ...
def sigmoid(input: Tensor, *, out: Any = ...) -> Tensor: ...
def silu(input: Tensor, inplace: bool = ...) -> Tensor: ...
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = ...,
    reduce: Any = ...,
    reduction: str = ...,
    beta: float = ...,
) -> Tensor: ...
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = ...,
    reduce: Any = ...,
    reduction: str = ...,
) -> Tensor: ...
def softmax(
    input: Tensor,
    dim: int | None = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def softmin(input: Tensor, dim: int | None = ..., dtype: Any = ...) -> Tensor: ...
def softplus(
    input: Tensor,
    beta: float = ...,
    threshold: float = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def softshrink(input: Tensor, lambd: float = ..., *, out: Any = ...) -> Tensor: ...
def softsign(input: Tensor) -> Tensor: ...
def tanh(input: Tensor, *, out: Any = ...) -> Tensor: ...
def tanhshrink(input: Tensor) -> Tensor: ...
def threshold(
    input: Tensor,
    threshold: float,
    value: float,
    inplace: bool = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor: ...
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = ...,
    p: float = ...,
    eps: float = ...,
    swap: bool = ...,
    size_average: Any = ...,
    reduce: Any = ...,
    reduction: str = ...,
) -> Tensor: ...
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[..., Any] | None = ...,
    margin: float = ...,
    swap: bool = ...,
    reduction: str = ...,
) -> Tensor: ...
def unfold(
    input: Tensor,
    kernel_size: Any,
    dilation: Any = ...,
    padding: Any = ...,
    stride: Any = ...,
) -> Tensor: ...
def upsample(
    input: Tensor,
    size: Any = ...,
    scale_factor: Any = ...,
    mode: str = ...,
    align_corners: bool | None = ...,
    recompute_scale_factor: bool | None = ...,
    antialias: bool = ...,
) -> Tensor: ...
def upsample_bilinear(input: Tensor, size: Any = ..., scale_factor: Any = ...) -> Tensor: ...
def upsample_nearest(input: Tensor, size: Any = ..., scale_factor: Any = ...) -> Tensor: ...
