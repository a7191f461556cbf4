"""The log_prob of draws in float32, at extreme parameters: next to PyTorch's and to float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.distributions import relaxed

torch = pytest.importorskip("torch")

SIZES = [1e-3, 0.01, 0.1, 1.0, 10.0, 1e3, 1e6]
SHARES = [1e-6, 0.01, 0.5, 0.99, 1 - 1e-6]
ROWS = [[0.2, 0.3, 0.5], [1e-6, 1e-3, 1.0]]
TEMPERATURES = [0.001, 0.05, 1.0, 100.0]
# Of two parameters each, all pairs of sizes.
PAIRS = {
    "Beta": "concentration1 concentration0",
    "FisherSnedecor": "df1 df2",
    "Gamma": "concentration rate",
    "InverseGamma": "concentration rate",
    "Kumaraswamy": "concentration1 concentration0",
    "Pareto": "scale alpha",
    "StudentT": "df scale",
    "Weibull": "scale concentration",
}
ONES = {
    "Chi2": "df",
    "Exponential": "rate",
    "HalfCauchy": "scale",
    "HalfNormal": "scale",
    "Poisson": "rate",
}


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the names of classes and parameters, numbers and lists of them."""
    for name, words in PAIRS.items():
        first, second = words.split()
        for size in SIZES:
            yield name, {first: [size] * len(SIZES), second: SIZES}
    for name, word in ONES.items():
        yield name, {word: SIZES}
    for name in ("Cauchy", "Gumbel", "Laplace", "LogNormal", "Normal"):
        yield name, {"loc": [0.0] * 6, "scale": SIZES[:6]}
    for temperature in TEMPERATURES:
        warm = {"temperature": temperature}
        for name in ("RelaxedBernoulli", "LogitRelaxedBernoulli"):
            yield name, {**warm, "probs": SHARES}
            yield name, {**warm, "logits": [-50.0, 0.0, 50.0]}
        for name in ("RelaxedOneHotCategorical", "ExpRelaxedCategorical"):
            yield name, {**warm, "probs": ROWS}
            yield name, {**warm, "logits": [0.0, 50.0, -50.0]}
    for size in SIZES:
        yield "Dirichlet", {"concentration": [[size] * 3, [size, 1.0, 1 / size]]}
        yield "LKJCholesky", {"dim": 4, "concentration": size}
        yield "VonMises", {"loc": 1.0, "concentration": size}
        yield "Wishart", {"df": 2.01 + size, "covariance_matrix": np.eye(3).tolist()}
        yield "LogisticNormal", {"loc": [0.0, 1.0], "scale": min(size, 3.0)}
    for name in ("Bernoulli", "ContinuousBernoulli", "Geometric"):
        yield name, {"probs": SHARES}
    yield "Binomial", {"total_count": 100.0, "probs": SHARES}
    yield "NegativeBinomial", {"total_count": 2.5, "probs": SHARES[:-1]}


CASES = list(cases())
OURS = {name: getattr(relaxed, name) for name in ("LogitRelaxedBernoulli", "ExpRelaxedCategorical")}
THEIRS = {
    "LogitRelaxedBernoulli": torch.distributions.relaxed_bernoulli.LogitRelaxedBernoulli,
    "ExpRelaxedCategorical": torch.distributions.relaxed_categorical.ExpRelaxedCategorical,
}


def make(lib: Any, name: str, kwargs: dict[str, Any], dtype: str) -> Any:
    cls = (OURS if lib is flow else THEIRS).get(name) or getattr(lib.distributions, name)
    rounded = {  # to float32, whatever the dtype
        key: value if key == "dim" else np.asarray(value, np.float32)
        for key, value in kwargs.items()
    }
    kwargs = {
        key: value if key == "dim" else lib.tensor(value, dtype=getattr(lib, dtype))
        for key, value in rounded.items()
    }
    return cls(**kwargs, validate_args=False)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "kwargs"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)]
)
def test_densities_of_draws(name: str, kwargs: dict[str, Any]) -> None:
    """They are finite where PyTorch's are, and no farther from those in float64."""
    flow.manual_seed(0)
    ours = make(flow, name, kwargs, "float32")
    drawn = ours.sample((300,)).numpy()
    found = ours.log_prob(flow.tensor(drawn)).numpy().astype(float)
    theirs = (
        make(torch, name, kwargs, "float32").log_prob(torch.tensor(drawn)).numpy().astype(float)
    )
    wide = drawn.astype(float)
    exact = make(torch, name, kwargs, "float64").log_prob(torch.tensor(wide)).numpy()
    assert bool((np.isfinite(found) | ~np.isfinite(theirs)).all())
    both = np.isfinite(theirs) & np.isfinite(exact)
    scale = 1 + abs(exact[both])
    error, bound = (abs(x[both] - exact[both]) / scale for x in (found, theirs))
    assert error.max(initial=0) <= 5 * bound.max(initial=0) + 3e-5


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("size", SIZES[:6])
@pytest.mark.parametrize("name", ["InverseGamma", "Kumaraswamy"])
def test_draws_on_an_edge_have_finite_densities(name: str, size: float) -> None:
    """Where PyTorch's are nan, they are those of the nearest number inside of the support."""
    flow.manual_seed(0)
    first, second = PAIRS[name].split()
    given = {first: [size] * 6, second: SIZES[:6]}
    ours = make(flow, name, given, "float32")
    drawn = ours.rsample((300,))
    a, b = (np.asarray(value, np.float32).astype(float) for value in given.values())
    x = drawn.numpy().astype(float)
    if name == "InverseGamma":
        exact = a * np.log(b) - (a + 1) * np.log(x) - b / x - flow.tensor(a).lgamma().numpy()
    else:
        log = np.log(np.clip(x, 2.0**-149, 1 - 2.0**-24))
        exact = np.log(a * b) + (a - 1) * log + (b - 1) * np.log(-np.expm1(a * log))
    np.testing.assert_allclose(ours.log_prob(drawn).numpy(), exact, rtol=2e-4, atol=2e-3)


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("probs", ROWS, ids=str)
def test_cold_shares_have_finite_densities(temperature: float, probs: list[float]) -> None:
    flow.manual_seed(0)
    given = {"temperature": temperature, "probs": probs}
    ours = make(flow, "RelaxedOneHotCategorical", given, "float32")
    drawn = ours.rsample((300,))
    inside = np.maximum(drawn.numpy().astype(float), 2.0**-149)
    exact = make(torch, "RelaxedOneHotCategorical", given, "float64")
    exact = exact.log_prob(torch.tensor(inside)).numpy()
    np.testing.assert_allclose(ours.log_prob(drawn).numpy(), exact, rtol=1e-5, atol=1e-4)


def test_a_draw_on_an_edge_has_a_finite_gradient() -> None:
    logits = flow.tensor([0.0, 1.0, -1.0], requires_grad=True)
    cold = flow.distributions.RelaxedOneHotCategorical(flow.tensor(0.01), logits=logits)
    value = flow.tensor([1.0, 0.0, 0.0])
    (first,) = flow.autograd.grad(cold.log_prob(value), logits, create_graph=True)
    (second,) = flow.autograd.grad(first.square().sum(), logits)
    assert bool(first.isfinite().all())
    assert bool(second.isfinite().all())
    a, b = (flow.tensor(x, requires_grad=True) for x in (0.1, 1000.0))
    density = flow.distributions.Kumaraswamy(a, b).log_prob(flow.tensor([0.0, 0.5, 1.0])).sum()
    assert all(bool(g.isfinite()) for g in flow.autograd.grad(density, [a, b]))
