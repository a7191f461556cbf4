"""Loops that serve kernels on large arrays where Numba is installed.

The loop of an op with a scalar expression, or of an optimizer's update, is written from the
expression or the kernel, as loops of Programs are. The remaining loops stand here, in a file for
each family. A file has a function for each op, of its name, with the kernel's parameters without
`xp`. It returns the result, or None where NumPy serves the call. `FROM_SIZE` has, for each op, the
least number of elements of the first array for which its loop is asked.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from oneflow_lite.kernels.numerics import has_wide_functions

WRITTEN = "written"

# The smallest power of two from which one thread takes at most 0.85 of NumPy's time, there and at
# all larger sizes up to four million, in float32; and the part of it at 64k elements. (An AMD EPYC
# with AVX-512, where NumPy's own exp and tanh are SIMD; from `where` on, one without. Arrays are in
# the cache, which is NumPy's best case.) Slower ops have no loop: hardtanh 1.1, im2col 1.0, argsort
# by digits 0.9, softmax along another dimension than the last 1.1, nll_loss 2.0 and nll_loss_grad
# 2.8, which touch one element of a row, NumPy's sums and arithmetic. Nor have ops by which NumPy
# warns, as of the logarithm of 0.
_SIZES = {
    WRITTEN: """
        gelu 512 0.45, gelu_grad 512 0.47, silu_grad 1024 0.57, sigmoid 16384 0.73,
        sigmoid_grad 32768 0.59, tanh_grad 32768 0.54, erf 1024 0.52, elu 1024 0.51,
        elu_grad 1024 0.37, softplus_grad 1024 0.38, mish 1024 0.53, mish_grad 512 0.42,
        softsign 32768 0.57, softshrink 32768 0.62, shrink_grad 16384 0.47, hardswish 1024 0.39,
        hardswish_grad 512 0.20, hardsigmoid 2048 0.49, hardtanh_grad 16384 0.47,
        leaky_relu 32768 0.52, leaky_relu_grad 4096 0.32, relu_grad 32768 0.63,
        threshold 1024 0.20, threshold_grad 32768 0.57,
        softmax 2048 0.52, softmax_grad 4096 0.25,
        log_softmax 1024 0.56, log_softmax_grad 4096 0.51,
        cross_entropy_rows 1024 0.71, cross_entropy_rows_grad 1024 0.40,
        affine_norm 1024 0.43, affine_norm_grad 1024 0.34, batch_norm 512 0.38, rms_norm 2048 0.42,
        standardize 1024 0.59, standardize_grad 1024 0.31,
        sgd_update 65536 0.74, adam_update 1024 0.33,
        where 4096 0.32, masked_fill 8192 0.27, hardshrink 4096 0.23, safe_divide 1024 0.13,
        huber 1024 0.19, huber_grad 16384 0.61, logsumexp 4096 0.56, var 4096 0.32, std 4096 0.28
    """,
    "conv": "conv 8192 0.71, conv_weight_grad 8192 0.77, conv_input_grad 8192 0.72",
    "pooling": """
        max_pool 8192 0.16, plane_put 32768 0.60, avg_pool 16384 0.41, avg_pool_grad 131072 0.88
    """,
    "reduce": "cumsum 2048 0.32, cumsum_grad 1024 0.34, cumprod 2048 0.18, recurrence 512 0.43",
    "scatter": """
        getitem_advanced_grad 4096 0.53, index_add 1024 0.20, scatter_add 16384 0.57,
        gather_grad 16384 0.64
    """,
    "recurrent": "lstm_layer 8192 0.55, lstm_layer_grad 64 0.67",
    "unfolding": "col2im 1024 0.48",
}
# The same where NumPy has no AVX-512; with it silu takes 0.9 of NumPy's time at 64k elements,
# softplus 1.0, bce_with_logits 1.5, logsigmoid 1.7.
_NARROW = """
    tanh 4096 0.45, silu 1024 0.53, softplus 1024 0.28, logsigmoid 1024 0.29,
    bce_with_logits 1024 0.28, relu 16384 0.78
"""
# With AVX-512, the size from which NumPy's steps no longer find the array in the cache: silu takes
# 0.49 to 0.71 of NumPy's time, softplus 0.55 to 0.77.
_WIDE = {"silu": 131072, "softplus": 131072}
FROM_SIZE, _FAMILIES = dict(_WIDE), {}
for _family, _words in (*_SIZES.items(), (WRITTEN, _NARROW)):
    for _name, _size, _ in map(str.split, _words.split(",")):
        _FAMILIES[_name] = _family
        if _words is not _NARROW or not has_wide_functions():
            FROM_SIZE[_name] = int(_size)

PRODUCTS = 25  # of a convolution, in the time that other loops take for an element
_PRODUCTS_OF_AN_ELEMENT: Any = {
    "conv": lambda x, weight, *_, groups, **__: weight[:, 0].size // groups,
    "conv_weight_grad": lambda dy, x, *, kernel_size, groups, **_: (
        x.shape[1] // groups * math.prod(kernel_size)
    ),
    "conv_input_grad": lambda dy, weight, **_: weight[0].size,
    "lstm_layer": lambda x, h0, *_, **__: h0.shape[-1],
    "lstm_layer_grad": lambda h0, c0, weight, projection, sizes, y, *_, **__: (
        len(y) * weight.shape[0]
    ),
}


def work_of(op_type_name, *arrays, **attrs):
    """Return how many elements of another op take as long as a call."""
    products = _PRODUCTS_OF_AN_ELEMENT.get(op_type_name)
    if products is None:
        return max([x.size for x in arrays if type(x) is np.ndarray], default=0)
    return arrays[0].size * products(*arrays, **attrs) // PRODUCTS


def is_by_hand(op_type_name):
    """Return whether the loop of an op stands here."""
    return _FAMILIES.get(op_type_name, WRITTEN) != WRITTEN


def function_of(op_type_name):
    """Return the function of an op, whose file is imported now; None where a loop is written."""
    if not is_by_hand(op_type_name):
        return None
    family = importlib.import_module(f"{__name__}.{_FAMILIES[op_type_name]}")
    return getattr(family, op_type_name)
