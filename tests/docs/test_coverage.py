"""docs/coverage.md says what the declarations say; what the catalogue has is there, or why not."""

from __future__ import annotations

from tests import coverage


def test_the_page_is_up_to_date() -> None:
    assert coverage.PAGE.read_text("utf-8") == coverage.page(), (
        "run `python -m tests.coverage --write`"
    )


def test_the_catalogue_is_there() -> None:
    assert {name for _, name in coverage.absent()} == set(coverage.ABSENT)
