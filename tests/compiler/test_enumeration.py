"""Every attribute of the library's objects, read in a compiled function, is as eager code has it.

Each is read of objects of all kinds, as an argument and from outside: the call is recorded,
replayed, and made again after changes of the object that eager code notices. Its result
equals that of eager code, or the call is refused.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import oneflow_lite as flow
from oneflow_lite.compiler import recording
from tests.compiler import enumerated
from tests.compiler.enumerated import (
    CAPTURED,
    CHANGES,
    MODULES,
    OF_MODULES,
    OF_OPTIMIZERS,
    OF_SCHEDULERS,
    OPTIMIZERS,
    RELATED,
    SCHEDULES,
    TENSORS,
    Kind,
    Run,
    expressions,
    relations,
    runs,
)

pytestmark = [
    pytest.mark.unjudged("each run has a judge of its own"),
    pytest.mark.filterwarnings("ignore"),
]


def check(found: Iterator[tuple[Run, list[str]]]) -> Counter[str]:
    """See that nothing differs; return how calls went."""
    counts: Counter[str] = Counter()
    verdicts = []
    for run, said in found:
        counts.update(runs=1, hits=run.told.hits)
        verdicts += [f"{run}: {each}" for each in said]
    assert not verdicts, "\n".join(verdicts)
    return counts


@functools.cache
def bodies_of_tensors() -> list[str]:
    return list(expressions("x", TENSORS))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_attributes_of_tensors(part):
    counts = check(runs(bodies_of_tensors()[part::4], TENSORS, CHANGES, CAPTURED))
    assert counts["runs"] > 300 and counts["hits"] > 300


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("path", ["x.memory", "x.autograd_meta", "x.grad_fn", "x.grad_fn_node"])
def test_attributes_of_what_tensors_hold(path):
    check(runs(expressions(path, TENSORS), TENSORS, CHANGES, CAPTURED))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_relations_of_tensors(part):
    kinds = {name: TENSORS[name] for name in RELATED}
    counts = check(runs(list(relations())[part::2], kinds, CHANGES, CAPTURED))
    assert counts["hits"] > 100


@pytest.mark.slow
def test_attributes_of_modules():
    counts = check(runs(expressions("x", MODULES), MODULES, OF_MODULES, tuple(MODULES)))
    assert counts["hits"] > 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "changes", "complete", "base"),
    [
        (OPTIMIZERS, OF_OPTIMIZERS, "SGD", flow.optim.Optimizer),
        (SCHEDULES, OF_SCHEDULERS, "StepLR", flow.optim.lr_scheduler.LRScheduler),
    ],
    ids=["optimizers", "schedulers"],
)
def test_attributes_of_optimizers_and_schedulers(table, changes, complete, base):
    """One of each sort with all attributes, the others with their own."""

    def all_runs() -> Iterator[tuple[Run, list[str]]]:
        for name, kind in table.items():
            bodies = expressions("x", {name: kind}, object if name == complete else base)
            yield from runs(bodies, {name: kind}, changes, (name,))

    counts = check(all_runs())
    assert counts["runs"] > 80


class Odd:
    def asks(self, *, more: Any) -> Any:
        return more

    def __init__(self) -> None:
        self.there = 1


def test_what_nobody_knows_how_to_call_is_told():
    with pytest.raises(LookupError, match="Odd.asks: CALLS does not say"):
        list(expressions("x", {"odd": Kind(object, lambda a: {"x": Odd()})}))


class Remembering:
    """Compile badly: run the first call, and give its result ever after."""

    def __init__(self, function: Any) -> None:
        self.__wrapped__, self.found, self.hits = function, [], 0

    def __call__(self, *args: Any) -> Any:
        if recording.judge.is_free():
            return recording.judge(self, args, {}, (), ())
        self.hits += 1
        if not self.found:
            self.found.append(self.__wrapped__(*args))
        return self.found[0]

    def explain(self) -> Any:
        return SimpleNamespace(hits=self.hits)


@pytest.mark.parametrize("argument", [True, False])
@pytest.mark.parametrize("body", ["return x.requires_grad", "return x._version", "return x * 2"])
def test_a_compiler_that_remembers_is_caught(body, argument, monkeypatch):
    monkeypatch.setattr(enumerated.flow, "compile", Remembering)
    run = Run(body, "plain", TENSORS["plain"], CHANGES, argument)
    assert run.verdicts(run.looks(), 4)
