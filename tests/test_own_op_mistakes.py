"""Each common mistake of an op's author is answered, and docs/op_mistakes.md shows the answers."""

import pytest

from tests import own_op_mistakes
from tests.own_op_mistakes import MISTAKES, Mistake


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_it_is_answered(mistake: Mistake) -> None:
    assert own_op_mistakes.read(mistake).startswith(f"{mistake.error}: ")


def test_the_page_is_up_to_date() -> None:
    """Else run `python -m tests.own_op_mistakes --write`."""
    assert own_op_mistakes.PAGE.read_text("utf-8") == own_op_mistakes.page()
    assert len(MISTAKES) == 10
