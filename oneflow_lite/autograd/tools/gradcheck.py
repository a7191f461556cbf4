"""`gradcheck` and `gradgradcheck`: gradients against differences of values."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.autograd.engine.run import grad
from oneflow_lite.autograd.tools.finite_differences import (
    Array,
    difference,
    numerical_jacobian,
    reals,
    unit_steps,
)
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    GradcheckError as GradcheckError,
    OptionError,
    arg_error,
)
from oneflow_lite.functors.creation import tensor
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.tensor import Tensor
from oneflow_lite.transforms.batching import BatchLevel, enter_batch, leave_batch
from oneflow_lite.transforms.forward import JetLevel, enter_jet, leave_jet


@guarded
def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check the gradients of a function against central differences.

    The check moves inputs in place, by `eps` in a single element at a time, and restores them. So a
    function may also use tensors that are no arguments of its own, as a module uses its parameters.
    A complex number is moved along both of its parts, and each part of a complex output is checked:
    for a real output s the gradient has to be ds/dx + i ds/dy.

    Parameters
    ----------
    func : callable
        Takes the inputs, returns a tensor or a sequence of tensors.
    inputs : Tensor or sequence
        Arguments of `func`; tensors that require a gradient are checked. They should be float64 or
        complex128, for in single precision differences are coarser than the tolerances.
    eps : float
        The distance by which inputs are moved.
    atol, rtol : float
        Entries a and n of the two Jacobians agree when `|a - n| <= atol + rtol * |n|`.
    raise_exception : bool
        Raise `GradcheckError`, rather than return False.
    nondet_tol : float
        How much two runs of the same backward pass may differ.
    check_undefined_grad : bool
        Check that a missing gradient of an output counts as zero.
    check_grad_dtypes : bool
        Accepted for PyTorch's sake: backward refuses a gradient of another dtype in any case.
    check_batched_grad : bool
        Check that `autograd.grad` with `is_grads_batched` gives the gradients of a loop.
    check_forward_ad : bool
        Check forward mode, too: the products of the Jacobian with tangents of the inputs. Tensors
        that are no arguments have no tangent, so each input has to reach `func` as an argument.
    check_batched_forward_grad : bool
        Check that `vmap` over tangents gives the products of a loop; takes `check_forward_ad`.
    check_backward_ad : bool
        Whether backward passes are checked.
    fast_mode : bool
        Compare `v J u` for random u and v instead of all of J.
    masked : bool, optional
        Has to be None or False: sparse tensors are not checked.

    Returns
    -------
    bool
        True, or False with `raise_exception=False`.

    Raises
    ------
    GradcheckError
        Names the output and the input, and shows both Jacobians.
    ArgumentError
        When no input requires a gradient, or elements of an input share memory.
    OptionError
        When nothing is to be checked, or an option asks for sparse tensors.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([0.5, -1.0], dtype=flow.float64, requires_grad=True)
    >>> flow.autograd.gradcheck(lambda x: x.exp(), x)
    True
    """
    _refuse_masked("gradcheck", masked)
    forward = {"check_forward_ad": check_forward_ad}
    backward = {"check_backward_ad": check_backward_ad}
    _demand_one("gradcheck", **forward, **backward)
    if check_batched_forward_grad:
        _demand_one("gradcheck", **forward)
    if check_batched_grad:
        _demand_one("gradcheck", **backward)
    args = _as_tuple(inputs)
    _check_inputs("gradcheck", args)
    check = _Comparison("gradcheck", func, args, func, eps, atol, rtol, check_backward_ad)
    return check.passes(
        fast_mode,
        nondet_tol,
        check_batched_grad,
        check_undefined_grad,
        raise_exception,
        check_backward_ad,
        check_forward_ad,
        check_batched_forward_grad,
    )


