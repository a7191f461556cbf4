"""`Optimizer.minimize`: backward pass, gradient clipping and updates in one call."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.optim.optimizer import Optimizer
from oneflow_lite.static.ir.program import OpDesc, Program
from oneflow_lite.static.lazy.backward import append_backward, check_loss, parameters_of, role
from oneflow_lite.static.lazy.default_programs import find_lazy_interpreter
from oneflow_lite.tensors.tensor import Tensor

Pairs = list[tuple[Tensor, Tensor]]


def minimize(
    self: Optimizer,
    loss: Tensor,
    startup_program: Program | None = None,
    parameter_list: Sequence[Tensor | str] | None = None,
    no_grad_set: Collection[Tensor | str] | None = None,
    grad_clip: Callable[[list[Tensor]], Any] | None = None,
) -> tuple[list[OpDesc], Pairs]:
    """Take gradients of a loss, clip them, and update the parameters.

    Under `program_guard` the ops for this are appended to the Program; otherwise it happens at
    once, as `loss.backward()` and `step()` do. Regularization is part of the update op
    (`weight_decay`), after the clipping.

    Parameters
    ----------
    loss : Tensor
        With one element.
    startup_program : Program, optional
        That of the `program_guard`.
    parameter_list : sequence of Tensor or str, optional
        Parameters to update; by default those of the optimizer or, if it has none, those of the
        Program.
    no_grad_set : set of Tensor or str, optional
        Parameters that are left as they are.
    grad_clip : callable, optional
        Called with the parameters, whose gradients it changes in place, such as
        `lambda parameters: flow.nn.utils.clip_grad_norm_(parameters, 1.0)`.

    Returns
    -------
    optimize_ops : list of OpDesc
        The ops that clip and update; empty when nothing is captured.
    params_grads : list of (Tensor, Tensor)

    Raises
    ------
    GradientError
        When the loss has several elements, or depends on no parameter.
    ArgumentError
        When `startup_program` is not that of the `program_guard`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> main, startup = flow.static.Program(), flow.static.Program()
    >>> with flow.static.program_guard(main, startup):
    ...     x = flow.static.data("x", [4, 2])
    ...     loss = flow.nn.Linear(2, 1)(x).mean()
    ...     ops, pairs = flow.optim.SGD(lr=0.1).minimize(loss)
    >>> [op.type for op in ops], len(pairs)
    (['sgd_update', 'sgd_update'], 2)
    """
    check_loss("minimize", loss)
    lazy = find_lazy_interpreter()
    if lazy is None:
        return [], _minimize_now(self, loss, parameter_list, no_grad_set, grad_clip)
    if startup_program is not None and startup_program is not lazy.startup:
        raise arg_error(
            "minimize",
            "startup_program",
            expected="the startup program of the program_guard",
            got="another one",
            hint="leave it out",
            kind=ArgumentError,
        )
    if parameter_list is None and not self.takes_parameters():
        parameter_list = _parameters(self)
    wanted = parameters_of(lazy, "minimize", parameter_list, no_grad_set)
    if self.takes_parameters():
        self.param_groups[0]["params"] = wanted
    pairs = append_backward(loss, wanted)
    first = len(lazy.block.ops)
    with role(lazy, "optimize"), _only_gradients(self, dict(pairs)):
        if grad_clip is not None:
            grad_clip([x for x, _ in pairs])
        pairs = [(x, x.grad) for x, _ in pairs if x.grad is not None]
        self.step()
    return list(lazy.block.ops[first:]), pairs


def _minimize_now(
    optimizer: Optimizer, loss: Tensor, parameter_list: Any, no_grad_set: Any, grad_clip: Any
) -> Pairs:
    """Take one eager step."""
    loss.backward()
    left_out = {id(x) for x in no_grad_set or ()}
    listed = _parameters(optimizer) if parameter_list is None else list(parameter_list)
    wanted = {x: x.grad for x in listed if x.grad is not None and id(x) not in left_out}
    with _only_gradients(optimizer, wanted):
        if grad_clip is not None:
            grad_clip(list(wanted))
        optimizer.step()
        return [(x, x.grad) for x in wanted if x.grad is not None]


def _parameters(optimizer: Optimizer) -> list[Tensor]:
    return [param for group in optimizer.param_groups for param in group["params"]]


@contextlib.contextmanager
def _only_gradients(optimizer: Optimizer, grads: dict[Tensor, Tensor]) -> Iterator[None]:
    """In a `with` block, parameters have these gradients, and the optimizer's others have none."""
    metas = {x: x.autograd_meta for x in (*_parameters(optimizer), *grads)}
    before = {x: meta.acc_grad for x, meta in metas.items()}
    try:
        for x, meta in metas.items():
            meta.acc_grad = grads.get(x)
        yield
    finally:
        for x, meta in metas.items():
            meta.acc_grad = before[x]
