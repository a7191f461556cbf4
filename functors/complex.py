"""Complex numbers: their parts, their phase, and what makes them of real ones."""

from __future__ import annotations

from oneflow_lite.errors import DTypeError, ShapeError, bad_argument
from oneflow_lite.functors.arithmetic import sign
from oneflow_lite.functors.checks import check_broadcast, check_tensor, floating
from oneflow_lite.functors.out import write_out
from oneflow_lite.interpreter import dispatch1, dispatch2
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import register_functor
from oneflow_lite.tensor import Tensor

_CONJ = op_expr("conj")
_SGN = op_expr("sgn")
_ANGLE = op_expr("angle")
_COMPLEX = op_expr("complex")
_POLAR = op_expr("polar")
_VIEW_AS_REAL = op_expr("view_as_real")
_VIEW_AS_COMPLEX = op_expr("view_as_complex")


@register_functor("conj")
def conj(input: Tensor) -> Tensor:
    """Return the complex conjugate; a real tensor is returned as it is."""
    return dispatch1(_CONJ, input) if check_tensor("conj", "input", input).is_complex() else input


@register_functor("sgn")
def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return z / abs(z) of complex numbers, and 0 for 0; of real numbers the sign.

    The derivative at 0 is 0.

    Parameters
    ----------
    input : Tensor
        Of any shape and dtype, which the result keeps.
    out : Tensor, optional
        Receives the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.sgn(flow.tensor([3 + 4j, 0j]))
    tensor([0.6000+0.8000j, 0.0000+0.0000j])
    """
    if out is not None:
        return write_out("sgn", out, sgn, input)
    if check_tensor("sgn", "input", input).is_complex():
        return dispatch1(_SGN, input)
    return sign(input)


@register_functor("angle")
def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the argument of complex numbers, in radians; 0 or pi for real ones.

    The derivative at 0 is 0.
    """
    if out is not None:
        return write_out("angle", out, angle, input)
    return dispatch1(_ANGLE, floating("angle", input))


def _check_parts(op: str, **parts: Tensor) -> None:
    """Check that two tensors are real, of one dtype that has a complex one, and broadcast."""
    (first_name, first), (second_name, second) = parts.items()
    for argument, part in parts.items():
        if check_tensor(op, argument, part)._data.dtype.char not in "fd":
            raise bad_argument(
                DTypeError,
                op,
                argument,
                expected="float32 or float64",
                got=part.dtype,
                mend="convert it with .float()",
            )
    if first.dtype is not second.dtype:
        raise bad_argument(
            DTypeError,
            op,
            second_name,
            expected=f"{first.dtype}, the dtype of {first_name}",
            got=second.dtype,
            mend="convert one of them",
        )
    check_broadcast(op, second_name, second, first)


@register_functor("complex")
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the complex tensor with these parts.

    Parameters
    ----------
    real, imag : Tensor
        Both float32 or both float64; their shapes broadcast together.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DTypeError
        When a dtype is another, or the two differ.
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.complex(flow.tensor([1.0, 2.0]), flow.tensor(-1.0))
    tensor([1.-1.j, 2.-1.j])
    """
    if out is not None:
        return write_out("complex", out, complex, real, imag)
    _check_parts("complex", real=real, imag=imag)
    return dispatch2(_COMPLEX, real, imag)


@register_functor("polar")
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the complex tensor abs · (cos(angle) + i sin(angle)).

    Parameters
    ----------
    abs, angle : Tensor
        Both float32 or both float64; their shapes broadcast together. The angle is in radians.
    out : Tensor, optional
        Receives the result.

    Raises
    ------
    DTypeError
        When a dtype is another, or the two differ.
    ShapeError
        When the shapes do not broadcast.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.polar(flow.tensor([1.0, 2.0]), flow.tensor(0.0))
    tensor([1.+0.j, 2.+0.j])
    """
    if out is not None:
        return write_out("polar", out, polar, abs, angle)
    _check_parts("polar", abs=abs, angle=angle)
    return dispatch2(_POLAR, abs, angle)


@register_functor("view_as_real")
def view_as_real(input: Tensor) -> Tensor:
    """Return a view of complex numbers as pairs of real ones.

    Parameters
    ----------
    input : Tensor
        Complex, of shape (*).

    Returns
    -------
    Tensor
        Real, of shape (*, 2); shares memory with `input`.

    Raises
    ------
    DTypeError
        When `input` is real.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.view_as_real(flow.tensor([1 + 2j, 3 - 1j]))
    tensor([[ 1.,  2.],
            [ 3., -1.]])
    """
    if check_tensor("view_as_real", "input", input).is_complex():
        return dispatch1(_VIEW_AS_REAL, input)
    raise bad_argument(
        DTypeError,
        "view_as_real",
        "input",
        expected="a complex dtype",
        got=input.dtype,
        mend="convert it with .cfloat(), or use it as it is",
    )


@register_functor("view_as_complex")
def view_as_complex(input: Tensor) -> Tensor:
    """Return a view of pairs of real numbers as complex ones.

    Parameters
    ----------
    input : Tensor
        float32 or float64, of shape (*, 2); the two of a pair lie side by side in memory.

    Returns
    -------
    Tensor
        Complex, of shape (*); shares memory with `input`.

    Raises
    ------
    DTypeError
        When `input` has another dtype.
    ShapeError
        When the last dimension is not of size 2, or is not contiguous.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.view_as_complex(flow.tensor([[1.0, 2.0], [3.0, -1.0]]))
    tensor([1.+2.j, 3.-1.j])
    """
    op = "view_as_complex"
    if check_tensor(op, "input", input)._data.dtype.char not in "fd":
        raise bad_argument(
            DTypeError,
            op,
            "input",
            expected="float32 or float64",
            got=input.dtype,
            mend="convert it with .float()",
        )
    if input.shape[-1:] == (2,) and (not input.numel() or input.stride(-1) == 1):
        return dispatch1(_VIEW_AS_COMPLEX, input)
    raise bad_argument(
        ShapeError,
        op,
        "input",
        expected="a last dimension of size 2, contiguous",
        got=f"shape {input.shape}",
        mend="put the pairs last, as with movedim(..., -1).contiguous()",
    )
