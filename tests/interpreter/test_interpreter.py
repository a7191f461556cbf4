"""The interpreter stack: who sees which op, in which thread, and what stays after an error."""

import threading
import time
from collections import Counter

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DeviceError, ShapeError
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.interpreter.stack import (
    DEFAULT_STACK,
    AutogradInterpreter,
    EagerInterpreter,
    current_interpreter,
)
from oneflow_lite.ops.op_expr import op_expr


class Names(flow.Interpreter):
    """Writes down the ops it sees and hands them on."""

    def __init__(self):
        self.seen = []

    def apply(self, op_expr, inputs, attrs):
        self.seen.append(op_expr.op_type_name)
        return self.inner.apply(op_expr, inputs, attrs)


def test_the_default_stack(plain_stack):
    assert current_interpreter() is DEFAULT_STACK
    assert isinstance(DEFAULT_STACK, AutogradInterpreter)
    assert isinstance(DEFAULT_STACK.inner, EagerInterpreter)
    assert DEFAULT_STACK.inner.inner is None


def test_pushing_and_popping():
    names = Names()
    assert names.inner is None
    with flow.push_interpreter(names) as pushed:
        assert pushed is names
        assert current_interpreter() is names
        assert names.inner is DEFAULT_STACK
        flow.ones(2) * 2
    assert current_interpreter() is DEFAULT_STACK
    assert names.inner is None
    flow.ones(2) * 2
    assert names.seen == ["full", "mul"]


def test_every_way_of_dispatch_is_seen():
    x = flow.tensor([[1.0, 2.0], [3.0, 4.0]])
    names = Names()
    with flow.push_interpreter(names):
        flow.neg(x)  # one operand
        x - x  # two operands
        x.sum(0)
        flow.cat([x, x])
        x.t()
        x[0]
        flow.zeros(2)
    assert names.seen == ["neg", "sub", "sum", "cat", "transpose", "getitem", "full"]


def test_what_an_interpreter_sees_is_computed_and_recorded_all_the_same():
    x = flow.tensor([1.0, 2.0], requires_grad=True)
    with flow.push_interpreter(Names()):
        y = (x * x).sum()
        assert y.item() == 5
        assert y.grad_fn.name() == "sum_backward"
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_attributes_and_inputs_arrive_as_they_were_given():
    calls = []

    class Spy(flow.Interpreter):
        def apply(self, op_expr, inputs, attrs):
            calls.append((op_expr, inputs, dict(attrs)))
            return self.inner.apply(op_expr, inputs, attrs)

    x = flow.ones(2, 3)
    with flow.push_interpreter(Spy()):
        x.transpose(0, -1)
    ((op, inputs, attrs),) = calls
    assert op is op_expr("transpose")
    assert len(inputs) == 1 and inputs[0] is x
    assert attrs == {"dim0": 0, "dim1": 1}


def test_nested_interpreters_see_each_op_from_the_top_down():
    order = []

    class Tagged(flow.Interpreter):
        def __init__(self, tag):
            self.tag = tag

        def apply(self, op_expr, inputs, attrs):
            order.append(self.tag)
            return self.inner.apply(op_expr, inputs, attrs)

    outer, inner = Tagged("outer"), Tagged("inner")
    with flow.push_interpreter(outer), flow.push_interpreter(inner):
        assert inner.inner is outer and outer.inner is DEFAULT_STACK
        flow.ones(1)
    assert order == ["inner", "outer"]


def test_an_interpreter_may_change_the_result():
    class Doubler(flow.Interpreter):
        def apply(self, op_expr, inputs, attrs):
            result = self.inner.apply(op_expr, inputs, attrs)
            return result * 2 if op_expr.op_type_name == "exp" else result

    x = flow.tensor([0.0], requires_grad=True)
    with flow.push_interpreter(Doubler()):
        y = x.exp()
    assert y.tolist() == [2.0]
    y.backward()
    assert x.grad.tolist() == [2.0]


def test_ops_of_an_interpreter_go_below_it():
    """It would never end otherwise, and neither would the one below see it twice."""
    below = Names()

    class Finite(flow.Interpreter):
        def __init__(self):
            self.count = 0

        def apply(self, op_expr, inputs, attrs):
            self.count += 1
            result = self.inner.apply(op_expr, inputs, attrs)
            assert not flow.isnan(result).any()
            return result

    finite = Finite()
    with flow.push_interpreter(below), flow.push_interpreter(finite):
        flow.ones(2).exp()
    assert finite.count == 2
    assert below.seen == ["full", "isnan", "any", "exp", "isnan", "any"]


