"""Kernels of layer, batch and root-mean-square normalization.

Each kernel divides x by its spread over some dimensions, keeps the result z for the backward pass,
and scales it. An array is seen as `groups`, (B, P) or (A, B, P): normalized over A and P, for each
b in B apart. So one text serves rows and channels, and BLAS makes the sums over P. Statistics are
(B, 1) outside of this file; rstd is 1 / √(var + eps).
"""

import functools
import inspect
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.infer_rules import in_c_order, like_first, written
from oneflow_lite.kernels.numerics import dot_of_lines, ones_for_lines, sum_over
from oneflow_lite.kernels.pieces import LARGE, in_pieces
from oneflow_lite.ops.registry import Lines, register_kernel
from oneflow_lite.ops.sbp_rules import Way, by_kernel

_SHORT_LINE, _LINE, _RUN = 128, 512, 1024
_FEW = 4096  # elements, on which the number of calls matters more than how sums are made
_VERY_FEW = 256  # on which NumPy takes twice as long to broadcast as to index


def _with_statistics(arrays, statistics):
    """Return the rule of ops with so many outputs like x, and statistics, in float32 of halves."""

    @in_c_order
    def rule(x, *scale, groups, **attrs):
        dtype = np.dtype(np.float32) if x.dtype.char == "e" else x.dtype
        statistic = ArraySpec((groups[-2], 1), dtype)
        return (ArraySpec(x.shape, x.dtype),) * arrays + (statistic,) * statistics

    return rule


_KINDS = {"x": "x", "dy": "x", "z": "x", "rstd": "g", "weight": "c", "bias": "c"}


def _lines(text, outputs, absent=None):
    """Return the expression of an op.

    `outputs` are like x ("x"), or have one number for each group ("g") or channel ("c").
    """

    def places(shapes, *, groups, channels=None, needs=None, **attrs):
        channels = channels or groups
        of_group, of_channel = [1] * len(groups), [1] * len(channels)
        of_group[-2], of_channel[1] = groups[-2], channels[1]
        lies = {
            "x": (groups, groups),
            "g": (groups, tuple(of_group)),
            "c": (channels, tuple(of_channel)),
        }
        layout = {name: lies[_KINDS[name]] for name in shapes}
        needed = needs or (True,) * len(outputs)
        made = [kind for kind, need in zip(outputs, needed, strict=True) if need]
        layout.update({i: lies[kind] for i, kind in enumerate(made)})
        return {"line": lies["g"], **layout}

    return Lines(text, places, absent)


def _parts(names, outputs):
    """Return the SBP rule by batch.

    Rows that are normalized apart stay apart; for channels the ranks' sums are added, as
    SyncBatchNorm does.
    """
    inputs = [_KINDS[name] for name in names.split()]

    def rule(shapes, attrs):
        x, groups = shapes[0], attrs["groups"]
        needs = attrs.get("needs", (True,) * len(outputs))
        made = [kind for kind, needed in zip(outputs, needs, strict=True) if needed]
        apart = len(groups) == 2
        if not x or not x[0] or groups[0] % x[0]:
            return
        ins = [0 if kind == "x" or (kind == "g" and apart) else "B" for kind in inputs]
        sums: dict[str, Any] = {"x": 0, "g": 0, "c": "P"} if apart else {"x": 0, "g": "B", "c": "B"}
        outs = tuple([sums[kind] for kind in made])
        if apart:
            sizes = tuple([groups[0] if kind == "g" else x[0] for kind in made])
            unit = 0 if groups[0] == x[0] else x[0]
            yield Way(tuple(ins), outs, x[0], sizes, unit, functools.partial(_fit, x[0]))
        else:
            yield Way(tuple(ins), outs, run=by_kernel, moved=2 * groups[1])

    return rule


