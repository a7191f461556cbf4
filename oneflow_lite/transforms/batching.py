"""Batching: `vmap` runs an op once for all entries of a batch.

A `BatchedArray` has the shape of one entry; its part has the batch as first dimension. The
declaration of an op says the way of a batch through it:

- pointwise ops: the shapes are aligned from the right, and the batch stays in front;
- ops that name dimensions, views, reductions, and SBP rules that begin with "...": the batch stands
  in front, and the attributes that name dimensions or shapes are moved by one;
- other SBP rules: a dimension along which ranks may split the op takes the batch in, and gives it
  back;
- ops whose kernel is registered with `batch=`: a name of one of these ways, or a function
  `rule(call, *values, **attrs)` on arrays with the batch in front, see `Call`.

Every other op is called once for each entry, with a warning.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import ArraySpec
from oneflow_lite.arrays.bfloat16_arrays import adopted
from oneflow_lite.arrays.device import CPU, Device
from oneflow_lite.errors import TransformError
from oneflow_lite.functors.random import get_rng_state, set_rng_state
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.interpreter.explain import explain
from oneflow_lite.interpreter.stack import EagerInterpreter, count_writes, current_interpreter
from oneflow_lite.kernels.batches import merged, parted
from oneflow_lite.ops.op_expr import OpExpr, op_expr
from oneflow_lite.ops.registry import KERNELS
from oneflow_lite.ops.sbp_rules import rule_of, ways_of
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.mode import local as thread
from oneflow_lite.tensors.storage import NO_GRAD
from oneflow_lite.tensors.tensor import Tensor, make_tensor
from oneflow_lite.tensors.views import link
from oneflow_lite.transforms.levels import (
    Level,
    LevelArray,
    OfBFloat16,
    TransformInterpreter,
    active,
    between,
    first_entry,
    overlap,
    wrap_output,
)

ndarray = np.ndarray
_new = Tensor.__new__
Attrs = dict[str, Any]
Rule = Callable[..., Any]
_warned: set[str] = set()


class BatchedArray(LevelArray):
    """One entry of a batch, as the function sees it."""

    @property
    def constant(self) -> LevelArray:
        """The array without tangents of levels below."""
        (value,) = self.parts
        inner = value._data
        if not isinstance(inner, LevelArray) or inner.constant is inner:
            return self
        return self.level.array(make_tensor(inner.constant))  # type: ignore[no-any-return]


class PendingArray(BatchedArray):
    """A batch of gradients that is computed when somebody reads it.

    Most gradients of what all entries share are summed over the entries at once, and one product
    then gives the sum without the terms.

    Attributes
    ----------
    compute, compute_sum : callable
        Return the value with the batch in front, and its sum over the batch.
    """

    compute: Callable[[], Tensor]
    compute_sum: Callable[[], Tensor]
    _value: Tensor | None = None

    @property
    def parts(self) -> tuple[Any, ...]:  # type: ignore[override]
        """The value with the batch in front."""
        if self._value is None:
            self._value = self.compute()
        return (self._value,)


class _BatchedBFloat16(OfBFloat16, BatchedArray):
    pass


BatchedArray.of_bfloat16 = _BatchedBFloat16


class BatchLevel(Level):
    """A level of `vmap`.

    Attributes
    ----------
    size : int
        The number of entries.
    randomness : {"error", "same", "different"}
    """

    def __init__(self, size: int, randomness: str = "error", name: str = "vmap") -> None:
        super().__init__(name)
        self.size, self.randomness = size, randomness
        self.told = f"batch of {size}"

    def draws(self, op: OpExpr) -> bool:
        """Return whether an op draws, or makes an array for a random op to write."""
        if op.op_type_name == "empty":
            return self.randomness == "different"
        return _is_random(op)

    def array(self, value: Tensor) -> BatchedArray:
        """Return the array of one entry for a value with the batch in front."""
        made: BatchedArray = first_entry(value._data, BatchedArray)
        made.hold(self, (value,))
        return made

    def cover(self, x: Tensor) -> Tensor:
        """Return a copy for each entry."""
        data = x._data
        if isinstance(data, LevelArray) and data.level.number > self.number:
            parts = [part if part is None else self.cover(part) for part in data.parts]
            return make_tensor(data.level.array_of(parts))
        below = _below()
        return make_tensor(self.array(below.call("clone", _spread(below, self.size, x))))

    def array_of(self, parts: Sequence[Any]) -> LevelArray:
        """Return the array of one entry for these parts."""
        return self.array(*parts)

    def settle(self, grad: Tensor) -> Tensor:
        """Return the sum over the entries."""
        made: Tensor = _dispatch("sum_batch", grad, level=self, crossing=self.crossing())
        return made

    def run(
        self, below: TransformInterpreter, op: OpExpr, inputs: tuple[Any, ...], attrs: Attrs
    ) -> Any:
        """Run an op on all entries."""
        if self.ended and thread.task is None:
            raise TransformError(
                f"{op.op_type_name}(): a tensor of a vmap that has returned is used outside of it; "
                "return the tensor from the mapped function instead of keeping it"
            )
        rule = rule_for(op)
        if type(below.inner) is EagerInterpreter and rule in _QUICK:
            made = self._quick(rule, op, inputs, attrs)
            if made is not None:
                return made
        schema = op.schema
        call = Call(self, below, op, inputs, attrs)
        random = _is_random(op) or not inputs
        if random and self.randomness == "error":
            raise TransformError(
                f"vmap(): {op.op_type_name} draws random numbers; pass randomness='different' "
                "for other numbers in each call, or 'same'"
            )
        for i in schema.written if any(call.batched) or self.randomness != "same" else ():
            if inputs[i] is not None and not call.batched[i]:
                raise TransformError(
                    f"{op.op_type_name}(): inside vmap, a tensor that is the same for all entries "
                    "was to be written with values that differ by entry; make it by zeros_like, "
                    "new_zeros or clone() of a mapped tensor, or use the out-of-place op"
                )
        if random:
            limit, active.limit = active.limit, self.number
            try:
                return self._draw(call)
            finally:
                active.limit = limit
        return self._outputs(call, rule(call))

    def _quick(self, rule: Rule, op: OpExpr, inputs: tuple[Any, ...], attrs: Attrs) -> Any:
        """Call the kernel at once, for NumPy's arrays of this level alone; None for all others.

        It does what the rule does, without a call for each step: most ops are of this kind.
        """
        if op.run_in_eager is None:
            op.on_cpu()
        given, run = attrs, op.run_on_cpu
        if run is None:  # it writes, or draws random numbers
            return None
        arrays, ndim, whole = [], -1, True
        for x in inputs:
            data = None if x is None else x._data
            if isinstance(data, BatchedArray):
                if data.level is not self or (ndim >= 0 and data.ndim != ndim):
                    return None
                ndim = data.ndim
                data = data.parts[0]._data
            else:
                whole = False
            if type(data) is not ndarray:
                return None
            arrays.append(data)
        if not whole and not _fits(rule, op, inputs, ndim):
            return None
        if rule is _front:
            if len(inputs) > 1 or (not ndim and _DIMS & attrs.keys()):
                return None
            attrs = _more(attrs, self.size, ndim)
        try:
            out = run(*arrays, **attrs)
        except Exception as error:
            raise explain(op, inputs, error, attrs) from error.__cause__
        if type(out) is tuple:
            return tuple([self._wrapped(each) for each in out])
        y = self._wrapped(out)
        if op.aliases and (out.base is arrays[0] or overlap(out, arrays[0])):
            state = thread.state
            link(op, inputs[0], y, given, None if state.grad_enabled else NO_GRAD)
        return y

    def _wrapped(self, out: Any) -> Tensor:
        """Return a tensor of one entry for what a kernel made."""
        value = _new(Tensor)
        if type(out) is not ndarray or out.dtype.kind == "V":
            out = adopted(np.asarray(out))
        value._data = out
        array: BatchedArray = first_entry(out, BatchedArray)
        array.level, array.parts, array.levels = self, (value,), self.alone
        y = _new(Tensor)
        y._data = array
        if thread.state.inference:
            y._inference = True
        return y

    def _outputs(self, call: Call, made: Any) -> Any:
        """Return the outputs of a call, for the values that its rule made."""
        if call.op.schema.written:
            return self._written(call, made)
        if type(made) is tuple:
            return tuple([self._output(call, y, True) for y in made])
        return self._output(call, made, False)

    def _output(self, call: Call, y: Tensor, several: bool) -> Tensor:
        if isinstance(y._data, PendingArray) and y._data.level is self:
            return y
        return wrap_output(call.op, call.inputs, self.array(y), call.attrs, several)

    def _written(self, call: Call, made: Any) -> Any:
        """Return the inputs that were written, and wrap other outputs."""
        count_writes(call.op, call.inputs)
        written = {id(call.values[i]): call.inputs[i] for i in call.op.schema.written}
        outputs = made if type(made) is tuple else (made,)
        results = [
            written[id(y)] if id(y) in written else self._output(call, y, True) for y in outputs
        ]
        return tuple(results) if type(made) is tuple else results[0]

    def device_of(self, call: Call) -> Device:
        """Return the device of the inputs of a call."""
        found: Device = next(x.device for x in call.values if x is not None)
        return found

    # Random numbers

    def _draw(self, call: Call) -> Any:
        if self.randomness == "same":
            return self._draw_same(call)
        if not call.inputs:
            made = call.below.apply(call.op, (), _more(call.attrs, self.size))
            if "shape" not in call.attrs:  # a permutation of n
                rows = [
                    call.below.apply(call.op, (), dict(call.attrs)) for _ in range(self.size - 1)
                ]
                made = call.below.call("stack", made, *rows, dim=0)
        else:
            for i, own in enumerate(call.batched):  # other numbers for each entry
                if not own and call.values[i] is not None:
                    call.values[i], call.batched[i] = call.front(i), True
            made = rule_for(call.op)(call)
        return self._outputs(call, made)

    def _draw_same(self, call: Call) -> Any:
        """Let all entries draw the same numbers."""
        from_generator = call.attrs.get("generator")
        if not any(call.batched):
            return call.below.apply(call.op, call.inputs, call.attrs)
        if call.op.op_type_name == "dropout_mask":  # it reads no value
            return call.below.apply(call.op, tuple(call.entry(0)), call.attrs)
        state = _state_of(from_generator)

        def again() -> None:
            _set_state(from_generator, state)

        return self._outputs(call, _looped(call, warn=False, before=again))


def _is_random(op: OpExpr) -> bool:
    # check_values is marked as random, but draws nothing.
    return op.schema.random and op.op_type_name != "check_values"


def _state_of(generator: Any) -> Any:
    return get_rng_state() if generator is None else generator.get_state()


def _set_state(generator: Any, state: Any) -> None:
    if generator is None:
        set_rng_state(state)
    else:
        generator.set_state(state)


def _below() -> TransformInterpreter:
    place: Any = current_interpreter()
    while not isinstance(place, TransformInterpreter):
        place = place.inner
    return place


def _dispatch(name: str, *inputs: Any, **attrs: Any) -> Any:
    return dispatch(op_expr(name), inputs, attrs)


class Ops:
    """`F.sum(x, dim=(0,), keepdim=False)` runs an op on parts, at the level below."""

    def __init__(self, below: TransformInterpreter) -> None:
        self._below = below

    def __getattr__(self, name: str) -> Any:
        return functools.partial(self._below.call, name)


class Call:
    """An op on a batch, as its rule sees it.

    Attributes
    ----------
    size : int
        The number of entries.
    values : list of Tensor or None
        The inputs: those that differ by entry with the batch in front, the others as they are.
    batched : list of bool
        Which inputs differ by entry.
    F : Ops
        The ops to compute with.
    """

    __slots__ = ("attrs", "batched", "below", "inputs", "level", "op", "size", "values")

    def __init__(
        self,
        level: BatchLevel,
        below: TransformInterpreter,
        op: OpExpr,
        inputs: tuple[Any, ...],
        attrs: Attrs,
    ) -> None:
        self.level, self.below, self.op, self.inputs, self.attrs = level, below, op, inputs, attrs
        self.size = level.size
        self.values: list[Any] = []
        self.batched: list[bool] = []
        for x in inputs:
            data: Any = None if x is None else x._data
            own = isinstance(data, BatchedArray) and data.level is level
            self.values.append(data.parts[0] if own else x)
            self.batched.append(own)

    @property
    def F(self) -> Ops:
        """The ops to compute with."""
        return Ops(self.below)

    def shape(self, i: int) -> tuple[int, ...]:
        """Return the shape of one entry of an input."""
        return self.inputs[i]._data.shape  # type: ignore[no-any-return]

    def ndim(self, i: int) -> int:
        """Return the number of dimensions of one entry of an input."""
        return self.inputs[i]._data.ndim  # type: ignore[no-any-return]

    def front(self, i: int, ndim: int = 0) -> Any:
        """Return an input with the batch in front, of at least so many dimensions an entry."""
        value = self.values[i]
        if value is None:
            return None
        if not self.batched[i]:
            value = _spread(self.below, self.size, value)
        return _padded(self.below, value, ndim)

    def run(self, *values: Any, **attrs: Any) -> Any:
        """Run the op itself on other values."""
        return self.below.apply(self.op, values, attrs)

    def constant(self, array: Any) -> Tensor:
        """Return a tensor of numbers that are the same for all entries."""
        device, array = self.level.device_of(self), np.asarray(array)
        made = make_tensor(array if device is CPU else device.put(array))
        self.below.constant(made)
        return made

    def sums_later(self) -> bool:
        """Return whether gradients of what all entries share are about to be summed over them."""
        task = thread.task
        return self.level.ended and task is not None and self.level not in task.kept

    def pending(
        self,
        shape: tuple[int, ...],
        compute: Callable[[], Tensor],
        compute_sum: Callable[[], Tensor],
    ) -> Tensor:
        """Return a result for an entry's shape that is computed when it is read, or summed."""
        like = next(x for x in self.values if x is not None)._data
        made = ArraySpec(tuple(shape), np.dtype(like.dtype)).phantom().view(PendingArray)
        made.level, made.levels = self.level, self.level.alone
        for x in self.values:
            if x is not None and isinstance(x._data, LevelArray):
                made.levels = made.levels | x._data.levels
        made.is_symbolic = any([getattr(x._data, "is_symbolic", False) for x in self.values])
        made.device_of_parts = self.level.device_of(self)
        made.compute, made.compute_sum = compute, compute_sum
        return make_tensor(made)

    def refuse(self) -> Any:
        """Raise: the shape of the result depends on values."""
        return _refused(self)

    def moved(self, op: OpExpr, attrs: Attrs) -> Attrs:
        """Return the attributes of another op for a batch in front."""
        if op.op_type_name == "permute":
            dims = attrs["dims"]
            return {"dims": (0, *[d % len(dims) + 1 for d in dims])}
        return _more(attrs, self.size)

    def entry(self, index: int) -> list[Any]:
        """Return the inputs of one entry."""
        return [
            self.below.call("select", x, dim=0, index=index) if own else x
            for x, own in zip(self.values, self.batched, strict=True)
        ]


