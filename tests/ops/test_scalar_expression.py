"""Scalar expressions: what they may say, what is written from them, and that check_op sees lies."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import RegistrationError
from oneflow_lite.ops.registry import FUNCTORS, GRAD_FUNCS, KERNELS, register_kernel
from oneflow_lite.ops.scalar_expression import Scalar, scalar_of
from oneflow_lite.testing import Fixed, OpCheckError, Sample, check_op


def test_steps_get_names_of_their_own():
    scalar = Scalar("q = x * x; where(q > limit, q, -x)", ["x"], ["limit"])
    lines = scalar.steps({"x": "a0"}, "t3", lambda n: f"f4({n!r})", {"limit": 2})
    assert list(map(str, lines)) == ["t3_q = a0 * a0", "t3 = where(t3_q > f4(2), t3_q, -a0)"]


def test_numbers_stand_for_attributes():
    scalar = Scalar("x * slope + 1", ["x"], ["slope"])
    assert scalar.evaluate({"x": np.array([1.0, 2.0])}, {"slope": 3}).tolist() == [4.0, 7.0]
    assert scalar.evaluate({"x": np.array([1.0])}, {"slope": np.inf}).tolist() == [np.inf]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x + z", "names z"),
        ("x.real", "has 'x.real' in it"),
        ("x if x > 0 else 0", "in it"),
        ("__import__('os')", "in it"),
        ("erf(x", "cannot be read"),
        ("y; x", "cannot be read"),
        ("y = late * x; late = x; y", "names late"),
    ],
)
def test_anything_else_is_refused(text, said):
    with pytest.raises(RegistrationError, match="the scalar expression") as caught:
        Scalar(text, ["x"])
    assert said in str(caught.value)


def test_a_ufunc_is_its_own_expression():
    found = scalar_of("add", {})
    assert found is not None and found.text == "x + y"
    assert scalar_of("exp", {}).text == "exp(x)"
    assert scalar_of("matmul", {}) is None


def test_attributes_choose():
    assert "erf" in scalar_of("gelu", {"approximate": "none"}).text
    assert "tanh" in scalar_of("gelu", {"approximate": "tanh"}).text


@pytest.fixture
def doubled():
    """An op whose expression is true but for negative numbers."""

    @register_kernel("toy_doubled", scalar="abs(x) * 2")
    def kernel(xp, x):
        return x * 2

    yield lambda x: flow.autograd.rule_namespace.FUNCTORS_F.toy_doubled(x)
    for registry in (FUNCTORS, GRAD_FUNCS, KERNELS):
        registry.remove("toy_doubled")


def test_check_op_holds_the_expression_against_the_kernel(doubled):
    sample = Sample(
        Fixed(np.array([1.0, 2.0]))
    )  # away from where they differ: the special values find it
    with pytest.raises(OpCheckError, match=r"toy_doubled: the scalar expression .abs\(x\) \* 2."):
        check_op("toy_doubled", [sample], second_order=False)
