"""Tensors from outside that get other arrays, or cease to require a gradient, while a call runs."""

from __future__ import annotations

import types

import oneflow_lite as flow
from tests.compiler.capture.worlds import attempt, leaf, tensor

grad = flow.autograd.grad


def array_set_of_what_is_outside(compiled):
    w, k = tensor(1.0, 2.0), tensor(3.0, 4.0)

    @compiled
    def f(x):
        k.data = k.data * 0.5 + w * 0.5
        return x * k

    for i in range(5):
        before, shared = k.data, k.detach()
        y = f(tensor(1.0, float(i)))
        yield y, k, k._version, before, shared
        k.add_(1)


def array_set_of_an_argument(compiled):
    @compiled
    def f(x, scale):
        x.data = x.detach() * scale
        return x.grad

    for i in range(5):
        x = leaf(1.0, float(i))
        (x * x).sum().backward()
        y = x * 3
        f(x, tensor(2.0, 3.0))
        y.sum().backward()
        yield x, x._version


def array_set_and_returned(compiled):
    k = tensor(3.0, 4.0)

    @compiled
    def f(x):
        new = k.data * x
        k.data = new
        return new, k.detach(), k

    for i in range(4):
        found = f(tensor(1.5, float(i + 1)))
        found[0].mul_(2)
        yield found, k, k._version, found[2] is k


def array_set_of_what_was_read_out(compiled):
    k = tensor(3.0)

    @compiled
    def f(x):
        before = k.item(), x.tolist()
        k.data = k.data * x
        x.data = x * 2
        return before, k.item(), x.tolist()

    for i in range(4):
        yield f(tensor(float(i + 1))), k


def array_set_of_what_was_detached(compiled):
    k = tensor(3.0)

    @compiled
    def f(x):
        before = k.detach()
        k.data = k.data * x
        return before.item(), before, k

    for i in range(4):
        yield f(tensor(float(i + 1))), k


def array_set_of_what_is_then_differentiated(compiled):
    w = leaf(1.0, 2.0)

    @compiled
    def f(x):
        w.data = x.exp()
        return (x * w).sum()

    for i in range(4):
        f(tensor(1.0, float(i))).backward()
        yield w


def array_set_to_a_view_of_another(compiled):
    k, whole = tensor(3.0, 4.0), tensor(1.0, 2.0, 3.0)

    @compiled
    def f(x):
        k.data = whole.data[:2]
        return x * k

    for i in range(4):
        y = f(tensor(1.0, float(i)))
        whole.add_(1)
        yield y, k


def arrays_that_one_memory_becomes(compiled):
    a, b = tensor(1.0, 2.0), tensor(3.0, 4.0)

    @compiled
    def f(x):
        a.mul_(2)
        b.add_(a)
        return a + b + x

    for i in range(6):
        if i == 3:
            b.data = a.data
        yield f(tensor(1.0, float(i))), a, b


def gradients_switched_off_and_on(compiled):
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)

    @compiled
    def f(x):
        w.requires_grad_(False)
        loss = (w * v * x).sum()
        loss.backward()
        w.requires_grad_(True)
        return loss.detach()

    for i in range(5):
        y = (w * 2).sum()
        loss = f(tensor(1.0, float(i)))
        yield loss, w, v, grad(y, w), w.grad_fn_node is y.grad_fn.next_functions[0][0]
        v.grad = None


def gradients_switched_on_and_off(compiled):
    w = leaf(1.0, 2.0)

    @compiled
    def f(x):
        x.requires_grad_(True)
        (x * w).exp().sum().backward()
        x.requires_grad_(False)
        return x.grad

    for i in range(5):
        x = tensor(1.0, float(i))
        yield f(x), x, w
        w.grad = None


def graph_of_what_was_switched_on(compiled):
    w = leaf(1.0, 2.0)

    @compiled
    def f(x):
        x.requires_grad_(True)
        y = (x * w).sum()
        x.requires_grad_(False)
        return y

    for i in range(4):
        x = tensor(1.0, float(i))
        f(x).backward()
        yield x, w


def a_switch_that_an_error_leaves(compiled):
    w = leaf(1.0, 2.0)

    @compiled
    def f(x, n):
        w.requires_grad_(False)
        y = flow.embedding(n, w.detach().reshape(2, 1))
        w.requires_grad_(True)
        return y * x

    for i in (0, 1, 0, 5, 1):
        w.requires_grad_(True)
        found = attempt(f, tensor(1.0), flow.tensor([i]))
        yield found, w


def generator_put_back(compiled):
    def f(x):
        with flow.random.fork_rng():
            y = x * flow.rand(2)
        return y + flow.rand(2)

    f = compiled(f)
    for i in range(4):
        yield f(tensor(1.0, float(i)))


def print_options(compiled):
    def f(x):
        flow.set_printoptions(precision=2)
        return x * 2

    f = compiled(f)
    try:
        for i in range(4):
            flow.set_printoptions(precision=5)
            yield f(tensor(float(i))), str(tensor(1.23456))
    finally:
        flow.set_printoptions(precision=4)


def attributes_that_a_module_makes(compiled):
    module = types.ModuleType("module")
    module.__getattr__ = lambda name: 2.0
    f = compiled(lambda x: x * module.scale)
    for i in range(6):
        if i == 3:
            module.scale = 5.0
        yield f(tensor(1.0, float(i)))


def call_of_all_modules(compiled):
    net, call = flow.nn.Linear(2, 2).double(), flow.nn.Module.__call__
    f = compiled(lambda x: net(x))
    try:
        for i in range(6):
            if i == 3:
                flow.nn.Module.__call__ = lambda self, x: x * 2
            yield f(tensor(1.0, float(i)))
    finally:
        flow.nn.Module.__call__ = call
