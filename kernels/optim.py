"""Optimizer updates: one op per parameter and step, writing parameter and state in place.

`_update` holds the parts that all share: the step count, ascent instead of descent, weight decay,
complex numbers as two real ones, and pieces that fit the cache. Around it, each update is a
function of the hyperparameters that returns the function of one piece.

Hyperparameters come as 0-d float64 arrays. On the CPU they are read as Python floats, so that
coefficients are computed in double precision at no cost; on CUDA they stay on the device.
"""

import inspect

import numpy as np

from oneflow_lite.errors import arg_error
from oneflow_lite.kernels import bfloat16_products
from oneflow_lite.kernels.infer_rules import says
from oneflow_lite.ops.registry import register_kernel

# Elements that are updated at a time on the CPU, so that their parameter, gradient, state and
# temporaries stay in the cache. The quickest of the powers of two for 50,000 to 4 million floats.
_BLOCK = 65536


def _update(
    name,
    state="",
    options="lr weight_decay",
    numbers="step",
    whole=False,
    decouples=False,
    sbp=None,
):
    """Register an update op around `formula(xp, cast, *numbers, *options, **attributes)`.

    The op takes param, grad, the arrays of `state`, the 0-d `numbers` (the last is the step count,
    which reaches the formula as a scalar, already counting this step) and the `options`.
    `weight_decay`, the last of them, is dealt with here, unless the formula looks at the parameter
    as a `whole`. The formula makes its coefficients arrays of the parameter's dtype by `cast` and
    returns `piece(p, g, *state)`, which is called with matching pieces of the arrays. An array that
    is None (a state that is not kept, an option that is zero) costs nothing.
    """
    arrays = ["param", "grad", *state.split()]
    kept, read = numbers.split(), options.split()
    counts, decays = "step" in kept, "weight_decay" in read and not whole
    first, last, others = len(arrays), len(arrays) + len(kept), len(kept) - counts

    def register(formula):
        def kernel(xp, *inputs, maximize=False, decoupled_weight_decay=False, **given):
            param = inputs[0]
            if counts and inputs[last - 1] is not None:
                xp.add(inputs[last - 1], 1, out=inputs[last - 1])
            scalars = [None if x is None else x.item() if xp is np else x for x in inputs[first:]]
            if others:
                scalars[:others] = inputs[first : first + others]
            dtype = param.dtype if param.dtype.kind != "c" else param.real.dtype

            def cast(*values):  # copies: a number of the state may be written before it is used
                return [None if x is None else xp.array(x, dtype=dtype) for x in values]

            decay = None
            if decays and (decay := scalars.pop()) is not None:
                decay = 1.0 - scalars[last - first] * decay if decoupled_weight_decay else decay
                (decay,) = cast(decay)
            piece = formula(xp, cast, *scalars, **given)
            for p, g, *state in _pieces(xp, inputs[:first], whole):
                if maximize:
                    g = xp.negative(g)
                if decay is not None and decoupled_weight_decay:
                    xp.multiply(p, decay, out=p)
                elif decay is not None:
                    decayed = xp.multiply(p, decay)
                    g = xp.add(decayed, g, out=decayed)
                piece(p, g, *state)
            return param

        kinds, only = inspect.Parameter, inspect.Parameter.KEYWORD_ONLY
        flags = ["maximize", "decoupled_weight_decay"][: 1 + decouples]
        signature = inspect.Signature(
            [kinds(x, kinds.POSITIONAL_OR_KEYWORD) for x in ("xp", *arrays, *kept, *read)]
            + [x for x in inspect.signature(formula).parameters.values() if x.kind == only]
            + [kinds(x, only, default=False) for x in flags]
        )
        setattr(kernel, "__signature__", signature)  # noqa: B010
        mutated = tuple(x for x in (*arrays, *kept) if x != "grad")
        return register_kernel(name, mutates=mutated, infer=described, sbp=sbp, batch="refuse")(
            kernel
        )

    @says("elementwise")
    def described(param, *others, **attrs):
        """The parameter; a Program from a file may have brought together what does not fit."""
        for i, x in enumerate(others, 1):
            alike = i == 1 or (i < first and not whole)
            if x is not None and (x.shape != param.shape if alike else i >= first and x.size != 1):
                expected = f"shape {tuple(param.shape) if alike else ()}"
                argument, hint = [*arrays, *kept, *read][i], "match the parameter"
                raise arg_error(name, argument, expected, f"shape {tuple(x.shape)}", hint)
        return param

    return register


