"""The checks behind `gradcheck` and `gradgradcheck`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from oneflow_lite.autograd.engine import grad
from oneflow_lite.autograd.finite_differences import (
    Array,
    difference,
    numerical_jacobian,
    reals,
    unit_steps,
)
from oneflow_lite.errors import ArgumentTypeError, GradcheckError, arg_error
from oneflow_lite.functors.creation import tensor
from oneflow_lite.tensor import Tensor

Function = Callable[..., Any]


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return a sequence as a tuple, and anything else in one."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def is_differentiable(value: Any) -> bool:
    """Return whether this is a tensor that requires a gradient."""
    return isinstance(value, Tensor) and value.requires_grad


def outputs_of(op: str, result: Any) -> tuple[Tensor, ...]:
    """Return what a function returned as a tuple of tensors."""
    outputs = as_tuple(result)
    for y in outputs:
        if not isinstance(y, Tensor):
            raise arg_error(
                op,
                "func",
                expected="a function that returns a Tensor or a sequence of Tensors",
                got=f"{type(y).__name__} among its results",
                hint="return tensors only",
                kind=ArgumentTypeError,
            )
    return outputs


def random_like(y: Tensor, rng: np.random.Generator, low: float) -> Array:
    """Return a random array of the shape and dtype of a tensor."""
    array = rng.uniform(low, 1, y.shape)
    if y.is_complex():
        array = array + 1j * rng.uniform(low, 1, y.shape)
    return np.asarray(array, y.dtype)


def _spans(tensors: Mapping[int, Tensor]) -> Iterator[tuple[int, slice]]:
    """Yield where the real numbers of each tensor are in a row of those of all."""
    start = 0
    for key, x in tensors.items():
        stop = start + x.numel() * (2 if x.is_complex() else 1)
        yield key, slice(start, stop)
        start = stop


def _size(tensors: Iterable[Tensor]) -> int:
    return sum(x.numel() * (2 if x.is_complex() else 1) for x in tensors)


class GradientCheck:
    """A function at a point, with its derivatives taken in both ways.

    The values of `raw` are differenced, and those of `func` run backward. A Jacobian has a row for
    each real number of the inputs and a column for each real number of the outputs.
    """

    def __init__(
        self,
        op: str,
        func: Function,
        args: tuple[Any, ...],
        raw: Function,
        eps: float,
        atol: float,
        rtol: float,
    ) -> None:
        self.op, self.args, self.raw = op, args, raw
        self.eps, self.atol, self.rtol = eps, atol, rtol
        self.inputs = {j: x for j, x in enumerate(args) if is_differentiable(x)}
        outputs = {i: y for i, y in enumerate(outputs_of(op, func(*args))) if y.dtype.kind in "fc"}
        self.live = {i: y for i, y in outputs.items() if y.requires_grad}
        # What requires no gradient has to be constant. Of one output among others we cannot ask
        # that, it may have been detached on purpose; but we can of a gradient.
        self.outputs = self.live if self.live and raw is func else outputs

    def passes(
        self, fast: bool, nondet_tol: float, batched: bool, undefined: bool, raise_exception: bool
    ) -> bool:
        """Run the checks."""
        try:
            if fast:
                self.check_products(nondet_tol)
            else:
                self.check_jacobians(nondet_tol)
            if batched:
                self.check_batched_gradients()
            if self.live:
                self.check_zero_gradients()
            if undefined:
                self.check_undefined_gradients()
        except GradcheckError:
            if raise_exception:
                raise
            return False
        return True

    # Derivatives

    def values(self) -> Array:
        """Call the function again; return the values of what is checked."""
        again = dict(enumerate(outputs_of(self.op, self.raw(*self.args))))
        for i, y in self.outputs.items():
            if i not in again or (again[i].shape, again[i].dtype) != (y.shape, y.dtype):
                got = f"{again[i].dtype}{list(again[i].shape)}" if i in again else "nothing"
                raise GradcheckError(
                    f"{self.op}(): output {i} was {y.dtype}{list(y.shape)}, and is {got} when an "
                    "input is moved"
                )
        return reals(again[i].numpy() for i in self.outputs)

    def gradients(self, given: Mapping[int, Array], batched: bool = False) -> list[Array]:
        """Run backward from some outputs; return one gradient for each input."""
        found = grad(
            [self.live[i] for i in given],
            list(self.inputs.values()),
            [tensor(g, device=self.live[i].device) for i, g in given.items()],
            retain_graph=True,
            materialize_grads=True,
            is_grads_batched=batched,
        )
        return [g.numpy() for g in found if g is not None]

    def with_zeros(self, given: Mapping[int, Array]) -> dict[int, Array]:
        """Add zeros for the outputs that have no gradient."""
        return {
            i: given[i] if i in given else np.zeros(y.shape, y.dtype) for i, y in self.live.items()
        }

    def backward(self, i: int, v: Array, nondet_tol: float) -> Array:
        """Return `v J` of one output, the same in two runs."""
        first, second = (reals(self.gradients(self.with_zeros({i: v}))) for _ in range(2))
        off = np.abs(first - second).max(initial=0)
        if off > nondet_tol:
            raise GradcheckError(
                f"{self.op}(): the backward pass of output {i} is not deterministic: two runs "
                f"differ by {off:.3g}, nondet_tol is {nondet_tol:g}\n{first}\n{second}"
            )
        return first

    def analytical_jacobian(self, i: int, nondet_tol: float) -> Array:
        """Return the Jacobian of one output as backward passes give it."""
        y = self.outputs[i]
        jacobian = np.zeros((_size(self.inputs.values()), _size([y])))
        if y.requires_grad:
            for k, (index, step) in enumerate(unit_steps(y._data)):
                v = np.zeros(y.shape, y.dtype)
                v[index] = step
                jacobian[:, k] = self.backward(i, v, nondet_tol)
        return jacobian

    # Checks

    def close(self, analytical: Any, numerical: Any, scale: float = 1.0) -> Any:
        """Return where the two agree."""
        return np.isclose(analytical, numerical, self.rtol, self.atol * scale)

    def check_jacobians(self, nondet_tol: float) -> None:
        """Compare entry by entry."""
        arrays = [x._data for x in self.inputs.values()]
        numerical = numerical_jacobian(self.values, arrays, self.eps)
        for i, columns in _spans(self.outputs):
            analytical = self.analytical_jacobian(i, nondet_tol)
            for j, rows in _spans(self.inputs):
                self._compare(i, j, analytical[rows], numerical[rows, columns])

    def _compare(self, i: int, j: int, analytical: Array, numerical: Array) -> None:
        if self.inputs[j].is_complex():
            analytical, numerical = (a[0::2] + 1j * a[1::2] for a in (analytical, numerical))
        parts = {"": slice(None)}
        if self.outputs[i].is_complex():
            parts = {
                "the real part of ": slice(0, None, 2),
                "the imaginary part of ": slice(1, None, 2),
            }
        for part, columns in parts.items():
            a, n = analytical[:, columns], numerical[:, columns]
            off = ~self.close(a, n)
            if off.any():
                at = tuple(int(k) for k in np.argwhere(off)[0])
                raise GradcheckError(
                    f"{self.op}(): the Jacobian of {part}output {i} with respect to input {j} is "
                    f"wrong in {off.sum()} of {off.size} entries: {a[at]:.10g} at {at}, expected "
                    f"{n[at]:.10g}{self._note(i)}\nnumerical:\n{n}\nanalytical:\n{a}"
                )

    def _note(self, i: int) -> str:
        return "" if self.outputs[i].requires_grad else " (the output does not require a gradient)"

    def check_products(self, nondet_tol: float) -> None:
        """Compare `v J u` for one u per input and one v per output."""
        rng = np.random.default_rng(0)
        us = {j: _direction(x, rng) for j, x in self.inputs.items()}
        vs = {i: _direction(y, rng) for i, y in self.outputs.items()}
        moved = {
            j: difference(self.values, x._data, ..., tensor(us[j], device=x.device)._data, self.eps)
            for j, x in self.inputs.items()
        }
        for i, columns in _spans(self.outputs):
            v = reals([vs[i]])
            pulled = (
                self.backward(i, vs[i], nondet_tol)
                if i in self.live
                else np.zeros(_size(self.inputs.values()))
            )
            for j, rows in _spans(self.inputs):
                u = reals([us[j]])
                analytical, numerical = pulled[rows] @ u, moved[j][columns] @ v
                if not self.close(analytical, numerical, u.sum() * v.sum()):
                    self.check_jacobians(nondet_tol)  # says more
                    raise GradcheckError(
                        f"{self.op}(): v J u of output {i} and input {j} is {analytical:.10g}, "
                        f"expected {numerical:.10g}; J itself is within the tolerances, so that "
                        "fast_mode=False would pass"
                    )

    def check_batched_gradients(self) -> None:
        """Compare a batch of two gradients with the two one by one."""
        rng = np.random.default_rng(0)
        for i, y in self.live.items():
            vs = [random_like(y, rng, -1) for _ in range(2)]
            rows = [self.gradients({i: v}) for v in vs]
            try:
                found = self.gradients({i: np.stack(vs)}, batched=True)
            except Exception as error:
                raise GradcheckError(
                    f"{self.op}(): output {i}: batched gradients raised {error!r}"
                ) from error
            for j, got, *expected in zip(self.inputs, found, *rows, strict=True):
                if got.shape != (2, *expected[0].shape) or not np.allclose(got, expected):
                    raise GradcheckError(
                        f"{self.op}(): batched gradients of output {i} with respect to input {j} "
                        f"are not those of a loop\nbatched:\n{got}\nloop:\n{np.stack(expected)}"
                    )

    def check_zero_gradients(self) -> None:
        """Zero in, zero out: a backward pass is a product with its gradient."""
        for j, g in zip(self.inputs, self.gradients(self.with_zeros({})), strict=True):
            if not (g == 0).all():
                raise GradcheckError(
                    f"{self.op}(): zero gradients of the outputs give input {j} the gradient {g}; "
                    "backward does not multiply by the gradient of the output"
                )

    def check_undefined_gradients(self) -> None:
        """A gradient that is not given counts as zero: one output alone, and all but one."""
        if len(self.live) < 2:  # then the backward pass is not run at all
            return
        rng = np.random.default_rng(0)
        given = {i: random_like(y, rng, -1) for i, y in self.live.items()}
        alone = [{i: v} for i, v in given.items()]
        left_out = [{k: v for k, v in given.items() if k != i} for i in given]
        for some in alone + left_out:
            undefined = sorted(set(given) - set(some))
            what = f"{self.op}(): without gradients of outputs {undefined} backward"
            try:
                found = self.gradients(some)
            except Exception as error:
                raise GradcheckError(f"{what} raises {error!r}; treat None as zero") from error
            expected = self.gradients(self.with_zeros(some))
            for j, g, zero in zip(self.inputs, found, expected, strict=True):
                if not np.allclose(g, zero):
                    raise GradcheckError(
                        f"{what} gives input {j}\n{g}\nwith zero gradients of them\n{zero}"
                    )


def _direction(x: Tensor, rng: np.random.Generator) -> Array:
    """Return a random vector of length 1."""
    u = random_like(x, rng, 0)
    return np.asarray(u / max(np.linalg.norm(u), np.finfo(u.dtype).tiny), u.dtype)
