"""A call for every registered op, in float64 and float32: `samples(name)`.

Most come from the samples of declared functors, whose calls and derivatives dispatch the ops; the
table has the others. `tests/test_op_samples.py` holds that each call dispatches its op, so that
what sweeps over the samples misses none. Inputs lie inside the domains, away from kinks and ties.
"""

from __future__ import annotations

import functools
from typing import Any

import attrs
import numpy as np

import oneflow_lite as flow
from oneflow_lite.exposure import ROOMS, load_all
from oneflow_lite.functors.optim import adam_update, sgd_update
from oneflow_lite.interpreter import dispatch
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import KERNELS
from tests.declared_samples import Call, Sample, floats, gradient, samples_of

__all__ = ["SAMPLES", "Sample", "every_op", "floats", "gradient", "samples"]

F = flow.nn.functional

# By hand: what declarations do not say.
SAMPLES: dict[str, list[Sample]] = {}
_NARROW = {"f": np.float32, "c": np.complex64}


def _add(op: str, call: Call, *inputs: Any, grads: tuple[int, ...] | None = None) -> None:
    """Add a call with its inputs and again in single precision."""
    wide = tuple(np.asarray(x) for x in inputs)
    if grads is None:
        grads = tuple(i for i, x in enumerate(wide) if x.dtype.kind in "fc")
    SAMPLES.setdefault(op, []).append(Sample(op, call, wide, grads))
    narrow = tuple(x.astype(_NARROW.get(x.dtype.kind, x.dtype)) for x in wide)
    if any(x.dtype.kind in "fc" for x in wide):
        SAMPLES[op].append(Sample(op, call, narrow, grads))


@functools.cache
def every_op() -> list[str]:
    """Return the names of all registered ops of the package."""
    for room in ROOMS:
        load_all(room)
    return sorted(name for name in KERNELS if all(map(_is_ours, _kernels(name))))


def _kernels(op: str) -> list[Any]:
    return list(KERNELS.get(op).by_device.values())


def _is_ours(kernel: Any) -> bool:
    """Whether it is not what tests of other files register and forget."""
    return str(kernel.__module__).startswith("oneflow_lite.")


def samples(op: str, device: str = "cpu") -> list[Sample]:
    """Return the samples of an op that run with their inputs on this device."""
    found = SAMPLES.get(op) or samples_of(op, _kernels(op)[0].__module__.rpartition(".")[2])
    return [sample for sample in found if device == "cuda" or not sample.needs_cuda]


X = np.array([[-1.75, 0.375, 2.25], [1.25, -0.625, 3.125]])
Y = np.array([[1.125, -0.75, 0.875], [-2.25, 1.625, 0.8125]])
ROW = np.array([0.625, -1.3125, 2.1875])
POSITIVE = np.array([[0.3125, 1.4375, 2.5], [0.875, 3.25, 0.625]])
UNIT = np.array([[0.125, -0.5, 0.6875], [-0.3125, 0.8125, 0.4375]])
SHARE = np.array([[0.125, 0.5, 0.6875], [0.3125, 0.8125, 0.4375]])
WIDE = np.array([[-4.5, -2.75, -0.625, 0.3125], [0.875, 1.75, 2.875, 5.25]])
CUBE = np.cos(np.arange(24.0)).reshape(2, 3, 4)
IMAGE = np.sin(np.arange(32.0) * 1.7).reshape(1, 2, 4, 4)
WEIGHT = np.cos(np.arange(24.0)).reshape(3, 2, 2, 2)
Z = np.array([[0.5 + 1.25j, -0.875 + 0.375j], [1.125 - 0.75j, -0.4375 - 1.5j]])
INTS = np.array([[5, -3, 2], [-7, 4, 6]])
COUNTS = np.array([[2, 1, 3], [1, 2, 2]])
MASK = np.array([[True, False, True], [False, True, True]])
INDEX = np.array([[0, 2, 1], [2, 0, 0]])
PICK = np.array([2, 0])

# --- One function of one tensor -----------------------------------------------------------------

for _name in """abs angle asinh atan ceil clone cos erf erfc exp exp2 expm1 floor frac neg
    reciprocal round sign sin sinc sinh square tan tanh trunc nan_to_num sigmoid isfinite isinf
    isnan logical_not zeros_like ones_like""".split():
    _add(_name, getattr(flow, _name), X)
for _name in "log log10 log1p log2 sqrt rsqrt".split():
    _add(_name, getattr(flow, _name), POSITIVE)
for _name in "acos asin atanh".split():
    _add(_name, getattr(flow, _name), UNIT)
