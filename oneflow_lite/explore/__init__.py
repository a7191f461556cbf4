"""The engine in a browser: a recording of the ops and backward calls that ran, and its page.

`forward.py` records ops and `backward.py` backward calls. `document.py` describes the document of
the recording, and `html.py` puts it into one file with the page that draws it.
It imports `compiler`, `static` with all its rooms, and the rooms below. Nobody uses it but users.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from oneflow_lite.autograd.engine.rule_namespace import FUNCTORS_F
from oneflow_lite.autograd.graph import GradientEdge
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, GradientError, arg_error
from oneflow_lite.explore.backward import rehearse
from oneflow_lite.explore.exploration import Exploration
from oneflow_lite.explore.places import variables
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.tensor import Tensor

__all__ = ["Exploration", "explore"]


def explore(
    loss_or_tensors: Any = None,
    *args: Any,
    feed: Mapping[str, Any] | Iterable[str] | None = None,
    fetch_list: Sequence[Any] | None = None,
    scope: Any = None,
    executor: Any = None,
    cuda: bool = False,
    path: str | os.PathLike[str] | None = None,
    values: bool = True,
    open: bool | None = None,
    title: str | None = None,
    limit: int = 20_000,
) -> Exploration:
    """Show the work of the engine in a page for the browser, a single file that needs no network.

    With tensors: the page shows their graph and a rehearsal of their backward call, step by step.
    The rehearsal changes no `.grad`, no version and no random number, and the graph can be used as
    before. Your hooks on gradients and your backward functions are called as by
    `autograd.grad(..., retain_graph=True)`; hooks that wait until `.grad` was written do not run. A
    tensor of several elements gets a gradient of ones.

    With a Program: its analysis for the given feeds and fetches, and the times of a run on copies
    of the fed arrays and of the scope's variables. With a compiled function: its recordings, and
    the calls that each serves. Given arguments, the function is called with these once, and the
    page shows the outcome of the call.

    Without an object: a context manager, which records its block: each op with the line that called
    it, each backward call, each Program and compiled function. The page is written when the block
    ends; an exception that ends the block is shown on the page and passed on. Results have the same
    bits as without the block. The block records this thread, and the threads that work for its
    backward calls. Blocks nest.

    Parameters
    ----------
    loss_or_tensors : Tensor, sequence of Tensor, Program or compiled function, optional
        Tensors require a gradient.
    *args
        For the call of a compiled function.
    feed, fetch_list, scope
        Of a Program, as for `static.Executor.run`. With names to feed, and no arrays, nothing runs.
    executor : static.Executor, optional
        Whose analysis of a Program is shown; by default the analysis of a new executor.
    cuda : bool
        Whether the groups of ops of a Program are also written as CUDA kernels.
    path : str or path, optional
        Where the page is written. Without it a notebook shows the page inline; elsewhere it is a
        temporary file, `.path` of the result.
    values : bool
        Whether the page embeds values of tensors and the text of your sources. Without, it has
        names, shapes and line numbers.
    open : bool, optional
        Whether to open the page in a browser. None opens it for a person at a terminal with a
        screen and a browser, and never in a test or a build. False also keeps a notebook from
        showing the page of a block.
    title : str, optional
    limit : int
        How many ops are recorded; later ones only run. An op and its node take about 2 KB.

    Returns
    -------
    Exploration
        Has `document`, `path`, `write(path)` and `frame(at)`.

    Raises
    ------
    ArgumentError
        For a limit below 1.
    ArgumentTypeError
        For an object of another type.
    GradientError
        For a tensor that does not require a gradient.

    Examples
    --------
    >>> import tempfile
    >>> import oneflow_lite as flow
    >>> folder = tempfile.TemporaryDirectory()
    >>> with flow.explore(path=f"{folder.name}/page.html") as e:
    ...     x = flow.tensor([1.0, 2.0], requires_grad=True)
    ...     (x * x).sum().backward()
    >>> [op["op"] for op in e.document["ops"] if op["run"] is None]
    ['mul', 'sum', 'ones_like']
    >>> [e.document["nodes"][step["node"]]["name"] for step in e.document["runs"][0]["steps"]]
    ['sum_backward', 'mul_backward', 'accumulate_grad']
    >>> folder.cleanup()
    """
    if type(limit) is not int or limit < 1:
        raise arg_error(
            "explore",
            "limit",
            expected="an int of at least 1",
            got=repr(limit),
            hint="leave it out",
            kind=ArgumentError,
        )
    # The caller's variables give tensors their names on the page.
    frame = sys._getframe(1)
    if frame.f_code is _CallableModule.__call__.__code__ and frame.f_back is not None:
        frame = frame.f_back
    of_program = {"feed": feed, "fetch_list": fetch_list, "scope": scope, "executor": executor}
    if not isinstance(loss_or_tensors, (Tensor, GradientEdge, list, tuple, type(None))):
        above = import_module("oneflow_lite.explore.subjects")  # loaded late: it stands on Programs
        subject = above.subject_of(loss_or_tensors, args, {**of_program, "cuda": cuda}, values)
        if subject is not None:
            exploration = Exploration(path, values, open, title or subject.title, limit)
            exploration.begin()
            try:
                subject.show(exploration.watches)
            except BaseException as error:
                exploration.end(error, frame.f_locals)
                raise
            exploration.end(None, frame.f_locals)
            return exploration
    for name, option in {"args": args or None, **of_program}.items():
        if option is not None:
            hint = "pass a Program or a compiled function first"
            raise arg_error("explore", name, "nothing here", option, hint, ArgumentError)
    if loss_or_tensors is None:
        return Exploration(path, values, open, title or "Exploration", limit)
    roots = _roots(loss_or_tensors)
    exploration = Exploration(path, values, open, title or "Backward", limit)
    grads = [FUNCTORS_F.ones_like(root.detach()) for root in roots]
    failed: BaseException | None = None
    exploration.begin()
    try:
        for root in roots:
            exploration.show(root)
        rehearse([root._edge for root in roots], grads)  # type: ignore[misc]
    except Exception as error:  # a rule or a hook may raise: the page shows the error
        failed = error
        warn_caller(f"explore(): backward() raises {type(error).__name__} here: {error}")
    finally:
        exploration.end(failed, variables(frame))
    return exploration


def _roots(given: Any) -> list[Tensor]:
    """Check the tensors, and bring the histories of views up to date."""
    roots = list(given) if isinstance(given, (list, tuple)) and given else [given]
    roots = [each.stand_in() if isinstance(each, GradientEdge) else each for each in roots]
    for i, root in enumerate(roots):
        wrong = not isinstance(root, Tensor)
        if wrong or root.grad_fn_node is None:
            raise arg_error(
                "explore",
                "loss_or_tensors" if root is given else f"loss_or_tensors[{i}]",
                expected="a Tensor that requires a gradient",
                got=type(root).__name__ if wrong else f"one of shape {root.shape} that does not",
                hint="use `with flow.explore():` around code, or requires_grad_() before computing",
                kind=ArgumentTypeError if wrong else GradientError,
            )
    return roots


class _CallableModule(types.ModuleType):
    """This module, which can be called: `flow.explore` is the module once that is imported."""

    def __call__(self, *args: Any, **kwargs: Any) -> Exploration:
        return explore(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
