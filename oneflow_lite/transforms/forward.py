"""Forward mode and Taylor mode: tensors carry the coefficients of a series in one variable t.

A `JetArray` stands for x(t) = x₀ + x₁ t + ... + x_K t^K. Forward mode is K = 1, where x₁ is the
tangent. The declaration of an op says the way of a series through it:

- a linear op takes each coefficient by itself, and a product of several terms is a convolution;
- an op of straight pieces takes each coefficient as the first;
- for any other op y′ = J(x, y) x′, where the product with the Jacobian comes from the gradient
  rule. The rule is computed on the series up to order k - 1, which gives coefficient k.

J v of a pointwise op is its gradient rule, applied to v. Of other ops it is a rule of their own
(`autograd/rules/forward_rules.py`), or else the gradient rule is differentiated once more: it is
linear in the gradient, and its transpose is J (Townsend, "A new trick for calculating Jacobian
vector products", 2017). The recurrences are those of Griewank and Walther, "Evaluating
Derivatives", 2008, chapter 13.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from oneflow_lite.arrays.bfloat16_arrays import as_plain
from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F, Part
from oneflow_lite.autograd.engine.run import grad
from oneflow_lite.autograd.rules.forward_rules import FORWARD_RULES, ForwardRule
from oneflow_lite.autograd.rules.gradient_rules import (
    AutoGradCaptureState,
    DeclaredGradFunction,
    MissingGradFunction,
    OnTensors,
)
from oneflow_lite.autograd.rules.zero import ZERO
from oneflow_lite.errors import NotDifferentiableError, TransformError
from oneflow_lite.interpreter.dispatch import dispatch
from oneflow_lite.interpreter.history import grad_function_of
from oneflow_lite.interpreter.stack import count_writes
from oneflow_lite.ops.op_expr import OpExpr, op_expr
from oneflow_lite.ops.registry import KERNELS, Lines
from oneflow_lite.ops.sbp_rules import rule_of
from oneflow_lite.tensors.mode import enable_grad, local as thread, no_grad
from oneflow_lite.tensors.node import NO_EDGE, make_node, tensor_info
from oneflow_lite.tensors.tensor import Tensor, make_tensor
from oneflow_lite.transforms.levels import (
    Level,
    LevelArray,
    OfBFloat16,
    TransformInterpreter,
    between,
    whole,
    wrap_output,
)

ndarray = np.ndarray
Attrs = dict[str, Any]
Series = list[Any]  # coefficients: Tensor, or None for zero
_NONE = ForwardRule()


class JetArray(LevelArray):
    """A series; its values are those at t = 0, and may be read.

    Attributes
    ----------
    error : Exception or None
        Why it has no derivative; raised where it is used.
    """

    error: Exception | None = None
    taken_from: Any = None  # the array of the base, of a view that was taken anew

    def _value(self, what: str) -> Any:
        data = self.parts[0]._data if self.parts else None
        if isinstance(data, LevelArray) and not isinstance(data, JetArray):
            raise data._no_value_error(what)
        return data if data is not None else self.view(ndarray)

    @property
    def moves(self) -> bool:
        """Whether a tangent, or a higher coefficient of a series, is not zero."""
        return any_of(self.parts[1:]) or super().moves

    @property
    def constant(self) -> LevelArray:
        """The value at t = 0 as a series without further coefficients."""
        value, *rest = self.parts
        inner = getattr(value._data, "constant", value._data)
        parts = (make_tensor(inner), *(None,) * len(rest))
        return self.level.array(parts)  # type: ignore[no-any-return]

    def text(self, facts: Sequence[str] = ()) -> str:
        """Return the text of a tensor: its value, and its tangent or series."""
        if not self.parts:
            return super().text(facts)
        value, *rest = [repr(part) if part is not None else "0" for part in self.parts]
        if self.error is not None:
            moved = "tangent=none"
        else:
            moved = f"tangent={rest[0]}" if len(rest) == 1 else f"series=[{', '.join(rest)}]"
        return f"{value[:-1]}, {', '.join([moved, *facts])})"

    def get(self) -> Any:
        """Return the value at t = 0."""
        value = self._value("numpy")
        return as_plain(value) if isinstance(value, ndarray) else value.get()

    def __getitem__(self, index: Any) -> Any:
        data = self.parts[0]._data if self.parts else None
        if isinstance(data, LevelArray):
            return super().__getitem__(index)
        return self._value("getitem")[index]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        given = [x._value(ufunc.__name__) if isinstance(x, JetArray) else x for x in inputs]
        return getattr(ufunc, method)(*given, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        given = [x._value(func.__name__) if isinstance(x, JetArray) else x for x in args]
        return func(*given, **kwargs)


def _reading(method: str) -> Callable[..., Any]:
    def read(self: JetArray, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._value(method.strip("_")), method)(*args, **kwargs)

    read.__name__ = read.__qualname__ = method
    return read


for _name in """
    __array__ __bool__ __complex__ __contains__ __float__ __index__ __int__ __iter__ all any argmax
    argmin argsort astype item max mean min nonzero prod std sum tobytes tolist var
