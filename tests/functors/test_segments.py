"""segment_reduce: empty segments, initial values, offsets, errors."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, DimError, DTypeError, ShapeError
from tests.functors.agreement import compare

X = np.array([[1.0, 3.0, 0.0, 0.0, 2.0, 2.0], [4.0, 1.0, 5.0, 5.0, 0.0, 7.0]]).T
LENGTHS = np.array([2, 0, 3, 1])


@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "max", "min"])
@pytest.mark.parametrize("initial", [None, 1.5, 0.0])
def test_segments(reduce, initial, device):
    torch = pytest.importorskip("torch")
    options = [
        {"lengths": LENGTHS},
        {"offsets": np.append(0, LENGTHS.cumsum())},
        {"lengths": np.array([2, 4])},
    ]
    for option in options:
        compare(
            lambda x, o=option: flow.segment_reduce(
                x, reduce, initial=initial, **{n: flow.tensor(v) for n, v in o.items()}
            ),
            lambda x, o=option: torch.segment_reduce(
                x, reduce, initial=initial, **{n: torch.tensor(v) for n, v in o.items()}
            ),
            X,
            orders=1,
        )
    y = flow.segment_reduce(
        flow.tensor(X, device=device), reduce, lengths=flow.tensor(LENGTHS[:3], device=device),
        unsafe=True,
    )  # fmt: skip
    assert y.shape == (3, 2)


DATA, N = flow.ones(4), flow.tensor([2, 2])


@pytest.mark.parametrize(
    ("options", "error", "argument"),
    [
        ({}, ArgumentTypeError, "lengths"),
        ({"lengths": N, "offsets": N}, ArgumentTypeError, "lengths"),
        ({"lengths": N + 1}, ShapeError, "lengths"),
        ({"lengths": flow.tensor([5, -1])}, ShapeError, "lengths"),
        ({"lengths": N.reshape(1, 2)}, ShapeError, "lengths"),
        ({"lengths": DATA}, DTypeError, "lengths"),
        ({"lengths": N, "reduce": "all"}, ArgumentError, "reduce"),
        ({"lengths": N, "axis": 1}, DimError, "axis"),
    ],
)
def test_errors(options, error, argument):
    with pytest.raises(error, match=rf"^segment_reduce\(\): argument '{argument}'"):
        flow.segment_reduce(DATA, **{"reduce": "sum", **options})
