"""Compares control flow in a Program with eager Python, gradients of several orders too."""

from __future__ import annotations

import numpy as np

import oneflow_lite as flow
from oneflow_lite import static

F64 = "float64"


def array(*values, dtype=F64):
    return np.array(values, dtype)


def derivatives(fn, tensors, order):
    """Return fn's result, then all partial derivatives of weighted sums, order by order."""
    results = [fn(*tensors)]
    y = results[0]
    for k in range(order):
        weights = flow.arange(1, y.numel() + 1, dtype=y.dtype).reshape(y.shape) / (k + 2)
        total = (y * weights).sum()
        if not total.requires_grad:
            total = total + sum((x * 0).sum() for x in tensors)
        grads = flow.autograd.grad(total, tensors, create_graph=True, materialize_grads=True)
        results += grads
        y = sum((g * g).sum() + g.sum() for g in grads)
    return results


def check(fn, *samples, order=2, passes=None, mode="straight_line"):
    """Capture fn and its derivatives once, run them on each sample, and compare with eager."""
    first = samples[0]
    main = static.Program()
    with static.program_guard(main, static.Program()):
        tensors = [static.data(f"x{i}", x.shape, x.dtype) for i, x in enumerate(first)]
        for x in tensors:
            x.requires_grad = x.dtype.kind == "f"
        wanted = [x for x in tensors if x.requires_grad]
        captured = derivatives(lambda *_: fn(*tensors), wanted, order)
    executor = static.Executor(passes=passes, mode=mode)
    for sample in samples:
        feed = {f"x{i}": x for i, x in enumerate(sample)}
        got = executor.run(main, feed, captured)
        eager = [flow.tensor(x) for x in sample]
        for x in eager:
            x.requires_grad = x.dtype.kind == "f"
        wanted = [x for x in eager if x.requires_grad]
        want = derivatives(lambda *_, own=eager: fn(*own), wanted, order)
        assert len(got) == len(want) > order
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-10, atol=1e-12)
    core = executor.analyse(main, list(feed), captured)
    core.check()
    return main
