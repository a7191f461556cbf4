"""Loop: machine code that eager mode takes for an op on large arrays, where Numba is installed.

`OpExpr.on_cpu` asks `with_loops` for a kernel that looks at the size of its first array: below the
size that `kernels/loops` gives for the op, NumPy's kernel runs. From there on a function runs a
Loop, or returns None where it has no loop for this call. The function stands in `kernels/loops`, or
is written from the op's scalar expression (`static/fusion/eager.py`).
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import os
from _thread import start_new_thread
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np

from oneflow_lite.arrays.locks import cached_property, make_future
from oneflow_lite.arrays.threads import parts_of
from oneflow_lite.ops import upward
from oneflow_lite.ops.registry import KERNELS

# Elements in large arrays that NumPy's kernel of an op goes through before loops are asked; then
# half as many of one kind before a thread builds a loop. At 1 to 4 ns each they all take about as
# long as the building. A loop that takes over at a call that is fixed does so after as many again.
PAYS = 1 << 26
_EACH = 0.5  # nanoseconds that loops take for an element of their largest array

CALL = 8192  # elements that a call costs as much as

enabled = True
# Whether machine code takes over at calls that do not depend on how long it takes to build, and
# which wait for it: set by flow.use_deterministic_algorithms().
deterministic = False
_loops: WeakSet[Loop] = WeakSet()


@functools.cache
def has_numba() -> bool:
    """Return whether the extra `jit` is installed."""
    return importlib.util.find_spec("numba") is not None


def cache_folder() -> Path | None:
    """Return where machine code is kept; None where ONEFLOW_LITE_CACHE is empty."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    given = os.environ.get("ONEFLOW_LITE_CACHE", str(Path(home) / "oneflow_lite"))
    return Path(given) if given else None


class Loop:
    """A loop that Numba compiles for each kind of arguments that it is called with.

    Parameters
    ----------
    source : str or function
        Of `loop(part, begin, end, *arguments)`, which goes from step `begin` to step `end`. It may
        use the names of scalar expressions, `add`, and `real`, the dtype of its first array.

    Examples
    --------
    >>> from oneflow_lite.ops.eager_loops import Loop
    >>> doubled = Loop(
    ...     "def group(part, begin, end, x, y):\\n"
    ...     "    for i in range(begin, end):\\n"
    ...     "        y[i] = x[i] + x[i]\\n"
    ... )
    >>> doubled(3, np.ones(3), np.empty(3))  # NumPy does it until the loop is built
    False
    """

    def __init__(self, source: str | Callable[..., None]) -> None:
        self._given = source
        self.sites: dict[Any, _Site] = {}
        _loops.add(self)

    @cached_property
    def source(self) -> str:
        """The text that is compiled."""
        if isinstance(self._given, str):
            return self._given
        text = inspect.getsource(self._given)
        return "def group" + text[text.index("def ") :].removeprefix(f"def {self._given.__name__}")

    def __call__(self, steps: int, *arguments: Any, work: int = 0) -> bool:
        """Run all steps, on several threads where that pays; all arrays lie in C order.

        `work` is the number of elements that would take as long, where the size of the largest
        array understates it. Returns False, and runs nothing, while the loop is not built.
        """
        # Numba compiles for dtypes, dimensions and lengths of tuples, so a site is for those.
        key: list[Any] = []
        for x in arguments:
            if type(x) is np.ndarray:
                key.append(x.dtype.char)
                key.append(x.ndim)
                work = max(work, x.size)
            else:
                key.append(len(x) if type(x) is tuple else type(x))
        code = self._code(tuple(key), work, arguments)
        if code is None:
            return False
        machine, run = code
        parts = parts_of(work * _EACH, steps)
        if parts == 1:
            run(0, 0, steps, *arguments)
        else:
            machine.share(run, steps, parts, arguments)
        return True

    def built(
        self, arguments: Sequence[Any], work: int = 0
    ) -> tuple[Any, Callable[..., None]] | None:
        """Count a call; return the divider of work and the code, or None before code is built."""
        arrays = [x for x in arguments if type(x) is np.ndarray]
        kind = tuple([(x.dtype.char, x.ndim) for x in arrays])
        return self._code(kind, work or max([x.size for x in arrays]), arguments)

    def _code(
        self, kind: tuple[Any, ...], work: int, arguments: Sequence[Any]
    ) -> tuple[Any, Callable[..., None]] | None:
        site = self.sites.get(kind)
        if site is None:
            site = self.sites[kind] = _Site()
        if site.found is None and not site.takes_over(self.source, work, arguments):
            return None
        return site.found


class _Site:
    """The machine code of a loop for one kind of arguments, and how near it is to taking over."""

    def __init__(self) -> None:
        self.found: tuple[Any, Callable[..., None]] | None = None
        self.work = 0
        self.failed: Exception | None = None
        self.built: Future[Any] | None = None

    def takes_over(self, source: str, work: int, arguments: Sequence[Any]) -> bool:
        """Count a call that NumPy does, or end the counting; return whether the loop is built."""
        if self.failed is not None:
            return False
        self.work += work
        if self.work >= PAYS // 2 and self.built is None:
            self.build(source, tuple(map(_like, arguments)))
        built = self.built
        if built is None or not (self.work >= PAYS if deterministic else built.done()):
            return False
        try:
            self.found = built.result()
        except Exception as error:  # Numba's, of many kinds: NumPy goes on
            self.failed = error
            return False
        return True

    def build(self, source: str, arguments: tuple[Any, ...]) -> None:
        """Begin to compile."""
        future = make_future()

        def work() -> None:
            try:
                machine = upward.module("writer of loops").load_machine()
                future.set_result((machine, machine.loop(source, arguments)))
            except BaseException as error:  # or `result()` would wait for ever
                future.set_exception(error)

        try:
            start_new_thread(work, ())
        except RuntimeError as error:  # none can be started: NumPy goes on
            future.set_exception(error)
        self.built = future


