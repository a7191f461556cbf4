"""Cases for what a tensor's history, its gradient and its views do at the edge of a call."""

from __future__ import annotations

import oneflow_lite as flow
from oneflow_lite.errors import InplaceError
from tests.compiler.capture.models import batch, net, training_step
from tests.compiler.capture.worlds import attempt, leaf, tensor

grad = flow.autograd.grad


def captured_tensor_with_history(compiled):
    w = leaf(1.0, 2.0)
    h = w.exp()
    f = compiled(lambda x: (x * h).sin())
    for i in range(3):
        y = f(tensor(1.0, float(i)))
        y.sum().backward(retain_graph=i < 2)
        yield y, w
    yield attempt(f(tensor(1.0, 1.0)).sum().backward), w


def history_of_a_captured_tensor_changes(compiled):
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)
    h = w * 2
    f = compiled(lambda x: (x * h).sin())
    for i in range(3):
        y = f(tensor(1.0, 0.5))
        y.sum().backward(retain_graph=True)
        yield y, w, v
        h.mul_(v)


def captured_tensor_written_before_backward(compiled):
    w = leaf(1.0, 2.0)
    f = compiled(lambda x: (x * w).exp())
    for i in range(3):
        x = leaf(0.5, 0.25)
        y = f(x)
        if i:
            with flow.no_grad():
                w.add_(1)
        yield attempt(y.sum().backward), x, w


def argument_written_and_returned(compiled):
    def f(x):
        x.mul_(2)
        return x

    f = compiled(f)
    for i in range(3):
        w = leaf(1.0, 2.0)
        x = w * (i + 1)
        y = f(x)
        (y * y).sum().backward()
        yield y is x, x, x._version, w


def view_of_an_argument_written(compiled):
    def f(x):
        v = x[0]
        v.mul_(5)
        return x, v * 2

    f = compiled(f)
    for i in range(3):
        w = leaf(1.0, 2.0)
        x = w * (i + 1)
        y, z = f(x)
        (y.sum() + z.sum()).backward()
        yield y is x, x, z, w


def tensors_swapped(compiled):
    def f(x, y):
        x.data, y.data = y.data, x.data
        return x - y

    f = compiled(f)
    x, y = tensor(1.0), tensor(2.0)
    for _ in range(3):
        yield f(x, y), x, y


def views_as_arguments(compiled):
    f = compiled(lambda x: (x * 2, x.is_view(), x._base is None, x.is_contiguous(), x.stride()))
    base = flow.arange(6.0).reshape(2, 3)
    for x in (base.clone(), base[0], base[:, 0], base.t(), base.detach(), base.clone()) * 2:
        yield f(x)


def numpy_returned(compiled):
    f = compiled(lambda x: ((x * 2).numpy(), x.numpy()))
    kept = []
    for i in range(3):
        x = tensor(float(i))
        kept.append(f(x))
        x.add_(1)
        yield kept, x


def comparisons_by_python(compiled):
    f = compiled(lambda x, y: (max(x, y) * 2, sorted([x, y])[0] * 3, x in [y]))
    for values in ((1.0, 2.0), (2.0, 1.0), (3.0, 3.0)) * 2:
        yield f(*map(tensor, values))


def rows_by_iteration(compiled):
    def f(x):
        total = flow.zeros(2)
        for i, row in enumerate(x):
            total = total + row * i
        return total, len(x), sum(x)

    f = compiled(f)
    for n in (1, 3, 2) * 2:
        yield f(flow.ones(n, 2))


def gradient_replaced_inside(compiled):
    w = leaf(1.0, 2.0)

    def f(x):
        w.grad = None
        (x * w).sum().backward()
        w.grad = w.grad * 0.5
        return x * 2

    f = compiled(f)
    for i in range(3):
        yield f(tensor(1.0, float(i))), w
        w.grad.add_(i)


def gradient_scaled_inside(compiled):
    w = leaf(1.0, 2.0)

    def f(x):
        (x * w).sum().backward()
        w.grad.mul_(0.5)
        return x * 2

    f = compiled(f)
    for i in range(4):
        yield f(tensor(1.0, float(i))), w
        if i == 1:
            w.grad = None


