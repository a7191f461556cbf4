"""NumPy's functions on tensors: their values are NumPy's, and no gradient is lost in silence."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.array_api.adapter import ADAPTERS
from oneflow_lite.autograd import gradcheck
from oneflow_lite.errors import (
    ArgumentError,
    FlowError,
    GradientError,
    InplaceError,
    NotDifferentiableError,
)

A = np.array([[0.9, 0.4, 1.3], [0.2, 1.1, 0.7], [1.6, 0.3, 0.8]])
B = np.array([[0.5, 1.2, 0.1], [1.4, 0.6, 0.95], [0.35, 1.7, 0.15]])
V = np.array([0.7, 0.25, 1.5])
S = A @ A.T + np.eye(3)  # symmetric and positive definite
NAN = np.where(A > 1.2, np.nan, A)
UFUNCS = sorted({f for f in vars(np).values() if isinstance(f, np.ufunc)}, key=lambda f: f.__name__)

# Calls of NumPy's functions; f is NumPy or a part of it, and the arrays become tensors.
CALLS = """
    np.all(A > 0.3, axis=0)                np.any(A > 1.2)
    np.amax(A, 1)                          np.amin(A, 0, keepdims=True)
    np.max(A)                              np.min(A, axis=(0, 1))
    np.argmax(A, 1)                        np.argmin(A)
    np.sum(A, 0)                           np.sum(A, axis=(0, 1), keepdims=True)
    np.sum(a=A, axis=1)                    np.prod(A, axis=(0, 1))
    np.prod(A, 0, keepdims=True)           np.mean(A, axis=1, keepdims=True)
    np.mean(A)                             np.std(A)
    np.std(A, 0, ddof=1)                   np.var(A, axis=(0, 1))
    np.average(A, axis=0)                  np.average(A, 1, V)
    np.average(A, weights=B)               np.ptp(A, 0)
    np.nansum(NAN, 1)                      np.nanprod(NAN)
    np.nanmean(NAN, 0)                     np.nanmax(NAN, 1)
    np.nanmin(NAN)                         np.median(A)
    np.median(A, axis=1, keepdims=True)    np.median(V[:2])
    np.quantile(A, 0.3)                    np.quantile(A, np.array([0.2, 0.6]), axis=1)
    np.percentile(A, 30, axis=0)           np.cumsum(A)
    np.cumsum(A, 1)                        np.cumprod(A, axis=0)
    np.cumulative_sum(V, include_initial=True)
    np.cumulative_prod(A, axis=1)          np.count_nonzero(A > 1)
    np.cov(A)                              np.corrcoef(A, rowvar=False)
    np.concatenate([A, B])                 np.concatenate((A, V[None]), axis=0)
    np.concatenate([A, V], axis=None)      np.stack([A, B], axis=1)
    np.vstack([A, V])                      np.hstack([A, B])
    np.dstack([A, B])                      np.column_stack([V, A])
    np.append(A, V)                        np.append(A, B, axis=1)
    np.split(A, 3)                         np.array_split(A, 2, axis=1)
    np.hsplit(A, [1])                      np.vsplit(A, [1, 2])
    np.unstack(A)                          np.reshape(A, 9)
    np.reshape(A, (1, -1))                 np.ravel(A)
    np.transpose(A)                        np.transpose(A[None], (1, 0, 2))
    np.permute_dims(A, (1, 0))             np.matrix_transpose(A)
    np.swapaxes(A, 0, 1)                   np.moveaxis(A, 0, 1)
    np.squeeze(A[None])                    np.squeeze(A[None], axis=0)
    np.expand_dims(A, 1)                   np.expand_dims(A, (0, -1))
    np.broadcast_to(V, (2, 3))             np.broadcast_arrays(A, V)
    np.flip(A)                             np.flip(A, 0)
    np.fliplr(A)                           np.flipud(A)
    np.rot90(A)                            np.rot90(A, -1)
    np.roll(A, 2)                          np.roll(A, (1, 2), axis=(0, 1))
    np.tile(A, 2)                          np.tile(A, (2, 1))
    np.repeat(A, 2)                        np.repeat(A, [1, 0, 2], axis=1)
    np.atleast_1d(V[0])                    np.atleast_2d(V)
    np.atleast_3d(A)                       np.copy(A)
    np.diag(A)                             np.diag(V, 1)
    np.diagflat(A)                         np.diagonal(A, 1)
    np.trace(A)                            np.trace(A, 1)
    np.tril(A)                             np.triu(A, k=1)
    np.where(A > 1, A, B)                  np.where(A > 1, A, 0.5)
    np.where(A > 1)                        np.nonzero(A > 1)
    np.argwhere(A > 1)                     np.flatnonzero(A > 1)
    np.take(A, [0, -1], axis=1)            np.take(A, np.array([[4, 2]]))
    np.take_along_axis(A, np.argsort(A, 1), axis=1)
    np.compress([True, False, True], A, axis=0)
    np.extract(A > 1, A)                   np.searchsorted(np.sort(V), A)
    np.sort(A)                             np.sort(A, axis=0)
    np.sort(A, axis=None)                  np.argsort(A, axis=0)
    np.unique(np.round(A))                 np.isclose(A, B, atol=0.5)
    np.dot(A, B)                           np.dot(A, V)
    np.dot(V, V)                           np.dot(A[None], B[None])
    np.dot(2.0, A)                         np.inner(A, B)
    np.outer(A, V)                         np.vdot(A, B)
    np.tensordot(A, B)                     np.tensordot(A, B, axes=([0], [1]))
    np.einsum("ij,jk->ik", A, B)           np.einsum("ii", A)
    np.einsum(A, [0, 1], V, [1], [0])      np.kron(A, V)
    np.cross(A, B)                         np.cross(A, V, axis=-1)
    np.trapezoid(A)                        np.trapezoid(A, x=V, axis=0)
    np.diff(A)                             np.diff(A, 2, axis=0)
    np.diff(A, prepend=0.0)                np.clip(A, 0.5, 1.0)
    np.clip(A, None, V)                    np.round(A, 1)
    np.around(A)                           np.nan_to_num(NAN)
    np.real(A)                             np.imag(A)
    np.angle(A + 1j * B)                   np.sinc(A)
    np.i0(A)                               np.fix(A)
    np.interp(B, np.sort(V), A[0])         np.meshgrid(V, V[:2])
    np.meshgrid(V, V[:2], indexing="ij")   np.zeros_like(A)
    np.ones_like(A)                        np.full_like(A, 3.0)
    np.astype(A, np.float32)               np.linalg.norm(A)
    np.linalg.norm(A, axis=1)              np.linalg.norm(V, ord=1)
    np.linalg.inv(A)                       np.linalg.det(A)
    np.linalg.slogdet(A)                   np.linalg.solve(A, V)
    np.linalg.solve(A, B)                  np.linalg.cholesky(S)
    np.linalg.eigvalsh(S)                  np.linalg.matrix_power(A, 3)
    np.linalg.matrix_norm(A)               np.linalg.vector_norm(A, axis=0)
    np.linalg.pinv(A)                      np.linalg.svdvals(A)
    np.linalg.matrix_rank(A)               np.linalg.cond(A)
    np.linalg.multi_dot([A, B, V])         np.linalg.trace(A)
    np.linalg.diagonal(A)                  np.linalg.outer(V, V)
    np.linalg.matmul(A, B)                 np.linalg.vecdot(A, B)
    np.linalg.tensordot(A, B)              np.linalg.cross(A, B)
    np.linalg.qr(A)
    np.fft.fft(A)                          np.fft.ifft(A, axis=0)
    np.fft.rfft(A, n=4)                    np.fft.irfft(A + 0j, norm="ortho")
    np.fft.fftn(A)                         np.fft.rfft2(A)
    np.fft.fftshift(A)                     np.fft.ifftshift(A, axes=1)
    np.histogram(A)
    np.array_equal(A, B)                   np.allclose(A, A)
    np.shape(A)                            np.ndim(A)
    np.size(A)                             np.result_type(A, np.float32)
    np.iscomplexobj(A)                     np.array_repr(np.ones(2))
    np.isrealobj(A)                        np.vander(V)
    np.convolve(V, V)                      np.gradient(V)
    np.polyval([1.0, 2.0], V)              np.select([A > 1, A > 0.5], [A, B])
    np.delete(A, 1, axis=0)                np.insert(V, 1, 3.0)
