"""The errors of a call: what a kernel raised, told in the terms of the op and its tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite.arrays.device import Device
from oneflow_lite.errors import (
    CaptureError,
    DeviceError,
    ShapeError,
    arg_error,
    is_too_large,
    too_large_error,
    type_error,
)
from oneflow_lite.ops.op_expr import OpExpr


def explain(
    op: OpExpr, inputs: tuple[Any, ...], error: Exception, attrs: dict[str, Any] | None = None
) -> Exception:
    """Turn a failed broadcast into a `ShapeError`, and a size that is refused into another one.

    The op is added to any other error of a kernel.
    """
    shapes = [x.shape for x in inputs if x is not None]
    refused = type(error) is ValueError  # by NumPy; our own errors say what is wrong
    if refused and len(shapes) > 1 and not _broadcast(shapes):
        return arg_error(
            op.op_type_name,
            op.schema.inputs[-1] if op.schema.inputs else "tensors",
            expected="shapes that broadcast together",
            got=" and ".join(map(str, shapes)),
            hint="make the sizes equal or 1, counted from the last dimension",
            kind=ShapeError,
        ).with_traceback(error.__traceback__)
    if is_too_large(error):
        told = {name: a for name, a in (attrs or {}).items() if isinstance(a, int | float | tuple)}
        given = [f"{name}={value!r}" for name, value in told.items()]
        named = ", ".join([f"input shapes {shapes}"] * bool(shapes) + given)
        return too_large_error(op.op_type_name, named, error)
    error.add_note(f"in the kernel of op {op.op_type_name!r}, input shapes {shapes}")
    return error


def _broadcast(shapes: list[tuple[int, ...]]) -> bool:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


def not_a_tensor_error(op: str, argument: str, value: Any, expected: str) -> Exception:
    """Build the error for an operand that cannot become a tensor."""
    return type_error(op, argument, expected, value, "wrap the value with flow.tensor(...)")


def two_devices_error(op: OpExpr, position: int, expected: Device, got: Device) -> Exception:
    """Build the error for an input on another device than the inputs before it."""
    several = [f"{op.schema.variadic}[{k}]" for k in range(position + 1)]
    return arg_error(
        op.op_type_name,
        (*op.schema.inputs, *several)[position],
        expected=f"device {expected}, that of the arguments before it",
        got=got,
        hint=f"move it with .to('{expected}')",
        kind=DeviceError,
    )


def symbolic_error(op: str, x: Any) -> CaptureError:
    """Build the error for a variable of a Program where ops run at once."""
    return CaptureError(
        f"{op}(): {x.name or 'a symbolic tensor'!r} is a variable of a Program and has no value "
        "of its own; compute with it under program_guard"
    )


def global_tensor_error(op: str) -> CaptureError:
    """Build the error for a global tensor where ops are recorded."""
    return CaptureError(
        f"{op}(): global tensors run eagerly, not inside of flow.compile or of a Program; use them "
        "outside, or compile what works on their parts (to_local())"
    )
