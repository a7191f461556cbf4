"""Executor: runs Programs, each analysed once for its feeds and fetches."""

from __future__ import annotations

import difflib
import functools
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oneflow_lite.arrays.device import DeviceLike, as_device
from oneflow_lite.arrays.locks import make_lock
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.errors import ArgumentError, arg_error, type_error
from oneflow_lite.static.ir.descriptions import check_shapes
from oneflow_lite.static.ir.program import Program, check_program
from oneflow_lite.static.ir.scope import Scope, global_scope
from oneflow_lite.static.lazy.default_programs import default_main_program
from oneflow_lite.static.runtime.interpreter_core import InterpreterCore
from oneflow_lite.static.runtime.prepared_run import PreparedRun
from oneflow_lite.tensors.shown import Shown
from oneflow_lite.tensors.tensor import Tensor, make_tensor


class Executor(Shown):
    """Runs Programs on a device.

    Parameters
    ----------
    place : device, optional
        Where to run; the CPU by default.
    mode : {"straight_line", "numpy", "work_queue", "cuda_graph"}
        How the prepared instructions are run; see `InterpreterCore`.
    passes : sequence of str, optional
        Names of the passes to apply; all of them by default.
    cache_size : int
        How many analysed Programs are kept; the least recently used one is dropped first.

    Examples
    --------
    >>> import numpy as np
    >>> import oneflow_lite as flow
    >>> main = flow.static.Program()
    >>> with flow.static.program_guard(main):
    ...     x = flow.static.data("x", [2])
    ...     y = x * 2 + 1
    >>> executor = flow.static.Executor()
    >>> executor.run(main, feed={"x": np.array([1, 2], "float32")}, fetch_list=[y])
    [array([3., 5.], dtype=float32)]
    """

    @guarded
    def __init__(
        self,
        place: DeviceLike | None = None,
        *,
        mode: str = "straight_line",
        passes: Sequence[str] | None = None,
        cache_size: int = 64,
    ) -> None:
        if type(cache_size) is not int or cache_size < 1:
            raise arg_error(
                "Executor",
                "cache_size",
                expected="an int of at least 1",
                got=repr(cache_size),
                hint="leave it out",
                kind=ArgumentError,
            )
        self.place = as_device(place)
        self.mode = mode
        self.passes = None if passes is None else tuple(passes)
        self.cache_size = cache_size
        self._cache: OrderedDict[Any, PreparedRun] = OrderedDict()
        self._lock = make_lock()

    @guarded
    def run(
        self,
        program: Program | None = None,
        feed: Mapping[str, Any] | None = None,
        fetch_list: Sequence[Any] | None = None,
        scope: Scope | None = None,
        return_numpy: bool = True,
    ) -> list[Any]:
        """Run a Program once.

        Parameters
        ----------
        program : Program, optional
            The default main program if None.
        feed : dict of str to array, Tensor or list
            A value for each variable of `static.data` that an op of the run takes, of its shape and
            dtype. Lists and Python numbers are converted to that dtype, arrays and tensors are not.
            Feeds are neither written nor kept.
        fetch_list : list of Tensor or str
            What to return: symbolic tensors, or names of variables.
        scope : Scope, optional
            Holds the persistable variables; `global_scope()` if None.
        return_numpy : bool
            Whether to return arrays rather than tensors.

        Returns
        -------
        list of array or Tensor
            In the order of `fetch_list`, in memory of their own, on the host.

        Raises
        ------
        ArgumentError
            When a feed is missing or unknown (Paddle drops an unknown one silently), when there is
            no such variable to fetch or nothing makes it, or when the scope lacks a persistable
            variable.
        ShapeError, DTypeError
            When a feed, or a variable of the scope, is not of the declared shape and dtype.
        """
        if program is None:
            program = default_main_program()
        if feed is None:
            feed = {}
        if scope is None:
            scope = global_scope()
        if type(feed) is not dict and not isinstance(feed, Mapping):
            raise _bad_type_error("feed", "a dict of arrays by name", feed, "pass {'x': array}")
        prepared = self._prepare(program, feed, fetch_list)
        for hook in program.before_run:
            hook(scope)
        results = prepared.run(feed, scope)
        return results if return_numpy else [make_tensor(array) for array in results]

    @guarded
    def analyse(
        self,
        program: Program | None = None,
        feed: Iterable[str] | None = None,
        fetch_list: Sequence[Any] | None = None,
    ) -> InterpreterCore:
        """Return the InterpreterCore that `run` uses for a Program with these feeds and fetches.

        Parameters
        ----------
        program, fetch_list
            As for `run`.
        feed : names, or dict of arrays by name
            Which variables are fed.

        Returns
        -------
        InterpreterCore
            The object that runs, to be printed or examined.

        Examples
        --------
        >>> import oneflow_lite as flow
        >>> main = flow.static.Program()
        >>> with flow.static.program_guard(main):
        ...     y = flow.static.data("x", [2]).exp()
        >>> core = flow.static.Executor().analyse(main, ["x"], [y])
        >>> [instruction.name for instruction in core.instructions]
        ['feed(x)', 'exp', 'fetch(exp_0)']
        """
        if program is None:
            program = default_main_program()
        names = [feed] if isinstance(feed, str) else list(feed or ())
        if not all(isinstance(name, str) for name in names):
            raise _bad_type_error("feed", "names, or a dict of arrays by name", feed, "pass ['x']")
        return self._prepare(program, names, fetch_list).core

    def close(self) -> None:
        """Forget all analysed Programs, and with them their buffers."""
        with self._lock:
            self._cache.clear()

    def _prepare(
        self, program: Program, feed: Iterable[str], fetch_list: Sequence[Any] | None
    ) -> PreparedRun:
        """Find the analysed Program in the cache, or analyse it."""
        check_program("Executor.run", "program", program)
        fetches = self._fetch_names(program, fetch_list)
        # Shapes and dtypes of the feeds are those that the program declares: the fingerprint has
        # them. Place, mode and passes are those of this Executor.
        key = (program.fingerprint(), frozenset(feed), fetches)
        with self._lock:
            prepared = self._cache.get(key)
            if prepared is None:
                prepared = self._analyse(program, key[1], fetches)
                self._cache[key] = prepared
                if len(self._cache) > self.cache_size:
                    self._cache.popitem(last=False)
            else:
                self._cache.move_to_end(key)
        return prepared

    def _analyse(
        self, program: Program, given: frozenset[str], fetches: tuple[str, ...]
    ) -> PreparedRun:
        variables = program.global_block().vars
        for name in given:
            if name not in variables or not variables[name].need_check_feed:
                declared = [n for n, desc in variables.items() if desc.need_check_feed]
                raise _unknown_error("feed", name, declared, "feed the variables of static.data")
        for name in fetches:
            if name not in variables:
                raise _unknown_error("fetch_list", name, list(variables), "see print(program)")
        # A copy, since sub-blocks are not copied again and may be changed later.
        copy = program.clone()
        check_shapes(copy)
        return PreparedRun(copy, given, fetches, self.place, self.mode, self.passes)

    def _fetch_names(self, program: Program, fetch_list: Sequence[Any] | None) -> tuple[str, ...]:
        if fetch_list is None:
            return ()
        if type(fetch_list) is str or isinstance(fetch_list, Tensor):
            raise _bad_type_error(
                "fetch_list", "a list of tensors or names", fetch_list, "put it into a list"
            )
        names = []
        for item in fetch_list:
            name = item if type(item) is str else getattr(item, "name", None)
            if name is None:
                raise _bad_type_error(
                    "fetch_list",
                    "symbolic tensors and names of variables",
                    item,
                    "fetch what was computed under program_guard",
                )
            names.append(name)
        return tuple(names)


_bad_type_error = functools.partial(type_error, "Executor.run")


def _unknown_error(argument: str, name: object, known: list[str], hint: str) -> Exception:
    near = difflib.get_close_matches(str(name), known, n=3) or known[:3]
    such = f", such as {' or '.join(map(repr, near))}" if near else ""
    return arg_error(
        "Executor.run",
        argument,
        expected=f"names of variables of the program{such}",
        got=repr(name),
        hint=hint,
        kind=ArgumentError,
    )
