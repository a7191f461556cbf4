"""The protocol between a rewritten function and its recorder, done as CPython does it.

The observer of `flow.compile` overrides these methods. `site` is the function as the user wrote it.
"""

import functools
import operator
import sys
import traceback
from contextlib import suppress
from typing import Any

_SYMBOLS = "+ - * / // % ** @ << >> & | ^".split()
_NAMES = "add sub mul truediv floordiv mod pow matmul lshift rshift and_ or_ xor".split()
BINARY = {symbol: getattr(operator, name) for symbol, name in zip(_SYMBOLS, _NAMES, strict=True)}
INPLACE = {s: getattr(operator, "i" + n.strip("_")) for s, n in zip(_SYMBOLS, _NAMES, strict=True)}
UNARY: dict[str, Any] = {
    "+": operator.pos, "-": operator.neg, "~": operator.invert, "not": operator.not_
}  # fmt: skip
_SYMBOLS, _NAMES = "== != < <= > >= is".split(), "eq ne lt le gt ge is_".split()
COMPARE = {symbol: getattr(operator, name) for symbol, name in zip(_SYMBOLS, _NAMES, strict=True)}
COMPARE |= {
    "is not": operator.is_not,
    "in": lambda item, container: operator.contains(container, item),
    "not in": lambda item, container: not operator.contains(container, item),
}
CONVERSIONS: dict[str, Any] = {"": lambda x: x, "r": repr, "s": str, "a": ascii}


class Direct(functools.partial[Any]):
    """A call that a rewritten function does itself, so that its frame is the caller's."""


