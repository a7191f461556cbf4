"""Transforms: maps with an inverse and the logarithm of their Jacobian's determinant."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oneflow_lite import functions as flow, linalg
from oneflow_lite.arrays.dtype import Number
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.arrays.size import Size
from oneflow_lite.distributions import constraints
from oneflow_lite.distributions.constraints import check_dim_of, dependent_property
from oneflow_lite.distributions.distribution import Distribution
from oneflow_lite.distributions.utils import (
    broadcast_all,
    eps,
    lazy_property,
    missing,
    sum_rightmost,
    tiny,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)
from oneflow_lite.errors import ArgumentError, MissingMethodError, OptionError
from oneflow_lite.functors.creation import as_tensor
from oneflow_lite.nn.functional import logsigmoid, pad, softplus
from oneflow_lite.ops.exposure import expose
from oneflow_lite.tensors.tensor import Tensor

expose(globals())

__all__ = """
    AbsTransform AffineTransform CatTransform ComposeTransform CorrCholeskyTransform
    CumulativeDistributionTransform ExpTransform IndependentTransform LowerCholeskyTransform
    PositiveDefiniteTransform PowerTransform ReshapeTransform SigmoidTransform SoftplusTransform
    TanhTransform SoftmaxTransform StackTransform StickBreakingTransform Transform
    identity_transform
