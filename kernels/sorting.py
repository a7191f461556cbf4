"""Kernels of sort, argsort and topk.

NaN counts as the greatest value, as in PyTorch, and equal elements keep their order: sorting is
always stable, so that both devices and PyTorch agree on the indices.
"""

from oneflow_lite.kernels.infer_rules import order_of, ordered
from oneflow_lite.registry import register_kernel


@register_kernel("argsort", infer=order_of)
def argsort(xp, x, *, dim, descending=False):
    if not x.ndim:
        return xp.zeros((), xp.int64)
    if not descending:
        return xp.argsort(x, axis=dim, kind="stable")
    # Backwards through the flipped array: equal elements keep their order and NaN comes first.
    order = xp.flip(xp.argsort(xp.flip(x, dim), axis=dim, kind="stable"), dim)
    return x.shape[dim] - 1 - order


@register_kernel("sort", infer=ordered)
def sort(xp, x, *, dim, descending=False):
    if not x.ndim:
        return x.copy(), xp.zeros((), xp.int64)
    order = argsort(xp, x, dim=dim, descending=descending)
    return xp.take_along_axis(x, order, dim), order


@register_kernel("topk")
def topk(xp, x, *, k, dim, largest=True, sorted=True):
    if not x.ndim:
        return x.copy(), xp.zeros((), xp.int64)
    size = x.shape[dim]
    if k == 0 or 2 * k >= size:  # then a full sort costs no more than a selection
        order = argsort(xp, x, dim=dim, descending=largest)
        order = xp.ascontiguousarray(_first(order, k, dim))
        return xp.take_along_axis(x, order, dim), order
    if largest:
        chosen = xp.argpartition(x, size - k, axis=dim)
        chosen = chosen[(slice(None),) * dim + (slice(size - k, None),)]
    else:
        chosen = _first(xp.argpartition(x, k - 1, axis=dim), k, dim)
    values = xp.take_along_axis(x, chosen, dim)
    if not sorted:
        return values, xp.ascontiguousarray(chosen)
    order = argsort(xp, values, dim=dim, descending=largest)
    return xp.take_along_axis(values, order, dim), xp.take_along_axis(chosen, order, dim)


def _first(x, k, dim):
    return x[(slice(None),) * dim + (slice(0, k),)]
