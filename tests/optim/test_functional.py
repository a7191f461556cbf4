"""PyTorch names for optimizers of packages: lists of tensors, functions, helpers, modules."""

from __future__ import annotations

import importlib
import pickle

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.compatibility import optim as helpers
from oneflow_lite.compatibility.names import NAMES

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(0)

FOREACH = NAMES[""]["compatibility.foreach"].replace("_foreach_", "").split()


def given(lib, value):
    """Return an argument in which arrays are tensors."""
    if isinstance(value, list):
        return [given(lib, x) for x in value]
    return lib.tensor(value) if isinstance(value, np.ndarray) else value


def numbers(found):
    return [x.detach().numpy() for x in found]


# --- Lists --------------------------------------------------------------------------------------

X, Y, Z = ([RNG.random((2, 2)) + 0.1 for _ in range(3)] for _ in range(3))
EACH = [1.0, 2.0, 3.0]
ONE, TWO = [()], [(2.5,), (EACH,), (Y,)]
THREE = [(Y, Z), (Y, Z, 0.5), (Y, Z, EACH), (Y, Z, np.array(EACH))]
FORMS = {
    **dict.fromkeys("add sub mul div maximum minimum clamp_min clamp_max pow".split(), TWO),
    **dict.fromkeys(("addcmul", "addcdiv"), THREE),
    "copy": [(Y,)],
    "lerp": [(Y, 0.3), (Y, Z), (Y, EACH)],
    "mm": [(Y,)],
    "norm": [(), (1,), (float("inf"),)],
    "powsum": [(), (3,)],
}


def test_every_function_of_lists_is_there():
    assert {f"_foreach_{name}" for name in FOREACH} == {
        name for name in dir(torch) if name.startswith("_foreach_")
    }


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("name", FOREACH)
def test_a_function_of_lists_agrees(name):
    for args in FORMS.get(name.rstrip("_"), ONE):
        results = []
        for lib in (flow, torch):
            lists = given(lib, X)
            found = getattr(lib, f"_foreach_{name}")(lists, *(given(lib, x) for x in args))
            assert name[-1] == "_" or type(found) is tuple
            assert name[-1] != "_" or found is lists or lib is torch
            results.append(numbers(found))
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-13, err_msg=str(args))


def test_keywords_numbers_first_and_gradients_of_lists():
    x = given(flow, X)
    assert flow._foreach_add(x, x, alpha=3)[1].equal(x[1] + 3 * x[1])
    assert flow._foreach_addcmul(x, x, x, value=2.0)[0].equal(x[0] + 2 * x[0] * x[0])
    assert flow._foreach_pow(2.0, x)[2].equal(2.0 ** x[2])
    x[0].requires_grad_()
    flow._foreach_mul(x, 3.0)[0].sum().backward()
    assert x[0].grad.tolist() == [[3.0, 3.0], [3.0, 3.0]]


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        (([], 1.0), RuntimeError),
        ((X, EACH[:2]), RuntimeError),
        ((X, X[:1]), RuntimeError),
        ((3,), TypeError),
        ((), TypeError),
    ],
)
def test_lists_that_do_not_fit_are_refused(args, kind):
    for lib in (flow, torch):
        with pytest.raises(kind):
            lib._foreach_add(*(given(lib, x) for x in args))


# --- Functional forms ---------------------------------------------------------------------------

