"""The changes of `tests/mutate_gradients.py`: every small mistake a gradient rule could hold.

So could what carries a gradient through writes in place and views, `WRITES`: there each statement
is left out as well.

A mutant is a function of a grad_funcs file with one change of its syntax tree. It takes effect by
lending its code object to the real function, so whatever holds that function runs the mutant:
registries, resolved gradient functions, other modules.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from oneflow_lite.autograd.rules.gradient_rules import DeclaredGradFunction, OpExprGradFunction
from oneflow_lite.ops.registry import GRAD_FUNCS

FunctionTree = ast.FunctionDef
Change = Callable[[Any], ast.AST]
Site = tuple[str, ast.AST, Change]  # kind of mutation, node, what takes the place of its copy


# Modules, and which of their functions decide the history of what is written; none: all of them.
WRITES: dict[str, tuple[str, ...]] = {
    "oneflow_lite.functors.declaring.writes": (
        "write_result",
        "_fit",
        "_snapshot",
        "_keep_old_content",
    ),
    "oneflow_lite.functors.inplace": (
        "_write",
        "copy_",
        "fill_",
        "_fill",
        "zero_",
        "take_view",
        "_take_shape",
    ),
    "oneflow_lite.tensors.views": (),
    "oneflow_lite.tensors.storage": ("ViewInfo.chain",),
    "oneflow_lite.interpreter.stack": ("AutogradInterpreter.apply",),
    "oneflow_lite.interpreter.history": ("rebase_history",),
    "oneflow_lite.interpreter.dispatch": ("replay_view",),
    "oneflow_lite.tensors.tensor": ("Tensor.refresh_view", "Tensor.set_history"),
}


@dataclasses.dataclass
class RuleFunction:
    """A rule of some ops, a helper of rules, or a function of `WRITES` (`ops` empty)."""

    path: Path
    name: str
    tree: FunctionTree
    function: FunctionType
    ops: tuple[str, ...]
    saves: frozenset[str]

    @property
    def where(self) -> str:
        """File and name, stable under edits elsewhere in the file."""
        return f"{self.path.stem}.{self.name}"

    @property
    def writes(self) -> bool:
        """Whether it is a function of `WRITES`."""
        return self.path.parent.name in ("functors", "oneflow_lite")

    def code(self, tree: FunctionTree) -> CodeType:
        """Compile a changed version of this function in the place of the original."""
        bare = copy.deepcopy(tree)
        bare.decorator_list = []
        future = ast.parse("from __future__ import annotations").body
        module = ast.fix_missing_locations(ast.Module([*future, bare], []))
        namespace = dict(self.function.__globals__)
        exec(compile(module, str(self.path), "exec"), namespace)
        made: CodeType = namespace[bare.name].__code__
        return made


@dataclasses.dataclass
class Mutant:
    """One change of one function."""

    rule: RuleFunction
    kind: str
    line: int
    key: str  # names the mutant in the file of equivalent ones
    tree: FunctionTree

    def apply(self) -> None:
        """Let the real function run the changed code, until the process ends."""
        self.rule.function.__code__ = self.rule.code(self.tree)

    def __str__(self) -> str:
        ops = ", ".join(self.rule.ops) or "helper"
        return f"{self.rule.path.parent.name}/{self.rule.path.name}:{self.line} [{ops}] {self.key}"


# Finding the functions


def _registered() -> dict[FunctionType, tuple[set[str], set[str]]]:
    """Return for each rule function the ops it serves and the tensors it saves."""
    found: dict[FunctionType, tuple[set[str], set[str]]] = {}
    for op in GRAD_FUNCS:
        entry = GRAD_FUNCS.get(op)
        rules: list[tuple[Any, str]] = []
        if isinstance(entry, DeclaredGradFunction):
            rules = [*entry.by_name.values()]
            rules += [entry.whole_rule] if entry.whole_rule else []
        elif isinstance(entry, OpExprGradFunction):
            rules = [(type(entry).apply, "")]
        for rule, saves in rules:
            ops, names = found.setdefault(rule, (set(), set()))
            ops.add(op)
            names.update(name.strip() for name in saves.split(",") if "." not in name)
    return found


def find_rules(module: ModuleType) -> list[RuleFunction]:
    """Return the functions and methods that a grad_funcs module defines, or those in `WRITES`."""
    registered = _registered()
    wanted = WRITES.get(module.__name__, ())
    path = Path(inspect.getfile(module)).resolve()
    found = []
    for owner, tree in _definitions(ast.parse(path.read_text("utf-8"))):
        holder = module if owner is None else getattr(module, owner)
        function = vars(holder)[tree.name]
        if not isinstance(function, FunctionType):
            continue
        ops, saves = registered.get(function, ((), ()))
        name = tree.name if owner is None else f"{owner}.{tree.name}"
        if wanted and name not in wanted:
            continue
        found.append(RuleFunction(path, name, tree, function, tuple(sorted(ops)), frozenset(saves)))
    return found


def _definitions(module: ast.Module) -> Iterator[tuple[str | None, FunctionTree]]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef):
            yield None, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield node.name, inner


# Changing them


def mutants(rule: RuleFunction) -> list[Mutant]:
    """Return every mutant of a function, each text of the function once."""
    seen = {ast.unparse(rule.tree)}
    keys: dict[str, int] = {}
    made = []
    order = {id(node): i for i, node in enumerate(ast.walk(rule.tree))}
    for kind, node, change in _sites(rule):
        tree = copy.deepcopy(rule.tree)
        target = list(ast.walk(tree))[order[id(node)]]
        new = change(target)
        before, after = ast.unparse(node), ast.unparse(new)
        tree = ast.fix_missing_locations(_Replace(target, new).visit(tree))
        text = ast.unparse(tree)
        if text in seen:
            continue
        seen.add(text)
        key = f"{rule.where} | {kind}: {before} -> {after}"
        keys[key] = keys.get(key, 0) + 1
        if keys[key] > 1:
            key += f" ({keys[key]})"
        made.append(Mutant(rule, kind, getattr(node, "lineno", rule.tree.lineno), key, tree))
    made += _swapped_operands(rule, seen)
    return made


class _Replace(ast.NodeTransformer):
    def __init__(self, target: ast.AST, new: ast.AST) -> None:
        self.target, self.new = target, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.target else self.generic_visit(node)


def _sites(rule: RuleFunction) -> Iterator[Site]:
    arguments = [a.arg for a in rule.tree.args.args]
    if "F" in arguments:
        yield from _returned(rule, arguments)
    if rule.writes:
        yield from _statements(rule.tree)
    types = {
        id(part)
        for node in ast.walk(rule.tree)
        if isinstance(node, ast.AnnAssign)
        for part in ast.walk(node.annotation)
    }
    for statement in rule.tree.body:
        for node in ast.walk(statement):
            if id(node) in types:
                continue
            if isinstance(node, ast.BinOp):
                yield from _binary(node)
            elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
                if not isinstance(node.operand, ast.Constant):
                    yield "drop minus", node, lambda n: n.operand
            elif isinstance(node, ast.Compare) and len(node.ops) == 1:
                yield from _comparison(node)
            elif isinstance(node, ast.BoolOp):
                for i in range(len(node.values)):
                    yield "drop condition", node, lambda n, i=i: n.values[i]
            elif isinstance(node, (ast.If, ast.IfExp)):
                yield "negate condition", node.test, _not
            elif isinstance(node, ast.Call):
                yield from _call(node)


def _statements(function: FunctionTree) -> Iterator[Site]:
    """Leave out each statement that does something."""
    for node in ast.walk(function):
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign, ast.Raise)) and not text:
            yield "drop statement", node, lambda _: ast.Pass()


def _not(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def _returned(rule: RuleFunction, arguments: list[str]) -> Iterator[Site]:
    """Negate each returned gradient, and replace it by None and by zeros."""
    for node in ast.walk(rule.tree):
        if not isinstance(node, ast.Return) or node.value is None:
            continue
        value = node.value
        if isinstance(value, ast.Constant) and value.value is None:
            if len(arguments) > 2:  # silence where there is a gradient
                yield "replace gradient", value, lambda _: ast.Name(arguments[2], ast.Load())
            continue
        for gradient in value.elts if isinstance(value, ast.Tuple) else [value]:
            if isinstance(gradient, (ast.Constant, ast.Starred, ast.Dict, ast.Compare)):
                continue
            zeros = ast.unparse(gradient).startswith("F.zeros_like(")
            for kind, text in (
                ("negate gradient", "-{0}"),
                ("replace gradient", "None"),
                ("replace gradient", "F.zeros_like({0})"),
            ):
                if zeros and text != "None":  # zeros again
                    continue
                if rule.ops or kind == "negate gradient":
                    yield kind, gradient, lambda n, text=text: _filled(text, n)


def _filled(text: str, gradient: ast.expr) -> ast.expr:
    """Put a gradient into an expression; one that a variable holds may be None, and stays it."""
    made = ast.parse(text.format(f"({ast.unparse(gradient)})"), mode="eval").body
    if isinstance(gradient, ast.Name) and "{0}" in text:
        none = ast.Compare(gradient, [ast.Is()], [ast.Constant(None)])
        return ast.IfExp(none, gradient, made)
    return made


def _binary(node: ast.BinOp) -> Iterator[Site]:
    if isinstance(node.op, (ast.Add, ast.BitAnd, ast.BitOr)):
        yield "drop term", node, lambda n: n.left
        yield "drop term", node, lambda n: n.right
    elif isinstance(node.op, ast.Sub):
        yield "drop term", node, lambda n: n.left
        yield "drop term", node, lambda n: ast.UnaryOp(ast.USub(), n.right)
        yield "add instead", node, lambda n: ast.BinOp(n.left, ast.Add(), n.right)
    elif isinstance(node.op, ast.Mult):
        yield "drop factor", node, lambda n: n.left
        yield "drop factor", node, lambda n: n.right
    elif isinstance(node.op, ast.Div):
        yield "drop divisor", node, lambda n: n.left
        yield "multiply instead", node, lambda n: ast.BinOp(n.left, ast.Mult(), n.right)
    elif isinstance(node.op, ast.Pow):
        yield "drop exponent", node, lambda n: n.left
    if isinstance(node.op, (ast.Div, ast.Pow, ast.Sub)):
        yield "swap operands", node, lambda n: ast.BinOp(n.right, n.op, n.left)


_NEIGHBOUR = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}


def _comparison(node: ast.Compare) -> Iterator[Site]:
    other = _NEIGHBOUR.get(type(node.ops[0]))
    if other is not None:
        yield "compare", node, lambda n: ast.Compare(n.left, [other()], n.comparators)


def _call(node: ast.Call) -> Iterator[Site]:
    """Swap arguments, drop or change keywords, and leave out the call of an `F.op`."""
    plain = not any(isinstance(a, ast.Starred) for a in node.args)
    of_f = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "F"
    takes_f = bool(node.args) and ast.unparse(node.args[0]) == "F"  # a helper, not an op
    if plain and (of_f or takes_f):
        for i in range(int(takes_f), len(node.args) - 1):
            yield "swap arguments", node, lambda n, i=i: _swapped(n, i)
    if plain and of_f and node.args:
        yield "drop call", node, lambda n: n.args[0]
    for i, keyword in enumerate(node.keywords):
        if keyword.arg is None or not (of_f or takes_f):
            continue
        yield "drop keyword", node, lambda n, i=i: _without(n, i)
        value = keyword.value
        if isinstance(value, ast.Constant) and type(value.value) in (int, float):
            yield "change constant", keyword, lambda n: _with(n, ast.Constant(n.value.value + 1))
        elif isinstance(value, ast.Constant) and type(value.value) is bool:
            yield "flip", keyword, lambda n: _with(n, ast.Constant(not n.value.value))
        elif keyword.arg == "keepdim":
            yield "flip", keyword, lambda n: _with(n, _not(n.value))


def _with(keyword: ast.keyword, value: ast.expr) -> ast.keyword:
    return ast.keyword(keyword.arg, value)


def _swapped(call: ast.Call, i: int) -> ast.Call:
    args = [*call.args[:i], call.args[i + 1], call.args[i], *call.args[i + 2 :]]
    return ast.Call(call.func, args, call.keywords)


def _without(call: ast.Call, i: int) -> ast.Call:
    return ast.Call(call.func, call.args, [*call.keywords[:i], *call.keywords[i + 1 :]])


def _swapped_operands(rule: RuleFunction, seen: set[str]) -> list[Mutant]:
    """Exchange each pair of saved tensors throughout the function."""

    def saved(node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "ctx"
            and node.attr in rule.saves
        )

    nodes = [n for n in ast.walk(rule.tree) if saved(n)]
    names = sorted({n.attr for n in nodes if isinstance(n, ast.Attribute)})
    made = []
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            other = {first: second, second: first}
            tree = copy.deepcopy(rule.tree)
            for node in ast.walk(tree):
                if saved(node) and isinstance(node, ast.Attribute):
                    node.attr = other.get(node.attr, node.attr)
            text = ast.unparse(tree)
            if text not in seen:
                seen.add(text)
                key = f"{rule.where} | swap saved: ctx.{first} <-> ctx.{second}"
                made.append(Mutant(rule, "swap saved", rule.tree.lineno, key, tree))
    return made
