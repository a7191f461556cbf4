"""No public callable raises what NumPy or Python raise by accident, crashes or hangs."""

from __future__ import annotations

import pytest

from tests.hostile.calls import Call, calls, of_functors
from tests.hostile.values import VALUES
from tests.hostile.walk import Finding, walk

_FLAG = "an array in the place of a flag has no truth value, as NumPy says"
_ISCLOSE = "numpy.isclose warns of rtol=inf"
# What may be raw, by callable, and why.
ALLOWED_RAW = {
    "flow.Tensor.backward": _FLAG,
    "flow.as_tensor": _FLAG,
    "flow.autograd.Variable": _FLAG,
    "flow.autograd.backward": _FLAG,  # and a frame more would halve how deep calls nest
    "flow.autograd.grad": _FLAG,
    "flow.autograd.gradcheck": _ISCLOSE,
    "flow.autograd.graph.save_on_cpu": _FLAG,
    "flow.autograd.gradgradcheck": _ISCLOSE,
    "flow.autograd.inference_mode": _FLAG,
    "flow.autograd.set_grad_enabled": _FLAG,
    "flow.func.linearize": "a list that holds itself is a RecursionError",
    "flow.func.vjp": "a list that holds itself is a RecursionError",
    "flow.isclose": _ISCLOSE,
    "flow.static.Block": "made by Programs, not by users",
    "flow.tensor": _FLAG,
    "flow.Tensor.requires_grad_": _FLAG,
    "flow.use_jit": _FLAG,
}
PARTS = 16


def raw(found: list[Finding]) -> list[str]:
    """Return what is not allowed to be raw."""
    return [str(each) for each in found if each.name not in ALLOWED_RAW]


def test_functors_refuse_hostile_values() -> None:
    assert not raw(walk(list(of_functors()), every=6 * len(VALUES)))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_all_callables_refuse_hostile_values(part: int) -> None:
    assert not raw(walk(calls()[part::PARTS]))


def test_few_are_allowed_to_be_raw() -> None:
    assert len(ALLOWED_RAW) <= 60


@pytest.mark.slow
def test_the_walk_finds_what_is_planted() -> None:
    setup = "import json\n"
    texts = {
        "json.loads": "TypeError",
        "(lambda x: __import__('os').abort())": "crash",
        "(lambda x: [0 for each in iter(int, 1) if each])": "hang",
        "(lambda: 0)": "",
        "flow.abs": "",
    }
    found = walk([Call(text, setup, text, ("0",), {}) for text in texts], every=len(VALUES))
    kinds = {each.name: each.kind for each in found}
    assert kinds == {text: kind for text, kind in texts.items() if kind}
