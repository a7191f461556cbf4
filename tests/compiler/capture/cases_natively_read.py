"""Cases for what C code reads of outer objects: each read has to become a guard, or is refused."""

from __future__ import annotations

import abc
import dataclasses
import functools
import operator
import types
import weakref

import numpy as np

import oneflow_lite as flow
from tests.compiler.capture.worlds import attempt, tensor


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


class Slotted:
    __slots__ = ("extra", "rate")


def slot_that_is_filled_later(compiled):
    slotted = Slotted()
    f = compiled(lambda x: x * (2 if hasattr(slotted, "extra") else 3))
    g = compiled(lambda x: x * getattr(slotted, "rate", 1.0))
    for i in range(6):
        if i == 2:
            slotted.extra, slotted.rate = 1, 5.0
        if i == 4:
            del slotted.extra, slotted.rate
        yield f(tensor(1.0)), g(tensor(1.0))


class Falling:
    def __init__(self):
        self.rate = 2.0

    @property
    def half(self):
        return self.quarter * 2

    def __getattr__(self, name):
        if name == "quarter":
            raise AttributeError(name)
        return self.rate


def property_that_falls_back(compiled):
    falling = Falling()
    f = compiled(lambda x: x * falling.half)
    for falling.rate in (2.0, 3.0) * 2:
        yield f(tensor(1.0))


def attribute_that_shadows_the_fallback(compiled):
    class Options(Falling):
        pass

    options = Options()
    f = compiled(lambda x: x * options.width)
    for i in range(4):
        if i == 2:
            Options.width = 7.0
        yield f(tensor(1.0))


def item_set_by_a_function(compiled):
    table, numbers, factor = {"a": 1.0}, [1.0], [2.0]

    def step(x):
        operator.setitem(table, "a", factor[0])
        operator.iadd(numbers, [factor[0]])
        return x * table["a"]

    f = compiled(step)
    for factor[0] in (2.0, 3.0) * 2:
        yield f(tensor(1.0)), dict(table), list(numbers)


def _kinds(value):
    if isinstance(value, (tuple, list, set)):
        return [_kinds(each) for each in value]
    return _kinds(value()) if callable(value) else (type(value).__name__, repr(value))


def ints_that_c_code_hands_on(compiled):
    kept = []

    def step(x, n, *more):
        def twice():
            yield n
            yield n * 2

        def count(by=n):
            nonlocal n
            n += by
            return n

        kept[:] = [lambda: n, lambda k=n: k, lambda *, k=n: k, *list(twice()), *(n for _ in "a")]
        kept.extend(map(lambda _: n, [1]))  # noqa: C417
        return x * 2, count(), more, type(n), type(more[0])

    f = compiled(step)
    for n in (2, 2, 3):
        found = f(tensor(1.0), n, n, n)
        yield found[0], _kinds(found[1:4]), found[4].__name__, _kinds(kept)


def class_made_inside(compiled):
    world = types.SimpleNamespace(rate=2.0)

    def step(x, n):
        class Scaled(Below):
            size = 3.0
            twice = size * 2
            __hidden = 1.5

            def by(self):
                return super().scale * world.rate * self.__hidden * n

            @classmethod
            def made(cls):
                return cls()

        scaled = Scaled.made()
        return x * scaled.by() * scaled.twice, Scaled.__qualname__.rpartition(".")[2]

    f = compiled(step)
    for world.rate, Below.scale in ((2.0, 2.0), (2.0, 2.0), (3.0, 2.0), (3.0, 4.0), (2.0, 2.0)):
        yield f(tensor(1.0), 2)


ours, theirs, alias = locals, vars, super


class Aliased(Below):
    def own(self, x):
        rate = __class__.scale
        return x * rate, sorted(ours()), sorted(theirs()), alias().scale


def frames_by_other_names(compiled):
    aliased = Aliased()
    f = compiled(aliased.own)
    for Below.scale in (2.0, 3.0) * 2:
        yield f(tensor(1.0))


class Options:
    rate = 2.0


def attribute_by_a_proxy(compiled):
    options = Options()
    proxy = weakref.proxy(options)
    f = compiled(lambda x: x * proxy.rate)
    for options.rate in (2.0, 3.0) * 2:
        yield f(tensor(1.0))


def function_that_numpy_calls(compiled):
    factor = [2.0]

    def scaled(row):
        return row * factor[0]

    def step(x):
        rows = np.apply_along_axis(scaled, 0, np.ones(1))
        return x * float(rows[0]) * float(np.vectorize(scaled)(1.0))

    f = compiled(step)
    for factor[0] in (2.0, 3.0) * 2:
        yield f(tensor(1.0))


class Holding:
    scale = 2.0


@dataclasses.dataclass
class Fielded:
    x: object
    holding: object = Holding
    kept: float = dataclasses.field(default=3.0, init=False)
    made: list = dataclasses.field(default_factory=lambda: [Holding.scale])
    given: dataclasses.InitVar = 5

    def __post_init__(self, given):
        self.total = given * self.holding.scale


def dataclass_with_defaults(compiled):
    def step(x):
        fielded = Fielded(x)
        return x * fielded.total * fielded.made[0] * fielded.kept, sorted(vars(fielded))

    f = compiled(step)
    for Holding.scale in (2.0, 3.0) * 2:
        yield f(tensor(1.0))


def caches_that_are_empty(compiled):
    called, scale = [], 6.0

    @functools.lru_cache(maxsize=0)
    def never(n):
        called.append(n)
        return n * 2.0

    @functools.lru_cache
    def cached(n):
        called.append(n)
        return n / scale

    def f(x):
        try:
            return x * cached(3)
        except ZeroDivisionError:
            return x * 5

    f, g = compiled(f), compiled(lambda x: x * never(3))
    for i in range(8):
        if i in (3, 6):
            scale = 0 if i == 3 else 2.0
            cached.cache_clear()
        yield f(tensor(1.0)), scale
    for i in range(4):
        yield g(tensor(float(i))), called[-4 - i :]


def numbers_of_tensors_that_are_no_floats(compiled):
    f = compiled(lambda x: (float(x), x * 2))
    for x in (flow.tensor(3), flow.tensor(True), flow.tensor(3 + 0j), flow.tensor(3 + 1j)):
        for i in range(3):
            yield attempt(f, x + (x * i).to(x.dtype))
    yield attempt(f, tensor(1.0, 2.0))
