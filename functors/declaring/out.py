"""`out=`: the results of a functor, written into tensors that the caller gives."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from oneflow_lite.arrays.device import Device, as_device
from oneflow_lite.arrays.dtype import DType, as_dtype, can_cast
from oneflow_lite.errors import ArgumentTypeError, DeviceError, DTypeError, GradientError, arg_error
from oneflow_lite.functors.declaring.checks import cast, check_tensor
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.mode import is_grad_enabled, no_grad
from oneflow_lite.tensors.tensor import Tensor
from oneflow_lite.tensors.views import check_memory

_COPY_ = op_expr("copy_")
_EMPTY = op_expr("empty")


def _written(
    fits: Callable[[Any, Any], bool],
    op: str,
    out: Any,
    functor: Callable[..., Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Run a functor, write its result into `out`, and return `out`.

    `out` is a tensor, or a tuple of tensors where the functor returns a tuple. It may share memory
    with the arguments, because the result is computed before anything is written. When something
    raises, nothing has been written. An `out` of another shape gets new memory, with a warning
    unless it was empty. A view of another shape raises. So do tensors that require a gradient,
    memory that is read-only or shared between its own elements, and a device that does not fit, or
    a dtype of which `fits(dtype of the result, dtype of out)` is false.
    """
    several = isinstance(out, (tuple, list))
    outs = tuple(out) if several else (out,)
    for i, x in enumerate(outs):
        _check_out(op, f"out[{i}]" if several else "out", x)
    result = functor(*args, **kwargs)
    results = result if isinstance(result, tuple) else (result,)
    if isinstance(result, tuple) != several or len(results) != len(outs):
        expected = f"a tuple of {len(results)}" if isinstance(result, tuple) else "a Tensor"
        got = f"a tuple of {len(outs)}" if several else "a Tensor"
        hint = "give as many tensors as the function returns"
        raise arg_error(op, "out", expected, got, hint, ArgumentTypeError)
    if any(y.requires_grad for y in results):
        raise _not_recorded_error(op, "out", "arguments of which one requires a gradient")
    _store(op, outs, results, fits, warn=True)
    if not several:
        return out
    return result._make(outs) if hasattr(result, "_make") else outs


write_out = functools.partial(_written, can_cast)
write_same_out = functools.partial(_written, operator.eq)
write_any_out = functools.partial(_written, lambda from_, to: True)


def out_dtype(op: str, out: Any, dtype: Any) -> DType:
    """Return the dtype of `out`, in which the result is computed; `dtype` has to be the same."""
    own: DType = check_tensor(op, "out", out)._data.dtype
    if dtype is None or as_dtype(op, dtype) == own:
        return own
    got = as_dtype(op, dtype)
    raise arg_error(op, "dtype", f"{own}, that of out", got, "leave it out", DTypeError)


def out_options(op: str, out: Any, dtype: Any, device: Any) -> tuple[DType, Device]:
    """Return dtype and device of `out`, in which an op that creates has to work."""
    own = out_dtype(op, out, dtype)
    _check_out(op, "out", out)
    given = out.device if device is None else as_device(device)
    if given == out.device:
        return own, given
    raise arg_error(op, "device", f"{out.device}, that of out", given, "leave it out", DeviceError)


def fill_out(op: str, out: Tensor, made: Tensor) -> Tensor:
    """Write the result of an op that creates into `out`, which takes its shape without a warning.

    `out` requires a gradient afterwards if `made` does.
    """
    _store(op, (out,), (made,), can_cast, warn=False)
    return out.requires_grad_() if made.requires_grad else out


def _check_out(op: str, argument: str, out: Any) -> None:
    tensors = (check_tensor(op, argument, out), out._base)
    if is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors):
        raise _not_recorded_error(
            op, argument, "one that requires a gradient, or a view of such a one"
        )
    check_memory(op, out)


def _not_recorded_error(op: str, argument: str, got: str) -> Exception:
    expected = "no tensor that requires a gradient, since a write into out is not recorded"
    hint = "call it without out, or under no_grad()"
    return arg_error(op, argument, expected, got, hint, GradientError)


def _store(
    op: str,
    outs: Sequence[Tensor],
    results: Sequence[Tensor],
    fits: Callable[[Any, Any], bool],
    warn: bool,
) -> None:
    """Write the results, after all checks and warnings."""
    resized = []
    for x, y in zip(outs, results, strict=True):
        _check_fit(op, x, y, fits)
        if x.shape != y.shape:
            resized.append((x, y.shape))
    for x, shape in resized:
        if warn and x.numel():
            warn_caller(
                f"{op}(): 'out' of shape {x.shape} was resized to {shape}, the shape of the "
                "result; pass an out of that shape, or an empty one"
            )
    with no_grad():
        for x, shape in resized:
            _resize(x, shape)
        for x, y in zip(outs, results, strict=True):
            dispatch(_COPY_, (x, cast(y, x.dtype)))


def _check_fit(op: str, out: Tensor, result: Tensor, fits: Callable[[Any, Any], bool]) -> None:
    if result._data.dtype is not out._data.dtype and not fits(result.dtype, out.dtype):
        expected = f"{result.dtype}, the dtype of the result"
        if fits is can_cast:
            expected = f"a dtype to which the result, {result.dtype}, can be cast"
        raise arg_error(op, "out", expected, out.dtype, f"pass one of {result.dtype}", DTypeError)
    if result.device != out.device:
        expected, hint = (
            f"device {result.device}, that of the result",
            "pass one on the same device",
        )
        raise arg_error(op, "out", expected, out.device, hint, DeviceError)
    if result.shape != out.shape and (out.is_view() or not out.is_leaf):
        expected = f"shape {result.shape}, that of the result"
        got = f"shape {out.shape}, of a view or an inner node, which are not resized"
        raise arg_error(op, "out", expected, got, "pass an empty tensor")


def _resize(out: Tensor, shape: tuple[int, ...]) -> None:
    """Give a tensor new memory; arrays that a graph saved of the old count as overwritten."""
    before = out.memory
    attrs = {"shape": shape, "dtype": out._data.dtype, "device": out.device}
    out.data = dispatch(_EMPTY, (), attrs)
    out.memory.version = before.version
    before.version += 1
