"""Walk the calls with hostile values, in child processes that may crash, hang or run out of memory.

python -m tests.hostile.walk            # the whole walk: what is raw, by callable
python -m tests.hostile.walk --only fft # of callables whose names have this word
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import mmap
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from oneflow_lite.errors import FlowError
from tests.hostile.calls import ROUNDS, SCOPE, Call, reset
from tests.hostile.values import SCOPE as OF_VALUES, VALUES

MEMORY = 2 << 30  # bytes that a call may ask for beyond those of the process
SECONDS = 10.0  # of a call, on a machine that has other work, too
SHARED = 400  # bytes of the memory in which a child says where it is
CHUNK = 100


@attrs.frozen
class Finding:
    """A call that ended in another way than with a result or an error of ours."""

    name: str
    place: int | str
    value: str
    kind: str  # the exception, "warning", "crash" or "hang"
    says: str
    where: str

    def __str__(self) -> str:
        call = f"{self.name}({self.place}={self.value})"
        return f"{call}: {self.kind}: {self.says} [{self.where}]"


def cases(calls: Sequence[Call], every: int = 1) -> Iterator[tuple[Call, Any, str]]:
    """Yield each call with each argument and value; or one of so many, always the same ones."""
    for call in calls:
        scope = {**SCOPE}
        reset()
        exec(compile(call.setup, "<setup>", "exec"), scope)
        for place in call.places(eval(call.function, scope)):
            for number, value in enumerate(VALUES):
                if "2**" in value and (call.name, place) in ROUNDS:
                    continue
                if (zlib.crc32(f"{call.name} {place}".encode()) + number) % every == 0:
                    yield call, place, value


# --- In the child ---------------------------------------------------------------------------------


def child(calls: Sequence[Call], start: int, every: int, progress: mmap.mmap) -> None:
    """Run the cases from one on, and print the findings."""
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    scope: dict[str, Any] = {}
    now = None
    out = os.fdopen(os.dup(1), "w", buffering=1)
    devnull = os.open(os.devnull, os.O_RDWR)
    os.dup2(devnull, 0)
    os.dup2(devnull, 1)
    for number, (call, place, value) in enumerate(cases(calls, every)):
        if number < start:
            continue
        text = json.dumps([number, call.name, place, value]).encode()
        progress[:SHARED] = text.ljust(SHARED)
        if now != (call.name, place):
            now = (call.name, place)
            scope = {**OF_VALUES, **SCOPE}
            exec(compile(call.setup, "<setup>", "exec"), scope)
        found = attempt(call, place, value, scope)
        if found is not None:
            print(json.dumps(attrs.astuple(found)), file=out)
        reset()


_TEXTS = ("<string>", "<setup>", "<example>")


def attempt(call: Call, place: Any, value: str, scope: dict[str, Any]) -> Finding | None:
    """Run one case; return what it did other than to return, or to raise an error of ours."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            exec(call.spelled(place, VALUES[value]), scope)
        except FlowError:
            return None
        except BaseException as error:
            frames = traceback.extract_tb(error.__traceback__)[2:]
            inner = [f for f in frames if not f.filename.endswith("arrays/refusals.py")]
            if isinstance(error, TypeError) and not inner:  # of Python's call itself
                return None
            if any(f.filename in _TEXTS for f in frames):  # of a function of the example
                return None
            where = _where(frames)
            says = str(error).partition("\n")[0][:120]
            return Finding(call.name, place, value, type(error).__name__, says, where)
    for each in warned:
        told = str(each.message)
        if each.filename in _TEXTS or " encountered in " in told or "Casting complex" in told:
            continue  # of ours, of NumPy by contract (docs/numpy.md), or PyTorch's, too
        if issubclass(each.category, (RuntimeWarning, DeprecationWarning)):
            where = f"{each.filename.rpartition('/oneflow_lite/')[2]}:{each.lineno}"
            says = f"{each.category.__name__}: {each.message}"
            return Finding(call.name, place, value, "warning", says[:120], where)
    return None


