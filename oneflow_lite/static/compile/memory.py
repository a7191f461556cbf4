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
        self._written_externals = written_externals
        # Pairs that were one array, and so became one variable: (argument, argument or tensor).
        self._same: list[tuple[int, int | Tensor]] = []
        for i in feeds:
            array = arguments[i]
            self._same += [(i, k) for k, a in enumerate(arguments) if k > i and a is array]
            self._same += [(i, t) for t in outside if t._data is array]
        self._writes = bool(written_feeds or written_externals)
        self.renew(externals)
        arrays = [arguments[i] for i in feeds]
        if not self._apart(arrays) or not self._externals_apart():
            raise NotReplayable("it writes memory that several tensors share")

    def renew(self, externals: Sequence[Any]) -> None:
        """Take note of the arrays that captured tensors have now."""
        self._externals = list(externals)
        # Memory that another object than an array owns may be any array's.
        self._foreign = any(type(_owner(array)) is not ndarray for array in externals)
        self._owners = {id(_owner(array)) for array in externals}
        self._written = [externals[i] for i in self._written_externals]
        self._written_on_host = [array for array in self._written if isinstance(array, ndarray)]
        self._written_owners = {id(_owner(array)) for array in self._written}

    def check(self, arguments: Sequence[Tensor]) -> bool:
        """Return whether other arguments share memory with each other and outside as before.

        Arrays that are written have to be writable: a replay would find out in the middle, or,
        where it writes a view that was taken before, not at all.
        """
        for i, other in self._same:
            tensor = arguments[other] if isinstance(other, int) else other
            if arguments[i]._data is not tensor._data:
                return False
        if not self._writes:
            return True
        if not all(map(_writeable, self._written_on_host)):
            return False
        owners = self._owners if self._written_feeds else self._written_owners
        arrays = []
        unshared = True  # most arrays own their memory, which then is nobody else's
        for k, i in enumerate(self._feeds):
            array = arguments[i]._data
            if k in self._written_feeds and type(array) is ndarray and not _writeable(array):
                return False
            arrays.append(array)
            if type(array) is not ndarray or not array.flags.owndata or id(array) in owners:
                unshared = False
        if self._written_feeds and len(arrays) > 1:
            unshared = unshared and len(set(map(id, arrays))) == len(arrays)
        return (unshared and not self._foreign) or self._apart(arrays)

    def _apart(self, arrays: Sequence[Any]) -> bool:
        """Return whether nothing that is written is shared by an argument and something else."""
        for i, array in enumerate(arrays):
            written = i in self._written_feeds
            others = list(self._externals if written else self._written)
            if written:
                others += [other for k, other in enumerate(arrays) if k != i]
            if any(overlap(array, other) for other in others):
                return False
        return True

    def _externals_apart(self) -> bool:
        # Arrays of two owners share nothing, unless an owner is no array.
        near: defaultdict[int, list[int]] = defaultdict(list)
        places = [0 if self._foreign else id(_owner(array)) for array in self._externals]
        for k, place in enumerate(places):
            near[place].append(k)
        return not any(
            overlap(array, self._externals[k])
            for i, array in zip(self._written_externals, self._written, strict=True)
            for k in near[places[i]]
            if k != i
        )


def _owner(array: Any) -> Any:
    """Return the object whose memory an array lies in."""
    if not isinstance(array, ndarray):
        return array.data.mem
    while type(array.base) is ndarray:
        array = array.base
    return array if array.base is None else array.base
