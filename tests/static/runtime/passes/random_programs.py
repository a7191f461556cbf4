"""Random Programs with views, in-place ops, random draws and memory from outside that overlaps."""

from __future__ import annotations

from typing import Any

import numpy as np

import oneflow_lite as flow
from tests.static.build import Builder

SHAPES = ((4, 4), (4,), (2, 8), (3, 4))
UNARY = ("neg", "abs", "sign", "square", "clone")
BINARY = ("add", "add", "add", "sub", "mul", "maximum")
KINDS = "unary binary view write home creation reduction random again slices".split()
SHARES = np.array([20, 30, 20, 6, 10, 6, 5, 3, 8, 6])
GENERATOR = flow.Generator()


class RandomProgram:
    """One Program, the variables to fetch, and arrays to run it on.

    The external variable `alias` lies in the memory of `p`.
    """

    def __init__(self, seed: int, length: int = 30) -> None:
        self.draw = np.random.default_rng(seed)
        self.builder = b = Builder()
        self._seed = seed
        self.names = [b.feed("x", self._array((4, 4))), b.feed("y", self._array((4,)))]
        given = self.given(0)
        self.names += [b.external(n, given[n]) for n in ("p", "q", "alias")]
        b.arrays.update(self.given(0))
        self.names += [b.constant(self._array(shape)) for shape in SHAPES]
        self._outside = len(self.names)
        for _ in range(length):
            self._append()
        made = self.names[self._outside :]
        count = min(len(made), int(self.draw.integers(1, 8)))
        self.fetches = [str(n) for n in self.draw.choice(made, count, replace=False)]

    def given(self, run: int) -> dict[str, Any]:
        """Return fresh arrays for the feeds and the external variables."""
        draw = np.random.default_rng((self._seed, run))
        p = draw.standard_normal((4, 4))
        return {
            "x": draw.standard_normal((4, 4)),
            "y": draw.standard_normal(4),
            "p": p,
            "q": draw.standard_normal((4, 4)),
            "alias": p[1],
        }

    def _array(self, shape: tuple[int, ...]) -> Any:
        return self.draw.integers(-2, 3, shape).astype(np.float64)

    def _pick(self, *shapes: tuple[int, ...]) -> str:
        """Return a variable, more likely a late one."""
        names = self.names
        if shapes:
            names = [n for n in names if self.builder.arrays[n].shape in shapes]
        recent = names[-6:] if self.draw.random() < 0.7 else names
        return str(self.draw.choice(recent))

    def _like(self, name: str) -> str:
        return self._pick(self.builder.arrays[name].shape)

    def _append(self) -> None:
        made = self.draw.choice(KINDS, p=SHARES / SHARES.sum())
        made = getattr(self, f"_{made}")()
        if made is not None:
            self.names.append(made)

    def _unary(self) -> str:
        return str(self.builder.op(str(self.draw.choice(UNARY)), self._pick()))

    def _binary(self) -> str:
        x = self._pick()
        return str(self.builder.op(str(self.draw.choice(BINARY)), x, self._like(x)))

    def _view(self) -> str | None:
        b = self.builder
        x = self._pick()
        shape = b.arrays[x].shape
        choice = self.draw.integers(5)
        if choice == 0 and len(shape) == 2:
            return str(b.op("transpose", x, dim0=0, dim1=1))
        if choice == 1 and b.arrays[x].size == 16:
            return str(b.op("reshape", x, shape=(2, 8) if shape == (4, 4) else (4, 4)))
        if choice == 2 and len(shape) == 2:
            return str(b.op("select", x, dim=int(self.draw.integers(2)), index=1))
        if choice == 3 and shape[0] == 4:
            return str(b.op("narrow", x, dim=0, start=1, length=3))
        if choice == 4 and shape == (4,):
            return str(b.op("expand", x, shape=(4, 4)))
        return None

    def _target(self) -> str | None:
        """Return a variable that may be written."""
        names = [
            n
            for n in self.names
            if self.builder.arrays[n].flags.writeable and self.builder.block.vars[n].value is None
        ]
        names = [n for n in names if 0 not in self.builder.arrays[n].strides]
        return str(self.draw.choice(names[-8:] if self.draw.random() < 0.6 else names))

    def _write(self) -> None:
        x = self._target()
        if self.draw.random() < 0.7:
            self.builder.op("copy_", x, self._like(x))
        else:
            self.builder.op("fill_", x, self.builder.constant(np.float64(self.draw.integers(3))))

    def _home(self) -> None:
        """Write an op's result into a variable, mostly one of its operands, as in-place ops do."""
        b = self.builder
        x = self._target()
        operands = [x if self.draw.random() < 0.6 else self._like(x), self._like(x)]
        if self.draw.random() < 0.2:
            operands.reverse()
        if self.draw.random() < 0.3:
            t = b.op(str(self.draw.choice(UNARY)), operands[0])
        else:
            t = b.op(str(self.draw.choice(BINARY)), *operands)
        if self.draw.random() < 0.2:
            self.names.append(str(b.op("neg", self._pick())))
        b.op("copy_", x, t)
        if self.draw.random() < 0.1:
            self.names.append(t)

    def _creation(self) -> str:
        b = self.builder
        shape = SHAPES[self.draw.integers(len(SHAPES))]
        if self.draw.random() < 0.5:
            return str(
                b.op("full", shape=shape, value=float(self.draw.integers(3)), dtype=np.dtype("f8"))
            )
        return str(b.op("zeros_like", self._pick()))

    def _reduction(self) -> str | None:
        x = self._pick()
        if self.builder.arrays[x].ndim == 2 and self.builder.arrays[x].shape[1] == 4:
            return str(self.builder.op("sum_to", x, shape=(4,)))
        return str(self.builder.op("matmul", self._pick((4, 4)), self._pick((4, 4), (4,))))

    def _random(self) -> str:
        if self.draw.random() < 0.5:
            return str(self.builder.op("dropout_mask", self._pick(), p=0.5, generator=GENERATOR))
        attrs = {"shape": (4, 4), "dtype": np.dtype("f8"), "generator": GENERATOR}
        return str(self.builder.op("random_uniform", **attrs))

    def _slices(self) -> str:
        """Add arrays that are zero but for a slice each, most of which lie apart."""
        b, terms = self.builder, []
        for row in self.draw.permutation(4)[: self.draw.integers(2, 5)]:
            is_row = self.draw.random() < 0.8
            x = self._pick((4,) if is_row else (3, 4))
            index = (int(row), Ellipsis) if is_row else (slice(0, 3),)
            terms.append(str(b.op("getitem_grad", x, index=index, shape=(4, 4))))
            if self.draw.random() < 0.1:
                self.names.append(terms[-1])
        while len(terms) > 1:
            terms.append(str(b.op("add", terms.pop(0), terms.pop(0))))
        return terms[0]

    def _again(self) -> str | None:
        """Repeat one of the last ops."""
        ops = [op for op in self.builder.block.ops[-8:] if not op.written]
        if not ops:
            return None
        op = ops[self.draw.integers(len(ops))]
        return str(self.builder.op(op.type, *op.inputs, **op.attrs))
