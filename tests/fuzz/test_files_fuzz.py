"""Files with a replaced part are refused by name, or are legal files; so are damaged ones."""

from __future__ import annotations

import pytest

from tests.fuzz import campaign, files


def check(count: int, seed: int) -> set[str]:
    """Return the kinds of files of which some mutants were refused, and some legal."""
    _, counts, failures = files.attempt((count, seed))
    print(campaign.report(counts))
    assert not failures, "\n".join(failures)
    ended = [{x.split(",")[0] for x in counts if end in x} for end in ("refused", "legal")]
    return set.intersection(*ended)


def test_some_files_that_lie():
    assert check(100, 0)


@pytest.mark.slow
def test_many_files_that_lie():
    assert check(700, 100) == {kind.name for kind in files.kinds()}
