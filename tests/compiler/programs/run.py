"""Runs the programs eagerly and compiled, from the same seeds, and compares all that is seen.

python -m tests.compiler.programs.run             # how many calls each program replays
python -m tests.compiler.programs.run vae gan     # only these
python -m tests.compiler.programs.run --write     # the table of docs/compile_programs.md
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import itertools
import random
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import oneflow_lite as flow
from tests.compiler.programs.kit import PROGRAMS, Compiler, Program
from tests.compiler.programs.seeing import Snapshot, difference
from tests.compiler.reasons import check_reason

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[2] / "docs" / "compile_programs.md"
BEGIN, END = "<!-- programs: begin -->\n", "<!-- programs: end -->\n"
RAISED = "raised"
SHARE = 0.9  # of the calls after the warm-up that a program should replay

for _path in sorted(HERE.glob("train_*.py")):
    import_module(f"tests.compiler.programs.{_path.stem}")


@contextlib.contextmanager
def installed_package() -> Iterator[None]:
    """Put the package `minivision` into a folder site-packages, from which it can be imported."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "lib" / "site-packages"
        shutil.copytree(HERE / "site_packages", target)
        sys.path.insert(0, str(target))
        try:
            yield
        finally:
            sys.path.remove(str(target))
            for name in [n for n in sys.modules if n.partition(".")[0] == "minivision"]:
                del sys.modules[name]


class Plain:
    """Stands in for `flow.compile`, changes nothing, and counts calls."""

    def __init__(self) -> None:
        self._calls: list[list[int]] = []

    def __call__(self, function: Any) -> Any:
        self._calls.append(calls := [0])

        def count(*args: Any) -> None:
            calls[0] += 1

        if isinstance(function, flow.nn.Module):
            function.register_forward_pre_hook(count)
            return function

        @functools.wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            count()
            return function(*args, **kwargs)

        return counted

    def said(self) -> list[int]:
        """Return how often each function was called so far."""
        return [calls[0] for calls in self._calls]


