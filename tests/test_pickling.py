"""Names, and all that belongs to training, go through pickle and copies."""

from __future__ import annotations

import contextlib
import copy
import pickle
import subprocess
import sys
import types

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.nn.utils import parametrizations, prune

PLACES = """
    . autograd cuda distributions distributions.constraints distributions.transforms fft func linalg
    masked nn nn.functional nn.init nn.utils nn.utils.parametrizations nn.utils.prune nn.utils.rnn
    optim optim.lr_scheduler special utils.data
"""
NOT_PICKLED = {
    "biject_to": "a table of functions, which users add to",
    "transform_to": "the same",
}


def pickled(value):
    return pickle.loads(pickle.dumps(value))


def found(place):
    home = flow
    for part in place.strip(".").split("."):
        home = getattr(home, part) if part else home
    for name in dir(home):
        value = getattr(home, name)
        if not name.startswith("__") and not isinstance(value, types.ModuleType):
            yield name, value


@pytest.mark.parametrize("world", [contextlib.nullcontext, flow.mock_torch])
@pytest.mark.parametrize("place", PLACES.split())
def test_every_public_name_is_pickled_and_copied(place, world):
    with world():
        for name, value in found(place):
            if name not in NOT_PICKLED:
                copied = copy.deepcopy(value), pickled(value)
                if isinstance(value, (type, types.FunctionType)):
                    assert all(twin is value for twin in copied), name


def test_methods_of_tensors_are_pickled():
    x = flow.tensor([1.5, -2.5])
    for name, value in vars(flow.Tensor).items():  # `own_test…`: an op that a test has registered
        other = name.startswith(("_", "own_test")) or name == "nelement"
        if isinstance(value, types.FunctionType) and not other:
            assert pickled(value) is value, name
    assert pickled(x.abs)().tolist() == [1.5, 2.5]
    assert pickled(x.long)().tolist() == [1, -2]


def test_another_process_finds_functions():
    functions = [flow.abs, flow.nn.functional.relu, flow.linalg.det, flow.Tensor.add_, flow.exp2]
    script = (
        "import pickle, sys; functions = pickle.loads(sys.stdin.buffer.read());"
        "print(*[function.__name__ for function in functions])"
    )
    given = pickle.dumps(functions)
    ran = subprocess.run([sys.executable, "-c", script], input=given, capture_output=True)
    assert ran.stdout.decode().split() == [f.__name__ for f in functions], ran.stderr.decode()


def scaled(module, args, output):
    return output * 2


def with_hook():
    module = nn.Linear(3, 2)
    module.register_forward_hook(scaled)
    return module


def pruned(method):
    module = nn.Linear(3, 2)
    prune.random_unstructured(module, "bias", 0.5)
    method(module)
    return module


MODULES = {
    "hook": with_hook,
    "of a function": lambda: nn.TransformerEncoderLayer(3, 1, 4, 0.0, flow.nn.functional.gelu),
    "pruned": lambda: pruned(lambda m: prune.l1_unstructured(m, "weight", 0.4)),
    "pruned twice": lambda: pruned(lambda m: prune.random_structured(m, "bias", 1, dim=0)),
    "pruned by rows": lambda: pruned(lambda m: prune.ln_structured(m, "weight", 1, 2, 0)),
    "weight norm": lambda: nn.utils.weight_norm(nn.Linear(3, 2)),
    "spectral norm": lambda: nn.utils.spectral_norm(nn.Linear(3, 2)).eval(),
}


@pytest.mark.filterwarnings("ignore:nn.utils.weight_norm")
@pytest.mark.parametrize("world", [contextlib.nullcontext, flow.mock_torch])
@pytest.mark.parametrize("kind", MODULES)
def test_modules_work_after_pickling(kind, world):
    with world():
        module = MODULES[kind]()
        twin = pickled(module)
    x = flow.ones(2, 2, 3) if kind == "of a function" else flow.ones(2, 3)
    np.testing.assert_array_equal(twin(x).detach().numpy(), module(x).detach().numpy())
    twin(x).sum().backward()
    assert all(p.grad is not None for p in twin.parameters())
    assert all(p.grad is None for p in module.parameters())


def test_parametrized_modules_are_copied_and_say_why_they_are_not_pickled():
    module = parametrizations.weight_norm(nn.Linear(3, 2))
    twin = copy.deepcopy(module)
    x = flow.ones(1, 3)
    np.testing.assert_array_equal(twin(x).detach().numpy(), module(x).detach().numpy())
    with pytest.raises(RuntimeError, match="state_d"):
        pickle.dumps(module)


OTHERS = {
    "Generator": lambda: flow.Generator().manual_seed(3),
    "Size": lambda: flow.ones(2, 3).shape,
    "device": lambda: flow.device("cpu"),
    "dtype": lambda: flow.float32,
    "distribution": lambda: flow.distributions.TransformedDistribution(
        flow.distributions.Normal(0.0, 1.0), [flow.distributions.ExpTransform()]
    ),
    "loader": lambda: flow.utils.data.DataLoader(range(3), shuffle=True),
    "packed": lambda: nn.utils.rnn.pack_sequence([flow.ones(2), flow.ones(1)]),
    "scheduler": lambda: flow.optim.lr_scheduler.OneCycleLR(
        flow.optim.Adam([flow.ones(1)]), 0.1, 10
    ),
    "sparse": lambda: flow.eye(2).to_sparse(),
    "values and indices": lambda: flow.eye(2).max(0),
}


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
@pytest.mark.parametrize("kind", OTHERS)
def test_what_belongs_to_training_is_copied(kind, copied):
    value = OTHERS[kind]()
    assert type(copied(value)) is type(value)
