"""Tensor.unfold: windows along one dimension."""

import pytest

import oneflow_lite as flow
from oneflow_lite.errors import InplaceError
from oneflow_lite.testing import Sample, check_op
from tests.tensors.test_views import A, leaf


def test_derivatives(device):
    for args in ((2, 2, 1), (2, 3, 2), (0, 1, 1), (1, 3, 5), (-1, 4, 1), (1, 0, 1)):
        check_op(lambda x, args=args: x.unfold(*args), [Sample(A)], device=device)


def test_of_a_number():
    x = leaf(3.0)
    x.unfold(0, 1, 1).backward(flow.tensor([5.0], dtype=flow.float64))
    assert x.grad.item() == 5
    assert flow.tensor(3.0).unfold(0, 0, 1).shape == (0,)


@pytest.mark.parametrize("args", [(3, 1, 1), (0, 3, 1), (0, -1, 1), (0, 1, 0), (0, 1, -1)])
def test_what_does_not_fit(args):
    torch = pytest.importorskip("torch")
    with pytest.raises((RuntimeError, IndexError)):
        torch.tensor(A).unfold(*args)
    with pytest.raises((RuntimeError, IndexError), match=r"unfold\(\)"):
        flow.tensor(A).unfold(*args)


def test_overlapping_windows_are_not_written(device):
    x = flow.tensor(A, device=device)
    for write in (lambda w: w.zero_(), lambda w: w.add_(1), lambda w: w.__setitem__(0, 1.0)):
        with pytest.raises(InplaceError, match="clone"):
            write(x.unfold(2, 3, 1))
        with flow.no_grad(), pytest.raises(InplaceError, match="clone"):
            write(x[:1].unfold(2, 2, 1)[0, 0])
    assert x.cpu().tolist() == A.tolist() and x._version == 0
    x.unfold(2, 2, 2).zero_()
    x.unfold(2, 3, 2).add_(1)  # one window along that dimension
    assert x.sum().item() == 18