def _spread(below: TransformInterpreter, size: int, x: Tensor) -> Tensor:
    """Return a view with a batch in front in which all entries are the same."""
    return below.call("expand", x, shape=(size, *x._data.shape))  # type: ignore[no-any-return]


def _padded(below: TransformInterpreter, x: Tensor, ndim: int) -> Tensor:
    """Return a view whose entries have dimensions of size 1 in front, `ndim` in all."""
    shape = x._data.shape
    missing = ndim + 1 - len(shape)
    if missing <= 0:
        return x
    shape = (shape[0], *(1,) * missing, *shape[1:])
    return below.call("reshape", x, shape=shape)  # type: ignore[no-any-return]


# --- The ways -------------------------------------------------------------------------------------

_BROADCASTING = frozenset(("broadcast", "broadcast_to_last", "broadcast_to_bool", "rule"))
_rules: dict[str, Rule] = {}
KERNELS.on_change.append(lambda name: _rules.pop(name, None) and None)


def rule_for(op: OpExpr) -> Rule:
    """Return how an op goes over a batch: a function of the call."""
    rule = _rules.get(op.op_type_name)
    if rule is None:
        rule = _rules[op.op_type_name] = _derived(op)
    return rule


def _derived(op: OpExpr) -> Rule:
    schema = op.schema
    declared = schema.batch
    if callable(declared):
        return functools.partial(_by_rule, declared)
    if declared == "loop" and not KERNELS.get(op.op_type_name).is_library:
        return functools.partial(_looped, warn=False)  # the user has said so
    if declared is not None:
        return _WAYS[declared]
    if schema.dynamic_shape is True:
        return _refused
    if schema.effect:
        return _refused
    sbp, _ = rule_of(op)
    names_dims = bool(_DIMS & schema.attrs.keys())
    if sbp == "elementwise" and not names_dims:
        return _pointwise if _broadcasts(schema) else _pointwise_expanded
    if schema.view_of is not None and not KERNELS.get(op.op_type_name).is_library:
        return _looped if sbp in (None, "whole") else _folded  # a view of any kind
    of_view = getattr(getattr(sbp, "func", None), "__name__", "") == "_view_grad"
    if schema.view_of is not None or of_view or sbp in ("elementwise", "reduce", "mean"):
        return _front
    if isinstance(sbp, str) and sbp != "whole":
        inputs, _, _ = sbp.partition("->")
        if all(text.startswith("...") for text in inputs.split(",")):
            return _front_dots
        return _folded
    return _looped if sbp in (None, "whole") else _folded


