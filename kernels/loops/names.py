"""What loops may name, for those who read or run them as Python: Numba gives its own for each."""

from math import sqrt as sqrt

from numpy import (
    exp as exp,
    float64 as real,
    log as log,
    maximum as highest,
    maximum as maximum,
    where as where,
)

__all__ = ["add", "exp", "highest", "log", "maximum", "real", "sqrt", "where"]


def add(total, x):
    """Add in any order."""
    return total + x
