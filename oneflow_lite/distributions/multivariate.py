"""Distributions of vectors and matrices with a covariance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from oneflow_lite import functions as flow, linalg
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.distributions import constraints
from oneflow_lite.distributions.distribution import Distribution, ExponentialFamily, parameters
from oneflow_lite.distributions.gammas import Beta, Chi2
from oneflow_lite.distributions.utils import (
    broadcast_all,
    eps,
    lazy_property,
    tiny,
    vec_to_tril_matrix,
)
from oneflow_lite.errors import ArgumentError, OptionError
from oneflow_lite.functors.creation import as_tensor
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor

__all__ = ["LKJCholesky", "LowRankMultivariateNormal", "MultivariateNormal", "Wishart"]


def times(matrix: Tensor, vector: Tensor) -> Tensor:
    """Return the products of matrices and vectors; batches broadcast."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def log_diagonal(tril: Tensor) -> Tensor:
    """Return half the logarithm of the determinant of L L^T."""
    return tril.diagonal(0, -2, -1).log().sum(-1)


def mahalanobis(tril: Tensor, diff: Tensor) -> Tensor:
    """Return |L⁻¹ d|² of vectors d; all vectors of the same L are solved together."""
    own = diff.ndim - tril.ndim + 1
    more, batch = diff.shape[:own], tuple(diff.shape[own:-1])
    batch = tuple(np.broadcast_shapes(batch, tril.shape[:-2]))
    n = diff.shape[-1]
    # All draws become columns of one system, and each factor is solved once.
    columns = diff.expand((*more, *batch, n)).reshape((-1, *batch, n)).movedim(0, -1)
    solved = linalg.solve_triangular(tril.expand((*batch, n, n)), columns, upper=False)
    return solved.square().sum(-2).movedim(-1, 0).reshape((*more, *batch))


def _precision_to_scale_tril(precision: Tensor) -> Tensor:
    """Return L with L L^T = P⁻¹, from the Cholesky factor of P in reverse order."""
    factor = linalg.cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    one = flow.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return linalg.solve_triangular(factor, one.expand(factor.shape), upper=False)


