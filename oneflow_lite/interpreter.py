"""The way of one call, from functor to node: `dispatch`, the interpreters, and their stack.

A functor calls `dispatch(op_expr, inputs, attrs)`. The thread's top interpreter takes it: at first
`AutogradInterpreter(EagerInterpreter())`, which runs the kernel and records a node when an input
requires a gradient. `dispatch1` and `dispatch2` are the same walk written out for one and for two
tensors on the CPU, because most ops are of that shape and a loop over inputs costs half as much
again; whatever is unusual leaves them for the general path.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from oneflow_lite.autograd.function_node import NO_EDGE, Edge, TensorInfo, make_node
from oneflow_lite.autograd.grad_function import MissingGradFunction, OpExprGradFunction
from oneflow_lite.autograd.mode import ThreadState, local
from oneflow_lite.device import CPU, Device, on_device
from oneflow_lite.dtype import SCALAR_TYPES, result_dtype
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    InplaceError,
    ShapeError,
    bad_argument,
)
from oneflow_lite.op_expr import OpExpr, op_expr
from oneflow_lite.scalars import scalar_tensor, scalars as _scalars
from oneflow_lite.storage import ViewInfo
from oneflow_lite.tensor import Tensor, make_tensor

ndarray = np.ndarray
NO_ATTRS: dict[str, Any] = {}
_new = Tensor.__new__
_CAST = op_expr("cast")


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
                result = op_expr.kernel(np)(*arrays, **attrs)
            else:
                with on_device(device) as xp:
                    result = op_expr.kernel(xp)(*arrays, **attrs)
        except Exception as error:
            raise explain(op_expr, inputs, error) from error.__cause__
        schema = op_expr.schema
        for i in schema.written:
            if inputs[i] is not None:
                (inputs[i]._storage or inputs[i].storage).version += 1
        if type(result) is tuple:
            return tuple([_wrap(op_expr, inputs, array, attrs) for array in result])
        return _wrap(op_expr, inputs, result, attrs)


def _wrap(op: OpExpr, inputs: tuple[Any, ...], array: Any, attrs: dict[str, Any]) -> Tensor:
    """Make a tensor of what a kernel returned; an input that it wrote is that input again."""
    schema = op.schema
    for i in schema.written:
        if inputs[i] is not None and array is inputs[i]._data:
            return inputs[i]  # type: ignore[no-any-return]
    y = make_tensor(np.asarray(array) if isinstance(array, np.generic) else array)
    if schema.view_of is not None:
        link_view(op, inputs[schema.inputs.index(schema.view_of)], y, attrs)
    return y


class AutogradInterpreter(Interpreter):
    """Lets the inner interpreter run the op, and records a node when an input needs a gradient."""

    def __init__(self, inner: Interpreter) -> None:
        self.inner: Interpreter = inner

    def apply(self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Run one op and record it."""
        if not local.state.grad_enabled:
            return self.inner.apply(op_expr, inputs, attrs)
        edges = []
        needs_grad = False
        for x in inputs:
            if x is None or (x._edge is None and x._view is None):
                edges.append(NO_EDGE)
                continue
            x.check_view()
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
        raise bad_argument(
            ArgumentTypeError,
            "push_interpreter",
            "interpreter",
            expected="an instance of flow.Interpreter",
            got=repr(interpreter),
            mend="derive the class from flow.Interpreter and pass an instance",
        )
    if interpreter.inner is not None:
        raise ArgumentError(
            "push_interpreter(): this interpreter is on the stack already, here or in another "
            "thread; push another instance"
        )
    before = local.state
    interpreter.inner = current_interpreter()
    local.state = ThreadState(before.grad_enabled, interpreter)
    try:
        yield interpreter
    finally:
        local.state = before
        interpreter.inner = None


def dispatch(op: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any] = NO_ATTRS) -> Any:
    """Hand an op to the top interpreter: any number of inputs and outputs."""
    state = local.state
    top = state.interpreter
    if top is None:
        return DEFAULT_STACK.apply(op, inputs, attrs)
    # While an interpreter works, its own ops go to the one below it.
    below = top.inner
    local.state = ThreadState(state.grad_enabled, None if below is DEFAULT_STACK else below)
    try:
        return top.apply(op, inputs, attrs)
    finally:
        local.state = state


