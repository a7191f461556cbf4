"""The texts of print(program) and to_dot()."""

from __future__ import annotations

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.static.ir.program import Location, OpDesc, Program, VarDesc

F32 = np.dtype("float32")


def program() -> Program:
    """A program with every kind of variable and role, and a sub-block."""
    program = Program()
    block = program.global_block()
    block.create_var(VarDesc("x", (2, 3), F32, need_check_feed=True))
    block.create_var(VarDesc("w", (3,), F32, persistable=True, is_parameter=True))
    block.create_var(VarDesc("count", (), np.dtype("int64"), persistable=True))
    block.create_var(VarDesc("one", (), np.dtype("int64"), value=np.array(1)))
    block.create_var(VarDesc("table", (3, 3), F32, value=np.zeros((3, 3), F32)))
    block.create_var(VarDesc("y", (2, 3), F32))
    block.create_var(VarDesc("z", (6,), F32))
    here = Location("/some/where/model.py", 12, "forward")
    block.append_op(OpDesc("mul", ("x", "w"), ("y",), {}, here))
    block.append_op(OpDesc("reshape", ("y",), ("z",), {"shape": (6,)}, here))
    block.append_op(OpDesc("update_running", ("w", "z"), ("w",), {"momentum": 0.1}, None))
    block.ops[-1].role = "optimize"
    block.append_op(OpDesc("setitem_", ("y", None), (), {"index": (..., 0), "fill": 1.5}, here))
    block.ops[-1].role = "backward"
    inner = program.create_block(block)
    inner.create_var(VarDesc("inner", (2, 3), F32))
    inner.append_op(OpDesc("relu", ("y",), ("inner",)))
    block.append_op(OpDesc("relu", ("y",), ("y",), {"body": inner}))
    return program


LISTING = """\
block 0
  feed x: float32[2, 3]
  parameter w: float32[3]
  persistable count: int64[]
  constant one: int64[] = 1
  constant table: float32[3, 3]
  y = mul(x, w) -> float32[2, 3]  # model.py:12
  z = reshape(y)  {shape=(6,)} -> float32[6]  # model.py:12
  w = update_running(w, z)  {momentum=0.1} -> float32[3]  [optimize]
  setitem_(y, None)  {index=(Ellipsis, 0), fill=1.5} -> nothing  [backward]  # model.py:12
  y = relu(y)  {body=block 1} -> float32[2, 3]

block 1 in block 0
  inner = relu(y) -> float32[2, 3]"""


def test_the_listing_of_a_program() -> None:
    listed = program()
    assert str(listed) == LISTING
    assert str(listed.global_block()) == LISTING.split("\n\n")[0]
    assert str(listed.global_block().ops[1]) == "z = reshape(y)  {shape=(6,)}  # model.py:12"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (F32, "float32"),
        (flow.device("cuda:1"), "cuda:1"),
        (slice(1, None), "slice(1, None, None)"),
        (np.arange(3), "[0, 1, 2]"),
        (np.zeros((3, 3)), "float64[3, 3]"),
        (flow.default_generator, "default"),
        (((op_expr("select"), {"dim": 0}),), "((select, {dim=0}),)"),
        (["a", None], "['a', None]"),
        (-0.0, "-0.0"),
    ],
)
def test_attributes_are_short(value: object, text: str) -> None:
    assert str(OpDesc("op", (), ("y",), {"a": value})) == f"y = op()  {{a={text}}}"


def test_variables_on_a_device_say_so() -> None:
    listed = Program()
    desc = VarDesc("x", (2,), F32, need_check_feed=True, device=flow.device("cuda:0"))
    listed.global_block().create_var(desc)
    assert "feed x: float32[2] on cuda:0" in str(listed)


PICTURE = """\
digraph {
  rankdir=TB
  node [shape=box, fontname="monospace", fontsize=10]
  edge [fontname="monospace", fontsize=9]
  v0 [label="x\\nfloat32[2, 3]", shape=ellipse]
  v1 [label="w\\nfloat32[3]", shape=ellipse, style=filled]
  v2 [label="y\\nfloat32[2, 3]", shape=ellipse]
  op0_0 [label="mul"]
  v0 -> op0_0
  v1 -> op0_0
  op0_0 -> v2
  v3 [label="z\\nfloat32[6]", shape=ellipse]
  op0_1 [label="reshape\\n{shape=(6,)}"]
  v2 -> op0_1
  op0_1 -> v3
  op0_2 [label="update_running\\n{momentum=0.1}", style=filled, fillcolor="mistyrose"]
  v1 -> op0_2
  v3 -> op0_2
  op0_2 -> v1 [style=dashed]
  op0_3 [label="setitem_\\n{index=(Ellipsis, 0), fill=1.5}", style=filled, fillcolor="lightyellow"]
  v2 -> op0_3
  op0_3 -> v2 [style=dashed]
  op0_4 [label="relu\\n{body=block 1}"]
  v2 -> op0_4
  op0_4 -> v2
  subgraph cluster_1 {
    label="block 1"
    v4 [label="inner\\nfloat32[2, 3]", shape=ellipse]
    op1_0 [label="relu"]
    v2 -> op1_0
    op1_0 -> v4
  }
}"""


def test_the_picture_of_a_program() -> None:
    drawn = program()
    assert drawn.to_dot() == PICTURE
    assert drawn.to_dot() == drawn.to_dot()


def test_text_in_a_picture_is_escaped() -> None:
    drawn = Program()
    block = drawn.global_block()
    block.create_var(VarDesc('a "b"', (), F32, need_check_feed=True))
    block.append_op(OpDesc("relu", ('a "b"',), ('a "b"',), {"text": 'c\\"\n'}))
    dot = drawn.to_dot()
    assert r'label="a \"b\"\nfloat32[]"' in dot
    assert "\n".join(line for line in dot.splitlines() if "relu" in line).count("label=") == 1


def test_a_captured_program_shows_its_source_lines() -> None:
    main = flow.static.Program()
    with flow.static.program_guard(main, flow.static.Program()):
        flow.exp(flow.static.data("x", [2]))
    (line,) = [line for line in str(main).splitlines() if "exp" in line]
    assert "exp(x) -> float32[2]  # test_listing.py:" in line
