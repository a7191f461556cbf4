"""Distributions on the line that a location and a scale shift and stretch, and kin of these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from oneflow_lite import functions as flow, special
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.distributions import constraints
from oneflow_lite.distributions.constraints import dependent_property
from oneflow_lite.distributions.distribution import Distribution, ExponentialFamily, parameters
from oneflow_lite.distributions.utils import broadcast_all, eps
from oneflow_lite.functors.random import default_generator
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor

__all__ = "Cauchy Exponential GeneralizedPareto Laplace Normal Uniform VonMises".split()


class _LocationScale(Distribution):
    """loc + scale z, z drawn from the standard distribution."""

    arg_constraints = parameters(loc=constraints.real, scale=constraints.positive)
    support: Any = constraints.real
    has_rsample = True

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean: Any = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)

    def _z(self, value: Tensor | float) -> Tensor:
        return (self._checked(value) - self.loc) / self.scale

    def _standard(self, **like: Any) -> Tensor:
        """Return standard draws of a shape, dtype and device."""
        raise NotImplementedError

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        loc, shape = self.loc, self._extended_shape(sample_shape)
        return loc + self._standard(size=shape, dtype=loc.dtype, device=loc.device) * self.scale


class Normal(_LocationScale, ExponentialFamily):
    """The normal distribution with the mean `loc` and the standard deviation `scale`.

    >>> import oneflow_lite as flow
    >>> standard = flow.distributions.Normal(0.0, 1.0)
    >>> standard.cdf(flow.tensor(0.0)), standard.entropy()
    (tensor(0.5000), tensor(1.4189))
    """

    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale.square())

    def _standard(self, **like: Any) -> Tensor:
        return flow.randn(**like)

    def log_prob(self, value: Tensor) -> Tensor:
        return -self._z(value).square() / 2 - self.scale.log() - math.log(2 * math.pi) / 2

    def cdf(self, value: Tensor) -> Tensor:
        return special.ndtr(self._z(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * special.ndtri(value)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + math.log(2 * math.pi)) / 2


class Laplace(_LocationScale):
    """The density exp(-|z|) / 2, z = (x - loc) / scale, over scale.

    >>> import oneflow_lite as flow
    >>> flow.distributions.Laplace(0.0, 1.0).log_prob(flow.tensor(0.0))
    tensor(-0.6931)
    """

    stddev = property(lambda self: self.scale * math.sqrt(2))
    variance = property(lambda self: self.scale.square() * 2)

    def _standard(self, **like: Any) -> Tensor:
        u = flow.rand(**like)
        # Uniform in (-1, 1) without the ends, whose logarithm below is infinite.
        u = u * (2 - eps(u)) + (eps(u) - 1)
        return -u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        return -self._z(value).abs() - (2 * self.scale).log()

    def cdf(self, value: Tensor) -> Tensor:
        z = self._z(value)
        return 0.5 - z.sign() * (-z.abs()).expm1() / 2

    def icdf(self, value: Tensor) -> Tensor:
        off = value - 0.5
        return self.loc - self.scale * off.sign() * (-2 * off.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


class Cauchy(_LocationScale):
    """The density 1 / (π (1 + z²)), z = (x - loc) / scale, over scale; it has no mean.

    >>> import oneflow_lite as flow
    >>> flow.distributions.Cauchy(0.0, 1.0).cdf(flow.tensor(1.0))
    tensor(0.7500)
    """

    mean = property(lambda self: flow.full_like(self.loc, math.nan))
    variance = property(lambda self: flow.full_like(self.loc, math.inf))

    def _standard(self, **like: Any) -> Tensor:
        return flow.empty(**like).cauchy_()

    def log_prob(self, value: Tensor) -> Tensor:
        return -math.log(math.pi) - self.scale.log() - self._z(value).square().log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self._z(value).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (math.pi * (value - 0.5)).tan()

    def entropy(self) -> Tensor:
        return self.scale.log() + math.log(4 * math.pi)


class Uniform(Distribution):
    """All numbers from `low` to `high` alike.

    >>> import oneflow_lite as flow
    >>> flow.distributions.Uniform(1.0, 5.0).mean
    tensor(3.)
    """

    has_rsample = True

    def __init__(
        self, low: Tensor | float, high: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    arg_constraints = property(
        lambda self: {
            "low": constraints.less_than(self.high),
            "high": constraints.greater_than(self.low),
        }
    )

    @dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From low to high."""
        return constraints.interval(self.low, self.high)

    _width: Any = property(lambda self: self.high - self.low)
    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: self.high * math.nan)
    stddev = property(lambda self: self._width / math.sqrt(12))
    variance = property(lambda self: self._width.square() / 12)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        low, shape = self.low, self._extended_shape(sample_shape)
        return low + flow.rand(shape, dtype=low.dtype, device=low.device) * self._width

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        inside = (value >= self.low) & (value < self.high)
        return flow.where(inside, -self._width.log(), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        share: Tensor = (self._checked(value) - self.low) / self._width
        return share.clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * self._width + self.low

    def entropy(self) -> Tensor:
        return self._width.log()


class Exponential(ExponentialFamily):
    """The density rate exp(-rate x) of waiting times.

    >>> import oneflow_lite as flow
    >>> flow.distributions.Exponential(4.0).mean
    tensor(0.2500)
    """

    arg_constraints = parameters(rate=constraints.positive)
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = stddev = property(lambda self: 1 / self.rate)
    mode = property(lambda self: flow.zeros_like(self.rate))
    variance = property(lambda self: self.rate.pow(-2))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        rate, shape = self.rate, self._extended_shape(sample_shape)
        return flow.empty(shape, dtype=rate.dtype, device=rate.device).exponential_() / rate

    def log_prob(self, value: Tensor) -> Tensor:
        return self.rate.log() - self.rate * self._checked(value)

    def cdf(self, value: Tensor) -> Tensor:
        return -(-self.rate * self._checked(value)).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()


class GeneralizedPareto(_LocationScale):
    """The numbers above a high threshold `loc`, with the tail index `concentration`.

    The share above x is (1 + c z)^(-1/c), z = (x - loc) / scale; exp(-z) for c = 0. Hosking and
    Wallis, Parameter and Quantile Estimation for the Generalized Pareto Distribution, 1987.

    >>> import oneflow_lite as flow
    >>> flow.distributions.GeneralizedPareto(0.0, 1.0, 1.0).cdf(flow.tensor(1.0))
    tensor(0.5000)
    """

    arg_constraints = parameters(**_LocationScale.arg_constraints, concentration=constraints.real)

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super(_LocationScale, self).__init__(self.loc.shape, validate_args=validate_args)

    @dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From loc on; for a negative concentration up to loc - scale / concentration."""
        short = self.concentration < 0
        end = self.loc - self.scale / flow.where(short, self.concentration, -1.0)
        return constraints.interval(self.loc, flow.where(short, end, math.inf))

    def _or_series(self, formula: Any, series: Any) -> Tensor:
        """Return a formula of c; near 0, where it divides by c, the first terms of its series."""
        c = self.concentration
        small = flow.isclose(c, flow.zeros_like(c))
        # The inner `where` keeps nan out of the gradient of the branch that is not taken.
        return flow.where(small, series(c), formula(flow.where(small, 1.0, c)))

    def _below(self, most: float, formula: Any) -> Tensor:
        """Return a moment, which exists for concentrations below `most`."""
        c = self.concentration
        return flow.where(c < most, formula(flow.where(c < most, c, most / 2)), math.nan)

    mode = property(lambda self: self.loc)

    @property
    def mean(self) -> Tensor:
        """loc + scale / (1 - c); nan from c = 1 on."""
        return self._below(1.0, lambda c: self.loc + self.scale / (1 - c))

    @property
    def variance(self) -> Tensor:
        """scale² / ((1 - c)² (1 - 2c)); nan from c = 1/2 on."""
        return self._below(0.5, lambda c: self.scale.square() / ((1 - c).square() * (1 - 2 * c)))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        loc, shape = self.loc, self._extended_shape(sample_shape)
        return self.icdf(flow.rand(shape, dtype=loc.dtype, device=loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._z(value)
        return -self.scale.log() - self._or_series(
            lambda c: special.xlog1py(1 / c + 1, c * z),
            lambda c: z + c * (z - z.square() / 2 + c * (z.pow(3) / 3 - z.square() / 2)),
        )

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Return the logarithm of the share above a value."""
        z = self._z(value)
        return self._or_series(
            lambda c: -(c * z).log1p() / c,
            lambda c: -z + c * (z.square() / 2 - c * z.pow(3) / 3),
        )

    def log_cdf(self, value: Tensor) -> Tensor:
        """Return the logarithm of the share below a value."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        t = -(-value).log1p()
        z = self._or_series(
            lambda c: (c * t).expm1() / c, lambda c: t + c * (t.square() / 2 + c * t.pow(3) / 6)
        )
        return self.loc + self.scale * z

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1


class VonMises(Distribution):
    """Angles with the density exp(κ cos(x - loc)) / (2π I₀(κ)), κ = `concentration`.

    >>> import oneflow_lite as flow
    >>> flow.distributions.VonMises(flow.tensor(0.0), flow.tensor(1.0)).log_prob(flow.tensor(0.0))
    tensor(-1.0738)
    """

    arg_constraints = parameters(loc=constraints.real, concentration=constraints.positive)
    support = constraints.real

    def __init__(
        self, loc: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        """The circular variance 1 - I₁(κ) / I₀(κ)."""
        kappa = self.concentration
        return 1 - special.i1e(kappa) / special.i0e(kappa)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            kappa = self.concentration.expand(self._extended_shape(sample_shape))
            drawn = F._von_mises(kappa.contiguous(), generator=default_generator)
            return (drawn + math.pi + self.loc) % (2 * math.pi) - math.pi

    def log_prob(self, value: Tensor) -> Tensor:
        kappa, angle = self.concentration, self._checked(value) - self.loc
        scaled = special.i0e(kappa).log()  # of I₀(κ) exp(-κ)
        return kappa * (angle.cos() - 1) - math.log(2 * math.pi) - scaled


guard_all(globals())
