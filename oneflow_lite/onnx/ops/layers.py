"""Products, convolutions, pooling, normalization, recurrent layers and losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from oneflow_lite.onnx.graph import Graph, Value
from oneflow_lite.onnx.ops.shapes import swapped
from oneflow_lite.onnx.registry import NotTranslated, register_onnx
from oneflow_lite.onnx.sizes import SymbolicSize, varies


@register_onnx("matmul", "dot")
def _matmul(g: Graph, x: Value, y: Value) -> Any:
    return g.MatMul(x, y)


@register_onnx("matmul_nt")
def _matmul_nt(g: Graph, x: Value, y: Value) -> Any:
    if x.ndim == y.ndim == 2 and x.dtype.kind == "f":
        return g.Gemm(x, y, transB=1)
    return g.MatMul(x, swapped(g, y, -1, -2))


@register_onnx("matmul_tn")
def _matmul_tn(g: Graph, x: Value, y: Value, *, merge: bool) -> Any:
    if merge:
        x, y = (_rows(g, each) for each in (x, y))
    return g.MatMul(swapped(g, x, -1, -2), y)


def _rows(g: Graph, x: Value) -> Value:
    rows: Value = g.Reshape(x, g.sizes([-1, x.shape[-1]]))
    rows.shape, rows.dtype = (None, x.shape[-1]), x.dtype
    return rows


@register_onnx("contract")
def _contract(g: Graph, x: Value, y: Value, *, xs: Any, ys: Any, zs: Any) -> Any:
    letters = {label: chr(ord("a") + i) for i, label in enumerate(dict.fromkeys([*xs, *ys, *zs]))}
    given = ",".join("".join(letters[label] for label in labels) for labels in (xs, ys))
    return g.Einsum(x, y, equation=f"{given}->{''.join(letters[label] for label in zs)}")


@register_onnx("attention")
def _attention(
    g: Graph,
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None,
    seed: Any,
    *,
    scale: float,
    causal: bool,
    dropout_p: float,
) -> Any:
    """The composition of products and a softmax; 0 where a query may look at nothing."""
    if dropout_p:
        raise NotTranslated("attention with dropout; export in eval mode")
    if k.shape[1] != q.shape[1]:
        k, v = (_for_each_head(g, x, q.shape[1]) for x in (k, v))
    scores = g.MatMul(g.Mul(q, g.number(scale, q)), swapped(g, k, -1, -2))
    never = g.number(-math.inf, q)
    if mask is not None:
        kind = mask.dtype.kind
        scores = g.Where(mask, scores, never) if kind == "b" else g.Add(scores, mask)
    if causal:
        ones = g.Expand(g.constant(np.ones((1, 1), bool)), g.sizes([q.shape[2], k.shape[2]]))
        scores = g.Where(g.Trilu(ones, np.int64(0), upper=0), scores, never)
    if mask is None:
        return g.MatMul(g.Softmax(scores, axis=-1), v), None
    alive = g.Greater(g.ReduceMax(scores, np.array([3])), never)
    zero = g.number(0, q)
    weights = g.Softmax(g.Where(alive, scores, zero), axis=-1)
    return g.MatMul(g.Where(alive, weights, zero), v), None


def _for_each_head(g: Graph, x: Value, heads: int) -> Value:
    """Repeat heads of keys or values for the heads of queries that they serve."""
    n, groups, *rest = x.shape
    apart = g.Unsqueeze(x, np.array([2]))
    repeated: Value = g.Expand(apart, g.sizes([n, groups, heads // groups, *rest]))
    repeated = g.reshape(repeated, [n, heads, *rest])
    repeated.shape, repeated.dtype = (n, heads, *rest), x.dtype
    return repeated


# --- Windows --------------------------------------------------------------------------------------


@register_onnx("conv")
def _conv(
    g: Graph,
    x: Value,
    weight: Value,
    bias: Value | None,
    *,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Any:
    return g.Conv(
        x, weight, bias, strides=stride, pads=[*padding, *padding], dilations=dilation, group=groups
    )


@register_onnx("conv_input_grad")
def _conv_input_grad(
    g: Graph,
    dy: Value,
    weight: Value,
    *,
    input_size: Sequence[Any],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Any:
    """A transposed convolution; output_padding reaches from the smallest output to the size."""
    spatial = [n.base if isinstance(n, SymbolicSize) else n for n in input_size]
    kernel, given = weight.base_shape[2:], dy.base_shape[2:]
    smallest = [
        (n - 1) * s - 2 * p + d * (k - 1) + 1
        for n, s, p, d, k in zip(given, stride, padding, dilation, kernel, strict=True)
    ]
    extra = [n - least for n, least in zip(spatial, smallest, strict=True)]
    if min(extra, default=0) < 0:
        raise NotTranslated(f"its size {tuple(spatial)} is smaller than {tuple(smallest)}")
    return g.ConvTranspose(
        dy, weight, strides=stride, pads=[*padding, *padding], dilations=dilation, group=groups,
        output_padding=extra,
    )  # fmt: skip


def _ends(
    x: Value,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    output_size: Sequence[Any],
) -> list[int]:
    """Return the padding of both ends with which ONNX's rule, rounding down, gives a size."""
    after = []
    for n, k, s, p, d, m in zip(
        x.base_shape[-len(kernel_size) :], kernel_size, stride, padding, dilation, output_size,
        strict=True,
    ):  # fmt: skip
        size = m.base if isinstance(m, SymbolicSize) else m
        reach = d * (k - 1) + 1
        if (n + 2 * p - reach) // s + 1 == size:
            after.append(p)
        elif isinstance(m, SymbolicSize):
            raise NotTranslated("ceil_mode with a size that varies")
        else:
            after.append(max((size - 1) * s + reach - n - p, 0))
    return [*padding, *after]


