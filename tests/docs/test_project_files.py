"""CHANGELOG, CITATION and SECURITY keep their forms, and say what is so."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import pytest

import oneflow_lite as flow
from tests.docs.test_differences import found_in

ROOT = Path(__file__).resolve().parents[2]
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def test_the_changelog_is_one_of_keep_a_changelog() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    versions = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert versions[0].startswith("[Unreleased]\n")
    for version in versions:
        assert re.match(r"\[(Unreleased|\d+\.\d+\.\d+)\]( - \d{4}-\d\d-\d\d)?\n", version)
        kinds = re.findall(r"^### (.+)$", version, re.MULTILINE)
        assert kinds
        assert kinds == [kind for kind in KINDS if kind in kinds]
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_version_is_said_once_more_where_it_has_to_be() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    assert setup["metadata"]["version"] == flow.__version__
    yaml = pytest.importorskip("yaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert cited["version"] == flow.__version__
    assert cited["license"] == setup["metadata"]["license_expression"]
    assert {"cff-version", "message", "title", "authors"} <= set(cited)


def test_the_security_note_names_tests_that_are_there() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    files = re.findall(r"`(tests/[\w/]+\.py)`", text)
    assert len(files) == 4
    assert all(found_in(file) for file in files)
