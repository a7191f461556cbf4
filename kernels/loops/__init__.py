"""Loops that serve kernels on large arrays where Numba is installed; one file for each family.

A file has a function with the name of each op, which takes what the kernel takes, without `xp`. It
returns the result, or None where this call is for NumPy. `FROM_SIZE` says of how many elements the
first array must be at least, that the function is asked at all.
"""

from __future__ import annotations

import functools
import importlib

POINTWISE = "pointwise"
_SIZES = {
    POINTWISE: """
        gelu 1024 gelu_grad 1024 silu 1024 silu_grad 1024 sigmoid 1024 sigmoid_grad 1024
        tanh_grad 1024 erf 1024 elu 1024 elu_grad 1024 softplus 1024 softplus_grad 1024
        mish 1024 mish_grad 1024 logsigmoid 1024 softsign 1024 softshrink 1024 shrink_grad 1024
        hardswish 1024 hardswish_grad 1024 hardsigmoid 1024 hardtanh 1024 hardtanh_grad 1024
        leaky_relu 1024 leaky_relu_grad 1024 relu_grad 1024 threshold 1024 threshold_grad 1024
        bce_with_logits 1024
    """,
    "softmax": "softmax 1024 log_softmax 1024 softmax_grad 1024 log_softmax_grad 1024",
    "normalization": """
        standardize 1024 affine_norm 1024 rms_norm 1024 batch_norm 1024
        standardize_grad 1024 affine_norm_grad 1024
    """,
    "optim": "sgd_update 1024 adam_update 1024",
    "pooling": "max_pool 1024 plane_put 1024 avg_pool 1024 avg_pool_grad 1024",
    "reduce": "cumsum 1024 cumsum_grad 1024 cumprod 1024 recurrence 1024",
    "scatter": "getitem_advanced_grad 1024 index_add 1024 scatter_add 1024 gather_grad 1024",
    "unfolding": "im2col 1024 col2im 1024",
}
FROM_SIZE, _FAMILIES = {}, {}
for _family, _words in _SIZES.items():
    _names = _words.split()
    for _name, _size in zip(_names[::2], _names[1::2], strict=True):
        FROM_SIZE[_name], _FAMILIES[_name] = int(_size), _family


def function_of(op_type_name):
    """Return the function of an op, whose file is imported now."""
    family = _FAMILIES[op_type_name]
    module = importlib.import_module(f"{__name__}.{family}")
    if family == POINTWISE:
        return functools.partial(module.run, op_type_name)
    return getattr(module, op_type_name)
