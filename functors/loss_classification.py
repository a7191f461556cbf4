"""Losses of classes and probabilities: functions that users call."""

from __future__ import annotations

import math
from typing import Annotated, Any

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import ArgumentError, DTypeError, ShapeError, arg_error
from oneflow_lite.functors.declaring import checks
from oneflow_lite.functors.declaring.checks import check_tensor, real_floating
from oneflow_lite.functors.declaring.declare import functor
from oneflow_lite.functors.declaring.domains import (
    AnyTensor,
    Flag,
    Int,
    Integer,
    RealFloating,
    TensorOrInts,
    attribute,
)
from oneflow_lite.functors.loss import (
    Reduce,
    Reduction,
    SizeAverage,
    fitting,
    loss_functor,
    reduce_loss,
    same_shape,
)
from oneflow_lite.interpreter.dispatch import dispatch, dispatch1, promote
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor

NLL_LOSS = op_expr("nll_loss")
LOG_SOFTMAX = op_expr("log_softmax")
BINARY_CROSS_ENTROPY = op_expr("binary_cross_entropy")
ROWS, LINEAR_ROWS = op_expr("cross_entropy_rows"), op_expr("linear_cross_entropy_rows")
# Logits from which cross entropy is one op, that goes over them in pieces and keeps them alone.
# Smaller ones are log_softmax and nll_loss, of which `flow.compile` makes one loop.
_MANY = 1 << 18
_TILED = 1 << 23  # logits of a linear layer from which the op holds a part at a time
_WIDE = 1024  # classes from which logits (N, C, *) are taken as rows, which may copy them


def _classes(input: Tensor) -> int:
    return input.shape[0 if input.ndim == 1 else 1]


def check_classes(op: str, name: str, target: Any, input: Tensor) -> Tensor:
    """Return class numbers (N, *) or () when they fit an input (N, C, *) or (C,)."""
    shape = input._data.shape
    if not shape:
        expected, hint = "at least 1 dimension, that of the classes", "pass one score per class"
        raise arg_error(op, "input", expected, input, hint, ArgumentError)
    expected_shape = () if len(shape) == 1 else (shape[0], *shape[2:])
    if checks.require_integer(op, target, name)._data.shape == expected_shape:
        return target
    batches_differ = expected_shape and target.ndim and target.shape[0] != expected_shape[0]
    expected = f"shape {expected_shape} for an input of shape {shape}"
    hint = "give one class number for each position of the input"
    raise arg_error(
        op, name, expected, target, hint, ArgumentError if batches_differ else ShapeError
    )


def check_class_weight(
    op: str, name: str, weight: Any, input: Tensor, classes: int | None = None
) -> Tensor:
    """Return weights (C,) when they fit an input (N, C, *) or (C,), or so many classes."""
    classes = _classes(input) if classes is None else classes
    if check_tensor(op, name, weight).shape != (classes,):
        expected = f"shape ({classes},), one weight per class"
        raise arg_error(op, name, expected, weight, "give a weight to each class")
    return check_same_dtype(op, name, weight, input)


def check_same_dtype(op: str, name: str, value: Tensor, input: Tensor) -> Tensor:
    """Return a tensor when it has the dtype of the input."""
    if value._data.dtype == input._data.dtype:
        return value
    expected = f"dtype {input.dtype}, that of the input"
    raise arg_error(
        op, name, expected, value.dtype, "convert one of them with .to(dtype)", DTypeError
    )


def check_factor(op: str, name: str, value: Any, input: Tensor) -> Tensor:
    """Return a tensor when it broadcasts with the input."""
    checks.check_broadcast(op, name, check_tensor(op, name, value), input)
    return value


def check_share(op: str, argument: str, value: Any) -> float:
    """Return a number from 0 to 1."""
    if 0 <= (share := checks.check_number(op, argument, value)) <= 1:
        return share
    hint = "give the share that is spread over the classes"
    raise arg_error(op, argument, "a number from 0 to 1", value, hint, ArgumentError)


