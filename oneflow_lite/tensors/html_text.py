"""Escaped, accessible HTML for notebooks: tables, trees and facts, without scripts.

It knows nothing of tensors, so that every room can write with it. Lines take the colour of the
surrounding text: the page can be read in light and dark themes.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

STYLE = (
    ".oneflow-lite{line-height:1.4}"
    ".oneflow-lite table{border-collapse:collapse;width:auto;color:inherit;background:none}"
    ".oneflow-lite caption{text-align:left;caption-side:top;color:inherit;font-weight:bold}"
    ".oneflow-lite :is(th,td){padding:.15em .6em;text-align:left;vertical-align:top;"
    "color:inherit;background:none}"
    ".oneflow-lite .number{text-align:right;font-variant-numeric:tabular-nums}"
    ".oneflow-lite thead th{border-bottom:1px solid currentColor}"
    ".oneflow-lite tfoot tr:first-child>*{border-top:1px solid currentColor}"
    ".oneflow-lite tbody th{font-weight:normal}"
    ".oneflow-lite pre{font-family:monospace}"
    ".oneflow-lite pre{margin:.2em 0;overflow-x:auto;color:inherit;background:none}"
    ".oneflow-lite details>:not(summary){margin-left:1.4em}"
    ".oneflow-lite summary:focus-visible{outline:2px solid currentColor}"
)


class Html(str):
    """Text that is HTML already; plain text is escaped where it is put in."""

    __slots__ = ()


def escaped(value: Any) -> Html:
    """Return a value as HTML: `Html` as it is, any other value as escaped text.

    >>> escaped("<b>")
    '&lt;b&gt;'
    >>> escaped(Html("<b>"))
    '<b>'
    """
    return value if isinstance(value, Html) else Html(html.escape(str(value)))


def joined(parts: Iterable[Any]) -> Html:
    """Return the parts in a row."""
    return Html("".join(map(escaped, parts)))


def element(tag: str, *parts: Any, **attributes: Any) -> Html:
    """Return an element around its parts; `class_` is `class`, True stands without a value.

    Attributes that are None or False are left out.

    >>> element("td", "a < b", class_="number", hidden=False)
    '<td class="number">a &lt; b</td>'
    """
    given = ""
    for name, value in attributes.items():
        if value is not None and value is not False:
            name = name.rstrip("_").replace("_", "-")
            given += f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'
    return Html(f"<{tag}{given}>{joined(parts)}</{tag}>")


def table(
    headers: Sequence[Any],
    rows: Iterable[Sequence[Any]],
    *,
    caption: Any = None,
    totals: Iterable[Sequence[Any]] = (),
    numbers: Iterable[int] = (),
) -> Html:
    """Return a table; the first cell of a row is its header.

    `numbers` are the columns that are set to the right, `totals` the rows below the line.

    >>> table([], [["relu", 2]], numbers=[1])
    '<table><tbody><tr><th scope="row">relu</th><td class="number">2</td></tr></tbody></table>'
    """
    right = set(numbers)

    def line(cells: Sequence[Any], scope: str) -> Html:
        made = []
        for i, cell in enumerate(cells):
            header = scope == "col" or i == 0
            kind = "number" if i in right else None
            tag = "th" if header else "td"
            made.append(element(tag, cell, scope=scope if header else None, class_=kind))
        return element("tr", *made)

    def part(tag: str, lines: Iterable[Sequence[Any]]) -> Html:
        made = joined(line(cells, "row") for cells in lines)
        return element(tag, made) if made else Html()

    above = Html() if caption is None else element("caption", caption)
    head = element("thead", line(headers, "col")) if headers else Html()
    return element("table", above, head, part("tbody", rows), part("tfoot", totals))


def facts(pairs: Iterable[tuple[Any, Any]], caption: Any = None) -> Html:
    """Return names and values below each other.

    >>> facts([("shape", (2, 3))])
    '<table><tbody><tr><th scope="row">shape</th><td>(2, 3)</td></tr></tbody></table>'
    """
    return table((), pairs, caption=caption)


def preformatted(text: Any) -> Html:
    """Return text in which spaces and line ends count."""
    return element("pre", text)


def tree(title: Any, children: Iterable[Any] = (), *, open: bool = True) -> Html:
    """Return a title that shows and hides its children; a plain line where it has none.

    It is a `<details>`, which the keyboard reaches.

    >>> tree("net", [tree("layer")])
    '<details open><summary>net</summary><div>layer</div></details>'
    """
    made = list(children)
    if not made:
        return element("div", title)
    return element("details", element("summary", title), *made, open=open)


def block(*parts: Any, label: str) -> str:
    """Return the parts as one output, with their style and a label for screen readers.

    Of the type `str` itself: some notebooks send no other type.
    """
    style = element("style", Html(STYLE))
    return str(element("div", style, *parts, class_="oneflow-lite", role="group", aria_label=label))
