"""The common part of the programs: the table of them, and small random data.

A program is a generator function. It takes `compiled`, which is `flow.compile` or a function that
changes nothing, builds a model of its own, compiles its step, and trains. After every step it
yields all that can be seen of that step: what came back, the model, the optimizer, its own objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

import oneflow_lite as flow

STEPS = 30
Compiler = Callable[[Any], Any]


@attrs.frozen
class Program:
    """A training program.

    Attributes
    ----------
    run : generator function
        Takes `compiled`, yields what can be seen after each step.
    kinds : int
        How many different calls take turns, in shapes or otherwise: each has to be met once.
    """

    run: Callable[[Compiler], Iterator[Any]]
    kinds: int

    @property
    def name(self) -> str:
        return self.run.__name__

    @property
    def about(self) -> str:
        """Its description in one line."""
        return (self.run.__doc__ or "").strip()

    @property
    def warm_up(self) -> int:
        """The number of first calls that may be eager: no gradients, then no optimizer state."""
        return 2 + self.kinds


PROGRAMS: dict[str, Program] = {}


def program(function: Any = None, *, kinds: int = 1) -> Any:
    """Enter a generator function among the programs."""
    if function is None:
        return lambda function: program(function, kinds=kinds)
    PROGRAMS[function.__name__] = Program(function, kinds)
    return function


def blobs(steps: int = STEPS, batch: int = 8, features: int = 4, classes: int = 3) -> Iterator[Any]:
    """Yield batches of points around one centre for each class, and their classes."""
    centres = flow.randn(classes, features) * 2
    for _ in range(steps):
        y = flow.randint(0, classes, (batch,))
        yield centres[y] + flow.randn(batch, features), y


def curve(steps: int = STEPS, batch: int = 8, features: int = 2) -> Iterator[Any]:
    """Yield batches of points and a smooth function of them, (batch, 1)."""
    for _ in range(steps):
        x = flow.randn(batch, features)
        yield x, x.sin().sum(1, keepdim=True)


def images(
    steps: int = STEPS, batch: int = 4, size: int = 8, channels: int = 3, classes: int = 4
) -> Iterator[Any]:
    """Yield batches of noise, brighter for higher classes, and the classes."""
    for _ in range(steps):
        y = flow.randint(0, classes, (batch,))
        yield flow.randn(batch, channels, size, size) + y.reshape(-1, 1, 1, 1), y


def tokens(
    steps: int = STEPS, batch: int = 4, length: int = 6, vocabulary: int = 11
) -> Iterator[Any]:
    """Yield batches of ascending numbers modulo a vocabulary, and those that come next."""
    for _ in range(steps):
        text = (flow.randint(0, vocabulary, (batch, 1)) + flow.arange(length + 1)) % vocabulary
        yield text[:, :-1], text[:, 1:]
