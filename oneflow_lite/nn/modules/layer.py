"""The declaration of a module without parameters: its options, and the functor that it calls."""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, dataclass_transform

from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.nn import functional
from oneflow_lite.nn.module import Module
from oneflow_lite.ops.function_writer import FunctionWriter

Kind = TypeVar("Kind", bound=type[Module])


class Field(NamedTuple):
    """An argument of a constructor: its type, how the signature spells it, whether by name only."""

    hint: str
    text: str
    by_name: bool


_fields_of: dict[type, dict[str, Field]] = {}


@dataclass_transform(eq_default=False)
def layer(
    calls: str = "", takes: str = "input", *, also: str = "", shows: str | None = None
) -> Callable[[Kind], Kind]:
    """Declare a module by annotated fields, which come after those of its base.

    The fields are the arguments of the constructor and become attributes, or buffers where the hint
    is a Tensor. `InitVar`, `KW_ONLY` and `__post_init__`, which checks and completes the arguments,
    have the meaning of a dataclass. A method that the class defines itself stays as it is.

    calls: the functor of `nn.functional` that `forward` calls, with the arguments of `forward` and
      then, by their names, the attributes that the fields became.
    takes: the parameters of `forward`; a parameter with a default is handed on by name.
    also: a further attribute that is handed on, `training`.
    shows: the text of the repr, with attributes in braces. By default "name={name}" of each field,
      but of `inplace` only when it is set.

    >>> from oneflow_lite.nn.modules.layer import layer
    >>> @layer("leaky_relu")
    ... class Leaky(flow.nn.Module):
    ...     negative_slope: float = 0.01
    ...     inplace: bool = False
    >>> leaky = Leaky(0.5)
    >>> leaky, leaky(flow.tensor([-1.0, 2.0]))
    (Leaky(negative_slope=0.5), tensor([-0.5000,  2.0000]))
    """
    place = sys._getframe(1)
    scope, file, line = place.f_globals, place.f_code.co_filename, place.f_lineno

    def decorator(cls: Kind) -> Kind:
        fields = _fields_of[cls] = _fields(cls)
        cls.__annotations__ = {}  # of the constructor, and in names of ours
        kept = [name for name, field in fields.items() if not field.hint.startswith("InitVar")]
        lines = {}
        if "__init__" not in vars(cls):
            lines["__init__"] = _constructor(fields, kept, hasattr(cls, "__post_init__"))
        if calls:
            lines["forward"] = _call(calls, takes, [*kept, *also.split()])

        def write() -> dict[str, Any]:
            # The text goes into linecache, where tracebacks and `flow.compile` look for sources.
            methods = [f"def {text}" for text in lines.values()]
            writer, name = FunctionWriter(scope, [*methods, "return locals()"]), f"{file}:{line}"
            made: dict[str, Any] = writer.function("bind(Module, F)", name)(Module, functional)
            linecache.cache[name] = (len(writer.source), None, writer.source.splitlines(True), name)
            for name in lines:
                made[name].__qualname__ = f"{cls.__qualname__}.{name}"
                if name == "__init__":
                    made[name] = guarded(made[name])
                setattr(cls, name, made[name])
            return made

        for name in lines:
            setattr(cls, name, _Unwritten(name, write))
        if shows is not None or cls.extra_repr is Module.extra_repr:
            setattr(cls, "extra_repr", _extra_repr(kept, shows))  # noqa: B010  (mypy)
        return cls

    return decorator


class _Unwritten:
    """A method that is written when it is first looked up, as a program uses few of all modules.

    All methods of a class are written together, when an instance is made: not in the middle of a
    call that `flow.compile` records.
    """

    def __init__(self, name: str, write: Callable[[], dict[str, Any]]) -> None:
        self._name, self._write = name, write

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self._write()[self._name].__get__(instance, owner)


def _fields(cls: type) -> dict[str, Field]:
    """Return the fields of a class, and take their defaults off it."""
    fields = next((dict(_fields_of[base]) for base in cls.__mro__ if base in _fields_of), {})
    by_name = False
    for name, hint in inspect.get_annotations(cls).items():
        if hint == "KW_ONLY":
            by_name = True
        elif not hint.startswith("ClassVar"):
            text = f"{name}: {hint}"
            if name in vars(cls):
                text += f" = {vars(cls)[name]!r}"
                delattr(cls, name)
            fields[name] = Field(hint, text, by_name)
    return fields


def _constructor(fields: dict[str, Field], kept: list[str], completed: bool) -> str:
    listed = ["self", *(field.text for field in fields.values() if not field.by_name)]
    by_name = [field.text for field in fields.values() if field.by_name]
    listed += ["*", *by_name] if by_name else []
    body = ["Module.__init__(self)"]
    for name in kept:
        buffer = fields[name].hint.startswith("Tensor")
        text = "self.register_buffer('{0}', {0})" if buffer else "self.{0} = {0}"
        body.append(text.format(name))
    if completed:
        body.append(f"self.__post_init__({', '.join(name for name in fields if name not in kept)})")
    return f"__init__({', '.join(listed)}) -> None: {'; '.join(body)}"


def _call(calls: str, takes: str, attributes: list[str]) -> str:
    given = []
    for parameter in takes.split(", "):
        name, _, default = parameter.partition("=")
        given.append(f"{name}={name}" if default else name)
    given += [f"{name}=self.{name}" for name in attributes]
    return f"forward(self, {takes}): return F.{calls}({', '.join(given)})"


def _extra_repr(kept: list[str], shows: str | None) -> Callable[[Module], str]:
    text = shows
    if text is None:
        text = ", ".join(f"{name}={{{name}}}" for name in kept if name != "inplace")

    def extra_repr(self: Module) -> str:
        flag = "inplace=True" if shows is None and vars(self).get("inplace") else ""
        return ", ".join(filter(None, (text.format_map(vars(self)), flag)))

    return extra_repr
