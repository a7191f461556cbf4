"""Tracked containers: everything that changes them is counted, nothing else is."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from oneflow_lite.static.ir.program import TrackedDict, TrackedList, changes, on_setattr

# All that lists and dicts have, without what only reads.
READS = set(
    """
    copy count index fromkeys get items keys values __reversed__ __class_getitem__ __sizeof__
    __getitem__ __len__ __contains__ __iter__ __add__ __mul__ __rmul__ __or__ __ror__
""".split()
)


@pytest.mark.parametrize("kind", [TrackedList, TrackedDict])
def test_every_method_that_changes_is_counted(kind: type) -> None:
    plain = kind.__bases__[0]
    changing = set(vars(plain)) - set(dir(object)) - READS - set(vars(object))
    assert changing <= set(vars(kind)), sorted(changing - set(vars(kind)))


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.append(1),
        lambda x: x.extend([1]),
        lambda x: x.insert(0, 1),
        lambda x: x.pop(),
        lambda x: x.remove(3),
        lambda x: x.sort(),
        lambda x: x.reverse(),
        lambda x: x.clear(),
        lambda x: x.__setitem__(0, 5),
        lambda x: x.__setitem__(slice(1), [5]),
        lambda x: x.__delitem__(0),
        lambda x: x.__iadd__([1]),
        lambda x: x.__imul__(2),
    ],
)
def test_lists_count(change: Callable[[Any], Any]) -> None:
    plain, tracked = [3, 1, 2], TrackedList([3, 1, 2])
    before = changes()
    assert change(tracked) == change(plain)
    assert tracked == plain and changes() == before + 1


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.update(a=2),
        lambda x: x.pop("a"),
        lambda x: x.popitem(),
        lambda x: x.setdefault("b", 1),
        lambda x: x.clear(),
        lambda x: x.__setitem__("a", 2),
        lambda x: x.__delitem__("a"),
        lambda x: x.__ior__({"b": 1}),
    ],
)
def test_dicts_count(change: Callable[[Any], Any]) -> None:
    plain, tracked = {"a": 1}, TrackedDict({"a": 1})
    before = changes()
    assert change(tracked) == change(plain)
    assert tracked == plain and changes() == before + 1


def test_reading_is_not_counted() -> None:
    items, entries = TrackedList([1, 2]), TrackedDict(a=1)
    before = changes()
    assert [*items, items[0], items.index(2), len(items)] == [1, 2, 1, 1, 2]
    assert {**entries} == dict(entries) == {"a": entries["a"]} == entries.copy()
    assert items + [3] == [1, 2, 3] and entries | {"b": 2} == {"a": 1, "b": 2}
    assert repr(items) == "[1, 2]" and repr(entries) == "{'a': 1}"
    assert changes() == before


def test_a_change_that_fails_is_counted() -> None:
    items = TrackedList([1])
    before = changes()

    def numbers() -> Any:
        yield 2
        raise KeyError

    with pytest.raises(KeyError):
        items.extend(numbers())
    assert changes() > before


def test_copies_are_tracked_too() -> None:
    for items in (TrackedList([1]), TrackedDict(a=1)):
        for twin in (copy.copy(items), copy.deepcopy(items), pickle.loads(pickle.dumps(items))):
            assert type(twin) is type(items) and twin == items
            before = changes()
            twin.clear()
            assert changes() > before and len(items) == 1


def test_attributes_count() -> None:
    @attrs.define(on_setattr=on_setattr)
    class Thing:
        x: int = 0

    thing = Thing()
    before = changes()
    thing.x = 3
    assert changes() == before + 1 and thing.x == 3
