"""The array API standard: every function, constant and dtype is there, with NumPy's values."""

import math

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, FlowError, ShapeError

xp = flow.ones(1).__array_namespace__()

A = np.array([[0.9, 0.4, 1.3], [0.2, 1.1, 0.7], [1.6, 0.3, 0.8]])
B = np.array([[0.5, 1.2, 0.1], [1.4, 0.6, 0.95], [0.35, 1.7, 0.15]])
V = np.array([0.7, 0.25, 1.5])
S = A @ A.T + np.eye(3)
C = A - 1j * B
I = np.array([3, 1, 2])  # noqa: E741
J = np.array([2, 1, 1])
U = np.array([200, 100, 7], dtype=np.uint8)
T = np.array([True, False, True])

# The functions of the standard, version 2024.12, each with calls of it.
CREATION = """
    arange(5)  arange(1.0, 2.0, 0.25)  arange(3, 0)  asarray([1, 2])  asarray(A)
    asarray(A, copy=True)  empty((0, 2))  empty_like(A[:0])  eye(3)  eye(2, 3, k=1)
    from_dlpack(A)  full((2, 3), 7)  full(2, 1.5, dtype=xp.float64)  full_like(A, 2.0)
    linspace(0.0, 1.0, 5)  linspace(0.0, 1.0, 4, endpoint=False)  meshgrid(V, V[:2])
    meshgrid(V, V[:2], indexing="ij")  ones((2,))  ones_like(I)  tril(A)  tril(A, k=1)  triu(A)
    triu(A, k=-1)  zeros(3)  zeros_like(C)
"""
DTYPES = """
    astype(A, xp.float32)  astype(I, xp.float64, copy=False)  broadcast_arrays(A, V)
    broadcast_to(V, (2, 3))  can_cast(xp.int8, xp.int32)  can_cast(xp.float64, xp.float32)
    can_cast(xp.uint64, xp.int64)  finfo(xp.float32).eps  finfo(A.dtype).smallest_normal
    finfo(xp.complex64).max  iinfo(xp.uint16).max  iinfo(I.dtype).bits
    isdtype(xp.int8, "integral")  isdtype(xp.float32, ("bool", "complex floating"))
    isdtype(xp.uint8, xp.uint8)  result_type(xp.float32, xp.float64)  result_type(I, xp.int8)
    result_type(xp.uint8, xp.int8)
"""
ELEMENTWISE = """
    abs(-A)  abs(C)  acos(A / 2)  acosh(A + 1)  add(A, V)  add(I, 1)  asin(A / 2)  asinh(A)
    atan(A)  atan2(A, B)  atanh(A / 2)  bitwise_and(I, J)  bitwise_left_shift(I, J)
    bitwise_invert(I)  bitwise_or(I, J)  bitwise_right_shift(I, J)  bitwise_xor(I, J)  ceil(A)
    ceil(I)  clip(A, 0.5, 1.0)  clip(A, V, None)  clip(I, max=2)  conj(C)  copysign(A, -B)  cos(A)
    cosh(A)  divide(A, B)  equal(I, J)  exp(A)  exp(C)  expm1(A)  floor(A)  floor_divide(A, B)
    floor_divide(I, J)  greater(A, B)  greater_equal(I, J)  hypot(A, B)  imag(C)  imag(A)
    isfinite(A)  isinf(A)  isnan(A)  less(A, 1.0)  less_equal(A, B)  log(A)  log1p(A)  log2(A)
    log10(A)  logaddexp(A, B)  logical_and(T, T)  logical_not(T)  logical_or(T, T)
    logical_xor(T, T)  maximum(A, B)  maximum(A, 0.5)  minimum(I, J)  multiply(A, C)  negative(I)
    nextafter(A, B)  not_equal(A, B)  positive(A)  pow(A, 2)  pow(I, J)  real(C)  real(A)
    reciprocal(A)  remainder(-A, B)  remainder(I, J)  round(A * 10)  round(C * 10)  sign(-A)
    sign(C)  signbit(-A)  sin(A)  sinh(A)  square(I)  sqrt(A)  subtract(A, 1)  tan(A)  tanh(A)
    trunc(-A * 3)
"""
INDEXING = """
    take(A, I - 1, axis=1)  take(V, J)  take_along_axis(A, xp.argsort(A, axis=0), axis=0)
"""
LINALG = """
    matmul(A, B)  matmul(A, V)  matrix_transpose(A)  tensordot(A, B)
    tensordot(A, B, axes=((0,), (1,)))  vecdot(A, B)  vecdot(C, C, axis=0)  vecdot(I, J)
"""
MANIPULATION = """
    concat([A, B])  concat((A, V[:, None]), axis=1)  concat([A, V], axis=None)
    expand_dims(A, axis=(0, 1))  expand_dims(A, axis=-1)  flip(A)  flip(A, axis=(0, 1))
    moveaxis(A, 0, 1)  permute_dims(A, (1, 0))  repeat(A, 2)  repeat(A, J, axis=1)
    reshape(A, (9,))  reshape(A, (1, -1), copy=True)  roll(A, 1)  roll(A, (1, 2), axis=(0, 1))
    squeeze(A[None], 0)  stack([A, B], axis=-1)  tile(A, (2,))  tile(A, (2, 1, 2))
    unstack(A, axis=1)
"""
SEARCHING = """
    argmax(A)  argmax(A, axis=1, keepdims=True)  argmin(A, axis=0)  count_nonzero(I - 1)
    count_nonzero(A > 1, axis=0, keepdims=True)  nonzero(A > 1)  searchsorted(xp.sort(V), A)
    searchsorted(V, A, side="right", sorter=xp.argsort(V))  where(A > 1, A, B)  where(T, 1.0, V)
"""
SETS = "unique_all(J)  unique_counts(J)  unique_inverse(J)  unique_values(J)"
SORTING = """
    argsort(A)  argsort(A, axis=0, stable=True)  argsort(J)  sort(A)  sort(A, axis=0)
"""
STATISTICS = """
    cumulative_prod(V)  cumulative_sum(A, axis=1)  cumulative_sum(U)
    cumulative_sum(V, include_initial=True)  max(A)  max(A, axis=1)
    max(A, axis=(0, 1), keepdims=True)  mean(A)  mean(A, axis=0, keepdims=True)  min(A)  min(I)
    prod(A)  prod(A, axis=(0, 1))  prod(U)  std(A)  std(A, axis=1, correction=1)  sum(A)  sum(U)
    sum(I, dtype=xp.float64)  sum(T)  sum(A, axis=())  sum(A, axis=(0,), keepdims=True)  var(A)
    var(A, correction=0.5)
"""
UTILITY = """
    all(T)  all(A > 0.3, axis=0)  any(T)  any(A > 1.5, axis=(0, 1))  diff(A)  diff(A, axis=0, n=2)
    diff(V, prepend=V[:1], append=V[:2])
"""
EXTENSION_FFT = """
    fft.fft(C)  fft.fft(A, n=4, axis=0, norm="ortho")  fft.ifft(C)  fft.fftn(C)
    fft.fftn(C, axes=(0,), s=(2,))  fft.ifftn(C)  fft.rfft(A)  fft.irfft(C)  fft.rfftn(A)
    fft.irfftn(C, norm="forward")  fft.hfft(C)  fft.ihfft(A)  fft.fftfreq(5)
    fft.rfftfreq(5, d=0.5)  fft.fftshift(A)  fft.fftshift(V)  fft.ifftshift(A, axes=(0,))
"""
EXTENSION_LINALG = """
    linalg.cholesky(S)  linalg.cholesky(S, upper=True)  linalg.cross(A, B)
    linalg.cross(A, B, axis=0)  linalg.det(A)  linalg.diagonal(A, offset=1)  linalg.eigh(S)
    linalg.eigvalsh(S)  linalg.inv(A)  linalg.matmul(A, B)  linalg.matrix_norm(A)
    linalg.matrix_norm(A, ord="nuc", keepdims=True)  linalg.matrix_power(A, 3)
    linalg.matrix_rank(A)  linalg.matrix_transpose(A)  linalg.outer(V, V)  linalg.pinv(A)
    linalg.qr(A)  linalg.slogdet(A)  linalg.solve(A, B)  linalg.solve(A, V)  linalg.svd(A)
    linalg.svd(A[:2], full_matrices=False)  linalg.svdvals(A)  linalg.tensordot(A, B)
    linalg.trace(A)  linalg.trace(U[:, None] + U)  linalg.vecdot(A, B)  linalg.vector_norm(A)
    linalg.vector_norm(A, axis=(0,), ord=1, keepdims=True)
"""
GROUPS = (
    CREATION, DTYPES, ELEMENTWISE, INDEXING, LINALG, MANIPULATION, SEARCHING, SETS, SORTING,
    STATISTICS, UTILITY, EXTENSION_FFT, EXTENSION_LINALG,
)  # fmt: skip
CALLS = [c.strip() for group in GROUPS for c in group.replace("\n", "  ").split("  ") if c.strip()]

