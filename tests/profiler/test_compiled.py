"""Profiles of compiled functions and Programs."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.profiler import profile, record_function
from oneflow_lite.profiler.eager import _original
from oneflow_lite.static.runtime.profiled import bytes_of
from tests.profiler.test_profile import counts, one, state, unchanged

pytestmark = pytest.mark.unjudged("the judge runs ops beside those of the replay")


def training() -> tuple[Any, Any]:
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    x = flow.ones(16, 4)

    @flow.compile
    def step() -> flow.Tensor:
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, net


def test_a_replay_shows_its_ops() -> None:
    step, _ = training()
    for _ in range(4):
        step()
    hits = step.explain().hits
    (recording, *_) = step._recordings
    desks = recording.core.runner._bound[1]
    functions, before = [desk.function for desk in desks], state()
    with profile() as p:
        for _ in range(3):
            step()
    assert step.explain().hits == hits + 3
    found = counts(p)
    assert found["compiled step"] == 3 and found["sgd_update"] == 12 and found["tanh"] == 3
    assert found["matmul_nt"] == 6
    events = p.events()
    tanh = next(event for event in events if event.name == "tanh")
    assert tanh.cpu_parent.kind == "replay" and tanh.cpu_parent.cpu_parent.kind == "compiled"
    assert "test_compiled.py" in tanh.location
    assert (tanh.bytes_read, tanh.bytes_written) == (16 * 8 * 4, 16 * 8 * 4)
    assert one(p, "tanh").source == tanh.location
    ops = sum(event.kind == "op" for event in events)
    assert ops == 3 * len(desks[0].lines)
    assert [desk.function for desk in desks] == functions
    assert unchanged(before)


def test_a_replay_gives_the_same_bits() -> None:
    flow.manual_seed(3)
    step, net = training()
    start = {name: value.clone() for name, value in net.state_dict().items()}
    plain = [step().item() for _ in range(6)]
    net.load_state_dict(start)
    step, net = training()
    net.load_state_dict(start)
    found = [step().item() for _ in range(3)]
    with profile(profile_memory=True, with_stack=True) as p:
        found += [step().item() for _ in range(3)]
    assert found == plain
    assert p.peak_memory > 0


def test_the_backward_pass_of_a_compiled_forward() -> None:
    f = flow.compile(lambda x: flow.tanh(x * 2.0).sum())
    x = flow.ones(5, requires_grad=True)
    for _ in range(3):
        f(x).backward()
    with profile() as p:
        f(x).backward()
    found = counts(p)
    assert found["<lambda>_backward"] == 1
    assert sum(event.kind == "replay" for event in p.events()) == 2
    replays = [event for event in p.events() if event.kind == "replay"]
    assert [event.cpu_parent.kind for event in replays] == ["compiled", "node"]


def test_a_call_that_is_recorded() -> None:
    step, _ = training()
    before = state()
    with profile() as p:
        for _ in range(4):
            step()
    assert counts(p)["tanh"] == 4
    assert step.explain().captures + step.explain().hits == 4
    assert unchanged(before)
    (recording, *_) = step._recordings
    names = recording.core.runner._bound[1][0].function.__globals__
    assert not [value for value in names.values() if _original(value) is not value]
    assert "clock_" not in names
    with profile() as p:
        step()
    assert counts(p)["tanh"] == 1


def test_an_error_in_a_replay_keeps_its_note() -> None:
    inverse = flow.compile(lambda a: flow.linalg.inv(a) * 2.0)
    for _ in range(2):
        inverse(flow.eye(3))
    with profile() as p, pytest.raises(Exception) as caught:
        inverse(flow.zeros(3, 3))
    assert any("in op 'inv'" in note or "inv" in note for note in caught.value.__notes__)
    assert counts(p)["compiled <lambda>"] == 1
    assert np.allclose(inverse(flow.eye(3)).numpy(), 2 * np.eye(3))


@pytest.mark.parametrize("mode", ["straight_line", "work_queue"])
def test_programs(mode: str) -> None:
    main = flow.static.Program()
    with flow.static.program_guard(main):
        x = flow.static.data("x", [100])
        y = flow.exp(x) + flow.relu(x).reshape(100)
    executor = flow.static.Executor(mode=mode)
    feed = {"x": np.ones(100, np.float32)}
    expected = executor.run(main, feed=feed, fetch_list=[y])
    before = state()
    with profile(profile_memory=True) as p:
        (found,) = executor.run(main, feed=feed, fetch_list=[y])
    assert np.array_equal(found, expected[0])
    by_name = {each.key: each for each in p.key_averages()}
    assert {"exp", "relu", "add"} <= set(by_name)
    assert (by_name["exp"].bytes_read, by_name["add"].bytes_read) == (400, 800)
    assert unchanged(before)


def test_threads_replay_at_once() -> None:
    f = flow.compile(lambda x: flow.tanh(x) * 2.0)
    x = flow.ones(50)
    f(x), f(x)
    with profile() as p:
        threads = [threading.Thread(target=lambda: [f(x) for _ in range(20)]) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert counts(p)["tanh"] == 60
    runner = f._recordings[0].core.runner
    assert all("clock_" not in desk.function.__globals__ for desk in runner._bound[1])


def test_ranges_and_modules_do_not_hinder_recording() -> None:
    net = nn.Linear(2, 2)

    @flow.compile
    def f(x: flow.Tensor) -> flow.Tensor:
        with record_function("inside"):
            return net(x)

    for _ in range(3):
        f(flow.ones(1, 2))
    assert f.explain().hits == 2, f.explain().reasons
    with profile(with_modules=True) as p:
        f(flow.ones(1, 2))
    assert f.explain().hits == 3 and counts(p)["compiled f"] == 1


def test_groups_run_as_one(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.setenv("ONEFLOW_LITE_CACHE", str(tmp_path))
    with flow.use_jit(True):
        f = flow.compile(lambda x: flow.tanh(x * 2.0 + 1.0).exp())
        x = flow.ones(1000, 1000)
        with profile() as p:
            for _ in range(80):
                f(x)
        assert counts(p)["tanh"] > 2  # before the takeover
        with profile() as p:
            f(x)
    fused = next(event for event in p.events() if event.name.startswith("fused("))
    assert fused.parts == ("mul", "add", "tanh", "exp")
    assert fused.bytes_read == fused.bytes_written == 4_000_000
    assert "tanh" not in counts(p)


def test_bytes_of_ops_in_a_block() -> None:
    main = flow.static.Program()
    with flow.static.program_guard(main):
        x = flow.static.data("x", [10])
        (x * x).reshape(2, 5).sum()
    block = main.global_block()
    found = {op.type: bytes_of(op, block) for op in block.ops}
    assert found == {"mul": (40, 40), "reshape": (0, 0), "sum": (40, 4)}
