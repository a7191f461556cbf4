"""The way of one call, from functor to node: `dispatch`, the interpreters, and their stack.

A functor calls `dispatch(op_expr, inputs, attrs)`. The thread's top interpreter takes it: at first
`AutogradInterpreter(EagerInterpreter())`, which runs the kernel and records a node when an input
requires a gradient. `dispatch1` and `dispatch2` are the same walk written out for one and for two
tensors on the CPU, because most ops are of that shape and a loop over inputs costs half as much
again; whatever is unusual leaves them for the general path. `dispatch` itself spares the
interpreters where nothing but the number of tensors is unusual.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from sys import modules
from typing import Any

import numpy as np

from oneflow_lite.arrays.bfloat16_arrays import CHAR, BFloat16Array, adopted, bfloat16
from oneflow_lite.arrays.device import CPU, Device, on_device
from oneflow_lite.arrays.dtype import SCALAR_TYPES, float16, float32, result_dtype
from oneflow_lite.autograd.rules.annotations import annotate
from oneflow_lite.autograd.rules.gradient_rules import MissingGradFunction, OpExprGradFunction
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    CaptureError,
    DeviceError,
    InplaceError,
    ShapeError,
    arg_error,
)
from oneflow_lite.ops.op_expr import OpExpr, op_expr
from oneflow_lite.tensors.caller_warnings import CallerWarning
from oneflow_lite.tensors.mode import StateChange, local, with_grad_mode
from oneflow_lite.tensors.node import (
    NO_EDGE,
    Edge,
    FunctionNode,
    make_node,
    tensor_info,
)
from oneflow_lite.tensors.scalars import is_half, number_tensor, scalars as _scalars
from oneflow_lite.tensors.storage import NO_GRAD, SPLIT, Origin
from oneflow_lite.tensors.tensor import Tensor, make_tensor
from oneflow_lite.tensors.views import (
    check_memory,
    check_writable,
    link_view,
    memory_order,
    out_of_date_error,
    same_memory,
)

ndarray = np.ndarray
NO_ATTRS: dict[str, Any] = {}
_new = Tensor.__new__
_CAST = op_expr("cast")
_WIDE, _HALF = {"dtype": float32}, {"dtype": float16}
_COPY_SLICES = op_expr("copy_slices")
_COPY_ = op_expr("copy_")
# Ops that take bfloat16 as it is, because they compute nothing.
_AS_IT_IS = frozenset(
    """
    cast clone copy_ copy_slices empty fill_ full ones_like setitem_ to_device zeros_like
    """.split()
)


class Interpreter:
    """Base of interpreters: one method, `apply`.

    A pushed interpreter sees every op first; `self.inner` is the interpreter below it. Ops that
    `apply` itself calls go to `inner`.
    """

    inner: Interpreter | None = None

    def apply(self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Run one op: tensors (or None) and attributes in, a Tensor or a tuple of them out."""
        assert self.inner is not None
        return self.inner.apply(op_expr, inputs, attrs)

    def read(self, op: str, tensor: Tensor) -> None:
        """Take note that values of a tensor leave for Python, by a method such as `item`.

        Raises
        ------
        CaptureError
            When a Program is captured, which knows no values.
        """
        if self.inner is not None:
            self.inner.read(op, tensor)

    def constant(self, tensor: Tensor) -> None:
        """Take note of a tensor that was just made from Python numbers."""
        if self.inner is not None:
            self.inner.constant(tensor)

    def backward(self, nodes: Sequence[FunctionNode]) -> None:
        """Take note of the nodes that a backward pass is about to run, the latest first."""
        if self.inner is not None:
            self.inner.backward(nodes)

    def before_run(self, callback: Callable[[], None]) -> None:
        """Ask for a call before each run of what is being captured, as to bring inputs up to date.

        Nothing is called while ops run at once.
        """
        if self.inner is not None:
            self.inner.before_run(callback)

    def warned(self, warning: CallerWarning) -> None:
        """Take note of a warning that is about to be given at a line of a user's."""
        if self.inner is not None:
            self.inner.warned(warning)


