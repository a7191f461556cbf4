"""`append_backward` and `gradients`: autograd's GraphTask, run while its ops are captured."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from oneflow_lite.autograd.engine.run import grad
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    GradientError,
    arg_error,
    type_error,
)
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.static.lazy.default_programs import lazy_interpreter
from oneflow_lite.static.lazy.lazy_interpreter import LazyInterpreter
from oneflow_lite.tensors.tensor import Tensor

_FILL_CONSTANT = op_expr("fill_constant")


def append_backward(
    loss: Tensor,
    parameter_list: Sequence[Tensor | str] | None = None,
    no_grad_set: Collection[Tensor | str] | None = None,
) -> list[tuple[Tensor, Tensor]]:
    """Append the ops that compute the gradients of a loss to the Program.

    They begin with a `fill_constant` of 1, the gradient of the loss itself.

    Parameters
    ----------
    loss : Tensor
        Symbolic, with one element.
    parameter_list : sequence of Tensor or str, optional
        Parameters to take gradients of; by default those of the program that require one.
    no_grad_set : set of Tensor or str, optional
        Parameters that are left out.

    Returns
    -------
    list of (Tensor, Tensor)
        Each parameter with its gradient; parameters that the loss does not depend on are left out.

    Raises
    ------
    CaptureError
        Outside `program_guard`.
    GradientError
        When the loss has several elements, or depends on no parameter.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> main, startup = flow.static.Program(), flow.static.Program()
    >>> with flow.static.program_guard(main, startup):
    ...     x = flow.static.data("x", [4, 2])
    ...     loss = flow.nn.Linear(2, 1)(x).sum()
    ...     pairs = flow.static.append_backward(loss)
    >>> [(parameter.name, grad.shape) for parameter, grad in pairs]
    [('parameter_0', (1, 2)), ('parameter_1', (1,))]
    """
    lazy = lazy_interpreter("append_backward")
    check_loss("append_backward", loss)
    wanted = parameters_of(lazy, "append_backward", parameter_list, no_grad_set)
    if not wanted:
        raise GradientError(
            "append_backward(): the program has no parameter that requires a gradient; use a "
            "module, or pass parameter_list"
        )
    with role(lazy, "backward"):
        grads = grad(loss, wanted, [_one(loss)], retain_graph=True, allow_unused=True)
    return [(x, dx) for x, dx in zip(wanted, grads, strict=True) if dx is not None]


def gradients(
    targets: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    target_gradients: Tensor | Sequence[Tensor | None] | None = None,
    no_grad_set: Collection[Tensor | str] | None = None,
) -> list[Tensor | None]:
    """Append the ops that compute the gradients of targets with respect to inputs.

    The result can be differentiated again.

    Parameters
    ----------
    targets, inputs : Tensor or sequence of Tensor
        Symbolic tensors or parameters. An input requires a gradient before the targets are
        computed from it: `x.requires_grad = True`.
    target_gradients : Tensor or sequence of Tensor or None, optional
        The gradients of the targets, ones by default.
    no_grad_set : set of Tensor or str, optional
        Inputs that get None.

    Returns
    -------
    list of Tensor or None
        One for each input; None where the targets do not depend on it.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> with flow.static.program_guard(flow.static.Program(), flow.static.Program()):
    ...     x = flow.static.data("x", [3])
    ...     x.requires_grad = True
    ...     (first,) = flow.static.gradients(x**3, x)
    ...     (second,) = flow.static.gradients(first, x)
    >>> second.shape
    (3,)
    """
    lazy = lazy_interpreter("gradients")
    roots = [targets] if isinstance(targets, Tensor) else list(targets)
    wanted = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if target_gradients is None or isinstance(target_gradients, Tensor):
        given: list[Any] = [target_gradients] * len(roots)
    else:
        given = list(target_gradients)
    if len(given) != len(roots):
        raise arg_error(
            "gradients",
            "target_gradients",
            expected=f"{len(roots)} gradient(s), one per target",
            got=len(given),
            hint="pass one gradient, or None, per target",
            kind=GradientError,
        )
    left_out = _names("gradients", "no_grad_set", no_grad_set)
    kept = [x for x in wanted if x.name not in left_out]
    if not kept:
        return [None] * len(wanted)
    with role(lazy, "backward"):
        filled = [_one(y) if dy is None else dy for y, dy in zip(roots, given, strict=True)]
        grads = iter(grad(roots, kept, filled, create_graph=True, allow_unused=True))
    return [None if x.name in left_out else next(grads) for x in wanted]


def check_loss(op: str, loss: Any) -> None:
    """Raise unless a loss is a tensor with one element that requires a gradient."""
    if not isinstance(loss, Tensor):
        raise type_error(
            op, "loss", "a symbolic tensor", loss, "pass what the captured ops returned"
        )
    if loss.numel() != 1 or not loss.requires_grad:
        raise arg_error(
            op,
            "loss",
            expected="a tensor with one element, computed from parameters",
            got=f"shape {loss.shape}, requires_grad={loss.requires_grad}",
            hint="reduce it, as with mean(), and compute it from what requires a gradient",
            kind=GradientError,
        )


def parameters_of(
    lazy: LazyInterpreter, op: str, parameter_list: Any, no_grad_set: Any
) -> list[Tensor]:
    """Return the parameters whose gradients are wanted, in the order of their first use."""
    known = lazy.main.parameters
    if parameter_list is None:
        variables = lazy.main.global_block().vars
        listed = [x for name, x in known.items() if variables[name].is_parameter]
    else:
        listed = [_parameter(op, x, known) for x in parameter_list]
    left_out = _names(op, "no_grad_set", no_grad_set)
    return [x for x in listed if x.requires_grad and x.name not in left_out]


def _parameter(op: str, x: Any, known: dict[str, Tensor]) -> Tensor:
    parameter = known.get(x) if isinstance(x, str) else x
    if isinstance(parameter, Tensor):
        return parameter
    raise arg_error(
        op,
        "parameter_list",
        expected="parameters of the program, or their names",
        got=repr(x),
        hint=f"name some of {', '.join(known) or 'none: the program has no parameter'}",
        kind=ArgumentError if isinstance(x, str) else ArgumentTypeError,
    )


def _names(op: str, argument: str, given: Iterable[Any] | None) -> set[str]:
    names = set()
    for x in given or ():
        name = x if isinstance(x, str) else getattr(x, "name", None)
        if name is None:
            raise type_error(
                op,
                argument,
                "variables of the program, or their names",
                x,
                "pass symbolic tensors or parameters that the program uses",
            )
        names.add(name)
    return names


def _one(y: Tensor) -> Any:
    """Append a gradient of ones, with which a backward pass begins."""
    attrs = {"shape": y.shape, "value": 1.0, "dtype": y._data.dtype, "device": y.device}
    return dispatch(_FILL_CONSTANT, (), attrs)


@contextlib.contextmanager
def role(lazy: LazyInterpreter, name: str) -> Iterator[None]:
    """Mark the ops that are appended in a `with` block."""
    before = lazy.role
    lazy.role = name
    try:
        yield
    finally:
        lazy.role = before
