"""Modules that reshape their input, or leave it alone."""

from __future__ import annotations

from typing import Any

from oneflow_lite.errors import ArgumentTypeError, bad_argument
from oneflow_lite.nn.module import Module
from oneflow_lite.tensor import Tensor


class Flatten(Module):
    """Joins the dimensions from `start_dim` to `end_dim` into one.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Flatten()(flow.ones(32, 50, 4, 4)).shape
    (32, 800)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Return the flattened input."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """Return the dimensions."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits one dimension into several.

    Parameters
    ----------
    dim : int
        The dimension to split.
    unflattened_size : tuple or list of int
        The sizes it is split into.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Unflatten(1, (2, 5))(flow.ones(3, 10)).shape
    (3, 2, 5)
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)) or not all(
            isinstance(size, int) for size in unflattened_size
        ):
            raise bad_argument(
                ArgumentTypeError,
                "Unflatten",
                "unflattened_size",
                expected="a tuple of ints",
                got=repr(unflattened_size),
                mend="write it as (2, 3)",
            )
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        """Return the reshaped input."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """Return dimension and sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Identity(Module):
    """Returns its input; arguments of the constructor are ignored.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Identity(54, unused=True)(flow.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Return the input."""
        return input
