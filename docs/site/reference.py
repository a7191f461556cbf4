"""The directive `{names}`: a table of the public names of a module, from the package itself.

    ```{names} linalg
    ```
    ```{names}
    :from: functors.matmul functors.einsum
    ```

`:from:` keeps what these modules define, `:old:` what older scripts ask for. The table leads to the
pages of the names (`object_pages.py`), whose text is made here. When the site is built, each public
name has to be there once, and to have a docstring.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.adapters.toctree import TocTree
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.inspect import stringify_signature

from docs.site.docstrings import inline, summary, to_myst
from docs.site.public_names import (
    Name,
    has_page,
    homes,
    members_of,
    of_module,
    public_names,
    rank,
    without_docstring,
)

_log = logging.getLogger(__name__)


class Names(SphinxDirective):
    """`{names} module`."""

    optional_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {
        "from": directives.unchanged_required,
        "old": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        """Return a table of the names, which leads to their pages."""
        module = self.arguments[0] if self.arguments else ""
        chosen = of_module(module, self.options.get("from", ""), "old" in self.options)
        if not chosen:
            raise self.error(f"no public name is in flow.{module} {self.options}")
        pages = [self.env.project.page_of[each.full] for each in chosen if has_page(each)]
        TocTree(self.env).note(self.env.docname, addnodes.toctree(glob=False, includefiles=pages))
        return [self.table(chosen)]

    def table(self, names: list[Name]) -> nodes.Node:
        """Return a line for each name: a link, and the first sentence of its docstring."""
        body = nodes.tbody()
        for name in sorted(names, key=_alphabet):
            home = homes().get(id(name.value), name.full)
            text = inline(summary(name.doc), linker(name)) or f"The value `{_shown(name.value)}`."
            shown = f"`{name.name}`"
            if has_page(name):
                shown = f"{{py:obj}}`{name.name} <{name.full}>`"
            elif home != name.full:
                text += f" The same as {{py:obj}}`{home}`."
            first, second = ([*self.parse_inline(each)[0]] for each in (shown, text))
            cell = nodes.entry("", nodes.paragraph("", "", *first), ids=[name.full])
            if not has_page(name):
                cell.insert(0, addnodes.index(entries=[("single", name.full, name.full, "", None)]))
                domain = self.env.domains.python_domain
                domain.note_object(name.full, kind_of(name), name.full, location=cell)
            body += nodes.row("", cell, nodes.entry("", nodes.paragraph("", "", *second)))
        columns = [nodes.colspec(colwidth=width) for width in (1, 3)]
        group = nodes.tgroup("", *columns, body, cols=2)
        return nodes.table("", group, classes=["names"])


class Twins(Names):
    """`{twins} flow.Tensor` with a heading: methods that are functions told about below it."""

    required_arguments, optional_arguments, has_content = 1, 0, True

    def run(self) -> list[nodes.Node]:
        """Return a table of the methods."""
        found, headings = twins(public_names()[self.arguments[0]]), self.env.project.headings()
        family = self.content[0]
        return [self.table([n for n, home in found if headings.get(home, "Others") == family])]


def _alphabet(name: Name) -> tuple[str, str]:
    return (name.name.lower(), name.name)


# --- One entry ----------------------------------------------------------------------------------


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the entry of a name where the text of its kind was read."""
    project = app.env.project
    if docname in project.name_of:
        name = public_names()[project.name_of[docname]]
        source[0] = "\n\n".join(page_of(name, project.headings()))


def page_of(name: Name, headings: dict[str, str]) -> Iterator[str]:
    """Yield the parts of a page."""
    if not members_of(name):
        yield "---\nhide-toc: true\n---"
    yield f"# {name.full}"
    yield entry(name)
    families = dict.fromkeys(headings.get(home, "Others") for _, home in twins(name))
    if families:
        yield "## Functions as methods"
    for family in sorted(families):
        yield f"### {family}\n\n```{{twins}} {name.full}\n{family}\n```"


