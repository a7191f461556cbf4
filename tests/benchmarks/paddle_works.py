"""The works as a user of Paddle's static graph writes them: a Program each, run by its Executor.

Values that change from call to call are fed; parameters live in the scope. Two works are left
out: Paddle has no third-order gradient of a matrix product, and the chain of 20,000 adds takes it
minutes until its first run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import paddle
from paddle import static
from paddle.nn import functional as F

from tests.benchmarks import data

Step = Callable[[], list[Any]]

paddle.enable_static()


def _input(array: np.ndarray, name: str, *, leaf: bool = False) -> Any:
    variable = static.data(name, array.shape, str(array.dtype))
    variable.stop_gradient = not leaf
    return variable


def _parameter(array: np.ndarray) -> Any:
    start = paddle.nn.initializer.Assign(array)
    return static.create_parameter(array.shape, str(array.dtype), default_initializer=start)


def _parameters(arrays: data.Arrays) -> list[Any]:
    return [_parameter(array) for array in data.parameters(arrays).values()]


def _linear(x: Any, weight: Any, bias: Any) -> Any:
    return paddle.matmul(x, weight, transpose_y=True) + bias


def _step(arrays: data.Arrays, names: Sequence[str], build: Callable[..., list[Any]]) -> Step:
    """Return a step that feeds the arrays of ``names`` to the Program that ``build`` writes."""
    program, startup = static.Program(), static.Program()
    with static.program_guard(program, startup):
        inputs = [_input(arrays[name], name, leaf=name == "x") for name in names]
        fetches = build(*inputs)
    place = paddle.CPUPlace()
    executor = static.Executor(place)
    executor.run(startup)
    feed = {}
    for name in names:
        feed[name] = paddle.base.core.DenseTensor()
        feed[name].set(arrays[name], place)

    def step() -> list[Any]:
        # Tensors in and out: as arrays, each would be copied once more.
        found: list[Any] = executor.run(program, feed=feed, fetch_list=fetches, return_numpy=False)
        return found

    return step


def relu2() -> Step:
    def build(x: Any, dy: Any) -> list[Any]:
        y = F.relu(x)
        return [y, *static.gradients([y], [x], [dy])]

    return _step(data.relu2(), ("x", "dy"), build)


def chain300() -> Step:
    def build(x: Any, w: Any, dy: Any) -> list[Any]:
        w.stop_gradient = False
        y = x
        for _ in range(30):
            y = y * w
            y = y + x
            y = paddle.tanh(y)
            y = y - 0.2
            y = paddle.sin(y)
            y = y * y
            y = -y
            y = paddle.exp(y)
            y = y * 1.5
            y = y - x
        return [y, *static.gradients([y], [x, w], [dy])]

    return _step(data.chain300(), ("x", "w", "dy"), build)


def _train(loss: Any, parameters: list[Any], momentum: float) -> list[Any]:
    """Append the backward pass and the updates; return the loss and the gradients."""
    optimizer = paddle.optimizer.Momentum(0.01, momentum, parameters=parameters)
    pairs = optimizer.minimize(loss)[1]
    grads = {id(parameter): grad for parameter, grad in pairs}
    return [loss, *[grads[id(parameter)] for parameter in parameters]]


def _mlp(arrays: data.Arrays) -> Step:
    def build(x: Any, target: Any) -> list[Any]:
        parameters = _parameters(arrays)
        w1, b1, w2, b2, w3, b3 = parameters
        h = F.relu(_linear(x, w1, b1))
        h = F.relu(_linear(h, w2, b2))
        return _train(F.cross_entropy(_linear(h, w3, b3), target), parameters, 0.9)

    return _step(arrays, ("x", "target"), build)


def mlp() -> Step:
    return _mlp(data.mlp())


def mlp256() -> Step:
    return _mlp(data.mlp256())


def lstm50() -> Step:
    arrays = data.lstm50()

    def build(x: Any, zeros: Any, dy: Any) -> list[Any]:
        x.stop_gradient = True
        w, u, b = (_parameter(arrays[name]) for name in ("w", "u", "b"))
        h = c = zeros
        for t in range(50):
            gates = _linear(x[t], w, b) + paddle.matmul(h, u, transpose_y=True)
            i, f, g, o = paddle.chunk(gates, 4, 1)
            c = F.sigmoid(f) * c + F.sigmoid(i) * paddle.tanh(g)
            h = F.sigmoid(o) * paddle.tanh(c)
        return [h, c, *static.gradients([h], [w, u, b], [dy])]

    return _step(arrays, ("x", "zeros", "dy"), build)


def demo_step() -> Step:
    arrays = data.demo_step()

    def build(x: Any, target: Any) -> list[Any]:
        x.stop_gradient = True
        parameters = _parameters(arrays)
        c1, cb1, c2, cb2, w1, b1, w2, b2 = parameters
        h = F.relu(F.max_pool2d(F.conv2d(x, c1, cb1), 2))
        h = F.relu(F.max_pool2d(F.conv2d(h, c2, cb2), 2))
        h = F.relu(_linear(paddle.flatten(h, 1), w1, b1))
        return _train(F.cross_entropy(_linear(h, w2, b2), target), parameters, 0.5)

    return _step(arrays, ("x", "target"), build)


def gelu() -> Step:
    scale = math.sqrt(2.0 / math.pi)

    def build(x: Any, dy: Any) -> list[Any]:
        inner = scale * (x + 0.044715 * (x * x * x))
        y = 0.5 * x * (1.0 + paddle.tanh(inner))
        return [y, *static.gradients([y], [x], [dy])]

    return _step(data.gelu(), ("x", "dy"), build)


def transformer() -> Step:
    arrays = data.transformer()
    batch, tokens, width = arrays["x"].shape
    heads = 4

    def attention(x: Any, wq: Any, bq: Any, wp: Any, bp: Any) -> Any:
        qkv = _linear(x, wq, bq).reshape([batch, tokens, 3, heads, width // heads])
        q, k, v = paddle.unbind(qkv.transpose([2, 0, 3, 1, 4]), 0)
        scores = paddle.matmul(q, k, transpose_y=True) * (width // heads) ** -0.5
        mixed = paddle.matmul(F.softmax(scores, -1), v).transpose([0, 2, 1, 3])
        return _linear(mixed.reshape([batch, tokens, width]), wp, bp)

    def build(x: Any, dy: Any) -> list[Any]:
        parameters = _parameters(arrays)
        g1, gb1, wq, bq, wp, bp, g2, gb2, w1, b1, w2, b2 = parameters
        y = x + attention(F.layer_norm(x, width, g1, gb1), wq, bq, wp, bp)
        y = y + _linear(F.gelu(_linear(F.layer_norm(y, width, g2, gb2), w1, b1)), w2, b2)
        return [y, *static.gradients([y], [x, *parameters], [dy])]

    return _step(arrays, ("x", "dy"), build)
