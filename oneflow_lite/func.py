"""Functions of functions, under the names of `torch.func`: gradients, Jacobians, batches.

Arguments and results may be tensors in tuples, lists and dicts. Derivatives are computed as in
`autograd.functional`, and nest to any order; `vmap` is a loop over the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any
from weakref import WeakSet

from oneflow_lite.autograd import functional
from oneflow_lite.autograd.engine.run import grad as _grad
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    GradientError,
    ShapeError,
    arg_error,
)
from oneflow_lite.functors.creation import zeros_like
from oneflow_lite.functors.joining import stack
from oneflow_lite.functors.random import get_rng_state, set_rng_state
from oneflow_lite.interpreter.stack import Interpreter, push_interpreter
from oneflow_lite.nn.utils.stateless import call_with
from oneflow_lite.ops.exposure import expose
from oneflow_lite.ops.op_expr import OpExpr
from oneflow_lite.tensors.mode import inference_mode, is_grad_enabled
from oneflow_lite.tensors.node import FunctionNode
from oneflow_lite.tensors.tensor import Tensor

expose(globals())

functional_call = call_with
_Build = Callable[[Iterator[Any]], Any]


def _flatten(tree: Any, leaves: list[Any]) -> _Build:
    """Append the leaves of nested tuples, lists and dicts; return a function to nest new leaves."""
    if isinstance(tree, dict):
        parts = {key: _flatten(value, leaves) for key, value in tree.items()}
        return lambda given: {key: build(given) for key, build in parts.items()}
    if isinstance(tree, (tuple, list)):
        builds = [_flatten(value, leaves) for value in tree]
        kind = type(tree)
        if hasattr(kind, "_fields"):  # a named tuple takes its entries as arguments
            return lambda given: kind(*[build(given) for build in builds])
        return lambda given: kind([build(given) for build in builds])
    leaves.append(tree)
    return next


class _FunctionOfTensors:
    """A function of the tensors in some of its arguments."""

    def __init__(
        self, name: str, func: Callable[..., Any], argnums: Any, args: Any, kwargs: Any
    ) -> None:
        self.name, self.func, self.args, self.kwargs = name, func, list(args), kwargs
        self.several = isinstance(argnums, tuple)
        self.places = argnums if self.several else (argnums,)
        if any(not -len(args) <= n < len(args) for n in self.places):
            expected = f"the place of one of the {len(args)} arguments"
            hint = "count from 0"
            raise arg_error(name, "argnums", expected, argnums, hint, ArgumentError)
        self.leaves: list[Tensor] = []
        self.builds = [_flatten(args[n], self.leaves) for n in self.places]
        for leaf in self.leaves:
            check_leaf(name, leaf)

    def like_arguments(self, values: Sequence[Any]) -> Any:
        """Nest values, one for each tensor, as the arguments are nested."""
        given = iter(values)
        nested = tuple([build(given) for build in self.builds])
        return nested if self.several else nested[0]

    def __call__(self, *leaves: Tensor) -> Any:
        given, args = iter(leaves), list(self.args)
        for place, build in zip(self.places, self.builds, strict=True):
            args[place] = build(given)
        return self.func(*args, **self.kwargs)


def check_leaf(op: str, leaf: Any) -> Tensor:
    """Return a tensor of floats; raise for a value that cannot be differentiated."""
    if isinstance(leaf, Tensor) and leaf.dtype.kind in "fc":
        return leaf
    got = leaf.dtype if isinstance(leaf, Tensor) else type(leaf).__name__
    kind = GradientError if isinstance(leaf, Tensor) else ArgumentTypeError
    expected, hint = "tensors of a floating dtype", "convert them with .float()"
    raise arg_error(op, "args", expected, got, hint, kind)


# The nodes of the leaves that calls made of their arguments, once the function has returned. From
# then on such a leaf is a constant to everybody else.
_spent: WeakSet[FunctionNode] = WeakSet()


def _inputs(leaves: Sequence[Tensor]) -> list[Tensor]:
    """Return new tensors in the place of the leaves, joined to a graph where a leaf is in one.

    The call differentiates by the new tensors, so that other uses of a leaf count as constants.
    """
    return [x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in leaves]


def _spend(inputs: Sequence[Tensor]) -> None:
    """Mark the leaves among the inputs of a function that has returned."""
    _spent.update([x._edge[0] for x in inputs if x._edge is not None and x.is_leaf])


def _finished(results: Sequence[Any], roots: Sequence[Any]) -> list[Any]:
    """Cut off results that nobody outside of the call can differentiate.

    Derivatives are recorded, because an outer call may take their derivatives. A result keeps its
    history only where the caller records, and where the roots lead to a leaf that is not spent.
    """
    work = [r._edge[0] for r in roots if isinstance(r, Tensor) and r._edge is not None]
    seen = set()
    while work and is_grad_enabled():
        node = work.pop()
        if node in _spent or id(node) in seen:
            continue
        seen.add(id(node))
        following = [edge[0] for edge in node.next_functions if edge[0] is not None]
        if not following:  # a leaf from elsewhere
            return list(results)
        work += following
    return [r.detach() if isinstance(r, Tensor) else r for r in results]


def _cut_off(tree: Any) -> Any:
    """Cut off the tensors of a tree that nobody outside of the call can differentiate."""
    leaves: list[Any] = []
    build = _flatten(tree, leaves)
    return build(iter(_finished(leaves, leaves)))


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function of the gradient and the value of a scalar function; see `grad`."""

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        inner = _FunctionOfTensors("grad", func, argnums, args, kwargs)
        with inference_mode(False):
            inputs = _inputs(inner.leaves)
            result = inner(*inputs)
            _spend(inputs)
            value, aux = result if has_aux else (result, None)
            if not isinstance(value, Tensor) or value.ndim:
                got = f"shape {value.shape}" if isinstance(value, Tensor) else type(value).__name__
                expected, hint = "a function that returns a 0-d tensor", "reduce it with sum()"
                raise arg_error("grad", "func", expected, got, hint, ShapeError)
            if value.requires_grad:
                grads = _grad(value, inputs, create_graph=True, materialize_grads=True)
            else:
                grads = tuple(zeros_like(x) for x in inputs)
        *grads, value = _finished([*grads, value], [value])  # type: ignore[assignment]
        aux = _cut_off(aux)
        return inner.like_arguments(grads), ((value, aux) if has_aux else value)

    return call


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the function of the gradient of a scalar function.

    argnums: the place of the argument to differentiate by, or a tuple of places.
    has_aux: `func` returns a pair; its second entry is returned beside the gradient.

    Raises `ShapeError` when the function does not return a 0-d tensor.

    >>> import oneflow_lite as flow
    >>> flow.func.grad(flow.func.grad(lambda x: x**3))(flow.tensor(2.0))
    tensor(12.)
    """

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        gradient, value = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return call


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return `func(*primals)`, and the function from a cotangent to `v J`, one for each primal.

    >>> import oneflow_lite as flow
    >>> y, pull = flow.func.vjp(lambda x: x * x, flow.tensor([1.0, 2.0]))
    >>> y, pull(flow.tensor([1.0, 10.0]))
    (tensor([1., 4.]), (tensor([ 2., 40.]),))
    """
    inner = _FunctionOfTensors("vjp", func, tuple(range(len(primals))), primals, {})
    with inference_mode(False):
        inputs = _inputs(inner.leaves)
        result = inner(*inputs)
        _spend(inputs)
    value, aux = result if has_aux else (result, None)
    outputs: list[Any] = []
    _flatten(value, outputs)

    def pull(cotangents: Any) -> Any:
        given: list[Any] = []
        _flatten(cotangents, given)
        kept = [(y, v) for y, v in zip(outputs, given, strict=True) if y.requires_grad]
        if not kept:
            return inner.like_arguments([zeros_like(x) for x in inputs])
        with inference_mode(False):
            products = _grad(
                [y for y, _ in kept],
                inputs,
                [v for _, v in kept],
                retain_graph=True,
                create_graph=True,
                materialize_grads=True,
            )
        return inner.like_arguments(_finished(products, [*outputs, *given]))

    shown = _cut_off(value)
    return (shown, pull, _cut_off(aux)) if has_aux else (shown, pull)


