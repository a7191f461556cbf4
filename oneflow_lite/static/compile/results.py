"""What a compiled function returns and leaves behind: described once, made again at every replay.

A tensor of the result is new memory that the Program computed, the very object that was an
argument or stood outside, an alias of such a one, a view of another tensor, or a gradient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import attrs

from oneflow_lite.autograd.gradient_rules import HookedGradFunction
from oneflow_lite.autograd.mode import local, set_grad_enabled
from oneflow_lite.autograd.node import AccumulateGrad
from oneflow_lite.interpreter import dispatch1
from oneflow_lite.static.compile.recorder import RecordingInterpreter, describe
from oneflow_lite.static.compile.tensor_states import TensorState, hooks_of, users_attributes
from oneflow_lite.static.ir.aliases import memory_roots
from oneflow_lite.static.ir.program import OpDesc
from oneflow_lite.static.ir.tree import Fixed, fixed_values, flatten, placed, read_outs
from oneflow_lite.storage import NO_GRAD, SPLIT, Origin, ViewInfo
from oneflow_lite.tensor import Tensor


class NotReplayable(Exception):
    """Why a recording cannot stand for later calls."""


@attrs.frozen(eq=False)
class Made:
    """A tensor around the array that a fetch gives.

    Attributes
    ----------
    fetch : int
    requires_grad : {"no", "leaf", "node", "freed"}
        What its place in the graph is: none, a new leaf, an output of the compiled function's
        node, or one whose graph a backward pass inside has freed.
    cls : type
    version : int
        How often its memory was written.
    shares : int or None
        The tensor that it shares a storage with, version and all.
    inference : bool
        Whether it is marked as made in `inference_mode`.
    """

    fetch: int
    requires_grad: str
    cls: type
    version: int
    shares: int | None
    inference: bool


@attrs.frozen(eq=False)
class Given:
    """A tensor that was there before: the argument at a position, or one from outside."""

    argument: int
    tensor: Tensor | None


@attrs.frozen(eq=False)
class Aliased:
    """What `detach` made of a tensor."""

    source: int


@attrs.frozen(eq=False)
class Viewed:
    """A view, by the ops that lead to it from another tensor of the list."""

    source: int
    chain: tuple[Any, ...]
    origin: Origin | None


@attrs.frozen(eq=False)
class Numbers:
    """The array that a fetch gives, to be read out."""

    fetch: int


@attrs.frozen(eq=False)
class GradientOf:
    """What a tensor's `.grad` is after the call."""

    source: int


class Store(NamedTuple):
    """What a call leaves in a place outside.

    Attributes
    ----------
    holder : object
    kind : {"attribute", "item", "cell", "count"}
    key : object
        For "count" what it is called, with its dot or brackets, the operator and the operand.
    value : object
        In `Results` the structure of it.
    number : int
        How many ops were dispatched before.
    """

    holder: Any
    kind: str
    key: Any
    value: Any
    number: int


