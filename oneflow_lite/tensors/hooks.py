"""Hooks on gradients and on nodes, and the handle that takes a hook back.

docs/hooks.md holds the order in which they run.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from oneflow_lite.arrays.locks import make_lock
from oneflow_lite.errors import ArgumentTypeError, HookError, arg_error
from oneflow_lite.tensors.autograd_meta import AutogradMeta
from oneflow_lite.tensors.mode import of_user
from oneflow_lite.tensors.shown import Shown

_ids = itertools.count()
_first_lock = make_lock()  # two threads that register the first hook must share one dict
Hook = Callable[..., Any]
# Whether any leaf was ever given a hook to run after accumulation. Before that, no leaf is asked.
post_accumulate_seen = False


# A new object after each change of any leaf's hooks or tensor's class, so that a compiled function
# sees by one comparison that none has changed.
leaf_hook_changes: list[object] = [None]


class LeafHooks(dict[int, Hook]):
    """The hooks of a leaf by id; each change of them changes `leaf_hook_changes`, too."""


def _noted(name: str) -> Any:
    change = getattr(dict, name)

    def method(self: LeafHooks, *args: Any, **kwargs: Any) -> Any:
        try:
            return change(self, *args, **kwargs)
        finally:
            leaf_hook_changes[0] = object()

    return functools.wraps(change)(method)


for _name in "__setitem__ __delitem__ __ior__ clear pop popitem setdefault update".split():
    setattr(LeafHooks, _name, _noted(_name))


class RemovableHandle(Shown):
    """Returned by every `register_*hook`; `remove()` takes the hook back.

    Also a context manager that removes the hook at the end of the block.
    """

    def __init__(self, hooks: dict[int, Any], *, extra_dict: Any = None) -> None:
        self.id = next(_ids)
        others = extra_dict if isinstance(extra_dict, list) else [extra_dict]
        self._dicts: list[dict[int, Any]] = [hooks, *(each for each in others if each is not None)]

    def _facts(self) -> dict[str, Any]:
        return {"id": self.id, "removed": self.id not in self._dicts[0]}

    def remove(self) -> None:
        """Remove the hook; removing it twice does nothing."""
        for each in self._dicts:
            each.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()


def check_callable(op: str, hook: Any) -> None:
    """Raise `ArgumentTypeError` for a hook that cannot be called."""
    if not callable(hook):
        raise arg_error(
            op,
            "hook",
            expected="a callable",
            got=type(hook).__name__,
            hint="pass a function",
            kind=ArgumentTypeError,
        )


def add_hook(op: str, hooks: dict[int, Hook], hook: Hook) -> RemovableHandle:
    """Add a hook, last in order, and return the handle that removes it."""
    check_callable(op, hook)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_tensor_hook(meta: AutogradMeta, hook: Hook) -> RemovableHandle:
    """Add a hook to a tensor's value."""
    with _first_lock:
        if meta._hooks is None:
            meta._hooks = LeafHooks() if meta.is_leaf else {}
    return add_hook("register_hook", meta._hooks, hook)


def register_post_accumulate_hook(leaf: Any, hook: Hook) -> RemovableHandle:
    """Add a hook that runs on a leaf after a gradient was added to its `acc_grad`."""
    global post_accumulate_seen
    post_accumulate_seen = True
    meta: AutogradMeta = leaf.autograd_meta
    with _first_lock:
        if meta._post_accumulate_hooks is None:
            meta._post_accumulate_hooks = LeafHooks()
    reference = weakref.ref(leaf)  # the graph holds the meta: it must not hold the tensor

    def call() -> None:
        tensor = reference()
        if tensor is not None and (result := of_user(hook)(tensor)) is not None:
            raise ArgumentTypeError(
                f"a hook of register_post_accumulate_grad_hook returned {type(result).__name__}; "
                "it may change the .grad of the tensor that it gets, and returns None"
            )

    op = "register_post_accumulate_grad_hook"
    check_callable(op, hook)
    return add_hook(op, meta._post_accumulate_hooks, call)


class NodeHooks:
    """A node's hooks: `pre` hooks get incoming gradients, `post` hooks also outgoing gradients."""

    def __init__(self, kind: type[dict[int, Hook]] = dict) -> None:
        self.pre = kind()
        self.post = kind()

    def __bool__(self) -> bool:
        return bool(self.pre or self.post)

    def run_pre(self, node: Any, out_grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run the prehooks, each on the result of the previous prehook."""
        infos = node.output_tensor_infos
        for hook in list(self.pre.values()):
            out_grads = _replaced(node, hook, of_user(hook)(out_grads), out_grads, infos)
        return out_grads

    def run_post(
        self, node: Any, in_grads: tuple[Any, ...], out_grads: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """Run the hooks, each on the result of the previous hook."""
        infos = [None if n is None else n.output_tensor_infos[i] for n, i in node.edges]
        for hook in list(self.post.values()):
            in_grads = _replaced(node, hook, of_user(hook)(in_grads, out_grads), in_grads, infos)
        return in_grads


def _replaced(
    node: Any, hook: Hook, result: Any, before: tuple[Any, ...], infos: Sequence[Any]
) -> tuple[Any, ...]:
    """Return the gradients that a hook returned, or `before` when it returned None."""
    if result is None:
        return before
    text = f"a hook on {node.name()} ({getattr(hook, '__name__', hook)!r})"
    if not isinstance(result, tuple):
        raise ArgumentTypeError(
            f"{text} returned {type(result).__name__}; return None or a tuple of "
            f"{len(before)} gradients"
        )
    if len(result) != len(before):
        raise HookError(f"{text} returned {len(result)} gradient(s), expected {len(before)}")
    for grad, info in zip(result, infos, strict=True):
        if grad is not None:
            check_replacement(text, grad, info)
    return result


def check_replacement(hook: str, grad: Any, info: Any) -> None:
    """Raise when a hook's result cannot replace the gradient.

    `info` has the shape, dtype and device of the value; None where no gradient flows.
    """
    if not hasattr(grad, "requires_grad"):
        raise ArgumentTypeError(f"{hook} returned {type(grad).__name__}; return a Tensor or None")
    for what in ("shape", "dtype", "device"):
        if info is not None and getattr(grad, what) != getattr(info, what):
            raise HookError(
                f"{hook} returned a gradient of {what} {getattr(grad, what)}, expected {what} "
                f"{getattr(info, what)}, that of the value; convert it in the hook"
            )
