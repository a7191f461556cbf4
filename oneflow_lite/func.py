"""Functions of functions, under the names of `torch.func`: batches, derivatives, Taylor series.

Arguments and results may be tensors in tuples, lists and dicts. Each transform is a level of the
interpreter stack (`oneflow_lite/transforms/`), so they nest in every order: `vmap(grad(f))`,
`jvp` of a gradient, a batch of Hessians.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any
from weakref import WeakSet

from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.autograd.engine.run import grad as _grad
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    GradientError,
    ShapeError,
    arg_error,
)
from oneflow_lite.functors.creation import eye, zeros, zeros_like
from oneflow_lite.functors.joining import cat, stack
from oneflow_lite.functors.random import randint, randn
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.modules.normalization import _BatchNorm
from oneflow_lite.nn.utils.stateless import call_with
from oneflow_lite.ops.exposure import expose
from oneflow_lite.tensors.mode import enable_grad, inference_mode, is_grad_enabled, of_user
from oneflow_lite.tensors.node import FunctionNode
from oneflow_lite.tensors.tensor import Tensor
from oneflow_lite.transforms.batching import BatchLevel, enter_batch, leave_batch
from oneflow_lite.transforms.forward import JetLevel, enter_jet, leave_jet, without_tangents
from oneflow_lite.transforms.levels import LevelArray, levels_of

expose(globals())

functional_call = call_with
_Build = Callable[[Iterator[Any]], Any]


def _flatten(tree: Any, leaves: list[Any]) -> _Build:
    """Append the leaves of nested tuples, lists and dicts; return a function to nest new leaves."""
    kind = type(tree)
    if isinstance(tree, dict):
        parts = {key: _flatten(value, leaves) for key, value in tree.items()}

        def nested(given: Iterator[Any]) -> Any:
            made = {key: build(given) for key, build in parts.items()}
            if kind is dict:
                return made
            factory = [tree.default_factory] if isinstance(tree, defaultdict) else []
            return kind(*factory, made)

        return nested
    if isinstance(tree, (tuple, list)):
        builds = [_flatten(value, leaves) for value in tree]
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
            _check_leaf(name, leaf)

    def like_arguments(self, values: Sequence[Any]) -> Any:
        """Nest values, one for each tensor, as the arguments are nested."""
        given = iter(values)
        nested = tuple([build(given) for build in self.builds])
        return nested if self.several else nested[0]

    def __call__(self, *leaves: Tensor) -> Any:
        given, args = iter(leaves), list(self.args)
        for place, build in zip(self.places, self.builds, strict=True):
            args[place] = build(given)
        return of_user(self.func, reads=True)(*args, **self.kwargs)


def _check_leaf(op: str, leaf: Any) -> Tensor:
    """Return a tensor of floats; raise for a value that cannot be differentiated."""
    if isinstance(leaf, Tensor) and leaf.dtype.kind in "fc":
        return leaf
    got = leaf.dtype if isinstance(leaf, Tensor) else type(leaf).__name__
    kind = GradientError if isinstance(leaf, Tensor) else ArgumentTypeError
    expected, hint = "tensors of a floating dtype", "convert them with .float()"
    raise arg_error(op, "args", expected, got, hint, kind)


def _check_tensors(op: str, leaves: Sequence[Any]) -> None:
    """Raise for a result that is no tensor."""
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            expected, got = "a function that returns tensors", type(leaf).__name__
            hint = "wrap numbers with flow.tensor(...)"
            raise arg_error(op, "func", expected, got, hint, ArgumentError)


# --- Histories ------------------------------------------------------------------------------------

# The nodes of the leaves that calls made of their arguments, once the function has returned. From
# then on such a leaf is a constant to everybody else.
_spent: WeakSet[FunctionNode] = WeakSet()


def _inputs(leaves: Sequence[Tensor]) -> list[Tensor]:
    """Return new tensors in the place of the leaves, joined to a graph where a leaf is in one.

    The call differentiates by the new tensors, so that other uses of a leaf count as constants.
    """
    return [x.view_as(x) if x.requires_grad else x._cut().requires_grad_() for x in leaves]


def _spend(inputs: Sequence[Tensor]) -> None:
    """Mark the leaves among the inputs of a function that has returned."""
    _spent.update([x._edge[0] for x in inputs if x._edge is not None and x.is_leaf])


def _goes_on(roots: Sequence[Any]) -> bool:
    """Return whether somebody outside can differentiate what is computed from the roots.

    That is so where the caller records, and where the roots lead to a leaf that is not spent.
    """
    if not is_grad_enabled():
        return False
    work = [r._edge[0] for r in roots if isinstance(r, Tensor) and r._edge is not None]
    seen = set()
    while work:
        node = work.pop()
        if node in _spent or id(node) in seen:
            continue
        seen.add(id(node))
        following = [edge[0] for edge in node.edges if edge[0] is not None]
        if not following:  # a leaf from elsewhere
            return True
        work += following
    return False


def _cut_off(values: Sequence[Any], goes_on: bool) -> list[Any]:
    """Cut values off their history, unless it goes on outside of the call."""
    if goes_on:
        return list(values)
    return [x._cut() if isinstance(x, Tensor) else x for x in values]


def _cut_tree(tree: Any) -> Any:
    """Cut off the tensors of a tree that nobody outside of the call can differentiate."""
    leaves: list[Any] = []
    build = _flatten(tree, leaves)
    return build(iter(_cut_off(leaves, _goes_on(leaves))))


# --- Gradients ------------------------------------------------------------------------------------


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
        goes_on = _goes_on([value])
        if has_aux:
            aux = _cut_tree(aux)
        if value.requires_grad:
            with inference_mode(False):
                grads = _grad(
                    value, inputs, None, True, create_graph=goes_on, materialize_grads=True
                )
        else:
            grads = tuple(zeros_like(x) for x in inputs)
        *found, value = _cut_off([*grads, value], goes_on)
        return inner.like_arguments(found), ((value, aux) if has_aux else value)

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


def value_and_grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function of the value and the gradient, in this order, as HIPS/autograd and JAX do.

    >>> import oneflow_lite as flow
    >>> flow.func.value_and_grad(lambda x: x**3)(flow.tensor(2.0))
    (tensor(8.), tensor(12.))
    """

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        gradient, value = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return value, gradient

    return call


