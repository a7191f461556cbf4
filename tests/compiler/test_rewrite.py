"""The questions that rewritten code asks a recorder; in all else the function stays as it was."""

from __future__ import annotations

import gc
import weakref
from contextlib import nullcontext
from types import FunctionType
from typing import Any

import pytest

from oneflow_lite.compiler import rewrite as module
from oneflow_lite.compiler.native import Native
from oneflow_lite.compiler.rewrite import Unsupported, rewrite
from oneflow_lite.compiler.source import NoSource
from tests.compiler.constructs import body, define, forget

COMPOSED = "returned slice exception call caller decorator both either value link put hold change"


class Told(Native):
    """Writes down each method of the protocol that is called, and with what."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []


def _told(name: str) -> Any:
    def method(self: Told, *args: Any, **kwargs: Any) -> Any:
        self.calls.append((name, *args, *([kwargs] if kwargs else [])))
        return getattr(Native, name)(self, *args, **kwargs)

    return method


PROTOCOL = [name for name in vars(Native) if name[0] != "_" and name not in COMPOSED.split()]
for _name in PROTOCOL:
    setattr(Told, _name, _told(_name))


class Box:
    """Something with an attribute and an item."""

    a = 1

    def __getitem__(self, key: Any) -> Any:
        return 5

    def __setitem__(self, key: Any, value: Any) -> None: ...

    def __delitem__(self, key: Any) -> None: ...

    def __enter__(self) -> tuple[int, int]:
        return 7, 8

    def __exit__(self, *error: Any) -> None: ...


def told(text: str, **names: Any) -> list[tuple[Any, ...]]:
    """Return what running the function `f` of a text tells its recorder; sites are left out."""
    recorder, function = Told(), define(text, **names)["f"]
    try:
        result = rewrite(function, recorder)(1)
        if hasattr(result, "send"):
            list(result)
    except Exception as error:
        recorder.calls.append(("raised out", type(error)))
    return [tuple(x for x in call if x is not function) for call in recorder.calls]


BOX, ERROR = Box(), KeyError("k")

TELLS: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("return len", [("name", "len", len)]),
    ("return nothing", [("raised out", NameError)]),
    ("global g; g = 2", [("store_global", "g", 2)]),
    (
        "global g; g = 2; g += 3",
        [
            ("store_global", "g", 2),
            ("name", "g", 2),
            ("inplace", "+", 2, 3),
            ("store_global", "g", 5),
        ],
    ),
    (
        "global g; g = 1; del g",
        [("store_global", "g", 1), ("unsupported", "del of a variable outside, or of a list")],
    ),
    ("global g; return (g := 4)", [("store_global", "g", 4)]),
    ("global g\n    for g in 'a': pass", [("iterate", "a"), ("store_global", "g", "a")]),
    (
        "global g\n    import json as g",
        [("unsupported", "an import that is bound outside")],
    ),
    (
        "import os.path, json as j",
        [("imported", "os", "", __import__("os")), ("imported", "json", "", __import__("json"))],
    ),
    ("import os.path as p", [("imported", "os.path", "", __import__("os").path)]),
    (
        "from os import path as p, sep",
        [("imported", "os", "path", __import__("os").path), ("imported", "os", "sep", "/")],
    ),
    ("return v.real", [("attribute", 1, "real")]),
    ("o.a = 4", [("name", "o", BOX), ("set_attribute", BOX, "a", 4)]),
    (
        "del o.a",
        [("name", "o", BOX), ("delete_attribute", BOX, "a"), ("raised out", AttributeError)],
    ),
    (
        "o.a += 4",
        [
            ("name", "o", BOX),
            ("attribute", BOX, "a"),
            ("inplace", "+", 1, 4),
            ("set_attribute", BOX, "a", 5),
        ],
    ),
    ("return o[v]", [("name", "o", BOX), ("item", BOX, 1)]),
    (
        "return o[v:, ::2]",
        [
            ("name", "o", BOX),
            ("made", (slice(1, None), slice(None, None, 2))),
            ("item", BOX, (slice(1, None), slice(None, None, 2))),
        ],
    ),
    ("o[1:v] = 3", [("name", "o", BOX), ("set_item", BOX, slice(1, 1), 3)]),
    ("del o[v]", [("name", "o", BOX), ("delete_item", BOX, 1)]),
    (
        "o[v] -= 4",
        [("name", "o", BOX), ("item", BOX, 1), ("inplace", "-", 5, 4), ("set_item", BOX, 1, 1)],
    ),
    ("return int('3')", [("name", "int", int), ("calling", int, "3")]),
    ("return dict(a=v)", [("name", "dict", dict), ("calling", dict, {"a": 1})]),
    (
        "return dict(*'', **{})",
        [
            ("name", "dict", dict),
            ("iterate", ""),
            ("made", {}),
            ("double_star", {}),
            ("calling", dict),
        ],
    ),
    ("return [*'ab', v]", [("iterate", "ab"), ("made", ["a", "b", 1])]),
    ("return {**{}, v: 2}", [("made", {}), ("double_star", {}), ("key", 1), ("made", {1: 2})]),
    ("return {v, 2}", [("key", 1), ("key", 2), ("made", {1, 2})]),
    ("return ()", [("made", ())]),
    (
        "return {x for x in 'a' if x}",
        [("iterate", "a"), ("truth", "a"), ("key", "a"), ("made", {"a"})],
    ),
    ("return {x: 1 for x in 'a'}", [("iterate", "a"), ("key", "a"), ("made", {"a": 1})]),
    (
        "return [a for a, b in v and ['cd']]",
        [
            ("truth", 1),
            ("made", ["cd"]),
            ("iterate", ["cd"]),
            ("iterate", "cd"),
            ("made", ["c"]),
        ],
    ),
    ("return v + 2 * 3", [("binary", "*", 2, 3), ("binary", "+", 1, 6)]),
    ("return -v, -1", [("unary", "-", 1), ("made", (-1, -1))]),
    ("v -= 3", [("inplace", "-", 1, 3)]),
    ("return not v", [("unary", "not", 1)]),
    ("if not v: pass", [("truth", 1)]),
    ("return v < 2", [("compare", "<", 1, 2)]),
    ("if v not in 'a': pass", [("compare", "not in", 1, "a"), ("raised out", TypeError)]),
    ("return v >= 1 < 2", [("compare", ">=", 1, 1), ("truth", True), ("compare", "<", 1, 2)]),
    ("if v > 2 > 3: pass", [("compare", ">", 1, 2), ("truth", False)]),
    (
        "if 0 < v != 3: pass",
        [("compare", "<", 0, 1), ("truth", True), ("compare", "!=", 1, 3), ("truth", True)],
    ),
    ("return v and 2 and 3", [("truth", 1), ("truth", 2)]),
    ("return v or 2", [("truth", 1)]),
    ("return 5 if v or 2 else 6", [("truth", 1)]),
    ("while v: v = 0", [("truth", 1), ("truth", 0)]),
    ("while True: break", []),
    ("assert v, 'message'", [("truth", 1)]),
    (
        "a, (b, *c) = v, 'xyz'",
        [("made", (1, "xyz")), ("iterate", (1, "xyz")), ("iterate", "xyz"), ("made", ["y", "z"])],
    ),
    (
        "for a, *b in ['xyz']: pass",
        [("made", ["xyz"]), ("iterate", ["xyz"]), ("iterate", "xyz"), ("made", ["y", "z"])],
    ),
    ("yield from 'ab'", [("iterate", "ab")]),
    ("return f'{v!r:>{3}}'", [("format", 3, "", ""), ("format", 1, "r", ">3")]),
    ("with o as (a, b): pass", [("name", "o", BOX), ("context", BOX), ("iterate", (7, 8))]),
    ("raise e from None", [("name", "e", ERROR), ("raised", ERROR), ("raised out", KeyError)]),
    (
        "try: raise e\n    except KeyError: pass",
        [
            ("tries", False),
            ("name", "e", ERROR),
            ("raised", ERROR),
            ("name", "KeyError", KeyError),
            ("caught", ERROR),
        ],
    ),
    (
        "try: raise e\n    except KeyError as x: pass",
        [
            ("tries", False),
            ("name", "e", ERROR),
            ("raised", ERROR),
            ("name", "KeyError", KeyError),
            ("caught", ERROR),
        ],
    ),
    ("return locals()", [("name", "locals", locals), ("calling", locals)]),
    ("return eval('v + 1')", [("name", "eval", eval), ("calling", eval, "v + 1")]),
    (
        "return dir(v)[:0]",
        [
            ("name", "dir", dir),
            ("calling", dir, 1),
            ("item", dir(1), slice(None, 0)),
        ],
    ),
    ("class C: x: len", [("unsupported", "a class statement")]),
    (
        "global g\n    def g(): pass",
        [("unsupported", "a function that is bound outside")],
    ),
    ("yield v", [("plain", 1)]),
    ("match v:\n        case int(): return len", [("unsupported", "a match statement")]),
    (
        "v: int; o.a: int",
        [("unsupported", "an annotation of an attribute or item without a value")],
    ),
]


@pytest.mark.parametrize(("text", "expected"), TELLS, ids=[text for text, _ in TELLS])
def test_tells_the_recorder(text: str, expected: list[tuple[Any, ...]]) -> None:
    vars(BOX).clear()
    assert told(body(text), o=BOX, e=ERROR) == expected


def test_every_method_of_the_protocol_is_told() -> None:
    """The three about variables of functions around are in the next test."""
    names = {name for _, calls in TELLS for name, *_ in calls} - {"raised out"}
    assert names | {"free", "store_free"} == set(PROTOCOL)


@pytest.mark.parametrize("leave", ["return len", "break", "continue"])
def test_a_finally_clause_that_leaves_is_not_observed(leave: str) -> None:
    calls = told(body("for x in 'a':", "  try: len", f"  finally: {leave}"))
    assert calls[0] == ("iterate", "a")
    assert calls[1:] == [("unsupported", "a finally clause with return, break or continue")]


def test_variables_around_are_told_and_those_of_the_unit_are_not() -> None:
    """A variable that functions inside see is plain; to them it is around."""
    text = """
