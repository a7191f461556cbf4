"""A function compiled anew so that all it does with what is outside of it goes through a recorder.

Control flow, local variables, yields and comprehensions stay those of CPython; each outer read,
decision, call and effect becomes a call of a method of `__recorder__` (`native.Native` lists them).
Two cells are added to the function's: `__recorder__`, and `__site__`, the function as it was.
Functions inside are made as they were: each is rewritten by itself, if and when it is called.
"""

import ast
import weakref
from ast import copy_location
from collections.abc import Iterable
from inspect import CO_GENERATOR
from types import CellType, CodeType, FunctionType
from typing import Any, TypeVar

from oneflow_lite.compiler.source import FunctionNode, FunctionTree, drop, find

SYMBOLS = "+ - * / // % ** @ << >> & | ^ == != < <= > >= is in".split() + ["is not", "not in"]
_parsed: list[Any] = [ast.parse(f"a {symbol} b", mode="eval").body for symbol in SYMBOLS]
SYMBOL = {
    type(node.op if isinstance(node, ast.BinOp) else node.ops[0]): symbol
    for node, symbol in zip(_parsed, SYMBOLS, strict=True)
} | {ast.UAdd: "+", ast.USub: "-", ast.Invert: "~", ast.Not: "not"}
# Statements that stay as they are; the recorder is told before.
UNOBSERVED = {
    "Match": "a match statement", "ClassDef": "a class statement", "TypeAlias": "a type statement"
}  # fmt: skip
# The method of the recorder that the values in a field go through before CPython takes them.
THROUGH = {
    "test": "truth", "ifs": "truth", "iter": "iterate", "context_expr": "context",
    "exc": "raised", "msg": "plain", "Yield.value": "plain", "YieldFrom.value": "iterate",
    "Starred.value": "iterate", "Set.elts": "key", "Dict.keys": "key", "SetComp.elt": "key",
    "DictComp.key": "key", "GeneratorExp.elt": "plain", "defaults": "plain",
    "kw_defaults": "plain", "Return.value": "returned",
}  # fmt: skip
# Expressions that make a new object of their parts.
MADE = "List Tuple Set Dict ListComp SetComp DictComp GeneratorExp Lambda TemplateStr".split()
_LOAD = ast.Load()
OPTIMIZED = 1  # CO_OPTIMIZED: the code of a function, not of a class body

_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda

Tree = TypeVar("Tree", bound=ast.AST)
Pairs = list[tuple[ast.expr | None, ast.expr]]


class Unsupported(Exception):
    """A function that is not rewritten, for the reason given."""


# By identity, since code objects of two files may be equal; entries go with their keys.
_codes: dict[int, CodeType] = {}


def rewrite(function: FunctionType, recorder: object) -> FunctionType:
    """Return `function` with all that it does with what is outside going through `recorder`.

    Raises `NoSource` or `Unsupported`.
    """
    code = function.__code__
    if (new := _codes.get(id(code))) is None:
        new = _codes[id(code)] = _compile(find(code, function.__globals__), code)
        weakref.finalize(code, _codes.pop, id(code), None).atexit = False
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells |= {"__site__": CellType(function), "__recorder__": CellType(recorder)}
    closure = tuple([cells[name] for name in new.co_freevars])
    names = function.__globals__, function.__name__, function.__defaults__
    new_function = FunctionType(new, *names, closure)
    new_function.__kwdefaults__ = function.__kwdefaults__
    new_function.__qualname__ = function.__qualname__
    return new_function


def _compile(node: FunctionTree, code: CodeType) -> CodeType:
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
        factory.body.append(_Rewriter(node.private, code).unit(node.tree))
        whole = compile(module, node.filename, "exec", node.flags, dont_inherit=True)
    except RecursionError:
        raise Unsupported("an expression nested too deeply") from None
    except SyntaxError as error:
        raise Unsupported(str(error)) from None
    new = whole
    for _ in range(2 if node.private is None else 3):  # defaults and annotations come before
        new = [const for const in new.co_consts if isinstance(const, CodeType)][-1]
    if any(isinstance(const, CodeType) for const in new.co_consts):
        entry = False, node.module, whole  # where the functions inside are found
        node.parsed.append(entry)
        weakref.finalize(code, drop, node.filename, node.parsed, entry).atexit = False
    return _renamed(new, new.co_qualname, code.co_qualname)


