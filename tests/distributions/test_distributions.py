"""Every distribution against PyTorch's: shapes, moments, densities, draws, and all gradients."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import oneflow_lite as flow
from oneflow_lite.autograd import grad, gradcheck, gradgradcheck
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from tests.distributions.cases import CASES, PROBS, TRIL, matrix

torch = pytest.importorskip("torch")
TD, D = torch.distributions, flow.distributions

EACH = [
    pytest.param(name, kwargs, id=f"{name}-{i}")
    for name, several in CASES.items()
    for i, kwargs in enumerate(several)
]
each = pytest.mark.parametrize(("name", "kwargs"), EACH)

# Where PyTorch's answer is off: what is left out, or how near it comes.
OFF: dict[tuple[str, str], float | None] = {
    ("Kumaraswamy", "mode"): None,  # it has the two concentrations in each other's place
    ("Multinomial", "entropy"): 1e-7,  # one term in single precision
    ("VonMises", "variance"): 1e-5,  # Bessel functions by polynomials
    ("VonMises", "stddev"): 1e-5,
    ("VonMises", "log_prob"): 1e-5,
}


@pytest.fixture(autouse=True)
def _double() -> Iterator[None]:
    """Let numbers become float64, and NumPy as silent as PyTorch."""
    flow.set_default_dtype(flow.float64)
    torch.set_default_dtype(torch.float64)
    with np.errstate(all="ignore"):
        yield
    flow.set_default_dtype(flow.float32)
    torch.set_default_dtype(torch.float32)


def make(module: Any, name: str, kwargs: dict[str, Any], **options: Any) -> tuple[Any, list[Any]]:
    """Return a distribution and its parameters, leaves that require gradients."""
    library = torch if module is TD else flow
    made = {
        key: library.tensor(value, requires_grad=True) if isinstance(value, np.ndarray) else value
        for key, value in kwargs.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(module, name)(**made, **options), [
            value for value in made.values() if isinstance(value, library.Tensor)
        ]


def array(x: Any) -> Any:
    return np.asarray(x.detach().numpy())


def compare(
    got: Any, want: Any, leaves: Any, their_leaves: Any, rtol: float = 1e-9, grads: float = 1e-8
) -> None:
    """Compare two results, and the gradients of a weighted sum of what is finite in them."""
    assert tuple(got.shape) == tuple(want.shape)
    assert str(got.dtype) == str(want.dtype).removeprefix("torch.")
    np.testing.assert_allclose(array(got), array(want), rtol=rtol, atol=1e-10)
    if not want.requires_grad:
        return
    weights = np.cos(np.arange(want.numel()).reshape(want.shape))
    weights = np.where(np.isfinite(array(want)), weights, 0.0)
    for leaf, their_leaf in zip(leaves, their_leaves, strict=True):
        options: Any = {"retain_graph": True, "allow_unused": True}
        try:
            (theirs,) = torch.autograd.grad(want, their_leaf, torch.tensor(weights), **options)
        except NotImplementedError:  # of the incomplete gamma function by its first argument
            continue
        if theirs is None or not torch.isfinite(theirs).all():
            continue
        (ours,) = grad(got, leaf, flow.tensor(weights), **options)
        ours = np.zeros(leaf.shape) if ours is None else array(ours)
        theirs = array(theirs)
        if leaf.shape[-2:] == (3, 3):  # whether zeros above the diagonal are looked at differs
            ours, theirs = np.tril(ours), np.tril(theirs)
        near = max(rtol * 10, grads)
        np.testing.assert_allclose(ours, theirs, rtol=near, atol=near / 10)


def same(
    ours: Any, theirs: Any, name: str, what: str, leaves: Any, their_leaves: Any, *args: Any
) -> None:
    """Compare an attribute, or what a method returns; both may be missing, too."""
    tolerance = OFF.get((name, what), 1e-9)
    if tolerance is None:
        return
    mine, other = [], []
    for value in args:
        needs_grad = value.dtype.kind == "f"
        mine.append(flow.tensor(value, requires_grad=needs_grad))
        other.append(torch.tensor(value, requires_grad=needs_grad))
    try:
        want = getattr(theirs, what)
        want = want(*other) if callable(want) else want
    except (NotImplementedError, AttributeError):
        with pytest.raises(NotImplementedError):
            got = getattr(ours, what)
            got(*mine)
        return
    got = getattr(ours, what)
    got = got(*mine) if callable(got) else got
    mine, other = [x for x in mine if x.requires_grad], [x for x in other if x.requires_grad]
    compare(got, want, [*leaves, *mine], [*their_leaves, *other], tolerance)


@each
def test_moments(name: str, kwargs: dict[str, Any]) -> None:
    theirs, their_leaves = make(TD, name, kwargs)
    ours, leaves = make(D, name, kwargs)
    for what in ("mean", "mode", "variance", "stddev", "entropy", "perplexity"):
        if (name, what) != ("Poisson", "entropy"):
            same(ours, theirs, name, what, leaves, their_leaves)


@each
def test_densities(name: str, kwargs: dict[str, Any]) -> None:
    theirs, their_leaves = make(TD, name, kwargs)
    ours, leaves = make(D, name, kwargs)
    torch.manual_seed(3)
    values = array(theirs.sample((4,)))
    for what in ("log_prob", "cdf"):
        same(ours, theirs, name, what, leaves, their_leaves, values)
    shares = np.array([0.02, 0.3, 0.5, 0.97]).reshape((4, *(1 for _ in ours.batch_shape)))
    shares = np.broadcast_to(shares, (4, *ours.batch_shape)).copy()
    same(ours, theirs, name, "icdf", leaves, their_leaves, shares)


def _words(theirs: Any) -> str:
    """Return a text of PyTorch's with shapes as tuples."""
    text = re.sub(r"torch\.Size\(\[(\d+)\]\)", r"(\1,)", str(theirs))
    return re.sub(r"torch\.Size\(\[(.*?)\]\)", r"(\1)", text)


