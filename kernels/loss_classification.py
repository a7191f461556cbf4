"""Kernels of losses of classes and probabilities."""

import functools
import math
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.kernels.batches import flat, merged, parted
from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.index_arrays import add_at, check_range, on_host, take
from oneflow_lite.kernels.infer_rules import in_c_order, like_first, loss_of_classes, of_shape
from oneflow_lite.kernels.numerics import check_probabilities, copied, log1p, zeros
from oneflow_lite.kernels.windows import sliding_windows
from oneflow_lite.ops.registry import Lines, register_kernel
from oneflow_lite.ops.sbp_rules import Way

_INT64, _UINT64 = np.dtype(np.int64), np.dtype(np.uint64)


_COUNTED = "where(target == ignore_index, 0, take(weight, target))"


def _nll_scalar(ignore_index, reduction, op=None):
    each = f"v = where(target == ignore_index, 0, -take(x, target)) * {_COUNTED}; "
    total = "v" if reduction == "none" else "total_lines(v)"
    return each + total + (f" / total_lines({_COUNTED})" if reduction == "mean" else "")


def _nll_grad_scalar(shape, ignore_index, reduction):
    share = f" / total_lines({_COUNTED})" if reduction == "mean" else ""
    return (
        f"v = where(target == ignore_index, 0, -dy * take(weight, target){share}); "
        "where(index == target, v, 0)"
    )


def _nll_places(shapes, *, reduction, shape=None, **attrs):
    whole = shape or shapes["x"]
    classes = 1 if len(whole) > 1 else 0
    line = tuple([1 if i == classes else n for i, n in enumerate(whole)])
    weight = tuple([n if i == classes else 1 for i, n in enumerate(whole)])
    loss = line if reduction == "none" else (1,) * len(whole)
    places = {"line": (whole, line), "target": (whole, line), "weight": (whole, weight)}
    if shape is None:
        return {**places, "x": (whole, whole), 0: (whole, loss)}
    return {**places, "dy": (whole, loss), 0: (whole, whole)}


def _check_target(shapes, target, *, ignore_index, reduction, op="nll_loss"):
    classes = shapes["x"][1 if len(shapes["x"]) > 1 else 0]
    if target.dtype is not _INT64 or not _all_below(target, classes):
        check_range(np, op, "target", target[target != ignore_index], classes)


def _by_row_or_class(shapes, attrs):
    grad, each = "shape" in attrs, attrs["reduction"] == "none"
    x = attrs["shape"] if grad else shapes[0]
    classes = 0 if len(x) == 1 else 1
    if classes:
        ends = (0 if each else "B", 0) if grad else (0, 0 if each else "P")
        mean = attrs["reduction"] == "mean"
        yield Way((ends[0], 0, "B"), ends[1:], x[0], run=_of_rows, moved=mean)
    ends = ("B", classes) if grad else (classes, "P")
    yield Way((ends[0], "B", "B"), ends[1:], x[classes], run=_of_classes)


def _of_rows(line, arrays, attrs, by_class=False):
    """Compute the loss, or its gradient, of some rows or classes; a mean is over all of them."""
    first, target, weight = arrays
    xp, ignore, grad, attrs = line.xp, attrs["ignore_index"], "shape" in attrs, dict(attrs)
    counted, total = target != ignore, None
    if attrs["reduction"] == "mean":
        counts = counted.astype(first.dtype)
        if weight is not None:
            counts = counts * weight[xp.where(counted, target, 0)]
        total = counts.sum(keepdims=True).reshape(())
        total = total if by_class else line.reduce(total, "sum")
        attrs["reduction"] = "sum"
    shape = list(attrs["shape"] if grad else first.shape)
    if by_class:
        if not grad:
            check_range(xp, attrs.get("op", "nll_loss"), "target", target[counted], line.size)
        inside = counted & (target >= line.begin) & (target < line.end)
        target = xp.where(inside, target - line.begin, -100)
        attrs["ignore_index"] = -100
        weight = None if weight is None else weight[line.begin : line.end]
        shape[0 if len(shape) == 1 else 1] = line.end - line.begin
    elif grad:
        shape[0] = line.end - line.begin
    if grad:
        attrs["shape"] = tuple(shape)
        first = first if total is None else first / total
    made = line.local([xp.asarray(first), target, weight], attrs)
    return made if grad or total is None else made / total


