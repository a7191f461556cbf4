"""NumPy's functions on tensors: their values are NumPy's, and no gradient is lost in silence."""

import re

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.array_api.adapter import ADAPTERS
from oneflow_lite.autograd import gradcheck, gradgradcheck
from oneflow_lite.errors import (
    ArgumentError,
    DeviceError,
    FlowError,
    GradientError,
    InplaceError,
    NotDifferentiableError,
)
from oneflow_lite.interop.array_protocols import WRITERS
from tests.numpy_walk import (
    ARRAYS,
    CALLS,
    DATES,
    MODULES,
    NAN,
    RECORDED,
    A,
    B,
    V,
    evaluate,
    leaf,
    leaves,
    outcome,
    ufunc_call,
)

UFUNCS = {
    f: (prefix, name)
    for prefix, place in (("special", "scipy.special"), ("np", "numpy"))
    for name in sorted(MODULES[place].__all__)
    if isinstance(f := getattr(MODULES[place], name), np.ufunc) and name not in DATES
}
ALL_CALLS = [*CALLS, *[ufunc_call(prefix, name, f) for f, (prefix, name) in UFUNCS.items()]]
WRITES = tuple([f"np.{name}(" for name in WRITERS if name != "copyto"])


def plain(value):
    """A tensor as an array."""
    return value.detach().numpy() if isinstance(value, flow.Tensor) else value


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("call", [call for call in ALL_CALLS if not call.startswith(WRITES)])
def test_a_call_has_numpys_values(call):
    ours, theirs = leaves(evaluate(call, flow.tensor)), leaves(evaluate(call))
    assert len(ours) == len(theirs)
    for x, y in zip(ours, theirs, strict=True):
        if isinstance(y, (np.ndarray, np.generic)) and y.dtype.kind in "biufc":
            assert isinstance(x, flow.Tensor)
            assert x.shape == y.shape and x.dtype == y.dtype
            np.testing.assert_allclose(plain(x), y, rtol=1e-10, atol=1e-15)
        else:
            assert type(x) is type(y) and x == y


CONSTANT = ("zeros", "ones_like", "full_like", "empty_like", "imag(A)", "common_type")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("call", ALL_CALLS)
def test_a_call_records_a_gradient_or_raises(call):
    """A result of tensors that require gradients requires one, unless it is discrete."""
    try:
        result = evaluate(call, leaf)
    except NotDifferentiableError as error:
        assert "detach()" in str(error)
        return
    except InplaceError as error:
        assert "use Tensor." in str(error)
        return
    if any(name in call for name in CONSTANT):
        return
    for x in leaves(result):
        assert not isinstance(x, (float, complex, np.inexact))
        if isinstance(x, flow.Tensor) and x.dtype.kind in "fc":
            assert x.requires_grad


def derivable(call):
    """Return the arrays that a call differentiates, and its differentiable results of them."""
    names = [name for name in ARRAYS if re.search(rf"\b{name}\b", call) and name != "I"]

    def function(*tensors):
        given = dict(zip(names, tensors, strict=True))
        if "S" in given:
            given["S"] = (given["S"] + given["S"].mT) / 2
        if "NAN" in given:
            given["NAN"] = flow.where(flow.tensor(np.isnan(NAN)), np.nan, given["NAN"])
        found = leaves(evaluate(call, flow.tensor, **given))
        return tuple([x for x in found if isinstance(x, flow.Tensor) and x.requires_grad])

    return [leaf(np.nan_to_num(ARRAYS[name])) for name in names], function


RECORDED_CALLS = [call for call in ALL_CALLS if outcome(call) == RECORDED]


@pytest.mark.parametrize("call", RECORDED_CALLS)
def test_the_derivatives_of_a_call(call):
    inputs, function = derivable(call)
    if "float32" not in call:
        assert gradcheck(function, inputs) and gradgradcheck(function, inputs)


