"""Normalization: functions that users call, and the domains of their arguments."""

from __future__ import annotations

from math import prod
from typing import Annotated, Any

from oneflow_lite.arrays.dtype import finfo, float32, float64
from oneflow_lite.arrays.dtype_object import HALVES
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DimError, DTypeError, arg_error
from oneflow_lite.functors.declaring import domains
from oneflow_lite.functors.declaring.checks import cast, check_shape, check_tensor, real_floating
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import (
    Domain,
    Flag,
    Int,
    IntOrInts,
    NonNegative,
    Number,
    RealFloating,
    attribute,
    tensor,
)
from oneflow_lite.interpreter.dispatch import dispatch, dispatch1
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor

_CUDNN = "Accepted for its place; `flow.backends.cudnn` says where cuDNN is used."
CuDNN = Annotated[bool, Domain(_CUDNN, dropped=True)]
STANDARDIZE = op_expr("standardize")
AFFINE_NORM = op_expr("affine_norm")
RMS_NORM = op_expr("rms_norm")
BATCH_NORM = op_expr("batch_norm")
UPDATE_RUNNING = op_expr("update_running")


def check_last_dims(op: str, name: str, shape: Any, input: Tensor) -> tuple[int, ...]:
    """Return the dimensions that a normalized shape names by their sizes."""
    if not isinstance(shape, (tuple, list)):
        hint = "write the sizes as a tuple, such as (8,)"
        raise arg_error(op, name, "a tuple of ints", repr(shape), hint, ArgumentTypeError)
    sizes, own = check_shape(op, (shape,), name), input._data.shape
    first = len(own) - len(sizes)
    if not sizes or first < 0 or own[first:] != sizes:
        expected = f"the last sizes of the input, shape {input.shape}, at least one"
        raise arg_error(op, name, expected, tuple(shape), "give the sizes of the last dimensions")
    return tuple(range(first, len(own)))


def with_channels(op: str, input: Tensor, argument: str) -> Tensor:
    """Return a real floating input (N, C, *)."""
    if real_floating(op, input, argument).ndim >= 2:
        return input
    hint = "add the dimension of the batch with unsqueeze(0)"
    raise arg_error(op, argument, "at least 2 dimensions, (N, C, *)", input, hint, DimError)


def check_parameter(
    op: str, name: str, value: Any, input: Tensor, shape: tuple[int, ...]
) -> Tensor:
    """Return a factor, shift or statistic of the input's dtype; next to halves it may be float32.

    In `rms_norm` the dtypes are free.
    """
    data = check_tensor(op, name, value)._data
    if data.shape != shape:
        raise arg_error(op, name, f"shape {shape}", value, "match the input's sizes")
    own = input._data.dtype
    free = own.char in HALVES and data.dtype is float32
    free = free or (op == "rms_norm" and own.kind == data.dtype.kind == "f")
    if data.dtype is not own and not free:
        expected = f"dtype {input.dtype}, that of the input"
        hint = "convert one of them with .to(dtype)"
        raise arg_error(op, name, expected, value.dtype, hint, DTypeError)
    return value


def _meet(input: Tensor, *parameters: Tensor | None) -> list[Any]:
    """Return what is to be computed in a wider dtype, cast to it; nothing where dtypes agree."""
    own = input._data.dtype
    for each in parameters:
        if each is not None and each._data.dtype is not own:
            break
    else:
        return []
    wide = float64 if float64 in (own, each._data.dtype) else float32
    return [None if x is None else cast(x, wide) for x in (input, *parameters)]


def _parameter(says: str, sizes: str) -> domains.Domain:
    extra = f", {{first}}, {{first}}._data.shape[{sizes}]"
    raises = {"DTypeError": "When the dtypes differ.", "ShapeError": "When a shape differs."}
    return attribute(check_parameter, extra, says=says, raises=raises, tensor="one")


