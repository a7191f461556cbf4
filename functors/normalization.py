"""Normalization: what users call; arguments are checked here and handed to dispatch."""

from __future__ import annotations

from math import prod
from typing import Any

from oneflow_lite.autograd.mode import no_grad
from oneflow_lite.dtype import finfo
from oneflow_lite.errors import ArgumentError
from oneflow_lite.functors.arithmetic import rsqrt, square
from oneflow_lite.functors.checks import cast, wrong
from oneflow_lite.functors.creation import empty
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import Flag, FloatingOrComplex, Int, Number, RealFloating
from oneflow_lite.functors.normalization_checks import (
    Channels,
    NormalizedShape,
    PerChannel,
    PerElement,
    Statistic,
    check_more_than_one,
)
from oneflow_lite.functors.rearranging import repeat
from oneflow_lite.functors.reduce import mean
from oneflow_lite.functors.shape import reshape
from oneflow_lite.interpreter import dispatch
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import FUNCTORS
from oneflow_lite.tensor import Tensor

STANDARDIZE = op_expr("standardize")
LAYER_NORM = op_expr("layer_norm")
RMS_NORM = op_expr("rms_norm")
BATCH_NORM = op_expr("batch_norm")
UPDATE_RUNNING = op_expr("update_running")


@functor(
    "functional flow",
    samples="""
    x(2, 3), (3,); x(2, 3), (3,), x(3), x(3); x(2, 2, 3), (2, 3), x(2, 3), eps=0.5
    x(2, 3), (3,), None, x(3)
    """,
)
def layer_norm(
    input: RealFloating,
    normalized_shape: NormalizedShape,
    weight: PerElement | None = None,
    bias: PerElement | None = None,
    eps: Number = 1e-5,
) -> Tensor:
    """Normalize over the last dimensions: (x - mean) / √(var + eps) · weight + bias.

    The variance is the biased one: the mean of the squares.

    eps: added to the variance.

    >>> flow.layer_norm(flow.tensor([[1., 3.], [0., 8.]]), (2,))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """
    attrs = {"dim": normalized_shape, "eps": eps}
    if weight is None and bias is None:
        return dispatch(STANDARDIZE, (input,), attrs)[0]
    return dispatch(LAYER_NORM, (input, weight, bias), attrs)[0]


@functor(
    "functional flow", samples="x(2, 3), (3,); x(2, 2, 3), (2, 3), x(2, 3); x(2, 3), (3,), eps=0.5"
)
def rms_norm(
    input: FloatingOrComplex,
    normalized_shape: NormalizedShape,
    weight: PerElement | None = None,
    eps: Number | None = None,
) -> Tensor:
    """Divide by the root mean square over the last dimensions: x / √(mean x² + eps) · weight.

    eps: added to the mean square; by default the dtype's `finfo(dtype).eps`.

    >>> flow.rms_norm(flow.tensor([1., 7.]), (2,))
    tensor([0.2000, 1.4000])
    """
    if eps is None:
        eps = finfo(input.dtype).eps
    if input.is_complex():  # PyTorch takes x², not |x|²
        y = input * rsqrt(mean(square(input), normalized_shape, True) + eps)
        return y if weight is None else y * weight
    return dispatch(RMS_NORM, (input, weight), {"dim": normalized_shape, "eps": eps})[0]


