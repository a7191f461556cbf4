"""The end of the other ranks when one fails: they end, too, and say because of whom.

An exception that nobody catches is printed with its rank and ends the world by `MPI_Abort`. A rank
that ends while others wait for it tells them. One that is killed can say nothing, and its launcher
kills the others at once: on each machine a small process watches the ranks and names it.
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
import traceback
from typing import Any

import numpy as np

from oneflow_lite.distributed.work import share_cores

# Waits for the end of some processes, and names the first that did not announce its own; on a busy
# machine the launcher may have killed others before it looks, and then it names all. Run with the
# name of a socket for such words, the size of the world, and "rank:pid" for each process.
_WATCHER = """
import os, select, socket, sys
name, size, *ranks = sys.argv[1:]
words = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
words.bind("\\0" + name)
words.setblocking(False)
alive, poll, announced = {}, select.poll(), set()
def died(*killed):
    for rank, pid in killed:
        print(f"[rank {rank} of {size}] process {pid} was killed: all ranks end", file=sys.stderr)
    sys.exit()
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
_hook: Any = None
_registered = False
_words = ""  # the name of the watcher's socket
_worlds = itertools.count(1)


def watch(world: Any) -> None:
    """Let a rank that fails, from now on, end all processes of the world."""
    global _world, _hook, _registered
    _world = world
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
    """Let the first rank on each machine start a process that watches those there."""
    global _words
    _words = f"oneflow_lite-{near[0][1]}-{next(_worlds)}"
    if near[0][0] == world.rank():
        listed = [f"{rank}:{pid}" for rank, pid in near]
        command = [sys.executable, "-I", "-S", "-c", _WATCHER, _words, str(world.size()), *listed]
        with contextlib.suppress(OSError):  # then a killed rank has no name
            watcher = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                start_new_session=True,  # the launcher kills the ranks' groups
            )
            assert watcher.stdout is not None
            with watcher.stdout:
                watcher.stdout.read(1)
            watcher.returncode = 0  # it outlives this process: nobody waits for it
    world._comm.Barrier()


def ended_ranks() -> dict[int, str]:
    """Return the ranks of the world that have ended while others may wait for them, and how."""
    if _world is None:
        return {}
    found: dict[int, str] = _world.transport(np).heard_of()
    return found


def _announce(word: str) -> None:
    """Tell the watcher that this rank ends by itself, or that it ends all."""
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
    _world._comm.Abort(1)


def _ended_by(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Print the exception with the rank, and end the others."""
    assert _world is not None
    here = f"rank {_world.rank()} of {_world.size()}"
    text = "".join(traceback.format_exception(kind, error, trace))
    said = "".join(f"[{here}] {line}\n" for line in text.splitlines())
    abort(f"{said}[{here}] raised {kind.__name__}: all ranks end")


def _at_exit() -> None:
    """Tell the others, who may be waiting for this rank, that it takes part in nothing any more."""
    if _world is not None:
        _announce(str(_world.rank()))
        transport: Any = _world.transport(np)
        transport.say_ended("has ended, without destroy_process_group()")
