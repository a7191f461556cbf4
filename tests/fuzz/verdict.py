"""Runs a program on several sides step by step, and says whether they agree."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Set
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite.errors import FlowError
from tests.fuzz import vocabulary as words
from tests.fuzz.copying import CopyingRun
from tests.fuzz.eager import EagerRun
from tests.fuzz.programs import Program, Ref, Step

try:
    import torch
except ImportError:
    torch = None

RTOL = 1e-9
# Numbers beyond it have lost the digits that are compared.
LARGEST = 1e5


class Disagreement(AssertionError):
    """Two sides of a program differ."""


# Where ours raises and PyTorch does not: the reason, and how to know the case.
STRICTER: dict[str, Callable[[_Trial, Step | None, Exception], bool]] = {
    "a view made under no_grad requires no gradient": lambda trial, step, error: (
        "does not require a gradient" in str(error)
    ),
    "a region without overlap of a tensor whose elements share memory": (
        lambda trial, step, error: "shared between its own elements" in str(error)
    ),
}

# The reasons are in tests/functors/test_saved_tensors.py.
KEEP_LESS = {"gather", "prod", "index_add", "index_add_", "addcdiv", "addcdiv_"}
# Where PyTorch raises and ours does not; the copying interpreter says that ours is right.
LOOSER: dict[str, Callable[[_Trial, Step | None, Exception], bool]] = {
    "what is written overlaps what is read; the operand is read before anything is written": (
        lambda trial, step, error: "refer to a single memory location" in str(error)
    ),
    "an operand lies in the memory that is written; its old content is copied for the gradient": (
        lambda trial, step, error: trial.overlapped and "modified by an inplace" in str(error)
    ),
    "a view made under no_grad requires no gradient, and nothing made of it does": (
        lambda trial, step, error: (
            trial.frozen_views
            and any(
                text in str(error)
                for text in ("in no_grad mode", "returns multiple views", "modified by an inplace")
            )
        )
    ),
    "PyTorch takes the view of a real part, reshaped in place, anew in its old shape": (
        lambda trial, step, error: "returned an invalid gradient" in str(error)
    ),
    "PyTorch releases what a write to a region keeps, which is nothing here": (
        lambda trial, step, error: (
            trial.runs({"backward_and_free"})
            and trial.runs(words.WRITES.keys() | {"setitem"})
            and "through the graph a second time" in str(error)
        )
    ),
    "an operand is kept in the dtype in which the operands meet, which is a copy": (
        lambda trial, step, error: trial.mixes_dtypes() and "modified by an inplace" in str(error)
    ),
    "PyTorch keeps more than the gradient needs": (
        lambda trial, step, error: trial.runs(KEEP_LESS) and "modified by an inplace" in str(error)
    ),
}


def judge(program: Program, counts: Counter[str]) -> None:
    """Run a program on all sides and raise `Disagreement` where two of them differ.

    `counts` learns what happened.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        _Trial(program, counts).run()


