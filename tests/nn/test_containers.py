"""Sequential, ModuleList, ModuleDict and ParameterList."""

from collections import OrderedDict

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn


def relus(count: int) -> list[nn.Module]:
    return [nn.ReLU() for _ in range(count)]


def test_sequential_calls_in_order():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    x = flow.ones(4, 2)
    expected = net[2](net[1](net[0](x)))
    np.testing.assert_array_equal(net(x).numpy(), expected.numpy())
    assert nn.Sequential()(x) is x


def test_sequential_with_names():
    net = nn.Sequential(OrderedDict(first=nn.Linear(2, 3), second=nn.ReLU()))
    assert net.first is net[0]
    assert list(net.state_dict()) == ["first.weight", "first.bias"]
    assert [name for name, _ in net[1:].named_children()] == ["second"]


@pytest.mark.parametrize("kind", [nn.Sequential, nn.ModuleList])
class TestNumbered:
    """What Sequential and ModuleList share."""

    def make(self, kind, modules):
        return kind(*modules) if kind is nn.Sequential else kind(modules)

    def names(self, container) -> list[str]:
        return [name for name, _ in container.named_children()]

    def test_indexing(self, kind):
        modules = relus(4)
        container = self.make(kind, modules)
        assert len(container) == 4
        assert list(container) == modules
        assert container[-1] is modules[3]
        assert type(container[1:3]) is kind
        assert list(container[1:3]) == modules[1:3]
        assert list(container[::-2]) == modules[::-2]
        with pytest.raises(IndexError, match="-4 to 3"):
            container[4]
        with pytest.raises(IndexError):
            container[-5]
        with pytest.raises(TypeError):
            container["0"]

    def test_changing(self, kind):
        a, b, c, d = relus(4)
        container = self.make(kind, [a])
        container.append(c)
        container.insert(1, b)
        container.extend([d])
        assert list(container) == [a, b, c, d]
        assert self.names(container) == ["0", "1", "2", "3"]
        container[-1] = nn.Tanh()
        assert isinstance(container[3], nn.Tanh)
        del container[0]
        assert list(container)[:2] == [b, c]
        assert self.names(container) == ["0", "1", "2"]
        del container[1:]
        assert list(container) == [b]
        assert container.pop(0) is b
        assert len(container) == 0

    def test_insert_counts_from_the_end(self, kind):
        a, b, c = relus(3)
        container = self.make(kind, [a, b])
        container.insert(-1, c)
        assert list(container) == [a, c, b]
        container.insert(3, nn.Tanh())
        assert isinstance(container[3], nn.Tanh)
        with pytest.raises(IndexError):
            container.insert(9, c)

    def test_adding(self, kind):
        first, second = relus(2), relus(1)
        left, right = self.make(kind, first), self.make(kind, second)
        assert list(left + right) == first + second
        assert type(left + right) is kind
        left += right
        assert list(left) == first + second

    def test_other_things_are_refused_and_change_nothing(self, kind):
        container = self.make(kind, relus(2))
        for act in (
            lambda: container.append("x"),
            lambda: container.insert(0, "x"),
            lambda: container.extend("xy"),
            lambda: container.extend(3),
            lambda: container.__setitem__(0, 3),
        ):
            with pytest.raises(TypeError):
                act()
        assert self.names(container) == ["0", "1"]


def test_module_dict():
    linear = nn.Linear(2, 2)
    container = nn.ModuleDict({"linear": linear})
    container["act"] = nn.ReLU()
    container.update([("tanh", nn.Tanh())])
    container.update(nn.ModuleDict({"act": nn.Sigmoid()}))
    assert list(container) == list(container.keys()) == ["linear", "act", "tanh"]
    assert isinstance(container["act"], nn.Sigmoid)
    assert "linear" in container
    assert len(container) == 3
    assert [name for name, _ in container.items()] == list(container)
    assert next(iter(container.values())) is linear
    assert list(container.state_dict()) == ["linear.weight", "linear.bias"]
    assert container.pop("linear") is linear
    del container["act"]
    container.clear()
    assert len(container) == 0
    with pytest.raises(KeyError):
        container["missing"]
    with pytest.raises(TypeError, match="modules"):
        container.update(3)
    with pytest.raises(ValueError, match="pairs"):
        container.update(["abc"])
    with pytest.raises(TypeError, match="Module"):
        container["x"] = 3


def test_parameter_list():
    first = nn.Parameter(flow.ones(2))
    parameters = nn.ParameterList([first, flow.zeros(3)])
    assert parameters[0] is first
    assert isinstance(parameters[1], nn.Parameter)
    assert parameters[-1].shape == (3,)
    parameters.append(flow.ones(1)).extend([flow.ones(4)])
    parameters += [flow.ones(5)]
    assert [p.numel() for p in parameters] == [2, 3, 1, 4, 5]
    assert len(parameters[1:3]) == 2
    parameters[0] = flow.zeros(7)
    assert [name for name, _ in parameters.named_parameters()] == list("01234")
    with pytest.raises(TypeError):
        parameters.append([1.0])
    with pytest.raises(TypeError):
        parameters.extend(flow.ones(2))
    with pytest.raises(IndexError):
        parameters[5]
    assert repr(nn.ParameterList([flow.ones(2, 3)])) == (
        "ParameterList(\n  (0): Parameter containing: [float32 of size 2x3]\n)"
    )
    assert repr(nn.ParameterList()) == "ParameterList()"


def test_reprs_are_pytorchs(torch):
    def build(nn):
        return nn.Sequential(
            nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)]),
            nn.ModuleList(),
            nn.ModuleList([nn.Sequential(nn.Flatten(), nn.Tanh())] * 2),
            nn.ModuleDict({"a": nn.Dropout(), "b": nn.Sequential()}),
        )

    assert repr(build(nn)) == repr(build(torch.nn))
