"""append_backward and gradients: the ops that autograd appends, and what they compute."""

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import static
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, CaptureError, GradientError

rng = np.random.default_rng(0)
X = rng.standard_normal((4, 3)).astype(np.float32)
NETS = {
    "linear": lambda: flow.nn.Linear(3, 2),
    "mlp": lambda: flow.nn.Sequential(
        flow.nn.Linear(3, 5), flow.nn.ReLU(), flow.nn.Linear(5, 5), flow.nn.Tanh()
    ),
    "normalized": lambda: flow.nn.Sequential(
        flow.nn.Linear(3, 4), flow.nn.BatchNorm1d(4), flow.nn.LayerNorm(4), flow.nn.Softmax(-1)
    ),
}


def run(main, startup, feed, fetch_list):
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    return executor.run(main, feed, fetch_list, scope)


@pytest.mark.parametrize("make", NETS.values(), ids=NETS)
def test_gradients_of_parameters_are_those_of_eager(make):
    net = make()
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        loss = (net(static.data("x", X.shape)) ** 2).mean()
        pairs = static.append_backward(loss)
    assert [id(parameter) for parameter, _ in pairs] == [id(p) for p in net.parameters()]
    fetched = run(main, startup, {"x": X}, [loss, *(grad for _, grad in pairs)])
    eager = (net(flow.tensor(X)) ** 2).mean()
    wanted = [eager, *flow.autograd.grad(eager, list(net.parameters()))]
    for have, want in zip(fetched, wanted, strict=True):
        np.testing.assert_array_equal(have, want.detach().numpy())


def test_the_backward_pass_begins_with_fill_constant_and_is_marked():
    main = static.Program()
    with static.program_guard(main, static.Program()):
        loss = flow.nn.Linear(3, 1)(static.data("x", X.shape)).sum()
        forward = len(main.global_block().ops)
        static.append_backward(loss)
        after = loss * 2
    ops = main.global_block().ops
    backward = ops[forward:-1]
    assert (backward[0].type, backward[0].attrs["value"]) == ("fill_constant", 1.0)
    assert {op.role for op in backward} == {"backward"}
    assert {op.role for op in ops[:forward]} == {"forward"}
    assert ops[-1].outputs == (after.name,) and ops[-1].role == "forward"


def test_parameter_list_and_no_grad_set():
    with static.program_guard(static.Program(), static.Program()):
        net = flow.nn.Sequential(flow.nn.Linear(3, 2), flow.nn.Linear(2, 1))
        loss = net(static.data("x", X.shape)).sum()
        names = [parameter.name for parameter in net.parameters()]
        listed = static.append_backward(loss, parameter_list=[net[1].weight, names[0]])
        assert [parameter.name for parameter, _ in listed] == [names[2], names[0]]
        rest = static.append_backward(loss, no_grad_set={net[0].weight, names[1]})
        assert [parameter.name for parameter, _ in rest] == names[2:]
        net[0].weight.requires_grad = False
        assert len(static.append_backward(net(static.data("z", X.shape)).sum())) == 3
        with pytest.raises(ArgumentError, match="parameter_list"):
            static.append_backward(loss, parameter_list=["no_such_parameter"])
        with pytest.raises(ArgumentTypeError, match="no_grad_set"):
            static.append_backward(loss, no_grad_set={3})


def test_an_unused_parameter_is_left_out():
    with static.program_guard(static.Program(), static.Program()):
        x = static.data("x", X.shape)
        used, unused = flow.nn.Linear(3, 1), flow.nn.Linear(3, 1)
        unused(x)
        pairs = static.append_backward(used(x).sum())
    assert [parameter is used.weight for parameter, _ in pairs] == [True, False]
    assert len(pairs) == 2


def test_losses_that_cannot_be_differentiated():
    with static.program_guard(static.Program(), static.Program()):
        x = static.data("x", X.shape)
        net = flow.nn.Linear(3, 2)
        for loss in (net(x), x.sum()):
            with pytest.raises(GradientError, match="append_backward"):
                static.append_backward(loss)
        with pytest.raises(ArgumentTypeError, match="loss"):
            static.append_backward(3.0)
        x.requires_grad = True
    with static.program_guard(static.Program(), static.Program()):
        x = static.data("x", X.shape)
        x.requires_grad = True
        with pytest.raises(GradientError, match="no parameter"):
            static.append_backward(x.sum())
    with pytest.raises(CaptureError, match="program_guard"):
        static.append_backward(flow.ones(1))
    with pytest.raises(CaptureError, match="program_guard"):
        static.gradients(flow.ones(1), flow.ones(1))