_FLAT, _INEXACT = "When {x} has fewer than two dimensions.", "When {x} is not real floating."
Channels = Annotated[
    Tensor,
    tensor(with_channels, "", "(N, C, *), real floating.", DimError=_FLAT, DTypeError=_INEXACT),
]
_LAST = "The sizes of the last dimensions, which are normalized over."
_OTHERS = {"ShapeError": "When {x} is not how the input's shape ends."}
NormalizedShape = Annotated[  # handed on as the dimensions themselves
    Any, attribute(check_last_dims, ", {first}", says=_LAST, raises=_OTHERS, type="sequence of int")
]
Scale = Annotated[Tensor, _parameter("(C,)", "1:2")] | None
Statistic = Annotated[Tensor, _parameter("(C,)", "1:2")]
PerElement = Annotated[  # after a NormalizedShape
    Tensor, _parameter("Of the sizes that are normalized over.", "normalized_shape[0] :")
]
Given = Tensor | None  # what is handed to a functor that checks it


def _check_more_than_one(op: str, input: Tensor, count: int) -> None:
    """Raise for a single value, which has no spread."""
    if count == 1:
        expected = "more than one value to normalize over"
        hint = "pass a larger batch, or use the running statistics"
        raise arg_error(op, "input", expected, input, hint, ArgumentError)


def _rows(input: Tensor, dims: tuple[int, ...]) -> tuple[int, int]:
    """Return the number and the size of rows, each of which is the last dimensions."""
    shape, first = input._data.shape, dims[0]
    return prod(shape[:first]), prod(shape[first:])


def _by_channel(input: Tensor) -> tuple[int, int, int]:
    return *input._data.shape[:2], prod(input._data.shape[2:])


def _flat(scale: Tensor | None) -> Tensor | None:
    return scale if scale is None or scale._data.ndim == 1 else scale.reshape(-1)


def _affine(input: Tensor, weight: Given, bias: Given, **attrs: Any) -> Any:
    """Normalize and scale; without scales, the result is what the gradient keeps."""
    if weight is None and bias is None:
        del attrs["channels"]
        return dispatch1(STANDARDIZE, input, attrs)[0]
    return dispatch(AFFINE_NORM, (input, weight, bias), attrs)[0]


@functor(
    "functional flow",
    samples="x(2, 3), (3,); x(2, 3), (3,), x(3), x(3); x(2, 3), (3,), None, x(3); "
    "x(2, 2, 3), (2, 3), x(2, 3), eps=0.5",
)
def layer_norm(
    input: RealFloating,
    normalized_shape: NormalizedShape,
    weight: PerElement | None = None,
    bias: PerElement | None = None,
    eps: Number = 1e-5,
    cudnn_enable: CuDNN = True,
) -> Tensor:
    """Normalize over the last dimensions: (x - mean) / √(biased var + eps) · weight + bias.

    >>> flow.layer_norm(flow.tensor([1., 3.]), (2,))
    tensor([-1.0000,  1.0000])
    """
    if wide := _meet(input, weight, bias):
        x, weight, bias = wide
        y = layer_norm(x, input.shape[normalized_shape[0] :], weight, bias, eps)
        return cast(y, input.dtype)
    rows, weight, bias = _rows(input, normalized_shape), _flat(weight), _flat(bias)
    return _affine(input, weight, bias, groups=rows, channels=rows, eps=eps)


@functor(
    "functional flow", samples="x(2, 3), (3,); x(2, 2, 3), (2, 3), x(2, 3); x(2, 3), (3,), eps=0.5"
)
def rms_norm(
    input: domains.FloatingOrComplex,
    normalized_shape: NormalizedShape,
    weight: PerElement | None = None,
    eps: Number | None = None,
) -> Tensor:
    """Divide by the root mean square over the last dimensions: x / √(mean x² + eps) · weight.

    eps: added to the mean square; by default the dtype's `finfo(dtype).eps`, of halves float32's.

    >>> flow.rms_norm(flow.tensor([1., 7.]), (2,))
    tensor([0.2000, 1.4000])
    """
    if eps is None:
        eps = min(finfo(input.dtype).eps, finfo(float32).eps)
    if input.is_complex():  # PyTorch takes x², not |x|²
        y = input * (input.square().mean(normalized_shape, True) + eps).rsqrt()
        return y if weight is None else y * weight
    if wide := _meet(input, weight):
        y = rms_norm(wide[0], input.shape[normalized_shape[0] :], wide[1], eps)
        return cast(y, input.dtype)
    attrs = {"groups": _rows(input, normalized_shape), "eps": eps}
    return dispatch(RMS_NORM, (input, _flat(weight)), attrs)[0]