def _fit(rows, attrs, share):
    """Return the attributes for a share of the rows, which `share` counts."""
    fitted = dict(attrs)
    for name in {"groups", "channels"} & attrs.keys():
        fitted[name] = (attrs[name][0] // rows * share(rows), *attrs[name][1:])
    return fitted


def _batched(inputs, outputs):
    """Return the rule for batches.

    Entries are groups of their own. Scales that differ by entry, and their gradients, are applied
    and summed outside of the kernel.
    """

    def rule(call, *values, groups, channels=None, needs=None, **attrs):
        F, size, shape = call.F, call.size, call.shape(0)
        given = dict(zip(call.op.schema.inputs, range(len(values)), strict=True))
        scales = [i for name, i in given.items() if name in ("weight", "bias")]
        scaled = any(call.batched[i] for i in scales) or len(groups) == 3 or needs is not None
        whole = channels or groups

        def as_groups(x):
            if len(groups) == 2:
                return F.reshape(x, shape=(size * groups[0], groups[1]))
            x = F.reshape(x, shape=(size, *groups))
            wide = (groups[0], size * groups[1], groups[2])
            return F.reshape(F.permute(x, dims=(1, 0, 2, 3)), shape=wide)

        def back(y):
            if len(groups) == 3:
                y = F.reshape(y, shape=(groups[0], size, *groups[1:]))
                y = F.permute(y, dims=(1, 0, 2, 3))
            return F.reshape(y, shape=(size, *shape))

        def as_scale(i):
            """Let one number for each channel meet the channels of all entries."""
            own = call.batched[i]
            lines = (1,) * (len(whole) - 2)
            shape = (size if own else 1, 1, whole[1], *lines) if channels else None
            if shape is None:  # a weight for each element of a group
                shape = (size if own else 1, 1, whole[-1])
            return F.reshape(values[i], shape=shape)

        def over_channels(x):
            return F.reshape(x, shape=(size, *whole))

        fitted = {**attrs, "groups": (*groups[:-2], size * groups[-2], groups[-1])}
        if channels:
            fitted["channels"] = (size * channels[0], *channels[1:]) if not scaled else None
        arrays = []
        for i, kind in zip(given.values(), inputs, strict=True):
            x = values[i]
            if kind == "x":
                arrays.append(as_groups(call.front(i)))
            elif kind == "g":
                arrays.append(F.reshape(call.front(i), shape=(size * groups[-2], 1)))
            elif x is None or scaled:
                arrays.append(None)
            else:
                arrays.append(x)
        if channels and scaled:
            fitted["channels"] = fitted["groups"]
        if needs is not None:
            return _gradients_of_entries(
                call, arrays, fitted, needs, as_scale, over_channels, as_groups, back
            )
        made = call.run(*arrays, **fitted)
        made = made if type(made) is tuple else (made,)
        results = [
            back(y) if kind == "x" else F.reshape(y, shape=(size, groups[-2], 1))
            for y, kind in zip(made, outputs, strict=True)
        ]
        if scaled and scales:
            y = over_channels(results[0])
            for i in scales:
                if values[i] is not None:
                    y = (F.mul if call.op.schema.inputs[i] == "weight" else F.add)(y, as_scale(i))
            results[0] = F.reshape(y, shape=(size, *shape))
        return tuple(results) if len(results) > 1 else results[0]

    return rule


def _gradients_of_entries(call, arrays, attrs, needs, as_scale, over_channels, as_groups, back):
    F = call.F
    dy, z = [over_channels(call.front(i)) for i in (0, 1)]
    dims = (1, *range(3, dy.ndim))
    made = []
    if needs[0]:
        dz = dy if call.values[3] is None else F.mul(dy, as_scale(3))
        dz = as_groups(dz)
        made.append(back(call.run(dz, *arrays[1:3], None, needs=(True, False, False), **attrs)))
    if needs[1]:
        made.append(F.sum(F.mul(dy, z), dim=dims, keepdim=False))
    if needs[2]:
        made.append(F.sum(dy, dim=dims, keepdim=False))
    return tuple(made) if len(made) > 1 else made[0]


def _shared(outputs):
    """Let a kernel run on some groups at a time, which threads share, on the CPU.

    `outputs` are the kinds of its results, as in `_lines`.
    """

    def decorate(kernel):
        inputs = [_KINDS[name] for name in inspect.signature(kernel).parameters if name in _KINDS]

        @functools.wraps(kernel)
        def shared(xp, *arrays, groups, **attrs):
            x = arrays[0]
            if x.size < LARGE or xp is not np or attrs.get("line") is not None:
                return kernel(xp, *arrays, groups=groups, **attrs)
            channels, out = attrs.get("channels"), attrs.get("out")
            # Groups with weights of their own are divided by channel. Else rows are, as many
            # together as one entry of `channels` has.
            by_channel = len(groups) == 3 or (channels and _by_channel(groups, channels))
            units = groups[-2] if by_channel else (channels or groups)[0]
            fits = units > 1 and (not by_channel or groups[-1] >= _SHORT_LINE)
            if not (fits and all([a is None or a.flags.c_contiguous for a in (*arrays, out)])):
                return kernel(xp, *arrays, groups=groups, **attrs)
            attrs.pop("out", None)
            needs = attrs.get("needs", (True,) * len(outputs))
            kinds = [kind for kind, need in zip(outputs, needs, strict=True) if need]
            dtype = np.dtype(np.float32) if x.dtype.char == "e" else x.dtype
            like = {"x": (x.shape, x.dtype), "g": ((groups[-2], 1), dtype)}
            like["c"] = ((units,), x.dtype)
            made = [np.empty(*like[kind]) for kind in kinds] if out is None else [out]
            sums = {}  # over rows, by piece: added in the same order at each call

            def cut(a, kind, rows):
                """Return the rows of an array, a view."""
                if kind == "x":
                    return a.reshape(groups)[..., rows, :]
                return a if a is None or (kind == "c" and not by_channel) else a[rows]

            def work(piece):
                each, n = groups[-2] // units, piece.stop - piece.start
                rows = slice(piece.start * each, piece.stop * each)
                here = {**attrs, "groups": (*groups[:-2], n * each, groups[-1])}
                if channels:
                    fitted = (channels[0], n, *channels[2:]) if by_channel else (n, *channels[1:])
                    here["channels"] = fitted
                parts = [cut(a, kind, rows) for a, kind in zip(arrays, inputs, strict=True)]
                found = kernel(np, *parts, **here)
                found = found if type(found) is tuple else (found,)
                for i, (kind, part) in enumerate(zip(kinds, found, strict=True)):
                    if kind == "c" and not by_channel:
                        sums[i, piece.start] = part
                    else:
                        cut(made[i], kind, rows)[...] = part

            in_pieces(work, units, x.nbytes // units)
            for number, kind in enumerate(kinds):
                if kind == "c" and not by_channel:
                    made[number] = sum([sums[at] for at in sorted(sums) if at[0] == number])
            return tuple(made) if len(made) > 1 else made[0]

        return shared

    return decorate


_STANDARDIZED = "m = mean(x); d = x - m; v = mean(d * d); rstd = 1 / sqrt(v + eps); z = d * rstd; "
_UNSCALED = {"weight": 1, "bias": -0.0}


@register_kernel(
    "standardize",
    infer=_with_statistics(1, 1),
    scalar=_lines(_STANDARDIZED + "z, rstd", "xg"),
    sbp=_parts("x", "xg"),
    batch=_batched("x", "xg"),
)
@_shared("xg")
def standardize(xp, x, *, groups, eps, line=None):
    """Return z = (x - mean) rstd, and rstd = 1 / √(var + eps)."""
    z, rstd, *_ = _standardized(xp, x, groups, eps, line)
    return restored(z, x), _of_group(rstd)


@register_kernel(
    "affine_norm",
    infer=_with_statistics(2, 1),
    scalar=_lines(_STANDARDIZED + "z * weight + bias, z, rstd", "xxg", _UNSCALED),
    sbp=_parts("x weight bias", "xxg"),
    batch=_batched("xcc", "xxg"),
)
@_shared("xxg")
def affine_norm(xp, x, weight, bias, *, groups, channels, eps):
    """Return z weight + bias, z and rstd.

    Weight and bias have one element for each c, where z is seen as `channels`, (a, c) or (a, c, l).
    """
    z, rstd, *_ = _standardized(xp, x, groups, eps)
    y = scaled(xp, z.reshape(channels), weight, bias)
    return restored(y, x), restored(z, x), _of_group(rstd)


@register_kernel(
    "batch_norm",
    infer=_with_statistics(2, 3),
    scalar=_lines(_STANDARDIZED + "z * weight + bias, z, rstd, v, m", "xxggg", _UNSCALED),
    sbp=_parts("x weight bias", "xxggg"),
    batch=_batched("xcc", "xxggg"),
)
@_shared("xxggg")
def batch_norm(xp, x, weight, bias, *, groups, channels, eps, line=None):
    """Return z weight + bias, z, rstd, var and mean; see `affine_norm`."""
    z, *statistics = _standardized(xp, x, groups, eps, line)
    y = scaled(xp, z.reshape(_here(channels, line)), weight, bias)
    return restored(y, x), restored(z, x), *map(_of_group, statistics)


@register_kernel(
    "rms_norm",
    infer=_with_statistics(2, 1),
    scalar=_lines(
        "rstd = 1 / sqrt(mean(x * x) + eps); z = x * rstd; z * weight, z, rstd", "xxg", _UNSCALED
    ),
    sbp=_parts("x weight", "xxg"),
    batch=_batched("xc", "xxg"),
)
@_shared("xxg")
def rms_norm(xp, x, weight, *, groups, eps):
    """Return z weight, z = x rstd, and rstd = 1 / √(mean x² + eps)."""
    z = wide(x).reshape(groups)
    count, ones = _of_groups(xp, groups, z.dtype)
    rstd = _rsqrt(xp, _total(xp, ones, z, z) / count, eps)
    z = z * rstd
    y = scaled(xp, z, weight, None)
    return restored(y, x), restored(z, x), _of_group(rstd)


def _standardize_grad_scalar(groups, centred):
    mean = " - mean(dy)" if centred else ""
    return f"(dy - z * mean(dy * z){mean}) * rstd"


@register_kernel(
    "standardize_grad",
    infer=in_c_order(like_first),
    reuses="z",
    scalar=_lines(_standardize_grad_scalar, "x"),
    sbp=_parts("dy z rstd", "x"),
    batch=_batched("xxg", "x"),
)
@_shared("x")
@in_float32
def standardize_grad(xp, dy, z, rstd, *, groups, centred, out=None, line=None):
    """(dy - mean dy - z mean(dy z)) rstd, without mean dy unless `centred`."""
    count, ones = _of_groups(xp, groups, dy.dtype)
    shape, groups = dy.shape, _here(groups, line)
    dx = None if out is None else out.reshape(groups)
    dy, z = dy.reshape(groups), z.reshape(groups)
    total = _total(xp, ones, dy, line=line) if centred else None
    dx = _dx(xp, dy, z, _total(xp, ones, dy, z, line), total, count, rstd, dx)
    return dx.reshape(shape) if out is None else out


def _dx(xp, dy, z, product, total, count, scale, out=None):
    """(dy - mean dy - z mean(dy z)) scale, by both sums."""
    mean = rest = None
    if total is not None:
        mean, rest = _split(total / count, dy.dtype)
    dx = xp.multiply(z, product / count, out=out)
    if rest is not None:
        dx += rest
    xp.subtract(dy, dx, out=dx)
    if mean is not None:
        dx -= mean
    dx *= scale
    return dx


@in_c_order
def _of_each(dy, z, rstd, weight, *, channels, needs, **attrs):
    of_channels = ArraySpec((channels[1],), dy.dtype)
    specs = zip((ArraySpec(dy.shape, dy.dtype), of_channels, of_channels), needs, strict=True)
    made = tuple([spec for spec, need in specs if need])
    return made if len(made) > 1 else made[0]


def _by_channel(groups, channels):
    """Return whether each group has a weight of its own."""
    return len(channels) == 3 and groups in (channels, channels[1:])


def _affine_norm_grad_scalar(groups, channels, needs):
    if _by_channel(groups, channels):
        dx = "(dy - z * mean(dy * z) - mean(dy)) * (rstd * weight)"
    else:
        dx = "(dz - z * mean(dz * z) - mean(dz)) * rstd"
    made = [dx, "total(dy * z)", "total(dy)"]
    results = ", ".join([text for text, need in zip(made, needs, strict=True) if need])
    return f"dz = dy * weight; {results}"


@register_kernel(
    "affine_norm_grad",
    infer=_of_each,
    scalar=_lines(_affine_norm_grad_scalar, "xcc", _UNSCALED),
    sbp=_parts("dy z rstd weight", "xcc"),
    batch=_batched("xxgc", "xcc"),
)
@_shared("xcc")
@in_float32
def affine_norm_grad(xp, dy, z, rstd, weight, *, groups, channels, needs, line=None):
    """Return the gradients of x, weight and bias, as far as they are needed."""
    dx = dweight = dbias = None
    count, ones = _of_groups(xp, groups, dy.dtype)
    if _by_channel(groups, channels):  # both sums are gradients, too
        dz, z = dy.reshape(_here(groups, line)), z.reshape(_here(groups, line))
        product = _total(xp, ones, dz, z, line)
        total = _total(xp, ones, dz, line=line)
        if needs[1]:
            dweight = product[:, 0].copy()
        if needs[2]:
            dbias = total[:, 0].astype(dy.dtype)
        rstd = rstd if weight is None else rstd * weight[:, None]
    else:
        dz = dy.reshape(channels)
        if needs[1]:
            dweight = _sum_by_channel(xp, dz, z.reshape(channels))
        if needs[2]:
            dbias = _sum_by_channel(xp, dz)
        if needs[0]:
            if weight is not None:
                dz = dz * _column(xp, weight, dz)
            if groups != channels:
                dz = dz.reshape(groups)
            z = z.reshape(groups)
            product, total = _total(xp, ones, dz, z), _total(xp, ones, dz)
    if needs[0]:
        dx = xp.empty(dy.shape, dy.dtype)  # not a view: the caller takes what owns its memory
        _dx(xp, dz, z, product, total, count, rstd, dx.reshape(dz.shape))
    gradients = tuple([each for each in (dx, dweight, dbias) if each is not None])
    return gradients if len(gradients) > 1 else gradients[0]


@register_kernel("update_running", mutates="running", infer=written, sbp="whole", batch="front")
def update_running(xp, running, batch, *, momentum):
    """running ← (1 - momentum) running + momentum batch, in place."""
    running *= 1 - momentum
    running += momentum * batch.reshape(running.shape)
    return running


def wide(x):
    """Halves are computed in float32, and their statistics stay so, as in PyTorch."""
    return x.astype(np.float32) if x.dtype.char == "e" else x


def restored(y, x):
    y = y.reshape(x.shape)
    return y if y.dtype is x.dtype else y.astype(x.dtype)


def _of_group(statistic):
    return statistic if statistic.shape[1] == 1 else statistic[:, :1].copy()


def _here(shape, line):
    """Return the shape of a rank's rows."""
    return shape if line is None else (-1, *shape[1:])


def _standardized(xp, x, groups, eps, line=None):
    """Return z, rstd, variance and mean, all as groups."""
    x = wide(x).reshape(_here(groups, line))
    count, ones = _of_groups(xp, groups, x.dtype)
    mean, rest = _split(_total(xp, ones, x, line=line) / count, x.dtype)
    z = x - mean
    if rest is not None:
        z -= rest
    variance = _total(xp, ones, z, z, line)
    variance /= count
    rstd = _rsqrt(xp, variance, eps)
    z *= rstd
    return z, rstd, variance, mean


def _split(mean, dtype):
    """Return a mean in a dtype, and what rounding took from one that was kept in float64, or None.

    All elements of a group lose the same amount, which adds up.
    """
    if mean.dtype is dtype:
        return mean, None
    high = mean.astype(dtype)
    return high, (mean - high).astype(dtype)


@functools.lru_cache(256)
def _of_groups(xp, groups, dtype):
    """Return the number of elements in a group, and `ones_for_lines` of the groups."""
    size = groups[-1]
    count = _number(xp, max(1, size if len(groups) == 2 else groups[0] * size), dtype)
    return count, ones_for_lines(groups, dtype) if xp is np else None


@functools.lru_cache(256)
def _number(xp, number, dtype):
    """Return a number; for NumPy a 0-d array, which beside small arrays takes half the time."""
    return np.array(number, dtype) if xp is np else number


def _total(xp, ones, x, y=None, line=None):
    """Return the sum of x, or of x y, in each group: (B, 1), or by `ones` (B, P), at each element.

    With a column, which broadcasts, NumPy takes thrice as long as with a matrix.
    """
    if line is not None:  # summed over all ranks
        return line.reduce(_total(xp, None, x, y).astype(x.dtype, copy=False), "sum")
    if ones is not None:
        return (x if y is None else x * y).dot(ones)
    if xp is np and x.size <= _FEW:
        x = x if y is None else x * y
        return (
            np.add.reduce(x, 1, keepdims=True) if x.ndim == 2 else np.add.reduce(x, (0, 2))[:, None]
        )
    x, y = [each if each is None or each.ndim == 3 else each[None] for each in (x, y)]
    if y is not None:
        by_lines = xp is np and x.shape[2] >= _SHORT_LINE
        return (_sum_of_lines if by_lines else _sum_of_columns)(xp, x, y)[:, None]
    if x.shape[2] == 1:
        return sum_over(xp, x, (0, 2), rounded=False)[:, None]
    short = x.shape[2] <= _LINE
    lines = x @ xp.ones(x.shape[2], x.dtype) if short else sum_over(xp, x, (2,), rounded=False)
    return sum_over(xp, lines, (0,), rounded=False)[:, None]


@functools.lru_cache(64)
def _ones(size, dtype):
    return np.ones(size, dtype)


# Many products are summed in blocks: a running sum in float32 loses digits with its length.


def _sum_of_lines(xp, x, y):
    return sum_over(xp, dot_of_lines(x, y), (0,))


def _sum_of_columns(xp, x, y):
    a, b, p = x.shape
    rest = a % _RUN if xp is np and a > _RUN else a
    total = xp.einsum("abp,abp->b", x[:rest], y[:rest])
    if rest < a:
        blocks = (-1, _RUN, b, p)
        x, y = x[rest:].reshape(blocks), y[rest:].reshape(blocks)
        total += sum_over(xp, xp.einsum("kabp,kabp->kb", x, y), (0,))
    return total


def _rsqrt(xp, variance, eps):
    return xp.reciprocal(xp.sqrt(variance + _number(xp, eps, variance.dtype)))


def scaled(xp, z, weight, bias):
    y = z.copy() if weight is None else z * _column(xp, weight, z)
    if bias is not None:
        y += _column(xp, bias, z)
    return y


def _column(xp, scale, x):
    """Let one number for each channel meet x (a, c) or (a, c, l)."""
    if x.size <= _VERY_FEW and xp is np:
        return scale[_channels(x.shape)]
    return scale if x.ndim == 2 else scale[:, None]


@functools.lru_cache(64)
def _channels(shape):
    return np.indices(shape)[1]


def _sum_by_channel(xp, x, y=None):
    if y is not None:
        if xp is np and x.ndim == 3 and x.shape[2] >= _SHORT_LINE:
            return _sum_of_lines(xp, x, y)
        x = x * y
    if xp is np and x.ndim == 2 and len(x) <= _LINE:
        return _ones(len(x), x.dtype).dot(x)
    return sum_over(xp, x, 0 if x.ndim == 2 else (0, 2))
