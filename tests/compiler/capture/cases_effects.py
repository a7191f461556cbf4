"""Cases for what a function does to the Python around it."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import random
import warnings

import numpy as np

import oneflow_lite as flow
from tests.compiler.capture.worlds import Box, tensor

LAST = None


def counter_attribute(compiled):
    box = Box(count=0)

    def f(x):
        box.count += 1
        return x * box.count

    f = compiled(f)
    for _ in range(3):
        yield f(tensor(1.0)), box.count


def counter_that_nothing_reads(compiled):
    box = Box(count=0)

    def f(x):
        box.count += 1
        return x * 2

    f = compiled(f)
    for _ in range(3):
        yield f(tensor(1.0)), box.count


def numbers_appended(compiled):
    seen = []

    def f(x):
        seen.append(x.shape[0])
        return x * 2

    f = compiled(f)
    for _ in range(3):
        yield f(tensor(1.0)), seen


def tensors_appended(compiled):
    seen = []

    def f(x):
        y = x * 2
        seen.append(y)
        return y + 1

    f = compiled(f)
    for i in range(3):
        yield f(tensor(float(i))), seen


def cache_in_a_dict(compiled):
    cache = {}

    def f(x):
        if "last" in cache:
            x = x + cache["last"]
        cache["last"] = x.detach()
        return x * 2

    f = compiled(f)
    for i in range(4):
        yield f(tensor(float(i))), cache


def global_store(compiled):
    global LAST
    LAST = None

    def f(x):
        global LAST
        LAST = x * 3
        return x * 2

    f = compiled(f)
    for i in range(3):
        yield f(tensor(float(i))), LAST


def nonlocal_store(compiled):
    total = tensor(0.0)
    steps = 0

    def f(x):
        nonlocal total, steps
        total = total + x
        steps += 1
        return total * 2

    f = compiled(f)
    for i in range(3):
        yield f(tensor(float(i))), total, steps


def attribute_store(compiled):
    box = Box(last=None)

    def f(x):
        box.last = x * 3
        return x * 2

    f = compiled(f)
    for i in range(3):
        yield f(tensor(float(i))), box.last


def attribute_deleted(compiled):
    box = Box()

    def f(x):
        box.temporary = x * 2
        y = box.temporary + 1
        del box.temporary
        return y

    f = compiled(f)
    for i in range(3):
        box.temporary = i
        yield f(tensor(float(i))), hasattr(box, "temporary")


def list_argument_grown(compiled):
    def f(xs):
        xs.append(xs[0] * 2)
        return sum(xs)

    f = compiled(f)
    for i in range(3):
        xs = [tensor(float(i)), tensor(1.0)]
        yield f(xs), xs


def dict_argument_emptied(compiled):
    def f(x, options):
        return x * options.pop("scale", 1.0)

    f = compiled(f)
    for scale in (2.0, 3.0) * 2:
        options = {"scale": scale, "rest": None}
        yield f(tensor(1.0), options), options
        yield f(tensor(1.0), options), options


def mutable_default_argument(compiled):
    def f(x, seen=[]):  # noqa: B006
        seen.append(1)
        return x * len(seen)

    f = compiled(f)
    for _ in range(3):
        yield f(tensor(1.0))


def printed_text(compiled):
    def f(x):
        print("called with", x.shape)
        return x * 2

    f = compiled(f)
    for _ in range(3):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            y = f(tensor(1.0))
        yield y, out.getvalue()


def warned(compiled):
    def f(x):
        warnings.warn("careful", UserWarning, stacklevel=1)
        return x * 2

    f = compiled(f)
    for _ in range(3):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            y = f(tensor(1.0))
        yield y, [str(w.message) for w in seen if str(w.message) == "careful"]


def iterator_from_outside(compiled):
    numbers = itertools.count(1)
    f = compiled(lambda x: x * next(numbers))
    for _ in range(3):
        yield f(tensor(1.0))


def python_random(compiled):
    f = compiled(lambda x: x * random.random() + random.randint(0, 9))
    for _ in range(3):
        yield f(tensor(1.0)), random.random()


def numpy_random(compiled):
    f = compiled(lambda x: x * float(np.random.rand()))
    for _ in range(3):
        yield f(tensor(1.0)), np.random.rand()


def context_manager_with_a_count(compiled):
    box = Box(entered=0, left=0)

    @contextlib.contextmanager
    def counted():
        box.entered += 1
        yield
        box.left += 1

    def f(x):
        with counted():
            return x * 2

    f = compiled(f)
    for _ in range(3):
        yield f(tensor(1.0)), box.entered, box.left


def memoized_helper(compiled):
    calls = []

    @functools.lru_cache
    def factor(n):
        calls.append(n)
        return n * 2.0

    f = compiled(lambda x, n: x * factor(n))
    for n in (1, 1, 2, 1) * 2:
        yield f(tensor(1.0), n), calls


class Names(flow.Interpreter):
    """Notes the ops that pass."""

    def __init__(self):
        self.seen = []

    def apply(self, op_expr, inputs, attrs):
        self.seen.append(op_expr.op_type_name)
        return self.inner.apply(op_expr, inputs, attrs)


def interpreter_around(compiled):
    f = compiled(lambda x: (x * 2).exp())
    for pushed in (False, True, False, True) * 2:
        names = Names()
        with flow.push_interpreter(names) if pushed else contextlib.nullcontext():
            y = f(tensor(1.0))
        yield y, names.seen


def interpreter_inside(compiled):
    seen = []

    def f(x):
        with flow.push_interpreter(Names()) as names:
            y = (x * 2).exp()
        seen.append(list(names.seen))
        return y

    f = compiled(f)
    for i in range(3):
        yield f(tensor(float(i))), seen
