"""Gradients of connectionist temporal classification, up to the second; the engine calls them."""

from oneflow_lite.autograd.grad_function import register_grad_func


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
    return None  # the rule above counts all that follows from the probabilities


@register_grad_func(
    "ctc_occupancy_grad", wrt="dy", saves="log_probs, targets, input_lengths, target_lengths"
)
def ctc_occupancy_grad_ddy(F, ctx, d):
    return _covariance(F, ctx, d)  # a covariance is symmetric