class _OfCovariance(Distribution):
    """A distribution with a covariance, its inverse or its Cholesky factor as parameter.

    The two missing matrices are computed when they are asked for.
    """

    _unbroadcasted_scale_tril: Tensor

    def _take(self, batch_shape: Sequence[int], error: Any, **given: Any) -> tuple[int, ...]:
        """Keep the given matrix, expanded; return the batch shape."""
        named = {name: value for name, value in given.items() if value is not None}
        if len(named) != 1:
            got = " and ".join(named) or "none"
            raise error(f"{', '.join(given)}: expected one of these, got {got}")
        ((name, matrix),) = named.items()
        if matrix.ndim < 2:
            raise ArgumentError(f"{name}: expected at least two dimensions, got {matrix.ndim}")
        shape = np.broadcast_shapes(batch_shape, matrix.shape[:-2])
        setattr(self, name, matrix.expand((*shape, *matrix.shape[-2:])))
        return shape

    def _factor(self) -> None:
        given = vars(self)
        if "scale_tril" in given:
            self._unbroadcasted_scale_tril = self.scale_tril
        elif "covariance_matrix" in given:
            self._unbroadcasted_scale_tril = linalg.cholesky(self.covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(self.precision_matrix)

    scale_tril = lazy_property(lambda self: self._unbroadcasted_scale_tril)
    covariance_matrix = lazy_property(
        lambda self: self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT
    )
    precision_matrix = lazy_property(
        lambda self: flow.cholesky_inverse(self._unbroadcasted_scale_tril)
    )


class MultivariateNormal(_OfCovariance):
    """Normal vectors with the mean `loc` and a covariance, its inverse, or its Cholesky factor.

    For vectors of n elements, `loc` is (*, n); `covariance_matrix`, its inverse `precision_matrix`
    or its factor `scale_tril` is (*, n, n). ArgumentError: unless exactly one matrix is given, or
    when `loc` has no dimension.

    >>> import oneflow_lite as flow
    >>> one = flow.distributions.MultivariateNormal(flow.zeros(2), flow.eye(2))
    >>> one.log_prob(flow.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = parameters(
        loc=constraints.real_vector,
        covariance_matrix=constraints.positive_definite,
        precision_matrix=constraints.positive_definite,
        scale_tril=constraints.lower_cholesky,
    )
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise ArgumentError("loc: expected at least one dimension, got a 0-d tensor")
        shape = self._take(
            loc.shape[:-1],
            ArgumentError,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        self.loc = loc.expand((*shape, loc.shape[-1]))
        super().__init__(shape, loc.shape[-1:], validate_args)
        self._factor()

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: self._unbroadcasted_scale_tril.square().sum(-1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        loc, shape = self.loc, self._extended_shape(sample_shape)
        z = flow.randn(shape, dtype=loc.dtype, device=loc.device)
        return loc + times(self._unbroadcasted_scale_tril, z)

    def _log_volume(self, square: Any) -> Tensor:
        """Return n log(2π) / 2 + log |L| + square / 2."""
        n = self._event_shape[0]
        volume = log_diagonal(self._unbroadcasted_scale_tril)
        return volume + (n * math.log(2 * math.pi) + square) / 2

    def log_prob(self, value: Tensor) -> Tensor:
        off = self._checked(value) - self.loc
        return -self._log_volume(mahalanobis(self._unbroadcasted_scale_tril, off))

    def entropy(self) -> Tensor:
        return self._log_volume(self._event_shape[0])


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with the covariance W W^T + diag(d), W = `cov_factor` of few columns.

    Determinant and inverse come from the small matrix C = 1 + W^T diag(1/d) W (Woodbury).
    ArgumentError: when the shapes do not fit.

    >>> import oneflow_lite as flow
    >>> D = flow.distributions
    >>> D.LowRankMultivariateNormal(flow.zeros(2), flow.ones(2, 1), flow.ones(2)).variance
    tensor([2., 2.])
    """

    arg_constraints = parameters(
        loc=constraints.real_vector,
        cov_factor=constraints.independent(constraints.real, 2),
        cov_diag=constraints.independent(constraints.positive, 1),
    )
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None
    ) -> None:
        if loc.ndim < 1 or cov_factor.ndim < 2 or cov_diag.ndim < 1:
            expected = "expected at least 1, 2 and 1 dimensions"
            got = f"{loc.ndim}, {cov_factor.ndim} and {cov_diag.ndim}"
            raise ArgumentError(f"loc, cov_factor, cov_diag: {expected}, got {got}")
        (n,) = event_shape = loc.shape[-1:]
        if cov_factor.shape[-2] != n or cov_diag.shape[-1] != n:
            shapes = f"{cov_factor.shape} and {cov_diag.shape}"
            expected = f"expected (*, {n}, columns) and (*, {n})"
            raise ArgumentError(f"cov_factor, cov_diag: {expected}, got {shapes}")
        try:
            shape = np.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except ValueError:
            shapes = f"{loc.shape}, {cov_factor.shape} and {cov_diag.shape}"
            raise ArgumentError(f"the batches of {shapes} do not broadcast") from None
        self.loc, self.cov_diag = loc.expand((*shape, n)), cov_diag.expand((*shape, n))
        self.cov_factor = cov_factor.expand((*shape, *cov_factor.shape[-2:]))
        super().__init__(shape, event_shape, validate_args)

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: self.cov_factor.square().sum(-1) + self.cov_diag)
    _scaled = property(lambda self: self.cov_factor.mT / self.cov_diag.unsqueeze(-2))  # W^T D⁻¹

    @lazy_property
    def _capacitance_tril(self) -> Tensor:
        """The Cholesky factor of C."""
        inner = self._scaled @ self.cov_factor
        one = flow.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)
        return linalg.cholesky(inner + one)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """√D times the factor of 1 + D^(-1/2) W W^T D^(-1/2), which is well conditioned."""
        root = self.cov_diag.sqrt().unsqueeze(-1)
        scaled = self.cov_factor / root
        one = flow.eye(root.shape[-2], dtype=root.dtype, device=root.device)
        return root * linalg.cholesky(scaled @ scaled.mT + one)

    covariance_matrix = lazy_property(
        lambda self: self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()
    )

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """D⁻¹ - D⁻¹ W C⁻¹ W^T D⁻¹."""
        # C⁻¹ = L⁻ᵀ L⁻¹, so that one triangular solve gives both sides of the product.
        a = linalg.solve_triangular(self._capacitance_tril, self._scaled, upper=False)
        return (1 / self.cov_diag).diag_embed() - a.mT @ a

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        loc, shape = self.loc, self._extended_shape(sample_shape)
        like: Any = {"dtype": loc.dtype, "device": loc.device}
        few = flow.randn((*shape[:-1], self.cov_factor.shape[-1]), **like)
        return loc + times(self.cov_factor, few) + self.cov_diag.sqrt() * flow.randn(shape, **like)

    def _log_det(self) -> Tensor:
        return 2 * log_diagonal(self._capacitance_tril) + self.cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        off = self._checked(value) - self.loc
        inner = mahalanobis(self._capacitance_tril, times(self._scaled, off))
        square = (off.square() / self.cov_diag).sum(-1) - inner
        n = self._event_shape[0]
        return -(n * math.log(2 * math.pi) + self._log_det() + square) / 2

    def entropy(self) -> Tensor:
        return (self._event_shape[0] * (1 + math.log(2 * math.pi)) + self._log_det()) / 2


