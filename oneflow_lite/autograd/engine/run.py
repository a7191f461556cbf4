"""`backward` and `grad`, which users call: each checks its arguments and runs one GraphTask."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, overload

from numpy import ndarray, ones

from oneflow_lite.autograd.engine.gradient_edge import GradientEdge
from oneflow_lite.autograd.engine.graph_task import GraphTask
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F
from oneflow_lite.errors import (
    ArgumentError,
    GradientError,
    arg_error,
)
from oneflow_lite.interpreter.explain import not_a_tensor_error
from oneflow_lite.ops.upward import module
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.mode import local
from oneflow_lite.tensors.node import Edge
from oneflow_lite.tensors.spellings import one_of
from oneflow_lite.tensors.tensor import Tensor, make_tensor


def _as_tuple(op: str, argument: str, value: Any) -> tuple[Any, ...]:
    if isinstance(value, Tensor):
        return (value,)
    if isinstance(value, GradientEdge):
        return (value.stand_in(),)
    items = tuple(value) if isinstance(value, (tuple, list, Iterable)) else (value,)
    if all([isinstance(x, Tensor) for x in items]):
        return items
    items = tuple([x.stand_in() if isinstance(x, GradientEdge) else x for x in items])
    for item in items:
        if not isinstance(item, Tensor):
            expected = "a Tensor or a sequence of Tensors"
            raise not_a_tensor_error(op, argument, item, expected)
    return items


def _root_grad(op: str, argument: str, root: Tensor, grad: Any) -> Tensor:
    """Check the gradient given for a root, or make the implicit 1."""
    if root._edge is None:
        raise GradientError(
            f"{op}(): a tensor of shape {root.shape} does not require a gradient and has no "
            "grad_fn; compute it from a tensor that requires a gradient, with grad mode on"
        )
    if grad is None:
        if root.numel() != 1:
            raise arg_error(
                op,
                argument,
                expected="a gradient for every tensor with more than one element",
                got=f"None for shape {root.shape}",
                hint="pass a gradient of that shape, or call backward() on a scalar such as a sum",
                kind=GradientError,
            )
        if root._data.dtype.kind == "c":
            raise arg_error(
                op,
                argument,
                expected="a gradient for a complex tensor",
                got="None",
                hint="pass one, or take a real result such as abs()",
                kind=GradientError,
            )
        data = root._data
        if type(data) is ndarray and local.state.interpreter is None:
            return make_tensor(ones(data.shape, data.dtype))
        # What captures ops needs an op here.
        if getattr(data, "levels", None):  # of a transform: the same for all entries
            return FUNCTORS_F.ones(data.shape, dtype=data.dtype, device=root.device)  # type: ignore[no-any-return]
        return FUNCTORS_F.ones_like(root.detach())  # type: ignore[no-any-return]
    if not isinstance(grad, Tensor):
        raise not_a_tensor_error(op, argument, grad, "a Tensor or None")
    have, want = grad._data, root._data
    if have.dtype is not want.dtype and (have.dtype.kind == "c") is (want.dtype.kind == "c"):
        return _root_grad(op, argument, root, FUNCTORS_F.cast(grad, dtype=want.dtype))
    if (
        have.shape != want.shape
        or have.dtype is not want.dtype
        or (type(have) is not type(want) and grad.device != root.device)
        or (type(have) is not ndarray and grad.device != root.device)
    ):
        what = next(w for w in ("shape", "dtype", "device") if getattr(grad, w) != getattr(root, w))
        raise arg_error(
            op,
            argument,
            expected=f"{what} {getattr(root, what)}, that of the tensor",
            got=getattr(grad, what),
            hint="convert the gradient first",
            kind=GradientError,
        )
    return grad


def _root_grads(op: str, argument: str, roots: tuple[Tensor, ...], grads: Any) -> list[Tensor]:
    """Check the roots and their gradients."""
    if len(roots) == 1 and isinstance(grads, Tensor) and roots[0]._view is None:
        return [_root_grad(op, argument, roots[0], grads)]
    if grads is None or isinstance(grads, Tensor):
        given: list[Any] = [grads] * len(roots) if grads is None else [grads]
    else:
        given = list(grads) if isinstance(grads, Iterable) else [grads]
    if len(given) != len(roots):
        raise arg_error(
            op,
            argument,
            expected=f"{len(roots)} gradient(s), one per tensor",
            got=len(given),
            hint="pass one gradient, or None, per tensor",
            kind=GradientError,
        )
    for i, root in enumerate(roots):
        if root._view is not None:
            root.refresh_view()
        given[i] = _root_grad(op, argument, root, given[i])
    return given


def _edges(roots: tuple[Tensor, ...]) -> Sequence[Any]:
    return (roots[0]._edge,) if len(roots) == 1 else [root._edge for root in roots]


def _input_edges(op: str, inputs: tuple[Tensor, ...]) -> list[Edge]:
    if not inputs:
        raise arg_error(
            op,
            "inputs",
            expected="at least one tensor",
            got="none",
            hint="leave inputs out, or name the tensors whose gradients are wanted",
            kind=ArgumentError,
        )
    edges = []
    for i, tensor in enumerate(inputs):
        if tensor._view is not None:
            tensor.refresh_view()
        if tensor._edge is None:
            raise GradientError(
                f"{op}(): argument 'inputs[{i}]' (shape {tensor.shape}) does not require a "
                "gradient; call requires_grad_() on it before computing the outputs"
            )
        edges.append(tensor._edge)
    return edges


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Tensor | Sequence[Tensor | None] | None = None,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Accumulate the gradients of `tensors` into the `.grad` of the leaves.

    Parameters
    ----------
    tensors : Tensor or sequence of Tensor
        The tensors to differentiate.
    grad_tensors : Tensor or sequence, optional
        Gradients of the tensors, of the same shapes. Each is cast to the dtype of its tensor,
        except between real and complex dtypes. May be None for one-element tensors.
    retain_graph : bool, optional
        Keep the saved tensors for another backward; None means `create_graph`.
    create_graph : bool
        Record the backward pass. `.grad` then references the graph, which references the leaf: a
        cycle that only the garbage collector breaks; prefer `autograd.grad`.
    grad_variables : Tensor or sequence, optional
        The older name of `grad_tensors`.
    inputs : Tensor or sequence, optional
        Accumulate into these only.

    Raises
    ------
    FreedGraphError
        Before any `.grad` changes, when saved tensors were released by an earlier backward.
    GradientError
        When a gradient is missing or does not fit.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0], requires_grad=True)
    >>> flow.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    if create_graph:
        warn_caller(
            "backward(create_graph=True) makes a reference cycle between a leaf and its gradient; "
            "use autograd.grad, or set .grad to None afterwards"
        )
    if grad_variables is not None:
        warn_caller("backward(): grad_variables is deprecated; say grad_tensors")
        spelled = "grad_variables", grad_variables
        grad_tensors = one_of("backward", "grad_tensors", grad_tensors, None, *spelled)
    roots = (tensors,) if isinstance(tensors, Tensor) else _as_tuple("backward", "tensors", tensors)
    grads = _root_grads("backward", "grad_tensors", roots, grad_tensors)
    keep = create_graph if retain_graph is None else retain_graph
    task = GraphTask(keep, create_graph, accumulate=True)
    wanted = None
    if inputs is not None:
        wanted = _input_edges("backward", _as_tuple("backward", "inputs", inputs))
    root = task.set_roots(_edges(roots), grads, roots)
    if wanted is not None:
        task.compute_dependencies_and_prune_node(root, wanted)
    task.run(root)


@overload
def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = ...,
    retain_graph: bool | None = ...,
    create_graph: bool = ...,
    only_inputs: bool = ...,
    allow_unused: Literal[False] | None = ...,
    is_grads_batched: bool = ...,
    materialize_grads: bool = ...,
) -> tuple[Tensor, ...]: ...
@overload
def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = ...,
    retain_graph: bool | None = ...,
    create_graph: bool = ...,
    only_inputs: bool = ...,
    *,
    allow_unused: bool | None,
    is_grads_batched: bool = ...,
    materialize_grads: bool = ...,
) -> tuple[Tensor | None, ...]: ...
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of `outputs` with respect to `inputs`; no `.grad` changes.

    Parameters
    ----------
    outputs, inputs : Tensor or sequence of Tensor
        The outputs are differentiated with respect to the inputs, any tensors of the graph.
    grad_outputs : Tensor or sequence, optional
        Gradients of the outputs, as `grad_tensors` of `backward`.
    retain_graph : bool, optional
        Keep the saved tensors; None means `create_graph`.
    create_graph : bool
        Record the backward pass, so that the result can be differentiated again.
    only_inputs : bool
        Has no effect: only the gradients of the inputs are computed.
    allow_unused : bool, optional
        Return None for an input that the outputs do not depend on, instead of raising; None
        means `materialize_grads`.
    is_grads_batched : bool
        `grad_outputs` have a leading batch dimension, and so has the result. One pass takes them
        all, as under `vmap`.
    materialize_grads : bool
        Return zeros for an unused input.

    Returns
    -------
    tuple of Tensor or None
        One per input.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor(3.0, requires_grad=True)
    >>> (first,) = flow.autograd.grad(x**3, x, create_graph=True)
    >>> (second,) = flow.autograd.grad(first, x)
    >>> first.item(), second.item()
    (27.0, 18.0)
    """
    if not only_inputs:
        warn_caller(
            "grad(): only_inputs=False is ignored; backward() accumulates in all leaves",
            FutureWarning,
        )
    if materialize_grads and allow_unused is False:
        raise ArgumentError(
            "grad(): argument 'allow_unused': expected True or None with materialize_grads=True, "
            "got False; leave it out"
        )
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    roots = _as_tuple("grad", "outputs", outputs)
    wanted = _as_tuple("grad", "inputs", inputs)
    edges = _input_edges("grad", wanted)
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        return _batched(
            roots, wanted, grad_outputs, keep, create_graph, allow_unused, materialize_grads
        )
    grads = _root_grads("grad", "grad_outputs", roots, grad_outputs)
    task = GraphTask(keep, create_graph, accumulate=False)
    root = task.set_roots(_edges(roots), grads, roots)
    task.compute_dependencies_and_prune_node(root, edges)
    if not allow_unused:  # checked before the pass, which would release the saved tensors
        for i, edge in enumerate(edges):
            if edge[0] not in task.dependencies:
                raise _unused_error(i, wanted[i])
    task.run(root)
    wrap = task.gradients.wrap
    results: list[Tensor | None] = []
    for i, captured in enumerate(task.captured_grads):
        if captured is not None:
            results.append(wrap(captured))
        elif materialize_grads:
            results.append(FUNCTORS_F.zeros_like(wanted[i], requires_grad=create_graph))
        elif allow_unused:
            results.append(None)
        else:
            raise _unused_error(i, wanted[i])
    return tuple(results)


