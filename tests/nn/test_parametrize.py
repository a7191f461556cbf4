"""Parametrized tensors: values, gradients, state dicts and errors are PyTorch's."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.nn.utils import parametrizations, parametrize
from tests.nn.twins import (
    array,
    assert_close,
    assert_same_state,
    assert_same_training,
    give_numbers,
)

X = np.random.default_rng(0).normal(size=(4, 3))
IMAGES = np.random.default_rng(1).normal(size=(2, 3, 6, 6))


def libraries(torch):
    return [(flow, flow.float64), (torch, torch.float64)]


def pair(torch, build):
    """The module that `build(library)` makes, here and in PyTorch, with the same numbers."""
    ours, theirs = (build(lib).double() for lib in (flow, torch))
    give_numbers(ours, theirs)
    return ours, theirs


def symmetric(lib):
    class Symmetric(lib.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).transpose(-1, -2)

        def right_inverse(self, value):
            return value.triu()

    return Symmetric()


def exponential(lib):
    class Exponential(lib.nn.Module):
        def forward(self, x):
            return x.exp()

        def right_inverse(self, value):
            return value.log()

    return Exponential()


def two_factors(lib):
    class Factors(lib.nn.Module):
        def forward(self, a, b):
            return a * b

        def right_inverse(self, value):
            return value.abs().sqrt(), value.sign() * value.abs().sqrt()

    return Factors()


def register(lib):
    return lib.nn.utils.parametrize.register_parametrization


BUILDS = {
    "one": lambda lib: register(lib)(lib.nn.Linear(3, 3), "weight", symmetric(lib)),
    "buffer": lambda lib: register(lib)(
        lib.nn.BatchNorm1d(3), "running_mean", exponential(lib), unsafe=True
    ),
    "two after another": lambda lib: register(lib)(
        register(lib)(lib.nn.Linear(3, 3), "weight", symmetric(lib)), "weight", exponential(lib)
    ),
    "two tensors": lambda lib: register(lib)(
        register(lib)(lib.nn.Linear(3, 3), "weight", symmetric(lib)), "bias", exponential(lib),
        unsafe=True,
    ),
    "several originals": lambda lib: register(lib)(
        lib.nn.Linear(3, 2), "weight", two_factors(lib)
    ),
    "weight_norm": lambda lib: lib.nn.utils.parametrizations.weight_norm(lib.nn.Linear(3, 5)),
    "weight_norm of dim 1": lambda lib: lib.nn.utils.parametrizations.weight_norm(
        lib.nn.Linear(3, 5), dim=1
    ),
    "weight_norm as one": lambda lib: lib.nn.utils.parametrizations.weight_norm(
        lib.nn.Linear(3, 5), dim=None
    ),
    "weight_norm of a bias": lambda lib: lib.nn.utils.parametrizations.weight_norm(
        lib.nn.Linear(3, 5), "bias"
    ),
    "spectral_norm": lambda lib: lib.nn.utils.parametrizations.spectral_norm(
        lib.nn.Linear(3, 5), n_power_iterations=3
    ),
    "spectral_norm of a bias": lambda lib: lib.nn.utils.parametrizations.spectral_norm(
        lib.nn.Linear(3, 5), "bias"
    ),
    "matrix_exp": lambda lib: lib.nn.utils.parametrizations.orthogonal(
        lib.nn.Linear(3, 5), orthogonal_map="matrix_exp"
    ),
    "cayley": lambda lib: lib.nn.utils.parametrizations.orthogonal(
        lib.nn.Linear(3, 2), orthogonal_map="cayley"
    ),
    "householder": lambda lib: lib.nn.utils.parametrizations.orthogonal(
        lib.nn.Linear(3, 2), orthogonal_map="householder"
    ),
    "square": lambda lib: lib.nn.utils.parametrizations.orthogonal(lib.nn.Linear(3, 3)),
    "untrivialized": lambda lib: lib.nn.utils.parametrizations.orthogonal(
        lib.nn.Linear(3, 4), use_trivialization=False
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BUILDS)
def test_training_and_state_are_pytorchs(torch, name):
    ours, theirs = pair(torch, BUILDS[name])
    assert repr(ours) == repr(theirs)
    for _ in range(2):
        assert_same_training(ours, theirs, X, rtol=1e-7, atol=1e-9)
    ours.eval()
    theirs.eval()
    assert_same_training(ours, theirs, X, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("build", ["weight_norm", "spectral_norm"])
def test_convolutions(torch, build):
    def make(lib):
        layer = lib.nn.Conv2d(3, 2, 3)
        return getattr(lib.nn.utils.parametrizations, build)(layer)

    ours, theirs = pair(torch, make)
    assert_same_training(ours, theirs, IMAGES, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["one", "several originals", "spectral_norm", "householder"])
def test_second_order(torch, name):
    ours, theirs = pair(torch, BUILDS[name])
    ours.eval()
    theirs.eval()
    results = []
    for lib, module in ((flow, ours), (torch, theirs)):
        leaves = list(module.parameters())
        y = (module(lib.tensor(X)) ** 2).sum()
        grads = lib.autograd.grad(y, leaves, create_graph=True)
        second = sum((grad**2).sum() for grad in grads)
        results.append([*grads, *lib.autograd.grad(second, leaves, allow_unused=True)])
    for a, b in zip(*results, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert_close(a, b, rtol=1e-6, atol=1e-7)


def test_setting_a_parametrized_tensor(torch):
    values = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]])
    for name in ("one", "two after another"):
        ours, theirs = pair(torch, BUILDS[name])
        ours.weight, theirs.weight = flow.tensor(values), torch.tensor(values)
        assert_close(ours.weight, values_of(torch, values))
        assert_same_state(ours, theirs)
    ours, theirs = pair(torch, BUILDS["several originals"])
    ours.weight, theirs.weight = flow.tensor(values[:2]), torch.tensor(values[:2])
    assert_same_state(ours, theirs)
    layer = parametrizations.orthogonal(nn.Linear(3, 3))
    q = np.linalg.qr(values)[0].astype(np.float32)
    layer.weight = flow.tensor(q)
    np.testing.assert_allclose(array(layer.weight), q, atol=1e-5)


def values_of(torch, values):
    return torch.tensor(values)


@pytest.mark.parametrize("leave", [True, False])
@pytest.mark.parametrize("name", ["one", "buffer", "two after another", "spectral_norm"])
def test_removing(torch, name, leave):
    ours, theirs = pair(torch, BUILDS[name])
    tensor_name = "running_mean" if name == "buffer" else "weight"
    for lib, module in ((nn.utils.parametrize, ours), (torch.nn.utils.parametrize, theirs)):
        assert lib.is_parametrized(module) and lib.is_parametrized(module, tensor_name)
        assert not lib.is_parametrized(module, "other")
        kept = lib.remove_parametrizations(module, tensor_name, leave_parametrized=leave)
        assert kept is module
        assert not lib.is_parametrized(module)
    assert type(ours).__name__ == type(theirs).__name__
    assert type(ours).__module__.startswith("oneflow_lite.nn.modules")
    assert_same_training(ours, theirs, X)


def test_removing_one_of_several(torch):
    ours, theirs = pair(torch, BUILDS["two tensors"])
    parametrize.remove_parametrizations(ours, "weight")
    torch.nn.utils.parametrize.remove_parametrizations(theirs, "weight")
    assert type(ours).__name__ == type(theirs).__name__ == "ParametrizedLinear"
    assert_same_training(ours, theirs, X)
    ours, theirs = pair(torch, BUILDS["several originals"])
    for lib, module in ((nn, ours), (torch.nn, theirs)):
        with pytest.raises(ValueError, match="leave_parametrized"):
            lib.utils.parametrize.remove_parametrizations(module, "weight", False)
        lib.utils.parametrize.remove_parametrizations(module, "weight")
    assert isinstance(ours.weight, nn.Parameter)
    assert_same_state(ours, theirs)


def test_types_and_transfer(torch):
    built = {}
    for lib in (flow, torch):
        module = lib.nn.utils.parametrize
        source = BUILDS["two tensors"](lib).double()
        target = lib.nn.Linear(3, 3).double()
        assert module.type_before_parametrizations(source) is lib.nn.Linear
        assert module.type_before_parametrizations(target) is lib.nn.Linear
        assert type(source) is not lib.nn.Linear and isinstance(source, lib.nn.Linear)
        done = module.transfer_parametrizations_and_params(source, target)
        assert done is target
        assert target.parametrizations.weight.original is source.parametrizations.weight.original
        assert target.parametrizations.weight[0] is source.parametrizations.weight[0]
        assert module.transfer_parametrizations_and_params(lib.nn.Linear(3, 3), target) is target
        built[lib] = target
    assert list(built[flow].state_dict()) == list(built[torch].state_dict())


def test_cached_computes_once():
    calls = []

    class Counted(nn.Module):
        def forward(self, x):
            calls.append(1)
            return x * 2

    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Counted())
    calls.clear()
    with parametrize.cached():
        with parametrize.cached():
            first = layer.weight
        assert layer.weight is first
        other = copy.deepcopy(layer)
        assert other.weight is not first
    assert len(calls) == 2
    assert layer.weight is not first


def test_copies_are_independent():
    layer = BUILDS["weight_norm"](flow)
    twin = copy.deepcopy(layer)
    parametrize.remove_parametrizations(twin, "weight")
    assert parametrize.is_parametrized(layer, "weight")
    assert layer.weight is not twin.weight
    np.testing.assert_allclose(array(layer.weight), array(twin.weight), rtol=1e-6)
    with pytest.raises(RuntimeError, match="state_dict"):
        pickle.dumps(layer)
    pickle.dumps(twin)


class Wrong(nn.Module):
    def __init__(self, forward=lambda x: x, back=None) -> None:
        super().__init__()
        self.function = forward
        if back is not None:
            self.right_inverse = back

    def forward(self, *xs):
        return self.function(*xs)


BAD = {
    "no such tensor": (lambda m: parametrize.register_parametrization(m, "w", Wrong()), ValueError),
    "shape": (
        lambda m: parametrize.register_parametrization(m, "weight", Wrong(lambda x: x[0])),
        ValueError,
    ),
    "dtype": (
        lambda m: parametrize.register_parametrization(m, "weight", Wrong(lambda x: x.double())),
        ValueError,
    ),
    "no tensor": (
        lambda m: parametrize.register_parametrization(m, "weight", Wrong(lambda x: 3)),
        ValueError,
    ),
    "right_inverse of another dtype": (
        lambda m: parametrize.register_parametrization(
            m, "weight", Wrong(back=lambda x: x.double())
        ),
        ValueError,
    ),
    "right_inverse of no tensor": (
        lambda m: parametrize.register_parametrization(m, "weight", Wrong(back=lambda x: 3)),
        ValueError,
    ),
    "none to remove": (lambda m: parametrize.remove_parametrizations(m, "weight"), ValueError),
    "no modules": (lambda m: parametrize.ParametrizationList([], m.weight), ValueError),
    "orthogonal of nothing": (lambda m: parametrizations.orthogonal(m, "w"), ValueError),
    "orthogonal of a vector": (lambda m: parametrizations.orthogonal(m, "bias"), ValueError),
    "no such map": (
        lambda m: parametrizations.orthogonal(m, orthogonal_map="rotation"), ValueError,
    ),
    "householder of complex": (
        lambda m: parametrizations.orthogonal(
            m.to(flow.complex64), orthogonal_map="householder"
        ),
        ValueError,
    ),
    "spectral_norm of nothing": (lambda m: parametrizations.spectral_norm(m, "w"), ValueError),
    "no iterations": (
        lambda m: parametrizations.spectral_norm(m, n_power_iterations=0), ValueError,
    ),
    "no such dim": (lambda m: parametrizations.spectral_norm(m, dim=2), IndexError),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_calls_change_nothing(name):
    act, error = BAD[name]
    layer = nn.Linear(2, 2)
    before = array(layer.weight)
    with pytest.raises(error) as caught:
        act(layer)
    assert isinstance(caught.value, flow.errors.FlowError)
    assert list(layer.state_dict()) == ["weight", "bias"]
    assert type(layer) is nn.Linear
    np.testing.assert_array_equal(array(layer.weight), before)


def test_a_second_parametrization_that_does_not_fit():
    layer = BUILDS["one"](flow)
    for wrong in (Wrong(lambda x: x[0]), Wrong(back=lambda x: x.double()), Wrong(lambda x: None)):
        with pytest.raises(ValueError, match="parametrization"):
            parametrize.register_parametrization(layer, "weight", wrong)
    assert len(layer.parametrizations.weight) == 1
    parametrize.register_parametrization(layer, "weight", Wrong(lambda x: x[0]), unsafe=True)
    assert layer.weight.shape == (3,)
    assert layer.parametrizations.weight.unsafe
    with pytest.raises(RuntimeError, match="right_inverse"):
        layer.weight = flow.ones(3)


def test_setting_what_does_not_fit():
    layer = parametrizations.orthogonal(nn.Linear(2, 2), use_trivialization=False)
    with pytest.raises(NotImplementedError, match="use_trivialization"):
        layer.weight = flow.eye(2)
    layer = parametrizations.orthogonal(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="shape"):
        layer.weight = flow.eye(3)
    layer = BUILDS["several originals"](flow)
    layer.parametrizations.weight[0].right_inverse = lambda value: (value,)
    with pytest.raises(ValueError, match="2 tensors"):
        layer.weight = flow.ones(2, 3)


def test_orthogonal_matrices_stay_orthogonal():
    for shape in ((4, 4), (5, 3), (3, 5)):
        for name in ("matrix_exp", "cayley", "householder"):
            layer = parametrizations.orthogonal(nn.Linear(*shape).double(), orthogonal_map=name)
            optimizer = flow.optim.SGD(layer.parameters(), lr=0.1)
            for _ in range(3):
                optimizer.zero_grad()
                layer(flow.ones(2, shape[0], dtype=flow.float64)).pow(2).sum().backward()
                optimizer.step()
            weight = layer.weight if shape[0] <= shape[1] else layer.weight.mT
            found = array(weight.mT @ weight)
            np.testing.assert_allclose(found, np.eye(len(found)), atol=1e-9)


def test_unitary_matrices():
    class Matrix(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(flow.randn(3, 3, dtype=flow.complex128))

    for name in (None, "cayley"):
        module = parametrizations.orthogonal(Matrix(), orthogonal_map=name)
        found = array(module.weight.mH @ module.weight)
        np.testing.assert_allclose(found, np.eye(3), atol=1e-9)


@pytest.mark.parametrize("name", ["one", "weight_norm", "spectral_norm", "householder"])
def test_compiled_equals_eager(name):
    layer = BUILDS[name](flow)
    twin = copy.deepcopy(layer)
    x = flow.tensor(X.astype(np.float32))
    for module in (layer, twin):
        called = flow.compile(module) if module is twin else module
        for _ in range(3):
            called(x).sum().backward()
    for a, b in zip(layer.parameters(), twin.parameters(), strict=True):
        np.testing.assert_allclose(array(a.grad), array(b.grad), rtol=1e-5, atol=1e-6)
    assert called.explain().hits == 2, called.explain()


def test_old_weight_norm_files_are_loaded(torch):
    with pytest.warns(FutureWarning):
        old = torch.nn.utils.weight_norm(torch.nn.Linear(3, 2))
    layer = parametrizations.weight_norm(nn.Linear(3, 2))
    layer.load_state_dict({k: flow.tensor(array(v)) for k, v in old.state_dict().items()})
    assert_close(layer.weight, old.weight, rtol=1e-6)


@pytest.mark.parametrize("place", ["parametrize", "parametrizations"])
def test_names_and_signatures_are_pytorchs(torch, place):
    ours, theirs = (getattr(lib.nn.utils, place) for lib in (flow, torch))
    assert sorted(ours.__all__) == sorted(theirs.__all__)
    for name in theirs.__all__:
        assert parameters(getattr(ours, name)) == parameters(getattr(theirs, name)), name


def parameters(function):
    found = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in found]
