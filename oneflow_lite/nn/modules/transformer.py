"""Transformers: encoders, decoders, and both together."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from oneflow_lite.arrays.device import DeviceLike
from oneflow_lite.arrays.dtype import DTypeLike
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F
from oneflow_lite.errors import ArgumentError, arg_error, type_error
from oneflow_lite.nn import functional as F, init
from oneflow_lite.nn.containers import ModuleList
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.attention import MultiheadAttention
from oneflow_lite.nn.modules.dropout import Dropout
from oneflow_lite.nn.modules.factory import check_layers
from oneflow_lite.nn.modules.linear import Linear
from oneflow_lite.nn.modules.normalization import LayerNorm
from oneflow_lite.tensors.tensor import Tensor

Activation = str | Callable[[Tensor], Tensor]


class _Layer(Module):
    """The common base of encoder and decoder layers: a feed-forward net, and the sums of blocks.

    Each block is normalized before it, with `norm_first`, or behind the sum with its input.
    """

    _attentions: tuple[str, ...]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        where = {"device": device, "dtype": dtype}
        options: Any = {"bias": bias, **where}
        for name in self._attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, batch_first=batch_first, **options
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first = norm_first
        # In PyTorch's order and under its names, by which state dicts are loaded.
        blocks = range(1, len(self._attentions) + 2)
        for i in blocks:
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, **options))
        for i in blocks:
            setattr(self, f"dropout{i}", Dropout(dropout))
        if isinstance(activation, str) and activation not in ("relu", "gelu"):
            expected, hint = "'relu', 'gelu' or a function", "pass the function itself"
            op = type(self).__name__
            raise arg_error(op, "activation", expected, repr(activation), hint, ArgumentError)
        self.activation = getattr(F, activation) if isinstance(activation, str) else activation

    def _join(self, x: Tensor, i: int, block: Callable[[Tensor], Tensor]) -> Tensor:
        """Return x plus the result of block i for x."""
        norm, dropout = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
        if self.norm_first:
            return x + dropout(block(norm(x)))  # type: ignore[no-any-return]
        return norm(x + dropout(block(x)))  # type: ignore[no-any-return]

    def _feed_forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return result


def _attend(
    attention: Module,
    x: Tensor,
    memory: Tensor,
    mask: Tensor | None,
    padding: Tensor | None,
    is_causal: bool,
) -> Tensor:
    result: tuple[Tensor, None] = attention(
        x,
        memory,
        memory,
        attn_mask=mask,
        key_padding_mask=padding,
        is_causal=is_causal,
        need_weights=False,
    )
    return result[0]


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward net, each added to its input.

    Vaswani et al., Attention Is All You Need, 2017; with `norm_first` as in Xiong et al., 2020.

    Parameters
    ----------
    d_model : int
        Features of inputs and results.
    nhead : int
        Heads of the attention.
    dim_feedforward : int
        Features between the two linear layers.
    dropout : float
        Probability of dropout, of weights and behind each block.
    activation : {"relu", "gelu"} or callable
        Between the linear layers.
    layer_norm_eps : float
        The eps of the normalizations.
    batch_first : bool
        Whether input and result are (N, S, d_model) rather than (S, N, d_model).
    norm_first : bool
        Whether blocks are normalized before them, rather than behind the sums.
    bias : bool
        Whether linear layers and normalizations have biases.
    device, dtype : optional
        Of the parameters.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.TransformerEncoderLayer(8, 2)(flow.ones(5, 3, 8)).shape
    (5, 3, 8)
    """

    _attentions = ("self_attn",)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Return the result; the masks are as in `MultiheadAttention`."""
        given = (src_mask, src_key_padding_mask, is_causal)
        x = self._join(src, 1, lambda x: _attend(self.self_attn, x, x, *given))
        return self._join(x, 2, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's results, and a feed-forward net.

    The parameters are those of `TransformerEncoderLayer`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.TransformerDecoderLayer(8, 2)(flow.ones(5, 3, 8), flow.ones(7, 3, 8)).shape
    (5, 3, 8)
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the result; `memory` is the encoder's, the masks as in `MultiheadAttention`."""
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        x = self._join(tgt, 1, lambda x: _attend(self.self_attn, x, x, *own))
        x = self._join(x, 2, lambda x: _attend(self.multihead_attn, x, memory, *other))
        return self._join(x, 3, self._feed_forward)


