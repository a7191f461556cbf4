"""The passes, which change an ExecutionPlan before it is analysed and run.

Each is a function of one plan, in a file of its name, and says how often it fired. None of them
but `vocabularies`, `fusion` and `joining` changes the arithmetic or its order, so results stay the
same to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.static.runtime.passes.addto import add_in_place
from oneflow_lite.static.runtime.passes.buffer_planning import plan_buffers
from oneflow_lite.static.runtime.passes.common_subexpressions import merge_equal_ops
from oneflow_lite.static.runtime.passes.constant_folding import fold_constants
from oneflow_lite.static.runtime.passes.dead_code import remove_dead_code
from oneflow_lite.static.runtime.passes.grouping import fuse_groups
from oneflow_lite.static.runtime.passes.inplace import write_in_place
from oneflow_lite.static.runtime.passes.joining import join_neighbours
from oneflow_lite.static.runtime.passes.memory import plannable
from oneflow_lite.static.runtime.passes.placing import place_slices
from oneflow_lite.static.runtime.passes.vocabularies import drop_logits
from oneflow_lite.static.runtime.plan import ExecutionPlan, PassReport

__all__ = ["BUILDING", "DEFAULT_PASSES", "PASSES", "plannable", "run_passes"]

PASSES: dict[str, Callable[[ExecutionPlan], PassReport]] = {
    "dead_code": remove_dead_code,
    "constant_folding": fold_constants,
    "common_subexpressions": merge_equal_ops,
    "vocabularies": drop_logits,
    "placing": place_slices,
    "fusion": fuse_groups,
    "addto": add_in_place,
    "inplace": write_in_place,
    "buffer_planning": plan_buffers,
    "joining": join_neighbours,
}
# The passes that build machine code, which takes over later, see `runtime/takeover.py`.
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
