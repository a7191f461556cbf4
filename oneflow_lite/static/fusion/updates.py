"""Optimizer updates as loops, read off their kernels.

The kernel of an update runs once on operands that note down each operation. Numbers are noted in
float64, as in Python, and one element of each array in the dtype of the arrays. So the kernel stays
the only place where an update is written, and the loop has its very bits.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.static.ir.program import Block, OpDesc

_FLOATS = ("float32", "float64")


@attrs.frozen
class Update:
    """The description of one kind of update.

    Attributes
    ----------
    name : str
        The op.
    arrays, numbers : tuple of int
        Which inputs are arrays of the parameter's size, and which are one number.
    dtype : str
        Of the arrays.
    kept : int
        How many numbers its loop uses.
    source : str
        Of the functions NAME_numbers(*addresses), which writes those numbers that change and
        returns what is used of them, and NAME_elements(begin, end, found, *addresses). An address
        is an integer.
    """

    name: str
    arrays: tuple[int, ...]
    numbers: tuple[int, ...]
    dtype: str
    kept: int
    source: str


def update_of(op: OpDesc, block: Block) -> Update | None:
    """Return the Update that an op does; None unless it is an update with a loop."""
    if not is_update(op):
        return None
    count = _arrays_of(op)
    given = [None if name is None else block.var(name) for name in op.inputs]
    arrays = [desc for desc in given[:count] if desc is not None]
    dtype = str(arrays[0].dtype)
    if dtype not in _FLOATS or any(
        [d.dtype != dtype or d.shape != arrays[0].shape for d in arrays]
    ):
        return None
    numbers = [desc for desc in given[count:] if desc is not None]
    if any([desc.shape or str(desc.dtype) not in _FLOATS for desc in numbers]):
        return None
    dtypes = tuple([None if desc is None else str(desc.dtype) for desc in given])
    return _noted(op.type, dtypes, count, tuple(sorted(op.attrs.items())))


def is_update(op: OpDesc) -> bool:
    """Return whether an op writes a parameter by its gradient."""
    return op.schema.inputs[:2] == ("param", "grad")


def _arrays_of(op: OpDesc) -> int:
    """Return how many inputs come before the numbers: the parameter, its gradient, the state."""
    inputs, written = op.schema.inputs, op.schema.written
    numbers = ("step", "mu_product", "eta", "mu")
    return 1 + max([i for i in written if inputs[i] not in numbers], default=1) if written else 0


@functools.cache
def _noted(
    name: str, dtypes: tuple[str | None, ...], count: int, attributes: tuple[tuple[str, Any], ...]
) -> Update | None:
    notes = _NotingModule(str(dtypes[0]))
    given = [
        None if dtype is None else _Noted(notes, i, dtype, is_number=i >= count)
        for i, dtype in enumerate(dtypes)
    ]
    try:
        op_expr(name).kernel(notes)(*given, **dict(attributes))
    except (AttributeError, TypeError):  # it does what no loop over elements does
        return None
    there = [x for x in given if x is not None]
    arrays = tuple([x.position for x in there if not x.is_number])
    numbers = tuple([x.position for x in there if x.is_number])
    source, kept = notes.source(name, there)
    return Update(name, arrays, numbers, notes.dtype, kept, source)


class _Noted:
    """An operand or what was made of some: its text changes when it is written."""

    ndim = size = 1
    __bool__ = None  # what is decided by values cannot be noted

    def __init__(self, notes: _NotingModule, position: int, dtype: str, is_number: bool) -> None:
        self.notes, self.position, self.is_number = notes, position, is_number
        self.dtype = np.dtype(dtype)
        self.text = f"x{position}"
        self.is_written = False

    def __setitem__(self, key: Any, value: Any) -> None:
        self.notes.write(self, value)


def _operator(template: str, swapped: bool = False) -> Callable[[_Noted, Any], _Noted]:
    def method(self: _Noted, other: Any) -> _Noted:
        x, y = (other, self) if swapped else (self, other)
        return self.notes.note(template, x, y)

    return method


for _name, _template in {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "truediv": "{} / {}",
    "pow": "pow({}, {})",
}.items():  # fmt: skip
    setattr(_Noted, f"__{_name}__", _operator(_template))
    setattr(_Noted, f"__r{_name}__", _operator(_template, swapped=True))
for _name, _sign in {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    setattr(_Noted, f"__{_name}__", _operator(f"{{}} {_sign} {{}}"))


class _NotingModule:
    """Stands for the array module, and collects lines."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.numbers: list[str] = []
        self.elements: list[str] = []
        self._names = map("t{}".format, itertools.count())

    def note(self, template: str, *operands: Any, out: _Noted | None = None) -> _Noted:
        """Write down one step."""
        noted = [x for x in (*operands, out) if isinstance(x, _Noted)]
        is_number = all([x.is_number for x in noted])
        if is_number and " / " in template:
            template = "divided({}, {})"  # which raises, as Python's does
        kept = str(out.dtype) if is_number and out is not None else "float64"
        dtype = kept if is_number else self.dtype
        texts = [self._text(x, dtype) for x in operands]
        expression = template.format(*texts)
        if ("<" not in template and ">" not in template) or template.startswith("where"):
            expression = f"{dtype}({expression})"
        if is_number and kept != "float64":
            expression = f"float64({expression})"
        result = _Noted(self, -1, dtype, is_number) if out is None else out
        result.text = next(self._names)
        result.is_written = True
        (self.numbers if is_number else self.elements).append(f"{result.text} = {expression}")
        return result

    def write(self, target: _Noted, value: Any) -> None:
        """Give an operand another value."""
        self.note("{}", value, out=target)

    def _text(self, x: Any, dtype: str) -> str:
        if isinstance(x, _Noted):
            return f"{dtype}({x.text})" if x.is_number and dtype != "float64" else x.text
        return f"{dtype}({float(x)!r})"

    # The functions of the array module that kernels of updates call

    def array(self, x: Any, dtype: Any) -> _Noted:
        """Round a number to the dtype of the arrays."""
        noted = _Noted(self, -1, str(dtype), is_number=True)
        noted.text = next(self._names)
        self.numbers.append(f"{noted.text} = {dtype}({self._text(x, 'float64')})")
        return noted

    def where(self, condition: Any, x: Any, y: Any) -> _Noted:
        """Choose."""
        return self._chosen("where({}, {}, {})", condition, x, y)

    def _chosen(self, template: str, condition: _Noted, *others: Any, out: Any = None) -> _Noted:
        plain = template.replace("{}", condition.text, 1)
        if (
            condition.is_number
            or out is not None
            or any([isinstance(x, _Noted) and not x.is_number for x in others])
        ):
            return self.note(plain, *others, out=out)
        made = _Noted(self, -1, self.dtype, is_number=False)  # of numbers, for each element
        return self.note(plain, *others, out=made)

    def copyto(self, target: _Noted, value: Any, where: _Noted | None = None) -> None:
        """Write over all elements, or over some."""
        if where is None:
            self.write(target, value)
        else:
            self._chosen("where({}, {}, {})", where, value, target, out=target)

    def clip(self, x: Any, low: Any, high: Any, out: _Noted | None = None) -> _Noted:
        """Bring between two bounds."""
        return self.note("minimum(maximum({}, {}), {})", x, low, high, out=out)

    def sign(self, x: Any, out: _Noted | None = None) -> _Noted:
        """Return -1, 0 or 1, and nan for nan."""
        text = "where({0} > 0, 1, where({0} < 0, -1, where({0} == 0, 0, {0})))"
        return self.note(text, x, out=out)

    def source(self, name: str, operands: list[_Noted]) -> tuple[str, int]:
        """Return the two functions, and how many numbers the first returns to the second."""
        numbers = [x for x in operands if x.is_number]
        arrays = [x for x in operands if not x.is_number]
        used = set(re.findall(r"\w+", " ".join(self.elements)))
        made = [line.partition(" = ")[0] for line in self.numbers]
        kept = [x for x in made if x in used]
        found = ", ".join(kept)
        before = [
            "@part",
            f"def {name}_numbers({', '.join(f'p{x.position}' for x in numbers)}):",
            *[f"    a{x.position} = {_reached(x, '1')}" for x in numbers],
            *[f"    x{x.position} = float64(a{x.position}[0])" for x in numbers],
            *[f"    {line}" for line in self.numbers],
            *[f"    a{x.position}[0] = {x.text}" for x in numbers if x.is_written],
            f"    return {found},",
        ]
        loop = [
            "@part",
            f"def {name}_elements(begin, end, found, "
            f"{', '.join(f'p{x.position}' for x in arrays)}):",
            f"    {found}, = found",
            *[f"    a{x.position} = {_reached(x, 'end')}" for x in arrays],
            "    for i in range(uint64(begin), uint64(end)):",
            *[f"        x{x.position} = a{x.position}[i]" for x in arrays],
            *[f"        {line}" for line in self.elements],
            *[f"        a{x.position}[i] = {x.text}" for x in arrays if x.is_written],
        ]
        return "\n".join([*before, "", *loop, ""]), len(kept)


def _reached(x: _Noted, size: str) -> str:
    return f"carray(pointer(p{x.position}), ({size},), {x.dtype})"


for _function, _template in {
    "add": "{} + {}", "subtract": "{} - {}", "multiply": "{} * {}", "divide": "{} / {}",
    "sqrt": "sqrt({})", "negative": "-{}", "maximum": "maximum({}, {})", "abs": "abs({})",
}.items():  # fmt: skip
    setattr(
        _NotingModule,
        _function,
        lambda self, *x, out=None, _t=_template: self.note(_t, *x, out=out),
    )
