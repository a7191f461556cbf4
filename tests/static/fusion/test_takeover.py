"""Machine code takes over at a run that the plan decides, and nobody notices but the clock."""

import errno
import gc
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.ops import eager_loops
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.static.runtime import takeover
from tests.static.fusion.families import gelu, runner
from tests.texts import named

pytest.importorskip("numba", reason="the extra `jit` is not installed")

from oneflow_lite.static.fusion import machine

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
    assert len(seen) == 1 and runner(compiled).plan.loops


def test_no_call_waits_unless_a_fixed_one_was_asked_for(monkeypatch):
    monkeypatch.setattr(eager_loops, "deterministic", False)
    x = flow.randn(3, 3).requires_grad_()
    compiled = flow.compile(gelu)
    compiled(x)
    running, release = runner(compiled), threading.Event()
    fused = running._fused
    running._fused = lambda boundary: (release.wait(60), fused(boundary))[1]
    for _ in range(3 * RUN):
        compiled(x)
    (said,) = compiled.explain().building
    assert said.startswith("machine code for 23 ops (mul, pow, ") and " s so far: " in said
    assert not running.plan.loops
    release.set()
    deadline = time.monotonic() + 60
    while not running.plan.loops and time.monotonic() < deadline:
        compiled(x)
        time.sleep(0.01)
    assert running.plan.loops and not compiled.explain().building


def test_loops_by_hand_serve_a_program_without_a_group(monkeypatch):
    monkeypatch.setattr(eager_loops, "PAYS", 0)
    served = []
    room = sys.modules["oneflow_lite.kernels.loops"]
    monkeypatch.setattr(
        room, "function_of", lambda name: lambda *arrays, **attrs: served.append(name)
    )
    op_expr("cumsum").forget()  # or the loop that another test found stays
    compiled, x = flow.compile(lambda x: x.cumsum(0)), flow.randn(64, 64)
    for run in range(RUN + 2):
        np.testing.assert_allclose(compiled(x).numpy(), x.numpy().cumsum(0), 1e-4, 1e-5)
        assert len(served) == 1 + max(0, run - RUN + 1)  # the first run is eager mode's
    plan = runner(compiled).plan
    assert plan.took_over and not plan.loops
    op_expr("cumsum").forget()
    small = flow.compile(lambda x: x.cumsum(0))
    for _ in range(RUN + 2):
        small(x[:2, :2])
    assert not runner(small).plan.took_over


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


@pytest.mark.slow
def test_training_goes_on_as_before():
    plain, compiled = trained(lambda f: f), trained(flow.compile)
    np.testing.assert_allclose(compiled[0], plain[0], 1e-5)
    for a, b in zip(compiled[1], plain[1], strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-5)
    plans = [r.core.runner.plan for r in compiled[2]._recordings]
    assert any(plan.loops for plan in plans)


@pytest.mark.slow
def test_a_seeded_run_gives_the_same_bits_with_a_cold_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ONEFLOW_LITE_CACHE", str(tmp_path))
    cold = trained(flow.compile)
    assert list((tmp_path / "fusion").iterdir())
    machine._known.clear()
    warm = trained(flow.compile)
    assert cold[0] == warm[0]
    assert all(np.array_equal(a, b) for a, b in zip(cold[1], warm[1], strict=True))


