"""Groups with lines: softmax, norms and losses, in as few passes as they need."""

import warnings

import numpy as np
import pytest

import oneflow_lite as flow
from tests.judge import judged_loops

pytest.importorskip("numba", reason="the extra `jit` is not installed")

from oneflow_lite.arrays import threads
from oneflow_lite.static.runtime import interpreter_core
from oneflow_lite.static.runtime.passes import PASSES
from oneflow_lite.static.runtime.straight_line import StraightLine
from tests.static.build import Builder
from tests.static.fusion.families import FAMILIES, LOSSES, F, backward, points

pytestmark = [pytest.mark.own_loops, pytest.mark.unjudged("what is fused may differ in last bits")]
ALONE = [name for name in PASSES if name != "joining"]


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Let no loops be joined, for each is looked at."""
    monkeypatch.setattr(interpreter_core, "BUILDING", ("fusion",))


SHAPES = [(3, 5), (1, 6), (7, 1), (2, 3, 4), (4, 2, 1, 3)]


def judged(function, *inputs, kernels="python"):
    with judged_loops(kernels) as verdicts:
        compiled = flow.compile(function)
        found = [compiled(*inputs) for _ in range(3)][-1]
    assert not verdicts, "\n".join(verdicts)
    return found, verdicts


@pytest.mark.slow(but=8)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FAMILIES)
def test_lines_are_those_of_numpy(name, shape, dtype):
    """The source, run as Python: each group gives what NumPy gives."""
    if name == "batch_norm" and shape[0] == 1:
        return
    judged(backward(FAMILIES[name]), points(shape, dtype))


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FAMILIES)
def test_machine_code_of_lines_is_as_good(name, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of NumPy
        for special in (False, True):
            _, verdicts = judged(
                backward(FAMILIES[name]), points((5, 33), dtype, special), kernels="numba"
            )
            assert verdicts.runs or name in ("norm", "normalize")


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("kernels", ["python", "numba"])
@pytest.mark.parametrize("shape", [(5, 4), (3, 4, 2), (4,)], ids=str)
@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_classes(name, shape, kernels):
    target = flow.tensor(
        np.arange(np.prod(shape) // 4).reshape(shape[:1][: len(shape) - 1] + shape[2:]) % 4
    )
    judged(
        backward(lambda x, t: F.cross_entropy(x, t, **LOSSES[name])),
        points(shape, "float64"),
        target,
        kernels=kernels,
    )


@pytest.mark.parametrize("wrong", [4, -1, 10**12])
def test_a_target_that_is_no_class_is_an_error_as_before(wrong):
    x = points((3, 4), "float32")
    step = backward(lambda x, t: F.cross_entropy(x, t))
    step(x, flow.tensor([0, 3, 2]))
    with flow.use_jit(True), judged_loops("numba") as verdicts:
        compiled = flow.compile(step)
        for _ in range(3):
            compiled(x, flow.tensor([0, 3, 2]))
        assert verdicts.runs == 2
        with pytest.raises(IndexError) as caught:
            compiled(x, flow.tensor([0, wrong, 2]))
    with pytest.raises(IndexError) as plain:
        step(x, flow.tensor([0, wrong, 2]))
    assert str(caught.value) == str(plain.value)
    assert any("line" in note or "test_lines.py" in note for note in caught.value.__notes__)


@pytest.mark.parametrize(
    ("name", "ops"),
    [
        ("softmax", ["softmax", "softmax_grad"]),
        ("layer_norm", ["affine_norm", "affine_norm_grad"]),
        ("log_softmax", ["mul", "log_softmax", "log_softmax_grad", "mul"]),
        ("gelu", ["gelu", "gelu_grad"]),
        ("var, all", None),
    ],
)
def test_one_group_where_one_is_possible(name, ops):
    step, x = backward(FAMILIES[name]), points((6, 40), "float32")
    with judged_loops():
        compiled = flow.compile(step)
        for _ in range(3):
            compiled(x)
    (said,) = [text for text in compiled.explain().loops if ops is None or ops[0] in text]
    for op in ops or ["var"]:
        assert op in said or "..." in said


def test_cross_entropy_is_one_loop():
    with judged_loops():
        compiled = flow.compile(backward(lambda x, t: F.cross_entropy(x, t)))
        for _ in range(3):
            compiled(points((6, 40), "float32"), flow.arange(6))
    (said,) = compiled.explain().loops
    assert said.startswith("4 ops in one loop (log_softmax, nll_loss, nll_loss_grad")


def plan_of(b, *fetches):
    plan = b.plan(*fetches, passes=ALONE)
    assert not plan.refused
    return plan, [list(loop.ops) for loop in plan.loops]


def test_what_a_later_pass_needs_is_kept_or_computed_again():
    b = Builder()
    y = b.op("softmax", b.op("neg", b.feed("x", np.eye(3))), dim=1)
    plan, groups = plan_of(b, y)
    source = plan.loops[0].source
    assert groups == [["neg", "softmax"]]
    assert source.count("exp(") == 1 and source.count("= float64(-x0)") == 2
    assert "v0[j] = " in source


def test_sums_over_other_dimensions_are_added_up_at_the_end():
    b = Builder()
    x, w = b.feed("x", np.random.randn(4, 6)), b.feed("w", np.random.randn(6))
    y = b.op("softmax", b.op("add", x, w), dim=1)
    total = b.op("sum_to", y, shape=(6,))
    _, groups = plan_of(b, y, total)
    assert groups == [["add", "softmax", "sum_to"]]


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("transpose", {"dim0": 0, "dim1": 1}),
        ("reshape", {"shape": (6, 6)}),
        ("expand", {"shape": (6, 6)}),
        ("permute", {"dims": (1, 0)}),
    ],
)
def test_views_are_folded_into_the_index(op, attrs):
    shape = (6,) if op == "expand" else (36,) if op == "reshape" else (6, 6)
    b = Builder()
    x = b.feed("x", np.random.randn(*shape))
    y = b.op("add", b.op(op, x, **attrs), b.feed("y", np.random.randn(6, 6)))
    plan, groups = plan_of(b, b.op("exp", y))
    assert groups == [["add", "exp"]]
    assert [each.type for each in plan.block.ops] == ["fused"]
    found = StraightLine(plan).run([b.initial[n] for n in plan.feeds], [])[0]
    view = {"reshape": lambda x: x.reshape(6, 6), "expand": lambda x: x[None]}.get(op, np.transpose)
    np.testing.assert_allclose(found, np.exp(view(b.initial["x"]) + b.initial["y"]), 1e-14)


def test_a_view_that_is_needed_itself_is_made_after_the_loop():
    b = Builder()
    x = b.feed("x", np.random.randn(4, 6))
    y = b.op("exp", x)
    turned = b.op("transpose", y, dim0=0, dim1=1)
    z = b.op("neg", b.op("add", y, x))
    plan, groups = plan_of(b, z, b.op("matmul", turned, z))
    assert groups == [["exp", "add", "neg"]]
    found = StraightLine(plan).run([b.initial["x"]], [])
    want = -(np.exp(b.initial["x"]) + b.initial["x"])
    np.testing.assert_allclose(found[1], np.exp(b.initial["x"]).T @ want, 1e-12)


@pytest.mark.slow
def test_rows_are_shared_among_threads(monkeypatch):
    """Each thread has buffers of its own, and sums of its own."""
    monkeypatch.setattr(threads, "threads", lambda: 3)
    monkeypatch.setattr(threads, "SHARED", 4096)
    x = points((700, 100), "float64")
    for name in ("softmax", "layer_norm", "bias", "mse"):
        judged(backward(FAMILIES[name]), x, kernels="numba")


def test_long_lines_are_summed_in_blocks():
    rng = np.random.default_rng(0)
    b = Builder()
    x = b.feed("x", rng.standard_normal((2, 30_000)) * 1e3)
    y = b.op("exp", b.op("neg", b.op("square", x)))
    mean = b.op("mean", b.op("mul", x, y), dim=(1,), keepdim=True)
    plan, _ = plan_of(b, b.op("sub", x, mean), b.op("sum", x, dim=(1,), keepdim=False))
    assert "compensated" in plan.loops[0].source
    found = StraightLine(plan).run([b.initial["x"]], [])[1]
    given = b.initial["x"].astype(np.longdouble)
    assert (np.abs(found - given.sum(1)) <= 1e-14 * np.abs(given).sum(1)).all()
