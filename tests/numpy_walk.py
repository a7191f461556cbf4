"""A walk through NumPy and scipy.special: what becomes of a gradient in each function.

`CALLS` has calls of every function that asks a tensor; the tests run each against NumPy and take
its derivatives. `python -m tests.numpy_walk --write` writes the table in docs/numpy.md anew.
"""

from __future__ import annotations

import argparse
import io
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.special

import oneflow_lite as flow
from oneflow_lite.errors import FlowError

PAGE = Path(__file__).resolve().parents[1] / "docs" / "numpy.md"
BEGIN, END = "<!-- walk: begin -->\n", "<!-- walk: end -->\n"

A = np.array([[0.9, 0.4, 1.3], [0.2, 1.1, 0.7], [1.6, 0.3, 0.8]])
B = np.array([[0.5, 1.2, 0.1], [1.4, 0.6, 0.95], [0.35, 1.7, 0.15]])
V = np.array([0.7, 0.25, 1.5])
U = np.array([0.35, 0.6, 0.8])  # between 0 and 1, as many functions want it
W = np.array([0.5, 3.1, 4.0, 9.6, 12.2])  # rises
C = A + 1j * B
S = A @ A.T + np.eye(3)  # symmetric and positive definite
NAN = np.where(A > 1.2, np.nan, A)
I = np.array([0, 2, 1])  # noqa: E741
ARRAYS = {"A": A, "B": B, "V": V, "U": U, "W": W, "C": C, "S": S, "NAN": NAN, "I": I}

