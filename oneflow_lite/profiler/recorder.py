"""The log of a profile, and the stand-ins that write it.

No code of the library asks whether a profile is on. During a profile, stand-ins take the places
where the library looks for kernels, nodes and replays: in the table of an op's kernels, on a class,
in the buffers of a replay. A stand-in reads the clock twice and appends to the log. The originals
come back at the end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, ClassVar
from weakref import getweakrefcount, ref

import attrs
from numpy import ndarray

from oneflow_lite.arrays.locks import make_lock
from oneflow_lite.ops import upward

# Modules whose `instruments` put stand-ins in place.
_INSTRUMENTED = ("events of ops", "events of Programs", "events of flow.compile")

# Ops that write an input without reading it, and ops that need the shape of an input alone.
FILLS = frozenset("copy_ fill_".split())
SHAPE_ONLY = frozenset("zeros_like ones_like dropout_mask empty_like full_like rand_like".split())


@attrs.define(eq=False)
class What:
    """The thing that ran in an event: an op, a node, a replay, a range.

    Attributes
    ----------
    name : str
    kind : str
        "op", "node" (of the backward graph), "backward" (one call of it), "replay" (of a Program),
        "compiled" (the call of a compiled function around it), "module", "range" (a user's),
        "profiler" (its own work), or "way" (of a kernel: a note of the op in whose event it is).
    location : str
        The user's line, where it is known; else empty.
    parts : tuple of str
        The ops of a group.
    written : tuple of int
        The positions of the inputs that an op writes.
    op : object
        The `OpDesc` that a line of a replay runs; else None.
    """

    name: str
    kind: str
    location: str = ""
    parts: tuple[str, ...] = ()
    written: tuple[int, ...] = ()
    op: Any = attrs.field(default=None, repr=False)

    def moved(self, given: Pairs, taken: Pairs) -> tuple[int, int]:
        """Return the bytes read and the bytes written, by ids and sizes of inputs and results."""
        targets = {given[i] for i in self.written if i < len(given)}
        read = set() if self.name in SHAPE_ONLY else set(given)
        if self.name in FILLS:
            read -= targets
        written = targets | (set(taken) - set(given))
        return sum(size for _, size in read), sum(size for _, size in written)


def name_of_parts(name: str, parts: Sequence[str]) -> str:
    """Return the name of an event of several ops."""
    few = ", ".join(parts[:3]) + (", ..." if len(parts) > 3 else "")
    return f"{name}({few})"


Pairs = Sequence[tuple[int, int]]
_NONE: Iterable[int] = repeat(0)


@attrs.define(eq=False)
class Lines:
    """Ops in the lines of a replay, or nodes of a backward call, that ran without a gap.

    `reads` and `writes` are the bytes of each.
    """

    whats: Sequence[What]
    reads: Iterable[int] = _NONE
    writes: Iterable[int] = _NONE


@attrs.frozen
class Options:
    """The details that a profile writes down beside times and bytes."""

    memory: bool = False
    shapes: bool = False
    stack: bool = False
    modules: bool = False

    def __or__(self, other: Options) -> Options:
        pairs = zip(attrs.astuple(self), attrs.astuple(other), strict=True)
        return Options(*[mine or theirs for mine, theirs in pairs])


class Recorder:
    """The log that stand-ins append to, and the options of the profile.

    The log is flat, since a million tuples would keep the garbage collector busy. It holds these
    records in the order of time:

    - a `What`, its start and end, the thread, bytes read and written (or ids and bytes of inputs
      and of results, to count later), and details, or a weak reference to a new result, or None;
    - a `Lines`, the thread, and a tuple of times: the start of the first line, each line's end;
    - a weak reference to new memory, the `What` that made it, and its bytes;
    - the same reference again, when the memory is gone.

    Attributes
    ----------
    log : list
    options : Options
    results : callable, optional
        Is given the names and arrays of what each line of a replay made or filled.
    """

    results: ClassVar[Any] = None

    def __init__(self, options: Options, log: list[Any]) -> None:
        self.options, self.log = options, log

    def made(self, what: What, array: Any) -> None:
        """Take note of the memory of a new array, until it is gone."""
        while type(array) is ndarray and type(array.base) is ndarray:
            array = array.base
        # Else the memory is not NumPy's own, or it is noted already: only profiles refer to it
        # weakly.
        if type(array) is ndarray and array.base is None and not getweakrefcount(array):
            log = self.log
            log.extend((ref(array, log.append), what, array.nbytes))

    def details(self, arrays: Any, events: Any = None) -> dict[str, Any] | None:
        """Return the details of a call that the options ask for, and the CUDA events around it."""
        details: dict[str, Any] = {"events": events} if events else {}
        if self.options.shapes:
            details["shapes"] = tuple([getattr(a, "shape", ()) for a in arrays])
        if self.options.stack:
            details["location"] = str(_user_location() or "")
        return details or None


def _user_location() -> Any:
    return upward.module("user's line").user_location()


Put = Callable[[Recorder], Iterator[None]]  # its generator puts stand-ins, yields, and undoes
_lock = make_lock()
_wanted: list[Options] = []
_log: list[Any] | None = None  # of the profiles that are on
_undo: list[Iterator[None]] = []


def begin(options: Options) -> tuple[list[Any], int]:
    """Begin to record, or go on with more options; return the log and its length."""
    global _log
    with _lock:
        _wanted.append(options)
        if _log is None:
            _log = []
        _renew(_log)
        return _log, len(_log)


def end(options: Options) -> None:
    """Stop recording, unless another profile is on."""
    global _log
    with _lock:
        _wanted.remove(options)
        log = _log if _wanted else None
        _renew(log)
        _log = log


_current: Options | None = None


def _renew(log: list[Any] | None) -> None:
    """Put stand-ins in place for all options of the profiles that are on, or take all away."""
    global _current
    options = None
    for wanted in _wanted:
        options = wanted if options is None else options | wanted
    if options == _current:
        return
    _current = None
    # Undone in reverse, since a stand-in may stand for another one.
    while _undo:
        next(_undo.pop(), None)
    if options is None or log is None:
        return
    recorder = Recorder(options, log)
    for put in [put for part in _INSTRUMENTED for put in upward.module(part).instruments]:
        undo = put(recorder)
        next(undo)
        _undo.append(undo)
    _current = options


def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Set an attribute of an object, and set it back when the generator goes on."""
    own = name in vars(owner)  # an inherited attribute must come back as inherited
    before = getattr(owner, name)
    setattr(owner, name, value)
    yield
    if own:
        setattr(owner, name, before)
    else:
        delattr(owner, name)


def together(*puts: Iterator[None]) -> Iterator[None]:
    """Put several stand-ins in their places, and take them away when the generator goes on."""
    for put in puts:
        next(put)
    yield
    for put in puts:
        next(put, None)


def current_log() -> list[Any] | None:
    """Return the log of the profiles that are on; None if there is none."""
    return _log


def names_of_threads() -> dict[int, str]:
    """Return the names of all living threads, by identifier."""
    return {t.ident: t.name for t in threading.enumerate() if t.ident is not None}