class EagerInterpreter(Interpreter):
    """Runs the kernel at once, wraps its arrays, and counts writes."""

    def apply(self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Run the kernel on the inputs' device."""
        arrays = [None if x is None else x._data for x in inputs]
        device = CPU
        for array in arrays:
            if type(array) is not ndarray and array is not None:
                device = _common_device(op_expr, inputs, arrays)
                break
        if not arrays:  # an op that creates: the device is an attribute
            attrs = dict(attrs)
            device = attrs.pop("device", CPU)
        try:
            if device is CPU:
                if op_expr.run_in_eager is None:
                    op_expr.on_cpu()
                run: Any = op_expr.run_in_eager
                result = run(*arrays, **attrs)
            else:
                with on_device(device) as xp:
                    result = self.device_kernel(op_expr, xp)(*arrays, **attrs)
        except Exception as error:
            raise explain(op_expr, inputs, error) from error.__cause__
        schema = op_expr.schema
        for i in schema.written:
            if inputs[i] is not None:
                (inputs[i]._storage or inputs[i].memory).version += 1
        origin = None if local.state.grad_enabled else NO_GRAD
        if type(result) is tuple:
            origin = origin or SPLIT
            return tuple([_wrap(op_expr, inputs, array, attrs, origin) for array in result])
        return _wrap(op_expr, inputs, result, attrs, origin)

    def device_kernel(self, op_expr: OpExpr, xp: Any) -> Callable[..., Any]:
        """Return the kernel that runs on devices other than the CPU."""
        return op_expr.kernel(xp)


def _wrap(
    op: OpExpr,
    inputs: tuple[Any, ...],
    array: Any,
    attrs: dict[str, Any],
    origin: Origin | None,
) -> Tensor:
    """Make a tensor of what a kernel returned; an input that it wrote is that input again."""
    schema = op.schema
    for i in schema.written:
        if inputs[i] is not None and array is inputs[i]._data:
            return inputs[i]  # type: ignore[no-any-return]
    y = make_tensor(adopted(np.asarray(array) if isinstance(array, np.generic) else array))
    source = None
    if schema.view_of is not None:
        source = inputs[schema.inputs.index(schema.view_of)]
        link_view(op, source, y, attrs, origin)
    if local.state.inference:
        y._inference = source is None or source._inference
    return y


class AutogradInterpreter(Interpreter):
    """Lets the inner interpreter run the op, and records a node when an input needs a gradient."""

    def __init__(self, inner: Interpreter) -> None:
        self.inner: Interpreter = inner

    def apply(self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Run one op and record it."""
        if not local.state.grad_enabled:
            for i in op_expr.schema.written:
                if inputs[i] is not None:
                    check_memory(op_expr.op_type_name, inputs[i])
            return self.inner.apply(op_expr, inputs, attrs)
        edges = []
        needs_grad = False
        for x in inputs:
            if x is None or (x._edge is None and x._view is None):
                edges.append(NO_EDGE)
                continue
            x.refresh_view()
            edges.append(x._edge or NO_EDGE)
            needs_grad = needs_grad or x._edge is not None
        if op_expr.schema.mutates:
            return self._apply_mutating(op_expr, inputs, attrs, tuple(edges), needs_grad)
        result = self.inner.apply(op_expr, inputs, attrs)
        if needs_grad:
            outputs = result if type(result) is tuple else (result,)
            record(op_expr, inputs, outputs, attrs, tuple(edges))
        return result

    def _apply_mutating(
        self,
        op: OpExpr,
        inputs: tuple[Any, ...],
        attrs: dict[str, Any],
        edges: tuple[Edge, ...],
        needs_grad: bool,
    ) -> Any:
        targets = [inputs[i] for i in op.schema.written if inputs[i] is not None]
        for target in targets:
            check_writable(op.op_type_name, target, needs_grad)
        if not needs_grad:
            return self.inner.apply(op, inputs, attrs)
        result = self.inner.apply(op, inputs, attrs)
        record(op, inputs, tuple(targets[:1]), attrs, edges)
        return result


DEFAULT_STACK = AutogradInterpreter(EagerInterpreter())


def current_interpreter() -> Interpreter:
    """Return the interpreter on top of this thread's stack."""
    return local.state.interpreter or DEFAULT_STACK


@contextlib.contextmanager
def push_interpreter(interpreter: Interpreter) -> Iterator[Interpreter]:
    """Put an interpreter on top of this thread's stack for a `with` block.

    >>> import oneflow_lite as flow
    >>> class Names(flow.Interpreter):
    ...     def apply(self, op_expr, inputs, attrs):
    ...         print(op_expr.op_type_name)
    ...         return self.inner.apply(op_expr, inputs, attrs)
    >>> with flow.push_interpreter(Names()):
    ...     y = flow.relu(flow.ones(2)) * 2
    full
    relu
    mul
    """
    if not isinstance(interpreter, Interpreter):
        raise arg_error(
            "push_interpreter",
            "interpreter",
            expected="an instance of flow.Interpreter",
            got=repr(interpreter),
            hint="derive the class from flow.Interpreter and pass an instance",
            kind=ArgumentTypeError,
        )
    if interpreter.inner is not None:
        raise ArgumentError(
            "push_interpreter(): this interpreter is on the stack already, here or in another "
            "thread; push another instance"
        )
    interpreter.inner = current_interpreter()
    try:
        with StateChange(interpreter=interpreter):
            yield interpreter
    finally:
        interpreter.inner = None


def dispatch(op: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any] = NO_ATTRS) -> Any:
    """Hand an op to the top interpreter: any number of inputs and outputs."""
    run = op.run_on_cpu
    if run is not None and not op.aliases and not local.state.general:
        arrays = [None if x is None else x._data for x in inputs]
        if arrays and all([type(array) is ndarray or array is None for array in arrays]):
            try:
                out = run(*arrays, **attrs)
            except Exception as error:
                raise explain(op, inputs, error) from error.__cause__
            return _made(op, inputs, out, attrs)
    if "ml_dtypes" in modules:  # else no bfloat16 can be there
        for x in inputs:
            if x is not None and type(x._data) is BFloat16Array:
                if op.op_type_name not in _AS_IT_IS and not op.schema.view_of:
                    return _in_float32(op, inputs, attrs)
                break
        if not inputs and op.op_type_name not in _AS_IT_IS:
            dtype = attrs.get("dtype")
            if dtype is not None and dtype.char == CHAR:
                made = dispatch(op, (), {**attrs, **_WIDE})
                return dispatch1(_CAST, made, {"dtype": dtype})
    state = local.state
    top = state.interpreter
    if top is None:
        return DEFAULT_STACK.apply(op, inputs, attrs)
    if type(top) is AutogradInterpreter:  # a whole stack of its own, as while a Program is captured
        return top.apply(op, inputs, attrs)
    # While an interpreter works, its own ops go to the one below it.
    below = top.inner
    local.state = state.replace(interpreter=None if below is DEFAULT_STACK else below)
    try:
        return top.apply(op, inputs, attrs)
    finally:
        local.state = state


def _in_float32(op: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """Run an op on bfloat16 as PyTorch does: in float32, with the result rounded."""
    wide = [
        dispatch1(_CAST, x, _WIDE) if x is not None and type(x._data) is BFloat16Array else x
        for x in inputs
    ]
    if op.schema.written:  # random numbers or an optimizer's step: nothing is recorded
        local.state = (before := local.state).replace(grad_enabled=False)
        try:
            results = dispatch(op, tuple(wide), attrs)
            for i in op.schema.written:
                if wide[i] is not inputs[i]:
                    dispatch(_COPY_, (inputs[i], wide[i]))
        finally:
            local.state = before
        back = {id(y): x for x, y in zip(inputs, wide, strict=True)}
        found = results if type(results) is tuple else (results,)
        given = tuple([back.get(id(y), y) for y in found])
        return given if type(results) is tuple else given[0]
    results = dispatch(op, tuple(wide), attrs)
    dtype = bfloat16()
    rounded = tuple(
        [
            dispatch1(_CAST, y, {"dtype": dtype}) if y._data.dtype is float32 else y
            for y in (results if type(results) is tuple else (results,))
        ]
    )
    return rounded if type(results) is tuple else rounded[0]


def dispatch1(op: OpExpr, x: Tensor, attrs: dict[str, Any] = NO_ATTRS) -> Any:
    """Dispatch an op of one tensor."""
    state = local.state
    try:
        data = x._data
    except AttributeError:
        raise _not_a_tensor_error(op, x) from None
    run = op.run_on_cpu
    if run is None or type(data) is not ndarray:
        return dispatch(op, (x,), attrs)
    if state.general:
        return _dispatch_annotated(dispatch1, op, (x,), attrs)
    try:
        out = run(data, **attrs) if attrs else run(data)
    except Exception as error:
        raise explain(op, (x,), error) from error.__cause__
    if type(out) is not ndarray:
        if type(out) is tuple:
            return _made(op, (x,), out, attrs)
        out = out if isinstance(out, ndarray) else np.asarray(out)
    y = _new(Tensor)
    y._data = out
    if op.aliases:
        link_view(op, x, y, attrs, None if state.grad_enabled else NO_GRAD)
    if state.grad_enabled:
        if x._view is not None:
            x.refresh_view()
        edge = x._edge
        if edge is not None:
            dtype = out.dtype
            if dtype.kind == "f":
                function = op.grad_function or _grad_function(op)
                saver = function.savers[1]
                saved: tuple[Any, ...] = ()
                if saver is not None:
                    saved, attrs = saver((x,), (y,), attrs)
                number = edge[0].topological_nr + 1
                node = make_node(function, (edge,), number, saved, attrs, out.shape, dtype)
                y._edge = (node, 0)
            elif dtype.kind == "c":
                record(op, (x,), (y,), attrs, (edge,))
    elif state.inference:
        y._inference = x._inference or not op.aliases
    return y


def dispatch2(op: OpExpr, x: Any, y: Any, attrs: dict[str, Any] = NO_ATTRS) -> Any:
    """Dispatch an op with two operands, tensors or numbers, that meet in one dtype."""
    state = local.state
    try:
        a = x._data
        if type(y) is float and type(a) is ndarray and a.dtype.kind == "f":
            y = _scalars.get((y, a.dtype), y)
        b = y._data
        if a.dtype is not b.dtype:
            raise AttributeError
    except AttributeError:
        operands = promote_operands(op, x, y)
        if operands is None:
            return rounded_once(dispatch2, op, x, y, attrs)
        x, y = operands
        a = x._data
        b = y._data
    run = op.run_on_cpu
    if run is None or type(a) is not ndarray or type(b) is not ndarray:
        return dispatch(op, (x, y), attrs)
    if state.general:
        return _dispatch_annotated(dispatch2, op, (x, y), attrs)
    try:
        out = run(a, b, **attrs) if attrs else run(a, b)
    except Exception as error:
        raise explain(op, (x, y), error) from error.__cause__
    if type(out) is not ndarray:
        if type(out) is tuple:
            return _made(op, (x, y), out, attrs)
        out = out if isinstance(out, ndarray) else np.asarray(out)
    z = _new(Tensor)
    z._data = out
    if state.grad_enabled:
        if x._view is not None:
            x.refresh_view()
        if y._view is not None:
            y.refresh_view()
        x_edge = x._edge
        y_edge = y._edge
        if x_edge is not None or y_edge is not None:
            dtype = out.dtype
            if dtype.kind == "f":
                function = op.grad_function or _grad_function(op)
                if y_edge is None:
                    saver = function.savers[1]
                    number = x_edge[0].topological_nr + 1
                    edges = (x_edge, NO_EDGE)
                elif x_edge is None:
                    saver = function.savers[2]
                    number = y_edge[0].topological_nr + 1
                    edges = (NO_EDGE, y_edge)
                else:
                    saver = function.savers[3]
                    number = x_edge[0].topological_nr
                    other = y_edge[0].topological_nr
                    number = (number if number > other else other) + 1
                    edges = (x_edge, y_edge)
                saved: tuple[Any, ...] = ()
                if saver is not None:
                    saved, attrs = saver((x, y), (z,), attrs)
                node = make_node(function, edges, number, saved, attrs, out.shape, dtype)
                z._edge = (node, 0)
            elif dtype.kind == "c":
                record(op, (x, y), (z,), attrs, (x_edge or NO_EDGE, y_edge or NO_EDGE))
    elif state.inference:
        z._inference = True
    return z


# The parts of the general path


def _dispatch_annotated(
    quick: Callable[..., Any], op: OpExpr, inputs: tuple[Tensor, ...], attrs: dict[str, Any]
) -> Any:
    """Go the quick way with nothing but grad mode set, then annotate the node that it recorded."""
    state = local.state
    if state.interpreter is not None:
        return dispatch(op, inputs, attrs)
    for x in inputs:
        if x._view is not None:
            x.refresh_view()
    local.state = state.bare()
    try:
        y = quick(op, *inputs, attrs)
    finally:
        local.state = state
    for made in y if type(y) is tuple else (y,):
        if made._edge is not None:  # several outputs have one node
            annotate(made._edge[0], state)
            break
    return y


def _made(op: OpExpr, inputs: tuple[Any, ...], out: Any, attrs: dict[str, Any]) -> Any:
    """Wrap and record what a kernel made of arrays on the CPU; `to_device` puts it elsewhere."""
    state = local.state
    outputs = []
    for array in out if type(out) is tuple else (out,):
        y = _new(Tensor)
        y._data = np.asarray(array) if isinstance(array, np.generic) else array
        outputs.append(y)
    source = None
    if op.aliases:
        source = inputs[op.schema.inputs.index(op.schema.view_of)]
        origin = SPLIT if state.grad_enabled else NO_GRAD
        for y in outputs:
            link_view(op, source, y, attrs, origin)
    if state.inference:
        for y in outputs:
            y._inference = source is None or source._inference
    if state.grad_enabled:
        edges = []
        needs_grad = False
        for x in inputs:
            edge = None
            if x is not None:
                if x._view is not None:
                    x.refresh_view()
                edge = x._edge
            if edge is None:
                edges.append(NO_EDGE)
            else:
                edges.append(edge)
                needs_grad = True
        if needs_grad:
            record(op, inputs, tuple(outputs), attrs, tuple(edges))
    return tuple(outputs) if type(out) is tuple else outputs[0]


def _grad_function(op: OpExpr) -> OpExprGradFunction:
    return op.find_grad_function() or MissingGradFunction(op)


def record(
    op: OpExpr,
    inputs: tuple[Any, ...],
    outputs: tuple[Tensor, ...],
    attrs: dict[str, Any],
    edges: tuple[Edge, ...],
) -> None:
    """Make the node of a call and join its outputs to it."""
    kinds = [y._data.dtype.kind for y in outputs]
    if "f" not in kinds and "c" not in kinds:
        return
    function = op.grad_function or _grad_function(op)
    needs = []
    number = 0
    for sender, _ in edges:
        needs.append(sender is not None)
        if sender is not None and sender.topological_nr >= number:
            number = sender.topological_nr + 1
    saved, attrs = function.save(inputs, outputs, attrs, tuple(needs))
    if "c" in kinds:
        function = function.conjugated()
    first = outputs[0]._data
    node = make_node(function, edges, number, saved, attrs, first.shape, first.dtype)
    if len(outputs) > 1 or type(first) is not ndarray:
        node.infos = [
            tensor_info(y) if kind in "fc" else None for y, kind in zip(outputs, kinds, strict=True)
        ]
    if local.state.general:
        annotate(node, local.state, outputs)
    attach = rebase_history if op.schema.mutates else Tensor.set_history
    for i, y in enumerate(outputs):
        if kinds[i] in "fc":
            attach(y, (node, i))


def rebase_history(x: Tensor, edge: Edge) -> None:
    """Give a tensor that was written the history of its new content.

    A write through a view is a write to its base: there it is recorded as the op `copy_slices`,
    which has run already, and the view's own history follows from that.
    """
    view = x._view
    if view is None:
        x.set_history(edge)
        return
    base = view.base
    attrs = {"chain": view.chain(), "order": memory_order(base._data)}
    record(_COPY_SLICES, (base, x), (base,), attrs, (base._edge or NO_EDGE, edge))
    replay_view(x)


def replay_view(x: Tensor) -> None:
    """Take a view from its base once more, for the history that this gives."""
    view = x._view
    assert view is not None
    if view.origin is not None:
        raise out_of_date_error(x, view.origin)
    before = local.state
    local.state = with_grad_mode(True)
    try:
        y = view.base
        for op, attrs in view.chain():
            y = dispatch1(op, y, attrs)
    finally:
        local.state = before
    if not same_memory(x._data, y._data):
        raise InplaceError(
            f"a view of shape {x.shape} cannot be taken anew from its base of shape "
            f"{view.base.shape}, which was written in place; clone() the view first"
        )
    x.set_history(y._edge)
    view.version = x.memory.version


Tensor.replay_view = replay_view


def _common_device(op: OpExpr, inputs: tuple[Any, ...], arrays: list[Any]) -> Device:
    """Return the one device of the inputs; raise `DeviceError` naming two that differ."""
    found: Device | None = None
    for i, array in enumerate(arrays):
        if array is None:
            continue
        if getattr(array, "is_symbolic", False):
            raise CaptureError(
                f"{op.op_type_name}(): {inputs[i].name or 'a symbolic tensor'!r} is a variable of "
                "a Program and has no value of its own; compute with it under program_guard"
            )
        if inputs[i].is_global:  # the default stack has an interpreter for them
            raise global_tensor_error(op.op_type_name)
        device = CPU if isinstance(array, ndarray) else inputs[i].device
        if found is None:
            found = device
        elif found != device:
            names = (*op.schema.inputs, *[f"{op.schema.variadic}[{k}]" for k in range(i + 1)])
            raise arg_error(
                op.op_type_name,
                names[i],
                expected=f"device {found}, that of the arguments before it",
                got=device,
                hint=f"move it with .to('{found}')",
                kind=DeviceError,
            )
    assert found is not None
    return found


def global_tensor_error(op: str) -> CaptureError:
    """Build the error for a global tensor where ops are recorded."""
    return CaptureError(
        f"{op}(): global tensors run eagerly, not inside of flow.compile or of a Program; use them "
        "outside, or compile what works on their parts (to_local())"
    )


def _not_a_tensor_error(op: OpExpr, value: Any) -> ArgumentTypeError:
    error = arg_error(
        op.op_type_name,
        "input",
        expected="a Tensor",
        got=type(value).__name__,
        hint="wrap the value with flow.tensor(...)",
        kind=ArgumentTypeError,
    )
    assert isinstance(error, ArgumentTypeError)
    return error


def explain(op: OpExpr, inputs: tuple[Any, ...], error: Exception) -> Exception:
    """Turn a failed broadcast into a `ShapeError`; add the op to any other error of a kernel."""
    shapes = [x.shape for x in inputs if x is not None]
    refused = type(error) is ValueError  # by NumPy; our own errors say what is wrong
    if refused and len(shapes) > 1 and not _broadcast(shapes):
        return arg_error(
            op.op_type_name,
            op.schema.inputs[-1] if op.schema.inputs else "tensors",
            expected="shapes that broadcast together",
            got=" and ".join(map(str, shapes)),
            hint="make the sizes equal or 1, counted from the last dimension",
            kind=ShapeError,
        ).with_traceback(error.__traceback__)
    error.add_note(f"in the kernel of op {op.op_type_name!r}, input shapes {shapes}")
    return error


def _broadcast(shapes: list[tuple[int, ...]]) -> bool:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


def promote_operands(op: OpExpr, x: Any, y: Any) -> tuple[Tensor, Tensor] | None:
    """Make tensors of two operands and bring them to the dtype in which they meet.

    None says that the op computes them in float32: see `rounded_once`.
    """
    if isinstance(x, Tensor) and (type(y) is float or type(y) is int):
        dtype = x._data.dtype
        if dtype.char in "fdFD" or (type(y) is int and dtype.kind in "iu"):
            return x, number_tensor(y, dtype, CPU if type(x._data) is ndarray else x.device)
    operands = promote(op.op_type_name, x, y)
    return (operands[0], operands[1]) if operands else None


# The ops that PyTorch computes in float32 where a half meets a number.
_SCALES = ("mul", "div")


def _rounded(x: Any) -> bool:
    """Return whether an operand is a number, or a 0-d tensor, that float16 may have to round."""
    if isinstance(x, Tensor):
        return bool(x._data.ndim == 0 and x._data.dtype.char not in "?eE")
    return not is_half(x)


def rounded_once(function: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    """Call a function with tensors of float16 as float32, and round its result.

    So a number beside a half need not be one: 100 / 1e5 is 0.001, though in float16 1e5 is inf.
    """
    wide = [dispatch1(_CAST, x, _WIDE) if isinstance(x, Tensor) else x for x in operands]
    chars = [x._data.dtype.char for x in operands if isinstance(x, Tensor)]
    half = {"dtype": bfloat16()} if CHAR in chars else _HALF
    return dispatch1(_CAST, function(*wide, **options), half)


def promote(op: str, *operands: Any) -> list[Tensor]:
    """Make tensors of operands (tensors, arrays, scalars) and cast them to their common dtype.

    PyTorch's rules: tensors with dimensions outrank 0-d tensors, which outrank scalars. An empty
    list says that the op is for `rounded_once`.
    """
    tensors: list[Any] = []
    scalars = []
    for i, x in enumerate(operands):
        if isinstance(x, ndarray):
            x = make_tensor(x)
        if isinstance(x, SCALAR_TYPES):
            scalars.append(x)
        elif not isinstance(x, Tensor):
            raise arg_error(
                op,
                ("input", "other")[i] if i < 2 and len(operands) == 2 else f"operand {i}",
                expected="a Tensor or a number",
                got=type(x).__name__,
                hint="wrap the value with flow.tensor(...)",
                kind=ArgumentTypeError,
            )
        tensors.append(x)
    arrays = [(x._data.dtype, x._data.ndim) for x in tensors if isinstance(x, Tensor)]
    dtype = result_dtype(arrays, scalars)
    if dtype.char in "eE" and op in _SCALES:
        numbers = dtype.char == CHAR and bool(scalars)
        if numbers or any(map(_rounded, tensors)):
            return []
    device = next((x.device for x in tensors if isinstance(x, Tensor)), CPU)
    return [
        number_tensor(x, dtype, device)
        if not isinstance(x, Tensor)
        else x
        if x._data.dtype is dtype
        else dispatch1(_CAST, x, {"dtype": dtype})
        for x in tensors
    ]
