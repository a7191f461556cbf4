"""The HTML in notebooks of Programs, of `explain()` and of the steps of a trace."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn, static


class Parsed(HTMLParser):
    """The cells of the tables in a page, and all of its text; raises where tags do not fit."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.attributes += attrs
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag == "div" and "tr" in self.open and self.tables[-1][-1][-1]:
            self.tables[-1][-1][-1] += "\n"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            assert "color:" not in data.replace("color:inherit", "")
            return
        self.text += data
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data


def parsed(value: Any) -> Parsed:
    text = value._repr_html_()
    found = Parsed(text)
    assert ("role", "group") in found.attributes and dict(found.attributes)["aria-label"]
    assert "<script" not in text and "on" not in [n[:2] for n, _ in found.attributes if n != "open"]
    return found


def captured() -> tuple[static.Program, Any]:
    main = static.Program()
    with static.program_guard(main, static.Program()):
        x = static.data("<b>x</b>", [2, 3])
        y = nn.functional.leaky_relu(nn.Linear(3, 1)(x), 0.25) * 5.5
    return main, y


def test_a_program_lists_its_variables_and_ops() -> None:
    main, y = captured()
    variables, ops = parsed(main).tables
    block = main.global_block()
    kept = [d for d in block.vars.values() if not d.is_temporary]
    assert [row[0] for row in variables[1:]] == [d.name for d in kept]
    assert variables[1][:4] == ["<b>x</b>", "feed", "(2, 3)", "float32"]
    assert ["parameter" in row for row in variables].count(True) == 2
    assert [row[1] for row in ops[1:]] == [op.type for op in block.ops]
    relu = next(row for row in ops if row[1] == "leaky_relu")
    assert "negative_slope=0.25" in relu[4] and relu[5] == "forward" and __file__ in relu[6]
    assert ops[-1][3] == f"{y.name}: float32[2, 1]"
    assert "<b>" not in main._repr_html_()


def test_constants_and_sub_blocks_are_shown() -> None:
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [2])
        static.nn.cond(x.sum() > 0, lambda: x * 2.5, lambda: -x)
    found = parsed(main)
    assert "block 1 in block 0: " in found.text
    assert "2.5" in found.text and "block 1" in found.text


def test_a_long_program_is_cut() -> None:
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [2])
        for _ in range(500):
            x = flow.tanh(x)
    found = parsed(main)
    assert "500 ops" in found.text and "... 300 more" in found.text
    assert len(found.tables[1]) == 201


def test_an_empty_program_is_shown() -> None:
    assert "block 0: 0 ops, 0 variables" in parsed(static.Program()).text


@pytest.mark.unjudged("calls are counted")
def test_explain_shows_counts_and_reasons() -> None:
    scale = flow.compile(lambda x, n: x * n)
    for n in (2, 2, 3):
        scale(flow.ones(2), n)
    found = parsed(scale.explain())
    assert [row[1] for row in found.tables[0]] == ["count", "2", "1", "0", "2", "0"]
    assert "n was 2, is 3" in found.text and "not replayed" not in found.text

    @flow.compile
    def eager(x: flow.Tensor) -> flow.Tensor:
        return x * x.sum().item()

    with pytest.warns(UserWarning, match="runs eagerly"):
        eager(flow.ones(2))
    assert eager.explain().reasons[0] in parsed(eager.explain()).text


def test_steps_of_a_trace_are_its_table() -> None:
    x = flow.tensor(2.0, requires_grad=True)
    w = flow.tensor(5.0, requires_grad=True)
    with flow.autograd.trace(**{"x": x, "<i>": w}) as t:
        (x * w + x).backward()
    (rows,) = parsed(t).tables
    assert rows[0] == ["step", "node", "ready queue", "dependencies", "current_grad"]
    assert rows[1] == ["1.0", "(start)", "add_backward#2",
        "mul_backward#1: 1\n<i>: 1\nx: 2", "add_backward#2: 1."]  # fmt: skip
    assert len(rows) == 1 + len(t.steps)
    for row, step in zip(rows[1:], t.steps, strict=True):
        ready = [t.name(node) for node in step.ready_queue]
        assert row[2].split("\n") == (ready or [""])
        (facts,) = parsed(step).tables
        assert [cell for _, cell in facts] == row
        assert [name for name, _ in facts] == rows[0]
    assert "<i>" not in t._repr_html_()


def test_a_trace_of_nothing_and_one_of_many_steps() -> None:
    with flow.autograd.trace() as t:
        pass
    assert parsed(t).tables == [[["step", "node", "ready queue", "dependencies", "current_grad"]]]
    x = y = flow.tensor(np.ones(2, "float32"), requires_grad=True)
    for _ in range(300):
        y = y.sin()
    with flow.autograd.trace() as t:
        y.sum().backward()
    found = parsed(t)
    assert len(found.tables[0]) == 201 and f"... {len(t.steps) - 200} more steps" in found.text
    assert x.grad is not None