# Calls of NumPy's functions; the arrays become tensors.
_CALLS = """
    np.abs(C)                                       np.add(V, [V[0], V[1], 0.1])
    np.all(A > 0.3, axis=0)                         np.allclose(A, A)
    np.amax(A, 1)                                   np.amin(A, 0, keepdims=True)
    np.angle(A + 1j * B)                            np.angle(C)
    np.any(A > 1.2)                                 np.append(A, V)
    np.append(A, B, axis=1)                         np.append([0.1], V)
    np.apply_along_axis(lambda r: r * r.sum(), 0, A)
    np.apply_along_axis(lambda r: r.sum(), 1, A)    np.apply_along_axis(np.sum, 0, V)
    np.apply_along_axis(np.diag, 0, A)
    np.apply_along_axis(lambda r, k: k * np.outer(r, r[:2]), 1, A[None], 2)
    np.apply_over_axes(np.sum, A, [0, -1])          np.argmax(A, 1)
    np.argmin(A)                                    np.argpartition(A, 1)
    np.argsort(A, axis=0)                           np.argwhere(A > 1)
    np.around(A)                                    np.array([A[0, 0], V[1], 0.1], like=A)
    np.array([[V[0], 0.1], [0.2, V[1]]], like=V)    np.array2string(A)
    np.array_equal(A, B)                            np.array_equiv(A, A)
    np.array_repr(A)                       np.array_split(A, 2, axis=1)
    np.array_str(A)                                 np.asanyarray(A, like=V)
    np.asarray([V, A[0]], like=V)                   np.ascontiguousarray([V[0], 1], like=V)
    np.astype(A, np.float32)                        np.atleast_1d(V[0])
    np.atleast_2d(V)                                np.atleast_3d(A)
    np.average(A, axis=0)                           np.average(A, 1, V)
    np.average(A, weights=B)                        np.bincount(I, V)
    np.block([[A, A], [A, B]])                      np.block([V, 1.0, V[:1]])
    np.broadcast_arrays(A, V)                       np.broadcast_to(V, (2, 3))
    np.can_cast(A.dtype, np.float32)                np.choose(I, [V, 2 * V, 1.0])
    np.choose(I + 1, [V, V * 2, V * V], mode="wrap")
    np.clip(A, 0.5, 1.0)                            np.clip(A, None, V)
    np.column_stack([V, A])                         np.common_type(A)
    np.compress([True, False, True], A, axis=0)     np.concat([A, B], axis=1)
    np.concatenate([A, B])                          np.concatenate((A, V[None]), axis=0)
    np.concatenate([A, V], axis=None)               np.concatenate([V, [0.1]])
    np.conj(C)                                      np.convolve(V, A[0])
    np.convolve(V, W)                               np.convolve(V, W, "same")
    np.convolve(W, V[:2], "same")                   np.convolve(V, W, "valid")
    np.convolve(C[0], W, "same")                    np.copy(A)
    np.copyto(y := A * 1, B) or y                   np.corrcoef(A, rowvar=False)
    np.correlate(V, W)                              np.correlate(V[:2], W, "same")
    np.correlate(W, V[:2], "same")                  np.correlate(W, C[0], "full")
    np.correlate(C[0], W, "full")                   np.count_nonzero(A > 1)
    np.cov(A)                                       np.cross(A, B)
    np.cross(A, V, axis=-1)                         np.cumprod(A, axis=0)
    np.cumsum(A)                                    np.cumsum(A, 1)
    np.cumulative_prod(A, axis=1)                   np.cumulative_sum(V, include_initial=True)
    np.delete(A, [0, 2], 1)                         np.delete(A, slice(1, None))
    np.delete(V, np.array([True, False, True]))     np.diag(A)
    np.diag(V, 1)                                   np.diag_indices_from(A)
    np.diagflat(A)                                  np.diagonal(A, 1)
    np.diff(A)                                      np.diff(A, 2, axis=0)
    np.diff(A, prepend=0.0)                         np.digitize(A, W)
    np.dot(A, B)                                    np.dot(A, V)
    np.dot(V, V)                                    np.dot(A[None], B[None])
    np.dot(2.0, A)                                  np.dsplit(A[None], 3)
    np.dstack([A, B])                               np.ediff1d(A)
    np.ediff1d(A, to_end=V, to_begin=0.1)           np.einsum("ij,jk->ik", A, B)
    np.einsum("ii", A)                              np.einsum(A, [0, 1], V, [1], [0])
    np.einsum_path("ij,jk", A, B)                   np.empty_like(A[:0])
    np.expand_dims(A, 1)                            np.expand_dims(A, (0, -1))
    np.extract(A > 1, A)                            np.fill_diagonal(A * 1, 1.0)
    np.fix(A)                                       np.flatnonzero(A > 1)
    np.flip(A)                                      np.flip(A, 0)
    np.fliplr(A)                                    np.flipud(A)
    np.full((2, 3), V, like=V)                      np.full(2, V[0], like=V)
    np.full_like(A, 3.0)                            np.geomspace(V, 3.0, 4)
    np.geomspace(-V, -3.0, 4, endpoint=False, axis=1)
    np.geomspace(C, 3.0, 4)                         np.gradient(V)
    np.gradient(A)                                  np.gradient(A, 0.5)
    np.gradient(A, V.cumsum(0), 2.0)                np.gradient(A, V.cumsum(0), axis=1)
    np.gradient(A, V[0], axis=(1, 0))               np.gradient(W, edge_order=2)
    np.gradient(A, edge_order=2, axis=0)            np.gradient(W, W, edge_order=2)
    np.gradient(C, axis=1)                          np.histogram(A)
    np.histogram(A, weights=B)                      np.histogram2d(V, U)
    np.histogram_bin_edges(A)                       np.histogramdd(A)
    np.hsplit(A, [1])                               np.hstack([A, B])
    np.i0(A)                                        np.imag(A)
    np.imag(C)
    np.inner(A, B)                                  np.insert(V, 1, 3.0)
    np.insert(A, [0, 2], A[:, :2], axis=1)          np.insert(A, 1, V, axis=0)
    np.insert(V, slice(0, 2), V[:2])                np.interp(B, np.sort(V), A[0])
    np.interp([0.1, 2.0, 20.0], W, W ** 2, left=V[0])
    np.interp(V, [0.1, 2.0], [0.3, V[0]])           np.intersect1d(A, V)
    np.iscomplex(C)                                 np.iscomplexobj(A)
    np.isin(A, V)                                   np.isclose(A, B, atol=0.5)
    np.isneginf(A)
    np.isposinf(A)                                  np.isreal(C)
    np.isrealobj(A)                                 np.ix_(I, I)
    np.kron(A, V)                                   np.lexsort(A)
    np.linspace(V, 2 * V, 4)
    np.linspace(0.3, V, 4, endpoint=False, axis=1)
    np.linspace(V[0], V[1], 3, retstep=True)        np.linspace(C, V, 3)
    np.linspace(V, 3, 1)                            np.logspace(V, 0.5, 3)
    np.logspace(0.1, 0.5, 3, base=V, axis=-1)       np.matrix_transpose(A)
    np.max(A)                                       np.may_share_memory(A, A)
    np.mean(A, axis=1, keepdims=True)               np.mean(A)
    np.median(A)                                    np.median(A, axis=1, keepdims=True)
    np.median(V[:2])                                np.meshgrid(V, V[:2])
    np.meshgrid(V, V[:2], indexing="ij")            np.min(A, axis=(0, 1))
    np.min_scalar_type(A)                           np.moveaxis(A, 0, 1)
    np.nan_to_num(NAN)                              np.nan_to_num(A)
    np.nanargmax(NAN)                               np.nanargmin(NAN, 1)
    np.nancumprod(NAN, 1)                           np.nancumsum(NAN)
    np.nanmax(NAN, 1)                               np.nanmean(NAN, 0)
    np.nanmean(NAN)                                 np.nanmedian(NAN, 1)
    np.nanmedian(NAN)                               np.nanmin(NAN)
    np.nanpercentile(NAN, [20, 70], axis=1)         np.nanprod(NAN)
    np.nanquantile(NAN, 0.3)                        np.nanstd(NAN, 0, keepdims=True)
    np.nansum(NAN, 1)                               np.nanvar(NAN)
    np.nanvar(NAN, axis=1, ddof=1)                  np.ndim(A)
    np.nonzero(A > 1)                               np.ones_like(A)
    np.outer(A, V)                                  np.packbits(A > 1)
    np.pad(A, 1)
    np.pad(A, ((1, 2), (3, 0)), constant_values=2.5)
    np.pad(V, (2, 1), constant_values=(V[0], 1.0))
    np.pad(A, (1, 2), mode="edge")                       np.pad(V, (7, 2), mode="wrap")
    np.pad(V, (7, 3), mode="reflect")
    np.pad(A[:2], 1, mode="reflect", reflect_type="odd")
    np.pad(V, (8, 9), mode="reflect", reflect_type="odd")
    np.pad(A, (1, 4), mode="symmetric")
    np.pad(V, (8, 5), mode="symmetric", reflect_type="odd")
    np.pad(C[0], 2, mode="reflect", reflect_type="odd")
    np.pad(V[:1], 2, mode="symmetric", reflect_type="odd")
    np.pad(A[1:], ((1, 0), (0, 3)), mode="linear_ramp")
    np.pad(A[:2], 1, mode="linear_ramp", end_values=((1.5, 2), (0.1, 0)))
    np.pad(C[0], 2, mode="linear_ramp", end_values=2j)
    np.pad(A, (2, 1), mode="mean")                  np.pad(A, 1, mode="mean", stat_length=2)
    np.pad(A, 1, mode="maximum")
    np.pad(A, (0, 2), mode="minimum", stat_length=((1, 2), (2, 1)))
    np.pad(A, 2, mode="median", stat_length=(3, 2))
    np.pad(V, ((1, 2),), mode="edge")             np.partition(A, 1)
    np.partition(A, (0, 2), axis=0)                 np.partition(A, 4, axis=None)
    np.percentile(A, 30, axis=0)                    np.permute_dims(A, (1, 0))
    np.piecewise(V, [V > 1, V < 0.5], [lambda x: x * x, 2.0])
    np.piecewise(V, [V > 1, V < 0.5], [lambda x: x * x, 2.0, lambda x: -x])
    np.piecewise(A, [A > 1], [lambda x, k: x ** k, 2.0], 3)
    np.piecewise(V[0], [V[0] > 1, V[0] < 1], [lambda x: x * x, lambda x: 2 * x])
    np.piecewise(V[0], V[0] < 1, [np.sqrt])         np.place(A * 1, A > 1, [1.0])
    np.poly(V)                                      np.polyadd(V, A[0])
    np.polyder(V)                                   np.polydiv(W, V)
    np.polyfit(V, A[0], 1)                          np.polyint(V)
    np.polymul(V, V)                                np.polysub(V, A[0])
    np.polyval(V, A)                                np.polyval([1.0, 2.0], V)
    np.polyval(V, 2.0)                              np.prod(A, axis=(0, 1))
    np.prod(A, 0, keepdims=True)                    np.ptp(A, 0)
    np.put(A * 1, [0], 1.0)                         np.put_along_axis(A * 1, I[None], 1.0, 0)
    np.putmask(A * 1, A > 1, B)                     np.quantile(A, 0.3)
    np.quantile(A, np.array([0.2, 0.6]), axis=1)    np.ravel(A)
    np.ravel(A, order="F")                          np.ravel_multi_index((I, I), (3, 3))
    np.real(A)                                      np.real_if_close(A + 0j)
    np.real_if_close(A + 1j)                        np.repeat(A, 2)
    np.repeat(A, [1, 0, 2], axis=1)                 np.reshape(A, 9)
    np.reshape(A, (1, -1))                          np.reshape(A, (9,), order="F")
    np.resize(A, (4, 5))                            np.result_type(A, np.float32)
    np.roll(A, 2)                                   np.roll(A, (1, 2), axis=(0, 1))
    np.rollaxis(A[None], 2)                         np.rollaxis(A[None], 1, 3)
    np.roots(V)                                     np.rot90(A)
    np.rot90(A, -1)                                 np.round(A, 1)
    np.save(io.BytesIO(), A)                        np.savetxt(io.BytesIO(), A)
    np.savez(io.BytesIO(), A)                       np.savez_compressed(io.BytesIO(), A)
    np.searchsorted(np.sort(V), A)                  np.select([A > 1, A > 0.5], [A, B])
    np.select([A > 1, A > 0.5], [A, 3.0], default=V)
    np.select([V > 1], [A])                         np.setdiff1d(A, V)
    np.setxor1d(A, V)                               np.shape(A)
    np.shares_memory(A, A)                          np.sinc(A)
    np.size(A)                                      np.sort(A)
    np.sort(A, axis=0)                              np.sort(A, axis=None)
    np.sort_complex(V)                              np.split(A, 3)
    np.squeeze(A[None])                             np.squeeze(A[None], axis=0)
    np.stack([A, B], axis=1)                        np.std(A)
    np.std(A, 0, ddof=1)                            np.sum(A, 0)
    np.sum(A, axis=(0, 1), keepdims=True)           np.sum(a=A, axis=1)
    np.swapaxes(A, 0, 1)                            np.take(A, [0, -1], axis=1)
    np.take(A, np.array([[4, 2]]))                  np.take(A, [4, 11], mode="wrap")
    np.take(A, [1, 0], axis=1)
    np.take_along_axis(A, np.argsort(A, 1), axis=1)
    np.tensordot(A, B)                              np.tensordot(A, B, axes=([0], [1]))
    np.tile(A, 2)                                   np.tile(A, (2, 1))
    np.trace(A)                                     np.trace(A, 1)
    np.transpose(A)                                 np.transpose(A[None], (1, 0, 2))
    np.trapezoid(A)                                 np.trapezoid(A, x=V, axis=0)
    np.tril(A)                                      np.tril_indices_from(A)
    np.trim_zeros(V)                                np.triu(A, k=1)
    np.triu_indices_from(A)                         np.union1d(A, V)
    np.unique(np.round(A))                          np.unique(A)
    np.unique_all(A)                                np.unique_counts(A)
    np.unique_inverse(A)                            np.unique_values(A)
    np.unpackbits(np.packbits(A > 1))               np.unravel_index(I, (3, 3))
    np.unstack(A)                                   np.unwrap(W)
    np.unwrap(3 * A, axis=0, period=2)              np.unwrap(W, discont=5)
    np.vander(V)                                    np.vander(V, 4, increasing=True)
    np.var(A, axis=(0, 1))                          np.vdot(A, B)
    np.vsplit(A, [1, 2])                            np.vstack([A, V])
    np.where(A > 1, A, B)                           np.where(A > 1, A, 0.5)
    np.where(A > 1)                                 np.where(A > 1, 0.1, A)
    np.zeros(3, like=V)                             np.zeros_like(A)
    np.fft.fft(A)                                   np.fft.fft(A, n=5, norm="forward")
    np.fft.fft2(A, norm="ortho")                    np.fft.fftn(A)
    np.fft.fftshift(A)                              np.fft.fftshift(C, axes=0)
    np.fft.hfft(C[0])                               np.fft.ifft(A, axis=0)
    np.fft.ifft2(C)                                 np.fft.ifftn(C, axes=(0,))
    np.fft.ifftshift(A, axes=1)                     np.fft.ihfft(V)
    np.fft.irfft(A + 0j, norm="ortho")              np.fft.irfft(C, n=5)
    np.fft.irfft2(C, s=(2, 3))                      np.fft.irfftn(C)
    np.fft.rfft(A, n=4)                             np.fft.rfft2(A)
    np.fft.rfftn(A)                                 np.linalg.cholesky(S)
    np.linalg.cond(A)                               np.linalg.cond(A, 1)
    np.linalg.cross(A, B)                           np.linalg.det(A)
    np.linalg.det(C)                                np.linalg.diagonal(A)
    np.abs(np.linalg.eig(A)[1])                     np.linalg.eigh(S)[0]
    np.abs(np.linalg.eigh(S)[1])                    np.linalg.eigvals(C)
    np.linalg.eigvalsh(S)                           np.linalg.inv(A)
    np.linalg.inv(C)                                np.linalg.lstsq(A, V)[::3]
    np.linalg.lstsq(A[:, :2], B)[::3]
    np.linalg.lstsq(A[:, :2], V)[:2]                np.linalg.matmul(A, B)
    np.linalg.matrix_norm(A)                        np.linalg.matrix_power(A, 3)
    np.linalg.matrix_power(A, -2)                   np.linalg.matrix_rank(A)
    np.linalg.matrix_transpose(A)                   np.linalg.multi_dot([A, B, V])
    np.linalg.norm(A)                               np.linalg.norm(A, axis=1)
    np.linalg.norm(V, ord=1)                        np.linalg.norm(A, "nuc")
    np.linalg.norm(A, 2)                            np.linalg.norm(A, 1, axis=(0, 1))
    np.linalg.norm(V, 3)                            np.linalg.norm(C)
    np.linalg.outer(V, V)                           np.linalg.pinv(A)
    np.linalg.pinv(A[:2])                           np.linalg.qr(A)
    np.linalg.slogdet(A)                            np.linalg.solve(A, V)
    np.linalg.solve(A, B)                           np.linalg.svd(A)
    np.linalg.svd(A[:2], full_matrices=False)       np.linalg.svd(A, compute_uv=False)
    np.linalg.svdvals(A)                            np.linalg.tensordot(A, B)
    np.linalg.tensorinv(A[None, :, :, None], ind=2)
    np.linalg.tensorsolve(A, V)                     np.linalg.trace(A)
    np.linalg.vecdot(A, B)                          np.linalg.vector_norm(A, axis=0)
    special.sinc(U)                                 special.softplus(U)
"""
CALLS = [
    part.strip() for line in _CALLS.splitlines() for part in re.split("  +", line) if part.strip()
]

