"""A compiled module is the module but for its calls, whatever the class: each kind in each use.

A use describes what it sees of an object. It is given a plain one, one that `flow.compile`
returned, and one that `compile()` was called on, and has to see the same.
"""

from __future__ import annotations

import contextlib
import copy
import pickle
import weakref
from typing import NamedTuple

import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from tests.compiler.kinds_of_modules import KINDS, Plain

pytestmark = pytest.mark.filterwarnings("ignore:flow.compile")
USES = {}


def compiled_in_place(module):
    module.compile()
    return module


WAYS = {"compile": flow.compile, "in place": compiled_in_place}


def use(function):
    USES[function.__name__] = function
    return function


def calls(module, times=2):
    return [module(flow.tensor([1.0, k])).tolist() for k in range(1, times + 1)]


class Raised(NamedTuple):
    error: type
    text: str


def attempt(function):
    """Return what a function returns, or what it raises."""
    try:
        return function()
    except Exception as error:
        return Raised(type(error), str(error))


@use
def called(module):
    by_keyword = attempt(lambda: module(flow.ones(2), times=3).tolist())
    return calls(module, 3), by_keyword, attempt(module)


@use
def called_in_its_other_methods(module):
    return [module.twice(flow.ones(2)).tolist() for _ in range(3)]


@use
def called_by_forward(module):
    calls(module)
    return [module.forward(flow.ones(2)).tolist() for _ in range(2)], module.forward.__name__


@use
def trained(module):
    calls(module, 1)
    optimizer = flow.optim.SGD(module.parameters(), lr=0.01)
    losses = []
    for _ in range(4):
        loss = module(flow.ones(2)).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.tolist() for p in module.parameters()]


@use
def what_it_is(module):
    kind = module.__class__
    assert isinstance(module, kind) and all(isinstance(module, base) for base in kind.__mro__)
    assert not isinstance(module, nn.Linear)
    bases = [base.__name__ for base in kind.__mro__]  # some make a class for each object
    text = repr(module), str(module), f"{module}", module.__doc__, module.extra_repr()
    return bases, type(module).__name__, callable(module), bool(module), text


@use
def names(module):
    hidden = {"_compiled_call_impl"}
    listed = {*dir(module)}, {*vars(module)} - hidden, hasattr(module, "weight")
    return listed, attempt(lambda: hasattr(module, "width")), attempt(lambda: module.width)


@use
def attributes_set_and_deleted(module):
    seen = []
    for value in (5.0, 7.0):
        module.scale = module.rate = value
        seen += [module.scale, module.rate, calls(module, 2)]
    del module.rate
    return seen, attempt(lambda: delattr(module, "rate")), attempt(lambda: module.rate)


@use
def members_replaced(module):
    calls(module)
    module.weight = nn.Parameter(flow.tensor([3.0, 4.0]))
    module.extra = Plain()
    module.register_buffer("more", flow.ones(1))
    with flow.no_grad():
        module.total += 1
    listed = [name for name, _ in module.named_modules()], list(module.state_dict())
    return calls(module), listed, module.total.tolist()


@use
def state(module):
    calls(module)
    kept = {name: tensor * 2 for name, tensor in module.state_dict().items()}
    with contextlib.suppress(KeyError):
        module.load_state_dict(kept)
    return list(kept), [p.tolist() for p in module.parameters()], calls(module)


@use
def walked_through(module):
    calls(module, 1)
    found = (
        [type(each).__name__ for each in module.modules()],
        [n for n, _ in module.named_parameters()],
    )
    seen = []
    module.apply(lambda each: seen.append(type(each).__name__))
    return found, seen, [n for n, _ in module.named_buffers()]


@use
def what_returns_itself(module):
    calls(module, 1)
    same = [module.eval(), module.train(), module.double(), module.to(flow.float32)]
    same += [module.requires_grad_(True), module.apply(lambda each: None)]
    freeze = getattr(module, "freeze", module.eval)
    return [each is module for each in (*same, freeze())], calls(module)


@use
def modes(module):
    calls(module, 1)
    module.eval()
    before = module.training, [each.training for each in module.modules()], calls(module)
    module.train()
    return before, module.training, calls(module)