_add("acosh", flow.acosh, POSITIVE + 1)
_add("cosh", flow.cosh, X)
for _name in "conj sgn angle abs exp".split():
    _add(_name, getattr(flow, _name), Z)
_add("real", lambda z: flow.real(z) * 2, Z)
_add("imag", lambda z: flow.imag(z) * 2, Z)
_add("view_as_real", flow.view_as_real, Z)
_add("view_as_complex", flow.view_as_complex, CUBE[..., :2])
_add("bitwise_not", flow.bitwise_not, INTS)
_add("cast", lambda x: x.to(flow.float16), X)
_add("view_dtype", lambda x: x.view(flow.int64), X)
SAMPLES["view_dtype"].pop()  # 8 bytes are read as 8 bytes

for _name in """gelu silu elu softplus mish softsign logsigmoid relu leaky_relu hardtanh
    hardsigmoid hardswish hardshrink softshrink""".split():
    _add(_name, getattr(F, _name), WIDE)
_add("threshold", lambda x: F.threshold(x, 0.5, -1.0), WIDE)
_add("gelu", lambda x: F.gelu(x, approximate="tanh"), WIDE)
for _name in """gelu silu elu softplus mish relu leaky_relu hardtanh hardswish tanh
    sigmoid""".split():
    _add(f"{_name}_grad", gradient(getattr(F, _name)), WIDE)
_add("threshold_grad", gradient(lambda x: F.threshold(x, 0.5, -1.0)), WIDE)
_add("shrink_grad", gradient(F.softshrink), WIDE)
_add("sinc_grad", gradient(flow.sinc), X)
_add("mask_finite", gradient(flow.nan_to_num), X)

# --- Several operands ---------------------------------------------------------------------------

for _name in """add sub mul div maximum minimum atan2 hypot logaddexp floor_divide fmod remainder
    eq ne lt le gt ge isclose logical_and logical_or logical_xor clamp_min clamp_max""".split():
    _add(_name, getattr(flow, _name), X, Y)
for _name in "add sub mul div maximum eq lt".split():
    _add(_name, getattr(flow, _name), X, ROW)
for _name in "add mul div".split():
    _add(_name, getattr(flow, _name), Z, Z.T + 0.25)
for _name in "bitwise_and bitwise_or bitwise_xor".split():
    _add(_name, getattr(flow, _name), INTS, COUNTS)
_add("add", lambda x: x + 2.5, X)
_add("mul_scalar", lambda x, y: flow.add(x, y, alpha=2.5), X, Y)
_add("div_trunc", lambda x, y: flow.div(x, y, rounding_mode="trunc"), X, Y)
_add("pow", flow.pow, POSITIVE, Y)
_add("pow", lambda x: x**3.0, X)
_add("pow_grad_exponent", gradient(flow.pow), POSITIVE, Y)
_add("pow_integer", flow.pow, INTS, COUNTS)
_add("extreme_grad", gradient(flow.maximum), X, Y)
_add("mask_less", gradient(flow.clamp_min), X, Y)
_add("clamp_max", lambda x: flow.clamp(x, -1.0, 1.5), X)
_add("clamp", flow.clamp, X, -POSITIVE, POSITIVE)
_add("where", flow.where, MASK, X, Y)
_add("lerp", flow.lerp, X, Y, SHARE)
_add("xlogy", flow.xlogy, X, POSITIVE)
_add("complex", flow.complex, X, Y)
_add("polar", flow.polar, POSITIVE, Y)
_add("allclose", lambda x, y: x * flow.allclose(x, y), X, Y)
_add("equal", lambda x, y: x * flow.equal(x, y), X, Y)

# --- Reductions, scans, order -------------------------------------------------------------------

for _name in "all any sum mean prod amax amin argmax argmin count_nonzero norm std var".split():
    _add(_name, getattr(flow, _name), X)
for _name in "sum mean prod amax amin std var max min argsort cumsum cumprod softmax".split():
    _add(_name, functools.partial(getattr(flow, _name), dim=1), X)