def _derivative(
    name: str, func: Callable[..., Any], argnums: Any, has_aux: bool, strategy: str
) -> Callable[..., Any]:
    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        inner = _FunctionOfTensors(name, func, argnums, args, kwargs)
        rebuild: _Build = next
        aux: Any = None
        roots: list[Any] = []

        def flat(*leaves: Tensor) -> tuple[Any, ...]:
            nonlocal rebuild, aux, roots
            result = inner(*leaves)
            value, aux = result if has_aux else (result, None)
            roots = []
            rebuild = _flatten(value, roots)
            return tuple(roots)

        with inference_mode(False):
            inputs = _inputs(inner.leaves)
            rows = functional.jacobian(flat, tuple(inputs), create_graph=True, strategy=strategy)
            _spend(inputs)
        blocks = [inner.like_arguments(_finished(row, roots)) for row in rows]
        jacobian = rebuild(iter(blocks))
        return (jacobian, _cut_off(aux)) if has_aux else jacobian

    return call


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return the function of the Jacobian, taken row by row: for more inputs than outputs.

    >>> import oneflow_lite as flow
    >>> flow.func.jacrev(lambda x: x * x)(flow.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    return _derivative("jacrev", func, argnums, has_aux, "reverse-mode")


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """Return the function of the Jacobian, taken column by column: for more outputs than inputs."""
    return _derivative("jacfwd", func, argnums, has_aux, "forward-mode")


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """Return the function of the Hessian: the Jacobian of the Jacobian.

    >>> import oneflow_lite as flow
    >>> flow.func.hessian(lambda x: x.prod())(flow.tensor([2.0, 3.0]))
    tensor([[0., 1.],
            [1., 0.]])
    """
    return jacrev(jacrev(func, argnums), argnums)


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """Return `func(*primals)` and `J v`, the product of the Jacobian with the tangents.

    >>> import oneflow_lite as flow
    >>> flow.func.jvp(lambda x: x * x, (flow.tensor(3.0),), (flow.tensor(1.0),))
    (tensor(9.), tensor(6.))
    """
    inner = _FunctionOfTensors("jvp", func, tuple(range(len(primals))), primals, {})
    vectors: list[Any] = []
    _flatten(tangents, vectors)
    rebuild: _Build = next
    aux: Any = None
    roots: list[Any] = []

    def flat(*leaves: Tensor) -> tuple[Any, ...]:
        nonlocal rebuild, aux, roots
        result = inner(*leaves)
        value, aux = result if has_aux else (result, None)
        roots = []
        rebuild = _flatten(value, roots)
        return tuple(roots)

    inputs = _inputs(inner.leaves)
    values, products = functional.jvp(flat, tuple(inputs), tuple(vectors), True, strict)
    _spend(inputs)
    parts = [_finished(values, roots), _finished(products, [*roots, *vectors])]
    shown = tuple(rebuild(iter(part)) for part in parts)
    return (*shown, _cut_off(aux)) if has_aux else shown


class _NoRandom(Interpreter):
    """Refuses ops that draw random numbers."""

    def apply(self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        if op_expr.schema.random:
            raise GradientError(
                f"vmap(): {op_expr.op_type_name} draws random numbers; pass randomness='different' "
                "for other numbers in each call, or 'same'"
            )
        return super().apply(op_expr, inputs, attrs)


def _dims(dims: Any, tree: Any, op: str) -> list[Any]:
    """Return one dimension, or None, for each leaf of a tree."""
    leaves: list[Any] = []
    if dims is None or isinstance(dims, int):
        _flatten(tree, leaves)
        return [dims] * len(leaves)
    keyed = isinstance(dims, dict) and isinstance(tree, dict) and dims.keys() == tree.keys()
    listed = isinstance(dims, (tuple, list)) and isinstance(tree, (tuple, list))
    if keyed:
        return [d for key in tree for d in _dims(dims[key], tree[key], op)]
    if listed and len(dims) == len(tree):
        return [d for each, part in zip(dims, tree, strict=True) for d in _dims(each, part, op)]
    expected, hint = "an int or None for each argument", "nest it as the arguments are"
    raise arg_error("vmap", op, expected, dims, hint, ArgumentError)


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return the function that maps `func` over a dimension of its arguments.

    `func` is called once for each entry, and the results are stacked.

    in_dims: the dimension of each argument; None hands an argument on whole.
    out_dims: the place of the dimension in the results.
    randomness: "error" refuses random numbers, "different" draws anew for each entry, "same" gives
    all entries the same numbers.

    Raises `ArgumentError` without a dimension to map over, or when sizes differ.

    >>> import oneflow_lite as flow
    >>> flow.vmap(flow.dot)(flow.ones(2, 3), flow.ones(2, 3))
    tensor([3., 3.])
    """
    if randomness not in ("error", "different", "same"):
        expected, hint = "'error', 'different' or 'same'", "name one of these"
        raise arg_error("vmap", "randomness", expected, repr(randomness), hint, ArgumentError)

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves: list[Any] = []
        build = _flatten(args, leaves)
        dims = _dims(tuple(in_dims) if isinstance(in_dims, list) else in_dims, args, "in_dims")
        named: list[Any] = []
        build_named = _flatten(kwargs, named)
        leaves, dims = leaves + named, dims + [0 if isinstance(x, Tensor) else None for x in named]
        mapped = [(x, d) for x, d in zip(leaves, dims, strict=True) if d is not None]
        for leaf, dim in mapped:
            if not isinstance(leaf, Tensor) or not -leaf.ndim <= dim < leaf.ndim:
                got = f"shape {leaf.shape}" if isinstance(leaf, Tensor) else type(leaf).__name__
                expected, hint = f"a tensor with dimension {dim}", "pass in_dims=None for it"
                raise arg_error("vmap", "args", expected, got, hint, ArgumentError)
        sizes = {leaf.shape[dim] for leaf, dim in mapped}
        if len(sizes) != 1:
            expected, hint = "one size of the mapped dimensions", "check in_dims"
            raise arg_error("vmap", "args", expected, sorted(sizes), hint, ArgumentError)
        state = get_rng_state() if randomness == "same" else None
        results: list[list[Any]] = []
        rebuild: _Build = next
        value: Any = None
        for entry in range(sizes.pop()):
            if state is not None:
                set_rng_state(state)
            picked = iter(
                [x if d is None else x.select(d, entry) for x, d in zip(leaves, dims, strict=True)]
            )
            if randomness == "error":
                with push_interpreter(_NoRandom()):
                    value = func(*build(picked), **build_named(picked))
            else:
                value = func(*build(picked), **build_named(picked))
            results.append([])
            rebuild = _flatten(value, results[-1])
            for leaf in results[-1]:
                if not isinstance(leaf, Tensor):
                    expected, got = "a function that returns tensors", type(leaf).__name__
                    hint = "wrap numbers with flow.tensor(...)"
                    raise arg_error("vmap", "func", expected, got, hint, ArgumentError)
        if not results:
            expected, hint = "at least one entry to map over", "leave empty batches out"
            raise arg_error("vmap", "args", expected, "size 0", hint, ArgumentError)
        places = _dims(out_dims, value, "out_dims")
        columns = zip(*results, strict=True)
        joined = [
            column[0] if place is None else stack(column, place)
            for column, place in zip(columns, places, strict=True)
        ]
        return rebuild(iter(joined))

    return call


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameters and the buffers of modules of one kind, stacked, for `vmap`."""
    states = [(dict(m.named_parameters()), dict(m.named_buffers())) for m in models]
    parameters, buffers = (
        {name: stack([state[i][name] for state in states]).detach() for name in states[0][i]}
        for i in (0, 1)
    )
    return {name: x.requires_grad_() for name, x in parameters.items()}, buffers