DEFAULT_DTYPE = "arange empty eye linspace ones zeros fft.fftfreq fft.rfftfreq".split()
NAMES = """
    arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like
    tril triu zeros zeros_like
    astype broadcast_arrays broadcast_to can_cast finfo iinfo isdtype result_type
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert
    bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp
    expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal
    log log1p log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum
    multiply negative nextafter not_equal positive pow real reciprocal remainder round sign signbit
    sin sinh square sqrt subtract tan tanh trunc
    take take_along_axis
    matmul matrix_transpose tensordot vecdot
    concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile unstack
    argmax argmin count_nonzero nonzero searchsorted where
    unique_all unique_counts unique_inverse unique_values
    argsort sort
    cumulative_prod cumulative_sum max mean min prod std sum var
    all any diff
    fft.fft fft.ifft fft.fftn fft.ifftn fft.rfft fft.irfft fft.rfftn fft.irfftn fft.hfft fft.ihfft
    fft.fftfreq fft.rfftfreq fft.fftshift fft.ifftshift
    linalg.cholesky linalg.cross linalg.det linalg.diagonal linalg.eigh linalg.eigvalsh linalg.inv
    linalg.matmul linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.matrix_transpose
    linalg.outer linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.svdvals
    linalg.tensordot linalg.trace linalg.vecdot linalg.vector_norm
""".split()


