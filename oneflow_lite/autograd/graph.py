"""`flow.autograd.graph`: nodes, hooks on saved tensors, and a picture of a graph."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from oneflow_lite.arrays.device import to_host
from oneflow_lite.arrays.locks import make_lock
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.autograd.engine.gradient_edge import GradientEdge, get_gradient_edge
from oneflow_lite.autograd.tools.dot import to_dot
from oneflow_lite.errors import (
    ArgumentError,
    HookError,
    StaleTensorError,
    arg_error,
)
from oneflow_lite.interpreter.stack import Interpreter, push_interpreter
from oneflow_lite.ops.exposure import expose
from oneflow_lite.ops.op_expr import OpExpr
from oneflow_lite.tensors.hooks import RemovableHandle, check_callable
from oneflow_lite.tensors.mode import StateChange, local
from oneflow_lite.tensors.node import FunctionNode
from oneflow_lite.tensors.storage import Storage
from oneflow_lite.tensors.tensor import Tensor, make_tensor

expose(globals())

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "to_dot",
]

Node = FunctionNode


class saved_tensors_hooks(StateChange):
    """Pack the tensors that nodes save, and unpack them for a gradient: a context manager.

    Parameters
    ----------
    pack_hook : callable
        Called with each tensor that a node saves while the block is entered, without recording.
        Its result is kept instead. It may not write to the tensor.
    unpack_hook : callable
        Called with the result of `pack_hook`, each time a gradient needs the tensor; returns a
        tensor with the same content. The version of the tensor is then not checked.

    Raises
    ------
    HookError
        On entering, inside `disable_saved_tensors_hooks`; and for a `pack_hook` that writes to its
        tensor.

    Notes
    -----
    Blocks nest: the hooks of the innermost block count. A pack hook that returns an output of the
    op itself, and not a copy or a detached tensor, makes a reference cycle.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0], requires_grad=True)
    >>> with flow.autograd.graph.saved_tensors_hooks(lambda t: t.numpy().tolist(), flow.tensor):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        for hook in (pack_hook, unpack_hook):
            check_callable("saved_tensors_hooks", hook)
        super().__init__(saved_hooks=(pack_hook, unpack_hook))

    def __enter__(self) -> Any:
        reason = local.state.saved_hooks_disabled
        if reason is not None:
            raise HookError(reason)
        return super().__enter__()


class save_on_cpu(saved_tensors_hooks):
    """Keep saved tensors in host memory, and bring them back for the gradient.

    Parameters
    ----------
    pin_memory : bool
        Whether the host memory is pinned, which lets the copy from a CUDA device run at full
        speed. Without effect for tensors on the CPU.
    device_type : str
        "cuda", the kind of device for which memory is pinned.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0], requires_grad=True)
    >>> with flow.autograd.graph.save_on_cpu():
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        if device_type != "cuda":
            raise arg_error(
                "save_on_cpu",
                "device_type",
                expected="'cuda'",
                got=repr(device_type),
                hint="leave it out",
                kind=ArgumentError,
            )
        super().__init__(functools.partial(_to_host, pin_memory), _from_host)


def _to_host(pin_memory: bool, tensor: Tensor) -> tuple[Any, Tensor]:
    if tensor.is_cuda:
        return tensor.device, make_tensor(to_host(tensor._data, pin_memory))
    return tensor.device, tensor.clone()  # a later write must not reach the packed values


def _from_host(packed: tuple[Any, Tensor]) -> Tensor:
    device, tensor = packed
    return tensor.to(device)


class _Kept:
    """A tensor that a node saved, and its copy once the tensor is written."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor.detach()
        self.version = tensor._version
        self.copied = False

    def copy(self) -> None:
        """Keep a copy instead of the tensor that is about to be written."""
        if not self.copied:
            self.tensor, self.copied = make_tensor(self.tensor._data.copy()), True

    def unpack(self) -> Tensor:
        """Return the saved tensor, or its copy."""
        if not self.copied and self.tensor._version != self.version:
            raise StaleTensorError(
                f"a saved tensor of shape {self.tensor.shape} was modified in place outside of "
                "allow_mutation_on_saved_tensors; write inside the block, or run backward() first"
            )
        return self.tensor


