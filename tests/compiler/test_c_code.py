"""C code that calls special methods, keys and callbacks of users: observed, or refused."""

from __future__ import annotations

import linecache
import sys
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

import oneflow_lite as flow
from oneflow_lite.compiler.rewrite import _codes
from tests.compiler import c_code

pytestmark = pytest.mark.unjudged("it runs the plain function beside each call itself")


def told(value: object) -> object:
    """Return a value as far as two calls of one function have to agree in it."""
    if type(value) in (list, tuple):
        return [told(each) for each in value]
    return value if type(value) in (int, float, complex, str, bool, bytes) else type(value).__name__


def compiled(expression: str, number: int) -> SimpleNamespace:
    """Return a function of an expression, and that function compiled."""
    text = (
        f"def f(x):\n    try:\n        value = {expression}\n"
        "    except ERRORS as error:\n        return x * 3, type(error).__name__\n"
        "    return x * 2, value\n"
    )
    name = f"<c code {number}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), vars(c_code))
    return SimpleNamespace(plain=c_code.f, compiled=flow.compile(c_code.f))


def calls(function: SimpleNamespace) -> Iterator[tuple[object, object, list[str]]]:
    """Call both, with changes outside between; give the results and what ran unseen, or in vain."""
    unobserved: list[str] = []
    ran: Counter[str] = Counter()

    def notice(frame: object, event: str, argument: object) -> None:
        code = frame.f_code
        if event != "call" or code.co_filename != c_code.__file__:
            return
        ran[code.co_qualname] += 1 if f is function.compiled else -1
        if f is function.compiled and all(code is not new for new in _codes.values()):
            unobserved.append(code.co_qualname)

    for c_code.scale in (2.0, 2.0, 3.0, 2.0):
        unobserved.clear()
        ran.clear()
        recorded = function.compiled.explain().captures
        found = []
        for f in (function.plain, function.compiled):
            sys.setprofile(notice)
            try:
                y, value = f(flow.ones(2))
                found.append((y.tolist(), told(value)))
                del value  # a generator is closed now
            except Exception as error:
                found.append((type(error).__name__, str(error)))
            finally:
                sys.setprofile(None)
        kept = function.compiled.explain().captures > recorded
        found.reverse()
        yield *found, [*(unobserved if kept else ()), *+ran]


@pytest.mark.slow(but=6)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("area", c_code.AREAS)
def test_what_c_code_calls_is_observed_or_refused(area):
    failed = []
    for number, expression in enumerate(c_code.AREAS[area].split(";")):
        function = compiled(" ".join(expression.split()), number)
        for found, wanted, unobserved in calls(function):
            if found != wanted or unobserved:
                failed.append(f"{expression.strip()}: {found}, not {wanted}; {unobserved}")
                break
    assert not failed, "\n".join(failed)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", c_code.REFUSED.split(";"))
def test_what_is_not_worth_a_rule_is_refused(expression):
    function = compiled(" ".join(expression.split()), -2)
    assert all(found == wanted for found, wanted, _ in calls(function))
    assert not function.compiled.explain().hits and function.compiled.explain().reasons


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", c_code.UNDERSTOOD)
def test_what_is_understood_is_replayed(expression):
    function = compiled(expression, -1)
    assert all(found == wanted for found, wanted, _ in calls(function))
    assert function.compiled.explain().hits, function.compiled.explain().reasons
