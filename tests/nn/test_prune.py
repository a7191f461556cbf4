"""Pruning: masks, values, state dicts and errors are PyTorch's."""

import importlib
import inspect

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.nn.utils import prune
from tests.nn.twins import array, assert_same_state, assert_same_training, give_numbers

X = np.random.default_rng(0).normal(size=(4, 3))


def pair(torch):
    built = [lib.nn.Linear(3, 6).double() for lib in (flow, torch)]
    give_numbers(*built)
    return built


def scores(lib):
    return lib.tensor(np.random.default_rng(2).normal(size=(6, 3)))


def of(lib):
    return importlib.import_module(f"{lib.__name__}.nn.utils.prune")


CASES = {
    "identity": lambda p, m, lib: p.identity(m, "weight"),
    "l1 count": lambda p, m, lib: p.l1_unstructured(m, "weight", amount=5),
    "l1 share": lambda p, m, lib: p.l1_unstructured(m, "weight", 0.3),
    "l1 none": lambda p, m, lib: p.l1_unstructured(m, "bias", 0),
    "l1 by scores": lambda p, m, lib: p.l1_unstructured(m, "weight", 4, scores(lib)),
    "ln 2": lambda p, m, lib: p.ln_structured(m, "weight", 2, 2, 0),
    "ln inf": lambda p, m, lib: p.ln_structured(m, "weight", 0.4, float("inf"), -1),
    "ln -inf": lambda p, m, lib: p.ln_structured(m, "weight", 1, -float("inf"), dim=1),
    "ln by scores": lambda p, m, lib: p.ln_structured(m, "weight", 1, 1, 0, scores(lib)),
    "ln none": lambda p, m, lib: p.ln_structured(m, "weight", 0, 1, 0),
    "random none": lambda p, m, lib: p.random_structured(m, "weight", 0, 0),
    "random all": lambda p, m, lib: p.random_unstructured(m, "weight", 1.0),
    "random slices": lambda p, m, lib: p.random_structured(m, "weight", 6, 0),
    "mask": lambda p, m, lib: p.custom_from_mask(m, "bias", lib.tensor([1, 0, 1, 0, 0, 1.0])),
    "twice": lambda p, m, lib: p.l1_unstructured(p.l1_unstructured(m, "weight", 5), "weight", 0.5),
    "structured twice": lambda p, m, lib: p.ln_structured(
        p.ln_structured(m, "weight", 2, 2, 0), "weight", 0.5, 2, 0
    ),
    "three kinds": lambda p, m, lib: p.custom_from_mask(
        p.ln_structured(p.l1_unstructured(m, "weight", 6), "weight", 1, 1, 1),
        "weight",
        lib.ones(6, 3).tril(),
    ),
    "both": lambda p, m, lib: p.l1_unstructured(p.l1_unstructured(m, "weight", 5), "bias", 2),
}


@pytest.mark.parametrize("name", CASES)
def test_masks_training_and_state_are_pytorchs(torch, name):
    ours, theirs = pair(torch)
    for lib, module in ((flow, ours), (torch, theirs)):
        assert not of(lib).is_pruned(module)
        assert CASES[name](of(lib), module, lib) is module
        assert of(lib).is_pruned(module)
        assert of(lib).is_pruned(lib.nn.Sequential(module))
    assert_same_training(ours, theirs, X)
    for lib, module in ((flow, ours), (torch, theirs)):
        for tensor_name in ("weight", "bias"):
            if hasattr(module, f"{tensor_name}_mask"):
                assert of(lib).remove(module, tensor_name) is module
    assert not prune.is_pruned(ours)
    assert isinstance(ours.weight, nn.Parameter)
    assert_same_state(ours, theirs)
    assert_same_training(ours, theirs, X)


def test_global_pruning(torch):
    built = []
    for lib in (flow, torch):
        net = lib.nn.Sequential(lib.nn.Linear(3, 6), lib.nn.Linear(6, 2)).double()
        built.append(net)
    give_numbers(*built)
    for lib, net in zip((flow, torch), built, strict=True):
        of(lib).l1_unstructured(net[0], "weight", 3)
        pairs = ((net[0], "weight"), (net[1], "weight"), (net[0], "bias"))
        of(lib).global_unstructured(pairs, of(lib).L1Unstructured, amount=0.4)
        importance = {(net[1], "weight"): lib.tensor(np.arange(12.0).reshape(2, 6) - 5)}
        of(lib).global_unstructured(
            iter(pairs) if lib is flow else pairs, of(lib).L1Unstructured, importance, amount=6
        )
    assert_same_training(*built, X)


def test_random_pruning_takes_as_many_and_draws_as_pytorch(monkeypatch):
    drawn = []
    for name in ("rand", "rand_like"):
        original = getattr(prune, name)
        monkeypatch.setattr(prune, name, lambda x, f=original, n=name: drawn.append(n) or f(x))
    layer = prune.random_unstructured(nn.Linear(10, 10), "weight", 0.25)
    assert int((layer.weight == 0).sum()) == 25
    layer = prune.random_structured(nn.Linear(10, 8), "weight", 3, 0)
    zero_rows = (layer.weight == 0).all(1)
    assert int(zero_rows.sum()) == 3
    assert drawn == ["rand_like", "rand"]
    kept = prune.random_unstructured(layer, "weight", 0.5)
    assert int((kept.weight == 0).sum()) == 30 + 25