def h():
    x, y = 1, 2
    def f(v):
        nonlocal x
        own = 5
        def inner():
            nonlocal x, own
            own += y
            x = own
            return lambda: (own, x)
        g = inner()
        x += 1
        for x in [8]: pass
        return g
    return f
f = h()
"""
    calls = told(text)
    inner = calls[1][1]
    assert [call[:3] for call in calls if call[0] != "made"] == [
        ("plain", 5),
        ("calling", inner),
        ("free", "x", 7),
        ("inplace", "+", 7),
        ("store_free", "x", 8),
        ("iterate", [8]),
        ("store_free", "x", 8),
    ]
    recorder = Told()
    rewrite(inner, recorder)()
    assert [call[:1] + call[2:] for call in recorder.calls[:-1]] == [
        ("free", "own", 7),
        ("free", "y", 2),
        ("inplace", 7, 2),
        ("store_free", "own", 9),
        ("free", "own", 9),
        ("store_free", "x", 9),
    ]
    captured = told(body("for v in [v]: pass", "return lambda: v"))
    assert [call for call in captured if call[0] == "plain"] == [("plain", 1)]


def test_names_in_classes_are_told_mangled() -> None:
    text = """
class _A:
    def m(self, v):
        global __g
        __g = self.__x = v
        del self.__x
        return __g