@functor(
    "functional flow",
    samples="x(4, 2), None, None, x(2), x(2), True; "
    "x(2, 2, 3), None, None, training=True, eps=0.5; "
    "x(2, 2, 3), fixed(x(2)), fixed(pos(2)), x(2), x(2)",
)
def batch_norm(
    input: Channels,
    running_mean: Statistic | None,
    running_var: Statistic | None,
    weight: Scale = None,
    bias: Scale = None,
    training: Flag = False,
    momentum: Number = 0.1,
    eps: NonNegative = 1e-5,
) -> Tensor:
    """Normalize each channel over all other dimensions: (x - mean) / √(var + eps) · weight + bias.

    In training, mean and (biased) variance are taken over the batch, and the running statistics
    move towards the batch in place: running ← (1 - momentum) · running + momentum · batch, here
    with the unbiased variance. Otherwise the running statistics are used.

    running_mean, running_var: (C,); None in training keeps no statistics.
    ArgumentError: when a channel has a single value, or a running statistic is missing.

    >>> mean, var = flow.zeros(1), flow.ones(1)
    >>> flow.batch_norm(flow.tensor([[1.], [3.]]), mean, var, training=True).ravel()
    tensor([-1.0000,  1.0000])
    >>> mean, var
    (tensor([0.2000]), tensor([1.1000]))
    """
    for name, value in (("running_mean", running_mean), ("running_var", running_var)):
        if value is None and (not training or running_mean is not running_var):
            expected = "a Tensor in evaluation, and both running statistics or none in training"
            hint = "pass it, or pass training=True without either"
            raise arg_error("batch_norm", name, expected, None, hint, ArgumentError)
    if wide := _meet(input, running_mean, running_var, weight, bias):
        x, mean, variance, weight, bias = wide
        y = batch_norm(x, mean, variance, weight, bias, training, momentum, eps)
        with no_grad():
            for running, moved in ((running_mean, mean), (running_var, variance)):
                if training and running is not None and running is not moved:
                    running.copy_(moved)
        return cast(y, input.dtype)
    if not training:  # the constants of a channel are folded: one product and one sum
        assert running_mean is not None and running_var is not None
        scale = (running_var + eps).rsqrt()
        scale = scale if weight is None else scale * weight
        shift = -running_mean * scale
        shift = shift if bias is None else shift + bias
        column = (-1, *(1,) * (input.ndim - 2))
        return input * scale.reshape(column) + shift.reshape(column)
    groups = _by_channel(input)
    count = groups[0] * groups[2]
    _check_more_than_one("batch_norm", input, count)
    op = AFFINE_NORM if running_mean is None else BATCH_NORM
    attrs = {"groups": groups[1:] if groups[0] == 1 else groups, "channels": groups, "eps": eps}
    y, _, _, *statistics = dispatch(op, (input, weight, bias), attrs)
    if statistics and input.shape[0]:
        variance, mean = statistics
        with no_grad():
            attrs = {"momentum": momentum}
            dispatch(UPDATE_RUNNING, (running_mean, mean), attrs)
            dispatch(UPDATE_RUNNING, (running_var, variance * (count / (count - 1))), attrs)
    return y


