"""A process of its own that compiles, so that the calls of this one go on meanwhile.

Numba is Python: in a thread of this process it would keep Python busy, and the garbage collector
with it, for a second at a time. The process is started when there is something to compile. It ends
when nothing came for a while, and with this process. Where none can be started, as in a program
without an interpreter to call, a thread compiles.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any

from oneflow_lite.arrays.locks import make_lock
from oneflow_lite.static.fusion.building import stop, undisturbed

PATIENCE = 20.0  # seconds that the process waits for more to do
_CODE = "import sys; sys.path[:] = {path}; from {room} import builder_process, machine; {serve}"
_SERVE = "builder_process.serve(machine.content)"
_lock = make_lock()
_process: subprocess.Popen[bytes] | None = None
enabled = True  # until no process could be started


def built_apart(*asked: Any) -> bytes | None:
    """Have the other process call `machine.content`; None where there can be no such process.

    Raises
    ------
    RuntimeError
        With the text of what Numba raised, or when this process or the other one ends.
    """
    with _lock:
        for _ in range(2):
            if _process is None and not _start():
                return None
            try:
                answer = _answer(asked)
            except (OSError, EOFError, pickle.UnpicklingError):
                _end()  # it has ended: it had waited for long, or somebody ended it
                continue
            if isinstance(answer, bytes):
                return answer
            raise RuntimeError(answer)
    raise RuntimeError("the process that compiles has ended")


def _start() -> bool:
    global _process, enabled
    name = Path(sys.executable or "").name.lower()
    if not enabled or not name.startswith(("python", "pypy")) or getattr(sys, "frozen", False):
        return False
    path = [str(each) for each in sys.path]
    code = _CODE.format(path=path, room=__name__.rpartition(".")[0], serve=_SERVE)
    try:
        with undisturbed():
            _process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # an interrupt at the keyboard is not for it
            )
            atexit.unregister(_at_exit)
            atexit.register(_at_exit)
        _answer(None)  # that all is imported there
    except (OSError, EOFError, pickle.UnpicklingError):
        enabled = False
        _end()
        return False
    return True


def _answer(asked: Any) -> Any:
    assert _process is not None and _process.stdin is not None and _process.stdout is not None
    pickle.dump(asked, _process.stdin)
    _process.stdin.flush()
    return pickle.load(_process.stdout)


def _end() -> None:
    global _process
    process, _process = _process, None
    if process is not None:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def _at_exit() -> None:
    """End the process without the lock: the thread that waits for an answer has it."""
    stop()
    _end()


_parents: list[Any] = []  # processes


def _in_child() -> None:
    """Leave the process to the parent. Its pipes stay open, for a thread may have held them."""
    global _process
    if _process is not None:
        _process.returncode = 0  # or it would be waited for
        _parents.append(_process)
        _process = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def serve(content: Callable[..., bytes]) -> None:
    """Compile whatever is asked for, in the other process."""
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # prints are no answers
        while True:
            timer = Timer(PATIENCE, os._exit, (0,))
            timer.daemon = True
            timer.start()
            try:
                asked = pickle.load(sys.stdin.buffer)
            except EOFError:
                return
            timer.cancel()
            try:
                answer: Any = asked and content(*asked)
            except Exception as error:
                answer = repr(error)
            pickle.dump(answer, answers)
            answers.flush()
