"""Shapes, dtypes and layouts of an op's outputs, known before it runs.

The LazyInterpreter answers calls with these, and `describe` calls on the device "meta"; the values
of arguments are neither read nor written.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import Array, ArraySpec
from oneflow_lite.arrays.meta_arrays import MetaArray, meta_module
from oneflow_lite.errors import CaptureError, NoDataError
from oneflow_lite.interpreter.explain import explain
from oneflow_lite.ops.op_expr import OpExpr
from oneflow_lite.ops.registry import KERNELS

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
    >>> from oneflow_lite.interpreter.infer import infer_outputs
    >>> infer_outputs(op_expr("add"), [np.ones((2, 1)), np.ones(3)], {})
    (ArraySpec(shape=(2, 3), dtype=dtype('float64'), strides=None),)
    """
    specs = [None if array is None else ArraySpec.of(array) for array in arrays]
    if has_dynamic_shape(op, specs, attrs):
        raise CaptureError(_dynamic(op, "a Program does not have while it is captured"))
    return tuple([ArraySpec.of(output) for output in _outputs(op, specs, attrs)])


def _dynamic(op: OpExpr, who: str) -> str:
    return (
        f"{op.op_type_name}(): its output shape depends on values, which {who}; choose a form with "
        "a fixed shape, such as where()"
    )


def describe(op: OpExpr, /, *arrays: Any, **attrs: Any) -> Any:
    """Return the outputs of an op on the device "meta": this is the kernel of every op there.

    Raises
    ------
    NoDataError
        When the shape of an output depends on values, or when an op without an infer rule would
        have to be tried on much memory.
    """
    schema, name = op.schema, op.op_type_name
    if name in _RUNS:  # a composition of other kernels, or no computation
        return KERNELS.get(name).by_device[None](meta_module, *arrays, **attrs)
    specs = [None if array is None else ArraySpec.of(array) for array in arrays]
    if has_dynamic_shape(op, specs, attrs):
        raise NoDataError(_dynamic(op, "a tensor on the device 'meta' does not have"))
    outputs = _outputs(op, specs, attrs, largest=1 << 26)
    made: list[MetaArray] = []
    for output in outputs:
        written = next((i for i in schema.written if specs[i] is output), None)
        if written is not None:
            made.append(arrays[written])
            continue
        base, spec = None, ArraySpec.of(output)
        if schema.view_of is not None:
            source = schema.inputs.index(schema.view_of)
            # A reshape that had to copy gave C order to what was laid out otherwise.
            was = specs[source]
            copied = name == "reshape" and was is not None and was.strides and not spec.strides
            base = None if copied else arrays[source]
        made.append(MetaArray(spec, base))
    return made[0] if len(made) == 1 else tuple(made)


_RUNS = ("take_slices", "to_device")


def _outputs(
    op: OpExpr, specs: Sequence[Any], attrs: dict[str, Any], largest: float = math.inf
) -> tuple[Any, ...]:
    """Return what the infer rule says, or arrays that the kernel made of stand-ins."""
    schema = op.schema
    if not specs:  # of an op that creates: the device is no attribute of its kernel
        attrs = {name: value for name, value in attrs.items() if name != "device"}
    outputs = None
    if schema.infer is not None:
        try:
            outputs = schema.infer(*specs, **attrs)
        except Exception as error:
            raise explain(op, tuple(specs), error) from error.__cause__
    if outputs is None:  # there is no rule, or none for these inputs
        if sum([spec.size for spec in specs if spec is not None]) > largest:
            raise NoDataError(
                f"{op.op_type_name}(): there is no infer rule for such inputs, and these are too "
                "large to try it; register its kernel with one, or use smaller tensors"
            )
        outputs = _run_on_stand_ins(op, specs, attrs)
    return outputs if isinstance(outputs, tuple) else (outputs,)


def has_dynamic_shape(op: OpExpr, arrays: Sequence[Any], attrs: dict[str, Any]) -> bool:
    """Return whether the shape of an output depends on the values of these inputs.

    For some ops that is so for some dtypes or attributes only, as for x[mask] against x[index].

    >>> import numpy as np
    >>> from oneflow_lite.ops.op_expr import op_expr
    >>> from oneflow_lite.interpreter.infer import has_dynamic_shape
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
