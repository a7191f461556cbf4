"""Cases for Python objects that a function reads in less direct ways, or changes on the side."""

from __future__ import annotations

import collections
import contextvars
import copy
import enum
import functools
import logging
import math
import random
import threading
import time
import weakref

import numpy as np

import oneflow_lite as flow
from tests.compiler.capture.worlds import Box, attempt, leaf, tensor

SCALE = 2.0


def scaled(x, scale=2.0):
    return x * scale


def default_values_replaced(compiled):
    f = compiled(lambda x: scaled(x) + 1)
    try:
        for scale in (2.0, 3.0) * 2:
            scaled.__defaults__ = (scale,)
            yield f(tensor(1.0))
    finally:
        scaled.__defaults__ = (2.0,)


def own_default_values_replaced(compiled):
    def f(x, scale=2.0, *, shift=1.0):
        return x * scale + shift

    g = compiled(f)
    yield g(tensor(1.0))
    f.__defaults__ = (3.0,)
    yield g(tensor(1.0))
    f.__kwdefaults__ = {"shift": 5.0}
    yield g(tensor(1.0))


def code_replaced(compiled):
    def f(x):
        return x * 2

    def other(x):
        return x * 3

    g = compiled(f)
    yield g(tensor(1.0))
    f.__code__ = other.__code__
    yield g(tensor(1.0))


def attribute_of_a_function(compiled):
    def f(x):
        return x * f.scale

    g = compiled(f)
    for f.scale in (2.0, 3.0) * 2:
        yield g(tensor(1.0))


def default_tensor_written(compiled):
    w = tensor(1.0, 2.0)

    def f(x, w=w):
        return x * w

    f = compiled(f)
    for i in range(3):
        yield f(tensor(1.0, 1.0))
        w.add_(i + 1)


def inner_function_made_inside(compiled):
    global SCALE

    def f(x):
        def inner(y, factor=SCALE):
            return [y * factor * SCALE for _ in range(2)]

        return inner(x)

    f = compiled(f)
    for SCALE in (2.0, 3.0) * 2:
        yield f(tensor(1.0))


def attribute_of_a_module(compiled):
    f = compiled(lambda x: x * math.pi)
    first = math.pi
    try:
        for math.pi in (first, 3.0) * 2:
            yield f(tensor(1.0))
    finally:
        math.pi = first


def op_of_the_package_replaced(compiled):
    f = compiled(lambda x: flow.nn.functional.relu(x))
    first = flow.nn.functional.relu
    try:
        yield f(tensor(-1.0, 1.0))
        flow.nn.functional.relu = flow.exp
        yield f(tensor(-1.0, 1.0))
    finally:
        flow.nn.functional.relu = first


def attributes_made_on_demand(compiled):
    class Lazy:
        table = {"scale": 2.0}

        def __getattr__(self, name):
            return self.table[name]

    lazy = Lazy()
    f = compiled(lambda x: x * lazy.scale)
    for Lazy.table["scale"] in (2.0, 3.0) * 2:
        yield f(tensor(1.0))


def slots_and_inheritance(compiled):
    class Base:
        __slots__ = ("scale",)

        def run(self, x):
            return x * self.scale

    class Child(Base):
        __slots__ = ()

        def run(self, x):
            return super().run(x) + 1

    child = Child()
    f = compiled(child.run)
    for child.scale in (2.0, 3.0) * 2:
        yield f(tensor(1.0))
    Base.run = lambda self, x: x - self.scale
    yield f(tensor(1.0))


def truth_and_length_of_an_object(compiled):
    class Queue:
        def __init__(self):
            self.items = []

        def __len__(self):
            return len(self.items)

        def __contains__(self, item):
            return item in self.items

    queue = Queue()
    f = compiled(lambda x: x * (2 if queue else 3) + len(queue) + (1 in queue))
    for i in range(3):
        yield f(tensor(1.0))
        queue.items.append(i)


def sets_and_keys(compiled):
    names, table = {"a"}, {"a": 1.0}

    def f(x):
        for key in table:
            x = x * (2 if key in names else 3)
        return x + sum(table.values()) + len(names)

    f = compiled(f)
    yield f(tensor(1.0))
    names.add("b")
    yield f(tensor(1.0))
    table["b"] = 2.0
    yield f(tensor(1.0))
    names.discard("a")
    yield f(tensor(1.0))


def missing_keys_that_are_made(compiled):
    table = collections.defaultdict(lambda: 2.0)
    f = compiled(lambda x, key: x * table[key])
    for key in ("a", "a", "b") * 2:
        yield f(tensor(1.0), key), dict(table)
    table["a"] = 5.0
    yield f(tensor(1.0), "a")


def queue_that_is_rotated(compiled):
    queue = collections.deque([1.0, 2.0, 3.0])

    def f(x):
        queue.rotate(1)
        return x * queue[0]

    f = compiled(f)
    for _ in range(4):
        yield f(tensor(1.0)), list(queue)


