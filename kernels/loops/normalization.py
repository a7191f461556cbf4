"""Loops of layer, group, batch and root-mean-square normalization.

Lines are the rows of `groups` (B, P); planes those of (A, B, P), where a group is cut in pieces.
"""

import numpy as np

from oneflow_lite.eager_loops import Loop, parts_of
from oneflow_lite.kernels.loops.names import add, real, sqrt

_SHORT = 8  # pieces of a group that are shorter leave too little for an inner loop


@Loop
def _lines(part, begin, end, x, weight, bias, y, z, rstd, channels, length, centred, eps):
    n = x.shape[1]
    of_line = n // length  # the channels
    for i in range(begin, end):
        total = 0.0
        if centred:
            for j in range(n):
                total = add(total, x[i, j])
        mean = real(total / n)
        total = 0.0
        for j in range(n):
            away = x[i, j] - mean
            z[i, j] = away
            total = add(total, away * away)
        scale = real(1.0 / sqrt(total / n + eps))
        rstd[i, 0] = scale
        if y is None or length > 1:
            for j in range(n):
                z[i, j] *= scale
        if y is None:
            continue
        first = i * of_line % channels
        if length == 1:
            for j in range(n):
                t = z[i, j] * scale
                z[i, j] = t
                if weight is not None:
                    t *= weight[j]
                if bias is not None:
                    t += bias[j]
                y[i, j] = t
        else:
            for k in range(of_line):
                zs = z[i, k * length : (k + 1) * length]
                ys = y[i, k * length : (k + 1) * length]
                w, b = real(1.0), real(0.0)
                if weight is not None:
                    w = weight[first + k]
                if bias is not None:
                    b = bias[first + k]
                for j in range(length):
                    ys[j] = zs[j] * w + b


@Loop
def _planes(part, begin, end, x, weight, bias, y, z, rstd, var, mean, eps):
    a, _, n = x.shape
    for i in range(begin, end):
        total = 0.0
        for k in range(a):
            for j in range(n):
                total = add(total, x[k, i, j])
        middle = real(total / (a * n))
        total = 0.0
        for k in range(a):
            for j in range(n):
                away = x[k, i, j] - middle
                total = add(total, away * away)
        scale = real(1.0 / sqrt(total / (a * n) + eps))
        mean[i, 0], var[i, 0], rstd[i, 0] = middle, total / (a * n), scale
        w, b = real(1.0), real(0.0)
        if weight is not None:
            w = weight[i]
        if bias is not None:
            b = bias[i]
        for k in range(a):
            for j in range(n):
                t = (x[k, i, j] - middle) * scale
                z[k, i, j] = t
                y[k, i, j] = t * w + b


@Loop
def _grad_of_lines(
    part, begin, end, dy, z, rstd, weight, dx, dweight, dbias, channels, length, centred
):
    n = dy.shape[1]
    of_line = n // length
    for i in range(begin, end):
        first = i * of_line % channels
        of_dy, of_both = 0.0, 0.0
        if length == 1:
            for j in range(n):
                t = dy[i, j]
                if dbias is not None:
                    dbias[part, j] += t
                if dweight is not None:
                    dweight[part, j] += t * z[i, j]
            for j in range(n):
                t = dy[i, j]
                if weight is not None:
                    t *= weight[j]
                of_dy, of_both = add(of_dy, t), add(of_both, t * z[i, j])
        else:
            for k in range(of_line):
                dys = dy[i, k * length : (k + 1) * length]
                zs = z[i, k * length : (k + 1) * length]
                s, t = 0.0, 0.0
                for j in range(length):
                    s, t = add(s, dys[j]), add(t, dys[j] * zs[j])
                if dbias is not None:
                    dbias[part, first + k] += s
                if dweight is not None:
                    dweight[part, first + k] += t
                w = 1.0
                if weight is not None:
                    w = weight[first + k]
                of_dy += w * s
                of_both += w * t
        if dx is None:
            continue
        mean = real(of_dy / n) if centred else real(0.0)
        along, scale = real(of_both / n), rstd[i, 0]
        if length == 1:
            for j in range(n):
                t = dy[i, j]
                if weight is not None:
                    t *= weight[j]
                dx[i, j] = (t - z[i, j] * along - mean) * scale
        else:
            for k in range(of_line):
                dys = dy[i, k * length : (k + 1) * length]
                zs = z[i, k * length : (k + 1) * length]
                dxs = dx[i, k * length : (k + 1) * length]
                w = real(1.0)
                if weight is not None:
                    w = weight[first + k]
                for j in range(length):
                    dxs[j] = (dys[j] * w - zs[j] * along - mean) * scale


