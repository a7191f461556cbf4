"""Optimizer updates: one op per parameter and step, writing parameter and state in place.

Hyperparameters come as 0-d float64 arrays. On the CPU they are read as Python floats, so that
coefficients are computed in double precision at no cost; on CUDA they stay on the device.
"""

import itertools

from oneflow_lite.kernels.infer_rules import written
from oneflow_lite.registry import register_kernel

# Elements that are updated at a time on the CPU, so that their parameter, gradient, state and
# temporaries stay in the cache. The quickest of the powers of two for 50,000 to 4 million floats.
_BLOCK = 65536


def _scalars(xp, *values):
    """Return 0-d arrays as Python floats on the CPU, as they are on CUDA; None stays None."""
    if xp.__name__ != "numpy":
        return values
    return [None if value is None else value.item() for value in values]


def _blocks(xp, *arrays):
    """Yield the arrays, None apart, in pieces of matching elements.

    0-d arrays become 1-d views: NumPy answers 0-d inputs with scalars, which are no `out`.
    """
    size = arrays[0].size
    if not arrays[0].ndim:
        yield _each(arrays, lambda x: x.reshape(1))
    elif (
        size <= _BLOCK
        or xp.__name__ != "numpy"
        or not all([x is None or x.flags.c_contiguous for x in arrays])
    ):
        yield arrays
    else:
        flat = _each(arrays, lambda x: x.reshape(size))
        for start in range(0, size, _BLOCK):
            yield _each(flat, lambda x, start=start: x[start : start + _BLOCK])


def _each(arrays, function):
    return [None if x is None else function(x) for x in arrays]


@register_kernel("sgd_update", mutates=("param", "momentum_buffer", "step"), infer=written)
def sgd_update(
    xp,
    param,
    grad,
    momentum_buffer,
    step,
    lr,
    momentum,
    dampening,
    weight_decay,
    *,
    nesterov=False,
    maximize=False,
):
    # g = grad + weight_decay p;  b = momentum b + (1 - dampening) g;  p -= lr b
    # momentum and momentum_buffer are None without momentum, dampening and step without
    # dampening, weight_decay without it: what is None costs nothing.
    dtype = param.dtype
    lr = lr.astype(dtype)
    momentum = None if momentum is None else momentum.astype(dtype)
    decay = None if weight_decay is None else weight_decay.astype(dtype)
    share = None
    if momentum_buffer is not None and dampening is not None:
        # The first step takes the gradient whole. Written as a factor, for the step count may lie
        # on the device and is not looked at from Python.
        share = (1.0 - dampening * (step > 0)).astype(dtype)
        xp.add(step, 1, out=step)
    for p, g, buffer in _blocks(xp, param, grad, momentum_buffer):
        own = None  # a temporary that may be overwritten
        if maximize:
            g = own = xp.negative(g)
        if decay is not None:
            decayed = xp.multiply(p, decay)
            g = own = xp.add(decayed, g, out=decayed)
        if buffer is not None:
            xp.multiply(buffer, momentum, out=buffer)
            xp.add(buffer, g if share is None else xp.multiply(g, share), out=buffer)
            if nesterov:
                ahead = xp.multiply(buffer, momentum)
                g = own = xp.add(ahead, g, out=ahead)
            else:
                g, own = buffer, None
        change = xp.multiply(g, lr, out=own)
        xp.subtract(p, change, out=p)
    return param


@register_kernel(
    "adam_update",
    mutates=("param", "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"),
    infer=written,
)
def adam_update(
    xp,
    param,
    grad,
    exp_avg,
    exp_avg_sq,
    max_exp_avg_sq,
    step,
    lr,
    beta1,
    beta2,
    eps,
    weight_decay,
    *,
    decoupled_weight_decay=False,
    maximize=False,
):
    # m += (1 - beta1)(g - m);  v += (1 - beta2)(g^2 - v);  p -= lr m^ / (sqrt(v^) + eps), where
    # m^ = m / (1 - beta1^t) and v^ = v / (1 - beta2^t), v the largest so far for max_exp_avg_sq.
    xp.add(step, 1, out=step)
    t, lr, beta1, beta2, eps, decay = _scalars(xp, step, lr, beta1, beta2, eps, weight_decay)
    root = (1.0 - beta2**t) ** 0.5
    # m^ / (sqrt(v^) + eps) = root / (1 - beta1^t) * m / (sqrt(v) + root eps): one pass less.
    rate = lr * root / (1.0 - beta1**t)
    if decay is not None and decoupled_weight_decay:
        decay = 1.0 - lr * decay
    real = param.real.dtype
    rate, eps, new1, old2, new2 = (
        xp.asarray(value, dtype=real) for value in (rate, eps * root, 1 - beta1, beta2, 1 - beta2)
    )
    decay = None if decay is None else xp.asarray(decay, dtype=real)
    arrays = (param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq)
    if param.dtype.kind == "c":  # real and imaginary parts are two parameters
        parts = [_each(arrays, lambda x, of=of: getattr(x, of)) for of in ("real", "imag")]
    else:
        parts = [arrays]
    for p, g, m, v, v_max in itertools.chain(*[_blocks(xp, *part) for part in parts]):
        if maximize:
            g = xp.negative(g)
        if decay is not None and decoupled_weight_decay:
            xp.multiply(p, decay, out=p)
        elif decay is not None:
            decayed = xp.multiply(p, decay)
            g = xp.add(decayed, g, out=decayed)
        work = xp.subtract(g, m)
        xp.multiply(work, new1, out=work)
        xp.add(m, work, out=m)
        xp.multiply(g, g, out=work)
        xp.multiply(work, new2, out=work)
        xp.multiply(v, old2, out=v)
        xp.add(v, work, out=v)
        if v_max is not None:
            v = xp.maximum(v_max, v, out=v_max)
        xp.sqrt(v, out=work)
        xp.add(work, eps, out=work)
        xp.divide(m, work, out=work)
        xp.multiply(work, rate, out=work)
        xp.subtract(p, work, out=p)
    return param
