"""The directive `{explorer} snippet.py`: what the explorer shows of a script, inside the page.

When the site is built, the script runs under `python -m oneflow_lite.explore`, which writes one
file without needs. The page embeds it, and links to it for a window of its own.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
_FOLDER = "_explorer"


class Explorer(SphinxDirective):
    """`{explorer} snippet.py`, which lies beside the page or in `snippets/` there."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Run the script, and embed what it wrote."""
        name, path = self.env.relfn2path(f"snippets/{self.arguments[0]}")
        if not Path(path).exists():
            name, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(path)
        target = Path(self.env.app.outdir) / _FOLDER / Path(name).with_suffix(".html")
        target.parent.mkdir(parents=True, exist_ok=True)
        words = self.config.explorer_command
        command = [w.format(python=sys.executable, script=path, page=target) for w in words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode or not target.exists():
            raise self.error(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
        up = "../" * self.env.docname.count("/")
        url = up + target.relative_to(self.env.app.outdir).as_posix()
        title = f'title="explorer: {name}"'
        frame = f'<iframe class="explorer" src="{url}" {title} loading="lazy"></iframe>'
        link = nodes.reference("", "Open the explorer in a window of its own", refuri=url)
        return [nodes.raw("", frame, format="html"), nodes.paragraph("", "", link)]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive and the command that it runs."""
    app.add_directive("explorer", Explorer)
    command = ["{python}", "-m", "oneflow_lite.explore", "--no-open", "--out", "{page}", "{script}"]
    app.add_config_value("explorer_command", command, "env")
    return {"parallel_read_safe": True}
