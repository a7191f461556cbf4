"""Arithmetic: values, dtypes, derivatives, complex numbers and kinks."""

import operator

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.testing import Fixed, Sample, check_op

RNG = np.random.default_rng(0)
# Away from whole numbers and from one another, so that central differences meet no kink.
X = np.array([[-1.7, 0.4, 2.3], [1.2, -0.6, 3.1]])
Y = np.array([[1.1, -0.7, 0.9], [-2.2, 1.6, 0.8]])
P = np.array([[0.3, 1.4, 2.5], [0.9, 3.2, 0.6]])
S = np.array(0.85)
Z, W = X + 1j * Y, Y - 1j * P
INF, NAN = np.inf, np.nan
DTYPES = "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()


def of_dtype(dtype, values):
    """Return whole numbers in a dtype, with fractions or imaginary parts where it has them."""
    values = np.array(values)
    if dtype == "bool":
        return values > 0
    if dtype == "uint8":
        values = abs(values)
    scale = {"f": 1.5, "c": 1.5 - 0.5j}.get(np.dtype(dtype).kind, 1)
    return (values * scale).astype(dtype)


def agree(call, *arrays, rtol=1e-6):
    """Assert that a call gives PyTorch's values, dtype and shape."""
    torch = pytest.importorskip("torch")
    ours = call(flow, *map(flow.tensor, arrays))
    theirs = call(torch, *map(torch.tensor, arrays)).resolve_conj().numpy(force=True)
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    rtol = 2e-3 if theirs.dtype == np.float16 else rtol
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=rtol)


def agree_with_derivatives(call, *arrays, **options):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    compare(
        lambda *xs: call(flow, *xs),
        lambda *xs: call(torch, *xs),
        *[np.ascontiguousarray(a) for a in arrays],
        **options,
    )


def op(name, **named):
    return lambda lib, *xs: getattr(lib, name)(*xs, **named)


# --- Of one tensor ------------------------------------------------------------------------------

# name: (an input for check_op, the dtype kinds it takes besides real floats)
UNARY = {
    "neg": (X, "iuc"),
    "abs": (X, "iuc"),
    "sgn": (X, "iucb"),
    "square": (X, "iucb"),
    "sqrt": (P, "iucb"),
    "rsqrt": (P, "iucb"),
    "reciprocal": (X, "iucb"),
    "floor": (X, "iu"),
    "ceil": (X, "iu"),
    "trunc": (X, "iu"),
    "frac": (X, ""),
    "round": (X, ""),
    "nan_to_num": (X, "iub"),
    "conj": (X, "iucb"),
    "angle": (X, "iucb"),
    "positive": (X, "iuc"),
}


@pytest.mark.parametrize("name", UNARY)
def test_derivatives_of_one(name, device):
    function = getattr(flow, name)
    check_op(lambda x: function(x) if name != "conj" else function(x * 1), [Sample(UNARY[name][0])],
             device=device)  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_one_agrees_with_pytorch(name):
    x = UNARY[name][0]
    for case in (x, x.T, x[0, 0], x[:0]):
        agree_with_derivatives(lambda lib, x: getattr(lib, name)(x * 1), case, orders=3)
    agree_with_derivatives(lambda lib, x: getattr(lib, name)(x * 1), x.astype(np.float32))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_dtypes_of_one_agree_with_pytorch(name, dtype):
    x = of_dtype(dtype, [[-3, 2, 0], [1, -2, 5]])
    if x.dtype.kind in "f" + UNARY[name][1]:
        agree(op(name), x)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", UNARY)
def test_special_values_agree_with_pytorch(name):
    x = np.array([INF, -INF, NAN, 0.0, -0.0, 0.5, 1.5, -2.5, 1.0])
    agree_with_derivatives(lambda lib, x: getattr(lib, name)(x * 1), x)


def test_the_sign_of_nan_is_zero(device):
    """As PyTorch's, also in the derivative of abs and for one element."""
    x = flow.tensor([NAN, -INF, 0.0], device=device, requires_grad=True)
    flow.abs(x).sum().backward()
    for y in (flow.sign(x), flow.sgn(x), x.grad):
        np.testing.assert_array_equal(y.detach().cpu().numpy(), [0, -1, 0])
    assert flow.sign(x[0]).item() == 0


