"""Fully connected layers."""

from __future__ import annotations

import math
from typing import Any

from oneflow_lite.functors.checks import check_int
from oneflow_lite.nn import functional as F, init
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.factory import parameter
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.tensor import Tensor


class Linear(Module):
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
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = check_int("Linear", "in_features", in_features, 0)
        self.out_features = check_int("Linear", "out_features", out_features, 0)
        self.weight = parameter((self.out_features, self.in_features), device, dtype)
        self.register_parameter(
            "bias", parameter((self.out_features,), device, dtype) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        reset_weight_and_bias(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Return the transformed input."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


def reset_weight_and_bias(weight: Tensor, bias: Tensor | None) -> None:
    """Draw weight and bias uniformly within 1/sqrt(fan_in), as Linear and the convolutions do."""
    if weight.numel():
        init.kaiming_uniform_(weight, a=math.sqrt(5))
    fan_in = math.prod(weight.shape[1:])
    if bias is not None and fan_in:
        bound = 1 / math.sqrt(fan_in)
        init.uniform_(bias, -bound, bound)
