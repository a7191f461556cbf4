"""Recurrent networks, and the cells that do one of their steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from oneflow_lite.arrays.device import DeviceLike
from oneflow_lite.arrays.dtype import DTypeLike
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, ShapeError, arg_error
from oneflow_lite.functors.declaring.checks import check_choice, check_int, check_number
from oneflow_lite.nn import init
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.factory import check_layers, parameter
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.nn.utils.rnn import PackedSequence
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.tensor import Tensor

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """The common base of RNN, LSTM and GRU.

    Parameters
    ----------
    mode : {"LSTM", "GRU", "RNN_TANH", "RNN_RELU"}
        The kind of network.
    input_size, hidden_size : int
        Features of the input and of the states.
    num_layers : int
        Layers, each of which takes the results of the layer before it.
    bias : bool
        Whether the layers have biases.
    batch_first : bool
        Whether input and results are (N, T, features) rather than (T, N, features).
    dropout : float
        The probability with which results of all layers but the last are set to 0 in training.
    bidirectional : bool
        Whether each layer runs in both directions; the results stand side by side.
    proj_size : int
        Features of an LSTM's h, if it is to be projected.
    device, dtype : optional
        Of the parameters.

    Notes
    -----
    The parameters of layer 0 are `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, `bias_hh_l0` and
    `weight_hr_l0`, with `_reverse` behind them for the other direction; they start uniformly
    between -1/sqrt(hidden_size) and 1/sqrt(hidden_size).

    A layer is one op for each direction, and so is its gradient. Where the gradient is to be
    differentiated again (`create_graph=True`), the layer is run once more, step by step.
    `flow.compile` and Programs take both kinds of ops. With packed sequences, whose sizes are read,
    compiled code stays eager.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        op = type(self).__name__
        self.mode = check_choice(op, "mode", mode, tuple(_GATES))
        self.input_size = check_int(op, "input_size", input_size, 1)
        self.hidden_size = check_int(op, "hidden_size", hidden_size, 1)
        self.num_layers = num_layers = check_layers(op, num_layers, 1)
        for name, flag in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(flag, bool):  # a word is as true as True
                raise arg_error(op, name, "a bool", repr(flag), "name it", ArgumentTypeError)
        self.bias = bias
        self.batch_first = batch_first
        if isinstance(dropout, bool) or not 0 <= check_number(op, "dropout", dropout) <= 1:
            expected, hint = "a probability from 0 to 1", "pass the share to drop"
            raise arg_error(op, "dropout", expected, dropout, hint, ArgumentError)
        if dropout and num_layers == 1:
            warn_caller(
                f"{op}(): dropout={dropout} comes behind all layers but the last, and there is one"
            )
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = check_int(op, "proj_size", proj_size, 0)
        if proj_size and (mode != "LSTM" or proj_size >= hidden_size):
            expected = f"less than hidden_size = {hidden_size}, and that for an LSTM"
            raise arg_error(op, "proj_size", expected, proj_size, "leave it out", ArgumentError)
        self._all_weights: list[list[str]] = []
        rows, directions = _GATES[mode] * hidden_size, 2 if bidirectional else 1
        size = proj_size or hidden_size
        for layer in range(num_layers):
            for suffix in (f"_l{layer}", f"_l{layer}_reverse")[:directions]:
                features = size * directions if layer else input_size
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (rows, features),
                    "weight_hh": (rows, size),
                    **({"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}),
                    **({"weight_hr": (proj_size, hidden_size)} if proj_size else {}),
                }
                for name, shape in shapes.items():
                    setattr(self, name + suffix, parameter(shape, device, dtype))
                self._all_weights.append([name + suffix for name in shapes])
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        _draw(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Do nothing: parameters need not lie in one block here."""

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The parameters, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        return [getattr(self, name) for name in self._flat_weights_names]

    def forward(
        self, input: Tensor | PackedSequence, hx: Tensor | tuple[Tensor, Tensor] | None = None
    ) -> Any:
        """Return the results of all steps, and the last states: h, or (h, c) of an LSTM.

        Parameters
        ----------
        input : Tensor or PackedSequence
            (T, N, input_size), (T, input_size), or with `batch_first` (N, T, input_size). The
            results of packed sequences are packed.
        hx : Tensor or pair of Tensor, optional
            The first states, (layers directions, N, features), or without N; zeros by default.

        Returns
        -------
        Tensor or PackedSequence, Tensor or pair of Tensor
            The results, of the input's shape but for the last dimension, directions times features.
            The last states, of the shapes of the first states.

        Raises
        ------
        ShapeError
            When a shape does not fit.
        ArgumentError
            When the number of dimensions, the dtype or the kind of `hx` does not fit.
        """
        op, packed = type(self).__name__, input if isinstance(input, PackedSequence) else None
        x = input.data if isinstance(input, PackedSequence) else input
        batched = bool(packed) or x.ndim == 3
        if not packed and x.ndim not in (2, 3):
            hint = "unsqueeze or reshape it"
            raise arg_error(op, "input", "2 or 3 dimensions", x, hint, ArgumentError)
        like = self._flat_weights[0]
        if x.dtype != like.dtype:
            expected, hint = f"{like.dtype}, that of the weights", "convert it with .to(dtype)"
            raise arg_error(op, "input", expected, x.dtype, hint, ArgumentError)
        if x.shape[-1] != self.input_size:
            raise arg_error(op, "input", f"{self.input_size} features", x, "match input_size")
        time = int(self.batch_first and batched)
        if not packed and not x.shape[time]:
            raise arg_error(op, "input", "a sequence of at least one step", x, "leave it out")
        x = x if batched else x.unsqueeze(1)
        count = int(packed.batch_sizes[0]) if packed else x.shape[1 - time]
        states = self._states(op, hx, x, count, batched, packed.sorted_indices if packed else None)
        sizes = (packed.batch_sizes.to(x.device),) if packed else ()
        run: Callable[..., Any] = getattr(FUNCTORS_F, self.mode.lower())
        y, *last = run(
            x, *sizes,
            states if len(states) > 1 else states[0], self._flat_weights, self.bias,
            self.num_layers, self.dropout, self.training, self.bidirectional,
            *(() if packed else (bool(time),)),
        )  # fmt: skip
        if packed:
            back = packed.unsorted_indices
            last = last if back is None else [state.index_select(1, back) for state in last]
            y = PackedSequence(y, *packed[1:])
        elif not batched:
            y, last = y.squeeze(1), [state.squeeze(1) for state in last]
        return y, tuple(last) if len(last) > 1 else last[0]

    def _states(
        self, op: str, hx: Any, x: Tensor, count: int, batched: bool, order: Tensor | None
    ) -> list[Tensor]:
        """Check the first states, and return a list of them for the functors."""
        lines = self.num_layers * (2 if self.bidirectional else 1)
        widths = [self.proj_size or self.hidden_size, self.hidden_size]
        shapes = [(lines, count, width) for width in widths[: 1 + (self.mode == "LSTM")]]
        if hx is None:
            return [FUNCTORS_F.zeros(s, dtype=x.dtype, device=x.device) for s in shapes]
        pair = len(shapes) > 1
        given = list(hx) if pair and isinstance(hx, (tuple, list)) else [hx]
        if len(given) != len(shapes) or not all(isinstance(state, Tensor) for state in given):
            expected, got = "a pair (h, c) of tensors" if pair else "a tensor", type(hx).__name__
            raise arg_error(op, "hx", expected, got, "pass what the module returned", ArgumentError)
        for i, (state, shape) in enumerate(zip(given, shapes, strict=True)):
            wanted = shape if batched else (shape[0], shape[2])
            if state.shape != wanted:
                hint = "match input and layers"
                raise arg_error(op, f"hx[{i}]" if pair else "hx", f"shape {wanted}", state, hint)
        if not batched:
            return [state.unsqueeze(1) for state in given]
        return given if order is None else [state.index_select(1, order) for state in given]

    def extra_repr(self) -> str:
        """Return the sizes, and the options that are set."""
        options = {
            "proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0,
            "bidirectional": False,
        }  # fmt: skip
        changed = [(name, getattr(self, name)) for name in options]
        said = [f"{name}={value}" for name, value in changed if value != options[name]]
        return ", ".join([str(self.input_size), str(self.hidden_size), *said])


class RNN(RNNBase):
    """Plain recurrent layers: h ← tanh(W_ih x + b_ih + W_hh h + b_hh), or relu.

    Elman, Finding Structure in Time, 1990. `nonlinearity` is "tanh" or "relu"; all further
    parameters and the weights are as in `RNNBase`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> y, h = flow.nn.RNN(10, 20, num_layers=2)(flow.ones(5, 3, 10))
    >>> y.shape, h.shape
    ((5, 3, 20), (2, 3, 20))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.nonlinearity = check_choice("RNN", "nonlinearity", nonlinearity, ("tanh", "relu"))
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first,
            dropout, bidirectional, proj_size, device, dtype,
        )  # fmt: skip


class _Gated(RNNBase):
    """RNNBase whose mode is the name of the class."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(
            self._kind, input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, proj_size, device, dtype,
        )  # fmt: skip

    _kind: str


class LSTM(_Gated):
    """Long short-term memory: c ← σ(f) c + σ(i) tanh(g), h ← σ(o) tanh(c), projected if asked.

    The gates i, f, g, o are the rows of W_ih x + b_ih + W_hh h + b_hh. Hochreiter and Schmidhuber,
    1997, with the forget gate of Gers et al., 2000. Parameters and weights are those of `RNNBase`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> y, (h, c) = flow.nn.LSTM(10, 20, bidirectional=True)(flow.ones(5, 3, 10))
    >>> y.shape, h.shape
    ((5, 3, 40), (2, 3, 20))
    """

    _kind = "LSTM"


class GRU(_Gated):
    """Gated recurrent units: h ← (1 - σ(z)) n + σ(z) h.

    r, z and n are the rows of W_ih x + b_ih and W_hh h + b_hh, summed, but for the last:
    n = tanh(x_n + σ(r) h_n). Cho et al., 2014. Parameters and weights are those of `RNNBase`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> y, h = flow.nn.GRU(10, 20, batch_first=True)(flow.ones(3, 5, 10))
    >>> y.shape, h.shape
    ((3, 5, 20), (1, 3, 20))
    """

    _kind = "GRU"


class RNNCellBase(Module):
    """The common base of RNNCell, LSTMCell and GRUCell.

    `weight_ih`, `weight_hh`, `bias_ih` and `bias_hh` have `num_chunks` times `hidden_size` rows,
    and start uniformly between -1/sqrt(hidden_size) and 1/sqrt(hidden_size).
    """

    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        op = type(self).__name__
        self.input_size = check_int(op, "input_size", input_size, 0)
        self.hidden_size = check_int(op, "hidden_size", hidden_size, 0)
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = parameter((rows, input_size), device, dtype)
        self.weight_hh = parameter((rows, hidden_size), device, dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, parameter((rows,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        _draw(self, self.hidden_size)

    def _step(self, kind: str, input: Tensor, hx: Any) -> Any:
        """Run a step of this kind, on a batch or on a sample."""
        op, count = type(self).__name__, 1 + (kind == "lstm")
        if input.ndim not in (1, 2):
            hint = "unsqueeze or reshape it"
            raise arg_error(op, "input", "1 or 2 dimensions", input, hint, ArgumentError)
        if input.shape[-1] != self.input_size:
            raise arg_error(op, "input", f"{self.input_size} features", input, "match input_size")
        shape = (*input.shape[:-1], self.hidden_size)
        if hx is None:
            states = [FUNCTORS_F.zeros(shape, dtype=input.dtype, device=input.device)] * count
        else:
            states = list(hx) if count > 1 else [hx]
        for state in states:
            if not isinstance(state, Tensor):
                got, hint = type(state).__name__, "pass what the cell returned"
                raise arg_error(op, "hx", "tensors", got, hint, ArgumentTypeError)
            if state.shape != shape:
                raise arg_error(op, "hx", f"shape {shape}", state, "match the input", ShapeError)
        if input.ndim == 1:
            input, states = input.unsqueeze(0), [state.unsqueeze(0) for state in states]
        run: Callable[..., Any] = getattr(FUNCTORS_F, f"{kind}_cell")
        given = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        after = run(input, states if count > 1 else states[0], *given)
        if len(shape) == 2:
            return after
        return tuple([x.squeeze(0) for x in after]) if count > 1 else after.squeeze(0)

    def extra_repr(self) -> str:
        """Return the sizes, and the options that are set."""
        said = f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")
        kind = getattr(self, "nonlinearity", "tanh")
        return said if kind == "tanh" else f"{said}, nonlinearity={kind}"


class RNNCell(RNNCellBase):
    """One step of `RNN`: from (N, input_size) and h (N, hidden_size), zeros by default, to h.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.RNNCell(10, 20)(flow.ones(3, 10)).shape
    (3, 20)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = check_choice("RNNCell", "nonlinearity", nonlinearity, ("tanh", "relu"))

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the new h."""
        h: Tensor = self._step(f"rnn_{self.nonlinearity}", input, hx)
        return h


class LSTMCell(RNNCellBase):
    """One step of `LSTM`: from (N, input_size) and a pair (h, c), zeros by default, to such a pair.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> h, c = flow.nn.LSTMCell(10, 20)(flow.ones(3, 10))
    >>> h.shape, c.shape
    ((3, 20), (3, 20))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the new h and c."""
        states: tuple[Tensor, Tensor] = self._step("lstm", input, hx)
        return states


class GRUCell(RNNCellBase):
    """One step of `GRU`: from (N, input_size) and h (N, hidden_size), zeros by default, to h.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.GRUCell(10, 20)(flow.ones(3, 10)).shape
    (3, 20)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the new h."""
        h: Tensor = self._step("gru", input, hx)
        return h


def _draw(module: Module, hidden_size: int) -> None:
    bound = 1 / math.sqrt(hidden_size) if hidden_size else 0.0
    for weight in module.parameters():
        init.uniform_(weight, -bound, bound)


guard_all(globals())