# gradients


def cube(x):
    (first,) = static.gradients(x**3 + x.sin(), x)
    (second,) = static.gradients(first, x)
    (third,) = static.gradients((second * x).sum(), x)
    return first, second, third


def eager_cube(x):
    def of(y):
        return flow.autograd.grad(y, x, flow.ones_like(y), create_graph=True)[0]

    first = of(x**3 + x.sin())
    second = of(first)
    return first, second, of((second * x).sum())


def test_gradients_of_gradients():
    main = static.Program()
    with static.program_guard(main, static.Program()):
        x = static.data("x", X.shape)
        x.requires_grad = True
        symbolic = cube(x)
    fetched = static.Executor().run(main, {"x": X}, list(symbolic))
    for have, want in zip(fetched, eager_cube(flow.tensor(X, requires_grad=True)), strict=True):
        np.testing.assert_array_equal(have, want.detach().numpy())


def test_target_gradients_and_inputs_that_are_not_used():
    main = static.Program()
    with static.program_guard(main, static.Program()):
        x, z, weights = (static.data(name, X.shape) for name in ("x", "z", "weights"))
        x.requires_grad = z.requires_grad = True
        y = x * x
        dx, dz = static.gradients([y], [x, z], [weights])
        both = static.gradients([y, x * 3], x)[0]
        left_out = static.gradients(y, [x], no_grad_set={"x"})
        with pytest.raises(GradientError, match="target_gradients"):
            static.gradients([y], [x], [weights, weights])
    assert dz is None and left_out == [None]
    fetched = static.Executor().run(main, {"x": X, "weights": 2 * X}, [dx, both])
    np.testing.assert_array_equal(fetched[0], 4 * X * X)
    np.testing.assert_array_equal(fetched[1], X + 3 + X)


def test_backward_as_eager_code_writes_it():
    """`loss.backward()` under the guard accumulates into `.grad`, which is symbolic then."""
    net = flow.nn.Linear(3, 1)
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", X.shape)
        net(x).sum().backward()
        net(x * 2).sum().backward()
        grad = net.weight.grad
    fetched = run(main, startup, {"x": X}, [grad])
    net.zero_grad()
    net(flow.tensor(X)).sum().backward()
    net(flow.tensor(X) * 2).sum().backward()
    np.testing.assert_array_equal(fetched[0], net.weight.grad.numpy())


def test_hooks_are_captured():
    net = flow.nn.Linear(3, 1)
    net.weight.register_hook(lambda grad: grad * 10)
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        pairs = static.append_backward(net(static.data("x", X.shape)).sum())
    (have,) = run(main, startup, {"x": X}, [pairs[0][1]])
    (want,) = flow.autograd.grad(net(flow.tensor(X)).sum(), net.weight)
    np.testing.assert_array_equal(have, want.numpy())


def test_gradients_share_no_memory():
    main = static.Program()
    with static.program_guard(main, static.Program()):
        a, b = static.data("a", X.shape), static.data("b", X.shape)
        a.requires_grad = b.requires_grad = True
        da, db = flow.autograd.grad((a + b).sum(), [a, b])
        da.reshape(-1).mul_(2)
        db.add_(2)
    found = static.Executor().run(main, {"a": X, "b": X}, [da, db])
    assert [np.unique(y).tolist() for y in found] == [[2], [3]]


def test_gradients_that_are_equal_are_clipped_once_each():
    first, second = (flow.nn.Parameter(flow.ones(3)) for _ in range(2))
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        loss = ((first + second) * static.data("x", X.shape)).sum()
        optimizer = flow.optim.SGD([first, second], lr=1.0)
        optimizer.minimize(
            loss, grad_clip=lambda parameters: flow.nn.utils.clip_grad_norm_(parameters, 0.5)
        )
    (have,) = run(main, startup, {"x": X}, [first])
    eager = [flow.ones(3, requires_grad=True) for _ in range(2)]
    ((eager[0] + eager[1]) * flow.tensor(X)).sum().backward()
    flow.nn.utils.clip_grad_norm_(eager, 0.5)
    np.testing.assert_allclose(have, 1 - eager[0].grad.numpy(), rtol=1e-6)