def test_the_default_apply_hands_on():
    with flow.push_interpreter(flow.Interpreter()):
        assert (flow.ones(2) + 1).tolist() == [2.0, 2.0]


def test_a_profiler_in_under_20_lines():
    class Profiler(flow.Interpreter):
        def __init__(self):
            self.seconds, self.calls = Counter(), Counter()

        def apply(self, op_expr, inputs, attrs):
            start = time.perf_counter()
            try:
                return self.inner.apply(op_expr, inputs, attrs)
            finally:
                self.seconds[op_expr.op_type_name] += time.perf_counter() - start
                self.calls[op_expr.op_type_name] += 1

    profiler = Profiler()
    x = flow.ones(3, requires_grad=True)
    with flow.push_interpreter(profiler):
        for _ in range(4):
            x = flow.relu(x) * 2
        x.sum().backward()
    assert profiler.calls["relu"] == 4
    assert profiler.calls["sum"] == 1
    assert profiler.calls["relu_grad"] == 4
    assert all(seconds > 0 for seconds in profiler.seconds.values())


def test_a_pushed_interpreter_sees_the_backward_ops():
    x = flow.tensor([1.0, -2.0], requires_grad=True)
    y = flow.relu(x).tanh().sum()
    names = Names()
    with flow.push_interpreter(names):
        y.backward()
    assert "relu_grad" in names.seen and "tanh_grad" in names.seen
    assert x.grad.tolist() == pytest.approx([1 - np.tanh(1) ** 2, 0])
    assert not x.grad.requires_grad


def test_gradients_under_a_pushed_interpreter_are_the_same():
    def run():
        x = flow.tensor([[0.5, -1.0], [2.0, 0.1]], requires_grad=True)
        y = (x @ x.t()).softmax(-1)[0] * x.sum(0)
        return flow.autograd.grad(y.exp().sum(), x)[0].numpy()

    plain = run()
    with flow.push_interpreter(Names()):
        np.testing.assert_allclose(run(), plain, rtol=1e-6)


def test_backward_without_create_graph_records_nothing_under_an_interpreter():
    x = flow.tensor([1.0, 2.0], requires_grad=True)
    with flow.push_interpreter(Names()):
        (g,) = flow.autograd.grad((x**3).sum(), x)
        (h,) = flow.autograd.grad((x**3).sum(), x, create_graph=True)
    assert not g.requires_grad
    assert h.requires_grad


def test_the_same_instance_twice_is_refused():
    names = Names()
    with flow.push_interpreter(names):
        with pytest.raises(ArgumentError, match="on the stack already"):
            with flow.push_interpreter(names):
                pass
        with flow.push_interpreter(Names()):
            with pytest.raises(ArgumentError, match="on the stack already"):
                with flow.push_interpreter(names):
                    pass
        assert current_interpreter() is names
        flow.ones(1)
    assert names.seen == ["full"]
    with flow.push_interpreter(names):  # and once it is popped, it may be pushed again
        flow.ones(1)
    assert names.seen == ["full", "full"]


def test_an_instance_pushed_in_two_threads_is_refused_or_serves_both():
    """An instance has one `inner`: one thread must not take it away from another."""
    names, problems = Names(), []
    pushed, popped = threading.Event(), threading.Event()

    def other():
        try:
            with flow.push_interpreter(names):
                pushed.set()
                popped.wait(10)
                flow.ones(1)
        except ArgumentError:
            pass
        except BaseException as error:
            problems.append(error)
        finally:
            pushed.set()

    thread = threading.Thread(target=other)
    with flow.push_interpreter(names):
        thread.start()
        pushed.wait(10)
        assert (flow.ones(1) + 1).tolist() == [2.0]
    popped.set()
    thread.join()
    assert not problems


@pytest.mark.parametrize("bad", [Names, object(), None, lambda *a: None])
def test_only_instances_of_interpreter_are_pushed(bad):
    with pytest.raises(ArgumentTypeError, match="push_interpreter"), flow.push_interpreter(bad):
        pass
    assert current_interpreter() is DEFAULT_STACK


def test_the_stack_is_restored_after_an_error():
    class Failing(flow.Interpreter):
        def apply(self, op_expr, inputs, attrs):
            raise KeyError("mine")

    x = flow.ones(2, requires_grad=True)
    failing = Failing()
    with flow.push_interpreter(failing):
        with pytest.raises(KeyError, match="mine"):
            x + 1
        assert current_interpreter() is failing
    assert current_interpreter() is DEFAULT_STACK
    with pytest.raises(ValueError, match="block"), flow.push_interpreter(Names()):
        raise ValueError("block")
    assert current_interpreter() is DEFAULT_STACK
    assert (x + 1).tolist() == [2.0, 2.0]


