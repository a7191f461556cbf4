"""Matrix products of bfloat16 by an instruction of the processor's own, and rounding to bfloat16.

AVX-512 BF16 multiplies and adds 32 pairs of bfloat16 at once, in float32: four times as many as of
float32. No BLAS that comes with NumPy uses it. So machine code is made here, by llvmlite (extra
`jit`), in a tenth of a second, of text that this file writes. On one thread of an AMD EPYC (Zen 5)
it makes 500 GFLOPS of 512 x 512 matrices, OpenBLAS 127 of float32; PyTorch's takes the same time.

Y lies in panels of 32 columns, and there each pair of rows is one row of pairs. A tile of 8 rows of
x and a panel stays in registers until all pairs of a row are multiplied and added up.
"""

import ctypes
import functools
import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import address
from oneflow_lite.arrays.bfloat16_arrays import adopted, as_plain
from oneflow_lite.arrays.threads import in_threads, parts_of
from oneflow_lite.ops import eager_loops

_ROWS, _COLUMNS = 8, 32
_FEW = 1 << 20  # products for which float32 is as quick
_PER_NANOSECOND = 250  # products that one thread makes
_FEW_NUMBERS, _VECTOR = 1024, 16  # numbers that NumPy rounds as quickly; that are rounded at once
_built: list[Any] = []  # the machine code, once there is some: a short program makes none to round


def product(x, y):
    """Multiply x (..., M, K) and y (..., K, N), of bfloat16, or of float32 numbers that it holds.

    Returns float32 sums; None where the processor has no such instruction, or llvmlite is not
    installed, or it would not be quicker.
    """
    (m, k), n, batch = x.shape[-2:], y.shape[-1], ()
    if y.ndim > 2:
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        x, y = (np.broadcast_to(a, (*batch, *a.shape[-2:])) for a in (x, y))
    elif x.ndim > 2:  # one large product instead of one for every matrix of the batch
        rows = product(x.reshape(math.prod(x.shape[:-1]), k), y)
        return None if rows is None else rows.reshape(*x.shape[:-1], n)
    count = math.prod(batch)
    large = count * m * n * k >= _FEW and m * n * k * 32 >= _FEW
    code = _machine_code() if large and eager_loops.enabled else None
    if code is None:
        return None
    x, y = _bits(x).reshape(count, m, k), _bits(y).reshape(count, k, n)
    odd, turned = k % 2, y.strides[1] == 2
    if odd or x.strides[2] != 2 or m < _ROWS:
        x = _padded(x, max(m, _ROWS), k + odd)
    if odd or n % _COLUMNS or not (turned or y.strides[2] == 2):
        y, turned = _padded(y, k + odd, n + -n % _COLUMNS), False
    z = np.empty((count, x.shape[1], y.shape[2]), np.float32)
    panels = y.shape[2] // _COLUMNS
    x_at, y_at, z_at = address(x), address(y), address(z)
    (x_far, x_step, _), (z_far, z_step, _) = x.strides, z.strides
    y_far, *y_steps = y.strides
    across, y_step = y_steps[1] * _COLUMNS, y_steps[turned]  # to the next panel, and row
    sizes = x.shape[1], y.shape[1] // 2

    def work(begin, end):
        panel = np.empty(y.shape[1] * _COLUMNS, np.uint16)
        panel_at = address(panel)
        while begin < end:
            i, first = divmod(begin, panels)
            several = min(panels - first, end - begin)
            y_from = y_at + i * y_far + first * across
            z_from = z_at + i * z_far + first * 4 * _COLUMNS
            given = x_at + i * x_far, x_step, y_from, y_step, turned, panel_at, z_from, z_step
            code.product(*given, *sizes, several)
            begin += several

    parts = parts_of(count * m * n * k / _PER_NANOSECOND, count * panels)
    ends = [count * panels * part // parts for part in range(parts + 1)]
    in_threads([functools.partial(work, *pair) for pair in itertools.pairwise(ends)])
    return z[:, :m, :n].reshape(*batch, m, n)


def rounded(array, dtype):
    """Return an array as bfloat16: to the nearest number, ties to even."""
    code = _built[0] if _built and array.size >= _FEW_NUMBERS else None
    if code is None or array.dtype.char != "f" or not array.flags.c_contiguous:
        return adopted(array.astype(dtype))
    made = np.empty(array.shape, dtype)
    code.round(address(array), address(made), array.size - _VECTOR)
    return adopted(made)


def _bits(array):
    if array.dtype.char == "f":
        return (array.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return as_plain(array).view(np.uint16)


def _padded(array, rows, columns):
    """Return a copy in C order with zeros behind the rows and columns."""
    larger = np.zeros((len(array), rows, columns), array.dtype)
    larger[:, : array.shape[1], : array.shape[2]] = array
    return larger


@functools.cache
def _machine_code():
    try:
        return _build()
    except (ImportError, RuntimeError):  # not installed; or it does not know the processor
        return None


def _build():
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    if not features.get("avx512bf16") or llvm.llvm_version_info < (16,):  # which has other pointers
        return None
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features.flatten(), opt=3
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_text()), target)
    engine.finalize_object()
    code = SimpleNamespace(engine=engine)  # which owns the memory of the code
    for name, parameters in (("product", _PARAMETERS), ("round", ("x", "y", "last"))):
        kinds = [ctypes.c_void_p if each in "xypz" else ctypes.c_int64 for each in parameters]
        setattr(code, name, ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address(name)))
    _built.append(code)
    return code


