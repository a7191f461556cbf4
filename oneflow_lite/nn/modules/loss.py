"""Losses as modules: each keeps its options and calls the functor of the same name.

`reduction` is the function of the losses of elements: "mean", "sum" or "none"; `size_average` and
`reduce` are PyTorch's older spelling of it. A `weight` moves with the module.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar
from typing import Any

from oneflow_lite.arrays.device import DeviceLike
from oneflow_lite.arrays.dtype import DTypeLike
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, FlowError, arg_error
from oneflow_lite.nn import functional as F
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.distance import PairwiseDistance
from oneflow_lite.nn.modules.layer import layer
from oneflow_lite.nn.modules.linear import Linear
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.tensor import Tensor

_PAIR = "input, target"


class _Loss(Module):
    reduction: str

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.reduction = reduction
        self.__post_init__(size_average, reduce)

    def __post_init__(self, size_average: bool | None = None, reduce: bool | None = None) -> None:
        if size_average is not None or reduce is not None:
            from oneflow_lite.functors.loss import former_reduction

            op = type(self).__name__
            self.reduction = former_reduction(op, size_average, reduce)
        self._check()

    def _check(self) -> None:
        """Raise for options that the loss cannot have."""

    def _check_margin(self) -> None:
        if not self.margin > 0:
            raise self._option_error("margin", "more than 0", "make it positive")

    def _option_error(
        self, name: str, expected: str, hint: str, kind: type[FlowError] = ArgumentError
    ) -> FlowError:
        got = getattr(self, name)
        got = f"shape {got.shape}" if isinstance(got, Tensor) else got
        return arg_error(type(self).__name__, name, expected, got, hint, kind)

    def extra_repr(self) -> str:
        """Return nothing, as PyTorch does."""
        return ""


class _WeightedLoss(_Loss):
    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        Module.__init__(self)
        self.reduction = reduction
        self.register_buffer("weight", weight)
        self.__post_init__(size_average, reduce)


# --- Of elements ----------------------------------------------------------------------------------


@layer("l1_loss", _PAIR)
class L1Loss(_Loss):
    """|input - target|.

    >>> flow.nn.L1Loss()(flow.tensor([1.0, 3.0]), flow.tensor([1.0, 1.0]))
    tensor(1.)
    """

    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"


@layer("mse_loss", _PAIR)
class MSELoss(_Loss):
    """(input - target)².

    >>> flow.nn.MSELoss()(flow.tensor([1.0, 3.0]), flow.tensor([1.0, 1.0]))
    tensor(2.)
    """

    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"


@layer("smooth_l1_loss", _PAIR)
class SmoothL1Loss(_Loss):
    """Quadratic below `beta`, linear above: d² / (2·beta) where d = |input - target| < beta,
    d - beta / 2 elsewhere.

    >>> flow.nn.SmoothL1Loss()(flow.tensor([3.0]), flow.tensor([1.0]))
    tensor(1.5000)
    """

    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"
    beta: float = 1.0


@layer("huber_loss", _PAIR)
class HuberLoss(_Loss):
    """Quadratic below `delta`, linear above: d² / 2 where d = |input - target| < delta,
    delta · (d - delta / 2) elsewhere.

    >>> flow.nn.HuberLoss(delta=2.0)(flow.tensor([4.0]), flow.tensor([1.0]))
    tensor(4.)
    """

    reduction: str = "mean"
    delta: float = 1.0

    def _check(self) -> None:
        if not isinstance(self.delta, (int, float)):
            raise self._option_error("delta", "a number", "pass a float", ArgumentTypeError)


@layer("kl_div", _PAIR)
class KLDivLoss(_Loss):
    """target · (log(target) - input), where `input` holds log-probabilities.

    reduction: "batchmean", too, which divides by the first size, as the divergence is defined.
    log_target: whether `target` holds log-probabilities, too.

    >>> flow.nn.KLDivLoss(reduction="sum")(flow.tensor([-1.0]), flow.tensor([1.0]))
    tensor(1.)
    """

    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"
    log_target: bool = False


@layer("poisson_nll_loss", "log_input, target")
class PoissonNLLLoss(_Loss):
    """exp(log_input) - target · log_input, for counts `target`.

    log_input: without it the first input is the mean itself, to which `eps` is added.
    full: whether Stirling's approximation of log(target!) is added.

    >>> flow.nn.PoissonNLLLoss()(flow.tensor([0.0]), flow.tensor([2.0]))
    tensor(1.)
    """

    log_input: bool = True
    full: bool = False
    size_average: InitVar[bool | None] = None
    eps: float = 1e-8
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"


@layer("gaussian_nll_loss", "input, target, var")
class GaussianNLLLoss(_Loss):
    """(log(var) + (input - target)² / var) / 2, for variances `var`, a tensor or a number.

    full: whether log(2π) / 2 is added.
    eps: the least variance.

    >>> flow.nn.GaussianNLLLoss()(flow.tensor([1.0]), flow.tensor([3.0]), 1.0)
    tensor(2.)
    """

    _: KW_ONLY
    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"


# --- Of classes and labels ------------------------------------------------------------------------


@layer("nll_loss", _PAIR)
class NLLLoss(_WeightedLoss):
    """-weight[target] · input[target] for log-probabilities `input` (N, C, *).

    weight: one for each class; the mean is weighted.
    ignore_index: targets that do not count.

    >>> flow.nn.NLLLoss()(flow.tensor([[-0.5, -1.5]]), flow.tensor([1]))
    tensor(1.5000)
    """

    weight: Tensor | None = None
    size_average: InitVar[bool | None] = None
    ignore_index: int = -100
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"


@layer("nll_loss", _PAIR)
class NLLLoss2d(NLLLoss):
    """`NLLLoss` under a former name.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     flow.nn.NLLLoss2d()(flow.zeros(1, 2, 1, 1), flow.ones(1, 1, 1, dtype=flow.int64))
    tensor(0.)
    """

    def _check(self) -> None:
        warn_caller("NLLLoss2d(): deprecated; use NLLLoss", FutureWarning)


@layer("cross_entropy", _PAIR)
class CrossEntropyLoss(_WeightedLoss):
    """Log-softmax over the classes of `input` (N, C, *), then the negative log-likelihood.

    weight: one for each class; the mean is weighted.
    ignore_index: targets that do not count, where targets are class indices.
    label_smoothing: share of the target's probability that is spread over all classes.

    >>> flow.nn.CrossEntropyLoss()(flow.tensor([[1.0, 1.0]]), flow.tensor([0]))
    tensor(0.6931)
    """

    weight: Tensor | None = None
    size_average: InitVar[bool | None] = None
    ignore_index: int = -100
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"
    label_smoothing: float = 0.0


@layer()
class LinearCrossEntropyLoss(_WeightedLoss):
    """`CrossEntropyLoss` of a `Linear` layer, which is part of the module.

    in_features, num_classes, out_features: sizes of the inputs (N, F), and of the layer's outputs
      (N, C, *), where several positions are classified at once.
    options: how PyTorch computes in chunks; it has no effect here.

    >>> loss = flow.nn.LinearCrossEntropyLoss(3, 2)
    >>> _ = loss.linear.weight.data.zero_()
    >>> loss(flow.ones(1, 3), flow.tensor([0])).detach()
    tensor(0.6931)
    """

    in_features: InitVar[int]
    num_classes: int
    _: KW_ONLY
    out_features: tuple[int, ...] = ()
    bias: InitVar[bool] = False
    device: InitVar[DeviceLike | None] = None
    dtype: InitVar[DTypeLike | None] = None
    reduction: str = "mean"
    weight: Tensor | None = None
    ignore_index: int | None = None
    label_smoothing: float = 0.0
    options: Any = None

    def __post_init__(self, in_features: int, bias: bool, device: Any, dtype: Any) -> None:
        if self.weight is not None and self.weight.shape != (self.num_classes,):
            raise self._option_error(
                "weight", f"shape ({self.num_classes},)", "give one for each class"
            )
        if not 0 <= self.label_smoothing <= 1:
            raise self._option_error(
                "label_smoothing", "a share from 0 to 1", "pass the share to spread"
            )
        rows = math.prod(self.out_features, start=self.num_classes)
        self.linear = Linear(in_features, rows, bias, device, dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        linear, shape = self.linear, (self.num_classes, *self.out_features)
        return F.linear_cross_entropy(
            input,
            linear.weight.reshape(*shape, linear.in_features),
            target,
            linear_bias=None if linear.bias is None else linear.bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
        )

    def extra_repr(self) -> str:
        """Return the options."""
        sizes = f"in_features={self.linear.in_features}, num_classes={self.num_classes}"
        names = ("reduction", "ignore_index", "label_smoothing", "options")
        more = ", ".join(f"{name}={getattr(self, name)}" for name in names)
        bias = self.linear.bias is not None
        return f"{sizes}, out_features={self.out_features}, bias={bias}, {more}"


@layer("binary_cross_entropy", _PAIR)
class BCELoss(_WeightedLoss):
    """-(target · log(input) + (1 - target) · log(1 - input)) for probabilities `input`.

    >>> flow.nn.BCELoss()(flow.tensor([0.5]), flow.tensor([1.0]))
    tensor(0.6931)
    """

    weight: Tensor | None = None
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"


@layer("binary_cross_entropy_with_logits", _PAIR)
class BCEWithLogitsLoss(_Loss):
    """`BCELoss` of sigmoid(input), computed without overflow.

    weight: multiplies the loss of each element.
    pos_weight: multiplies the loss of positive targets.

    >>> flow.nn.BCEWithLogitsLoss()(flow.tensor([0.0]), flow.tensor([1.0]))
    tensor(0.6931)
    """

    weight: Tensor | None = None
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"
    pos_weight: Tensor | None = None


@layer("multilabel_soft_margin_loss", _PAIR)
class MultiLabelSoftMarginLoss(_WeightedLoss):
    """`BCEWithLogitsLoss` averaged over the classes of `input` (*, C).

    >>> flow.nn.MultiLabelSoftMarginLoss()(flow.zeros(1, 2), flow.tensor([[0.0, 1.0]]))
    tensor(0.6931)
    """

    weight: Tensor | None = None
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"


@layer("ctc_loss", "log_probs, targets, input_lengths, target_lengths")
class CTCLoss(_Loss):
    """-log of the probability of a sequence without an alignment (Graves et al., 2006).

    Called with log-probabilities (T, N, C), sequences (N, S) or all sequences in a row, and the
    lengths of both.

    blank: the class that stands for no label.
    zero_infinity: whether the loss of a sequence that does not fit is 0.

    >>> log_probs = flow.full((2, 1, 2), 0.5).log()
    >>> flow.nn.CTCLoss(reduction="sum")(log_probs, flow.tensor([[1]]), [2], [1])
    tensor(0.2877)
    """

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False


# --- With a margin --------------------------------------------------------------------------------


@layer("soft_margin_loss", _PAIR)
class SoftMarginLoss(_Loss):
    """log(1 + exp(-target · input)), where `target` is 1 or -1.

    >>> flow.nn.SoftMarginLoss()(flow.tensor([0.0]), flow.tensor([1.0]))
    tensor(0.6931)
    """

    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"


@layer("hinge_embedding_loss", _PAIR)
class HingeEmbeddingLoss(_Loss):
    """The distance `input` where `target` is 1, max(0, margin - input) where it is -1.

    >>> loss = flow.nn.HingeEmbeddingLoss(2.0, reduction="none")
    >>> loss(flow.tensor([0.5, 0.5]), flow.tensor([1, -1]))
    tensor([0.5000, 1.5000])
    """

    margin: float = 1.0
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"


@layer("margin_ranking_loss", "input1, input2, target")
class MarginRankingLoss(_Loss):
    """max(0, margin - target · (input1 - input2)), where `target` is 1 or -1.

    >>> flow.nn.MarginRankingLoss(2.0)(flow.ones(1), flow.zeros(1), flow.ones(1))
    tensor(1.)
    """

    margin: float = 0.0
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"


@layer("cosine_embedding_loss", "input1, input2, target")
class CosineEmbeddingLoss(_Loss):
    """1 - cos where `target` is 1, max(0, cos - margin) where it is -1; cos is of two vectors.

    >>> x, y = flow.tensor([[3.0, 4.0]]), flow.tensor([[4.0, 3.0]])
    >>> flow.nn.CosineEmbeddingLoss()(x, y, flow.tensor([1]))
    tensor(0.0400)
    """

    margin: float = 0.0
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"


@layer("multi_margin_loss", _PAIR)
class MultiMarginLoss(_WeightedLoss):
    """Σ_c weight[t] · max(0, margin - input[t] + input[c])^p / C over the classes c other than t.

    >>> flow.nn.MultiMarginLoss()(flow.tensor([0.0, 0.5]), flow.tensor(1))
    tensor(0.2500)
    """

    p: int = 1
    margin: float = 1.0
    weight: Tensor | None = None
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"

    def _check(self) -> None:
        if self.p not in (1, 2):
            raise self._option_error("p", "1 or 2", "take one of them")
        if self.weight is not None and self.weight.ndim != 1:
            raise self._option_error("weight", "one dimension", "give one for each class")


@layer("multilabel_margin_loss", _PAIR)
class MultiLabelMarginLoss(_Loss):
    """Σ_t Σ_c max(0, 1 - input[t] + input[c]) / C over the labels t and all other classes c.

    The labels of a sample are the class numbers in `target` up to the first negative one.

    >>> flow.nn.MultiLabelMarginLoss()(flow.tensor([0.0, 0.5]), flow.tensor([1, -1]))
    tensor(0.2500)
    """

    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"


@layer("triplet_margin_loss", "anchor, positive, negative")
class TripletMarginLoss(_Loss):
    """max(0, margin + d(anchor, positive) - d(anchor, negative)), d being a `PairwiseDistance`.

    swap: whether d(positive, negative) is taken where it is smaller than d(anchor, negative).

    >>> near, far = flow.tensor([[0.0, 0.0]]), flow.tensor([[0.0, 1.5]])
    >>> flow.nn.TripletMarginLoss(margin=2.0)(near, near, far)
    tensor(0.5000)
    """

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"

    _check = _Loss._check_margin


@layer("triplet_margin_with_distance_loss", "anchor, positive, negative")
class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with a distance of one's own, by default `PairwiseDistance`.

    >>> near, far = flow.tensor([[0.0, 0.0]]), flow.tensor([[0.0, 1.5]])
    >>> distance = flow.nn.functional.l1_loss
    >>> loss = flow.nn.TripletMarginWithDistanceLoss(distance_function=distance)
    >>> loss(near, near, far)
    tensor(0.2500)
    """

    _: KW_ONLY
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None
    margin: float = 1.0
    swap: bool = False
    reduction: str = "mean"

    def _check(self) -> None:
        self._check_margin()
        if self.distance_function is None:
            self.distance_function = PairwiseDistance()


guard_all(globals())
