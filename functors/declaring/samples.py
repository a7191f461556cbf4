"""Sample calls of declared functors: what every sweep of the tests runs.

A declaration gives the arguments of its samples as text, such as `x(2, 3), dim=1`. The words are
functions of this module: each makes an array whose values differ, and lie away from kinks, ties
and poles. Nothing here is imported before samples are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite.arrays.dtype import SUPPORTED
from oneflow_lite.functors.declaring.declare import DECLARATIONS, Declaration
from oneflow_lite.tensors.tensor import Tensor

Array = np.ndarray[Any, Any]


class Sample:
    """Arguments of one call. Floating and complex arrays among them are differentiated.

    >>> import numpy as np
    >>> import oneflow_lite as flow
    >>> flow.testing.check_op("exp", [flow.testing.Sample(np.array([0.5, -1.0]))])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs

    def __repr__(self) -> str:
        parts = [_brief(a) for a in self.args]
        parts += [f"{name}={_brief(a)}" for name, a in self.kwargs.items()]
        return f"Sample({', '.join(parts)})"


class Fixed:
    """Wraps an array in a sample that is not differentiated."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __repr__(self) -> str:
        return f"Fixed({_brief(self.array)})"


def _brief(value: Any) -> str:
    if isinstance(value, (np.ndarray, Tensor)):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(map(_brief, value))})"
    return repr(value)


class _Words:
    """The words of one sample; equal words in one sample make different values."""

    def __init__(self) -> None:
        self._made = 0

    def _spread(self, shape: tuple[int, ...], low: float, high: float) -> Array:
        """Return distinct values between two bounds, in mixed order, exact in single precision."""
        self._made += 1
        count = math.prod(shape)
        rng = np.random.default_rng(self._made)
        steps = (rng.permutation(count) + 0.3719 + 0.0613 * (self._made % 5)) / max(count, 1)
        return (low + (high - low) * steps).astype(np.float32).astype(np.float64).reshape(shape)

    def x(self, *shape: int) -> Array:
        """Real numbers from -2.5 to 2.5."""
        return self._spread(shape, -2.5, 2.5)

    def pos(self, *shape: int) -> Array:
        """Positive numbers from 0.25 to 3."""
        return self._spread(shape, 0.25, 3.0)

    def unit(self, *shape: int) -> Array:
        """Numbers from -0.9 to 0.9."""
        return self._spread(shape, -0.9, 0.9)

    def share(self, *shape: int) -> Array:
        """Numbers from 0.1 to 0.9."""
        return self._spread(shape, 0.1, 0.9)

    def z(self, *shape: int) -> Array:
        """Complex numbers."""
        return self._spread(shape, -1.5, 1.5) + 1j * self._spread(shape, -1.5, 1.5)

    def m(self, *shape: int) -> Array:
        """Well conditioned matrices: `m(3)` is 3 by 3, `m(2, 3)` two of them."""
        size = shape[-1]
        return self._spread((*shape, size), -1.0, 1.0) + 2 * np.eye(size)

    def zm(self, *shape: int) -> Array:
        """Well conditioned complex matrices."""
        return self.m(*shape) + 1j * self._spread((*shape, shape[-1]), -1.0, 1.0)

    def spd(self, *shape: int) -> Array:
        """Symmetric positive definite matrices."""
        half: Array = self.m(*shape)
        return half @ np.swapaxes(half, -1, -2) + np.eye(shape[-1])

    def i(self, *shape: int, n: int = 5, low: int = 0) -> Array:
        """Integers from `low` to below `n`."""
        self._made += 1
        return np.random.default_rng(self._made).integers(low, n, shape)

    def perm(self, n: int) -> Array:
        """The integers below n, in mixed order."""
        self._made += 1
        return np.random.default_rng(self._made).permutation(n)

    def b(self, *shape: int) -> Array:
        """Truth values, of both kinds where there is room."""
        self._made += 1
        mixed = np.random.default_rng(self._made).permutation(math.prod(shape))
        return np.asarray(mixed.reshape(shape) % 2 == 0)


def scope() -> dict[str, Any]:
    """Return the names that the text of one sample may use."""
    words = _Words()
    made: dict[str, Any] = {n: getattr(words, n) for n in dir(words) if not n.startswith("_")}
    made.update({str(d): d for d in SUPPORTED})
    return {**made, "fixed": Fixed, "np": np, "inf": math.inf, "nan": math.nan}


def derived(declaration: Declaration) -> tuple[str, ...]:
    """Return the arguments of a sample, from the domains; none where a domain has no sample."""
    words = []
    if declaration.result is bool:  # no tensor to compare
        return ()
    for p in declaration.parameters:
        if not p.required:
            continue
        if p.domain is None or not p.domain.sample:
            return ()
        words.append(p.domain.sample)
    return (", ".join(words),) if words else ()


def samples(name: str) -> list[Sample]:
    """Return the sample calls of a declared functor.

    >>> from oneflow_lite.functors.declaring.samples import samples
    >>> samples("leaky_relu")
    [Sample(float64[2, 3]), Sample(float64[2, 3], 2.0)]
    """
    declaration = DECLARATIONS.get(name)
    make: Callable[..., Sample] = Sample
    return [
        eval(f"Sample({text})", {**scope(), "Sample": make})
        for text in declaration.samples or derived(declaration)
    ]
