"""Cases that others captured wrongly without a word: compiled equals eager, or is refused."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import oneflow_lite as flow
from tests.compiler.capture.worlds import cases_of, check, check_or_refused, remembering

MODULES = [
    import_module(f"tests.compiler.capture.{path.stem}")
    for path in sorted(Path(__file__).parent.glob("cases_*.py"))
]
CASES = [case for module in MODULES for case in cases_of(module)]
by_name = pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)


@pytest.mark.slow(but=240)
@by_name
@pytest.mark.filterwarnings("ignore")
def test_compiled_does_what_the_plain_function_does(case):
    check(case, flow.compile)


@pytest.mark.slow(but=20)
@by_name
@pytest.mark.filterwarnings("ignore")
def test_the_full_graph_does_so_or_is_refused(case):
    check_or_refused(case)


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.split("_", 1)[1])
@pytest.mark.filterwarnings("ignore")
def test_a_compiler_that_remembers_its_results_is_caught(module):
    for case in cases_of(module):
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
