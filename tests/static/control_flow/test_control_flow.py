"""Control flow in Programs: against eager Python, gradients of several orders, and training."""

from __future__ import annotations

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import static
from oneflow_lite.static import nn
from tests.static.control_flow.control_flow_checks import F64, array, check

# --- cond ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["straight_line", "work_queue"])
def test_cond_and_its_derivatives(mode):
    main = check(
        lambda x, w: nn.cond(x.sum() > 0, lambda: (x * x * w).exp(), lambda: x.sin() * w * w),
        (array(0.1, 0.2), array(0.3, -0.4)),
        (array(-0.1, -0.2), array(0.3, -0.4)),
        order=3,
        mode=mode,
    )
    types = [op.type for op in main.global_block().ops]
    assert types.count("cond") >= 4  # the choice, and one at least for each order
    assert len(main.blocks) == 1 + 2 * 4  # an order's blocks serve all its calls


@pytest.mark.parametrize("x", [1.0, -1.0])
def test_cond_against_finite_differences(x):
    main = static.Program()
    with static.program_guard(main):
        a = static.data("a", [], F64)
        a.requires_grad = True
        y = nn.cond(a > 0, lambda: a.exp() * a, lambda: (a * a).cos())
        (dy,) = static.gradients(y, a)
        (ddy,) = static.gradients(dy, a)
    run = static.Executor().run
    low, middle, high = [
        run(main, {"a": np.array(x + h)}, [y, dy, ddy]) for h in (-1e-5, 0.0, 1e-5)
    ]
    for k in (0, 1):
        slope = (high[k] - low[k]) / 2e-5
        np.testing.assert_allclose(middle[k + 1], slope, rtol=1e-7)


def test_a_branch_may_return_an_outer_variable_or_a_constant():
    check(
        lambda x, w: nn.cond(x.sum() > 0, lambda: x, lambda: w.detach()),
        (array(1.0, 2.0), array(3.0, 4.0)),
        (array(-1.0, -2.0), array(3.0, 4.0)),
    )
    check(
        lambda x: nn.cond(
            x.sum() > 0, lambda: flow.tensor([1.0, 2.0], dtype=flow.float64), lambda: x
        ),
        (array(1.0, 2.0),),
        (array(-1.0, -2.0),),
    )


def test_detached_and_unrecorded_parts_of_a_branch_get_no_gradient():
    def fn(x):
        def branch():
            with flow.no_grad():
                scale = x.exp()
            return x * scale + x.detach() ** 2

        return nn.cond(x.sum() > 0, branch, lambda: x * x.detach())

    check(fn, (array(0.5, 1.0),), (array(-0.5, -1.0),))


def test_nested_results_keep_their_structure():
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [2])
        y = nn.cond(
            x.sum() > 0,
            lambda: {"a": (x, [x * 2]), "b": 1.5, "c": None},
            lambda: {"a": (-x, [x * 3]), "b": 2.5, "c": None},
        )
    assert set(y) == {"a", "b", "c"} and y["c"] is None
    assert isinstance(y["a"], tuple) and isinstance(y["a"][1], list)
    fetches = [y["a"][0], y["a"][1][0], y["b"]]
    run = static.Executor().run
    got = run(main, {"x": array(1, 2, dtype="float32")}, fetches)
    assert [a.tolist() for a in got] == [[1, 2], [2, 4], 1.5]
    got = run(main, {"x": array(-1, -2, dtype="float32")}, fetches)
    assert [a.tolist() for a in got] == [[1, 2], [-3, -6], 2.5]


def test_results_are_new_memory_at_every_run():
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [2])
        y, z = nn.cond(x.sum() > 0, lambda: (x, x), lambda: (x * 2, x.reshape(2)))
    run = static.Executor().run
    fed = array(1, 2, dtype="float32")
    first = run(main, {"x": fed}, [y, z])
    second = run(main, {"x": fed}, [y, z])
    arrays = [fed, *first, *second]
    for i, a in enumerate(arrays):
        assert not any(np.may_share_memory(a, b) for b in arrays[:i])