# name: a call on halves, in which a number or a 0-d tensor is none
HALVES = {
    "div": lambda lib, x, y: x / 1e5,
    "div by a NumPy number": lambda lib, x, y: x / np.float32(1e5),
    "div of a number": lambda lib, x, y: 1e5 / x,
    "mul": lambda lib, x, y: x * 1e5,
    "mul from the left": lambda lib, x, y: 0.1 * x,
    "mul by 0-d": lambda lib, x, y: x * lib.tensor(1e5, dtype=lib.float64),
    "in place": lambda lib, x, y: (x * 1).div_(1e5),
    "add": lambda lib, x, y: x + 1e5,
    "alpha": lambda lib, x, y: lib.add(x, y, alpha=0.1),
    "alpha of sub": lambda lib, x, y: lib.sub(x, y, alpha=0.1),
    "lerp": lambda lib, x, y: lib.lerp(x, y, 0.1),
    "addcmul": lambda lib, x, y: lib.addcmul(-x, y, x * 8, value=0.1),
    "addcmul of large ones": lambda lib, x, y: lib.addcmul(x, x, y, value=1e5),
    "addcdiv": lambda lib, x, y: lib.addcdiv(x, y, x, value=1e-6),
    "comparison": lambda lib, x, y: x == 0.001,
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", HALVES)
def test_numbers_beside_halves_are_computed_in_float32(name):
    torch = pytest.importorskip("torch")
    arrays = [np.array(a, np.float16) for a in ([100, 1e-3, -300, 6e4], [0.5, 30, -7, 2])]
    for shape in [(4,), ()]:
        found = []
        for lib in (torch, flow):
            x, y = [lib.tensor(a[: 4 if shape else 1].reshape(shape or ())) for a in arrays]
            x.requires_grad_()
            z = HALVES[name](lib, x, y)
            found.append([z.detach().numpy()])
            if z.requires_grad:
                found[-1].append(lib.autograd.grad(z, x, lib.ones_like(z))[0].numpy())
        for order, (expected, got) in enumerate(zip(*found, strict=True)):
            assert got.dtype == expected.dtype
            if order:  # PyTorch takes gradients in half precision: some of its steps overflow
                expected = np.where(np.isfinite(expected), expected, got)
            np.testing.assert_allclose(got, expected, rtol=2e-2 if order else 2e-3)


def test_a_rounded_number_is_not_remembered_for_a_product(device):
    x = flow.tensor([1.0, 2.0], dtype=flow.float16, device=device)
    assert (x == 0.1).tolist() == [False, False]
    np.testing.assert_array_equal(
        (x / 0.1).cpu().numpy(), np.array([1 / np.float32(0.1), 2 / np.float32(0.1)], np.float16)
    )


@pytest.mark.parametrize("decimals", [0, 1, -1, 3])
def test_decimals(decimals):
    x = np.array([0.5, 1.5, 2.5, -0.25, 0.35, 14.96, -123.4567])
    agree_with_derivatives(op("round", decimals=decimals), x)
    assert flow.round(flow.tensor([15, 25]), decimals=-1).tolist() == [15, 25]


def test_not_finite_values_are_replaced(device):
    x = flow.tensor([NAN, INF, -INF, 2.0], device=device, dtype=flow.float16)
    assert flow.nan_to_num(x).tolist() == [0, 65504, -65504, 2]
    assert flow.nan_to_num(x, 1.0, 5.0, -5.0).tolist() == [1, 5, -5, 2]
    assert flow.nan_to_num(x, nan=7).dtype == flow.float16
    z = flow.tensor(np.array([complex(NAN, 1), complex(2, INF)]), device=device)
    assert flow.nan_to_num(z, posinf=9).tolist() == [1j, 2 + 9j]


# --- Of two operands ----------------------------------------------------------------------------

# name: (inputs for check_op, is it defined for complex numbers, can a number stand right)
BINARY = {
    "add": ((X, Y), True, True),
    "sub": ((X, Y), True, True),
    "mul": ((X, Y), True, True),
    "div": ((X, Y), True, True),
    "pow": ((P, Y), True, True),
    "floor_divide": ((X, Y), False, True),
    "fmod": ((X, Y), False, True),
    "remainder": ((X, Y), False, True),
    "maximum": ((X, Y), False, False),
    "minimum": ((X, Y), False, False),
    "clamp_min": ((X, Y), False, True),
    "clamp_max": ((X, Y), False, True),
}
DIFFERENTIABLE = [name for name in BINARY if name != "floor_divide"]  # there PyTorch has no rule


@pytest.mark.slow(but=6)
@pytest.mark.parametrize("name", BINARY)
def test_derivatives_of_two(name, device):
    x, y = BINARY[name][0]
    samples = [Sample(x, y), Sample(x, y[0]), Sample(x[:, :1], y[1]), Sample(S, y)]
    if BINARY[name][2]:
        samples += [Sample(x, 0.7), Sample(x, Fixed(y)), Sample(Fixed(x), y)]
    check_op(name, samples, device=device)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_two_agree_with_pytorch(name):
    x, y = BINARY[name][0]
    pairs = [(x, y), (x, y[0]), (x[:, :1], y[1]), (x[0, 0], y), (x.T, y.T), (x[:0], y[:1])]
    for pair in [*pairs, (x.astype("f"), y.astype("f")), (x, y.astype("f"))]:
        agree_with_derivatives(op(name), *pair)
    agree_with_derivatives(op(name), x.astype("f2"), y, rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize("number", [2, 2.5, -1, 1, True])
@pytest.mark.parametrize("name", [name for name in DIFFERENTIABLE if BINARY[name][2]])
def test_a_number_agrees_with_pytorch(name, number):
    if name != "sub" or number is not True:
        agree_with_derivatives(lambda lib, x: getattr(lib, name)(x, number), P, orders=3)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_dtypes_of_two_agree_with_pytorch(name, dtype):
    _, complexes, numbers = BINARY[name]
    x = of_dtype(dtype, [[-3, 2, 0], [1, -2, 5]])
    for other in DTYPES:
        y = of_dtype(other, [[2, -3, 1], [3, 1, -2]])
        if "bool" in (dtype, other) and name in ("sub", "floor_divide", "fmod", "remainder", "pow"):
            continue
        if "float16" in (dtype, other) and "c" in (x.dtype.kind, y.dtype.kind):
            continue  # PyTorch makes half precision complex numbers of these
        if complexes or "c" not in (x.dtype.kind, y.dtype.kind):
            agree(op(name), x, y)
            agree(op(name), x, y[0, 0])
            agree(op(name), y[0, 0], x if dtype != "bool" and x.all() else x[:, 0])
    if numbers and (complexes or x.dtype.kind != "c") and (name, dtype) != ("sub", "bool"):
        for number in (2, 2.5, np.float32(2), np.int8(2)):
            agree(lambda lib, x, number=number: getattr(lib, name)(x, number), x)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["+", "-", "*", "/", "//", "%", "**"])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "float64", "complex64"])
