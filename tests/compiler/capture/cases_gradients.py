"""Cases for gradients through a compiled function, inside of it, and the hooks on the way."""

from __future__ import annotations

import oneflow_lite as flow
from tests.compiler.capture.worlds import attempt, leaf, tensor

grad = flow.autograd.grad


# --- Through a compiled function ----------------------------------------------------------------


def several_forwards_before_one_backward(compiled):
    w = leaf(1.0, 2.0)
    f = compiled(lambda x: (x * w).exp())
    for _ in range(2):
        ys = [f(tensor(float(i), 0.5)) for i in range(3)]
        (ys[0] * ys[1] + ys[2]).sum().backward()
        yield ys, w


def backwards_in_another_order(compiled):
    w = leaf(1.0, 2.0)
    f = compiled(lambda x: (x * w).sin().sum())
    losses = [f(tensor(float(i), 0.5)) for i in range(3)]
    for loss in reversed(losses):
        loss.backward()
        yield loss, w


def double_backward(compiled):
    f = compiled(lambda x, y: (x**3 * y.exp()).sum())
    for i in range(3):
        x, y = leaf(1.0 + i, 2.0), leaf(0.5, 0.25 * i)
        dx, dy = grad(f(x, y), [x, y], create_graph=True)
        (ddx, ddy) = grad((dx * dy).sum(), [x, y], create_graph=True)
        (ddx.sum() + ddy.square().sum()).backward()
        yield dx, dy, ddx, ddy, x, y


def backward_twice(compiled):
    w = leaf(1.0, 2.0)
    f = compiled(lambda x: (x * w).exp().sum())
    for retain in (True, False) * 2:
        y = f(tensor(1.0, 3.0))
        yield attempt(y.backward, retain_graph=retain), w
        yield attempt(y.backward), w


def outputs_in_part(compiled):
    f = compiled(lambda x, y: (x * 2, y.exp(), x.detach(), (x * y).long()))
    for used in ([0], [1], [0, 1], [2], [3]) * 2:
        x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
        outputs = f(x, y)
        total = sum(outputs[i].sum() for i in used)
        yield outputs, attempt(total.backward), x, y


def gradients_written_in_place(compiled):
    @compiled
    def f(x, y, scale):
        dx, dy = grad(((x + y) * scale).sum(), [x, y])
        dx.reshape(-1).mul_(3)
        dy.add_(1)
        return dx, dy, dx.is_contiguous()

    for i in range(4):
        yield f(leaf(1.0, 2.0), leaf(3.0, 4.0), tensor(float(i), 2.0))


def unused_arguments(compiled):
    f = compiled(lambda x, y: x * 2)
    for _ in range(2):
        x, y = leaf(1.0), leaf(2.0)
        z = f(x, y).sum()
        yield attempt(grad, z, [x, y], retain_graph=True), grad(z, [x, y], allow_unused=True)


def gradient_given_by_the_caller(compiled):
    f = compiled(lambda x: x.exp())
    for dy in (tensor(1.0, 2.0), tensor(3.0).expand(2), tensor(0.0, 4.0, 5.0, 6.0)[::3], None) * 2:
        x = leaf(1.0, 2.0)
        yield attempt(f(x).backward, dy), x


def composed_with_eager_ops(compiled):
    f = compiled(lambda x: x.sin() * x)
    for i in range(3):
        w = leaf(1.0 + i, 2.0)
        y = f(f(w * 2) + 1) * w
        y.sum().backward()
        yield y, w


def arguments_with_history_kept(compiled):
    f = compiled(lambda x: x * x)
    w = leaf(1.0, 2.0)
    x = w.exp()
    for i in range(3):
        y = f(x)
        (y * i).sum().backward(retain_graph=True)
        yield y, x, w
        y.detach().fill_(i)


# --- Inside -------------------------------------------------------------------------------------


def backward_inside(compiled):
    def f(x, w):
        loss = (x * w).exp().sum()
        loss.backward()
        return loss

    f = compiled(f)
    w = leaf(1.0, 2.0)
    x = tensor(0.5, 0.25)
    yield f(x, w).detach(), w  # .grad was None
    yield f(x, w).detach(), w  # and is added to
    w.grad = None
    yield f(x, w).detach(), w
    w.grad.zero_()
    yield f(x, w).detach(), w
    w.grad = tensor(5.0, 6.0)
    yield f(x, w).detach(), w


