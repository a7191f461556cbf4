"""Storage: the identity of a piece of memory and the number of times it was written in place."""

from __future__ import annotations

from typing import Any

import attrs


class Storage:
    """Shared by a tensor, its views and its detached aliases.

    `version` grows with every in-place write that goes through the library. Made on first need: a
    tensor that nobody saves, views or writes has none.
    """

    version = 0  # an instance gets its own with the first write


@attrs.define(eq=False)
class ViewInfo:
    """How a view came from its base: the chain of view ops, newest last, and the base's history.

    `base_edge` is the place of the base in the graph when the view was taken. The base is written
    in place with history exactly when its edge is another one, and then the view is out of date.
    """

    base: Any
    base_edge: Any
    parent: ViewInfo | None
    op_expr: Any
    attrs: dict[str, Any]
