"""Functions in each construct of Python, run rewritten and not, with all they do logged.

Like `workloads.py` this imports nothing but the standard library: every interpreter runs it.
"""

from __future__ import annotations

import dis
import linecache
import re
import sys
import types
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_count = 0


def find_packages() -> None:
    """Have the modules under test imported by their path, without the framework around them."""
    for name in ("oneflow_lite", "oneflow_lite.static", "oneflow_lite.compiler"):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [str(ROOT / name.replace(".", "/"))]


def define(text: str, **names: Any) -> dict[str, Any]:
    """Run the text of a module that is known to `linecache`; its names."""
    global _count
    _count += 1
    filename = f"<construct {_count}>"
    linecache.cache[filename] = len(text), None, text.splitlines(keepends=True), filename
    namespace = {"__name__": "construct", **names}
    exec(compile(text, filename, "exec", dont_inherit=True), namespace)
    return namespace


def forget() -> None:
    """Drop all parsed texts; the next `find` parses anew."""
    source = sys.modules["oneflow_lite.compiler.source"]
    source._files.clear()
    source._kept.clear()


class Spy:
    """Logs all that is done with it."""

    def __init__(self, log: list[Any], name: str, truth: bool = True) -> None:
        vars(self).update(log=log, name=name, truth=truth)

    def does(self, what: str, *others: Any) -> Spy:
        self.log.append(f"{self.name} {what} {' '.join(map(str, others))}".rstrip())
        return Spy(self.log, f"{self.name}.{what.strip('_')}", self.truth)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        self.does("repr")
        return self.name

    def __bool__(self) -> bool:
        self.does("bool")
        return self.truth

    def __iter__(self) -> Iterator[Any]:
        self.does("iter")
        return iter([Spy(self.log, self.name + "0"), Spy(self.log, self.name + "1", False)])

    def __contains__(self, other: object) -> bool:
        self.does("contains", other)
        return self.truth

    def __hash__(self) -> int:
        self.does("hash")
        return 1

    def __format__(self, spec: str) -> str:
        return str(self.does("format", spec))

    def __setattr__(self, name: str, value: Any) -> None:
        self.does("set", name, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.does("get", name)

    def __exit__(self, kind: Any, *rest: Any) -> bool:
        self.does("exit", getattr(kind, "__name__", None))
        return not self.truth

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.does("call", *args, sorted(kwargs))

    def keys(self) -> list[str]:
        self.does("keys")
        return ["p", "q"]


def _method(name: str) -> Callable[..., Any]:
    return lambda self, *others: self.does(name, *others)


_NAMES = "add sub mul truediv floordiv mod pow matmul lshift rshift and or xor".split()
_NAMES += [f"i{name}" for name in _NAMES] + "eq ne lt le gt ge neg pos invert".split()
for _name in [*_NAMES, "getitem", "setitem", "delitem", "delattr", "enter"]:
    setattr(Spy, f"__{_name}__", _method(f"__{_name}__"))


def run(function: Callable[..., Any], log: list[Any]) -> list[str]:
    """Return the result of a call, or its exception and the lines of that, then the log."""
    try:
        result = function(lambda name, truth=True: (log.append(name), Spy(log, name, truth))[1])
        if isinstance(result, types.GeneratorType):
            result = list(result)
        result = repr(result)
    except Exception as error:
        lines, traceback = [], error.__traceback__
        while traceback is not None:
            code = traceback.tb_frame.f_code
            if code.co_filename.startswith("<construct"):
                lines.append((code.co_qualname, traceback.tb_lineno))
            traceback = traceback.tb_next
        context = [type(error.__cause__).__name__, type(error.__context__).__name__]
        result = [type(error).__name__, str(error), lines, *context]
    texts = [re.sub("0x[0-9a-f]+", "0x", str(x)) for x in [result, *log]]
    # Some releases of CPython ask for the truth of an operand twice in a row.
    twice = [x == y and x.endswith(" bool") for x, y in zip(texts, texts[1:] + [""], strict=True)]
    return [text for text, again in zip(texts, twice, strict=True) if not again]


# What no rewritten function does itself; each of these is asked of the recorder.
_ASKED = """
BINARY_OP UNARY_NEGATIVE UNARY_INVERT UNARY_POSITIVE CONTAINS_OP IS_OP
BINARY_SUBSCR BINARY_SLICE STORE_SLICE DELETE_SUBSCR STORE_ATTR DELETE_ATTR
""".split()


def native(code: types.CodeType) -> Iterator[str]:
    """The steps of a rewritten function that are not asked of its recorder."""
    if "unsupported" in code.co_names:  # what follows that stays as it is
        return
    steps = list(dis.get_instructions(code))
    for before, step in pairwise(steps):
        what = f"{step.opname} {step.argval} at {step.positions.lineno}"
        if step.opname in _ASKED or (step.opname == "COMPARE_OP" and step.argval != "<"):
            yield what
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and before.argval != "__recorder__":
            yield what
        if step.opname == "LOAD_GLOBAL" and before.argval != step.argval:
            yield what
    for constant in code.co_consts:  # comprehensions; functions stay as they are until called
        if isinstance(constant, types.CodeType) and "__recorder__" in constant.co_freevars:
            yield from native(constant)


def differences(rewrite: Callable[..., Any], recorder: object) -> list[Any]:
    """Those of the constructs that behave differently when rewritten."""
    different = []
    for text in CONSTRUCTS:
        plain: list[Any] = []
        observed: list[Any] = []
        try:
            expected = run(define(text, log=plain)["f"], plain)
        except SyntaxError:  # the construct is younger than the interpreter
            if sys.version_info >= (3, 12):
                raise
            continue
        function = define(text, log=observed)["f"]
        if isinstance(function, types.MethodType):
            new = types.MethodType(rewrite(function.__func__, recorder), function.__self__)
        else:
            new = rewrite(function, recorder)
        found = run(new, observed)
        left = [*native((new.__func__ if isinstance(new, types.MethodType) else new).__code__)]
        if expected != found or left:
            different.append([text, expected, found, left])
    return different


def body(*lines: str) -> str:
    return "def f(v):\n" + "".join(f"    {line}\n" for line in lines)


# Expressions, each the result of a function of `v`, which makes a spy.
EXPRESSIONS = """
v('a') + v('b') * v('c') ** v('d') @ v('e') / v('g') // v('h') % v('i')
(v('a') - v('b') << v('c')) >> v('d') & v('e') | v('g') ^ v('h')
-v('a'), +v('b'), ~v('c'), not v('d'), -1, not 0
v('a') < v('b') < v('c') <= v('d')
v('a') < v('b', False) < v('c')
v('a') == v('b') != v('c') >= v('d') > v('e')
v('a', False) < v('b') < v('c')
1 < 2 < 3, 3 > 2 > 5, 1 < 3 < 2, 1 is 1 is not 2 in [2] not in [3]
v('a') in v('b'), v('c') not in v('d'), v('e') is v('g'), v('h') is not v('i')
v('a') and v('b') and v('c', False) and v('d')
v('a', False) or v('b', False) or v('c') or v('d')
(v('a', False) and v('b')) or v('c')
(v('a') and v('b', False)) or v('c')
(v('a') and v('b')) or v('c')
(v('a') or v('b')) and v('c')
(v('a', False) or v('b', False)) and v('c')
v('a') and (v('b', False) or v('c')) and (v('d') or v('e'))
(v('a') < v('b') < v('c')) and v('d')
(v('a', False) < v('b') < v('c')) or v('d')
(v('a') if v('b') else v('c')) or v('d')
(v('a') if v('b', False) else v('c', False)) and v('d')
0 or [] or v('a'), 1 and v('b'), 0 and v('c'), '' or 'x' and 'y'
v('a') if v('b') and v('c', False) else v('d')
v('a') if not v('b') else v('c') if not (v('d', False) or v('e', False)) else v('g')
v('a') if v('b') < v('c') < v('d') else v('e')
v('a') if (v('b') if v('c') else v('d')) else v('e')
v('a').x, v('b').x.y, v('c')[v('d')], v('e')[v('g'):v('h')], v('i')[:v('j'):v('k'), v('l')]
v('a')[v('b'), ...], v('c')[*v('d')], v('e')[()], v('g')[:]
v('a')(v('b'), v('c'), k=v('d'))
v('a')(*v('b'), v('c'), *v('d'), k=v('e'), **v('g'))
v('a').m(v('b'))(v('c'), **{'z': v('d')})
[v('a'), *v('b'), v('c')], (v('d'), *v('e')), ()
{v('a').name, 1, *v('b')}, {v('c'), v('d')}
{v('a'): v('b'), 'k': v('c'), **v('d')}
[x for x in v('a')], {x.name: y.name for x in v('b') for y in v('c') if x if not y}
{x for x in v('a')}, list(x for x in v('b') if x), [a + b for a, b in [v('c')]]
[(a, b, c) for a, (b, *c) in [[1, v('a')], (2, v('b'))]]
[(a, b, c, d) for [(a, b), c], d in [[[v('a'), 1], 2]]]
[[y for y in x] for x in [v('a')] if v('b') < v('c') < v('d')], [z for z in v('e') and v('g')]
[(y := x, y) for x in v('a')], y
(lambda a, b=v('b'), *c, d=v('d'), **e: (a, b, c, d, e))(v('a'), z=v('z'))
(lambda: (yield v('a')))(), [lambda: x for x in v('b')][0]().name
f"{v('a')}{v('b')!r:>5}|{v('c')!s}{v('d'):{v('w')}{'x'}}{v('e')!a} {{}} {v('g')=}"
f"{1}", f'{"a" "b"}'
(x := v('a'), x, x)
(yield v('a')), (yield), (yield from v('b'))
v('a') < (yield v('b')) or (yield v('c'))
print if v('a') else len, int('3'), __name__, __debug__
nothing_of_this_name
v('a') + nothing
1 + 'a'
[] < 1
3()
None.x
v.nothing
(1)[0]
[1][5]
{}['k']
{[]: 1}
{**1}
[*1]
f(*1)
f(1, **2)
f(1, **{'v': 2})
f(1, w=2)
f()
len(*[1, 2], **{})
len(1, **{'k': 2}, **{'k': 3})
-'a'
~1.5
1 in 2
[x for x in 5]
[0 for a, b in [1]]
[0 for a, b in [[1, 2, 3]]]
f"{1:nonsense}"
'%d' % 'x'
dir(), sorted(vars()), sorted(locals()), 'f' in globals()
dir(v)[:0], vars(types_of_nothing)
eval('1 + 1'), eval('v')('a'), exec('log.append(2)')
[sorted(locals()) for x in [1]]
__import__('math').pi
""".strip().splitlines()

# Bodies of a function of `v`, and modules with a function `f`.
BLOCKS = """
a = b = v('a')
return a is b

a, (b, c), *d = v('a'), v('b'), v('c'), v('d')
return a, b, c, d

def f(v):
    (a, b), o.x, *[c, d] = v('a'), v('b'), 1, 2
o = type('O', (), {})()

o = v('o')
(o.a, (o.b, o[v('k')])), o.d = (1, [2, 3]), 4

o = v('o')
x = o.a, o[v('i')] = y, *z = [v('a'), v('b')]
return x, y, z

o = v('o')
o.a = v('b')
v('o').x[v('i')] = v('c')
v('p')[1:v('q')] = v('r')

() = []
[] = ()
[a] = [1]
*b, = 'xy'
return a, b

o = v('o')
o.a += v('b')
o[v('i')] *= v('c')
o[v('a'):] **= 2
o.x.y //= 3

o = v('o')
o.a: int = v('b')
c: nothing = v('c')
d: nothing
o.x.y: int
o[v('i')]: str
d

o = v('o')
a = 1
del o.a, o[v('i')], (a, [o.b]), o[1:v('j')]
a

for x in v('a'):
  log.append(x.name)
  if x: continue
  break
else: log.append('else')
return x.name

for x in v('a'): pass
else: log.append('else')

o = v('o')
for o.x in v('a'): pass
for o[v('i')], (a, *o.y) in [[1, [2, 3]]]: log.append(a)

for a, (b, c) in [[1, 2]]:
  pass

for a, b in [(1, 2), (3, 4)]:
  log.append(sorted(locals()))
return a

n = 3
while n and v('a'):
  n -= 1
  if n == 1: continue
else: log.append('e')

while not v('a', False) < 1 and v('b'): break
while 1: break
if 0: nothing

if v('a') and not v('b') or v('c') < v('d') < v('e'): return 1
elif v('g'): return 2

if (v('a') and v('b', False)) or not (v('c') or v('d')): return 1
else: return 2

assert v('a'), v('b')
assert v('c') and not v('d'), v('e')

assert 1 > 2

with v('a') as x, v('b', False) as (y, *z), v('c'):
  log.append(y.name)
  raise KeyError(1)
return y, z

o = v('o')
with v('a') as o.x, v('b') as o[1]:
  return o

with 5: pass

with v('a') as (b, (c, d)), v('e'):
  pass

with v('a'):
  1 / 0

try: 1 / 0
except (KeyError, ZeroDivisionError) as e: log.append(str(e))
else: log.append(1)
finally: log.append(2)
e

try: log.append(0)
except E: pass
else: log.append(1)
finally: v('a').x

try: 1 / 0
except nothing: pass

try: raise KeyError('x') from v('cause')
except TypeError as e: return str(e)

try: raise KeyError('x') from ValueError('y')
except: raise RuntimeError

try:
  try: raise KeyError(1)
  finally: log.append('f')
except KeyError: raise

raise v('a')

raise KeyError

for i in range(3):
  try:
    if i: continue
    return i
  finally: log.append(i)

try: return v('a')
finally: log.append('f')

try: return 1
finally: return 2

for i in [1, 2]:
  try: return 1
  finally: break
return i

try: raise ExceptionGroup('g', [KeyError(1), ValueError(2)])
except* KeyError as e: log.append(repr(e))
except* ValueError: log.append('v')

try: raise KeyError(1)
except KeyError as e:
  import sys
  log.append(sys.exception() is e)
  del e
log.append(sys.exception())

import os.path, json as j, xml.dom
from os import path as p, sep
return os.path is p, j.__name__, sep, xml.dom

import nothing_there

from os import nothing_there

global x, y, z, w, os, p, xml, s
x = v('x')
x += v('y')
for y in [1, 2]: pass
(z, x), w = [x, y], y
import os, os.path as p, xml.dom
from os import sep as s
del y
log.append(sorted(globals()))
return (x := 5), x, w, p.__name__, xml.__name__, [x for i in [1] if (w := i)], w

global e, g
try: 1 / 0
except ZeroDivisionError as e: log.append(str(e))
def g(): return 1
with v('c') as e: return e.name, g()

global e
try: 1 / 0
except ZeroDivisionError as e: del e
return e

global y
del y

def h(v):
    x = 1
    def f(v):
        nonlocal x
        x += 1
        log.append(x)
        for x in v('a'): pass
        (x, y), z = [x, 2], 3
        return x.name, y, z
    return f, lambda: x
f, get = h(0)

def h():
    x = 1
    def f(v):
        nonlocal x
        def inner():
            nonlocal x
            x = 5
            return lambda: x
        log.append((x, inner()(), x))
        del x
        return x
    return f
f = h()

def h():
    def f(v):
        return x
    return f
    x = 1
f = h()

x = 1
def g():
  nonlocal x
  x += 1
  y = lambda: x + z
  return y
z = 5
g()
return g()(), x, g.__qualname__

pass
def g(a, b=v('b'), /, c=v('c'), *d, e=v('e'), **h): 'doc'; return a, b, c, d, e, h
return g(1, 2, z=3), g.__doc__, g.__defaults__, g.__kwdefaults__, g.__name__

pass
def g(a: v('n'), *b: v('m')) -> v('r'): pass
return sorted(g.__annotations__)

pass
@v('d')(1)
@v('e').x
def g(): pass
return g

pass
def fact(n): return 1 if n < 2 else n * fact(n - 1)
return fact(20), [fact(i) for i in range(3)]

def f(v, n=4): return n if n < 2 else f(v, n - 1) + f(v, n - 2)

@(lambda g: g)
@(
  lambda g: g)
def f(v):
    return nothing

f = lambda v, *a, k=2: (v('a').x, [i + k for i in range(3)])

f, g = lambda v: v('first') or nothing, lambda v: v('second').x

f = (lambda v: (lambda: v('in'))() and (lambda: v('out'))())

class A:
    __x = 1
    def f(self, v):
        self.__y = A.__x
        self.__y += 1
        __z = self.__y
        del self.__y
        def __g(__a): return __a, __z
        import os as __os
        return __z, __g(3), vars(self), __g.__name__, __class__, __os.sep, dict(__k=1)
f = A().f.__func__.__get__(A())
class B(A): __slots__ = ('__s', 't')

class A:
    def m(self, v): return v('A').x
class B(A):
    def f(self, v):
        def g(self): return super().m(v)
        return super().m(v), super(B, self).m(v), g(self), __class__.__name__, super().__init__()
f = B().f

class A:
    def __init_subclass__(cls): log.append(cls.__name__)
class B(A):
    @classmethod
    def f(cls, v): return super().__init_subclass__(), cls.__mro__[1].__name__
f = B.f

eval = locals = v('l')
return locals(), eval(1)

a = [len for len in v('a')], len is len
return a, [(b, [b for b in [c]]) for c in [1] if (b := c)]

class A:
    def f(self, v):
        class B:
            def m(self): return 1
        def g():
            class C: pass
            return C
        return B.__qualname__, B.m.__qualname__, g().__qualname__, g.__qualname__
f = A().f

def super(): return 'mine'
def eval(x): return x.y
def f(v): return super(), eval(v('a'))

class _:
    def f(self, v): return self.__x
f = _().f

class S:
    __slots__ = ('a', '__b')
    def f(self, v):
        self.a = self.__b = v('x')
        self.__b.c
        del self.a
        self.z = 1
f = S().f

pass
class C(v('Base') and object):
  x = y = v('x')
  def m(self): return __class__, self.__z, v('m')
  __z = 3
  w = [x for _ in 'a']
return C().m(), C.__qualname__, C.m.__qualname__, C._C__z

match [1, v('a'), {'k': 2}]:
  case [1, x, {'k': k, **rest}] if x: return x, k, rest
  case _: pass

async def g(): return v('a')
c = g()
try: c.send(None)
except StopIteration as e: return e.value

x = yield v('a')
log.append(x)
try: y = yield 2
except KeyError: log.append('k')
finally: yield 3

pass
def g():
  try:
    got = yield 1
    log.append(got)
    yield 2
  except GeneratorExit:
    log.append('closed')
    raise
def h(): return (yield from g())
it = h()
log.append(next(it))
log.append(it.send(v('s')))
it.close()

pass
def g():
  while True:
    try: x = yield
    except ValueError as e: yield str(e)
    else:
      if x is None: return 'done'
def h(): log.append((yield from g()))
it = h(); next(it)
log.append(it.throw(ValueError('thrown')))
next(it)
next(it, 0)

pass
def g(): raise StopIteration(1); yield
return list(g())

it = (x for x in v('a') if v('b'))
log.append('made')
return [x for x in it]

it = (x for x in 5)

pass
def deep(n): return 0 if n == 0 else 1 + deep(n - 1)
return deep(50)

x = 1
y = [x := x + i for i in range(3)]
if (n := len(y)) > 2: return x, y, n
while (n := n - 1): log.append(n)

return (v('a')
    .b
    .c(v('d'),
       v('e'))
    .g)

x = None
return (v('a')
  .b
  , x
  .y)

x = None
return (v
   .nothing(1,
     2)
   .more)

x = None
return (v('a')
  .b(x.y,
     1))

x = None
return (int
  ('x'))

x = None
return (int('3')
  .bit_length
  (1,
  2))

x = None
return ('a'
  .join(*[1],
  2))

x = None
return ('a'
  .join(1,
  **{'b': 2}))

x = None
return (1
  +
  x)

x = None
return (1 +
  2 <
  x <
  3)

x = None
(x
  .y) = 1

x = None
x[
  0] = 1

x = None
x[
  0
] += 1

x = None
(x
  .y) += 1

x = None
a, b = (
  1,
)

x = None
for a, b in [
  1]:
  pass

x = None
return {
  **{},
  **x}

x = None
return int(
  '3', **{
  'k': 2})

x = None
assert (
  x
), int('z')

x = None
raise (
  x)

x = None
with (
  x
):
  pass

x = None
del (x
  .y)

x = None
@x
def g(): pass

x = None
def g(a=
   x.y): pass

x = None
def g(n):
  if n: return g(n - 1)
  return x.y
g(3)

def f[T](v: T) -> T:
    def g[U: int](a: U, b: T): return U.__name__, T.__name__, a
    type X = list[U]
    return g(v('a'), 1), T.__name__

from __future__ import annotations
def f(v):
    def g(a: nothing) -> other: pass
    return g.__annotations__
""".strip("\n").split("\n\n")
# More such, with quotes that the text above could not have.
BLOCKS += [
    "x = 1\nreturn f'''\n{x:>5}\n{None:>5}'''",
    'def f(v):\n    """doc"""\n    return f.__doc__',
]
BLOCKS += [
    f"x = v('x')\nx {symbol}= v('y')\nz = 1; z {symbol}= 'a'\nreturn x"
    for symbol in "+ - * / // % ** @ << >> & | ^".split()
]


def module(block: str) -> str:
    """The text of a module with a function `f`."""
    whole = block.startswith(("def ", "class ", "@", "f =", "f,", "from __future__"))
    return block + "\n" if whole else body(*block.splitlines())


CONSTRUCTS = [body(f"return {text}") for text in EXPRESSIONS] + [module(block) for block in BLOCKS]
