"""Loops that serve eager kernels: equal to NumPy's kernels, and taking over where they should."""

import math
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd.engine import rule_namespace
from oneflow_lite.kernels import loops
from oneflow_lite.ops import eager_loops
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import KERNELS
from oneflow_lite.ops.scalar_expression import scalar_of
from oneflow_lite.static.fusion import eager
from tests.conftest import needs_numba

F = flow.nn.functional
WRITTEN = [n for n, family in loops._FAMILIES.items() if family == loops.WRITTEN]
ATTRS = {
    "approximate": "none", "negative_slope": 0.01, "min_val": -1.0, "max_val": 1.5, "lambd": 0.5,
    "threshold": 0.3, "value": -2.0, "alpha": 1.3, "scale": 1.1, "input_scale": 0.7, "beta": 1.2,
    "delta": 0.8,
}  # fmt: skip
POINTWISE = [
    n
    for n in WRITTEN
    if op_expr(n).schema.attrs.keys() <= ATTRS.keys() and KERNELS.get(n).schema.inputs[0] != "param"
]


def forget() -> None:
    """Look kernels up again, and count from 0."""
    for name in loops._FAMILIES:
        op_expr(name).forget()
        for namespace in (rule_namespace.NUMPY_F, rule_namespace.NUMPY_PARTS):
            vars(namespace).pop(name, None)
    for loop in eager_loops._loops:
        loop.sites.clear()


@pytest.fixture(autouse=True)
def jit():
    """The rest of the tests runs without."""
    forget()
    with flow.use_jit(True):
        yield
    forget()


@pytest.fixture
def at_once(monkeypatch):
    """Loops serve every size from the first call on, on every processor."""
    monkeypatch.setattr(eager_loops, "PAYS", 0)
    monkeypatch.setattr(loops, "FROM_SIZE", dict.fromkeys(loops._FAMILIES, 0))


def special(dtype: str) -> np.ndarray:
    info = np.finfo(dtype)
    few = [0.0, -0.0, 1, -1, math.inf, -math.inf, math.nan, info.tiny, -info.tiny / 4]
    few += [info.max, info.min, 88.5, -88.5, 104, -104, 20, 20.5, 0.5, -0.5, 3, -3, 1e-5, -1e-5]
    wide = np.random.default_rng(0).standard_normal(500) * np.repeat([1e-4, 1, 5, 40, 300], 100)
    return np.concatenate([few, wide]).astype(dtype)


def ran(op_type_name: str, *arrays, **attrs):
    """Return what the loop makes of it, which must be there."""
    made = eager_loops.function_of(op_type_name)(*arrays, **attrs)
    assert made is not None, op_type_name
    return made


