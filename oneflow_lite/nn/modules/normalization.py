"""Normalization layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from oneflow_lite.arrays.device import DeviceLike
from oneflow_lite.arrays.dtype import DTypeLike
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.distributed.process_group import ProcessGroup
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.functors.declaring.checks import check_int
from oneflow_lite.functors.joining import cat
from oneflow_lite.nn import functional as F, init
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.factory import Weighted, filled
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor


class _Affine(Weighted):
    """The common base of normalizations: a weight that starts as ones and a bias as zeros."""

    weight: Parameter | None
    bias: Parameter | None

    def reset_parameters(self) -> None:
        """Set weight 1 and bias 0."""
        for name, fill in (("weight", init.ones_), ("bias", init.zeros_)):
            if getattr(self, name, None) is not None:
                fill(getattr(self, name))


class _NormBase(_Affine):
    """The common base of batch and instance normalization: running statistics of channels.

    `_ndims` are the numbers of dimensions that an input may have.
    """

    _version = 2  # version 1 did not count batches
    _ndims: ClassVar[tuple[int, ...]]
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
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = check_int(type(self).__name__, "num_features", num_features, 0)
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name in ("running_mean", "running_var"):
            made = (
                self._buffer((self.num_features,), device, dtype) if track_running_stats else None
            )
            self.register_buffer(name, made)
        count = filled((), 0, device, np.int64) if track_running_stats else None
        self.register_buffer("num_batches_tracked", count)
        self._make(device, dtype, weight=affine, bias=affine and bias)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(
            ("weight", "bias", "running_mean", "running_var"), (self.num_features,)
        )

    def reset_running_stats(self) -> None:
        """Reset the running statistics: means 0, variances 1."""
        if self.running_mean is not None and self.running_var is not None:
            with no_grad():
                self.running_mean.zero_()
                self.running_var.fill_(1)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Reset the running statistics and set weight 1 and bias 0."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in self._ndims:
            raise arg_error(
                type(self).__name__,
                "input",
                expected=" or ".join(f"{n}D" for n in self._ndims) + " input",
                got=f"{input.ndim}D input of shape {tuple(input.shape)}",
                hint="reshape it",
                kind=ArgumentError,
            )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        """Keep the count of batches where a state dict is older than it (before version 2)."""
        key = f"{prefix}num_batches_tracked"
        if (local_metadata.get("version") or 0) < 2 and self.num_batches_tracked is not None:
            state_dict.setdefault(key, self.num_batches_tracked)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def _channel_dim(self, input: Tensor) -> int:
        return 1

    def extra_repr(self) -> str:
        """Return the options."""
        return self._told("num_features", "eps momentum affine bias track_running_stats")


class _BatchNorm(_NormBase):
    """The common base of all batch normalizations."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the input, normalized by the batch, in evaluation mode by running statistics."""
        self._check_input_dim(input)
        mean, var, count = self.running_mean, self.running_var, self.num_batches_tracked
        if self.training and not self.track_running_stats:
            mean = var = None
        tracked = count if self.training and self.track_running_stats else None
        if tracked is not None and self.momentum is None and mean is not None and var is not None:
            y = self._with_mean_statistics(input, mean, var, tracked + 1)
        else:
            by_batch = self.training or (mean is None and var is None)
            factor = 0.0 if self.momentum is None else self.momentum  # None: not tracked here
            y = F.batch_norm(input, mean, var, self.weight, self.bias, by_batch, factor, self.eps)
        if tracked is not None:
            tracked.add_(1)
        return y

    def _with_mean_statistics(
        self, input: Tensor, mean: Tensor, var: Tensor, count: Tensor
    ) -> Tensor:
        """Return the normalized input, and let running statistics be means of all batches so far.

        The share of a batch is a tensor: a number would have to leave a captured Program.
        """
        new_mean, new_var = mean.clone(), var.clone()
        y = F.batch_norm(input, new_mean, new_var, self.weight, self.bias, True, 1.0, self.eps)
        with no_grad():
            mean.lerp_(new_mean, 1.0 / count.to(mean.dtype))
            var.lerp_(new_var, 1.0 / count.to(var.dtype))
        return y


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
    """Normalizes each channel of an input (N, C, H, W) as `BatchNorm1d`, with its parameters.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> norm = flow.nn.BatchNorm2d(3)
    >>> norm(flow.randn(4, 3, 5, 5)).shape, norm.num_batches_tracked
    ((4, 3, 5, 5), tensor(1))
    """

    _ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalizes each channel of an input (N, C, D, H, W) as `BatchNorm1d`, with its parameters.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.BatchNorm3d(3)(flow.randn(4, 3, 5, 5, 2)).shape
    (4, 3, 5, 5, 2)
    """

    _ndims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalization of an input (N, C, *) over the batches of all ranks of a group.

    The ranks exchange mean and variance of their shares in training mode; batches may differ in
    size. In one process, and before `flow.distributed.init_process_group`, this is `BatchNorm1d`
    for any number of spatial dimensions. `process_group` is the world by default.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> net = flow.nn.Sequential(flow.nn.Linear(2, 2), flow.nn.BatchNorm1d(2))
    >>> flow.nn.SyncBatchNorm.convert_sync_batchnorm(net)[1]
    SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: ProcessGroup | None = None,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        bias: bool = True,
    ) -> None:
        options = (eps, momentum, affine, track_running_stats, device, dtype)
        super().__init__(num_features, *options, bias=bias)
        self.process_group = process_group

    def forward(self, input: Tensor) -> Tensor:
        """Return the input, normalized by the batches of all ranks, or by running statistics."""
        from oneflow_lite.distributed.process_group import check_group, is_initialized

        tracks = self.running_mean is not None and self.running_var is not None
        if not is_initialized() or not (self.training or not tracks):
            return super().forward(input)
        group = check_group("SyncBatchNorm", self.process_group)
        if group.size() == 1:
            return super().forward(input)
        self._check_input_dim(input)
        return self._over_ranks(input, group)

    def _over_ranks(self, input: Tensor, group: Any) -> Tensor:
        """Join each rank's mean and sum of squares (Chan, Golub and LeVeque, 1979)."""
        from oneflow_lite.distributed.collectives import run

        # In float32: sums of half precision numbers overflow or lose digits.
        x = input.float() if input.dtype.itemsize == 2 else input
        channels = self.num_features
        dims = [0, *range(2, x.ndim)]
        shape = (1, channels, *[1] * (x.ndim - 2))
        count = x.numel() // channels
        mean = x.sum(dims) / max(count, 1)
        # Around the rank's own mean: the difference of two large sums would cancel.
        squares = (x - mean.reshape(shape)).square().sum(dims)
        rows = run("all_gather", cat([mean, squares, mean.new_full((1,), count)]), group=group)
        means, all_squares = rows[:, :channels], rows[:, channels:-1]
        counts = rows[:, -1:]
        total = counts.sum()
        mean = (means * counts).sum(0) / total
        var = (all_squares + counts * (means - mean).square()).sum(0) / total
        if self.training and self.track_running_stats:
            self._track(mean, var * (total / (total - 1)))  # running variances are unbiased
        y: Tensor = (x - mean.reshape(shape)) * (var + self.eps).rsqrt().reshape(shape)
        if self.weight is not None:
            y = y * self.weight.reshape(shape)
        if self.bias is not None:
            y = y + self.bias.reshape(shape)
        return y.to(input.dtype)

    @no_grad()
    def _track(self, mean: Tensor, var: Tensor) -> None:
        """Let the running statistics approach the statistics of a batch."""
        kept_mean, kept_var, count = self.running_mean, self.running_var, self.num_batches_tracked
        assert kept_mean is not None and kept_var is not None and count is not None
        count.add_(1)
        share = 1.0 / count.to(mean.dtype) if self.momentum is None else self.momentum
        kept_mean.lerp_(mean.to(kept_mean.dtype), share)
        kept_var.lerp_(var.to(kept_var.dtype), share)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise arg_error(
                type(self).__name__,
                "input",
                expected="at least 2D input, (N, C, *)",
                got=f"{input.ndim}D input of shape {tuple(input.shape)}",
                hint="reshape it",
                kind=ArgumentError,
            )

    @classmethod
    def convert_sync_batchnorm(
        cls, module: Module, process_group: ProcessGroup | None = None
    ) -> Module:
        """Return `module` with all batch normalizations in and below it replaced by this class.

        The new modules hold the parameters, buffers and mode of the old modules.
        """
        if isinstance(module, _BatchNorm):
            options = (module.eps, module.momentum, module.affine, module.track_running_stats)
            made = cls(module.num_features, *options, process_group)
            made._parameters.update(module._parameters)
            made._buffers.update(module._buffers)
            return made.train(module.training)
        for name, child in module.named_children():
            module.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return module