_of_classes = functools.partial(_of_rows, by_class=True)


def _batch_of_losses(call, x, target, weight, *, reduction, **attrs):
    """Take each row's loss, and reduce within the entries."""
    each = {**attrs, "reduction": "none"}
    loss = _row_losses(call, call.front(0), call.front(1), weight, each)
    if reduction == "none":
        return loss
    dims = tuple(range(1, loss.ndim))
    total = call.F.sum(loss, dim=dims, keepdim=False) if dims else loss
    if reduction == "sum":
        return total
    weights = _weights(call, x, weight, each)
    return call.F.div(total, call.F.sum(weights, dim=dims, keepdim=False) if dims else weights)


def _row_losses(call, x, target, weight, attrs):
    own = weight is not None and call.batched[2]
    shared = None if own else weight
    run = functools.partial(call.F.nll_loss, **attrs)
    if x.ndim == 2:  # an entry is one row
        y = run(x, target, shared)
    else:
        y = parted(call, run(merged(call, x, 0), merged(call, target, 0), shared), 0)
    return call.F.mul(y, _own_weights(call, weight, target, attrs)) if own else y


def _own_weights(call, weight, target, attrs):
    """Return the weights of the targets where each entry has weights of its own."""
    F = call.F
    counted = F.ne(target, call.constant(np.asarray(attrs["ignore_index"], target.dtype)))
    index = F.where(counted, target, F.zeros_like(target))
    picked = F.gather(weight, flat(call, F.cast(index, dtype=_INT64)), dim=1)
    return F.reshape(picked, shape=target.shape)


def _weights(call, x, weight, attrs):
    """Return the weight of each target, 0 where it is ignored: the loss of -1."""
    minus = call.F.neg(call.F.ones_like(call.front(0)))
    return _row_losses(call, minus, call.front(1), weight, attrs)


def _batch_of_gradients(call, dy, target, weight, *, shape, reduction, ignore_index):
    F, target = call.F, call.front(1)
    dy = call.front(0)
    if reduction != "none":
        if reduction == "mean":
            ones = F.full(
                shape=(call.size, *shape),
                value=-1,
                dtype=dy.dtype,
                device=call.level.device_of(call),
            )
            attrs = {"ignore_index": ignore_index, "reduction": "none"}
            weights = _row_losses(call, ones, target, weight, attrs)
            dims = tuple(range(1, weights.ndim))
            dy = F.div(dy, F.sum(weights, dim=dims, keepdim=False) if dims else weights)
        rows = target.shape[1:]
        dy = F.reshape(dy, shape=(call.size,) + (1,) * len(rows))
        dy = F.expand(dy, shape=(call.size, *rows))
    attrs = {"ignore_index": ignore_index, "reduction": "none"}
    if weight is not None and call.batched[2]:
        dy = F.mul(dy, _own_weights(call, weight, target, attrs))
        weight = None
    if len(shape) == 1:
        return call.run(dy, target, weight, shape=(call.size, *shape), **attrs)
    whole = (call.size * shape[0], *shape[1:])
    made = call.run(merged(call, dy, 0), merged(call, target, 0), weight, shape=whole, **attrs)
    return parted(call, made, 0)


