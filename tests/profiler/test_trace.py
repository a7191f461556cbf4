"""Traces, schedules, and what scripts for PyTorch's profiler ask for."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError
from oneflow_lite.profiler import (
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
)
from tests.profiler.test_profile import counts


def traced(path: Path) -> tuple[profile, dict[str, Any]]:
    x = flow.ones(3, requires_grad=True)
    with profile(profile_memory=True, record_shapes=True) as p:
        with record_function("forward"):
            y = flow.relu(x).sum()
        y.backward()
    p.add_metadata("who", "a test")
    p.add_metadata_json("numbers", "[1, 2]")
    p.trace(path)
    raw = path.read_bytes()
    return p, json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_trace_is_in_the_format_of_events(tmp_path: Path, name: str) -> None:
    p, trace = traced(tmp_path / name)
    assert trace["otherData"] == {"producer": "oneflow_lite", "who": "a test", "numbers": [1, 2]}
    events = trace["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "C"}
    spans = [event for event in events if event["ph"] == "X"]
    assert len(spans) == len(p.events())
    for event in spans:
        assert {"ph", "name", "cat", "pid", "tid", "ts", "dur", "args"} == set(event)
        assert event["dur"] >= 0 and event["ts"] >= 0
    named = {event["name"]: event for event in spans}
    outer, inner = named["forward"], named["relu"]
    assert outer["ts"] <= inner["ts"]
    assert inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 0.002  # rounded
    assert (outer["cat"], inner["cat"]) == ("user_annotation", "cpu_op")
    assert named["relu_backward"]["cat"] == "autograd_node"
    assert inner["args"]["Input Dims"] == [[3]] and inner["args"]["bytes read"] == 12
    names = {event["name"] for event in events if event["ph"] == "M"}
    assert names == {"process_name", "thread_name"}
    levels = [event["args"]["bytes alive"] for event in events if event["ph"] == "C"]
    assert max(levels) == p.peak_memory > 0


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with profile() as p:
        flow.ones(2)
    with pytest.raises(OSError):
        p.export_chrome_trace(tmp_path / "nowhere" / "trace.json")


def test_stacks(tmp_path: Path) -> None:
    with profile() as p:
        with record_function("outer"):
            for _ in range(20):
                flow.ones(1000, 100).exp()
    p.export_stacks(tmp_path / "stacks")
    lines = (tmp_path / "stacks").read_text().splitlines()
    assert {line.rpartition(" ")[0] for line in lines} >= {"outer;full", "outer;exp"}
    assert all(int(line.rpartition(" ")[2]) > 0 for line in lines)
    with pytest.raises(ArgumentError, match="metric"):
        p.export_stacks(tmp_path / "stacks", "calls")


@pytest.mark.parametrize(
    "options",
    [
        {"wait": 1, "warmup": 1, "active": 3, "repeat": 2},
        {"wait": 0, "warmup": 0, "active": 1},
        {"wait": 2, "warmup": 0, "active": 2, "skip_first": 3, "repeat": 1},
        {"wait": 2, "warmup": 1, "active": 1, "skip_first": 2, "skip_first_wait": 1},
    ],
)
@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
def test_a_schedule_is_that_of_pytorch(options: dict[str, int]) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = schedule(**options), torch.profiler.schedule(**options)
    assert [ours(i).name for i in range(20)] == [theirs(i).name for i in range(20)]


def test_a_schedule_is_checked() -> None:
    with pytest.raises(ArgumentError, match=r"schedule\(\).*'active'"):
        schedule(wait=1, warmup=1, active=0)


def test_steps_are_recorded_by_schedule(tmp_path: Path) -> None:
    found: list[dict[str, int]] = []
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(schedule=plan, on_trace_ready=lambda p: found.append(counts(p))) as p:
        for k in range(9):
            flow.ones(k + 1).exp()
            p.step()
    assert p.step_num == 9
    assert found == [
        {"ProfilerStep#2": 1, "full": 2, "exp": 2, "ProfilerStep#3": 1},
        {"ProfilerStep#6": 1, "full": 2, "exp": 2, "ProfilerStep#7": 1},
    ]


def test_every_active_step_may_be_a_cycle(tmp_path: Path) -> None:
    handler = tensorboard_trace_handler(str(tmp_path / "log"), "me", use_gzip=True)
    with profile(schedule=schedule(wait=0, warmup=0, active=1), on_trace_ready=handler) as p:
        for _ in range(3):
            flow.ones(2)
            p.step()
    files = sorted((tmp_path / "log").glob("me.*.pt.trace.json.gz"))
    assert len(files) == 4  # the last is that of the step which the block ends


def test_the_end_of_the_block_hands_out_what_there_is() -> None:
    found = []
    with profile(on_trace_ready=lambda p: found.append(counts(p))):
        flow.ones(2)
    assert found == [{"full": 1}]


SCRIPT = """
import torch
import torch.profiler
from torch.profiler import profile, record_function, ProfilerActivity
from torch.autograd import profiler as old

model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
inputs = torch.randn(4, 8)
activities = [ProfilerActivity.CPU]
if torch.cuda.is_available():
    activities.append(ProfilerActivity.CUDA)
with profile(activities=activities, record_shapes=True, profile_memory=True, with_stack=True,
             with_flops=True, with_modules=True) as prof:
    with record_function("model_inference"):
        model(inputs).sum().backward()
print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=10))
print(prof.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total", row_limit=10))
print(prof.key_averages(group_by_stack_n=5).table(sort_by="self_cuda_time_total", row_limit=2))
prof.export_chrome_trace(path)
with torch.profiler.profile(
    schedule=torch.profiler.schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=1),
    on_trace_ready=torch.profiler.tensorboard_trace_handler(folder),
) as p:
    for _ in range(6):
        model(inputs)
        p.step()
with old.profile(use_cuda=False, record_shapes=True) as prof:
    with old.record_function("label"):
        model(inputs)
print(prof.total_average().count, prof.table())
with old.profile(enabled=False) as prof:
    model(inputs)
assert len(prof.function_events) == 0
"""


def test_a_script_for_pytorch_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"path": str(tmp_path / "trace.json"), "folder": str(tmp_path / "log")}
    with flow.mock_torch():
        exec(compile(SCRIPT, "script.py", "exec"), names)
    assert "model_inference" in capsys.readouterr().out
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert len(list((tmp_path / "log").iterdir())) == 1


def test_what_is_supported() -> None:
    assert ProfilerActivity.CPU in flow.profiler.supported_activities()
    with profile(activities=[ProfilerActivity.CPU]) as p:
        flow.ones(2)
    assert p.activities == {ProfilerActivity.CPU} and counts(p) == {"full": 1}
