"""CUDA C++ for the expressions of a group: its words, and what every source begins with.

C++ would compute an int32 and a float32 in float32, and divide integers as such. So each name has
the dtype that it is computed in, and what NumPy would convert is cast.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

import numpy as np

from oneflow_lite.arrays.dtype import DType
from oneflow_lite.static.fusion.writer import NAME, indented

STORED = {
    "float16": "half16", "float32": "float", "float64": "double", "bool": "bool",
    "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
    "uint8": "unsigned char",
}  # fmt: skip
_NAMES = {"abs": "absolute", "pow": "power", "isnan": "isnan_"}  # CUDA has functions of these names
_OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|",
    ast.BitXor: "^", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==",
    ast.NotEq: "!=",
}  # fmt: skip
_OF_ALL = ("where", "maximum", "minimum", "abs", "isnan")  # functions of integers, too
_LET = re.compile(r" *const (?:auto|int|long long|bool) (\w+) = (.*);$")

# The begin of every source. A half is its 16 bits; the conversions are in PTX because their header
# comes with the CUDA toolkit, which need not be installed.
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

struct Sum { static __device__ double of(double x, double y) { return x + y; } };
struct Highest { static __device__ double of(double x, double y) { return maximum(x, y); } };
struct Lowest { static __device__ double of(double x, double y) { return minimum(x, y); } };

// What T threads side by side make together, for each of them; all threads of the block call.
template <int T, class How = Sum> __device__ double team(double x) {
    for (int other = (T < 32 ? T : 32) / 2; other; other /= 2)
        x = How::of(x, __shfl_xor_sync(0xffffffffu, x, other));
    if (T <= 32) return x;
    __shared__ double warps[T / 32 + 1];
    __syncthreads();  // an earlier result may still be read
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
    __syncthreads();
    x = warps[0];
    for (int warp = 1; warp < T / 32; ++warp) x = How::of(x, warps[warp]);
    return x;
}

// The sum of what the threads t, t + T, t + 2 T ... of a block have, for each of these.
template <int T> __device__ double sum_of_teams(double x) {
    if (T == 1) return team<256>(x);
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


class Types(dict[str, DType]):
    """The types in which names are computed; translates expressions of them."""

    def of(self, text: str) -> tuple[str, DType]:
        """Return an expression of Python's in C++, and what it is computed in."""
        return self._c_of(ast.parse(text, mode="eval").body)

    def _c_of(self, node: ast.expr) -> tuple[str, DType]:
        if isinstance(node, ast.Constant) or _number(node) is not None:
            number = _number(node)
            return cuda_literal(number, np.asarray(number).dtype), np.asarray(number).dtype
        if isinstance(node, ast.Name):
            if node.id[0] == "k":  # a place in the line
                return node.id, np.dtype("int64")
            return node.id, self.get(node.id.partition("_at_")[0], np.dtype("float64"))
        if isinstance(node, ast.UnaryOp):
            of, dtype = self._c_of(node.operand)
            return (f"inverted({of})" if isinstance(node.op, ast.Invert) else f"(-{of})"), dtype
        if isinstance(node, ast.BinOp):
            divides = isinstance(node.op, ast.Div)
            (left, right), dtype = self._alike([node.left, node.right], divides)
            return f"({left} {_OPERATORS[type(node.op)]} {right})", dtype
        if isinstance(node, ast.Compare):
            sides, _ = self._alike([node.left, *node.comparators])
            pairs = [
                f"({left} {_OPERATORS[type(op)]} {right})"
                for left, op, right in zip(sides, node.ops, sides[1:], strict=False)
            ]
            text = pairs[0] if len(pairs) == 1 else f"({' & '.join(pairs)})"
            return text, np.dtype(bool)
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Name)
        called, args = node.func.id, node.args
        if called in STORED:
            number = _number(args[0])
            assert number is not None
            return cuda_literal(number, np.dtype(called)), computed(np.dtype(called))
        condition = [self._c_of(args.pop(0))[0]] if called == "where" else []
        sides, dtype = self._alike(args, called not in _OF_ALL)
        text = f"{_NAMES.get(called, called)}({', '.join([*condition, *sides])})"
        return text, np.dtype(bool) if called == "isnan" else dtype

    def _alike(self, nodes: Sequence[ast.expr], is_real: bool = False) -> tuple[list[str], DType]:
        """Return expressions that are computed together; C++ would compute in a smaller dtype."""
        sides = [self._c_of(node) for node in nodes]
        dtype = np.result_type(*[dtype for _, dtype in sides])
        if is_real and dtype.kind != "f":
            dtype = np.dtype("float64")
        mixed = dtype.kind == "f"
        texts = [
            f"({STORED[str(dtype)]}){text}" if mixed and own.kind != "f" else text
            for text, own in sides
        ]
        return texts, dtype


def computed(dtype: DType) -> DType:
    """Return the dtype in which values of a dtype are computed."""
    return np.dtype("float32") if dtype == np.float16 else dtype


def _number(node: ast.expr) -> float | None:
    """Return the number that an expression is; None where it is more."""
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, (bool, int, float))
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _number(node.operand)
        return None if number is None else -number
    return {"inf": np.inf, "nan": np.nan}.get(node.id) if isinstance(node, ast.Name) else None


def cuda_literal(value: object, dtype: DType) -> str:
    """Return a number in C++."""
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
    return f"({STORED[str(dtype)]})({whole})"


def function(head: str, parameters: Sequence[str], lines: Sequence[str]) -> str:
    """Return a function without the names in it that nothing needs, which compilers warn of."""
    body: list[str] = []
    used: set[str] = set()
    for line in reversed(lines):
        named = _LET.match(line)
        if named is None or named[1] in used:
            used.discard("" if named is None else named[1])  # other scopes have their own
            used.update(NAME.findall(line if named is None else named[2]))
            body.append(line)
    return "\n".join([f"{head}({', '.join(parameters)}) {{", *indented(body[::-1]), "}", ""])
