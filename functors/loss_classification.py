"""Losses of classes and probabilities: what users call."""

from __future__ import annotations

from typing import Any

from oneflow_lite.errors import ArgumentError, DTypeError, ShapeError, bad_argument
from oneflow_lite.functors.arithmetic import mul, where
from oneflow_lite.functors.checks import (
    check_broadcast,
    check_int,
    check_tensor,
    require_integer,
)
from oneflow_lite.functors.creation import full_like
from oneflow_lite.functors.elementwise_checks import check_number, real_floating
from oneflow_lite.functors.loss_reduction import check_reduction, reduce_loss, same_shape
from oneflow_lite.functors.reduce import sum
from oneflow_lite.functors.shape import reshape
from oneflow_lite.functors.softmax import log_softmax
from oneflow_lite.interpreter import dispatch, promote
from oneflow_lite.op_expr import op_expr
from oneflow_lite.registry import FUNCTORS, register_functor
from oneflow_lite.tensor import Tensor

NLL_LOSS = op_expr("nll_loss")
BINARY_CROSS_ENTROPY = op_expr("binary_cross_entropy")
BCE_WITH_LOGITS = op_expr("bce_with_logits")


@register_functor("nll_loss")
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-likelihood of the target classes: the mean of -input[n, target[n]].

    Parameters
    ----------
    input : Tensor
        Log-probabilities (N, C), (N, C, *) or (C,), floating.
    target : Tensor
        Class numbers (N,), (N, *) or (), integers.
    weight : Tensor, optional
        (C,), of the input's dtype; multiplies the loss of each class, and the mean is divided by
        the sum of the weights of the targets.
    size_average, reduce : bool, optional
        PyTorch's deprecated names for `reduction`.
    ignore_index : int
        A target that gives 0 and does not count in the mean.
    reduction : {"mean", "sum", "none"}
        Whether the losses are averaged, summed or returned.

    Raises
    ------
    IndexRangeError
        When a target is no class (checked on the CPU only).
    ArgumentError
        When the batch sizes differ, or the reduction is unknown.
    ShapeError, DTypeError
        When other shapes or dtypes do not fit.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> log_p = flow.tensor([[-0.1, -2.3], [-1.2, -0.4]])
    >>> flow.nn.functional.nll_loss(log_p, flow.tensor([0, 1]))
    tensor(0.2500)
    """
    reduction = check_reduction("nll_loss", reduction, size_average, reduce)
    _check_classes("nll_loss", input, target)
    _check_weight("nll_loss", weight, input)
    ignore_index = check_int("nll_loss", "ignore_index", ignore_index)
    attrs = {"ignore_index": ignore_index, "reduction": reduction}
    return dispatch(NLL_LOSS, (input, target, weight), attrs)


@register_functor("cross_entropy")
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the cross entropy of softmax(input) and the target.

    Parameters
    ----------
    input : Tensor
        Logits (N, C), (N, C, *) or (C,), floating.
    target : Tensor
        Class numbers (N,), (N, *) or (), integers; or probabilities of the input's shape, floating.
    weight : Tensor, optional
        (C,), of the input's dtype; multiplies the loss of each class. With class numbers the mean
        is divided by the sum of the weights of the targets.
    size_average, reduce : bool, optional
        PyTorch's deprecated names for `reduction`.
    ignore_index : int
        A class number that gives 0 and does not count in the mean.
    reduction : {"mean", "sum", "none"}
        Whether the losses are averaged, summed or returned.
    label_smoothing : float
        From 0 to 1: the share of the target that is spread evenly over the classes.

    Raises
    ------
    IndexRangeError
        When a target is no class (checked on the CPU only).
    ArgumentError
        When the batch sizes differ, or the reduction or the smoothing are not possible.
    ShapeError, DTypeError
        When other shapes or dtypes do not fit.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> logits = flow.tensor([[2., 0.], [0., 0.]])
    >>> flow.nn.functional.cross_entropy(logits, flow.tensor([0, 1]))
    tensor(0.4100)
    >>> flow.nn.functional.cross_entropy(logits, flow.tensor([[0.9, 0.1], [0.5, 0.5]]))
    tensor(0.5100)
    """
    op = "cross_entropy"
    reduction = check_reduction(op, reduction, size_average, reduce)
    smoothing = check_number(op, "label_smoothing", label_smoothing)
    if not 0 <= smoothing <= 1:
        raise bad_argument(
            ArgumentError,
            op,
            "label_smoothing",
            expected="a number from 0 to 1",
            got=label_smoothing,
            mend="give the share that is spread over the classes",
        )
    real_floating(op, input)
    probabilities = check_tensor(op, "target", target).shape == input.shape and input.ndim > 0
    if probabilities:
        real_floating(op, target, "target")
        _check_weight(op, weight, input)
        if check_int(op, "ignore_index", ignore_index) >= 0:
            raise bad_argument(
                ArgumentError,
                op,
                "ignore_index",
                expected="none for a target of probabilities",
                got=ignore_index,
                mend="leave it out, or pass class numbers",
            )
    else:
        _check_classes(op, input, target)
    log_p = log_softmax(input, 0 if input.ndim == 1 else 1)
    if probabilities:
        return _soft_cross_entropy(log_p, target, weight, reduction, smoothing)
    _check_weight(op, weight, input)
    ignore_index = check_int(op, "ignore_index", ignore_index)
    attrs = {"ignore_index": ignore_index, "reduction": reduction, "op": op}
    loss: Tensor = dispatch(NLL_LOSS, (log_p, target, weight), attrs)  # all of it is checked
    if not smoothing:
        return loss
    even = -_sum_over_classes(log_p, weight)
    even = where(target == ignore_index, 0.0, even)
    if reduction == "mean":
        ones = full_like(log_p, -1.0)  # whose summed loss is the weight of all targets
        even = sum(even) / nll_loss(ones, target, weight, None, ignore_index, None, "sum")
    elif reduction == "sum":
        even = sum(even)
    return loss * (1 - smoothing) + even * (smoothing / _classes(log_p))