@Loop
def _grad_of_planes(part, begin, end, dy, z, rstd, weight, dx, dweight, dbias, centred):
    a, _, n = dy.shape
    for i in range(begin, end):
        of_dy, of_both = 0.0, 0.0
        for k in range(a):
            for j in range(n):
                t = dy[k, i, j]
                of_dy, of_both = add(of_dy, t), add(of_both, t * z[k, i, j])
        if dweight is not None:
            dweight[i] = of_both
        if dbias is not None:
            dbias[i] = of_dy
        if dx is None:
            continue
        mean = real(of_dy / (a * n)) if centred else real(0.0)
        along, scale = real(of_both / (a * n)), rstd[i, 0]
        if weight is not None:
            scale = scale * weight[i]
        for k in range(a):
            for j in range(n):
                dx[k, i, j] = (dy[k, i, j] - z[k, i, j] * along - mean) * scale


def _fits(x, *others):
    return x.dtype.char in "fd" and all([y is None or y.dtype is x.dtype for y in others])


def _normalized(x, weight, bias, groups, channels, eps, scaled, centred=True):
    if len(groups) != 2 or not _fits(x, weight, bias) or not groups[1]:
        return None
    y = np.empty(x.shape, x.dtype) if scaled else None
    z, rstd = np.empty(x.shape, x.dtype), np.empty((groups[0], 1), x.dtype)
    length = channels[2] if len(channels) == 3 else 1
    if length == 1 and scaled and channels[1] != groups[1]:
        return None
    lines = [None if each is None else each.reshape(groups) for each in (y, z)]
    numbers = (channels[1], length, centred, float(eps))
    made = _lines(groups[0], x.reshape(groups), weight, bias, *lines, rstd, *numbers)
    return ((y, z, rstd) if scaled else (z, rstd)) if made else None


def standardize(x, *, groups, eps):
    return _normalized(x, None, None, groups, groups, eps, False)


def affine_norm(x, weight, bias, *, groups, channels, eps):
    return _normalized(x, weight, bias, groups, channels, eps, True)


def rms_norm(x, weight, *, groups, eps):
    return _normalized(x, weight, None, groups, groups, eps, True, False)


def batch_norm(x, weight, bias, *, groups, channels, eps):
    if len(groups) != 3 or channels != groups or groups[2] < _SHORT or not _fits(x, weight, bias):
        return None
    y, z = np.empty(x.shape, x.dtype), np.empty(x.shape, x.dtype)
    rstd, var, mean = (np.empty((groups[1], 1), x.dtype) for _ in range(3))
    planes = [each.reshape(groups) for each in (y, z)]
    made = _planes(groups[1], x.reshape(groups), weight, bias, *planes, rstd, var, mean, float(eps))
    return (y, z, rstd, var, mean) if made else None


def standardize_grad(dy, z, rstd, *, groups, centred, out=None):
    if not _fits(dy, z, rstd) or not groups[-1]:
        return None
    dx = np.empty(dy.shape, dy.dtype) if out is None else out
    arrays = [each.reshape(groups) for each in (dy, z, dx)]
    dys, zs, dxs = arrays
    if len(groups) == 2:
        numbers = (groups[1], 1, centred)
        made = _grad_of_lines(groups[0], dys, zs, rstd, None, dxs, None, None, *numbers)
    elif groups[2] < _SHORT:
        return None
    else:
        made = _grad_of_planes(groups[1], dys, zs, rstd, None, dxs, None, None, centred)
    return dx if made else None


def affine_norm_grad(dy, z, rstd, weight, *, groups, channels, needs):
    if not _fits(dy, z, rstd, weight) or not groups[-1]:
        return None
    dx = np.empty(dy.shape, dy.dtype) if needs[0] else None
    dys, zs, dxs = [None if each is None else each.reshape(groups) for each in (dy, z, dx)]
    if len(groups) == 3:
        if channels != groups or groups[2] < _SHORT:
            return None
        made = [np.empty(groups[1], dy.dtype) if need else None for need in needs[1:]]
        if not _grad_of_planes(groups[1], dys, zs, rstd, weight, dxs, *made, True):
            return None
    else:
        parts = parts_of(dy.size, groups[0])
        sums = [np.zeros((parts, channels[1])) if need else None for need in needs[1:]]
        length = channels[2] if len(channels) == 3 else 1
        if length == 1 and groups != channels:
            return None
        numbers = (channels[1], length, True)
        if not _grad_of_lines(groups[0], dys, zs, rstd, weight, dxs, *sums, *numbers, parts=parts):
            return None
        made = [None if each is None else each.sum(0).astype(dy.dtype) for each in sums]
    found = tuple([each for each in (dx, *made) if each is not None])
    return found if len(found) > 1 else found[0]
