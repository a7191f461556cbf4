"""Modules that reshape their input, or leave it alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import ArgumentTypeError, arg_error
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.layer import layer
from oneflow_lite.tensors.tensor import Tensor


@layer()
class Flatten(Module):
    """Joins the dimensions from `start_dim` to `end_dim` into one.

    >>> flow.nn.Flatten()(flow.ones(32, 50, 4, 4)).shape
    (32, 800)
    """

    start_dim: int = 1
    end_dim: int = -1

    def forward(self, input: Tensor) -> Tensor:
        """Return the flattened input."""
        return input.flatten(self.start_dim, self.end_dim)


@layer()
class Unflatten(Module):
    """Splits the dimension `dim` into several, of the sizes `unflattened_size`.

    >>> flow.nn.Unflatten(1, (2, 5))(flow.ones(3, 10)).shape
    (3, 2, 5)
    """

    dim: int
    unflattened_size: Sequence[int]

    def __post_init__(self) -> None:
        sizes = self.unflattened_size
        if not isinstance(sizes, (tuple, list)) or not all(isinstance(n, int) for n in sizes):
            raise arg_error(
                "Unflatten",
                "unflattened_size",
                expected="a tuple of ints",
                got=repr(sizes),
                hint="write it as (2, 3)",
                kind=ArgumentTypeError,
            )

    def forward(self, input: Tensor) -> Tensor:
        """Return the reshaped input."""
        return input.unflatten(self.dim, self.unflattened_size)


class Identity(Module):
    """Returns its input; arguments of the constructor are ignored.

    >>> flow.nn.Identity(54, unused=True)(flow.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Return the input."""
        return input


guard_all(globals())
