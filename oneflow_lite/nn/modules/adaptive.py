"""AdaptiveLogSoftmaxWithLoss: the probabilities of very many classes, the rare ones in clusters."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from oneflow_lite.arrays.device import DeviceLike
from oneflow_lite.arrays.dtype import DTypeLike
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as FUNCTORS
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, ShapeError, arg_error
from oneflow_lite.functors.declaring.checks import check_int, check_ndim, check_number
from oneflow_lite.nn import functional as F
from oneflow_lite.nn.containers import ModuleList, Sequential
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.linear import Linear
from oneflow_lite.tensors.tensor import Tensor

_OP = "AdaptiveLogSoftmaxWithLoss"


class _ASMoutput(NamedTuple):
    """The log-probabilities of the targets, and minus their mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of classes that are sorted by falling frequency (Grave et al., 2017).

    A head rates the classes of the shortlist, and each cluster of rarer classes as a single class;
    within a cluster, a tail of smaller size rates its classes.

    Parameters
    ----------
    in_features : int
        Size of the last dimension of the input.
    n_classes : int
        The number of classes.
    cutoffs : sequence of int
        Where the shortlist ends, and each cluster but the last: rising, from 1 to n_classes - 1.
    div_value : float
        The i-th tail (from 0 on) is of size in_features / div_value ** (i + 1), rounded down.
    head_bias : bool
        Whether the head has a bias.
    device, dtype : optional
        Of the parameters.

    Notes
    -----
    All tails are computed for all inputs, so that nothing depends on the values of the targets and
    the call can be captured.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> rate = flow.nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs=[5, 10])
    >>> output, loss = rate(flow.randn(4, 16), flow.tensor([0, 7, 12, 19]))
    >>> output.shape, loss.shape, rate.log_prob(flow.randn(4, 16)).shape
    ((4,), (), (4, 20))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.in_features = check_int(_OP, "in_features", in_features, 0)
        self.n_classes = check_int(_OP, "n_classes", n_classes, 0)
        self.div_value = check_number(_OP, "div_value", div_value)
        if self.div_value <= 0:
            hint = "4 is usual"
            raise arg_error(_OP, "div_value", "more than 0", div_value, hint, ArgumentError)
        expected = f"rising ints from 1 to {n_classes - 1}, at least one"
        given: Any = cutoffs
        if not isinstance(given, Iterable):
            hint = "pass a list"
            raise arg_error(_OP, "cutoffs", expected, repr(given), hint, ArgumentTypeError)
        bounds = [0, *given, self.n_classes]
        whole = all(isinstance(bound, (int, np.integer)) for bound in bounds)
        if len(bounds) < 3 or not whole or any(a >= b for a, b in itertools.pairwise(bounds)):
            raise arg_error(_OP, "cutoffs", expected, cutoffs, "sort and trim them", ArgumentError)
        self.cutoffs = [int(bound) for bound in bounds[1:]]
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(self.in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(itertools.pairwise(self.cutoffs)):
            size = int(self.in_features // self.div_value ** (i + 1))
            first = Linear(self.in_features, size, bias=False, **made)
            self.tail.append(Sequential(first, Linear(size, high - low, bias=False, **made)))

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """Return the log-probability of each target, and the loss: minus their mean.

        Input (N, in_features) and target (N), or (in_features) and ().

        Raises
        ------
        ShapeError
            When the shapes do not fit.
        IndexRangeError
            When a target is negative or too large (not checked on CUDA).
        """
        if check_ndim(_OP, target_, (0, 1), "target_").shape != input_.shape[:-1]:
            expected = f"shape {input_.shape[:-1]}, one class for each input"
            raise arg_error(_OP, "target_", expected, target_, "give as many", ShapeError)
        x, target = (input_, target_) if target_.ndim else (input_[None], target_[None])
        in_head, parts = target, []
        for i, (low, high) in enumerate(itertools.pairwise(self.cutoffs)):
            outside = target < low
            if i < self.n_clusters - 1:  # a target that is too large is left to the last tail
                outside = outside | (target >= high)
            in_head = in_head.masked_fill(~outside, self.shortlist_size + i)
            at = (target - low).masked_fill(outside, 0)
            rated = F.log_softmax(self.tail[i](x), 1).gather(1, at[:, None])[:, 0]
            parts.append(rated.masked_fill(outside, 0.0))
        rated = F.log_softmax(self.head(x), 1).gather(1, in_head[:, None])[:, 0]
        output = sum(parts, rated)
        return _ASMoutput(output if target_.ndim else output[0], -output.mean())

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probabilities of all classes, (N, n_classes), for (N, in_features)."""
        head = F.log_softmax(self.head(check_ndim(_OP, input, (2,))), 1)
        parts = [head[:, : self.shortlist_size]]
        for i, tail in enumerate(self.tail, self.shortlist_size):
            parts.append(head[:, i : i + 1] + F.log_softmax(tail(input), 1))
        return FUNCTORS.cat(parts, 1)  # type: ignore[no-any-return]

    def predict(self, input: Tensor) -> Tensor:
        """Return the most probable class of each input (N, in_features)."""
        return self.log_prob(input).argmax(1)


guard_all(globals())