""".split():
    setattr(JetArray, _name, _reading(_name))


class _JetBFloat16(OfBFloat16, JetArray):
    pass


JetArray.of_bfloat16 = _JetBFloat16


class JetLevel(Level):
    """A level of `jvp` or `jet`.

    Attributes
    ----------
    order : int
        The highest power of t.
    """

    def __init__(self, order: int = 1, name: str = "jvp") -> None:
        super().__init__(name)
        self.order = order
        self.told = "value and tangent" if order == 1 else f"series of order {order}"

    def array(self, parts: Sequence[Any]) -> JetArray:
        """Return the array of a series."""
        made: JetArray = whole(parts[0]._data, JetArray)
        made.hold(self, tuple(parts))
        return made

    def array_of(self, parts: Sequence[Any]) -> LevelArray:
        """Return the array of a series with these coefficients."""
        return self.array(parts)

    def settle(self, grad: Tensor) -> Tensor:
        """Return the gradient of a constant in a series: coefficients are kept in reverse."""
        return leave_jet(grad, self, self.order)

    def series(self, x: Any) -> tuple[Any, ...] | None:
        """Return the coefficients of a tensor; None where it is constant at this level."""
        data = None if x is None else x._data
        if isinstance(data, JetArray) and data.level is self:
            if data.error is not None:
                raise data.error
            return data.parts
        return None

    def run(
        self, below: TransformInterpreter, op: OpExpr, inputs: tuple[Any, ...], attrs: Attrs
    ) -> Any:
        """Run an op on series."""
        given = [self.series(x) for x in inputs]
        primals = tuple([x if s is None else s[0] for x, s in zip(inputs, given, strict=True)])
        if self.ended and thread.task is None:  # a value that was kept; its tangent is gone
            return below.apply(op, primals, attrs)
        if op.schema.written:
            return self._write(below, op, inputs, given, primals, attrs)
        made = below.apply(op, primals, attrs)
        several = type(made) is tuple
        outs: tuple[Any, ...] = made if several else (made,)
        if not any([y._data.dtype.kind in "fc" for y in outs]):
            return made
        order = min([len(s) for s in given if s is not None]) - 1
        columns = self._columns(below, op, primals, outs, given, attrs, order)
        results = []
        for y, column in zip(outs, columns, strict=True):
            if y._data.dtype.kind not in "fc":
                results.append(y)
                continue
            error = next((c for c in column if isinstance(c, Exception)), None)
            parts = [None if error is not None else _fitted(below, y, c) for c in column]
            array = self.array((y, *parts))
            array.error = error
            results.append(wrap_output(op, inputs, array, attrs, several))
        return tuple(results) if several else results[0]

    # Coefficients of order 1 and more, for each output

    def _columns(
        self,
        below: TransformInterpreter,
        op: OpExpr,
        primals: tuple[Any, ...],
        outs: tuple[Any, ...],
        given: list[Any],
        attrs: Attrs,
        order: int,
    ) -> list[Series]:
        moving = [i for i, s in enumerate(given) if s is not None and any_of(s[1:])]
        if not moving:
            return [[None] * order for _ in outs]
        rule = FORWARD_RULES.get(op.op_type_name, _NONE)
        groups = None if rule.taylor or rule.push else _terms(op, moving, len(given))
        if groups is not None:
            rows = [
                _product(below, op, primals, outs, given, attrs, groups, k)
                for k in range(1, order + 1)
            ]
            return [list(column) for column in zip(*rows, strict=True)]
        with no_grad():
            if order > 1:
                made = self._taylor(rule, op, primals, outs, given, attrs, order)
                if made is not None:
                    return made
            columns: list[Series] = [[y] for y in outs]
            for k in range(1, order + 1):
                moved = self._coefficient(rule, op, primals, given, attrs, columns, k)
                for column, y in zip(columns, moved, strict=True):
                    column.append(y)
            return [column[1:] for column in columns]

    def _taylor(
        self,
        rule: ForwardRule,
        op: OpExpr,
        primals: tuple[Any, ...],
        outs: tuple[Any, ...],
        given: list[Any],
        attrs: Attrs,
        order: int,
    ) -> list[Series] | None:
        """Return the coefficients by a recurrence of the op, or by its parts, if it has either."""
        if rule.taylor is not None:
            series = [
                x if s is None and x is None else [x] if s is None else list(s[: order + 1])
                for x, s in zip(primals, given, strict=True)
            ]
            padded = [s if s is None else s + [None] * (order + 1 - len(s)) for s in series]
            made = rule.taylor(FUNCTORS_F, outs[0], *padded, **attrs)
            if made is not NotImplemented:
                every = made if type(made) is tuple else (made,)
                return [[None] * order if c is None else list(c)[1:] for c in every]
        if rule.piecewise or rule.push:
            return None
        parts = rule.parts or _parts_of(op.op_type_name, attrs)
        if parts is None:
            return None
        inputs = [
            x if s is None else make_tensor(self.array(s[: order + 1]))
            for x, s in zip(primals, given, strict=True)
        ]
        made = parts(FUNCTORS_F, *inputs, **attrs)
        found = [self.series(y) for y in (made if type(made) is tuple else (made,))]
        return [[None] * order if s is None else list(s[1 : order + 1]) for s in found]

    def _coefficient(
        self,
        rule: ForwardRule,
        op: OpExpr,
        primals: tuple[Any, ...],
        given: list[Any],
        attrs: Attrs,
        columns: list[Series],
        k: int,
    ) -> list[Any]:
        """Return coefficient k of each output, from those before it."""
        if k == 1 or (rule.piecewise and not any(map(_is_complex, primals))):
            tangents = [None if s is None else s[k] for s in given]
            return push(op, primals, tuple([c[0] for c in columns]), attrs, tangents)
        inputs, tangents = [], []
        for x, s in zip(primals, given, strict=True):
            inputs.append(x if s is None else self._jet(s[:k]))
            slopes = None if s is None else [_scaled(s[j], j) for j in range(1, k + 1)]
            moving = slopes is not None and any_of(slopes)
            tangents.append(self._jet(slopes) if slopes is not None and moving else None)
        outputs = tuple([self._jet(c) if _is_smooth(c) else c[0] for c in columns])
        results: list[Any] = []
        for y in push(op, tuple(inputs), outputs, attrs, tangents):
            if isinstance(y, Exception):
                results.append(y)
                continue
            found = (y,) if self.series(y) is None else self.series(y)
            last = found[k - 1] if found is not None and len(found) >= k else None
            results.append(None if last is None else _scaled(last, 1 / k))
        return results

    def _jet(self, parts: Sequence[Any]) -> Tensor:
        first = parts[0]
        if first is None:
            like = next(part for part in parts if part is not None)
            first = FUNCTORS_F.zeros_like(like)
        return make_tensor(self.array((first, *parts[1:])))

    # Writes

    def _write(
        self,
        below: TransformInterpreter,
        op: OpExpr,
        inputs: tuple[Any, ...],
        given: list[Any],
        primals: tuple[Any, ...],
        attrs: Attrs,
    ) -> Any:
        """Write values, and tangents where the op is one that writes them."""
        schema = op.schema
        x = inputs[schema.written[0]]
        writes = op.op_type_name in ("copy_", "setitem_", "fill_")
        if schema.effect and any([s is not None and any_of(s[1:]) for s in given]):
            raise TransformError(
                f"{op.op_type_name}(): tangents are not sent to other processes; call the "
                "out-of-place collective, or take the derivative by grad"
            )
        moving = any([s is not None and any_of(s[1:]) for s in given])
        if moving and not schema.random and not KERNELS.get(op.op_type_name).is_library:
            return self._write_by_rule(below, op, inputs, given, primals, attrs)
        value = given[1] if writes and len(given) > 1 else None
        if writes and value is not None and any_of(value[1:]) and x._data.dtype.kind in "fc":
            given[0] = self._moving(x, value)
            primals = (given[0][0], *primals[1:])
        made = below.apply(op, primals, attrs)
        for i in schema.written:
            series = given[i]
            for k in range(1, 0 if series is None else len(series)):
                if series[k] is None:
                    continue
                new = None if value is None or k >= len(value) else value[k]
                if writes and new is not None:
                    below.apply(op, (series[k], new, *primals[2:]), attrs)
                elif op.op_type_name == "setitem_":
                    below.apply(op, (series[k], None, *primals[2:]), {**attrs, "fill": 0})
                else:
                    dtype, device = x._data.dtype, x.device
                    zero = below.call("full", shape=(), value=0, dtype=dtype, device=device)
                    below.call("fill_", series[k], zero)
        count_writes(op, inputs)
        outs = made if type(made) is tuple else (made,)
        back = {id(primals[i]): inputs[i] for i in schema.written}
        results = tuple([back.get(id(y), y) for y in outs])
        return results if type(made) is tuple else results[0]

    def _write_by_rule(
        self,
        below: TransformInterpreter,
        op: OpExpr,
        inputs: tuple[Any, ...],
        given: list[Any],
        primals: tuple[Any, ...],
        attrs: Attrs,
    ) -> Any:
        """Write values by an op of a user's, and tangents by its rules."""
        name, written = op.op_type_name, op.schema.written
        if max([len(s) for s in given if s is not None]) > 2:
            raise TransformError(
                f"{name}(): an op of your own that writes its input has tangents, and no series; "
                "let the kernel return a new array"
            )
        before = [
            below.call("clone", x) if i in written and x is not None else x
            for i, x in enumerate(primals)
        ]
        made = below.apply(op, primals, attrs)
        outs = made if type(made) is tuple else (made,)
        tangents = [None if s is None else s[1] for s in given]
        with no_grad():
            moved = push(op, tuple(before), outs, attrs, tangents)
            results = []
            for y, t in zip(outs, moved, strict=True):
                t = _fitted(below, y, t)
                x = next((inputs[i] for i in written if primals[i] is y), None)
                if x is None:
                    smooth = y._data.dtype.kind in "fc"
                    results.append(make_tensor(self.array((y, t))) if smooth else y)
                    continue
                if t is None:
                    t = FUNCTORS_F.zeros_like(y)
                below.call("copy_", self._moving(x, (y, t))[1], t)
                results.append(x)
        count_writes(op, inputs)
        return tuple(results) if type(made) is tuple else results[0]

    def _moving(self, x: Tensor, value: Sequence[Any]) -> Any:
        """Give a tensor, and the base whose view it is, coefficients to write to.

        They carry the levels of those of the value.
        """
        base = x if x._view is None else x._view.base
        series = self.series(base)
        if series is None:
            series = (make_tensor(base._data), *(None,) * (len(value) - 1))
        parts = [series[0]]
        for c, new in zip(series[1:], value[1:], strict=False):
            if new is not None:
                c = FUNCTORS_F.zeros_like(series[0]) if c is None else c
                data = new._data
                c = data.covered(c) if isinstance(data, LevelArray) else c
            parts.append(c)
        if any([a is not b for a, b in zip(parts, series, strict=False)]):
            base._data = self.array(parts)
            for view in _views_of(base):
                _renew(view)
        if x is not base:
            _renew(x)
        return x._data.parts


