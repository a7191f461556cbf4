"""The part "compiled" of the document says what `explain()`, `source()` and the recordings say."""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path
from typing import Any

import attrs
import pytest

import oneflow_lite as flow
from oneflow_lite import nn, static
from oneflow_lite.compiler.function import CompiledFunction, Explanation
from oneflow_lite.explore import programs
from oneflow_lite.explore.compiled import Watch, compiled_part, is_compiled
from tests.conftest import needs_numba

Part = dict[str, Any]
pytestmark = [
    pytest.mark.unjudged("the calls of the judge would be watched as well"),
    pytest.mark.own_loops,
]


def training() -> tuple[Any, nn.Module]:
    flow.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
    optimizer = flow.optim.Adam(net.parameters(), lr=0.05)

    @flow.compile
    def step(x: flow.Tensor, y: flow.Tensor, factor: int = 2) -> flow.Tensor:
        optimizer.zero_grad()
        loss = (net(x) - y).square().mean() * factor
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, net


def batch(rows: int = 16) -> tuple[flow.Tensor, flow.Tensor]:
    x = flow.randn(rows, 2)
    return x, x[:, :1] * x[:, 1:]


def watched(*calls: Any, values: bool = True) -> list[Part]:
    with Watch(values) as watch:
        for call in calls:
            call()
    return watch.parts()


def equals_explanation(part: Part, found: Explanation) -> None:
    for field in attrs.fields(Explanation):
        assert part[field.name] == getattr(found, field.name), field.name


def test_it_is_what_explain_says() -> None:
    step, _ = training()
    calls = [lambda: step(*batch()) for _ in range(5)]
    (part,) = watched(*calls, lambda: step(*batch(8)), lambda: step(*batch(8), factor=3))
    assert json.loads(json.dumps(part)) == part
    equals_explanation(part, step.explain())
    assert (part["captures"], part["hits"]) == (4, 3)
    assert [r["number"] for r in part["recordings"]] == [4, 3, 2, 1]
    assert [r["hits"] for r in part["recordings"]] == [r.hits for r in step._recordings]
    assert part["recordings"][1]["why"] == "x.shape was (16, 2), is (8, 2)"
    assert part["recordings"][0]["why"] == step.explain().why
    path, line = part["source"]
    assert path == __file__ and "def step" in inspect.getsource(step.__wrapped__)
    assert line == step.__wrapped__.__code__.co_firstlineno


def test_what_became_of_each_call() -> None:
    step, _ = training()
    double = flow.compile(lambda x: x * 2)
    parts = watched(
        lambda: step(*batch()), lambda: step(*batch()), lambda: double(flow.ones(2)),
        lambda: step(*batch()), lambda: step(*batch(8)), lambda: double(flow.ones(2)),
    )  # fmt: skip
    told = [[(c["call"], c["outcome"], c["recording"]) for c in part["calls"]] for part in parts]
    assert told == [
        [(1, "recorded", 1), (2, "recorded", 2), (3, "replayed", 2), (4, "recorded", 3)],
        [(1, "recorded", 1), (2, "replayed", 1)],
    ]
    last = parts[0]["calls"][-1]
    assert last["why"] == "x.shape was (16, 2), is (8, 2)"
    assert [(a["recording"], a["why"]) for a in last["asked"]] == [
        (2, last["why"]),
        (1, last["why"]),
    ]
    assert parts[0]["calls"][2]["asked"] == []


def test_a_call_that_stays_eager_says_why() -> None:
    @flow.compile
    def centred(x: flow.Tensor) -> flow.Tensor:
        return x - x.mean().item()

    with pytest.warns(UserWarning, match="runs eagerly"):
        (part,) = watched(*[lambda: centred(flow.ones(2)) for _ in range(4)])
    (reason,) = centred.explain().reasons
    assert part["reasons"] == [reason] and "item() reads a value" in reason
    assert [c["outcome"] for c in part["calls"]] == ["eager"] * 4
    assert {c["why"] for c in part["calls"]} == {reason}
    (refusal,) = part["refusals"]
    assert refusal["reason"] == reason
    assert "x.shape is (2,)" in [guard["words"] for guard in refusal["guards"]]
    equals_explanation(part, centred.explain())


