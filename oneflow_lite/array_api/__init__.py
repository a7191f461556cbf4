"""The namespace of the array API standard (2024.12), which `t.__array_namespace__()` returns.

Every function runs through the functors, and records gradients where they do. Cases that the
standard leaves open are as in the rest of the package; docs/numpy.md lists the differences.
It imports the interpreter and the rooms below, and finds functors by name. `interop/` uses it.
"""

from math import e as e, inf as inf, nan as nan, pi as pi

from oneflow_lite.array_api import elementwise as _elementwise, fft as fft, linalg as linalg
from oneflow_lite.array_api.functions import (
    all as all,
    any as any,
    arange as arange,
    argmax as argmax,
    argmin as argmin,
    argsort as argsort,
    asarray as asarray,
    astype as astype,
    broadcast_arrays as broadcast_arrays,
    broadcast_to as broadcast_to,
    can_cast as can_cast,
    clip as clip,
    concat as concat,
    count_nonzero as count_nonzero,
    cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum,
    diff as diff,
    empty as empty,
    empty_like as empty_like,
    expand_dims as expand_dims,
    eye as eye,
    flip as flip,
    from_dlpack as from_dlpack,
    full as full,
    full_like as full_like,
    imag as imag,
    isdtype as isdtype,
    linspace as linspace,
    matmul as matmul,
    matrix_transpose as matrix_transpose,
    max as max,
    mean as mean,
    meshgrid as meshgrid,
    min as min,
    moveaxis as moveaxis,
    nonzero as nonzero,
    ones as ones,
    ones_like as ones_like,
    permute_dims as permute_dims,
    prod as prod,
    real as real,
    repeat as repeat,
    reshape as reshape,
    result_type as result_type,
    roll as roll,
    round as round,
    searchsorted as searchsorted,
    sort as sort,
    squeeze as squeeze,
    stack as stack,
    std as std,
    sum as sum,
    take as take,
    take_along_axis as take_along_axis,
    tensordot as tensordot,
    tile as tile,
    tril as tril,
    triu as triu,
    unique_all as unique_all,
    unique_counts as unique_counts,
    unique_inverse as unique_inverse,
    unique_values as unique_values,
    unstack as unstack,
    var as var,
    vecdot as vecdot,
    where as where,
    zeros as zeros,
    zeros_like as zeros_like,
)
from oneflow_lite.array_api.info import __array_namespace_info__ as __array_namespace_info__
from oneflow_lite.arrays.dtype import finfo as finfo, iinfo as iinfo
from oneflow_lite.arrays.dtype_object import (
    bool_,
    complex64 as complex64,
    complex128 as complex128,
    float32 as float32,
    float64 as float64,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)
from oneflow_lite.ops.exposure import expose as _expose

_expose(globals())

bool = bool_
newaxis = None

for _name in [*_elementwise.UNARY, *_elementwise.BINARY]:
    if _name not in globals():  # `round` is more than its functor
        globals()[_name] = getattr(_elementwise, _name)

__array_api_version__ = "2024.12"
