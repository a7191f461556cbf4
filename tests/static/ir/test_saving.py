"""static.save and static.load: what is kept, what is refused, and that nothing is half done."""

from __future__ import annotations

import copy
import functools
import json
import math
import re
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    CaptureError,
    SerializationError,
)
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.static.ir.attribute_record import READERS
from oneflow_lite.static.ir.program import Location, OpDesc, Program, VarDesc
from oneflow_lite.static.ir.saving import FORMAT, VERSION, load, save
from oneflow_lite.static.ir.scope import Scope, scope_guard
from oneflow_lite.static.runtime.executor import Executor
from tests.op_samples import every_op, samples

F32 = np.dtype("float32")
X = np.arange(6, dtype=F32).reshape(2, 3) - 2


class Net(flow.nn.Module):
    """Dropout, views, an advanced index, a buffer, constants: attributes of many kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = flow.nn.Linear(3, 4)
        self.norm = flow.nn.BatchNorm1d(4)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return something that depends on everything."""
        h = flow.dropout(self.norm(self.linear(x)), 0.25)
        h[:, 1:3].mul_(2.0)
        return h[..., None, ::2].clamp(-1e30, math.inf) + h[[1, 0]][:, :1, None].double().float()


def trained(steps: int = 2) -> tuple[Program, Program, Scope, Any]:
    """Return a training program, its startup program, a scope after some steps, and its loss."""
    flow.manual_seed(3)
    main, startup = flow.static.Program(), flow.static.Program()
    with flow.static.program_guard(main, startup):
        x = flow.static.data("x", [2, 3])
        loss = Net()(x).square().mean()
        flow.optim.Adam(lr=0.1).minimize(loss)
    executor, scope = Executor(), Scope()
    executor.run(startup, scope=scope)
    for _ in range(steps):
        executor.run(main, {"x": X}, [loss], scope)
    return main, startup, scope, loss


@functools.cache
def content() -> bytes:
    """Return the bytes of a file with a trained program."""
    main, _, scope, _ = trained()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program")
        save(main, path, scope)
        return path.read_bytes()


def saved(tmp_path: Path) -> Path:
    """Return a file with a trained program."""
    path = tmp_path / "program.safetensors"
    path.write_bytes(content())
    return path


def same(a: Program, b: Program) -> None:
    """Check that two programs are alike, source lines included."""
    assert str(a) == str(b)
    assert a.fingerprint() == b.fingerprint()
    for one, other in zip(a.blocks, b.blocks, strict=True):
        for left, right in zip(one.ops, other.ops, strict=True):
            assert left.location == right.location


# What is kept


def test_a_training_program_goes_on_where_it_was(tmp_path: Path) -> None:
    main, startup, scope, loss = trained()
    before = {name: scope.find_var(name).copy() for name in scope.local_var_names()}
    save(main, tmp_path / "main", scope)
    loaded, values = load(tmp_path / "main")
    same(main, loaded)
    used = [d.name for d in main.list_vars() if d.persistable]
    assert sorted(values.local_var_names()) == sorted(used)
    for name in used:
        np.testing.assert_array_equal(values.find_var(name), before[name])
        assert values.find_var(name).dtype == before[name].dtype
    found = []
    main.before_run.clear()
    for program, where in ((main, scope), (loaded, values)):
        flow.manual_seed(7)
        executor = Executor()
        found.append([executor.run(program, {"x": X}, [loss.name], where)[0] for _ in range(3)])
    assert found[0] == found[1] and len(set(map(float, found[0]))) == 3
    for name in used:
        np.testing.assert_array_equal(values.find_var(name), scope.find_var(name))
    assert startup is not main


def test_a_startup_program_is_kept_too(tmp_path: Path) -> None:
    _, startup, scope, _ = trained()
    save(startup, tmp_path / "startup", scope)
    loaded, _ = load(tmp_path / "startup")
    same(startup, loaded)
    found = []
    for program in (startup, loaded):
        flow.manual_seed(5)
        into = Scope()
        Executor().run(program, scope=into)
        found.append({name: into.find_var(name).tolist() for name in into.local_var_names()})
    assert found[0] == found[1] != {}


