"""The passes, which change an ExecutionPlan before it is analysed and run.

Each is a function of one plan, in a file of its name, and says how often it fired. None of them
but `fusion` and `joining` changes the arithmetic or its order, so results stay the same to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.static.runtime.passes import (
    addto,
    buffer_planning,
    common_subexpressions,
    constant_folding,
    dead_code,
    fusion,
    inplace,
    joining,
    placing,
)
from oneflow_lite.static.runtime.passes.plannable import plannable
from oneflow_lite.static.runtime.plan import ExecutionPlan, PassReport

__all__ = ["BUILDING", "DEFAULT_PASSES", "PASSES", "plannable", "run_passes"]

PASSES: dict[str, Callable[[ExecutionPlan], PassReport]] = {
    "dead_code": dead_code.run,
    "constant_folding": constant_folding.run,
    "common_subexpressions": common_subexpressions.run,
    "placing": placing.run,
    "fusion": fusion.run,
    "addto": addto.run,
    "inplace": inplace.run,
    "buffer_planning": buffer_planning.run,
    "joining": joining.run,
}
# Those that build machine code, which takes over later, see `runtime/takeover.py`.
BUILDING = ("fusion", "joining")
DEFAULT_PASSES: tuple[str, ...] = tuple(name for name in PASSES if name not in BUILDING)


def run_passes(plan: ExecutionPlan, names: Sequence[str] | None = None) -> None:
    """Run passes over a plan, in their own order, and keep their reports in it.

    Parameters
    ----------
    plan : ExecutionPlan
        Changed in place.
    names : sequence of str or None
        The names of the passes, from `PASSES`; None means all but `BUILDING`.

    Raises
    ------
    ArgumentError
        For a name that is no pass.

    Examples
    --------
    >>> from oneflow_lite.static.runtime.passes import PASSES, run_passes
    >>> from oneflow_lite.static.runtime.plan import ExecutionPlan
    >>> from oneflow_lite.static.ir.program import Program
    >>> plan = ExecutionPlan.of(Program(), feeds=(), fetches=())
    >>> run_passes(plan, ["buffer_planning", "dead_code"])
    >>> [(report.name, report.fired) for report in plan.reports]
    [('dead_code', 0), ('buffer_planning', 0)]
    """
    wanted = set(DEFAULT_PASSES if names is None else names)
    if unknown := sorted(wanted - set(PASSES)):
        raise arg_error(
            "run_passes",
            "names",
            expected=f"passes among {', '.join(PASSES)}",
            got=", ".join(map(repr, unknown)),
            hint="leave the others out",
            kind=ArgumentError,
        )
    plan.reports += [run(plan) for name, run in PASSES.items() if name in wanted]
