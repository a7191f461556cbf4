"""Normalization: what users call; arguments are checked here and handed to dispatch."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from oneflow_lite.autograd.mode import no_grad
from oneflow_lite.errors import ArgumentError, ShapeError, bad_argument
from oneflow_lite.functors.arithmetic import rsqrt
from oneflow_lite.functors.checks import check_int
from oneflow_lite.functors.elementwise_checks import check_number
from oneflow_lite.functors.normalization_checks import (
    check_channels,
    check_last_dims,
    check_more_than_one,
    check_parameter,
)
from oneflow_lite.functors.rearranging import repeat
from oneflow_lite.functors.reduce import mean
from oneflow_lite.functors.shape import cast, reshape
from oneflow_lite.interpreter import dispatch
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

STANDARDIZE = op_expr("standardize")
LAYER_NORM = op_expr("layer_norm")
RMS_NORM = op_expr("rms_norm")
BATCH_NORM = op_expr("batch_norm")
UPDATE_RUNNING = op_expr("update_running")


@register_functor("layer_norm")
def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize over the last dimensions: (x - mean) / √(var + eps) · weight + bias.

    The variance is the biased one: the mean of the squares.

    Parameters
    ----------
    input : Tensor
        (*, *normalized_shape), floating.
    normalized_shape : sequence of int
        The sizes of the dimensions to normalize over.
    weight, bias : Tensor, optional
        Of shape `normalized_shape`.
    eps : float
        Added to the variance.

    Raises
    ------
    ShapeError
        When the shapes do not fit.
    DTypeError
        When the input is not floating, or the dtypes differ.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.layer_norm(flow.tensor([[1., 3.], [0., 8.]]), (2,))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """
    dims = check_last_dims("layer_norm", input, normalized_shape)
    shape = input.shape[len(input.shape) - len(dims) :]
    weight = check_parameter("layer_norm", "weight", weight, shape, input)
    bias = check_parameter("layer_norm", "bias", bias, shape, input)
    attrs = {"dim": dims, "eps": check_number("layer_norm", "eps", eps)}
    if weight is None and bias is None:
        return dispatch(STANDARDIZE, (input,), attrs)[0]
    return dispatch(LAYER_NORM, (input, weight, bias), attrs)[0]


@register_functor("rms_norm")
def rms_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divide by the root mean square over the last dimensions: x / √(mean x² + eps) · weight.

    Parameters
    ----------
    input : Tensor
        (*, *normalized_shape), floating.
    normalized_shape : sequence of int
        The sizes of the dimensions to normalize over.
    weight : Tensor, optional
        Of shape `normalized_shape`.
    eps : float, optional
        Added to the mean square; by default the dtype's `finfo(dtype).eps`.

    Raises
    ------
    ShapeError
        When the shapes do not fit.
    DTypeError
        When the input is not floating, or the dtypes differ.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.rms_norm(flow.tensor([1., 7.]), (2,))
    tensor([0.2000, 1.4000])
    """
    dims = check_last_dims("rms_norm", input, normalized_shape)
    weight = check_parameter("rms_norm", "weight", weight, input.shape[dims[0] :], input)
    if eps is None:
        eps = float(np.finfo(input.dtype).eps)
    attrs = {"dim": dims, "eps": check_number("rms_norm", "eps", eps)}
    return dispatch(RMS_NORM, (input, weight), attrs)[0]


@register_functor("batch_norm")
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each channel over all other dimensions: (x - mean) / √(var + eps) · weight + bias.

    In training, mean and (biased) variance are those of the batch, and the running ones move
    towards them in place: running ← (1 - momentum) · running + momentum · batch, where the
    variance is the unbiased one. Otherwise the running ones are used.

    Parameters
    ----------
    input : Tensor
        (N, C, *), floating.
    running_mean, running_var : Tensor or None
        (C,). None in training keeps no statistics.
    weight, bias : Tensor, optional
        (C,)
    training : bool
        Whether the statistics are those of the batch.
    momentum, eps : float
        Share of the batch, and what is added to the variance.

    Raises
    ------
    ShapeError
        When a shape does not fit.
    ArgumentError
        When there is one value per channel only, or a running statistic is missing.
    DTypeError
        When the input is not floating, or the dtypes differ.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> mean, var = flow.zeros(1), flow.ones(1)
    >>> flow.batch_norm(flow.tensor([[1.], [3.]]), mean, var, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    >>> mean, var
    (tensor([0.2000]), tensor([1.1000]))
    """
    op = "batch_norm"
    channels = check_channels(op, input)
    weight = check_parameter(op, "weight", weight, channels, input)
    bias = check_parameter(op, "bias", bias, channels, input)
    momentum, eps = check_number(op, "momentum", momentum), check_number(op, "eps", eps)
    running: list[Any] = []
    for name, value in (("running_mean", running_mean), ("running_var", running_var)):
        if value is not None:
            running.append(check_parameter(op, name, value, channels, input, widen=True))
        elif not training or running_mean is not None or running_var is not None:
            raise bad_argument(
                ArgumentError,
                op,
                name,
                expected="a Tensor in evaluation, and both running statistics or none in training",
                got=None,
                mend="pass it, or pass training=True without either",
            )
    if not training:
        return _by_running(input, running[0], running[1], weight, bias, eps)
    check_more_than_one(op, input, input.shape[0] * prod(input.shape[2:]))
    dims = (0, *range(2, input.ndim))
    attrs = {"dim": dims, "eps": eps}
    y, _, variance, batch_mean = dispatch(BATCH_NORM, (input, weight, bias), attrs)
    if running and input.shape[0]:
        count = input.shape[0] * prod(input.shape[2:])
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
    y = _per_channel(input, scale, shift)
    return cast(y, input.dtype)


