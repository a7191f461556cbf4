"""Declarations of ops: from one decorated signature the functor that users call is made.

The author writes a signature whose annotations name domains (`domains.py` beside this file), a
summary, further remarks, and an example. `functor` derives the rest: the checks, `out=`,
`inplace=`, the in-place twin, where the name is exposed, the sections of `help()`, and the
samples that the sweeps of the tests use. The result is one flat function with the real signature.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import re
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ForwardRef, NamedTuple, TypeVar, Union, cast, get_args, get_origin

from oneflow_lite.arrays.device import DeviceLike
from oneflow_lite.arrays.dtype import DTypeLike, Number
from oneflow_lite.arrays.dtype_object import dtype
from oneflow_lite.arrays.memory_format import memory_format
from oneflow_lite.arrays.refusals import RAW, refuse
from oneflow_lite.errors import ForeignTypeError, RegistrationError
from oneflow_lite.functors.declaring.domains import Domain
from oneflow_lite.functors.declaring.out import (
    out_dtype,
    write_any_out,
    write_out,
    write_same_out,
)
from oneflow_lite.functors.declaring.writes import take_view, write_result
from oneflow_lite.interpreter.dispatch import dispatch, dispatch1, dispatch2, promote
from oneflow_lite.ops import exposure
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import FUNCTORS, Registry, runs_again
from oneflow_lite.tensors.foreign import instead
from oneflow_lite.tensors.spellings import NOTHING, NUMPY_NAMES, old_order, one_of
from oneflow_lite.tensors.tensor import Tensor

Function = TypeVar("Function", bound=Callable[..., Any])

# The namespaces whose prefix a functor's name carries: `linalg_norm` is exposed as `linalg.norm`.
PREFIXED = ("linalg", "special", "fft", "masked", "functional")


class Parameter(NamedTuple):
    """A parameter of a declaration."""

    name: str
    kind: str  # "positional", "variadic", "keyword" or "named" (all other keywords)
    required: bool
    hint: str  # its type, as stubs show it
    domain: Domain | None
    optional: bool  # None goes unchecked

    @property
    def handed_on(self) -> str:
        """The text by which a call inside the function passes it on."""
        marks = {"positional": "{0}", "variadic": "*{0}", "keyword": "{0}={0}", "named": "**{0}"}
        return marks[self.kind].format(self.name)


Options = tuple[Parameter, ...]  # that `**options` of an author stands for


class Declaration:
    """The declaration of a functor.

    name, spoken: the name under which it is registered, and its name in errors, as `linalg.norm`.
    family: the module that declares it.
    author, function: the author's function, and the function made from it.
    parameters: the author's; `inplace` and `out` are not among them.
    places, twin_places: where the functor and its in-place twin are exposed: pairs of a namespace
      and a name in it.
    samples: arguments of sample calls; `oneflow_lite.functors.declaring.samples` reads them.
    """

    def __init__(
        self,
        author: Callable[..., Any],
        on: str = "",
        *,
        op: str | None = None,
        out: bool | str = False,
        inplace: bool = False,
        twin: bool | str = False,
        reshapes: bool | str = False,
        alias: str = "",
        spelled: str = "",
        old: bool = False,
        listed: bool = False,
        samples: str = "",
        results: str = "",
    ) -> None:
        self.author = author
        self.name: str = author.__name__
        head, _, tail = self.name.partition("_")
        dotted = head in PREFIXED and head in on.split() and tail  # masked_fill is in no namespace
        self.spoken = f"{head}.{tail}" if dotted else self.name
        self.family = author.__module__.rpartition(".")[2]
        self.op = op or self.name
        self.out, self.inplace = out, inplace
        words = twin or reshapes or inplace
        twin_on = "Tensor" if words is True else words or ""
        for other in alias.split():
            on += "".join(f" {word}.{other}" for word in on.split() if "." not in word)
            twin_on += "".join(f" {word}.{other}_" for word in twin_on.split() if "." not in word)
        self.places = tuple(_places(self.name, on))
        self.twin_places = tuple(_places(f"{self.name}_", twin_on))
        self.has_twin, self.reshapes = bool(words), bool(reshapes)
        self.spelled, self.old, self.listed = spelled, old, listed
        self.samples, self.results = _lines(samples), _lines(results)
        self.parameters = tuple(_parameters(author))
        self.result = _evaluated(author.__annotations__.get("return"), author)
        self.function: Callable[..., Any] = author

    @property
    def spellings(self) -> dict[str, str]:
        """Other names of parameters: NumPy's, and those of `spelled`."""
        names = {p.name for p in self.parameters if self.places}
        found = {other: name for name, other in NUMPY_NAMES.items() if name in names}
        return found | dict(word.split("=") for word in self.spelled.split())

    @property
    def has_body(self) -> bool:
        """Whether the author wrote more than a docstring; if not, the call is the op's dispatch."""
        return self.author.__code__.co_code not in _EMPTY_BODIES


