"""Checks that the variables of a Program are described as its ops make them.

Passes and machine code trust shapes, dtypes and strides, so each is inferred again: when a Program
is loaded from a file, and when an Executor analyses one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.errors import ArgumentError, SerializationError
from oneflow_lite.interpreter.infer import infer_outputs
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.static.ir.memory import is_dense, strides_of
from oneflow_lite.static.ir.program import Block, OpDesc, Program, VarDesc

Bound = tuple[VarDesc, VarDesc]  # a variable of a sub-block, and the one that it stands for


def check_shapes(program: Program) -> None:
    """Raise unless the results of ops have shapes and dtypes as inference describes them.

    This is for a Program of this process, which may have been changed since it was built.

    Raises
    ------
    ArgumentError
        Naming the op and the variable.
    """
    block = program.global_block()
    for op in block.ops:
        try:
            specs = _inferred(op, block)
            real = [VarDesc("", tuple(map(int, x.shape)), x.dtype) for x in specs]
        except Exception:  # a run says what is wrong with it
            continue
        for name, desc in zip(op.outputs, real, strict=False):
            if -1 not in desc.shape:
                try:
                    _check_alike(op, block.var(name), desc)
                except SerializationError as error:
                    raise ArgumentError(f"Executor.run(): {error}") from None


def check_descriptions(program: Program) -> None:
    """Raise unless every variable is as inference describes it.

    Raises
    ------
    SerializationError
        Naming the op and the variable.
    """
    for block in program.blocks:
        made = {name for op in block.ops for name in op.new_outputs}
        for desc in block.vars.values():
            # What is given is laid out densely; a constant is laid out as it is described.
            given = desc.name not in made and desc.value is None
            if given and 0 not in desc.shape and not is_dense(desc):
                raise SerializationError(f"variable {desc.name!r}: its strides leave gaps")
        for op in block.ops:
            try:
                _check_outputs(op, block)
                _check_blocks(op, block)
            except SerializationError:
                raise
            except Exception as error:  # inference refuses what is claimed
                text = f"op {op.type!r}: its outputs {op.outputs} cannot be inferred: {error}"
                raise SerializationError(text) from None


def _check_outputs(op: OpDesc, block: Block) -> None:
    specs = _inferred(op, block)
    if op.returns_tuple != (len(specs) != 1):
        returned = "an array" if len(specs) == 1 else "a tuple"
        raise SerializationError(
            f"op {op.type!r}: it returns {returned}, which is described otherwise"
        )
    if len(specs) != len(op.outputs):
        raise SerializationError(
            f"op {op.type!r}: it makes {len(specs)} variables, not {len(op.outputs)}"
        )
    for name, spec in zip(op.outputs, specs, strict=True):
        made = VarDesc(name, tuple(map(int, spec.shape)), spec.dtype, strides=spec.strides)
        claimed = block.var(name)
        _check_alike(op, claimed, made)
        if 0 not in made.shape and strides_of(claimed) != strides_of(made):
            raise SerializationError(
                f"op {op.type!r}: its output {name!r} has strides {strides_of(made)}, "
                f"described as {strides_of(claimed)}"
            )


def _inferred(op: OpDesc, block: Block) -> Sequence[ArraySpec]:
    return infer_outputs(op_expr(op.type), [_spec(block, name) for name in op.inputs], op.attrs)


def _spec(block: Block, name: str | None) -> ArraySpec | None:
    if name is None:
        return None
    desc = block.var(name)
    return ArraySpec(desc.shape, desc.dtype, desc.strides)


def _check_alike(op: OpDesc, claimed: VarDesc, real: VarDesc) -> None:
    if claimed.shape != real.shape or claimed.dtype != real.dtype:
        raise SerializationError(
            f"op {op.type!r}: the variable {claimed.name!r} is {real.type_text}, described "
            f"as {claimed.type_text}"
        )


def _check_blocks(op: OpDesc, block: Block) -> None:
    """Check the variables of sub-blocks that stand for variables around them."""
    if op.blocks:
        for inner, outer in _bound(op, block):
            _check_alike(op, inner, outer)


def _bound(op: OpDesc, block: Block) -> Iterator[Bound]:
    """Yield the variables of sub-blocks with those outside; `control_flow/kernels.py` runs them."""
    at = op.attrs
    if op.type in ("cond", "switch_case"):
        for branch, made in zip(at["blocks"], at["outputs"], strict=True):
            yield from _pairs(branch, at["names"], _outer(block, op.inputs[1:]))
            yield from _pairs(branch, made, _outer(block, op.outputs))
    elif op.type == "while_loop":
        for inner in (at["condition"], at["body"]):
            yield from _pairs(inner, at["names"], _outer(block, op.inputs))
        count = len(at["outputs"])
        yield from _pairs(at["body"], at["outputs"], _outer(block, op.inputs[:count]))
    elif op.type == "while_loop_grad":
        loop, captured, floats = at["sizes"]
        tape, *inputs = _outer(block, op.inputs)
        maker = next(each for each in block.ops if tape.name in each.new_outputs)
        body: Block = maker.attrs["body"]
        kept = [body.vars[name] for name in maker.attrs["kept"]]
        others, grads = inputs[: loop + captured], inputs[loop + captured :][:floats]
        yield from _pairs(at["backward"], at["names"], [*others, *kept, *grads])
        yield from _pairs(at["backward"], at["outputs"][:floats], grads)


def _outer(block: Block, names: Sequence[str | None]) -> list[VarDesc]:
    return [block.var(name) for name in names if name is not None]


def _pairs(inner: Block, names: Sequence[str], outer: Sequence[VarDesc]) -> Iterator[Bound]:
    for name, desc in zip(names, outer, strict=True):
        if name in inner.vars:  # a run ignores the others
            yield inner.vars[name], desc