def twins(name: Name) -> Iterator[tuple[Name, str]]:
    """Yield the members of a class that are functions told about elsewhere, with these."""
    for each in members_of(name):
        home = homes().get(id(each.value), each.full)
        if each.name.endswith("_") and "\n\n" not in each.doc:  # it writes the function's result
            function = public_names().get(f"flow.{each.name.rpartition('.')[2][:-1]}")
            home = homes().get(id(function.value), home) if function else home
        if "." not in public_names()[home].name:
            yield each, home


def entry(name: Name) -> str:
    """Return what the page says about a name, as MyST text."""
    value, fences = name.value, "::::" if "." in name.name else ":::::"
    home, kind = homes().get(id(value), name.full), kind_of(name)
    shown = signature(value, kind == "method") if kind != "property" else ""
    link = linker(name)
    body = [""]
    if home != name.full and name.doc:
        body = [inline(summary(name.doc), link), f"The same as {{py:obj}}`{home}`."]
    elif name.doc:
        body = [to_myst(with_parameters(name), link)]
        bases = getattr(value, "__bases__", ()) if isinstance(value, type) else ()
        known = [homes()[id(base)] for base in bases if id(base) in homes()]
        if known:
            body.append("Bases: " + ", ".join(f"{{py:obj}}`{base}`" for base in known))
        if "." not in name.name and (source := source_of(value)):
            body.append(f"{{.source}}\nIn {source}")
    if has_page(name):
        elsewhere = {each.full for each, _ in twins(name)}
        own = [each for each in members_of(name) if each.full not in elsewhere]
        body += [entry(each) for each in sorted(own, key=_alphabet)]
    text = "\n\n".join(body)
    return f"{fences}{{py:{kind}}} {name.full}{shown}\n\n{text}\n\n{fences}"


def kind_of(name: Name) -> str:
    """Return the word of Sphinx for the kind of a name."""
    if isinstance(name.value, property):
        return "property"
    if "." in name.name:
        return "method" if callable(name.value) else "attribute"
    if isinstance(name.value, type):
        return "exception" if issubclass(name.value, BaseException) else "class"
    return "function" if callable(name.value) else "data"


_PARAMETERS = re.compile(r"^Parameters\n-+\n.*?(?=^\w[^\n]*\n-+\n|\Z)", re.MULTILINE | re.DOTALL)
_HEADER = re.compile(r"^\w[^\n]*\n-+\n", re.MULTILINE)
_AS_OF = re.compile(r"\b(?:parameters|options)\b[^.;`]*`(\w+)`", re.IGNORECASE)


def with_parameters(name: Name) -> str:
    """Return the docstring of a name; if it points to the parameters of another, with these."""
    doc = name.doc
    found = _AS_OF.search(" ".join(doc.split()))
    other = public_names().get(f"{name.full.rpartition('.')[0]}.{found[1]}") if found else None
    if other is None or other.full == name.full or _PARAMETERS.search(doc):
        return doc
    section = _PARAMETERS.search(with_parameters(other))
    if section is None:
        return doc
    own = {*_parameters(name.value)}
    entries = re.split(r"^(?=\w)", section[0].split("\n", 2)[2], flags=re.MULTILINE)
    kept = [e for e in entries if own.intersection(re.findall(r"\w+", e.partition(" : ")[0]))]
    first = _HEADER.search(doc)
    place = first.start() if first else len(doc)
    told = "".join(kept or entries).rstrip()
    return f"{doc[:place].rstrip()}\n\nParameters\n----------\n{told}\n\n{doc[place:]}"


def source_of(value: Any) -> str:
    """Return the file of the repository that defines a value; "" where there is none."""
    name = str(getattr(value, "__module__", ""))
    file = vars(sys.modules.get(name, sys)).get("__file__")  # flow.cuda has none
    if file is None or not name.startswith("oneflow_lite"):
        return ""
    path = Path(file).resolve()
    return path.relative_to(Path(__file__).resolve().parents[2]).as_posix()


