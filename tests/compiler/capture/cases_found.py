"""Cases that random programs have found."""

from __future__ import annotations

import oneflow_lite as flow
from tests.compiler.capture.worlds import attempt, leaf, tensor

grad = flow.autograd.grad


def gradient_dropped_inside(compiled):
    w = leaf(1.0, 2.0)

    def f(x):
        (w * x).sum().backward()
        w.grad = None
        return (w * x).exp()

    f = compiled(f)
    for i in range(5):
        y = f(tensor(0.5, float(i)))
        if i != 2:
            y.sum().backward()
        yield y, w


def gradient_in_another_graph(compiled):
    w, p = leaf(1.0, 2.0), leaf(3.0, 4.0)

    def f(x):
        (w * x).sum().backward()

    f = compiled(f)
    f(tensor(1.0, 1.0))
    for i in range(3):
        y = (w.grad * p).sum()
        f(tensor(1.0, float(i)))  # adds to what y keeps
        yield attempt(y.backward), w, p, w.grad._version


def result_written_inside(compiled):
    def f(x):
        y = x * 2
        y.add_(1)
        y[0] = 5
        return y

    f = compiled(f)
    for i in range(3):
        y = f(tensor(1.0, float(i)))
        yield y, y._version


def one_element_of_several_results(compiled):
    f = compiled(lambda x: x.max(0))
    for i in range(3):
        values, indices = f(tensor(1.0, 0.5 * i, float(i)))
        yield values, indices, str(values.device)


def view_of_an_argument_that_is_a_view(compiled):
    f = compiled(lambda x: (x * 2, x.reshape(2, 2), x[1:]))
    for i in range(3):
        base = flow.arange(8.0).reshape(2, 4) + i
        y, v, w = f(base[1])
        v.add_(1)
        yield y, v, w, base, base._version, v.is_view()


def view_made_without_grad(compiled):
    def f(x):
        with flow.no_grad():
            return (x * 2).expand(2, 2)

    f = compiled(f)
    for i in range(3):
        y = f(leaf(1.0, float(i)))
        yield y, y.is_view(), attempt(y.mul_, leaf(2.0, 3.0))


def detached_and_reshaped(compiled):
    w = tensor(1.0, 2.0)

    def f(x):
        y = w.detach()
        y.unsqueeze_(0)
        return y, x * 2

    f = compiled(f)
    for i in range(4):
        y, z = f(tensor(1.0, float(i)))
        yield y, z, y._version, w._version


def view_and_what_was_detached_from_it(compiled):
    def f(x, view_first):
        view = (x * 2).reshape(2, 1)
        alias = view.detach()
        return (view, alias) if view_first else (alias, view)

    f = compiled(f)
    for i in range(8):
        x = leaf(1.0, float(i)) if i % 4 > 1 else tensor(1.0, float(i))
        y, z = f(x, i < 4)
        saves = y.square() + z.square()  # both notice a write to either
        z.detach().add_(1)
        yield (
            y,
            z,
            y.memory is z.memory,
            y._version,
            saves.requires_grad and attempt(saves.sum().backward),
        )


def second_derivative_through_a_write(compiled):
    def f(x, factor):
        y = x * 1
        y.mul_(y)
        y.mul_(factor)
        return y.sin()

    f = compiled(f)
    for i in range(3):
        x, factor = leaf(1.0, 0.5 * i), leaf(0.5, 2.0)
        dx, df = grad(f(x, factor).sum(), [x, factor], create_graph=True)
        yield dx, df, grad((dx * df).sum(), [x, factor])


def second_derivative_through_a_write_to_a_view(compiled):
    def f(x):
        y = x * 2
        y[1:].mul_(x[:1])
        y[0].exp_()
        return y * y

    f = compiled(f)
    for i in range(3):
        x = leaf(1.0, 0.5 * i, 3.0)
        (dx,) = grad(f(x).sum(), x, create_graph=True)
        yield dx, grad(dx.square().sum(), x)


def history_of_what_is_not_needed(compiled):
    def f(x, y):
        unused = y * 2
        return x.exp() + unused.detach()

    f = compiled(f)
    w = leaf(2.0, 3.0)
    y = w.exp()
    y.sum().backward()  # what led to y is released
    for i in range(3):
        x = leaf(1.0, float(i))
        z = f(x, y)
        yield attempt(z.sum().backward), z, x, w


def released_result_beside_another(compiled):
    w = leaf(1.0, 2.0)

    def f(x):
        loss = (w * w * x).sum()
        loss.backward()
        return loss * 1, x.exp()

    f = compiled(f)
    for i in range(3):
        x = leaf(0.5, float(i))
        for parameters in ([w], [x], [w, x]):
            loss, y = f(x)
            yield attempt(grad, [loss, y.sum()], parameters, allow_unused=True), w, x


def hook_inside_and_a_gradient_of_one_result(compiled):
    w = leaf(1.0, 2.0)

    def f(x):
        y = x * w
        y.register_hook(lambda d: d * 5)
        return y.exp(), y * 3

    f = compiled(f)
    for i in range(4):
        y, z = f(tensor(0.5, float(i)))
        (z if i % 2 else y).sum().backward()
        yield y, z, w


def write_before_an_exception(compiled):
    b, w = tensor(1.0, 2.0), leaf(1.0, 2.0)

    def f(p):
        b.mul_(2)
        return flow.bernoulli(p)

    f = compiled(f)
    for p in (0.5, 0.25, 2.0):
        y = (b * w).sum()  # keeps b
        yield attempt(f, tensor(p, p)), attempt(y.backward), b, b._version


def second_derivative_through_a_constant_that_is_written(compiled):
    def f(x):
        y = flow.zeros(2, dtype=flow.float64)
        y[0] = x.sum()
        y[1:] += x.prod()
        return y.exp()

    f = compiled(f)
    for i in range(3):
        x = leaf(1.0, 0.5 * i)
        (dx,) = grad(f(x).sum(), x, create_graph=True)
        yield dx, grad(dx.square().sum(), x)


def hook_inside_on_a_view(compiled):
    w = leaf(1.0, 2.0)

    def f(x):
        y = w.view(2, 1)
        y.register_hook(lambda d: d * 5)
        z = x * w
        v = z[:1]
        v.register_hook(lambda d: d * 7)
        return y[1], v[None]

    f = compiled(f)
    for i in range(5):
        y, v = f(tensor(0.5, float(i)))
        (y.sum() + v.sum()).backward()
        yield y, v, w


def view_that_keeps_its_gradient(compiled):
    w = leaf(1.0, 2.0)

    def f(x):
        y = w[1:]
        y.retain_grad()
        return y

    f = compiled(f)
    for i in range(5):
        y = f(tensor(0.5, float(i)))
        y.sum().backward()
        yield y, w


def gradient_dropped_of_what_requires_none(compiled):
    w = tensor(1.0, 2.0)

    def f(x):
        w.grad = None
        return x * w

    f = compiled(f)
    for i in range(5):
        if i in (1, 4):
            w.grad = tensor(1.0, float(i))
        yield f(tensor(0.5, float(i))), w.grad


def gradient_of_a_frozen_parameter(compiled):
    w, frozen = leaf(1.0, 2.0), tensor(3.0, 4.0)
    optimizer = flow.optim.SGD([w, frozen], lr=0.5)

    def f(x):
        optimizer.zero_grad()
        (w * x * frozen).sum().backward()
        optimizer.step()
        return frozen * x

    f = compiled(f)
    for i in range(6):
        if i in (3, 5):
            frozen.grad = tensor(1.0, float(i))
        yield f(tensor(0.5, float(i))), w, frozen, frozen.grad
