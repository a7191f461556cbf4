"""A function compiled anew such that all it does with what is outside of it goes through a recorder.

Control flow, local variables, yields and comprehensions stay those of CPython; each outer read,
decision, call and effect becomes a call of a method of `__recorder__` (`native.Native` lists them).
Two cells are added to those of the function: `__recorder__`, and `__site__`, the function as it was.
"""

import ast
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any, NamedTuple, TypeVar

from oneflow_lite.static.compile.source import FunctionNode, Node, find

Tree = TypeVar("Tree", bound=ast.AST)

SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.UAdd: "+",
    ast.USub: "-",
    ast.Invert: "~",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
# Built-in functions that look at the frame they are called from; some only without arguments.
LOOK_AT_FRAME = {"locals", "globals", "eval", "exec", "__import__", "breakpoint"}
LOOK_AT_FRAME_WITHOUT_ARGUMENTS = {"super", "vars", "dir"}
OPTIMIZED = 1  # CO_OPTIMIZED: the code of a function, not of a class body
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Unsupported(Exception):
    """A function that is not rewritten, for the reason given."""


# By identity, since equal code objects of two files are equal keys; entries go with their keys.
_codes: dict[int, tuple[weakref.ref[CodeType], CodeType]] = {}
_rewritten: dict[int, weakref.ref[CodeType]] = {}


def is_rewritten(code: CodeType) -> bool:
    """Whether a code object came from `rewrite`: a function's, or one defined inside of it."""
    return id(code) in _rewritten


def rewrite(function: FunctionType, recorder: object) -> FunctionType:
    """Return `function` with all that it does with what is outside going through `recorder`.

    What was rewritten before gets the new recorder. Raises `NoSource` or `Unsupported`.
    """
    code = function.__code__
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    if not is_rewritten(code):
        key = id(code)
        if key not in _codes:
            new = _compile(find(code, function.__globals__), code)
            _codes[key] = weakref.ref(code, lambda _: _codes.pop(key, None)), new
        code = _codes[key][1]
        cells["__site__"] = CellType(function)
    cells["__recorder__"] = CellType(recorder)
    closure = tuple(cells[name] for name in code.co_freevars)
    new_function = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, closure
    )
    new_function.__kwdefaults__ = function.__kwdefaults__
    new_function.__qualname__ = function.__qualname__
    return new_function


def _compile(node: Node, code: CodeType) -> CodeType:
    """Compile the rewritten tree in a factory whose parameters are the function's free variables."""
    free = (*code.co_freevars, "__recorder__", "__site__")
    if not all(name.isidentifier() for name in free):
        raise Unsupported("a function inside of annotations")
    source = f"def factory({', '.join(free)}): pass"
    if node.private is not None:  # CPython then mangles the names that stay
        source = f"class {node.private}:\n {source}"
    module = ast.parse(source)
    factory: Any = module.body[0] if node.private is None else module.body[0].body[0]  # type: ignore[attr-defined]
    try:
        factory.body = [_Rewriter(node.private, frozenset(code.co_freevars)).unit(node.tree)]
        compiled = compile(module, node.filename, "exec", node.flags, dont_inherit=True)
    except RecursionError:
        raise Unsupported("an expression nested too deeply") from None
    except SyntaxError as error:
        raise Unsupported(str(error)) from None
    for _ in range(2 if node.private is None else 3):
        (compiled,) = (const for const in compiled.co_consts if isinstance(const, CodeType))
    compiled = _renamed(compiled, compiled.co_qualname, code.co_qualname)
    _register(compiled)
    return compiled


def _renamed(code: CodeType, old: str, new: str) -> CodeType:
    """`code` with the factory's part of its qualified name, and of those inside, put right."""
    if not code.co_qualname.startswith(old):  # the name of what is declared global
        return code
    name = new + code.co_qualname[len(old) :]
    consts = tuple(
        _renamed(const, old, new)
        if isinstance(const, CodeType)
        else name  # a class body stores its own
        if const == code.co_qualname and not code.co_flags & OPTIMIZED
        else const
        for const in code.co_consts
    )
    return code.replace(co_qualname=name, co_consts=consts)


