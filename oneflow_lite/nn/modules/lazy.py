"""Lazy layers: the size of their input, and with it their parameters, come with the first call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import (
    ArgumentError,
    IndexRangeError,
    MissingMethodError,
    OptionError,
    arg_error,
)
from oneflow_lite.functors.declaring.checks import check_ndim
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules import conv, normalization
from oneflow_lite.nn.modules.factory import Weighted
from oneflow_lite.nn.modules.linear import Linear
from oneflow_lite.nn.parameter import (
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
    is_lazy,
)
from oneflow_lite.tensors.tensor import Tensor


class LazyModuleMixin(Module):
    """Makes a module lazy: put it before the module's class among the bases.

    The constructor makes parameters of class `UninitializedParameter` and buffers of class
    `UninitializedBuffer`. At the first call `initialize_parameters` gets the arguments of `forward`
    and materializes them; then the module becomes a `cls_to_become`, unless that is None.
    """

    cls_to_become: ClassVar[type[Module] | None] = None
    _inferred = False

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize the parameters for these arguments; every subclass defines it."""
        raise MissingMethodError(
            f"initialize_parameters() is not defined for {type(self).__name__}; define it and call "
            "materialize(shape) on its parameters"
        )

    def has_uninitialized_params(self) -> bool:
        """Return whether the shape of a parameter or buffer is not known yet."""
        return any(map(is_lazy, (*self._parameters.values(), *self._buffers.values())))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = super().__call__  # before the class changes
        if not self._inferred:
            self.initialize_parameters(*args, **kwargs)
            if self.has_uninitialized_params():
                raise ArgumentError(
                    f"{type(self).__name__}: parameters are still uninitialized after "
                    "initialize_parameters(); materialize all of them there"
                )
            if self.cls_to_become is None:
                self._inferred = True
            else:
                self.__class__ = self.cls_to_become  # type: ignore[assignment]
        return call(*args, **kwargs)


