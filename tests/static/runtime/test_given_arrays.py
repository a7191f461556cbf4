"""Arrays are looked at before machine code runs on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.errors import ArgumentError, DTypeError, FlowError, ShapeError
from oneflow_lite.static.ir.program import VarDesc
from oneflow_lite.static.runtime import takeover
from oneflow_lite.static.runtime.given_arrays import Mended, fits
from tests.conftest import needs_numba

F4 = np.dtype("float32")
said: list[ArraySpec] = []


@flow.register_op("given_arrays_op", infer=lambda x: said[0] if said else ArraySpec(x.shape, F4))
def own(xp: Any, x: Any) -> Any:
    return x + 1


@pytest.fixture
def soon(monkeypatch):
    monkeypatch.setattr(takeover, "_AT_LEAST", 2)
    monkeypatch.setattr(takeover, "_AT_MOST", 2)
    with flow.use_jit(True):
        yield
    said.clear()


def built(function):
    main = flow.static.Program()
    with flow.static.program_guard(main):
        y = function(flow.static.data("x", [4, 3]))
    return main, y


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=needs_numba)])
@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (ArraySpec((3_000_000, 3), F4), ShapeError),
        (ArraySpec((4, 3), np.dtype("int32")), DTypeError),
    ],
)
def test_an_op_that_lies_is_named(spec, error, jit, soon):
    said[:] = [spec]
    main, y = built(lambda x: own(x).exp() * 2)
    with flow.use_jit(jit), pytest.raises(error, match="'given_arrays_op': it made float32.4, 3."):
        flow.static.Executor().run(main, {"x": np.ones((4, 3), "f")}, [y])


def test_a_changed_description_is_refused():
    main, y = built(lambda x: flow.sort(x)[0].exp())
    for name, desc in main.global_block().vars.items():
        if name != "x":
            desc.shape = (3_000_000, 3)
    with pytest.raises(ArgumentError, match="'sort'.*is float32.4, 3., described as float32.30000"):
        flow.static.Executor().run(main, {"x": np.ones((4, 3), "f")}, [y])


LAYOUTS = {
    "columns": lambda x: np.asfortranarray(x),
    "gaps": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "odd": lambda x: np.frombuffer(b"?" + x.tobytes(), "u1")[1:].view("f").reshape(4, 3),
}


@needs_numba
@pytest.mark.parametrize("layout", LAYOUTS)
def test_other_layouts_are_copied(layout, soon):
    main, y = built(lambda x: (x * 2).exp())
    core = flow.static.Executor().analyse(main, ["x"], [y])
    x = np.linspace(0, 1, 12, dtype="f").reshape(4, 3)
    for _ in range(4):
        (found,) = core.run([LAYOUTS[layout](x)], [])
        np.testing.assert_allclose(found, np.exp(x * 2), 1e-6)
    assert core.runner.plan.loops
    with pytest.raises(ShapeError, match="'x' was given float32.2, 3., and the Program was"):
        core.run([x[:2]], [])
    with pytest.raises(DTypeError, match="'x' was given float64.4, 3."):
        core.run([x.astype("d")], [])


def test_layouts():
    desc = VarDesc("x", (4, 3), F4)
    array = np.arange(12, dtype="f").reshape(4, 3)
    assert fits(array, desc) and Mended(desc)(array) is array
    for layout in LAYOUTS.values():
        other = layout(array)
        assert not fits(other, desc)
        mended = Mended(desc)(other)
        assert fits(mended, desc) and (mended == array).all()
        with pytest.raises(FlowError, match="with strides"):
            Mended(desc, is_written=True)(other)
    with pytest.raises(ShapeError, match="'x' was given list"):
        Mended(desc)([1.0])
    turned = VarDesc("x", (4, 3), F4, strides=(4, 16))
    assert fits(np.asfortranarray(array), turned) and not fits(array, turned)
    assert fits(Mended(turned)(array), turned)
    assert fits(array[:1], VarDesc("x", (1, 3), F4, strides=(400, 4)))
