"""Groups: which ops join, what their loops make, and that nothing else changes."""

import contextlib
import warnings

import numpy as np
import pytest

pytest.importorskip("numba", reason="the extra `jit` is not installed")

from oneflow_lite.arrays import threads
from oneflow_lite.arrays.device import CPU, array_module, as_device
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.static.fusion import machine
from oneflow_lite.static.runtime.passes import DEFAULT_PASSES, PASSES, grouping
from oneflow_lite.static.runtime.straight_line import StraightLine
from tests import strict_cupy
from tests.conftest import REAL_CARD
from tests.static.build import Builder, run_plainly
from tests.strict_cupy import emulation

X = np.linspace(-2.0, 2.0, 24).reshape(4, 6)
F32 = X.astype("float32")
ALONE = [name for name in PASSES if name != "joining"]


@pytest.fixture(autouse=True, params=["cpu", "cuda"])
def place(request, monkeypatch):
    """The device of Programs: the CPU, then CUDA (a real card, or kernels emulated)."""
    if request.param == "cpu":
        yield CPU
        return
    if not REAL_CARD and emulation.COMPILER is None:
        pytest.skip("no C++ compiler to emulate kernels with")
    with contextlib.nullcontext() if REAL_CARD else strict_cupy.installed():
        monkeypatch.setattr(Builder, "place", as_device("cuda"))
        yield Builder.place


@pytest.fixture
def on_cpu(place):
    if place != CPU:
        pytest.skip("this is about the CPU")


def on_host(arrays):
    return [array if isinstance(array, np.ndarray) else array.get() for array in arrays]


def fused(b, *fetches):
    plan = b.plan(*fetches, passes=(*DEFAULT_PASSES, "fusion"))
    assert not plan.refused
    return [list(loop.ops) for loop in plan.loops], plan


def run(b, plan, times=2):
    """Run a plan; hold what comes against the Program run op by op."""
    runner = StraightLine(plan)
    for _ in range(times):
        given = {name: b.on_place(np.copy(x)) for name, x in b.initial.items()}
        found = runner.run([given[n] for n in plan.feeds], [given[n] for n in plan.external_names])
        found, given = on_host(found), dict(zip(given, on_host(given.values()), strict=True))
        wanted = {name: np.copy(x) for name, x in b.initial.items()}
        expected = run_plainly(b.program, wanted)
        for name, value in zip(plan.fetches, found, strict=True):
            want = expected[name]
            assert (value.shape, value.dtype) == (want.shape, want.dtype)
            tolerance = {"e": 2e-3, "f": 1e-6}.get(want.dtype.char, 1e-14)
            if want.dtype.kind != "f":
                assert np.array_equal(value, want)
            else:
                np.testing.assert_allclose(value, want, tolerance, tolerance, equal_nan=True)
        for name in given:  # what the Program writes, and what it leaves alone
            np.testing.assert_allclose(given[name], wanted[name], 1e-6)


def check(b, *fetches):
    groups, plan = fused(b, *fetches)
    run(b, plan)
    return groups


@pytest.mark.parametrize("x", [X, F32], ids=["float64", "float32"])
def test_a_chain_is_one_loop(x):
    b = Builder()
    v = b.feed("x", x)
    y = b.op("mul", b.op("tanh", b.op("exp", v)), v)
    assert check(b, y) == [["exp", "tanh", "mul"]]


def test_a_long_chain_is_several_loops(monkeypatch):
    monkeypatch.setattr(grouping, "MOST", 4)
    b = Builder()
    y = x = b.feed("x", X)
    for _ in range(10):
        y = b.op("add", y, x)
    assert list(map(len, check(b, y))) == [4, 4, 2]


def test_what_is_used_outside_is_stored_as_well():
    b = Builder()
    x = b.feed("x", X)
    y = b.op("exp", x)
    groups, plan = fused(b, b.op("neg", y), y)
    assert groups == [["exp", "neg"]]
    assert len(plan.block.ops) == 1 and len(plan.block.ops[0].outputs) == 2
    run(b, plan)


def test_an_op_between_divides():
    """matmul needs what the first ones make, and the last ones need matmul."""
    b = Builder()
    x = b.feed("x", X)
    y = b.op("neg", b.op("exp", x))
    z = b.op("matmul", y, b.feed("w", X.T.copy()))
    end = b.op("tanh", b.op("abs", z))
    assert check(b, end) == [["exp", "neg"], ["abs", "tanh"]]


def test_an_op_that_needs_nothing_of_it_does_not_divide():
    b = Builder()
    x = b.feed("x", X)
    y = b.op("exp", x)
    z = b.op("matmul", x, b.feed("w", X.T.copy()))
    assert check(b, b.op("neg", y), z) == [["exp", "neg"]]


