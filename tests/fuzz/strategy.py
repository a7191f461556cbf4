"""The strategy that draws programs.

While a program is drawn, each tensor is followed as an array of positions in its memory: that
gives shapes, tells a view from a copy, and costs nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

import oneflow_lite as flow
from tests.fuzz import vocabulary as words
from tests.fuzz.arguments import Arguments
from tests.fuzz.programs import Leaf, Program, Ref, Step

SHAPES = [
    (), (1,), (2,), (3,), (2, 3), (3, 2), (2, 2), (3, 3), (1, 3), (2, 1), (2, 1, 3), (2, 3, 2),
    (0,), (2, 0),
]  # fmt: skip
WEIGHTED_SHAPES = SHAPES[2:8] * 3 + SHAPES


@st.composite
def programs(draw: Any, max_steps: int = 16) -> Program:
    """Draw a program."""
    return _Writer(draw).program(max_steps)


class _Writer(Arguments):
    """Draws one program, step by step, knowing what the tensors look like by then."""

    def __init__(self, draw: Any) -> None:
        super().__init__(draw)
        self.positions: list[Any] = []  # by tensor: the positions of its memory that it shows
        self.bases: list[int] = []  # by tensor: which memory
        self.dtypes: list[str] = []  # by tensor: "f" or "c"
        self.is_view: list[bool] = []  # by tensor
        self.watched: set[int] = set()  # tensors with hooks, or that retain their gradients
        self.leaf: list[bool] = []  # by tensor: whether it is a leaf that requires a gradient
        self.memories = 0
        self.steps: list[Step] = []

    # What is drawn

    def tensor(self, fits: Any = None) -> Ref | None:
        """Choose a tensor, rather a young one."""
        fitting = [i for i in range(len(self.positions)) if fits is None or fits(i)]
        if not fitting:
            return None
        return Ref(fitting[-1 - self.number(0, len(fitting) - 1)])

    # What is known of the tensors

    def shape(self, x: int) -> tuple[int, ...]:
        return self.positions[x].shape  # type: ignore[no-any-return]

    def add_base(self, shape: tuple[int, ...], dtype: str, fortran: bool = False) -> Ref:
        count = int(np.prod(shape))
        positions = np.arange(count).reshape(shape, order="F" if fortran else "C")
        return self.add(positions, self.new_memory(), dtype)

    def new_memory(self) -> int:
        self.memories += 1
        return self.memories

    def add(self, positions: Any, base: int, dtype: str, is_view: bool = False) -> Ref:
        self.positions.append(positions)
        self.bases.append(base)
        self.dtypes.append(dtype)
        self.leaf.append(False)
        self.is_view.append(is_view)
        return Ref(len(self.positions) - 1)

    def step(self, kind: str, name: str, args: tuple[Any, ...], made: Any = ()) -> None:
        self.steps.append(Step(kind, name, args, tuple(made), self.no_grad))

    # The program

    def program(self, max_steps: int) -> Program:
        in_complex = self.rarely(6)
        leaves = []
        for i in range(self.number(1, 3)):
            leaf = Leaf(
                shape=self.pick(WEIGHTED_SHAPES),
                seed=self.number(0, 9),
                requires_grad=i == 0 or self.number(0, 1) == 1,
                is_complex=in_complex and (i == 0 or self.number(0, 2) > 0),
                fortran=self.rarely(4),
            )
            leaves.append(leaf)
            x = self.add_base(leaf.shape, "c" if leaf.is_complex else "f", leaf.fortran)
            self.leaf[x] = leaf.requires_grad
        # A leaf that requires a gradient cannot be written, so most programs begin with a copy.
        self.no_grad = False
        self.op("keep_order", (Ref(0),))
        for _ in range(max_steps):
            if not self.number(0, 12):  # the simplest draw ends the program: examples shrink
                break
            self.no_grad = self.rarely(10)
            kinds = ["op"] * 4 + ["view"] * 5 + ["write"] * 5 + ["setitem"] * 2
            kinds += ["views", "detach", "reshaper", "mark"]
            getattr(self, f"draw_{self.pick(kinds)}")()
        return Program(tuple(leaves), tuple(self.steps))

    # Ops

    def op(self, name: str, args: tuple[Any, ...]) -> None:
        """Add an op, if it accepts these arguments; running it on ones tells the shape."""
        given = [self.ones(a) if isinstance(a, Ref) else a for a in args]
        given = [flow.tensor(a) if isinstance(a, np.ndarray) else a for a in given]
        try:
            y = words.OPS[name](flow, *given)
        except flow.errors.FlowError:
            return
        kind = "c" if y.is_complex() else "f"
        fortran = name == "keep_order" and not self.positions[args[0]].flags.c_contiguous
        self.step("op", name, args, [self.add_base(y.shape, kind, fortran)])

    def ones(self, x: int) -> Any:
        return flow.ones(self.shape(x), dtype="complex128" if self.dtypes[x] == "c" else "float64")

    def fitting(self, x: int, name: str) -> bool:
        return self.dtypes[x] == "f" or name not in words.REAL_ONLY

    def draw_op(self) -> None:
        group = self.pick(["unary"] * 3 + ["binary"] * 4 + ["ternary", "along", "along", "other"])
        if group == "other":
            return self.draw_other_op()
        table: dict[str, Any] = getattr(words, group.upper())
        name = self.pick(table)
        x = self.tensor(lambda i: self.fitting(i, name))
        if x is None:
            return None
        args: list[Any] = [x]
        if group in ("binary", "ternary"):
            for _ in range(1 if group == "binary" else 2):
                y = self.tensor(lambda i: self.fitting(i, name) and self.broadcasts(args, i))
                if y is None:
                    return None
                args.append(y)
        elif group == "along":
            if not self.shape(x):
                return None
            args.append(self.number(-len(self.shape(x)), len(self.shape(x)) - 1))
        return self.op(name, tuple(args))

    def broadcasts(self, args: list[Any], y: int) -> bool:
        try:
            np.broadcast_shapes(*[self.shape(x) for x in args], self.shape(y))
        except ValueError:
            return False
        return True

    def draw_other_op(self) -> None:
        name = self.pick(
            ["matmul", "cat_of_two", "stack_of_two", "masked_fill", "index_select", "gather"]
            + ["index", "index_add", "scatter_add", "keep_order"]
        )
        x = self.tensor()
        assert x is not None
        shape = self.shape(x)
        if name in ("matmul", "cat_of_two", "stack_of_two"):
            y = self.tensor(
                lambda i: len(self.shape(i)) == len(shape) and self.shape(i)[-1:] == shape[-1:]
            )
            if name == "matmul":
                y = self.tensor(lambda i: self.shape(i)[:1] == shape[-1:])
            args = (x, y)
            if y is None:
                return
        elif name == "masked_fill":
            args = (x, self.mask(shape))
        elif name == "keep_order":
            if not self.positions[x].flags.forc:
                return
            args = (x,)
        else:
            found = self.indexed(self.shape(x))
            if found is None:
                return
            dim, index = found
            if name == "index_select":
                args = (x, dim, index)
            elif name == "index":
                args = (x, index)
            elif name == "gather":
                args = (x, dim, self.index_like(shape, dim))
            else:
                scattered = self.scattered(name, x, dim, index)
                if scattered is None:
                    return
                args = scattered
        self.op(name, args)

    def scattered(self, name: str, x: int, dim: int, index: Any) -> Any:
        """Return the arguments of index_add, scatter and scatter_add."""
        shape = self.shape(x)
        want = list(shape)
        if name.startswith("index_add"):
            want[dim] = len(index)
        source = self.tensor(
            lambda i: self.shape(i) == tuple(want) and self.dtypes[i] == self.dtypes[x]
        )
        if source is None:
            return None
        if not name.startswith("index_add"):
            index = self.index_like(shape, dim, unique=name.startswith("scatter_add") is False)
        return x, dim, index, source

    # Views

    def draw_view(self) -> None:
        name = self.pick(words.VIEWS)
        of_a_leaf = self.rarely(5)  # such a view is never written
        x = self.tensor(
            lambda i: (
                (of_a_leaf or not any(self.leaves_of(i)))
                and (self.dtypes[i] == "c" or name not in ("real", "imag"))
            )
        )
        if x is None:
            return
        args = self.view_arguments(name, self.shape(x))
        if args is None:
            return
        try:
            shown = words.VIEWS[name].positions(self.positions[x], *args)
        except (ValueError, IndexError):
            return
        dtype = "f" if name in ("real", "imag") else self.dtypes[x]
        if name in ("view", "reshape") and not np.shares_memory(shown, self.positions[x]):
            if shown.size:
                self.op("reshape_that_copies", (x, *args))
            return
        self.step("view", name, (x, *args), [self.add(shown, self.bases[x], dtype, True)])

    def draw_views(self) -> None:
        x = self.tensor(lambda i: len(self.shape(i)) > 0)
        if x is None:
            return
        name = self.pick(words.MULTI_VIEWS)
        dim = self.number(0, len(self.shape(x)) - 1)
        args = (dim,) if name == "unbind" else (self.number(1, 2), dim)
        shown = words.MULTI_VIEWS[name].positions(self.positions[x], *args)
        made = [self.add(p, self.bases[x], self.dtypes[x], True) for p in shown]
        self.step("views", name, (x, *args), made)

    def draw_detach(self) -> None:
        x = self.tensor()
        assert x is not None
        self.step(
            "detach", "detach", (x,), [self.add(self.positions[x], self.bases[x], self.dtypes[x])]
        )

    # Writes

    def target(self, fits: Any = None) -> Ref | None:
        """Choose a tensor to write into; seldom one that cannot be written."""
        hopeless = self.rarely(15)
        if self.rarely(8):
            self.no_grad = True
        return self.tensor(
            lambda i: (
                (hopeless or self.no_grad or not any(self.leaves_of(i)))
                and (fits is None or fits(i))
            )
        )

    def leaves_of(self, x: int) -> Any:
        pairs = zip(self.bases, self.leaf, strict=True)
        return [leaf for base, leaf in pairs if base == self.bases[x]]

    def draw_write(self) -> None:
        group = self.pick(["unary"] * 3 + ["binary"] * 4 + ["indexed", "scattered", "masked"])
        table: dict[str, Any] = getattr(words, f"WRITES_{group.upper()}")
        name = self.pick(table)
        x = self.target(lambda i: self.fitting(i, name))
        if x is None:
            return
        args: Any = (x,)
        if group == "binary":
            does_not_fit = self.rarely(20)
            y = self.tensor(
                lambda i: (
                    (does_not_fit or self.fits_into(self.shape(i), self.shape(x)))
                    and (self.dtypes[i] == "f" or self.dtypes[x] == "c")
                )
            )
            if y is None:
                return
            args = (x, y)
        elif group == "masked":
            args = (x, self.mask(self.shape(x)))
        elif group != "unary":
            found = self.indexed(self.shape(x))
            if found is None:
                return
            args = (x, *found)
            if group == "scattered":
                args = self.scattered(name, x, *found)
                if args is None:
                    return
        self.step("write", name, args)

    def fits_into(self, shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
        try:
            return np.broadcast_shapes(shape, target) == target
        except ValueError:
            return False

    def draw_setitem(self) -> None:
        x = self.target()
        if x is None:
            return
        shape = self.shape(x)
        what = self.pick(["basic", "basic", "basic", "mask", "integers", "mixed"])
        index: tuple[Any, ...]
        if what == "basic":
            index = self.basic_index(shape)
        elif what == "mask":
            index = (self.mask(shape if self.rarely(2) else shape[:1]),)
        else:
            if not shape or 0 in shape:
                return
            order = np.random.default_rng(self.number(0, 9)).permutation(shape[0])
            index = (order[: self.number(1, shape[0])],)
            if what == "mixed" and len(shape) > 1:
                index = (slice(None), self.number(0, shape[1] - 1), *index[1:])
        try:
            inner = np.broadcast_to(np.zeros(()), shape)[index].shape
        except IndexError:
            return
        value: Any = 0.35
        if self.number(0, 3):
            y = self.tensor(
                lambda i: self.fits_into(self.shape(i), inner) and self.dtypes[i] == self.dtypes[x]
            )
            value = value if y is None else y
        # With a single value, an element may be named twice.
        elif what == "integers" and self.rarely(2):
            index = (np.concatenate([index[0], index[0]]),)
        self.step("setitem", "setitem", (x, value, *index))

    def draw_reshaper(self) -> None:
        """Change how a tensor lies over its memory, as t_() does."""
        self.no_grad = False  # PyTorch would leave the old history with the new shape
        name = self.pick(words.RESHAPERS)
        # In PyTorch a gradient that is retained, or shown to hooks, stays that of the old shape.
        x = self.tensor(lambda i: not self.leaf[i] and i not in self.watched)
        if x is None:
            return
        view = words.RESHAPERS[name]
        args = self.view_arguments(view, self.shape(x))
        if args is None:
            return
        self.positions[x] = words.VIEWS[view].positions(self.positions[x], *args)
        self.step("reshaper", name, (x, *args))

    # Marks: what leaves values alone

    def used(self, x: int) -> bool:
        return any(isinstance(a, Ref) and a == x for step in self.steps for a in step.args)

    def draw_mark(self) -> None:
        name = self.pick(
            ["hook", "hook", "retain_grad", "retain_grad", "requires_grad_", "backward"]
            + ["scaling_hook", "backward_and_free"]
        )
        x = self.tensor()
        assert x is not None
        if name == "scaling_hook" and self.is_view[x]:
            name = "hook"  # PyTorch forgets it when the view is written
        if name == "requires_grad_":
            # What of a tensor that has views, or was used before it became a leaf, is a question
            # of its own.
            if self.bases.count(self.bases[x]) > 1 or self.used(x):
                return
            self.leaf[x] = True
        if name == "retain_grad" or name.endswith("hook"):
            self.watched.add(x)
        self.step("mark", name, (x,))