def gradient_cleared_inside(compiled):
    w = leaf(1.0, 2.0)

    def f(x):
        (x * w).sum().backward()
        result = w.grad.clone()
        w.grad = None
        return result

    f = compiled(f)
    for i in range(3):
        yield f(tensor(1.0, float(i))), w


def several_roots_inside(compiled):
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)

    def f(x):
        a, b = (x * w).exp(), (x * v).sin()
        flow.autograd.backward([a, b.sum()], [flow.ones_like(a), None], inputs=[w])
        return b

    f = compiled(f)
    for i in range(3):
        y = f(tensor(1.0, i / 4))
        yield y, w, v


def graph_kept_by_the_caller(compiled):
    w = leaf(1.0, 2.0)

    def f(x):
        y = (x * w).exp()
        y.sum().backward(retain_graph=True)
        return y

    f = compiled(f)
    for i in range(3):
        y = f(tensor(0.5, i / 4))
        yield y, w
        yield attempt(y.sum().backward), w


def mode_switched_inside(compiled):
    model = net()
    model.append(flow.nn.Dropout(0.5))

    def f(x, training):
        model.train(training)
        return model(x)

    f = compiled(f)
    for training in (True, False, True) * 2:
        yield f(batch(0)[0], training), model.training, model[3].training
        model.train(not training)


def parameters_frozen_inside(compiled):
    model = net()

    def f(x, frozen):
        model[0].requires_grad_(not frozen)
        return model(x).sum()

    f = compiled(f)
    for frozen in (False, True, False) * 2:
        model.zero_grad()
        f(batch(0)[0], frozen).backward()
        yield model


def optimizer_made_inside(compiled):
    model = net()

    def f(x, target):
        return training_step(model, flow.optim.SGD(model.parameters(), lr=0.5))(x, target)

    f = compiled(f)
    for i in range(3):
        yield f(*batch(i)), model


def random_state_restored(compiled):
    f = compiled(lambda x: x * flow.rand(2))
    state = flow.get_rng_state()
    for i in range(4):
        if i == 2:
            flow.set_rng_state(state)
        yield f(tensor(1.0, 2.0)), flow.rand(1)


def hook_that_calls_a_compiled_function(compiled):
    w = leaf(1.0, 2.0)
    double = compiled(lambda d: d * 2)
    w.register_hook(lambda d: double(d))
    f = compiled(lambda x: (x * w).sum())
    for i in range(3):
        f(tensor(1.0, float(i))).backward()
        yield w, double(tensor(1.0, 1.0))


def gradient_of_random_results(compiled):
    def f(x):
        return x * flow.randn(3) + flow.nn.functional.dropout(x, 0.5)

    f = compiled(f)
    for i in range(3):
        x = leaf(1.0, 2.0, 3.0)
        y = f(x)
        (dx,) = grad(y.square().sum(), x, create_graph=True)
        dx.square().sum().backward()
        yield y, dx, x


def views_from_outside_whose_base_is_written(compiled):
    p = leaf(1.0, 2.0)
    base = p * 1
    view = base[:1]
    f = compiled(lambda x: x * view)
    for i in range(6):
        if i in (3, 5):
            base.mul_(3)
        p.grad = None
        y = f(tensor(1.0, float(i)))
        y.sum().backward(retain_graph=True)
        yield y, p


def views_that_are_out_of_date(compiled):
    def used(x):
        try:
            return x * 2
        except InplaceError:
            return None

    def outside(x):
        try:
            return x * parts[0]
        except InplaceError:
            return None

    used, unused, outside = compiled(used), compiled(lambda x, y: y * 2), compiled(outside)
    base = leaf(1.0, 2.0) * 1
    parts = base.split(1)
    for i in range(6):
        given = leaf(1.0, float(i)) * 1
        first = given.split(1)[0]
        if i in (3, 5):
            given.add_(1)
        if i == 4:
            base.add_(1)
        yield used(first), unused(first, tensor(float(i))), outside(tensor(float(i)))
