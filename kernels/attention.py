"""Kernels of attention: softmax(q kᵀ scale + mask) v in blocks, whose scores are never whole.

A block is some queries of one head, or of several small heads, with some keys. A running maximum
and sum joins the blocks of a query's keys; the backward pass computes a block's weights anew from
the logarithm of the whole sum. So memory grows with the length, not with its square.

M. Milakov and N. Gimelshein, Online normalizer calculation for softmax, 2018; T. Dao et al.,
FlashAttention, 2022.

Shapes: query (N, H, L, E), key (N, G, S, E), value (N, G, S, V), where G divides H and each head of
keys serves H / G heads of queries, one behind another; mask (N, H, L, S), with sizes of 1 that
broadcast. Inside, queries are (N, G, H / G, L, E).
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.arrays.blas_threads import products_on_one_thread
from oneflow_lite.arrays.dtype_object import HALVES
from oneflow_lite.arrays.threads import parts_of, take_turns, threads
from oneflow_lite.kernels.batches import merged, parted
from oneflow_lite.kernels.halves import narrowed
from oneflow_lite.kernels.infer_rules import in_c_order
from oneflow_lite.ops.registry import register_kernel

_BLOCK_BYTES = 1 << 19  # of scores; two such blocks fit into a core's cache
_BLOCK_BYTES_CUDA = 1 << 26  # launches cost more than memory traffic
_KEYS = 1024  # of a block
_ROWS = 16  # of a block, at least: BLAS is slow with fewer
_EACH = 0.04  # nanoseconds of a multiplication, in products of blocks


def _wide(x):
    return x.astype(np.float32) if x is not None and x.dtype.char in HALVES else x


class _Sizes:
    """The sizes of a call, and how it is cut into blocks."""

    def __init__(self, xp, q, k, v):
        self.batch, heads, self.queries, self.width = q.shape
        _, self.groups, self.keys, _ = k.shape
        self.each = heads // self.groups if self.groups else 0  # heads that share keys
        self.depth = v.shape[3]
        self.at_once = min(self.keys, _KEYS) if xp is np else self.keys
        room = (_BLOCK_BYTES if xp is np else _BLOCK_BYTES_CUDA) // np.dtype(np.float32).itemsize
        row = max(1, self.each * self.at_once)
        self.rows = max(1, min(self.queries, max(_ROWS, room // row)))
        fitting = room // (row * self.rows) if self.rows == self.queries else 1
        self.groups_at_once = max(1, min(self.groups, fitting))
        whole = self.groups_at_once == self.groups
        self.batch_at_once = max(1, fitting // max(1, self.groups)) if whole else 1
        if xp is np:  # a piece for each thread that is worth waking
            parts = parts_of(self.work, self.batch * self.groups)
            self.batch_at_once = max(1, min(self.batch_at_once, -(-self.batch // parts)))
            if self.batch < parts:
                self.groups_at_once = max(1, min(self.groups_at_once, -(-self.groups // parts)))

    @property
    def work(self):
        """Nanoseconds of the products."""
        width = self.width + self.depth
        return self.batch * self.groups * self.each * self.queries * self.keys * width * _EACH

    @property
    def row_blocks(self):
        """The number of blocks that the queries of a head make."""
        return -(-self.queries // self.rows)

    def heads(self):
        """Yield the places of heads that are worked on together: slices of batch and groups."""
        for n in range(0, self.batch, self.batch_at_once):
            for g in range(0, self.groups, self.groups_at_once):
                yield slice(n, n + self.batch_at_once), slice(g, g + self.groups_at_once)

    def apart(self, x):
        """Return an array of queries with its heads by the keys that they share, a view."""
        return x.reshape(self.batch, self.groups, self.each, *x.shape[2:])

    def end(self, rows, causal):
        """Return behind which key no query of these rows may look."""
        return min(self.keys, rows.stop) if causal else self.keys

    def blocks(self, end):
        """Yield the keys before `end` in blocks."""
        for start in range(0, end, self.at_once):
            yield slice(start, min(end, start + self.at_once))


class _Scores:
    """Makes the scores of blocks: products, mask and causality; and the dropout of weights."""

    def __init__(self, xp, sizes, mask, seed, causal, p):
        self.xp, self.sizes, self.mask, self.causal, self.p = xp, sizes, mask, causal, p
        self.seed = None if seed is None else seed.astype(np.uint64)

    def made(self, queries, keys, places, rows, columns):
        """Return scores (n, g, heads · rows, columns) of scaled queries."""
        scores = self.xp.matmul(queries, keys[:, :, columns].swapaxes(-1, -2))
        apart = scores.reshape(*scores.shape[:2], self.sizes.each, -1, scores.shape[3])
        if self.mask is not None:
            mask = self.mask[self.of_mask(places, rows, columns)]
            apart += _penalties(mask, apart.dtype) if mask.dtype.kind == "b" else _wide(mask)
        if self.causal and columns.stop > rows.start + 1:
            first = max(rows.start - columns.start, 0)
            later = self.xp.arange(columns.start + first, columns.stop)
            own = self.xp.arange(rows.start, rows.start + apart.shape[3])
            self.xp.copyto(apart[..., first:], -math.inf, where=own[:, None] < later)
        return scores

    def of_mask(self, places, rows, columns):
        """Return the index of a block in the mask (N, G, H / G, L, S)."""
        wanted = (*places, slice(None), rows, columns)
        shape = self.mask.shape
        return tuple([slice(None) if n == 1 else w for n, w in zip(shape, wanted, strict=True)])

    def kept(self, places, rows, columns, dtype):
        """Return factors of the weights of a block: 0, or 1 / (1 - p)."""
        numbers = _numbers(self.xp, self.sizes, self.seed, places, rows, columns)
        kept = numbers >= np.uint32(min(self.p * 2.0**32, 2.0**32 - 1))
        factor = 1 / (1 - self.p) if self.p < 1 else 0.0
        factors = kept.astype(dtype) * dtype.type(factor)
        return factors.reshape(*factors.shape[:2], -1, factors.shape[4])


def _numbers(xp, sizes, seed, places, rows, columns):
    """Return random integers below 2³² for the weights of a block, which their places determine.

    A number for each query and one for each key are mixed, so that a block costs a few steps on
    32 bits. The mixers are splitmix64 (Steele, Lea and Flood, 2014) and murmur3's last steps.
    """
    n, g = (
        xp.arange(sizes_)[s] for sizes_, s in zip((sizes.batch, sizes.groups), places, strict=True)
    )
    heads = (n[:, None, None] * sizes.groups + g[:, None]) * sizes.each + xp.arange(sizes.each)
    own = xp.arange(sizes.queries)[rows]
    of_queries = _mixed(heads[..., None] * sizes.queries + own, seed[0])
    x = of_queries[..., None] ^ _mixed(xp.arange(columns.start, columns.stop), seed[1])
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x ^= x >> np.uint32(shift)
        x *= np.uint32(factor)
    x ^= x >> np.uint32(16)
    return x


def _mixed(numbers, seed):
    x = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + seed
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return (x ^ (x >> np.uint64(31))).astype(np.uint32)


def _penalties(kept, dtype):
    """Return 0 where a mask is True and -inf elsewhere, put together from bits.

    To add them takes a tenth of the time of a copy where the mask is False.
    """
    bits = (kept.view(np.int8) - np.int8(1)).astype(f"i{dtype.itemsize}")
    bits <<= np.finfo(dtype).nmant  # all ones become sign and exponent of -inf
    return bits.view(dtype)


def _share(xp, work, tasks, run):
    """Run all tasks, on several threads where that pays: then each product stays on its own."""
    parts = parts_of(work, len(tasks)) if xp is np else 1
    # Two threads of BLAS that share narrow products mostly wait: also where there is one task.
    with products_on_one_thread() if xp is np else contextlib.nullcontext() as alone:
        take_turns(tasks, run, parts if alone else 1)


def _results(q, k, v, *others, **attrs):
    total = np.dtype(np.float32) if q.dtype.char in HALVES else q.dtype
    return ArraySpec((*q.shape[:3], v.shape[3]), q.dtype), ArraySpec(q.shape[:3], total)


def _by_batch_and_head(shapes, attrs):
    """Split batch and heads, where each head has keys of its own and the mask is split alike."""
    grad = "needs" in attrs
    (_, h, _, _), (_, g, _, _), *_ = shapes[grad:]
    mask = shapes[3 + grad]
    if attrs["dropout_p"] or (grad and attrs["needs"][3]):
        return "whole"
    head = "h" if h == g else "H"
    q, k = f"n{head}", "nh" if h == g else "nG"
    own = "".join(x if size != 1 else x.upper() for x, size in zip("nh", mask or (), strict=False))
    own = "" if mask is None else own.replace("h", head) + "QT"
    inputs = [f"{q}LE", f"{k}SE", f"{k}SV", own, "*"]
    if not grad:
        return f"{','.join(inputs)}->{q}LV,{q}L"
    made = [each for each, need in zip(inputs[:3], attrs["needs"], strict=False) if need]
    return f"{q}LV,{','.join(inputs)},{q}LV,{q}L->{','.join(made)}"


def _batch_of_attention(call, *arrays, **attrs):
    """Merge the batch into N. A mask for all of N has no part in that."""
    grad = "needs" in attrs
    seed, mask = 4 + grad, 3 + grad
    if attrs["dropout_p"] or call.batched[seed] or (grad and attrs["needs"][3]):
        return NotImplemented
    whole = [*arrays]
    for i, x in enumerate(arrays):
        if x is None or i == seed:
            continue
        if i == mask and not call.batched[i] and call.shape(i)[0] == 1:
            continue
        front = call.front(i)
        if i == mask and front.shape[1] == 1:
            n = call.shape(int(grad))[0]
            front = call.F.expand(front, shape=(call.size, n, *front.shape[2:]))
        whole[i] = merged(call, front, 0)
    made = call.run(*whole, **attrs)
    if isinstance(made, tuple):
        return tuple([parted(call, y, 0) for y in made])
    return parted(call, made, 0)


@register_kernel(
    "attention", infer=in_c_order(_results), sbp=_by_batch_and_head, batch=_batch_of_attention
)
def attention(xp, q, k, v, mask, seed, *, scale, causal, dropout_p):
    """Return y and the logarithms of the sums of exp(scores); inf where a query may see nothing."""
    dtype, sizes = q.dtype, _Sizes(xp, q, k, v)
    q, k, v = _wide(q), _wide(k), _wide(v)
    y = xp.zeros((*q.shape[:3], sizes.depth), q.dtype)
    sums = xp.full(q.shape[:3], math.inf, q.dtype)
    if not (y.size and sizes.keys):
        return narrowed(y, dtype), sums
    scores = _Scores(xp, sizes, _mask_apart(mask, sizes), seed, causal, dropout_p)
    q, ys, logs = sizes.apart(q), sizes.apart(y), sizes.apart(sums)
    scale = q.dtype.type(scale)

    def run(task):
        n, g, start = task
        rows, places = slice(start, min(start + sizes.rows, sizes.queries)), (n, g)
        queries = _rows(q[n, g, :, rows] * scale)
        keys, values, top = k[n, g], v[n, g], None
        for columns in sizes.blocks(sizes.end(rows, causal)):
            part = scores.made(queries, keys, places, rows, columns)
            above = part.max(-1, keepdims=True)
            if top is not None:
                xp.maximum(above, top, out=above)
            safe = xp.where(above == -math.inf, 0, above)  # exp(-inf - 0) is 0, as it should be
            part -= safe
            xp.exp(part, out=part)
            sums = part.sum(-1, keepdims=True)
            if dropout_p:
                part *= scores.kept(places, rows, columns, part.dtype)
            mean = xp.matmul(part, values[:, :, columns])
            if top is None:
                total, result = sums, mean
            else:
                shrunk = xp.exp(top - safe)
                total *= shrunk
                total += sums
                result *= shrunk
                result += mean
            top = above
        nothing = total == 0
        total += nothing
        result /= total
        ys[n, g, :, rows] = result.reshape(ys[n, g, :, rows].shape)
        xp.log(total, out=total)
        total += safe
        total[nothing] = math.inf
        logs[n, g, :, rows] = total.reshape(logs[n, g, :, rows].shape)

    starts = range(0, sizes.queries, sizes.rows)
    _share(xp, sizes.work, [(*each, i) for each in sizes.heads() for i in starts], run)
    return narrowed(y, dtype), sums


def _rows(x):
    """Return (n, g, heads, rows, E) as (n, g, heads · rows, E)."""
    return x.reshape(*x.shape[:2], -1, x.shape[4])


def _mask_apart(mask, sizes):
    """Return a mask as (N, G, H / G, L, S)."""
    if mask is None:
        return None
    n, h, queries, keys = mask.shape
    heads = (sizes.groups, sizes.each) if h > 1 else (1, 1)
    return mask.reshape(n, *heads, queries, keys)


def _gradients(dy, q, k, v, mask, *others, needs, **attrs):
    made = [
        ArraySpec(x.shape, x.dtype) for x, need in zip((q, k, v, mask), needs, strict=True) if need
    ]
    return tuple(made) if len(made) > 1 else made[0]


@register_kernel(
    "attention_grad",
    infer=in_c_order(_gradients),
    sbp=_by_batch_and_head,
    batch=_batch_of_attention,
)
def attention_grad(xp, dy, q, k, v, mask, seed, y, sums, *, scale, causal, dropout_p, needs):
    """Return the gradients that are needed of query, key, value and mask.

    With weights p and dropout d: dv = (p d)ᵀ dy, ds = p (d (dy vᵀ) - Σ dy y), dq = ds k scale,
    dk = dsᵀ q scale, dmask = ds.
    """
    dtypes = [x.dtype if x is not None else None for x in (q, k, v, mask)]
    sizes = _Sizes(xp, q, k, v)
    dy, q, k, v, y = map(_wide, (dy, q, k, v, y))
    dq, dk, dv = (
        xp.zeros(x.shape, q.dtype) if n else None for x, n in zip((q, k, v), needs[:3], strict=True)
    )
    dmask = xp.zeros(mask.shape, q.dtype) if needs[3] else None
    scale = q.dtype.type(scale)
    scores = _Scores(xp, sizes, _mask_apart(mask, sizes), seed, causal, dropout_p)
    q, y, dy, sums = (sizes.apart(x) for x in (q, y, dy, sums))
    dqs: Any = None if dq is None else sizes.apart(dq)
    dmasks = None if dmask is None else _mask_apart(dmask, sizes)

    heads = list(sizes.heads())
    # Few heads are shared by their queries: then each thread sums for itself, in a fixed order.
    work = 0 if dmask is not None else 2.5 * sizes.work  # of a mask, several add to one place
    each = 1 if xp is not np or len(heads) >= threads() else parts_of(work, sizes.row_blocks)
    dks, dvs = ([x] + [_like(xp, x) for _ in range(1, each)] for x in (dk, dv))

    def run(task):
        n, g, turn = task
        dk, dv, step = dks[turn], dvs[turn], each * sizes.rows
        for start in range(turn * sizes.rows, sizes.queries, step):
            rows = slice(start, min(start + sizes.rows, sizes.queries))
            queries, grown = _rows(q[n, g, :, rows] * scale), _rows(dy[n, g, :, rows])
            shift = (grown * _rows(y[n, g, :, rows])).sum(-1, keepdims=True)
            logs = _rows(sums[n, g, :, rows, None])
            keys, values, total = k[n, g], v[n, g], None
            for columns in sizes.blocks(sizes.end(rows, causal)):
                part = scores.made(queries, keys, (n, g), rows, columns)
                part -= logs
                xp.exp(part, out=part)
                ds = xp.matmul(grown, values[:, :, columns].swapaxes(-1, -2))
                if dropout_p:
                    kept = scores.kept((n, g), rows, columns, part.dtype)
                    ds *= kept
                ds -= shift
                ds *= part
                if dv is not None:
                    weights = part * kept if dropout_p else part
                    dv[n, g, columns] += xp.matmul(weights.swapaxes(-1, -2), grown)
                if dk is not None:
                    dk[n, g, columns] += xp.matmul(ds.swapaxes(-1, -2), queries)
                if dqs is not None:
                    made = xp.matmul(ds, keys[:, :, columns])
                    total = made if total is None else xp.add(total, made, out=total)
                if dmasks is not None:
                    _add_to_mask(dmasks, scores.of_mask((n, g), rows, columns), ds, sizes.each)
            if total is not None:
                total *= scale
                dqs[n, g, :, rows] = total.reshape(dqs[n, g, :, rows].shape)

    if sizes.keys:
        _share(xp, work, [(*places, turn) for places in heads for turn in range(each)], run)
    for total, *others in (dks, dvs):
        for other in others:
            if total is not None:
                total += other
    made = zip((dq, dk, dv, dmask), dtypes, strict=True)
    needed = [narrowed(x, dtype) for x, dtype in made if x is not None]
    return tuple(needed) if len(needed) > 1 else needed[0]


def _like(xp, x):
    return None if x is None else xp.zeros_like(x)


def _add_to_mask(dmasks, index, ds, each):
    """Add a block's gradient to the mask's, summed where the mask broadcasts."""
    ds = ds.reshape(*ds.shape[:2], each, -1, ds.shape[3])
    target = dmasks[index]
    for dim, n in enumerate(dmasks.shape):
        if n == 1 and ds.shape[dim] != 1:
            ds = ds.sum(dim, keepdims=True)
    target += ds


@register_kernel("attention_dropout", sbp="whole", batch="loop")
def attention_dropout(xp, seed, *, shape, keys, dropout_p, dtype):
    """Return the factors of all weights (N, H, L, S): for a query of `shape`, by which heads go."""
    batch, heads, queries = shape
    spread = xp.empty((batch, heads, queries, 0), dtype)
    column = xp.empty((batch, heads, keys, 0), dtype)
    sizes = _Sizes(xp, spread, column, column)
    scores = _Scores(xp, sizes, None, seed, False, dropout_p)
    everything = (slice(0, batch), slice(0, heads))
    return scores.kept(everything, slice(0, queries), slice(0, keys), np.dtype(dtype))
