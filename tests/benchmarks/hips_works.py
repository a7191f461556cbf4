"""The works as a user of HIPS/autograd writes them: functions, transformed into their gradients.

It has no convolution that a user would train with, so the demo's step is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import autograd.numpy as np
from autograd import elementwise_grad, make_vjp, value_and_grad
from autograd.scipy.special import erf

from tests.benchmarks import data

Step = Callable[[], list[Any]]


def relu2() -> Step:
    arrays = data.relu2()
    x, dy = arrays["x"], arrays["dy"]

    def relu(x: Any) -> Any:
        return np.maximum(x, 0.0)

    def step() -> list[Any]:
        vjp, y = make_vjp(relu)(x)
        return [y, vjp(dy)]

    return step


def chain300() -> Step:
    arrays = data.chain300()
    x, w, dy = arrays["x"], arrays["w"], arrays["dy"]

    def chain(leaves: Any) -> Any:
        x, w = leaves
        y = x
        for _ in range(30):
            y = y * w
            y = y + x
            y = np.tanh(y)
            y = y - 0.2
            y = np.sin(y)
            y = y * y
            y = -y
            y = np.exp(y)
            y = y * 1.5
            y = y - x
        return y

    def step() -> list[Any]:
        vjp, y = make_vjp(chain)((x, w))
        return [y, *vjp(dy)]

    return step


def _mlp(arrays: data.Arrays) -> Step:
    parameters = [p.copy() for p in data.parameters(arrays).values()]
    velocity = [np.zeros_like(p) for p in parameters]
    x, target = arrays["x"], arrays["target"]
    rows = np.arange(len(target))

    def loss(parameters: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = parameters
        h = np.maximum(x @ w1.T + b1, 0.0)
        h = np.maximum(h @ w2.T + b2, 0.0)
        h = h @ w3.T + b3
        h = h - np.max(h, axis=1, keepdims=True)
        h = h - np.log(np.sum(np.exp(h), axis=1, keepdims=True))
        return -np.mean(h[rows, target])

    loss_and_grads = value_and_grad(loss)

    def step() -> list[Any]:
        value, grads = loss_and_grads(parameters)
        for p, v, g in zip(parameters, velocity, grads, strict=True):
            v *= 0.9
            v += g
            p -= 0.01 * v
        return [value, *grads]

    return step


def mlp() -> Step:
    return _mlp(data.mlp())


def mlp256() -> Step:
    return _mlp(data.mlp256())


def lstm50() -> Step:
    arrays = data.lstm50()
    w, u, b, x, zeros, dy = arrays.values()

    def sigmoid(x: Any) -> Any:
        return 1.0 / (1.0 + np.exp(-x))

    def unrolled(leaves: Any) -> Any:
        w, u, b = leaves
        h = c = zeros
        for x_t in x:
            i, f, g, o = np.split(x_t @ w.T + h @ u.T + b, 4, 1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        return np.stack([h, c])

    upstream = np.stack([dy, zeros])

    def step() -> list[Any]:
        vjp, y = make_vjp(unrolled)((w, u, b))
        return [*y, *vjp(upstream)]

    return step


def third_order() -> Step:
    arrays = data.third_order()
    *parameters, last_bias = data.parameters(arrays).values()
    x = arrays["x"]

    def loss(parameters: Any) -> Any:
        w1, b1, w2, b2, w3 = parameters

        def u(x: Any) -> Any:
            h = np.tanh(x @ w1.T + b1)
            h = np.tanh(h @ w2.T + b2)
            return h @ w3.T + last_bias

        third = elementwise_grad(elementwise_grad(elementwise_grad(u)))
        return np.mean(third(x) ** 2)

    loss_and_grads = value_and_grad(loss)

    def step() -> list[Any]:
        value, grads = loss_and_grads(parameters)
        return [value, *grads]

    return step


def chain20000() -> Step:
    arrays = data.chain20000()
    x, dy = arrays["x"], arrays["dy"]

    def chain(x: Any) -> Any:
        y = x
        for _ in range(20_000):
            y = y + 1.0
        return y

    def step() -> list[Any]:
        vjp, y = make_vjp(chain)(x)
        return [y, vjp(dy)]

    return step


def gelu() -> Step:
    arrays = data.gelu()
    x, dy = arrays["x"], arrays["dy"]
    scale = math.sqrt(2.0 / math.pi)

    def gelu_of(x: Any) -> Any:
        inner = scale * (x + 0.044715 * (x * x * x))
        return 0.5 * x * (1.0 + np.tanh(inner))

    def step() -> list[Any]:
        vjp, y = make_vjp(gelu_of)(x)
        return [y, vjp(dy)]

    return step


def transformer() -> Step:
    arrays = data.transformer()
    parameters = list(data.parameters(arrays).values())
    x, dy = arrays["x"], arrays["dy"]
    batch, tokens, width = x.shape
    heads = 4

    def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
        centred = x - np.mean(x, axis=-1, keepdims=True)
        variance = np.mean(centred * centred, axis=-1, keepdims=True)
        return centred / np.sqrt(variance + 1e-5) * weight + bias

    def attention(x: Any, w_qkv: Any, b_qkv: Any, w_proj: Any, b_proj: Any) -> Any:
        qkv = np.reshape(x @ w_qkv.T + b_qkv, (batch, tokens, 3, heads, width // heads))
        q, k, v = np.transpose(qkv, (2, 0, 3, 1, 4))
        scores = q @ np.swapaxes(k, -2, -1) * (width // heads) ** -0.5
        weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
        weights = weights / np.sum(weights, axis=-1, keepdims=True)
        mixed = np.transpose(weights @ v, (0, 2, 1, 3))
        return np.reshape(mixed, (batch, tokens, width)) @ w_proj.T + b_proj

    def block(leaves: Any) -> Any:
        x, norm1_w, norm1_b, w_qkv, b_qkv, w_proj, b_proj, norm2_w, norm2_b, w1, b1, w2, b2 = leaves
        x = x + attention(layer_norm(x, norm1_w, norm1_b), w_qkv, b_qkv, w_proj, b_proj)
        h = layer_norm(x, norm2_w, norm2_b) @ w1.T + b1
        h = 0.5 * h * (1.0 + erf(h * 0.5**0.5))
        return x + h @ w2.T + b2

    def step() -> list[Any]:
        vjp, y = make_vjp(block)((x, *parameters))
        return [y, *vjp(dy)]

    return step