def _like(x: Any) -> Any:
    """Return an argument of the same kind without its memory: the thread outlives the call."""
    return np.empty((0,) * x.ndim, x.dtype) if type(x) is np.ndarray else x


def _forget_threads() -> None:
    """Let a forked process build anew: the threads that were building live in its parent."""
    for loop in _loops:
        for site in loop.sites.values():
            if site.found is None and site.built is not None and not site.built.done():
                site.built = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


class Updates:
    """All updates of an optimizer's step as one call, once that pays.

    Attributes
    ----------
    fitting : list
        The arrays of parameters and the states that the optimizer found to fit each other.
    grads : list
        Shapes and dtypes of their gradients.
    attrs : dict
        The attributes of the ops by the number of the group, as the optimizer has checked them.
    """

    def __init__(self) -> None:
        self.fitting: list[Any] = []
        self.grads: list[Any] = []
        self.attrs: dict[int, Any] = {}
        self._work = 0
        self._joint: Any = None

    @property
    def moved(self) -> tuple[int, int]:
        """The bytes that the last step read and wrote as one call."""
        return self._joint.moved  # type: ignore[no-any-return]

    def done(self, op_type_name: str, updates: Sequence[tuple[Sequence[Any], Any]]) -> bool:
        """Take a step; return False where NumPy is to take it, op by op.

        Parameters
        ----------
        op_type_name : str
        updates : sequence of (sequence of Tensor or None, dict)
            Inputs and attributes of each op.
        """
        if len(updates) < 2 or not (enabled and has_numba()):
            return False
        if not KERNELS.get(op_type_name).is_library:  # a user's kernel is not replaced by code
            return False
        work = sum([inputs[0]._data.size for inputs, _ in updates]) + CALL * len(updates)
        if self._work < PAYS:
            self._work += work
            return False
        if self._joint is None:
            self._joint = upward.module("writer of loops").JointUpdate(op_type_name)
        return bool(self._joint(updates, work))


def function_of(op_type_name: str) -> Callable[..., Any]:
    """Return a function that runs an op by a loop, and returns None where NumPy is to run it."""
    room = upward.module("loops of kernels")
    by_hand: Callable[..., Any] | None = room.function_of(op_type_name)
    return by_hand or upward.module("writer of loops").function_of(op_type_name)


def asks(op_type_name: str, elements: int) -> bool:
    """Return whether an op on a first array of this size asks for a loop written by hand."""
    room = upward.module("loops of kernels")
    least = room.FROM_SIZE.get(op_type_name) if room.is_by_hand(op_type_name) else None
    return least is not None and elements >= least


def _is_plain(x: Any) -> bool:
    """Return whether a loop can read an argument: a gradient rule may give a kernel a number."""
    return type(x) is np.ndarray and x.flags.c_contiguous and x.flags.aligned


def _is_written(x: Any) -> bool:
    """Return whether a loop can write an argument, too."""
    return type(x) is np.ndarray and x.flags.carray


def with_loops(op_type_name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel with loops for large arrays; the kernel itself for an op without any."""
    entry = KERNELS.get(op_type_name)
    if not has_numba() or not entry.is_library:
        return kernel
    room = upward.module("loops of kernels")
    from_size = room.FROM_SIZE.get(op_type_name)
    if from_size is None:
        return kernel
    plain = kernel
    if isinstance(kernel, functools.partial):  # one call less
        plain, (xp,) = kernel.func, kernel.args
    else:
        xp = None
    is_fit = _is_written if entry.schema.mutates else _is_plain
    by_loop: Callable[..., Any] | None = None
    work = 0

    def large(*arrays: Any, **attrs: Any) -> Any:
        nonlocal by_loop, work
        # A short program ends before the work is done, and never imports Numba.
        if work < PAYS:
            work += room.work_of(op_type_name, *arrays, **attrs)
        elif enabled and all([x is None or is_fit(x) for x in arrays]):
            if by_loop is None:
                by_loop = function_of(op_type_name)
            made = by_loop(*arrays, **attrs)
            if made is not None:
                return made
        return kernel(*arrays, **attrs)

    # For one and two arrays the function has fixed parameters: small arrays pay for every step.
    size: int = from_size
    schema = entry.schema
    if schema.attrs or len(schema.inputs) > 2 or xp is None:

        def sized(x: Any, *others: Any, **attrs: Any) -> Any:
            return kernel(x, *others, **attrs) if x.size < size else large(x, *others, **attrs)

        return sized
    if len(schema.inputs) == 1:

        def sized1(x: Any, **given: Any) -> Any:  # nothing but `out`
            return plain(xp, x, **given) if x.size < size else large(x, **given)

        return sized1

    def sized2(x: Any, y: Any, **given: Any) -> Any:
        return plain(xp, x, y, **given) if x.size < size else large(x, y, **given)

    return sized2