class TransformerEncoder(Module):
    """A stack of layers, all copies of a given layer, and a last normalization if given.

    Parameters
    ----------
    encoder_layer : TransformerEncoderLayer
        The layer to copy.
    num_layers : int
        The number of copies.
    norm : Module, optional
        Normalizes the result.
    enable_nested_tensor, mask_check : bool
        Accepted for scripts written for PyTorch; there are no nested tensors here.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> layer = flow.nn.TransformerEncoderLayer(8, 2)
    >>> flow.nn.TransformerEncoder(layer, 3)(flow.ones(5, 3, 8)).shape
    (5, 3, 8)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _copies("nn.TransformerEncoder", encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Return the result; the masks are as in `MultiheadAttention`.

        `is_causal` is a hint that the mask is causal; results are equal without it.
        """
        options = {"src_mask": mask, "src_key_padding_mask": src_key_padding_mask}
        for layer in self.layers:
            src = layer(src, is_causal=bool(is_causal), **options)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """A stack of layers, all copies of a given layer, and a last normalization if given.

    Parameters
    ----------
    decoder_layer : TransformerDecoderLayer
        The layer to copy.
    num_layers : int
        The number of copies.
    norm : Module, optional
        Normalizes the result.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> layer = flow.nn.TransformerDecoderLayer(8, 2)
    >>> flow.nn.TransformerDecoder(layer, 3)(flow.ones(5, 3, 8), flow.ones(7, 3, 8)).shape
    (5, 3, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies("nn.TransformerDecoder", decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the result; see `TransformerDecoderLayer` and `TransformerEncoder`."""
        options = {
            "tgt_mask": tgt_mask,
            "memory_mask": memory_mask,
            "tgt_key_padding_mask": tgt_key_padding_mask,
            "memory_key_padding_mask": memory_key_padding_mask,
            "tgt_is_causal": bool(tgt_is_causal),
            "memory_is_causal": memory_is_causal,
        }
        for layer in self.layers:
            tgt = layer(tgt, memory, **options)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder and a decoder, which looks at the encoder's results.

    Vaswani et al., Attention Is All You Need, 2017.

    Parameters
    ----------
    d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps
        Of all layers; see `TransformerEncoderLayer`.
    num_encoder_layers, num_decoder_layers : int
        The numbers of layers.
    custom_encoder, custom_decoder : Module, optional
        Take the places of encoder and decoder.
    batch_first, norm_first, bias, device, dtype
        Of all layers; see `TransformerEncoderLayer`.

    Notes
    -----
    All matrices start as in `init.xavier_uniform_`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> net = flow.nn.Transformer(8, 2, 1, 1, 16)
    >>> net(flow.ones(7, 3, 8), flow.ones(5, 3, 8)).shape
    (5, 3, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        options: Any = {"bias": bias, "device": device, "dtype": dtype}
        sizes = (d_model, nhead, dim_feedforward)
        given: Any = (*sizes, dropout, activation, layer_norm_eps, batch_first, norm_first)
        if custom_encoder is None:
            layer: Module = TransformerEncoderLayer(*given, **options)
            norm = LayerNorm(d_model, layer_norm_eps, **options)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        self.encoder = custom_encoder
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*given, **options)
            norm = LayerNorm(d_model, layer_norm_eps, **options)
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        """Draw all matrices anew."""
        for weight in self.parameters():
            if weight.ndim > 1:
                init.xavier_uniform_(weight)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoder's result for `tgt` (T, N, d_model) and the encoded `src`.

        The masks are as in `MultiheadAttention`; `..._is_causal` says that a mask is causal.

        Raises
        ------
        ShapeError
            When batch sizes or features do not fit.
        """
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            expected = f"a batch of {src.shape[batch]}, as that of src"
            raise arg_error("Transformer", "tgt", expected, tgt, "give one target for each source")
        for name, x in (("src", src), ("tgt", tgt)):
            if x.shape[-1] != self.d_model:
                raise arg_error("Transformer", name, f"{self.d_model} features", x, "match d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        decoded: Tensor = self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )
        return decoded

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: DeviceLike | None = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Return a mask of numbers that lets each step look at itself and at earlier steps.

        >>> import oneflow_lite as flow
        >>> flow.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        made: Tensor = FUNCTORS_F.full((sz, sz), -math.inf, device=device, dtype=dtype)
        return made.triu(1)


def _copies(op: str, layer: Module, count: int) -> ModuleList:
    if not isinstance(layer, Module):
        raise type_error(op, "layer", "a Module", layer, "pass the layer that is copied")
    return ModuleList([copy.deepcopy(layer) for _ in range(check_layers(op, count))])


guard_all(globals())