def test_branches_that_meet_are_one_loop():
    b = Builder()
    x = b.feed("x", X)
    assert check(b, b.op("add", b.op("exp", x), b.op("square", x))) == [["exp", "square", "add"]]


def test_a_write_to_an_operand_divides():
    b = Builder()
    x, p = b.feed("x", X), b.external("p", X + 1)
    y = b.op("mul", b.op("exp", x), p)
    b.op("copy_", p, x)
    z = b.op("add", b.op("neg", y), p)
    assert check(b, y, z) == [["exp", "mul"], ["neg", "add"]]


@pytest.mark.parametrize(
    ("shape", "kind"), [((6,), "column"), ((4, 1), "row"), ((1,), "number"), ((), "number")]
)
def test_operands_may_be_broadcast(shape, kind):
    b = Builder()
    x = b.feed("x", X)
    other = b.feed("y", np.linspace(0.5, 2.0, int(np.prod(shape))).reshape(shape))
    assert check(b, b.op("exp", b.op("mul", x, other))) == [["mul", "exp"]], kind


def test_rows_and_columns_together():
    b = Builder()
    x, row, column = b.feed("x", X), b.feed("r", X[:, :1].copy()), b.feed("c", X[0].copy())
    y = b.op("mul", b.op("add", x, column), row)
    assert check(b, b.op("sigmoid", y)) == [["add", "mul", "sigmoid"]]


@pytest.mark.parametrize("x", [X, F32], ids=["float64", "float32"])
@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("sum", {"dim": (0, 1), "keepdim": False}),
        ("mean", {"dim": (0, 1), "keepdim": False}),
        ("sum", {"dim": (1,), "keepdim": True}),
        ("mean", {"dim": (0,), "keepdim": False}),
        ("mean", {"dim": (1,), "keepdim": False}),
        ("sum_to", {"shape": (6,)}),
        ("sum_to", {"shape": (4, 1)}),
    ],
)
def test_reductions_end_a_group(x, op, attrs):
    b = Builder()
    y = b.op("exp", b.feed("x", x))
    assert check(b, b.op(op, y, **attrs)) == [["exp", op]]


def test_a_reduction_that_adds_nothing_up_stays_with_numpy():
    b = Builder()
    y = b.op("exp", b.feed("x", X[:1].copy()))
    assert check(b, b.op("sum_to", b.op("neg", y), shape=(6,))) == [["exp", "neg"]]


def test_a_group_of_which_only_the_shape_is_used_is_none():
    b = Builder()
    x = b.feed("x", X[:1, :1])
    ones = b.op("ones_like", b.op("neg", b.op("exp", x)))
    assert check(b, b.op("matmul", x, ones)) == []


def test_two_reductions_of_one_loop():
    b = Builder()
    y = b.op("exp", b.feed("x", X))
    z = b.op("square", y)
    total = b.op("sum", z, dim=(0, 1), keepdim=False)
    columns = b.op("sum_to", y, shape=(6,))
    assert check(b, total, columns, z) == [["exp", "square", "sum", "sum_to"]]


def test_what_a_reduction_makes_is_used_after_the_loop():
    b = Builder()
    y = b.op("exp", b.feed("x", X))
    total = b.op("sum", y, dim=(0, 1), keepdim=False)
    assert check(b, b.op("neg", b.op("div", y, total))) == [["exp", "sum"], ["div", "neg"]]


def test_ones_like_a_loss_is_no_reason_to_wait():
    """Forward and backward of a loss are one loop."""
    b = Builder()
    x = b.feed("x", X)
    y = b.op("tanh", x)
    loss = b.op("sum", y, dim=(0, 1), keepdim=False)
    dy = b.op("expand", b.op("ones_like", loss), shape=(4, 6))
    dx = b.op("tanh_grad", dy, y)
    groups, plan = fused(b, loss, dx)
    assert groups == [["tanh", "sum", "tanh_grad"]]
    assert [op.type for op in plan.block.ops] == ["fused"]
    run(b, plan)


def test_ones_like_a_result_may_be_needed_before_it_is_there():
    b = Builder()
    x = b.feed("x", X)
    y = b.op("exp", x)
    early = b.op("matmul", b.op("ones_like", y), b.feed("w", X.T.copy()))
    check(b, early, b.op("tanh", b.op("mul", y, x)))


