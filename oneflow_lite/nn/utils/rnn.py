"""Sequences of several lengths: padded to one tensor, or packed without padding for an RNN."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self, cast

from oneflow_lite.arrays.refusals import guard_all, guarded
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, ShapeError, arg_error
from oneflow_lite.functors.creation import tensor
from oneflow_lite.functors.declaring.checks import check_choice, check_tensor
from oneflow_lite.ops.exposure import expose
from oneflow_lite.tensors.tensor import Tensor

expose(globals())

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Sequences, the longest first, as the rows of step 0, of step 1, and so on.

    Made by `pack_padded_sequence` and `pack_sequence`; taken and returned by RNN, LSTM and GRU.

    Attributes
    ----------
    data : Tensor
        The rows, (sum of lengths, *).
    batch_sizes : Tensor
        The number of sequences that reach each step; of int64, on the CPU, where it is read.
    sorted_indices, unsorted_indices : Tensor or None
        The order into which sequences were sorted, and the permutation back; None if they came
        sorted.
    """

    @guarded
    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        """Make packed sequences of the parts; `unsorted_indices` follows from `sorted_indices`."""
        if batch_sizes is None:  # a pair in the place of `data`
            data, batch_sizes = cast(Any, data)
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with(self, data: Tensor) -> Self:
        """Return the sequences with these rows; the permutations go to the device of the rows."""
        if data is self.data:
            return self
        ways = (
            None if index is None else index.to(data.device)
            for index in (self.sorted_indices, self.unsorted_indices)
        )
        return type(self)(data, self.batch_sizes, *ways)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Return the sequences with data as `Tensor.to` gives it."""
        return self._with(self.data.to(*args, **kwargs))

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """Return the sequences on a CUDA device."""
        return self._with(self.data.cuda(*args, **kwargs))

    def cpu(self, *args: Any, **kwargs: Any) -> Self:
        """Return the sequences on the CPU."""
        return self._with(self.data.cpu(*args, **kwargs))

    def pin_memory(self) -> Self:
        """Return the sequences as they are: host memory is not pinned here."""
        return self

    def is_pinned(self) -> bool:
        """Return whether the data lie in pinned memory; they do not."""
        return False

    @property
    def is_cuda(self) -> bool:
        """Whether the data lie on a CUDA device."""
        return bool(self.data.is_cuda)


def _converter(name: str) -> Callable[[PackedSequence], PackedSequence]:
    def convert(self: PackedSequence) -> PackedSequence:
        return self._with(getattr(self.data, name)())

    convert.__name__ = name
    convert.__doc__ = f"Return the sequences with data as `Tensor.{name}` gives it."
    return convert


for _name in ("double", "float", "half", "long", "int", "short", "char", "byte"):
    setattr(PackedSequence, _name, _converter(_name))


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the inverse of a permutation; None for None.

    >>> import oneflow_lite as flow
    >>> flow.nn.utils.rnn.invert_permutation(flow.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    return None if permutation is None else permutation.argsort()


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Pack padded sequences, (T, N, *) or with `batch_first` (N, T, *).

    Parameters
    ----------
    input : Tensor
        The sequences.
    lengths : Tensor or sequence of int
        The length of each sequence, without its padding.
    batch_first : bool
        Whether the batch is the first dimension.
    enforce_sorted : bool
        Whether the lengths have to fall; otherwise the sequences are sorted.

    Raises
    ------
    ArgumentError
        When a length is not 1 to T, lengths and sequences differ in number, or lengths do not fall.
    ShapeError
        When the input is empty or has fewer than two dimensions.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([[1, 4], [2, 5], [3, 0]])
    >>> packed = flow.nn.utils.rnn.pack_padded_sequence(x, [3, 2])
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2, 5, 3]), tensor([2, 2, 1]))
    """
    op = "pack_padded_sequence"
    if check_tensor(op, "input", input).ndim < 2 or not input.numel():
        raise arg_error(op, "input", "(T, N, *), not empty", input, "pack what there is")
    x = input.transpose(0, 1) if batch_first else input
    given = lengths.cpu().long() if isinstance(lengths, Tensor) else tensor(list(lengths))
    counts = given.tolist()
    if given.ndim != 1 or len(counts) != x.shape[1]:
        expected, hint = f"{x.shape[1]} lengths", "give one for each sequence"
        raise arg_error(op, "lengths", expected, counts, hint, ArgumentError)
    if min(counts) < 1 or max(counts) > x.shape[0]:
        expected, hint = f"lengths from 1 to {x.shape[0]}", "leave empty sequences out"
        raise arg_error(op, "lengths", expected, counts, hint, ArgumentError)
    order = None
    if not enforce_sorted:
        given, order = given.sort(descending=True, stable=True)
        order = order.to(x.device)
        x = x.index_select(1, order)
    elif any(a < b for a, b in pairwise(counts)):
        expected, hint = "falling lengths", "sort them, or pass enforce_sorted=False"
        raise arg_error(op, "lengths", expected, counts, hint, ArgumentError)
    reached = F.arange(max(counts)).unsqueeze(1) < given
    rows = x[: max(counts)][reached.to(x.device)]
    return PackedSequence(rows, reached.sum(1), order)


