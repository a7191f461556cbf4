"""Machine code takes over at a run that the plan decides, and nobody notices but the clock."""

import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.static.runtime import takeover

numba = pytest.importorskip("numba", reason="the extra `jit` is not installed")
pytestmark = pytest.mark.unjudged("what is fused may differ in its last bits")
RUN = 4


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Take over after a few runs."""
    made = takeover.run_of_takeover
    monkeypatch.setattr(takeover, "_AT_LEAST", RUN)
    monkeypatch.setattr(takeover, "_AT_MOST", RUN)
    with flow.use_jit(True):
        yield made


def runner(compiled):
    (recording,) = compiled._recordings
    return recording.core.runner


def gelu(x):
    y = 0.5 * x * (1 + flow.tanh(0.8 * (x + 0.05 * x**3)))
    y.sum().backward()
    dx, x.grad = x.grad, None
    return y.detach(), dx


def test_the_run_is_fixed_and_the_bits_are_numpys_until_then():
    x = flow.randn(7, 5).requires_grad_()
    wanted = gelu(x)
    compiled = flow.compile(gelu)
    for run in range(2 * RUN):
        found = compiled(x)
        assert bool(run and runner(compiled).plan.loops) is (run >= RUN)
        for a, b in zip(found, wanted, strict=True):
            if run < RUN:
                assert np.array_equal(a.numpy(), b.numpy())
            np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-6, 1e-6)
    assert compiled.explain().hits == 2 * RUN - 1


def test_what_runs_can_be_read():
    x = flow.randn(7, 5).requires_grad_()
    compiled = flow.compile(gelu)
    for _ in range(RUN):
        compiled(x)
    assert "def run(" in compiled.source() and "def group(" not in compiled.source()
    assert compiled.explain().loops == []
    for _ in range(2):
        compiled(x)
    assert "tanh(" in compiled.source().partition("def group(")[2]
    (said,) = compiled.explain().loops
    assert said.endswith("bytes not stored") and "ops in one loop (mul, pow, mul, add, ...)" in said


def test_the_building_is_waited_for(monkeypatch):
    made, seen = takeover.TakesOver._build, []

    def slow(self):
        release = threading.Event()
        fused = self._fused
        self._fused = lambda boundary: (release.wait(5), fused(boundary))[1]
        threading.Timer(0.3, release.set).start()
        seen.append(self)
        made(self)

    monkeypatch.setattr(takeover.TakesOver, "_build", slow)
    x = flow.randn(3, 3).requires_grad_()
    compiled = flow.compile(gelu)
    for _ in range(RUN + 1):
        compiled(x)
    assert seen and runner(compiled).plan.loops


def network(seed=0):
    flow.manual_seed(seed)
    net = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3))
    return net, flow.optim.AdamW(net.parameters(), lr=0.05)


def trained(compile_, steps=12):
    net, optimizer = network()

    @compile_
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(flow.sigmoid(net(x)), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    x, y = flow.randn(16, 6), flow.rand(16, 3)
    losses = [step(x, y).item() for _ in range(steps)]
    return losses, [p.detach().numpy() for p in net.parameters()], step


def test_training_goes_on_as_before():
    plain, compiled = trained(lambda f: f), trained(flow.compile)
    np.testing.assert_allclose(compiled[0], plain[0], 1e-5)
    for a, b in zip(compiled[1], plain[1], strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-5)
    plans = [r.core.runner.plan for r in compiled[2]._recordings]
    assert any(plan.loops for plan in plans)


def test_a_seeded_run_gives_the_same_bits_with_a_cold_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ONEFLOW_LITE_CACHE", str(tmp_path))
    cold = trained(flow.compile)
    assert list((tmp_path / "fusion").glob("group_*.py"))
    warm = trained(flow.compile)
    assert cold[0] == warm[0]
    assert all(np.array_equal(a, b) for a, b in zip(cold[1], warm[1], strict=True))


@pytest.mark.parametrize("way", ["use_jit(False)", 'mode="numpy"', "no numba"])
def test_it_can_be_left_out(way, monkeypatch):
    mode = "numpy" if way.startswith("mode") else None
    if way == "no numba":
        monkeypatch.setattr(takeover, "_has_numba", lambda: False)
    x = flow.randn(7, 5).requires_grad_()
    wanted = gelu(x)
    with flow.use_jit(way != "use_jit(False)"):
        compiled = flow.compile(gelu, mode=mode)
        for _ in range(2 * RUN):
            found = compiled(x)
    assert not runner(compiled).plan.loops
    assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize("kind", ["read-only", "unaligned"])
def test_what_is_read_may_be_any_array(kind):
    array = np.linspace(0, 1, 8, dtype="float32")
    if kind == "read-only":
        array.flags.writeable = False
    else:
        array = np.concatenate([[0], array.view("uint8")]).astype("uint8")[1:].view("float32")
        assert not array.flags.aligned
    x = flow.from_numpy(array)
    compiled = flow.compile(lambda x: flow.tanh(x.exp() * 2))
    for _ in range(RUN + 2):
        found = compiled(x)
    assert runner(compiled).plan.loops
    np.testing.assert_allclose(found.numpy(), np.tanh(np.exp(array) * 2), 1e-6)


def test_use_jit_is_put_back():
    with flow.use_jit(False):
        assert not takeover._enabled
        with flow.use_jit(True):
            assert takeover._enabled
        assert not takeover._enabled
    assert takeover._enabled


@pytest.mark.parametrize("damage", [b"", b"no such thing", None])
def test_a_damaged_cache_is_survived(tmp_path, monkeypatch, damage):
    monkeypatch.setenv("ONEFLOW_LITE_CACHE", str(tmp_path))
    x = flow.randn(7, 5).requires_grad_()
    wanted = gelu(x)[0].numpy()
    for turn in range(2):
        compiled = flow.compile(gelu)
        for _ in range(RUN + 1):
            found = compiled(x)
        assert runner(compiled).plan.loops
        np.testing.assert_allclose(found[0].numpy(), wanted, 1e-6, 1e-6)
        for file in (tmp_path / "fusion").glob("**/*.nb*") if not turn else ():
            if damage is None:
                file.unlink()
            else:
                file.write_bytes(damage)


def test_an_unwritable_cache_is_survived(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    monkeypatch.setenv("ONEFLOW_LITE_CACHE", str(blocked))
    x = flow.randn(7, 5).requires_grad_()
    compiled = flow.compile(gelu)
    for _ in range(RUN + 1):
        compiled(x)
    assert runner(compiled).plan.loops


def test_a_build_that_fails_leaves_numpy(monkeypatch):
    def fail(self):
        self._fused = None
        self._built = takeover.Future()
        self._built.set_exception(MemoryError("no room"))

    monkeypatch.setattr(takeover.TakesOver, "_build", fail)
    x = flow.randn(7, 5).requires_grad_()
    compiled = flow.compile(gelu)
    for _ in range(RUN + 2):
        found = compiled(x)
    assert np.array_equal(found[0].numpy(), gelu(x)[0].numpy())
    assert "no room" in runner(compiled).plan.refused[0]


def test_an_interrupted_step_is_put_back_after_the_takeover(monkeypatch):
    """An exception in an op between two loops: nothing is half-changed."""
    net, optimizer = network()
    table = nn.Embedding(4, 6)

    @flow.compile
    def step(i, y):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(flow.sigmoid(net(flow.tanh(table(i) * 2))), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    i, y = flow.tensor([0, 1, 2, 3]), flow.rand(4, 3)
    for _ in range(3 * RUN):
        step(i, y)
    assert any(r.core.runner.plan.loops for r in step._recordings)
    before = [p.detach().numpy().copy() for p in net.parameters()]
    with pytest.raises(IndexError):
        step(flow.tensor([0, 1, 2, 9]), y)
    assert all(
        np.array_equal(a, p.detach().numpy()) for a, p in zip(before, net.parameters(), strict=True)
    )
    step(i, y)


def test_a_process_may_end_while_it_builds(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import oneflow_lite as flow\n"
        "from oneflow_lite.static.runtime import takeover\n"
        "takeover._AT_LEAST = takeover._AT_MOST = 4\n"
        "f = flow.compile(lambda x: (flow.tanh(x * 2) * flow.erf(x)).exp())\n"
        "for _ in range(4): y = f(flow.ones(3))\n"
        "assert f._recordings[0].core.runner._built is not None\n"
        "print('done')\n"
    )
    environment = {**os.environ, "ONEFLOW_LITE_CACHE": ""}
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_nothing_is_kept():
    compiled = flow.compile(gelu)
    x = flow.randn(3, 3).requires_grad_()
    for _ in range(RUN + 1):
        compiled(x)
    reference = weakref.ref(runner(compiled))
    del compiled
    gc.collect()
    assert reference() is None


def test_the_run_follows_what_is_saved(soon, monkeypatch):
    monkeypatch.setattr(takeover, "_AT_LEAST", 1)
    monkeypatch.setattr(takeover, "_AT_MOST", 10**9)

    def run(shape):
        compiled = flow.compile(gelu, mode="numpy")
        x = flow.randn(*shape).requires_grad_()
        compiled(x)
        return soon(runner(compiled).plan)

    assert run((1000, 1000)) < run((30, 30)) < run((2,))
