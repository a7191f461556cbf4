"""Loops of recurrent layers; see `kernels/recurrent.py`.

Sequences of a batch do not meet. So a loop takes four of them through all steps, and threads share
the batch. The weights lie in blocks of columns and stay in the cache from step to step.
"""

import functools

import numpy as np

from oneflow_lite.arrays.threads import threads
from oneflow_lite.kernels.loops import PRODUCTS
from oneflow_lite.kernels.loops.conv import in_blocks
from oneflow_lite.kernels.recurrent import states_before, steps_of
from oneflow_lite.ops.eager_loops import Loop

_ROWS, _BYTES = 4, 64  # of a tile
_CACHED = 1 << 19  # bytes of weights from which BLAS, which reads them once a step, is faster
_BATCH = 32  # sequences of a thread, from which BLAS, which takes all at once, is faster
_GATE = 60  # what a gate costs, in elements of other loops, beside its products

_LAYER = """\
make = tile({rows}, {lanes})

def group(part, begin, end, x, h0, c0, weight, y, last_h, last_c, gates, cells, hs, room, back):
    steps, count, _ = x.shape
    hidden = h0.shape[1]
    blocks, inner, _ = weight.shape
    h, a = hs[part], room[part]
    ph, pa, pw = start(h), start(a), start(weight)
    for step in range(begin, end):
        first = step * {rows}
        some = min({rows}, count - first)
        for r in range(some):
            h[r] = h0[first + r]
            last_c[first + r] = c0[first + r]
        for k in range(steps):
            t = steps - 1 - k if back else k
            for b in range(blocks):
                make(
                    ph, 0, pw, b * inner * {lanes}, pa, b * {lanes},
                    inner, inner, 1, {lanes}, blocks * {lanes}, 0,
                )
            for r in range(some):
                line, given, made = a[r], x[t, first + r], gates[t, first + r]
                for j in range(2 * hidden):
                    made[j] = sigmoid(line[j] + given[j])
                for j in range(2 * hidden, 3 * hidden):
                    made[j] = tanh(line[j] + given[j])
                for j in range(3 * hidden, 4 * hidden):
                    made[j] = sigmoid(line[j] + given[j])
                cell, kept, own, out = last_c[first + r], cells[t, first + r], h[r], y[t, first + r]
                for j in range(hidden):
                    value = made[hidden + j] * cell[j] + made[j] * made[2 * hidden + j]
                    cell[j] = value
                    kept[j] = value
                    own[j] = made[3 * hidden + j] * tanh(value)
                    out[j] = own[j]
        for r in range(some):
            last_h[first + r] = h[r]
"""
_GRAD = """\
make = tile({rows}, {lanes})

def group(part, begin, end, gates, cells, c0, weight, dy, dh, dc, dx, hs, room, back):
    steps, count, _ = gates.shape
    hidden = c0.shape[1]
    blocks, inner, _ = weight.shape
    dstate, d = hs[part], room[part]
    ps, pd, pw = start(dstate), start(d), start(weight)
    one = real(1.0)
    for step in range(begin, end):
        first = step * {rows}
        some = min({rows}, count - first)
        for r in range(some):
            for j in range(hidden):
                dstate[r, j] = dh[first + r, j]
        for k in range(steps):
            t = k if back else steps - 1 - k
            earlier = t + 1 if back else t - 1
            for r in range(some):
                n = first + r
                made, cell, down = gates[t, n], cells[t, n], d[r]
                before = c0[n] if k == steps - 1 else cells[earlier, n]
                grown, kept, own, out = dy[t, n], dc[n], dstate[r], dx[t, n]
                for j in range(hidden):
                    i, f = made[j], made[hidden + j]
                    g, o = made[2 * hidden + j], made[3 * hidden + j]
                    bent = tanh(cell[j])
                    dout = own[j] + grown[j]
                    dcell = kept[j] + dout * o * (one - bent * bent)
                    down[j] = dcell * g * i * (one - i)
                    down[hidden + j] = dcell * before[j] * f * (one - f)
                    down[2 * hidden + j] = dcell * i * (one - g * g)
                    down[3 * hidden + j] = dout * bent * o * (one - o)
                    kept[j] = dcell * f
                for j in range(4 * hidden):
                    out[j] = down[j]
            for b in range(blocks):
                make(
                    pd, 0, pw, b * inner * {lanes}, ps, b * {lanes},
                    inner, inner, 1, {lanes}, blocks * {lanes}, 0,
                )
        for r in range(some):
            for j in range(hidden):
                dh[first + r, j] = dstate[r, j]
"""


@functools.cache
def _loop(text, lanes):
    return Loop(text.format(rows=_ROWS, lanes=lanes))


def _is_ours(x, weight, projection, sizes):
    plain = projection is None and sizes is None and x.size > 0
    fits = x.ndim == 3 and x.shape[1] <= _BATCH * threads() and weight.nbytes <= _CACHED
    return plain and fits and x.dtype.char in "fd"


def _run(text, weight, arrays, width, reverse):
    """Run a loop with packed weights; threads have rows for tiles, and rows of `width` numbers."""
    lanes = _BYTES // weight.itemsize
    packed = in_blocks(weight[None], lanes)[0]
    rows, blocks = (threads(), _ROWS), len(packed)
    tiled, other = (np.zeros((*rows, n), weight.dtype) for n in (blocks * lanes, width))
    steps, count = arrays[0].shape[:2]
    scratch = (other, tiled) if text is _LAYER else (tiled, other)
    before, after = arrays[:3], arrays[3:]
    work = steps * count * weight.size // PRODUCTS + _GATE * arrays[0].size // 4
    given = (*before, packed, *after, *scratch, reverse)
    return _loop(text, lanes)(-(-count // _ROWS), *given, work=work)


def lstm_layer(x, h0, c0, weight, projection, sizes, *, reverse):
    if not _is_ours(x, weight, projection, sizes):
        return None
    y, h, c = np.empty((*x.shape[:2], h0.shape[1]), x.dtype), np.empty_like(h0), np.empty_like(c0)
    gates, cells = np.empty_like(x), np.empty_like(y)
    arrays = (x, h0, c0, y, h, c, gates, cells)
    done = _run(_LAYER, weight.T, arrays, h0.shape[1], bool(reverse))
    return (y, h, c, gates, cells) if done else None


def lstm_layer_grad(h0, c0, weight, projection, sizes, y, gates, cells, dy, dh, dc, *, reverse):
    if not _is_ours(y, weight, projection, sizes):
        return None
    dh, dc = (np.zeros_like(h0) if d is None else d.copy() for d in (dh, dc))
    dx, dy = np.empty_like(gates), np.zeros_like(y) if dy is None else dy
    arrays = (gates, cells, c0, dy, dh, dc, dx)
    if not _run(_GRAD, weight, arrays, weight.shape[0], bool(reverse)):
        return None
    flat = y.reshape(-1, y.shape[2])
    before = states_before(np, flat, h0, steps_of(flat, h0, None, reverse))
    return dx, dh, dc, dx.reshape(len(flat), -1).T @ before
