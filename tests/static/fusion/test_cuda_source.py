"""Sources for CUDA: NVRTC compiles each, and emulated on the CPU each gives what NumPy gives."""

import numpy as np
import pytest

from oneflow_lite.arrays.device import Device
from oneflow_lite.interpreter.stack import Interpreter, push_interpreter
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import KERNELS
from oneflow_lite.ops.scalar_expression import scalar_of
from oneflow_lite.static.fusion import cuda_source
from oneflow_lite.static.fusion.cuda_source import (
    CUDA_DTYPES,
    OPTIONS,
    THREADS,
    cuda_source_of,
)
from oneflow_lite.static.runtime.passes.grouping import Grouping
from tests.op_samples import every_op, samples
from tests.static.build import Builder, run_plainly
from tests.static.fusion import nvrtc
from tests.strict_cupy import emulation

needs_compiler = pytest.mark.skipif(emulation.COMPILER is None, reason="no C++ compiler is here")
RNG = np.random.default_rng(0)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, -3.0, 1e-3, -1e3, np.inf, -np.inf, np.nan]


@pytest.fixture(autouse=True)
def place(monkeypatch):
    """Programs of a device that is not there: sources need none."""
    monkeypatch.setattr(Builder, "place", Device("cuda", 0))
    monkeypatch.setattr(Builder, "on_place", lambda self, array: array)


def groups_of(b, *fetches):
    """Return the plan, and the groups that the pass would make; single ops are groups too."""
    plan = b.plan(*fetches)
    grouping = Grouping(plan)
    grouping.groups()
    found = [*grouping.closed, *grouping.open]
    users = grouping.users(found)
    return plan, [grouping.group(each, users) for each in found]


def sources(b, *fetches, packed=True):
    plan, groups = groups_of(b, *fetches)
    assert groups
    return [(g, cuda_source_of(g, plan.block, packed=packed)) for g in groups]


def guarded(array, fill):
    """Copy an array to where the memory around it, and its own if `fill`, is no number."""
    memory = np.full(array.nbytes + 128, 0xFF, np.uint8)
    begin = 64 - memory.ctypes.data % 64
    inner = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    if not fill:
        inner[...] = array
    return inner


def emulated(b, group, source, text, *, backwards=False, suffix=""):
    """Run a group's kernels; return its outputs by name."""
    values = run_plainly(b.program, {n: np.copy(x) for n, x in b.initial.items()})
    arrays = [guarded(np.asarray(values[n]), False) for n in group.inputs]
    outputs = [guarded(np.asarray(values[n]), True) for n in group.outputs]
    arrays += outputs + [np.full(n, np.nan) for n in source.parts]
    for name, grid in source.launches:
        emulation.launch(text, name + suffix, grid, THREADS, arrays, backwards=backwards)
    return dict(zip(group.outputs, outputs, strict=True)), values


def differences(b, *fetches, packed=True, change=None, backwards=False):
    """Return the outputs that differ from NumPy's; `change` is made to each text first."""
    found = []
    for group, source in sources(b, *fetches, packed=packed):
        text = source.text if change is None else change(source.text)
        try:
            made, wanted = emulated(b, group, source, text, backwards=backwards)
        except RuntimeError as error:
            found.append(str(error))
            continue
        for name, value in made.items():
            want = wanted[name]
            tolerance = {"e": 4e-3, "f": 2e-6}.get(want.dtype.char, 1e-13)
            if want.dtype.kind == "f":
                scale = tolerance * max(1.0, float(np.abs(want[np.isfinite(want)]).max(initial=0)))
                same = np.allclose(value, want, tolerance, scale, equal_nan=True)
            else:
                same = np.array_equal(value, want)
            if not same:
                found.append(name)
    return found


def values(shape, dtype):
    if np.dtype(dtype).kind == "f":
        return RNG.standard_normal(shape).astype(dtype)
    return RNG.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)


