"""Forward rules: how tangents and Taylor series go through an op.

Most follow from the gradient rule and from `linear=`; see `transforms/forward.py`. The
others are declared beside the gradient rule, by the functions of this file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from oneflow_lite.errors import RegistrationError

Function = Callable[..., Any]


@attrs.define(eq=False)
class ForwardRule:
    """The declaration of an op.

    Attributes
    ----------
    push : callable, optional
        `push(F, ctx, *tangents)`: the tangent of the output, or of each output, for the tangents of
        the inputs, None where a tangent is zero. `ctx` has the inputs by name, the output as `out`
        and, where no input has the name, as `y`, outputs as `y0`, `y1` ..., and the attributes.
    piecewise : bool
        Whether the op is linear near almost every point: then higher coefficients go through it as
        the first.
    taylor : callable, optional
        `taylor(F, y, *series, **attrs)`: the coefficients of the output. `y` is its value; of each
        input the list of coefficients, None where one is zero.
    dense : bool
        Whether the Jacobian of a pointwise op is not diagonal.
    parts : callable, optional
        `parts(F, *inputs, **attrs)`: the op put together from others, for series.
    """

    push: Function | None = None
    piecewise: bool = False
    dense: bool = False
    taylor: Function | None = None
    parts: Function | None = None


FORWARD_RULES: dict[str, ForwardRule] = {}


def _rule_of(op_type_name: str) -> ForwardRule:
    return FORWARD_RULES.setdefault(op_type_name, ForwardRule())


def _registering(kind: str) -> Callable[[str], Callable[[Function], Function]]:
    def register(op_type_name: str) -> Callable[[Function], Function]:
        def decorator(function: Function) -> Function:
            rule = _rule_of(op_type_name)
            if getattr(rule, kind) is not None and not _again(getattr(rule, kind), function):
                raise RegistrationError(
                    f"forward rule {op_type_name!r} is registered already; choose another name"
                )
            setattr(rule, kind, function)
            return function

        return decorator

    return register


def _again(old: Function, new: Function) -> bool:
    return (old.__module__, old.__qualname__) == (new.__module__, new.__qualname__)


register_push = _registering("push")
register_taylor = _registering("taylor")
register_parts = _registering("parts")


def dense_jacobian(*op_type_names: str) -> None:
    """Declare that the Jacobians of ops that look pointwise are not diagonal."""
    for name in op_type_names:
        _rule_of(name).dense = True


def piecewise_linear(*op_type_names: str) -> None:
    """Declare that ops are linear near almost every point."""
    for name in op_type_names:
        _rule_of(name).piecewise = True
