"""The states in autograd of tensors outside a compiled function, before and after its call."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import attrs

from oneflow_lite.autograd.node import AccumulateGrad
from oneflow_lite.static.compile.match import Match
from oneflow_lite.static.compile.same import MISSING
from oneflow_lite.tensor import OWN_FIELDS, Tensor


@attrs.define(eq=False)
class TensorState:
    """One tensor at one moment."""

    tensor: Tensor
    data: Any
    storage: Any
    edge: Any
    view: Any
    version: int
    grad: Tensor | None
    grad_version: int
    retains_grad: bool
    hooks: tuple[Any, ...]

    @classmethod
    def of(cls, tensor: Tensor) -> TensorState:
        """Look at a tensor; nothing is made that was not there."""
        edge = tensor._edge
        return cls(
            tensor,
            tensor._data,
            tensor._storage,
            edge,
            tensor._view,
            tensor._version,
            tensor.grad,
            0 if tensor.grad is None else tensor.grad._version,
            edge is not None and edge[0].metas is not None and tensor.retains_grad,
            hooks_of(tensor),
        )

    @property
    def moved(self) -> bool:
        """Whether the tensor has got another array."""
        return self.tensor._data is not self.data

    def change(self) -> str | None:
        """Name a change that a replay would not repeat; None when there is none."""
        now, storage = TensorState.of(self.tensor), self.storage
        replaced = storage is not None and now.storage is not storage
        if replaced and not (self.moved and storage.version == self.version):
            return "got another storage"
        if now.edge is not self.edge and None in (now.edge, self.edge):
            return "began or ceased to require a gradient"
        if now.edge is not self.edge:
            return "got another place in the graph, as by an in-place op"
        if now.view is not self.view:
            return "became a view, or another one"
        if now.hooks != self.hooks:
            return "got or lost a hook"
        if now.retains_grad is not self.retains_grad:
            return "was told to retain its gradient"
        return None


def users_attributes(tensor: Tensor) -> dict[str, Any]:
    """Return the attributes that users have set on a tensor."""
    return {k: v for k, v in vars(tensor).items() if k not in OWN_FIELDS}


def hooks_of(tensor: Tensor) -> tuple[Any, ...]:
    """Return the hooks on a tensor's gradient and on a leaf's node."""
    edge = tensor._edge
    if edge is None:
        return ()
    node, index = edge
    found: list[Any] = []
    meta = None if node.metas is None else node.metas[index]
    if meta is not None:
        found += [*(meta.hooks or {}).values(), *(meta.post_accumulate_hooks or {}).values()]
    if isinstance(node, AccumulateGrad) and node.hooks is not None:
        found += [*node.hooks.pre.values(), *node.hooks.post.values()]
    return tuple(found)


class OutsideTensors:
    """The tensors that a compiled function can reach besides its arguments, guarded together.

    Of those in `used_grads` the Program reads or writes the gradient; `grads_matter` says that the
    call looked whether any is there, which `of_optimizers`, their state and options, do not have.
    """

    guard: int  # its number among the others

    def __init__(
        self,
        states: Sequence[TensorState],
        used_grads: Sequence[Tensor],
        grads_matter: bool,
        of_optimizers: Collection[Tensor] = (),
    ) -> None:
        self._grads_matter = grads_matter
        self._without_grad = set(map(id, of_optimizers))
        owners = {id(tensor) for tensor in used_grads}
        self._used_grads = [i for i, state in enumerate(states) if id(state.tensor) in owners]
        self.tensors = [state.tensor for state in states]
        self._kinds = [self._kind(i, s.data, s.edge, s.hooks, s.grad) for i, s in enumerate(states)]

    def require(self, match: Match) -> None:
        """Add the guard that nothing has been put in the place of anything."""
        self._names = match.names
        self._names["hooks_of"] = hooks_of
        tests = [test for i in range(len(self.tensors)) for test in self._tests(i)]
        label = "the kind, gradients or hooks of a tensor from outside"
        self.guard = match.require(" and ".join(tests) or "True", label, first=True)
        self.renew()

    def _tests(self, i: int) -> Iterator[str]:
        tensor, (_, place, hooks, *grads) = self.tensors[i], self._kinds[i]
        self._names[f"t{i}"] = tensor
        yield f"t{i}._data is a{i} and t{i}._edge is e{i}"
        grad = f"t{i}.grad"
        is_leaf = isinstance(place, AccumulateGrad)
        if is_leaf:
            self._names.update({f"n{i}": place, f"m{i}": place.meta})
            grad = f"m{i}.acc_grad"
        if is_leaf and not hooks:
            yield f"not m{i}.hooks and not m{i}.post_accumulate_hooks and n{i}.hooks is None"
        elif place is not None:
            self._names[f"h{i}"] = hooks
            yield f"hooks_of(t{i}) == h{i}"
        if i in self._used_grads:
            yield f"{grad} is d{i} and d{i}._data is b{i}"
        elif self._grads_matter and id(tensor) not in self._without_grad:
            yield f"{grad} is {'' if grads[0] else 'not '}None"

    def renew(self) -> None:
        """Take the tensors' present arrays and places in the graph for those to look for."""
        for i, tensor in enumerate(self.tensors):
            self._names.update({f"a{i}": tensor._data, f"e{i}": tensor._edge})
        for i in self._used_grads:
            grad = self.tensors[i].grad
            self._names[f"d{i}"] = MISSING if grad is None else grad
            self._names[f"b{i}"] = None if grad is None else grad._data

    def fit(self) -> bool:
        """Take other arrays and gradients, if they are of the same kind; return whether."""
        for i, tensor in enumerate(self.tensors):
            tensor.refresh_view()
            now = self._kind(i, tensor._data, tensor._edge, hooks_of(tensor), tensor.grad)
            if now != self._kinds[i]:
                return False
        self.renew()
        return True

    def _kind(self, i: int, array: Any, edge: Any, hooks: Any, grad: Tensor | None) -> list[Any]:
        """Describe a tensor: its array, and what the recording takes for granted in the graph."""
        place = edge and (edge[0] if isinstance(edge[0], AccumulateGrad) else "inside")
        kind = [_description(array), place, hooks]
        if self._grads_matter:
            kind.append(grad is None)  # first of what follows
        if i in self._used_grads and grad is not None:
            kind += [_description(grad._data), grad.requires_grad]
        return kind


def _description(array: Any) -> tuple[Any, ...]:
    return (type(array), array.shape, array.dtype, array.strides, getattr(array, "device", None))
