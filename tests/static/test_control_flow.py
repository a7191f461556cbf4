"""Control flow in Programs: against eager Python, gradients of several orders, errors."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import static
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    CaptureError,
    DTypeError,
    FlowError,
    NotDifferentiableError,
    ShapeError,
)
from oneflow_lite.static import nn

F64 = "float64"


def array(*values, dtype=F64):
    return np.array(values, dtype)


def derivatives(fn, tensors, order):
    """Return fn's result, then all partial derivatives of weighted sums, order by order."""
    results = [fn(*tensors)]
    y = results[0]
    for k in range(order):
        weights = flow.arange(1, y.numel() + 1, dtype=y.dtype).reshape(y.shape) / (k + 2)
        total = (y * weights).sum()
        if not total.requires_grad:
            total = total + sum((x * 0).sum() for x in tensors)
        grads = flow.autograd.grad(total, tensors, create_graph=True, materialize_grads=True)
        results += grads
        y = sum((g * g).sum() + g.sum() for g in grads)
    return results


def check(fn, *samples, order=2, passes=None, mode="straight_line"):
    """Capture fn and its derivatives once, run them on each sample, and compare with eager."""
    first = samples[0]
    main = static.Program()
    with static.program_guard(main, static.Program()):
        tensors = [static.data(f"x{i}", x.shape, x.dtype) for i, x in enumerate(first)]
        for x in tensors:
            x.requires_grad = x.dtype.kind == "f"
        wanted = [x for x in tensors if x.requires_grad]
        captured = derivatives(lambda *_: fn(*tensors), wanted, order)
    executor = static.Executor(passes=passes, mode=mode)
    for sample in samples:
        feed = {f"x{i}": x for i, x in enumerate(sample)}
        got = executor.run(main, feed, captured)
        eager = [flow.tensor(x) for x in sample]
        for x in eager:
            x.requires_grad = x.dtype.kind == "f"
        wanted = [x for x in eager if x.requires_grad]
        want = derivatives(lambda *_, own=eager: fn(*own), wanted, order)
        assert len(got) == len(want) > order
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-10, atol=1e-12)
    core = executor.analyse(main, list(feed), captured)
    core.check()
    return main


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


# --- the Program --------------------------------------------------------------------------------


def build_both():
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [2], F64)
        x.requires_grad = True
        y = nn.cond(x.sum() > 0, lambda: x * x, lambda: x * 3)
        z = nn.while_loop(lambda y: y.sum() < 9, lambda y: y * y + 1, [y])[0]
        (dx,) = static.gradients(z, x)
    return main, [z.name, dx.name]


@pytest.mark.parametrize("x", [array(1.0, 0.5), array(-1.0, 0.5)])
def test_programs_are_cloned_and_saved_with_their_blocks(tmp_path, x):
    main, fetches = build_both()
    want = static.Executor().run(main, {"x": x}, fetches)
    copy = main.clone()
    assert copy.fingerprint() == main.fingerprint()
    for op in copy.global_block().ops:
        for value in op.attrs.values():
            blocks = value if isinstance(value, tuple) else (value,)
            assert all(b.program is copy for b in blocks if isinstance(b, static.Block))
    static.save(main, tmp_path / "program")
    loaded, _ = static.load(tmp_path / "program")
    for program in (copy, loaded):
        got = static.Executor().run(program, {"x": x}, fetches)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_changed_block_is_another_program_and_runs_anew():
    main, fetches = build_both()
    x = array(-1.0, 0.5)
    executor = static.Executor()
    before, (want, _) = main.fingerprint(), executor.run(main, {"x": x}, fetches)
    op = next(op for op in main.global_block().ops if op.type == "cond")
    block = op.attrs["blocks"][1]
    block.ops[-1].type = "add"
    assert main.fingerprint() != before
    (got, _) = executor.run(main, {"x": x}, fetches)
    assert not np.array_equal(got, want)


def test_listing_and_picture_show_blocks():
    main, _ = build_both()
    assert "blocks=(block 1, block 2)" in str(main) and "block 3 in block 0" in str(main)
    assert "cluster_2" in main.to_dot()


