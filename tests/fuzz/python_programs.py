"""Writes random Python for `flow.compile`: what a function does besides ops.

A program makes classes, objects, containers and closures, compiles a function over them, and calls
it several times, with changes in between. Tensors have one shape, so nearly every line runs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from tests.fuzz import python_words as words
from tests.fuzz.python_words import lines

CALLS = 4
NUMBERS = ["0.5", "1.5", "2.0", "3", "1"]
VALUES = {
    "T": lines(words.TENSORS),
    "N": lines(words.NUMBERS),
    "B": lines(words.TRUTHS),
    "S": lines(words.TEXTS),
}
PLAIN = {"T": ["x", "y", "w", "b"], "N": ["n", "1", "0.5"], "B": ["n > 1", "True"], "S": ["'a'"]}
SIMPLE, EFFECTS, CHANGES = lines(words.SIMPLE), lines(words.EFFECTS), lines(words.CHANGES)
ARGUMENTS, LOOPS, CONTEXTS = lines(words.ARGUMENTS), lines(words.LOOPS), lines(words.CONTEXTS)
RISKS, HANDLERS, ERRORS = lines(words.RISKS), lines(words.HANDLERS), lines(words.ERRORS)
RETURNED = lines(words.RETURNED)


def write(seed: int) -> str:
    """Return the program of a seed; it calls `compiled`, `attempt` and `data`."""
    return _Writer(seed).program()


class _Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.pick = self.random.choice
        self.text: list[str] = []
        self.indent = 0
        self.names: list[str] = []  # of tensors made in the function
        self.has_effects = self.rarely(3)  # on what is outside the function

    def rarely(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def line(self, text: str) -> None:
        self.text += ["    " * self.indent + part for part in text.split(" // ")]

    def write(self, template: str) -> None:
        self.line(self.filled(template))

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self.write(header)
        self.indent += 1
        before, count = list(self.names), len(self.text)
        yield
        if len(self.text) == count:
            self.line("pass")
        self.indent -= 1
        self.names = before

    def filled(self, template: str, depth: int = 3) -> str:
        """Fill in what a template leaves open, less and less deep."""
        found, rest = "", template
        while rest:
            text, brace, rest = rest.partition("{")
            found += text
            if rest.startswith("{"):
                found, rest = found + "{", rest[1:]
            elif brace:
                kind, _, rest = rest.partition("}")
                found += self.value(kind, depth)
        return found.replace("}}", "}")

    def value(self, kind: str, depth: int) -> str:
        if kind == "n":
            return self.pick(NUMBERS)
        if kind == "I":
            return self.pick(["0", "1", "-1"])
        if kind == "t":
            return self.names[-1] if self.names else "x * 2"
        if kind == "T" and self.names and self.rarely(2):
            return self.pick(self.names)
        is_deep = depth > 0 and self.random.random() < 0.3 * depth
        text = self.filled(self.pick((VALUES if is_deep else PLAIN)[kind]), depth - 1)
        return f"({text})" if " " in text else text

    # The world

    def program(self) -> str:
        truth, grad = self.pick(["True", "False"]), self.pick(["True", "False"])
        world = words.WORLD.strip().format(n=self.pick(NUMBERS), grad=grad, truth=truth)
        self.text += world.splitlines()
        self.classes()
        self.function()
        self.line("f = compiled(f)")
        for k in range(CALLS):
            self.call(k)
        return "\n".join([*self.text, ""])

    def classes(self) -> None:
        with self.block("class Base:"):
            if self.rarely(8):
                self.line("__slots__ = ('open', 'items', 'w', '__dict__')")
            self.line("def __init__(self, rate): self.rate, self.items = rate, [1.0]")
            self.text[-1] += "; self.w = data(8)"
            for members in (*words.MEMBERS, *[m for m in words.CHANCES if self.rarely(6)]):
                self.write(self.pick(members))
        mixed = self.rarely(3)
        if mixed:
            with self.block("class Mixin:"):
                self.write("def fixed(self, x): return super().fixed(x) + {n}")
        with self.block("class Thing(Mixin, Base):" if mixed else "class Thing(Base):"):
            if self.rarely(2):
                self.line("def scaled(self, x): return super().scaled(x) * 2")
            if self.rarely(3):
                self.line("def __init__(self, rate): super().__init__(rate); self.count = 1")
            for members in self.random.sample(words.MEMBERS, 2):
                self.write(self.pick(members))
        self.write("thing, other = Thing({n}), Base({n})")

    # The function

    def function(self) -> None:
        with self.block("def f(x, y, n, thing):"):
            self.line("found, notes, seen = [], [], {}")
            self.line("local = types.SimpleNamespace(rate=1, count=0, w=b)")
            if self.has_effects:
                self.line("global scale")
            for _ in range(self.random.randint(2, 7)):
                self.statement(3)
            for _ in range(self.has_effects and self.random.randint(1, 2)):
                self.write(self.pick(EFFECTS))
            self.write("return " + self.pick(RETURNED))

    def statement(self, depth: int) -> None:
        ways = [self.simple] * 6
        if depth > 0:
            ways += [self.branch, self.loop] * 3 + [self.guarded, self.inner, self.context] * 2
            ways += [self.local_class] * self.rarely(4)
        self.pick(ways)(depth - 1)

    def simple(self, depth: int) -> None:
        template = self.pick(SIMPLE)
        name = f"t{len(self.text)}"
        self.write(template.replace("%s", name))
        if "%s" in template:
            self.names.append(name)

    def body(self, depth: int) -> None:
        for _ in range(self.random.randint(1, 2)):
            self.statement(depth)

    def branch(self, depth: int) -> None:
        with self.block("if {B}:"):
            self.body(depth)
            if self.rarely(12):
                self.write(f"raise {self.pick(ERRORS)}({{S}})")
        if self.rarely(2):
            with self.block(self.pick(["else:", "elif {B}:"])):
                self.body(depth)

    def loop(self, depth: int) -> None:
        header = self.pick(LOOPS)
        with self.block(header):
            if header.startswith("while"):
                self.line("notes.append(0)")
            if "for t in" in header:
                self.names.append("t")
            self.body(depth)
            if self.rarely(4):
                self.write("if {B}: " + self.pick(["break", "continue"]))

    def guarded(self, depth: int) -> None:
        with self.block("try:"):
            self.body(depth)
            if self.rarely(2):
                self.line(f"notes.append({self.pick(RISKS)})")
            if self.rarely(3):
                self.write(f"if {{B}}: raise {self.pick(ERRORS)}('no')")
        handler = self.pick(HANDLERS)
        with self.block(handler):
            if "error" in handler:
                self.line("notes.append(type(error).__name__)")
            self.simple(0)

    def context(self, depth: int) -> None:
        header = self.pick(CONTEXTS)
        with self.block(header):
            self.body(depth)
            if "suppress" in header and self.rarely(2):
                self.line("notes.append(thing.gone)")

    def inner(self, depth: int) -> None:
        """A function inside: a closure, with nonlocal, recursion or yields."""
        name = f"g{len(self.text)}"
        kind = self.random.randrange(4)
        if kind == 1:
            self.line(f"total{name} = 0")
        with self.block(f"def {name}(k, u=2):"):
            if kind == 0:
                self.write("return {T} * u + k")
            elif kind == 1:
                self.line(f"nonlocal total{name} // total{name} += k // return total{name}")
            elif kind == 2:
                self.write(f"return {{T}} if k <= 0 else {name}(k - 1) * u")
            else:
                self.write("for i in range(k): yield {T} * i")
        if kind == 1:
            self.write(f"notes.append(({name}({{N}}), {name}(1), total{name}))")
        elif kind == 3:
            self.line(self.pick([f"found.extend({name}(2))", f"found.append(sum({name}(2)))"]))
        else:
            self.write(f"found.append({name}(2))")

    def local_class(self, depth: int) -> None:
        name = f"C{len(self.text)}"
        with self.block(f"class {name}{self.pick(['', '(Base)', '(type(thing))'])}:"):
            self.write("size = {N}")
            self.line("def __init__(self, v): self.v = v")
            self.line("def twice(self): return self.v * self.size")
        self.write(f"found.append({name}({{T}}).twice())")

    # The calls

    def call(self, k: int) -> None:
        given = {"x": "x=data(9)", "y": "y=b", "n": "n=2", "thing": "thing=thing"}
        if k > 1:
            if not self.rarely(4):
                self.write("with contextlib.suppress(Exception): " + self.pick(CHANGES))
            if self.rarely(2):
                argument = self.filled(self.pick(ARGUMENTS))
                given[argument.partition("=")[0]] = argument
        self.line(f"attempt(f, {', '.join(given.values())})")
