"""No public callable raises what NumPy or Python raise by accident, crashes or hangs."""

from __future__ import annotations

import pytest

from tests.hostile.calls import Call
from tests.hostile.values import VALUES
from tests.hostile.walk import walk

# What the walk has to find, by the text of a function.
PLANTED = {
    "(lambda x: (1).no_such)": "AttributeError",
    "(lambda x: np.empty(2**33))": "MemoryError",
    "(lambda x: np.mean([]))": "warning",
    "(lambda x: __import__('os').abort())": "crash",
    "(lambda x: [0 for _ in iter(int, 1)])": "hang",
    "(lambda: 0)": "",
    "flow.abs": "",
}


@pytest.mark.slow
def test_the_walk_finds_what_is_planted() -> None:
    calls = [Call(text, "", text, ("0",), {}) for text in PLANTED]
    found = walk(calls, every=len(VALUES))  # one value each
    assert {each.name: each.kind for each in found} == {t: k for t, k in PLANTED.items() if k}
