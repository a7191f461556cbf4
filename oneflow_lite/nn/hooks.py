"""Hooks of a module: functions of the user that run around `forward`, and in the backward pass."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from oneflow_lite.autograd.hooks import RemovableHandle, check_callable
from oneflow_lite.errors import HookError, arg_error
from oneflow_lite.nn.backward_hooks import BackwardHook, add_plain_hooks

Hook = Callable[..., Any]


class _Everywhere(NamedTuple):
    """A hook on all modules, and of which kind."""

    kind: str
    hook: Hook
    with_kwargs: bool
    always_call: bool


EVERYWHERE: dict[int, _Everywhere] = {}  # hooks on all modules; empty in almost every program
_REGULAR = (
    "regular backward hooks, which see the gradients of one node, and full ones, which see those "
    "of the module, were both registered {}; use register_full_backward_hook alone"
)


class ModuleHooks:
    """The part of `Module` that registers hooks and runs them.

    The hooks are the values of the dicts; how those in `_forward_hooks` and `_forward_pre_hooks`
    want to be called stands, under the same keys, in the dicts beside them.
    """

    forward: Callable[..., Any]
    _forward_hooks: dict[int, Hook]
    _forward_hooks_with_kwargs: dict[int, bool]
    _forward_hooks_always_called: dict[int, bool]
    _forward_pre_hooks: dict[int, Hook]
    _forward_pre_hooks_with_kwargs: dict[int, bool]
    _backward_hooks: dict[int, Hook]
    _backward_pre_hooks: dict[int, Hook]
    _is_full_backward_hook: bool | None

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
        flags = (self._forward_pre_hooks_with_kwargs,) if with_kwargs else ()
        return register("register_forward_pre_hook", self._forward_pre_hooks, hook, prepend, flags)

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
        flags = [self._forward_hooks_with_kwargs] if with_kwargs else []
        flags += [self._forward_hooks_always_called] if always_call else []
        return register("register_forward_hook", self._forward_hooks, hook, prepend, flags)

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
        op = "register_full_backward_pre_hook"
        return register(op, self._backward_pre_hooks, hook, prepend)

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
        op = "register_full_backward_hook"
        check_callable(op, hook)
        self._take_backward_hooks(op, full=True)
        return register(op, self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` at the node that made the output.

        What PyTorch had before `register_full_backward_hook`: the gradients are those of the last
        op in `forward`, which need not be those of the module's inputs. A module has hooks of one
        of the two kinds.

        Raises
        ------
        HookError
            When the module has full backward hooks.
        """
        op = "register_backward_hook"
        check_callable(op, hook)
        self._take_backward_hooks(op, full=False)
        return register(op, self._backward_hooks, hook)

    def _take_backward_hooks(self, op: str, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise HookError(f"{op}(): " + _REGULAR.format("on one module"))
        self._is_full_backward_hook = full

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        done: set[int] = set()
        output = None
        full = self._is_full_backward_hook is not False
        pre_hooks = [*_everywhere("backward_pre"), *self._backward_pre_hooks.values()]
        hooks = [*_everywhere("full_backward"), *(self._backward_hooks.values() if full else ())]
        plain = [*_everywhere("backward"), *(() if full else self._backward_hooks.values())]
        backward = BackwardHook(self, pre_hooks, hooks) if pre_hooks or hooks else None
        try:
            args, kwargs = self._run_pre_hooks(args, kwargs)
            if backward is not None:
                args = backward.wrap_inputs(args)
            output = self.forward(*args, **kwargs)
            for key, hook, with_kwargs, _ in list(self._hooks_after()):
                done.add(key)
                output = self._run_forward_hook(hook, with_kwargs, args, kwargs, output)
            if backward is not None:
                output = backward.wrap_output(output)
            if plain:
                add_plain_hooks(self, plain, args, output)
        except Exception:
            for key, hook, with_kwargs, always_call in list(self._hooks_after()):
                if always_call and key not in done:
                    try:
                        output = self._run_forward_hook(hook, with_kwargs, args, kwargs, output)
                    except Exception as error:
                        warnings.warn(
                            f"a forward hook with always_call=True raised {error!r}; it is not "
                            "passed on because forward had raised before",
                            stacklevel=3,
                        )
            raise
        return output

    def _hooks_after(self) -> Iterator[tuple[int, Hook, bool, bool]]:
        """Yield key, function, with_kwargs and always_call of the hooks that follow `forward`."""
        for key, (kind, hook, with_kwargs, always_call) in EVERYWHERE.items():
            if kind == "forward":
                yield key, hook, with_kwargs, always_call
        with_kwargs_of, always = self._forward_hooks_with_kwargs, self._forward_hooks_always_called
        for key, hook in self._forward_hooks.items():
            yield key, hook, key in with_kwargs_of, key in always

    def _run_pre_hooks(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        own = list(self._forward_pre_hooks.items())
        for key, hook in chain([(-1, hook) for hook in _everywhere("forward_pre")], own):
            if key not in self._forward_pre_hooks_with_kwargs:
                result = hook(self, args)
                if result is not None:
                    args = result if isinstance(result, tuple) else (result,)
                continue
            result = hook(self, args, kwargs)
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
        self,
        hook: Hook,
        with_kwargs: bool,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        output: Any,
    ) -> Any:
        result = hook(self, args, kwargs, output) if with_kwargs else hook(self, args, output)
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
        for key in later:  # a dict keeps its order: what goes out and in again stands at the end
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
    """Call a hook as that of `Module.register_backward_hook` for every module.

    Raises
    ------
    HookError
        When `register_module_full_backward_hook` is in use.
    """
    return _register_backward_everywhere("register_module_backward_hook", hook, full=False)


def _register_backward_everywhere(op: str, hook: Hook, full: bool) -> RemovableHandle:
    if _everywhere("backward" if full else "full_backward"):
        raise HookError(f"{op}(): " + _REGULAR.format("on all modules"))
    return _register_everywhere(op, "full_backward" if full else "backward", hook)
