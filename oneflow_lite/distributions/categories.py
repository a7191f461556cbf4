"""Distributions over categories: as an index, a vector with one 1, or counts of draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from oneflow_lite import functions as flow
from oneflow_lite.arrays.dtype import finfo
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.distributions import constraints
from oneflow_lite.distributions.by_logits import ByLogits
from oneflow_lite.distributions.constraints import dependent_property
from oneflow_lite.distributions.counts import Binomial
from oneflow_lite.distributions.distribution import Distribution
from oneflow_lite.distributions.utils import broadcast_all
from oneflow_lite.errors import ArgumentError, MissingMethodError
from oneflow_lite.nn.functional import one_hot
from oneflow_lite.tensors.tensor import Tensor

__all__ = ["Categorical", "Multinomial", "OneHotCategorical", "OneHotCategoricalStraightThrough"]

_OF_VECTORS = {"probs": constraints.simplex, "logits": constraints.real_vector}


class Categorical(ByLogits):
    """Indices from 0 on, with the probabilities `probs / probs.sum(-1)` or `softmax(logits)`.

    ArgumentError: unless exactly one parameter is given, with at least one dimension.

    >>> import oneflow_lite as flow
    >>> one = flow.distributions.Categorical(flow.tensor([1.0, 1.0, 2.0]))
    >>> one.probs, one.log_prob(flow.tensor(2)).exp()
    (tensor([0.2500, 0.2500, 0.5000]), tensor(0.5000))
    """

    arg_constraints = _OF_VECTORS
    has_enumerate_support = True
    _is_binary = False

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, given = self._given(probs, logits)
        if given.ndim < 1:
            raise ArgumentError(f"{name}: expected at least one dimension, got a 0-d tensor")
        if name == "probs":
            self.probs = given / given.sum(-1, keepdim=True)
        else:
            self.logits = given - given.logsumexp(-1, keepdim=True)
        self._num_events = given.shape[-1]
        Distribution.__init__(self, given.shape[:-1], validate_args=validate_args)

    @dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """From 0 to the number of categories - 1."""
        return constraints.integer_interval(0, self._num_events - 1)

    mean = variance = property(lambda self: flow.full_like(self._param[..., 0], math.nan))
    mode = property(lambda self: self.probs.argmax(-1))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        rows = self.probs.detach().reshape(-1, self._num_events)
        # multinomial() draws at least once; the cut serves sample shapes without elements.
        drawn = flow.multinomial(rows, max(math.prod(sample_shape), 1), True).t()
        drawn = drawn[: math.prod(sample_shape)]
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value).long().unsqueeze(-1)
        value, logits = flow.broadcast_tensors(value, self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        # -inf times the probability 0 would be nan.
        least = float(finfo(self.logits.dtype).min)
        return -(self.logits.clamp(least) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._listed(flow.arange(self._num_events, device=self._param.device), expand)


class OfCategorical(Distribution):
    """Vectors made of the draws of a Categorical."""

    arg_constraints = _OF_VECTORS
    _categorical: Categorical

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(
        lambda self: self._categorical.param_shape, doc="The shape of `probs` and `logits`."
    )
    _param = property(lambda self: self._categorical._param)


class OneHotCategorical(OfCategorical):
    """Vectors with a 1 at the place that `Categorical` draws.

    >>> import oneflow_lite as flow
    >>> flow.distributions.OneHotCategorical(flow.tensor([0.0, 1.0])).sample()
    tensor([0., 1.])
    """

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        *batch_shape, count = self.param_shape
        super().__init__(batch_shape, (count,), validate_args)

    mean = property(lambda self: self.probs)
    mode = property(lambda self: self._placed(self._categorical.mode))
    variance = property(lambda self: self.probs * (1 - self.probs))

    def _placed(self, index: Tensor) -> Tensor:
        return one_hot(index, self._event_shape[0]).to(self._param.dtype)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._placed(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        return self._categorical.log_prob(self._checked(value).argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        param, n = self._param, self._event_shape[0]
        each = flow.eye(n, dtype=param.dtype, device=param.device)
        return self._categorical._listed(each, expand)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose draws have the gradient of the probabilities.

    Bengio, Léonard and Courville, Estimating or Propagating Gradients Through Stochastic Neurons
    for Conditional Computation, 2013.
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        probs = self.probs
        return self.sample(sample_shape) + (probs - probs.detach())


class Multinomial(OfCategorical):
    """Counts of how often each category is drawn in `total_count` draws.

    MissingMethodError: when `total_count` is not one int for the whole batch.

    >>> import oneflow_lite as flow
    >>> flow.distributions.Multinomial(10, flow.tensor([0.2, 0.8])).mean
    tensor([2., 8.])
    """

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            got = type(total_count).__name__
            raise MissingMethodError(f"total_count: expected one int for the batch, got {got}")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits, validate_args)
        *batch_shape, count = self.param_shape
        super().__init__(batch_shape, (count,), validate_args)

    @dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Counts that sum up to the number of draws."""
        return constraints.multinomial(self.total_count)

    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.mean * (1 - self.probs))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
        counts = flow.zeros(
            self._extended_shape(sample_shape), dtype=drawn.dtype, device=drawn.device
        )
        return counts.scatter_add(-1, drawn, flow.ones_like(drawn)).to(self._param.dtype)

    def entropy(self) -> Tensor:
        n = self.total_count
        each = Binomial(n, self.probs, validate_args=False)
        counts = each.enumerate_support(False)[1:]
        ties = (each.log_prob(counts).exp() * (counts + 1).lgamma()).sum((0, -1))
        return n * self._categorical.entropy() - math.lgamma(n + 1) + ties

    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, self._checked(value))
        # A category without draws counts 0, and not -inf times 0, which is nan.
        logits = flow.where((value == 0) & (logits == -math.inf), 0.0, logits)
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return ways + (logits * value).sum(-1)


guard_all(globals())