def test_operators_agree_with_pytorch(name, dtype):
    function = {
        "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
        "//": operator.floordiv, "%": operator.mod, "**": operator.pow,
    }[name]  # fmt: skip
    x = of_dtype(dtype, [3, 2, 1])
    if dtype == "complex64" and name in ("//", "%"):
        return
    for number in (2, 2.5, np.float64(3)):
        agree(lambda lib, x, n=number: function(x, n), x, rtol=1e-5)
        agree(lambda lib, x, n=number: function(n, x), x, rtol=1e-5)
    agree(lambda lib, x: function(x, x), x, rtol=1e-5)


def test_other_operators():
    x = flow.tensor([-1.5, 2.0])
    assert (-x).tolist() == [1.5, -2] and (+x) is x and abs(x).tolist() == [1.5, 2]
    assert flow.rsub(x, 1.0, alpha=2).tolist() == [4, -3]
    assert (np.float32(1) - x).tolist() == [2.5, -1]


@pytest.mark.parametrize("name", ["rsub", "rdiv", "rpow"])
def test_reflected_operators_agree_with_pytorch(name):
    functions = {"rsub": operator.sub, "rdiv": operator.truediv, "rpow": operator.pow}
    for number in (2, 0.5, 3.0):
        agree_with_derivatives(lambda lib, x, n=number: functions[name](n, x), P, orders=3)


# --- Scaling, rounding modes, powers ------------------------------------------------------------


