"""The ops that stand for writes through views: they move what a chain of view ops leads to."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F as F
from oneflow_lite.errors import InplaceError
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.testing import Sample, check_op

A = np.random.default_rng(0).normal(size=(3, 2, 4))
CHAIN = (
    (op_expr("permute"), {"dims": (2, 0, 1)}),
    (op_expr("narrow"), {"dim": 0, "start": 1, "length": 3}),
    (op_expr("select"), {"dim": 1, "index": 2}),
    (op_expr("unsqueeze"), {"dim": 0}),
)
ORDERS = [None, (2, 0, 1)]
REGION = A.transpose(2, 0, 1)[1:, 2][None]


def put(x, value, scale=1.0):
    y = x * scale
    y.transpose(2, 0, 1)[1:, 2][...] = value
    return y


@pytest.mark.parametrize("order", ORDERS)
def test_values(order, device):
    x, value = flow.tensor(A, device=device), flow.tensor(-REGION, device=device)
    taken = F.take_slices(x, chain=CHAIN, order=order)
    np.testing.assert_array_equal(taken.cpu().numpy(), REGION)
    assert taken.is_view()
    geometry = {"chain": CHAIN, "order": order, "shape": A.shape, "dtype": x.dtype}
    dx = F.take_slices_grad(value, **geometry)
    np.testing.assert_array_equal(dx.cpu().numpy(), put(A, -REGION, 0))
    for given in (value, None):
        y = F.copy_slices(x, given, chain=CHAIN, order=order)
        np.testing.assert_array_equal(y.cpu().numpy(), put(A, 0 if given is None else -REGION))
    np.testing.assert_array_equal(x.cpu().numpy(), A)


@pytest.mark.parametrize("order", ORDERS)
def test_derivatives(order, device):
    steps = {"chain": CHAIN, "order": order}
    options = {"device": device, "degenerate": False}
    check_op(lambda x: F.take_slices(x, **steps), [Sample(A)], **options)
    check_op(lambda x, v: F.copy_slices(x, v, **steps), [Sample(A, -REGION)], **options)
    check_op(lambda x: F.copy_slices(x, None, **steps), [Sample(A)], **options)

    def put_back(dy):
        return F.take_slices_grad(dy, shape=A.shape, dtype=dy.dtype, **steps)

    check_op(put_back, [Sample(REGION)], **options)


@pytest.mark.parametrize("part", ["real", "imag"])
def test_parts_of_complex_numbers(part, device):
    """In PyTorch's convention a gradient dL/da + i dL/db goes to the part that it belongs to."""
    z = flow.tensor(A + 1j, device=device, requires_grad=True)
    value = flow.tensor(A, device=device, requires_grad=True)
    steps = {"chain": ((op_expr(part), {}),), "order": None}
    y = F.copy_slices(z, value, **steps)
    dy = flow.tensor(A - 2j * A, device=device)
    dz, dvalue = flow.autograd.grad(y, [z, value], dy)
    kept, moved = (-2j * A, A) if part == "real" else (A, -2 * A)
    np.testing.assert_array_equal(dz.cpu().numpy(), kept)
    np.testing.assert_array_equal(dvalue.cpu().numpy(), moved)

    (dz,) = flow.autograd.grad(F.take_slices(z, **steps), z, value)
    np.testing.assert_array_equal(dz.cpu().numpy(), A if part == "real" else 1j * A)

    y = F.take_slices_grad(value, shape=z.shape, dtype=z.dtype, **steps)
    (dvalue,) = flow.autograd.grad(y, value, dy)
    np.testing.assert_array_equal(dvalue.cpu().numpy(), moved)


def test_a_chain_that_copies_is_refused(device):
    chain = ((op_expr("permute"), {"dims": (1, 0, 2)}), (op_expr("reshape"), {"shape": (24,)}))
    x = flow.tensor(A, device=device)
    with pytest.raises(InplaceError, match="clone"):
        F.copy_slices(x, None, chain=chain, order=None)
    y = F.copy_slices(x, None, chain=chain, order=(1, 0, 2))
    assert (y == 0).all()
