"""Kernels of recurrent layers: a call runs a layer in one direction over a whole sequence.

The first argument is the product of the sequence and the input weights, with their bias. Its rows
have gates · H elements: (T, N, gates · H), or in a packed sequence `sizes[t]` rows for each step t,
joined. States lie in buffers, (N, H). A step reads and writes their first rows. So a sequence that
has ended keeps its last state, and in reverse a sequence keeps its first state until it begins. For
their gradients the kernels also return gates and cells of all rows.
"""

import functools
from itertools import accumulate, pairwise
from math import prod

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.kernels.halves import in_float32
from oneflow_lite.kernels.infer_rules import in_c_order
from oneflow_lite.kernels.matmul import product
from oneflow_lite.ops.registry import register_kernel


def steps_of(x, states, sizes, reverse):
    """Return the rows of each step as a slice, and their number, in the order of the run."""
    count = len(states)
    counts = [count] * (len(x) // max(count, 1)) if sizes is None else sizes.tolist()
    steps = [(slice(*ends), ends[1] - ends[0]) for ends in pairwise(accumulate(counts, initial=0))]
    return steps[::-1] if reverse else steps


def states_before(xp, states, first, steps):
    """Return the state that each row started from: the step before it, or `first`."""
    made, state = xp.empty_like(states), first.copy()
    for rows, n in steps:
        made[rows] = state[:n]
        state[:n] = states[rows]
    return made


def _turned(xp, weight):
    return xp.ascontiguousarray(weight.T)  # BLAS reads it half as often as it turns it


def _start(xp, gradient, like):
    return xp.zeros_like(like, order="C") if gradient is None else gradient.copy(order="C")


def _kept(x, size):
    """Describe rows of this size, one for each row of x."""
    return ArraySpec((*x.shape[:-1], size), x.dtype)


def _in_rows(*places):
    """Let a kernel get (T, N, *) as T · N rows; its outputs at `places` become (T, N, *) again."""

    def decorator(kernel):
        @functools.wraps(kernel)
        def by_steps(xp, *arrays, **attrs):
            lead = next((x.shape[:2] for x in arrays if x is not None and x.ndim == 3), None)
            if lead is None:
                return kernel(xp, *arrays, **attrs)
            rows = [
                x.reshape(prod(lead), x.shape[2]) if x is not None and x.ndim == 3 else x
                for x in arrays
            ]
            outputs = list(kernel(xp, *rows, **attrs))
            for i in places:
                outputs[i] = outputs[i].reshape(*lead, outputs[i].shape[1])
            return tuple(outputs)

        return in_float32(by_steps)

    return decorator


def _by_batch(unpacked):
    """Return the SBP rule of a layer: sequences of one length are split, packed sequences whole."""

    def rule(shapes, attrs):
        return unpacked if any(s is not None and len(s) == 3 for s in shapes) else "whole"

    return rule


# σ(a) = tanh(a / 2) / 2 + 1 / 2: one tanh, which NumPy vectorises, serves all gates of a step.
# With scale 1/2 at the gates and 1 where tanh itself is meant, g = scale tanh(scale a) + 1 - scale
# and ∂g/∂a = scale² - (g - 1 + scale)².


def _scales(xp, like, count, hidden):
    """Return scale, 1 - scale and scale² for the gates of `count` rows of an LSTM."""
    scale = xp.full((count, 4 * hidden), 0.5, like.dtype)
    scale[:, 2 * hidden : 3 * hidden] = 1
    return scale, 1 - scale, scale * scale


def _parts(x, hidden):
    """Return views of the gates."""
    return [x[:, k : k + hidden] for k in range(0, x.shape[1], hidden)]


# --- LSTM -----------------------------------------------------------------------------------------


@in_c_order
def _infer_lstm(x, h0, c0, weight, projection, sizes, *, reverse):
    hidden = c0.shape[1]
    return _kept(x, h0.shape[1]), h0, c0, _kept(x, 4 * hidden), _kept(x, hidden)


@register_kernel("lstm_layer", infer=_infer_lstm, sbp=_by_batch("TnG,nH,nC,*,*,*->Tn,n,n,Tn,Tn"))
@_in_rows(0, 3, 4)
def lstm_layer(xp, x, h0, c0, weight, projection, sizes, *, reverse):
    """Return y, the last h and c, and gates (i, f, g, o) and cells of all rows.

    c ← f c + i g and h ← o tanh c, times `projection` where it is given.
    """
    count, hidden = c0.shape
    h, c = h0.copy(order="C"), c0.copy(order="C")
    gates = xp.empty((len(x), 4 * hidden), x.dtype)
    cells = xp.empty((len(x), hidden), x.dtype)
    y = xp.empty((len(x), h.shape[1]), x.dtype)
    weight = _turned(xp, weight)
    projection = None if projection is None else _turned(xp, projection)
    scale, shift, _ = _scales(xp, x, count, hidden)
    room = xp.empty((count, hidden), x.dtype)
    for rows, n in steps_of(x, h, sizes, reverse):
        a, cell, part = gates[rows], c[:n], room[:n]
        product(xp, h[:n], weight, a)
        a += x[rows]
        a *= scale[:n]
        xp.tanh(a, out=a)
        a *= scale[:n]
        a += shift[:n]
        i, f, g, o = _parts(a, hidden)
        cell *= f
        xp.multiply(i, g, out=part)
        cell += part
        cells[rows] = cell
        xp.tanh(cell, out=part)
        if projection is None:
            xp.multiply(part, o, out=h[:n])
        else:
            part *= o
            product(xp, part, projection, h[:n])
        y[rows] = h[:n]
    return y, h, c, gates, cells


@register_kernel("lstm_layer_grad", sbp=_by_batch("nH,nC,*,*,*,TnH,TnG,TnC,TnH,nH,nC->Tn,n,n,,"))
@_in_rows(0)
def lstm_layer_grad(xp, h0, c0, weight, projection, sizes, y, gates, cells, dy, dh, dc, *, reverse):
    """Return the gradients of x, h0, c0 and weight, and of a given projection.

    dy, dh and dc are the gradients of y and of the last states, or None.
    """
    count, hidden = c0.shape
    dh, dc = _start(xp, dh, h0), _start(xp, dc, c0)
    steps = steps_of(y, h0, sizes, reverse)
    earlier, bent = states_before(xp, cells, c0, steps), xp.tanh(cells)
    dx = xp.empty_like(gates)
    _, shift, square = _scales(xp, y, count, hidden)
    room, wide = xp.empty((count, hidden), y.dtype), xp.empty((count, 4 * hidden), y.dtype)
    projected = xp.empty_like(y)
    for rows, n in reversed(steps):
        d, t, dcell, dstate, part = dx[rows], bent[rows], dc[:n], dh[:n], room[:n]
        i, f, g, o = _parts(gates[rows], hidden)
        di, df, dg, do = _parts(wide[:n], hidden)
        if dy is not None:
            dstate += dy[rows]
        if projection is not None:
            projected[rows] = dstate
            dstate = product(xp, dstate, projection)
        xp.multiply(t, t, out=part)
        xp.subtract(1, part, out=part)
        part *= o
        part *= dstate
        dcell += part
        xp.multiply(dcell, g, out=di)
        xp.multiply(dcell, earlier[rows], out=df)
        xp.multiply(dcell, i, out=dg)
        xp.multiply(dstate, t, out=do)
        xp.subtract(gates[rows], shift[:n], out=d)
        d *= d
        xp.subtract(square[:n], d, out=d)
        d *= wide[:n]
        dcell *= f
        product(xp, d, weight, dh[:n])
    dweight = product(xp, dx.T, states_before(xp, y, h0, steps))
    if projection is None:
        return dx, dh, dc, dweight
    bent *= gates[:, 3 * hidden :]
    return dx, dh, dc, dweight, product(xp, projected.T, bent)


# --- GRU ------------------------------------------------------------------------------------------


@in_c_order
def _infer_gru(x, h0, weight, bias, sizes, *, reverse):
    hidden = h0.shape[1]
    return _kept(x, hidden), h0, _kept(x, 3 * hidden), _kept(x, hidden)


@register_kernel("gru_layer", infer=_infer_gru, sbp=_by_batch("TnG,nH,*,*,*->Tn,n,Tn,Tn"))
@_in_rows(0, 2, 3)
def gru_layer(xp, x, h0, weight, bias, sizes, *, reverse):
    """Return y, the last h, and for all rows the gates (r, z, n) and the factor of r.

    n = tanh(x + r (W h + b)) and h ← n + z (h - n).
    """
    count, hidden = h0.shape
    h = h0.copy(order="C")
    gates, inner = xp.empty_like(x), xp.empty((len(x), hidden), x.dtype)
    y = xp.empty_like(inner)
    weight, room = _turned(xp, weight), xp.empty((count, 3 * hidden), x.dtype)
    biases = None if bias is None else xp.broadcast_to(bias, room.shape).copy()
    for rows, n in steps_of(x, h, sizes, reverse):
        a, state, given = room[:n], h[:n], x[rows]
        product(xp, state, weight, a)
        if biases is not None:
            a += biases[:n]
        both, new, q = gates[rows, : 2 * hidden], gates[rows, 2 * hidden :], inner[rows]
        q[...] = a[:, 2 * hidden :]
        xp.add(a[:, : 2 * hidden], given[:, : 2 * hidden], out=both)
        both *= 0.5
        xp.tanh(both, out=both)
        both *= 0.5
        both += 0.5
        xp.multiply(both[:, :hidden], q, out=new)
        new += given[:, 2 * hidden :]
        xp.tanh(new, out=new)
        state -= new
        state *= both[:, hidden:]
        state += new
        y[rows] = state
    return y, h, gates, inner


@register_kernel("gru_layer_grad", sbp=_by_batch("nH,*,*,*,TnH,TnG,TnC,TnH,nH->Tn,n,,"))
@_in_rows(0)
def gru_layer_grad(xp, h0, weight, bias, sizes, y, gates, inner, dy, dh, *, reverse):
    """Return the gradients of x, h0 and weight, and of a given bias."""
    (count, hidden), dh = h0.shape, _start(xp, dh, h0)
    steps = steps_of(y, h0, sizes, reverse)
    earlier = states_before(xp, y, h0, steps)
    dx, da = xp.empty_like(gates), xp.empty_like(gates)  # gradients of x, and of W h + b
    room, back = xp.empty((count, hidden), y.dtype), xp.empty((count, hidden), y.dtype)
    for rows, n in reversed(steps):
        d, dstate, part = dx[rows], dh[:n], room[:n]
        r, z, new = _parts(gates[rows], hidden)
        dr, dz, dnew = _parts(d, hidden)
        if dy is not None:
            dstate += dy[rows]
        xp.subtract(1, z, out=part)
        xp.multiply(part, z, out=dz)
        part *= dstate
        dstate_new = part
        xp.multiply(new, new, out=dnew)
        xp.subtract(1, dnew, out=dnew)
        dnew *= dstate_new
        xp.subtract(earlier[rows], new, out=part)
        part *= dstate
        dz *= part
        xp.subtract(1, r, out=dr)
        dr *= r
        dr *= inner[rows]
        dr *= dnew
        da[rows] = d
        da[rows, 2 * hidden :] *= r
        dstate *= z
        product(xp, da[rows], weight, back[:n])
        dstate += back[:n]
    made = (dx, dh, product(xp, da.T, earlier))
    return made if bias is None else (*made, da.sum(0))


# --- Plain ----------------------------------------------------------------------------------------


@in_c_order
def _infer_rnn(x, h0, weight, sizes, *, reverse, nonlinearity):
    return _kept(x, h0.shape[1]), h0


@register_kernel("rnn_layer", infer=_infer_rnn, sbp=_by_batch("TnG,nH,*,*->Tn,n"))
@_in_rows(0)
def rnn_layer(xp, x, h0, weight, sizes, *, reverse, nonlinearity):
    """Return y and the last h: h ← tanh(x + W h), or relu."""
    h, weight = h0.copy(order="C"), _turned(xp, weight)
    y = xp.empty_like(x)
    for rows, n in steps_of(x, h, sizes, reverse):
        state = h[:n]
        product(xp, state, weight, y[rows])
        y[rows] += x[rows]
        if nonlinearity == "tanh":
            xp.tanh(y[rows], out=state)
        else:
            xp.maximum(y[rows], 0, out=state)
        y[rows] = state
    return y, h


@register_kernel("rnn_layer_grad", sbp=_by_batch("nH,*,*,TnH,TnH,nH->Tn,n,"))
@_in_rows(0)
def rnn_layer_grad(xp, h0, weight, sizes, y, dy, dh, *, reverse, nonlinearity):
    """Return the gradients of x, h0 and weight."""
    dh = _start(xp, dh, h0)
    steps = steps_of(y, h0, sizes, reverse)
    dx = 1 - y * y if nonlinearity == "tanh" else (y > 0).astype(y.dtype)
    for rows, n in reversed(steps):
        d, dstate = dx[rows], dh[:n]
        if dy is not None:
            dstate += dy[rows]
        d *= dstate
        product(xp, d, weight, dstate)
    return dx, dh, product(xp, dx.T, states_before(xp, y, h0, steps))