def run(module, call, wrap):
    """Evaluate a call with the functions of a module on arrays that went through `wrap`."""
    arrays = {"A": A, "B": B, "V": V, "S": S, "C": C, "I": I, "J": J, "U": U, "T": T}
    names = {name: wrap(array) for name, array in arrays.items()}
    return eval(f"xp.{call}", {"xp": module, **names})


def leaves(result):
    """All arrays and numbers in a result."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    return [result]


def test_every_function_has_a_sample():
    assert {call.partition("(")[0] for call in CALLS} == set(NAMES)


@pytest.mark.parametrize("call", CALLS)
def test_a_function(call):
    ours, theirs = leaves(run(xp, call, flow.tensor)), leaves(run(np, call, lambda array: array))
    assert len(ours) == len(theirs)
    for x, y in zip(ours, theirs, strict=True):
        if not isinstance(x, flow.Tensor):
            assert x == y and not isinstance(x, np.generic)
            continue
        y = np.asarray(y)
        assert x.shape == y.shape
        if "eigh" not in call and "svd(" not in call and "qr" not in call:  # signs are free
            np.testing.assert_allclose(x.numpy(), y, rtol=1e-6 if x.itemsize < 8 else 1e-12)
        default = call.split("(")[0] in DEFAULT_DTYPE
        assert x.dtype == y.dtype or (x.dtype == flow.float32 and default)


@pytest.mark.parametrize("name", NAMES)
def test_a_function_takes_its_arrays_by_position(name):
    import inspect

    found = xp
    for part in name.split("."):
        found = getattr(found, part)
    if inspect.isclass(found):
        return
    first = next(iter(inspect.signature(found).parameters.values()))
    by_position = (first.POSITIONAL_ONLY, first.VAR_POSITIONAL)
    assert first.kind in by_position or name in (
        "empty",
        "full",
        "ones",
        "zeros",
        "isdtype",
    )


def test_gradients_are_recorded():
    x = flow.tensor(A, requires_grad=True)
    calls = """exp(A)  sum(A, axis=0)  matmul(A, B)  concat([A, A])  std(A)  sort(A)  diff(A)
        take(A, I - 1, axis=1)  cumulative_sum(A, axis=0)  where(A > 1, A, B)"""
    for call in calls.replace("\n", "  ").split("  "):
        if not call:
            continue
        names = {"A": x, "B": flow.tensor(B), "I": flow.tensor(I)}
        y = eval(f"xp.{call}", {"xp": xp, **names})
        (dx,) = flow.autograd.grad(y.sum(), x)
        assert dx.shape == x.shape and dx.abs().sum() > 0


def test_promotion_does_not_depend_on_shapes():
    x, y = xp.ones(2, dtype=xp.float32), xp.asarray(1.0, dtype=xp.float64)
    for call in (xp.add, xp.hypot, xp.maximum, np.add, np.hypot):
        assert call(x, y).dtype == call(y, x).dtype == xp.float64
    assert xp.where(xp.asarray([True, False]), x, y).dtype == xp.float64
    assert (x + y).dtype == xp.float32  # an operator has PyTorch's rule
    assert math.isnan(xp.sign(xp.asarray(xp.nan)).item()) and xp.arange(1, 0.0).dtype == xp.float32


class TestNamespace:
    def test_how_it_is_reached(self):
        assert flow.zeros(2).__array_namespace__(api_version="2024.12") is xp
        assert flow.zeros(2).__array_namespace__(api_version="2023.12") is xp
        assert xp.__name__ == "oneflow_lite.array_api" and xp.__array_api_version__ == "2024.12"
        with pytest.raises(ArgumentError, match="1999"):
            flow.zeros(2).__array_namespace__(api_version="1999.01")

    def test_constants(self):
        assert (xp.e, xp.pi, xp.inf) == (math.e, math.pi, math.inf)
        assert math.isnan(xp.nan) and xp.newaxis is None

    def test_dtypes(self):
        names = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64
            complex128""".split()
        for name in names:
            assert getattr(xp, name) == np.dtype(name)
            assert xp.zeros(2, dtype=getattr(xp, name)).dtype == np.dtype(name)
        assert set(xp.__array_namespace_info__().dtypes()) == set(names)

    def test_inspection(self):
        info = xp.__array_namespace_info__()
        assert info.capabilities() == {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": 64,
        }
        assert (
            info.default_device() == flow.device("cpu") and info.default_device() in info.devices()
        )
        assert info.default_dtypes() == {
            "real floating": np.dtype("float32"),
            "complex floating": np.dtype("complex64"),
            "integral": np.dtype("int64"),
            "indexing": np.dtype("int64"),
        }
        assert list(info.dtypes(kind="real floating")) == ["float32", "float64"]
        assert list(info.dtypes(kind=("bool", "complex floating"))) == [
            "bool",
            "complex64",
            "complex128",
        ]

    def test_devices(self, device):
        x = xp.asarray([1.0, 2.0], device=device)
        assert x.device == flow.device(device) or x.device.type == device
        assert x.to_device("cpu").device == flow.device("cpu")
        assert x.to_device(x.device) is x
        assert xp.ones(2, device=x.device).device == x.device
        assert x.device in xp.__array_namespace_info__().devices()