MEANS = {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8}
SHARED = {"lr": 0.1, "weight_decay": 0.01}
FUNCTIONS = {
    "adadelta": ("00s", SHARED | {"rho": 0.9, "eps": 1e-6, "maximize": True}),
    "adagrad": ("0s", SHARED | {"lr_decay": 0.1, "eps": 1e-10, "maximize": False}),
    "adam": ("000s", SHARED | MEANS | {"amsgrad": True, "maximize": False}),
    "adamax": ("00s", SHARED | MEANS),
    "adamw": ("00-s", SHARED | MEANS | {"amsgrad": False, "maximize": False}),
    "asgd": ("0pls", SHARED | {"lambd": 1e-4, "alpha": 0.75, "t0": 2.0}),
    "nadam": ("00ps", SHARED | MEANS | {"momentum_decay": 0.004}),
    "radam": ("00s", SHARED | MEANS | {"decoupled_weight_decay": True}),
    "rmsprop": (
        "000s",
        SHARED | {"alpha": 0.9, "eps": 1e-8, "momentum": 0.9, "centered": True},
    ),
    "rprop": (
        "01s",
        {"step_size_min": 1e-6, "step_size_max": 50.0, "etaminus": 0.5, "etaplus": 1.2},
    ),
    "sgd": ("n", SHARED | {"momentum": 0.9, "dampening": 0.1, "nesterov": False, "maximize": True}),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_the_steps_of_its_optimizer(name):
    kinds, options = FUNCTIONS[name]
    params = [RNG.standard_normal(shape) for shape in ((2, 3), 4)]
    batches = [[RNG.standard_normal(p.shape) for p in params] for _ in range(3)]
    firsts = {
        "0": np.zeros_like,
        "1": lambda p: np.full_like(p, 0.1),
        "n": lambda p: None,
        "s": lambda p: np.zeros((), "f"),
        "p": lambda p: np.ones((), "f"),
        "l": lambda p: np.array(0.1, "f"),
    }
    results = []
    for lib in (flow, torch):
        values = given(lib, [p.copy() for p in params])
        lists = [[given(lib, firsts[k](p)) for p in params] if k != "-" else [] for k in kinds]
        step = getattr(importlib.import_module(f"torch.optim.{name}"), name)
        step = step if lib is torch else getattr(getattr(flow.optim, name), name)
        for grads in batches:
            step(values, given(lib, grads), *lists, **options)
        results.append(numbers([*values, *(x for kept in lists for x in kept)]))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_a_function_names_what_it_lacks():
    x = [flow.ones(2)]
    with pytest.raises(ValueError, match="a list each of momentum_buffer, and lr, momentum"):
        flow.optim.sgd.sgd(x, x, lr=0.1)
    with pytest.raises(ValueError, match="keywords"):
        flow.optim._functional.adagrad(x, x, x, x, differentiable=True, **FUNCTIONS["adagrad"][1])


# --- Modules and helpers ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["adamw", "asgd", "nadam", "rmsprop", "rprop", "_adafactor"])
def test_modules_of_optimizers_are_found(name):
    found = next(n for n in dir(torch.optim) if n.lower() == name.strip("_"))
    with flow.mock_torch():
        module = importlib.import_module(f"torch.optim.{name}")
    assert getattr(module, found) is getattr(flow.optim, found)


def test_helpers_of_optimizers():
    x = flow.tensor([4.0])
    assert helpers._dispatch_sqrt(x).item() == helpers._dispatch_sqrt(4.0) == 2.0
    assert helpers._get_value(x[0]) == 4.0
    assert helpers._to_scalar(x).ndim == 0
    params, grads = [flow.tensor([1 + 2j]), x], [flow.tensor([3j]), x]
    helpers._view_as_real(params, grads)
    assert [p.tolist() for p in params] == [[[1.0, 2.0]], [4.0]]
    assert [g.tolist() for g in grads] == [[[0.0, 3.0]], [4.0]]
    y = flow.ones(2, dtype=flow.float64)
    grouped = flow.optim.Optimizer._group_tensors_by_device_and_dtype(
        [[x, y, x], [None, y, x]], True
    )
    assert list(grouped.values()) == [([[x, x], [None, x]], [0, 2]), ([[y], [y]], [1])]


@pytest.mark.parametrize("differentiable", [False, True])
def test_a_step_records_where_its_optimizer_is_differentiable(differentiable):
    class Own(flow.optim.Optimizer):
        @helpers._use_grad_for_differentiable
        def step(self):
            return flow.is_grad_enabled()

    own = Own.__new__(Own)
    own.defaults = {"differentiable": differentiable}
    assert own.step() is differentiable


def test_functions_of_lists_are_pickled():
    assert pickle.loads(pickle.dumps(flow._foreach_add_)) is flow._foreach_add_