@pytest.mark.parametrize("through", ["itself", "a view", "a write"])
def test_what_is_handed_out_is_made_at_every_run(through):
    b = Builder()
    x = b.feed("x", np.ones(1))
    one = b.op("ones_like", b.op("sum", b.op("exp", x), dim=(0,), keepdim=False))
    end = {
        "itself": lambda: one,
        "a view": lambda: b.op("expand", one, shape=(3,)),
        "a write": lambda: b.op("copy_", one, b.op("reshape", x, shape=())),
    }[through]()
    _, plan = fused(b, end, b.op("neg", b.op("tanh", x)))
    runner = StraightLine(plan)
    given = [b.on_place(b.initial["x"])]
    first = runner.run(given, [])[0]
    (kept,) = on_host([first.copy()])
    again = runner.run(given, [])[0]
    assert not array_module(b.place).shares_memory(first, again)
    if first.ndim == 0 and (b.place != CPU or first.flags.writeable):
        first[...] = 7
    assert np.array_equal(on_host(runner.run(given, []))[0], kept)


def test_truth_values_and_integers():
    b = Builder()
    x, n = b.feed("x", X), b.feed("n", np.arange(24).reshape(4, 6))
    chosen = b.op("where", b.op("gt", x, b.op("neg", x)), n, b.op("mul", n, n))
    assert check(b, chosen) == [["neg", "gt", "mul", "where"]]


def test_truth_values_are_added_as_numpy_adds_them():
    b = Builder()
    x, y = b.feed("x", X > 0), b.feed("y", X < 1)
    both = b.op("add", x, y)
    assert check(b, b.op("eq", both, b.op("mul", x, x))) == [["add", "mul", "eq"]]


def test_integers_wrap_around_and_their_powers_stay_with_numpy():
    b = Builder()
    x = b.feed("x", np.array([100, -100, 127, -128], "int8"))
    assert check(b, b.op("neg", b.op("mul", x, x))) == [["mul", "neg"]]
    n = b.feed("n", np.array([3, -3, 2**40, 7]))
    assert check(b, b.op("neg", b.op("pow", n, b.constant(np.array(3))))) == []


def test_ones_that_are_written_are_no_ones_any_more():
    b = Builder()
    x = b.feed("x", X)
    ones = b.op("ones_like", x)
    b.op("copy_", ones, b.op("exp", x))
    y = b.op("neg", b.op("mul", ones, x))
    assert check(b, y) == [["mul", "neg"]]


@pytest.mark.parametrize("dtype", ["float16", "complex128"])
def test_other_dtypes_stay_with_numpy(dtype, place):
    b = Builder()
    x = b.feed("x", X.astype(dtype))
    halves = dtype == "float16" and place != CPU
    assert check(b, b.op("neg", b.op("exp", x))) == [["exp", "neg"]] * halves


def test_layouts_that_are_not_c_order_stay_with_numpy():
    b = Builder()
    x = b.feed("x", X)
    turned = b.op("transpose", x, dim0=0, dim1=1)
    assert check(b, b.op("neg", b.op("exp", turned))) == []


def test_no_warning_comes_out_of_a_loop():
    b = Builder()
    x = b.feed("x", np.array([[1000.0, -1.0], [0.0, np.nan]]))
    _, plan = fused(b, b.op("log", b.op("mul", b.op("exp", x), x)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        StraightLine(plan).run([b.on_place(b.initial["x"])], [])


def test_infinities_and_nan_are_numpys():
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 800.0])
    b = Builder()
    x, y = b.feed("x", np.repeat(special, 10)), b.feed("y", np.tile(special, 10))
    ends = [
        b.op("mul", b.op("exp", x), y), b.op("div", b.op("log", x), y),
        b.op("maximum", b.op("tanh", x), y), b.op("minimum", b.op("sqrt", x), y),
        b.op("add", b.op("sigmoid", x), y), b.op("sub", b.op("erf", x), y),
        b.op("neg", b.op("pow", x, y)), b.op("abs", b.op("log1p", x)),
        b.op("neg", b.op("expm1", x)), b.op("mul", b.op("where", b.op("isnan", x), y, x), y),
        b.op("neg", b.op("sin", x)), b.op("neg", b.op("relu_grad", x, y)),
        b.op("neg", b.op("gelu", x, approximate="none")), b.op("neg", b.op("silu", x)),
    ]  # fmt: skip
    _, plan = fused(b, *ends)
    assert len(plan.loops) == 1  # all of them read the same
    run(b, plan)


@pytest.mark.parametrize("size", [1000, 100_003])
def test_threads_share_large_groups(size, monkeypatch, on_cpu):
    """Sums are those of one thread but for their last bits, and the same at every run."""
    monkeypatch.setattr(threads, "threads", lambda: 3)
    monkeypatch.setattr(threads, "SHARED", 4096)
    rng = np.random.default_rng(0)
    b = Builder()
    x = b.feed("x", rng.standard_normal(size).astype("float32"))
    y = b.op("exp", x)
    total = b.op("sum", y, dim=(0,), keepdim=False)
    _, plan = fused(b, y, total)
    run(b, plan)
    found = [StraightLine(plan).run([b.initial["x"]], [])[1] for _ in range(5)]
    assert len({float(each) for each in found}) == 1
    exact = np.exp(b.initial["x"]).astype(np.longdouble).sum()
    numpys = np.exp(b.initial["x"]).sum()
    assert abs(float(found[0]) - exact) <= abs(numpys - exact) + np.spacing(numpys)


