"""Docstrings as MyST text: sections become definition lists, doctests become code blocks."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator

Link = Callable[[str], str | None]  # the full name that a word in backquotes stands for

_SPAN = re.compile(r"(`+[^`]+`+)")
_SPECIAL = re.compile(r"([\\*_\[\]<>~$|#])")
_UNDERLINE = re.compile(r"-{3,}$")
_NOTHING = "\xa0"
_HEAD = re.compile(r"[\w*]+(, [\w*]+)*: ")


def inline(text: str, link: Link) -> str:
    """Return a line of prose: words in backquotes lead to what they name, the rest means itself."""
    parts = _SPAN.split(text)
    for i, part in enumerate(parts):
        if i % 2 == 0:
            parts[i] = _SPECIAL.sub(r"\\\1", part)
        elif part[1] != "`":
            target = link(part[1:-1])
            parts[i] = f"{{py:obj}}`{part[1:-1]} <{target}>`" if target else part
    text = "".join(parts)
    return re.sub(r"^(\s*)([-+]|\d+[.)])(?=\s)", r"\1\\\2", text)


def to_myst(doc: str, link: Link) -> str:
    """Return a docstring in NumPy's style as MyST text."""
    return "\n\n".join(
        block for title, body in _sections(doc) for block in _section(title, body, link)
    )


def summary(doc: str) -> str:
    """Return the first paragraph, in one line."""
    return " ".join(doc.partition("\n\n")[0].split())


def _sections(doc: str) -> Iterator[tuple[str, str]]:
    lines, title, start = doc.splitlines(), "", 0
    for i, line in enumerate(lines):
        if i and _UNDERLINE.match(line) and len(line) == len(lines[i - 1].strip()):
            yield title, "\n".join(lines[start : i - 1])
            title, start = lines[i - 1].strip(), i + 1
    yield title, "\n".join(lines[start:])


def _section(title: str, body: str, link: Link) -> Iterator[str]:
    body = body.strip("\n")
    if title:
        yield f"**{title}**"
    if title in ("Parameters", "Attributes", "Raises", "Returns", "Yields") and "\n    " in body:
        yield "\n\n".join(_definitions(body, link, title))
    elif body:
        yield from _paragraphs(body, link)


def _definitions(body: str, link: Link, title: str) -> Iterator[str]:
    """Yield the entries `name : type`, each with the lines that are indented below it."""
    for entry in re.split(r"\n(?=\S)", body):
        head, _, below = entry.partition("\n")
        name, colon, kind = head.partition(" : ")
        named = title in ("Parameters", "Attributes") or colon
        words = ", ".join(f"`{word}`" for word in name.split(", ")) if named else inline(name, link)
        if title == "Raises":
            words = inline(f"`{name}`", link)
        text = "\n\n".join(_paragraphs(textwrap.dedent(below), link)) if below.strip() else ""
        head = f"{words} : {inline(kind, link)}" if colon else words
        yield f"{head}\n: {textwrap.indent(text or _NOTHING, '  ').lstrip(' ')}"


def _paragraphs(body: str, link: Link) -> Iterator[str]:
    for block in re.split(r"\n\s*\n", body.strip("\n")):
        lines = block.splitlines()
        if lines[0].lstrip().startswith(">>>"):
            yield f"```pycon\n{textwrap.dedent(block)}\n```"
        elif all(line.startswith("    ") for line in lines):
            yield f"```text\n{textwrap.dedent(block)}\n```"
        elif all(re.match(r"\s|- ", line) for line in lines) and lines[0].startswith("- "):
            items = re.split(r"^- ", block, flags=re.MULTILINE)[1:]
            yield "\n".join(f"- {inline(' '.join(item.split()), link)}" for item in items)
        elif _HEAD.match(lines[0]) and all(re.match(r"  |" + _HEAD.pattern, n) for n in lines):
            items = re.split(r"\n(?=\S)", block)
            pairs = [" ".join(item.split()).split(": ", 1) for item in items]
            yield "\n".join(f"- `{names}`: {inline(text, link)}" for names, text in pairs)
        else:
            yield from _prose(lines, link)


def _prose(lines: list[str], link: Link) -> Iterator[str]:
    """Yield a paragraph, which may lead into a doctest."""
    told = next((i for i, n in enumerate(lines) if n.startswith(">>>")), len(lines))
    yield "\n".join(inline(line.strip(), link) for line in lines[:told])
    if told < len(lines):
        yield "\n".join(["```pycon", *lines[told:], "```"])
