"""Jacobians and Hessians of functions, whole or times a vector; no `.grad` changes.

`J` is the Jacobian of the function at the inputs and `H` the Hessian of a scalar function. A
product from the left, `v J`, is one backward pass. A product from the right, `J v`, is one pass in
forward mode. Where dependence is to be checked (`strict`), it takes two backward passes instead:
the first from u gives `u J`, which is linear in u, and a pass through it, with respect to u, gives
`J v` (the double-backward trick; Townsend, "A new trick for calculating Jacobian vector products",
2017). A product with H is a product with the Jacobian of the gradient.

Functions take and return a tensor or a tuple of tensors, and results are nested accordingly: a
tuple where the function has a tuple, a tensor where it has a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.autograd.tools.jacobian_products import JacobianProducts, with_zeros
from oneflow_lite.errors import OptionError, arg_error
from oneflow_lite.ops.exposure import expose
from oneflow_lite.tensors.mode import inference_mode
from oneflow_lite.tensors.tensor import Tensor

expose(globals())


@guarded
def vjp(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    v: Tensor | Sequence[Tensor] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and `v J`, the product of a vector with the Jacobian.

    Parameters
    ----------
    func : callable
        Takes tensors, returns a tensor or a tuple of tensors.
    inputs : Tensor or tuple of Tensor
        Where the Jacobian is taken; they are not modified.
    v : Tensor or tuple of Tensor, optional
        Of the shapes of the outputs; may be left out for a single output of one element.
    create_graph : bool
        Record the computation, so that both results can be differentiated.
    strict : bool
        Raise where an output does not depend on an input, instead of returning zeros.

    Returns
    -------
    outputs, product
        The product has the shapes and dtypes of the inputs.

    Raises
    ------
    ArgumentTypeError
        When the inputs, the outputs or v are no tensors.
    ShapeError
        When v does not fit the outputs.
    GradientError
        With `strict`, when an output is independent of an input.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0])
    >>> flow.autograd.functional.vjp(lambda x: x * x, x, flow.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with inference_mode(False):
        call = JacobianProducts("vjp", inputs, create_graph, strict)
        call.run(func)
        product = call.pull(call.outputs, call.vector(v, "outputs"))
        return call.like_outputs(call.outputs), call.like_inputs(with_zeros(product, call.inputs))


@guarded
def jvp(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    v: Tensor | Sequence[Tensor] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and `J v`, the product of the Jacobian with a vector.

    Parameters
    ----------
    func : callable
        Takes tensors, returns a tensor or a tuple of tensors.
    inputs : Tensor or tuple of Tensor
        Where the Jacobian is taken; they are not modified.
    v : Tensor or tuple of Tensor, optional
        Of the shapes of the inputs; may be left out for a single input of one element.
    create_graph : bool
        Record the computation, so that both results can be differentiated.
    strict : bool
        Raise where an output does not depend on an input, instead of returning zeros.

    Returns
    -------
    outputs, product
        The product has the shapes and dtypes of the outputs.

    Raises
    ------
    ArgumentTypeError, ShapeError, GradientError
        As `vjp`.

    Notes
    -----
    One pass forward; with `strict` two backward passes, by the double-backward trick.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0])
    >>> flow.autograd.functional.jvp(lambda x: x * x.sum(), x, flow.tensor([1.0, 0.0]))
    (tensor([3., 6.]), tensor([4., 2.]))
    """
    with inference_mode(False):
        call = JacobianProducts("jvp", inputs, create_graph, strict)
        vector = call.vector(v, "inputs")
        if strict:
            call.run(func)
            product = call.pusher(call.outputs)(vector)
        else:
            product = call.push(func, vector)
        return call.like_outputs(call.outputs), call.like_outputs(with_zeros(product, call.outputs))


@guarded
def vhp(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    v: Tensor | Sequence[Tensor] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and `v H`, the product of a vector with the Hessian.

    The Hessian itself is never made. It is symmetric where second derivatives are continuous; then
    `vhp` gives the result of `hvp`, with one backward pass less.

    Parameters
    ----------
    func : callable
        Takes tensors, returns a tensor of one element.
    inputs : Tensor or tuple of Tensor
        Where the Hessian is taken; they are not modified.
    v : Tensor or tuple of Tensor, optional
        Of the shapes of the inputs; may be left out for a single input of one element.
    create_graph : bool
        Record the computation, so that both results can be differentiated.
    strict : bool
        Raise where the gradient does not depend on an input, instead of returning zeros.

    Returns
    -------
    output, product
        The product has the shapes and dtypes of the inputs.

    Raises
    ------
    ArgumentError
        When the function does not return a single tensor of one element.
    ArgumentTypeError, ShapeError, GradientError
        As `vjp`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0])
    >>> flow.autograd.functional.vhp(lambda x: (x**3).sum(), x, flow.tensor([1.0, 10.0]))
    (tensor(9.), tensor([  6., 120.]))
    """
    with inference_mode(False):
        call = JacobianProducts("vhp", inputs, create_graph, strict)
        vector = call.vector(v, "inputs")
        call.run(func)
        product = call.pull(call.gradient(), vector)
        return call.like_outputs(call.outputs), call.like_inputs(with_zeros(product, call.inputs))


@guarded
def hvp(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    v: Tensor | Sequence[Tensor] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and `H v`, the product of the Hessian with a vector.

    The Hessian itself is never made: the gradient is taken in forward mode, one pass forward and
    one back, twice as wide. With `strict` it takes three backward passes.

    Parameters
    ----------
    func : callable
        Takes tensors, returns a tensor of one element.
    inputs : Tensor or tuple of Tensor
        Where the Hessian is taken; they are not modified.
    v : Tensor or tuple of Tensor, optional
        Of the shapes of the inputs; may be left out for a single input of one element.
    create_graph : bool
        Record the computation, so that both results can be differentiated.
    strict : bool
        Raise where the gradient does not depend on an input, instead of returning zeros.

    Returns
    -------
    output, product
        The product has the shapes and dtypes of the inputs.

    Raises
    ------
    ArgumentError, ArgumentTypeError, ShapeError, GradientError
        As `vhp`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0])
    >>> flow.autograd.functional.hvp(lambda x: x.prod() ** 2, x, flow.tensor([1.0, 0.0]))
    (tensor(4.), tensor([8., 8.]))
    """
    with inference_mode(False):
        call = JacobianProducts("hvp", inputs, create_graph, strict)
        vector = call.vector(v, "inputs")
        if strict:
            call.run(func)
            product = call.pusher(call.gradient())(vector)
        else:
            product = call.push(func, vector, hessian=True)
        return call.like_outputs(call.outputs), call.like_inputs(with_zeros(product, call.inputs))


