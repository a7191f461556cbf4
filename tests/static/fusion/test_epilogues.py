"""Biases behind convolutions, and ops that move up to what makes their operands."""

import numpy as np
import pytest

pytest.importorskip("numba", reason="the extra `jit` is not installed")

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.static.runtime import takeover
from oneflow_lite.static.runtime.passes import DEFAULT_PASSES, run_passes
from oneflow_lite.static.runtime.straight_line import StraightLine
from tests.static.build import Builder, run_plainly

CONV = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}


def fused(b, *fetches, **changes):
    """Return the types of the plan's ops and loops; its results are the Program's."""
    plan = b.plan(*fetches, passes=())
    for name, value in changes.items():
        setattr(plan, name, value)
    run_passes(plan, (*DEFAULT_PASSES, "fusion"))
    assert not plan.refused
    given = {name: np.copy(x) for name, x in b.initial.items()}
    runner = StraightLine(plan)
    for _ in range(2):
        arrays = {name: np.copy(x) for name, x in given.items()}
        feeds = [arrays[n] for n in plan.feeds]
        found = runner.run(feeds, [arrays[n] for n in plan.external_names])
        wanted = run_plainly(b.program, {name: np.copy(x) for name, x in given.items()})
        for name, value in zip(plan.fetches, found, strict=True):
            np.testing.assert_allclose(value, wanted[name], 1e-12, 1e-12, strict=True)
    return [op.type for op in plan.block.ops], [list(loop.ops) for loop in plan.loops]


def convolved(b, bias=True):
    rng = np.random.default_rng(0)
    x = b.feed("x", rng.normal(size=(2, 3, 5, 5)))
    w = b.external("w", rng.normal(size=(4, 3, 3, 3)))
    return b.op("conv", x, w, b.external("b", rng.normal(size=4)) if bias else None, **CONV)


def test_a_bias_is_added_with_the_activation():
    b = Builder()
    y = b.op("relu", convolved(b))
    ops, loops = fused(b, y)
    assert ops == ["conv", "fused"] and loops == [["add", "relu"]]


def test_a_product_that_is_needed_with_its_bias_is_handed_out_with_it():
    b = Builder()
    y = convolved(b)
    assert fused(b, b.op("relu", y), y)[1] == [["add", "relu"]]


def test_a_bias_stays_where_no_loop_reads_the_product():
    b = Builder()
    y = convolved(b)
    assert fused(b, b.op("matmul", y, y)) == (["conv", "matmul"], [])
    b = Builder()
    assert fused(b, b.op("relu", convolved(b, bias=False))) == (["conv", "relu"], [])


def test_a_sum_moves_up_over_the_products():
    """The gradient of a bias, which is recorded behind those of the input and of the weight."""
    b = Builder()
    rng = np.random.default_rng(0)
    dy, y = b.feed("dy", rng.normal(size=(2, 4, 6))), b.feed("y", rng.normal(size=(2, 4, 6)))
    dz = b.op("relu_grad", dy, y)
    w = b.feed("w", rng.normal(size=(6, 3)))
    dx = b.op("matmul", dz, w)
    db = b.op("sum", dz, dim=(0, 2), keepdim=False)
    ops, loops = fused(b, dx, db)
    assert ops == ["fused", "matmul"] and loops == [["relu_grad", "sum"]]


def test_what_was_written_is_not_passed():
    b = Builder()
    p = b.external("p", np.arange(6.0).reshape(2, 3))
    x = b.feed("x", np.ones((2, 3)))
    y = b.op("exp", x)
    z = b.op("matmul", y, b.feed("w", np.ones((3, 3))))
    b.op("copy_", p, x)
    end = b.op("mul", y, p)  # of the new p
    ops, loops = fused(b, z, end)
    assert ops == ["exp", "matmul", "copy_", "mul"] and not loops


@pytest.mark.parametrize("is_last", [True, False])
def test_an_op_moves_up_when_no_memory_is_used_for_longer(is_last):
    b = Builder()
    x = b.feed("x", np.linspace(0, 1, 9).reshape(3, 3))
    y = b.op("exp", x)
    z = b.op("matmul", b.op("sum", y, dim=1, keepdim=True), b.feed("w", np.ones((1, 3))))
    end = b.op("neg", y)
    others = [] if is_last else [b.op("matmul", y, z)]
    loops = fused(b, z, end, *others)[1]
    assert loops == ([["exp", "neg", "sum"]] if is_last else [["exp", "sum"]])


def test_ops_from_the_boundary_on_stay():
    b = Builder()
    y = b.op("relu", convolved(b))
    for number, op in enumerate(b.block.ops):
        op.number = number
    assert fused(b, y, fuses_until=1) == (["conv", "relu"], [])
    assert fused(b, y, fuses_until=2) == (["conv", "fused"], [["add", "relu"]])


@pytest.fixture
def soon(monkeypatch):
    monkeypatch.setattr(takeover, "_AT_LEAST", 4)
    monkeypatch.setattr(takeover, "_AT_MOST", 4)
    with flow.use_jit(True):
        yield


@pytest.mark.slow
@pytest.mark.unjudged("what is fused may differ in its last bits")
def test_a_step_of_a_convolutional_network(soon):
    """Bias and activation, and gradients of both, are one loop each; norms take the relu."""

    def build():
        flow.manual_seed(0)
        net = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.LeakyReLU(0.1), nn.Conv2d(4, 6, 3),
            nn.BatchNorm2d(6), nn.ReLU(), nn.ConvTranspose2d(6, 2, 2), nn.Tanh(),
        ).double()  # fmt: skip
        opt = flow.optim.SGD(net.parameters(), lr=0.1)

        def step(x):
            opt.zero_grad()
            loss = (net(x) ** 2).mean()
            loss.backward()
            opt.step()
            return loss

        return net, step

    x = flow.randn(2, 3, 8, 8, dtype=flow.float64)
    (net, step), (other, eager) = build(), build()
    compiled = flow.compile(step)
    for _ in range(7):
        np.testing.assert_allclose(compiled(x).item(), eager(x).item(), rtol=1e-10)
    for p, q in zip(net.parameters(), other.parameters(), strict=True):
        np.testing.assert_allclose(p.numpy(), q.numpy(), 1e-9, 1e-12)
    loops = [loop.ops for loop in compiled._recordings[0].core.runner.plan.loops]
    assert ("add", "leaky_relu") in loops
    assert any("batch_norm" in ops and "relu" in ops for ops in loops)
    assert any("leaky_relu_grad" in ops and "sum" in ops for ops in loops)

    net.eval()
    infer = flow.compile(lambda x: net[4](net[3](net[2](x))))
    h = flow.randn(2, 4, 8, 8, dtype=flow.float64)
    with flow.no_grad():
        for _ in range(7):
            found = infer(h)
        np.testing.assert_allclose(found.numpy(), net[:5][2:](h).numpy(), 1e-12, 1e-12)
    (loop,) = infer._recordings[0].core.runner.plan.loops
    assert loop.ops[0] == "add" and loop.ops[-1] == "relu"
