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
from oneflow_lite.distributed.collectives import run
from oneflow_lite.distributed.process_group import _alone
from oneflow_lite.distributions import VonMises
from oneflow_lite.functors import optim as updates
from oneflow_lite.functors.optim import adam_update, sgd_update
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.ops.exposure import ROOMS, load_all
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import KERNELS
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
    """Return the names of all registered ops of the package.

    Without `fused`, `joined` and `placed`, which passes write, those of global tensors, which are
    never recorded (tests/distributed/cases_global.py), and those of DistributedDataParallel's
    hooks (tests/distributed/cases_training.py), and those on the border of a transform, which no
    kernel runs (tests/transforms).
    """
    for room in ROOMS:
        load_all(room)
    apart = "fused joined placed local_to_global global_to_local global_to_global".split()
    apart += ["gradient_arrived", "gradient_reduced_"]
    apart += "enter_batch leave_batch sum_batch enter_jet leave_jet".split()
    names = [name for name in KERNELS if name not in apart]
    return sorted(name for name in names if all(map(_is_ours, _kernels(name))))


def _kernels(op: str) -> list[Any]:
    return list(KERNELS.get(op).by_device.values())


def _is_ours(kernel: Any) -> bool:
    """Return whether a kernel is the library's own; tests of other files register some, too."""
    return str(kernel.__module__).startswith("oneflow_lite.")


def samples(op: str, device: str = "cpu") -> list[Sample]:
    """Return the samples of an op that run with their inputs on this device."""
    found = SAMPLES.get(op) or samples_of(op, _kernels(op)[0].__module__.rpartition(".")[2])
    return [sample for sample in found if device == "cuda" or not sample.needs_cuda]


X = np.array([[-1.75, 0.375, 2.25], [1.25, -0.625, 3.125]])
Y = np.array([[1.125, -0.75, 0.875], [-2.25, 1.625, 0.8125]])
ROW = np.array([0.625, -1.3125, 2.1875])
SHARE = np.array([[0.125, 0.5, 0.6875], [0.3125, 0.8125, 0.4375]])
WIDE = np.array([[-4.5, -2.75, -0.625, 0.3125], [0.875, 1.75, 2.875, 5.25]])
WEIGHT = np.cos(np.arange(12.0)).reshape(3, 4)
INDEX = np.array([[0, 2, 1], [2, 0, 0]])
PICK = np.array([2, 0])

# --- Python values, options of little use, devices ------------------------------------------------

_add("allclose", lambda x, y: x * flow.allclose(x, y), X, Y)
_add("equal", lambda x, y: x * flow.equal(x, y), X, Y)
_add("cast", lambda x: x.to(flow.float16), X)
_add("view_dtype", lambda x: x.view(flow.int64), X)
SAMPLES["view_dtype"].pop()  # 8 bytes are read as 8 bytes
_multiply = functools.partial(flow.scatter, dim=1, reduce="multiply")
_add("scatter_multiply", lambda x, i, y: _multiply(x, index=i, src=y), X, INDEX, Y, grads=())
_add(
    "embedding_scale",
    gradient(lambda i, w: F.embedding(i, w, padding_idx=1, scale_grad_by_freq=True)),
    *(INDEX, WEIGHT),
)
SAMPLES["to_device"] = [Sample("to_device", lambda x: x.to("cpu"), (X,), (0,), needs_cuda=True)]


def _batch_norm(x: flow.Tensor, weight: flow.Tensor, bias: flow.Tensor) -> Any:
    mean, var = flow.zeros_like(bias), flow.ones_like(bias)
    y = F.batch_norm(x, mean.detach(), var.detach(), weight, bias, training=True)
    return y, mean, var


_add("update_running", _batch_norm, X, ROW, Y[0])
_add("batch_norm", _batch_norm, X, ROW, Y[0])

# --- Cross entropy over many classes --------------------------------------------------------------


def _row_losses(op: str) -> Call:
    attributes = {"ignore_index": -100, "label_smoothing": 0.25}
    return lambda *inputs: dispatch(op_expr(op), (*inputs, None), attributes)[0]


