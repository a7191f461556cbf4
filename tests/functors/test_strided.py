"""as_strided: memory read by sizes and strides, and what its gradient adds up."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, InplaceError, NotDifferentiableError
from oneflow_lite.interpreter.dispatch import dispatch1
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.testing import Sample, check_op

A = np.arange(12.0).reshape(3, 4) / 8
# (size, stride, offset): plain, overlapping, repeated, reordered, one element, none
GEOMETRIES = [
    ((2, 3), (3, 1), 1),
    ((2, 3), (1, 1), 0),
    ((2, 2, 2), (0, 4, 1), 2),
    ((4, 3), (1, 4), 0),
    ((), (), 5),
    ((0, 2), (1, 1), 3),
]


def strided(x, size, stride, offset):
    """The op, which counts the offset from the first element of x."""
    attrs = {"size": size, "stride": stride, "storage_offset": offset}
    return dispatch1(op_expr("as_strided"), x, attrs)


def certify(function, array, device):
    check_op(function, [Sample(array)], layouts=False, degenerate=False, device=device)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_derivatives(geometry, device):
    certify(lambda x: strided(x, *geometry), A, device)


@pytest.mark.parametrize(
    ("prepare", "offset"),
    [
        (lambda x: (x * 2).transpose(0, 1), 1),
        (lambda x: (x * 2).reshape(12).unfold(0, 8, 2), 2),  # its elements share memory
        (lambda x: (x * 2)[:, 1:], 0),  # gaps, in which it does not read
    ],
)
@pytest.mark.parametrize("array", [A, A + 1j * A[::-1]], ids=["real", "complex"])
def test_derivatives_of_other_layouts(prepare, offset, array, device):
    for size, stride in (((2, 2), (4, 2)), ((2, 2), (1, 1))):
        certify(lambda x, g=(size, stride, offset): strided(prepare(x), *g), array, device)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_agrees_with_pytorch(geometry):
    torch = pytest.importorskip("torch")
    for prepare in (
        lambda x: x * 1,
        lambda x: (x * 1).transpose(0, 1),
        lambda x: x.reshape(12, 1).expand(12, 2),
    ):
        grads = []
        for library in (torch, flow):
            x = library.tensor(A, requires_grad=True)
            inner = prepare(x).detach().requires_grad_()
            y = inner.as_strided(*geometry)
            weights = library.arange(1.0, y.numel() + 1, dtype=library.float64)
            (y * weights.reshape(y.shape)).sum().backward()
            grads.append((y.detach().numpy(), inner.grad.numpy()))
        for got, expected in zip(*grads, strict=True):
            np.testing.assert_allclose(got, expected)


def test_offsets_count_from_the_start_of_memory():
    torch = pytest.importorskip("torch")
    for take in (
        lambda x: x[1:, 2:],
        lambda x: x[2].detach(),
        lambda x: x.as_strided((2,), (3,), 5),
    ):
        ours, theirs = take(flow.tensor(A)), take(torch.tensor(A))
        assert ours.storage_offset() == theirs.storage_offset()
        for offset in (None, 0, 3):
            y, z = (
                ours.as_strided((2, 2), (1, 2), offset),
                theirs.as_strided((2, 2), (1, 2), offset),
            )
            assert y.tolist() == z.tolist()


def test_no_gradient_of_other_elements(device):
    """PyTorch would drop what belongs to them."""
    x = (flow.ones(3, 4, device=device, requires_grad=True) * 2)[1:, :2]
    for geometry in (((2,), (1,), -3), ((2,), (2,), 0), ((6,), (1,), 1)):
        y = strided(x, *geometry)
        with pytest.raises(NotDifferentiableError, match="owns the memory"):
            y.sum().backward()


def test_is_a_view(device):
    x = flow.zeros(3, 4, device=device)
    y = strided(x, (2, 2), (1, 4), 1)
    y[0, 1] = 5
    assert x[1, 1].item() == 5 and x._version == y._version == 1
    z = strided(x[1:], (2,), (1,), -2)  # before the first element of a part
    z.fill_(7)
    assert x.cpu().tolist() == [[0, 0, 7, 7], [0, 5, 0, 0], [0, 0, 0, 0]]


def test_a_write_is_followed(device):
    x = flow.ones(3, 4, device=device, requires_grad=True)
    y = (x * 2).transpose(0, 1)
    strided(y, (2, 2), (3, 1), 1).mul_(3)
    (y * y * y).sum().backward()
    expected = np.full(12, 24.0)
    expected[[1, 2, 4, 5]] *= 27
    assert x.grad.cpu().numpy().reshape(-1).tolist() == expected.tolist()


def test_what_shares_memory_with_itself_is_not_written(device):
    x = flow.zeros(4, device=device)
    with pytest.raises(InplaceError, match="clone"):
        strided(x, (3, 2), (1, 1), 0).add_(1)
    assert x.cpu().tolist() == [0, 0, 0, 0] and x._version == 0


@pytest.mark.parametrize("geometry", [((5,), (1,), 0), ((2, 2), (1, 3), 0), ((1,), (1,), -1)])
def test_outside_of_memory(geometry, device):
    with pytest.raises(ArgumentError, match=r"as_strided\(\).*inside the memory"):
        strided(flow.zeros(2, 2, device=device), *geometry)
    with pytest.raises(ArgumentError, match=r"as_strided\(\).*inside the memory"):
        strided(flow.zeros(2, 2, device=device)[:1], *geometry)