def same_but_for_rounding(found, wanted, scale=1.0):
    for a, b in zip(*[x if type(x) is tuple else (x,) for x in (found, wanted)], strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        bound = scale * (2e-6 if a.dtype.char == "f" else 2e-14)
        np.testing.assert_allclose(a, b, bound, bound)


@pytest.mark.slow(but=4)
@needs_numba
@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("name", POINTWISE)
def test_pointwise_loops_err_at_most_twice_as_much_as_numpy(name, dtype, at_once):
    inputs = op_expr(name).schema.inputs
    x = special(dtype)
    arrays = [x] if len(inputs) == 1 else [np.tile(x, 7), np.repeat(x[:7], x.size)]
    if name == "where":
        arrays = [arrays[0] > 0.3, *arrays]
    elif name == "masked_fill":
        arrays[1] = arrays[1] > 0.3
    attrs = {n: ATTRS[n] for n in op_expr(name).schema.attrs}
    with np.errstate(all="ignore"):
        wanted = op_expr(name).kernel(np)(*arrays, **attrs)
        found = ran(name, *arrays, **attrs)
        wide = [a if a.dtype == bool else a.astype("d") for a in arrays]
        truth = wanted if dtype == "d" else op_expr(name).kernel(np)(*wide, **attrs)
        finite = np.isfinite(wanted) & np.isfinite(found) & np.isfinite(truth)
        # What a step loses that others cancel, as 1 + erf(x) does, is lost by both in some way.
        cancels = dtype == "d" or name in ("gelu", "bce_with_logits")
        size = np.max(np.nan_to_num(np.abs(arrays), posinf=0), 0) if cancels else 0
        ulps = np.spacing(np.maximum(np.abs(truth), size).astype(dtype))
        lost, error = (np.abs(made.astype("d") - truth) for made in (wanted, found))
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    infinite = np.isinf(wanted)
    assert (np.abs(truth[infinite & np.isfinite(found)]) > np.finfo(dtype).max / 2).all()
    bound = 2 * lost + 2.5 * ulps + 8 * np.finfo(dtype).tiny
    wrong = (finite & ~(error <= bound)).nonzero()[0]
    assert not wrong.size, [(a[wrong[0]], found[wrong[0]], wanted[wrong[0]]) for a in arrays]


def normed(groups, channels, dtype, rng):
    x, w, b = (rng.standard_normal(s).astype(dtype) for s in (groups, channels[1], channels[1]))
    return x, w, b


@pytest.mark.slow
@needs_numba
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_loops_over_lines_and_planes(dtype, at_once):
    rng = np.random.default_rng(1)
    kernel = lambda name: op_expr(name).kernel(np)  # noqa: E731

    def check(name, *arrays, scale=10.0, **attrs):
        same_but_for_rounding(ran(name, *arrays, **attrs), kernel(name)(*arrays, **attrs), scale)

    def normal(*shape):
        return rng.standard_normal(shape).astype(dtype)

    all_of = slice(None) if dtype == "f" else slice(1)  # a source is the same for both dtypes
    for shape in ((1, 5), (7, 3), (2, 3, 65), (64, 33)):
        x, dy = normal(*shape) * 5, normal(*shape)
        y = kernel("softmax")(x, dim=-1)
        check("softmax", x, dim=-1)
        check("softmax_grad", dy, y, dim=-1)
        check("log_softmax", x, dim=len(shape) - 1)
        check("log_softmax_grad", dy, np.log(y), dim=-1)
        for dims in ((len(shape) - 1,), tuple(range(len(shape)))):
            check("logsumexp", x, dim=dims, keepdim=True)
            for name in ("var", "std"):
                check(name, x, dim=dims, correction=1, keepdim=False)
        for dim in range(len(shape)):
            check("cumsum", x, dim=dim)
            check("cumsum_grad", x, dim=dim)
            check("cumprod", x / 5, dim=dim)
            check("recurrence", x / 10, dy, dim=dim, reverse=bool(dim))
            index = rng.integers(0, shape[dim], shape)
            check("scatter_add", x, index, dy, dim=dim)
            check("gather_grad", dy, index, dim=dim, shape=shape)
        rows = rng.integers(-shape[0], shape[0], 9)
        values = normal(9, *shape[1:])
        check("getitem_advanced_grad", values, rows, dims=(0,), shape=shape)
        check("index_add", x, rows % shape[0], values, dim=0)
    for groups, channels in (((5, 7), (5, 7)), ((6, 20), (3, 8, 5)), ((3, 4, 9), (3, 4, 9))):
        x, w, b = normed(groups, channels, dtype, rng)
        name = "batch_norm" if len(groups) == 3 else "affine_norm"
        attrs = {"groups": groups, "channels": channels}
        for weight, bias in ((w, b), (None, None), (w, None))[all_of]:
            check(name, x, weight, bias, **attrs, eps=1e-5)
            z, rstd = kernel(name)(x, weight, bias, **attrs, eps=1e-5)[1:3]
            for needs in ((True, True, True), (True, False, False), (False, True, True))[all_of]:
                given = (normal(*groups), z, rstd, weight)
                check("affine_norm_grad", *given, **attrs, needs=needs)
        for centred in (False, True):
            given = (normal(*groups), z, rstd)
            check("standardize_grad", *given, groups=groups, centred=centred)
    check("standardize", normal(4, 9), groups=(4, 9), eps=1e-5)
    check("rms_norm", normal(4, 9), normal(9), groups=(4, 9), eps=1e-5)


@needs_numba
@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("reverse", [False, True])
def test_loops_of_lstms(reverse, dtype, at_once):
    rng = np.random.default_rng(0)
    steps, count, hidden = 7, 9, 6  # neither is a whole number of tiles
    shapes = [(steps, count, 4 * hidden), (count, hidden), (count, hidden), (4 * hidden, hidden)]
    x, h, c, weight = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    given = (x, h, c, weight, None, None)
    wanted = op_expr("lstm_layer").kernel(np)(*given, reverse=reverse)
    same_but_for_rounding(ran("lstm_layer", *given, reverse=reverse), wanted, 4)
    y, _, _, gates, cells = wanted
    dy, dh, dc = (rng.standard_normal(z.shape).astype(dtype) for z in wanted[:3])
    for late in [(dy, dh, dc), (None, dh, None), (dy, None, None)]:
        saved = (h, c, weight, None, None, y, gates, cells, *late)
        kept = [z.copy() for z in saved if z is not None]
        wanted = op_expr("lstm_layer_grad").kernel(np)(*saved, reverse=reverse)
        same_but_for_rounding(ran("lstm_layer_grad", *saved, reverse=reverse), wanted, 16)
        for before, after in zip(kept, [z for z in saved if z is not None], strict=True):
            np.testing.assert_array_equal(before, after)
    found = eager_loops.function_of("lstm_layer")
    assert found(x.reshape(-1, 4 * hidden), *given[1:5], np.full(7, 9), reverse=reverse) is None


@pytest.mark.slow(but=1)
@needs_numba
@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("spatial", [1, 2])
def test_loops_over_windows(spatial, dtype, at_once):
    x = np.random.default_rng(2).standard_normal((2, 3, 11, 8)[: 2 + spatial]).astype(dtype)
    x.reshape(-1)[::17] = -math.inf
    x.reshape(-1)[::19] = math.nan
    clean = np.nan_to_num(x, posinf=0, neginf=0)
    for k, s, p, d in ((2, 2, 0, 1), (3, 1, 0, 2), (3, 2, 1, 1), (2, 3, 0, 1)):
        size = {"kernel_size": (k,) * spatial, "stride": (s,) * spatial, "padding": (p,) * spatial}
        output = tuple([(n + 2 * p - d * (k - 1) - 1) // s + 1 for n in x.shape[2:]])
        kernel = lambda name: op_expr(name).kernel(np)  # noqa: E731
        attrs = {**size, "dilation": (d,) * spatial, "output_size": output}
        y, places = kernel("max_pool")(x, **attrs)
        if not p:
            found, at = ran("max_pool", x, **attrs)
            np.testing.assert_array_equal(found, y)
            np.testing.assert_array_equal(at, places)
        put = {"input_size": x.shape[2:], "disjoint": False}
        dy = np.random.default_rng(3).standard_normal(y.shape).astype(dtype)
        found = ran("plane_put", dy, places, **put)
        same_but_for_rounding(found, kernel("plane_put")(dy, places, **put))
        if d == 1:
            counts = tuple([tuple(range(1, n + 1)) for n in output])
            for divisor in (k**spatial, counts):
                attrs = {**size, "output_size": output, "divisor": divisor}
                wanted = kernel("avg_pool")(clean, **attrs)
                same_but_for_rounding(ran("avg_pool", clean, **attrs), wanted)
                attrs["input_size"] = x.shape[2:]
                wanted = kernel("avg_pool_grad")(dy, **attrs)
                same_but_for_rounding(ran("avg_pool_grad", dy, **attrs), wanted)
        if spatial == 2:
            attrs = {**size, "dilation": (d, d)}
            columns = kernel("im2col")(clean, **attrs)
            attrs["output_size"] = x.shape[2:]
            wanted = kernel("col2im")(columns, **attrs)
            same_but_for_rounding(ran("col2im", columns, **attrs), wanted)


CONVOLUTIONS = {
    "a line": ((3, 4, 37), (24, 4, 5), 1, 0, 1, 1),
    "steps, padding and gaps in a line": ((2, 6, 41), (18, 3, 3), 3, 2, 2, 2),
    "a plane": ((2, 5, 9, 11), (19, 5, 3, 3), 1, 1, 1, 1),
    "more products than a sum takes at once": ((1, 60, 6, 7), (16, 60, 3, 3), 1, 1, 1, 1),
    "steps of two": ((2, 8, 13, 10), (16, 8, 3, 3), 2, 1, 1, 1),
    "groups and gaps": ((2, 24, 9, 12), (32, 12, 3, 2), 1, 2, 2, 2),
    "a space": ((2, 9, 5, 4, 6), (17, 9, 2, 3, 2), (1, 2, 1), (1, 0, 1), (1, 1, 2), 1),
}


@needs_numba
@pytest.mark.filterwarnings("ignore:invalid value")  # NumPy's, of infinities
@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_loops_of_convolutions(case, dtype, at_once, monkeypatch):
    from oneflow_lite.kernels.loops import conv

    for limit in ("_FEW_PRODUCTS", "_FEW_SHARED", "_FEW_POSITIONS", "_FILLED"):
        monkeypatch.setattr(conv, limit, 0)
    size, kernel, *geometry, groups = CONVOLUTIONS[case]
    spatial = len(size) - 2
    stride, padding, dilation = [n if type(n) is tuple else (n,) * spatial for n in geometry]
    attrs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    rng = np.random.default_rng(4)
    x, weight = rng.standard_normal(size).astype(dtype), rng.standard_normal(kernel).astype(dtype)
    bias = rng.standard_normal(len(weight)).astype(dtype)
    x.reshape(-1)[5], x.reshape(-1)[-7], weight.reshape(-1)[4] = math.nan, math.inf, -math.inf
    y = op_expr("conv").kernel(np)(x, weight, None, **attrs)
    dy = rng.standard_normal(y.shape).astype(dtype)
    dy.reshape(-1)[3], dy.reshape(-1)[-2] = math.inf, math.nan
    for name, arrays, own in (
        ("conv", (x, weight, bias), {}),
        ("conv", (x, weight, None), {}),
        ("conv_weight_grad", (dy, x), {"kernel_size": weight.shape[2:]}),
        ("conv_input_grad", (dy, weight), {"input_size": x.shape[2:]}),
    ):
        wanted = op_expr(name).kernel(np)(*arrays, **own, **attrs)
        clean = [None if a is None else np.nan_to_num(a, posinf=3, neginf=-3) for a in arrays]
        for given, expected in (
            (arrays, wanted),
            (clean, op_expr(name).kernel(np)(*clean, **own, **attrs)),
        ):
            same_but_for_rounding(ran(name, *given, **own, **attrs), expected, scale=20)
        out = np.full_like(wanted, 7)
        assert ran(name, *arrays, **own, **attrs, out=out) is out
        same_but_for_rounding(out, wanted, scale=20)


DEPTHWISE = {
    "a line": ((3, 4, 37), (5,), 1, 2, 1),
    "steps and gaps in a line": ((2, 6, 41), (4,), 3, 3, 2),
    "a plane": ((2, 5, 9, 11), (3, 3), 1, 1, 1),
    "steps of two": ((2, 8, 13, 10), (3, 2), 2, 1, 1),
    "steps further than the kernel": ((2, 3, 12, 11), (2, 2), 3, 0, 1),
}


@needs_numba
@pytest.mark.filterwarnings("ignore:invalid value")  # NumPy's, of infinities
@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("case", DEPTHWISE)
def test_loops_of_filters_of_one_channel(case, dtype, at_once):
    size, kernel, *geometry = DEPTHWISE[case]
    stride, padding, dilation = [(n,) * len(kernel) for n in geometry]
    attrs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": size[1]}
    rng = np.random.default_rng(4)
    x = rng.standard_normal(size).astype(dtype)
    weight = rng.standard_normal((size[1], 1, *kernel)).astype(dtype)
    bias = rng.standard_normal(size[1]).astype(dtype)
    y = op_expr("conv").kernel(np)(x, weight, None, **attrs)
    dy = rng.standard_normal(y.shape).astype(dtype)
    for special in (False, True):
        if special:
            x.reshape(-1)[5] = dy.reshape(-1)[3] = math.inf
            x.reshape(-1)[-7] = dy.reshape(-1)[-2] = math.nan
        for name, arrays, own in (
            ("conv", (x, weight, bias), {}),
            ("conv", (x, weight, None), {}),
            ("conv_weight_grad", (dy, x), {"kernel_size": kernel}),
            ("conv_input_grad", (dy, weight), {"input_size": size[2:]}),
        ):
            if name == "conv_weight_grad" and stride[-1] == 1:  # BLAS is as fast
                assert eager_loops.function_of(name)(*arrays, **own, **attrs) is None
                continue
            wanted = op_expr(name).kernel(np)(*arrays, **own, **attrs)
            same_but_for_rounding(ran(name, *arrays, **own, **attrs), wanted, scale=20)
            out = np.full_like(wanted, 7)
            assert ran(name, *arrays, **own, **attrs, out=out) is out
            same_but_for_rounding(out, wanted, scale=20)
    weight[0] = math.inf  # zeros between what is given must not meet it
    grad = eager_loops.function_of("conv_input_grad")
    assert grad(dy, weight, input_size=size[2:], **attrs) is None


@needs_numba
def test_a_transposed_convolution_whose_output_is_padded(at_once):
    rng = np.random.default_rng(5)
    dy, weight = rng.standard_normal((2, 6, 30, 30)), rng.standard_normal((6, 8, 3, 3))
    attrs = {"stride": (2, 2), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
    for more in (0, 1, 2, 3):
        size = {"input_size": (61 + more, 61 + more)}
        wanted = op_expr("conv_input_grad").kernel(np)(dy, weight, **size, **attrs)
        same_but_for_rounding(ran("conv_input_grad", dy, weight, **size, **attrs), wanted, 20)
        x = rng.standard_normal((2, 8, 61 + more, 61 + more))
        kernel = {"kernel_size": (3, 3), **attrs}
        wanted = op_expr("conv_weight_grad").kernel(np)(dy[:, :4], x, **kernel)
        made = eager_loops.function_of("conv_weight_grad")(dy[:, :4].copy(), x, **kernel)
        assert made is not None
        same_but_for_rounding(made, wanted, 20)


@needs_numba
def test_a_convolution_with_little_to_copy_is_numpys(at_once):
    x, weight = np.ones((4, 16, 20, 20), "f"), np.ones((16, 16, 3, 3), "f")
    attrs = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1)}
    run = eager_loops.function_of("conv")
    assert run(x, weight, None, **attrs, groups=1) is not None
    for other, groups in (
        (weight[..., :1, :1].copy(), 1),
        (weight[:4], 1),
        (weight.astype("d"), 1),
    ):
        assert run(x, other, None, **attrs, groups=groups) is None, other.shape
    assert run(x[:1], weight, None, **attrs, groups=1) is None
    # A tap that meets nothing but padding may be infinite, and changes nothing.
    apart = {**attrs, "padding": (20, 20), "dilation": (20, 20)}
    assert run(x, weight, None, **apart, groups=1) is None


@needs_numba
def test_one_loop_serves_all_sizes(at_once):
    rng = np.random.default_rng(9)
    before = set(eager_loops._loops)
    for shape in ((3, 5), (5, 3), (8, 8), (2, 7, 11), (4, 1, 6)):
        x, w = rng.standard_normal(shape), rng.standard_normal(shape[-1])
        groups = (x.size // shape[-1], shape[-1])
        attrs = {"groups": groups, "channels": groups}
        made = ran("affine_norm", x, w, None, **attrs, eps=1 / x.size)
        wanted = op_expr("affine_norm").kernel(np)(x, w, None, **attrs, eps=1 / x.size)
        same_but_for_rounding(made, wanted)
        grads = (rng.standard_normal(shape), *wanted[1:], w)
        needs = {"needs": (True, True, True)}
        made = ran("affine_norm_grad", *grads, **attrs, **needs)
        same_but_for_rounding(
            made, op_expr("affine_norm_grad").kernel(np)(*grads, **attrs, **needs)
        )
        for slope in (0.1, 0.2):
            found = ran("leaky_relu", x, negative_slope=slope)
            np.testing.assert_array_equal(found, np.where(x > 0, x, x * slope))
    made = [loop for loop in set(eager_loops._loops) - before if loop.sites]
    assert len(made) <= 3
    assert all([len(loop.sites) == 1 for loop in eager_loops._loops if loop.sites])


@needs_numba
def test_what_a_loop_cannot_do_is_numpys(at_once):
    x = np.ones((4, 6), "f")
    for name, arrays, attrs in (
        ("softmax", (x.astype("e"),), {"dim": 1}),
        ("softmax", (np.ones((1, 1), "f"),), {"dim": 1}),
        ("softmax", (np.ones((200, 200), "f"),), {"dim": 0}),  # its lines lie scattered
        ("relu_grad", (x, x.astype("d")), {}),
        ("sgd_update", (x, x.astype("d"), None, None, np.array(0.1), None, None, None), {}),
    ):
        assert eager_loops.function_of(name)(*arrays, **attrs) is None, name
    assert eager_loops.function_of("sigmoid")(x, out=np.ones((6, 4), "f").T) is None


@needs_numba
def test_a_number_among_the_inputs_is_numpys(at_once):
    """The gradient of `where` gives the kernel a plain 0.0 in the place of an array."""
    for _ in range(2):
        x = flow.tensor([1.0, -2.0], requires_grad=True)
        flow.where(x > 0, x, 3 * x).sum().backward()
        assert x.grad.tolist() == [1, 3]


@needs_numba
@pytest.mark.parametrize(("shape", "dim"), [((100_000,), 0), ((1000, 100), 0), ((9, 11_000), 1)])
def test_running_sums_keep_their_digits(shape, dim, at_once):
    rng = np.random.default_rng(3)
    x, b = rng.normal(1, 0.01, shape).astype("f"), rng.normal(size=shape).astype("f")
    wide = x.astype("d"), b.astype("d")
    for name, count, attrs in (
        ("cumsum", 1, {"dim": dim}),
        ("cumsum_grad", 1, {"dim": dim}),
        ("cumprod", 1, {"dim": dim}),
        ("recurrence", 2, {"dim": dim, "reverse": True}),
    ):
        truth = op_expr(name).kernel(np)(*wide[:count], **attrs)
        found = ran(name, *(x, b)[:count], **attrs)
        assert np.linalg.norm(found - truth) <= 6e-8 * np.linalg.norm(truth), name


@needs_numba
def test_gradients_of_filters_keep_their_digits(at_once):
    rng = np.random.default_rng(5)
    x, dy = rng.normal(size=(4, 32, 32, 32)), rng.uniform(0.5, 1.5, (4, 32, 30, 30))
    x, dy = x.astype("f"), dy.astype("f")
    attrs = {"kernel_size": (3, 3), "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1)}
    truth = op_expr("conv_weight_grad").kernel(np)(dy.astype("d"), x.astype("d"), **attrs, groups=1)
    found = ran("conv_weight_grad", dy, x, **attrs, groups=1)
    assert np.linalg.norm(found - truth) <= 5e-7 * np.linalg.norm(truth)


@needs_numba
def test_nan_and_infinity_in_lines(at_once):
    x = np.array([[1, math.nan, 2], [1, math.inf, 2], [-math.inf] * 3, [-math.inf, 0, 1]], "f")
    x = np.vstack([x, np.copysign(x, -1)])  # nans of the other sign, too
    for name in ("softmax", "log_softmax"):
        with np.errstate(all="ignore"):
            wanted = op_expr(name).kernel(np)(x, dim=1)
        same_but_for_rounding(ran(name, x, dim=1), wanted)


@pytest.mark.slow(but=1)
@needs_numba
@pytest.mark.parametrize(("state", "dtype"), [(True, "f"), (False, "f"), (True, "d")])
def test_optimizer_updates(state, dtype, at_once):
    rng = np.random.default_rng(4)
    p, g, m, v = (rng.uniform(0.1, 1, (3, 5)).astype(dtype) for _ in range(4))
    numbers = [np.array(x) for x in (0.01, 0.9, 0.99, 1e-8, 0.1)]
    cases = [
        ("sgd_update", (p, g, m if state else None, np.array(3.0) if state else None), flags, some)
        for flags in ({"nesterov": state}, {"maximize": True})
        for some in (numbers[:3] + numbers[4:], [numbers[0], numbers[1], None, None])
    ] + [
        ("adam_update", (p, g, m, v, v / 2 if state else None, np.array(3.0)), flags, numbers)
        for flags in ({"decoupled_weight_decay": True}, {"maximize": True})
    ]
    for name, arrays, flags, given in cases:
        a, b = ([None if x is None else x.copy() for x in arrays] for _ in range(2))
        assert ran(name, *a, *given, **flags) is a[0]
        op_expr(name).kernel(np)(*b, *given, **flags)
        kept = [tuple([x for x in each if x is not None]) for each in (a, b)]
        same_but_for_rounding(*kept, scale=2.0)


def optimizers(kind, dtypes=("f", "f", "f"), **options):
    """Return an optimizer and another one of equal parameters, with gradients that change."""
    rng = np.random.default_rng(10)
    arrays = [
        (rng.standard_normal(shape).astype(d), rng.standard_normal((9, *shape)).astype(d))
        for shape, d in zip([(5, 3), (7,), ()], dtypes, strict=True)
    ]
    made = []
    for _ in range(2):
        params = [flow.tensor(x).requires_grad_() for x, _ in arrays]
        made.append(getattr(flow.optim, kind)(params, **options))

    def step(number, optimizer, kept=(0, 1, 2)):
        for i, p in enumerate(optimizer.param_groups[0]["params"]):
            p.grad = flow.tensor(arrays[i][1][number]) if i in kept else None
        optimizer.step()

    return made, step


def same_bits(a, b):
    for x, y in zip(*[o.param_groups[0]["params"] for o in (a, b)], strict=True):
        np.testing.assert_array_equal(x.detach().numpy(), y.detach().numpy())
        assert x._version == y._version
        assert a.state[x].keys() == b.state[y].keys()
        for name, kept in a.state[x].items():
            np.testing.assert_array_equal(kept.numpy(), b.state[y][name].numpy())
            assert kept._version == b.state[y][name]._version


@needs_numba
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("SGD", {"lr": 0.1}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
        ("Adam", {"amsgrad": True}),
        ("AdamW", {"maximize": True}),
        ("RMSprop", {"momentum": 0.5, "centered": True}),
        ("NAdam", {}),
        ("Rprop", {}),
    ],
)
def test_all_updates_of_a_step_are_one_call(kind, options, at_once):
    (a, b), step = optimizers(kind, **options)
    for number in range(4):
        if number == 2:  # options are read at every step
            a.param_groups[0]["lr"] = b.param_groups[0]["lr"] = 0.03
        step(number, a)
        with flow.use_jit(False):
            step(number, b)
    assert a._together._joint.run is not None
    assert b._together._joint is None
    same_bits(a, b)


@needs_numba
def test_joint_updates_see_what_changed(at_once):
    (a, b), step = optimizers("SGD", lr=0.1, momentum=0.9)
    for number in range(8):
        kept = (0, 1) if number == 3 else (1, 2) if number == 4 else (0, 1, 2)
        for o in (a, b):
            if number == 5:  # other memory
                p = o.param_groups[0]["params"][0]
                p.data = p.data.clone()
            if number == 6:
                o.param_groups[0]["maximize"] = True
        step(number, a, kept)
        with flow.use_jit(False):
            step(number, b, kept)
        same_bits(a, b)
    assert a._together._joint.run is not None
    p = a.param_groups[0]["params"][0]
    p.grad = flow.ones(3, 5).T
    step_of = a._together._joint.run
    a.step()  # a gradient of another layout is NumPy's
    assert a._together._joint.run is step_of


@pytest.mark.slow
@needs_numba
def test_what_is_not_joined_is_one_op_each(at_once):
    (a, b), step = optimizers("Adam", ("f", "d", "f"))
    step(0, a)
    with flow.use_jit(False):
        step(0, b)
    same_bits(a, b)
    assert a._together._joint.run is None  # of two kinds
    shared = np.zeros(8, "f")
    params = [flow.from_numpy(shared[i : i + 6]).requires_grad_() for i in (0, 2)]
    optimizer = flow.optim.SGD(params, lr=0.1)
    for p in params:
        p.grad = flow.ones(6)
    optimizer.step()  # they overlap
    assert optimizer._together._joint.run is None
    np.testing.assert_allclose(shared, [-0.1] * 2 + [-0.2] * 4 + [-0.1] * 2, 1e-6)


@needs_numba
def test_updates_are_joined_at_a_fixed_step(monkeypatch):
    monkeypatch.setattr(eager_loops, "PAYS", 4 * 3 * eager_loops.CALL)
    (a, _), step = optimizers("SGD", lr=0.1)
    joined = []
    for number in range(9):
        step(number, a)
        joint = a._together._joint
        joined.append(joint is not None and joint.run is not None)
    assert joined == [False] * 7 + [True] * 2


FUNCTIONS = {
    "softmax": lambda x: x.softmax(-1) * x,
    "log_softmax": lambda x: x.log_softmax(-1) * x,
    "layer_norm": lambda x: F.layer_norm(x, (6,), x[0], x[1]),
    "group_norm": lambda x: F.group_norm(x.reshape(1, 4, 6), 2, x[0, :4], x[1, :4]),
    "batch_norm": lambda x: F.batch_norm(x.reshape(1, 2, 12), None, None, training=True),
    "rms_norm": lambda x: F.rms_norm(x, (6,), x[0]),
    "gelu": F.gelu,
    "silu": F.silu,
    "elu": F.elu,
    "mish": F.mish,
    "sigmoid": flow.sigmoid,
    "tanh": flow.tanh,
    "cumsum": lambda x: x.cumsum(1) ** 2,
    "cumprod": lambda x: x.cumprod(1),
    "max_pool": lambda x: F.max_pool2d(x.reshape(1, 1, 4, 6), 2) ** 2,
    "avg_pool": lambda x: F.avg_pool2d(x.reshape(1, 1, 4, 6), 3, 1, 1) ** 2,
    "embedding": lambda x: F.embedding(flow.tensor([0, 2, 2]), x) ** 2,
    "scatter_add": lambda x: x.scatter_add(1, flow.tensor([[0, 0, 5]] * 4), x * x),
    "unfold": lambda x: F.unfold(x.reshape(1, 1, 4, 6), 2) ** 2,
}


@needs_numba
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_to_second_order(name, at_once):
    x = flow.tensor(np.random.default_rng(5).standard_normal((4, 6))).requires_grad_()
    assert flow.autograd.gradcheck(FUNCTIONS[name], (x,))
    assert flow.autograd.gradgradcheck(FUNCTIONS[name], (x,))


@needs_numba
def test_an_index_out_of_range_is_numpys_error(at_once):
    x = flow.ones(3, 4)
    with pytest.raises(IndexError):
        x.scatter_add(1, flow.tensor([[0, 9, 1, 1]] * 3), x)
    with pytest.raises(IndexError):
        x.index_add(0, flow.tensor([0, 7, 1]), x)


@needs_numba
def test_it_takes_over_at_a_fixed_call(monkeypatch):
    monkeypatch.setattr(eager_loops, "PAYS", 4 * 8192)
    x = np.random.default_rng(6).standard_normal((128, 64)).astype("f")
    wanted = op_expr("softmax").kernel(np)(x, dim=1)
    same = [bool((flow.tensor(x).softmax(1).numpy() == wanted).all()) for _ in range(10)]
    assert same == [True] * 7 + [False] * 3
    with flow.use_jit(False):
        assert (flow.tensor(x).softmax(1).numpy() == wanted).all()


@needs_numba
@pytest.mark.parametrize("op", ["conv", "conv_weight_grad", "conv_input_grad"])
def test_calls_of_convolutions_count_by_their_products(op, monkeypatch):
    """A few of them take as long as building a loop, so it is asked after a few."""
    x, weight, dy = (
        flow.ones(*shape) for shape in [(1, 8, 32, 64), (50, 4, 5, 5), (1, 50, 28, 60)]
    )
    x.requires_grad_(), weight.requires_grad_()
    products = dy.numel() * 4 * 5 * 5 if op != "conv" else x.numel() * 25 * 5 * 5
    monkeypatch.setattr(eager_loops, "PAYS", 3 * products // loops.PRODUCTS)
    asked = []
    monkeypatch.setattr(eager_loops, "function_of", lambda op: lambda *a, **b: asked.append(op))
    for number in range(5):
        F.conv2d(x, weight, groups=2).backward(dy)
        assert asked.count(op) == max(0, number - 2)


SCRIPT = """
import hashlib, sys, numpy as np
import oneflow_lite as flow
from oneflow_lite.ops import eager_loops
assert "numba" not in sys.modules and "oneflow_lite.static" not in sys.modules
eager_loops.PAYS = 1 << 17
flow.use_deterministic_algorithms(True)
x = flow.tensor(np.random.default_rng(0).standard_normal((256, 64)).astype("f")).requires_grad_()
seen = hashlib.sha256()
for _ in range(30):
    y = flow.nn.functional.gelu(x).softmax(1)
    (dx,) = flow.autograd.grad((y * y).sum(), x)
    seen.update(y.detach().numpy().tobytes() + dx.numpy().tobytes())
assert "numba" in sys.modules
print(seen.hexdigest())
"""


@pytest.mark.slow
@needs_numba
def test_cold_and_warm_caches_give_the_same_bits(tmp_path):
    settings = {**os.environ, "ONEFLOW_LITE_CACHE": str(tmp_path), "OMP_NUM_THREADS": "2"}
    found = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env=settings, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert found[0] == found[1]
    assert list((tmp_path / "fusion").iterdir())


@needs_numba
def test_where_numba_fails_numpy_goes_on(monkeypatch, at_once):
    class Broken:
        @staticmethod
        def loop(source, arguments):
            raise RuntimeError("no")

    monkeypatch.setattr(eager, "load_machine", lambda: Broken)
    x = flow.randn(64, 64)
    wanted = op_expr("softmax").kernel(np)(x.numpy(), dim=1)
    for _ in range(3):
        np.testing.assert_array_equal(x.softmax(1).numpy(), wanted)


@needs_numba
def test_arrays_that_nobody_may_write_are_read_and_not_written(at_once):
    x = np.random.default_rng(0).standard_normal((64, 64)).astype("f")
    x.flags.writeable = False
    sites = sum(len(loop.sites) for loop in eager_loops._loops)
    found = op_expr("softmax").on_cpu()(x, dim=1)
    assert sum(len(loop.sites) for loop in eager_loops._loops) == sites + 1
    same_but_for_rounding(found, op_expr("softmax").kernel(np)(x, dim=1))
    numbers = [np.array(x) for x in (0.1, 0.0)]
    with pytest.raises(ValueError, match="read-only"):
        op_expr("sgd_update").on_cpu()(x, x, None, None, *numbers, None, None, nesterov=False)


@needs_numba
@pytest.mark.parametrize("change", [lambda x: x.T, lambda x: x[::-1], np.broadcast_to])
def test_other_layouts_are_numpys(change, at_once):
    x = np.random.default_rng(7).standard_normal((64, 64)).astype("f")
    x = np.broadcast_to(x[0], (64, 64)) if change is np.broadcast_to else change(x)
    for name, attrs in (("softmax", {"dim": 1}), ("gelu", {"approximate": "none"})):
        wanted = op_expr(name).kernel(np)(x, **attrs)
        found = op_expr(name).on_cpu()(x, **attrs)
        np.testing.assert_array_equal(found, wanted)
        assert found.strides == wanted.strides


@needs_numba
def test_several_threads_at_once(at_once):
    x = flow.randn(512, 512)
    wanted = op_expr("softmax").kernel(np)(x.numpy(), dim=1)
    found = []
    threads = [threading.Thread(target=lambda: found.append(x.softmax(1))) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for y in found:
        same_but_for_rounding(y.numpy(), wanted)


def test_without_numba_the_kernel_is_the_kernel(monkeypatch):
    monkeypatch.setattr(eager_loops, "has_numba", lambda: False)
    for name in loops.FROM_SIZE:
        assert op_expr(name).on_cpu() is op_expr(name).kernel(np)


def test_a_users_kernel_is_not_passed_by(at_once):
    def mine(xp, x, *, dim):
        return x * 0

    entry = KERNELS.get("softmax")
    flow.register_kernel("softmax", device="cpu")(mine)
    try:
        assert (flow.ones(64, 64).softmax(1).numpy() == 0).all()
    finally:
        del entry.by_device["cpu"]
        entry._is_library = None
        op_expr("softmax").forget()


def test_every_op_of_the_table_has_a_kernel_and_a_function():
    for name, family in loops._FAMILIES.items():
        schema = op_expr(name).schema
        if name in POINTWISE:
            attrs = {n: ATTRS[n] for n in schema.attrs}
            assert scalar_of(name, attrs) is not None, name
        elif family == loops.WRITTEN:
            assert KERNELS.get(name).scalar is not None or schema.inputs[0] == "param", name
        else:
            assert callable(loops.function_of(name))


@needs_numba
def test_a_compiled_step_uses_the_loops_too(monkeypatch, at_once):
    from oneflow_lite.static.runtime import takeover

    monkeypatch.setattr(takeover, "_AT_LEAST", 3)
    monkeypatch.setattr(takeover, "_AT_MOST", 3)

    def step(x):
        return (flow.cumsum(x * 2 + 1, 1) * 2 + 1).sum()

    x = flow.tensor(np.random.default_rng(8).standard_normal((64, 64)))
    wanted = step(x).item()
    compiled = flow.compile(step)
    for _ in range(8):
        assert math.isclose(compiled(x).item(), wanted, rel_tol=1e-12)
    assert compiled.explain().hits == 7


test_a_compiled_step_uses_the_loops_too = pytest.mark.unjudged("sums differ in their last bits")(
    test_a_compiled_step_uses_the_loops_too
)
