"""Users' code that runs in the middle of a replay, or of its backward pass, raises or calls again.

Python runs such code by itself where an object goes, and the engine where a gradient arrives.
"""

from __future__ import annotations

import gc
import sys
import types
import warnings
import weakref

import pytest

import oneflow_lite as flow
from tests.compiler.capture.worlds import attempt, cases_of, check, leaf, remembering, tensor

pytestmark = pytest.mark.unjudged("the plain function beside a call would keep old objects")


class Stop(Exception):
    """The error that a hook raises."""


def a_hook_on_a_leaf_that_raises(compiled):
    leaves = [leaf(1.0, 2.0), leaf(3.0, 4.0), leaf(5.0, 6.0)]
    one, two, three = leaves
    state = types.SimpleNamespace(failing=None)
    f = compiled(lambda x: ((x * one).tanh() * two).tanh() * three)

    def hook_of(i):
        def hook(grad):
            if state.failing == i:
                raise Stop
            return grad * 2

        return hook

    for i, w in enumerate(leaves):
        w.register_hook(hook_of(i))
    for state.failing in (None, None, 0, 1, 2, None):
        yield attempt(lambda: f(tensor(1.0, 2.0)).sum().backward()), leaves
        one.grad = two.grad = three.grad = None


def a_hook_after_accumulation_that_raises(compiled):
    one, two = leaf(1.0, 2.0), leaf(3.0, 4.0)
    state = {"fails": False}

    def hook(w):
        if state["fails"]:
            raise Stop
        w.grad = None

    f = compiled(lambda x: (x * one).tanh() * two)
    for w in (one, two):
        w.register_post_accumulate_grad_hook(hook)
    for state["fails"] in (False, False, False, True, False):
        yield attempt(lambda: f(tensor(1.0, 2.0)).sum().backward()), one, two


def a_hook_that_calls_the_function_again(compiled):
    w, seen = leaf(1.0, 2.0), []

    def hook(grad):
        with flow.no_grad():
            seen.append(f(grad).sum())
        return grad + f(grad).detach()

    f = compiled(lambda x: (x * w).tanh())
    w.register_hook(hook)
    for i in range(5):
        x = leaf(1.0, float(i))
        f(x).sum().backward()
        yield x, w, seen


def a_step_in_a_hook_that_raises(compiled):
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)
    optimizer = flow.optim.SGD([w, v], lr=0.1, momentum=0.9)
    state = types.SimpleNamespace(fails=False)

    def hook(grad):
        if state.fails:
            raise Stop
        return grad * 2

    @compiled
    def step(x):
        optimizer.zero_grad()
        loss = ((x * w).tanh() * v).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    w.register_hook(hook)
    for state.fails in (False, False, False, True, False, False):
        yield attempt(step, tensor(1.0, 2.0)), w, v, optimizer


def an_old_object_whose_end_calls_again(compiled):
    w = leaf(1.0, 2.0)
    state = types.SimpleNamespace(kept=None, calls=0)
    seen = []

    class Old:
        def __del__(self):
            seen.append(f(tensor(5.0, 6.0)))

    def double(x):
        state.calls += 1
        state.kept = x * w
        return x * 2

    f = compiled(double)
    for i in range(6):
        if i in (2, 4):
            state.kept = Old()
        yield f(tensor(1.0, float(i))), seen, state.kept, state.calls


def an_old_tensor_that_is_watched(compiled):
    state = types.SimpleNamespace(kept=None, calls=0)
    seen, watches = [], []

    def double(x):
        state.calls += 1
        state.kept = x * 3
        return x * 2

    def gone(_):
        seen.append((state.calls, f(tensor(7.0)) if len(seen) < 3 else None))

    f = compiled(double)
    for i in range(6):
        result = f(tensor(float(i)))
        watches.append(weakref.ref(state.kept, gone))
        yield result, seen, state.kept, state.calls


def an_end_that_writes_what_the_replay_leaves(compiled):
    state = types.SimpleNamespace(first=None, second=None)

    class Old:
        def __del__(self):
            state.second = "written by the end of the old one"

    def double(x):
        state.first = x * 3
        state.second = x * 4
        return x * 2

    f = compiled(double)
    for i in range(6):
        if i in (2, 4):
            state.first = Old()
        yield f(tensor(float(i))), state.first, state.second


