"""Hooks on gradients, and the handle that takes a hook back."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from oneflow_lite.autograd.autograd_meta import AutogradMeta

_ids = itertools.count()


class RemovableHandle:
    """Returned by every `register_*hook`; `remove()` takes the hook back.

    Also a context manager that removes the hook at the end of the block.
    """

    def __init__(self, hooks: dict[int, Any]) -> None:
        self.id = next(_ids)
        self._hooks: dict[int, Any] = hooks

    def remove(self) -> None:
        """Remove the hook; removing it twice does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()


def register_tensor_hook(meta: AutogradMeta, hook: Callable[[Any], Any]) -> RemovableHandle:
    """Add a hook to one value of a tensor."""
    if meta.hooks is None:
        meta.hooks = {}
    handle = RemovableHandle(meta.hooks)
    meta.hooks[handle.id] = hook
    return handle
