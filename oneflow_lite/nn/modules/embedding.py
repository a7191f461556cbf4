"""Embedding: a table of vectors, looked up by integers."""

from __future__ import annotations

from typing import Any

from oneflow_lite.autograd.mode import no_grad
from oneflow_lite.errors import ArgumentError, ShapeError, bad_argument
from oneflow_lite.functors.checks import check_int, check_ndim
from oneflow_lite.nn import functional as F, init
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.factory import parameter
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.tensor import Tensor


class Embedding(Module):
    """Replaces each integer of the input by a row of `weight`.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        Rows of the table and their length.
    padding_idx : int, optional
        A row that starts as zeros and gets no gradient.
    max_norm : float, optional
        Rows that are looked up are first scaled down, in place, to this norm.
    norm_type : float
        The p of that norm.
    scale_grad_by_freq : bool
        Whether a row's gradient is divided by the times it occurs in the input.
    sparse : bool
        Accepted for scripts written for PyTorch; the gradient is dense.
    device, dtype : optional
        Of the table, which starts as N(0, 1).

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Embedding(10, 3)(flow.tensor([[1, 2, 4, 5], [4, 3, 2, 9]])).shape
    (2, 4, 3)
    """

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = check_int("Embedding", "num_embeddings", num_embeddings, 0)
        self.embedding_dim = check_int("Embedding", "embedding_dim", embedding_dim, 0)
        if padding_idx is not None:
            padding_idx = check_int("Embedding", "padding_idx", padding_idx)
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise bad_argument(
                    ArgumentError,
                    "Embedding",
                    "padding_idx",
                    expected=f"a row of the table, {-num_embeddings} to {num_embeddings - 1}",
                    got=padding_idx,
                    mend="name one of its rows",
                )
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        shape = (self.num_embeddings, self.embedding_dim)
        if _weight is None:
            self.weight = parameter(shape, device, dtype)
            self.weight.requires_grad_(not _freeze)
            self.reset_parameters()
            return
        if _weight.shape != shape:
            raise bad_argument(
                ShapeError,
                "Embedding",
                "_weight",
                expected=f"shape {shape}",
                got=_weight.shape,
                mend="give as many rows and columns as the table has",
            )
        self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Draw the table anew from N(0, 1); the padding row becomes zeros."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0

    def forward(self, input: Tensor) -> Tensor:
        """Return the rows, in a last dimension behind those of the input."""
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        """Return the sizes, and the options that differ from their defaults."""
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        if self.sparse:
            parts.append("sparse=True")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """Return a module whose table is `embeddings`, a tensor of two dimensions.

        `freeze` says whether the table is left untrained; the rest is as in the constructor.

        >>> import oneflow_lite as flow
        >>> table = flow.nn.Embedding.from_pretrained(flow.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> table(flow.tensor([1]))
        tensor([[3., 4.]])
        """
        check_ndim("Embedding.from_pretrained", embeddings, (2,), "embeddings")
        rows, columns = embeddings.shape
        return cls(
            rows,
            columns,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )
