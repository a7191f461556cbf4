"""Collectives: ops that a group of processes computes together; its transport moves the arrays.

Each kernel hands contiguous arrays to the transport for its array module, and waits.
"""

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.kernels.infer_rules import like_input, written
from oneflow_lite.ops.registry import register_kernel


def _dense(xp, x):
    return x if x.flags.c_contiguous else x.copy(order="C")


def _into(xp, x, run):
    """Let a transport write to an array, through a copy where it is not contiguous."""
    y = _dense(xp, x)
    run(y).wait()
    if y is not x:
        x[...] = y
    return x


def _stacked(x, *, group, **attrs):
    return ArraySpec((group.size(), *x.shape), x.dtype)


def _share(x, **attrs):
    return ArraySpec(x.shape[1:], x.dtype)


def _exchanged(x, *, got, **attrs):
    return ArraySpec((sum(got), *x.shape[1:]), x.dtype)


def _token(*arrays, **attrs):
    return ArraySpec((), np.dtype(np.int8))


@register_kernel("all_reduce", effect=True, infer=like_input, reuses="x")
def all_reduce(xp, x, *, reduction, group, out=None):
    """The reduction of all ranks' x."""
    out = xp.empty(x.shape, x.dtype) if out is None else out
    group.transport(xp).all_reduce(_dense(xp, x), out, reduction).wait()
    return out


@register_kernel("all_reduce_", effect=True, infer=written, mutates="x")
def all_reduce_(xp, x, *, reduction, group):
    return _into(xp, x, lambda y: group.transport(xp).all_reduce(y, y, reduction))


@register_kernel("reduce_to", effect=True, infer=like_input)
def reduce_to(xp, x, *, dst, reduction, group):
    """The reduction on rank dst, zeros elsewhere: the transpose of broadcast_from."""
    out = xp.zeros(x.shape, x.dtype)
    group.transport(xp).reduce(_dense(xp, x), out, dst, reduction).wait()
    return out


@register_kernel("reduce_to_", effect=True, infer=written, mutates="x")
def reduce_to_(xp, x, *, dst, reduction, group):
    return _into(xp, x, lambda y: group.transport(xp).reduce(y, y, dst, reduction))


@register_kernel("broadcast_from", effect=True, infer=like_input)
def broadcast_from(xp, x, *, src, group):
    """The array of rank src."""
    out = x.copy(order="C")
    group.transport(xp).broadcast(out, src).wait()
    return out


@register_kernel("broadcast_from_", effect=True, infer=written, mutates="x")
def broadcast_from_(xp, x, *, src, group):
    return _into(xp, x, lambda y: group.transport(xp).broadcast(y, src))


@register_kernel("all_gather", effect=True, infer=_stacked)
def all_gather(xp, x, *, group):
    """All ranks' x, stacked."""
    out = xp.empty((group.size(), *x.shape), x.dtype)
    group.transport(xp).all_gather(_dense(xp, x), out).wait()
    return out


@register_kernel("gather_to", effect=True, infer=_stacked)
def gather_to(xp, x, *, dst, group):
    """All ranks' x, stacked, on rank dst; zeros elsewhere."""
    make = xp.empty if group.rank() == dst else xp.zeros
    out = make((group.size(), *x.shape), x.dtype)
    here = out if group.rank() == dst else None
    group.transport(xp).gather(_dense(xp, x), here, dst).wait()
    return out


@register_kernel("scatter_from", effect=True, infer=_share)
def scatter_from(xp, x, *, src, group):
    """This rank's row of the array of rank src; of the other ranks' x only the shape counts."""
    out = xp.empty(x.shape[1:], x.dtype)
    group.transport(xp).scatter(_dense(xp, x) if group.rank() == src else None, out, src).wait()
    return out


@register_kernel("reduce_scatter", effect=True, infer=_share)
def reduce_scatter(xp, x, *, reduction, group):
    """This rank's row of the reduction of all ranks' x."""
    out = xp.empty(x.shape[1:], x.dtype)
    group.transport(xp).reduce_scatter(_dense(xp, x), out, reduction).wait()
    return out


@register_kernel("all_to_all", effect=True, infer=_exchanged)
def all_to_all(xp, x, *, sent, got, group):
    """Rows of all ranks: `sent` says how many of x go to each rank, `got` how many come."""
    out = xp.empty((sum(got), *x.shape[1:]), x.dtype)
    width = out[:1].size if len(out) else x[:1].size
    shares = [[width * n for n in rows] for rows in (sent, got)]
    group.transport(xp).all_to_all(_dense(xp, x), out, *shares).wait()
    return out


@register_kernel("send_to", effect=True, infer=_token)
def send_to(xp, x, *, dst, tag, group):
    group.transport(xp).send(_dense(xp, x), dst, tag).wait()
    return xp.zeros((), "int8")


@register_kernel("receive_from_", effect=True, infer=written, mutates="x")
def receive_from_(xp, x, *, src, tag, group):
    return _into(xp, x, lambda y: group.transport(xp).recv(y, src, tag))


# The hooks of DistributedDataParallel as ops, which a Program can hold: `reducer` has the buckets.


@register_kernel("gradient_arrived", effect=True, infer=_token)
def gradient_arrived(xp, x, *, reducer, number):
    """Put a parameter's gradient into its bucket, and begin to reduce full buckets."""
    reducer.take_in(number, x)
    return xp.zeros((), "int8")


@register_kernel("gradient_reduced_", effect=True, infer=written, mutates="x")
def gradient_reduced_(xp, x, *, reducer, number):
    """Wait for the bucket, and write the mean over all ranks to the gradient."""
    x[...] = reducer.mean_of(number)
    return x


@register_kernel("barrier", effect=True, infer=_token)
def barrier(xp, x, *, group):
    """Wait for all ranks; x says on which device."""
    group.transport(xp).barrier().wait()
    return xp.zeros((), "int8")
