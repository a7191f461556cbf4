"""Pages that stand elsewhere in the repository, and scripts as pages.

The README, CONTRIBUTING, CHANGELOG and SECURITY are at the root, where the code host shows them; a
page that includes one of them by `{include}` gets its text, with links that lead where they lead
there. A script of examples/ is a page: its docstring, and its text. So is a live tutorial: its
paragraphs, its code and its film. All other files are downloads.
"""

from __future__ import annotations

import ast
import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

AT_ROOT = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
# Words by which people look for a page, beside those of its title. The search puts it first.
TERMS = {
    "add_an_op": "custom op, own op, register_op, gradient rule",
    "compile": "flow.compile, why was it recorded anew, recompile, fullgraph",
    "compile_rules": "guards, graph break, what ends a recording",
    "coming_from_pytorch": "mock_torch, PyTorch scripts, import torch",
    "custom_functions": "autograd.Function, straight-through estimator, save_for_backward",
    "derivatives": "per-sample gradients, hessian, jacobian, forward mode, taylor series, jvp, "
    "vjp, laplacian, higher-order gradients",
    "distributed": "data parallel, DDP, several processes",
    "executor": "executor, Executor",
    "explorer": "explorer, NaN, where did NaN begin, see the graph in a browser",
    "files": "save and load, checkpoint file, state dict, safetensors",
    "global_tensors": "global tensor, tensor parallel, SBP",
    "hooks": "hooks, register_hook, forward hook, gradient hook",
    "inplace_and_views": "in-place, version counter, views, modified by an inplace operation",
    "learn/a_toy_vmap": "batching rule, levels",
    "learn/graph_task": "retain_graph, dependency count, order of backward, pruning",
    "learn/higher_derivatives": "double backward, second derivative, hessian vector product, "
    "gradient penalty, create_graph",
    "machine_code": "machine code, numba, jit",
    "numpy": "numpy functions on tensors, array protocols",
    "onnx": "onnx export",
    "passes": "passes, common subexpressions, buffer planning",
    "performance": "slow training, speed, threads",
    "profiling": "profiler, where does time go",
    "static_programs": "static graph, program_guard, Program",
    "subgradients": "subgradient, kink, derivative at zero",
}
_INCLUDE = re.compile(r"^```\{include\} (\S+)\n```$", re.MULTILINE)
_PICTURE = re.compile(r"^(!\[[^]]*\]\()([\w./-]+)\.png(\))$", re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Turn the text of a page into what is parsed."""
    page = Path(app.env.doc2path(docname))
    if page.suffix == ".py":
        made = of_tutorial if page.parent.name == "live" else of_script
        source[0] = "\n\n".join(made(page, source[0]))
        return

    def included(found: re.Match[str]) -> str:
        file = (page.parent / found[1]).resolve()
        app.env.note_dependency(str(file))
        return relinked(file.read_text("utf-8"), file, page, Path(app.srcdir))

    text = _INCLUDE.sub(included, relinked(source[0], page, page, Path(app.srcdir)))
    if docname in TERMS:  # "!" marks the place where a term is explained
        terms = ", ".join(f"! {term}" for term in TERMS[docname].split(", "))
        text = f"```{{index}} {terms}\n```\n\n{text}"
    source[0] = _PICTURE.sub(lambda found: with_dark(found, page.parent), text)


def with_dark(found: re.Match[str], folder: Path) -> str:
    """Return a picture, and its twin for dark pages where there is a `-dark.png` beside it."""
    before, name, after = found.groups()
    if not (folder / f"{name}-dark.png").exists():
        return found[0]
    return f"{{.only-light}}\n{found[0]}\n\n{{.only-dark}}\n{before}{name}-dark.png{after}"


def relinked(text: str, file: Path, page: Path, docs: Path) -> str:
    """Return a text whose links were relative to a file, with links from a page of the site."""

    def link(found: re.Match[str]) -> str:
        target = (file.parent / found[1]).resolve()
        if target.parent == docs.parent and target.name in AT_ROOT:
            target = docs / AT_ROOT[target.name]
        is_script = target.suffix == ".py" and target.parent.name not in ("examples", "live")
        kind = "path:" if is_script or not target.is_relative_to(docs) else ""
        return kind + Path(os.path.relpath(target, page.parent)).as_posix()

    return _LINK.sub(link, text)


def of_script(path: Path, text: str) -> Iterator[str]:
    """Yield the parts of a script: its docstring, and its text."""
    tree = ast.parse(text)
    doc = ast.get_docstring(tree) or ""
    start = tree.body[0].end_lineno if doc else 0
    code = "".join(text.splitlines(keepends=True)[start:]).lstrip("\n")
    yield from (f"# {path.name}", doc, f"````python\n{code}````")


def of_tutorial(path: Path, text: str) -> Iterator[str]:
    """Yield the parts of a live tutorial, a notebook of marimo: Markdown, code, and the film."""
    for cell in ast.parse(text).body:
        if not isinstance(cell, ast.FunctionDef):
            continue
        *body, _ = cell.body  # it ends with a return
        first, last = body[0].lineno - 1, body[-1].end_lineno
        code = textwrap.dedent("\n".join(text.splitlines()[first:last]))
        if code.startswith("mo.md("):
            (words,) = [node for node in ast.walk(body[0]) if isinstance(node, ast.Constant)]
            yield textwrap.dedent(str(words.value))
        elif code.startswith("telling.told("):
            yield f"```{{live}} {path.name}\n```"
        elif "hide_code" not in ast.unparse(cell.decorator_list[0]):
            yield f"```python\n{code}\n```"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the hook."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True}
