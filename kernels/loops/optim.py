"""Loops of the optimizer updates that most scripts use; see `kernels/optim.py` for the formulas."""

import numpy as np

from oneflow_lite.eager_loops import Loop
from oneflow_lite.kernels.loops.names import maximum, real, sqrt


@Loop
def _sgd(part, begin, end, p, g, buffer, lr, momentum, share, decay, sign, nesterov):
    p, g = p[begin:end], g[begin:end]
    if buffer is not None:
        moving = buffer[begin:end]
    rate, keep, new, decayed, way = real(lr), real(momentum), real(share), real(decay), real(sign)
    for i in range(p.size):
        d = g[i] * way + p[i] * decayed
        if buffer is not None:
            b = moving[i] * keep + d * new
            moving[i] = b
            d = d + b * keep if nesterov else b
        p[i] -= d * rate


@Loop
def _adam(part, begin, end, p, g, m, v, v_max, rate, eps, new1, old2, new2, decay, sign, decoupled):
    p, g, m, v = p[begin:end], g[begin:end], m[begin:end], v[begin:end]
    if v_max is not None:
        largest = v_max[begin:end]
    step, floor, share = real(rate), real(eps), real(new1)
    keep2, share2, decayed, way = real(old2), real(new2), real(decay), real(sign)
    for i in range(p.size):
        old = p[i]
        d = g[i] * way
        if decoupled:
            old *= decayed
        else:
            d += old * decayed
        first = m[i] + (d - m[i]) * share
        second = v[i] * keep2 + d * d * share2
        m[i] = first
        v[i] = second
        if v_max is not None:
            second = maximum(largest[i], second)
            largest[i] = second
        p[i] = old - first / (sqrt(second) + floor) * step


def _flat(param, *others):
    """Return arrays as lines; None where one is missing; nothing where they do not fit."""
    if param.dtype.char not in "fd":
        return None
    for x in others:
        if x is not None and (x.dtype is not param.dtype or not x.flags.c_contiguous):
            return None
    if not param.flags.c_contiguous:
        return None
    return [None if x is None else x.reshape(-1) for x in (param, *others)]


def _number(x, default=0.0):
    return default if x is None else float(x.item())


def sgd_update(
    param, grad, buffer, step, lr, momentum, dampening, weight_decay, *, nesterov=False,
    maximize=False,
):  # fmt: skip
    arrays = _flat(param, grad, buffer)
    if arrays is None:
        return None
    t = 2.0 if step is None else step.item() + 1
    share = 1.0 if step is None else 1.0 - _number(dampening) * (t > 1)
    numbers = (_number(lr), _number(momentum), share, _number(weight_decay))
    if not _sgd(param.size, *arrays, *numbers, -1.0 if maximize else 1.0, bool(nesterov)):
        return None
    if step is not None:
        np.add(step, 1, out=step)
    return param


def adam_update(
    param, grad, m, v, v_max, step, lr, beta1, beta2, eps, weight_decay, *, maximize=False,
    decoupled_weight_decay=False,
):  # fmt: skip
    arrays = _flat(param, grad, m, v, v_max)
    if arrays is None:
        return None
    t, rate, beta1, beta2 = step.item() + 1, _number(lr), _number(beta1), _number(beta2)
    root = (1.0 - beta2**t) ** 0.5
    decay = _number(weight_decay)
    numbers = (
        rate * root / (1.0 - beta1**t),
        _number(eps) * root,
        1 - beta1,
        beta2,
        1 - beta2,
        1.0 - rate * decay if decoupled_weight_decay else decay,
        -1.0 if maximize else 1.0,
    )
    if not _adam(param.size, *arrays, *numbers, bool(decoupled_weight_decay)):
        return None
    np.add(step, 1, out=step)
    return param