class _InstanceNorm(_NormBase):
    """The common base of all instance normalizations."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        bias: bool = True,
    ) -> None:
        options = (eps, momentum, affine, track_running_stats, device, dtype)
        super().__init__(num_features, *options, bias=bias)

    def _channel_dim(self, input: Tensor) -> int:
        return input.ndim - self._ndims[0]

    def forward(self, input: Tensor) -> Tensor:
        """Return the input, each channel of each sample normalized by itself."""
        self._check_input_dim(input)
        channels = input.shape[self._channel_dim(input)]
        if channels != self.num_features:
            expected = f"{self.num_features} channels"
            if self.affine or self.track_running_stats:
                raise arg_error(
                    type(self).__name__,
                    "input",
                    expected=expected,
                    got=f"{channels} in shape {tuple(input.shape)}",
                    hint="match num_features",
                    kind=ArgumentError,
                )
            warn_caller(f"expected {expected}, got {channels}")
        single = not self._channel_dim(input)
        y = F.instance_norm(
            input.unsqueeze(0) if single else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return y.squeeze(0) if single else y


class InstanceNorm1d(_InstanceNorm):
    """Normalizes each channel of each sample of an input (N, C, L) or (C, L) over its elements.

    The parameters are those of `BatchNorm1d`. By default the layer has no weight and bias and
    tracks nothing: then evaluation is the same as training.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.InstanceNorm1d(1)(flow.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """

    _ndims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalizes each channel of an input (N, C, H, W) or (C, H, W) as `InstanceNorm1d`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.InstanceNorm2d(3, affine=True)(flow.randn(4, 3, 5, 5)).shape
    (4, 3, 5, 5)
    """

    _ndims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalizes each channel of an input (N, C, D, H, W) or (C, D, H, W) as `InstanceNorm1d`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.InstanceNorm3d(3)(flow.randn(3, 5, 5, 2)).shape
    (3, 5, 5, 2)
    """

    _ndims = (4, 5)


class GroupNorm(_Affine):
    """Normalizes groups of channels of an input (N, C, ...), each sample by itself.

    Parameters
    ----------
    num_groups, num_channels : int
        Numbers of groups and of channels; `num_groups` divides `num_channels`.
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

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_groups = check_int("GroupNorm", "num_groups", num_groups, 1)
        self.num_channels = check_int("GroupNorm", "num_channels", num_channels, 0)
        if num_channels % num_groups:
            raise arg_error(
                "GroupNorm",
                "num_channels",
                expected=f"a multiple of num_groups={num_groups}",
                got=num_channels,
                hint="change the channels or the groups",
                kind=ArgumentError,
            )
        self.eps = eps
        self.affine = affine
        self._make(device, dtype, weight=affine, bias=affine and bias)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(("weight", "bias"), (self.num_channels,))

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalized input."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the options."""
        return self._told("num_groups num_channels", "eps affine bias")


class _OverLastDims(_Affine):
    """The common base of LayerNorm and RMSNorm."""

    eps: Any

    def _start(self, normalized_shape: Any, eps: float | None, elementwise_affine: bool) -> None:
        super().__init__()
        op, given = type(self).__name__, normalized_shape
        given = given if isinstance(given, (tuple, list)) else (given,)
        self.normalized_shape = tuple(check_int(op, "normalized_shape", n, 0) for n in given)
        self.eps = eps
        self.elementwise_affine = elementwise_affine

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(("weight", "bias"), self.normalized_shape)


class LayerNorm(_OverLastDims):
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

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self._start(normalized_shape, eps, elementwise_affine)
        self._make(device, dtype, weight=elementwise_affine, bias=elementwise_affine and bias)

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalized input."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the options."""
        return self._told("normalized_shape", "eps elementwise_affine bias")


class RMSNorm(_OverLastDims):
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

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self._start(normalized_shape, eps, elementwise_affine)
        self._make(device, dtype, weight=elementwise_affine)

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalized input."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Return the options."""
        return self._told("normalized_shape", "eps elementwise_affine")


guard_all(globals())
