"""CUDA C++ on the CPU: kernels are compiled by the system's C++ compiler, and their threads run.

The text is the one that a device gets, behind a header that says what CUDA's words mean here. Each
thread of a block is a coroutine. It runs until a barrier or a shuffle and goes on when those that
have to meet it there have come; where some never come, an error says so. A warp goes on for as long
as it can before the next one begins, so a barrier that is missing shows. An access outside of an
array, or one that is not aligned, is an error too. Blocks run one after the other.

It proves index arithmetic, barriers and expressions, and no speed; CUDA's own elementary functions
are the C library's here.
"""

import ctypes
import functools
import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

COMPILER = shutil.which("g++") or shutil.which("c++")
_PARAMETER = re.compile(r"(.*?)\s*\*\s*(?:__restrict__\s+)?(\w+)$")
_KERNEL = re.compile(
    r'extern "C" __global__ void (?:__launch_bounds__\(\d+\) )?(\w+)\((.*?)\) \{', re.DOTALL
)

HEADER = r"""
#include <ucontext.h>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(n)
#define __shared__ static

struct Dim { unsigned x, y, z; };
static Dim threadIdx, blockIdx, blockDim, gridDim;

inline float exp(float x) { return __builtin_expf(x); }
inline double exp(double x) { return __builtin_exp(x); }
#define OF_ONE(name) \
    inline float name(float x) { return __builtin_##name##f(x); } \
    inline double name(double x) { return __builtin_##name(x); }
OF_ONE(expm1) OF_ONE(log) OF_ONE(log1p) OF_ONE(sin) OF_ONE(cos) OF_ONE(tan) OF_ONE(tanh)
OF_ONE(erf) OF_ONE(sqrt) OF_ONE(floor) OF_ONE(ceil) OF_ONE(trunc)
inline float fabsf(float x) { return __builtin_fabsf(x); }
inline double fabs(double x) { return __builtin_fabs(x); }
inline float powf(float x, float y) { return __builtin_powf(x, y); }
inline double pow(double x, double y) { return __builtin_pow(x, y); }
inline double __longlong_as_double(unsigned long long bits) {
    double x; __builtin_memcpy(&x, &bits, 8); return x;
}
struct half16;
static float value(half16);
static half16 to_half(float);

// Threads: coroutines of one block.

enum { RUNS, AT_BARRIER, AT_SHUFFLE, DONE };
static const char* error;
static char stack[1024][1 << 15];
static int state[1024];
static unsigned now;
static double slot[1024];
static void (*body)();

// A thread's context is made once. From then on jumps lead there and back: they ask the system
// nothing, where swapcontext does each time. A thread that is done begins again when it goes on.
typedef void* Place[5];
static Place scheduler, place[1024];
static bool begun[1024];
static ucontext_t first[1024];

__attribute__((noinline, noreturn)) static void jump(Place& there) { __builtin_longjmp(there, 1); }
__attribute__((noinline)) static void to_scheduler() {
    if (!__builtin_setjmp(place[now])) jump(scheduler);
}
static void begin() {
    while (true) {
        body();
        state[now] = DONE;
        to_scheduler();
    }
}
__attribute__((noinline)) static void to_thread() {
    if (__builtin_setjmp(scheduler)) return;
    if (begun[now]) jump(place[now]);
    begun[now] = true;
    getcontext(&first[now]);
    first[now].uc_stack.ss_sp = stack[now];
    first[now].uc_stack.ss_size = sizeof stack[now];
    first[now].uc_link = 0;
    makecontext(&first[now], begin, 0);
    setcontext(&first[now]);
}

static void meet(int where) {
    state[now] = where;
    to_scheduler();
}
static void __syncthreads() { meet(AT_BARRIER); }
static double __shfl_xor_sync(unsigned, double x, int other) {
    const unsigned me = now;
    slot[me] = x;
    meet(AT_SHUFFLE);
    x = slot[me ^ other];
    meet(AT_SHUFFLE);
    return x;
}
static bool all_are(unsigned from, unsigned to, int where) {
    for (unsigned t = from; t < to; ++t) if (state[t] != where) return false;
    return true;
}
static void run_block(bool backwards) {
    const unsigned count = blockDim.x;
    for (unsigned t = 0; t < count; ++t) state[t] = RUNS;
    while (!all_are(0, count, DONE)) {
        bool moved = false;
        for (unsigned n = 0; n < count; n += 32) {  // a warp goes on for as long as it can
            const unsigned from = backwards ? (count - 1 - n) / 32 * 32 : n;
            const unsigned to = from + 32 < count ? from + 32 : count;
            while (true) {
                for (unsigned each = from; each < to; ++each) {
                    const unsigned t = backwards ? to - 1 - (each - from) : each;
                    if (state[t] != RUNS) continue;
                    moved = true;
                    now = t;
                    threadIdx.x = t;
                    to_thread();
                    if (error) return;
                }
                if (!all_are(from, to, AT_SHUFFLE)) break;
                for (unsigned each = from; each < to; ++each) state[each] = RUNS;
            }
        }
        if (all_are(0, count, AT_BARRIER)) {
            for (unsigned t = 0; t < count; ++t) state[t] = RUNS;
            moved = true;
        }
        if (!moved) {
            error = "some threads wait where others never come";
            return;
        }
    }
}

// Arrays: pointers that know where they may point.

static void fail(const char* what) {
    error = what;
    state[now] = DONE;
    to_scheduler();
}
template <class T> struct Checked {
    char *at, *first, *end;
    template <class I> Checked operator+(I i) const {
        return {at + (long long)i * sizeof(T), first, end};
    }
    template <class U> operator U*() const {
        if (at < first || at + sizeof(U) > end) fail("an access outside of its array");
        if ((unsigned long long)at % alignof(U)) fail("an access that is not aligned");
        return (U*)at;
    }
    template <class I> T& operator[](I i) const { return *(T*)(*this + i); }
};
"""
_FOOTER = r"""
static float value(half16 h) { _Float16 x; __builtin_memcpy(&x, &h, 2); return (float)x; }
static half16 to_half(float x) {
    const _Float16 y = (_Float16)x; half16 h; __builtin_memcpy(&h, &y, 2); return h;
}
static char** given;
static const long long* sizes;
"""
_LAUNCH = r"""
static void body_of_NAME() { NAME(ARGUMENTS); }
extern "C" const char* launch_NAME(
    char** pointers, const long long* nbytes, const unsigned* grid, unsigned threads, int backwards
) {
    given = pointers; sizes = nbytes; body = body_of_NAME; error = 0;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {threads, 1, 1};
    for (unsigned z = 0; z < grid[2]; ++z) for (unsigned y = 0; y < grid[1]; ++y)
        for (unsigned x = 0; x < grid[0] && !error; ++x) {
            blockIdx = {x, y, z};
            run_block(backwards);
        }
    if (error) for (unsigned t = 0; t < threads; ++t) begun[t] = false;  // some are left halfway
    return error;
}
"""


