"""Runs a program on oneflow_lite or on PyTorch: the same calls on both."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

import oneflow_lite as flow
from tests.fuzz import vocabulary as words
from tests.fuzz.programs import Program, Ref, Step


def weights(shape: tuple[int, ...], order: int, is_complex: bool) -> Any:
    """Return a weight of its own for each element, so that no two errors cancel."""
    count = int(np.prod(shape))
    numbers = 1.5 + np.cos(np.arange(count) + order)
    if is_complex:
        numbers = numbers + 1j * np.sin(np.arange(count) + order)
    return numbers.reshape(shape)


class EagerRun:
    """One run of a program: its tensors so far, and what its hooks saw."""

    def __init__(self, lib: Any, program: Program) -> None:
        self.lib = lib
        self.tensors: dict[int, Any] = {}
        self.born: dict[int, int] = {}  # by tensor: its version when it was made
        self.copied = False  # whether the result of the last op had to be made compact
        self.seen: list[list[Any]] = []  # by hook: the gradients that it was given
        self.hooked: list[tuple[Any, int]] = []  # by hook: the tensor, and its version then
        for i, leaf in enumerate(program.leaves):
            x = lib.from_numpy(leaf.array())
            self.tensors[i] = x.requires_grad_() if leaf.requires_grad else x

    def step(self, step: Step) -> None:
        """Run one step."""
        with self.lib.set_grad_enabled(not step.no_grad):
            getattr(self, f"run_{step.kind}")(step, *map(self.given, step.args))
        for i in step.made:
            self.born[int(i)] = self.version(int(i))

    def given(self, argument: Any) -> Any:
        if isinstance(argument, Ref):
            return self.tensors[argument]
        return self.lib.tensor(argument) if isinstance(argument, np.ndarray) else argument

    def version(self, i: int) -> int:
        return self.tensors[i]._version  # type: ignore[no-any-return]

    def run_op(self, step: Step, *args: Any) -> None:
        y = words.OPS[step.name](self.lib, *args)
        compact = y if step.name == "keep_order" else y.contiguous()
        self.tensors[int(step.made[0])] = compact
        self.copied = compact is not y

    def run_view(self, step: Step, *args: Any) -> None:
        self.tensors[int(step.made[0])] = words.VIEWS[step.name].call(self.lib, *args)

    def run_views(self, step: Step, *args: Any) -> None:
        views = words.MULTI_VIEWS[step.name].call(self.lib, *args)
        self.tensors.update(zip(map(int, step.made), views, strict=True))

    def run_detach(self, step: Step, x: Any) -> None:
        self.tensors[int(step.made[0])] = x.detach()

    def run_write(self, step: Step, *args: Any) -> None:
        written = words.WRITES[step.name].call(self.lib, *args)
        assert written is args[0]

    def run_setitem(self, step: Step, x: Any, value: Any, *index: Any) -> None:
        x[index] = value

    def run_reshaper(self, step: Step, x: Any, *args: Any) -> None:
        assert getattr(x, step.name)(*args) is x

    def run_mark(self, step: Step, x: Any) -> None:
        if step.name.startswith("backward"):
            try:
                with self.deaf_hooks(only_to_failures=True):
                    self.objective(x, 0).backward(retain_graph=step.name == "backward")
            except RuntimeError:
                self.clear_gradients()  # how far a pass came before it failed is not compared
                raise
        elif step.name.endswith("hook"):
            seen: list[Any] = []
            scaling = step.name == "scaling_hook"

            def hook(grad: Any) -> Any:
                if grad is None:  # PyTorch calls it also for an output that got no gradient
                    return None
                seen.append(self.array(grad))
                return grad * 2 if scaling else None

            x.register_hook(hook)
            self.seen.append(seen)
            self.hooked.append((x, x._version))
        else:
            getattr(x, step.name)()

    # What is compared

    def array(self, x: Any) -> Any:
        """Return a copy of a tensor's content."""
        x = x.detach()
        return np.array(x.numpy() if self.lib is flow else x.resolve_conj().numpy(force=True))

    def facts(self, i: int) -> dict[str, Any]:
        """Return what is to agree of a tensor after every step."""
        x = self.tensors[i]
        is_view = x.is_view() if hasattr(x, "is_view") else x._is_view()
        return {
            "shape": tuple(x.shape),
            "version": x._version - self.born.get(i, 0),
            "is_view": is_view,
            "requires_grad": x.requires_grad,
            "is_leaf": self.is_leaf(i),
        }

    def is_leaf(self, i: int) -> bool | None:
        """Return whether a tensor is a leaf; None when it is a view that lost its base."""
        try:
            return bool(self.tensors[i].is_leaf)
        except RuntimeError:
            return None

    def objective(self, x: Any, order: int) -> Any:
        """Return a real number made of all elements of `x`."""
        is_complex = x.is_complex()
        total = (x * self.lib.tensor(weights(tuple(x.shape), order, is_complex))).sum()
        return total.real if is_complex else total

    def leaf_tensors(self, leaves: list[int]) -> list[Any]:
        return [self.tensors[i] for i in leaves]

    def gradients(self, i: int, leaves: list[int]) -> list[list[Any]]:
        """Return the first and second derivatives of a tensor by the leaves, as arrays or None."""
        wanted = self.leaf_tensors(leaves)
        total = self.objective(self.value(i), 0)
        if not total.requires_grad:
            return []
        options = {"allow_unused": True, "retain_graph": True}
        with self.deaf_hooks(only_to_failures=True):
            first = self.lib.autograd.grad(total, wanted, create_graph=True, **options)
        first = self.shaped(first, leaves)
        found = [self.arrays(first)]
        terms = [self.objective(g, k) for k, g in enumerate(first) if g is not None]
        terms = [term for term in terms if term.requires_grad]
        if terms:
            with self.deaf_hooks():  # zeros may be computed, or known to be zeros
                second = self.lib.autograd.grad(sum(terms[1:], terms[0]), wanted, **options)
            found.append(self.arrays(self.shaped(second, leaves)))
        return found

    def plain_gradients(self, i: int, leaves: list[int]) -> list[Any]:
        """Return the first derivatives, taken without recording."""
        total = self.objective(self.value(i), 0)
        if not total.requires_grad:
            return []
        wanted = self.leaf_tensors(leaves)
        with self.deaf_hooks():
            grads = self.lib.autograd.grad(total, wanted, allow_unused=True, retain_graph=True)
        return self.arrays(grads)

    @contextlib.contextmanager
    def deaf_hooks(self, only_to_failures: bool = False) -> Iterator[None]:
        """Let hooks forget what they see in the block.

        PyTorch learns on the way that a pass cannot be finished, oneflow_lite before it.
        """
        before = [list(seen) for seen in self.seen]
        failed = True
        try:
            yield
            failed = False
        finally:
            if failed or not only_to_failures:
                for seen, kept in zip(self.seen, before, strict=True):
                    seen[:] = kept

    def clear_gradients(self) -> None:
        """Set `.grad` of all tensors to None."""
        for i, x in self.tensors.items():
            if self.is_leaf(i) is not None:
                x.grad = None

    def backward_from(self, tensors: list[int]) -> None:
        """Clear all gradients and run one backward pass from these tensors."""
        self.clear_gradients()
        terms = [self.objective(self.value(i), 0) for i in tensors]
        sum(terms[1:], terms[0]).backward()

    def shaped(self, grads: Any, leaves: list[int]) -> list[Any]:
        """Return gradients in the shapes of the leaves."""
        return list(grads)

    def arrays(self, grads: Any) -> list[Any]:
        return [None if g is None else self.array(g) for g in grads]

    def value(self, i: int) -> Any:
        """Return the tensor to differentiate."""
        return self.tensors[i]

    def content(self, i: int) -> Any:
        """Return what a tensor holds."""
        return self.array(self.tensors[i])

    def accumulated(self, i: int) -> Any:
        """Return what backward passes left in `.grad`, as an array or None."""
        grad = self.tensors[i].grad
        return None if grad is None else self.array(grad)
