"""Starting values: fill a tensor in place, outside any graph, from the library's generator."""

from __future__ import annotations

import math
import warnings
from typing import Any

from oneflow_lite.autograd.mode import no_grad
from oneflow_lite.device import on_device
from oneflow_lite.errors import ArgumentError, bad_argument
from oneflow_lite.functors.checks import check_tensor
from oneflow_lite.functors.random import (
    orthogonal_ as _orthogonal_,
    trunc_normal_ as _trunc_normal_,
)
from oneflow_lite.tensor import Tensor, make_tensor

_GAINS = {
    **dict.fromkeys(("linear", "conv1d", "conv2d", "conv3d"), 1.0),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), 1.0),
    "sigmoid": 1.0,
    "tanh": 5.0 / 3.0,
    "relu": math.sqrt(2.0),
    "selu": 0.75,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor by which weights before a nonlinearity are scaled.

    Parameters
    ----------
    nonlinearity : str
        'linear', 'conv1d' and its kin, 'sigmoid', 'tanh', 'relu', 'leaky_relu' or 'selu'.
    param : float, optional
        The slope of 'leaky_relu', 0.01 by default.

    Raises
    ------
    ArgumentError
        For another name, or a slope that is no number.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> round(flow.nn.init.calculate_gain("leaky_relu", 0.2), 4)
    1.3868
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise bad_argument(
                ArgumentError,
                "calculate_gain",
                "param",
                expected="the slope, a number",
                got=repr(param),
                mend="pass a float",
            )
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise bad_argument(
            ArgumentError,
            "calculate_gain",
            "nonlinearity",
            expected="one of " + ", ".join([*_GAINS, "leaky_relu"]),
            got=repr(nonlinearity),
            mend="choose one of these",
        )
    return _GAINS[nonlinearity]


@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with draws from U(a, b)."""
    return check_tensor("uniform_", "tensor", tensor).uniform_(a, b, generator=generator)


@no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with draws from the normal distribution with this mean and standard deviation."""
    return check_tensor("normal_", "tensor", tensor).normal_(mean, std, generator=generator)


@no_grad()
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Fill with draws from a normal distribution that is cut off outside [a, b].

    The inverse of the distribution function is applied to uniform draws.
    """
    check_tensor("trunc_normal_", "tensor", tensor)
    if not (a < b and std > 0):
        raise bad_argument(
            ArgumentError,
            "trunc_normal_",
            "a",
            expected="a < b and std > 0",
            got=f"a={a}, b={b}, std={std}",
            mend="order the bounds",
        )
    return _trunc_normal_(tensor, mean, std, a, b, generator=generator)


@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value."""
    return check_tensor("constant_", "tensor", tensor).fill_(val)  # type: ignore[no-any-return]


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity, as far as its sizes allow."""
    _check_dims("eye_", tensor, exactly=2)
    with on_device(tensor.device) as xp:
        rows, columns = tensor.shape
        return tensor.copy_(make_tensor(xp.eye(rows, columns, dtype=tensor.dtype)))  # type: ignore[no-any-return]


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Return the inputs of one output element and the outputs of one input element of a weight."""
    _check_dims("fan_in_and_fan_out", tensor, at_least=2)
    outputs, inputs, *window = tensor.shape
    return inputs * math.prod(window), outputs * math.prod(window)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with U(-c, c), c = gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010).

    >>> import oneflow_lite as flow
    >>> weight = flow.nn.init.xavier_uniform_(flow.empty(3, 3))
    >>> bool((weight.abs() <= 1).all())
    True
    """
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with N(0, s^2), s = gain * sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    return normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


def _xavier_std(tensor: Tensor, gain: float) -> float:
    fans = sum(_calculate_fan_in_and_fan_out(tensor))
    return gain * math.sqrt(2.0 / fans) if fans else 0.0


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fill with U(-c, c), c = gain * sqrt(3 / fan) (He et al., 2015).

    Parameters
    ----------
    tensor : Tensor
        A weight of two dimensions or more.
    a : float
        The slope of the leaky relu behind the weight.
    mode : {"fan_in", "fan_out"}
        Whether variances are kept in the forward or in the backward pass.
    nonlinearity : str
        See `calculate_gain`.
    generator : Generator, optional
        Drawn from instead of the default one.
    """
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fill with N(0, s^2), s = gain / sqrt(fan) (He et al., 2015); see `kaiming_uniform_`."""
    if _is_empty(tensor):
        return tensor
    std = _kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity)
    return normal_(tensor, 0.0, std, generator)


def _kaiming_std(op: str, tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise bad_argument(
            ArgumentError,
            op,
            "mode",
            expected="'fan_in' or 'fan_out'",
            got=repr(mode),
            mend="choose one of these",
        )
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    fan = fan_in if mode == "fan_in" else fan_out
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill with a (semi-)orthogonal matrix times `gain` (Saxe et al., 2013).

    Dimensions behind the first are taken as one.

    >>> import oneflow_lite as flow
    >>> q = flow.nn.init.orthogonal_(flow.empty(2, 3))
    >>> bool(((q @ q.t() - flow.eye(2)).abs() < 1e-5).all())
    True
    """
    _check_dims("orthogonal_", tensor, at_least=2)
    if tensor.numel() == 0:
        return tensor
    return _orthogonal_(tensor, gain, generator=generator)


def _is_empty(tensor: Tensor) -> bool:
    if check_tensor("init", "tensor", tensor).numel():
        return False
    warnings.warn("a tensor without elements was left as it is", stacklevel=3)
    return True


def _check_dims(op: str, tensor: Tensor, *, exactly: int | None = None, at_least: int = 0) -> None:
    ndim = check_tensor(op, "tensor", tensor).ndim
    if ndim >= at_least and exactly in (None, ndim):
        return
    raise bad_argument(
        ArgumentError,
        op,
        "tensor",
        expected=f"{exactly} dimensions" if exactly else f"at least {at_least} dimensions",
        got=f"shape {tuple(tensor.shape)}",
        mend="reshape it, or use normal_ or uniform_",
    )