def test_a_call_that_raises_says_so() -> None:
    @flow.compile
    def fails(x: flow.Tensor) -> flow.Tensor:
        raise ZeroDivisionError

    with Watch() as watch, pytest.raises(ZeroDivisionError):
        fails(flow.ones(2))
    (call,) = watch.parts()[0]["calls"]
    assert (call["outcome"], call["why"]) == ("raised", "ZeroDivisionError")


def test_calls_that_others_look_at_are_not_told() -> None:
    double = flow.compile(lambda x: x * 2)
    with Watch() as watch, flow.push_interpreter(flow.Interpreter()):
        double(flow.ones(2))
    assert watch.parts() == [] and double.explain().captures == 0


def test_what_the_explorer_pushes_does_not_keep_calls_from_being_replayed() -> None:
    seen = []

    class Looks(flow.Interpreter):
        def apply(self, op_expr: Any, inputs: Any, attrs: Any) -> Any:
            seen.append(op_expr.op_type_name)
            return super().apply(op_expr, inputs, attrs)

    Looks.__module__ = "oneflow_lite.explore.forward"
    double = flow.compile(lambda x: x * 2)
    x = flow.ones(2)
    with Watch() as watch, flow.push_interpreter(Looks()):
        for _ in range(3):
            y = double(x)
        y.exp()
    assert seen == ["exp"]
    assert [c["outcome"] for c in watch.parts()[0]["calls"]] == ["recorded", "replayed", "replayed"]


def test_nothing_stays_behind() -> None:
    before = CompiledFunction.__call__
    with Watch():
        assert CompiledFunction.__call__ is not before
    assert CompiledFunction.__call__ is before


def test_guards_are_all_there_and_hold() -> None:
    step, _ = training()
    x, y = batch()
    for _ in range(3):
        step(x, y)
    part = compiled_part(step)
    for entry, recording in zip(part["recordings"], step._recordings, strict=True):
        labels = [guard.label for guard in recording.arguments.guards]
        assert len(entry["guards"]) == len(labels) > 50
        for guard, label in zip(entry["guards"], labels, strict=True):
            assert guard["words"].startswith(label.rpartition(" ")[0][:8])
            ast.parse(guard["code"], mode="eval")
        asked = "\n".join(recording.arguments._writer.lines)
        assert all(guard["code"] in asked for guard in entry["guards"])
    words = [guard["words"] for guard in part["recordings"][0]["guards"]]
    for expected in (
        "x.shape is (16, 2)", "factor is 2", "net is the same Sequential",
        "how many arguments, by name, is (2, ())", "whether net has hooks is False",
        "net[2].p is 0.5", "whether x requires a gradient is False",
    ):  # fmt: skip
        assert expected in words or expected == "factor is 2"


def test_values_of_guards_are_those_of_why() -> None:
    table = {"scale": 2.5}
    scaled = flow.compile(lambda x: x * table["scale"])
    scaled(flow.ones(2))
    words = {guard["words"] for guard in compiled_part(scaled)["recordings"][0]["guards"]}
    assert "table['scale'] is 2.5" in words
    table["scale"] = 3.5
    (recording,) = scaled._recordings
    assert recording.why((flow.ones(2),), {}).startswith("table['scale'] was 2.5, is 3.5, at ")


def test_programs_and_code_are_those_of_the_recordings() -> None:
    step, net = training()
    predict = flow.compile(net)
    parts = watched(
        *[lambda: step(*batch()) for _ in range(3)], *[lambda: predict(flow.ones(4, 2))] * 2
    )
    for part, function in zip(parts, (step, programs_of(predict)), strict=True):
        for entry, recording in zip(part["recordings"], function._recordings, strict=True):
            core = recording.core
            names = [i["name"] for i in entry["program"]["instructions"]]
            assert names == [i.name for i in core.instructions]
            assert entry["program"]["code"] == core.runner.source
            assert len(entry["outside"]) == len(recording.outside.tensors)
        written = [r["program"]["code"] for r in part["recordings"] if r["program"]["code"]]
        assert "\n".join(written).strip() == function.source()
    (recording,) = parts[1]["recordings"]
    (backward,) = recording["backward"]
    assert any(i["op"] == "matmul" for i in backward["instructions"])
    assert parts[0]["recordings"][0]["backward"] == []


def programs_of(compiled: Any) -> CompiledFunction:
    from oneflow_lite.compiler.face import function_of

    found = function_of(compiled)
    assert found is not None
    return found