def _grid(ndim: int) -> list[Any]:
    if not ndim:
        return [np.array([-np.inf, -1.5, -1, 0, 0.5, 1, 2, 2.5, 3, np.inf, np.nan])]
    if ndim == 1:
        return [PROBS, np.eye(3), -PROBS, np.array([1.0, 2.0, 1.0]), np.array([np.nan, 1.0, 0.0])]
    return [matrix(2, 3, 3), TRIL, -np.eye(3), np.ones((3, 3)), np.linalg.cholesky(PERFECT)]


PERFECT = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.1], [0.2, 0.1, 1.0]])


@each
def test_what_it_says_of_itself(name: str, kwargs: dict[str, Any]) -> None:
    theirs, ours = make(TD, name, kwargs)[0], make(D, name, kwargs)[0]
    assert (ours.batch_shape, ours.event_shape) == (theirs.batch_shape, theirs.event_shape)
    expanded = ours.expand((2, *ours.batch_shape))
    for one in (ours, expanded):
        sizes = one.batch_shape, one.event_shape, one._extended_shape((3,))
        assert all(isinstance(size, flow.Size) for size in sizes)
    assert repr(ours) == _words(theirs)
    assert ours.has_rsample == theirs.has_rsample
    assert ours.has_enumerate_support == theirs.has_enumerate_support
    assert {k: v.event_dim for k, v in ours.arg_constraints.items()} == {
        k: v.event_dim for k, v in theirs.arg_constraints.items()
    }
    support, other = ours.support, theirs.support
    assert (support.is_discrete, support.event_dim) == (other.is_discrete, other.event_dim)
    for value in _grid(support.event_dim):
        value = value.reshape(value.shape + (1,) * 2) if not support.event_dim else value
        try:
            want = array(other.check(torch.tensor(value)))
        except RuntimeError:  # shapes that do not broadcast
            continue
        np.testing.assert_array_equal(array(support.check(flow.tensor(value))), want)
    if hasattr(theirs, "param_shape"):
        assert tuple(ours.param_shape) == tuple(theirs.param_shape)


@each
def test_expand(name: str, kwargs: dict[str, Any]) -> None:
    theirs, ours = make(TD, name, kwargs)[0], make(D, name, kwargs)[0]
    shape = (2, *ours.batch_shape)
    for what in ("probs", "logits", "covariance_matrix"):  # what is kept is expanded, too
        getattr(ours, what, None)
    wide, other = ours.expand(shape), theirs.expand(shape)
    assert type(wide) is type(ours)
    assert (wide.batch_shape, wide.event_shape) == (other.batch_shape, other.event_shape)
    assert ours.batch_shape == theirs.batch_shape
    values = array(other.sample((3,)))
    np.testing.assert_allclose(
        array(wide.log_prob(flow.tensor(values))),
        array(other.log_prob(torch.tensor(values))),
        rtol=OFF.get((name, "log_prob")) or 1e-9,
        atol=1e-9,
    )
    assert wide.sample((3,)).shape == (3, *shape, *ours.event_shape)
    try:
        want = other.mean
    except NotImplementedError:
        return
    np.testing.assert_allclose(array(wide.mean), array(want), rtol=1e-9)


@each
def test_enumerate_support(name: str, kwargs: dict[str, Any]) -> None:
    theirs, ours = make(TD, name, kwargs)[0], make(D, name, kwargs)[0]
    for expand in (True, False):
        if not theirs.has_enumerate_support:
            with pytest.raises(NotImplementedError):
                ours.enumerate_support(expand)
            continue
        got, want = ours.enumerate_support(expand), theirs.enumerate_support(expand)
        np.testing.assert_array_equal(array(got), array(want))
        assert str(got.dtype) == str(want.dtype).removeprefix("torch.")


@each
def test_draws_are_distributed_as_pytorchs(name: str, kwargs: dict[str, Any]) -> None:
    theirs, ours = make(TD, name, kwargs)[0], make(D, name, kwargs)[0]
    flow.manual_seed(11)
    torch.manual_seed(12)
    count = 600
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got, want = ours.sample((count,)), theirs.sample((count,))
    assert not got.requires_grad
    assert str(got.dtype) == str(want.dtype).removeprefix("torch.")
    assert got.shape == want.shape
    assert bool(ours.support.check(got).all())
    assert ours.sample().shape == (*ours.batch_shape, *ours.event_shape)
    events = got.shape[len(ours.batch_shape) + 1 :]
    mix = np.cos(1.0 + np.arange(np.prod(events, dtype=int)))  # which sees correlations, too
    rows = (array(x).astype(float).reshape(count, -1, mix.size) @ mix for x in (got, want))
    for ours_i, theirs_i in zip(*(x.T for x in rows), strict=True):
        assert stats.ks_2samp(ours_i, theirs_i, method="asymp").pvalue > 1e-4