@guarded
def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Check the gradients of a function's gradient against its central differences.

    The gradient is taken as a function of the inputs and of the gradients of the outputs. Its
    values come from a backward pass that is not recorded and its derivatives from a recorded
    backward pass, so that the check compares the two passes.

    Parameters
    ----------
    func, inputs, eps, atol, rtol, raise_exception, nondet_tol, fast_mode, masked
        As for `gradcheck`.
    grad_outputs : Tensor or sequence of Tensor, optional
        One for each output that requires a gradient; by default random numbers from -1 to 1.
    gen_non_contig_grad_outputs : bool
        Whether the random gradients lie in memory with gaps.
    check_undefined_grad, check_grad_dtypes, check_batched_grad : bool
        As for `gradcheck`, of the second derivative.
    check_fwd_over_rev : bool
        Check the gradient's products with tangents, in forward mode.
    check_rev_over_rev : bool
        Check backward passes through the gradient.

    Returns
    -------
    bool
        True, or False with `raise_exception=False`.

    Raises
    ------
    GradcheckError, ArgumentError, OptionError
        As `gradcheck`. Output k is the gradient by input k; the function's inputs are followed by
        the gradients of its outputs.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([0.5, -1.0], dtype=flow.float64, requires_grad=True)
    >>> flow.autograd.gradgradcheck(lambda x: x**3, x)
    True
    """
    _refuse_masked("gradgradcheck", masked)
    backward = {"check_rev_over_rev": check_rev_over_rev}
    _demand_one("gradgradcheck", check_fwd_over_rev=check_fwd_over_rev, **backward)
    if check_batched_grad:
        _demand_one("gradgradcheck", **backward)
    xs = _as_tuple(inputs)
    if grad_outputs is None:
        outputs = [y for y in _outputs_of("gradgradcheck", func(*xs)) if y.requires_grad]
        if not outputs:
            raise arg_error(
                "gradgradcheck",
                "func",
                expected="a function with an output that requires a gradient",
                got="none",
                hint="call requires_grad_() on inputs, and compute it from them in grad mode",
                kind=ArgumentError,
            )
        rng = np.random.default_rng(0)
        grads = tuple(_random_gradient(y, rng, gen_non_contig_grad_outputs) for y in outputs)
    else:
        grads = _as_tuple(grad_outputs)

    def gradient(create_graph: bool, *given: Any) -> tuple[Tensor, ...]:
        wanted = [x for x in given[: len(xs)] if _is_differentiable(x)]
        outputs = _outputs_of("gradgradcheck", func(*given[: len(xs)]))
        in_grads = grad(
            [y for y in outputs if y.requires_grad],
            wanted,
            given[len(xs) :],
            create_graph=create_graph,
            allow_unused=True,
        )
        return tuple(g for g in in_grads if g is not None)

    args = (*xs, *grads)
    _check_inputs("gradgradcheck", args)
    recorded, raw = (functools.partial(gradient, create_graph) for create_graph in (True, False))
    check = _Comparison("gradgradcheck", recorded, args, raw, eps, atol, rtol)
    return check.passes(
        fast_mode,
        nondet_tol,
        check_batched_grad,
        check_undefined_grad,
        raise_exception,
        check_rev_over_rev,
        check_fwd_over_rev,
    )


def _refuse_masked(op: str, masked: bool | None) -> None:
    if masked:
        hint = "sparse tensors are not checked"
        raise arg_error(op, "masked", "False", masked, hint, OptionError)


def _demand_one(op: str, **options: bool) -> None:
    """Raise unless one of the options is on."""
    if not any(options.values()):
        name = next(iter(options))
        others = " or ".join(option for option in options if option != name)
        expected = f"True{f', or True for {others}' if others else ''}"
        raise arg_error(op, name, expected, False, "otherwise nothing is checked", OptionError)


def _random_gradient(y: Tensor, rng: np.random.Generator, gaps: bool) -> Tensor:
    array = _random_like(y, rng, -1)
    made = tensor(np.stack([array, array], -1) if gaps else array, device=y.device)
    return (made[..., 0] if gaps else made).requires_grad_()


def _check_inputs(op: str, args: tuple[Any, ...]) -> None:
    if not any(map(_is_differentiable, args)):
        raise arg_error(
            op,
            "inputs",
            expected="at least one tensor that requires a gradient",
            got="none",
            hint="call requires_grad_() on what is to be checked",
            kind=ArgumentError,
        )
    for k, x in enumerate(args):
        if not _is_differentiable(x):
            continue
        if x.dtype not in (np.float64, np.complex128):
            warn_caller(
                f"{op}(): inputs[{k}] is {x.dtype}, in which differences are too coarse for most "
                "tolerances; use float64 or complex128"
            )
        repeated = any(
            step == 0 and size > 1 for step, size in zip(x.stride(), x.shape, strict=True)
        )
        if repeated and x.numel():
            raise arg_error(
                op,
                f"inputs[{k}]",
                expected="elements that can be moved one at a time",
                got="a dimension of stride 0, as expand() makes it",
                hint="clone() the tensor first",
                kind=ArgumentError,
            )


def _as_tuple(value: Any) -> tuple[Any, ...]:
    """Return a sequence as a tuple, and any other value in a tuple."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _is_differentiable(value: Any) -> bool:
    """Return whether this is a tensor that requires a gradient."""
    return isinstance(value, Tensor) and value.requires_grad