def _soft_cross_entropy(
    log_p: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float
) -> Tensor:
    """Return the cross entropy of log-probabilities and probabilities."""
    if smoothing:
        target = target * (1 - smoothing) + smoothing / _classes(log_p)
    loss = -_sum_over_classes(log_p * target, weight)
    return reduce_loss(loss, reduction)


def _classes(input: Tensor) -> int:
    return input.shape[0 if input.ndim == 1 else 1]


def _sum_over_classes(x: Tensor, weight: Tensor | None) -> Tensor:
    if weight is not None:
        x = x * reshape(weight, (-1, *(1,) * (x.ndim - 2)))
    return sum(x, 0 if x.ndim == 1 else 1)


def _check_classes(op: str, input: Tensor, target: Tensor) -> None:
    """Check an input (N, C, *) or (C,) and class numbers (N, *) or ()."""
    if real_floating(op, input).ndim == 0:
        raise bad_argument(
            ArgumentError,
            op,
            "input",
            expected="at least 1 dimension, that of the classes",
            got="shape ()",
            mend="pass one score per class",
        )
    require_integer(op, target, "target")
    expected = () if input.ndim == 1 else (input.shape[0], *input.shape[2:])
    if target.shape == expected:
        return
    batches_differ = expected and target.ndim and target.shape[0] != expected[0]
    raise bad_argument(
        ArgumentError if batches_differ else ShapeError,
        op,
        "target",
        expected=f"shape {expected} for an input of shape {input.shape}",
        got=f"shape {target.shape}",
        mend="give one class number for each position of the input",
    )


def _check_weight(op: str, weight: Tensor | None, input: Tensor) -> None:
    if weight is None:
        return
    if check_tensor(op, "weight", weight).shape != (_classes(input),):
        raise bad_argument(
            ShapeError,
            op,
            "weight",
            expected=f"shape ({_classes(input)},), one weight per class",
            got=f"shape {weight.shape}",
            mend="give a weight to each class",
        )
    _check_dtype(op, "weight", weight, input)


def _check_dtype(op: str, name: str, value: Tensor, input: Tensor) -> None:
    if value.dtype != input.dtype:
        raise bad_argument(
            DTypeError,
            op,
            name,
            expected=f"dtype {input.dtype}, that of the input",
            got=value.dtype,
            mend="convert one of them with .to(dtype)",
        )


@register_functor("binary_cross_entropy")
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of -(target · log(input) + (1 - target) · log(1 - input)).

    The logarithms are at least -100, so that the loss is finite.

    Parameters
    ----------
    input, target : Tensor
        Probabilities from 0 to 1, of one shape and one floating dtype.
    weight : Tensor, optional
        Broadcasts to the input's shape; multiplies each element.
    size_average, reduce : bool, optional
        PyTorch's deprecated names for `reduction`.
    reduction : {"mean", "sum", "none"}
        Whether the elements are averaged, summed or returned.

    Raises
    ------
    ArgumentError
        When the shapes differ, the reduction is unknown, or a value is no probability (checked on
        the CPU only).
    DTypeError
        When the dtypes differ or are not floating.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.functional.binary_cross_entropy(flow.tensor([0.5, 1.]), flow.tensor([1., 1.]))
    tensor(0.3466)
    """
    op = "binary_cross_entropy"
    reduction = check_reduction(op, reduction, size_average, reduce)
    real_floating(op, input)
    _check_dtype(op, "target", same_shape(op, "target", target, input), input)
    loss = dispatch(BINARY_CROSS_ENTROPY, (input, target))
    return reduce_loss(_weighted(op, loss, weight), reduction)


def _weighted(op: str, loss: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None:
        return loss
    check_broadcast(op, "weight", check_tensor(op, "weight", weight), loss)
    return mul(loss, weight)


@register_functor("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return the binary cross entropy of sigmoid(input) and the target, without over- or underflow.

    log(1 + exp(-|x|)) + max(x, 0) - x · target; with `pos_weight` the part -target · log sigmoid(x)
    is multiplied by it.

    Parameters
    ----------
    input, target : Tensor
        Logits and probabilities of one shape, floating.
    weight, pos_weight : Tensor, optional
        Broadcast to the input's shape; the first multiplies each element.
    size_average, reduce : bool, optional
        PyTorch's deprecated names for `reduction`.
    reduction : {"mean", "sum", "none"}
        Whether the elements are averaged, summed or returned.

    Raises
    ------
    ArgumentError
        When the shapes of input and target differ, or the reduction is unknown.
    DTypeError
        When the input or the target is not floating.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x, t = flow.tensor([0., 1000.]), flow.tensor([1., 1.])
    >>> flow.nn.functional.binary_cross_entropy_with_logits(x, t)
    tensor(0.3466)
    """
    op = "binary_cross_entropy_with_logits"
    reduction = check_reduction(op, reduction, size_average, reduce)
    real_floating(op, input)
    real_floating(op, same_shape(op, "target", target, input), "target")
    x, t = promote(op, input, target)
    if pos_weight is None:
        loss = dispatch(BCE_WITH_LOGITS, (x, t))
    else:
        check_broadcast(op, "pos_weight", check_tensor(op, "pos_weight", pos_weight), t)
        factor = (pos_weight - 1) * t + 1
        loss = (1 - t) * x - factor * FUNCTORS.get("logsigmoid")(x)
    return reduce_loss(_weighted(op, loss, weight), reduction)
