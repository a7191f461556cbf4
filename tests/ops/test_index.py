"""Names: the generated files say what the declarations say, and `dir` lists what users may call."""

import importlib
import subprocess
import sys
from types import ModuleType

import pytest

import oneflow_lite as flow
from docs.site import public_names
from oneflow_lite.compatibility import StandIn, homes as others
from oneflow_lite.compatibility.names import NAMES
from oneflow_lite.ops import homes
from oneflow_lite.ops.exposure import public
from oneflow_lite.ops.index import FACES, PACKAGE

MODULES = public_names.modules()


def test_generated_files_are_up_to_date() -> None:
    command = [sys.executable, "-m", "oneflow_lite.ops.index"]
    done = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run {' '.join(command[1:])} --write"


@pytest.mark.parametrize("path", MODULES)
def test_dir_shows_what_users_may_call(path: str) -> None:
    names = [name for name in dir(MODULES[path]) if not name.startswith("__")]
    assert not [name for name in names if name.startswith("_")]
    assert {"Any", "TYPE_CHECKING", "annotations", "locks", "spellings"}.isdisjoint(names)
    values = {name: getattr(MODULES[path], name) for name in names}
    assert not [
        name for name, value in values.items() if getattr(value, "__module__", 0) == "typing"
    ]
    rooms = [
        name
        for name, value in values.items()
        if isinstance(value, ModuleType)
        and value not in MODULES.values()
        # Somebody imported it by its old name.
        and not isinstance(value, StandIn)
        and not value.__name__.startswith(("oneflow_lite.compatibility", "oneflow_lite.interop"))
    ]
    listed = {f"{path}.{name}".lstrip(".") for name in rooms}
    assert listed <= {*public_names.NOT_LISTED, "info", "explore"}


def test_rooms_are_not_shown_but_found() -> None:
    rooms = {"arrays", "functors", "grad_funcs", "interop", "kernels", "ops", "tensors", "Any"}
    assert rooms.isdisjoint(dir(flow))
    assert flow.kernels is importlib.import_module("oneflow_lite.kernels")


@pytest.mark.parametrize("path", homes.MODULES)
def test_every_home_has_its_names(path: str) -> None:
    module = flow.cuda if path == "cuda" else public_names.module_at(path)
    absent = {name for name in public(path) if not hasattr(module, name)}
    assert absent == set()


def test_no_name_has_two_homes() -> None:
    for table in (homes.MODULES, NAMES, homes.CLASSES):
        for path, lines in table.items():
            words = [word.partition("=")[0] for text in lines.values() for word in text.split()]
            assert sorted(words) == sorted(set(words)), path
    for path in homes.MODULES:
        assert not {*public(path)} & {*others(path)}, path


def test_a_module_of_found_names_has_a_stub() -> None:
    annotated = {"distributed"}  # GradBucket, an annotation there
    assert {*homes.MODULES} - annotated == {*FACES}
