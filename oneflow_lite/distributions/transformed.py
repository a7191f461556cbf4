"""Distributions that are transforms of simpler distributions."""

from __future__ import annotations

import math
from typing import Any

from oneflow_lite import functions as flow
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.distributions import constraints
from oneflow_lite.distributions.composed import TransformedDistribution
from oneflow_lite.distributions.constraints import dependent_property
from oneflow_lite.distributions.distribution import parameters
from oneflow_lite.distributions.gammas import Gamma
from oneflow_lite.distributions.location_scale import Cauchy, Exponential, Normal, Uniform
from oneflow_lite.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
    StickBreakingTransform,
)
from oneflow_lite.distributions.utils import broadcast_all, eps, euler_constant, inside, tiny
from oneflow_lite.functors.creation import as_tensor
from oneflow_lite.tensors.tensor import Tensor

__all__ = """
    Gumbel HalfCauchy HalfNormal InverseGamma Kumaraswamy LogNormal LogisticNormal Pareto Weibull
""".split()

_LOC_SCALE = {"loc": constraints.real, "scale": constraints.positive}


class LogNormal(TransformedDistribution):
    """exp of a normal number with the mean `loc` and the standard deviation `scale`.

    >>> import oneflow_lite as flow
    >>> flow.distributions.LogNormal(0.0, 1.0).mean
    tensor(1.6487)
    """

    arg_constraints = _LOC_SCALE
    support = constraints.positive
    has_rsample = True

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: (self.loc + self.scale.square() / 2).exp())
    mode = property(lambda self: (self.loc - self.scale.square()).exp())
    variance = property(lambda self: self.scale.square().expm1() * self.mean.square())

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """Shares, which `StickBreakingTransform` makes of normal numbers.

    >>> import oneflow_lite as flow
    >>> flow.distributions.LogisticNormal(flow.zeros(3), 1.0).event_shape
    (4,)
    """

    arg_constraints = _LOC_SCALE
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        base = Normal(loc, scale, validate_args)
        base = base if base.batch_shape else base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)

    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)


class _Half(TransformedDistribution):
    """The absolute value of draws that are symmetric around 0."""

    arg_constraints = parameters(scale=constraints.positive)
    support = constraints.nonnegative
    has_rsample = True
    _base: Any

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(self._base(0, scale, False), AbsTransform(), validate_args)

    scale = property(lambda self: self.base_dist.scale)
    mode = property(lambda self: flow.zeros_like(self.scale))

    def log_prob(self, value: Tensor | float) -> Tensor:
        scale = self.scale
        x = self._checked(as_tensor(value, dtype=scale.dtype, device=scale.device))
        return flow.where(x >= 0, self.base_dist.log_prob(x) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        return 2 * self.base_dist.cdf(self._checked(value)) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """The absolute value of a normal number with the mean 0.

    >>> import oneflow_lite as flow
    >>> flow.distributions.HalfNormal(1.0).mean
    tensor(0.7979)
    """

    _base = Normal
    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale.square() * (1 - 2 / math.pi))


class HalfCauchy(_Half):
    """The absolute value of a Cauchy number around 0; its mean is infinite.

    >>> import oneflow_lite as flow
    >>> flow.distributions.HalfCauchy(1.0).cdf(flow.tensor(1.0))
    tensor(0.5000)
    """

    _base = Cauchy
    mean = property(lambda self: flow.full_like(self.scale, math.inf))
    variance = property(lambda self: self.base_dist.variance)


