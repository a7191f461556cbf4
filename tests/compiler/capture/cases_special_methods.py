"""Cases for special methods of users' classes that C code, or a short cut, might ask unseen."""

from __future__ import annotations

import collections
import enum

import numpy as np

import oneflow_lite as flow
from tests.compiler.capture.worlds import Box, attempt, tensor

box = Box(n=2)


class Kind(enum.Enum):
    ONE = 1
    TWO = 2

    def __str__(self):
        return "q" * box.n

    def __bool__(self):
        return box.n > 2

    def __add__(self, other):
        return box.n + other

    def __lt__(self, other):
        return box.n > 2


class Size(flow.nn.Parameter):
    def __len__(self):
        return box.n

    def __float__(self):
        return float(box.n)

    def __iter__(self):
        return iter([box.n, 1])

    def __getitem__(self, key):
        return box.n + key


class Failure(ValueError):
    def __float__(self):
        return float(box.n)


class Index:
    def __index__(self):
        return box.n

    def __rmod__(self, other):
        return box.n

    def __str__(self):
        return "an index"


class Number(int):
    def __radd__(self, other):
        return box.n

    def __gt__(self, other):
        return box.n > 2


class Items:
    def __class_getitem__(cls, key):
        return box.n + key


class Lazy:
    def __getattr__(self, name):
        if name == "n":
            return box.n
        return super().__getattribute__(name)


class Odd(set):
    def __iter__(self):
        return iter([7])


def _with_other_numbers(f, *given):
    for box.n in (2, 2, 2, 3, 3, 2):
        yield f(tensor(1.0), *given)


def members_of_an_enumeration_with_ways_of_their_own(compiled):
    texts = compiled(lambda x, kind: (x * len(str(kind)), f"{kind}"))
    rest = compiled(lambda x: x * (2 if Kind.ONE else 3) + (Kind.ONE + 1) + (Kind.ONE < Kind.TWO))
    for kind in Kind:
        yield from _with_other_numbers(texts, kind)
    yield from _with_other_numbers(rest)


def members_with_ways_of_their_own_as_keys_and_results(compiled):
    table = {Kind.ONE: 2.0, Kind.TWO: 3.0}
    f = compiled(lambda x, kind: (x * table[kind], kind, {kind: kind.value}))
    for i, kind in enumerate([Kind.ONE, Kind.ONE, Kind.TWO, Kind.TWO, Kind.ONE]):
        table[Kind.ONE] = float(i // 2)
        yield f(tensor(1.0), kind)


def special_methods_of_a_tensor(compiled):
    w = Size(tensor(3.0))
    for function in (
        lambda x: x * len(w),
        lambda x: x * float(w),
        lambda x: x * sum(w),
        lambda x: x * w[1],
        lambda x: x * [*w, 1][0],
        lambda x: x * (2 if box.n in w else 3),
    ):
        yield from _with_other_numbers(compiled(function))


def special_methods_of_an_exception(compiled):
    yield from _with_other_numbers(compiled(lambda x: x * float(Failure())))


def how_often_a_list_is_repeated(compiled):
    index, numbers = Index(), [1, 2]
    yield from _with_other_numbers(compiled(lambda x: (x * 2, [0] * index)))
    f = compiled(lambda x: (x * 2, numbers * 2))
    for i in range(5):
        numbers.append(i // 3)
        numbers[:] = numbers[-2:]
        yield f(tensor(1.0))


def reflected_methods_that_python_does_not_ask(compiled):
    index, number = Index(), Number(5)
    f = compiled(lambda x: (x * (1.0 + number), "%s" % index, 1 + number, box.n))  # noqa: UP031
    yield from _with_other_numbers(f)


def items_of_a_class(compiled):
    yield from _with_other_numbers(compiled(lambda x: x * Items[1]))


def getattr_that_ends_in_getattribute(compiled):
    lazy = Lazy()
    yield from _with_other_numbers(
        compiled(lambda x: x * lazy.n + getattr(lazy, "other", 5.0) + hasattr(lazy, "third"))
    )
    message = compiled(lambda x: (x, lazy.other))
    try:
        yield message(tensor(1.0))
    except AttributeError as error:
        yield str(error)
    yield attempt(message, tensor(1.0))


def sets_that_go_another_way(compiled):
    odd = Odd({1, 2})
    f = compiled(lambda x: (x * sum(odd), sorted(set(odd)), 1 in odd, 7 in odd, sorted(odd)))
    for i in range(5):
        yield f(tensor(1.0))
        odd.add(i % 4 + 1)


class Meta(enum.EnumMeta):
    def __getitem__(cls, name):
        return super().__getitem__(name.upper()) if box.n == 2 else cls.TWO

    def __iter__(cls):
        return iter([*super().__iter__()][: box.n - 1])

    def __call__(cls, value):
        return cls.ONE if box.n == 2 else cls.TWO


class Looked(enum.Enum, metaclass=Meta):
    ONE = 1
    TWO = 2


class Named(collections.namedtuple("Fields", "a b")):
    __slots__ = ()

    def __float__(self):
        return float(box.n)


class Scalar(np.float64):
    def __len__(self):
        return box.n

    def __add__(self, other):
        return box.n


class Twice(flow.nn.Module):
    def __setattr__(self, name, value):
        super().__setattr__(name, value * 2 if isinstance(value, int) else value)


class Noting(type):
    def __setattr__(cls, name, value):
        super().__setattr__(name, value + box.n)


class Noted(metaclass=Noting):
    pass


def classes_of_members_with_ways_of_their_own(compiled):
    yield from _with_other_numbers(compiled(lambda x: (x * Looked["one"].value, len([*Looked]))))
    yield from _with_other_numbers(compiled(lambda x: x * Looked(7).value))


def special_methods_of_named_tuples_and_numbers(compiled):
    named, scalar = Named(1, 2), Scalar(3.0)
    yield from _with_other_numbers(compiled(lambda x: x * float(named)))
    yield from _with_other_numbers(compiled(lambda x: x * (scalar + 1)))
    yield from _with_other_numbers(compiled(lambda x: x * len(Scalar(2.0))))


def attributes_that_are_set_in_another_way(compiled):
    module = Twice()

    def f(x):
        module.scale = 3
        Noted.scale = box.n
        return x * module.scale + Noted.scale

    yield from _with_other_numbers(compiled(f))


def elements_of_arrays(compiled):
    f = compiled(lambda x, n: (x * n, n in np.arange(6).reshape(2, 3)))
    for n in (2, 2, 2, 7, 7, 2):
        yield f(tensor(1.0), n)
