"""Functors that optimizers call for a parameter: updates that write parameter and state in place.

An update takes its tensors in the order of its kernel (`kernels/optim.py`): param and grad, of one
shape and dtype; the arrays and 0-d numbers of the state; the options, 0-d and of dtype float64. It
writes state and parameter and returns the latter. None stands for a state that is not kept, and for
an option that is zero and switches something off. Formulas and sources stand with the optimizers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import register_functor
from oneflow_lite.tensors.tensor import Tensor


def _update(op_type_name: str, summary: str) -> Callable[..., Tensor]:
    """Return the functor of an update op."""
    op = op_expr(op_type_name)

    def update(*inputs: Tensor | None, **attrs: Any) -> Tensor:
        return dispatch(op, inputs, attrs)

    update.__name__ = update.__qualname__ = op_type_name
    update.__doc__ = summary
    return register_functor(op_type_name)(update)


adadelta_update = _update("adadelta_update", "Take one step of Adadelta.")
adafactor_update = _update("adafactor_update", "Take one step of Adafactor.")
adagrad_update = _update("adagrad_update", "Take one step of Adagrad.")
adam_update = _update(
    "adam_update",
    """Take one step of Adam or AdamW.

    >>> import oneflow_lite as flow
    >>> param, mean, square, step = (flow.tensor(x) for x in ([1.0], [0.0], [0.0], 0.0))
    >>> options = [flow.tensor(x, dtype=flow.float64) for x in (0.1, 0.9, 0.999, 1e-8)]
    >>> adam_update(param, flow.tensor([3.0]), mean, square, None, step, *options, None)
    tensor([0.9000])
    """,
)
adamax_update = _update("adamax_update", "Take one step of Adamax.")
asgd_update = _update("asgd_update", "Take one step of averaged stochastic gradient descent.")
muon_update = _update("muon_update", "Take one step of Muon, of a matrix.")
nadam_update = _update("nadam_update", "Take one step of NAdam.")
radam_update = _update("radam_update", "Take one step of RAdam.")
rmsprop_update = _update("rmsprop_update", "Take one step of RMSprop.")
rprop_update = _update("rprop_update", "Take one step of Rprop.")
sgd_update = _update(
    "sgd_update",
    """Take one step of stochastic gradient descent.

    >>> import oneflow_lite as flow
    >>> param, lr = flow.tensor([1.0, 2.0]), flow.tensor(0.5, dtype=flow.float64)
    >>> sgd_update(param, flow.tensor([1.0, 1.0]), None, None, lr, None, None, None)
    tensor([0.5000, 1.5000])
    """,
)
