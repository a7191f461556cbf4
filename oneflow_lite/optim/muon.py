"""Muon and Adafactor: updates that look at a parameter as a matrix."""

from __future__ import annotations

from typing import Any, ClassVar

from oneflow_lite.ops.exposure import expose
from oneflow_lite.optim.optimizer import (
    LIMITS,
    Group,
    Optimizer,
    Parameters,
    filled,
    options,
)
from oneflow_lite.tensors.tensor import Tensor

expose(globals())


class Muon(Optimizer):
    """Muon (Jordan et al., 2024): momentum whose matrix is made orthogonal before it is applied.

    For matrices only; weight decay is decoupled.

    Parameters
    ----------
    params, lr, weight_decay
        See `Optimizer`.
    momentum : float
        The share of the gradients' running mean that is kept at each step.
    nesterov : bool
        Whether to move the gradient towards the mean, rather than to take the mean itself.
    ns_coefficients : (float, float, float)
        Of x, (x x^T) x and (x x^T)^2 x in each step of the Newton-Schulz iteration.
    eps : float
        The least norm by which a matrix is divided.
    ns_steps : int
        Number of steps of the iteration, below 100.
    adjust_lr_fn : {None, "original", "match_rms_adamw"}
        The factor of `lr` for a matrix of A rows and B columns: sqrt(max(1, A / B)), or
        0.2 sqrt(max(A, B)), which makes steps as large as AdamW's.

    Raises
    ------
    ArgumentError
        For a parameter that is no real matrix.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.eye(2).requires_grad_()
    >>> optimizer = flow.optim.Muon([x], lr=0.1, weight_decay=0.5, ns_steps=9)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> bool((x.diagonal() < 0.9).all())
    True
    """

    _op = "muon_update"
    _state: ClassVar = {"momentum_buffer": ""}
    _takes_complex = False
    _limits = LIMITS | {
        "ns_steps": (
            "a whole number from 0 to 99",
            lambda x: isinstance(x, int) and 0 <= x < 100,
        ),
        "adjust_lr_fn": (
            "None, 'original' or 'match_rms_adamw'",
            lambda x: x is None or (isinstance(x, str) and x in ("original", "match_rms_adamw")),
        ),
    }

    def __init__(
        self,
        params: Parameters | None = None,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        super().__init__(params, options(locals()))

    def _check_param(self, param: Tensor) -> None:
        super()._check_param(param)
        if param.ndim != 2:
            got = f"one of shape {tuple(param.shape)}"
            raise self._bad_params_error("matrices", got, "leave other parameters to AdamW")


class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern, 2018): Adam's mean of squares, kept for rows and columns only.

    Weight decay is decoupled. Steps are relative to the parameter's root mean square.

    Parameters
    ----------
    params, lr, weight_decay, foreach, maximize
        See `Optimizer`; the rate of step t is at most 1 / sqrt(t).
    beta2_decay : float
        Step t moves the mean of squares by the share t^beta2_decay; at most 0.
    eps : (float or None, float)
        The least root of a mean square (None: the dtype's epsilon), and the least root mean square
        of the parameter.
    d : float
        Steps whose root mean square is larger are shortened to it; at least 1.

    Raises
    ------
    ArgumentError
        In the first step of a complex parameter.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([3.0, 4.0], requires_grad=True)
    >>> optimizer = flow.optim.Adafactor([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([2.6464, 3.6464], requires_grad=True)
    """

    _op = "adafactor_update"
    _state = dict.fromkeys(("step", "row_var", "col_var", "variance"), "")
    _takes_complex = False
    _limits = LIMITS | {
        "beta2_decay": ("a number of at most 0", lambda x: x <= 0),
        "eps": (
            "two numbers of at least 0, the first may be None",
            lambda x: (x[0] is None or x[0] >= 0) and x[1] >= 0,
        ),
        "d": ("a number of at least 1", lambda x: x >= 1),
    }

    def __init__(
        self,
        params: Parameters | None = None,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, options(locals()))

    def _first(
        self, group: Group, param: Tensor, name: str, state: dict[str, Any]
    ) -> Tensor | None:
        if name == "step":
            return super()._first(group, param, name, state)
        factored = param.ndim > 1  # a vector has no rows and columns: it keeps its whole variance
        if factored == (name == "variance"):
            return None
        return filled(param, 0.0, self._shape(param, name) if factored else None)

    def _shape(self, param: Tensor, key: str) -> tuple[int, ...]:
        shape = list(param.shape)
        if key != "variance":
            shape[-1 if key == "row_var" else -2] = 1
        return tuple(shape)
