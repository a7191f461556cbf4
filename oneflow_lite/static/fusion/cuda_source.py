"""The kernels of a group: CUDA C++ written from the ops' expressions.

What happens to one element is a function, `element`. Around it stands one of two kernels. A flat
group goes over all elements, each thread takes a few at a time. A group of rows and columns has a
team of threads for each row, which adds up what belongs to the row; what belongs to a column stays
with the thread whose column it is. Sums over rows leave one part for each block, and a second
kernel adds these in their order: results are the same at every run.

Sizes are written out, so the compiler knows them. Nothing here needs CuPy or a device.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence

import attrs
import numpy as np

from oneflow_lite.dtype import DType
from oneflow_lite.scalar_expression import scalar_of
from oneflow_lite.static.fusion.group import DTYPES, Group

REDUCTIONS = ("sum", "mean", "sum_to")
from oneflow_lite.static.ir.program import Block, OpDesc

CUDA_DTYPES = DTYPES | {np.dtype("float16")}
OPTIONS = ("-std=c++17",)
THREADS = 256  # of a block
VECTOR = 16  # bytes that a thread loads at once
_MOST_BLOCKS, _MOST_PARTS = 4096, 512  # of a grid; of one that leaves sums
_FEW = 4  # packs of a row that each of 32 threads takes before all threads of a block do
_MOST_SUMS = 64  # packs of columns that a thread adds up
_STORED = {
    "float16": "half16", "float32": "float", "float64": "double", "bool": "bool",
    "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
    "uint8": "unsigned char",
}  # fmt: skip
_COMPUTED = {**_STORED, "float16": "float"}
_NAMES = {"abs": "absolute", "pow": "power", "isnan": "isnan_"}  # CUDA has functions of these names
_OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|",
    ast.BitXor: "^", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==",
    ast.NotEq: "!=",
}  # fmt: skip

# What every source begins with. Halves are their 16 bits; the conversions are in PTX because the
# header that has them comes with the CUDA toolkit, which need not be there.
PRELUDE = """\
template <class T, int N> struct alignas(sizeof(T) * N) Pack { T at[N]; };
struct half16 { unsigned short bits; };

#ifdef __CUDACC__
__device__ __forceinline__ float value(half16 h) {
    float x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h.bits)); return x;
}
__device__ __forceinline__ half16 to_half(float x) {
    half16 h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(x)); return h;
}
#endif
template <class T> __device__ __forceinline__ T value(T x) { return x; }
template <class T> __device__ __forceinline__ void store(T& y, T x) { y = x; }
__device__ __forceinline__ void store(half16& y, float x) { y = to_half(x); }

template <class A, class B>
__device__ __forceinline__ auto where(bool condition, A x, B y) { return condition ? x : y; }
template <class A, class B> __device__ __forceinline__ auto maximum(A x, B y) {
    return x >= y || x != x ? x : y;
}
template <class A, class B> __device__ __forceinline__ auto minimum(A x, B y) {
    return x <= y || x != x ? x : y;
}
template <class T> __device__ __forceinline__ bool isnan_(T x) { return x != x; }
template <class T> __device__ __forceinline__ T absolute(T x) { return x < 0 ? -x : x; }
__device__ __forceinline__ bool absolute(bool x) { return x; }
__device__ __forceinline__ unsigned char absolute(unsigned char x) { return x; }
__device__ __forceinline__ float absolute(float x) { return fabsf(x); }
__device__ __forceinline__ double absolute(double x) { return fabs(x); }
template <class T> __device__ __forceinline__ T inverted(T x) { return ~x; }
__device__ __forceinline__ bool inverted(bool x) { return !x; }
template <class T> __device__ __forceinline__ T sigmoid(T x) {
    const T e = exp(-absolute(x));
    return where(x < 0, e, T(1)) / (1 + e);
}
__device__ __forceinline__ float power(float x, float y) { return powf(x, y); }
__device__ __forceinline__ double power(double x, double y) { return pow(x, y); }

// The sum of what T threads side by side have, for each of them; all threads of the block call.
template <int T> __device__ double team_sum(double x) {
    for (int other = (T < 32 ? T : 32) / 2; other; other /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, other);
    if (T <= 32) return x;
    __shared__ double warps[T / 32 + 1];
    __syncthreads();  // an earlier sum may still be read
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
    for (int warp = 0; warp < T / 32; ++warp) x += warps[warp];
    return x;
}

