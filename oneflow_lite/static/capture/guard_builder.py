"""Writes the guards of one recorded call: the second walk, over what the entered code names."""

from __future__ import annotations

import abc
import functools
from collections.abc import Collection
from types import CodeType, FunctionType
from typing import Any

from oneflow_lite.nn.module import Module
from oneflow_lite.optim.optimizer import Optimizer
from oneflow_lite.static.capture.call_watch import CallWatch
from oneflow_lite.static.capture.code_walk import walk
from oneflow_lite.static.capture.guards import Guard, Guards
from oneflow_lite.static.capture.holders import (
    MISSING,
    NAMED,
    container_base,
    place,
    users_attributes,
)
from oneflow_lite.static.capture.traversal import Traversal, is_vital
from oneflow_lite.static.capture.trusted import BUILTINS, origin_of_class
from oneflow_lite.tensor import OWN_FIELDS, Tensor

_FEW = 8  # elements that are asked for one by one
# Options that every update reads anew; of the second kind, zero means that an input is left out.
_STEP_OPTIONS = {"lr": False, "betas": False, "eps": False}
_STEP_OPTIONS |= {"momentum": True, "dampening": True, "weight_decay": True}
_NUMBERS = (bool, int, float)


class GuardBuilder(Traversal):
    """Turns holders into guards, of the names that the code entered in a call mentions."""

    def __init__(self, watch: CallWatch, any_attribute: bool) -> None:
        super().__init__()
        self._watch = watch
        self.any_attribute = any_attribute
        self._users = {name for code in watch.entered for name in walk(code).attributes}
        entered = (*watch.own, *watch.library)
        self._names = self._users.union(*(walk(code).attributes for code in entered))
        # Whether the code may ask for attributes that are not there.
        self.asks = any_attribute or any(walk(code).catches for code in watch.entered)
        self._guards: list[Guard] = []
        self._holders: dict[str, Any] = {"type": type, "hasattr": hasattr, "plain": _is_plain}
        self._holders["token"] = abc.get_cache_token
        self._name_of: dict[tuple[int, bool], str] = {}
        self._known: set[tuple[str, str]] = set()

    def wants(self, name: str) -> bool:
        """Return whether the entered code mentions an attribute of this name."""
        return self.any_attribute or name in self._names

    def mentions(self, name: str) -> bool:
        """Return whether users' code that was entered names this attribute."""
        return name in self._users

    def describes(self, name: str) -> bool:
        """Return whether users' code mentions this attribute, which the package reads for texts."""
        return self.any_attribute or name in self._users

    def enters(self, code: CodeType) -> bool:
        """Return whether this code was entered."""
        return code in self._watch.entered

    def is_foreign(self, code: CodeType) -> bool:
        """Return whether this code of a library was entered, and is none that users may enter."""
        return code in self._watch.foreign

    def guards(self) -> Guards:
        """Return the guards, those of the tensors' methods and operators that ran among them."""
        methods = vars(Tensor)
        operators = {
            name
            for name, method in methods.items()
            if name.startswith("__") and getattr(method, "__code__", None) in self._watch.own
        }
        for name in sorted(self._users.intersection(methods) | operators):
            self._is(f"{self._holder(methods, Tensor)}[{name!r}]", methods[name], f"Tensor.{name}")
        return Guards(self._guards, self._holders)

    def argument(self, tensor: Tensor, path: str) -> None:
        """Go through the class of a tensor among the arguments, and what users have set on it."""
        if type(tensor) is not Tensor:
            self.walk(type(tensor), path)
        for name, value in self.read_of(tensor).items():
            self.walk(value, f"{path}.{name}")

    def read_of(self, tensor: Tensor) -> dict[str, Any]:
        """Return those attributes that users have set on a tensor and the code mentions."""
        return {k: v for k, v in users_attributes(tensor).items() if self.wants(k)}

    # One kind of holder after the other

    def hold(
        self, kind: str, owner: Any, content: dict[Any, Any], wanted: Any, path: str
    ) -> Collection[Any]:
        """Write the guards of one holder."""
        if kind == "globals":
            self._guard_globals(self._holder(owner), owner, wanted, path)
        elif kind == "attributes":
            return self._guard_attributes(owner, content, wanted, path)
        elif kind == "abstract":
            self._equal("token()", abc.get_cache_token(), "the classes registered with others")
        elif kind == "class":
            self._guard_class(owner, content, wanted, path)
        elif kind == "function":
            for name in wanted:
                self._is(f"{self._holder(owner)}.{name}", content[name], f"{path}.{name}")
        elif kind == "cell":
            if content[""] is MISSING:
                self.unknown.append(f"the closure variable {path} has no value")
            else:
                self._is(f"{self._holder(owner)}.cell_contents", content[""], path)
        elif kind not in ("tuple", "frozenset"):  # which change only with the one who holds them
            self._guard_elements(owner, content, path)
        return ()

    def _guard_globals(self, holder: str, scope: dict[str, Any], wanted: Any, path: str) -> None:
        for name in wanted:
            where = f"{path}.{name}" if path else name
            if name in scope:
                self._is(f"{holder}[{name!r}]", scope[name], where)
            else:
                self._empty(f"{name!r} in {holder}", f"whether there is {where}")
                if name in BUILTINS:
                    self._is(f"{self._holder(BUILTINS)}[{name!r}]", BUILTINS[name], where)

    def _guard_attributes(
        self, owner: Any, content: dict[str, Any], wanted: Any, path: str
    ) -> list[str]:
        holder = self._holder(owner)
        if isinstance(owner, (Tensor, FunctionType, functools.partial)):
            if isinstance(owner, Tensor):
                if self.asks:
                    names = self._holder(OWN_FIELDS.union(content))
                    self._empty(f"not {holder}.__dict__.keys() <= {names}", f"{path}.__dict__")
            elif content:
                self._equal(f"[*{holder}.__dict__]", list(content), path)
            else:
                self._empty(f"{holder}.__dict__", f"{path}.__dict__")
            for name in wanted:
                self._is(f"{holder}.__dict__[{name!r}]", content[name], f"{path}.{name}")
            return []
        self._is(f"{holder}.__class__", type(owner), f"{path}.__class__")
        own = getattr(owner, "__dict__", None)
        empty: list[str] = []
        if own is not None:
            fields = self._holder(own)
            self._is(f"{holder}.__dict__", own, f"{path}.__dict__")
            if origin_of_class(type(owner)) == "own" and not self.any_attribute:
                # Its attributes are those of its class; but one object may have its own method.
                self._equal(f"len({fields})", len(own), f"the number of attributes of {path}")
                if "forward" not in own:
                    self._empty(f"'forward' in {fields}", f"whether there is {path}.forward")
            else:
                self._equal(f"[*{fields}]", list(own), path)
            if isinstance(owner, Module):  # most have no hooks, buffers or submodules
                empty = [n for n in wanted if is_vital(n) and type(own[n]) is dict and not own[n]]
                if empty:
                    reads = [f"{fields}[{name!r}]" for name in empty]
                    self._empty(" or ".join(reads), f"one of {', '.join(empty)} of {path}")
        for name in (name for name in wanted if name not in empty):
            if own is not None and name in own:
                self._is(f"{fields}[{name!r}]", own[name], f"{path}.{name}")
            elif content[name] is MISSING:
                self._empty(f"hasattr({holder}, {name!r})", f"whether there is {path}.{name}")
            else:
                self._is(f"{holder}.{name}", content[name], f"{path}.{name}")
        return empty

    def _guard_class(self, cls: type, content: dict[str, Any], wanted: Any, path: str) -> None:
        members = self._holder(vars(cls), cls)
        if origin_of_class(cls) == "user":
            self._is(f"{self._holder(cls)}.__mro__", cls.__mro__, f"{path}.__mro__")
            self._equal(f"[*{members}]", list(content), path)
            for name in filter(self.describes, NAMED):
                self._is(f"{self._holder(cls)}.{name}", getattr(cls, name), f"{path}.{name}")
        elif self.asks or any(
            not self._users.isdisjoint(vars(base)) for base in cls.__mro__[1:-1]
        ):  # what the code finds in a base may come to be in this class
            self._equal(f"len({members})", len(content), f"the number of members of {path}")
        for name in wanted:
            self._is(f"{members}[{name!r}]", content[name], f"{path}.{name}")

    def _guard_elements(self, owner: Any, content: dict[Any, Any], path: str) -> None:
        holder = self._holder(owner)
        base = container_base(owner)
        exact = type(owner).__module__ in ("builtins", "collections")
        if base is dict:
            keys = list(dict.keys(owner))
            words = exact and all([type(key) is str for key in keys])
            if not keys:
                self._empty(holder, path)
            elif words and len(keys) == 1:
                self._equal(f"len({holder})", 1, f"len({path})")
            elif words:
                self._equal(f"[*{holder}]", keys, path)
            else:
                self._all(f"(*dict.keys({holder}),)", keys, f"the keys of {path}")
            if not keys or (words and len(keys) <= _FEW):
                for key in keys:
                    self._is(f"{holder}[{key!r}]", owner[key], place("dict", path, key))
            else:
                self._all(f"(*dict.values({holder}),)", list(dict.values(owner)), path)
        elif base is list and exact and len(owner) <= _FEW:
            self._equal(f"len({holder})", len(owner), f"len({path})")
            for i, value in enumerate(owner):
                self._is(f"{holder}[{i}]", value, f"{path}[{i}]")
        else:
            assert base is not None
            elements = list(content.values())
            iterate = f"{self._holder(base)}.__iter__" if not exact else ""
            self._all(f"(*{iterate}({holder}),)", elements, path)

    # Optimizers

    def optimizer(self, optimizer: Optimizer, path: str) -> None:
        """Write the guards of groups, state and option tensors."""
        groups = optimizer.param_groups
        self._equal(f"len({self._holder(groups)})", len(groups), f"len({path}.param_groups)")
        for i, group in enumerate(groups):
            where = f"{path}.param_groups[{i}]"
            self._is(f"{self._holder(groups)}[{i}]", group, where)
            self._guard_group(group, where)
        state = optimizer.state
        self._all(f"{self._holder(state)}.values()", list(state.values()), f"{path}.state")
        for kept in state.values():
            where, holder = f"{path}.state[...]", self._holder(kept)
            self._equal(f"len({holder})", len(kept), f"len({where})")
            for name, value in kept.items():
                self._is(f"{holder}[{self._key(name)}]", value, place("dict", where, name))
                self.later(value, place("dict", where, name))
        options = self._holder(optimizer._scalars)
        for i, (_, tensors) in enumerate(optimizer._scalars.values()):
            read = f"[*{options}.values()][{i}][1]"
            self._all(read, tensors, f"the option tensors of {path}")

    def _guard_group(self, group: dict[str, Any], path: str) -> None:
        holder = self._holder(group)
        self._equal(f"[*{holder}]", list(group), path)
        read_by_user = self.any_attribute or "param_groups" in self._users
        for name, value in group.items():
            read, where = f"{holder}[{self._key(name)}]", place("dict", path, name)
            if name in _STEP_OPTIONS and not read_by_user and _is_plain(value):
                if type(value) is tuple:
                    known = f"{read} is {self._holder(value)} or plain({read})"
                    self._is(f"({known})", True, f"whether {where} is of numbers")
                else:
                    self._is(f"type({read})", type(value), f"the type of {where}")
                if _STEP_OPTIONS[name]:
                    self._is(f"(not {read})", not value, f"whether {where} is 0")
            else:
                self._is(read, value, where)
                self.later(value, where)

    # Writing

    def _holder(self, value: Any, key: Any = None) -> str:
        """Return the name of an object in the guards' expressions; `key` is what stands for it."""
        identity = id(value if key is None else key), key is None
        known = self._name_of.get(identity)
        if known is None:
            known = self._name_of[identity] = f"h{len(self._name_of)}"
            self._holders[known] = value
        return known

    def _key(self, key: Any) -> str:
        """Return what stands for a key of a dict in the guards' expressions."""
        return repr(key) if type(key) is str else self._holder(key)

    def _is(self, read: str, value: Any, path: str) -> None:
        self._add(Guard("is", read, value, path))

    def _equal(self, read: str, value: Any, path: str) -> None:
        self._add(Guard("equal", read, value, path))

    def _empty(self, read: str, path: str) -> None:
        self._add(Guard("empty", read, None, path))

    def _all(self, read: str, values: Any, path: str) -> None:
        self._add(Guard("all", read, tuple(values), path))

    def _add(self, guard: Guard) -> None:
        if (guard.kind, guard.read) not in self._known:
            self._known.add((guard.kind, guard.read))
            self._guards.append(guard)


def _is_plain(value: Any) -> bool:
    """Return whether an option is a number or a tuple of numbers."""
    if type(value) is tuple:
        return all([type(v) in _NUMBERS for v in value])
    return type(value) in _NUMBERS
