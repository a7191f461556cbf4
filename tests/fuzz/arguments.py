"""Draws the arguments of views and of indexed ops."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

Shape = tuple[int, ...]


class Arguments:
    """Draws arguments that fit a shape."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw

    def pick(self, choices: Any) -> Any:
        return self.draw(st.sampled_from(list(choices)))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def rarely(self, one_in: int) -> bool:
        return self.number(1, one_in) == one_in

    def mask(self, shape: tuple[int, ...]) -> Any:
        return np.asarray(np.random.default_rng(self.number(0, 9)).random(shape) < 0.5)

    def indexed(self, shape: Shape) -> Any:
        """Draw a dimension and some indices into it, all different."""
        if not shape:
            return None
        dim = self.number(0, len(shape) - 1)
        if not shape[dim]:
            return None
        count = self.number(1, shape[dim])
        order = np.random.default_rng(self.number(0, 9)).permutation(shape[dim])
        return dim, order[:count]

    def index_like(self, shape: tuple[int, ...], dim: int, unique: bool = False) -> Any:
        """Draw indices for every element, along `dim`."""
        rng = np.random.default_rng(self.number(0, 9))
        if unique:
            return np.argsort(rng.random(shape), axis=dim)
        return rng.integers(0, shape[dim], shape)

    def reshaping(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        count = int(np.prod(shape))
        if not count:
            return (0,)
        choices = [(count,), (1, count), (count, 1)]
        choices += [(k, count // k) for k in (2, 3) if count % k == 0]
        choices += [(2, 2, count // 4)] if count % 4 == 0 else []
        return self.pick(choices)

    def view_arguments(self, name: str, shape: tuple[int, ...]) -> tuple[Any, ...] | None:
        """Draw the arguments of a view of a tensor of this shape; None when there is none."""
        ndim = len(shape)
        if name in ("view_as_itself", "real", "imag"):
            return ()
        if name in ("view", "reshape"):
            return self.reshaping(shape)
        if name == "t":
            return () if ndim <= 2 else None
        if name == "unsqueeze":
            return (self.number(0, ndim),)
        if name == "expand":
            wider = tuple(2 if n == 1 and self.rarely(2) else n for n in shape)
            return (2, *wider) if self.rarely(3) or not shape else wider
        if name == "getitem":
            return self.basic_index(shape)
        if not ndim:
            return None
        dim = self.number(0, ndim - 1)
        if name == "squeeze":
            return (dim,)
        if name == "select":
            return (dim, self.number(0, shape[dim] - 1)) if shape[dim] else None
        if name == "narrow":
            start = self.number(0, shape[dim])
            return dim, start, self.number(0, shape[dim] - start)
        if name == "unfold":
            if not shape[dim]:
                return None
            size = self.number(1, shape[dim])
            # Windows that overlap cannot be written one after the other, so they are rare.
            return dim, size, self.number(1, 2) if self.rarely(4) else size
        if name == "permute":
            return tuple(self.draw(st.permutations(range(ndim))))
        other = self.number(0, ndim - 1)
        if name in ("transpose", "movedim"):
            return dim, other
        assert name == "diagonal"
        return (self.number(-1, 1), dim, other) if dim != other else None

    def basic_index(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        index: list[Any] = []
        for size in shape[: self.number(0, len(shape))]:
            what = self.number(0, 5)
            if what <= 1 and size:
                index.append(self.number(-size, size - 1))
            elif what == 2:
                index.append(slice(self.number(0, size), None))
            elif what == 3:
                index.append(slice(None, None, 2))
            elif what == 4:
                index.append(slice(self.number(0, size), self.number(0, size)))
            else:
                index.append(slice(None))
        if self.rarely(4):
            index.insert(0, ...)
            del index[1 + len(shape) :]
        if self.rarely(4):
            index.insert(self.number(0, len(index)), None)
        return tuple(index)