class Results:
    """The tensors that a call returned or left as gradients, in a list without repetitions.

    Attributes
    ----------
    spec : object
        The structure of the returned value; its leaves are positions in `entries`.
    entries : list
        How each tensor is made; later ones may refer to earlier ones.
    tensors : list of Tensor
        Those of the call that is recorded, one for each entry.
    fetches : list of str
        The variables that the Program has to give.
    gradients : list of (owner, gradient or None)
        Positions in `entries`: what becomes the `.grad` of what.
    arrays : list of (owner, tensor)
        Positions in `entries`: whose array becomes that of what.
    differentiable : list of Tensor
        The tensors whose `requires_grad` is "node", in order.
    """

    def __init__(self, recorder: RecordingInterpreter, arguments: Sequence[Tensor]) -> None:
        self._recorder = recorder
        self._arguments = {id(tensor): i for i, tensor in reversed(list(enumerate(arguments)))}
        self._outside: dict[int, Tensor] = {}
        self._by_array: dict[int, Tensor] = {}
        self._gradients: dict[int, Tensor] = {}
        self._views: dict[int, Tensor] = {}  # of tensors that were views before
        self._found: dict[int, int] = {}
        self.tensors: list[Tensor] = []
        self.entries: list[Any] = []
        self.fetches: list[str] = []
        self.gradients: list[tuple[int, int | None]] = []
        self.arrays: list[tuple[int, int]] = []
        self._moved: set[int] = set()
        self.differentiable: list[Tensor] = []
        self.spec: Any = None
        self.stores: list[Store] = []

    def take(
        self,
        states: Sequence[TensorState],
        value: Any,
        read: Mapping[int, tuple[Any, Tensor, Any]] | None = None,
        stores: Sequence[Store] = (),
        fields: Any = None,
    ) -> None:
        """Describe the returned value, and the gradients that are others than before.

        `read` tells which values tensors were read as; `stores` are the places outside that hold
        something else.
        """
        for state in sorted(states, key=lambda state: id(state.tensor) not in self._arguments):
            self._outside[id(state.tensor)] = state.tensor
            self._by_array.setdefault(id(state.data), state.tensor)
            if state.view is not None:
                self._views.setdefault(id(state.view), state.tensor)
        self._moved = {id(state.tensor) for state in states if state.moved}
        self._take_arrays([state for state in states if state.moved])
        changed = [state for state in states if state.tensor.grad is not state.grad]
        for state in changed:
            grad = state.tensor.grad
            if grad is not None:
                self._gradients[id(grad)] = state.tensor
                if grad.requires_grad:
                    raise NotReplayable("a gradient with a graph of its own was left in .grad")
        self.spec = self._spec(value, read, "returned", fields)
        for store in stores:
            spec = store.value
            if type(spec) is not Fixed:
                spec = self._spec(spec, read, "left behind", fields)
            self.stores.append(store._replace(value=spec))
        for state in changed:
            grad = state.tensor.grad
            position = None if grad is None else self._gradient(grad)
            self.gradients.append((self.position(state.tensor), position))

    def _take_arrays(self, moved: Sequence[TensorState]) -> None:
        """Describe what tensors from outside hold that have got other arrays."""
        recorder = self._recorder
        roots = memory_roots(recorder.block.ops) if moved else {}
        for state in moved:
            tensor = state.tensor
            name = recorder.find(tensor._data)
            is_new = name is not None and recorder.block.var(name).is_temporary
            if state.view is not None or not is_new or roots.get(name) != name:
                raise NotReplayable(
                    f"a tensor of shape {state.data.shape} from outside got an array that the "
                    "call did not make"
                )
            self.arrays.append((self.position(tensor), self.position(tensor.detach())))

    def _spec(self, value: Any, read: Any, how: str, fields: Any) -> Any:
        leaves: list[Tensor] = []
        spec = flatten(value, leaves, read, fields)
        for fixed in fixed_values(spec):
            if not fixed.is_plain:
                raise NotReplayable(f"it {how} an object of type {type(fixed.value).__name__}")
        out = {part.position for part in read_outs(spec)}
        positions = [
            self._numbers(t) if i in out else self.position(t) for i, t in enumerate(leaves)
        ]
        return placed(spec, positions)

    def _numbers(self, tensor: Tensor) -> int:
        """Return where the array of a tensor stands that was read out."""
        name = self._recorder.find(tensor._data)
        if name is None or id(tensor) in self._arguments or id(tensor) in self._outside:
            return self.position(tensor)
        if self._recorder.block.var(name).value is not None:
            name = self._copied(tensor)
        if self._recorder.block.var(name).persistable:
            raise NotReplayable("it read out memory that came from outside")
        self.fetches.append(name)
        self.tensors.append(tensor.detach())
        self.entries.append(Numbers(self.fetches.index(name)))
        return len(self.entries) - 1

    def position(self, tensor: Tensor) -> int:
        """Return where a tensor stands in `entries`, after adding it where it is new."""
        found = self._found.get(id(tensor))
        if found is None:
            entry = self._entry(tensor)
            self.tensors.append(tensor)
            self.entries.append(entry)
            found = self._found[id(tensor)] = len(self.entries) - 1
            if isinstance(entry, Made):
                self._by_array.setdefault(id(tensor._data), tensor)
        return found

    def _gradient(self, grad: Tensor) -> int:
        if grad._view is not None:
            raise NotReplayable("a view was left in .grad")
        return self.position(grad)

    def _entry(self, tensor: Tensor) -> Any:
        if id(tensor) in self._arguments:
            return Given(self._arguments[id(tensor)], None)
        if id(tensor) in self._outside:
            return Given(-1, tensor)
        owner = next((t for t in self._outside.values() if t.grad is tensor), None)
        if owner is not None and id(tensor) not in self._gradients:
            return GradientOf(self.position(owner))
        if users_attributes(tensor):
            raise NotReplayable("it returned a tensor with attributes that were set on it")
        view = tensor._view
        if view is not None:
            _check_unwatched(tensor)
            if tensor._inference and not local.state.inference:
                raise NotReplayable("it returned a view that was made in inference_mode")
            base, chain = self._base_of(view)
            if id(base) in self._moved:
                raise NotReplayable("it returned a view of a tensor that got another array")
            if view.origin in (None, NO_GRAD, SPLIT) or self._is_known(base):
                if view.origin not in (None, NO_GRAD, SPLIT):
                    raise NotReplayable(f"it returned a view that was made {view.origin.how}")
                _check_hooks(tensor, base)
                return Viewed(self.position(base), chain, view.origin)
        source = self._by_array.get(id(tensor._data))
        if source is not None:
            if tensor._edge is not None or tensor._storage is not source._storage:
                raise NotReplayable("it returned two tensors around one piece of memory")
            return Aliased(self.position(source))
        return self._made(tensor)

    def _base_of(self, view: ViewInfo) -> tuple[Tensor, tuple[Any, ...]]:
        """Return what a view was taken from, and how: a view that was there before, or the base."""
        steps = []
        link: ViewInfo | None = view
        while link is not None and id(link) not in self._views:
            steps.append((link.op_expr, link.attrs))
            link = link.parent
        if link is not None:
            return self._views[id(link)], tuple(reversed(steps))
        return view.base, view.chain()

    def _is_known(self, tensor: Tensor) -> bool:
        """Return whether anybody outside can see that a tensor is the base of a view."""
        known = (*self._arguments, *self._outside, *self._found)
        return id(tensor) in known

    def _made(self, tensor: Tensor) -> Made:
        recorder = self._recorder
        name = recorder.find(tensor._data)
        if name is None or recorder.block.var(name).value is not None:
            name = self._copied(tensor)
        desc = recorder.block.var(name)
        storage = tensor._storage
        if desc.persistable or desc.need_check_feed or name in recorder.unknown:
            raise NotReplayable("it returned memory that came from outside")
        shares = None  # as view(dtype) shares memory and version, though it is no view
        if storage is not None:
            outside = [t for i, t in self._outside.items() if i not in self._moved]
            known = [t for t in outside if t._storage is storage]
            if known and tensor._edge is not None:
                raise NotReplayable("it returned memory that came from outside")
            shares = self.position(known[0]) if known else None
        self.fetches.append(name)
        edge = tensor._edge
        kind = "no"
        if edge is not None:
            kind = "leaf" if isinstance(edge[0], AccumulateGrad) else "node"
            _check_unwatched(tensor)
        if kind == "node":
            self.differentiable.append(tensor)
        version = 0 if shares is not None else tensor._version
        index, inference = self.fetches.index(name), tensor._inference
        return Made(index, kind, type(tensor), version, shares, inference)

    def _copied(self, tensor: Tensor) -> str:
        """Have a constant copied, for what is returned must be new at every call."""
        recorder = self._recorder
        source = recorder.name_of(tensor)
        if recorder.block.var(source).value is None:
            raise NotReplayable("it returned memory that the recording has not seen")
        copy = recorder.program.unique_name("clone")
        recorder.block.create_var(describe(copy, tensor))
        recorder.block.append_op(OpDesc("clone", (source,), (copy,)))
        return copy


