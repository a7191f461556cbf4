"""Parameter and Buffer: tensors that share memory, are registered, and survive copies."""

import copy
import pickle

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn


def test_a_parameter_shares_memory_and_is_a_leaf():
    data = flow.ones(2)
    parameter = nn.Parameter(data)
    assert isinstance(parameter, flow.Tensor)
    assert parameter.requires_grad
    assert parameter.is_leaf
    assert np.shares_memory(parameter.numpy(), data.numpy())
    assert not data.requires_grad
    with flow.no_grad():
        parameter.fill_(4)
    assert data._version == parameter._version > 0


def test_a_parameter_of_a_computed_tensor_leaves_the_graph():
    computed = flow.ones(2, requires_grad=True) * 2
    assert nn.Parameter(computed).grad_fn is None


def test_a_parameter_without_gradient_may_hold_integers():
    assert nn.Parameter(flow.tensor([1]), requires_grad=False).dtype == flow.int64
    with pytest.raises(RuntimeError, match="floating point"):
        nn.Parameter(flow.tensor([1]))


def test_a_parameter_of_nothing_is_empty():
    assert nn.Parameter().shape == (0,)


@pytest.mark.parametrize("data", [[1.0], 3.0, np.ones(2)])
def test_data_must_be_a_tensor(data):
    with pytest.raises(TypeError, match="Parameter"):
        nn.Parameter(data)


def test_results_of_operations_are_plain_tensors():
    parameter = nn.Parameter(flow.ones(2))
    for result in (parameter * 2, parameter.detach(), parameter.data, parameter.clone()):
        assert type(result) is flow.Tensor


def test_repr():
    text = repr(nn.Parameter(flow.tensor([1.0, 2.0])))
    assert text == "Parameter containing:\ntensor([1., 2.], requires_grad=True)"
    assert repr(nn.Parameter(flow.ones(1), requires_grad=False)).endswith("tensor([1.])")


def test_copies_are_parameters():
    parameter = nn.Parameter(flow.tensor([1.0, 2.0]))
    parameter.grad = flow.tensor([3.0, 4.0])
    parameter.note = ["kept"]
    for twin in (copy.deepcopy(parameter), pickle.loads(pickle.dumps(parameter))):
        assert type(twin) is nn.Parameter
        assert twin.requires_grad
        assert twin.note == ["kept"]
        np.testing.assert_array_equal(twin.numpy(), [1.0, 2.0])
        (twin * 2).sum().backward()
        assert not np.shares_memory(twin.numpy(), parameter.numpy())
        assert parameter.grad.tolist() == [3.0, 4.0]
    frozen = nn.Parameter(flow.ones(1), requires_grad=False)
    assert not copy.deepcopy(frozen).requires_grad


@pytest.mark.filterwarnings("ignore:.*reference cycle")
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_deep_copy_of_a_parameter_has_no_gradient(create_graph):
    layer = nn.Linear(2, 1)
    (layer(flow.ones(1, 2)) ** 2).sum().backward(create_graph=create_graph)
    averaged = flow.optim.swa_utils.AveragedModel(layer)
    copied = copy.deepcopy({"net": [layer], "weight": layer.weight, "again": layer})
    assert copied["again"] is copied["net"][0] and copied["weight"] is copied["again"].weight
    for twin in (copied["again"], copy.deepcopy(copied["again"]), averaged.module):
        assert [p.grad for p in twin.parameters()] == [None, None]
        assert all(p.requires_grad and p.is_leaf for p in twin.parameters())
    assert layer.weight.grad is not None


def first_order_maml(lib):
    """Return the weights after two steps that add up the gradients of adapted copies."""
    net = lib.nn.Linear(2, 1, bias=False)
    x = lib.tensor([[1.0, 2.0], [3.0, -1.0]])
    with lib.no_grad():
        net.weight.copy_(lib.tensor([[1.0, -2.0]]))
    outer = lib.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(2):
        outer.zero_grad()
        total = lib.zeros(1, 2)
        for task in (1.0, 5.0):
            adapted = copy.deepcopy(net)  # from the second task on, of a net with a gradient
            inner = lib.optim.SGD(adapted.parameters(), lr=0.1)
            for _ in range(2):
                ((adapted(x) - task) ** 2).mean().backward()
                inner.step()
            total = total + adapted.weight.grad
            net.weight.grad = total.clone()
        outer.step()
    return net.weight.detach().numpy()


def test_first_order_meta_learning_agrees_with_pytorch():
    torch = pytest.importorskip("torch")
    np.testing.assert_allclose(first_order_maml(flow), first_order_maml(torch), rtol=1e-5)


def test_a_deep_copy_of_a_parameter_shares_no_memory():
    data = flow.zeros(2)
    one, two = copy.deepcopy([nn.Parameter(data), nn.Parameter(data)])
    with flow.no_grad():
        one.fill_(1.0)
    assert two.tolist() == [0.0, 0.0]


def test_a_buffer_is_registered_by_assignment():
    data = flow.ones(2)
    module = nn.Module()
    module.kept = nn.Buffer(data)
    module.left_out = nn.Buffer(flow.ones(3), persistent=False)
    assert np.shares_memory(module.kept.numpy(), data.numpy())
    assert isinstance(module.kept, nn.Buffer)
    assert not isinstance(data, nn.Buffer)
    assert not module.kept.requires_grad
    assert nn.Buffer(flow.ones(1, requires_grad=True)).requires_grad
    assert repr(module.kept) == "tensor([1., 1.])"
    assert type(module.kept * 2) is flow.Tensor
    assert list(dict(module.named_buffers())) == ["kept", "left_out"]
    assert list(module.state_dict()) == ["kept"]
    module.kept = flow.zeros(3)  # any tensor takes its place
    assert list(module.state_dict()) == ["kept"]
    module.kept = nn.Buffer(flow.zeros(3), persistent=False)
    module.left_out = nn.Buffer(flow.zeros(3))
    assert list(module.state_dict()) == ["left_out"]
    assert module.double().left_out.dtype == flow.float64
    twin = copy.deepcopy(nn.Buffer(flow.ones(1), persistent=False))
    assert not twin.persistent
    assert nn.Buffer().shape == (0,)


def test_a_buffer_does_not_take_the_place_of_others():
    module = nn.Linear(1, 1)
    for name, error in (("weight", TypeError), ("training", KeyError)):
        before = getattr(module, name)
        with pytest.raises(error, match=name):
            setattr(module, name, nn.Buffer(flow.ones(1)))
        assert getattr(module, name) is before
    assert not list(module.buffers())
    with pytest.raises(AttributeError, match="super"):
        nn.Module.__new__(nn.Module).b = nn.Buffer(flow.ones(1))


def test_names_are_pytorchs(torch):
    for name in torch.nn.parameter.__all__:
        assert hasattr(nn.parameter, name)


def test_a_subclass_may_make_its_parameters_itself():
    class Scaled(nn.Parameter):
        def __new__(cls, data, scale=1):
            made = super().__new__(cls, data, False)
            made.scale = scale
            return made

    data = flow.ones(2)
    parameter = Scaled(data, scale=3)
    assert type(parameter) is Scaled and parameter.scale == 3 and not parameter.requires_grad
    assert parameter.data_ptr() == data.data_ptr() and type(copy.deepcopy(parameter)) is Scaled
