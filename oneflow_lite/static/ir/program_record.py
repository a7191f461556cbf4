"""Programs as plain data that `flow.save` writes, and back; everything that is read is checked."""

from __future__ import annotations

from inspect import Parameter
from typing import Any

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.errors import FlowError, SerializationError
from oneflow_lite.ops.registry import KERNELS
from oneflow_lite.static.ir.attribute_record import (
    read_attribute,
    read_device,
    read_dtype,
    write_attribute,
)
from oneflow_lite.static.ir.descriptions import check_descriptions
from oneflow_lite.static.ir.program import Block, Location, OpDesc, Program, VarDesc
from oneflow_lite.tensors.tensor import Tensor, make_tensor

ROLES = ("forward", "backward", "optimize")
Record = dict[str, Any]
_VAR = (
    "name", "shape", "dtype", "persistable", "stop_gradient", "need_check_feed", "is_parameter",
    "strides", "device", "value",
)  # fmt: skip
_OP = ("type", "inputs", "outputs", "attrs", "role", "returns_tuple", "location")


def write_program(program: Program) -> list[Record]:
    """Return a record for each block.

    Raises
    ------
    SerializationError
        When an attribute cannot be written; the text names it and its op.
    """
    return [
        {
            "parent": block.parent_idx,
            "vars": [_write_var(desc) for desc in block.vars.values()],
            "ops": [_write_op(op) for op in block.ops],
        }
        for block in program.blocks
    ]


def _write_var(desc: VarDesc) -> Record:
    return {
        "name": desc.name,
        "shape": list(desc.shape),
        "dtype": desc.dtype.name,
        "persistable": desc.persistable,
        "stop_gradient": desc.stop_gradient,
        "need_check_feed": desc.need_check_feed,
        "is_parameter": desc.is_parameter,
        "strides": None if desc.strides is None else list(desc.strides),
        "device": str(desc.device),
        "value": None if desc.value is None else make_tensor(desc.value),
    }


def _write_op(op: OpDesc) -> Record:
    attributes = {}
    for name, value in op.attrs.items():
        try:
            attributes[name] = write_attribute(value)
        except SerializationError as error:
            raise SerializationError(
                f"static.save(): attribute {name!r} of {op}: {error}; use an op without it"
            ) from None
    at = op.location
    return {
        "type": op.type,
        "inputs": list(op.inputs),
        "outputs": list(op.outputs),
        "attrs": attributes,
        "role": op.role,
        "returns_tuple": op.returns_tuple,
        "location": None if at is None else [at.filename, at.line, at.function],
    }


def read_program(records: Any) -> Program:
    """Return the Program of a list of records.

    Raises
    ------
    SerializationError
        When a record is incomplete or invalid: it names an unknown op, an attribute that the op
        does not have, or a variable that nothing makes.
    """
    if type(records) is not list or not records:
        raise SerializationError("it has no blocks")
    program = Program()
    for idx, record in enumerate(records):
        check_keys(record, "parent", "vars", "ops")
        parent = _field(record, "parent", int)
        if parent not in range(idx) and (idx, parent) != (0, -1):
            raise SerializationError(f"block {idx} cannot be inside block {parent}")
        block = program.global_block() if idx == 0 else program.create_block(program.blocks[parent])
        for var in _field(record, "vars", list):
            desc = _read_var(var)
            if desc.name in block.vars:
                raise SerializationError(f"the variable {desc.name!r} is there twice")
            block.create_var(desc)
    for block, record in zip(program.blocks, records, strict=True):
        for op in _field(record, "ops", list):
            block.append_op(_read_op(op, block))
    _check_order(program.global_block())
    check_descriptions(program)
    return program


def check_keys(record: Any, *keys: str) -> None:
    """Raise when a record has other entries than these."""
    other = [key for key in record if key not in keys] if type(record) is dict else []
    if other:
        raise SerializationError(f"a record has the unknown entry {other[0]!r}")


def _field(record: Any, key: str, *kinds: Any) -> Any:
    """Return an entry of a record that is of one of these types."""
    if type(record) is not dict or key not in record:
        raise SerializationError(f"a record has no {key!r}")
    if type(record[key]) not in kinds:
        raise SerializationError(f"{key!r} is given as {type(record[key]).__name__}")
    return record[key]


