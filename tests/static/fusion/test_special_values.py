"""Machine code follows the kernels at zeros of both signs, infinities, nan and subnormals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import KERNELS, Lines
from oneflow_lite.ops.scalar_expression import scalar_of
from oneflow_lite.static.fusion.group import Call, View, call_of, describe_group
from oneflow_lite.static.ir.program import Block, OpDesc, Program, VarDesc

pytest.importorskip("numba", reason="the extra `jit` is not installed")
from oneflow_lite.static.fusion import machine

ATTRS = {
    "approximate": "none", "negative_slope": 0.01, "min_val": -1.0, "max_val": 1.5, "lambd": 0.5,
    "threshold": 0.3, "value": -2.0, "alpha": 1.3, "scale": 1.1, "input_scale": 0.7, "beta": 1.2,
    "delta": 0.8, "lower": 0.125, "upper": 0.33,
}  # fmt: skip
MORE = [  # with other attributes
    ("gelu", {"approximate": "tanh"}),
    ("gelu_grad", {"approximate": "tanh"}),
    ("hardtanh", {"min_val": 0.0, "max_val": 6.0}),
    ("hardtanh", {"min_val": 0.0, "max_val": 0.0}),
    ("hardtanh", {"min_val": -0.0, "max_val": -0.0}),
]
# Where these are nearly 0, two rounded numbers cancel: the last bits of those differ.
CANCEL = ("gelu", "gelu_grad", "bce_with_logits")
# What is written for truth values, or for integers.
BOOLS = {"condition": 1, "mask": 1}
EXPONENTS = (0.5, 0.25, 1, 2, 3, 4, 0, -1, -0.5, 1.5, np.inf, -np.inf, np.nan, -0.0)


def calls_of() -> list[tuple[str, dict[str, Any]]]:
    """Return all ops whose expression is about one element, with attributes."""
    found: list[tuple[str, dict[str, Any]]] = [*MORE]
    for name in KERNELS:
        entry = KERNELS.get(name)
        attrs = entry.schema.attrs
        if entry.schema.inputs and attrs.keys() <= ATTRS.keys() and entry.is_library:
            given = {each: ATTRS[each] for each in attrs}
            if not isinstance(entry.scalar, Lines) and scalar_of(name, given) is not None:
                found.append((name, given))
    return [(name, attrs) for name, attrs in found if op_expr(name).schema.inputs[0] != "param"]


def values(dtype: Any) -> np.ndarray:
    info = np.finfo(dtype)
    few = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, info.tiny, -info.tiny, info.max, info.min]
    few += [info.smallest_subnormal, -info.smallest_subnormal, 2, -2, 3, -3, 0.5, -0.5, 6, 7]
    return np.array([*few, 1.5, 88.75, -104], dtype)


def inputs_of(count: int, dtype: Any) -> list[np.ndarray]:
    """Return all pairs, triples or quadruples; each in the middle of vectors, and behind them."""
    few = values(dtype)[: {1: None, 2: None, 3: 15}.get(count, 7)]
    arrays = [each.ravel() for each in np.meshgrid(*[few] * count)]
    return [np.resize(each, 3 * each.size + 5) if count == 1 else each for each in arrays]


class Group:
    """Ops on inputs of their own kinds, to be run as one group."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.block: Block = Program().global_block()
        self.arrays, self.numbers = arrays, dict[str, float]()
        self.calls: list[Call] = []
        self.wanted: dict[str, tuple[str, dict[str, Any], list[str], np.ndarray]] = {}
        for name, array in arrays.items():
            self.block.vars[name] = VarDesc(name, array.shape, array.dtype)

    def add(self, op: str, attrs: dict[str, Any], names: list[str]) -> bool:
        """Add an op, which the kernel runs now; return False where it is none for loops."""
        with np.errstate(all="ignore"):
            made = op_expr(op).kernel(np)(*[self.arrays[name] for name in names], **attrs)
        results = made if isinstance(made, tuple) else (made,)
        outputs = [f"y{len(self.wanted) + i}" for i in range(len(results))]
        for name, result in zip(outputs, results, strict=True):
            self.block.vars[name] = VarDesc(name, result.shape, result.dtype)
        parameters = op_expr(op).schema.inputs
        views = {
            parameter: View.in_c_order(name, self.arrays[name].shape)
            for parameter, name in zip(parameters, names, strict=True)
        }
        call = call_of(OpDesc(op, tuple(names), tuple(outputs), attrs), views, self.block)
        if call is not None:
            self.calls.append(call)
            for name, result in zip(outputs, results, strict=True):
                self.wanted[name] = op, attrs, names, result
        return call is not None

    def differences(self) -> list[Any]:
        """Run all as one loop; return where it is not as the kernels."""
        size = max(array.size for array in self.arrays.values())
        made = describe_group(self.calls, size, None, [*self.wanted], self.block, self.numbers)
        run, _ = machine.compiled(made, self.block)
        results = [np.empty_like(result) for *_, result in self.wanted.values()]
        run(*[self.arrays[name] for name in made.inputs], *results)
        wrong = []
        for (op, attrs, names, wanted), found in zip(self.wanted.values(), results, strict=True):
            at = differ(found, wanted, op in CANCEL).ravel().nonzero()[0][:1]
            for i in at:
                point = [np.broadcast_to(self.arrays[n], wanted.shape).flat[i] for n in names]
                wrong.append((op, attrs, point, "kernel", wanted.flat[i], "loop", found.flat[i]))
        return wrong


