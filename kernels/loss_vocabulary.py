"""Kernels of cross entropy over many classes, which go over the logits piece by piece.

For a target t with the weight w_t, a smoothing s and C classes the loss of a row of logits x is

    (1 - s) w_t (lse - x_t) + s / C Σ w_c (lse - x_c),    lse = top + log(total),

with the row's maximum `top` and `total` = Σ exp(x - top). These two stand for the probabilities.
Reductions are ops of their own. `linear_…` computes the logits x wᵀ + b in tiles and drops them.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.arrays.threads import in_threads, parts_of
from oneflow_lite.kernels.batches import merged, parted
from oneflow_lite.kernels.index_arrays import check_range, on_host
from oneflow_lite.kernels.infer_rules import in_c_order
from oneflow_lite.kernels.numerics import sum_over
from oneflow_lite.ops.registry import Lines, register_kernel
from oneflow_lite.ops.sbp_rules import Way

_PIECE = 1 << 17  # logits that a core keeps in its cache from one pass to the next
_TILE = 1 << 22  # logits of a linear layer that are held at a time
_ROWS = 2048  # of a tile at most
_EACH = 0.6  # nanoseconds of one core for a logit


@in_c_order
def _statistics(x, target, *others, **attrs):
    return (ArraySpec(target.shape, x.dtype),) * 3


def _places(shapes, **attrs):
    """Say where arrays lie in logits (N, C): all but these and the weights have a number a row."""
    whole = shapes["x"]
    line = dict.fromkeys(("dy", "top", "total", "target", "line"), (whole, (whole[0], 1)))
    weight = {"weight": (whole, (1, whole[1])), "x": (whole, whole)}
    results = {0: (whole, whole)} if "dy" in shapes else dict.fromkeys(range(3), line["line"])
    return {**line, **weight, **results}


def _check_classes(shapes, target, *, ignore_index, label_smoothing, op="cross_entropy"):
    check_range(np, op, "target", target[target != ignore_index], shapes["x"][1])


_SHARE = "where(target == ignore_index, 0, {} * take(weight, target))"


def _scalar(ignore_index, label_smoothing, op=None):
    if label_smoothing:
        return None
    loss = _SHARE.format("(log(s) + (t - take(x, target)))")
    return f"t = amax(x); s = sum(exp(x - t)); v = {loss}; v, t, s"


def _grad_scalar(ignore_index, label_smoothing):
    if label_smoothing:
        return None
    share = _SHARE.format("dy")
    return f"v = {share}; r = v / total; exp(x - top) * r - where(index == target, v, 0)"


def _of_batch(call, x, target, weight, **attrs):
    """Take the rows of all entries together."""
    if weight is not None and call.batched[2]:
        return NotImplemented
    made = call.run(merged(call, call.front(0), 0), merged(call, call.front(1), 0), weight, **attrs)
    return tuple([parted(call, each, 0) for each in made])


@register_kernel(
    "cross_entropy_rows",
    infer=_statistics,
    scalar=Lines(_scalar, _places, {"weight": 1}, _check_classes, "target"),
    sbp="nC,n,C->n",
    batch=_of_batch,
)
def cross_entropy_rows(xp, x, target, weight, *, ignore_index, label_smoothing, op="cross_entropy"):
    """Return the loss, the maximum and the total of each row of logits (N, C).

    `op` is the op that was called, for the error of a target that is no class.
    """
    of_target = _Targets(xp, x, target, weight, ignore_index, label_smoothing, x.shape[1], op)
    top, total, mean = (xp.empty(len(x), x.dtype) for _ in range(3))

    def part(rows, scratch):
        some = x[rows]
        exponents, high = scratch[: len(some)], some.max(1)
        xp.subtract(some, high[:, None], out=exponents)
        if label_smoothing:
            mean[rows] = of_target.weighted(exponents)
        xp.exp(exponents, out=exponents)
        top[rows], total[rows] = high, exponents.sum(1)

    _in_pieces(xp, x, part)
    picked = x[xp.arange(len(x)), of_target.index]
    return of_target.losses(picked - top, mean, total), top, total


@in_c_order
def _like_logits(dy, x, *others, **attrs):
    return ArraySpec(x.shape, x.dtype)


def _grad_of_batch(call, dy, x, top, total, target, weight, **attrs):
    if weight is not None and call.batched[5]:
        return NotImplemented
    rows = [merged(call, call.front(i), 0) for i in range(5)]
    return parted(call, call.run(*rows, weight, **attrs), 0)


@register_kernel(
    "cross_entropy_rows_grad",
    infer=_like_logits,
    scalar=Lines(_grad_scalar, _places, {"weight": 1}),
    sbp="n,nC,n,n,n,C->nC",
    batch=_grad_of_batch,
)
def cross_entropy_rows_grad(
    xp, dy, x, top, total, target, weight, *, ignore_index, label_smoothing, out=None
):
    of_target = _Targets(xp, x, target, weight, ignore_index, label_smoothing, x.shape[1])
    dx = xp.empty(x.shape, x.dtype) if out is None else out
    factors = of_target.factors(dy, total)

    def part(rows, scratch):
        xp.subtract(x[rows], top[rows][:, None], out=dx[rows])
        of_target.gradients(dx[rows], [each[rows] for each in factors])

    _in_pieces(xp, x, part)
    dx[xp.arange(len(x)), of_target.index] -= factors[1]
    return dx


class _Targets:
    """The targets of rows of logits, and their share in the loss.

    `index` has the classes, 0 where a target is ignored.
    """

    def __init__(self, xp, x, target, weight, ignore_index, smoothing, classes, op=None):
        self.xp, self._weight, self._smoothing = xp, weight, smoothing
        self._counted = target != ignore_index
        if op is not None and on_host(xp):  # on CUDA a look would wait for the device
            check_range(xp, op, "target", target[self._counted], classes)
        self.index = xp.where(self._counted, target, 0).astype(np.int64, copy=False)
        self._hit = xp.ones(len(x), x.dtype) if weight is None else weight.take(self.index)
        self._all = self._hit  # what all classes of a row count together
        if smoothing:
            self._hit = self._hit * x.dtype.type(1 - smoothing)
            self._even = x.dtype.type(smoothing / max(classes, 1))
            self._whole = classes if weight is None else weight.sum()
            self._all = self._hit + self._even * self._whole

    def weighted(self, x, classes=slice(None)):
        """Return the weighted sum of each row over its classes."""
        return x.sum(1) if self._weight is None else x @ self._weight[classes]

    def losses(self, picked, mean, total):
        """Return the losses for the logits of the targets, and all weighted ones, above `top`."""
        log = self.xp.log(total)
        made = self._hit * (log - picked)
        if self._smoothing:
            made += self._even * (self._whole * log - mean)
        return self.xp.where(self._counted, made, made.dtype.type(0))

    def factors(self, dy, total):
        """Return the factors of exp(x - top), of the target's logit and of smoothing in dx."""
        dy = self.xp.where(self._counted, dy, dy.dtype.type(0))
        made = [dy * self._all / total, dy * self._hit]
        return [*made, dy * self._even] if self._smoothing else made

    def gradients(self, x, factors, classes=slice(None)):
        """Make gradients of x - top, but for the part of the target's own logit."""
        self.xp.exp(x, out=x)
        x *= factors[0][:, None]
        if self._smoothing:
            even = factors[2][:, None]
            x -= even if self._weight is None else even * self._weight[classes]


