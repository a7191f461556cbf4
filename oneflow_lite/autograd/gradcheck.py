"""`gradcheck` and `gradgradcheck`: gradients against differences of values."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from oneflow_lite.autograd.engine import grad
from oneflow_lite.autograd.gradient_check import (
    Function,
    GradientCheck,
    as_tuple,
    is_differentiable,
    outputs_of,
    random_like,
)
from oneflow_lite.errors import (
    ArgumentError,
    GradcheckError as GradcheckError,
    OptionError,
    arg_error,
)
from oneflow_lite.functors.creation import tensor
from oneflow_lite.tensor import Tensor


def gradcheck(
    func: Function,
    inputs: Any,
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

    Inputs are moved in place, by `eps` in one element at a time, and are what they were when the
    check ends; so a function may also reach them on another way than through its arguments, as a
    module does its parameters. A complex number is moved along both of its parts, and each part of
    a complex output is checked: for a real output s the gradient has to be ds/dx + i ds/dy.

    Parameters
    ----------
    func : callable
        Takes the inputs, returns a tensor or a sequence of tensors.
    inputs : Tensor or sequence
        Arguments of `func`; tensors that require a gradient are checked. They should be float64 or
        complex128, for in single precision differences are coarser than the tolerances.
    eps : float
        How far inputs are moved.
    atol, rtol : float
        Entries a and n of the two Jacobians agree when `|a - n| <= atol + rtol * |n|`.
    raise_exception : bool
        Raise `GradcheckError`, rather than return False.
    nondet_tol : float
        How much two runs of the same backward pass may differ.
    check_undefined_grad : bool
        Check that an output without a gradient is treated as one whose gradient is zero.
    check_grad_dtypes : bool
        Accepted for PyTorch's sake: backward refuses a gradient of another dtype in any case.
    check_batched_grad : bool
        Check that `autograd.grad` with `is_grads_batched` gives what a loop gives.
    check_backward_ad : bool
        Has to be True, and `check_forward_ad` and `check_batched_forward_grad` False: there is no
        forward mode.
    fast_mode : bool
        Compare `v J u` for random u and v instead of all of J.
    masked : bool, optional
        Has to be None or False: there are no sparse tensors.

    Returns
    -------
    bool
        True, or False with `raise_exception=False`.

    Raises
    ------
    GradcheckError
        Names the output and the input, and shows both Jacobians.
    ArgumentError
        When no input requires a gradient, or one has elements that share memory.
    OptionError
        When an option asks for the forward mode or for sparse tensors.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([0.5, -1.0], dtype=flow.float64, requires_grad=True)
    >>> flow.autograd.gradcheck(lambda x: x.exp(), x)
    True
    """
    _demand("gradcheck", True, check_backward_ad=check_backward_ad)
    _demand(
        "gradcheck",
        False,
        check_forward_ad=check_forward_ad,
        check_batched_forward_grad=check_batched_forward_grad,
        masked=masked,
    )
    args = as_tuple(inputs)
    _check_inputs("gradcheck", args)
    check = GradientCheck("gradcheck", func, args, func, eps, atol, rtol)
    return check.passes(
        fast_mode, nondet_tol, check_batched_grad, check_undefined_grad, raise_exception
    )


def gradgradcheck(
    func: Function,
    inputs: Any,
    grad_outputs: Any = None,
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
    values are those of a backward pass that is not recorded, its derivatives those of a recorded
    one, so that the two are held against each other.

    Parameters
    ----------
    func, inputs, eps, atol, rtol, raise_exception, nondet_tol, fast_mode, masked
        As for `gradcheck`.
    grad_outputs : Tensor or sequence of Tensor, optional
        One for each output that requires a gradient; by default random ones, from -1 to 1.
    gen_non_contig_grad_outputs : bool
        Whether the random ones lie in memory with gaps.
    check_undefined_grad, check_grad_dtypes, check_batched_grad : bool
        As for `gradcheck`, of the second derivative.
    check_rev_over_rev : bool
        Has to be True, and `check_fwd_over_rev` False: there is no forward mode.

    Returns
    -------
    bool
        True, or False with `raise_exception=False`.

    Raises
    ------
    GradcheckError, ArgumentError, OptionError
        As `gradcheck`; output k is the gradient by input k, and the inputs after those of the
        function are the gradients of its outputs.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([0.5, -1.0], dtype=flow.float64, requires_grad=True)
    >>> flow.autograd.gradgradcheck(lambda x: x**3, x)
    True
    """
    _demand("gradgradcheck", True, check_rev_over_rev=check_rev_over_rev)
    _demand("gradgradcheck", False, check_fwd_over_rev=check_fwd_over_rev, masked=masked)
    xs = as_tuple(inputs)
    if grad_outputs is None:
        outputs = [y for y in outputs_of("gradgradcheck", func(*xs)) if y.requires_grad]
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
        grads = as_tuple(grad_outputs)

    def gradient(create_graph: bool, *given: Any) -> tuple[Tensor, ...]:
        wanted = [x for x in given[: len(xs)] if is_differentiable(x)]
        outputs = outputs_of("gradgradcheck", func(*given[: len(xs)]))
        found = grad(
            [y for y in outputs if y.requires_grad],
            wanted,
            given[len(xs) :],
            create_graph=create_graph,
            allow_unused=True,
        )
        return tuple(g for g in found if g is not None)

    args = (*xs, *grads)
    _check_inputs("gradgradcheck", args)
    recorded, raw = (functools.partial(gradient, create_graph) for create_graph in (True, False))
    check = GradientCheck("gradgradcheck", recorded, args, raw, eps, atol, rtol)
    return check.passes(
        fast_mode, nondet_tol, check_batched_grad, check_undefined_grad, raise_exception
    )


def _demand(op: str, wanted: bool, **options: bool | None) -> None:
    for name, value in options.items():
        if bool(value) is not wanted:
            raise arg_error(
                op,
                name,
                expected=str(wanted),
                got=value,
                hint="there is no forward mode and no sparse layout to check",
                kind=OptionError,
            )


def _random_gradient(y: Tensor, rng: np.random.Generator, gaps: bool) -> Tensor:
    array = random_like(y, rng, -1)
    made = tensor(np.stack([array, array], -1) if gaps else array, device=y.device)
    return (made[..., 0] if gaps else made).requires_grad_()


def _check_inputs(op: str, args: tuple[Any, ...]) -> None:
    if not any(map(is_differentiable, args)):
        raise arg_error(
            op,
            "inputs",
            expected="at least one tensor that requires a gradient",
            got="none",
            hint="call requires_grad_() on what is to be checked",
            kind=ArgumentError,
        )
    for k, x in enumerate(args):
        if not is_differentiable(x):
            continue
        if x.dtype not in (np.float64, np.complex128):
            warnings.warn(
                f"{op}(): inputs[{k}] is {x.dtype}, in which differences are too coarse for most "
                "tolerances; use float64 or complex128",
                UserWarning,
                stacklevel=3,
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
