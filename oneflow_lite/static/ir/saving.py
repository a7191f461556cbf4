"""static.save and static.load: Programs with their parameters as safetensors files, never code.

A file is written by `flow.save` from one dict, so it has a checksum and is replaced at once.
docs/program_format.md describes that dict.
"""

from __future__ import annotations

import os
from typing import Any

from oneflow_lite.errors import ArgumentError, SerializationError, arg_error
from oneflow_lite.files.serialization import from_bytes, naming, save as save_dict
from oneflow_lite.files.torch_files import shown
from oneflow_lite.static.ir.program import Program, check_program
from oneflow_lite.static.ir.program_record import check_keys, read_program, write_program
from oneflow_lite.static.ir.scope import Scope, global_scope
from oneflow_lite.tensors.tensor import Tensor, make_tensor

FORMAT, VERSION = "oneflow_lite program", 1
Path = str | os.PathLike[str]


def save(program: Program, path: Path, scope: Scope | None = None) -> None:
    """Write a Program and the values of its persistable variables to a file.

    Parameters
    ----------
    program : Program
    path : path
        Written all at once: an older file survives an error.
    scope : Scope, optional
        Holds the values; `global_scope()` if None.

    Raises
    ------
    ArgumentError
        When the scope lacks a persistable variable.
    SerializationError
        When an attribute of an op cannot be written, such as a random generator of the user.

    Notes
    -----
    An optimizer's update of its options before each run is not part of the Program: a loaded
    Program goes on with the learning rate that was saved.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import oneflow_lite as flow
    >>> main, startup = flow.static.Program(), flow.static.Program()
    >>> with flow.static.program_guard(main, startup):
    ...     x = flow.static.data("x", [1, 2])
    ...     y = flow.nn.Linear(2, 1)(x)
    >>> executor, scope = flow.static.Executor(), flow.static.Scope()
    >>> _ = executor.run(startup, scope=scope)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "linear.safetensors")
    ...     flow.static.save(main, path, scope)
    ...     loaded, values = flow.static.load(path)
    >>> feed = {"x": np.ones((1, 2), "float32")}
    >>> executor.run(main, feed, [y], scope) == executor.run(loaded, feed, [y.name], values)
    True
    """
    check_program("static.save", "program", program)
    scope = global_scope() if scope is None else scope
    variables: dict[str, Tensor] = {}
    for desc in program.global_block().vars.values():
        if desc.persistable:
            array = scope.find_var(desc.name)
            if array is None:
                raise arg_error(
                    "static.save",
                    "scope",
                    expected=f"a value for the persistable variable {desc.name!r}",
                    got="none",
                    hint="run the startup program first, in the same scope",
                    kind=ArgumentError,
                )
            variables[desc.name] = make_tensor(array)
    save_dict(
        {
            "format": FORMAT,
            "version": VERSION,
            "blocks": write_program(program),
            "variables": variables,
        },
        os.fspath(path),
    )


def load(path: Path) -> tuple[Program, Scope]:
    """Read a file that `save` wrote.

    Nothing in the file is executed: it names registered ops. Everything is checked before it is
    used.

    Returns
    -------
    program : Program
    scope : Scope
        A new one, with the values of the persistable variables.

    Raises
    ------
    SerializationError
        When the file is damaged, cut short, of another kind or from a newer version, or when its
        ops are not those of this library; the text names the file and the reason.
    FileNotFoundError
        When there is no such file.
    """
    with open(path, "rb") as file:
        data = file.read()
    with naming("static.load", path):
        content = from_bytes(data)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise SerializationError("it holds no Program; read state dicts with flow.load")
        version = content.get("version")
        if type(version) is not int or not 1 <= version <= VERSION:
            raise SerializationError(
                f"it is of version {version!r}, this library reads up to {VERSION}; use a newer "
                "oneflow_lite"
            )
        check_keys(content, "format", "version", "blocks", "variables")
        try:
            program = read_program(content.get("blocks"))
            return program, _read_variables(program, content.get("variables"))
        except SerializationError:
            raise
        except Exception as error:  # as of memory that a description asks for
            raise SerializationError(f"its blocks cannot be read: {shown(error)}") from None


def _read_variables(program: Program, values: Any) -> Scope:
    """Return the values of all persistable variables."""
    if not isinstance(values, dict):
        raise SerializationError("it has no variables")
    scope = Scope()
    for desc in program.global_block().vars.values():
        if not desc.persistable:
            continue
        value = values.get(desc.name)
        if not isinstance(value, Tensor):
            raise SerializationError(f"the variable {desc.name!r} has no value")
        if value.shape != desc.shape or value.dtype != desc.dtype:
            raise SerializationError(
                f"the value of {desc.name!r} is of {value.dtype}{list(value.shape)}, not of "
                f"{desc.dtype}{list(desc.shape)}"
            )
        scope.set(desc.name, value)
    for name in values:
        if name not in scope:
            raise SerializationError(f"it has a value for {name!r}, which is no such variable")
    return scope