def _planes(g: Graph, x: Value, spatial: int) -> Any:
    """Return x with two dimensions before its spatial dimensions, as ONNX wants it."""
    lead = x.ndim - spatial
    if lead == 2:
        return x
    return g.Reshape(x, g.sizes([1, -1, *x.shape[lead:]]))


def _unplaned(g: Graph, y: Value, x: Value, output_size: Sequence[Any]) -> Any:
    lead = x.ndim - len(output_size)
    return y if lead == 2 else g.reshape(y, [*x.shape[:lead], *output_size])


@register_onnx("max_pool")
def _max_pool(
    g: Graph,
    x: Value,
    *,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    output_size: Sequence[Any],
) -> Any:
    pads = _ends(x, kernel_size, stride, padding, dilation, output_size)
    y, places = g.MaxPool(
        _planes(g, x, len(kernel_size)), outputs=2, kernel_shape=kernel_size, strides=stride,
        pads=pads, dilations=dilation,
    )  # fmt: skip
    size = x.shape[-len(kernel_size) :]
    if not varies(size):  # ONNX's places count on from plane to plane
        places = g.Mod(places, np.int64(math.prod(size)))
        places = _unplaned(g, places, x, output_size)
    else:
        places = None
    return _unplaned(g, y, x, output_size), places


@register_onnx("avg_pool")
def _avg_pool(
    g: Graph,
    x: Value,
    *,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    output_size: Sequence[Any],
    divisor: Any,
) -> Any:
    """`divisor` is a number, or for each dimension the count of elements in each window."""
    once = (1,) * len(kernel_size)
    pads = _ends(x, kernel_size, stride, padding, once, output_size)
    geometry = {"kernel_shape": kernel_size, "strides": stride}
    planes = _planes(g, x, len(kernel_size))
    whole = math.prod(kernel_size)
    if isinstance(divisor, (int, float)):
        y = g.AveragePool(planes, pads=pads, count_include_pad=1, **geometry)
        if divisor != whole:
            y = g.Mul(y, g.number(whole / divisor, x))
    elif varies((divisor, output_size)):
        raise NotTranslated("what a window has inside depends on the dynamic axes")
    else:
        sums = g.AveragePool(planes, pads=pads, count_include_pad=1, **geometry)
        counts = np.ones((), np.float64)
        for line in divisor:
            counts = np.multiply.outer(counts, np.asarray(line, np.float64))
        y = g.Mul(sums, g.constant((whole / counts).astype(x.dtype)))
    return _unplaned(g, y, x, output_size)