for _name, _inputs in (
    ("cross_entropy_rows", (X, PICK)),
    ("linear_cross_entropy_rows", (X, WEIGHT.reshape(4, 3), WIDE[0], PICK)),
):
    _add(_name, _row_losses(_name), *_inputs)
    _add(f"{_name}_grad", gradient(_row_losses(_name)), *_inputs)

# --- Recurrent layers: their gradients are ops where nobody differentiates them again -------------


def _last_gradient(forward: Call) -> Call:
    """Return a call of the gradients of `forward`, which cannot be differentiated, and of x."""

    def call(x: flow.Tensor, *others: flow.Tensor) -> tuple[flow.Tensor, ...]:
        inputs = [y for y in (x, *others) if y.requires_grad]
        total = sum(part.square().sum() for part in floats(forward(x, *others)))
        return *flow.autograd.grad(total, inputs), x * 2

    return call


_STATE, _RECURRENT = np.array([[0.5, -0.25], [0.75, 0.125]]), np.sin(np.arange(40.0)).reshape(8, 5)
for _kind, _rows in (("lstm", 8), ("gru", 6), ("rnn_tanh", 2)):
    _cell, _pair = getattr(flow, f"{_kind}_cell"), _kind == "lstm"
    _add(
        f"{_kind.partition('_')[0]}_layer_grad",
        _last_gradient(
            lambda x, h, w, u, cell=_cell, pair=_pair: cell(x, (h, h * 2) if pair else h, w, u)
        ),
        *(X, _STATE, _RECURRENT[:_rows, :3], _RECURRENT[:_rows, 3:]),
    )

# --- Attention: likewise --------------------------------------------------------------------------

_HEADS = np.sin(np.arange(24.0)).reshape(1, 2, 4, 3)
_add(
    "attention_grad",
    _last_gradient(lambda q, k, v: F.scaled_dot_product_attention(q, k, v)),
    *(_HEADS, _HEADS * 2, _HEADS + 1),
)
_DROPOUT, _SEED = op_expr("attention_dropout"), np.array([7, 11])
_DROPPED = {"keys": 4, "dropout_p": 0.5, "dtype": np.dtype(np.float64)}
_add(
    "attention_dropout",
    lambda x, seed: x * dispatch(_DROPOUT, (seed,), {"shape": (1, 2, 4), **_DROPPED}).to(x.dtype),
    *(np.ones((1, 2, 4, 4)), _SEED),
)

# --- Indexing with brackets -----------------------------------------------------------------------

_add("getitem", lambda x: x[:, 1:] * 2, X)
_add("getitem_advanced", lambda x, i: x[i, :2], X, np.array([1, 0, 1]))
_add("getitem_grad", gradient(lambda x: x[:, 1:]), X)
_add("getitem_advanced_grad", gradient(lambda x, i: x[i]), X, np.array([1, 0, 1]))

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


def _gamma_tail(*inputs: flow.Tensor) -> Any:
    return dispatch(op_expr("gamma_tail"), inputs, {"n": 1})


def _beta_tail(*inputs: flow.Tensor) -> Any:
    return dispatch(op_expr("beta_tail"), inputs, {"n": 1, "m": 0})


def _over_gaps(x: flow.Tensor, gaps: flow.Tensor) -> Any:
    return dispatch(op_expr("over_gaps"), (x, gaps, gaps.detach(), None), {})


_add("over_gaps", _over_gaps, np.ones((2, 2)), np.array([[1.0, 3.0], [-3.0, 1.0]]))
_add("gamma_tail", _gamma_tail, SHARE * 3, SHARE)
_add("gamma_slope", lambda *inputs: dispatch(op_expr("gamma_slope"), inputs, {}), SHARE * 3, SHARE)
_add("beta_tail", _beta_tail, SHARE * 3, SHARE + 1, SHARE)
_add(
    "beta_slope",
    lambda *inputs: dispatch(op_expr("beta_slope"), inputs, {}),
    SHARE,
    SHARE + 1,
    SHARE,
)
_add("_von_mises", lambda x: VonMises(0 * x, x).sample(), SHARE, grads=())
_add("check_values", lambda x: flow.distributions.Poisson(x).rate, SHARE)
_add("dropout_mask", lambda x: F.dropout(x, 0.5), WIDE)
_add("bernoulli", flow.bernoulli, SHARE, grads=())
_add("bernoulli_", lambda x: (x * 1).bernoulli_(0.5) + x, WIDE)
_add("uniform_", lambda x: (x * 1).uniform_() + x, X)
for _name in "random_ exponential_ log_normal_ cauchy_".split():
    _add(_name, lambda x, name=_name: getattr(x * 1, name)() + x, X)