""".split()

Shape = tuple[int, ...]


class Transform:
    """The base of all transforms.

    A subclass declares its `domain` and `codomain`, whether it is `bijective`, for a monotone
    function of a variable its `sign`, and defines `_call`, `_inverse` and `log_abs_det_jacobian`.
    `_options` names the arguments of its constructor, which are attributes of the same names.

    Parameters
    ----------
    cache_size : {0, 1}
        With 1 the last pair (x, y) is kept, so that `inv(y)` gives x itself.

    Raises
    ------
    ArgumentError
        For another cache size.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> t = flow.distributions.ExpTransform()
    >>> y = t(flow.tensor([0.0, 1.0]))
    >>> y, t.inv(y)
    (tensor([1.0000, 2.7183]), tensor([0.0000, 1.0000]))
    """

    domain: Any
    codomain: Any
    bijective: Any = False
    _options: tuple[str, ...] = ()

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ArgumentError(f"cache_size: expected 0 or 1, got {cache_size}")
        self._cache_size = cache_size
        self._inv: Transform | None = None
        self._cached_x_y: tuple[Any, Any] = (None, None)
        super().__init__()  # that of another base class: a Module, say

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_inv": None}  # the inverse is made again when it is asked for

    def _one_event_dim(self) -> int:
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ArgumentError("event_dim: that of .domain and .codomain differ; ask one of them")

    def _inverted(self) -> Transform:
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    sign: Any = property(missing("sign"), doc="1 for a growing function, -1 for a falling one.")
    event_dim: Any = property(_one_event_dim, doc="The number of dimensions of a value.")
    inv: Any = property(_inverted, doc="The inverse; its inverse is this object.")
    _call: Any = missing("_call")
    _inverse: Any = missing("_inverse")
    log_abs_det_jacobian: Any = missing(
        "log_abs_det_jacobian", "Return log |det dy/dx| at x, where y is the transform of x."
    )

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the transform with a cache of that size."""
        if self._cache_size == cache_size:
            return self
        cls: Any = type(self)
        if cls.__init__ is not Transform.__init__ and not self._options:
            raise MissingMethodError(
                f"{cls.__name__} has an __init__ of its own; define with_cache()"
            )
        options = [getattr(self, name) for name in self._options]
        return cls(*options, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        """Return whether both are the same object, or of a class whose `_options` are equal."""
        if self is other or type(self) is not type(other):
            return self is other
        if type(self).__init__ is not Transform.__init__ and not self._options:
            return False
        return all(_equal(getattr(self, n), getattr(other, n)) for n in self._options)

    def __call__(self, x: Tensor) -> Tensor:
        """Return the value y at x."""
        if not self._cache_size:
            return self._call(x)
        if x is not self._cached_x_y[0]:
            self._cached_x_y = x, self._call(x)
        return self._cached_x_y[1]

    def _inv_call(self, y: Tensor) -> Tensor:
        if not self._cache_size:
            return self._inverse(y)
        if y is not self._cached_x_y[1]:
            self._cached_x_y = self._inverse(y), y
        return self._cached_x_y[0]

    def forward_shape(self, shape: Shape) -> Shape:
        """Return the shape of the values of arguments of this shape."""
        return shape

    def inverse_shape(self, shape: Shape) -> Shape:
        """Return the shape of the arguments of values of this shape."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return bool(as_tensor(a == b).all())
    return bool(a == b)


class _InverseTransform(Transform):
    """The inverse of a transform."""

    _inv: Transform

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._inv = transform

    domain = dependent_property(lambda self: self._inv.codomain, is_discrete=False)
    codomain = dependent_property(lambda self: self._inv.domain, is_discrete=False)
    bijective = property(lambda self: self._inv.bijective)
    sign = property(lambda self: self._inv.sign)
    inv = property(lambda self: self._inv)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Shape) -> Shape:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"


class ComposeTransform(Transform):
    """One transform after another.

    >>> from oneflow_lite.distributions import AffineTransform, ComposeTransform, ExpTransform
    >>> import oneflow_lite as flow
    >>> ComposeTransform([ExpTransform(), AffineTransform(1.0, 2.0)])(flow.tensor([0.0]))
    tensor([3.])
    """

    _options = ("parts",)

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    bijective = property(lambda self: all(part.bijective for part in self.parts))
    sign = property(lambda self: functools.reduce(operator.mul, [p.sign for p in self.parts], 1))

    @dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """The domain of the first part, with the dimensions that later parts join."""
        return _widest([(part.codomain, part.domain) for part in reversed(self.parts)])

    @dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """The codomain of the last part, with the dimensions that earlier parts join."""
        return _widest([(part.domain, part.codomain) for part in self.parts])

    def _inverted(self) -> Transform:
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    inv = property(_inverted, doc="The inverses of the parts in reverse order.")

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return flow.zeros_like(x)
        xs = [x]
        for part in self.parts[:-1]:
            xs.append(part(xs[-1]))
        xs.append(y)
        terms, event_dim = [], self.domain.event_dim
        for part, before, after in zip(self.parts, xs, xs[1:], strict=False):
            term = part.log_abs_det_jacobian(before, after)
            terms.append(sum_rightmost(term, event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape: Shape) -> Shape:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Shape) -> Shape:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join(map(repr, self.parts))
        return f"{type(self).__name__}(\n    {parts}\n)"


def _widest(steps: list[tuple[Any, Any]]) -> Any:
    """Return the last constraint of steps (from, to), with as many dimensions as any step needs."""
    if not steps:
        return constraints.real
    event_dim = steps[0][0].event_dim
    for before, after in steps:
        event_dim = max(event_dim + after.event_dim - before.event_dim, after.event_dim)
    result = steps[-1][1]
    more = event_dim - result.event_dim
    return constraints.independent(result, more) if more else result


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose arguments have `reinterpreted_batch_ndims` more dimensions."""

    _options = ("base_transform", "reinterpreted_batch_ndims")

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def _widened(self, constraint: Any) -> Any:
        return constraints.independent(constraint, self.reinterpreted_batch_ndims)

    domain = dependent_property(
        lambda self: self._widened(self.base_transform.domain), is_discrete=False
    )
    codomain = dependent_property(
        lambda self: self._widened(self.base_transform.codomain), is_discrete=False
    )
    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)

    def _call(self, x: Tensor) -> Tensor:
        _check_dims(x.shape, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        _check_dims(y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_rightmost(terms, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Shape) -> Shape:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


def _check_dims(shape: Shape, least: int) -> None:
    if len(shape) < least:
        raise ArgumentError(
            f"expected at least {least} dimensions, got {tuple(shape)}; unsqueeze it"
        )


class ReshapeTransform(Transform):
    """Reshape the last dimensions from `in_shape` to `out_shape`."""

    _options = ("in_shape", "out_shape")
    bijective = True

    def __init__(
        self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ArgumentError(
                f"out_shape: {self.out_shape} has not the elements of {self.in_shape}"
            )

    domain = dependent_property(
        lambda self: constraints.independent(constraints.real, len(self.in_shape))
    )
    codomain = dependent_property(
        lambda self: constraints.independent(constraints.real, len(self.out_shape))
    )

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self._replaced(x.shape, self.in_shape, self.out_shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self._replaced(y.shape, self.out_shape, self.in_shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])

    @staticmethod
    def _replaced(shape: Shape, last: Shape, by: Shape) -> Shape:
        _check_dims(shape, len(last))
        cut = len(shape) - len(last)
        if tuple(shape[cut:]) != last:
            raise ArgumentError(f"expected a shape that ends with {last}, got {tuple(shape)}")
        return Size((*shape[:cut], *by))

    def forward_shape(self, shape: Shape) -> Shape:
        return self._replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self._replaced(shape, self.out_shape, self.in_shape)


class _Function(Transform):
    """A growing function of one variable, from the real numbers."""

    domain = constraints.real
    bijective = True
    sign = 1


class ExpTransform(_Function):
    """y = exp(x)."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


def _broadcast_shape(self: Any, shape: Shape) -> Shape:
    """Return the shape in which arguments and the parameters of the transform meet."""
    shapes = [getattr(getattr(self, name), "shape", ()) for name in self._options]
    return Size(np.broadcast_shapes(shape, *shapes))


class PowerTransform(Transform):
    """y = x ** exponent, of positive x."""

    _options = ("exponent",)
    domain = codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Tensor | Number, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    sign = property(lambda self: self.exponent.sign())

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    forward_shape = inverse_shape = _broadcast_shape


def _clipped(share: Tensor) -> Tensor:
    """Return numbers above 0 and below 1, so that logarithms stay finite."""
    return share.clamp(tiny(share), 1 - eps(share))


def _clipped_sigmoid(x: Tensor) -> Tensor:
    return _clipped(x.sigmoid())


class SigmoidTransform(_Function):
    """y = 1 / (1 + exp(-x))."""

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        y = _clipped(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_Function):
    """y = log(1 + exp(x))."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(_Function):
    """y = tanh(x)."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (math.log(2.0) - x - softplus(-2 * x)) * 2  # log(1 - y²), precise for large x


class AbsTransform(Transform):
    """y = |x|; the inverse gives x = y."""

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale * x; with `event_dim` an argument is a vector or a matrix.

    >>> import oneflow_lite as flow
    >>> flow.distributions.AffineTransform(1.0, 2.0).inv(flow.tensor([5.0]))
    tensor([2.])
    """

    _options = ("loc", "scale", "event_dim")
    bijective = True

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, event_dim: int = 0, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)

    @dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """Real numbers, or tensors of them."""
        n = self.event_dim
        return constraints.independent(constraints.real, n) if n else constraints.real

    codomain = domain

    def _sign(self) -> Any:
        scale = self.scale
        return scale.sign() if isinstance(scale, Tensor) else (scale > 0) - (scale < 0)

    sign = property(_sign)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            slope = self.scale.abs().log()
        else:
            slope = flow.full_like(x, math.log(abs(self.scale)))
        return sum_rightmost(slope.expand(x.shape), self.event_dim)

    forward_shape = inverse_shape = _broadcast_shape


class CorrCholeskyTransform(Transform):
    """Map n (n - 1) / 2 numbers to the Cholesky factor of an n by n correlation matrix.

    In each row of the strict lower triangle, tanh(x) is an element's share of the length that is
    left, with its sign; Stan's reference manual, Cholesky factors of correlation matrices. The
    Jacobian is of the elements below the diagonal.
    """

    domain, codomain = constraints.real_vector, constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        share = x.tanh()
        share = vec_to_tril_matrix(share.clamp(-1 + eps(x), 1 - eps(x)), -1)
        left = (1 - share.square()).sqrt().cumprod(-1)
        share = share + flow.eye(share.shape[-1], dtype=x.dtype, device=x.device)
        return share * pad(left[..., :-1], [1, 0], value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        left = 1 - y.square().cumsum(-1)
        left = pad(left[..., :-1], [1, 0], value=1.0)
        return (tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(left, -1).sqrt()).atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = tril_matrix_to_vec(1 - y.square().cumsum(-1), -2)
        return left.log().sum(-1) / 2 - 2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)

    def forward_shape(self, shape: Shape) -> Shape:
        _check_dims(shape, 1)
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ArgumentError(f"no matrix has {shape[-1]} elements below its diagonal")
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Shape) -> Shape:
        _check_dims(shape, 2)
        if shape[-2] != (n := shape[-1]):
            raise ArgumentError(f"expected square matrices, got the shape {tuple(shape)}")
        return Size((*shape[:-2], n * (n - 1) // 2))


class _OfVectors(Transform):
    """A map from vectors to the simplex, whose values have `more` elements."""

    domain, codomain = constraints.real_vector, constraints.simplex
    more = 0

    def forward_shape(self, shape: Shape) -> Shape:
        _check_dims(shape, 1)
        return Size((*shape[:-1], shape[-1] + self.more))

    def inverse_shape(self, shape: Shape) -> Shape:
        _check_dims(shape, 1)
        return Size((*shape[:-1], shape[-1] - self.more))


class SoftmaxTransform(_OfVectors):
    """y = exp(x) / Σ exp(x); the inverse gives x = log(y)."""

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StickBreakingTransform(_OfVectors):
    """Map n numbers to n + 1 shares of a stick, each broken off the rest of the stick.

    At x = 0 all are equal; Stan's reference manual, Unit simplexes.
    """

    bijective = True
    more = 1

    @staticmethod
    def _left(x: Tensor) -> Tensor:
        """Return the logarithms of the number of shares after each."""
        n = x.shape[-1]
        return flow.arange(n, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Tensor) -> Tensor:
        z = _clipped_sigmoid(x - self._left(x))
        return pad(z, [0, 1], value=1.0) * pad((1 - z).cumprod(-1), [1, 0], value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        first = y[..., :-1]
        rest = (1 - first.cumsum(-1)).clamp(min=tiny(y))
        return first.log() - rest.log() + self._left(first)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._left(x)
        return (logsigmoid(x) - x + y[..., :-1].log()).sum(-1)


class LowerCholeskyTransform(Transform):
    """Take the exponential of the diagonal of matrices, and keep the elements below it."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(0, -2, -1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(0, -2, -1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """y = L L^T, where L is `LowerCholeskyTransform` of x."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(linalg.cholesky(y))


class _Parts(Transform):
    """Several transforms, each on its part along a dimension, by `_split` and `_join`."""

    transforms: list[Transform]
    dim: int

    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def _take(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        for i, t in enumerate(tseq):
            if not isinstance(t, Transform):
                raise OptionError(f"tseq[{i}]: expected a Transform, got {type(t).__name__}")
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    def _split(self, value: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _join(self, parts: list[Tensor], dim: int) -> Tensor:
        raise NotImplementedError

    def _parts(self, value: Tensor, size: int) -> Sequence[Tensor]:
        check_dim_of(value, self.dim)
        if value.shape[self.dim] != size:
            got = f"got {value.shape[self.dim]} in {tuple(value.shape)}"
            raise OptionError(f"dim {self.dim}: expected the size {size}, {got}")
        return self._split(value)

    def _each(self, call: Callable[..., Tensor], *values: Tensor) -> list[Tensor]:
        size = sum(getattr(self, "lengths", [1] * len(self.transforms)))
        parts = (self._parts(value, size) for value in values)
        return [call(*each) for each in zip(self.transforms, *parts, strict=True)]

    def _call(self, x: Tensor) -> Tensor:
        return self._join(self._each(lambda t, part: t(part), x), self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._join(self._each(lambda t, part: t.inv(part), y), self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self._join(self._each(lambda t, *xy: t.log_abs_det_jacobian(*xy), x, y), self.dim)


class CatTransform(_Parts):
    """Transforms of parts of several lengths, as `flow.cat` joins them."""

    _options = ("transforms", "dim", "lengths")

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(cache_size)
        self._take(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise OptionError(f"lengths: expected {len(self.transforms)}, got {self.lengths}")

    event_dim = lazy_property(lambda self: max(t.event_dim for t in self.transforms))
    length = property(lambda self: sum(self.lengths), doc="The sum of `lengths`.")
    domain = dependent_property(
        lambda self: constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)
    )
    codomain = dependent_property(
        lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)
    )

    def _split(self, value: Tensor) -> Sequence[Tensor]:
        return value.split(self.lengths, self.dim)

    def _join(self, parts: list[Tensor], dim: int) -> Tensor:
        return flow.cat(parts, dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        def of_part(t: Transform, x: Tensor, y: Tensor) -> Tensor:
            return sum_rightmost(t.log_abs_det_jacobian(x, y), self.event_dim - t.event_dim)

        terms = self._each(of_part, x, y)
        dim = (self.dim if self.dim < 0 else self.dim - x.ndim) + self.event_dim
        return self._join(terms, dim) if dim < 0 else functools.reduce(operator.add, terms)


class StackTransform(_Parts):
    """Transforms of slices, as `flow.stack` joins them."""

    _options = ("transforms", "dim")

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self._take(tseq, dim, cache_size)

    domain = dependent_property(
        lambda self: constraints.stack([t.domain for t in self.transforms], self.dim)
    )
    codomain = dependent_property(
        lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim)
    )

    def _split(self, value: Tensor) -> Sequence[Tensor]:
        return value.unbind(self.dim)

    def _join(self, parts: list[Tensor], dim: int) -> Tensor:
        return flow.stack(parts, dim)


class CumulativeDistributionTransform(Transform):
    """y = the distribution function of `distribution` at x."""

    _options = ("distribution",)
    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)


guard_all(globals())