def gradient_held_by_the_caller(compiled):
    w = leaf(1.0, 2.0)

    def f(x):
        (x * w).sum().backward()

    f = compiled(f)
    kept = []
    for i in range(5):
        f(tensor(1.0 + i, 2.0))
        kept.append(w.grad)
        yield kept, [g is w.grad for g in kept], w
        if i == 2:
            w.grad = None


def gradients_inside_of_any_order(compiled):
    def f(x):
        y = (x**4).sum()
        orders = []
        for _ in range(3):
            (d,) = grad(y, x, create_graph=True)
            orders.append(d)
            y = d.sum()
        return orders

    f = compiled(f)
    for i in range(3):
        x = leaf(1.0 + i, 2.0)
        orders = f(x)
        orders[1].sum().backward()
        yield orders, x


def gradient_penalty(compiled):
    w = leaf(0.5, -0.25)

    def f(x):
        x = x.detach().requires_grad_()
        (dx,) = grad((x * w).sin().sum(), x, create_graph=True)
        penalty = (dx.norm() - 1) ** 2
        penalty.backward()
        return penalty.detach()

    f = compiled(f)
    for i in range(3):
        yield f(tensor(1.0 + i, 2.0)), w


def requires_grad_of_a_captured_tensor(compiled):
    w = tensor(1.0, 2.0)
    f = compiled(lambda x: (x * w).exp())
    for enabled in (False, True, False, True) * 2:
        w.requires_grad_(enabled)
        x = leaf(0.5, 0.25)
        y = f(x)
        y.sum().backward()
        yield y, x, w
        w.grad = None


def retained_gradient_of_an_intermediate(compiled):
    seen = []

    def f(x):
        y = x * 2
        y.retain_grad()
        seen.append(y)
        return y.exp().sum()

    f = compiled(f)
    for i in range(2):
        x = leaf(1.0 + i)
        f(x).backward()
        yield x, [y.grad for y in seen]


def retained_gradient_of_an_output(compiled):
    f = compiled(lambda x: x * 2)
    for i in range(2):
        x = leaf(1.0 + i)
        y = f(x)
        y.retain_grad()
        (y * y).sum().backward()
        yield y, y.grad, x


class Doubled(flow.autograd.Function):
    """Doubles, with a gradient that says so three times, and counts its calls."""

    calls = 0

    @staticmethod
    def forward(ctx, x, factor):
        Doubled.calls += 1
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * 3 * x * ctx.factor, None


def function_of_the_user(compiled):
    Doubled.calls = 0
    f = compiled(lambda x, n: Doubled.apply(x, n).sin())
    for n in (2.0, 2.0, 3.0) * 2:
        x = leaf(1.0, 2.0)
        y = f(x, n)
        y.sum().backward()
        yield y, x, Doubled.calls


# --- Hooks --------------------------------------------------------------------------------------


def hook_on_an_argument(compiled):
    seen = []
    f = compiled(lambda x: (x * x).sum())
    x = leaf(1.0, 2.0)
    f(x).backward()
    yield x, seen
    handle = x.register_hook(lambda d: seen.append(d.sum().item()) or d * 2)
    f(x).backward()
    yield x, seen
    handle.remove()
    f(x).backward()
    yield x, seen


def hook_on_a_captured_tensor_with_backward_inside(compiled):
    seen = []
    w = leaf(1.0, 2.0)

    def f(x):
        (x * w).sum().backward()
        return x * 2

    f = compiled(f)
    yield f(tensor(1.0, 2.0)), w
    handle = w.register_hook(lambda d: d * 2)
    yield f(tensor(1.0, 2.0)), w
    other = w.register_hook(lambda d: seen.append(1))
    yield f(tensor(1.0, 2.0)), w, seen
    yield f(tensor(1.0, 2.0)), w, seen
    handle.remove()
    other.remove()
    yield f(tensor(1.0, 2.0)), w, seen


def hook_after_accumulation(compiled):
    w = leaf(1.0, 2.0)
    counts = []

    def update(p):
        with flow.no_grad():
            p.add_(p.grad, alpha=-0.5)
        p.grad = None
        counts.append(1)

    w.register_post_accumulate_grad_hook(update)

    def f(x):
        loss = (x * w).exp().sum()
        loss.backward()
        return loss.detach()

    f = compiled(f)
    for _ in range(3):
        yield f(tensor(0.5, 0.25)), w, counts


