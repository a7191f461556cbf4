"""Parameters are PyTorch's: names, places, which are keywords only, and defaults.

Functions written in Python tell their signature. Those written in C++ have schemas, one for each
overload; a parameter is as some overload has it.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import oneflow_lite as flow
from oneflow_lite.arrays.dtype import Number
from oneflow_lite.functors.declaring.declare import DECLARATIONS
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.tensors.tensor import Tensor
from tests.functors.declared import exposures

# Parameters that differ from PyTorch's: (function, parameter) -> why.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("elu_", "scale"): "undocumented",
    ("elu_", "input_scale"): "undocumented",
    ("from_file", "device"): "a file is mapped into the memory of the CPU",
    ("from_file", "shared"): "None means False",
    ("from_dlpack", "device"): "the memory is shared where it is",
    ("from_dlpack", "copy"): "the memory is shared where it is",
    ("uniform_", "from"): "a word of Python",
    ("copy_", "src"): "PyTorch refuses the word",
    ("polygamma", "input"): "first in the method, as documented",
    ("where", "input"): "first in the method, as documented",
    **{(n, "out_dtype"): "of half precision on CUDA" for n in ("mm", "bmm", "addmm", "baddbmm")},
    **{(n, "other"): "a tensor in the place of dim is meant, too" for n in ("max", "min")},
    **{(n, "value"): "a number in the place of src is meant, too" for n in ("scatter", "scatter_")},
    ("norm", "dtype"): "out=, which comes before it, is a keyword only",
    ("gelu", "approximate"): "by its place, too",
    **{("scaled_dot_product_attention", n): "by its place, too" for n in ("scale", "enable_gqa")},
    **{("as_tensor", n): "by its place, too, as documented" for n in ("dtype", "device")},
    ("random_", "from"): "a word of Python",
    ("result_type", "scalar"): "at place 1, too, where a tensor is at place 0",
    **{
        (name, parameter): "of the packed form, which is told by what stands at its place"
        for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")
        for parameter in ("data", "batch_sizes")
    },
}

# What no function has here, whatever PyTorch's take: deprecated, private, or not of this library.
NOWHERE = set(
    "out generator layout pin_memory names memory_format size_average reduce _stacklevel "
    "async non_blocking".split()
)
SCRIPT = {"a", "t", "reverse"}  # in overloads for TorchScript's lists and numbers
_NEEDED = object()


class Parameter(NamedTuple):
    """A parameter of one function or overload."""

    name: str
    place: int | None  # None for one that is a keyword only
    default: Any = _NEEDED


EACH = [pytest.param(*each, id=f"{each[0]}-{each[1]}") for each in exposures()]


@pytest.mark.parametrize("place, name, function", EACH)
def test_parameters_are_those_of_pytorch(place: str, name: str, function: Any) -> None:
    torch = pytest.importorskip("torch")
    wrong = [
        text
        for text in differences(torch, place, name, function)
        if (name, text.partition(":")[0]) not in EXCEPTIONS
    ]
    assert not wrong, "; ".join(wrong)


def test_the_types_of_parameters_can_be_asked() -> None:
    functions = [f for f in map(FUNCTORS.get, FUNCTORS) if isinstance(f, types.FunctionType)]
    own = [f for f in functions if f.__module__.startswith("oneflow_lite.")]
    known = {f.__name__: typing.get_type_hints(f) for f in own}
    assert known["clamp"]["min"] == Tensor | Number | None
    assert known["zeros"]["layout"] == flow.layout | None
    assert len(known) > 700


def test_exceptions_hold() -> None:
    torch = pytest.importorskip("torch")
    found = {
        (name, text.partition(":")[0])
        for place, name, function in exposures()
        for text in differences(torch, place, name, function)
    }
    assert set(EXCEPTIONS) <= found


def differences(torch: Any, place: str, name: str, function: Any) -> Iterator[str]:
    """Yield how our parameters differ from PyTorch's, `parameter: what` each."""
    overloads = theirs(torch, place, name)
    ours = {p.name: p for p in of_function(function)}
    if (declared := function.__name__.removesuffix("_")) in DECLARATIONS:
        spellings = DECLARATIONS.get(declared).spellings
        ours |= {other: ours[name] for other, name in spellings.items()}
    listed = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL and p.name != "more" for p in listed):
        return  # numbers one by one, or a tuple of them
    for wanted in {p.name: p for overload in overloads for p in overload}:
        same = [p for overload in overloads for p in overload if p.name == wanted]
        if wanted in NOWHERE or (place == "Tensor" and same[0].place == 0):
            continue
        if wanted not in ours:
            yield f"{wanted}: missing, has {', '.join(ours)}"
            continue
        mine = ours[wanted]
        if mine.place not in (places := {p.place for p in same}):
            yield f"{wanted}: {_where(mine.place)}, PyTorch: {' or '.join(map(_where, places))}"
        defaults = [_plain(p.default) for p in same if p.default is not _NEEDED]
        # What PyTorch needs may have a default here; None stands for an overload without it.
        free = mine.default is None and any(wanted not in {p.name for p in o} for o in overloads)
        if defaults and not free and wanted != "dtype" and _plain(mine.default) not in defaults:
            shown = "needed" if mine.default is _NEEDED else f"default {mine.default!r}"
            yield f"{wanted}: {shown}, PyTorch: default {' or '.join(map(repr, defaults))}"


