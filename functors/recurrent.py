"""Recurrent layers and cells: what users call; each layer is a product and an op over all steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite.autograd.gradients import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, DTypeError
from oneflow_lite.functors.checks import check_tensor, real_floating, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import Flag, FloatingOrComplex
from oneflow_lite.interpreter import dispatch
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

# What there is of each kind: its op, gates and states, and the attributes of the op.
KINDS: dict[str, tuple[str, int, int, dict[str, str]]] = {
    "lstm": ("lstm_layer", 4, 2, {}),
    "gru": ("gru_layer", 3, 1, {}),
    "rnn_tanh": ("rnn_layer", 1, 1, {"nonlinearity": "tanh"}),
    "rnn_relu": ("rnn_layer", 1, 1, {"nonlinearity": "relu"}),
}
_NETWORK = """Run {0} over a sequence; return the results and the last states.

input: (T, N, features), or (N, T, features) with `batch_first`.
hx: the first states, (layers directions, N, hidden): h, or a list of h and c.
params: w_ih, w_hh, b_ih, b_hh of each layer and direction in a row; the biases only if
  `has_biases`. An LSTM whose h is narrower than its c has w_hr behind them.
dropout: with which probability results of all layers but the last are set to 0, if `train`.
ArgumentError: when there are too few or too many states or weights.
ShapeError: when a shape does not fit.

The rows of a packed sequence are followed by its batch sizes, and `batch_first` is left out then.
"""
_CELL = """Run one step of {0}; return the new states.

input: (N, features).
hx: (N, hidden): h, or a pair of h and c.
w_ih, w_hh, b_ih, b_hh: {1} hidden rows each.
ShapeError: when a shape does not fit.
"""


def _check(op: str, name: str, value: Any, like: Tensor, *shape: int) -> None:
    if check_tensor(op, name, value).shape != shape:
        raise wrong(op, name, f"shape {shape}", value, "match input, states and weights")
    if value.dtype != like.dtype:
        expected, mend = f"dtype {like.dtype}, that of the input", "convert one with .to(dtype)"
        raise wrong(op, name, expected, value.dtype, mend, DTypeError)


def _states(op: str, kind: str, hx: Any) -> list[Tensor]:
    """Return the states as a list."""
    found = list(hx) if isinstance(hx, (list, tuple)) else [hx]
    count = KINDS[kind][2]
    if len(found) != count or isinstance(hx, Tensor) != (count == 1):
        expected, mend = ("a pair of h and c", "pass both") if count > 1 else ("h", "pass it alone")
        raise wrong(op, "hx", expected, f"{type(hx).__name__} of {len(found)}", mend, ArgumentError)
    return [check_tensor(op, "hx", state) for state in found]


def _layer(
    op: str, kind: str, x: Tensor, sizes: Tensor | None, states: Sequence[Tensor], weights: Any,
    reverse: bool = False,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Run one layer in one direction over (T, N, features) or packed rows; return y and states."""
    name, gates, count, attrs = KINDS[kind]
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    if kind == "rnn_relu":
        real_floating(op, x)
    size, hidden = states[0].shape[-1], states[-1].shape[-1]
    _check(op, "w_ih", w_ih, x, gates * hidden, x.shape[-1])
    _check(op, "w_hh", w_hh, x, gates * hidden, size)
    for label, bias in (("b_ih", b_ih), ("b_hh", b_hh)):
        if bias is not None:
            _check(op, label, bias, x, gates * hidden)
    if w_hr is not None:
        _check(op, "w_hr", w_hr, x, size, hidden)
    elif size != hidden:
        raise wrong(op, "hx", "h as wide as c without w_hr", states[0], "match h and c")
    for state, width in zip(states, (size, hidden), strict=False):
        _check(op, "hx", state, x, len(states[0]) if sizes is not None else x.shape[1], width)
    if kind == "gru":
        bias, others = b_ih, (b_hh,)
    else:
        bias = b_hh if b_ih is None else b_ih if b_hh is None else b_ih + b_hh
        others = (w_hr,) if kind == "lstm" else ()
    given = F.linear(x, w_ih, bias).reshape(-1, gates * hidden)
    attrs = {"reverse": reverse, **attrs}
    y, *found = dispatch(op_expr(name), (given, *states, w_hh, *others, sizes), attrs)
    return y.reshape(*x.shape[:-1], size), *found[:count]