def test_the_global_scope_is_the_default(tmp_path: Path) -> None:
    main, _, scope, _ = trained(0)
    with scope_guard(scope):
        save(main, tmp_path / "main")
    assert len(load(str(tmp_path / "main"))[1].local_var_names()) == len(scope.local_var_names())


def test_control_flow_runs_after_loading(tmp_path: Path) -> None:
    main, startup = flow.static.Program(), flow.static.Program()
    with flow.static.program_guard(main, startup):
        x = flow.static.data("x", [3])
        w = flow.nn.Parameter(flow.tensor([1.0, 2.0, 3.0]))
        y = flow.static.nn.cond(x.sum() > 0, lambda: x * w, lambda: x - w)
        _, z = flow.static.nn.while_loop(
            lambda i, z: i < 3,
            lambda i, z: (i + 1, flow.dropout(z * w, 0.3)),
            [flow.zeros((), dtype=flow.int64), y],
        )
        loss = z.sum()
        flow.optim.SGD(lr=0.01).minimize(loss)
    scope = Scope()
    Executor().run(startup, scope=scope)
    save(main, tmp_path / "p", scope)
    loaded, values = load(tmp_path / "p")
    same(main, loaded)
    found = []
    for program, where in ((main, scope), (loaded, values)):
        flow.manual_seed(1)
        executor = Executor()
        for sign in (1, -1, 1):
            feed = {"x": sign * np.ones(3, F32)}
            found.append(executor.run(program, feed, [loss.name, y.name], where))
    for one, other in zip(found[:3], found[3:], strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


ATTRIBUTES: dict[str, Any] = {
    "none": None,
    "bools": (True, False),
    "ints": [0, -1, 2**80],
    "floats": (0.1, -0.0, math.inf, -math.inf, math.nan, 5e-324),
    "complex": complex(-0.0, math.inf),
    "text": "a\u00e9\n\x00",
    "slices": (slice(None), slice(1, -1, 2), ..., None, 3),
    "nested": ([(1, [2.0])], ()),
    "dicts": {"a": {"b": (1, slice(2))}, "tensor": 1, "dict": []},
    "dtypes": (np.dtype("float16"), np.dtype("bool"), np.dtype("complex128")),
    "devices": (flow.device("cpu"), flow.device("cuda:3")),
    "ops": ((op_expr("reshape"), {"shape": (2, 3)}),),
    "generator": flow.default_generator,
    "arrays": (np.arange(6).reshape(2, 3), np.array(1 + 2j, "complex64"), np.zeros((0, 2), "?")),
    "scalars": (np.float32(0.1), np.int64(3), np.bool_(True)),
}


@pytest.mark.parametrize("value", ATTRIBUTES.values(), ids=ATTRIBUTES)
def test_attributes_come_back_equal_and_of_their_type(tmp_path: Path, value: Any) -> None:
    program = Program()
    block = program.global_block()
    block.create_var(VarDesc("x", (), F32, need_check_feed=True))
    block.create_var(VarDesc("y", (), F32))
    op = OpDesc("mul_scalar", ("x",), ("y",), {"factor": value}, Location("a.py", 3, "f"))
    block.append_op(op)
    save(program, tmp_path / "p")
    loaded, _ = load(tmp_path / "p")
    same(program, loaded)
    found = loaded.global_block().ops[0].attrs["factor"]
    assert repr(found) == repr(value)
    assert found is not flow.default_generator or value is flow.default_generator


def test_blocks_keep_their_places(tmp_path: Path) -> None:
    program = Program()
    block = program.global_block()
    block.create_var(VarDesc("x", (3,), F32, need_check_feed=True))
    inner = program.create_block(block)
    inner.create_var(VarDesc("y", (3,), F32))
    inner.append_op(OpDesc("exp", ("x",), ("y",)))
    innermost = program.create_block(inner)
    block.create_var(VarDesc("z", (3,), F32))
    block.create_var(VarDesc("index", (), np.dtype("int64"), need_check_feed=True))
    options = {"blocks": (inner, innermost), "names": ("x",), "outputs": (("y",), ("",))}
    options |= {"visible": 1, "keys": (0,)}
    block.append_op(OpDesc("switch_case", ("index", "x"), ("z",), options))
    save(program, tmp_path / "p")
    loaded, _ = load(tmp_path / "p")
    same(program, loaded)
    value = loaded.global_block().ops[0].attrs["blocks"]
    assert value[0] is loaded.blocks[1] and value[1] is loaded.blocks[2]
    assert loaded.blocks[2].parent is loaded.blocks[1]


def test_constants_keep_value_and_layout(tmp_path: Path) -> None:
    program = Program()
    value = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    desc = VarDesc("c", (2, 3), value.dtype, value=value, strides=value.strides)
    program.global_block().create_var(desc)
    save(program, tmp_path / "p")
    found = load(tmp_path / "p")[0].global_block().vars["c"].value
    np.testing.assert_array_equal(found, value)
    assert found.strides == value.strides and not found.flags.writeable


@pytest.mark.parametrize("op", every_op())
def test_programs_of_every_op_come_back(tmp_path: Path, op: str) -> None:
    for sample in samples(op, "cpu")[:1]:
        main = flow.static.Program()
        try:
            with flow.static.program_guard(main, flow.static.Program()):
                given = [
                    flow.static.data(f"x{i}", list(x.shape), x.dtype)
                    for i, x in enumerate(sample.inputs)
                ]
                for i in sample.differentiable:
                    given[i].requires_grad_()
                sample.call(*given)
        except CaptureError:
            return  # it reads values, so there is no Program
        scope = Scope()
        for desc in main.global_block().vars.values():
            if desc.persistable:
                scope.set(desc.name, np.ones(desc.shape, desc.dtype))
        save(main, tmp_path / "p", scope)
        same(main, load(tmp_path / "p")[0])


# What is refused when saving


def test_save_needs_all_values(tmp_path: Path) -> None:
    main, _, scope, _ = trained(0)
    name = next(d.name for d in main.list_vars() if d.is_parameter)
    scope.erase(name)
    with pytest.raises(ArgumentError, match=f"static.save.*scope.*{name!r}.*startup program"):
        save(main, tmp_path / "main", scope)
    with pytest.raises(ArgumentTypeError, match=r"static.save.*a Program, got dict"):
        save({}, tmp_path / "main", scope)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "value", [flow.Generator(), object(), print, {1, 2}, b"bytes"], ids=lambda v: type(v).__name__
)
def test_save_refuses_what_is_no_plain_data(tmp_path: Path, value: Any) -> None:
    path = saved(tmp_path)
    before = path.read_bytes()
    program = Program()
    program.global_block().create_var(VarDesc("x", (), F32, need_check_feed=True))
    program.global_block().create_var(VarDesc("y", (), F32))
    program.global_block().append_op(OpDesc("mul_scalar", ("x",), ("y",), {"factor": [value]}))
    kind = type(value).__name__
    with pytest.raises(
        SerializationError, match=f"attribute 'factor' of y = mul_scalar.*type {kind}"
    ):
        save(program, path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("failing", ["os.fsync", "os.replace"])
def test_a_save_that_fails_leaves_the_older_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    path = saved(tmp_path)
    before = path.read_bytes()
    main, _, scope, _ = trained(5)

    def fail(*args: Any) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(failing, fail)
        with pytest.raises(OSError, match="disk full"):
            save(main, path, scope)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
    save(main, path, scope)
    assert path.read_bytes() != before


# What is refused when loading


def refused(path: Path, reason: str) -> None:
    """Check that a file is refused with its name and a reason."""
    with pytest.raises(SerializationError, match=reason) as error:
        load(path)
    assert str(error.value).startswith(f"static.load(): file {str(path)!r}: ")


def test_a_file_that_is_cut_short(tmp_path: Path) -> None:
    path = saved(tmp_path)
    data = path.read_bytes()
    for length in (0, 1, 7, 8, 9, 100, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        refused(path, "damaged|cut short")


def test_a_file_with_a_changed_byte(tmp_path: Path) -> None:
    path = saved(tmp_path)
    data = path.read_bytes()
    for position in range(0, len(data), 997):
        changed = bytearray(data)
        changed[position] ^= 1
        path.write_bytes(changed)
        refused(path, ".")


@pytest.mark.parametrize("content", [b"{}", b"PK\x03\x04" + bytes(60), b"\x80\x04" + bytes(60)])
def test_a_file_of_another_kind(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    refused(path, "damaged|pickle")


def test_a_state_dict_is_no_program(tmp_path: Path) -> None:
    path = tmp_path / "state"
    flow.save(flow.nn.Linear(2, 3).state_dict(), path)
    refused(path, "no Program.*flow.load")
    flow.save([1, 2], path)
    refused(path, "no Program")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing")


def _op(record: Any, kind: str) -> Any:
    return next(op for op in record["blocks"][0]["ops"] if op["type"] == kind)


def _var(record: Any, **what: Any) -> Any:
    return next(
        var
        for var in record["blocks"][0]["vars"]
        if all(var[key] == value for key, value in what.items())
    )


def _set(find: Callable[[Any], Any], key: Any, value: Any) -> Callable[[Any], None]:
    def change(record: Any) -> None:
        find(record)[key] = value

    return change


def _drop(find: Callable[[Any], Any], key: Any) -> Callable[[Any], None]:
    def change(record: Any) -> None:
        del find(record)[key]

    return change


def _all(record: Any) -> Any:
    return record


def _block(record: Any) -> Any:
    return record["blocks"][0]


def _mul(record: Any) -> Any:
    return _op(record, "mul")


def _mask(record: Any) -> Any:
    return _op(record, "dropout_mask")


def _mask_attrs(record: Any) -> Any:
    return _mask(record)["attrs"]


def _x(record: Any) -> Any:
    return _var(record, name="x")


def _parameter(record: Any) -> Any:
    return _var(record, is_parameter=True)


def _constant(record: Any) -> Any:
    return next(var for var in record["blocks"][0]["vars"] if var["value"] is not None)


def _variables(record: Any) -> Any:
    return record["variables"]


WRONG: dict[str, tuple[Callable[[Any], None], str]] = {
    "format": (_set(_all, "format", "another"), "no Program"),
    "newer version": (_set(_all, "version", VERSION + 1), f"version {VERSION + 1}.*newer"),
    "version 0": (_set(_all, "version", 0), "version 0"),
    "version of text": (_set(_all, "version", "1"), "version '1'"),
    "no version": (_drop(_all, "version"), "version None"),
    "no blocks": (_drop(_all, "blocks"), "no blocks"),
    "empty blocks": (_set(_all, "blocks", []), "no blocks"),
    "blocks of text": (_set(_all, "blocks", "text"), "no blocks"),
    "block of text": (_set(_all, "blocks", ["text"]), "no 'parent'"),
    "parent": (_set(_block, "parent", 0), "block 0 cannot be inside block 0"),
    "vars": (_set(_block, "vars", {}), "'vars' is given as dict"),
    "no ops": (_drop(_block, "ops"), "no 'ops'"),
    "var twice": (lambda r: _block(r)["vars"].append(copy.copy(_x(r))), "'x' is there twice"),
    "var without shape": (_drop(_x, "shape"), "variable 'x'.*'shape'"),
    "negative shape": (_set(_x, "shape", [-1, 3]), "variable 'x'.*shape"),
    "shape of text": (_set(_x, "shape", ["2", 3]), "variable 'x'.*'shape'"),
    "bool in a shape": (_set(_x, "shape", [True, 3]), "variable 'x'.*'shape'"),
    "strides": (_set(_x, "strides", [4]), "variable 'x'.*strides"),
    "dtype": (_set(_x, "dtype", "float31"), "variable 'x'.*no dtype 'float31'"),
    "dtype of NumPy": (_set(_x, "dtype", "object"), "variable 'x'.*no dtype 'object'"),
    "device": (_set(_x, "device", "tpu"), "variable 'x'.*'tpu'"),
    "flag": (_set(_x, "persistable", 1), "variable 'x'.*'persistable'"),
    "constant's shape": (_set(_constant, "shape", [7]), "its value is of"),
    "unknown op": (_set(_mul, "type", "launch"), "no op 'launch'.*register"),
    "inputs": (_set(_mul, "inputs", []), "op 'mul'.*2 inputs.*0"),
    "too many inputs": (_set(_mul, "inputs", ["x"] * 3), "op 'mul'.*2 inputs.*3"),
    "unknown input": (_set(_mul, "inputs", ["x", "q"]), "op 'mul'.*'q'"),
    "unknown output": (_set(_mul, "outputs", ["q"]), "op 'mul'.*'q'"),
    "input of another type": (_set(_mul, "inputs", ["x", 3]), "op 'mul'.*'inputs'"),
    "order": (lambda r: _block(r)["ops"].reverse(), "nothing makes its input"),
    "role": (_set(_mul, "role", "none"), "op 'mul'.*role 'none'"),
    "location": (_set(_mul, "location", ["a", "b", "c"]), "op 'mul'.*'location'"),
    "returns_tuple": (_set(_mul, "returns_tuple", None), "op 'mul'.*'returns_tuple'"),
    "false returns_tuple": (_set(_mul, "returns_tuple", True), "op 'mul': it returns an array"),
    "more in an op": (_set(_mul, "more", 1), "unknown entry 'more'"),
    "unknown attribute": (_set(_mask_attrs, "q", 1), "op 'dropout_mask'.*no attribute 'q'"),
    "missing attribute": (_drop(_mask_attrs, "p"), "op 'dropout_mask'.*'p' is missing"),
    "device of no creation": (_set(_mask_attrs, "device", None), "no attribute 'device'"),
    "attrs of a list": (_set(_mask, "attrs", []), "op 'dropout_mask'.*'attrs'"),
    "generator": (_set(_mask_attrs, "generator", {"generator": "own"}), "generator 'own'"),
    "attribute's kind": (_set(_mask_attrs, "p", {"code": "1"}), "unknown kind 'code'"),
    "attribute of two kinds": (_set(_mask_attrs, "p", {"dtype": "bool", "op": "mul"}), "dict"),
    "attribute's op": (_set(_mask_attrs, "p", {"op": "launch"}), "no op 'launch'"),
    "attribute's dtype": (_set(_mask_attrs, "p", {"dtype": 3}), "no dtype 3"),
    "attribute's block": (_set(_mask_attrs, "p", {"block": 1}), "no block 1"),
    "attribute's array": (_set(_mask_attrs, "p", {"array": 1}), "no array"),
    "attribute's slice": (_set(_mask_attrs, "p", {"slice": [1, 2, 3, 4]}), "no slice"),
    "attribute's complex": (_set(_mask_attrs, "p", {"complex": "ab"}), "no complex"),
    "attribute's dict": (_set(_mask_attrs, "p", {"dict": [1]}), "no dict"),
    "attribute's device": (_set(_mask_attrs, "p", {"device": None}), "no device None"),
    "attribute's slice of a number": (_set(_mask_attrs, "p", {"slice": 1}), "no slice"),
    "no variables": (_drop(_all, "variables"), "no variables"),
    "missing value": (lambda r: r["variables"].pop(_parameter(r)["name"]), "has no value"),
    "value of text": (lambda r: r["variables"].update({_parameter(r)["name"]: "1"}), "no value"),
    "another shape": (
        lambda r: r["variables"].update({_parameter(r)["name"]: flow.ones(7)}),
        r"is of float32\[7\], not of",
    ),
    "another dtype": (
        lambda r: r["variables"].update({_parameter(r)["name"]: flow.ones(4, 3).double()}),
        r"is of float64",
    ),
    "a value too many": (_set(_variables, "q", flow.ones(2)), "'q', which is no such variable"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_a_record_that_cannot_be(tmp_path: Path, case: tuple[Any, str]) -> None:
    change, reason = case
    path = saved(tmp_path)
    record = flow.load(path)
    assert record["format"] == FORMAT
    change(record)
    flow.save(record, path)
    refused(path, reason)


def _made(record: Any) -> Any:
    """Return the description of what the last op with an output of two dimensions makes."""
    for op in reversed(_block(record)["ops"]):
        var = _var(record, name=op["outputs"][0])
        if len(var["shape"]) == 2 and not (var["persistable"] or var["value"]):
            return var
    raise AssertionError


LIES = {"shape": [3_000_000, 3], "dtype": "float64", "strides": [4_000_000, 4]}


@pytest.mark.parametrize("field", LIES)
def test_a_description_that_lies(tmp_path: Path, field: str) -> None:
    path = saved(tmp_path)
    record = flow.load(path)
    var = _made(record)
    var[field] = LIES[field]
    flow.save(record, path)
    refused(path, f"op '.*{var['name']}")


def test_a_lie_about_what_a_block_is_given(tmp_path: Path) -> None:
    path = tmp_path / "p"
    main = flow.static.Program()
    with flow.static.program_guard(main, flow.static.Program()):
        x = flow.static.data("x", [3])
        flow.static.nn.while_loop(lambda x: x.sum() < 9, lambda x: x + 1, [x])
    save(main, path)
    changed = 0
    for number in (1, 2):
        record = flow.load(path)
        for var in record["blocks"][number]["vars"]:
            if var["shape"] == [3]:
                var["shape"] = [4_000_000]
                changed += 1
        flow.save(record, path)
        refused(path, "op 'while_loop'.*described as float32.4000000")
        save(main, path)
    assert changed > 2


def test_a_constant_may_have_gaps_and_a_feed_may_not(tmp_path: Path) -> None:
    path, program = tmp_path / "p", Program()
    value = np.arange(12.0).reshape(3, 4)[:, ::2]
    desc = VarDesc("c", (3, 2), value.dtype, value=value, strides=value.strides)
    program.global_block().create_var(desc)
    save(program, path)
    found = load(path)[0].global_block().vars["c"].value
    assert found.strides == value.strides and found.tolist() == value.tolist()
    given = VarDesc("x", (3, 2), value.dtype, need_check_feed=True, strides=value.strides)
    program.global_block().create_var(given)
    save(program, path)
    refused(path, "'x': its strides leave gaps")


def test_the_description_is_json_in_the_header(tmp_path: Path) -> None:
    path = saved(tmp_path)
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    metadata = json.loads(data[8 : 8 + length])["__metadata__"]
    described = json.loads(metadata["oneflow_lite"])["root"]["dict"]
    assert [key for key, _ in described] == ["format", "version", "blocks", "variables"]


def test_the_page_lists_all_kinds_of_attributes() -> None:
    page = Path(__file__).parents[3].joinpath("docs", "program_format.md").read_text("utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert listed == sorted([*READERS, "block"])


@pytest.mark.parametrize("op", ["as_strided_grad", "as_strided_grad_grad", "unfold", "adam_update"])
def test_an_op_that_would_leave_its_memory(tmp_path: Path, op: str) -> None:
    program, scope, F = Program(), Scope(), np.dtype("float32")
    block = program.global_block()
    for name, shape in (("x", (64,)), ("m", (3,)), ("one", ())):
        block.create_var(VarDesc(name, shape, F, need_check_feed=True))
    strided = {"size": (2,), "stride": (1,), "storage_offset": 0, "shape": (2,), "strides": (1,)}
    inputs: dict[str, tuple[str | None, ...]] = {
        "adam_update": ("x", "x", "x", "m", None, "one", "one", "one", "one", "one", None)
    }
    shapes = {"as_strided_grad": (2,), "as_strided_grad_grad": (2,), "unfold": (80, 65)}
    attrs: dict[str, Any] = {"adam_update": {}, "unfold": {"dimension": 0, "size": 65, "step": -1}}
    output = "x"
    if op in shapes:
        block.create_var(VarDesc("y", shapes[op], F))
        output = "y"
    block.append_op(OpDesc(op, inputs.get(op, ("x",)), (output,), attrs.get(op, strided)))
    save(program, tmp_path / "p", scope)
    with pytest.raises(SerializationError, match=f"op '{op}'"):
        load(tmp_path / "p")
