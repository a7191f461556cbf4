"""AutogradMeta: autograd's record of a tensor's value, be it a leaf or an output of a node."""

from __future__ import annotations

from typing import Any

from oneflow_lite.tensors.mode import local


class AutogradMeta:
    """Made on first use. It references neither node nor tensor, which would be a reference cycle.

    Attributes
    ----------
    requires_grad, is_leaf : bool
    retain_grad : bool
        Whether a non-leaf keeps its gradient in `acc_grad`.
    acc_grad : Tensor or None
        The gradient that `tensor.grad` reads.
    """

    __slots__ = (
        "__weakref__",
        "_hooks",
        "_post_accumulate_hooks",
        "acc_grad",
        "is_leaf",
        "requires_grad",
        "retain_grad",
    )

    def __init__(self, requires_grad: bool, is_leaf: bool) -> None:
        self.requires_grad = requires_grad
        self.is_leaf = is_leaf
        self.retain_grad = False
        self.acc_grad: Any = None
        self._hooks: dict[int, Any] | None = None
        self._post_accumulate_hooks: dict[int, Any] | None = None

    @property
    def hooks(self) -> dict[int, Any] | None:
        """Hooks by id; they run on the gradient of this value, in order of registration."""
        return self._hooks

    @property
    def post_accumulate_hooks(self) -> dict[int, Any] | None:
        """Hooks of a leaf by id; they run after its gradient was added to `acc_grad`."""
        return self._post_accumulate_hooks

    @property
    def current_grad(self) -> Any:
        """The partial sum in the task that runs on this thread; None while no task sums into it."""
        task = local.task
        return None if task is None else task.current_grad(self)

    def __repr__(self) -> str:
        kind = "leaf" if self.is_leaf else "not leaf"
        return f"AutogradMeta(requires_grad={self.requires_grad}, {kind})"
