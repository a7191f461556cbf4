"""What loops may name, for those who read or run them as Python: Numba gives its own for each."""

from math import sqrt as sqrt

from numpy import exp as exp, float64 as real, log as log, maximum as maximum, where as where

__all__ = ["add", "exp", "log", "maximum", "of_rank", "rank", "real", "sqrt", "where"]


def add(total, x):
    """Add in any order."""
    return total + x


def rank(x):
    """Return what is the greater, the greater a number is."""
    return x


of_rank = rank
