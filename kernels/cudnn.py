"""Convolution, normalization and attention as nodes of cuDNN, for arrays on CUDA devices.

A function has the parameters of the kernel of its name. It returns None where cuDNN does not serve
the call. cuDNN's tensors have four or five dimensions, (N, C, *): sequences, with a single spatial
dimension, get another of size 1. Kernels of norms save z, but cuDNN wants x and the mean. So its
gradients are computed as for an input z of mean 0 and spread 1, and multiplied by 1 / √(var + eps).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite.kernels import normalization
from oneflow_lite.kernels.normalization import restored, scaled, wide
from oneflow_lite.kernels.windows import count_windows
from oneflow_lite.ops.cudnn import run

FUNCTIONS: dict[str, Callable[..., Any]] = {}
_DIMENSIONS = (3, 4, 5)  # of a convolution's arrays
_MUCH = 1e-3  # with a larger eps, 1 / rstd² - eps has lost the digits of a small variance


def _takes(function):
    FUNCTIONS[function.__name__] = function
    return function


# --- convolution ----------------------------------------------------------------------------------


@_takes
def conv(xp, x, weight, bias, *, stride, padding, dilation, groups, out=None):
    size = count_windows(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    shape = (len(x), len(weight), *size)
    geometry = (padding, stride, dilation)
    y = _convolved(xp, "conv_fprop", {"image": x, "weight": weight}, shape, out, geometry)
    if y is not None and bias is not None:
        y += bias.reshape(-1, *(1,) * len(size))
    return y


@_takes
def conv_input_grad(xp, dy, weight, *, input_size, stride, padding, dilation, groups, out=None):
    if count_windows(input_size, weight.shape[2:], stride, padding, dilation) != dy.shape[2:]:
        return None  # a transposed convolution may be padded for more windows
    shape = (len(dy), groups * weight.shape[1], *input_size)
    geometry = (padding, stride, dilation)
    return _convolved(xp, "conv_dgrad", {"loss": dy, "filter": weight}, shape, out, geometry)


@_takes
def conv_weight_grad(xp, dy, x, *, kernel_size, stride, padding, dilation, groups, out=None):
    if count_windows(x.shape[2:], kernel_size, stride, padding, dilation) != dy.shape[2:]:
        return None
    shape = (dy.shape[1], x.shape[1] // groups, *kernel_size)
    geometry = (padding, stride, dilation)
    return _convolved(xp, "conv_wgrad", {"image": x, "loss": dy}, shape, out, geometry)


def _convolved(xp, node, inputs, shape, out, geometry):
    """Return a result of this shape; cuDNN reads the groups off the numbers of channels."""
    if len(shape) not in _DIMENSIONS:
        return None
    planes = {name: _planes(xp.ascontiguousarray(x)) for name, x in inputs.items()}
    y = xp.empty(shape, next(iter(planes.values())).dtype) if out is None else out
    one = len(shape) == 3
    padding, stride, dilation = [
        (n,) * one + given for n, given in zip((0, 1, 1), geometry, strict=True)
    ]
    attrs = {"pre_padding": padding, "post_padding": padding, "stride": stride}
    return y if run(node, planes, [_planes(y)], **attrs, dilation=dilation) else None


def _planes(x):
    return x.reshape(*x.shape[:2], 1, x.shape[2]) if x.ndim == 3 else x


# --- normalization --------------------------------------------------------------------------------
# Halves are computed in float32, and rounded once. cuDNN has no norms in float64.


@_takes
def standardize(xp, x, *, groups, eps):
    made = _standardized(xp, x, groups, eps)
    return made and (restored(made[0], x), made[1])


@_takes
def affine_norm(xp, x, weight, bias, *, groups, channels, eps):
    made = _standardized(xp, x, groups, eps)
    return made and (*_affine(xp, x, made[0], weight, bias, channels), made[1])


@_takes
def batch_norm(xp, x, weight, bias, *, groups, channels, eps):
    made = _standardized(xp, x, groups, eps) if eps <= _MUCH else None
    if made is None:
        return None
    z, rstd, mean = made
    variance = xp.maximum(xp.reciprocal(rstd * rstd) - eps, 0)
    return *_affine(xp, x, z, weight, bias, channels), rstd, variance, mean


@_takes
def rms_norm(xp, x, weight, *, groups, eps):
    made = _standardized(xp, x, groups, eps, "rmsnorm")
    return made and (*_affine(xp, x, made[0], weight, None, groups), made[1])


@_takes
def standardize_grad(xp, dy, z, rstd, *, groups, centred, out=None):
    gradients = _gradients(xp, dy, z, rstd, None, groups, centred)
    if gradients is None:
        return None
    dx = restored(gradients[0], dy)
    if out is None:
        return dx
    out[...] = dx
    return out


@_takes
def affine_norm_grad(xp, dy, z, rstd, weight, *, groups, channels, needs):
    if not needs[0]:
        return None
    if len(groups) == 3 or (groups == channels and weight is not None):
        gradients = _gradients(xp, dy, z, rstd, weight, groups)
    else:  # cuDNN has no weights of this shape: dy is scaled first, and the sums are made here
        dz = wide(dy).reshape(channels)
        dz = dz if weight is None else scaled(xp, dz, wide(weight), None)
        gradients = _gradients(xp, dz, z, rstd, None, groups)
        if gradients is not None and any(needs[1:]):
            attrs = {"groups": groups, "channels": channels, "needs": (False, *needs[1:])}
            sums = normalization.affine_norm_grad(xp, dy, z, rstd, weight, **attrs)
            sums = iter(sums if isinstance(sums, tuple) else (sums,))
            gradients = (gradients[0], *[next(sums) if need else None for need in needs[1:]])
    if gradients is None:
        return None
    needed = [x for x, need in zip(gradients, needs, strict=True) if need]
    made = [x.astype(dy.dtype, copy=False) for x in needed]
    return tuple(made) if len(made) > 1 else made[0]


def _standardized(xp, x, groups, eps, node="layernorm"):
    """Return z, and rstd and mean as (B, 1); RMS norm leaves the mean unwritten."""
    if x.dtype.char not in "ef":
        return None
    z = xp.empty(x.shape, np.float32)
    statistics = [xp.empty((groups[-2], 1), np.float32) for _ in range(2)]
    mean, rstd = [each.reshape(_statistic(groups)) for each in statistics]
    inputs = {"input": _four(xp, x, groups)}
    outputs = [_four(xp, z, groups), mean, rstd]
    scalars = {"epsilon": float(eps)}
    if len(groups) == 2:
        if node == "rmsnorm":
            del outputs[1]
        if not run(node, inputs, outputs, scalars, norm_forward_phase="TRAINING"):
            return None
    else:  # the frontend requires running statistics, but hides whether their variance is biased
        ones, running = xp.ones_like(mean), [xp.zeros_like(mean), xp.zeros_like(mean)]
        inputs |= {"scale": ones, "bias": running[0]}
        inputs |= {"in_running_mean": running[0], "in_running_var": running[1]}
        outputs += map(xp.empty_like, running)
        if not run("batchnorm", inputs, outputs, scalars | {"momentum": 1.0}):
            return None
    return z, *reversed(statistics)


def _gradients(xp, dy, z, rstd, weight, groups, centred=True):
    """Return the gradient of x, and of weight and bias if there is a weight, in float32."""
    if z.dtype.char not in "ef":
        return None
    dx = xp.empty(z.shape, np.float32)
    inputs = {"grad": _four(xp, dy, groups), "input": _four(xp, z, groups)}
    sums: list[Any] = [None, None]
    one = xp.ones(_statistic(groups), np.float32)
    spread = {"mean": xp.zeros_like(one), "inv_variance": one}
    by_channel = len(groups) == 3
    if by_channel:  # rstd is a number for each channel, like the weight: cuDNN scales by both
        node, scale = "batchnorm_backward", rstd.reshape(-1)
        scale = scale if weight is None else scale * wide(weight)
    else:
        node, scale = "layernorm_backward" if centred else "rmsnorm_backward", weight
    if not centred:
        del spread["mean"]
    if scale is not None:
        shape = (1, scale.size, 1, 1)
        inputs["scale"] = xp.ascontiguousarray(wide(scale)).reshape(shape)
        sums = [xp.empty(scale.size, np.float32) for _ in sums]
    attrs: Any = {} if centred else {"has_dbias": False}
    outputs = [_four(xp, dx, groups), *[x if x is None else x.reshape(shape) for x in sums]]
    if not run(node, inputs | spread, outputs, **attrs):
        return None
    if not by_channel:
        rows = dx.reshape(groups)
        rows *= rstd
    return dx, *sums


def _four(xp, x, groups):
    """Return x, (B, P) or (A, B, P), in float32 and C order as an array of four dimensions."""
    return xp.ascontiguousarray(wide(x)).reshape((*groups, 1, 1)[:4])


def _statistic(groups):
    """Return the shape of an array with a number for each b in B."""
    return (groups[0], 1, 1, 1) if len(groups) == 2 else (1, groups[1], 1, 1)


def _affine(xp, x, z, weight, bias, channels):
    """Return z weight + bias, and z, as the op does."""
    return restored(scaled(xp, z.reshape(channels), weight, bias), x), restored(z, x)


# --- attention ------------------------------------------------------------------------------------
# cuDNN's engines are for halves. A mask and dropout stay with the kernel, whose stream of numbers
# the backward pass draws again.


@_takes
def attention(xp, q, k, v, mask, seed, *, scale, causal, dropout_p):
    if mask is not None or dropout_p or q.dtype.char != "e":
        return None
    inputs = {name: xp.ascontiguousarray(x) for name, x in zip("qkv", (q, k, v), strict=True)}
    y, sums = xp.empty((*q.shape[:3], v.shape[3]), q.dtype), xp.empty(q.shape[:3], np.float32)
    attrs = {"attn_scale": float(scale), "use_causal_mask": causal, "is_inference": False}
    return (y, sums) if run("sdpa", inputs, [y, sums[..., None]], **attrs) else None


@_takes
def attention_grad(xp, dy, q, k, v, mask, seed, y, sums, *, scale, causal, dropout_p, needs):
    if mask is not None or dropout_p or q.dtype.char != "e":
        return None
    given = {"q": q, "k": k, "v": v, "o": y, "dO": dy, "stats": sums[..., None]}
    inputs = {name: xp.ascontiguousarray(x) for name, x in given.items()}
    made = [xp.empty(x.shape, x.dtype) for x in (q, k, v)]
    if not run("sdpa_backward", inputs, made, attn_scale=float(scale), use_causal_mask=causal):
        return None
    needed = [x for x, need in zip(made, needs, strict=False) if need]
    return tuple(needed) if len(needed) > 1 else needed[0]