class Declarations(Registry[Declaration]):
    """Declarations by name, of the functors that are registered."""

    def __iter__(self) -> Iterator[str]:
        return (name for name in super().__iter__() if name in FUNCTORS)


DECLARATIONS = Declarations("declaration")
DECLARATIONS.missing = functools.partial(exposure.load, "functors")


def functor(on: str = "", **options: Any) -> Callable[[Function], Function]:
    """Declare a functor by its signature, and make the function that users call.

    A function whose body is only a docstring dispatches its op: parameters in tensor domains are
    the inputs, the others the attributes of the same name. A function with a body gets its
    arguments checked, and computes the rest itself. A name that is taken is a `RegistrationError`.

    on: where the function is exposed, in words: `flow`, `Tensor`, `functional`, `linalg`,
      `special`, `fft`, `masked`; `flow.absolute` exposes it there under another name.
    op: the op, if it goes by another name than the function.
    out: whether it takes `out=`: of a dtype to which the result can be cast (True), of the same one
      as the result ("same"), or of any ("any").
    inplace: whether it takes `inplace=`, as functions of `nn.functional` do; makes a twin, too.
    twin, reshapes: make the in-place twin `name_`: a method (True), or exposed where the words say.
      The twin of a view `reshapes`: it changes the shape of the tensor itself.
    alias: further names, wherever the functor and its twin are exposed under their own names.
    spelled: further names of parameters, as `input2=L`, that PyTorch takes as keywords.
    listed: whether what the last argument lists may be given one by one, as PyTorch's methods do.
    old: whether its keywords may stand in front of the tensors that they scale, with a warning.
    samples: arguments of sample calls, one a line or between semicolons, in the words of
      `oneflow_lite.functors.declaring.samples`. By default a sample is derived from the domains.
    results: the types of the result, where they depend on arguments, for the stubs: a line each, as
      `dim: int -> MaxResult`.
    """

    def decorator(author: Function) -> Function:
        return cast(Function, declare(Declaration(author, on, **options)))

    return decorator


# What callers may pass where the annotation is Any, because the body gets what a check made of it:
# by the words of the domain's type, and by the names of parameters that mean one thing everywhere.
_HINTS = {
    "Tensor": "Tensor",
    "Tensor or number": "Tensor | Number",
    "Tensor or int": "Tensor | int",
    "Tensor or sequence of int": "Tensor | Sequence[int]",
    "Tensor or sequence of Tensors": "Tensor | Sequence[Tensor]",
    "number": "Number",
    "number or str": "float | str",
    "number or sequence of numbers": "float | Sequence[float]",
    "bool, optional": "bool | None",
    "int or tuple of ints": "int | Sequence[int]",
    'int, tuple of ints, "same" or "valid"': "int | Sequence[int] | str",
    "int or sequence of int": "int | Sequence[int]",
    "sequence of int": "Sequence[int]",
    "sequence of int, optional": "Sequence[int] | None",
    "dtype": "DTypeLike | None",
    "device": "DeviceLike | None",
    "generator": "Generator | None",
    "layout": "layout | None",
    "memory_format": "memory_format | None",
    "placement": "placement | None",
    "sbp": "Sbp | Sequence[Sbp] | None",
}


def _hint_of(name: str, domain: Domain | None, default: Any) -> str:
    """Return what callers may pass as a parameter that is annotated as Any."""
    hint = _HINTS.get(domain.type if domain else "") or _HINTS.get(name, "Any")
    return f"{hint} | None" if default is None and hint[-3:] not in ("Any", "one") else hint


def keyword(name: str, hint: str = "", domain: Domain | None = None) -> Parameter:
    """Return a parameter that `**options` stands for; its default is None, or False."""
    return Parameter(name, "keyword", False, hint or _hint_of(name, domain, None), domain, False)


