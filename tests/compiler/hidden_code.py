"""Programs with code of users that nobody calls there: Python does.

Generators are closed while they are suspended, objects have finalizers, keys are hashed, classes
are asked and changed.
"""

# ruff: noqa: F401
from __future__ import annotations

import abc
import collections
import contextlib
import copy
import dataclasses
import functools
import itertools
import linecache
import numbers
import operator
import sys
import types
import typing
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import oneflow_lite as flow


class Program(NamedTuple):
    """The text of a module with a function `f(x)`, and what is run before each of its calls."""

    name: str
    text: str
    changes: Sequence[str] = ()


# What the functions with generators name.
HEAD = """
class Managed:
    def __enter__(self):
        note(1)

    def __exit__(self, *error):
        note(2)


class Swallowing(Managed):
    def __exit__(self, *error):
        note(2)
        return True


class Dying:
    def __del__(self):
        note(5)


@contextlib.contextmanager
def managed():
    note(1)
    try:
        yield
    finally:
        note(2)


def inner(x):
    try:
        yield x
        yield x * 2
        yield x * 3
    finally:
        note(3)


def hand(each):
    kept = [next(each)]
    note(4)
    return kept


def drop(each):
    next(each)
    del each
    note(4)


def failing(*_):
    raise KeyError


class Failing:
    def __iter__(self):
        return self

    __next__ = failing
"""

# Generators by their bodies.
GENERATORS = {
    "finally": "try:\n  yield x\n  yield x * 2\n  yield x * 3\nfinally:\n  note(3)",
    "no_grad": "with flow.no_grad():\n  yield x\n  yield x * 2\n  yield x * 3",
    "managed": "with Managed():\n  yield x\n  yield x * 2\n  yield x * 3",
    "swallowing": "with Swallowing():\n  yield x\n  yield x * 2\n  yield x * 3\nyield x * 4",
    "contextmanager": "with managed():\n  yield x\n  yield x * 2\n  yield x * 3",
    "except": "try:\n  yield x\n  yield x * 2\n  yield x * 3\n"
    "except GeneratorExit:\n  note(4)\n  raise",
    "else": "yield x\ntry:\n  note(1)\nfinally:\n  yield x * 2\n  yield x * 3\n  note(2)",
    "loop": "for k in range(1, 4):\n  try:\n    yield x * k\n  finally:\n    note(k)",
    "plain": "yield x\nyield x * 2\nnote(3)\nyield x * 3",
    "nested": "for y in inner(x):\n  yield y",
    "from": "yield from inner(x)\nnote(4)",
    "expression": "return (y * 2 for y in inner(x))",
    "dying": "dying = Dying()\nyield x\nyield x * 2\nyield x * 3",
}  # fmt: skip

