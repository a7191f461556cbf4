"""The lines that random Python for `flow.compile` is written in.

`{T}`, `{N}`, `{B}` and `{S}` stand for a tensor, a number, a truth and a text, `{I}` for an index,
`{n}` for a literal number. Entries of a table are parted by semicolons, statements of one entry by
slashes.
"""

from __future__ import annotations

# What stands outside the function.
WORLD = """
class Half:
    def __get__(self, owner, cls): return 0.5 if owner is None else owner.rate / 2
class Mode(enum.Enum):
    FAST = 1
    SLOW = 2
@dataclasses.dataclass
class Batch:
    x: object
    size: int = {n}
    def twice(self): return self.x * 2
Pair = collections.namedtuple('Pair', 'first second')
scale = {n}
limit = 2
word = 'a'
mode = Mode.FAST
w = data(1, {grad})
b = data(2)
numbers = [1.0, 2.0]
tensors = [w, b]
table = {{'a': 1.0, 'b': 2.0}}
weights = {{'w': w, 'b': b}}
words = {{'a', 'b'}}
options = types.SimpleNamespace(rate={n}, flag=True, name='a')
class Truthful(dict):
    def __bool__(self): return {truth}
truthful = Truthful()
lists = collections.defaultdict(list)
net = nn.Sequential(nn.Linear(3, 3), nn.ReLU()).double()
def helper(x: 1, factor={n}): return x * factor
part = functools.partial(helper, factor={n})
def chosen(x, *more, mode=None, **rest): return x + len(more) + len(rest)
def counter(start):
    step = start
    def get(x): return x * step
    def put(value):
        nonlocal step
        step = value
    return get, put
get, put = counter({n})
def upto(k):
    for i in range(k): yield i * scale
"""

# Parts of classes; those of one line are alternatives.
MEMBERS = [
    ["rate = {n}", "rate: float = {n}"],
    ["count = 0"],
    ["names = ('a', 'b')", "names = ['a', 'b']"],
    ["def scaled(self, x): return x * self.rate", "def scaled(self, x): return x + self.rate"],
    [
        "@property // def total(self): return self.rate + self.count",
        "@functools.cached_property // def total(self): return self.rate * 2",
        "total = Half()",
    ],
    [
        "@staticmethod // def fixed(x): return x * {n}",
        "@classmethod // def fixed(cls, x): return x * cls.rate",
        "def fixed(self, x): return x - len(self.names)",
    ],
    ["def __call__(self, x): return self.scaled(x) + {n}"],
    ["def __len__(self): return len(self.items)"],
    ["def __contains__(self, name): return name in self.items"],
    ["def __iter__(self): return iter(self.items)", "def __iter__(self): yield from self.items"],
    ["def __getitem__(self, k): return self.items[k]"],
    ["def __exit__(self, *a): return False", "def __exit__(self, *a): return True"],
    ["def __enter__(self): self.open = True; return self", "def __enter__(self): return self"],
]
CHANCES = [
    ["def __getattr__(self, name): return {n}"],
    ["def __getattr__(self, name): raise AttributeError(name)"],
    ["def __eq__(self, o): return self.rate == o.rate // def __hash__(self): return 1"],
    ["def __bool__(self): return self.rate > 1"],
    ["def __setattr__(self, name, value): object.__setattr__(self, name, value)"],
    ["def __repr__(self): return f'<{{self.rate}}>'"],
]

