"""How kernels of several steps treat float16: computed in float32, rounded once, as in PyTorch."""

import functools

import numpy as np


def in_float32(kernel):
    """Let a kernel compute float16 in float32.

    The first array decides. Inputs that are None or no halves stay as they are; every float32
    output is rounded, into `out` where that is given.
    """

    @functools.wraps(kernel)
    def rounded_once(xp, *arrays, **attrs):
        if arrays[0].dtype.char != "e":
            return kernel(xp, *arrays, **attrs)
        out = attrs.pop("out", None)
        outputs = kernel(xp, *map(_widened, arrays), **attrs)
        if out is not None:
            out[...] = outputs
            return out
        return tuple(map(_narrowed, outputs)) if isinstance(outputs, tuple) else _narrowed(outputs)

    return rounded_once


def _widened(array):
    if array is None or array.dtype.char != "e":
        return array
    return array.astype(np.float32)


def _narrowed(array):
    return array.astype(np.float16) if array.dtype.char == "f" else array