def elementwise_grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0
) -> Callable[..., Any]:
    """Return the function of the derivative of each element of the result by its own element.

    It is the gradient of the sum, so each element may depend on its own element of the argument
    alone, as under HIPS/autograd.

    >>> import oneflow_lite as flow
    >>> flow.func.elementwise_grad(flow.sin)(flow.tensor([0.0, 1.0]))
    tensor([1.0000, 0.5403])
    """
    return grad(lambda *args, **kwargs: of_user(func)(*args, **kwargs).sum(), argnums)


@guarded
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return `func(*primals)`, and the function from a cotangent to `v J`, one for each primal.

    >>> import oneflow_lite as flow
    >>> y, pull = flow.func.vjp(lambda x: x * x, flow.tensor([1.0, 2.0]))
    >>> y, pull(flow.tensor([1.0, 10.0]))
    (tensor([1., 4.]), (tensor([ 2., 40.]),))
    """
    shown, _, aux, pull, like_arguments = _pullback("vjp", func, primals, has_aux)

    def pulled(cotangents: Any) -> Any:
        given: list[Any] = []
        _flatten(cotangents, given)
        return like_arguments(pull(given))

    return (shown, pulled, aux) if has_aux else (shown, pulled)


def _pullback(
    name: str,
    func: Callable[..., Any],
    args: Sequence[Any],
    has_aux: bool,
    argnums: Any = None,
    kwargs: dict[str, Any] | None = None,
) -> Any:
    """Run a function; return value, tensors of the value, aux, and from cotangents to products."""
    places = tuple(range(len(args))) if argnums is None else argnums
    inner = _FunctionOfTensors(name, func, places, args, kwargs or {})
    with inference_mode(False):
        inputs = _inputs(inner.leaves)
        result = inner(*inputs)
    _spend(inputs)
    value, aux = result if has_aux else (result, None)
    outputs: list[Any] = []
    build = _flatten(value, outputs)
    _check_tensors(name, outputs)

    def pull(given: Sequence[Any]) -> list[Any]:
        if len(given) != len(outputs):
            expected, hint = f"{len(outputs)} cotangents", "nest them as the outputs are"
            raise arg_error(name, "cotangents", expected, len(given), hint, ArgumentError)
        kept = [(y, v) for y, v in zip(outputs, given, strict=True) if y.requires_grad]
        if not kept:
            return [zeros_like(x) for x in inputs]
        goes_on = _goes_on([*outputs, *given])
        with inference_mode(False):
            products = _grad(
                [y for y, _ in kept],
                inputs,
                [v for _, v in kept],
                retain_graph=True,
                create_graph=goes_on,
                materialize_grads=True,
            )
        return _cut_off(products, goes_on)

    shown = build(iter(_cut_off(outputs, _goes_on(outputs))))
    return shown, outputs, _cut_tree(aux) if has_aux else None, pull, inner.like_arguments


# --- Forward mode ---------------------------------------------------------------------------------


def _match(name: str, leaves: Sequence[Any], vectors: Sequence[Any]) -> None:
    """Check that there is a tangent of the same shape for each tensor."""
    if len(leaves) != len(vectors):
        expected, hint = f"{len(leaves)} tangents", "nest them as the primals are"
        raise arg_error(name, "tangents", expected, len(vectors), hint, ArgumentError)
    for x, v in zip(leaves, vectors, strict=True):
        if not isinstance(v, Tensor) or v.shape != x.shape:
            got = v.shape if isinstance(v, Tensor) else type(v).__name__
            expected, hint = f"a tensor of shape {x.shape}", "give each tensor a tangent"
            raise arg_error(name, "tangents", expected, got, hint, ShapeError)


def _series(
    name: str,
    inner: Callable[..., Any],
    coefficients: Sequence[Sequence[Any]],
    has_aux: bool = False,
    strict: bool = False,
) -> Any:
    """Run a function on series; return the values' nesting, the coefficients of each, and aux."""
    order = max([len(each) for each in coefficients]) - 1
    with JetLevel(order, name) as level:
        result = inner(*[enter_jet(each, level) for each in coefficients])
        value, aux = result if has_aux else (result, None)
        outputs: list[Any] = []
        build = _flatten(value, outputs)
        _check_tensors(name, outputs)
        if strict and any(level not in levels_of(y) for y in outputs):
            raise GradientError(
                f"{name}(): an output does not depend on the inputs, and strict=True refuses that"
            )
        rows = [[leave_jet(y, level, k) for k in range(order + 1)] for y in outputs]
        for row in rows:
            if row[0].requires_grad and not without_tangents(row[0], level):
                row[0] = row[0]._cut()
        if has_aux:
            leaves: list[Any] = []
            again = _flatten(aux, leaves)
            leaves = [leave_jet(x, level, 0) if isinstance(x, Tensor) else x for x in leaves]
            aux = again(iter(leaves))
    return build, rows, aux


