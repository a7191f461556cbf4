"""KL divergences KL(p || q) = E log p(x) - E log q(x), x drawn from p.

Two distributions of one kind have a formula of their own. Other pairs need E log q(x) alone, which
is made of moments of p: its mean and variance, and the moments in the tables of this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from oneflow_lite import functions as flow, linalg
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.distributions import (
    categories,
    composed,
    counts,
    gammas,
    location_scale as lines,
    multivariate,
    relaxed,
    transformed,
)
from oneflow_lite.distributions.distribution import Distribution, ExponentialFamily
from oneflow_lite.distributions.utils import euler_constant, sum_rightmost
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, MissingMethodError
from oneflow_lite.nn.functional import softplus
from oneflow_lite.ops.exposure import expose
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.tensor import Tensor

expose(globals())

__all__ = ["kl_divergence", "register_kl"]

Formula = Callable[[Any, Any], Tensor]
_KL_REGISTRY: dict[tuple[type, type], Formula] = {}


def register_kl(
    type_p: type[Distribution], type_q: type[Distribution]
) -> Callable[[Formula], Formula]:
    """Register KL(p || q) of two classes of distributions, as a decorator.

    The formula of the nearest base classes is taken. Classes of somebody else's may be registered,
    too, as in PyTorch. ArgumentTypeError: when a type is no class.
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise ArgumentTypeError(f"{name}: expected a class of distributions, got {kind!r}")

    def decorator(formula: Formula) -> Formula:
        _KL_REGISTRY[type_p, type_q] = formula
        return formula

    return decorator


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the divergence of q from p, of the shape of their batches together.

    MissingMethodError: when there is no formula for the two.

    >>> import oneflow_lite as flow
    >>> D = flow.distributions
    >>> D.kl_divergence(D.Normal(1.0, 1.0), D.Normal(0.0, 1.0))
    tensor(0.5000)
    """
    types_p, types_q = type(p).__mro__, type(q).__mro__

    def distance(bases: tuple[type, ...], kind: type) -> int:  # the last: a virtual base class
        return bases.index(kind) if kind in bases else len(bases)

    near = [
        (distance(types_p, a), distance(types_q, b), formula)
        for (a, b), formula in _KL_REGISTRY.items()
        if issubclass(type(p), a) and issubclass(type(q), b)
    ]
    names = f"{type(p).__name__}, {type(q).__name__}"
    if not near:
        raise MissingMethodError(f"kl_divergence({names}): no formula; register_kl() one")
    # As in PyTorch: nearest in p's bases, then in q's, and the reverse; the two should agree.
    formula = min(near, key=lambda found: found[:2])[2]
    if formula is not min(near, key=lambda found: found[1::-1])[2]:
        text = f"kl_divergence({names}): two formulas are as near; register_kl() one for the two"
        warn_caller(text, RuntimeWarning)
    return formula(p, q)


def _alike(kind: type) -> Callable[[Formula], Formula]:
    return register_kl(kind, kind)


# --- Two of one kind -----------------------------------------------------------------------------


@_alike(counts.Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    def part(chance: Tensor, of_q: Tensor, sign: int) -> Tensor:
        cost = chance * (softplus(sign * q.logits) - softplus(sign * p.logits))
        return flow.where(chance == 0, 0.0, flow.where(of_q == 0, math.inf, cost))

    return part(p.probs, q.probs, -1) + part(1 - p.probs, 1 - q.probs, 1)


@_alike(counts.Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    n = p.total_count
    if (n < q.total_count).any():
        raise MissingMethodError("kl_divergence(): no formula for more trials in q than in p")
    one = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return flow.where(n > q.total_count, math.inf, n * one)


@_alike(categories.Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    cost = flow.where(q.probs == 0, math.inf, p.probs * (p.logits - q.logits))
    return flow.where(p.probs == 0, 0.0, cost).sum(-1)


@_alike(categories.OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@_alike(gammas.Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    mean_log = a.digamma() - a.sum(-1, keepdim=True).digamma()
    return q._log_beta() - p._log_beta() + ((a - b) * mean_log).sum(-1)


@_alike(gammas.Beta)
def _beta(p: Any, q: Any) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@_alike(gammas.Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    ratio = q.rate / p.rate
    return (a - b) * a.digamma() - a.lgamma() + b.lgamma() - b * ratio.log() + a * (ratio - 1)


@_alike(lines.Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@_alike(counts.Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@_alike(counts.Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@_alike(lines.Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).square()
    return (ratio - 1 - ratio.log() + ((p.loc - q.loc) / q.scale).square()) / 2


@_alike(transformed.HalfNormal)
def _half_normal(p: Any, q: Any) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@_alike(lines.Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    ratio, off = p.scale / q.scale, (p.loc - q.loc).abs()
    return off / q.scale + ratio * (-off / p.scale).exp() - 1 - ratio.log()


@_alike(lines.Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    """Chyzak and Nielsen, A closed-form formula for the divergence between Cauchy distributions."""
    both = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return (both / (4 * p.scale * q.scale)).log()


@_alike(multivariate.Wishart)
def _wishart(p: Any, q: Any) -> Tensor:
    n, half = p._n, p.df / 2
    trace = (q.precision_matrix * p.covariance_matrix).sum((-2, -1))
    log_det = 2 * multivariate.log_diagonal(q.scale_tril)
    log_det = log_det - 2 * multivariate.log_diagonal(p.scale_tril)
    forms = flow.mvlgamma(q.df / 2, n) - flow.mvlgamma(half, n)
    forms = forms + (half - q.df / 2) * multivariate.mvdigamma(half, n)
    return half * (trace - n) + q.df / 2 * log_det + forms


def _multivariate_normal(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        shapes = f"{p.event_shape} and {q.event_shape}"
        raise ArgumentError(f"kl_divergence(): expected one event_shape, got {shapes}")
    of_p, of_q = flow.broadcast_tensors(p.scale_tril, q.scale_tril)
    square = linalg.solve_triangular(of_q, of_p, upper=False).square().sum((-2, -1))
    square = square + multivariate.mahalanobis(q.scale_tril, q.loc - p.loc)
    log_ratio = multivariate.log_diagonal(q.scale_tril) - multivariate.log_diagonal(p.scale_tril)
    return log_ratio + (square - p.event_shape[0]) / 2


for _p in (multivariate.MultivariateNormal, multivariate.LowRankMultivariateNormal):
    for _q in (multivariate.MultivariateNormal, multivariate.LowRankMultivariateNormal):
        register_kl(_p, _q)(_multivariate_normal)


@_alike(ExponentialFamily)
def _family(p: Any, q: Any) -> Tensor:
    """F(θ') - F(θ) - (θ' - θ)·∇F(θ), the Bregman divergence of the log normalizer."""
    if type(p) is not type(q):
        names = f"{type(p).__name__}, {type(q).__name__}"
        raise MissingMethodError(f"kl_divergence({names}): no formula; register_kl() one")
    normalizer, natural, slopes = p._at_natural()
    others = q._natural_params
    result = q._log_normalizer(*others) - normalizer
    for one, other, slope in zip(natural, others, slopes, strict=True):
        inner = (other - one) * slope
        result = result - inner.reshape((*result.shape, -1)).sum(-1)
    return result


@_alike(composed.Independent)
def _independent(p: Any, q: Any) -> Tensor:
    n = p.reinterpreted_batch_ndims
    if n != q.reinterpreted_batch_ndims:
        raise MissingMethodError("kl_divergence(): events of as many dimensions are expected")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), n)


@_alike(composed.TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        names = f"{type(p).__name__}, {type(q).__name__}"
        raise MissingMethodError(f"kl_divergence({names}): no formula for different transforms")
    return kl_divergence(p.base_dist, q.base_dist)


# --- By moments ----------------------------------------------------------------------------------


def _x_log_x(x: Tensor) -> Tensor:
    return flow.xlogy(x, x)


def _mean_log_uniform(low: Tensor, high: Tensor) -> Tensor:
    return (_x_log_x(high) - _x_log_x(low)) / (high - low) - 1


# E log x
_MEAN_LOG: dict[type, Callable[[Any], Tensor]] = {
    gammas.Beta: lambda p: (
        p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    ),
    lines.Exponential: lambda p: -p.rate.log() - euler_constant,
    gammas.Gamma: lambda p: p.concentration.digamma() - p.rate.log(),
    transformed.Pareto: lambda p: p.scale.log() + 1 / p.alpha,
    lines.Uniform: lambda p: _mean_log_uniform(p.low, p.high),
}
# E exp(-t x)
_MEAN_EXP: dict[type, Callable[[Any, Tensor], Tensor]] = {
    lines.Exponential: lambda p, t: p.rate / (p.rate + t),
    gammas.Gamma: lambda p, t: (1 + t / p.rate).pow(-p.concentration),
    transformed.Gumbel: lambda p, t: (-t * p.loc + (1 + t * p.scale).lgamma()).exp(),
    lines.Normal: lambda p, t: ((t * p.scale).square() / 2 - t * p.loc).exp(),
    lines.Uniform: lambda p, t: ((-t * p.low).exp() - (-t * p.high).exp()) / (t * (p.high - p.low)),
}


def _moment(table: dict[type, Any], p: Any, *args: Any) -> Tensor:
    formula = next(table[kind] for kind in type(p).__mro__ if kind in table)
    return formula(p, *args)


def _of_beta(p: Any, q: Any) -> Tensor:
    mean_log_rest = _mean_log_uniform(1 - p.high, 1 - p.low)
    a, b = q.concentration1, q.concentration0
    return (a - 1) * _moment(_MEAN_LOG, p) + (b - 1) * mean_log_rest - q._dirichlet._log_beta()


def _of_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return p.mean * q.logits + (-q.probs).log1p() + q._log_c()


def _of_exponential(p: Any, q: Any) -> Tensor:
    return q.rate.log() - q.rate * p.mean


def _of_gamma(p: Any, q: Any) -> Tensor:
    c, rate = q.concentration, q.rate
    return (c - 1) * _moment(_MEAN_LOG, p) - rate * p.mean + c * rate.log() - c.lgamma()


def _of_gumbel(p: Any, q: Any) -> Tensor:
    rest = (q.loc / q.scale).exp() * _moment(_MEAN_EXP, p, 1 / q.scale)
    return (q.loc - p.mean) / q.scale - rest - q.scale.log()


def _of_laplace(p: Any, q: Any) -> Tensor:
    """E log q(x) by the mean of |x| for a normal x (the folded normal distribution)."""
    z = (p.loc - q.loc) / p.scale
    mean = p.scale * math.sqrt(2 / math.pi) * (-z.square() / 2).exp()
    mean = mean + (p.loc - q.loc) * (z / math.sqrt(2)).erf()
    return -mean / q.scale - (2 * q.scale).log()


def _of_normal(p: Any, q: Any) -> Tensor:
    square = (p.variance + (p.mean - q.loc).square()) / q.scale.square()
    return -square / 2 - q.scale.log() - math.log(2 * math.pi) / 2


def _of_pareto(p: Any, q: Any) -> Tensor:
    a = q.alpha
    return a.log() + a * q.scale.log() - (a + 1) * _moment(_MEAN_LOG, p)


def _of_poisson(p: Any, q: Any) -> Tensor:
    return p.mean * q.rate.log() - q.rate  # log x! is 0 for 0 and 1


def _of_uniform(p: Any, q: Any) -> Tensor:
    return -(q.high - q.low).log()


# The ends of the range in which a density is above 0.
_ENDS: dict[type, Callable[[Any], tuple[Any, Any]]] = {
    **dict.fromkeys((gammas.Beta, relaxed.ContinuousBernoulli), lambda d: (0.0, 1.0)),
    **dict.fromkeys((lines.Exponential, gammas.Gamma), lambda d: (0.0, math.inf)),
    transformed.Pareto: lambda d: (d.scale, math.inf),
    lines.Uniform: lambda d: (d.low, d.high),
}


def _ends(d: Any) -> tuple[Any, Any]:
    kinds = [kind for kind in type(d).__mro__ if kind in _ENDS]
    return _ENDS[kinds[0]](d) if kinds else (-math.inf, math.inf)


def _by_moments(mean_log_q: Formula) -> Formula:
    """Return the divergence by a formula of E log q(x); infinite where p reaches farther than q."""

    def divergence(p: Any, q: Any) -> Tensor:
        result = -p.entropy() - mean_log_q(p, q)
        (low, high), (least, most) = _ends(p), _ends(q)
        # Added to zeros, since an end is a number or a tensor, and comparing gives a batch.
        outside = flow.zeros_like(result) + low < flow.zeros_like(result) + least
        outside = outside | (flow.zeros_like(result) + high > flow.zeros_like(result) + most)
        return flow.where(outside, math.inf, result)

    return divergence


def _infinite(p: Any, q: Any) -> Tensor:
    """Return infinity: p draws values that q never does."""
    return flow.full_like(p.mean + q.mean, math.inf)


# The formula of E log q, and the kinds of p that have its moments.
_BY_MOMENTS: dict[Any, tuple[Formula, str]] = {
    gammas.Beta: (_of_beta, "Uniform"),
    relaxed.ContinuousBernoulli: (_of_continuous_bernoulli, "Beta Uniform ContinuousBernoulli"),
    lines.Exponential: (_of_exponential, "Beta ContinuousBernoulli Gamma Pareto Uniform"),
    gammas.Gamma: (_of_gamma, "Beta Exponential Pareto Uniform"),
    transformed.Gumbel: (_of_gumbel, "Exponential Gamma Gumbel Normal Uniform"),
    lines.Laplace: (_of_laplace, "Normal"),
    lines.Normal: (
        _of_normal,
        "Beta ContinuousBernoulli Exponential Gamma Gumbel Laplace Pareto Uniform",
    ),
    transformed.Pareto: (_of_pareto, "Pareto Uniform"),
    counts.Poisson: (_of_poisson, "Bernoulli"),
    lines.Uniform: (_of_uniform, "Beta ContinuousBernoulli Uniform"),
}
_ON_THE_LINE = "Gumbel Laplace Normal"
_FROM_0 = "Exponential Gamma"
_INFINITE: dict[Any, str] = {
    gammas.Beta: f"{_ON_THE_LINE} {_FROM_0} Pareto",
    relaxed.ContinuousBernoulli: f"{_ON_THE_LINE} {_FROM_0} Pareto",
    lines.Uniform: f"{_ON_THE_LINE} {_FROM_0} Pareto",
    lines.Exponential: _ON_THE_LINE,
    gammas.Gamma: _ON_THE_LINE,
    transformed.Pareto: f"{_ON_THE_LINE} {_FROM_0} Beta ContinuousBernoulli",
    counts.Bernoulli: "Poisson",
    counts.Binomial: "Poisson",
}
_KINDS = {
    kind.__name__: kind for kind in (*_BY_MOMENTS, *_INFINITE, counts.Bernoulli, counts.Poisson)
}
for _q, (_mean_log_q, _names) in _BY_MOMENTS.items():
    for _name in _names.split():
        register_kl(_KINDS[_name], _q)(_by_moments(_mean_log_q))
for _q, _names in _INFINITE.items():
    for _name in _names.split():
        register_kl(_KINDS[_name], _q)(_infinite)


guard_all(globals())
