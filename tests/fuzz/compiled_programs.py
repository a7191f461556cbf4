"""Writes random programs for `flow.compile`, as Python source.

A program is a case as in `tests/compiler/capture`: it builds a small world, compiles a function
over it, calls that several times, and yields all that can be seen. Each line is tried on live
tensors while it is written, so nearly all of them fit.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import oneflow_lite as flow
from tests.fuzz import compiled_words as words
from tests.fuzz.compiled_calls import Calls
from tests.fuzz.compiled_complex import ComplexNumbers
from tests.fuzz.compiled_control import ControlFlow
from tests.fuzz.compiled_hooks import Hooks
from tests.fuzz.compiled_modules import Modules
from tests.fuzz.compiled_training import Training
from tests.fuzz.compiled_world import data

SHAPES = [(2, 3), (2, 3), (2, 3), (3,), (3, 3), (1, 3), (2, 1), ()]
VIEWS = (
    "getitem getitem getitem select narrow view reshape transpose movedim t squeeze unsqueeze "
    "expand diagonal unfold".split()
)

OPS, RANDOM, WRITES, CONDITIONS = map(
    words.lines, (words.OPS, words.RANDOM, words.WRITES, words.CONDITIONS)
)
NETS = words.lines(words.NETS)


def write(seed: int) -> str:
    """Return the program of a seed: a function called `program`, as text."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return _Program(seed).program()


