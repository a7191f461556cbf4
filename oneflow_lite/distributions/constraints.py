"""Constraints: the sets of values of a parameter, a sample, or an argument of a transform."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oneflow_lite import functions as flow, linalg
from oneflow_lite.arrays.dtype import Number, finfo
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import ArgumentError, OptionError
from oneflow_lite.ops.exposure import expose
from oneflow_lite.tensors.tensor import Tensor

expose(globals())

__all__ = """
    Constraint MixtureSameFamilyConstraint boolean cat corr_cholesky dependent dependent_property
    greater_than greater_than_eq half_open_interval independent integer_interval interval
    is_dependent less_than lower_cholesky lower_triangular multinomial nonnegative
    nonnegative_integer one_hot positive positive_definite positive_integer positive_semidefinite
    real real_vector simplex square stack symmetric unit_interval
""".split()


class Constraint:
    """A set of values; the last `event_dim` dimensions of a tensor together are one value.

    >>> from oneflow_lite.distributions import constraints
    >>> import oneflow_lite as flow
    >>> constraints.positive.check(flow.tensor([-1.0, 2.0]))
    tensor([False,  True])
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Tensor) -> Tensor:
        """Return a tensor of bools, one per value: whether it is in the set."""
        raise NotImplementedError

    def says(self) -> str:
        """Return the text for an error, for which no value of a bound has to be read."""
        bounds = {k: v for k, v in vars(self).items() if k.endswith("bound")}
        bounds = {k: "tensor" if isinstance(v, Tensor) else v for k, v in bounds.items()}
        return f"values in {_name(self)}({', '.join(f'{k}={v}' for k, v in bounds.items())})"

    def __repr__(self) -> str:
        bounds = (f"{k}={v}" for k, v in vars(self).items() if k.endswith("bound"))
        return f"{_name(self)}({', '.join(bounds)})"


def _name(constraint: Constraint) -> str:
    return type(constraint).__name__.removeprefix("_")


class _Dependent(Constraint):
    """A set that other values decide; asking for a property that was not said raises."""

    def __init__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def _said(self, name: str) -> Any:
        value = getattr(self, f"_{name}")
        if value is NotImplemented:
            raise NotImplementedError(f"{name} depends on the object; ask an instance for it")
        return value

    is_discrete = property(lambda self: self._said("is_discrete"))
    event_dim = property(lambda self: self._said("event_dim"))

    def __call__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> _Dependent:
        """Return a dependent constraint with more properties."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ArgumentError("a dependent constraint cannot be checked; ask an instance for its own")


def is_dependent(constraint: Constraint) -> bool:
    """Return whether a constraint is known only together with other values."""
    return isinstance(constraint, _Dependent)


class dependent_property(property, _Dependent):
    """A property that is a constraint on an instance, and a dependent constraint on its class."""

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: bool = NotImplemented,
        event_dim: int = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[..., Any]) -> dependent_property:  # type: ignore[override]
        """Decorate `fn`: `@dependent_property(is_discrete=False, event_dim=0)`."""
        return dependent_property(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def _require(constraint: Any, name: str) -> None:
    if not isinstance(constraint, Constraint):
        raise OptionError(f"{name}: expected a Constraint, got {type(constraint).__name__}")


def _all_of_last(valid: Tensor, ndim: int, event_dim: int) -> Tensor:
    """Return whether all of the last `ndim` dimensions are valid."""
    if valid.ndim < ndim:
        raise ArgumentError(f"expected a value of at least {event_dim} dimensions; unsqueeze it")
    return valid.reshape((*valid.shape[: valid.ndim - ndim], -1)).all(-1)


class _Derived(Constraint):
    """A constraint that is `base_constraint` on more or other dimensions."""

    def __init__(self, base_constraint: Constraint) -> None:
        _require(base_constraint, "base_constraint")
        self.base_constraint = base_constraint

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim)

    def __repr__(self) -> str:
        return f"{_name(self)}({self.base_constraint!r})"

    def says(self) -> str:
        return self.base_constraint.says()


class _IndependentConstraint(_Derived):
    """All of `reinterpreted_batch_ndims` more dimensions fulfil the base constraint."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        super().__init__(base_constraint)
        count: Any = reinterpreted_batch_ndims
        if not isinstance(count, int) or count < 0:
            raise OptionError(f"reinterpreted_batch_ndims: expected an int from 0 on, got {count}")
        self.reinterpreted_batch_ndims = count

    event_dim = property(
        lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims
    )

    def check(self, value: Tensor) -> Tensor:
        valid = self.base_constraint.check(value)
        return _all_of_last(valid, self.reinterpreted_batch_ndims, self.event_dim)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(_Derived):
    """The support of a mixture: a value fits every component, along one more batch dimension."""

    def check(self, value: Tensor) -> Tensor:
        valid = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        kept = value.ndim - self.event_dim
        return _all_of_last(valid, valid.ndim - kept, self.event_dim)


