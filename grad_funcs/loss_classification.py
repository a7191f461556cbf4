"""Gradients of losses of classes and probabilities."""

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.grad_funcs.arithmetic import flat


@register_grad_func("nll_loss", wrt="x", saves="x.shape, x.edge, target, weight")
def nll_loss_dx(F, ctx, dy):
    dx = F.nll_loss_grad(
        dy,
        ctx.target,
        ctx.weight,
        shape=ctx.x_shape,
        ignore_index=ctx.ignore_index,
        reduction=ctx.reduction,
    )
    return flat(F, dx, ctx.x_edge)


@register_grad_func("nll_loss_grad", wrt="dy", saves="target, weight")
def nll_loss_grad_ddy(F, ctx, d):
    # The loss is linear in its input: the gradient's adjoint is the loss itself.
    return F.nll_loss(
        d, ctx.target, ctx.weight, ignore_index=ctx.ignore_index, reduction=ctx.reduction
    )


@register_grad_func("binary_cross_entropy", wrt="x", saves="x, target")
def binary_cross_entropy_dx(F, ctx, dy):
    # (x - t) / (x (1 - x)), bounded at 0 and 1 as in PyTorch
    return dy * (ctx.x - ctx.target) / F.clamp_min((1 - ctx.x) * ctx.x, 1e-12)


@register_grad_func("binary_cross_entropy", wrt="target", saves="x")
def binary_cross_entropy_dtarget(F, ctx, dy):
    return dy * (F.log1p(-ctx.x) - F.log(ctx.x))


@register_grad_func("bce_with_logits", wrt="x", saves="x, target")
def bce_with_logits_dx(F, ctx, dy):
    return dy * (F.sigmoid(ctx.x) - ctx.target)


@register_grad_func("bce_with_logits", wrt="target", saves="x")
def bce_with_logits_dtarget(F, ctx, dy):
    return -dy * ctx.x


# --- Connectionist temporal classification, up to the second --------------------------------------


@register_grad_func(
    "ctc_loss",
    wrt="log_probs",
    saves="log_probs, targets, input_lengths, target_lengths, y1",
    materialize=False,
)
def ctc_loss_dlog_probs(F, ctx, dloss, dalpha):
    if dloss is None:
        return None
    occupancy = F.ctc_occupancy(
        ctx.log_probs,
        ctx.targets,
        ctx.input_lengths,
        ctx.target_lengths,
        ctx.y1,
        blank=ctx.blank,
        zero_infinity=ctx.zero_infinity,
    )
    return -F.reshape(dloss, shape=(-1, 1)) * occupancy


def _covariance(F, ctx, d):
    return F.ctc_occupancy_grad(
        d,
        ctx.log_probs,
        ctx.targets,
        ctx.input_lengths,
        ctx.target_lengths,
        blank=ctx.blank,
        zero_infinity=ctx.zero_infinity,
    )


@register_grad_func(
    "ctc_occupancy", wrt="log_probs", saves="log_probs, targets, input_lengths, target_lengths"
)
def ctc_occupancy_dlog_probs(F, ctx, d):
    return _covariance(F, ctx, d)


@register_grad_func("ctc_occupancy", wrt="alpha")
def ctc_occupancy_dalpha(F, ctx, d):
    return None  # alpha is made of log_probs, for which the rule above counts it already


@register_grad_func(
    "ctc_occupancy_grad", wrt="dy", saves="log_probs, targets, input_lengths, target_lengths"
)
def ctc_occupancy_grad_ddy(F, ctx, d):
    return _covariance(F, ctx, d)  # a covariance is symmetric
