"""Writes the lines of a random program for `flow.compile`, trying each on live tensors."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Iterator
from typing import Any

import oneflow_lite as flow
from oneflow_lite import nn
from tests.compiler.capture.worlds import Box
from tests.fuzz import compiled_words as words
from tests.fuzz.arguments import Arguments
from tests.fuzz.compiled_world import attempt, data, derive, versions

LARGEST = 60  # elements of a tensor

PRELUDE = {
    "flow": flow,
    "nn": nn,
    "F": nn.functional,
    "Box": Box,
    "data": data,
    "attempt": attempt,
    "derive": derive,
    "versions": versions,
}


class Writer(Arguments):
    """Chooses at random, and keeps what has been written."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.text: list[str] = []
        self.indent = 1
        self.depth = 0  # of blocks in the function
        self.tensors: list[str] = []  # what the function can use by now
        self.env: dict[str, Any] = dict(PRELUDE)  # what the names are, in a trial run
        # Most programs are of a kind that can be replayed: a backward pass inside does not go on
        # through the arguments' graphs, and arguments with a history are not written.
        self.trains = self.rarely(3)
        self.writes = not self.trains and self.rarely(3)
        self.is_wild = self.rarely(25)
        # Some kinds are for some programs only, or most would have a bit of everything.
        self.is_complex = self.rarely(10)
        self.is_module = self.rarely(9)
        self.hooks = self.rarely(9)
        self.has_full_hooks = False
        self.count = 0
        # What the kinds add to the world: names of tensors that the function can use, things that
        # are compared, inputs of derivatives, and changes between calls.
        self.known: list[str] = []
        self.shown = ["w0", "b0", "box.w", "items[0]", "items[1]", "net", "opt"]
        self.inputs = ["x0", "y0", "w0", "x", "y", "box.w"]
        self.changes = words.lines(words.CHANGES)

    def pick(self, choices: Any) -> Any:
        return self.random.choice(choices)

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    # Lines

    def line(self, text: str) -> None:
        self.text.append("    " * self.indent + text)

    def setting(self, text: str) -> None:
        """Add a line of the world outside the function."""
        exec(text, self.env)
        self.line(text)

    def env_of(self, expression: str) -> Any:
        return eval(expression, self.env)

    def may_write(self, line: str) -> bool:
        """Return whether a line may write what it begins with."""
        target = line.replace("[", ".", 1).split(".")[0].split(" ")[0]
        reshapes = any(name in line for name in ("t_()", "unsqueeze_"))
        if re.match(r"t\d", target):
            return not (reshapes and self.trains)  # it may be a gradient, whose shape is fixed
        if self.is_wild:
            return not reshapes or target != "w0"
        is_buffer = target in ("b0", "c1", "items") or line.startswith("self.offset")
        return not reshapes and (self.writes or is_buffer)

    def add(self, text: str, name: str | None = None) -> bool:
        """Add a line of the function, if it runs; `name` is the tensor that it makes."""
        try:
            exec(text, self.env)
        except Exception:
            if not self.rarely(150):
                return False
            name = None  # a line that fails, now and then
        made = None if name is None else self.env[name]
        if isinstance(made, flow.Tensor):
            if made.numel() > LARGEST:
                return False
            self.tensors.append(name)
        self.line(text)
        return True

    @contextlib.contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Indent what is written within, and forget its names."""
        self.line(header)
        self.indent += 1
        self.depth += 1
        before, length = list(self.tensors), len(self.text)
        yield
        if len(self.text) == length:
            self.line("pass")
        self.tensors = before
        self.indent -= 1
        self.depth -= 1

    def tensor(self) -> str:
        """Choose a tensor, rather a young one."""
        count = len(self.tensors)
        return self.tensors[max(self.number(0, count - 1), self.number(0, count - 1))]

    def filled(self, template: str) -> str:
        return template.format(
            x=self.tensor(),
            y=self.tensor(),
            z=self.tensor(),
            d=self.number(-2, 1),
            s=self.pick([0.5, -0.25, 1.5, 0]),
        )

    def new(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def make(self, table: list[str]) -> None:
        """Add a line that makes a tensor."""
        name = self.new()
        for _ in range(6):
            if self.add(f"{name} = {self.filled(self.pick(table))}", name):
                return