def test_a_clone_for_testing_turns_dropout_in_blocks_off():
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [50])
        x.requires_grad = True
        y = nn.cond(x.sum() > 0, lambda: flow.nn.functional.dropout(x, 0.5), lambda: x)
        static.gradients(y, x)
    ones = np.ones(50, "float32")
    run = static.Executor().run
    (trained,) = run(main, {"x": ones}, [y])
    (tested,) = run(main.clone(for_test=True), {"x": ones}, [y])
    assert 0 in trained and np.array_equal(tested, ones)


def test_blocks_are_inputs_of_their_op():
    main, fetches = build_both()
    core = static.Executor().analyse(main, ["x"], fetches)
    core.check()
    cond = next(i for i in core.instructions if i.name == "cond")
    feed = next(i for i in core.instructions if i.name == "feed(x)")
    assert set(feed.outputs) <= set(cond.inputs)
    assert cond.op.reads[-1] == "x"


def test_a_program_is_freed_with_its_blocks():
    main, fetches = build_both()
    executor = static.Executor()
    executor.run(main, {"x": array(1.0, 0.5)}, fetches)
    blocks = [weakref.ref(block) for block in main.blocks]
    executor.close()
    del main, executor
    gc.collect()
    assert not any(block() for block in blocks)


def test_threads_run_one_program_at_once():
    main, fetches = build_both()
    executor = static.Executor()
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(2) for _ in range(40)]
    want = [executor.run(main, {"x": x}, fetches) for x in values]
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda x: static.Executor().run(main, {"x": x}, fetches), values))
        again = list(pool.map(lambda x: executor.run(main, {"x": x}, fetches), values))
    for a, b, c in zip(want, got, again, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def test_an_exception_inside_a_block_tells_the_line_and_the_next_run_works():
    main = static.Program()
    with static.program_guard(main):
        x, i = static.data("x", [3]), static.data("i", [1], "int64")
        y = nn.cond(x.sum() > 0, lambda: flow.index_select(x, 0, i), lambda: x[:1])
    run = static.Executor().run
    ones = np.ones(3, "float32")
    with pytest.raises(IndexError) as info:
        run(main, {"x": ones, "i": array(7, dtype="int64")}, [y])
    notes = "\n".join(info.value.__notes__)
    assert "'cond'" in notes and "test_control_flow.py" in notes and "index_select" in notes
    assert run(main, {"x": ones, "i": array(1, dtype="int64")}, [y])[0].tolist() == [1.0]
    assert run(main, {"x": -ones, "i": array(7, dtype="int64")}, [y])[0].tolist() == [-1.0]


# --- while flow.compile records -----------------------------------------------------------------


def test_compiled_cond_replays_either_branch():
    @flow.compile
    def step(x, w):
        y = nn.cond(x.sum() > 0, lambda: x * x * w, lambda: x - w * w)
        return y, flow.autograd.grad((y * y).sum(), (x, w))

    def eager(x, w):
        y = x * x * w if x.sum() > 0 else x - w * w
        return y, flow.autograd.grad((y * y).sum(), (x, w))

    for value in (array(1.0, 2.0), array(-1.0, -2.0), array(3.0, 1.0), array(-3.0, 1.0)):
        results = []
        for fn in (step, eager):
            x = flow.tensor(value, requires_grad=True)
            w = flow.tensor([0.5, 0.25], dtype=flow.float64, requires_grad=True)
            results.append(fn(x, w))
        (y, (dx, dw)), (y1, (dx1, dw1)) = results
        for a, b in ((y, y1), (dx, dx1), (dw, dw1)):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy())
    found = step.explain()
    assert (found.captures, found.hits, found.fallbacks) == (1, 3, 0), found.reasons


def test_compiled_switch_case_and_while_loop():
    layer = flow.nn.Linear(2, 2)

    @flow.compile
    def step(x, n):
        h = nn.while_loop(lambda i, h: i < n, lambda i, h: (i + 1, layer(h)), [flow.tensor(0), x])
        return nn.switch_case(n, [lambda: h[1], lambda: h[1] * 2])

    for count in (0, 2, 1, 3):
        x = flow.ones(1, 2)
        got = step(x, flow.tensor(count))
        want = x
        for _ in range(count):
            want = layer(want)
        want = want if count == 0 else want * 2
        np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-6)
        (slope,) = flow.autograd.grad(got.sum(), layer.weight)
        slope_wanted = slope * 0
        if count:
            (slope_wanted,) = flow.autograd.grad(want.sum(), layer.weight)
        np.testing.assert_allclose(slope.numpy(), slope_wanted.numpy(), rtol=1e-5)
    found = step.explain()
    assert (found.captures, found.fallbacks) == (1, 0), found.reasons


