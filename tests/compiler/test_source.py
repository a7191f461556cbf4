"""From code objects to syntax trees, and when there is none."""

from __future__ import annotations

import ast
import importlib.util
import linecache
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from oneflow_lite.compiler import source
from oneflow_lite.compiler.source import NoSource, find
from tests.compiler.constructs import define, forget


def text(function: FunctionType | CodeType) -> str:
    """The tree found for a function, as text."""
    code = function if isinstance(function, CodeType) else function.__code__
    return ast.unparse(find(code).tree)


def load(path: Path, name: str = "loaded") -> Any:
    """Import a file anew."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lambdas_on_one_line() -> None:
    names = define(
        "a, b, c = lambda x: x.a, lambda x: x.b, lambda x: (lambda y: (x, y.c, lambda: y))\n"
        "d, e = (lambda x, y=lambda z: z.d: y), [lambda x: x.e for _ in 'a'][0]\n"
        "f = (lambda:\n lambda: 1 / 0)\n"
    )
    functions = [names["a"], names["b"], names["c"], names["c"](1), names["c"](1)(Any_())[2]]
    functions += [names["d"], names["d"](0), names["e"], names["f"], names["f"]()]
    assert [text(f) for f in functions] == [
        "lambda x: x.a",
        "lambda x: x.b",
        "lambda x: lambda y: (x, y.c, lambda: y)",
        "lambda y: (x, y.c, lambda: y)",
        "lambda: y",
        "lambda x, y=lambda z: z.d: y",
        "lambda z: z.d",
        "lambda x: x.e",
        "lambda: lambda: 1 / 0",
        "lambda: 1 / 0",
    ]


class Any_:
    c = 1


def test_functions_by_line_decorator_and_class() -> None:
    names = define(
        "def deco(f): return f\n"
        "@deco\n@(\n deco)\ndef f(): pass\n"
        "class _A:\n"
        " @(lambda f: f)\n"
        " def f(self):\n  class B:\n   def f(self, g=lambda: __x): return g\n  return B\n"
        " async def g(self): pass\n"
        "if 1: f_ = _A().f()\n"
        "class C(type('D', (), {'m': lambda self: __y})):\n m2 = lambda self: __z\n"
    )
    for function, start, private in [
        (names["f"], "@deco\n@deco\ndef f()", None),
        (names["_A"].f, "@lambda f: f\ndef f(self)", "_A"),
        (names["f_"].f, "def f(self, g=lambda: __x)", "B"),
        (names["f_"].f(0), "lambda: __x", "B"),
        (names["_A"].g, "async def g(self)", "_A"),
        (names["C"].m, "lambda self: __y", None),
        (names["C"].m2, "lambda self: __z", "C"),
    ]:
        node = find(function.__code__)
        assert ast.unparse(node.tree).startswith(start)
        assert node.private == private
        assert node.filename == function.__code__.co_filename
        assert node.flags == 0


def test_one_of_the_copies_in_a_finally_clause() -> None:
    f = define("def f():\n try: return 1\n finally: g.append(lambda: 2 / 0)\ng = []\n")
    f["f"]()
    assert text(f["g"][0]) == "lambda: 2 / 0"


def test_flags_of_the_future() -> None:
    f = define("from __future__ import annotations\ndef f(x: nothing): return x\n")["f"]
    assert find(f.__code__).flags == 0x1000000
    assert find(define("def f(x): return x\n")["f"].__code__).flags == 0


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("x = (y for y in [])\nf = x.gi_code\n", "'<genexpr>' in '.*' is no function"),
        (
            "import sys\nclass A: f = sys._getframe().f_code\nf = A.f\n",
            "'A' in '.*' is no function",
        ),
        ("import sys\nf = sys._getframe().f_code\n", "'<module>' differs"),
        ("def f(): return 1\nf = f.__code__.replace(co_consts=(None, 2))\n", "'f' differs"),
        ("exec('def f(): pass')\nf = f.__code__\n", "'f' has no source lines"),
    ],
)
def test_what_is_no_function_of_the_file(lines: str, reason: str) -> None:
    with pytest.raises(NoSource, match=reason):
        find(define(lines)["f"])


def test_a_file_that_was_edited(tmp_path: Path) -> None:
    path = tmp_path / "edited.py"
    path.write_text("def f():\n    return 1\n\ndef g(): return 2\n")
    old = load(path)
    assert text(old.f) == "def f():\n    return 1"
    path.write_text("def f():\n    return 10\n\n\ndef g(): return 2\n")
    os.utime(path, (1, 1))
    assert text(old.f) == "def f():\n    return 1"  # the lines that were read are those of `old`
    new = load(path)
    assert text(new.f) == "def f():\n    return 10"
    for function in (old.f, old.g):  # one has other contents now, one another line
        with pytest.raises(NoSource, match=f"'{function.__name__}' differs from what"):
            find(function.__code__)
    path.write_text("def f(:\n")
    os.utime(path, (2, 2))
    with pytest.raises(NoSource, match="'f' differs from what"):
        find(old.f.__code__)


def test_a_file_that_was_edited_in_names_and_columns_only(tmp_path: Path) -> None:
    path = tmp_path / "renamed.py"
    lines = "class A:\n    def f(self): return 1 + self\n    def g(self): return 1 + self\n"
    path.write_text(lines)
    old = load(path)
    path.write_text(lines.replace("A", "B"))
    assert text(old.A.f) == "def f(self):\n    return 1 + self"  # its own lines are the same
    path.write_text(lines.replace("f(self): return 1 + self", "f(self): return 1  + self"))
    linecache.checkcache(str(path))
    with pytest.raises(NoSource, match=r"'A\.f' differs"):
        find(old.A.f.__code__)
    assert text(old.A.g) == "def g(self):\n    return 1 + self"


def test_a_module_in_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "archive.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("module_in_archive.py", "def f(x): return x\n")
    monkeypatch.syspath_prepend(str(archive))
    import module_in_archive

    node = find(module_in_archive.f.__code__, vars(module_in_archive))
    assert ast.unparse(node.tree) == "def f(x):\n    return x"


def test_what_was_parsed_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    names = define("def f(): return g\na, b = (lambda: f), (lambda: g)\n")
    forget()
    first, other = find(names["f"].__code__).tree, find(names["a"].__code__).tree
    monkeypatch.setattr(ast, "PyCF_ONLY_AST", None)  # nothing can be parsed from now on
    assert find(names["f"].__code__).tree is first
    assert find(names["a"].__code__).tree is other
    assert find(names["b"].__code__).tree is not other


def test_trees_of_the_last_texts_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forget()
    monkeypatch.setattr(source, "_MOST", 1)
    for name in "ab":
        file = tmp_path / f"{name}.py"
        file.write_text("".join(f"def {name}{i}(x):\n    return x * {i}\n" for i in range(5)))
        module = load(file)
        functions = [getattr(module, f"{name}{i}") for i in range(5)]
        found = [text(f) for f in functions]
    assert found == [text(f) for f in functions]
    kept = [each for _, parsed in source._files.values() for each in parsed]
    assert len(kept) == len(source._kept) == 1


AROUND = '''
import math, os.path as path
from math import (
    sqrt as root, floor,
)
value = path
def outer(free):
    class A:
        def method(self, __x):
            text = """