def _declare(kind: str, says: str, on: str = "flow") -> None:
    """Declare the functions of a kind: of networks, and of one step of one layer."""

    def network(
        input: FloatingOrComplex, hx: Any, params: Any, has_biases: Any, num_layers: Any, dropout: Any,
        train: Any, bidirectional: Flag, batch_first: Flag,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        sizes = None
        if isinstance(hx, Tensor) and hx.dtype.kind == "i":
            sizes, hx, params, has_biases, num_layers = hx, params, has_biases, num_layers, dropout
            dropout, train, bidirectional, batch_first = train, bidirectional, batch_first, False
        states, directions = _states(kind, kind, hx), 1 + bidirectional
        projected = len(states) == 2 and states[0].shape[-1] != states[1].shape[-1]
        per = 2 + 2 * bool(has_biases) + projected
        if len(params) != num_layers * directions * per:
            expected = f"{num_layers * directions * per} weights for {num_layers} layer(s)"
            raise wrong(kind, "params", expected, len(params), "pass all of them", ArgumentError)
        for state in states:
            _check(kind, "hx", state, input, num_layers * directions, *state.shape[1:])
        if input.ndim != (3 if sizes is None else 2):
            expected = "3 dimensions, or 2 if packed"
            raise wrong(kind, "input", expected, input, "unsqueeze a single sequence")
        x, firsts, lasts = input.transpose(0, 1) if batch_first else input, [], []
        firsts = list(zip(*[state.unbind(0) for state in states], strict=True))
        for k in range(0, len(firsts), directions):
            ys = []
            for d in range(directions):
                w = list(params[(k + d) * per : (k + d + 1) * per])
                biases = w[2:4] if has_biases else [None, None]
                weights = (*w[:2], *biases, w[-1] if projected else None)
                y, *last = _layer(kind, kind, x, sizes, firsts[k + d], weights, d == 1)
                ys.append(y)
                lasts.append(last)
            x = F.cat(ys, -1) if directions == 2 else ys[0]
            if dropout and train and k + directions < len(firsts):
                x = F.dropout(x, dropout)
        x = x if directions == 2 else x.clone()  # users may write into it: the op keeps its own
        x = x.transpose(0, 1) if batch_first else x
        return x, *[F.stack(each) for each in zip(*lasts, strict=True)]

    def cell(
        input: FloatingOrComplex, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
        b_hh: Tensor | None = None,
    ) -> Any:  # fmt: skip
        op = f"{kind}_cell"
        if input.ndim != 2:
            raise wrong(op, "input", "2 dimensions", input, "unsqueeze a single sample")
        weights = (w_ih, w_hh, b_ih, b_hh, None)
        _, *new = _layer(op, kind, input.unsqueeze(0), None, _states(op, kind, hx), weights)
        return tuple(new) if len(new) > 1 else new[0]

    gates, hx, rows = KINDS[kind][1], "[unit({0}), unit({0})]", KINDS[kind][1] * 2
    hx = hx if KINDS[kind][2] == 2 else "unit({0})"
    one = f"unit({rows}, 3), unit({rows}, 2), unit({rows}), unit({rows})"
    two = f"{one}, {one}, {one.replace('3', '4')}, {one.replace('3', '4')}"
    samples = f"""unit(3, 2, 3), {hx.format("1, 2, 2")}, [{one}], True, 1, 0.0, False, False, False
        unit(2, 3, 3), {hx.format("4, 2, 2")}, [{two}], True, 2, 0.0, True, True, True
        unit(5, 3), fixed([2, 2, 1]), {hx.format("1, 2, 2")}, [{one}], True, 1, 0.0, False, False"""
    network.__name__, network.__doc__ = kind, _NETWORK.format(says)
    functor("flow", samples=samples)(network)
    cell.__name__, cell.__doc__ = f"{kind}_cell", _CELL.format(says, gates)
    functor("flow", samples=f"unit(2, 3), {hx.format('2, 2')}, {one}")(cell)


_declare("lstm", "long short-term memories")
_declare("gru", "gated recurrent units")
_declare("rnn_tanh", "plain recurrent layers with tanh")
_declare("rnn_relu", "plain recurrent layers with relu")
