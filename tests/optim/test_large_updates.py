"""That a large parameter, updated piece by piece, ends with the bits of one updated as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.functors.optim import adam_update, sgd_update
from oneflow_lite.kernels.optim import _BLOCK

SHAPE = (3, _BLOCK + 5)


def scalar(value: float) -> flow.Tensor:
    return flow.full((), value, dtype=flow.float64)


def sgd(param: flow.Tensor, grad: flow.Tensor, *state: flow.Tensor) -> None:
    step, options = scalar(0.0), map(scalar, (0.1, 0.9, 0.25, 0.01))
    lr, momentum, dampening, decay = options
    for _ in range(2):
        sgd_update(param, grad, state[0], step, lr, momentum, dampening, decay, nesterov=True)
    assert step.item() == 2  # one step each, not one for each piece


def adam(param: flow.Tensor, grad: flow.Tensor, *state: flow.Tensor) -> None:
    step, options = scalar(0.0), map(scalar, (0.1, 0.9, 0.99, 1e-8, 0.01))
    hyperparameters = list(options)
    for _ in range(2):
        adam_update(param, grad, *state, step, *hyperparameters, maximize=True)
    assert step.item() == 2


@pytest.mark.parametrize(
    ("update", "states", "dtype"),
    [(sgd, 1, "f"), (sgd, 1, "d"), (adam, 3, "f"), (adam, 3, "d"), (adam, 3, "F")],
)
def test_pieces_give_the_bits_of_the_whole(update, states, dtype):
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(SHAPE).astype(dtype) for _ in range(2)]
    values += [np.zeros(SHAPE, dtype) for _ in range(states)]
    in_pieces = [flow.tensor(x) for x in values]
    # Every second column of a wider array is no run of memory, so it is not cut.
    wide = [flow.tensor(np.repeat(x, 2, axis=1)) for x in values]
    whole: list[Any] = [x[:, ::2] for x in wide]
    update(*in_pieces)
    update(*whole)
    for x, y in zip(in_pieces, whole, strict=True):
        assert x.numpy().tobytes() == y.numpy().tobytes()
    assert not np.array_equal(in_pieces[0].numpy(), values[0])
