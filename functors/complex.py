"""Complex numbers: their parts, their phase, and what makes them of real ones."""

from __future__ import annotations

from typing import Annotated

from oneflow_lite.errors import DTypeError, ShapeError
from oneflow_lite.functors.arithmetic import sign
from oneflow_lite.functors.checks import check_broadcast, check_tensor
from oneflow_lite.functors.declare import functor, unary
from oneflow_lite.functors.domains import AnyTensor, Floating, pair, tensor
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

_CONJ = op_expr("conj")
_SGN = op_expr("sgn")
_VIEW_AS_COMPLEX = op_expr("view_as_complex")


@functor("flow Tensor")
def conj(input: AnyTensor) -> Tensor:
    """Return the complex conjugate; a real tensor is returned as it is.

    >>> flow.conj(flow.tensor([3 + 4j]))
    tensor([3.-4.j])
    """
    return dispatch1(_CONJ, input) if input.is_complex() else input


@functor("flow Tensor", out=True, twin=True)
def sgn(input: AnyTensor) -> Tensor:
    """Return z / abs(z) of complex numbers, and 0 for 0; of real numbers the sign.

    The derivative at 0 is 0.

    >>> flow.sgn(flow.tensor([3 + 4j, 0j]))
    tensor([0.6000+0.8000j, 0.0000+0.0000j])
    """
    return dispatch1(_SGN, input) if input.is_complex() else sign(input)


angle = unary(
    "angle",
    "Return the argument of complex numbers, in radians; 0 or pi for real ones.\n\n"
    "The derivative at 0 is 0.",
    "[1.0, -1.0] -> tensor([0.0000, 3.1416])",
    domain=Floating,
    samples="x(2, 3); z(2, 3)",
)


def _part(op: str, value: Tensor, argument: str) -> Tensor:
    """Return a tensor of a dtype that has a complex one."""
    if check_tensor(op, argument, value)._data.dtype.char in "fd":
        return value
    raise DTypeError(
        f"{op}(): argument '{argument}': expected float32 or float64, got {value.dtype}; "
        "convert it with .float()"
    )


def _parts(op: str, names: tuple[str, str], first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Check that two tensors are real, of one dtype that has a complex one, and broadcast."""
    _part(op, first, names[0]), _part(op, second, names[1])
    if first.dtype is not second.dtype:
        raise DTypeError(
            f"{op}(): argument '{names[1]}': expected {first.dtype}, the dtype of {names[0]}, "
            f"got {second.dtype}; convert one of them"
        )
    check_broadcast(op, names[1], second, first)
    return first, second


def _cartesian(op: str, real: Tensor, imag: Tensor) -> tuple[Tensor, Tensor]:
    return _parts(op, ("real", "imag"), real, imag)


def _polar(op: str, abs: Tensor, angle: Tensor) -> tuple[Tensor, Tensor]:
    return _parts(op, ("abs", "angle"), abs, angle)


_SAYS = "Both float32 or both float64; their shapes broadcast together."
_WHEN = "When a dtype is another, or the two differ."
Cartesian = Annotated[Tensor, pair(_cartesian, _SAYS, _WHEN)]
Polar = Annotated[Tensor, pair(_polar, _SAYS, _WHEN)]


@functor("flow", out=True)
def complex(real: Cartesian, imag: Cartesian) -> Tensor:
    """Return the complex tensor with these parts.

    >>> flow.complex(flow.tensor([1.0, 2.0]), flow.tensor(-1.0))
    tensor([1.-1.j, 2.-1.j])
    """


@functor("flow", out=True, samples="pos(2, 3), x(2, 3)")
def polar(abs: Polar, angle: Polar) -> Tensor:
    """Return the complex tensor abs · (cos(angle) + i sin(angle)), the angle in radians.

    >>> flow.polar(flow.tensor([1.0, 2.0]), flow.tensor(0.0))
    tensor([1.+0.j, 2.+0.j])
    """


def _complex(op: str, value: Tensor, argument: str) -> Tensor:
    if check_tensor(op, argument, value).is_complex():
        return value
    raise DTypeError(
        f"{op}(): argument '{argument}': expected a complex dtype, got {value.dtype}; convert "
        "it with .cfloat(), or use it as it is"
    )


Complex = Annotated[
    Tensor, tensor(_complex, "c", "Complex.", "z(2, 3)", DTypeError="When {x} is real.")
]
Pairs = Annotated[
    Tensor, tensor(_part, "", "float32 or float64.", "x(3, 2)", DTypeError="When {x} is another.")
]


@functor("flow")
def view_as_real(input: Complex) -> Tensor:
    """Return a view of complex numbers, of shape (*), as pairs of real ones, of shape (*, 2).

    >>> flow.view_as_real(flow.tensor([1 + 2j, 3 - 1j]))
    tensor([[ 1.,  2.],
            [ 3., -1.]])
    """


@functor("flow")
def view_as_complex(input: Pairs) -> Tensor:
    """Return a view of pairs of real numbers, of shape (*, 2), as complex ones, of shape (*).

    ShapeError: when the last dimension is not of size 2, or is not contiguous.

    >>> flow.view_as_complex(flow.tensor([[1.0, 2.0], [3.0, -1.0]]))
    tensor([1.+2.j, 3.-1.j])
    """
    if input.shape[-1:] == (2,) and (not input.numel() or input.stride(-1) == 1):
        return dispatch1(_VIEW_AS_COMPLEX, input)
    raise ShapeError(
        "view_as_complex(): argument 'input': expected a last dimension of size 2, contiguous, "
        f"got shape {input.shape}; put the pairs last, as with movedim(..., -1).contiguous()"
    )
