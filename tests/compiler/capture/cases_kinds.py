"""Cases for one argument in other dtypes, layouts, sizes and modes."""

from __future__ import annotations

import numpy as np

import oneflow_lite as flow
from tests.compiler.capture.worlds import attempt, leaf, tensor


def dtypes(compiled):
    f = compiled(lambda x: (x * 2 + 1, x.sum(), x / 3))
    for dtype in (
        flow.float64,
        flow.float32,
        flow.int64,
        flow.float64,
        flow.bool,
        flow.float16,
    ) * 2:
        yield f(flow.tensor([1.0, 0.0, 2.0]).to(dtype))


def layouts(compiled):
    f = compiled(lambda x: (x.exp() * 2, x.sum(0), x.reshape(-1), x @ x.t(), x + 1))
    wide = flow.arange(12.0).reshape(3, 4) / 8
    square = flow.arange(9.0).reshape(3, 3) / 8
    kinds = [square, square.t(), wide[:, :3], wide[:, 1:], wide[:, ::2].expand(3, 2), wide[::2]]
    for x in (
        *kinds,
        flow.tensor([1.0]).expand(3, 3),
        flow.from_numpy(np.eye(3)[::-1]),
        square,
    ) * 2:
        yield f(x)


def layouts_written(compiled):
    def f(x):
        x.add_(1)
        return x.reshape(-1) * 2

    f = compiled(f)
    base = flow.arange(9.0).reshape(3, 3)
    for x in (base, base.t(), base[:, :2], base[::2], base) * 2:
        yield f(x), base


def sizes(compiled):
    f = compiled(lambda x, y: (x + y).sum(-1, keepdim=True) * y)
    for a, b in [((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (1, 3)), ((), (3,)), ((0, 3), (3,))]:
        yield f(flow.ones(a) * 2, flow.ones(b) * 3)


def requires_grad_changed(compiled):
    f = compiled(lambda x, y: (x * y).sum())
    for a, b in [(False, False), (True, False), (False, True), (True, True), (False, False)]:
        x, y = tensor(1.0, 2.0, requires_grad=a), tensor(3.0, 4.0, requires_grad=b)
        z = f(x, y)
        if a or b:
            z.backward()
        yield z, x, y


def grad_mode_changed(compiled):
    f = compiled(lambda x: (x * x).sum() * 1)
    w = leaf(1.0, 2.0)
    for enabled in (True, False, True) * 2:
        with flow.set_grad_enabled(enabled):
            y = f(w)
        yield y, attempt(y.backward), w


def grad_mode_inside(compiled):
    def f(x):
        with flow.no_grad():
            scale = x.sum()
        with flow.set_grad_enabled(flow.is_grad_enabled()):
            y = x * scale
        return y, flow.is_grad_enabled()

    f = compiled(f)
    for _ in range(2):
        w = leaf(1.0, 2.0)
        y = f(w)
        y[0].sum().backward()
        yield y, w


def grad_mode_left_changed(compiled):
    def f(x):
        flow.set_grad_enabled(False)
        return x * 2

    f = compiled(f)
    w = leaf(1.0)
    for _ in range(3):
        with flow.enable_grad():
            y = f(w)
            seen = flow.is_grad_enabled()
            z = w * 2
        yield y, seen, z


def default_dtype_changed(compiled):
    f = compiled(lambda x: x + flow.ones(2) * 1.5)
    first = flow.get_default_dtype()
    try:
        for dtype in (flow.float32, flow.float64, flow.float32) * 2:
            flow.set_default_dtype(dtype)
            yield f(flow.tensor([1, 2]))
    finally:
        flow.set_default_dtype(first)


def complex_numbers(compiled):
    f = compiled(lambda z: (z * z.conj()).real + z.abs())
    for values in ([1.0, 2.0], [1j, 2.0 + 1j], [3j, 1.0 + 0j]) * 2:
        x = flow.tensor(values, requires_grad=True)
        y = f(x) if x.is_complex() else f(x.to(flow.complex64))
        y.sum().backward()
        yield y, x


def not_a_number(compiled):
    f = compiled(lambda x, y: (flow.maximum(x, y), (x - x) * y, x * 0))
    with np.errstate(all="ignore"):
        for value in (1.0, float("nan"), float("inf"), -0.0) * 2:
            yield f(tensor(value, -0.0), tensor(0.0, value))
