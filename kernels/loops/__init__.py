"""Loops that serve kernels on large arrays where Numba is installed.

Where an op has a scalar expression, or is an update of an optimizer, its loop is written from that,
as those of Programs are. The others stand here, one file for each family, with a function of the
name of each op, which takes what the kernel takes, without `xp`. It returns the result, or None
where this call is for NumPy. `FROM_SIZE` says of how many elements the first array must be at
least, that a loop is asked at all.
"""

from __future__ import annotations

import importlib

WRITTEN = "written"

# The smallest power of two from which one thread takes at most 0.85 of NumPy's time, in float32; at
# 64k elements it takes the part of it that stands behind. (An AMD EPYC with AVX-512, where NumPy's
# own exp and tanh are SIMD; two threads halve what is above 128k.) What would not get there has no
# loop: logsigmoid 1.7, softplus 1.0, hardtanh 1.1, bce_with_logits 1.5, and ops that are one
# function of NumPy's.
_SIZES = {
    WRITTEN: """
        gelu 2048 0.5, gelu_grad 2048 0.5, silu 8192 0.6, silu_grad 2048 0.4, sigmoid 8192 0.5,
        sigmoid_grad 32768 0.6, tanh_grad 32768 0.6, erf 2048 0.6, elu 4096 0.6, elu_grad 2048 0.4,
        softplus_grad 2048 0.4, mish 4096 0.5, mish_grad 2048 0.4, softsign 32768 0.6,
        softshrink 16384 0.7, shrink_grad 16384 0.6, hardswish 16384 0.4, hardswish_grad 2048 0.2,
        hardsigmoid 4096 0.4, hardtanh_grad 32768 0.5, leaky_relu 32768 0.5,
        leaky_relu_grad 8192 0.3, relu_grad 32768 0.6, threshold 8192 0.1, threshold_grad 32768 0.6,
        softmax 2048 0.4, softmax_grad 2048 0.4, log_softmax 2048 0.6, log_softmax_grad 2048 0.6,
        affine_norm 2048 0.8, affine_norm_grad 2048 0.5, batch_norm 2048 0.5, rms_norm 2048 0.8,
        standardize 2048 0.6, standardize_grad 2048 0.2,
        sgd_update 2048 0.5, adam_update 2048 0.3
    """,
    "pooling": "max_pool 16384 0.8, plane_put 4096 0.3, avg_pool 8192 0.6, avg_pool_grad 4096 0.9",
    "reduce": "cumsum 4096 0.3, cumsum_grad 4096 0.3, cumprod 4096 0.2, recurrence 2048 0.3",
    "scatter": """
        getitem_advanced_grad 4096 0.5, index_add 2048 0.3, scatter_add 8192 0.6,
        gather_grad 32768 0.8
    """,
    "unfolding": "im2col 4096 0.5, col2im 2048 0.6",
}
FROM_SIZE, _FAMILIES = {}, {}
for _family, _words in _SIZES.items():
    for _name, _size, _ in map(str.split, _words.split(",")):
        FROM_SIZE[_name], _FAMILIES[_name] = int(_size), _family


def function_of(op_type_name):
    """Return the function of an op, whose file is imported now; None where a loop is written."""
    family = _FAMILIES[op_type_name]
    if family == WRITTEN:
        return None
    return getattr(importlib.import_module(f"{__name__}.{family}"), op_type_name)
