"""oneflow_lite: OneFlow-style autograd in readable Python, on NumPy and CuPy arrays.

The public names, and nothing else; `import oneflow_lite as flow`.
"""

# The three op folders register what they hold, kernels first.
from oneflow_lite import kernels as kernels  # isort: skip
from oneflow_lite import functors as functors  # isort: skip
from oneflow_lite import grad_funcs as grad_funcs  # isort: skip

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from oneflow_lite import (
    autograd as autograd,
    errors as errors,
    fft as fft,
    linalg as linalg,
    masked as masked,
    nn as nn,
    optim as optim,
    special as special,
    testing as testing,
    utils as utils,
)
from oneflow_lite.autograd.grad_function import (
    AutoGradCaptureState as AutoGradCaptureState,
    OpExprGradFunction as OpExprGradFunction,
    register_grad_func as register_grad_func,
)
from oneflow_lite.autograd.mode import (
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    is_grad_enabled as is_grad_enabled,
    is_inference_mode_enabled as is_inference_mode_enabled,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)
from oneflow_lite.device import Device, make_cuda_module
from oneflow_lite.dtype import (
    bool_,
    can_cast as can_cast,
    complex64 as complex64,
    complex128 as complex128,
    dtype as dtype,
    finfo as finfo,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    get_default_dtype as get_default_dtype,
    iinfo as iinfo,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    promote_types as promote_types,
    set_default_dtype as set_default_dtype,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)
