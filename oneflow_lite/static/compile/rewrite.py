"""A function compiled anew so that all it does with what is outside of it goes through a recorder.

Control flow, local variables, yields and comprehensions stay those of CPython; each outer read,
decision, call and effect becomes a call of a method of `__recorder__` (`native.Native` lists them).
Two cells are added to the function's: `__recorder__`, and `__site__`, the function as it was.
"""

import ast
import weakref
from ast import copy_location
from collections.abc import Iterable
from types import CellType, CodeType, FunctionType
from typing import Any, TypeVar

from oneflow_lite.static.compile.source import FunctionNode, Node, NoSource, find, pick

SYMBOLS = "+ - * / // % ** @ << >> & | ^ == != < <= > >= is in".split() + ["is not", "not in"]
_parsed: list[Any] = [ast.parse(f"a {symbol} b", mode="eval").body for symbol in SYMBOLS]
SYMBOL = {
    type(node.op if isinstance(node, ast.BinOp) else node.ops[0]): symbol
    for node, symbol in zip(_parsed, SYMBOLS, strict=True)
} | {ast.UAdd: "+", ast.USub: "-", ast.Invert: "~"}
# Built-in functions that look at the frame they are called from, the last three without arguments.
LOOK_AT_FRAME = "locals globals eval exec __import__ breakpoint super vars dir".split()
# Statements that stay as they are; the recorder is told before.
UNOBSERVED = {
    "Match": "a match statement",
    "AsyncFunctionDef": "an async function",
    "TypeAlias": "a type statement",
}
_LOAD = ast.Load()
OPTIMIZED = 1  # CO_OPTIMIZED: the code of a function, not of a class body

Tree = TypeVar("Tree", bound=ast.AST)
Pairs = list[tuple[ast.expr | None, ast.expr]]


class ClassScope(dict[str, str]):
    """The names that the body of a class binds; the functions in it do not see them."""


class Unsupported(Exception):
    """A function that is not rewritten, for the reason given."""


# By identity, since code objects of two files may be equal; entries go with their keys.
_codes: dict[int, tuple[weakref.ref[CodeType], CodeType]] = {}
_rewritten: dict[int, tuple[weakref.ref[CodeType], weakref.ref[CodeType]]] = {}


def is_rewritten(code: CodeType) -> bool:
    """Return whether a code object came from `rewrite`: a function's, or one inside of it."""
    return id(code) in _rewritten


def rewrite(function: FunctionType, recorder: object) -> FunctionType:
    """Return `function` with all that it does with what is outside going through `recorder`.

    A function that was made inside of a rewritten one is rewritten anew: to it, variables of that
    one are outside. Raises `NoSource` or `Unsupported`.
    """
    code = function.__code__
    key = id(code)
    if key not in _codes:
        whole = _rewritten[key][1]() if key in _rewritten else code
        if whole is None:
            raise NoSource(f"the code around {code.co_qualname!r} is no longer there")
        node = find(whole, function.__globals__)
        new = _compile(node if whole is code else pick(code, node), code)
        _register(new, weakref.ref(whole))
        _codes[key] = weakref.ref(code, lambda _: _codes.pop(key, None)), new
    new = _codes[key][1]
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells |= {"__site__": CellType(function), "__recorder__": CellType(recorder)}
    closure = tuple(cells[name] for name in new.co_freevars)
    names = function.__globals__, function.__name__, function.__defaults__
    new_function = FunctionType(new, *names, closure)
    new_function.__kwdefaults__ = function.__kwdefaults__
    new_function.__qualname__ = function.__qualname__
    return new_function


