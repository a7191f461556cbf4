"""Clipping gradients, and parameters as a vector."""

import math

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.nn import utils


def with_grads(*grads) -> list:
    leaves = [flow.zeros(np.shape(g), dtype=flow.float64, requires_grad=True) for g in grads]
    for leaf, grad in zip(leaves, grads, strict=True):
        leaf.grad = flow.tensor(np.array(grad, dtype=np.float64))
    return leaves


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.5, math.inf, 2])
@pytest.mark.parametrize("max_norm", [0.7, 100.0])
def test_clipping_agrees_with_pytorch(torch, norm_type, max_norm):
    arrays = [np.array([[3.0, -4.0], [0.0, 1.0]]), np.array(-2.0), np.array([0.5])]
    ours = with_grads(*arrays)
    theirs = [torch.zeros(a.shape, dtype=torch.float64, requires_grad=True) for a in arrays]
    for leaf, array in zip(theirs, arrays, strict=True):
        leaf.grad = torch.tensor(array)
    kept = [leaf.grad for leaf in ours]
    total = utils.clip_grad_norm_(iter([*ours, flow.ones(2)]), max_norm, norm_type)
    expected = torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type)
    assert total.shape == ()
    assert total.item() == pytest.approx(expected.item(), rel=1e-12)
    for a, b, grad in zip(ours, theirs, kept, strict=True):
        assert a.grad is grad
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-12)


def test_clipping_one_tensor_and_none():
    (x,) = with_grads([3.0, 4.0])
    assert utils.clip_grad_norm_(x, 1.0).item() == 5
    np.testing.assert_allclose(x.grad.numpy(), [0.6, 0.8], rtol=1e-6)
    assert utils.clip_grad_norm_([], 1.0).item() == 0
    assert utils.clip_grad_norm_([flow.ones(1)], 1.0).item() == 0
    assert utils.get_total_norm([flow.tensor([3.0]), flow.tensor([4.0])]).item() == 5


def test_norms_that_are_not_finite():
    leaves = with_grads([1.0, math.inf], [2.0])
    with pytest.raises(RuntimeError, match="norm"):
        utils.clip_grad_norm_(leaves, 1.0, error_if_nonfinite=True)
    np.testing.assert_array_equal(leaves[1].grad.numpy(), [2.0])
    with np.errstate(invalid="ignore"):  # inf * 0 is NaN
        assert utils.clip_grad_norm_(leaves, 1.0).item() == math.inf
    assert math.isnan(leaves[0].grad[1].item())
    np.testing.assert_array_equal(leaves[1].grad.numpy(), [0.0])


def test_a_norm_whose_squares_overflow():
    leaf = flow.zeros(1, requires_grad=True)
    other = flow.zeros(1, requires_grad=True)
    leaf.grad, other.grad = flow.tensor([3e30]), flow.tensor([4e30])
    total = utils.get_total_norm([leaf.grad, other.grad], math.inf)
    assert total.item() == pytest.approx(4e30)


def test_clipping_values():
    leaves = with_grads([3.0, -0.5], [-7.0])
    utils.clip_grad_value_(leaves, 1)
    np.testing.assert_array_equal(leaves[0].grad.numpy(), [1.0, -0.5])
    np.testing.assert_array_equal(leaves[1].grad.numpy(), [-1.0])
    with pytest.raises(ValueError, match="clip_value"):
        utils.clip_grad_value_(leaves, -1.0)


def test_parameters_as_a_vector_and_back():
    net = nn.Linear(2, 3)
    vector = utils.parameters_to_vector(net.parameters())
    assert vector.shape == (9,)
    vector.sum().backward()
    np.testing.assert_array_equal(net.weight.grad.numpy(), np.ones((3, 2)))
    parameters = list(net.parameters())
    utils.vector_to_parameters(flow.arange(9, dtype=flow.float32), net.parameters())
    assert all(a is b for a, b in zip(parameters, net.parameters(), strict=True))
    np.testing.assert_array_equal(net.weight.detach().numpy(), [[0, 1], [2, 3], [4, 5]])
    np.testing.assert_array_equal(net.bias.detach().numpy(), [6, 7, 8])
    net(flow.ones(1, 2)).sum().backward()


def test_a_vector_of_the_wrong_length_changes_nothing():
    net = nn.Linear(2, 3)
    before = net.weight.detach().numpy().copy()
    for vector in (flow.ones(8), flow.ones(10), flow.ones(9, 1)):
        with pytest.raises(RuntimeError, match="vec"):
            utils.vector_to_parameters(vector, net.parameters())
    with pytest.raises(TypeError, match="vec"):
        utils.vector_to_parameters([1.0], net.parameters())
    np.testing.assert_array_equal(net.weight.detach().numpy(), before)


def test_clipping_on_a_device(device):
    leaf = flow.zeros(2, device=device, requires_grad=True)
    leaf.grad = flow.tensor([3.0, 4.0], device=device)
    total = utils.clip_grad_norm_([leaf], 1.0)
    assert total.device.type == device
    np.testing.assert_allclose(leaf.grad.cpu().numpy(), [0.6, 0.8], rtol=1e-5)
