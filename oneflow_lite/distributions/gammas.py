"""The gamma distribution and what is made of gamma numbers: shares, ratios, Student's t."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from oneflow_lite import functions as flow
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.distributions import constraints
from oneflow_lite.distributions.distribution import Distribution, ExponentialFamily, parameters
from oneflow_lite.distributions.utils import broadcast_all, tiny
from oneflow_lite.errors import ArgumentError
from oneflow_lite.functors.creation import as_tensor
from oneflow_lite.nn.functional import one_hot
from oneflow_lite.tensors.tensor import Tensor

__all__ = ["Beta", "Chi2", "Dirichlet", "FisherSnedecor", "Gamma", "StudentT"]


class Gamma(ExponentialFamily):
    """The density rate^c x^(c-1) exp(-rate x) / Γ(c), c = `concentration`.

    Draws have implicit gradients; Figurnov, Mohamed and Mnih, 2018.

    >>> import oneflow_lite as flow
    >>> flow.distributions.Gamma(3.0, 2.0).mean
    tensor(1.5000)
    """

    arg_constraints = parameters(concentration=constraints.positive, rate=constraints.positive)
    support = constraints.nonnegative
    has_rsample = True

    def __init__(
        self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(0))
    variance = property(lambda self: self.concentration / self.rate.square())

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        concentration = self.concentration.expand(self._extended_shape(sample_shape))
        # A small draw may round to 0, which is outside of the support.
        return (F._standard_gamma(concentration) / self.rate).clamp(tiny(concentration))

    def log_prob(self, value: Tensor | float) -> Tensor:
        c, rate = self.concentration, self.rate
        value = self._checked(as_tensor(value, dtype=rate.dtype, device=rate.device))
        return flow.xlogy(c, rate) + flow.xlogy(c - 1, value) - rate * value - c.lgamma()

    def cdf(self, value: Tensor) -> Tensor:
        return flow.igamma(self.concentration, self.rate * self._checked(value))

    def entropy(self) -> Tensor:
        c = self.concentration
        return c - self.rate.log() + c.lgamma() + (1 - c) * c.digamma()


class Chi2(Gamma):
    """The sum of `df` squares of standard normal numbers.

    >>> import oneflow_lite as flow
    >>> flow.distributions.Chi2(4.0).mean
    tensor(4.)
    """

    arg_constraints = parameters(df=constraints.positive)

    def __init__(self, df: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args)

    df = property(lambda self: self.concentration * 2)


class Dirichlet(ExponentialFamily):
    """Shares x, the last dimension, with a density proportional to Π x^(concentration - 1).

    >>> import oneflow_lite as flow
    >>> flow.distributions.Dirichlet(flow.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = parameters(concentration=constraints.independent(constraints.positive, 1))
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ArgumentError("concentration: expected at least one dimension, got a 0-d tensor")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    _total: Any = property(lambda self: self.concentration.sum(-1, keepdim=True))
    mean: Any = property(lambda self: self.concentration / self._total)
    variance = property(lambda self: self.mean * (1 - self.mean) / (self._total + 1))

    @property
    def mode(self) -> Tensor:
        """The place of the largest density; a corner where no concentration reaches 1."""
        c = self.concentration
        more = (c - 1).clamp(0)
        none = (c < 1).all(-1, keepdim=True)
        mode = more / flow.where(none, 1.0, more.sum(-1, keepdim=True))
        corner = one_hot(mode.argmax(-1), c.shape[-1]).to(c.dtype)
        return flow.where(none, corner, mode)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return F._sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def _log_beta(self) -> Tensor:
        """Return the logarithm of the normalizing constant of the density."""
        c = self.concentration
        return c.lgamma().sum(-1) - c.sum(-1).lgamma()

    def log_prob(self, value: Tensor) -> Tensor:
        return flow.xlogy(self.concentration - 1, self._checked(value)).sum(-1) - self._log_beta()

    def entropy(self) -> Tensor:
        c = self.concentration
        total = c.sum(-1)
        own = ((c - 1) * c.digamma()).sum(-1)
        return self._log_beta() + (total - c.shape[-1]) * total.digamma() - own


class Beta(ExponentialFamily):
    """The first of two shares of `Dirichlet`: a density proportional to x^(c1-1) (1-x)^(c0-1).

    >>> import oneflow_lite as flow
    >>> flow.distributions.Beta(2.0, 6.0).mean
    tensor(0.2500)
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
        both = flow.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    concentration1 = property(lambda self: self._dirichlet.concentration[..., 0])
    concentration0 = property(lambda self: self._dirichlet.concentration[..., 1])
    mean = property(lambda self: self._dirichlet.mean[..., 0])
    mode = property(lambda self: self._dirichlet.mode[..., 0])
    variance = property(lambda self: self._dirichlet.variance[..., 0])

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        return self._dirichlet.log_prob(flow.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()


class FisherSnedecor(Distribution):
    """The ratio of two means of squares, of `df1` and `df2` standard normal numbers.

    >>> import oneflow_lite as flow
    >>> flow.distributions.FisherSnedecor(1.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = parameters(df1=constraints.positive, df2=constraints.positive)
    support = constraints.positive
    has_rsample = True

    def __init__(
        self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """df2 / (df2 - 2); nan up to df2 = 2."""
        # Where the mean does not exist, any valid df2 keeps nan out of the gradient.
        b = flow.where(self.df2 > 2, self.df2, 3.0)
        return flow.where(self.df2 > 2, b / (b - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        """(df1 - 2) / df1 * df2 / (df2 + 2); nan up to df1 = 2."""
        a, b = self.df1, self.df2
        return flow.where(a > 2, (a - 2) / a * b / (b + 2), math.nan)

    @property
    def variance(self) -> Tensor:
        """2 df2² (df1 + df2 - 2) / (df1 (df2 - 2)² (df2 - 4)); nan up to df2 = 4."""
        a, b = self.df1, flow.where(self.df2 > 4, self.df2, 5.0)
        variance = 2 * b.square() * (a + b - 2) / (a * (b - 2).square() * (b - 4))
        return flow.where(self.df2 > 4, variance, math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        first, second = (
            Gamma(df / 2, df, False).rsample(sample_shape) for df in (self.df1, self.df2)
        )
        return (first / second).clamp(tiny(first))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
        rest = (a + b) * (ratio * value).log1p()
        return a * ratio.log() + flow.xlogy(a - 1, value) - rest - log_beta


class StudentT(Distribution):
    """Student's t with `df` degrees of freedom, shifted and stretched.

    >>> import oneflow_lite as flow
    >>> flow.distributions.StudentT(3.0).variance
    tensor(3.)
    """

    arg_constraints = parameters(
        df=constraints.positive, loc=constraints.real, scale=constraints.positive
    )
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    mode = property(lambda self: self.loc)

    @property
    def mean(self) -> Tensor:
        """loc; nan up to df = 1."""
        return flow.where(self.df <= 1, math.nan, self.loc)

    @property
    def variance(self) -> Tensor:
        """scale² df / (df - 2); inf up to df = 2, nan up to df = 1."""
        df = flow.where(self.df > 2, self.df, 3.0)
        finite = flow.where(self.df > 2, self.scale.square() * df / (df - 2), math.inf)
        return flow.where(self.df <= 1, math.nan, finite)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        df, shape = self.df, self._extended_shape(sample_shape)
        z = flow.randn(shape, dtype=df.dtype, device=df.device)
        squares = Chi2(df, False).rsample(sample_shape)
        return self.loc + self.scale * z * (squares / df).rsqrt()

    def _log_beta(self) -> Tensor:
        """Return log B(1/2, df/2)."""
        half = self.df / 2
        return half.lgamma() + math.lgamma(0.5) - (half + 0.5).lgamma()

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        rest = self.scale.log() + self.df.log() / 2 + self._log_beta()
        return -(self.df + 1) / 2 * (z.square() / self.df).log1p() - rest

    def entropy(self) -> Tensor:
        half = self.df / 2
        mean = (half + 0.5) * ((half + 0.5).digamma() - half.digamma())
        return self.scale.log() + mean + self.df.log() / 2 + self._log_beta()


guard_all(globals())
