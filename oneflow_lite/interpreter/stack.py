"""The interpreters, and the stack of a thread.

At the bottom stands `AutogradInterpreter(EagerInterpreter())`: EagerInterpreter runs the kernel,
and AutogradInterpreter records a node when an input requires a gradient. `push_interpreter` puts an
interpreter on top.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from sys import modules
from typing import Any

import numpy as np

from oneflow_lite.arrays.bfloat16_arrays import adopted
from oneflow_lite.arrays.device import CPU, Device, on_device
from oneflow_lite.arrays.meta_arrays import MetaArray
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, arg_error
from oneflow_lite.interpreter.explain import (
    explain,
    global_tensor_error,
    not_a_tensor_error,
    symbolic_error,
    two_devices_error,
)
from oneflow_lite.interpreter.history import edges_of, grad_function_of, record
from oneflow_lite.interpreter.promotion import promote_operands, rounded_once
from oneflow_lite.interpreter.widening import widened
from oneflow_lite.ops.op_expr import OpExpr
from oneflow_lite.tensors.caller_warnings import CallerWarning
from oneflow_lite.tensors.mode import StateChange, local
from oneflow_lite.tensors.node import NO_EDGE, FunctionNode, make_node
from oneflow_lite.tensors.scalars import scalars
from oneflow_lite.tensors.storage import NO_GRAD, SPLIT, Origin
from oneflow_lite.tensors.tensor import Tensor
from oneflow_lite.tensors.views import check_memory, check_writable, link_view

ndarray = np.ndarray
NO_ATTRS: dict[str, Any] = {}
_new = Tensor.__new__
_REFUSE = ("oneflow_lite", "numpy", "scipy", "cupy", "numba")  # packages of kernels


class Interpreter:
    """Base of interpreters. A class of your own overrides `apply`, which sees every op.

    `self.inner` is the interpreter below it, which runs the op in the end. The other methods take
    note of events that are no ops; each hands on to `inner`.

    A functor hands an op to the top of the stack at one of three doors: `enter`, `enter1` or
    `enter2`. All three come to `apply`; `AutogradInterpreter` overrides them to be quicker.
    """

    inner: Interpreter | None = None

    def apply(self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Run one op: tensors (or None) and attributes in, a Tensor or a tuple of them out."""
        assert self.inner is not None
        return self.inner.apply(op_expr, inputs, attrs)

    def enter(
        self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any] = NO_ATTRS
    ) -> Any:
        """Take an op of any number of inputs; the ops that `apply` dispatches go to `inner`."""
        result = widened(self.enter, op_expr, inputs, attrs)
        if result is not None:
            return result
        state, below = local.state, self.inner
        local.state = state.replace(interpreter=None if below is DEFAULT_STACK else below)
        try:
            return self.apply(op_expr, inputs, attrs)
        finally:
            local.state = state

    def enter1(self, op_expr: OpExpr, x: Tensor, attrs: dict[str, Any] = NO_ATTRS) -> Any:
        """Take an op of one tensor."""
        if not isinstance(x, Tensor):
            raise not_a_tensor_error(op_expr.op_type_name, "input", x, "a Tensor")
        return self.enter(op_expr, (x,), attrs)

    def enter2(self, op_expr: OpExpr, x: Any, y: Any, attrs: dict[str, Any] = NO_ATTRS) -> Any:
        """Take an op of two operands, tensors or numbers, that meet in one dtype."""
        operands = promote_operands(self.enter1, op_expr, x, y)
        if operands is None:
            return rounded_once(self.enter1, self.enter2, op_expr, x, y, attrs)
        return self.enter(op_expr, operands, attrs)

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
        written = op_expr.schema.written
        try:
            if device is CPU:
                if op_expr.run_in_eager is None:
                    op_expr.on_cpu()
                run: Any = op_expr.run_in_eager
                out = run(*arrays, **attrs)
            else:
                with on_device(device) as xp:
                    out = self.device_kernel(op_expr, xp)(*arrays, **attrs)
            for i in written:
                if inputs[i] is not None:
                    (inputs[i]._storage or inputs[i].memory).version += 1
        except BaseException as error:
            count_after(op_expr, inputs, error)
            if isinstance(error, Exception):
                raise explain(op_expr, inputs, error, attrs) from error.__cause__
            raise
        return _wrapped(op_expr, inputs, out, attrs)

    def device_kernel(self, op_expr: OpExpr, xp: Any) -> Callable[..., Any]:
        """Return the kernel that runs on devices other than the CPU."""
        return op_expr.kernel(xp)


