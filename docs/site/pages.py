"""Pages that stand elsewhere in the repository, and scripts as pages.

The README, CONTRIBUTING and CHANGELOG are at the root, where the code host shows them; a page that
includes one of them by `{include}` gets its text, with links that lead where they lead there. A
script of docs/examples is a page: its docstring, and its text.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
AT_ROOT = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
_INCLUDE = re.compile(r"^```\{include\} (\S+)\n```$", re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Turn the text of a page into what is parsed."""
    page = Path(app.env.doc2path(docname))
    if page.suffix == ".py":
        source[0] = of_script(page, source[0])
    else:
        source[0] = _INCLUDE.sub(lambda found: _included(app, page, found[1]), source[0])
        source[0] = relinked(source[0], page, page)


def _included(app: Sphinx, page: Path, target: str) -> str:
    file = (page.parent / target).resolve()
    app.env.note_dependency(str(file))
    return relinked(file.read_text("utf-8"), file, page)


def relinked(text: str, file: Path, page: Path) -> str:
    """Return a text whose links were relative to a file, with links from a page of the site."""

    def link(found: re.Match[str]) -> str:
        target = (file.parent / found[1]).resolve()
        if target.parent == ROOT and target.name in AT_ROOT:
            target = DOCS / AT_ROOT[target.name]
        kind = "" if target.is_relative_to(DOCS) else "path:"  # a file that is no page
        return kind + Path(os.path.relpath(target, page.parent)).as_posix()

    return _LINK.sub(link, text)


def of_script(path: Path, text: str) -> str:
    """Return the page of a script."""
    doc = ast.get_docstring(ast.parse(text)) or ""
    name = path.relative_to(ROOT).as_posix()
    return f"# {path.stem}\n\n{doc}\n\n## The script\n\n`{name}`:\n\n````python\n{text}````\n"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the hook."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True}