class Compiled:
    """Compiles, and says how the calls went."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self._functions: list[Any] = []

    def __call__(self, function: Any) -> Any:
        made = self._compiler(function)
        self._functions.append(made)
        return made

    def said(self) -> list[Any]:
        """Return the explanations so far, one for each function."""
        return [f.explain() for f in self._functions]


def trace(
    program: Program, compiler: Plain | Compiled, most: int | None = None
) -> tuple[list[Any], list[Any]]:
    """Run some steps of a program, by default all.

    Returns what was seen after each step, and what the compiler said then.
    """
    flow.manual_seed(7)
    random.seed(7)
    np.random.seed(7)
    seen: list[Any] = []
    said: list[Any] = []
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        steps = itertools.islice(program.run(compiler), most)
        while True:
            try:
                state = next(steps)
            except StopIteration:
                return seen, said
            except Exception as error:
                seen.append([RAISED, f"{type(error).__name__}: {error}"])
                return seen, said
            warned = [str(w.message) for w in caught if w.category is UserWarning]
            warned = [text for text in warned if not text.startswith("flow.compile")]
            draws = [flow.get_rng_state(), repr(random.getstate()), np.random.get_state()]
            outputs = [printed.getvalue(), *warned]
            seen.append([Snapshot().of(part) for part in (state, draws, outputs)])
            said.append(compiler.said())


@attrs.frozen
class Report:
    """A report on the run of a compiled program.

    Attributes
    ----------
    calls, hits, captures, fallbacks : int
        After the warm-up of each compiled function.
    reasons : tuple of str
        Why calls were not replayed.
    anew : str
        Why the last call that was recorded anew was.
    difference : str or None
        Where it first differs from the eager program.
    """

    calls: int
    hits: int
    captures: int
    fallbacks: int
    reasons: tuple[str, ...]
    anew: str
    difference: str | None

    @property
    def replays(self) -> bool:
        """Whether it replays as many calls as it should."""
        return self.hits >= SHARE * self.calls

    @property
    def why(self) -> str:
        """The reason why not all calls were replayed."""
        times = "once" if self.captures == 1 else f"{self.captures} times"
        recorded = [f"recorded anew {times}: {self.anew}"] if self.captures else []
        if not (recorded or self.reasons or self.replays):
            recorded = [self.anew]
        return "; ".join([*recorded, *self.reasons])

    def row(self, program: Program) -> str:
        """Return its line of the table."""
        about, why = (re.sub(r"([_*|<])", r"\\\1", text) for text in (program.about, self.why))
        return f"| `{program.name}` | {about} | {self.hits} of {self.calls} | {why} |\n"


def first_difference(have: list[Any], want: list[Any]) -> str | None:
    """Return where two runs of a program differ first; None where they do not."""
    for i, pair in enumerate(zip(have, want, strict=False)):
        if (found := difference(*pair)) is not None:
            return f"step {i}, {found}"
    return None if len(have) == len(want) else f"{len(have)} steps instead of {len(want)}"


def compare(program: Program, compiler: Compiler = flow.compile) -> Report:
    """Run a program eagerly and compiled."""
    want, called = trace(program, Plain())
    if want[-1][0] == RAISED:
        raise RuntimeError(f"the program {program.name} fails eagerly: {want[-1][1]}")
    have, said = trace(program, Compiled(compiler))
    counts = [0, 0, 0, 0]
    for k, calls in enumerate(called[-1]):
        counts[0] += calls
        warm = next(i for i, n in enumerate(called) if k < len(n) and n[k] >= program.warm_up)
        if warm >= len(said):  # an error ended it before
            continue
        counts[0] -= called[warm][k]
        before, after = said[warm][k], said[-1][k]
        for place, name in enumerate(("hits", "captures", "fallbacks"), 1):
            counts[place] += getattr(after, name) - getattr(before, name)
    for e in itertools.chain.from_iterable(said):
        for reason in filter(None, (*e.reasons, e.why)):
            check_reason(reason, re.findall(r"[a-zA-Z_]{2,}", reason))
    reasons = (short(reason) for each in said[-1:] for e in each for reason in e.reasons)
    anew = next((short(e.why) for e in said[-1] if e.why), "")
    return Report(*counts, tuple(dict.fromkeys(reasons)), anew, first_difference(have, want))


def short(reason: str) -> str:
    """Return a reason without files, lines and advice."""
    reason = re.sub(r"_hooks\[\d+\]", "_hooks[...]", reason.partition(";")[0])
    reason = re.sub(r" in line \d+ of \S+", "", reason)
    reason = re.sub(r",? at \S+:\d+ in (\S+)", r" in \1", reason)
    return re.sub(r" \(\S+:\d+\)", "", reason)


def table(reports: dict[str, Report]) -> str:
    """Return the table of docs/compile_programs.md."""
    enough = sum(report.replays for report in reports.values())
    return (
        f"{enough} of {len(reports)} programs replay nine of ten calls or more.\n\n"
        "| program | what it is | replayed | why not all |\n| --- | --- | --- | --- |\n"
        + "".join(report.row(PROGRAMS[name]) for name, report in reports.items())
    )


def written_rows(page: str) -> dict[str, tuple[int, int]]:
    """Return the programs in the page's table, with their hits and calls."""
    inside = page.partition(BEGIN)[2].partition(END)[0]
    rows = re.findall(r"^\| `(\w+)` \|.*\| (\d+) of (\d+) \|", inside, re.MULTILINE)
    return {name: (int(hits), int(calls)) for name, hits, calls in rows}


def main() -> None:
    """Run programs; print how they went, or write it into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="programs, all by default")
    parser.add_argument("--write", action="store_true", help="write docs/compile_programs.md")
    options = parser.parse_args()
    reports = {}
    with installed_package():
        for name in options.names or PROGRAMS:
            reports[name] = report = compare(PROGRAMS[name])
            print(f"{name:32} {report.hits:3} of {report.calls:3}  {report.why}")
            if report.difference is not None:
                print(f"    DIFFERS: {report.difference}")
    print(f"{sum(r.replays for r in reports.values())} of {len(reports)} replay {SHARE:.0%}")
    if options.write:
        if options.names:
            parser.error("--write needs all programs")
        page = PAGE.read_text("utf-8")
        before, after = page.partition(BEGIN)[0], page.partition(END)[2]
        PAGE.write_text(before + BEGIN + table(reports) + END + after, "utf-8")


if __name__ == "__main__":
    main()
