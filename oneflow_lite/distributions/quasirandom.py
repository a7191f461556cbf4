"""Sobol's sequences under the names of `torch.quasirandom`, by SciPy's tables."""

from __future__ import annotations

import numpy as np

from oneflow_lite.arrays.dtype import DTypeLike, get_default_dtype
from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.functors.creation import tensor
from oneflow_lite.functors.declaring.checks import check_int
from oneflow_lite.ops.exposure import expose
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.tensors.tensor import Tensor

expose(globals())


class SobolEngine:
    """Points that fill the unit cube evenly: Sobol's sequence, in Gray code order.

    Unscrambled points are PyTorch's. Scrambled ones (a random linear matrix and a shift, Matoušek
    1998) are as even, but other ones, since the generators differ.

    dimension: 1 to 21201 (Joe and Kuo, 2008).
    scramble: draw a scrambling, from `seed` or from the default generator.

    >>> import oneflow_lite as flow
    >>> flow.quasirandom.SobolEngine(2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        from scipy.stats import qmc

        if not 1 <= check_int("SobolEngine", "dimension", dimension) <= self.MAXDIM:
            expected, hint = f"1 to {self.MAXDIM}", "take several engines"
            raise arg_error("SobolEngine", "dimension", expected, dimension, hint, ArgumentError)
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        # A list would be a sequence of seeds for NumPy, which crashes where it holds itself.
        drawn = seed if seed is None else check_int("SobolEngine", "seed", seed, 0)
        if scramble and seed is None:
            drawn = int(FUNCTORS.get("randint")(2**62, ()).item())
        self._engine = qmc.Sobol(
            dimension, scramble=scramble, bits=self.MAXBIT, seed=np.random.default_rng(drawn)
        )

    @property
    def num_generated(self) -> int:
        """The number of points that were drawn or passed over."""
        return int(self._engine.num_generated)

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: DTypeLike | None = None) -> Tensor:
        """Return the next n points, of shape (n, dimension)."""
        n = check_int("SobolEngine.draw", "n", n, 1)
        first = [] if self.num_generated else [self._engine.random(1)]  # SciPy would warn of others
        rest = n - len(first)
        points = np.concatenate([*first, *([self._engine.random(rest)] if rest else [])])
        result: Tensor = tensor(points, dtype=dtype or get_default_dtype())
        return result if out is None else out.resize_as_(result).copy_(result)

    def draw_base2(
        self, m: int, out: Tensor | None = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Return the next 2**m points; with those before, their number has to be a power of 2."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            expected, hint = "a power of 2 as the number of points", "use draw()"
            raise arg_error("SobolEngine.draw_base2", "m", expected, total, hint, ArgumentError)
        return self.draw(2**m, out, dtype)

    def reset(self) -> SobolEngine:
        """Go back to the first point, of the same scrambling."""
        self._engine.reset()
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Pass over n points."""
        if n:
            self._engine.fast_forward(n)
        return self

    def __repr__(self) -> str:
        more = ["scramble=True"] * self.scramble + [f"seed={self.seed}"] * (self.seed is not None)
        return f"SobolEngine({', '.join([f'dimension={self.dimension}', *more])})"


guard_all(globals())
