"""Anomaly mode and debug mode, which find a wrong gradient while it is computed."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Sequence
from types import CodeType
from typing import Any

import numpy as np

from oneflow_lite import errors
from oneflow_lite.arrays.refusals import guarded
from oneflow_lite.autograd.rules.zero import ZERO
from oneflow_lite.errors import AnomalyError
from oneflow_lite.tensors.mode import StateChange, local
from oneflow_lite.tensors.node import FunctionNode, GraphRoot

_PACKAGE = os.path.dirname(os.path.abspath(errors.__file__)) + os.sep


class ForwardTraceback:
    """The place where an op was called, as code and positions; its text is made when it is read.

    Every op of a block makes one, and hardly any is read.
    """

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        calls: list[Any] = []  # code, position, code, position, from the inside out
        add = calls.append
        frame: Any = sys._getframe(1)
        while frame is not None:
            add(frame.f_code)
            add(frame.f_lasti)
            frame = frame.f_back
        self._calls = calls

    def __str__(self) -> str:
        stack = [
            (code.co_filename, _line(code, position), code.co_name, None)
            for code, position in zip(self._calls[::2], self._calls[1::2], strict=True)
            if not code.co_filename.startswith(_PACKAGE)  # the user's code only
        ]
        return "".join(traceback.StackSummary.from_list(stack[::-1]).format())


def _line(code: CodeType, position: int) -> int:
    for start, end, line in code.co_lines():
        if start <= position < end and line is not None:
            return line
    return code.co_firstlineno


class AnomalyMode:
    """Anomaly mode, as the thread's state holds it while it is on."""

    def __init__(self, check_nan: bool) -> None:
        self.check_nan = check_nan

    def remember(self, node: FunctionNode) -> None:
        """Note on a new node where its op was called, and the node whose gradient called it."""
        node._metadata = {"traceback_": ForwardTraceback()}
        if local.task is not None:
            parent = local.task.evaluating.get(threading.get_ident())
            if parent is not None:
                node._metadata["parent_"] = parent

    def check(self, node: FunctionNode, in_grads: Sequence[Any]) -> None:
        """Raise `AnomalyError` when a gradient that a node returned has a NaN."""
        if not self.check_nan:
            return
        for i, grad in enumerate(in_grads):
            if grad is None or grad is ZERO or node.edges[i][0] is None:
                continue
            if _has_nan(getattr(grad, "_data", grad)):
                raise AnomalyError(
                    f"{node.name()} returned NaN in the gradient of input {i} (shape "
                    f"{tuple(grad.shape)})\n{forward_traceback(node)}"
                )


def forward_traceback(node: FunctionNode) -> str:
    """Say where the forward op of a node was called; in a backward pass, for which node."""
    text = ""
    what = f"{node.name()}: the forward op was called here"
    while True:
        where = node.metadata.get("traceback_")
        if isinstance(node, GraphRoot):
            return f"{node.name()}: it holds the gradients that the caller gave"
        if where is None:
            return f"{text}{what}: unknown, it was recorded with anomaly mode off"
        text += f"{what} (most recent call last):\n{where}"
        if "parent_" not in node.metadata:
            return text.rstrip()
        node = node.metadata["parent_"]
        what = f"it ran in the backward pass of {node.name()}, whose forward op was called here"


def _has_nan(array: Any) -> bool:
    if isinstance(array, np.ndarray) and array.dtype.char in "fd":
        flat = array.ravel()
        # NaN exactly when an element is NaN, as infinities square to infinity; isnan().any() takes
        # 5 times as long.
        square: Any = flat.dot(flat)
        return bool(square != square)
    return bool((array != array).any())


class detect_anomaly(StateChange):
    """Find the op whose gradient has a NaN: a context manager.

    Ops recorded in the block remember where they were called. A backward pass in the block checks
    every gradient; the first NaN raises `AnomalyError` with the place where the forward op was
    called. Other exceptions of the pass get that place as a note. For this thread only.

    Parameters
    ----------
    check_nan : bool
        Whether gradients are checked.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor(0.0, requires_grad=True)
    >>> with flow.autograd.detect_anomaly():
    ...     y = flow.sqrt(x) * 0
    ...     y.backward()
    Traceback (most recent call last):
        ...
    oneflow_lite.errors.AnomalyError: sqrt_backward returned NaN in the gradient of input 0 ...
    """

    @guarded
    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(anomaly=AnomalyMode(bool(check_nan)))


class set_detect_anomaly(StateChange):
    """Switch anomaly mode on or off: takes effect at once, and until the end of a `with` block.

    Parameters
    ----------
    mode : bool
        On or off.
    check_nan : bool
        Whether gradients are checked.
    """

    @guarded
    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(anomaly=AnomalyMode(bool(check_nan)) if mode else None)
        super().__enter__()  # a plain call takes effect, too

    def __enter__(self) -> set_detect_anomaly:
        return self


def is_anomaly_enabled() -> bool:
    """Return whether anomaly mode is on in this thread."""
    return local.state.anomaly is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether anomaly mode, when it is on in this thread, checks gradients for NaN."""
    return local.state.anomaly is None or bool(local.state.anomaly.check_nan)


class set_debug_mode(StateChange):
    """Find writes that no version counter sees: takes effect at once, and until the end of a block.

    An array that came from `tensor.numpy()` can be written without the tensor's version counter
    moving. In debug mode every node keeps a checksum of the arrays that it saves, and a backward
    pass raises `StaleTensorError` where one changed. For this thread only; it reads every saved
    array twice.

    Parameters
    ----------
    mode : bool
        On or off.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> x = flow.tensor([1.0, 2.0], requires_grad=True)
    >>> with flow.autograd.set_debug_mode(True):
    ...     y = x.sin().sum()
    ...     x.numpy()[0] = 5.0
    ...     y.backward()
    Traceback (most recent call last):
        ...
    oneflow_lite.errors.StaleTensorError: sin_backward: the saved tensor 'x' of shape (2,) ...
    """

    @guarded
    def __init__(self, mode: bool) -> None:
        super().__init__(debug=bool(mode))
        super().__enter__()

    def __enter__(self) -> set_debug_mode:
        return self
