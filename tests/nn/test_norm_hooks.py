"""weight_norm and spectral_norm as hooks: training, state dicts and removal are PyTorch's."""

import copy
import pickle

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.nn.utils.weight_norm import norm_except_dim, normed
from tests.nn.twins import (
    array,
    assert_close,
    assert_same_state,
    assert_same_training,
    give_numbers,
)

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")
X = np.random.default_rng(0).normal(size=(4, 3))
IMAGES = np.random.default_rng(1).normal(size=(2, 3, 6, 6))


def linear(lib):
    return lib.nn.Linear(3, 5)


def conv(lib):
    return lib.nn.Conv2d(3, 2, 3)


BUILDS = {
    "weight_norm": (linear, "weight_norm", {}),
    "weight_norm of dim 1": (linear, "weight_norm", {"dim": 1}),
    "weight_norm as one": (linear, "weight_norm", {"dim": None}),
    "weight_norm of a bias": (linear, "weight_norm", {"name": "bias"}),
    "weight_norm of a convolution": (conv, "weight_norm", {}),
    "spectral_norm": (linear, "spectral_norm", {}),
    "spectral_norm of many steps": (linear, "spectral_norm", {"n_power_iterations": 5}),
    "spectral_norm of dim 1": (linear, "spectral_norm", {"dim": 1}),
    "spectral_norm of a convolution": (conv, "spectral_norm", {"eps": 1e-6}),
}


@pytest.mark.parametrize("name", BUILDS)
def test_training_state_and_removal_are_pytorchs(torch, name):
    build, norm, options = BUILDS[name]
    ours, theirs = (
        getattr(lib.nn.utils, norm)(build(lib), **options).double() for lib in (flow, torch)
    )
    give_numbers(ours, theirs)
    x = IMAGES if build is conv else X
    for training in (True, True, False):
        ours.train(training)
        theirs.train(training)
        assert_same_training(ours, theirs, x, rtol=1e-7, atol=1e-9)
        assert_close(ours.weight, theirs.weight, rtol=1e-7)
    tensor_name = options.get("name", "weight")
    for lib, module in ((flow, ours), (torch, theirs)):
        with pytest.raises(RuntimeError, match=norm):
            getattr(lib.nn.utils, norm)(module, **options)
        remove = getattr(lib.nn.utils, f"remove_{norm}")
        assert remove(module, tensor_name) is module
        with pytest.raises(ValueError, match=tensor_name):
            remove(module, tensor_name)
    assert isinstance(ours.weight, nn.Parameter)
    assert_same_state(ours, theirs, rtol=1e-7)
    assert_same_training(ours, theirs, x, rtol=1e-7, atol=1e-9)
    assert not ours._state_dict_hooks and not ours._load_state_dict_pre_hooks


def test_they_warn_and_refuse_as_pytorch():
    with pytest.warns(FutureWarning, match="parametrizations"):
        nn.utils.weight_norm(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="n_power_iterations"):
        nn.utils.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)
    layer = nn.Linear(2, 2, bias=False)
    with pytest.raises(ValueError, match="None"):
        nn.utils.spectral_norm(layer, "bias")
    assert list(layer.state_dict()) == ["weight"]


def test_metadata_says_that_the_vectors_are_there(torch):
    ours, theirs = (lib.nn.utils.spectral_norm(lib.nn.Linear(3, 2)) for lib in (flow, torch))
    metadata = ours.state_dict()._metadata
    assert {k: dict(v) for k, v in metadata.items()} == dict(theirs.state_dict()._metadata)
    assert metadata[""] == {"version": 1, "spectral_norm": {"weight.version": 1}}


@pytest.mark.parametrize("version", [None, 0])
def test_files_of_older_versions_are_loaded(torch, version):
    generator = np.random.default_rng(4)
    weight, u = generator.normal(size=(4, 3)), generator.normal(size=4)
    state = {"weight_orig": weight, "weight": weight / 1.7, "weight_u": u / np.linalg.norm(u),
             "bias": np.zeros(4)}  # fmt: skip
    results = []
    for lib in (flow, torch):
        layer = lib.nn.utils.spectral_norm(lib.nn.Linear(3, 4)).double()
        given = layer.state_dict()
        metadata = given._metadata
        for key in list(given):
            del given[key]
        for key, value in state.items():
            given[key] = lib.tensor(value)
        if version is None:
            del metadata[""]["spectral_norm"]
        else:
            metadata[""]["spectral_norm"]["weight.version"] = version
        layer.load_state_dict(given)
        results.append(layer)
        del given["weight_u"]
        with pytest.raises(RuntimeError, match="weight_u"):
            layer.load_state_dict(given)
    assert_same_state(*results, rtol=1e-7)


def test_new_files_without_metadata_are_loaded():
    layer = nn.utils.spectral_norm(nn.Linear(3, 2))
    state = {key: value + 1 for key, value in layer.state_dict().items()}
    layer.load_state_dict(state)
    np.testing.assert_array_equal(array(layer.weight_v), array(state["weight_v"]))


def test_second_order(torch):
    built = [lib.nn.utils.spectral_norm(lib.nn.Linear(3, 2)).double() for lib in (flow, torch)]
    give_numbers(*built)
    found = []
    for lib, module in zip((flow, torch), built, strict=True):
        module.eval()
        leaves = list(module.parameters())
        loss = (module(lib.tensor(X)) ** 2).sum()
        grads = lib.autograd.grad(loss, leaves, create_graph=True)
        second = sum((grad**2).sum() for grad in grads)
        found.append(lib.autograd.grad(second, leaves))
    for a, b in zip(*found, strict=True):
        assert_close(a, b, rtol=1e-7)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_second_order_of_weight_norm(dim):
    """Against differences: PyTorch's double backward takes the norm in it for a constant."""
    v = flow.tensor(X[:2], requires_grad=True)
    g = norm_except_dim(v.detach() + 1, 2, dim).requires_grad_()
    assert flow.autograd.gradgradcheck(lambda g, v: normed(v, g, dim), (g, v))


def test_copies_before_the_first_forward_train_alone():
    layer = nn.utils.spectral_norm(nn.Linear(2, 2))
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        before = array(layer.weight_u)
        twin(flow.ones(1, 2)).sum().backward()
        np.testing.assert_array_equal(array(layer.weight_u), before)
        assert list(twin.state_dict()) == list(layer.state_dict())


@pytest.mark.filterwarnings("ignore:flow.compile")  # the hook changes the module, so: eagerly
def test_compiled_calls_stay_right():
    layer = nn.utils.spectral_norm(nn.Linear(3, 2))
    twin = copy.deepcopy(layer)
    compiled = flow.compile(twin)
    for _ in range(3):
        a, b = layer(flow.ones(1, 3)), compiled(flow.ones(1, 3))
        np.testing.assert_allclose(array(a), array(b), rtol=1e-5)
    np.testing.assert_allclose(array(layer.weight_u), array(twin.weight_u), rtol=1e-5)
