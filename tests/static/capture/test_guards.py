"""Guards by themselves: the quick check and its words."""

import numpy as np
import pytest

from oneflow_lite.static.capture.guards import Guard, Guards
from oneflow_lite.static.ir.tree import same

NAN = float("nan")


@pytest.mark.parametrize(
    "a, b",
    [
        (1, 1.0), (1, True), (0, False), (0.0, -0.0), (1.0, 1.5), ("a", b"a"), ((1,), (1.0,)),
        ((1, 2), [1, 2]), (0j, -0j), ([1], [1]), (slice(1), slice(2)), (None, 0),
        (np.float32(1), np.float64(1)), (np.float32(0), np.float32(-0.0)), (NAN, 1.0),
        (np.dtype("f4"), np.dtype("f8")), (np.dtype("f4"), "float32"), ((), []),
    ],
)  # fmt: skip
def test_values_that_differ(a, b):
    assert not same(a, b)
    assert not same(b, a)


@pytest.mark.parametrize(
    "make",
    [
        lambda: int("1000000"), lambda: float("1.5"), lambda: float("nan"), lambda: -0.0 * 1,
        lambda: "ab" * int("30"), lambda: (int("10000"), ("x" * int("3"),)), lambda: slice(0, 1000),
        lambda: complex("1+2j"), lambda: np.float32(1.5), lambda: np.dtype("f4"),
        lambda: range(int("1000")), lambda: True, lambda: None, lambda: bytes([1, 2, 3]),
    ],
)  # fmt: skip
def test_equal_values_in_other_objects(make):
    assert same(make(), make())


def test_a_float_made_anew_still_holds_and_is_then_known_by_identity():
    scope = {"x": float("2.5")}
    guards = Guards([Guard("is", "h0['x']", scope["x"], "x")], {"h0": scope})
    scope["x"] = float("2.5")
    assert not guards._unchanged()
    assert guards.check()
    assert guards._unchanged()


def test_elements_made_anew_still_hold():
    xs = [float("1.5"), int("100000")]
    guards = Guards([Guard("all", "h0", tuple(xs), "xs")], {"h0": xs})
    xs[:] = [float("1.5"), int("100000")]
    assert guards.check() and guards._unchanged()
    xs[1] = 100000.0
    assert not guards.check()
    assert guards.why() == "`element 1 of xs` was 100000, is 100000.0"


@pytest.mark.parametrize(
    "kind, read, expected, value, words",
    [
        ("is", "h0[0]", 2.0, [3.0], "`x` was 2.0, is 3.0"),
        ("is", "h0[0]", 2.0, [], "`x` was 2.0, is not there"),
        ("is", "h0[0]", len, [max], "`x` was len, is max"),
        ("is", "h0[0]", object(), [object()], "`x` was a object, is another one"),
        ("all", "h0", (1, 2), [1], "`x` had 2 elements, has 1"),
        ("equal", "[*h0]", ["a", "b"], {"a": 1, "c": 2}, "`x` lost 'b', got 'c'"),
        ("equal", "[*h0]", ["a", "b"], {"b": 1, "a": 2}, "`x` changed its order"),
        ("empty", "h0", None, {"a": 1}, "`x` is not empty any more"),
    ],
)
def test_what_fails_is_said(kind, read, expected, value, words):
    guards = Guards([Guard(kind, read, expected, "x")], {"h0": value})
    assert not guards.check()
    assert guards.why() == words


def test_many_guards_are_all_asked():
    scope = {f"k{i}": i for i in range(1000)}
    guards = Guards([Guard("is", f"h0['k{i}']", i, f"k{i}") for i in range(1000)], {"h0": scope})
    assert len(guards) == 1000 and guards.check()
    for place in (0, 199, 200, 999):
        scope[f"k{place}"] = "other"
        assert not guards.check()
        scope[f"k{place}"] = place
        assert guards.check()


def test_no_guards_hold():
    assert Guards([], {}).check()