@guarded
def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """Return `func(*primals)` and `J v`, the product of the Jacobian with the tangents.

    Both come from one pass forward. The products have a history where primals or tangents have one.

    strict: raise where an output does not depend on the primals, instead of returning zeros.

    >>> import oneflow_lite as flow
    >>> flow.func.jvp(lambda x: x * x, (flow.tensor(3.0),), (flow.tensor(1.0),))
    (tensor(9.), tensor(6.))
    """
    given: tuple[Any, Any] = primals, tangents
    if not all([isinstance(each, tuple) for each in given]):
        got = next(type(each).__name__ for each in given if not isinstance(each, tuple))
        hint = "as jvp(f, (x,), (v,))"
        raise arg_error("jvp", "primals", "tuples", got, hint, ArgumentTypeError)
    inner = _FunctionOfTensors("jvp", func, tuple(range(len(primals))), primals, {})
    vectors: list[Any] = []
    _flatten(tangents, vectors)
    _match("jvp", inner.leaves, vectors)
    pairs = list(zip(inner.leaves, vectors, strict=True))
    build, rows, aux = _series("jvp", inner, pairs, has_aux, strict)
    shown = tuple([build(iter(column)) for column in zip(*rows, strict=True)])
    return (*shown, aux) if has_aux else shown