def _broadcasts(schema: Any) -> bool:
    name = getattr(schema.infer, "__name__", "")
    return len(schema.inputs) == 1 or (name in _BROADCASTING and schema.variadic is None)


def _by_rule(rule: Rule, call: Call) -> Any:
    if not call.size and not call.op.schema.random and call.op.schema.view_of is None:
        return _looped(call, warn=False)  # rules divide by the size
    made = rule(call, *call.values, **call.attrs)
    return _looped(call) if made is NotImplemented else made


def _pointwise(call: Call) -> Any:
    """Align the shapes from the right; kernels broadcast the rest."""
    inputs, values = call.inputs, call.values
    if len(inputs) > 1:
        ndim = max([x._data.ndim for x in inputs if x is not None])
        for i, own in enumerate(call.batched):
            if own and inputs[i]._data.ndim < ndim:
                values[i] = _padded(call.below, values[i], ndim)
    return call.below.apply(call.op, tuple(values), call.attrs)


def _pointwise_expanded(call: Call) -> Any:
    """As `_pointwise`, for kernels that do not broadcast."""
    if not all(call.batched):
        for i, own in enumerate(call.batched):
            if not own and call.values[i] is not None:
                call.values[i] = _spread(call.below, call.size, call.values[i])
                call.batched[i] = True
    return _pointwise(call)


