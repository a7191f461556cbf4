"""The events of a profile, their averages, and the table."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from weakref import ReferenceType

import attrs

from oneflow_lite.errors import ArgumentError, arg_error
from oneflow_lite.profiler.copy_bandwidth import copy_bandwidth
from oneflow_lite.profiler.recorder import Lines, What


@attrs.frozen
class Interval:
    """A span of time, in microseconds since the profile began."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """Return the microseconds from start to end."""
        return self.end - self.start


class _OnDevice:
    """The times on the CUDA device, under PyTorch's names.

    An event on the device contains no event, so that its own time is its total time.
    """

    device_time_total: float
    count: int
    key: Any
    cpu_time_total: Any

    def __repr__(self) -> str:
        calls = f"{self.count} call{'s' * (self.count != 1)}"
        return f"{type(self).__name__}({self.key!r}, {calls}, {self.cpu_time_total:.1f} us)"

    @property
    def device_time(self) -> float:
        """Microseconds of one call on the CUDA device."""
        return self.device_time_total / self.count

    @property
    def cuda_time(self) -> float:
        """The `device_time`."""
        return self.device_time

    @property
    def cuda_time_total(self) -> float:
        """The `device_time_total`."""
        return self.device_time_total

    self_device_time_total = self_cuda_time_total = cuda_time_total


@attrs.define(eq=False, repr=False)
class FunctionEvent(_OnDevice):
    """A call of an op, a turn of a node, a replay, or a user's range.

    Attributes
    ----------
    name, kind, location, parts, op
        See `What`.
    id : int
    thread : int
    time_range : Interval
    cpu_parent : FunctionEvent or None
        The event that it ran inside of, in its thread.
    cpu_children : list of FunctionEvent
    bytes_read, bytes_written : int
        By the event itself, not by events inside of it.
    input_shapes : tuple of tuple
        Where `record_shapes` asked for them.
    note : str
        The text that `record_function` was given beside the name; of an op, the way that its kernel
        went, where there are several.
    device_time_total : float
        Microseconds on the CUDA device, by events in its stream.
    allocated : int
        Bytes of the new memory of its results.
    peak_memory : int
        Bytes that were alive right after it.
    """

    name: str
    kind: str
    location: str
    parts: tuple[str, ...]
    id: int
    thread: int
    time_range: Interval
    bytes_read: int = 0
    bytes_written: int = 0
    input_shapes: tuple[Any, ...] = ()
    note: str = ""
    device_time_total: float = 0.0
    allocated: int = 0
    peak_memory: int = 0
    op: Any = None
    cpu_parent: FunctionEvent | None = None
    cpu_children: list[FunctionEvent] = attrs.field(factory=list)

    @property
    def key(self) -> str:
        """The name."""
        return self.name

    @property
    def cpu_time_total(self) -> float:
        """Microseconds, with the events inside."""
        return self.time_range.elapsed_us()

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds, without the events inside."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    count = 1


@attrs.define(eq=False, repr=False)
class FunctionEventAvg(_OnDevice):
    """All events of one name.

    Attributes
    ----------
    key : str
    kind : str
    count : int
    cpu_time_total, self_cpu_time_total : float
        Microseconds, with and without the events inside.
    device_time_total : float
        Microseconds on the CUDA device.
    bytes_read, bytes_written : int
        By the events themselves.
    cpu_memory_usage : int
        Bytes of the memory that was new with their results.
    peak_memory : int
        The most bytes that were alive right after an event.
    input_shapes : tuple
    locations : dict of str to int
        The number of events by line of the user's code.
    """

    key: str
    kind: str = ""
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    device_time_total: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0
    cpu_memory_usage: int = 0
    peak_memory: int = 0
    input_shapes: tuple[Any, ...] = ()
    locations: dict[str, int] = attrs.field(factory=dict)

    def add(self, event: FunctionEvent, nested: bool) -> None:
        """Count an event; `nested` in an event of its name, its time is counted already."""
        self.kind = event.kind
        self.count += 1
        self.cpu_time_total += 0.0 if nested else event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total
        self.device_time_total += event.device_time_total
        self.bytes_read += event.bytes_read
        self.bytes_written += event.bytes_written
        self.cpu_memory_usage += event.allocated
        self.peak_memory = max(self.peak_memory, event.peak_memory)
        self.input_shapes = event.input_shapes
        if event.location:
            self.locations[event.location] = self.locations.get(event.location, 0) + 1

    @property
    def cpu_time(self) -> float:
        """Microseconds of one call."""
        return self.cpu_time_total / self.count

    @property
    def self_cpu_memory_usage(self) -> int:
        """The `cpu_memory_usage`."""
        return self.cpu_memory_usage

    @property
    def bytes_moved(self) -> int:
        """Bytes read and written."""
        return self.bytes_read + self.bytes_written

    @property
    def bandwidth(self) -> float:
        """Bytes read and written a second; 0 without a count of bytes."""
        time = self.device_time_total or self.self_cpu_time_total
        return 1e6 * self.bytes_moved / time if time > 0 else 0.0

    @property
    def source(self) -> str:
        """The user's line with the most events, and the number of lines beside it."""
        if not self.locations:
            return ""
        most = max(self.locations, key=lambda line: self.locations[line])
        others = len(self.locations) - 1
        return f"{most} and {others} more" if others else most


