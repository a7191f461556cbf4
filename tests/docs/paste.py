"""Run the examples of a page as a reader pastes them: in order, in a fresh Python, with no names.

python -m tests.docs.paste docs/learn/one_relu.md
"""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path
from typing import Any

FLAGS = doctest.ELLIPSIS


def snippets(text: str) -> str:
    """Return the ```python blocks that hold prompts, each line where it was; the rest is blank.

    So a page is one doctest, and `flow.compile` finds the text of what an earlier block defines.
    """
    blocks = re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    kept, end = "", 0
    for block in blocks:
        if ">>>" in block[1]:
            kept += "\n" * text.count("\n", end, block.start(1)) + block[1]
            end = block.end(1)
    return kept


def paste(page: Path, names: dict[str, Any]) -> tuple[int, str]:
    """Run the examples of a page; return how many there are, and a report of those that fail."""
    text = snippets(page.read_text("utf-8"))
    test = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    said: list[str] = []
    runner.run(test, out=said.append)
    return runner.tries, "".join(said)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(sys.argv[1]).parent))  # pages import files beside them
    report = paste(Path(sys.argv[1]), {"__name__": "__main__"})[1]
    sys.exit(report or 0)