# Addresses of x, y, a panel and z; the bytes from one row to the next of x, of y (of its transpose,
# if it is turned) and of z; rows of x, pairs in a row, panels.
_PARAMETERS = (
    "x",
    "x_step",
    "y",
    "y_step",
    "turned",
    "p",
    "z",
    "z_step",
    "rows",
    "pairs",
    "panels",
)

# The last vector is moved up, as the last rows of a product are.
_ROUND = """\
define void @round(ptr %x, ptr %y, i64 %last) {{
start:
  br label %next
next:
  %i = phi i64 [0, %start], [%next_i, %next]
  %from = getelementptr float, ptr %x, i64 %i
  %to = getelementptr i16, ptr %y, i64 %i
  %v = load <16 x i32>, ptr %from, align 4
  %kept = lshr <16 x i32> %v, {sixteen}
  %odd = and <16 x i32> %kept, {one}
  %half = add <16 x i32> %odd, {half}
  %up = add <16 x i32> %v, %half
  %near = lshr <16 x i32> %up, {sixteen}
  %size = and <16 x i32> %v, {size}
  %is_nan = icmp ugt <16 x i32> %size, {inf}
  %sign = and <16 x i32> %kept, {sign}
  %nan = or <16 x i32> %sign, {nan}
  %y_32 = select <16 x i1> %is_nan, <16 x i32> %nan, <16 x i32> %near
  %y_16 = trunc <16 x i32> %y_32 to <16 x i16>
  store <16 x i16> %y_16, ptr %to, align 2
  %below = add i64 %i, 16
  %is_over = icmp sgt i64 %below, %last
  %goes_on = icmp slt i64 %i, %last
  %next_i = select i1 %is_over, i64 %last, i64 %below
  br i1 %goes_on, label %next, label %end
end:
  ret void
}}
"""
_BITS = {"one": 1, "half": 0x7FFF, "size": 0x7FFFFFFF, "inf": 0x7F800000}
_BITS |= {"sign": 0x8000, "nan": 0x7FC0, "sixteen": 16}
_START = """\
declare <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float>, <16 x i32>, <16 x i32>)
define void @product({parameters}) {{
start:
  %two = mul i64 %y_step, 2
  %is_turned = icmp ne i64 %turned, 0
  %last = sub i64 %rows, {height}
  br label %panel
panel:
  %j = phi i64 [0, %start], [%next_j, %end_panel]
  br label %pack
pack:
  %q = phi i64 [0, %panel], [%next_q, %packed]
  %q_128 = mul i64 %q, 128
  %p_0 = getelementptr i8, ptr %p, i64 %q_128
  %p_1 = getelementptr i8, ptr %p_0, i64 64
  br i1 %is_turned, label %gather, label %zip
zip:
  %q_rows = mul i64 %q, %two
  %j_64 = mul i64 %j, 64
  %q_j = add i64 %q_rows, %j_64
  %even = getelementptr i8, ptr %y, i64 %q_j
  %odd = getelementptr i8, ptr %even, i64 %y_step
"""
_ZIPPED = """\
  %even_{h} = getelementptr i8, ptr %even, i64 {at}
  %odd_{h} = getelementptr i8, ptr %odd, i64 {at}
  %low_{h} = load <16 x i16>, ptr %even_{h}, align 2
  %high_{h} = load <16 x i16>, ptr %odd_{h}, align 2
  %low_bits_{h} = zext <16 x i16> %low_{h} to <16 x i32>
  %wide_{h} = zext <16 x i16> %high_{h} to <16 x i32>
  %high_bits_{h} = shl <16 x i32> %wide_{h}, {sixteen}
  %pairs_{h} = or <16 x i32> %low_bits_{h}, %high_bits_{h}
  store <16 x i32> %pairs_{h}, ptr %p_{h}, align 4
"""
_GATHERED = """\
  %n_{i} = add i64 %j_32, {i}
  %row_{i} = mul i64 %n_{i}, %y_step
  %place_{i} = add i64 %row_{i}, %q_4
  %from_{i} = getelementptr i8, ptr %y, i64 %place_{i}
  %pair_{i} = load i32, ptr %from_{i}, align 2
  %to_{i} = getelementptr i8, ptr %p_0, i64 {at}
  store i32 %pair_{i}, ptr %to_{i}, align 4
"""
_BLOCK = """\
  br label %packed
packed:
  %next_q = add i64 %q, 1
  %all_packed = icmp eq i64 %next_q, %pairs
  br i1 %all_packed, label %block, label %pack
block:
  %i = phi i64 [0, %packed], [%next_i, %done]
  %i_x = mul i64 %i, %x_step
  %x_0 = getelementptr i8, ptr %x, i64 %i_x
{rows_of_x}
  br label %add
add:
  %t = phi i64 [0, %block], [%next_t, %add]
{sums}
  %t_128 = mul i64 %t, 128
  %y_0 = getelementptr i8, ptr %p, i64 %t_128
  %y_1 = getelementptr i8, ptr %y_0, i64 64
  %b_0 = load <16 x i32>, ptr %y_0, align 4
  %b_1 = load <16 x i32>, ptr %y_1, align 4
  %t_4 = mul i64 %t, 4
"""
_ADDED = """\
  %at_{r} = getelementptr i8, ptr %x_{r}, i64 %t_4
  %pair_of_{r} = load i32, ptr %at_{r}, align 2
  %one_{r} = insertelement <16 x i32> poison, i32 %pair_of_{r}, i32 0
  %all_{r} = shufflevector <16 x i32> %one_{r}, <16 x i32> poison, <16 x i32> zeroinitializer
"""
_TERM = (
    "  %new_{r}_{h} = call <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512("
    "<16 x float> %sum_{r}_{h}, <16 x i32> %all_{r}, <16 x i32> %b_{h})\n"
)
_SUM = "  %sum_{r}_{h} = phi <16 x float> [zeroinitializer, %block], [%new_{r}_{h}, %add]\n"
_STORE = """\
  %next_t = add i64 %t, 1
  %all_added = icmp eq i64 %next_t, %pairs
  br i1 %all_added, label %done, label %add
done:
  %i_z = mul i64 %i, %z_step
  %j_128 = mul i64 %j, 128
  %i_j = add i64 %i_z, %j_128
  %z_0 = getelementptr i8, ptr %z, i64 %i_j
{rows_of_z}
{stores}
  %below = add i64 %i, {height}
  %is_over = icmp sgt i64 %below, %last
  %goes_on = icmp slt i64 %i, %last
  %next_i = select i1 %is_over, i64 %last, i64 %below
  br i1 %goes_on, label %block, label %end_panel
end_panel:
  %next_j = add i64 %j, 1
  %all_done = icmp eq i64 %next_j, %panels
  br i1 %all_done, label %end, label %panel
end:
  ret void
}}
"""


