"""The end of the world when a rank fails: all ranks end, and a message names the rank that failed.

An uncaught exception is printed with its rank and ends the world by `MPI_Abort`. A rank whose
script ends early announces it, and the ranks that wait for it raise. A killed rank can announce
nothing, and the launcher kills all other ranks at once: on each machine a small process watches the
ranks and names the killed rank.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import platform
import socket
import subprocess
import sys
import time
import traceback
from typing import Any

from oneflow_lite.distributed.work import share_cores

# The watcher waits for the end of processes and names the first whose end was not announced. On a
# busy machine the launcher may have killed more ranks before the watcher looks; it names them all.
# Its arguments are the name of a socket for announcements, the size of the world, and "rank:pid"
# for each process.
_WATCHER = """
import os, select, socket, sys
name, size, *ranks = sys.argv[1:]
words = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
words.bind("\\0" + name)
words.setblocking(False)
alive, poll, announced = {}, select.poll(), set()
def died(*killed):
    for rank, pid in killed:
        how = ending(pid)
        print(f"[rank {rank} of {size}] process {pid} {how}: all ranks end", file=sys.stderr)
    sys.exit()
def ending(pid):
    try:  # until its parent asks for it, the status stands there
        with open(f"/proc/{pid}/stat") as file:
            status = os.waitstatus_to_exitcode(int(file.read().rpartition(")")[2].split()[49]))
    except (OSError, ValueError, IndexError):
        return "was killed, or called os._exit()"
    return f"was killed by signal {-status}" if status < 0 else f"called os._exit({status})"
for each in ranks:
    rank, pid = each.split(":")
    try:
        file = os.pidfd_open(int(pid))
    except ProcessLookupError:
        died((rank, pid))
    alive[file] = rank, pid
    poll.register(file, select.POLLIN)
print(flush=True)  # the world begins
os.close(1)
while alive:
    ended = [file for file, _ in poll.poll()]
    try:
        while True:
            announced.add(words.recv(100).decode())
    except BlockingIOError:
        pass
    if "abort" in announced:
        sys.exit()
    for file in ended:
        poll.unregister(file)
    killed = [each for each in map(alive.pop, ended) if each[0] not in announced]
    if killed:
        died(*killed)
"""
_world: Any = None
_groups: list[Any] = []
_hook: Any = None
_registered = False
_words = ""  # the name of the watcher's socket
_worlds = itertools.count(1)


def watch(world: Any, groups: list[Any]) -> None:
    """From now on, end all processes of the world, whose living groups these are, with one rank."""
    global _world, _groups, _hook, _registered
    _world, _groups = world, groups
    _hook, sys.excepthook = sys.excepthook, _ended_by
    if not _registered:  # after mpi4py's own, hence run before it
        atexit.register(_at_exit)
        _registered = True
    here = platform.node()
    everyone = world._comm.allgather((here, os.getpid()))
    near = [(rank, pid) for rank, (node, pid) in enumerate(everyone) if node == here]
    share_cores(len(near))
    if hasattr(os, "pidfd_open"):
        _start_watcher(world, near)


def _start_watcher(world: Any, near: list[tuple[int, int]]) -> None:
    """Start a process that watches the ranks of this machine; the first rank here starts it."""
    global _words
    _words = f"oneflow_lite-{near[0][1]}-{next(_worlds)}"
    if near[0][0] == world.rank():
        listed = [f"{rank}:{pid}" for rank, pid in near]
        command = [sys.executable, "-I", "-S", "-c", _WATCHER, _words, str(world.size()), *listed]
        with contextlib.suppress(OSError):  # then no message names a killed rank
            watcher = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                start_new_session=True,  # the launcher kills the ranks' groups
            )
            assert watcher.stdout is not None
            with watcher.stdout:
                watcher.stdout.read(1)  # returns once the watcher watches
            watcher.returncode = 0  # it outlives this process: nobody waits for it
    world._comm.Barrier()  # no rank goes on, and could end, before it is watched


def _announce(word: str) -> None:
    """Tell the watcher that this rank ends by itself (`word` is its number), or "abort"."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as words:
        words.sendto(word.encode(), "\0" + _words)


def forget() -> None:
    """Stop watching: the world is left in order."""
    global _world
    if _world is not None:
        _announce(str(_world.rank()))
        _world = None
        if sys.excepthook is _ended_by:
            sys.excepthook = _hook


def abort(reason: str) -> None:
    """End all processes of the world."""
    print(reason, file=sys.stderr, flush=True)
    sys.stdout.flush()
    if _world is None:
        os._exit(1)
    _announce("abort")
    time.sleep(0.2)  # the launcher ends at once, and may drop text that it has not passed on yet
    _world._comm.Abort(1)


def _ended_by(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Print the exception with the rank, and end the world."""
    assert _world is not None
    here = f"rank {_world.rank()} of {_world.size()}"
    text = "".join(traceback.format_exception(kind, error, trace))
    said = "".join(f"[{here}] {line}\n" for line in text.splitlines())
    abort(f"{said}[{here}] raised {kind.__name__}: all ranks end")


def _at_exit() -> None:
    """Tell all ranks that this rank makes no more calls, so that a rank waiting for it raises."""
    if _world is not None:
        _announce(str(_world.rank()))
        for group in _groups:
            group.say_ended("has ended, without destroy_process_group()")