def _pieces(xp, arrays, whole):
    """Return the arrays, None apart, in pieces of matching elements.

    0-d arrays become 1-d views: NumPy answers 0-d inputs with scalars, which are no `out`.
    """
    param = arrays[0]
    size = param.size
    if size <= _BLOCK and param.ndim and param.dtype.kind != "c":  # the common case, and quick
        return (arrays,)
    if param.dtype.kind == "c":  # real and imaginary parts are two parameters
        parts = [_each(arrays, lambda x, of=of: getattr(x, of)) for of in ("real", "imag")]
        return [piece for part in parts for piece in _pieces(xp, part, whole)]
    if not param.ndim:
        return [_each(arrays, lambda x: x.reshape(1))]
    if whole or xp is not np or not all([x is None or x.flags.c_contiguous for x in arrays]):
        return [arrays]
    flat = _each(arrays, lambda x: x.reshape(size))
    return [
        _each(flat, lambda x, start=start: x[start : start + _BLOCK])
        for start in range(0, size, _BLOCK)
    ]


def _each(arrays, function):
    return [None if x is None else function(x) for x in arrays]


def _average(xp, mean, x, share):
    """Move a running mean towards x; return a temporary."""
    work = xp.subtract(x, mean)
    xp.multiply(work, share, out=work)
    xp.add(mean, work, out=mean)
    return work


def _average_square(xp, mean, x, keep, share, work=None):
    """Move a running mean towards the square of x; return a temporary."""
    work = xp.multiply(x, x, out=work)
    xp.multiply(work, share, out=work)
    xp.multiply(mean, keep, out=mean)
    xp.add(mean, work, out=mean)
    return work


def _descend(xp, p, rate, above, below):
    """Take rate * above / below from p; `below` is overwritten."""
    xp.divide(above, below, out=below)
    xp.multiply(below, rate, out=below)
    xp.subtract(p, below, out=p)


def _root(xp, x, eps, out=None):
    """Return sqrt(x) + eps."""
    root = xp.sqrt(x, out=out)
    return xp.add(root, eps, out=root)


@_update("sgd_update", "momentum_buffer", "lr momentum dampening weight_decay")
def _sgd(xp, cast, t, lr, momentum, dampening, *, nesterov=False):
    # b = momentum b + (1 - dampening) g;  p -= lr b, or lr (g + momentum b)
    # The first step takes the gradient whole. Written as a factor, for the step count may lie on
    # the device and is not looked at from Python.
    share = None if t is None or dampening is None else 1.0 - dampening * (t > 1)
    lr, momentum, share = cast(lr, momentum, share)

    def piece(p, g, buffer):
        work = None
        if buffer is not None:
            xp.multiply(buffer, momentum, out=buffer)
            xp.add(buffer, g if share is None else xp.multiply(g, share), out=buffer)
            if nesterov:
                work = xp.multiply(buffer, momentum)
                g = xp.add(work, g, out=work)
            else:
                g = buffer
        change = xp.multiply(g, lr, out=work)
        xp.subtract(p, change, out=p)

    return piece


@_update(
    "adam_update",
    "exp_avg exp_avg_sq max_exp_avg_sq",
    "lr beta1 beta2 eps weight_decay",
    decouples=True,
)
def _adam(xp, cast, t, lr, beta1, beta2, eps):
    # m += (1 - beta1)(g - m);  v += (1 - beta2)(g^2 - v);  p -= lr m^ / (sqrt(v^) + eps), where
    # m^ = m / (1 - beta1^t) and v^ = v / (1 - beta2^t), v the largest so far for max_exp_avg_sq.
    # m^ / (sqrt(v^) + eps) = root / (1 - beta1^t) * m / (sqrt(v) + root eps): one pass less.
    root = (1.0 - beta2**t) ** 0.5
    rate, eps, new1, old2, new2 = cast(
        lr * root / (1.0 - beta1**t), eps * root, 1 - beta1, beta2, 1 - beta2
    )

    def piece(p, g, m, v, v_max):
        work = _average(xp, m, g, new1)
        _average_square(xp, v, g, old2, new2, work)
        if v_max is not None:
            v = xp.maximum(v_max, v, out=v_max)
        _descend(xp, p, rate, m, _root(xp, v, eps, work))

    return piece