_add("all", lambda x: flow.all(x, 0), X)
_add("logsumexp", lambda x: flow.logsumexp(x, dim=1), X)
_add("log_softmax", lambda x: flow.log_softmax(x, dim=1), X)
_add("sort", lambda x: flow.sort(x, dim=1, descending=True), X)
_add("topk", lambda x: flow.topk(x, 2, dim=1), X)
_add("sum_to", lambda x: x.sum_to_size(3), X)
_add("safe_divide", gradient(lambda x: flow.norm(x, dim=1)), X)
_add("tie_weights", gradient(lambda x: flow.amax(x, dim=1)), X)
_add("cumsum_grad", gradient(lambda x: flow.cumsum(x, dim=1)), X)
_add("shift", gradient(lambda x: flow.cumprod(x, dim=1)), X)
_add("recurrence", gradient(lambda x: flow.cumprod(x, dim=1)), X)
_add("softmax_grad", gradient(lambda x: flow.softmax(x, dim=1)), X)
_add("log_softmax_grad", gradient(lambda x: flow.log_softmax(x, dim=1)), X)

# --- Shapes -------------------------------------------------------------------------------------

_add("reshape", lambda x: x.reshape(3, 2) * 2, X)
_add("reshape", lambda x: x.t().reshape(6), X)
_add("transpose", lambda x: x.transpose(0, 1) * 2, X)
_add("permute", lambda x: x.permute(2, 0, 1), CUBE)
_add("squeeze", lambda x: x.squeeze(0), IMAGE)
_add("unsqueeze", lambda x: x.unsqueeze(1), X)
_add("expand", lambda x: x.expand(2, 3), ROW)
_add("flip", lambda x: x.flip(0), X)
_add("roll", lambda x: flow.roll(x, 1, 0), X)
_add("repeat", lambda x: x.repeat(2, 1), X)
_add("unfold", lambda x: x.unfold(1, 2, 1), X)
_add("unfold_grad", gradient(lambda x: x.unfold(1, 2, 1)), X)
_add("cat", lambda x, y: flow.cat([x, y], 1), X, Y)
_add("stack", lambda x, y: flow.stack([x, y]), X, Y)
_add("diag_embed", flow.diag_embed, X)
_add("diagonal", lambda x: flow.diagonal(x) * 2, X)
_add("diagonal_grad", gradient(flow.diagonal), X)
_add("tril", flow.tril, X)
_add("triu", flow.triu, X)
_add("pad", lambda x: F.pad(x, (1, 2)), X)
_add("pad", lambda x: F.pad(x, (1, 1), mode="reflect"), CUBE)
_add("pad_grad", gradient(lambda x: F.pad(x, (1, 1), mode="reflect")), CUBE)
SAMPLES["to_device"] = [Sample("to_device", lambda x: x.to("cpu"), (X,), (0,), needs_cuda=True)]

# --- Indexing -----------------------------------------------------------------------------------

_add("getitem", lambda x: x[:, 1:] * 2, X)
_add("narrow", lambda x: x.narrow(1, 0, 2), X)
_add("select", lambda x: x.select(0, 1), X)
_add("getitem_advanced", lambda x, i: x[i, :2], X, np.array([1, 0, 1]))
_add("getitem_grad", gradient(lambda x: x[:, 1:]), X)
_add("getitem_advanced_grad", gradient(lambda x, i: x[i]), X, np.array([1, 0, 1]))
_add("gather", lambda x, i: x.gather(1, i), X, INDEX)
_add("gather_grad", gradient(lambda x, i: x.gather(1, i)), X, INDEX)
_add("scatter", lambda x, i, y: x.scatter(1, i, y), X, INDEX, Y)
_add("scatter_add", lambda x, i, y: x.scatter_add(1, i, y), X, INDEX, Y)
_multiply = functools.partial(flow.scatter, dim=1, reduce="multiply")
_add("scatter_multiply", lambda x, i, y: _multiply(x, index=i, src=y), X, INDEX, Y, grads=())
_add("scatter_mask", gradient(lambda x, i, y: x.scatter(1, i, y)), X, INDEX, Y)
_add("scatter_overwritten", gradient(lambda x, i, y: x.scatter(1, i, y)), X, INDEX, Y)
_add("index_select", lambda x, i: x.index_select(1, i), X, PICK)
_add("index_add", lambda x, i, y: x.index_add(1, i, y), X, PICK, Y[:, :2])
_add("index_mask", lambda x, i: x.index_fill(1, i, 2.0), X, PICK)
_add("index_from_zero", lambda x, i: flow.take(x, i), X, PICK)
_add("masked_fill", lambda x, m: x.masked_fill(m, 2.0), X, MASK)
_add("masked_scatter", lambda x, m, y: x.masked_scatter(m, y), X, MASK, Y)
_add("masked_scatter_grad", gradient(lambda x, m, y: x.masked_scatter(m, y)), X, MASK, Y)
_add("masked_select", flow.masked_select, X, MASK)
_add("masked_select_grad", gradient(flow.masked_select), X, MASK)
_add("nonzero", flow.nonzero, INTS)
_add("one_hot", lambda i: F.one_hot(i, 4), INDEX)
_add("embedding", F.embedding, INDEX, CUBE[0])
_add(
    "embedding_scale",
    gradient(lambda i, w: F.embedding(i, w, padding_idx=1, scale_grad_by_freq=True)),
    *(INDEX, CUBE[0]),
)