def test_compiled_control_flow_has_second_derivatives():
    w = flow.tensor([2.0, 3.0], requires_grad=True)

    def eager(x, n):
        y = nn.cond(x.sum() > 0, lambda: x * x * w, lambda: x * w * w)
        return nn.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * w), [0, y])[1]

    compiled = flow.compile(eager)
    for value, n in (([1.0, 2.0], 1), ([-1.0, -2.0], 2), ([1.0, 4.0], 0)):
        results = []
        for fn in (eager, compiled):
            x = flow.tensor(value, requires_grad=True)
            grads = flow.autograd.grad(fn(x, flow.tensor(n)).sum(), (x, w), create_graph=True)
            total = sum((g * g).sum() for g in grads)
            results.append([*grads, *flow.autograd.grad(total, (x, w))])
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5)
    assert compiled.explain().fallbacks == 0, compiled.explain().reasons


def test_compiled_dropout_in_a_branch_goes_backward_with_its_mask():
    def fn(x):
        return nn.cond(x.sum() > 0, lambda: flow.nn.functional.dropout(x * x, 0.5), lambda: x)

    compiled = flow.compile(fn)
    for seed in range(3):
        x = flow.tensor(np.linspace(0.5, 1, 60), requires_grad=True)
        flow.manual_seed(seed)
        want = fn(x).detach().numpy()
        flow.manual_seed(seed)
        y = compiled(x)
        (dx,) = flow.autograd.grad(y.sum(), x)
        np.testing.assert_array_equal(y.detach().numpy(), want)
        np.testing.assert_allclose(dx.numpy(), 2 * want / x.detach().numpy())


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


# --- errors -------------------------------------------------------------------------------------


@pytest.fixture
def guarded():
    with static.program_guard(static.Program(), static.Program()):
        yield static.data("x", [2])


@pytest.mark.parametrize(
    ("other", "error", "words"),
    [
        (lambda x: x.sum(), ShapeError, ["false_fn", "(2,)", "()"]),
        (lambda x: x.double(), DTypeError, ["false_fn", "float32", "float64"]),
        (lambda x: (x, x), ArgumentError, ["false_fn", "a tensor", "tuple of 2"]),
        (lambda x: None, ArgumentError, ["false_fn", "a tensor", "None"]),
    ],
)
def test_results_that_differ(guarded, other, error, words):
    before = len(static.default_main_program().blocks)
    with pytest.raises(error) as info:
        nn.cond(guarded.sum() > 0, lambda: guarded, lambda: other(guarded))
    assert all(word in str(info.value) for word in words), info.value
    assert len(static.default_main_program().blocks) == before


def test_the_place_of_a_difference_is_named(guarded):
    x = guarded
    with pytest.raises(ShapeError, match=r"branch_fns\[4\].* at \['a'\]\[1\].*\(2,\).*\(1,\)"):
        nn.switch_case(x.sum().long(), {3: lambda: {"a": [x, x]}, 4: lambda: {"a": [x, x[:1]]}})
    with pytest.raises(DTypeError, match=r"body.* at \[1\].*float32.*float64"):
        nn.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y.double()), [0, x])


def test_loops_return_what_they_take(guarded):
    x = guarded
    with pytest.raises(ArgumentError, match=r"body.*2 loop variable.*1"):
        nn.while_loop(lambda i, y: i < 3, lambda i, y: i + 1, [0, x])
    with pytest.raises(ArgumentError, match=r"cond.*one element.*\(2,\)"):
        nn.while_loop(lambda y: y < 3, lambda y: y + 1, [x])


