"""Profiles of eager code: names, counts, bytes, memory, nesting; and that it goes."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.autograd.engine.graph_task import GraphTask
from oneflow_lite.autograd.engine.queued_run import QueuedRun
from oneflow_lite.autograd.engine.rule_namespace import NUMPY_F, KernelNamespace
from oneflow_lite.compiler.function import CompiledFunction
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, ShapeError
from oneflow_lite.interpreter.stack import EagerInterpreter
from oneflow_lite.nn.module import Module
from oneflow_lite.ops import eager_loops, op_expr
from oneflow_lite.profiler import EventList, profile, record_function
from oneflow_lite.profiler.eager import _original
from oneflow_lite.static.runtime.instruction import Instruction
from oneflow_lite.static.runtime.straight_line import StraightLine


def counts(p: profile) -> dict[str, int]:
    return {each.key: each.count for each in p.key_averages()}


def one(p: profile, name: str) -> Any:
    (found,) = [each for each in p.key_averages() if each.key == name]
    return found


def state() -> dict[Any, Any]:
    """Return all callables that a profile replaces."""
    found: dict[Any, Any] = {
        (op.op_type_name, "run"): op.run_on_cpu for op in op_expr._OP_EXPRS.values()
    }
    found.update({("F", name): value for name, value in vars(NUMPY_F).items()})
    for owner in (
        CompiledFunction, EagerInterpreter, GraphTask, Instruction, KernelNamespace, Module,
        QueuedRun, StraightLine,
    ):  # fmt: skip
        found.update({(owner, name): value for name, value in vars(owner).items()})
    found["code"] = Module.__call__.__code__
    return found


def unchanged(before: dict[Any, Any]) -> bool:
    """Return whether all stands where it stood; an op may have been met for the first time."""
    after = state()
    old = {key: value for key, value in before.items() if value is not None}
    return {key: after[key] for key in old} == old and not any(
        _original(value) is not value for value in after.values()
    )


def test_ops_and_nodes_are_counted_by_name() -> None:
    x = flow.ones(3, requires_grad=True)
    y = flow.ones(3)
    with profile() as p:
        for _ in range(2):
            (flow.relu(x * y) + 1.0).sum().backward()
    assert counts(p) == {
        "mul": 2, "relu": 2, "add": 2, "sum": 2, "backward": 2, "sum_backward": 2,
        "add_backward": 2, "relu_backward": 2, "mul_backward": 2, "accumulate_grad": 2,
        "relu_grad": 2, "expand": 2,
    }  # fmt: skip


def test_times_hold_what_runs_inside() -> None:
    x = flow.ones(200, 200, requires_grad=True)
    with profile() as p:
        flow.relu(x).sum().backward()
    events = {event.name: event for event in p.events()}
    inner, node, call = (events[n] for n in ("relu_grad", "relu_backward", "backward"))
    assert inner.cpu_parent is node and node.cpu_parent is call and call.cpu_parent is None
    assert inner in node.cpu_children
    assert node.self_cpu_time_total == pytest.approx(node.cpu_time_total - inner.cpu_time_total)
    assert 0 < inner.self_cpu_time_total == inner.cpu_time_total < call.cpu_time_total
    averages = p.key_averages()
    whole = sum(e.cpu_time_total for e in p.events() if e.cpu_parent is None)
    assert averages.self_cpu_time_total == pytest.approx(whole)
    assert averages.total_average().count == len(p.events())


@pytest.mark.parametrize(
    ("name", "run", "read", "written"),
    [
        ("relu", lambda a, b: flow.relu(a), 4000, 4000),
        ("add", lambda a, b: a + b[0], 4400, 4000),
        ("mul", lambda a, b: a * a, 4000, 4000),
        ("matmul", lambda a, b: a @ b.reshape(100, 10), 8000, 400),
        ("reshape", lambda a, b: a.reshape(100, 10), 0, 0),
        ("ones_like", lambda a, b: flow.ones_like(a), 0, 4000),
        ("sum", lambda a, b: a.sum(0), 4000, 400),
        ("cat", lambda a, b: flow.cat([a, b, a]), 8000, 12000),
        ("full", lambda a, b: flow.ones(5), 0, 20),
        ("where", lambda a, b: flow.where(a > 0, a, a), 5000, 4000),
        ("copy_", lambda a, b: a.copy_(b), 4000, 4000),
        ("max", lambda a, b: a.max(0), 4000, 400 + 800),
    ],
)
def test_bytes_are_exact(
    name: str, run: Callable[[Any, Any], Any], read: int, written: int
) -> None:
    a, b = flow.ones(10, 100), flow.ones(10, 100)
    run(flow.ones(10, 100), b)  # another way through dispatch than the first call
    for memory in (False, True):
        with profile(profile_memory=memory) as p:
            run(a, b)
        found = one(p, name)
        assert (found.bytes_read, found.bytes_written) == (read, written)
        assert found.count == 1 and found.bytes_moved == read + written


def test_the_first_call_of_an_op_is_counted_like_others() -> None:
    op_expr.op_expr("cosh").forget()
    x = flow.ones(100)
    with profile() as p:
        flow.cosh(x), flow.cosh(x)
    assert (one(p, "cosh").count, one(p, "cosh").bytes_moved) == (2, 1600)


def test_optimizers_write_what_they_update() -> None:
    w = nn.Parameter(flow.ones(1000))
    w.grad = flow.ones(1000)
    optimizer = flow.optim.SGD([w], lr=0.1, momentum=0.9)
    optimizer.step()
    with profile() as p:
        optimizer.step()
    found = one(p, "sgd_update")
    assert found.bytes_written == 8000  # weight and momentum
    assert 12000 <= found.bytes_read < 12100  # and the gradient, and numbers


def test_joined_updates_are_one_event(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr(eager_loops, "PAYS", 1)
    parameters = [nn.Parameter(flow.ones(1000)) for _ in range(2)]
    optimizer = flow.optim.SGD(parameters, lr=0.1, momentum=0.9)
    for w in parameters:
        w.grad = flow.ones(1000)
    with flow.use_jit(True):
        for _ in range(3):
            optimizer.step()
        with profile() as p:
            optimizer.step()
    found = one(p, "joined(sgd_update, sgd_update)")
    assert (found.count, found.bytes_read, found.bytes_written) == (1, 24000, 16000)
    assert "sgd_update" not in counts(p)


def test_an_input_that_is_left_out_has_no_bytes() -> None:
    x, target = flow.ones(10, 4), flow.zeros(10, dtype=flow.int64)
    flow.nn.functional.nll_loss(x, target)
    with profile() as p:
        flow.nn.functional.nll_loss(x, target)
    assert one(p, "nll_loss").bytes_read == 160 + 80


def test_memory_is_counted_while_it_is_alive() -> None:
    x = flow.ones(1000)
    with profile(profile_memory=True) as p:
        a = x + 1.0
        b = a * 2.0
        del a
        c = b.reshape(10, 100)
        del b
        d = flow.exp(c)
        del c, d
        e = flow.exp(x)
    assert p.peak_memory == 8000
    levels = [level for _, level in p._recorded().levels]
    assert levels == [4000, 8000, 4000, 8000, 4000, 0, 4000]
    assert one(p, "exp").cpu_memory_usage == 8000
    assert one(p, "exp").peak_memory == 8000
    assert one(p, "reshape").cpu_memory_usage == 0
    assert e.shape == (1000,)


def test_gradients_are_memory() -> None:
    x = flow.ones(1000, requires_grad=True)
    with profile(profile_memory=True) as p:
        (x * 3.0).backward(flow.ones(1000))
    # 3.0 * dy is what the rule does without an op: it is the node's, and becomes x.grad.
    assert one(p, "mul_backward").cpu_memory_usage == 4000
    assert 8000 <= p.peak_memory <= 12000


def test_without_it_no_memory_is_counted() -> None:
    with profile() as p:
        flow.ones(10) * 2
    assert p.peak_memory == 0
    assert "emory" not in str(p)


def test_nothing_is_left_and_nothing_differs() -> None:
    x = flow.randn(8, 8, requires_grad=True)
    net = nn.Sequential(nn.Linear(8, 8), nn.Tanh())

    def run() -> list[np.ndarray]:
        x.grad = None
        net(x).sum().backward()
        return [x.grad.numpy().copy(), *[p.grad.numpy().copy() for p in net.parameters()]]

    net.zero_grad()
    expected = run()
    before = state()
    for options in ({}, {"profile_memory": True, "record_shapes": True, "with_stack": True}):
        net.zero_grad()
        with profile(with_modules=bool(options), **options):
            assert state() != before
            found = run()
        for a, b in zip(found, expected, strict=True):
            assert np.array_equal(a, b)
        assert unchanged(before)


def test_an_exception_ends_it() -> None:
    before = state()
    with pytest.raises(ShapeError, match="broadcast"), profile() as p:
        flow.ones(2) * 2
        flow.ones(2) + flow.ones(3)
    assert unchanged(before)
    assert counts(p) == {"full": 3, "mul": 1}

    def hook(grad: Any) -> None:
        raise KeyError("hook")

    x = flow.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(hook)
    with pytest.raises(KeyError), profile() as p:
        with record_function("it fails"):
            y.sum().backward()
    assert {"sum", "backward", "sum_backward", "it fails"} <= set(counts(p))
    assert "mul_backward" not in counts(p)
    assert unchanged(before)


def test_profiles_may_be_nested() -> None:
    x = flow.ones(3)
    before = state()
    with profile() as outer:
        flow.exp(x)
        with profile(profile_memory=True, record_shapes=True) as inner:
            flow.sin(x)
        flow.tanh(x)
        assert counts(inner) == {"sin": 1}
    assert counts(outer) == {"exp": 1, "sin": 1, "tanh": 1}
    assert inner.peak_memory == 12
    assert inner.events()[0].input_shapes == ((3,),)
    assert unchanged(before)


def test_profiles_may_overlap() -> None:
    first, second = profile(), profile(with_stack=True)
    first.start()
    flow.ones(1)
    second.start()
    flow.ones(2).exp()
    first.stop()
    flow.ones(2).sin()
    second.stop()
    assert counts(first) == {"full": 2, "exp": 1}
    assert counts(second) == {"full": 2, "exp": 1, "sin": 1}


def test_threads_are_told_apart() -> None:
    def work() -> None:
        for _ in range(5):
            flow.ones(100).exp()

    threads = [threading.Thread(target=work, name=f"worker {i}") for i in range(3)]
    with profile() as p:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        flow.ones(2)
    assert counts(p) == {"full": 16, "exp": 15}
    by_thread = Counter(event.thread for event in p.events())
    assert sum(by_thread.values()) == 31
    assert all(event.cpu_parent is None for event in p.events())


def test_ranges() -> None:
    @record_function("decorated")
    def f(x: flow.Tensor) -> flow.Tensor:
        return x.exp()

    with record_function("nobody looks"):
        pass
    with profile() as p:
        with record_function("outer", "with a note"):
            f(flow.ones(2))
    events = {event.name: event for event in p.events()}
    assert list(events) == ["outer", "full", "decorated", "exp"]
    assert events["exp"].cpu_parent is events["decorated"]
    assert events["decorated"].cpu_parent is events["outer"]
    assert events["outer"].note == "with a note"
    with pytest.raises(ArgumentTypeError, match="record_function.*'name'"):
        record_function(3)  # type: ignore[arg-type]


def test_shapes_and_lines() -> None:
    x, w = flow.ones(2, 3), flow.ones(3, 4)
    with profile(record_shapes=True, with_stack=True) as p:
        x @ w
        w.t()
        x @ w[:, :1]
    found = p.key_averages(group_by_input_shape=True)
    shapes = [each.input_shapes for each in found if each.key == "matmul"]
    assert shapes == [((2, 3), (3, 4)), ((2, 3), (3, 1))]
    lines = [each.source for each in p.key_averages(group_by_stack_n=1) if each.key == "matmul"]
    assert len(lines) == 2 and all("test_profile.py:" in line for line in lines)
    assert "[[2, 3], [3, 4]]" in found.table() and "and 1 more" in str(p)


def test_modules_are_events() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    with profile(with_modules=True) as p:
        net(flow.ones(1, 2))
    events = {event.name: event for event in p.events()}
    assert events["relu"].cpu_parent is events["nn.Module: ReLU"]
    assert events["nn.Module: ReLU"].cpu_parent is events["nn.Module: Sequential"]


def test_other_ways_through_a_backward_call() -> None:
    x = flow.ones(3, requires_grad=True)

    def names(**modes: Any) -> set[str]:
        with profile() as p:
            (x * 2.0).sum().backward()
        return {event.name for event in p.events() if event.kind == "node"}

    plain = names()
    assert plain == {"sum_backward", "mul_backward", "accumulate_grad"}
    with flow.autograd.detect_anomaly():
        assert names() == plain
    with flow.autograd.trace():
        assert names() == plain
    with profile() as p:
        (dx,) = flow.autograd.grad((x**3).sum(), x, create_graph=True)
        dx.sum().backward()
    assert counts(p)["backward"] == 2 and counts(p)["pow"] >= 1

    class Own(flow.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return dy * 2

    with profile(profile_memory=True) as p:
        Own.apply(x).sum().backward()
    assert one(p, "Own_backward" if "Own_backward" in counts(p) else "OwnBackward").count == 1


def test_the_table() -> None:
    x = flow.ones(500, 500)
    with profile() as p:
        with record_function("a name that is much longer than the column for names can be, really"):
            for _ in range(3):
                x.exp()
            x.sum()
    text = p.key_averages().table(sort_by="count", row_limit=1, header="Title")
    lines = text.splitlines()
    assert lines[0] == "Title" and "# of Calls" in lines[2]
    assert lines[4].startswith("exp ") and "2.86 MB" in lines[4]
    assert "Bytes moved by ops: " in text and "copy bandwidth" in text
    assert "sum " not in text
    assert "a name that is much longer than the column for names..." in str(p)
    assert str(p).splitlines()[3].startswith(("exp", "a name", "sum"))
    assert p.key_averages().table(row_limit=-1, time_unit="ms").count("ms") > 6
    assert "exp" in p.events().table(sort_by="cpu_time_total", top_level_events_only=False)
    assert "exp" not in p.events().table(top_level_events_only=True)
    with pytest.raises(ArgumentError, match=r"table\(\).*'sort_by'.*'cpu_time_total'"):
        p.key_averages().table(sort_by="size")
    with profile() as p:
        pass
    assert "none were counted" in str(p) and p.events() == EventList()


def test_a_profile_that_goes_on_can_be_read() -> None:
    p = profile()
    p.start()
    flow.ones(2)
    assert counts(p) == {"full": 1}
    flow.ones(2)
    with pytest.raises(ArgumentError, match="on already"):
        p.start()
    p.stop()
    p.stop()
    assert counts(p) == {"full": 2}
    with p:  # again
        flow.ones(2).exp()
    assert counts(p) == {"full": 1, "exp": 1}


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentTypeError, match=r"profile\(\).*'schedule'"):
        profile(schedule=3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match=r"profile\(\).*'on_trace_ready'"):
        profile(on_trace_ready="file")  # type: ignore[arg-type]


def test_copy_bandwidth_is_measured_once() -> None:
    first = flow.profiler.copy_bandwidth()
    start = time.perf_counter()
    assert flow.profiler.copy_bandwidth() == first > 1e8
    assert time.perf_counter() - start < 0.01


def test_ops_on_cuda_have_times_of_the_device(device: str) -> None:
    x = flow.ones(100, device=device, requires_grad=True)
    flow.relu(x).sum().backward()
    with profile() as p:
        flow.relu(x).sum().backward()
    relu = one(p, "relu")
    assert (relu.count, relu.bytes_read, relu.bytes_written) == (1, 400, 400)
    assert one(p, "relu_grad").bytes_read == 800
    assert (relu.cuda_time_total > 0) is (device == "cuda")
    assert ("Self CUDA" in str(p)) is (device == "cuda")


def test_an_op_says_which_way_its_kernel_went():
    with flow.use_jit(False), flow.profiler.profile() as p:
        for channels, groups, size in ((64, 1, 64), (3, 1, 4), (64, 64, 64)):
            x = flow.ones(2, channels, size, size, requires_grad=True)
            weight = flow.ones(channels, channels // groups, 3, 3, requires_grad=True)
            flow.nn.functional.conv2d(x, weight, padding=1, groups=groups).sum().backward()
    for name in ("conv", "conv_weight_grad", "conv_input_grad"):
        notes = [e.note for e in p.events() if e.name == name]
        assert notes == ["blocks of some rows of the output", "", "runs of each channel"]
    assert not any(e.kind == "way" for e in p.events())
