"""The subjects of `explore` besides tensors: Programs and compiled functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.explore.compiled import is_compiled
from oneflow_lite.explore.programs import Part, program_part
from oneflow_lite.static.ir.program import Program


@attrs.frozen
class ShownProgram:
    """A Program, described before the exploration watches."""

    part: Part
    title: str = "Program"

    def show(self, watches: Mapping[str, Any]) -> None:
        """Hand the Program to the maker of its part of the document."""
        watches["programs"].show(self.part)


@attrs.frozen
class ShownFunction:
    """A compiled function, and arguments to call it with, if any."""

    function: Any
    args: tuple[Any, ...]
    title: str = "Compiled function"

    def show(self, watches: Mapping[str, Any]) -> None:
        """Hand the function to the maker of its part, and call it once if there are arguments."""
        watches["compiled"].show(self.function)
        if self.args:
            self.function(*self.args)


def subject_of(
    value: Any, args: tuple[Any, ...], of_program: dict[str, Any], values: bool
) -> ShownProgram | ShownFunction | None:
    """Return the subject for a Program or compiled function; None for any other object.

    Raises
    ------
    ArgumentError
        For arguments of another subject.
    """
    given = [name for name, option in of_program.items() if option not in (None, False)]
    if isinstance(value, Program):
        if args:
            raise _unused_error("args", f"{len(args)} arguments", "name them: feed, fetch_list")
        return ShownProgram(program_part(value, values=values, **of_program))
    if is_compiled(value):
        if given:
            raise _unused_error(given[0], "a value", "pass arguments by their positions")
        return ShownFunction(value, args)
    return None


def _unused_error(name: str, got: str, hint: str) -> Exception:
    return arg_error("explore", name, "nothing here", got, hint, ArgumentError)
