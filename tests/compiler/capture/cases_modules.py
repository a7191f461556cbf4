"""Cases for modules, their state, and random streams."""

from __future__ import annotations

import numpy as np

import oneflow_lite as flow
from tests.compiler.capture.models import batch, net, train, training_step
from tests.compiler.capture.worlds import tensor

nn = flow.nn
F = nn.functional
SGD, Adam = flow.optim.SGD, flow.optim.Adam


# --- Parameters, modules and their state --------------------------------------------------------


def parameter_replaced(compiled):
    model = net()
    forward = compiled(lambda x: model(x))
    x = batch(0)[0]
    for i in range(3):
        y = forward(x)
        y.sum().backward()
        yield y, model
        model[0].weight = nn.Parameter(model[0].weight.detach() * (i + 2))


def parameter_data_replaced(compiled):
    model = net()
    forward = compiled(model)
    x = batch(0)[0]
    for i in range(3):
        yield forward(x), model
        model[0].weight.data = flow.ones(4, 3) * i
        model[2].bias.data.fill_(i)


def parameters_frozen(compiled):
    def change(model, optimizer, i):
        model[0].requires_grad_(i == 1)
        model.zero_grad()

    yield from train(compiled, lambda ps: SGD(ps, lr=0.5), change)


def layer_replaced(compiled):
    model = net()
    forward = compiled(lambda x: model(x))
    x = batch(0)[0]
    yield forward(x)
    model[1] = nn.ReLU()
    yield forward(x)
    model.append(nn.Sigmoid())
    yield forward(x)
    model[0] = nn.Linear(3, 4)
    yield forward(x)


def weights_tied(compiled):
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    step = compiled(training_step(model, SGD(model.parameters(), lr=0.5)))
    yield step(*batch(0)), model
    model[2].weight = model[0].weight
    yield step(*batch(1)), model
    yield step(*batch(2)), model


def module_moved_to_another_dtype(compiled):
    model = net()
    forward = compiled(model)
    for dtype in (flow.float32, flow.float64, flow.float32) * 2:
        model.to(dtype)
        y = forward(batch(0)[0].to(dtype))
        model.zero_grad()
        y.sum().backward()
        yield y, model


def module_behind_the_compiled_one(compiled):
    model = net()
    wrapped = compiled(model)
    yield list(wrapped.state_dict()), wrapped.training, len(list(wrapped.parameters()))
    yield [a is b for a, b in zip(wrapped.parameters(), model.parameters(), strict=True)]
    wrapped.eval()
    yield model.training, wrapped(batch(0)[0])
    wrapped.load_state_dict(net().state_dict())
    yield model, wrapped(batch(0)[0])


def module_with_a_counter(compiled):
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 2)
            self.register_buffer("total", flow.zeros(2))
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            y = self.layer(x)
            self.total = self.total + y.detach().sum(0)
            return y * self.calls if self.training else y

    model = Counting()
    forward = compiled(model)
    for i in range(4):
        model.train(i != 2)
        yield forward(batch(i)[0]), model, model.calls


def running_statistics(compiled):
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    forward = compiled(model)
    for i, training in enumerate((True, True, False, True, False)):
        model.train(training)
        y = forward(batch(i)[0])
        y.square().sum().backward()
        yield y, model
        if i == 3:
            model[1].running_mean = flow.zeros(3)
            model[1].momentum = 0.5


def modes_of_one_layer(compiled):
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
    forward = compiled(lambda x: model(x))
    for i, layer in enumerate((model, model[1], model[2], model)):
        layer.train(not layer.training)
        yield forward(batch(i)[0]), model


def hooks_on_modules(compiled):
    model, seen = net(), []
    forward = compiled(lambda x: model(x))
    x = batch(0)[0]
    yield forward(x), seen
    first = model[0].register_forward_hook(lambda m, args, y: y * 2)
    yield forward(x), seen
    model[1].register_forward_pre_hook(lambda m, args: seen.append(args[0].shape))
    yield forward(x), seen
    yield forward(x), seen
    first.remove()
    y = forward(x)
    y.sum().backward()
    yield y, seen, model
    model[2].register_full_backward_hook(lambda m, dx, dy: (dx[0] * 2,))
    model.zero_grad()
    y = forward(x)
    y.sum().backward()
    yield y, seen, model


# --- Random streams -----------------------------------------------------------------------------


def dropout(compiled):
    layer = nn.Dropout(0.5)
    f = compiled(lambda x: layer(x) * 2)
    w = flow.ones(8, requires_grad=True)
    for p in (0.5, 0.5, 0.25, 0.0, 0.5) * 2:
        layer.p = p
        y = f(w)
        y.sum().backward()
        yield y, w, flow.rand(2)


def random_ops_inside_and_outside(compiled):
    def f(x):
        noise = flow.randn(3)
        order = flow.randperm(3)
        return x * flow.rand(3) + noise + F.dropout(x, 0.5), order, flow.randint(0, 9, (3,))

    f = compiled(f)
    for i in range(3):
        yield flow.rand(2), f(tensor(1.0, 2.0, 3.0)), flow.randn(2)
        if i == 1:
            flow.manual_seed(3)


def seeded_inside(compiled):
    def f(x):
        flow.manual_seed(5)
        return x * flow.rand(2)

    f = compiled(f)
    for _ in range(3):
        yield f(tensor(1.0, 2.0)), flow.rand(2)


def generators_as_arguments(compiled):
    f = compiled(lambda x, g: x * flow.rand(2, generator=g))
    one, two = flow.Generator().manual_seed(1), flow.Generator().manual_seed(2)
    for g in (one, one, two, one, None) * 2:
        yield f(tensor(1.0, 2.0), g), flow.rand(1)


def unused_random_numbers(compiled):
    def f(x):
        flow.rand(5)
        return x * 2

    f = compiled(f)
    for _ in range(3):
        yield f(tensor(1.0)), flow.rand(2)


def parameters_initialised_inside(compiled):
    def f(x):
        layer = nn.Linear(2, 2).double()
        return layer(x)

    f = compiled(f)
    for _ in range(3):
        yield f(tensor(1.0, 2.0)), flow.rand(1)


def module_that_is_an_array(compiled):
    class Array(flow.nn.Module):
        scale = 2.0

        def __array__(self, dtype=None, copy=None):
            return np.full(2, self.scale, dtype)

    module = Array()
    f = compiled(lambda x: x * flow.tensor(module))
    for scale in (2.0, 2.0, 3.0, 3.0, 2.0):
        module.scale = scale
        yield f(flow.ones(2))
