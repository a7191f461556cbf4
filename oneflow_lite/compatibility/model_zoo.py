"""`utils.model_zoo`: weights by URL, which are not fetched here."""

from __future__ import annotations

from typing import Any


def load_url(url: str, *args: Any, **kwargs: Any) -> Any:
    """Raise: nothing is fetched."""
    raise RuntimeError(
        f"load_url(): weights are not fetched from {url}; fetch the file and use flow.load"
    )