def _views_of(base: Tensor) -> list[Tensor]:
    """Return the views of a tensor, made before: no list of them is kept, for this is rare."""
    storage = base._storage
    if storage is None or sys.getrefcount(storage) <= 3:  # the base, the name here, the call
        return []
    found: list[Tensor] = []
    for holder in gc.get_referrers(storage):
        # Python keeps attributes in the object itself, or in a dict once somebody looked at it.
        owners = gc.get_referrers(holder) if type(holder) is dict else [holder]
        found += [x for x in owners if isinstance(x, Tensor) and x._storage is storage]
    return [x for x in found if x._view is not None and x._view.base is base]


def _renew(x: Tensor) -> None:
    """Take a view from its base once more: the base carries coefficients now."""
    view = x._view
    assert view is not None
    data = view.base._data
    if not isinstance(data, JetArray) or data is getattr(x._data, "taken_from", None):
        return
    with no_grad():
        y = make_tensor(data)
        for op, attrs in view.chain():
            y = dispatch(op, (y,), attrs)
    x._data = y._data
    x._data.taken_from = data


def _is_smooth(column: Series) -> bool:
    """Return whether an output has a derivative, so far."""
    return column[0]._data.dtype.kind in "fc" and not isinstance(column[-1], Exception)


def _is_complex(x: Any) -> bool:
    return x is not None and x._data.dtype.kind == "c"