@register_onnx("adaptive_avg_pool")
def _adaptive_avg_pool(g: Graph, x: Value, *, output_size: Sequence[int]) -> Any:
    """Means over ranges that may overlap: along each dimension a product with a matrix."""
    first = x.ndim - len(output_size)
    if varies((x.shape[first:], output_size)):
        raise NotTranslated("only of a fixed size")
    y = x
    for axis, m in enumerate(output_size, first):
        n = x.shape[axis]
        starts, ends = (k * n // m for k in (np.arange(m), -np.arange(1, m + 1)))
        place = np.arange(n)
        inside = (place >= starts[:, None]) & (place < -ends[:, None])
        weight = (inside / inside.sum(1, keepdims=True)).T.astype(x.dtype)
        perm = list(range(x.ndim))
        perm[axis], perm[-1] = perm[-1], perm[axis]
        y = g.Transpose(g.MatMul(g.Transpose(y, perm=perm), weight), perm=perm)
    return y


@register_onnx("im2col")
def _im2col(
    g: Graph,
    x: Value,
    *,
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Any:
    """Gather the places of all windows from the padded planes, flattened."""
    spatial = len(kernel_size)
    *lead, channels = x.shape[: x.ndim - spatial]
    size = x.shape[x.ndim - spatial :]
    if varies((channels, size)):
        raise NotTranslated("only of planes of a fixed size")
    ends = [0] * (x.ndim - spatial)
    padded = g.Pad(x, g.sizes([*ends, *padding, *ends, *padding])) if any(padding) else x
    whole = [n + 2 * p for n, p in zip(size, padding, strict=True)]
    lines = [
        d * np.arange(k)[:, None] + s * np.arange((n - d * (k - 1) - 1) // s + 1)
        for n, k, d, s in zip(whole, kernel_size, dilation, stride, strict=True)
    ]
    places = np.zeros((1, 1), np.int64)
    for n, line in zip(whole, lines, strict=True):
        taps = places[:, None, :, None] * n + line[None, :, None, :]
        places = taps.reshape(places.shape[0] * line.shape[0], -1)
    flat = g.reshape(padded, [*lead, channels, math.prod(whole)])
    taken = g.Gather(flat, places, axis=len(lead) + 1)
    return g.reshape(taken, [*lead, channels * places.shape[0], places.shape[1]])


@register_onnx("cdist")
def _cdist(g: Graph, x: Value, y: Value, *, p: float, mm: bool) -> Any:
    norms = {1.0: "ReduceL1", 2.0: "ReduceL2"}
    if p not in norms:
        raise NotTranslated(f"p = {p}; 1 and 2 have one")
    apart = g.Sub(g.Unsqueeze(x, g.sizes([-2])), g.Unsqueeze(y, g.sizes([-3])))
    return g.node(norms[p], apart, g.sizes([-1]), keepdims=0)


@register_onnx("resample")
def _resample(
    g: Graph,
    x: Value,
    *,
    output_size: Sequence[Any],
    mode: str,
    align_corners: Any,
    scales: Sequence[Any],
    antialias: bool,
) -> Any:
    modes = {"nearest": "nearest", "nearest-exact": "nearest", "linear": "linear", "cubic": "cubic"}
    if mode not in modes or antialias:
        raise NotTranslated(f"mode {mode!r}{' with antialias' if antialias else ''}")
    place = "align_corners" if align_corners else "pytorch_half_pixel"
    options: dict[str, Any] = {"cubic_coeff_a": -0.75} if mode == "cubic" else {}
    if mode == "nearest":
        place, options = "asymmetric", {"nearest_mode": "floor"}
    elif mode == "nearest-exact":
        place, options = "half_pixel", {"nearest_mode": "round_prefer_ceil"}
    spatial = len(output_size)
    factors = [
        scale if scale is not None else SymbolicSize.__name__ if varies(m) else m / n
        for scale, m, n in zip(scales, output_size, x.base_shape[-spatial:], strict=True)
    ]
    if any(type(factor) is str for factor in factors):
        raise NotTranslated("an output size that depends on the dynamic axes; give scale_factor")
    if all(scale is None for scale in scales):
        sizes = g.sizes([*x.shape[: x.ndim - spatial], *output_size])
        given: tuple[Any, Any] = (None, sizes)
    else:
        given = (g.constant(np.array([1.0] * (x.ndim - spatial) + factors, np.float32)), None)
    return g.Resize(
        x, None, *given, mode=modes[mode], coordinate_transformation_mode=place, **options
    )


# --- Normalization --------------------------------------------------------------------------------


def _normalized(
    g: Graph,
    x: Value,
    groups: Sequence[Any],
    channels: Sequence[Any],
    scale: Sequence[Value | None],
    eps: float,
    centred: bool,
) -> tuple[Any, ...]:
    """Return y, z, rstd, variance and mean: see kernels/normalization.py."""
    axes = g.sizes([1] if len(groups) == 2 else [0, 2])
    seen = g.reshape(x, groups)
    mean = None
    if centred:
        mean = g.ReduceMean(seen, axes, keepdims=1)
        seen = g.Sub(seen, mean)
    variance = g.ReduceMean(g.Mul(seen, seen), axes, keepdims=1)
    rstd = g.Reciprocal(g.Sqrt(g.Add(variance, g.number(eps, x))))
    z = y = g.Mul(seen, rstd)
    weight, bias = scale
    if weight is not None or bias is not None:
        y = g.reshape(z, channels)
        line = [1, -1, *[1] * (len(channels) - 2)]
        y = y if weight is None else g.Mul(y, g.Reshape(weight, g.sizes(line)))
        y = y if bias is None else g.Add(y, g.Reshape(bias, g.sizes(line)))
    column = g.sizes([-1, 1])
    lines = [None if each is None else g.Reshape(each, column) for each in (rstd, variance, mean)]
    return g.reshape(y, x.shape), g.reshape(z, x.shape), *lines


@register_onnx("affine_norm")
def _affine_norm(
    g: Graph,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    *,
    groups: Sequence[Any],
    channels: Sequence[Any],
    eps: float,
) -> Any:
    rows = len(groups) == 2 and groups == channels and x.shape[-1] == groups[-1]
    if rows and weight is not None:
        return g.LayerNormalization(x, weight, bias, axis=-1, epsilon=eps), None, None
    return _normalized(g, x, groups, channels, (weight, bias), eps, True)[:3]


@register_onnx("batch_norm")
def _batch_norm(
    g: Graph,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    *,
    groups: Sequence[Any],
    channels: Sequence[Any],
    eps: float,
) -> Any:
    return _normalized(g, x, groups, channels, (weight, bias), eps, True)


@register_onnx("standardize")
def _standardize(g: Graph, x: Value, *, groups: Sequence[Any], eps: float) -> Any:
    _, z, rstd, *_ = _normalized(g, x, groups, groups, (None, None), eps, True)
    return z, rstd


@register_onnx("rms_norm")
def _rms_norm(
    g: Graph, x: Value, weight: Value | None, *, groups: Sequence[Any], eps: float
) -> Any:
    return _normalized(g, x, groups, groups, (weight, None), eps, False)[:3]


# --- Recurrent layers -----------------------------------------------------------------------------


def _recurrent(
    g: Graph,
    op_type: str,
    x: Value,
    states: Sequence[Value],
    weight: Value,
    order: Sequence[int],
    bias: Value | None,
    sizes: Any,
    reverse: bool,
    **attributes: Any,
) -> tuple[Any, ...]:
    """Add a recurrent node for rows that are products with the input's weight.

    ONNX's node multiplies its input itself: it takes the factors of the product where this is an op
    of the Program, else an identity as weight.
    """
    if sizes is not None:
        raise NotTranslated("packed sequences")
    hidden, gates = states[0].base_shape[1], len(order)
    places = np.concatenate([np.arange(k * hidden, (k + 1) * hidden) for k in order])

    def ordered(w: Any) -> Any:
        return w if gates == 1 else g.Gather(w, places, axis=0)

    source = g.source_of_product(x)
    if source is not None:
        given, factor, added = source
        width = given.base_shape[-1]
        w, b = ordered(factor), None if added is None else ordered(added)
    else:
        given, width = x, gates * hidden
        w, b = g.constant(np.eye(gates * hidden, dtype=x.dtype)[places]), None
    if given.ndim != 3:  # all steps' rows, below each other
        given = g.Reshape(given, g.sizes([-1, states[0].shape[0], width]))
    if b is not None or bias is not None:
        zeros = g.constant(np.zeros(gates * hidden, x.dtype))
        other = zeros if bias is None else ordered(bias)
        b = g.Unsqueeze(g.Concat(zeros if b is None else b, other, axis=0), g.sizes([0]))
    lead = g.sizes([0])
    y, *last = g.node(
        op_type, given, g.Unsqueeze(w, lead), g.Unsqueeze(ordered(weight), lead), b, None,
        *[g.Unsqueeze(state, lead) for state in states], outputs=1 + len(states),
        hidden_size=hidden, direction="reverse" if reverse else "forward", **attributes,
    )  # fmt: skip
    y = g.Squeeze(y, g.sizes([1])) if x.ndim == 3 else g.Reshape(y, g.sizes([-1, hidden]))
    return y, *[g.Squeeze(state, lead) for state in last]


@register_onnx("lstm_layer")
def _lstm_layer(
    g: Graph,
    x: Value,
    h0: Value,
    c0: Value,
    weight: Value,
    projection: Value | None,
    sizes: Any,
    *,
    reverse: bool,
) -> Any:
    if projection is not None:
        raise NotTranslated("an LSTM with proj_size")
    order = (0, 3, 1, 2)  # ONNX's gates are i, o, f, g
    made = _recurrent(g, "LSTM", x, (h0, c0), weight, order, None, sizes, reverse)
    return *made, None, None


@register_onnx("gru_layer")
def _gru_layer(
    g: Graph, x: Value, h0: Value, weight: Value, bias: Value | None, sizes: Any, *, reverse: bool
) -> Any:
    order = (1, 0, 2)  # ONNX's gates are z, r, n
    y, h = _recurrent(
        g, "GRU", x, (h0,), weight, order, bias, sizes, reverse, linear_before_reset=1
    )
    return y, h, None, None


@register_onnx("rnn_layer")
def _rnn_layer(
    g: Graph, x: Value, h0: Value, weight: Value, sizes: Any, *, reverse: bool, nonlinearity: str
) -> Any:
    name = {"tanh": "Tanh", "relu": "Relu"}[nonlinearity]
    return _recurrent(g, "RNN", x, (h0,), weight, (0,), None, sizes, reverse, activations=[name])


# --- Losses ---------------------------------------------------------------------------------------


@register_onnx("nll_loss")
def _nll_loss(
    g: Graph,
    x: Value,
    target: Value,
    weight: Value | None,
    *,
    ignore_index: int,
    reduction: str,
    op: str = "nll_loss",
) -> Any:
    if x.ndim < 2:
        raise NotTranslated("only with a batch dimension")
    return g.NegativeLogLikelihoodLoss(
        x, target, weight, ignore_index=ignore_index, reduction=reduction
    )


@register_onnx("cross_entropy_rows")
def _cross_entropy_rows(
    g: Graph,
    x: Value,
    target: Value,
    weight: Value | None,
    *,
    ignore_index: int,
    label_smoothing: float,
    op: str = "",
) -> Any:
    logarithms = g.LogSoftmax(x, axis=1)
    attrs = {"ignore_index": ignore_index, "reduction": "none"}
    loss = g.NegativeLogLikelihoodLoss(logarithms, target, weight, **attrs)
    if label_smoothing:
        weighted = logarithms if weight is None else g.Mul(logarithms, weight)
        spread = g.ReduceMean(weighted, np.array([1]), keepdims=0)
        ignored = g.Equal(target, g.number(ignore_index, target))
        spread = g.Where(ignored, g.number(0, x), g.Mul(spread, g.number(-label_smoothing, x)))
        loss = g.Add(g.Mul(loss, g.number(1 - label_smoothing, x)), spread)
    return loss, None, None
