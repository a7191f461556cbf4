"""Fully connected layers."""

from __future__ import annotations

import math

from oneflow_lite.arrays.device import DeviceLike
from oneflow_lite.arrays.dtype import DTypeLike
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.functors.declaring.checks import check_int
from oneflow_lite.nn import functional as F, init
from oneflow_lite.nn.modules.factory import Weighted
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.tensors.tensor import Tensor


class Linear(Weighted):
    """y = x W^T + b.

    Parameters
    ----------
    in_features, out_features : int
        Sizes of the last dimension of input and output.
    bias : bool
        Whether b is added.
    device, dtype : optional
        Of the parameters.

    Notes
    -----
    Input (*, in_features), output (*, out_features). `weight` (out_features, in_features) and
    `bias` (out_features) start uniformly between -1/sqrt(in_features) and 1/sqrt(in_features).

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Linear(20, 30)(flow.ones(128, 20)).shape
    (128, 30)
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.in_features = check_int("Linear", "in_features", in_features, 0)
        self.out_features = check_int("Linear", "out_features", out_features, 0)
        self._make(device, dtype, weight=True, bias=bias)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {"weight": (self.out_features, self.in_features), "bias": (self.out_features,)}

    def forward(self, input: Tensor) -> Tensor:
        """Return the transformed input."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return self._told("", "in_features out_features bias")


class Bilinear(Weighted):
    """y[o] = x1^T W[o] x2 + b[o].

    Parameters
    ----------
    in1_features, in2_features, out_features : int
        Sizes of the last dimension of the two inputs and of the output.
    bias : bool
        Whether b is added.
    device, dtype : optional
        Of the parameters.

    Notes
    -----
    `weight` (out_features, in1_features, in2_features) and `bias` (out_features) start uniformly
    between -1/sqrt(in1_features) and 1/sqrt(in1_features).

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Bilinear(2, 3, 4)(flow.ones(5, 2), flow.ones(5, 3)).shape
    (5, 4)
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.in1_features = check_int("Bilinear", "in1_features", in1_features, 1)
        self.in2_features = check_int("Bilinear", "in2_features", in2_features, 0)
        self.out_features = check_int("Bilinear", "out_features", out_features, 0)
        self._make(device, dtype, weight=True, bias=bias)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        outputs = (self.out_features,)
        return {"weight": (*outputs, self.in1_features, self.in2_features), "bias": outputs}

    def reset_parameters(self) -> None:
        """Draw weight and bias anew."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Return the form of the two inputs."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return self._told("", "in1_features in2_features out_features bias")


guard_all(globals())