def direct(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Direct:
    """Return a call as CPython does it."""
    if not callable(function):
        function(*args, **kwargs)  # which raises
    if not args and any(function is each for each in (locals, vars, dir)):
        return Direct(variables, function, **kwargs)
    return Direct(function, *args, **kwargs)


def variables(function: Any) -> Any:
    """Return what one of these shows of its caller, without the names that rewriting has added."""
    names, own = sys._getframe(1).f_locals, ("__recorder__", "__site__", "__temporary_")
    shown = {k: v for k, v in names.items() if not k.startswith(own)}
    return sorted(shown) if function is dir else shown


def _does(function: Any) -> Any:
    """Return the method that calls a function."""
    return lambda self, *args: function(*args)


def _applies(operators: dict[str, Any]) -> Any:
    """Return the method that applies the operator of a symbol."""
    return lambda self, symbol, *operands: operators[symbol](*operands)


_given_back = _does(lambda *given: given[-1])


class Native:
    """A recorder that observes nothing: each method does what CPython does in its place.

    Some methods are only told something and give it back; a subclass may give back something else:

    - `name(site, name, value)`, `free(…)`: the value of a global or built-in name, or of a variable
      of a function around `site`, which was read already;
    - `store_global(site, name, value)`, `store_free(…)`: the value to store, just before it is
    stored;
    - `imported(site, module, name, value)`: what `from module import name` found (a relative module
      has its dots), or `import module`, where `name` is "" (`import a.b` without `as` binds `a`);
    - `iterate(values)`: what a loop, comprehension, `yield from` or `*values` goes over, or several
      targets are assigned;
    - `double_star(values)`: what `**values` in a call or display goes over;
    - `made(value)`: what a display, comprehension, generator expression, lambda, inner `def` or
      starred target made;
    - `plain(value)`: what a generator yields, an assertion says, a default is, or functions inside
      see as a variable;
    - `returned(value)`: what `return` is given;
    - `key(value)`: a key of a dict or set that is being made, before it is hashed;
    - `context(manager)`: what `with` enters and leaves;
    - `raised(error)`: what `raise` is given: an exception, or its class.

    Of some events it is only told that they are about to happen: `unsupported(what)` (a statement
    that is not observed), `tries(site, yields)` (a `try` statement begins, or a `with` statement in
    which the function yields), `caught(site, error)` (a handler begins).

    The rest do the operation that is written in their place:

    - `attribute(owner, name)`, `set_attribute(owner, name, value)`, `delete_attribute(…)`;
    - `item(owner, key)`, `set_item(owner, key, value)`, `delete_item(…)`;
    - `binary(symbol, left, right)`; `inplace(symbol, left, right)` returns the object that
      `left += right` binds `left` to; `unary(symbol, operand)`, for `not` where it is not itself a
      condition; `compare(symbol, left, right)`, for `is`, `is not`, `in` and `not in`, too;
    - `truth(value)`: whether a condition holds: of if, while, assert; an operand of and, or;
    - `calling(function, *args, **kwargs)` returns the callable that the rewritten function calls
    next, without arguments, so that frames lie as in users' code; of decorators, too;
    - `format(value, conversion, spec)`: the text of a field of an f-string.
    """

    name = free = store_global = store_free = double_star = iterate = made = returned = _given_back
    plain = key = context = raised = _given_back
    unsupported = tries = caught = imported = _given_back
    attribute, set_attribute, delete_attribute = map(_does, (getattr, setattr, delattr))
    item, set_item, delete_item = map(_does, (operator.getitem, operator.setitem, operator.delitem))
    binary, inplace, unary, compare = map(_applies, (BINARY, INPLACE, UNARY, COMPARE))
    truth = _does(bool)

    def calling(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        return direct(function, args, kwargs)

    def format(self, value: Any, conversion: str, spec: str) -> str:
        return format(CONVERSIONS[conversion](value), spec)

    # -- composed of the above; a recorder need not override these --------------------------------

    slice = _does(slice)  # `start:stop:step` in a subscript

    def exception(self) -> BaseException | None:
        """The one being handled; the recorder's own frames let go of what they were given."""
        error = sys.exception()
        for frame, _ in traceback.walk_tb(error.__traceback__ if error is not None else None):
            if frame.f_globals.get("__package__") == __package__:
                with suppress(RuntimeError):  # of a frame that goes on
                    frame.clear()
        return error

    def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function, for a recorder itself."""
        return self.calling(function, *args, **kwargs)()

    def caller(self, function: Any) -> "Caller":
        """Return a stand-in for `function` before unpacked arguments; it gives the callable."""
        return Caller(self.calling, function)

    def decorator(self, function: Any) -> "Caller":
        """Return the callable that CPython calls as a decorator."""
        return Caller(self.call, function)

    def both(self, value: Any) -> "bool | Decided":
        """An operand of `and` that is not the last."""
        return True if self.truth(value) else Decided(value, False)

    def either(self, value: Any) -> "bool | Decided":
        """An operand of `or` that is not the last."""
        return Decided(value, True) if self.truth(value) else False

    def value(self, value: Any) -> Any:
        """The value of an expression with `and`, `or` or chained comparisons."""
        return value.value if type(value) is Decided else value

    def link(self, value: Any, symbol: str = "", way: str = "") -> "Link":
        """An operand of a chained comparison, the operator before it, what decides the result."""
        return Link(self, value, symbol, way)

    def put(self, value: Any, what: str, owner: Any, key: Any) -> None:
        """`owner.key = value` or `owner[key] = value`; CPython looks at the value first."""
        getattr(self, f"set_{what}")(owner, key, value)

    def hold(self, what: str, owner: Any, key: Any) -> tuple[str, Any, Any, Any]:
        """The target of `owner.key += …` or `owner[key] += …`, and its value."""
        return what, owner, key, getattr(self, what)(owner, key)

    def change(self, symbol: str, held: tuple[str, Any, Any, Any], value: Any) -> None:
        """The rest of `owner.key += value` or `owner[key] += value`."""
        what, owner, key, old = held
        getattr(self, f"set_{what}")(owner, key, self.inplace(symbol, old, value))


class Caller(functools.partial[Any]):
    """A method of the recorder for one function, named like it when CPython writes a message."""

    def __getattribute__(self, name: str) -> Any:
        return getattr(_arguments(self)[0], name)

    def __str__(self) -> str:
        return str(_arguments(self)[0])


_arguments = functools.partial.args.__get__


class Decided:
    """A value whose truth was taken, and is known when CPython asks for it again."""

    __slots__ = ("truth", "value")

    def __init__(self, value: Any, truth: bool) -> None:
        self.value, self.truth = value, truth

    def __bool__(self) -> bool:
        return self.truth


class Link:
    """An operand of a chained comparison: whatever the operators, CPython compares links by `<`."""

    __slots__ = ("recorder", "symbol", "value", "way")

    def __init__(self, recorder: Native, value: Any, symbol: str, way: str) -> None:
        self.recorder, self.value, self.symbol, self.way = recorder, value, symbol, way

    def __lt__(self, right: "Link") -> Any:
        result = self.recorder.compare(right.symbol, self.value, right.value)
        return getattr(self.recorder, right.way)(result) if right.way else result