@register_kernel(
    "nll_loss",
    infer=loss_of_classes,
    scalar=Lines(_nll_scalar, _nll_places, {"weight": 1}, _check_target, "target"),
    sbp=_by_row_or_class,
    linear="x",
    batch=_batch_of_losses,
)
@in_float32
def nll_loss(xp, x, target, weight, *, ignore_index, reduction, op="nll_loss", out=None):
    """-weight[t] x[n, t] for each target t; ignored targets give 0 and leave the mean.

    `op` is the op that was called, for the error of a target that is no class.
    """
    each = reduction == "none"
    plain = None if each else _plain_places(xp, x.shape, target, weight, ignore_index)
    if plain is not None:
        total = -np.add.reduce(x.reshape(x.size).take(plain))
        total = total / plain.size if reduction == "mean" else total
        return total if out is None else copied(total, out)
    places, factor, ignored = _places(xp, x, x.shape, target, weight, ignore_index, op)
    y = out.reshape(out.size) if each and out is not None else None
    y = take(xp, x.reshape(x.size), places, None, y)
    xp.negative(y, out=y)
    if ignored is not None:
        y[ignored] = 0
    if factor is not None:
        y *= factor
    if each:
        return y.reshape(target.shape) if out is None else out
    total = y.sum()
    if reduction == "mean":
        total = _divided(total, factor, y)
    return total if out is None else copied(total, out)


@register_kernel(
    "nll_loss_grad",
    infer=of_shape,
    scalar=Lines(_nll_grad_scalar, _nll_places, {"weight": 1}),
    sbp=_by_row_or_class,
    batch=_batch_of_gradients,
)
@in_float32
def nll_loss_grad(xp, dy, target, weight, *, shape, ignore_index, reduction, out=None):
    if not dy.ndim:
        plain = _plain_places(xp, shape, target, weight, ignore_index)
        if plain is not None:
            dx = zeros(xp, shape, dy.dtype, out)
            total = dy.item()  # a quotient of doubles, rounded, is the quotient in dy's dtype
            dx.reshape(dx.size)[plain] = -total / plain.size if reduction == "mean" else -total
            return dx
    places, factor, ignored = _places(xp, dy, shape, target, weight, ignore_index)
    values = -dy.reshape(-1)
    if factor is not None:
        values = values * factor
    if reduction == "mean":
        values = _divided(values, factor, places)
    if ignored is not None:
        values[ignored] = 0
    dx = zeros(xp, shape, dy.dtype, out)
    dx.reshape(dx.size)[places] = values
    return dx


def _plain_places(xp, shape, target, weight, ignore_index):
    """Return the places in the usual case: rows of classes on the CPU, none ignored or weighted."""
    if (
        weight is not None
        or len(shape) != 2
        or target.dtype is not _INT64
        or not on_host(xp)
        or 0 <= ignore_index < shape[1]
        or not _all_below(target, shape[1])
    ):
        return None
    return _row_starts(*shape) + target


@functools.lru_cache(64)
def _row_starts(rows, size):
    return np.arange(rows) * size


def _places(xp, like, shape, target, weight, ignore_index, op=None):
    """Return, for all targets in a row, their places in x, their weights and which are ignored.

    The last two are None when all weights are 1 and none is ignored: the usual case, which the
    CPU can afford to look for. With the name of an `op` the targets are checked.
    """
    classes = shape[1] if len(shape) > 1 else shape[0]
    batch, positions = shape[0] if len(shape) > 1 else 1, math.prod(shape[2:])
    target = target.reshape(target.size).astype(np.int64, copy=False)
    if on_host(xp) and not 0 <= ignore_index < classes and _all_below(target, classes):
        ignored = None
    else:
        ignored = target == ignore_index
        if on_host(xp):
            if not ignored.any():
                ignored = None
            if op is not None:
                counted = target if ignored is None else target[~ignored]
                check_range(xp, op, "target", counted, classes)
    if ignored is not None:
        target = xp.where(ignored, 0, target)
    factor = None if weight is None else weight.take(target)
    if ignored is not None:
        factor = xp.ones(target.size, like.dtype) if factor is None else factor
        factor[ignored] = 0
    places = xp.arange(batch) * (classes * positions)
    if positions != 1:
        places = (places[:, None] + xp.arange(positions)).reshape(target.size)
    return places + target * positions, factor, ignored


