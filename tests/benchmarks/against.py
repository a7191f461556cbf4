"""Times works in this checkout and in another one of this library: what did a change cost?"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SMALL_TENSORS = ["relu2", "chain300", "mlp", "third_order", "chain20000"]  # older ones have them
Take = Callable[[Path, str], dict[str, Any]]  # checkout and work to what one turn measured


def compare(
    here: Path, there: Path, works: Sequence[str], rounds: int, take: Take
) -> list[tuple[str, float, float]]:
    """Return for each work how many times longer it takes here: by best and by median times.

    The two checkouts take turns, each turn is a process of its own, and the ratio is the median
    over the rounds: what disturbs a round disturbs both of its turns.
    """
    rows = []
    for work in works:
        best, median = [], []
        for number in range(rounds):
            order = (here, there) if number % 2 == 0 else (there, here)
            turn = {checkout: take(checkout, work) for checkout in order}
            best.append(turn[here]["best"] / turn[there]["best"])
            median.append(turn[here]["median"] / turn[there]["median"])
        rows.append((work, statistics.median(best), statistics.median(median)))
    return rows


def table(rows: Sequence[tuple[str, float, float]]) -> str:
    """Return the ratios as text."""
    lines = [f"{'here / there':<12}  {'best':>6}  {'median':>6}"]
    lines += [f"{work:<12}  {best:6.3f}  {median:6.3f}" for work, best, median in rows]
    return "\n".join(lines)