# Ways to use one, `g(x)`; each may set `y`.
USES = """
y = next(g(x))

each = g(x); y = next(each)

each = g(x); y = next(each) + next(each); note(5); del each; note(6)

each = g(x); y = next(each); note(5); each = None; note(6); y = y * w

for y in g(x):
  break
note(6); y = y * w

for y in g(x):
  note(5)

for y in g(x):
  if y.ndim:
    return y * w, 1

try:
  for y in g(x):
    raise KeyError
except KeyError:
  note(6)

try:
  for y in g(x):
    {}[1]
except KeyError as error:
  note(6)
  y = y * w
note(7)

for y in g(x):
  continue
else:
  note(6)

y = any(y.ndim for y in g(x)); note(6)

y = all(y.ndim == 0 for y in g(x)); note(6)

y = any([y.ndim for y in g(x)])

y = any(map(operator.attrgetter("ndim"), g(x))); note(6)

for y, k in zip(g(x), [1]):
  note(5)
note(6)

for k, y in zip([1], g(x)):
  note(5)
note(6)

y = [y * k for k, y in zip([1, 2, 3], g(x))]; note(6)

y = list(zip(g(x), g(x), [1, 2])); note(6)

y = dict(zip([1, 2], g(x))); note(6)

y = list(map(operator.add, g(x), [1.0, 2.0])); note(6)

y = next(filter(lambda y: y.ndim, g(x))); note(6)

y = list(itertools.islice(g(x), 2)); note(6)

y = sum(itertools.islice(g(x), 1, 3)); note(6)

y = list(itertools.takewhile(lambda y: not y.ndim, g(x))); note(6)

y = next(itertools.chain(g(x), g(x))); note(6)

y = next(itertools.chain.from_iterable([g(x), g(x)])); note(6)

y = next(itertools.dropwhile(lambda y: not y.ndim, g(x))); note(6)

for k, y in enumerate(g(x)):
  if k: break
note(6)

y = next(enumerate(g(x)))[1]

try:
  y, z = g(x)
except ValueError:
  note(6)

try:
  y, z, u, v, s = g(x)
except ValueError:
  note(6)

y, *z = g(x); note(6)

y, z, u = (*g(x),)[:3]; note(6)

try:
  (y, z), u = g(x), 1
except ValueError:
  note(6)

y = 5 in (y.ndim for y in g(x))

y = 1 in (y.ndim for y in g(x)); note(6)

y = max((y.ndim for y in g(x)), default=3)

y = max(g(x), key=lambda y: y.ndim); note(6)

y = sorted(g(x), key=lambda y: y.ndim)[0]

y = sum(g(x))

y = flow.stack(list(g(x)))

def outer():
  yield from g(x)
y = next(outer()); note(6)

def outer():
  for y in g(x):
    yield y * w
y = next(outer()); note(6)

def outer():
  yield from g(x)
y = list(outer())

each = g(x); next(each); y = each.send(None); note(5); each.close(); note(6)

each = g(x); y = next(each)
try:
  each.throw(KeyError)
except KeyError:
  note(6)

each = g(x); each.close(); note(6); y = 1

kept = [g(x)]; y = next(kept[0]); note(5); kept.clear(); note(6)

kept = [g(x)]; y = next(kept[0]); note(5); kept[0] = None; note(6)

kept = {"a": g(x)}; y = next(kept["a"]); note(5); del kept["a"]; note(6)

kept = g(x), 1; y = next(kept[0]); note(5); del kept; note(6)

kept = types.SimpleNamespace(each=g(x)); y = next(kept.each); note(5); kept.each = None; note(6)

kept = Box(); kept.each = g(x); y = next(kept.each); note(5); del kept.each; note(6)

box.each = g(x); y = next(box.each); note(5); box.each = None; note(6)

box.each = g(x); y = next(box.each)

each = g(x); y = next(each); return y * w, each

each = g(x); return [each] * 2

each = g(x); y = [next(each)]; return (y[0] * w for y in [each])

y = hand(g(x))[0]; note(6)

drop(g(x)); note(6); y = 1

each = g(x); y = hand(each)[0]; note(6); del each; note(7)

each = g(x)
def take():
  return next(each)
y = take(); note(5); del each, take; note(6)

take = g(x).__next__; y = take(); note(5); del take; note(6)

take = functools.partial(next, g(x)); y = take(); note(5); del take; note(6)

each = iter(g(x)); y = next(each); note(5); each = 1; note(6)

y = next(iter([*g(x)]))

if next(g(x)).ndim:
  note(6)
y = 1

y = next(g(x)) if w.ndim else 1; note(6)

y = [next(g(x)) for k in range(2)]; note(6)

y = next(y for y in g(x) if y.ndim); note(6)

y = {k: next(g(x)) for k in range(2)}; note(6)

y = next(g(x)) * next(g(x)); note(6)

with Managed():
  y = next(g(x))
  note(6)

try:
  y = next(g(x))
finally:
  note(6)

with contextlib.closing(g(x)) as each:
  y = next(each)
note(6)

with contextlib.ExitStack() as stack:
  stack.enter_context(managed())
  y = next(g(x))
note(6)

manager = managed(); manager.__enter__(); note(5); del manager; note(6); y = next(g(x))

with managed():
  with managed():
    y = next(g(x))
  note(6)
y = y * w

each = g(x); y = next(each)
while True:
  for y in each:
    break
  else:
    break
note(6)

each, other = itertools.tee(g(x)); y = next(each); del each, other; note(6)

y = functools.reduce(operator.add, g(x))

y = " ".join(str(y.ndim) for y in g(x))

y = {y.ndim for y in g(x)}

for y in g(x):
  for y in g(x):
    break
  break
note(6)

y = (lambda each: next(each))(g(x)); note(6)

y = next(g(x), None); assert y is not None; note(6)

y = next(reversed(list(g(x))))

each = g(x); next(each); each = g(x); note(6); y = next(each)

kept = []; kept.append(g(x)); y = next(kept[-1]); note(5); kept.pop(); note(6)

y = all(zip(g(x), g(x))); note(6)

each = g(x); y = next(each); print(y.shape); del each; note(6)

try:
  list(zip(g(x), Failing()))
except KeyError:
  note(6)
note(7)

try:
  list(map(failing, g(x)))
except KeyError:
  note(6)
note(7)

try:
  for y in map(failing, g(x)): pass
except KeyError:
  note(6)
note(7)

try:
  sorted(g(x), key=failing)
except KeyError:
  note(6)
note(7)

try:
  max(g(x), key=failing)
except KeyError:
  note(6)
note(7)

try:
  any(failing() for y in g(x))
except KeyError:
  note(6)
note(7)

try:
  [failing() for y in g(x)]
except KeyError:
  note(6)
note(7)

try:
  next(filter(failing, g(x)))
except KeyError:
  note(6)
note(7)

try:
  functools.reduce(failing, g(x))
except KeyError:
  note(6)
note(7)

try:
  failing(*g(x))
except KeyError:
  note(6)
note(7)

try:
  y = [*g(x), *Failing()]
except KeyError:
  note(6)
note(7)

try:
  list(itertools.accumulate(g(x), failing))
except KeyError:
  note(6)
note(7)

try:
  list(itertools.groupby(g(x), failing))
except KeyError:
  note(6)
note(7)

try:
  list(zip(g(x), Failing()))
finally:
  note(6)

with contextlib.suppress(KeyError), Managed():
  list(zip(g(x), Failing()))

list(zip(g(x), Failing()))

gen = (z for y in g(x) for z in g(y))
y = next(gen); note(5)
del gen
note(6)

def deep(n):
  if n: yield from deep(n - 1)
  else: yield from g(x)
y = next(deep(3)); note(6)
""".strip("\n").split("\n\n")  # fmt: skip


