"""Values that are computed, nested or read in long loops: recorded or refused, never in vain."""

from __future__ import annotations

import time
from typing import Any

import pytest

import oneflow_lite as flow

pytestmark = pytest.mark.filterwarnings("ignore:flow.compile")
HUGE = 10**5000  # Python writes no more than 4300 digits


class Link:
    def __init__(self, inner: Any = None) -> None:
        self.inner, self.calls = inner, 0


link = Link()


def added(x, n, count):
    for _ in range(count):
        n = n + 1
    return x * 2 if n > 3 else x


def multiplied(x, n, count):
    for _ in range(count):
        n = (n * 3 + 1) % 7
    return x * n


def doubled(x, n, count):
    for _ in range(min(count, 200)):
        n = n + n
    return x * 2 if n > 3 else x


def fibonacci(x, n, count):
    a, b = n, n
    for _ in range(min(count, 200)):
        a, b = b, a + b
    return x * 2 if b > a else x


def position(x, n, count):
    for _ in range(count):
        n = n + 1
    return x[n % 2 :]


def compared(x, n, count):
    return x * sum([n > i for i in range(count)])


def read_out(x, n, count):
    loss = x.sum().item()
    for _ in range(count):
        loss = loss * 1.0001 + 1.0
    return {"loss": loss}


def counted(x, n, count):
    for _ in range(count):
        link.calls += 1
    return x * 2


def nested_tuples(x, n, count):
    made: Any = ()
    for _ in range(count):
        made = (made, n)
    return x * len(made)


def nested_keys(x, n, count):
    key: Any = ()
    for _ in range(count):
        key = (key, 1)
    return x * {key: 2.0}[key]


def returned_lists(x, n, count):
    made: Any = x * 2
    for _ in range(count):
        made = [made]
    return made


def left_behind(x, n, count):
    made: Any = x * 2
    for _ in range(count):
        made = {"a": made}
    link.inner = made
    return x * 2


def concatenated(x, n, count):
    text = ""
    for _ in range(count):
        text = f"{text}{n}" if len(text) % 2 else text + "a"
    return x * len(text)


def sizes(x, n, count):
    total = x.shape[0]
    for _ in range(count):
        total = total + x.shape[0]
    return x * total


LOOPS = [added, multiplied, doubled, fibonacci, position, compared, read_out, counted]
LOOPS += [nested_tuples, nested_keys, returned_lists, left_behind, concatenated, sizes]


@pytest.mark.parametrize("count", [30, 300, 5_000])
@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_long_loops_are_recorded_or_refused(loop: Any, count: int) -> None:
    compiled, x = flow.compile(loop), flow.ones(4)
    began = time.process_time()
    for n in (5, 5, 6, 6):
        link.calls = 0
        want, made = loop(x, n, count), link.calls
        link.calls = 0
        have = compiled(x, n, count)
        assert link.calls == made
        while type(want) is list:
            (want,), (have,) = want, have
        if type(want) is dict:
            assert want == have
        else:
            assert want.tolist() == have.tolist()
    assert time.process_time() - began < 8  # ten times as long as it takes
    said = compiled.explain()
    assert said.captures + said.fallbacks > 0 or said.why
    assert len(said.why) < 300


def chain(kind: str, depth: int) -> Any:
    """Return objects within each other."""
    made: Any = None
    for _ in range(depth):
        made = {"tuple": (made,), "list": [made], "dict": {"inner": made}}.get(kind) or Link(made)
    return made


def length(x: Any, value: Any) -> Any:
    count = 0
    while value is not None:
        inner = "inner" if type(value) is dict else 0
        value = value.inner if type(value) is Link else value[inner]
        count += 1
    return x * count


outside = {kind: chain(kind, 150) for kind in ("tuple", "list", "dict", "object")}


@pytest.mark.parametrize("kind", outside)
def test_long_chains_are_read(kind: str) -> None:
    x = flow.ones(2)
    for function in (lambda x, v: length(x, v), lambda x, _: length(x, outside[kind])):
        compiled = flow.compile(function)
        for _ in range(3):
            assert compiled(x, outside[kind]).tolist() == [150.0] * 2
        assert compiled.explain().captures == 1


@pytest.mark.parametrize("n", [5, HUGE], ids=["small", "huge"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, n: x * (2 if n > 3 else 1),
        lambda x, n: x * (2 if n + HUGE > 3 else 1),
        lambda x, n: x * (2 if n * HUGE % 7 > 3 else 1),
        lambda x, n: x * {HUGE: 2.0}[HUGE],
        lambda x, n: x * (2 if n in (HUGE, 5) else 1),
        lambda x, n: (x, HUGE)[0] * len([(HUGE, n)]),
    ],
)
def test_huge_ints_need_no_digits(function: Any, n: int) -> None:
    compiled, x = flow.compile(function), flow.ones(2)
    for given in (n, n, n + 1, 6, HUGE):
        assert compiled(x, given).tolist() == function(x, given).tolist()
    assert compiled.explain().hits