def test_branches_without_results_leave_no_op():
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [2])
        assert nn.cond(x.sum() > 0, lambda: None) is None
    assert [op.type for op in main.global_block().ops] == ["sum", "gt"]


def test_integers_and_floats_side_by_side():
    def fn(i, x):
        count, y = nn.cond(x.sum() > 0, lambda: (i + 1, x * i), lambda: (i - 1, x * x))
        return y * count

    check(fn, (np.array([2, 3]), array(1.0, 2.0)), (np.array([2, 3]), array(-1.0, -2.0)))


def test_complex_gradients():
    def fn(x, y):
        z = flow.complex(x, y)
        return nn.cond(x.sum() > 0, lambda: z * z * (1 + 2j), lambda: z.exp()).abs()

    check(fn, (array(1.0, 2.0), array(0.5, -1.0)), (array(-1.0, -2.0), array(0.5, -1.0)))


# --- switch_case --------------------------------------------------------------------------------


@pytest.mark.parametrize("default", [True, False])
def test_switch_case_and_its_derivatives(default):
    def fn(i, x):
        functions = {1: lambda: x.exp(), 3: lambda: x * x * x, 5: lambda: x.sin()}
        return nn.switch_case(i, functions, (lambda: x * 7) if default else None)

    x = array(0.3, 0.7)
    check(fn, *[(np.array(i), x) for i in (1, 3, 5, 0, 9)])


def test_switch_case_takes_sequences():
    main = static.Program()
    with static.program_guard(main):
        i = static.data("i", [1], "int64")
        y = nn.switch_case(i, [lambda: flow.ones(2), lambda: flow.zeros(2)])
        z = nn.switch_case(i, [(1, lambda: flow.ones(2)), (0, lambda: flow.zeros(2))])
    for index, want in ((0, [1, 0]), (1, [0, 1]), (7, [0, 1])):
        got = static.Executor().run(main, {"i": array(index, dtype="int64")}, [y, z])
        assert [a[0] for a in got] == want


# --- while_loop ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["straight_line", "work_queue"])
def test_while_loop_and_its_derivatives(mode):
    def fn(n, x, w):
        return nn.while_loop(
            lambda i, y: i < n, lambda i, y: (i + 1, (y * w).sin() + y * y), [flow.tensor(0), x]
        )[1]

    x, w = array(0.3, 0.5), array(0.7, -0.2)
    main = check(fn, *[(np.array(n), x, w) for n in (0, 1, 2, 5, 1)], order=3, mode=mode)
    types = [op.type for op in main.global_block().ops]
    assert types.count("while_loop") == 1
    assert types.count("while_loop_grad") >= 3


def test_a_loop_that_captures_begins_without_a_gradient():
    def fn(n, w):
        zero = flow.zeros(2, dtype=flow.float64)
        return nn.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * w + w), [0, zero])[1]

    check(fn, *[(np.array(n), array(0.5, -1.5)) for n in (0, 1, 4)])


def test_loop_variables_may_be_swapped_and_handed_through():
    def fn(n, a, b, c):
        _, a, b, c = nn.while_loop(
            lambda i, a, b, c: i < n, lambda i, a, b, c: (i + 1, b, a * c, c), [0, a, b, c]
        )
        return a * 2 + b * 3 + c

    check(fn, *[(np.array(n), array(0.5), array(2.0), array(1.5)) for n in (0, 1, 2, 3)])


def test_the_condition_may_depend_on_values():
    def fn(x):
        return nn.while_loop(lambda y: y.sum() < 50, lambda y: y * y + y, [x])[0]

    check(fn, (array(1.0, 0.5),), (array(100.0, 1.0),), (array(0.25, 0.25),))