@guarded
def jacobian(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of a function.

    Parameters
    ----------
    func : callable
        Takes tensors, returns a tensor or a tuple of tensors.
    inputs : Tensor or tuple of Tensor
        Where the Jacobian is taken; they are not modified.
    create_graph : bool
        Record the computation, so that the Jacobian can be differentiated.
    strict : bool
        Raise where an output does not depend on an input, instead of returning zeros.
    vectorize : bool
        Take all rows in one backward pass, or all columns in one pass forward.
    strategy : {"reverse-mode", "forward-mode"}
        Row by row, one backward pass per element of the outputs; or column by column, one per
        element of the inputs, by the double-backward trick. With `vectorize` it is one pass.

    Returns
    -------
    Tensor, tuple of Tensor, or tuple of tuples of Tensor
        `J[i][j]` is for output i and input j, of shape `output.shape + input.shape` and the dtype
        of the input ("forward-mode": of the output). A level of nesting is left out where the
        function has a tensor and no tuple. Of complex numbers, "forward-mode" gives the derivative
        and "reverse-mode" its conjugate, as a backward pass does.

    Raises
    ------
    ArgumentTypeError
        When the inputs or the outputs are no tensors.
    GradientError
        With `strict`, when an output is independent of an input; for a complex output in
        "reverse-mode" without `vectorize`.
    OptionError
        For an unknown strategy, and for `strict` together with `vectorize`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x, y = flow.tensor([1.0, 2.0]), flow.tensor(3.0)
    >>> flow.autograd.functional.jacobian(lambda x, y: x * y, (x, y))
    (tensor([[3., 0.],
            [0., 3.]]), tensor([1., 2.]))
    """
    return _jacobian("jacobian", func, inputs, create_graph, strict, vectorize, strategy)


@guarded
def hessian(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the Hessian of a scalar function: the Jacobian of its gradient.

    Parameters
    ----------
    func : callable
        Takes tensors, returns a tensor of one element.
    inputs : Tensor or tuple of Tensor
        Where the Hessian is taken; they are not modified.
    create_graph, strict, vectorize : bool
        As in `jacobian`.
    outer_jacobian_strategy : {"reverse-mode", "forward-mode"}
        The `strategy` of `jacobian` for the Jacobian of the gradient.

    Returns
    -------
    Tensor or tuple of tuples of Tensor
        `H[i][j]` is for inputs i and j, of shape `inputs[i].shape + inputs[j].shape`; a tensor
        when the inputs are a tensor.

    Raises
    ------
    ArgumentError
        When the function does not return a single tensor of one element.
    ArgumentTypeError, GradientError, OptionError
        As `jacobian`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.autograd.functional.hessian(lambda x: x.prod() ** 2, flow.tensor([1.0, 2.0]))
    tensor([[8., 8.],
            [8., 2.]])
    """
    one_input = isinstance(inputs, Tensor)

    def gradient(*given: Tensor) -> tuple[Tensor, ...]:
        call = JacobianProducts("hessian", given, create_graph=True, strict=strict)
        call.run(func)
        return with_zeros(call.gradient(), call.inputs)

    blocks = _jacobian(
        "hessian",
        gradient,
        (inputs,) if one_input else inputs,
        create_graph,
        strict,
        vectorize,
        outer_jacobian_strategy,
    )
    return blocks[0][0] if one_input else blocks


def _jacobian(
    name: str,
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool,
    strict: bool,
    vectorize: bool,
    strategy: str,
) -> Any:
    if strategy not in ("reverse-mode", "forward-mode"):
        raise arg_error(
            name,
            "strategy",
            expected="'reverse-mode' or 'forward-mode'",
            got=repr(strategy),
            hint="take the first where there are more inputs than outputs",
            kind=OptionError,
        )
    if strict and vectorize:
        raise arg_error(
            name,
            "strict",
            expected="False with vectorize=True",
            got=True,
            hint="leave one of the two out",
            kind=OptionError,
        )
    with inference_mode(False):
        call = JacobianProducts(name, inputs, create_graph, strict)
        if vectorize and strategy == "forward-mode" and any(x.numel() for x in call.inputs):
            blocks = call.forward_columns(func)
            return call.like_outputs(call.like_inputs(row) for row in blocks)
        call.run(func)
        if strategy == "reverse-mode":
            blocks = [call.rows(output, vectorize) for output in call.outputs]
        else:
            blocks = call.columns()
        return call.like_outputs(call.like_inputs(row) for row in blocks)
