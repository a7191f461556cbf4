"""Fourier transforms: from complex to complex, from real to complex, and from complex to real.

`normalization` is 0 for plain sums, 1 for sums divided by the root of their length, 2 for sums
divided by it. A real signal of n entries has n // 2 + 1 frequencies along the last of `dim`; the
others are their conjugates, and are left out.
"""

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.kernels.index_arrays import on_host
from oneflow_lite.kernels.infer_rules import in_c_order
from oneflow_lite.ops.registry import register_kernel

# Which of the two directions divides.
_FORWARD_NORM = ("backward", "ortho", "forward")
_INVERSE_NORM = ("forward", "ortho", "backward")


def _complex(dtype):
    return np.result_type(dtype, np.complex64)


def _transform(xp, name, x, dim, normalization, n=None):
    """Call the array library's transform in C order; its form for one dimension is quicker."""
    if on_host(xp):
        import scipy.fft as fft  # computes float32 in float32, unlike NumPy's
    else:
        fft = xp.fft
    norm = (_INVERSE_NORM if name[0] == "i" else _FORWARD_NORM)[normalization]
    if len(dim) == 1:
        return xp.ascontiguousarray(getattr(fft, name)(x, n, dim[0], norm))
    return xp.ascontiguousarray(getattr(fft, name + "n")(x, None, dim, norm))


def _resized(x, size, dim, dtype):
    shape = list(x.shape)
    shape[dim[-1]] = size
    return ArraySpec(tuple(shape), dtype)


@in_c_order
def _complex_like(x, **attrs):
    return ArraySpec(x.shape, _complex(x.dtype))


@in_c_order
def _half(x, *, dim, **attrs):
    return _resized(x, x.shape[dim[-1]] // 2 + 1, dim, _complex(x.dtype))


@in_c_order
def _whole(x, *, dim, n, **attrs):
    return _resized(x, n, dim, x.dtype.type(0).real.dtype)


@register_kernel("fft_c2c", infer=_complex_like, sbp="elementwise", linear="x")
def fft_c2c(xp, x, *, dim, normalization, forward):
    """Transform complex or real numbers to complex ones; over no dimension, convert them."""
    if not dim:
        return x.astype(_complex(x.dtype))
    return _transform(xp, "fft" if forward else "ifft", x, dim, normalization)


@register_kernel("fft_r2c", infer=_half, sbp="elementwise", linear="x")
def fft_r2c(xp, x, *, dim, normalization):
    return _transform(xp, "rfft", x, dim, normalization)


@register_kernel("fft_c2r", infer=_whole, sbp="elementwise", linear="x")
def fft_c2r(xp, x, *, dim, n, normalization):
    """Return n real numbers along the last of `dim`; imaginary parts that remain are left out."""
    if len(dim) > 1:
        x = _transform(xp, "ifft", x, dim[:-1], normalization)
    return _transform(xp, "irfft", x, dim[-1:], normalization, n)


def _scale_paired(y, dim, n, factor):
    """Scale the frequencies that stand for two: all but 0 and, of an even n, the highest."""
    y[(slice(None),) * dim[-1] + (slice(1, (n + 1) // 2),)] *= factor
    return y


@register_kernel("fft_r2c_grad", infer=_whole, sbp="elementwise")
def fft_r2c_grad(xp, dy, *, dim, n, normalization):
    """Apply the adjoint of fft_r2c."""
    halved = _scale_paired(dy.copy(), dim, n, 0.5)
    return fft_c2r(xp, halved, dim=dim, n=n, normalization=normalization)


@register_kernel("fft_c2r_grad", infer=_half, sbp="elementwise")
def fft_c2r_grad(xp, dy, *, dim, normalization):
    """Apply the adjoint of fft_c2r."""
    y = _transform(xp, "rfft", dy, dim, normalization)
    return _scale_paired(y, dim, dy.shape[dim[-1]], 2)