# Arguments of ufuncs, by name; the others are called with U and its like.
ARGUMENTS = {
    "arccosh": "V + 1",
    "acosh": "V + 1",
    "matmul": "A, B",
    "matvec": "A, V",
    "vecmat": "V, A",
    "ldexp": "U, I",
    # Orders and parameters have no derivative.
    "betainc": "0.7, 0.4, U",
    "betaincc": "0.7, 0.4, U",
    "expn": "I + 1, U",
    **dict.fromkeys(["bdtr", "bdtrc", "bdtri"], "U, I + 1, U"),
    "gammainc": "0.7, U",
    "gammaincc": "0.7, U",
    **dict.fromkeys(["jn", "kn", "yn"], "I, U"),
    **dict.fromkeys(["iv", "ive", "jv", "kv", "kve", "yv"], "0.5, U"),
}
# They ask for dates, which no tensor has.
DATES = {"busday_count", "busday_offset", "datetime_as_string", "is_busday", "isnat"}

# The functions with gradients in HIPS autograd 1.9.1, but for its own helpers.
HIPS = {
    "numpy": """
        abs absolute acos acosh add amax amin angle arccos arccosh arcsin arcsinh arctan arctan2
        arctanh array array_split asin asinh astype atan atan2 atanh atleast_1d atleast_2d
        atleast_3d broadcast_to clip concatenate conj conjugate cos cosh cross cumsum deg2rad
        degrees diag diagonal diff divide dot dsplit einsum exp exp2 expand_dims expm1 fabs fliplr
        flipud fmax fmin full gradient hsplit hypot imag inner kron linspace log log10 log1p log2
        logaddexp logaddexp2 matmul max maximum mean min minimum mod moveaxis multiply nan_to_num
        negative outer pad partition permute_dims pow power prod rad2deg radians ravel real
        real_if_close reciprocal remainder repeat reshape roll rollaxis rot90 select sin sinc sinh
        sort split sqrt square squeeze stack std subtract sum swapaxes tan tanh tensordot tile
        trace transpose tril triu true_divide var vsplit vstack where
    """,
    "numpy.linalg": "cholesky det eig eigh inv norm pinv slogdet solve svd",
    "numpy.fft": """
        fft fft2 fftn fftshift ifft ifft2 ifftn ifftshift irfft irfft2 irfftn rfft rfft2 rfftn
    """,
    "scipy.special": """
        beta betainc betaln digamma erf erfc erfcinv erfinv expit gamma gammainc gammaincc gammaln
        gammasgn i0 i1 iv ive j0 j1 jn logit logsumexp multigammaln polygamma psi rgamma y0 y1 yn
    """,
}
# Of these functions SciPy makes arrays; docs/numpy.md names ours.
NO_UFUNCS = ["logsumexp", "multigammaln", "polygamma"]

