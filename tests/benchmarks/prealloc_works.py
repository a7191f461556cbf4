"""The MLP steps in NumPy by hand, every array made beforehand: what a replay is measured against.

Nothing is allocated in a step: each operation writes into an array that is there already, the
parameters are updated in place, and scalars are arrays of the right type.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.benchmarks import data

Step = Callable[[], list[np.ndarray]]


def _mlp(arrays: data.Arrays) -> Step:
    parameters = [p.copy() for p in data.parameters(arrays).values()]
    velocity = [np.zeros_like(p) for p in parameters]
    w1, b1, w2, b2, w3, b3 = parameters
    x, target = arrays["x"], arrays["target"]
    batch, width, classes = len(x), len(b1), len(b3)
    rows = np.arange(batch) * classes  # where they begin in flat (batch, classes)
    picked = np.empty_like(rows)

    def buffer(*shape: int) -> np.ndarray:
        return np.empty(shape, np.float32)

    h1, h2, d1, d2 = (buffer(batch, width) for _ in range(4))
    z, log_p, d3 = (buffer(batch, classes) for _ in range(3))
    mask1, mask2 = (np.empty((batch, width), bool) for _ in range(2))
    row, loss, chosen = buffer(batch, 1), buffer(), buffer(batch)
    flat_log_p, flat_d3 = log_p.reshape(-1), d3.reshape(-1)
    grads = [np.empty_like(p) for p in parameters]
    steps = [np.empty_like(p) for p in parameters]
    dw1, db1, dw2, db2, dw3, db3 = grads
    w1_t, w2_t, w3_t = w1.T, w2.T, w3.T
    d1_t, d2_t, d3_t = d1.T, d2.T, d3.T
    zero, one, momentum, rate = (np.array(v, np.float32) for v in (0.0, 1.0, 0.9, 0.01))
    per_sample, minus = np.array(1.0 / batch, np.float32), np.array(-1.0 / batch, np.float32)
    state = list(zip(parameters, velocity, grads, steps, strict=True))
    matmul, add, subtract, multiply = np.matmul, np.add, np.subtract, np.multiply
    maximum, greater, exp, log, total = np.maximum, np.greater, np.exp, np.log, np.add.reduce

    def step() -> list[np.ndarray]:
        matmul(x, w1_t, out=h1)
        add(h1, b1, out=h1)
        maximum(h1, zero, out=h1)
        matmul(h1, w2_t, out=h2)
        add(h2, b2, out=h2)
        maximum(h2, zero, out=h2)
        matmul(h2, w3_t, out=z)
        add(z, b3, out=z)
        maximum.reduce(z, axis=1, keepdims=True, out=row)
        subtract(z, row, out=z)
        exp(z, out=d3)
        total(d3, axis=1, keepdims=True, out=row)
        log(row, out=row)
        subtract(z, row, out=log_p)
        add(rows, target, out=picked)
        flat_log_p.take(picked, out=chosen, mode="clip")
        total(chosen, out=loss)
        multiply(loss, minus, out=loss)

        exp(log_p, out=d3)
        flat_d3.take(picked, out=chosen, mode="clip")
        subtract(chosen, one, out=chosen)
        flat_d3[picked] = chosen
        multiply(d3, per_sample, out=d3)
        matmul(d3_t, h2, out=dw3)
        total(d3, axis=0, out=db3)
        matmul(d3, w3, out=d2)
        greater(h2, zero, out=mask2)
        multiply(d2, mask2, out=d2)
        matmul(d2_t, h1, out=dw2)
        total(d2, axis=0, out=db2)
        matmul(d2, w2, out=d1)
        greater(h1, zero, out=mask1)
        multiply(d1, mask1, out=d1)
        matmul(d1_t, x, out=dw1)
        total(d1, axis=0, out=db1)
        for p, v, g, s in state:
            multiply(v, momentum, out=v)
            add(v, g, out=v)
            multiply(v, rate, out=s)
            subtract(p, s, out=p)
        return [loss, *grads]

    return step


def mlp() -> Step:
    return _mlp(data.mlp())


def mlp256() -> Step:
    return _mlp(data.mlp256())
