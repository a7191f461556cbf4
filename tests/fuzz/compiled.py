"""Random programs compiled by `flow.compile` against the same programs run as they are."""

from __future__ import annotations

import functools
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite.compiler.function import CompiledFunction
from tests.compiler.capture.worlds import plain, run as run_case
from tests.fuzz import seeds
from tests.fuzz.compiled_calls import HOW
from tests.fuzz.compiled_programs import write
from tests.fuzz.compiled_world import STAYING, Refused
from tests.fuzz.compiled_writer import PRELUDE
from tests.fuzz.seeds import Difference
from tests.judge import judge as judging
from tests.texts import named

NEAR, NEAR_SINGLE = 1e-13, 1e-5  # of the largest element
CHOICE = "static.nn."  # cond, while_loop
READS_GRADIENTS = re.compile(r"\.grad( \*|$)", re.MULTILINE)
# The kinds of programs that are counted, by what stands in their text.
KINDS = {
    "complex numbers": r"complex128",
    "hooks": r"_hook\(",
    "a compiled module": r"nn\.Module\)",
    "cond": r"nn\.cond",
    "while_loop": r"nn\.while_loop",
    "training steps": r"opt\.step\(\)",
    "schedulers": r"sched\.step\(\)",
    "gradient clipping": r"clip_grad_",
}


def case_of(source: str) -> Any:
    """Return the program of a text, in a namespace of its own."""
    namespace = dict(PRELUDE, __name__="tests.fuzz.a_program")
    exec(compile(source, named(source), "exec"), namespace)
    return namespace["program"]


def seen_of(case: Any, compiler: Any) -> Iterator[Any]:
    """Go through what a program shows, and at last the exception that ends it before its end."""
    try:
        yield from run_case(case, compiler)
    except Refused:
        raise
    except Exception as error:  # as of a view that cannot be shown any more
        yield ["raised", type(error).__name__]


def judge(source: str, counts: Counter[str]) -> list[str]:
    """Run a program in both worlds; return why calls fell back to running eagerly.

    `counts` learns what happened. The judge looks at every replay besides.

    Raises
    ------
    Difference
    """
    compiled: list[Any] = []  # of several, the last one is the program's function

    def compiler(function: Any) -> Any:
        compiled.append(flow.compile(function))
        return compiled[-1]

    chooses = CHOICE in source
    with warnings.catch_warnings(), np.errstate(all="ignore"), judging(raises=False) as judged:
        warnings.simplefilter("ignore")
        expected = list(seen_of(case_of(source), plain))
        found = seen_of(case_of(source), compiler)
        counts["programs"] += 1
        counts.update(
            f"programs with {kind}" for kind, mark in KINDS.items() if re.search(mark, source)
        )
        try:
            for i, (want, have) in enumerate(zip(expected, found, strict=True)):
                difference = compare(have, want, source, in_stages(compiled))
                reason = difference and (
                    raised_by_one(have, want, chooses)
                    or owed_to_control_flow(have, want, source, difference)
                    or raised_by_both(want, difference)
                )
                if reason:
                    counts[f"programs that ended: {reason}"] += 1
                    break
                if difference:
                    raise Difference(f"what was seen at yield {i}: {difference}")
                counts["times compared"] += 1
        except Refused:
            counts["programs that ended: a second derivative was refused"] += 1
    if judged.verdicts:
        raise Difference(judged.verdicts[0])
    told = compiled[-1].explain()
    counts["calls recorded"] += told.captures
    counts["calls replayed"] += told.hits
    counts["calls run eagerly"] += told.fallbacks
    counts["programs without fallback"] += not told.fallbacks
    counts["programs with a replay"] += bool(told.hits)
    return told.reasons if told.fallbacks else []


def in_stages(compiled: list[Any]) -> bool:
    """Return whether results were made from others, and so have nodes one above the other."""
    owners = [f.explain.__self__ for f in compiled]  # a compiled module has one, too
    functions = [owner for owner in owners if isinstance(owner, CompiledFunction)]
    recordings = [recording for f in functions for recording in f._recordings]
    return any(len(recording.ending.functions) > 1 for recording in recordings)


def compare(have: Any, want: Any, source: str, staged: bool = False) -> str | None:
    """Say where two snapshots of a program differ; None when they do not.

    Values agree bit for bit, but for sums over gradients of several calls, through two orders, or
    of what an output shares with the outside: a compiled function is one node, so they are taken
    in another order, as are all gradients where results have nodes one above the other (`staged`).
    The strides of gradients are nobody's business, nor those of what a program makes of them. One
    that chooses by `cond` or `while_loop` gets contiguous results of it, and one gradient, so
    later sums run in another order.
    """
    if have == want:
        return None
    way, chooses = way_of(want), CHOICE in source
    exact = not chooses and (way is None or (way in STAYING and not staged))
    layout = way is None and not chooses and not READS_GRADIENTS.search(source)
    near = NEAR_SINGLE if "float32" in source else NEAR  # doubles may have been rounded
    values = 0.0 if exact else near
    return _difference(have, want, layout, values, near if staged else values, "")


