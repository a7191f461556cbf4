"""Program: clones, fingerprints, and the turn to evaluation."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.static.ir.program import Block, OpDesc, Program, VarDesc
from oneflow_lite.static.runtime.plan import ExecutionPlan
from tests.static.reference import run_reference

F32 = np.dtype("float32")


def small() -> Program:
    """y = relu(x) * w, then t = y + c."""
    program = Program()
    block = program.global_block()
    block.create_var(VarDesc("x", (2, 3), F32, need_check_feed=True))
    block.create_var(VarDesc("w", (3,), F32, persistable=True, is_parameter=True))
    block.create_var(VarDesc("c", (), F32, value=np.array(2.0, F32)))
    for name in ("h", "y", "t"):
        block.create_var(VarDesc(name, (2, 3), F32))
    block.append_op(OpDesc("relu", ("x",), ("h",)))
    block.append_op(OpDesc("mul", ("h", "w"), ("y",)))
    block.append_op(OpDesc("add", ("y", "c"), ("t",)))
    return program


def with_sub_blocks() -> Program:
    """A program whose op names two sub-blocks in its attributes."""
    program = small()
    inner = program.create_block(program.global_block())
    inner.create_var(VarDesc("z", (2, 3), F32))
    inner.append_op(OpDesc("exp", ("x",), ("z",)))
    other = program.create_block(inner)
    op = program.global_block().append_op(OpDesc("relu", ("t",), ("t",)))
    op.attrs["branches"] = (inner, [other])
    op.attrs["body"] = inner
    return program


# Clones


def test_changes_to_a_clone_do_not_touch_the_original() -> None:
    program = small()
    before = str(program)
    clone = program.clone()
    assert str(clone) == before
    block = clone.global_block()
    assert block.program is clone
    block.ops[0].type = "exp"
    block.ops[1].attrs["extra"] = 1
    block.ops.append(OpDesc("relu", ("t",), ("t",)))
    block.vars["x"].shape = (5,)
    del block.vars["c"]
    clone.create_block(block)
    clone.before_run.append(print)
    clone.parameters["w"] = None
    assert str(program) == before
    assert len(program.blocks) == 1
    assert program.before_run == [] and program.parameters == {}


def test_a_clone_names_its_own_blocks() -> None:
    program = with_sub_blocks()
    clone = program.clone()
    attrs = clone.global_block().ops[-1].attrs
    assert attrs["body"] is clone.blocks[1]
    assert attrs["branches"][0] is clone.blocks[1] and attrs["branches"][1] == [clone.blocks[2]]
    assert [block.program is clone for block in clone.blocks] == [True] * 3
    assert clone.blocks[2].parent is clone.blocks[1]
    assert clone.blocks[2].var("x") is clone.global_block().vars["x"]
    assert program.global_block().ops[-1].attrs["body"] is program.blocks[1]


def test_names_stay_unique_after_cloning() -> None:
    program = small()
    clone = program.clone()
    for each in (program, clone):
        name = each.unique_name("v")
        each.global_block().create_var(VarDesc(name, (), F32))
        assert each.unique_name("v") != name


# Fingerprints


def test_equal_programs_have_one_fingerprint() -> None:
    assert small().fingerprint() == small().fingerprint() == small().clone().fingerprint()
    assert with_sub_blocks().fingerprint() == with_sub_blocks().clone().fingerprint()


def test_a_source_line_is_not_part_of_the_fingerprint() -> None:
    from oneflow_lite.static.ir.program import Location

    program = small()
    before = program.fingerprint()
    program.global_block().ops[0].location = Location("file.py", 3, "f")
    assert program.fingerprint() == before


def _set_constant(program: Program) -> None:
    program.global_block().vars["c"].value = np.array(3.0, F32)


CHANGES: dict[str, Callable[[Program], Any]] = {
    "type": lambda p: setattr(p.global_block().ops[0], "type", "exp"),
    "inputs": lambda p: setattr(p.global_block().ops[1], "inputs", ("w", "h")),
    "outputs": lambda p: setattr(p.global_block().ops[1], "outputs", ("t",)),
    "role": lambda p: setattr(p.global_block().ops[1], "role", "backward"),
    "attrs": lambda p: setattr(p.global_block().ops[1], "attrs", {"a": 1}),
    "an attribute": lambda p: p.global_block().ops[1].attrs.update(a=1),
    "an attribute set": lambda p: p.global_block().ops[1].attrs.__setitem__("a", 1),
    "op appended": lambda p: p.global_block().append_op(OpDesc("relu", ("t",), ("t",))),
    "op popped": lambda p: p.global_block().ops.pop(),
    "ops swapped": lambda p: p.global_block().ops.reverse(),
    "op replaced": lambda p: p.global_block().ops.__setitem__(0, OpDesc("exp", ("x",), ("h",))),
    "op deleted": lambda p: p.global_block().ops.__delitem__(slice(1, None)),
    "ops assigned": lambda p: setattr(p.global_block(), "ops", []),
    "op of assigned ops": lambda p: (
        setattr(p.global_block(), "ops", list(p.global_block().ops)),
        p.fingerprint(),
        p.global_block().ops.pop(),
    ),
    "shape": lambda p: setattr(p.global_block().vars["x"], "shape", (3, 2)),
    "dtype": lambda p: setattr(p.global_block().vars["x"], "dtype", np.dtype("float64")),
    "strides": lambda p: setattr(p.global_block().vars["x"], "strides", (4, 8)),
    "persistable": lambda p: setattr(p.global_block().vars["h"], "persistable", True),
    "constant": _set_constant,
    "var added": lambda p: p.global_block().create_var(VarDesc("q", (), F32)),
    "var removed": lambda p: p.global_block().vars.pop("t"),
    "block added": lambda p: p.create_block(p.global_block()),
    "op in a sub-block": lambda p: p.create_block(p.global_block()).append_op(
        OpDesc("relu", ("x",), ("t",))
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_is_noticed(change: Callable[[Program], Any]) -> None:
    program = small()
    before = program.fingerprint()
    assert program.fingerprint() == before
    change(program)
    after = program.fingerprint()
    assert after != before
    assert small().fingerprint() == before


@pytest.mark.parametrize(
    "values",
    [
        (1, 1.0, True, np.float32(1), "1"),
        (0.0, -0.0),
        (float("nan"), float("inf"), -float("inf")),
        ((1, 2), [1, 2]),
        (None, ..., "None"),
        (slice(1), slice(0, 1), slice(None)),
        (np.dtype("float32"), np.dtype("float64")),
        (flow.device("cpu"), "cpu"),
        (np.zeros(3), np.zeros(3, "f"), np.zeros((3, 1)), np.array([0, 0, -0.0])),
        (np.array([[1, 0], [0, 1]], order="F"), np.array([[1, 0], [0, 1]])),
        (np.zeros(5000), np.eye(1, 5000, 2500)[0]),
        ({"a": 1}, {"a": 2}, {"b": 1}),
        (flow.Generator(), flow.default_generator),
    ],
    ids=lambda values: re.sub(r" object at 0x[0-9a-f]+|seed=\d+", "", str(values)),
)
def test_attributes_that_differ_give_different_fingerprints(values: tuple[Any, ...]) -> None:
    found = []
    for value in values:
        program = small()
        program.global_block().ops[0].attrs["value"] = value
        found.append(program.fingerprint())
        again = small()
        again.global_block().ops[0].attrs["value"] = value
        assert again.fingerprint() == found[-1]
    assert len(set(found)) == len(values)


def test_the_fingerprint_is_not_computed_anew_without_a_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = small()
    program.fingerprint()
    monkeypatch.setattr(Program, "_hash", lambda program: "computed")
    assert program.fingerprint() != "computed"
    program.global_block().ops.pop()
    assert program.fingerprint() == "computed"


# Externals of a plan


def test_a_persistable_variable_that_an_op_makes_is_no_external() -> None:
    program = small()
    block = program.global_block()
    block.vars["h"].persistable = True
    plan = ExecutionPlan.of(program, ["x"], ["t", "h"])
    assert plan.external_names == ("w",)
    block.ops.insert(0, OpDesc("exp", ("h",), ("q",)))
    block.create_var(VarDesc("q", (2, 3), F32))
    assert ExecutionPlan.of(program, ["x"], ["t"]).external_names == ("h", "w")


# Evaluation


def captured(build: Callable[[flow.Tensor], Any], shape: tuple[int, ...], dtype: str) -> Any:
    """Return main and startup programs of a function of x, and what it returned."""
    main, startup = flow.static.Program(), flow.static.Program()
    with flow.static.program_guard(main, startup):
        result = build(flow.static.data("x", list(shape), dtype))
    return main, startup, result


def started(main: Program, startup: Program) -> dict[str, Any]:
    """Return the first values of the persistable variables of a program."""
    values = run_reference(startup, {})
    return {name: values[name] for name, desc in _vars(main).items() if desc.persistable}


def _vars(program: Program) -> dict[str, VarDesc]:
    return program.global_block().vars


def test_for_test_keeps_the_forward_ops() -> None:
    program = small()
    block = program.global_block()
    for role in ("backward", "optimize"):
        op = block.append_op(OpDesc("add", ("y", "c"), (role,)))
        op.role = role
        block.create_var(VarDesc(role, (2, 3), F32))
    block.create_var(VarDesc("state", (), F32, persistable=True))
    block.create_var(VarDesc("label", (), F32, need_check_feed=True))
    program.before_run.append(print)
    clone = program.clone(for_test=True)
    assert clone.before_run == [] and program.before_run == [print]
    assert [op.outputs for op in clone.global_block().ops] == [("h",), ("y",), ("t",)]
    assert list(clone.global_block().vars) == ["x", "w", "c", "h", "y", "t", "label"]
    assert len(block.ops) == 5 and "state" in block.vars


@pytest.mark.parametrize("p", [0.5, 1.0])
def test_for_test_lets_dropout_pass_everything(p: float) -> None:
    dropout = flow.nn.Dropout(p)
    main, _, y = captured(lambda x: dropout(x) + 0, (3, 4), "float32")
    clone = main.clone(for_test=True)
    assert not any(op.schema.random for op in clone.global_block().ops)
    x = np.array([[1, -0.0, np.inf, np.nan]] * 3, "float32")
    np.testing.assert_array_equal(run_reference(clone, {"x": x})[y.name], x + 0)
    assert any(op.type == "dropout_mask" for op in main.global_block().ops)


NORMS: dict[str, tuple[Callable[[], Any], tuple[int, ...], str]] = {
    "1d": (lambda: flow.nn.BatchNorm1d(3), (4, 3), "float32"),
    "1d of length 5": (lambda: flow.nn.BatchNorm1d(3), (4, 3, 5), "float32"),
    "2d": (lambda: flow.nn.BatchNorm2d(3, eps=0.1, momentum=0.3), (2, 3, 4, 5), "float32"),
    "no affine": (lambda: flow.nn.BatchNorm2d(3, affine=False), (2, 3, 4, 5), "float32"),
    "double": (lambda: flow.nn.BatchNorm1d(3).double(), (4, 3), "float64"),
    "half": (lambda: flow.nn.BatchNorm1d(3), (4, 3), "float16"),
}


@pytest.mark.parametrize("case", NORMS.values(), ids=NORMS)
def test_for_test_uses_running_statistics(case: tuple[Any, tuple[int, ...], str]) -> None:
    make, shape, dtype = case
    norm = make()  # outside: its values are known here, too
    rng = np.random.default_rng(0)
    with flow.no_grad():
        norm.running_mean.copy_(flow.tensor(rng.normal(size=3)))
        norm.running_var.copy_(flow.tensor(rng.uniform(1, 2, 3)))
        if norm.weight is not None:
            norm.weight.copy_(flow.tensor(rng.normal(size=3)))
            norm.bias.copy_(flow.tensor(rng.normal(size=3)))
    main, startup, y = captured(lambda x: norm(x) * 2, shape, dtype)
    externals = started(main, startup)
    clone = main.clone(for_test=True)
    types = [op.type for op in clone.global_block().ops]
    assert "batch_norm" not in types and "update_running" not in types and "copy_" not in types
    x = rng.normal(size=shape).astype(dtype)
    values = run_reference(clone, {"x": x}, externals)
    norm.eval()
    expected = (norm(flow.tensor(x)) * 2).numpy()
    assert values[y.name].dtype == expected.dtype
    np.testing.assert_array_equal(values[y.name], expected)
    for name, before in externals.items():
        np.testing.assert_array_equal(values[name], before)
    for name, desc in _vars(clone).items():
        assert values[name].shape == desc.shape and values[name].dtype == desc.dtype, name


def test_for_test_keeps_batch_statistics_where_no_others_are_kept() -> None:
    norm = flow.nn.BatchNorm1d(3, track_running_stats=False)
    main, _, _ = captured(norm, (4, 3), "float32")
    clone = main.clone(for_test=True)
    assert "affine_norm" in [op.type for op in clone.global_block().ops]


def test_for_test_of_instance_norm() -> None:
    mean, var = flow.tensor([1.0, 2.0]), flow.tensor([3.0, 4.0])

    def build(x: flow.Tensor) -> flow.Tensor:
        return flow.instance_norm(x, mean, var)

    main, startup, y = captured(build, (3, 2, 4), "float32")
    externals = started(main, startup)
    clone = main.clone(for_test=True)
    x = np.random.default_rng(0).normal(size=(3, 2, 4)).astype("float32")
    values = run_reference(clone, {"x": x}, externals)
    expected = flow.instance_norm(flow.tensor(x), mean, var, use_input_stats=False)
    np.testing.assert_array_equal(values[y.name], expected.numpy())
    for name, before in externals.items():
        np.testing.assert_array_equal(values[name], before)


def test_for_test_reaches_into_sub_blocks() -> None:
    def build(x: flow.Tensor) -> flow.Tensor:
        flag = x.sum() > 0
        return flow.static.nn.cond(flag, lambda: flow.dropout(x, 0.5), lambda: x * 2)

    main, _, y = captured(build, (3,), "float32")
    clone = main.clone(for_test=True)
    executor = flow.static.Executor()
    x = np.array([1, 2, 3], F32)
    assert executor.run(clone, {"x": x}, [y])[0].tolist() == [1, 2, 3]
    assert executor.run(clone, {"x": -x}, [y])[0].tolist() == [-2, -4, -6]
    assert "= dropout_mask(" in str(main) and "= dropout_mask(" not in str(clone)


def test_for_test_keeps_a_write_that_results_depend_on() -> None:
    total = flow.zeros(3)

    def build(x: flow.Tensor) -> flow.Tensor:
        total.add_(x)
        return total * 2

    main, startup, y = captured(build, (3,), "float32")
    externals = started(main, startup)
    clone = main.clone(for_test=True)
    x = np.arange(3, dtype="float32")
    np.testing.assert_array_equal(run_reference(clone, {"x": x}, externals)[y.name], x * 2)


def test_repr_is_short_and_blocks_know_their_parents() -> None:
    program = with_sub_blocks()
    assert repr(program) == "Program(3 blocks, 5 ops)"
    assert isinstance(program.blocks[1], Block) and program.blocks[1].parent is program.blocks[0]


def test_what_an_op_does_follows_its_fields() -> None:
    op = OpDesc("add", ("x", "y"), ("z",))
    assert (op.reads, op.written, op.new_outputs, op.viewed) == (("x", "y"), (), ("z",), None)
    copy = op.copy()
    op.type, op.outputs = "copy_", ("x",)
    assert (op.reads, op.written, op.new_outputs) == (("x", "y"), ("x",), ())
    op.inputs = ("x", "x")
    assert op.reads == ("x",) and op.schema.mutates
    op.type, op.inputs, op.outputs = "transpose", ("y",), ("t",)
    assert (op.viewed, op.written) == ("y", ())
    assert (copy.reads, copy.written, copy.new_outputs) == (("x", "y"), (), ("z",))


def test_notes_on_a_plan_go_with_its_ops() -> None:
    plan = ExecutionPlan.of(small(), ["x"], ["t"])
    counted: list[int] = []

    def count(plan: ExecutionPlan) -> int:
        counted.append(len(plan.block.ops))
        return counted[-1]

    before = plan.noted("count", count)
    assert plan.noted("count", count) == before and len(counted) == 1
    plan.block.ops.pop()
    assert plan.noted("count", count) == before - 1
    assert set(plan.roots) < set(ExecutionPlan.of(small(), ["x"], ["t"]).roots)
