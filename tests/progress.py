"""A bar for work that takes minutes: tqdm's, on a terminal alone, and where tqdm is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TextIO, TypeVar

T = TypeVar("T")


def progress(
    items: Iterable[T], total: int, unit: str, stream: TextIO | None = None
) -> Iterator[T]:
    """Yield the items, and show how many of them are done."""
    stream = sys.stderr if stream is None else stream
    if stream.isatty():
        try:
            from tqdm import tqdm
        except ImportError:
            pass
        else:
            yield from tqdm(items, total=total, unit=unit, file=stream, dynamic_ncols=True)
            return
    yield from items


def note(text: str) -> None:
    """Print a text; above the bar, where there is one."""
    if sys.stderr.isatty():
        try:
            from tqdm import tqdm
        except ImportError:
            pass
        else:
            tqdm.write(text, file=sys.stdout)
            return
    print(text, flush=True)
