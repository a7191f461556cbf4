"""Write what editors, mypy and look-ups know of names, from the declarations and `homes.py`.

    python -m oneflow_lite.ops.index --write    # after a functor was declared or changed
    python -m oneflow_lite.ops.index            # say which files are out of date

`names.py` says which family holds which name. The stubs `*.pyi` give the functions, the methods of
Tensor, and the names of modules that are found when they are asked for.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from oneflow_lite.ops import exposure, homes, upward
from oneflow_lite.ops.exposure import ROOMS, load_all, pairs, taken

PACKAGE = Path(__file__).parents[1]
STUBS = {
    "flow": "functions.pyi",
    "Tensor": "tensors/methods.pyi",
    "functional": "nn/functional.pyi",
    **{name: f"{name}.pyi" for name in ("linalg", "fft", "special", "masked")},
}
# Modules that have names which type checkers cannot read in the file.
FACES = {
    "": "__init__.pyi",
    "autograd": "autograd/__init__.pyi",
    "distributed.checkpoint": "distributed/checkpoint.pyi",
    "distributed.optim": "distributed/optim.pyi",
    "nn": "nn/__init__.pyi",
}
_WRITTEN = "python -m oneflow_lite.ops.index --write"
_HEAD = f'"""Written by `{_WRITTEN}`; not by hand."""\n\n'
_WIDTH = 98

Declaration = Any  # its module stands above this one
_declaring = functools.partial(upward.module, "declarations")


def written() -> dict[Path, str]:
    """Return the generated files, by path."""
    for room in ROOMS:
        load_all(room)
    files = {"ops/names.py": _index()}
    files |= {path: _stub(place) for place, path in STUBS.items()}
    files |= {path: _face(place) for place, path in FACES.items()}
    return {PACKAGE / path: text for path, text in files.items()}


def _exposed(place: str) -> Iterator[tuple[str, str, Declaration, bool]]:
    """Yield name, functor, declaration and whether it is the in-place twin, sorted by name."""
    found = []
    declarations = _declaring().DECLARATIONS
    for d in map(declarations.get, sorted(declarations)):
        found += [(name, d.name, d, False) for where, name in d.places if where == place]
        found += [(name, f"{d.name}_", d, True) for where, name in d.twin_places if where == place]
    yield from sorted(found, key=lambda entry: entry[:2])


# --- The index ------------------------------------------------------------------------------------


def _index() -> str:
    families: dict[str, set[str]] = {}
    for registry in ROOMS.values():
        for name in registry:
            family = registry.origins[name].rpartition(".")[2]
            families.setdefault(family, set()).add(name)
    listed = {
        family: {n for n in found if not n.endswith("_") or n[:-1] not in found}
        for family, found in families.items()
    }
    places: dict[str, set[str]] = {}
    for place in STUBS:
        for name, functor, _, _ in _exposed(place):
            places.setdefault(name if name == functor else f"{name}={functor}", set()).add(place)
    exposed: dict[str, set[str]] = {}
    for word, where in places.items():
        exposed.setdefault(" ".join(sorted(where)), set()).add(word)
    return (
        _HEAD
        + "# By family what its files register; `name_` is in the family of `name`.\n"
        + _table("FAMILIES", listed)
        + "\n# By places the functors that are exposed there, `name=functor` under another name.\n"
        + _table("EXPOSED", exposed)
        + '\n# Of Tensor, in `functors/methods.py`.\nMETHODS = """\n'
        + _wrapped(sorted(taken("functors", "methods").METHODS), "    ")
        + '\n"""\n'
    )


def _table(name: str, rows: dict[str, set[str]]) -> str:
    lines = [f"{name} = {{"]
    for key in sorted(rows):
        words = sorted(rows[key])
        if len(key) + len(" ".join(words)) < _WIDTH - 10:
            lines.append(f'    "{key}": "{" ".join(words)}",')
        else:
            lines += [f'    "{key}": """', _wrapped(words, " " * 8), '    """,']
    return "\n".join([*lines, "}\n"])