def _items(record: Any, key: str, *kinds: Any) -> tuple[Any, ...]:
    """Return a list in a record whose items are of some types."""
    items = _field(record, key, list)
    if any(type(item) not in kinds for item in items):
        raise SerializationError(f"{key!r} is given as {items}")
    return tuple(items)


def _read_var(record: Any) -> VarDesc:
    check_keys(record, *_VAR)
    name = _field(record, "name", str)
    try:
        shape = _items(record, "shape", int)
        strides = None
        if _field(record, "strides", list, type(None)) is not None:
            strides = _items(record, "strides", int)
        if any(size < 0 for size in shape) or (strides and len(strides) != len(shape)):
            raise SerializationError(f"shape {shape} and strides {strides} cannot be")
        desc = VarDesc(
            name,
            shape,
            read_dtype(_field(record, "dtype", str)),
            _field(record, "persistable", bool),
            _field(record, "stop_gradient", bool),
            _field(record, "need_check_feed", bool),
            _field(record, "is_parameter", bool),
            strides,
            read_device(_field(record, "device", str)),
        )
        value = _field(record, "value", Tensor, type(None))
        if value is not None:
            desc.value = _constant(desc, value)
    except FlowError as error:
        raise SerializationError(f"variable {name!r}: {error}") from None
    return desc


def _constant(desc: VarDesc, value: Tensor) -> Any:
    """Return the content of a constant, which must not be written."""
    if value.shape != desc.shape or value.dtype != desc.dtype:
        raise SerializationError(
            f"its value is of {value.dtype}{list(value.shape)}, not of "
            f"{desc.dtype}{list(desc.shape)}"
        )
    if desc.device.type != "cpu":
        return desc.device.put(value.numpy())
    array = ArraySpec(desc.shape, desc.dtype, desc.strides).allocate()
    array[...] = value.numpy()
    array.flags.writeable = False
    return array


def _read_op(record: Any, block: Block) -> OpDesc:
    check_keys(record, *_OP)
    kind = _field(record, "type", str)
    if kind not in KERNELS:
        raise SerializationError(
            f"there is no op {kind!r}; register it before loading, or use a newer oneflow_lite"
        )
    try:
        location = _field(record, "location", list, type(None))
        op = OpDesc(
            kind,
            _items(record, "inputs", str, type(None)),
            _items(record, "outputs", str),
            {
                name: read_attribute(data, block.program.blocks)
                for name, data in _field(record, "attrs", dict).items()
            },
            None if location is None else _read_location(record),
            _field(record, "role", str),
            _field(record, "returns_tuple", bool),
        )
        _check_op(op, block)
    except FlowError as error:
        raise SerializationError(f"op {kind!r}: {error}") from None
    return op


def _read_location(record: Any) -> Location:
    parts = _items(record, "location", str, int)
    if list(map(type, parts)) != [str, int, str]:
        raise SerializationError(f"'location' is given as {parts}")
    return Location(*parts)


def _check_op(op: OpDesc, block: Block) -> None:
    """Raise unless an op fits its kernel and its variables are there."""
    schema = op.schema
    if op.role not in ROLES:
        raise SerializationError(f"there is no role {op.role!r}")
    count = len(schema.inputs)
    if len(op.inputs) < count or (len(op.inputs) > count and schema.variadic is None):
        raise SerializationError(f"it takes {count} inputs, the file gives {len(op.inputs)}")
    known = {*schema.attrs, *(("device",) if not op.inputs else ())}
    wrong = sorted(set(op.attrs) - known)
    if wrong:
        raise SerializationError(f"it has no attribute {wrong[0]!r}")
    for name, default in schema.attrs.items():
        if name not in op.attrs and default is Parameter.empty:
            raise SerializationError(f"its attribute {name!r} is missing")
    for name in (*op.reads, *op.outputs):
        block.var(name)


def _check_order(block: Block) -> None:
    """Raise when an op reads what is neither given nor made before it."""
    known = {name for name, desc in block.vars.items() if not desc.is_temporary}
    for op in block.ops:
        for name in op.reads:
            if name not in known:
                raise SerializationError(f"op {op.type!r}: nothing makes its input {name!r}")
        known.update(op.outputs)
