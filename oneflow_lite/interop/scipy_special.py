"""Derivatives of ufuncs of scipy.special that no functor computes.

SciPy computes the function. A derivative is written with NumPy and `s`, which is scipy.special: on
tensors both record, so it has derivatives itself.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite.array_api.adapter import NoFunctorError, through_numpy
from oneflow_lite.array_api.elementwise import meet
from oneflow_lite.autograd.function import Function
from oneflow_lite.tensors.tensor import Tensor

_HALF_SQRT_PI = math.sqrt(math.pi) / 2

# By ufunc for each argument the derivative, from scipy.special and the arguments. None: it is
# unknown, as for orders.
DERIVATIVES: dict[str, tuple[Any, ...]] = {
    "beta": (
        lambda s, a, b: s.beta(a, b) * (s.psi(a) - s.psi(a + b)),
        lambda s, a, b: s.beta(a, b) * (s.psi(b) - s.psi(a + b)),
    ),
    "betainc": (None, None, lambda s, a, b, x: _beta_density(s, a, b, x)),
    "betaincc": (None, None, lambda s, a, b, x: -_beta_density(s, a, b, x)),
    "betaln": (
        lambda s, a, b: s.psi(a) - s.psi(a + b),
        lambda s, a, b: s.psi(b) - s.psi(a + b),
    ),
    "dawsn": (lambda s, x: 1 - 2 * x * s.dawsn(x),),
    "ellipe": (lambda s, m: (s.ellipe(m) - s.ellipk(m)) / (2 * m),),
    "ellipk": (lambda s, m: (s.ellipe(m) / (1 - m) - s.ellipk(m)) / (2 * m),),
    "erfcinv": (lambda s, y: -_HALF_SQRT_PI * np.exp(s.erfcinv(y) ** 2),),
    "erfi": (lambda s, x: np.exp(x * x) / _HALF_SQRT_PI,),
    "exp1": (lambda s, x: -np.exp(-x) / x,),
    "expi": (lambda s, x: np.exp(x) / x,),
    "expn": (None, lambda s, n, x: ((n - 1) * s.expn(n, x) - np.exp(-x)) / x),
    "gamma": (lambda s, x: s.gamma(x) * s.psi(x),),
    "gammasgn": (lambda s, x: np.zeros_like(x),),
    "iv": (None, lambda s, v, x: (s.iv(v - 1, x) + s.iv(v + 1, x)) / 2),
    "ive": (
        None,
        lambda s, v, x: (s.ive(v - 1, x) + s.ive(v + 1, x)) / 2 - np.sign(x) * s.ive(v, x),
    ),
    "jv": (None, lambda s, v, x: (s.jv(v - 1, x) - s.jv(v + 1, x)) / 2),
    "kl_div": (lambda s, x, y: np.log(x / y), lambda s, x, y: 1 - x / y),
    "kn": (None, lambda s, n, x: -(s.kv(n - 1, x) + s.kv(n + 1, x)) / 2),
    "kv": (None, lambda s, v, x: -(s.kv(v - 1, x) + s.kv(v + 1, x)) / 2),
    "kve": (
        None,
        lambda s, v, x: s.kve(v, x) - (s.kve(v - 1, x) + s.kve(v + 1, x)) / 2,
    ),
    "log_expit": (lambda s, x: s.expit(-x),),
    "loggamma": (lambda s, x: s.psi(x),),
    "rel_entr": (lambda s, x, y: np.log(x / y) + 1, lambda s, x, y: -x / y),
    "rgamma": (lambda s, x: -s.rgamma(x) * s.psi(x),),
    "yn": (None, lambda s, n, x: (s.yv(n - 1, x) - s.yv(n + 1, x)) / 2),
    "yv": (None, lambda s, v, x: (s.yv(v - 1, x) - s.yv(v + 1, x)) / 2),
}


def _beta_density(s: Any, a: Any, b: Any, x: Any) -> Any:
    return x ** (a - 1) * (1 - x) ** (b - 1) / s.beta(a, b)


@functools.cache
def _function(name: str) -> Callable[..., Tensor]:
    special = sys.modules["scipy.special"]

    def forward(ctx: Any, *args: Tensor) -> Any:
        ctx.save_for_backward(*args)
        constants = [x.detach() for x in args]
        return through_numpy(name, constants, {}, getattr(special, name))

    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        args = ctx.saved_tensors
        rules = zip(DERIVATIVES[name], ctx.needs_input_grad, strict=True)
        return tuple([dy * rule(special, *args) if needed else None for rule, needed in rules])

    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    made: Any = type(name, (Function,), methods)
    return made.apply  # type: ignore[no-any-return]


def run(name: str, *args: Any) -> Tensor:
    """Compute a ufunc of `DERIVATIVES`; raise `NoFunctorError` where one would be missing."""
    tensors = meet(name, *args)
    for x, rule in zip(tensors, DERIVATIVES[name], strict=True):
        if x.is_complex() or (x.requires_grad and rule is None):
            raise NoFunctorError(name)
    return _function(name)(*tensors)
