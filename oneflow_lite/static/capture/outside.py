"""What a function can reach outside its arguments: looked at before, and again after, it runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

from oneflow_lite.optim.optimizer import Optimizer
from oneflow_lite.registry import GRAD_FUNCS
from oneflow_lite.static.capture.call_watch import CallWatch as CallWatch
from oneflow_lite.static.capture.code_walk import walk
from oneflow_lite.static.capture.guard_builder import GuardBuilder
from oneflow_lite.static.capture.guards import Guards
from oneflow_lite.static.capture.holders import MISSING, content_of, place, users_attributes
from oneflow_lite.static.capture.traversal import Traversal
from oneflow_lite.static.capture.trusted import origin, origin_of_class, origin_of_module
from oneflow_lite.static.ir.tree import same
from oneflow_lite.tensor import Tensor


class Snapshot(Traversal):
    """Copies what every holder holds, and says later what is different."""

    def __init__(self) -> None:
        super().__init__()
        self._holders: dict[tuple[int, str], tuple[str, Any, dict[Any, Any], str]] = {}
        self.optimizers: list[tuple[Optimizer, str]] = []

    def hold(
        self, kind: str, owner: Any, content: dict[Any, Any], wanted: Any, path: str
    ) -> Collection[Any]:
        """Copy the content of one holder."""
        key = (id(owner), kind)
        if key not in self._holders:
            self._holders[key] = (kind, owner, _content(kind, owner), path)
        return ()

    def optimizer(self, optimizer: Optimizer, path: str) -> None:
        """Copy an optimizer's groups and state."""
        self.later(optimizer.param_groups, f"{path}.param_groups")
        self.optimizers.append((optimizer, path))
        self.hold("items", optimizer.state, {}, (), f"{path}.state")
        for kept in optimizer.state.values():
            self.later(kept, f"{path}.state[...]")

    def changes(self, made_state_allowed: bool, mentioned: Collection[str]) -> Iterator[str]:
        """Go through what is different now, in words.

        Modules of libraries may have got other names than those that are mentioned.
        """
        states = {id(o.state) for o, _ in self.optimizers}
        states |= {id(kept) for o, _ in self.optimizers for kept in o.state.values()}
        for kind, owner, before, path in self._holders.values():
            after = _content(kind, owner)
            added_allowed = made_state_allowed and id(owner) in states
            if kind == "globals" and origin_of_module(owner.get("__name__")) != "user":
                added_allowed = not any(name in mentioned and name not in before for name in after)
            for key, value in before.items():
                if not same(value, after.get(key, MISSING)):
                    yield f"changed {place(kind, path, key)}"
            added = [key for key in after if key not in before]
            if added and not added_allowed:
                yield from (f"added {place(kind, path, key)}" for key in added)
            elif not added and not all(map(same, before, after)):
                yield f"changed the order of {path}"