@pytest.mark.parametrize("refused", [("exp",), ("abs",), ("exp", "abs")], ids=str)
def test_a_group_that_numba_refuses_stays_with_numpy(refused, monkeypatch, on_cpu):
    make = machine.compiled

    def refuse(group, block):
        if group.ops[0].type in refused:
            raise TypeError("no such thing")
        return make(group, block)

    monkeypatch.setattr(machine, "compiled", refuse)
    b = Builder()
    x = b.feed("x", X)
    y = b.op("neg", b.op("exp", x))
    z = b.op("matmul", y, b.feed("w", X.T.copy()))
    plan = b.plan(b.op("tanh", b.op("abs", z)), passes=(*DEFAULT_PASSES, "fusion"))
    left = [["exp", "neg"], ["abs", "tanh"]]
    assert [list(loop.ops) for loop in plan.loops] == [g for g in left if g[0] not in refused]
    said = [f"{a} ... {b}: TypeError('no such thing')" for a, b in left if a in refused]
    assert plan.refused == said
    run(b, plan)


def test_what_is_saved_is_reported():
    b = Builder()
    x = b.feed("x", X)
    _, plan = fused(b, b.op("neg", b.op("exp", x)))
    report = next(r for r in plan.reports if r.name == "fusion")
    assert (report.fired, report.saved) == (1, {"ops": 1, "bytes": X.nbytes})


@pytest.mark.slow
def test_random_programs_give_what_numpy_gives():
    rng = np.random.default_rng(7)
    unary = ["exp", "tanh", "sigmoid", "neg", "abs", "square", "relu", "erf", "sin"]
    binary = ["add", "sub", "mul", "maximum", "minimum"]
    shapes = [(4, 6), (6,), (4, 1), (1,), ()]
    for _ in range(25):
        b = Builder()
        known = [b.feed(f"x{i}", rng.standard_normal(s) * 0.7) for i, s in enumerate(shapes)]
        for _ in range(rng.integers(3, 14)):
            name = str(rng.choice(unary + binary))
            inputs = rng.choice(known, 1 if name in unary else 2).tolist()
            if name == "exp" and np.abs(b.arrays[inputs[0]]).max() > 5:
                name = "tanh"
            known.append(b.op(name, *inputs))
            if rng.random() < 0.2 and b.arrays[known[-1]].ndim == 2:
                dims = [(0,), (1,), (0, 1)][rng.integers(3)]
                known.append(b.op("sum", known[-1], dim=dims, keepdim=True))
        made = known[len(shapes) :]
        fetches = [made[-1], *[n for n in made[:-1] if rng.random() < 0.3]]
        _, plan = fused(b, *fetches)
        run(b, plan, times=1)


def test_passes_that_build_run_where_they_are_named():
    assert set(PASSES) - set(DEFAULT_PASSES) == {"fusion", "joining"}
    assert op_expr("fused").schema.variadic == "arrays"


@pytest.mark.parametrize("dim", [0, 1])
def test_parts_of_an_array_are_read_where_they_lie(dim, place):
    b = Builder()
    whole = b.op("matmul", b.feed("x", X), b.feed("w", X.T @ X))
    one, other = (b.op("narrow", whole, dim=dim, start=i, length=2) for i in (0, 2))
    row = b.op("select", whole, dim=0, index=1)
    y = b.op("mul", b.op("exp", one), b.op("tanh", other))
    row = b.op("mul", b.op("exp", row), row)
    loops = check(b, y, row, b.op("sum_to", b.op("exp", one), shape=b.arrays[one].shape[1:]))
    assert ["exp", "mul"] in loops  # a row is in C order
    assert dim == 0 or place != CPU or any("tanh" in loop for loop in loops)


def test_results_of_many_operands(on_cpu):
    """More pairs of arrays than LLVM compares beforehand."""
    b = Builder()
    x = [b.feed(f"x{i}", X + i) for i in range(6)]
    made = [b.op("mul", x[i], x[j]) for i in range(6) for j in range(i)]
    total = made[0]
    for each in made[1:]:
        total = b.op("add", total, each)
    (loop,), _ = fused(b, total, *made)
    assert len(loop) == 2 * len(made) - 1
    check(b, total, *made)
