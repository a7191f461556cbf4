"""Recordings cost little: they share parts with others, and leave work for later."""

from __future__ import annotations

import threading

import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.compiler.outside import MemoryClasses, NotReplayable


def test_other_shapes_share_their_code() -> None:
    weight = flow.ones(1, requires_grad=True)
    compiled = flow.compile(lambda x: (x * weight).sum())
    for size in (2, 3, 2, 3):
        compiled(flow.ones(size)).backward()
    assert compiled.explain().captures == compiled.explain().hits == 2
    one, other = compiled._recordings
    assert one.arguments.check.__code__ is other.arguments.check.__code__
    assert one.ending.run.__code__ is other.ending.run.__code__


def test_the_run_is_planned_and_generated_by_the_first_replay() -> None:
    compiled = flow.compile(lambda x: x * 2 + 1)
    compiled(flow.ones(2))
    (recording,) = compiled._recordings
    assert not vars(recording.core).keys() & {"plan", "runner", "slots"}
    assert compiled(flow.ones(2)).tolist() == [3.0, 3.0]
    assert "found +=" in recording.core.runner.source and "slots" not in vars(recording.core)
    assert len(recording.core.instructions) == 4  # two ops, a feed and a fetch


def test_what_is_read_of_an_object_is_read_once() -> None:
    layer = nn.Linear(1, 1)
    compiled = flow.compile(lambda x: layer(x))
    compiled(flow.ones(1))
    (recording,) = compiled._recordings
    match = recording.arguments
    match.check((flow.ones(1),), {})
    lines = "\n".join(match._writer.lines)
    assert lines.count("._parameters") == lines.count(".__dict__") == lines.count("._data\n") == 1
    layer.bias = None
    assert match.check((flow.ones(1),), {}) is False
    assert match.why((flow.ones(1),), {}).startswith("layer.bias was a Parameter, is None")


@pytest.mark.parametrize("count", [2, 6])
def test_written_arrays_that_overlap_are_found_by_their_owner(count: int) -> None:
    whole = flow.zeros(2 * count)._data
    apart = [whole[2 * i : 2 * i + 2] for i in range(count)]
    MemoryClasses([], [], apart, [], range(count))
    names = [f"t{i}" for i in range(count + 1)]
    with pytest.raises(NotReplayable, match=rf"memory that is shared: t0; t1; t{count}$"):
        MemoryClasses([], [], [*apart, whole[1:3]], [], range(count), names)
    MemoryClasses([], [], [flow.ones(2)._data, whole, whole[1:3]], [], [0])


def test_threads_that_replay_first_at_once_see_what_each_has_set() -> None:
    weight = flow.ones(2)
    compiled = flow.compile(lambda x: (x * weight).sum())
    barrier = threading.Barrier(2)

    def work() -> None:
        barrier.wait()
        found.append(compiled(flow.ones(2)).item())

    for k in range(20):
        weight.data = flow.ones(2)
        compiled._recordings.clear()
        compiled(flow.ones(2))
        weight.data = flow.full((2,), float(k))
        found: list[float] = []
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [2.0 * k] * 2
    assert compiled.explain().hits == 40


@pytest.mark.parametrize("count", [2, 12, 13, 20])
def test_which_of_many_arguments_are_one_tensor_is_noticed(count: int) -> None:
    compiled = flow.compile(lambda *xs: sum(x.clone().add_(xs[-1]) for x in xs))
    tensors = [flow.full((2,), float(i)) for i in range(count)]
    assert compiled(*tensors).tolist() == compiled(*tensors).tolist()
    assert compiled.explain().hits == 1
    tensors[-1] = tensors[0]
    compiled(*tensors)
    assert compiled.explain().captures == 2 and compiled.explain().hits == 1