class _Trial:
    def __init__(self, program: Program, counts: Counter[str]) -> None:
        self.program = program
        self.counts = counts
        self.ours = EagerRun(flow, program)
        self.copying = CopyingRun(program)
        self.theirs = None if torch is None else EagerRun(torch, program)
        self.copies_all = True  # hooks that change gradients are no part of the copying run
        self.overlapped = False  # whether a write read what it wrote
        self.kinds: dict[int, str] = {}  # by tensor: the kind of step that made it
        self.frozen_views = False  # whether views were made under no_grad

    def run(self) -> None:
        self.counts["programs"] += 1
        for step in self.program.steps:
            if any(a not in self.ours.tensors for a in step.args if isinstance(a, Ref)):
                continue  # what made it raised on both sides
            if not self.step(step):
                return
        self.compare_values()
        self.compare_gradients_kept()
        if not self.small:
            self.counts["numbers too large"] += 1
            return
        differentiable = self.compare_derivatives()
        if differentiable:
            self.compare_final_backward(differentiable)

    def step(self, step: Step) -> bool:
        """Run one step on all sides; return whether the program can go on."""
        ours, theirs = self.both(lambda run: run.step(step))
        if isinstance(ours, Exception):
            return self.raised(step, ours, theirs)
        if isinstance(theirs, Exception):
            self.raised_there(step, theirs)
        self.copying.step(step)
        if step.kind in ("write", "setitem"):
            self.count_write(step.args[0])
            self.look_for_overlap(step)
        self.copies_all = self.copies_all and step.name != "scaling_hook"
        self.frozen_views = self.frozen_views or (step.no_grad and step.kind in ("view", "views"))
        self.counts[f"{step.kind} steps"] += 1
        self.kinds.update((int(i), step.kind) for i in step.made)
        if self.theirs is not None and self.ours.copied != self.theirs.copied:
            self.theirs = None
            self.counts["a result lies in memory in another order"] += 1
        self.compare_facts(step)
        return True

    def both(self, action: Callable[[EagerRun], Any]) -> tuple[Any, Any]:
        """Return what an action on ours and on theirs gave, an exception among it."""
        found = []
        for run in (self.ours, self.theirs):
            try:
                found.append(None if run is None else action(run))
            except (FlowError, RuntimeError, IndexError, ValueError, TypeError) as error:
                if run is self.ours and not isinstance(error, FlowError):
                    raise
                found.append(error)
        return found[0], found[1]

    def raised(self, step: Step | None, ours: Exception, theirs: Any) -> bool:
        kind = type(ours).__name__
        if isinstance(theirs, Exception) or self.theirs is None:
            sides = "both raised" if self.theirs is not None else "only one side, raised"
            self.counts[f"{sides}: {kind}"] += 1
            if step is not None:
                self.compare_facts(step)
                if step.name.startswith("backward"):
                    self.copying.clear_gradients()
                if step.name == "backward_and_free":
                    self.theirs = None  # PyTorch has released a part, ours nothing
            return True
        for reason, applies in STRICTER.items():
            if applies(self, step, ours):
                self.counts[f"stricter: {reason}"] += 1
                return False
        raise Disagreement(f"{step}: oneflow_lite raises, PyTorch does not: {kind}: {ours}")

    def look_for_overlap(self, step: Step) -> None:
        """Note that a write read the memory that it wrote."""
        target, *others = (self.copying.tensors[a] for a in step.args if isinstance(a, Ref))
        for x in others:
            if x.base.memory is target.base.memory:
                self.overlapped = True
                same = x.base is target.base and np.array_equal(x.positions, target.positions)
                if not same or step.name not in words.WRITES_BINARY:
                    self.theirs = None  # PyTorch may have read what it had written before
                    self.counts["looser: an operand overlaps what is written"] += 1

    def count_write(self, target: int) -> None:
        facts = self.ours.facts(target)
        history = "with history" if facts["requires_grad"] and not facts["is_leaf"] else "constant"
        self.counts[f"writes, {'view' if facts['is_view'] else 'base'}, {history}"] += 1

    def raised_there(self, step: Step | None, theirs: Exception) -> None:
        """Go on without PyTorch where it is documented that only PyTorch raises."""
        for reason, applies in LOOSER.items():
            if applies(self, step, theirs):
                self.counts[f"looser: {reason}"] += 1
                self.theirs = None
                return
        raise Disagreement(f"{step}: PyTorch raises, oneflow_lite does not: {theirs}")

    def runs(self, names: Set[str]) -> bool:
        """Return whether the program has a step of one of these names."""
        return any(step.name in names for step in self.program.steps)

    def mixes_dtypes(self) -> bool:
        """Return whether the program begins with real and complex tensors."""
        return len({leaf.is_complex for leaf in self.program.leaves}) == 2

    def compare_facts(self, step: Step) -> None:
        if self.theirs is None:
            return
        for i in self.ours.tensors:
            ours, theirs = self.ours.facts(i), self.theirs.facts(i)
            if self.frozen_views and theirs["requires_grad"]:
                # In PyTorch they say that they require a gradient, which they never receive.
                ours |= {fact: theirs[fact] for fact in ("requires_grad", "is_leaf")}
            if self.kinds.get(i) == "op":
                ours["is_view"] = theirs["is_view"]  # some ops return a view of their own result
            if theirs["is_leaf"] is None:  # a view that cannot be used any more
                ours |= {fact: theirs[fact] for fact in ("requires_grad", "is_leaf")}
            if ours != theirs:
                raise Disagreement(f"after {step}: t{i}: ours {ours}, PyTorch's {theirs}")

    # The end

    def compare_values(self) -> None:
        self.small = True
        for i in self.ours.tensors:
            content = self.ours.content(i)
            self.close(f"value of t{i}", content, "the copying run", self.copying.content(i))
            if self.theirs is not None:
                self.close(f"value of t{i}", content, "PyTorch", self.theirs.content(i))
            self.small = self.small and bool(np.all(np.abs(content) < LARGEST))

    def compare_derivatives(self) -> list[int]:
        """Compare the derivatives of each tensor; return those whose derivatives exist."""
        leaves = [i for i in self.copying.leaves if self.ours.is_leaf(i)]
        differentiable = []
        reached = 0
        for i in self.ours.tensors:
            ours, theirs = self.both(lambda run, i=i: run.gradients(i, leaves))
            plain, _ = self.both(lambda run, i=i: run.plain_gradients(i, leaves))
            if isinstance(ours, Exception):
                if not self.raised(None, ours, theirs):
                    return []
                continue
            if isinstance(theirs, Exception):
                self.raised_there(None, theirs)
            if isinstance(plain, Exception):
                raise Disagreement(f"gradient of t{i}: raises only unrecorded: {plain}")
            self.compare_orders(i, leaves, ours, "the unrecorded pass", [plain], 1)
            if self.copies_all:
                wanted = self.copying.gradients(i, leaves)
                self.compare_orders(i, leaves, ours, "the copying run", wanted, 2)
            if self.theirs is not None:
                self.compare_orders(i, leaves, ours, "PyTorch", theirs, 2)
            if ours:
                differentiable.append(i)
                reached = max(reached, len(ours))
        self.counts[f"compared to order {reached}"] += 1
        return differentiable

    def compare_orders(
        self, i: int, leaves: list[int], ours: Any, side: str, wanted: Any, orders: int
    ) -> None:
        for order in range(orders):
            for k, leaf in enumerate(leaves):
                a = ours[order][k] if order < len(ours) else None
                b = wanted[order][k] if order < len(wanted) and wanted[order] else None
                what = f"derivative {order + 1} of t{i} by t{leaf}"
                self.close(what, _zeros_for(a, b), side, _zeros_for(b, a))

    def compare_final_backward(self, differentiable: list[int]) -> None:
        """Compare what one backward pass from all tensors leaves in `.grad` and tells hooks."""
        ours, theirs = self.both(lambda run: run.backward_from(differentiable))
        if isinstance(ours, Exception):
            self.raised(None, ours, theirs)
            return
        if isinstance(theirs, Exception):
            self.raised_there(None, theirs)
        self.copying.backward_from(differentiable)
        self.compare_gradients_kept()

    def compare_gradients_kept(self) -> None:
        """Compare `.grad` of all tensors, and what hooks saw."""
        for i in self.ours.tensors:
            kept = self.ours.accumulated(i)
            if i in self.copying.leaves and self.copies_all:
                wanted = self.copying.accumulated(i)
                a, b = _zeros_for(kept, wanted), _zeros_for(wanted, kept)
                self.close(f".grad of t{i}", a, "the copying run", b)
            if self.theirs is not None:
                self.same_gradient(f".grad of t{i}", kept, "PyTorch", self.theirs.accumulated(i))
        if self.theirs is None:
            return
        for k, (ours, theirs) in enumerate(zip(self.ours.seen, self.theirs.seen, strict=True)):
            x, version = self.ours.hooked[k]
            if x.is_view() and x._version != version:
                continue  # PyTorch forgets what a view was before it was written
            if len(ours) != len(theirs):
                raise Disagreement(f"hook {k} ran {len(ours)} times, in PyTorch {len(theirs)}")
            for a, b in zip(ours, theirs, strict=True):
                self.same_gradient(f"what hook {k} saw", a, "PyTorch", b)

    def same_gradient(self, what: str, a: Any, side: str, b: Any) -> None:
        if (a is None) != (b is None):
            raise Disagreement(f"{what}: ours {a}, of {side} {b}")
        if a is not None:
            self.close(what, a, side, b)

    def close(self, what: str, a: Any, side: str, b: Any) -> None:
        if a is None and b is None:
            return
        if a.shape != b.shape or a.dtype != b.dtype:
            raise Disagreement(f"{what}: ours {a.dtype} {a.shape}, of {side} {b.dtype} {b.shape}")
        if not a.size:
            return
        scale = max(1.0, float(np.nanmax(np.abs(b), initial=0.0)))
        if not np.allclose(a / scale, b / scale, rtol=RTOL, atol=RTOL, equal_nan=True):
            raise Disagreement(f"{what}: ours\n{a}\nof {side}\n{b}")


def _zeros_for(a: Any, b: Any) -> Any:
    """Return `a`; where there is no path a derivative is zero, whichever side says so."""
    return np.zeros_like(b) if a is None and b is not None else a