@functor(
    "functional flow",
    samples="""
    x(4, 2), None, None, x(2), x(2), True; x(2, 2, 3), None, None, training=True, eps=0.5
    x(2, 2, 3), fixed(x(2)), fixed(pos(2)), x(2), x(2)
    """,
)
def batch_norm(
    input: Channels,
    running_mean: Statistic | None,
    running_var: Statistic | None,
    weight: PerChannel | None = None,
    bias: PerChannel | None = None,
    training: Flag = False,
    momentum: Number = 0.1,
    eps: Number = 1e-5,
) -> Tensor:
    """Normalize each channel over all other dimensions: (x - mean) / √(var + eps) · weight + bias.

    In training, mean and (biased) variance are those of the batch, and the running ones move
    towards them in place: running ← (1 - momentum) · running + momentum · batch, where the
    variance is the unbiased one. Otherwise the running ones are used.

    running_mean, running_var: (C,). None in training keeps no statistics.
    training: whether the statistics are those of the batch.
    momentum, eps: share of the batch, and what is added to the variance.
    ArgumentError: when there is one value per channel only, or a running statistic is missing.

    >>> mean, var = flow.zeros(1), flow.ones(1)
    >>> flow.batch_norm(flow.tensor([[1.], [3.]]), mean, var, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    >>> mean, var
    (tensor([0.2000]), tensor([1.1000]))
    """
    running = (running_mean, running_var)
    for name, value in zip(("running_mean", "running_var"), running, strict=True):
        if value is None and (not training or running != (None, None)):
            expected = "a Tensor in evaluation, and both running statistics or none in training"
            mend = "pass it, or pass training=True without either"
            raise wrong("batch_norm", name, expected, None, mend, ArgumentError)
    if not training:
        assert running_mean is not None and running_var is not None
        return _by_running(input, running_mean, running_var, weight, bias, eps)
    count = input.shape[0] * prod(input.shape[2:])
    check_more_than_one("batch_norm", input, count)
    attrs = {"dim": (0, *range(2, input.ndim)), "eps": eps}
    y, _, variance, batch_mean = dispatch(BATCH_NORM, (input, weight, bias), attrs)
    if running_mean is not None and input.shape[0]:
        with no_grad():
            attrs = {"momentum": momentum}
            dispatch(UPDATE_RUNNING, (running_mean, batch_mean), attrs)
            dispatch(UPDATE_RUNNING, (running_var, variance * (count / (count - 1))), attrs)
    return y


