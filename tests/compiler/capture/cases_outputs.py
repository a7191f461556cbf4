"""Cases for the memory of outputs, and for arguments that alias."""

from __future__ import annotations

import numpy as np

import oneflow_lite as flow
from tests.compiler.capture.worlds import leaf, tensor


def shared(x, y):
    return np.shares_memory(x.detach().numpy(), y.detach().numpy())


# --- Outputs ------------------------------------------------------------------------------------


def outputs_kept(compiled):
    f = compiled(lambda x: (x * 2, (x + 1).exp()))
    kept = []
    for i in range(4):
        kept.append(f(tensor(float(i), 1.0)))
        yield kept


def outputs_written_by_the_caller(compiled):
    f = compiled(lambda x: (x * 2 + 1).exp())
    for i in range(3):
        y = f(tensor(1.0, 2.0))
        yield y
        y.mul_(i)
        y.numpy()[0] = 7


def constant_outputs_written(compiled):
    f = compiled(lambda x: (flow.zeros(2), flow.ones(2) * 3, flow.arange(2)))
    for i in range(3):
        ys = f(tensor(1.0))
        yield ys
        for y in ys:
            y.fill_(9)


def literal_tensor_returned(compiled):
    def f(x):
        y = flow.tensor([1.0, 2.0])
        return y, x * y.sum()

    f = compiled(f)
    for i in range(4):
        y, z = f(tensor(float(i), 0.0))
        yield y, z
        y.fill_(9)


def literal_tensor_written(compiled):
    def f(x):
        y = flow.tensor([1.0, 2.0], dtype=flow.float64)
        y += x
        return y

    f = compiled(f)
    for i in range(3):
        y = f(tensor(float(i), 0.0))
        yield y
        y.fill_(9)


def input_returned(compiled):
    f = compiled(lambda x: (x, x * 2))
    for i in range(3):
        x = tensor(float(i))
        y, z = f(x)
        y.add_(1)
        yield y is x, x, y, z


def view_of_an_input_returned(compiled):
    f = compiled(lambda x: x[1:])
    for i in range(3):
        x = tensor(float(i), 2.0, 3.0)
        y = f(x)
        y.fill_(5)
        yield x, y, shared(x, y), y._version, x._version


def differentiable_view_returned(compiled):
    f = compiled(lambda x: x[1:])
    for i in range(2):
        w = leaf(1.0, 2.0, 3.0)
        x = w * (i + 1)
        f(x).mul_(3)
        x.sum().backward()
        yield x, w


def same_tensor_twice(compiled):
    def f(x):
        y = x * 2
        return y, [y, y.view(-1)]

    f = compiled(f)
    for i in range(3):
        y, (z, v) = f(tensor(float(i)))
        y.add_(1)
        yield y is z, shared(y, v), y, z, v


def captured_tensor_returned(compiled):
    w = tensor(1.0, 2.0)
    f = compiled(lambda x: (w, x * w))
    for i in range(3):
        y, z = f(tensor(3.0, 4.0))
        yield y is w, y, z
        y.add_(1)


def output_in_another_layout(compiled):
    f = compiled(lambda x: (x.t(), x.t() * 2, x.expand(2, 2, 3), x[:, ::2] + 1))
    for i in range(2):
        yield f(flow.arange(6.0).reshape(2, 3) * (i + 1))


def result_given_by_out(compiled):
    def f(x, y):
        flow.add(x, 1, out=y)
        return y * 2

    f = compiled(f)
    for i in range(3):
        y = tensor(0.0)
        yield f(tensor(float(i)), y), y, y._version


def output_fed_back(compiled):
    f = compiled(lambda x: x * 1.5 + 1)
    x = tensor(1.0, 2.0)
    kept = [x]
    for i in range(4):
        x = f(x)
        kept.append(x)
        yield kept


# --- Aliases ------------------------------------------------------------------------------------


def _write_first(x, y):
    x.mul_(2)
    return x + y


def argument_twice_then_not(compiled):
    f = compiled(_write_first)
    x, y = tensor(1.0, 2.0), tensor(3.0, 4.0)
    yield f(x, x), x
    yield f(x, y), x, y
    yield f(y, y), y


def arguments_apart_then_the_same(compiled):
    f = compiled(_write_first)
    x, y = tensor(1.0, 2.0), tensor(3.0, 4.0)
    yield f(x, y), x, y
    yield f(x, x), x
    yield f(y, x), x, y