def with_options(
    on: str = "flow", options: Options = (), name: str = "", summary: str = "", **words: Any
) -> Callable[[Function], Function]:
    """Declare a function whose author has `**options` in the place of these parameters.

    Functions that share an author have their name and docstring from here.
    """

    def decorator(author: Function) -> Function:
        if name:
            author.__name__ = author.__qualname__ = name
            author.__doc__ = summary
        declaration = Declaration(author, on, **words)
        own = [p for p in declaration.parameters if p.kind != "named"]
        declaration.parameters = (*own, *options)
        defaults = {p.name: False if p.hint == "bool" else None for p in options}
        author.__kwdefaults__ = {**(author.__kwdefaults__ or {}), **defaults}
        return cast(Function, declare(declaration))

    return decorator


def _row(
    like: Callable[..., Any],
    name: str,
    summary: str,
    example: str = "",
    *,
    domain: Any,
    on: str = "flow Tensor",
    **options: Any,
) -> Callable[..., Tensor]:
    """Declare a function by the row of a table: `unary`, or `binary` with two operands.

    domain: the domain of the tensors.
    example: `input -> result`, or `input & other -> result`.
    """
    caller = sys._getframe(1)
    place = {"co_filename": caller.f_code.co_filename, "co_firstlineno": caller.f_lineno}
    code = like.__code__.replace(co_name=name, co_qualname=name, **place)  # type: ignore[arg-type]
    author = types.FunctionType(code, caller.f_globals, name)
    names = code.co_varnames[: code.co_argcount]
    author.__annotations__ = {**dict.fromkeys(names, domain), "return": Tensor}
    author.__doc__ = summary
    if example:
        given, _, result = example.partition(" -> ")
        where, call = next(_places(name, on))
        where = {"flow": "flow", "functional": "flow.nn.functional"}.get(where, f"flow.{where}")
        inputs = ", ".join(f"flow.tensor({part})" for part in given.split(" & "))
        author.__doc__ += f"\n\n>>> {where}.{call}({inputs})\n{result}"
    return functor(on, **{"out": True, **options})(author)


def _of_one(input):  # type: ignore[no-untyped-def]
    """Be the body that the author of a row would write."""


def _of_two(input, other):  # type: ignore[no-untyped-def]
    """Be the body that the author of a row would write."""


def _undocumented(): ...  # type: ignore[no-untyped-def]


_EMPTY_BODIES = (_of_one.__code__.co_code, _undocumented.__code__.co_code)
unary, binary = functools.partial(_row, _of_one), functools.partial(_row, _of_two)


# --- Reading the author's function ----------------------------------------------------------------


def _parameters(author: Callable[..., Any]) -> Iterator[Parameter]:
    code, names = author.__code__, author.__code__.co_varnames
    count, keywords = code.co_argcount, code.co_kwonlyargcount
    needed = count - len(author.__defaults__ or ())
    given = author.__kwdefaults__ or {}
    defaults = dict(zip(names[needed:count], author.__defaults__ or (), strict=True)) | given
    listed = [(name, "positional", i < needed) for i, name in enumerate(names[:count])]
    if code.co_flags & inspect.CO_VARARGS:
        listed.append((names[count + keywords], "variadic", False))
    listed += [(name, "keyword", name not in given) for name in names[count : count + keywords]]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        listed.append((names[len(listed)], "named", False))
    for name, kind, required in listed:
        hint = _evaluated(author.__annotations__[name], author)
        domain, optional = _domain_of(hint)
        text = _type_text(hint)
        text = _hint_of(name, domain, defaults.get(name, ...)) if text == "Any" else text
        yield Parameter(name, kind, required, text, domain, optional)


@functools.cache
def _expression(text: str) -> types.CodeType:
    return compile(text, "<annotation>", "eval")


def _evaluated(hint: Any, author: Callable[..., Any]) -> Any:
    """Return the object that an annotation names."""
    return eval(_expression(hint), author.__globals__) if isinstance(hint, str) else hint


def _domain_of(hint: Any) -> tuple[Domain | None, bool]:
    """Return the domain of an annotation, and whether the annotation is `... | None`."""
    for part in (hint, *get_args(hint)):
        for extra in getattr(part, "__metadata__", ()):
            if isinstance(extra, Domain):
                return extra, part is not hint and not hasattr(hint, "__metadata__")
    return None, False