ClassNumbers = Annotated[
    Tensor,
    fitting(
        check_classes,
        "Class numbers (N,), (N, *) or (), integers.",
        "i(2, n=3)",
        ArgumentError="When the batch sizes differ.",
        DTypeError="When {x} does not hold integers.",
        IndexRangeError="When a target is no class (checked on the CPU only).",
        ShapeError="When the shape of {x} does not fit.",
    ),
]
ClassWeight = Annotated[
    Tensor,
    fitting(
        check_class_weight,
        "(C,), of the input's dtype; multiplies the loss of each class. With class numbers the "
        "mean is divided by the sum of the weights of the targets.",
        DTypeError="When {x} has another dtype than the input.",
        ShapeError="When {x} has not one number for each class.",
    ),
]
_FACTORS = "Broadcasts to the input's shape; multiplies each element."
_FITTING = fitting(check_factor, _FACTORS, ShapeError="When the shapes do not broadcast.")
Factor = Annotated[Tensor, _FITTING] | None
Share = Annotated[
    float,
    attribute(
        check_share,
        says="From 0 to 1: the share of the target that is spread evenly over the classes.",
        raises={"ArgumentError": "When {x} is not between 0 and 1."},
    ),
]


@functor(
    "functional",
    samples="x(4, 3), i(4, n=3), fixed(pos(3)), ignore_index=1; x(3), i(n=3); "
    "x(2, 3, 2), i(2, 2, n=3), reduction='sum'; x(2, 3, 2, 2), i(2, 2, 2, n=3), reduction='none'",
)
def nll_loss(
    input: RealFloating,
    target: ClassNumbers,
    weight: ClassWeight | None = None,
    size_average: SizeAverage = None,
    ignore_index: Int = -100,
    reduce: Reduce = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return the negative log-likelihood of the target classes: the mean of -input[n, target[n]].

    input: log-probabilities (N, C), (N, C, *) or (C,).
    ignore_index: a target that gives 0 and does not count in the mean.

    >>> log_p = flow.tensor([[-0.1, -2.3], [-1.2, -0.4]])
    >>> flow.nn.functional.nll_loss(log_p, flow.tensor([0, 1]))
    tensor(0.2500)
    """


@functor(
    "functional",
    samples="x(2, 3, 2), i(2, 2, n=3), reduction='none'; x(3), i(n=3), label_smoothing=0.2; "
    "x(2, 3), share(2, 3); x(2, 3), share(2, 3), fixed(pos(3)), reduction='sum'; "
    "x(4, 3), i(4, n=3), fixed(pos(3)), ignore_index=1, label_smoothing=0.3; x(3), i(n=3)",
)
def cross_entropy(
    input: RealFloating,
    target: AnyTensor,
    weight: ClassWeight | None = None,
    size_average: SizeAverage = None,
    ignore_index: Int = -100,
    reduce: Reduce = None,
    reduction: Reduction = "mean",
    label_smoothing: Share = 0.0,
) -> Tensor:
    """Return the cross entropy of softmax(input) and the target.

    input: logits (N, C), (N, C, *) or (C,).
    target: class numbers (N,), (N, *) or (), integers; or probabilities of the input's shape.
    ignore_index: a class number that gives 0 and does not count in the mean.
    IndexRangeError: when a target is no class (checked on the CPU only).
    ShapeError: when a shape does not fit.

    >>> logits = flow.tensor([[2., 0.], [0., 0.]])
    >>> flow.nn.functional.cross_entropy(logits, flow.tensor([0, 1]))
    tensor(0.4100)
    >>> flow.nn.functional.cross_entropy(logits, flow.tensor([[0.9, 0.1], [0.5, 0.5]]))
    tensor(0.5100)
    """
    op, shape = "cross_entropy", input._data.shape
    dim = 0 if len(shape) == 1 else 1
    if target._data.shape == shape and shape:
        real_floating(op, target, "target")
        if ignore_index >= 0:
            raise _no_index_error(op, ignore_index)
        if label_smoothing:
            target = target * (1 - label_smoothing) + label_smoothing / _classes(input)
        losses = F.log_softmax(input, dim) * target
        return reduce_loss(-_sum_over_classes(losses, weight), reduction)
    check_classes(op, "target", target, input)
    if input._data.size >= _MANY and (len(shape) == 2 or (dim and shape[1] >= _WIDE)):
        rows, each = input, target
        if len(shape) > 2:
            rows, each = input.movedim(1, -1).reshape(-1, shape[1]), target.reshape(-1)
        attrs = {"ignore_index": ignore_index, "label_smoothing": label_smoothing, "op": op}
        losses, *_ = dispatch(ROWS, (_single(rows), each, _single(weight)), attrs)
        losses = losses if len(shape) == 2 else losses.reshape(target._data.shape)
        return _reduced(losses, target, weight, ignore_index, reduction, input)
    log_p = dispatch1(LOG_SOFTMAX, input, {"dim": dim})
    attrs = {"ignore_index": ignore_index, "reduction": reduction, "op": op}
    loss = dispatch(NLL_LOSS, (log_p, target, weight), attrs)  # all of it is checked
    if not label_smoothing:
        return loss
    # The smoothed target is (1 - s) one-hot + s / C: the loss above, and an even part.
    even = F.where(target == ignore_index, 0.0, -_sum_over_classes(log_p, weight))
    if reduction == "mean":
        ones = F.full_like(log_p, -1.0)  # whose summed loss is the weight of all targets
        even = even.sum() / nll_loss(ones, target, weight, None, ignore_index, None, "sum")
    elif reduction == "sum":
        even = even.sum()
    return loss * (1 - label_smoothing) + even * (label_smoothing / _classes(log_p))


def _single(x: Tensor | None) -> Tensor | None:
    """Return a half in float32."""
    return x.float() if x is not None and x.dtype.itemsize == 2 else x


def _reduced(
    losses: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    input: Tensor,
) -> Tensor:
    """Reduce the losses of rows; their mean counts the weights of the targets."""
    if reduction == "mean":
        counted = target != ignore_index
        if weight is not None:
            picked = weight.detach()[F.where(counted, target, 0)]
            counted = F.where(counted, _single(picked), 0.0)
        count = counted.sum().to(losses.dtype)
        # The mean of nothing is NaN, and so is its gradient; a division by NaN does not warn.
        losses = losses.sum() / F.where(count == 0, math.nan, count)
    elif reduction == "sum":
        losses = losses.sum()
    return losses.to(input.dtype)


def _no_index_error(op: str, got: int) -> Exception:
    expected, hint = "none for a target of probabilities", "leave it out, or pass class numbers"
    return arg_error(op, "ignore_index", expected, got, hint, ArgumentError)


def _sum_over_classes(x: Tensor, weight: Tensor | None) -> Tensor:
    if weight is not None:
        x = x * weight.reshape(-1, *(1,) * (x.ndim - 2))
    return x.sum(0 if x.ndim == 1 else 1)


@functor(
    "functional",
    samples="x(2, 4), x(3, 4), i(2, n=3), weight=fixed(pos(3)), reduction='none'; "
    "x(4), x(3, 4), i(n=3), linear_bias=x(3), reduction='none'; "
    "x(2, 4), x(3, 4), share(2, 3), weight=fixed(pos(3)), label_smoothing=0.2; "
    "x(2, 4), x(3, 2, 4), i(2, 2, n=3), linear_bias=x(3, 2), ignore_index=1, reduction='sum'",
)
def linear_cross_entropy(
    input: RealFloating,
    linear_weight: RealFloating,
    target: AnyTensor,
    *,
    linear_bias: RealFloating | None = None,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
    ignore_index: int | None = None,
    label_smoothing: Share = 0.0,
    options: Any = None,
) -> Tensor:
    """Return cross_entropy(input @ linear_weightᵀ + linear_bias, target).

    From eight million logits (N, C) on, with class numbers, it holds four million at a time, and
    computes them once more for the gradient. Second derivatives take the logits whole.

    input: (N, F) or (F,).
    linear_weight, linear_bias: (C, F) and (C,), or (C, *, F) and (C, *) for several positions.
    target: class numbers (N, *) or (), or probabilities (N, C, *) or (C,).
    weight, ignore_index, label_smoothing: as in `cross_entropy`; no class is ignored by default.
    options: how PyTorch computes in chunks; it has no effect here.
    ShapeError: when a shape does not fit.
    """
    op = "linear_cross_entropy"
    classes, *positions = linear_weight.shape[:-1] if linear_weight.ndim > 1 else (0,)
    features = linear_weight.shape[-1] if linear_weight.ndim else 0
    if input.ndim not in ((2,) if positions else (1, 2)) or input.shape[-1] != features:
        raise _unfit_error(
            op, "input", f"(N, {features})" if positions else f"(*, {features})", input
        )
    if linear_weight.ndim < 2:
        raise _unfit_error(op, "linear_weight", "(C, F) or (C, *, F)", linear_weight)
    if linear_bias is not None and linear_bias.shape != linear_weight.shape[:-1]:
        raise _unfit_error(op, "linear_bias", linear_weight.shape[:-1], linear_bias)
    shape = (*input.shape[:-1], classes, *positions)
    if ignore_index is None:
        ignore_index = -100
    elif target.shape == shape:
        raise _no_index_error(op, ignore_index)
    if target.shape == shape[:1] and len(shape) == 2 and math.prod(shape) >= _TILED:
        checks.require_integer(op, target, "target")
        operands = (
            (input, linear_weight) if linear_bias is None else (input, linear_weight, linear_bias)
        )
        x, *others = promote(op, *operands)
        if weight is not None:
            check_class_weight(op, "weight", weight, x, classes)
        w, b = map(_single, others if len(others) > 1 else (*others, None))
        inputs = (_single(x), w, b, target, _single(weight))
        attrs = {"ignore_index": ignore_index, "label_smoothing": label_smoothing, "op": op}
        losses, *_ = dispatch(LINEAR_ROWS, inputs, attrs)
        return _reduced(losses, target, weight, ignore_index, reduction, x)
    rows = classes * math.prod(positions)
    bias = None if linear_bias is None else linear_bias.reshape(rows)
    logits = F.linear(input, linear_weight.reshape(rows, features), bias).reshape(shape)
    return cross_entropy(
        logits, target, weight, None, ignore_index, None, reduction, label_smoothing
    )


def _unfit_error(op: str, argument: str, expected: Any, got: Tensor) -> Exception:
    hint = "match the features, classes and positions of linear_weight"
    return arg_error(op, argument, f"shape {expected}", got, hint)


@loss_functor(
    "share(2, 3), share(2, 3); share(2, 3), share(2, 3), fixed(pos(3)), reduction='none'; "
    "share(2, 3), share(2, 3), reduction='sum'"
)
def binary_cross_entropy(input: RealFloating, target: AnyTensor, weight: Factor = None) -> Tensor:
    """Return the mean of -(target · log(input) + (1 - target) · log(1 - input)).

    The logarithms are at least -100, so that the loss is finite.

    input, target: probabilities from 0 to 1, of the same shape and floating dtype.
    ArgumentError: when the shapes differ, or a value is no probability (checked on the CPU only).
    """
    op = "binary_cross_entropy"
    check_same_dtype(op, "target", same_shape(op, "target", target, input), input)
    loss = dispatch(BINARY_CROSS_ENTROPY, (input, target))
    return loss if weight is None else loss * weight


@loss_functor(
    "x(2, 3), share(2, 3); x(2, 3), share(2, 3), fixed(pos(3)), reduction='none'; "
    "x(2, 3), share(2, 3), reduction='sum', pos_weight=fixed(pos(3))",
    "functional flow",
    before="pos_weight",
)
def binary_cross_entropy_with_logits(
    input: RealFloating, target: AnyTensor, weight: Factor = None, pos_weight: Factor = None
) -> Tensor:
    """Return the binary cross entropy of sigmoid(input) and the target, without over- or underflow.

    log(1 + exp(-\\|x\\|)) + max(x, 0) - x · target; pos_weight multiplies -target · log sigmoid(x).

    input, target: logits and probabilities of one shape, real floating.

    >>> x, t = flow.tensor([0., 1000.]), flow.tensor([1., 1.])
    >>> flow.nn.functional.binary_cross_entropy_with_logits(x, t)
    tensor(0.3466)
    """
    op = "binary_cross_entropy_with_logits"
    real_floating(op, same_shape(op, "target", target, input), "target")
    x, t = promote(op, input, target)
    if pos_weight is None:
        loss = F.bce_with_logits(x, t)
    else:
        loss = (1 - t) * x - ((pos_weight - 1) * t + 1) * F.logsigmoid(x)
    return loss if weight is None else loss * weight


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
    input_lengths: TensorOrInts,
    target_lengths: TensorOrInts,
    blank: Int = 0,
    reduction: Reduction = "mean",
    zero_infinity: Flag = False,
) -> Tensor:
    """Return -log p(targets): p adds up all paths that spell them with blanks and repetitions.

    Graves et al., Connectionist Temporal Classification, 2006. The gradient is that of this formula
    for any `log_probs`; PyTorch's is so after log_softmax only. The second derivative exists, the
    third does not.

    log_probs: logarithms of probabilities (T, N, C) or (T, C).
    targets: class numbers (N, S), or all labellings joined in one dimension.
    input_lengths, target_lengths: (N,) or (): how much of each sample counts; tensors or ints.
    reduction: with "mean" each loss is divided by the length of its targets first.
    zero_infinity: infinite losses, of samples too short for their targets, become 0 and are flat.
    IndexRangeError: when a target is no class, or a length too large (checked on the CPU only).
    ShapeError: when a shape does not fit.

    >>> log_p = flow.log(flow.tensor([[[0.5, 0.5]], [[0.5, 0.5]]]))
    >>> flow.ctc_loss(log_p, flow.tensor([[1]]), (2,), (1,)).exp()
    tensor(1.3333)
    """
    op = "ctc_loss"
    if log_probs.dtype.char == "e":
        hint = "convert it with .float()"
        raise arg_error(op, "log_probs", "float32 or float64", log_probs.dtype, hint, DTypeError)
    if log_probs.ndim not in (2, 3):
        raise arg_error(op, "log_probs", "shape (T, N, C) or (T, C)", log_probs, "unsqueeze it")
    batched = log_probs.ndim == 3
    x = log_probs if batched else log_probs.unsqueeze(1)
    batch, classes = x.shape[1:]
    if not 0 <= blank < classes:
        expected = f"a class, 0 to {classes - 1}"
        raise arg_error(op, "blank", expected, blank, "name the class of the blank", ArgumentError)
    if targets.ndim not in (1, 2) or (targets.ndim == 2 and len(targets) != batch):
        expected = f"shape ({batch}, S), or one dimension"
        raise arg_error(op, "targets", expected, targets, "give one labelling for each sample")
    steps = _lengths("input_lengths", input_lengths, x)
    sizes = _lengths("target_lengths", target_lengths, x)
    attrs = {"blank": blank, "zero_infinity": zero_infinity}
    loss, _ = dispatch(op_expr("ctc_loss"), (x, targets, steps, sizes), attrs)
    if reduction == "mean":
        loss = loss / sizes.clamp_min(1).to(loss.dtype)
    return reduce_loss(loss if batched else loss[0], reduction)


def _lengths(name: str, value: Any, x: Tensor) -> Tensor:
    """Return lengths (N,) as a tensor of int64."""
    if isinstance(value, (tuple, list)):
        value = x.new_tensor([checks.check_int("ctc_loss", name, n) for n in value], dtype="int64")
    lengths = checks.require_integer("ctc_loss", value, name).long().reshape(-1)
    if lengths.shape != (x.shape[1],):
        raise arg_error(
            "ctc_loss", name, f"shape ({x.shape[1]},)", value, "give one for each sample"
        )
    return lengths