"""
CALLS = [part.strip() for line in CALLS.splitlines() for part in line.split("   ") if part.strip()]


def run(call, wrap):
    """The call on arrays that went through `wrap`."""
    names = {"A": A, "B": B, "V": V, "S": S, "NAN": NAN}
    return eval(call, {"np": np, **{name: wrap(value) for name, value in names.items()}})


def leaves(result):
    """All tensors, arrays and numbers in a result."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    return [result]


def plain(value):
    """A tensor as an array."""
    return value.detach().numpy() if isinstance(value, flow.Tensor) else value


@pytest.mark.parametrize("call", CALLS)
def test_a_function_has_numpys_values(call):
    ours, theirs = leaves(run(call, flow.tensor)), leaves(run(call, lambda a: a))
    assert len(ours) == len(theirs)
    for x, y in zip(ours, theirs, strict=True):
        if isinstance(y, (np.ndarray, np.generic)) and np.asarray(y).dtype.kind in "biufc":
            assert isinstance(x, flow.Tensor)
            assert x.shape == y.shape and x.dtype == y.dtype
            np.testing.assert_allclose(plain(x), y, rtol=1e-10)
        else:
            assert type(x) is type(y) and x == y


@pytest.mark.parametrize("call", CALLS)
def test_a_function_records_a_gradient_or_raises(call):
    """A result of a tensor that requires a gradient requires one, unless it is discrete."""
    wrap = lambda a: flow.tensor(a, requires_grad=True)  # noqa: E731
    try:
        result = run(call, wrap)
    except NotDifferentiableError as error:
        assert "detach()" in str(error)
        return
    constant = ("zeros_like", "ones_like", "full_like", "imag", "ones(2)")
    if any(name in call for name in constant):
        return
    for leaf in leaves(result):
        assert not isinstance(leaf, (float, complex, np.inexact))
        if isinstance(leaf, flow.Tensor) and leaf.dtype.kind in "fc":
            assert leaf.requires_grad


