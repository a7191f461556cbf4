"""The tensors outside of a compiled function: their states, their guards, and their memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from operator import attrgetter
from typing import Any

import numpy as np

from oneflow_lite.arrays.array_spec import may_share_memory, memory_holder
from oneflow_lite.compiler.match import OUTSIDE, Match
from oneflow_lite.compiler.same import MISSING, changed, told
from oneflow_lite.errors import InplaceError
from oneflow_lite.tensors.hooks import leaf_hook_changes
from oneflow_lite.tensors.node import AccumulateGrad
from oneflow_lite.tensors.tensor import Tensor

ndarray = np.ndarray
_ARRAY = "the array type of @|@.shape|@.dtype|@.strides|@.device|"
_KIND = f"type(@)|{_ARRAY}@.requires_grad|the node of @|the hooks of @|whether @ has a gradient|"
_KINDS = (_KIND + _ARRAY.replace("@", "@.grad") + "@.grad.requires_grad").split("|")
_writeable = attrgetter("flags.writeable")


class NotReplayable(Exception):
    """A recording cannot stand for later calls; the text says why."""


class TensorState:
    """A tensor and its state when it was looked at; looking makes no node and no storage."""

    def __init__(self, tensor: Tensor, label: str = "") -> None:
        self.tensor, self.label = tensor, label
        self.data, self.version = tensor._data, tensor._version
        self.storage: Any = tensor._storage
        self.edge: Any = tensor._edge
        self.view, self.grad, self.hooks = tensor._view, tensor.grad, hooks_of(tensor)
        self.grad_version = 0 if self.grad is None else self.grad._version
        looked_at = self.edge is not None and self.edge[0].metas is not None
        self.retains_grad = looked_at and tensor.retains_grad

    @property
    def moved(self) -> bool:
        """Whether the tensor has got another array."""
        return self.tensor._data is not self.data

    def change(self) -> str | None:
        """Name a change that a replay would not repeat; None when there is none."""
        now, storage = TensorState(self.tensor), self.storage
        replaced = storage is not None and now.storage is not storage
        if self.moved:  # what was written before is another matter
            replaced = replaced and storage.version != self.version
        changes = {
            "got another storage": replaced,
            "began or ceased to require a gradient": (now.edge is None) is not (self.edge is None),
            "got another place in the graph, as by an in-place op": now.edge is not self.edge,
            "became a view, or another one": now.view is not self.view,
            "got or lost a hook": now.hooks != self.hooks,
            "was told to retain its gradient": now.retains_grad is not self.retains_grad,
        }
        return next((what for what, happened in changes.items() if happened), None)

    def kind(self, asked: str) -> list[Any]:
        """Describe the array, and what a recording takes for granted in the graph; see `_KINDS`.

        `asked` is what it asks about the gradient: "nothing", whether it is "there", or its "kind".
        """
        edge, grad = self.edge, self.grad
        place = edge and (edge[0] if isinstance(edge[0], AccumulateGrad) else "inside")
        parts = [type(self.tensor), *_description(self.data), edge is not None, place, self.hooks]
        if asked != "nothing":
            parts.append(grad is not None)
        if asked == "kind" and grad is not None:
            parts += [*_description(grad._data), grad.requires_grad]
        return parts


def hooks_of(tensor: Tensor) -> tuple[Any, ...]:
    """Return the hooks on a tensor's gradient and on a leaf's node."""
    if (edge := tensor._edge) is None:
        return ()
    node, index = edge
    hooks: list[Any] = []
    if node.metas is not None and (meta := node.metas[index]) is not None:
        hooks += [*(meta._hooks or {}).values(), *(meta._post_accumulate_hooks or {}).values()]
    if isinstance(node, AccumulateGrad) and node.hooks is not None:
        hooks += [*node.hooks.pre.values(), *node.hooks.post.values()]
    return tuple(hooks)


class OutsideTensors:
    """The tensors that a compiled function can reach besides its arguments, guarded together.

    Each comes with what is asked about its gradient; see `TensorState.kind`.
    """

    def __init__(self, match: Match, states: Sequence[tuple[TensorState, str]]) -> None:
        self.tensors = [state.tensor for state, _ in states]
        self._asked = [asked for _, asked in states]
        self._kinds = [(state.label, state.kind(asked)) for state, asked in states]
        self._names = match.names
        self._names.update({"hooks_of": hooks_of, "hook_changes": leaf_hook_changes})
        tests = ["hook_changes[0] is hooked"]
        tests += [test for i, (state, _) in enumerate(states) for test in self._tests(i, state)]
        match.require(" and ".join(tests), OUTSIDE)
        self._renew(leaf_hook_changes[0])

    def _tests(self, i: int, state: TensorState) -> Iterator[str]:
        self._names[f"t{i}"] = state.tensor
        if state.view is not None:  # whose base may have been written
            yield f"t{i}.refresh_view() is None"
        yield f"t{i}._data is a{i} and t{i}._edge is e{i}"
        node, grad = state.edge and state.edge[0], f"t{i}.grad"
        if isinstance(node, AccumulateGrad):
            self._names[f"m{i}"] = node.meta
            grad = f"m{i}.acc_grad"
        elif node is not None:
            self._names[f"h{i}"] = state.hooks
            yield f"hooks_of(t{i}) == h{i}"
        if self._asked[i] == "kind":
            grad_edge = "" if state.grad is None or state.grad._edge is None else "not "
            yield f"{grad} is d{i} and d{i}._data is b{i} and d{i}._edge is {grad_edge}None"
        elif self._asked[i] == "there":
            yield f"{grad} is {'' if state.grad is None else 'not '}None"

    def _renew(self, hooked: object) -> None:
        """Take the tensors' present arrays and places in the graph for those to look for.

        `hooked` is the last change of hooks before their hooks were looked at.
        """
        self._names["hooked"] = hooked
        for i, (tensor, asked) in enumerate(zip(self.tensors, self._asked, strict=True)):
            self._names.update({f"a{i}": tensor._data, f"e{i}": tensor._edge})
            if asked == "kind":
                grad = tensor.grad
                self._names[f"d{i}"] = MISSING if grad is None else grad
                self._names[f"b{i}"] = None if grad is None else grad._data

    def fit(self) -> bool:
        """Take new arrays and gradients of the same kind; return False if the kind differs."""
        hooked = leaf_hook_changes[0]
        if fits := self.why() == "":
            self._renew(hooked)
        return fits

    def why(self) -> str:
        """Say in which kind the tensors differ; "" if they do not."""
        kinds = zip(self.tensors, self._asked, self._kinds, strict=True)
        for tensor, asked, (label, kind) in kinds:
            try:
                tensor.refresh_view()
            except InplaceError:
                return f"{label} is a view that is out of date"
            for what, was, now in zip(_KINDS, kind, TensorState(tensor).kind(asked), strict=False):
                if was != now:
                    return changed(what.replace("@", label), told(was), told(now))
        return ""


def _description(array: Any) -> tuple[Any, ...]:
    return (type(array), array.shape, array.dtype, array.strides, getattr(array, "device", None))


def require_same(match: Match, tensors: Iterable[tuple[str, TensorState]]) -> None:
    """Guard which tensors are around one array, with one version; they come with expressions."""
    first: dict[int, tuple[str, TensorState]] = {}
    for name, state in tensors:
        one, other = first.setdefault(id(state.data), (name, state))
        if one is not name:
            memory, known = [s.storage or s.tensor.memory for s in (state, other)]
            same = f"{name}.memory is {'' if memory is known else 'not '}{one}.memory"
            label = f"whether {state.label} and {other.label} share an array and its version"
            match.require(f"{name}._data is {one}._data and {same}", label)


class MemoryClasses:
    """The sharing that a recording relies on; `NotReplayable` where what it writes was shared.

    `feeds` are the positions of the arguments that are fed, `arrays` their arrays before the
    recorded call, and `externals` the arrays that the Program takes besides. `written_feeds` and
    `written_externals` are the places of the arrays that it writes.
    """

    def __init__(
        self,
        feeds: Sequence[int],
        arrays: Sequence[Any],
        externals: Sequence[Any],
        written_feeds: Iterable[int],
        written_externals: Iterable[int],
        labels: Sequence[str] = (),
    ) -> None:
        self._feeds = feeds
        self._written_feeds = frozenset(written_feeds)
        self._written_externals = frozenset(written_externals)
        self.writes = bool(self._written_feeds or self._written_externals)
        self.renew(externals)
        if self.writes and not (self._are_apart and self._apart(arrays)):
            both = [*arrays, *externals]
            shared = [sum(may_share_memory(one, other) for other in both) > 1 for one in both]
            names = "; ".join(compress(labels, shared))
            raise NotReplayable(f"it writes memory that is shared: {names}")

    def renew(self, externals: Sequence[Any]) -> None:
        """Take note of the arrays that captured tensors have now."""
        if not self.writes:
            return
        written = self._written_externals
        self._externals = list(externals)
        self._written = [externals[i] for i in written]
        self._on_host = [array for array in self._written if isinstance(array, ndarray)]
        holders = list(map(memory_holder, externals))
        # An object that is no array may lend its memory to any array.
        foreign = any([type(holder) is not ndarray for holder in holders])
        near: defaultdict[int, set[int]] = defaultdict(set)
        for i, holder in enumerate(holders):
            near[0 if foreign else id(holder)].add(i)
        self._are_apart = not any(
            may_share_memory(externals[i], externals[k])
            for group in near.values()
            for i in written & group
            for k in group - {i}
        )
        # No argument may lie in their memory; an argument that is written may be read anywhere.
        others = holders if self._written_feeds else [holders[i] for i in written]
        self._holders = set(map(id, others))
        self._foreign = any([type(holder) is not ndarray for holder in others])

    def check(self, arguments: Sequence[Tensor]) -> bool:
        """Return whether new arguments share memory, among themselves and outside, as before.

        This is asked where something is written. Arrays that are written have to be writable: a
        replay would find out in the middle, or, where it writes a view taken before, not at all.
        """
        given = [arguments[i]._data for i in self._feeds]
        written = [given[k] for k in self._written_feeds if type(given[k]) is ndarray]
        writeable = all(map(_writeable, self._on_host)) and all(map(_writeable, written))
        if not (self._are_apart and writeable):
            return False
        # Most arrays own their memory, which then is nobody else's.
        own = [type(a) is ndarray and a.flags.owndata and id(a) not in self._holders for a in given]
        twice = self._written_feeds and len(set(map(id, given))) < len(given)
        return (all(own) and not (twice or self._foreign)) or self._apart(given)

    def _apart(self, arrays: Sequence[Any]) -> bool:
        """Return whether nothing that is written is shared by an argument and something else."""
        for i, array in enumerate(arrays):
            others = self._written
            if i in self._written_feeds:
                others = [*self._externals, *arrays[:i], *arrays[i + 1 :]]
            if any(may_share_memory(array, other) for other in others):
                return False
        return True
