"""Recurrent layers and cells for users; each layer is a product and an op over all steps."""

from __future__ import annotations

from typing import Any

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, DTypeError, arg_error
from oneflow_lite.functors.declaring.checks import check_ndim, check_tensor, real_floating
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import Flag, FloatingOrComplex
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor

# Of each kind: the op, the numbers of gates and states, the op's attributes, and words for help().
KINDS: dict[str, tuple[str, int, int, dict[str, str], str]] = {
    "lstm": ("lstm_layer", 4, 2, {}, "long short-term memories"),
    "gru": ("gru_layer", 3, 1, {}, "gated recurrent units"),
    "rnn_tanh": ("rnn_layer", 1, 1, {"nonlinearity": "tanh"}, "plain recurrent layers with tanh"),
    "rnn_relu": ("rnn_layer", 1, 1, {"nonlinearity": "relu"}, "plain recurrent layers with relu"),
}
_NETWORK = """Run {0} over a sequence; return the results and the last states.

input: (T, N, features), or (N, T, features) with `batch_first`.
hx: the first states, (layers · directions, N, hidden): h, or a list of h and c.
params: w_ih, w_hh, b_ih, b_hh of each layer and direction in a row; the biases only if
  `has_biases`. An LSTM whose h is narrower than its c has w_hr behind them.
dropout: the probability with which results of all layers but the last become 0, if `train`.
ArgumentError: when states or weights are too few or too many.
ShapeError: when a shape does not fit.

The rows of a packed sequence are followed by its batch sizes, and `batch_first` is left out then.
"""
_CELL = """Run one step of {0}; return the new states.

input: (N, features).
hx: (N, hidden): h, or a pair of h and c.
w_ih, w_hh, b_ih, b_hh: {1} · hidden rows each.
ShapeError: when a shape does not fit.
"""


def _states(op: str, count: int, hx: Any) -> list[Tensor]:
    """Return the states as a list; a single state comes without a sequence."""
    states = list(hx) if count > 1 and isinstance(hx, (list, tuple)) else [hx]
    if len(states) != count:
        raise arg_error(
            op, "hx", "a list of h and c", type(hx).__name__, "pass both", ArgumentError
        )
    return [check_tensor(op, "hx", state) for state in states]


def _layer(op: str, kind: str, x: Any, sizes: Any, states: Any, given: Any, reverse: bool) -> Any:
    """Run a layer in one direction over (T, N, features) or packed rows; return y and states."""
    name, gates, count, attrs, _ = KINDS[kind]
    w_ih, w_hh, b_ih, b_hh, w_hr = given
    if kind == "rnn_relu":
        real_floating(op, x)
    size, hidden = states[0].shape[-1], states[-1].shape[-1]
    rows, batch = gates * hidden, x.shape[1] if sizes is None else len(states[0])
    shapes = [(rows, x.shape[-1]), (rows, size), (rows,), (rows,), (size, hidden)]
    shapes += [(batch, size), (batch, hidden)]
    names = ("w_ih", "w_hh", "b_ih", "b_hh", "w_hr", "hx", "hx")
    for label, value, shape in zip(names, (*given, *states), shapes, strict=False):
        if value is not None and check_tensor(op, label, value).shape != shape:
            raise arg_error(op, label, f"shape {shape}", value, "match input, states and weights")
        if value is not None and value._data.dtype != x._data.dtype:
            raise arg_error(
                op, label, f"dtype {x.dtype}", value.dtype, "use .to(dtype)", DTypeError
            )
    if w_hr is None and size != hidden:
        raise arg_error(op, "hx", "h as wide as c without w_hr", states[0], "match h and c")
    # A GRU's b_hh stays apart: its part for the new state is multiplied by the reset gate.
    both = kind != "gru" and b_ih is not None and b_hh is not None
    bias = b_ih + b_hh if both else b_ih if b_ih is not None or kind == "gru" else b_hh
    extra = (w_hr,) if kind == "lstm" else (b_hh,) if kind == "gru" else ()
    # The input's part of all steps is one product; the op has the products with the states.
    inputs = F.linear(x, w_ih, bias), *states, w_hh, *extra, sizes
    y, *outputs = dispatch(op_expr(name), inputs, {"reverse": reverse, **attrs})
    return y, *outputs[:count]  # the rest is kept for the gradient