def _per_channel(input: Tensor, scale: Tensor | None, shift: Tensor | None) -> Tensor:
    """Return input · scale + shift with one number for each channel."""
    shape = (-1, *(1,) * (input.ndim - 2))
    if scale is not None:
        input = input * reshape(scale, shape)
    if shift is not None:
        input = input + reshape(shift, shape)
    return input


@register_functor("group_norm")
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize over groups of channels of each sample, and scale by channel.

    Parameters
    ----------
    input : Tensor
        (N, C, *), floating.
    num_groups : int
        A divisor of C.
    weight, bias : Tensor, optional
        (C,)
    eps : float
        Added to the variance.

    Raises
    ------
    ShapeError
        When a shape or the number of groups does not fit.
    ArgumentError
        When there is one value only.
    DTypeError
        When the input is not floating, or the dtypes differ.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.group_norm(flow.tensor([[1., 3., 0., 8.]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    op = "group_norm"
    channels = check_channels(op, input)
    weight = check_parameter(op, "weight", weight, channels, input)
    bias = check_parameter(op, "bias", bias, channels, input)
    if check_int(op, "num_groups", num_groups) < 1 or channels[0] % num_groups:
        raise bad_argument(
            ShapeError,
            op,
            "num_groups",
            expected=f"a positive divisor of the {channels[0]} channels",
            got=num_groups,
            mend="change the groups",
        )
    per_group = channels[0] // num_groups * prod(input.shape[2:])
    check_more_than_one(op, input, input.shape[0] * per_group)
    groups = reshape(input, (input.shape[0], num_groups, per_group))
    attrs = {"dim": (2,), "eps": check_number(op, "eps", eps)}
    z, _ = dispatch(STANDARDIZE, (groups,), attrs)
    return _per_channel(reshape(z, input.shape), weight, bias)


@register_functor("instance_norm")
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each channel of each sample over its spatial dimensions.

    Every instance is a channel of a `batch_norm`; the running statistics move towards the mean of
    those of the instances.

    Parameters
    ----------
    input : Tensor
        (N, C, *) with at least one spatial dimension, floating.
    running_mean, running_var, weight, bias : Tensor, optional
        (C,)
    use_input_stats : bool
        Whether the statistics are those of the input; otherwise the running ones are used.
    momentum, eps : float
        As in `batch_norm`.

    Raises
    ------
    ShapeError
        When a shape does not fit.
    ArgumentError
        When there is one value per channel only, or a running statistic is missing.
    DTypeError
        When the input is not floating, or the dtypes differ.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.instance_norm(flow.tensor([[[1., 3.], [0., 8.]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    op = "instance_norm"
    channels = check_channels(op, input)
    batch, size = input.shape[0], input.shape[2:]
    if use_input_stats:
        check_more_than_one(op, input, prod(size) if size else 1)
    repeated: list[Any] = []
    for name, value in (
        ("running_mean", running_mean),
        ("running_var", running_var),
        ("weight", weight),
        ("bias", bias),
    ):
        widen = name.startswith("running")
        value = check_parameter(op, name, value, channels, input, widen=widen)
        repeated.append(None if value is None else repeat(value, batch))
    means, variances, weights, biases = repeated
    instances = reshape(input, (1, batch * channels[0], *size))
    y = batch_norm(instances, means, variances, weights, biases, use_input_stats, momentum, eps)
    if use_input_stats and batch:
        with no_grad():
            for running, moved in ((running_mean, means), (running_var, variances)):
                if running is not None:
                    new = mean(reshape(moved, (batch, *channels)), 0)
                    dispatch(UPDATE_RUNNING, (running, new), {"momentum": 1})
    return reshape(y, input.shape)