# --- Writes -------------------------------------------------------------------------------------


def _written(x: flow.Tensor, index: Any, value: Any) -> flow.Tensor:
    y = x * 1
    y[index] = value
    return y


def _written_view(x: flow.Tensor, value: flow.Tensor) -> flow.Tensor:
    y = x * 1
    y[:, 1:].mul_(value)
    return y


_add("copy_", lambda x, y: (x * 1).copy_(y), X, Y)
_add("fill_", lambda x, y: (x * 1).fill_(y.sum()), X, Y)
_add("fill_", lambda x: (x * 1).zero_() + x, X)
_add("setitem_", lambda x, y: _written(x, (slice(None), 1), y), X, PICK + 0.5)
_add("setitem_", lambda x, i, y: _written(x, (slice(None), i), y), X, PICK, Y[:, :2])
_add("setitem_", lambda x: _written(x, 0, 2.5), X)
_add("setitem_grad", gradient(lambda x, i, y: _written(x, i, y)), X, np.array([1]), ROW)
_add("setitem_overwritten", gradient(lambda x, i, y: _written(x, i, y)), X, np.array([1, 1]), Y)
_add("copy_slices", gradient(_written_view), X, Y[:, :2])
_add("take_slices", gradient(_written_view), X, Y[:, :2])
_add("take_slices_grad", gradient(gradient(_written_view)), X, Y[:, :2])

# --- Products -----------------------------------------------------------------------------------

_add("matmul", flow.matmul, X, Y.T)
_add("matmul", flow.matmul, CUBE, CUBE.transpose(0, 2, 1))
_add("matmul_nt", gradient(flow.matmul), X, Y.T)
_add("matmul_nt", F.linear, X, Y, np.array([0.5, -0.25]))
_add("matmul_tn", gradient(flow.matmul), X, Y.T)
_add("dot", flow.dot, ROW, Y[0])
_add("contract", lambda x, y: flow.einsum("ij,kj->ik", x, y), X, Y)
_add("conv", F.conv2d, IMAGE, WEIGHT, ROW)
_add("conv", lambda x, w: F.conv1d(x, w, stride=2, padding=1), CUBE, CUBE[:, :, :2])
_add("conv_input_grad", gradient(F.conv2d), IMAGE, WEIGHT)
_add("conv_weight_grad", gradient(F.conv2d), IMAGE, WEIGHT)

# --- Windows, normalization, losses -------------------------------------------------------------

_add("avg_pool", lambda x: F.avg_pool2d(x, 2), IMAGE)
_add("avg_pool_grad", gradient(lambda x: F.avg_pool2d(x, 2)), IMAGE)
_add("max_pool", lambda x: F.max_pool2d(x, 2), IMAGE)
_add("plane_put", gradient(lambda x: F.max_pool2d(x, 2)), IMAGE)
_add("plane_take", gradient(gradient(lambda x: F.max_pool2d(x, 2))), IMAGE)
_add("adaptive_avg_pool", lambda x: F.adaptive_avg_pool2d(x, 3), IMAGE)
_add("adaptive_avg_pool_grad", gradient(lambda x: F.adaptive_avg_pool2d(x, 3)), IMAGE)
_add("adaptive_max_pool", lambda x: F.adaptive_max_pool2d(x, 3), IMAGE)


def _batch_norm(x: flow.Tensor, weight: flow.Tensor, bias: flow.Tensor) -> Any:
    mean, var = flow.zeros_like(bias), flow.ones_like(bias)
    y = F.batch_norm(x, mean.detach(), var.detach(), weight, bias, training=True)
    return y, mean, var


