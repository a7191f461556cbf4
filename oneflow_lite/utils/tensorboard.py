"""`utils.tensorboard`: the writer of tensorboardX, or a small one on tensorboard."""

from __future__ import annotations

import importlib
import os
import socket
import sys
import time
from typing import Any

from oneflow_lite.errors import UnsupportedError
from oneflow_lite.tensors.tensor import Tensor


class EventWriter:
    """Numbers, texts and histograms for tensorboard, by its own functions.

    log_dir: by default `runs/`, with the time and the machine's name, and the comment behind.
    """

    def __init__(self, log_dir: Any = None, comment: str = "", **options: Any) -> None:
        files = importlib.import_module("tensorboard.summary.writer.event_file_writer")
        now = f"{time.strftime('%b%d_%H-%M-%S')}_{socket.gethostname()}{comment}"
        self.log_dir = str(log_dir or os.path.join("runs", now))
        self.file_writer = files.EventFileWriter(self.log_dir)

    def _add(self, kind: str, tag: str, value: Any, step: Any, walltime: Any) -> None:
        plugin = importlib.import_module(f"tensorboard.plugins.{kind}.summary_v2")
        events = importlib.import_module("tensorboard.compat.proto.event_pb2")
        value = value.detach().cpu().numpy() if isinstance(value, Tensor) else value
        summary = getattr(plugin, f"{kind}_pb")(tag, value)
        event = events.Event(
            wall_time=walltime or time.time(), step=int(step or 0), summary=summary
        )
        self.file_writer.add_event(event)

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: Any = None, walltime: Any = None, **_: Any
    ) -> None:
        """Write a number."""
        self._add("scalar", tag, float(scalar_value), global_step, walltime)

    def add_scalars(
        self, main_tag: str, values: dict[str, Any], global_step: Any = None, walltime: Any = None
    ) -> None:
        """Write several numbers."""
        for name, value in values.items():
            self.add_scalar(f"{main_tag}/{name}", value, global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: Any = None, walltime: Any = None
    ) -> None:
        """Write a text."""
        self._add("text", tag, text_string, global_step, walltime)

    def add_histogram(self, tag: str, values: Any, global_step: Any = None, **rest: Any) -> None:
        """Write how values are spread."""
        self._add("histogram", tag, values, global_step, rest.get("walltime"))

    def flush(self) -> None:
        """Write what is waiting."""
        self.file_writer.flush()

    def close(self) -> None:
        """Write what is waiting, and close the file."""
        self.file_writer.close()

    def __enter__(self) -> EventWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("add_"):
            raise UnsupportedError(f"SummaryWriter.{name}() needs another package: tensorboardX")
        raise AttributeError(f"SummaryWriter has no attribute {name!r}", name=name)


def __getattr__(name: str) -> Any:
    if name in ("writer", "summary"):
        return sys.modules[__name__]
    if name not in ("SummaryWriter", "FileWriter"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    for package in ("tensorboardX", "tensorboard"):
        try:
            found = importlib.import_module(package)
        except ModuleNotFoundError:
            continue
        return EventWriter if package == "tensorboard" else getattr(found, name)
    raise ImportError(f"{name} needs a package: pip install tensorboardX, or tensorboard")