def test_without_a_module(torch):
    values = np.random.default_rng(1).normal(size=(4, 5))
    for lib in (flow, torch):
        method = of(lib).L1Unstructured(3)
        x = lib.tensor(values, requires_grad=True)
        half = lib.ones(4, 5)
        half[0] = 0
        found = [method.prune(x), method.prune(x, default_mask=half),
                 method.prune(x, importance_scores=-lib.tensor(values) + 1)]  # fmt: skip
        sum(y.sum() for y in found).backward()
        result = [array(y) for y in (*found, x.grad)]
        first = result if lib is flow else first  # noqa: F821
    for a, b in zip(first, result, strict=True):
        np.testing.assert_array_equal(a, b)


def test_containers():
    container = prune.PruningContainer()
    container._tensor_name = "weight"
    methods = [prune.L1Unstructured(1), prune.RandomStructured(1, 0)]
    for method in methods:
        method._tensor_name = "weight"
        container.add_pruning_method(method)
    assert len(container) == 2 and list(container) == methods and container[1] is methods[1]
    other = prune.Identity()
    other._tensor_name = "bias"
    with pytest.raises(ValueError, match="weight"):
        container.add_pruning_method(other)
    with pytest.raises(TypeError, match="pruning method"):
        container.add_pruning_method(3)
    assert len(prune.PruningContainer(*methods)) == 2


class Lost(prune.BasePruningMethod):
    PRUNING_TYPE = "sideways"

    def compute_mask(self, t, default_mask):
        return default_mask


class Dimless(Lost):
    PRUNING_TYPE = "structured"


BAD = {
    "type of amount": (lambda m: prune.l1_unstructured(m, "weight", "0.3"), TypeError),
    "negative": (lambda m: prune.l1_unstructured(m, "weight", -1), ValueError),
    "share above 1": (lambda m: prune.random_unstructured(m, "weight", 1.5), ValueError),
    "more than there is": (lambda m: prune.l1_unstructured(m, "bias", 7), ValueError),
    "more slices": (lambda m: prune.ln_structured(m, "weight", 7, 2, 0), ValueError),
    "dim": (lambda m: prune.ln_structured(m, "weight", 1, 2, 2), IndexError),
    "vector": (lambda m: prune.random_structured(m, "bias", 1, 0), ValueError),
    "scores": (
        lambda m: prune.l1_unstructured(m, "weight", 1, flow.ones(3, 6)), AssertionError,
    ),
    "mask": (lambda m: prune.custom_from_mask(m, "bias", flow.ones(2)), AssertionError),
    "no such name": (lambda m: prune.l1_unstructured(m, "w", 1), AttributeError),
    "not pruned": (lambda m: prune.remove(m, "weight"), ValueError),
    "global of no pairs": (
        lambda m: prune.global_unstructured(3, prune.L1Unstructured, amount=1), TypeError,
    ),
    "global of slices": (
        lambda m: prune.global_unstructured([(m, "weight")], prune.LnStructured, amount=1, n=1),
        TypeError,
    ),
    "global scores": (
        lambda m: prune.global_unstructured(
            [(m, "weight")], prune.L1Unstructured, importance_scores=[1], amount=1
        ),
        TypeError,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_calls_change_nothing(name):
    act, error = BAD[name]
    layer = nn.Linear(3, 6)
    before = array(layer.weight)
    with pytest.raises(error) as caught:
        act(layer)
    assert isinstance(caught.value, flow.errors.FlowError)
    assert list(layer.state_dict()) == ["weight", "bias"]
    assert not prune.is_pruned(layer)
    np.testing.assert_array_equal(array(layer.weight), before)


def test_methods_of_kinds_that_do_not_exist():
    for method, error in ((Lost, ValueError), (Dimless, AttributeError)):
        layer = method.apply(nn.Linear(2, 2), "weight") and nn.Linear(2, 2)
        method.apply(layer, "weight")
        mask = layer.weight_mask
        with pytest.raises(error):
            method.apply(layer, "weight")
        assert layer.weight_mask is mask
        assert len(layer._forward_pre_hooks) == 1
    with pytest.raises(TypeError):
        prune.BasePruningMethod()


def test_names_and_signatures_are_pytorchs(torch):
    theirs = of(torch)
    names = [n for n, v in vars(theirs).items() if getattr(v, "__module__", "") == theirs.__name__]
    for name in (n for n in names if not n.startswith("_")):
        ours, other = getattr(prune, name), getattr(theirs, name)
        pairs = [(ours, other)]
        if inspect.isclass(other):
            pairs = [(getattr(ours, k), getattr(other, k)) for k in vars(other) if k[0] != "_"
                     and callable(getattr(other, k))]  # fmt: skip
        for a, b in pairs:
            assert [*inspect.signature(a).parameters] == [*inspect.signature(b).parameters], name
