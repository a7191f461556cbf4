"""Calls that go through cuDNN, forward and backward: for the stand-in, and for NVIDIA's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import oneflow_lite as flow
from oneflow_lite.nn import functional as F


class Call(NamedTuple):
    """A function of tensors, their shapes, and the nodes that forward and backward run."""

    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    nodes: str


def _statistics(x: Any) -> tuple[Any, Any]:
    return x.new_zeros(x.shape[1]), x.new_ones(x.shape[1])


_CONV = "conv_fprop conv_dgrad conv_wgrad"
_BACK = "conv_dgrad conv_fprop conv_wgrad"
_LAYER, _RMS = "layernorm layernorm_backward", "rmsnorm rmsnorm_backward"
_BATCH = "batchnorm batchnorm_backward"
_ATTENTION = "sdpa sdpa_backward"
CALLS = {
    "conv1d": Call(lambda x, w: F.conv1d(x, w, dilation=2), ((2, 4, 9), (6, 4, 3)), _CONV),
    "conv1d, steps and groups": Call(
        lambda x, w, b: F.conv1d(x, w, b, stride=3, padding=2, groups=2),
        ((2, 4, 11), (6, 2, 3), (6,)),
        _CONV,
    ),
    "conv2d": Call(
        lambda x, w, b: F.conv2d(x, w, b, padding=1), ((2, 4, 7, 8), (6, 4, 3, 3), (6,)), _CONV
    ),
    "conv2d, uneven": Call(
        lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=(0, 2), dilation=(1, 2), groups=2),
        ((2, 4, 7, 8), (6, 2, 3, 2), (6,)),
        _CONV,
    ),
    "conv2d, depthwise": Call(
        lambda x, w: F.conv2d(x, w, padding=1, groups=4), ((1, 4, 5, 5), (8, 1, 3, 3)), _CONV
    ),
    "conv2d, 1 by 1": Call(F.conv2d, ((2, 4, 5, 3), (3, 4, 1, 1)), _CONV),
    "conv2d, padded at the end": Call(
        lambda x, w: F.conv2d(x, w, padding="same"), ((2, 3, 5, 6), (2, 3, 2, 4)), _CONV
    ),
    "conv3d": Call(
        lambda x, w: F.conv3d(x, w, padding=(1, 0, 2), stride=(2, 1, 1), groups=2),
        ((2, 4, 4, 5, 3), (6, 2, 3, 2, 2)),
        _CONV,
    ),
    "conv_transpose1d": Call(
        lambda x, w: F.conv_transpose1d(x, w, stride=2), ((2, 4, 5), (4, 3, 3)), _BACK
    ),
    "conv_transpose2d": Call(
        lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, output_padding=1, groups=2),
        ((2, 4, 4, 5), (4, 3, 3, 3), (6,)),
        _BACK,
    ),
    "conv_transpose3d": Call(
        lambda x, w: F.conv_transpose3d(x, w, dilation=(1, 2, 1)),
        ((1, 2, 3, 2, 3), (2, 3, 2, 2, 1)),
        _BACK,
    ),
    "layer_norm": Call(lambda x, w, b: F.layer_norm(x, (6,), w, b), ((5, 6), (6,), (6,)), _LAYER),
    "layer_norm, two dimensions": Call(
        lambda x, w, b: F.layer_norm(x, (3, 4), w, b, 0.1), ((2, 5, 3, 4), (3, 4), (3, 4)), _LAYER
    ),
    "layer_norm, unscaled": Call(lambda x: F.layer_norm(x, (6,)), ((5, 6),), _LAYER),
    "layer_norm, shifted": Call(
        lambda x, b: F.layer_norm(x, (6,), None, b), ((5, 6), (6,)), _LAYER
    ),
    "rms_norm": Call(lambda x, w: F.rms_norm(x, (6,), w), ((2, 5, 6), (6,)), _RMS),
    "rms_norm, unscaled": Call(lambda x: F.rms_norm(x, (6,)), ((5, 6),), _RMS),
    "batch_norm": Call(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        ((5, 8, 3, 2), (8,), (8,)),
        _BATCH,
    ),
    "batch_norm, running": Call(
        lambda x, w, b: F.batch_norm(x, *_statistics(x), w, b, training=True),
        ((5, 8, 3), (8,), (8,)),
        _BATCH,
    ),
    "batch_norm, of rows": Call(
        lambda x: F.batch_norm(x, None, None, training=True, eps=0.1), ((7, 4),), _BATCH
    ),
    "batch_norm, running, of one image": Call(
        lambda x, w, b: F.batch_norm(x, *_statistics(x), w, b, training=True),
        ((1, 6, 3, 2), (6,), (6,)),
        _LAYER,
    ),
    "batch_norm, of one volume": Call(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        ((1, 4, 3, 2, 2), (4,), (4,)),
        _LAYER,
    ),
    "group_norm": Call(
        lambda x, w, b: F.group_norm(x, 2, w, b), ((5, 8, 3, 2), (8,), (8,)), _LAYER
    ),
    "instance_norm": Call(
        lambda x, w, b: F.instance_norm(x, weight=w, bias=b), ((5, 8, 3, 2), (8,), (8,)), _LAYER
    ),
    "attention": Call(
        F.scaled_dot_product_attention, ((2, 2, 5, 8), (2, 2, 7, 8), (2, 2, 7, 16)), _ATTENTION
    ),
    "attention, causal, in groups": Call(
        lambda *x: F.scaled_dot_product_attention(*x, is_causal=True, enable_gqa=True, scale=0.3),
        ((2, 4, 6, 8), (2, 2, 5, 8), (2, 2, 5, 8)),
        _ATTENTION,
    ),
}


def arrays_of(call: Call, dtype: Any, seed: int = 0) -> list[Any]:
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape).astype(dtype) for shape in call.shapes]


def run_call(call: Call, dtype: Any = np.float32) -> list[Any]:
    """Return the result on a CUDA device, and the gradients of all tensors, on the host."""
    tensors = [flow.tensor(x, device="cuda", requires_grad=True) for x in arrays_of(call, dtype)]
    y = call.function(*tensors)
    dy = np.random.default_rng(1).standard_normal(y.shape).astype(dtype)
    found = [y, *flow.autograd.grad(y, tensors, flow.tensor(dy, device="cuda"))]
    return [x.detach().cpu().numpy() for x in found]
