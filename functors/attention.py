"""Attention: functions that users call."""

from __future__ import annotations

import math

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, DTypeError, arg_error
from oneflow_lite.functors.declaring.checks import check_tensor
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import Flag, Number, Positive, RealFloating
from oneflow_lite.functors.joining import broadcast_shapes
from oneflow_lite.functors.random import Probability
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor

_SEEDS = 1 << 62  # numbers that a stream of dropout may begin with


def _added(op: str, name: str, mask: Tensor, like: Tensor, kept: bool) -> Tensor:
    """Return a mask as numbers to add to scores: 0 for truth values equal to `kept`, else -inf."""
    if check_tensor(op, name, mask).dtype == like.dtype:
        return mask
    if mask.dtype.kind != "b":
        expected = f"bool or {like.dtype}, that of the query"
        raise arg_error(op, name, expected, mask.dtype, "convert it with .to(dtype)", DTypeError)
    zero, never = (F.full((), x, dtype=like.dtype, device=like.device) for x in (0.0, -math.inf))
    return F.where(mask, zero, never) if kept else F.where(mask, never, zero)


def _attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, p: float, scale: float
) -> tuple[Tensor, Tensor]:
    """Return softmax(query keyᵀ scale + mask) value and the weights: nan where all is masked."""
    # The query is scaled, not the scores: E numbers for each query instead of S.
    scores = F.matmul(query * scale, key.transpose(-2, -1))
    weights = F.softmax(scores if mask is None else scores + mask, -1)
    weights = F.dropout(weights, p) if p else weights
    return F.matmul(weights, value), weights


def _in_blocks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    p: float,
    scale: float,
    causal: bool = False,
    grouped: bool = False,
) -> Tensor:
    """Return what `_attend` does without its weights, by blocks; 0 where all is masked.

    The dimensions in front broadcast. In groups, the heads of key and value divide the query's.
    """
    lead = query.shape[:-2]
    if not lead == key.shape[:-2] == value.shape[:-2]:
        apart = key.shape[:-2]  # where one head of keys, or each of a group, serves several
        shared = len(lead) > 0 and apart[:-1] == lead[:-1] and apart == value.shape[:-2]
        if not (shared and (grouped or apart[-1] == 1)):
            lead = broadcast_shapes(lead, apart, value.shape[:-2])
            query, key, value = (x.expand(*lead, *x.shape[-2:]) for x in (query, key, value))
    if mask is not None:
        mask = _in_four(mask, query, key)
    if len(lead) != 2:
        query, key, value = map(_heads_apart, (query, key, value))
    seed = F.randint(0, _SEEDS, (2,), device=query.device) if p else None
    attrs = {"scale": float(scale), "causal": causal, "dropout_p": float(p)}
    y = dispatch(op_expr("attention"), (query, key, value, mask, seed), attrs)[0]
    return y if len(lead) == 2 else y.reshape(*lead, *y.shape[2:])


def _heads_apart(x: Tensor) -> Tensor:
    """Return (*, H, L, E) as (N, H, L, E), also where there is no * or no H."""
    return x.reshape(math.prod(x.shape[:-3]), *((1,) * (3 - x.ndim)), *x.shape[-3:])


