"""Hooks of a module: functions of the user that run around `forward`, and in the backward pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from oneflow_lite.errors import HookError, arg_error
from oneflow_lite.nn.backward_hooks import BackwardHook, add_plain_hooks
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.hooks import Hook, RemovableHandle, check_callable


class _Everywhere(NamedTuple):
    """A hook on all modules, and its kind."""

    kind: str
    hook: Hook
    with_kwargs: bool
    always_call: bool


EVERYWHERE: dict[int, _Everywhere] = {}  # hooks on all modules; empty in almost every program


def call_with_hooks(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the `forward` of a module with all hooks around it."""
    done: set[int] = set()  # an `always_call` hook runs once, also when a later hook raises
    output = None
    full = module._is_full_backward_hook is not False
    pre_hooks = [*_everywhere("backward_pre"), *module._backward_pre_hooks.values()]
    hooks = [*_everywhere("full_backward"), *(module._backward_hooks.values() if full else ())]
    plain = [*_everywhere("backward"), *(() if full else module._backward_hooks.values())]
    backward = BackwardHook(module, pre_hooks, hooks) if pre_hooks or hooks else None
    try:
        args, kwargs = _run_pre_hooks(module, args, kwargs)
        if backward is not None:  # behind the pre-hooks, which may replace the arguments
            args = backward.wrap_inputs(args)
        output = module.forward(*args, **kwargs)
        for key, hook, with_kwargs, _ in list(_hooks_after(module)):  # a hook may remove itself
            done.add(key)
            output = _run_forward_hook(module, hook, with_kwargs, args, kwargs, output)
        if backward is not None:
            output = backward.wrap_output(output)
        if plain:
            add_plain_hooks(module, plain, args, output)
    except Exception:
        for key, hook, with_kwargs, always_call in list(_hooks_after(module)):
            if always_call and key not in done:
                try:
                    output = _run_forward_hook(module, hook, with_kwargs, args, kwargs, output)
                except Exception as error:
                    warn_caller(
                        f"a forward hook with always_call=True raised {error!r}; it is not "
                        "passed on because forward had raised before"
                    )
        raise
    return output


def _hooks_after(module: Any) -> Iterator[tuple[int, Hook, bool, bool]]:
    """Yield key, function, with_kwargs and always_call of the hooks that follow `forward`."""
    for key, (kind, hook, with_kwargs, always_call) in EVERYWHERE.items():
        if kind == "forward":
            yield key, hook, with_kwargs, always_call
    with_kwargs_of, always = module._forward_hooks_with_kwargs, module._forward_hooks_always_called
    for key, hook in module._forward_hooks.items():
        yield key, hook, key in with_kwargs_of, key in always


def _run_pre_hooks(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    own = list(module._forward_pre_hooks.items())
    for key, hook in chain([(-1, hook) for hook in _everywhere("forward_pre")], own):
        if key not in module._forward_pre_hooks_with_kwargs:
            result = hook(module, args)
            if result is not None:
                args = result if isinstance(result, tuple) else (result,)
            continue
        result = hook(module, args, kwargs)
        if result is None:
            continue
        if not isinstance(result, tuple) or len(result) != 2:
            raise arg_error(
                "register_forward_pre_hook",
                "hook",
                expected="a hook that returns None or (args, kwargs)",
                got=f"{result!r}",
                hint="return both, or register the hook without with_kwargs",
                kind=HookError,
            )
        args, kwargs = result
    return args, kwargs


def _run_forward_hook(
    module: Any,
    hook: Hook,
    with_kwargs: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    output: Any,
) -> Any:
    result = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
    return output if result is None else result


def register(
    op: str,
    hooks: dict[int, Any],
    hook: Hook,
    prepend: bool = False,
    flags: Iterable[dict[int, bool]] = (),
) -> RemovableHandle:
    """Add a hook, last in order or first, and say in `flags` how it wants to be called."""
    check_callable(op, hook)
    handle = RemovableHandle(hooks, extra_dict=list(flags))
    for flag in flags:
        flag[handle.id] = True
    hooks[handle.id] = hook
    if prepend:
        later = [key for key in hooks if key != handle.id]
        for key in later:  # a key that is taken out and put back comes last
            hooks[key] = hooks.pop(key)
    return handle


def _everywhere(kind: str) -> list[Hook]:
    return [entry.hook for entry in EVERYWHERE.values() if entry.kind == kind]


def _register_everywhere(
    op: str, kind: str, hook: Hook, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    check_callable(op, hook)
    handle = RemovableHandle(EVERYWHERE)
    EVERYWHERE[handle.id] = _Everywhere(kind, hook, with_kwargs, always_call)
    return handle


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, args)` before the `forward` of every module, before its own hooks.

    Meant for debugging: while such a hook is registered, `flow.compile` runs eagerly.
    """
    return _register_everywhere("register_module_forward_pre_hook", "forward_pre", hook)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after the `forward` of every module, before its own hooks.

    The arguments are those of `Module.register_forward_hook`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> from oneflow_lite.nn.modules.module import register_module_forward_hook
    >>> with register_module_forward_hook(lambda module, args, output: print(module)):
    ...     output = flow.nn.Sequential(flow.nn.ReLU())(flow.ones(1))
    ReLU()
    Sequential(
      (0): ReLU()
    )
    """
    op = "register_module_forward_hook"
    return _register_everywhere(op, "forward", hook, with_kwargs, always_call)


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, grad_output)` for every module, as `register_full_backward_pre_hook`."""
    return _register_everywhere("register_module_full_backward_pre_hook", "backward_pre", hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` for every module.

    Raises
    ------
    HookError
        When `register_module_backward_hook` is in use.
    """
    return _register_backward_everywhere("register_module_full_backward_hook", hook, full=True)


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """Call a hook as `Module.register_backward_hook` does, for every module.

    Raises
    ------
    HookError
        When `register_module_full_backward_hook` is in use.
    """
    return _register_backward_everywhere("register_module_backward_hook", hook, full=False)


def _register_backward_everywhere(op: str, hook: Hook, full: bool) -> RemovableHandle:
    if _everywhere("backward" if full else "full_backward"):
        raise mixed_hooks_error(op, "on all modules")
    return _register_everywhere(op, "full_backward" if full else "backward", hook)


def mixed_hooks_error(op: str, where: str) -> HookError:
    """Build the error for backward hooks of both kinds in one place."""
    return HookError(
        f"{op}(): regular backward hooks, which see the gradients of one node, and full ones, "
        f"which see those of the module, were both registered {where}; use "
        "register_full_backward_hook alone"
    )