# Expressions, by what they are.
TENSORS = """
x; y; w; b; {T} + {T}; {T} * {T}; {T} - {T}; {T} * {N}; {T} + {N}; {T}.tanh(); flow.sin({T})
{T}.abs(); -{T}; {T} if {B} else {T}; helper({T}); helper({T}, {N}); helper({T}, factor={N})
thing.scaled({T}); thing.fixed({T}); thing({T}); thing.w * {T}; other.scaled({T}); get({T})
chosen({T}, 1, 2, k={N}); tensors[{I}] + {T}; weights['w'] * {T}; weights.get('c', {T})
{T} + {T}.sum(); {T} * {T}.shape[0]; sum([{T}, {T}]); [v * 2 for v in ({T}, {T})][{I}]
sum(v for v in tensors) + {T}; {{'k': {T}, 'l': {T}}}['l']; (lambda u, v={N}: u * v)({T})
functools.reduce(lambda u, v: u + v, [{T}, {T}]); max(tensors, key=len) * {T}; thing[0] * {T}
getattr(thing, 'w') * {T}; getattr(thing, 'gone', 2.0) * {T}; thing.__dict__.get('rate', 1.0) * {T}
Batch({T}).twice(); Pair({T}, {T}).second; dict(u={T}, v={T})['u']; list(map(helper, [{T}]))[0]
super(type(thing), thing).scaled({T}) if type(thing) is not Base else {T}; Base.scaled(thing, {T})
vars(thing)['w'] + {T}; operator.attrgetter('rate')(options) * {T}; [*tensors, {T}][-1]
({T}, {T})[{B}]; {T}.detach(); {T}.clone(); next(v for v in tensors) * {T}; net({T})
nn.functional.relu({T}); flow.relu({T}); part({T}); net[0].weight[0] * {T}; net[0].bias + {T}
next(iter(thing)) * {T}; flow.where({T} > 0, {T}, {T}); {T}[:]; math.sqrt(abs({N})) * {T}; {T} ** 2
options.weight * {T} if hasattr(options, 'weight') else {T}; {T} / ({N} + 10)
"""

NUMBERS = """
n; scale; limit; 1; 2.0; 0.5; thing.rate; thing.count; other.rate; Base.count; Thing.rate
thing.total; options.rate; len(numbers); numbers[{I}]; sum(numbers); table['a']; len(table)
table.get('c', 1.0); max(numbers); min({N}, {N}); {N} + {N}; {N} * 2; abs({N}); int({B}); len(words)
len({S}); x.shape[0]; x.ndim; x.numel(); round({N}); -{N}; {N} if {B} else {N}; len(thing)
len([v for v in numbers if v > 1]); sum(table.values()); sum(upto(2)); {{'a': {N}}}['a']; mode.value
[k for k, v in table.items() if v > 1].count('a'); list(table).index('a'); sorted(numbers)[{I}]
numbers.index(numbers[{I}]); dict(enumerate(numbers)).get(1, 0); ord({S}[0]); len(thing.names)
helper.__annotations__.get('x', 2); len(Batch.__annotations__); len(lists['a']); len(truthful)
helper.__defaults__[0]; part.keywords['factor']; len(part.args); Thing.__mro__.index(Base)
len(vars(thing)); len(Thing.__bases__); getattr(options, 'rate', 3.0); divmod(n, 2)[1]
sum(k * v for k, v in zip(numbers, table.values())); Batch(x).size; len(tensors); bool(thing) + 0
functools.reduce(operator.add, numbers); isinstance(thing, Thing) + 0
"""

TRUTHS = """
n > 1; scale > 1.5; thing.rate > 1; options.flag; x is w; x is not w; x is y; thing is other
thing is not None; 'a' in table; 'c' in table; 'c' in words; {N} in numbers; type(thing) is Base
isinstance(thing, Thing); hasattr(thing, 'extra'); hasattr(options, 'weight'); not {B}; {B} and {B}
{B} or {B}; x.requires_grad; w.requires_grad; {S} == 'a'; word == {S}; thing.__class__ is Thing
any(v > 1 for v in numbers); all(table.values()); any(x is v for v in tensors); x is b
callable(thing); bool(numbers); thing == other; x.grad is None; w.grad is None; x.is_leaf
issubclass(type(thing), Base); mode is Mode.FAST; mode == Mode.SLOW; {N} < {N} < 3; w in {{w: 1}}
None is thing.extra if hasattr(thing, 'extra') else {B}; x.shape == w.shape; x.dtype == flow.float64
flow.is_grad_enabled(); id(x) == id(w); x in {{w: 1}}; thing in (other, None); 'a' in thing
len(table) > 2; isinstance(numbers, list); x._base is None; x._base is w; type(w) is type(x)
isinstance(x, nn.Parameter); bool(truthful); lists.default_factory is list
net.training; net[0].weight.requires_grad; 'a' in lists; net[0].weight is w; bool(thing)
net[0].weight.grad is None; any(w is p for p in net.parameters()); helper is chosen
x.is_contiguous(); x.ndim == 1; thing.names is other.names; w._version == 0
x is tensors[0]; x.memory.version == 0
"""