def _all_below(target, classes):
    """Return whether all targets are classes; read as unsigned, negative numbers are large."""
    if not target.size or not target.flags.c_contiguous:
        return False
    return int(np.maximum.reduce(target.view(_UINT64), None)) < classes


def _divided(total, factor, each):
    """Divide by the weight of all targets; the mean of nothing is NaN."""
    if factor is None:
        return total / each.size if each.size else total * math.nan
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / factor.sum()


@register_kernel("binary_cross_entropy", infer=in_c_order(like_first))
@in_float32
def binary_cross_entropy(xp, x, target, *, out=None):
    """-(t log x + (1 - t) log(1 - x)), with logarithms of at least -100, as in PyTorch."""
    hint = "apply a sigmoid, or use binary_cross_entropy_with_logits"
    check_probabilities(xp, "binary_cross_entropy", "input", x, hint)
    check_probabilities(xp, "binary_cross_entropy", "target", target, hint)
    with np.errstate(divide="ignore"):
        hit = xp.asarray(xp.maximum(xp.log(x, out=out), -100, out=out))
        miss = xp.maximum(xp.log1p(-x), -100)
    hit -= miss
    hit *= target
    hit += miss
    return xp.negative(hit, out=hit)


@register_kernel(
    "bce_with_logits",
    infer=in_c_order(like_first),
    scalar="maximum(x, 0) - x * target + log1p(exp(-abs(x)))",
)
@in_float32
def bce_with_logits(xp, x, target, *, out=None):
    """max(x, 0) - x t + log(1 + exp(-|x|))"""
    y = xp.asarray(xp.abs(x, out=out))  # of a 0-d array NumPy makes a scalar, which is no `out`
    xp.negative(y, out=y)
    xp.exp(y, out=y)
    log1p(xp, y, out=y)
    y += xp.maximum(x, 0)
    y -= x * target
    return y


# --- Connectionist temporal classification --------------------------------------------------------
#
# A labelling l of S classes is spelled by every path of classes through time that gives l once its
# repetitions are merged and its blanks dropped (Graves et al. 2006, doi 10.1145/1143844.1143891).
# Such a path goes through the 2 S + 1 states ␣ l₁ ␣ l₂ ␣ … l_S ␣: at each step it stays, takes the
# next state, or skips a blank between two labels that differ. The forward variable alpha[t] holds
# the logarithm of the probability of all paths to each state after t steps. The samples of a batch
# go through time together; the backward variable is the forward one of the sequences turned round.

_NEVER = -1e30  # the logarithm of 0; it is finite, so that no difference of two is NaN
_IMPOSSIBLE = _NEVER / 2


def _as_long_as_the_longest(log_probs, targets, input_lengths, target_lengths, **attrs):
    return targets.ndim == 1


@in_c_order
def _loss_and_alpha(log_probs, targets, input_lengths, target_lengths, **attrs):
    if targets.ndim == 1:
        return None
    time, batch, _ = log_probs.shape
    alpha = (time + 1, batch, 2 * targets.shape[1] + 3)
    return ArraySpec((batch,), log_probs.dtype), ArraySpec(alpha, log_probs.dtype)


