"""Counts of operations, next to PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import oneflow_lite as flow
from oneflow_lite.errors import UnsupportedError

CALLS: dict[str, Callable[[Any], Any]] = {
    "linear": lambda t: t.nn.Linear(4, 3)(t.ones(2, 5, 4)),
    "convolution": lambda t: t.nn.Conv2d(3, 8, 3, stride=2, padding=1)(t.ones(2, 3, 8, 8)),
    "groups": lambda t: t.nn.Conv1d(6, 6, 3, groups=3)(t.ones(2, 6, 8)),
    "transposed": lambda t: t.nn.ConvTranspose2d(8, 6, 2, stride=2)(t.ones(2, 8, 4, 4)),
    "attention": lambda t: t.nn.MultiheadAttention(8, 2)(*[t.ones(5, 2, 8)] * 3)[0],
    "batches": lambda t: t.ones(5, 1, 2, 3) @ t.nn.Parameter(t.ones(4, 3, 2)),
    "einsum": lambda t: t.einsum("bij,bjk->bik", t.nn.Parameter(t.ones(2, 3, 4)), t.ones(2, 4, 5)),
    "gru": lambda t: t.nn.GRU(5, 3)(t.ones(4, 2, 5))[0],
    "rnn": lambda t: t.nn.RNN(5, 3, bidirectional=True)(t.ones(4, 2, 5))[0],
}


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_totals_are_pytorchs(name: str, backward: bool) -> None:
    torch = pytest.importorskip("torch")
    module = pytest.importorskip("torch.utils.flop_counter")
    if backward and name in ("groups", "gru", "rnn"):
        pytest.skip("PyTorch counts zeros between groups, and no gradient of a first state")
    totals = []
    for library, kind in (
        (flow, flow.profiler.FlopCounterMode),
        (torch, module.FlopCounterMode),
    ):
        with kind(display=False) as counter:
            y = CALLS[name](library)
            if backward:
                y.sum().backward()
        totals.append(counter.get_total_flops())
    assert totals[0] == totals[1] > 0


def test_modules_have_the_operations_of_their_forward(capsys: pytest.CaptureFixture[str]) -> None:
    nn = flow.nn
    model = nn.Sequential(nn.Linear(4, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 2)))
    counter = flow.profiler.FlopCounterMode(depth=2)
    for _ in range(2):  # a block counts anew
        with counter:
            model(flow.ones(5, 4)).sum().backward()
    totals = {name: sum(counts.values()) for name, counts in counter.get_flop_counts().items()}
    own = {"Sequential": 180, "Sequential.0": 120, "Sequential.1": 60, "Sequential.1.1": 60}
    assert totals == {"Global": 120 * 2 + 60 * 3, **own}
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:5]] == ["Module", *list(totals)[:4]]
    assert "Sequential.1.1" not in counter.get_table() and "Sequential.1.1" in counter.get_table(3)


def test_what_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="custom_mapping"):
        flow.profiler.FlopCounterMode(custom_mapping={1: 2})