# Objects with finalizers, and what sees objects go.
FINALIZED = """
dying = Dying(); note(1); del dying; note(2)

dying = Dying(); note(1); dying = None; note(2)

Dying(); note(2)

note(1); dying = Dying()

kept = [Dying()]; note(1); kept.clear(); note(2)

kept = [Dying(), Dying()]; kept.pop(); note(2)

kept = {"a": Dying()}; note(1); kept["a"] = 2; note(2)

box.dying = Dying(); note(1); box.dying = None; note(2)

box.dying = Dying()

class Local:
  def __del__(self): note(4)
Local(); note(2)

Inherits(); note(2)

Slotted(); note(2)

Module(); note(2)

Sub.__new__(Sub); note(2)

object.__new__(Dying); note(2)

copy.copy(outer); note(2)

copy.deepcopy([outer]); note(2)

made = Box(); made.__class__ = Dying; del made; note(2)

made = Box(); made.dying = Dying(); del made; note(2)

drop_it(Dying()); note(2)

hand_on(Dying()); note(2)

give(); note(2)

def local():
  dying = Dying()
  note(1)
local(); note(2)

for _ in range(2):
  dying = Dying()
  note(1)
note(2)

[Dying() for _ in range(2)]; note(2)

[y for y in [1, 2] if Dying()]; note(2)

with Dying_manager():
  note(1)
note(2)

Data(1); note(2)

Pair(1); note(2)

Text("a"); note(2)

Listed([1]); note(2)

Tensorlike(x); note(2)

try:
  raise DyingError
except DyingError:
  note(1)
note(2)

Counted().count(); note(2)

dying = Dying(); weakref.ref(dying); del dying; note(2)

made = Box(); reference = weakref.ref(made, lambda _: note(5)); note(1); del made; note(2)

made = x * 2; reference = weakref.ref(made, lambda _: note(5)); note(1); del made; note(2)

made = x * 2; reference = weakref.ref(made); note(1); del made
note(2 if reference() is None else 3)

made = Box(); weakref.finalize(made, note, 5); note(1); del made; note(2)

made = x * 2; weakref.finalize(made, note, 5); note(1); del made; note(2)

made = x * 2; kept = weakref.WeakValueDictionary(); kept["a"] = made; note(1); del made
note(len(kept))

made = x * 2; kept = weakref.WeakSet([made]); note(1); del made; note(len(kept))

made = x * 2; kept = weakref.WeakKeyDictionary({made: 1}); note(1); del made; note(len(kept))

made = x * 2; entries["a"] = made; note(1); del made; note(len(entries) + 1)

made = x * 2; reference = weakref.WeakMethod(made.sum); note(1); del made
note(2 if reference() is None else 3)

made = x * 2; box.reference = weakref.ref(made)

def made(): pass
reference = weakref.ref(made, lambda _: note(5)); del made; note(2)

made = (y for y in [1]); reference = weakref.ref(made, lambda _: note(5)); del made; note(2)

made = weakref.proxy(x * 2, lambda _: note(5)); note(2)

box.old = x * 2; box.reference = weakref.ref(box.old, lambda _: note(5)); note(1)
box.old = None; note(2)

box.old = x * 2; note(1); del box.old; note(2)

cells.append(Dying()); note(1); cells.clear(); note(2)

made = [Box()]; made[0].itself = made; Dying(); note(2)

dying = copy.copy(outer); note(1); del dying; note(2)

def each():
  dying = Dying()
  yield 1
next(each()); note(2)

kept = collections.defaultdict(Dying); kept[1]; note(1); del kept; note(2)

kept = list(map(Dying_of, [1, 2])); note(1); del kept; note(2)

kept = list(map(lambda y: Dying(), [1, 2])); note(1); del kept; note(2)

kept = functools.partial(Dying)(); note(1); del kept; note(2)

kept = type("Made", (Dying,), {})(); note(1); del kept; note(2)

kept = lazily.dying; note(1); del kept; note(2)

kept = cached(1); note(2)

Hooked.__del__ = lambda self: note(5); made = Hooked(); del made, Hooked.__del__; note(2)
""".strip("\n").split("\n\n")  # fmt: skip