def _in_pieces(xp, x, part):
    """Go over rows of logits piece by piece, on the CPU on all threads, with memory for a piece."""
    few = len(x) if xp is not np else max(1, _PIECE // max(x.shape[1], 1))
    pieces = [slice(i, i + few) for i in range(0, len(x), max(few, 1))]
    parts = parts_of(x.size * _EACH, len(pieces)) if xp is np else 1

    def work(first):
        scratch = xp.empty((min(few, len(x)), x.shape[1]), x.dtype)
        for rows in pieces[first::parts]:
            part(rows, scratch)

    in_threads([functools.partial(work, i) for i in range(parts)])


# --- With the linear layer ------------------------------------------------------------------------


def _linear_of_batch(call, x, w, b, target, weight, **attrs):
    if any(call.batched[i] for i in (1, 2, 4)):
        return NotImplemented
    x, target = merged(call, call.front(0), 0), merged(call, call.front(3), 0)
    return tuple([parted(call, y, 0) for y in call.run(x, w, b, target, weight, **attrs)])


@in_c_order
def _linear_statistics(x, w, b, target, *others, **attrs):
    return (ArraySpec(target.shape, x.dtype),) * 3


@register_kernel(
    "linear_cross_entropy_rows",
    infer=_linear_statistics,
    sbp="nF,CF,C,n,C->n",
    batch=_linear_of_batch,
)
def linear_cross_entropy_rows(
    xp, x, w, b, target, weight, *, ignore_index, label_smoothing, op="linear_cross_entropy"
):
    """Return what `cross_entropy_rows` does of the logits x wᵀ + b.

    x is (N, F), or has N rows in more dimensions; w is (C, F).
    """
    x = x.reshape(len(target), x.shape[-1])
    of_target = _Targets(
        xp, x, target, weight, ignore_index, label_smoothing, op=op, classes=len(w)
    )
    top = xp.full(len(x), -math.inf, x.dtype)
    total, mean, picked = (xp.zeros(len(x), x.dtype) for _ in range(3))

    def part(logits, rows, classes, places, inside):
        if label_smoothing:
            mean[rows] += of_target.weighted(logits, classes)
        picked[rows] = xp.where(inside, logits[places], picked[rows])
        before = top[rows]
        high = xp.maximum(before, logits.max(1))
        shift = xp.where(high == -math.inf, high.dtype.type(0), high)
        logits -= shift[:, None]
        xp.exp(logits, out=logits)
        total[rows] = total[rows] * xp.exp(before - shift) + logits.sum(1)
        top[rows] = high

    _over_tiles(xp, x, w, b, of_target, part)
    if label_smoothing:
        mean -= top * (len(w) if weight is None else weight.sum())
    return of_target.losses(picked - top, mean, total), top, total


@in_c_order
def _of_each(dy, x, w, b, *others, needs, **attrs):
    made = tuple([spec for spec, need in zip((x, w, b), needs, strict=True) if need])
    return made if len(made) > 1 else made[0]


def _sums_of_rows(shapes, attrs):
    """Split rows: the gradients of weight and bias are sums over them."""
    outs: list[Any] = [end for end, need in zip((0, "P", "P"), attrs["needs"], strict=True) if need]
    yield Way((0, 0, "B", "B", 0, 0, 0, "B"), tuple(outs))


@register_kernel("linear_cross_entropy_rows_grad", infer=_of_each, sbp=_sums_of_rows, batch="loop")
def linear_cross_entropy_rows_grad(
    xp, dy, x, w, b, top, total, target, weight, *, ignore_index, label_smoothing, needs
):
    """Return the gradients of x, w and b, as far as they are needed."""
    shape, x = x.shape, x.reshape(len(target), x.shape[-1])
    of_target = _Targets(xp, x, target, weight, ignore_index, label_smoothing, len(w))
    factors = of_target.factors(dy, total)
    dx = xp.zeros(x.shape, x.dtype) if needs[0] else None
    dw = (xp.empty if len(x) else xp.zeros)(w.shape, w.dtype) if needs[1] else None
    db = xp.zeros(b.shape, b.dtype) if needs[2] else None

    def part(logits, rows, classes, places, inside):
        few = [each[rows] for each in factors]
        logits -= top[rows][:, None]
        of_target.gradients(logits, few, classes)
        logits[places] -= xp.where(inside, few[1], few[1].dtype.type(0))

    def whole(logits, rows, classes):
        if dx is not None:
            dx[rows] += logits @ w[classes]
        if dw is not None and rows.start == 0:
            xp.matmul(logits.T, x[rows], out=dw[classes])
        elif dw is not None:
            dw[classes] += logits.T @ x[rows]
        if db is not None:
            db[classes] += sum_over(xp, logits, 0)

    _over_tiles(xp, x, w, b, of_target, part, whole)
    dx = None if dx is None else dx.reshape(shape)
    needed = tuple([each for each in (dx, dw, db) if each is not None])
    return needed if len(needed) > 1 else needed[0]


def _over_tiles(xp, x, w, b, of_target, part, whole=None):
    """Compute one tile of logits after the other, all in the same memory.

    `part` gets some rows of a tile at a time, on the CPU on all threads, their numbers and those
    of the classes, the places of the targets' logits, and which of them are in the tile. `whole`
    gets the tile afterwards.
    """
    step = min(max(len(x), 1), _ROWS)
    wide = min(max(len(w), 1), max(_TILE // step, 128))
    few = max(1, _PIECE // wide) if xp is np else step
    memory = xp.empty(step * wide, x.dtype)

    def of_some(pieces, logits, first, classes):
        for begin in pieces:
            some = logits[begin : begin + few]
            rows = slice(first + begin, first + begin + len(some))
            if b is not None:
                some += b[classes]
            index = of_target.index[rows] - classes.start
            inside = (index >= 0) & (index < some.shape[1])
            places = xp.arange(len(some)), xp.where(inside, index, 0)
            part(some, rows, classes, places, inside)

    for i in range(0, len(x), step):
        rows = slice(i, min(i + step, len(x)))
        pieces = range(0, rows.stop - i, few)
        parts = parts_of((rows.stop - i) * wide * _EACH, len(pieces)) if xp is np else 1
        for j in range(0, len(w), wide):
            classes = slice(j, min(j + wide, len(w)))
            shape = (rows.stop - i, classes.stop - j)
            logits = memory[: math.prod(shape)].reshape(shape)
            xp.matmul(x[rows], w[classes].T, out=logits)
            work = [(pieces[n::parts], logits, i, classes) for n in range(parts)]
            in_threads([functools.partial(of_some, *each) for each in work])
            if whole is not None:
                whole(logits, rows, classes)
