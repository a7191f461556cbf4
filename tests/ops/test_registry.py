"""Registries: names, near misses, duplicates, kernels by device."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd.engine.rule_namespace import NUMPY_F
from oneflow_lite.errors import RegistrationError, UnknownOpError
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import (
    FUNCTORS,
    GRAD_FUNCS,
    KERNELS,
    Registry,
    Schema,
    register_ufunc,
)


@pytest.fixture
def name(request):
    """A name for one test; what the test registers under it is forgotten afterwards."""
    chosen = f"test_{request.node.originalname}"
    yield chosen
    for registry in (KERNELS, FUNCTORS, GRAD_FUNCS):
        registry.remove(chosen)


class TestRegistry:
    def test_holds_what_was_added(self):
        registry = Registry("thing")
        registry.add("a", 1)
        registry.add("b", 2)
        assert registry.get("a") == 1
        assert registry.find("b") == 2
        assert registry.find("c") is None
        assert "a" in registry and "c" not in registry
        assert list(registry) == ["a", "b"]
        assert len(registry) == 2

    def test_a_name_is_taken_once(self):
        registry = Registry("thing")
        registry.add("a", 1)
        with pytest.raises(RegistrationError, match="thing 'a' is registered already") as caught:
            registry.add("a", 2)
        assert isinstance(caught.value, ValueError)
        assert registry.get("a") == 1

    @pytest.mark.parametrize("bad", ["", None, 3, ("a",)])
    def test_a_name_is_a_string(self, bad):
        with pytest.raises(RegistrationError, match="registered under a name"):
            Registry("thing").add(bad, 1)

    def test_a_missing_name_is_answered_with_near_misses(self):
        registry = Registry("colour")
        for colour in ("green", "grey", "blue"):
            registry.add(colour, colour)
        with pytest.raises(UnknownOpError) as caught:
            registry.get("gren")
        text = str(caught.value)
        assert "colour" in text and "'gren'" in text and "'green'" in text
        assert "'blue'" not in text

    def test_a_name_that_is_near_to_none(self):
        registry = Registry("colour")
        registry.add("green", 1)
        with pytest.raises(UnknownOpError, match="no colour is registered as 'xyz'"):
            registry.get("xyz")

    def test_the_error_carries_no_key_error_with_it(self):
        with pytest.raises(UnknownOpError) as caught:
            Registry("thing").get("a")
        assert caught.value.__context__ is None

    def test_forgets(self):
        registry = Registry("thing")
        registry.add("a", 1)
        registry.remove("a")
        registry.remove("never there")
        assert "a" not in registry
        registry.add("a", 2)
        assert registry.get("a") == 2


def test_a_name_that_is_registered_anew_means_the_new_kernel(name):
    """Calls, gradient rules and the profiler keep nothing of the op that the name was."""

    def registered(factor):
        times = flow.register_op(name)(lambda xp, x: x * factor)
        times.grad()(lambda F, ctx, dy: dy * factor)
        return times

    for factor in (2.0, 3.0):
        times = registered(factor)
        x = flow.tensor([1.0], requires_grad=True)
        times(x).backward()
        assert times(x).item() == x.grad.item() == getattr(NUMPY_F, name)(np.ones(())) == factor
        for registry in (KERNELS, FUNCTORS, GRAD_FUNCS):
            registry.remove(name)
        assert name not in vars(NUMPY_F)
    with flow.profiler.profile():
        flow.relu(x)


def test_the_three_registries_name_near_misses():
    with pytest.raises(UnknownOpError, match=r"kernel.*'relo'.*'relu'"):
        KERNELS.get("relo")
    with pytest.raises(UnknownOpError, match=r"functor.*'soft_max'.*'softmax'"):
        FUNCTORS.get("soft_max")
    with pytest.raises(UnknownOpError, match=r"gradient function.*'multiply'"):
        GRAD_FUNCS.get("multiply")


class TestKernels:
    def test_the_schema_is_read_off_the_parameters(self, name):
        @flow.register_kernel(name, view_of="x", random=True)
        def kernel(xp, x, y, *rest, dim, keepdim=False):
            return x

        schema = KERNELS.get(name).schema
        assert schema.inputs == ("x", "y")
        assert schema.variadic == "rest"
        assert list(schema.attrs) == ["dim", "keepdim"]
        assert schema.attrs["keepdim"] is False
        assert schema.view_of == "x"
        assert schema.mutates == ()
        assert schema.random
        assert schema.infer is None

    @pytest.mark.parametrize("given", ["x", ("x",), ["x"]])
    def test_mutates_is_one_name_or_several(self, name, given):
        flow.register_kernel(name, mutates=given)(lambda xp, x: x)
        assert KERNELS.get(name).schema.mutates == ("x",)

    def test_infer_is_kept(self, name):
        def infer(x):
            return x

        flow.register_kernel(name, infer=infer)(lambda xp, x: x)
        assert KERNELS.get(name).schema.infer is infer

    @pytest.mark.parametrize("flags", [{"mutates": "z"}, {"view_of": "z"}, {"mutates": ("x", "z")}])
    def test_a_schema_that_names_no_parameter(self, name, flags):
        with pytest.raises(RegistrationError, match="'z'"):
            flow.register_kernel(name, **flags)(lambda xp, x: x)
        assert name not in KERNELS

    def test_the_decorator_returns_the_kernel(self, name):
        def kernel(xp, x):
            return x

        assert flow.register_kernel(name)(kernel) is kernel

    @pytest.mark.parametrize("device", [None, "cpu", "cuda"])
    def test_duplicates_raise(self, name, device):
        flow.register_kernel(name, device=device)(lambda xp, x: x + 1)
        with pytest.raises(RegistrationError, match=name):
            flow.register_kernel(name, device=device)(lambda xp, x: x + 2)
        if device != "cuda":
            assert float(op_expr(name).kernel(np)(np.ones(()))) == 2

    def test_a_kernel_for_one_device_is_preferred(self, name):
        flow.register_kernel(name)(lambda xp, x: x + 1)
        assert float(op_expr(name).kernel(np)(np.ones(()))) == 2
        flow.register_kernel(name, device="cpu")(lambda xp, x: x + 10)  # after the first use
        assert float(op_expr(name).kernel(np)(np.ones(()))) == 11

    def test_an_unknown_device(self, name):
        with pytest.raises(RegistrationError, match="tpu"):
            flow.register_kernel(name, device="tpu")
        assert name not in KERNELS

    def test_kernels_of_one_op_take_the_same_arrays(self, name):
        flow.register_kernel(name)(lambda xp, x: x)
        with pytest.raises(RegistrationError, match="same parameters"):
            flow.register_kernel(name, device="cuda")(lambda xp, x, y: x)

    def test_without_a_kernel_for_the_device(self, name):
        flow.register_kernel(name, device="cuda")(lambda xp, x: x)
        with pytest.raises(UnknownOpError, match=f"{name}.*no kernel for cpu.*cuda"):
            op_expr(name).kernel(np)

    @pytest.mark.parametrize("inputs", [1, 2])
    def test_a_function_of_the_array_module(self, name, inputs):
        register_ufunc(name, "negative" if inputs == 1 else "subtract", inputs)
        assert KERNELS.get(name).schema.inputs == ("x", "y")[:inputs]
        arrays = [np.array([3.0]), np.array([1.0])][:inputs]
        assert op_expr(name).kernel(np)(*arrays) == (-3 if inputs == 1 else 2)
        assert KERNELS.get(name).by_device[None](np, *arrays) == (-3 if inputs == 1 else 2)


class TestFunctors:
    def test_is_found_by_name(self, name):
        @flow.register_functor(name)
        def functor(input):
            return input

        assert FUNCTORS.get(name) is functor

    def test_duplicates_raise(self, name):
        flow.register_functor(name)(lambda input: 1)
        with pytest.raises(RegistrationError, match=name):
            flow.register_functor(name)(lambda input: 2)
        assert FUNCTORS.get(name)(None) == 1


class TestGradientFunctions:
    def test_duplicates_raise(self, name):
        flow.register_kernel(name)(lambda xp, x: x + 1)
        flow.register_grad_func(name)(lambda F, ctx, dy: dy)
        with pytest.raises(RegistrationError, match=name):
            flow.register_grad_func(name)(lambda F, ctx, dy: dy * 2)

    @pytest.mark.parametrize("first", ["x", None])
    def test_a_rule_per_input_excludes_one_for_all(self, name, first):
        second = None if first else "x"
        flow.register_grad_func(name, wrt=first)(lambda F, ctx, dy: dy)
        with pytest.raises(RegistrationError, match="already"):
            flow.register_grad_func(name, wrt=second)(lambda F, ctx, dy: dy)

    def test_one_input_twice(self, name):
        flow.register_grad_func(name, wrt="x")(lambda F, ctx, dy: dy)
        with pytest.raises(RegistrationError, match="x"):
            flow.register_grad_func(name, wrt="x")(lambda F, ctx, dy: dy)

    def test_a_class_of_another_kind(self, name):
        with pytest.raises(RegistrationError, match="OpExprGradFunction"):

            @flow.register_grad_func(name)
            class Wrong:
                pass

        assert name not in GRAD_FUNCS

    def test_a_class_after_a_function(self, name):
        flow.register_grad_func(name)(lambda F, ctx, dy: dy)
        with pytest.raises(RegistrationError):

            @flow.register_grad_func(name)
            class Second(flow.OpExprGradFunction):
                pass

    def test_a_function_after_a_class(self, name):
        @flow.register_grad_func(name)
        class First(flow.OpExprGradFunction):
            pass

        with pytest.raises(RegistrationError, match="already"):
            flow.register_grad_func(name)(lambda F, ctx, dy: dy)


def test_a_schema_on_its_own():
    schema = Schema(lambda xp, x, /, y, *, dim=1: x)
    assert schema.inputs == ("x", "y")
    assert schema.variadic is None
    assert schema.attrs == {"dim": 1}