@functor(
    "functional flow",
    samples="x(2, 4, 3), 2; x(2, 4), 2, x(4), x(4); x(2, 3, 2), 3, x(3), eps=0.5; x(2, 4, 2, 2), 1",
)
def group_norm(
    input: Channels,
    num_groups: Int,
    weight: Scale = None,
    bias: Scale = None,
    eps: Number = 1e-5,
    cudnn_enabled: CuDNN = True,
) -> Tensor:
    """Normalize over groups of channels of each sample, as `layer_norm`, and scale by channel.

    num_groups: a divisor of C.
    ArgumentError: when the input has a single value.
    """
    if wide := _meet(input, weight, bias):
        x, weight, bias = wide
        return cast(group_norm(x, num_groups, weight, bias, eps), input.dtype)
    batch, channels, positions = by_channel = _by_channel(input)
    if num_groups < 1 or channels % num_groups:
        expected = f"a positive divisor of the {channels} channels"
        raise arg_error("group_norm", "num_groups", expected, num_groups, "change the groups")
    groups = (batch * num_groups, channels // num_groups * positions)
    _check_more_than_one("group_norm", input, batch * groups[1])
    return _affine(input, weight, bias, groups=groups, channels=by_channel, eps=eps)


@functor(
    "functional flow",
    samples="x(2, 3, 4); x(2, 3, 4), None, None, x(3), x(3); x(2, 2, 2, 2), eps=0.5; "
    "x(2, 3, 4), fixed(x(3)), fixed(pos(3)), use_input_stats=False",
)
def instance_norm(
    input: Channels,
    running_mean: Statistic | None = None,
    running_var: Statistic | None = None,
    weight: Scale = None,
    bias: Scale = None,
    use_input_stats: Flag = True,
    momentum: Number = 0.1,
    eps: Number = 1e-5,
) -> Tensor:
    """Normalize each channel of each sample over its spatial dimensions, as `batch_norm`.

    The running statistics move towards the mean over all instances.

    use_input_stats: take the statistics of the input, not the running statistics.
    ArgumentError: when a channel has a single value, or a running statistic is missing.
    """
    batch, size = input.shape[0], input.shape[2:]
    if use_input_stats:
        _check_more_than_one("instance_norm", input, prod(size) if size else 1)
    given = (running_mean, running_var, weight, bias)
    repeated: list[Any] = [None if value is None else value.repeat(batch) for value in given]
    means, variances, weights, biases = repeated
    # All instances are channels of a single sample, so that batch_norm keeps them apart.
    instances = input.reshape(1, batch * input.shape[1], *size)
    y = batch_norm(instances, means, variances, weights, biases, use_input_stats, momentum, eps)
    if use_input_stats and batch:
        with no_grad():
            for running, moved in zip(given[:2], repeated, strict=False):
                if running is not None:
                    new = moved.reshape(batch, -1).mean(0)
                    dispatch(UPDATE_RUNNING, (running, new), {"momentum": 1})
    return y.reshape(input.shape)


# --- PyTorch's names for its kernels: they return the statistics, too, here with gradients --------


def _with_statistics(y: Tensor, x: Tensor, dims: Any, eps: float, keepdim: bool = False) -> Any:
    variance = x.var(dims, correction=0, keepdim=keepdim)
    return y, x.mean(dims, keepdim), (variance + eps).rsqrt()


@functor("flow", samples="x(2, 3), (3,), fixed(x(3)), None, 0.1")
def native_layer_norm(
    input: RealFloating, normalized_shape: IntOrInts, weight: Given, bias: Given, eps: Number
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `layer_norm` with the same arguments, the mean, and 1 / √(var + eps)."""
    y = layer_norm(input, normalized_shape, weight, bias, eps)
    dims = tuple(range(-len(normalized_shape), 0))
    return _with_statistics(y, input, dims, eps, keepdim=True)


@functor("flow", samples="x(2, 4, 3), fixed(x(4)), None, 2, 4, 3, 2, 0.1")
def native_group_norm(
    input: Channels, weight: Given, bias: Given, N: int, C: int, HxW: int, group: Int, eps: Number
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `group_norm` of an input (N, C, HxW), and means and 1 / √(var + eps), (N, group)."""
    y = group_norm(input, group, weight, bias, eps)
    return _with_statistics(y, input.reshape(N, group, C // group * HxW), (2,), eps)


@functor(
    "flow",
    out="same",
    samples="x(4, 2), fixed(x(2)), None, None, None, True, 0.1, 0.5; "
    "x(4, 2), x(2), x(2), fixed(x(2)), fixed(pos(2)), False, 0.1, 0.5",
)
def native_batch_norm(
    input: Channels,
    weight: Given,
    bias: Given,
    running_mean: Given,
    running_var: Given,
    training: Flag,
    momentum: Number,
    eps: Number,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `batch_norm`, and means and 1 / √(var + eps) of the batch, empty if not training."""
    y = batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training:
        return y, input.new_empty(0), input.new_empty(0)
    return _with_statistics(y, input, (0, *range(2, input.ndim)), eps)
