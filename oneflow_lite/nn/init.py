"""Starting values: fill a tensor in place, outside any graph, from the library's generator."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import ParamSpec

from oneflow_lite.arrays.device import on_device
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.functors.declaring.checks import check_int, check_number, check_tensor
from oneflow_lite.functors.random import (
    Generator,
    orthogonal_ as _orthogonal_,
    trunc_normal_ as _trunc_normal_,
)
from oneflow_lite.ops.exposure import expose
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor, make_tensor

expose(globals())

_Given = ParamSpec("_Given")

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
            raise arg_error(
                "calculate_gain",
                "param",
                expected="the slope, a number",
                got=repr(param),
                hint="pass a float",
                kind=ArgumentError,
            )
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise arg_error(
            "calculate_gain",
            "nonlinearity",
            expected="one of " + ", ".join([*_GAINS, "leaky_relu"]),
            got=repr(nonlinearity),
            hint="choose one of these",
            kind=ArgumentError,
        )
    return _GAINS[nonlinearity]


@no_grad()
def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with draws from U(a, b)."""
    return check_tensor("uniform_", "tensor", tensor).uniform_(a, b, generator=generator)


@no_grad()
def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with draws from the normal distribution with this mean and standard deviation."""
    return check_tensor("normal_", "tensor", tensor).normal_(mean, std, generator=generator)


@no_grad()
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with draws from a normal distribution that is cut off outside [a, b].

    The inverse of the distribution function is applied to uniform draws.
    """
    check_tensor("trunc_normal_", "tensor", tensor)
    if not (a < b and std > 0):
        raise arg_error(
            "trunc_normal_",
            "a",
            expected="a < b and std > 0",
            got=f"a={a}, b={b}, std={std}",
            hint="order the bounds",
            kind=ArgumentError,
        )
    return _trunc_normal_(tensor, mean, std, a, b, generator=generator)


@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with a value."""
    return check_tensor("constant_", "tensor", tensor).fill_(val)


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
        return tensor.copy_(make_tensor(xp.eye(rows, columns, dtype=tensor.dtype)))


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Return for a weight the numbers of inputs per output element and of outputs per input."""
    _check_dims("fan_in_and_fan_out", tensor, at_least=2)
    outputs, inputs, *window = tensor.shape
    return inputs * math.prod(window), outputs * math.prod(window)


def _calculate_correct_fan(tensor: Tensor, mode: str, op: str = "fan_in_and_fan_out") -> int:
    """Return the number that `mode` names, 'fan_in' or 'fan_out'."""
    fans = dict(zip(("fan_in", "fan_out"), _calculate_fan_in_and_fan_out(tensor), strict=True))
    if str(mode).lower() not in fans:
        raise arg_error(
            op,
            "mode",
            expected="'fan_in' or 'fan_out'",
            got=repr(mode),
            hint="choose one of these",
            kind=ArgumentError,
        )
    return fans[mode.lower()]


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with U(-c, c), c = gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010).

    >>> import oneflow_lite as flow
    >>> weight = flow.nn.init.xavier_uniform_(flow.empty(3, 3))
    >>> bool((weight.abs() <= 1).all())
    True
    """
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
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
    generator: Generator | None = None,
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
        The generator to draw from; the library's by default.
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
    generator: Generator | None = None,
) -> Tensor:
    """Fill with N(0, s^2), s = gain / sqrt(fan) (He et al., 2015); see `kaiming_uniform_`."""
    if _is_empty(tensor):
        return tensor
    std = _kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity)
    return normal_(tensor, 0.0, std, generator)


def _kaiming_std(op: str, tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode, op))


@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill with a (semi-)orthogonal matrix times `gain` (Saxe et al., 2013).

    The dimensions after the first are taken as one.

    >>> import oneflow_lite as flow
    >>> q = flow.nn.init.orthogonal_(flow.empty(2, 3))
    >>> bool(((q @ q.t() - flow.eye(2)).abs() < 1e-5).all())
    True
    """
    _check_dims("orthogonal_", tensor, at_least=2)
    if tensor.numel() == 0:
        return tensor
    return _orthogonal_(tensor, gain, generator=generator)


@no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the filters of a convolution so that it returns its first channels, in each group.

    The filters are of 3, 4 or 5 dimensions.

    >>> import oneflow_lite as flow
    >>> flow.nn.init.dirac_(flow.empty(2, 1, 3))
    tensor([[[0., 1., 0.]],
    <BLANKLINE>
            [[0., 0., 0.]]])
    """
    _check_dims("dirac_", tensor, at_least=3, at_most=5)
    outputs, inputs, *window = tensor.shape
    if outputs % check_int("dirac_", "groups", groups, 1):
        expected, hint = f"a divisor of the {outputs} filters", "change the groups"
        raise arg_error("dirac_", "groups", expected, groups, hint, ArgumentError)
    tensor.zero_()
    each = range(min(outputs // groups, inputs))
    rows = [group * (outputs // groups) + i for group in range(groups) for i in each]
    if rows:
        tensor[(rows, [*each] * groups, *(size // 2 for size in window))] = 1
    return tensor


@no_grad()
def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Fill a matrix with N(0, std^2), and in each column a share of zeros (Martens, 2010).

    `sparsity` is the share, rounded up to whole rows.

    >>> import oneflow_lite as flow
    >>> int((flow.nn.init.sparse_(flow.empty(10, 3), 0.25) == 0).sum())
    9
    """
    _check_dims("sparse_", tensor, exactly=2)
    zeros = math.ceil(check_number("sparse_", "sparsity", sparsity) * tensor.shape[0])
    normal_(tensor, 0.0, std, generator)
    for column in range(tensor.shape[1]):
        order = F.randperm(tensor.shape[0], generator=generator, device=tensor.device)
        tensor[order[:zeros], column] = 0
    return tensor


def _is_empty(tensor: Tensor) -> bool:
    if check_tensor("init", "tensor", tensor).numel():
        return False
    warn_caller("a tensor without elements was left as it is")
    return True


def _check_dims(
    op: str,
    tensor: Tensor,
    *,
    exactly: int | None = None,
    at_least: int = 0,
    at_most: int | None = None,
) -> None:
    least, most = (exactly, exactly) if exactly else (at_least, at_most)
    ndim = check_tensor(op, "tensor", tensor).ndim
    if ndim >= least and (most is None or ndim <= most):
        return
    words = f"{least} to {most}" if at_most else f"{exactly or f'at least {at_least}'}"
    raise arg_error(
        op,
        "tensor",
        expected=f"{words} dimensions",
        got=f"shape {tuple(tensor.shape)}",
        hint="reshape it, or use normal_ or uniform_",
        kind=ArgumentError,
    )


def _deprecated(fill: Callable[_Given, Tensor]) -> Callable[_Given, Tensor]:
    """Return the function under its old name, without the underscore at the end."""
    name = fill.__name__

    @functools.wraps(fill)
    def old(*args: _Given.args, **kwargs: _Given.kwargs) -> Tensor:
        text = f"nn.init.{name[:-1]} is deprecated; call nn.init.{name}"
        warn_caller(text, FutureWarning)
        return fill(*args, **kwargs)

    old.__name__ = old.__qualname__ = name[:-1]
    old.__doc__ = f"Do what `{name}` does, and warn: this name is deprecated."
    return old


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)


guard_all(globals())
