"""Each way of each op's SBP rule, with the ranks played one after the other in this process.

Ops run on global tensors of one rank; what comes to the interpreter is done again with parts.
"""

from __future__ import annotations

import functools
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.distributed import global_interpreter
from oneflow_lite.distributed.placement import pieces
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.sbp_rules import Way, ways_of
from oneflow_lite.tensors.tensor import make_tensor
from tests.op_samples import every_op, floats, samples

NO_GLOBAL_TENSOR = frozenset("empty to_device view_dtype as_strided".split())


def part_of(array: Any, sig: Any, parts: int, rank: int) -> Any:
    """Return what a rank has of an array."""
    if array is None or sig == "B":
        return array if array is None else array.copy()
    if sig == "P":
        shares = [
            array * 0 + 0.5 * k if array.dtype.kind in "fc" else array * k for k in range(parts)
        ]
        return array - sum(shares[1:]) if rank == 0 else shares[rank]
    ends = np.cumsum([0, *pieces(array.shape[sig], parts)])
    return array[(slice(None),) * sig + (slice(ends[rank], ends[rank + 1]),)].copy()


def joined(outs: list[Any], sig: Any, wanted: Any, weights: list[float]) -> Any:
    """Return the whole of what the ranks made; None where their parts are not what they should."""
    if sig == "P":
        return sum(np.asarray(y * w if w != 1 else y) for y, w in zip(outs, weights, strict=True))
    if sig == "B":
        return outs[0] if all(np.array_equal(y, outs[0], equal_nan=True) for y in outs) else None
    if [y.shape[sig] for y in outs] != pieces(wanted.shape[sig], len(outs)):
        return None
    return np.concatenate(outs, sig)


class Line:
    """The ranks in line, each a thread, for ways that run an op themselves."""

    def __init__(self, op: Any, size: int, parts: int, rank: int, board: Any) -> None:
        self.op, self.xp, self.kernel, self.size = op.op_type_name, np, op.kernel(np), size
        self.begin, self.end = np.cumsum([0, *pieces(size, parts)])[rank : rank + 2].tolist()
        self.rank, (self.meeting, self.shown) = rank, board

    def local(self, arrays: Any, attrs: Any) -> Any:
        return self.kernel(*arrays, **attrs)

    def reduce(self, array: Any, reduction: str) -> Any:
        self.shown[self.rank] = array
        self.meeting.wait(5)
        found = functools.reduce({"sum": np.add, "max": np.maximum}[reduction], self.shown)
        self.meeting.wait(5)
        return found


def by_ranks(op: Any, way: Way, given: list[list[Any]], attrs: Any) -> list[Any]:
    """Return what the ranks make of what they are given."""
    parts, board = len(given), (threading.Barrier(len(given)), [None] * len(given))

    def run(rank: int) -> Any:
        if way.run is not None:
            return way.run(Line(op, way.size, parts, rank, board), given[rank], attrs)
        fitted = attrs
        if way.fit is not None:
            fitted = way.fit(attrs, lambda n: pieces(n, parts)[rank])
        return op.kernel(np)(*given[rank], **fitted)

    if way.run is None:
        return [run(rank) for rank in range(parts)]
    with ThreadPoolExecutor(parts) as pool:
        return list(pool.map(run, range(parts)))


def wrong(op: Any, arrays: list[Any], attrs: Any, way: Way, parts: int) -> str:
    """Return what is wrong with doing an op in a way on so many ranks."""
    given = [(a, i) for a, i in zip(arrays, way.ins, strict=True) if a is not None]
    sizes = [a.shape[i] for a, i in given if isinstance(i, int)] or [way.size or parts]
    if min(sizes) < parts or (way.unit and way.unit % parts):
        return ""
    if any(i == "P" and a.dtype.kind not in "fci" for a, i in given):
        return ""
    kernel = op.kernel(np)
    whole = [a if a is None else a.copy() for a in arrays]
    wanted = kernel(*whole, **attrs)
    owned = [
        [part_of(a, i, parts, rank) for a, i in zip(arrays, way.ins, strict=True)]
        for rank in range(parts)
    ]
    weights = [n / way.size if way.mean else 1 for n in pieces(way.size, parts)]
    made = []
    for own, found in zip(owned, by_ranks(op, way, owned, attrs), strict=True):
        written = tuple(own[i] for i in op.schema.written if own[i] is not None)
        made.append(written or (found if type(found) is tuple else (found,)))
    if op.schema.written:
        wanted = tuple(whole[i] for i in op.schema.written if whole[i] is not None)
        outs = tuple(
            i for k, i in enumerate(way.ins) if k in op.schema.written and arrays[k] is not None
        )
    else:
        wanted = wanted if type(wanted) is tuple else (wanted,)
        outs = way.outs if len(way.outs) > 1 else way.outs * len(wanted)
    for k, y in enumerate(wanted):
        found = joined([each[k] for each in made], outs[k], y, weights)
        if found is None or found.shape != y.shape:
            return f"{way.ins} to {way.outs}: parts of output {k} do not fit"
        if not np.allclose(found, y, rtol=1e-6, atol=1e-8, equal_nan=True):
            return f"{way.ins} to {way.outs}: output {k} is {found}, not {y}"
    return ""


class Checked(global_interpreter._GlobalCall):
    """Looks at all ways of an op before it runs."""

    seen: set[Any] = set()
    said: list[str] = []

    def run(self) -> Any:
        schema = self.op.schema
        arrays = [None if x is None else np.asarray(x.local) for x in self.arrays]
        key = (
            self.name,
            tuple(None if a is None else (a.shape, a.dtype) for a in arrays),
            str(self.attrs),
        )
        if key not in self.seen and not (schema.random or schema.effect):
            self.seen.add(key)
            shapes = [None if a is None else a.shape for a in arrays]
            for way in ways_of(self.op, shapes, self.attrs) or ():
                for parts in (2, 3):
                    if said := wrong(self.op, arrays, self.attrs, way, parts):
                        self.said.append(f"{self.name} {shapes} {self.attrs}: {said}")
        return super().run()


def checked(sample: Any) -> None:
    """Run a sample and its gradients on global tensors."""
    where = flow.placement("cpu", ranks=[0])
    inputs = [make_tensor(a.copy()).to_global(where, flow.sbp.broadcast) for a in sample.inputs]
    for i in sample.differentiable:
        inputs[i].requires_grad_()
    joined = [y for y in floats(sample.call(*inputs)) if y.requires_grad]
    if joined:
        total = sum((y * y.conj()).real.sum() if y.is_complex() else (y * y).sum() for y in joined)
        wanted = [inputs[i] for i in sample.differentiable]
        flow.autograd.grad(total, wanted, allow_unused=True)


def test_every_way_of_every_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(global_interpreter, "_GlobalCall", Checked)
    Checked.seen.clear()
    Checked.said.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in every_op():
            schema = op_expr(name).schema
            if schema.effect or schema.random or name in NO_GLOBAL_TENSOR:
                continue
            for sample in samples(name):
                if not sample.control_flow and not any(
                    a.dtype.char in "fFe" for a in sample.inputs
                ):
                    checked(sample)
    assert not Checked.said, f"{len(Checked.said)} of them:\n" + "\n".join(Checked.said)