@register_kernel(
    "ctc_loss", infer=_loss_and_alpha, dynamic_shape=_as_long_as_the_longest, sbp="whole"
)
def ctc_loss(xp, log_probs, targets, input_lengths, target_lengths, *, blank, zero_infinity):
    """Return -log p(targets) of each sample, and alpha.

    log_probs are (T, N, C). targets are (N, S), or all labellings joined in one dimension.
    """
    check_range(xp, "ctc_loss", "input_lengths", input_lengths, log_probs.shape[0] + 1)
    check_range(xp, "ctc_loss", "target_lengths", target_lengths, targets.shape[-1] + 1)
    if targets.ndim == 1 and on_host(xp) and target_lengths.sum() != targets.size:
        raise arg_error(
            "ctc_loss",
            "targets",
            expected=f"{target_lengths.sum()} labels, the sum of target_lengths",
            got=targets.size,
            hint="leave no padding between the labellings",
            kind=ArgumentError,
        )
    labels = _labels(xp, targets, target_lengths, blank)
    check_range(xp, "ctc_loss", "targets", labels, log_probs.shape[2])
    alpha, _ = _forward(xp, _at_states(xp, log_probs, labels), labels, blank)
    total = _total(xp, alpha, input_lengths, target_lengths)
    return xp.where(total < _IMPOSSIBLE, 0 if zero_infinity else np.inf, -total), alpha


@register_kernel("ctc_occupancy", infer=in_c_order(like_first), sbp="whole")
def ctc_occupancy(
    xp, log_probs, targets, input_lengths, target_lengths, alpha, *, blank, zero_infinity
):
    """Return the probability with which a path of the targets emits class c at time t.

    That is minus the derivative of the loss. It is NaN where no path exists, or 0 with
    `zero_infinity`.
    """
    labels = _labels(xp, targets, target_lengths, blank)
    emitted = _at_states(xp, log_probs, labels)
    beta, _ = _backward(xp, emitted, labels, blank, input_lengths, target_lengths)
    share = _share(xp, alpha, beta, emitted, input_lengths, target_lengths, zero_infinity)
    return _by_class(xp, share, labels, log_probs.shape, blank)


@register_kernel("ctc_occupancy_grad", infer=in_c_order(like_first), sbp="whole")
def ctc_occupancy_grad(
    xp, dy, log_probs, targets, input_lengths, target_lengths, *, blank, zero_infinity
):
    """Return Σ dy ∂occupancy / ∂log_probs, over paths the covariance of Σ dy and each emission.

    That is the occupancy's derivative in the direction dy, which both recursions take along.
    """
    labels = _labels(xp, targets, target_lengths, blank)
    emitted, direction = _at_states(xp, log_probs, labels), _at_states(xp, dy, labels)
    alpha, dalpha = _forward(xp, emitted, labels, blank, direction)
    lengths = (input_lengths, target_lengths)
    beta, dbeta = _backward(xp, emitted, labels, blank, *lengths, direction)
    share = _share(xp, alpha, beta, emitted, input_lengths, target_lengths, zero_infinity)
    change = dalpha[1:, :, 2:] + dbeta - direction
    change -= (share * direction).sum((0, 2))[:, None]
    return _by_class(xp, share * change, labels, log_probs.shape, blank)


def _labels(xp, targets, target_lengths, blank):
    """Return the class of each state (N, 2 S + 1); blanks past the end of a labelling."""
    if targets.ndim == 1:
        size = int(target_lengths.max()) if target_lengths.size else 0
        places = (target_lengths.cumsum() - target_lengths)[:, None] + xp.arange(size)
        targets = targets.take(xp.minimum(places, targets.size - 1)) if targets.size else places
    inside = xp.arange(targets.shape[1]) < target_lengths[:, None]
    labels = xp.full((len(targets), 2 * targets.shape[1] + 1), blank, np.int64)
    labels[:, 1::2] = xp.where(inside, targets, blank)
    return labels


def _at_states(xp, x, labels):
    """Return x (T, N, C) at the class of each state (T, N, 2 S + 1)."""
    return xp.maximum(x[:, xp.arange(x.shape[1])[:, None], labels], _NEVER)