def _register(code: CodeType) -> None:
    """Enter a code object and those of the functions inside; class bodies are not rewritten."""
    if code.co_flags & OPTIMIZED:
        key = id(code)
        _rewritten[key] = weakref.ref(code, lambda _: _rewritten.pop(key, None))
        for const in code.co_consts:
            if isinstance(const, CodeType):
                _register(const)


class _Scope(NamedTuple):
    """The names that a function or comprehension binds, and those that it declares global."""

    bound: set[str]
    globals: set[str]


class _Names(ast.NodeVisitor):
    """Collects the names that the body of a function binds; functions inside have their own."""

    def __init__(self, mangle: Callable[[str], str]) -> None:
        self.mangle = mangle
        self.bound: set[str] = set()
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()

    def visit(self, node: ast.AST) -> None:
        match node:
            case ast.Global():
                self.globals.update(map(self.mangle, node.names))
            case ast.Nonlocal():
                self.nonlocals.update(map(self.mangle, node.names))
            case ast.Name(ctx=ast.Store() | ast.Del()):
                self.bound.add(self.mangle(node.id))
            case ast.alias():
                self.bound.add(self.mangle(node.asname or node.name.partition(".")[0]))
            case ast.MatchMapping(rest=str(name)) | ast.MatchAs(name=str(name)):
                self.bound.add(self.mangle(name))
            case ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
                self.bound.add(self.mangle(name))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.bound.add(self.mangle(node.name))
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                inside = [*node.decorator_list, *_defaults(node.args)]
            case ast.Lambda():
                inside = _defaults(node.args)
            case ast.ClassDef():
                inside = [
                    *node.decorator_list,
                    *node.bases,
                    *(word.value for word in node.keywords),
                ]
            case ast.AnnAssign():
                value = () if node.value is None else (node.value,)
                inside = [node.target, *value] if node.simple or value else []
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                inner = _Names(self.mangle)  # its targets are its own, those of `:=` are not
                inner.generic_visit(node)
                self.bound |= inner.bound - _targets(node, self.mangle)
                return
            case _:
                inside = list(ast.iter_child_nodes(node))
        for child in inside:
            self.visit(child)


def _targets(node: Any, mangle: Callable[[str], str]) -> set[str]:
    """The names that the `for` clauses of a comprehension bind."""
    return {
        mangle(name.id)
        for clause in node.generators
        for name in ast.walk(clause.target)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }


def _defaults(arguments: ast.arguments) -> list[ast.AST]:
    return [*arguments.defaults, *(value for value in arguments.kw_defaults if value is not None)]