def way_of(seen: Any) -> str | None:
    """Return how the derivatives of a snapshot were taken; None when it shows none."""
    way = seen[1] if type(seen) is list and len(seen) == 3 else None
    return way[1][1:-1] if type(way) is tuple and way[1][1:-1] in HOW else None


def owed_to_control_flow(have: Any, want: Any, source: str, difference: str) -> str | None:
    """Return why recorded control flow did something else than the eager one, if it is known."""
    if CHOICE in source and "_hook(" in source and way_of(want) == "second":
        return "hooks in second derivatives of control flow"
    if CHOICE in source and "reshape" in source and difference.endswith("gave True, eager False"):
        return "a reshape of the contiguous result of control flow is a view"
    raised = ("ShapeError", "DTypeError")
    if "while_loop" in source and any(e in str(have) for e in raised):
        return "a loop would have changed the shape or dtype of a variable"
    if CHOICE in source and "ShapeError" in str(want) and "ShapeError" not in str(have):
        return "a view fits the contiguous result of control flow alone"
    return None


def raised_by_both(want: Any, difference: str) -> str | None:
    """Return why a version differs after a call that raised, with all its writes counted."""
    if "'raised'" in str(want) and re.search(r"compiled gave \d+, eager \d+$", difference):
        return "a replay that raised counts all its writes"
    return None


def raised_by_one(have: Any, want: Any, chooses: bool) -> str | None:
    """Return the reason why only one side raised where derivatives were taken, if it is known.

    A compiled function's saved tensors are released, and watched, as a whole; and a recorded `cond`
    takes the gradient of its branches as they were.
    """
    if way_of(want) is None:
        return None
    compiled, eager = (str(seen[2]) if "'raised'" in str(seen[2]) else "" for seen in (have, want))
    if "FreedGraphError" in compiled and "FreedGraphError" not in eager:
        return "the compiled function's node had been released"
    if "StaleTensorError" in compiled and not eager:
        return "what other gradients of the call need was written"
    if "StaleTensorError" in eager and not compiled and chooses:
        return "cond had kept what was written"
    return None


def _difference(
    have: Any, want: Any, layout: bool, values: float, gradients: float, place: str
) -> str | None:
    """Say where two snapshots differ by more than `values` and `gradients` may, 0 being bits."""
    if type(have) is type(want) is dict and list(have) == list(want):
        have, want = list(have.values()), list(want.values())
    if type(have) is type(want) in (list, tuple) and len(have) == len(want):
        tensor = len(want) == 7 and type(want[3]) is bytes
        for i, (a, b) in enumerate(zip(have, want, strict=True)):
            if a == b:
                continue
            if tensor and i == 2 and (not layout or _lie_alike(want[1], a, b)):
                continue
            if tensor and i == 3 and values and _are_near(a, b, want[0], values):
                continue
            is_gradient = tensor and i == 6
            deeper = (layout and not is_gradient, gradients if is_gradient else values, gradients)
            found = _difference(a, b, *deeper, f"{place}[{i}]")
            if found is not None:
                return found
        return None
    if have == want:
        return None
    if type(have) is type(want) is bytes and len(have) == len(want) and not len(have) % 8:
        have, want = (np.frombuffer(b).tolist() for b in (have, want))
    return f"at {place or 'the top'} compiled gave {have}, eager {want}"


def _lie_alike(shape: Any, have: Any, want: Any) -> bool:
    """Return whether strides differ at most where they say nothing."""
    if 0 in shape:
        return True
    return all(n == 1 or a == b for n, a, b in zip(shape, have, want, strict=True))


def _are_near(have: bytes, want: bytes, dtype: str, near: float) -> bool:
    if len(have) != len(want):
        return False
    x, y = np.frombuffer(have, dtype), np.frombuffer(want, dtype)
    if y.dtype.kind not in "fc":
        return False
    scale = near if y.dtype in (np.float64, np.complex128) else NEAR_SINGLE
    scale *= max(1.0, float(np.nanmax(np.abs(y), initial=0.0)))
    return np.allclose(x, y, rtol=0, atol=scale, equal_nan=True)


attempt = functools.partial(seeds.attempt, write=write, run=judge)


def shares(
    counts: Counter[str], least_replayed: float = 0.7, most_ended: float = 0.05
) -> list[str]:
    """Say which kinds of programs are more, or fewer, than they should be."""
    total = counts["programs"]
    ended = sum(number for what, number in counts.items() if "ended" in what)
    found = []
    if counts["programs without fallback"] < 0.9 * total:
        found.append("in more than a tenth of the programs calls fell back to running eagerly")
    if counts["programs with a replay"] < least_replayed * total:
        found.append("in too few programs calls were replayed")
    if ended > most_ended * total:
        found.append("too many programs ended before their end")
    return found