def _type_text(hint: Any) -> str:
    """Write a type as stubs do."""
    if hasattr(hint, "__metadata__"):
        return _type_text(hint.__origin__)
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " | ".join(_type_text(part) for part in parts)
    if hint in (None, type(None)):
        return "None"
    if origin is None:
        return hint.__name__ if isinstance(hint, type) else repr(hint).replace("typing.", "")
    name = getattr(origin, "__name__", str(origin))
    if name == "Callable":
        return "Callable[..., Any]"
    return f"{name}[{', '.join('...' if p is Ellipsis else _type_text(p) for p in parts)}]"


def _lines(text: str) -> tuple[str, ...]:
    """Return what stands in lines, or between semicolons."""
    return tuple(line.strip() for line in re.split(r";|\n", text) if line.strip())


def _places(name: str, words: str) -> Iterator[tuple[str, str]]:
    """Yield where a functor is exposed, and under which name."""
    head, _, tail = name.partition("_")
    for word in words.split():
        place, _, alias = word.partition(".")
        yield place, alias or (tail if place == head and place in PREFIXED and tail else name)


# --- Writing the function -------------------------------------------------------------------------


def declare(declaration: Declaration) -> Callable[..., Any]:
    """Make and register the functor of a declaration, and its in-place twin."""
    author = declaration.author
    scope = {"NAME": declaration.spoken, "BODY": author}
    function = _functor(declaration, scope)
    old = DECLARATIONS.peek(declaration.name)
    if old is not None and runs_again(old.author, author):
        withdraw(declaration.name)
    declaration.function = function
    if declaration.results:
        results = [case.rpartition("-> ")[2] for case in declaration.results]
        function.__annotations__["return"] = " | ".join(dict.fromkeys(results))
    own = not author.__module__.startswith("oneflow_lite.")  # the index places the library's
    methods = _methods(declaration) if own else []
    FUNCTORS.add(declaration.name, function)
    DECLARATIONS.remove(declaration.name)
    DECLARATIONS.add(declaration.name, declaration)
    if declaration.has_twin:
        twin = _twin(declaration, function)
        FUNCTORS.add(twin.__name__, twin)
        author.__globals__[twin.__name__] = twin
        fill_cell(function, "TWIN", twin)
    for method, functor in methods:
        setattr(Tensor, method, FUNCTORS.get(functor))
    fill_cell(function, "SELF", function)
    function.__doc__ = document(declaration)
    return function


def _methods(declaration: Declaration) -> list[tuple[str, str]]:
    """Return the methods that Tensor gets, and their functors; raise where it has such a name."""
    d = declaration
    places = [(d.name, p) for p in d.places] + [(f"{d.name}_", p) for p in d.twin_places]
    methods = [(name, functor) for functor, (place, name) in places if place == "Tensor"]
    for name, _ in methods:
        if hasattr(Tensor, name):
            raise RegistrationError(
                f"functor {d.name!r}: Tensor has an attribute {name!r} already; choose another name"
            )
    return methods


def withdraw(name: str) -> None:
    """Take a functor out of the registries, with its twin and the methods that they are."""
    declaration = DECLARATIONS.peek(name)
    for functor in [name, *([f"{name}_"] if declaration and declaration.has_twin else [])]:
        function = FUNCTORS.peek(functor)
        for method in [m for m, value in vars(Tensor).items() if value is function is not None]:
            delattr(Tensor, method)
        FUNCTORS.remove(functor)
    DECLARATIONS.remove(name)


_SCOPE: dict[str, Any] = {
    "dispatch": dispatch,
    "dispatch1": dispatch1,
    "dispatch2": dispatch2,
    "promote": promote,
    "Tensor": Tensor,
    "write_any_out": write_any_out,
    "write_out": write_out,
    "write_same_out": write_same_out,
    "out_dtype": out_dtype,
    "nothing": NOTHING,
    "one_of": one_of,
    "old_order": old_order,
    "instead": instead,
    "ForeignTypeError": ForeignTypeError,
    "RAW": RAW,
    "refuse": refuse,
}


