"""SBP rules: in which ways ranks can do an op with parts of its inputs.

An op's rule stands where its kernel is registered, `register_kernel(..., sbp=...)`. It is

- letters, one for each dimension, as "...mk,...kn->...mn": a letter that an output has may be
  split, and the output is split there; a letter that is summed over leaves a partial sum. Capital
  letters are never split, "*" stands for further unsplit dimensions at the end, "..." for
  dimensions that broadcast. Behind the arrow stands a text for each output, or a single text for
  all outputs. A text may leave out dimensions at its end.
- "elementwise": any dimension, except where the attributes dim or dims name it.
- "reduce": any dimension that is left; of a `linear` op also a summed dimension. "mean" weighs
  the parts by their sizes.
- "whole": each rank does all of it.
- a function of the inputs' shapes (None for an omitted input) and the attributes, which returns a
  rule or a `Way`, or yields several.

Most ops declare none: the rule follows from how their shapes are inferred
(`kernels/infer_rules.py`), from a scalar expression, or, of views, from where the dimensions go.
`linear="x+y z"` declares that the op is linear in x and y together, and in z: so terms of sums go
through. Without it, an op whose first input is called dy or dz is linear in this input, and a view
in its base.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import attrs as attrs_library
import numpy as np

from oneflow_lite.ops.op_expr import OpExpr, op_expr
from oneflow_lite.ops.registry import KERNELS, Lines

Sig = int | str
Attrs = dict[str, Any]
Shapes = Sequence[Any]


@attrs_library.define(eq=False)
class Way:
    """A way to do an op with parts.

    Attributes
    ----------
    ins, outs : tuple
        A signature for each input and output, an int for a split dimension, "B" or "P"; a single
        signature for all outputs alike.
    size : int
        The whole size of the dimension that is split: by default its size in the inputs.
    out_sizes : tuple of int
        The size in each output, where it differs.
    unit : int
        A number that the number of ranks has to divide; 0 for any number of ranks.
    fit : callable, optional
        Attributes for a part: `fit(attrs, share)`, `share(n)` the part of a size n. An attribute
        `shape` is the output's, and fits by itself.
    mean : bool
        Whether the parts' results count by their sizes.
    run : callable, optional
        Does the op itself: `run(line, arrays, attrs)`, with the ranks in line.
    moved : float
        Elements that `run` lets each rank send.
    """

    ins: tuple[Sig, ...]
    outs: tuple[Sig, ...]
    size: int = 0
    out_sizes: tuple[int, ...] = ()
    unit: int = 0
    fit: Callable[[Attrs, Callable[[int], int]], Attrs] | None = None
    mean: bool = False
    run: Callable[..., Any] | None = None
    moved: float = 0


Rule = str | Callable[[Shapes, Attrs], Any]


def ways_of(op: OpExpr, shapes: Shapes, attrs: Attrs) -> list[Way] | None:
    """Return the ways to do an op with parts; None where no rule is declared or follows.

    >>> from oneflow_lite.ops.op_expr import op_expr
    >>> [(way.ins, way.outs) for way in ways_of(op_expr("dot"), [(6,), (6,)], {})]
    [((0, 0), ('P',)), (('P', 'B'), ('P',)), (('B', 'P'), ('P',))]
    """
    schema = op.schema
    rule, terms = rule_of(op)
    if rule is None and not terms:
        return None
    ways = [] if rule is None else list(_ways(rule, bool(terms), shapes, attrs))
    for way in ways:
        split = zip(way.ins, shapes, strict=True)
        way.size = way.size or next((s[i] for i, s in split if isinstance(i, int)), 0)
        if way.fit is None and way.outs and isinstance(way.outs[0], int) and "shape" in attrs:
            to = way.outs[0]
            # A `view` that merges dimensions splits rows of the merged dimension, not its elements.
            rows = 0 if attrs["shape"][to] == way.size else way.size
            way.fit = functools.partial(_fit_shape, to, rows)
    names = (*schema.inputs, *[schema.variadic] * (len(shapes) - len(schema.inputs)))
    for term in terms:
        ways.append(Way(tuple("P" if name in term else "B" for name in names), ("P",)))
    return ways


@functools.cache
def _declared(schema: Any, name: str) -> tuple[Rule | None, list[list[str]]]:
    linear = schema.linear
    if schema.effect:  # its effect is this rank's own, such as a message
        return None, []
    if linear is None:
        first = schema.inputs[0] if schema.inputs else ""
        linear = schema.view_of or (first if first in ("dy", "dz") else "")
    rule: Rule | None = schema.sbp
    if rule is None:
        rule = getattr(schema.infer, "sbp", None)
    if rule is None and schema.view_of is not None:
        rule = functools.partial(_view, name)
    base = KERNELS.find(name.removesuffix("_grad"), known_only=True)
    if rule is None and "shape" in schema.attrs and base is not None and base.schema.view_of:
        rule = functools.partial(_view_grad, name.removesuffix("_grad"))
    scalar = KERNELS.get(name).scalar
    if rule is None and scalar is not None and not isinstance(scalar, Lines):
        rule = None if "dim" in schema.attrs else "elementwise"
    return rule, [term.split("+") for term in linear.split()]


def rule_of(op: OpExpr) -> tuple[Rule | None, list[list[str]]]:
    """Return the rule of an op, and lists of inputs in which it is linear together."""
    return _declared(op.schema, op.op_type_name)


def by_kernel(line: Any, arrays: Sequence[Any], attrs: Attrs) -> Any:
    """Let the kernel itself exchange numbers with the ranks in line: it has a parameter `line`."""
    return line.kernel(*arrays, **attrs, line=line)


def _fit_shape(dim: int, size: int, attrs: Attrs, share: Callable[[int], int]) -> Attrs:
    """Give the attribute `shape` the share of a dimension, or of its rows, `size` in number."""
    shape = list(attrs["shape"])
    shape[dim] = shape[dim] * share(size) // size if size else share(shape[dim])
    return {**attrs, "shape": tuple(shape)}


def _ways(rule: Any, linear: bool, shapes: Shapes, attrs: Attrs) -> Iterator[Way]:
    if isinstance(rule, Way):
        yield rule
    elif callable(rule):
        yield from _ways(rule(shapes, attrs), linear, shapes, attrs)
    elif not isinstance(rule, str):
        for each in rule:
            yield from _ways(each, linear, shapes, attrs)
    elif rule == "elementwise":
        ndim = max([len(s) for s in shapes if s is not None], default=0)
        whole = dims(attrs, ndim) if {"dim", "dims"} & attrs.keys() else set()
        names = [None if d in whole else d for d in range(ndim)]
        given = [[] if s is None else names[ndim - len(s) :] for s in shapes]
        yield from letters(given, [names], shapes)
    elif rule in ("reduce", "mean"):
        every, gone = range(len(shapes[0])), dims(attrs, len(shapes[0]))
        left = [None if d in gone else d for d in every]
        out = left if attrs.get("keepdim", False) else [d for d in every if d not in gone]
        for way in letters([every if linear else left], [out], shapes):
            way.mean = rule == "mean" and way.outs == ("P",)
            yield way
    elif rule != "whole":
        inputs, _, outputs = rule.partition("->")
        yield from letters(inputs.split(","), outputs.split(","), shapes)


def dims(attrs: Attrs, ndim: int) -> set[int]:
    """Return which dimensions the attribute dim or dims names; None names all."""
    dim = attrs.get("dim", attrs.get("dims"))
    if dim is None:
        return set(range(ndim))
    return {d % ndim if ndim else d for d in (dim if isinstance(dim, (tuple, list)) else (dim,))}


def letters(
    inputs: Sequence[Sequence[Any] | str], outputs: Sequence[Sequence[Any] | str], shapes: Shapes
) -> Iterator[Way]:
    """Yield the ways of an op by the letters, or other names, of its dimensions.

    A text as in this file's first lines, or a list of names, of which None is never split.
    """
    longest: list[Any] = []
    named: list[list[Any]] = []
    sizes: dict[Any, int] = {}
    for text, shape in zip(inputs, shapes, strict=True):
        listed = _listed(text) if shape is not None else []
        more = len(shape or ()) - len(listed) + 1
        if "." in listed:
            dots = [-(k + 1) for k in reversed(range(more))]
            longest = max(longest, dots, key=len)
            listed = _put(listed, ".", dots)
        named.append(_put(listed, "*", [None] * more))
        for letter, n in zip(named[-1], shape or (), strict=True):
            if letter is not None and not (isinstance(letter, str) and letter.isupper()):
                sizes[letter] = max(n, sizes.get(letter, 0))
    made = [_put(_put(_listed(text), ".", longest), "*", []) for text in outputs]
    for letter, size in sizes.items():
        ins: list[Sig] = []
        for listed, shape in zip(named, shapes, strict=True):
            at = listed.index(letter) if letter in listed else None
            # An input of size 1 there broadcasts, so each rank needs it whole.
            ins.append("B" if at is None or shape[at] != size else at)
        outs = tuple(listed.index(letter) if letter in listed else "P" for listed in made)
        yield Way(tuple(ins), outs, size)


def _listed(text: Sequence[Any] | str) -> list[Any]:
    return list(text.replace("...", ".") if isinstance(text, str) else text)


def _put(listed: list[Any], name: str, names: list[Any]) -> list[Any]:
    """Replace a name in a list by several names."""
    at = listed.index(name) if name in listed else len(listed)
    return [*listed[:at], *(names if at < len(listed) else ()), *listed[at + 1 :]]


# Views: a dimension of x is the dimension of the view that has its size and stride


def _view(name: str, shapes: Shapes, attrs: Attrs) -> Iterable[Way]:
    return [Way((i,), (j,)) for i, j in same_dims(name, shapes[0], attrs)]


def _view_grad(name: str, shapes: Shapes, attrs: Attrs) -> Iterable[Way]:
    given = {x: attrs[x] for x in op_expr(name).schema.attrs if x != "shape"}
    shape = attrs["shape"]
    return [Way((j,), (i,), shape[i]) for i, j in same_dims(name, shape, given)]


def same_dims(name: str, shape: Any, attrs: Attrs) -> Iterator[tuple[int, int]]:
    """Yield (i, j) where dimension i of x is dimension j of its view."""
    if 0 in shape:
        return
    view = op_expr(name).kernel(np)

    def seen(size: Sequence[int], attrs: Attrs) -> Any:
        try:
            return view(np.empty(size, np.int8), **attrs)
        except (ValueError, IndexError):
            return None

    # The view of a phantom tells it, for any op: first equal strides, then a try with one row less.
    strides, y = np.empty(shape, np.int8).strides, seen(shape, attrs)
    for i, n in enumerate(shape):
        for j, size in enumerate(() if y is None else y.shape):
            if n == size > 1 and strides[i] == y.strides[j]:
                fitted = _fit_shape(j, 0, attrs, lambda n: n - 1) if "shape" in attrs else attrs
                part = seen((*shape[:i], n - 1, *shape[i + 1 :]), fitted)
                if part is not None and part.shape == (*y.shape[:j], n - 1, *y.shape[j + 1 :]):
                    yield i, j
