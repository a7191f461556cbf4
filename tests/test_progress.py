"""The bar of long work shows on a terminal alone, and never changes what the work gives."""

from __future__ import annotations

import io
import sys

import pytest

from tests.progress import note, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_file_gets_no_bar() -> None:
    stream = io.StringIO()
    assert list(progress(iter("abc"), 3, "letter", stream)) == ["a", "b", "c"]
    assert stream.getvalue() == ""


def test_a_terminal_gets_one() -> None:
    pytest.importorskip("tqdm")
    stream = Terminal()
    assert list(progress(iter("abc"), 3, "letter", stream)) == ["a", "b", "c"]
    assert "3/3" in stream.getvalue() and "letter" in stream.getvalue()


def test_without_tqdm(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    stream = Terminal()
    assert list(progress([1, 2], 2, "number", stream)) == [1, 2]
    assert stream.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", stream)
    note("found")
    assert capsys.readouterr().out == "found\n"


def test_notes_stand_on_lines_of_their_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tqdm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    note("found")
    assert capsys.readouterr().out == "found\n"
