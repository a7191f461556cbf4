"""Every `>>>` in the documentation runs as a doctest and prints what the page says."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import oneflow_lite as flow
from oneflow_lite.onnx.registry import TRANSLATIONS
from oneflow_lite.ops.registry import FUNCTORS, GRAD_FUNCS, KERNELS
from tests.docs.paste import paste, snippets

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
WITH_EXAMPLES = [page for page in PAGES if snippets(page.read_text("utf-8"))]
ROOMS = ("functors", "grad_funcs", "kernels")
EXECUTED = ("architecture.md", "add_an_op.md")


@pytest.fixture
def registries() -> Iterator[None]:
    """Forget the ops that a page registers."""
    kinds = (FUNCTORS, GRAD_FUNCS, KERNELS, TRANSLATIONS)
    before = [set(kind) for kind in kinds]
    yield
    for kind, names in zip(kinds, before, strict=True):
        for name in set(kind) - names:
            kind.remove(name)


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_snippets_print_what_the_page_says(
    page: Path, registries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One page is one session: a snippet may use what an earlier one made, and files beside it."""
    monkeypatch.syspath_prepend(str(page.parent))
    if page.name == "onnx.md":
        pytest.importorskip("onnxruntime")
    tries, report = paste(page, {"__name__": page.stem})
    for name, value in list(vars(flow.Tensor).items()):  # methods that the page registered
        if getattr(value, "__module__", None) == page.stem:
            delattr(flow.Tensor, name)
    assert not report
    assert page.name not in EXECUTED or tries > 20


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_a_page_runs_as_a_reader_pastes_it(page: Path, tmp_path: Path) -> None:
    """Each in a Python of its own: nothing that another page imported or registered helps it."""
    if page.name == "onnx.md":
        pytest.importorskip("onnxruntime")
    command = [sys.executable, "-m", "tests.docs.paste", str(page)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_links_lead_to_files() -> None:
    for page in PAGES[:-1]:  # tests/test_readme.py looks after the README
        links = set(re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")))
        links -= {"genindex"}  # made when the site is built
        assert [link for link in links if not (page.parent / link).exists()] == [], page.name


def test_the_files_that_are_named_exist() -> None:
    """`kernels/activation.py` and the like, in backquotes; `<family>` stands for any."""
    for page in PAGES:
        names = re.findall(r"`((?:\w+/)+\w+\.(?:py|md|txt))`", page.read_text("utf-8"))
        missing = [
            name
            for name in names
            if not any((ROOT / place / name).exists() for place in ("", "oneflow_lite", "docs"))
        ]
        assert missing == [], page.name


def test_the_map_of_static_names_every_file() -> None:
    page = (ROOT / "docs" / "where_to_look.md").read_text("utf-8")
    (table,) = re.findall(r"^## `oneflow_lite/static/`, .*\n((?:\n|\|.*\n)+)", page, re.MULTILINE)
    named = set()
    for row in table.splitlines():
        folder = None
        for name in re.findall(r"`([\w/]+\.py)`", row):  # the first of a row says which folder
            head, _, name = name.rpartition("/")
            folder = head or folder
            named.add(f"{folder}/{name}")
    package = ROOT / "oneflow_lite"
    files = [path.relative_to(package) for path in (package / "static").rglob("*.py")]
    assert named == {str(p) for p in files if p.name != "__init__.py" and "passes" not in p.parts}


def lead(text: str) -> str:
    """Return the paragraph under a page's title, or nothing where something else stands there."""
    found = re.match(r"# .+\n\n((?:[^\s#`<|:!>-].*\n)+)", text)
    return found[1] if found else ""


def test_a_page_is_short_and_begins_with_its_reader() -> None:
    """A lead says whom the page is for, and what it lets them do."""
    for page in (*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"):
        text = page.read_text("utf-8")
        assert text.count("\n") <= 400, f"{page.name} is too long: shorten it, or part it"
        if "```{include}" not in text:
            assert len(lead(text).split()) >= 10, f"{page.name} has no lead"


def test_what_is_a_lead() -> None:
    assert lead("# Title\n\nFor you.\nRead it.\n\n## Part\n") == "For you.\nRead it.\n"
    for start in ("## Part", "```python", "- a list", "| a table |", "![a picture](x.png)", "> x"):
        assert lead(f"# Title\n\n{start}\n\nFor you.\n") == ""


_HEADLESS = re.compile(
    r"(?:^|(?<=[.:;] ))(What|Who|Whoever|Whatever|Whose|Which|Whether|How|Why|Where|When) "
    r"(?:[^.:;?|]|[.:;](?=\S))*[.:;](?=\s|$)"
)


def headless(text: str, allowed: str = "") -> list[str]:
    """Return the sentences that begin with "What …" or the like, and are no questions.

    A sentence that begins with `allowed` may stand, and so may "Where …, …": it has a main clause.
    """
    return [
        found[0]
        for found in _HEADLESS.finditer(" ".join(text.split()))
        if found[1] != allowed and not (found[1] in ("Where", "When") and "," in found[0])
    ]


def docstrings(path: Path) -> Iterator[tuple[str, bool, str]]:
    """Yield the docstrings of a file: the name, whether it is a property's, and the text."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            decorators = " ".join(map(ast.unparse, getattr(node, "decorator_list", ())))
            name = getattr(node, "name", "the module")
            yield name, "property" in decorators, ast.get_docstring(node) or ""


def test_no_sentence_of_a_page_is_headless() -> None:
    """CONTRIBUTING's rule of style: "What is kept …" names the thing instead. Questions may ask."""
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        for block in re.split(r"\n\s*\n|\n(?=[-*|#] )", text):
            if not block.lstrip().startswith(("#", "|")):
                assert headless(block.strip().removeprefix("- ")) == [], page.name


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("folder", ["oneflow_lite", *ROOMS, "docs", "tests"])
def test_no_sentence_of_a_docstring_is_headless(folder: str) -> None:
    """The same rule. Lists of attributes and properties describe a thing: "Whether …" will do."""
    files = list((ROOT / folder).rglob("*.py"))
    assert len(files) > 10
    for file in files:
        for name, is_property, text in docstrings(file):
            for block in re.split(r"\n\s*\n", text):
                if not re.match(r"(Attributes|Parameters|Returns|Yields)\n-|>>> ", block):
                    found = headless(block, allowed="Whether" if is_property else "")
                    assert found == [], f"{file.relative_to(ROOT)}: {name}"


def test_what_is_headless() -> None:
    """The rule finds what it is for, and lets questions and places with a main clause stand."""
    assert headless("Return x. What is kept. How `a.b` is made: so.") == [
        "What is kept.",
        "How `a.b` is made:",
    ]
    assert (
        headless("What is kept? Where it is None, x stands. The one that it is. See Whether.") == []
    )
    assert headless("Whether x is true.", allowed="Whether") == []
    assert headless("Where an array lives.") == ["Where an array lives."]