class Outside:
    """All Python objects that a function reaches, as they were before a call of it.

    Attributes
    ----------
    codes : set of code
        The code objects of users' functions among them.
    tensors : dict of int to (Tensor, str)
        The tensors among them, by id, and where each was found.
    captured : frozenset of int
        The ids of those that are reached otherwise than as an argument.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> from oneflow_lite.static.capture.outside import CallWatch, Outside
    >>> options = {"scale": 2.0}
    >>> def double(x):
    ...     return x * options["scale"]
    >>> x = flow.ones(2)
    >>> outside = Outside.of(double, (x,), {})
    >>> with CallWatch() as watch:
    ...     y = double(x)
    >>> [*watch.reasons(outside), *outside.changes(watch)]
    []
    >>> guards = outside.guards(watch)
    >>> options["scale"] = 3.0
    >>> guards.check(), guards.why()
    (False, "`options['scale']` was 2.0, is 3.0")
    """

    def __init__(
        self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        self._fn = fn
        self._arguments = (tuple(args), dict(kwargs))
        self._snapshot = Snapshot()
        for value, path in ((fn, _name(fn)), *_registered_rules()):
            self._snapshot.walk(value, path)
        for value, path in _leaves(self._arguments, "arguments"):
            if isinstance(value, Tensor):
                self._snapshot.walk(users_attributes(value), path)
            else:
                self._snapshot.walk(value, path)
        self.captured = frozenset(self._snapshot.tensors)
        for value, path in _arguments(args, kwargs):
            self._snapshot.walk(value, path)
        self._built: tuple[CallWatch, GuardBuilder] | None = None

    @classmethod
    def of(cls, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Outside:
        """Look at everything that `fn(*args, **kwargs)` can reach."""
        return cls(fn, args, kwargs)

    @property
    def codes(self) -> set[CodeType]:
        """The code objects of users' functions."""
        return self._snapshot.codes

    @property
    def tensors(self) -> dict[int, tuple[Tensor, str]]:
        """The tensors by id, and where each was found."""
        return self._snapshot.tensors

    def reaches(self, optimizer: Optimizer) -> bool:
        """Return whether an optimizer was there before the call."""
        return any(known is optimizer for known, _ in self._snapshot.optimizers)

    def changes(self, watch: CallWatch | None = None) -> list[str]:
        """Say what the call changed, tensors apart: a replay would not change it.

        State that an optimizer made for its parameters is no change, unless the users' code that
        `watch` saw (by default the one that was asked for reasons) mentions that state itself.
        """
        if watch is None and self._built is not None:
            watch = self._built[0]
        entered = () if watch is None else watch.entered
        mentioned = {name for code in entered for name in walk(code).attributes}
        found = self._snapshot.changes("state" not in mentioned, mentioned)
        return list(dict.fromkeys(found))

    def unknown(self, watch: CallWatch) -> list[str]:
        """Say what the entered code names and cannot be guarded."""
        found = list(dict.fromkeys(self._builder(watch).unknown))
        return found if self._snapshot.too_many is None else [*found, self._snapshot.too_many]

    def guards(self, watch: CallWatch) -> Guards:
        """Return the guards of a call: what the code that it entered names, as it is now."""
        return self._builder(watch).guards()

    def attributes_read(self, watch: CallWatch, tensor: Tensor) -> tuple[dict[str, Any], bool]:
        """Return attributes that users have set on a tensor and the call may have read.

        The second value says whether it may have asked for others, too.
        """
        builder = self._builder(watch)
        return builder.read_of(tensor), builder.asks

    def containers(self, watch: CallWatch) -> list[Any]:
        """Return the lists and dicts that the call could read; its guards keep them."""
        return [x for x in self._builder(watch).met() if type(x) in (list, dict)]

    def has_container(self, value: Any) -> bool:
        """Return whether a list or dict was there before the call, or one is in `value` twice."""
        found: set[int] = set()
        work = [value]
        while work:
            value = work.pop()
            if isinstance(value, (list, dict)):
                if id(value) in found or self._snapshot.has_met(value):
                    return True
                found.add(id(value))
            if isinstance(value, (list, tuple)):
                work.extend(value)
            elif isinstance(value, dict):
                work.extend(value.values())
        return False

    def _builder(self, watch: CallWatch) -> GuardBuilder:
        if self._built is None or self._built[0] is not watch:
            any_attribute = watch.any_attribute
            any_attribute |= any(walk(code).any_attribute for code in watch.entered)
            builder = self._build(watch, any_attribute)
            if builder.any_attribute and not any_attribute:  # seen on the way: once more with all
                builder = self._build(watch, True)
            self._built = (watch, builder)
        return self._built[1]

    def _build(self, watch: CallWatch, any_attribute: bool) -> GuardBuilder:
        builder = GuardBuilder(watch, any_attribute)
        builder.walk(self._fn, _name(self._fn))
        for code, scopes in watch.entered.items():
            for scope in scopes:
                builder.globals(code, scope)
        for function, path in self._snapshot.functions:
            if builder.enters(function.__code__):
                builder.walk(function, path)
        for value, path in _leaves(self._arguments, "arguments"):
            if isinstance(value, Tensor):
                builder.argument(value, path)
            else:
                builder.walk(value, path)
        if builder.too_many is not None:
            builder.unknown.append(builder.too_many)
        return builder


def _registered_rules() -> Iterator[tuple[Any, str]]:
    """Go through the gradient rules that users have registered: no name leads to them."""
    for name in GRAD_FUNCS:
        entry = GRAD_FUNCS.get(name)
        if origin_of_class(type(entry)) == "user":
            yield entry, f"the gradient of {name}"
        rules = [getattr(entry, "whole_rule", None), *getattr(entry, "by_name", {}).values()]
        for rule in filter(None, rules):
            if isinstance(rule[0], FunctionType) and origin(rule[0].__code__) == "user":
                yield rule[0], f"the gradient of {name}"


def _arguments(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    for position, value in enumerate(args):
        yield value, f"argument {position}"
    for name, value in kwargs.items():
        yield value, name


def _leaves(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    """Go through the objects in nested containers of arguments, which differ from call to call."""
    if type(value) in (list, tuple):
        for element in value:
            yield from _leaves(element, path)
    elif type(value) is dict:
        for key, element in value.items():
            yield from _leaves(element, str(key))
    else:
        yield value, path


def _content(kind: str, owner: Any) -> dict[Any, Any]:
    if kind == "globals":  # Python and its tools keep notes of their own under such names
        notes = {name for name in owner if name.startswith("__") and name.endswith("__")}
        return {name: value for name, value in owner.items() if name not in notes}
    return content_of(kind, owner)


def _name(fn: Any) -> str:
    name = getattr(fn, "__name__", None)
    return name if isinstance(name, str) else type(fn).__name__
