"""The end of a chain of view ops: reading it, writing it, putting a gradient back to it.

A step of `chain` is a view op and its attributes. `order` is how the dimensions of the base lie in
memory, by falling stride (None: C order). Memory in that order lets the chain share memory where
it did on the base, as a reshape after a transpose may.
"""

from oneflow_lite.errors import InplaceError
from oneflow_lite.ops.registry import register_kernel
from oneflow_lite.ops.sbp_rules import Way, same_dims


def _moved(call, chain, order):
    """Return the chain and the order for a batch in front; None where a view cannot be moved."""
    if any(op.op_type_name in ("as_strided", "expand", "view_dtype") for op, _ in chain):
        return None
    moved = tuple([(op, call.moved(op, attrs)) for op, attrs in chain])
    return {"chain": moved, "order": None if order is None else (0, *[d + 1 for d in order])}


def _batch_of_slices(call, x, *, chain, order, shape=None, **attrs):
    moved = _moved(call, chain, order)
    if moved is None:
        return NotImplemented
    whole = {} if shape is None else {"shape": (call.size, *shape)}
    return call.run(x, **moved, **whole, **attrs)


def _batch_of_copies(call, base, value, *, chain, order):
    moved = _moved(call, chain, order)
    return NotImplemented if moved is None else call.run(call.front(0), call.front(1), **moved)


@register_kernel("take_slices", view_of="x", batch=_batch_of_slices)
def take_slices(xp, x, *, chain, order):
    for op, attrs in chain:
        x = op.kernel(xp)(x, **attrs)
    return x


@register_kernel("take_slices_grad", batch=_batch_of_slices)
def take_slices_grad(xp, dy, *, chain, order, shape, dtype):
    """Return zeros with dy where the chain leads."""
    dx = _empty(xp, shape, dtype, order)
    dx[...] = 0
    _write(xp, dx, dy, chain, order)
    return dx


def _same(shapes, attrs):
    pairs = same_dims("take_slices", shapes[0], attrs)
    return [Way((i, "B" if shapes[1] is None else j), (i,)) for i, j in pairs]


@register_kernel("copy_slices", sbp=_same, linear="base+value", batch=_batch_of_copies)
def copy_slices(xp, base, value, *, chain, order):
    """Return a copy of the base with the value, or zeros, where the chain leads."""
    y = _empty(xp, base.shape, base.dtype, order)
    y[...] = base
    _write(xp, y, 0 if value is None else value, chain, order)
    return y


def _empty(xp, shape, dtype, order):
    if order is None:
        return xp.empty(shape, dtype)
    inverse = sorted(range(len(shape)), key=order.__getitem__)
    return xp.empty([shape[dim] for dim in order], dtype).transpose(inverse)


def _write(xp, y, value, chain, order):
    region = take_slices(xp, y, chain=chain, order=order)
    if region.size and not xp.may_share_memory(region, y):
        raise InplaceError(
            f"copy_slices: the views by which a tensor of shape {y.shape} was written in place "
            "cannot be taken of a copy of it; clone() the tensor before taking views"
        )
    region[...] = value