def test_a_replay_is_measured() -> None:
    step, _ = training()
    (part,) = watched(*[lambda: step(*batch()) for _ in range(4)])
    second, first = part["recordings"]
    line = second["program"]["time_line"]
    call, replay, *ops = line["events"]
    assert call["name"] == "call of step" and (call["kind"], replay["kind"]) == ("range", "replay")
    assert line["total"] == call["duration"] > replay["duration"] > sum(o["duration"] for o in ops)
    assert [op["depth"] for op in ops] == [2] * len(ops)
    instructions = second["program"]["instructions"]
    assert all(instructions[op["instructions"][0]]["op"] == op["name"] for op in ops)
    assert first["program"]["time_line"] is None
    assert "was not replayed" in first["program"]["unmeasured"]


@needs_numba
def test_loops_that_took_over_are_those_of_explain() -> None:
    with flow.use_jit(True):
        smooth = flow.compile(lambda x: (x * x + 1).sqrt().sum())
        x = flow.rand(100, 10)
        smooth(x)
        (runner,) = [recording.core.runner for recording in smooth._recordings]
        runner._left = runner._builds_at = 1
        (part,) = watched(lambda: smooth(x), lambda: smooth(x))
    assert part["loops"] == smooth.explain().loops and len(part["loops"]) == 1
    program = part["recordings"][0]["program"]
    (group,) = program["machine_code"]["groups"]
    assert group["text"] == part["loops"][0] and program["machine_code"]["runs_left"] == 0
    assert smooth.source() == f"{program['code']}\n{group['source']}".strip()
    fused = [e for e in program["time_line"]["events"] if e["parts"]]
    assert fused and fused[0]["instructions"] == group["instructions"]


def test_a_recording_is_rehearsed_until_it_is_replayed() -> None:
    w = flow.tensor([1.0, 2.0])

    @flow.compile
    def write(x: flow.Tensor) -> flow.Tensor:
        w.mul_(2)
        return x * w

    (part,) = watched(lambda: write(flow.ones(2)))
    assert part["recordings"][0]["program"]["time_line"]["events"]
    assert w.tolist() == [2.0, 4.0]
    assert write(flow.ones(2)).tolist() == [4.0, 8.0]


def test_without_values_neither_numbers_nor_code_are_told() -> None:
    table = {"scale": 40961.5}
    scaled = flow.compile(lambda x: x * table["scale"])

    def change() -> None:
        table["scale"] = 81923.25
        scaled(flow.ones(2))

    def texts(values: bool) -> str:
        table["scale"] = 40961.5
        return json.dumps(watched(lambda: scaled(flow.ones(2)), change, values=values))

    with_values = texts(True)
    scaled = flow.compile(lambda x: x * table["scale"])
    without = texts(False)
    for number in ("40961.5", "81923.25"):
        assert number in with_values
        assert number not in without
    assert "table['scale']" in without and "def run" not in without and " is g" not in without


def test_it_knows_what_is_compiled() -> None:
    class Doubles(nn.Graph):
        def build(self, x: flow.Tensor) -> flow.Tensor:
            return x * 2

    layer = nn.Linear(2, 2)
    assert not is_compiled(layer) and not is_compiled(len) and not is_compiled(None)
    with pytest.raises(flow.errors.ArgumentTypeError, match="what flow.compile returned"):
        compiled_part(layer)
    assert is_compiled(flow.compile(layer)) and is_compiled(flow.compile(len))
    assert flow.explain(flow.compile(layer.forward)) == Explanation()  # of a method
    layer.compile()
    layer(flow.ones(2))
    graph = Doubles()
    graph(flow.ones(2))
    for compiled in (layer, graph):
        assert is_compiled(compiled) and compiled_part(compiled)["captures"] == 1
    linear = inspect.unwrap(nn.Linear.forward).__code__
    assert compiled_part(layer)["source"] == [linear.co_filename, linear.co_firstlineno]
    assert compiled_part(flow.compile(layer))["source"] == [
        linear.co_filename,
        linear.co_firstlineno,
    ]