def _common_device(op: OpExpr, inputs: tuple[Any, ...], arrays: list[Any]) -> Device:
    """Return the one device of the inputs; raise `DeviceError` naming two that differ."""
    device: Device | None = None
    if any([type(array) is MetaArray for array in arrays]):  # numbers on the CPU may be beside
        written = op.schema.written
        arrays = [
            None if isinstance(array, ndarray) and not array.ndim and i not in written else array
            for i, array in enumerate(arrays)
        ]
    for i, (x, array) in enumerate(zip(inputs, arrays, strict=True)):
        if array is None:
            continue
        if getattr(array, "is_symbolic", False):
            raise symbolic_error(op.op_type_name, x)
        if x.is_global:  # the default stack has an interpreter for them
            raise global_tensor_error(op.op_type_name)
        here = CPU if isinstance(array, ndarray) else x.device
        if device is None:
            device = here
        elif device != here:
            raise two_devices_error(op, i, device, here)
    assert device is not None
    return device


def count_writes(op: OpExpr, inputs: Sequence[Any]) -> None:
    """Count the writes of an op to its inputs."""
    for i in op.schema.written:
        x = inputs[i]
        if x is not None:
            (x._storage or x.memory).version += 1


def count_after(op: OpExpr, inputs: Sequence[Any], error: BaseException) -> None:
    """Count the writes of an op that was stopped, for they may have been made.

    A write that is counted twice is harmless; one that is not counted leaves saved tensors stale,
    and nobody notices. But a kernel of the package that refuses its arguments has written nothing:
    its error comes from a frame of the package, or of NumPy. That of a handler of a signal, or of a
    kernel of the user's, comes from another one.
    """
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    module = "" if step is None else str(step.tb_frame.f_globals.get("__name__"))
    if not isinstance(error, Exception) or module.partition(".")[0] not in _REFUSE:
        count_writes(op, inputs)


def _wrapped(op: OpExpr, inputs: tuple[Any, ...], out: Any, attrs: dict[str, Any]) -> Any:
    """Make tensors of what a kernel returned.

    An array that the kernel wrote is the input again; the output of a view op is linked to it.
    """
    schema, state = op.schema, local.state
    written = schema.written
    several = type(out) is tuple
    source = origin = None
    if schema.view_of is not None:
        source = inputs[schema.inputs.index(schema.view_of)]
        if not state.grad_enabled:
            origin = NO_GRAD
        elif several:
            origin = SPLIT
    outputs = []
    for array in out if several else (out,):
        for i in written:
            if inputs[i] is not None and array is inputs[i]._data:
                outputs.append(inputs[i])
                break
        else:
            outputs.append(_wrap(op, array, source, origin, attrs, state.inference))
    return tuple(outputs) if several else outputs[0]


def _wrap(
    op: OpExpr,
    array: Any,
    source: Any,
    origin: Origin | None,
    attrs: dict[str, Any],
    inference: bool,
) -> Tensor:
    y = _new(Tensor)
    if type(array) is not ndarray or array.dtype.kind == "V":  # a NumPy scalar, CuPy, bfloat16
        array = adopted(np.asarray(array) if isinstance(array, np.generic) else array)
    y._data = array
    if source is not None:
        link_view(op, source, y, attrs, origin)
    if inference and y._view is None:  # a view is as its source
        y._inference = True
    return y


