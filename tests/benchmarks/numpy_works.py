"""The works in NumPy, forward and backward by hand: what they cost without automatic gradients.

The third-order net is left out: nobody would write those derivatives by hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import erf

from tests.benchmarks import data

Step = Callable[[], list[np.ndarray]]
Array = np.ndarray


def relu2() -> Step:
    arrays = data.relu2()
    x, dy = arrays["x"], arrays["dy"]

    def step() -> list[Array]:
        y = np.maximum(x, 0.0)
        return [y, dy * (x > 0)]

    return step


def chain300() -> Step:
    arrays = data.chain300()
    x, w, dy = arrays["x"], arrays["w"], arrays["dy"]

    def step() -> list[Array]:
        kept = []
        y = x
        for _ in range(30):
            start = y
            y = y * w
            y = y + x
            t = np.tanh(y)
            u = t - 0.2
            s = np.sin(u)
            y = s * s
            y = -y
            e = np.exp(y)
            y = e * 1.5
            y = y - x
            kept.append((start, t, u, s, e))
        g = dy
        dx = np.zeros_like(x)
        dw = np.zeros_like(w)
        for start, t, u, s, e in reversed(kept):
            dx -= g
            g = g * 1.5
            g = g * e
            g = -g
            g = g * s * 2.0
            g = g * np.cos(u)
            g = g * (1.0 - t * t)
            dx += g
            dw += g * start
            g = g * w
        dx += g
        return [y, dx, dw]

    return step


def _sgd(parameters: list[Array], velocity: list[Array], grads: list[Array], mu: float) -> None:
    for p, v, g in zip(parameters, velocity, grads, strict=True):
        v *= mu
        v += g
        p -= 0.01 * v


def _log_softmax(x: Array) -> Array:
    shifted = x - x.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def _mlp(arrays: data.Arrays) -> Step:
    parameters = [p.copy() for p in data.parameters(arrays).values()]
    velocity = [np.zeros_like(p) for p in parameters]
    w1, b1, w2, b2, w3, b3 = parameters
    x, target = arrays["x"], arrays["target"]
    rows = np.arange(len(target))

    def step() -> list[Array]:
        h1 = np.maximum(x @ w1.T + b1, 0.0)
        h2 = np.maximum(h1 @ w2.T + b2, 0.0)
        log_p = _log_softmax(h2 @ w3.T + b3)
        loss = -log_p[rows, target].mean()

        d3 = np.exp(log_p)
        d3[rows, target] -= 1.0
        d3 /= len(target)
        d2 = (d3 @ w3) * (h2 > 0)
        d1 = (d2 @ w2) * (h1 > 0)
        grads = [d1.T @ x, d1.sum(0), d2.T @ h1, d2.sum(0), d3.T @ h2, d3.sum(0)]
        _sgd(parameters, velocity, grads, 0.9)
        return [loss, *grads]

    return step


def mlp() -> Step:
    return _mlp(data.mlp())


def mlp256() -> Step:
    return _mlp(data.mlp256())


def lstm50() -> Step:
    arrays = data.lstm50()
    w, u, b, x, zeros, dy = arrays.values()

    def sigmoid(x: Array) -> Array:
        return 1.0 / (1.0 + np.exp(-x))

    def step() -> list[Array]:
        kept = []
        h = c = zeros
        for x_t in x:
            i, f, g, o = np.split(x_t @ w.T + h @ u.T + b, 4, 1)
            i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
            before = x_t, h, c
            c = f * c + i * g
            y = np.tanh(c)
            h = o * y
            kept.append((before, i, f, g, o, y))
        dh, dc = dy, zeros
        dw, du, db = np.zeros_like(w), np.zeros_like(u), np.zeros_like(b)
        for (x_t, h_t, c_t), i, f, g, o, y in reversed(kept):
            dc = dc + dh * o * (1.0 - y * y)
            d_gates = np.concatenate(
                (
                    dc * g * i * (1.0 - i),
                    dc * c_t * f * (1.0 - f),
                    dc * i * (1.0 - g * g),
                    dh * y * o * (1.0 - o),
                ),
                1,
            )
            dw += d_gates.T @ x_t
            du += d_gates.T @ h_t
            db += d_gates.sum(0)
            dh = d_gates @ u
            dc = dc * f
        return [h, c, dw, du, db]

    return step


def chain20000() -> Step:
    arrays = data.chain20000()
    x, dy = arrays["x"], arrays["dy"]

    def step() -> list[Array]:
        y = x
        for _ in range(20_000):
            y = y + 1.0
        return [y, dy.copy()]  # every derivative on the way is one

    return step


def _columns(x: Array, size: int) -> Array:
    """Return the ``size`` by ``size`` windows of ``x`` (N, C, H, W), each as a row."""
    windows = sliding_window_view(x, (size, size), axis=(2, 3))
    n, c, height, width = windows.shape[:4]
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * height * width, c * size * size)


def _conv(x: Array, weight: Array, bias: Array) -> tuple[Array, Array]:
    """Return the convolution of ``x`` and its columns, which the backward pass needs again."""
    n, _, height, width = x.shape
    out_channels, _, size, _ = weight.shape
    columns = _columns(x, size)
    y = columns @ weight.reshape(out_channels, -1).T + bias
    shape = (n, height - size + 1, width - size + 1, out_channels)
    return np.ascontiguousarray(y.reshape(shape).transpose(0, 3, 1, 2)), columns


def _conv_grad(dy: Array, columns: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Return dy as rows, and the gradients of the weight and of the bias."""
    rows = dy.transpose(0, 2, 3, 1).reshape(-1, dy.shape[1])
    return rows, (rows.T @ columns).reshape(weight.shape), rows.sum(0)