class InverseGamma(TransformedDistribution):
    """1 / x of a gamma number x.

    >>> import oneflow_lite as flow
    >>> flow.distributions.InverseGamma(3.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = Gamma.arg_constraints
    support = constraints.positive
    has_rsample = True

    def __init__(
        self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None
    ) -> None:
        base = Gamma(concentration, rate, validate_args)
        inverse = PowerTransform(-base.rate.new_ones(()))
        super().__init__(base, inverse, validate_args)

    concentration = property(lambda self: self.base_dist.concentration)
    rate = property(lambda self: self.base_dist.rate)
    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def mean(self) -> Tensor:
        """rate / (c - 1); inf up to c = 1."""
        c = self.concentration
        return flow.where(c > 1, self.rate / (flow.where(c > 1, c, 2.0) - 1), math.inf)

    @property
    def variance(self) -> Tensor:
        """rate² / ((c - 1)² (c - 2)); inf up to c = 2."""
        c = flow.where(self.concentration > 2, self.concentration, 3.0)
        finite = (self.rate / (c - 1)).square() / (c - 2)
        return flow.where(self.concentration > 2, finite, math.inf)

    def log_prob(self, value: Tensor) -> Tensor:
        # Not by 1 / x, whose derivative overflows in draws of a small concentration.
        c, value = self.concentration, self._checked(value)
        return flow.xlogy(c, self.rate) - (c + 1) * value.log() - self.rate / value - c.lgamma()

    def entropy(self) -> Tensor:
        c = self.concentration
        return c + self.rate.log() + c.lgamma() - (1 + c) * c.digamma()


class Gumbel(TransformedDistribution):
    """The largest of many draws: exp(-exp(-z)), z = (x - loc) / scale, is the share below x.

    >>> import oneflow_lite as flow
    >>> flow.distributions.Gumbel(0.0, 1.0).mean
    tensor(0.5772)
    """

    arg_constraints = _LOC_SCALE
    support = constraints.real

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        low = flow.full_like(self.loc, tiny(self.loc))
        base = Uniform(low, flow.full_like(low, 1 - eps(low)), validate_args)
        falling = AffineTransform(0, -flow.ones_like(self.scale))
        log, shift = ExpTransform().inv, AffineTransform(self.loc, -self.scale)
        super().__init__(base, [log, falling, log, shift], validate_args)

    mean = property(lambda self: self.loc + self.scale * euler_constant)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale * (math.pi / math.sqrt(6)))
    variance = property(lambda self: self.stddev.square())

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self.loc - self._checked(value)) / self.scale
        return z - z.exp() - self.scale.log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)


class Weibull(TransformedDistribution):
    """Lifetimes: exp(-(x / scale)^c), c = `concentration`, is the share above x.

    >>> import oneflow_lite as flow
    >>> flow.distributions.Weibull(2.0, 1.0).mean
    tensor(2.)
    """

    arg_constraints = parameters(scale=constraints.positive, concentration=constraints.positive)
    support = constraints.positive

    def __init__(
        self,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = 1 / self.concentration
        base = Exponential(flow.ones_like(self.scale), validate_args)
        power = PowerTransform(self.concentration_reciprocal)
        super().__init__(base, [power, AffineTransform(0, self.scale)], validate_args)

    def _moment(self, n: int) -> Tensor:
        return self.scale.pow(n) * (1 + n * self.concentration_reciprocal).lgamma().exp()

    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - self._moment(1).square())

    @property
    def mode(self) -> Tensor:
        """scale ((c - 1) / c)^(1/c)."""
        reciprocal = self.concentration_reciprocal
        return self.scale * (1 - reciprocal) ** reciprocal

    def entropy(self) -> Tensor:
        reciprocal = self.concentration_reciprocal
        return euler_constant * (1 - reciprocal) + (self.scale * reciprocal).log() + 1


class Pareto(TransformedDistribution):
    """Sizes from `scale` on: (scale / x)^alpha is the share above x.

    >>> import oneflow_lite as flow
    >>> flow.distributions.Pareto(1.0, 3.0).mean
    tensor(1.5000)
    """

    arg_constraints = parameters(alpha=constraints.positive, scale=constraints.positive)

    def __init__(
        self, scale: Tensor | float, alpha: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(0, self.scale)], validate_args)

    @dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From the scale on."""
        return constraints.greater_than_eq(self.scale)

    mode = property(lambda self: self.scale)

    @property
    def mean(self) -> Tensor:
        """scale a / (a - 1), a = alpha; inf up to a = 1."""
        a = flow.where(self.alpha > 1, self.alpha, 2.0)
        return flow.where(self.alpha > 1, self.scale * a / (a - 1), math.inf)

    @property
    def variance(self) -> Tensor:
        """scale² a / ((a - 1)² (a - 2)), a = alpha; inf up to a = 2."""
        a = flow.where(self.alpha > 2, self.alpha, 3.0)
        finite = (self.scale / (a - 1)).square() * a / (a - 2)
        return flow.where(self.alpha > 2, finite, math.inf)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + 1 + 1 / self.alpha


class Kumaraswamy(TransformedDistribution):
    """Numbers from 0 to 1: (1 - x^a)^b is the share above x.

    a is `concentration1`, b is `concentration0`.

    >>> import oneflow_lite as flow
    >>> flow.distributions.Kumaraswamy(1.0, 1.0).mean
    tensor(0.5000)
    """

    arg_constraints = parameters(
        concentration1=constraints.positive, concentration0=constraints.positive
    )
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        concentration1: Tensor | float,
        concentration0: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        a, b = self.concentration1, self.concentration0 = broadcast_all(
            concentration1, concentration0
        )
        base = Uniform(flow.zeros_like(a), flow.ones_like(a), validate_args)
        parts = [PowerTransform(1 / b), AffineTransform(1.0, -1.0), PowerTransform(1 / a)]
        super().__init__(base, parts, validate_args)

    def _moment(self, n: int) -> Tensor:
        """Return b B(1 + n/a, b)."""
        b, first = self.concentration0, 1 + n / self.concentration1
        return b * (first.lgamma() + b.lgamma() - (first + b).lgamma()).exp()

    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - self._moment(1).square())

    @property
    def mode(self) -> Tensor:
        """((a - 1) / (ab - 1))^(1/a); nan where a or b is below 1."""
        a, b = self.concentration1, self.concentration0
        return flow.where((a < 1) | (b < 1), math.nan, ((a - 1) / (a * b - 1)).pow(1 / a))

    def log_prob(self, value: Tensor) -> Tensor:
        a, b, value = self.concentration1, self.concentration0, self._checked(value)
        log = inside(value, 1 - eps(value) / 2).log()
        power = a * log
        near = power > -math.log(2)  # x^a is nearer to 1 than to 0; each form keeps its digits
        above = flow.where(
            near,
            (-flow.where(near, power, -1.0).expm1()).log(),
            (-flow.where(near, -1.0, power).exp()).log1p(),
        )
        return a.log() + b.log() + (a - 1) * log + (b - 1) * above

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return 1 - 1 / b + (1 - 1 / a) * harmonic - a.log() - b.log()


guard_all(globals())
