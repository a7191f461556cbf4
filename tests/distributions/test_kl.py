"""Every pair that PyTorch has a divergence for, its values and gradients; and the look-up."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd import grad
from tests.distributions.cases import CASES, LOC3, POSITIVE, SHARE, TRIL, matrix

torch = pytest.importorskip("torch")
TD, D = torch.distributions, flow.distributions

# A second object of each class, for q.
OTHERS: dict[str, list[dict[str, Any]]] = {
    "Bernoulli": [{"probs": np.array([0.4, 0.0, 1.0])}, {"logits": SHARE}],
    "Beta": [{"concentration1": POSITIVE + 1, "concentration0": 2.0}],
    "Binomial": [
        {"total_count": 5, "probs": SHARE[::-1].copy()},
        {"total_count": 4, "probs": SHARE},
    ],
    "Categorical": [{"probs": np.array([0.4, 0.0, 0.6])}, {"logits": SHARE}],
    "Cauchy": [{"loc": SHARE, "scale": 1.5}],
    "ContinuousBernoulli": [{"probs": 0.3}],
    "Dirichlet": [{"concentration": POSITIVE}],
    "Exponential": [{"rate": SHARE}],
    "Gamma": [{"concentration": SHARE + 1, "rate": 0.7}],
    "Geometric": [{"probs": SHARE}],
    "Gumbel": [{"loc": SHARE, "scale": 1.3}],
    "HalfNormal": [{"scale": SHARE}],
    "Laplace": [{"loc": SHARE, "scale": 1.3}],
    "LowRankMultivariateNormal": [
        {"loc": LOC3, "cov_factor": TRIL[0][:, :1].copy(), "cov_diag": SHARE}
    ],
    "MultivariateNormal": [{"loc": LOC3 * 2, "covariance_matrix": matrix(2, 3, 3) + 1}],
    "Normal": [{"loc": SHARE, "scale": 1.3}],
    "OneHotCategorical": [{"logits": SHARE}],
    "Pareto": [{"scale": SHARE, "alpha": 2.5}],
    "Poisson": [{"rate": SHARE}],
    "Uniform": [
        {"low": -2.0, "high": 3.0},
        {"low": np.array([0.2, 0.3, 1.2]), "high": np.array([0.6, 4.0, 2.0])},
    ],
    "Wishart": [{"df": np.array([5.0]), "scale_tril": TRIL[1]}],
}


@pytest.fixture(autouse=True)
def _double() -> Iterator[None]:
    flow.set_default_dtype(flow.float64)
    torch.set_default_dtype(torch.float64)
    with np.errstate(all="ignore"):
        yield
    flow.set_default_dtype(flow.float32)
    torch.set_default_dtype(torch.float32)


def _made(module: Any, name: str, kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
    library = torch if module is TD else flow
    made = {
        k: library.tensor(v, requires_grad=True) if isinstance(v, np.ndarray) else v
        for k, v in kwargs.items()
    }
    one = getattr(module, name)(**made)
    return one, [v for v in made.values() if isinstance(v, library.Tensor)]


def _array(x: Any) -> Any:
    return np.asarray(x.detach().numpy())


PAIRS = sorted((p.__name__, q.__name__) for p, q in TD.kl._KL_REGISTRY)
COMPOSED = {"ExponentialFamily", "Independent", "TransformedDistribution"}


def test_all_of_pytorchs_pairs_are_registered() -> None:
    ours = {(p.__name__, q.__name__) for p, q in D.kl._KL_REGISTRY}
    assert not set(PAIRS) - ours


@pytest.mark.parametrize(("p", "q"), [pair for pair in PAIRS if pair[0] not in COMPOSED])
def test_divergence(p: str, q: str) -> None:
    for first in CASES[p]:
        if p == "Binomial" and "logits" in first:  # of other numbers of trials: no formula
            continue
        for second in [*OTHERS[q], *CASES[q]] if p == q else OTHERS[q]:
            _compare(p, first, q, second)


def _compare(p: str, first: dict[str, Any], q: str, second: dict[str, Any]) -> None:
    theirs, their_leaves = zip(_made(TD, p, first), _made(TD, q, second), strict=True)
    ours, leaves = zip(_made(D, p, first), _made(D, q, second), strict=True)
    try:
        want = TD.kl_divergence(*theirs)
    except IndexError:  # PyTorch's where the batches have to broadcast
        return
    except (NotImplementedError, RuntimeError):
        with pytest.raises((NotImplementedError, RuntimeError)):
            D.kl_divergence(*ours)
        return
    got = D.kl_divergence(*ours)
    expected = _array(want)
    if {p, q} == {"Uniform", "ContinuousBernoulli"}:
        # PyTorch's is infinite where the supports end together, or one end of q is inside of p's.
        inside = (
            (_array(ours[0].low) >= 0) & (_array(ours[0].high) <= 1)
            if p == "Uniform"
            else (_array(ours[1].low) <= 0) & (_array(ours[1].high) >= 1)
        )
        np.testing.assert_array_equal(np.isfinite(_array(got)), inside | np.zeros(got.shape, bool))
        expected = np.where(np.isfinite(expected) & inside, expected, _array(got))
    elif np.broadcast_shapes(expected.shape, got.shape) == got.shape:
        expected = np.broadcast_to(expected, got.shape)  # infinity has the shape of p alone there
    np.testing.assert_allclose(_array(got), expected, rtol=1e-9, atol=1e-12)
    if not np.isfinite(_array(want)).all() or not want.requires_grad:
        return
    of = torch.autograd.grad(want.sum(), [*their_leaves[0], *their_leaves[1]], allow_unused=True)
    mine = grad(got.sum(), [*leaves[0], *leaves[1]], allow_unused=True)
    for x, y in zip(mine, of, strict=True):
        if y is not None and x is not None and torch.isfinite(y).all():
            x, y = (_array(v) for v in (x, y))
            if x.shape[-2:] == (3, 3):
                x, y = _symmetric(x), _symmetric(y)
            np.testing.assert_allclose(x, y, rtol=1e-7, atol=1e-9)


def _symmetric(x: Any) -> Any:
    """Return the part of a gradient by a matrix that triangular or symmetric changes see."""
    return np.tril(x) if not np.allclose(np.triu(x, 1), np.triu(np.swapaxes(x, -1, -2), 1)) else x


def test_a_divergence_from_itself_is_0() -> None:
    for name in OTHERS:
        one = _made(D, name, CASES[name][0])[0]
        itself = _array(D.kl_divergence(one, one))
        np.testing.assert_allclose(itself, np.zeros(itself.shape), atol=1e-9)


def test_uniform_within_continuous_bernoulli() -> None:
    """Against the integral, where PyTorch has no number."""
    p, q = D.Uniform(0.0, 1.0), D.ContinuousBernoulli(0.3)
    x = (flow.arange(20000) + 0.5) / 20000
    want = (p.log_prob(x) - q.log_prob(x)).mean().item()
    assert D.kl_divergence(p, q).item() == pytest.approx(want, rel=1e-6)
    want = (q.log_prob(x).exp() * (q.log_prob(x) - p.log_prob(x))).mean().item()
    assert D.kl_divergence(q, p).item() == pytest.approx(want, rel=1e-6)


def test_wishart() -> None:
    """Against the mean over draws: PyTorch adds up a batch."""
    p = D.Wishart(flow.tensor([5.0, 7.0]), scale_tril=flow.tensor(TRIL))
    q = D.Wishart(6.0, flow.tensor(matrix(3, 3)))
    flow.manual_seed(0)
    x = p.sample((20000,))
    want = (p.log_prob(x) - q.log_prob(x)).mean(0)
    np.testing.assert_allclose(_array(D.kl_divergence(p, q)), _array(want), rtol=0.03)


def test_composed_divergences() -> None:
    def pairs(module: Any) -> Iterator[Any]:
        library = torch if module is TD else flow
        a = module.Normal(library.tensor([0.0, 1.0]), 1.0)
        b = module.Normal(library.tensor([0.5, -1.0]), 2.0)
        yield module.Independent(a, 1), module.Independent(b, 1)
        yield module.LogNormal(0.0, 1.0), module.LogNormal(1.0, 2.0)
        yield module.HalfCauchy(1.0), module.HalfCauchy(3.0)
        yield module.InverseGamma(1.0, 2.0), module.InverseGamma(3.0, 1.0)
        transforms = [module.AffineTransform(1.0, 2.0), module.SigmoidTransform()]
        yield (
            module.TransformedDistribution(a, list(transforms)),
            module.TransformedDistribution(b, list(transforms)),
        )
        yield module.Chi2(2.0), module.Gamma(1.0, 2.0)
        yield module.OneHotCategoricalStraightThrough(a.scale), module.OneHotCategorical(b.scale)

    for ours, theirs in zip(pairs(D), pairs(TD), strict=True):
        np.testing.assert_allclose(
            _array(D.kl_divergence(*ours)), _array(TD.kl_divergence(*theirs)), rtol=1e-12
        )

    def refused(module: Any) -> Iterator[Any]:
        library = torch if module is TD else flow
        a = module.Normal(library.zeros(2), 1.0)
        yield module.Independent(a, 1), module.Independent(a, 0)
        yield module.LogNormal(0.0, 1.0), module.TransformedDistribution(a, [])
        yield module.Binomial(2, 0.5 * a.scale), module.Binomial(3, 0.5 * a.scale)
        yield module.StudentT(1.0), module.StudentT(2.0)

    for ours, theirs in zip(refused(D), refused(TD), strict=True):
        with pytest.raises(NotImplementedError):
            TD.kl_divergence(*theirs)
        with pytest.raises(NotImplementedError):
            D.kl_divergence(*ours)
    with pytest.raises(ValueError, match="event_shape"):
        eye = [D.MultivariateNormal(flow.zeros(n), flow.eye(n)) for n in (2, 3)]
        D.kl_divergence(*eye)


def test_the_nearest_formula_is_taken() -> None:
    class Own(D.Normal):  # type: ignore[misc, name-defined]
        pass

    before = dict(D.kl._KL_REGISTRY)
    one, normal = Own(0.0, 1.0), D.Normal(0.0, 2.0)
    try:
        assert (
            D.kl_divergence(one, normal).item()
            == D.kl_divergence(D.Normal(0.0, 1.0), normal).item()
        )
        D.register_kl(Own, D.Normal)(lambda p, q: flow.tensor(1.0))
        D.register_kl(D.Normal, Own)(lambda p, q: flow.tensor(2.0))
        assert (D.kl_divergence(one, normal), D.kl_divergence(normal, one)) == (1.0, 2.0)
        with pytest.warns(RuntimeWarning, match="register_kl"):
            assert D.kl_divergence(one, one) == 1.0
        D.register_kl(Own, Own)(lambda p, q: flow.tensor(3.0))
        assert D.kl_divergence(one, one) == 3.0
    finally:
        D.kl._KL_REGISTRY.clear()
        D.kl._KL_REGISTRY.update(before)
    assert math.isclose(D.kl_divergence(one, one).item(), 0.0)


@pytest.mark.parametrize(("lib", "module"), [(flow, D), (torch, TD)])
def test_classes_of_somebody_elses_are_registered(lib: Any, module: Any) -> None:
    class Foreign:  # no distribution
        pass

    class Near(Foreign):
        pass

    before = dict(module.kl._KL_REGISTRY)
    try:
        module.register_kl(Foreign, module.Distribution)(lambda p, q: lib.tensor(1.0))
        assert module.kl_divergence(Near(), module.Normal(0.0, 1.0)) == 1.0
        module.register_kl(Near, module.Normal)(lambda p, q: lib.tensor(2.0))
        assert module.kl_divergence(Near(), module.Normal(0.0, 1.0)) == 2.0
        assert module.kl_divergence(Near(), module.Cauchy(0.0, 1.0)) == 1.0
        with pytest.raises(NotImplementedError):
            module.kl_divergence(module.Normal(0.0, 1.0), Near())
        with pytest.raises(TypeError):
            module.register_kl("Near", module.Normal)
    finally:
        module.kl._KL_REGISTRY.clear()
        module.kl._KL_REGISTRY.update(before)
        getattr(module.kl, "_KL_MEMOIZE", {}).clear()