@guarded
def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return `func(*primals)`, and the function from tangents to `J v`, which does not run `func`.

    >>> import oneflow_lite as flow
    >>> y, push = flow.func.linearize(lambda x: x * x, flow.tensor([1.0, 2.0]))
    >>> y, push(flow.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    inner = _FunctionOfTensors("linearize", func, tuple(range(len(primals))), primals, {})
    with inference_mode(False), enable_grad():
        inputs = _inputs(inner.leaves)
        result = inner(*inputs)
        _spend(inputs)
        outputs: list[Any] = []
        build = _flatten(result, outputs)
        _check_tensors("linearize", outputs)
        goes_on = _goes_on(outputs)
        moved = [y for y in outputs if y.requires_grad]
        us = [zeros_like(y).requires_grad_() for y in moved]
        # The products with J from the left are linear in u; their transpose is J.
        products: Any = (
            _grad(moved, inputs, us, True, create_graph=True, allow_unused=True) if moved else ()
        )
    _spend(us)

    def push(*tangents: Any) -> Any:
        vectors: list[Any] = []
        _flatten(tangents, vectors)
        _match("linearize", inner.leaves, vectors)
        kept = [
            (p, v)
            for p, v in zip(products, vectors, strict=bool(moved))
            if p is not None and p.requires_grad
        ]
        found = iter(())
        if kept:
            roots, given = [p for p, _ in kept], [v for _, v in kept]
            on = _goes_on([*roots, *given])
            with inference_mode(False):
                made = _grad(roots, us, given, True, create_graph=on, materialize_grads=True)
            found = iter(_cut_off(made, on))
        pushed = [
            next(found) if y.requires_grad and kept else zeros_like(y._cut()) for y in outputs
        ]
        return build(iter(pushed))

    return build(iter(_cut_off(outputs, goes_on))), push


@guarded
def hvp(
    func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[Any, Any]:
    """Return the value of a scalar function and `H v`, the product of its Hessian with tangents.

    The gradient is taken in forward mode: one pass forward and one back, twice as wide. `H v` is
    nested as the primals; a single primal's stands alone.

    >>> import oneflow_lite as flow
    >>> flow.func.hvp(lambda x: (x**3).sum(), (flow.tensor([1.0, 2.0]),), (flow.ones(2),))
    (tensor(9.), tensor([ 6., 12.]))
    """
    places = tuple(range(len(primals)))

    def both(*args: Any) -> Any:
        return grad_and_value(func, places)(*args)

    (_, value), (product, _) = jvp(both, primals, tangents)
    return value, product[0] if len(primals) == 1 else product


@guarded
def jet(
    func: Callable[..., Any], primals: Sequence[Any], series: Sequence[Sequence[Any]]
) -> tuple[Any, Any]:
    """Return the derivatives of `func(x(t))` by t at 0, up to the order of the series.

    Parameters
    ----------
    func : callable
        Of tensors.
    primals : sequence of Tensor
        x(0) of each argument.
    series : sequence of sequence of Tensor
        For each argument x′(0), x″(0) and so on, of its shape; all of one length K. A number stands
        for a tensor of that number.

    Returns
    -------
    value, derivatives
        `func(*primals)`, and for each of its tensors the list of the K derivatives by t.

    Notes
    -----
    The work grows with K², not with 2^K as that of nested first derivatives. The names are those of
    `jax.experimental.jet`; `taylor` gives the coefficients themselves.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor(0.5, dtype=flow.float64)
    >>> flow.func.jet(flow.exp, (x,), ((1.0, 0.0, 0.0),))[1]
    [tensor(1.6487, dtype=float64), tensor(1.6487, dtype=float64), tensor(1.6487, dtype=float64)]
    """
    leaves = [_check_leaf("jet", x) for x in primals]
    lengths = sorted({len(each) for each in series})
    if len(series) != len(leaves) or len(lengths) != 1 or not lengths[0]:
        expected = f"{len(leaves)} series of one length of at least 1"
        hint = "give each primal its derivatives, as ((v, 0.0),)"
        raise arg_error("jet", "series", expected, [len(s) for s in series], hint, ArgumentError)
    coefficients = []
    for x, given in zip(leaves, series, strict=True):
        terms = [_term(x, d, math.factorial(k)) for k, d in enumerate(given, 1)]
        coefficients.append([x, *terms])
    build, rows, _ = _series("jet", of_user(func, reads=True), coefficients)
    derivatives = [
        [c if k < 2 else c * math.factorial(k) for k, c in enumerate(row) if k] for row in rows
    ]
    return build(iter([row[0] for row in rows])), build(iter(derivatives))


def _term(x: Tensor, derivative: Any, factor: int) -> Any:
    """Return a coefficient for a derivative, None for the number 0."""
    if isinstance(derivative, Tensor):
        _match("jet", [x], [derivative])
        return derivative if factor == 1 else derivative / factor
    return None if derivative == 0 else zeros_like(x) + derivative / factor


@guarded
def taylor(func: Callable[..., Any], x: Tensor, order: Any, direction: Any = None) -> Any:
    """Return the Taylor coefficients of `func(x + t v)` at t = 0.

    order: the highest power of t.
    direction: v, a tensor of the shape of x; ones by default.

    Returns a list of `order + 1` tensors, nested as the result of the function is.

    >>> import oneflow_lite as flow
    >>> flow.func.taylor(flow.exp, flow.tensor(0.0), 3)
    [tensor(1.), tensor(1.), tensor(0.5000), tensor(0.1667)]
    """
    _check_leaf("taylor", x)
    if not isinstance(order, int) or order < 0:
        hint = "name the highest power"
        raise arg_error("taylor", "order", "an int of at least 0", order, hint, ArgumentError)
    vector = zeros_like(x) + 1 if direction is None else direction
    _match("taylor", [x], [vector])
    build, rows, _ = _series(
        "taylor", of_user(func, reads=True), [[x, vector, *[None] * (order - 1)][: order + 1]]
    )
    return build(iter(rows))


# --- Jacobians, one row or column for all ---------------------------------------------------------


def _basis(like: Sequence[Tensor], begin: int, end: int) -> list[Tensor]:
    """Return rows begin to end of the unit vectors of all elements, split into tensors."""
    total = sum(x.numel() for x in like)
    parts, start = [], 0
    for x in like:
        size = x.numel()
        if begin == 0 and end == total == size:
            rows = eye(size, dtype=x.dtype, device=x.device)
        else:
            rows = zeros(end - begin, size, dtype=x.dtype, device=x.device)
            low, high = max(begin, start), min(end, start + size)
            if low < high:
                ones = eye(high - low, dtype=x.dtype, device=x.device)
                rows[low - begin : high - begin, low - start : high - start] = ones
        parts.append(rows.reshape(end - begin, *x.shape))
        start += size
    return parts


def _chunks(total: int, chunk_size: int | None) -> list[tuple[int, int]]:
    step = max(total, 1) if chunk_size is None else chunk_size
    return [(begin, min(begin + step, total)) for begin in range(0, max(total, 1), step)]


def _check_chunk_size(op: str, chunk_size: Any) -> None:
    """Raise unless this is None or a positive int."""
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
        hint = "leave it out for all entries at once"
        raise arg_error(op, "chunk_size", "None or an int of at least 1", chunk_size, hint)


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return the function of the Jacobian, its rows by one backward pass over a batch.

    For more inputs than outputs.

    chunk_size: how many rows are taken at once, which bounds the memory; by default all.

    >>> import oneflow_lite as flow
    >>> flow.func.jacrev(lambda x: x * x)(flow.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check_chunk_size("jacrev", chunk_size)

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        several = isinstance(argnums, tuple)
        places = argnums if several else (argnums,)
        shown, outputs, aux, pull, _ = _pullback("jacrev", func, args, has_aux, places, kwargs)
        inner = _FunctionOfTensors("jacrev", func, argnums, args, kwargs)
        total = sum(y.numel() for y in outputs)
        rows: list[list[Tensor]] = []
        for begin, end in _chunks(total, chunk_size):
            cotangents = _basis(outputs, begin, end)
            rows.append(list(vmap(lambda *vs: tuple(pull(vs)))(*cotangents)))
        columns = [cat(c) if len(c) > 1 else c[0] for c in zip(*rows, strict=True)]
        blocks, start = [], 0
        for y in outputs:
            size = y.numel()
            block = [
                column[start : start + size].reshape(*y.shape, *x.shape)
                for column, x in zip(columns, inner.leaves, strict=True)
            ]
            blocks.append(inner.like_arguments(block))
            start += size
        leaves: list[Any] = []
        jacobian = _flatten(shown, leaves)(iter(blocks))
        return (jacobian, aux) if has_aux else jacobian

    return call


jacobian = jacrev  # the name of HIPS/autograd


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """Return the function of the Jacobian, its columns by one pass forward over a batch.

    For more outputs than inputs.

    randomness: that of `vmap`, for random numbers in the function.

    >>> import oneflow_lite as flow
    >>> flow.func.jacfwd(lambda x: x * x)(flow.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        inner = _FunctionOfTensors("jacfwd", func, argnums, args, kwargs)
        total = sum(x.numel() for x in inner.leaves)
        nested: Any = None

        def push(*vectors: Tensor) -> Any:
            nonlocal nested
            pairs = list(zip(inner.leaves, vectors, strict=True))
            build, rows, aux = _series("jacfwd", inner, pairs, has_aux)
            nested = build
            return tuple([row[1] for row in rows]), aux

        with BatchLevel(total, randomness) as level:
            given = [enter_batch(v, level, 0) for v in _basis(inner.leaves, 0, total)]
            tangents, aux = push(*given)
            tangents = [leave_batch(t, level, t.ndim) for t in tangents]
        blocks = []
        for t in tangents:
            block, start = [], 0
            for x in inner.leaves:
                part = t[..., start : start + x.numel()]
                block.append(part.reshape(*t.shape[:-1], *x.shape))
                start += x.numel()
            blocks.append(inner.like_arguments(block))
        if not is_grad_enabled():
            blocks = _cut_tree(blocks)
        made = nested(iter(blocks))
        return (made, aux) if has_aux else made

    return call


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """Return the function of the Hessian: the gradient in forward mode over a batch.

    >>> import oneflow_lite as flow
    >>> flow.func.hessian(lambda x: x.prod())(flow.tensor([2.0, 3.0]))
    tensor([[0., 1.],
            [1., 0.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


_ESTIMATORS = (None, "rademacher", "gaussian")


def _probes(op: str, x: Tensor, estimator: Any, samples: int) -> tuple[Tensor, float]:
    """Return the vectors to sum over, and the factor of the sum."""
    if estimator not in _ESTIMATORS:
        hint = "None takes all second derivatives"
        expected = "None, 'rademacher' or 'gaussian'"
        raise arg_error(op, "estimator", expected, repr(estimator), hint, ArgumentError)
    if estimator is None:
        return _basis([x], 0, x.numel())[0], 1.0
    size = (samples, *x.shape)
    if estimator == "gaussian":
        return randn(size, dtype=x.dtype, device=x.device), 1 / samples
    signs = randint(0, 2, size, device=x.device).to(x.dtype) * 2 - 1
    return signs, 1 / samples


def laplacian(
    func: Callable[..., Any],
    argnum: int = 0,
    *,
    estimator: str | None = None,
    samples: int = 1,
) -> Callable[..., Any]:
    """Return the function of the sum of second derivatives by each element of an argument.

    All of them come from one pass forward with series of order 2 over a batch of directions; no
    Hessian is made, and the function itself is computed once. The result has the shape of the
    function's result.

    estimator: "rademacher" or "gaussian" average vᵀ H v over so many random vectors (`samples`),
    an unbiased estimate (Hutchinson, 1990) whose cost does not grow with the size of the argument.

    >>> import oneflow_lite as flow
    >>> flow.func.laplacian(lambda x: (x**3).sum())(flow.tensor([1.0, 2.0]))
    tensor(18.)
    """

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        inner = _FunctionOfTensors("laplacian", func, argnum, args, kwargs)
        (x,) = _one_tensor("laplacian", inner)
        vectors, factor = _probes("laplacian", x, estimator, samples)
        with BatchLevel(vectors.shape[0], "error", "laplacian") as level:
            v = enter_batch(vectors, level, 0)
            build, rows, _ = _series("laplacian", inner, [[x, v, None]])
            seconds = [leave_batch(row[2], level, 0).sum(0) * (2 * factor) for row in rows]
        return build(iter(seconds))

    return call


def divergence(
    func: Callable[..., Any],
    argnum: int = 0,
    *,
    estimator: str | None = None,
    samples: int = 1,
) -> Callable[..., Any]:
    """Return the function of the divergence of a vector field: Σ ∂f_i/∂x_i.

    estimator: "rademacher" or "gaussian" average vᵀ J v over so many random vectors (`samples`), as
    for continuous normalizing flows (Hutchinson, 1990).

    Raises `ShapeError` when the result has another shape than the argument.

    >>> import oneflow_lite as flow
    >>> flow.func.divergence(lambda x: x * x)(flow.tensor([1.0, 2.0]))
    tensor(6.)
    """

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        inner = _FunctionOfTensors("divergence", func, argnum, args, kwargs)
        (x,) = _one_tensor("divergence", inner)
        vectors, factor = _probes("divergence", x, estimator, samples)
        with BatchLevel(vectors.shape[0], "error", "divergence") as level:
            v = enter_batch(vectors, level, 0)
            _, rows, _ = _series("divergence", inner, [[x, v]])
            if len(rows) != 1 or rows[0][0].shape != x.shape:
                got, hint = [row[0].shape for row in rows], "take a function from x to its shape"
                raise arg_error("divergence", "func", f"a result of shape {x.shape}", got, hint)
            products = leave_batch((rows[0][1] * v).sum(), level, 0)
        return products.sum() * factor

    return call


def _one_tensor(op: str, inner: _FunctionOfTensors) -> list[Tensor]:
    if len(inner.leaves) != 1:
        expected, hint = "an argument that is one tensor", "stack the tensors"
        raise arg_error(op, "argnum", expected, f"{len(inner.leaves)} tensors", hint, ArgumentError)
    return inner.leaves


# --- Batches --------------------------------------------------------------------------------------


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


@guarded
def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return the function that maps `func` over a dimension of its arguments.

    `func` is called once, with tensors that have the shape of one entry and stand for all entries.
    Each op then runs once for the whole batch. An op that knows no such way runs once for each
    entry, with a warning.

    Parameters
    ----------
    func : callable
        Of tensors, which may be nested; it returns tensors.
    in_dims : int, None or nested
        The dimension of each argument; None hands an argument on whole.
    out_dims : int, None or nested
        The place of the dimension in the results; None returns a result that is the same for all
        entries once.
    randomness : {"error", "different", "same"}
        "error" refuses random numbers, "different" draws other numbers for each entry, "same" gives
        all entries the same numbers.
    chunk_size : int, optional
        How many entries are computed at once, which bounds the memory.

    Raises
    ------
    ArgumentError
        Without a dimension to map over, or when sizes differ.
    TransformError
        When the function reads a value, as `item` and `if` do, or makes a shape of values.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.vmap(flow.dot)(flow.ones(2, 3), flow.ones(2, 3))
    tensor([3., 3.])
    """
    if randomness not in ("error", "different", "same"):
        expected, hint = "'error', 'different' or 'same'", "name one of these"
        raise arg_error("vmap", "randomness", expected, repr(randomness), hint, ArgumentError)
    _check_chunk_size("vmap", chunk_size)

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves: list[Any] = []
        build = _flatten(args, leaves)
        dims = _dims(tuple(in_dims) if isinstance(in_dims, list) else in_dims, args, "in_dims")
        named: list[Any] = []
        build_named = _flatten(kwargs, named)
        leaves, dims = leaves + named, dims + [0 if isinstance(x, Tensor) else None for x in named]
        size = _batch_size(leaves, dims)
        dims = [d if d is None or d >= 0 else d + x.ndim for x, d in zip(leaves, dims, strict=True)]

        def run(begin: int, end: int) -> tuple[_Build, list[Any], list[Any]]:
            with BatchLevel(end - begin, randomness) as level:
                given = []
                for x, d in zip(leaves, dims, strict=True):
                    if d is not None and (begin or end < size):
                        x = x.narrow(d, begin, end - begin)
                    given.append(x if d is None else enter_batch(x, level, d))
                picked = iter(given)
                value = of_user(func, reads=True)(*build(picked), **build_named(picked))
                outputs: list[Any] = []
                rebuild = _flatten(value, outputs)
                _check_tensors("vmap", outputs)
                places = _dims(out_dims, value, "out_dims")
                made = [_leave(y, level, d) for y, d in zip(outputs, places, strict=True)]
            return rebuild, made, places

        if chunk_size is None or chunk_size >= size:
            rebuild, made, _ = run(0, size)
            return rebuild(iter(made))
        parts = [run(begin, end) for begin, end in _chunks(size, chunk_size)]
        rebuild, _, places = parts[0]
        joined = [
            column[0] if d is None else cat(column, d if d >= 0 else d + column[0].ndim)
            for column, d in zip(
                zip(*[made for _, made, _ in parts], strict=True), places, strict=True
            )
        ]
        return rebuild(iter(joined))

    return call


def _batch_size(leaves: Sequence[Any], dims: Sequence[Any]) -> int:
    """Return the one size of the mapped dimensions."""
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
    return int(sizes.pop())


def _leave(y: Tensor, level: BatchLevel, dim: int | None) -> Tensor:
    """Take a result out of the level, with the batch at its place."""
    if dim is None:
        if level in levels_of(y):
            expected, hint = "a result that is the same for all entries", "name its dimension"
            raise arg_error("vmap", "out_dims", expected, "None", hint, ArgumentError)
        return y
    if not -y.ndim - 1 <= dim <= y.ndim:
        expected, hint = f"a place among {y.ndim + 1} dimensions", "count from 0"
        raise arg_error("vmap", "out_dims", expected, dim, hint, ArgumentError)
    return leave_batch(y, level, dim if dim >= 0 else dim + y.ndim + 1)


# --- Modules, and looking inside ------------------------------------------------------------------


@guarded
def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameters and the buffers of modules of one kind, stacked, for `vmap`."""
    states = [(dict(m.named_parameters()), dict(m.named_buffers())) for m in models]
    parameters, buffers = (
        {name: stack([state[i][name] for state in states]).detach() for name in states[0][i]}
        for i in (0, 1)
    )
    return {name: x.requires_grad_() for name, x in parameters.items()}, buffers


@guarded
def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let all batch norms of a module use the statistics of the batch alone; return the module.

    Inside `vmap`, running statistics, which all entries share, cannot be written.
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


@guarded
def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Return `func` itself: writes in place are followed by every transform here.

    PyTorch's removes writes from a trace; a Program records them as they are.
    """
    if remove not in ("mutations", "mutations_and_views"):
        expected, hint = "'mutations' or 'mutations_and_views'", "name one of these"
        raise arg_error("functionalize", "remove", expected, repr(remove), hint, ArgumentError)
    return func


@guarded
def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """Return the tensor of all entries, or the value at t = 0, that a transform's tensor hides.

    For looking, not for computing: the result has no history, and the transform does not see it.
    """
    while isinstance(tensor._data, LevelArray):
        tensor = tensor._data.parts[0]
        if not recurse:
            break
    return tensor
