"""Checks a document against the classes that describe it."""

from __future__ import annotations

import json
import types
import typing
from typing import Any, NotRequired, TypedDict, Union, get_args, get_origin, is_typeddict

from oneflow_lite.explore import document as described


def check(document: Any) -> None:
    """Raise AssertionError where a document is not as `oneflow_lite.explore.document` says."""
    assert json.loads(json.dumps(document, allow_nan=False)) == document  # no NaN, no int keys
    _check(document, described.Document, "document")
    for kind in ("tensors", "ops", "nodes"):
        assert [part["id"] for part in document[kind]] == list(range(len(document[kind]))), kind
    assert [run["number"] for run in document["runs"]] == list(range(len(document["runs"])))
    names = {source["name"] for source in document["sources"]}
    paths = {part["path"] for part in document["modules"]} | {""}
    tensors, ops, nodes = (range(len(document[kind])) for kind in ("tensors", "ops", "nodes"))
    for part in [*document["ops"], *document["nodes"]]:
        assert part["module"] in paths
        if names and part["source"] is not None:
            assert part["source"][0] in names
    for op in document["ops"]:
        assert {i for i in [*op["inputs"], *op["outputs"], *op["writes"]] if i is not None} <= {
            *tensors
        }
        assert len(op["inputs"]) == len(op["parameters"]), op
        assert op["node"] is None or op["node"] in nodes
        assert op["run"] is None or op["run"] < len(document["runs"])
    for node in document["nodes"]:
        assert all(edge["to"] in nodes for edge in node["edges"])
        assert all(
            document["nodes"][edge["to"]]["topological_nr"] < node["topological_nr"]
            and document["nodes"][edge["to"]]["sequence_nr"] < node["sequence_nr"]
            for edge in node["edges"]
        )
        assert node["op"] is None or node["op"] in ops
    for run in document["runs"]:
        for step in run["steps"]:
            first, last = step["ops"]
            assert 0 <= first <= last <= len(ops)


def _check(value: Any, kind: Any, where: str) -> None:
    origin = get_origin(kind)
    if kind is Any:
        return
    if is_typeddict(kind):
        assert type(value) is dict, where
        hints = typing.get_type_hints(kind, include_extras=True)
        needed = {name for name, hint in hints.items() if get_origin(hint) is not NotRequired}
        assert needed <= value.keys() <= hints.keys(), (where, value.keys() ^ hints.keys())
        for name, each in value.items():
            hint = hints[name]
            _check(each, get_args(hint)[0] if name not in needed else hint, f"{where}.{name}")
    elif origin in (Union, types.UnionType):
        for option in get_args(kind):
            try:
                _check(value, option, where)
            except AssertionError:
                continue
            return
        raise AssertionError(f"{where}: {value!r} is no {kind}")
    elif origin is list:
        assert type(value) is list, (where, value)
        for i, each in enumerate(value):
            _check(each, get_args(kind)[0], f"{where}[{i}]")
    elif origin is dict:
        assert type(value) is dict, (where, value)
        for name, each in value.items():
            _check(name, get_args(kind)[0], f"{where} key")
            _check(each, get_args(kind)[1], f"{where}[{name!r}]")
    elif kind is type(None):
        assert value is None, (where, value)
    else:
        assert type(value) is kind, (where, value, kind)


class State(TypedDict):
    """The state of a run after some of its steps, put together from what each changed."""

    ready: list[int]
    dependencies: dict[int, int]
    not_ready: dict[int, list[Any]]


def states(run: Any) -> list[State]:
    """Return how a run stood at its start and after each step, as the page puts it together."""
    place = {node: i for i, node in enumerate(run["order"])}
    start = run["start"]
    ready = [*start["ready"]]
    counts = {int(node): count for node, count in start["dependencies"].items()}
    sums = {int(node): grads for node, grads in start["not_ready"].items()}
    found = [State(ready=[*ready], dependencies={**counts}, not_ready={**sums})]
    for step in run["steps"]:
        ready = [node for node in ready if node not in step["ready"]["removed"]]
        ready = sorted([*ready, *step["ready"]["added"]], key=place.__getitem__)
        counts.update({int(node): count for node, count in step["dependencies"].items()})
        sums.update({int(node): grads for node, grads in step["not_ready"].items()})
        del counts[step["node"]]
        sums.pop(step["node"], None)
        found.append(State(ready=[*ready], dependencies={**counts}, not_ready={**sums}))
    return found