class TestOperatorsOfArrays:
    """`array + tensor` is the tensor's affair, whatever NumPy calls for it."""

    @pytest.mark.parametrize("sign", "+ - * / // % ** @ == != < <= > >=".split())
    def test_an_array_first(self, sign):
        t = flow.tensor(V, requires_grad=True)
        result = eval(f"array {sign} t", {"array": A, "t": t})
        assert isinstance(result, flow.Tensor)
        np.testing.assert_allclose(plain(result), eval(f"a {sign} v", {"a": A, "v": V}))
        assert result.requires_grad == (result.dtype.kind == "f")

    def test_a_numpy_scalar_first(self):
        t = flow.ones(2, requires_grad=True)
        y = np.float64(3) * t
        assert y.dtype == flow.float32 and y.requires_grad and y.tolist() == [3.0, 3.0]
        assert (np.int64(1) - t).tolist() == [0.0, 0.0]

    def test_augmented(self):
        array = np.ones(3)
        before = array
        array += flow.tensor(V)
        assert array is before and array.tolist() == (V + 1).tolist()
        with pytest.raises(ArgumentError, match=r"np\.add\(\): argument 'out'"):
            array += flow.tensor(V, requires_grad=True)


def test_a_product_keeps_both_terms():
    w = flow.tensor([0.5, 2.0], requires_grad=True, dtype=flow.float64)
    (w * np.exp(w)).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), (1 + w.detach().numpy()) * np.exp(w.numpy()))


class TestMethodsOfUfuncs:
    def test_reduce(self):
        t = flow.tensor(A, requires_grad=True)
        for ufunc in (np.add, np.multiply, np.maximum, np.minimum, np.logaddexp):
            for axis in (0, 1):
                y = ufunc.reduce(t, axis=axis)
                np.testing.assert_allclose(plain(y), ufunc.reduce(A, axis=axis))
                assert y.requires_grad
            assert ufunc.reduce(t, axis=None, keepdims=True).shape == (1, 1)
        assert np.logical_and.reduce(flow.tensor([True, False])).item() is False
        assert np.add.reduce(t).shape == (3,)

    def test_accumulate(self):
        t = flow.tensor(A, requires_grad=True)
        for ufunc in (np.add, np.multiply):
            y = ufunc.accumulate(t, 1)
            np.testing.assert_allclose(plain(y), ufunc.accumulate(A, 1))
            assert y.requires_grad

    def test_outer(self):
        t = flow.tensor(V, requires_grad=True)
        y = np.subtract.outer(t, A)
        np.testing.assert_allclose(plain(y), np.subtract.outer(V, A))
        assert y.requires_grad

    def test_what_has_no_functor(self):
        t = flow.tensor(V)
        np.testing.assert_allclose(plain(np.add.reduceat(t, [0, 1])), np.add.reduceat(V, [0, 1]))
        with pytest.raises(NotDifferentiableError, match=r"add\.reduceat\(\).*detach\(\)"):
            np.add.reduceat(t.clone().requires_grad_(), [0, 1])
        with pytest.raises(InplaceError, match="index_put_"):
            np.add.at(t, [0], 1.0)