def _check_unwatched(tensor: Tensor) -> None:
    """Raise where something waits for the gradient of a tensor that every replay makes anew."""
    edge = tensor._edge
    seen = edge is not None and edge[0].metas is not None
    if seen and (tensor.grad is not None or tensor.retains_grad):
        raise NotReplayable("it returned a tensor whose gradient it kept")
    if hooks_of(tensor):
        raise NotReplayable("it returned a tensor with hooks on its gradient")


def _check_hooks(tensor: Tensor, base: Tensor) -> None:
    """Raise where hooks are set between a view and its base."""
    edge = tensor._edge
    while edge is not None and edge != base._edge and edge[0] is not None:
        node, index = edge
        meta = node.metas and node.metas[index]
        if (meta and meta.hooks) or isinstance(node.grad_function, HookedGradFunction):
            raise NotReplayable("it returned a view with hooks on its gradient")
        edge = node.edges[0] if len(node.edges) == 1 else None


def taken_view(base: Tensor, chain: tuple[Any, ...], origin: Origin | None) -> Tensor:
    """Return a view of a tensor, by its ops, made in the way that `origin` says."""
    with set_grad_enabled(origin is not NO_GRAD):
        for op, options in chain:
            base = dispatch1(op, base, options)
    if origin is SPLIT and base._view is not None:
        base._view.origin = SPLIT
    return base
