"""Cases for what C code reads of outer objects: each read has to become a guard, or is refused."""

from __future__ import annotations

import abc
import dataclasses

import numpy as np

from tests.static.capture.worlds import tensor


@dataclasses.dataclass
class Pair:
    a: int = 1
    b: float = 2.0


class Below:
    scale = 2.0


class Above(Below):
    def by(self):
        return super().scale


class Shape(abc.ABC):
    @abc.abstractmethod
    def sides(self):
        """Return how many there are."""


def fields_that_are_compared(compiled):
    one, other = Pair(), Pair()
    f = compiled(lambda x: x * (2 if one == other else 3))
    g = compiled(lambda x: x * (2 if one != other else 3))
    for one.a in (1, 22222, 1, 22222):
        yield f(tensor(1.0)), g(tensor(1.0))


def fields_that_are_written(compiled):
    pair = Pair()
    f = compiled(lambda x: x * len(f"{pair!r}"))
    for pair.a in (1, 22222, 1, 22222):
        yield f(tensor(1.0))


def elements_of_an_array(compiled):
    table, flags = np.array([2.0, 3.0]), np.array([True])
    f = compiled(lambda x: x * float(table[0]))
    g = compiled(lambda x: x * (2 if flags else 3))
    h = compiled(lambda x: x * float(table.sum()) * len(table))
    for factor in (2.0, 5.0, 2.0, 5.0):
        table[0], flags[0] = factor, factor > 3
        yield f(tensor(1.0)), g(tensor(1.0)), h(tensor(1.0))


def attribute_by_super(compiled):
    above = Above()
    f = compiled(lambda x: x * above.by())
    for Below.scale in (2.0, 3.0) * 2:
        yield f(tensor(1.0))


def classes_registered_later(compiled):
    class Square:
        pass

    square = Square()
    f = compiled(lambda x: x * (2 if isinstance(square, Shape) else 3))
    for i in range(4):
        if i == 2:
            Shape.register(Square)
        yield f(tensor(1.0))


def written_by_an_int(compiled):
    def scale(y, n):
        y *= n
        return y.sum()

    f = compiled(scale)
    for n in (2, 3, 2, 3):
        y = tensor(1.0, 2.0)
        yield f(y, n), y


def function_that_map_calls(compiled):
    def helper(x, factor=2.0):
        return x * factor

    f = compiled(lambda x: next(iter(list(map(helper, [x])))))
    g = compiled(lambda x: x * sorted([3.0, 1.0], key=lambda v: helper(v))[0])
    for factor in (2.0, 3.0) * 2:
        helper.__defaults__ = (factor,)
        yield f(tensor(1.0)), g(tensor(1.0))