class TestOptionsOfUfuncs:
    def test_out(self):
        t, y = flow.tensor(V), flow.empty(3, dtype=flow.float64)
        before = y._version
        assert np.exp(t, out=y) is y and y._version == before + 1
        np.testing.assert_allclose(plain(y), np.exp(V))
        array = np.empty(3)
        assert np.exp(t, out=array) is array
        np.testing.assert_allclose(array, np.exp(V))
        with pytest.raises(ArgumentError, match=r"np\.exp\(\): argument 'out'"):
            np.exp(t.clone().requires_grad_(), out=y)

    def test_out_of_a_function(self):
        y = flow.empty(3, dtype=flow.float64)
        assert np.sum(flow.tensor(A), axis=0, out=y) is y
        np.testing.assert_allclose(plain(y), A.sum(0))
        with pytest.raises(GradientError):
            np.sum(flow.tensor(A, requires_grad=True), axis=0, out=y)
        with pytest.raises(GradientError):
            np.sum(flow.tensor(A, requires_grad=True), axis=0, out=np.empty(3))

    def test_where(self):
        t, mask = flow.tensor(V), np.array([True, False, True])
        found = np.add(t, 1, where=mask, out=np.zeros(3))
        np.testing.assert_allclose(found, np.add(V, 1, where=mask, out=np.zeros(3)))
        np.testing.assert_allclose(plain(np.sum(t, where=mask)), V.sum(where=mask))
        t.requires_grad_()
        with pytest.raises(ArgumentError, match=r"np\.add\(\): argument 'where'.*flow\.where"):
            np.add(t, 1, where=mask)
        with pytest.raises(NotDifferentiableError, match=r"np\.sum\(\).*where="):
            np.sum(t, where=mask)

    def test_dtype(self):
        y = np.add(flow.ones(2, requires_grad=True), 1, dtype=np.float64)
        assert y.dtype == flow.float64 and y.requires_grad

    def test_an_order_that_is_not_c(self):
        np.testing.assert_array_equal(plain(np.ravel(flow.tensor(A), order="F")), A.ravel("F"))
        assert np.ravel(flow.tensor(A, requires_grad=True), order="C").requires_grad
        assert np.ravel(flow.tensor(A, requires_grad=True), order="F").requires_grad


class TestConversionToArrays:
    @pytest.mark.parametrize(
        "convert", [np.asarray, np.array, np.asanyarray, lambda t: np.array([t, t])]
    )
    def test_a_gradient_is_not_dropped_in_silence(self, convert):
        for t in (flow.ones(2, requires_grad=True), flow.ones(2, requires_grad=True) * 2):
            with pytest.raises(GradientError, match=r"detach\(\) first, or \.numpy\(\)"):
                convert(t)
            with flow.no_grad(), pytest.raises(GradientError):
                convert(t)
            convert(t.detach())

    def test_elements(self):
        t = flow.ones(2, requires_grad=True)
        with pytest.raises(GradientError):
            np.array([t[0], t[1]])
        array = np.zeros(2)
        with pytest.raises(GradientError):
            array[:] = t

    def test_plots(self):
        pyplot = pytest.importorskip("matplotlib.pyplot")
        pyplot.switch_backend("agg")
        t = flow.ones(3, requires_grad=True)
        for x in (t, t * 2):
            with pytest.raises(GradientError, match=r"__array__\(\).*detach\(\)"):
                pyplot.plot(x)
        (line,) = pyplot.plot(t.detach())
        assert line.get_ydata().tolist() == [1.0] * 3
        pyplot.close("all")


class TestWhatNumpyWrites:
    def test_copyto(self):
        t = flow.zeros(3, dtype=flow.float64)
        np.copyto(t, V)
        assert t.tolist() == V.tolist() and t._version == 1
        source = flow.tensor(V, requires_grad=True)
        target = flow.zeros(3, dtype=flow.float64) * 1
        np.copyto(target, source)
        assert target.requires_grad
        array = np.zeros(3)
        np.copyto(array, t)
        assert array.tolist() == V.tolist()
        with pytest.raises(FlowError):
            np.copyto(array, source)

    @pytest.mark.parametrize(
        "call",
        [
            lambda t: np.put(t, [0], 1.0),
            lambda t: np.place(t, [True, False], 1.0),
            lambda t: np.putmask(t, np.array([True, False]), 1.0),
            lambda t: np.fill_diagonal(t, 1.0),
            lambda t: np.put_along_axis(t, np.array([0]), 1.0, 0),
        ],
    )
    def test_other_writes_are_refused(self, call):
        t = flow.zeros(2)
        with pytest.raises(InplaceError, match=r"use Tensor\."):
            call(t)
        assert t.tolist() == [0.0, 0.0]