HEAD_OF_FINALIZED = '''
class Dying:
    """A class of objects that are noticed when they go."""

    def __del__(self):
        note(5)


def Dying_of(_):
    return Dying()


class Inherits(Dying):
    pass


class Sub(Dying):
    pass


class Slotted:
    __slots__ = ()

    def __del__(self):
        note(6)


class Module(flow.nn.Module):
    def __del__(self):
        note(6)


class Dying_manager(Dying):
    def __enter__(self):
        note(3)

    def __exit__(self, *error):
        note(4)


@dataclasses.dataclass
class Data:
    value: int

    def __del__(self):
        note(self.value)


class Pair(collections.namedtuple("pair", "a")):
    def __del__(self):
        note(5)


class Text(str):
    __del__ = Dying.__del__


class Listed(list):
    __del__ = Dying.__del__


class Tensorlike(flow.Tensor):
    __del__ = Dying.__del__


class DyingError(Exception):
    __del__ = Dying.__del__


class Counted:
    def __init__(self):
        self.n = 1

    def count(self):
        note(self.n)

    def __del__(self):
        note(5)


class Hooked:
    pass


class Lazily:
    @property
    def dying(self):
        return Dying()


@functools.lru_cache
def cached(y):
    Dying()
    return y


lazily = Lazily()


def drop_it(dying):
    note(1)
    del dying
    note(3)


def hand_on(dying):
    note(1)
    drop_it(dying)
    note(4)


def give():
    return Dying()


outer = Dying()
entries = weakref.WeakValueDictionary()
cells = []
'''


HEAD_OF_KEYS = """
class Key:
    def __init__(self, v):
        self.v = v

    def __hash__(self):
        note(1)
        return hash(self.v)

    def __eq__(self, other):
        note(2)
        return isinstance(other, Key) and self.v == other.v


k, table, keys = Key(1), {Key(1): 1}, {Key(1)}
"""