_add("geometric_", lambda x: (x * 1).geometric_(0.5) + x, X)
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
UPDATE_OPTIONS = {
    "lr": 0.5, "eps": 1e-3, "weight_decay": 0.125, "momentum": 0.5, "beta1": 0.5, "beta2": 0.75,
    "rho": 0.5, "alpha": 0.5, "lr_decay": 0.5, "momentum_decay": 0.5, "etaminus": 0.5,
    "etaplus": 1.5, "step_size_min": 0.25, "step_size_max": 2.0, "lambd": 0.5, "t0": 1.0,
    "beta2_decay": -0.5, "eps1": 1e-3, "eps2": 1e-3, "d": 1.0,
}  # fmt: skip
UPDATE_NUMBERS = {"step": 0.0, "mu_product": 1.0, "mu": 1.0, "eta": 0.5}


def _stepped(name: str) -> Call:
    """Return two steps of an update, with all options and state."""
    update = getattr(updates, name)

    def run(param: flow.Tensor, grad: flow.Tensor) -> Any:
        inputs: list[flow.Tensor | None] = [param.clone(), grad]
        for key in op_expr(name).schema.inputs[2:]:
            if key in UPDATE_OPTIONS or key in UPDATE_NUMBERS:
                inputs += _options(param, (UPDATE_OPTIONS | UPDATE_NUMBERS)[key])
            elif key == "variance":
                inputs.append(None)  # of vectors; of a matrix there are
            else:
                means = {"row_var": grad[:, :1], "col_var": grad[:1]}
                inputs.append(flow.zeros_like(means.get(key, grad)))
        for _ in range(2):
            update(*inputs)
        return tuple(x for x in inputs if x is not None and x is not grad)

    return run


UPDATES = [name for name in vars(updates) if name.endswith("_update") and name != "_update"]
for _name in UPDATES:
    if _name not in SAMPLES:
        _add(_name, _stepped(_name), X, Y, grads=())

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

# --- Collectives, in a group of one process -------------------------------------------------------

ALONE = _alone()


def _collective(op: str, **attributes: Any) -> Call:
    written = bool(op_expr(op).schema.mutates)
    return lambda x: run(op, x * 1 if written else x, group=ALONE, **attributes)


def _sent_and_received(x: flow.Tensor) -> flow.Tensor:
    sent = run("send_to", x * 2, dst=0, tag=1, group=ALONE)
    return run("receive_from_", flow.zeros_like(x), src=0, tag=1, group=ALONE) + sent


for _name in ("all_reduce", "all_reduce_"):
    _add(_name, _collective(_name, reduction="sum"), X)
    _add(_name, _collective(_name, reduction="avg"), X)
for _name in ("reduce_to", "reduce_to_"):
    _add(
        _name, _collective(_name, reduction="sum", dst=0), X, grads=() if _name[-1] == "_" else (0,)
    )
for _name in ("broadcast_from", "broadcast_from_"):
    _add(_name, _collective(_name, src=0), X)
for _name in ("all_gather", "barrier"):
    _add(_name, _collective(_name), X, grads=() if _name == "barrier" else (0,))
_add("gather_to", _collective("gather_to", dst=0), X)
_add("scatter_from", _collective("scatter_from", src=0), X[:1])
_add("reduce_scatter", _collective("reduce_scatter", reduction="sum"), X[:1])
_add("all_to_all", _collective("all_to_all", sent=(2,), got=(2,)), X)
for _name in ("send_to", "receive_from_"):
    _add(_name, _sent_and_received, X, grads=())
