"""Gradients of attention: the kernel makes the weights of its blocks anew.

Where the backward pass is itself to be differentiated, or goes through a transform, attention is
the composition of products and a softmax, whose weights are stored whole.
"""

import math

from oneflow_lite.autograd.rules.gradient_rules import register_grad_func
from oneflow_lite.grad_funcs.composed import gradients_of, is_followed
from oneflow_lite.grad_funcs.needed import at_their_places


def _composed(F, ctx, q, k, v, mask, seed):
    """Return softmax(q kᵀ scale + mask) v, 0 for a query that may look at nothing."""
    (n, heads, queries, width), (_, groups, keys, _) = q.shape, k.shape
    whole = (n, heads, queries, keys)
    rows = (q * ctx.scale).reshape(n, groups, heads // max(groups, 1) * queries, width)
    scores = F.matmul(rows, k.transpose(-2, -1)).reshape(whole)
    never = F.full((), -math.inf, dtype=scores.dtype, device=scores.device)
    if mask is not None:
        scores = F.where(mask, scores, never) if mask.dtype.kind == "b" else scores + mask
    if ctx.causal:
        earlier = F.ones(queries, keys, dtype="bool", device=scores.device).tril()
        scores = F.where(earlier, scores, never)
    alive = (scores.detach() != -math.inf).any(-1, True)
    weights = F.where(alive, F.softmax(F.where(alive, scores, 0.0), -1), 0.0)
    if ctx.dropout_p:
        given = {"dropout_p": ctx.dropout_p, "dtype": weights._data.dtype}
        weights = weights * F.attention_dropout(seed, shape=whole[:3], keys=keys, **given)
    weights = weights.reshape(n, groups, rows.shape[2], keys)
    return F.matmul(weights, v).reshape(*whole[:3], v.shape[3])


@register_grad_func("attention", saves="q, k, v, mask, seed, y0, y1", materialize=False)
def attention_grad(F, ctx, dy, dsums):
    inputs = (ctx.q, ctx.k, ctx.v, ctx.mask, ctx.seed)
    if dy is None:
        return (None,) * 5
    if is_followed(dy, *inputs):
        return gradients_of(F, ctx, lambda copies: (_composed(F, ctx, *copies),), inputs, (dy,))
    needs = tuple(ctx.needs_input_grad[:4])
    attrs = {"scale": ctx.scale, "causal": ctx.causal, "dropout_p": ctx.dropout_p}
    made = F.attention_grad(dy, *inputs, ctx.y0, ctx.y1, **attrs, needs=needs)
    return *at_their_places(needs, made), None
