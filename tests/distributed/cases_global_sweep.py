"""Registered ops on global tensors in some signature, against the op on the whole.

By default a third of the ops, for tests/ops/test_sbp_rules.py looks at all ways of all rules.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
import warnings
from typing import Any

import numpy as np

import oneflow_lite as flow
import oneflow_lite.distributed as dist
from oneflow_lite.distributed.global_array import global_array
from oneflow_lite.distributed.placement import B, P, split
from oneflow_lite.errors import InplaceError
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.tensor import Tensor, make_tensor
from tests.op_samples import every_op, floats, samples

# Of memory that global tensors do not have as a whole, and of what a sample draws or counts.
LEFT_OUT = frozenset("empty to_device view_dtype as_strided".split())


def in_signature(array: Any, where: Any, sbp: Any) -> Tensor:
    """Return a global tensor of this array in a signature that may be a partial sum."""
    if P in sbp:  # not of zeros, as a partial sum is that was a whole
        ranks = math.prod(n for n, each in zip(where.shape, sbp, strict=True) if each is P)
        first = all(i == 0 for i, each in zip(where.place, sbp, strict=True) if each is P)
        array = np.asarray(array + (ranks - 1) * 0.5 if first else np.full_like(array, -0.5))
    whole = tuple(P if each is P else B for each in sbp)
    x = make_tensor(global_array(where, whole, array.shape, array.dtype, array.copy()))
    return x.to_global(where, sbp).detach()


THOROUGH = int(os.environ.get("GLOBAL_SWEEP_SIGNATURES", "0"))  # how many for each sample


def signatures(arrays: Any, axes: int) -> list[tuple[Any, ...]]:
    """Return some assignments of signatures to inputs, the same on all ranks."""
    choices = []
    for array in arrays:
        own = [B, *map(split, range(array.ndim))]
        each = [*own, P] if array.dtype.kind == "f" else own
        choices.append(list(itertools.product(each, repeat=axes)))
    every = list(itertools.islice(itertools.product(*choices), 3000))
    picked = np.random.default_rng(len(every)).permutation(len(every))
    return [every[i] for i in picked[: THOROUGH or 1]]


def run(sample: Any, inputs: list[Tensor]) -> tuple[list[Any], list[Any]]:
    """Return the results of a sample, and the gradients of their sum of squares."""
    for i in sample.differentiable:
        inputs[i].requires_grad_()
    found = floats(sample.call(*inputs))
    joined = [y for y in found if y.requires_grad]
    grads: Any = []
    if joined:
        total = sum((y * y.conj()).real.sum() if y.is_complex() else (y * y).sum() for y in joined)
        wanted = [inputs[i] for i in sample.differentiable]
        grads = flow.autograd.grad(total, wanted, allow_unused=True)
    values = [y.detach().numpy().copy() for y in found]
    return values, [None if g is None else g.numpy().copy() for g in grads]


def compare(sample: Any, chosen: Any, where: Any, wanted: Any) -> str:
    """Return what is wrong with a sample in these signatures; nothing where all is right."""
    try:
        inputs = [in_signature(a, where, s) for a, s in zip(sample.inputs, chosen, strict=True)]
        for got, known in zip(run(sample, inputs), wanted, strict=True):
            assert len(got) == len(known), f"{len(got)} results for {len(known)}"
            for a, b in zip(got, known, strict=True):
                assert (a is None) == (b is None), "a gradient is missing"
                if a is not None:
                    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)
    except InplaceError as error:
        return "" if "read-only" in str(error) else f"{sample}: {error}"  # a part that was moved
    except Exception as error:
        lines = [line for line in f"{type(error).__name__}: {error}".splitlines() if line.strip()]
        shapes = [a.shape for a in sample.inputs]
        return f"{shapes} {[str(s) for s in chosen]}: {' | '.join(lines[:4])[:400]}"
    return ""


def case_ops_in_some_signature() -> None:
    ranks = list(range(dist.get_world_size()))
    where = flow.placement("cpu", ranks=[ranks[:2], ranks[2:]] if len(ranks) == 4 else ranks)
    wrong = []
    chosen_ops = [word for word in sys.argv[1:] if not word.startswith("case")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, name in enumerate(chosen_ops or every_op()):
            schema = op_expr(name).schema
            if number % 3 and not (THOROUGH or chosen_ops):
                continue
            if schema.effect or schema.random or name in LEFT_OUT:
                continue
            wide = [x for x in samples(name) if not any(a.dtype.char in "fFe" for a in x.inputs)]
            for sample in wide if THOROUGH else wide[:1]:
                if sample.control_flow:
                    continue
                flow.manual_seed(1)
                wanted = run(sample, [make_tensor(a.copy()) for a in sample.inputs])
                for chosen in signatures(sample.inputs, len(where.shape)):
                    flow.manual_seed(1)
                    said = compare(sample, chosen, where, wanted)
                    if said:
                        wrong.append(f"{name}: {said}")
                        break
    assert not wrong, f"{len(wrong)} of them:\n" + "\n".join(wrong)
