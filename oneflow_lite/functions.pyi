"""Signatures, written by `python -m tests.stubs --write` from the declarations; not by hand."""

from numpy import dtype
from collections.abc import Sequence
from oneflow_lite.functors.arithmetic import Frexp
from oneflow_lite.functors.counting import HistogramResult, HistogramddResult
from oneflow_lite.functors.decompositions import Geqrf, OldSVD, PLU, QRResult
from oneflow_lite.functors.linalg import SLogDet, Triangular
from oneflow_lite.functors.reduce import AminmaxResult, CummaxResult, CumminResult
from oneflow_lite.functors.sorting import KthvalueResult, ModeResult, SortResult, TopkResult
from oneflow_lite.tensors.tensor import Tensor
from typing import Any

def _sample_dirichlet(input: Tensor, generator: Any = ...) -> Tensor: ...
def _standard_gamma(input: Tensor, generator: Any = ...) -> Tensor: ...
def abs(input: Tensor, *, out: Any = ...) -> Tensor: ...
def abs_(input: Tensor) -> Tensor: ...
def absolute(input: Tensor, *, out: Any = ...) -> Tensor: ...
def absolute_(input: Tensor) -> Tensor: ...
def acos(input: Tensor, *, out: Any = ...) -> Tensor: ...
def acos_(input: Tensor) -> Tensor: ...
def acosh(input: Tensor, *, out: Any = ...) -> Tensor: ...
def acosh_(input: Tensor) -> Tensor: ...
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor: ...
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = ...) -> Any: ...
def add(input: Any, other: Any, *, alpha: Any = ..., out: Any = ...) -> Tensor: ...
def addbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: Any = ...,
    alpha: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def addcdiv(
    input: Tensor,
    tensor1: Any,
    tensor2: Any,
    *,
    value: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def addcmul(
    input: Tensor,
    tensor1: Any,
    tensor2: Any,
    *,
    value: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def addmm(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: Any = ...,
    alpha: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def addmv(
    input: Tensor,
    mat: Tensor,
    vec: Tensor,
    *,
    beta: Any = ...,
    alpha: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def addr(
    input: Tensor,
    vec1: Tensor,
    vec2: Tensor,
    *,
    beta: Any = ...,
    alpha: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def adjoint(input: Tensor) -> Tensor: ...
def affine_grid_generator(
    theta: Tensor,
    size: Sequence[int],
    align_corners: bool | None = ...,
) -> Tensor: ...
def alias_copy(input: Tensor, *, out: Any = ...) -> Tensor: ...
def all(
    input: Tensor,
    dim: int | Sequence[int] | None = ...,
    keepdim: bool = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def allclose(
    input: Tensor,
    other: Tensor,
    rtol: float = ...,
    atol: float = ...,
    equal_nan: bool = ...,
) -> bool: ...
def alpha_dropout(
    input: Tensor,
    p: float = ...,
    training: bool = ...,
    inplace: bool = ...,
) -> Tensor: ...
def alpha_dropout_(input: Tensor, p: float = ..., training: bool = ...) -> Tensor: ...
def amax(
    input: Tensor,
    dim: int | Sequence[int] | None = ...,
    keepdim: bool = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def amin(
    input: Tensor,
    dim: int | Sequence[int] | None = ...,
    keepdim: bool = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def aminmax(
    input: Tensor,
    *,
    dim: int | None = ...,
    keepdim: bool = ...,
    out: Any = ...,
) -> AminmaxResult: ...
def angle(input: Tensor, *, out: Any = ...) -> Tensor: ...
def any(
    input: Tensor,
    dim: int | Sequence[int] | None = ...,
    keepdim: bool = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def arange(
    start: Any = ...,
    end: Any = ...,
    step: Any = ...,
    *,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    placement: Any = ...,
    sbp: Any = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def arccos(input: Tensor, *, out: Any = ...) -> Tensor: ...
def arccos_(input: Tensor) -> Tensor: ...
def arccosh(input: Tensor, *, out: Any = ...) -> Tensor: ...
def arccosh_(input: Tensor) -> Tensor: ...
def arcsin(input: Tensor, *, out: Any = ...) -> Tensor: ...
def arcsin_(input: Tensor) -> Tensor: ...
def arcsinh(input: Tensor, *, out: Any = ...) -> Tensor: ...
def arcsinh_(input: Tensor) -> Tensor: ...
def arctan(input: Tensor, *, out: Any = ...) -> Tensor: ...
def arctan2(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def arctan_(input: Tensor) -> Tensor: ...
def arctanh(input: Tensor, *, out: Any = ...) -> Tensor: ...
def arctanh_(input: Tensor) -> Tensor: ...
def argmax(
    input: Tensor,
    dim: int | None = ...,
    keepdim: bool = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def argmin(
    input: Tensor,
    dim: int | None = ...,
    keepdim: bool = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def argsort(
    input: Tensor,
    dim: int = ...,
    descending: bool = ...,
    *,
    stable: bool = ...,
    out: Any = ...,
) -> Tensor: ...
def argwhere(input: Tensor) -> Tensor: ...
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: Any = ...) -> Tensor: ...
def as_strided_(input: Tensor, size: Any, stride: Any, storage_offset: Any = ...) -> Tensor: ...
def as_strided_copy(
    input: Tensor,
    size: Any,
    stride: Any,
    storage_offset: Any = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def as_strided_scatter(
    input: Tensor,
    src: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def asin(input: Tensor, *, out: Any = ...) -> Tensor: ...
def asin_(input: Tensor) -> Tensor: ...
def asinh(input: Tensor, *, out: Any = ...) -> Tensor: ...
def asinh_(input: Tensor) -> Tensor: ...
def atan(input: Tensor, *, out: Any = ...) -> Tensor: ...
def atan2(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def atan_(input: Tensor) -> Tensor: ...
def atanh(input: Tensor, *, out: Any = ...) -> Tensor: ...
def atanh_(input: Tensor) -> Tensor: ...
def atleast_1d(*tensors: Any) -> Any: ...
def atleast_2d(*tensors: Any) -> Any: ...
def atleast_3d(*tensors: Any) -> Any: ...
def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    ceil_mode: bool = ...,
    count_include_pad: bool = ...,
) -> Tensor: ...
def baddbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: Any = ...,
    alpha: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def bartlett_window(
    window_length: int,
    periodic: bool = ...,
    *,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
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
def bernoulli(input: Tensor, *, generator: Any = ..., out: Any = ...) -> Tensor: ...
def bilinear(
    input1: Tensor,
    input2: Tensor,
    weight: Tensor,
    bias: Tensor | None = ...,
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
def bincount(input: Tensor, weights: Tensor | None = ..., minlength: int = ...) -> Tensor: ...
def binomial(count: Tensor, prob: Tensor, generator: Any = ...) -> Tensor: ...
def bitwise_and(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def bitwise_left_shift(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def bitwise_not(input: Tensor, *, out: Any = ...) -> Tensor: ...
def bitwise_or(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def bitwise_right_shift(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def bitwise_xor(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def blackman_window(
    window_length: int,
    periodic: bool = ...,
    *,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
) -> Tensor: ...
def block_diag(*tensors: Any) -> Tensor: ...
def bmm(input: Tensor, mat2: Tensor, *, out: Any = ...) -> Tensor: ...
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]: ...
def broadcast_to(input: Tensor, size: Any) -> Tensor: ...
def bucketize(
    input: Any,
    boundaries: Tensor,
    *,
    out_int32: bool = ...,
    right: bool = ...,
    out: Any = ...,
) -> Tensor: ...
def cartesian_prod(*tensors: Any) -> Tensor: ...
def cat(tensors: Sequence[Tensor], dim: int = ..., *, out: Any = ...) -> Tensor: ...
def cdist(x1: Tensor, x2: Tensor, p: float = ..., compute_mode: str = ...) -> Tensor: ...
def ceil(input: Tensor, *, out: Any = ...) -> Tensor: ...
def ceil_(input: Tensor) -> Tensor: ...
def celu(input: Tensor, alpha: float = ..., inplace: bool = ...) -> Tensor: ...
def celu_(input: Tensor, alpha: float = ...) -> Tensor: ...
def chain_matmul(*matrices: Tensor, out: Any = ...) -> Tensor: ...
def channel_shuffle(input: Tensor, groups: int) -> Tensor: ...
def cholesky(input: Tensor, upper: bool = ..., *, out: Any = ...) -> Tensor: ...
def cholesky_inverse(input: Tensor, upper: bool = ..., *, out: Any = ...) -> Tensor: ...
def cholesky_solve(
    input: Tensor,
    L: Tensor,
    upper: bool = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def chunk(input: Tensor, chunks: int, dim: int = ...) -> tuple[Tensor, ...]: ...
def clamp(input: Tensor, min: Any = ..., max: Any = ..., *, out: Any = ...) -> Tensor: ...
def clamp_(input: Tensor, min: Any = ..., max: Any = ...) -> Tensor: ...
def clamp_max(input: Any, max: Any, *, out: Any = ...) -> Tensor: ...
def clamp_max_(input: Any, max: Any) -> Tensor: ...
def clamp_min(input: Any, min: Any, *, out: Any = ...) -> Tensor: ...
def clamp_min_(input: Any, min: Any) -> Tensor: ...
def clip(input: Tensor, min: Any = ..., max: Any = ..., *, out: Any = ...) -> Tensor: ...
def clip_(input: Tensor, min: Any = ..., max: Any = ...) -> Tensor: ...
def clone(input: Tensor, *, memory_format: Any = ...) -> Tensor: ...
def column_stack(tensors: Sequence[Tensor], *, out: Any = ...) -> Tensor: ...
def combinations(input: Tensor, r: int = ..., with_replacement: bool = ...) -> Tensor: ...
def complex(real: Tensor, imag: Tensor, *, out: Any = ...) -> Tensor: ...
def concat(tensors: Sequence[Tensor], dim: int = ..., *, out: Any = ...) -> Tensor: ...
def concatenate(tensors: Sequence[Tensor], dim: int = ..., *, out: Any = ...) -> Tensor: ...
def conj(input: Tensor) -> Tensor: ...
def conj_physical(input: Tensor, *, out: Any = ...) -> Tensor: ...
def conj_physical_(input: Tensor) -> Tensor: ...
def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = ...) -> Tensor: ...
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
def copysign(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def corrcoef(input: Tensor) -> Tensor: ...
def cos(input: Tensor, *, out: Any = ...) -> Tensor: ...
def cos_(input: Tensor) -> Tensor: ...
def cosh(input: Tensor, *, out: Any = ...) -> Tensor: ...
def cosh_(input: Tensor) -> Tensor: ...
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
def count_nonzero(input: Tensor, dim: int | Sequence[int] | None = ...) -> Tensor: ...
def cov(
    input: Tensor,
    *,
    correction: int = ...,
    fweights: Tensor | None = ...,
    aweights: Tensor | None = ...,
) -> Tensor: ...
def cross(input: Tensor, other: Tensor, dim: int | None = ..., *, out: Any = ...) -> Tensor: ...
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = ...,
    reduction: str = ...,
    zero_infinity: bool = ...,
) -> Tensor: ...
def cummax(input: Tensor, dim: int, *, out: Any = ...) -> CummaxResult: ...
def cummin(input: Tensor, dim: int, *, out: Any = ...) -> CumminResult: ...
def cumprod(input: Tensor, dim: int, *, dtype: Any = ..., out: Any = ...) -> Tensor: ...
def cumsum(input: Tensor, dim: int, *, dtype: Any = ..., out: Any = ...) -> Tensor: ...
def cumulative_trapezoid(
    y: Tensor,
    x: Tensor | None = ...,
    *,
    dx: Any = ...,
    dim: int = ...,
) -> Tensor: ...
def deg2rad(input: Tensor, *, out: Any = ...) -> Tensor: ...
def deg2rad_(input: Tensor) -> Tensor: ...
def det(input: Tensor, *, out: Any = ...) -> Tensor: ...
def detach_copy(input: Tensor, *, out: Any = ...) -> Tensor: ...
def diag(input: Tensor, diagonal: int = ..., *, out: Any = ...) -> Tensor: ...
def diag_embed(
    input: Tensor,
    offset: int = ...,
    dim1: int = ...,
    dim2: int = ...,
) -> Tensor: ...
def diagflat(input: Tensor, offset: int = ...) -> Tensor: ...
def diagonal(input: Tensor, offset: int = ..., dim1: int = ..., dim2: int = ...) -> Tensor: ...
def diagonal_copy(
    input: Tensor,
    offset: int = ...,
    dim1: int = ...,
    dim2: int = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def diagonal_scatter(
    input: Tensor,
    src: Tensor,
    offset: int = ...,
    dim1: int = ...,
    dim2: int = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def diff(
    input: Tensor,
    n: int = ...,
    dim: int = ...,
    prepend: Tensor | None = ...,
    append: Tensor | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def digamma(input: Tensor, *, out: Any = ...) -> Tensor: ...
def dist(input: Tensor, other: Tensor, p: float = ...) -> Tensor: ...
def div(
    input: Any,
    other: Any,
    *,
    rounding_mode: str | None = ...,
    out: Any = ...,
) -> Tensor: ...
def divide(
    input: Any,
    other: Any,
    *,
    rounding_mode: str | None = ...,
    out: Any = ...,
) -> Tensor: ...
def dot(input: Tensor, tensor: Tensor, *, out: Any = ...) -> Tensor: ...
def dropout(
    input: Tensor,
    p: float = ...,
    training: bool = ...,
    inplace: bool = ...,
) -> Tensor: ...
def dropout_(input: Tensor, p: float = ..., training: bool = ...) -> Tensor: ...
def dsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]: ...
def dstack(tensors: Sequence[Tensor], *, out: Any = ...) -> Tensor: ...
def einsum(equation: Any, *operands: Any) -> Tensor: ...
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = ...,
    max_norm: float | None = ...,
    norm_type: float = ...,
    scale_grad_by_freq: bool = ...,
    sparse: bool = ...,
) -> Tensor: ...
def empty(
    *sizes: Any,
    size: Any = ...,
    memory_format: Any = ...,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    placement: Any = ...,
    sbp: Any = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def empty_like(
    input: Any,
    *,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    memory_format: Any = ...,
    placement: Any = ...,
    sbp: Any = ...,
) -> Tensor: ...
def eq(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def equal(input: Tensor, other: Tensor) -> bool: ...
def erf(input: Tensor, *, out: Any = ...) -> Tensor: ...
def erf_(input: Tensor) -> Tensor: ...
def erfc(input: Tensor, *, out: Any = ...) -> Tensor: ...
def erfc_(input: Tensor) -> Tensor: ...
def erfinv(input: Tensor, *, out: Any = ...) -> Tensor: ...
def exp(input: Tensor, *, out: Any = ...) -> Tensor: ...
def exp2(input: Tensor, *, out: Any = ...) -> Tensor: ...
def exp2_(input: Tensor) -> Tensor: ...
def exp_(input: Tensor) -> Tensor: ...
def expand_copy(input: Tensor, *size: Any, out: Any = ..., **named: Any) -> Tensor: ...
def expm1(input: Tensor, *, out: Any = ...) -> Tensor: ...
def expm1_(input: Tensor) -> Tensor: ...
def eye(
    n: int,
    m: int | None = ...,
    *,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    placement: Any = ...,
    sbp: Any = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def feature_alpha_dropout(
    input: Tensor,
    p: float = ...,
    training: bool = ...,
    inplace: bool = ...,
) -> Tensor: ...
def feature_alpha_dropout_(input: Tensor, p: float = ..., training: bool = ...) -> Tensor: ...
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor: ...
def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor: ...
def fill(input: Tensor, value: Any) -> Tensor: ...
def fix(input: Tensor, *, out: Any = ...) -> Tensor: ...
def fix_(input: Tensor) -> Tensor: ...
def flatten(input: Tensor, start_dim: int = ..., end_dim: int = ...) -> Tensor: ...
def flip(input: Tensor, *dims: Any, **named: Any) -> Tensor: ...
def fliplr(input: Tensor) -> Tensor: ...
def flipud(input: Tensor) -> Tensor: ...
def float_power(input: Any, exponent: Any, *, out: Any = ...) -> Tensor: ...
def floor(input: Tensor, *, out: Any = ...) -> Tensor: ...
def floor_(input: Tensor) -> Tensor: ...
def floor_divide(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def fmax(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def fmin(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def fmod(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def frac(input: Tensor, *, out: Any = ...) -> Tensor: ...
def frac_(input: Tensor) -> Tensor: ...
def frexp(input: Tensor, *, out: Any = ...) -> Frexp: ...
def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    placement: Any = ...,
    sbp: Any = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    placement: Any = ...,
    sbp: Any = ...,
    memory_format: Any = ...,
) -> Tensor: ...
def gather(
    input: Tensor,
    dim: int,
    index: Tensor,
    *,
    sparse_grad: bool = ...,
    out: Any = ...,
) -> Tensor: ...
def gcd(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def gcd_(input: Tensor, other: Tensor) -> Tensor: ...
def ge(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def geqrf(input: Tensor, *, out: Any = ...) -> Geqrf: ...
def ger(input: Tensor, vec2: Tensor, *, out: Any = ...) -> Tensor: ...
def gradient(
    input: Tensor,
    *,
    spacing: Any = ...,
    dim: int | Sequence[int] | None = ...,
    edge_order: int = ...,
) -> tuple[Tensor, ...]: ...
def greater(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def greater_equal(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def grid_sampler(
    input: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Tensor: ...
def grid_sampler_2d(
    input: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Tensor: ...
def grid_sampler_3d(
    input: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Tensor: ...
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = ...,
    bias: Tensor | None = ...,
    eps: float = ...,
) -> Tensor: ...
def gru(
    input: Tensor,
    hx: Any,
    params: Any,
    has_biases: Any,
    num_layers: Any,
    dropout: Any,
    train: Any,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]: ...
def gru_cell(
    input: Tensor,
    hx: Any,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = ...,
    b_hh: Tensor | None = ...,
) -> Any: ...
def gt(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def hamming_window(
    window_length: int,
    periodic: bool = ...,
    alpha: float = ...,
    beta: float = ...,
    *,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
) -> Tensor: ...
def hann_window(
    window_length: int,
    periodic: bool = ...,
    *,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
) -> Tensor: ...
def hardshrink(input: Tensor, lambd: float = ..., *, out: Any = ...) -> Tensor: ...
def heaviside(input: Tensor, values: Tensor, *, out: Any = ...) -> Tensor: ...
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = ...,
    size_average: Any = ...,
    reduce: Any = ...,
    reduction: str = ...,
) -> Tensor: ...
def histc(
    input: Tensor,
    bins: int = ...,
    min: float = ...,
    max: float = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def histogram(
    input: Tensor,
    bins: int | Tensor = ...,
    *,
    range: Sequence[float] | None = ...,
    weight: Tensor | None = ...,
    density: bool = ...,
    out: Any = ...,
) -> HistogramResult: ...
def histogramdd(
    input: Tensor,
    bins: Any,
    range: Sequence[float] | None = ...,
    weight: Tensor | None = ...,
    density: bool = ...,
) -> HistogramddResult: ...
def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]: ...
def hstack(tensors: Sequence[Tensor], *, out: Any = ...) -> Tensor: ...
def hypot(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def i0(input: Tensor, *, out: Any = ...) -> Tensor: ...
def i0_(input: Tensor) -> Tensor: ...
def igamma(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def igammac(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def imag(input: Tensor) -> Tensor: ...
def index_add(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    *,
    alpha: float = ...,
    out: Any = ...,
) -> Tensor: ...
def index_copy(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    *,
    out: Any = ...,
) -> Tensor: ...
def index_fill(input: Tensor, dim: int, index: Tensor, value: float | Tensor) -> Tensor: ...
def index_put(
    input: Tensor,
    indices: Any,
    values: Tensor,
    accumulate: bool = ...,
) -> Tensor: ...
def index_put_(
    input: Tensor,
    indices: Any,
    values: Tensor,
    accumulate: bool = ...,
) -> Tensor: ...
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = ...,
    out: Any = ...,
) -> Tensor: ...
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Any = ...) -> Tensor: ...
def inner(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
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
def inverse(A: Tensor, *, out: Any = ...) -> Tensor: ...
def is_complex(input: Tensor) -> bool: ...
def is_floating_point(input: Tensor) -> bool: ...
def is_tensor(obj: Any) -> bool: ...
def isclose(
    input: Tensor,
    other: Tensor,
    rtol: float = ...,
    atol: float = ...,
    equal_nan: bool = ...,
) -> Tensor: ...
def isfinite(input: Tensor) -> Tensor: ...
def isin(
    elements: Any,
    test_elements: Any,
    *,
    assume_unique: bool = ...,
    invert: bool = ...,
    out: Any = ...,
) -> Tensor: ...
def isinf(input: Tensor) -> Tensor: ...
def isnan(input: Tensor) -> Tensor: ...
def isneginf(input: Tensor, *, out: Any = ...) -> Tensor: ...
def isposinf(input: Tensor, *, out: Any = ...) -> Tensor: ...
def isreal(input: Tensor) -> Tensor: ...
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = ...,
    win_length: int | None = ...,
    window: Tensor | None = ...,
    center: bool = ...,
    normalized: bool = ...,
    onesided: bool | None = ...,
    length: int | None = ...,
    return_complex: bool = ...,
) -> Tensor: ...
def kaiser_window(
    window_length: int,
    periodic: bool = ...,
    beta: float = ...,
    *,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
) -> Tensor: ...
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Any = ...,
    reduce: Any = ...,
    reduction: str = ...,
    log_target: bool = ...,
) -> Tensor: ...
def kron(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def kthvalue(
    input: Tensor,
    k: int,
    dim: int = ...,
    keepdim: bool = ...,
    *,
    out: Any = ...,
) -> KthvalueResult: ...
def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = ...,
    bias: Tensor | None = ...,
    eps: float = ...,
) -> Tensor: ...
def lcm(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def lcm_(input: Tensor, other: Tensor) -> Tensor: ...
def ldexp(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def ldexp_(input: Tensor, other: Tensor) -> Tensor: ...
def le(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def lerp(input: Tensor, end: Tensor, weight: Any, *, out: Any = ...) -> Tensor: ...
def less(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def less_equal(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def lgamma(input: Tensor, *, out: Any = ...) -> Tensor: ...
def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    placement: Any = ...,
    sbp: Any = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def log(input: Tensor, *, out: Any = ...) -> Tensor: ...
def log10(input: Tensor, *, out: Any = ...) -> Tensor: ...
def log10_(input: Tensor) -> Tensor: ...
def log1p(input: Tensor, *, out: Any = ...) -> Tensor: ...
def log1p_(input: Tensor) -> Tensor: ...
def log2(input: Tensor, *, out: Any = ...) -> Tensor: ...
def log2_(input: Tensor) -> Tensor: ...
def log_(input: Tensor) -> Tensor: ...
def log_softmax(
    input: Tensor,
    dim: int | None = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def logaddexp(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def logaddexp2(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def logcumsumexp(input: Tensor, dim: int, *, out: Any = ...) -> Tensor: ...
def logdet(input: Tensor) -> Tensor: ...
def logical_and(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def logical_not(input: Tensor, *, out: Any = ...) -> Tensor: ...
def logical_or(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def logical_xor(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def logit(input: Tensor, eps: float | None = ..., *, out: Any = ...) -> Tensor: ...
def logit_(input: Tensor, eps: float | None = ...) -> Tensor: ...
def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: Any = ...,
    *,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    placement: Any = ...,
    sbp: Any = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def logsumexp(
    input: Tensor,
    dim: int | Sequence[int] | None,
    keepdim: bool = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def lstm(
    input: Tensor,
    hx: Any,
    params: Any,
    has_biases: Any,
    num_layers: Any,
    dropout: Any,
    train: Any,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]: ...
def lstm_cell(
    input: Tensor,
    hx: Any,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = ...,
    b_hh: Tensor | None = ...,
) -> Any: ...
def lt(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def lu(A: Tensor, pivot: bool = ..., get_infos: bool = ..., *, out: Any = ...) -> Any: ...
def lu_solve(
    input: Tensor,
    LU_data: Tensor,
    LU_pivots: Tensor,
    *,
    out: Any = ...,
) -> Tensor: ...
def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = ...,
    unpack_pivots: bool = ...,
    *,
    out: Any = ...,
) -> PLU: ...
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = ...,
    size_average: Any = ...,
    reduce: Any = ...,
    reduction: str = ...,
) -> Tensor: ...
def masked_fill(input: Tensor, mask: Tensor, value: float | Tensor) -> Tensor: ...
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor: ...
def masked_select(input: Tensor, mask: Tensor, *, out: Any = ...) -> Tensor: ...
def matmul(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def matrix_exp(input: Tensor) -> Tensor: ...
def matrix_power(input: Tensor, n: int, *, out: Any = ...) -> Tensor: ...
def max(
    input: Tensor,
    dim: Any = ...,
    keepdim: bool = ...,
    *,
    other: Tensor | None = ...,
    out: Any = ...,
) -> Any: ...
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
def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = ...,
    padding: Any = ...,
    dilation: Any = ...,
    ceil_mode: bool = ...,
    return_indices: bool = ...,
) -> Any: ...
def maximum(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def mean(
    input: Tensor,
    dim: int | Sequence[int] | None = ...,
    keepdim: bool = ...,
    *,
    dtype: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def median(
    input: Tensor,
    dim: int | None = ...,
    keepdim: bool = ...,
    *,
    out: Any = ...,
) -> Any: ...
def meshgrid(*tensors: Any, indexing: str = ...) -> tuple[Tensor, ...]: ...
def min(
    input: Tensor,
    dim: Any = ...,
    keepdim: bool = ...,
    *,
    other: Tensor | None = ...,
    out: Any = ...,
) -> Any: ...
def minimum(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def mm(input: Tensor, mat2: Tensor, *, out: Any = ...) -> Tensor: ...
def mode(
    input: Tensor,
    dim: int = ...,
    keepdim: bool = ...,
    *,
    out: Any = ...,
) -> ModeResult: ...
def moveaxis(input: Tensor, source: Any, destination: Any) -> Tensor: ...
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor: ...
def msort(input: Tensor, *, out: Any = ...) -> Tensor: ...
def mul(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = ...,
    *,
    generator: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def multiply(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def mv(input: Tensor, vec: Tensor, *, out: Any = ...) -> Tensor: ...
def mvlgamma(input: Tensor, p: int, *, out: Any = ...) -> Tensor: ...
def nan_to_num(
    input: Tensor,
    nan: float | None = ...,
    posinf: float | None = ...,
    neginf: float | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def nan_to_num_(
    input: Tensor,
    nan: float | None = ...,
    posinf: float | None = ...,
    neginf: float | None = ...,
) -> Tensor: ...
def nanmean(
    input: Tensor,
    dim: int | Sequence[int] | None = ...,
    keepdim: bool = ...,
    *,
    dtype: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def nanmedian(
    input: Tensor,
    dim: int | None = ...,
    keepdim: bool = ...,
    *,
    out: Any = ...,
) -> Any: ...
def nanquantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = ...,
    keepdim: bool = ...,
    *,
    interpolation: str = ...,
    out: Any = ...,
) -> Tensor: ...
def nansum(
    input: Tensor,
    dim: int | Sequence[int] | None = ...,
    keepdim: bool = ...,
    *,
    dtype: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor: ...
def narrow_copy(
    input: Tensor,
    dim: int,
    start: int,
    length: int,
    *,
    out: Any = ...,
) -> Tensor: ...
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    *,
    out: Any = ...,
) -> tuple[Tensor, Tensor, Tensor]: ...
def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]: ...
def native_layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]: ...
def ne(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def neg(input: Tensor, *, out: Any = ...) -> Tensor: ...
def neg_(input: Tensor) -> Tensor: ...
def negative(input: Tensor, *, out: Any = ...) -> Tensor: ...
def negative_(input: Tensor) -> Tensor: ...
def nextafter(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def nonzero(input: Tensor, *, as_tuple: bool = ..., out: Any = ...) -> Any: ...
def nonzero_static(
    input: Tensor,
    *,
    size: int,
    fill_value: int = ...,
    out: Any = ...,
) -> Tensor: ...
def norm(
    input: Tensor,
    p: float | str | None = ...,
    dim: int | Sequence[int] | None = ...,
    keepdim: bool = ...,
    *,
    dtype: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def normal(
    mean: Any,
    std: Any = ...,
    size: Any = ...,
    *,
    generator: Any = ...,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    placement: Any = ...,
    sbp: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def not_equal(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def numel(input: Tensor) -> int: ...
def ones(
    *sizes: Any,
    size: Any = ...,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    placement: Any = ...,
    sbp: Any = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def ones_like(
    input: Any,
    *,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    memory_format: Any = ...,
    placement: Any = ...,
    sbp: Any = ...,
) -> Tensor: ...
def orgqr(input: Tensor, tau: Tensor, *, out: Any = ...) -> Tensor: ...
def ormqr(
    input: Tensor,
    tau: Tensor,
    other: Tensor,
    left: bool = ...,
    transpose: bool = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def outer(input: Tensor, vec2: Tensor, *, out: Any = ...) -> Tensor: ...
def pairwise_distance(
    x1: Tensor,
    x2: Tensor,
    p: float = ...,
    eps: float = ...,
    keepdim: bool = ...,
) -> Tensor: ...
def pca_lowrank(
    A: Tensor,
    q: int | None = ...,
    center: bool = ...,
    niter: int = ...,
) -> tuple[Tensor, Tensor, Tensor]: ...
def pdist(input: Tensor, p: float = ...) -> Tensor: ...
def permute(input: Tensor, *dims: Any, **named: Any) -> Tensor: ...
def permute_copy(input: Tensor, *dims: Any, out: Any = ..., **named: Any) -> Tensor: ...
def pinverse(input: Tensor, rcond: float = ...) -> Tensor: ...
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor: ...
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor: ...
def poisson(input: Tensor, generator: Any = ...) -> Tensor: ...
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
def polar(abs: Tensor, angle: Tensor, *, out: Any = ...) -> Tensor: ...
def polygamma(n: int, input: Tensor, *, out: Any = ...) -> Tensor: ...
def positive(input: Tensor) -> Tensor: ...
def pow(input: Any, exponent: Any, *, out: Any = ...) -> Tensor: ...
def prelu(input: Tensor, weight: Tensor) -> Tensor: ...
def prod(
    input: Tensor,
    dim: int | None = ...,
    keepdim: bool = ...,
    *,
    dtype: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = ...) -> Tensor: ...
def qr(input: Tensor, some: bool = ..., *, out: Any = ...) -> QRResult: ...
def quantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = ...,
    keepdim: bool = ...,
    *,
    interpolation: str = ...,
    out: Any = ...,
) -> Tensor: ...
def rad2deg(input: Tensor, *, out: Any = ...) -> Tensor: ...
def rad2deg_(input: Tensor) -> Tensor: ...
def rand(
    *sizes: Any,
    size: Any = ...,
    generator: Any = ...,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    placement: Any = ...,
    sbp: Any = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def rand_like(
    input: Any,
    *,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    memory_format: Any = ...,
    placement: Any = ...,
    sbp: Any = ...,
) -> Tensor: ...
def randint(
    low: Any,
    high: Any = ...,
    size: Any = ...,
    *,
    generator: Any = ...,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    placement: Any = ...,
    sbp: Any = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def randint_like(
    input: Tensor,
    low: Any,
    high: Any = ...,
    *,
    generator: Any = ...,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    placement: Any = ...,
    sbp: Any = ...,
    memory_format: Any = ...,
) -> Tensor: ...
def randn(
    *sizes: Any,
    size: Any = ...,
    generator: Any = ...,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    placement: Any = ...,
    sbp: Any = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def randn_like(
    input: Any,
    *,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    memory_format: Any = ...,
    placement: Any = ...,
    sbp: Any = ...,
) -> Tensor: ...
def randperm(
    n: int,
    *,
    generator: Any = ...,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    placement: Any = ...,
    sbp: Any = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def range(
    start: Any,
    end: Any,
    step: Any = ...,
    *,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    placement: Any = ...,
    sbp: Any = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def ravel(input: Tensor) -> Tensor: ...
def real(input: Tensor) -> Tensor: ...
def reciprocal(input: Tensor, *, out: Any = ...) -> Tensor: ...
def reciprocal_(input: Tensor) -> Tensor: ...
def relu(input: Tensor, inplace: bool = ...) -> Tensor: ...
def relu_(input: Tensor) -> Tensor: ...
def remainder(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def renorm(input: Tensor, p: float, dim: int, maxnorm: float, *, out: Any = ...) -> Tensor: ...
def repeat_interleave(
    input: Tensor,
    repeats: Any = ...,
    dim: Any = ...,
    *,
    output_size: int | None = ...,
) -> Tensor: ...
def reshape(input: Tensor, *shape: Any, **named: Any) -> Tensor: ...
def resolve_conj(input: Tensor) -> Tensor: ...
def resolve_neg(input: Tensor) -> Tensor: ...
def result_type(tensor1: Any, tensor2: Any) -> dtype[Any]: ...
def rms_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = ...,
    eps: float | None = ...,
) -> Tensor: ...
def rnn_relu(
    input: Tensor,
    hx: Any,
    params: Any,
    has_biases: Any,
    num_layers: Any,
    dropout: Any,
    train: Any,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]: ...
def rnn_relu_cell(
    input: Tensor,
    hx: Any,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = ...,
    b_hh: Tensor | None = ...,
) -> Any: ...
def rnn_tanh(
    input: Tensor,
    hx: Any,
    params: Any,
    has_biases: Any,
    num_layers: Any,
    dropout: Any,
    train: Any,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]: ...
def rnn_tanh_cell(
    input: Tensor,
    hx: Any,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = ...,
    b_hh: Tensor | None = ...,
) -> Any: ...
def roll(input: Tensor, shifts: int | Sequence[int], dims: Any = ...) -> Tensor: ...
def rot90(input: Tensor, k: int = ..., dims: Sequence[int] = ...) -> Tensor: ...
def round(input: Tensor, *, decimals: int = ..., out: Any = ...) -> Tensor: ...
def round_(input: Tensor, *, decimals: int = ...) -> Tensor: ...
def row_stack(tensors: Sequence[Tensor], *, out: Any = ...) -> Tensor: ...
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
def rsqrt(input: Tensor, *, out: Any = ...) -> Tensor: ...
def rsqrt_(input: Tensor) -> Tensor: ...
def rsub(input: Any, other: Any, *, alpha: Any = ...) -> Tensor: ...
def scalar_tensor(
    s: Any,
    *,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    placement: Any = ...,
    sbp: Any = ...,
) -> Tensor: ...
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = ...,
    *,
    value: Any = ...,
    reduce: str | None = ...,
    out: Any = ...,
) -> Tensor: ...
def scatter_add(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    *,
    out: Any = ...,
) -> Tensor: ...
def scatter_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    *,
    include_self: bool = ...,
    out: Any = ...,
) -> Tensor: ...
def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = ...,
    right: bool = ...,
    side: str | None = ...,
    sorter: Tensor | None = ...,
    out: Any = ...,
) -> Tensor: ...
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = ...,
    indices: None = ...,
    offsets: Tensor | None = ...,
    axis: int = ...,
    unsafe: bool = ...,
    initial: float | None = ...,
) -> Tensor: ...
def select(input: Tensor, dim: int, index: int) -> Tensor: ...
def select_copy(input: Tensor, dim: int, index: int, *, out: Any = ...) -> Tensor: ...
def select_scatter(
    input: Tensor,
    src: Tensor,
    dim: int,
    index: int,
    *,
    out: Any = ...,
) -> Tensor: ...
def selu(input: Tensor, inplace: bool = ...) -> Tensor: ...
def selu_(input: Tensor) -> Tensor: ...
def sgn(input: Tensor, *, out: Any = ...) -> Tensor: ...
def sigmoid(input: Tensor, *, out: Any = ...) -> Tensor: ...
def sigmoid_(input: Tensor) -> Tensor: ...
def sign(input: Tensor, *, out: Any = ...) -> Tensor: ...
def signbit(input: Tensor, *, out: Any = ...) -> Tensor: ...
def sin(input: Tensor, *, out: Any = ...) -> Tensor: ...
def sin_(input: Tensor) -> Tensor: ...
def sinc(input: Tensor, *, out: Any = ...) -> Tensor: ...
def sinc_(input: Tensor) -> Tensor: ...
def sinh(input: Tensor, *, out: Any = ...) -> Tensor: ...
def sinh_(input: Tensor) -> Tensor: ...
def slice_copy(
    input: Tensor,
    dim: int = ...,
    start: int | None = ...,
    end: int | None = ...,
    step: int = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = ...,
    start: int | None = ...,
    end: int | None = ...,
    step: int = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def slogdet(input: Tensor, *, out: Any = ...) -> SLogDet: ...
def softmax(
    input: Tensor,
    dim: int | None = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def sort(
    input: Tensor,
    dim: int = ...,
    descending: bool = ...,
    *,
    stable: bool = ...,
    out: Any = ...,
) -> SortResult: ...
def split(
    tensor: Tensor,
    split_size_or_sections: int | Sequence[int],
    dim: int = ...,
) -> tuple[Tensor, ...]: ...
def split_copy(
    input: Tensor,
    split_size: int,
    dim: int = ...,
    *,
    out: Any = ...,
) -> tuple[Tensor, ...]: ...
def split_with_sizes(
    input: Tensor,
    split_sizes: Sequence[int],
    dim: int = ...,
) -> tuple[Tensor, ...]: ...
def split_with_sizes_copy(
    input: Tensor,
    split_sizes: Sequence[int],
    dim: int = ...,
    *,
    out: Any = ...,
) -> tuple[Tensor, ...]: ...
def sqrt(input: Tensor, *, out: Any = ...) -> Tensor: ...
def sqrt_(input: Tensor) -> Tensor: ...
def square(input: Tensor, *, out: Any = ...) -> Tensor: ...
def square_(input: Tensor) -> Tensor: ...
def squeeze(input: Tensor, dim: Any = ...) -> Tensor: ...
def squeeze_copy(input: Tensor, dim: Any = ..., *, out: Any = ...) -> Tensor: ...
def stack(tensors: Sequence[Tensor], dim: int = ..., *, out: Any = ...) -> Tensor: ...
def std(
    input: Tensor,
    dim: Any = ...,
    unbiased: bool | None = ...,
    keepdim: bool = ...,
    *,
    correction: float | None = ...,
    out: Any = ...,
) -> Any: ...
def std_mean(
    input: Tensor,
    dim: Any = ...,
    unbiased: bool | None = ...,
    keepdim: bool = ...,
    *,
    correction: float | None = ...,
) -> Any: ...
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = ...,
    win_length: int | None = ...,
    window: Tensor | None = ...,
    center: bool = ...,
    pad_mode: str = ...,
    normalized: bool = ...,
    onesided: bool | None = ...,
    return_complex: bool | None = ...,
    align_to_window: bool | None = ...,
) -> Tensor: ...
def sub(input: Any, other: Any, *, alpha: Any = ..., out: Any = ...) -> Tensor: ...
def subtract(input: Any, other: Any, *, alpha: Any = ..., out: Any = ...) -> Tensor: ...
def sum(
    input: Tensor,
    dim: int | Sequence[int] | None = ...,
    keepdim: bool = ...,
    *,
    dtype: Any = ...,
    out: Any = ...,
) -> Tensor: ...
def svd(
    input: Tensor,
    some: bool = ...,
    compute_uv: bool = ...,
    *,
    out: Any = ...,
) -> OldSVD: ...
def svd_lowrank(
    A: Tensor,
    q: int | None = ...,
    niter: int = ...,
    M: Tensor | None = ...,
) -> tuple[Tensor, Tensor, Tensor]: ...
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor: ...
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor: ...
def t(input: Tensor) -> Tensor: ...
def t_copy(input: Tensor, *, out: Any = ...) -> Tensor: ...
def take(input: Tensor, index: Tensor, *, out: Any = ...) -> Tensor: ...
def take_along_dim(
    input: Tensor,
    indices: Tensor,
    dim: int | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def tan(input: Tensor, *, out: Any = ...) -> Tensor: ...
def tan_(input: Tensor) -> Tensor: ...
def tanh(input: Tensor, *, out: Any = ...) -> Tensor: ...
def tanh_(input: Tensor) -> Tensor: ...
def tensor_split(
    input: Tensor,
    indices_or_sections: Any,
    dim: int = ...,
) -> tuple[Tensor, ...]: ...
def tensordot(a: Tensor, b: Tensor, dims: Any = ..., *, out: Any = ...) -> Tensor: ...
def threshold(
    input: Tensor,
    threshold: float,
    value: float,
    inplace: bool = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor: ...
def tile(input: Tensor, *dims: Any, **named: Any) -> Tensor: ...
def topk(
    input: Tensor,
    k: int,
    dim: int = ...,
    largest: bool = ...,
    sorted: bool = ...,
    *,
    out: Any = ...,
) -> TopkResult: ...
def trace(input: Tensor) -> Tensor: ...
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor: ...
def transpose_copy(input: Tensor, dim0: int, dim1: int, *, out: Any = ...) -> Tensor: ...
def trapezoid(
    y: Tensor,
    x: Tensor | None = ...,
    *,
    dx: Any = ...,
    dim: int = ...,
) -> Tensor: ...
def trapz(y: Tensor, x: Tensor | None = ..., *, dx: Any = ..., dim: int = ...) -> Tensor: ...
def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: bool = ...,
    transpose: bool = ...,
    unitriangular: bool = ...,
    *,
    out: Any = ...,
) -> Triangular: ...
def tril(input: Tensor, diagonal: int = ..., *, out: Any = ...) -> Tensor: ...
def tril_indices(
    row: int,
    col: int,
    offset: int = ...,
    *,
    dtype: Any = ...,
    device: Any = ...,
) -> Tensor: ...
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
def triu(input: Tensor, diagonal: int = ..., *, out: Any = ...) -> Tensor: ...
def triu_indices(
    row: int,
    col: int,
    offset: int = ...,
    *,
    dtype: Any = ...,
    device: Any = ...,
) -> Tensor: ...
def true_divide(
    input: Any,
    other: Any,
    *,
    rounding_mode: str | None = ...,
    out: Any = ...,
) -> Tensor: ...
def trunc(input: Tensor, *, out: Any = ...) -> Tensor: ...
def trunc_(input: Tensor) -> Tensor: ...
def unbind(input: Tensor, dim: int = ...) -> tuple[Tensor, ...]: ...
def unbind_copy(input: Tensor, dim: int = ..., *, out: Any = ...) -> tuple[Tensor, ...]: ...
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor: ...
def unfold_copy(
    input: Tensor,
    dimension: int,
    size: int,
    step: int,
    *,
    out: Any = ...,
) -> Tensor: ...
def unique(
    input: Tensor,
    sorted: bool = ...,
    return_inverse: bool = ...,
    return_counts: bool = ...,
    dim: int | None = ...,
) -> Any: ...
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = ...,
    return_counts: bool = ...,
    dim: int | None = ...,
) -> Any: ...
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]: ...
def unsafe_chunk(input: Tensor, chunks: int, dim: int = ...) -> tuple[Tensor, ...]: ...
def unsafe_split(input: Tensor, split_size: int, dim: int = ...) -> tuple[Tensor, ...]: ...
def unsafe_split_with_sizes(
    input: Tensor,
    split_sizes: Sequence[int],
    dim: int = ...,
) -> tuple[Tensor, ...]: ...
def unsqueeze(input: Tensor, dim: int) -> Tensor: ...
def unsqueeze_copy(input: Tensor, dim: int, *, out: Any = ...) -> Tensor: ...
def vander(x: Tensor, N: int | None = ..., increasing: bool = ...) -> Tensor: ...
def var(
    input: Tensor,
    dim: Any = ...,
    unbiased: bool | None = ...,
    keepdim: bool = ...,
    *,
    correction: float | None = ...,
    out: Any = ...,
) -> Any: ...
def var_mean(
    input: Tensor,
    dim: Any = ...,
    unbiased: bool | None = ...,
    keepdim: bool = ...,
    *,
    correction: float | None = ...,
) -> Any: ...
def vdot(input: Tensor, other: Tensor, *, out: Any = ...) -> Tensor: ...
def view_as_complex(input: Tensor) -> Tensor: ...
def view_as_complex_copy(input: Tensor, *, out: Any = ...) -> Tensor: ...
def view_as_real(input: Tensor) -> Tensor: ...
def view_as_real_copy(input: Tensor, *, out: Any = ...) -> Tensor: ...
def view_copy(input: Tensor, *shape: Any, out: Any = ..., **named: Any) -> Tensor: ...
def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]: ...
def vstack(tensors: Sequence[Tensor], *, out: Any = ...) -> Tensor: ...
def where(condition: Tensor, input: Any = ..., other: Any = ..., *, out: Any = ...) -> Any: ...
def xlogy(input: Any, other: Any, *, out: Any = ...) -> Tensor: ...
def xlogy_(input: Any, other: Any) -> Tensor: ...
def zeros(
    *sizes: Any,
    size: Any = ...,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    placement: Any = ...,
    sbp: Any = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def zeros_like(
    input: Any,
    *,
    dtype: Any = ...,
    device: Any = ...,
    requires_grad: bool = ...,
    memory_format: Any = ...,
    placement: Any = ...,
    sbp: Any = ...,
) -> Tensor: ...