def _functor(declaration: Declaration, scope: dict[str, Any]) -> Callable[..., Any]:
    """Make the function that users call; the author's own where there is nothing to add."""
    d, lines = declaration, _other_ways(declaration)
    first = d.parameters[0].name if d.parameters else ""
    kept = [p for p in d.parameters if not (p.domain and p.domain.dropped)]
    handed_on = ", ".join(p.handed_on for p in kept)
    if d.out:
        given = handed_on
        early = any(p.kind == "keyword" and p.domain and p.domain.early for p in d.parameters)
        if early and d.out is True:
            given = given.replace("dtype=dtype", "dtype=out_dtype(NAME, out, dtype)")
        write = {"same": "write_same_out", "any": "write_any_out"}.get(str(d.out), "write_out")
        lines.append(f"if out is not None: return {write}(NAME, out, SELF, {given})")
    for p in sorted(d.parameters, key=lambda p: not (p.domain and p.domain.early)):
        if p.domain is None or not p.domain.check:
            continue
        scope.update({check.__name__: check for check in p.domain.uses})
        conditions = [f"{p.name} is not None"] if p.optional else []
        if p.domain.quick:
            conditions.append(f"not ({p.domain.quick})")
        check = f"if {' and '.join(conditions)}: " if conditions else ""
        lines.append((check + p.domain.check).format(x=p.name, first=first))
    if d.inplace:
        lines.append(f"if inplace: return TWIN({handed_on})")
    listed = any(p.kind == "variadic" for p in d.parameters)
    if not (lines or listed) and d.has_body:
        return d.author
    if d.has_body:
        lines.append(f"return BODY({handed_on})")
    else:
        lines += _dispatching(d, scope)
    if listed or any("Tensor" in p.hint or (p.domain and p.domain.tensor) for p in d.parameters):
        given = "".join(f"{p.handed_on}, " for p in kept if p.kind in ("positional", "variadic"))
        named = "".join(f'"{p.name}": {p.name}, ' for p in kept if p.kind == "keyword")
        lines = _guarded(d, scope, lines, f"return instead(SELF, ({given}), {{{named}}})")
    else:
        lines = _guarded(d, scope, lines)
    extra = (["inplace"] if d.inplace else [], ["out"] if d.out else [])
    spellings = d.spellings
    more = d.old or d.listed
    return _flat(d.author, d.parameters, lines, {**_SCOPE, **scope}, *extra, spellings, more=more)


def _guarded(
    declaration: Declaration, scope: dict[str, Any], lines: list[str], foreign: str = ""
) -> list[str]:
    """Return the lines in a `try`, which costs nothing where nothing is raised."""
    scope["PARAMETERS"] = declaration.parameters
    return [
        *("try:", *[f" {line}" for line in lines]),
        *(["except ForeignTypeError:", f" {foreign}"] if foreign else []),
        *("except RAW as error:", " refuse(NAME, PARAMETERS, error, locals())", " raise"),
    ]


def _other_ways(declaration: Declaration, out: bool = True) -> list[str]:
    """Return the lines that take arguments given by other names, or in an older order."""
    d, author, lines = declaration, declaration.author, []
    optional = [p.name for p in d.parameters if p.kind == "positional" and not p.required]
    known = dict(zip(optional, author.__defaults__ or (), strict=True))
    known |= author.__kwdefaults__ or {}
    if d.old:
        places = ", ".join(p.name for p in d.parameters if p.kind == "positional")
        factors = "".join(f", {p.handed_on}" for p in d.parameters if p.kind == "keyword")
        factors += ", out=out" if d.out and out else ""
        lines.append(f"if more: return old_order(NAME, SELF, ({places}, *more){factors})")
    if d.listed:
        last = d.parameters[-1].name
        lines.append(f"if more: {last} = ({last}, *more)")
    return lines + [
        f"if {other} is not None: "
        f"{name} = one_of(NAME, '{name}', {name}, {known.get(name, NOTHING)!r}, '{other}', {other})"
        for other, name in d.spellings.items()
    ]