_DIM_NAMES = ("dim", "dims", "dim0", "dim1", "dim2", "dimension")
_DIMS = frozenset(_DIM_NAMES)


def _moved(dim: Any) -> Any:
    """Return the dimension, or dimensions, of a batch that belong to those of an entry."""
    if type(dim) is int:
        return dim + 1 if dim >= 0 else dim
    return tuple([d + 1 if d >= 0 else d for d in dim])


def _more(attrs: Attrs, size: int, ndim: int = 0) -> Attrs:
    """Return the attributes for a batch in front of the dimensions."""
    given = dict(attrs)
    for name, value in attrs.items():
        if name in _DIMS:
            given[name] = tuple(range(1, ndim + 1)) if value is None else _moved(value)
        elif name == "shape":
            given[name] = (size, *value)
        elif name == "sizes":
            given[name] = (1, *value)
        elif name == "index" and type(value) is tuple:
            given[name] = (slice(None), *value)
    return given


def _front(call: Call, names: bool = False) -> Any:
    """Run the op with the batch in front, and attributes moved by one.

    `names`: the attributes name places among the dimensions of the result, as those of stack do.
    """
    values = [call.front(i) for i in range(len(call.values))]
    first = next((i for i, x in enumerate(values) if x is not None), 0)
    ndim = call.ndim(first)
    attrs = call.attrs
    if len(values) > 1 and rule_of(call.op)[0] == "elementwise":
        ndim = max([call.ndim(i) for i, x in enumerate(values) if x is not None])
        values = [x if x is None else _padded(call.below, x, ndim) for x in values]
    if not ndim and not names and _DIMS & attrs.keys() and call.op.schema.view_of is None:
        return _of_numbers(call, values)
    return call.below.apply(call.op, tuple(values), _more(attrs, call.size, ndim))


