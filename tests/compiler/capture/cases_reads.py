"""Cases for reads that no name in the code gives away, and for what is more than its value."""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import functools
import math
import os
import types

import attrs
import numpy as np

import oneflow_lite as flow
from tests.compiler.capture import worlds
from tests.compiler.capture.worlds import Box, attempt, leaf, tensor

nn = flow.nn
__calls = 0


@dataclasses.dataclass
class Options:
    scale: float = 2.0
    shift: float = 0.0


@attrs.define
class Setting:
    scale: float = 2.0


class Preset(enum.Enum):
    SMALL = {"scale": 2.0}
    LARGE = {"scale": 9.0}


class Scaling(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2.0

    def forward(self, x):
        return x * self.scale


# --- Read by others than the code that is written down ------------------------------------------


def fields_as_a_dict(compiled):
    options = Options()
    f = compiled(lambda x: x * dataclasses.asdict(options)["scale"])
    g = compiled(lambda x: x * sum(dataclasses.astuple(options)))
    for options.scale in (2.0, 3.0) * 2:
        yield f(tensor(1.0)), g(tensor(1.0))


def methods_that_attrs_writes(compiled):
    setting, other = Setting(), Setting()
    f = compiled(lambda x: x * (2 if setting == other else 3) + len(repr(setting)))
    for setting.scale in (2.0, 3.125) * 2:
        yield f(tensor(1.0))


def namespace_as_a_whole(compiled):
    one, other = types.SimpleNamespace(flavour="a"), types.SimpleNamespace(flavour="a")
    f = compiled(lambda x: x * (2 if one == other else 3) + len(repr(one)))
    for one.flavour in ("a", "bb") * 2:
        yield f(tensor(1.0))


def arguments_of_an_exception(compiled):
    class Failure(Exception):
        pass

    error = Failure(2.0)
    f = compiled(lambda x: x * error.args[0] + len(str(error)))
    for factor in (2.0, 3.0) * 2:
        error.args = (factor,)
        yield f(tensor(1.0))


def values_of_enum_members(compiled):
    f = compiled(lambda x, preset: x * preset.value["scale"] + Preset.SMALL.value["scale"])
    for Preset.SMALL.value["scale"] in (2.0, 3.0) * 2:
        yield f(tensor(1.0), Preset.SMALL), f(tensor(1.0), Preset.LARGE)


def attributes_of_enum_members(compiled):
    Preset.SMALL.calls = 0

    def f(x):
        Preset.SMALL.calls += 1
        return x * Preset.LARGE.rate

    f = compiled(f)
    for Preset.LARGE.rate in (2.0, 3.0) * 2:
        yield f(tensor(1.0)), Preset.SMALL.calls


def record_of_an_array(compiled):
    table = np.zeros(1, dtype=[("scale", float)])
    row = table[0]
    f = compiled(lambda x: x * float(row["scale"]))
    for table["scale"][0] in (2.0, 3.0) * 2:
        yield f(tensor(1.0))


def positions_of_a_class_pattern(compiled):
    class Pair:
        __match_args__ = ("left",)
        __rate__ = 2.0
        left, right = 2.0, 3.0

    pair = Pair()

    def f(x):
        match pair:
            case Pair(value):
                return x * value * (pair.__rate__ if hasattr(pair, "__rate__") else 1)

    f = compiled(f)
    for Pair.__match_args__ in (("left",), ("right",)) * 2:
        yield f(tensor(1.0))
    Pair.__rate__ = 5.0
    yield f(tensor(1.0))


# --- Modules, and classes of the package --------------------------------------------------------


def module_under_another_name(compiled):
    box = Box(ops=nn.functional)

    def f(x):
        from math import pi

        package = flow
        return box.ops.relu(x) * package.rate * pi

    f = compiled(f)
    first = nn.functional.relu, math.pi
    try:
        for i in range(4):
            flow.rate = 2.0 + i // 2
            yield f(tensor(-1.0, 1.0))
        nn.functional.relu = lambda x: x
        yield f(tensor(-1.0, 1.0))
        math.pi = 3.0
        yield f(tensor(-1.0, 1.0))
    finally:
        nn.functional.relu, math.pi = first
        del flow.rate


def note_kept_in_a_module(compiled):
    def f(x):
        package = worlds
        package.calls = getattr(package, "calls", 0) + 1
        return x * 2

    f = compiled(f)
    try:
        for _ in range(4):
            yield f(tensor(1.0)), worlds.calls
    finally:
        del worlds.calls


def private_global_counter(compiled):
    global __calls
    __calls = 0

    def f(x):
        global __calls
        __calls += 1
        return x * 2

    f = compiled(f)
    for _ in range(4):
        yield f(tensor(1.0)), __calls


def attribute_of_a_class_of_the_package(compiled):
    layer = nn.Linear(1, 1)
    f = compiled(lambda x: x * layer.rate)
    try:
        for nn.Module.rate in (2.0, 3.0) * 2:
            yield f(tensor(1.0))
        nn.Linear.rate = 5.0
        yield f(tensor(1.0))
    finally:
        del nn.Module.rate, nn.Linear.rate


def operator_of_tensors_replaced(compiled):
    f = compiled(lambda x: x * 2 + 1)
    first = flow.Tensor.__mul__
    try:
        yield f(tensor(1.0)), f(tensor(2.0))
        flow.Tensor.__mul__ = lambda self, other: self + other
        yield f(tensor(1.0)), f(tensor(2.0))
    finally:
        flow.Tensor.__mul__ = first


def zero_grad_replaced(compiled):
    w = leaf(1.0)
    optimizer = flow.optim.SGD([w], lr=0.1)

    def f(x):
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()

    f = compiled(f)
    try:
        for i in range(5):
            if i == 3:
                flow.optim.SGD.zero_grad = lambda self: None
            f(tensor(1.0))
            yield w
    finally:
        del flow.optim.SGD.zero_grad


def class_that_names_another_module(compiled):
    made = dataclasses.make_dataclass("made", [("scale", float, 2.0)])()
    new = types.new_class("new", (), {}, lambda names: names.update(scale=2.0))
    f = compiled(lambda x: x * made.scale * new.scale)
    for made.scale in (2.0, 3.0) * 2:
        yield f(tensor(1.0))
    new.scale = 5.0
    yield f(tensor(1.0))


def function_of_a_library(compiled):
    source = "def f(x):\n    calls.append(len(calls))\n    return x * len(calls)\n"
    scope = {"calls": []}
    exec(compile(source, os.path.join(os.path.dirname(os.__file__), "thing.py"), "exec"), scope)
    f = compiled(scope["f"])
    for _ in range(3):
        yield f(tensor(1.0)), scope["calls"]


# --- Attributes of tensors and of what is called ------------------------------------------------


def attribute_of_a_compiled_function(compiled):
    def f(x):
        g.calls += 1
        return x * g.scale

    def h(x):
        return x * k.scale

    g, k = compiled(f), compiled(h)
    g.calls = 0
    for g.scale in (2.0, 3.0) * 2:
        k.scale = g.scale
        yield g(tensor(1.0)), k(tensor(1.0)), g.calls


def attribute_of_a_partial_function(compiled):
    part = functools.partial(lambda x: x)
    f = compiled(lambda x: part(x) * part.scale)
    for part.scale in (2.0, 3.0) * 2:
        yield f(tensor(1.0))


def attribute_of_an_argument(compiled):
    f = compiled(lambda x: x * x.scale)
    g = compiled(lambda x: x * (2 if hasattr(x, "flag") else 3))
    one, two = tensor(1.0), tensor(1.0)
    one.scale, two.scale, one.flag = 2.0, 3.0, True
    for x in (one, two, one) * 2:
        yield f(x), g(x)


def tensor_as_attribute_of_an_argument(compiled):
    f = compiled(lambda x, y: x * x.mask + y)
    one, other = tensor(2.0), tensor(5.0)
    for y in (one, other, one) * 2:
        x = tensor(1.0)
        x.mask = one
        yield f(x, y)


def missing_attribute_of_an_argument(compiled):
    def f(x):
        try:
            return x * x.scale
        except AttributeError:
            return x * 7

    f = compiled(f)
    for i in range(4):
        x = tensor(1.0)
        if i % 2:
            x.scale = 2.0
        yield f(x)


def attribute_of_a_parameter(compiled):
    layer = nn.Linear(2, 2)

    def f(x):
        kept = [p for p in layer.parameters() if not getattr(p, "no_decay", False)]
        return x * len(kept)

    f = compiled(f)
    for p in (None, layer.bias, layer.weight):
        if p is not None:
            p.no_decay = True
        yield f(tensor(1.0)), f(tensor(2.0))


def attributes_set_on_tensors(compiled):
    w = tensor(1.0)

    def f(x, which):
        y = x * 2
        (x, w, y)[which].tag = 5
        return y

    f = compiled(f)
    for i in range(9):
        x = tensor(float(i))
        y = f(x, i // 3)
        yield y, [getattr(t, "tag", None) for t in (x, w, y)]
        vars(w).pop("tag", None)


def method_of_a_class_of_tensors(compiled):
    class Scaled(flow.Tensor):
        pass

    x = Scaled([1.0])
    f = compiled(lambda x: x.scaled())
    for factor in (2.0, 3.0) * 2:
        Scaled.scaled = (lambda k: lambda self: self * k)(factor)
        yield f(x)


# --- More than its value ------------------------------------------------------------------------


def keys_of_several_types(compiled):
    f = compiled(lambda x, table: x * next(iter(table)))
    for key in (1, 1.0, True, 0.0, -0.0) * 2:
        yield f(flow.tensor([1, 2]), {key: None})


def numbers_of_numpy(compiled):
    f = compiled(lambda x, n: x * n)
    for n in (0.0, -0.0) * 2:
        yield f(tensor(1.0), np.float64(n)), f(tensor(1.0), np.float32(n))


def numbers_and_texts_with_attributes(compiled):
    class Number(float):
        pass

    class Text(str):
        pass

    f = compiled(lambda x, n: x * n.unit)
    for kind, value in ((Number, 1.0), (Text, "a")):
        for unit in (2.0, 3.0) * 2:
            n = kind(value)
            n.unit = unit
            yield f(tensor(1.0), n)


def ranges_of_the_same_numbers(compiled):
    box = Box()
    f = compiled(lambda x, r: x * r.stop + box.numbers.stop)
    for box.numbers in (range(0, 3, 2), range(0, 4, 2)) * 2:
        yield f(tensor(1.0), box.numbers), f(tensor(1.0), range(0, 3, 2))


def named_tuple_with_an_attribute(compiled):
    class Pair(collections.namedtuple("Pair", "left right")):
        pass

    def f(pair):
        made = Pair(pair.left * pair.rate, 1)
        made.rate = pair.rate
        return made

    f = compiled(f)
    for rate in (2.0, 3.0) * 2:
        pair = Pair(tensor(1.0), 0)
        pair.rate = rate
        yield f(pair), f(pair).rate


def which_list_or_dict_it_is(compiled):
    default = {"scale": 2.0}
    f = compiled(lambda x, options: x * (5 if options is default else 7))
    g = compiled(lambda x, a, b: x * (5 if a is b else 7))
    for options in (default, {"scale": 2.0}) * 2:
        yield f(tensor(1.0), options), g(tensor(1.0), options, default)
        yield g(tensor(1.0), [options], [options])


def which_list_or_dict_is_returned(compiled):
    state = {"y": tensor(1.0)}

    def f(x, xs):
        state["y"].add_(x)
        pair = [x * 2]
        return xs, state, pair, pair

    f = compiled(f)
    for i in range(4):
        xs = [tensor(float(i))]
        ys, same, one, other = f(tensor(1.0), xs)
        ys.append(i)
        yield xs, same is state, one is other, one


# --- Exceptions that depend on values, and copies -----------------------------------------------


def exception_by_value_caught_inside(compiled):
    def f(x, i):
        try:
            return x[i] * 2
        except IndexError:
            return x[:1] * 0

    bad_first, good_first = compiled(f), compiled(f)
    x = tensor(1.0, 2.0)
    for i in (7, 1, 7, 0):
        yield bad_first(x, flow.tensor([i])), good_first(x, flow.tensor([1 if i == 7 else 7 + i]))
    h = compiled(lambda x, i: x[i])
    for i in (1, 7, 0):
        yield attempt(h, x, flow.tensor([i]))


def copies_of_a_compiled_module(compiled):
    layer = compiled(Scaling())
    yield layer(tensor(1.0)), layer(tensor(2.0))
    for copied in (copy.copy(layer), copy.deepcopy(layer)):
        copied.scale = 5.0
        for _ in range(2):
            yield copied(tensor(1.0)), layer(tensor(1.0)), copied.scale, layer.scale


def copies_of_what_holds_a_compiled_function(compiled):
    class Holder(Scaling):
        def __init__(self):
            super().__init__()
            self.run = compiled(self.forward)

    one = Holder()
    yield one.run(tensor(1.0)), one.run(tensor(2.0))
    other = copy.deepcopy(one)
    other.scale = 5.0
    for _ in range(2):
        yield other.run(tensor(1.0)), one.run(tensor(1.0))


def copies_that_a_class_makes_itself(compiled):
    class Own(Scaling):
        def __deepcopy__(self, memo):
            made = type(self).__new__(type(self))
            made.__dict__ = dict(self.__dict__)
            return made

    layer = compiled(Own())
    yield layer(tensor(1.0)), layer(tensor(2.0))
    copied = copy.deepcopy(layer)
    copied.scale = 5.0
    yield copied(tensor(1.0)), layer(tensor(1.0))


def attributes_that_the_call_wrote(compiled):
    module, made = types.ModuleType("counts"), functools.partial(int)
    module.n = made.n = 0

    def f(x, how):
        if how:
            vars(module)["n"] += 1
        else:
            module.n += 1
        made.n += 2
        return x * module.n + made.n

    f = compiled(f)
    for how in (False, True):
        for i in range(4):
            yield f(tensor(1.0, float(i)), how), module.n, made.n