def differ(found: np.ndarray, wanted: np.ndarray, cancels: bool) -> np.ndarray:
    """Return where results differ: in the sign of 0, or by more than some last bits."""
    assert found.dtype == wanted.dtype
    if wanted.dtype.kind != "f":
        return found != wanted
    relative, absolute = (1e-4, 1e-6) if cancels else (1e-5, 4 * np.finfo(wanted.dtype).tiny)
    with np.errstate(all="ignore"):
        near = np.isclose(found, wanted, relative, absolute, equal_nan=True)
        zero = (found == 0) & (wanted == 0)
    return ~near | (zero & (np.signbit(found) != np.signbit(wanted)))


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pointwise_ops_follow_the_kernels(dtype: str) -> None:
    wrong: list[Any] = []
    done: set[str] = set()
    for count in range(1, 5):
        found = [x for x in calls_of() if len(op_expr(x[0]).schema.inputs) == count]
        arrays = inputs_of(count, dtype)
        for start in range(0, len(found), 16):
            named = {f"x{i}": array for i, array in enumerate(arrays)}
            group = Group({**named, **{f"b{i}": array > 0 for i, array in enumerate(arrays)}})
            for op, attrs in found[start : start + 16]:
                parameters = op_expr(op).schema.inputs
                names = [f"{'b' if p in BOOLS else 'x'}{i}" for i, p in enumerate(parameters)]
                try:
                    done |= {op} if group.add(op, attrs, names) else set()
                except TypeError:  # an op of integers
                    assert op.startswith(("bitwise", "gcd", "lcm", "logical", "invert"))
            wrong += group.differences() if group.calls else []
    assert not wrong, wrong
    assert len(done) > 60 and {"relu", "elu", "hardtanh", "maximum", "clamp_min"} <= done


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("known", [True, False])
def test_one_number_for_all_elements(dtype: str, known: bool) -> None:
    """NumPy takes a root for the exponent 1/2; known before the run or not, so does the loop."""
    wrong = []
    for ops in (["pow"], ["maximum", "minimum", "clamp_min", "clamp_max"]):
        group = Group({"x": np.resize(values(dtype), 77)})
        for i, number in enumerate(EXPONENTS):
            group.arrays[f"c{i}"] = array = np.array(number, dtype)
            group.block.vars[f"c{i}"] = VarDesc(f"c{i}", (), array.dtype)
            if known:
                group.numbers[f"c{i}"] = float(array)
            for op in ops:
                assert group.add(op, {}, ["x", f"c{i}"])
        wrong += group.differences()
    assert not wrong, wrong


@pytest.mark.slow
def test_rows_and_columns_follow_the_kernels() -> None:
    """Of pairs, one number lies along each dimension: the loops differ from those above."""
    few = values("float32")
    for x, y in ((few[:, None], few), (few, few[:, None])):
        group = Group({"x": x, "y": y})
        for op in "add sub mul div maximum minimum clamp_min clamp_max gt le eq".split():
            assert group.add(op, {}, ["x", "y"])
        assert not group.differences()


@pytest.mark.parametrize("op", ["amax", "amin"])
def test_the_extreme_of_zeros_has_the_sign_of_the_standard(op: str) -> None:
    """IEEE 754 has 0 above -0. NumPy takes one or the other, by its place in the line."""
    zeros = np.array([[0.0, -0.0, -0.0], [-0.0, 0.0, -0.0], [-0.0, -0.0, 0.0], [-0.0] * 3], "f")
    block = Program().global_block()
    block.vars["x"] = VarDesc("x", (4, 3), zeros.dtype)
    block.vars["y"] = VarDesc("y", (4, 1), zeros.dtype)
    desc = OpDesc(op, ("x",), ("y",), {"dim": 1, "keepdim": True})
    call = call_of(desc, {"x": View.in_c_order("x", (4, 3))}, block)
    assert call is not None
    run, _ = machine.compiled(describe_group([call], 12, call.line, ["y"], block, {}), block)
    found = np.empty((4, 1), "f")
    run(zeros, found)
    assert not found.any()
    assert np.signbit(found).ravel().tolist() == [op == "amin"] * 3 + [True]
