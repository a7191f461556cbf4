"""Programs: a few tensors and a list of steps over them."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np


class Ref(int):
    """The number of a tensor of the program."""

    def __repr__(self) -> str:
        return f"t{int(self)}"


@attrs.frozen
class Leaf:
    """A tensor that the program begins with."""

    shape: tuple[int, ...]
    seed: int
    requires_grad: bool
    is_complex: bool
    fortran: bool

    def array(self) -> Any:
        """Return its content."""
        rng = np.random.default_rng(self.seed)
        array = rng.uniform(-1.2, 1.5, self.shape)
        if self.is_complex:
            array = array + 1j * rng.uniform(-1.2, 1.5, self.shape)
        return np.asarray(array, order="F" if self.fortran else "C")


@attrs.frozen
class Step:
    """One line of a program: what is called, on what, and which tensors it makes."""

    kind: str  # op, view, views, detach, write, setitem, reshaper or mark
    name: str
    args: tuple[Any, ...]
    made: tuple[Ref, ...] = ()
    no_grad: bool = False

    def __str__(self) -> str:
        made = f"{', '.join(map(repr, self.made))} = " if self.made else ""
        args = [repr(a.tolist() if isinstance(a, np.ndarray) else a) for a in self.args]
        mode = "   # no_grad" if self.no_grad else ""
        return f"{made}{self.kind}.{self.name}({', '.join(args)}){mode}"


@attrs.frozen(repr=False)
class Program:
    """Leaves, and steps over them."""

    leaves: tuple[Leaf, ...]
    steps: tuple[Step, ...]

    def __repr__(self) -> str:
        lines = [f"{Ref(i)!r} = {leaf}" for i, leaf in enumerate(self.leaves)]
        return "\n".join(["", *lines, *map(str, self.steps)])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Let Hypothesis show a program as it reads."""
        printer.text(repr(self))
