"""Connectionist temporal classification: what users call."""

from __future__ import annotations

from typing import Any

from oneflow_lite.errors import ArgumentError, DTypeError
from oneflow_lite.functors.checks import check_int, require_integer, wrong
from oneflow_lite.functors.declare import functor
from oneflow_lite.functors.domains import Flag, Int, Integer, RealFloating
from oneflow_lite.functors.loss import Reduction, reduce_loss
from oneflow_lite.interpreter import dispatch
from oneflow_lite.op_expr import op_expr
from oneflow_lite.tensor import Tensor

CTC_LOSS = op_expr("ctc_loss")


@functor(
    "functional flow",
    samples="""
    x(6, 2, 3), fixed([[1, 2, 2], [2, 1, 0]]), fixed([6, 5]), fixed([3, 1]), reduction='none'
    x(4, 2, 3), fixed([1, 0, 0]), (4, 3), (2, 1), 2; x(4, 3), fixed([1, 2]), (4,), (2,)
    x(2, 2, 3), fixed([[1, 1], [2, 0]]), (2, 2), (2, 1), 0, 'sum', True
    """,
)
def ctc_loss(
    log_probs: RealFloating,
    targets: Integer,
    input_lengths: Any,
    target_lengths: Any,
    blank: Int = 0,
    reduction: Reduction = "mean",
    zero_infinity: Flag = False,
) -> Tensor:
    """Return -log p(targets), summed over all paths that spell them with blanks and repetitions.

    Graves et al., Connectionist Temporal Classification, 2006. The gradient is that of this sum,
    which PyTorch's is after log_softmax only. The second derivative exists, the third does not.

    log_probs: logarithms of probabilities (T, N, C) or (T, C), real floating.
    targets: class numbers (N, S), or all labellings one behind the other in one dimension.
    input_lengths, target_lengths: (N,) or (): how much of each sample counts; tensors or ints.
    reduction: with "mean" each loss is divided by the length of its targets first.
    zero_infinity: whether losses that are infinite, of samples too short for their targets, and
    their gradients become 0.
    ArgumentError: when `blank` is no class, or the reduction is unknown.
    IndexRangeError: when a target is no class, or a length too large (checked on the CPU only).
    ShapeError: when a shape does not fit.

    >>> log_p = flow.log(flow.tensor([[[0.5, 0.5]], [[0.5, 0.5]]]))
    >>> flow.ctc_loss(log_p, flow.tensor([[1]]), (2,), (1,)).exp()
    tensor(1.3333)
    """
    op = "ctc_loss"
    if log_probs.dtype.char == "e":
        mend = "convert it with .float()"
        raise wrong(op, "log_probs", "float32 or float64", log_probs.dtype, mend, DTypeError)
    if log_probs.ndim not in (2, 3):
        raise wrong(op, "log_probs", "shape (T, N, C) or (T, C)", log_probs, "unsqueeze it")
    batched = log_probs.ndim == 3
    x = log_probs if batched else log_probs.unsqueeze(1)
    batch, classes = x.shape[1:]
    if not 0 <= blank < classes:
        expected = f"a class, 0 to {classes - 1}"
        raise wrong(op, "blank", expected, blank, "name the class of the blank", ArgumentError)
    if targets.ndim not in (1, 2) or (targets.ndim == 2 and len(targets) != batch):
        expected = f"shape ({batch}, S), or one dimension"
        raise wrong(op, "targets", expected, targets, "give one labelling for each sample")
    steps = _lengths("input_lengths", input_lengths, x)
    sizes = _lengths("target_lengths", target_lengths, x)
    attrs = {"blank": blank, "zero_infinity": zero_infinity}
    loss, _ = dispatch(CTC_LOSS, (x, targets, steps, sizes), attrs)
    if reduction == "mean":
        loss = loss / sizes.clamp_min(1).to(loss.dtype)
    return reduce_loss(loss if batched else loss[0], reduction)


def _lengths(name: str, value: Any, x: Tensor) -> Tensor:
    """Return lengths (N,) as a tensor of int64."""
    if isinstance(value, (tuple, list)):
        value = x.new_tensor([check_int("ctc_loss", name, n) for n in value], dtype="int64")
    lengths = require_integer("ctc_loss", value, name).long().reshape(-1)
    if lengths.shape != (x.shape[1],):
        raise wrong("ctc_loss", name, f"shape ({x.shape[1]},)", value, "give one for each sample")
    return lengths