class _Recorded(flow.Interpreter):  # type: ignore[misc]
    """Keep what random ops draw."""

    def __init__(self) -> None:
        self.draws: list[Any] = []

    def apply(self, op: Any, inputs: Any, attrs: Any) -> Any:
        outputs = self.inner.apply(op, inputs, attrs)
        if op.schema.random and op.op_type_name != "check_values":
            drawn = outputs[0] if isinstance(outputs, (tuple, list)) else outputs
            self.draws.append(array(drawn).copy())
        return outputs


class _Gamma(torch.autograd.Function):
    """Our draw, with PyTorch's gradient."""

    @staticmethod
    def forward(ctx: Any, concentration: Any, drawn: Any) -> Any:
        ctx.save_for_backward(concentration, drawn)
        return drawn.clone()

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        return dy * torch._standard_gamma_grad(*ctx.saved_tensors), None


@each
def test_reparameterized_draws(
    name: str, kwargs: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the same underlying numbers, in the same order, come the same draws and gradients."""
    theirs, their_leaves = make(TD, name, kwargs)
    ours, leaves = make(D, name, kwargs)
    if not ours.has_rsample:
        with pytest.raises(NotImplementedError):
            ours.rsample()
        return
    if name == "Wishart":  # PyTorch's takes draws that are not singular for singular
        pytest.skip("see test_wishart_draws")
    if name == "OneHotCategoricalStraightThrough":
        (leaf,) = leaves
        (got,) = grad(ours.rsample((2,)).select(-1, 0).sum(), leaf, retain_graph=True)
        (want,) = grad(2 * ours.probs.select(-1, 0).sum(), leaf)
        np.testing.assert_allclose(array(got), array(want))
        return
    flow.manual_seed(5)
    recorder = _Recorded()
    with flow.push_interpreter(recorder):
        drawn = ours.rsample((2,))
    draws = [torch.tensor(x) for x in recorder.draws]

    def given(*_: Any, **__: Any) -> Any:
        return draws.pop(0)

    def filled(self: Any, low: float = 0.0, high: float = 1.0) -> Any:
        return draws.pop(0)

    def uniform(self: Any, low: float, high: float) -> Any:
        return draws.pop(0) * (high - low) + low

    monkeypatch.setattr(torch, "rand", given)
    monkeypatch.setattr(torch, "_sample_dirichlet", given)
    monkeypatch.setattr(TD.gamma, "_standard_gamma", lambda c: _Gamma.apply(c, draws.pop(0)))
    for method in ("normal_", "exponential_", "cauchy_"):
        monkeypatch.setattr(torch.Tensor, method, filled)
    monkeypatch.setattr(torch.Tensor, "uniform_", uniform)
    want = theirs.rsample((2,))
    assert not draws
    rough = 1e-2 if "gamma" in str(ours.__class__.__module__) or name == "InverseGamma" else 1e-8
    compare(drawn, want, leaves, their_leaves, 1e-9, rough)


def test_wishart_draws() -> None:
    df = flow.tensor(5.0, requires_grad=True)
    tril = flow.tensor(TRIL[0], requires_grad=True)
    flow.manual_seed(0)
    drawn = D.Wishart(df, scale_tril=tril).rsample((4000,))
    np.testing.assert_allclose(array(drawn.mean(0)), 5 * TRIL[0] @ TRIL[0].T, rtol=0.1, atol=0.3)
    slopes = grad(drawn.mean(0).diagonal().sum(), [df, tril])  # of df Σ L²
    np.testing.assert_allclose(array(slopes[0]), (TRIL[0] ** 2).sum(), rtol=0.1)
    np.testing.assert_allclose(np.tril(array(slopes[1])), 10 * TRIL[0], rtol=0.15, atol=0.5)


def _slope(cdf: Any, density: Any, a: Any, x: Any) -> Any:
    """Return -(∂F/∂a) / f, by a central difference of the fourth order."""
    h = 1e-3 * a
    steps = ((1, 8), (-1, -8), (2, -1), (-2, 1))
    return -sum(w * cdf(a + k * h, x) for k, w in steps) / (12 * h) / density(a, x)


@pytest.mark.parametrize("a", [0.02, 0.5, 3.0, 80.0])
def test_implicit_gradients(a: float) -> None:
    """Of gamma and Beta numbers, against differences of SciPy's distribution functions."""
    flow.manual_seed(1)
    c = flow.full((40,), a, requires_grad=True)
    x = flow._standard_gamma(c)
    (slope,) = grad(x.sum(), c, create_graph=True)
    x_, far = array(x), array(x) > 1e-200
    want = _slope(special.gammainc, lambda a, x: stats.gamma.pdf(x, a), a, x_)
    np.testing.assert_allclose(array(slope)[far], want[far], rtol=1e-6)
    (second,) = grad(slope.sum(), c)  # along the quantile, whose share of numbers stays
    share, h = special.gammainc(a, x_), 1e-3 * a
    sides = special.gammaincinv(a + h, share) + special.gammaincinv(a - h, share)
    want = (sides - 2 * x_) / h**2
    sure = (share > 0.05) & (share < 0.95) & far
    np.testing.assert_allclose(array(second)[sure], want[sure], rtol=1e-3, atol=1e-6)

    for b in (0.3, 2.0, 50.0):
        c = flow.full((40,), a, requires_grad=True)
        x = D.Beta(c, b).rsample()
        (slope,) = grad(x.sum(), c)
        x_ = array(x)
        sure = (x_ > 1e-200) & (x_ < 1 - 1e-9)
        want = _slope(
            lambda a, x, b=b: special.betainc(a, b, x),
            lambda a, x, b=b: stats.beta.pdf(x, a, b),
            a,
            x_,
        )
        np.testing.assert_allclose(array(slope)[sure], want[sure], rtol=1e-6, atol=1e-12)


def test_tails_are_differentiable() -> None:
    def leaf(*values: float) -> Any:
        return flow.tensor(values, requires_grad=True)

    a, z = leaf(0.4, 3.0, 3.0), leaf(0.2, 1.0, 5.0)
    b, x = leaf(0.9, 2.0, 0.5), leaf(0.2, 0.1, 0.8)
    for n in (0, 1):
        assert gradcheck(lambda *args: F.gamma_tail(*args, n=n), (a, z))
        assert gradgradcheck(lambda *args: F.gamma_tail(*args, n=n), (a, z))
        assert gradcheck(lambda *args: F.beta_tail(*args, n=n, m=1), (a, b, x))
        assert gradgradcheck(lambda *args: F.beta_tail(*args, n=n, m=0), (a, b, x))


def test_gamma_draws_in_other_dtypes() -> None:
    c = flow.full((5000,), 0.05, dtype=flow.float32, requires_grad=True)
    x = flow._standard_gamma(c)  # more than one block of rows
    (slope,) = grad(x.sum(), c)
    assert x.dtype == slope.dtype == flow.float32
    assert bool((x > 0).all()) and bool(flow.isfinite(slope).all())
    assert flow._standard_gamma(flow.ones(3, dtype=flow.float16)).dtype == flow.float16


@each
def test_it_can_be_captured(name: str, kwargs: dict[str, Any]) -> None:
    """Its draws and densities run compiled, and values are still looked at."""
    if name == "Wishart":
        pytest.skip("draws again by value")
    values = {k: flow.tensor(v) for k, v in kwargs.items() if isinstance(v, np.ndarray)}
    rest = {k: v for k, v in kwargs.items() if k not in values}
    cls, keys = getattr(D, name), list(values)

    @flow.compile
    def step(*given: Any) -> Any:
        one = cls(**dict(zip(keys, given, strict=True)), **rest)
        return one.log_prob(one.sample((2,))).sum()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flow.manual_seed(2)
        first = [step(*values.values()).item() for _ in range(3)]
    assert step.explain().hits >= 1, step.explain()
    flow.manual_seed(2)
    one = cls(**values, **rest)
    again = [one.log_prob(one.sample((2,))).sum().item() for _ in range(3)]
    np.testing.assert_allclose(first, again, rtol=1e-12)


@pytest.mark.parametrize("kappa", [1e-7, 1e-2, 7.0, 1e6, 1e12])
def test_angles_of_any_concentration(kappa: float) -> None:
    flow.manual_seed(3)
    drawn = array(D.VonMises(flow.tensor(1.0), flow.tensor(kappa)).sample((2000,))) - 1.0
    drawn = (drawn + np.pi) % (2 * np.pi) - np.pi
    if kappa > 1e5:
        assert stats.kstest(drawn * np.sqrt(kappa), "norm").pvalue > 1e-3
    else:
        assert stats.kstest(drawn, stats.vonmises(max(kappa, 1e-5)).cdf).pvalue > 1e-3
    for wrong in (-1.0, 0.0, math_nan):
        one = D.VonMises(0.0, flow.tensor([wrong, 1.0]), validate_args=False)
        np.testing.assert_array_equal(np.isnan(array(one.sample())), [True, False])


@pytest.mark.parametrize("name", CASES)
def test_on_devices(name: str, device: str) -> None:
    """Draws, densities and gradients stay on the device of the parameters."""
    several = [
        case for case in CASES[name] if any(isinstance(v, np.ndarray) for v in case.values())
    ]
    kwargs = {
        key: flow.tensor(value, device=device, requires_grad=True)
        if isinstance(value, np.ndarray)
        else value
        for key, value in several[0].items()
    }
    leaves = [value for value in kwargs.values() if isinstance(value, flow.Tensor)]
    ours = getattr(D, name)(**kwargs)
    drawn = ours.rsample((2,)) if ours.has_rsample else ours.sample((2,))
    assert drawn.device.type == device
    density = ours.log_prob(drawn.detach()).sum() + drawn.sum()
    assert density.device.type == device
    for slope in grad(density, leaves, allow_unused=True):
        assert slope is None or slope.device.type == device


@each
def test_second_derivatives(name: str, kwargs: dict[str, Any]) -> None:
    ours, leaves = make(D, name, kwargs, validate_args=False)
    theirs, _ = make(TD, name, kwargs)
    torch.manual_seed(3)
    value = flow.tensor(array(theirs.sample()))
    leaves = [x for x in leaves if x.shape[-2:] != (3, 3)]

    def of(*given: Any) -> Any:
        named = dict(
            zip([k for k, v in kwargs.items() if isinstance(v, np.ndarray)], given, strict=True)
        )
        return getattr(D, name)(**{**kwargs, **named}, validate_args=False).log_prob(value)

    arrays = [v for v in kwargs.values() if isinstance(v, np.ndarray)]
    if arrays and len(leaves) == len(arrays):
        assert gradgradcheck(of, tuple(leaves), atol=1e-4, rtol=1e-4)


def test_generalized_pareto_at_0() -> None:
    """It is the exponential one, and its derivatives by the concentration are there, too."""
    value = flow.tensor([0.3, 1.7])
    zero = flow.zeros(2, requires_grad=True)

    def of(c: Any, what: str) -> Any:
        return getattr(D.GeneralizedPareto(0.0, 1.0, c), what)(value / 2)

    for what in ("log_prob", "cdf", "icdf"):
        known = getattr(D.Exponential(1.0), what)(value / 2)
        np.testing.assert_allclose(array(of(zero, what)), array(known), rtol=1e-12)
        (slope,) = grad(of(zero, what).sum(), zero, create_graph=True)
        (second,) = grad(slope.sum(), zero)
        near = flow.full((2,), 1e-4)
        low, high = of(-near, what).detach(), of(near, what).detach()
        np.testing.assert_allclose(array(slope), array(high - low) / 2e-4, rtol=1e-6)
        bend = array(high + low - 2 * known) / 1e-8
        np.testing.assert_allclose(array(second), bend, rtol=1e-4, atol=1e-6)


def test_moved_mode_of_kumaraswamy() -> None:
    one = D.Kumaraswamy(flow.tensor(2.0), flow.tensor(3.0))
    x = flow.linspace(0.01, 0.99, 981)
    np.testing.assert_allclose(one.mode.item(), x[one.log_prob(x).argmax()].item(), atol=1e-3)


def _errors(module: Any) -> Iterator[Any]:
    """Calls that PyTorch refuses."""
    library = torch if module is TD else flow
    t = library.tensor
    two = t([1.0, 1.0])
    yield lambda: module.Normal(t(0.0), t(-1.0))
    yield lambda: module.Normal("a", 1.0)
    yield lambda: module.Normal(t([0.0, math_nan]), 1.0)
    yield lambda: module.Normal(two, t([1.0, 2.0, 3.0]))
    yield lambda: module.Bernoulli()
    yield lambda: module.Bernoulli(probs=two, logits=two)
    yield lambda: module.Bernoulli(t(1.5))
    yield lambda: module.Bernoulli(two / 2).log_prob(t([0.5, 1.0]))
    yield lambda: module.Categorical(t(1.0))
    yield lambda: module.Categorical(two, two)
    yield lambda: module.Categorical(-two + t([0.0, 2.0]))
    yield lambda: module.Categorical(two).log_prob(t(2))
    yield lambda: module.OneHotCategorical(two).log_prob(two)
    yield lambda: module.Uniform(1.0, 0.0)
    yield lambda: module.Uniform(0.0, 1.0).log_prob(t(2.0))
    yield lambda: module.Geometric(t(0.0))
    yield lambda: module.Dirichlet(t(1.0))
    yield lambda: module.Dirichlet(two).log_prob(two)
    yield lambda: module.Dirichlet(two).log_prob(t([0.2, 0.3, 0.5]))
    yield lambda: module.MultivariateNormal(t(0.0), t([[1.0]]))
    yield lambda: module.MultivariateNormal(two)
    yield lambda: module.MultivariateNormal(two, two)
    yield lambda: module.MultivariateNormal(two, t([[1.0, 2.0], [2.0, 1.0]]))
    yield lambda: module.MultivariateNormal(two, scale_tril=t([[1.0, 2.0], [2.0, 1.0]]))
    yield lambda: module.LowRankMultivariateNormal(two, two, two)
    yield lambda: module.LowRankMultivariateNormal(two, t([[1.0]]), two)
    yield lambda: module.Wishart(3.0)
    yield lambda: module.Wishart(0.5, t([[1.0, 0.0], [0.0, 1.0]]))
    yield lambda: module.LKJCholesky(1)
    yield lambda: module.Multinomial(t(2), two)
    yield lambda: module.Multinomial(2, two).log_prob(t([2.0, 1.0]))
    yield lambda: module.Binomial(t([1.0, 2.0]), two / 2).enumerate_support()
    yield lambda: module.Independent(module.Normal(two, 1.0), 2)
    yield lambda: module.Independent(module.Bernoulli(two), 1).enumerate_support()
    yield lambda: module.TransformedDistribution(module.Normal(0.0, 1.0), 3)
    yield lambda: module.TransformedDistribution(module.Normal(0.0, 1.0), [3])
    yield lambda: module.TransformedDistribution(
        module.Normal(0.0, 1.0), module.StickBreakingTransform()
    )
    yield lambda: module.MixtureSameFamily(two, module.Normal(two, 1.0))
    yield lambda: module.MixtureSameFamily(module.Categorical(two), two)
    yield lambda: module.MixtureSameFamily(
        module.Categorical(two), module.Normal(t([1.0] * 3), 1.0)
    )
    yield lambda: module.MixtureSameFamily(
        module.Categorical(t([[1.0, 1.0]] * 3)), module.Normal(t([[1.0, 1.0]] * 2), 1.0)
    )
    yield lambda: module.Normal(0.0, 1.0).log_prob("a")
    yield lambda: module.Normal(two, 1.0).log_prob(t([1.0, 2.0, 3.0]))
    yield lambda: module.Distribution.set_default_validate_args("yes")
    yield lambda: module.Distribution().sample()
    yield lambda: module.Distribution(validate_args=False).mean
    yield lambda: module.Cauchy(0.0, 1.0).expand((2,)).enumerate_support()
    yield lambda: module.kl_divergence(module.Normal(0.0, 1.0), module.Bernoulli(0.5))
    yield lambda: module.register_kl(3, module.Normal)
    yield lambda: module.AffineTransform(0.0, 1.0, cache_size=2)
    yield lambda: module.ReshapeTransform((2,), (3,))
    yield lambda: module.ReshapeTransform((2,), (1, 2))(t([1.0, 2.0, 3.0]))
    yield lambda: module.ReshapeTransform((2,), (1, 2)).forward_shape(())
    yield lambda: module.StackTransform([3])
    yield lambda: module.CatTransform([module.ExpTransform()], lengths=[1, 2])
    yield lambda: module.CatTransform([module.ExpTransform()], dim=1)(two)
    yield lambda: module.CatTransform([module.ExpTransform()])(two)
    yield lambda: module.CorrCholeskyTransform().forward_shape((4,))
    yield lambda: module.StickBreakingTransform().event_dim and module.AbsTransform().sign
    yield lambda: module.CorrCholeskyTransform().event_dim
    yield lambda: module.biject_to(module.constraints.lower_cholesky)
    yield lambda: module.biject_to.register(3, 4)
    yield lambda: module.constraints.dependent.check(two)
    yield lambda: module.constraints.dependent.event_dim
    yield lambda: module.constraints.independent(3, 1)
    yield lambda: module.constraints.independent(module.constraints.real, -1)
    yield lambda: module.constraints.real_vector.check(t(1.0))
    yield lambda: module.constraints.cat([3])
    yield lambda: module.constraints.stack([module.constraints.real], 2).check(two)
    yield lambda: module.utils.tril_matrix_to_vec(t([[1.0]]), 1)
    yield lambda: module.utils.vec_to_tril_matrix(two)
    yield lambda: module.utils.broadcast_all("a")


math_nan = float("nan")


def test_errors_are_of_pytorchs_classes() -> None:
    wrong = []
    for i, (ours, theirs) in enumerate(zip(_errors(D), _errors(TD), strict=True)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                theirs()
                kind: Any = None
            except Exception as error:
                kind = type(error)
            try:
                ours()
                mine: Any = None
            except flow.errors.FlowError as error:
                mine = error
            except NotImplementedError as error:
                mine = error
        if kind is None or not isinstance(mine, kind):
            wrong.append((inspect.getsource(theirs).strip(), kind, mine))
    assert not wrong


def test_errors_say_what_is_wrong() -> None:
    with pytest.raises(flow.errors.ArgumentError, match=r"'scale'.*GreaterThan.*got -1\.0"):
        D.Normal(flow.zeros(2), flow.tensor([1.0, -1.0]))
    with pytest.raises(flow.errors.ArgumentError, match=r"'value'.*interval|Interval"):
        D.Uniform(0.0, flow.ones(2)).log_prob(flow.tensor(3.0))
    assert D.Normal(0.0, -1.0, validate_args=False).scale.item() == -1.0


def test_a_distribution_of_ones_own() -> None:
    class Own(D.Distribution):  # type: ignore[misc, name-defined]
        def __init__(self, loc: Any, extra: Any) -> None:
            self.loc, self.extra = loc, extra
            super().__init__(loc.shape)

        def rsample(self, sample_shape: Any = ()) -> Any:
            return self.loc.expand(self._extended_shape(sample_shape))

        def log_prob(self, value: Any) -> Any:
            self._validate_sample(value)
            return value

    with pytest.warns(UserWarning, match="arg_constraints"):
        own = Own(flow.zeros(3), flow.ones(2))
    with pytest.warns(UserWarning, match="support"):
        own.log_prob(flow.zeros(3))
    assert own.expand((2, 3)).sample((4,)).shape == (4, 2, 3)
    assert own.expand((2, 3)).extra.shape == (2,)
    with pytest.warns(FutureWarning):
        assert own.sample_n(2).shape == (2, 3)

    class Shifted(D.Normal):  # type: ignore[misc, name-defined]
        def __init__(self, base: Any) -> None:
            super().__init__(base + 1, 1.0)

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            new = self._get_checked_instance(Shifted, _instance)
            return super().expand(batch_shape, new)

    assert Shifted(flow.zeros(2)).expand((3, 2)).mean.shape == (3, 2)
    with pytest.raises(NotImplementedError, match="expand"):
        Shifted(flow.zeros(2))._get_checked_instance(D.Normal)


def test_a_distribution_as_packages_have_them() -> None:
    """Made by a metaclass, with a constraint on what comes later, and a factor of its own."""
    found = []
    for lib, module in ((flow, D), (torch, TD)):

        class Counted:
            def __init__(self) -> None:
                self.calls: list[int] = []

        class Made(type(module.Distribution)):  # type: ignore[misc]
            def __call__(cls, *args: Any, **options: Any) -> Any:
                return super().__call__(*args, **options)

        class Lazy(  # type: ignore[misc]
            module.MultivariateNormal,  # type: ignore[name-defined]
            Counted,
            metaclass=Made,
        ):
            arg_constraints: Any = {
                "loc": module.constraints.real_vector,
                "rank": module.constraints.dependent,
            }

            def __init__(self, loc: Any) -> None:
                self.loc = loc
                module.Distribution.__init__(self, loc.shape[:-1], loc.shape[-1:], True)

            @property
            def _unbroadcasted_scale_tril(self) -> Any:
                self.calls.append(1)
                return 2 * lib.eye(2, dtype=lib.float64)

        lazy = Lazy(lib.zeros(3, 2, dtype=lib.float64))
        assert not lazy.calls
        assert lazy.rsample((4,)).shape == (4, 3, 2)
        values = (lazy.covariance_matrix, lazy.log_prob(lib.ones(2, dtype=lib.float64)))
        found.append([*map(np.asarray, values), np.asarray(lazy.entropy())])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(np.broadcast_to(ours, theirs.shape), theirs, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:.*ingular")
@pytest.mark.parametrize("matrix", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_wishart_of_one_by_one(matrix: str) -> None:
    found = []
    for lib, module in ((flow, D), (torch, TD)):
        given = {matrix: lib.tensor([[2.0]], dtype=lib.float64)}
        one = module.Wishart(lib.tensor([3.0, 4.0], dtype=lib.float64), **given)
        assert one.rsample((5,)).shape == (5, 2, 1, 1)
        assert (one.sample((5,)) > 0).all()
        value = lib.full((1, 1), 1.5, dtype=lib.float64)
        values = (one.mean, one.mode, one.variance, one.entropy(), one.log_prob(value))
        found.append([*map(np.asarray, values)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_an_exponential_family_of_ones_own() -> None:
    """Entropy and divergence by the log normalizer, which keep gradients."""

    class Rates(D.ExponentialFamily):  # type: ignore[misc, name-defined]
        arg_constraints: Any = {}
        _mean_carrier_measure = 0

        def __init__(self, rate: Any) -> None:
            self.rate = rate
            super().__init__(rate.shape)

        _natural_params = property(lambda self: (-self.rate,))

        def _log_normalizer(self, x: Any) -> Any:
            return -(-x).log()

    rate = flow.tensor([0.5, 3.0], requires_grad=True)
    mine, known = Rates(rate), D.Exponential(rate)
    other = flow.tensor([1.0, 2.0])
    for got, want in (
        (mine.entropy(), known.entropy()),
        (
            D.kl_divergence(mine, Rates(other)),
            D.kl_divergence(known, D.Exponential(other)),
        ),
    ):
        np.testing.assert_allclose(array(got), array(want), rtol=1e-12)
        slopes = [grad(x.sum(), rate, retain_graph=True)[0] for x in (got, want)]
        np.testing.assert_allclose(array(slopes[0]), array(slopes[1]), rtol=1e-12)
    with pytest.raises(NotImplementedError):
        D.kl_divergence(mine, D.Poisson(other))


def test_composed_distributions() -> None:
    """Independent, transformed and mixed ones: everything that PyTorch's say."""

    def several(module: Any) -> Iterator[tuple[Any, list[Any]]]:
        library = torch if module is TD else flow
        loc = library.tensor([[0.1, -0.5, 1.0], [2.0, 0.3, -1.0]], requires_grad=True)
        scale = library.tensor([0.5, 1.0, 2.0], requires_grad=True)
        normal = module.Normal(loc, scale)
        leaves = [loc, scale]
        yield module.Independent(normal, 1), leaves
        yield module.Independent(module.Bernoulli(logits=loc), 0), [loc]
        yield module.Independent(module.Independent(module.Laplace(loc, scale), 1), 1), leaves
        yield module.TransformedDistribution(normal, module.ExpTransform()), leaves
        affine = module.AffineTransform(scale, -2.0)
        yield module.TransformedDistribution(normal, [module.TanhTransform(), affine]), leaves
        yield module.TransformedDistribution(normal, [affine, module.SigmoidTransform()]), leaves
        yield module.TransformedDistribution(normal, []), leaves
        yield module.TransformedDistribution(normal, [module.StickBreakingTransform()]), leaves
        yield (
            module.TransformedDistribution(normal, [module.SoftplusTransform(cache_size=1)]),
            leaves,
        )
        yield (
            module.TransformedDistribution(
                module.Normal(library.zeros(()), 1.0), [module.AffineTransform(loc, scale)]
            ),
            leaves,
        )
        yield (
            module.TransformedDistribution(
                module.Independent(normal, 1),
                [module.ReshapeTransform((3,), (1, 3)), module.ExpTransform()],
            ),
            leaves,
        )
        yield (
            module.TransformedDistribution(
                module.Uniform(library.zeros(3), 1.0), [module.SigmoidTransform().inv]
            ),
            [],
        )
        weights = module.Categorical(library.tensor([0.2, 0.3, 0.5]))
        yield module.MixtureSameFamily(weights, normal), leaves
        both = module.Categorical(logits=loc)
        yield module.MixtureSameFamily(both, module.Gamma(scale, scale.expand(2, 3))), [loc]
        vectors = module.Independent(module.Normal(library.stack([loc, loc + 1]), 1.0), 1)
        halves = module.Categorical(library.tensor([[0.5, 0.5], [0.1, 0.9]]))
        yield module.MixtureSameFamily(halves, vectors), [loc]

    for (ours, leaves), (theirs, their_leaves) in zip(several(D), several(TD), strict=True):
        assert repr(ours) == _words(theirs)
        assert (ours.batch_shape, ours.event_shape) == (theirs.batch_shape, theirs.event_shape)
        assert ours.support.event_dim == theirs.support.event_dim
        assert ours.has_rsample == theirs.has_rsample
        assert ours.has_enumerate_support == theirs.has_enumerate_support
        torch.manual_seed(0)
        mixture = getattr(theirs, "mixture_distribution", None)
        if mixture is not None and mixture.batch_shape != theirs.batch_shape:
            theirs.sample = lambda shape, one=ours: torch.tensor(array(one.sample(shape)))
            # PyTorch's cannot draw when the weights broadcast
        values = array(theirs.sample((2,)))
        for what in ("mean", "mode", "variance", "entropy"):
            same(ours, theirs, "", what, leaves, their_leaves)
        for what in ("log_prob", "cdf"):
            same(ours, theirs, "", what, leaves, their_leaves, values)
        same(ours, theirs, "", "icdf", leaves, their_leaves, np.full(theirs.batch_shape, 0.3))
        flow.manual_seed(0)
        drawn, other = ours.sample((400,)), theirs.sample((400,))
        assert drawn.shape == other.shape
        for x, y in zip(
            array(drawn).reshape(400, -1).T, array(other).reshape(400, -1).T, strict=True
        ):
            assert stats.ks_2samp(x, y).pvalue > 1e-4
        wide = (3, *ours.batch_shape)
        if mixture is not None and mixture.batch_shape != theirs.batch_shape:
            assert ours.expand(wide).sample((2,)).shape == (2, *wide)
            continue
        assert ours.expand(wide).sample((2,)).shape == theirs.expand(wide).sample((2,)).shape
        wider = ours.expand(wide).log_prob(flow.tensor(values[0]))
        want = theirs.expand(wide).log_prob(torch.tensor(values[0]))
        np.testing.assert_allclose(array(wider), array(want), rtol=1e-9)


# Names of PyTorch's that are missing here, and why.
MISSING: dict[str, str] = {}


def test_all_names_and_arguments_are_there() -> None:
    for theirs, ours in ((TD, D), (TD.constraints, D.constraints), (TD.utils, D.utils)):
        names = theirs.__all__ if theirs is not TD else [n for n in dir(TD) if n[0] != "_"]
        assert [n for n in names if not hasattr(ours, n)] == sorted(MISSING)
    for name in TD.__all__:
        theirs, ours = getattr(TD, name), getattr(D, name)
        if not inspect.isclass(theirs):
            continue
        for what in dir(theirs):
            if what[0] != "_" and what != "transforms":
                assert hasattr(ours, what), (name, what)
        if theirs.__init__ is not object.__init__:
            mine, other = inspect.signature(ours).parameters, inspect.signature(theirs).parameters
            assert list(mine) == list(other), name
            for key in other:
                assert mine[key].default == other[key].default, (name, key)
    for name, module in inspect.getmembers(TD, inspect.ismodule):
        for public in getattr(module, "__all__", ()):
            assert hasattr(getattr(D, name), public), (name, public)


def test_modules_are_found_by_pytorchs_names() -> None:
    from oneflow_lite.distributions.multivariate_normal import MultivariateNormal
    from oneflow_lite.distributions.transformed_distribution import TransformedDistribution

    assert MultivariateNormal is D.MultivariateNormal
    assert TransformedDistribution is D.TransformedDistribution


def test_they_are_loaded_when_asked_for() -> None:
    code = (
        "import sys, oneflow_lite as flow\n"
        "assert not any('distributions' in name for name in sys.modules)\n"
        "assert 'distributions' in dir(flow)\n"
        "flow.distributions.Normal(0.0, 1.0)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
