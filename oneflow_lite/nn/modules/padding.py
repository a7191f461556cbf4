"""Modules that add entries around their input.

`padding` is a number for all sides, or (before, after) of the last dimension, then of the
second last, and so on; negative numbers cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.nn import functional as F
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.layer import layer
from oneflow_lite.nn.modules.utils import _ntuple
from oneflow_lite.tensors.tensor import Tensor


class _PadNd(Module):
    padding: int | Sequence[int]
    _spatial: ClassVar[int]

    def __post_init__(self) -> None:
        self.padding = _ntuple(2 * self._spatial)(self.padding)


@layer()
class _ConstantPadNd(_PadNd):
    padding: int | Sequence[int]
    value: float

    def forward(self, input: Tensor) -> Tensor:
        """Return the padded input."""
        # `__post_init__` has made a tuple of the padding.
        return F.pad(input, self.padding, "constant", self.value)  # type: ignore[arg-type]


class ConstantPad1d(_ConstantPadNd):
    """Adds `value` before and after the entries of the last dimension.

    >>> flow.nn.ConstantPad1d((1, 2), 9.0)(flow.zeros(1, 1))
    tensor([[9., 0., 9., 9.]])
    """

    _spatial = 1


class ConstantPad2d(_ConstantPadNd):
    """Adds `value` around images; `padding` is (left, right, top, bottom).

    >>> flow.nn.ConstantPad2d((0, 1, 1, 0), 9.0)(flow.zeros(1, 1))
    tensor([[9., 9.],
            [0., 9.]])
    """

    _spatial = 2


class ConstantPad3d(_ConstantPadNd):
    """Adds `value` around volumes; `padding` is (left, right, top, bottom, front, back).

    >>> flow.nn.ConstantPad3d(1, 0.5)(flow.zeros(1, 1, 1, 1)).shape
    (1, 3, 3, 3)
    """

    _spatial = 3


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """Return the padding."""
        return f"{self.padding}"


class ZeroPad1d(_ZeroPadNd, ConstantPad1d):
    """Adds zeros before and after the entries of the last dimension.

    >>> flow.nn.ZeroPad1d(1)(flow.ones(1, 1))
    tensor([[0., 1., 0.]])
    """


class ZeroPad2d(_ZeroPadNd, ConstantPad2d):
    """Adds zeros around images; `padding` is (left, right, top, bottom).

    >>> flow.nn.ZeroPad2d((0, 1, 1, 0))(flow.ones(1, 1))
    tensor([[0., 0.],
            [1., 0.]])
    """


class ZeroPad3d(_ZeroPadNd, ConstantPad3d):
    """Adds zeros around volumes; `padding` is (left, right, top, bottom, front, back).

    >>> flow.nn.ZeroPad3d(1)(flow.ones(1, 1, 1, 1)).shape
    (1, 3, 3, 3)
    """


@layer(shows="{padding}")
class _EdgePadNd(_PadNd):
    """Adds entries of the input, which has one or two dimensions more than are padded."""

    padding: int | Sequence[int]
    _mode: ClassVar[str]

    def forward(self, input: Tensor) -> Tensor:
        """Return the padded input."""
        if input.ndim - self._spatial not in (1, 2):
            raise arg_error(
                type(self).__name__,
                "input",
                expected=f"{self._spatial + 1} or {self._spatial + 2} dimensions",
                got=f"shape {input.shape}",
                hint="use flow.nn.functional.pad for others",
                kind=ArgumentError,
            )
        # `__post_init__` has made a tuple of the padding.
        return F.pad(input, self.padding, self._mode)  # type: ignore[arg-type]


class _ReflectionPadNd(_EdgePadNd):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Adds the entries of the last dimension of (N, C, L) or (C, L), mirrored at its ends.

    >>> flow.nn.ReflectionPad1d(2)(flow.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 2., 1., 2., 3., 2., 1.]])
    """

    _spatial = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Adds the entries of images, (N, C, H, W) or (C, H, W), mirrored at their edges.

    >>> flow.nn.ReflectionPad2d((1, 1, 0, 1))(flow.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[2., 1., 2., 1.],
             [4., 3., 4., 3.],
             [2., 1., 2., 1.]]])
    """

    _spatial = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Adds the entries of volumes, (N, C, D, H, W) or (C, D, H, W), mirrored at their faces.

    >>> flow.nn.ReflectionPad3d(1)(flow.ones(1, 2, 2, 2)).shape
    (1, 4, 4, 4)
    """

    _spatial = 3


class _ReplicationPadNd(_EdgePadNd):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Repeats the first and the last entry of the last dimension of (N, C, L) or (C, L).

    >>> flow.nn.ReplicationPad1d((2, 1))(flow.tensor([[1.0, 2.0]]))
    tensor([[1., 1., 1., 2., 2.]])
    """

    _spatial = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Repeats the edges of images, (N, C, H, W) or (C, H, W).

    >>> flow.nn.ReplicationPad2d((1, 0, 0, 1))(flow.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2.],
             [1., 1., 2.]]])
    """

    _spatial = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Repeats the faces of volumes, (N, C, D, H, W) or (C, D, H, W).

    >>> flow.nn.ReplicationPad3d(1)(flow.ones(1, 2, 2, 2)).shape
    (1, 4, 4, 4)
    """

    _spatial = 3


class _CircularPadNd(_EdgePadNd):
    _mode = "circular"


class CircularPad1d(_CircularPadNd):
    """Adds the entries from the other end of the last dimension of (N, C, L) or (C, L).

    >>> flow.nn.CircularPad1d((2, 1))(flow.tensor([[1.0, 2.0, 3.0]]))
    tensor([[2., 3., 1., 2., 3., 1.]])
    """

    _spatial = 1


class CircularPad2d(_CircularPadNd):
    """Adds the entries from the other edges of images, (N, C, H, W) or (C, H, W).

    >>> flow.nn.CircularPad2d((1, 0, 0, 1))(flow.tensor([[[1.0, 2.0]]]))
    tensor([[[2., 1., 2.],
             [2., 1., 2.]]])
    """

    _spatial = 2


class CircularPad3d(_CircularPadNd):
    """Adds the entries from the other faces of volumes, (N, C, D, H, W) or (C, D, H, W).

    >>> flow.nn.CircularPad3d(1)(flow.ones(1, 2, 2, 2)).shape
    (1, 4, 4, 4)
    """

    _spatial = 3


guard_all(globals())