def any_of(parts: Sequence[Any]) -> bool:
    """Return whether any coefficient is not zero."""
    return any([part is not None for part in parts])


def _scaled(x: Any, factor: float) -> Any:
    if x is None or factor == 1:
        return x
    return FUNCTORS_F.mul_scalar(x, factor=factor)


def _fitted(below: TransformInterpreter, y: Tensor, c: Any) -> Any:
    """Return a coefficient in the shape and dtype of the output."""
    if c is None:
        return None
    if c._edge is not None or c._view is not None:
        c = make_tensor(c._data)
    if c._data.shape != y._data.shape:
        c = below.call("expand", c, shape=y._data.shape)
    if c._data.dtype is not y._data.dtype and c._data.dtype != y._data.dtype:
        c = below.call("cast", c, dtype=y._data.dtype)
    return c


# --- Linear ops -----------------------------------------------------------------------------------


def _terms(op: OpExpr, moving: list[int], count: int) -> Any:
    """Return the terms in which an op is linear in the inputs that move; None where it is not.

    Of each term the inputs that move, and all inputs that belong to it.
    """
    key = (op.op_type_name, tuple(moving), count)
    if key not in _known_terms:
        _known_terms[key] = _found_terms(op, moving, count)
    return _known_terms[key]


_known_terms: dict[Any, Any] = {}
KERNELS.on_change.append(lambda name: _known_terms.clear())


