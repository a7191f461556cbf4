"""Shared by the live tutorials: paragraphs that send the explorer's film to a place."""

from __future__ import annotations

from typing import Any

import marimo as mo

# The place of the film, as `Exploration.frame(at)` takes it, and the paragraph that is about it.
_HEIGHT = 570  # pixels; marimo shows some 600 of an output

Story = list[tuple[str, str]]


def begun(story: Story, at: str) -> tuple[Any, Any]:
    """Return the film's place, at first `at`, and for each paragraph a button that moves it."""
    place, go = mo.state(at)
    return place, mo.ui.array(
        [mo.ui.button(label="▸ show", on_click=lambda _, at=at: go(at)) for at, _ in story]
    )


def told(story: Story, shown: Any, exploration: Any, at: str) -> Any:
    """Lay out the paragraphs, each with its button, beside the explorer's page at a place."""
    paragraphs = [
        mo.vstack([mo.md(text), button], gap=0.2)
        for button, (_, text) in zip(shown, story, strict=True)
    ]
    film = mo.Html(exploration.frame(at, height=_HEIGHT))
    prose = mo.vstack(paragraphs, gap=1).style(max_height=f"{_HEIGHT}px", overflow="auto")
    return mo.hstack([prose, film], widths=[2, 5], align="start", gap=1.5)


def curve(numbers: list[float], label: str) -> Any:
    """Return a line through numbers, from the first one on the left to the last one."""
    top, low = max(numbers), min(numbers)
    step, span = 400 / max(1, len(numbers) - 1), (top - low) or 1.0
    points = " ".join(
        f"{i * step:.1f},{5 + 90 * (top - n) / span:.1f}" for i, n in enumerate(numbers)
    )
    return mo.Html(
        f'<figure><svg viewBox="0 0 400 100" width="400" role="img" aria-label="{label}">'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/></svg>'
        f"<figcaption>{label}: from {numbers[0]:.3g} to {numbers[-1]:.3g}</figcaption></figure>"
    )
