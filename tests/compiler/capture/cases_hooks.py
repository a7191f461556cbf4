"""Hooks that come and go on what a backward pass inside of the call meets."""

from __future__ import annotations

import oneflow_lite as flow
from tests.compiler.capture.worlds import leaf, tensor

grad = flow.autograd.grad


def _slope(x):
    (slope,) = grad((x * x).sum(), x)
    return slope * 2


def hook_on_a_leaf_argument(compiled):
    f = compiled(_slope)
    for i in range(6):
        x = leaf(1.0, float(i))
        if i in (3, 4):
            x.register_hook(lambda g: g * 10)
        yield f(x), x


def hook_on_an_argument_with_history(compiled):
    f = compiled(_slope)
    for i in range(6):
        x = leaf(1.0, float(i))
        y = x * 3
        if i in (3, 4):
            y.register_hook(lambda g: g * 10)
        yield f(y), x


def hooks_on_the_node_of_an_argument(compiled):
    seen = []

    def f(x):
        (x * x).sum().backward()
        return x * 2

    f = compiled(f)
    for i in range(6):
        x = leaf(1.0, float(i))
        if i == 2:
            x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad))
        if i == 4:
            x.grad_fn_node.register_hook(lambda in_grads, out_grads: seen.append(out_grads))
        yield f(x), x, list(seen)


def hook_on_a_captured_tensor_with_history(compiled):
    h = leaf(1.0, 2.0) * 3

    def f(x):
        (slope,) = grad((h * h * x).sum(), h)
        return slope

    f = compiled(f)
    for i in range(6):
        if i == 3:
            h.register_hook(lambda g: g * 10)
        yield f(tensor(1.0, float(i)))


def _on_the_gradient(w):
    return w.register_hook(lambda g: g * 10)


def _after_adding(w):
    def hook(t):
        t.grad.mul_(10)

    return w.register_post_accumulate_grad_hook(hook)


def _before_the_node(w):
    return w.grad_fn_node.register_prehook(lambda grads: (grads[0] * 10,))


def _after_the_node(w):
    def hook(in_grads, out_grads):
        w.grad.mul_(10)

    return w.grad_fn_node.register_hook(hook)


def _coming_and_going(register):
    """Return a case in which a hook on a captured leaf comes, goes, and comes again."""

    def hook_comes_and_goes(compiled):
        w = leaf(1.0, 2.0)

        def f(x):
            w.grad = None
            (w * w * x).sum().backward()
            return w.grad * 1

        f = compiled(f)
        handle = None
        for i in range(16):
            if i % 8 == 3:
                handle = register(w)
            if i % 8 == 7:
                handle.remove()
            yield f(tensor(1.0, float(i)))

    hook_comes_and_goes.__name__ = f"hook{register.__name__}_comes_and_goes"
    return hook_comes_and_goes


hook_on_a_captured_gradient_comes_and_goes = _coming_and_going(_on_the_gradient)
hook_after_adding_comes_and_goes = _coming_and_going(_after_adding)
hook_before_the_node_of_a_captured_leaf_comes_and_goes = _coming_and_going(_before_the_node)
hook_after_the_node_of_a_captured_leaf_comes_and_goes = _coming_and_going(_after_the_node)


def _doubled_with_a_hook(x):
    y = x * 2
    y.register_hook(lambda g: g * 10)
    return y


def hook_registered_on_a_result(compiled):
    f = compiled(_doubled_with_a_hook)
    for i in range(4):
        x = leaf(1.0, float(i))
        y = f(x)
        y.retain_grad()
        y.register_hook(lambda g: g + 1)
        y.sum().backward()
        yield x, y.grad


def hook_registered_on_a_view_of_the_argument(compiled):
    def f(x):
        y = x[:1]
        y.register_hook(lambda g: g * 10)
        return y

    f = compiled(f)
    for i in range(4):
        x = leaf(1.0, float(i))
        f(x).sum().backward()
        yield x


def gradient_retained_of_a_view(compiled):
    def f(x):
        y = (x * 2)[:1]
        y.retain_grad()
        return y

    f = compiled(f)
    for i in range(4):
        y = f(leaf(1.0 + i, 2.0))
        (y * i).sum().backward()
        yield y.grad


def hooks_changed_by_hand(compiled):
    w = leaf(1.0, 2.0)
    w.register_hook(lambda g: g * 2)
    hooks = w.autograd_meta.hooks

    def f(x):
        (slope,) = grad((w * x).sum(), w)
        return slope

    f = compiled(f)
    changes = (
        lambda: hooks.clear(),
        lambda: hooks.update({-1: lambda g: g * 3}),
        lambda: hooks.setdefault(-2, lambda g: g + 1),
        lambda: hooks.popitem(),
        lambda: hooks.__ior__({-3: lambda g: g - 5}),
        lambda: hooks.__delitem__(-1),
        lambda: hooks.pop(-3),
    )
    for change in changes:
        yield f(tensor(1.0, 3.0)), f(tensor(1.0, 2.0))
        change()
        yield f(tensor(2.0, 3.0))
    try:
        w.autograd_meta.hooks = {0: lambda g: g * 7}
    except AttributeError as error:
        yield type(error), f(tensor(1.0, 3.0))