def _forward(xp, emitted, labels, blank, direction=None):
    """Return alpha (T + 1, N, 2 + 2 S + 1), and its derivative in a direction, if one is given.

    Two impossible states in front make all states alike; the second is where every path begins.
    """
    time, batch, states = emitted.shape
    alpha = xp.full((time + 1, batch, 2 + states), _NEVER, emitted.dtype)
    alpha[0, :, 1] = 0
    dalpha: Any = None if direction is None else xp.zeros_like(alpha)
    skip = xp.zeros((3, batch, states), emitted.dtype)
    skip[0] = _NEVER
    skip[0, :, 1:2] = 0
    skip[0, :, 3::2][labels[:, 3::2] != labels[:, 1:-2:2]] = 0
    # Each state is reached from three: two before it, one before it, and itself.
    sources = _sources(xp, alpha)
    changes = None if dalpha is None else _sources(xp, dalpha)
    parts = xp.empty_like(skip)
    one, two, three = parts
    top, total = xp.empty_like(one), xp.empty_like(one)
    for t in range(time):
        xp.add(sources[t], skip, out=parts)
        xp.maximum(one, two, out=top)
        xp.maximum(top, three, out=top)
        parts -= top
        xp.exp(parts, out=parts)
        xp.add(one, two, out=total)
        total += three
        if changes is not None:
            parts *= changes[t]
            dalpha[t + 1, :, 2:] = parts.sum(0) / total + direction[t]
        xp.log(total, out=total)
        total += top
        xp.add(total, emitted[t], out=alpha[t + 1, :, 2:])
    return alpha, dalpha


def _sources(xp, alpha):
    """Return alpha (T, N, 2 + S) at the three sources of each state, a view (T, 3, N, S)."""
    states = alpha.shape[2] - 2
    return sliding_windows(xp, alpha, (3,), (states,), (1,), (1,)).swapaxes(1, 2)


def _backward(xp, emitted, labels, blank, input_lengths, target_lengths, direction=None):
    """Return beta (T, N, 2 S + 1), of all paths from each state on, its own emission included.

    Time and states of each sample run backwards.
    """
    time, batch, count = emitted.shape
    times = xp.maximum(input_lengths - 1 - xp.arange(time)[:, None], 0)
    states = xp.maximum(2 * target_lengths[:, None] - xp.arange(count), 0)
    turn = (times * batch + xp.arange(batch))[:, :, None] * count + states
    turned = None if direction is None else direction.take(turn)
    labels = xp.take_along_axis(labels, states, 1)
    beta, dbeta = _forward(xp, emitted.take(turn), labels, blank, turned)
    return [None if x is None else x[1:, :, 2:].take(turn) for x in (beta, dbeta)]


def _total(xp, alpha, input_lengths, target_lengths):
    """Return the logarithm of the probability of all paths, which end in one of two states."""
    batch = xp.arange(alpha.shape[1])
    ends = [alpha[input_lengths, batch, 2 * target_lengths + k] for k in (1, 2)]
    return xp.logaddexp(*ends)


def _share(xp, alpha, beta, emitted, input_lengths, target_lengths, zero_infinity):
    """Return which share of the paths is in each state at each time."""
    total = _total(xp, alpha, input_lengths, target_lengths)
    total = xp.where(total < _IMPOSSIBLE, 0 if zero_infinity else np.nan, total)
    share = xp.add(beta, alpha[1:, :, 2:], out=beta)
    share -= emitted
    share -= total[:, None]
    xp.exp(share, out=share)
    during = xp.arange(len(share))[:, None] < input_lengths
    within = xp.arange(share.shape[2]) <= 2 * target_lengths[:, None]
    share[~(during[:, :, None] & within)] = 0
    return share


def _by_class(xp, x, labels, shape, blank):
    """Return x (T, N, 2 S + 1) summed to classes (T, N, C)."""
    y = xp.zeros(shape, x.dtype)
    lines = xp.arange(shape[0] * shape[1]).reshape(shape[0], shape[1], 1) * shape[2]
    add_at(xp, y.reshape(y.size), lines + labels[:, 1::2], x[:, :, 1::2])
    y[:, :, blank] += x[:, :, ::2].sum(2)
    return y