@pytest.mark.parametrize("factor", [2, -0.5, 1])
def test_scaled_agrees_with_pytorch(factor, device):
    for name in ("add", "sub"):
        check_op(name, [Sample(X, Y[0], alpha=factor), Sample(X, 2.0, alpha=factor)], device=device)
        agree_with_derivatives(op(name, alpha=factor), X, Y[0])
    for name in ("addcmul", "addcdiv"):
        check_op(name, [Sample(X, Y[0], P, value=factor)], device=device)
        agree_with_derivatives(op(name, value=factor), X, Y[0], P)
        agree_with_derivatives(op(name, value=factor), X[0, 0], Y, P[:, :1])
        agree_with_derivatives(op(name, value=factor), Z, W[0], P * W)


def test_factors_keep_the_dtype():
    for x in DTYPES:
        for y in DTYPES:
            pair = [of_dtype(x, [1, 2]), of_dtype(y, [3, 1])]
            agree(op("add", alpha=2), *pair)
            if "bool" not in (x, y):
                agree(op("sub", alpha=2), *pair)
                agree(lambda lib, x, y: lib.addcmul(x, y, y, value=3), *pair)
            if np.result_type(*pair).kind == "f":
                agree(op("add", alpha=0.5), *pair)


@pytest.mark.parametrize("mode", ["trunc", "floor"])
def test_rounding_modes_agree_with_pytorch(mode):
    agree_with_derivatives(op("div", rounding_mode=mode), X, Y[0])
    for x in DTYPES[1:9]:
        for y in DTYPES[1:9]:
            pair = of_dtype(x, [7, -7, -6, 0]), of_dtype(y, [2, 2, -2, -5])
            agree(op("div", rounding_mode=mode), *pair)
            agree(lambda lib, x: lib.div(x, -2, rounding_mode=mode), pair[0].astype(float))


def test_integers_divide_to_the_default_dtype():
    assert (flow.tensor([1, 2]) / flow.tensor([2, 2], dtype=flow.uint8)).dtype == flow.float32
    assert flow.div(flow.tensor([3], dtype=flow.uint8), -2).tolist() == [-1.5]
    for quotient in (flow.tensor([3]) / np.array([2]), flow.div(np.array([3]), flow.tensor([2]))):
        assert (quotient.dtype, quotient.tolist()) == (flow.float32, [1.5])


@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_powers_of_integers_agree_with_pytorch(dtype, device):
    x = np.array([0, 1, -1, 2, -2, 3], dtype)[:, None]
    y = np.array([0, 1, 2, 3, -1, -2, -3], dtype)
    agree(op("pow"), x, y)
    for number in (2, -1, 0):
        agree(lambda lib, y, n=number: n**y, y)
    found = flow.pow(flow.tensor(x, device=device), flow.tensor(y, device=device))
    assert found.tolist()[2] == [1, -1, 1, -1, -1, 1, -1]
    bools = flow.tensor([True, False], device=device)
    assert (bools**True).tolist() == [True, False] and (bools**False).tolist() == [True, True]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("exponent", [0, 0.0, 0.5, 1, 1.5, 2, 2.0, 3, -1, -2])
def test_powers_at_zero_agree_with_pytorch(exponent):
    x = np.array([0.0, 0.5, 2.0, INF])
    agree_with_derivatives(lambda lib, x: lib.pow(x, exponent), x, orders=3)
    exponents = np.full(4, float(exponent))
    agree_with_derivatives(lambda lib, x, y: lib.pow(x, y), x, exponents, orders=1)


# --- Extremes -----------------------------------------------------------------------------------

GRID = np.array([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, NAN])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [n for n in DIFFERENTIABLE if n not in ("pow", "div", "sub")])
def test_ties_and_poles_agree_with_pytorch(name):
    agree_with_derivatives(op(name), *np.broadcast_arrays(GRID[:, None], GRID))
    if BINARY[name][2]:
        for number in (0.0, 1.0, -2.0):
            agree_with_derivatives(lambda lib, x, n=number: getattr(lib, name)(x, n), GRID)


@pytest.mark.parametrize("bounds", [(-1, 1), (-1.0, None), (None, 0.5), (1.0, -1.0), (0.5, 0.5)])
def test_clamp_agrees_with_pytorch(bounds):
    agree_with_derivatives(lambda lib, x: lib.clamp(x, *bounds), GRID)
    for dtype in ("int64", "int8", "float32", "float16"):
        agree(lambda lib, x: lib.clamp(x, *bounds), of_dtype(dtype, [3, 1, 0]))