TEXTS = """
word; 'a'; thing.names[{I}]; options.name; f'{{n}}'; f'{{scale:.1f}}-{{word}}'; {S} + 'b'
type(thing).__name__; {S}.upper(); {S} if {B} else {S}; str(n); f'{{x.shape}}'; repr({N}); mode.name
'-'.join(sorted(words)); f'{{x.dtype}} {{x.requires_grad}}'; '%s' % word; '{{}}'.format({N})
sorted(table)[0]; helper.__name__; ','.join(str(v) for v in numbers); {S}[:1]
"""

# Statements inside the function; %s is the name of a new tensor.
SIMPLE = """
%s = {T}; %s = {T}; %s = {T}; %s = {T}; found.append({T}); seen['k'] = {T}; notes.append({S})
seen.setdefault('m', {T}); %s = (u := {T}) * 2 + u; notes.append((yes := {N}) + yes); n = n + 1
word_here = {S} // notes.append(word_here); notes.append({N}); notes.append({B}); local.w = {T}
local.rate = {N}; local.names = [{S}]; found.append(local.w); seen.update(k={T})
notes.extend(str(v) for v in numbers); notes += [{N}, {S}]; local.count += 1; found[-1:] = [{T}]
seen['k'] = {T} // del seen['k']; found.append({T}) // found.pop(); notes.sort(key=str)
notes.reverse(); seen.pop('zz', None); first, *others = [{T}, {T}] // found += others
here = {{v for v in words}} // notes.append(len(here)); assert {N} < 1000
pair = Pair({T}, {N}) // notes.append(pair.second) // found.append(pair.first)
batch = Batch({T}, {N}) // found.append(batch.x) // notes.append(batch.size); x = {T}; y = {T}
x += {T}; y *= {N}; notes.append(vars(local).keys() >= {{'w'}}); notes.append(local.rate)
a, c = {N}, {N} // a, c = c, a // notes.append((a, c)); local.note = {S}
table_here = dict(table, z={N}) // notes.append(table_here['z']) // notes.append(list(table_here))
del local.count // local.count = 2
"""

LOOPS = """
for i in range(2):; for i, v in enumerate(numbers):; for key, v in table.items():; for i in thing:
for t in tensors:; for u, v in zip(tensors, numbers):; for key in sorted(words):; for v in upto(2):
while len(notes) < 3:; for v in [u for u in numbers if u > 1]:; for key in list(table):
for key, *rest in enumerate(tensors):
"""

CONTEXTS = """
with thing:; with thing as same:; with flow.no_grad():; with contextlib.nullcontext(2.0) as factor:
with contextlib.suppress(KeyError, AttributeError):
"""

RISKS = "seen['gone']; numbers[9]; thing.gone; int('a'); 1 / 0; next(iter(()))"

HANDLERS = """
except Exception as error:; except Exception as error:; except Exception as error:; except:
except Exception as error:; finally:; except AttributeError:; except (KeyError, IndexError):
"""

ERRORS = "ValueError; KeyError; ZeroDivisionError; StopIteration"

# What is returned, of the tensor {t}.
RETURNED = """
{t}; {t}, notes; ({t}, found, notes); {{'t': {t}, 'seen': seen}}; [{t}, n]; ({t}, {N}, {S})
found, {t}; ({t}, {B}); Pair({t}, notes)
"""