def _renamed(code: CodeType, old: str, new: str) -> CodeType:
    """Return `code` with `new` for `old`, the factory's part, in all qualified names inside."""
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


def _stored(node: Any) -> str | None:
    """Return the variable that a node stores to."""
    return node.id if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) else None


def _bound(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that a function binds; those that its comprehensions bind are theirs."""
    own: set[str] = set()
    left = [*nodes]
    while left:
        node = left.pop()
        bound = _stored(node) or getattr(node, "asname", None) or getattr(node, "name", None)
        if isinstance(bound, str):
            own.add(bound.partition(".")[0])
        if isinstance(node, ast.comprehension):
            left += [node.iter, *node.ifs]
        elif not isinstance(node, _SCOPES):
            left += ast.iter_child_nodes(node)
    return own


def _made(kind: type[Tree], fields: dict[str, Any]) -> Tree:
    """Return a node with these fields and this position; its class would take longer."""
    node = kind.__new__(kind)
    node.__dict__ = fields
    return node


def _changed(node: Tree, **changes: Any) -> Tree:
    """Return a copy of `node` with other fields: the trees of files are never written to."""
    return _made(type(node), vars(node) | changes)


def _where(node: Any) -> dict[str, Any]:
    """Return the position of `node` in tracebacks: of an attribute over lines, its name's."""
    line, column = node.lineno, node.col_offset
    attribute = node.func if isinstance(node, ast.Call) else node
    if isinstance(attribute, ast.Attribute) and attribute.lineno != attribute.end_lineno:
        line = attribute.end_lineno
        column = (attribute.end_col_offset or 0) - len(attribute.attr.encode())
    end = {"end_lineno": node.end_lineno, "end_col_offset": node.end_col_offset}
    return {"lineno": line, "col_offset": column, **end}


class _Rewriter:
    """Rewrites one function.

    A method named after a class of nodes takes such a node and returns its replacement: a node, or
    for a statement a list of nodes. For a class without a method, the tables above decide.
    """

    def __init__(self, private: str | None, code: CodeType) -> None:
        self.private = (private or "").lstrip("_")
        self.code = code
        self.local: set[str] = set()  # the variables of the function, and of comprehensions around
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
        if name in self.local:
            return ""
        return "free" if name in self.code.co_freevars else "global"

    def named(self, at: Any, name: str, value: ast.expr) -> ast.expr:
        """Return the value to store in a variable; inner functions read plain values."""
        if kind := self.kind(name):
            return self.here(at, f"store_{kind}", self.mangle(name), value)
        is_cell = self.mangle(name) in self.code.co_cellvars
        return self.send(at, "plain", value) if is_cell else value

    def temporary(self) -> str:
        self.count += 1
        self.temporaries.append(f"__temporary_{self.count}__")
        return self.temporaries[-1]

    # -- building ---------------------------------------------------------------------------------

    def method(self, name: str, where: dict[str, Any]) -> ast.Attribute:
        """Return a method of the recorder. CPython takes a call's line from where this ends."""
        where = where | {"end_lineno": where["lineno"], "end_col_offset": where["col_offset"]}
        recorder = _made(ast.Name, where | {"id": "__recorder__", "ctx": _LOAD})
        return _made(ast.Attribute, where | {"value": recorder, "attr": name, "ctx": _LOAD})

    def send(self, at: Any, method: str, *arguments: Any, keywords: Any = ()) -> ast.Call:
        """Return `__recorder__.method(…)` in the place of `at`; what is no tree is a constant."""
        where = _where(at)
        trees: list[Any] = [
            x if isinstance(x, ast.AST) else _made(ast.Constant, where | {"value": x, "kind": None})
            for x in arguments
        ]
        parts = {"func": self.method(method, where), "args": trees, "keywords": [*keywords]}
        return _made(ast.Call, where | parts)

    def here(self, at: Any, method: str, *arguments: Any) -> ast.Call:
        """Do as `send`; the first argument is the function in which it happens."""
        return self.send(at, method, self.name("__site__", at), *arguments)

    def name(self, name: str, at: Any, context: ast.expr_context | None = None) -> ast.Name:
        return _made(ast.Name, _where(at) | {"id": name, "ctx": context or _LOAD})

    def run(self, value: ast.expr) -> ast.Expr:
        return copy_location(ast.Expr(value), value)

    # -- the walk ---------------------------------------------------------------------------------

    def visit(self, node: Any) -> Any:
        """Rewrite a node by the method named after its class, or its fields; or a list of nodes."""
        if isinstance(node, list):
            return self.through(node, "")
        if not isinstance(node, ast.AST) or not node._fields:
            return node
        kind = type(node).__name__
        if kind in UNOBSERVED:
            return self.unobserved(node, UNOBSERVED[kind])
        return getattr(self, kind, self.parts)(node)

    def parts(self, node: Any, **given: Any) -> Any:
        """Return a node with its fields rewritten, except those given; a new object is told."""
        kind = type(node).__name__
        for field, value in ast.iter_fields(node):
            if field not in given:
                way = THROUGH.get(field) or THROUGH.get(f"{kind}.{field}", "")
                given[field] = self.through(value, way)
        new = _changed(node, **given)
        return self.send(node, "made", new) if kind in MADE else new

    def through(self, value: Any, way: str) -> Any:
        """Rewrite the content of a field; each value goes through a method of the recorder."""
        if isinstance(value, list):
            new = [self.through(part, way) for part in value]
            return [x for part in new for x in (part if isinstance(part, list) else [part])]
        if not way or value is None or isinstance(value, ast.Starred):
            return self.visit(value)
        if way == "truth":
            return self.decide(value, way)
        return self.send(value, way, self.visit(value))

    def unobserved(self, node: Any, what: str) -> list[ast.stmt]:
        return [self.run(self.send(node, "unsupported", what)), node]

    def unit(self, node: FunctionNode) -> ast.FunctionDef:
        """Rewrite the function itself; its defaults and decorators are not evaluated."""
        if isinstance(node, ast.AsyncFunctionDef):
            raise Unsupported("an async function")
        if isinstance(node, ast.Lambda):
            body = [copy_location(ast.Return(node.body), node.body)]
            parts: Any = {"name": "<lambda>", "body": body, "decorator_list": [], "returns": None}
            node = _made(ast.FunctionDef, vars(node) | parts)
        code = self.code
        parameters = [part for part in ast.iter_child_nodes(node.args) if isinstance(part, ast.arg)]
        bound = _bound(node.body).union([part.arg for part in parameters])
        self.local = {*code.co_varnames, *code.co_cellvars}.intersection(map(self.mangle, bound))
        body = self.visit(node.body)
        first = ast.get_docstring(node, clean=False) is not None
        for part in parameters:
            value: ast.expr = self.name(part.arg, part)
            if part is node.args.kwarg:  # a new dict
                body.insert(first, self.run(self.send(part, "made", value)))
            elif self.mangle(part.arg) in code.co_cellvars:
                body[first:first] = self.assign(self.stored(value, value), part)
        return _changed(node, body=body, type_params=[])

    # -- expressions ------------------------------------------------------------------------------

    def Name(self, node: ast.Name) -> ast.expr:
        if not (kind := self.kind(node.id)):
            return node
        method = "name" if kind == "global" else kind
        return self.here(node, method, self.mangle(node.id), node)

    def NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        return _changed(node, value=self.named(node, node.target.id, self.visit(node.value)))

    def Attribute(self, node: ast.Attribute | ast.Subscript) -> ast.expr:
        return self.send(node, *self.place(node))

    Subscript = Attribute

    def Slice(self, node: ast.Slice) -> ast.expr:
        return self.send(node, "slice", *map(self.visit, (node.lower, node.upper, node.step)))

    def Call(self, node: ast.Call) -> ast.expr:
        function = self.send(node, "caller", self.visit(node.func))
        call = {"func": self.parts(node, func=function), "args": [], "keywords": []}
        given = *node.args, *node.keywords
        unpacks = any(isinstance(x, ast.Starred) or getattr(x, "arg", x) is None for x in given)
        return _made(ast.Call, (vars(node) if unpacks else _where(node)) | call)

    def keyword(self, node: ast.keyword) -> ast.keyword:
        return _changed(node, value=self.through(node.value, "" if node.arg else "double_star"))

    def BinOp(self, node: ast.BinOp) -> ast.expr:
        left, right = self.visit(node.left), self.visit(node.right)
        return self.send(node, "binary", SYMBOL[type(node.op)], left, right)

    def UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
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

    def Dict(self, node: ast.Dict) -> Any:
        items = zip(node.keys, node.values, strict=True)
        values = [self.through(value, "" if key else "double_star") for key, value in items]
        return self.parts(node, values=values)

    def comprehension(self, node: Any) -> Any:
        """Rewrite a comprehension: `for a, b in x` becomes `for t in x for a, b in [unpack(t)]`."""
        clauses: list[ast.comprehension] = []
        pending, self.temporaries = self.temporaries, []
        outermost = self.visit(node.generators[0].iter)
        around = self.local
        targets = [part for clause in node.generators for part in ast.walk(clause.target)]
        self.local = around.union(map(self.mangle, filter(None, map(_stored, targets))))
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
            clauses[-1].ifs = self.through(clause.ifs, "truth")
        new = self.parts(node, generators=clauses)
        self.temporaries, self.local = pending, around
        return new

    ListComp = SetComp = DictComp = GeneratorExp = comprehension

    def Lambda(self, node: ast.Lambda) -> Any:
        return self.parts(node, body=node.body)

    def arg(self, node: Tree) -> Tree:
        return node  # its annotation is not looked at while the function runs

    Constant = arg

    def FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        conversion = chr(node.conversion) if node.conversion > 0 else ""
        spec = self.visit(node.format_spec) if node.format_spec else ""
        text = self.send(node, "format", self.visit(node.value), conversion, spec)
        return _changed(node, value=text, conversion=-1, format_spec=None)

    # -- targets ----------------------------------------------------------------------------------

    def stored(self, node: Any, value: ast.expr) -> Pairs:
        """Return the assignments for `node = value` in turn; one without a target is evaluated."""
        if isinstance(node, ast.Tuple | ast.List):
            return self.unpacked(node, value)
        if isinstance(node, ast.Name):
            return [(_changed(node, ctx=ast.Store()), self.named(node, node.id, value))]
        return [(None, self.send(node, "put", value, *self.place(node)))]

    def place(self, node: Any) -> tuple[str, ast.expr, Any]:
        """Return the kind of a target, "attribute" or "item", its owner, and its name or key."""
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
        """Return a local name that takes a value for `node`, and the assignments that follow."""
        if isinstance(node, ast.Name) and not self.kind(node.id) and not waits:
            return node, []
        name = self.temporary()
        return self.name(name, node, ast.Store()), self.stored(node, self.name(name, node))

    def assign(self, pairs: Pairs, at: Any) -> list[ast.stmt]:
        """Make the assignments of `stored`; the temporary names keep nothing alive."""
        new: list[ast.stmt] = [
            copy_location(ast.Assign([to], value), at) if to else self.run(value)
            for to, value in pairs
        ]
        names, self.temporaries = self.temporaries, []
        if names:
            stores: list[ast.expr] = [self.name(name, at, ast.Store()) for name in names]
            targets: list[ast.expr] = [self.name(name, at, ast.Del()) for name in names]
            last = ast.Assign(stores, ast.Constant(None)), ast.Delete(targets)
            new = [ast.fix_missing_locations(copy_location(ast.Try(new, [], [], [*last]), at))]
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
        return self.unobserved(node, "an annotation of an attribute or item without a value")

    def AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        symbol, target = SYMBOL[type(node.op)], node.target
        if isinstance(target, ast.Name):
            old = self.visit(_changed(target, ctx=ast.Load()))
            new = self.send(node, "inplace", symbol, old, self.visit(node.value))
            return self.assign(self.stored(target, new), node)
        held = self.send(target, "hold", *self.place(target))
        return [self.run(self.send(node, "change", symbol, held, self.visit(node.value)))]

    def Delete(self, node: ast.Delete) -> list[ast.stmt]:
        new: list[ast.stmt] = []
        for target in node.targets:
            native = copy_location(ast.Delete([target]), target)
            if isinstance(target, ast.Attribute | ast.Subscript):
                what, *parts = self.place(target)
                new.append(self.run(self.send(target, f"delete_{what}", *parts)))
            elif isinstance(target, ast.Name) and not self.kind(target.id):
                new.append(native)
            else:
                new += self.unobserved(native, "del of a variable outside, or of a list")
        return new

    def For(self, node: ast.For) -> Any:
        target, pairs = self.received(node.target)
        body = [*self.assign(pairs, node.target), *self.visit(node.body)]
        return self.parts(node, target=target, body=body)

    def With(self, node: ast.With) -> ast.stmt:
        item, *inner = node.items
        target, body = None, self.tries(node)
        if item.optional_vars:
            target, pairs = self.received(item.optional_vars)
            body = self.assign(pairs, item.optional_vars)
        # Further items are in the body of the first.
        body += [self.With(_changed(node, items=inner))] if inner else self.visit(node.body)
        return _changed(node, items=[self.parts(item, optional_vars=target)], body=body)

    def tries(self, node: ast.Try | ast.With) -> list[ast.stmt]:
        """Tell of a `try`, and of a `with` around a `yield`: code runs where it is left there."""
        inner = ast.walk(node) if self.code.co_flags & CO_GENERATOR else ()
        yields = any(isinstance(part, ast.Yield | ast.YieldFrom) for part in inner)
        told: list[ast.stmt] = [self.run(self.here(node.body[0], "tries", yields))]
        return told if yields or not isinstance(node, ast.With) else []

    def Try(self, node: ast.Try) -> Any:
        last = [part for statement in node.finalbody for part in ast.walk(statement)]
        if any(isinstance(part, ast.Return | ast.Break | ast.Continue) for part in last):
            return self.unobserved(node, "a finally clause with return, break or continue")
        if any(handler.name and self.kind(handler.name) for handler in node.handlers):
            return self.unobserved(node, "a handler that binds a variable from outside")
        first = [self.run(self.send(part, "exception")) for part in node.finalbody[:1]]
        body, last = [*self.tries(node), *self.visit(node.body)], self.visit(node.finalbody)
        return self.parts(node, body=body, finalbody=[*first, *last])

    TryStar = Try

    def ExceptHandler(self, node: ast.ExceptHandler) -> Any:
        first = node.body[0]
        caught = self.run(self.here(first, "caught", self.send(first, "exception")))
        return self.parts(node, body=[caught, *self.visit(node.body)])

    def Import(self, node: Any) -> list[ast.stmt]:
        """Leave an import to CPython; the recorder is told what each name is bound to."""
        told: list[ast.stmt] = []
        for alias in node.names:
            top = alias.name.partition(".")[0]
            name = alias.asname or top
            words: tuple[str, str] = (alias.name if alias.asname else top, "")
            if isinstance(node, ast.ImportFrom):
                words = "." * node.level + (node.module or ""), alias.name
            told.append(self.run(self.here(node, "imported", *words, self.name(name, node))))
            if self.kind(name):
                return self.unobserved(node, "an import that is bound outside")
        return [node, *told]

    ImportFrom = Import

    def FunctionDef(self, node: Any) -> Any:
        if self.kind(node.name):
            return self.unobserved(node, "a function that is bound outside")
        given = [self.send(part, "decorator", self.visit(part)) for part in node.decorator_list]
        decorators = [*given, self.method("made", _where(node))]
        return _changed(node, args=self.visit(node.args), decorator_list=decorators)

    AsyncFunctionDef = FunctionDef
