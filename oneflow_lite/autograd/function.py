"""Function: operations whose gradient the user writes with operations on tensors.

`Function.apply` runs the user's `forward` without recording and then records one node; the engine
calls the user's `backward` through it. docs/custom_functions.md shows how to write one.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from typing import Any, NoReturn

from numpy import ndarray

from oneflow_lite.autograd.engine.user_backward import (
    CustomFunctionNode,
    CustomGradFunction,
    OnceGradFunction,
)
from oneflow_lite.autograd.rules.annotations import PackedGradFunction, annotate
from oneflow_lite.autograd.rules.saved_tensor import save_tensor
from oneflow_lite.errors import (
    ArgumentTypeError,
    FlowError,
    FreedGraphError,
    GradientError,
    InplaceError,
    MissingMethodError,
    NotDifferentiableError,
    arg_error,
)
from oneflow_lite.interpreter.history import rebase_history
from oneflow_lite.ops.exposure import expose
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.mode import is_grad_enabled, local, no_grad, with_grad_mode
from oneflow_lite.tensors.node import NO_EDGE, Edge, make_node, tensor_info
from oneflow_lite.tensors.storage import FUNCTION
from oneflow_lite.tensors.tensor import Tensor
from oneflow_lite.tensors.views import check_history, link_view
from oneflow_lite.transforms.functions import FunctionRules, run_on_levels

expose(globals())

__all__ = ["Function", "FunctionCtx", "once_differentiable"]

_RESHAPE = op_expr("reshape")


class Function:
    """Base class of operations with a gradient of their own; call them by `apply`.

    A subclass defines two static methods, `forward` and `backward`. Instead of taking `ctx`,
    `forward` may leave saving to a third method, `setup_context`. Under `flow.func` a Function is
    mapped and differentiated by these methods, or by `jvp` and `vmap` where it defines them.

    Attributes
    ----------
    generate_vmap_rule : bool
        Whether `vmap` runs the methods on all entries at once. It does so in any case where the
        class defines no `vmap`.

    Notes
    -----
    `forward` runs without recording. `backward` gets and returns tensors, and is itself recorded
    under `create_graph=True`: written in differentiable operations on `ctx.saved_tensors`, it gives
    derivatives of every order. For a complex tensor z = a + ib the gradient is dL/da + i dL/db, the
    conjugate of the derivative, as everywhere in the library.

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
    generate_vmap_rule = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._grad_function = CustomGradFunction(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn_caller(
            f"{type(self).__name__} should not be instantiated: its methods are static; call "
            f"{type(self).__name__}.apply(...)",
            DeprecationWarning,
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
            The arguments of `apply`.
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
            The result of `forward`.
        """
        raise MissingMethodError("setup_context is called where a Function defines it")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradients of the arguments; the subclass may name it `vjp` instead.

        Parameters
        ----------
        ctx : FunctionCtx
        *grad_outputs : Tensor or None
            One per result: None for a result that is no tensor, zeros (or None, see
            `set_materialize_grads`) where no gradient arrived.

        Returns
        -------
        Tensor, None or a tuple of them
            One per argument of `forward`, None for an argument that is no tensor. A gradient for a
            tensor that requires none is ignored; surplus gradients have to be None.
        """
        raise MissingMethodError("a Function has to define the static method backward (or vjp)")

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Return the tangents of the results; where it is not defined they follow from `backward`.

        Parameters
        ----------
        ctx : FunctionCtx
            Its `saved_tensors` are those of `save_for_forward`, or else of `save_for_backward`.
        *tangents : Tensor or None
            One per argument: None for an argument that is no tensor, zeros (or None, see
            `set_materialize_grads`) for a tensor without a tangent.

        Returns
        -------
        Tensor, None or a tuple of them
            One per result of `forward`.
        """
        raise MissingMethodError("jvp is called where a Function defines it")

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        """Compute the results for a whole batch, as for a `forward` that reads NumPy arrays.

        The Function has to define `setup_context`.

        Parameters
        ----------
        info
            `info.batch_size` is the number of entries, `info.randomness` that of `flow.vmap`.
        in_dims : tuple of int or None
            Where the batch is in each argument; None for an argument that is the same for all.
        *args
            The arguments of `apply`, with all entries.

        Returns
        -------
        output, out_dims
            The results with all entries, and where the batch is in each.
        """
        raise MissingMethodError("vmap is called where a Function defines it")

    @classmethod
    def _rules(cls) -> FunctionRules:
        return FunctionRules(
            cls.__name__,
            cls._run,
            cls._find_backward(),
            None if cls.setup_context is Function.setup_context else cls.setup_context,
            None if cls.jvp is Function.jvp else cls.jvp,
            None if cls.vmap is Function.vmap else cls.vmap,
            cls.generate_vmap_rule,
        )

    @classmethod
    def _run(cls, ctx: FunctionCtx, args: tuple[Any, ...]) -> Any:
        if cls.setup_context is Function.setup_context:
            return cls.forward(ctx, *args)
        output = cls.forward(*args)
        cls.setup_context(ctx, args, output)
        return output

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
        """Call `forward`; record the call if grad mode is on and an argument requires a gradient.

        Parameters
        ----------
        *args, **kwargs
            Go to `forward`. Tensors are differentiated when they are arguments themselves; tensors
            inside lists or dicts are not.

        Returns
        -------
        object
            The result of `forward`. A tensor, and each tensor in a tuple, is joined to the graph.
            An argument that is returned unchanged is returned as a view.

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
        # Edges are read before forward runs, which may write arguments in place.
        ctx = FunctionCtx()
        ctx._name = cls.__name__
        needs, edges = [], []
        on_levels = False
        for x in args:
            if not isinstance(x, Tensor):
                needs.append(False)
                continue
            if type(x._data) is not ndarray and getattr(x._data, "levels", None):
                on_levels = True
            if recording and x._view is not None:
                x.refresh_view()
            needs.append(x.requires_grad)
            edges.append(x._edge or NO_EDGE)
        ctx.needs_input_grad = tuple(needs)
        ctx._recorded = recording and True in needs
        local.state = with_grad_mode(False)
        try:
            if on_levels:
                output = run_on_levels(cls._rules(), ctx, args)
            elif splits:
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
            return _FunctionCall(cls._grad_function, ctx, args, tuple(edges), (output,)).join()[0]
        return tuple(_FunctionCall(cls._grad_function, ctx, args, tuple(edges), output).join())

    @classmethod
    def _as_positional(
        cls, splits: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Return all arguments in the order of forward's parameters, which gradients have, too."""
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


class FunctionCtx:
    """Carries values from `forward` to `backward`, in one call of a Function.

    Attributes may be set freely. Arguments and results belong in `save_for_backward`: an attribute
    escapes the check for in-place writes, and a result would hold itself alive.

    Attributes
    ----------
    needs_input_grad : tuple of bool
        For each argument of `forward`, whether it is a tensor that requires a gradient.
    """

    needs_input_grad: tuple[bool, ...] = ()
    _name = ""
    _recorded = False
    _node: Callable[[], CustomFunctionNode | None] | None = None  # weak: the node holds the ctx
    _materialize = True
    # Set by forward, and dropped when the node is made: else the ctx would hold its own results.
    _to_save: tuple[Tensor | None, ...] = ()
    _for_forward: tuple[Tensor | None, ...] = ()
    _open: tuple[Tensor | None, ...] | None = None  # the saved tensors, before there is a node
    _dirty: tuple[Tensor, ...] = ()
    _non_differentiable: tuple[Tensor, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`: arguments, results, or intermediate tensors.

        A later call replaces the tensors of an earlier call.

        Raises
        ------
        ArgumentTypeError
            For a value that is neither a tensor nor None; it can be an attribute of `ctx`.
        """
        self._check(
            "save_for_backward", ArgumentTypeError, tensors, "set it as an attribute of ctx"
        )
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`, which gets those of `save_for_backward` otherwise.

        Raises `ArgumentTypeError` for a value that is neither a tensor nor None.
        """
        self._check("save_for_forward", ArgumentTypeError, tensors, "set it as an attribute of ctx")
        self._for_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved tensors, each with its place in the graph; to be read in `backward`.

        Raises
        ------
        StaleTensorError
            When a saved tensor was written in place since.
        FreedGraphError
            When the tensors were released by an earlier backward.
        """
        if self._open is not None:
            return self._open
        if self._node is None:
            return ()
        node = self._node()
        if node is None:
            raise FreedGraphError(f"{self._name}: ctx.saved_tensors went with the graph")
        return node.saved_tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which arguments `forward` writes in place; each of them has to be returned.

        Call it before the write, so that nothing has been written when it raises.

        Raises
        ------
        GradientError
            When something is no tensor.
        InplaceError
            When autograd cannot follow the write, as to a leaf that requires a gradient.
        """
        self._check("mark_dirty", GradientError, tensors, "name tensors only")
        if self._recorded:
            for tensor in tensors:
                has_gradient = tensor.dtype.kind in "fc"
                check_history(f"{self._name}: mark_dirty", tensor, has_gradient)
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which results have no gradient; integer results never have a gradient.

        Raises
        ------
        GradientError
            When something is no tensor.
        """
        self._check("mark_non_differentiable", GradientError, tensors, "name tensors only")
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether `backward` gets zeros (the default) or None for a missing gradient."""
        self._materialize = bool(value)

    def _check(self, op: str, error: type[FlowError], tensors: tuple[Any, ...], hint: str) -> None:
        for i, tensor in enumerate(tensors):
            if isinstance(tensor, Tensor) or (tensor is None and op.startswith("save_for")):
                continue
            raise arg_error(
                f"{self._name}: {op}",
                f"tensors[{i}]",
                expected="a Tensor",
                got=type(tensor).__name__,
                hint=hint,
                kind=error,
            )


class _FunctionCall:
    """One call of a Function, after its forward has run."""

    def __init__(
        self,
        grad_function: CustomGradFunction,
        ctx: FunctionCtx,
        args: tuple[Any, ...],
        edges: tuple[Edge, ...],
        outputs: tuple[Any, ...],
    ) -> None:
        self.grad_function = grad_function
        self.ctx = ctx
        self.are_tensors = tuple([isinstance(x, Tensor) for x in args])
        self.edges = edges
        self.outputs = outputs
        inputs = [id(x) for x in args if isinstance(x, Tensor)]
        self.inputs = dict(zip(inputs, edges, strict=True))
        self.dirty = {id(x): x for x in ctx._dirty if id(x) in self.inputs}
        fixed = {id(y) for y in ctx._non_differentiable}
        self.differentiable = [
            ctx._recorded
            and isinstance(y, Tensor)
            and y._data.dtype.kind in "fc"
            and id(y) not in fixed
            for y in outputs
        ]

    def join(self) -> list[Any]:
        """Return the outputs, joined to a new node where they have a gradient."""
        self._check_dirty()
        for x in self.dirty.values():
            x.memory.version += 1  # forward may have written an array, uncounted
        results = [
            self._result(y, has) for y, has in zip(self.outputs, self.differentiable, strict=True)
        ]
        if any(self.differentiable):
            node = self._make_node(results)
            for i, y in enumerate(results):
                if self.differentiable[i]:
                    attach = rebase_history if id(y) in self.dirty else Tensor.set_history
                    attach(y, (node, i))
        for y in results:
            if isinstance(y, Tensor) and y._view is not None and id(y) not in self.dirty:
                y._view.origin = FUNCTION
        return results

    def _check_dirty(self) -> None:
        name = self.ctx._name
        if len(self.dirty) < len(set(map(id, self.ctx._dirty))):
            warn_caller(
                f"{name}: mark_dirty() got a tensor that is no argument of forward; only arguments "
                "are marked"
            )
        returned = set(map(id, self.outputs))
        for x in self.dirty.values():
            if id(x) not in returned:
                raise GradientError(
                    f"{name}: an argument (shape {x.shape}) is marked dirty and not returned; "
                    "return every argument that forward writes in place"
                )
            if x._view is not None and sum(self.differentiable) > 1:
                raise InplaceError(
                    f"{name}: forward writes to a view in place and returns several tensors, which "
                    "autograd does not follow; clone() the view, or make it two Functions"
                )

    def _result(self, y: Any, differentiable: bool) -> Any:
        """Return an output of forward as the caller gets it."""
        if not isinstance(y, Tensor) or (differentiable and id(y) in self.dirty):
            return y
        if not differentiable and y._edge is not None:
            return y.detach()
        if y._edge is None and (id(y) not in self.inputs or id(y) in self.dirty):
            return y
        alias = Tensor.__new__(Tensor)  # an argument, or a tensor with another place in the graph
        alias._data = y._data
        link_view(_RESHAPE, y, alias, {"shape": y.shape}, FUNCTION)
        return alias

    def _make_node(self, results: list[Any]) -> CustomFunctionNode:
        ctx, has = self.ctx, self.differentiable
        number = 1 + max([node.topological_nr for node, _ in self.edges if node is not None])
        values: dict[str, Any] = {
            "ctx": ctx,
            "are_tensors": self.are_tensors,
            "were_saved": tuple([x is not None for x in ctx._to_save]),
            "infos": None,
        }
        # The first result with a gradient stands for the node where it has a single output.
        first = results[has.index(True)]._data
        node: CustomFunctionNode = make_node(
            self.grad_function,
            self.edges,
            number,
            (),
            values,
            first.shape,
            first.dtype,
            CustomFunctionNode,
        )
        if len(results) > 1 or type(first) is not ndarray:
            values["infos"] = infos = [
                tensor_info(y) if isinstance(y, Tensor) else None for y in results
            ]
            node.infos = [info if has[i] else None for i, info in enumerate(infos)]
        saved = [x for x in ctx._to_save if x is not None]
        node.saved = tuple(
            [save_tensor(f"saved_tensors[{i}]", x, self._edge_of(x)) for i, x in enumerate(saved)]
        )
        ctx._to_save = ctx._for_forward = ctx._dirty = (
            ctx._non_differentiable
        ) = ()  # no cycle through the results
        ctx._node = weakref.ref(node)
        if local.state.general:
            annotate(node, local.state, [y for y in results if isinstance(y, Tensor)])
            if isinstance(node.grad_function, PackedGradFunction):
                node.grad_function = node.grad_function.inner  # `ctx.saved_tensors` unpacks
        return node

    def _edge_of(self, x: Tensor) -> Edge | None:
        """Return the place in the graph of a tensor to save, before outputs have theirs."""
        if id(x) in self.inputs and id(x) not in self.dirty:
            edge = self.inputs[id(x)]
            return None if edge is NO_EDGE else edge
        for i, y in reversed(list(enumerate(self.outputs))):
            if y is x and self.differentiable[i]:
                return (None, i)
        return x._edge if x.requires_grad else None


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
        for x in (*grad_outputs, *ctx.saved_tensors):
            if isinstance(x, Tensor) and getattr(x._data, "moves", False):
                raise NotDifferentiableError(
                    f"{backward.__qualname__}: its gradients have no tangents, because it is "
                    "marked with @once_differentiable; take the mark off if it is written in "
                    "differentiable operations"
                )
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

    wrapper.once_differentiable = True  # type: ignore[attr-defined]
    return wrapper


def _blocked(grad: Any, function: OnceGradFunction, edges: tuple[Edge, ...]) -> Any:
    """Return a gradient whose own gradient raises; it depends on all inputs of `backward`."""
    if not isinstance(grad, Tensor) or grad.dtype.kind not in "fc":
        return grad
    alias = grad.detach()
    number = 1 + max([node.topological_nr for node, _ in edges])
    node = make_node(function, edges, number, (), {}, grad.shape, grad.dtype)
    if type(alias._data) is not ndarray:
        node.infos = [tensor_info(alias)]
    alias.set_history((node, 0))
    return alias