@use
def hooks(module):
    calls(module)
    seen = []
    with module.register_forward_pre_hook(lambda m, args: seen.append(isinstance(m, nn.Module))):
        before = calls(module)
    with module.register_forward_hook(lambda m, args, y: y + len(args)):
        after = calls(module)
    return seen, before, after, calls(module)


@use
def copied(module):
    calls(module)
    seen = []
    for made in (copy.deepcopy(module), copy.copy(module)):
        assert made is not module and isinstance(made, module.__class__)
        before = calls(made)
        made.scale = 5.0
        made.note = "copied"
        seen.append((before, calls(made), calls(module), hasattr(module, "weight")))
    return seen


@use
def pickled(module):
    calls(module)
    made = pickle.loads(pickle.dumps(module))
    made.scale = 5.0
    return isinstance(made, module.__class__), list(made.state_dict()), calls(made), calls(module)


@use
def inside_another(module):
    calls(module, 1)
    outer = nn.Sequential(nn.Identity(), module)
    outer.named = module
    outer.eval()
    listed = list(outer.state_dict()), len(list(outer.modules())), len(list(outer.parameters()))
    outer.load_state_dict(outer.double().float().state_dict())
    if "Parametrized" not in type(module).__name__:
        copied = copy.deepcopy(outer)
        copied[1].scale = 5.0
        listed += calls(copied), copied[1] is copied.named
    return listed, module.training, calls(outer), repr(outer), outer[1] is module


@use
def compiled_around_it(module):
    calls(module, 1)
    around = flow.compile(lambda x: module(x) * 10)
    results = calls(around, 4)
    module.scale = 5.0
    return results, calls(around, 4), [around(flow.ones(2), *()).tolist() for _ in range(2)]


@use
def an_argument_of_what_is_compiled(module):
    calls(module, 1)
    step = flow.compile(lambda net, x: net(x) * 10)
    results = [step(module, flow.ones(2)).tolist() for _ in range(3)]
    module.scale = 5.0
    return results, [step(module, flow.ones(2)).tolist() for _ in range(3)]


@use
def compared_and_hashed(module):
    other = Plain()
    table = {module: 1, other: 2}
    weakly = weakref.WeakKeyDictionary({module: 3})
    found = table[module], weakly[module], weakref.ref(module)() is module
    return module == module, module != module, module == other, other == module, found


@use
def special_methods(module):
    def added():
        found = module
        found += Plain()
        return found is module, len(found)

    def entered():
        with module as inside:
            return inside is module, module.left

    found = attempt(lambda: (len(module), len(list(module)), module[1] in module))
    has = [hasattr(module, name) for name in ("__len__", "__iter__", "__enter__", "__iadd__")]
    return found, has, attempt(added), attempt(entered)


@use
def parametrized_later(module):
    calls(module, 1)
    utils = nn.utils.parametrize
    assert utils.register_parametrization(module, "weight", nn.Tanh()) is module
    results = calls(module), list(module.state_dict())
    utils.remove_parametrizations(module, "weight")
    return results, calls(module), list(module.state_dict())


@use
def given_to_functional_call(module):
    calls(module, 1)
    state = {name: tensor.detach() * 2 for name, tensor in module.named_parameters()}
    called = [flow.func.functional_call(module, state, flow.ones(2)).tolist() for _ in range(3)]
    return called, calls(module)


# Uses that some kinds do not allow, compiled or not.
REFUSED = {
    "called_in_its_other_methods": {"Sequential"},
    "members_replaced": {"Sequential", "Parametrized"},
    "copied": {"Parametrized"},
    "pickled": {"Parametrized"},
    "parametrized_later": {"InRegistry", "OwnMetaclass", "Sequential"},
}


# In place it is the same object: only what calls or copies it could differ.
IN_PLACE = {
    called, called_in_its_other_methods, trained, names, members_replaced,
    hooks, copied, pickled, inside_another, compiled_around_it, parametrized_later,
}  # fmt: skip


@pytest.mark.slow(but=len(USES))
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_use(use, kind):
    plain = attempt(lambda: USES[use](KINDS[kind]()))
    ways = WAYS.values() if USES[use] in IN_PLACE else [flow.compile]
    for compiled in ways:
        assert attempt(lambda make=compiled: USES[use](make(KINDS[kind]()))) == plain
    raised = isinstance(plain, Raised)
    assert raised == (kind in REFUSED.get(use, ())), plain
