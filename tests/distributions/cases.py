"""Arguments for every distribution: what the tests walk, on both libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

RNG = np.random.default_rng(7)
POSITIVE = np.array([0.3, 1.0, 2.7])
WIDE = np.array([[0.6], [4.2]])  # broadcasts with the above
REAL = np.array([-1.2, 0.0, 0.8])
SHARE = np.array([0.15, 0.5, 0.92])
LOGITS = np.array([-1.3, 0.2, 2.4])
PROBS = np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])
TEMPERATURE = np.array(0.7)


def matrix(*shape: int) -> Any:
    """Return positive definite matrices."""
    a = np.random.default_rng(3).normal(size=shape)
    return a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])


TRIL = np.linalg.cholesky(matrix(2, 3, 3))
LOC3 = np.array([0.5, -1.0, 2.0])

# Of each class: the arguments of some objects. Arrays become tensors of float64, which require
# gradients; numbers stay numbers.
CASES: dict[str, list[dict[str, Any]]] = {
    "Bernoulli": [{"probs": SHARE}, {"logits": LOGITS}, {"probs": 0.3}],
    "Beta": [
        {"concentration1": POSITIVE, "concentration0": WIDE},
        {"concentration1": 2.0, "concentration0": 3.0},
    ],
    "Binomial": [{"total_count": 5, "probs": SHARE}, {"total_count": 4, "logits": LOGITS}],
    "Categorical": [{"probs": PROBS}, {"logits": LOGITS}],
    "Cauchy": [{"loc": REAL, "scale": WIDE}, {"loc": 0.0, "scale": 2.0}],
    "Chi2": [{"df": POSITIVE}, {"df": 3.0}],
    "ContinuousBernoulli": [
        {"probs": np.array([0.1, 0.4995, 0.93])},
        {"logits": LOGITS},
        {"probs": SHARE, "lims": (0.3, 0.7)},
    ],
    "Dirichlet": [
        {"concentration": np.array([[0.5, 1.5, 3.0], [2.0, 2.5, 1.0]])},
        {"concentration": np.array([0.3, 0.6])},
    ],
    "Exponential": [{"rate": POSITIVE}, {"rate": 2.0}],
    "FisherSnedecor": [{"df1": np.array([1.5, 3.0, 7.0]), "df2": np.array([[1.0], [5.5]])}],
    "Gamma": [{"concentration": POSITIVE, "rate": WIDE}, {"concentration": 2.0, "rate": 3.0}],
    "GeneralizedPareto": [
        {"loc": REAL, "scale": WIDE, "concentration": np.array([-0.4, 0.05, 0.3])},
        {"loc": 0.0, "scale": 2.0, "concentration": 1.5},
    ],
    "Geometric": [{"probs": SHARE}, {"logits": LOGITS}, {"probs": 0.4}],
    "Gumbel": [{"loc": REAL, "scale": WIDE}, {"loc": 0.0, "scale": 2.0}],
    "HalfCauchy": [{"scale": POSITIVE}, {"scale": 2.0}],
    "HalfNormal": [{"scale": POSITIVE}, {"scale": 2.0}],
    "InverseGamma": [{"concentration": POSITIVE, "rate": WIDE}],
    "Kumaraswamy": [{"concentration1": POSITIVE, "concentration0": WIDE}],
    "LKJCholesky": [{"dim": 3, "concentration": POSITIVE}, {"dim": 2, "concentration": 1.5}],
    "Laplace": [{"loc": REAL, "scale": WIDE}, {"loc": 0.0, "scale": 2.0}],
    "LogNormal": [{"loc": REAL, "scale": np.array([[0.6], [1.1]])}, {"loc": 0.0, "scale": 0.5}],
    "LogisticNormal": [{"loc": REAL, "scale": POSITIVE}, {"loc": np.zeros((2, 2)), "scale": 1.0}],
    "LowRankMultivariateNormal": [
        {
            "loc": np.array([[0.1, 0.2, -0.3]] * 2),
            "cov_factor": RNG.normal(size=(3, 2)),
            "cov_diag": POSITIVE,
        }
    ],
    "Multinomial": [
        {"total_count": 4, "probs": PROBS},
        {"total_count": 3, "logits": LOGITS},
    ],
    "MultivariateNormal": [
        {"loc": LOC3, "covariance_matrix": matrix(3, 3)},
        {"loc": LOC3, "precision_matrix": matrix(2, 3, 3)},
        {"loc": np.stack([LOC3, LOC3 + 1]), "scale_tril": TRIL[0]},
    ],
    "NegativeBinomial": [
        {"total_count": np.array([1.0, 3.0, 2.5]), "probs": SHARE},
        {"total_count": 3.0, "logits": LOGITS},
    ],
    "Normal": [{"loc": REAL, "scale": WIDE}, {"loc": 0.0, "scale": 2.0}],
    "OneHotCategorical": [{"probs": PROBS}, {"logits": LOGITS}],
    "OneHotCategoricalStraightThrough": [{"probs": PROBS}, {"logits": LOGITS}],
    "Pareto": [{"scale": POSITIVE, "alpha": np.array([[0.6], [3.2]])}],
    "Poisson": [{"rate": POSITIVE * 3}, {"rate": 2.0}],
    "RelaxedBernoulli": [
        {"temperature": TEMPERATURE, "probs": SHARE},
        {"temperature": TEMPERATURE, "logits": LOGITS},
    ],
    "RelaxedOneHotCategorical": [
        {"temperature": TEMPERATURE, "probs": PROBS},
        {"temperature": TEMPERATURE, "logits": LOGITS},
    ],
    "StudentT": [
        {"df": np.array([0.8, 1.5, 5.0]), "loc": REAL, "scale": WIDE},
        {"df": 3.0},
    ],
    "Uniform": [{"low": REAL, "high": np.array([[1.5], [2.0]])}, {"low": -1.0, "high": 2.0}],
    "VonMises": [{"loc": REAL, "concentration": WIDE}],
    "Weibull": [{"scale": POSITIVE, "concentration": np.array([[1.3], [3.0]])}],
    "Wishart": [
        {"df": np.array([4.5, 6.0]), "covariance_matrix": matrix(3, 3)},
        {"df": 3.5, "scale_tril": TRIL[0]},
        {"df": np.array([5.0, 7.0]), "precision_matrix": matrix(2, 3, 3)},
    ],
}