def _outputs_of(op: str, result: Any) -> tuple[Tensor, ...]:
    """Return the result of a function as a tuple of tensors."""
    outputs = _as_tuple(result)
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


def _random_like(y: Tensor, rng: np.random.Generator, low: float) -> Array:
    """Return a random array of the shape and dtype of a tensor."""
    array = rng.uniform(low, 1, y.shape)
    if y.is_complex():
        array = array + 1j * rng.uniform(low, 1, y.shape)
    return np.asarray(array, y.dtype)


def _spans(tensors: Mapping[int, Tensor]) -> Iterator[tuple[int, slice]]:
    """Yield the slice of each tensor in a row of the real numbers of all."""
    start = 0
    for key, x in tensors.items():
        stop = start + x.numel() * (2 if x.is_complex() else 1)
        yield key, slice(start, stop)
        start = stop


def _size(tensors: Iterable[Tensor]) -> int:
    return sum(x.numel() * (2 if x.is_complex() else 1) for x in tensors)


class _Comparison:
    """Compares the derivatives of a function at a point, taken in several ways.

    The numerical way takes differences of values of `raw`. The analytical ways take backward passes
    from values of `func`, and values of `func` of inputs with tangents. A Jacobian has a row for
    each real number of the inputs and a column for each real number of the outputs.
    """

    def __init__(
        self,
        op: str,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        raw: Callable[..., Any],
        eps: float,
        atol: float,
        rtol: float,
        backward: bool = True,
    ) -> None:
        self.op, self.func, self.args, self.raw = op, func, args, raw
        self.eps, self.atol, self.rtol = eps, atol, rtol
        self.inputs = {j: x for j, x in enumerate(args) if _is_differentiable(x)}
        outputs = {i: y for i, y in enumerate(_outputs_of(op, func(*args))) if y.dtype.kind in "fc"}
        self.live = {i: y for i, y in outputs.items() if y.requires_grad}
        # An output that requires no gradient should be constant. This is checked where the outputs
        # are gradients, and where no output requires a gradient at all. Beside outputs that do, it
        # may have been detached on purpose.
        self.outputs = self.live if backward and self.live and raw is func else outputs

    def passes(
        self,
        fast: bool,
        nondet_tol: float,
        batched: bool,
        undefined: bool,
        raise_exception: bool,
        backward: bool = True,
        forward: bool = False,
        batched_forward: bool = False,
    ) -> bool:
        """Run the checks."""
        try:
            if backward and fast:
                self.check_products(nondet_tol)
            elif backward:
                self.check_jacobians(nondet_tol)
            if forward and fast:
                self.check_pushed_direction()
            elif forward:
                self.check_pushed_jacobians()
            if forward and undefined:
                self.check_missing_tangents()
            if batched:
                self.check_batched_gradients()
            if batched_forward:
                self.check_batched_tangents()
            if backward and self.live:
                self.check_zero_gradients()
            if backward and undefined:
                self.check_undefined_gradients()
        except GradcheckError:
            if raise_exception:
                raise
            return False
        return True

    # Derivatives

    def values(self) -> Array:
        """Call the function again; return the values of the checked outputs."""
        again = dict(enumerate(_outputs_of(self.op, self.raw(*self.args))))
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
        in_grads = grad(
            [self.live[i] for i in given],
            list(self.inputs.values()),
            [tensor(g, device=self.live[i].device) for i, g in given.items()],
            retain_graph=True,
            materialize_grads=True,
            is_grads_batched=batched,
        )
        return [g.numpy() for g in in_grads]

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
        """Return the Jacobian of an output, by backward passes."""
        y = self.outputs[i]
        jacobian = np.zeros((_size(self.inputs.values()), _size([y])))
        if y.requires_grad:
            for k, (index, step) in enumerate(unit_steps(y._data)):
                v = np.zeros(y.shape, y.dtype)
                v[index] = step
                jacobian[:, k] = self.backward(i, v, nondet_tol)
        return jacobian

    def pushed(self, tangents: Mapping[int, Array], batched: bool = False) -> list[Array]:
        """Return `J u` of each output, for tangents of some inputs."""
        with contextlib.ExitStack() as stack:
            batch = stack.enter_context(BatchLevel(2, "same", self.op)) if batched else None
            level = stack.enter_context(JetLevel(1, self.op))
            args = list(self.args)
            for j, u in tangents.items():
                tangent = tensor(u, device=args[j].device)
                if batch is not None:
                    tangent = enter_batch(tangent, batch, 0)
                args[j] = enter_jet((args[j], tangent), level)
            outputs = _outputs_of(self.op, self.func(*args))
            made = [leave_jet(outputs[i], level, 1) for i in self.outputs]
            if batch is not None:
                made = [leave_batch(y, batch, 0) for y in made]
        return [y.detach().numpy() for y in made]

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

    def check_pushed_jacobians(self) -> None:
        """Compare the Jacobian of forward mode entry by entry."""
        arrays = [x._data for x in self.inputs.values()]
        numerical = numerical_jacobian(self.values, arrays, self.eps)
        rows = []
        for j, x in self.inputs.items():
            for index, step in unit_steps(x._data):
                u = np.zeros(x.shape, x.dtype)
                u[index] = step
                rows.append(reals(self.pushed({j: u})))
        if not rows:
            return
        analytical = np.stack(rows)
        for i, columns in _spans(self.outputs):
            for j, span in _spans(self.inputs):
                pair = analytical[span, columns], numerical[span, columns]
                self._compare(i, j, *pair, " in forward mode")

    def check_pushed_direction(self) -> None:
        """Compare `J u`, with a random u for each input."""
        rng = np.random.default_rng(0)
        for j, x in self.inputs.items():
            u = _direction(x, rng)
            if not u.size:
                continue
            direction = tensor(u, device=x.device)._data
            numerical = difference(self.values, x._data, ..., direction, self.eps)
            analytical = reals(self.pushed({j: u}))
            for i, span in _spans(self.outputs):
                if not self.close(analytical[span], numerical[span]).all():
                    self.check_pushed_jacobians()  # its errors say more
                    raise GradcheckError(
                        f"{self.op}(): J u of output {i} and input {j} in forward mode is "
                        f"{analytical[span]}, expected {numerical[span]}; J itself is within the "
                        "tolerances, so that fast_mode=False would pass"
                    )

    def check_missing_tangents(self) -> None:
        """Check that a missing tangent of an input counts as zero."""
        if len(self.inputs) < 2:
            return
        rng = np.random.default_rng(0)
        zeros = {j: np.zeros(x.shape, x.dtype) for j, x in self.inputs.items()}
        for j, x in self.inputs.items():
            u = _random_like(x, rng, -1)
            pairs = zip(self.pushed({j: u}), self.pushed({**zeros, j: u}), strict=True)
            for i, (got, expected) in zip(self.outputs, pairs, strict=True):
                if not np.allclose(got, expected, equal_nan=True):
                    raise GradcheckError(
                        f"{self.op}(): output {i} with a tangent of input {j} alone has the "
                        f"tangent\n{got}\nwith zero tangents of the other inputs\n{expected}"
                    )

    def check_batched_tangents(self) -> None:
        """Compare a batch of two tangents with the same tangents taken singly."""
        rng = np.random.default_rng(0)
        for j, x in self.inputs.items():
            us = [_random_like(x, rng, -1) for _ in range(2)]
            rows = [self.pushed({j: u}) for u in us]
            try:
                stacked = self.pushed({j: np.stack(us)}, batched=True)
            except Exception as error:
                raise GradcheckError(
                    f"{self.op}(): input {j}: batched tangents raised {error!r}"
                ) from error
            for i, got, *expected in zip(self.outputs, stacked, *rows, strict=True):
                if got.shape != (2, *expected[0].shape) or not np.allclose(
                    got, expected, equal_nan=True
                ):
                    raise GradcheckError(
                        f"{self.op}(): batched tangents of output {i} for input {j} are not those "
                        f"of a loop\nbatched:\n{got}\nloop:\n{np.stack(expected)}"
                    )

    def _compare(self, i: int, j: int, analytical: Array, numerical: Array, mode: str = "") -> None:
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
                what = f"the Jacobian of {part}output {i} with respect to input {j}{mode}"
                note = "" if mode else self._note(i)
                raise GradcheckError(
                    f"{self.op}(): {what} is wrong in {off.sum()} of {off.size} entries: "
                    f"{a[at]:.10g} at {at}, expected {n[at]:.10g}{note}\nnumerical:\n{n}\n"
                    f"analytical:\n{a}"
                )

    def _note(self, i: int) -> str:
        return "" if self.outputs[i].requires_grad else " (the output does not require a gradient)"

    def check_products(self, nondet_tol: float) -> None:
        """Compare `v J u`, with a random u for each input and a random v for each output."""
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
                if rows.start == rows.stop:  # an infinite value less itself would be nan
                    continue
                u = reals([us[j]])
                analytical, numerical = pulled[rows] @ u, moved[j][columns] @ v
                if not self.close(analytical, numerical, u.sum() * v.sum()):
                    self.check_jacobians(nondet_tol)  # its errors say more
                    raise GradcheckError(
                        f"{self.op}(): v J u of output {i} and input {j} is {analytical:.10g}, "
                        f"expected {numerical:.10g}; J itself is within the tolerances, so that "
                        "fast_mode=False would pass"
                    )

    def check_batched_gradients(self) -> None:
        """Compare a batch of two gradients with the same gradients taken singly."""
        rng = np.random.default_rng(0)
        for i, y in self.live.items():
            vs = [_random_like(y, rng, -1) for _ in range(2)]
            rows = [self.gradients({i: v}) for v in vs]
            try:
                stacked = self.gradients({i: np.stack(vs)}, batched=True)
            except Exception as error:
                raise GradcheckError(
                    f"{self.op}(): output {i}: batched gradients raised {error!r}"
                ) from error
            for j, got, *expected in zip(self.inputs, stacked, *rows, strict=True):
                if got.shape != (2, *expected[0].shape) or not np.allclose(got, expected):
                    raise GradcheckError(
                        f"{self.op}(): batched gradients of output {i} with respect to input {j} "
                        f"are not those of a loop\nbatched:\n{got}\nloop:\n{np.stack(expected)}"
                    )

    def check_zero_gradients(self) -> None:
        """Check that zero gradients of the outputs give zero gradients of the inputs."""
        for j, g in zip(self.inputs, self.gradients(self.with_zeros({})), strict=True):
            if not (g == 0).all():
                raise GradcheckError(
                    f"{self.op}(): zero gradients of the outputs give input {j} the gradient {g}; "
                    "backward does not multiply by the gradient of the output"
                )

    def check_undefined_gradients(self) -> None:
        """Check that missing gradients count as zero: each gradient alone, then all without it."""
        if len(self.live) < 2:  # then the backward pass is not run at all
            return
        rng = np.random.default_rng(0)
        given = {i: _random_like(y, rng, -1) for i, y in self.live.items()}
        alone = [{i: v} for i, v in given.items()]
        left_out = [{k: v for k, v in given.items() if k != i} for i in given]
        for some in alone + left_out:
            undefined = sorted(set(given) - set(some))
            what = f"{self.op}(): without gradients of outputs {undefined} backward"
            try:
                in_grads = self.gradients(some)
            except Exception as error:
                raise GradcheckError(f"{what} raises {error!r}; treat None as zero") from error
            expected = self.gradients(self.with_zeros(some))
            for j, g, zero in zip(self.inputs, in_grads, expected, strict=True):
                if not np.allclose(g, zero):
                    raise GradcheckError(
                        f"{what} gives input {j}\n{g}\nwith zero gradients of them\n{zero}"
                    )


def _direction(x: Tensor, rng: np.random.Generator) -> Array:
    """Return a random vector of length 1."""
    u = _random_like(x, rng, 0)
    return np.asarray(u / max(np.linalg.norm(u), np.finfo(u.dtype).tiny), u.dtype)