class _Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    """Vectors with one 1 and else 0."""

    is_discrete, event_dim = True, 1

    def check(self, value: Tensor) -> Tensor:
        return boolean.check(value).all(-1) & (value.sum(-1) == 1)


class _Real(Constraint):
    """All numbers, the infinite ones too, but nan."""

    def check(self, value: Tensor) -> Tensor:
        return value == value


class _GreaterThan(Constraint):
    """(lower_bound, inf]."""

    def __init__(self, lower_bound: Tensor | Number) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound


class _GreaterThanEq(_GreaterThan):
    """[lower_bound, inf]."""

    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class _LessThan(Constraint):
    """[-inf, upper_bound)."""

    def __init__(self, upper_bound: Tensor | Number) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(Constraint):
    """[lower_bound, upper_bound]."""

    def __init__(self, lower_bound: Tensor | Number, upper_bound: Tensor | Number) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Interval):
    """[lower_bound, upper_bound)."""

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value < self.upper_bound)


def _whole(value: Tensor) -> Tensor:
    return value % 1 == 0


class _IntegerInterval(_Interval):
    """The whole numbers of [lower_bound, upper_bound]."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _whole(value) & super().check(value)


class _IntegerGreaterThan(_GreaterThanEq):
    """The whole numbers from lower_bound on."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _whole(value) & super().check(value)


class _Simplex(Constraint):
    """Vectors of numbers of at least 0 whose sum is 1."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Vectors of counts whose sum is at most `upper_bound`."""

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: Tensor | Number) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)

    def __repr__(self) -> str:
        return "Multinomial()"


class _Matrix(Constraint):
    """A set of matrices."""

    event_dim = 2


class _LowerTriangular(_Matrix):
    """0 above the diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return _all_of_last(value.tril() == value, 2, 2)


class _LowerCholesky(_LowerTriangular):
    """Triangular, with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(0, -2, -1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Cholesky factors of correlation matrices: the rows have length 1."""

    def check(self, value: Tensor) -> Tensor:
        error = (value.detach().square().sum(-1).sqrt() - 1).abs()
        tolerance = 10 * float(finfo(value.dtype).eps) * value.shape[-1]
        return super().check(value) & (error <= tolerance).all(-1)


class _Square(_Matrix):
    """As many rows as columns."""

    def check(self, value: Tensor) -> Tensor:
        square = value.shape[-2] == value.shape[-1]
        return flow.full(value.shape[:-2], square, dtype=bool, device=value.device)


class _Symmetric(_Square):
    """Equal to their transposes."""

    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return _all_of_last(flow.isclose(value, value.mT, atol=1e-6), 2, 2)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric, without negative eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return symmetric
        return symmetric & (linalg.eigvalsh(value.detach()) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Symmetric, with positive eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return symmetric
        return symmetric & (linalg.cholesky_ex(value.detach()).info == 0)


class _Several(Constraint):
    """Constraints on parts along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        for i, constraint in enumerate(cseq):
            _require(constraint, f"cseq[{i}]")
        self.cseq, self.dim = list(cseq), dim

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))
    event_dim = property(lambda self: max(c.event_dim for c in self.cseq))

    def __repr__(self) -> str:
        return f"{_name(self)}()"


class _Cat(_Several):
    """Parts of several lengths, as `flow.cat` joins them."""

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise OptionError(f"lengths: expected {len(self.cseq)} numbers, got {self.lengths}")

    def check(self, value: Tensor) -> Tensor:
        check_dim_of(value, self.dim)
        parts = value.split(self.lengths, self.dim)
        return flow.cat([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)


class _Stack(_Several):
    """Slices, as `flow.stack` joins them."""

    @property
    def event_dim(self) -> int:
        most: int = max(c.event_dim for c in self.cseq)
        return most + (self.dim + most < 0)

    def check(self, value: Tensor) -> Tensor:
        check_dim_of(value, self.dim)
        parts = value.unbind(self.dim)
        return flow.stack(
            [c.check(part) for c, part in zip(self.cseq, parts, strict=False)], self.dim
        )


def check_dim_of(value: Tensor, dim: int) -> None:
    """Raise unless the tensor has this dimension."""
    if not -value.ndim <= dim < value.ndim:
        raise OptionError(f"dim {dim} is out of range for a tensor of {value.ndim} dimensions")


dependent = _Dependent()
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack


guard_all(globals())
