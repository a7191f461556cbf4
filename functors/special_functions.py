"""Special functions that users call: gamma, error and normal, Bessel functions, and zeta."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Any

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.functors.declaring import domains as D
from oneflow_lite.functors.declaring.checks import check_number
from oneflow_lite.functors.declaring.declare import binary, functor, unary
from oneflow_lite.functors.declaring.domains import RealToFloating
from oneflow_lite.functors.operands import RealToFloatingOperands
from oneflow_lite.tensors.tensor import Tensor

_real = functools.partial(unary, domain=RealToFloating)
_special = functools.partial(_real, on="special")
_positive = functools.partial(_special, samples="pos(2, 3)")
_everywhere = functools.partial(_real, on="flow Tensor special", twin=True)
_UNIT = "[0.0, 1.0] -> tensor"
_ORDERS = "1, x(2, 3); 0, pos(3); 2, x(3); 4, pos(2)"
_OF_ORDERS = "x(2, 3), 1; pos(2), 2"
_DIMENSIONS = "pos(2, 3) + 1, 3; pos(3), 1"
_SHARES = "share(2, 3); np.array([0.05, 0.3, 0.97]), 0.1"
_FIXED = "fixed(pos(2, 3)), pos(2, 3); fixed(pos(3)), pos(2, 3) * 4"

lgamma = _everywhere(
    "lgamma",
    "Return log |Γ(x)|; inf at the poles 0, -1, -2, ...",
    "[0.5, 3.0] -> tensor([0.5724, 0.6931])",
    on="flow Tensor special.gammaln",
)
_DIGAMMA = "Return Γ'(x) / Γ(x); nan at the poles -1, -2, ..., infinite at 0."
_everywhere("digamma", _DIGAMMA, on="flow Tensor special special.psi")


@functor("flow special", op="polygamma_n", out=True, samples=_ORDERS)
def polygamma(n: D.Count, input: RealToFloating) -> Tensor:
    """Return the nth derivative of `digamma`.

    >>> flow.polygamma(1, flow.tensor([1.0, 0.5]))
    tensor([1.6449, 4.9348])
    """


@functor("Tensor.polygamma", twin="Tensor.polygamma_", op="polygamma_n", samples=_OF_ORDERS)
def tensor_polygamma(input: RealToFloating, n: D.Count) -> Tensor:
    """Return the nth derivative of `digamma`: the method, which takes its tensor first."""


@functor("flow Tensor special.multigammaln", out=True, twin=True, samples=_DIMENSIONS)
def mvlgamma(input: RealToFloating, p: D.Positive) -> Tensor:
    """Return the logarithm of the multivariate gamma function of dimension p.

    It is p (p - 1) / 4 log π plus the sum of lgamma(x - j / 2), j = 0 ... p - 1; x > (p - 1) / 2.

    >>> flow.mvlgamma(flow.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502])
    """
    steps = F.arange(0, -p / 2, -0.5, dtype=input.dtype, device=input.device)
    terms = lgamma(input.unsqueeze(-1) + steps)
    return terms.sum(-1) + p * (p - 1) / 4 * math.log(math.pi)


_incomplete = functools.partial(binary, domain=D.RealFloatingPair, twin=True, samples=_FIXED)
igamma = _incomplete(
    "igamma",
    "Return the regularized lower incomplete gamma function P(a, x), a = `input`, x = `other`.\n\n"
    "It has no derivative by a.",
    "[1.0, 2.0] & [1.0, 1.0] -> tensor([0.6321, 0.2642])",
    on="flow Tensor special.gammainc",
)
_incomplete(
    "igammac",
    "Return the regularized upper incomplete gamma function 1 - P(a, x); see `igamma`.",
    on="flow Tensor special.gammaincc",
)
_special_pair = functools.partial(
    binary, domain=RealToFloatingOperands, on="special", spelled="self=input"
)
zeta = _special_pair(
    "zeta",
    "Return the Hurwitz zeta function, the sum of (k + q)**-x, k = 0, 1, ...; x = `input`, "
    "q = `other`.\n\nIt has no derivative by x.",
    "[2.0, 4.0] & [1.0, 1.0] -> tensor([1.6449, 1.0823])",
    samples="fixed(pos(2, 3) + 1), pos(2, 3); 2.5, pos(3)",
)
_special_pair(
    "xlog1py",
    "Return x log(1 + y), which is 0 where x is 0 (unless y is nan).",
    samples="x(2, 3), pos(2, 3); x(2, 3), 2.5; 1.5, pos(3)",
)

_everywhere("erfinv", "Return the inverse of `erf`; ±inf at ±1, nan beyond.", samples="unit(2, 3)")
erfcx = _special("erfcx", "Return exp(x²) erfc(x), without overflow.", f"{_UNIT}([1.0000, 0.4276])")
_NDTR = "Return the distribution function of the normal distribution, precise in both tails."
ndtr = _special("ndtr", _NDTR, f"{_UNIT}([0.5000, 0.8413])")
_special("log_ndtr", "Return log `ndtr`(x), without underflow.", samples="x(2, 3); x(3) - 30")
_special("ndtri", "Return the inverse of `ndtr`; nan beyond 0 and 1.", samples="share(2, 3)")
_positive("entr", "Return -x log(x), 0 at 0, and -inf below.")


def _eps(op: str, argument: str, value: Any) -> float | None:
    """Return a number, or None for a negative one."""
    number = check_number(op, argument, value)
    return None if number < 0 else number


Eps = Annotated[float, D.attribute(_eps, raises={"ArgumentTypeError": "When {x} is no number."})]


@functor("flow Tensor special", out=True, twin="flow Tensor", samples=_SHARES)
def logit(input: RealToFloating, eps: Eps | None = None) -> Tensor:
    """Return log(x / (1 - x)), the inverse of `sigmoid`; nan outside of [0, 1].

    eps: bring x into [eps, 1 - eps] first; beyond, the derivative is 0.
    """


_MODIFIED = "Return the modified Bessel function of the first kind, of order"
i0 = _everywhere(
    "i0",
    f"{_MODIFIED} 0.",
    f"{_UNIT}([1.0000, 1.2661])",
    on="flow Tensor special special.modified_bessel_i0",
    twin="flow Tensor",
)
_special("i1", f"{_MODIFIED} 1.", on="special special.modified_bessel_i1")
_special("i0e", "Return exp(-|x|) `i0`(x), without overflow.")
_special("i1e", "Return exp(-|x|) `i1`(x), without overflow.")
for _n in (0, 1):
    _second, _k = f"Bessel function of the second kind, of order {_n}", f"modified_bessel_k{_n}"
    _special(f"bessel_j{_n}", f"Return the Bessel function of the first kind, of order {_n}.")
    _positive(f"bessel_y{_n}", f"Return the {_second}; -inf at 0, nan below.")
    _positive(_k, f"Return the modified {_second}; inf at 0.")
    _positive(f"scaled_{_k}", f"Return exp(x) `{_k}`(x), without underflow.", spelled="x=input")
_special("spherical_bessel_j0", "Return sin(x) / x, and 1 at 0; see `sinc`.", spelled="x=input")
