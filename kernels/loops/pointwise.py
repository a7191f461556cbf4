"""Loops of pointwise kernels, written from the ops' scalar expressions."""

import functools

import numpy as np

from oneflow_lite.eager_loops import Loop
from oneflow_lite.registry import KERNELS
from oneflow_lite.scalar_expression import scalar_of


def run(op_type_name, *arrays, out=None, **attrs):
    first = arrays[0]
    if first.dtype.char not in "fd":
        return None
    for x in arrays:
        if x.dtype is not first.dtype or x.shape != first.shape:
            return None
    texts = tuple([(name, x) for name, x in attrs.items() if type(x) is str])
    loop, numbers = _loop(
        op_type_name, texts, tuple([n for n in attrs if type(attrs[n]) is not str])
    )
    if loop is None:
        return None
    y = np.empty(first.shape, first.dtype) if out is None else out
    given = [attrs[name] for name in numbers]
    return (
        y if loop(first.size, *[x.reshape(-1) for x in (*arrays, y)], *map(float, given)) else None
    )


@functools.cache
def _loop(op_type_name, texts, numbers):
    """Return the loop of an op, and which attributes it takes as numbers."""
    schema = KERNELS.get(op_type_name).schema
    stands_for = {name: f"a{i}[i]" for i, name in enumerate(schema.inputs)}
    stands_for.update({name: f"real(p_{name})" for name in numbers})
    scalar = scalar_of(op_type_name, {**dict.fromkeys(numbers, 1.0), **dict(texts)})
    if scalar is None:
        return None, ()
    arrays = [f"a{i}" for i in range(len(schema.inputs))] + ["y"]
    lines = scalar.steps(stands_for, "t", lambda x: f"real({float(x)!r})")
    source = [
        f"def group(part, begin, end, {', '.join([*arrays, *[f'p_{n}' for n in numbers]])}):",
        *[f"    {x} = {x}[begin:end]" for x in arrays],
        "    for i in range(y.size):",  # from 0: else Numba asks of each index whether it is below
        *[f"        {line}" for line in lines],
        "        y[i] = t",
    ]
    return Loop("\n".join(source) + "\n"), numbers
