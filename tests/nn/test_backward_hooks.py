"""Full backward hooks of modules: order, what they get, what they return, and PyTorch's answers."""

from __future__ import annotations

import collections
import copy
import gc
import pickle
import threading
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.errors import ArgumentTypeError, HookError, InplaceError

Pair = collections.namedtuple("Pair", "first second")


def module_of(lib: Any, f: Any, **parameters: Any) -> Any:
    """Return a module whose forward is f, called with the module's parameters by name."""

    class Given(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, value in parameters.items():
                setattr(self, name, lib.nn.Parameter(value))

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return f(*args, **kwargs, **{name: getattr(self, name) for name in parameters})

    return Given()


def plain(value: Any) -> Any:
    """Return gradients as nested lists."""
    if isinstance(value, (tuple, list)):
        return tuple(map(plain, value))
    return value.tolist() if hasattr(value, "tolist") else value


class Log(list):
    """Hooks that write down what they get."""

    def pre(self, name: str, result: Any = None) -> Any:
        def hook(module: Any, grad_output: Any) -> Any:
            self.append((name, plain(grad_output)))
            return result(grad_output) if result else None

        return hook

    def post(self, name: str, result: Any = None) -> Any:
        def hook(module: Any, grad_input: Any, grad_output: Any) -> Any:
            self.append((name, plain(grad_input), plain(grad_output)))
            return result(grad_input) if result else None

        return hook

    def on(self, module: Any, pre: Any = None, post: Any = None) -> Any:
        module.register_full_backward_pre_hook(self.pre("pre", pre))
        module.register_full_backward_hook(self.post("post", post))
        return module


def inputs(lib: Any) -> tuple[Any, Any]:
    """Return a tensor that requires a gradient and one that requires none."""
    return lib.tensor([1.0, 2.0], requires_grad=True), lib.tensor([3.0, 4.0])


def order(lib: Any, log: Log) -> None:
    a, _ = inputs(lib)
    module = module_of(lib, lambda x: x * 2)
    for name in "ab":
        module.register_full_backward_pre_hook(log.pre(f"pre {name}"))
        module.register_full_backward_hook(log.post(f"post {name}"))
    for name in "cd":
        module.register_full_backward_pre_hook(log.pre(f"pre {name}"), prepend=True)
        module.register_full_backward_hook(log.post(f"post {name}"), prepend=True)
    module.register_forward_pre_hook(lambda m, args: log.append(args[0].grad_fn is x.grad_fn))
    module.register_forward_hook(lambda m, args, out: log.append(args[0].grad_fn is x.grad_fn))
    x = a * 1
    x.register_hook(lambda dx: log.append(("input", plain(dx))))
    y = module(x)
    y.register_hook(lambda dy: log.append(("output", plain(dy))))
    y.sum().backward()


def many_values(lib: Any, log: Log) -> None:
    a, b = inputs(lib)
    module = log.on(module_of(lib, lambda x, y, n, i: (x * y, None, y * 2, x + 1, i)))
    out = module(a, b, 5, lib.tensor([1, 2]))
    log.append([getattr(y, "requires_grad", None) for y in out])
    out[0].sum().backward()
    log.append(plain(a.grad))


def replaced(lib: Any, log: Log) -> None:
    a, b = inputs(lib)
    module = log.on(
        module_of(lib, lambda x, y: x * 2), lambda dy: (dy[0] * 10,), lambda dx: (dx[0] * 3, None)
    )
    module.register_full_backward_hook(log.post("second"))
    log.append(plain(lib.autograd.grad(module(a, b).sum(), a)))


def replaced_by_a_list(lib: Any, log: Log) -> None:
    a, _ = inputs(lib)
    module = log.on(
        module_of(lib, lambda x: x * 2), lambda dy: [dy[0] * 10], lambda dx: [dx[0] * 3]
    )
    log.append(plain(lib.autograd.grad(module(a).sum(), a)))


def replaced_by_none(lib: Any, log: Log) -> None:
    a, _ = inputs(lib)
    module = log.on(module_of(lib, lambda x: x * 2), None, lambda dx: (None,))
    log.append(lib.autograd.grad(module(a).sum(), a, allow_unused=True))


def no_input_requires_grad(lib: Any, log: Log) -> None:
    _, b = inputs(lib)
    module = log.on(module_of(lib, lambda x, n, w: x * w, w=lib.ones(2)), lambda dy: (dy[0] * 10,))
    module(b, 1).sum().backward()
    log.append(plain(module.w.grad))


def no_inputs(lib: Any, log: Log) -> None:
    module = log.on(module_of(lib, lambda w: w * 2, w=lib.ones(2)))
    module().sum().backward()


def keyword_inputs(lib: Any, log: Log) -> None:
    a, b = inputs(lib)
    log.on(module_of(lib, lambda x, y: x * y))(b, y=a).sum().backward()


def gradient_of_a_parameter(lib: Any, log: Log) -> None:
    a, _ = inputs(lib)
    module = log.on(module_of(lib, lambda x, w: x * w, w=lib.ones(2)))
    log.append(plain(lib.autograd.grad(module(a).sum(), module.w)))


def gradient_of_the_output(lib: Any, log: Log) -> None:
    a, _ = inputs(lib)
    y = log.on(module_of(lib, lambda x: x * 2))(a)
    log.append(plain(lib.autograd.grad(y.sum(), y)))


def unused_output_and_input(lib: Any, log: Log) -> None:
    a, b = inputs(lib)
    b.requires_grad_()
    module = log.on(module_of(lib, lambda x, y, z: (x * 2, y * 3)))
    module(a, b, a * 1)[0].sum().backward()
    log.append(plain((a.grad, b.grad)))


def second_derivative(lib: Any, log: Log) -> None:
    a, _ = inputs(lib)
    y = log.on(module_of(lib, lambda x: x * x * x))(a)
    (dx,) = lib.autograd.grad(y.sum(), a, create_graph=True)
    log.append("second")
    log.append(plain(lib.autograd.grad(dx.sum(), a)))


def backward_twice(lib: Any, log: Log) -> None:
    a, _ = inputs(lib)
    y = log.on(module_of(lib, lambda x: x * x))(a).sum()
    y.backward(retain_graph=True)
    y.backward()


def called_twice(lib: Any, log: Log) -> None:
    a, _ = inputs(lib)
    module = log.on(module_of(lib, lambda x: x * x))
    module(module(a)).sum().backward()


def nested(lib: Any, log: Log) -> None:
    a, _ = inputs(lib)
    inner = module_of(lib, lambda x: x * 2)
    outer = module_of(lib, lambda x: inner(x) + 1)
    for name, module in (("outer", outer), ("inner", inner)):
        module.register_full_backward_pre_hook(log.pre(f"{name} pre"))
        module.register_full_backward_hook(log.post(name))
    outer(a).sum().backward()


def one_input_twice(lib: Any, log: Log) -> None:
    a, _ = inputs(lib)
    log.on(module_of(lib, lambda x, y: x * y * y))(a, a).sum().backward()
    log.append(plain(a.grad))


def input_handed_through(lib: Any, log: Log) -> None:
    a, b = inputs(lib)
    y, same = log.on(module_of(lib, lambda x, y: (x, y)))(a, b)
    log.append(same.requires_grad)
    y.sum().backward()


def changed_after_the_call(lib: Any, log: Log) -> None:
    a, _ = inputs(lib)
    module = module_of(lib, lambda x: x * x)
    handles = [
        module.register_full_backward_pre_hook(log.pre("removed")),
        module.register_full_backward_hook(log.post("removed")),
    ]
    y = module(a)
    for handle in handles:
        handle.remove()
    log.on(module)
    y.sum().backward()
    module(a).sum().backward()


def output_of_another_kind(lib: Any, log: Log) -> None:
    a, _ = inputs(lib)
    for out in (lambda x: [x * 2], lambda x: {0: x * 2}):
        log.on(module_of(lib, out))(a)[0].sum().backward()
    log.append(plain(a.grad))


def named_tuple(lib: Any, log: Log) -> None:
    a, _ = inputs(lib)
    out = log.on(module_of(lib, lambda x: Pair(x * 2, 5)))(a)
    log.append(type(out).__name__)
    out.first.sum().backward()


def without_grad_mode(lib: Any, log: Log) -> None:
    a, _ = inputs(lib)
    module = log.on(module_of(lib, lambda x: x * 2))
    with lib.no_grad():
        log.append(module(a).requires_grad)


def forward_hook_result(lib: Any, log: Log) -> None:
    a, _ = inputs(lib)
    module = log.on(module_of(lib, lambda x: x * 2))
    module.register_forward_hook(lambda m, args, out: out * 5)
    module(a).sum().backward()


CASES = [
    order,
    many_values,
    replaced,
    replaced_by_a_list,
    replaced_by_none,
    no_input_requires_grad,
    no_inputs,
    keyword_inputs,
    gradient_of_a_parameter,
    gradient_of_the_output,
    unused_output_and_input,
    second_derivative,
    backward_twice,
    called_twice,
    nested,
    one_input_twice,
    input_handed_through,
    changed_after_the_call,
    output_of_another_kind,
    named_tuple,
    without_grad_mode,
    forward_hook_result,
]


def told(lib: Any, case: Any) -> tuple[Log, int]:
    """Return what a case wrote down and how often it warned."""
    log = Log()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        case(lib, log)
    return log, len(caught)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_hooks_get_what_pytorchs_get(case, torch):
    ours, theirs = told(flow, case), told(torch, case)
    assert ours == theirs and ours[0]


def bad(
    lib: Any, f: Any, pre: Any = None, post: Any = None, x: Any = None, **parameters: Any
) -> None:
    module = Log().on(module_of(lib, f, **parameters), pre, post)
    module(inputs(lib)[0] * 1 if x is None else x).sum().backward()


BAD = {
    "prehook, too many": (
        lambda lib: bad(lib, lambda x: x * 2, lambda dy: (dy[0], dy[0])),
        HookError,
        r"full_backward_pre_hook of Given returned 2 gradient\(s\), expected None or a tuple of 1",
    ),
    "prehook, no tuple": (
        lambda lib: bad(lib, lambda x: x * 2, lambda dy: dy[0]),
        HookError,
        "full_backward_pre_hook of Given returned Tensor",
    ),
    "hook, too many": (
        lambda lib: bad(lib, lambda x: x * 2, None, lambda dx: (dx[0], dx[0])),
        HookError,
        r"full_backward_hook of Given returned 2 gradient\(s\), expected None or a tuple of 1",
    ),
    "hook, a gradient for no input": (
        lambda lib: bad(
            lib, lambda x, w: x * w, None, lambda dx: (lib.ones(2),), lib.ones(2), w=lib.ones(2)
        ),
        HookError,
        "full_backward_hook of Given returned a gradient",
    ),
    "input written in place": (
        lambda lib: bad(lib, lambda x: x.mul_(2)),
        InplaceError,
        r"mul_\(\).*backward hooks of a module.*clone",
    ),
    "output written in place": (
        lambda lib: Log().on(module_of(lib, lambda x: x * 2))(inputs(lib)[0]).mul_(2),
        InplaceError,
        r"mul_\(\).*backward hooks of a module.*clone",
    ),
}


@pytest.mark.filterwarnings("ignore:.*ull")
@pytest.mark.parametrize("name", BAD)
def test_what_raises_in_pytorch_raises_by_name(name, torch):
    build, kind, text = BAD[name]
    with pytest.raises(kind, match=text) as caught:
        build(flow)
    with pytest.raises(Exception) as theirs:
        build(torch)
    assert isinstance(caught.value, theirs.type)


def test_a_hook_has_to_be_callable():
    module = nn.ReLU()
    for register in (module.register_full_backward_hook, module.register_full_backward_pre_hook):
        with pytest.raises(ArgumentTypeError, match=f"{register.__name__}.*got int"):
            register(3)


def test_prehooks_alone_leave_the_inputs_alone():
    a, _ = inputs(flow)
    module, log = module_of(flow, lambda x: x.mul_(2)), Log()
    module.register_full_backward_pre_hook(log.pre("pre"))
    module(a * 1).sum().backward()
    assert log == [("pre", ([1, 1],))] and a.grad.tolist() == [2, 2]


def test_prehooks_alone_warn_of_nothing():
    _, b = inputs(flow)
    module, log = module_of(flow, lambda x, w: x * w, w=flow.ones(2)), Log()
    module.register_full_backward_pre_hook(log.pre("pre"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module(b).sum().backward()
    assert log == [("pre", ([1, 1],))]


def test_an_input_that_was_not_asked_for_is_none():
    a, b = inputs(flow)
    b.requires_grad_()
    log = Log()
    module = log.on(module_of(flow, lambda x, y: x * y))
    flow.autograd.grad(module(a, b).sum(), a)
    assert log[1:] == [("post", ([3, 4], None), ([1, 1],))]


def test_warnings_address_the_caller():
    _, b = inputs(flow)
    module = Log().on(module_of(flow, lambda x, w: x * w, w=flow.ones(2)))
    y = module(b).sum()
    with pytest.warns(UserWarning, match="none of its inputs requires a gradient") as caught:
        y.backward()
    assert caught[0].filename == __file__
    module = Log().on(module_of(flow, lambda x: [x]))
    with pytest.warns(UserWarning, match="its output is a list") as caught:
        module(b)
    assert caught[0].filename == __file__


def test_an_exception_in_a_hook_keeps_its_type_and_the_engine_works_on():
    a, _ = inputs(flow)
    module = nn.ReLU()

    def fail(module, dx, dy):
        raise KeyError("mine")

    with module.register_full_backward_hook(fail):
        y = module(a)
    with pytest.raises(KeyError, match="mine"):
        y.sum().backward()
    assert a.grad is None
    module(a).sum().backward()
    assert a.grad.tolist() == [1, 1]


def test_two_backward_calls_at_a_time_do_not_mix():
    a, _ = inputs(flow)
    module, seen = module_of(flow, lambda x: x * x), []
    barrier = threading.Barrier(2)

    def wait(module, dy):
        barrier.wait(10)

    module.register_full_backward_pre_hook(wait)
    module.register_full_backward_hook(lambda m, dx, dy: seen.append((plain(dx), plain(dy))))
    y = module(a)

    def work(n):
        flow.autograd.grad(y, a, flow.full([2], float(n)), retain_graph=True)

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [(([2, 4],), ([1, 1],)), (([20, 40],), ([10, 10],))]


def test_nothing_is_left_when_the_graph_goes():
    gc.collect()
    gc.disable()
    try:
        a, _ = inputs(flow)
        module = Log().on(module_of(flow, lambda x, w: x * w, w=flow.ones(2)))
        y = module(a)
        gone = [weakref.ref(y), weakref.ref(y.grad_fn)]
        flow.autograd.grad(y.sum(), module.w)  # the hooks of the inputs never run
        del y
        assert [r() for r in gone] == [None, None]
    finally:
        gc.enable()


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(flow.ones(2))

    def forward(self, x):
        return x * self.w


def keep(module, dx, dy):
    """A hook that can be pickled."""
    return (dx[0] * 7,)


def test_copies_keep_hooks_and_the_state_is_without():
    module = Scale()
    handle = module.register_full_backward_hook(keep)
    assert list(module.state_dict()) == ["w"]
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        a, _ = inputs(flow)
        other(a).sum().backward()
        assert a.grad.tolist() == [7, 7]
    handle.remove()
    a, _ = inputs(flow)
    module(a).sum().backward()
    assert a.grad.tolist() == [1, 1]


def test_on_each_device(device):
    x = flow.tensor([1.0, -2.0], device=device, requires_grad=True)
    c = flow.tensor([1, 2], device=device)
    log = Log()
    module = log.on(module_of(flow, lambda x, c: (x.relu() * c, c)))
    module.register_full_backward_hook(lambda m, dx, dy: (dx[0] * 3, None))
    y, _ = module(x, c)
    y.sum().backward()
    assert log == [("pre", ([1, 1], None)), ("post", ([1, 0], [0, 0]), ([1, 1], None))]
    assert x.grad.tolist() == [3, 0] and x.grad.device == x.device


def test_gradients_through_hooks_are_those_without():
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    x = flow.tensor(np.linspace(-1, 1, 6).reshape(2, 3).astype(np.float32), requires_grad=True)
    wanted = [x, *net.parameters()]

    def second():
        dx = flow.autograd.grad(net(x).sum(), x, create_graph=True)[0]
        return [
            None if g is None else g.tolist()
            for g in flow.autograd.grad((dx * dx).sum(), wanted, allow_unused=True)
        ]

    expected = second()
    for module in net:
        Log().on(module)
    assert second() == expected
