"""setup.cfg says what is built: its packages, files, extras and classifiers fit the tree."""

import configparser
import fnmatch
import re
from pathlib import Path

import pytest

import oneflow_lite as flow

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


def packages() -> dict[str, Path]:
    """Return the folders of the packages, links followed."""
    listed = setup_cfg()["options"]["packages"].split()
    return {name: ROOT / Path(*name.split(".")) for name in listed}


def test_every_file_in_the_tree_is_shipped() -> None:
    """Files that are not Python need a pattern, of their package or of one around it."""
    data = setup_cfg()["options.package_data"]
    folders = packages()
    patterns = [
        (folders[package], pattern.strip())
        for package, text in data.items()
        for pattern in text.split(",")
    ]
    missing = []
    for folder in (ROOT / "oneflow_lite", *(ROOT / "oneflow_lite" / f for f in OP_FOLDERS)):
        for path in folder.rglob("*"):
            if path.is_dir() or path.suffix in (".py", ".pyc") or "__pycache__" in path.parts:
                continue
            shipped = any(
                path.is_relative_to(place)
                and fnmatch.fnmatch(str(path.relative_to(place)), pattern.replace("**/", "*"))
                for place, pattern in patterns
            )
            missing += [] if shipped else [str(path.relative_to(ROOT))]
    assert missing == []


EXTRAS = """
    cuda12 cuda13 cudnn12 cudnn13 jit bfloat16 distributed onnx browser learn demo docs bench test
    check dist nvrtc torch
""".split()


def requirements() -> dict[str, list[str]]:
    config = setup_cfg()
    found = {name: text.split("\n") for name, text in config["options.extras_require"].items()}
    found["install_requires"] = config["options"]["install_requires"].split("\n")
    return {name: [line for line in lines if line] for name, lines in found.items()}


def test_the_extras_are_there() -> None:
    assert set(requirements()) == {*EXTRAS, "install_requires"}


@pytest.mark.parametrize("extra", [*EXTRAS, "install_requires"])
def test_requirements_can_be_read_and_lead_to_extras_that_exist(extra: str) -> None:
    packaging = pytest.importorskip("packaging.requirements")
    for line in requirements()[extra]:
        found = packaging.Requirement(line)
        if found.name == "oneflow_lite":
            assert found.extras <= set(EXTRAS) - {extra}, line
        else:
            assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", found.name)
            assert found.specifier, f"{line}: say from which version on"


def test_a_plain_install_needs_four_packages() -> None:
    names = [re.split("[><=]", line)[0] for line in requirements()["install_requires"]]
    assert names == ["numpy", "scipy", "safetensors", "attrs"]


def test_metadata() -> None:
    config = setup_cfg()
    assert config["metadata"]["version"] == flow.__version__
    assert config["options"]["python_requires"] == ">=3.11"
    classifiers = config["metadata"]["classifiers"].strip().split("\n")
    versions = [name.rsplit(" ", 1)[1] for name in classifiers if ":: 3." in name]
    assert versions == ["3.11", "3.12", "3.13", "3.14"]
    assert "Typing :: Typed" in classifiers
    for file in (config["metadata"]["license_files"], "README.md", "CHANGELOG.md"):
        assert (ROOT / file).is_file()
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {flow.__version__}\n" in citation
    assert f"\nlicense: {config['metadata']['license_expression']}\n" in citation
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"## [{flow.__version__}]" in changes or "## [Unreleased]" in changes


def test_the_page_on_releases_names_every_extra() -> None:
    page = (ROOT / "docs" / "releasing.md").read_text("utf-8")
    named = {
        name
        for row in re.findall(r"^\| (`.*?) \|", page, re.M)
        for name in re.findall("`(.*?)`", row)
    }
    assert named == set(EXTRAS)
