"""Machine code on CUDA devices: when it takes over, on which stream, and what it leaves alone."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.errors import CaptureError
from oneflow_lite.ops import eager_loops
from oneflow_lite.static.runtime import cuda_graph, interpreter_core, takeover
from tests import strict_cupy
from tests.conftest import REAL_CARD
from tests.static.fusion.families import FAMILIES, LOSSES, F, backward, gelu, points, runner
from tests.strict_cupy import emulation

pytestmark = [
    pytest.mark.unjudged("what is fused may differ in its last bits"),
    pytest.mark.skipif(
        not REAL_CARD and emulation.COMPILER is None, reason="no C++ compiler to emulate with"
    ),
]
RUN = 4


@pytest.fixture(autouse=True)
def soon(monkeypatch, cuda):
    """Take over after a few runs, without numba."""
    monkeypatch.setattr(takeover, "_AT_LEAST", RUN)
    monkeypatch.setattr(takeover, "_AT_MOST", RUN)
    monkeypatch.setattr(eager_loops, "has_numba", lambda: False)
    with flow.use_jit(True):
        yield


@pytest.mark.parametrize("dtype", [flow.float32, flow.float64, flow.float16])
def test_kernels_take_over(dtype):
    x = flow.randn(7, 5, dtype=dtype).to("cuda").requires_grad_()
    wanted = gelu(x)
    compiled = flow.compile(gelu)
    tolerance = 5e-3 if dtype == flow.float16 else 1e-5
    for run in range(2 * RUN):
        found = compiled(x)
        assert bool(run and runner(compiled).plan.loops) is (run >= RUN)
        for a, b in zip(found, wanted, strict=True):
            assert a.device == b.device and a.dtype == b.dtype
            np.testing.assert_allclose(a.cpu().numpy(), b.cpu().numpy(), tolerance, tolerance)
    assert not runner(compiled).plan.refused
    assert "__global__" in compiled.source()
    assert compiled.explain().hits == 2 * RUN - 1


def same(step, *inputs, tolerance=1e-12):
    """Compile a function; its groups give what the calls give, and none is refused."""
    wanted = step(*inputs)
    compiled = flow.compile(step)
    for _ in range(RUN + 1):
        found = compiled(*inputs)
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a.cpu().numpy(), b.cpu().numpy(), tolerance, tolerance)
    plan = runner(compiled).plan
    assert not plan.refused
    return plan


@pytest.mark.slow(but=5)
@pytest.mark.parametrize("shape", [(5, 33), (2, 3, 2, 8)], ids=str)
@pytest.mark.parametrize("name", FAMILIES)
def test_lines(name, shape):
    x = points(shape, "float64", device="cuda")
    assert same(backward(FAMILIES[name]), x).loops or name in ("norm", "normalize")


@pytest.mark.slow(but=3)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # those of the calls
@pytest.mark.parametrize("name", FAMILIES)
def test_lines_with_infinities_and_nan(name):
    same(backward(FAMILIES[name]), points((5, 33), "float64", special=True, device="cuda"))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ["softmax", "layer_norm", "rms_norm", "gelu"])
def test_lines_of_other_dtypes(name, dtype):
    tolerance = 1e-5 if dtype == "float32" else 1e-2
    x = points((9, 520), dtype, device="cuda")
    assert same(backward(FAMILIES[name]), x, tolerance=tolerance).loops


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("shape", [(70, 4), (3, 4, 2), (4,)], ids=str)
@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_classes(name, shape):
    others = shape[:1][: len(shape) - 1] + shape[2:]
    target = flow.tensor(np.arange(np.prod(shape) // 4).reshape(others) % 4, device="cuda")
    options = {k: v.to("cuda") if k == "weight" else v for k, v in LOSSES[name].items()}
    step = backward(lambda x, t: F.cross_entropy(x, t, **options))
    plan = same(step, points(shape, "float64", device="cuda"), target)
    assert any("log_softmax" in loop.ops and "nll_loss" in loop.ops for loop in plan.loops)


def test_norms_of_groups_and_batches():
    x = points((6, 8, 3, 5), "float32", device="cuda")
    for norm in (
        nn.GroupNorm(4, 8),
        nn.GroupNorm(8, 8),
        nn.BatchNorm2d(8, track_running_stats=False),
    ):
        norm.to("cuda")

        def step(x, norm=norm):
            y = flow.tanh(norm(x))
            (y * y).sum().backward()
            found = [y.detach(), x.grad, norm.weight.grad, norm.bias.grad]
            x.grad = norm.weight.grad = norm.bias.grad = None
            return found

        assert same(step, x, tolerance=2e-4).loops


def test_arrays_that_begin_anywhere():
    """A view that begins at an odd element cannot be loaded four at a time."""
    x = flow.randn(33).to("cuda")
    compiled = flow.compile(lambda x: flow.exp(x * 2) + x)
    for _ in range(RUN + 2):
        for begin in (0, 1, 2):
            part = x[begin : begin + 8]
            np.testing.assert_allclose(
                compiled(part).cpu().numpy(),
                (flow.exp(part * 2) + part).cpu().numpy(), 1e-5,
            )  # fmt: skip
    assert all(r.core.runner.plan.loops for r in compiled._recordings)


def trained(compile_, steps=10):
    flow.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3)).to("cuda")
    optimizer = flow.optim.AdamW(net.parameters(), lr=0.05)

    @compile_
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(flow.sigmoid(net(x)), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    x, y = flow.randn(16, 6).to("cuda"), flow.rand(16, 3).to("cuda")
    losses = [step(x, y).item() for _ in range(steps)]
    return losses, [p.detach().cpu().numpy() for p in net.parameters()], step


def test_training_goes_on_as_before():
    plain, compiled = trained(lambda f: f), trained(flow.compile)
    np.testing.assert_allclose(compiled[0], plain[0], 1e-5)
    for a, b in zip(compiled[1], plain[1], strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-5)
    plans = [r.core.runner.plan for r in compiled[2]._recordings]
    assert any(plan.loops for plan in plans)
    assert not any(plan.refused for plan in plans)


@pytest.mark.skipif(REAL_CARD, reason="a device does not tell what its streams do")
def test_kernels_run_on_the_current_stream(monkeypatch):
    import cupy

    monkeypatch.setattr(interpreter_core, "_SMALL", 0)  # no graph, whose kernels are not followed

    x = flow.randn(40, 30).to("cuda")
    compiled = flow.compile(lambda x: flow.exp(x * 2).sum(0))
    for _ in range(RUN + 1):
        compiled(x)
    with strict_cupy.watched() as seen:
        stream = cupy.cuda.Stream(non_blocking=True)
        stream.wait_event(cupy.cuda.get_current_stream().record())
        with stream:
            y = compiled(x)
        cupy.cuda.get_current_stream().wait_event(stream.record())
        del y
    assert not seen.found
    assert [(name, key[1]) for name, key in seen.kernels if name in ("group", "end0")] == [
        ("group", stream.ptr),
        ("end0", stream.ptr),
    ]


def test_it_can_be_left_out():
    x = flow.randn(7, 5).to("cuda").requires_grad_()
    wanted = gelu(x)
    with flow.use_jit(False):
        compiled = flow.compile(gelu)
        for _ in range(2 * RUN):
            found = compiled(x)
    assert not runner(compiled).plan.loops
    for a, b in zip(found, wanted, strict=True):
        assert np.array_equal(a.cpu().numpy(), b.cpu().numpy())


@pytest.mark.parametrize("blocked", [None, "feeds and fetches are large", "it has a matmul"])
def test_small_programs_become_graphs(blocked, monkeypatch):
    if blocked == "feeds and fetches are large":
        monkeypatch.setattr(interpreter_core, "_SMALL", 1)

    def f(x):
        y = flow.exp(x * 2) + w
        z = y @ w if blocked == "it has a matmul" else y - w
        return flow.tanh(z * 0.1) * x, y.sum(0)

    w = flow.randn(5, 5).to("cuda")
    compiled = flow.compile(f)
    kept = []
    for _ in range(2 * RUN):
        x = flow.randn(5, 5).to("cuda")
        for a, b in zip(compiled(x), f(x), strict=True):
            np.testing.assert_allclose(a.cpu().numpy(), b.cpu().numpy(), 1e-5, 1e-5)
            kept.append((a, b))
    assert runner(compiled).plan.loops
    if not (REAL_CARD and blocked == "it has a matmul"):
        assert (runner(compiled).graph is None) is (blocked is not None)
    for a, b in kept:  # each result has memory of its own
        np.testing.assert_allclose(a.cpu().numpy(), b.cpu().numpy(), 1e-5, 1e-5)


def test_a_graph_that_cannot_be_captured_gives_way(monkeypatch):
    def refuse(self, batch):
        raise CaptureError("it waits for the device")

    monkeypatch.setattr(cuda_graph._Graphs, "_capture_batch", refuse)
    x = flow.randn(7, 5).to("cuda").requires_grad_()
    wanted = gelu(x)
    compiled = flow.compile(gelu)
    for _ in range(2 * RUN):
        found = compiled(x)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.cpu().numpy(), b.cpu().numpy(), 1e-5, 1e-5)
    assert runner(compiled).graph is None
    assert runner(compiled).plan.refused == ["it waits for the device"]


def test_random_numbers_are_drawn_anew():
    compiled = flow.compile(lambda x: flow.exp(flow.rand_like(x) * 2) + x)
    x = flow.zeros(40).to("cuda")
    found = [tuple(compiled(x).cpu().numpy()) for _ in range(2 * RUN)]
    assert len(set(found)) == len(found)
    assert runner(compiled).graph is None and runner(compiled).plan.loops
