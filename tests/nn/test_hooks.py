"""Forward hooks: order, arguments, results, errors, and taking them back."""

import pytest

import oneflow_lite as flow
from oneflow_lite import nn


class Add(nn.Module):
    def forward(self, x, y=0):
        return x + y


def test_hooks_see_arguments_and_output_in_order():
    module, log = Add(), []
    module.register_forward_pre_hook(lambda m, args: log.append(("pre", m is module, args)))
    module.register_forward_hook(lambda m, args, out: log.append(("post", m is module, args, out)))
    assert module(1, y=2) == 3
    assert log == [("pre", True, (1,)), ("post", True, (1,), 3)]


def test_hooks_replace_arguments_and_output():
    module = Add()
    module.register_forward_pre_hook(lambda m, args: args[0] * 10)  # a single value is wrapped
    module.register_forward_pre_hook(lambda m, args: (args[0], 5))
    module.register_forward_hook(lambda m, args, out: out * 2)
    module.register_forward_hook(lambda m, args, out: out + 1)
    assert module(1) == 31


def test_hooks_with_keyword_arguments():
    module = Add()
    module.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"y": kwargs["y"] * 2}), with_kwargs=True
    )
    seen = []
    module.register_forward_pre_hook(
        lambda m, args, kwargs: seen.append((args, kwargs)), with_kwargs=True
    )
    module.register_forward_hook(lambda m, args, kwargs, out: (args, kwargs, out), with_kwargs=True)
    assert module(1, y=2) == ((1,), {"y": 4}, 5)
    assert seen == [((1,), {"y": 4})]


def test_prepended_hooks_run_first():
    module, log = Add(), []
    for name, prepend in (("a", False), ("b", True), ("c", False), ("d", True)):
        module.register_forward_pre_hook(lambda m, args, n=name: log.append(n), prepend=prepend)
        module.register_forward_hook(lambda m, args, out, n=name: log.append(n), prepend=prepend)
    module(1)
    assert log == ["d", "b", "a", "c"] * 2


def test_a_removed_hook_is_silent():
    module, log = Add(), []
    handle = module.register_forward_hook(lambda m, args, out: log.append("kept"))
    with module.register_forward_hook(lambda m, args, out: log.append("block")):
        module(1)
    handle.remove()
    handle.remove()
    module(1)
    assert log == ["kept", "block"]


def test_a_hook_may_remove_itself_while_it_runs():
    module, log = Add(), []

    def once(m, args, out):
        log.append(out)
        handle.remove()

    handle = module.register_forward_hook(once)
    module.register_forward_hook(lambda m, args, out: log.append("second"))
    module(1)
    module(2)
    assert log == [1, "second", "second"]


def test_hooks_of_submodules_run():
    net, log = nn.Sequential(nn.Linear(2, 3), nn.ReLU()), []
    for module in net:
        module.register_forward_hook(lambda m, args, out: log.append(out.shape))
    net(flow.ones(1, 2))
    assert log == [(1, 3), (1, 3)]


def test_a_hook_that_returns_nonsense_is_named():
    module = Add()
    module.register_forward_pre_hook(lambda m, args, kwargs: args, with_kwargs=True)
    with pytest.raises(RuntimeError, match="register_forward_pre_hook"):
        module(1)


class Failing(nn.Module):
    def forward(self):
        raise ValueError("from forward")


def test_always_called_hooks_see_a_failure():
    module, log = Failing(), []
    module.register_forward_hook(lambda m, args, out: log.append("never"))
    module.register_forward_hook(lambda m, args, out: log.append(out), always_call=True)
    with pytest.raises(ValueError, match="from forward"):
        module()
    assert log == [None]


def test_always_called_hooks_run_once_when_another_hook_fails():
    module, log = Add(), []

    def fail(m, args, out):
        raise KeyError("from a hook")

    module.register_forward_hook(lambda m, args, out: log.append("first"), always_call=True)
    module.register_forward_hook(fail)
    module.register_forward_hook(lambda m, args, out: log.append(out), always_call=True)
    with pytest.raises(KeyError, match="from a hook"):
        module(1)
    assert log == ["first", 1]


def test_an_error_in_an_always_called_hook_does_not_hide_the_first_one():
    module = Failing()

    def fail(m, args, out):
        raise KeyError("from a hook")

    module.register_forward_hook(fail, always_call=True)
    with pytest.warns(UserWarning, match="from a hook"), pytest.raises(ValueError, match="forward"):
        module()


def test_gradients_flow_through_what_hooks_return():
    layer = nn.Linear(1, 1, bias=False)
    layer.register_forward_hook(lambda m, args, out: out * 3)
    x = flow.ones(1, 1, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad.item() == pytest.approx(3 * layer.weight.item())
