"""Distributions made of distributions: joint events, transforms and mixtures."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.distributions import constraints
from oneflow_lite.distributions.categories import Categorical
from oneflow_lite.distributions.constraints import dependent_property
from oneflow_lite.distributions.distribution import Distribution, parameters
from oneflow_lite.distributions.transforms import ComposeTransform, Transform
from oneflow_lite.distributions.utils import sum_rightmost
from oneflow_lite.errors import ArgumentError, MissingMethodError
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor

__all__ = ["Independent", "MixtureSameFamily", "TransformedDistribution"]


class Independent(Distribution):
    """The last `reinterpreted_batch_ndims` dimensions of a batch as one event.

    ArgumentError: when the batch has fewer dimensions.

    >>> import oneflow_lite as flow
    >>> D = flow.distributions
    >>> one = D.Independent(D.Normal(flow.zeros(3, 2), 1.0), 1)
    >>> one.batch_shape, one.event_shape
    ((3,), (2,))
    """

    arg_constraints = parameters()

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch_shape, n = base_distribution.batch_shape, reinterpreted_batch_ndims
        if n > len(batch_shape):
            expected = f"at most {len(batch_shape)}, the dimensions of the batch"
            raise ArgumentError(f"reinterpreted_batch_ndims: expected {expected}, got {n}")
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        cut = len(batch_shape) - n
        event_shape = batch_shape[cut:] + base_distribution.event_shape
        super().__init__(batch_shape[:cut], event_shape, validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    has_enumerate_support = property(
        lambda self: not self.reinterpreted_batch_ndims and self.base_dist.has_enumerate_support
    )
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    @dependent_property
    def support(self) -> Any:
        """The support of the base, in more dimensions."""
        n, support = self.reinterpreted_batch_ndims, self.base_dist.support
        return constraints.independent(support, n) if n else support

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise MissingMethodError("Independent: the product of several supports is not listed")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The distribution of transform(x), x drawn from the base.

    Its density is the density of the base at the inverse, times |dx/dy|.

    >>> import oneflow_lite as flow
    >>> D = flow.distributions
    >>> log_normal = D.TransformedDistribution(D.Normal(0.0, 1.0), [D.ExpTransform()])
    >>> log_normal.log_prob(flow.tensor(1.0))
    tensor(-0.9189)
    """

    arg_constraints = parameters()

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        parts = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(parts, list) or not all(isinstance(t, Transform) for t in parts):
            got = type(transforms).__name__
            raise ArgumentError(f"transforms: expected a Transform or a list of them, got {got}")
        self.transforms: list[Any] = parts
        whole = ComposeTransform(parts)
        inner, outer = whole.domain.event_dim, whole.codomain.event_dim
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        own = len(base_distribution.event_shape)
        if len(base_shape) < inner:
            expected = f"at least {inner} dimensions, for the transform"
            raise ArgumentError(f"base_distribution: expected {expected}, got {base_shape}")
        shape = whole.forward_shape(base_shape)
        if base_shape != (wide := tuple(whole.inverse_shape(shape))):
            base_distribution = base_distribution.expand(wide[: len(wide) - own])
        if inner > own:
            base_distribution = Independent(base_distribution, inner - own)
        self.base_dist = base_distribution
        cut = len(shape) - max(outer, own + outer - inner)
        super().__init__(shape[:cut], shape[cut:], validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @dependent_property(is_discrete=False)
    def support(self) -> Any:
        """The codomain of the last transform, in as many dimensions as an event has."""
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    def _forward(self, value: Tensor) -> Tensor:
        for transform in self.transforms:
            value = transform(value)
        return value

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        y = self._checked(value)
        event_dim, slopes = len(self.event_shape), []
        for transform in reversed(self.transforms):
            x, inner = transform.inv(y), transform.domain.event_dim
            event_dim += inner - transform.codomain.event_dim
            slope = transform.log_abs_det_jacobian(x, y)
            slopes.append(sum_rightmost(slope, event_dim - inner))
            y = x
        base = self.base_dist.log_prob(y)
        base = sum_rightmost(base, event_dim - len(self.base_dist.event_shape))
        return functools.reduce(operator.sub, slopes, base)

    def _turned(self, share: Tensor) -> Tensor:
        """Return 1 - share where the transforms are falling."""
        sign = ComposeTransform(self.transforms).sign
        return share if isinstance(sign, int) and sign == 1 else sign * (share - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        return self._turned(self.base_dist.cdf(self.base_dist._checked(value)))

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._turned(value)))


class MixtureSameFamily(Distribution):
    """Draws of one of several components, which are the last dimension of a batch.

    ArgumentError: when the batches, or the numbers of components, do not fit.

    >>> import oneflow_lite as flow
    >>> D = flow.distributions
    >>> components = D.Normal(flow.tensor([-1.0, 3.0]), 0.1)
    >>> D.MixtureSameFamily(D.Categorical(flow.tensor([0.5, 0.5])), components).mean
    tensor(1.)
    """

    arg_constraints = parameters()
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        given = (
            ("mixture_distribution", mixture_distribution, Categorical),
            ("component_distribution", component_distribution, Distribution),
        )
        for name, value, kind in given:
            if not isinstance(value, kind):
                got = type(value).__name__
                raise ArgumentError(f"{name}: expected a {kind.__name__}, got {got}")
        *batch_shape, count = component_distribution.batch_shape
        mixture_shape = mixture_distribution.batch_shape
        try:
            np.broadcast_shapes(batch_shape, mixture_shape)
        except ValueError:
            raise ArgumentError(
                f"mixture_distribution: its batch_shape {mixture_shape} does not broadcast with "
                f"{tuple(batch_shape)}, that of the components"
            ) from None
        if (own := mixture_distribution.logits.shape[-1]) != count:
            expected = f"{own} components, as the mixture has, in the last dimension of the batch"
            raise ArgumentError(f"component_distribution: expected {expected}, got {count}")
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        super().__init__(batch_shape, component_distribution.event_shape, validate_args)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    @dependent_property
    def support(self) -> Any:
        """The constraint that the draws of all components fulfil."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _pad(self, value: Tensor) -> Tensor:
        """Return a value with a dimension for the components."""
        return value.unsqueeze(-1 - len(self.event_shape))

    def _mixed(self, values: Tensor) -> Tensor:
        """Return the sum over the components, weighed by their probabilities."""
        probs = self._mixture_distribution.probs
        probs = probs.reshape((*probs.shape, *(1 for _ in self.event_shape)))
        return (probs * values).sum(-1 - len(self.event_shape))

    mean = property(lambda self: self._mixed(self._component_distribution.mean))

    @property
    def variance(self) -> Tensor:
        """The mean of the variances, and the variance of the means."""
        each = self._component_distribution
        return self._mixed(each.variance) + self._mixed((each.mean - self._pad(self.mean)).square())

    def cdf(self, x: Tensor) -> Tensor:
        shares = self._component_distribution.cdf(self._pad(x))
        return (shares * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        x = self._pad(self._checked(x))
        weights = self._mixture_distribution.logits.log_softmax(-1)
        return (self._component_distribution.log_prob(x) + weights).logsumexp(-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            mixture = self._mixture_distribution.expand(self.batch_shape)
            chosen = mixture.sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            dim = chosen.ndim
            index = chosen.reshape((*chosen.shape, *(1 for _ in range(drawn.ndim - dim))))
            index = index.expand((*chosen.shape, 1, *self.event_shape))
            return drawn.gather(dim, index).squeeze(dim)

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
        )


guard_all(globals())
