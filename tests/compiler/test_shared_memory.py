"""Arguments that share memory with what a compiled function writes, as eager code treats them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow

# An argument made of a tensor and of the array of eight numbers whose first half the tensor is.
KINDS = {
    "other": lambda w, a: flow.ones(4),
    "self": lambda w, a: w,
    "view": lambda w, a: w[:],
    "detached": lambda w, a: w.detach(),
    "data": lambda w, a: w.data,
    "one array twice": lambda w, a: flow.from_numpy(w._data),
    "a part": lambda w, a: flow.from_numpy(a[1:5]),
    "expanded": lambda w, a: w.detach()[:1].expand(4),
    "strided": lambda w, a: w.detach().as_strided((4,), (0,), 1),
}


def write_outside(w: Any, x: Any) -> Any:
    w.add_(1)
    return x * 2


def write_argument(w: Any, x: Any) -> Any:
    x.mul_(2)
    return w + 1


def write_both(w: Any, x: Any) -> Any:
    w[1:].add_(x[:3])
    x.add_(w)
    return x + w, w[:2]


def outcomes(write: Any, kinds: tuple[str, ...], compiled: bool) -> list[Any]:
    a = np.arange(8, dtype=np.float32)
    w = flow.from_numpy(a[:4])
    step = (lambda x: write(w, x)) if not compiled else flow.compile(lambda x: write(w, x))
    found = []
    for kind in kinds:
        x = KINDS[kind](w, a)
        try:
            y = step(x)
        except flow.errors.FlowError as error:  # no view may be written whose elements coincide
            y = error
        tensors = y if isinstance(y, tuple) else (y,)
        given = [t.tolist() if isinstance(t, flow.Tensor) else type(t) for t in tensors]
        found.append((given, a.tolist(), w._version, x._version))
    return found


@pytest.mark.filterwarnings("ignore:flow.compile:UserWarning")
@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("write", [write_outside, write_argument, write_both])
def test_values_and_versions_are_those_of_eager_code(write: Any, first: str) -> None:
    for second in KINDS:
        kinds = first, first, second, second, first
        assert outcomes(write, kinds, True) == outcomes(write, kinds, False), kinds
