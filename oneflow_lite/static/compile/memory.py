"""Classes of arguments and captured tensors that share memory.

Tensors that lay apart when a call was recorded have to lie apart when it is replayed, as far as
anything is written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from oneflow_lite.static.compile.results import NotReplayable
from oneflow_lite.static.runtime.addresses import overlap
from oneflow_lite.tensor import Tensor

ndarray = np.ndarray
_writeable = attrgetter("flags.writeable")


class MemoryClasses:
    """The sharing that a recording relies on; `NotReplayable` where what it writes was shared.

    `feeds` are the positions of the arguments that are fed, `arguments` the arrays of all, before
    the recorded call, `outside` the guarded tensors from outside, `externals` the arrays that the
    Program takes besides its feeds; what it writes of both stands there by its place.
    """

    def __init__(
        self,
        feeds: Sequence[int],
        arguments: Sequence[Any],
        outside: Sequence[Tensor],
        externals: Sequence[Any],
        written_feeds: Sequence[int],
        written_externals: Sequence[int],
    ) -> None:
        self._feeds = feeds
        self._written_feeds = frozenset(written_feeds)
        self._written_externals = frozenset(written_externals)
        # Pairs that were one array, and so became one variable: of an argument and another one, or
        # a tensor from outside, and of two such tensors.
        self._same: list[tuple[int, int | Tensor]] = []
        for i in feeds:
            array = arguments[i]
            self._same += [(i, k) for k, a in enumerate(arguments) if k > i and a is array]
            self._same += [(i, t) for t in outside if t._data is array]
        first = {id(tensor._data): tensor for tensor in reversed(outside)}
        pairs = [(first[id(tensor._data)], tensor) for tensor in outside]
        self._same_outside = [(one, other) for one, other in pairs if one is not other]
        self._writes = bool(written_feeds or written_externals)
        self.renew(externals)
        written = {id(externals[i]) for i in written_externals}
        shared = any(id(one._data) in written for one, _ in self._same_outside)
        if shared or not (self._externals_apart() and self._apart([arguments[i] for i in feeds])):
            raise NotReplayable("it writes memory that several tensors share")

    def renew(self, externals: Sequence[Any]) -> None:
        """Take note of the arrays that captured tensors have now."""
        self._externals = list(externals)
        self._written = [externals[i] for i in self._written_externals]
        self._on_host = [array for array in self._written if isinstance(array, ndarray)]
        # In whose memory no argument may lie; what an argument writes may be read anywhere.
        owners = [_owner(array) for array in (externals if self._written_feeds else self._written)]
        self._owners, self._foreign = set(map(id, owners)), _is_foreign(owners)

    def check(self, arguments: Sequence[Tensor]) -> bool:
        """Return whether other arguments share memory with each other and outside as before.

        Arrays that are written have to be writable: a replay would find out in the middle, or,
        where it writes a view that was taken before, not at all.
        """
        for one, other in self._same_outside:
            if one._data is not other._data:
                return False
        for i, same in self._same:
            tensor = arguments[same] if isinstance(same, int) else same
            if arguments[i]._data is not tensor._data:
                return False
        if not self._writes:
            return True
        if not all(map(_writeable, self._on_host)):
            return False
        arrays = []
        unshared = not self._foreign  # most arrays own their memory, which then is nobody else's
        for k, i in enumerate(self._feeds):
            array = arguments[i]._data
            if k in self._written_feeds and type(array) is ndarray and not _writeable(array):
                return False
            arrays.append(array)
            if type(array) is not ndarray or not array.flags.owndata or id(array) in self._owners:
                unshared = False
        if self._written_feeds and len(arrays) > 1:
            unshared = unshared and len(set(map(id, arrays))) == len(arrays)
        return unshared or self._apart(arrays)

    def _apart(self, arrays: Sequence[Any]) -> bool:
        """Return whether nothing that is written is shared by an argument and something else."""
        for i, array in enumerate(arrays):
            others = self._written
            if i in self._written_feeds:
                others = [*self._externals, *arrays[:i], *arrays[i + 1 :]]
            if any(overlap(array, other) for other in others):
                return False
        return True

    def _externals_apart(self) -> bool:
        owners = [_owner(array) for array in self._externals]
        foreign = _is_foreign(owners)
        near: defaultdict[int, list[int]] = defaultdict(list)
        for i, owner in enumerate(owners):
            near[0 if foreign else id(owner)].append(i)
        return not any(
            overlap(self._externals[i], self._externals[k])
            for group in near.values()
            for i in self._written_externals.intersection(group)
            for k in group
            if i != k
        )


def _is_foreign(owners: Sequence[Any]) -> bool:
    """Return whether another object than an array owns memory: it may be any array's."""
    return any([type(owner) is not ndarray for owner in owners])


def _owner(array: Any) -> Any:
    """Return the object whose memory an array lies in."""
    if not isinstance(array, ndarray):
        return array.data.mem
    while type(array.base) is ndarray:
        array = array.base
    return array if array.base is None else array.base