def members_of_an_enumeration(compiled):
    class Kind(enum.Enum):
        DOUBLE = 2.0
        TRIPLE = 3.0

    f = compiled(lambda x, kind: x * kind.value if kind is Kind.DOUBLE else x - kind.value)
    for kind in (Kind.DOUBLE, Kind.TRIPLE, Kind.DOUBLE) * 2:
        yield f(tensor(1.0), kind)


def arguments_of_like_content(compiled):
    f = compiled(lambda x, a: (x * len(a), type(a).__name__, list(a)))
    likes = ([1, 2], (1, 2), [1.0, 2], {1: 0, 2: 0}, [True, 2], [2, 1], [], (), "12", range(1, 3))
    for a in likes:
        yield f(tensor(1.0), a)


def parameters_and_tensors(compiled):
    f = compiled(lambda x: x * (2 if isinstance(x, flow.nn.Parameter) else 3))
    for x in (leaf(1.0), flow.nn.Parameter(tensor(1.0)), leaf(1.0)) * 2:
        yield f(x)


def dtypes_and_devices_as_arguments(compiled):
    f = compiled(lambda x, dtype: x.to(dtype) + flow.ones(1, dtype=dtype))
    for dtype in (flow.float32, flow.float64, flow.int64) * 2:
        yield f(tensor(1.0), dtype)


def partial_function_changed(compiled):
    f = functools.partial(scaled, scale=2.0)
    g = compiled(lambda x: f(x))
    yield g(tensor(1.0))
    f.keywords["scale"] = 3.0
    yield g(tensor(1.0))


def clock(compiled):
    ticks = iter(range(10))
    first = time.perf_counter
    f = compiled(lambda x: x * time.perf_counter())
    try:
        time.perf_counter = lambda: float(next(ticks))
        for _ in range(3):
            yield f(tensor(1.0))
    finally:
        time.perf_counter = first


def generator_of_the_user(compiled):
    stream, array_stream = random.Random(3), np.random.default_rng(3)
    f = compiled(lambda x: x * stream.random() + array_stream.normal())
    for _ in range(3):
        yield f(tensor(1.0))


def context_variable(compiled):
    scale = contextvars.ContextVar("scale", default=2.0)
    f = compiled(lambda x: x * scale.get())
    for value in (2.0, 3.0) * 2:
        scale.set(value)
        yield f(tensor(1.0))


def value_of_a_thread(compiled):
    values = threading.local()
    f = compiled(lambda x: x * values.scale)
    for values.scale in (2.0, 3.0) * 2:
        yield f(tensor(1.0))


def weak_reference(compiled):
    boxes = [Box(scale=2.0)]
    reference = weakref.ref(boxes[0])
    f = compiled(lambda x: x * 7 if reference() is None else x * reference().scale)
    yield f(tensor(1.0))
    boxes[0].scale = 3.0
    yield f(tensor(1.0))
    boxes.clear()
    yield f(tensor(1.0))


def log_records(compiled):
    records = []
    logger = logging.Logger("cases")
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())
    logger.addHandler(handler)

    def f(x):
        logger.warning("shape %s", x.shape)
        return x * 2

    f = compiled(f)
    for _ in range(3):
        yield f(tensor(1.0)), records


def assertion(compiled):
    box = Box(limit=2)

    def f(x):
        assert x.shape[0] <= box.limit, "too long"
        return x * 2

    f = compiled(f)
    yield attempt(f, tensor(1.0, 2.0))
    box.limit = 1
    yield attempt(f, tensor(1.0, 2.0))
    yield attempt(f, tensor(1.0))


def identity_as_key(compiled):
    names = {}
    f = compiled(lambda x: x * names.setdefault(id(x), len(names) + 1))
    x, y = tensor(1.0), tensor(1.0)
    for z in (x, y, x) * 2:
        yield f(z), len(names)


def copies_made_inside(compiled):
    box = Box(scale=[2.0])

    def f(x):
        own = copy.deepcopy(box)
        own.scale[0] += 1
        return copy.copy(x) * own.scale[0] + copy.deepcopy(x)

    f = compiled(f)
    for box.scale in ([2.0], [3.0]) * 2:
        yield f(tensor(1.0)), box.scale


def decorated_method(compiled):
    class Layer:
        def __init__(self, scale):
            self.scale = scale

        def run(self, x):
            return x * self.scale

    Layer.run = compiled(Layer.run)  # a descriptor, as the function was
    one, two = Layer(2.0), Layer(3.0)
    for one.scale in (2.0, 5.0) * 2:
        yield [layer.run(tensor(1.0)) for layer in (one, two)]


def matched_structure(compiled):
    def f(x, command):
        match command:
            case ("scale", n):
                return x * n
            case {"shift": n, **rest}:
                return x + n + len(rest)
            case [*_]:
                return x - 1
            case _:
                return x

    f = compiled(f)
    for command in (
        ("scale", 2.0),
        ("scale", 3.0),
        {"shift": 1.0},
        {"shift": 1.0, "a": 0},
        [],
        1,
    ) * 2:
        yield f(tensor(5.0), command)
