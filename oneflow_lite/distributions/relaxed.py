"""Distributions between 0 and 1 with `probs` or `logits`: continuous kin of discrete ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from oneflow_lite import functions as flow
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.distributions import constraints
from oneflow_lite.distributions.by_logits import ByLogits
from oneflow_lite.distributions.categories import Categorical, OfCategorical
from oneflow_lite.distributions.composed import TransformedDistribution
from oneflow_lite.distributions.distribution import Distribution, ExponentialFamily
from oneflow_lite.distributions.transforms import ExpTransform, SigmoidTransform
from oneflow_lite.distributions.utils import broadcast_all, clamp_probs, inside, lazy_property
from oneflow_lite.functors.creation import as_tensor
from oneflow_lite.nn.functional import binary_cross_entropy_with_logits, softplus
from oneflow_lite.tensors.tensor import Tensor

__all__ = """
    ContinuousBernoulli ExpRelaxedCategorical LogitRelaxedBernoulli RelaxedBernoulli
    RelaxedOneHotCategorical
""".split()


class ContinuousBernoulli(ByLogits, ExponentialFamily):
    """The density C(p) p^x (1-p)^(1-x), p = `probs`, of x from 0 to 1.

    Between the `lims` around 1/2, where formulas lose digits, series in p - 1/2 are used.
    Loaiza-Ganem and Cunningham, The continuous Bernoulli, 2019.

    >>> import oneflow_lite as flow
    >>> flow.distributions.ContinuousBernoulli(0.5).mean
    tensor(0.5000)
    """

    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._lims = lims
        super().__init__(probs, logits, validate_args)
        if probs is not None:
            self.probs = clamp_probs(self.probs)

    probs = lazy_property(lambda self: clamp_probs(self.logits.sigmoid()))

    def _or_series(self, formula: Callable[..., Tensor], series: Any) -> Tensor:
        """Return a formula of p, and near 1/2 its series, a function of p - 1/2."""
        p, (low, high) = self.probs, self._lims
        far = (p <= low) | (p > high)
        # The inner `where` keeps nan out of the gradient of the branch that is not taken.
        return flow.where(far, formula(flow.where(far, p, low)), series(p - 0.5))

    def _log_c(self) -> Tensor:
        """Return log C(p) = log(log((1-p) / p) / (1 - 2p))."""
        return self._or_series(
            lambda p: ((-p).log1p() - p.log()).div(1 - 2 * p).log(),
            lambda d: math.log(2) + (4 / 3 + 104 / 45 * d.square()) * d.square(),
        )

    @property
    def mean(self) -> Tensor:
        """p / (2p - 1) + 1 / log((1-p) / p)."""
        return self._or_series(
            lambda p: p / (2 * p - 1) + 1 / ((-p).log1p() - p.log()),
            lambda d: 0.5 + (1 / 3 + 16 / 45 * d.square()) * d,
        )

    @property
    def variance(self) -> Tensor:
        """p (p-1) / (1 - 2p)² + 1 / log((1-p) / p)²."""
        return self._or_series(
            lambda p: p * (p - 1) / (1 - 2 * p).square() + ((-p).log1p() - p.log()).pow(-2),
            lambda d: 1 / 12 - (1 / 15 - 128 / 945 * d.square()) * d.square(),
        )

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        param, shape = self._param, self._extended_shape(sample_shape)
        return self.icdf(flow.rand(shape, dtype=param.dtype, device=param.device))

    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, self._checked(value))
        loss = binary_cross_entropy_with_logits(logits, value, reduction="none")
        return self._log_c() - loss

    def cdf(self, value: Tensor) -> Tensor:
        value = self._checked(value).clamp(0.0, 1.0)
        return self._or_series(
            lambda p: (p.pow(value) * (1 - p).pow(1 - value) + p - 1) / (2 * p - 1),
            lambda d: value,
        )

    def icdf(self, value: Tensor) -> Tensor:
        return self._or_series(
            lambda p: ((value * (2 * p - 1) - p).log1p() - (-p).log1p()) / (p.log() - (-p).log1p()),
            lambda d: value,
        )

    def entropy(self) -> Tensor:
        p = self.probs
        log_0, log_1 = (-p).log1p(), p.log()
        return self.mean * (log_0 - log_1) - self._log_c() - log_0


class _Relaxed(Distribution):
    """A distribution with a temperature, which broadcasts and is not expanded."""

    has_rsample = True
    temperature: Tensor

    def _warm(self, temperature: Tensor | float) -> None:
        param: Tensor = self._param  # type: ignore[attr-defined]
        self.temperature = as_tensor(temperature, dtype=param.dtype, device=param.device)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.temperature = self.temperature
        return new

    def _noise(self, sample_shape: Sequence[int]) -> Tensor:
        """Return uniform numbers, neither 0 nor 1."""
        param: Tensor = self._param  # type: ignore[attr-defined]
        shape = self._extended_shape(sample_shape)
        return clamp_probs(flow.rand(shape, dtype=param.dtype, device=param.device))


class LogitRelaxedBernoulli(_Relaxed, ByLogits):
    """The log odds of `RelaxedBernoulli`: (logits + logistic noise) / temperature."""

    support = constraints.real

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(probs, logits, validate_args)
        self._warm(temperature)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = self._noise(sample_shape)
        return (self.logits + u.log() - (-u).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, self._checked(value))
        off = logits - value * self.temperature
        return self.temperature.log() + off - 2 * softplus(off)


class _OfRelaxed(TransformedDistribution):
    """A transform of a relaxed distribution, with the parameters of that distribution."""

    has_rsample = True
    temperature = property(lambda self: self.base_dist.temperature)
    probs = property(lambda self: self.base_dist.probs)
    logits = property(lambda self: self.base_dist.logits)


class RelaxedBernoulli(_OfRelaxed):
    """Numbers from 0 to 1 that come near 0 or 1 as `temperature` falls.

    Maddison, Mnih and Teh, The Concrete Distribution, 2017.

    >>> import oneflow_lite as flow
    >>> flow.distributions.RelaxedBernoulli(flow.tensor(0.5), flow.tensor([0.3])).has_rsample
    True
    """

    arg_constraints = ByLogits.arg_constraints
    support = constraints.unit_interval

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        super().__init__(base, SigmoidTransform(), validate_args)


class ExpRelaxedCategorical(_Relaxed, OfCategorical):
    """The logarithms of `RelaxedOneHotCategorical`.

    They are log_softmax((logits + Gumbel noise) / temperature).
    """

    support = constraints.real_vector

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        self._warm(temperature)
        *batch_shape, count = self.param_shape
        super().__init__(batch_shape, (count,), validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        gumbel = -(-self._noise(sample_shape).log()).log()
        return ((self.logits + gumbel) / self.temperature).log_softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, self._checked(value))
        score = (logits - value * self.temperature).log_softmax(-1).sum(-1)
        n = self._event_shape[0]
        return score + math.lgamma(n) + (n - 1) * self.temperature.log()


class RelaxedOneHotCategorical(_OfRelaxed):
    """Shares that come near a vector with one 1 as `temperature` falls.

    Maddison, Mnih and Teh, The Concrete Distribution, 2017; Jang, Gu and Poole, Categorical
    Reparameterization with Gumbel-Softmax, 2017.

    >>> import oneflow_lite as flow
    >>> one = flow.distributions.RelaxedOneHotCategorical(flow.tensor(0.5), flow.ones(3))
    >>> one.event_shape
    (3,)
    """

    arg_constraints = OfCategorical.arg_constraints
    support = constraints.simplex

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        # When it is cold, most draws have a share that rounds to 0, where the density has a pole.
        return super().log_prob(inside(self._checked(value)))


guard_all(globals())
