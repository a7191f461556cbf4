"""Write what editors, mypy and the lazy namespaces know of the functors, from their declarations.

    python -m tests.stubs --write    # after a functor was declared or changed
    python -m tests.stubs            # say which files are out of date

`oneflow_lite/ops/index.py` says which family holds which name; the stubs `*.pyi` give the public
functions and Tensor's methods with their whole signatures.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import oneflow_lite
from oneflow_lite.functors.declaring.declare import DECLARATIONS, Declaration, Parameter
from oneflow_lite.functors.methods import METHODS
from oneflow_lite.ops.exposure import ROOMS, load_all

PACKAGE = Path(oneflow_lite.__file__).parent
STUBS = {
    "flow": "functions.pyi",
    "Tensor": "tensors/methods.pyi",
    "functional": "nn/functional.pyi",
    **{name: f"{name}.pyi" for name in ("linalg", "fft", "special", "masked")},
}
_WRITTEN = "python -m tests.stubs --write"
_BUILTIN = {"Any", "Callable", "Sequence", "None", *dir(__builtins__)}


def written() -> dict[Path, str]:
    """Return the generated files, by path."""
    for room in ROOMS:
        load_all(room)
    files = {PACKAGE / "ops" / "index.py": _index()}
    for place, path in STUBS.items():
        files[PACKAGE / path] = _stub(place)
    return files


def _declarations() -> list[Declaration]:
    return [DECLARATIONS.get(name) for name in sorted(DECLARATIONS)]


def _exposed(place: str) -> Iterator[tuple[str, str, Declaration, bool]]:
    """Yield name, functor, declaration and whether it is the in-place twin, sorted by name."""
    found = []
    for d in _declarations():
        found += [(name, d.name, d, False) for where, name in d.places if where == place]
        found += [(name, f"{d.name}_", d, True) for where, name in d.twin_places if where == place]
    yield from sorted(found, key=lambda entry: entry[:2])


# --- The index ----------------------------------------------------------------------------------


def _index() -> str:
    text = f'"""The file that registers each name. Written by `{_WRITTEN}`; not by hand."""\n'
    for room, registry in ROOMS.items():
        by_family: dict[str, list[str]] = {}
        for name in sorted(registry):
            family = registry.origins[name].rpartition(".")[2]
            by_family.setdefault(family, []).append(name)
        text += _table(room.upper(), by_family)
    places = {}
    for place in STUBS:
        entries = [(name, functor) for name, functor, _, _ in _exposed(place)]
        places[place] = [n if n == functor else f"{n}={functor}" for n, functor in entries]
    text += _table("PLACES", places)
    methods = textwrap.wrap(" ".join(sorted(METHODS)), 94, break_long_words=False)
    return text + "\n".join(['\nMETHODS = """', *(f"    {line}" for line in methods), '"""\n'])


def _table(name: str, rows: dict[str, list[str]]) -> str:
    lines = [f"\n{name} = {{"]
    for key in sorted(rows):
        words = textwrap.wrap(" ".join(rows[key]), 90, break_long_words=False)
        if len(words) <= 1 and len(key) + len("".join(words)) < 86:
            lines.append(f'    "{key}": "{"".join(words)}",')
        else:
            lines += [f'    "{key}": """', *(f"        {line}" for line in words), '    """,']
    return "\n".join([*lines, "}\n"])


# --- The stubs ----------------------------------------------------------------------------------


def _stub(place: str) -> str:
    bodies, hints, scope = [], [], {}
    for name, _, d, is_twin in _exposed(place):
        signature = _signature(d, is_twin, place == "Tensor")
        hints += [p.hint for p in d.parameters] + [signature[1]]
        scope.update(d.author.__globals__)
        bodies.append(_line(f"def {name}", signature))
    head = f'"""Signatures, written by `{_WRITTEN}` from the declarations; not by hand."""\n\n'
    if place == "Tensor":
        bodies = ["class Methods:", *(textwrap.indent(body, "    ") for body in bodies)]
    return head + _imports(" ".join(["Tensor", "Any", *hints]), scope) + "\n".join(bodies) + "\n"


def _signature(d: Declaration, is_twin: bool, method: bool) -> tuple[list[str], str]:
    shown = [_parameter(p, method and i == 0) for i, p in enumerate(d.parameters)]
    variadic = any(p.kind == "variadic" for p in d.parameters)
    kinds = [p.kind for p in d.parameters]
    keyword = [s for s, kind in zip(shown, kinds, strict=True) if kind == "keyword"]
    named = [s for s, kind in zip(shown, kinds, strict=True) if kind == "named"]
    listed = [s for s, kind in zip(shown, kinds, strict=True) if kind in ("positional", "variadic")]
    if not is_twin:
        listed += ["inplace: bool = ..."] if d.inplace else []
        keyword += ["out: Any = ..."] if d.out else []
    if keyword and not variadic:
        keyword.insert(0, "*")
    result = "Tensor" if is_twin else _result(d)
    return listed + keyword + named, result


def _parameter(p: Parameter, is_self: bool) -> str:
    if is_self:
        return "self"
    star = {"variadic": "*", "named": "**"}.get(p.kind, "")
    return f"{star}{p.name}: {p.hint}" + ("" if p.required or star else " = ...")


def _result(d: Declaration) -> str:
    from oneflow_lite.functors.declaring.declare import _type_text

    return _type_text(d.result)


def _line(head: str, signature: tuple[list[str], str]) -> str:
    parameters, result = signature
    line = f"{head}({', '.join(parameters)}) -> {result}: ..."
    if len(line) <= 96:
        return line
    inner = ",\n    ".join(parameters)
    return f"{head}(\n    {inner},\n) -> {result}: ..."


def _imports(text: str, scope: dict[str, Any]) -> str:
    """Return the imports of the names that the signatures use."""
    text = re.sub(r"'[^']*'", "", text)  # words of Literals
    numpy = "from numpy import dtype\n" if "dtype[" in text else ""
    used = set(re.findall(r"\b[A-Z]\w+", text)) - {"None", "Methods", "True", "False"}
    lines: dict[str, set[str]] = {}
    for name in used:
        if name in ("Any", "Literal"):
            lines.setdefault("typing", set()).add(name)
        elif name in ("Callable", "Sequence", "Iterable"):
            lines.setdefault("collections.abc", set()).add(name)
        else:
            module = getattr(scope.get(name), "__module__", None)
            module = module if module and module.startswith("oneflow_lite") else _MODULES.get(name)
            assert module, f"nobody knows where {name} comes from"
            lines.setdefault(module, set()).add(name)
    wanted = [f"from {m} import {', '.join(sorted(names))}" for m, names in sorted(lines.items())]
    return numpy + "\n".join(wanted) + "\n\n"


_MODULES = {"Tensor": "oneflow_lite.tensors.tensor"}


def main() -> int:
    """Write the files, or say which differ."""
    stale = [
        path for path, text in written().items() if not path.exists() or path.read_text() != text
    ]
    for path in stale:
        if "--write" in sys.argv:
            path.write_text(written()[path])
        print(f"{path.relative_to(PACKAGE)} {'written' if '--write' in sys.argv else 'is stale'}")
    return 0 if "--write" in sys.argv else len(stale)


if __name__ == "__main__":
    sys.exit(main())