@_update(
    "nadam_update",
    "exp_avg exp_avg_sq",
    "lr beta1 beta2 eps momentum_decay weight_decay",
    "mu_product step",
    decouples=True,
)
def _nadam(xp, cast, product, t, lr, beta1, beta2, eps, momentum_decay):
    # mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2);  p -= lr g^ / (sqrt(v^) + eps), where
    # g^ = (1 - mu_t) g / (1 - mu_1...mu_t) + mu_{t+1} m / (1 - mu_1...mu_{t+1})
    mu, mu_next = (beta1 * (1.0 - 0.5 * 0.96 ** (n * momentum_decay)) for n in (t, t + 1))
    xp.multiply(product, mu, out=product)
    so_far = product.item() if xp is np else product
    root = (1.0 - beta2**t) ** 0.5
    of_g, of_m, rate, eps, new1, old2, new2 = cast(
        (1.0 - mu) / (1.0 - so_far),
        mu_next / (1.0 - so_far * mu_next),
        lr * root,
        eps * root,
        1 - beta1,
        beta2,
        1 - beta2,
    )

    def piece(p, g, m, v):
        work = _average(xp, m, g, new1)
        _average_square(xp, v, g, old2, new2, work)
        xp.multiply(m, of_m, out=work)
        ahead = xp.multiply(g, of_g)
        xp.add(ahead, work, out=ahead)
        _descend(xp, p, rate, ahead, _root(xp, v, eps, work))

    return piece


@_update(
    "radam_update",
    "exp_avg exp_avg_sq",
    "lr beta1 beta2 eps weight_decay",
    decouples=True,
)
def _radam(xp, cast, t, lr, beta1, beta2, eps):
    # As Adam times the rectification r, once the length of the average, rho, exceeds 5; before,
    # p -= lr m^. Written without a branch, for t may lie on the device: up to a rho of 5 the
    # numbers under the root are clamped, and the root is not used.
    longest = 2.0 / (1.0 - beta2) - 1.0
    length = longest - 2.0 * t * beta2**t / (1.0 - beta2**t)
    known, n, top = length > 5, xp.maximum(length, 5.0), xp.maximum(longest, 5.0)
    rectified = ((n - 4) * (n - 2) * top / ((top - 4) * (top - 2) * n)) ** 0.5
    rate = lr / (1.0 - beta1**t) * xp.where(known, rectified * (1.0 - beta2**t) ** 0.5, 1.0)
    rate, slope, offset, new1, old2, new2 = cast(
        rate, xp.where(known, 1.0, 0.0), xp.where(known, eps, 1.0), 1 - beta1, beta2, 1 - beta2
    )

    def piece(p, g, m, v):
        work = _average(xp, m, g, new1)
        _average_square(xp, v, g, old2, new2, work)
        xp.sqrt(v, out=work)
        xp.multiply(work, slope, out=work)
        _descend(xp, p, rate, m, xp.add(work, offset, out=work))

    return piece


@_update("adamax_update", "exp_avg exp_inf", "lr beta1 beta2 eps weight_decay")
def _adamax(xp, cast, t, lr, beta1, beta2, eps):
    # u = max(beta2 u, |g| + eps);  p -= lr m / ((1 - beta1^t) u)
    rate, eps, new1, old2 = cast(lr / (1.0 - beta1**t), eps, 1 - beta1, beta2)

    def piece(p, g, m, u):
        work = _average(xp, m, g, new1)
        xp.abs(g, out=work)
        xp.add(work, eps, out=work)
        xp.multiply(u, old2, out=u)
        xp.maximum(u, work, out=u)
        xp.copyto(work, u)
        _descend(xp, p, rate, m, work)

    return piece


@_update("adagrad_update", "sum", "lr lr_decay eps weight_decay")
def _adagrad(xp, cast, t, lr, lr_decay, eps):
    # s += g^2;  p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps)
    rate, eps = cast(lr / (1.0 + (t - 1.0) * lr_decay), eps)

    def piece(p, g, s):
        work = xp.multiply(g, g)
        xp.add(s, work, out=s)
        _descend(xp, p, rate, g, _root(xp, s, eps, work))

    return piece


