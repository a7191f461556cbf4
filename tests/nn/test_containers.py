"""Sequential, ModuleList, ModuleDict, ParameterList and ParameterDict."""

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
    """The behaviour that Sequential and ModuleList share."""

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
            lambda: container.extend([nn.Tanh(), 3]),
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
        parameters.extend(flow.ones(2))
    with pytest.raises(IndexError):
        parameters[5]
    with pytest.raises(RuntimeError):
        parameters.extend([flow.ones(1), flow.tensor(1)])  # an integer requires no gradient
    assert len(parameters) == len(list(parameters)) == 5
    with pytest.raises(TypeError, match="Parameter"):
        parameters[0] = "no tensor"


def test_parameter_dict():
    first = nn.Parameter(flow.ones(2))
    parameters = nn.ParameterDict({"b": first, "a": flow.zeros(3), "note": "text"})
    assert list(parameters) == list(parameters.keys()) == ["a", "b", "note"]  # sorted
    assert list(reversed(parameters)) == ["note", "b", "a"]
    assert parameters["b"] is parameters.b is first
    assert isinstance(parameters["a"], nn.Parameter)
    assert list(parameters.state_dict()) == ["a", "b"]
    assert dict(parameters.items())["note"] == list(parameters.values())[2] == "text"
    twin = parameters.copy()
    assert list(twin) == list(parameters)
    twin.update(OrderedDict(z=flow.ones(1), y=flow.ones(1)))
    twin.update([("x", flow.ones(1))])
    twin.update(nn.ParameterDict({"w": flow.ones(1)}))
    assert list(twin) == ["a", "b", "note", "z", "y", "x", "w"]
    assert len(parameters) == 3
    assert twin.setdefault("b") is first
    assert twin.setdefault("new", 3) == twin.get("new") == 3
    assert twin.get("missing") is None
    assert twin.get("training", 1) == 1
    assert twin.popitem() == ("new", 3)
    assert twin.pop("b") is first
    assert "b" not in twin
    assert not hasattr(twin, "b")
    del twin["note"]
    assert list(twin.fromkeys(["k", "l"], 2).items()) == [("k", 2), ("l", 2)]
    union = parameters | {"q": flow.ones(1)}
    assert type(union) is nn.ParameterDict
    assert list(union) == ["a", "b", "note", "q"]
    assert list({"q": flow.ones(1)} | parameters) == ["q", "a", "b", "note"]
    parameters |= {"b": flow.zeros(1)}
    assert parameters["b"].shape == (1,)
    twin.clear()
    assert len(twin) == 0
    assert not twin.state_dict()
    with pytest.raises(KeyError):
        parameters["a.b"] = flow.ones(1)
    with pytest.raises(KeyError):
        parameters["keys"] = flow.ones(1)
    assert list(parameters) == ["a", "b", "note"]


def test_containers_do_in_turn_what_pytorchs_do(torch):
    def run(nn, ones):
        modules = [nn.ReLU(), nn.Tanh(), nn.Linear(1, 1, bias=False)]
        a, b = nn.Sequential(*modules[:2]), nn.Sequential(OrderedDict(last=modules[2]))
        texts = [a + b, b + a, a * 2, 3 * b, (a * 2)[1:3], b[:0]]
        assert (a * 2)[0] is (a * 2)[2] is modules[0]
        a += b
        texts.append(repr(a))
        a *= 2
        texts.append(repr(a))
        texts += [a.pop(-1), a.pop(slice(0, 2)), repr(a)]
        a.insert(0, nn.ELU()).append(nn.CELU()).extend(b)
        del a[1:3]
        a[-1] = nn.SELU()
        texts += [a, list(a.state_dict()), sorted(name for name in dir(a) if name.isdigit())]
        some = nn.ModuleList(modules)
        some.insert(1, nn.ELU())
        some += [nn.CELU()]
        del some[-2]
        texts += [some, some + [nn.SELU()], some[::2], some.pop(0), some.pop(slice(1, 3)), some]
        named = nn.ModuleDict({"z": nn.ReLU(), "y": modules[2]})
        named.update({"a": nn.ELU()})
        texts += [
            named,
            named.keys(),
            list(named.items()),
            named.pop("z"),
            list(named.state_dict()),
        ]
        values = nn.ParameterList([ones(2, 3), "text", nn.ReLU()])
        values += [ones(())]
        texts += [values, values[1:], list(values.state_dict()), nn.ParameterList([ones(2)])]
        values = nn.ParameterDict({"b": ones(2, 3), "a": 1.5})
        texts += [values, list(values.state_dict()), nn.ParameterDict(), nn.ParameterList()]
        return [str(text) for text in texts]

    theirs = run(torch.nn, torch.ones)
    dtypes = {"torch.FloatTensor": "float32", "torch.float32": "float32"}
    for have, want in zip(run(nn, flow.ones), theirs, strict=True):
        for name, ours in dtypes.items():
            want = want.replace(name, ours)
        assert have == want


def test_what_cannot_be_added_or_repeated():
    net = nn.Sequential(*relus(2))
    for act in (
        lambda: net + relus(1),
        lambda: net.__iadd__(relus(1)),
        lambda: net * 0,
        lambda: net.__imul__(-1),
    ):
        with pytest.raises(ValueError, match="Sequential"):
            act()
    with pytest.raises(TypeError, match="Sequential"):
        net * 1.5
    assert len(net) == 2


def test_reprs_are_pytorchs(torch):
    def build(nn):
        return nn.Sequential(
            nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)]),
            nn.ModuleList(),
            nn.ModuleList([nn.Sequential(nn.Flatten(), nn.Tanh())] * 2),
            nn.ModuleDict({"a": nn.Dropout(), "b": nn.Sequential()}),
        )

    assert repr(build(nn)) == repr(build(torch.nn))