class Stranger:
    """A class with protocols of its own."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return "ufunc of a stranger"

    def __array_function__(self, function, types, args, options):
        return "function of a stranger"


def test_other_libraries_are_asked():
    t = flow.ones(2)
    assert np.add(t, Stranger()) == "ufunc of a stranger"
    assert np.concatenate([t, Stranger()]) == "function of a stranger"


def test_scipys_ufuncs():
    special = pytest.importorskip("scipy.special")
    t = flow.tensor(V, requires_grad=True)
    for name in ("erf", "erfc", "expit", "xlogy", "expm1", "log1p", "exp2"):
        ufunc = getattr(special, name)
        args = (t, t) if ufunc.nin == 2 else (t,)
        y = ufunc(*args)
        assert isinstance(y, flow.Tensor) and y.requires_grad
        np.testing.assert_allclose(plain(y), ufunc(*[V] * len(args)))
    with pytest.raises(NotDifferentiableError, match=r"kv\(\).*detach\(\)"):
        special.kv(t, 1.0)  # an order
    np.testing.assert_allclose(plain(special.kv(t.detach(), 1.0)), special.kv(V, 1.0))


def test_cuda(device):
    t = flow.tensor(A, device=device, requires_grad=True)
    y = np.sum(np.sin(t) * np.float64(2), axis=0)
    assert y.device == t.device and y.requires_grad
    y.sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), 2 * np.cos(A))


def test_results_stay_on_the_device(device):
    """Places, masks and samples are made on the host, and sent where the tensors are."""
    calls = [call for call in CALLS if not call.startswith((*WRITES, "np.zeros("))]
    alone = set()
    for call in calls:
        try:
            result = evaluate(call, lambda array: flow.tensor(array, device=device))
        except DeviceError as error:
            assert "this function computes on the CPU" in str(error)
            alone.add(call)
            continue
        for x, y in zip(leaves(result), leaves(evaluate(call)), strict=True):
            if isinstance(x, flow.Tensor):
                assert x.device.type == device, call
                np.testing.assert_allclose(x.cpu().numpy(), y, rtol=1e-10, err_msg=call)
    assert len(alone) < len(calls) / 3


def test_second_derivative():
    x = flow.tensor(0.7, requires_grad=True, dtype=flow.float64)
    (dx,) = flow.autograd.grad(np.sin(x), x, create_graph=True)
    (d2x,) = flow.autograd.grad(dx, x)
    assert d2x.item() == pytest.approx(-np.sin(0.7))


def test_compiled():
    @flow.compile
    def step(x):
        return np.exp(x * 2).sum()

    x = flow.tensor(V, requires_grad=True)
    for _ in range(3):
        (dx,) = flow.autograd.grad(step(x), x)
        np.testing.assert_allclose(dx.numpy(), 2 * np.exp(2 * V))


def test_captured():
    main = flow.static.Program()
    with flow.static.program_guard(main):
        x = flow.static.data("x", (3,), "float64")
        y = np.sqrt(x) + np.ones(3)
        with pytest.raises(flow.errors.CaptureError):
            np.cbrt(x)
    (found,) = flow.static.Executor().run(main, feed={"x": V}, fetch_list=[y])
    np.testing.assert_allclose(found, np.sqrt(V) + 1)


def test_least_squares():
    for b in (V, B):
        found = np.linalg.lstsq(flow.tensor(A, requires_grad=True), flow.tensor(b))
        expected = np.linalg.lstsq(A, b)
        assert len(found) == 4 and found[0].requires_grad and found[2].item() == expected[2]
        np.testing.assert_allclose(plain(found[0]), expected[0])


def test_every_adapter_is_a_function_of_numpy():
    for path in ADAPTERS:
        found = np
        for part in path.split("."):
            found = getattr(found, part)
        assert callable(found)
