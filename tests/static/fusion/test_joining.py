"""Joined functions: what they take in, what they leave alone, and that nothing else changes."""

import re

import numpy as np
import pytest

pytest.importorskip("numba", reason="the extra `jit` is not installed")

import oneflow_lite as flow
from oneflow_lite.arrays import threads
from oneflow_lite.static.fusion import machine, products
from oneflow_lite.static.runtime.passes import PASSES, joining
from oneflow_lite.static.runtime.straight_line import StraightLine
from tests.judge import judged_loops
from tests.static.build import Builder
from tests.static.fusion.test_pass import run

X = np.linspace(-2.0, 2.0, 24).reshape(4, 6)


def joined(b, *fetches):
    plan = b.plan(*fetches, passes=list(PASSES))
    assert not plan.refused
    return [op.type for op in plan.block.ops], plan


def check(b, *fetches):
    types, plan = joined(b, *fetches)
    run(b, plan)
    return types


def product_and_more(b, x):
    y = b.op("tanh", b.op("add", b.op("matmul", x, b.feed("w", X.T.copy())), b.feed("b", X[0, :4])))
    return b.op("mul", b.op("matmul_tn", y, y, merge=False), b.op("exp", y))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_small_program_is_one_call(dtype):
    b = Builder()
    end = product_and_more(b, b.feed("x", X.astype(dtype)))
    assert all(b.arrays[n].dtype == "float64" for n in (end,)) or dtype == "float32"
    types = check(b, end)
    if dtype == "float64":
        assert types == ["joined"]


def test_it_can_be_read():
    b = Builder()
    _, plan = joined(b, product_and_more(b, b.feed("x", X)))
    (loop,) = plan.loops
    assert loop.kind == "call" and "matmul" in loop.ops and "tanh" in loop.ops
    assert str(loop).startswith("6 ops in one call (matmul, add, tanh, exp, ...)")
    assert re.search(r"# \d+\. product_\d+: matmul_tn\n", loop.source)
    assert re.search(r"# \d+\. run_\d+: add, tanh, exp\n", loop.source)
    report = next(r for r in plan.reports if r.name == "joining")
    assert report.fired == 1 and report.saved["ops"] >= 3


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("columns", [1, 3, 8, 17])
def test_products(columns):
    normal = np.random.default_rng(columns).standard_normal
    b = Builder()
    x, y = b.feed("x", normal((4, 5))), b.external("y", normal((5, columns)))
    turned = b.op("transpose", b.external("turned", normal((columns, 5))), dim0=0, dim1=1)
    long = b.feed("long", normal((2, 3, 5))), b.feed("wide", normal((2, 3, columns)))
    products = [
        b.op("matmul", x, y),
        b.op("matmul", x, turned),
        b.op("matmul", b.feed("rows", normal((2, 4, 5))), y),
        b.op("matmul_nt", x, b.feed("nt", normal((columns, 5)))),
        b.op("matmul_tn", b.feed("tn", normal((5, 4))), y, merge=False),
        b.op("matmul_tn", *long, merge=True),
    ]
    assert check(b, *[b.op("neg", each) for each in products]) == ["joined"]


SIZES = {
    "tiles, and rows and columns that are left": (9, 33, 37),
    "one column": (5, 40, 1),
    "one row": (1, 7, 20),
    "one number": (3, 1, 5),
    "sums of long rows": (6, 150, 5),
    "sums that are stored in between": (5, 1100, 17),
}


FORMS: dict[str, dict[str, bool]] = {"matmul": {}, "matmul_nt": {}, "matmul_tn": {"merge": False}}


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", SIZES)
def test_products_of_sizes(case, dtype):
    rows, inner, columns = SIZES[case]
    rng = np.random.default_rng(rows)
    x, y = rng.integers(-3, 4, (rows, inner)), rng.integers(-3, 4, (inner, columns))  # exact
    b = Builder()
    ends = []
    for form, attrs in FORMS.items():
        factors = (
            (x.T.copy() if form == "matmul_tn" else x),
            (y.T.copy() if form == "matmul_nt" else y),
        )
        names = [b.feed(f"{i} of {form}", a.astype(dtype)) for i, a in enumerate(factors)]
        z = b.op(form, *names, **attrs)
        ends += [z, b.op("neg", z)]
    assert check(b, *ends) == ["joined"]


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shared", ["none", "x", "y"])
def test_batches_of_products(form, shared):
    rng = np.random.default_rng(0)
    b = Builder()
    ends = []
    for counts in ((3,), (2, 3), (2, 1), (1,)):
        x = rng.standard_normal((*(() if shared == "x" else counts), 6, 6))
        y = rng.standard_normal((*(counts[-1:] if shared == "y" else counts), 6, 6))
        names = b.feed(f"x of {counts}", x), b.feed(f"y of {counts}", y)
        ends.append(b.op("neg", b.op(form, *names, **FORMS[form])))
    assert check(b, *ends) == ["joined"]