def _compile(node: Node, code: CodeType) -> CodeType:
    """Compile a rewritten tree in a factory whose parameters are the function's free variables."""
    free = dict.fromkeys([*code.co_freevars, "__recorder__", "__site__"])
    if not all(name.isidentifier() for name in free):
        raise Unsupported("a function among annotations")
    source = f"def factory({', '.join(free)}): pass"
    if node.private is not None:  # CPython mangles the names that stay names
        source = f"class {node.private}:\n {source}"
    module: Any = ast.parse(source)
    factory = module.body[0] if node.private is None else module.body[0].body[0]
    name = getattr(node.tree, "name", "")
    if name and name not in code.co_freevars:  # the function reads its own name where it did
        factory.body[0] = copy_location(ast.Global([name]), factory)
    try:
        factory.body.append(_Rewriter(node.private, code.co_freevars).unit(node.tree))
        new = compile(module, node.filename, "exec", node.flags, dont_inherit=True)
    except RecursionError:
        raise Unsupported("an expression nested too deeply") from None
    except SyntaxError as error:
        raise Unsupported(str(error)) from None
    for _ in range(2 if node.private is None else 3):
        (new,) = (const for const in new.co_consts if isinstance(const, CodeType))
    return _renamed(new, new.co_qualname, code.co_qualname)


def _renamed(code: CodeType, old: str, new: str) -> CodeType:
    """`code` and those inside with `old` put right, the factory's part of their qualified names."""
    if not code.co_qualname.startswith(old):  # the name of what is declared global
        return code
    name = new + code.co_qualname[len(old) :]
    consts: list[Any] = list(code.co_consts)
    for i, const in enumerate(consts):
        if isinstance(const, CodeType):
            consts[i] = _renamed(const, old, new)
        elif const == code.co_qualname and not code.co_flags & OPTIMIZED:
            consts[i] = name  # the body of a class stores it
    return code.replace(co_qualname=name, co_consts=tuple(consts))


def _register(code: CodeType, whole: weakref.ref[CodeType], partly: bool = False) -> None:
    """Enter a code object and those of the functions inside, but not those that stayed native."""
    partly = partly or "unsupported" in code.co_names
    if not partly or "__recorder__" in code.co_freevars:
        key = id(code)
        _rewritten[key] = weakref.ref(code, lambda _: _rewritten.pop(key, None)), whole
    for const in code.co_consts:
        if isinstance(const, CodeType):
            _register(const, whole, partly)


def _bind(node: ast.AST, names: dict[str, str]) -> None:
    """Enter the names that `node` binds: "", or "global" or "nonlocal" where it declares that."""
    if not node._fields or isinstance(node, ast.Constant):
        return
    children: Iterable[Any] = ast.iter_child_nodes(node)
    match node:
        case ast.Global() | ast.Nonlocal():
            names |= dict.fromkeys(node.names, type(node).__name__.lower())
        case ast.Name(ctx=ast.Store() | ast.Del()):
            names.setdefault(node.id, "")
        case ast.alias():
            names.setdefault(node.asname or node.name.partition(".")[0], "")
        case ast.FunctionDef() | ast.AsyncFunctionDef():  # its body has names of its own
            names.setdefault(node.name, "")
            children = [*node.decorator_list, *node.args.defaults, *node.args.kw_defaults]
        case ast.Lambda():
            children = [*node.args.defaults, *node.args.kw_defaults]
        case ast.ClassDef():
            names.setdefault(node.name, "")
            children = [*node.decorator_list, *node.bases, *node.keywords]
        case ast.AnnAssign():
            children = [node.target, node.value] if node.simple or node.value else []
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            inner: dict[str, str] = {}  # its targets are its own, those of `:=` are not
            for child in children:
                _bind(child, inner)
            names |= {name: names.get(name, "") for name in inner.keys() - _targets(node)}
            children = ()
        case _:  # an except clause, a pattern
            name = getattr(node, "name", None) or getattr(node, "rest", None)
            if isinstance(name, str):
                names.setdefault(name, "")
    for child in children:
        if child is not None:
            _bind(child, names)


def _targets(node: Any) -> set[str]:
    """The names that the `for` clauses of a comprehension bind."""
    parts = [part for clause in node.generators for part in ast.walk(clause.target)]
    return {
        part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }


def _loaded(node: Any) -> list[str]:
    """The names that a statement of a class reads or may read, those in its functions not."""
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        parts = [node.args, *getattr(node, "decorator_list", ())]
    else:
        parts = list(ast.iter_child_nodes(node))
    own = [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else []
    return own + [name for part in parts for name in _loaded(part)]


def _changed(node: Tree, **changes: Any) -> Tree:
    """A copy of `node` with some fields changed: the trees of files are kept, never written to."""
    return type(node)(**vars(node) | changes)


def _unannotated(node: ast.arg | None) -> ast.arg | None:
    return node and _changed(node, annotation=None)


def _where(node: Any) -> dict[str, Any]:
    """The place that tracebacks show for `node`: of an attribute over several lines, its name."""
    line, column = node.lineno, node.col_offset
    attribute = node.func if isinstance(node, ast.Call) else node
    if isinstance(attribute, ast.Attribute) and attribute.lineno != attribute.end_lineno:
        line = attribute.end_lineno
        column = (attribute.end_col_offset or 0) - len(attribute.attr.encode())
    end = {"end_lineno": node.end_lineno, "end_col_offset": node.end_col_offset}
    return {"lineno": line, "col_offset": column, **end}


class _Rewriter:
    """Rewrites one function. A method named after a class of nodes takes such a node.

    It returns what stands in its place: a node, or for a statement a list of them.
    """

    def __init__(self, private: str | None, free: Iterable[str]) -> None:
        self.private = (private or "").lstrip("_")
        self.free = frozenset(free)
        self.scopes: list[dict[str, str]] = []
        self.count = 0
        self.temporaries: list[str] = []  # those that the next assignments delete

    # -- names ------------------------------------------------------------------------------------

    def mangle(self, name: str) -> str:
        """Return the name that CPython makes of a name in the class."""
        private = self.private and name.startswith("__") and not name.endswith("__")
        return f"_{self.private}{name}" if private else name

    def kind(self, name: str) -> str:
        """Return a name's scope: "global", "free" (a variable around the unit), or "", the unit."""
        name = self.mangle(name)
        inner = [scope for scope in self.scopes[:-1] if type(scope) is not ClassScope]
        for scope in reversed([*inner, *self.scopes[-1:]]):
            if scope.get(name, "nonlocal") != "nonlocal":
                return scope[name].removeprefix("later")
        return "free" if name in self.free else "global"

    def temporary(self) -> str:
        self.count += 1
        self.temporaries.append(f"__temporary_{self.count}__")
        return self.temporaries[-1]

    # -- building ---------------------------------------------------------------------------------

    def method(self, name: str, where: dict[str, Any]) -> ast.Attribute:
        """A bound method of the recorder. CPython takes a call's line from where this ends."""
        where = where | {"end_lineno": where["lineno"], "end_col_offset": where["col_offset"]}
        recorder = ast.Name("__recorder__", _LOAD, **where)
        return ast.Attribute(recorder, name, _LOAD, **where)

    def send(self, at: Any, method: str, *arguments: Any, keywords: Any = ()) -> ast.Call:
        """`__recorder__.method(…)` in the place of `at`; what is no tree is a constant."""
        where = _where(at)
        trees: list[Any] = [
            x if isinstance(x, ast.AST) else ast.Constant(x, **where) for x in arguments
        ]
        return ast.Call(self.method(method, where), trees, [*keywords], **where)

    def here(self, at: Any, method: str, *arguments: Any) -> ast.Call:
        """As `send`, with the function it happens in as the first argument."""
        return self.send(at, method, self.name("__site__", at), *arguments)

    def name(self, name: str, at: Any, context: ast.expr_context | None = None) -> ast.Name:
        return ast.Name(name, context or _LOAD, **_where(at))

    def run(self, value: ast.expr) -> ast.Expr:
        return copy_location(ast.Expr(value), value)

    # -- the walk ---------------------------------------------------------------------------------

    def visit(self, node: Any) -> Any:
        """Rewrite a node by the method named after its class, or its parts; or a list of nodes."""
        if isinstance(node, list):
            new = [self.visit(part) for part in node]
            return [x for part in new for x in (part if isinstance(part, list) else [part])]
        kind = type(node).__name__
        if kind in UNOBSERVED:
            return self.unobserved(node, UNOBSERVED[kind])
        method = getattr(self, kind, None)
        return self.parts(node) if method is None else method(node)

    def parts(self, node: Any, **changes: Any) -> Any:
        """A node with its fields rewritten, except those given."""
        if not isinstance(node, ast.AST) or not node._fields:
            return node
        for field, value in ast.iter_fields(node):
            if field not in changes:
                test = field == "test"
                changes[field] = self.decide(value, "truth") if test else self.visit(value)
        return _changed(node, **changes)

    def unobserved(self, node: ast.stmt, what: str) -> list[ast.stmt]:
        return [self.run(self.send(node, "unsupported", what)), node]

    def unit(self, node: FunctionNode) -> Any:
        """The outermost function, without what is evaluated where it is defined."""
        if isinstance(node, ast.AsyncFunctionDef):
            raise Unsupported("an async function")
        nothing = ast.Constant(None, **_where(node))
        defaults = [nothing for _ in node.args.defaults]
        kw_defaults = [None for _ in node.args.kw_defaults]
        arguments: Any = _changed(node.args, defaults=defaults, kw_defaults=kw_defaults)
        for kind in ("posonlyargs", "args", "kwonlyargs"):
            setattr(arguments, kind, [*map(_unannotated, getattr(arguments, kind))])
        arguments.vararg = _unannotated(arguments.vararg)
        arguments.kwarg = _unannotated(arguments.kwarg)
        new: Any = _changed(node, args=arguments, body=self.body(node))
        if isinstance(node, ast.Lambda):
            return copy_location(ast.Return(new), node)
        # The first line of the code is that of the first decorator.
        new.decorator_list = [copy_location(nothing, at) for at in node.decorator_list[:1]]
        new.returns, new.type_params = None, []
        return new

    def body(self, node: Any) -> Any:
        """The body of a function, rewritten among its names."""
        names: dict[str, str] = {}
        for part in [node.body] if isinstance(node, ast.Lambda) else node.body:
            _bind(part, names)
        given = node.args
        arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        names |= {argument.arg: "" for argument in arguments if argument}
        names |= {parameter.name: "" for parameter in getattr(node, "type_params", ())}
        self.scopes.append({self.mangle(name): kind for name, kind in names.items()})
        body = self.visit(node.body)
        self.scopes.pop()
        taken = [argument for argument in (node.args.vararg, node.args.kwarg) if argument]
        made = [self.send(at, "made", self.name(at.arg, at)) for at in taken]
        if made and isinstance(node, ast.Lambda):
            body = self.send(node.body, "last", *made, body)
        elif made:
            start = int(ast.get_docstring(node, clean=False) is not None)
            body = [*body[:start], *map(self.run, made), *body[start:]]
        return body

    # -- expressions ------------------------------------------------------------------------------

    def Name(self, node: ast.Name) -> ast.expr:
        kind = self.kind(node.id)
        if not kind:
            return node
        method = "name" if kind == "global" else kind
        return self.here(node, method, self.mangle(node.id), node)

    def NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        name, value = node.target.id, self.visit(node.value)
        if kind := self.kind(name):
            value = self.here(node, f"store_{kind}", self.mangle(name), value)
        return _changed(node, value=value)

    def Attribute(self, node: ast.Attribute | ast.Subscript) -> ast.expr:
        return self.send(node, *self.place(node))

    Subscript = Attribute

    def Slice(self, node: ast.Slice) -> ast.expr:
        return self.send(node, "slice", *map(self.visit, (node.lower, node.upper, node.step)))

    def Call(self, node: ast.Call) -> ast.expr:
        arguments, words = self.visit(node.args), self.visit(node.keywords)
        function, name = self.visit(node.func), getattr(node.func, "id", "")
        stars = any(isinstance(part, ast.Starred) for part in arguments)
        if stars or any(word.arg is None for word in words):
            call = _changed(node, func=self.send(node, "caller", function), args=arguments)
            call.keywords = words
        else:
            call = self.send(node, "call", function, *arguments, keywords=words)
        looks = LOOK_AT_FRAME[:-3] if arguments or words else LOOK_AT_FRAME
        if name not in looks or self.kind(name) != "global":
            return call
        test = self.here(node, "looks_at_frame", name, node.func)
        native = _changed(node, args=arguments, keywords=words)
        return ast.IfExp(test, self.send(node, "frame_call", name, native), call, **_where(node))

    def keyword(self, node: ast.keyword) -> ast.keyword:
        value = self.visit(node.value)
        if node.arg is None:
            value = self.send(node.value, "double_star", value)
        return _changed(node, value=value)

    def Starred(self, node: ast.Starred) -> ast.expr:
        return _changed(node, value=self.send(node.value, "star", self.visit(node.value)))

    def BinOp(self, node: ast.BinOp) -> ast.expr:
        left, right = self.visit(node.left), self.visit(node.right)
        return self.send(node, "binary", SYMBOL[type(node.op)], left, right)

    def UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.Not):
            return self.send(node, "not_", self.visit(node.operand))
        number = type(getattr(node.operand, "value", None)) in (int, float, complex)
        if number and isinstance(node.op, ast.USub):
            return node
        return self.send(node, "unary", SYMBOL[type(node.op)], self.visit(node.operand))

    def BoolOp(self, node: ast.BoolOp | ast.Compare) -> ast.expr:
        return self.send(node, "value", self.decide(node, ""))

    def Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) > 1:
            return self.BoolOp(node)
        left, right = self.visit(node.left), self.visit(node.comparators[0])
        return self.send(node, "compare", SYMBOL[type(node.ops[0])], left, right)

    def decide(self, node: Any, way: str) -> Any:
        """Have the truth of an expression taken once for each of its parts, as CPython does.

        `way` is the method that decides: `truth`, which gives a bool, or for an operand of `and`
        (`or`) `both` (`either`), which keeps the value where it ends the expression. The last
        operand is not asked: its way is "".
        """
        match node:
            case ast.BoolOp(op=op, values=[*values, last]):
                own = "both" if isinstance(op, ast.And) else "either"
                operands = [self.decide(value, own) for value in values]
                return _changed(node, values=[*operands, self.decide(last, way)])
            case ast.IfExp(body=body, orelse=orelse):
                body, orelse = self.decide(body, way), self.decide(orelse, way)
                return self.parts(node, body=body, orelse=orelse)
            case ast.Compare(left=left, ops=[_, _, *_] as operators, comparators=comparators):
                # It stays a chain of CPython's, of `<` over links that know their operators.
                links = []
                for operator, right in zip(operators, comparators, strict=True):
                    own = way if right is comparators[-1] else "both"
                    link = self.visit(right), SYMBOL[type(operator)], own
                    links.append(self.send(right, "link", *link))
                left = self.send(left, "link", self.visit(left))
                less = [ast.Lt() for _ in operators]
                return _changed(node, left=left, ops=less, comparators=links)
            case ast.UnaryOp(op=ast.Not(), operand=operand) if way:
                return _changed(node, operand=self.decide(operand, "truth"))
            case ast.Constant() if way == "truth":
                return node
        value = self.visit(node)
        return self.send(node, way, value) if way else value

    def made(self, node: Any) -> ast.expr:
        """Rewrite an expression that makes a new object of its parts."""
        return self.send(node, "made", self.parts(node))

    List = Tuple = TemplateStr = made

    def key(self, node: Any) -> ast.expr:
        starred = isinstance(node, ast.Starred)
        return self.visit(node) if starred else self.send(node, "key", self.visit(node))

    def Set(self, node: ast.Set) -> ast.expr:
        return self.send(node, "made", _changed(node, elts=[*map(self.key, node.elts)]))

    def Dict(self, node: ast.Dict) -> ast.expr:
        items = [
            (self.key(key), self.visit(value))
            if key
            else (None, self.send(value, "double_star", self.visit(value)))
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        keys, values = [key for key, _ in items], [value for _, value in items]
        return self.send(node, "made", _changed(node, keys=keys, values=values))

    def comprehension(self, node: Any) -> ast.expr:
        """A comprehension; an unpacking target becomes a loop over the one tuple unpacked."""
        clauses: list[ast.comprehension] = []
        pending, self.temporaries = self.temporaries, []
        outermost = self.visit(node.generators[0].iter)
        self.scopes.append({self.mangle(name): "" for name in _targets(node)})
        for clause in node.generators:
            if clause.is_async:
                raise Unsupported("an async comprehension")
            iterable = self.visit(clause.iter) if clauses else outermost
            iterable = self.send(clause.iter, "iterate", iterable)
            target, pairs = self.received(clause.target)
            clauses.append(ast.comprehension(target, iterable, [], 0))
            for to, value in pairs:
                one = ast.List([value], ast.Load(), **_where(value))
                to = to or self.name(self.temporary(), value, ast.Store())
                clauses.append(ast.comprehension(to, one, [], 0))
            clauses[-1].ifs = [self.decide(test, "truth") for test in clause.ifs]
        if isinstance(node, ast.DictComp):
            parts = {"key": self.key(node.key), "value": self.visit(node.value)}
        else:
            hashed = isinstance(node, ast.SetComp)
            parts = {"elt": self.key(node.elt) if hashed else self.visit(node.elt)}
            if isinstance(node, ast.GeneratorExp):
                parts["elt"] = self.send(node.elt, "plain", parts["elt"])
        self.temporaries = pending
        self.scopes.pop()
        return self.send(node, "made", _changed(node, generators=clauses, **parts))

    ListComp = SetComp = DictComp = GeneratorExp = comprehension

    def Lambda(self, node: ast.Lambda) -> ast.expr:
        new = _changed(node, args=self.visit(node.args), body=self.body(node))
        return self.send(node, "made", new)

    def arg(self, node: ast.arg) -> ast.arg:
        return node  # its annotation is not looked at while the function runs

    def FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        conversion = chr(node.conversion) if node.conversion > 0 else ""
        spec = self.visit(node.format_spec) if node.format_spec else ""
        text = self.send(node, "format", self.visit(node.value), conversion, spec)
        return _changed(node, value=text, conversion=-1, format_spec=None)

    def Yield(self, node: ast.Yield) -> ast.expr:
        value = node.value and self.send(node.value, "plain", self.visit(node.value))
        return _changed(node, value=value)

    def YieldFrom(self, node: ast.YieldFrom) -> ast.expr:
        return _changed(node, value=self.send(node.value, "iterate", self.visit(node.value)))

    def Await(self, node: ast.Await) -> ast.expr:
        raise Unsupported("await")

    # -- targets ----------------------------------------------------------------------------------

    def stored(self, node: Any, value: ast.expr) -> Pairs:
        """Return the assignments in turn for `node = value`; one without a target is evaluated."""
        if isinstance(node, ast.Tuple | ast.List):
            return self.unpacked(node, value)
        if isinstance(node, ast.Name):
            if kind := self.kind(node.id):
                value = self.here(node, f"store_{kind}", self.mangle(node.id), value)
            return [(_changed(node, ctx=ast.Store()), value)]
        return [(None, self.send(node, "put", value, *self.place(node)))]

    def place(self, node: Any) -> tuple[str, ast.expr, Any]:
        """Of an attribute or item: "attribute" or "item", its owner, and its name or key."""
        if isinstance(node, ast.Attribute):
            return "attribute", self.visit(node.value), self.mangle(node.attr)
        return "item", self.visit(node.value), self.visit(node.slice)

    def unpacked(self, node: Any, value: ast.expr) -> Pairs:
        targets: list[ast.expr] = []
        pairs: Pairs = []
        for part in node.elts:
            if isinstance(part, ast.Starred):  # the list for it is new
                made = self.name(name := self.temporary(), part)
                target: ast.expr = _changed(part, value=self.name(name, part, ast.Store()))
                later = self.stored(part.value, self.send(part, "made", made))
            else:
                target, later = self.received(part, waits=bool(pairs))
            targets.append(target)
            pairs += later
        value = self.send(node, "iterate", value)
        return [(ast.Tuple(targets, ast.Store(), **_where(node)), value), *pairs]

    def received(self, node: ast.expr, waits: bool = False) -> tuple[ast.expr, Pairs]:
        """A target for a value meant for `node`, itself if it can be, and assignments to follow."""
        if isinstance(node, ast.Name) and not self.kind(node.id) and not waits:
            return node, []
        name = self.temporary()
        return self.name(name, node, ast.Store()), self.stored(node, self.name(name, node))

    def assign(self, pairs: Pairs, at: Any) -> list[ast.stmt]:
        """Assign what `stored` gave, and delete the names that were between."""
        new: list[ast.stmt] = [
            copy_location(ast.Assign([to], value), at) if to else self.run(value)
            for to, value in pairs
        ]
        names, self.temporaries = self.temporaries, []
        if names:
            targets: list[ast.expr] = [self.name(name, at, ast.Del()) for name in names]
            new.append(copy_location(ast.Delete(targets), at))
        return new

    # -- statements -------------------------------------------------------------------------------

    def Assign(self, node: ast.Assign) -> list[ast.stmt]:
        value = self.visit(node.value)
        if len(node.targets) == 1:
            return self.assign(self.stored(node.targets[0], value), node)
        name = self.temporary()
        pairs: Pairs = [(self.name(name, node, ast.Store()), value)]
        for target in node.targets:
            pairs += self.stored(target, self.name(name, node))
        return self.assign(pairs, node)

    def AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        target = node.target
        if node.value is not None:
            return self.assign(self.stored(target, self.visit(node.value)), node)
        if isinstance(target, ast.Name):
            return [node]
        parts = [target.value, *([target.slice] if isinstance(target, ast.Subscript) else [])]
        return [self.run(self.visit(part)) for part in parts]  # evaluated, and nothing is stored

    def AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        symbol, target = SYMBOL[type(node.op)], node.target
        if isinstance(target, ast.Name):
            old = self.visit(_changed(target, ctx=ast.Load()))
            new = self.send(node, "inplace", symbol, old, self.visit(node.value))
            return self.assign(self.stored(target, new), node)
        held = self.send(target, "hold", *self.place(target))
        return [self.run(self.send(node, "change", symbol, held, self.visit(node.value)))]

    def Delete(self, node: ast.Delete) -> list[ast.stmt]:
        return [new for target in node.targets for new in self.deleted(target)]

    def deleted(self, node: Any) -> list[ast.stmt]:
        match node:
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                return [new for target in targets for new in self.deleted(target)]
            case ast.Name():
                kind, key = self.kind(node.id), self.mangle(node.id)
                told = [self.run(self.here(node, f"delete_{kind}", key))] if kind else []
                native = ast.Delete([self.name(node.id, node, ast.Del())])
                return [*told, copy_location(native, node)]
        what, *parts = self.place(node)
        return [self.run(self.send(node, f"delete_{what}", *parts))]

    def For(self, node: ast.For) -> Any:
        iterable = self.send(node.iter, "iterate", self.visit(node.iter))
        target, pairs = self.received(node.target)
        body = [*self.assign(pairs, node.target), *self.visit(node.body)]
        return self.parts(node, target=target, iter=iterable, body=body)

    def With(self, node: ast.With) -> ast.stmt:
        item, *inner = node.items
        manager = self.send(item.context_expr, "context", self.visit(item.context_expr))
        target, body = None, []
        if item.optional_vars:
            target, pairs = self.received(item.optional_vars)
            body = self.assign(pairs, item.optional_vars)
        # Further items are in the body of the first.
        body += [self.With(_changed(node, items=inner))] if inner else self.visit(node.body)
        return _changed(node, items=[ast.withitem(manager, target)], body=body)

    def Assert(self, node: ast.Assert) -> Any:
        message = node.msg and self.send(node.msg, "plain", self.visit(node.msg))
        return self.parts(node, msg=message)

    def Raise(self, node: ast.Raise) -> Any:
        error = node.exc and self.send(node.exc, "raised", self.visit(node.exc))
        return self.parts(node, exc=error)

    def Try(self, node: ast.Try) -> Any:
        last = [part for statement in node.finalbody for part in ast.walk(statement)]
        if any(isinstance(part, ast.Return | ast.Break | ast.Continue) for part in last):
            return self.unobserved(node, "a finally clause with return, break or continue")
        if any(handler.name and self.kind(handler.name) for handler in node.handlers):
            return self.unobserved(node, "a handler that binds a variable from outside")
        return self.parts(node)

    TryStar = Try

    def ExceptHandler(self, node: ast.ExceptHandler) -> Any:
        first = node.body[0]
        caught = self.run(self.here(first, "caught", self.send(first, "exception")))
        return self.parts(node, body=[caught, *self.visit(node.body)])

    def Import(self, node: Any) -> list[ast.stmt]:
        """Leave an import to CPython; tell the names that it bound, store those outside anew."""
        aliases: list[ast.alias] = []
        after: list[ast.stmt] = []
        for alias in node.names:
            top = alias.name.partition(".")[0]
            bound = alias.asname or top
            if isinstance(node, ast.Import):
                words = alias.name if alias.asname else top, ""
            else:
                words = "." * node.level + (node.module or ""), alias.name
            name, pairs, names = bound, Pairs(), [alias.name]
            if self.kind(bound):
                name = self.temporary()
                pairs = self.stored(self.name(bound, node), self.name(name, node))
                if not alias.asname and top != alias.name:  # the first part is what is bound
                    names.append(top)
            asname = name if pairs else alias.asname
            aliases += [_changed(alias, name=part, asname=asname) for part in names]
            after.append(self.run(self.here(node, "imported", *words, self.name(name, node))))
            after += self.assign(pairs, node)
        return [_changed(node, names=aliases), *after]

    ImportFrom = Import

    def FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        arguments, body = self.visit(node.args), self.body(node)
        return _changed(node, args=arguments, body=body, decorator_list=self.decorators(node))

    def decorators(self, node: Any) -> list[ast.expr]:
        decorators = [self.send(part, "caller", self.visit(part)) for part in node.decorator_list]
        if kind := self.kind(node.name):
            stored = f"store_{kind}", self.name("__site__", node), self.mangle(node.name)
            decorators.insert(0, self.send(node, "rest", *stored))
        return [*decorators, self.method("made", _where(node))]

    def ClassDef(self, node: ast.ClassDef) -> Any:
        """A class statement stays one; its body reads the names that it binds by itself."""
        decorators, private = self.decorators(node), self.private
        bases, words = self.visit(node.bases), self.visit(node.keywords)
        self.private = node.name.lstrip("_")
        names: dict[str, str] = {}
        for part in node.body:
            _bind(part, names)
        scope = ClassScope({self.mangle(name): kind or "later" for name, kind in names.items()})
        scope |= {"__module__": "", "__qualname__": ""}
        self.scopes.append(scope)
        body: list[ast.stmt] = []
        annotated = bool(getattr(node, "type_params", False))
        for statement in node.body:
            annotated |= isinstance(statement, ast.AnnAssign)
            read = [scope.get(self.mangle(name)) for name in _loaded(statement)]
            if annotated or "later" in read:
                self.scopes.pop()  # it has annotations, or may read a name that is not its own
                self.private = private
                return self.unobserved(node, "a class statement")
            bound: dict[str, str] = {}
            if not isinstance(statement, ast.If | ast.Try | ast.For | ast.While | ast.With):
                _bind(statement, bound)
            scope |= {self.mangle(name): kind for name, kind in bound.items()}
            body += self.visit([statement])
        self.scopes.pop()
        self.private = private
        return _changed(node, bases=bases, keywords=words, body=body, decorator_list=decorators)