@pytest.mark.parametrize("where", ["outer", "parameter", "view", "constant", "statistics", "draw"])
def test_writes_to_outer_memory_are_refused(guarded, where):
    x = guarded
    layer = flow.nn.Linear(2, 2)
    norm = flow.nn.BatchNorm1d(2)
    shared = flow.tensor([1.0, 2.0])
    y = x * 1

    def branch():
        if where == "outer":
            y.add_(1)
        elif where == "parameter":
            with flow.no_grad():
                layer.weight.mul_(2)
        elif where == "view":
            y[:1].add_(1)
        elif where == "constant":
            shared.mul_(2)
        elif where == "statistics":
            norm(x.reshape(1, 2).expand(3, 2))
        else:
            y.clone().uniform_()
        return x

    with pytest.raises(CaptureError, match=r"test_control_flow.py:\d+ in branch") as info:
        nn.cond(x.sum() > 0, branch, lambda: x)
    assert "cond()" in str(info.value)


def test_writes_to_memory_of_the_block_are_fine():
    def fn(x):
        def branch():
            y = x * 2
            y[:1] = x[1:]
            y.mul_(x)
            return y

        return nn.cond(x.sum() > 0, branch, lambda: x)

    check(fn, (array(1.0, 2.0),), (array(-1.0, -2.0),))


def test_values_modules_feeds_and_backward_are_refused_inside(guarded):
    x = guarded
    w = flow.ones(2, requires_grad=True)
    with pytest.raises(CaptureError, match="item"):
        nn.cond(x.sum() > 0, lambda: x * x.sum().item(), lambda: x)
    with pytest.raises(CaptureError, match="uniform_.*before"):
        nn.cond(x.sum() > 0, lambda: flow.nn.Linear(2, 2)(x), lambda: x)
    with pytest.raises(CaptureError, match="declare 'z' before"):
        nn.cond(x.sum() > 0, lambda: static.data("z", [2]), lambda: x)
    with pytest.raises(CaptureError, match=r"backward.*\.grad"):
        nn.cond(x.sum() > 0, lambda: (w * x).sum().backward(), lambda: None)


class Cube(flow.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * 3 * x * x


def test_functions_of_the_user_take_tensors_of_the_block():
    def fn(x):
        return nn.cond(x.sum() > 0, lambda: Cube.apply(x * 1), lambda: x)

    check(fn, (array(1.0, 2.0),), (array(-1.0, -2.0),))
    check(
        lambda n, x: nn.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, Cube.apply(y)), [0, x])[
            1
        ],
        *[(np.array(n), array(0.5, 0.9)) for n in (0, 2)],
    )
    with static.program_guard(static.Program()):
        x = static.data("x", [2])
        x.requires_grad = True
        with pytest.raises(CaptureError, match="autograd.Function.*clone"):
            nn.cond(x.sum() > 0, lambda: Cube.apply(x), lambda: x)


def test_wrong_arguments():
    with pytest.raises(ArgumentTypeError, match="true_fn"):
        nn.cond(flow.tensor(True), 3)
    with pytest.raises(ArgumentError, match="pred"):
        nn.cond(flow.ones(2), lambda: 1)
    with pytest.raises(ArgumentError, match="branch_fns"):
        nn.switch_case(0, [(0, lambda: 1), (0, lambda: 2)])
    with pytest.raises(ArgumentTypeError, match="branch_fns"):
        nn.switch_case(0, [])
    with pytest.raises(ArgumentTypeError, match="branch_fns"):
        nn.switch_case(0, {0: 1})
    with pytest.raises(ArgumentTypeError, match="loop_vars"):
        nn.while_loop(lambda: True, lambda: 1, [])
    with pytest.raises(ArgumentTypeError, match="body"):
        nn.while_loop(lambda x: True, None, [1])


def test_second_derivatives_of_a_loaded_loop_say_that_they_are_not_there(tmp_path):
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [2], F64)
        x.requires_grad = True
        y = nn.while_loop(lambda y: y.sum() < 9, lambda y: y * y + 1, [x])[0]
        (dx,) = static.gradients(y, x)
        (ddx,) = static.gradients(dx, x)
    static.save(main, tmp_path / "program")
    loaded, _ = static.load(tmp_path / "program")
    feed = {"x": array(1.0, 0.5)}
    want = static.Executor().run(main, feed, [dx])
    np.testing.assert_array_equal(static.Executor().run(loaded, feed, [dx]), want)
    with pytest.raises(FlowError, match="capture it again"):
        static.Executor().run(loaded, feed, [ddx])
    assert issubclass(NotDifferentiableError, FlowError)