GRADIENTS = [c for c in CALLS if "NAN" not in c and c.startswith("np.") and "linalg.qr" not in c]


@pytest.mark.parametrize("call", GRADIENTS)
def test_the_gradient_of_a_function(call):
    def function(a, b, v, s):
        names = {"A": a, "B": b, "V": v, "S": (s + s.mT) / 2, "NAN": a}
        found = leaves(eval(call, {"np": np, **names}))
        chosen = [x for x in found if isinstance(x, flow.Tensor) and x.requires_grad]
        return tuple([x.double() if x.dtype.kind == "f" else x for x in chosen])

    inputs = tuple([flow.tensor(x, requires_grad=True) for x in (A, B, V, S)])
    try:
        if not function(*inputs) or "float32" in call or "round" in call or "around" in call:
            return
    except NotDifferentiableError:
        return
    assert gradcheck(function, inputs)


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda f: f.__name__)
def test_a_ufunc(ufunc):
    name = ufunc.__name__
    whole = any(kind in name for kind in ("bitwise", "shift", "invert", "gcd", "lcm"))
    if name in ("ldexp", "isnat"):
        return
    args = [np.array([3, 6, 9]), np.array([1, 2, 1])] if whole else [V / 2, V[::-1] / 3 + 0.1]
    if name in ("matmul", "matvec", "vecmat"):
        args = [V if name == "vecmat" else A, V if name == "matvec" else B]
    if name == "arccosh":
        args = [V + 1]
    args = args[: ufunc.nin]
    if not whole:
        try:
            ufunc(*args)
        except TypeError:
            args = [np.array([3, 6, 9])[: len(a)] for a in args]
    theirs = ufunc(*args)
    ours = ufunc(*[flow.tensor(a) for a in args])
    for x, y in zip(leaves(ours), leaves(theirs), strict=True):
        np.testing.assert_allclose(plain(x), y, rtol=1e-12)
        assert isinstance(x, flow.Tensor)
    if args[0].dtype.kind != "f":
        return
    try:
        result = ufunc(*[flow.tensor(a, requires_grad=True) for a in args])
    except FlowError as error:
        assert "detach()" in str(error) or "derivative" in str(error)
        return
    for x in leaves(result):
        assert x.dtype.kind not in "fc" or x.requires_grad


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
        with pytest.raises(NotDifferentiableError, match="order="):
            np.ravel(flow.tensor(A, requires_grad=True), order="F")


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
    with pytest.raises(NotDifferentiableError):
        special.kv(1.0, t)
    np.testing.assert_allclose(plain(special.kv(1.0, t.detach())), special.kv(1.0, V))


def test_cuda(device):
    t = flow.tensor(A, device=device, requires_grad=True)
    y = np.sum(np.sin(t) * np.float64(2), axis=0)
    assert y.device == t.device and y.requires_grad
    y.sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), 2 * np.cos(A))


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