def hook_registered_inside(compiled):
    def f(x, scale):
        y = x * 2
        y.register_hook(lambda d: d * scale)
        return y.exp()

    f = compiled(f)
    for scale in (2.0, 3.0) * 2:
        x = leaf(0.5, 0.25)
        f(x, scale).sum().backward()
        yield x


def hooks_on_nodes(compiled):
    w = leaf(1.0, 2.0)
    seen = []

    def f(x):
        y = x * w
        y.grad_fn.register_hook(lambda dxs, dys: seen.append(len(dxs)))
        y.grad_fn.register_prehook(lambda dys: (dys[0] * 2,))
        return y.sum()

    f = compiled(f)
    for _ in range(3):
        f(tensor(1.0, 2.0)).backward()
        yield w, seen


def hook_that_raises(compiled):
    w = leaf(1.0, 2.0)

    def fail(d):
        raise KeyError("hook")

    def f(x):
        (x * w).sum().backward()
        return x * 2

    f = compiled(f)
    yield attempt(f, tensor(1.0, 2.0)), w
    handle = w.register_hook(fail)
    yield attempt(f, tensor(1.0, 2.0)), w
    handle.remove()
    yield attempt(f, tensor(1.0, 2.0)), w


def hooks_on_saved_tensors(compiled):
    packed = []

    def pack(x):
        packed.append(x.shape[0])
        return x * 2

    f = compiled(lambda x: x.exp().sum())
    for i in range(3):
        x = leaf(0.5, 0.25)
        if i == 1:
            with flow.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
                y = f(x)
        else:
            y = f(x)
        y.backward()
        yield x, packed


def gradient_read_inside(compiled):
    w = leaf(1.0, 2.0)

    def f(x):
        (x * w).sum().backward()
        return w.grad * 2, w.grad

    f = compiled(f)
    for i in range(3):
        doubled, held = f(tensor(1.0, float(i)))
        yield doubled, held is w.grad, w


def gradient_returned_and_replaced(compiled):
    w = leaf(1.0, 2.0)

    def f(x):
        before, w.grad = w.grad, None
        (x * w).sum().backward()
        return before, w.grad

    f = compiled(f)
    kept = []
    for i in range(5):
        kept.append(f(tensor(1.0, float(i))))
        yield kept, kept[-1][1] is w.grad, i and kept[-1][0] is kept[-2][1], w


def gradient_written_and_dropped(compiled):
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)

    def f(x):
        w.grad.mul_(x)
        w.grad = None
        return x * 2

    f = compiled(f)
    for i in range(4):
        (w * 2).sum().backward()
        before = w.grad
        loss = (v * before).sum()
        yield f(tensor(1.0, float(i))), before, before._version, attempt(loss.backward), v


def gradients_exchanged(compiled):
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)

    def f(x):
        w.grad, v.grad = v.grad, w.grad
        w.grad.mul_(2)
        return x * 2

    f = compiled(f)
    (w * 2 + v * 3).sum().backward()
    first = w.grad
    for i in range(4):
        yield f(tensor(1.0, float(i))), w, v, first is w.grad, first is v.grad


def gradient_shared_by_two(compiled):
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)

    def f(x):
        (x * w).sum().backward()
        v.grad = w.grad
        return x * 2

    f = compiled(f)
    for i in range(5):
        yield f(tensor(1.0, float(i))), w, v, w.grad is v.grad
        if i > 2:
            v.grad = None


def gradient_that_is_an_argument(compiled):
    w = leaf(1.0, 2.0)

    def f(x):
        (x * w).sum().backward()
        return x * 2

    f = compiled(f)
    x = tensor(3.0, 4.0)
    yield f(x), x, w
    w.grad = x
    yield f(x), x, w
    w.grad = tensor(1.0, 1.0)
    yield f(x), x, w


def compiled_function_dropped(compiled):
    for i in range(2):
        w = leaf(1.0 + i, 2.0)
        f = compiled(lambda x: (x * w).exp())
        y, z = f(tensor(1.0, 2.0)), f(tensor(2.0, 3.0))
        del f
        (y * z).sum().backward()
        yield y, z, w


def gradient_that_begins_to_require_one(compiled):
    w = leaf(1.0, 2.0)

    def f(x):
        (w * x).sum().backward()

    f = compiled(f)
    for i in range(6):
        if i == 4:
            w.grad.requires_grad_()
        f(tensor(1.0, float(i)))
        yield w, w.grad.requires_grad
