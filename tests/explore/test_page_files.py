"""The files of the page are those that were taken, and all of them are shipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from oneflow_lite.explore import html
from tests.explore import vendor
from tests.explore.documents import empty
from tests.test_packaging import setup_cfg


@pytest.mark.parametrize("file", vendor.listed(), ids=lambda file: str(file.name))
def test_libraries_are_as_npm_has_them(file: vendor.File) -> None:
    assert vendor.checksum(file.name) == file.sha256


def test_each_library_has_its_licence_and_its_line() -> None:
    names = {path.name for path in vendor.FOLDER.iterdir()} - {"VERSIONS"}
    assert names == {file.name for file in vendor.listed()}
    for file in vendor.listed():
        assert "Permission is hereby granted" in (
            vendor.FOLDER / f"{file.name.partition('.')[0]}.LICENSE"
        ).read_text("utf-8")


def test_all_files_of_the_page_are_package_data() -> None:
    package = vendor.FOLDER.parents[1]
    patterns = setup_cfg()["options.package_data"]["oneflow_lite.explore"].split(",")
    shipped = {path for pattern in patterns for path in package.glob(pattern.strip())}
    assert {path for path in (package / "page").rglob("*") if path.is_file()} <= shipped


def test_write_gives_the_path(tmp_path: Path) -> None:
    path = html.write(empty(), str(tmp_path / "page.html"))
    assert path.read_text("utf-8") == html.html(empty())
