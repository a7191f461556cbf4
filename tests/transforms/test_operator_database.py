"""PyTorch's operator database under vmap, beside a loop, and under jvp, beside the gradients.

Random entries draw the same numbers for all entries of a batch, as the loop does from one seed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import oneflow_lite as flow
from oneflow_lite.errors import TransformError
from tests.transforms.agreement import batches, tangents

PARTS = 6
_RUNNING = "running statistics, which all entries share, cannot be written"
_SHAPE = "the shape of the result depends on values"
# What vmap refuses.
REFUSED = {
    "masked_select": _SHAPE,
    "to_sparse": _SHAPE,
    "nn.functional.instance_norm": _RUNNING,
    "nn.functional.batch_norm": _RUNNING,
    "native_batch_norm": _RUNNING,
}
_TWICE = "where an index is there twice, the gradient is PyTorch's, and not the value's"
# What jvp does not have in common with the gradients.
NOT_THE_GRADIENT = {
    "__rpow__": "powers of a negative number are NaN, and 0 times NaN is in the gradient",
    "cov": "the weights of a sample are float32, so digits are lost",
    "nn.functional.max_unpool1d": _TWICE,
    "nn.functional.max_unpool2d": _TWICE,
    "nn.functional.max_unpool3d": _TWICE,
}


def calls(entry: Any) -> Iterator[tuple[str, Callable[..., Any], list[Any]]]:
    """Yield a text, a function of tensors and their arrays for each sample that runs."""
    from tests.functors.operator_database import _Call, _our, _port, _wrapped

    ours = _wrapped(entry.info, _our(entry.info.name, entry.info.op), _port)
    for dtype in entry.dtypes:
        for number, sample in enumerate(entry.samples(dtype)):
            call = _Call(sample)
            function = call.function(ours, flow)

            def seeded(*inputs: Any, function: Any = function) -> Any:
                flow.manual_seed(5)
                return function(*inputs)

            if not call.arrays:
                continue
            try:
                seeded(*map(flow.tensor, call.arrays))
            except Exception:
                if entry.reason is None:
                    raise
                continue
            yield f"{entry.name}, {dtype}, sample {number}", seeded, call.arrays


def faults(entry: Any) -> tuple[list[str], set[str]]:
    """Return what is wrong with an entry, and the names of the exceptions that were met."""
    wrong: list[str] = []
    met: set[str] = set()
    for text, function, arrays in calls(entry):
        every = range(len(arrays))
        try:
            batches(function, arrays, every, "same")
        except TransformError as error:
            met.add("refused")
            if entry.info.name not in REFUSED:
                wrong.append(f"{text}, vmap: {error}")
        except Exception as error:
            wrong.append(f"{text}, vmap: {type(error).__name__}: {error}")
        if not entry.info.supports_forward_ad:
            continue
        try:
            tangents(function, arrays, every)
        except Exception as error:
            met.add("gradient")
            if entry.info.name not in NOT_THE_GRADIENT:
                wrong.append(f"{text}, jvp: {type(error).__name__}: {error}")
    return wrong, met


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("part", range(PARTS))
def test_batches_are_loops_and_tangents_are_gradients(part: int) -> None:
    pytest.importorskip("torch")
    from tests.functors.operator_database import _our, entries

    failed = []
    for entry in entries()[part::PARTS]:
        try:
            _our(entry.info.name, entry.info.op)
        except AttributeError:
            assert entry.reason is not None, entry.name
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wrong, met = faults(entry)
        failed += wrong
        name = entry.info.name
        if entry.name == name:  # its variants may well pass
            for table, kind in ((REFUSED, "refused"), (NOT_THE_GRADIENT, "gradient")):
                if name in table and kind not in met:
                    failed.append(f"{name} passes: its line of exceptions is no longer true")
    assert not failed, "\n\n".join(failed)


def test_exceptions_name_entries() -> None:
    pytest.importorskip("torch")
    from tests.functors.operator_database import entries

    names = {entry.info.name for entry in entries()}
    assert names >= REFUSED.keys() | NOT_THE_GRADIENT.keys()