def _of_numbers(call: Call, values: list[Any]) -> Any:
    """Run an op that names a dimension on 0-d entries, which count as vectors of one number."""
    below = call.below
    values = [x if x is None or x._data.ndim > 1 else _padded(below, x, 1) for x in values]
    attrs = dict(call.attrs)
    for name in _DIMS & attrs.keys():
        attrs[name] = (1,) if attrs[name] is None or type(attrs[name]) is tuple else 1
    if "shape" in attrs:
        attrs["shape"] = (call.size, *(attrs["shape"] or (1,)))
    made = below.apply(call.op, tuple(values), attrs)

    def flat(y: Tensor) -> Tensor:
        if y._data.ndim == 1:
            return y
        return below.call("reshape", y, shape=(call.size,))  # type: ignore[no-any-return]

    return tuple(map(flat, made)) if type(made) is tuple else flat(made)


def _front_dots(call: Call) -> Any:
    """Run an op whose leading dimensions broadcast, as those of matmul."""
    rule, terms = rule_of(call.op)
    texts = rule.partition("->")[0].split(",")  # type: ignore[union-attr]
    free = [
        0 if x is None else x._data.ndim - (len(text) - 3)
        for x, text in zip(call.inputs, texts, strict=True)
    ]
    most = max(free)
    if len(terms) < 2:  # matmul broadcasts, others may not
        for i, own in enumerate(call.batched):
            if not own and call.values[i] is not None:
                call.values[i], call.batched[i] = call.front(i), True
    for i, own in enumerate(call.batched):
        if own and free[i] < most:
            call.values[i] = _padded(call.below, call.values[i], call.ndim(i) + most - free[i])
    attrs = _more(call.attrs, call.size, call.ndim(0))
    return call.below.apply(call.op, tuple(call.values), attrs)


