"""A profile in the trace event format, which Perfetto and chrome://tracing read."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oneflow_lite.profiler.events import FunctionEvent, Recorded

# The format's names of our kinds: viewers colour events by these.
_CATEGORIES = {
    "op": "cpu_op",
    "node": "autograd_node",
    "backward": "autograd",
    "replay": "replay",
    "compiled": "compiled_function",
    "module": "python_function",
    "range": "user_annotation",
    "profiler": "profiler",
}


def _arguments(event: FunctionEvent) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "bytes read": event.bytes_read,
        "bytes written": event.bytes_written,
        "Input Dims": [list(shape) for shape in event.input_shapes],
        "ops": list(event.parts),
        "source": event.location,
        "note": event.note,
        "device time (us)": event.device_time_total,
        "new memory": event.allocated,
    }
    return {name: value for name, value in arguments.items() if value}


def trace_events(recorded: Recorded, threads: Mapping[int, str]) -> list[dict[str, Any]]:
    """Return the events of a trace: names of threads, spans, and the memory alive as a counter."""
    pid = os.getpid()
    numbers: dict[int, int] = {}  # small numbers, in the order in which threads appear
    spans = []
    for event in recorded.events:
        tid = numbers.setdefault(event.thread, len(numbers))
        spans.append(
            {
                "ph": "X",
                "name": event.name,
                "cat": _CATEGORIES[event.kind],
                "pid": pid,
                "tid": tid,
                "ts": round(event.time_range.start, 3),
                "dur": round(event.cpu_time_total, 3),
                "args": _arguments(event),
            }
        )
    named: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": "oneflow_lite"}}
    ]
    for ident, tid in numbers.items():
        name = {"name": threads.get(ident, f"thread {ident}")}
        named.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": name})
    memory = [
        {
            "ph": "C",
            "name": "memory",
            "pid": pid,
            "ts": round(time, 3),
            "args": {"bytes alive": level},
        }
        for time, level in recorded.levels
    ]
    return named + spans + memory


def write_trace(
    path: str | os.PathLike[str],
    recorded: Recorded,
    threads: Mapping[int, str],
    metadata: Mapping[str, Any],
) -> None:
    """Write a trace to a file, gzipped if its name ends in .gz."""
    content = {
        "displayTimeUnit": "ms",
        "otherData": {"producer": "oneflow_lite", **metadata},
        "traceEvents": trace_events(recorded, threads),
    }
    text = json.dumps(content)
    file = Path(path)
    file.write_bytes(gzip.compress(text.encode()) if file.suffix == ".gz" else text.encode())
