"""Probability distributions: densities, draws, and gradients through both; `torch.distributions`.

Each module is a family. PyTorch has a module for each class; their names lead to the families.
It imports `nn`, functors, the engine and the rooms below. No room of the package uses it.
"""

import sys as _sys

from oneflow_lite.distributions import (
    categories as _categories,
    composed as _composed,
    constraint_registry as constraint_registry,
    constraints as constraints,
    counts as _counts,
    distribution as _distribution,
    gammas as _gammas,
    kl as kl,
    location_scale as _location_scale,
    multivariate as _multivariate,
    relaxed as _relaxed,
    transformed as _transformed,
    transforms as transforms,
    utils as utils,
)
from oneflow_lite.distributions.categories import *  # noqa: F403
from oneflow_lite.distributions.composed import *  # noqa: F403
from oneflow_lite.distributions.constraint_registry import (
    biject_to as biject_to,
    transform_to as transform_to,
)
from oneflow_lite.distributions.counts import *  # noqa: F403
from oneflow_lite.distributions.distribution import *  # noqa: F403
from oneflow_lite.distributions.gammas import *  # noqa: F403
from oneflow_lite.distributions.kl import kl_divergence as kl_divergence, register_kl as register_kl
from oneflow_lite.distributions.location_scale import *  # noqa: F403
from oneflow_lite.distributions.multivariate import *  # noqa: F403
from oneflow_lite.distributions.relaxed import *  # noqa: F403
from oneflow_lite.distributions.transformed import *  # noqa: F403
from oneflow_lite.distributions.transforms import *  # noqa: F403
from oneflow_lite.ops.exposure import expose as _expose

_expose(globals())

_MODULES = {
    _categories: "categorical multinomial one_hot_categorical",
    _composed: "independent mixture_same_family transformed_distribution",
    _counts: "bernoulli binomial geometric negative_binomial poisson",
    _distribution: "exp_family",
    _gammas: "beta chi2 dirichlet fishersnedecor gamma studentT",
    _location_scale: "cauchy exponential generalized_pareto laplace normal uniform von_mises",
    _multivariate: "lkj_cholesky lowrank_multivariate_normal multivariate_normal wishart",
    _relaxed: "continuous_bernoulli relaxed_bernoulli relaxed_categorical",
    _transformed: "gumbel half_cauchy half_normal inverse_gamma kumaraswamy log_normal "
    "logistic_normal pareto weibull",
}
for _module, _names in _MODULES.items():
    for _name in _names.split():
        globals()[_name] = _sys.modules[f"{__name__}.{_name}"] = _module
