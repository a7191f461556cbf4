"""The part that distributions share whose parameter is given as `probs` or as `logits`."""

from __future__ import annotations

from typing import Any

from oneflow_lite import functions as flow
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.distributions import constraints
from oneflow_lite.distributions.distribution import Distribution, parameters
from oneflow_lite.distributions.utils import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)
from oneflow_lite.errors import ArgumentError
from oneflow_lite.tensors.tensor import Tensor

__all__ = ["ByLogits"]


class ByLogits(Distribution):
    """A distribution of `probs` or `logits`; the missing parameter is computed when asked for.

    ArgumentError: unless exactly one parameter is given.
    """

    arg_constraints = parameters(probs=constraints.unit_interval, logits=constraints.real)
    _is_binary = True

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @staticmethod
    def _given(probs: Tensor | float | None, logits: Tensor | float | None) -> tuple[str, Any]:
        """Return the name and value of the given parameter."""
        if (probs is None) == (logits is None):
            raise ArgumentError("probs, logits: expected one of the two, got both or none")
        return ("logits", logits) if probs is None else ("probs", probs)

    def _take(
        self, probs: Tensor | float | None, logits: Tensor | float | None, **others: Any
    ) -> None:
        """Keep the parameters, broadcast together and in one dtype, as attributes."""
        name, given = self._given(probs, logits)
        values = broadcast_all(given, *others.values())
        for key, value in zip((name, *others), values, strict=True):
            setattr(self, key, value.to(values[0].dtype))

    logits = lazy_property(lambda self: probs_to_logits(self.probs, self._is_binary))
    probs = lazy_property(lambda self: logits_to_probs(self.logits, self._is_binary))
    _param: Any = property(lambda self: self.probs if "probs" in vars(self) else self.logits)
    param_shape = property(lambda self: self._param.shape, doc="The shape of `probs` and `logits`.")

    def _listed(self, values: Tensor, expand: bool) -> Tensor:
        """Return values (n, *event) as (n, *batch, *event), or with sizes of 1 for the batch."""
        n, *event = values.shape
        batch = self._batch_shape
        values = values.reshape((n, *(1 for _ in batch), *event))
        return values.expand((n, *batch, *event)) if expand else values

    def _counts(self, n: int, expand: bool) -> Tensor:
        """Return the numbers from 0 to n - 1, listed."""
        param = self._param
        return self._listed(flow.arange(n, dtype=param.dtype, device=param.device), expand)


guard_all(globals())
