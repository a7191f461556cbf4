"""Scope: values by name, children, copies at the border, and what counts as a change."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import ArgumentTypeError
from oneflow_lite.static.ir.scope import Scope, global_scope, scope_guard


def test_a_child_sees_its_parent_and_not_the_other_way_round() -> None:
    root = Scope()
    root.set("w", np.ones(2))
    child = root.new_scope()
    grandchild = child.new_scope()
    child.set("t", np.zeros(3))
    assert grandchild.find_var("w") is root.find_var("w")
    assert grandchild.find_var("t") is child.find_var("t")
    assert root.find_var("t") is None
    assert root.local_var_names() == ["w"]
    assert child.local_var_names() == ["t"]
    assert "w" in grandchild and "t" not in root and 3 not in root


def test_a_child_hides_what_has_the_same_name() -> None:
    root = Scope()
    root.set("w", [1.0])
    child = root.new_scope()
    child.set("w", [2.0])
    assert child.find_var("w").tolist() == [2.0]
    child.erase("w")
    assert child.find_var("w").tolist() == [1.0]


def test_dropping_kids_leaves_the_parent() -> None:
    root = Scope()
    root.set("w", np.ones(2))
    child = root.new_scope()
    grandchild = child.new_scope()
    root.drop_kids()
    assert root.kids == [] and child.kids == []
    assert child.find_var("w") is None and grandchild.parent is None
    assert root.find_var("w").tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "value",
    [
        np.array([1.0, 2.0]),
        flow.tensor([1.0, 2.0]),
        [1.0, 2.0],
        np.float64(1.5),
        2,
    ],
)
def test_set_copies(value: object) -> None:
    scope = Scope()
    scope.set("w", value)
    kept = scope.find_var("w")
    assert type(kept) is np.ndarray
    given = value._data if isinstance(value, flow.Tensor) else value
    np.testing.assert_array_equal(kept, given)
    assert not np.may_share_memory(kept, given)
    kept += 1


@pytest.mark.parametrize("value", [None, "a", object(), np.array(["a"]), {"a": 1}])
def test_set_refuses_what_is_no_array(value: object) -> None:
    scope = Scope()
    with pytest.raises(ArgumentTypeError, match=r"Scope.set.*value"):
        scope.set("w", value)
    assert scope.local_var_names() == []


def test_var_makes_a_name_without_a_value() -> None:
    root = Scope()
    assert root.var("w") is None
    assert root.local_var_names() == ["w"]
    assert root.find_var("w") is None and "w" not in root
    root.set("w", [1.0])
    assert root.var("w") is root.find_var("w")


def test_put_writes_the_array_that_is_there() -> None:
    root = Scope()
    root.set("w", np.zeros(2))
    before, version = root.find_var("w"), root.version
    child = root.new_scope()
    child.put("w", np.ones(2))
    assert root.find_var("w") is before and before.tolist() == [1.0, 1.0]
    assert child.local_var_names() == [] and root.version == version


def test_put_replaces_an_array_of_another_kind() -> None:
    root = Scope()
    root.set("w", np.zeros(2))
    version = root.version
    root.new_scope().put("w", np.ones(3))
    assert root.find_var("w").shape == (3,) and root.version > version
    root.put("v", np.ones(1))
    assert root.local_var_names() == ["w", "v"]


def test_the_version_counts_changes_anywhere_in_the_tree() -> None:
    root = Scope()
    child = root.new_scope()
    for change in (
        lambda: root.set("w", [1.0]),
        lambda: child.set("t", [1.0]),
        lambda: child.erase("t"),
        root.drop_kids,
    ):
        before = root.version
        change()
        assert root.version > before
    before = root.version
    root.find_var("w")[...] = 5
    assert root.version == before


def test_scope_guard_changes_the_global_scope_of_this_thread() -> None:
    outside = global_scope()
    scope = Scope()
    seen = []
    with scope_guard(scope):
        assert global_scope() is scope
        with scope_guard(Scope()):
            assert global_scope() is not scope
        assert global_scope() is scope
        thread = threading.Thread(target=lambda: seen.append(global_scope()))
        thread.start()
        thread.join()
    assert global_scope() is outside and seen == [outside]


def test_scope_guard_ends_with_an_exception() -> None:
    outside = global_scope()
    with pytest.raises(KeyError), scope_guard(Scope()):
        raise KeyError
    assert global_scope() is outside
    with pytest.raises(ArgumentTypeError, match=r"scope_guard.*scope"), scope_guard(None):  # type: ignore[arg-type]
        pass
