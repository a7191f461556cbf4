"""oneflow_lite.numpy: NumPy's names, whose functions look into lists and return tensors."""

import numpy
import pytest

import oneflow_lite as flow
import oneflow_lite.numpy as np
from oneflow_lite.autograd import gradcheck, gradgradcheck
from oneflow_lite.errors import GradientError

X = numpy.array([0.7, 0.25, 1.5])

# Expressions that ask elements of x, with NumPy for np.
CALLS = """
    np.array([x[0], x[1]])                   np.array([[x[0], 0.1], [0.2, x[1] * x[2]]])
    np.array([x, x * x])                     np.array(x, ndmin=2)
    np.asarray([x[0], 1])                    np.array([[x[0]]], dtype=np.float64)
    np.full((2, 3), x)                       np.full(2, x[0])
    np.mean([x[0], x[1]])                    np.linalg.norm([x[0], x[1]])
    np.linalg.solve([[x[0], 0.1], [0.3, x[1]]], [0.1, 2.0])
    np.r_[x, 0.1, 0:2]                       np.c_[x, x * x]
    np.concatenate([[x[0]], x])              np.fft.rfft([x[0], x[1], 0.1])
    np.vectorize(lambda v: v * v)(x)         np.vectorize(lambda v, w: v ** w)(x, x[:, None])
    np.vectorize(lambda v, n: v ** n, excluded=[1])(x, 3)
    np.vectorize(lambda v: (v * v, 2.0 * v))(x)
    np.vectorize(lambda v: v if v > 1 else 0.1)(x)
"""
CALLS = [part.strip() for line in CALLS.splitlines() for part in line.split("   ") if part.strip()]


@pytest.mark.parametrize("call", CALLS)
def test_elements_keep_their_gradients(call):
    def function(x):
        return eval(call, {"np": np, "x": x})

    expected = eval(call, {"np": numpy, "x": X})
    x = flow.tensor(X, requires_grad=True)
    found = function(x)
    for ours, theirs in zip(
        found if isinstance(found, tuple) else [found],
        expected if isinstance(expected, tuple) else [expected],
        strict=True,
    ):
        assert ours.requires_grad and ours.dtype == theirs.dtype and ours.shape == theirs.shape
        numpy.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=1e-12)
    assert gradcheck(function, (x,)) and gradgradcheck(function, (x,))


def test_what_numpy_lets_no_argument_take_over_is_refused_by_name():
    x = flow.tensor(X, requires_grad=True)
    for call in ("np.array([x[0], x[1]])", "np.full(2, x[0])", "np.vectorize(lambda v: v)(x)"):
        with pytest.raises(GradientError, match=r"flow\.stack\(\), or np\.array\(\.\.\., like=x\)"):
            eval(call, {"np": numpy, "x": x})
    with pytest.raises(GradientError):  # it calls NumPy's arrays
        np.vectorize(lambda v: v, signature="(n)->(n)")(x)


def test_arrays_are_tensors_of_numpys_dtypes():
    for made in (np.zeros(2), np.array([1.0, 2.0]), np.linspace(0, 1, 2), np.random.randn(2)):
        assert isinstance(made, flow.Tensor) and made.dtype == flow.float64
    assert np.arange(3).dtype == flow.int64
    assert isinstance(np.meshgrid([1.0], [2.0])[1], flow.Tensor)
    assert isinstance(np.vectorize(lambda v: v * v)([1.0]), flow.Tensor)
    assert np.array(["a"]).tolist() == ["a"]
    x = flow.tensor(X)
    assert np.asarray(x) is x and np.array(x) is not x


def test_the_rest_is_numpys():
    assert np.pi is numpy.pi and np.sin is numpy.sin and np.float64 is numpy.float64
    assert {"array", "linspace", "linalg"} <= set(dir(np)) and "norm" in dir(np.linalg)
    assert np.linalg.norm([3.0, 4.0]) == 5.0 and np.shape([[1, 2]]) == (1, 2)
    with pytest.raises(AttributeError):
        _ = np.no_such_name


def test_a_program_of_hips():
    """The import line alone is changed; `flow.func.grad` stands in the place of `grad`."""

    def energy(x):
        parts = np.array([x[0] ** 2, np.sin(x[1]), np.dot(x, x)])
        return np.sum(parts * np.linspace(1, 2, 3))

    slope = flow.func.grad(energy)(np.array([0.5, 2.0]))
    numpy.testing.assert_allclose(slope.numpy(), [3.0, 1.5 * numpy.cos(2.0) + 8.0])