def test_an_error_in_backward_restores_the_stack():
    x = flow.tensor([1.0], requires_grad=True)
    y = x.relu()
    x.register_hook(lambda grad: 1 / 0)
    names = Names()
    with flow.push_interpreter(names):
        with pytest.raises(ZeroDivisionError):
            y.backward()
        assert current_interpreter() is names
    assert flow.is_grad_enabled()


def test_the_stack_is_per_thread():
    names, seen_in_thread = Names(), []

    def other():
        seen_in_thread.append(current_interpreter())
        flow.ones(3).exp()

    with flow.push_interpreter(names):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert seen_in_thread == [DEFAULT_STACK]
    assert names.seen == []


def test_grad_mode_and_stack_change_together():
    names = Names()
    x = flow.ones(1, requires_grad=True)
    with flow.no_grad(), flow.push_interpreter(names):
        assert not (x * 2).requires_grad
        with flow.enable_grad():
            assert (x * 2).requires_grad
            assert current_interpreter() is names
        assert not flow.is_grad_enabled()
    assert flow.is_grad_enabled()
    with flow.push_interpreter(names):
        with flow.no_grad():
            assert not (x * 2).requires_grad
        assert (x * 2).requires_grad
    assert names.seen == ["mul"] * 4


def test_the_grad_mode_is_seen_inside_an_interpreter():
    modes = []

    class Mode(flow.Interpreter):
        def apply(self, op_expr, inputs, attrs):
            modes.append(flow.is_grad_enabled())
            return self.inner.apply(op_expr, inputs, attrs)

    with flow.push_interpreter(Mode()):
        flow.ones(1)
        with flow.no_grad():
            flow.ones(1)
    assert modes == [True, False]


class TestEagerInterpreter:
    def test_records_nothing(self):
        x = flow.ones(2, requires_grad=True)
        y = EagerInterpreter().apply(op_expr("neg"), (x,), {})
        assert y.tolist() == [-1.0, -1.0]
        assert not y.requires_grad

    def test_outputs_are_arrays_never_scalars(self):
        for y in (
            EagerInterpreter().apply(op_expr("neg"), (flow.tensor(1.0),), {}),
            flow.tensor(1.0) + flow.tensor(2.0),
            flow.tensor(1.0).exp(),
            flow.ones(2).sum(),
            flow.ones(2)[0],
            flow.ones(2) @ flow.ones(2),
        ):
            assert type(y._data) is np.ndarray
            assert y.shape == ()

    def test_counts_writes_under_no_grad_too(self):
        x = flow.ones(2)
        before = x._version
        x.zero_()
        with flow.no_grad():
            x.fill_(3)
        assert x._version == before + 2


class TestErrors:
    def test_shapes_that_do_not_broadcast(self):
        for f in (flow.add, flow.mul, lambda x, y: x - y):
            with pytest.raises(ShapeError) as caught:
                f(flow.ones(2, 3), flow.ones(2))
            text = str(caught.value)
            assert "(2, 3)" in text and "(2,)" in text and "broadcast" in text

    def test_a_kernel_error_keeps_its_type_and_names_the_op(self):
        with pytest.raises(Exception) as caught:
            dispatch(op_expr("transpose"), (flow.ones(2),), {"dim0": 0, "dim1": 7})
        assert type(caught.value) is np.exceptions.AxisError
        assert any("'transpose'" in note and "(2,)" in note for note in caught.value.__notes__)

    @pytest.mark.parametrize("bad", [3, "text", None, [1.0], np.ones(2)])
    def test_no_tensor_where_one_belongs(self, bad):
        with pytest.raises(ArgumentTypeError, match=r"relu\(\).*Tensor"):
            flow.relu(bad)

    def test_the_gradient_of_a_mixed_call_is_not_recorded_when_it_fails(self):
        x = flow.ones(2, requires_grad=True)
        with pytest.raises(ShapeError):
            x + flow.ones(3)
        assert x.grad is None
        (x * 2).sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]

    def test_a_device_that_is_not_there(self):
        if flow.cuda.is_available():
            pytest.skip("a device is here")
        with pytest.raises(DeviceError, match="cuda"):
            flow.ones(2, device="cuda")