def _declare(kind: str) -> None:
    """Declare the functions of a kind: the network, and the cell, a step of a layer."""
    _, gates, count, _, says = KINDS[kind]

    def network(
        input: FloatingOrComplex, hx: Any, params: Any, has_biases: Any, num_layers: Any,
        dropout: Any, train: Any, bidirectional: Flag, batch_first: Flag,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        sizes = None
        if isinstance(hx, Tensor) and hx._data.dtype.kind == "i":
            sizes, hx, params, has_biases, num_layers = hx, params, has_biases, num_layers, dropout
            dropout, train, bidirectional, batch_first = train, bidirectional, batch_first, False
        states, directions = _states(kind, count, hx), 1 + bidirectional
        lines, projected = num_layers * directions, states[0].shape[-1] != states[-1].shape[-1]
        per = 2 + 2 * bool(has_biases) + projected
        if len(params) != lines * per or any(len(state) != lines for state in states):
            expected = f"{lines * per} weights for {lines} states"
            got, hint = f"{len(params)} for {len(states[0])}", "pass all of them"
            raise arg_error(kind, "params", expected, got, hint, ArgumentError)
        if input.ndim != (3 if sizes is None else 2):
            raise arg_error(kind, "input", "3 dimensions, or 2 if packed", input, "unsqueeze it")
        x, lasts = input.transpose(0, 1) if batch_first else input, []
        firsts = list(zip(*[state.unbind(0) for state in states], strict=True))
        for k in range(0, lines, directions):
            ys = []
            for d in range(directions):
                w = [*params[(k + d) * per : (k + d + 1) * per], None]
                w = w if has_biases else [*w[:2], None, None, *w[2:]]
                y, *last = _layer(kind, kind, x, sizes, firsts[k + d], w[:5], d == 1)
                ys.append(y)
                lasts.append(last)
            x = F.cat(ys, -1) if directions == 2 else ys[0]
            if dropout and train and k + directions < lines:
                x = F.dropout(x, dropout)
        x = x.transpose(0, 1) if batch_first else x
        x = x if directions == 2 else x.clone()  # users may write into it: the op keeps its own
        return x, *[F.stack(each) for each in zip(*lasts, strict=True)]

    def cell(
        input: FloatingOrComplex, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
        b_hh: Tensor | None = None,
    ) -> Any:  # fmt: skip
        op, weights = f"{kind}_cell", (w_ih, w_hh, b_ih, b_hh, None)
        check_ndim(op, input, (2,))
        x, states = input.unsqueeze(0), _states(op, count, hx)
        _, *new = _layer(op, kind, x, None, states, weights, False)
        return tuple(new) if count > 1 else new[0]

    hx, rows = "[unit({0}), unit({0})]" if count > 1 else "unit({0})", gates * 2
    one = f"unit({rows}, 3), unit({rows}, 2), unit({rows}), unit({rows})"
    samples = f"""unit(3, 2, 3), {hx.format("1, 2, 2")}, [{one}], True, 1, 0.0, False, False, False
        unit(2, 2, 3), {hx.format("2, 2, 2")}, [{one}, {one}], True, 1, 0.0, True, True, True
        unit(5, 3), fixed([2, 2, 1]), {hx.format("1, 2, 2")}, [{one}], True, 1, 0.0, False, False"""
    network.__name__, network.__doc__ = kind, _NETWORK.format(says)
    functor("flow", samples=samples)(network)
    cell.__name__, cell.__doc__ = f"{kind}_cell", _CELL.format(says, gates)
    result = "Tensor" if count == 1 else "tuple[Tensor, Tensor]"
    functor("flow", samples=f"unit(2, 3), {hx.format('2, 2')}, {one}", results=result)(cell)


for _kind in KINDS:
    _declare(_kind)
