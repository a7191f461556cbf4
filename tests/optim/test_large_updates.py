"""That a large parameter, updated piece by piece, ends with the bits of one updated as a whole."""

from __future__ import annotations

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.functors import optim as updates
from oneflow_lite.kernels.optim import _BLOCK
from oneflow_lite.ops.op_expr import op_expr
from tests.op_samples import UPDATE_NUMBERS, UPDATE_OPTIONS, UPDATES

SHAPE = (3, _BLOCK + 5)
WHOLE = ("adafactor_update", "muon_update")  # look at all of a matrix at once


def step(name: str, arrays: list[flow.Tensor], **attrs: bool) -> None:
    """Take two steps with every option and number of the update."""
    given, numbers = iter(arrays), UPDATE_OPTIONS | UPDATE_NUMBERS | {"dampening": 0.25}
    inputs = [
        flow.full((), numbers[key], dtype=flow.float64) if key in numbers else next(given)
        for key in op_expr(name).schema.inputs
    ]
    for _ in range(2):
        getattr(updates, name)(*inputs, **attrs)
    counts = zip(op_expr(name).schema.inputs, inputs, strict=True)
    assert [x.item() for key, x in counts if key == "step"] == [2]  # one each, not one a piece


@pytest.mark.parametrize("dtype", ["f", "d", "F"])
@pytest.mark.parametrize("name", [name for name in UPDATES if name not in WHOLE])
def test_pieces_give_the_bits_of_the_whole(name, dtype):
    schema = op_expr(name).schema
    states = [x for x in schema.mutates if x not in UPDATE_NUMBERS]  # the parameter among them
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(SHAPE).astype(dtype) for _ in range(2)]
    values += [np.zeros(SHAPE, dtype) for _ in states[1:]]
    in_pieces = [flow.tensor(x) for x in values]
    # Every second column of a wider array is no run of memory, so it is not cut.
    whole = [flow.tensor(np.repeat(x, 2, axis=1))[:, ::2] for x in values]
    for arrays in (in_pieces, whole):
        step(name, arrays, maximize="decoupled_weight_decay" in schema.attrs)
    for x, y in zip(in_pieces, whole, strict=True):
        assert x.numpy().tobytes() == y.numpy().tobytes()
    assert not np.array_equal(in_pieces[0].numpy(), values[0])
