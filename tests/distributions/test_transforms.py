"""Constraints on grids, and every transform: both ways, Jacobians, shapes, caches, composition."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd import grad
from oneflow_lite.autograd.functional import jacobian
from tests.distributions.cases import PROBS, TRIL, matrix

torch = pytest.importorskip("torch")
TD, D = torch.distributions, flow.distributions


@pytest.fixture(autouse=True)
def _double() -> Iterator[None]:
    flow.set_default_dtype(flow.float64)
    torch.set_default_dtype(torch.float64)
    with np.errstate(all="ignore"):
        yield
    flow.set_default_dtype(flow.float32)
    torch.set_default_dtype(torch.float32)


def _array(x: Any) -> Any:
    return np.asarray(x.detach().numpy())


# --- Constraints ---------------------------------------------------------------------------------

NUMBERS = np.array([-np.inf, -2.5, -1, -0.5, 0, 1e-9, 0.5, 1, 1.5, 2, 3, 7, np.inf, np.nan])
CORRELATION = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.1], [0.2, 0.1, 1.0]])
VECTORS = np.array(
    [
        [0.2, 0.3, 0.5],
        [0.0, 1.0, 0.0],
        [1.0, 1.0, 0.0],
        [0.5, 0.5, 1e-5],
        [-0.5, 0.5, 1.0],
        [2.0, 1.0, 3.0],
        [np.nan, 0.0, 1.0],
    ]
)
MATRICES = np.stack(
    [
        matrix(3, 3),
        TRIL[0],
        -TRIL[0],
        TRIL[0].T,
        np.eye(3),
        -np.eye(3),
        np.ones((3, 3)),
        CORRELATION,
        np.linalg.cholesky(CORRELATION),
        matrix(3, 3) + np.triu(np.ones((3, 3)), 1) * 1e-3,
    ]
)
# name: what it is called with, and whether it is about vectors or matrices
CONSTRAINTS: dict[str, tuple[tuple[Any, ...], int]] = {
    **dict.fromkeys(
        """boolean nonnegative nonnegative_integer positive positive_integer real unit_interval
        """.split(),
        ((), 0),
    ),
    **dict.fromkeys(["greater_than", "greater_than_eq", "less_than"], ((1,), 0)),
    **dict.fromkeys(["integer_interval", "interval", "half_open_interval"], ((-1, 2), 0)),
    **dict.fromkeys(["one_hot", "real_vector", "simplex"], ((), 1)),
    "multinomial": ((3,), 1),
    **dict.fromkeys(
        """corr_cholesky lower_cholesky lower_triangular positive_definite positive_semidefinite
        square symmetric""".split(),
        ((), 2),
    ),
}
_BASES = "Constraint dependent dependent_property is_dependent"
_OF_OTHERS = "MixtureSameFamilyConstraint cat independent stack"


def test_all_constraints_are_walked() -> None:
    assert {*CONSTRAINTS, *_BASES.split(), *_OF_OTHERS.split()} == set(TD.constraints.__all__)


def _same_constraint(ours: Any, theirs: Any, *values: Any) -> None:
    assert (ours.is_discrete, ours.event_dim) == (theirs.is_discrete, theirs.event_dim)
    for value in values:
        got = ours.check(flow.tensor(value))
        np.testing.assert_array_equal(_array(got), _array(theirs.check(torch.tensor(value))))
        assert got.dtype == flow.bool


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraint(name: str) -> None:
    args, ndim = CONSTRAINTS[name]
    ours, theirs = getattr(D.constraints, name), getattr(TD.constraints, name)
    if args:
        ours, theirs = ours(*args), theirs(*args)
    if name != "multinomial":  # PyTorch shows no bound, and has no is_discrete of an object
        assert repr(ours) == repr(theirs)
    grid = (NUMBERS, VECTORS, MATRICES)[ndim]
    values = [grid, grid[2], grid[None]]
    if name.startswith("positive_") and ndim:  # PyTorch's looks at all or none of a batch;
        values = list(np.delete(MATRICES, 6, 0))  # and a 0 eigenvalue is one but for a digit
    if name == "square":
        values.append(np.ones((2, 3, 4)))
    _same_constraint(ours, theirs, *values)
    if args and not ndim:
        bounds = [np.asarray(a, float) + np.arange(14) / 7 for a in args]
        made = [getattr(m, name) for m in (D.constraints, TD.constraints)]
        _same_constraint(
            made[0](*map(flow.tensor, bounds)), made[1](*map(torch.tensor, bounds)), NUMBERS
        )


def test_constraints_of_constraints() -> None:
    def several(module: Any) -> Iterator[tuple[Any, Any]]:
        c = module.constraints
        yield c.independent(c.positive, 1), VECTORS
        yield c.independent(c.simplex, 1), VECTORS
        yield c.independent(c.real, 0), NUMBERS
        yield c.MixtureSameFamilyConstraint(c.positive), NUMBERS
        yield c.MixtureSameFamilyConstraint(c.simplex), VECTORS
        yield c.cat([c.positive, c.real, c.boolean], 0, [4, 5, 5]), NUMBERS
        yield c.cat([c.positive, c.real, c.boolean], -1), VECTORS
        yield c.stack([c.positive, c.real, c.unit_interval], -1), VECTORS
        yield c.stack([c.simplex, c.one_hot], 0), VECTORS[:2]

    for (ours, value), (theirs, _) in zip(several(D), several(TD), strict=True):
        _same_constraint(ours, theirs, value)
        if "object at" not in repr(theirs):
            assert repr(ours) == repr(theirs)


def test_dependent_constraints() -> None:
    for module in (D, TD):
        c = module.constraints
        one = c.dependent(event_dim=1)
        assert one.event_dim == 1 and c.is_dependent(one) and not c.is_dependent(c.real)
        assert one(is_discrete=True).is_discrete
        assert c.is_dependent(module.Uniform.support) and module.Uniform.support.event_dim == 0
        assert module.Categorical.support.is_discrete

        class Own:
            @c.dependent_property(is_discrete=False, event_dim=2)
            def support(self) -> str:
                return "own"

        assert Own().support == "own" and Own.support.event_dim == 2


# --- Transforms ----------------------------------------------------------------------------------

REALS = np.array([[-3.0, -0.4, 0.3], [1.7, 0.05, 8.0]])
SQUARES = np.random.default_rng(5).normal(size=(2, 3, 3))

# name: ways to make it, and an argument
Makes = list[tuple[Callable[[Any, Any], Any], Any]]
TRANSFORMS: dict[str, Makes] = {
    "AbsTransform": [(lambda m, t: m.AbsTransform(), REALS)],
    "AffineTransform": [
        (lambda m, t: m.AffineTransform(1.0, -2.0), REALS),
        (lambda m, t: m.AffineTransform(t([1.0, 2.0, 3.0]), t([-1.0, 0.5, 2.0])), REALS),
        (lambda m, t: m.AffineTransform(0.5, t([-1.0, 0.5, 2.0]), event_dim=1), REALS),
        (lambda m, t: m.AffineTransform(0.5, 3, event_dim=2, cache_size=1), REALS),
    ],
    "CatTransform": [
        (lambda m, t: m.CatTransform([m.ExpTransform(), m.identity_transform], -1, [1, 2]), REALS),
        (lambda m, t: m.CatTransform([m.ExpTransform(), m.TanhTransform()], 0), REALS),
    ],
    "ComposeTransform": [
        (
            lambda m, t: m.ComposeTransform(
                [m.AffineTransform(t([1.0, 2.0, 3.0]), 0.5), m.ExpTransform()]
            ),
            REALS,
        ),
        (lambda m, t: m.ComposeTransform([m.TanhTransform(), m.StickBreakingTransform()]), REALS),
        (lambda m, t: m.ComposeTransform([m.StickBreakingTransform(), m.ExpTransform()]), REALS),
        (lambda m, t: m.ComposeTransform([m.ExpTransform(), m.SoftmaxTransform()], 1), REALS),
        (lambda m, t: m.identity_transform, REALS),
    ],
    "CorrCholeskyTransform": [
        (lambda m, t: m.CorrCholeskyTransform(), REALS / 2),
        (lambda m, t: m.CorrCholeskyTransform(), np.array([0.4])),
    ],
    "CumulativeDistributionTransform": [
        (
            lambda m, t: m.CumulativeDistributionTransform(m.Normal(t([0.0, 1.0, 2.0]), 1.5)),
            REALS / 2,
        )
    ],
    "ExpTransform": [(lambda m, t: m.ExpTransform(), REALS)],
    "IndependentTransform": [(lambda m, t: m.IndependentTransform(m.ExpTransform(), 1), REALS)],
    "LowerCholeskyTransform": [(lambda m, t: m.LowerCholeskyTransform(), SQUARES)],
    "PositiveDefiniteTransform": [(lambda m, t: m.PositiveDefiniteTransform(), SQUARES)],
    "PowerTransform": [
        (lambda m, t: m.PowerTransform(2.5), np.abs(REALS)),
        (lambda m, t: m.PowerTransform(t([-1.0, 0.5, 2.0])), np.abs(REALS)),
    ],
    "ReshapeTransform": [(lambda m, t: m.ReshapeTransform((3,), (1, 3)), REALS)],
    "SigmoidTransform": [(lambda m, t: m.SigmoidTransform(), REALS)],
    "SoftmaxTransform": [(lambda m, t: m.SoftmaxTransform(), REALS)],
    "SoftplusTransform": [(lambda m, t: m.SoftplusTransform(), REALS)],
    "StackTransform": [
        (lambda m, t: m.StackTransform([m.ExpTransform(), m.TanhTransform()], 0), REALS),
        (lambda m, t: m.StackTransform([m.ExpTransform()] * 3, -1, 1), REALS),
    ],
    "StickBreakingTransform": [(lambda m, t: m.StickBreakingTransform(), REALS)],
    "TanhTransform": [(lambda m, t: m.TanhTransform(), REALS / 3)],
}


def test_all_transforms_are_walked() -> None:
    assert {*TRANSFORMS, "Transform", "identity_transform"} == set(TD.transforms.__all__)


EACH = [
    pytest.param(make, x, id=f"{name}-{i}")
    for name, several in TRANSFORMS.items()
    for i, (make, x) in enumerate(several)
]
each = pytest.mark.parametrize(("make", "x"), EACH)


def _attribute(transform: Any, what: str) -> Any:
    try:
        value = getattr(transform, what)
    except NotImplementedError:
        return NotImplementedError
    except ValueError:
        return ValueError
    return _array(value).tolist() if hasattr(value, "detach") else value


@each
def test_transform(make: Any, x: Any) -> None:
    ours, theirs = make(D, flow.tensor), make(TD, torch.tensor)
    inverse, their_inverse = ours.inv, theirs.inv
    assert inverse.inv is ours
    words = re.sub(r"torch.Size\(\[(.*?)\]\)", r"(\1)", repr(theirs))
    assert repr(ours) == words and repr(inverse) == repr(their_inverse)
    for one, other in ((ours, theirs), (inverse, their_inverse)):
        for what in ("bijective", "sign", "event_dim"):
            assert _attribute(one, what) == _attribute(other, what), what
        for what in ("domain", "codomain"):
            mine, want = getattr(one, what), getattr(other, what)
            assert (mine.event_dim, type(mine).__name__) == (want.event_dim, type(want).__name__)
    a = flow.tensor(x, requires_grad=True)
    b = torch.tensor(x, requires_grad=True)
    y, want = ours(a), theirs(b)
    np.testing.assert_allclose(_array(y), _array(want), rtol=1e-12, atol=1e-14)
    assert ours.forward_shape(x.shape) == tuple(theirs.forward_shape(torch.Size(x.shape)))
    assert tuple(y.shape) == tuple(ours.forward_shape(x.shape))
    assert ours.inverse_shape(tuple(y.shape)) == tuple(theirs.inverse_shape(want.shape))
    assert bool(ours.codomain.check(y).all())
    y2, want2 = (flow.tensor(_array(want)), want.detach())
    back, their_back = inverse(y2), their_inverse(want2)
    np.testing.assert_allclose(_array(back), _array(their_back), rtol=1e-9, atol=1e-12)
    if ours.bijective:
        np.testing.assert_allclose(_array(back), x, rtol=1e-5, atol=1e-9)
        pairs = (
            (ours, theirs, (a, y), (b, want)),
            (inverse, their_inverse, (y2, back), (want2, their_back)),
        )
        for one, other, mine, their in pairs:
            slope, their_slope = one.log_abs_det_jacobian(*mine), other.log_abs_det_jacobian(*their)
            assert tuple(slope.shape) == tuple(their_slope.shape)
            np.testing.assert_allclose(_array(slope), _array(their_slope), rtol=1e-9, atol=1e-9)
        slope, their_slope = ours.log_abs_det_jacobian(a, y), theirs.log_abs_det_jacobian(b, want)
        y, want = y.sum() * 2 + slope.sum(), want.sum() * 2 + their_slope.sum()
    (got,) = grad(y.square().sum(), a)
    (of,) = torch.autograd.grad(want.square().sum(), b)
    np.testing.assert_allclose(_array(got), _array(of), rtol=1e-8, atol=1e-10)


@each
def test_jacobian(make: Any, x: Any) -> None:
    """The determinant against the Jacobian of the last argument."""
    ours = make(D, flow.tensor)
    if not ours.bijective or isinstance(ours, (D.CatTransform, D.StackTransform)):
        return
    value = flow.tensor(x)
    if isinstance(ours, D.ComposeTransform) and ours.parts[:1] == [D.StickBreakingTransform()]:
        return  # all shares go on, and one too many for a determinant
    slope = ours.log_abs_det_jacobian(value, ours(value)).sum().item()

    def of(value: Any) -> Any:
        y = ours(value)
        if isinstance(ours, D.CorrCholeskyTransform):
            return D.utils.tril_matrix_to_vec(y, -1)
        return y[..., :-1] if y.shape[-1] > value.shape[-1] else y

    dense = _array(jacobian(of, value)).reshape(value.numel(), value.numel())
    np.testing.assert_allclose(slope, np.linalg.slogdet(dense)[1], rtol=1e-8, atol=1e-9)


@each
def test_equality_and_caches(make: Any, x: Any) -> None:
    one, same = make(D, flow.tensor), make(D, flow.tensor)
    assert one == one and one != 3 and one != D.Transform()
    if not isinstance(one, (D.CumulativeDistributionTransform,)):
        assert one == same
        assert one.inv == same.inv
    value = flow.tensor(x)
    cached = one.with_cache(1)
    assert cached.with_cache(1) is cached
    y = cached(value)
    if not isinstance(cached, D.ComposeTransform) or cached.parts:
        assert cached(value) is y and cached.inv(y) is value
    plain = cached.with_cache(0)
    if not isinstance(plain, D.ComposeTransform):  # whose parts keep theirs, as in PyTorch
        assert plain(value) is not y
    np.testing.assert_array_equal(_array(plain(value)), _array(y))
    if not isinstance(one, D.CumulativeDistributionTransform):
        again = pickle.loads(pickle.dumps(one))
        np.testing.assert_array_equal(_array(again(value)), _array(one(value)))


def test_transforms_of_other_options_differ() -> None:
    several = [
        D.AffineTransform(0.0, 1.0),
        D.AffineTransform(0.0, 2.0),
        D.PowerTransform(1.0),
        D.PowerTransform(2.0),
        D.ExpTransform(),
        D.ExpTransform().inv,
        D.ComposeTransform([D.ExpTransform()]),
        D.ReshapeTransform((2,), (2, 1)),
    ]
    for i, one in enumerate(several):
        assert [one == other for other in several] == [i == j for j in range(len(several))]


def test_a_transform_of_ones_own() -> None:
    class Own(D.Transform):  # type: ignore[misc, name-defined]
        def __init__(self, shift: float, cache_size: int = 0) -> None:
            super().__init__(cache_size)
            self.shift = shift

    assert Own(1.0) != Own(1.0)
    for call in (lambda t: t(flow.ones(1)), lambda t: t.sign, lambda t: t.with_cache(1)):
        with pytest.raises(NotImplementedError):
            call(Own(1.0))


def test_a_transform_may_be_a_module() -> None:
    class Scaled(D.Transform, flow.nn.Module):  # type: ignore[misc, name-defined]
        domain = codomain = D.constraints.real
        bijective = True
        __hash__ = flow.nn.Module.__hash__

        def __init__(self) -> None:
            super().__init__(cache_size=1)
            self.scale = flow.nn.Parameter(flow.tensor(2.0))

        def _call(self, x: Any) -> Any:
            return self.scale * x

        def _inverse(self, y: Any) -> Any:
            return y / self.scale

        def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
            return self.scale.log().expand(x.shape)

    scaled = Scaled()
    x = flow.ones(3)
    assert scaled.inv(scaled(x)) is x
    moved = D.TransformedDistribution(D.Normal(0.0, 1.0), [scaled])
    moved.log_prob(x).sum().backward()
    assert [name for name, _ in scaled.named_parameters()] == ["scale"]
    assert scaled.scale.grad.item() == pytest.approx(3 * (1 / 2**3 - 1 / 2))


# --- Registries ----------------------------------------------------------------------------------


def _registered(module: Any, tensor: Any) -> Iterator[Any]:
    c = module.constraints
    yield from (c.real, c.positive, c.nonnegative, c.unit_interval, c.real_vector, c.simplex)
    yield from (c.greater_than(2.0), c.greater_than_eq(tensor(1.0)), c.less_than(-1.0))
    yield from (c.interval(-1.0, 3.0), c.half_open_interval(tensor(0.0), tensor(2.0)))
    yield c.independent(c.positive, 1)
    yield c.cat([c.positive, c.real], -1, [1, 2])
    yield c.stack([c.positive, c.real, c.unit_interval], -1)
    yield from (c.corr_cholesky, c.lower_cholesky, c.positive_definite, c.positive_semidefinite)
    yield from (c.boolean, c.lower_triangular)


@pytest.mark.parametrize("name", ["biject_to", "transform_to"])
def test_registry(name: str) -> None:
    registered = (_registered(D, flow.tensor), _registered(TD, torch.tensor))
    for ours, theirs in zip(*registered, strict=True):
        try:
            other = getattr(TD, name)(theirs)
        except NotImplementedError:
            with pytest.raises(NotImplementedError):
                getattr(D, name)(ours)
            continue
        one = getattr(D, name)(ours)
        assert type(one).__name__ == type(other).__name__
        value = SQUARES if one.domain.event_dim == 2 else REALS
        y = one(flow.tensor(value))
        np.testing.assert_allclose(_array(y), _array(other(torch.tensor(value))), rtol=1e-12)
        assert bool(ours.check(y).all())


def test_registries_can_be_added_to() -> None:
    registry = D.constraint_registry.ConstraintRegistry()

    @registry.register(D.constraints.boolean)
    def made(constraint: Any) -> str:
        return repr(constraint)

    assert registry(D.constraints.boolean) == "Boolean()"
    assert made(3) == "3"


# --- Utilities -----------------------------------------------------------------------------------


def test_utilities() -> None:
    for n, diag in ((3, 0), (3, -1), (4, -2), (3, 1), (1, 0)):
        square = np.arange(2.0 * n * n).reshape(2, n, n)
        vector = D.utils.tril_matrix_to_vec(flow.tensor(square), diag)
        want = TD.utils.tril_matrix_to_vec(torch.tensor(square), diag)
        np.testing.assert_array_equal(_array(vector), _array(want))
        if diag <= 0:
            back = D.utils.vec_to_tril_matrix(vector, diag)
            want = TD.utils.vec_to_tril_matrix(want, diag)
            np.testing.assert_array_equal(_array(back), _array(want))
    for name in ("clamp_probs", "probs_to_logits", "logits_to_probs"):
        got, want = (
            getattr(D.utils, name)(flow.tensor(PROBS)),
            getattr(TD.utils, name)(torch.tensor(PROBS)),
        )
        np.testing.assert_allclose(_array(got), _array(want), rtol=1e-12)
    for name in ("probs_to_logits", "logits_to_probs"):
        got = getattr(D.utils, name)(flow.tensor(PROBS), is_binary=True)
        want = getattr(TD.utils, name)(torch.tensor(PROBS), is_binary=True)
        np.testing.assert_allclose(_array(got), _array(want), rtol=1e-12)
    x = np.arange(8.0).reshape(2, 2, 2)
    for count in range(4):
        want = TD.utils._sum_rightmost(torch.tensor(x), count)
        np.testing.assert_array_equal(_array(D.utils._sum_rightmost(flow.tensor(x), count)), want)
    normal = D.utils._standard_normal(flow.Size((50, 2)), dtype=flow.float64, device="cpu")
    assert normal.shape == (50, 2) and normal.dtype == flow.float64 and (normal < 0).any()
    assert D.utils.euler_constant == TD.utils.euler_constant
    one, two = D.utils.broadcast_all(flow.zeros(2, dtype=flow.float32), 3)
    assert one.shape == two.shape and two.dtype == flow.float32


def test_lazy_properties_are_recorded() -> None:
    """They keep gradients even where they are first asked for without."""
    logits = flow.tensor([0.3], requires_grad=True)
    one = D.Bernoulli(logits=logits)
    with flow.no_grad():
        assert one.probs.requires_grad
    assert isinstance(D.Bernoulli.probs, D.utils.lazy_property)
