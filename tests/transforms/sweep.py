"""The samples of all registered ops, as functions to transform."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

import oneflow_lite as flow
from tests.op_samples import Sample, every_op, samples

PARTS = 4


@attrs.frozen
class Case:
    """A sample of an op, and which of its inputs are transformed."""

    op: str
    sample: Sample
    which: tuple[int, ...]

    def __str__(self) -> str:
        kinds = ",".join(f"{x.dtype}{list(x.shape)}" for x in self.sample.inputs)
        return f"{self.op}({kinds}) by {self.which}"

    def function(self, *inputs: flow.Tensor) -> Any:
        """Call the sample from one seed; what it differentiates by requires gradients."""
        given = list(inputs)
        for i in self.sample.differentiable:
            if not given[i].requires_grad:
                given[i] = given[i]._cut().requires_grad_()
        flow.manual_seed(5)
        return self.sample.call(*given)


def ops_of(part: int) -> list[str]:
    """Return the ops of one of `PARTS` parts."""
    return every_op()[part::PARTS]


def cases(op: str, single: bool, of: Callable[[Sample], tuple[int, ...]]) -> Iterator[Case]:
    """Yield the cases of an op: all the inputs that `of` names together, then each alone."""
    for sample in samples(op):
        narrow = any(x.dtype.char in "fFe" for x in sample.inputs)
        if narrow is not single or sample.control_flow:
            continue
        every = of(sample)
        for which in [every, *[(i,) for i in every if len(every) > 1]]:
            if which:
                yield Case(op, sample, which)
