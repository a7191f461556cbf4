"""Shapes, dtypes and layouts of an op's outputs, known before it runs.

The LazyInterpreter answers calls with these; the values of arguments are neither read nor written.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import Array, ArraySpec
from oneflow_lite.errors import CaptureError
from oneflow_lite.interpreter.explain import explain
from oneflow_lite.ops.op_expr import OpExpr

__all__ = ["ArraySpec", "has_dynamic_shape", "infer_outputs"]


def infer_outputs(
    op: OpExpr, arrays: Sequence[Any], attrs: dict[str, Any]
) -> tuple[ArraySpec, ...]:
    """Return descriptions of an op's outputs for inputs of these shapes, dtypes and layouts.

    Parameters
    ----------
    op : OpExpr
    arrays : sequence of array, ArraySpec or None
        In the order of the kernel's parameters. Of an array only the description is used.
    attrs : dict
        The kernel's keyword arguments.

    Returns
    -------
    tuple of ArraySpec
        One for each output.

    Raises
    ------
    CaptureError
        When the shape of an output depends on values.
    FlowError
        What the op raises for such inputs.

    Examples
    --------
    >>> import numpy as np
    >>> from oneflow_lite.ops.op_expr import op_expr
    >>> from oneflow_lite.static.ir.infer import infer_outputs
    >>> infer_outputs(op_expr("add"), [np.ones((2, 1)), np.ones(3)], {})
    (ArraySpec(shape=(2, 3), dtype=dtype('float64'), strides=None),)
    """
    specs = [None if array is None else ArraySpec.of(array) for array in arrays]
    schema = op.schema
    if has_dynamic_shape(op, specs, attrs):
        raise CaptureError(
            f"{op.op_type_name}(): its output shape depends on values, which a Program does not "
            "have while it is captured; choose a form with a fixed shape, such as where()"
        )
    if not specs:  # of an op that creates: the device is no attribute of its kernel
        attrs = {name: value for name, value in attrs.items() if name != "device"}
    outputs = None
    if schema.infer is not None:
        try:
            outputs = schema.infer(*specs, **attrs)
        except Exception as error:
            raise explain(op, tuple(specs), error) from error.__cause__
    if outputs is None:  # there is no rule, or none for these inputs
        outputs = _run_on_stand_ins(op, specs, attrs)
    if not isinstance(outputs, tuple):
        outputs = (outputs,)
    return tuple([ArraySpec.of(output) for output in outputs])


def has_dynamic_shape(op: OpExpr, arrays: Sequence[Any], attrs: dict[str, Any]) -> bool:
    """Return whether the shape of an output depends on the values of these inputs.

    For some ops that is so for some dtypes or attributes only, as for x[mask] against x[index].

    >>> import numpy as np
    >>> from oneflow_lite.ops.op_expr import op_expr
    >>> from oneflow_lite.static.ir.infer import has_dynamic_shape
    >>> x, index = np.ones(3), np.array([0, 2])
    >>> has_dynamic_shape(op_expr("getitem_advanced"), [x, index], {"dims": (0,)})
    False
    >>> has_dynamic_shape(op_expr("getitem_advanced"), [x, x > 0], {"dims": (0,)})
    True
    """
    dynamic = op.schema.dynamic_shape
    return dynamic(*arrays, **attrs) if callable(dynamic) else dynamic


def _ones(x: Array) -> None:
    x[...] = x.dtype.kind not in "iu"  # 0 is a valid index wherever there is an element


def _small(x: Array) -> None:
    x[...] = {"i": 1, "u": 1, "b": False}.get(x.dtype.kind, 0.5)


def _identity(x: Array) -> None:
    x[...] = np.eye(*x.shape[-2:]) if x.ndim >= 2 else 1


# The first values that the kernel accepts count: some refuse a divisor of 0 or a singular matrix.
_FILLS: tuple[Callable[[Array], None], ...] = (_ones, _small, _identity)


def _run_on_stand_ins(
    op: OpExpr, specs: Sequence[ArraySpec | None], attrs: dict[str, Any]
) -> tuple[Any, ...] | Any:
    if op.schema.effect:
        raise CaptureError(
            f"{op.op_type_name}(): others see each call of this op, so none is made to learn its "
            "shapes; register its kernel with an infer rule"
        )
    kernel = op.kernel(np)
    refusal: Exception | None = None
    for fill in _FILLS:
        arrays = [None if spec is None else spec.allocate() for spec in specs]
        for array in arrays:
            if array is not None:
                fill(array)
        # Random numbers come from a copy of the generator.
        own_attrs = copy.deepcopy(attrs) if op.schema.random else attrs
        try:
            with np.errstate(all="ignore"):
                outputs = kernel(*arrays, **own_attrs)
        except Exception as error:
            refusal = refusal or error
            continue
        return tuple(map(np.asarray, outputs)) if type(outputs) is tuple else np.asarray(outputs)
    assert refusal is not None
    raise explain(op, tuple(specs), refusal) from refusal.__cause__