MODULES = {
    "numpy": np,
    "numpy.linalg": np.linalg,
    "numpy.fft": np.fft,
    "scipy.special": scipy.special,
}
RECORDED, CONSTANT, REFUSED, NOT_ASKED = "recorded", "constant", "refused", "not asked"


def evaluate(call: str, wrap: Callable[[np.ndarray], Any] = np.asarray, **given: Any) -> Any:
    """Run a call with its arrays changed, or others given by name."""
    arrays = {name: wrap(array) for name, array in ARRAYS.items() if name not in given}
    return eval(call, {"np": np, "special": scipy.special, "io": io, **arrays, **given})


def leaf(array: np.ndarray) -> flow.Tensor:
    """Return a tensor that requires a gradient, if it can."""
    return flow.tensor(array, requires_grad=array.dtype.kind in "fc")


def leaves(result: Any) -> list[Any]:
    """Return all tensors, arrays and numbers in a result."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    return [result]


def ufunc_call(prefix: str, name: str, ufunc: np.ufunc) -> str:
    """Return a call of a ufunc with floats, and with integers where it takes no floats."""
    given = ARGUMENTS.get(name)
    if given is None:
        floats, integers = ["U", "V / 3", "U * U"] * 3, ["I", "I + 1", "I"] * 3
        takes = [{types[i] for types in ufunc.types} & set("fdFD") for i in range(ufunc.nin)]
        given = ", ".join([floats[i] if kinds else integers[i] for i, kinds in enumerate(takes)])
    return f"{prefix}.{name}({given})"


def calls_of(place: str, name: str) -> list[str]:
    """Return the calls of a function of a module, also under its other names."""
    prefix = {"numpy": "np", "scipy.special": "special"}.get(place, place.replace("numpy", "np"))
    function = getattr(MODULES[place], name)
    if isinstance(function, np.ufunc):
        return [ufunc_call(prefix, name, function)]
    if isinstance(function, type) or not callable(function):
        return []
    names = [
        other
        for other in sorted(MODULES[place].__all__)
        if getattr(MODULES[place], other) is function
    ]
    starts = tuple([f"{prefix}.{other}(" for other in names])
    return [call for call in CALLS if call.removeprefix("np.abs(").startswith(starts)]


def outcome(call: str) -> str:
    """Return what becomes of the gradients of tensors in a call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = leaves(evaluate(call, leaf))
            recorded = [x for x in found if isinstance(x, flow.Tensor) and x.requires_grad]
            for x in recorded:
                x.backward(flow.ones_like(x), retain_graph=True)
        except FlowError:
            return REFUSED
    return RECORDED if recorded else CONSTANT


