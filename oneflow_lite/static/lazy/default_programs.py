"""The programs that ops are captured in: `program_guard` and the default pair."""

from __future__ import annotations

import sys
from typing import Any

from oneflow_lite.errors import CaptureError
from oneflow_lite.interpreter.stack import AutogradInterpreter
from oneflow_lite.static.ir.program import Program, check_program
from oneflow_lite.static.lazy.lazy_interpreter import LazyInterpreter
from oneflow_lite.tensors.mode import StateChange, local

_defaults = [Program(), Program()]


def default_main_program() -> Program:
    """Return the program that is being captured; outside `program_guard` the default one."""
    lazy = find_lazy_interpreter()
    return _defaults[0] if lazy is None else lazy.main


def default_startup_program() -> Program:
    """Return the startup program in use; outside `program_guard` the default one."""
    lazy = find_lazy_interpreter()
    return _defaults[1] if lazy is None else lazy.startup


class program_guard:
    """Capture the ops of a `with` block in a program instead of running them.

    Parameters
    ----------
    main_program : Program
        Where the ops of every run go.
    startup_program : Program, optional
        Where ops go that give parameters, buffers and optimizer state their first values; by
        default `default_startup_program()`.

    Raises
    ------
    ArgumentTypeError
        When one is no Program.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> main, startup = flow.static.Program(), flow.static.Program()
    >>> with flow.static.program_guard(main, startup):
    ...     x = flow.static.data("x", [4, 2])
    ...     y = flow.nn.Linear(2, 3)(x)
    >>> y.shape, [op.type for op in startup.global_block().ops]
    ((4, 3), ['fill_constant', 'uniform_', 'fill_constant', 'uniform_'])
    """

    def __init__(self, main_program: Program, startup_program: Program | None = None) -> None:
        if startup_program is None:
            startup_program = default_startup_program()
        check_program("program_guard", "main_program", main_program)
        check_program("program_guard", "startup_program", startup_program)
        self._programs = (main_program, startup_program)
        self._changes: list[StateChange] = []

    def __enter__(self) -> None:
        lazy = LazyInterpreter(*self._programs, outermost=sys._getframe(1))
        change = StateChange(interpreter=AutogradInterpreter(lazy))
        change.__enter__()
        self._changes.append(change)

    def __exit__(self, *exc_info: object) -> None:
        self._changes.pop().__exit__(*exc_info)


def find_lazy_interpreter() -> LazyInterpreter | None:
    """Return the LazyInterpreter that captures on this thread; None where none does."""
    interpreter: Any = local.state.interpreter
    while interpreter is not None and not isinstance(interpreter, LazyInterpreter):
        interpreter = interpreter.inner
    return interpreter


def lazy_interpreter(op: str) -> LazyInterpreter:
    """Return the LazyInterpreter that captures on this thread.

    Raises
    ------
    CaptureError
        Outside `program_guard`.
    """
    interpreter = find_lazy_interpreter()
    if interpreter is None:
        raise CaptureError(
            f"{op}(): no Program is being captured; call it inside "
            "'with flow.static.program_guard(main, startup):'"
        )
    return interpreter
