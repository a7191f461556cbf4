"""Substitutes for functors whose results or gradients are given only up to something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


def symmetric(function: Any) -> Any:
    """Of what reads one triangle the gradient is that by a symmetric, or Hermitian, matrix."""
    return lambda x, *args, **kwargs: function((x + x.mT.conj()) / 2, *args, **kwargs)


def if_hermitian(function: Any) -> Any:
    def call(x: Any, hermitian: bool = False, **kwargs: Any) -> Any:
        x = (x + x.mT.conj()) / 2 if hermitian else x
        return function(x, hermitian=hermitian, **kwargs)

    return call


def first(count: int) -> Any:
    """Other outputs have no gradient, or that of a copy."""
    return lambda function: lambda *args, **kwargs: tuple(function(*args, **kwargs))[:count]


def absolute(function: Any) -> Any:
    """Vectors are given up to a sign or a phase."""
    return lambda *args, **kwargs: tuple(y.abs() for y in function(*args, **kwargs))


def of_triangle(function: Any) -> Any:
    """PyTorch's gradient has numbers in the triangle that is not read."""

    def call(*args: Any) -> Any:
        upper = args[-1] is True
        *others, L = args[:-1] if upper else args
        return function(*others, L.triu() if upper else L.tril(), upper)

    return call


# What is certified instead of the function itself.
MEANT: dict[str, Any] = {
    **dict.fromkeys(("cholesky", "linalg_cholesky_ex", "linalg_eigvalsh"), symmetric),
    **dict.fromkeys(("linalg_eigh", "lobpcg"), lambda function: symmetric(absolute(function))),
    **dict.fromkeys(("linalg_svd", "svd", "linalg_eig"), absolute),
    **dict.fromkeys(("cholesky_solve", "cholesky_inverse"), of_triangle),
    "linalg_pinv": if_hermitian,
    "linalg_lstsq": first(2),
    "triangular_solve": first(1),
}


def meant(name: str, function: Any) -> Any:
    return MEANT[name](function) if name in MEANT else function