class _CopyBeforeWrite(Interpreter):
    """Copies saved tensors before an op writes to their memory."""

    def __init__(self) -> None:
        # Weak on both sides: a copy is of no use once the node or the memory is gone.
        self.kept: weakref.WeakKeyDictionary[Storage, weakref.WeakSet[_Kept]] = (
            weakref.WeakKeyDictionary()
        )

    def pack(self, tensor: Tensor) -> _Kept:
        """Keep a tensor, listed under its memory."""
        kept = _Kept(tensor)
        self.kept.setdefault(tensor.memory, weakref.WeakSet()).add(kept)
        return kept

    def apply(self, op_expr: OpExpr, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Run one op."""
        for i in op_expr.schema.written:
            storage = None if inputs[i] is None else inputs[i]._storage
            for kept in () if storage is None else self.kept.get(storage, ()):
                kept.copy()
        return super().apply(op_expr, inputs, attrs)


class allow_mutation_on_saved_tensors(contextlib.ExitStack):
    """Let saved tensors be written in place, by copying them first: a context manager.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0], requires_grad=True)
    >>> with flow.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     z = y * y
    ...     y.mul_(0)
    ...     z.sum().backward()
    tensor([0., 0.], grad_fn=<mul_backward>)
    >>> x.grad
    tensor([2., 4.])
    """

    def __enter__(self) -> allow_mutation_on_saved_tensors:
        interpreter = _CopyBeforeWrite()
        self.enter_context(saved_tensors_hooks(interpreter.pack, _Kept.unpack))
        self.enter_context(push_interpreter(interpreter))
        return self


class disable_saved_tensors_hooks(StateChange):
    """Forbid hooks on saved tensors: a context manager.

    Parameters
    ----------
    error_message : str
        The text of the `HookError` that is raised where hooks on saved tensors are entered inside
        the block, or are on already when the block is entered.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> with flow.autograd.graph.disable_saved_tensors_hooks("not here"):
    ...     with flow.autograd.graph.save_on_cpu():
    ...         pass
    Traceback (most recent call last):
        ...
    oneflow_lite.errors.HookError: not here
    """

    def __init__(self, error_message: str) -> None:
        super().__init__(saved_hooks_disabled=str(error_message))
        self._message = str(error_message)

    def __enter__(self) -> Any:
        if local.state.saved_hooks is not None:
            raise HookError(self._message)
        return super().__enter__()


@guarded
def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Add 1 to the version, for a write that the library did not see, as through `numpy()`.

    Parameters
    ----------
    tensor : Tensor or sequence of Tensor
        The tensors that were written.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.zeros(2)
    >>> x.numpy()[0] = 1
    >>> flow.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for x in (tensor,) if isinstance(tensor, Tensor) else tensor:
        x.memory.version += 1


class _Gathered:
    """The gradients of a backward call for which a hook of several tensors waits."""

    def __init__(self, nodes: Sequence[Any], running: Sequence[FunctionNode]) -> None:
        self.grads: list[Tensor | None] = [None] * len(nodes)
        runs = set(running)
        self.missing = {i for i, node in enumerate(nodes) if node() in runs}
        self.called = False


class _MultiGradHook:
    """Calls a function once in each backward call, with all gradients or with the first one."""

    def __init__(self, nodes: list[FunctionNode], fn: Callable[[Any], Any], first: bool) -> None:
        self._nodes = [weakref.ref(node) for node in nodes]  # the hooks belong to these nodes
        self._fn = fn
        self._first = first
        self._lock = make_lock()
        self._gathered: weakref.WeakKeyDictionary[Any, _Gathered] = weakref.WeakKeyDictionary()

    def receive(self, position: int, grad: Tensor) -> None:
        """Take in the gradient of a tensor; this is the hook on the tensor."""
        task = local.task
        with self._lock:
            gathered = self._gathered.get(task)
            if gathered is None:
                gathered = self._gathered[task] = _Gathered(self._nodes, task.nodes)
                # Zero gradients do not arrive; the hook is called without them when the task ends.
                finish = functools.partial(self._call, gathered)
                task.callbacks = (*task.callbacks, finish)
            gathered.grads[position] = grad
            gathered.missing.discard(position)
        if self._first or not gathered.missing:
            self._call(gathered)

    def _call(self, gathered: _Gathered) -> None:
        with self._lock:
            called, gathered.called = gathered.called, True
        if not called:
            grads = gathered.grads
            self._fn(next(g for g in grads if g is not None) if self._first else grads)


class _Handles(RemovableHandle):
    """Removes several hooks at once."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        super().__init__({})
        self._handles = handles

    def remove(self) -> None:
        """Remove the hooks; removing them twice does nothing."""
        for handle in self._handles:
            handle.remove()


@guarded
def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], Any], *, mode: str = "all"
) -> RemovableHandle:
    """Call a function once in each backward call, when the gradients of several tensors are known.

    Parameters
    ----------
    tensors : sequence of Tensor
        Tensors that require a gradient.
    fn : callable
        With mode "all" it gets a list of gradients, one per tensor, as soon as the call has
        computed the last of them. None stands for a tensor that the call does not reach.
        With mode "any" it gets the first gradient that is complete. Its result is not used.
    mode : str
        "all" or "any".

    Returns
    -------
    RemovableHandle
        Its `remove()` unregisters the hook.

    Raises
    ------
    ArgumentError
        For another mode.
    GradientError
        When a tensor does not require a gradient; with mode "any" it is left out instead.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> a = flow.tensor(2.0, requires_grad=True)
    >>> b = flow.tensor(5.0, requires_grad=True)
    >>> handle = flow.autograd.graph.register_multi_grad_hook([a, b], print)
    >>> (a * b).backward()
    [tensor(5.), tensor(2.)]
    >>> (a * 3).backward()
    [tensor(3.), None]
    """
    if mode not in ("all", "any"):
        raise arg_error(
            "register_multi_grad_hook",
            "mode",
            expected="'all' or 'any'",
            got=repr(mode),
            hint="choose one of these",
            kind=ArgumentError,
        )
    check_callable("register_multi_grad_hook", fn)
    if mode == "any":
        tensors = [tensor for tensor in tensors if tensor.requires_grad]
    edges = [get_gradient_edge(tensor) for tensor in tensors]
    hook = _MultiGradHook([edge.node for edge in edges], fn, first=mode == "any")
    return _Handles(
        [
            tensor.register_hook(functools.partial(hook.receive, i))
            for i, tensor in enumerate(tensors)
        ]
    )