def mvdigamma(x: Tensor, p: int) -> Tensor:
    """Return the derivative of `flow.mvlgamma`."""
    steps = flow.arange(p, dtype=x.dtype, device=x.device) / 2
    return (x.unsqueeze(-1) - steps).digamma().sum(-1)


class Wishart(_OfCovariance, ExponentialFamily):
    """Sums X X^T of `df` normal vectors with a covariance: positive definite matrices.

    Draws are by Bartlett's decomposition, of shape (*, n, n). The covariance is given as in
    `MultivariateNormal`. ArgumentError: when `df` is not above n - 1. OptionError: unless
    exactly one matrix is given.

    >>> import oneflow_lite as flow
    >>> flow.distributions.Wishart(3.0, flow.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        shape = self._take(
            getattr(df, "shape", ()),
            OptionError,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        (matrix,) = vars(self).values()
        self.df = as_tensor(df, dtype=matrix.dtype, device=matrix.device).expand(shape)
        n = matrix.shape[-1]
        if (self.df <= n - 1).any():
            raise ArgumentError(f"df: expected more than {n - 1}, got {df}")
        if (self.df < n).any():
            text = f"df below the dimension {n}: draws are often singular"
            warn_caller(text)
        super().__init__(shape, matrix.shape[-2:], validate_args)
        self._factor()

    arg_constraints = property(
        lambda self: {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }
    )
    _n: Any = property(lambda self: self.event_shape[-1])
    _df: Any = property(lambda self: self.df[..., None, None])
    mean = property(lambda self: self._df * self.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        """(df - n - 1) times the covariance; nan unless df > n + 1."""
        factor = self._df - self._n - 1
        return flow.where(factor > 0, factor, math.nan) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """df (Vᵢⱼ² + Vᵢᵢ Vⱼⱼ), V the covariance."""
        v = self.covariance_matrix
        diagonal = v.diagonal(0, -2, -1)
        return self._df * (v.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett(self, sample_shape: Sequence[int]) -> Tensor:
        tril, n = self._unbroadcasted_scale_tril, self._n
        steps = flow.arange(n, dtype=tril.dtype, device=tril.device)
        chi = Chi2(self.df.unsqueeze(-1) - steps, False).rsample(sample_shape).sqrt()
        shape = (*sample_shape, *self._batch_shape, n * (n - 1) // 2)
        noise = flow.randn(shape, dtype=tril.dtype, device=tril.device)
        factor = tril @ (vec_to_tril_matrix(noise, -1) + chi.clamp(eps(tril)).diag_embed())
        return factor @ factor.mT

    def rsample(
        self, sample_shape: Sequence[int] = (), max_try_correction: int | None = None
    ) -> Tensor:
        """Return draws; singular draws are drawn again, `max_try_correction` times (10)."""
        drawn = self._bartlett(sample_shape)
        for _ in range(10 if max_try_correction is None else max_try_correction):
            regular = self.support.check(drawn)[..., None, None]
            if regular.all():
                break
            drawn = flow.where(regular, drawn, self._bartlett(sample_shape))
        return drawn

    def _log_normalizer_of_density(self) -> Tensor:
        n = self._n
        volume = n * math.log(2) / 2 + log_diagonal(self._unbroadcasted_scale_tril)
        return self.df * volume + flow.mvlgamma(self.df / 2, n)

    def log_prob(self, value: Tensor) -> Tensor:
        value, df, n = self._checked(value), self.df, self._n
        trace = (self.precision_matrix * value).sum((-2, -1))
        log_det = linalg.slogdet(value)[1]
        return (df - n - 1) / 2 * log_det - trace / 2 - self._log_normalizer_of_density()

    def entropy(self) -> Tensor:
        df, n = self.df, self._n
        volume = log_diagonal(self._unbroadcasted_scale_tril)
        log_det = mvdigamma(df / 2, n) + n * math.log(2) + 2 * volume
        return self._log_normalizer_of_density() + df * n / 2 - (df - n - 1) / 2 * log_det


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices of a density like det^(concentration - 1).

    Lewandowski, Kurowicka and Joe, Generating random correlation matrices based on vines and
    extended onion method, 2009. ArgumentError: when `dim` is below 2.

    >>> import oneflow_lite as flow
    >>> flow.distributions.LKJCholesky(3, 0.5).sample().shape
    (3, 3)
    """

    arg_constraints = parameters(concentration=constraints.positive)
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ArgumentError(f"dim: expected an int from 2 on, got {dim}")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def _steps(self, first: int, last: int) -> Tensor:
        c = self.concentration
        return flow.arange(first, last, dtype=c.dtype, device=c.device)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return draws by the onion method: each row left of the diagonal has the length √Beta."""
        with no_grad():
            c, n = self.concentration, self.dim
            rows = self._steps(0, n - 1)
            length = Beta(rows + 0.5, (c + (n - 2) / 2).unsqueeze(-1) - rows / 2, False)
            shape = self._extended_shape(sample_shape)
            left = flow.randn(shape, dtype=c.dtype, device=c.device).tril(-1)[..., 1:, :]
            left = left / left.square().sum(-1, keepdim=True).sqrt()
            left = left * length.sample(sample_shape).sqrt().unsqueeze(-1)
            left = flow.cat([flow.zeros_like(left[..., :1, :]), left], -2)
            rest = (1 - left.square().sum(-1)).clamp(tiny(c)).sqrt()
            return left + rest.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        c, n = self.concentration, self.dim
        order = 2 * (c - 1).unsqueeze(-1) + n - self._steps(2, n + 1)
        diagonal = self._checked(value).diagonal(0, -2, -1)[..., 1:]
        alpha = c + (n - 1) / 2
        log_pi = (n - 1) / 2 * math.log(math.pi)
        log_norm = log_pi + flow.mvlgamma(alpha - 0.5, n - 1) - alpha.lgamma() * (n - 1)
        return (order * diagonal.log()).sum(-1) - log_norm


guard_all(globals())