_UNITS = (("s", 1e6), ("ms", 1e3), ("us", 1.0))


def _time(microseconds: float) -> str:
    unit, size = next(((u, s) for u, s in _UNITS if microseconds >= s), _UNITS[-1])
    return f"{microseconds / size:.3f}{unit}"


def _bytes(count: float) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(count) >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count:.0f} B"


def _rate(bytes_a_second: float) -> str:
    return f"{bytes_a_second / 1e9:.2f} GB/s"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "-"


_SORTS = {
    "cpu_time": "cpu_time",
    "cpu_time_total": "cpu_time_total",
    "self_cpu_time_total": "self_cpu_time_total",
    **dict.fromkeys(("cuda_time", "device_time"), "device_time"),
    **dict.fromkeys(("cuda_time_total", "device_time_total"), "device_time_total"),
    **dict.fromkeys(("self_cuda_time_total", "self_device_time_total"), "device_time_total"),
    **dict.fromkeys(("cpu_memory_usage", "self_cpu_memory_usage"), "cpu_memory_usage"),
    **dict.fromkeys(
        (
            "cuda_memory_usage",
            "self_cuda_memory_usage",
            "device_memory_usage",
            "self_device_memory_usage",
        ),
        "cpu_memory_usage",
    ),
    "peak_memory": "peak_memory",
    "bytes_moved": "bytes_moved",
    "count": "count",
}


