"""Programs for tests of the Executor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite.static.ir.program import Program

F32 = np.dtype("float32")
X = np.arange(6, dtype=F32).reshape(2, 3) - 2


def captured(build: Callable[..., Any], **feeds: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """Return main and startup programs of a function of `static.data`, and its result."""
    main, startup = flow.static.Program(), flow.static.Program()
    with flow.static.program_guard(main, startup):
        given = [flow.static.data(name, *description) for name, description in feeds.items()]
        result = build(*given)
    return main, startup, result


def doubled() -> tuple[Program, Any]:
    """A program with one feed, and its result: 2x + 1."""
    main, _, y = captured(lambda x: x * 2 + 1, x=([2, 3],))
    return main, y


class Counter(flow.nn.Module):
    """y = x * weight; total += x."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = flow.nn.Parameter(flow.tensor([1.0, 2.0, 3.0]))
        self.register_buffer("total", flow.zeros(3))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return the product, and count."""
        self.total.add_(x)
        return x * self.weight


def counting() -> tuple[Program, Program, Any, list[str]]:
    """Return the programs of a Counter, its output, and the names of weight and total."""
    counter = Counter()
    main, startup, y = captured(counter, x=([3],))
    return main, startup, y, [counter.weight.name, counter.total.name]