def an_end_that_raises(compiled):
    state = types.SimpleNamespace(first=None, count=0)

    class Old:
        def __del__(self):
            raise Stop

    def double(x):
        state.count += 1
        state.first = x * 3
        return x * 2

    f = compiled(double)
    for i in range(5):
        if i in (2, 3):
            state.first = Old()
        yield f(tensor(float(i))), state.first, state.count


def a_warning_whose_display_calls_again(compiled):
    w, seen = leaf(1.0, 2.0), []
    state = types.SimpleNamespace(count=0, how="keep")

    def noisy(x):
        state.count += 1
        warnings.warn("noise", stacklevel=1)
        w.detach().add_(1.0)
        return x * w

    f = compiled(noisy)

    def show(*about, **words):
        if state.how == "call":
            state.how = "keep"
            seen.append(f(tensor(2.0, 3.0)))
        seen.append(str(about[0]))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        before, warnings.showwarning = warnings.showwarning, show
        try:
            for state.how in ("keep", "keep", "call", "keep", "call", "keep"):
                yield attempt(f, tensor(1.0, 2.0)), w, seen, state.count
        finally:
            warnings.showwarning = before


def hooks_of_an_optimizer(compiled):
    w = leaf(1.0, 2.0)
    optimizer = flow.optim.SGD([w], lr=0.1)
    state = types.SimpleNamespace(count=0, fails=False)

    def hook(*_):
        state.count += 1
        if state.fails:
            raise Stop

    optimizer.register_step_post_hook(hook)

    @compiled
    def step(x):
        w.grad = None
        (x * w).sum().backward()
        optimizer.step()

    for state.fails in (False, False, False, True, False):
        yield attempt(step, tensor(1.0, 2.0)), w, state.count


def a_hook_of_a_module_that_calls_again(compiled):
    layer = flow.nn.Linear(2, 2).double()
    state = types.SimpleNamespace(depth=0, fails=False)

    def hook(module, args, result):
        if state.fails:
            raise Stop
        if state.depth:
            return None
        state.depth += 1
        try:
            return result + f(result)
        finally:
            state.depth -= 1

    layer.register_forward_hook(hook)
    f = compiled(lambda x: layer(x).tanh())
    for state.fails in (False, False, False, True, False):
        yield attempt(f, tensor(1.0, 2.0)), layer, state.depth


def a_second_result_in_a_hook_of_the_first(compiled):
    w = leaf(1.0, 2.0)
    f = compiled(lambda x: ((x * w).tanh(), (x * w).exp()))
    for i in range(5):
        first, second = f(tensor(1.0, float(i)))
        first.register_hook(lambda grad, y=second: attempt(y.sum().backward) and None)
        yield attempt(lambda y=first: y.sum().backward()), w, first, second
        w.grad = None


def garbage_whose_end_calls_the_function(compiled):
    w, state = leaf(1.0, 2.0), types.SimpleNamespace(kept=None, calls=0)

    class Ring:
        def __init__(self):
            self.own = self

        def __del__(self):
            if state.calls < 1:
                state.calls += 1
                f(tensor(5.0, 6.0))
                state.calls -= 1

    def step(x):
        w.grad = None
        loss = (x * w).tanh().sum()
        loss.backward()
        state.kept = w.grad * 2
        return loss.detach()

    f = compiled(step)
    threshold = gc.get_threshold()
    try:
        for i in (3, 1, 2, 3, 5, 7):
            gc.set_threshold(i)
            for _ in range(20):
                Ring()
                result = f(tensor(1.0, float(i)))
            yield result, state.calls
    finally:
        gc.set_threshold(*threshold)


@pytest.mark.parametrize("case", cases_of(sys.modules[__name__]), ids=lambda case: case.__name__)
@pytest.mark.filterwarnings("ignore")
def test_replays_with_users_code_in_the_middle_leave_what_eager_calls_leave(case):
    made = []

    def compiled(function):
        made.append(flow.compile(function))
        return made[-1]

    check(case, compiled)
    assert sum(f.explain().hits for f in made) > 1
    with pytest.raises((AssertionError, TypeError, RuntimeError)):
        check(case, remembering)