@pytest.mark.parametrize("way", ["use_jit(False)", 'mode="numpy"', "no numba"])
def test_it_can_be_left_out(way, monkeypatch):
    mode = "numpy" if way.startswith("mode") else None
    if way == "no numba":
        monkeypatch.setattr(eager_loops, "has_numba", lambda: False)
    x = flow.randn(7, 5).requires_grad_()
    wanted = gelu(x)
    with flow.use_jit(way != "use_jit(False)"):
        compiled = flow.compile(gelu, mode=mode)
        compiled(x)  # the recording asks, and not the first replay
    for _ in range(2 * RUN):
        found = compiled(x)
    assert not runner(compiled).plan.loops
    assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(found, wanted, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("make", [flow.optim.SGD, flow.optim.Adam], ids=lambda x: x.__name__)
def test_a_small_training_step_is_two_calls(make):
    """One before and one after the point from which an interrupt leaves what is done."""

    def trained(compiler):
        flow.manual_seed(0)
        net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
        optimizer = make(net.parameters(), lr=0.05)
        x, y = flow.randn(16, 2), flow.randn(16, 1)

        @compiler
        def step():
            optimizer.zero_grad()
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        losses = [step().item() for _ in range(3 * RUN)]
        return losses, [p.detach().numpy() for p in net.parameters()], step, optimizer

    plain, compiled = trained(lambda f: f), trained(flow.compile)
    np.testing.assert_allclose(compiled[0], plain[0], 1e-5)
    for a, b in zip(compiled[1], plain[1], strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-6)
    runners = [recording.core.runner for recording in compiled[2]._recordings]
    (lines,) = [each.source.splitlines() for each in runners if each.plan.loops]
    assert len(lines) == 4 and lines[-1].strip().startswith("found +=")
    said = compiled[2].explain().loops
    assert len(said) == 2 and all(" ops in one call (" in each for each in said)
    assert f"{make.__name__.lower()}_update, 4 times" in compiled[2].source()
    for state in compiled[3].state.values():
        assert "step" not in state or state["step"].item() == 3 * RUN


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
        assert not eager_loops.enabled
        with flow.use_jit(True):
            assert eager_loops.enabled
        assert not eager_loops.enabled
    assert eager_loops.enabled


def changed(text):
    """Return the same bytes but for some in the middle."""
    middle = len(text) // 2
    return text[:middle] + bytes(64) + text[middle + 64 :]


def without_its_end(text):
    return text[: len(text) // 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage", [changed, without_its_end, lambda text: b"", lambda text: b"no such thing", None]
)
def test_a_damaged_cache_is_survived(tmp_path, monkeypatch, damage):
    monkeypatch.setenv("ONEFLOW_LITE_CACHE", str(tmp_path))
    x = flow.randn(7, 5).requires_grad_()
    wanted = gelu(x)[0].numpy()
    for turn in range(3):
        machine._known.clear()  # as in another process
        compiled = flow.compile(gelu)
        for _ in range(RUN + 1):
            found = compiled(x)
        assert runner(compiled).plan.loops
        np.testing.assert_allclose(found[0].numpy(), wanted, 1e-6, 1e-6)
        files = list((tmp_path / "fusion").iterdir())
        assert files
        for file in files if not turn else ():
            if damage is None:
                file.unlink()
            else:
                file.write_bytes(damage(file.read_bytes()))


def test_a_file_that_was_damaged_is_written_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("ONEFLOW_LITE_CACHE", str(tmp_path))
    x = flow.randn(7, 5).requires_grad_()
    built(flow.compile(gelu), x)
    (file,) = (tmp_path / "fusion").iterdir()
    file.write_bytes(changed(file.read_bytes()))
    built(flow.compile(gelu), x)
    with monkeypatch.context() as warm:
        warm.setattr(machine, "built_apart", None)
        built(flow.compile(gelu), x)


def test_object_code_that_calls_what_is_not_there_is_not_linked(tmp_path, monkeypatch):
    monkeypatch.setenv("ONEFLOW_LITE_CACHE", str(tmp_path))
    x = flow.randn(7, 5).requires_grad_()
    wanted = built(flow.compile(gelu), x)
    (file,) = (tmp_path / "fusion").iterdir()
    head, _, code = file.read_bytes()[32:].partition(b"\n")
    entry, places, _ = json.loads(head)
    content = json.dumps([entry, places, ["no such function"]]).encode() + b"\n" + code
    file.write_bytes(hashlib.sha256(content).digest() + content)
    assert np.array_equal(built(flow.compile(gelu), x), wanted)
    assert b"no such function" not in file.read_bytes()


def built(compiled, x):
    """Run until machine code has taken over, as in a new process; return what the last run gave."""
    machine._known.clear()
    for _ in range(RUN + 1):
        found = compiled(x)
    assert runner(compiled).plan.loops
    return found[0].numpy()


@pytest.mark.slow
def test_what_is_kept_is_for_one_cpu_and_one_owner(tmp_path, monkeypatch):
    monkeypatch.setenv("ONEFLOW_LITE_CACHE", str(tmp_path))
    folder, x = tmp_path / "fusion", flow.randn(7, 5).requires_grad_()
    wanted = built(flow.compile(gelu), x)
    (mine,) = folder.iterdir()
    kept = mine.read_bytes(), mine.stat().st_mtime_ns
    generator = machine.cpu_target.target_context.codegen()
    with monkeypatch.context() as other:
        other.setattr(type(generator), "magic_tuple", lambda self: ("another", "machine"))
        assert np.array_equal(built(flow.compile(gelu), x), wanted)
    assert len(list(folder.iterdir())) == 2
    with monkeypatch.context() as other:
        other.setattr(os, "getuid", lambda: 12345, raising=False)
        assert np.array_equal(built(flow.compile(gelu), x), wanted)
    assert (mine.read_bytes(), mine.stat().st_mtime_ns) == kept


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="the system has other permissions")
@pytest.mark.parametrize("opened", ["file", "folder", "parent"])
def test_what_others_may_write_is_not_run(tmp_path, monkeypatch, opened):
    monkeypatch.setenv("ONEFLOW_LITE_CACHE", str(tmp_path / "parent" / "cache"))
    x, loaded, content_of = flow.randn(7, 5).requires_grad_(), [], machine._content_of

    def read(file):
        content = content_of(file)
        loaded.append(1)
        return content

    monkeypatch.setattr(machine, "_content_of", read)
    for _ in range(2):
        wanted = built(flow.compile(gelu), x)
    assert loaded == [1]
    folder = tmp_path / "parent" / "cache" / "fusion"
    (file,) = folder.iterdir()
    {"file": file, "folder": folder, "parent": tmp_path / "parent"}[opened].chmod(0o777)
    assert np.array_equal(built(flow.compile(gelu), x), wanted)
    assert loaded == [1]


