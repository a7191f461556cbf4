"""Puts a document and the page that draws it into one HTML file without outside parts.

The page is written as plain ES modules, `page/*.js`. A file that is opened without a server cannot
import a module, so the modules are joined here: each becomes a function that returns its exports.
"""

from __future__ import annotations

import functools
import json
import os
import re
from html import escape
from pathlib import Path

from oneflow_lite.explore.document import Document

_PAGE = Path(__file__).parent / "page"
_IMPORT = re.compile(r'^import (?:\* as (\w+)|(\{[^}]*\})) from "\./([\w.]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|const|class) (\w+))", re.MULTILINE)
_SLOT = re.compile(r"<!-- (\w+) -->")


def html(document: Document, at: str = "") -> str:
    """Return the page that shows a document, opened at a place such as "backward?run=0&step=3".

    Nothing in the document can become markup: the page reads it as JSON without any `<`, and makes
    text nodes of it.
    """
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    # A title may have half a surrogate pair, which no file can be written with.
    title = escape(document["title"].encode("utf-8", "replace").decode())
    parts = _page() | {"title": title, "document": text.replace("<", r"\u003c"), "at": escape(at)}
    return _SLOT.sub(lambda slot: parts[slot[1]], (_PAGE / "page.html").read_text("utf-8"))


def write(document: Document, path: str | os.PathLike[str]) -> Path:
    """Write the page that shows a document to a file, and return the file's path."""
    path = Path(path)
    path.write_text(html(document), "utf-8")
    return path


@functools.cache
def _page() -> dict[str, str]:
    """Return the parts that all documents share: styles, libraries and our script."""
    vendor = _PAGE / "vendor"
    styles = [*sorted(vendor.glob("*.css")), *sorted(_PAGE.glob("*.css"))]
    # A browser would look for the map of a minified file beside the page, where no map is.
    libraries = [
        path.read_text("utf-8").partition("//# sourceMappingURL")[0]
        for path in sorted(vendor.glob("*.js"))
    ]
    joined: dict[str, str] = {}
    _join("page.js", joined)
    script = "\n".join(['"use strict";\nconst modules = {};', *joined.values()])
    return {
        "styles": "\n".join(path.read_text("utf-8") for path in styles),
        "libraries": "\n".join(f"<script>{_inside_script(text)}</script>" for text in libraries),
        "script": _inside_script(script),
    }


def _join(name: str, joined: dict[str, str]) -> None:
    """Add a module to `joined`, after the modules that it imports."""
    text = (_PAGE / name).read_text("utf-8")
    joined[name] = ""
    for _, _, other in _IMPORT.findall(text):
        if other not in joined:
            _join(other, joined)
        elif not joined[other]:
            raise ImportError(f"{name} and {other} of the page import each other")
    exports = ", ".join(_EXPORT.findall(text))
    body = _EXPORT.sub("", _IMPORT.sub(_as_constants, text))
    if left := re.search(r"^(?:import|export)\b.*", body, re.MULTILINE):
        raise ImportError(f"{name} of the page: html.py cannot join {left[0]!r}")
    del joined[name]  # to the end: modules run in this order
    joined[name] = f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();'


def _as_constants(statement: re.Match[str]) -> str:
    whole, parts, module = statement.groups()
    return f'const {whole or parts.replace(" as ", ": ")} = modules["{module}"];\n'


def _inside_script(text: str) -> str:
    """Return JavaScript in which no text ends its script element."""
    return re.sub(r"<(?=/script|!--)", r"\\x3c", text, flags=re.IGNORECASE)