// The sum of what the threads t, t + T, t + 2 T ... of a block have, for each of these.
template <int T> __device__ double sum_of_teams(double x) {
    if (T == 1) return team_sum<256>(x);
    if (T == 256) return x;
    __shared__ double all[256];
    __syncthreads();
    all[threadIdx.x] = x;
    for (int half = 128; half >= T; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) all[threadIdx.x] += all[threadIdx.x + half];
    }
    __syncthreads();
    return all[threadIdx.x % T];
}
"""


@attrs.frozen
class Launch:
    """A kernel and its grid.

    Attributes
    ----------
    name : str
    grid : tuple of int
        In blocks of `THREADS` threads.
    arguments : tuple of int
        Numbers of the arrays: inputs, then outputs, then parts of sums.
    """

    name: str
    grid: tuple[int, ...]
    arguments: tuple[int, ...]


@attrs.frozen
class CudaSource:
    """The source of a group, and how its kernels are launched, one after the other.

    Attributes
    ----------
    text : str
    launches : list of Launch
    parts : list of int
        How many doubles each array of parts of sums holds.
    packed : tuple of int
        Numbers of the arrays that must begin at a multiple of 16 bytes.
    """

    text: str
    launches: list[Launch]
    parts: list[int]
    packed: tuple[int, ...]


def cuda_source_of(group: Group, block: Block, *, packed: bool = True) -> CudaSource:
    """Return the source of a group.

    Parameters
    ----------
    group : Group
    block : Block
        Has its variables.
    packed : bool
        Whether threads load and store several elements at once; arrays are aligned then.

    Raises
    ------
    ValueError
        For sums over rows beside sums over columns, where there are too many columns.
    """
    return _Writer(group, block, packed).written()


class _Writer:
    """Collects what one element needs: parameters, arguments at the call, and lines."""

    def __init__(self, group: Group, block: Block, packed: bool) -> None:
        self.group, self.block = group, block
        self.size = group.rows * group.columns
        self.index = "int" if self.size < 1 << 30 else "long long"
        self.outputs = {name: f"y{i}" for i, name in enumerate(group.outputs)}
        self.names: dict[str, str] = {}  # what holds a variable
        self.words: dict[str, str] = {}  # stand for literals while an expression is Python's
        self.parameters: list[str] = []
        self.body: list[str] = []
        self.calls: list[str] = []  # arguments of `element`
        self.loads: dict[str, list[str]] = {"full": [], "column": [], "row": [], "number": []}
        self.stores: list[str] = []
        self.row_sums: list[tuple[str, str]] = []  # name in the kernel, the output's line
        self.sums: list[tuple[str, OpDesc]] = []  # in the order of `group.partial_sums`
        self.width = self._width() if packed else 1

    def _width(self) -> int:
        """Return how many elements a thread takes at once: 16 bytes of the largest."""
        group = self.group
        names = [n for n in (*group.inputs, *group.outputs) if self._is_packed(n)]
        width = VECTOR // max([self._dtype(n).itemsize for n in names], default=VECTOR)
        while not group.is_flat and group.columns % width:
            width //= 2
        return width

    def _dtype(self, name: str) -> DType:
        return self.block.var(name).dtype

    def _is_packed(self, name: str) -> bool:
        is_sum = any(op.outputs[0] == name and op.type in REDUCTIONS for op in self.group.ops)
        return self.group.kinds[name] in ("full", "column") and not is_sum

    def written(self) -> CudaSource:
        """Return the source."""
        group = self.group
        for i, name in enumerate(group.inputs):
            self._input(name, f"a{i}", f"x{i}")
        for i, op in enumerate(group.ops):
            line = "" if op.location is None else f", line {op.location.line}"
            self.body.append(f"// {op.type}{line}")
            if op.type in REDUCTIONS:
                self._reduce(op)
            else:
                self._compute(op, f"t{i}")
        element = _function("__device__ __forceinline__ void element", self.parameters, self.body)
        kernel, grid = self._flat() if group.is_flat else self._rows()
        arrays = [
            f"const {_STORED[str(self._dtype(n))]}* __restrict__ a{i}"
            for i, n in enumerate(group.inputs)
        ]
        arrays += [
            f"{_STORED[str(self._dtype(n))]}* __restrict__ {y}" for n, y in self.outputs.items()
        ]
        arrays += [f"double* __restrict__ s{n}" for n in range(len(self.sums))]
        head = f'extern "C" __global__ void __launch_bounds__({THREADS}) group'
        texts = [PRELUDE, element, _function(head, arrays, kernel)]
        launches = [Launch("group", grid, tuple(range(len(arrays))))]
        parts = []
        first = len(group.inputs) + len(group.outputs)
        for n, (shape, output, share) in enumerate(group.partial_sums):
            count = grid[1] if shape else math.prod(grid)
            parts.append(count * math.prod(shape))
            texts.append(self._end(n, math.prod(shape), count, group.outputs[output], share))
            arguments = (first + n, len(group.inputs) + output)
            side = _side(math.prod(shape))
            launches.append(Launch(f"end{n}", (-(-math.prod(shape) // side),), arguments))
        names = [*group.inputs, *group.outputs]
        aligned = tuple(i for i, n in enumerate(names) if self.width > 1 and self._is_packed(n))
        return CudaSource("\n".join(texts), launches, parts, aligned)

    # One element

    def _input(self, name: str, array: str, local: str) -> None:
        kind, stored = self.group.kinds[name], _STORED[str(self._dtype(name))]
        self.parameters.append(f"const {stored} {local}_")
        self.body.append(f"const auto {local} = value({local}_);")
        self.names[name] = local
        if kind in ("full", "column"):
            self.loads[kind].append(array)
            self.calls.append(f"{array}_.at[v]")
        else:
            at = "0" if kind == "number" else "row"
            self.loads[kind].append(f"const {stored} {local} = {array}[{at}];")
            self.calls.append(local)

    def _operand(self, name: str, dtype: DType) -> str:
        name = self.group.stands_for.get(name, name)
        own = self._dtype(name)
        if name not in self.names:
            return self._word(_literal(self.group.numbers[name], own))
        local = self.names[name]
        if dtype.kind == "f" and own.kind in "biu":  # C++ would compute in a smaller one
            return self._word(f"({_COMPUTED[str(dtype)]}){local}")
        return local

    def _word(self, text: str) -> str:
        word = f"word{len(self.words)}"
        self.words[word] = text
        return word

    def _compute(self, op: OpDesc, result: str) -> None:
        name = op.outputs[0]
        own = dtype = self._dtype(name)
        if dtype.kind == "b":  # numbers are of the dtype of what they are compared with
            dtypes = [self._dtype(n) for n in op.reads if self._dtype(n).kind != "b"]
            dtype = np.result_type(*dtypes) if dtypes else dtype
        given = [(p, n) for p, n in zip(op.schema.inputs, op.inputs, strict=True) if n is not None]
        names = {
            p: self._operand(n, self._dtype(n) if p == "condition" else dtype) for p, n in given
        }
        power = self._small_power(op)
        if power:
            lines = [f"{result} = {' * '.join([names['x']] * power)}"]
        else:
            scalar = scalar_of(op.type, op.attrs)
            assert scalar is not None
            lines = scalar.steps(names, result, lambda x: self._word(_literal(x, dtype)), op.attrs)
        for line in lines[:-1]:
            target, _, value = line.partition(" = ")
            self.body.append(f"const auto {target} = {self._in_c(value)};")
        value = self._in_c(lines[-1].partition(" = ")[2])
        cast = _COMPUTED[str(own)]
        rounded = f"value(to_half({value}))" if own == np.float16 else f"({cast})({value})"
        self.body.append(f"const {cast} {result} = {rounded};")
        self.names[name] = result
        if name in self.outputs:
            self._output(name, result)

    def _output(self, name: str, result: str) -> None:
        y = self.outputs[name]
        self.parameters.append(f"{_STORED[str(self._dtype(name))]}& {y}_")
        self.body.append(f"store({y}_, {result});")
        self.stores.append(y)
        self.calls.append(f"{y}_.at[v]")

    def _small_power(self, op: OpDesc) -> int:
        """Return a constant exponent that is a few multiplications; 0 where there is none."""
        name = (op.inputs[1] or "") if op.type == "pow" else ""
        number = self.group.numbers.get(self.group.stands_for.get(name, name))
        return int(number) if number in (1, 2, 3, 4) else 0

    def _in_c(self, text: str) -> str:
        """Return an expression of Python's in C++."""
        return _c_of(ast.parse(text, mode="eval").body, self.words)

    def _reduce(self, op: OpDesc) -> None:
        name = op.outputs[0]
        y, kind = self.outputs[name], self.group.kinds[name]
        value = self._in_c(self._operand(op.inputs[0] or "", self._dtype(op.inputs[0] or "")))
        cast = _COMPUTED[str(self._dtype(name))]
        if kind == "row":
            total, share = f"r{y}", f" / {self.group.columns}" if op.type == "mean" else ""
            self.row_sums.append((total, f"store({y}[row], ({cast})({total}{share}));"))
            self.calls.append(total)
        else:
            total = f"c{len(self.sums)}"
            self.sums.append((total, op))
            self.calls.append(f"{total}[k * {self.width} + v]" if kind == "column" else total)
        self.parameters.append(f"double& {total}")
        self.body.append(f"{total} += {value};")

    # Kernels

    def _packs(self, arrays: Sequence[str], at: str, width: int) -> list[str]:
        """Load some elements of each array."""
        return [
            f"const {self._pack(a, width)} {a}_ = *(const {self._pack(a, width)}*)({a} + {at});"
            for a in arrays
        ]

    def _pack(self, array: str, width: int) -> str:
        names = self.group.inputs if array[0] == "a" else self.group.outputs
        return f"Pack<{_STORED[str(self._dtype(names[int(array[1:])]))]}, {width}>"

    def _some(self, width: int, at: str, column: str) -> list[str]:
        """Load, compute and store `width` elements."""
        return [
            *self._packs(self.loads["full"], at, width),
            *self._packs(self.loads["column"], column, width),
            *[f"{self._pack(y, width)} {y}_;" for y in self.stores],
            "#pragma unroll",
            f"for (int v = 0; v < {width}; ++v) element({', '.join(self.calls)});",
            *[f"*({self._pack(y, width)}*)({y} + {at}) = {y}_;" for y in self.stores],
        ]

    def _flat(self) -> tuple[list[str], tuple[int, ...]]:
        size, width, index = self.size, self.width, self.index
        most = _MOST_PARTS if self.sums else _MOST_BLOCKS
        blocks = min(-(-(size // width) // THREADS) or 1, most)
        lines = [
            f"const {index} first = ({index})blockIdx.x * {THREADS} + threadIdx.x;",
            f"const {index} step = ({index})gridDim.x * {THREADS};",
            *self.loads["number"],
            *[f"double {total} = 0;" for total, _ in self.sums],
            f"for ({index} i = first * {width}; i + {width} <= {size}; i += step * {width}) {{",
            *_indented(self._some(width, "i", "i")),
            "}",
        ]
        if size % width:
            start = size - size % width
            lines += [
                f"for ({index} i = {start} + first; i < {size}; i += step) {{",
                *_indented(self._some(1, "i", "i")),
                "}",
            ]
        for n, (total, _) in enumerate(self.sums):
            lines += [
                f"{total} = team_sum<{THREADS}>({total});",
                f"if (threadIdx.x == 0) s{n}[blockIdx.x] = {total};",
            ]
        return lines, (blocks,)

    def _rows(self) -> tuple[list[str], tuple[int, ...]]:
        group, width, index = self.group, self.width, self.index
        rows, columns = group.rows, group.columns
        # A block has all columns where they are added up, else a few for each thread.
        packs = columns // width
        if not self.row_sums:
            packs = min(packs, _FEW * THREADS)
        team = 1 << (packs - 1).bit_length() if packs <= 32 else 32
        team = THREADS if packs > 32 * _FEW else team
        turns = -(-packs // team)
        of_columns = [n for n, (_, op) in enumerate(self.sums) if self._is_column(op)]
        if of_columns and turns > _MOST_SUMS:
            raise ValueError(f"sums of {columns} columns beside sums of rows")
        chunks = -(-columns // (packs * width))
        teams = THREADS // team
        most = max((_MOST_PARTS if self.sums else _MOST_BLOCKS) // chunks, 1)
        grid = (chunks, min(-(-rows // teams), most))
        inner = [
            f"const {index} j = left + (k * {team} + lane) * {width};",
            f"if (alive && j < {columns}) {{",
            *_indented(self._some(width, "at + j", "j")),
            "}",
        ]
        outer = [
            f"const bool alive = base + threadIdx.x / {team} < {rows};",
            f"const {index} row = alive ? base + threadIdx.x / {team} : {rows - 1};",
            f"const {index} at = row * {columns};",
            *self.loads["row"],
            *[f"double {total} = 0;" for total, _ in self.row_sums],
            "#pragma unroll" + ("" if turns <= 2 * _FEW else " 1"),
            f"for (int k = 0; k < {turns}; ++k) {{",
            *_indented(inner),
            "}",
        ]
        for total, line in self.row_sums:
            outer += [f"{total} = team_sum<{team}>({total});", f"if (alive && lane == 0) {line}"]
        lines = [
            f"const int lane = threadIdx.x % {team};",
            f"const {index} left = ({index})blockIdx.x * {packs * width};",
            *self.loads["number"],
        ]
        for n, (total, _) in enumerate(self.sums):
            size = f"[{turns * width}] = {{}}" if n in of_columns else " = 0"
            lines.append(f"double {total}{size};")
        lines += [
            f"for ({index} base = ({index})blockIdx.y * {teams}; base < {rows}; "
            f"base += ({index})gridDim.y * {teams}) {{",
            *_indented(outer),
            "}",
        ]
        for n, (total, _) in enumerate(self.sums):
            if n not in of_columns:
                lines += [
                    f"{total} = team_sum<{THREADS}>({total});",
                    f"if (threadIdx.x == 0) s{n}[blockIdx.y * gridDim.x + blockIdx.x] = {total};",
                ]
                continue
            lines += [
                f"for (int k = 0; k < {turns}; ++k) for (int v = 0; v < {width}; ++v) {{",
                f"    const {index} j = left + (k * {team} + lane) * {width} + v;",
                f"    const double sum = sum_of_teams<{team}>({total}[k * {width} + v]);",
                f"    if (threadIdx.x < {team} && j < {columns}) "
                f"s{n}[blockIdx.y * (long long){columns} + j] = sum;",
                "}",
            ]
        return lines, grid

    def _is_column(self, op: OpDesc) -> bool:
        return self.group.kinds[op.outputs[0]] == "column"

    def _end(self, n: int, columns: int, count: int, output: str, share: int) -> str:
        """Return the kernel that adds up the parts of one sum."""
        dtype = str(self._dtype(output))
        side = _side(columns)
        lines = [
            f"const int lane = threadIdx.x / {side};",
            f"const long long j = (long long)blockIdx.x * {side} + threadIdx.x % {side};",
            "double total = 0;",
            f"if (j < {columns})",
            f"    for (int part = lane; part < {count}; part += {THREADS // side})",
            f"        total += s[part * (long long){columns} + j];",
            f"total = sum_of_teams<{side}>(total);",
            f"if (lane == 0 && j < {columns}) store(y[j], ({_COMPUTED[dtype]})(total / {share}));",
        ]
        head = f'extern "C" __global__ void __launch_bounds__({THREADS}) end{n}'
        return _function(
            head, ["const double* __restrict__ s", f"{_STORED[dtype]}* __restrict__ y"], lines
        )


def _side(columns: int) -> int:
    """Return for how many columns a block adds up parts: a whole warp's, or one."""
    return 32 if columns >= 32 else 1


def _c_of(node: ast.expr, words: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return words.get(node.id, node.id)
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        name = _NAMES.get(node.func.id, node.func.id)
        return f"{name}({', '.join([_c_of(each, words) for each in node.args])})"
    if isinstance(node, ast.UnaryOp):
        of = _c_of(node.operand, words)
        return f"inverted({of})" if isinstance(node.op, ast.Invert) else f"(-{of})"
    if isinstance(node, ast.BinOp):
        left, right = _c_of(node.left, words), _c_of(node.right, words)
        return f"({left} {_OPERATORS[type(node.op)]} {right})"
    assert isinstance(node, ast.Compare)
    sides = [_c_of(each, words) for each in (node.left, *node.comparators)]
    found = [
        f"({left} {_OPERATORS[type(op)]} {right})"
        for left, op, right in zip(sides, node.ops, sides[1:], strict=False)
    ]
    return found[0] if len(found) == 1 else f"({' & '.join(found)})"


def _literal(value: object, dtype: DType) -> str:
    number = np.asarray(value)
    if dtype.kind == "b" or number.dtype.kind == "b":
        return "true" if number else "false"
    if dtype.kind == "f":
        real = np.dtype(np.float64 if dtype == np.float64 else np.float32).type(number)
        cast = "" if dtype == np.float64 else "(float)"
        if not np.isfinite(real):
            bits = "0x7ff8000000000000" if np.isnan(real) else "0x7ff0000000000000"
            return f"({cast}{'-' if real < 0 else ''}__longlong_as_double({bits}))"
        text = f"{real!s}" + ("" if dtype == np.float64 else "f")
        return f"({text})" if text[0] == "-" else text
    whole = int(number)
    if dtype.itemsize == 8:
        return f"({whole}ll)" if whole > -(1 << 63) else f"({whole + 1}ll - 1)"
    return f"({_STORED[str(dtype)]})({whole})"


def _function(head: str, parameters: Sequence[str], lines: Sequence[str]) -> str:
    return "\n".join([f"{head}({', '.join(parameters)}) {{", *_indented(lines), "}", ""])


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