class _Lazy(LazyModuleMixin, Weighted):
    """A lazy twin of a layer; it leaves open the size that is the layer's first argument."""

    _open: ClassVar[str]  # the attribute that holds this size, 0 until it is known

    def _size_of(self, input: Tensor) -> int:
        """Check the input and return the size of its last dimension, or the number of channels."""
        if input.ndim:
            return input.shape[-1]
        expected, hint = "at least 1 dimension", "unsqueeze it"
        raise arg_error(type(self).__name__, "input", expected, input, hint, IndexRangeError)

    def _parameter(self, shape: tuple[int, ...], device: Any, dtype: Any) -> Parameter:
        return UninitializedParameter(device=device, dtype=dtype)

    def _buffer(self, shape: tuple[int, ...], device: Any, dtype: Any) -> Tensor:
        return UninitializedBuffer(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the parameters anew, once they exist."""
        if not self.has_uninitialized_params():
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **options: Any) -> None:
        """Make and draw the parameters for this input, whatever else the call is given."""
        before = getattr(self, self._open)
        setattr(self, self._open, self._size_of(input))
        shapes, fresh = self._shapes(), self.has_uninitialized_params()
        tensors: dict[str, Any] = {**self._parameters, **self._buffers}
        for name, shape in shapes.items():
            known = tensors.get(name)
            # A state dict may have materialized some before the first call.
            if known is not None and not is_lazy(known) and known.shape != shape:
                setattr(self, self._open, before)
                expected = f"an input for {name!r}, which was loaded with shape {known.shape}"
                hint = "match the input's size"
                raise arg_error(type(self).__name__, "input", expected, input, hint, OptionError)
        for name, shape in shapes.items():
            if is_lazy(tensors.get(name)):
                tensors[name].materialize(shape)
        if fresh:
            self.reset_parameters()


def _without_size(init: Callable[..., None]) -> Any:
    """Return a constructor that leaves the first argument of `init`, a size, open."""

    @functools.wraps(init)
    def lazy_init(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, 0, *args, **kwargs)

    signature = inspect.signature(init)
    given = [p for i, p in enumerate(signature.parameters.values()) if i != 1]
    lazy_init.__dict__["__signature__"] = signature.replace(parameters=given)
    return lazy_init


class LazyLinear(_Lazy, Linear):
    """A `Linear` that takes `in_features` from its first input.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> layer = flow.nn.LazyLinear(3)
    >>> layer, layer.weight
    (LazyLinear(in_features=0, out_features=3, bias=True), <UninitializedParameter>)
    >>> layer(flow.ones(5, 2)).shape, layer
    ((5, 3), Linear(in_features=2, out_features=3, bias=True))
    """

    cls_to_become = Linear
    _open = "in_features"
    __init__ = _without_size(Linear.__init__)


class _LazyConv(_Lazy, conv._ConvNd):
    _open = "in_channels"
    __init__ = _without_size(conv._ConvNd.__init__)

    def _size_of(self, input: Tensor) -> int:
        op, n = type(self).__name__, self._spatial
        channels = check_ndim(op, input, (n + 1, n + 2)).shape[-n - 1]
        return self._channels("in_channels", channels)


class _LazyConvTranspose(_LazyConv, conv._ConvTransposeNd):
    __init__ = _without_size(conv._ConvTransposeNd.__init__)


class _LazyNorm(_Lazy, normalization._NormBase):
    _open = "num_features"
    __init__ = _without_size(normalization._NormBase.__init__)

    def _size_of(self, input: Tensor) -> int:
        self._check_input_dim(input)
        return input.shape[self._channel_dim(input)]


class LazyConv1d(_LazyConv, conv.Conv1d):
    """A `Conv1d` that takes `in_channels` from its first input.

    >>> flow.nn.LazyConv1d(8, 2)(flow.ones(2, 3, 5)).shape
    (2, 8, 4)
    """

    cls_to_become = conv.Conv1d


class LazyConv2d(_LazyConv, conv.Conv2d):
    """A `Conv2d` that takes `in_channels` from its first input.

    >>> flow.nn.LazyConv2d(8, 2)(flow.ones(2, 3, 5, 5)).shape
    (2, 8, 4, 4)
    """

    cls_to_become = conv.Conv2d


class LazyConv3d(_LazyConv, conv.Conv3d):
    """A `Conv3d` that takes `in_channels` from its first input.

    >>> flow.nn.LazyConv3d(8, 2)(flow.ones(2, 3, 5, 5, 5)).shape
    (2, 8, 4, 4, 4)
    """

    cls_to_become = conv.Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, conv.ConvTranspose1d):
    """A `ConvTranspose1d` that takes `in_channels` from its first input.

    >>> flow.nn.LazyConvTranspose1d(8, 2)(flow.ones(2, 3, 5)).shape
    (2, 8, 6)
    """

    cls_to_become = conv.ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, conv.ConvTranspose2d):
    """A `ConvTranspose2d` that takes `in_channels` from its first input.

    >>> flow.nn.LazyConvTranspose2d(8, 2)(flow.ones(2, 3, 5, 5)).shape
    (2, 8, 6, 6)
    """

    cls_to_become = conv.ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, conv.ConvTranspose3d):
    """A `ConvTranspose3d` that takes `in_channels` from its first input.

    >>> flow.nn.LazyConvTranspose3d(8, 2)(flow.ones(2, 3, 5, 5, 5)).shape
    (2, 8, 6, 6, 6)
    """

    cls_to_become = conv.ConvTranspose3d


class LazyBatchNorm1d(_LazyNorm, normalization.BatchNorm1d):
    """A `BatchNorm1d` that takes `num_features` from its first input.

    >>> flow.nn.LazyBatchNorm1d()(flow.ones(2, 3, 5)).shape
    (2, 3, 5)
    """

    cls_to_become = normalization.BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, normalization.BatchNorm2d):
    """A `BatchNorm2d` that takes `num_features` from its first input.

    >>> flow.nn.LazyBatchNorm2d()(flow.ones(2, 3, 5, 5)).shape
    (2, 3, 5, 5)
    """

    cls_to_become = normalization.BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, normalization.BatchNorm3d):
    """A `BatchNorm3d` that takes `num_features` from its first input.

    >>> flow.nn.LazyBatchNorm3d()(flow.ones(2, 3, 5, 5, 5)).shape
    (2, 3, 5, 5, 5)
    """

    cls_to_become = normalization.BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, normalization.InstanceNorm1d):
    """An `InstanceNorm1d` that takes `num_features` from its first input. By default it has
    weight and bias, and tracks.

    >>> flow.nn.LazyInstanceNorm1d()(flow.ones(2, 3, 5)).shape
    (2, 3, 5)
    """

    cls_to_become = normalization.InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, normalization.InstanceNorm2d):
    """An `InstanceNorm2d` that takes `num_features` from its first input. By default it has
    weight and bias, and tracks.

    >>> flow.nn.LazyInstanceNorm2d()(flow.ones(2, 3, 5, 5)).shape
    (2, 3, 5, 5)
    """

    cls_to_become = normalization.InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, normalization.InstanceNorm3d):
    """An `InstanceNorm3d` that takes `num_features` from its first input. By default it has
    weight and bias, and tracks.

    >>> flow.nn.LazyInstanceNorm3d()(flow.ones(2, 3, 5, 5, 5)).shape
    (2, 3, 5, 5, 5)
    """

    cls_to_become = normalization.InstanceNorm3d


guard_all(globals())