def _found_terms(op: OpExpr, moving: list[int], count: int) -> Any:
    schema, groups = op.schema, []
    for term in rule_of(op)[1]:
        members = [i for i in moving if _name_of(schema, i) in term]
        if members:
            every = [i for i in range(count) if _name_of(schema, i) in term]
            groups.append((members, every))
    found = [i for members, _ in groups for i in members]
    return groups if sorted(found) == moving else None


def _name_of(schema: Any, i: int) -> str:
    names = schema.inputs
    return names[i] if i < len(names) else schema.variadic  # type: ignore[no-any-return]


def _product(
    below: TransformInterpreter,
    op: OpExpr,
    primals: tuple[Any, ...],
    outs: tuple[Any, ...],
    given: list[Any],
    attrs: Attrs,
    groups: Any,
    k: int,
) -> list[Any]:
    """Return coefficient k of an op that is linear in each group of inputs."""
    totals: list[Any] = [None] * len(outs)
    for split in _splits(k, len(groups)):
        inputs = list(primals)
        zero = False
        for (members, every), j in zip(groups, split, strict=True):
            zero = True
            for i in members:
                if given[i][j] is not None:
                    inputs[i], zero = given[i][j], False
            if zero:
                break
            if j and len(every) > 1:
                for i in every:
                    if inputs[i] is primals[i] and inputs[i] is not None:
                        inputs[i] = _zeros(below, op, inputs[i])
        if zero:
            continue
        made = below.apply(op, tuple(inputs), attrs)
        made = made if type(made) is tuple else (made,)
        for n, y in enumerate(made):
            if y._data.dtype.kind in "fc":
                totals[n] = y if totals[n] is None else below.call("add", totals[n], y)
    return totals


