"""Function: operations with a gradient of the user's own, written on tensors.

`Function.apply` runs the user's `forward` without recording and then records one node; the engine
calls the user's `backward` through it. docs/custom_functions.md shows how to write one.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from oneflow_lite.autograd.function_call import FunctionCall, FunctionCtx
from oneflow_lite.autograd.mode import is_grad_enabled, local, no_grad, with_grad_mode
from oneflow_lite.autograd.node import NO_EDGE, Edge, make_node, tensor_info
from oneflow_lite.autograd.user_backward import CustomGradFunction, OnceGradFunction
from oneflow_lite.errors import ArgumentTypeError, GradientError, MissingMethodError
from oneflow_lite.tensor import Tensor

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


class Function:
    """Base class of operations with a gradient of their own; call them by `apply`.

    A subclass defines two static methods, `forward` and `backward`. Instead of taking `ctx`,
    `forward` may leave saving to a third one, `setup_context`.

    Notes
    -----
    `forward` runs without recording. `backward` gets and returns tensors, and is itself recorded
    under `create_graph=True`: written in differentiable operations on `ctx.saved_tensors`, it gives
    derivatives of every order. For complex tensors the gradient is the conjugate one, dL/da + i
    dL/db for z = a + ib, as everywhere in the library.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> class Cube(flow.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...
    ...     @staticmethod
    ...     def backward(ctx, dy):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x**2 * dy
    >>> x = flow.tensor(2.0, requires_grad=True)
    >>> y = Cube.apply(x)
    >>> y
    tensor(8., grad_fn=<CubeBackward>)
    >>> (first,) = flow.autograd.grad(y, x, create_graph=True)
    >>> (second,) = flow.autograd.grad(first, x)
    >>> first.item(), second.item()
    (12.0, 12.0)
    """

    _grad_function: CustomGradFunction

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._grad_function = CustomGradFunction(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self).__name__} should not be instantiated: its methods are static; call "
            f"{type(self).__name__}.apply(...)",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise GradientError(
            f"{type(self).__name__}: an instance cannot be called; call "
            f"{type(self).__name__}.apply(...)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result: a tensor, or a tuple of tensors and other values.

        Parameters
        ----------
        ctx : FunctionCtx
            First argument, unless the class defines `setup_context`.
        *args
            What `apply` got.
        """
        raise MissingMethodError("a Function has to define the static method forward")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save for `backward`, in a Function whose `forward` takes no `ctx`.

        Parameters
        ----------
        ctx : FunctionCtx
        inputs : tuple
            The arguments of `forward`, with defaults filled in.
        output
            What `forward` returned.
        """
        raise MissingMethodError("setup_context is called where a Function defines it")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradients of the arguments; the subclass may name it `vjp` instead.

        Parameters
        ----------
        ctx : FunctionCtx
        *grad_outputs : Tensor or None
            One per result: None where that is no tensor, zeros (or None, see
            `set_materialize_grads`) where no gradient arrived.

        Returns
        -------
        Tensor, None or a tuple of them
            One per argument of `forward`, None for what is no tensor. A gradient for a tensor that
            requires none is ignored; surplus ones have to be None.
        """
        raise MissingMethodError("a Function has to define the static method backward (or vjp)")

    vjp = backward

    @classmethod
    def _find_backward(cls) -> Callable[..., Any]:
        if cls.vjp is Function.vjp:
            return cls.backward
        if cls.backward is not Function.backward:
            raise GradientError(
                f"{cls.__name__}: defines backward and vjp, two names of one method; define one"
            )
        return cls.vjp

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call `forward`, and record the call when grad mode is on and an argument needs it.

        Parameters
        ----------
        *args, **kwargs
            Go to `forward`. Tensors are differentiated when they are arguments themselves; those
            inside lists or dicts are not.

        Returns
        -------
        object
            What `forward` returned, with the tensors in it (or in the tuple that it is) joined to
            the graph. An argument that is returned unchanged is returned as a view.

        Raises
        ------
        ArgumentTypeError
            When keyword arguments do not fit the parameters of `forward`.
        GradientError
            When an argument marked dirty is not returned.
        InplaceError
            When an argument marked dirty cannot be written in place.
        """
        splits = cls.setup_context is not Function.setup_context
        if kwargs or (splits and getattr(cls.forward, "__defaults__", None)):
            args = cls._as_positional(splits, args, kwargs)
        recording = is_grad_enabled()
        ctx = FunctionCtx()
        ctx._name = cls.__name__
        needs, edges = [], []
        for x in args:
            if not isinstance(x, Tensor):
                needs.append(False)
                continue
            if recording and x._view is not None:
                x.refresh_view()
            needs.append(x.requires_grad)
            edges.append(x._edge or NO_EDGE)
        ctx.needs_input_grad = tuple(needs)
        ctx._recorded = recording and True in needs
        local.state = with_grad_mode(False)
        try:
            if splits:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args)
        except Exception as error:
            error.add_note(f"in the forward of {cls.__name__}")
            raise
        finally:
            local.state = with_grad_mode(recording)
        if not isinstance(output, tuple):
            return FunctionCall(cls._grad_function, ctx, args, tuple(edges), (output,)).join()[0]
        return tuple(FunctionCall(cls._grad_function, ctx, args, tuple(edges), output).join())

    @classmethod
    def _as_positional(
        cls, splits: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Return all arguments in the order of forward's parameters, that of its gradients."""
        before = () if splits else (None,)  # the place of ctx
        try:
            bound = inspect.signature(cls.forward).bind(*before, *args, **kwargs)
        except TypeError as error:
            raise ArgumentTypeError(f"{cls.__name__}.apply(): {error}") from None
        if splits:
            bound.apply_defaults()
        if bound.kwargs:
            raise ArgumentTypeError(
                f"{cls.__name__}.apply(): argument '{next(iter(bound.kwargs))}': expected a place "
                "among the positional arguments, as among the gradients; pass those before it too, "
                "and make it no keyword-only parameter"
            )
        return bound.args[len(before) :]


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `backward` that is not written in differentiable operations.

    It runs without recording. Taking a derivative of the gradients that it returns raises
    `NotDifferentiableError`, where it would be silently wrong otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> import oneflow_lite as flow
    >>> class Sine(flow.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return flow.tensor(np.sin(x.numpy()))
    ...
    ...     @staticmethod
    ...     @flow.autograd.function.once_differentiable
    ...     def backward(ctx, dy):
    ...         (x,) = ctx.saved_tensors
    ...         return flow.tensor(np.cos(x.numpy())) * dy
    >>> x = flow.tensor(0.0, requires_grad=True)
    >>> (dx,) = flow.autograd.grad(Sine.apply(x), x, create_graph=True)
    >>> dx.item()
    1.0
    >>> dx.backward()
    Traceback (most recent call last):
        ...
    oneflow_lite.errors.NotDifferentiableError: SineBackward: its gradients cannot be ...
    """

    @functools.wraps(backward)
    def wrapper(ctx: FunctionCtx, *grad_outputs: Any) -> Any:
        with no_grad():
            result = backward(ctx, *grad_outputs)
        if not is_grad_enabled():
            return result
        assert ctx._node is not None
        node: Any = ctx._node()
        sources = [g._edge for g in grad_outputs if isinstance(g, Tensor) and g.requires_grad]
        edges = tuple([edge for edge in (*node.edges, *sources) if edge[0] is not None])
        function = OnceGradFunction(node.name())
        if isinstance(result, tuple):
            return tuple([_blocked(grad, function, edges) for grad in result])
        return _blocked(result, function, edges)

    return wrapper


def _blocked(grad: Any, function: OnceGradFunction, edges: tuple[Edge, ...]) -> Any:
    """Return a gradient whose own gradient raises. It depends on all that went into `backward`."""
    if not isinstance(grad, Tensor) or grad.dtype.kind not in "fc":
        return grad
    alias = grad.detach()
    number = 1 + max([node.topological_nr for node, _ in edges])
    node = make_node(function, edges, number, (), {}, grad.shape, grad.dtype)
    if alias.is_cuda:
        node.infos = [tensor_info(alias)]
    alias.set_history((node, 0))
    return alias