def _in_four(mask: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """Return a mask of four dimensions, each of which has the size of the scores or 1."""
    whole = (*query.shape[:-1], key.shape[-2])
    mask = mask.reshape((1,) * (len(whole) - mask.ndim) + tuple(mask.shape))
    fits = all(n in (1, m) for n, m in zip(mask.shape, whole, strict=True))
    if not fits:
        op, expected = "scaled_dot_product_attention", f"a shape that broadcasts to {whole}"
        raise arg_error(op, "attn_mask", expected, mask, "match queries and keys")
    front = mask.shape[:-3]
    if math.prod(front) != 1 and front != whole[:-3]:
        mask = mask.expand(*whole[:-3], *mask.shape[-3:])
    return _heads_apart(mask)


@functor(
    "functional",
    samples="""
        x(2, 3, 4), x(2, 5, 4), x(2, 5, 2); x(3, 4), x(5, 4), x(5, 2), fixed(b(3, 5)), scale=0.7
        x(1, 2, 3, 4), x(1, 2, 5, 4), x(1, 2, 5, 2), x(3, 5)
        x(2, 3, 4), x(2, 3, 4), x(2, 3, 2), is_causal=True
        x(1, 4, 2, 3), x(1, 2, 3, 3), x(1, 2, 3, 2), enable_gqa=True""",
)
def scaled_dot_product_attention(
    query: RealFloating,
    key: RealFloating,
    value: RealFloating,
    attn_mask: Tensor | None = None,
    dropout_p: Probability = 0.0,
    is_causal: Flag = False,
    scale: Number | None = None,
    enable_gqa: Flag = False,
) -> Tensor:
    """Return softmax(query keyᵀ / √E + mask) value; 0 for a query that may look at nothing.

    Vaswani et al., Attention Is All You Need, 2017.

    query, key, value: (*, H, L, E), (*, H, S, E), (*, H, S, V) of one dtype; * and H broadcast.
    attn_mask: broadcasts to (*, H, L, S): True for keys that take part, or numbers to add.
    dropout_p: the probability with which weights are set to 0, in training or not.
    is_causal: let query i look at the first i keys only, of those that `attn_mask` leaves.
    scale: in the place of 1 / √E.
    enable_gqa: let each head of key and value serve several heads of the query, one behind another.
    ArgumentError: when `dropout_p` is no probability.
    DTypeError: when an argument is not real floating, or the dtypes differ.
    ShapeError: when the shapes do not fit.

    >>> k = flow.tensor([[10.0, 0.0], [0.0, 10.0]])
    >>> flow.nn.functional.scaled_dot_product_attention(k[1:], k, flow.tensor([[1.0], [2.0]]))
    tensor([[2.]])
    """
    op = "scaled_dot_product_attention"
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.ndim < 2:
            raise arg_error(op, name, "at least 2 dimensions", x, "unsqueeze it")
        if x._data.dtype != query._data.dtype:
            expected = f"dtype {query.dtype}, that of the query"
            raise arg_error(op, name, expected, x.dtype, "convert it with .to(dtype)", DTypeError)
    if key.shape[-1] != query.shape[-1] or key.shape[-2] != value.shape[-2]:
        expected = f"(*, S, {query.shape[-1]}) with a value (*, S, V)"
        raise arg_error(op, "key", expected, f"{key.shape} with {value.shape}", "match their sizes")
    if enable_gqa:
        _check_groups(op, "key", key, query)
        _check_groups(op, "value", value, query)
        if key.shape[-3] != value.shape[-3]:
            heads = query.shape[-3]
            key, value = (x.repeat_interleave(heads // x.shape[-3], -3) for x in (key, value))
    if attn_mask is not None and attn_mask.dtype.kind != "b":
        attn_mask = _added(op, "attn_mask", attn_mask, query, True)
    scale = 1 / math.sqrt(query.shape[-1] or 1) if scale is None else scale
    causal, grouped = bool(is_causal), bool(enable_gqa)
    return _in_blocks(query, key, value, attn_mask, dropout_p, scale, causal, grouped)


def _check_groups(op: str, name: str, x: Tensor, query: Tensor) -> None:
    """Check that the heads of key or value divide those of the query."""
    heads, have = (t.shape[-3] if t.ndim > 2 else 0 for t in (query, x))
    if not have or heads % have:
        expected = f"a number of heads that divides {heads}"
        raise arg_error(op, name, expected, x, "give a divisor of them")


_BIASED = "unit(1, 1, 2), unit(1, 1, 2), True, 0.0, unit(2, 2), None, attn_mask=fixed(x(2, 3))"
_APART = "average_attn_weights=False"
_PROJECTIONS = "unit(12, 4), unit(12), None, None, False, 0.0, unit(4, 4), unit(4)"


@functor(
    "functional",
    samples=f"""unit(3, 2, 4), unit(3, 2, 4), unit(3, 2, 4), 4, 2, {_PROJECTIONS}
        unit(2, 4), unit(3, 4), unit(3, 4), 4, 2, {_PROJECTIONS}, True, fixed(b(3))
        unit(2, 1, 2), *[unit(3, 1, 2)] * 2, 2, 2, unit(6, 2), None, {_BIASED}, {_APART}""",
)
def multi_head_attention_forward(
    query: RealFloating,
    key: RealFloating,
    value: RealFloating,
    embed_dim_to_check: int,
    num_heads: Positive,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: Flag,
    dropout_p: Probability,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: Flag = True,
    key_padding_mask: Tensor | None = None,
    need_weights: Flag = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: Flag = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: Flag = True,
    is_causal: Flag = False,
) -> tuple[Tensor, Tensor | None]:
    """Project query, key and value, attend with several heads, and project the result.

    query: (L, N, E) or (L, E).
    key, value: (S, N, E) or (S, E); other features with separate projections.
    in_proj_weight, in_proj_bias: (3 E, E) and (3 E,): those of query, key and value in a row.
    bias_k, bias_v, add_zero_attn: one more key and value, of shape (1, 1, E), or zeros.
    key_padding_mask: (N, S) or (S,): True for keys to leave out, or numbers that are added.
    attn_mask: (L, S) or (N · num_heads, L, S): likewise.
    need_weights, average_attn_weights: return the weights too, and as the mean of all heads. A
        query that may look at nothing gets nan then, as in PyTorch, and else what it gets of
        `scaled_dot_product_attention`.
    static_k, static_v: (N · num_heads, S, E / num_heads), in the place of projected ones.
    is_causal: a hint that `attn_mask` is causal.
    returns: the result, and the weights or None.
    ArgumentError: when `is_causal` lacks a mask, or arguments contradict each other.
    ShapeError: when a shape does not fit.
    """
    op = "multi_head_attention_forward"
    batched = query.ndim == 3
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.ndim != (3 if batched else 2):
            raise arg_error(
                op, name, "(L, N, E), or (L, E) for all three", x, "give one batch size"
            )
    together = query is key and key is value and not use_separate_proj_weight
    if not batched:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        if key_padding_mask is not None:
            key_padding_mask = F.unsqueeze(key_padding_mask, 0)
    steps, batch, features = query.shape
    if features != embed_dim_to_check or features % num_heads:
        expected = f"{embed_dim_to_check} features, a multiple of num_heads = {num_heads}"
        raise arg_error(op, "query", expected, query, "match them")
    if key.shape[:2] != value.shape[:2] or key.shape[1] != batch:
        raise arg_error(op, "value", f"shape {key.shape}, as the key", value, "match them")
    if is_causal and attn_mask is None:
        hint = "pass the causal mask as attn_mask"
        raise arg_error(op, "is_causal", "a mask beside it", None, hint, ArgumentError)
    if not use_separate_proj_weight:
        check_tensor(op, "in_proj_weight", in_proj_weight)
    if together:
        q, k, v = F.chunk(F.linear(query, in_proj_weight, in_proj_bias), 3, -1)
    else:
        apart = (q_proj_weight, k_proj_weight, v_proj_weight)
        weights = apart if use_separate_proj_weight else F.chunk(in_proj_weight, 3)
        for name, weight in zip("qkv", weights, strict=True):
            check_tensor(op, f"{name}_proj_weight", weight)
        biases = (None,) * 3 if in_proj_bias is None else F.chunk(in_proj_bias, 3)
        q, k, v = map(F.linear, (query, key, value), weights, biases)
    if (bias_k is None) != (bias_v is None):
        raise arg_error(
            op, "bias_k", "bias_v beside it", None, "pass both or neither", ArgumentError
        )
    if bias_k is not None and (static_k is not None or static_v is not None):
        raise arg_error(op, "static_k", "no bias beside it", "both", "leave one out", ArgumentError)
    size, lines = features // num_heads, batch * num_heads
    extra = int(bias_k is not None) + int(add_zero_attn)  # keys that no mask speaks of
    if bias_k is not None:
        k, v = (F.cat([x, F.expand(b, 1, batch, features)]) for x, b in ((k, bias_k), (v, bias_v)))
    q, k, v = (x.reshape(x.shape[0], lines, size).transpose(0, 1) for x in (q, k, v))
    k, v = k if static_k is None else static_k, v if static_v is None else static_v
    if add_zero_attn:
        nothing = F.zeros(lines, 1, size, dtype=q.dtype, device=q.device)
        k, v = F.cat([k, nothing], 1), F.cat([v, nothing], 1)
    mask, keys = None, k.shape[1] - extra
    if attn_mask is not None:
        mask = _added(op, "attn_mask", attn_mask, q, False)
        if mask.shape not in ((steps, keys), (lines, steps, keys)):
            expected = f"shape ({steps}, {keys}), or one for each head"
            raise arg_error(op, "attn_mask", expected, attn_mask, "match queries and keys")
    causal = bool(is_causal) and key_padding_mask is None and not need_weights
    mask = None if causal else mask
    if key_padding_mask is not None:
        padding = _added(op, "key_padding_mask", key_padding_mask, q, False)
        if padding.shape != (batch, keys):
            expected = f"shape ({batch}, {keys})"
            raise arg_error(op, "key_padding_mask", expected, key_padding_mask, "match the keys")
        padding = padding.unsqueeze(1).repeat_interleave(num_heads, 0)
        mask = padding if mask is None else mask + padding
    if mask is not None and extra:
        mask = F.pad(mask, (0, extra))
    p, scale = dropout_p if training else 0.0, 1 / math.sqrt(size)
    if need_weights:
        y, shares = _attend(q, k, v, mask, p, scale)
    else:
        y = _in_blocks(q, k, v, mask, p, scale, causal)
    y = F.linear(y.transpose(0, 1).reshape(query.shape), out_proj_weight, out_proj_bias)
    y = y if batched else y[:, 0]
    if not need_weights:
        return y, None
    shares = shares.reshape(batch, num_heads, steps, k.shape[1])
    shares = shares.mean(1) if average_attn_weights else shares
    return y, shares if batched else shares[0]
