"""Exploration: one recording, from entering the block to the page."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import webbrowser
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from oneflow_lite.autograd.tools.step_log import watching
from oneflow_lite.errors import ArgumentError
from oneflow_lite.explore import html
from oneflow_lite.explore.backward import Film
from oneflow_lite.explore.difference import difference
from oneflow_lite.explore.document import FORMAT, Document, ErrorPart
from oneflow_lite.explore.forward import OpWatch, Recorder
from oneflow_lite.explore.places import variables
from oneflow_lite.explore.seen import names_in
from oneflow_lite.interpreter.stack import push_interpreter
from oneflow_lite.tensors.tensor import Tensor

_HEIGHT = 720  # pixels of a page inside of a notebook
# Modules with parts of the document of their own. They stand on Programs, which load everything,
# this package too: so they are loaded late.
_WATCHES = ("programs", "compiled")


class Exploration:
    """The result of `explore`: a recording, once as a document and once as a page.

    Attributes
    ----------
    path : pathlib.Path or None
        Where the page was written.
    watches : dict of str to object
        The makers of the parts of Programs and compiled functions, while the block runs.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        values: bool,
        open: bool | None,
        title: str,
        limit: int,
    ) -> None:
        self.path = None if path is None else Path(path)
        self._values, self._open, self._title = bool(values), open, title
        self._recorder = Recorder(self._values, limit)
        self._film = self._recorder.turns = Film(self._recorder)
        self._document: Document | None = None
        self._stack: contextlib.ExitStack | None = None
        self.watches: dict[str, Any] = {}

    @property
    def document(self) -> Document:
        """The recording, as `oneflow_lite/explore/document.py` describes it.

        Raises
        ------
        ArgumentError
            While the block runs.
        """
        if self._document is None:
            raise ArgumentError(
                "explore(): the document is made when the block ends; read it after the block"
            )
        return self._document

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, and return its path."""
        return html.write(self.document, path)

    def difference(self, other: Exploration) -> str:
        """Return in words where another recording of the same code first differs; "" if nowhere.

        Ops are compared in their order: name, line, options, shapes, and results as the page shows
        them, to 4 digits. So it finds the op at which two seeds, versions or devices part, and the
        op at which a compiled function parts from the plain one. The replays whose ops are written
        down are compared: the first 50, up to 2,000 results. Ops that passes took out, or put
        together, are left out.

        Examples
        --------
        >>> import oneflow_lite as flow
        >>> runs = []
        >>> for scale in (1.0, 2.0):
        ...     with flow.explore(open=False) as e:
        ...         y = (flow.ones(2) + 1) * scale
        ...     runs.append(e)
        ...     e.path.unlink()
        >>> runs[0].difference(runs[1]).partition(": ")[2]
        'result 0 was [2, 2], is [4, 4]'
        """
        return difference(self.document, other.document)

    def __repr__(self) -> str:
        if self._document is None:
            return "<exploration that is not over>"
        document = self._document
        numbers = [
            (len(document["ops"]), "op"),
            (len(document["nodes"]), "node"),
            (len(document["runs"]), "backward call"),
        ]
        counts = ", ".join(f"{n} {what}{'s' * (n != 1)}" for n, what in numbers)
        return f"<exploration: {counts}{f': {self.path}' if self.path else ''}>"

    def frame(self, at: str = "", height: int = _HEIGHT) -> str:
        """Return the page in a frame of its own, as HTML.

        Parameters
        ----------
        at : str
            The place at which the page opens: a tab, as "graph", or a place of it, as
            "backward?run=0&step=3", "forward?op=2" or "graph?node=1". Numbers are those of
            `document`; step 0 is before any node ran.
        height : int
            Pixels.
        """
        style = f"width: 100%; height: {height}px; border: 1px solid #8888"
        page = escape(html.html(self.document, at))
        return f'<iframe title="explorer" style="{style}" srcdoc="{page}"></iframe>'

    def _repr_html_(self) -> str:
        return self.frame()

    # The block

    def __enter__(self) -> Exploration:
        self.begin()
        return self

    def begin(self) -> None:
        """Start recording."""
        if self._stack is not None:
            raise ArgumentError("explore(): a block is entered once; call explore() again")
        with contextlib.ExitStack() as stack:
            for name in _WATCHES:
                watch = import_module(f"oneflow_lite.explore.{name}").Watch(self._values)
                watch.place = lambda: len(self._recorder.ops)
                self.watches[name] = stack.enter_context(watch)
            stack.enter_context(push_interpreter(OpWatch(self._recorder)))
            stack.enter_context(watching(self._film))
            self._stack = stack.pop_all()  # what was pushed stays, unless a step above raised

    def show(self, tensor: Tensor) -> None:
        """Take in a tensor and the graph behind it."""
        self._recorder.seen.tensor(tensor)
        assert tensor._edge is not None
        node = self._recorder.seen.nodes[self._recorder.seen.node(tensor._edge[0])]
        node["tensor"] = self._recorder.seen.tensor(tensor)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.end(error, variables(sys._getframe(1)))
        if self._is_inline() and self._open is None:
            _display(self)

    def end(self, error: BaseException | None, scope: dict[str, Any]) -> None:
        """Stop recording, make the document, and write the page unless a notebook shows it.

        The variables of `scope` give tensors their names.
        """
        assert self._stack is not None
        self._stack.close()
        self._document = self._made(error, scope)
        if self._is_inline():
            return
        if self.path is None:
            handle, name = tempfile.mkstemp(prefix="explore-", suffix=".html")
            os.close(handle)
            self.path = Path(name)
        self.write(self.path)
        if opens_browser() if self._open is None else self._open:
            webbrowser.open(self.path.resolve().as_uri())

    def _is_inline(self) -> bool:
        return self.path is None and not self._open and in_notebook()

    def _made(self, error: BaseException | None, scope: dict[str, Any]) -> Document:
        recorder, seen = self._recorder, self._recorder.seen
        recorder.settle()
        seen.named(names_in(scope, [*recorder.modules.roots()]))
        for node in seen.living():
            seen.save_anew(node)
        seen.label_nodes()
        failed = None
        if error is not None:
            notes = "\n".join([str(error), *getattr(error, "__notes__", ())])
            failed = ErrorPart(
                kind=type(error).__name__,
                text=notes if self._values else "",
                source=recorder.sources.place_of_error(error),
            )
        parts = {n: recorder.sources.placed(w.parts()) for n, w in self.watches.items()}
        return Document(
            format=FORMAT, version=sys.modules["oneflow_lite"].__version__, title=self._title,
            values=self._values, error=failed, left_out=recorder.left_out,
            sources=recorder.sources.texts() if self._values else [],
            modules=[*recorder.modules.parts.values()], tensors=seen.tensors, ops=recorder.ops,
            nodes=seen.nodes, runs=self._film.runs, programs=parts["programs"],
            compiled=parts["compiled"],
        )  # fmt: skip


def in_notebook() -> bool:
    """Return whether code runs in a notebook, which shows pages inline."""
    shell = sys.modules.get("IPython")
    notebook = None if shell is None else shell.get_ipython()
    return hasattr(notebook, "kernel") or _in_marimo()


def _in_marimo() -> bool:
    marimo = sys.modules.get("marimo")
    return marimo is not None and bool(marimo.running_in_notebook())


def _display(exploration: Exploration) -> None:
    if _in_marimo():
        sys.modules["marimo"].output.append(exploration)
    else:
        import_module("IPython.display").display(exploration)


def opens_browser() -> bool:
    """Return whether a page is opened: a person is at a terminal, with a browser on a screen.

    Never under a test runner, on a build machine, or with standard output that is no terminal.
    """
    if any(name in os.environ for name in ("CI", "PYTEST_CURRENT_TEST", "PYTEST_VERSION")):
        return False
    if not (sys.stdout is not None and sys.stdout.isatty()):
        return False
    if sys.platform not in ("darwin", "win32"):
        if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True
