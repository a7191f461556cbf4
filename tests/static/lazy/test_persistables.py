"""Tensors with values in Programs: constants, parameters, buffers, and what startup fills."""

import copy

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import static
from oneflow_lite.errors import CaptureError
from tests.static.runs import Runs, X, op_types, programs


def test_parameters_are_initialised_by_the_startup_program():
    flow.manual_seed(3)
    runs = Runs(lambda x: flow.nn.Linear(3, 2)(x), X)
    assert op_types(runs.startup) == ["fill_constant", "uniform_"] * 2
    assert op_types(runs.main) == ["matmul_nt", "add"]
    names = list(runs.main.parameters)
    descs = [runs.main.global_block().var(name) for name in names]
    assert names == ["parameter_0", "parameter_1"]
    assert all(d.persistable and d.is_parameter and not d.stop_gradient for d in descs)
    flow.manual_seed(3)
    layer = flow.nn.Linear(3, 2)
    for name, parameter in zip(names, layer.parameters(), strict=True):
        np.testing.assert_array_equal(runs.scope.find_var(name), parameter.numpy())
    np.testing.assert_array_equal(runs.run(X)[0], layer(flow.tensor(X)).numpy())


def test_a_parameter_that_startup_fills_shows_no_value():
    with static.program_guard(*programs()):
        layer = flow.nn.Linear(3, 2)
    assert layer.weight.name == "parameter_0"
    with pytest.raises(CaptureError, match="parameter_0"):
        layer.weight.numpy()
    with pytest.raises(CaptureError):
        layer(flow.ones(1, 3))


LAYERS = {
    "linear": lambda: flow.nn.Linear(3, 4),
    "sequential": lambda: flow.nn.Sequential(flow.nn.Linear(3, 4), flow.nn.Tanh()),
    "layer_norm": lambda: flow.nn.LayerNorm(3),
    "batch_norm": lambda: flow.nn.BatchNorm1d(3),
    "dropout": lambda: flow.nn.Dropout(0.5),
}


@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize("built", ["inside", "outside"])
def test_modules_run_as_eager_ones(make, built):
    flow.manual_seed(0)
    eager = make()
    flow.manual_seed(0)
    ready = make() if built == "outside" else None
    flow.manual_seed(0)
    runs = Runs(lambda x: (ready or make())(x), X)
    for _ in range(3):
        flow.manual_seed(1)
        (have,) = runs.run(X)
        flow.manual_seed(1)
        np.testing.assert_array_equal(have, eager(flow.tensor(X)).detach().numpy())


def test_a_model_with_values_keeps_them_and_gives_the_program_a_copy():
    layer = flow.nn.Linear(3, 2)
    before = layer.weight.detach().clone()
    runs = Runs(lambda x: layer(x), X)
    assert op_types(runs.startup) == ["clone", "clone"]
    runs.scope.find_var(layer.weight.name)[...] = 0
    assert flow.equal(layer.weight, before)
    runs.executor.run(runs.startup, scope=runs.scope)
    np.testing.assert_array_equal(runs.run(X)[0], layer(flow.tensor(X)).detach().numpy())