# Containers with keys that are hashed and compared by code, each once and no more.
KEYS = """
y = {k: 1}[k]
y = table[k]
y = k in table
y = k in keys
y = table.get(k, 3)
y = len({k, Key(1)})
y = k == Key(1)
y = k in [Key(1)]
y = [Key(1)].index(k)
y = (k, 1) in {(k, 1)}
table[k] = 2
y = dict(table)
y = {**table}
y = keys | {k}
y = set([k, Key(1), Key(2)])
y = set(keys)
y = set(table)
y = frozenset([k, Key(1)])
y = len({k: 1, Key(1): 2})
y = table.setdefault(k, 2)
y = dict([(k, 2)])[k]
y = [k, Key(2)].count(k)
y = [Key(1), Key(2)].remove(k)
y = dict.fromkeys([k, Key(1)])
y = (k, 1) == (Key(1), 1)
y = {k: 1 for _ in range(2)}
y = {k for _ in range(2)}
y = hash(k)
y = (1, k) in table
y = {k: 1}.pop(k)
y = keys == {k}
y = keys - {k}
y = dict(table, a=1)
y = {}.update(table)
y = collections.Counter([k])
y = sorted([k], key=hash)
""".strip().split("\n")  # fmt: skip

HEAD_OF_CLASSES = """
class Hooked(abc.ABC):
    flag = True

    @classmethod
    def __subclasshook__(cls, other):
        note(1)
        return Hooked.flag


class Meta(type):
    def __instancecheck__(cls, value):
        note(2)
        return True

    def __subclasscheck__(cls, value):
        note(3)
        return True

    def __getattr__(cls, name):
        note(4)
        raise AttributeError(name)


class Asked(metaclass=Meta):
    pass


class AbstractMeta(abc.ABCMeta):
    def __instancecheck__(cls, value):
        note(2)
        return True


class AskedToo(metaclass=AbstractMeta):
    pass


class Plain:
    @property
    def v(self):
        return 2.0

    @v.setter
    def v(self, value):
        note(6)

    @functools.cached_property
    def c(self):
        return 3.0


class Sized:
    def __len__(self):
        return 1


@typing.runtime_checkable
class Follows(typing.Protocol):
    n: int


class Liar:
    @property
    def __class__(self):
        note(5)
        return int


class Reader:
    def __getattribute__(self, name):
        note(5)
        return object.__getattribute__(self, name)


class Sub(flow.Tensor):
    def __mul__(self, other):
        return flow.Tensor.__add__(self, other)

    def twice(self):
        return self + self


class Other(flow.Tensor):
    pass


class Layer(flow.nn.Linear):
    def forward(self, x):
        return x * 7


plain, liar, reader, kind, union = Plain(), Liar(), Reader(), int, int | Plain
prop = vars(Plain)["v"]
layer = flow.nn.Linear(1, 1)
layer.load_state_dict({"weight": flow.ones(1, 1), "bias": flow.ones(1)})
u = flow.tensor([2.0])
"""

