"""Containers and objects that a call makes, returns and leaves outside."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field, fields
from types import SimpleNamespace

import attrs

import oneflow_lite as flow
from tests.compiler.capture.worlds import Box, leaf, tensor


class ModelOutput(OrderedDict):
    """Its fields are keys, attributes and positions."""

    def __post_init__(self):
        for f in fields(self):
            if getattr(self, f.name) is not None:
                super().__setitem__(f.name, getattr(self, f.name))

    def __getitem__(self, key):
        return dict(self.items())[key] if isinstance(key, str) else tuple(self.values())[key]


@dataclass
class Output(ModelOutput):
    loss: flow.Tensor | None = None
    states: tuple | None = None
    logits: flow.Tensor | None = None


@dataclass
class Plain:
    loss: flow.Tensor
    parts: list = field(default_factory=list)


@dataclass(slots=True)
class Slotted:
    loss: flow.Tensor
    name: str = "a"


@attrs.define
class Defined:
    loss: flow.Tensor
    extra: dict = attrs.field(factory=dict)


class Both(Slotted):
    """Has slots and a dictionary."""


class Batch(dict):
    def __getattr__(self, name):
        return self[name]


class Parts(list):
    pass


Pair = namedtuple("Pair", "first second")


def a_dict_with_fields(compiled):
    w = leaf(1.0, 2.0)

    @compiled
    def f(x):
        h = x * w
        return Output(loss=h.sum(), states=(x, h))

    for i in range(4):
        out = f(tensor(1.0, float(i)))
        out.loss.backward()
        same = out["loss"] is out.loss, out[0] is out.loss, out["states"] is out.states
        yield list(out), out.loss, out.states, out.logits, same, type(out).__name__, w


def classes_of_all_kinds(compiled):
    @compiled
    def f(x):
        y = x * 2
        parts = Parts()
        parts.append(y)
        parts.name = "p"
        both = Both(y, "b")
        both.more = 3
        batch = Batch(x=y)
        ordered = OrderedDict(b=y, a=x + 1)
        plain, defined = Plain(y, [x + 2]), Defined(y, {"k": (x,)})
        return plain, Slotted(y), defined, both, batch, parts, ordered, SimpleNamespace(y=y)

    for i in range(4):
        plain, slotted, defined, both, batch, parts, ordered, space = f(tensor(1.0, float(i)))
        yield plain.loss, plain.parts, slotted.loss, slotted.name, defined.loss, defined.extra
        yield both.loss, both.name, both.more, batch.x, list(batch), parts[0], parts.name
        yield list(ordered), list(ordered.values()), space.y is parts[0]
        yield [type(v).__name__ for v in (plain, slotted, defined, both, batch, parts, ordered)]


def one_list_at_several_places(compiled):
    box = Box()

    @compiled
    def f(x):
        made = [x * 2]
        plain = Plain(made[0], made)
        box.kept = {"made": made, "plain": plain}
        return made, plain, (made, made)

    for i in range(4):
        made, plain, pair = f(tensor(1.0, float(i)))
        made.append(i)
        same = plain.parts is made, pair[0] is made, pair[1] is made, box.kept["made"] is made
        yield made, same, box.kept["plain"] is plain


def an_object_that_holds_itself(compiled):
    @compiled
    def f(x):
        plain = Plain(x * 2)
        plain.parts.append(plain)
        return plain

    for i in range(4):
        plain = f(tensor(1.0, float(i)))
        yield plain.loss, plain.parts[0] is plain


def a_dictionary_with_a_default(compiled):
    @compiled
    def f(x):
        found = defaultdict(list)
        found["a"].append(x * 2)
        return found

    for i in range(4):
        found = f(tensor(1.0, float(i)))
        yield dict(found), found["b"]


def a_list_that_was_there(compiled):
    box = Box(parts=[1, 2])

    @compiled
    def f(x):
        return Plain(x * 2, box.parts)

    for i in range(4):
        plain = f(tensor(1.0, float(i)))
        yield plain.loss, plain.parts is box.parts


def a_tuple_of_numbers_that_was_there(compiled):
    sizes = (1, 2)
    box = Box(sizes=sizes)

    @compiled
    def f(x):
        return x * 2, box.sizes

    for i in range(4):
        y, found = f(tensor(1.0, float(i)))
        yield y, found is sizes


def pairs_and_numbers(compiled):
    @compiled
    def f(x):
        y = x * 2
        return Pair(y, Pair([y.sum().item()], [x.max().item()])), y.tolist()

    for i in range(4):
        yield f(tensor(1.0, float(i)))


class Meter:
    total = 0

    def __init__(self):
        self.calls, self.h = 0, tensor(0.0, 0.0)

    def update(self, x):
        self.calls += 1
        self.h = self.h + x
        self.last = {"h": self.h, "parts": [x]}
        return self.h * 2


def objects_of_one_class_are_written(compiled):
    meters = Meter(), Meter()
    f = compiled(Meter.update)
    for i in range(4):
        for meter in meters:
            y = f(meter, tensor(1.0, float(i)))
            yield y, meter.calls, meter.h, meter.last["h"] is meter.h, meter.last


def objects_that_become_one(compiled):
    a, b = Meter(), Meter()

    @compiled
    def f(a, b, x):
        a.h = x.exp()
        return b.h * 2

    for i, (first, second) in enumerate([(a, b), (a, b), (a, a), (b, a), (b, b), (a, b)]):
        yield f(first, second, tensor(1.0, float(i))), a.h, b.h


def an_argument_that_is_outside_too(compiled):
    a, b = Meter(), Meter()

    @compiled
    def f(meter, x):
        meter.h = x.exp()
        return a.h * 2

    for i, meter in enumerate([b, b, a, b, a]):
        yield f(meter, tensor(1.0, float(i))), a.h, b.h
