"""The directive `{explorer} snippet.py`: what the explorer shows of a script, inside the page.

When the site is built, the script runs under `python -m oneflow_lite.explore`, which writes one
file without needs. The page embeds it, and links to it for a window of its own. `:at: backward`
opens it at a place, as `Exploration.frame` takes it.

The directive `{live} tutorial.py`: the story of a live tutorial, with links that send its film to
the place of each paragraph. In the tutorial itself, by `make learn`, code can be changed.
"""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
_FOLDER = "_explorer"


class Explorer(SphinxDirective):
    """`{explorer} snippet.py`, which lies beside the page or in `snippets/` there."""

    required_arguments = 1
    option_spec: ClassVar = {"at": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """Run the script, and embed what it wrote."""
        url, name, _ = self.written(self.config.explorer_command)
        at = self.options.get("at")
        return [self.frame(url + (f"#{at}" if at else ""), name), self.link(url)]

    def written(self, words: list[str]) -> tuple[str, str, str]:
        """Have a command write the script's page; return its address, name, and what it prints."""
        name, path = self.env.relfn2path(f"snippets/{self.arguments[0]}")
        if not Path(path).exists():
            name, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(path)
        target = Path(self.env.app.outdir) / _FOLDER / Path(name).with_suffix(".html")
        target.parent.mkdir(parents=True, exist_ok=True)
        command = [w.format(python=sys.executable, script=path, page=target) for w in words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode or not target.exists():
            raise self.error(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
        up = "../" * self.env.docname.count("/")
        return up + target.relative_to(self.env.app.outdir).as_posix(), name, done.stdout

    def frame(self, url: str, name: str) -> nodes.Node:
        """Return the page in a frame, which links can send to a place."""
        title = f'title="explorer: {name}" name="film"'
        frame = f'<iframe class="explorer" src="{escape(url)}" {title} loading="lazy"></iframe>'
        return nodes.raw("", frame, format="html")

    def link(self, url: str) -> nodes.Node:
        """Return a link to the page alone."""
        link = nodes.reference("", "Open the explorer in a window of its own", refuri=url)
        return nodes.paragraph("", "", link)


class Live(Explorer):
    """`{live} tutorial.py`, which lies beside the page."""

    def run(self) -> list[nodes.Node]:
        """Run the tutorial, and put its story above the film."""
        words = ["{python}", "-m", "docs.site.explorer", "{script}", "{page}"]
        url, name, printed = self.written(words)
        told = json.loads(printed.splitlines()[-1])
        story = nodes.bullet_list()
        for at, text in told:
            paragraph = nodes.container()
            self.state.nested_parse([text], self.content_offset, paragraph)
            href = f'<a href="{escape(f"{url}#{at}")}" target="film">show</a>'
            story += nodes.list_item("", *paragraph.children, nodes.raw("", href, format="html"))
        return [story, self.frame(f"{url}#{told[0][0]}", name), self.link(url)]


def write_live(script: str, page: str) -> None:
    """Run a live tutorial; write the page of its film, and print its story."""
    sys.path.insert(0, str(Path(script).parent))
    _, names = runpy.run_path(script)["app"].run()
    names["film"].write(page)
    names["film"].path.unlink()  # the temporary file of a run outside of notebooks
    print(json.dumps(names["story"]))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive and the command that it runs."""
    app.add_directive("explorer", Explorer)
    app.add_directive("live", Live)
    command = ["{python}", "-m", "oneflow_lite.explore", "--no-open", "--out", "{page}", "{script}"]
    app.add_config_value("explorer_command", command, "env")
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    write_live(*sys.argv[1:])
