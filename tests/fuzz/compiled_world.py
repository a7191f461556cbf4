"""Words of random programs for `flow.compile`: data, derivatives, and exceptions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite.errors import GradientError
from tests.fuzz.eager import weights

STAYING = ("backward", "last", "retained")  # ways that leave something in .grad


class Refused(Exception):
    """A compiled function said that it has no second derivative."""


def attempt(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function; return the name of the class of what it raises, instead."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        if isinstance(error, GradientError) and "compiled function that" in str(error):
            raise Refused(str(error)) from error
        return ["raised", type(error).__name__]


def data(
    shape: tuple[int, ...],
    seed: int,
    layout: str = "C",
    dtype: str = "float64",
    requires_grad: bool = False,
) -> flow.Tensor:
    """Return a tensor of random numbers; `layout` is C, F, gapped or reversed."""
    random = np.random.default_rng(seed)
    values = random.uniform(-1.2, 1.5, shape).astype(dtype)
    if values.dtype.kind == "c":
        values = np.asarray(values + 1j * random.uniform(-1.2, 1.5, shape))
    if layout == "F":
        values = np.asarray(values, order="F")
    elif layout == "gapped" and shape:
        values = np.repeat(values, 2, axis=-1)[..., ::2]
    elif layout == "reversed" and shape:
        values = values[::-1].copy()[::-1]
    x = flow.from_numpy(values)
    return x.requires_grad_() if requires_grad else x


def tensors_in(thing: Any) -> Iterator[flow.Tensor]:
    """Go through the tensors in nested containers."""
    if isinstance(thing, flow.Tensor):
        yield thing
    elif isinstance(thing, (list, tuple)):
        for item in thing:
            yield from tensors_in(item)
    elif isinstance(thing, dict):
        yield from tensors_in(list(thing.values()))


def versions(*things: Any) -> list[Any]:
    """Return what is counted and known of the tensors in nested containers, gradients too."""
    return [(x._version, x.is_view(), str(x.device), versions(x.grad)) for x in tensors_in(things)]


def objective(tensors: list[flow.Tensor | None], order: int) -> Any:
    """Return a real number made of all elements of some tensors; None takes a place as well."""
    terms = []
    for k, x in enumerate(tensors):
        if x is None:
            continue
        weighted = x * flow.tensor(weights(tuple(x.shape), order + k, x.is_complex()))
        terms.append(weighted.sum().real if x.is_complex() else weighted.sum())
    return sum(terms[1:], terms[0])


def derive(
    out: Any, inputs: list[flow.Tensor], how: str, log: list[flow.Tensor] | None = None
) -> Any:
    """Differentiate what a function returned; return what was found, and what hooks noted in `log`.

    `how` is "backward" (from the last output alone: "last"; twice: "retained"), "grad" or "several"
    (of the results of several calls), or "second" for second derivatives.
    """
    found = _derive(out, inputs, how)
    if log is None:
        return found
    # How far a pass came before it failed is not compared, nor by how many ways it went through
    # what is recorded.
    noted = [] if how == "second" or "raised" in str(found) else list(log)
    log.clear()
    return found, noted


def _derive(out: Any, inputs: list[flow.Tensor], how: str) -> Any:
    outputs = [x for x in tensors_in(out) if x.requires_grad]
    if how in STAYING:  # of other outputs, gradients are added up outside the function as well
        outputs = [x for x in outputs if not (x.is_leaf or x.is_view())]
        outputs = [x for x in outputs if not any(x is y for y in inputs)]
    if not outputs:
        return None
    if how == "last":
        outputs = outputs[-1:]
    total = attempt(objective, outputs, 0)
    if not isinstance(total, flow.Tensor):
        return total
    if how in ("backward", "last"):
        return attempt(total.backward)
    if how == "retained":
        return attempt(total.backward, retain_graph=True), attempt(total.backward)
    leaves = list({id(x): x for x in inputs if x.requires_grad}.values())
    if not leaves:
        return None
    options = {"allow_unused": True, "create_graph": how == "second"}
    found = attempt(flow.autograd.grad, total, leaves, **options)
    if how != "second" or found[0] == "raised":
        return found
    first = [g if g is not None and g.requires_grad else None for g in found]
    second = [None] * len(leaves)
    if any(g is not None for g in first):
        total = objective(first, 3)
        second = attempt(flow.autograd.grad, total, leaves, allow_unused=True)
        if second[0] == "raised":
            return second
    # Where there is no second derivative it is zero, and whoever knows may say so.
    second = [flow.zeros_like(x) if g is None else g for x, g in zip(leaves, second, strict=True)]
    return [None if g is None else g.detach() for g in found], second