def signature(value: Any, is_method: bool = False) -> str:
    """Return the parameters as they are declared; nothing where Python knows none."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "()"
    shown = [p for p in found.parameters.values() if p.name != "self"]
    if is_method and shown and len(shown) == len(found.parameters):
        shown = shown[1:]  # the tensor, which a function of the same code takes first
    for i, p in enumerate(shown):
        if p.default is not p.empty and repr(p.default).startswith("<"):  # it means nothing
            shown[i] = p.replace(default=_Shown(getattr(p.default, "__name__", "...")))
    returns = found.return_annotation
    if isinstance(value, type) or returns in (None, "None"):
        returns = inspect.Signature.empty
    return stringify_signature(
        inspect.Signature(shown, return_annotation=returns), unqualified_typehints=True
    )


class _Shown(str):
    """A text that stands for itself."""

    __repr__ = str.__str__


def _shown(value: Any) -> str:
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    return type(value).__name__ if text.startswith("<") else text


_NEAR = "flow flow.Tensor flow.nn flow.errors flow.nn.functional".split()


def linker(name: Name) -> Any:
    """Return what words in backquotes mean in the docstring of a name."""
    own = name.full.split(".")
    kept = {own[-1], *_parameters(name.value)}

    @functools.cache
    def link(word: str) -> str | None:
        word = word.removesuffix("()")
        if not word.replace(".", "").replace("_", "").isalnum() or word in kept:
            return None
        places = [".".join(own[:n]) for n in range(len(own) - 1, 0, -1)]
        for place in ("", *places, *_NEAR):
            full = f"{place}.{word}".lstrip(".")
            if full in public_names() and full != name.full and "." in full:
                return full
        return None

    return link


def _parameters(value: Any) -> list[str]:
    try:
        return list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return []


# --- The whole ----------------------------------------------------------------------------------


def check(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of names that are nowhere, in two places, or say nothing about themselves."""
    if not app.config.whole_reference:
        return
    told: dict[str, str] = {}
    for page, sections in env.project.kinds.items():
        for full in itertools.chain(*sections.values()):
            if full in told:
                _log.warning("%s is on two pages: %s and %s", full, told[full], page)
            told[full] = page
    for full in sorted({n.full for n in public_names().values() if "." not in n.name} - set(told)):
        _log.warning("%s is on no page of docs/reference", full)
    for full in without_docstring():
        _log.warning("%s has no docstring", full)


@functools.cache
def _annotated() -> dict[str, str]:
    """Return the full names of the classes that annotations name without their module."""
    classes = [n for n in public_names().values() if isinstance(n.value, type)]
    named = {n.name.rpartition(".")[2]: n.full for n in sorted(classes, key=rank, reverse=True)}
    named |= {"DTypeLike": "flow.dtype", "DeviceLike": "flow.device", "Device": "flow.device"}
    return {**named, "Tensor": "flow.Tensor", "Module": "flow.nn.Module"}


def resolve(app: Sphinx, doctree: nodes.document) -> None:
    """Give the classes in annotations their full names; leave Python's own as text."""
    for node in list(doctree.findall(addnodes.pending_xref)):
        if node.get("refdomain") == "py" and node.get("reftype") != "obj":
            full = _annotated().get(node["reftarget"].rpartition(".")[2])
            if full is None:
                node.replace_self(node.children)
            else:
                node["reftarget"], node["refspecific"] = full, False


def elsewhere(app: Sphinx, env: BuildEnvironment, node: Any, content: nodes.Node) -> Any:
    """Leave as text what another part of the reference is about, where only a part is built."""
    known = node["reftarget"] in public_names()
    return content if known and not app.config.whole_reference else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive and the checks."""
    app.add_directive("names", Names)
    app.add_directive("twins", Twins)
    app.add_config_value("whole_reference", True, "env")  # or a part of the pages alone
    app.connect("source-read", read)
    app.connect("env-check-consistency", check)
    app.connect("doctree-read", resolve)
    app.connect("missing-reference", elsewhere)
    return {"parallel_read_safe": True, "env_version": 1}