def _dispatching(declaration: Declaration, scope: dict[str, Any]) -> list[str]:
    """Return the lines that dispatch the op: tensors are its inputs, the rest its attributes."""
    d, lines = declaration, []
    scope["OP"] = op_expr(d.op)
    tensors = [p for p in d.parameters if p.domain is not None and p.domain.tensor]
    attrs = [p.name for p in d.parameters if p not in tensors and not (p.domain and p.domain.early)]
    given = ", {" + ", ".join(f'"{name}": {name}' for name in attrs) + "}" if attrs else ""
    operands = [p.name for p in tensors if p.domain and p.domain.tensor == "operand"]
    result = "{}"
    if hasattr(d.result, "_fields"):
        scope["RESULT"], result = d.result, "RESULT(*{})"
    meet, quick = next(
        ((p.domain.meet, p.domain.quick) for p in tensors if p.domain and p.domain.meet), (None, "")
    )
    if meet is not None:
        scope["MEET"] = meet
        line = f"{', '.join(operands)} = MEET(NAME, {', '.join(operands)})"
        lines.append(f"if not ({quick.format(*operands)}): {line}" if quick else line)
    if len(tensors) == len(operands) == 2:
        call = f"dispatch2(OP, {operands[0]}, {operands[1]}{given})"
    elif len(tensors) == 1 and tensors[0].domain.tensor != "many":  # type: ignore[union-attr]
        call = f"dispatch1(OP, {tensors[0].name}{given})"
    else:
        if len(operands) > 1 and meet is None:
            lines.append(f"{', '.join(operands)} = promote(NAME, {', '.join(operands)})")
        many = [("*" if p.domain.tensor == "many" else "") + p.name for p in tensors]  # type: ignore[union-attr]
        call = f"dispatch(OP, ({', '.join(many)},){given})"
    return [*lines, f"return {result.format(call)}"]


def _twin(declaration: Declaration, functor: Callable[..., Any]) -> Callable[..., Any]:
    """Make `name_`, which writes into its first argument, or changes its shape."""
    d, name = declaration, f"{declaration.name}_"
    first, *rest = d.parameters
    args = "".join(f"{p.handed_on}, " for p in rest if p.kind != "keyword")
    kwargs = ", ".join(f'"{p.name}": {p.name}' for p in rest if p.kind == "keyword")
    lines = _other_ways(d, out=False)
    same = ", True" if d.out == "same" and not d.reshapes else ""
    lines.append(f"return RUN(NAME, FUNCTOR, {first.name}, ({args}), {{{kwargs}}}{same})")
    scope: dict[str, Any] = {
        "NAME": name,
        "FUNCTOR": functor,
        "RUN": take_view if d.reshapes else write_result,
    }
    scope |= _SCOPE
    lines = _guarded(d, scope, lines)
    more = d.old or d.listed
    twin = _flat(d.author, d.parameters, lines, scope, (), (), d.spellings, name, more)
    fill_cell(twin, "SELF", twin)
    twin.__doc__ = (
        f"Do what `{d.name}` does to the tensor itself: same memory, another shape."
        if d.reshapes
        else f"Write the result of `{d.name}` into the tensor, and return the tensor."
    )
    return twin


def copy_of(name: str, samples: str = "") -> Callable[..., Any]:
    """Declare `name_copy`, which returns copies of the views that `name` returns."""
    d = DECLARATIONS.get(name)
    handed_on = ", ".join(p.handed_on for p in d.parameters)
    scope = {"VIEW": d.function, "COPIED": _copied}
    lines = [f"return COPIED(VIEW({handed_on}))"]
    author = _flat(d.author, d.parameters, lines, scope, name=f"{name}_copy")
    author.__module__ = sys._getframe(1).f_globals["__name__"]
    author.__annotations__ = d.author.__annotations__  # with the domains
    author.__doc__ = f"Return what `{name}` returns, copied."
    return functor("flow", out="same", samples=samples or "; ".join(d.samples))(author)


def _copied(views: Any) -> Any:
    if isinstance(views, tuple):
        return tuple([dispatch1(_CLONE, view) for view in views])
    return dispatch1(_CLONE, views)


_CLONE = op_expr("clone")
# What the texts of hints name; some of it stands above this file.
_IN_HINTS: dict[str, Any] = {
    "Any": Any, "Callable": Callable, "DTypeLike": DTypeLike, "DeviceLike": DeviceLike,
    "Number": Number, "Sequence": Sequence, "dtype": dtype, "memory_format": memory_format,
    "Generator": ForwardRef("Generator", module="oneflow_lite.functors.random"),
    "layout": ForwardRef("layout", module="oneflow_lite.tensors.tensor_methods"),
    "Sbp": ForwardRef("Sbp", module="oneflow_lite.distributed.placement"),
    "placement": ForwardRef("placement", module="oneflow_lite.distributed.placement"),
}  # fmt: skip


