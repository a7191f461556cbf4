"""Hooks of optimizers: which, when, in what order, and that captured steps heed them."""

import copy
import pickle

import pytest

import oneflow_lite as flow
from oneflow_lite.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    required,
)


def make(lib, kind="SGD"):
    x = lib.ones(2, requires_grad=True)
    x.grad = lib.ones(2)
    return x, getattr(lib.optim, kind)([x], lr=0.5)


def story(lib, module):
    """Return what the hooks saw, in order."""
    seen = []

    def note(word, result=None):
        def hook(optimizer, *rest):
            kinds = [type(r).__name__ for r in rest]
            seen.append((word, type(optimizer).__name__, kinds, x.sum().item()))
            return result

        return hook

    x, optimizer = make(lib)
    handles = [
        module.register_optimizer_step_pre_hook(note("all before")),
        module.register_optimizer_step_post_hook(note("all after")),
        optimizer.register_step_pre_hook(note("before")),
        optimizer.register_step_post_hook(note("after")),
        optimizer.register_state_dict_pre_hook(note("saving")),
        optimizer.register_state_dict_pre_hook(note("saving first"), prepend=True),
        optimizer.register_state_dict_post_hook(note("saved")),
        optimizer.register_state_dict_post_hook(note("saved first"), prepend=True),
        optimizer.register_load_state_dict_pre_hook(note("loading")),
        optimizer.register_load_state_dict_post_hook(note("loaded")),
    ]
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    for handle in handles:
        handle.remove()
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    return seen


def test_the_order_is_pytorchs(torch):
    import torch.optim.optimizer as theirs

    ours = story(flow, flow.optim.optimizer)
    assert ours == story(torch, theirs)
    assert len(ours) == 10


def test_a_pre_hook_may_change_the_arguments():
    _, optimizer = make(flow)
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: 7), {}))
    assert optimizer.step(lambda: 5) == 7
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="pair"):
        optimizer.step()
    with pytest.raises(TypeError, match="callable"):
        optimizer.register_step_post_hook(3)


def test_state_dicts_may_be_changed():
    _, optimizer = make(flow)
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "note": 1})
    assert optimizer.state_dict()["note"] == 1

    def halve(optimizer, state):
        groups = [{**group, "lr": group["lr"] / 2} for group in state["param_groups"]]
        return {**state, "param_groups": groups}

    optimizer.register_load_state_dict_pre_hook(halve)
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["lr"] == 0.25
    assert state["param_groups"][0]["lr"] == 0.5


class Twice(flow.optim.Adam):
    """Calls the step of its base class."""

    def step(self, closure=None):
        super().step()
        return super().step(closure)


def test_hooks_run_once_around_a_step_that_calls_another():
    x = flow.ones(2, requires_grad=True)
    x.grad = flow.ones(2)
    optimizer = Twice([x], lr=0.1)
    seen = []
    optimizer.register_step_pre_hook(lambda *args: seen.append(x[0].item()))
    optimizer.register_step_post_hook(lambda *args: seen.append(x[0].item()))
    optimizer.step()
    assert seen == pytest.approx([1.0, 0.8])


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_copies_have_hooks_of_their_own(copied):
    _, optimizer = make(flow)
    seen = []
    optimizer.register_step_pre_hook(lambda *args: seen.append(1))
    other = copied(optimizer)
    other.step()
    assert not seen
    other.register_step_pre_hook(lambda *args: seen.append(2))
    other.step()
    optimizer.step()
    assert seen == [2, 1]


class Old(Optimizer):
    """An optimizer as they are written for PyTorch, with state of its own shape."""

    def __init__(self, params, lr=required, decay=0.9):
        super().__init__(params, {"lr": lr, "decay": decay})

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("later", False)

    def step(self, closure=None):
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["mean"] = p.new_zeros(())
                    state["seen"] = [p.data.clone()]
                state["step"] += 1
                state["mean"].mul_(group["decay"]).add_(p.grad.mean())
                p.data.add_(p.grad * state["mean"], alpha=-group["lr"] / state["step"])
        return loss


def test_an_optimizer_written_for_pytorch():
    x = flow.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="lr"):
        Old([x])
    optimizer, twin = Old([x], lr=0.1), Old([x], lr=0.2)
    x.grad = flow.ones(2)
    optimizer.step()
    assert x[0].item() == pytest.approx(0.9)
    twin.load_state_dict(optimizer.state_dict())
    assert twin.param_groups[0]["lr"] == 0.1
    assert twin.param_groups[0]["later"] is False
    kept = twin.state[x]
    assert kept["step"] == 1
    assert isinstance(kept["step"], int)
    assert kept["mean"] is not optimizer.state[x]["mean"]
    assert kept["seen"][0][0].item() == 1.0


def test_names_stand_in_all_groups_or_none_and_are_loaded():
    a, b = (flow.ones(1, requires_grad=True) for _ in range(2))
    optimizer = flow.optim.Adam([("a", a)])
    with pytest.raises(ValueError, match="names"):
        optimizer.add_param_group({"params": [b]})
    other = flow.optim.Adam([("old", b)])
    other.load_state_dict(optimizer.state_dict())
    assert other.param_groups[0]["param_names"] == ["a"]


@pytest.mark.parametrize("where", ["one", "all"])
def test_a_compiled_step_heeds_hooks_that_come_later(where):
    x = flow.ones(2, requires_grad=True)
    optimizer = flow.optim.SGD([x], lr=0.1)

    @flow.compile
    def step(factor):
        optimizer.zero_grad()
        (x * factor).sum().backward()
        optimizer.step()

    for _ in range(4):
        step(flow.ones(2))
    assert step.explain().hits
    seen = []
    register = (
        register_optimizer_step_post_hook if where == "all" else optimizer.register_step_post_hook
    )
    with register(lambda *args: seen.append(1)):
        step(flow.ones(2))
        step(flow.ones(2))
    step(flow.ones(2))
    assert seen == [1, 1]
    assert x[0].item() == pytest.approx(0.3)
