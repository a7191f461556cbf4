"""Settings of Sphinx, which builds the site by `make docs`. docs/publishing.md says the rest."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import oneflow_lite

project = "oneflow_lite"
author = "the authors of oneflow_lite"
version = release = oneflow_lite.__version__
copyright = "the authors of oneflow_lite, Apache License 2.0"

extensions = [
    "myst_parser",
    "sphinx_copybutton",
    "docs.site.pages",
    "docs.site.object_pages",
    "docs.site.reference",
    "docs.site.explorer",
    "sphinx.ext.githubpages",  # the file .nojekyll
]
source_suffix = {".md": "markdown", ".py": "markdown"}
exclude_patterns = [
    "conf.py", "site", "learn/*.py", "learn/figures/**.py", "learn/snippets/**.py",
    "learn/live/telling.py", "**/__pycache__",
]  # fmt: skip
root_doc = "index"
nitpicky = True

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist"]
myst_heading_anchors = 3
python_maximum_signature_line_length = 90
toc_object_entries_show_parents = "hide"
smartquotes = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"oneflow_lite {version}"
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_search_scorer = str(Path(__file__).with_name("site") / "static" / "scorer.js")
html_theme_options = {"sidebar_hide_name": False}