def test_programs_that_run_in_a_block_are_found() -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [2, 3])
        y = nn.Linear(3, 1)(x)
    executor, scope = static.Executor(), static.Scope()
    run = static.Executor.run
    with programs.Watch() as watch:
        executor.run(startup, scope=scope)
        for _ in range(3):
            found = executor.run(main, {"x": flow.ones(2, 3).numpy()}, [y], scope)
    assert static.Executor.run is run and found[0].shape == (2, 1)
    first, second = watch.parts()
    assert (first["id"], second["id"]) == (0, 1)
    core = executor.analyse(main, ["x"], [y])
    assert [i["name"] for i in second["instructions"]] == [i.name for i in core.instructions]
    assert second["time_line"]["total"] >= second["time_line"]["events"][0]["duration"] > 0
    assert second["unmeasured"] == ""


def test_explore_takes_a_compiled_function_and_calls_it_once(tmp_path: Path) -> None:
    w = flow.ones(2)

    @flow.compile
    def write(x: flow.Tensor) -> flow.Tensor:
        w.add_(1)
        return x * w

    page = tmp_path / "page.html"
    (part,) = flow.explore(write, path=page).document["compiled"]
    assert part["captures"] == 0 and part["calls"] == [] and w.tolist() == [1.0, 1.0]
    found = flow.explore(write, flow.ones(2), path=page).document
    (part,) = found["compiled"]
    assert w.tolist() == [2.0, 2.0] and [c["outcome"] for c in part["calls"]] == ["recorded"]
    assert part["recordings"][0]["program"]["time_line"] is not None
    (part,) = flow.explore(write, flow.ones(2), path=page).document["compiled"]
    assert w.tolist() == [3.0, 3.0] and [c["outcome"] for c in part["calls"]] == ["replayed"]
    assert part["source"][0] in {source["name"] for source in found["sources"]}
    (part,) = flow.explore(write, flow.ones(2), path=page, values=False).document["compiled"]
    assert part["recordings"][0]["program"]["code"] == ""
    with pytest.raises(flow.errors.ArgumentError, match="feed"):
        flow.explore(write, flow.ones(2), feed={"x": 1})
    with pytest.raises(TypeError):
        flow.explore(write, 1, 2, 3, path=page)
    assert "TypeError" in page.read_text()


def test_explore_takes_a_program(tmp_path: Path) -> None:
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [2, 3])
        y = x.exp() * 2
    executor, page = static.Executor(), tmp_path / "page.html"
    feed = {"x": flow.ones(2, 3).numpy()}
    found = flow.explore(
        main, feed=feed, fetch_list=[y], executor=executor, path=page, cuda=True
    ).document
    (part,) = found["programs"]
    core = executor.analyse(main, feed, [y])
    assert [i["name"] for i in part["instructions"]] == [i.name for i in core.instructions]
    assert part["time_line"] is not None and found["ops"] == []
    assert part["instructions"][1]["source"][0] == Path(__file__).name
    (part,) = flow.explore(main, feed=["x"], fetch_list=[y], path=page).document["programs"]
    assert part["time_line"] is None
    page.unlink()
    for wrong in ((), (flow.ones(2, requires_grad=True),)):
        with pytest.raises(flow.errors.ArgumentError, match="feed"):
            flow.explore(*wrong, feed=feed)
    with pytest.raises(flow.errors.ArgumentError, match="args"):
        flow.explore(flow.ones(2, requires_grad=True), 1)
    with pytest.raises(flow.errors.ArgumentError, match="'z'"):
        flow.explore(main, feed={"z": 1}, fetch_list=[y], path=page)
    with pytest.raises(flow.errors.ArgumentError, match="args"):
        flow.explore(main, feed, path=page)
    assert not page.exists()


def test_a_block_shows_both(tmp_path: Path) -> None:
    main = static.Program()
    with static.program_guard(main):
        y = static.data("x", [2]).exp()
    double = flow.compile(lambda x: x * 2)
    executor = static.Executor()
    with flow.explore(path=tmp_path / "page.html") as e:
        for _ in range(3):
            x = flow.ones(2, requires_grad=True)
            z = double(x) + 1
            z.sum().backward()
            executor.run(main, {"x": flow.ones(2).numpy()}, [y])
    (compiled,), (program,) = e.document["compiled"], e.document["programs"]
    assert [call["outcome"] for call in compiled["calls"]] == ["recorded", "replayed", "replayed"]
    assert program["time_line"]["events"]
    assert [op["op"] for op in e.document["ops"]].count("add") == 3
    assert {node["name"] for node in e.document["nodes"]} > {"<lambda>_backward", "add_backward"}