def in_cpp(source: str) -> str:
    """Return a whole C++ file for a text of kernels, whose parameters are all pointers."""
    launches = []

    def kernel(found: re.Match[str]) -> str:
        name, parameters, arguments = found[1], [], []
        for i, text in enumerate(found[2].split(",")):
            parameter = _PARAMETER.match(text.strip())
            assert parameter is not None, text
            kind = f"Checked<{parameter[1]}>"
            parameters.append(f"{kind} {parameter[2]}")
            arguments.append(f"{kind}{{given[{i}], given[{i}], given[{i}] + sizes[{i}]}}")
        launch = _LAUNCH.replace("NAME", name)
        launches.append(launch.replace("ARGUMENTS", ", ".join(arguments)))
        return f"static void {name}({', '.join(parameters)}) {{"

    text = _KERNEL.sub(kernel, source)
    return "\n".join([HEADER, text, _FOOTER, *launches])


@functools.cache
def written_by(source: str, name: str) -> list[bool]:
    """Return which of a kernel's arguments it may write; none where there is no such kernel."""
    found = [k[2] for k in _KERNEL.finditer(source) if k[1] == name]
    return [not text.strip().startswith("const ") for text in ",".join(found).split(",") if text]


@functools.cache
def _folder() -> Any:
    return tempfile.TemporaryDirectory(prefix="emulated_cuda_")


@functools.cache
def compiled(source: str) -> ctypes.CDLL:
    """Return the library of a text of kernels; raise RuntimeError where it does not compile."""
    assert COMPILER is not None
    file = Path(_folder().name) / f"{hashlib.sha256(source.encode()).hexdigest()[:24]}.so"
    command = [COMPILER, "-std=c++17", "-O0", "-fwrapv", "-ffp-contract=off", "-shared", "-fPIC"]
    done = subprocess.run(
        [*command, "-w", "-x", "c++", "-", "-o", file, "-lm"],
        input=in_cpp(source), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{done.stderr[:4000]}\n{source}")
    return ctypes.CDLL(str(file))


def launch(
    source: str,
    name: str,
    grid: Sequence[int],
    threads: int,
    arrays: Sequence[np.ndarray[Any, Any]],
    *,
    backwards: bool = False,
) -> None:
    """Run a kernel on host arrays.

    Parameters
    ----------
    source, name : str
    grid : sequence of int
    threads : int
        Of a block.
    arrays : sequence of array
        The arguments.
    backwards : bool
        Whether the last thread goes first, between two barriers.
    """
    function = getattr(compiled(source), f"launch_{name}")
    function.restype = ctypes.c_char_p
    pointers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
    sizes = (ctypes.c_longlong * len(arrays))(*[a.nbytes for a in arrays])
    blocks = (ctypes.c_uint * 3)(*[*grid, 1, 1][:3])
    error = function(pointers, sizes, blocks, ctypes.c_uint(threads), ctypes.c_int(backwards))
    if error is not None:
        raise RuntimeError(f"{name}: {error.decode()}")