def asks(function: Any) -> bool:
    """Return whether a function lets its arguments take over."""
    return isinstance(function, np.ufunc) or hasattr(function, "_implementation")


def walk(place: str) -> dict[str, str]:
    """Return by name the best outcome of the calls of a module's functions."""
    found = {}
    for name in sorted(MODULES[place].__all__):
        calls = [] if name in DATES else calls_of(place, name)
        if not calls and asks(getattr(MODULES[place], name)) and name not in DATES:
            raise LookupError(f"{place}.{name} has no call in tests/numpy_walk.py")
        outcomes = set(map(outcome, calls))
        order = (RECORDED, REFUSED, CONSTANT, NOT_ASKED)
        found[name] = next((each for each in order if each in outcomes), NOT_ASKED)
    return found


_ROWS = {
    RECORDED: "it is recorded",
    CONSTANT: "there is none: truth values, whole numbers, texts or constants come out",
    REFUSED: "the call raises",
}


def versions() -> str:
    """Return the versions that the walk is of."""
    short = [".".join(module.__version__.split(".")[:2]) for module in (np, scipy)]
    return "NumPy {}, SciPy {}".format(*short)


def table() -> str:
    """Return the table of docs/numpy.md."""
    rows = [f"| {versions()} | the gradient | functions |", "| --- | --- | --- |"]
    for place in MODULES:
        outcomes = walk(place)
        for each, says in _ROWS.items():
            names = [f"`{name}`" for name in sorted(outcomes) if outcomes[name] == each]
            rest = place == "scipy.special" and each == REFUSED
            if names:
                rows.append(
                    f"| {place} | {says} | {'all other ufuncs' if rest else ' '.join(names)} |"
                )
    return f"{BEGIN}" + "\n".join(rows) + f"\n{END}"


def page() -> str:
    """Return the text of docs/numpy.md with the table as it is now."""
    text = PAGE.read_text("utf-8")
    return text.partition(BEGIN)[0] + table() + text.partition(END)[2]


def main() -> None:
    """Write the table, or print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/numpy.md")
    if parser.parse_args().write:
        PAGE.write_text(page(), "utf-8")
    else:
        print(table())


if __name__ == "__main__":
    main()
