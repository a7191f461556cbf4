"""Forward mode by dual tensors, as `torch.autograd.forward_ad`: a value and its tangent in one.

A level of duals is a series of order 1 (`transforms/forward.py`). So duals go through modules and
transforms, and a backward pass goes through values and tangents.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.errors import (
    ArgumentTypeError,
    DTypeError,
    ShapeError,
    TransformError,
    arg_error,
)
from oneflow_lite.ops.exposure import expose
from oneflow_lite.tensors.tensor import Tensor
from oneflow_lite.transforms.forward import JetLevel, enter_jet, leave_jet, without_tangents
from oneflow_lite.transforms.levels import levels_of

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]
expose(globals())


class _Open(threading.local):
    """The dual levels that are open on a thread, the outermost first."""

    def __init__(self) -> None:
        self.levels: list[JetLevel] = []


_open = _Open()


class UnpackedDualTensor(NamedTuple):
    """The value and the tangent of a dual tensor; the tangent is None where it has none."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Open a level in which dual tensors can be made, and return its number.

    `dual_level` does the same as a context manager. A level may be opened inside another one: then
    tangents have tangents.

    >>> import oneflow_lite as flow
    >>> from oneflow_lite.autograd import forward_ad
    >>> level = forward_ad.enter_dual_level()
    >>> x = forward_ad.make_dual(flow.tensor(3.0), flow.tensor(1.0))
    >>> forward_ad.unpack_dual(x * x).tangent
    tensor(6.)
    >>> forward_ad.exit_dual_level(level=level)
    """
    _open.levels.append(JetLevel(1, "dual_level").__enter__())
    return len(_open.levels) - 1


@guarded
def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level that was opened last; its dual tensors lose their tangents.

    Raises `TransformError` without an open level, and where `level` is another one.
    """
    _level("exit_dual_level", level).__exit__(None, None, None)
    _open.levels.pop()


class dual_level:
    """The context manager in which dual tensors can be made.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> from oneflow_lite.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(flow.tensor([1.0, 2.0]), flow.tensor([1.0, 0.0]))
    ...     forward_ad.unpack_dual(x.prod())
    UnpackedDualTensor(primal=tensor(2.), tangent=tensor(2.))
    """

    _number = 0

    def __enter__(self) -> int:
        self._number = enter_dual_level()
        return self._number

    def __exit__(self, *exc_info: object) -> None:
        exit_dual_level(level=self._number)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a dual tensor: functions of it carry the product of their Jacobian with the tangent.

    Parameters
    ----------
    tensor, tangent : Tensor
        Of one shape, and of floating dtypes. The dual has a history where one of them has a
        history, so that tangents can be differentiated.
    level : int, optional
        The level that was opened last, and no other one.

    Raises
    ------
    TransformError
        Without an open level, for a tensor that has a tangent already, and inside of a `vmap` that
        was called after the level was opened.
    DTypeError, ShapeError
        When the two do not fit.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> from oneflow_lite.autograd import forward_ad
    >>> linear = flow.nn.Linear(2, 1, bias=False)
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(flow.ones(2), flow.tensor([1.0, 0.0]))
    ...     y, tangent = forward_ad.unpack_dual(linear(x))
    >>> bool(tangent == linear.weight[0, :1])
    True
    """
    here = _level("make_dual", level)
    for name, x in (("tensor", tensor), ("tangent", tangent)):
        if not isinstance(x, Tensor):
            got, hint = type(x).__name__, "wrap numbers with flow.tensor(...)"
            raise arg_error("make_dual", name, "a Tensor", got, hint, ArgumentTypeError)
        if x.dtype.kind not in "fc":
            expected, hint = "a floating or complex dtype", "convert it with .float()"
            raise arg_error("make_dual", name, expected, x.dtype, hint, DTypeError)
        _check_above("make_dual", x, here)
    if here.series(tensor) is not None:
        raise TransformError(
            "make_dual(): the tensor has a tangent at this level already; unpack_dual() it, or "
            "open another level"
        )
    if tensor.shape != tangent.shape:
        expected, hint = f"the tensor's shape {tensor.shape}", "a tangent for each element"
        raise arg_error("make_dual", "tangent", expected, tangent.shape, hint, ShapeError)
    if tangent.dtype != tensor.dtype:
        tangent = tangent.to(tensor.dtype)
    return enter_jet((tensor, tangent), here)


@guarded
def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return the value and the tangent of a tensor, each with the history that it has.

    Outside of a level, and for a tensor that depends on no dual, the tangent is None.

    >>> import oneflow_lite as flow
    >>> from oneflow_lite.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     forward_ad.unpack_dual(flow.tensor(1.0))
    UnpackedDualTensor(primal=tensor(1.), tangent=None)
    """
    if level is None and not _open.levels:
        return UnpackedDualTensor(tensor, None)
    here = _level("unpack_dual", level)
    _check_above("unpack_dual", tensor, here)
    series = here.series(tensor)
    if series is None:
        return UnpackedDualTensor(tensor, None)
    primal = leave_jet(tensor, here, 0)
    if primal.requires_grad and not without_tangents(primal, here):
        primal = primal._cut()
    return UnpackedDualTensor(primal, None if series[1] is None else leave_jet(tensor, here, 1))


def _level(op: str, number: int | None) -> JetLevel:
    """Return the level that was opened last, which is the one of this number."""
    if not _open.levels:
        raise TransformError(f"{op}(): no dual level is open; call it in `with dual_level():`")
    last = len(_open.levels) - 1
    if number is not None and number != last:
        raise arg_error(
            op,
            "level",
            expected=f"{last}, the dual level that was opened last",
            got=number,
            hint="leave it out",
            kind=TransformError,
        )
    return _open.levels[-1]


def _check_above(op: str, x: Any, here: JetLevel) -> None:
    """Raise for a tensor of a transform that was called inside of the dual level."""
    for level in levels_of(x):
        if level.number > here.number:
            raise TransformError(
                f"{op}(): the tensor belongs to a {level.name} that was called inside of the dual "
                f"level; open the dual level inside of the function that {level.name} calls"
            )
