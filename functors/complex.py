"""Complex numbers for users: their parts, their phase, and how real numbers make them."""

from __future__ import annotations

import functools
from typing import Annotated

from oneflow_lite.errors import DTypeError, arg_error
from oneflow_lite.functors.declaring.checks import check_broadcast, check_tensor, dtype_check
from oneflow_lite.functors.declaring.declare import functor, unary
from oneflow_lite.functors.declaring.domains import AnyTensor, Floating, pair, tensor
from oneflow_lite.interpreter.dispatch import dispatch1
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor


@functor("flow Tensor")
def conj(input: AnyTensor) -> Tensor:
    """Return the complex conjugate; a real tensor is returned as it is."""
    return dispatch1(op_expr("conj"), input) if input.is_complex() else input


@functor("flow Tensor", out="same", twin=True)
def sgn(input: AnyTensor) -> Tensor:
    """Return z / abs(z), the sign of real numbers; at 0 it is 0, and the derivative too.

    >>> flow.sgn(flow.tensor([3 + 4j, 0j]))
    tensor([0.6000+0.8000j, 0.0000+0.0000j])
    """
    return dispatch1(op_expr("sgn"), input) if input.is_complex() else input.sign()


angle = unary(
    "angle",
    "Return the argument of complex numbers, in radians, with derivative 0 at 0; 0 or π for reals.",
    "[1.0, -1.0] -> tensor([0.0000, 3.1416])",
    domain=Floating,
    samples="x(2, 3); z(2, 3)",
)


def _part(op: str, value: Tensor, argument: str) -> Tensor:
    """Return a tensor of float32 or float64, the dtypes of parts of complex numbers."""
    if check_tensor(op, argument, value)._data.dtype.char in "fd":
        return value
    expected, hint = "float32 or float64", "convert it with .float()"
    raise arg_error(op, argument, expected, value.dtype, hint, DTypeError)


def _parts(op: str, first: Tensor, second: Tensor, names: tuple[str, str]) -> tuple[Tensor, Tensor]:
    """Check that two tensors are both float32 or both float64, and that their shapes broadcast."""
    _part(op, first, names[0]), _part(op, second, names[1])
    if first._data.dtype is not second._data.dtype:
        expected = f"{first.dtype}, the dtype of {names[0]}"
        raise arg_error(op, names[1], expected, second.dtype, "convert one of them", DTypeError)
    check_broadcast(op, names[1], second, first)
    return first, second


_SAYS = "Both float32 or both float64; their shapes broadcast together."
_WHEN = "When a dtype is another, or the two differ."
Cartesian = Annotated[Tensor, pair(functools.partial(_parts, names=("real", "imag")), _SAYS, _WHEN)]
Polar = Annotated[Tensor, pair(functools.partial(_parts, names=("abs", "angle")), _SAYS, _WHEN)]


@functor("flow", out="same")
def complex(real: Cartesian, imag: Cartesian) -> Tensor:
    """Return the complex tensor with these parts."""


@functor("flow", out="same", samples="pos(2, 3), x(2, 3)")
def polar(abs: Polar, angle: Polar) -> Tensor:
    """Return the complex tensor abs · (cos(angle) + i sin(angle)), the angle in radians."""


_complex = dtype_check("c", "a complex dtype", "convert it with .cfloat(), or use it as it is")
_reals = tensor(_part, "", "float32 or float64.", "x(3, 2)", DTypeError="When {x} is another.")
_complexes = tensor(_complex, "c", "Complex.", "z(2, 3)", DTypeError="When {x} is real.")
Complex = Annotated[Tensor, _complexes]
Pairs = Annotated[Tensor, _reals]


@functor("flow")
def view_as_real(input: Complex) -> Tensor:
    """Return a view of complex numbers, of shape (*), as pairs of real parts, of shape (*, 2)."""


@functor("flow")
def view_as_complex(input: Pairs) -> Tensor:
    """Return a view of pairs of real numbers, of shape (*, 2), as complex numbers, of shape (*).

    ShapeError: when the last dimension is not of size 2, or is not contiguous.

    >>> flow.view_as_complex(flow.tensor([[1.0, 2.0], [3.0, -1.0]]))
    tensor([1.+2.j, 3.-1.j])
    """
    if input.shape[-1:] == (2,) and (not input.numel() or input.stride(-1) == 1):
        return dispatch1(op_expr("view_as_complex"), input)
    expected = "a last dimension of size 2, contiguous"
    hint = "put the pairs last, as with movedim(..., -1).contiguous()"
    raise arg_error("view_as_complex", "input", expected, input, hint)