def argument_and_its_view(compiled):
    f = compiled(_write_first)
    x = tensor(1.0, 2.0, 3.0, 4.0)
    yield f(x[:2].clone(), x[2:]), x
    yield f(x[:2], x[2:]), x
    yield f(x[:3], x[1:]), x
    yield f(x[1:], x[:3]), x
    yield f(x, x.flip(0)), x


def argument_and_captured_tensor(compiled):
    w = tensor(1.0, 2.0)

    def f(x):
        x.mul_(2)
        return x + w

    f = compiled(f)
    x = tensor(3.0, 4.0)
    yield f(x), x, w
    yield f(w), w
    yield f(w[:]), w
    yield f(x), x, w


def arguments_that_are_one_object(compiled):
    f = compiled(lambda x, y: x * 2 if x is y else x * 3 + y)
    x, y = tensor(1.0), tensor(1.0)
    yield f(x, y)
    yield f(x, x)
    yield f(y, x.detach())


def two_leaves_of_one_memory(compiled):
    f = compiled(lambda x, y: (x * y).sum())
    w = leaf(1.0, 2.0)
    for y in (w, w.detach(), leaf(1.0, 2.0)) * 2:
        w.grad = None
        f(w, y).backward()
        yield w, y


def container_returned_and_changed(compiled):
    tags = ["captured"]
    f = compiled(lambda x: {"y": x * 2, "own": [], "tags": tags})
    for i in range(3):
        result = f(tensor(float(i)))
        yield result, result["tags"] is tags
        result["own"].append(i)
        result["tags"].append(str(i))
        result["more"] = i


def two_tensors_of_one_array(compiled):
    f = compiled(_write_first)
    array = np.array([1.0, 2.0])
    x, y, z = flow.from_numpy(array), flow.from_numpy(array), flow.from_numpy(array.copy())
    yield f(x, z), x, z
    yield f(x, y), x, y
    yield f(z, x), x, z


def captured_tensors_become_aliases(compiled):
    a, b = tensor(1.0, 2.0), tensor(3.0, 4.0)

    def f(x):
        a.add_(x)
        return a + b

    f = compiled(f)
    yield f(tensor(1.0, 1.0)), a, b
    b.data = a.data
    yield f(tensor(1.0, 1.0)), a, b
    b.data = tensor(0.0, 0.0)
    yield f(tensor(1.0, 1.0)), a, b


def captured_tensors_part_again(compiled):
    a, b, c = tensor(1.0, 2.0), tensor(3.0, 4.0), tensor(5.0, 6.0)

    def written(x):
        c.add_(x)
        return a * c

    f, g = compiled(lambda x: a.exp() + b * x), compiled(written)
    for array in (a.data, a.data, tensor(0.0, 1.0)):
        b.data = c.data = array
        yield f(tensor(1.0, 1.0)), g(tensor(1.0, 1.0)), a, b, c


def alias_inside_a_list(compiled):
    def f(xs):
        xs[0].mul_(2)
        return sum(xs)

    f = compiled(f)
    x, y = tensor(1.0), tensor(2.0)
    for xs in ([x, y], [x, x], [y, x, y]) * 2:
        yield f(xs), x, y


def attribute_of_a_result(compiled):
    def f(x):
        y = x * 2
        y.label = "double"
        return y

    f = compiled(f)
    for i in range(3):
        y = f(tensor(1.0, float(i)))
        yield y, getattr(y, "label", None)


def tuples_that_were_there_before(compiled):
    shared = (tensor(2.0), 3)
    f = compiled(lambda x, given: (x * shared[0] * given[0], shared, given, [given]))
    for i in range(5):
        given = (tensor(float(i)), i // 4)
        y, one, other, (third,) = f(tensor(1.0), given)
        yield y, one is shared, other is given, third is given


class _Hashed(flow.nn.Parameter):
    def __hash__(self):
        return 1


def _among_many(compiled, made):
    f = compiled(lambda *xs: flow.autograd.grad(sum(x * x for x in xs).sum(), xs[0]))
    xs = [made(leaf(float(i), 1.0)) for i in range(11)]
    for given in (xs, xs, [*xs[:10], xs[0]], [xs[0], *xs[:10]], xs, [*xs[:10], xs[9]]):
        yield f(*given)


def one_argument_twice_among_many(compiled):
    yield from _among_many(compiled, lambda x: x)


def one_argument_twice_among_many_with_a_hash_of_their_own(compiled):
    yield from _among_many(compiled, _Hashed)
