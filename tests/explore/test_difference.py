"""The first op at which two explorations part: seeds, options, eager and compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.explore.exploration import Exploration
from oneflow_lite.static.runtime import takeover
from tests.conftest import needs_numba

pytestmark = [
    pytest.mark.unjudged("the calls of the judge would be watched as well"),
    pytest.mark.own_loops,
]
HERE = Path(__file__).name


def explored(
    path: Path, compiled: bool, seed: int = 0, lr: float = 0.1, pushed: int | None = None
) -> Exploration:
    """Explore six steps of training, in one of which a bias is pushed by hand."""
    flow.manual_seed(seed)
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    optimizer = flow.optim.SGD(net.parameters(), lr=lr)

    def step(x: flow.Tensor) -> flow.Tensor:
        optimizer.zero_grad()
        loss = net(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    run: Any = flow.compile(step) if compiled else step
    x, bias = flow.ones(3, 2), net[2].bias.detach().numpy()
    with flow.explore(
        path=path / f"{compiled} {seed} {lr} {pushed}.html", open=False
    ) as exploration:
        for i in range(1, 7):
            if i == pushed:
                bias += 0.5
            run(x) * 2
    return exploration


def line_of(text: str) -> str:
    lines = Path(__file__).read_text().splitlines()
    return f"{HERE}:{1 + next(i for i, line in enumerate(lines) if line.strip() == text)}"


LOSS, AFTER = line_of("loss = net(x).square().sum()"), line_of("run(x) * 2")


@pytest.mark.parametrize("how", ["straight line", pytest.param("loops", marks=needs_numba)])
def test_a_compiled_run_is_compared_with_the_eager_run(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "loops":
        monkeypatch.setattr(takeover, "_AT_LEAST", 2)
        monkeypatch.setattr(takeover, "_AT_MOST", 2)
        monkeypatch.setattr(flow.ops.eager_loops, "deterministic", True)
    with flow.use_jit(how == "loops"):
        eager, compiled = explored(tmp_path, False), explored(tmp_path, True)
        pushed = explored(tmp_path, True, pushed=5)
    (part,) = compiled.document["compiled"]
    assert [call["outcome"] for call in part["calls"]] == ["recorded"] * 2 + ["replayed"] * 4
    assert bool(part["loops"]) == (how == "loops")
    assert eager.difference(compiled) == compiled.difference(eager) == ""
    told = eager.difference(pushed)
    assert told.startswith("op ") and " of call 5 of step, " in told and f" at {LOSS}: " in told
    assert compiled.difference(pushed) == told
    was, _, now = told.partition(": result 0 was ")[2].partition(", is ")
    assert pushed.difference(eager).endswith(f"was {now}, is {was}")


def test_the_ops_beside_compiled_calls_are_compared(tmp_path: Path) -> None:
    eager, other = explored(tmp_path, False), explored(tmp_path, True, lr=0.2)
    assert eager.difference(other).startswith(f"op 1, mul at {AFTER}: result 0 was ")


def test_two_seeds_part_at_the_first_op(tmp_path: Path) -> None:
    one, two = explored(tmp_path, False), explored(tmp_path, False, seed=1)
    assert one.difference(two).startswith(f"op 0, matmul_nt at {LOSS}: result 0 was [[")
    assert one.difference(one) == ""


def test_a_call_that_stays_eager_is_not_passed_over(tmp_path: Path) -> None:
    def f(x: flow.Tensor) -> flow.Tensor:
        print(end="")
        return x * 2

    def explored_call(run: Any) -> Exploration:
        with flow.explore(path=tmp_path / "page.html", open=False) as exploration:
            run(flow.ones(2))
        return exploration

    eager = explored_call(f)
    with pytest.warns(UserWarning, match="runs eagerly"):
        compiled = explored_call(flow.compile(f))
    assert eager.difference(compiled) == (
        "alike up to call 1 of f, whose ops were not written down"
    )
