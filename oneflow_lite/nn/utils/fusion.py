"""A layer and the batch normalization behind it, in evaluation mode, become one layer."""

from __future__ import annotations

import copy
from typing import Any

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import OptionError, arg_error
from oneflow_lite.functors.creation import ones_like, zeros_like
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.tensors.tensor import Tensor


def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Any:
    """Return a copy of a convolution into which the normalization behind it is merged.

    Parameters
    ----------
    conv, bn : Module
        A convolution and a batch normalization, both in evaluation mode.
    transpose : bool
        Whether it is a transposed convolution, whose output channels are in dimension 1.

    Raises
    ------
    OptionError
        When either is in training mode, or `bn` does not track its statistics.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> net = flow.nn.Sequential(flow.nn.Conv2d(1, 2, 3), flow.nn.BatchNorm2d(2)).eval()
    >>> fused = flow.nn.utils.fuse_conv_bn_eval(net[0], net[1])
    >>> x = flow.randn(1, 1, 5, 5)
    >>> flow.allclose(fused(x), net(x), atol=1e-5)
    True
    """
    _check_modes("fuse_conv_bn_eval", conv, bn)
    fused = copy.deepcopy(conv)
    statistics = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    fused.weight, fused.bias = fuse_conv_bn_weights(conv.weight, conv.bias, *statistics, transpose)
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of the convolution that `fuse_conv_bn_eval` makes.

    With s = bn_w / sqrt(bn_rv + bn_eps) they are s conv_w and s (conv_b - bn_rm) + bn_b.
    """
    scale = (ones_like(bn_rm) if bn_w is None else bn_w) * (bn_rv + bn_eps).rsqrt()
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    return _fused(conv_w, conv_b, bn_rm, bn_b, scale, scale.reshape(shape))


def fuse_linear_bn_eval(linear: Module, bn: Module) -> Any:
    """Return a copy of a linear layer into which the normalization behind it is merged.

    Raises
    ------
    OptionError
        When either is in training mode, `bn` does not track its statistics, or `bn` has neither one
        feature nor as many as the layer has outputs.
    """
    _check_modes("fuse_linear_bn_eval", linear, bn)
    if bn.num_features not in (1, linear.out_features):
        raise arg_error(
            "fuse_linear_bn_eval",
            "bn",
            expected=f"1 or {linear.out_features} features, as the linear layer has outputs",
            got=bn.num_features,
            hint="fuse neighbours only",
            kind=OptionError,
        )
    fused = copy.deepcopy(linear)
    statistics = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    fused.weight, fused.bias = fuse_linear_bn_weights(linear.weight, linear.bias, *statistics)
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of the layer that `fuse_linear_bn_eval` makes."""
    scale = (ones_like(bn_rm) if bn_w is None else bn_w) * (bn_rv + bn_eps).rsqrt()
    return _fused(linear_w, linear_b, bn_rm, bn_b, scale, scale.unsqueeze(-1))


def _fused(
    weight: Tensor,
    bias: Tensor | None,
    mean: Tensor,
    bn_bias: Tensor | None,
    scale: Tensor,
    scale_of_weight: Tensor,
) -> tuple[Parameter, Parameter]:
    shift = zeros_like(mean) if bn_bias is None else bn_bias
    new_weight = (weight * scale_of_weight).to(weight.dtype)
    new_bias = ((-mean if bias is None else bias - mean) * scale + shift).to(
        weight.dtype if bias is None else bias.dtype
    )
    return (
        Parameter(new_weight, weight.requires_grad),
        Parameter(new_bias, bias is not None and bias.requires_grad),
    )


def _check_modes(op: str, layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise arg_error(
            op,
            "bn" if bn.training else "module",
            expected="evaluation mode",
            got="training mode",
            hint="call eval() on both",
            kind=OptionError,
        )
    if bn.running_mean is None or bn.running_var is None:
        raise arg_error(
            op,
            "bn",
            expected="a layer that tracks its statistics",
            got="one with track_running_stats=False",
            hint="without statistics there is nothing to fuse",
            kind=OptionError,
        )


guard_all(globals())