def _flat(
    author: Callable[..., Any],
    parameters: tuple[Parameter, ...],
    lines: list[str],
    scope: dict[str, Any],
    flags: Sequence[str] = (),
    keywords: Sequence[str] = (),
    spellings: dict[str, str] | None = None,
    name: str = "",
    more: bool = False,
) -> Callable[..., Any]:
    """Make a function of these lines, with the author's signature, and name if none is given.

    Its file is called as the author's place and the name; `linecache` has the text of it.
    A required parameter that another name may give, and those after it, default to NOTHING, which
    checks refuse.
    """
    spellings = spellings or {}
    keywords = [*keywords, *spellings]
    renamed = set(spellings.values())
    places = [p for p in parameters if p.kind == "positional"]
    needed = [p.name for p in places if p.required]
    free = next((i for i, name in enumerate(needed) if name in renamed), len(needed))
    listed = [p.name + ("" if i < free else "=0") for i, p in enumerate(places)]
    listed += [f"{name}=0" for name in flags]
    variadic = [f"*{p.name}" for p in parameters if p.kind == "variadic"]
    variadic += ["*more"] if more else []
    named = [p.name + ("" if p.required else "=0") for p in parameters if p.kind == "keyword"]
    named += [f"{name}=0" for name in keywords]
    if named and not variadic:
        variadic = ["*"]
    named += [f"**{p.name}" for p in parameters if p.kind == "named"]
    code = _compiled(", ".join(listed + variadic + named), tuple(lines), frozenset(scope))
    made, own = name or author.__name__, author.__code__
    file = f"{own.co_filename}:{own.co_firstlineno} {made}"
    code = code.replace(co_name=made, co_qualname=made, co_filename=file)
    cells = tuple(types.CellType(scope.get(name)) for name in code.co_freevars)
    missing = (NOTHING,) * (len(needed) - free)
    defaults = (*missing, *(author.__defaults__ or ()), *(False for _ in flags))
    function = types.FunctionType(code, author.__globals__, made, defaults, cells)
    kwdefaults = {**(author.__kwdefaults__ or {}), **dict.fromkeys(keywords)}
    function.__kwdefaults__ = kwdefaults or None
    hints = {p.name: p.hint for p in parameters}
    hints |= {**dict.fromkeys(flags, "bool"), **dict.fromkeys(keywords, "Tensor | None")}
    hints |= {other: hints[name] for other, name in spellings.items()}
    result = _type_text(_evaluated(author.__annotations__.get("return"), author))
    function.__annotations__ = hints = {**hints, "return": result}
    if author.__module__.startswith("oneflow_lite."):  # so that `typing.get_type_hints` knows them
        for word in _IN_HINTS.keys() & re.findall(r"\w+", " ".join(hints.values())):
            author.__globals__.setdefault(word, _IN_HINTS[word])
    function.__module__ = author.__module__
    linecache.cache.pop(file, None)  # of a function that was declared here before
    text = _Text(function, lines)
    linecache.lazycache(file, {"__name__": made, "__loader__": text})
    return function


class _Text:
    """The text of a made function, written when tracebacks or `inspect.getsource` ask for it."""

    __slots__ = ("_function", "_lines")

    def __init__(self, function: Callable[..., Any], lines: list[str]) -> None:
        self._function, self._lines = weakref.ref(function), lines

    def get_source(self, name: str) -> str | None:
        """Return the text, in which the function begins in line 2."""
        if (function := self._function()) is None:
            return None
        shown = inspect.signature(function)
        bare = [p.replace(annotation=p.empty) for p in shown.parameters.values()]
        shown = shown.replace(parameters=bare, return_annotation=shown.empty)
        place = function.__code__.co_filename.rpartition(" ")[0]
        head = f"# Made of the declaration in {place}\ndef {name}{shown}:\n"
        return head + "".join(f"  {line}\n" for line in self._lines)  # as it was compiled


@functools.cache
def _compiled(signature: str, lines: tuple[str, ...], scope: frozenset[str]) -> types.CodeType:
    """Compile a function once for all functions with the same text; their scopes may differ."""
    body = "".join(f"  {line}\n" for line in lines)
    used = {"SELF", "TWIN", *scope}.intersection(re.findall(r"\w+", body))
    outer = f"def bind({', '.join(sorted(used))}):\n def functor({signature}):\n"
    module = compile(f"{outer}{body} return functor", "<declaration>", "exec")
    bind = next(c for c in module.co_consts if isinstance(c, types.CodeType))
    return next(c for c in bind.co_consts if isinstance(c, types.CodeType))


def fill_cell(function: Callable[..., Any], name: str, value: Any) -> None:
    """Set the object that a name in the scope of a made function stands for."""
    if name in function.__code__.co_freevars:
        index = function.__code__.co_freevars.index(name)
        assert function.__closure__ is not None
        function.__closure__[index].cell_contents = value