f = _A.m.__get__(BOX).__func__
def g(v): return f(BOX, v)
"""
    recorder = Told()
    rewrite(define(text, BOX=BOX)["f"], recorder)(BOX, 1)
    assert [call[0:1] + call[-2:] for call in recorder.calls] == [
        ("store_global", "_A__g", 1),
        ("set_attribute", "_A__x", 1),
        ("delete_attribute", BOX, "_A__x"),
        ("name", "_A__g", 1),
    ]


def test_functions_inside_stay_as_they_were() -> None:
    text = body("def g(a=len): return [a, lambda: int]", "return g()[1], g")
    recorder = Told()
    inner, g = rewrite(define(text)["f"], recorder)(1)
    assert [call[2] for call in recorder.calls if call[0] == "name"] == ["len"]
    assert ("made", g) in recorder.calls
    assert inner.__closure__ is g.__closure__ is None
    assert inner() is int
    assert ("made", inner) not in recorder.calls


def test_a_function_made_in_a_rewritten_one_is_rewritten_by_itself() -> None:
    """To it the variables of the one that made it are outside."""
    text = body("x = [v]", "def g(n):", "  return lambda: (x, n, lambda: (x, n, v))", "return g")
    g = rewrite(define(text)["f"], Told())(1)
    inner, last, end = rewrite(g, Told())(2), Told(), Told()
    first, second, innermost = rewrite(inner, last)()
    assert (first, second) == ([1], 2)
    assert [call[1:] for call in last.calls if call[0] == "free"] == [
        (inner, "x", [1]),
        (inner, "n", 2),
    ]
    assert rewrite(innermost, end)() == ([1], 2, 1)
    assert [call[2] for call in end.calls if call[0] == "free"] == ["x", "n", "v"]


def test_functions_in_what_is_not_observed_are_rewritten_by_themselves() -> None:
    lines = [
        "class C:",
        "  x: int",
        "  def m(self): return len",
        "match v:",
        "  case 1: n = lambda: len",
    ]
    C, n, h = rewrite(define(body(*lines, "return C, n, lambda: len"))["f"], Native())(1)
    for function in (C.m, n, h):
        recorder = Told()
        rewrite(function, recorder)(*[1] * function.__code__.co_argcount)
        assert [call[0] for call in recorder.calls] == ["name"]


@pytest.mark.parametrize("where", ["len", "list(len for _ in 'a')[0]"])
def test_a_name_in_a_comprehension_may_be_another_one_outside(where: str) -> None:
    """From 3.12 on variables of comprehensions are among those of the function."""
    assert ("name", "len", len) in told(body(f"return [len for len in v and 'a'], {where}"))
    own = [f"len = {where.replace('len', 'v')}", "return [len for len in 'a'], len"]
    assert "name" not in [call[0] for call in told(body(*own)) if call[2:] == (len,)]


def test_a_decorator_is_called_by_the_recorder() -> None:
    text = body("@int.__class__", "@o.m(2)", "def g(): pass")
    names = [call[0] for call in told(text, o=type("O", (), {"m": lambda n: lambda g: g}))]
    assert names == [
        "name",
        "attribute",
        "name",
        "attribute",
        "calling",
        "made",
        "calling",
        "calling",
    ]


def test_no_name_of_the_rewriter_stays_behind() -> None:
    lines = ["(a, b), c = x = [v, 2], 3", "for d, (e, f) in [[1, [2, 3]]]: pass"]
    lines += ["with o as (g, (h, i)): yield", "global j; import os as j; yield"]
    text = body(*lines)
    new = rewrite(define(text, o=nullcontext((1, (2, 3))))["f"], Native())
    running = new([1, 2])
    for _ in range(2):
        next(running)
        assert (
            "".join(sorted(set(running.gi_frame.f_locals) - {"__recorder__", "__site__"}))
            == "abcdefghivx"
        )


def test_the_new_function_is_like_the_old_one() -> None:
    text = """
