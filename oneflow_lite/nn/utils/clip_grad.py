"""Gradients that are too large are scaled or cut, in place, between backward and step."""

from __future__ import annotations

import math
import types
from collections.abc import Iterable

from oneflow_lite.arrays.device import Device
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import ArgumentError, GradientError, arg_error
from oneflow_lite.functors.joining import stack
from oneflow_lite.functors.statistics import norm_for
from oneflow_lite.nn.modules.factory import filled
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [grad for grad in (parameter.grad for parameter in listed) if grad is not None]


def _on(device: Device, tensor: Tensor) -> Tensor:
    return tensor if tensor.device == device else tensor.to(device)


@no_grad()
def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Return the norm of several tensors, as of a single vector of all their elements.

    Parameters
    ----------
    tensors : Tensor or iterable of Tensor
        Usually gradients.
    norm_type : float
        The p of the norm; `inf` for the largest absolute value.
    error_if_nonfinite : bool
        Whether an infinite or NaN norm is an error.
    foreach : bool, optional
        Accepted for scripts written for PyTorch; changes nothing.

    Raises
    ------
    GradientError
        When the norm is infinite or NaN and `error_if_nonfinite`.
    """
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not listed:
        return filled((), 0.0)
    p, device = float(norm_type), listed[0].device
    # A norm of norms: no sum of squares is formed that could overflow where the norm does not.
    norms = [_on(device, norm_for("norm", tensor, p, None, False)) for tensor in listed]
    total: Tensor = stack(norms).norm(p)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise GradientError(
            f"get_total_norm(): the norm of order {p} of the gradients is {total.item()}; "
            "find the tensor that overflowed, or pass error_if_nonfinite=False"
        )
    return total


@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients, in place, so that their total norm is at most `max_norm`.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Those without a gradient are passed over.
    max_norm : float
        The largest norm allowed.
    norm_type : float
        The p of the norm; `inf` for the largest absolute value.
    error_if_nonfinite : bool
        Whether an infinite or NaN norm is an error; the gradients are left alone then.
    foreach : bool, optional
        Accepted for scripts written for PyTorch; changes nothing.

    Returns
    -------
    Tensor
        The total norm before scaling, 0-d.

    Raises
    ------
    GradientError
        When the norm is infinite or NaN and `error_if_nonfinite`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([3.0, 4.0], requires_grad=True)
    >>> x.grad = flow.tensor([3.0, 4.0])
    >>> flow.nn.utils.clip_grad_norm_([x], max_norm=1.0)
    tensor(5.)
    >>> x.grad
    tensor([0.6000, 0.8000])
    """
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if not listed and isinstance(parameters, types.GeneratorType):
        warn_caller(
            "clip_grad_norm_(): the generator of parameters is empty, so nothing is clipped; it "
            "may have been used up before"
        )
    total = get_total_norm(_gradients(listed), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(listed, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Do what `clip_grad_norm_` does, under its old name, with a FutureWarning."""
    warn_caller("clip_grad_norm is now clip_grad_norm_", FutureWarning)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scale the gradients, in place, by max_norm / (total_norm + 1e-6) where that is below 1.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Those without a gradient are passed over.
    max_norm : float
        The largest norm allowed.
    total_norm : Tensor
        As `get_total_norm` returns it, 0-d.
    foreach : bool, optional
        Accepted for scripts written for PyTorch; changes nothing.
    """
    factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    for grad in _gradients(parameters):
        grad.mul_(_on(grad.device, factor))


@no_grad()
def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Cut every element of the gradients, in place, to [-clip_value, clip_value].

    Raises
    ------
    ArgumentError
        When `clip_value` is negative.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([3.0, -4.0], requires_grad=True)
    >>> x.grad = flow.tensor([3.0, -0.5])
    >>> flow.nn.utils.clip_grad_value_([x], 1.0)
    >>> x.grad
    tensor([ 1.0000, -0.5000])
    """
    bound = float(clip_value)
    if bound < 0:
        raise arg_error(
            "clip_grad_value_",
            "clip_value",
            expected="a number of at least 0",
            got=clip_value,
            hint="pass its absolute value",
            kind=ArgumentError,
        )
    for grad in _gradients(parameters):
        grad.clamp_(min=-bound, max=bound)


guard_all(globals())