def _zeros(below: TransformInterpreter, op: OpExpr, like: Tensor) -> Any:
    data = like._data
    zero = below.call("full", shape=(), value=0, dtype=data.dtype, device=like.device)
    if op.op_type_name in ("add", "sub", "where"):
        return zero
    return below.call("clone", below.call("expand", zero, shape=tuple(data.shape)))


@functools.cache
def _splits(k: int, parts: int) -> tuple[tuple[int, ...], ...]:
    if parts == 1:
        return ((k,),)
    return tuple([(j, *rest) for j in range(k + 1) for rest in _splits(k - j, parts - 1)])


# --- Products with the Jacobian -------------------------------------------------------------------


def push(
    op: OpExpr,
    inputs: tuple[Any, ...],
    outputs: tuple[Any, ...],
    attrs: Attrs,
    tangents: Sequence[Any],
) -> list[Any]:
    """Return J v for each output, None where it is zero."""
    if not any_of(tangents):
        return [None] * len(outputs)
    rule = FORWARD_RULES.get(op.op_type_name, _NONE)
    if rule.push is not None:
        # As in gradient rules, an input that is called y hides the output.
        ctx = SimpleNamespace(y=outputs[0], out=outputs[0])
        for n, y in enumerate(outputs):
            setattr(ctx, f"y{n}", y)
        vars(ctx).update(attrs)
        for i, x in enumerate(inputs):
            setattr(ctx, _name_of(op.schema, i), x)
        if op.schema.variadic is not None:
            setattr(ctx, op.schema.variadic, inputs[len(op.schema.inputs) :])
        made = rule.push(FUNCTORS_F, ctx, *tangents)
        if made is not NotImplemented:
            return list(made) if isinstance(made, (tuple, list)) else [made]
    needs = tuple([t is not None for t in tangents])
    made = _diagonal_product(op, inputs, outputs, attrs, tangents, needs)
    if made is not None:
        return [made]
    # Some rules differentiate by the inputs themselves, so these have a place in a graph.
    inputs = tuple(
        [
            make_tensor(x._data).requires_grad_() if need else x
            for x, need in zip(inputs, needs, strict=True)
        ]
    )
    function = op.grad_function or grad_function_of(op)
    if isinstance(function, MissingGradFunction):
        function.apply(None, None, ())  # type: ignore[arg-type]  # raises, with what to do
    saved, given = function.save(inputs, outputs, attrs, needs)
    if any([y._data.dtype.kind == "c" for y in outputs]):
        function = function.conjugated()
    edges = tuple([x._edge if need else NO_EDGE for x, need in zip(inputs, needs, strict=True)])
    first = outputs[0]._data
    node = make_node(function, edges, 1, saved, given, first.shape, first.dtype)
    node.infos = [tensor_info(y) if y._data.dtype.kind in "fc" else None for y in outputs]
    state = function.open(node, saved, True)
    return _transposed(function, state, outputs, tangents)