class _Program(Calls, ComplexNumbers, ControlFlow, Hooks, Modules, Training):
    """Writes one program."""

    # The program

    def program(self) -> str:
        self.world()
        self.function()
        self.calls()
        return "\n".join(["def program(compiled):", *self.text, ""])

    def world(self) -> None:
        self.line("global SCALE")
        self.setting("SCALE = 2.0")
        self.setting("scale = 0.5")
        self.setting(f"w0 = data((2, 3), {self.number(0, 9)}, requires_grad=True)")
        self.setting(f"b0 = data((3,), {self.number(0, 9)})")
        grad = not self.writes and self.pick([True, False])
        self.setting(f"box = Box(rate=0.75, flag=True, w=data((2, 3), 3, requires_grad={grad}))")
        self.setting(f"items = [data((3,), 4), data({self.pick(SHAPES)}, 5)]")
        self.setting(f"net = ({self.pick(NETS)}).double()")
        if self.is_module:
            self.module_world()
        if self.is_complex:
            self.complex_world()
        self.optimizer_world()
        if self.hooks:
            self.hooks_world()

    def function(self) -> None:
        shapes = [self.pick(SHAPES[:5]), self.pick(SHAPES)]
        self.shapes = shapes
        for name, shape in zip("xy", shapes, strict=True):
            self.env[name] = data(shape, 1) * 1
        self.env.update(flag=True, n=2, rate=0.5)
        self.tensors = ["x", "y", "x", "y", "w0", "b0", "box.w", "items[0]", *self.known]
        myself = "self, " if self.is_module else ""
        with self.block(f"def f({myself}x, y, flag, n, rate=0.5):"):
            for _ in range(self.number(2, 11)):
                self.statement()
            self.returned()
        if self.is_module:
            self.line("Model.forward = f")
        self.line(f"f = compiled({'model' if self.is_module else 'f'})")

    def statement(self) -> None:
        kinds = ["op"] * 30 + ["view"] * 16 + ["write"] * 14 + ["setitem"] * 6 + ["chance"] * 4
        kinds += ["network"] * 3 + ["helper"] * 3
        if self.trains or self.is_wild:
            kinds += ["gradient"] * 8
        elif not self.has_full_hooks:  # which see zeros after control flow, eager code has None
            kinds += ["choice", "repetition"] * 2
        kinds += ["complex"] * 25 * self.is_complex + ["hook"] * 16 * self.hooks
        kinds += ["member"] * 12 * self.is_module
        if self.depth == 1:
            kinds += ["branch"] * 6 + ["loop"] * 5
            if self.trains or self.is_wild:
                kinds += ["backward"] * 7 + ["training"] * 7
        if self.rarely(600):
            kinds = ["look"]
        getattr(self, f"write_{self.pick(kinds)}")()

    def write_op(self) -> None:
        self.make(OPS)

    def write_chance(self) -> None:
        self.make(RANDOM)

    def write_network(self) -> None:
        self.make(["net({x})"])

    def write_view(self) -> None:
        kind = self.pick(VIEWS)
        of = self.tensor()
        x = self.env_of(of)
        arguments = self.view_arguments(kind, tuple(x.shape))
        if arguments is None:
            return
        name = self.new()
        if kind == "getitem":
            self.add(f"{name} = {of}[{_index(arguments)}]", name)
        else:
            self.add(f"{name} = {of}.{kind}({', '.join(map(repr, arguments))})", name)

    def write_write(self) -> None:
        for _ in range(6):
            line = self.filled(self.pick(WRITES))
            if not self.may_write(line):
                continue
            if self.add(f"with flow.no_grad(): {line}" if self.rarely(6) else line):
                return

    def write_setitem(self) -> None:
        x = self.tensor()
        if not self.may_write(x):
            return
        index = _index(self.basic_index(tuple(self.env_of(x).shape)))
        value = self.pick([self.tensor(), self.tensor(), "0.35"])
        self.add(f"{x}[{index}] = {value}")

    def carried(self) -> str:
        """Begin a tensor that a block may replace."""
        name = self.new()
        self.add(f"{name} = {self.tensor()} * 1", name)
        return name

    def replaced(self, name: str) -> None:
        """Within a block, give a tensor of outside another value."""
        if name in self.tensors:
            text = self.filled(self.pick(["{x} + {y}", "{x} * {y}", "{x}.tanh()", "{x} * 0.5"]))
            self.add(f"{name} = {name} + {text}")

    def write_branch(self) -> None:
        name = self.carried()
        with self.block(f"if {self.filled(self.pick(CONDITIONS))}:"):
            for _ in range(self.number(1, 2)):
                self.statement()
            self.replaced(name)
        if self.rarely(2):
            with self.block("else:"):
                self.statement()
                self.replaced(name)

    def write_loop(self) -> None:
        name = self.carried()
        item = self.new()
        header = self.pick(
            ["for {i} in range(n):", "for {i} in range(2):", "for {i} in ({x}, {y}):"]
            + ["for {i} in items:", "for {i} in {x}.unbind(0):", "for {i} in (1.0, SCALE):"]
        )
        header = header.replace("{i}", item)
        header = self.filled(header)
        try:
            exec(f"{header}\n    pass", self.env)
        except Exception:
            return
        if item not in self.env:
            return
        with self.block(header):
            if isinstance(self.env[item], flow.Tensor):
                self.tensors.append(item)
            else:
                self.make([f"{{x}} * {item}", f"{item} + {{x}}"])
            self.statement()
            self.replaced(name)

    def write_helper(self) -> None:
        a = self.tensor()
        self.make(
            [
                f"(lambda u, v=2.0: u * v + {a})({{x}})",
                "sum([{x}, {y}, {z}])",
                "[u * SCALE for u in ({x}, {y})][-1]",
                "{{'k': {x}, 'l': {y} * 2}}['l']",
                "max(items, key=len) * {x}",
                "box.scaled({x}) if hasattr(box, 'scale') else {x} * box.doubled_rate"
                if self.rarely(9)
                else "dict(u={x}, v={y})['u'] + {z}",
            ]
        )

    def write_look(self) -> None:
        """Read a value, which ends a recording."""
        name = self.carried()
        with self.block(f"if {name}.sum() > 0:"):
            self.statement()

    def returned(self) -> None:
        results = [self.tensors[-1], *[self.tensor() for _ in range(self.number(0, 3))]]
        form = self.pick(["one", "tuple", "tuple", "list", "dict", "mixed"])
        if form == "one":
            self.line(f"return {results[0]}")
        elif form == "tuple":
            self.line(f"return {', '.join(results)},")
        elif form == "list":
            self.line(f"return [{', '.join(results)}]")
        elif form == "dict":
            items = ", ".join(f"'r{k}': {name}" for k, name in enumerate(results))
            self.line(f"return {{{items}}}")
        else:
            self.line(f"return ({results[0]}, [n, None, {{'rest': ({', '.join(results)},)}}])")


def _index(index: tuple[Any, ...]) -> str:
    """Return an index as it stands between brackets."""

    def part(item: Any) -> str:
        if isinstance(item, slice):
            ends = ["" if v is None else str(v) for v in (item.start, item.stop, item.step)]
            return ":".join(ends if ends[2] else ends[:2])
        return "..." if item is Ellipsis else repr(item)

    return ", ".join(map(part, index)) or "..."
