"""Programs: a few tensors and a list of steps over them, and the strategy that draws them.

While a program is drawn, each tensor is followed as an array of positions in its memory: that
gives shapes, tells a view from a copy, and costs nothing.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from hypothesis import strategies as st

import oneflow_lite as flow
from tests.fuzz import vocabulary as words


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


SHAPES = [
    (), (1,), (2,), (3,), (2, 3), (3, 2), (2, 2), (3, 3), (1, 3), (2, 1), (2, 1, 3), (2, 3, 2),
    (0,), (2, 0),
]  # fmt: skip
WEIGHTED_SHAPES = SHAPES[2:8] * 3 + SHAPES


@st.composite
def programs(draw: Any, max_steps: int = 16) -> Program:
    """Draw a program."""
    return _Writer(draw).program(max_steps)


class _Writer:
    """Draws one program, step by step, knowing what the tensors look like by then."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.positions: list[Any] = []  # by tensor: the positions of its memory that it shows
        self.bases: list[int] = []  # by tensor: which memory
        self.dtypes: list[str] = []  # by tensor: "f" or "c"
        self.leaf: list[bool] = []  # by tensor: whether it is a leaf that requires a gradient
        self.memories = 0
        self.steps: list[Step] = []

    # What is drawn

    def pick(self, choices: Any) -> Any:
        return self.draw(st.sampled_from(list(choices)))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def rarely(self, one_in: int) -> bool:
        return self.number(1, one_in) == one_in

    def tensor(self, fits: Any = None) -> Ref | None:
        """Choose a tensor, rather a young one."""
        fitting = [i for i in range(len(self.positions)) if fits is None or fits(i)]
        if not fitting:
            return None
        return Ref(fitting[self.number(0, len(fitting) - 1)])

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

    def add(self, positions: Any, base: int, dtype: str) -> Ref:
        self.positions.append(positions)
        self.bases.append(base)
        self.dtypes.append(dtype)
        self.leaf.append(False)
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
            found = self.indexed(x)
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

    def mask(self, shape: tuple[int, ...]) -> Any:
        return np.asarray(np.random.default_rng(self.number(0, 9)).random(shape) < 0.5)

    def indexed(self, x: int) -> Any:
        """Draw a dimension of `x` and some indices into it, all different."""
        shape = self.shape(x)
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

    def reshaping(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        count = int(np.prod(shape))
        if not count:
            return (0,)
        choices = [(count,), (1, count), (count, 1)]
        choices += [(k, count // k) for k in (2, 3) if count % k == 0]
        choices += [(2, 2, count // 4)] if count % 4 == 0 else []
        return self.pick(choices)

    def draw_view(self) -> None:
        name = self.pick(words.VIEWS)
        x = self.tensor(lambda i: (self.dtypes[i] == "c") or name not in ("real", "imag"))
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
        self.step("view", name, (x, *args), [self.add(shown, self.bases[x], dtype)])

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

    def draw_views(self) -> None:
        x = self.tensor(lambda i: len(self.shape(i)) > 0)
        if x is None:
            return
        name = self.pick(words.MULTI_VIEWS)
        dim = self.number(0, len(self.shape(x)) - 1)
        args = (dim,) if name == "unbind" else (self.number(1, 2), dim)
        shown = words.MULTI_VIEWS[name].positions(self.positions[x], *args)
        made = [self.add(p, self.bases[x], self.dtypes[x]) for p in shown]
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
            found = self.indexed(x)
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
        x = self.tensor(lambda i: not self.leaf[i])
        if x is None:
            return
        view = words.RESHAPERS[name]
        args = self.view_arguments(view, self.shape(x))
        if args is None:
            return
        self.positions[x] = words.VIEWS[view].positions(self.positions[x], *args)
        self.step("reshaper", name, (x, *args))

    # Marks: what leaves values alone

    def draw_mark(self) -> None:
        name = self.pick(
            ["hook", "hook", "retain_grad", "retain_grad", "requires_grad_", "backward"]
            + ["scaling_hook", "backward_and_free"]
        )
        x = self.tensor()
        assert x is not None
        if name == "requires_grad_":
            if self.bases.count(self.bases[x]) > 1:
                return  # what views of a late leaf are is a question of its own
            self.leaf[x] = True
        self.step("mark", name, (x,))
