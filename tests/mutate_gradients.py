"""Which mistakes in the gradient rules would no test notice? Makes each, and lists the survivors.

    python -m tests.mutate_gradients                     all rules, some minutes on two cores
    python -m tests.mutate_gradients --family softmax    the rules of grad_funcs/softmax.py
    python -m tests.mutate_gradients --op tanh           the rules of tanh and of tanh_grad
    python -m tests.mutate_gradients --family writes     what follows writes in place and views

The tests run once unchanged, while it is noted which functions of the rules each of them calls.
Then each mutant (`tests/gradient_mutants.py`) gets a forked child, which applies it and runs the
tests that call the changed function, the quickest first, until one fails. Mutants listed in
`tests/equivalent_mutants.txt` compute the same function as the rule, for the reason given there;
they run as well, and one that a test kills after all is reported. Exits with 1 when a mutant that
is not listed survives, or when the list is out of date.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import dataclasses
import importlib.util
import os
import pkgutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

# Read by the numerical libraries when they are imported: forking and threads do not mix.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import pytest  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

import oneflow_lite.grad_funcs as grad_funcs  # noqa: E402
from tests.gradient_mutants import (  # noqa: E402
    WRITES,
    Mutant,
    RuleFunction,
    find_rules,
    mutants,
)

TESTS = (
    "functors",
    "docs/test_subgradients.py",
    "tensors/test_inplace.py",
    "tensors/test_views.py",
    "tensors/test_views_history.py",
    "tensors/test_views_refused.py",
    "tensors/test_views_written.py",
)
EQUIVALENT = ROOT / "tests" / "equivalent_mutants.txt"
SURVIVED, KILLED = 0, 1


@dataclasses.dataclass
class Outcome:
    """The end of a mutant: `survived`, `killed`, or `not reached` by any test."""

    mutant: Mutant
    what: str
    reason: str | None = None  # why the mutant is equivalent, when it is listed


# What is mutated


def load_families(names: Sequence[str]) -> list[ModuleType]:
    """Import families of grad_funcs by name, files by path; without names, everything."""
    found = []
    families = [family.name for family in pkgutil.iter_modules(grad_funcs.__path__)]
    for name in names or [*families, "writes"]:
        if name == "writes":
            found += [importlib.import_module(module) for module in WRITES]
            continue
        path = Path(name)
        if path.suffix != ".py":
            found.append(importlib.import_module(f"{grad_funcs.__name__}.{name}"))
            continue
        if path.stem not in sys.modules:
            spec = importlib.util.spec_from_file_location(path.stem, path)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[path.stem] = module
            spec.loader.exec_module(module)
        found.append(sys.modules[path.stem])
    return found


def concerns(rule: RuleFunction, op: str | None) -> bool:
    """Return whether a function is a rule of `op` or of one of its `<op>_grad`s."""
    return op is None or any(name == op or name.startswith(f"{op}_grad") for name in rule.ops)


def read_equivalents(path: Path) -> dict[str, str]:
    """Read `key` lines, each followed by an indented reason; `#` begins a comment."""
    found: dict[str, str] = {}
    key = ""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace():
            found[key] = f"{found[key]} {line.strip()}".strip()
        elif found and not found[key]:
            raise ValueError(f"{path}: no reason is given for {key!r}")
        elif line in found:
            raise ValueError(f"{path}:{number}: {line!r} is listed twice")
        else:
            key = line.rstrip()
            found[key] = ""
    if found and not found[key]:
        raise ValueError(f"{path}: no reason is given for {key!r}")
    return found


# Which tests call what


class Touched:
    """Makes each function note that it was called."""

    def __init__(self, rules: Iterable[RuleFunction]) -> None:
        self.names: set[str] = set()
        self._original = []
        for rule in rules:
            tree = copy.deepcopy(rule.tree)
            note = ast.parse(f"__touched__.add({rule.where!r})").body
            tree.body = [*note, *tree.body]
            rule.function.__globals__["__touched__"] = self.names
            self._original.append((rule.function, rule.function.__code__))
            rule.function.__code__ = rule.code(tree)

    def undo(self) -> None:
        """Give the functions their own code back."""
        for function, code in self._original:
            function.__code__ = code


class Session:
    """A pytest plugin: its run is one pass over the tests, then one child for each mutant."""

    def __init__(self, rules: Sequence[RuleFunction], made: Sequence[Mutant], jobs: int) -> None:
        self.rules = rules
        self.mutants = made
        self.jobs = jobs
        self.outcomes: list[Outcome] = []
        self.failed_before: list[str] = []
        self.tests: dict[str, list[tuple[float, pytest.Item]]] = {rule.where: [] for rule in rules}
        self._failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed = self._failed or report.failed

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed_before.append(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._learn(session.items)
        print(
            f"{len(session.items)} tests, {len(self.failed_before)} fail without a mutation; "
            f"{len(self.mutants)} mutants of {len({m.rule.where for m in self.mutants})} functions",
            flush=True,
        )
        self._run_all()
        return True

    def _passes(self, item: pytest.Item, following: pytest.Item | None = None) -> bool:
        self._failed = False
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        return not self._failed

    def _learn(self, items: Sequence[pytest.Item]) -> None:
        touched = Touched(self.rules)
        for item, following in zip(items, [*items[1:], None], strict=True):
            touched.names.clear()
            start = time.perf_counter()
            passed = self._passes(item, following)
            seconds = time.perf_counter() - start
            if not passed:
                self.failed_before.append(item.nodeid)
                continue
            for name in touched.names:
                self.tests[name].append((seconds, item))
        touched.undo()
        for tests in self.tests.values():
            tests.sort(key=lambda timed: timed[0])

    def _run_all(self) -> None:
        running: dict[int, Mutant] = {}
        left = iter(self.mutants)
        done = False
        while running or not done:
            while not done and len(running) < self.jobs:
                mutant = next(left, None)
                if mutant is None:
                    done = True
                elif self.tests[mutant.rule.where]:
                    running[self._fork(mutant)] = mutant
                else:
                    self._report(Outcome(mutant, "not reached"))
            if running:
                pid, status = os.wait()
                survived = os.waitstatus_to_exitcode(status) == SURVIVED
                self._report(Outcome(running.pop(pid), "survived" if survived else "killed"))

    def _fork(self, mutant: Mutant) -> int:
        pid = os.fork()
        if pid:
            return pid
        with contextlib.suppress(BaseException):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
            mutant.apply()
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends a test that does not end
            for seconds, item in self.tests[mutant.rule.where]:
                signal.alarm(int(10 * seconds) + 5)
                if not self._passes(item):
                    os._exit(KILLED)
            os._exit(SURVIVED)
        os._exit(KILLED)

    def _report(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        count = len(self.outcomes)
        if count % 200 == 0 or count == len(self.mutants):
            print(f"{count}/{len(self.mutants)}", file=sys.stderr, flush=True)


# The report


def report(outcomes: Sequence[Outcome], stale: Sequence[str], failed_before: Sequence[str]) -> str:
    """Describe what came out, the survivors first."""
    lines = []
    unexplained = [o for o in outcomes if o.what != "killed" and o.reason is None]
    for what in ("not reached", "survived"):
        some = [str(o.mutant) for o in unexplained if o.what == what]
        if some:
            lines += [f"{what} ({len(some)}):", *[f"  {text}" for text in some]]
    wrong = [str(o.mutant) for o in outcomes if o.what == "killed" and o.reason is not None]
    if wrong:
        lines += ["listed as equivalent, but killed:", *[f"  {text}" for text in wrong]]
    if stale:
        lines += ["listed as equivalent, but there is no such mutant:"]
        lines += [f"  {key}" for key in stale]
    if failed_before:
        lines += [f"not used, because they fail without a mutation ({len(failed_before)}):"]
        lines += [f"  {name}" for name in failed_before[:10]]
    for what in ("ops", "gradients of ops", "helpers", "writes and views", "all"):
        some = [o for o in outcomes if what in (serves(o.mutant.rule), "all")]
        killed = sum(o.what == "killed" for o in some)
        survivors = sum(o.what != "killed" and o.reason is None for o in some)
        functions = len({o.mutant.rule.where for o in some})
        lines.append(
            f"{what}: {functions} functions, {len(some)} mutants: {killed} killed, "
            f"{len(some) - killed - survivors} equivalent, {survivors} survivors"
        )
    return "\n".join(lines)


def serves(rule: RuleFunction) -> str:
    """Say whose gradient a function takes: that of ops, of `<op>_grad`s, or of several rules'."""
    if rule.writes:
        return "writes and views"
    if not rule.ops:
        return "helpers"
    return "gradients of ops" if all("_grad" in op for op in rule.ops) else "ops"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutate_gradients",
        description="List the changes of gradient rules that no test notices.",
    )
    parser.add_argument(
        "--family",
        action="append",
        default=[],
        help="a file of grad_funcs/ by its name, 'writes', or any .py file; may be repeated",
    )
    parser.add_argument("--op", help="only rules of this op and of its <op>_grad")
    parser.add_argument("--kind", help="only mutations of this kind, as 'swap saved'")
    parser.add_argument("--jobs", type=int, default=2, help="children at a time (default 2)")
    parser.add_argument("--list", action="store_true", help="list the mutants, run nothing")
    parser.add_argument("--report", type=Path, help="write the report to this file too")
    parser.add_argument("--equivalent", type=Path, default=EQUIVALENT, help="the list to subtract")
    parser.add_argument(
        "--tests",
        action="append",
        default=[],
        help=f"a test file or directory (default: tests/{', tests/'.join(TESTS)}); repeatable",
    )
    options = parser.parse_args(arguments)

    rules = [rule for module in load_families(options.family) for rule in find_rules(module)]
    chosen = [rule for rule in rules if concerns(rule, options.op)]
    made = [
        mutant for rule in chosen for mutant in mutants(rule) if options.kind in (None, mutant.kind)
    ]
    equivalent = read_equivalents(options.equivalent)
    if options.list:
        for mutant in made:
            print(mutant, "(equivalent)" if mutant.key in equivalent else "")
        kinds = Counter(mutant.kind for mutant in made)
        print(f"{len(made)} mutants: " + ", ".join(f"{n} {k}" for k, n in kinds.most_common()))
        return 0

    session = Session(chosen, made, options.jobs)
    tests = options.tests or [str(ROOT / "tests" / name) for name in TESTS]
    quiet = ["-s", "-p", "no:cacheprovider", "-p", "no:terminal", "--rootdir", str(ROOT)]
    status = pytest.main([*quiet, *tests], plugins=[session])
    if not session.outcomes:
        print(f"no mutant was run: pytest ended with {status!r}", file=sys.stderr)
        return 2
    for outcome in session.outcomes:
        outcome.reason = equivalent.get(outcome.mutant.key)
    whole = not (options.op or options.kind)
    present = {mutant.key for mutant in made}
    files = {rule.path.stem for rule in rules}
    stale = [
        key for key in equivalent if whole and key not in present and key.split(".")[0] in files
    ]
    text = report(session.outcomes, stale, session.failed_before)
    print(text)
    if options.report is not None:
        options.report.write_text(text + "\n", "utf-8")
    bad = any((o.what == "killed") == (o.reason is not None) for o in session.outcomes)
    return int(bad or bool(stale) or bool(session.failed_before))


if __name__ == "__main__":
    sys.exit(main())
