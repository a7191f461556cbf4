"""What program_guard captures: ops, variables, and which of two Programs they go to."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import static
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, CaptureError


def programs():
    return static.Program(), static.Program()


def op_types(program):
    return [op.type for op in program.global_block().ops]


class Runs:
    """A captured function: `run(*arrays)` feeds it and returns what it returned."""

    def __init__(self, function, *arrays, startup=None):
        self.main, self.startup = static.Program(), startup or static.Program()
        self.scope, self.executor = static.Scope(), static.Executor()
        with static.program_guard(self.main, self.startup):
            fed = [static.data(f"x{i}", a.shape, a.dtype) for i, a in enumerate(arrays)]
            self.results = function(*fed)
        self.executor.run(self.startup, scope=self.scope)

    def run(self, *arrays):
        feed = {f"x{i}": a for i, a in enumerate(arrays)}
        found = self.results if isinstance(self.results, (list, tuple)) else [self.results]
        return self.executor.run(self.main, feed, list(found), self.scope)


X = np.arange(6, dtype=np.float32).reshape(2, 3)


# Ops and variables


def test_an_op_becomes_an_op_desc_with_the_users_line():
    main, startup = programs()
    with static.program_guard(main, startup):
        x = static.data("x", [2, 3])
        line = inspect.currentframe().f_lineno + 1
        y = flow.relu(x) + x
    relu, add = main.global_block().ops
    assert (relu.type, relu.inputs, relu.outputs) == ("relu", ("x",), ("relu_0",))
    assert (add.type, add.inputs, add.outputs) == ("add", ("relu_0", "x"), (y.name,))
    assert relu.role == "forward"
    assert (relu.location.filename, relu.location.line) == (__file__, line)
    assert relu.location.function == "test_an_op_becomes_an_op_desc_with_the_users_line"
    assert not startup.global_block().ops


def test_data_is_a_variable_that_is_fed():
    main, startup = programs()
    with static.program_guard(main, startup):
        x = static.data("x", [2, 3], "float64")
    desc = main.global_block().var("x")
    assert (x.name, x.shape, x.dtype) == ("x", (2, 3), np.float64)
    assert (desc.need_check_feed, desc.persistable, desc.stop_gradient) == (True, False, True)
    assert not x.requires_grad


@pytest.mark.parametrize("size", [None, -1])
def test_data_wants_all_sizes(size):
    with static.program_guard(*programs()), pytest.raises(ArgumentError, match="one Program for"):
        static.data("x", [size, 3])


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("", [2]), ArgumentTypeError),
        ((3, [2]), ArgumentTypeError),
        (("x", 2), ArgumentTypeError),
        (("x", [2.5]), ArgumentTypeError),
        (("x", [2], "float31"), Exception),
        (("taken", [2]), ArgumentError),
    ],
)
def test_data_checks_its_arguments(arguments, kind):
    with static.program_guard(*programs()):
        static.data("taken", [1])
        with pytest.raises(kind):
            static.data(*arguments)


def test_outside_of_a_guard():
    with pytest.raises(CaptureError, match="program_guard"):
        static.data("x", [2])
    with pytest.raises(ArgumentTypeError, match="main_program"):
        static.program_guard(3)
    with pytest.raises(ArgumentTypeError, match="startup_program"):
        static.program_guard(static.Program(), 3)
    assert static.default_main_program() is static.default_main_program()
    main, startup = programs()
    with static.program_guard(main, startup):
        assert static.default_main_program() is main
        assert static.default_startup_program() is startup
        inner = static.Program()
        with static.program_guard(inner):
            assert static.default_main_program() is inner
            assert static.default_startup_program() is startup
        assert static.default_main_program() is main
    assert static.default_main_program() is not main


def test_the_guard_ends_with_an_exception():
    with pytest.raises(ZeroDivisionError), static.program_guard(*programs()):
        raise ZeroDivisionError
    assert flow.ones(2).sum().item() == 2


@pytest.mark.parametrize(
    "act", [lambda a: a + flow.ones(2), lambda a: a @ flow.ones(2, 3), lambda a: a.reshape(4)]
)
def test_errors_are_those_of_eager(act):
    with pytest.raises(Exception) as eager:
        act(flow.ones(2, 3))
    main, startup = programs()
    with static.program_guard(main, startup):
        x = static.data("x", [2, 3])
        with pytest.raises(type(eager.value)) as captured:
            act(x)
    assert str(captured.value) == str(eager.value)
    assert set(op_types(main)) <= {"full"}


@pytest.mark.parametrize(
    "act",
    [
        lambda a: a.permute(2, 0, 1) * 2,
        lambda a: a[:, 1:, ::2].exp(),
        lambda a: a.sum(1),
        lambda a: a > 0,
        lambda a: a.permute(2, 0, 1).reshape(8, 3),
        lambda a: a.max(1)[1],
        lambda a: a.expand(5, 2, 3, 4),
        lambda a: flow.zeros(0, 3) * a[0, 0, :3],
    ],
)
def test_results_have_the_shape_dtype_and_layout_of_eager(act):
    want = act(flow.zeros(2, 3, 4))
    with static.program_guard(*programs()):
        have = act(static.data("x", [2, 3, 4]))
    assert (have.shape, have.dtype, have.stride()) == (want.shape, want.dtype, want.stride())
    assert have.is_view() == want.is_view()


def test_constants_are_frozen_copies():
    numbers = np.array([1.0, 2.0, 3.0], np.float32)
    captured = flow.from_numpy(numbers)
    runs = Runs(lambda x: (x * captured, x * 2.5 + flow.tensor([1.0, 1.0, 1.0])), X)
    numbers[:] = 100
    first, second = runs.run(X)
    np.testing.assert_array_equal(first, X * np.float32([1, 2, 3]))
    np.testing.assert_array_equal(second, X * np.float32(2.5) + 1)
    assert not runs.startup.global_block().ops
    values = [d.value for d in runs.main.list_vars() if d.value is not None]
    assert len(values) == 3 and not any(value.flags.writeable for value in values)


def test_a_number_is_one_constant_however_often_it_is_used():
    runs = Runs(lambda x: x * 2.5 + 2.5, X)
    assert sum(d.value is not None for d in runs.main.list_vars()) == 1


# Values


READS = {
    "item": lambda x: x[0, 0].item(),
    "bool": lambda x: bool(x[0, 0] > 0),
    "float": lambda x: float(x[0, 0]),
    "int": lambda x: int(x[0, 0]),
    "index": lambda x: [1, 2][flow.argmax(x)],
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy() + 1,
    "array": lambda x: np.asarray(x),
    "contains": lambda x: 3.0 in x,
    "format": lambda x: f"{x[0, 0]:.3f}",
    "pickle": pickle.dumps,
    "ufunc": lambda x: np.exp(x._data),
    "function": lambda x: np.concatenate([x._data, x._data]),
    "element": lambda x: x._data[0, 0],
    "selection": lambda x: x._data[np.array([0, 1])],
    "method": lambda x: x._data.astype(int),
    "sum": lambda x: x._data.sum(),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_no_value_is_read_unseen(read):
    with static.program_guard(*programs()):
        x = static.data("x", [2, 3])
        with pytest.raises(CaptureError):
            read(x)
        y = x * 2
        with pytest.raises(CaptureError):
            read(y)
    with pytest.raises(CaptureError):
        read(y)


def test_the_error_names_the_variable_the_method_and_the_line():
    with static.program_guard(*programs()):
        loss = static.data("x", [2, 3]).sum()
        line = inspect.currentframe().f_lineno + 2
        with pytest.raises(CaptureError) as info:
            loss.item()
    assert "item()" in str(info.value) and "'sum_0'" in str(info.value)
    assert f"{__file__}:{line}" in str(info.value)


def test_a_symbolic_tensor_shows_its_description():
    with static.program_guard(*programs()):
        x = static.data("x", [2, 3])
        assert repr(x) == "tensor(name='x', shape=(2, 3), dtype=float32)"
    assert "name='x'" in repr(x)
    assert flow.ones(2).name is None


@pytest.mark.parametrize(
    ("act", "op"),
    [
        (lambda x: x[x > 0], "getitem"),
        (lambda x: flow.nonzero(x), "nonzero"),
        (lambda x: flow.masked_select(x, x > 0), "masked_select"),
    ],
)
def test_a_shape_that_depends_on_values(act, op):
    with static.program_guard(*programs()):
        x = static.data("x", [2, 3])
        line = act.__code__.co_firstlineno
        with pytest.raises(CaptureError) as info:
            act(x)
    assert op in str(info.value) and f"{__file__}:{line}" in str(info.value)


def test_a_value_that_was_read_may_not_be_written_by_a_run():
    counter = flow.tensor([0.0])
    with static.program_guard(*programs()):
        x = static.data("x", [1])
        if counter.item() < 3:
            x = x * 2
        with pytest.raises(CaptureError, match="were read"):
            counter.add_(x)


def test_a_symbolic_tensor_outside_of_its_program():
    with static.program_guard(*programs()):
        x = static.data("x", [2, 3])
    with pytest.raises(CaptureError):
        x + 1
    with static.program_guard(*programs()):
        static.data("x", [2, 3])
        with pytest.raises(CaptureError, match="another Program"):
            x + 1
    with pytest.raises(CaptureError, match="program_guard"):
        x.reshape(6)  # which reads no value


# Parameters, buffers, and what is written


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


# In-place ops and views


def compare(function, *arrays):
    """Check that a captured function gives what eager gives, twice."""
    want = function(*[flow.tensor(a) for a in arrays])
    want = want if isinstance(want, tuple) else (want,)
    runs = Runs(function, *arrays)
    for _ in range(2):
        for a, b in zip(runs.run(*arrays), want, strict=True):
            np.testing.assert_array_equal(a, b.detach().numpy())


def test_writes_reach_views_and_bases():
    def function(x):
        y = x * 1
        row, flat = y[1], y.reshape(6)
        y.add_(1)
        row.mul_(2)
        flat[0] = 7
        y.t_()
        y[0] = -1
        return y * 1, row * 1, flat * 1, y.sum()

    compare(function, X)


def test_gradients_through_writes():
    def function(x):
        x.requires_grad = True
        y = x.exp()
        z = y * 1
        z[0].mul_(y[1])
        z.tanh_()
        z = z * 1
        z[:, 1] = 3.0
        return flow.autograd.grad((z * z).sum(), x)[0]

    compare(function, X)


def test_in_place_ops_are_refused_as_in_eager():
    with static.program_guard(*programs()):
        x = static.data("x", [3])
        x.requires_grad = True
        with pytest.raises(flow.errors.InplaceError):
            x.add_(1)
        y = x.exp()
        y.add_(1)
        with pytest.raises(flow.errors.StaleTensorError):
            flow.autograd.grad(y.sum(), x)
        with pytest.raises(flow.errors.InplaceError):
            flow.ones(3).expand(2, 3).add_(1)


def test_a_user_op_that_returns_another_array_than_it_writes():
    @flow.register_op("test_capture_count", mutates="x")
    def count(xp, x):
        x += 1
        return x * 10

    try:

        def function(x):
            y = x * 1
            return count(y), y

        compare(function, X)
    finally:
        from oneflow_lite.registry import FUNCTORS, KERNELS

        KERNELS.remove("test_capture_count")
        FUNCTORS.remove("test_capture_count")


def test_an_interpreter_pushed_inside_sees_the_ops():
    seen = []

    class Names(flow.Interpreter):
        def apply(self, op_expr, inputs, attrs):
            seen.append(op_expr.op_type_name)
            return self.inner.apply(op_expr, inputs, attrs)

    with static.program_guard(*programs()):
        x = static.data("x", [3])
        with flow.push_interpreter(Names()):
            y = x.exp()
    assert seen == ["exp"] and y.name == "exp_0"


def test_stop_gradient_says_whether_a_gradient_flows():
    main = static.Program()
    with static.program_guard(main, static.Program()):
        x, z = static.data("x", [3]), static.data("z", [3])
        x.requires_grad = True
        made = {"with": x * z, "without": z * 2, "order": x.argsort()}
        with flow.no_grad():
            made["no_grad"] = x * 3
    found = {key: main.global_block().var(y.name).stop_gradient for key, y in made.items()}
    assert found == {"with": False, "without": True, "order": True, "no_grad": True}
    assert [main.global_block().var(name).stop_gradient for name in "xz"] == [False, True]


def test_a_function_with_a_backward_of_its_own_is_captured():
    class Double(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            return dy * x * 20

    def function(x):
        x.requires_grad = True
        return flow.autograd.grad(Double.apply(x).sum(), x)[0]

    compare(function, X)


def test_capture_goes_on_in_a_clone():
    main, startup = programs()
    layer = flow.nn.Linear(3, 2)
    with static.program_guard(main, startup):
        x = static.data("x", [2, 3])
        y = layer(x)
    test = main.clone()
    with static.program_guard(test, startup):
        z = layer(y @ flow.ones(2, 3)) + y
    assert len(main.global_block().ops) == 2
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    (have,) = executor.run(test, {"x": X}, [z], scope)
    want = layer(flow.tensor(X))
    np.testing.assert_array_equal(have, (layer(want @ flow.ones(2, 3)) + want).detach().numpy())


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
