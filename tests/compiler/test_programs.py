"""Eighty training programs as people write them: compiled equals eager; how much is replayed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.compiler.programs.kit import PROGRAMS
from tests.compiler.programs.run import (
    PAGE,
    SHARE,
    Plain,
    compare,
    first_difference,
    installed_package,
    trace,
    written_rows,
)

REPLAY = 73  # programs that replay nine of ten calls or more
DIFFERENT: dict[str, str] = {}  # programs that silently differ from eager, and why
by_name = pytest.mark.parametrize("name", PROGRAMS)
WRITTEN = written_rows(PAGE.read_text("utf-8"))


@pytest.fixture(scope="module", autouse=True)
def package() -> Iterator[None]:
    with installed_package():
        yield


@pytest.mark.slow(but=4)
@by_name
@pytest.mark.judged(most=5)  # each step's state is compared with the eager program's besides
def test_compiled_equals_eager_and_replays_what_the_page_says(name: str) -> None:
    report = compare(PROGRAMS[name])
    assert (report.difference is not None) == (name in DIFFERENT), report.difference
    hits, calls = WRITTEN[name]
    assert report.calls == calls
    assert report.hits >= hits, report.why


class Remembering(Plain):
    """Compiles badly: a function's first result is its result ever after."""

    def __call__(self, function: Any) -> Any:
        results: list[Any] = []

        def call(*args: Any, **kwargs: Any) -> Any:
            if not results:
                results.append(function(*args, **kwargs))
            return results[0]

        return call


@pytest.mark.slow(but=4)
@by_name
def test_a_compiler_that_remembers_its_results_is_caught(name: str) -> None:
    program = PROGRAMS[name]
    want, again, wrong = (
        trace(program, compiler, most=program.kinds + 3)[0]
        for compiler in (Plain(), Plain(), Remembering())
    )
    assert first_difference(again, want) is None
    assert first_difference(wrong, want) is not None


def test_the_page_lists_the_programs_and_enough_of_them_replay() -> None:
    """`python -m tests.compiler.programs.run --write` brings the table up to date."""
    assert list(WRITTEN) == list(PROGRAMS)
    assert len(PROGRAMS) == 80
    assert sum(hits >= SHARE * calls for hits, calls in WRITTEN.values()) >= REPLAY
