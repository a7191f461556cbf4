"""`utils.tensorboard`: the writer of tensorboardX, or of tensorboard, whichever is installed."""

from __future__ import annotations

import importlib.util
import os
import socket
import time
from datetime import datetime
from typing import Any

from oneflow_lite.errors import UnsupportedError
from oneflow_lite.tensors.tensor import Tensor


def _plain(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else value


class _Writer:
    """Numbers, texts and histograms for tensorboard.

    Parameters
    ----------
    log_dir : str, optional
        By default `runs/`, with the time and the machine's name.
    comment : str
        The end of the default folder's name.
    """

    def __init__(self, log_dir: Any = None, comment: str = "", **options: Any) -> None:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        now = datetime.now().strftime("%b%d_%H-%M-%S")
        self.log_dir = str(
            log_dir or os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        )
        self.file_writer = EventFileWriter(self.log_dir)

    def _write(self, summary: Any, step: Any, walltime: float | None) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        event = Event(wall_time=time.time() if walltime is None else walltime, summary=summary)
        if step is not None:
            event.step = int(step)
        self.file_writer.add_event(event)

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: Any = None, walltime: Any = None, **_: Any
    ) -> None:
        """Write a number."""
        from tensorboard.plugins.scalar.summary_v2 import scalar_pb

        self._write(scalar_pb(tag, float(_plain(scalar_value))), global_step, walltime)

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
        from tensorboard.plugins.text.summary_v2 import text_pb

        self._write(text_pb(tag, text_string), global_step, walltime)

    def add_histogram(
        self, tag: str, values: Any, global_step: Any = None, bins: Any = None,
        walltime: Any = None, max_bins: Any = None,
    ) -> None:  # fmt: skip
        """Write how values are spread."""
        from tensorboard.plugins.histogram.summary_v2 import histogram_pb

        self._write(histogram_pb(tag, _plain(values)), global_step, walltime)

    def flush(self) -> None:
        """Write what is waiting."""
        self.file_writer.flush()

    def close(self) -> None:
        """Write what is waiting, and close the file."""
        self.file_writer.close()

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("add_"):
            raise AttributeError(f"SummaryWriter has no attribute {name!r}", name=name)
        raise UnsupportedError(
            f"SummaryWriter.{name}() needs tensorboardX: pip install tensorboardX"
        )


def __getattr__(name: str) -> Any:
    if name in ("SummaryWriter", "FileWriter"):
        if importlib.util.find_spec("tensorboardX") is not None:
            import tensorboardX

            return getattr(tensorboardX, name)
        if importlib.util.find_spec("tensorboard") is not None:
            return _Writer
        raise ImportError(f"{name} needs a package: pip install tensorboardX, or tensorboard")
    if name in ("writer", "summary"):
        import sys

        return sys.modules[__name__]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