# Classes that are asked by code, and classes, properties and functions that are changed from
# outside, before the second, third and fourth call.
CLASSES = """
Plain(); y = 1 # # Plain.__del__ = lambda self: note(5)
y = isinstance(plain, Hooked) # Hooked.flag = False # Hooked.__subclasshook__ = None
y = issubclass(Plain, Hooked) # Hooked.flag = False # abc.update_abstractmethods(Hooked)
y = isinstance(Plain(), (int, Hooked)) # Hooked.flag = False
y = isinstance(plain, Asked)
y = isinstance(plain, AskedToo)
y = issubclass(Plain, Asked)
y = isinstance(plain, collections.abc.Sized) # # Plain.__len__ = Sized.__len__
y = isinstance(Sized(), collections.abc.Sized) # # del Sized.__len__
y = isinstance(plain, collections.abc.Iterable) # # Plain.__iter__ = lambda self: iter([])
y = isinstance(plain, collections.abc.Hashable) # # Plain.__hash__ = None
y = isinstance(plain, Follows) # plain.n = 1 # # del plain.n
y = isinstance(liar, int)
y = isinstance(Liar(), int)
y = isinstance(reader, int)
y = isinstance(1, numbers.Number)
y = isinstance(plain, kind) # kind = Plain # # kind = int, Plain
y = isinstance(plain, union) # union = int # # union = Plain
y = u * x # u.__class__ = Sub # # u.__class__ = flow.Tensor
y = x * u # # u.__class__ = Sub # u.__class__ = Other
y = u.sum() * x # u.__class__ = Sub # # u.__class__ = flow.Tensor
y = flow.mul(u, x) # u.__class__ = Sub
y = x + (u.twice() if hasattr(u, "twice") else u) # u.__class__ = Sub
y = x * (2 if type(u) is flow.Tensor else 1) # u.__class__ = Sub
y = isinstance(u, Sub) # u.__class__ = Sub
y = u * x # object.__setattr__(u, "__class__", Sub)
y = layer(x) # # layer.__class__ = Layer
u.__class__ = Sub; y = u * x # u.__class__ = flow.Tensor
x.__class__ = Sub; y = x * u
y = x * 1; y.__class__ = Sub; y = y * u
y = x * plain.v # # prop.__init__(lambda self: 5.0)
y = x * plain.v # property.__init__(prop, lambda self: 5.0) # # prop.__init__(lambda self: 6.0)
y = x * Plain.v.fget(plain) # prop.__init__(lambda self: 5.0)
y = x * prop.__get__(plain) # prop.__init__(lambda self: 5.0)
prop.__init__(lambda self: 5.0); y = x * plain.v
plain.v = 3.0 # prop.__init__(lambda self: 5.0, lambda self, value: note(7))
y = x * plain.c # # vars(Plain)["c"].func = lambda self: 9.0; del vars(plain)["c"]
y = len(str(10**5000)) # sys.set_int_max_str_digits(0) # # sys.set_int_max_str_digits(4300)
y = len(repr(10**5000)) # sys.set_int_max_str_digits(0) # # sys.set_int_max_str_digits(4300)
y = len(f"{10**5000}") # sys.set_int_max_str_digits(0) # # sys.set_int_max_str_digits(4300)
y = len("%d" % 10**5000) # sys.set_int_max_str_digits(0) # # sys.set_int_max_str_digits(4300)
y = int("1" * 5000) % 7 # sys.set_int_max_str_digits(0) # # sys.set_int_max_str_digits(4300)
y = " ".join(map(str, [10**5000])) # sys.set_int_max_str_digits(0) #
sys.set_int_max_str_digits(0); y = len(str(10**5000)) # # sys.set_int_max_str_digits(4300)
""".strip().split("\n")  # fmt: skip

# Ways to a method of tensors that another one may be put in the place of, and ways to do that.
METHODS = (
    "x.sigmoid() * 2", "x + 2", "(x * 2).sum()", "-x", "x[0] * 2", "2 * x", "x.T * 3",
    "flow.stack([x, x])", "x.square().mean()",
)  # fmt: skip
PATCHES = """
flow.Tensor.sigmoid = lambda self: self * 3
type.__setattr__(flow.Tensor, "sigmoid", lambda self: self * 3)
setattr(flow.Tensor, "sig" + "moid", lambda self: self * 3)
type.__setattr__(flow.Tensor, "__add__", lambda self, other: self * 3)
type.__setattr__(flow.Tensor, "__neg__", lambda self: self * 3)
type.__setattr__(flow.Tensor, "sum", lambda self: self * 3)
type.__setattr__(flow.Tensor, "__getitem__", lambda self, key: self * 3)
type.__setattr__(flow.Tensor, "__rmul__", lambda self, other: self * 5)
type.__setattr__(flow.Tensor, "T", property(lambda self: self * 5))
type.__setattr__(flow.Tensor, "square", functools.partialmethod(lambda self: self * 5))
functools.update_wrapper(flow.Tensor, patch, assigned=("sigmoid", "__add__"), updated=())
""".strip().split("\n")  # fmt: skip
HEAD_OF_PATCHES = """
patch = types.SimpleNamespace(sigmoid=lambda self: self * 4, __add__=lambda self, other: self * 11)
"""
PATCHED_INSIDE = """
setattr(flow.Tensor, "sig" + "moid", lambda self: self * 3)
type.__setattr__(flow.Tensor, "sig" + "moid", lambda self: self * 3)
flow.Tensor.sigmoid = lambda self: self * 3
type(x).sigmoid = lambda self: self * 3
x.__class__.sigmoid = lambda self: self * 3
functools.update_wrapper(flow.Tensor, patch, assigned=("sigmoid",), updated=())
functools.partial(setattr, flow.Tensor, "sigmoid")(lambda self: self * 3)
functools.partial(type.__setattr__, flow.Tensor)("sigmoid", lambda self: self * 3)
list(map(setattr, [flow.Tensor], ["sigmoid"], [lambda self: self * 3]))
""".strip().split("\n")  # fmt: skip


