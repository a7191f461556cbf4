"""NVIDIA's own frontend takes the graphs that are built, and refuses them when they are changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oneflow_lite.ops import cudnn
from tests.cudnn.calls import CALLS, run_call
from tests.cudnn.frontend import installed, library_folder, problems

pytestmark = pytest.mark.skipif(not installed(), reason="the frontend, or a compiler, is lacking")


@pytest.fixture
def keys(library: Any, monkeypatch: Any) -> list[Any]:
    """The keys of all plans that the calls ask for."""
    found = []

    class Plan(cudnn._Plan):
        def __init__(self, key: Any, handle: Any) -> None:
            super().__init__(key, handle)
            found.append(key)

    monkeypatch.setattr(cudnn, "_Plan", Plan)
    for name, call in CALLS.items():
        for dtype in (np.float16, np.float32, np.float64):
            if dtype is not np.float64 or "conv" in name:
                run_call(call, dtype)
    assert len(found) > 100
    return found


def test_every_graph_is_valid(keys: list[Any], tmp_path: Path) -> None:
    assert [said for said in problems(keys, tmp_path) if said] == []


def test_changed_graphs_are_not(keys: list[Any], tmp_path: Path) -> None:
    named = {}
    for node, names, specs, numbers, attrs, barred, benchmark in keys:
        rest = (numbers, attrs, barred, benchmark)
        other = dict(attrs)
        # A tensor of another name, and one too few.
        named[node, "name"] = (node, ("other", *names[1:]), specs, *rest)
        named[node, "one too few"] = (node, names[1:], specs[1:], *rest)
        if "conv" in node:
            named[node, "attribute"] = (
                node,
                names,
                specs,
                numbers,
                (*attrs, ("group", 2)),
                *rest[2:],
            )
            del other["dilation"]
            named[node, "no dilation"] = (
                node,
                names,
                specs,
                numbers,
                tuple(other.items()),
                *rest[2:],
            )
        if library_folder() is None:
            continue
        # What only the library notices: channels, dtypes, sizes.
        (shape, char), *others = specs
        shape = (shape[0], shape[1] + 1, *shape[2:])
        named[node, "channels"] = (node, names, ((shape, char), *others), *rest)
    said = problems(list(named.values()), tmp_path)
    assert [key for key, answer in zip(named, said, strict=True) if not answer] == []