class A:
    @(lambda f:
      f)
    def f(self, a, b=[1], *, c={2}) -> int:
        'doc'
        return __class__, a, b, c
"""
    A = define(text)["A"]
    new = rewrite(A.f, Native())
    for name in ("__globals__", "__defaults__", "__kwdefaults__"):
        assert getattr(new, name) is getattr(A.f, name)
    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        assert getattr(new, name) == getattr(A.f, name)
    for name in ("co_firstlineno", "co_filename", "co_name", "co_qualname", "co_varnames"):
        assert getattr(new.__code__, name) == getattr(A.f.__code__, name)
    assert new(A(), 3) == (A, 3, [1], {2})


def test_code_is_compiled_once_and_freed_with_the_function() -> None:
    names = define("def f(v):\n    def g(): return v\n    return g\n")
    first, second = rewrite(names["f"], Native()), rewrite(names["f"], Native())
    inner = [rewrite(names["f"](i), Native()) for i in range(3)]
    assert first.__code__ is second.__code__
    assert len({id(g.__code__) for g in inner}) == 1
    assert [g() for g in inner] == [0, 1, 2]
    size = len(module._codes)
    code, old = weakref.ref(first.__code__), weakref.ref(names["f"].__code__)
    del first, second, inner
    names.clear()
    forget()
    gc.collect()
    assert code() is old() is None
    assert len(module._codes) < size


def test_equal_code_of_two_files_stays_apart() -> None:
    one, two = (define("def f(v): return 1 / v\n")["f"] for _ in range(2))
    assert one.__code__ == two.__code__
    names = {rewrite(f, Native()).__code__.co_filename for f in (one, two)}
    assert names == {one.__code__.co_filename, two.__code__.co_filename}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("async def f(v): return v", "an async function"),
        ("def f(v): return (x async for x in v)", "an async comprehension"),
        (f"def f(v): return {'+'.join('v' * 700)}", "an expression nested too deeply"),
    ],
)
def test_unsupported(text: str, message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        rewrite(define(text + "\n")["f"], Native())


def test_no_source() -> None:
    names: dict[str, Any] = {}
    exec("def f(v): pass", names)
    with pytest.raises(NoSource, match="'f' has no source lines"):
        rewrite(names["f"], Native())


def test_trees_of_files_stay_as_they_are() -> None:
    """A function and one inside of it share a tree; each is rewritten from it."""
    text = body("def g(a): return [b for b, c in a if b and c]", "return g, g([(v, 1)])")
    f = define(text)["f"]
    for _ in range(2):
        new, result = rewrite(f, Native())(2)
        assert result == [2]
        plain, _ = f(2)
        assert rewrite(plain, Native())([(3, 4), (0, 1)]) == [3]
        module._codes.clear()


def test_a_recorder_may_change_what_it_is_asked() -> None:
    class Other(Native):
        def truth(self, value: Any) -> bool:
            return not value

        def iterate(self, values: Any) -> Any:
            return [values]

        def store_global(self, site: FunctionType, name: str, value: Any) -> Any:
            return value + 1

        def made(self, value: Any) -> Any:
            return (value,) if isinstance(value, list) else value

    text = body(
        "global g", "g = v and 5", "for g in 10: pass", "return g, [v], v or 7, [x for x in 4]"
    )
    names = define(text)
    assert rewrite(names["f"], Other())(1) == (11, ([1],), 7, ([4],))
    assert names["g"] == 11