class Box:
    """A holder of whatever is set on it."""


def _program(head: str, body: str, more: str = "", changes: Sequence[str] = ()) -> Program:
    text = f"{head}\n\n{more}def f(x):\n    y = 0\n    {_indented(body)}\n    return y, x * w\n"
    return Program(body, text, changes)


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")


def suspending(kind: str) -> Iterator[Program]:
    """Give the programs with generators of a kind."""
    generator = f"def g(x):\n    {_indented(GENERATORS[kind])}\n\n\n"
    for use in USES:
        yield _program(HEAD, use, generator)


def finalizing() -> Iterator[Program]:
    """Give the programs with finalizers."""
    for use in FINALIZED:
        yield _program(HEAD_OF_FINALIZED, use)


def hashing() -> Iterator[Program]:
    """Give the programs with keys."""
    for body in KEYS:
        yield _program(HEAD_OF_KEYS, body)


def asking() -> Iterator[Program]:
    """Give the programs with classes."""
    for line in CLASSES:
        body, *changes = line.split(" #")
        yield _program(HEAD_OF_CLASSES, body, changes=["", *map(str.strip, changes)])


def patching() -> Iterator[Program]:
    """Give the programs with methods of tensors."""
    for patch in PATCHES:
        for use in METHODS:
            yield _program(HEAD_OF_PATCHES, f"y = {use}", changes=["", "", patch])
    for patch in PATCHED_INSIDE:
        yield _program(HEAD_OF_PATCHES, f"{patch}\ny = x.sigmoid()")


def _world(text: str) -> dict[str, Any]:
    """Run the text of a program as a module."""
    name = f"<{__name__}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    trace = flow.zeros((), dtype=flow.float64)

    def note(k: int) -> None:
        trace.mul_(8).add_(k)

    own = {"trace": trace, "note": note, "box": Box(), "w": flow.tensor([2.0], requires_grad=True)}
    names = vars(sys.modules[__name__]) | own
    exec(compile(text, name, "exec"), names)
    return names


def _plain(value: Any) -> Any:
    if isinstance(value, flow.Tensor):
        return value.tolist(), value.requires_grad, type(value).__name__
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value if isinstance(value, (int, float, str)) else type(value).__name__


@contextlib.contextmanager
def _put_back() -> Iterator[None]:
    """Leave the class of tensors and the limit of digits as they were."""
    members, digits = dict(vars(flow.Tensor)), sys.get_int_max_str_digits()
    try:
        yield
    finally:
        sys.set_int_max_str_digits(digits)
        for name in [name for name in vars(flow.Tensor) if name not in members]:
            delattr(flow.Tensor, name)
        for name, member in members.items():
            if vars(flow.Tensor)[name] is not member:
                type.__setattr__(flow.Tensor, name, member)


def seen(program: Program, compiled: bool) -> tuple[list[Any], Any]:
    """Run a program's function four times; give all that can be seen, and how the calls went.

    The notes are octal digits in their order, as they are when the call has ended, and when what
    it returned or left outside is gone as well.
    """
    names, found, ignored = _world(program.text), [], []
    f = flow.compile(names["f"]) if compiled else names["f"]
    hook = sys.unraisablehook
    sys.unraisablehook = lambda about: ignored.append(str(about.exc_value))
    try:
        with _put_back():
            for k, change in itertools.zip_longest(range(4), program.changes, fillvalue=""):
                exec(change, names)
                names["trace"].zero_()
                try:
                    result = _plain(f(flow.tensor([k + 1.0])))
                except Exception as error:
                    result = type(error).__name__, str(error)
                notes = [oct(int(names["trace"].item()))]
                vars(names["box"]).clear()
                notes.append(oct(int(names["trace"].item())))
                found.append((result, notes, flow.is_grad_enabled(), list(ignored)))
                flow.set_grad_enabled(True)
    finally:
        sys.unraisablehook = hook
    return found, f.explain() if compiled else None
