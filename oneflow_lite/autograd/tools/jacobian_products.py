"""Products of vectors with the derivatives of a function, for `autograd.functional`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from oneflow_lite.autograd.engine.run import grad
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    GradientError,
    ShapeError,
    arg_error,
)
from oneflow_lite.functors.creation import eye, ones_like, zeros, zeros_like
from oneflow_lite.functors.joining import cat, stack
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor
from oneflow_lite.transforms.batching import BatchLevel, enter_batch, leave_batch
from oneflow_lite.transforms.forward import JetLevel, enter_jet, leave_jet, without_tangents

Tensors = tuple[Tensor, ...]
Gradients = tuple[Tensor | None, ...]  # None where nothing flows
Vectors = Sequence[Tensor | None] | None


class JacobianProducts:
    """A call of the user's function, and products of vectors with the derivatives of its outputs.

    Its inputs are cut off from the graph. With `create_graph` they stay joined to it, but are new
    tensors: a tensor that the function uses beside its arguments, even the same tensor, counts as
    a constant.
    """

    outputs: Tensors

    def __init__(self, name: str, inputs: Any, create_graph: bool, strict: bool) -> None:
        self.name = name
        self.create_graph = create_graph
        self.strict = strict
        self.several_inputs = isinstance(inputs, tuple)
        self.inputs = tuple(
            x.view_as(x) if create_graph and x.requires_grad else x._cut().requires_grad_()
            for x in self._tensors(inputs, "inputs", "a Tensor or a tuple of Tensors")
        )

    def run(self, func: Callable[..., Any], given: Tensors | None = None) -> None:
        """Call the function, of the inputs unless others are given."""
        result = func(*(self.inputs if given is None else given))
        self.several_outputs = isinstance(result, tuple)
        expected = "a function that returns a Tensor or a tuple of Tensors"
        self.outputs = self._tensors(result, "func", expected)
        for i, output in enumerate(self.outputs):
            if self.strict and not output.requires_grad:
                raise self._independent_error(f"output {i} of the function", "the inputs")

    def _tensors(self, value: Any, argument: str, expected: str) -> Tensors:
        items = value if isinstance(value, tuple) else (value,)
        for item in items or (None,):
            if not isinstance(item, Tensor):
                raise arg_error(
                    self.name,
                    argument,
                    expected=expected,
                    got=type(item).__name__ if items else "an empty tuple",
                    hint="wrap numbers with flow.tensor(...), and put several tensors in a tuple",
                    kind=ArgumentTypeError,
                )
        return items

    def _independent_error(self, what: str, of: str) -> GradientError:
        return GradientError(
            f"{self.name}(): {what} does not depend on {of}, which strict=True refuses; leave it "
            "out to take the derivative as zero"
        )

    def vector(self, v: Any, name: str) -> Vectors:
        """Check v against the inputs or the outputs; None stands for a single 1."""
        like: Tensors = getattr(self, name)
        shapes = [x.shape for x in like]
        if v is None and len(like) == 1 and like[0].numel() == 1:
            return None
        expected = f"tensors of the shapes of the {name}, {shapes}"
        hint = "pass one vector for each"
        if v is None:
            hint += ", or none for a single tensor of one element"
            raise arg_error(
                self.name, "v", expected=expected, got=None, hint=hint, kind=ArgumentError
            )
        vectors = self._tensors(v, "v", "a Tensor or a tuple of Tensors")
        got = [x.shape for x in vectors]
        if got != shapes:
            raise arg_error(self.name, "v", expected=expected, got=got, hint=hint, kind=ShapeError)
        return [
            x if x.dtype == y.dtype or x.is_complex() or y.is_complex() else x.to(y.dtype)
            for x, y in zip(vectors, like, strict=True)
        ]

    # Derivatives: None where nothing flows

    def _grad(
        self,
        values: Gradients,
        wanted: Sequence[Tensor],
        vectors: Vectors,
        create_graph: bool,
        is_grads_batched: bool = False,
    ) -> Gradients:
        """Call `grad` for the values that have a vector, and retain the graph."""
        given = [None] * len(values) if vectors is None else vectors
        kept = [
            (y, v)
            for y, v in zip(values, given, strict=True)
            if y is not None and y.requires_grad and (v is not None or vectors is None)
        ]
        if not kept:
            return (None,) * len(wanted)
        return grad(
            [y for y, _ in kept],
            wanted,
            [v for _, v in kept],
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
            is_grads_batched=is_grads_batched,
        )

    def gradient(self) -> Gradients:
        """Return the recorded gradient of a scalar function."""
        output = self.outputs[0]
        if self.several_outputs or output.numel() != 1:
            raise arg_error(
                self.name,
                "func",
                expected="a function that returns a single Tensor of one element",
                got="a tuple" if self.several_outputs else f"one that returns shape {output.shape}",
                hint="reduce the result with sum()",
                kind=ArgumentError,
            )
        in_grads = self._grad(self.outputs, self.inputs, None, create_graph=True)
        for i, g in enumerate(in_grads):
            if self.strict and (g is None or not g.requires_grad):
                raise self._independent_error(
                    f"the gradient with respect to input {i}", "the inputs"
                )
        return in_grads

    def pull(self, values: Gradients, vectors: Vectors) -> Gradients:
        """Return `v J`, where J is the Jacobian of some values of the graph."""
        in_grads = self._grad(values, self.inputs, vectors, self.create_graph)
        for i, g in enumerate(in_grads):
            if self.strict and (g is None or (self.create_graph and not g.requires_grad)):
                what = "the result" if g is None else "the derivative (with create_graph=True)"
                raise self._independent_error(what, f"input {i}")
        return in_grads

    def pusher(self, values: Gradients) -> Callable[[Vectors], Gradients]:
        """Return the function from v to `J v`: the derivative of u -> `u J`.

        `u J` is linear in u, so any u without inf and nan will do; zeros here.
        """
        live = tuple(y if y is not None and y.requires_grad else None for y in values)
        us = [None if y is None else zeros_like(y, requires_grad=True) for y in live]
        pulled = self._grad(live, self.inputs, us, create_graph=True)
        for i, g in enumerate(pulled):
            if self.strict and g is None:
                raise self._independent_error("the result", f"input {i}")

        def push(vectors: Vectors) -> Gradients:
            wanted = [u for u in us if u is not None]
            grads = iter(self._grad(pulled, wanted, vectors, self.create_graph))
            pushed = tuple(None if u is None else next(grads) for u in us)
            for i, g in enumerate(pushed):
                if self.strict and (g is None or (self.create_graph and not g.requires_grad)):
                    raise self._independent_error(f"derivative {i}", "the inputs")
            return pushed

        return push

    def push(self, func: Callable[..., Any], vectors: Vectors, hessian: bool = False) -> Gradients:
        """Call the function in forward mode; return `J v`, or `H v`."""
        if vectors is None:
            vectors = [ones_like(x) for x in self.inputs]
        with JetLevel(1, self.name) as level:
            duals = self._duals(vectors, level)
            if hessian:
                inner = JacobianProducts(self.name, duals, create_graph=True, strict=False)
                inner.run(func)
                values = with_zeros(inner.gradient(), inner.inputs)
                self.several_outputs, self.outputs = inner.several_outputs, inner.outputs
            else:
                self.run(func, duals)
                values = self.outputs
            products = tuple([leave_jet(y, level, 1) for y in values])
            self.outputs = tuple([_value(y, level) for y in self.outputs])
        return products

    def _duals(self, vectors: Sequence[Any], level: JetLevel) -> Tensors:
        """Return the inputs with tangents."""
        inputs = self.inputs if self.create_graph else [x._cut() for x in self.inputs]
        duals = []
        for j, (x, v) in enumerate(zip(inputs, vectors, strict=True)):
            if v.dtype != x.dtype:
                raise arg_error(
                    self.name,
                    "v",
                    expected=f"dtype {x.dtype}, that of input {j}",
                    got=v.dtype,
                    hint="convert it first",
                    kind=GradientError,
                )
            duals.append(enter_jet((x, v), level))
        return tuple(duals)

    def forward_columns(self, func: Callable[..., Any]) -> list[list[Tensor]]:
        """Return the Jacobian for each output and input: one pass forward with all directions."""
        sizes = [x.numel() for x in self.inputs]
        # A function draws its random numbers once, not once for each direction.
        with BatchLevel(sum(sizes), "same", self.name) as batch, JetLevel(1, self.name) as level:
            units = []
            for j, x in enumerate(self.inputs):
                one = _basis(x)
                around = [
                    zeros((n, *x.shape), dtype=x.dtype, device=x.device)
                    for n in (sum(sizes[:j]), sum(sizes[j + 1 :]))
                ]
                units.append(enter_batch(cat([around[0], one, around[1]], 0), batch, 0))
            self.run(func, self._duals(units, level))
            tangents = [leave_batch(leave_jet(y, level, 1), batch, 0) for y in self.outputs]
            self.outputs = tuple([_value(y, level) for y in self.outputs])
        blocks: list[list[Tensor]] = []
        for y, tangent in zip(self.outputs, tangents, strict=True):
            places = tangent.permute(*range(1, tangent.ndim), 0)
            parts = places.split(sizes, -1)
            row = zip(parts, self.inputs, strict=True)
            blocks.append([part.reshape(y.shape + x.shape) for part, x in row])
        return blocks

    def rows(self, output: Tensor, vectorize: bool) -> list[Tensor]:
        """Return the Jacobian of an output for each input, one backward pass per row."""
        if output.is_complex() and not vectorize:
            raise GradientError(
                f"{self.name}(): argument 'func': expected real outputs, got {output.dtype}; pass "
                "strategy='forward-mode' for the derivative of a holomorphic function, "
                "vectorize=True for its conjugate, or take a real result such as abs()"
            )
        if not output.numel():
            stacks: Gradients = (None,) * len(self.inputs)
        elif vectorize:
            units = [_basis(output)]
            stacks = self._grad((output,), self.inputs, units, self.create_graph, True)
        else:
            rows = [self.pull((output,), [unit]) for unit in _units(output)]
            stacks = tuple(map(_stacked, zip(*rows, strict=True), self.inputs))
        return [_block(s, output, x, x) for s, x in zip(stacks, self.inputs, strict=True)]

    def columns(self) -> list[list[Tensor]]:
        """Return the Jacobian for each output and input, one backward pass per column."""
        push = self.pusher(self.outputs)
        blocks: list[list[Tensor]] = [[] for _ in self.outputs]
        for j, x in enumerate(self.inputs):
            units = [None] * len(self.inputs)
            columns = [push([*units[:j], unit, *units[j + 1 :]]) for unit in _units(x)]
            for i, y in enumerate(self.outputs):
                joined = _stacked([c[i] for c in columns], y, dim=-1) if columns else None
                blocks[i].append(_block(joined, y, x, y))
        return blocks

    # Results

    def like_outputs(self, values: Iterable[Any]) -> Any:
        """Nest values, one for each output, as the function nests its outputs."""
        return self._nested(values, self.several_outputs)

    def like_inputs(self, values: Iterable[Any]) -> Any:
        """Nest values, one for each input, as the caller nests the inputs."""
        return self._nested(values, self.several_inputs)

    def _nested(self, values: Iterable[Any], several: bool) -> Any:
        detach = not self.create_graph
        items = tuple(v._cut() if detach and isinstance(v, Tensor) else v for v in values)
        return items if several else items[0]


def with_zeros(grads: Gradients, like: Tensors) -> Tensors:
    """Put zeros where no gradient flows."""
    return tuple(zeros_like(x) if g is None else g for g, x in zip(grads, like, strict=True))


def _stacked(grads: Sequence[Tensor | None], like: Tensor, dim: int = 0) -> Tensor:
    return stack([zeros_like(like) if g is None else g for g in grads], dim)


def _block(values: Tensor | None, y: Tensor, x: Tensor, like: Tensor) -> Tensor:
    """Return the Jacobian of y by x from its rows or columns, with the dtype of `like`."""
    shape = y.shape + x.shape
    if values is not None:
        return values.reshape(shape)
    made: Tensor = zeros(shape, dtype=like.dtype, device=like.device)
    return made


def _value(y: Tensor, level: JetLevel) -> Tensor:
    """Return the value of a dual tensor, without a history that only its tangent has."""
    value = leave_jet(y, level, 0)
    if value.requires_grad and not without_tangents(value, level):
        return value._cut()
    return value


def _basis(x: Tensor) -> Tensor:
    """Return a stack of the tensors like x that are 1 in one place and 0 elsewhere."""
    n = x.numel()
    made: Tensor = eye(n, dtype=x.dtype, device=x.device).reshape((n, *x.shape))
    return made


def _units(x: Tensor) -> Iterator[Tensor]:
    """Yield the tensors like x that are 1 in one place and 0 elsewhere."""
    for k in range(x.numel()):
        unit = zeros(x.numel(), dtype=x.dtype, device=x.device)
        with no_grad():
            unit[k] = 1
        yield unit.reshape(x.shape)
