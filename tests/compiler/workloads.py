"""Uses of the standard library that run rewritten and then plainly: `python workloads.py`.

A file for any interpreter: it loads the three modules under test by their path, enters whatever
functions of the library and of this file are called, and prints what it found as JSON. The
constructs of `constructs.py` run with them.
"""

from __future__ import annotations

import builtins
import gc
import json
import os
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import constructs

constructs.find_packages()

from oneflow_lite.compiler.native import Native  # noqa: E402
from oneflow_lite.compiler.rewrite import Unsupported, rewrite  # noqa: E402
from oneflow_lite.compiler.source import NoSource  # noqa: E402

LIBRARY = os.path.dirname(os.__file__)


class Entering(Native):
    """Does what CPython does, and rewrites each function of the library that is called."""

    def __init__(self) -> None:
        self.entered: set[types.CodeType] = set()
        self.refused: dict[str, str] = {}
        self.native: set[str] = set()

    def name(self, site: types.FunctionType, name: str, value: Any) -> Any:
        assert value is site.__globals__.get(name, vars(builtins).get(name))
        return value

    def free(self, site: types.FunctionType, name: str, value: Any) -> Any:
        cells = dict(zip(site.__code__.co_freevars, site.__closure__ or (), strict=True))
        assert value is cells[name].cell_contents
        return value

    def enter(self, function: Any) -> Any:
        """The function rewritten, where it is one of the library or of this file."""
        if type(function) is types.MethodType:
            return types.MethodType(self.enter(function.__func__), function.__self__)
        if type(function) is not types.FunctionType:
            return function
        code = function.__code__
        inside = code.co_filename.startswith((LIBRARY, __file__, "<construct"))
        if not inside:
            return function
        try:
            new = rewrite(function, self)
        except (NoSource, Unsupported) as error:
            self.refused[code.co_qualname] = str(error)
            return function
        if code not in self.entered and len(self.entered) % 3 == 0:  # to disassemble takes long
            steps = constructs.native(new.__code__)
            self.native |= {f"{code.co_qualname}: {step}" for step in steps}
        self.entered.add(code)
        return new

    def calling(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        kind = type(function)
        if isinstance(function, type):
            if kind.__call__ is not type.__call__:
                return super().calling(self.enter(kind.__call__), function, *args, **kwargs)
            init = function.__init__
            if function.__new__ is object.__new__ and type(init) is types.FunctionType:
                made = object.__new__(function)
                self.enter(init)(made, *args, **kwargs)
                return [made].pop
        if type(kind.__call__) is types.FunctionType:
            return super().calling(self.enter(kind.__call__), function, *args, **kwargs)
        return super().calling(self.enter(function), *args, **kwargs)

    def attribute(self, owner: Any, name: str) -> Any:
        found = getattr(type(owner), name, None)
        if type(found) is property and found.fget is not None:
            return self.enter(found.fget)(owner)
        return super().attribute(owner, name)

    def compare(self, symbol: str, left: Any, right: Any) -> Any:
        return self.special(
            {"==": "__eq__", "<": "__lt__"}.get(symbol), super().compare, symbol, left, right
        )

    def binary(self, symbol: str, left: Any, right: Any) -> Any:
        names = {"+": "__add__", "-": "__sub__", "*": "__mul__", "/": "__truediv__", "%": "__mod__"}
        return self.special(names.get(symbol), super().binary, symbol, left, right)

    def special(self, name: str | None, native: Any, symbol: str, left: Any, right: Any) -> Any:
        """An operator by its method, where both operands are of one class and it is no built-in."""
        method = getattr(type(left), name, None) if name else None
        if type(left) is type(right) and type(method) is types.FunctionType:
            result = self.enter(method)(left, right)
            if result is not NotImplemented:
                return result
        return native(symbol, left, right)


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a call, or the exception with its lines in files of users."""
    try:
        result = function(*arguments)
        if isinstance(result, Iterator):
            result = list(result)
        return re.sub(r"0x[0-9a-f]+", "0x", repr(result))
    except Exception as error:
        lines, traceback = [], error.__traceback__
        while traceback is not None:
            code = traceback.tb_frame.f_code
            ours = code.co_filename.startswith(str(constructs.ROOT / "oneflow_lite")) or (
                code.co_qualname.startswith(("Entering.", "outcome"))
                and code.co_filename == __file__
            )
            if not ours and code.co_filename != "<string>":
                lines.append(
                    (code.co_name, os.path.basename(code.co_filename), traceback.tb_lineno)
                )
            traceback = traceback.tb_next
        return [type(error).__name__, re.sub(r"0x[0-9a-f]+", "0x", str(error)), lines]


def workloads() -> dict[str, Callable[[], Any]]:
    """The functions of this file that are workloads, and one for each of the uses."""
    found = {name: value for name, value in globals().items() if name.startswith("work_")}
    setup = ""
    for line in USES:
        if line.startswith(" "):
            text = f"def use():\n    {setup}\n    return {line.strip()}\n"
            found[f"{setup}: {line.strip()}"] = constructs.define(text, **globals())["use"]
        else:
            setup = line
    return found


def main() -> None:
    """Run all workloads both ways."""
    gc.disable()  # a third of the time otherwise, for the trees of a hundred files
    recorder, different = Entering(), []
    for name, function in workloads().items():
        observed = outcome(recorder.call, function)
        plain = outcome(function)
        if observed != plain:
            different.append([name, plain, observed])
    different += constructs.differences(rewrite, recorder)
    report = {
        "workloads": len(workloads()),
        "constructs": len(constructs.CONSTRUCTS),
        "entered": len(recorder.entered),
        "refused": recorder.refused,
        "native": sorted(recorder.native),
        "different": different,
    }
    print(json.dumps(report))


TEXT = """Beautiful is better than ugly.  Explicit is better than implicit.
Simple is better than complex.\tComplex is better than complicated.

Flat is better than nested. Sparse is better than dense. Readability-counts."""
NUMBERS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9]


def work_textwrap() -> Any:
    import textwrap

    yes = [textwrap.wrap(TEXT, width, break_long_words=False) for width in (12, 30)]
    short = textwrap.shorten(TEXT, 40, placeholder=" […]")
    return yes, short, textwrap.indent(TEXT, "> "), textwrap.dedent("   a\n     b\n   c")


def work_heapq() -> Any:
    import heapq

    heap = list(NUMBERS)
    heapq.heapify(heap)
    merged = list(heapq.merge([1, 4], [2, 3], key=lambda x: x, reverse=False))
    return heapq.nsmallest(3, NUMBERS, key=lambda x: -x), heapq.nlargest(3, NUMBERS), merged, heap


def python_module(name: str) -> Any:
    """A module of the library without its accelerator in C."""
    import importlib
    import importlib.util

    spec = importlib.util.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    hidden = {key: sys.modules.pop(key, None) for key in (f"_{name}",)}
    sys.modules[f"_{name}"] = None
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[f"_{name}"]
        sys.modules.update({key: value for key, value in hidden.items() if value is not None})
    return module


PURE_HEAPQ = python_module("heapq")
PURE_BISECT = python_module("bisect")
PURE_OPERATOR = python_module("operator")
PURE_FUNCTOOLS = python_module("functools")


def work_pure_heapq() -> Any:
    h, heap = PURE_HEAPQ, []
    for x in NUMBERS:
        h.heappush(heap, x)
    return h.heapreplace(heap, 7), h.heappushpop(heap, 0), [h.heappop(heap) for _ in range(5)]


def work_pure_bisect() -> Any:
    b, kept = PURE_BISECT, []
    for x in NUMBERS:
        b.insort(kept, x)
        b.insort_left(kept, -x, key=lambda v: -v)
    return kept, b.bisect_left(sorted(NUMBERS), 5), b.bisect_right(sorted(NUMBERS), 5, 2, 9)


def work_pure_functools() -> Any:
    f = PURE_FUNCTOOLS
    calls = []

    @f.lru_cache(maxsize=2)
    def square(x: int) -> int:
        calls.append(x)
        return x * x

    values = [square(x) for x in (1, 2, 1, 3, 2)]
    add = f.partial(lambda a, b, c=0: (a, b, c), 1, c=3)
    return (
        values,
        calls,
        tuple(square.cache_info()),
        add(2),
        f.reduce(lambda a, b: a * b, NUMBERS),
        f.cmp_to_key(lambda a, b: b - a)(1) < f.cmp_to_key(lambda a, b: a)(2),
    )


def work_functools_dispatch() -> Any:
    import functools

    @functools.singledispatch
    def show(x: object) -> str:
        return "object"

    @show.register
    def _(x: int) -> str:
        return f"int {x}"

    @show.register(list)
    def _(x: list) -> str:
        return "list of " + ", ".join(show(item) for item in x)

    @functools.total_ordering
    class Size:
        def __init__(self, n: int) -> None:
            self.n = n

        def __lt__(self, other: Size) -> bool:
            return self.n < other.n

        def __eq__(self, other: object) -> bool:
            return self.n == other.n

    return show([1, "a"]), Size(1) >= Size(2), Size(3) > Size(2), sorted(show.registry, key=str)


def work_functools_cached_property() -> Any:
    import functools

    class Box:
        @functools.cached_property
        def value(self) -> int:
            return 42

    box = Box()
    return box.value, vars(box), functools.wraps(work_heapq)(lambda: 0).__name__


def work_difflib() -> Any:
    import difflib

    a, b = TEXT.split(), TEXT.replace("better", "worse").split()[2:]
    matcher = difflib.SequenceMatcher(None, a, b)
    one = (
        matcher.ratio(),
        matcher.quick_ratio(),
        matcher.get_opcodes(),
        difflib.get_close_matches("apel", ["ape", "apple", "x"]),
    )
    return (
        one,
        list(difflib.unified_diff(a, b, "x", "y", n=1)),
        list(difflib.ndiff(a[:6], b[:6])),
        list(difflib.context_diff(a, b)),
    )


def work_difflib_html() -> Any:
    import difflib

    difflib.HtmlDiff._default_prefix = 0
    return difflib.HtmlDiff(wrapcolumn=20).make_table(
        TEXT.splitlines(), TEXT.upper().splitlines(), context=True
    )


def work_json_encoder() -> Any:
    import json.encoder as e

    value = {"a": [1, 2.5, None, True, float("inf")], "é": {"x": "\n\u2028"}, "z": (1,), 3: False}
    text = "".join(e.JSONEncoder(indent=2, sort_keys=False).iterencode(value))
    compact = e._make_iterencode(
        {},
        e.JSONEncoder().default,
        e.py_encode_basestring_ascii,
        None,
        repr,
        ":",
        ",",
        False,
        True,
        False,
    )
    return text, "".join(compact(value, 0)), e.py_encode_basestring('\x01"é')


def work_json_decoder() -> Any:
    import json.decoder as d
    import json.scanner as s

    decoder = d.JSONDecoder()
    decoder.parse_string, decoder.parse_object, decoder.parse_array = (
        d.py_scanstring,
        d.JSONObject,
        d.JSONArray,
    )
    decoder.scan_once = s.py_make_scanner(decoder)
    return decoder.decode(' {"a": [1, -2.5e3, "\\u00e9\\n", {}], "b": null, "c": [true, false]} ')


def work_json_decoder_error() -> Any:
    import json.decoder as d
    import json.scanner as s

    decoder = d.JSONDecoder()
    decoder.parse_string, decoder.parse_object, decoder.parse_array = (
        d.py_scanstring,
        d.JSONObject,
        d.JSONArray,
    )
    decoder.scan_once = s.py_make_scanner(decoder)
    return decoder.decode('{"a": [1, 2,, 3]}')


def work_csv() -> Any:
    import csv
    import io

    out = io.StringIO()
    writer = csv.DictWriter(out, ["a", "b"], restval="-", extrasaction="ignore")
    writer.writeheader()
    writer.writerows([{"a": 1, "b": "x,y"}, {"a": 2, "c": 3}])
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    sniffed = csv.Sniffer().sniff("a;b;c\n1;2;3\n4;5;6\n")
    return rows, sniffed.delimiter, csv.Sniffer().has_header("name,n\nx,1\ny,2\n")


def pure_datetime() -> Any:
    if sys.version_info >= (3, 12):
        import _pydatetime

        return _pydatetime
    return python_module("datetime")


DATETIME = pure_datetime()


def work_datetime() -> Any:
    d = DATETIME
    a, b = d.datetime(2024, 2, 29, 12, 30, 5, 7), d.date(2023, 12, 31)
    delta = d.timedelta(days=3, hours=5, microseconds=9) * 2
    one = (
        str(a + delta),
        a.isoformat(" ", "minutes"),
        b.isocalendar()[1],
        str(a - d.datetime(2020, 1, 1)),
        b.strftime("%d %j"),
    )
    two = (
        d.datetime.fromisoformat("2024-02-29T12:30:05+02:00").utctimetuple().tm_hour,
        a < a + delta,
        repr(delta),
        a.replace(year=2028).ctime(),
    )
    return (
        one,
        two,
        d.timezone(d.timedelta(hours=-3, minutes=-30), "x").tzname(None),
        d.date.fromordinal(738000).weekday(),
        delta // d.timedelta(hours=7),
    )


def work_re_parser() -> Any:
    from re import _compiler, _parser

    patterns = [
        r"(?P<a>x+)|[^a-z\d]*?(?=b)(?<!c)\bq{2,3}",
        r"(?i:a|b|c)(?:de|df)\1?".replace(r"\1", "(z)"),
        r"\N{DIGIT ONE}[\w-]$",
    ]
    parsed = [_parser.parse(pattern) for pattern in patterns]
    template = getattr(_parser, "parse_template", None)
    codes = [_compiler._code(p, p.state.flags) for p in parsed]
    return [repr(p) for p in parsed], codes, [p.getwidth() for p in parsed], template is None


def work_ast_unparse() -> Any:
    import ast
    import pathlib

    source = pathlib.Path(ast.__file__).read_text()
    tree = ast.parse(source[: source.index("class NodeVisitor")] + MORE)
    return ast.unparse(tree), ast.dump(tree.body[-1], indent=1), ast.get_docstring(tree)


MORE = '''
@a.b(1, *c, **d)
async def f(x: int, /, y=2, *z, k: "s" = 3, **w) -> None:
    """doc"""
    async with a as b, c: await d
    for i, *j in k: x[i:j, ::2] += -1 ** 2
    else: del q, r.s
    try: raise E from None
    except (A, B) as e: global g; g = lambda *a, b=1: (yield)
    finally: assert x, f"{a!r:>{b}} {{}} {c=}"
    match p:
        case {"a": [1, *_], **rest} | C(x, y=2) if z: pass
    return {**a, b: {c for d in e if f}} if not (g and h or i) else (yield from j) @ k
'''


def work_ast_transform() -> Any:
    import ast

    class Swap(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return ast.copy_location(ast.Constant(len(node.id)), node)

        def visit_Expr(self, node: ast.Expr) -> Any:
            return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    tree = ast.fix_missing_locations(Swap().visit(ast.parse("1; foo + bar(x); y = 2")))
    return (
        ast.dump(tree),
        [type(n).__name__ for n in ast.walk(tree)],
        ast.get_source_segment("a + b", ast.parse("a + b").body[0]),
    )


def work_tokenize() -> Any:
    import io
    import tokenize

    source = "def f(a, b=1):\n    '''x\n    y'''\n    return a @ b != 0x1F # c\n"
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    return (
        [tuple(t)[:2] for t in tokens],
        tokenize.untokenize(tokens),
        tokenize.detect_encoding(io.BytesIO(b"# coding: latin-1\n").readline),
    )


def work_urllib() -> Any:
    from urllib import parse as p

    one = (
        p.urlparse("https://u:p@Host.org:80/a/b;c?d=1&e=2#f"),
        p.urljoin("http://a/b/c/d", "../e?x#y"),
        p.quote("a b/é&"),
        p.unquote("a%20%C3%A9"),
    )
    two = (
        p.parse_qs("a=1&b=2&a=3&c=", keep_blank_values=True),
        p.urlencode({"a": [1, 2], "b c": "é"}, doseq=True),
        p.urlsplit("//x:1/y").port,
    )
    return (
        one,
        one[0].hostname,
        one[0].geturl(),
        two,
        p.urldefrag("a#b"),
        p.parse_qsl("x=1;y", separator=";"),
        p.quote_plus("a b"),
        p.unquote_to_bytes("%ff"),
    )


class _Tags:
    """A parser that writes down what it meets."""

    def feed(self, text: str) -> list:
        from html.parser import HTMLParser

        seen: list = []

        class Parser(HTMLParser):
            def handle_starttag(self, tag: str, attrs: list) -> None:
                seen.append(("<", tag, attrs, self.getpos()))

            def handle_endtag(self, tag: str) -> None:
                seen.append((">", tag))

            def handle_data(self, data: str) -> None:
                seen.append(data)

            def handle_comment(self, data: str) -> None:
                seen.append(("!", data))

            def handle_decl(self, decl: str) -> None:
                seen.append(decl)

        parser = Parser()
        parser.feed(text)
        parser.close()
        return seen


def work_html_parser() -> Any:
    return _Tags().feed(
        "<!DOCTYPE html><p class=x id='y' z>a&amp;b<br/><!-- c --></p><script>if (a<b) {}</script>"
        '<a href="q?x&lt">&#65;'
    )


def work_email() -> Any:
    from email import message_from_string, policy
    from email.mime.multipart import MIMEMultipart
    from email.mime.text import MIMEText

    message = MIMEMultipart("mixed", boundary="BOUNDARY")
    message["Subject"], message["From"], message["To"] = "héllo", "a@b.org", "Bob <bob@x.y>, c@d.e"
    message.attach(MIMEText("text é", "plain", "utf-8"))
    message.attach(MIMEText("<b>x</b>", "html"))
    text = message.as_string()
    parsed = message_from_string(text, policy=policy.default)
    return (
        text,
        parsed["to"].addresses[0].username,
        [part.get_content_type() for part in parsed.walk()],
        parsed.get_body(("html",)).get_content(),
    )


def work_email_message() -> Any:
    from email.message import EmailMessage

    m = EmailMessage()
    m["Subject"], m["Date"] = "x", "Mon, 20 Nov 1995 19:12:08 -0500"
    m.set_content("hello\n")
    m.add_alternative("<p>hello</p>", subtype="html")
    del m["subject"]
    return (
        m.items()[:2],
        m.is_multipart(),
        m["date"].datetime.year,
        [p.get_content() for p in m.iter_parts()],
    )


def work_email_error() -> Any:
    from email.message import EmailMessage

    m = EmailMessage()
    m["Subject"] = "a"
    m["Subject"] = "b"


def work_copy() -> Any:
    import copy

    class Node:
        def __init__(self) -> None:
            self.me, self.items = self, [1, {2: (3, [4])}]

    node = copy.deepcopy(Node())
    shared = [[1], {"a": {2}}]
    return (
        node.me is node,
        node.items,
        copy.copy(shared)[0] is shared[0],
        copy.deepcopy((1, (2, [3]))),
        copy.deepcopy({1: shared}),
    )


def work_copy_error() -> Any:
    import copy

    return copy.deepcopy(
        iter(sys.__dict__.get("nothing", "x").__class__.__mro__).__reduce__()[0].__self__
    )


def work_copyreg() -> Any:
    import copyreg

    class Slotted:
        __slots__ = ("__b", "a")

        def __init__(self) -> None:
            self.a, self.__b = 1, 2

    new = copyreg.__newobj__(Slotted)
    return (
        copyreg._slotnames(Slotted),
        type(new).__name__,
        copyreg.__reduce_ex__(_Tags(), 1)[1][0].__name__,
    )


def work_copyreg_error() -> Any:
    import copyreg

    class Slotted:
        __slots__ = ("a",)

    return copyreg.__reduce_ex__(Slotted(), 1)


def work_decimal() -> Any:
    import _pydecimal as d

    with d.localcontext() as context:
        context.prec = 20
        a, b = d.Decimal("3.14159"), d.Decimal(-2)
        one = (
            a + b,
            a * b,
            a / b,
            a % b,
            a // b,
            a**3,
            a.sqrt(),
            b.exp(),
            a.ln(),
            a.quantize(d.Decimal("0.01")),
            a < b,
            str(a.log10()),
        )
        return (
            one,
            format(a, "+012.3f"),
            a.to_eng_string(),
            b.copy_abs(),
            a.fma(2, 3),
            round(a, 2),
            int(a),
            hash(a),
            d.Decimal((1, (1, 2), -1)),
            d.Decimal("NaN").is_nan(),
            a.as_integer_ratio(),
            a.next_plus(),
            max(a, b),
            f"{a:e}",
        )


def work_collections() -> Any:
    from collections import ChainMap, Counter, UserDict, UserList, UserString, deque

    count = Counter("abracadabra")
    chain = ChainMap({"a": 1}, {"a": 2, "b": 3}).new_child({"c": 4})
    one = (
        count.most_common(2),
        count + Counter("bz"),
        count - Counter("aaa"),
        sorted(count.elements()),
        count.total(),
        +count,
        count & Counter("ab"),
    )
    return (
        one,
        dict(chain),
        chain.maps,
        len(chain),
        chain.parents["a"],
        UserList([3, 1]) + [2],
        UserString("ab").upper(),
        UserDict(a=1) | {"b": 2},
        deque([1], 3),
    )


def work_collections_abc() -> Any:
    from collections import abc

    class Words(abc.MutableSequence):
        def __init__(self, *w: str) -> None:
            self.w = list(w)

        def __getitem__(self, i: Any) -> Any:
            return self.w[i]

        def __setitem__(self, i: Any, v: Any) -> None:
            self.w[i] = v

        def __delitem__(self, i: Any) -> None:
            del self.w[i]

        def __len__(self) -> int:
            return len(self.w)

        def insert(self, i: int, v: Any) -> None:
            self.w.insert(i, v)

    words = Words("a", "b")
    words.append("c")
    words.extend(words)
    words.reverse()
    words += ["d"]
    words.remove("b")
    return (
        words.w,
        words.index("a"),
        words.count("c"),
        words.pop(),
        "a" in words,
        list(reversed(words)),
    )


def work_pure_ordered_dict() -> Any:
    module = python_module("collections")
    d = module.OrderedDict([("a", 1), ("b", 2)])
    d["c"] = 3
    d.move_to_end("a")
    d.move_to_end("c", last=False)
    del d["b"]
    return (
        list(d.items()),
        d.popitem(),
        d.setdefault("q", 5),
        list(reversed(d)),
        d == {"c": 3, "q": 5},
    )


def work_contextlib() -> Any:
    import contextlib
    import io

    log: list = []

    @contextlib.contextmanager
    def step(name: str) -> Iterator[str]:
        log.append(f"in {name}")
        try:
            yield name
        except KeyError as error:
            log.append(repr(error))
        finally:
            log.append(f"out {name}")

    with step("a") as a, contextlib.ExitStack() as stack, contextlib.suppress(ValueError):
        stack.enter_context(step("b"))
        stack.callback(log.append, "callback")
        stack.push(lambda *exc: log.append(exc[0]))
        log.append(a)
        raise KeyError("x")
    out = io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.closing(io.StringIO()) as f,
        contextlib.nullcontext(3) as three,
    ):
        print("hello", f.closed, three)
    return log, out.getvalue()


def work_contextlib_error() -> Any:
    import contextlib

    @contextlib.contextmanager
    def twice() -> Iterator[int]:
        yield 1
        yield 2

    with twice():
        pass


def work_dataclasses() -> Any:
    import dataclasses as d

    @d.dataclass(order=True)
    class Point:
        x: int
        y: int = 2
        tags: list = d.field(default_factory=list, compare=False, repr=False)
        area: int = d.field(init=False)

        def __post_init__(self) -> None:
            self.area = self.x * self.y

    p = Point(3)
    return (
        p,
        d.asdict(p),
        d.astuple(p),
        d.replace(p, x=5),
        [f.name for f in d.fields(p)],
        Point(1) < p,
        d.is_dataclass(p),
    )


def work_dataclasses_error() -> Any:
    import dataclasses as d

    @d.dataclass
    class Bad:
        x: int = 1
        y: list = d.field(default=[])


def work_dataclasses_frozen() -> Any:
    import dataclasses as d

    @d.dataclass(frozen=True)
    class Cold:
        x: int = 1

    Cold().x = 2


def work_enum() -> Any:
    import enum

    class Color(enum.Enum):
        RED = 1
        GREEN = enum.auto()
        CRIMSON = RED

        @property
        def lower(self) -> str:
            return self.name.lower()

    class Flags(enum.Flag):
        A = enum.auto()
        B = enum.auto()
        AB = A | B

    return (
        Color(1),
        list(Color),
        Color["GREEN"].lower,
        Color.CRIMSON is Color.RED,
        Flags.A | Flags.B,
        ~Flags.A,
        list(Flags.AB),
        Flags.A in Flags.AB,
        Color.__members__,
    )


def work_enum_error() -> Any:
    import enum

    class Color(enum.Enum):
        RED = 1

    return Color(7)


def work_inspect() -> Any:
    import inspect

    def f(a: int, /, b: str = "x", *c: int, d: float, e: int = 1, **g: Any) -> None:
        """Doc.

        More."""

    s = inspect.signature(f)
    bound = s.bind(1, d=2, z=3)
    bound.apply_defaults()
    return (
        str(s),
        bound.arguments,
        inspect.getdoc(f),
        inspect.getfullargspec(f),
        inspect.isgeneratorfunction(f),
        inspect.cleandoc(" a\n   b\n"),
        str(s.replace(return_annotation=int)),
        [str(p.kind) for p in s.parameters.values()],
    )


def work_pprint() -> Any:
    import collections
    import pprint

    value = {
        "k" * 20: [list(range(30)), {"a": ("x" * 60, "y z " * 30)}],
        "b": {1, 2, 3},
        "c": collections.OrderedDict(a=1),
        "d": b"z" * 100,
        "e": collections.Counter("aab"),
    }
    loop: list = [1]
    loop.append(loop)
    return (
        pprint.pformat(value, width=40),
        pprint.pformat(value, compact=True, depth=2),
        pprint.isrecursive(loop),
        pprint.saferepr(loop)[:12],
    )


def work_configparser() -> Any:
    import configparser
    import io

    c = configparser.ConfigParser(allow_no_value=True)
    c.read_string(
        "[DEFAULT]\nroot = /x\n[a]\npath = %(root)s/y\nn: 3\nflag\nlong = 1\n  2\n[b]\non = yes\n"
    )
    c["a"]["new"] = "v"
    out = io.StringIO()
    c.write(out)
    one = (
        c.sections(),
        c.get("a", "path"),
        c.getint("a", "n"),
        c.getboolean("b", "on"),
        c.items("b"),
        c.get("a", "q", fallback=None),
        dict(c["a"]),
    )
    extended = configparser.ConfigParser(interpolation=configparser.ExtendedInterpolation())
    extended.read_dict({"x": {"a": "1"}, "y": {"b": "${x:a}2"}})
    return (
        one,
        out.getvalue(),
        extended["y"]["b"],
        c.has_option("a", "flag"),
        c.remove_section("b"),
        "a" in c,
    )


def work_configparser_error() -> Any:
    import configparser

    configparser.ConfigParser().read_string("[a]\nx = 1\nnonsense\n")


def work_configparser_duplicate() -> Any:
    import configparser

    configparser.ConfigParser().read_string("[a]\nx = 1\nx = 2\n")


def parser() -> Any:
    import argparse

    p = argparse.ArgumentParser("prog", description=TEXT, exit_on_error=False)
    p.add_argument("files", nargs="*", help="the files")
    p.add_argument("-n", "--number", type=int, default=3, metavar="N")
    p.add_argument("-v", action="count", default=0)
    group = p.add_mutually_exclusive_group()
    group.add_argument("--on", action="store_true")
    group.add_argument("--off", action="store_const", const=7)
    p.add_argument("--list", action="append", choices=["a", "b"])
    return p


def work_argparse() -> Any:
    p = parser()
    known = p.parse_known_args(["x", "-n5", "-vv", "--on", "--list", "a", "--what", "y"])
    return sorted(vars(known[0]).items()), known[1], p.format_usage(), len(p.format_help()) > 100


def work_argparse_subcommands() -> Any:
    import argparse

    p = argparse.ArgumentParser("prog")
    commands = p.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", aliases=["r"])
    run.add_argument("--fast", action=argparse.BooleanOptionalAction)
    run.set_defaults(func=len)
    return sorted(
        vars(p.parse_args(["run", "--no-fast"])).items(), key=str
    ), p.format_help().replace("options", "")


def work_optparse() -> Any:
    import optparse

    p = optparse.OptionParser("usage: %prog [x]", prog="prog", version="1")
    p.add_option("-f", "--file", dest="f", metavar="FILE", help="read " + TEXT)
    p.add_option("-n", type="int", default=1)
    group = optparse.OptionGroup(p, "More")
    group.add_option("--yes", action="store_true")
    p.add_option_group(group)
    values, rest = p.parse_args(["-n3", "--fil", "x", "--yes", "a", "b"])
    return sorted(vars(values).items()), rest, p.format_help()


def work_graphlib() -> Any:
    from graphlib import TopologicalSorter

    sorter = TopologicalSorter({"d": {"b", "c"}, "b": {"a"}, "c": {"a"}})
    sorter.prepare()
    steps = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        steps.append(ready)
        sorter.done(*ready)
    return steps, [*TopologicalSorter({1: [2], 2: [3]}).static_order()]


def work_sched() -> Any:
    import sched

    now, log = [0.0], []

    def wait(seconds: float) -> None:
        now[0] += seconds

    s = sched.scheduler(lambda: now[0], wait)
    s.enter(2, 1, log.append, ("b",))
    event = s.enterabs(5, 1, log.append, ("never",))
    s.enter(1, 1, log.append, ("a",))
    s.cancel(event)
    return len(s.queue), s.run(), log, s.empty(), now


def work_queue() -> Any:
    import queue

    q, p, stack = queue.Queue(2), queue.PriorityQueue(), queue.LifoQueue()
    q.put(1)
    q.put_nowait(2)
    for x in NUMBERS:
        p.put(x)
        stack.put(x)
    return q.full(), q.get(), q.qsize(), [p.get() for _ in range(4)], stack.get(), q.task_done()


def work_queue_full() -> Any:
    import queue

    q = queue.Queue(1)
    q.put(1)
    q.put(2, block=False)


def work_types() -> Any:
    class Old:
        @types.DynamicClassAttribute
        def x(self) -> int:
            return 3

    C = types.new_class("C", (dict,), {}, lambda ns: ns.update(a=1))
    meta, ns, kw = types.prepare_class("D", (int,), {"k": 1})
    return (
        Old().x,
        C.a,
        C.__mro__[1],
        meta,
        kw,
        types.resolve_bases((list[int],)),
        types.SimpleNamespace(a=1),
    )


def work_typing() -> Any:
    import typing as t

    T = t.TypeVar("T")

    class Box(t.Generic[T]):
        x: T

    def f(a: int, b: list[T] | None = None) -> list[int]: ...

    return t.get_type_hints(f, localns=locals()), Box[int], t.get_origin(Box[int]), Box[T][str]


def work_traceback() -> Any:
    import traceback

    try:
        try:
            raise IndexError("inner")
        except IndexError as error:
            raise ValueError("outer") from error
    except ValueError as error:
        text = traceback.TracebackException(type(error), error, None).format()
        return (
            traceback.format_exception_only(error),
            [*text],
            traceback.format_list([("f.py", 3, "g", "x = 1")]),
        )


def work_plistlib() -> Any:
    import datetime
    import plistlib as p

    value = {"a": [1, 2.5, True, "é<"], "b": {"c": b"xyz"}, "d": datetime.datetime(2020, 1, 2)}
    text, binary = p.dumps(value), p.dumps(value, fmt=p.FMT_BINARY)
    return text, binary, p.loads(text) == p.loads(binary) == value


def work_minidom() -> Any:
    from xml.dom import minidom

    d = minidom.parseString("<a x='1'><b>t&amp;</b><!--c--><b/></a>")
    e = d.createElement("n")
    e.setAttribute("k", "v<")
    e.appendChild(d.createTextNode("txt"))
    d.documentElement.insertBefore(e, d.documentElement.firstChild)
    d.documentElement.removeChild(d.getElementsByTagName("b")[1])
    return (
        d.toxml(),
        d.toprettyxml(indent=" "),
        d.documentElement.getAttribute("x"),
        d.cloneNode(True).documentElement.tagName,
        [n.nodeType for n in d.documentElement.childNodes],
    )


def work_element_path() -> Any:
    from xml.etree import ElementPath
    from xml.etree.ElementTree import fromstring, indent, tostring

    root = fromstring("<a><b k='1'><c>x</c></b><b k='2'/><d><c>y</c></d></a>")
    indent(root)
    return (
        [e.tag for e in ElementPath.iterfind(root, ".//c")],
        ElementPath.find(root, "b[@k='2']").attrib,
        ElementPath.findtext(root, "d/c"),
        tostring(root),
        len(ElementPath.findall(root, "*/..")),
    )


def work_gettext() -> Any:
    import gettext

    plural = gettext.c2py("n%10==1 && n%100!=11 ? 0 : n%10>=2 ? 1 : 2")
    t = gettext.NullTranslations()
    return (
        [plural(n) for n in (1, 2, 5, 11, 21)],
        t.gettext("x"),
        t.ngettext("a", "b", 2),
        gettext._expand_lang("de_DE.UTF-8@euro"),
    )


def work_cookies() -> Any:
    from http.cookies import SimpleCookie

    c = SimpleCookie('a=1; b="x y"; c=z')
    c["a"]["path"], c["new"] = "/", "é;"
    return c.output(), c["b"].value, sorted(c)


def work_cookies_error() -> Any:
    from http.cookies import SimpleCookie

    SimpleCookie()["a b"] = 1


def work_difficult_zipapp_quoting() -> Any:
    import string
    from string import Formatter

    class Upper(Formatter):
        def get_value(self, key: Any, args: Any, kwargs: Any) -> Any:
            return (
                kwargs.get(key, "?")
                if isinstance(key, str)
                else super().get_value(key, args, kwargs)
            )

        def convert_field(self, value: Any, conversion: Any) -> Any:
            return (
                str(value).upper()
                if conversion == "u"
                else super().convert_field(value, conversion)
            )

    return Upper().format("{a!u} {0} {b}", 1, a="x"), string.ascii_letters[:3]


def work_weakref() -> Any:
    import weakref

    class Thing:
        pass

    a, b = Thing(), Thing()
    values, keys = weakref.WeakValueDictionary(a=a, b=b), weakref.WeakKeyDictionary({a: 1})
    some = weakref.WeakSet([a, b])
    del b
    return (
        sorted(values),
        len(keys),
        len(some),
        "a" in values,
        values.pop("a") is a,
        list(values.items()),
        weakref.WeakMethod(_Tags().feed)() is None,
    )


def work_symtable() -> Any:
    import symtable

    table = symtable.symtable("def f(a):\n global b\n c = a\n return lambda: c\n", "x", "exec")
    inner = table.get_children()[0]
    return (
        table.get_identifiers(),
        inner.get_parameters(),
        inner.get_locals(),
        inner.lookup("b").is_global(),
        inner.lookup("c").is_local(),
    )


def work_logging() -> Any:
    import io
    import logging

    out = io.StringIO()
    logger = logging.Logger("x", logging.INFO)
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("{levelname}:{message}", style="{"))
    logger.addHandler(handler)
    logger.addFilter(lambda record: "no" not in record.getMessage())
    logger.info("a %s", 1)
    logger.debug("never")
    logger.warning("no")
    logger.log(35, "odd %(k)s", {"k": 2})
    return (
        out.getvalue(),
        logger.isEnabledFor(10),
        logging.getLevelName(35),
        logger.getEffectiveLevel(),
    )


def work_unittest() -> Any:
    import unittest

    class Case(unittest.TestCase):
        def test_good(self) -> None:
            self.assertEqual([1], [1])
            self.assertAlmostEqual(1, 1 + 1e-9)
            with self.assertRaisesRegex(ValueError, "b.d"):
                raise ValueError("bad")

        def test_bad(self) -> None:
            self.assertDictEqual({"a": 1}, {"a": 2})

        @unittest.skip("why")
        def test_skipped(self) -> None: ...

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    return (
        result.testsRun,
        len(result.failures),
        result.skipped[0][1],
        result.failures[0][1].splitlines()[-6:],
    )


def work_mock() -> Any:
    from unittest.mock import MagicMock, call

    m = MagicMock(return_value=3)
    m.a.b(1, x=2)
    m.side_effect = [5, KeyError("z")]
    return (
        m(1),
        m.mock_calls == [call.a.b(1, x=2), call(1)],
        m.a.b.call_args,
        m.called,
        len(m.method_calls),
    )


def work_mock_error() -> Any:
    from unittest.mock import Mock

    m = Mock()
    m(1)
    m.assert_called_with(2)


# Set-up lines, and expressions that each are a use after that.
USES = r"""
import textwrap
    textwrap.wrap(TEXT, 0)
    textwrap.TextWrapper(width=5, max_lines=1, placeholder='too long').fill(TEXT)
import statistics as s
    s.mean(NUMBERS)
    s.median(NUMBERS)
    s.mode(NUMBERS)
    s.multimode(NUMBERS)
    s.pstdev(NUMBERS)
    s.variance(NUMBERS)
    s.harmonic_mean(NUMBERS)
    s.fmean(NUMBERS)
    s.quantiles(NUMBERS, n=4)
    s.median_grouped(NUMBERS)
    s.geometric_mean(NUMBERS)
from statistics import NormalDist; a, b = (NormalDist(3, 4), NormalDist.from_samples(NUMBERS))
    a + b
    a.cdf(2)
    a.pdf(1)
    b.overlap(a)
    a.inv_cdf(0.3)
    a.quantiles(3)
    a.zscore(2)
    -a
import statistics as s; other = [2 * x + x % 3 for x in NUMBERS]
    s.covariance(NUMBERS, other)
    s.correlation(NUMBERS, other)
    s.linear_regression(NUMBERS, other)
import statistics
    statistics.mean([])
from fractions import Fraction as F; a, b = (F(3, 4), F('-2/7'))
    a + b
    a - b
    a * b
    a / b
    a % b
    a ** 3
    a < b
    F(1.25).limit_denominator(3)
    round(a, 1)
    hash(a)
    divmod(a, b)
from fractions import Fraction
    Fraction('1/x')
    Fraction(1, 0)
pass
    PURE_BISECT.bisect_left(NUMBERS, 3, -1)
    PURE_OPERATOR.indexOf(NUMBERS, 100)
    PURE_OPERATOR.concat(1, [2])
    DATETIME.date(2023, 2, 29)
    DATETIME.date(2023, 2, 2) < 3
    DATETIME.datetime.fromisoformat('2024-02-29T12:6')
    parser().parse_args(['-n', 'x'])
    parser().parse_args(['--list', 'z'])
o = PURE_OPERATOR; getter, items = (o.attrgetter('real', 'imag'), o.itemgetter(1, 2))
    getter(3 + 4j)
    items('abc')
    o.methodcaller('upper')('x')
    o.length_hint([1, 2])
    o.countOf(NUMBERS, 5)
    o.indexOf(NUMBERS, 9)
    o.concat([1], [2])
    repr(items)
    o.iconcat([1], [2])
import difflib
    difflib.get_close_matches('a', ['b'], cutoff=2)
import json.encoder as e; value: list = []; value.append(value)
    ''.join(e.JSONEncoder(indent=1).iterencode(value))
import json.decoder
    json.decoder.py_scanstring('"a\\q"', 1)
import csv; import io
    csv.DictWriter(io.StringIO(), ['a']).writerow({'b': 1})
import calendar; cal = calendar.TextCalendar(6)
    cal.formatmonth(2024, 2)
    cal.formatyear(2023, m=4)
    calendar.monthrange(2024, 2)
    calendar.leapdays(1900, 2000)
    calendar.HTMLCalendar().formatmonth(2024, 5)
    list(cal.itermonthdays2(2024, 1))[:9]
import calendar
    calendar.monthrange(2024, 13)
import colorsys as c; rgb = (0.2, 0.4, 0.9)
    c.rgb_to_hsv(*rgb)
    c.hsv_to_rgb(*c.rgb_to_hsv(*rgb))
    c.rgb_to_hls(*rgb)
    c.hls_to_rgb(0.1, 0.5, 0.3)
    c.rgb_to_yiq(*rgb)
    c.yiq_to_rgb(0.3, 0.1, 0.2)
import string; t = string.Template('$who owes ${what} $$5 $missing')
    string.capwords('a bC  d')
    t.safe_substitute(who='x', what='y')
    string.Formatter().format('{0:>{w}} {a.real!r} {b[k]}', 'z', w=5, a=2, b={'k': 1})
    t.is_valid()
    t.get_identifiers()
import string
    string.Template('$who $').substitute(who=1)
    string.Formatter().vformat('{0} {nothing}', (1,), {})
from re import _parser
    _parser.parse('(a[b-a])')
    _parser.parse('a(b(c)')
from re import _compiler
    _compiler.compile('(?<=a+)b')
import ast
    ast.literal_eval("{'a': [1, -2.5, (3+4j), None], 'b': {1, 2}, 'c': b'x'}")
    ast.literal_eval('[x for x in y]')
import io; import tokenize
    tokenize.detect_encoding(io.BytesIO(b'# coding: nowhere\n').readline)
import ipaddress as i; net = i.ip_network('192.168.0.0/29')
    list(net.hosts())
    net.broadcast_address
    net.supernet()
    [*net.subnets(new_prefix=30)]
    i.ip_address('::ffff:1.2.3.4').ipv4_mapped
    list(i.summarize_address_range(i.ip_address('10.0.0.1'), i.ip_address('10.0.0.9')))
    list(i.collapse_addresses([net, i.ip_network('192.168.0.8/29')]))
    i.ip_address('2001:db8::1').exploded
    i.ip_address('10.0.0.1').is_private
    i.ip_address(5) + 3
    i.ip_interface('1.2.3.4/24').network
    net.overlaps(i.ip_network('192.168.0.4/30'))
import ipaddress
    ipaddress.ip_network('192.168.0.1/29')
    ipaddress.IPv4Address('1.2.3.400')
    ipaddress.IPv6Address('1::2::3')
from urllib.parse import urlsplit
    urlsplit('http://a:99999/').port
from urllib.parse import urlparse
    urlparse('http://[::1/')
import posixpath as p
    p.join('a', '/b', 'c')
    p.normpath('a//b/../c/.')
    p.relpath('/a/b/c', '/a/d')
    p.commonpath(['/a/b', '/a/c'])
    p.splitext('x.tar.gz')
    p.expanduser('~nobody-at-all/x')
    p.expandvars('$HOME_NOT_THERE/${A}')
    p.isabs('/x')
    p.split('/a/b')
    p.dirname('a/b')
    p.basename('a/b')
    p.commonprefix(['abc', 'abd'])
import posixpath
    posixpath.commonpath(['/a', 'b'])
    posixpath.join('a', 3)
import ntpath as p
    p.join('C:\\a', 'D:b', 'c')
    p.splitdrive('\\\\host\\share\\x')
    p.normpath('c:/a/../b')
    p.relpath('c:\\a\\b', 'c:\\a')
    p.commonpath(['c:\\a\\b', 'C:/a/c'])
import fnmatch
    fnmatch.filter(['a.py', 'b.txt', 'c.pyc'], '*.py?')
    fnmatch.translate('[!a-c]*x?[]]')
    fnmatch.fnmatchcase('abc', 'a[b]*')
import html
    html.escape("<a b='c'>&")
    html.unescape('&lt;&#233;&#x80;&notit;&amp&eacute;&#1114112;')
from email import header, utils
    header.decode_header('=?utf-8?q?h=C3=A9?= x')
    header.Header('é' * 60, 'utf-8').encode()
    utils.parseaddr('A B <a@b>')
    utils.formataddr(('é', 'a@b.c'))
    utils.parsedate_tz('Mon, 20 Nov 1995 19:12:08 -0500')
    utils.getaddresses(['a <b@c>, d@e'])
    utils.formatdate(0)
import random; r = random.Random(5)
    r.randint(1, 99)
    r.choice('abc')
    r.sample(range(50), 4)
    r.shuffle(NUMBERS[:])
    r.choices('xyz', [1, 2, 3], k=4)
    r.uniform(1, 2)
    r.gauss(0, 1)
    r.betavariate(2, 3)
    r.gammavariate(0.5, 1)
    r.triangular()
    r.vonmisesvariate(0, 1)
    r.randrange(0, 50, 7)
    r.expovariate(2)
    r.normalvariate()
    r.paretovariate(3)
    r.weibullvariate(1, 2)
    r.lognormvariate(0, 1)
import random
    random.Random(1).sample([1, 2], 5)
    random.Random(1).randrange(5, 5)
import _pydecimal
    _pydecimal.Decimal(1) / _pydecimal.Decimal(0)
    _pydecimal.Decimal('1..2')
from collections import namedtuple; P = namedtuple('P', 'x y', defaults=[3])
    P(1)
    P(1, 2)._replace(x=5)
    P(1)._asdict()
    P._make([7, 8])
from collections import ChainMap
    ChainMap({}, {}).pop('x')
import inspect
    inspect.signature(lambda a, b: 0).bind(1, 2, 3)
    inspect.signature(lambda a, *, b: 0).bind(1)
    inspect.getsource(outcome)
    inspect.getmodulename('/a/b.py')
    inspect.getmro(bool)
    inspect.isclass(int)
    len(inspect.getmembers(_Tags))
import pprint
    pprint.PrettyPrinter(indent=-1)
import shlex
    shlex.split('a \'b c\' "d\\"e" f\\ g # h', comments=True)
    shlex.quote("it's")
    shlex.join(['a b', 'c'])
    list(shlex.shlex("x=1;y>2 'q'", punctuation_chars=True))
    shlex.split("a 'b")
import configparser; c = configparser.ConfigParser(); c.read_string('[a]\nx = %(y)s\n')
    c.get('a', 'x')
import optparse
    optparse.Option('nodash')
import getopt
    getopt.gnu_getopt(['a', '-x', '1', '--yes', '--num=3', 'b'], 'x:v', ['yes', 'num='])
    getopt.getopt(['--n', '1'], '', ['num='])
    getopt.getopt(['--zip'], '', ['num='])
from graphlib import TopologicalSorter
    [*TopologicalSorter({1: [2], 2: [1]}).static_order()]
import numbers; from fractions import Fraction
    isinstance(3, numbers.Integral)
    isinstance(Fraction(1), numbers.Rational)
    complex(Fraction(1, 2))
    Fraction(1, 2).conjugate()
    float(Fraction(1, 4))
    Fraction(3, 2).real
import queue
    queue.Queue().get(timeout=-1)
import typing as t
    t.Union[int, str, None], t.List[t.T][int], t.Optional[int], t.Callable[[int], str]
    t.cast(int, 'x'), t.Literal[1, 'a'], t.get_args(dict[str, int])
    t.Generic[int]
    t.Optional[int, str]
import reprlib; r = reprlib.Repr(); r.maxlist = 3
    r.repr(NUMBERS)
    r.repr({i: i for i in range(9)})
    r.repr('x' * 99)
    r.repr({1, 2})
    r.repr((1,))
    r.repr([[[[[[[1]]]]]]])
    r.repr(10 ** 80)
import uuid; u = uuid.UUID('12345678-1234-5678-1234-567812345678')
    u
    u.hex
    u.int
    u.bytes_le
    u.fields
    u.version
    u.variant
    u.urn
    uuid.uuid5(uuid.NAMESPACE_DNS, 'x')
    uuid.uuid3(u, 'y')
    u < uuid.NAMESPACE_DNS
import uuid
    uuid.UUID('nonsense')
    uuid.UUID(int=-1)
import plistlib
    plistlib.dumps({'a': object})
    plistlib.loads(b'<plist><dict><integer>1</integer></dict></plist>')
from xml.dom import minidom; d = minidom.parseString('<a><b/></a>')
    d.appendChild(d.createElement('second'))
from xml.etree import ElementPath; from xml.etree.ElementTree import fromstring
    ElementPath.findall(fromstring('<a/>'), 'b[')
import gettext
    gettext.c2py('n +* 2')
from pathlib import PurePosixPath as P, PureWindowsPath as W; p = P('/a/b/../c.tar.gz')
    p.parts
    p.suffixes
    p.with_suffix('.x')
    p.stem
    p.relative_to('/a')
    P('x') / 'y'
    p.match('*.gz')
    p.parents[1]
    W('C:\\a\\b').as_posix()
    p.with_name('q')
    P('a') < P('b')
    p.is_relative_to('/b')
    p.joinpath('d', 'e')
from pathlib import PurePosixPath
    PurePosixPath('/a').relative_to('/b')
    PurePosixPath('/a').with_name('x/y')
import base64; data = bytes(range(40))
    base64.b85encode(data)
    base64.b32encode(data)
    base64.a85decode(base64.a85encode(data))
    base64.b32hexencode(data)
    base64.urlsafe_b64encode(data)
import base64
    base64.b32decode(b'A1')
import stringprep
    [stringprep.in_table_a1(c) for c in 'aéȡ']
    stringprep.map_table_b2('ß')
    stringprep.in_table_c12('\u1680')
from encodings import idna, punycode
    idna.ToASCII('bücher')
    idna.ToUnicode('xn--bcher-kva')
    punycode.punycode_encode('bücher')
    punycode.punycode_decode('bcher-kva', 'strict')
    idna.nameprep('Ä')
import linecache
    linecache.getline(__file__, 1)
    linecache.getline('nowhere', 1)
    linecache.getlines(__file__)[2:4]
import timeit
    timeit.reindent('a\nb', 4)
    timeit.Timer('+', '')
import dis; code = compile('x = a + 1\nif x: y(x)', 'f', 'exec')
    [i.opname for i in dis.get_instructions(code)]
    dis.stack_effect(dis.opmap['POP_TOP'])
    list(dis.findlabels(code.co_code))
    list(dis.findlinestarts(code))
import logging
    logging.Formatter('{x', style='{')
""".strip().splitlines()


if __name__ == "__main__":
    main()