def _folded(call: Call) -> Any:
    """Let a dimension that the op may be split along take the batch in."""
    shapes = [None if x is None else x._data.shape for x in call.inputs]
    if 0 in (call.size, *[n for s in shapes if s is not None for n in s]):
        return _looped(call, warn=False)
    for way in ways_of(call.op, shapes, call.attrs) or ():
        if way.run is None and not way.mean and all(isinstance(j, int) for j in way.outs):
            fits = [
                isinstance(d, int) or not own for d, own in zip(way.ins, call.batched, strict=True)
            ]
            if all(fits) and any(
                own and isinstance(d, int) for d, own in zip(way.ins, call.batched, strict=True)
            ):
                made = _fold(call, way)
                if made is not None:
                    return made
    return _looped(call)


def _fold(call: Call, way: Any) -> Any:
    size, below = call.size, call.below
    values = []
    for i, dim in enumerate(way.ins):
        if call.values[i] is None or not isinstance(dim, int):
            values.append(call.values[i])
        else:
            values.append(merged(call, call.front(i), dim))
    attrs = call.attrs
    if way.fit is not None:
        attrs = way.fit(attrs, lambda n: n * size)
    elif "shape" in attrs:
        return None
    made = below.apply(call.op, tuple(values), attrs)
    several = type(made) is tuple
    outs = made if several else (made,)
    dims = way.outs if len(way.outs) == len(outs) else way.outs * len(outs)
    back = [parted(call, y, dim) for y, dim in zip(outs, dims, strict=True)]
    return tuple(back) if several else back[0]


def _refused(call: Call) -> Any:
    name = call.op.op_type_name
    if name.endswith("_update"):
        raise TransformError(
            f"{name}(): an optimizer steps outside of vmap; return the gradients, and give the "
            "optimizer the stacked parameters"
        )
    if call.op.schema.effect:
        raise TransformError(
            f"{name}(): inside vmap nothing is sent to other processes; call it outside"
        )
    raise TransformError(
        f"{name}(): the shape of its result depends on the values, which differ by entry of the "
        "batch; inside vmap keep the shape, as with where() or masks, or call the op outside"
    )


def _looped(call: Call, warn: bool = True, before: Callable[[], None] | None = None) -> Any:
    """Run the op once for each entry."""
    op, size = call.op, call.size
    if warn and op.op_type_name not in _warned and not op.schema.random:
        _warned.add(op.op_type_name)
        warn_caller(
            f"vmap(): {op.op_type_name} has no rule for a batch, so it is called once for each "
            "entry; see register_op(batch=...)"
        )
    if not size:
        return _empty(call)
    entries = []
    for index in range(size):
        if before is not None:
            before()
        entries.append(call.below.apply(op, tuple(call.entry(index)), call.attrs))
    if op.schema.written:
        (i, *rest) = op.schema.written
        return call.values[i] if not rest else tuple([call.values[k] for k in op.schema.written])
    if type(entries[0]) is tuple:
        return tuple([_stacked(call, column) for column in zip(*entries, strict=True)])
    return _stacked(call, entries)


