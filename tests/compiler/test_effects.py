"""The effects of a call, and those of a replay: these calls are replayed."""

from __future__ import annotations

import contextlib
import sys

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import DeviceError
from oneflow_lite.static.runtime import takeover
from tests.compiler.capture import cases_deferred, cases_made, cases_results, cases_switched
from tests.compiler.capture.models import must_be_negative
from tests.compiler.capture.worlds import check


class Counting:
    """Compiles, and counts replays."""

    def __init__(self) -> None:
        self.made: list = []

    def __call__(self, function):
        self.made.append(flow.compile(function))
        return self.made[-1]

    @property
    def hits(self):
        return sum(f.explain().hits for f in self.made)


@pytest.mark.parametrize(
    ("case", "hits"),
    [
        (cases_deferred.numbers_of_tensors_appended, 4),
        (cases_deferred.a_list_that_is_replaced, 4),
        (cases_deferred.one_list_in_two_places, 6),
        (cases_deferred.an_argument_that_grows, 6),
        (cases_deferred.a_length_that_decides, 3),
        (cases_deferred.containers_within_containers, 3),
        (cases_deferred.an_error_between_two_effects, 7),
        (cases_deferred.an_error_after_a_write, 7),
        (cases_deferred.running_numbers, 8),
        (cases_deferred.a_best_value_that_the_first_call_keeps, 4),
        (cases_deferred.meters_and_counts, 7),
        (cases_deferred.variables_of_the_module_and_of_a_function, 4),
        (cases_deferred.numbers_among_the_arguments, 5),
        (cases_deferred.a_rate_set_before_the_step, 4),
        (cases_deferred.a_rate_that_shrinks_by_itself, 5),
        (cases_deferred.arrays_among_the_arguments, 4),
        (cases_deferred.arrays_that_are_looked_at, 10),
        (cases_deferred.an_array_from_outside, 6),
        (cases_deferred.a_scaler_inside, 9),
        (cases_deferred.a_closure_of_lbfgs, 10),
        (cases_made.a_dict_with_fields, 3),
        (cases_made.classes_of_all_kinds, 3),
        (cases_made.one_list_at_several_places, 3),
        (cases_made.a_tuple_of_numbers_that_was_there, 3),
        (cases_made.objects_of_one_class_are_written, 6),
        (cases_made.objects_that_become_one, 2),
        (cases_made.an_argument_that_is_outside_too, 2),
        (cases_made.pairs_and_numbers, 3),
        (cases_results.a_number_that_is_added_up, 3),
        (cases_switched.array_set_of_what_is_outside, 4),
        (cases_switched.array_set_of_an_argument, 4),
        (cases_switched.array_set_and_returned, 3),
        (cases_switched.array_set_of_what_is_then_differentiated, 3),
        (cases_switched.arrays_that_one_memory_becomes, 4),
        (cases_switched.gradients_switched_off_and_on, 4),
        (cases_switched.gradients_switched_on_and_off, 4),
        (cases_switched.a_switch_that_an_error_leaves, 3),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_such_calls_are_replayed(case, hits):
    compiled = Counting()
    check(case, compiled)
    assert compiled.hits >= hits


@pytest.mark.unjudged("it has ops that the plain function has not")
@pytest.mark.filterwarnings("ignore")
def test_a_step_that_a_scaler_leaves_out_is_undone():
    def case(compiled):
        yield from cases_deferred._scaled_steps(compiled, (0, 5, 6, 12))

    compiled = Counting()
    check(case, compiled)
    assert compiled.hits >= 9


@pytest.mark.filterwarnings("ignore")
def test_numbers_among_the_arguments_leave_a_refused_call_as_they_came():
    kept, scope = {}, {}
    exec("def note(kept, value):\n    kept['by exec'] = value", scope)
    note, cell = scope["note"], 0

    def put(value):
        nonlocal cell
        cell = value

    def f(x, n):
        try:
            must_be_negative(n)
        except AssertionError as error:
            kept["in an error"] = error
        bool(x.sum() > 0)
        put(n)
        note(kept, n)

        class Holder:
            number = n

        kept["in a class"] = vars(Holder)["number"]
        return x * n

    flow.compile(f)(flow.ones(2), 2)
    found = [cell, *kept.pop("in an error").args, *kept.values()]
    assert found == [2] * 4 and {type(number) for number in found} == {int}


def test_tensors_that_come_to_share_memory_are_recorded_anew():
    a, b = flow.tensor([1.0, 2.0]), flow.tensor([3.0, 4.0])

    def f(x):
        before = b * 2
        a.add_(x)
        return before, b * 2, a + b

    compiled, x = flow.compile(f), flow.ones(2)
    seen = []
    for i in range(8):
        if i == 3:
            b.data = a.data
        if i == 6:
            b.data = flow.tensor([5.0, 6.0])
        compiled(x)
        seen.append(compiled.explain().captures)
    assert seen == [1, 1, 1, 2, 2, 2, 2, 2]


def test_arguments_that_share_memory_are_another_recording():
    array = np.ones(2, np.float32)
    x, y, z = (flow.from_numpy(each) for each in (array, array, array.copy()))
    compiled = flow.compile(lambda x, y: x.mul_(2) + y)
    captures = []
    for one, other in ((x, z), (x, y), (x, z), (y, x), (x[:], y), (z, y)):
        compiled(one, other)
        captures.append(compiled.explain().captures)
    assert captures == [1, 2, 2, 2, 2, 2]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: x + w,
        lambda x, w: (x * w).sum(),
        lambda x, w: x.sum() + w.sum(),
        lambda x, w: flow.relu(x @ w),
        lambda x, w: (x.T, w * 1),
        lambda x, w: x.expand(2, 3, 3) * 2 + w.reshape(9).reshape(3, 3),
        lambda x, w: flow.exp(x) + flow.tanh(w),
    ],
)
def test_gradients_of_a_compiled_forward_pass_are_nobody_elses(function):
    """The array that `.grad` gets may be written: nothing saved, given or kept lies there."""
    compiled = flow.compile(function)
    x, w = (flow.randn(3, 3).requires_grad_() for _ in range(2))
    for _ in range(3):
        x.grad = w.grad = None
        y = compiled(x, w)
        ys = y if isinstance(y, tuple) else (y,)
        given = [flow.ones_like(each) for each in ys]
        flow.autograd.backward(ys, given, retain_graph=True)
        first = x.grad.clone(), w.grad.clone()
        x.grad.fill_(7.0)
        w.grad.fill_(9.0)
        assert all([(g == 1).all() for g in given])
        x.grad = w.grad = None
        flow.autograd.backward(ys, given)
        assert (x.grad == first[0]).all()
        assert (w.grad == first[1]).all()
    assert compiled.explain().hits == 2