def _reached(sequence: PackedSequence) -> Tensor:
    """Return for each step and sequence, (T, N), whether the sequence is that long."""
    sizes = sequence.batch_sizes
    return cast(Tensor, F.arange(int(sizes[0])) < sizes.unsqueeze(1))


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return packed sequences as (T, N, *), or with `batch_first` (N, T, *), and their lengths.

    Parameters
    ----------
    sequence : PackedSequence
        The result of `pack_padded_sequence` or of an RNN.
    batch_first : bool
        Whether the batch is to be the first dimension.
    padding_value : float
        Stands behind the end of a sequence.
    total_length : int, optional
        The wanted T; the longest length by default.

    Raises
    ------
    ArgumentError
        When a sequence is longer than `total_length`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> from oneflow_lite.nn.utils.rnn import pack_sequence, pad_packed_sequence
    >>> packed = pack_sequence([flow.tensor([1, 2, 3]), flow.tensor([4])])
    >>> pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 2, 3],
            [4, 0, 0]]), tensor([3, 1]))
    """
    reached = _reached(sequence)
    if total_length is not None and total_length < len(reached):
        expected, hint = f"at least {len(reached)}, the longest length", "pass a larger one"
        args = ("pad_packed_sequence", "total_length", expected, total_length, hint, ArgumentError)
        raise arg_error(*args)
    lengths = reached.sum(0)
    data, back = sequence.data, sequence.unsorted_indices
    # Each entry is the number of a packed row, or of a row of padding behind all packed rows.
    rows = F.where(reached, (reached.reshape(-1).cumsum(0) - 1).reshape(reached.shape), len(data))
    if back is not None:
        rows, lengths = rows.index_select(1, back.cpu()), lengths[back.cpu()]
    if total_length is not None:
        rows = F.pad(rows, (0, 0, 0, total_length - len(rows)), value=len(data))
    rows = rows.t() if batch_first else rows
    padded = F.cat([data, data.new_full((1, *data.shape[1:]), padding_value)])
    selected = padded.index_select(0, rows.reshape(-1).to(data.device))
    return selected.reshape(*rows.shape, *data.shape[1:]), lengths


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences (length, *) of several lengths as (T, N, *), or (N, T, *).

    Parameters
    ----------
    sequences : iterable of Tensor
        At least one; their sizes agree except for the first.
    batch_first : bool
        Whether the batch is to be the first dimension.
    padding_value : float
        Fills short sequences.
    padding_side : {"right", "left"}
        The side that is filled.

    Raises
    ------
    ArgumentError
        Without sequences, or for an unknown side.
    ArgumentTypeError
        When `sequences` is no iterable.
    ShapeError
        When further sizes differ.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> a, b = flow.tensor([1, 2, 3]), flow.tensor([4])
    >>> flow.nn.utils.rnn.pad_sequence([a, b], batch_first=True, padding_side="left")
    tensor([[1, 2, 3],
            [0, 0, 4]])
    """
    op = "pad_sequence"
    if not isinstance(sequences, Iterable):
        got, hint = type(sequences).__name__, "pass a list of tensors"
        raise arg_error(op, "sequences", "an iterable of tensors", got, hint, ArgumentTypeError)
    check_choice(op, "padding_side", padding_side, ("right", "left"))
    each = [check_tensor(op, f"sequences[{i}]", x) for i, x in enumerate(sequences)]
    if not each:
        raise arg_error(
            op, "sequences", "at least one", "none", "leave the call out", ArgumentError
        )
    longest, rest = max(len(x) for x in each), each[0].shape[1:]
    padded = []
    for i, x in enumerate(each):
        if x.shape[1:] != rest:
            expected, hint = f"sizes {tuple(rest)} after the first", "pad them, too"
            raise arg_error(op, f"sequences[{i}]", expected, x, hint, ShapeError)
        missing = (0, longest - len(x))
        ends = missing if padding_side == "right" else missing[::-1]
        padded.append(F.pad(x, (*(0, 0) * len(rest), *ends), value=padding_value))
    return cast(Tensor, F.stack(padded, 0 if batch_first else 1))


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False
) -> list[Tensor]:
    """Return the sequences that `pad_sequence` stacked, as a list.

    >>> import oneflow_lite as flow
    >>> x = flow.tensor([[1, 4], [2, 0]])
    >>> flow.nn.utils.rnn.unpad_sequence(x, flow.tensor([2, 1]))
    [tensor([1, 2]), tensor([4])]
    """
    lines = padded_sequences.unbind(0 if batch_first else 1)
    counts = lengths.tolist() if isinstance(lengths, Tensor) else lengths
    return [x[:n] for x, n in zip(lines, counts, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (length, *) of several lengths; see `pack_padded_sequence`.

    >>> import oneflow_lite as flow
    >>> flow.nn.utils.rnn.pack_sequence([flow.tensor([1, 2]), flow.tensor([3])]).data
    tensor([1, 3, 2])
    """
    lengths = [len(x) for x in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return packed sequences as a list, in the order in which they were packed.

    >>> import oneflow_lite as flow
    >>> from oneflow_lite.nn.utils.rnn import pack_sequence, unpack_sequence
    >>> unpack_sequence(pack_sequence([flow.tensor([1, 2]), flow.tensor([3])]))
    [tensor([1, 2]), tensor([3])]
    """
    return unpad_sequence(*pad_packed_sequence(packed_sequences))


guard_all(globals())
