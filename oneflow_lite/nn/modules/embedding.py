"""Embeddings: tables of vectors, looked up by integers."""

from __future__ import annotations

from typing import Any

from oneflow_lite.arrays.device import DeviceLike
from oneflow_lite.arrays.dtype import DTypeLike
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import OptionError, arg_error
from oneflow_lite.functors.declaring.checks import check_int, check_tensor
from oneflow_lite.nn import functional as F, init
from oneflow_lite.nn.modules.factory import Weighted
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor


class _Table(Weighted):
    """The common base of Embedding and EmbeddingBag: a table, and the number of its padding row."""

    weight: Parameter

    def _start(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        max_norm: float | None,
        norm_type: float,
        scale_grad_by_freq: bool,
        sparse: bool,
    ) -> None:
        super().__init__()
        op = type(self).__name__
        self.num_embeddings = check_int(op, "num_embeddings", num_embeddings, 0)
        self.embedding_dim = check_int(op, "embedding_dim", embedding_dim, 0)
        if padding_idx is not None:
            padding_idx = check_int(op, "padding_idx", padding_idx)
            if not -num_embeddings <= padding_idx < num_embeddings:
                expected = f"a row of the table, {-num_embeddings} to {num_embeddings - 1}"
                hint = "name one of its rows"
                raise arg_error(op, "padding_idx", expected, padding_idx, hint, OptionError)
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {"weight": (self.num_embeddings, self.embedding_dim)}

    def _fill(self, given: Tensor | None, freeze: bool, device: Any, dtype: Any) -> None:
        """Draw the table, or take the given table."""
        if given is None:
            self._make(device, dtype, weight=True)
            self.weight.requires_grad_(not freeze)
            return
        op, shape = type(self).__name__, self._shapes()["weight"]
        if check_tensor(op, "_weight", given).shape != shape:
            hint = "give as many rows and columns as the table has"
            raise arg_error(op, "_weight", f"shape {shape}", given, hint, OptionError)
        self.weight = Parameter(given, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Draw the table anew from N(0, 1); the padding row becomes zeros."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0


class Embedding(_Table):
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

    Raises
    ------
    OptionError
        When `padding_idx` names no row.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Embedding(10, 3)(flow.tensor([[1, 2, 4, 5], [4, 3, 2, 9]])).shape
    (2, 4, 3)
    """

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
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        options = (max_norm, norm_type, scale_grad_by_freq, sparse)
        self._start(num_embeddings, embedding_dim, padding_idx, *options)
        self._fill(_weight, _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Return the rows, in a last dimension behind the input's dimensions."""
        options = (self.max_norm, self.norm_type, self.scale_grad_by_freq)
        return F.embedding(input, self.weight, self.padding_idx, *options)

    def extra_repr(self) -> str:
        """Return the sizes, and the options that differ from their defaults."""
        return self._told(
            "num_embeddings embedding_dim",
            padding_idx=None,
            max_norm=None,
            norm_type=2,
            scale_grad_by_freq=False,
            sparse=False,
        )

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
        return cls(
            *_sizes_of(cls, embeddings),
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )


class EmbeddingBag(_Table):
    """Replaces bags of integers by the sum, mean or maximum of their rows of `weight`.

    The input is (B, N) with a bag in each row, or a row of all bags with the `offsets` at which
    bags begin; the output is (B, embedding_dim). An empty bag gives zeros.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        Rows of the table and their length.
    max_norm, norm_type, scale_grad_by_freq, sparse
        As for `Embedding`.
    mode : {"sum", "mean", "max"}
        The function of the rows of a bag.
    include_last_offset : bool
        Whether the last offset is the end of the last bag.
    padding_idx : int, optional
        A row that does not count; it starts as zeros and gets no gradient.
    device, dtype : optional
        Of the table, which starts as N(0, 1).

    Raises
    ------
    OptionError
        When `padding_idx` names no row.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> bags = flow.nn.EmbeddingBag(10, 3, mode="sum")
    >>> bags(flow.tensor([1, 2, 4, 5, 4]), flow.tensor([0, 2])).shape
    (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        options = (max_norm, norm_type, scale_grad_by_freq, sparse)
        self._start(num_embeddings, embedding_dim, padding_idx, *options)
        self.mode = mode
        self.include_last_offset = include_last_offset
        self._fill(_weight, False, device, dtype)

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        """Return one row for each bag; `per_sample_weights` multiply the rows before a sum."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
            padding_idx=self.padding_idx,
        )

    def extra_repr(self) -> str:
        """Return the sizes, the mode, and the options that differ from their defaults."""
        options: Any = {"max_norm": None, "norm_type": 2, "scale_grad_by_freq": False}
        head = self._told("num_embeddings embedding_dim", **options)
        tail = self._told("", padding_idx=None)
        return ", ".join([head, f"mode={self.mode!r}", *filter(None, [tail])])

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """Return a module whose table is `embeddings`; `freeze` leaves it untrained."""
        made = cls(
            *_sizes_of(cls, embeddings),
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            embeddings,
            include_last_offset,
            padding_idx,
        )
        made.weight.requires_grad_(not freeze)
        return made


def _sizes_of(cls: type[_Table], embeddings: Tensor) -> tuple[int, int]:
    op = f"{cls.__name__}.from_pretrained"
    if check_tensor(op, "embeddings", embeddings).ndim != 2:
        hint = "give rows and columns"
        raise arg_error(op, "embeddings", "2 dimensions", embeddings, hint, OptionError)
    return embeddings.shape[0], embeddings.shape[1]


guard_all(globals())