def test_many_products_that_blas_would_divide_are_left_to_it():
    b = Builder()
    x = b.feed("x", np.zeros((2, 64, 128), "float32"))
    y = b.feed("y", np.zeros((40, 2, 128, 64), "float32"))
    assert "matmul" in check(b, b.op("neg", b.op("matmul", x, y)))
    b = Builder()
    x = b.feed("x", np.zeros((64, 128), "float32"))
    few = b.feed("z", np.zeros((3, 128, 64), "float32"))
    assert check(b, b.op("neg", b.op("matmul", x, few))) == ["joined"]


def test_heads_of_attention_lie_apart_in_memory():
    b = Builder()
    qk = b.op("exp", b.feed("x", np.linspace(-1, 1, 2 * 5 * 2 * 3 * 4).reshape(2, 5, 2, 3, 4)))
    q, k = (b.op("select", qk, dim=2, index=i) for i in range(2))
    q, k = (b.op("transpose", each, dim0=1, dim1=2) for each in (q, k))
    z = b.op("matmul_nt", q, k)
    assert check(b, b.op("exp", z)) == ["joined"]


def test_a_matrix_is_turned_once():
    b = Builder()
    w = b.external("w", X[:, :5].copy())
    y = b.op("exp", b.feed("x", X[:, :5].copy()))
    for _ in range(3):
        y = b.op("tanh", b.op("matmul_nt", y, w))
        y = b.op("matmul", y, w)
    types, plan = joined(b, y)
    assert types == ["joined"] and plan.loops[0].source.count(". turned_") == 1
    run(b, plan)


def test_a_matrix_that_changes_is_turned_again():
    b = Builder()
    w = b.external("w", X[:, :5].copy())
    x = b.op("exp", b.feed("x", X[:, :5].copy()))
    y = b.op("matmul_nt", x, w)
    b.op("copy_", w, b.op("mul", w, b.op("exp", w)))
    types, plan = joined(b, y, b.op("matmul_nt", x, w))
    assert types == ["joined"] and plan.loops[0].source.count(". turned_") == 2
    run(b, plan)


def test_pieces_are_put_together():
    b = Builder()
    x = b.op("exp", b.feed("x", X))
    pieces = [b.op("narrow", x, dim=1, start=i, length=2) for i in (0, 2)]
    made = [
        b.op("getitem_grad", p, index=(slice(None), slice(i, i + 2)), shape=(4, 6))
        for p, i in zip(pieces, (4, 0), strict=True)
    ]
    y = b.op("add", *made)
    assert check(b, b.op("matmul_nt", y, b.feed("w", X.copy())), y) == ["joined"]


def test_single_ops_over_their_own_operands():
    """An output in the place of an operand is one array for LLVM, which is told of no others."""
    b = Builder()
    x = b.op("matmul", b.feed("x", X), b.feed("w", X.T.copy()))
    total = b.op("matmul", x, x)
    for _ in range(3):
        total = b.op("add", total, b.op("matmul", total, b.constant(np.eye(4) * 0.5)))
    types, plan = joined(b, b.op("matmul", total, total))
    assert types == ["joined"] and plan.in_place
    assert " = a0\n" in plan.loops[0].source
    run(b, plan)


def test_infinities_and_nan_go_through_products():
    b = Builder()
    x = np.array([[1.0, np.inf, 0.0], [np.nan, 1.0, 2.0], [0.0, -np.inf, 3.0]])
    z = b.op("matmul", b.feed("x", x), b.feed("y", np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])))
    assert check(b, b.op("neg", z)) == ["joined"]


def test_large_products_and_groups_stay_as_they_are(monkeypatch):
    monkeypatch.setattr(products, "LARGEST", 64**3 - 1)
    b = Builder()
    x = b.feed("x", np.linspace(0, 1, 64 * 64).reshape(64, 64))
    y = b.op("neg", b.op("matmul", x, x))
    large = b.op("tanh", b.op("exp", b.feed("z", np.linspace(0, 1, machine.LARGE))))
    assert check(b, y, large) == ["matmul", "neg", "fused"]


@pytest.mark.parametrize("most", [5, 100])
def test_large_groups_stay_apart_where_all_would_be_too_much(most, monkeypatch):
    monkeypatch.setattr(joining, "_MOST", most)
    monkeypatch.setattr(joining, "_LARGE_GROUP", 3)
    b = Builder()
    w = b.feed("w", X[:2].T.copy())
    y = b.feed("x", X)
    for _ in range(4):
        y = b.op("exp", b.op("neg", y))
    z = b.op("matmul", y, w)
    end = b.op("neg", b.op("matmul", b.op("abs", z), b.feed("v", X[:2].copy())))
    assert check(b, end) == (["joined"] if most == 100 else ["fused", "joined"])


def test_a_product_with_a_given_array_in_another_order_is_a_call():
    b = Builder()
    w, x = b.feed("w", X[:2].copy()), b.feed("x", X)
    turned = b.op("transpose", w, dim0=0, dim1=1)
    product = b.op("matmul", x, turned)
    assert "matmul" in check(b, b.op("neg", product), b.op("exp", w))


def test_views_of_what_stays_cost_nothing():
    b = Builder()
    p = b.external("p", X)
    part = b.op("narrow", p, dim=0, start=1, length=2)
    flat = b.op("reshape", part, shape=(12,))
    y = b.op("exp", flat)
    assert check(
        b, b.op("matmul", b.op("reshape", y, shape=(3, 4)), b.feed("w", X[:, :2].copy())), y
    )


def test_a_reshape_that_copies_is_no_view():
    b = Builder()
    y = b.op("add", b.op("matmul", b.feed("x", X), b.feed("w", X.T.copy())), b.feed("b", X[0, :4]))
    part = b.op("narrow", y, dim=1, start=1, length=2)
    flat = b.op("reshape", part, shape=(8,))
    assert "cumsum" in check(b, b.op("cumsum", flat, dim=0))


def sgd(b, i, shape, dtype="float32", momentum=True):
    rng = np.random.default_rng(i)
    p, m = (b.external(f"{n}{i}", rng.standard_normal(shape).astype(dtype)) for n in "pm")
    g = b.op("neg", b.feed(f"g{i}", rng.standard_normal(shape).astype(dtype)))
    return p, g, m if momentum else None


def updated(b, shapes, **options):
    lr, mom = b.external("lr", np.array(0.1)), b.external("momentum", np.array(0.9))
    each = [sgd(b, i, shape, **options) for i, shape in enumerate(shapes)]
    for p, g, m in each:
        b.op("sgd_update", p, g, m, None, lr, mom if m else None, None, None, nesterov=False)
    return [g for _, g, _ in each]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("momentum", [True, False])
def test_updates_of_all_shapes_are_one_call(dtype, momentum):
    b = Builder()
    shapes = [(3, 4), (7,), (), (2, 1, 5)]
    gradients = updated(b, shapes, dtype=dtype, momentum=momentum)
    types, plan = joined(b, *gradients)
    assert types == ["joined"]
    assert plan.loops[0].source.count("sgd_update_") < 20
    runner = StraightLine(plan)
    given = {name: np.copy(x) for name, x in b.initial.items()}
    for _ in range(3):
        runner.run([given[n] for n in plan.feeds], [given[n] for n in plan.external_names])
    assert not np.array_equal(given["p0"], b.initial["p0"])
    run(b, plan)


def test_threads_share_large_updates(monkeypatch):
    monkeypatch.setattr(threads, "threads", lambda: 3)
    monkeypatch.setattr(threads, "SHARED", 4096)
    b = Builder()
    updated(b, [(300, 200), (11,), (20_000,), (1,)])
    types, plan = joined(b)
    assert types[-1] == "joined" and plan.block.ops[-1].attrs["run"].threads == 3
    run(b, plan)


