"""Kernels that put arrays together."""

from oneflow_lite.kernels.infer_rules import concatenated, stacked
from oneflow_lite.registry import register_kernel


@register_kernel("cat", infer=concatenated)
def cat(xp, *xs, dim, out=None):
    return xp.concatenate(xs, axis=dim, out=out)


@register_kernel("stack", infer=stacked)
def stack(xp, *xs, dim, out=None):
    new = (slice(None),) * dim + (None,)  # half the time of xp.stack
    return xp.concatenate([x[new] for x in xs], axis=dim, out=out)
