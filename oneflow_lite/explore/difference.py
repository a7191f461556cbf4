"""The first op at which two recordings of the same code part: two seeds, or eager and compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from oneflow_lite.explore.document import Document, OpPart

_NEAR = 500  # ops after the last one that was compared


class _Op(NamedTuple):
    """An op of a recording, or of a call of a compiled function.

    Each of "results" is a pair of shape and dtype, and of values; None where it is not known. A
    call whose ops are not known stands as a whole: its "op" is None.
    """

    number: str
    op: str | None
    source: Any
    attrs: Any
    results: Sequence[Any]


def difference(one: Document, two: Document) -> str:
    """Return in words where two recordings part; see `Exploration.difference`."""
    mine, theirs = list(_ops(one)), list(_ops(two))
    if bool(one["compiled"]) == bool(two["compiled"]):
        for a, b in zip(mine, theirs, strict=False):
            if text := _parted(a, b, a):
                return text
        counts = len(mine), len(theirs)
        return "" if counts[0] == counts[1] else f"{counts[0]} ops ran, and {counts[1]}"
    # The passes leave ops out of what is compiled: each op there is compared with the next like it.
    place = 0
    eager, few = (mine, theirs) if two["compiled"] else (theirs, mine)
    for b in few:
        if b.op is None:
            return f"alike up to {b.number}, whose ops were not written down"
        alike = [i for i in range(place, min(place + _NEAR, len(eager))) if _alike(eager[i], b)]
        if alike:
            at = next((i for i in alike if _kinds(eager[i], b) == _kinds(b, b)), alike[0])
            a, place = eager[at], at + 1
            if text := _parted(*((a, b) if eager is mine else (b, a)), b):
                return text
    return ""


def _ops(document: Document) -> Iterator[_Op]:
    """Yield the ops, those of compiled calls in their places."""
    calls = [
        (call["after"], part["name"], call)
        for part in document["compiled"]
        for call in part["calls"]
        if call["outcome"] != "plain"
    ]
    calls.sort(key=lambda call: call[0])
    for i in range(len(document["ops"]) + 1):
        while calls and calls[0][0] <= i:
            _, name, call = calls.pop(0)
            number = f"call {call['call']} of {name}"
            if call["ops"] is None:
                yield _Op(number, None, None, None, ())
            for k, op in enumerate(call["ops"] or ()):
                yield _Op(f"op {k} of {number}", op["op"], op["source"], None, op["results"])
        if i < len(document["ops"]):
            part = document["ops"][i]
            results = list(_results(part, document))
            yield _Op(f"op {part['id']}", part["op"], part["source"], part["attrs"], results)


def _results(op: OpPart, document: Document) -> Iterator[tuple[str, Any]]:
    for i in op["outputs"]:
        tensor = document["tensors"][i]
        value: Any = op["written"].get(str(i), tensor["value"]) or {}
        yield f"{tensor['shape']} {tensor['dtype']}", value.get("text")


def _alike(a: _Op, b: _Op) -> bool:
    return (a.op, a.source) == (b.op, b.source)


def _kinds(a: _Op, known: _Op) -> list[str]:
    pairs = zip(a.results, known.results, strict=False)
    return [one[0] for one, other in pairs if one and other]


def _parted(a: _Op, b: _Op, named: _Op) -> str:
    """Return in words where two ops differ; "" if nowhere."""
    place = ":".join(map(str, named.source or ["an unknown line"]))
    where = f"{named.number}, {named.op} at {place}"
    pairs = [("the op", a.op, b.op), ("the line", a.source, b.source)]
    if a.attrs is not None and b.attrs is not None:
        pairs.append(("its options", a.attrs, b.attrs))
    for i, (x, y) in enumerate(zip(a.results, b.results, strict=False)):
        if x and y:
            pairs += [(f"result {i}", x[0], y[0]), (f"result {i}", x[1], y[1])]
    return next((f"{where}: {what} was {x}, is {y}" for what, x, y in pairs if x != y), "")
