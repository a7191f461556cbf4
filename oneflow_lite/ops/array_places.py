"""Places of arrays in a larger array: the dimensions that they follow, and the reduced dimensions.

The elements of the largest array of a call stand in one row. An array that is broadcast, or
reduced, or seen in another shape has a place in that row. The place of an element has digits, one
for each dimension; an array follows some of the digits. A `Place` names each followed digit by the
sizes below it and up to it, so that equal places are equal whatever the shapes:

>>> from oneflow_lite.ops.array_places import place_of
>>> place_of((4, 2, 3), (4, 2, 3)), place_of((4, 6), (4, 1)), place_of((4, 2, 3), (2, 3))
(((1, 24, 1),), ((6, 24, 1),), ((1, 6, 1),))
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import attrs
import numpy as np

from oneflow_lite.ops.scalar_expression import Scalar

Shape = tuple[int, ...]
# (low, high, stride) from the innermost on: steps of `low` in the row, up to `high`, are steps of
# `stride` in the array, in elements.
Place = tuple[tuple[int, int, int], ...]


@functools.lru_cache(4096)
def place_of(whole: Shape, own: Shape, strides: Shape | None = None) -> Place | None:
    """Return where an array of a shape `own` lies in one of shape `whole`, as it is broadcast.

    Strides are in elements; None is C order. The result is None where `own` does not fit.
    """
    place: list[tuple[int, int, int]] = []
    low = step = 1
    padded = (1,) * (len(whole) - len(own)) + tuple(own)
    given = padded if strides is None else (0,) * (len(whole) - len(own)) + tuple(strides)
    if len(padded) != len(whole):
        return None
    for n, m, stride in zip(reversed(whole), reversed(padded), reversed(given), strict=True):
        if m not in (1, n):
            return None
        stride = step if strides is None else stride
        high = low * n
        if m != 1 and stride:
            # A dimension that continues the steps of the one inside it is no digit of its own:
            # two shapes of the same row then have the same place.
            if place and place[-1][1] == low and stride * place[-1][0] == place[-1][2] * low:
                place[-1] = (place[-1][0], high, place[-1][2])
            else:
                place.append((low, high, stride))
        low, step = high, step * m
    return tuple(place)


def scaled(place: Place, by: int) -> Place:
    """Return a place in a row that is `by` times as long, at steps of `by`."""
    return tuple([(low * by, high * by, stride) for low, high, stride in place])


@attrs.frozen
class Frame:
    """The layout of the arrays of a call of an op: for each its whole shape and its own.

    Attributes
    ----------
    size : int
        The number of elements that the op goes over.
    line : Place
        The dimensions that it reduces.
    inputs : dict of str to (tuple, tuple)
    outputs : list of (tuple, tuple)
        Of each array the whole shape, and its own.
    """

    size: int
    line: Place
    inputs: dict[str, tuple[Shape, Shape]]
    outputs: list[tuple[Shape, Shape]]

    @property
    def count(self) -> int:
        """The number of elements in a line."""
        return math.prod([high // low for low, high, _ in self.line])


def frame_of(
    scalar: Scalar,
    shapes: Mapping[str, Shape],
    outputs: Sequence[Shape],
    attributes: Mapping[str, Any],
) -> Frame:
    """Return how the arrays of a call lie.

    `Lines.places` says so. It returns, by input and by position of an output, the whole shape and
    the array's own; under "line" the whole shape, and the shape with one element for each line.
    Without it the attribute `dim` decides: the first input is whole, and an output has its shape,
    or one element for each line.
    """
    said = {}
    if scalar.lines is not None and scalar.lines.places is not None:
        said = scalar.lines.places(dict(shapes), **attributes)
    line: Place = ()
    whole = outputs[0]
    if scalar.reduces:
        if "line" in said:
            whole, kept = said["line"]
        else:
            whole = next(iter(shapes.values()))
            dim = attributes["dim"]
            dims = (dim,) if isinstance(dim, int) else range(len(whole)) if dim is None else dim
            reduced = {d % max(len(whole), 1) for d in dims}
            kept = tuple([1 if i in reduced else n for i, n in enumerate(whole)])
        # A line runs along the dimensions that an array with one element per line lacks.
        followed = [n if n != m else 1 for n, m in zip(whole, kept, strict=True)]
        line = place_of(whole, tuple(followed)) or ()
    size = math.prod(whole)

    def seen(key: Any, shape: Shape) -> tuple[Shape, Shape]:
        if key in said:
            layout: tuple[Shape, Shape] = said[key]
            return layout
        if scalar.reduces and isinstance(key, int) and shape != whole:
            return whole, kept
        return whole, shape

    return Frame(
        size,
        line,
        {name: seen(name, shape) for name, shape in shapes.items()},
        [seen(i, shape) for i, shape in enumerate(outputs)],
    )


def ends_of(places: Sequence[Place], size: int) -> list[int]:
    """Return where dimensions must end so that each place follows a dimension wholly or not."""
    ends = {n for place in places for low, high, _ in place for n in (low, high)}
    return sorted({1, size, *ends}) if size > 1 else [1, 1]


def evaluated(
    scalar: Scalar,
    arrays: Mapping[str, Any],
    outputs: Sequence[Shape],
    attributes: Mapping[str, Any],
) -> list[Any]:
    """Return the results of a call, computed by NumPy from the op's scalar expression.

    Parameters
    ----------
    scalar : Scalar
    arrays : mapping of str to array or None
    outputs : sequence of tuple
        The shapes of the results.
    attributes : mapping
    """
    shapes = {name: x.shape for name, x in arrays.items() if x is not None}
    frame = frame_of(scalar, shapes, outputs, attributes)
    lies = [*frame.inputs.values(), *frame.outputs]
    cuts = ends_of([*[place_of(*each) or () for each in lies], frame.line], frame.size)

    def dims(place: Place | None) -> list[int]:
        return [i for i, stride in enumerate(strides_in(place or (), cuts)) if stride]

    def shape(whole: Shape, own: Shape) -> Shape:
        follows = dims(place_of(whole, own))
        return tuple([n if i in follows else 1 for i, n in enumerate(sizes)])

    sizes = tuple([b // a for a, b in pairwise(cuts)][::-1])
    given = {
        name: None if x is None else np.reshape(x, shape(*frame.inputs[name]))
        for name, x in arrays.items()
    }
    followed = [dims(place_of(*each)) for each in frame.outputs]
    value = scalar.evaluate(given, attributes, dims(frame.line), followed, sizes)
    results = value if scalar.results > 1 else [value]
    return [
        np.broadcast_to(x, shape(*each)).reshape(own)
        for x, each, own in zip(results, frame.outputs, outputs, strict=True)
    ]


def divide(cuts: Collection[int]) -> bool:
    """Return whether numbers can be the ends of dimensions: each divides the next."""
    return all([b % a == 0 for a, b in pairwise(sorted(cuts))])


def strides_in(place: Place, cuts: Sequence[int]) -> tuple[int, ...]:
    """Return the stride of an array along each dimension between cuts, the innermost last."""
    strides = []
    for low in cuts[:-1]:
        inside = [(a, s) for a, b, s in place if a <= low < b]
        strides.append(inside[0][1] * (low // inside[0][0]) if inside else 0)
    return tuple(reversed(strides))
