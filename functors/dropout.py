"""Dropout: what users call; the mask is drawn from the library's generator."""

from __future__ import annotations

from typing import Any

from oneflow_lite.autograd.mode import no_grad
from oneflow_lite.errors import ArgumentError, bad_argument
from oneflow_lite.functors.checks import check_tensor
from oneflow_lite.functors.elementwise_checks import check_number
from oneflow_lite.functors.random import dropout_mask
from oneflow_lite.registry import FUNCTORS, register_functor
from oneflow_lite.tensor import Tensor


@register_functor("dropout")
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set elements to zero with probability `p`, and multiply the others by 1 / (1 - p).

    Parameters
    ----------
    input : Tensor
        Of any shape, floating or complex in training.
    p : float
        From 0 to 1.
    training : bool
        Without it the input is returned as it is.
    inplace : bool
        Write the result into the input.

    Raises
    ------
    ArgumentError
        When `p` is not between 0 and 1.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> _ = flow.manual_seed(1)
    >>> kept = flow.dropout(flow.ones(1000), 0.25)
    >>> sorted(set(kept.tolist()))
    [0.0, 1.3333333730697632]
    """
    check_tensor("dropout", "input", input)
    if not 0 <= check_number("dropout", "p", p) <= 1:
        raise bad_argument(
            ArgumentError,
            "dropout",
            "p",
            expected="a probability from 0 to 1",
            got=p,
            mend="give the share of elements to drop",
        )
    if not training or p == 0:
        return input
    with no_grad():
        mask = dropout_mask(input, p)
    multiply: Any = FUNCTORS.get("mul_" if inplace else "mul")
    return multiply(input, mask)
