"""Attention with several heads."""

from __future__ import annotations

from oneflow_lite.arrays.device import DeviceLike
from oneflow_lite.arrays.dtype import DTypeLike
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import OptionError, arg_error
from oneflow_lite.functors.declaring.checks import check_int
from oneflow_lite.nn import functional as F, init
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.factory import parameter
from oneflow_lite.nn.modules.linear import Linear
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.tensors.tensor import Tensor


class NonDynamicallyQuantizableLinear(Linear):
    """Linear under the name that PyTorch shows for the last projection of attention."""


class MultiheadAttention(Module):
    """Attention of several heads, each on projections of its own; the results are projected.

    Vaswani et al., Attention Is All You Need, 2017.

    Parameters
    ----------
    embed_dim : int
        Features of queries and results.
    num_heads : int
        Heads, each of embed_dim / num_heads features.
    dropout : float
        The probability with which weights are set to 0 in training.
    bias : bool
        Whether the projections have biases.
    add_bias_kv : bool
        Whether a trained key and value, `bias_k` and `bias_v`, stand behind the given keys.
    add_zero_attn : bool
        Whether a key and a value of zeros stand behind the given keys.
    kdim, vdim : int, optional
        Features of keys and values; `embed_dim` by default.
    batch_first : bool
        Whether inputs and results are (N, L, features) rather than (L, N, features).
    device, dtype : optional
        Of the parameters.

    Notes
    -----
    Where queries, keys and values have as many features, their projections are one
    `in_proj_weight`, else `q_proj_weight`, `k_proj_weight` and `v_proj_weight`; all start as in
    `init.xavier_uniform_`, biases as zeros, `bias_k` and `bias_v` as in `init.xavier_normal_`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.ones(5, 3, 8)
    >>> y, weights = flow.nn.MultiheadAttention(8, 2)(x, x, x)
    >>> y.shape, weights.shape
    ((5, 3, 8), (3, 5, 5))
    """

    in_proj_weight: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        op = "MultiheadAttention"
        self.embed_dim = check_int(op, "embed_dim", embed_dim, 1)
        self.num_heads = check_int(op, "num_heads", num_heads, 1)
        if embed_dim % num_heads:
            expected, hint = f"a multiple of num_heads = {num_heads}", "choose other sizes"
            raise arg_error(op, "embed_dim", expected, embed_dim, hint, OptionError)
        self.kdim = embed_dim if kdim is None else check_int(op, "kdim", kdim, 1)
        self.vdim = embed_dim if vdim is None else check_int(op, "vdim", vdim, 1)
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self.add_zero_attn = add_zero_attn
        one = self._qkv_same_embed_dim
        shapes = {
            "in_proj_weight": (3 * embed_dim, embed_dim) if one else None,
            "q_proj_weight": None if one else (embed_dim, embed_dim),
            "k_proj_weight": None if one else (embed_dim, self.kdim),
            "v_proj_weight": None if one else (embed_dim, self.vdim),
            "in_proj_bias": (3 * embed_dim,) if bias else None,
            "bias_k": (1, 1, embed_dim) if add_bias_kv else None,
            "bias_v": (1, 1, embed_dim) if add_bias_kv else None,
        }
        for name, shape in shapes.items():
            made = None if shape is None else parameter(shape, device, dtype)
            self.register_parameter(name, made)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Draw the parameters anew, but for the weight of the last projection."""
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            assert self.out_proj.bias is not None
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the result, and the weights or None.

        Parameters
        ----------
        query, key, value : Tensor
            (L, N, embed_dim), (S, N, kdim) and (S, N, vdim), or all of them without N.
        key_padding_mask : Tensor, optional
            (N, S) or (S,): True for keys to leave out, or numbers that are added to their scores.
        need_weights, average_attn_weights : bool
            Whether the weights are returned, and as the mean of all heads.
        attn_mask : Tensor, optional
            (L, S) or (N num_heads, L, S): True for pairs to leave out, or numbers to add.
        is_causal : bool
            A hint that `attn_mask` is causal.

        Returns
        -------
        Tensor, Tensor or None
            The result, of the shape of `query`, and the weights: their mean over the heads,
            (N, L, S), or (N, num_heads, L, S). N is missing where the inputs lack it.

        Raises
        ------
        ArgumentError
            When `is_causal` lacks a mask.
        ShapeError
            When a shape does not fit.
        """
        turned = self.batch_first and query.ndim == 3
        if turned:
            # An argument given twice stays the same tensor: then one product projects all.
            q = query.transpose(0, 1)
            k = q if key is query else key.transpose(0, 1)
            v = q if value is query else k if value is key else value.transpose(0, 1)
            query, key, value = q, k, v
        y, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return y.transpose(0, 1) if turned else y, weights


guard_all(globals())
