"""`profile`: a record of all that runs in a block, from its first to its last step."""

from __future__ import annotations

import enum
import functools
import os
import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import get_ident
from typing import Any, TypeVar

from oneflow_lite.arrays.device import make_cuda_module
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, arg_error
from oneflow_lite.profiler import recorder
from oneflow_lite.profiler.chrome_trace import write_trace
from oneflow_lite.profiler.events import EventList, Recorded, read_log
from oneflow_lite.profiler.recorder import Options, What

F = TypeVar("F", bound=Callable[..., Any])


class ProfilerActivity(enum.Enum):
    """Kinds of work. A profile has all of them; scripts for PyTorch name some."""

    CPU = "cpu"
    CUDA = "cuda"
    XPU = "xpu"
    MTIA = "mtia"
    HPU = "hpu"
    PrivateUse1 = "privateuse1"


class ProfilerAction(enum.Enum):
    """The action of a schedule at a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """Return the activities that can be profiled on this machine."""
    activities = {ProfilerActivity.CPU}
    return activities | {ProfilerActivity.CUDA} if make_cuda_module().is_available() else activities


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Return a schedule for `profile`, which records the last `active` steps of each cycle.

    Parameters
    ----------
    wait, warmup, active : int
        The numbers of steps of a cycle that wait, that run as warm-up, and that are recorded.
    repeat : int
        The number of cycles; 0 for no end.
    skip_first : int
        Steps before the first cycle.
    skip_first_wait : int
        If not 0, the first cycle does not wait.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> plan = flow.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    given = {"wait": wait, "warmup": warmup, "repeat": repeat, "skip_first": skip_first}
    for name, value in {**given, "active": active}.items():
        least = int(name == "active")
        if type(value) is not int or value < least:
            raise arg_error(
                "schedule",
                name,
                expected=f"an int of at least {least}",
                got=repr(value),
                hint="count steps",
                kind=ArgumentError,
            )

    def action(step: int) -> ProfilerAction:
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle, place = divmod(step, wait + warmup + active)
        if (repeat and cycle >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        last = place == wait + warmup + active - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """Return a handler that writes each trace to a folder, as TensorBoard's plugin reads them."""

    def handler(prof: profile) -> None:
        folder = Path(dir_name)
        folder.mkdir(parents=True, exist_ok=True)
        name = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        ending = ".gz" if use_gzip else ""
        path = folder / f"{name}.{time.time_ns()}.pt.trace.json{ending}"
        prof.export_chrome_trace(str(path))

    return handler


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


_RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile:
    """Write down what runs in a block, eager and compiled: times, calls, bytes and memory.

    Each op of each thread is timed where its kernel is called; so are ops of a compiled function,
    and groups of ops that run as one loop. Nodes of the backward graph, backward calls and replays
    are events around their ops. A node's own time is the time of its rule outside of ops. While no
    profile is on, no code of a profile runs.

    Parameters
    ----------
    activities : iterable of ProfilerActivity, optional
        Has no effect: ops on CUDA are always timed, by events in their stream.
    schedule : callable, optional
        Gives the action for the number of each step: see `schedule`. `step()` ends a step.
    on_trace_ready : callable, optional
        Called with the profile at the end of each cycle, or of the block.
    record_shapes : bool
        Whether to keep the shapes of the inputs of eager ops.
    profile_memory : bool
        Whether to count the memory of arrays that ops make, as long as it is alive.
    with_stack : bool
        Whether to look for the user's line of each eager op; compiled ops know theirs.
    with_flops : bool
        Has no effect.
    with_modules : bool
        Whether the calls of modules are events, too.
    experimental_config, execution_trace_observer, acc_events, use_cuda, custom_trace_id_callback
        Have no effect.

    Attributes
    ----------
    step_num : int
        The number of calls of `step`.

    Raises
    ------
    ArgumentTypeError
        For a schedule or a handler that cannot be called.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.ones(1000, 1000, requires_grad=True)
    >>> with flow.profiler.profile() as p:
    ...     flow.relu(x).sum().backward()
    >>> relu = next(each for each in p.key_averages() if each.key == "relu")
    >>> relu.count, relu.bytes_read, relu.bytes_written
    (1, 4000000, 4000000)
    >>> print(p)  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
    ) -> None:
        for name, value in {"schedule": schedule, "on_trace_ready": on_trace_ready}.items():
            if value is not None and not callable(value):
                raise arg_error(
                    "profile",
                    name,
                    expected="a callable or None",
                    got=type(value).__name__,
                    hint="see flow.profiler.schedule and tensorboard_trace_handler",
                    kind=ArgumentTypeError,
                )
        self.activities = set(activities or supported_activities())
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_stack, self.with_modules = with_stack, with_modules
        self._options = Options(profile_memory, record_shapes, with_stack, with_modules)
        self._schedule, self._stepped = schedule or _always, schedule is not None
        self._action = ProfilerAction.NONE
        self._on = False
        self.step_num = 0
        self._step_began = 0.0
        self._log: list[Any] = []
        self._first = 0
        self._began = 0.0
        self._found: Recorded | None = None
        self._threads: dict[int, str] = {}
        self._metadata: dict[str, Any] = {}

    def __repr__(self) -> str:
        found = "nothing yet" if self._found is None else f"{len(self._found.events)} events"
        return f"profile({'at work' if self._on else found})"

    # Begin and end

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin, as a `with` block does."""
        if self._on:
            raise ArgumentError("profile.start(): it is on already; stop() it first")
        self._on = True
        self._action = self._schedule(self.step_num)
        if self._action in _RECORDS:
            self._record()
        self._step_began = time.perf_counter()

    def stop(self) -> None:
        """End, as a `with` block does."""
        if not self._on:
            return
        self._on = False
        action, self._action = self._action, ProfilerAction.NONE
        if action in _RECORDS:
            self._end_step()
            self._save()

    def step(self) -> None:
        """End a step, and go on as the schedule says."""
        if not self._on:
            return
        before = self._action
        if before in _RECORDS:
            self._end_step()
        self.step_num += 1
        self._action = self._schedule(self.step_num)
        # After RECORD_AND_SAVE a new record begins, even where the next step is recorded, too.
        going_on = self._action in _RECORDS and before is not ProfilerAction.RECORD_AND_SAVE
        if before in _RECORDS and not going_on:
            self._save()
        if self._action in _RECORDS and not (before in _RECORDS and going_on):
            self._record()
        self._step_began = time.perf_counter()

    def _record(self) -> None:
        self._found = None
        self._log, self._first = recorder.begin(self._options)
        self._began = time.perf_counter()

    def _end_step(self) -> None:
        if self._stepped or self.step_num:
            what = What(f"ProfilerStep#{self.step_num}", "range")
            end = time.perf_counter()
            self._log.extend((what, self._step_began, end, get_ident(), 0, 0, None))

    def _save(self) -> None:
        """Stop recording, and hand the events out."""
        recorder.end(self._options)
        self._found = read_log(self._log[self._first :], self._began)
        self._log = []
        self._threads = recorder.names_of_threads()
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def toggle_collection_dynamic(
        self, enable: bool, activities: Iterable[ProfilerActivity] = ()
    ) -> None:
        """Do nothing: `start` and `stop` begin and end the timing of ops."""

    # Results

    def _recorded(self) -> Recorded:
        """Return the events; while recording goes on, those so far."""
        return self._found or read_log(self._log[self._first :], self._began)

    @property
    def peak_memory(self) -> int:
        """The most bytes alive at once of the arrays that were made in the block."""
        return max([level for _, level in self._recorded().levels], default=0)

    def events(self) -> EventList:
        """Return all events, by thread and in order."""
        events = self._recorded().events
        times = [event.time_range for event in events]
        wall = max((t.end for t in times), default=0.0) - min((t.start for t in times), default=0.0)
        is_one = len({event.thread for event in events}) == 1
        return EventList(events, self.peak_memory, wall if is_one else 0.0)

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Return the averages of events of the same name.

        Parameters
        ----------
        group_by_input_shape : bool
            Whether to average each set of input shapes apart; needs `record_shapes`.
        group_by_stack_n : int
            If above 0, average each of the user's lines apart; eager ops need `with_stack`.
        group_by_overload_name : bool
            Has no effect.

        Returns
        -------
        EventList
            Of `FunctionEventAvg`; its `table()` is printed.
        """
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def table(self, sort_by: str | None = "self_cpu_time_total", row_limit: int = 100) -> str:
        """Return the table of `key_averages()`."""
        return self.key_averages().table(sort_by=sort_by, row_limit=row_limit)

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the events as a trace for Perfetto or chrome://tracing; gzipped if it ends in .gz.

        Raises
        ------
        OSError
            When the file cannot be written.
        """
        write_trace(path, self._recorded(), self._threads, self._metadata)

    trace = export_chrome_trace

    def export_stacks(
        self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total"
    ) -> None:
        """Write a line for each stack of events, with its microseconds, for flame graphs.

        Raises
        ------
        ArgumentError
            For another metric than "self_cpu_time_total" and "self_cuda_time_total".
        """
        names = {
            "self_cpu_time_total": "self_cpu_time_total",
            "self_cuda_time_total": "device_time_total",
        }
        if metric not in names:
            raise arg_error(
                "export_stacks",
                "metric",
                expected=" or ".join(map(repr, names)),
                got=repr(metric),
                hint="leave it out",
                kind=ArgumentError,
            )
        total: dict[str, float] = {}
        for event in self.events():
            stack, outer = [], event
            while outer is not None:
                stack.append(outer.name.replace(";", ","))
                outer = outer.cpu_parent
            line = ";".join(reversed(stack))
            total[line] = total.get(line, 0.0) + getattr(event, names[metric])
        lines = [f"{line} {round(time)}\n" for line, time in total.items() if round(time) > 0]
        Path(path).write_text("".join(lines), encoding="utf-8")

    def add_metadata(self, key: str, value: str) -> None:
        """Write a text into the trace, under a key."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Write the value of a JSON text into the trace, under a key."""
        import json

        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json


class record_function:
    """Make a block, or each call of a function, an event of the profile that is on, if any.

    Parameters
    ----------
    name : str
    args : str, optional
        Text that the trace shows with it.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> with flow.profiler.profile() as p:
    ...     with flow.profiler.record_function("two ops"):
    ...         y = flow.ones(2) * 2
    >>> [event.name for event in p.events()]
    ['two ops', 'full', 'mul']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(name, str):
            raise arg_error(
                "record_function",
                "name",
                expected="a str",
                got=type(name).__name__,
                hint='as in record_function("forward")',
                kind=ArgumentTypeError,
            )
        self.name, self.args = name, args
        self._what = What(name, "range")
        self._entered: list[tuple[list[Any] | None, float]] = []

    def __enter__(self) -> record_function:
        # A stack: the same object may be entered again inside itself.
        self._entered.append((recorder.current_log(), time.perf_counter()))
        return self

    def __exit__(self, *exc_info: object) -> None:
        log, start = self._entered.pop()
        if log is not None:
            details = None if self.args is None else {"note": self.args}
            end = time.perf_counter()
            log.extend((self._what, start, end, get_ident(), 0, 0, details))

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]
