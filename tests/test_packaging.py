"""setup.cfg lists the packages one by one; here the list is compared with the tree."""

import configparser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OP_FOLDERS = ("functors", "grad_funcs", "kernels")


def setup_cfg() -> configparser.ConfigParser:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    return config


def test_every_package_is_listed() -> None:
    package = ROOT / "oneflow_lite"
    # rglob does not go through links, so each linked folder is a start of its own.
    starts = [package, *(package / folder for folder in OP_FOLDERS)]
    found = {
        ".".join(init.parent.relative_to(ROOT).parts)
        for start in starts
        for init in start.rglob("__init__.py")
    }
    assert set(setup_cfg()["options"]["packages"].split()) == found


def test_the_op_folders_are_linked_into_the_package_and_mapped_for_builds() -> None:
    mapping = setup_cfg()["options"]["package_dir"].split("\n")
    for folder in OP_FOLDERS:
        link = ROOT / "oneflow_lite" / folder
        assert link.is_symlink()
        assert link.readlink() == Path("..") / folder
        assert f"oneflow_lite.{folder} = {folder}" in mapping


def test_the_package_ships_its_type_hints() -> None:
    assert (ROOT / "oneflow_lite" / "py.typed").is_file()
    data = setup_cfg()["options.package_data"]
    assert "py.typed" in data["oneflow_lite"]
    for stub in (ROOT / "oneflow_lite").rglob("*.pyi"):
        package = ".".join(stub.parent.relative_to(ROOT).parts)
        assert "*.pyi" in data[package], stub
