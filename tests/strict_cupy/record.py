"""The record of the stand-in: copies, and calls to devices, streams and events."""

from typing import Any, NamedTuple


class Call(NamedTuple):
    """Something asked of a device, a stream or an event: ("Event.record", (event, stream))."""

    name: str
    arguments: tuple[Any, ...]


class Transfer(NamedTuple):
    """One copy: `kind` is "h2d", "d2h" or "d2d"; `via` names the call that made it."""

    kind: str
    via: str
    shape: tuple[int, ...]
    dtype: Any
    device: int


log: list[Call | Transfer] = []


def clear_log() -> None:
    """Forget everything written down so far."""
    log.clear()


def transfers(kind: str | None = None) -> list[Transfer]:
    """The copies since the last `clear_log`, in order; of one kind if it is given."""
    return [entry for entry in log if isinstance(entry, Transfer) and kind in (None, entry.kind)]
