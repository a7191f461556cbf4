"""nn.functional.unfold and fold: against PyTorch, the ops in any number of dimensions, errors."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import FlowError, ShapeError
from oneflow_lite.testing import Sample, check_op

F = flow.nn.functional


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape)


@pytest.mark.parametrize("shape", [(2, 3, 7, 6), (3, 7, 6)])
@pytest.mark.parametrize(
    "geometry",
    [
        ((2, 3), 1, 0, 1),
        (1, 1, 0, 1),
        ((2, 3), (2, 1), (1, 2), (2, 3)),
        ((3, 2), (1, 2), (3, 1), (3, 1)),
    ],
)
def test_agrees_with_pytorch(shape, geometry):
    torch = pytest.importorskip("torch")
    from tests.functors.agreement import compare

    def both(lib):
        def run(x):
            columns = lib.nn.functional.unfold(x * x, *geometry)
            return columns, lib.nn.functional.fold(columns * columns, shape[-2:], *geometry)

        return run

    compare(both(flow), both(torch), numbers(*shape), orders=3)
    compare(both(flow), both(torch), numbers(*shape) + 1j)


def test_ops_in_other_dimensions(device):
    for size, kernel, columns in (((5,), (2,), 3), ((2, 3, 2), (2, 2, 1), 2 * 2 * 4)):
        once = (1,) * len(size)
        geometry = {"kernel_size": kernel, "dilation": once, "padding": once, "stride": kernel}
        sample = Sample(numbers(1, 2, *size), **geometry)
        check_op("im2col", [sample], degenerate=False, device=device)
        x = numbers(1, 2 * int(np.prod(kernel)), columns)
        sample = Sample(x, output_size=size, **geometry)
        check_op("col2im", [sample], degenerate=False, device=device)


def test_result_is_new_memory():
    x = flow.tensor(numbers(1, 2, 3, 3))
    assert not np.shares_memory(F.unfold(x, 1).numpy(), x.numpy())
    columns = F.unfold(x, 1)
    assert not np.shares_memory(F.fold(columns, 3, 1).numpy(), columns.numpy())


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: F.unfold(flow.ones(3, 3), 2), r"functional.unfold\(\): argument 'input'"),
        (lambda: F.unfold(flow.ones(1, 3, 3), 4), r"functional.unfold\(\): argument 'kernel_size'"),
        (lambda: F.unfold(flow.ones(1, 3, 3), 2, 0), r"functional.unfold\(\): argument 'dilation'"),
        (lambda: F.fold(flow.ones(3, 4), 3, 2), r"fold\(\): argument 'input'"),
        (lambda: F.fold(flow.ones(4, 5), 3, 2), r"fold\(\): argument 'input'"),
        (lambda: F.fold(flow.ones(4, 4), (3, 3, 3), 2), r"fold\(\): argument 'output_size'"),
    ],
)
def test_errors(call, name):
    with pytest.raises(ShapeError, match=f"^{name}") as caught:
        call()
    assert isinstance(caught.value, FlowError)