def _where(place: int | None) -> str:
    return "keyword only" if place is None else f"at place {place}"


def _plain(default: Any) -> Any:
    """Return a default in a form in which the spellings of one thing are equal."""
    if isinstance(default, (list, tuple)):
        if not default:
            return None
        return default[0] if all(d == default[0] for d in default) else tuple(default)
    return default


def of_function(function: Any) -> list[Parameter]:
    """Return the parameters of a function written in Python."""
    found = []
    listed = inspect.signature(function).parameters.values()
    for place, p in enumerate(p for p in listed if p.name != "_stacklevel"):
        default = _NEEDED if p.default is p.empty else p.default
        found.append(Parameter(p.name, None if p.kind is p.KEYWORD_ONLY else place, default))
    return found


def theirs(torch: Any, place: str, name: str) -> list[list[Parameter]]:
    """Return the parameters of PyTorch's function, for each overload."""
    root = {"flow": torch, "functional": torch.nn.functional, "Tensor": torch.Tensor}.get(place)
    function = getattr(root or getattr(torch, place), name, None)
    if not callable(function) or isinstance(function, type):
        return []
    wrapped = inspect.unwrap(function)
    if isinstance(function, types.FunctionType) and isinstance(wrapped, types.FunctionType):
        dispatched = torch._jit_internal.boolean_dispatched.get(function)
        overload = of_function(dispatched["if_false"] if dispatched else function)
        if any(p.name in ("args", "kwargs") for p in overload):
            return []
        return [_renamed(overload)]
    prefix = f"{place}_" if place in ("linalg", "special", "fft") else ""
    return _overloads(torch, f"{prefix}{name}") or _overloads(torch, f"{prefix}{name.rstrip('_')}")


@functools.cache
def _overloads(torch: Any, name: str) -> list[list[Parameter]]:
    found = []
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        kinds = [str(a.type) for a in schema.arguments]
        if not any("Tensor" in kind for kind in [*kinds, *(str(r.type) for r in schema.returns)]):
            continue  # of TorchScript: numbers, lists and texts
        if any(a.is_out or a.name in SCRIPT for a in schema.arguments):
            continue
        if "Dimname" in str(schema):
            continue
        found.append(
            _renamed(
                [
                    Parameter(
                        a.name,
                        None if a.kwarg_only else place,
                        a.default_value if a.has_default_value() else _NEEDED,
                    )
                    for place, a in enumerate(schema.arguments)
                ]
            )
        )
    return found


def _renamed(overload: list[Parameter]) -> list[Parameter]:
    return [p._replace(name="input") if p.name == "self" else p for p in overload]
