"""Decorators for kernels of several steps: halves in float32, large arrays in pieces.

float16 is computed in float32 and rounded once, as in PyTorch. So is bfloat16 where a kernel meets
it, in the gradient of a view. The steps of a pointwise kernel, or of one along lines, pass over a
large array piece by piece, so that all but the first find it in the cache, and threads share the
pieces. With 4M elements of float32 two threads take 0.36 to 0.54 of the time of gelu, silu, softmax
and their gradients, with 524k 0.58 to 0.83.
"""

import functools
import math

import numpy as np

from oneflow_lite.arrays.dtype_object import CHAR, HALVES
from oneflow_lite.kernels import pieces
from oneflow_lite.kernels.bfloat16_products import rounded


def in_float32(kernel):
    """Let a kernel compute float16 and bfloat16 in float32.

    The first array decides. Inputs that are None or no halves stay as they are; every float32
    output is rounded, into `out` where that is given.
    """

    @functools.wraps(kernel)
    def rounded_once(xp, *arrays, **attrs):
        dtype = arrays[0].dtype
        if dtype.char not in HALVES:
            return kernel(xp, *arrays, **attrs)
        out = attrs.pop("out", None)
        outputs = kernel(xp, *map(_widened, arrays), **attrs)
        if out is not None:
            out[...] = outputs
            return out
        several = isinstance(outputs, tuple)
        made = [narrowed(y, dtype) for y in (outputs if several else (outputs,))]
        return tuple(made) if several else made[0]

    return rounded_once


_LARGE = 1 << 19  # elements from which work in pieces pays; asking for bytes takes longer


def pointwise(kernel):
    """Let a kernel whose result has its first array's shape and dtype run in pieces and in float32.

    Pieces give the bits of the whole, for each element is computed from its own place alone. All
    pieces have about one length: a short rest would be computed by the functions for small arrays.
    """
    return _in_pieces(kernel, lambda shape, attrs: (-1,))


def along_lines(kernel):
    """Do the same for a kernel that computes each line along its attribute `dim` by itself."""

    def in_rows(shape, attrs):
        dim = attrs["dim"] % len(shape)
        after = shape[dim + 1 :]
        # A row of pieces is a line, or a plane of lines side by side; `dim` is the one behind rows.
        attrs["dim"] = 1
        return (-1, shape[dim], math.prod(after)) if after else (-1, shape[dim])

    return _in_pieces(kernel, in_rows)


def _in_pieces(kernel, in_rows):
    """Let a kernel run in float32 and, on a large array, by rows in pieces that threads share.

    `in_rows(shape, attrs)` returns the shape in which the first dimension may be cut anywhere, and
    writes into the attributes what it changes.
    """
    rounded_once = in_float32(kernel)

    @functools.wraps(kernel)
    def in_pieces(xp, *arrays, **attrs):
        first = arrays[0]
        if first.size >= _LARGE and xp is np:
            out = attrs.pop("out", None)
            out = np.empty_like(first) if out is None else out
            if all(a.flags.c_contiguous and a.shape == first.shape for a in (*arrays, out)):
                shape = in_rows(first.shape, attrs)
                *inputs, result = [a.reshape(shape) for a in (*arrays, out)]

                def work(piece):
                    rounded_once(np, *[a[piece] for a in inputs], out=result[piece], **attrs)

                pieces.in_pieces(work, len(result), result.nbytes // len(result))
                return out
            attrs["out"] = out
        return (kernel if first.dtype.char not in HALVES else rounded_once)(xp, *arrays, **attrs)

    return in_pieces


def _widened(array):
    if array is None or array.dtype.char not in HALVES:
        return array
    return array.astype(np.float32)


def narrowed(array, dtype):
    """Return an array of float32 in a half dtype; any other as it is."""
    if array.dtype.char != "f":
        return array
    return rounded(array, dtype) if dtype.char == CHAR else array.astype(dtype)