def _where(frames: Sequence[traceback.FrameSummary]) -> str:
    """Return the innermost line of the library, and that of another one where it is further in."""
    short = [f"{_file(f.filename)}:{f.lineno} {f.name}" for f in frames]
    ours = [text for text, f in zip(short, frames, strict=True) if "oneflow_lite/" in f.filename]
    return " < ".join(dict.fromkeys(short[-1:] + ours[-1:] + ours[-2:-1]))


def _file(path: str) -> str:
    return path.rpartition("/oneflow_lite/")[2].rpartition("site-packages/")[2]


# --- In the parent --------------------------------------------------------------------------------


def walk(calls: Sequence[Call], every: int = 1) -> list[Finding]:
    """Walk in child processes, each after the crash or hang of the one before."""
    found: list[Finding] = []
    start = 0
    with tempfile.TemporaryFile() as file:
        file.write(bytes(SHARED))
        file.flush()
        progress = mmap.mmap(file.fileno(), SHARED)
        listed = json.dumps([attrs.astuple(call) for call in calls])
        while True:
            ended, lines, said = _run(listed, start, every, file.fileno(), progress)
            found += [Finding(*json.loads(line)) for line in lines]
            if not ended:
                return found
            if not progress[:SHARED].strip(b"\0"):
                raise RuntimeError(f"a child came to no call: {said}")
            last, name, place, value = json.loads(progress[:SHARED])
            found.append(Finding(name, place, value, ended, said[-500:], ""))
            start = last + 1


def _run(
    listed: str, start: int, every: int, shared: int, progress: mmap.mmap
) -> tuple[str, list[str], str]:
    with (
        tempfile.TemporaryFile("w+") as given,
        tempfile.TemporaryFile("w+") as lines,
        tempfile.TemporaryFile("w+") as said,
    ):
        given.write(listed)
        given.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.walk", "--child", f"{start},{every},{shared}"],
            stdin=given,
            stdout=lines,
            stderr=said,
            pass_fds=[shared],
        )
        progress[:SHARED] = bytes(SHARED)
        seen, since = b"", time.monotonic()
        ended = ""
        while process.poll() is None:
            time.sleep(0.05)
            if progress[:SHARED] != seen:
                seen, since = progress[:SHARED], time.monotonic()
            elif time.monotonic() - since > SECONDS + 60 * (not seen.strip(b"\0")):
                process.send_signal(signal.SIGUSR1)
                time.sleep(0.2)
                process.kill()
                ended = "hang"
        if process.returncode and not ended:
            ended = "crash"
        for each in (lines, said):
            each.seek(0)
        return ended, lines.read().splitlines(), said.read()


def main() -> None:
    """Run the walk, or be its child."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="callables whose names have this word")
    parser.add_argument("--every", type=int, default=1, help="one case of so many")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        start, every, shared = map(int, options.child.split(","))
        calls = [Call(*each) for each in json.load(sys.stdin)]
        with tempfile.TemporaryDirectory() as folder:  # for what hostile names may write
            os.chdir(folder)
            child(calls, start, every, mmap.mmap(shared, SHARED))
        return
    from tests.hostile.calls import calls as good

    chosen = [call for call in good() if options.only in call.name]
    started = time.monotonic()
    found = []
    for i in range(0, len(chosen), CHUNK):
        part = walk(chosen[i : i + CHUNK], options.every)
        found += part
        print(*part, sep="\n", flush=True)
        print(f"--- {i} {time.monotonic() - started:.0f}", flush=True)
    counts = Counter(each.kind for each in found)
    print(f"{len(chosen)} callables, {len(found)} findings, {time.monotonic() - started:.0f} s:")
    print(", ".join(f"{kind} {count}" for kind, count in counts.most_common()))


if __name__ == "__main__":
    main()
