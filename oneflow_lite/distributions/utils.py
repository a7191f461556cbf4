"""Shared by distributions: broadcasting of parameters, probs and logits, lazy attributes."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite import functions as flow
from oneflow_lite.arrays.dtype import Number, finfo, get_default_dtype, int64
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import ArgumentError, MissingMethodError
from oneflow_lite.functors.creation import tensor
from oneflow_lite.nn.functional import softmax
from oneflow_lite.ops.exposure import expose
from oneflow_lite.tensors.mode import inference_mode
from oneflow_lite.tensors.tensor import Tensor

expose(globals())

__all__ = """
    broadcast_all clamp_probs euler_constant lazy_property logits_to_probs probs_to_logits
    tril_matrix_to_vec vec_to_tril_matrix
""".split()

euler_constant = float(np.euler_gamma)


def broadcast_all(*values: Tensor | Number) -> tuple[Tensor, ...]:
    """Return tensors of one shape; numbers become tensors of the first tensor's dtype and device.

    ArgumentError: when a value is neither tensor nor number.

    >>> from oneflow_lite.distributions.utils import broadcast_all
    >>> import oneflow_lite as flow
    >>> broadcast_all(flow.zeros(2), 1)
    (tensor([0., 0.]), tensor([1., 1.]))
    """
    for value in values:
        if not isinstance(value, (Tensor, numbers.Number)):
            kind = type(value).__name__
            raise ArgumentError(f"parameters: expected Tensors or numbers, got {kind}; convert it")
    tensors = [value for value in values if isinstance(value, Tensor)]
    dtype = tensors[0].dtype if tensors else get_default_dtype()
    device = tensors[0].device if tensors else None
    made = (v if isinstance(v, Tensor) else tensor(v, dtype=dtype, device=device) for v in values)
    return tuple(flow.broadcast_tensors(*made))


def missing(name: str, says: str = "") -> Any:
    """Return a method of a base class that subclasses may define; its docstring is `says`."""

    def raises(self: Any, *args: Any, **options: Any) -> Any:
        raise MissingMethodError(f"{type(self).__name__} has no {name}")

    raises.__doc__ = says or None
    return raises


def eps(value: Tensor) -> float:
    """Return the distance from 1 to the next number of the dtype."""
    return float(finfo(value.dtype).eps)


def tiny(value: Tensor) -> float:
    """Return the smallest positive normal number of the dtype."""
    return float(finfo(value.dtype).tiny)


def inside(value: Tensor, high: float = math.inf) -> Tensor:
    """Return a value above 0, and below `high`: a draw that rounded to an edge moves off it."""
    return value.clamp(tiny(value) * eps(value), high)


def clamp_probs(probs: Tensor) -> Tensor:
    """Return probabilities away from 0 and 1 by the eps of the dtype."""
    return probs.clamp(eps(probs), 1 - eps(probs))


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Return probabilities: of log odds, or of logarithms along the last dimension."""
    return logits.sigmoid() if is_binary else softmax(logits, -1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return log odds, or logarithms, of probabilities."""
    # Clamped, so that a probability of 0 or 1 has finite logits.
    probs = clamp_probs(probs)
    return probs.log() - (-probs).log1p() if is_binary else probs.log()


class lazy_property:
    """A property that is computed when it is first asked for, and kept.

    >>> from oneflow_lite.distributions.utils import lazy_property
    >>> class Count:
    ...     @lazy_property
    ...     def three(self):
    ...         print("computed")
    ...         return 3
    >>> count = Count()
    >>> count.three + count.three
    computed
    6
    """

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with inference_mode(False):  # the value is kept, and a later use may need its gradient
            value = self.wrapped(instance)
        instance.__dict__[self.name] = value
        return value


def sum_rightmost(value: Tensor, count: int) -> Tensor:
    """Return the sum over the last `count` dimensions."""
    return value.sum(tuple(range(-count, 0))) if count else value


_sum_rightmost = sum_rightmost  # under PyTorch's names, which packages import


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    return flow.randn(shape, dtype=dtype, device=device)


def _below_diagonal(n: int, diag: int) -> tuple[Any, Any]:
    return np.tril_indices(n, diag)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the elements on and below diagonal `diag` of matrices (*, n, n), row by row.

    >>> from oneflow_lite.distributions.utils import tril_matrix_to_vec
    >>> import oneflow_lite as flow
    >>> tril_matrix_to_vec(flow.tensor([[1, 2], [3, 4]]))
    tensor([1, 3, 4])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ArgumentError(f"diag: expected {-n} to {n - 1}, got {diag}; the matrix has n = {n}")
    rows, columns = _below_diagonal(n, diag)
    return mat.flatten(-2)[..., (rows * n + columns).tolist()]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return matrices (*, n, n) with the elements of `vec` on and below diagonal `diag`.

    ArgumentError: when no n has as many places.
    """
    count = vec.shape[-1]
    for n in range(abs(diag), math.isqrt(2 * count) + abs(diag) + 2):
        rows, columns = _below_diagonal(n, diag)
        if len(rows) == count and n:
            mat = vec.new_zeros((*vec.shape[:-1], n * n))
            places = tensor((rows * n + columns).tolist(), dtype=int64, device=vec.device)
            index = places.expand(vec.shape)
            return mat.scatter(-1, index, vec).unflatten(-1, (n, n))
    raise ArgumentError(f"vec: no square matrix has {count} places from diagonal {diag} on")


guard_all(globals())