def writes_what_it_read(x, w):
    y = x * w
    z = y * 3
    y.add_(1)  # z cannot be made again of it
    return z * z * y


@pytest.mark.parametrize(
    ("function", "kept"),
    [
        (lambda x, w: 0.5 * x * (1 + flow.tanh(x + x * x * x)) * w, 3),  # x, w, tanh
        (lambda x, w: flow.exp(x * w) * (x * w), 3),  # x, w, exp
        (lambda x, w: flow.softmax(x * 2 + 1, 1) * w, 2),  # softmax, w
        (writes_what_it_read, None),
    ],
)
def test_few_operations_are_done_again_rather_than_kept(function, kept, monkeypatch):
    pytest.importorskip("numba", reason="the extra `jit` is not installed")
    monkeypatch.setattr(takeover, "_AT_LEAST", 3)
    monkeypatch.setattr(takeover, "_AT_MOST", 3)
    x, w = (flow.randn(4, 5, dtype=flow.float64).requires_grad_() for _ in range(2))
    wanted = flow.autograd.grad(function(x, w).sum(), (x, w))
    with flow.use_jit(True):
        compiled = flow.compile(function)
        for _ in range(6):
            y = compiled(x, w)
            found = flow.autograd.grad(y.sum(), (x, w))
            for a, b in zip(found, wanted, strict=True):
                assert flow.allclose(a, b, 1e-12, 1e-12)
    assert compiled.explain().hits == 5
    saved = y.grad_fn_node.grad_function.saved
    if kept is not None:
        assert len(saved) == kept


test_few_operations_are_done_again_rather_than_kept = pytest.mark.own_loops(
    pytest.mark.unjudged("loops")(test_few_operations_are_done_again_rather_than_kept)
)


scale, kept = 2.0, {}


def test_a_function_that_an_earlier_call_made_is_observed():
    """It stays as it was written; what it reads is guarded in the calls that call it."""
    global scale

    @flow.compile
    def f(x):
        if "made" not in kept:
            kept["made"] = lambda y: y * scale
        return kept["made"](x)

    kept.clear()
    for scale in (2.0, 2.0, 2.0, 3.0, 3.0, 2.0):
        assert f(flow.ones(1)).item() == scale
    assert f.explain().hits == 3


@pytest.mark.filterwarnings("ignore")
def test_a_generator_goes_on_after_its_call():
    @flow.compile
    def f(x):
        yield x

        class Later:
            number = 2

        box = Later()
        box.number += 1
        try:
            yield x * box.number
        except KeyError as error:
            yield [error.args for _ in "a"]

    running = f(flow.ones(1))
    assert next(running).item() == 1
    assert next(running).item() == 3
    assert running.throw(KeyError("k")) == [("k",)]


def test_variables_that_functions_inside_see_are_plain():
    """A caller of such a function finds an int there later, and none that stands for one."""

    def f(x, n, *, words=None, **others):
        m = n + 1
        found = [(lambda a=m: (n, m, a, k)) for k in range(n)]
        kept["made"] = found
        return x * found[0]()[1] * (2 if (n + 1) % 4 else 3)

    for compiled in (f, flow.compile(f)):
        results = [compiled(flow.ones(1), n).item() for n in (1, 2, 3)]
        assert results == [4.0, 6.0, 12.0]
        (*_, last) = kept.pop("made")
        assert last() == (3, 4, 4, 2)
        assert {type(number) for number in last()} == {int}


def test_another_default_device_is_noticed(monkeypatch):
    f = flow.compile(lambda x: x * flow.ones(2))
    for _ in range(2):
        f(flow.ones(2))
    default = sys.modules["oneflow_lite.arrays.device"]._default
    monkeypatch.setattr(default, "device", flow.device("cuda"))
    with contextlib.suppress(DeviceError):  # where there is none
        f(flow.ones(2, device="cpu"))
    assert f.explain().hits == 1