class EventList(list[Any]):
    """Events, or averages, as a list that can be printed.

    Attributes
    ----------
    peak_memory : int
        The most bytes alive at once, of memory that was made in the profile.
    wall_time : float
        Microseconds from the first event to the last, in a profile of one thread; else 0.
    """

    def __init__(
        self, events: Iterable[Any] = (), peak_memory: int = 0, wall_time: float = 0.0
    ) -> None:
        super().__init__(events)
        self.peak_memory, self.wall_time = peak_memory, wall_time

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, each moment of a thread counted once."""
        return float(sum(event.self_cpu_time_total for event in self))

    def total_average(self) -> FunctionEventAvg:
        """Return one average of all events."""
        total = FunctionEventAvg("Total")
        for each in self:
            for name in ("count", "self_cpu_time_total", "device_time_total", "bytes_read"):
                setattr(total, name, getattr(total, name) + getattr(each, name))
            total.bytes_written += each.bytes_written
        total.cpu_time_total = total.self_cpu_time_total
        total.peak_memory = self.peak_memory
        return total

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0
    ) -> EventList:
        """Return the averages of events of the same name; see `profile.key_averages`."""
        averages: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key: tuple[Any, ...] = (event.name,)
            if group_by_input_shape:
                key += (event.input_shapes,)
            if group_by_stack_n > 0:
                key += (event.location,)
            average = averages.setdefault(key, FunctionEventAvg(event.name))
            average.add(event, _is_inside(event))
        return EventList(averages.values(), self.peak_memory, self.wall_time)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """Return a table, with a line that says how much memory was moved, and how fast.

        Parameters
        ----------
        sort_by : str, optional
            "self_cpu_time_total", "cpu_time_total", "cpu_time" (of one call), "count",
            "bytes_moved", "peak_memory", "cpu_memory_usage", and PyTorch's names for CUDA; None
            keeps the order of the first calls.
        row_limit : int
            The most rows; negative for all.
        max_src_column_width, max_name_column_width, max_shapes_column_width : int
            The most characters of these columns.
        header : str, optional
            A line above.
        top_level_events_only : bool
            Has no effect on averages.
        time_unit : {"s", "ms", "us"}, optional
            The unit of all times; by default each time has the unit that suits it.

        Raises
        ------
        ArgumentError
            For another order.
        """
        if sort_by is not None and sort_by not in _SORTS:
            raise arg_error(
                "table",
                "sort_by",
                expected=" or ".join(map(repr, _SORTS)),
                got=repr(sort_by),
                hint="leave it out for the order of the first calls",
                kind=ArgumentError,
            )
        rows = list(self)
        if top_level_events_only:
            rows = [row for row in rows if getattr(row, "cpu_parent", None) is None]
        if sort_by is not None:
            rows.sort(key=lambda row: getattr(row, _SORTS[sort_by]), reverse=True)
        rows = rows if row_limit < 0 else rows[:row_limit]
        if rows and isinstance(rows[0], FunctionEvent):
            rows = [EventList([row]).key_averages()[0] for row in rows]
        return _table(
            self,
            rows,
            header,
            time_unit,
            (max_name_column_width, max_src_column_width, max_shapes_column_width),
        )

    def roofline(self) -> str:
        """Return a line on the bytes that ops moved, beside the copy bandwidth of this machine."""
        ops = [each for each in self if each.bytes_read or each.bytes_written]
        moved = sum(each.bytes_read + each.bytes_written for each in ops)
        seconds = 1e-6 * sum(each.self_cpu_time_total for each in ops)
        if not seconds:
            return "Bytes moved: none were counted"
        rate, copy = moved / seconds, copy_bandwidth()
        return (
            f"Bytes moved by ops: {_bytes(moved)} in {_time(1e6 * seconds)}, {_rate(rate)}; "
            f"{_share(rate, copy)} of this machine's copy bandwidth, {_rate(copy)}"
        )

    def __repr__(self) -> str:
        return f"EventList({len(self)} rows; print() shows its table)"

    def __str__(self) -> str:
        return self.table()


def _is_inside(event: FunctionEvent) -> bool:
    """Return whether an event runs inside of an event of the same name."""
    outer = event.cpu_parent
    while outer is not None:
        if outer.name == event.name:
            return True
        outer = outer.cpu_parent
    return False


def _table(
    whole: EventList,
    rows: Sequence[FunctionEventAvg],
    header: str | None,
    unit: str | None,
    widths: tuple[int, int, int],
) -> str:
    def time(microseconds: float) -> str:
        return f"{microseconds / dict(_UNITS)[unit]:.3f}{unit}" if unit else _time(microseconds)

    def cut(text: str, width: int, end: bool = False) -> str:
        if len(text) <= width or width <= 3:
            return text
        return f"...{text[3 - width :]}" if end else f"{text[: width - 3]}..."

    total = whole.self_cpu_time_total
    on_device = sum(each.device_time_total for each in whole)
    columns: list[tuple[str, Any]] = [
        ("Name", lambda r: cut(r.key, widths[0])),
        ("Self CPU %", lambda r: _share(r.self_cpu_time_total, total)),
        ("Self CPU", lambda r: time(r.self_cpu_time_total)),
        ("CPU total %", lambda r: _share(r.cpu_time_total, total)),
        ("CPU total", lambda r: time(r.cpu_time_total)),
        ("CPU time avg", lambda r: time(r.cpu_time)),
    ]
    if on_device:
        columns += [
            ("Self CUDA", lambda r: time(r.device_time_total)),
            ("CUDA time avg", lambda r: time(r.device_time)),
        ]
    columns += [
        ("# of Calls", lambda r: str(r.count)),
        ("Read", lambda r: _bytes(r.bytes_read)),
        ("Written", lambda r: _bytes(r.bytes_written)),
        ("GB/s", lambda r: f"{r.bandwidth / 1e9:.2f}" if r.bytes_moved else "-"),
    ]
    if whole.peak_memory:
        columns += [
            ("New memory", lambda r: _bytes(r.cpu_memory_usage)),
            ("Peak memory", lambda r: _bytes(r.peak_memory) if r.peak_memory else "-"),
        ]
    if any(row.input_shapes for row in rows):
        shapes = [str([list(s) for s in row.input_shapes]) for row in rows]
        by_row = dict(zip(map(id, rows), shapes, strict=True))
        columns.append(("Input shapes", lambda r: cut(by_row[id(r)], widths[2])))
    if any(row.locations for row in rows):
        columns.append(("Source", lambda r: cut(r.source, widths[1], end=True)))
    cells = [[title for title, _ in columns], *([cell(row) for _, cell in columns] for row in rows)]
    sizes = [max(map(len, column)) for column in zip(*cells, strict=True)]
    left = {"Name", "Input shapes", "Source"}
    lines = [
        "  ".join(
            text.ljust(size) if title in left else text.rjust(size)
            for text, size, (title, _) in zip(row, sizes, columns, strict=True)
        ).rstrip()
        for row in cells
    ]
    rule = "  ".join("-" * size for size in sizes)
    footer = [f"Self CPU time total: {time(total)}"]
    if whole.wall_time > total:
        between = whole.wall_time - total
        footer.append(f"Between events (Python, dispatch): {time(between)}")
    if on_device:
        footer.append(f"Self CUDA time total: {time(on_device)}")
    footer.append(whole.roofline())
    if whole.peak_memory:
        footer.append(f"Peak memory of arrays made in the profile: {_bytes(whole.peak_memory)}")
    above = [header] if header else []
    return "\n".join([*above, rule, lines[0], rule, *lines[1:], rule, *footer]) + "\n"


# From the log to events


@attrs.define
class Recorded:
    """The events of a log.

    Attributes
    ----------
    events : list of FunctionEvent
        By thread, in the order in which they began.
    levels : list of (float, int)
        Microseconds, and the bytes alive from then on.
    """

    events: list[FunctionEvent]
    levels: list[tuple[float, int]]


def read_log(log: Sequence[Any], start: float) -> Recorded:
    """Make events of a log; times are counted from `start`, in seconds."""
    events: list[FunctionEvent] = []
    levels: list[tuple[float, int]] = []
    alive: dict[int, int] = {}  # bytes, by the reference whose death is logged
    latest: dict[What, FunctionEvent] = {}
    waiting: dict[What, tuple[int, int]] = {}  # memory noted before the event that made it
    level, now, position = 0, 0.0, 0

    def add(entry: Sequence[Any]) -> None:
        nonlocal now
        event = latest[entry[0]] = _event(entry, len(events), start)
        made, peak = waiting.pop(entry[0], (0, 0))
        event.allocated, event.peak_memory = made, max(level, peak)
        now = event.time_range.end
        events.append(event)

    def made(reference: Any, what: What, size: int) -> None:
        nonlocal level
        alive[id(reference)] = size
        level += size
        levels.append((now, level))
        event = latest.get(what)
        if event is None:
            before, peak = waiting.get(what, (0, 0))
            waiting[what] = before + size, max(peak, level)
        else:
            event.allocated += size
            event.peak_memory = max(event.peak_memory, level)

    while position < len(log):
        entry = log[position]
        if isinstance(entry, What):
            add(log[position : position + 7])
            details = log[position + 6]
            if type(details) is ReferenceType:
                made(details, entry, log[position + 5])
            position += 7
        elif type(entry) is Lines:
            thread, times = log[position + 1 : position + 3]
            lines = zip(entry.whats, times, times[1:], entry.reads, entry.writes, strict=False)
            for what, begin, end, read, written in lines:
                add((what, begin, end, thread, read, written, None))
            position += 3
        elif position + 2 < len(log) and type(log[position + 2]) is int:
            made(entry, *log[position + 1 : position + 3])
            position += 3
        else:  # memory is gone, which may be older than the profile
            level -= alive.pop(id(entry), 0)
            levels.append((now, level))
            position += 1
    return Recorded(list(_nested(events)), levels)


def _event(entry: Any, number: int, start: float) -> FunctionEvent:
    what: What = entry[0]
    begin, end = (1e6 * (at - start) for at in entry[1:3])
    moved = entry[4:6] if type(entry[4]) is int else what.moved(*entry[4:6])
    event = FunctionEvent(
        what.name, what.kind, what.location, what.parts, number, entry[3],
        Interval(begin, end), *moved,
    )  # fmt: skip
    event.op = what.op
    details = entry[6]
    if type(details) is dict:
        event.input_shapes = details.get("shapes", ())
        event.location = event.location or details.get("location", "")
        event.note = details.get("note", "")
        if (events := details.get("events")) is not None:
            event.device_time_total = 1e3 * _elapsed(*events)
    return event


def _elapsed(begin: Any, end: Any) -> float:
    """Return the milliseconds between two events of CUDA."""
    import cupy

    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end))


def _nested(events: Sequence[FunctionEvent]) -> Iterator[FunctionEvent]:
    """Give each event its parent, the event that it ran inside of, and yield it."""
    by_thread: defaultdict[int, list[FunctionEvent]] = defaultdict(list)
    for event in events:
        by_thread[event.thread].append(event)
    for thread in by_thread.values():
        # Outer events first: they begin earlier or end later, or are logged after their contents.
        thread.sort(key=lambda event: (event.time_range.start, -event.time_range.end, -event.id))
        outer: list[FunctionEvent] = []
        for event in thread:
            while outer and outer[-1].time_range.end < event.time_range.end:
                outer.pop()
            if event.kind == "way":
                if outer:
                    outer[-1].note = event.name
                continue
            if outer:
                event.cpu_parent = outer[-1]
                outer[-1].cpu_children.append(event)
            outer.append(event)
            yield event


def level_at(levels: Sequence[tuple[float, int]], time: float) -> int:
    """Return the bytes alive at a time."""
    position = bisect.bisect_right(levels, time, key=lambda pair: pair[0])
    return levels[position - 1][1] if position else 0
