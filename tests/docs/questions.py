"""Forty questions to the search of the site, each with the page that should come first.

    make site && python -m tests.docs.questions build/site

It needs a browser, in which Sphinx's search runs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.chromium import started

# Pages are named as in docs/; of a name, the anchor on the page of the reference.
QUESTIONS = {
    "per-sample gradients": "derivatives",
    "hessian": "derivatives",
    "hessian vector product": "learn/higher_derivatives",
    "jacobian": "derivatives",
    "double backward": "learn/higher_derivatives",
    "second derivative": "learn/higher_derivatives",
    "forward mode": "derivatives",
    "taylor series": "derivatives",
    "gradient penalty": "learn/higher_derivatives",
    "custom op": "add_an_op",
    "register_op": "add_an_op",
    "check_op": "#flow.testing.check_op",
    "autograd.Function": "custom_functions",
    "straight-through estimator": "custom_functions",
    "vmap": "#flow.vmap",
    "batching rule": "learn/a_toy_vmap",
    "hooks": "hooks",
    "register_hook": "hooks",
    "in-place": "inplace_and_views",
    "version counter": "inplace_and_views",
    "retain_graph": "learn/graph_task",
    "dependency count": "learn/graph_task",
    "subgradient": "subgradients",
    "kink": "subgradients",
    "flow.compile": "compile",
    "why was it recorded anew": "compile",
    "executor": "executor",
    "static graph": "static_programs",
    "passes": "passes",
    "machine code": "machine_code",
    "profiler": "profiling",
    "slow training": "performance",
    "explorer": "explorer",
    "NaN": "explorer",
    "save and load": "files",
    "onnx export": "onnx",
    "data parallel": "distributed",
    "mock_torch": "coming_from_pytorch",
    "numpy functions on tensors": "numpy",
    "conv2d": "#flow.conv2d",
}


def first(page: Any, site: Path, question: str) -> str:
    """Return where the first answer to a question leads."""
    page.goto(f"{(site / 'search.html').as_uri()}?q={question}")
    page.wait_for_selector("#search-results p.search-summary:has-text('found')")
    answer = page.locator("#search-results li a").first
    return str(answer.get_attribute("href")) if answer.count() else ""


def wrong(site: Path) -> list[str]:
    """Return the questions whose first answer is another one than wanted."""
    found = []
    with started() as browser:
        page = browser.new_page()
        for question, wanted in QUESTIONS.items():
            answer = first(page, site, question)
            is_right = wanted in answer if wanted[0] == "#" else f"{wanted}.html" in answer
            if not is_right:
                found.append(f"{question!r}: {answer} comes first, {wanted} should")
    return found


if __name__ == "__main__":
    said = wrong(Path(sys.argv[1]).resolve())
    sys.exit("\n".join(said) or 0)
