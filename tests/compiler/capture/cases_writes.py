"""Cases for in-place writes, inside and between calls."""

from __future__ import annotations

import oneflow_lite as flow
from tests.compiler.capture.worlds import attempt, leaf, tensor


def argument_written(compiled):
    def f(x):
        x.add_(1)
        x[0] = 5
        return x * 2

    f = compiled(f)
    x = tensor(1.0, 2.0)
    for i in range(3):
        yield f(x), x, x._version


def base_of_an_argument_written(compiled):
    def f(x, v):
        x.add_(1)
        return v * 2

    f = compiled(f)
    for i in range(3):
        x = tensor(1.0, 2.0, 3.0)
        yield f(x, x[1:]), x


def written_with_history(compiled):
    def f(x):
        x.mul_(3)
        return x.sin()

    f = compiled(f)
    for i in range(2):
        w = leaf(1.0, 2.0)
        x = w * (i + 1)
        y = f(x)
        (y.sum() + x.sum()).backward()
        yield y, x, w


def leaf_written(compiled):
    f = compiled(lambda x: x.mul_(2))
    for x in (tensor(1.0), leaf(1.0), tensor(2.0)) * 2:
        yield attempt(f, x), x


def leaf_written_without_grad(compiled):
    def f(x):
        with flow.no_grad():
            x.mul_(2)
        return x * 3

    f = compiled(f)
    x = leaf(1.0)
    for _ in range(3):
        y = f(x)
        y.sum().backward()
        yield y, x, x._version


def captured_tensor_written_inside(compiled):
    w = tensor(1.0, 2.0)

    def f(x):
        w.add_(x)
        return w * 2

    f = compiled(f)
    for i in range(3):
        yield f(tensor(1.0, float(i))), w, w._version


def captured_tensor_written_between(compiled):
    w = tensor(1.0, 2.0)
    f = compiled(lambda x: x * w)
    x = tensor(3.0, 4.0)
    yield f(x)
    w.add_(1)
    yield f(x)
    w.data = tensor(5.0, 6.0)
    yield f(x)
    w.numpy()[0] = 9
    yield f(x)
    w.data = tensor(5.0)
    yield f(x)


def stale_saved_tensor(compiled):
    w = tensor(1.0, 2.0)

    def f(x):
        w.add_(x)
        return x * 2

    f = compiled(f)
    for i in range(2):
        a = leaf(3.0, 4.0)
        z = a * w
        f(tensor(1.0, 1.0))
        yield attempt(z.sum().backward), a, w


def stale_result(compiled):
    f = compiled(lambda x: x.exp())
    for i in range(3):
        w = leaf(1.0, 2.0)
        y = f(w)
        if i:
            with flow.no_grad():
                y.mul_(1 + i)
        yield attempt(y.sum().backward), w


def stale_argument(compiled):
    f = compiled(lambda x, y: x * y)
    for i in range(3):
        w, y = leaf(1.0, 2.0), tensor(3.0, 4.0)
        z = f(w, y)
        if i:
            y.add_(1)
        yield attempt(z.sum().backward), w


def detached_and_written(compiled):
    def f(x):
        x.detach().add_(1)
        return x * x.detach()

    f = compiled(f)
    x = tensor(1.0, 2.0)
    w = leaf(1.0, 2.0)
    for _ in range(2):
        yield f(x), x
        y = f(w)
        y.sum().backward()
        yield y, w


def expanded_and_written(compiled):
    def f(x, rows):
        x.expand(rows, 2).add_(1)
        return x * 2

    f = compiled(f)
    for rows in (3, 1, 3) * 2:
        x = tensor(1.0, 2.0)
        yield attempt(f, x, rows), x


def index_from_an_argument(compiled):
    def f(x, i, value):
        y = x.clone()
        y[i] = value
        return y, x[i]

    f = compiled(f)
    for i in (0, 2, -1, slice(0, 2), flow.tensor([0, 1]), [2, 1]) * 2:
        yield f(tensor(1.0, 2.0, 3.0), i, 9.0)


def attributes_set_inside(compiled):
    def f(x):
        x.data = x.data * 2
        x.requires_grad_(True)
        return x * 3

    f = compiled(f)
    for i in range(3):
        x = tensor(float(i))
        y = f(x)
        y.sum().backward()
        yield y, x


def written_where_a_reshape_copied(compiled):
    w = tensor(1.0, 2.0)

    def f(x):
        w.mul_(0.5)
        w.expand(3, 2).reshape(6).exp_()
        return x * w

    f = compiled(f)
    for _ in range(4):
        yield f(tensor(1.0, 2.0)), w, w._version