def _conv_input_grad(rows: Array, weight: Array, shape: tuple[int, ...]) -> Array:
    n, channels, height, width = shape
    out_channels, _, size, _ = weight.shape
    rest_h, rest_w = height - size + 1, width - size + 1
    d_columns = rows @ weight.reshape(out_channels, -1)
    d_columns = d_columns.reshape(n, rest_h, rest_w, channels, size, size)
    dx = np.zeros((n, height, width, channels), rows.dtype)
    for i in range(size):
        for j in range(size):
            dx[:, i : i + rest_h, j : j + rest_w] += d_columns[..., i, j]
    return dx.transpose(0, 3, 1, 2)


def _pool(x: Array) -> tuple[Array, Array]:
    """Return the 2 by 2 maxima of ``x`` and where in its window each stood."""
    n, c, height, width = x.shape
    windows = x.reshape(n, c, height // 2, 2, width // 2, 2).transpose(0, 1, 2, 4, 3, 5)
    windows = windows.reshape(n, c, height // 2, width // 2, 4)
    where = windows.argmax(-1)[..., None]
    return np.take_along_axis(windows, where, -1)[..., 0], where


def _pool_grad(dy: Array, where: Array) -> Array:
    n, c, height, width = dy.shape
    windows = np.zeros((n, c, height, width, 4), dy.dtype)
    np.put_along_axis(windows, where, dy[..., None], -1)
    windows = windows.reshape(n, c, height, width, 2, 2).transpose(0, 1, 2, 4, 3, 5)
    return windows.reshape(n, c, 2 * height, 2 * width)


def demo_step() -> Step:
    arrays = data.demo_step()
    parameters = [p.copy() for p in data.parameters(arrays).values()]
    velocity = [np.zeros_like(p) for p in parameters]
    c1, cb1, c2, cb2, w1, b1, w2, b2 = parameters
    x, target = arrays["x"], arrays["target"]
    rows = np.arange(len(target))

    def step() -> list[Array]:
        y1, columns1 = _conv(x, c1, cb1)
        pooled1, where1 = _pool(y1)
        h1 = np.maximum(pooled1, 0.0)
        y2, columns2 = _conv(h1, c2, cb2)
        pooled2, where2 = _pool(y2)
        h2 = np.maximum(pooled2, 0.0)
        flat = h2.reshape(len(x), -1)
        h3 = np.maximum(flat @ w1.T + b1, 0.0)
        log_p = _log_softmax(h3 @ w2.T + b2)
        loss = -log_p[rows, target].mean()

        d4 = np.exp(log_p)
        d4[rows, target] -= 1.0
        d4 /= len(target)
        d3 = (d4 @ w2) * (h3 > 0)
        d2 = _pool_grad((d3 @ w1).reshape(h2.shape) * (h2 > 0), where2)
        rows2, dc2, dcb2 = _conv_grad(d2, columns2, c2)
        d1 = _pool_grad(_conv_input_grad(rows2, c2, h1.shape) * (h1 > 0), where1)
        _, dc1, dcb1 = _conv_grad(d1, columns1, c1)
        grads = [dc1, dcb1, dc2, dcb2, d3.T @ flat, d3.sum(0), d4.T @ h3, d4.sum(0)]
        _sgd(parameters, velocity, grads, 0.5)
        return [loss, *grads]

    return step


def gelu() -> Step:
    arrays = data.gelu()
    x, dy = arrays["x"], arrays["dy"]
    scale = math.sqrt(2.0 / math.pi)

    def step() -> list[Array]:
        square = x * x
        t = np.tanh(scale * (x + 0.044715 * (square * x)))
        y = 0.5 * x * (1.0 + t)
        slope = scale * (1.0 + 0.134145 * square)
        return [y, dy * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope)]

    return step


def _norm(x: Array, weight: Array, bias: Array) -> tuple[Array, Array, Array]:
    centred = x - x.mean(-1, keepdims=True)
    inverse = 1.0 / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    normed = centred * inverse
    return normed * weight + bias, normed, inverse


def _norm_grad(dy: Array, normed: Array, inverse: Array, weight: Array) -> tuple[Array, ...]:
    """Return the gradients of the input, the weight and the bias."""
    d = dy * weight
    dx = d - d.mean(-1, keepdims=True) - normed * (d * normed).mean(-1, keepdims=True)
    return dx * inverse, (dy * normed).sum(0), dy.sum(0)


def transformer() -> Step:
    arrays = data.transformer()
    g1, gb1, wq, bq, wp, bp, g2, gb2, w1, b1, w2, b2 = data.parameters(arrays).values()
    batch, tokens, width = arrays["x"].shape
    heads = 4
    depth = width // heads
    x, dy = (arrays[name].reshape(batch * tokens, width) for name in ("x", "dy"))

    def split(a: Array) -> Array:
        return a.reshape(batch, tokens, 3, heads, depth).transpose(2, 0, 3, 1, 4)

    def join(a: Array) -> Array:
        return a.transpose(0, 2, 1, 3).reshape(batch * tokens, width)

    def step() -> list[Array]:
        n1, normed1, inverse1 = _norm(x, g1, gb1)
        q, k, v = split(n1 @ wq.T + bq)
        scores = q @ k.swapaxes(-2, -1) * depth**-0.5
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        mixed = join(p @ v)
        h = x + mixed @ wp.T + bp
        n2, normed2, inverse2 = _norm(h, g2, gb2)
        a = n2 @ w1.T + b1
        phi = 0.5 * (1.0 + erf(a * 0.5**0.5))
        active = a * phi
        y = h + active @ w2.T + b2

        d_active = dy @ w2
        da = d_active * (phi + a * np.exp(-0.5 * a * a) * (2.0 * math.pi) ** -0.5)
        dh, dg2, dgb2 = _norm_grad(da @ w1, normed2, inverse2, g2)
        dh += dy
        d_mixed = (dh @ wp).reshape(batch, tokens, heads, depth).transpose(0, 2, 1, 3)
        dp = d_mixed @ v.swapaxes(-2, -1)
        ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * depth**-0.5
        d_parts = np.stack([ds @ k, ds.swapaxes(-2, -1) @ q, p.swapaxes(-2, -1) @ d_mixed])
        d_qkv = d_parts.transpose(1, 3, 0, 2, 4).reshape(batch * tokens, 3 * width)
        dx, dg1, dgb1 = _norm_grad(d_qkv @ wq, normed1, inverse1, g1)
        dx += dh
        grads = [dg1, dgb1, d_qkv.T @ n1, d_qkv.sum(0), dh.T @ mixed, dh.sum(0), dg2, dgb2]
        grads += [da.T @ n2, da.sum(0), dy.T @ active, dy.sum(0)]
        return [y.reshape(batch, tokens, width), dx.reshape(batch, tokens, width), *grads]

    return step
