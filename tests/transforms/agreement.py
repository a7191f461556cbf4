"""Compares transforms with a loop, with finite differences and with gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite.transforms import batching

Arrays = Sequence[np.ndarray]


def tensors_of(result: Any) -> list[flow.Tensor]:
    """Return the tensors of a result, nested in any way."""
    if isinstance(result, flow.Tensor):
        return [result]
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (tuple, list)):
        return [tensor for part in result for tensor in tensors_of(part)]
    return []


def entries(arrays: Arrays, which: Sequence[int], count: int = 3) -> list[list[np.ndarray]]:
    """Return the inputs of some entries: other values at these places, inside the domains."""
    made = []
    for k in range(count):
        row = []
        for i, x in enumerate(arrays):
            if i not in which or not k:
                row.append(x)
            elif x.dtype.kind in "fc":
                row.append((x * (1 - k / 128)).astype(x.dtype))
            else:
                row.append(np.flip(x, -1).copy() if x.ndim and k == 1 else x)
        made.append(row)
    return made


def assert_close(ours: Any, theirs: Any, what: str, factor: float = 1.0) -> None:
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape, (what, ours.shape, theirs.shape)
    assert ours.dtype == theirs.dtype, (what, ours.dtype, theirs.dtype)
    wide = ours.dtype.char in "dD"
    tolerance = (1e-9 if wide else 3e-3 if ours.dtype.char in "eE" else 3e-4) * factor
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, err_msg=what)


def batches(
    function: Callable[..., Any],
    arrays: Arrays,
    which: Sequence[int],
    randomness: str = "error",
) -> set[str]:
    """Compare vmap over some inputs with a loop; return the names of ops that were looped."""
    rows = entries(arrays, which)
    columns = list(zip(*rows, strict=True))
    stacked = [np.stack(c) if i in which else c[0] for i, c in enumerate(columns)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [tensors_of(function(*map(flow.tensor, row))) for row in rows]
    dims = tuple(0 if i in which else None for i in range(len(arrays)))
    flat = lambda *xs: tuple(tensors_of(function(*xs)))  # noqa: E731
    batching._warned.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = flow.vmap(flat, dims, randomness=randomness)(*map(flow.tensor, stacked))
    assert len(made) == len(expected[0])
    for n, y in enumerate(made):
        column = [row[n].detach().numpy() for row in expected]
        assert_close(y.detach().numpy(), np.stack(column), f"output {n}, batch of {which}")
    said = [str(w.message) for w in caught]
    return {text.split(" ")[1] for text in said if "has no rule for a batch" in text}


def tangents(function: Callable[..., Any], arrays: Arrays, which: Sequence[int]) -> int:
    """Compare jvp with products by gradients; return the number of outputs compared.

    Where an output is infinite or NaN, its derivatives are not compared.
    """
    rng = np.random.default_rng(3)
    inputs = [flow.tensor(x) for x in arrays]
    moving = [i for i in which if arrays[i].dtype.kind in "fc"]
    vectors = []
    for i in moving:
        v = rng.standard_normal(arrays[i].shape)
        if arrays[i].dtype.kind == "c":
            v = v + 1j * rng.standard_normal(arrays[i].shape)
        vectors.append(v.astype(arrays[i].dtype))

    def at(*given: Any) -> tuple[Any, ...]:
        full = list(inputs)
        for i, x in zip(moving, given, strict=True):
            full[i] = x
        return tuple(tensors_of(function(*full)))

    points = tuple(inputs[i] for i in moving)
    values, products = flow.func.jvp(at, points, tuple(map(flow.tensor, vectors)))
    leaves = [flow.tensor(arrays[i]).requires_grad_() for i in moving]
    outputs = at(*leaves)
    compared = 0
    for n, (y, made) in enumerate(zip(outputs, products, strict=True)):
        assert_close(values[n].detach().numpy(), y.detach().numpy(), f"value {n}")
        if y.dtype.kind not in "fc" or not y.requires_grad:
            assert not made.detach().numpy().any(), f"tangent of {n}"
            continue
        # <u, J v> = <Jᵀ u, v>, the real inner product
        u = rng.standard_normal(tuple(y.shape)).astype(y.dtype)
        if y.dtype.kind == "c":
            u = (u + 1j * rng.standard_normal(tuple(y.shape))).astype(y.dtype)
        finite = np.isfinite(y.detach().numpy())
        if y.numel() and not finite.any():
            continue
        u = np.where(finite, u, u.dtype.type(0))
        moved = np.where(finite, made.detach().numpy(), u.dtype.type(0))
        grads = flow.autograd.grad(y, leaves, flow.tensor(u), retain_graph=True, allow_unused=True)
        left = np.sum(np.real(np.conj(u) * moved))
        right = sum(
            np.sum(np.real(np.conj(g.detach().numpy()) * v))
            for g, v in zip(grads, vectors, strict=True)
            if g is not None
        )
        scale = 1 + np.abs(u).sum() * max(np.abs(moved).max(initial=0), 1)
        tolerance = 1e-10 if y.dtype.char in "dD" else 1e-4
        if y.dtype.char in "eE":
            tolerance = 1e-2
        assert abs(left - right) <= tolerance * scale, (f"tangent of {n}", left, right)
        compared += 1
    return compared