def test_inits_draw_what_eager_draws():
    inits = flow.nn.init
    fills = [
        lambda w: inits.trunc_normal_(w, std=0.5),
        lambda w: inits.orthogonal_(w, gain=2.0),
        inits.kaiming_normal_,
        inits.eye_,
        lambda w: inits.constant_(w, 3.0),
        lambda w: w.data.uniform_(-1, 1),
    ]

    class Net(flow.nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = flow.nn.ParameterList(
                [flow.nn.Parameter(flow.empty(3, 3)) for _ in fills]
            )
            for fill, weight in zip(fills, self.weights, strict=True):
                fill(weight)

        def forward(self, x):
            return sum(x @ weight for weight in self.weights)

    flow.manual_seed(5)
    runs = Runs(lambda x: Net()(x), X)
    flow.manual_seed(5)
    runs.executor.run(runs.startup, scope=runs.scope)
    flow.manual_seed(5)
    want = Net()(flow.tensor(X)).detach().numpy()
    np.testing.assert_array_equal(runs.run(X)[0], want)
    np.testing.assert_array_equal(runs.run(X)[0], want)


def test_what_a_module_computes_while_it_is_built_is_done_once():
    class Net(flow.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = flow.nn.Parameter(flow.ones(3) * 0.5)
            self.register_buffer("mask", flow.tril(flow.ones(3, 3)))
            noise = flow.zeros(3)
            noise.uniform_()
            self.noise = noise

        def forward(self, x):
            return (x * self.scale + self.noise) @ self.mask

    runs = Runs(lambda x: Net()(x), X)
    assert {"tril", "uniform_"} <= set(op_types(runs.startup))
    assert op_types(runs.main) == ["mul", "add", "matmul"]
    np.testing.assert_array_equal(runs.run(X)[0], runs.run(X)[0])


def test_a_parameter_made_by_a_script_is_moved_to_startup():
    def script(x):
        weight = flow.nn.Parameter(flow.randn(3, 2) * 0.1)
        return x @ weight

    flow.manual_seed(2)
    runs = Runs(script, X)
    assert op_types(runs.main) == ["matmul"]
    assert op_types(runs.startup) == ["random_normal", "mul"]
    flow.manual_seed(2)
    runs.executor.run(runs.startup, scope=runs.scope)
    flow.manual_seed(2)
    np.testing.assert_array_equal(runs.run(X)[0], script(flow.tensor(X)).detach().numpy())


def test_parameters_of_scripts_and_modules_draw_in_the_order_of_the_calls():
    class Net(flow.nn.Module):
        def __init__(this):  # not called self
            super().__init__()
            this.first = flow.nn.Linear(3, 3)
            this.scale = flow.nn.Parameter(flow.randn(3) * 0.1)
            this.second = flow.nn.Linear(3, 3)

        def forward(this, x):
            return this.second(this.first(x) * this.scale)

    def script(x):
        weight = flow.nn.Parameter(flow.randn(3, 3) * 0.1)
        net = Net()
        return net(x) @ weight

    runs = Runs(script, X)
    assert "random_normal" not in op_types(runs.main)
    flow.manual_seed(2)
    runs.executor.run(runs.startup, scope=runs.scope)
    flow.manual_seed(2)
    np.testing.assert_array_equal(runs.run(X)[0], script(flow.tensor(X)).detach().numpy())


@pytest.mark.parametrize("given", ["new", "with values"])
def test_layers_that_are_copied_begin_alike_and_live_apart(given):
    ready = flow.nn.Linear(3, 3)

    class Net(flow.nn.Module):
        def __init__(self):
            super().__init__()
            layer = ready if given == "with values" else flow.nn.Linear(3, 3)
            self.layers = flow.nn.ModuleList([copy.deepcopy(layer) for _ in range(2)])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    def script(x):
        net = Net()
        weight = net.layers[0].weight
        return net(x), (copy.deepcopy(weight) if given == "new" else weight) * 1

    flow.manual_seed(2)
    want = [y.detach().numpy() for y in script(flow.tensor(X))]
    runs = Runs(script, X)
    flow.manual_seed(2)
    runs.executor.run(runs.startup, scope=runs.scope)
    for have, value in zip(runs.run(X), want, strict=True):
        np.testing.assert_array_equal(have, value)
    used = [name for op in runs.main.global_block().ops for name in op.reads]
    assert len({name for name in used if runs.main.global_block().var(name).persistable}) >= 4


def test_a_parameter_is_not_computed_from_data():
    with static.program_guard(*programs()):
        x = static.data("x", [3])
        weight = flow.nn.Parameter(x * 2)
        with pytest.raises(CaptureError, match="computed from 'x'"):
            weight * 2


def test_a_tensor_from_outside_that_is_written_lives_on():
    counter = flow.tensor([10.0])

    def step(x):
        before = counter * 1
        counter.add_(x.sum())
        return before, counter * 1

    runs = Runs(step, X)
    assert op_types(runs.startup) == ["fill_constant"]
    assert [float(a[0]) for a in runs.run(X)] == [10.0, 25.0]
    assert [float(a[0]) for a in runs.run(X)] == [25.0, 40.0]


def test_a_tensor_made_inside_begins_anew_with_every_run():
    def step(x):
        total = flow.tensor([10.0])
        view = total[0]
        before = total * 1
        total += x.sum()
        return before, total, view * 1

    runs = Runs(step, X)
    for _ in range(3):
        assert [float(a.reshape(-1)[0]) for a in runs.run(X)] == [10.0, 25.0, 25.0]
    with pytest.raises(CaptureError):
        runs.results[1].item()


def test_an_alias_of_what_a_run_writes_shows_no_value():
    with static.program_guard(*programs()):
        x = static.data("x", [1])
        total = flow.tensor([10.0])
        alias = total.detach()
        assert alias.item() == 10
        total += x
        with pytest.raises(CaptureError):
            alias.item()
        assert (alias * 1).shape == (1,)


def test_what_forward_writes_before_it_is_used_belongs_to_every_run():
    class Net(flow.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("hidden", flow.zeros(3))

        def forward(self, x):
            self.hidden.fill_(1.0)
            self.hidden.add_(x[0])
            return self.hidden * 1

    runs = Runs(lambda x: Net()(x), X)
    for _ in range(2):
        np.testing.assert_array_equal(runs.run(X)[0], X[0] + 1)


def test_a_moving_average_written_by_a_script_belongs_to_every_run():
    average = flow.zeros(3)

    def step(x):
        average.mul_(0.5)
        average.add_(x[1])
        return average * 1

    runs = Runs(step, X)
    want = np.zeros(3, np.float32)
    for _ in range(3):
        want = want * np.float32(0.5) + X[1]
        np.testing.assert_array_equal(runs.run(X)[0], want)


def test_two_programs_share_what_their_startup_program_initialises():
    startup = static.Program()
    layer = flow.nn.Linear(3, 2)
    first = Runs(lambda x: layer(x), X, startup=startup)
    second = Runs(lambda x: (layer(x) * 2, layer.weight.detach().sum()), X, startup=startup)
    assert list(first.main.parameters) == list(second.main.parameters)
    a = first.executor.run(first.main, {"x0": X}, [first.results], first.scope)[0]
    b = second.executor.run(second.main, {"x0": X}, [second.results[0]], first.scope)[0]
    np.testing.assert_array_equal(a * 2, b)


def test_startup_programs_are_not_mixed():
    with static.program_guard(*programs()):
        one = flow.nn.Linear(3, 2)
    with static.program_guard(*programs()):
        other = flow.nn.Linear(3, 2)
        x = static.data("x", [2, 3])
        other(x)
        with pytest.raises(CaptureError, match="startup program"):
            one(x)


def test_views_with_values_have_to_be_captured():
    whole = flow.zeros(4)
    part = whole[:2]
    with static.program_guard(*programs()):
        x = static.data("x", [2])
        whole.add_(x.sum())
        with pytest.raises(CaptureError, match="shares memory"):
            part * x


def test_a_program_may_be_captured_in_several_turns():
    main, startup = programs()
    layer = flow.nn.Linear(3, 2)
    with static.program_guard(main, startup):
        y = layer(static.data("x", [2, 3]))
    with static.program_guard(main, startup):
        z = y + layer.weight.sum()
    assert list(main.parameters) == ["parameter_0", "parameter_1"]
    assert [op.type for op in startup.global_block().ops] == ["clone", "clone"]
    assert z.shape == (2, 2)


def test_embedding_with_a_padding_row_is_built_once():
    flow.manual_seed(4)
    index = np.array([[0, 2], [1, 0]])
    runs = Runs(lambda i: flow.nn.Embedding(3, 4, padding_idx=0)(i), index)
    assert op_types(runs.main) == ["embedding"]
    flow.manual_seed(4)
    runs.executor.run(runs.startup, scope=runs.scope)
    flow.manual_seed(4)
    want = flow.nn.Embedding(3, 4, padding_idx=0)(flow.tensor(index))
    np.testing.assert_array_equal(runs.run(index)[0], want.detach().numpy())


def test_layouts_of_tensors_with_values_are_kept():
    turned = flow.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3).T)
    weight = flow.nn.Parameter(turned.detach())
    other = flow.from_numpy(np.ones((2, 3), np.float32).T)

    def function(x):
        flat = weight.reshape(6)  # copies, because of the layout
        with flow.no_grad():
            weight.add_(x[0, 0])
        return flat * 1, weight * x.t(), other + x.t()

    before = weight.detach().clone()
    runs = Runs(function, X + 1)
    have = runs.run(X + 1)
    weight.data = before.t().clone().t()
    for a, b in zip(have, function(flow.tensor(X + 1)), strict=True):
        np.testing.assert_array_equal(a, b.detach().numpy())
        assert a.strides == b.detach().numpy().strides


def test_a_buffer_that_is_only_read_is_shared_with_the_program_that_writes_it():
    """The program for evaluation may be captured first."""
    startup = static.Program()
    norm, eager = flow.nn.BatchNorm1d(3), flow.nn.BatchNorm1d(3)
    norm.eval()
    test = Runs(lambda x: norm(x), X, startup=startup)
    norm.train()
    train = Runs(lambda x: norm(x), X, startup=startup)
    train.run(X)
    eager(flow.tensor(X))
    eager.eval()
    (have,) = train.executor.run(test.main, {"x0": X}, [test.results], train.scope)
    np.testing.assert_array_equal(have, eager(flow.tensor(X)).detach().numpy())


def test_a_constant_of_one_program_is_not_written_by_another():
    startup = static.Program()
    scale = flow.tensor([2.0])
    Runs(lambda x: x * scale, X, startup=startup)
    with pytest.raises(CaptureError, match="constant before"):
        Runs(lambda x: scale.add_(1), X, startup=startup)


def test_a_method_that_resets_state_belongs_to_every_run():
    class Net(flow.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", flow.zeros(3))

        def reset_state(self):
            self.state.zero_()

        def forward(self, x):
            self.reset_state()
            self.state.add_(x[0])
            return self.state * 1

    runs = Runs(lambda x: Net()(x), X)
    for _ in range(2):
        np.testing.assert_array_equal(runs.run(X)[0], X[0])


def test_a_part_of_a_parameter_that_a_script_writes_is_written_in_every_run():
    weight = flow.nn.Parameter(flow.ones(3))

    def script(x):
        with flow.no_grad():
            weight[0] = 5.0
            y = weight * x
            weight.add_(1)
        return y

    runs = Runs(script, X)
    np.testing.assert_array_equal(runs.run(X)[0], X * np.float32([5, 1, 1]))
    np.testing.assert_array_equal(runs.run(X)[0], X * np.float32([5, 2, 2]))


def test_a_view_that_was_taken_while_a_module_was_built_is_not_used_in_a_run():
    class Net(flow.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = flow.nn.Linear(3, 2)
            self.turned = self.layer.weight.t()

        def forward(self, x):
            return x @ self.turned

    with static.program_guard(*programs()):
        x = static.data("x", [2, 3])
        with pytest.raises(CaptureError, match=r"forward\(\)"):
            Net()(x)


def test_a_name_that_a_user_chose_is_not_taken_for_a_parameter():
    with static.program_guard(*programs()):
        x = static.data("parameter_0", [2, 3])
        layer = flow.nn.Linear(3, 2)
        layer(x)
    assert [p.name for p in layer.parameters()] == ["parameter_1", "parameter_2"]


VIEWS = {
    "indexed": lambda t: t[1:],
    "reshaped": lambda t: t.view(1, 3)[0, 1:],
    "detached": lambda t: t[1:].detach(),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_tensor_is_written_through_a_view(view):
    outside = flow.tensor([1.0, 2.0, 3.0])

    def script(x):
        made = flow.tensor([1.0, 2.0, 3.0])
        before = outside + made
        view(outside).add_(x)
        view(made)[...] = x
        return before, outside * 1, made * 1

    runs = Runs(script, X[0, :2])
    first = [[2, 4, 6], [1, 2, 4], [1, 0, 1]]
    assert [y.tolist() for y in runs.run(X[0, :2])] == first
    assert [y.tolist() for y in runs.run(X[0, :2])] == [[2, 4, 7], [1, 2, 5], [1, 0, 1]]


def test_a_view_without_elements_is_written():
    def script(x):
        made = flow.tensor([1.0])
        made[1:].zero_()
        return made * x[0, :1]

    assert Runs(script, X).run(X + 2)[0].tolist() == [2]


def test_a_module_is_built_from_what_was_written_through_views():
    class Net(flow.nn.Module):
        def __init__(self):
            super().__init__()
            scale = flow.tensor([1.0, 2.0, 3.0])
            half, self.twice = scale[1:], scale * 2
            half.mul_(10)
            self.scale = flow.nn.Parameter(scale)

        def forward(self, x):
            return x * self.scale + self.twice

    runs = Runs(lambda x: Net()(x), X)
    for _ in range(2):
        np.testing.assert_array_equal(runs.run(X)[0], X * [1, 20, 30] + [2, 4, 6])


def test_a_parameter_may_first_be_met_without_its_gradient():
    weight = flow.nn.Parameter(flow.tensor([1.0, 2.0, 3.0]))
    runs = Runs(lambda x: weight.detach() * weight + x, X)
    assert runs.main.parameters == {weight.name: weight}
    np.testing.assert_array_equal(runs.run(X)[0], X + [1, 4, 9])