from oneflow_lite.einops_backend import watch as _watch_for_einops
from oneflow_lite.extend import register_op as register_op
from oneflow_lite.functors.activation import (
    celu as celu,
    selu as selu,
)
from oneflow_lite.functors.activation_piecewise import (
    hardshrink as hardshrink,
    relu as relu,
    threshold as threshold,
)
from oneflow_lite.functors.adaptive_pooling import (
    adaptive_avg_pool1d as adaptive_avg_pool1d,
    adaptive_max_pool1d as adaptive_max_pool1d,
)
from oneflow_lite.functors.arithmetic import (
    abs as abs,
    add as add,
    addcdiv as addcdiv,
    addcmul as addcmul,
    ceil as ceil,
    clamp as clamp,
    clamp_max as clamp_max,
    clamp_min as clamp_min,
    div as div,
    floor as floor,
    floor_divide as floor_divide,
    fmod as fmod,
    frac as frac,
    lerp as lerp,
    maximum as maximum,
    minimum as minimum,
    mul as mul,
    nan_to_num as nan_to_num,
    neg as neg,
    positive as positive,
    pow as pow,
    reciprocal as reciprocal,
    remainder as remainder,
    round as round,
    rsqrt as rsqrt,
    rsub as rsub,
    sign as sign,
    sqrt as sqrt,
    square as square,
    sub as sub,
    trunc as trunc,
    where as where,
)
from oneflow_lite.functors.comparison import (
    allclose as allclose,
    eq as eq,
    equal as equal,
    ge as ge,
    gt as gt,
    isclose as isclose,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    le as le,
    lt as lt,
    ne as ne,
)
from oneflow_lite.functors.complex import (
    angle as angle,
    complex as complex,
    conj as conj,
    polar as polar,
    sgn as sgn,
    view_as_complex as view_as_complex,
    view_as_real as view_as_real,
)
from oneflow_lite.functors.conv import (
    conv1d as conv1d,
    conv2d as conv2d,
)
from oneflow_lite.functors.creation import (
    arange as arange,
    as_tensor as as_tensor,
    empty as empty,
    empty_like as empty_like,
    eye as eye,
    from_dlpack as from_dlpack,
    from_numpy as from_numpy,
    full as full,
    full_like as full_like,
    linspace as linspace,
    ones as ones,
    ones_like as ones_like,
    tensor as tensor,
    zeros as zeros,
    zeros_like as zeros_like,
)
from oneflow_lite.functors.declare import exposed
from oneflow_lite.functors.diagonals import (
    diag as diag,
    diag_embed as diag_embed,
    diagonal as diagonal,
    trace as trace,
    tril as tril,
    triu as triu,
)
from oneflow_lite.functors.dropout import (
    dropout as dropout,
)
from oneflow_lite.functors.einsum import (
    einsum as einsum,
    tensordot as tensordot,
)
from oneflow_lite.functors.embedding import (
    embedding as embedding,
)
from oneflow_lite.functors.extrema import (
    amax as amax,
    amin as amin,
    argmax as argmax,
    argmin as argmin,
    max as max,
    min as min,
)
from oneflow_lite.functors.index_select import (
    index_add as index_add,
    index_fill as index_fill,
    index_select as index_select,
)
from oneflow_lite.functors.indexing import (
    narrow as narrow,
    select as select,
)
from oneflow_lite.functors.inplace import (
    fill_ as fill_,
    zero_ as zero_,
)
from oneflow_lite.functors.inspection import (
    is_complex as is_complex,
    is_floating_point as is_floating_point,
    is_tensor as is_tensor,
    numel as numel,
    result_type as result_type,
)
from oneflow_lite.functors.joining import (
    cat as cat,
    column_stack as column_stack,
    concat as concat,
    concatenate as concatenate,
    dstack as dstack,
    hstack as hstack,
    meshgrid as meshgrid,
    stack as stack,
    vstack as vstack,
)
from oneflow_lite.functors.logic import (
    bitwise_and as bitwise_and,
    bitwise_not as bitwise_not,
    bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
)
from oneflow_lite.functors.loss import (
    kl_div as kl_div,
)
from oneflow_lite.functors.loss_classification import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from oneflow_lite.functors.loss_ranking import (
    cosine_embedding_loss as cosine_embedding_loss,
    hinge_embedding_loss as hinge_embedding_loss,
    margin_ranking_loss as margin_ranking_loss,
    poisson_nll_loss as poisson_nll_loss,
)
from oneflow_lite.functors.masking import (
    masked_fill as masked_fill,
    masked_scatter as masked_scatter,
    masked_select as masked_select,
    nonzero as nonzero,
)
from oneflow_lite.functors.matmul import (
    addmm as addmm,
    addmv as addmv,
    baddbmm as baddbmm,
    bmm as bmm,
    dot as dot,
    matmul as matmul,
    mm as mm,
    mv as mv,
    outer as outer,
)
from oneflow_lite.functors.normalization import (
    batch_norm as batch_norm,
    group_norm as group_norm,
    instance_norm as instance_norm,
    layer_norm as layer_norm,
    rms_norm as rms_norm,
)
from oneflow_lite.functors.pooling import (
    avg_pool1d as avg_pool1d,
    max_pool1d as max_pool1d,
    max_pool2d as max_pool2d,
)
from oneflow_lite.functors.random import (
    Generator as Generator,
    bernoulli as bernoulli,
    default_generator as default_generator,
    get_rng_state as get_rng_state,
    initial_seed as initial_seed,
    manual_seed as manual_seed,
    rand as rand,
    rand_like as rand_like,
    randint as randint,
    randn as randn,
    randn_like as randn_like,
    randperm as randperm,
    seed as seed,
    set_rng_state as set_rng_state,
)
from oneflow_lite.functors.rearranging import (
    flip as flip,
    roll as roll,
    tile as tile,
)
from oneflow_lite.functors.reduce import (
    all as all,
    any as any,
    count_nonzero as count_nonzero,
    logsumexp as logsumexp,
    mean as mean,
    prod as prod,
    sum as sum,
)
from oneflow_lite.functors.scan import (
    cumprod as cumprod,
    cumsum as cumsum,
)
from oneflow_lite.functors.scatter import (
    gather as gather,
    scatter as scatter,
    scatter_add as scatter_add,
    take as take,
    take_along_dim as take_along_dim,
)
from oneflow_lite.functors.shape import (
    broadcast_to as broadcast_to,
    clone as clone,
    flatten as flatten,
    imag as imag,
    movedim as movedim,
    permute as permute,
    ravel as ravel,
    real as real,
    reshape as reshape,
    squeeze as squeeze,
    t as t,
    transpose as transpose,
    unflatten as unflatten,
    unsqueeze as unsqueeze,
)
from oneflow_lite.functors.similarity import (
    cosine_similarity as cosine_similarity,
)
from oneflow_lite.functors.softmax import (
    log_softmax as log_softmax,
    softmax as softmax,
)
from oneflow_lite.functors.sorting import (
    argsort as argsort,
    sort as sort,
    topk as topk,
)
from oneflow_lite.functors.splitting import (
    chunk as chunk,
    split as split,
    unbind as unbind,
)
from oneflow_lite.functors.statistics import (
    norm as norm,
    std as std,
    std_mean as std_mean,
    var as var,
    var_mean as var_mean,
)
from oneflow_lite.functors.transcendental import (
    erf as erf,
    erfc as erfc,
    exp as exp,
    exp2 as exp2,
    expm1 as expm1,
    log as log,
    log1p as log1p,
    log2 as log2,
    log10 as log10,
    logaddexp as logaddexp,
    sigmoid as sigmoid,
    tanh as tanh,
    xlogy as xlogy,
)
from oneflow_lite.functors.trigonometric import (
    acos as acos,
    acosh as acosh,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    cos as cos,
    cosh as cosh,
    hypot as hypot,
    sin as sin,
    sinc as sinc,
    sinh as sinh,
    tan as tan,
)
from oneflow_lite.host_memory import keep_freed_memory
from oneflow_lite.interpreter import (
    AutogradInterpreter as AutogradInterpreter,
    EagerInterpreter as EagerInterpreter,
    Interpreter as Interpreter,
    current_interpreter as current_interpreter,
    push_interpreter as push_interpreter,
)
from oneflow_lite.memory_format import (
    channels_last as channels_last,
    channels_last_3d as channels_last_3d,
    contiguous_format as contiguous_format,
    memory_format as memory_format,
    preserve_format as preserve_format,
)
from oneflow_lite.registry import (
    register_functor as register_functor,
    register_kernel as register_kernel,
)
from oneflow_lite.serialization import load as load, save as save
from oneflow_lite.tensor import Tensor as Tensor
from oneflow_lite.tensor_methods import (
    get_device as get_device,
    is_inference as is_inference,
    is_nonzero as is_nonzero,
    is_same_size as is_same_size,
    is_signed as is_signed,
    layout as layout,
    never as _never,
    resize_as_ as resize_as_,
    strided as strided,
)
from oneflow_lite.tensor_repr import (
    get_printoptions as get_printoptions,
    printoptions as printoptions,
    set_printoptions as set_printoptions,
)

device = Device
bool = bool_
half = float16
float = float32
double = float64
short = int16
int = int32
long = int64
cfloat = complex64
cdouble = complex128

is_conj = is_neg = _never

# Second names of functions, as PyTorch has them.
absolute = abs
arccos = acos
arcsin = asin
arctan = atan
arctan2 = atan2
clip = clamp
greater = gt
greater_equal = ge
less = lt
less_equal = le
moveaxis = movedim
multiply = mul
negative = neg
not_equal = ne
subtract = sub
swapaxes = transpose
swapdims = transpose
true_divide = div
divide = div

globals().update(exposed("flow"))

cuda = make_cuda_module()
keep_freed_memory()
_watch_for_einops()

__version__ = "0.1.0"

if TYPE_CHECKING:
    from oneflow_lite import static as static
    from oneflow_lite.static.capture import compile as compile
else:

    def __getattr__(name: str) -> Any:
        """Load what captures Programs when it is first asked for: it is a third of the package."""
        if name not in ("static", "compile"):
            raise AttributeError(f"module 'oneflow_lite' has no attribute {name!r}")
        value = _import_module("oneflow_lite.static")
        if name == "compile":
            value = _import_module("oneflow_lite.static.capture").compile
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), "compile", "static"})