no indent
"""
            return super().__str__(), free, self.__x, __x, math.sin(1), path.join(text), floor.f()
        @staticmethod
        # a comment
        def other(a=(
    1,
)):
            def inner():
                return value.join(root.f(inner))
            # after it
            return inner
    return A
if value:
  def indented(): return value.join("")
'''


def test_functions_are_found_in_what_is_around_them() -> None:
    names = define(AROUND)
    made = names["outer"](1)
    functions = [names["outer"], made.method, made.other, made.other(), names["indented"]]
    forget()
    for function in functions:
        assert find(function.__code__).tree.name == function.__name__
    ((_, parsed),) = source._files.values()
    assert len(parsed) == 1  # the file, once
    assert find(made.method.__code__).private == "A"


SCRIPT = """
import constructs
from constructs import define
constructs.find_packages()
from oneflow_lite.compiler.source import NoSource, find
names = define('''
def f(x):
    "doc"
    assert x, lambda: 1
    return __debug__, lambda: 2 / 0
a, b = lambda: x.a, lambda: x.b
''')
find(names["f"].__code__), find(names["f"](1)[1].__code__)
try:
    print(find(names["b"].__code__).tree.body.attr)
except NoSource as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        ([], "b"),
        (["-O"], "b"),
        (["-OO"], "b"),
        (["-X", "no_debug_ranges"], "cannot be told from others on its line"),
    ],
)
def test_options_of_the_interpreter(options: list[str], printed: str) -> None:
    command = [sys.executable, *options, "-c", SCRIPT]
    folder = Path(__file__).parent
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip().endswith(printed)