_add("batch_norm", _batch_norm, X, ROW, Y[0])
_add("update_running", _batch_norm, X, ROW, Y[0])
_add("layer_norm", lambda x, w, b: F.layer_norm(x, (3,), w, b), X, ROW, Y[0])
_add("rms_norm", lambda x, w: F.rms_norm(x, (3,), w), X, ROW)
_add("standardize", lambda x: F.layer_norm(x, (3,)), X)
_add("standardize_grad", gradient(lambda x: F.layer_norm(x, (3,))), X)
_add("huber", F.smooth_l1_loss, X, Y)
_add("huber_grad", gradient(F.smooth_l1_loss), X, Y)
_add("bce_with_logits", F.binary_cross_entropy_with_logits, X, SHARE, grads=(0,))
_add("binary_cross_entropy", F.binary_cross_entropy, SHARE, SHARE[::-1], grads=(0,))
_add("nll_loss", F.nll_loss, X, PICK)
_add("nll_loss_grad", gradient(F.nll_loss), X, PICK)
_add("least_variance", lambda x, y, v: F.gaussian_nll_loss(x, y, v), X, Y, POSITIVE)

# --- Creation -----------------------------------------------------------------------------------


def _made(make: Call) -> Call:
    """Return a call that adds what `make` creates to its input."""
    return lambda x: x + make(dtype=x.dtype, device=x.device)


def _fill_constant(**attrs: Any) -> flow.Tensor:
    return dispatch(op_expr("fill_constant"), (), attrs)


_add("arange", _made(lambda **to: flow.arange(3, **to)), X)
_add("linspace", _made(lambda **to: flow.linspace(0, 1, 3, **to)), X)
_add("eye", _made(lambda **to: flow.eye(2, 3, **to)), X)
_add("full", _made(lambda **to: flow.full((3,), 2.5, **to)), X)
_add("fill_constant", _made(lambda **to: _fill_constant(shape=(3,), value=2.5, **to)), X)
_add("empty", _made(lambda **to: flow.empty(3, **to).fill_(2.5)), X)
_add("random_uniform", _made(lambda **to: flow.rand(3, **to)), X)
_add("random_normal", _made(lambda **to: flow.randn(3, **to)), X)
_add("random_integers", _made(lambda **to: flow.randint(0, 9, (3,), **to)), X)
_add("random_permutation", _made(lambda **to: flow.randperm(3, **to)), X)
_add("dropout_mask", lambda x: F.dropout(x, 0.5), WIDE)
_add("bernoulli", flow.bernoulli, SHARE, grads=())
_add("bernoulli_", lambda x: (x * 1).bernoulli_(0.5) + x, WIDE)
_add("uniform_", lambda x: (x * 1).uniform_() + x, X)
_add("normal_", lambda x: (x * 1).normal_() + x, X)
_add("trunc_normal_", lambda x: flow.nn.init.trunc_normal_(x.detach().clone()) + x, X)
_add("orthogonal_", lambda x: flow.nn.init.orthogonal_(x.detach().clone()) + x, X)

# --- Optimizer updates: the options are 0-d and float64 -----------------------------------------


def _options(like: flow.Tensor, *values: float) -> list[flow.Tensor]:
    return [flow.full((), value, dtype=flow.float64, device=like.device) for value in values]


def _sgd(param: flow.Tensor, grad: flow.Tensor) -> Any:
    param, buffer = param.clone(), flow.zeros_like(grad)
    lr, momentum, decay = _options(param, 0.5, 0.9, 0.125)
    for _ in range(2):
        sgd_update(param, grad, buffer, None, lr, momentum, None, decay, nesterov=True)
    return param, buffer


def _adam(param: flow.Tensor, grad: flow.Tensor) -> Any:
    param, mean, square = param.clone(), flow.zeros_like(grad), flow.zeros_like(grad)
    step, *options = _options(param, 0.0, 0.5, 0.9, 0.99, 1e-8, 0.125)
    for _ in range(2):
        adam_update(param, grad, mean, square, None, step, *options)
    return param, mean, square, step


_add("sgd_update", _sgd, X, Y, grads=())
_add("adam_update", _adam, X, Y, grads=())

# --- Control flow: plain Python, and ops while a Program is captured ------------------------------


def _while_loop(x: flow.Tensor) -> Any:
    first = flow.zeros((), dtype=flow.int64, device=x.device)
    return flow.static.nn.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [first, x])


def _switch_case(x: flow.Tensor, i: flow.Tensor) -> Any:
    return flow.static.nn.switch_case(i[0], {0: lambda: x * 2, 2: x.exp}, x.neg)


_add("cond", lambda x: flow.static.nn.cond(x[0, 0] > 0, lambda: x * 2, x.exp), X)
_add("switch_case", _switch_case, X, PICK)
_add("while_loop", _while_loop, X)
_add("while_loop_grad", gradient(_while_loop), X)
for _name in "cond switch_case while_loop while_loop_grad".split():
    SAMPLES[_name] = [attrs.evolve(_sample, control_flow=True) for _sample in SAMPLES[_name]]