def _wrapped(parts: list[str], indent: str, comma: str = "") -> str:
    """Return parts in lines, none of them cut in two."""
    whole = f"{comma} ".join(parts).replace(" ", "\xa0").replace(f"{comma}\xa0", f"{comma} ")
    text = textwrap.fill(
        whole if comma else " ".join(parts),
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return text.replace("\xa0", " ")


# --- The stubs ------------------------------------------------------------------------------------


def _stub(place: str) -> str:
    """Return the stub of a place: the functions that are exposed there, or Tensor's methods."""
    bodies: list[str] = []
    authors: list[Any] = []
    for name, _, d, is_twin in _exposed(place):
        authors.append(d.author)
        bodies += _functions(name, d, is_twin, place == "Tensor")
    if place != "Tensor":
        text = "\n".join(bodies) + "\n"
        return _HEAD + _imports(text, {author.__module__ for author in authors}) + text
    for home, words in homes.CLASSES[place].items():
        for name, own in pairs(words):
            value = taken(home, own)
            authors.append(value.fget if isinstance(value, property) else value)
            bodies += _method(name, value)
    text = "class Methods:\n" + textwrap.indent("\n".join(bodies), "    ") + "\n"
    return _HEAD + _imports(text, {author.__module__ for author in authors}) + text


def _functions(name: str, d: Declaration, is_twin: bool, method: bool) -> Iterator[str]:
    """Yield the signature of a declaration: several, when the type of the result depends."""
    cases = () if is_twin else d.results
    for case in cases or [f"-> {'Tensor' if is_twin else _declaring()._type_text(d.result)}"]:
        given, _, result = case.rpartition("-> ")
        line = _line(f"def {name}", _parameters(d, is_twin, method, given), result)
        yield "@overload\n" * (len(cases) > 1) + (_inside(line) if method else line)


def _parameters(d: Declaration, is_twin: bool, method: bool, given: str) -> list[str]:
    """Return the parameters, those of a case as the case gives them."""
    texts = [text.strip() for text in re.split(r", (?=\w+: )", given) if text.strip()]
    case = {text.partition(":")[0]: text for text in texts}
    shown: dict[str, list[str]] = {"positional": [], "variadic": [], "keyword": [], "named": []}
    has_default = False
    for i, p in enumerate(d.parameters):
        star = {"variadic": "*", "named": "**"}.get(p.kind, "")
        own = f"{star}{p.name}: {p.hint}" + ("" if p.required or star else " = ...")
        text = "self" if method and i == 0 else case.get(p.name, own)
        late = shown["keyword"] or (has_default and not text.endswith("= ..."))
        has_default = has_default or text.endswith("= ...")
        shown["keyword" if late and p.kind == "positional" else p.kind].append(text)
    positional, keyword = shown["positional"], shown["keyword"]
    if not is_twin:
        positional += ["inplace: bool = ..."] if d.inplace else []
        keyword += ["out: Any = ..."] if d.out else []
    mark = ["*"] if keyword and not shown["variadic"] else []
    return [*positional, *shown["variadic"], *mark, *keyword, *shown["named"]]


def _method(name: str, value: Any) -> Iterator[str]:
    """Yield the signature of a method or property that is no declaration."""
    if isinstance(value, property):
        yield "@property\n" + _inside(_line(f"def {name}", ["self"], _hint(value.fget, "return")))
        if value.fset is not None:
            yield f"@{name}.setter\n{_line(f'def {name}', ['self', 'value: Any'], 'None')}"
        return
    found = list(inspect.signature(value).parameters.values())
    shown = ["self"]
    for i, p in enumerate(found[1:], 1):
        star = "*" * (p.kind is p.VAR_POSITIONAL) or "**" * (p.kind is p.VAR_KEYWORD)
        if p.kind is p.KEYWORD_ONLY and found[i - 1].kind is p.POSITIONAL_OR_KEYWORD:
            shown.append("*")
        default = "" if p.default is p.empty else " = ..."
        shown.append(f"{star}{p.name}: {_hint(value, p.name)}{default}")
        if p.kind is p.POSITIONAL_ONLY and (i + 1 == len(found) or found[i + 1].kind is not p.kind):
            shown.append("/")
    line = _inside(_line(f"def {name}", shown, _hint(value, "return")))
    yield line + ("  # type: ignore[override]" if name in ("__eq__", "__ne__") else "")


def _hint(function: Any, name: str) -> str:
    hint = function.__annotations__.get(name, "Any")
    return hint if isinstance(hint, str) else str(_declaring()._type_text(hint))


def _inside(line: str) -> str:
    """Return a signature in a class whose methods hide the types `bool`, `float`, `int`, ..."""
    hidden = "bool|float|int"
    found = rf"(?<=[:>|\[,] )({hidden}|layout|placement)\b|(?<=\[)({hidden})\b"
    return re.sub(found, r"_\1\2", line)


def _line(head: str, parameters: list[str], result: str) -> str:
    line = f"{head}({', '.join(parameters)}) -> {result}: ..."
    if len(line) <= _WIDTH:
        return line
    return f"{head}(\n{_wrapped(parameters, '    ', ',')}\n) -> {result}: ..."


# Of names in hints that the modules of the authors need not import.
_HOMES = {
    "dtype": "arrays.dtype_object",
    "DTypeLike": "arrays.dtype",
    "Number": "arrays.dtype",
    "DeviceLike": "arrays.device",
    "Generator": "functors.random",
    "layout": "tensors.tensor_methods",
    "memory_format": "arrays.memory_format",
    "placement": "distributed.placement",
    "Sbp": "distributed.placement",
}


def _imports(text: str, modules: set[str]) -> str:
    """Return the imports of the names in annotations, which are those of these modules."""
    hints = [
        hint
        for node in ast.walk(ast.parse(text))
        for hint in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if hint is not None
    ]
    used = {node.id for hint in hints for node in ast.walk(hint) if isinstance(node, ast.Name)}
    known = {name: home for module in sorted(modules) for name, home in _names_in(module).items()}
    known |= {name: ("typing", name) for name in ("Any", "Literal")}
    known |= {name: (f"oneflow_lite.{home}", name) for name, home in _HOMES.items()}
    known |= {"np": ("", "numpy"), "Sequence": ("collections.abc", "Sequence")}
    known |= {name: ("builtins", name) for name in vars(builtins)}
    lines: dict[str, set[str]] = {"typing": {"overload"}} if "@overload" in text else {}
    for name in sorted(used - {*vars(builtins)}):
        home, own = known[name.lstrip("_")]
        lines.setdefault(home, set()).add(own if own == name else f"{own} as {name}")
    return "".join([*(_import(m, sorted(lines[m])) + "\n" for m in sorted(lines)), "\n"])


@functools.cache
def _names_in(module: str) -> dict[str, tuple[str, str]]:
    """Return the homes of the names of a module, and their names there."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    found = {node.name: (module, node.name) for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            home = str(node.module)
            found |= {a.asname or a.name.replace("*", home): (home, a.name) for a in node.names}
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, (module, node.targets[0].id))
    return found


# --- The faces of modules -------------------------------------------------------------------------


def _face(path: str) -> str:
    """Return the stub of a module: what it imports, and its names that are found when asked for."""
    module = f"oneflow_lite.{path}".removesuffix(".")
    wanted = exposure.listed(vars(sys.modules[module]))
    read: dict[str, list[str]] = {}
    for name, (home, own) in _names_in(module).items():
        file = hasattr(sys.modules.get(f"{home}.{own}"), "__file__")  # `cuda` is made, of none
        if own == "*" or (name in wanted and (home != module or file)):
            read.setdefault(home, []).append("*" if own == "*" else f"{own} as {own}")
    named: list[str] = []
    lines = [_import(home, names) for home, names in read.items()]
    for table in (homes.MODULES, exposure.taken("compatibility.names", "NAMES")):
        for home, words in table.get(path, {}).items():
            private = all(name[0] == "_" for name in words.split())
            if home.startswith("refused:") or private:  # to a type checker, they are not there
                continue
            start = home[1:] if home.startswith(":") else f"oneflow_lite.{home}"
            shown = [f"{own} as {own}" for name, own in pairs(words) if name == own]
            hidden = {own: f"_{own}" for name, own in pairs(words) if name != own}
            named += [f"{name} = _{own}" for name, own in pairs(words) if name != own]
            shown += [f"{own} as {other}" for own, other in hidden.items()]
            lines.append(_import(start.removesuffix("*").removesuffix("."), shown))
    if not path:
        lines += ["from oneflow_lite.functions import *", "from types import ModuleType"]
        named += ["__version__: str", "cuda: ModuleType", "newaxis: None"]
    return _HEAD + "\n".join([*sorted(lines), *([""] if named else []), *sorted(named), ""])


def _import(module: str, parts: list[str]) -> str:
    line = f"{f'from {module} ' if module else ''}import {', '.join(parts)}"
    if len(line) <= _WIDTH:
        return line
    return f"from {module} import (\n{_wrapped(parts, '    ', ',')}\n)"


def main() -> int:
    """Write the files, or say which differ."""
    files, writes = written(), "--write" in sys.argv
    stale = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if writes:
            path.write_text(files[path])
        print(f"{path.relative_to(PACKAGE)} {'written' if writes else 'is stale'}")
    return 0 if writes else len(stale)


if __name__ == "__main__":
    sys.exit(main())