def _apart(inputs: tuple[Any, ...]) -> bool:
    """Return whether no input has a history or is a view, so that a write leaves nothing behind."""
    return all([x is None or (x._edge is None and x._view is None) for x in inputs])


class AutogradInterpreter(Interpreter):
    """Lets the inner interpreter run the op, and records a node when an input needs a gradient.

    `apply` is the walk itself. The doors are the same walk written out for arrays on the CPU with
    nothing unusual about the thread, because most ops are of that kind: a loop over inputs and a
    call of the inner interpreter cost half as much again. Each leaves for `apply` as soon as
    anything is unusual. `tests/interpreter/test_doors.py` compares them op by op.
    """

    def __init__(self, inner: Interpreter) -> None:
        self.inner: Interpreter = inner

    def apply(self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Run one op and record it."""
        written = op_expr.schema.written
        if not local.state.grad_enabled:
            for i in written:
                if inputs[i] is not None:
                    check_memory(op_expr.op_type_name, inputs[i])
            return self.inner.apply(op_expr, inputs, attrs)
        edges, needs_grad = edges_of(inputs)
        for i in written:
            if inputs[i] is not None:
                check_writable(op_expr.op_type_name, inputs[i], needs_grad)
        result = self.inner.apply(op_expr, inputs, attrs)
        if needs_grad:
            record(op_expr, inputs, result if type(result) is tuple else (result,), attrs, edges)
        return result

    def enter(
        self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any] = NO_ATTRS
    ) -> Any:
        """Take an op of any number of inputs and outputs."""
        state = local.state
        run, written = op_expr.run_on_cpu, None
        if run is None and not op_expr.draws and (not state.grad_enabled or _apart(inputs)):
            run, written = op_expr.run_in_eager, op_expr.schema.written  # as an optimizer's update
        if run is None or state.general or op_expr.aliases or not inputs:
            return self._apply(op_expr, inputs, attrs)
        arrays = []
        for x in inputs:
            array = None if x is None else x._data
            if type(array) is not ndarray and array is not None:
                return self._apply(op_expr, inputs, attrs)
            arrays.append(array)
        for i in written or ():
            if inputs[i] is not None:
                check_memory(op_expr.op_type_name, inputs[i])
        try:
            out = run(*arrays, **attrs)
            for i in written or ():
                if inputs[i] is not None:
                    (inputs[i]._storage or inputs[i].memory).version += 1
        except BaseException as error:
            count_after(op_expr, inputs, error)
            if isinstance(error, Exception):
                raise explain(op_expr, inputs, error, attrs) from error.__cause__
            raise
        if written is not None or type(out) is not ndarray:
            return self._recorded(op_expr, inputs, out, attrs)
        y = _new(Tensor)
        y._data = out
        if state.grad_enabled:
            edges, needs_grad = edges_of(inputs)
            if needs_grad:
                record(op_expr, inputs, (y,), attrs, edges)
        if state.inference:
            y._inference = True
        return y

    def _apply(self, op: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        top = local.state.interpreter
        if top is not None and top is not self:  # pushed on top of the default stack
            return top.enter(op, inputs, attrs)
        if "ml_dtypes" in modules:
            result = widened(self.enter, op, inputs, attrs)
            if result is not None:
                return result
        return self.apply(op, inputs, attrs)

    def _recorded(
        self, op: OpExpr, inputs: tuple[Any, ...], out: Any, attrs: dict[str, Any]
    ) -> Any:
        """Wrap what a kernel made of arrays on the CPU, and record it."""
        result = _wrapped(op, inputs, out, attrs)
        if local.state.grad_enabled:
            edges, needs_grad = edges_of(inputs)
            if needs_grad:
                record(op, inputs, result if type(result) is tuple else (result,), attrs, edges)
        return result

    def enter1(self, op_expr: OpExpr, x: Tensor, attrs: dict[str, Any] = NO_ATTRS) -> Any:
        """Take an op of one tensor."""
        state = local.state
        try:
            data = x._data
        except AttributeError:
            raise not_a_tensor_error(op_expr.op_type_name, "input", x, "a Tensor") from None
        run = op_expr.run_on_cpu
        if run is None or type(data) is not ndarray or state.general:
            top = state.interpreter
            if top is not None and top is not self:
                return top.enter1(op_expr, x, attrs)
            return self._apply(op_expr, (x,), attrs)
        try:
            out = run(data, **attrs) if attrs else run(data)
        except Exception as error:
            raise explain(op_expr, (x,), error, attrs) from error.__cause__
        if type(out) is not ndarray:
            if type(out) is tuple:
                return self._recorded(op_expr, (x,), out, attrs)
            out = out if isinstance(out, ndarray) else np.asarray(out)
        y = _new(Tensor)
        y._data = out
        if op_expr.aliases:
            link_view(op_expr, x, y, attrs, None if state.grad_enabled else NO_GRAD)
        if state.grad_enabled:
            if x._view is not None:
                x.refresh_view()
            edge = x._edge
            if edge is not None:
                dtype = out.dtype
                if dtype.kind == "f":
                    function = op_expr.grad_function or grad_function_of(op_expr)
                    saver = function.savers[1]
                    saved: tuple[Any, ...] = ()
                    if saver is not None:
                        saved, attrs = saver((x,), (y,), attrs)
                    number = edge[0].topological_nr + 1
                    node = make_node(function, (edge,), number, saved, attrs, out.shape, dtype)
                    y._edge = (node, 0)
                elif dtype.kind == "c":
                    record(op_expr, (x,), (y,), attrs, (edge,))
        if state.inference and y._view is None:
            y._inference = True
        return y

    def enter2(self, op_expr: OpExpr, x: Any, y: Any, attrs: dict[str, Any] = NO_ATTRS) -> Any:
        """Take an op of two operands, tensors or numbers, that meet in one dtype."""
        state = local.state
        try:
            a = x._data
            # A number that was met before in this dtype needs no promotion.
            if type(y) is float and type(a) is ndarray and a.dtype.kind == "f":
                y = scalars.get((y, a.dtype), y)
            b = y._data
            if a.dtype is not b.dtype:
                raise AttributeError
        except AttributeError:
            operands = promote_operands(self.enter1, op_expr, x, y)
            if operands is None:
                return rounded_once(self.enter1, self.enter2, op_expr, x, y, attrs)
            x, y = operands
            a = x._data
            b = y._data
        run = op_expr.run_on_cpu
        if run is None or type(a) is not ndarray or type(b) is not ndarray or state.general:
            top = state.interpreter
            if top is not None and top is not self:
                return top.enter2(op_expr, x, y, attrs)
            return self._apply(op_expr, (x, y), attrs)
        try:
            out = run(a, b, **attrs) if attrs else run(a, b)
        except Exception as error:
            raise explain(op_expr, (x, y), error, attrs) from error.__cause__
        if type(out) is not ndarray:
            if type(out) is tuple:
                return self._recorded(op_expr, (x, y), out, attrs)
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
                    function = op_expr.grad_function or grad_function_of(op_expr)
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
                    record(op_expr, (x, y), (z,), attrs, (x_edge or NO_EDGE, y_edge or NO_EDGE))
        if state.inference:
            z._inference = True
        return z


DEFAULT_STACK = AutogradInterpreter(EagerInterpreter())


def add_layer(kind: Callable[[Interpreter], Interpreter]) -> None:
    """Put an interpreter between the default AutogradInterpreter and the one below it, for good.

    It is for a kind of array that NumPy does not know, as a global tensor has. All threads share
    it. Ops on NumPy's arrays pass it by.
    """
    below: Interpreter | None = DEFAULT_STACK.inner
    while below is not None:
        if type(below) is kind:
            return
        below = below.inner
    DEFAULT_STACK.inner = kind(DEFAULT_STACK.inner)


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
