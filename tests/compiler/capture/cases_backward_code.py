"""Cases for users' code that a backward pass enters: hooks and gradients of Functions."""

from __future__ import annotations

import oneflow_lite as flow
from oneflow_lite.utils.checkpoint import checkpoint
from tests.compiler.capture.worlds import Box, leaf

SCALE = 2.0
SEEN = []


class ByGlobal(flow.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        return dy * SCALE


class ByContext(ByGlobal):
    @staticmethod
    def forward(ctx, x):
        ctx.box = Box.shared
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        return dy * ctx.box.rate


class Noted(ByGlobal):
    @staticmethod
    def backward(ctx, dy):
        SEEN.append(dy.shape[0])
        return dy * 3


def _gradients(compiled, f):
    global SCALE
    SEEN.clear()
    f = compiled(f)
    for SCALE in (2.0, 3.0, 4.0, 4.0):
        Box.shared.rate = SCALE
        x = leaf(1.0, 2.0)
        y = f(x)
        SCALE, Box.shared.rate = SCALE + 1, SCALE + 1  # read when the gradient is taken
        y.sum().backward()
        yield y, x, SEEN


Box.shared = Box()


def gradient_that_reads_a_global(compiled):
    yield from _gradients(compiled, lambda x: ByGlobal.apply(x))


def gradient_that_reads_its_context(compiled):
    yield from _gradients(compiled, lambda x: ByContext.apply(x))


def gradient_with_an_effect(compiled):
    yield from _gradients(compiled, lambda x: Noted.apply(x))


def _hooked(hook):
    def f(x):
        y = x * 2
        y.register_hook(hook)
        return y.exp()

    return f


def hook_that_reads_a_global(compiled):
    yield from _gradients(compiled, _hooked(lambda d: d * SCALE))


def hook_with_an_effect(compiled):
    yield from _gradients(compiled, _hooked(lambda d: SEEN.append(d.shape[0])))


def hook_that_computes(compiled):
    yield from _gradients(compiled, _hooked(lambda d: flow.relu(d) * 2))


def numbers_drawn_again_in_the_backward_pass(compiled):
    drop = flow.nn.Sequential(flow.nn.Dropout(0.5))

    def forward(x):
        return checkpoint(drop, x, use_reentrant=False)

    def step(x):
        y = forward(x)
        y.sum().backward()
        return y.detach(), x.grad

    forward, step = compiled(forward), compiled(step)
    for i in range(4):
        x = leaf(1.0, 2.0, 3.0, float(i))
        y = forward(x)
        flow.rand(i)
        y.sum().backward()
        yield y, x, step(leaf(1.0, 2.0, 3.0, float(i))), flow.rand(1)


class Noisy(flow.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * flow.rand(2)


def numbers_drawn_in_the_backward_pass_alone(compiled):
    f = compiled(lambda x: Noisy.apply(x) + flow.rand(2))
    for i in range(4):
        x = leaf(1.0, float(i))
        y = f(x)
        y.sum().backward()
        yield y, x