def _changed(node: Tree, **changes: Any) -> Tree:
    """A copy of `node` with some fields changed: trees of files are kept and never written to."""
    fields = {field: getattr(node, field, None) for field in node._fields}
    return ast.copy_location(type(node)(**fields | changes), node)


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

    For an expression it returns an expression, for a statement a list of statements.
    """

    def __init__(self, private: str | None, free: frozenset[str]) -> None:
        self.private = (private or "").lstrip("_")
        self.free = free
        self.scopes: list[_Scope] = []
        self.temporaries = 0

    # -- names ------------------------------------------------------------------------------------

    def mangle(self, name: str) -> str:
        """What CPython makes of a name in the class."""
        if not self.private or not name.startswith("__") or name.endswith("__") or "." in name:
            return name
        return f"_{self.private}{name}"

    def kind(self, name: str) -> str:
        """`"global"`, `"free"` (a variable from outside of the unit), or `""`, one of its own."""
        name = self.mangle(name)
        for scope in reversed(self.scopes):
            if name in scope.globals:
                return "global"
            if name in scope.bound:
                return ""
        return "free" if name in self.free else "global"

    def function_scope(self, node: Any) -> _Scope:
        """The names of a function: its parameters, those of its type, and what the body binds."""
        names = _Names(self.mangle)
        for child in [node.body] if isinstance(node, ast.Lambda) else node.body:
            names.visit(child)
        parameters = [arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)]
        parameters += [parameter.name for parameter in getattr(node, "type_params", ())]
        bound = (names.bound | set(map(self.mangle, parameters))) - names.globals - names.nonlocals
        return _Scope(bound, names.globals)

    def temporary(self) -> str:
        self.temporaries += 1
        return f"__temporary_{self.temporaries}__"

    # -- building ---------------------------------------------------------------------------------

    def send(
        self, at: Any, method: str, *arguments: Any, keywords: Sequence[ast.keyword] = ()
    ) -> ast.Call:
        """`__recorder__.method(*arguments)` in the place of `at`; what is no tree is a constant."""
        where = _where(at)
        values = [
            value if isinstance(value, ast.AST) else ast.Constant(value, **where)
            for value in arguments
        ]
        return ast.Call(self.method(at, method), values, list(keywords), **where)

    def method(self, at: Any, method: str) -> ast.Attribute:
        """The bound method itself. CPython takes a call's line from where such an attribute ends."""
        where = _where(at)
        where |= {"end_lineno": where["lineno"], "end_col_offset": where["col_offset"]}
        recorder = ast.Name("__recorder__", ast.Load(), **where)
        return ast.Attribute(recorder, method, ast.Load(), **where)

    def here(self, at: Any, method: str, *arguments: Any) -> ast.Call:
        """As `send`, with the function that it happens in first."""
        return self.send(at, method, self.name("__site__", at), *arguments)

    def name(self, name: str, at: Any, context: ast.expr_context | None = None) -> ast.Name:
        return ast.Name(name, context or ast.Load(), **_where(at))

    def statement(self, value: ast.expr) -> ast.Expr:
        return ast.copy_location(ast.Expr(value), value)

    def assign(self, target: ast.expr, value: ast.expr, at: Any) -> ast.Assign:
        return ast.copy_location(ast.Assign([target], value), at)

    def delete(self, names: Iterable[str], at: Any) -> list[ast.stmt]:
        targets: list[ast.expr] = [self.name(name, at, ast.Del()) for name in names]
        return [ast.copy_location(ast.Delete(targets), at)] if targets else []

    # -- dispatch ---------------------------------------------------------------------------------

    def visit(self, node: Any) -> Any:
        """Rewrite a node by the method named after its class; by default its parts."""
        method = getattr(self, type(node).__name__, None)
        if method is not None:
            return method(node)
        changes = {}
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                changes[field] = self.visit(value)
            elif isinstance(value, list) and value and isinstance(value[0], ast.expr):
                changes[field] = [self.visit(item) for item in value]
        node = _changed(node, **changes) if changes else node
        return [node] if isinstance(node, ast.stmt) else node

    def block(self, statements: Iterable[ast.stmt]) -> list[ast.stmt]:
        return [new for statement in statements for new in self.visit(statement)]

    def visit_all(self, nodes: Iterable[Any]) -> list[Any]:
        return [None if node is None else self.visit(node) for node in nodes]

    def unit(self, node: FunctionNode) -> ast.stmt:
        """The outermost function: what belongs to its definition is left out."""
        if isinstance(node, ast.AsyncFunctionDef):
            raise Unsupported("an async function")
        bare = [ast.Constant(None, **_where(at)) for at in getattr(node, "decorator_list", ())[:1]]
        arguments = _changed(
            node.args,
            defaults=[ast.Constant(None, **_where(at)) for at in node.args.defaults],
            kw_defaults=[None] * len(node.args.kw_defaults),
            **{
                field: [_changed(arg, annotation=None) for arg in getattr(node.args, field)]
                for field in ("posonlyargs", "args", "kwonlyargs")
            },
            **{
                field: arg and _changed(arg, annotation=None)
                for field in ("vararg", "kwarg")
                for arg in [getattr(node.args, field)]
            },
        )
        body = self.inner_body(node)
        if isinstance(node, ast.Lambda):
            new = _changed(node, args=arguments, body=body)
            return ast.copy_location(ast.Return(new), node)
        # The first line of the code is that of the first decorator.
        empty = {"type_params": []} if hasattr(node, "type_params") else {}
        return _changed(node, args=arguments, body=body, decorator_list=bare, returns=None, **empty)

    def inner_body(self, node: FunctionNode) -> Any:
        self.scopes.append(self.function_scope(node))
        lambda_ = isinstance(node, ast.Lambda)
        body = self.visit(node.body) if lambda_ else self.block(node.body)  # type: ignore[arg-type]
        self.scopes.pop()
        return body

    # -- expressions ------------------------------------------------------------------------------

    def Name(self, node: ast.Name) -> ast.expr:
        kind = self.kind(node.id)
        if not kind or node.id == "__debug__":
            return node
        return self.here(node, {"global": "name"}.get(kind, kind), self.mangle(node.id), node)

    def NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        value, kind = self.visit(node.value), self.kind(node.target.id)
        if kind:
            value = self.here(node, f"store_{kind}", self.mangle(node.target.id), value)
        return _changed(node, value=value)

    def Attribute(self, node: ast.Attribute) -> ast.expr:
        return self.send(node, "attribute", self.visit(node.value), self.mangle(node.attr))

    def Subscript(self, node: ast.Subscript) -> ast.expr:
        return self.send(node, "item", self.visit(node.value), self.visit(node.slice))

    def Slice(self, node: ast.Slice) -> ast.expr:
        return self.send(node, "slice", *self.visit_all((node.lower, node.upper, node.step)))

    def Call(self, node: ast.Call) -> ast.expr:
        words = [
            _changed(word, value=self.visit(word.value))
            if word.arg
            else _changed(word, value=self.send(word.value, "double_star", self.visit(word.value)))
            for word in node.keywords
        ]
        function, arguments = node.func, self.visit_all(node.args)
        if any(isinstance(item, ast.Starred) for item in node.args) or not all(
            word.arg for word in words
        ):
            call = self.send(node, "caller", self.visit(function))
            return ast.Call(call, arguments, words, **_where(node))
        call = self.send(node, "call", self.visit(function), *arguments, keywords=words)
        if isinstance(function, ast.Name) and self.kind(function.id) == "global":
            name = function.id
            if name in LOOK_AT_FRAME or (
                name in LOOK_AT_FRAME_WITHOUT_ARGUMENTS and not arguments and not words
            ):
                native = self.send(
                    node, "frame_call", name, _changed(node, args=arguments, keywords=words)
                )
                test = self.here(node, "looks_at_frame", name, function)
                return ast.IfExp(test, native, call, **_where(node))
        return call

    def BinOp(self, node: ast.BinOp) -> ast.expr:
        left, right = self.visit(node.left), self.visit(node.right)
        return self.send(node, "binary", SYMBOLS[type(node.op)], left, right)

    def UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.Not):
            return self.send(node, "not_", self.visit(node.operand))
        if isinstance(node.operand, ast.Constant):
            return node
        return self.send(node, "unary", SYMBOLS[type(node.op)], self.visit(node.operand))

    def BoolOp(self, node: ast.BoolOp) -> ast.expr:
        return self.send(node, "value", self.decide(node, ""))

    def Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) > 1:
            return self.send(node, "value", self.decide(node, ""))
        symbol, (right,) = SYMBOLS[type(node.ops[0])], node.comparators
        return self.send(node, "compare", symbol, self.visit(node.left), self.visit(right))

    def IfExp(self, node: ast.IfExp) -> ast.expr:
        return self.decide(node, "")

    def decide(self, node: Any, way: str) -> ast.expr:
        """Have the truth of an expression taken once for each of its parts, as CPython does.

        `way` is the method that decides: `truth`, of which a bool comes, or `both` (`either`) of an
        operand of `and` (`or`), which keeps the value where it ends the expression. The last
        operand is not asked: its way is "".
        """
        match node:
            case ast.BoolOp(op=op, values=[*values, last]):
                own = way if way == "truth" else "both" if isinstance(op, ast.And) else "either"
                parts = [self.decide(value, own) for value in values]
                return _changed(node, values=[*parts, self.decide(last, way)])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                test, body = self.decide(test, "truth"), self.decide(body, way)
                return _changed(node, test=test, body=body, orelse=self.decide(orelse, way))
            case ast.Compare(ops=[_, _, *_]):
                # The chain stays one of CPython's, over links that know their operators.
                parts = [self.send(node.left, "link", self.visit(node.left))]
                for op, right in zip(node.ops, node.comparators, strict=True):
                    own = way if right is node.comparators[-1] else "both"
                    link = self.visit(right), SYMBOLS[type(op)], own
                    parts.append(self.send(right, "link", *link))
                less: list[ast.cmpop] = [ast.Lt()] * len(node.ops)
                return ast.Compare(parts[0], less, parts[1:], **_where(node))
            case ast.UnaryOp(op=ast.Not(), operand=operand) if way == "truth":
                return _changed(node, operand=self.decide(operand, way))
            case ast.Constant() if way == "truth":
                return node
        value = self.visit(node)
        return self.send(node, way, value) if way else value

    def Starred(self, node: ast.Starred) -> ast.expr:
        return _changed(node, value=self.send(node.value, "star", self.visit(node.value)))

    def List(self, node: ast.List | ast.Tuple) -> ast.expr:
        return self.send(node, "made", _changed(node, elts=self.visit_all(node.elts)))

    Tuple = List

    def key(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Starred):
            return self.visit(node)
        return self.send(node, "key", self.visit(node))

    def Set(self, node: ast.Set) -> ast.expr:
        return self.send(node, "made", _changed(node, elts=[*map(self.key, node.elts)]))

    def Dict(self, node: ast.Dict) -> ast.expr:
        keys = [key and self.key(key) for key in node.keys]
        values = [
            self.visit(value) if key else self.send(value, "double_star", self.visit(value))
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        return self.send(node, "made", _changed(node, keys=keys, values=values))

    def comprehension(self, node: Any) -> ast.expr:
        """A comprehension; an unpacking target becomes a loop over the one tuple unpacked."""
        clauses: list[ast.comprehension] = []
        outermost = self.visit(node.generators[0].iter)
        self.scopes.append(_Scope(_targets(node, self.mangle), set()))
        for clause in node.generators:
            if clause.is_async:
                raise Unsupported("an async comprehension")
            iterable = self.visit(clause.iter) if clauses else outermost
            iterable = self.send(clause.iter, "iterate", iterable)
            target, pairs = self.received(clause.target)
            clauses.append(ast.comprehension(target, iterable, [], 0))
            for target, value in pairs:
                one = ast.List([value], ast.Load(), **_where(target))
                clauses.append(ast.comprehension(target, one, [], 0))
            clauses[-1].ifs = [self.decide(test, "truth") for test in clause.ifs]
        changes: dict[str, Any] = {"generators": clauses}
        for field in {"elt", "key", "value"} & set(node._fields):
            part = getattr(node, field)
            hashed = field == "key" or isinstance(node, ast.SetComp)
            changes[field] = self.key(part) if hashed else self.visit(part)
        self.scopes.pop()
        return self.send(node, "made", _changed(node, **changes))

    ListComp = SetComp = DictComp = GeneratorExp = comprehension

    def Lambda(self, node: ast.Lambda) -> ast.expr:
        arguments = self.arguments(node.args)
        body = self.inner_body(node)
        return self.send(node, "made", _changed(node, args=arguments, body=body))

    def arguments(self, node: ast.arguments) -> ast.arguments:
        """Parameters with their defaults rewritten, which belong to the scope around."""
        defaults, kw_defaults = self.visit_all(node.defaults), self.visit_all(node.kw_defaults)
        return _changed(node, defaults=defaults, kw_defaults=kw_defaults)

    def FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        conversion = "" if node.conversion < 0 else chr(node.conversion)
        spec = self.visit(node.format_spec) if node.format_spec else ""
        text = self.send(node, "format", self.visit(node.value), conversion, spec)
        return _changed(node, value=text, conversion=-1, format_spec=None)

    def TemplateStr(self, node: Any) -> ast.expr:
        return self.send(node, "made", _changed(node, values=self.visit_all(node.values)))

    def YieldFrom(self, node: ast.YieldFrom) -> ast.expr:
        return _changed(node, value=self.send(node.value, "iterate", self.visit(node.value)))

    def Await(self, node: ast.Await) -> ast.expr:
        raise Unsupported("await")

    # -- targets ----------------------------------------------------------------------------------

    def target(self, node: Any) -> ast.expr:
        """A target that CPython stores to; one outside becomes an item of what stores it."""
        match node:
            case ast.Name(id=name):
                kind = self.kind(name)
                if not kind:
                    return node  # type: ignore[no-any-return]
                holder, key = self.here(node, f"{kind}s"), self.mangle(name)
            case ast.Attribute(value=value, attr=name):
                holder, key = self.send(node, "attributes", self.visit(value)), self.mangle(name)
            case _:
                item = self.visit(node.slice)
                return _changed(
                    node, value=self.send(node, "items", self.visit(node.value)), slice=item
                )
        where = _where(node)
        return ast.Subscript(holder, ast.Constant(key, **where), ast.Store(), **where)

    def unpacked(self, node: Any, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
        """Targets and values to be assigned in turn for `node = value`."""
        if not isinstance(node, (ast.Tuple, ast.List)):
            return [(self.target(node), value)]
        stars = [i for i, item in enumerate(node.elts) if isinstance(item, ast.Starred)]
        before, after = (
            (stars[0], len(node.elts) - stars[0] - 1) if stars else (len(node.elts), None)
        )
        targets: list[ast.expr] = []
        pairs: list[tuple[ast.expr, ast.expr]] = []
        for item in node.elts:
            item = item.value if isinstance(item, ast.Starred) else item
            if pairs or isinstance(item, (ast.Tuple, ast.List)):  # the rest waits for its turn
                name = self.temporary()
                targets.append(self.name(name, item, ast.Store()))
                pairs += self.unpacked(item, self.name(name, item))
            else:
                targets.append(self.target(item))
        value = self.send(node, "unpack", value, before, after)
        return [(ast.Tuple(targets, ast.Store(), **_where(node)), value), *pairs]

    def received(self, node: Any) -> tuple[ast.expr, list[tuple[ast.expr, ast.expr]]]:
        """A target for what `for` or `with` gives, and what is to be assigned from it then."""
        if not isinstance(node, (ast.Tuple, ast.List)):
            return self.target(node), []
        name = self.temporary()
        return self.name(name, node, ast.Store()), self.unpacked(node, self.name(name, node))

    def assignments(
        self, pairs: list[tuple[ast.expr, ast.expr]], at: Any, *received: ast.expr
    ) -> list[ast.stmt]:
        """The statements for what `unpacked` gave; its temporary names are deleted."""
        targets = [*received]
        for target, _ in pairs:
            targets += target.elts if isinstance(target, ast.Tuple) else ()
        names = [
            target.id
            for target in targets
            if isinstance(target, ast.Name) and target.id.startswith("__temporary_")
        ]
        return [self.assign(*pair, at) for pair in pairs] + self.delete(names, at)

    # -- statements -------------------------------------------------------------------------------

    def Assign(self, node: ast.Assign) -> list[ast.stmt]:
        value = self.visit(node.value)
        if len(node.targets) == 1:
            return self.assignments(self.unpacked(node.targets[0], value), node)
        name = self.temporary()
        received = self.name(name, node, ast.Store())
        pairs = [
            pair for target in node.targets for pair in self.unpacked(target, self.name(name, node))
        ]
        first = self.assign(received, value, node)
        return [first, *self.assignments(pairs, node, received)]

    def AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        if node.value is not None:
            return [self.assign(self.target(node.target), self.visit(node.value), node)]
        match node.target:  # nothing is stored, and the annotation is not looked at
            case ast.Attribute(value=value):
                return [self.statement(self.visit(value))]
            case ast.Subscript(value=value, slice=key):
                return [self.statement(self.visit(value)), self.statement(self.visit(key))]
        return [node]

    def AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        symbol, target = SYMBOLS[type(node.op)], node.target
        match target:
            case ast.Name():
                old = self.visit(_changed(target, ctx=ast.Load()))
                new = self.send(node, "inplace", symbol, old, self.visit(node.value))
                return [self.assign(self.target(target), new, node)]
            case ast.Attribute(value=value, attr=name):
                what, key = "attribute", self.mangle(name)
            case ast.Subscript(value=value, slice=item):
                what, key = "item", self.visit(item)
        held = self.send(target, f"hold_{what}", self.visit(value), key)
        change = self.send(node, f"change_{what}", symbol, held, self.visit(node.value))
        return [self.statement(change)]

    def Delete(self, node: ast.Delete) -> list[ast.stmt]:
        return [new for target in node.targets for new in self.deleted(target)]

    def deleted(self, node: Any) -> list[ast.stmt]:
        match node:
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                return [new for target in targets for new in self.deleted(target)]
            case ast.Name(id=name):
                kind, tell = self.kind(name), []
                if kind:
                    tell = [self.statement(self.here(node, f"delete_{kind}", self.mangle(name)))]
                return [*tell, *self.delete([name], node)]
            case ast.Attribute(value=value, attr=name):
                value, key = self.visit(value), self.mangle(name)
                return [self.statement(self.send(node, "delete_attribute", value, key))]
        value, key = self.visit(node.value), self.visit(node.slice)
        return [self.statement(self.send(node, "delete_item", value, key))]

    def For(self, node: ast.For) -> list[ast.stmt]:
        iterable = self.send(node.iter, "iterate", self.visit(node.iter))
        target, pairs = self.received(node.target)
        body = [
            *self.assignments(pairs, node.target, *[target] * bool(pairs)),
            *self.block(node.body),
        ]
        orelse = self.block(node.orelse)
        return [_changed(node, target=target, iter=iterable, body=body, orelse=orelse)]

    def If(self, node: ast.If | ast.While) -> list[ast.stmt]:
        body, orelse = self.block(node.body), self.block(node.orelse)
        return [_changed(node, test=self.decide(node.test, "truth"), body=body, orelse=orelse)]

    While = If

    def Assert(self, node: ast.Assert) -> list[ast.stmt]:
        message = node.msg and self.visit(node.msg)
        return [_changed(node, test=self.decide(node.test, "truth"), msg=message)]

    def Raise(self, node: ast.Raise) -> list[ast.stmt]:
        error = node.exc and self.send(node.exc, "raised", self.visit(node.exc))
        return [_changed(node, exc=error, cause=node.cause and self.visit(node.cause))]

    def With(self, node: ast.With) -> list[ast.stmt]:
        *outer, item = node.items
        manager, wanted = item.context_expr, item.optional_vars
        if outer:  # each in the body of the one before it
            inner = self.With(_changed(node, items=node.items[1:]))
            item = node.items[0]
            manager, wanted = item.context_expr, item.optional_vars
        manager = self.send(manager, "context", self.visit(manager))
        target, pairs = (None, []) if wanted is None else self.received(wanted)
        body = inner if outer else self.block(node.body)
        if pairs and target is not None:
            body = [*self.assignments(pairs, wanted, target), *body]
        return [_changed(node, items=[ast.withitem(manager, target)], body=body)]

    def Try(self, node: Any) -> list[ast.stmt]:
        if _leaves(node.finalbody):
            return self.native(node, "a finally clause with return, break or continue")
        parts = ("body", "orelse", "finalbody")
        changes: dict[str, Any] = {part: self.block(getattr(node, part)) for part in parts}
        return [_changed(node, handlers=[*map(self.handler, node.handlers)], **changes)]

    TryStar = Try

    def handler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        name, body = node.name, self.block(node.body)
        if name and self.kind(name):  # bound by hand, and taken away again however the body ends
            outer = ast.Name(name, ast.Store(), **_where(node))
            name = self.temporary()
            nothing = self.assign(self.target(outer), ast.Constant(None, **_where(node)), node)
            last = [nothing, *self.deleted(outer)]
            within = ast.copy_location(ast.Try(body, [], [], last), node)
            body = [self.assign(self.target(outer), self.name(name, node), node), within]
        caught = self.here(node.body[0], "caught", self.send(node.body[0], "exception"))
        kind = node.type and self.visit(node.type)
        return _changed(node, type=kind, name=name, body=[self.statement(caught), *body])

    def Import(self, node: ast.Import | ast.ImportFrom) -> list[ast.stmt]:
        """An import is CPython's; what it bound is told, and stored anew where that is outside."""
        whole = isinstance(node, ast.Import)
        module = "" if whole else "." * node.level + (node.module or "")  # type: ignore[union-attr]
        aliases, after = [], []
        for alias in node.names:
            top = alias.name.partition(".")[0]
            bound = alias.asname or (top if whole else alias.name)
            kind, asname = self.kind(bound), alias.asname
            if kind:
                bound, asname = self.temporary(), self.temporary()
                asname = bound
            aliases.append(_changed(alias, asname=asname))
            if whole and kind and not alias.asname and top != alias.name:
                aliases.append(_changed(alias, name=top, asname=asname))
            words = (alias.name if alias.asname else top, "") if whole else (module, alias.name)
            after.append(
                self.statement(self.here(node, "imported", *words, self.name(bound, node)))
            )
            if kind:
                outer = ast.Name(alias.asname or top, ast.Store(), **_where(node))
                after.append(self.assign(self.target(outer), self.name(bound, node), node))
                after += self.delete([bound], node)
        return [_changed(node, names=aliases), *after]

    ImportFrom = Import

    def FunctionDef(self, node: ast.FunctionDef) -> list[ast.stmt]:
        kind = self.kind(node.name)
        decorators: list[ast.expr] = []
        if kind:
            decorators.append(self.here(node, "storing", kind, self.mangle(node.name)))
        decorators += [self.send(item, "caller", self.visit(item)) for item in node.decorator_list]
        decorators.append(self.method(node, "made"))
        arguments = self.arguments(node.args)
        body = self.inner_body(node)
        return [_changed(node, args=arguments, body=body, decorator_list=decorators)]

    def native(self, node: ast.stmt, what: str) -> list[ast.stmt]:
        """A statement as it stands, and before it the word that it is not observed."""
        return [self.statement(self.send(node, "unsupported", what)), node]

    def ClassDef(self, node: ast.stmt) -> list[ast.stmt]:
        return self.native(node, "a class statement")

    def Match(self, node: ast.stmt) -> list[ast.stmt]:
        return self.native(node, "a match statement")

    def AsyncFunctionDef(self, node: ast.stmt) -> list[ast.stmt]:
        return self.native(node, "an async function")

    def TypeAlias(self, node: ast.stmt) -> list[ast.stmt]:
        return self.native(node, "a type statement")


def _leaves(statements: Iterable[ast.AST], loop: bool = False) -> bool:
    """Whether return, or break or continue of a loop around, stands among `statements`."""
    for node in statements:
        if isinstance(node, ast.Return) or (
            isinstance(node, (ast.Break, ast.Continue)) and not loop
        ):
            return True
        if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.expr)):
            continue
        inner = loop or isinstance(node, (ast.For, ast.While))
        if _leaves(ast.iter_child_nodes(node), inner):
            return True
    return False