# --- Writing help() -------------------------------------------------------------------------------

_SAID = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*): (.*)", re.DOTALL)


def document(declaration: Declaration) -> str:
    """Write the docstring: the author's words, then the sections that follow from the domains."""
    d = declaration
    text = inspect.cleandoc(d.author.__doc__ or "")
    if "\n-----" in text:  # written out by hand
        return text
    text, mark, example = text.partition(">>> ")
    prose, said, errors = _read(text, {p.name for p in d.parameters} | {"out", "inplace"})
    sections = [prose]
    entries = []
    for p in d.parameters:
        if p.kind == "named":  # another spelling of parameters that are listed
            continue
        words = said.get(p.name) or (p.domain.says if p.domain else "")
        entries.append(f"{_starred(p)} : {_shown(p)}{_indented(words)}")
    if d.inplace:
        entries.append(f"inplace : bool{_indented('Write the result into `input`.')}")
    if d.out:
        several = hasattr(d.result, "_fields") or "tuple" in str(d.result)
        kind, verb = ("tuple of Tensors", "Receive") if several else ("Tensor", "Receives")
        what = said.get("out", f"{verb} the result{'s' if several else ''}.")
        entries.append(f"out : {kind}, optional{_indented(what)}")
    if entries:
        sections.append("Parameters\n----------\n" + "\n".join(entries))
    if "returns" in said:
        sections.append("Returns\n-------\n" + said["returns"])
    raised = sorted({**_raised(d), **errors}.items())
    if raised:
        lines = [f"{error}{_indented(when)}" for error, when in raised]
        sections.append("Raises\n------\n" + "\n".join(lines))
    if mark:
        sections.append(f"Examples\n--------\n>>> import oneflow_lite as flow\n{mark}{example}")
    return "\n\n".join(sections) + "\n"


def _read(text: str, names: set[str]) -> tuple[str, dict[str, str], dict[str, str]]:
    """Split a docstring into prose, words on arguments, and errors.

    A paragraph `dim: which dimension.` speaks of an argument, `returns: ...` of the result, and
    `ShapeError: when ...` of an error; several may follow each other line by line.
    """
    prose: list[str] = []
    said: dict[str, str] = {}
    errors: dict[str, str] = {}
    for paragraph in text.strip().split("\n\n"):
        for entry in re.split(r"\n(?=\S+(?:, \S+)*: )", paragraph):
            match = _SAID.fullmatch(entry)
            keys = [key.lstrip("*") for key in match[1].split(", ")] if match else []
            words = " ".join(match[2].split()) if match else ""
            words = words[:1].upper() + words[1:]
            if match and all(key in names or key == "returns" for key in keys):
                said.update(dict.fromkeys(keys, words))
            elif match and keys[0].endswith("Error"):
                errors[match[1]] = words
            elif entry is not paragraph and prose and paragraph.startswith(prose[-1]):
                prose[-1] += f"\n{entry}"
            else:
                prose.append(entry)
    return "\n\n".join(prose), said, errors


def _raised(declaration: Declaration) -> dict[str, str]:
    """Return the errors that the domains of the arguments raise, and when."""
    arguments: dict[str, dict[str, list[str]]] = {}  # by error and its condition
    for p in declaration.parameters:
        for error, when in (p.domain.raises if p.domain else {}).items():
            arguments.setdefault(error, {}).setdefault(when, []).append(f"`{p.name}`")
    return {
        error: " ".join(when.format(x=" or ".join(names)) for when, names in cases.items())
        for error, cases in arguments.items()
    }


def _starred(parameter: Parameter) -> str:
    return f"*{parameter.name}" if parameter.kind == "variadic" else parameter.name


def _shown(parameter: Parameter) -> str:
    """Return the type of an argument in the words of help()."""
    text = parameter.domain.type if parameter.domain else ""
    text = text or parameter.hint
    return text.replace(" | None", ", optional") if text.endswith(" | None") else text


def _indented(words: str) -> str:
    """Return words as an indented paragraph below an entry."""
    lines, line = [], ""
    for word in words.split():
        if line and len(line) + len(word) > 94:
            lines.append(line)
            line = ""
        line += f" {word}" if line else word
    return "".join(f"\n    {each}" for each in [*lines, line] if each)