def _by_running(
    input: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Tensor:
    """Normalize with statistics that are given: one product and one sum."""
    scale = rsqrt(running_var + eps)
    if weight is not None:
        scale = scale * weight
    shift = -running_mean * scale
    if bias is not None:
        shift = shift + bias
    return cast(_per_channel(input, scale, shift), input.dtype)


def _per_channel(input: Tensor, scale: Tensor | None, shift: Tensor | None) -> Tensor:
    """Return input · scale + shift with one number for each channel."""
    shape = (-1, *(1,) * (input.ndim - 2))
    if scale is not None:
        input = input * reshape(scale, shape)
    if shift is not None:
        input = input + reshape(shift, shape)
    return input


@functor(
    "functional flow",
    samples="x(2, 4, 3), 2; x(2, 4), 2, x(4), x(4); x(2, 3, 2), 3, x(3), eps=0.5; x(2, 4, 2, 2), 1",
)
def group_norm(
    input: Channels,
    num_groups: Int,
    weight: PerChannel | None = None,
    bias: PerChannel | None = None,
    eps: Number = 1e-5,
) -> Tensor:
    """Normalize over groups of channels of each sample, and scale by channel.

    num_groups: a divisor of C.
    eps: added to the variance.
    ShapeError: when a shape or the number of groups does not fit.
    ArgumentError: when there is one value only.

    >>> flow.group_norm(flow.tensor([[1., 3., 0., 8.]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    batch, channels = input.shape[:2]
    if num_groups < 1 or channels % num_groups:
        expected = f"a positive divisor of the {channels} channels"
        raise wrong("group_norm", "num_groups", expected, num_groups, "change the groups")
    per_group = channels // num_groups * prod(input.shape[2:])
    check_more_than_one("group_norm", input, batch * per_group)
    groups = reshape(input, (batch, num_groups, per_group))
    z, _ = dispatch(STANDARDIZE, (groups,), {"dim": (2,), "eps": eps})
    return _per_channel(reshape(z, input.shape), weight, bias)


@functor(
    "functional flow",
    samples="""
    x(2, 3, 4); x(2, 3, 4), None, None, x(3), x(3); x(2, 2, 2, 2), eps=0.5
    x(2, 3, 4), fixed(x(3)), fixed(pos(3)), use_input_stats=False
    """,
)
def instance_norm(
    input: Channels,
    running_mean: Statistic | None = None,
    running_var: Statistic | None = None,
    weight: PerChannel | None = None,
    bias: PerChannel | None = None,
    use_input_stats: Flag = True,
    momentum: Number = 0.1,
    eps: Number = 1e-5,
) -> Tensor:
    """Normalize each channel of each sample over its spatial dimensions.

    Every instance is a channel of a `batch_norm`; the running statistics move towards the mean of
    those of the instances.

    input: (N, C, *) with at least one spatial dimension, real floating.
    use_input_stats: whether the statistics are those of the input; otherwise the running ones are
    used.
    momentum, eps: as in `batch_norm`.
    ArgumentError: when there is one value per channel only, or a running statistic is missing.

    >>> flow.instance_norm(flow.tensor([[[1., 3.], [0., 8.]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    batch, size = input.shape[0], input.shape[2:]
    if use_input_stats:
        check_more_than_one("instance_norm", input, prod(size) if size else 1)
    given = (running_mean, running_var, weight, bias)
    repeated: list[Any] = [None if value is None else repeat(value, batch) for value in given]
    means, variances, weights, biases = repeated
    instances = reshape(input, (1, batch * input.shape[1], *size))
    y = batch_norm(instances, means, variances, weights, biases, use_input_stats, momentum, eps)
    if use_input_stats and batch:
        with no_grad():
            for running, moved in zip(given[:2], repeated, strict=False):
                if running is not None:
                    new = mean(reshape(moved, (batch, -1)), 0)
                    dispatch(UPDATE_RUNNING, (running, new), {"momentum": 1})
    return reshape(y, input.shape)


# --- PyTorch's names for its kernels: they return the statistics, too, here with gradients --------


def _with_statistics(
    y: Tensor, x: Tensor, dims: tuple[int, ...], eps: float, keepdim: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    variance = FUNCTORS.get("var")(x, dims, correction=0, keepdim=keepdim)
    return y, mean(x, dims, keepdim), rsqrt(variance + eps)


@functor("flow", samples="x(2, 3), (3,), fixed(x(3)), None, 0.1")
def native_layer_norm(
    input: RealFloating,
    normalized_shape: Any,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: Number,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `layer_norm` with the same arguments, the mean, and 1 / √(var + eps)."""
    y = layer_norm(input, normalized_shape, weight, bias, eps)
    dims = tuple(range(-len(normalized_shape), 0))
    return _with_statistics(y, input, dims, eps, keepdim=True)


@functor("flow", samples="x(2, 4, 3), fixed(x(4)), None, 2, 4, 3, 2, 0.1")
def native_group_norm(
    input: Channels,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: Int,
    eps: Number,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `group_norm` with the same arguments, and means and 1 / √(var + eps), (N, group).

    N, C, HxW: the sizes that `input` has.
    """
    y = group_norm(input, group, weight, bias, eps)
    return _with_statistics(y, reshape(input, (N, group, C // group * HxW)), (2,), eps)


@functor(
    "flow",
    out=True,
    samples="""
    x(4, 2), fixed(x(2)), None, None, None, True, 0.1, 0.5
    x(4, 2), x(2), x(2), fixed(x(2)), fixed(pos(2)), False, 0.1, 0.5
    """,
)
def native_batch_norm(
    input: Channels,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: Flag,
    momentum: Number,
    eps: Number,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `batch_norm` with the same arguments, and means and 1 / √(var + eps) of the batch.

    Without `training` the last two are empty.
    """
    y = batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training:
        none = empty(0, dtype=input.dtype, device=input.device)
        return y, none, none
    return _with_statistics(y, input, (0, *range(2, input.ndim)), eps)
