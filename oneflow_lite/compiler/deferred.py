"""Numbers that a call hands on without looking at them: every replay makes them anew.

Each begins as the number read from a tensor, as a number that calls write outside, or as one among
the arguments. The results of pure functions of such numbers are deferred as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from oneflow_lite.compiler.same import told

NUMBERS = {int, float, np.float64, np.float32, np.int64}
PURE = {min, max, abs, round, float, int, pow, *[f for f in vars(math).values() if callable(f)]}
_SAFE = {"({} + {})", "({} - {})", "({} * {})", "(-{})", "(+{})", abs, float}
_DIVISIONS = {"({} / {})", "({} // {})", "({} % {})"}


@attrs.frozen(eq=False)
class Deferred:
    """A value, and the code that makes it of its parts.

    The parts are tensors, other deferred values and constants. Without code, they are a place that
    is read before a replay leaves anything: holder, kind and key; of an argument its expression is
    the key. `read` is how the first of its tensors is read, and that tensor. Without one,
    `expression` is its code in the guards. `label` is as users would write it.
    """

    value: Any
    code: str
    parts: Sequence[Any]
    expression: str = ""
    label: str = ""
    read: Any = None


class Symbol(int):
    """A deferred int. Nothing but this is told from other ints, some of which are one object."""

    of: Deferred

    def __new__(cls, of: Deferred) -> Symbol:
        made = super().__new__(cls, of.value)
        made.of = of
        return made


def fresh(value: Any) -> Any:
    """Return a float that is no other object; other numbers as they are."""
    made = math.copysign(value, value) if isinstance(value, float) else value
    return np.float64(made) if type(value) is np.float64 else made


def computed(
    function: Any, code: str, operands: Sequence[Any], constant: Callable[[Any], str]
) -> tuple[Deferred, str] | None:
    """Apply a pure function to numbers; return the result, and a condition for other numbers.

    None where values have to be seen: the result is no number, or an operation might raise, or
    give another type. `code` is how the result is written, "" for a call.
    """
    numbers = [x.value if type(x) is Deferred else x for x in operands]
    kinds = set(map(type, numbers))
    if not kinds.issubset(NUMBERS):
        return None
    try:
        value = fresh(function(*numbers))
    except Exception:  # which the call will meet
        return None
    how, parts = code or function, [*operands] if code else [function, *operands]
    code = code or f"{{}}({', '.join(['{}'] * len(operands))})"
    labels = [getattr(x, "label", None) or getattr(x, "__name__", None) or told(x) for x in parts]
    label = code.format(*labels)
    reads = [x.read for x in operands if type(x) is Deferred and x.read]
    spelled = [x.expression if type(x) is Deferred else constant(x) for x in parts]
    expression, last = "" if reads else code.format(*spelled), operands[-1]
    # What a loop makes may be long; Python reads no more than 200 brackets within each other.
    if code in ("({} is {})", "({} is not {})") or max(len(label), len(expression)) > 300:
        return None
    if how in _SAFE or (how in (min, max) and len(kinds) == 1):
        condition = ""
    elif how in _DIVISIONS:
        condition = f"{spelled[-1]} != 0" if type(last) is Deferred else ""
    elif how is round and len(operands) == 2 and type(last) is int and last >= 0:
        condition = ""
    elif type(value) is bool:
        condition = f"{expression} is {value}"
    else:
        condition = f"type({expression}) is {constant(type(value))}"
    unknown = reads and condition and (how not in _DIVISIONS or last.read)
    if unknown or type(value) not in (bool, int, float, np.float64):
        return None
    return Deferred(value, code, parts, expression, label, next(iter(reads), None)), condition
