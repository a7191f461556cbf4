"""Writes the calls of a random program for `flow.compile`, and what happens between them."""

from __future__ import annotations

from typing import Any

from tests.fuzz.compiled_writer import Writer

# How derivatives are taken after a call, see `compiled_world.derive`.
HOW = ["nothing", "backward", "backward", "backward", "grad", "grad", "second", "last", "retained"]
HOW += ["several"]


class Calls(Writer):
    """Writes calls of a function `f`."""

    shapes: list[Any]  # of its two arguments

    def calls(self) -> None:
        self.line("kept, alive = [], []")
        self.line(f"world = lambda: [{', '.join(self.shown)}]")
        variants = [self.variant() for _ in range(self.pick([1, 1, 1, 2, 2]))]
        for k in range(self.number(3, 5)):
            if k and self.rarely(2):
                for _ in range(self.number(1, 2)):
                    change = self.pick(self.changes)
                    if change != "out = None":
                        self.line(change)
            self.call(k, self.pick(variants[: 1 if k < 2 else 2]))
        self.line("yield kept, world(), flow.rand(2)")

    def variant(self) -> dict[str, Any]:
        """Draw what stays the same between calls that are alike."""
        shapes = self.shapes
        if self.rarely(5):
            shapes = [(4, *s[1:]) if len(s) == 2 and s[0] > 1 else s for s in shapes]
        tensors = []
        for shape in shapes:
            layout = self.pick(["C", "C", "C", "F", "gapped", "reversed"])
            dtype = "float32" if self.rarely(9) else "float64"
            if self.is_complex and self.rarely(3):
                dtype = "complex128"
            kind = self.pick(self.kinds())
            tensors.append((shape, layout, dtype, kind))
        return {
            "tensors": tensors,
            "rest": f"{self.pick([True, True, False])}, {self.pick([1, 2, 2, 3])}",
            "rate": self.pick(["", "", ", 0.5", ", rate=1.5"]),
            "alias": self.rarely(20),
            "keep": self.rarely(6),
            "no_grad": self.rarely(15),
        }

    def kinds(self) -> list[str]:
        """Return what arguments may be."""
        if self.is_wild:
            return ["plain", "leaf", "inner", "view", "view of inner"]
        if self.writes:
            return ["plain", "plain", "plain", "leaf", "view"]
        if self.trains:
            return ["plain", "plain", "leaf", "view"]
        return ["plain", "leaf", "leaf", "inner", "inner", "view", "view of inner"]

    def call(self, k: int, variant: dict[str, Any]) -> None:
        sources = []
        if not (k and variant["keep"]):
            for name, drawn in zip("xy", variant["tensors"], strict=True):
                shape, layout, dtype, kind = drawn
                self.argument(name, 10 * k + len(sources), shape, layout, dtype, kind)
                sources.append(f"{name}0")
        y = self.pick(["x", "w0", "b0"]) if variant["alias"] else "y"
        rest = variant["rest"] + variant["rate"]
        mode = "with flow.no_grad(): " if variant["no_grad"] else ""
        self.line(f"{mode}out = attempt(f, x, {y}, {rest})")
        self.line("seen = [x, y, x0, y0, *world()]")
        self.line("yield out, seen, versions(out, seen)")
        how = self.pick(HOW)
        if how != "nothing":
            what = "[alive, out]" if how == "several" else "out"
            log = ", log" if self.hooks else ""
            inputs = ", ".join(self.inputs)
            self.line(f"yield {how!r}, derive({what}, [{inputs}], {how!r}{log})")
            self.line("yield seen, versions(out, seen)")
        if how == "several":
            self.line("alive.clear()")
        elif how == "nothing":
            self.line("alive.append(out)")
        self.line("kept.append(out)")

    def argument(
        self, name: str, seed: int, shape: Any, layout: str, dtype: str, kind: str
    ) -> None:
        grad = kind in ("leaf", "inner", "view of inner")
        text = f"{seed}, {layout!r}, {dtype!r}, {grad}"
        if kind.startswith("view"):
            self.line(f"{name}0 = data({(2, *shape)}, {text})")
            inner = " * 1" if kind == "view of inner" else ""
            self.line(f"{name} = ({name}0{inner})[1]")
        else:
            self.line(f"{name}0 = data({shape}, {text})")
            self.line(f"{name} = {name}0 * 1.5" if kind == "inner" else f"{name} = {name}0")