@_update("adadelta_update", "square_avg acc_delta", "lr rho eps weight_decay")
def _adadelta(xp, cast, t, lr, rho, eps):
    # d = sqrt(a + eps) / sqrt(v + eps) g;  a += (1 - rho)(d^2 - a);  p -= lr d
    lr, old, new, eps = cast(lr, rho, 1 - rho, eps)

    def piece(p, g, v, a):
        work = _average_square(xp, v, g, old, new)
        xp.add(v, eps, out=work)
        xp.sqrt(work, out=work)
        change = xp.add(a, eps)
        xp.sqrt(change, out=change)
        xp.divide(change, work, out=change)
        xp.multiply(change, g, out=change)
        _average_square(xp, a, change, old, new, work)
        xp.multiply(change, lr, out=change)
        xp.subtract(p, change, out=p)

    return piece


@_update(
    "rmsprop_update", "square_avg momentum_buffer grad_avg", "lr alpha eps momentum weight_decay"
)
def _rmsprop(xp, cast, t, lr, alpha, eps, momentum):
    # d = g / (sqrt(v) + eps), v less the square of the gradient's mean;  b = momentum b + d;
    # p -= lr b
    lr, old, new, eps, momentum = cast(lr, alpha, 1 - alpha, eps, momentum)

    def piece(p, g, v, buffer, mean):
        work = _average_square(xp, v, g, old, new)
        if mean is not None:
            _average(xp, mean, g, new)
            xp.multiply(mean, mean, out=work)
            v = xp.subtract(v, work, out=work)
        _root(xp, v, eps, work)
        if buffer is None:
            _descend(xp, p, lr, g, work)
            return
        xp.divide(g, work, out=work)
        xp.multiply(buffer, momentum, out=buffer)
        xp.add(buffer, work, out=buffer)
        xp.multiply(buffer, lr, out=work)
        xp.subtract(p, work, out=p)

    return piece


@_update("rprop_update", "prev step_size", "etaminus etaplus step_size_min step_size_max")
def _rprop(xp, cast, t, etaminus, etaplus, smallest, largest):
    # The step of an element grows while its gradient keeps its sign, and shrinks when the sign
    # changes, where this gradient then counts as zero.
    etaminus, etaplus, one, smallest, largest = cast(etaminus, etaplus, 1.0, smallest, largest)

    def piece(p, g, prev, size):
        agree = xp.multiply(g, prev)
        turned = agree < 0
        xp.multiply(size, xp.where(agree > 0, etaplus, xp.where(turned, etaminus, one)), out=size)
        xp.clip(size, smallest, largest, out=size)
        xp.copyto(prev, g)
        xp.copyto(prev, 0, where=turned)
        xp.sign(prev, out=agree)
        xp.multiply(agree, size, out=agree)
        xp.subtract(p, agree, out=p)

    return piece


@_update("asgd_update", "ax", "lr lambd alpha t0 weight_decay", "mu eta step")
def _asgd(xp, cast, mu, eta, t, lr, lambd, alpha, t0):
    # p -= eta (lambd p + g);  ax += mu (p - ax);  then eta = lr / (1 + lambd lr t)^alpha and
    # mu = 1 / max(1, t - t0)
    now = eta.item() if xp is np else eta
    keep, rate, share = cast(1.0 - lambd * now, now, mu)
    eta[...] = lr / (1.0 + lambd * lr * t) ** alpha
    mu[...] = 1.0 / xp.maximum(1.0, t - t0)

    def piece(p, g, ax):
        xp.multiply(p, keep, out=p)
        xp.subtract(p, xp.multiply(g, rate), out=p)
        _average(xp, ax, p, share)

    return piece