@pytest.mark.parametrize("high", [2.0, 0.5, -1.5])
def test_bounds_that_are_tensors_agree_with_pytorch(high):
    low, high = np.array([-1.0, 0.0, 1.0])[:, None], np.array([high, 1.5])[:, None, None]
    x, low, high = np.broadcast_arrays(GRID[:-1], low, high)
    agree_with_derivatives(lambda lib, x, a, b: lib.clamp(x, a, b), x, low, high)
    agree_with_derivatives(lambda lib, x, a: lib.clamp(x, min=a), x, low[:, :, :1])
    agree_with_derivatives(lambda lib, x, b: lib.clamp(x, max=b), x, S)


def test_clamp(device):
    samples = [Sample(X, -1.0, 1.5), Sample(X, -P, P), Sample(X, min=Y[0]), Sample(X, max=0.7)]
    check_op("clamp", samples, device=device)
    x = flow.tensor([1, 5], device=device)
    assert flow.clip(x, 2).tolist() == [2, 5] and x.clamp(max=2.5).tolist() == [1, 2.5]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_infinite_gradient_stops_where_the_other_wins(device):
    for call in (
        lambda x: flow.sqrt(flow.clamp_min(x, 0.0)),
        lambda x: flow.sqrt(flow.maximum(x, flow.zeros_like(x))),
        lambda x: flow.sqrt(1 - flow.clamp_max(x + 3, 1.0)),
    ):
        for size in (2, 2000):  # many elements go another way
            x = flow.full((size,), -1.0, device=device, requires_grad=True)
            (dx,) = flow.autograd.grad(call(x).sum(), x)
            assert not dx.any()