def test_a_line_that_moved_needs_no_new_code(tmp_path, monkeypatch):
    monkeypatch.setenv("ONEFLOW_LITE_CACHE", str(tmp_path))
    x = flow.randn(7, 5).requires_grad_()
    for blank in ("", "\n\n"):
        scope = {"flow": flow}
        text = f"{blank}def f(x):\n    y = flow.exp(-x) * x\n    return (y.detach(),)\n"
        exec(compile(text, named(text), "exec"), scope)
        built(flow.compile(scope["f"]), x)
    assert len(list((tmp_path / "fusion").iterdir())) == 1


@pytest.mark.slow
@pytest.mark.parametrize("call", ["fdopen", "replace"])
def test_a_full_disk_is_survived(tmp_path, monkeypatch, call):
    def fails(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setenv("ONEFLOW_LITE_CACHE", str(tmp_path))
    x = flow.randn(7, 5).requires_grad_()
    with monkeypatch.context() as full:
        full.setattr(os, call, fails)
        wanted = built(flow.compile(gelu), x)
    assert not list((tmp_path / "fusion").iterdir())
    assert np.array_equal(built(flow.compile(gelu), x), wanted)


SCRIPT = """
import os, sys, time
import numpy as np
import oneflow_lite as flow
from oneflow_lite.ops import eager_loops
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.static.runtime import takeover
takeover._AT_LEAST = takeover._AT_MOST = 4
flow.use_deterministic_algorithms(True)
f = flow.compile(lambda x: (flow.tanh(x * 2) * flow.erf(x)).exp())
x = flow.arange(12).reshape(3, 4) / 7
def go(times):
    for _ in range(times):
        y = f(x)
    return y
def plan():
    return f._recordings[0].core.runner.plan
"""


def process(script, cache="", *options):
    """Start a process with a script."""
    path = cache or tempfile.mkdtemp()
    file = Path(path) / f"script{len(list(Path(path).iterdir()))}.py"
    file.write_text(SCRIPT + script)
    environment = {**os.environ, "ONEFLOW_LITE_CACHE": str(cache)}
    return subprocess.Popen(
        [sys.executable, *options, file], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def ended(started):
    """Wait for a process; return what it printed."""
    out, err = started.communicate(timeout=120)
    assert (started.returncode, err) == (0, "")
    return out


@pytest.mark.slow
def test_two_processes_may_build_at_once(tmp_path):
    script = "y = go(7); assert plan().loops; print(y.numpy().tobytes().hex())"
    first = [process(script, tmp_path) for _ in range(2)]
    outputs = {ended(each) for each in first}
    outputs.add(ended(process(script, tmp_path)))
    assert len(outputs) == 1


@pytest.mark.slow
def test_a_process_may_end_while_it_builds():
    script = "go(4)\nassert f._recordings[0].core.runner._built is not None\nprint('done')"
    assert ended(process(script)) == "done\n"


@pytest.mark.slow
def test_no_warning_ends_the_building():
    script = "x = x - 1; go(7); assert plan().loops, plan().refused; print('done')"
    assert ended(process(script, "", "-W", "error")) == "done\n"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("after", [4, 7])
def test_a_fork_may_come_at_any_time(after):
    """While the parent builds, and after it has: both take over at the same run."""
    script = f"""
go({after})
read, write = os.pipe()
child = os.fork()
y = go(7)
assert plan().loops, plan().refused
bits = y.numpy().tobytes()
if not child:
    os.write(write, bits)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert os.read(read, 1000) == bits
print('done')
"""
    assert ended(process(script)) == "done\n"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no such timer")
@pytest.mark.parametrize("fixed", [True, False])
def test_a_signal_handler_may_run_it_while_it_is_built(fixed):
    """One that comes while a call waits, or while the thread starts, neither waits nor counts."""
    script = f"""
import signal
flow.use_deterministic_algorithms({fixed})
y = go(1).numpy().copy()
depth = deepest = 0
def handler(*_):
    global depth, deepest
    depth += 1
    deepest = max(deepest, depth)
    assert np.allclose(go(1).numpy(), y)
    depth -= 1
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.02)
deadline = time.monotonic() + 60
while not plan().loops and time.monotonic() < deadline:
    assert np.allclose(go(1).numpy(), y)
signal.setitimer(signal.ITIMER_REAL, 0)
assert plan().loops, plan().refused
assert 1 <= deepest < 20, deepest
print('done')
"""
    assert ended(process(script)) == "done\n"


def test_an_interrupt_while_waiting_only_defers(monkeypatch):
    x = flow.randn(7, 5).requires_grad_()
    compiled = flow.compile(gelu)
    for _ in range(RUN):
        compiled(x)
    result, seen = takeover.Future.result, []

    def interrupted(self, timeout=None):
        if not seen:
            seen.append(self)
            raise KeyboardInterrupt
        return result(self, timeout)

    monkeypatch.setattr(takeover.Future, "result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compiled(x)
    compiled(x)
    assert runner(compiled).plan.loops


def test_a_process_without_threads_to_spare_builds_nothing(monkeypatch):
    def start(*given):
        raise RuntimeError("can't start new thread")

    x = flow.randn(7, 5).requires_grad_()
    compiled = flow.compile(gelu)
    with monkeypatch.context() as full:
        full.setattr(takeover, "start_new_thread", start)
        for _ in range(RUN + 2):
            compiled(x)
    assert "can't start new thread" in runner(compiled).plan.refused[0]


def test_threads_may_run_it_while_it_takes_over():
    x = flow.randn(7, 5)
    compiled = flow.compile(lambda x: flow.exp(-x) * x)
    wanted = compiled(x).numpy()
    errors = []

    def run():
        try:
            for _ in range(50):
                np.testing.assert_allclose(compiled(x).numpy(), wanted, 1e-6)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert runner(compiled).plan.loops


def test_who_asks_numpy_for_errors_keeps_numpy():
    compiled = flow.compile(lambda x: flow.log(x) / x)
    with np.errstate(divide="raise"):
        for _ in range(RUN + 3):
            compiled(flow.ones(3))
        assert not runner(compiled).plan.loops
        with pytest.raises(FloatingPointError):
            compiled(flow.zeros(3))
    compiled(flow.ones(3))
    assert runner(compiled).plan.loops
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(flow.zeros(3)).isinf().all()


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
    from oneflow_lite.static.fusion import machine

    def fail(source, signature, **options):
        raise MemoryError("no room")

    monkeypatch.setattr(machine, "_kernel", fail)
    x = flow.randn(7, 5).requires_grad_()
    compiled = flow.compile(gelu)
    for _ in range(RUN + 2):
        found = compiled(x)
    assert np.array_equal(found[0].numpy(), gelu(x)[0].numpy())
    assert "no room" in runner(compiled).plan.refused[0]


@pytest.mark.parametrize("refused", [(), ("joined",), ("joined", "exp")], ids=str)
def test_groups_that_are_joined_get_no_code_of_their_own(refused, monkeypatch):
    asked, make, join = [], machine.compiled, machine.compile_joined

    def compiled_group(group, block):
        asked.append(group.ops[0].type)
        if asked[-1] in refused:
            raise TypeError("no such group")
        return make(group, block)

    def compiled_joined(*given):
        if "joined" in refused:
            raise TypeError("nothing joined")
        join(*given)

    monkeypatch.setattr(machine, "compiled", compiled_group)
    monkeypatch.setattr(machine, "compile_joined", compiled_joined)

    @flow.compile
    def step(x, w):
        return flow.tanh(flow.abs((flow.exp(x) * 2) @ w))

    x, w = flow.rand(6, 5), flow.rand(5, 4)
    with flow.no_grad():
        for _ in range(RUN + 2):
            found = step(x, w)
        wanted = flow.tanh(flow.abs((flow.exp(x) * 2) @ w))
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), 1e-5)
    plan = runner(step).plan
    loops = [list(loop.ops) for loop in plan.loops]
    if not refused:
        assert asked == []
        assert loops == [["exp", "mul", "matmul", "abs", "tanh"]]
        (joined,) = [op.attrs["run"] for op in plan.block.ops if op.type == "joined"]
        group, made = joined.ops[0], np.empty((6, 5), "f")
        group.attrs["run"](x.numpy(), made)  # as where arrays overlap
        np.testing.assert_allclose(made, (flow.exp(x) * 2).numpy(), 1e-5)
        assert asked == ["exp"]
    elif "exp" in refused:  # the plan is made again without it
        assert asked == ["exp", "exp", "abs"]
        assert loops == [["abs", "tanh"]]
        assert "no such group" in plan.refused[0]
    else:
        assert asked == ["exp", "abs"]
        assert loops == [["exp", "mul"], ["abs", "tanh"]]
    assert any("nothing joined" in each for each in plan.refused) == bool(refused)


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