def rows_and_columns(shape, dtype):
    """Operands of all kinds, results of all kinds."""
    b = Builder()
    x, column = b.feed("x", values(shape, dtype)), b.feed("c", values(shape[1:], dtype))
    row, number = b.feed("r", values((shape[0], 1), dtype)), b.feed("n", values((), dtype))
    y = b.op("mul", b.op("add", b.op("tanh", x), column), row)
    z = b.op("mul", b.op("gt", y, number), y)
    ends = [b.op("sum", z, dim=(0,), keepdim=False), b.op("mean", y, dim=(1,), keepdim=True)]
    return b, (y, b.op("mean", z, dim=(0, 1), keepdim=False), *ends)


SHAPES = [(1, 1), (7, 10), (5, 1000), (300, 33), (2, 5000), (601, 130)]


@pytest.mark.slow(but=2)
@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("blocks", ["many", "few"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_and_columns(shape, dtype, blocks, monkeypatch):
    if blocks == "few":  # each goes on to further rows
        monkeypatch.setattr(cuda_source, "_MOST_PARTS", 3)
        monkeypatch.setattr(cuda_source, "_MOST_BLOCKS", 2)
    b, ends = rows_and_columns(shape, dtype)
    assert differences(b, *ends, backwards=True) == []
    assert differences(b, *ends, packed=False) == []


@pytest.mark.slow(but=2)
@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64"])
@pytest.mark.parametrize("size", [1, 3, 1025, 20_001])
def test_flat_groups(size, dtype, monkeypatch):
    monkeypatch.setattr(cuda_source, "_MOST_PARTS", 3)
    monkeypatch.setattr(cuda_source, "_MOST_BLOCKS", 2)
    b = Builder()
    x, n = b.feed("x", values(size, dtype)), b.feed("n", values((), dtype))
    y = b.op("mul", b.op("abs", x), n)
    ends = [y, b.op("gt", y, x)]
    if np.dtype(dtype).kind == "f":
        ends.append(b.op("sum", y, dim=(0,), keepdim=False))
    assert differences(b, *ends) == []
    assert differences(b, *ends, packed=False) == []


@needs_compiler
@pytest.mark.parametrize("shape", [(40, 5_000), (3, 30_000)], ids=str)
def test_many_columns_are_divided_among_blocks(shape):
    b = Builder()
    y = b.op(
        "add", b.feed("x", values(shape, "float32")), b.feed("c", values(shape[1:], "float32"))
    )
    columns = b.op("sum", y, dim=(0,), keepdim=False)
    ((_, source),) = sources(b, y, columns)
    assert source.launches[0][1][0] > 1
    assert differences(b, y, columns) == []


@needs_compiler
def test_columns_beyond_the_registers_leave_a_part_for_each_row():
    b = Builder()
    y = b.op("exp", b.feed("x", values((2, 70_000), "float32")))
    ends = [b.op("sum", y, dim=(d,), keepdim=False) for d in (0, 1)]
    ((_, source),) = sources(b, *ends)
    assert source.parts == [140_000]
    assert differences(b, *ends) == []


def test_indices_have_64_bits_where_they_need_them():
    b = Builder()
    b.op("neg", b.op("exp", b.feed("x", np.zeros((4, 6)))))
    plan, (group,) = groups_of(b, b.block.ops[-1].outputs[0])
    assert "(int)blockIdx.x" in cuda_source_of(group, plan.block).text
    group.shape = (1 << 30,)
    assert "(long long)blockIdx.x" in cuda_source_of(group, plan.block).text


def lines(shape, dtype):
    """Softmax and its gradient: four passes over each line; the last reads the result again."""
    b = Builder()
    x, dy = b.feed("x", values(shape, dtype)), b.feed("dy", values(shape, dtype))
    y = b.op("softmax", b.op("neg", x), dim=1)
    dx = b.op("mul", y, dy)
    dx = b.op("mul", y, b.op("sub", dy, b.op("sum", dx, dim=(1,), keepdim=True)))
    return b, (y, dx, b.op("sum", dx, dim=(0,), keepdim=False))


@pytest.mark.slow(but=1)
@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", SHAPES[1:], ids=str)
def test_lines_in_several_passes(shape, dtype, monkeypatch):
    monkeypatch.setattr(cuda_source, "_MOST_PARTS", 3)
    b, ends = lines(shape, dtype)
    ((_, source),) = sources(b, *ends)
    assert source.text.count("= team<") == 3
    assert differences(b, *ends, backwards=True) == []
    assert differences(b, *ends, packed=False) == []


def test_what_a_kernel_cannot_take_is_refused():
    b = Builder()
    y = b.feed("x", np.zeros(8))
    ends = [y := b.op("add", y, b.feed(f"x{i}", np.zeros(8))) for i in range(255)]
    with pytest.raises(ValueError, match="511 arrays"):
        sources(b, *ends)


# A wrong index, a missing barrier, a sum that stops early: each has to be noticed.
WIDE, LONG = (5, 1000), (601, 130)  # rows of a whole block each, and of a warp each
CHANGES = {
    "another row": (WIDE, "const auto p0 = row * 1000;", "const auto p0 = row * 996;"),
    "a column further": (WIDE, "* 256 + lane) * 4;", "* 256 + lane + 1) * 4;"),
    "threads beside the row": (WIDE, "if (alive && j < 1000)", "if (alive)"),
    "not aligned": (WIDE, "(a0 + p0 + j)", "(a0 + p0 + j + 1)"),
    "no barrier": (WIDE, "__syncthreads();  // an earlier", "// an earlier"),
    "a barrier that some pass": (
        WIDE, "const auto rt6_1_ =", "if (lane == 3) continue; const auto rt6_1_ =",
    ),
    "an operand of another row": (WIDE, "x2 = value(a2[row])", "x2 = value(a2[0])"),
    "an operand of another column": (WIDE, "(a1 + j)", "(a1 + 0)"),
    "rows beside the last": (LONG, "const bool alive =", "const bool alive = true ||"),
    "rows that are left out": (LONG, "gridDim.y * 8)", "gridDim.y * 16)"),
    "half a warp": (LONG, "other; other /= 2", "other > 1; other /= 2"),
    "parts that are left out": (LONG, "p += 8)", "p += 16)"),
    "parts of another column": (LONG, "(long long)130 + j] = sum", "(long long)130] = sum"),
    "teams that are left out": (LONG, "half >= T", "half > T"),
}  # fmt: skip
CHANGES_OF_LINES = {
    "no barrier between two passes": (WIDE, "__syncthreads();  // an earlier", "// an earlier"),
    "no barrier in a pass": (WIDE, "= x;\n    __syncthreads();\n    x =", "= x;\n    x ="),
    "a warp left out": (WIDE, "warp = 1; warp < T / 32", "warp = 2; warp < T / 32"),
    "a maximum of one thread": (WIDE, "team<256, Highest>(rt1_1)", "rt1_1"),
    "half a warp": (LONG, "other; other /= 2", "other > 1; other /= 2"),
    "the result of another thread": (WIDE, "(y0 + p0 + j);", "(y0 + p0 + (j + 4) % 1000);"),
    "the result of another row": (LONG, "(y0 + p0 + j);", "(y0 + j);"),
    "a pass that stops early": (LONG, "k < 3; ++k) {", "k < 2; ++k) {"),
    "rows beside the last": (LONG, "const bool alive =", "const bool alive = true ||"),
}
CASES = [
    *[(rows_and_columns, *each) for each in CHANGES.values()],
    *[(lines, *each) for each in CHANGES_OF_LINES.values()],
]


@pytest.mark.slow(but=3)
@needs_compiler
@pytest.mark.parametrize("case", CASES, ids=[*CHANGES, *[f"{n}, lines" for n in CHANGES_OF_LINES]])
def test_the_emulation_notices(case, monkeypatch):
    monkeypatch.setattr(cuda_source, "_MOST_PARTS", 32)
    make, shape, before, after = case
    b, ends = make(shape, "float32")
    seen = []

    def changed(text):
        seen.append(before in text)
        return text.replace(before, after)

    forwards = differences(b, *ends, change=changed)
    assert any(seen), "nothing was changed"
    assert forwards or differences(b, *ends, change=changed, backwards=True)


# Every op with an expression, in every dtype


class Seen(Interpreter):
    """Collects the ops whose arrays have the places that shapes tell, and their attributes."""

    def __init__(self):
        self.calls = {}

    def apply(self, op_expr, inputs, attrs):
        name = op_expr.op_type_name
        scalar = scalar_of(name, attrs)
        if scalar is not None and scalar.lines is None:
            self.calls[name, repr(attrs)] = (attrs, tuple(x is not None for x in inputs))
        return self.inner.apply(op_expr, inputs, attrs)


def every_call():
    found = {}
    for op in every_op():
        for sample in samples(op, "cpu"):
            if not sample.control_flow:
                seen = Seen()
                with push_interpreter(seen):
                    sample.call(*sample.tensors())
                found.update({k: v for k, v in seen.calls.items() if k[0] == op})
    return found


def of_every_op(dtype):
    """Return a builder and the outputs of all ops that take this dtype, on special values."""
    special = np.array(SPECIAL if np.dtype(dtype).kind == "f" else [0, 1, 2, 3, 100])
    grid = np.meshgrid(special, special, [0, 1, 2.5] if dtype[0] == "f" else [0, 1])
    operands = [g.astype(dtype).reshape(-1, 11 if dtype[0] == "f" else 5) for g in grid]
    b = Builder()
    x = [b.feed(f"x{i}", each) for i, each in enumerate(operands)]
    condition = b.feed("condition", operands[0] > 0)
    ends = []
    for (name, _), (attributes, given) in sorted(every_call().items(), key=lambda c: c[0]):
        parameters = op_expr(name).schema.inputs
        inputs = [condition if p == "condition" else x[i] for i, p in enumerate(parameters)]
        if dtype[0] != "f" and (KERNELS.get(name).ufunc is None or name == "reciprocal"):
            continue  # functors make floats of integers before
        try:
            ends.append(b.op(name, *inputs[: len(given)], **attributes))
        except (TypeError, IndexError):
            continue  # not an op of this dtype, or one of more dimensions
    return b, ends


def prepared(dtype):
    """Return a builder, and each group of a single op with its source."""
    b, ends = of_every_op(dtype)
    plan = b.plan(*ends)
    grouping = Grouping(plan)
    found = []
    for op in plan.block.ops:
        if grouping._eligible(op) is not None:
            group = grouping.alone(op)
            found.append((group, cuda_source_of(group, plan.block)))
    return b, found


ALL_DTYPES = sorted(map(str, CUDA_DTYPES))


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_every_expression_in_every_dtype(dtype):
    """By the emulation, and by NVRTC, where it is installed."""
    b, found = prepared(dtype)
    assert len(found) > {"f": 40, "b": 5}.get(dtype[0], 15)
    text = nvrtc.merged([source.text for _, source in found])
    wrong = []
    for i, (group, source) in enumerate(found):
        (name,) = group.outputs
        made, wanted = emulated(b, group, source, text, suffix=f"_{i}")
        made, want = made[name], wanted[name]
        tolerance = {"e": 4e-3, "f": 4e-6}.get(want.dtype.char, 1e-13)
        if not np.allclose(made, want, tolerance, tolerance, equal_nan=True):
            at = ~np.isclose(made, want, tolerance, tolerance, equal_nan=True)
            wrong.append((group.ops[0].type, made[at][:4], want[at][:4]))
    assert not wrong
    if nvrtc.library() is not None:
        assert nvrtc.problems(text, OPTIONS) == ""
