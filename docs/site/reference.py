"""The directive `{names}`: entries of all public names of a module, from the package itself.

    ```{names} linalg
    ```
    ```{names}
    :from: functors.matmul functors.einsum
    ```

`:from:` keeps what these modules define, `:old:` what older scripts ask for. When the site is
built, each public name has to be there once, and to have a docstring.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.inspect import stringify_signature

from docs.site.docstrings import inline, summary, to_myst
from docs.site.public_names import (
    Name,
    homes,
    members_of,
    of_module,
    public_names,
    rank,
    with_members,
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
        """Return the entries, as if they had been written in the page."""
        module = self.arguments[0] if self.arguments else ""
        chosen = of_module(module, self.options.get("from", ""), "old" in self.options)
        if not chosen:
            raise self.error(f"no public name is in flow.{module} {self.options}")
        chosen.sort(key=_alphabet)
        text = "\n\n".join(entry(name) for name in chosen)
        for each in with_members(chosen):
            _told(self.env).append((each.full, self.env.docname))
        node = nodes.container()
        self.state.nested_parse(StringList(text.splitlines(), self.env.docname), 0, node)
        return [*overview(chosen), *node.children]


def _alphabet(name: Name) -> tuple[str, str]:
    return (name.name.lower(), name.name)


def _told(env: BuildEnvironment) -> list[tuple[str, str]]:
    """Return the names that pages show, with the page."""
    if not hasattr(env, "told_names"):
        env.told_names = []  # type: ignore[attr-defined]
    return env.told_names  # type: ignore[attr-defined]


# --- One entry ----------------------------------------------------------------------------------


def overview(names: list[Name]) -> list[nodes.Node]:
    """Return one line of links to the names; to the members, where there is but one class."""
    if len(names) == 1:
        names = sorted(members_of(names[0]), key=_alphabet)
    line = nodes.paragraph("", "", classes=["overview"])
    for each in names if len(names) > 3 else []:
        text = nodes.literal("", each.name.rpartition(".")[2])
        line += [nodes.reference("", "", text, refid=each.full, internal=True), nodes.Text(" ")]
    return [line] if line.children else []


def entry(name: Name) -> str:
    """Return what the page says about a name, as MyST text."""
    value, fences = name.value, "::::" if "." in name.name else ":::::"
    home = homes().get(id(value), name.full)
    body = [] if name.doc else [""]
    if isinstance(value, property):
        head = f"{{py:property}} {name.full}"
    elif isinstance(value, type) and home == name.full:
        kind = "exception" if issubclass(value, BaseException) else "class"
        head = f"{{py:{kind}}} {name.full}{signature(value)}"
    elif callable(value):
        kind = "method" if "." in name.name else "function"
        head = f"{{py:{kind}}} {name.full}{signature(value, kind == 'method')}"
    else:
        head = f"{{py:data}} {name.full}"
        body = [f"The value `{_shown(value)}`."]
    link = linker(name)
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
    if isinstance(value, type) and home == name.full:
        body += [entry(each) for each in sorted(members_of(name), key=_alphabet)]
    return f"{fences}{head}\n\n" + "\n\n".join(body) + f"\n\n{fences}"


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
    shown = [p.replace(default=_Shown(p.default)) if _is_odd(p.default) else p for p in shown]
    returns = found.return_annotation
    if isinstance(value, type) or returns in (None, "None"):
        returns = inspect.Signature.empty
    return stringify_signature(
        inspect.Signature(shown, return_annotation=returns), unqualified_typehints=True
    )


class _Shown:
    """A default whose representation means nothing to readers."""

    def __init__(self, value: Any) -> None:
        self.text = getattr(value, "__name__", "...")

    def __repr__(self) -> str:
        return self.text


def _is_odd(default: Any) -> bool:
    return default is not inspect.Parameter.empty and repr(default).startswith("<")


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
    for full, page in _told(env):
        if full in told:
            _log.warning("%s is on two pages: %s and %s", full, told[full], page)
        told[full] = page
    for full in sorted(set(public_names()) - set(told)):
        _log.warning("%s is on no page of docs/reference", full)
    for full in without_docstring():
        _log.warning("%s has no docstring", full)


def forget(app: Sphinx, env: BuildEnvironment, page: str) -> None:
    """Forget what a page said, before it is read again."""
    env.told_names = [each for each in _told(env) if each[1] != page]  # type: ignore[attr-defined]


def merge(app: Sphinx, env: BuildEnvironment, pages: set[str], other: BuildEnvironment) -> None:
    """Take over what pages said that another process has read."""
    env.told_names = [*_told(env), *(each for each in _told(other) if each[1] in pages)]  # type: ignore[attr-defined]


@functools.cache
def _annotated() -> dict[str, str]:
    """Return the full names of the classes that annotations name without their module."""
    classes = [n for n in public_names().values() if isinstance(n.value, type)]
    named = {n.name.rpartition(".")[2]: n.full for n in sorted(classes, key=rank, reverse=True)}
    return {**named, "Tensor": "flow.Tensor", "Module": "flow.nn.Module"}


def resolve(app: Sphinx, doctree: nodes.document) -> None:
    """Give the classes in annotations their full names; leave Python's own as text."""
    for node in list(doctree.findall(pending_xref)):
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
    app.add_config_value("whole_reference", True, "env")  # or a part of the pages alone
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("env-check-consistency", check)
    app.connect("doctree-read", resolve)
    app.connect("missing-reference", elsewhere)
    return {"parallel_read_safe": True, "env_version": 1}