def test_nested_loop_variables():
    main = static.Program()
    with static.program_guard(main):
        n = static.data("n", [], "int64")
        count, state = nn.while_loop(
            lambda i, s: i < n,
            lambda i, s: (
                [i + 1, {"a": s["b"], "b": (s["a"][0] + 1,)}]
                if isinstance(s["b"], tuple) and not isinstance(s["a"], tuple)
                else [i + 1, {"a": (s["a"][0] * 2,), "b": s["b"] + 1}]
            ),
            [0, {"a": (1.0,), "b": 0}],
        )
    got = static.Executor().run(main, {"n": np.array(3)}, [count, state["a"][0], state["b"]])
    assert [a.item() for a in got] == [3, 8.0, 3]


def test_without_gradients_nothing_is_kept():
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [2])
        x.requires_grad = True
        nn.while_loop(lambda y: y.sum() < 9, lambda y: y * 2, [x], is_test=True)
        with flow.no_grad():
            nn.while_loop(lambda y: y.sum() < 9, lambda y: y * 2, [x])
    ops = [op for op in main.global_block().ops if op.type == "while_loop"]
    assert [(op.attrs["tape"], len(op.outputs)) for op in ops] == [(False, 1), (False, 1)]


# --- nested -------------------------------------------------------------------------------------


def test_cond_in_while():
    def fn(n, x, w):
        def body(i, y):
            return i + 1, nn.cond(y.sum() > 0, lambda: y * w - 1, lambda: y * y + w)

        return nn.while_loop(lambda i, y: i < n, body, [0, x])[1]

    samples = [(np.array(n), array(0.4, 0.3), array(0.9, -0.8)) for n in (0, 1, 2, 5)]
    check(fn, *samples, order=3)


def test_while_in_cond():
    def fn(n, x, w):
        def loop():
            return nn.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * w), [0, x])[1]

        return nn.cond(x.sum() > 0, loop, lambda: x * w * w)

    w = array(0.9, -0.8)
    samples = [(np.array(n), x, w) for n in (0, 2, 3) for x in (array(1.0, 2.0), array(-1.0, -2.0))]
    check(fn, *samples)


def test_while_in_while():
    def fn(n, x, w):
        def body(i, y):
            inner = nn.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, z * w + y), [0, y])
            return i + 1, inner[1].sin()

        return nn.while_loop(lambda i, y: i < n, body, [0, x])[1]

    check(fn, *[(np.array(n), array(0.4, 0.3), array(0.9, -0.8)) for n in (0, 1, 3)])


def test_gradients_may_be_taken_inside():
    def fn(n, x):
        def body(i, y):
            with flow.enable_grad():
                (g,) = flow.autograd.grad((y**3).sum(), y, create_graph=True)
            return i + 1, y - 0.1 * g

        return nn.while_loop(lambda i, y: i < n, body, [0, x])[1]

    main = static.Program()
    with static.program_guard(main):
        n, x = static.data("n", [], "int64"), static.data("x", [2], F64)
        x.requires_grad = True
        y = fn(n, x)
        (dx,) = static.gradients(y, x)
    value = array(0.5, 0.25)
    got = static.Executor().run(main, {"n": np.array(3), "x": value}, [y, dx])
    want, slope = value, np.ones(2)
    for _ in range(3):
        want, slope = want - 0.3 * want**2, slope * (1 - 0.6 * want)
    np.testing.assert_allclose(got, [want, slope])


# --- random numbers -----------------------------------------------------------------------------


def test_the_gradient_of_a_branch_uses_the_numbers_that_were_drawn():
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [200], F64)
        x.requires_grad = True
        y = nn.cond(x.sum() > 0, lambda: flow.nn.functional.dropout(x * x, 0.5), lambda: x)
        (dx,) = static.gradients(y, x)
        (ddx,) = static.gradients(dx, x)
    value = np.linspace(0.1, 1, 200)
    y, dx, ddx = static.Executor().run(main, {"x": value}, [y, dx, ddx])
    assert 0 < (y == 0).sum() < 200
    np.testing.assert_allclose(dx, 2 * y / value)
    np.testing.assert_allclose(ddx, dx / value)
    got = static.Executor().run(main, {"x": -value}, [dx if isinstance(dx, str) else "x"])
    assert np.array_equal(got[0], -value)


