"""The works as a user of JAX writes them: pure functions, each iteration compiled by `jax.jit`.

Training steps take parameters and momentum and return the new ones; `donate_argnums` lets XLA write
them where the old ones are. Each iteration waits for its results.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from tests.benchmarks import data

Step = Callable[[], list[Any]]


def _waits(run: Callable[..., Any], *arguments: Any) -> Step:
    """Return an iteration of a compiled function without state."""
    compiled = jax.jit(run)
    given = jax.tree.map(jnp.asarray, arguments)
    return lambda: list(jax.block_until_ready(compiled(*given)))


def _pullback(function: Callable[..., Any], dy: Any) -> Callable[..., Any]:
    def run(*leaves: Any) -> list[Any]:
        y, back = jax.vjp(function, *leaves)
        return [y, *back(jnp.asarray(dy))]

    return run


def _trained(
    loss: Callable[..., Any], arrays: data.Arrays, rate: float, momentum: float, *inputs: Any
) -> Step:
    """Return training steps by stochastic gradient descent with momentum."""

    def run(parameters: Any, velocity: Any, *inputs: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(parameters, *inputs)
        velocity = [momentum * v + g for v, g in zip(velocity, grads, strict=True)]
        parameters = [p - rate * v for p, v in zip(parameters, velocity, strict=True)]
        return parameters, velocity, value, grads

    compiled = jax.jit(run, donate_argnums=(0, 1))
    parameters = [jnp.array(p) for p in data.parameters(arrays).values()]
    state = parameters, [jnp.zeros_like(p) for p in parameters]
    given = tuple(map(jnp.asarray, inputs))

    def step() -> list[Any]:
        nonlocal state
        *new, value, grads = jax.block_until_ready(compiled(*state, *given))
        state = tuple(new)
        return [value, *grads]

    return step


def _log_softmax(x: Any) -> Any:
    return jax.nn.log_softmax(x, axis=1)


def _picked(log_p: Any, target: Any) -> Any:
    return -jnp.take_along_axis(log_p, target[:, None], 1).mean()


def relu2() -> Step:
    arrays = data.relu2()
    return _waits(_pullback(jax.nn.relu, arrays["dy"]), arrays["x"])


def chain300() -> Step:
    arrays = data.chain300()

    def chain(x: Any, w: Any) -> Any:
        y = x
        for _ in range(30):
            y = jnp.tanh(y * w + x) - 0.2
            y = jnp.sin(y)
            y = jnp.exp(-(y * y)) * 1.5 - x
        return y

    return _waits(_pullback(chain, arrays["dy"]), arrays["x"], arrays["w"])


def _mlp(arrays: data.Arrays) -> Step:
    def loss(parameters: Any, x: Any, target: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = parameters
        h = jax.nn.relu(x @ w1.T + b1)
        h = jax.nn.relu(h @ w2.T + b2)
        return _picked(_log_softmax(h @ w3.T + b3), target)

    return _trained(loss, arrays, 0.01, 0.9, arrays["x"], arrays["target"])


def mlp() -> Step:
    return _mlp(data.mlp())


def mlp256() -> Step:
    return _mlp(data.mlp256())


def third_order() -> Step:
    arrays = data.third_order()
    *parameters, last_bias = data.parameters(arrays).values()

    def loss(parameters: Any, x: Any) -> Any:
        w1, b1, w2, b2, w3 = parameters

        def u(x: Any) -> Any:
            h = jnp.tanh(x @ w1.T + b1)
            h = jnp.tanh(h @ w2.T + b2)
            return h @ w3.T + last_bias

        derivative = u
        for _ in range(3):
            inner = derivative
            derivative = jax.grad(lambda x, inner=inner: inner(x).sum())
        return (derivative(x) ** 2).mean()

    def run(parameters: Any, x: Any) -> list[Any]:
        value, grads = jax.value_and_grad(loss)(parameters, x)
        return [value, *grads]

    return _waits(run, parameters, arrays["x"])


def lstm50() -> Step:
    arrays = data.lstm50()
    x, zeros, dy = (jnp.asarray(arrays[name]) for name in ("x", "zeros", "dy"))

    def unrolled(w: Any, u: Any, b: Any) -> Any:
        h = c = zeros
        for t in range(50):
            i, f, g, o = jnp.split(x[t] @ w.T + b + h @ u.T, 4, 1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return h, c

    def run(w: Any, u: Any, b: Any) -> list[Any]:
        h, back, c = jax.vjp(unrolled, w, u, b, has_aux=True)
        return [h, c, *back(dy)]

    return _waits(run, arrays["w"], arrays["u"], arrays["b"])


def demo_step() -> Step:
    arrays = data.demo_step()

    def pooled(x: Any) -> Any:
        window = (1, 1, 2, 2)
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")

    def convolved(x: Any, w: Any, b: Any) -> Any:
        y = jax.lax.conv_general_dilated(x, w, (1, 1), "VALID")
        return y + b[None, :, None, None]

    def loss(parameters: Any, x: Any, target: Any) -> Any:
        k1, c1, k2, c2, w1, b1, w2, b2 = parameters
        x = jax.nn.relu(pooled(convolved(x, k1, c1)))
        x = jax.nn.relu(pooled(convolved(x, k2, c2)))
        x = jax.nn.relu(x.reshape(len(x), -1) @ w1.T + b1)
        return _picked(_log_softmax(x @ w2.T + b2), target)

    return _trained(loss, arrays, 0.01, 0.5, arrays["x"], arrays["target"])


def gelu() -> Step:
    arrays = data.gelu()
    scale = math.sqrt(2.0 / math.pi)

    def gelu_of(x: Any) -> Any:
        inner = scale * (x + 0.044715 * (x * x * x))
        return 0.5 * x * (1.0 + jnp.tanh(inner))

    return _waits(_pullback(gelu_of, arrays["dy"]), arrays["x"])


def transformer() -> Step:
    arrays = data.transformer()
    parameters = list(data.parameters(arrays).values())
    batch, tokens, width = arrays["x"].shape
    heads = 4

    def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt(variance + 1e-5) * weight + bias

    def attention(x: Any, w_qkv: Any, b_qkv: Any, w_proj: Any, b_proj: Any) -> Any:
        qkv = (x @ w_qkv.T + b_qkv).reshape(batch, tokens, 3, heads, width // heads)
        q, k, v = qkv.transpose(2, 0, 3, 1, 4)
        scores = q @ k.swapaxes(-2, -1) * (width // heads) ** -0.5
        mixed = jax.nn.softmax(scores, axis=-1) @ v
        return mixed.transpose(0, 2, 1, 3).reshape(batch, tokens, width) @ w_proj.T + b_proj

    def block(x: Any, *leaves: Any) -> Any:
        norm1_w, norm1_b, w_qkv, b_qkv, w_proj, b_proj, norm2_w, norm2_b, w1, b1, w2, b2 = leaves
        x = x + attention(layer_norm(x, norm1_w, norm1_b), w_qkv, b_qkv, w_proj, b_proj)
        h = layer_norm(x, norm2_w, norm2_b) @ w1.T + b1
        return x + jax.nn.gelu(h, approximate=False) @ w2.T + b2

    return _waits(_pullback(block, arrays["dy"]), arrays["x"], *parameters)
