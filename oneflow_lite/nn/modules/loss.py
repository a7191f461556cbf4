"""Losses as modules: each keeps its options and calls the functor of the same name."""

from __future__ import annotations

import warnings

from oneflow_lite.nn import functional as F
from oneflow_lite.nn.module import Module
from oneflow_lite.tensor import Tensor


def _reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Translate PyTorch's former arguments, kept for old scripts, into `reduction`."""
    if size_average is None and reduce is None:
        return reduction
    meant = "none" if reduce is False else "sum" if size_average is False else "mean"
    warnings.warn(
        f"size_average and reduce are deprecated; pass reduction={meant!r}",
        DeprecationWarning,
        stacklevel=4,
    )
    return meant


class _Loss(Module):
    """A loss with a `reduction`: 'mean', 'sum' or 'none'."""

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.reduction = _reduction(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    """A loss with a weight, which moves with the module and is part of its state."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class MSELoss(_Loss):
    """(input - target)^2.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.MSELoss()(flow.tensor([1.0, 3.0]), flow.tensor([1.0, 1.0]))
    tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """|input - target|.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.L1Loss()(flow.tensor([1.0, 3.0]), flow.tensor([1.0, 1.0]))
    tensor(1.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Quadratic below `beta`, linear above: d^2 / (2 beta) where d = |input - target| < beta,
    d - beta / 2 elsewhere.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.SmoothL1Loss()(flow.tensor([3.0]), flow.tensor([1.0]))
    tensor(1.5000)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Quadratic below `delta`, linear above: d^2 / 2 where d = |input - target| < delta,
    delta * (d - delta / 2) elsewhere.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.HuberLoss(delta=2.0)(flow.tensor([4.0]), flow.tensor([1.0]))
    tensor(4.)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class NLLLoss(_WeightedLoss):
    """-weight[target] * input[target] for log-probabilities `input` (N, C, ...).

    Parameters
    ----------
    weight : Tensor, optional
        One weight for each class.
    ignore_index : int
        Targets that do not count.
    reduction : {"mean", "sum", "none"}
        The mean is weighted.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.NLLLoss()(flow.tensor([[-0.5, -1.5]]), flow.tensor([1]))
    tensor(1.5000)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.nll_loss(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class CrossEntropyLoss(_WeightedLoss):
    """Log-softmax over the classes of `input` (N, C, ...), then the negative log-likelihood.

    Parameters
    ----------
    weight : Tensor, optional
        One weight for each class.
    ignore_index : int
        Targets that do not count, where targets are class indices.
    reduction : {"mean", "sum", "none"}
        The mean is weighted.
    label_smoothing : float
        Share of the target's probability that is spread over all classes.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.CrossEntropyLoss()(flow.tensor([[1.0, 1.0]]), flow.tensor([0]))
    tensor(0.6931)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(_WeightedLoss):
    """-(target * log(input) + (1 - target) * log(1 - input)) for probabilities `input`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.BCELoss()(flow.tensor([0.5]), flow.tensor([1.0]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """`BCELoss` of sigmoid(input), computed without overflow.

    Parameters
    ----------
    weight : Tensor, optional
        Multiplies the loss of each element.
    reduction : {"mean", "sum", "none"}
        What is done with the losses.
    pos_weight : Tensor, optional
        Multiplies the loss of positive targets.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.BCEWithLogitsLoss()(flow.tensor([0.0]), flow.tensor([1.0]))
    tensor(0.6931)
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.binary_cross_entropy_with_logits(
            input,
            target,
            weight=self.weight,
            pos_weight=self.pos_weight,
            reduction=self.reduction,
        )


class KLDivLoss(_Loss):
    """target * (log(target) - input), where `input` holds log-probabilities.

    Parameters
    ----------
    reduction : {"mean", "batchmean", "sum", "none"}
        'batchmean' divides by the first size, which is the mathematical definition.
    log_target : bool
        Whether `target` holds log-probabilities too.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.KLDivLoss(reduction="sum")(flow.tensor([-1.0]), flow.tensor([1.0]))
    tensor(1.)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class CosineSimilarity(Module):
    """The cosine of the angle between `x1` and `x2` along `dim`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.CosineSimilarity(dim=0)(flow.tensor([3.0, 4.0]), flow.tensor([4.0, 3.0]))
    tensor(0.9600)
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the cosines."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
