"""Custom Functions under transforms: their own tangents, and their own way over a batch.

A series is taken off the arguments before a Function's `forward` runs. The tangents of its outputs
then come from its `jvp`, or else from its `backward`: that is linear in the gradient, and its
transpose is the product with the Jacobian (Townsend, "A new trick for calculating Jacobian vector
products", 2017). The tangents of the ops in `forward` do not count, as their gradients do not.

A batch stays on the arguments, for ops go over batches themselves. It is taken off where a Function
has a `vmap`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import attrs

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F
from oneflow_lite.autograd.engine.run import grad
from oneflow_lite.errors import GradientError, NotDifferentiableError, ShapeError, TransformError
from oneflow_lite.tensors.mode import enable_grad, local as thread, no_grad
from oneflow_lite.tensors.tensor import Tensor, make_tensor
from oneflow_lite.tensors.views import check_history
from oneflow_lite.transforms.batching import BatchLevel
from oneflow_lite.transforms.forward import JetLevel, any_of
from oneflow_lite.transforms.levels import LevelArray, levels_of, top_level

Coefficients = Sequence[Any]  # Tensor, or None for zero


class VmapInfo(NamedTuple):
    """The size and the randomness of a batch, as the `vmap` of a Function gets them."""

    batch_size: int
    randomness: str


@attrs.frozen
class FunctionRules:
    """The methods of a Function, those that it does not define as None.

    Attributes
    ----------
    run : callable
        `run(ctx, args)`: call `forward`, and `setup_context`.
    """

    name: str
    run: Callable[..., Any]
    backward: Callable[..., Any]
    setup_context: Callable[..., Any] | None
    jvp: Callable[..., Any] | None
    vmap: Callable[..., Any] | None
    generate_vmap_rule: bool


def run_on_levels(rules: FunctionRules, ctx: Any, args: tuple[Any, ...]) -> Any:
    """Return what the forward of a Function returns; some of its arguments carry levels."""
    tensors = [x for x in args if isinstance(x, Tensor)]
    jets = [level for x in tensors for level in levels_of(x) if isinstance(level, JetLevel)]
    if not jets:
        return _on_batches(rules, ctx, args, tensors)
    level = max(jets, key=lambda level: level.number)
    given = [_coefficients(x, level) if isinstance(x, Tensor) else None for x in args]
    order = min([len(s) for s in given if s is not None]) - 1
    lower = tuple(
        [x if s is None else _joined(level, s[:order]) for x, s in zip(args, given, strict=True)]
    )
    output = run_on_levels(rules, ctx, lower)
    outputs = output if isinstance(output, tuple) else (output,)
    results = list(outputs)
    if not (level.ended and thread.task is None):
        slopes = [None if s is None else _slope(level, s[: order + 1]) for s in given]
        fixed = {id(y) for y in ctx._non_differentiable}
        smooth = [
            isinstance(y, Tensor) and y.dtype.kind in "fc" and id(y) not in fixed for y in outputs
        ]
        moved = _push(rules, ctx, lower, outputs, slopes, smooth)
        for n, (y, slope) in enumerate(zip(outputs, moved, strict=True)):
            if smooth[n]:
                results[n] = _output(level, y, slope, order)
    _rename(ctx, args, lower, outputs, results)
    return tuple(results) if isinstance(output, tuple) else results[0]


# --- Series ---------------------------------------------------------------------------------------


def _coefficients(x: Tensor, level: JetLevel) -> Coefficients | None:
    """Return the coefficients at a level below batches; None where the tensor is constant there."""
    if level not in levels_of(x):
        return None
    above: Any = x._data.level
    if above is level:
        own: Coefficients | None = level.series(x)
        return own
    inner = _coefficients(x._data.parts[0], level)
    assert inner is not None
    return [None if c is None else make_tensor(above.array(c)) for c in inner]


def _joined(level: JetLevel, coefficients: Coefficients) -> Tensor:
    """Return the tensor of coefficients, with the batches above the level outermost."""
    first, *rest = coefficients
    if first is None:
        first = FUNCTORS_F.zeros_like(next(c for c in rest if c is not None))
    if not rest:
        return make_tensor(first._data)
    given = [first, *rest]
    above: Any = top_level([c for c in given if c is not None])
    if above is None or above.number < level.number:
        return make_tensor(
            level.array([None if c is None else make_tensor(c._data) for c in given])
        )
    parts = []
    for c in given:
        own = c is not None and isinstance(c._data, LevelArray) and c._data.level is above
        if own:
            c = c._data.parts[0]
        elif c is not None:
            c = FUNCTORS_F.expand(c, shape=(above.size, *c.shape))
        parts.append(c)
    return make_tensor(above.array(_joined(level, parts)))


def _slope(level: JetLevel, series: Coefficients) -> Tensor | None:
    """Return the derivative of a series by t; None where it is zero."""
    if not any_of(series[1:]):
        return None
    return _joined(
        level,
        [
            c if c is None or j == 1 else FUNCTORS_F.mul_scalar(c, factor=j)
            for j, c in enumerate(series[1:], 1)
        ],
    )


def _output(level: JetLevel, y: Tensor, slope: Any, order: int) -> Tensor:
    """Return an output with one more coefficient, which is that of its derivative by t."""
    before = [*(_coefficients(y, level) or (y,))][:order]
    before += [None] * (order - len(before))
    last = None
    if slope is not None:
        found = _coefficients(slope, level) or (slope,)
        last = found[order - 1] if len(found) >= order else None
    if last is not None and order > 1:
        last = FUNCTORS_F.mul_scalar(last, factor=1 / order)
    return _joined(level, [*before, last]) if any_of([*before[1:], last]) else y


def _rename(
    ctx: Any,
    args: Sequence[Any],
    lower: Sequence[Any],
    outputs: Sequence[Any],
    results: list[Any],
) -> None:
    """Let the ctx hold arguments and results with their tangents."""
    names = {id(y): z for y, z in zip(outputs, results, strict=True) if isinstance(y, Tensor)}
    written = {id(x) for x in ctx._dirty}
    for x, own in zip(args, lower, strict=True):
        if not isinstance(x, Tensor):
            continue
        if id(own) in written and id(own) in names:
            if x._view is not None:
                raise TransformError(
                    f"{ctx._name}: forward writes to a view in place, which tangents do not "
                    "follow; clone() the view"
                )
            if ctx._recorded and own is not x:
                check_history(f"{ctx._name}: mark_dirty", x, x.dtype.kind in "fc")
            x._data = names[id(own)]._data
            places = [n for n, y in enumerate(outputs) if y is own]
            for n in places:
                results[n] = x
        names[id(own)] = x

    def renamed(tensors: Sequence[Any]) -> tuple[Any, ...]:
        return tuple([names.get(id(x), x) for x in tensors])

    ctx._to_save, ctx._for_forward = renamed(ctx._to_save), renamed(ctx._for_forward)
    ctx._dirty, ctx._non_differentiable = renamed(ctx._dirty), renamed(ctx._non_differentiable)
    for name, value in list(vars(ctx).items()):
        if name[0] != "_" and isinstance(value, Tensor):
            setattr(ctx, name, names.get(id(value), value))


# --- Products with the Jacobian -------------------------------------------------------------------


def _push(
    rules: FunctionRules,
    ctx: Any,
    args: Sequence[Any],
    outputs: Sequence[Any],
    tangents: Sequence[Any],
    smooth: Sequence[bool],
) -> Sequence[Any]:
    """Return J v for each output, None where it is zero."""
    if not any_of(tangents) or True not in smooth:
        return [None] * len(outputs)
    if rules.jvp is None:
        return _transposed(rules, ctx, outputs, tangents, smooth)
    if ctx._materialize:
        tangents = [
            FUNCTORS_F.zeros_like(x)
            if t is None and isinstance(x, Tensor) and x.dtype.kind in "fc"
            else t
            for x, t in zip(args, tangents, strict=True)
        ]
    with _opened(ctx, ctx._for_forward or ctx._to_save):
        try:
            made = rules.jvp(ctx, *tangents)
        except Exception as error:
            error.add_note(f"in the jvp of {rules.name}")
            raise
    made = made if isinstance(made, tuple) else (made,)
    if len(made) != len(outputs):
        raise GradientError(
            f"{rules.name}: jvp returned {len(made)} tangent(s), expected {len(outputs)}, one per "
            "output of forward; return None for an output without a tangent"
        )
    return [
        _checked(rules, n, t, y) if has else None
        for n, (t, y, has) in enumerate(zip(made, outputs, smooth, strict=True))
    ]


def _checked(rules: FunctionRules, n: int, tangent: Any, y: Tensor) -> Any:
    if tangent is None:
        return None
    if not isinstance(tangent, Tensor) or tangent.shape != y.shape:
        got = tangent.shape if isinstance(tangent, Tensor) else type(tangent).__name__
        raise ShapeError(
            f"{rules.name}: jvp returned a wrong tangent for output {n} of forward: expected a "
            f"tensor of shape {y.shape} or None, got {got}"
        )
    return tangent if tangent.dtype == y.dtype else FUNCTORS_F.cast(tangent, dtype=y.dtype)


def _transposed(
    rules: FunctionRules,
    ctx: Any,
    outputs: Sequence[Any],
    tangents: Sequence[Any],
    smooth: Sequence[bool],
) -> Sequence[Any]:
    """Transpose the backward: differentiate it by the gradient that it is linear in."""
    if getattr(rules.backward, "once_differentiable", False):
        raise NotDifferentiableError(
            f"{rules.name}: its backward is marked with @once_differentiable, so tangents do not "
            "follow from it; define the static method jvp(ctx, *tangents)"
        )
    needs = tuple([t is not None for t in tangents])
    with enable_grad():
        us = [
            None if not isinstance(y, Tensor) else FUNCTORS_F.zeros_like(y).requires_grad_(has)
            for y, has in zip(outputs, smooth, strict=True)
        ]
        with _opened(ctx, ctx._to_save, needs):
            try:
                made = rules.backward(ctx, *us)
            except Exception as error:
                error.add_note(
                    f"in the backward of {rules.name}, from which its tangents follow; the static "
                    "method jvp(ctx, *tangents) would give them itself"
                )
                raise
        made = made if isinstance(made, tuple) else (made,)
        roots, vectors = [], []
        for root, t in zip(made, tangents, strict=False):
            if t is None or root is None or root._edge is None:
                continue
            if root.shape != t.shape:
                t = FUNCTORS_F.expand(t, shape=tuple(root.shape))
            roots.append(root)
            vectors.append(t if t.dtype == root.dtype else FUNCTORS_F.cast(t, dtype=root.dtype))
    if not roots:
        return [None] * len(outputs)
    wanted = [u for u, has in zip(us, smooth, strict=True) if has]
    with no_grad():
        found = iter(grad(roots, wanted, vectors, allow_unused=True))
    return [next(found) if has else None for has in smooth]


@contextlib.contextmanager
def _opened(ctx: Any, saved: Any, needs: tuple[bool, ...] | None = None) -> Iterator[None]:
    """Let a ctx give its saved tensors before there is a node."""
    before = ctx.needs_input_grad
    ctx._open = tuple([None if x is None else make_tensor(x._data) for x in saved])
    if needs is not None:
        ctx.needs_input_grad = needs
    try:
        yield
    finally:
        ctx._open, ctx.needs_input_grad = None, before


# --- Batches --------------------------------------------------------------------------------------


def _on_batches(
    rules: FunctionRules, ctx: Any, args: tuple[Any, ...], tensors: Sequence[Tensor]
) -> Any:
    level: Any = top_level(tensors)
    if level is None:
        return rules.run(ctx, args)
    if rules.vmap is None:
        try:
            return rules.run(ctx, args)
        except TransformError as error:
            error.add_note(
                f"{rules.name}: where forward cannot go over a batch, define the static method "
                "vmap(info, in_dims, *args)"
            )
            raise
    if rules.generate_vmap_rule:
        raise TransformError(
            f"{rules.name}: has the static method vmap, and generate_vmap_rule=True as well; leave "
            "one of the two out"
        )
    if rules.setup_context is None:
        raise TransformError(
            f"{rules.name}: has the static method vmap, which takes no ctx; let forward take none, "
            "and define the static method setup_context(ctx, inputs, output)"
        )
    own = [isinstance(x, Tensor) and _is_of(x, level) for x in args]
    values = [x._data.parts[0] if mine else x for x, mine in zip(args, own, strict=True)]
    in_dims = tuple([0 if mine else None for mine in own])
    made = rules.vmap(VmapInfo(level.size, level.randomness), in_dims, *values)
    if not isinstance(made, tuple) or len(made) != 2:
        raise TransformError(
            f"{rules.name}: vmap has to return a pair, the output and its out_dims"
        )
    output, dims = made
    if isinstance(output, tuple):
        dims = dims if isinstance(dims, (tuple, list)) else (dims,) * len(output)
        if len(dims) != len(output):
            raise TransformError(
                f"{rules.name}: vmap returned {len(output)} outputs, and {len(dims)} out_dims"
            )
        output = tuple([_entered(level, y, dim) for y, dim in zip(output, dims, strict=True)])
    else:
        output = _entered(level, output, dims[0] if isinstance(dims, tuple) else dims)
    rules.setup_context(ctx, args, output)
    return output


def _is_of(x: Tensor, level: BatchLevel) -> bool:
    return isinstance(x._data, LevelArray) and x._data.level is level


def _entered(level: BatchLevel, y: Any, dim: int | None) -> Any:
    if dim is None or not isinstance(y, Tensor):
        return y
    if dim % y.ndim:
        rest = [d for d in range(y.ndim) if d != dim % y.ndim]
        y = FUNCTORS_F.permute(y, dims=(dim % y.ndim, *rest))
    if y.shape[0] != level.size:
        raise TransformError(
            f"vmap of a Function: its output has size {y.shape[0]} at its out_dims, and the batch "
            f"has {level.size} entries"
        )
    return make_tensor(level.array(make_tensor(y._data)))
