"""Captures by program_guard: ops, variables, writes; and that no value is read."""

import inspect
import pickle

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import static
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, CaptureError
from tests.static.runs import Runs, X, compare, op_types, programs


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


def test_a_user_op_that_returns_a_number_beside_what_it_writes():
    @flow.register_op("test_capture_count", mutates="x")
    def count(xp, x):
        x += 1
        return x, xp.asarray(x.size)

    try:

        def function(x):
            y = x * 1
            return *count(y), y

        compare(function, X)
    finally:
        from oneflow_lite.ops.registry import FUNCTORS, KERNELS

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