def _unused_error(position: int, tensor: Tensor) -> GradientError:
    return GradientError(
        f"grad(): argument 'inputs[{position}]' (shape {tensor.shape}) was not used to compute the "
        "outputs; pass allow_unused=True to get None for it, or materialize_grads=True for zeros"
    )


def _batched(
    roots: tuple[Tensor, ...],
    wanted: tuple[Tensor, ...],
    grad_outputs: Any,
    retain_graph: bool,
    create_graph: bool,
    allow_unused: bool,
    materialize_grads: bool,
) -> tuple[Tensor | None, ...]:
    """Run one backward pass for all entries of the leading dimension."""
    batches = _as_tuple("grad", "grad_outputs", grad_outputs)
    sizes = {batch.shape[0] if batch.ndim else 0 for batch in batches}
    if len(sizes) != 1 or 0 in sizes:
        raise arg_error(
            "grad",
            "grad_outputs",
            expected="gradients with one common leading dimension of at least 1",
            got=sorted(sizes),
            hint="stack the same number of gradients for every output",
            kind=GradientError,
        )
    (size,) = sizes
    batching = module("batches")
    # What a backward pass computes again has to draw the numbers of the forward pass.
    with batching.BatchLevel(size, "same", "grad") as level:
        found = grad(
            roots,
            wanted,
            [batching.enter_batch(batch, level, 0) for batch in batches],
            retain_graph,
            create_graph,
            allow_unused=allow_unused,
            materialize_grads=materialize_grads,
        )
        return tuple([None if g is None else batching.leave_batch(g, level, 0) for g in found])
