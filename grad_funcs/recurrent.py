"""Gradients of recurrent layers: a kernel goes back through the sequence.

Where the backward pass is itself to be differentiated, the layer runs once more, step by step, in
ops with derivatives of any order, and the gradient is taken of these ops.
"""

from math import prod

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.grad_funcs.composed import gradients_of, is_followed


def _lstm_step(F, x, states, weight, projection):
    h, c = states
    i, f, g, o = F.chunk(x + F.matmul_nt(h, weight), 4, -1)
    c = F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(g)
    h = F.sigmoid(o) * F.tanh(c)
    return h if projection is None else F.matmul_nt(h, projection), c


def _gru_step(F, x, states, weight, bias):
    (h,) = states
    a = F.linear(h, weight, bias)
    xr, xz, xn = F.chunk(x, 3, -1)
    r, z, n = F.chunk(a, 3, -1)
    n = F.tanh(xn + F.sigmoid(xr + r) * n)
    return (n + F.sigmoid(xz + z) * (h - n),)


def _tanh_step(F, x, states, weight):
    return (F.tanh(x + F.matmul_nt(states[0], weight)),)


def _relu_step(F, x, states, weight):
    return (F.relu(x + F.matmul_nt(states[0], weight)),)


def _run(F, step, x, states, weights, sizes, reverse):
    """Return y and the last states of a layer; for `sizes` see the kernels."""
    count, lead = states[0].shape[0], x.shape[:-1]
    counts = [count] * lead[0] if sizes is None else sizes.tolist()
    x = F.reshape(x, shape=(prod(lead), x.shape[-1]))
    parts = F.split(x, counts, 0)
    ys = [None] * len(parts)
    order = range(len(parts))
    for t in reversed(order) if reverse else order:
        n = counts[t]
        moved = step(F, parts[t], [F.narrow(s, 0, 0, n) for s in states], *weights)
        ys[t] = moved[0]
        resting = [F.narrow(s, 0, n, count - n) for s in states]
        states = [F.cat(pair, 0) for pair in zip(moved, resting, strict=True)]
    y = F.cat(ys, 0)
    return F.reshape(y, shape=(*lead, y.shape[-1])), *states


def _step_by_step(F, ctx, step, inputs, count, douts):
    """Return the gradients of all inputs, recorded; inputs begin with x and `count` states."""

    def run(copies):
        x, states, weights = copies[0], copies[1 : 1 + count], copies[1 + count : -1]
        return _run(F, step, x, states, weights, inputs[-1], ctx.reverse)

    return gradients_of(F, ctx, run, inputs, douts)


@register_grad_func(
    "lstm_layer", saves="x, h0, c0, weight, projection, sizes, y0, y3, y4", materialize=False
)
def lstm_layer_grad(F, ctx, dy, dh, dc, dgates, dcells):
    inputs = (ctx.h0, ctx.c0, ctx.weight, ctx.projection, ctx.sizes)
    if is_followed(ctx.x):
        return _step_by_step(F, ctx, _lstm_step, (ctx.x, *inputs), 2, (dy, dh, dc))
    saved = (ctx.y0, ctx.y3, ctx.y4)
    gradients = F.lstm_layer_grad(*inputs, *saved, dy, dh, dc, reverse=ctx.reverse)
    return *gradients, *(None,) * (6 - len(gradients))


@register_grad_func("gru_layer", saves="x, h0, weight, bias, sizes, y0, y2, y3", materialize=False)
def gru_layer_grad(F, ctx, dy, dh, dgates, dinner):
    inputs = (ctx.h0, ctx.weight, ctx.bias, ctx.sizes)
    if is_followed(ctx.x):
        return _step_by_step(F, ctx, _gru_step, (ctx.x, *inputs), 1, (dy, dh))
    gradients = F.gru_layer_grad(*inputs, ctx.y0, ctx.y2, ctx.y3, dy, dh, reverse=ctx.reverse)
    return *gradients, *(None,) * (5 - len(gradients))


@register_grad_func("rnn_layer", saves="x, h0, weight, sizes, y0", materialize=False)
def rnn_layer_grad(F, ctx, dy, dh):
    inputs = (ctx.h0, ctx.weight, ctx.sizes)
    if is_followed(ctx.x):
        step = _tanh_step if ctx.nonlinearity == "tanh" else _relu_step
        return _step_by_step(F, ctx, step, (ctx.x, *inputs), 1, (dy, dh))
    attrs = {"reverse": ctx.reverse, "nonlinearity": ctx.nonlinearity}
    return *F.rnn_layer_grad(*inputs, ctx.y0, dy, dh, **attrs), None