# What changes the world, and so may end a recording.
EFFECTS = """
thing.rate = {N}; thing.count += 1; options.flag = {B}; numbers.append({N}); table['c'] = {N}
thing.w = {T}; b.add_(0.5); scale = {N}; w.grad = None; ({T} * w).sum().backward()
thing.extra = {N}; words.add({S}); put({N}); x.add_(1); tensors.append({T}); weights['c'] = {T}
Thing.count += 1; with flow.no_grad(): w.mul_(0.5); b.requires_grad_(False); lists['b'].append({N})
"""

# Between calls.
CHANGES = """
thing.rate = {n}; other.rate = {n}; thing.flag = True; options.flag = not options.flag; limit = 3
options.rate = {n}; scale = {n}; Base.rate = {n}; Thing.rate = {n}; Thing.count += 1; b = data(4)
numbers.append({n}); numbers[0] = {n}; del numbers[-1:]; table['c'] = {n}; table['a'] = {n}
table.pop('b', None); words.add('c'); word = 'b'; mode = Mode.SLOW; w = data(3, True)
tensors.append(b); tensors[0] = w; weights['c'] = data(5); weights['w'] = b; thing.extra = 1
del thing.extra; thing.w = data(6); thing.w.mul_(0.5); w.detach().mul_(0.5); b.add_(1)
w.requires_grad_(not w.requires_grad); w.grad = data(7); w.grad = None; thing = other
Thing.scaled = lambda self, x: x - 1; Base.scaled = lambda self, x: x * 3
Thing.total = property(lambda self: 5.0); thing.scaled = lambda x: x * 7
helper = lambda x, factor=2: x / factor; helper.__defaults__ = (3.0,); put({n}); get = helper
thing.__class__ = Base; thing.__class__ = Thing; thing.names = ('z',); Thing.names = ('y', 'z')
other = Base({n}); thing = Thing({n}); del Thing.count; Thing.__len__ = lambda self: 9
thing.items.append(4.0); thing.items = []; options.weight = {n}; options.name = 'longer'
del options.rate; Batch.size = 4; Mode.FAST._value_ = 5; flow.manual_seed(1)
upto = lambda k: [{n}] * k; chosen.__kwdefaults__ = {{'mode': 2}}
Thing.__bool__ = lambda self: False; Thing.__eq__ = lambda self, o: True
nn.functional.relu = lambda v, inplace=False: v * 5; flow.relu = lambda v: v * 6
Truthful.__bool__ = lambda self: False; truthful['k'] = 1; lists.default_factory = dict
lists['a'].append(1); helper.__annotations__['x'] = 5
part.__setstate__((helper, (), {{'factor': {n}}}, {{}})); part.keywords['factor'] = {n}
vars(Thing)['total'].__init__(lambda self: 7.0); net.eval(); net[0] = nn.Identity()
net[0].weight.data = net[0].weight.data * 2; net[0].weight.detach().mul_(2)
net[0].requires_grad_(False); net.register_forward_hook(lambda m, a, v: v * 2)
net[0].forward = lambda v: v; nn.ReLU.forward = nn.Identity.forward; net[0].weight.grad = None
Thing.__bases__ = (Base,); thing.__dict__.clear(); helper.__code__ = (lambda x, factor: x).__code__
thing.count = 0; thing.__dict__['rate'] = {n}; numbers = [3.0]; table = {{'a': {n}}}
numbers[:] = [1.0, 2.0]; b.detach().add_(0)
"""

ARGUMENTS = """
x=data(3); x=data(3, True); x=w; x=b; x=w[:]; x=tensors[0]; y=data(3); y=w; n=2; n=3; n=2.0; n=True
thing=thing; thing=other; thing=Thing({n}); y=vars(thing).get('w', b); x=b.detach()
x=nn.Parameter(data(3))
"""


def lines(table: str) -> list[str]:
    """Return the entries of one of the tables."""
    entries = table.replace("\n", "; ").split("; ")
    return [entry.strip() for entry in entries if entry.strip()]