def _text():
    """Return the functions `product` and `round` in LLVM's language.

    The last block of rows is moved up where it would reach beyond the end: some rows are computed
    twice.
    """
    rows, halves = range(_ROWS), (0, 1)
    kinds = ["ptr" if name in "xypz" else "i64" for name in _PARAMETERS]
    named = [f"{kind} %{name}" for kind, name in zip(kinds, _PARAMETERS, strict=True)]
    bits = {name: f"<{', '.join([f'i32 {value}'] * _VECTOR)}>" for name, value in _BITS.items()}

    def below(name):
        return "\n".join(
            [
                f"  %{name}_{r} = getelementptr i8, ptr %{name}_{r - 1}, i64 %{name}_step"
                for r in rows[1:]
            ]
        )

    stores = [
        f"  %z_{r}_{h} = getelementptr i8, ptr %z_{r}, i64 {64 * h}\n"
        f"  store <16 x float> %new_{r}_{h}, ptr %z_{r}_{h}, align 4"
        for r in rows
        for h in halves
    ]
    return "".join(
        [
            _ROUND.format(**bits),
            _START.format(parameters=", ".join(named), height=_ROWS),
            *[_ZIPPED.format(h=h, at=32 * h, **bits) for h in halves],
            "  br label %packed\ngather:\n  %j_32 = mul i64 %j, 32\n  %q_4 = mul i64 %q, 4\n",
            *[_GATHERED.format(i=i, at=4 * i) for i in range(_COLUMNS)],
            _BLOCK.format(
                rows_of_x=below("x"),
                sums="".join([_SUM.format(r=r, h=h) for r in rows for h in halves]),
            ),
            *[_ADDED.format(r=r) + "".join([_TERM.format(r=r, h=h) for h in halves]) for r in rows],
            _STORE.format(rows_of_z=below("z"), stores="\n".join(stores), height=_ROWS),
        ]
    )
