"""Distributions of whole numbers: trials, failures, arrivals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from oneflow_lite import functions as flow, special
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.distributions import constraints
from oneflow_lite.distributions.by_logits import ByLogits
from oneflow_lite.distributions.constraints import dependent_property
from oneflow_lite.distributions.distribution import ExponentialFamily, parameters
from oneflow_lite.distributions.gammas import Gamma
from oneflow_lite.distributions.utils import broadcast_all, lazy_property, tiny
from oneflow_lite.errors import MissingMethodError
from oneflow_lite.nn.functional import (
    binary_cross_entropy_with_logits,
    logsigmoid,
    softplus,
)
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor

__all__ = ["Bernoulli", "Binomial", "Geometric", "NegativeBinomial", "Poisson"]


def _cross_entropy(logits: Tensor, probs: Tensor) -> Tensor:
    return binary_cross_entropy_with_logits(logits, probs, reduction="none")


class Bernoulli(ByLogits, ExponentialFamily):
    """1 with probability `probs`, else 0; `logits` are the log odds.

    >>> import oneflow_lite as flow
    >>> flow.distributions.Bernoulli(flow.tensor([0.3])).log_prob(flow.tensor([1.0])).exp()
    tensor([0.3000])
    """

    support = constraints.boolean
    has_enumerate_support = True

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self) -> Tensor:
        """The likelier of both; nan where they are alike."""
        probs = self.probs
        return flow.where(probs == 0.5, math.nan, (probs >= 0.5).to(probs.dtype))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return flow.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        return -_cross_entropy(*broadcast_all(self.logits, self._checked(value)))

    def entropy(self) -> Tensor:
        return _cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._counts(2, expand)


class Binomial(ByLogits):
    """Counts of successes in `total_count` trials, each with probability `probs`.

    >>> import oneflow_lite as flow
    >>> flow.distributions.Binomial(4, flow.tensor([0.5])).log_prob(flow.tensor([2.0])).exp()
    tensor([0.3750])
    """

    arg_constraints = parameters(
        total_count=constraints.nonnegative_integer, **ByLogits.arg_constraints
    )
    has_enumerate_support = True
    total_count: Any

    def __init__(
        self,
        total_count: Tensor | float = 1,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits, total_count=total_count)
        super(ByLogits, self).__init__(self.total_count.shape, validate_args=validate_args)

    @dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """From 0 to the number of trials."""
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs)
    variance = property(lambda self: self.mean * (1 - self.probs))

    @property
    def mode(self) -> Tensor:
        """The whole part of (n + 1) p, n at most."""
        n = self.total_count
        return flow.minimum(((n + 1) * self.probs).floor(), n)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return flow.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        k, n = self._checked(value), self.total_count
        ways = (n + 1).lgamma() - (k + 1).lgamma() - (n - k + 1).lgamma()
        return ways + k * self.logits - n * softplus(self.logits)

    def _one_count(self) -> int:
        count = int(self.total_count.max())
        if int(self.total_count.min()) != count:
            raise MissingMethodError("Binomial: listing needs one total_count for the whole batch")
        return count

    def entropy(self) -> Tensor:
        self._one_count()
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._counts(self._one_count() + 1, expand)


class Geometric(ByLogits):
    """The number of failures before the first success, of probability `probs`.

    >>> import oneflow_lite as flow
    >>> flow.distributions.Geometric(flow.tensor([0.25])).mean
    tensor([3.])
    """

    support = constraints.nonnegative_integer

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(probs, logits, validate_args)
        if self._validate_args and probs is not None:
            self._check("probs", self.probs, constraints.positive)

    mean = property(lambda self: 1 / self.probs - 1)
    mode = property(lambda self: flow.zeros_like(self.probs))
    variance = property(lambda self: self.mean / self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        probs = self.probs
        shape = self._extended_shape(sample_shape)
        with no_grad():
            # By the inverse of the distribution function; a u of 0 would give an infinite count.
            u = flow.rand(shape, dtype=probs.dtype, device=probs.device).clamp(tiny(probs))
            return (u.log() / (-probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        value, probs = broadcast_all(self._checked(value), self.probs)
        return special.xlog1py(value, -probs) + probs.log()

    def entropy(self) -> Tensor:
        return _cross_entropy(self.logits, self.probs) / self.probs


class NegativeBinomial(ByLogits):
    """The number of successes, of probability `probs`, before `total_count` failures.

    >>> import oneflow_lite as flow
    >>> flow.distributions.NegativeBinomial(3.0, flow.tensor([0.5])).mean
    tensor([3.])
    """

    arg_constraints = parameters(
        total_count=constraints.greater_than_eq(0),
        probs=constraints.half_open_interval(0.0, 1.0),
        logits=constraints.real,
    )
    support = constraints.nonnegative_integer
    total_count: Any

    def __init__(
        self,
        total_count: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits, total_count=total_count)
        super(ByLogits, self).__init__(self.total_count.shape, validate_args=validate_args)

    mean = property(lambda self: self.total_count * self.logits.exp())
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(0.0))
    variance = property(lambda self: self.mean / (-self.logits).sigmoid())
    _gamma = lazy_property(
        lambda self: Gamma(self.total_count, (-self.logits).exp(), validate_args=False)
    )

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return flow.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        k, r = self._checked(value), self.total_count
        ways = (r + k).lgamma() - (1 + k).lgamma() - r.lgamma()
        ways = flow.where(r + k == 0, 0.0, ways)  # 0 of 0, where lgamma is infinite
        return ways + r * logsigmoid(-self.logits) + k * logsigmoid(self.logits)


class Poisson(ExponentialFamily):
    """Counts of independent events, `rate` of which are expected.

    >>> import oneflow_lite as flow
    >>> flow.distributions.Poisson(flow.tensor([2.0])).log_prob(flow.tensor([0.0]))
    tensor([-2.])
    """

    arg_constraints = parameters(rate=constraints.nonnegative)
    support = constraints.nonnegative_integer

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = variance = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return flow.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        rate, value = broadcast_all(self.rate, self._checked(value))
        return flow.xlogy(value, rate) - rate - (value + 1).lgamma()


guard_all(globals())
