"""The part "programs" of the document says what the analysis and the profiler say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn, static
from oneflow_lite.explore.programs import core_part, program_part, rehearsed, time_line
from oneflow_lite.static.ir.program import Program
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from oneflow_lite.static.runtime.passes.buffer_planning import aligned
from tests import strict_cupy
from tests.conftest import needs_numba
from tests.static.runtime.passes.named_programs import NAMED, capture

Part = dict[str, Any]
pytestmark = pytest.mark.own_loops


@pytest.fixture(autouse=True)
def loops() -> Iterator[None]:
    with flow.use_jit(True):
        yield


@attrs.define
class Prepared:
    """A named Program that can be run."""

    program: Program
    feed: dict[str, Any]
    fetches: tuple[str, ...]
    scope: static.Scope
    executor: static.Executor

    def core(self) -> InterpreterCore:
        return self.executor.analyse(self.program, self.feed, self.fetches)

    def part(self, **options: Any) -> Part:
        return program_part(
            self.program, self.feed, self.fetches, self.scope, executor=self.executor, **options
        )


def prepared(name: str, **options: Any) -> Prepared:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        fetches = tuple([tensor.name for tensor in NAMED[name]()])
    scope, executor = static.Scope(), static.Executor(**options)
    executor.run(startup, scope=scope)
    rng, feed = np.random.default_rng(0), {}
    for desc in main.global_block().vars.values():
        if desc.need_check_feed:
            feed[desc.name] = (3 * rng.random(desc.shape)).astype(desc.dtype)
    return Prepared(main, feed, fetches, scope, executor)


@pytest.fixture(params=NAMED)
def given(request: pytest.FixtureRequest) -> Prepared:
    return prepared(request.param)


def named(part: Part, indices: list[int]) -> list[str]:
    return [part["instructions"][i]["name"] for i in indices]


def test_it_is_the_analysis_of_the_executor(given: Prepared) -> None:
    core, part = given.core(), given.part()
    assert json.loads(json.dumps(part)) == part
    assert [i["name"] for i in part["instructions"]] == [i.name for i in core.instructions]
    assert [i["waits_for"] for i in part["instructions"]] == core.dependency_count
    before: list[list[int]] = [[] for _ in core.instructions]
    after: list[list[int]] = [[] for _ in core.instructions]
    for i, j, kind in part["edges"]:
        before[i].append(j)
        if kind:
            after[i].append(j)
            assert core.edge_kinds[i, j] == kind
    assert before == core.downstream_before_shrink
    assert after == core.downstream
    names = [variable["name"] for variable in part["variables"]]
    assert dict(zip(names, range(len(names)), strict=True)) == core.slots
    for name, uses in zip(names, part["last_live"], strict=True):
        assert named(part, uses["before"]) == core.last_live_ops_before_shrink[name]
        assert named(part, uses["after"]) == core.last_live_ops[name]
    for instruction, entry in zip(core.instructions, part["instructions"], strict=True):
        assert entry["inputs"] == [*instruction.inputs]
        assert entry["outputs"] == [*instruction.outputs]
        if instruction.op is not None and instruction.op.location is not None:
            at = instruction.op.location
            assert entry["source"] == [at.filename, at.line]
    assert part["passes"] == [attrs.asdict(report) for report in core.reports]
    assert part["fetches"] == [*given.fetches]
    for variable in part["variables"]:
        desc = core.plan.block.var(variable["name"])
        assert (tuple(variable["shape"]), variable["dtype"]) == (desc.shape, str(desc.dtype))
        assert variable["bytes"] == desc.nbytes


def test_buffers_are_those_of_the_memory_plan(given: Prepared) -> None:
    core, memory = given.core(), given.part()["memory"]
    plan, names = core.memory_plan, list(core.slots)
    assert (memory["arena"], memory["unshared"]) == (plan.arena_bytes, plan.unshared_bytes)
    places = {
        names[variable["variable"]]: (buffer["offset"], variable["bytes"])
        for buffer in memory["buffers"]
        for variable in buffer["variables"]
        if names[variable["variable"]] in plan.places
    }
    assert places == plan.places
    planned = [buffer for buffer in memory["buffers"] if buffer["offset"] is not None]
    ends = [buffer["offset"] + aligned(buffer["bytes"]) for buffer in planned]
    assert max(ends, default=0) == plan.arena_bytes
    for i, one in enumerate(planned):  # two that share bytes are never in use at one time
        for k, other in enumerate(planned[:i]):
            apart = ends[k] <= one["offset"] or ends[i] <= other["offset"]
            assert apart or one["from"] > other["until"] or other["from"] > one["until"]
    for buffer in memory["buffers"]:  # they take turns
        for one, then in zip(buffer["variables"], buffer["variables"][1:], strict=False):
            assert one["from"] < then["from"]
        assert buffer["from"] == buffer["variables"][0]["from"]
        assert buffer["until"] == max(v["until"] for v in buffer["variables"])


def test_every_temporary_that_is_made_lies_in_one_buffer(given: Prepared) -> None:
    core, part = given.core(), given.part()
    inside = [v["variable"] for b in part["memory"]["buffers"] for v in b["variables"]]
    inside += [i for b in part["memory"]["buffers"] for v in b["variables"] for i in v["views"]]
    assert len(inside) == len(set(inside))
    made = {core.slots[name] for op in core.plan.block.ops for name in op.new_outputs}
    from_outside = {
        i for i, v in enumerate(part["variables"])
        if v["view_of"] is not None and part["variables"][v["view_of"]]["kind"] != "temporary"
    }  # fmt: skip
    assert made - from_outside == set(inside)


def test_the_queue_goes_through_all_as_dependencies_allow(given: Prepared) -> None:
    core, part = given.core(), given.part()
    queue = part["queue"]
    waits = list(core.dependency_count)
    ready = [i for i, count in enumerate(waits) if not count]
    assert queue["start"] == ready
    done: set[int] = set()
    dropped: set[int] = set()
    following = None
    for step in queue["steps"]:
        i = step["instruction"]
        assert step["direct"] == (following is not None)
        if following is None:
            assert i == ready.pop(0)
        else:
            assert i == following
        done.add(i)
        freed = []
        for j in core.downstream[i]:
            waits[j] -= 1
            if not waits[j]:
                freed.append(j)
        assert step["waits"] == [[j, waits[j]] for j in core.downstream[i]]
        following = step["next"]
        assert sorted([*step["ready"], *([] if following is None else [following])]) == freed
        ready += step["ready"]
        for slot in step["dropped"]:
            users = part["last_live"][slot]["after"]
            assert done.issuperset(users)
            dropped.add(slot)
    assert done == set(range(len(core.instructions)))
    assert dropped == set(range(len(core.slots)))


def test_the_queue_is_that_of_a_run() -> None:
    given = prepared("prediction alone", mode="work_queue")
    core, ran = given.core(), []
    core.runner.threads = 1
    core.runner.order = None
    for instruction in core.instructions:
        if instruction.kernel is not None:
            kernel, i = instruction.kernel, instruction.index
            instruction.kernel = lambda *a, kernel=kernel, i=i, **k: (
                ran.append(i),
                kernel(*a, **k),
            )[1]
    given.executor.run(given.program, given.feed, given.fetches, given.scope)
    steps = given.part()["queue"]["steps"]
    ops = [
        s["instruction"] for s in steps if core.instructions[s["instruction"]].kernel is not None
    ]
    assert ran[: len(ops)] == ops and len(ops) > 2


def test_times_are_those_of_the_profiler(given: Prepared) -> None:
    core = given.core()
    arrays = given.executor._prepare(given.program, given.feed, given.fetches).given(
        given.feed, given.scope
    )
    events, why_not = rehearsed(core, *arrays)
    assert not why_not
    line = time_line(core, events)
    begin = min(event.time_range.start for event in events)
    assert len(line["events"]) == len(events)
    for entry, event in zip(line["events"], events, strict=True):
        assert entry["name"] == event.name
        assert entry["start"] == event.time_range.start - begin
        assert entry["duration"] == event.cpu_time_total
        assert entry["bytes_read"] == event.bytes_read
        if event.kind == "op":
            (i,) = entry["instructions"]
            instruction = core.instructions[i]
            assert instruction.op is event.op and instruction.op.type == event.name
    seen = [i for e in line["events"] for i in e["instructions"]]
    assert len(seen) == len(set(seen))
    assert line["total"] == next(e["duration"] for e in line["events"] if e["kind"] == "replay")
    assert line["events"][0]["depth"] == 0 and line["events"][1]["depth"] == 1


@pytest.mark.parametrize("mode", ["straight_line", "work_queue", "numpy"])
def test_a_rehearsal_leaves_all_as_it_was(mode: str) -> None:
    given = prepared("transformer block step", mode=mode)
    other = prepared("transformer block step", mode=mode)
    names = given.scope.local_var_names()
    before = {name: given.scope.find_var(name).copy() for name in names}
    feeds = {name: array.copy() for name, array in given.feed.items()}
    _ = flow.manual_seed(3)
    part = given.part()
    assert len(part["time_line"]["events"]) > 60
    ran = {i for e in part["time_line"]["events"] for i in e["instructions"]}
    assert {part["instructions"][i]["role"] for i in ran} == {"forward", "backward", "optimize"}
    assert given.scope.local_var_names() == names
    for name in names:
        np.testing.assert_array_equal(given.scope.find_var(name), before[name])
    for name, array in feeds.items():
        np.testing.assert_array_equal(given.feed[name], array)
    for name in names:
        other.scope.set(name, before[name])
    found = [r.executor.run(r.program, r.feed, r.fetches, r.scope) for r in (given,)]
    _ = flow.manual_seed(3)
    found += [r.executor.run(r.program, r.feed, r.fetches, r.scope) for r in (other,)]
    np.testing.assert_array_equal(found[0][0], found[1][0])


def test_a_generator_of_ones_own_draws_on_as_if_nothing_was_run() -> None:
    generator = flow.Generator().manual_seed(1)
    main = static.Program()
    with static.program_guard(main):
        y = static.data("x", [3]) + flow.rand(3, generator=generator)
    state = generator.get_state()
    assert program_part(main, {"x": [0.0, 0.0, 0.0]}, [y])["time_line"] is not None
    assert generator.get_state() == state


def test_with_names_alone_nothing_is_run() -> None:
    main, feeds, fetches = capture("prediction alone")
    part = program_part(main, feeds, fetches)
    assert part["time_line"] is None and part["unmeasured"] == "no arrays were fed"
    assert part["code"] == ""


def test_bad_feeds_are_refused_as_by_a_run() -> None:
    main = static.Program()
    with static.program_guard(main):
        y = static.data("x", [3]).exp()
    with pytest.raises(flow.errors.ShapeError, match=r"shape \(3,\) for 'x'"):
        program_part(main, {"x": np.zeros(2, "float32")}, [y])
    with pytest.raises(flow.errors.ArgumentError, match="'z'"):
        program_part(main, {"z": np.zeros(2, "float32")}, [y])
    with pytest.raises(flow.errors.ArgumentTypeError, match="a Program"):
        program_part("main", {}, [y])  # type: ignore[arg-type]


@needs_numba
def test_groups_are_those_that_take_over() -> None:
    given = prepared("MLP step")
    core = given.core()
    core.runner._left = core.runner._builds_at = 1  # type: ignore[attr-defined]
    given.executor.run(given.program, given.feed, given.fetches, given.scope)
    code = given.part()["machine_code"]
    assert code["runs_left"] == 0
    loops = core.runner.plan.loops  # type: ignore[attr-defined]
    assert loops and [g["text"] for g in code["groups"]] == [str(loop) for loop in loops]
    for group, loop in zip(code["groups"], loops, strict=True):
        assert (group["ops"], group["source"]) == ([*loop.ops], loop.source)
        assert (group["bytes_saved"], group["kind"]) == (loop.bytes_saved, loop.kind)
    assert [op["op"] for op in code["ops"]] == [op.type for op in core.runner.plan.block.ops]  # type: ignore[attr-defined]
    line = given.part()["time_line"]
    in_order = [code["groups"][op["group"]] for op in code["ops"] if op["group"] is not None]
    groups = [e for e in line["events"] if e["name"].startswith(("fused", "joined"))]
    assert [e["instructions"] for e in groups if len(e["instructions"]) > 1]
    found = [(event["parts"], sorted(event["instructions"])) for event in groups]
    assert found == [(group["ops"], group["instructions"]) for group in in_order]
    # what was only written before is what was made then
    assert prepared("MLP step").part()["machine_code"]["groups"] == code["groups"]


@needs_numba
def test_each_op_is_in_one_place_of_the_plan_with_groups(given: Prepared) -> None:
    part = given.part()
    code = part["machine_code"]
    if code["why_not"]:
        assert not code["groups"]
        return
    assert 0 < code["runs_left"] <= 20_000
    placed = [i for op in code["ops"] for i in op["instructions"]]
    assert len(placed) == len(set(placed))
    for group in code["groups"]:
        types = [part["instructions"][i]["op"] for i in group["instructions"]]
        assert set(types) <= {*group["ops"], *_VIEWS} and group["instructions"]
        assert group["source"].startswith("def group(") or "def " in group["source"]
    # what is in no place was known beforehand, or is not needed by the loops
    left = {i["op"] for k, i in enumerate(part["instructions"]) if k not in placed} - {None}
    assert left <= {"ones_like", "zeros_like", "full", "mul", "expand", "reshape", *_VIEWS}


_VIEWS = {"reshape", "transpose", "permute", "squeeze", "unsqueeze", "expand", "clone", "copy_"}
_VIEWS |= {"narrow", "select", "getitem"}


@needs_numba
def test_what_was_divided_and_moved_is_said() -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [4, 3, 8, 8])
        net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3))
        flow.optim.SGD(net.parameters(), lr=0.1).minimize(nn.functional.relu(net(x)).sum())
    part = program_part(main, ["x"], [])
    instructions, ops = part["instructions"], part["machine_code"]["ops"]
    convs = [i for i, each in enumerate(instructions) if each["op"] == "conv"]
    divided = [op for op in ops if op["note"] == "divided"]
    assert [op["op"] for op in divided] == ["conv", "fused"] * 2
    assert [op["instructions"][:1] for op in divided[::2]] == [[i] for i in convs]
    assert all(set(op["instructions"]) & set(convs) for op in divided)
    order = [i for op in ops for i in op["instructions"]]
    moved = [op for op in ops if op["note"] == "moved"]
    assert moved
    for op in moved:
        after = order[order.index(op["instructions"][-1]) + 1 :]
        assert max(op["instructions"]) > min(after)


@needs_numba
def test_cuda_kernels_are_written_on_request() -> None:
    given = prepared("transformer block step")
    assert all(g["cuda"] is None for g in given.part()["machine_code"]["groups"])
    texts = [g["cuda"] or "" for g in given.part(cuda=True)["machine_code"]["groups"]]
    assert sum("__global__" in text for text in texts) > 3


def test_without_machine_code_it_says_why() -> None:
    with flow.use_jit(False):
        code = prepared("MLP step").part()["machine_code"]
    assert "flow.use_jit(False)" in code["why_not"] and code["groups"] == []
    assert "mode" in prepared("MLP step", mode="numpy").part()["machine_code"]["why_not"]


def test_without_values_nothing_of_the_code_or_the_numbers_is_told() -> None:
    main = static.Program()
    with static.program_guard(main):
        y = nn.functional.leaky_relu(static.data("x", [3]), 0.1234) * 40961.5 + 81923.25
    feed = {"x": np.array([1.25, 2.5, 3.75], "float32")}
    with_values = json.dumps(program_part(main, feed, [y]))
    without = program_part(main, feed, [y], values=False)
    for text in ("0.1234", "40961.5", "81923.25"):
        assert text in with_values
        assert text not in json.dumps(without)
    assert without["code"] == "" and all(not g["source"] for g in without["machine_code"]["groups"])
    assert [i["source"][1] for i in without["instructions"] if i["op"]]


def test_a_run_on_threads_names_them() -> None:
    given = prepared("transformer block step", mode="work_queue")
    line = given.part()["time_line"]
    assert line["threads"] and len({e["thread"] for e in line["events"]}) == len(line["threads"])
    assert all(len(e["instructions"]) == 1 for e in line["events"] if e["kind"] == "op")
    assert line["total"] >= max(e["start"] + e["duration"] for e in line["events"]) - 1e-6


def test_control_flow_lists_its_blocks() -> None:
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [2])
        y = static.nn.cond(x.sum() > 0, lambda: x * 40961.5, lambda: -x)
        z = static.nn.while_loop(lambda v: v.sum() < 9, lambda v: [v + 1], [y])
    feed = {"x": np.ones(2, "float32")}
    part = program_part(main, feed, z)
    inner = {i["op"]: i["blocks"] for i in part["instructions"] if i["blocks"]}
    assert [len(blocks) for blocks in inner.values()] == [2, 2]
    (then, other), (_, body) = inner.values()
    assert "= mul(x_in" in then[0] and "= neg(x_in" in other[0] and "= add(" in body[0]
    names = [event["name"] for event in part["time_line"]["events"]]
    assert set(inner) <= set(names) and {"neg", "mul"} & set(names)
    without = program_part(main, feed, z, values=False)
    assert "40961.5" not in json.dumps(without) and "= mul(" in json.dumps(without)


@pytest.mark.parametrize("mode", ["straight_line", "work_queue", "cuda_graph"])
def test_a_program_on_a_device_shows_its_streams_and_transfers(mode: str) -> None:
    with strict_cupy.installed():
        main = static.Program()
        with static.program_guard(main):
            y = nn.functional.softmax(static.data("x", [4, 8]).exp() * 2, dim=1)
        executor = static.Executor("cuda", mode=mode)
        part = program_part(main, {"x": np.ones((4, 8), "float32")}, [y], executor=executor)
        core = executor.analyse(main, ["x"], [y])
        assert {i["queue"] for i in part["instructions"]} == {"host", "device"}
        assert [i["stream"] for i in part["instructions"]] == [i.stream for i in core.instructions]
        kinds = [i["kind"] for i in part["instructions"]]
        assert kinds.count("transfer") == 2 and part["place"] == "cuda:0"
        assert {kind for _, _, kind in part["edges"]} >= {"event", "direct"}
        queued = [step["instruction"] for step in part["queue"]["steps"]]
        assert sorted(queued) == list(range(len(kinds)))
        if mode == "cuda_graph":
            assert part["time_line"] is None and "as a whole" in part["unmeasured"]
        else:
            assert len([e for e in part["time_line"]["events"] if e["instructions"]]) > 3
        if mode == "straight_line":
            sources = [group["source"] for group in part["machine_code"]["groups"]]
            assert sources and all("__global__" in source for source in sources)


def test_a_title_and_a_number_are_taken_over() -> None:
    main, feeds, fetches = capture("prediction alone")
    part = core_part(InterpreterCore(main, feeds, fetches), number=7, title="a title")
    assert (part["id"], part["title"]) == (7, "a title")
    assert {i["queue"] for i in part["instructions"]} == {"host"}