@contextlib.contextmanager
def loops_without_warning() -> Iterator[None]:
    """Let ops be called for each entry, and leave the warning to a later call."""
    told = set(_warned)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"vmap\(\): .* has no rule for a batch")
        yield
    _warned.intersection_update(told)


def _stacked(call: Call, entries: Sequence[Tensor]) -> Any:
    if len({y._data.shape for y in entries}) > 1:
        return _refused(call)
    return call.below.call("stack", *entries, dim=0)


def _empty(call: Call) -> Any:
    """Return the results for a batch without entries, with the shapes of one entry of zeros."""

    def zeros(shape: tuple[int, ...], like: Tensor) -> Any:
        dtype, device = like._data.dtype, like.device
        return call.below.call("full", shape=shape, value=0, dtype=dtype, device=device)

    one = [
        zeros(call.shape(i), x) if own else x
        for i, (x, own) in enumerate(zip(call.values, call.batched, strict=True))
    ]
    if call.op.schema.written:
        return call.values[call.op.schema.written[0]]
    with np.errstate(all="ignore"):
        made = call.below.apply(call.op, tuple(one), call.attrs)

    def none(y: Tensor) -> Any:
        return zeros((0, *y._data.shape), y)

    return tuple(map(none, made)) if type(made) is tuple else none(made)


# The rules that `BatchLevel._quick` knows.
_QUICK = (_pointwise, _pointwise_expanded, _front, _front_dots)


def _fits(rule: Rule, op: OpExpr, inputs: Sequence[Any], ndim: int) -> bool:
    """Return whether inputs that are the same for all entries can be handed on as they are."""
    shared = [x._data for x in inputs if not isinstance(x._data, BatchedArray)]
    if rule is _pointwise:
        return all([data.ndim <= ndim for data in shared])
    if rule is _front_dots and len(inputs) == 2 and len(rule_of(op)[1]) > 1:  # as matmul
        return ndim >= 2 and isinstance(inputs[0]._data, BatchedArray) and shared[0].ndim == 2
    return False


_WAYS: dict[str, Rule] = {
    "pointwise": _pointwise_expanded,
    "front": _front,
    "new dimension": functools.partial(_front, names=True),
    "dots": _front_dots,
    "fold": _folded,
    "loop": _looped,
    "refuse": _refused,
}


# --- The border of the level ----------------------------------------------------------------------


@between("enter_batch")
def _enter(below: TransformInterpreter, x: Tensor, *, level: BatchLevel, dim: int) -> Tensor:
    value = make_tensor(x._data)
    if dim:
        order = (dim, *[d for d in range(x._data.ndim) if d != dim])
        value = below.call("permute", value, dims=order)
    return make_tensor(level.array(value))


@between("leave_batch")
def _leave(
    below: TransformInterpreter, x: Tensor, *, level: BatchLevel, dim: int, crossing: Any = None
) -> Tensor:
    data = x._data
    if isinstance(data, BatchedArray) and data.level is level:
        value = make_tensor(data.parts[0]._data)
    else:
        value = _spread(below, level.size, make_tensor(data))
    if dim:
        order = [*range(1, value._data.ndim)]
        order.insert(dim, 0)
        value = below.call("permute", value, dims=tuple(order))
    return make_tensor(value._data)  # no view of a tensor whose history is another


@between("sum_batch")
def _sum(below: TransformInterpreter, x: Tensor, *, level: BatchLevel, crossing: Any = None) -> Any:
    data = x._data
    assert isinstance(data, BatchedArray) and data.level is level
    if isinstance(data, PendingArray) and data._value is None:
        return data.compute_sum()
    return below.call("sum", data.parts[0], dim=(0,), keepdim=False)


def enter_batch(x: Tensor, level: BatchLevel, dim: int) -> Tensor:
    """Return the entry of a tensor along a dimension, as the mapped function sees it."""
    return _dispatch("enter_batch", x, level=level, dim=dim)  # type: ignore[no-any-return]


def leave_batch(x: Tensor, level: BatchLevel, dim: int) -> Tensor:
    """Return the batch of a result, with its entries along a dimension."""
    crossing = level.crossing() if x._edge is not None or x._view is not None else None
    return _dispatch("leave_batch", x, level=level, dim=dim, crossing=crossing)  # type: ignore[no-any-return]
