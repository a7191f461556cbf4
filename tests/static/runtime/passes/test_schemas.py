"""The schemas that passes rely on hold for a call of each of the package's kernels."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest

from oneflow_lite.ops.scalar_expression import scalar_of
from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.runtime.passes.memory import is_control_flow, is_library
from tests.op_samples import every_op
from tests.static.kernel_calls import KernelCall, copied, sample_calls

OPS = every_op()


@functools.cache
def calls() -> dict[str, list[KernelCall]]:
    """Return sample calls by op."""
    found: dict[str, list[KernelCall]] = {}
    for call in sample_calls():
        found.setdefault(call.op.op_type_name, []).append(call)
    return found


def as_tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("name", OPS)
def test_outputs_share_memory_only_where_the_schema_says_so(name: str) -> None:
    for call in calls().get(name, []):
        schema = call.op.schema
        if is_control_flow(OpDesc(name, (), (), call.attrs)):
            continue
        arrays = [copied(x) for x in call.arrays]
        outputs = as_tuple(call.run(arrays))
        for a, b in itertools.combinations(outputs, 2):
            assert not np.may_share_memory(a, b)
        for position, x in enumerate(arrays):
            named = schema.inputs[position] if position < len(schema.inputs) else None
            if x is None or named == schema.view_of:
                continue
            for y in outputs:
                written = y is x and position in schema.written
                assert written or not np.may_share_memory(x, y), (str(call), position)


@pytest.mark.parametrize("name", OPS)
def test_ops_with_a_scalar_expression_do_not_care_where_an_element_stands(name: str) -> None:
    for call in calls().get(name, []):
        scalar = scalar_of(name, call.attrs)
        if scalar is not None and not scalar.reduces:
            assert is_same_when_moved(call)


def is_same_when_moved(call: KernelCall) -> bool:
    """Return whether moving the elements of all inputs moves those of the output alike."""
    expected = np.asarray(call.run())
    shape, order = expected.shape, np.random.default_rng(0).permutation(expected.size)

    def move(x: Any) -> Any:
        if x is None:
            return None
        return np.broadcast_to(x, shape).reshape(-1)[order].reshape(shape)

    try:
        arrays = [x if x is None or x.ndim == 0 else move(x) for x in call.arrays]
        found = np.asarray(call.run(arrays))
        np.testing.assert_allclose(found, move(expected), rtol=1e-6)
    except Exception:
        return False
    return True


def test_all_of_them_are_the_packages() -> None:
    assert all(is_library(OpDesc(name, (), ())) for name in OPS)
