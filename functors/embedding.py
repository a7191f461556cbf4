"""embedding and one_hot: functions that turn class numbers into rows and unit vectors."""

from __future__ import annotations

from typing import Annotated, Any

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.functors.declaring import domains as D
from oneflow_lite.functors.declaring.checks import (
    check_int,
    check_ndim,
    check_tensor,
    require_integer,
)
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import Domain
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor

EMBEDDING = op_expr("embedding")


def _numbers_first(op: str, input: Any, weight: Any) -> tuple[Tensor, Tensor]:
    """Return row numbers and the table; `torch.embedding` has them the other way round."""
    if isinstance(weight, Tensor) and weight._data.dtype.kind in "iu":
        input, weight = weight, input
    return require_integer(op, input, "input"), check_tensor(op, "weight", weight)


RowNumbers = Annotated[
    Tensor,
    Domain(
        "Of integers.",
        "{x}, weight = _numbers_first(NAME, {x}, weight)",
        "type({x}) is Tensor and {x}._data.dtype.kind in 'iu'",
        {"DTypeError": "When neither {x} nor `weight` holds integers."},
        (_numbers_first,),
        "one",
    ),
]


@functor(
    "functional flow",
    spelled="indices=input",
    samples="i(2, 3, n=4), x(4, 2); i(2, n=4), fixed(x(4, 2)), 1",
)
def embedding(
    input: RowNumbers,
    weight: D.AnyTensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: D.Flag = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of `weight` that `input` names.

    weight: of shape (number of rows, size of a row).
    padding_idx: this row gets no gradient.
    max_norm, norm_type: rows that are looked up are first cut down to this p-norm, in place.
    scale_grad_by_freq: divide the gradient of a row by how often it was looked up.
    sparse: only False: gradients are dense.
    ArgumentError: when `padding_idx` names no row, or `sparse` is asked for.
    IndexRangeError: when a row number is negative or too large (on CUDA nobody looks).
    ShapeError: when `weight` has not two dimensions.

    >>> flow.nn.functional.embedding(flow.tensor([1]), flow.tensor([[0., 0.], [1., 2.]]))
    tensor([[1., 2.]])
    """
    padding_idx = _checked("embedding", weight, padding_idx, sparse)
    if max_norm is not None:
        _shrink_rows(input, weight, float(max_norm), float(norm_type))
    attrs = {"padding_idx": padding_idx, "scale_grad_by_freq": scale_grad_by_freq}
    return dispatch(EMBEDDING, (input, weight), attrs)


def _checked(op: str, weight: Tensor, padding_idx: int | None, sparse: bool) -> int | None:
    """Check the weight, refuse `sparse`, and return the number of the padding row from 0 on."""
    rows = check_ndim(op, weight, (2,), "weight").shape[0]
    if sparse:
        raise ArgumentError(f"{op}(): argument 'sparse': gradients are dense; pass False")
    if padding_idx is None:
        return None
    if -rows <= check_int(op, "padding_idx", padding_idx) < rows:
        return int(padding_idx) % rows
    expected = f"{-rows} to {rows - 1}"
    raise arg_error(op, "padding_idx", expected, padding_idx, "name a row of weight", ArgumentError)


def _shrink_rows(input: Tensor, weight: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows that `input` names down to `max_norm`, in place and unseen by autograd."""
    with no_grad():
        rows = dispatch(EMBEDDING, (input, weight))
        norms = F.norm(rows, norm_type, -1, True)
        # As PyTorch, which keeps a row a little below the bound.
        shrunk = rows * (max_norm / (norms + 1e-7))
        F.setitem(weight, input, F.where(norms > max_norm, shrunk, rows))


@functor(
    "functional",
    samples="""i(2, 3, n=4), x(4, 2); i(6, n=4), x(4, 2), fixed([0, 3, 3]), mode='max'
        i(6, n=4), x(4, 2), fixed([0, 2, 6]), None, 2.0, False, 'sum', False, x(6), True
        i(2, 3, n=4), x(4, 2), padding_idx=-1""",
)
def embedding_bag(
    input: RowNumbers,
    weight: D.FloatingOrComplex,
    offsets: D.Integer | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: D.Flag = False,
    mode: Annotated[str, D.choice("sum", "mean", "max")] = "mean",
    sparse: bool = False,
    per_sample_weights: D.AnyTensor | None = None,
    include_last_offset: D.Flag = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return the sum, mean or maximum of the rows that each bag names; an empty bag gives 0.

    input: row numbers: each row of (B, N) is a bag; in one dimension bags begin at the `offsets`.
    offsets: (B,), from 0 on, for an input of one dimension.
    weight, max_norm, norm_type, scale_grad_by_freq, sparse: as in `embedding`.
    per_sample_weights: of the input's shape; multiplies the rows before they are summed.
    include_last_offset: whether the last offset is the end of the last bag.
    padding_idx: a row that does not count, and gets no gradient.
    ArgumentError: when options do not go together, or `sparse` is asked for.
    IndexRangeError: when a row number is negative or too large (on CUDA nobody looks).
    ShapeError: when a shape does not fit.

    >>> flow.nn.functional.embedding_bag(flow.tensor([[0, 1]]), flow.tensor([[1., 2.], [3., 4.]]))
    tensor([[2., 3.]])
    """
    op, numbers = "embedding_bag", per_sample_weights
    padding_idx = _checked(op, weight, padding_idx, sparse)
    if (offsets is None) != (input.ndim == 2) or input.ndim not in (1, 2):
        expected = "offsets for an input of one dimension, none for one of two"
        raise arg_error(
            op, "offsets", expected, f"an input of shape {input.shape}", "mend one of them"
        )
    if offsets is not None and offsets.ndim != 1:
        raise arg_error(op, "offsets", "shape (B,)", offsets, "give one for each bag")
    if (mode == "max" and scale_grad_by_freq) or (mode != "sum" and numbers is not None):
        name = "scale_grad_by_freq" if numbers is None else "per_sample_weights"
        hint = "leave it out, or take mode='sum'"
        raise arg_error(op, name, "none with this mode", f"mode={mode!r}", hint, ArgumentError)
    if numbers is not None:
        if numbers.shape != input.shape or numbers.dtype != weight.dtype:
            expected = f"shape {input.shape} and dtype {weight.dtype}"
            hint = "match input and weight"
            raise arg_error(op, "per_sample_weights", expected, numbers, hint, ArgumentError)
        numbers = numbers.reshape(-1)
    if max_norm is not None:
        _shrink_rows(input, weight, float(max_norm), float(norm_type))
    if offsets is None:
        offsets = F.arange(len(input), device=input.device) * input.shape[1]
        input = input.reshape(-1)
    elif include_last_offset:
        offsets = offsets[:-1]
    given = (input, offsets)
    if mode == "max":
        rows = F.embedding_bag_argmax(weight.detach(), *given, padding_idx=padding_idx)
        # The gradient goes to the largest numbers alone, as gather has it; empty bags have row -1.
        return F.where(rows >= 0, F.gather(weight, 0, rows.clamp_min(0)), 0.0)
    if mode == "mean" or padding_idx is not None:
        attrs = {"mode": mode, "padding_idx": padding_idx}
        shares = F.embedding_bag_coefficients(weight.detach(), *given, **attrs)
        numbers = shares if numbers is None else numbers * shares
    return F.embedding_bag_sum(weight, numbers, *given, scale_grad_by_freq=scale_grad_by_freq)


@functor("functional", spelled="input=tensor", samples="i(2, 3), 5")
def one_hot(
    tensor: D.Integer, num_classes: Annotated[int, D.attribute(check_int, ", -1")] = -1
) -> Tensor:
    """Return class numbers as vectors of int64 that are 1 at the class and 0 elsewhere.

    num_classes: the length of the vectors; -1 takes the largest class number plus one, and on CUDA
      waits for the device to know it.
    IndexRangeError: when a class number is negative or too large (on CUDA such a row is all zeros).
    ShapeError: when an empty tensor leaves the number of classes open.

    >>> flow.nn.functional.one_hot(flow.tensor([1]), num_classes=3)
    tensor([[0, 1, 0]])
    """