def dispatch1(op: OpExpr, x: Tensor, attrs: dict[str, Any] = NO_ATTRS) -> Any:
    """Dispatch an op with one tensor in and one tensor out."""
    state = local.state
    try:
        data = x._data
    except AttributeError:
        raise _not_a_tensor(op, x) from None
    run = op.run_on_cpu
    if run is None or type(data) is not ndarray or state.interpreter is not None:
        return dispatch(op, (x,), attrs)
    try:
        out = run(data, **attrs) if attrs else run(data)
    except Exception as error:
        raise explain(op, (x,), error) from error.__cause__
    if type(out) is not ndarray:
        out = np.asarray(out)
    y = _new(Tensor)
    y._data = out
    if op.aliases:
        link_view(op, x, y, attrs)
    if state.grad_enabled:
        if x._view is not None:
            x.check_view()
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
        x, y = promote_operands(op, x, y)
        a = x._data
        b = y._data
    run = op.run_on_cpu
    if (
        run is None
        or type(a) is not ndarray
        or type(b) is not ndarray
        or state.interpreter is not None
    ):
        return dispatch(op, (x, y), attrs)
    try:
        out = run(a, b, **attrs) if attrs else run(a, b)
    except Exception as error:
        raise explain(op, (x, y), error) from error.__cause__
    if type(out) is not ndarray:
        out = np.asarray(out)
    z = _new(Tensor)
    z._data = out
    if state.grad_enabled:
        if x._view is not None:
            x.check_view()
        if y._view is not None:
            y.check_view()
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
    return z


# The parts of the general path


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
    function = _grad_function(op)
    needs = tuple([edge[0] is not None for edge in edges])
    saved, attrs = function.save(inputs, outputs, attrs, needs)
    if "c" in kinds:
        function = function.conjugated()
    number = 1 + max([edge[0].topological_nr for edge in edges if edge[0] is not None])
    first = outputs[0]._data
    node = make_node(function, edges, number, saved, attrs, first.shape, first.dtype)
    if len(outputs) > 1 or type(first) is not ndarray:
        node.infos = [
            TensorInfo(y.shape, y.dtype, y.device) if kind in "fc" else None
            for y, kind in zip(outputs, kinds, strict=True)
        ]
    for i, y in enumerate(outputs):
        if kinds[i] in "fc":
            rebase_history(y, (node, i))


def rebase_history(x: Tensor, edge: Edge) -> None:
    """Give a tensor a new place in the graph; `retain_grad` moves with it, hooks stay behind."""
    before = x._edge
    x._edge = edge
    if before is not None and before[0].metas is not None:
        meta = before[0].metas[before[1]]
        if meta is not None and meta.retain_grad:
            meta.retain_grad = False
            edge[0].output_meta(edge[1]).retain_grad = True


def link_view(op: OpExpr, x: Tensor, y: Tensor, attrs: dict[str, Any]) -> None:
    """Make `y` a view of `x` when the kernel returned memory of `x` (reshape may have copied)."""
    owner = y._data.base
    if y._data is not x._data and (
        owner is None or not (owner is x._data or owner is x._data.base)
    ):
        return
    y._storage = x.storage
    parent = x._view
    base = x if parent is None else parent.base
    y._view = ViewInfo(base, base._edge, parent, op, attrs)


def check_writable(op: str, x: Tensor, needs_grad: bool = False) -> None:
    """Raise `InplaceError` when autograd could not follow an in-place write to `x`.

    `needs_grad` says that what is written requires a gradient.
    """
    view = x._view
    base: Any = x if view is None else view.base
    if base._edge is not None and base.is_leaf:
        what = "a leaf that requires a gradient" if view is None else "a view of such a leaf"
        raise InplaceError(
            f"{op}(): {what} was to be written in place; do it under no_grad(), or use the "
            "out-of-place op"
        )
    if view is not None and (needs_grad or x._edge is not None or base._edge is not None):
        raise InplaceError(
            f"{op}(): a view (shape {x.shape}) whose base is part of a graph was to be written in "
            "place; write to the base, as base[index] = value, or clone() the view first"
        )
    check_memory(op, x)


