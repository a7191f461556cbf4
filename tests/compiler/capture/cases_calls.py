"""Cases for arguments, exceptions, and functions that call each other."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import threading
import traceback
import warnings

import oneflow_lite as flow
from tests.compiler.capture.worlds import Box, attempt, leaf, tensor

SCALE = 2.0


def helper(x):
    return x * 3


def other_helper(x):
    return x * 5


def exceptions_by_argument(compiled):
    def f(x, flag):
        if flag:
            raise KeyError("flag")
        return x * 2

    f = compiled(f)
    for flag in (False, True, False, True) * 2:
        yield attempt(f, tensor(1.0), flag)


def exceptions_of_an_op(compiled):
    f = compiled(lambda x, y: (x @ y) * 2)
    for n in (2, 3, 2) * 2:
        yield attempt(f, flow.ones(2, 2), flow.ones(n, 2))


def exception_after_a_write(compiled):
    def f(x, box):
        x.mul_(2)
        if box.fails:
            raise ValueError("after the write")
        return x + 1

    f = compiled(f)
    x = tensor(1.0)
    for fails in (False, True, False) * 2:
        yield attempt(f, x, Box(fails=fails)), x, x._version


def exception_caught_inside(compiled):
    def f(x, y):
        try:
            return x @ y
        except RuntimeError:
            return x * 7

    f = compiled(f)
    for n in (2, 3, 2) * 2:
        yield f(flow.ones(2, 2), flow.ones(n, 2))


def generator_argument(compiled):
    def f(xs):
        return sum(x * 2 for x in xs)

    f = compiled(f)
    for i in range(3):
        xs = (tensor(float(k)) for k in range(i + 2))
        yield f(xs), len(list(xs))


def generator_function(compiled):
    def f(x):
        for i in range(3):
            x = x * 2
            yield x

    f = compiled(f)
    for i in range(2):
        yield list(f(tensor(float(i + 1))))


def keyword_order(compiled):
    f = compiled(lambda x, **options: [(k, x * v) for k, v in options.items()])
    yield f(tensor(1.0), a=2.0, b=3.0)
    yield f(tensor(1.0), b=3.0, a=2.0)
    yield f(tensor(1.0), b=2.0, a=3.0)


def default_and_given_arguments(compiled):
    def f(x, a=2.0, *rest, b=3.0, **more):
        return x * a + b + sum(rest) + len(more)

    f = compiled(f)
    yield f(tensor(1.0))
    yield f(tensor(1.0), 4.0)
    yield f(tensor(1.0), 4.0, 5.0, b=1.0)
    yield f(x=tensor(1.0), a=7.0, c=1)
    yield attempt(f, tensor(1.0), a=1.0, x=1)


def tensors_as_keys(compiled):
    a, b = tensor(1.0), tensor(2.0)

    def f(table, key):
        return table[key] * key

    f = compiled(f)
    for key in (a, b, a) * 2:
        yield f({a: tensor(3.0), b: tensor(4.0)}, key)


def containers_in_and_out(compiled):
    Pair = collections.namedtuple("Pair", "left right")

    def f(pair, table, nothing):
        left, (first, *_) = pair.left, pair.right
        return {"y": Pair(left * first, [table["z"], None]), "n": (nothing, 3, "text")}

    f = compiled(f)
    for i in range(3):
        pair = Pair(tensor(float(i)), [tensor(2.0)] * (i + 1))
        yield f(pair, {"z": tensor(5.0)}, None)


def data_class_argument(compiled):
    @dataclasses.dataclass
    class Batch:
        x: flow.Tensor
        scale: float

    f = compiled(lambda batch: Batch(batch.x * batch.scale, batch.scale).x)
    for scale in (2.0, 3.0) * 2:
        yield f(Batch(tensor(1.0), scale))


def object_argument_changed(compiled):
    box = Box(scale=2.0)
    f = compiled(lambda x, settings: x * settings.scale)
    for box.scale in (2.0, 3.0) * 2:
        yield f(tensor(1.0), box)
    yield f(tensor(1.0), Box(scale=9.0))


def function_argument(compiled):
    f = compiled(lambda x, g: g(x) + 1)
    for g in (helper, other_helper, lambda x: x * SCALE, flow.exp) * 2:
        yield f(tensor(1.0), g)


def recursion_by_depth(compiled):
    def f(x, depth):
        return x if depth == 0 else f(x * 2, depth - 1) + depth

    f = compiled(f)
    for depth in (3, 1, 0, 4) * 2:
        yield f(tensor(1.0), depth)


def nested_compiled_functions(compiled):
    box = Box(scale=2.0)
    inner = compiled(lambda x: x * box.scale)
    outer = compiled(lambda x: inner(x) + inner(x * 2))
    for box.scale in (2.0, 3.0) * 2:
        yield outer(tensor(1.0)), inner(tensor(1.0))


def bound_methods_and_partials(compiled):
    one, two = Box(scale=2.0), Box(scale=5.0)
    fs = [compiled(one.scaled), compiled(two.scaled)]
    fs.append(compiled(functools.partial(lambda x, n: x * n, n=3.0)))
    for one.scale in (2.0, 4.0) * 2:
        yield [f(tensor(1.0)) for f in fs]


def functions_from_one_factory(compiled):
    def make(scale):
        return lambda x: x * scale

    fs = [compiled(make(2.0)), compiled(make(3.0))]
    for start in (1.0, 2.0) * 2:
        yield [f(tensor(start)) for f in fs]


def more_signatures_than_are_kept(compiled):
    f = compiled(lambda x, n: x * n + x.shape[0])
    for i in range(40):
        yield f(flow.ones(1 + i % 5), i % 13)


def object_that_is_called(compiled):
    class Scaler:
        def __init__(self, scale):
            self.scale = scale

        def __call__(self, x):
            return x * self.scale

        @staticmethod
        def shifted(x):
            return x + SCALE

        @classmethod
        def named(cls, x):
            return x * len(cls.__name__)

    scaler = Scaler(2.0)
    fs = [compiled(scaler), compiled(scaler.shifted), compiled(scaler.named)]
    for scaler.scale in (2.0, 3.0) * 2:
        yield [f(tensor(1.0)) for f in fs]


def calls_from_threads(compiled):
    w = leaf(1.0, 2.0)
    f = compiled(lambda x: (x * w).exp() + x)
    yield f(tensor(0.0, 0.0))
    results = [[] for _ in range(4)]

    def work(i):
        for k in range(20):
            results[i].append(f(tensor(i / 8, k / 8)))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield results


class Scaled:
    def __init__(self):
        self.scale = SCALE


def classes_that_a_call_makes(compiled):
    global SCALE
    made = {}

    def f(x):
        if not made:
            made["class"] = type("Made", (Scaled,), {})
            made["fields"] = collections.namedtuple("Fields", "a b")
            made["kinds"] = enum.Enum("Kinds", "ONE TWO")
        return made["fields"](x * made["class"]().scale, 1).a

    f = compiled(f)
    for SCALE in (2.0, 2.0, 2.0, 3.0, 3.0):
        yield f(tensor(1.0)), [each.__module__ for each in made.values()]


def warnings_name_the_line(compiled):
    def f(x, n):
        if n:
            warnings.warn("first", stacklevel=1)
            warnings.warn("second", stacklevel=1)
        return x * 2

    f = compiled(f)
    for n in (0, 0, 1, 1, 0):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            y = f(tensor(1.0), n)
        own = [w for w in caught if "flow.compile" not in str(w.message)]
        yield y, [(str(w.message), w.filename == __file__, w.lineno) for w in own]


def lines_of_a_traceback(compiled):
    def f(x, n):
        try:
            return x * [2.0, 3.0][n]
        except IndexError as error:
            return x * len(traceback.extract_tb(error.__traceback__, -1))

    f = compiled(f)
    for n in (2, 2, 0, 0, 2):
        yield f(tensor(1.0), n)


SCALE = 2.0
