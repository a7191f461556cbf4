"""The transforms that lead from all numbers to each constraint.

`biject_to` has bijections; `transform_to` has transforms that suit optimizers, bijective or not.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

from oneflow_lite.distributions import constraints as c, transforms as t
from oneflow_lite.errors import ArgumentTypeError, MissingMethodError

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A table from classes of constraints to functions that make their transforms.

    >>> import oneflow_lite as flow
    >>> D = flow.distributions
    >>> D.biject_to(D.constraints.unit_interval)
    SigmoidTransform()
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Register `factory(constraint)` for a class of constraints, or for the class of an object.

        Without a factory the result is a decorator. ArgumentTypeError: when it is no constraint.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        cls = type(constraint) if isinstance(constraint, c.Constraint) else constraint
        if not (isinstance(cls, type) and issubclass(cls, c.Constraint)):
            expected = "expected a Constraint, or a class of them"
            raise ArgumentTypeError(f"register(): {expected}, got {constraint!r}")
        self._registry[cls] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """Return the transform of a constraint; MissingMethodError without a transform."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            name = type(constraint).__name__
            raise MissingMethodError(f"no transform leads to {name}; register() one")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _interval(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    plain = isinstance(low, numbers.Number) and isinstance(high, numbers.Number)
    if plain and low == 0 and high == 1:
        return t.SigmoidTransform()
    return t.ComposeTransform([t.SigmoidTransform(), t.AffineTransform(low, high - low)])


def _above(constraint: Any) -> Any:
    return t.ComposeTransform([t.ExpTransform(), t.AffineTransform(constraint.lower_bound, 1)])


def _below(constraint: Any) -> Any:
    return t.ComposeTransform([t.ExpTransform(), t.AffineTransform(constraint.upper_bound, -1)])


_BOTH: dict[Any, Callable[[Any], Any]] = {
    c.real: lambda _: t.identity_transform,
    c.greater_than: _above,  # `positive` and `nonnegative` are of these two classes
    c.greater_than_eq: _above,
    c.less_than: _below,
    c.interval: _interval,
    c.half_open_interval: _interval,
    c.corr_cholesky: lambda _: t.CorrCholeskyTransform(),
}
for _registry in (biject_to, transform_to):
    for _constraint, _factory in _BOTH.items():
        _registry.register(_constraint, _factory)
biject_to.register(c.simplex, lambda _: t.StickBreakingTransform())
transform_to.register(c.simplex, lambda _: t.SoftmaxTransform())
transform_to.register(c.lower_cholesky, lambda _: t.LowerCholeskyTransform())
transform_to.register(c.positive_definite, lambda _: t.PositiveDefiniteTransform())
transform_to.register(c.positive_semidefinite, lambda _: t.PositiveDefiniteTransform())


def _of_parts(registry: ConstraintRegistry) -> None:
    """Register transforms of composed constraints, made of the transforms of their parts."""

    def independent(whole: Any) -> Any:
        base = registry(whole.base_constraint)
        return t.IndependentTransform(base, whole.reinterpreted_batch_ndims)

    def parts(whole: Any) -> list[Any]:
        return [registry(part) for part in whole.cseq]

    registry.register(c.independent, independent)
    registry.register(c.cat, lambda w: t.CatTransform(parts(w), w.dim, w.lengths))
    registry.register(c.stack, lambda w: t.StackTransform(parts(w), w.dim))


_of_parts(biject_to)
_of_parts(transform_to)
