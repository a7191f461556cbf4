"""Compares a function of tensors with PyTorch's: values and derivatives of any order.

Serves ops with several outputs, with arguments that are not differentiated, and complex ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import oneflow_lite as flow


def _array(tensor: Any) -> Any:
    return tensor.detach().resolve_conj().numpy(force=True)


def _flow_array(tensor: Any) -> Any:
    return tensor.detach().numpy()


def _gradients(total: Any, wanted: list[Any], **options: Any) -> list[Any]:
    return list(flow.autograd.grad(total, wanted, allow_unused=True, **options))


def _derivatives(
    lib: Any, array_of: Any, function: Callable[..., Any], arrays: Any, orders: int
) -> Any:
    """Return the results and, order by order, the gradients by all floating arguments."""
    leaves = [lib.tensor(array) for array in arrays]
    wanted = [leaf.requires_grad_() for leaf in leaves if array_of(leaf).dtype.kind in "fc"]
    result = function(*leaves)
    results = list(result) if isinstance(result, tuple) else [result]
    found = [[array_of(y) for y in results]]
    current = [y for y in results if y.requires_grad]
    for order in range(orders):
        rng = np.random.default_rng(order)
        # A weight of its own for each element, so that no two errors cancel.
        terms = []
        for y in current:
            weight = rng.uniform(0.5, 1.5, tuple(y.shape))
            if array_of(y).dtype.kind == "c":
                weight = weight + 1j * rng.uniform(-1.5, 1.5, tuple(y.shape))
            terms.append(y * lib.tensor(np.asarray(weight, array_of(y).dtype)))
        total = sum(term.sum() for term in terms)
        if not current or not total.requires_grad:
            break
        if array_of(total).dtype.kind == "c":
            total = total.real
        if lib is flow:
            # Both modes of the rules: on bare arrays, and recorded.
            raw = _gradients(total, wanted, retain_graph=True)
            grads = _gradients(total, wanted, create_graph=True)
            for g, h in zip(raw, grads, strict=True):
                assert (g is None) == (h is None)
                if g is not None:
                    np.testing.assert_allclose(g.numpy(), array_of(h), rtol=1e-4, atol=1e-6)
        else:
            grads = lib.autograd.grad(total, wanted, create_graph=True, allow_unused=True)
        # A derivative that is not in the graph is zero.
        found.append(
            [
                np.zeros_like(array_of(x)) if g is None else array_of(g)
                for g, x in zip(grads, wanted, strict=True)
            ]
        )
        current = [g for g in grads if g is not None and g.requires_grad]
    return found


_LEAST = {"float16": 1e-2, "float32": 1e-4, "complex64": 1e-4}


def compare(
    ours: Callable[..., Any],
    theirs: Callable[..., Any],
    *arrays: Any,
    orders: int = 2,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Assert that two functions agree, and so do their derivatives up to an order."""
    import torch

    arrays = tuple(np.asarray(a) for a in arrays)
    single = any(a.dtype in (np.float32, np.complex64) for a in arrays)
    rtol = rtol or (1e-4 if single else 1e-9)
    atol = atol or (1e-5 if single else 1e-10)
    got = _derivatives(flow, _flow_array, ours, arrays, orders)
    expected = _derivatives(torch, _array, theirs, arrays, orders)
    for order in range(max(len(got), len(expected))):
        if order < min(len(got), len(expected)):
            assert len(got[order]) == len(expected[order])
            for x, y in zip(got[order], expected[order], strict=True):
                assert x.shape == y.shape, f"order {order}: shape {x.shape}, PyTorch {y.shape}"
                assert x.dtype == y.dtype, f"order {order}: dtype {x.dtype}, PyTorch {y.dtype}"
                least = _LEAST.get(y.dtype.name, 0.0)  # of a result in less precision
                near = max(rtol, least), max(atol, least / 10)
                np.testing.assert_allclose(x, y, *near, err_msg=f"order {order}")
        else:  # one side has no graph left: the other's derivatives must be zero
            for x in got[order] if order < len(got) else expected[order]:
                np.testing.assert_array_equal(x, np.zeros_like(x), err_msg=f"order {order}")
