"""The line that an op is said to come from: the user's, not the package's or the library's."""

from __future__ import annotations

import copy
import inspect
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite.static.ir.location import is_own_code, user_location


def code_of(file: str) -> CodeType:
    """Return code that is equal to that of the same text in another file."""
    return compile("x = 1", file, "exec")


def test_a_call_is_found_where_it_stands() -> None:
    line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
    found = user_location()
    assert found is not None
    assert (found.filename, found.line) == (__file__, line)
    assert found.function == "test_a_call_is_found_where_it_stands"


def test_a_line_behind_an_op_is_the_users() -> None:
    main = flow.static.Program()
    with flow.static.program_guard(main):
        flow.static.data("x", [2]).relu()
    (op,) = main.global_block().ops
    assert op.location is not None
    assert op.location.filename == __file__


def test_code_of_the_standard_library_is_passed_over() -> None:
    namespace: dict[str, Any] = {"ask": user_location}
    exec(compile("def deep():\n    return ask()\n", copy.__file__, "exec"), namespace)
    found = namespace["deep"]()
    assert found.filename == __file__
    assert found.function == "test_code_of_the_standard_library_is_passed_over"


def test_an_installed_library_is_somebodys_code_too() -> None:
    file = str(Path(np.__file__).parent / "of_another.py")
    namespace: dict[str, Any] = {"ask": user_location}
    exec(compile("def f():\n    return ask()\n", file, "exec"), namespace)
    assert namespace["f"]().filename == file


def test_equal_code_of_two_files_is_told_apart() -> None:
    own = code_of(str(Path(flow.__file__).parent / "somewhere.py"))
    users = code_of("/home/somebody/script.py")
    assert own == users
    assert [is_own_code(own), is_own_code(users)] == [True, False]
    assert [is_own_code(users), is_own_code(own)] == [False, True]
