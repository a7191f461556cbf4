"""Cases that others captured wrongly without a word: compiled equals eager, or is refused."""

from __future__ import annotations

import pytest

import oneflow_lite as flow
from tests.compiler.capture import (
    cases_backward_code,
    cases_branches,
    cases_calls,
    cases_changed_classes,
    cases_constants,
    cases_effects,
    cases_found,
    cases_frames,
    cases_gradients,
    cases_histories,
    cases_hooks,
    cases_kinds,
    cases_made,
    cases_modules,
    cases_natively_read,
    cases_objects,
    cases_optimizers,
    cases_outputs,
    cases_reads,
    cases_results,
    cases_special_methods,
    cases_switched,
    cases_writes,
)
from tests.compiler.capture.worlds import cases_of, check, check_or_refused, plain, remembering

MODULES = [
    cases_backward_code,
    cases_branches,
    cases_calls,
    cases_changed_classes,
    cases_constants,
    cases_effects,
    cases_found,
    cases_frames,
    cases_gradients,
    cases_histories,
    cases_hooks,
    cases_objects,
    cases_kinds,
    cases_made,
    cases_modules,
    cases_natively_read,
    cases_optimizers,
    cases_outputs,
    cases_reads,
    cases_results,
    cases_special_methods,
    cases_switched,
    cases_writes,
]
CASES = [case for module in MODULES for case in cases_of(module)]
by_name = pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)


@by_name
@pytest.mark.filterwarnings("ignore")
def test_compiled_does_what_the_plain_function_does(case):
    check(case, flow.compile)


@by_name
@pytest.mark.filterwarnings("ignore")
def test_the_full_graph_does_so_or_is_refused(case):
    check_or_refused(case)


@by_name
def test_the_plain_function_does_the_same_in_both_worlds(case):
    check(case, plain)


@by_name
@pytest.mark.filterwarnings("ignore")
def test_a_compiler_that_remembers_its_results_is_caught(case):
    with pytest.raises((AssertionError, RuntimeError, TypeError, AttributeError)):
        check(case, remembering)


@pytest.mark.filterwarnings("ignore")
def test_one_function_on_both_devices_in_turn(device):
    def devices(compiled):
        f = compiled(lambda x: (x * 2).exp().sum())
        for place in ("cpu", device, "cpu", device):
            x = flow.ones(3, device=place, requires_grad=True)
            y = f(x)
            y.backward()
            yield y, x, str(y.device), str(x.grad.device)

    check(devices, flow.compile)