def check_memory(op: str, x: Tensor) -> None:
    """Raise `InplaceError` when the memory of `x` cannot be written, recorded or not."""
    array = x._data
    if isinstance(array, ndarray):
        writable = array.flags.writeable
    else:  # CuPy has no such flag
        pairs = zip(array.strides, array.shape, strict=True)
        writable = all(stride != 0 or size < 2 for stride, size in pairs)
    if not writable:
        raise InplaceError(
            f"{op}(): the memory of the tensor (shape {x.shape}) is read-only or shared between "
            "its own elements, as after expand(); clone() it first"
        )


def _common_device(op: OpExpr, inputs: tuple[Any, ...], arrays: list[Any]) -> Device:
    """Return the one device of the inputs; raise `DeviceError` naming two that differ."""
    found: Device | None = None
    for i, array in enumerate(arrays):
        if array is None:
            continue
        device = CPU if isinstance(array, ndarray) else inputs[i].device
        if found is None:
            found = device
        elif found != device:
            names = (*op.schema.inputs, *[f"{op.schema.variadic}[{k}]" for k in range(i + 1)])
            raise bad_argument(
                DeviceError,
                op.op_type_name,
                names[i],
                expected=f"device {found}, that of the arguments before it",
                got=device,
                mend=f"move it with .to('{found}')",
            )
    assert found is not None
    return found


def _not_a_tensor(op: OpExpr, value: Any) -> ArgumentTypeError:
    error = bad_argument(
        ArgumentTypeError,
        op.op_type_name,
        "input",
        expected="a Tensor",
        got=type(value).__name__,
        mend="wrap the value with flow.tensor(...)",
    )
    assert isinstance(error, ArgumentTypeError)
    return error


def explain(op: OpExpr, inputs: tuple[Any, ...], error: Exception) -> Exception:
    """Turn a failed broadcast into a `ShapeError`; add the op to any other error of a kernel."""
    shapes = [x.shape for x in inputs if x is not None]
    if isinstance(error, ValueError) and len(shapes) > 1 and not _broadcast(shapes):
        return bad_argument(
            ShapeError,
            op.op_type_name,
            op.schema.inputs[-1] if op.schema.inputs else "tensors",
            expected="shapes that broadcast together",
            got=" and ".join(map(str, shapes)),
            mend="make the sizes equal or 1, counted from the last dimension",
        ).with_traceback(error.__traceback__)
    error.add_note(f"in the kernel of op {op.op_type_name!r}, input shapes {shapes}")
    return error


def _broadcast(shapes: list[tuple[int, ...]]) -> bool:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


def promote_operands(op: OpExpr, x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Make tensors of two operands and bring them to the dtype in which they meet."""
    if isinstance(x, Tensor) and (type(y) is float or type(y) is int):
        dtype = x._data.dtype
        if dtype.kind == "f" or dtype.kind == "c" or (type(y) is int and dtype.kind in "iu"):
            return x, scalar_tensor(y, dtype, CPU if type(x._data) is ndarray else x.device)
    operands = promote(op.op_type_name, x, y)
    return operands[0], operands[1]


def promote(op: str, *operands: Any) -> list[Tensor]:
    """Make tensors of operands (tensors, arrays, scalars) and cast them to their common dtype.

    PyTorch's rules: tensors with dimensions outrank 0-d tensors, which outrank scalars.
    """
    tensors: list[Any] = []
    scalars = []
    for i, x in enumerate(operands):
        if isinstance(x, ndarray):
            x = make_tensor(x)
        if isinstance(x, SCALAR_TYPES):
            scalars.append(x)
        elif not isinstance(x, Tensor):
            raise bad_argument(
                ArgumentTypeError,
                op,
                ("input", "other")[i] if i < 2 and len(operands) == 2 else f"operand {i}",
                expected="a Tensor or a number",
                got=type(x).__name__,
                mend="wrap the value with flow.tensor(...)",
            )
        tensors.append(x)
    arrays = [(x._data.dtype, x._data.ndim) for x in tensors if isinstance(x, Tensor)]
    dtype = result_dtype(arrays, scalars)
    device = next((x.device for x in tensors if isinstance(x, Tensor)), CPU)
    return [
        scalar_tensor(x, dtype, device)
        if not isinstance(x, Tensor)
        else x
        if x._data.dtype is dtype
        else dispatch1(_CAST, x, {"dtype": dtype})
        for x in tensors
    ]