@pytest.mark.parametrize("name", ["maximum", "minimum", "clamp_min", "clamp_max"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_many_elements_agree_with_pytorch(name, dtype):
    x, y = RNG.integers(-2, 3, (2, 50, 60)).astype(dtype)
    agree_with_derivatives(op(name), x, y, orders=1)


# --- where, lerp --------------------------------------------------------------------------------


def test_where(device):
    mask = X > 0
    check_op("where", [Sample(mask, X, Y), Sample(mask, ROW, Y), Sample(mask, X, 2.0),
                       Sample(mask[:, :1], 1.0, Y), Sample(mask, Z, W)], device=device)  # fmt: skip
    for pair in ((X, Y), (ROW, Y), (X[0, 0], Y), (X, Y.astype("f")), (Z, W)):
        agree_with_derivatives(lambda lib, x, y: lib.where(lib.tensor(mask), x, y), *pair)
    agree_with_derivatives(lambda lib, x: lib.where(lib.tensor(mask), NAN, x), X)
    indices = flow.where(flow.tensor(mask, device=device))
    assert [i.tolist() for i in indices] == [i.tolist() for i in np.nonzero(mask)]


ROW = np.array([0.6, -1.3, 2.2])


@pytest.mark.parametrize("x", DTYPES)
def test_dtypes_of_where_agree_with_pytorch(x):
    array = of_dtype(x, [2, 3])
    for y in DTYPES:
        other = of_dtype(y, [1, 0])
        if "float16" in (x, y) and "c" in (array.dtype.kind, other.dtype.kind):
            continue
        for pair in ((array, other), (array, other[0])):
            agree(lambda lib, x, y: lib.where(lib.tensor([True, False]), x, y), *pair)
    for number in (1, 1.5):
        agree(lambda lib, x, n=number: lib.where(lib.tensor([True, False]), x, n), array)


def test_lerp(device):
    samples = [Sample(X, Y, w) for w in (0.3, 0.7, 1.5)] + [Sample(X, ROW, P), Sample(X, Y, P[0])]
    check_op("lerp", samples, device=device)
    for weight in (0, 0.3, 0.5, 1, 2.0):
        agree_with_derivatives(lambda lib, x, y, w=weight: lib.lerp(x, y, w), X, Y)
    agree_with_derivatives(op("lerp"), X, ROW, P)
    agree_with_derivatives(op("lerp"), Z, W, Z * W)
    x, y = (flow.tensor(a, device=device) for a in ([0.1, 1e16], [0.3, 1.0]))
    assert flow.lerp(x, y, 1).tolist() == y.tolist() and flow.lerp(x, y, 0).tolist() == x.tolist()


# --- Complex numbers ----------------------------------------------------------------------------


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("name", [name for name in UNARY if "c" in UNARY[name][1]])
def test_one_complex_agrees_with_pytorch(name, device):
    function = getattr(flow, name)
    check_op(lambda z: function(z * 1), [Sample(Z), Sample(W)], device=device)
    agree_with_derivatives(lambda lib, z: getattr(lib, name)(z * 1), Z)
    agree_with_derivatives(lambda lib, z: getattr(lib, name)(z * 1), W.astype(np.complex64))


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("name", [name for name in BINARY if BINARY[name][1]])
def test_two_complex_agree_with_pytorch(name, device):
    check_op(name, [Sample(Z, W[0]), Sample(Z, P), Sample(P, W), Sample(Z, 2j)], device=device)
    for pair in ((Z, W), (Z, W[0]), (Z, P), (P, W), (Z.astype("F"), W.astype("F"))):
        agree_with_derivatives(op(name), *pair)
    for number in (2, 0.5, -1, 1.5j, 2 + 1j):
        agree_with_derivatives(lambda lib, z, n=number: getattr(lib, name)(z, n), Z)
    for number in (1.5j, 2 - 1j):
        agree_with_derivatives(lambda lib, x, n=number: getattr(lib, name)(x, n), P)
        agree_with_derivatives(lambda lib, z, n=number: getattr(lib, name)(lib.tensor(n), z), Z)


@pytest.mark.parametrize("name", ["abs", "sgn", "angle"])
def test_zero_agrees_with_pytorch(name):
    agree_with_derivatives(op(name), np.array([0j, 1j, -2 + 0j, 1 - 1j]), orders=1)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("exponent", [0, 1, 2, 3])
def test_powers_of_complex_zero_agree_with_pytorch(exponent):
    agree_with_derivatives(lambda lib, z: lib.pow(z, exponent), np.array([0j, 1j, 2 - 1j]))


def test_complex(device):
    check_op("complex", [Sample(X, Y), Sample(X, Y[0]), Sample(S, Y)], device=device)
    agree_with_derivatives(lambda lib, x, y: lib.complex(x, y) ** 2, X, Y[0])
    agree_with_derivatives(lambda lib, x, y: lib.angle(lib.complex(x, y)), X, Y)
    agree_with_derivatives(op("complex"), X.astype("f"), Y.astype("f"))
    x = flow.tensor(X, device=device)
    assert flow.conj(x) is x


@pytest.mark.parametrize("name", ["add", "sub", "addcmul", "addcdiv"])
def test_a_factor_keeps_nothing_so_that_a_second_backward_passes(name):
    x, y = (flow.ones(2, requires_grad=True) for _ in range(2))
    if name in ("add", "sub"):
        z = getattr(flow, name)(x, y, alpha=3)
        z.sum().backward()
        z.sum().backward()
        assert y.grad.tolist() == ([6.0, 6.0] if name == "add" else [-6.0, -6.0])
    else:
        z = getattr(flow, name)(x, flow.ones(2), flow.ones(2), value=3)
        z.sum().backward()
        z.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_factor_has_to_fit_the_dtype():
    with pytest.raises(
        RuntimeError, match=r"^add\(\): argument 'alpha': expected a value that int8"
    ):
        flow.add(flow.ones(2, dtype=flow.int8), flow.ones(2, dtype=flow.int8), alpha=300)


SCALED_SUMS = {
    "add": lambda x, y: x.add(y, alpha=0.3),
    "sub": lambda x, y: x.clone().sub_(y, alpha=0.3),
    "addcmul": lambda x, y: x.addcmul(y, y, value=0.3),
    "addcdiv": lambda x, y: x.clone().addcdiv_(y, abs(y) + 1, value=0.3),
    "lerp": lambda x, y: x.lerp(y, 0.3),
}


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", SCALED_SUMS)
def test_scaled_sums_of_halves_are_rounded_once(name, half):
    torch = pytest.importorskip("torch")
    results = []
    for library in (flow, torch):
        x, y = library.tensor(np.random.default_rng(0).standard_normal((2, 500)).tolist()).to(
            getattr(library, half)
        )
        results.append(SCALED_SUMS[name](x, y).float().numpy())
    assert (results[0] != results[1]).mean() < 0.01  # a quarter, if the steps are rounded