@_update(
    "adafactor_update",
    "row_var col_var variance",
    "lr beta2_decay eps1 eps2 d weight_decay",
    whole=True,
    sbp="whole",
)
def _adafactor(xp, cast, t, lr, beta2_decay, eps1, eps2, d, weight_decay):
    # Of a matrix only the means of its squared gradients over rows and columns are kept:
    # v = row col / mean(row);  u = g / sqrt(v);  p -= min(lr, 1 / sqrt(t)) rms(p) u / max(1,
    # rms(u) / d)
    def rms(x):
        return xp.sqrt(xp.mean(xp.square(x, dtype="d")))

    def piece(p, g, row, col, variance):
        smallest = xp.finfo(p.dtype).eps if eps1 is None else eps1
        least, least_square, share = cast(smallest, smallest**2, t**beta2_decay)
        rate = xp.minimum(lr, t**-0.5) * xp.maximum(eps2, rms(p))
        if weight_decay is not None:
            xp.multiply(p, *cast(1.0 - lr * weight_decay), out=p)
        square = xp.multiply(g, g)
        if variance is None:
            _average(xp, row, square.mean(axis=-1, keepdims=True), share)
            _average(xp, col, square.mean(axis=-2, keepdims=True), share)
            variance = row * col / xp.maximum(row.mean(axis=-2, keepdims=True), least)
        else:
            _average(xp, variance, square, share)
        u = g / xp.sqrt(xp.maximum(variance, least_square))
        xp.subtract(p, u * cast(rate / xp.maximum(1.0, rms(u) / d))[0], out=p)

    return piece


@_update(
    "muon_update",
    "momentum_buffer",
    "lr momentum eps weight_decay",
    numbers="",
    whole=True,
    sbp="whole",
)
def _muon(
    xp,
    cast,
    lr,
    momentum,
    eps,
    weight_decay,
    *,
    nesterov=True,
    ns_coefficients=(3.4445, -4.775, 2.0315),
    ns_steps=5,
    adjust_lr_fn=None,
):
    # b += (1 - momentum)(g - b);  p -= rate orthogonalized(g + momentum (b - g), or b)
    momentum = 0.0 if momentum is None else momentum

    def piece(p, g, buffer):
        rows, columns = p.shape
        ratio = max(1.0, rows / columns) ** 0.5
        if adjust_lr_fn == "match_rms_adamw":
            ratio = 0.2 * max(rows, columns) ** 0.5
        new, ahead, rate = cast(1.0 - momentum, momentum, lr * ratio)
        _average(xp, buffer, g, new)
        x = g + (buffer - g) * ahead if nesterov else buffer
        x = _orthogonalized(xp, x, ns_coefficients, ns_steps, eps)
        if weight_decay is not None:
            xp.multiply(p, *cast(1.0 - lr * weight_decay), out=p)
        xp.subtract(p, x.astype(p.dtype) * rate, out=p)

    return piece


def _orthogonalized(xp, x, coefficients, steps, eps):
    """Bring the singular values of a matrix near to 1, by steps of x = a x + (b s + c s^2) x.

    s is x x^T. Newton-Schulz iteration with the rounding to bfloat16 that PyTorch's has.
    """
    a, b, c = (xp.float32(value) for value in coefficients)
    x = _bfloat16(xp, x)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    x = _bfloat16(
        xp, x / xp.maximum(_bfloat16(xp, xp.sqrt(xp.sum(x * x))), xp.asarray(eps, dtype=xp.float32))
    )
    for _ in range(steps):
        s = _bfloat16(xp, _product(xp, x, x.T))
        # s is symmetric. A matrix by its own transpose takes BLAS half the work.
        s = _bfloat16(xp, b * s + c * _product(xp, s, s.T))
        x = _bfloat16(xp, a * x + _product(xp, s, x))
    return x.T if tall else x


def _product(xp, x, y):
    """Multiply matrices of float32 that bfloat16 holds, too."""
    z = bfloat16_products.product(x, y) if xp is np else None
    return x @ y if z is None else z


def _bfloat16(xp, x):
    """Return float32 numbers rounded to bfloat16's 8 bits, ties to even."""
    bits = xp.ascontiguousarray(x, dtype=xp.float32).view(xp.uint32)
    # Just below half a unit, and 1 more where the kept bits are odd: a tie goes to the even number.
    bits = bits + (xp.uint32(0x7FFF) + ((bits >> xp.uint32(16)) & xp.uint32(1)))
    return (bits & xp.uint32(0xFFFF0000)).view(xp.float32).reshape(xp.shape(x))
