"""The simplest interpreter of Programs: each op in order, on arrays of its own. The oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.static.ir.program import Program

Arrays = dict[str, np.ndarray[Any, Any]]


def run_reference(
    program: Program, feeds: Mapping[str, Any], externals: Mapping[str, Any] | None = None
) -> Arrays:
    """Return the values of all variables of the global block after one run.

    Given arrays are copied first; persistable variables are returned with their new content.
    """
    block = program.global_block()
    values: dict[str | None, Any] = {None: None}
    for name, desc in block.vars.items():
        if desc.value is not None:
            values[name] = desc.value
    for given in (feeds, externals or {}):
        values.update({name: np.array(array) for name, array in given.items()})
    for op in block.ops:
        attrs = dict(op.attrs)
        if not op.inputs:
            attrs.pop("device", None)
        result = op_expr(op.type).kernel(np)(*[values[name] for name in op.inputs], **attrs)
        if not op.outputs:
            continue
        outputs = result if type(result) is tuple else (result,)
        for name, array in zip(op.outputs, outputs, strict=True):
            values[name] = np.asarray(array)
    return {name: array for name, array in values.items() if name is not None}
