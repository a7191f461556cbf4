"""The results of branches are taken apart, compared, and their numbers made tensors."""

from __future__ import annotations

import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentError, DTypeError, ShapeError
from oneflow_lite.static.capture.tree import unflatten
from oneflow_lite.static.control_flow.structures import (
    Result,
    check_same_results,
    numbers_as_tensors,
    numbers_to_tensors,
)


def put_together(result):
    return unflatten(result.spec, lambda position: result.tensors[position])


def test_numbers_that_differ_become_tensors_in_all_results():
    values = [(1, 2.0, [True, 3]), (1, 2.5, [flow.tensor(False), 3]), (1, 2.0, [True, 3])]
    results = [Result.of(value) for value in values]
    for i in range(3):
        numbers_to_tensors(results, i)
    found = [put_together(result) for result in results]
    assert [(y[0], y[1].item(), y[2][0].item(), y[2][1]) for y in found] == [
        (1, 2.0, True, 3),
        (1, 2.5, False, 3),
        (1, 2.0, True, 3),
    ]
    check_same_results("op", ["a", "b", "c"], results)


def test_all_numbers_of_a_loop_variable_become_tensors():
    x = flow.ones(2)
    found = numbers_as_tensors({"a": (1, x), "b": [None, 2.5, "text"]})
    assert found["a"][0].dtype == flow.int64 and found["a"][1] is x
    assert found["b"][0] is None and found["b"][1].dtype == flow.float32
    assert found["b"][2] == "text"


@pytest.mark.parametrize(
    ("one", "other", "error", "place"),
    [
        ([flow.ones(2)], (flow.ones(2),), ArgumentError, "list of 1.*tuple of 1"),
        ({"a": 1}, {"b": 1}, ArgumentError, r"keys \['a'\].*keys \['b'\]"),
        ([1, [2]], [1, [3]], ArgumentError, r"at \[1\]\[0\]"),
        ([1, [2]], [1, [2.0]], ArgumentError, r"at \[1\]\[0\]"),
        ((flow.ones(2), 1), (flow.ones(3), 1), ShapeError, r"at \[0\]"),
        ({"a": flow.ones(2)}, {"a": flow.ones(2).long()}, DTypeError, r"at \['a'\]"),
    ],
)
def test_differences_are_named(one, other, error, place):
    with pytest.raises(error, match=f"second.*{place}"):
        check_same_results("op", ["first", "second"], [Result.of(one), Result.of(other)])
