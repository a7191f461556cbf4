"""Sizes that vary: numbers in a Program as functions of the sizes of its inputs.

A Program has fixed sizes. So it is captured for several sizes of the dynamic axes, and a number
that differs between the captures is a polynomial of these sizes, which its values determine.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import attrs
import numpy as np

from oneflow_lite.static.ir.tree import same

Symbols = frozenset[str]


@attrs.frozen
class SymbolicSize:
    """A number that varies: a sum of products of sizes.

    Attributes
    ----------
    terms : tuple of (symbols, factor), or None
        The product of the symbols' sizes, times the factor; None where it is no polynomial.
    base : number
        Its value for the sizes of the example.
    """

    terms: tuple[tuple[Symbols, int], ...] | None
    base: Any

    def __add__(self, other: int) -> SymbolicSize:
        if self.terms is None:
            return SymbolicSize(None, self.base + other)
        factors = dict(self.terms)
        factors[frozenset()] = factors.get(frozenset(), 0) + other
        return SymbolicSize(tuple((s, f) for s, f in factors.items() if f), self.base + other)

    def __str__(self) -> str:
        parts = []
        for symbols, factor in self.terms or ():
            names = [*([str(factor)] if factor != 1 or not symbols else []), *sorted(symbols)]
            parts.append("*".join(names))
        return " + ".join(parts) if self.terms is not None else "?"


class Points:
    """The sizes of the symbols for which a Program is captured.

    For each subset of the symbols, a point at which these are one larger; and a last point, which
    proves the polynomials.

    >>> points = Points({"batch": 2})
    >>> list(points)
    [{'batch': 2}, {'batch': 3}, {'batch': 5}]
    >>> str(points.fitted([9, 13, 21]))
    '1 + 4*batch'
    """

    def __init__(self, base: dict[str, int]) -> None:
        self.base = base
        names = list(base)
        subsets = [
            frozenset(subset)
            for count in range(len(names) + 1)
            for subset in itertools.combinations(names, count)
        ]
        self._subsets = subsets
        self._sizes = [{n: size + (n in subset) for n, size in base.items()} for subset in subsets]
        if names:
            # Steps differ, or a polynomial that mixes up symbols would pass.
            self._sizes.append({n: size + 3 + i for i, (n, size) in enumerate(base.items())})

    def __iter__(self) -> Iterator[dict[str, int]]:
        return iter(self._sizes)

    def fitted(self, values: Sequence[Any]) -> SymbolicSize:
        """Return the polynomial that has these values at the points."""
        rows = [[_product(sizes, subset) for subset in self._subsets] for sizes in self._sizes]
        *determining, _ = rows
        solution = np.linalg.solve(np.array(determining, float), np.array(values[:-1], float))
        factors = [Fraction(float(x)).limit_denominator(1000) for x in solution]
        predicted = [sum(f * n for f, n in zip(factors, row, strict=True)) for row in rows]
        if predicted != list(values) or any(f.denominator != 1 for f in factors):
            return SymbolicSize(None, values[0])
        pairs = zip(self._subsets, factors, strict=True)
        return SymbolicSize(tuple((subset, int(f)) for subset, f in pairs if f), values[0])

    def merged(self, values: Sequence[Any]) -> Any:
        """Return a value of all points, with a SymbolicSize for each number that varies."""
        first = values[0]
        if isinstance(first, np.ndarray):
            if all(x.shape == first.shape and np.array_equal(x, first) for x in values[1:]):
                return first
            return (
                self.fitted([x.item() for x in values])
                if first.ndim == 0
                else SymbolicSize(None, first)
            )
        if type(first) in (tuple, list) and len({len(value) for value in values}) == 1:
            return type(first)(self.merged(parts) for parts in zip(*values, strict=True))
        if isinstance(first, slice):
            ends = [
                [getattr(value, name) for value in values] for name in ("start", "stop", "step")
            ]
            return slice(*map(self.merged, ends))
        if all(same(value, first) or value == first for value in values[1:]):
            return first
        numbers = all(isinstance(value, (int, float)) for value in values)
        return self.fitted(values) if numbers else SymbolicSize(None, first)


def varies(value: Any) -> bool:
    """Return whether a SymbolicSize is anywhere in a value."""
    if isinstance(value, slice):
        return varies((value.start, value.stop, value.step))
    return isinstance(value, SymbolicSize) or (
        isinstance(value, (tuple, list)) and any(map(varies, value))
    )


def _product(sizes: dict[str, int], subset: Symbols) -> int:
    result = 1
    for name in subset:
        result *= sizes[name]
    return result
