"""Normalization layers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from oneflow_lite.autograd.mode import no_grad
from oneflow_lite.errors import ArgumentError, bad_argument
from oneflow_lite.functors.checks import check_int
from oneflow_lite.nn import functional as F, init
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.factory import filled, parameter
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.tensor import Tensor


class _BatchNorm(Module):
    """What BatchNorm1d and BatchNorm2d have in common."""

    _ndims: ClassVar[tuple[int, ...]]
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = check_int(type(self).__name__, "num_features", num_features, 0)
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        shape = (self.num_features,)
        ones = parameter(shape, device, dtype, value=1.0) if affine else None
        zeros = parameter(shape, device, dtype) if affine and bias else None
        self.register_parameter("weight", ones)
        self.register_parameter("bias", zeros)
        tracked = track_running_stats
        self.register_buffer("running_mean", filled(shape, 0.0, device, dtype) if tracked else None)
        self.register_buffer("running_var", filled(shape, 1.0, device, dtype) if tracked else None)
        self.register_buffer(
            "num_batches_tracked", filled((), 0, device, np.int64) if tracked else None
        )

    def reset_running_stats(self) -> None:
        """Forget what was tracked: means 0, variances 1."""
        if self.running_mean is not None and self.running_var is not None:
            with no_grad():
                self.running_mean.zero_()
                self.running_var.fill_(1)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget what was tracked and set weight 1 and bias 0."""
        self.reset_running_stats()
        _reset_affine(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Return the input, normalized by the batch or in evaluation mode by what was tracked."""
        if input.ndim not in self._ndims:
            raise bad_argument(
                ArgumentError,
                type(self).__name__,
                "input",
                expected=" or ".join(f"{n}D" for n in self._ndims) + " input",
                got=f"{input.ndim}D input of shape {tuple(input.shape)}",
                mend="reshape it, with the channels in dimension 1",
            )
        factor = 0.0 if self.momentum is None else self.momentum
        tracks = self.training and self.track_running_stats
        if tracks and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            mean, var = self.running_mean, self.running_var
            if self.momentum is None and mean is not None and var is not None:
                return self._with_mean_statistics(input, mean, var, self.num_batches_tracked)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        uses_running = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if uses_running else None,
            self.running_var if uses_running else None,
            self.weight,
            self.bias,
            by_batch,
            factor,
            self.eps,
        )

    def _with_mean_statistics(
        self, input: Tensor, mean: Tensor, var: Tensor, count: Tensor
    ) -> Tensor:
        """Return the normalized input; what is tracked becomes the mean over all batches so far.

        The share of a batch is a tensor, for a number would have to leave a captured Program.
        """
        new_mean, new_var = mean.clone(), var.clone()
        y = F.batch_norm(input, new_mean, new_var, self.weight, self.bias, True, 1.0, self.eps)
        with no_grad():
            mean.lerp_(new_mean, 1.0 / count.to(mean.dtype))
            var.lerp_(new_var, 1.0 / count.to(var.dtype))
        return y

    def extra_repr(self) -> str:
        """Return the options."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Normalizes each channel of an input (N, C) or (N, C, L) over all but the channels.

    y = (x - mean) / sqrt(var + eps) * weight + bias.

    Parameters
    ----------
    num_features : int
        The number of channels C.
    eps : float
        Added to the variance.
    momentum : float or None
        Share of the newest batch in the running mean and variance; None averages all batches.
    affine : bool
        Whether there is a weight (and with `bias` a bias) for each channel.
    track_running_stats : bool
        Whether running mean and variance are kept, for use in evaluation mode.
    device, dtype : optional
        Of parameters and buffers.
    bias : bool
        Whether an affine layer has a bias.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.BatchNorm1d(2)(flow.tensor([[1.0, 2.0], [3.0, 2.0]])).shape
    (2, 2)
    """

    _ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalizes each channel of an input (N, C, H, W) over all but the channels.

    y = (x - mean) / sqrt(var + eps) * weight + bias; the parameters are those of `BatchNorm1d`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> norm = flow.nn.BatchNorm2d(3)
    >>> norm(flow.randn(4, 3, 5, 5)).shape, norm.num_batches_tracked
    ((4, 3, 5, 5), tensor(1))
    """

    _ndims = (4,)


class LayerNorm(Module):
    """Normalizes over the last dimensions, each sample by itself.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        The sizes of the dimensions that are normalized over.
    eps : float
        Added to the variance.
    elementwise_affine : bool
        Whether there is a weight (and with `bias` a bias) for each normalized element.
    bias : bool
        Whether an affine layer has a bias.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.LayerNorm(2)(flow.tensor([[1.0, 3.0]])).shape
    (1, 2)
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _normalized_shape("LayerNorm", normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape, affine = self.normalized_shape, elementwise_affine
        ones = parameter(shape, device, dtype, value=1.0) if affine else None
        zeros = parameter(shape, device, dtype) if affine and bias else None
        self.register_parameter("weight", ones)
        self.register_parameter("bias", zeros)

    def reset_parameters(self) -> None:
        """Set weight 1 and bias 0."""
        _reset_affine(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalized input."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the options."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class GroupNorm(Module):
    """Normalizes groups of channels of an input (N, C, ...), each sample by itself.

    Parameters
    ----------
    num_groups, num_channels : int
        The channels are divided into this many groups.
    eps : float
        Added to the variance.
    affine : bool
        Whether there is a weight (and with `bias` a bias) for each channel.
    device, dtype : optional
        Of the parameters.
    bias : bool
        Whether an affine layer has a bias.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.GroupNorm(2, 6)(flow.randn(4, 6, 5)).shape
    (4, 6, 5)
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_groups = check_int("GroupNorm", "num_groups", num_groups, 1)
        self.num_channels = check_int("GroupNorm", "num_channels", num_channels, 1)
        if num_channels % num_groups:
            raise bad_argument(
                ArgumentError,
                "GroupNorm",
                "num_channels",
                expected=f"a multiple of num_groups={num_groups}",
                got=num_channels,
                mend="change the channels or the groups",
            )
        self.eps = eps
        self.affine = affine
        shape = (self.num_channels,)
        ones = parameter(shape, device, dtype, value=1.0) if affine else None
        zeros = parameter(shape, device, dtype) if affine and bias else None
        self.register_parameter("weight", ones)
        self.register_parameter("bias", zeros)

    def reset_parameters(self) -> None:
        """Set weight 1 and bias 0."""
        _reset_affine(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalized input."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the options."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divides by the root of the mean square over the last dimensions.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        The sizes of the dimensions that are normalized over.
    eps : float, optional
        Added to the mean square; the dtype's machine epsilon when None.
    elementwise_affine : bool
        Whether there is a weight for each normalized element.
    device, dtype : optional
        Of the weight.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.RMSNorm(2)(flow.tensor([[3.0, 3.0]])).detach()
    tensor([[1., 1.]])
    """

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _normalized_shape("RMSNorm", normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape
        ones = parameter(shape, device, dtype, value=1.0) if elementwise_affine else None
        self.register_parameter("weight", ones)

    def reset_parameters(self) -> None:
        """Set the weight to 1."""
        _reset_affine(self.weight, None)

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalized input."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Return the options."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


def _normalized_shape(op: str, shape: Any) -> tuple[int, ...]:
    given = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(check_int(op, "normalized_shape", size, 0) for size in given)


def _reset_affine(weight: Tensor | None, bias: Tensor | None) -> None:
    if weight is not None:
        init.ones_(weight)
    if bias is not None:
        init.zeros_(bias)
