"""OpExpr: one object per name, what it looks up, and when it looks again."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import UnknownOpError
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.ops.op_expr import OpExpr, op_expr
from oneflow_lite.ops.registry import GRAD_FUNCS, KERNELS


@pytest.fixture
def name(request):
    chosen = f"test_{request.node.originalname}"
    yield chosen
    for registry in (KERNELS, GRAD_FUNCS):
        registry.remove(chosen)
    op_expr(chosen).forget()


def test_there_is_one_object_per_name():
    assert op_expr("relu") is op_expr("relu")
    assert op_expr("relu") is not op_expr("neg")
    assert isinstance(op_expr("relu"), OpExpr)
    assert op_expr("relu").op_type_name == "relu"
    assert repr(op_expr("relu")) == "OpExpr('relu')"


def test_schema_of_real_ops():
    assert op_expr("mul").schema.inputs == ("x", "y")
    assert op_expr("copy_").schema.mutates == ("x",)
    assert op_expr("transpose").schema.view_of == "x"
    assert op_expr("random_normal").schema.random
    assert not op_expr("mul").schema.random


@pytest.mark.parametrize("ask", [lambda e: e.schema, lambda e: e.kernel(np)])
def test_an_unknown_op_is_answered_with_near_misses(ask):
    with pytest.raises(UnknownOpError, match=r"'reluu'.*'relu'"):
        ask(op_expr("reluu"))


def test_calling_an_unknown_op():
    with pytest.raises(UnknownOpError, match=r"'reluu'.*'relu'"):
        dispatch(op_expr("reluu"), (flow.ones(2),), {})


def test_an_op_may_be_named_before_its_kernel_is_registered(name):
    expr = op_expr(name)
    with pytest.raises(UnknownOpError):
        expr.kernel(np)
    flow.register_kernel(name)(lambda xp, x: x + 1)
    assert expr.kernel(np)(np.zeros(())) == 1


def test_the_kernel_is_bound_to_the_array_module(name):
    seen = []
    flow.register_kernel(name)(lambda xp, x: seen.append(xp) or x)
    op_expr(name).kernel(np)(np.zeros(()))
    assert seen == [np]


def test_ops_that_write_do_not_take_the_short_way(name):
    flow.register_kernel(name, mutates="x")(lambda xp, x: x)
    op_expr(name).kernel(np)
    assert op_expr(name).run_on_cpu is None
    flow.neg(flow.ones(2))
    assert op_expr("neg").run_on_cpu is op_expr("neg").kernel(np)


def test_the_gradient_function_is_found_once(name):
    flow.register_kernel(name)(lambda xp, x: x * 2)
    expr = op_expr(name)
    assert expr.find_grad_function() is None
    flow.register_grad_func(name)(lambda F, ctx, dy: dy * 2)
    found = expr.find_grad_function()
    assert found is not None
    assert expr.find_grad_function() is found
    assert expr.grad_function is found


def test_forget_looks_everything_up_again(name):
    flow.register_kernel(name)(lambda xp, x: x + 1)
    expr = op_expr(name)
    assert expr.kernel(np)(np.zeros(())) == 1
    KERNELS.remove(name)
    flow.register_kernel(name)(lambda xp, x: x + 2)
    expr.forget()
    assert expr.kernel(np)(np.zeros(())) == 2