def _diagonal_product(
    op: OpExpr,
    inputs: Sequence[Any],
    outputs: tuple[Any, ...],
    attrs: Attrs,
    tangents: Sequence[Any],
    needs: tuple[bool, ...],
) -> Any:
    """Return J v of a pointwise op, by its gradient rule; None for all other ops."""
    function = op.grad_function or grad_function_of(op)
    if not _is_diagonal(op, function, inputs, outputs, needs):
        return None
    inner: Any = function.inner if isinstance(function, OnTensors) else function
    saved, given = inner.save(inputs, outputs, attrs, needs)
    state = AutoGradCaptureState()
    values = vars(state)
    for name, data, *_ in saved:
        values[name] = make_tensor(data)
    values.update(given)
    if inner.many:
        edges = {name: NO_EDGE for name, _ in inner.edges}
        values.update(edges, needs_input_grad=needs)
    total: Any = None
    for i, t in enumerate(tangents):
        if t is not None:
            made = _rule_at(inner, i, state, (t,))
            if made is not None:
                total = made if total is None else total + made
    return FUNCTORS_F.zeros_like(outputs[0]) if total is None else total


def _rule_at(function: Any, i: int, state: Any, out_grads: tuple[Any, ...]) -> Any:
    if not function.whole:
        made = function.rules[i](FUNCTORS_F, state, *out_grads)
    else:
        made = function.rule(FUNCTORS_F, state, *out_grads)
        if isinstance(made, (tuple, list)):
            made = made[i]
    if made is ZERO or made is None:
        return None
    return made.whole() if isinstance(made, Part) else made


def _is_diagonal(
    op: OpExpr, function: Any, inputs: Sequence[Any], outputs: Sequence[Any], needs: Sequence[bool]
) -> bool:
    """Return whether the gradient rule on a tangent is the product with the Jacobian."""
    if len(outputs) != 1 or FORWARD_RULES.get(op.op_type_name, _NONE).dense:
        return False
    sbp, _ = rule_of(op)
    if sbp != "elementwise" or {"dim", "dims"} & op.schema.attrs.keys():
        return False
    inner = function.inner if isinstance(function, OnTensors) else function
    if not isinstance(inner, DeclaredGradFunction):
        return False
    y = outputs[0]._data
    for x, need in zip(inputs, needs, strict=True):
        if need and (x._data.dtype.kind == "c") is not (y.dtype.kind == "c"):
            return False  # the derivative is no number of one kind
        if need and x._data.shape != y.shape and y.ndim < x._data.ndim:
            return False
    return True


def _transposed(
    function: Any, state: Any, outputs: Sequence[Any], tangents: Sequence[Any]
) -> list[Any]:
    """Transpose the gradient rule: differentiate it by the gradient that it is linear in."""
    smooth = [n for n, y in enumerate(outputs) if y._data.dtype.kind in "fc"]
    try:
        return _transposed_at(function, state, outputs, tangents, smooth)
    except NotDifferentiableError:
        if len(smooth) == 1:
            raise
    # One of several outputs has no derivative: its error is raised where its tangent is read.
    results: list[Any] = [None] * len(outputs)
    for n in smooth:
        try:
            results[n] = _transposed_at(function, state, outputs, tangents, [n])[n]
        except NotDifferentiableError as error:
            results[n] = error.with_traceback(None)
    return results


def _transposed_at(
    function: Any,
    state: Any,
    outputs: Sequence[Any],
    tangents: Sequence[Any],
    smooth: Sequence[int],
) -> list[Any]:
    with enable_grad():
        us = [
            FUNCTORS_F.zeros_like(y).requires_grad_() if n in smooth else None
            for n, y in enumerate(outputs)
        ]
        roots, vectors = [], []
        if function.whole:
            made = function.rule(FUNCTORS_F, state, *us)
            made = made if isinstance(made, (tuple, list)) else (made,)
        else:
            made = [
                None if t is None else function.rules[i](FUNCTORS_F, state, *us)
                for i, t in enumerate(tangents)
            ]
        for root, t in zip(made, tangents, strict=True):
            if t is None or root is None or root is ZERO or root._edge is None:
                continue
            if root.shape != t.shape:
                t = FUNCTORS_F.expand(t, shape=tuple(root.shape))
            if t._data.dtype is not root._data.dtype:
                t = FUNCTORS_F.cast(t, dtype=root._data.dtype)
            roots.append(root)
            vectors.append(t)
    if not roots:
        return [None] * len(outputs)
    wanted = [u for u in us if u is not None]
    with no_grad():
        found = iter(grad(roots, wanted, vectors, allow_unused=True))
    return [None if u is None else next(found) for u in us]


