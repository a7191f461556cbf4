"""Each function and each class of the reference has a page, which lies in no file.

The page of a kind lists names by the directive `{names}`. From it, before anything is read, follow
the pages of these names: Sphinx reads each as if it lay in the file of its kind, and gets another
text. In the column of contents the names of a kind stand below the kind, on its pages alone: on all
pages they would be most of the site.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import PurePosixPath
from typing import Any

from docutils import nodes
from furo.navigation import get_navigation_tree
from sphinx.application import Sphinx
from sphinx.environment.adapters.toctree import TocTree
from sphinx.project import Project

from docs.site.public_names import Name, has_page, of_module, public_names

_ASKED = re.compile(
    r"^##? (?P<heading>.+)$"
    r"|^```\{names\} ?(?P<module>\S*)\n(?::from: (?P<homes>.*)\n)?(?P<old>:old:\n)?```$",
    re.MULTILINE,
)


def asked(text: str) -> Iterator[tuple[str, list[Name]]]:
    """Yield the names that the page of a kind shows, with the heading above them."""
    heading = ""
    for found in _ASKED.finditer(text):
        heading = (found["heading"] or heading).replace("`", "")
        if not found["heading"]:
            yield heading, of_module(found["module"], found["homes"] or "", bool(found["old"]))


class WithObjects(Project):
    """The pages of the site, with those of the names."""

    def discover(
        self, exclude_paths: Iterable[str] = (), include_paths: Iterable[str] = ("**",)
    ) -> set[str]:
        """Find the files, and the names that they show."""
        super().discover(exclude_paths, include_paths)
        self.kinds: dict[str, dict[str, list[str]]] = {}  # page → heading → names
        self.kind_of: dict[str, str] = {}  # page of a name → page
        self.name_of: dict[str, str] = {}
        for kind in sorted(self.docnames):
            path = self.doc2path(kind, absolute=True)
            for heading, names in asked(path.read_text("utf-8")) if path.suffix == ".md" else ():
                shown = self.kinds.setdefault(kind, {}).setdefault(heading, [])
                shown += [each.full for each in names]
                for each in filter(has_page, names):
                    page = str(PurePosixPath(kind).parent / each.full)
                    if isinstance(each.value, type) and each.full.lower() in public_names():
                        page += "-class"  # to some disks Tensor is tensor
                    self.kind_of[page], self.name_of[page] = kind, each.full
        self.page_of = {name: page for page, name in self.name_of.items()}
        self.docnames |= self.kind_of.keys()
        return self.docnames

    def doc2path(self, docname: str, absolute: bool) -> Any:
        """Return the file of a page; of a name's page, that of its kind."""
        return super().doc2path(vars(self).get("kind_of", {}).get(docname, docname), absolute)

    def headings(self) -> dict[str, str]:
        """Return the heading above each name."""
        sections = [pair for each in self.kinds.values() for pair in each.items()]
        return {name: heading for heading, names in sections for name in names}


def take_over(app: Sphinx) -> None:
    """Have the pages of the names found."""
    app.project = app.env.project = WithObjects(app.srcdir, app.config.source_suffix)


# --- The column of contents ---------------------------------------------------------------------


def lead_to_kind(app: Sphinx, page: str, template: str, context: dict[str, Any], _: Any) -> None:
    """Have the theme show the contents with the names of the page's kind."""
    kind = app.env.project.kind_of.get(page, page)
    if kind in app.env.project.kinds:
        context["toctree"] = lambda **_: _contents(app, kind)


def prepare(app: Sphinx, builder: Any) -> None:
    """Make the contents once, before there are processes that write pages."""
    for kind in app.env.project.kinds:
        get_navigation_tree(_contents(app, kind))


@functools.cache
def _contents(app: Sphinx, kind: str) -> str:
    """Return the contents with the names of a kind below it; static/site.js unfolds the place."""
    project, file, below = app.env.project, f"{PurePosixPath(kind).name}.html", ""
    for heading, names in project.kinds[kind].items():
        items = ""
        for name in names:
            page = project.page_of.get(name)
            href = f"{PurePosixPath(page).name}.html" if page else f"{file}#{name}"
            items += f"<li>{_link(href, public_names()[name].name)}</li>"
        section = _link(f"{file}#{nodes.make_id(heading)}", heading)
        below += f"<li>{section}<ul>{items}</ul></li>" if len(project.kinds[kind]) > 1 else items
    whole = _whole(app, str(PurePosixPath(kind).parent))
    return re.sub(rf'<a [^>]*href="{file}">.*?</a>', rf"\g<0><ul>{below}</ul>", whole, count=1)


@functools.cache
def _whole(app: Sphinx, folder: str) -> str:
    """Return the contents of the site as links from the pages of a folder."""
    here = next(k for k in app.env.project.kinds if str(PurePosixPath(k).parent) == folder)
    options = {"collapse": False, "titles_only": True, "maxdepth": -1, "includehidden": True}
    tree = TocTree(app.env).get_toctree_for(here, app.builder, **options)
    html = app.builder.render_partial(tree)["fragment"] if tree else ""
    return html.replace('href="#"', f'href="{PurePosixPath(here).name}.html"')


def _link(href: str, text: str) -> str:
    return f'<a class="reference internal" href="{href}">{escape(text)}</a>'


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the pages and the column."""
    app.connect("builder-inited", take_over)
    app.connect("write-started", prepare)
    app.connect("html-page-context", lead_to_kind, priority=400)  # the theme is asked at 500
    return {"parallel_read_safe": True, "parallel_write_safe": True}
