"""Gradients that are spread over ranks, clipped by their joint norm."""

from __future__ import annotations

import math
from collections.abc import Iterable

from oneflow_lite.distributed.collectives import all_reduce
from oneflow_lite.distributed.process_group import ProcessGroup, check_group
from oneflow_lite.distributed.reduce_op import ReduceOp
from oneflow_lite.errors import GradientError
from oneflow_lite.nn.utils.clip_grad import clip_grads_with_norm_, get_total_norm
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor


@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    group: ProcessGroup | None = None,
) -> Tensor:
    """Scale the gradients of parameters that are divided among the ranks; return their norm.

    Where all ranks have the same gradients, as under `DistributedDataParallel`,
    `nn.utils.clip_grad_norm_` is the function to use.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        This rank's parameters. All ranks call this, with or without gradients.
    max_norm, norm_type, error_if_nonfinite
        As in `nn.utils.clip_grad_norm_`.
    group : ProcessGroup, optional
        The world by default.

    Raises
    ------
    GradientError
        On all ranks, when the norm is infinite or NaN and `error_if_nonfinite`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.distributed.init_process_group()
    >>> x = flow.tensor([3.0, 4.0], requires_grad=True)
    >>> x.grad = flow.tensor([3.0, 4.0])
    >>> flow.nn.parallel.clip_grad_norm_([x], max_norm=1.0)
    tensor(5.)
    >>> flow.distributed.destroy_process_group()
    """
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    found = check_group("clip_grad_norm_", group)
    p = float(norm_type)
    total = get_total_norm([x.grad for x in listed if x.grad is not None], p)
    if p != math.inf:
        total = total**p
    all_reduce(total, ReduceOp.MAX if p == math.inf else ReduceOp.SUM, found)
    if p != math.inf:
        total = total ** (1 / p)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise GradientError(
            f"clip_grad_norm_(): the norm of order {p} of all ranks' gradients is {total.item()}; "
            "find the tensor that overflowed, or pass error_if_nonfinite=False"
        )
    clip_grads_with_norm_(listed, max_norm, total)
    return total