# --- Ops put together from others -----------------------------------------------------------------


def _parts_of(name: str, attrs: Attrs) -> Callable[..., Any] | None:
    """Return the op by its scalar expression, as a function of tensors."""
    entry = KERNELS.get(name)
    text: Any = entry.scalar
    if text is None or isinstance(text, Lines) or "dim" in attrs:
        return None  # the sums of an expression name no dimension
    if callable(text):
        text = text(**attrs)
    if text is None or f"{name}(" in text or any([word in text for word in _KINKS]):
        return None
    return functools.partial(_evaluated, text, entry.schema.inputs)


# An expression may be smooth where a part of it has a kink; its series would be wrong there.
_KINKS = ("abs(", "minimum(", "maximum(", "where(")


def _evaluated(text: str, names: Sequence[str], F: Any, *inputs: Any, **attrs: Any) -> Any:
    values = dict(zip(names, inputs, strict=True)) | attrs
    *steps, result = text.split(";")
    space = _Names(F, values)
    for step in steps:
        name, _, expression = step.partition("=")
        values[name.strip()] = eval(expression.strip(), {"__builtins__": {}}, space)
    return eval(result.strip(), {"__builtins__": {}}, space)


class _Names(dict[str, Any]):
    def __init__(self, F: Any, values: dict[str, Any]) -> None:
        super().__init__()
        self._F, self._values = F, values

    def __missing__(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        return getattr(self._F, name)


# --- The border of the level ----------------------------------------------------------------------


@between("enter_jet")
def _enter(
    below: TransformInterpreter, *coefficients: Tensor, level: JetLevel, orders: tuple[int, ...]
) -> Tensor:
    parts: Series = [None] * (level.order + 1)
    for k, x in zip(orders, coefficients, strict=True):
        parts[k] = make_tensor(x._data)
    if parts[0] is None:
        like = next(part for part in parts if part is not None)
        parts[0] = below.call("zeros_like", like)
    return make_tensor(level.array(parts))


@between("leave_jet")
def _leave(
    below: TransformInterpreter, x: Tensor, *, level: JetLevel, order: int, crossing: Any = None
) -> Tensor:
    series = x._data.parts if order == 0 and isinstance(x._data, JetArray) else level.series(x)
    if isinstance(x._data, JetArray) and x._data.level is not level:
        series = level.series(x)
    if series is None:
        part = make_tensor(x._data) if order == 0 else None
        like = x
    else:
        part, like = (series[order] if order < len(series) else None), series[0]
    if part is None:
        return below.call("zeros_like", make_tensor(like._data))  # type: ignore[no-any-return]
    return make_tensor(part._data)


def enter_jet(coefficients: Sequence[Any], level: JetLevel) -> Tensor:
    """Return a series as the function sees it; None among the coefficients is zero."""
    given = [(k, x) for k, x in enumerate(coefficients) if x is not None]
    orders, inputs = tuple([k for k, _ in given]), tuple([x for _, x in given])
    return dispatch(  # type: ignore[no-any-return]
        op_expr("enter_jet"), inputs, {"level": level, "orders": orders}
    )


def leave_jet(x: Tensor, level: JetLevel, order: int) -> Tensor:
    """Return a coefficient of a series."""
    crossing = level.crossing() if x._edge is not None or x._view is not None else None
    attrs = {"level": level, "order": order, "crossing": crossing}
    return dispatch(op_expr("leave_jet"), (x,), attrs)  # type: ignore[no-any-return]


def without_tangents(value: Tensor, level: JetLevel) -> bool:
    """Return whether a value has a history other than that of the tangents."""
    assert value._edge is not None
    work, seen = [value._edge[0]], set()
    while work:
        node = work.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        edges = [edge[0] for edge in node.edges]
        if node.attrs.get("level") is level and "orders" in node.attrs:
            edges = [e for e, k in zip(edges, node.attrs["orders"], strict=True) if k == 0]
        elif not edges:
            return True
        work += [e for e in edges if e is not None]
    return False
