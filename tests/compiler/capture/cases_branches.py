"""Cases for branches, and for values that Python reads."""

from __future__ import annotations

import os

import numpy as np

import oneflow_lite as flow
from tests.compiler.capture.worlds import attempt, leaf, tensor

SCALE = 2.0
FLAG = True


def branch_on_a_global(compiled):
    global FLAG
    f = compiled(lambda x: x.exp() if FLAG else x.sin())
    for FLAG in (True, False, True) * 2:
        yield f(tensor(1.0, 2.0))


def branch_on_a_size(compiled):
    f = compiled(lambda x: x * 2 if x.shape[0] > 2 else x * 3)
    for values in ((1.0, 2.0, 3.0), (1.0, 2.0), (1.0, 2.0, 3.0, 4.0), (5.0,)) * 2:
        yield f(tensor(*values))


def branch_on_values(compiled):
    f = compiled(lambda x: x * 2 if x.sum() > 0 else x * 3)
    for sign in (1.0, -1.0, 2.0) * 2:
        yield f(tensor(sign, sign))


def loop_on_values(compiled):
    def f(x):
        while x.sum() < 50:
            x = x * 2
        return x

    f = compiled(f)
    for start in (1.0, 20.0, 70.0) * 2:
        yield f(tensor(start))


def value_as_number(compiled):
    f = compiled(lambda x: x * x.sum().item() + int(x[0]) + float(x[1]))
    for start in (1.0, 2.0) * 2:
        yield f(tensor(start, start + 1))


def value_as_index(compiled):
    f = compiled(lambda x, i: x[int(i)] + x[i])
    for i in (0, 2) * 2:
        yield f(tensor(1.0, 2.0, 3.0), flow.tensor(i))


def value_as_list_and_text(compiled):
    f = compiled(lambda x: (x * len(set(x.tolist())), str(x), repr(x)))
    for values in ((1.0, 1.0), (1.0, 2.0)) * 2:
        yield f(tensor(*values))


def value_in_numpy(compiled):
    f = compiled(lambda x: x * float(np.max(x.numpy())))
    for values in ((1.0, 1.0), (1.0, 2.0)) * 2:
        yield f(tensor(*values))


def branch_on_the_kind_of_argument(compiled):
    f = compiled(lambda x, y: x + y if isinstance(y, flow.Tensor) else x * y)
    for y in (tensor(2.0), 2.0, tensor(3.0), None, "a") * 2:
        yield attempt(f, tensor(4.0), y)


def branch_on_what_a_tensor_is(compiled):
    f = compiled(lambda x: (x * (1 + x.requires_grad + 2 * x.is_leaf), x.grad is None, x._version))
    w = leaf(1.0)
    yield f(w)
    w.grad = tensor(1.0)
    yield f(w)
    yield f(w * 1)
    yield f(tensor(1.0))
    yield f(tensor(1.0).add_(1))


def numbers_of_several_types(compiled):
    f = compiled(lambda x, n: (x * n, isinstance(n, bool), type(n).__name__))
    for n in (1, 1.0, True, 2, False, 0, 0.0, 1 + 0j, np.float64(1), np.int64(1)) * 2:
        yield f(tensor(3.0), n)


def zeros_of_both_signs(compiled):
    f = compiled(lambda x, n: x / (x * 0 + n))
    with np.errstate(all="ignore"):
        for n in (0.0, -0.0, float("nan"), float("inf")) * 2:
            yield f(tensor(3.0), n)


def numpy_argument_written_between(compiled):
    f = compiled(lambda x, array: x + flow.tensor(array))
    array = np.array([1.0, 2.0])
    for i in range(3):
        array[0] = i
        yield f(tensor(1.0, 1.0), array)


def numpy_captured_and_written(compiled):
    array = np.array([1.0, 2.0])
    f = compiled(lambda x: x * flow.from_numpy(array) + x * array.sum())
    for i in range(3):
        array[0] = i
        yield f(tensor(1.0, 1.0))


def environment(compiled):
    f = compiled(lambda x: x * float(os.environ.get("FLOW_TEST_SCALE", "1")))
    try:
        for os.environ["FLOW_TEST_SCALE"] in ("2", "3") * 2:
            yield f(tensor(1.0))
    finally:
        del os.environ["FLOW_TEST_SCALE"]
    yield f(tensor(1.0))


def divisors_that_become_zero(compiled):
    def f(x, n):
        try:
            return x * (4 // n) + 5 % n
        except ZeroDivisionError:
            return x * 9

    f = compiled(f)
    for n in (1, 1, 2, 0, 0, 0, 3, 0, 2):
        yield f(tensor(1.0), n)
