"""Gradients of cross entropy over many classes, and of the linear layer before it.

`top` and `total`, which the ops return beside the losses, are functions of the logits. The rules
for the logits count them, so that they have no gradients of their own. Second derivatives need the
logits whole: they are taken of ops on all of them.
"""

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.errors import NotDifferentiableError
from oneflow_lite.grad_funcs.needed import added, at_their_places


def _gradient(F, ctx, dy, x, top, total):
    return F.cross_entropy_rows_grad(dy, x, top, total, ctx.target, ctx.weight, **_options(ctx))


def _options(ctx):
    return {"ignore_index": ctx.ignore_index, "label_smoothing": ctx.label_smoothing}


@register_grad_func(
    "cross_entropy_rows", wrt="x", saves="x, y1, y2, target, weight", materialize=False
)
def cross_entropy_rows_dx(F, ctx, dy, dtop, dtotal):
    return None if dy is None else _gradient(F, ctx, dy, ctx.x, ctx.y1, ctx.y2)


@register_grad_func("cross_entropy_rows_grad", wrt="dy", saves="x, top, total, target, weight")
def cross_entropy_rows_grad_ddy(F, ctx, d):
    return _along(F, ctx, d, ctx.x, ctx.top, ctx.total)


@register_grad_func("cross_entropy_rows_grad", wrt="x", saves="dy, x, target, weight")
def cross_entropy_rows_grad_dx(F, ctx, d):
    return _curvature(F, ctx, d, ctx.dy, ctx.x)


@register_grad_func("cross_entropy_rows_grad", wrt="top")
def cross_entropy_rows_grad_dtop(F, ctx, d):
    return None


@register_grad_func("cross_entropy_rows_grad", wrt="total")
def cross_entropy_rows_grad_dtotal(F, ctx, d):
    return None


def _along(F, ctx, d, x, top, total):
    """Return the derivative of each row's loss along d."""
    each = _gradient(F, ctx, F.ones_like(top), x, top, total)
    return F.sum(d * each, dim=(1,), keepdim=False)


def _curvature(F, ctx, d, dy, x):
    """Return the product of the second derivatives by x, weighed by dy, and d."""
    attrs = {"shape": x.shape, "ignore_index": ctx.ignore_index, "reduction": "none"}

    def share(weight):  # dy times the weight of the target, 0 where that is ignored
        return -F.sum(F.nll_loss_grad(dy, ctx.target, weight, **attrs), dim=(1,), keepdim=True)

    rows = share(ctx.weight)
    if ctx.label_smoothing and ctx.weight is not None:
        mean = F.mean(ctx.weight, dim=(0,), keepdim=False)
        rows = rows * (1 - ctx.label_smoothing) + share(None) * mean * ctx.label_smoothing
    return F.softmax_grad(d, F.softmax(x, dim=1), dim=1) * rows


# --- With the linear layer ------------------------------------------------------------------------


@register_grad_func(
    "linear_cross_entropy_rows", saves="x, w, b, y1, y2, target, weight", materialize=False
)
def linear_cross_entropy_rows(F, ctx, dy, dtop, dtotal):
    if ctx.needs_input_grad[4]:
        raise NotDifferentiableError(
            "linear_cross_entropy_rows: the gradient by 'weight' is not defined; detach() it"
        )
    if dy is None:
        return (None,) * 5
    needs = tuple(ctx.needs_input_grad[:3])
    given = (dy, ctx.x, ctx.w, ctx.b, ctx.y1, ctx.y2, ctx.target, ctx.weight)
    made = F.linear_cross_entropy_rows_grad(*given, **_options(ctx), needs=needs)
    return (*at_their_places(needs, made), None, None)


@register_grad_func(
    "linear_cross_entropy_rows_grad",
    saves="dy, x, w, b, top, total, target, weight",
    materialize=False,
)
def linear_cross_entropy_rows_grad(F, ctx, *given):
    """Take the logits whole: dx = g w, dw = gᵀ x and db = Σ g, where g is their gradient."""
    ddx, ddw, ddb = at_their_places(ctx.needs, given if len(given) > 1 else given[0])
    dy, x, w, top, total = ctx.dy, ctx.x, ctx.w, ctx.top, ctx.total
    logits = F.matmul_nt(x, w)
    if ctx.b is not None:
        logits = logits + ctx.b
    g = _gradient(F, ctx, dy, logits, top, total)
    d = dx = dw = None
    if ddx is not None:
        d, dw = F.matmul_nt(ddx, w), F.matmul_tn(g, ddx, merge=False)
    if ddw is not None:
        d, dx = added(d, F.matmul_nt(x, ddw)), F.matmul(g, ddw)
    if ddb is not None:
        d = F.expand(ddb, shape=logits.shape) if d is None else d + ddb
    if d is None:
        return (None,) * 8
    bent = _curvature(F, ctx, d, dy, logits)
    dx, dw = added(dx, F.matmul(bent, w)), added(dw, F.matmul_tn(bent, x, merge=False))
    db = None if ctx.b is None else F.sum(bent, dim=(0,), keepdim=False)
    return _along(F, ctx, d, logits, top, total), dx, dw, db, None, None, None, None
