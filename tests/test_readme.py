"""The README is short; its examples run in ten seconds and print what they say; its links hold."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_prints_what_its_comment_says(example: str, tmp_path: Path) -> None:
    file = tmp_path / "example.py"  # flow.compile needs the text of what it compiles
    file.write_text(example, "utf-8")
    path = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(file)]
    done = subprocess.run(
        command, cwd=ROOT, env=path, capture_output=True, text=True, check=True, timeout=10
    )
    said = example.splitlines()[-1].partition("#")[2]
    assert said
    assert done.stdout.split() == said.split()


def test_it_is_short_and_leads_to_the_four_parts() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 96
    for part in ("learn/index", "howto", "reference/index", "explanation"):
        assert f"(docs/{part}.md)" in text


def test_links_lead_to_files() -> None:
    for document in ("README.md", "CONTRIBUTING.md"):
        links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / document).read_text())
        assert links
        assert [link for link in links if not (ROOT / link).exists()] == []
