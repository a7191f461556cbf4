"""Forward hooks of a module: functions of the user that run around `forward`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from oneflow_lite.autograd.hooks import RemovableHandle
from oneflow_lite.errors import ArgumentTypeError, HookError, bad_argument


class Hook(NamedTuple):
    """A function and how it wants to be called."""

    function: Callable[..., Any]
    with_kwargs: bool
    always_call: bool


class ModuleHooks:
    """The part of `Module` that registers forward hooks and runs them."""

    forward: Callable[..., Any]
    _forward_hooks: dict[int, Hook]
    _forward_pre_hooks: dict[int, Hook]

    def register_forward_pre_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args)` before every `forward`.

        Parameters
        ----------
        hook : callable
            Returns None, or the positional arguments to use instead (a single value need not be
            wrapped in a tuple). With `with_kwargs` it is called as `hook(module, args, kwargs)`
            and returns None or the pair `(args, kwargs)`.
        prepend : bool
            Whether it runs before the hooks that are registered already.
        with_kwargs : bool
            Whether it is given the keyword arguments.

        Returns
        -------
        RemovableHandle
            Its `remove()` unregisters the hook.
        """
        return _register(self._forward_pre_hooks, Hook(hook, with_kwargs, False), prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after every `forward`.

        Parameters
        ----------
        hook : callable
            Returns None, or the output to use instead. With `with_kwargs` it is called as
            `hook(module, args, kwargs, output)`.
        prepend : bool
            Whether it runs before the hooks that are registered already.
        with_kwargs : bool
            Whether it is given the keyword arguments.
        always_call : bool
            Whether it also runs (with output None) when `forward` or a hook raised.

        Returns
        -------
        RemovableHandle
            Its `remove()` unregisters the hook.
        """
        return _register(self._forward_hooks, Hook(hook, with_kwargs, always_call), prepend)

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        done: set[int] = set()
        output = None
        try:
            args, kwargs = self._run_pre_hooks(args, kwargs)
            output = self.forward(*args, **kwargs)
            for key, hook in list(self._forward_hooks.items()):
                done.add(key)
                output = self._run_forward_hook(hook, args, kwargs, output)
        except Exception:
            for key, hook in list(self._forward_hooks.items()):
                if hook.always_call and key not in done:
                    try:
                        output = self._run_forward_hook(hook, args, kwargs, output)
                    except Exception as error:
                        warnings.warn(
                            f"a forward hook with always_call=True raised {error!r}; it is not "
                            "passed on because forward had raised before",
                            stacklevel=3,
                        )
            raise
        return output

    def _run_pre_hooks(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        for hook in list(self._forward_pre_hooks.values()):
            if not hook.with_kwargs:
                result = hook.function(self, args)
                if result is not None:
                    args = result if isinstance(result, tuple) else (result,)
                continue
            result = hook.function(self, args, kwargs)
            if result is None:
                continue
            if not isinstance(result, tuple) or len(result) != 2:
                raise bad_argument(
                    HookError,
                    "register_forward_pre_hook",
                    "hook",
                    expected="a hook that returns None or (args, kwargs)",
                    got=f"{result!r}",
                    mend="return both, or register the hook without with_kwargs",
                )
            args, kwargs = result
        return args, kwargs

    def _run_forward_hook(
        self, hook: Hook, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
    ) -> Any:
        if hook.with_kwargs:
            result = hook.function(self, args, kwargs, output)
        else:
            result = hook.function(self, args, output)
        return output if result is None else result


def _register(hooks: dict[int, Hook], hook: Hook, prepend: bool) -> RemovableHandle:
    if not callable(hook.function):
        raise bad_argument(
            ArgumentTypeError,
            "register_forward_hook",
            "hook",
            expected="a callable",
            got=type(hook.function).__name__,
            mend="pass a function",
        )
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        later = [key for key in hooks if key != handle.id]
        for key in later:  # a dict keeps its order: what goes out and in again stands at the end
            hooks[key] = hooks.pop(key)
    return handle