class TestArrayObject:
    def test_attributes(self):
        x = flow.tensor(A)
        assert (x.ndim, x.shape, x.dtype) == (2, (3, 3), np.dtype("float64"))
        assert x.T.tolist() == A.T.tolist() == x.mT.tolist()
        assert x.size() == (3, 3) and x.numel() == 9  # the standard's `size` is PyTorch's method

    def test_what_the_standard_refuses(self):
        with pytest.raises(ArgumentError, match="squeeze"):
            xp.squeeze(xp.ones((2, 3)), axis=0)
        with pytest.raises(ShapeError, match="nonzero"):
            xp.nonzero(xp.asarray(1.0))
        with pytest.raises(ShapeError, match="matrix_transpose"):
            xp.matrix_transpose(xp.ones(2))
        with pytest.raises(ShapeError, match="vecdot"):
            xp.vecdot(xp.ones(2), xp.ones(1))
        with pytest.raises(ArgumentError, match="isdtype"):
            xp.isdtype(xp.int8, "whole")
        with pytest.raises(ArgumentError, match="axis"):
            xp.cumulative_sum(xp.ones((2, 2)))
        with pytest.raises(FlowError, match="copy"):
            xp.asarray([1.0], copy=False)
        with pytest.raises(FlowError, match="copy"):
            xp.asarray(A, dtype=xp.float32, copy=False)

    def test_asarray_shares_memory_where_it_can(self):
        a = np.ones(2)
        assert np.shares_memory(xp.asarray(a).numpy(), a)
        assert not np.shares_memory(xp.asarray(a, copy=True).numpy(), a)
        x = flow.ones(2)
        assert xp.asarray(x) is x and xp.asarray(x, copy=True) is not x
