"""A thousand replays: flat memory, outputs that stay, threads, and bounded recording."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import warnings

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.compiler import function as module
from oneflow_lite.errors import GradientError
from tests.compiler.capture.models import batch, net, training_step
from tests.compiler.capture.worlds import leaf

CALLS = 1000
FIRST = 200
LESS_THAN_AN_ARRAY = 100  # bytes; Python and NumPy keep some freed objects for the next ones
ONE_CALL = 100_000


def training():
    model = net()
    optimizer = flow.optim.Adam(model.parameters(), lr=1e-3)
    step = flow.compile(training_step(model, optimizer))
    return step, lambda i: step(*batch(i % 16))


def forward_and_outer_backward():
    model = net()
    forward = flow.compile(lambda x: model(x).sin())

    def call(i):
        for p in model.parameters():
            p.grad = None
        y = forward(batch(i % 16)[0])
        y.sum().backward()
        return y

    return forward, call


def second_derivative():
    f = flow.compile(lambda x: (x**3).sum())

    def call(i):
        x = flow.full((3,), 1.0 + i / CALLS, requires_grad=True)
        (dx,) = flow.autograd.grad(f(x), x, create_graph=True)
        return flow.autograd.grad(dx.sum(), x)[0]

    return f, call


WORKS = [training, forward_and_outer_backward, second_derivative]
by_work = pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__)


@pytest.mark.slow
@by_work
@pytest.mark.unjudged("it measures memory")
def test_memory_stays_flat(work):
    function, call = work()
    gc.collect()
    gc.disable()  # what is freed then was freed without it: there are no cycles
    tracemalloc.start()
    try:
        for i in range(FIRST):
            call(i)
        objects = len(gc.get_objects())
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        for i in range(CALLS):
            call(i)
        after, peak = tracemalloc.get_traced_memory()
        more_objects = len(gc.get_objects()) - objects
        cycles = gc.collect()
    finally:
        tracemalloc.stop()
        gc.enable()
    told = function.explain()
    assert told.captures <= 2 and told.fallbacks == 0
    assert told.hits >= CALLS + FIRST - 2
    assert after - before < LESS_THAN_AN_ARRAY * CALLS
    assert peak - before < LESS_THAN_AN_ARRAY * CALLS + ONE_CALL
    assert more_objects < 50
    assert cycles < 50


@pytest.mark.slow(but=1)
@by_work
@pytest.mark.unjudged("a thousand calls take long")
def test_results_that_are_kept_never_change(work):
    _, call = work()
    kept = [call(i) for i in range(20)]
    copies = [y.detach().clone() for y in kept]
    for i in range(CALLS):
        call(i)
    assert len({y.detach().numpy().ctypes.data for y in kept}) == len(kept)
    for y, copy in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(y.detach().numpy(), copy.numpy())


def test_a_result_is_freed_with_its_last_reference():
    f = flow.compile(lambda x: (x * 2).exp())
    x = flow.ones(1 << 16)
    for _ in range(3):
        f(x)
    tracemalloc.start()
    try:
        y = f(x)
        held = tracemalloc.get_traced_memory()[0]
        del y
        assert held - tracemalloc.get_traced_memory()[0] >= x.numel() * 4
    finally:
        tracemalloc.stop()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_twenty_shapes_are_right_and_kept_up_to_a_bound():
    f = flow.compile(lambda x: (x * 2).cumsum(0))
    for turn in range(3):
        for n in range(1, 21):
            x = flow.arange(float(n)) + turn
            np.testing.assert_array_equal(f(x).numpy(), np.cumsum(x.numpy() * 2))
    assert len(f._recordings) <= module.RECORDINGS_KEPT


@pytest.mark.slow
@pytest.mark.parametrize("first_is_recorded", [True, False])
def test_two_threads_call_one_function(first_is_recorded):
    w = flow.tensor([0.5, -1.0, 2.0], requires_grad=True)

    def f(x):
        y = x
        for _ in range(5):
            y = (y * w).tanh() + x
        return y

    g = flow.compile(f)
    if first_is_recorded:
        g(flow.ones(3))
    wrong: list[object] = []
    start = threading.Barrier(2)

    def work(k):
        try:
            start.wait()
            for i in range(200):
                x = flow.tensor([k + 1.0, i / 200, -k], requires_grad=True)
                y = g(x)
                (dx,) = flow.autograd.grad(y.sum(), x)
                z = f(x)
                (dz,) = flow.autograd.grad(z.sum(), x)
                if not np.array_equal(y.detach().numpy(), z.detach().numpy()):
                    wrong.append((k, i, y, z))
                if not np.array_equal(dx.numpy(), dz.numpy()):
                    wrong.append((k, i, dx, dz))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert g.explain().hits >= 390


def test_the_shapes_used_most_are_those_that_are_kept():
    f = flow.compile(lambda x: x + 1)
    for n in range(1, module.RECORDINGS_KEPT + 1):
        for _ in range(1 if n == 5 else 3):
            f(flow.ones(n))
    assert (f.explain().kept, f.explain().dropped, f.explain().reasons) == (64, 0, [])
    f(flow.ones(100))
    told = f.explain()
    assert (told.kept, told.dropped) == (module.RECORDINGS_KEPT, 1)
    assert "more kinds of calls take turns than the 64 recordings" in told.reasons[0]
    for n in {*range(1, module.RECORDINGS_KEPT + 1)} - {5}:
        f(flow.ones(n))
    assert f.explain().captures == told.captures
    f(flow.ones(5))
    assert f.explain().captures == told.captures + 1


@pytest.mark.slow(but=1)
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.unjudged("it takes long")
@pytest.mark.parametrize("shapes", [40, 100])
def test_shapes_in_rotation_do_not_thrash(shapes):
    f = flow.compile(lambda x: x + 1)
    xs = [flow.ones(n) for n in range(1, shapes + 1)]
    for _ in range(60):
        for x in xs:
            f(x)
    before = f.explain()
    for _ in range(10):
        for x in xs:
            f(x)
    told = f.explain()
    assert told.captures == before.captures
    assert told.hits - before.hits >= 10 * min(shapes, 60)
    assert told.kept == min(shapes, module.RECORDINGS_KEPT)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_hung_on_a_branch_is_tried_again_ever_later():
    def f(x):
        try:
            y = flow.embedding(x, flow.ones(3, 2))
        except IndexError:
            return flow.zeros(2)
        return y * 2

    f = flow.compile(f)
    f(flow.tensor([7]))
    captures = []
    for _ in range(10):
        f(flow.tensor([1]))
        captures.append(f.explain().captures)
    assert captures == [0, 0, *[1] * 8]
    assert (f.explain().hits, f.explain().fallbacks) == (7, 3)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_message_that_is_printed_once_costs_three_calls(capsys):
    started = flow.zeros(1)
    seen: list[int] = []

    def f(x):
        if seen:
            return x * 2 + started
        seen.append(1)
        return float(x.sum()) * started

    f = flow.compile(f)
    for _ in range(8):
        f(flow.ones(2))
    assert f.explain().hits >= 6


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_attempts_get_rarer_and_rarer():
    f = flow.compile(lambda x: x if x.sum().item() > 0 else -x)
    record, count = f._record, [0]

    def counting(*args):
        count[0] += 1
        return record(*args)

    f._record = counting
    for _ in range(200):
        f(flow.ones(2))
    assert count[0] == 7  # calls 0, 3, 8, 17, 34, 67, 132
    assert f.explain().fallbacks == 200


def test_signatures_that_never_repeat_end_in_eager_with_one_warning():
    f = flow.compile(lambda x, k: x * k)
    x = flow.ones(2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(300):
            assert f(x, float(k)).tolist() == [k, k]
    told = f.explain()
    assert told.captures < 100 and told.captures + told.fallbacks == 300
    assert len(caught) == 1 and issubclass(caught[0].category, UserWarning)
    assert "<lambda>" in str(caught[0].message) and "as k was 78.0, is 79.0" in told.reasons[1]
    assert len(f._recordings) <= module.RECORDINGS_KEPT


def test_a_choice_with_its_gradient_is_replayed():
    w = flow.ones(3, requires_grad=True)
    f = flow.compile(lambda x: flow.static.nn.cond(x.sum() > 0, lambda: w.exp(), lambda: w * 2))
    for sign in (1, -1, 1, -1):
        (dw,) = flow.autograd.grad(f(flow.ones(3) * sign).sum(), w)
        np.testing.assert_array_equal(dw.numpy(), w.detach().exp().numpy() if sign > 0 else [2] * 3)
    assert (f.explain().captures, f.explain().hits, f.explain().reasons) == (1, 3, [])


class _Recomputed(flow.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x * w).sin()

    @staticmethod
    def backward(ctx, dy):
        inputs = [t.detach().requires_grad_() for t in ctx.saved_tensors]
        with flow.enable_grad():
            y = (inputs[0] * inputs[1]).sin()
        return flow.autograd.grad(y, inputs, dy)


def test_a_step_without_gradients_is_replayed_at_any_rate():
    w, v = leaf(1.0, 2.0), leaf(3.0)
    optimizer = flow.optim.SGD([v], lr=0.5)

    @flow.compile
    def step(x):
        (w * x + v).sum().backward()
        optimizer.step()

    for i in range(8):
        v.requires_grad_(i < 1)
        v.grad = None
        step(flow.tensor([1.0, float(i)]))
        optimizer.param_groups[0]["lr"] = 0.1 * (i + 1)  # which no update reads
    assert (step.explain().captures, step.explain().hits, step.explain().reasons) == (2, 6, [])


def test_a_comprehension_in_a_backward_of_the_user_is_replayed():
    x, w = flow.ones(2, requires_grad=True), flow.ones(2, requires_grad=True)
    f = flow.compile(_Recomputed.apply, fullgraph=True)
    for _ in range(3):
        f(x, w).sum().backward()
    assert f.explain().hits == 2
    np.testing.assert_allclose(w.grad.numpy(), 3 * np.cos(1.0) * np.ones(2), rtol=1e-6)


def sets_a_hook(x, w):
    y = x * w
    y.register_hook(lambda d: d * 5)
    return y.exp()


def writes_what_it_detached(x, w):
    y = x * x
    y.detach().mul_(w)
    return y * w


def writes_what_it_detached_and_uses_both(x, w):
    y = x * x
    z = y.detach()
    z.mul_(w)
    return y.exp() * z


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (sets_a_hook, "sets hooks on gradients"),
        (_Recomputed.apply, "has a Function of its own"),
    ],
)
def test_a_second_derivative_that_would_be_another_one_is_refused(function, reason):
    f = flow.compile(function)
    for _ in range(2):
        x, w = flow.ones(2, requires_grad=True), flow.ones(2, requires_grad=True)
        y = f(x, w).sum()
    flow.autograd.grad(y, [x, w], retain_graph=True)
    with pytest.raises(GradientError, match=reason):
        flow.autograd.grad(y, [x, w], create_graph=True)
    assert f.explain().hits == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: (x * w).tanh(),
        lambda x, w: (x * w).exp_(),
        lambda x, w: flow.softmax(x * w, 0)[1:],
        lambda x, w: ((x * w).exp(), (x + w).sigmoid()),
        lambda x, w: (y := (x * w).tanh(), (y * x).exp()),
        lambda x, w: ((x + 1) * w, (x * 2 - 1) * x * w),
        lambda x, w: flow.ones(3, requires_grad=True).exp() * x.exp() * w,
        lambda x, w: (x * w).exp() * flow.zeros(3).uniform_(1.0, 1.0),
        lambda x, w: x.exp() * flow.cat([w, x]).mul_(2)[:3].tanh(),
        writes_what_it_detached,
        writes_what_it_detached_and_uses_both,
    ],
    ids=[
        "tanh",
        "in place",
        "a view",
        "two results",
        "one from the other",
        "made again",
        "an inner leaf",
        "random numbers in place",
        "a write in a view's base",
        "a detached write",
        "a detached write and both",
    ],
)
def test_second_derivatives_with_respect_to_results_are_those_of_eager_code(function):
    def derivatives(f):
        x, w = (flow.tensor([k, 0.7, 1.1], requires_grad=True) for k in (0.3, 1.2))
        found = f(x, w)
        results = found if isinstance(found, tuple) else (found,)
        total = sum((y**3).sum() for y in results)
        dx, dw = flow.autograd.grad(total, [x, w], create_graph=True)
        return flow.autograd.grad((dx * dx).sum() + dw.sum(), [x, w, *results])

    compiled = flow.compile(function)
    for _ in range(3):
        have = derivatives(compiled)
    for a, b in zip(have, derivatives(function), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)
    assert compiled.explain().hits == 2


def test_a_result_that_is_made_again_is_not_made_of_what_was_written_since():
    f = flow.compile(lambda x, w, v: ((x + 1) * w, v * x))
    for _ in range(2):
        x, w, v = flow.ones(2), flow.ones(2, requires_grad=True), flow.ones(2, requires_grad=True)
        y, _ = f(x, w, v)
    x.mul_(5)
    try:
        (dw,) = flow.autograd.grad(y.sum(), w)
    except flow.errors.StaleTensorError:  # where x is kept, and x + 1 is not
        return
    assert dw.tolist() == [2.0, 2.0]
