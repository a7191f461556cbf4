"""Results that were made from other results of the same call, or share memory with what is kept."""

from __future__ import annotations

import oneflow_lite as flow
from tests.compiler.capture.worlds import attempt, leaf, tensor

grad = flow.autograd.grad


def _features_and_loss(x):
    h = x * 2
    return h, h.exp().sum()


def hook_on_a_result_inside_of_another(compiled):
    f = compiled(_features_and_loss)
    for i in range(4):
        x = leaf(1.0, float(i))
        h, loss = f(x)
        h.register_hook(lambda g: g * 10)
        (loss + h.sum() if i % 2 else loss).backward()
        yield x, h, loss


def gradient_of_a_result_inside_of_another(compiled):
    f = compiled(_features_and_loss)
    for i in range(4):
        x = leaf(1.0, float(i))
        h, loss = f(x)
        h.retain_grad()
        both = grad(loss, [h, x], retain_graph=True)
        yield both, grad(loss, h, retain_graph=True, allow_unused=True)
        loss.backward(inputs=[h] if i % 2 else None)
        yield x, h, h.grad


def _summed_gradients(f):
    for i in range(4):
        x = leaf(1.0, float(i))
        h, y = f(x)
        (h.sum() + y.sum()).backward()
        yield x


def hook_on_what_two_results_share(compiled):
    def f(x):
        t = x * 1
        t.register_hook(lambda d: d * d)
        h = t * 3
        return h, h * t.sin()

    yield from _summed_gradients(compiled(f))


class _Clipped(flow.autograd.Function):
    """A gradient that depends on the sum that it gets, and not on each part alone."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, dy):
        return dy.clamp(-1, 1)


def clipped_gradient_of_what_two_results_share(compiled):
    def f(x):
        t = _Clipped.apply(x)
        h = t * 0.75
        return h, h * t.sin()

    yield from _summed_gradients(compiled(f))


def curvature_by_a_result_inside_of_another(compiled):
    f = compiled(_features_and_loss)
    for i in range(4):
        x = leaf(1.0, float(i))
        h, loss = f(x)
        (slope,) = grad(loss, h, create_graph=True)
        yield slope, grad(slope.sum(), [h, x])


def result_inside_of_another_is_written(compiled):
    f = compiled(_features_and_loss)
    for i in range(4):
        x = leaf(1.0, float(i))
        h, loss = f(x)
        h.mul_(2)
        yield h, attempt(loss.backward), x


def view_of_a_hidden_tensor_used_further(compiled):
    def f(x):
        h = x * 2
        v = h[0]
        return v, (v.exp() + h[1]).sum()

    f = compiled(f)
    for i in range(4):
        x = leaf(1.0, float(i))
        v, loss = f(x)
        v.register_hook(lambda g: g * 5)
        loss.backward()
        yield x, v


def view_of_an_argument_used_further(compiled):
    def f(x):
        v = x[0]
        return v, (v.exp() + x[1]).sum()

    f = compiled(f)
    for i in range(4):
        x = leaf(1.0, float(i))
        v, loss = f(x)
        v.retain_grad()
        loss.backward()
        yield x, v.grad


def results_made_in_three_steps(compiled):
    p = leaf(0.5, 0.6, 0.7)

    def f(x):
        a = x * p
        b = a.sin() + x
        c = a[:2] * b[1:]
        return (c.sum() + b.max() * a.prod()), a, c, b

    f = compiled(f)
    for i in range(5):
        x = leaf(0.1, 0.2, float(i))
        results = f(x)
        for y in results[1:]:
            y.retain_grad()
        results[2].register_hook(lambda g: g + 1)
        (results[0] + results[i % 4].sum()).backward()
        yield x, p, [y.grad for y in results[1:]]
        p.grad = None


def outputs_of_one_op_used_further(compiled):
    def f(x):
        a, b = (x * 2).reshape(2, 2).unbind(0)
        return a, (a * b).sum(), b.sin()

    f = compiled(f)
    for i in range(4):
        x = leaf(1.0, 2.0, 3.0, float(i))
        a, loss, _ = f(x)
        a.register_hook(lambda g: g * 5)
        loss.backward()
        yield x


def results_fed_back(compiled):
    p = leaf(0.5, 0.6)

    def f(x):
        h = (x * p).tanh()
        return h, (h * p).sin()

    f = compiled(f)
    for i in range(4):
        x = h = y = leaf(0.3, float(i))
        made = []
        for _ in range(3):
            h, y = f(y if i % 2 else h)
            h.retain_grad()
            made.append(h)
        y.sum().backward()
        yield x, [h.grad for h in made]


def kept_result_written(compiled):
    w = leaf(1.0, 2.0)

    def f(x):
        h = x * 2
        return h, (w * h).sum()

    f = compiled(f)
    for i in range(4):
        h, loss = f(tensor(1.0, float(i)))
        if i % 2:
            h.zero_()
        yield loss, attempt(loss.backward), w


def kept_memory_written_through_a_view(compiled):
    w = leaf(1.0, 2.0)

    def f(x):
        h = x * w
        d = h.detach()
        return d[:1], d, (w * d).sum()

    f = compiled(f)
    for i in range(4):
        v, _, loss = f(tensor(1.0, float(i)))
        if i % 2:
            v.zero_()
        yield loss, attempt(loss.backward), w


def part_of_a_result_kept(compiled):
    w = leaf(1.0)

    def f(x):
        h = x * 2
        return h, (w * h[:1]).sum()

    f = compiled(f)
    for i in range(4):
        h, loss = f(tensor(1.0 + i, 2.0))
        if i % 2:
            h.zero_()
        yield loss, attempt(loss.backward), w


def part_of_an_argument_kept(compiled):
    w = tensor(1.0, 2.0, 3.0, 4.0).requires_grad_()
    f = compiled(lambda x: (w * x.reshape(4)).sum())
    for i in range(6):
        base = tensor(1.0, 2.0, 3.0, float(i)).reshape(2, 2)
        loss = f(base.t() if i % 2 else base)  # the reshape of the one copies
        if i > 2:
            base.zero_()
        yield loss, attempt(loss.backward), w


def kept_gradient_written(compiled):
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)

    def f(x):
        (w * x).sum().backward()
        return (v * w.grad).sum()

    f = compiled(f)
    for i in range(6):
        loss = f(tensor(1.0, float(i)))
        if i > 2:
            w.grad.zero_()
        yield loss, attempt(loss.backward), w, v
        if i % 2:
            w.grad = None


def a_number_that_is_added_up(compiled):
    def f(x):
        total = 0.0
        total += x.sum().item()
        mean = x.sum().item()
        mean /= len(x)
        return total, mean

    f = compiled(f)
    for i in range(4):
        yield f(tensor(1.0, float(i)))
