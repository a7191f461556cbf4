"""PyTorch's operator database: every entry passes to second order, or says why not.

Of its entries autograd supports 547, and 543 of them in double precision on the CPU, real or
complex (484 names; an entry is a name and a variant). They are found when the tests run, not when
they are collected, because making the database takes seconds.
"""

from __future__ import annotations

import pytest

PARTS = 20


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("part", range(PARTS))
def test_entries_agree_with_pytorch(part: int) -> None:
    pytest.importorskip("torch")
    from tests.functors.operator_database import entries

    failed = []
    for entry in entries()[part::PARTS]:
        message = entry.failure()
        if entry.reason is None and message:
            failed.append(f"{entry.name}: {message}")
        if entry.reason is not None and not message:
            failed.append(f"{entry.name} passes: its line in REASONS is no longer true")
    assert not failed, "\n\n".join(failed)


def test_reasons_are_few_and_name_entries() -> None:
    pytest.importorskip("torch")
    from tests.functors.operator_database import REASONS, entries

    names = {name for entry in entries() for name in (entry.name, entry.info.name)}
    assert set(REASONS) <= names
    assert len(REASONS) <= 40
