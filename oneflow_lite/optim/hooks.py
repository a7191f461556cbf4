"""Hooks of an optimizer: around each step, and around saving and loading its state."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from oneflow_lite.arrays.refusals import RAW, refuse_call
from oneflow_lite.errors import HookError
from oneflow_lite.tensors.hooks import RemovableHandle, add_hook
from oneflow_lite.tensors.mode import of_user

Hooks = dict[str, dict[int, Callable[..., Any]]]
_of_all: Hooks = {"all_step_pre": {}, "all_step_post": {}}
_KINDS = "step state_dict load_state_dict".split()


def no_hooks() -> Hooks:
    """Return the hooks of a new optimizer: the hooks on all optimizers, and empty dicts."""
    return _of_all | {f"{kind}_{when}": {} for kind in _KINDS for when in ("pre", "post")}


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Have `hook(optimizer, args, kwargs)` called before each step of every optimizer."""
    return add_hook("register_optimizer_step_pre_hook", _of_all["all_step_pre"], hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Have `hook(optimizer, args, kwargs)` called after each step of every optimizer."""
    return add_hook("register_optimizer_step_post_hook", _of_all["all_step_post"], hook)


def run_hooks(hooks: dict[int, Callable[..., Any]], *values: Any) -> Any:
    """Call hooks with an optimizer, or with an optimizer and a state dict.

    A hook that gets a state dict may return a new one, which goes to the next hook; the last dict
    is returned.
    """
    *before, last = values
    for hook in _each(hooks):
        result = of_user(hook)(*before, last)
        if before and result is not None:
            last = result
    return last


def with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return the `step` of an optimizer with the hooks around it."""

    @functools.wraps(step)
    def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if type(self).step is not hooked:  # `super().step()`: the hooks run around the outer step
            return step(self, *args, **kwargs)
        if self._noted:
            self._noted["stepped"] = True
        given = (self, *args)
        for hook in _each(self._hooks["all_step_pre"], self._hooks["step_pre"]):
            result = of_user(hook)(self, given, kwargs)
            if result is None:
                continue
            if not isinstance(result, tuple) or len(result) != 2:
                raise HookError(
                    f"a step pre hook of {type(self).__name__} returned {type(result).__name__}; "
                    "it returns None or a pair (args, kwargs)"
                )
            given, kwargs = result
        try:
            loss = step(*given, **kwargs)
        except RAW as error:
            refuse_call(step, error, given, kwargs)
            raise
        for hook in _each(self._hooks["step_post"], self._hooks["all_step_post"]):
            of_user(hook)(self, given, kwargs)
        return loss

    return hooked


def _each(
    *kinds: dict[int, Callable[..., Any]],
) -> Iterator[Callable[..., Any]]:
    for hooks in kinds:
        yield from list(hooks.values())  # a copy: a hook may remove itself