def test_the_gradient_of_a_loop_uses_the_numbers_of_each_iteration():
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [50], F64)
        x.requires_grad = True

        def body(i, y):
            inner = nn.cond(i > 0, lambda: y * flow.rand(50, dtype=flow.float64), lambda: y * 2)
            return i + 1, inner * flow.rand(50, dtype=flow.float64)

        y = nn.while_loop(lambda i, y: i < 3, body, [0, x])[1]
        (dx,) = static.gradients(y * y, x)
        (ddx,) = static.gradients(dx, x)
    value = np.linspace(0.1, 1, 50)
    y, dx, ddx = static.Executor().run(main, {"x": value}, [y, dx, ddx])
    np.testing.assert_allclose(dx, 2 * y * y / value)
    np.testing.assert_allclose(ddx, dx / value)


def test_branches_draw_what_eager_draws():
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [4])
        y = nn.cond(x.sum() > 0, lambda: x + flow.rand(4), lambda: x)
        z = flow.rand(4)
    flow.manual_seed(3)
    want = [flow.rand(4).numpy(), flow.rand(4).numpy()]
    flow.manual_seed(3)
    got = static.Executor().run(main, {"x": np.ones(4, "float32")}, [y, z])
    np.testing.assert_array_equal(got[0], 1 + want[0])
    np.testing.assert_array_equal(got[1], want[1])
    flow.manual_seed(3)
    got = static.Executor().run(main, {"x": -np.ones(4, "float32")}, [y, z])
    np.testing.assert_array_equal(got[1], want[0])


# --- training -----------------------------------------------------------------------------------


def test_parameters_are_trained_through_control_flow():
    def build(layer, x, n):
        def body(i, h):
            return i + 1, nn.cond(h.sum() > 0, lambda: flow.tanh(layer(h)), lambda: layer(h) * 0.5)

        return (nn.while_loop(lambda i, h: i < n, body, [flow.tensor(0), x])[1] ** 2).mean()

    rng = np.random.default_rng(0)
    batches = [(rng.standard_normal((4, 3)), np.array(k % 3)) for k in range(6)]
    flow.manual_seed(0)
    layer = flow.nn.Linear(3, 3).double()
    start = {k: v.numpy().copy() for k, v in layer.state_dict().items()}
    optimizer = flow.optim.SGD(layer.parameters(), lr=0.1)
    want = []
    for x, n in batches:
        loss = build(layer, flow.tensor(x), flow.tensor(n))
        optimizer.zero_grad()
        if loss.requires_grad:
            loss.backward()
            optimizer.step()
        want.append(loss.item())

    other = flow.nn.Linear(3, 3).double()
    other.load_state_dict({k: flow.tensor(v) for k, v in start.items()})
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x, n = static.data("x", [4, 3], F64), static.data("n", [], "int64")
        loss = build(other, x, n)
        flow.optim.SGD(other.parameters(), lr=0.1).minimize(loss)
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    got = [executor.run(main, {"x": x, "n": n}, [loss], scope)[0] for x, n in batches]
    np.testing.assert_allclose(got, want, rtol=1e-12)


# --- eager --------------------------------------------------------------------------------------


def test_eager_control_flow_is_python():
    calls = []
    x = flow.tensor([1.0, 2.0], requires_grad=True)
    y = nn.cond(x.sum() > 0, lambda: calls.append("true") or x * 2, lambda: calls.append("false"))
    assert calls == ["true"] and y.tolist() == [2.0, 4.0]
    assert nn.cond(flow.tensor(False), lambda: 1) is None
    assert nn.switch_case(5, {0: lambda: "a", 2: lambda: "b"}) == "b"
    assert nn.switch_case(flow.tensor([0]), [lambda: "a", lambda: "b"], lambda: "c") == "a"
    n, z = nn.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * x), (0, x))
    z.sum().backward()
    assert n == 3 and x.grad.tolist() == [4.0, 32.0]
