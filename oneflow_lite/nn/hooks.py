"""Hooks of a module: functions of the user that run around `forward`, and in the backward pass."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from oneflow_lite.autograd.hooks import RemovableHandle, check_callable
from oneflow_lite.errors import HookError, bad_argument
from oneflow_lite.nn.backward_hooks import BackwardHook


class Hook(NamedTuple):
    """A function and how it wants to be called."""

    function: Callable[..., Any]
    with_kwargs: bool
    always_call: bool


class ModuleHooks:
    """The part of `Module` that registers hooks and runs them."""

    forward: Callable[..., Any]
    _forward_hooks: dict[int, Hook]
    _forward_pre_hooks: dict[int, Hook]
    _backward_hooks: dict[int, Callable[..., Any]]
    _backward_pre_hooks: dict[int, Callable[..., Any]]

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
        check_callable("register_forward_pre_hook", hook)
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
        check_callable("register_forward_hook", hook)
        return _register(self._forward_hooks, Hook(hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_output)` when the gradients of the outputs are there.

        Parameters
        ----------
        hook : callable
            Gets a tuple with one place per output of `forward`: a tensor, or None for an output
            that is no tensor or got no gradient. Returns None, or the tuple to go on with.
        prepend : bool
            Whether it runs before the hooks that are registered already.

        Returns
        -------
        RemovableHandle
            Its `remove()` unregisters the hook, for calls of the module that follow.

        Raises
        ------
        HookError
            In the backward pass, when the hook returned anything else.

        Examples
        --------
        >>> import oneflow_lite as flow
        >>> layer = flow.nn.ReLU()
        >>> handle = layer.register_full_backward_pre_hook(lambda module, dy: (dy[0] * 10,))
        >>> x = flow.tensor([-1.0, 2.0], requires_grad=True)
        >>> layer(x).sum().backward()
        >>> x.grad
        tensor([ 0., 10.])
        """
        check_callable("register_full_backward_pre_hook", hook)
        return _register(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the inputs are there.

        Parameters
        ----------
        hook : callable
            Gets two tuples. `grad_input` has one place per positional argument of `forward`: a
            tensor (zeros where it requires no gradient or had no influence), or None for what is no
            tensor, and for an input that `autograd.grad` or `backward(inputs=)` did not ask for.
            `grad_output` is as the prehooks left it. Returns None, or a tuple in the place of
            `grad_input`.
        prepend : bool
            Whether it runs before the hooks that are registered already.

        Returns
        -------
        RemovableHandle
            Its `remove()` unregisters the hook, for calls of the module that follow.

        Raises
        ------
        HookError
            In the backward pass, when the hook returned anything else.

        Warns
        -----
        UserWarning
            When `forward` returns neither a tensor nor a tuple: the hook is not called. When no
            input requires a gradient: it is called with the gradients of the outputs alone.

        Notes
        -----
        Inputs and outputs of the module become views, which may not be written in place.

        Examples
        --------
        >>> import oneflow_lite as flow
        >>> layer = flow.nn.ReLU()
        >>> handle = layer.register_full_backward_hook(lambda module, dx, dy: print(dx, dy))
        >>> x = flow.tensor([-1.0, 2.0], requires_grad=True)
        >>> layer(x).sum().backward()
        (tensor([0., 1.]),) (tensor([1., 1.]),)
        """
        check_callable("register_full_backward_hook", hook)
        return _register(self._backward_hooks, hook, prepend)

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        done: set[int] = set()
        output = None
        backward = None
        if self._backward_hooks or self._backward_pre_hooks:
            pre_hooks, hooks = self._backward_pre_hooks.values(), self._backward_hooks.values()
            backward = BackwardHook(self, pre_hooks, hooks)
        try:
            args, kwargs = self._run_pre_hooks(args, kwargs)
            if backward is not None:
                args = backward.wrap_inputs(args)
            output = self.forward(*args, **kwargs)
            for key, hook in list(self._forward_hooks.items()):
                done.add(key)
                output = self._run_forward_hook(hook, args, kwargs, output)
            if backward is not None:
                output = backward.wrap_output(output)
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


def _register(hooks: dict[int, Any], hook: Any, prepend: bool) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        later = [key for key in hooks if key != handle.id]
        for key in later:  # a dict keeps its order: what goes out and in again stands at the end
            hooks[key] = hooks.pop(key)
    return handle