@pytest.mark.parametrize("way", ["same", "shifted", "strided", "read-only"])
def test_parameters_that_overlap_stay_with_numpy(way):
    b = Builder()
    gradients = updated(b, [(6,), (6,)])
    _, plan = joined(b, *gradients)
    runner = StraightLine(plan)
    memory = np.arange(24, dtype="float32")
    arrays = {name: np.copy(x) for name, x in b.initial.items()}
    arrays["p0"] = memory[:6]
    other = {"same": memory[:6], "shifted": memory[3:9], "strided": memory[12::2]}
    arrays["p1" if way != "same" else "m0"] = other.get(way, memory[6:12])
    if way == "read-only":
        arrays["p1"].flags.writeable = False
    given = [arrays[n] for n in plan.external_names]
    feeds = [arrays[n] for n in plan.feeds]
    kept = [x.copy() for x in given]
    if way == "read-only":
        with pytest.raises(ValueError, match="read-only"):
            runner.run(feeds, given)
    else:
        runner.run(feeds, given)
        assert not all(np.array_equal(x, y) for x, y in zip(kept, given, strict=True))
    assert "sgd_update" in str([op.type for op in runner._bound[1][0].lines])


def test_a_function_that_numba_refuses_stays_as_it_was(monkeypatch):
    def refuse(joined, block):
        raise TypeError("no such thing")

    monkeypatch.setattr(machine, "compile_joined", refuse)
    b = Builder()
    plan = b.plan(product_and_more(b, b.feed("x", X)), passes=list(PASSES))
    assert "joined" not in [op.type for op in plan.block.ops]
    assert plan.refused == ["matmul ... mul: TypeError('no such thing')"]
    run(b, plan)


def test_an_error_names_the_update():
    b = Builder()
    state = [b.external(n, np.ones(3, "float32")) for n in "pmv"]
    g = b.op("neg", b.feed("g", np.ones(3, "float32")))
    numbers = [b.external(n, np.array(x)) for n, x in (("lr", 0.1), ("b1", 0.9), ("b2", 0.9))]
    step, eps = b.external("t", np.array(0, "float32")), b.external("eps", np.array(1e-8))
    b.op("adam_update", state[0], g, state[1], state[2], None, step, *numbers, eps, None)
    types, plan = joined(b, g)
    assert types == ["joined"]
    arrays = {name: np.copy(x) for name, x in b.initial.items()} | {"b1": np.array(1.0)}
    with pytest.raises(ZeroDivisionError) as raised:
        StraightLine(plan).run([arrays["g"]], [arrays[n] for n in plan.external_names])
    assert "in op 'adam_update'" in raised.value.__notes__[0]


@pytest.mark.slow
def test_random_programs_give_what_numpy_gives():
    rng = np.random.default_rng(3)
    for _ in range(12):
        b = Builder()
        known = [b.feed(f"x{i}", rng.standard_normal((4, 4)) * 0.5) for i in range(3)]
        p = b.external("p", rng.standard_normal((4, 4)))
        known.append(p)
        for _ in range(rng.integers(4, 12)):
            name = str(
                rng.choice(["tanh", "neg", "add", "mul", "matmul", "matmul_nt", "sum", "copy_"])
            )
            inputs = rng.choice(known, 1 if name in ("tanh", "neg", "sum") else 2).tolist()
            if name == "copy_":
                b.op("copy_", p, inputs[1])
            elif name == "sum":
                known.append(
                    b.op("tanh", b.op("add", b.op("sum", *inputs, dim=(1,), keepdim=True), p))
                )
            else:
                known.append(b.op(name, *inputs))
        fetches = [n for n in known[4:] if rng.random() < 0.3] or [known[-1]]
        fetches = [n for n in fetches if n not in ("p", *b.feeds)] or [b.op("neg", p)]
        _, plan = joined(b, *dict.fromkeys(fetches))
        run(b, plan)


def test_what_a_call_writes_has_a_place_already():
    """It was made over an operand that is gone by then."""
    w = flow.tensor([1.0, 2.0])

    def f(x):
        w.mul_(0.5)
        y = x.max(1)[0] * 1
        y = y + w.sum() * 0.5
        y.mul_(y)  # with what the backward pass needs, one call
        return y

    compiled = flow.compile(f)
    with judged_loops("python joined") as verdicts:
        for scale in (1.0, 0.5, 0.25):
            x = flow.ones(2, 3, requires_grad=True)
            with flow.no_grad():
                w.copy_(flow.tensor([1.0, 2.0]) * scale)
            assert compiled(x).tolist() == [(1 + 0.75 * scale) ** 2] * 2
    assert compiled.explain().hits == 2 and not verdicts
