"""Objects whose special methods are a user's and read `scale`, and C code over such objects."""

# ruff: noqa: F401
from __future__ import annotations

import bisect
import collections
import copy
import dataclasses
import functools
import heapq
import itertools
import math
import operator
import types

import numpy as np

import oneflow_lite as flow

scale = 2.0
ERRORS = (ArithmeticError, AttributeError, LookupError, RuntimeError, StopIteration, TypeError)
ERRORS += (ValueError,)


def _by(names, method):
    return {f"__{name}__": method for name in names.split()}


class Hostile:
    """An object all of whose special methods read what is outside."""

    def __init__(self, v=1):
        self.v = v

    def _is(self, other=None):
        return scale > 2.5

    def _number(self, *others):
        return scale

    def _whole(self, *others):
        return int(scale)

    def _text(self, spec=""):
        return str(scale)

    def __divmod__(self, other):
        return scale, scale

    def __iter__(self):
        return iter([scale, scale])

    def __complex__(self):
        return complex(scale)

    def __bytes__(self):
        return bytes(int(scale))

    def keys(self):
        return ["a"]

    __reversed__ = __iter__
    __eq__ = __ne__ = __lt__ = __gt__ = __le__ = __ge__ = __bool__ = __contains__ = _is
    __hash__ = __len__ = __int__ = __index__ = __trunc__ = __floor__ = __ceil__ = _whole
    __float__ = __add__ = __radd__ = __mul__ = __rmul__ = __mod__ = __sub__ = _number
    __pow__ = __rpow__ = __truediv__ = __rtruediv__ = __floordiv__ = __neg__ = __abs__ = _number
    __round__ = __getitem__ = __call__ = _number
    __str__ = __repr__ = __format__ = _text


class Key:
    def __init__(self, v):
        self.v = v

    def __eq__(self, other):
        return scale > 2.5

    def __hash__(self):
        return 5


class Num(int):
    __add__ = __radd__ = __mul__ = __rmul__ = __float__ = Hostile._number
    __lt__ = __gt__ = __eq__ = __bool__ = Hostile._is
    __hash__ = int.__hash__
    __str__ = __repr__ = __format__ = Hostile._text
    __index__ = __int__ = Hostile._whole


class Str(str):
    __eq__ = Hostile._is
    __hash__ = str.__hash__
    __str__ = __format__ = Hostile._text


class Dict(dict):
    __getitem__ = __missing__ = get = Hostile._number
    __contains__, __len__ = Hostile._is, Hostile._whole

    def __iter__(self):
        return iter(["a"])

    def keys(self):
        return ["a"]

    def items(self):
        return [("a", scale)]


class List(list):
    __getitem__, __len__ = Hostile._number, Hostile._whole
    __contains__ = __eq__ = Hostile._is
    __iter__ = Hostile.__iter__

    def __add__(self, other):
        return [scale]


class Tup(tuple):
    __getitem__, __len__ = Hostile._number, Hostile._whole
    __eq__ = __lt__ = Hostile._is
    __hash__ = tuple.__hash__
    __iter__ = Hostile.__iter__


class Desc:
    def __get__(self, owner, cls):
        return scale

    def __set__(self, owner, value):
        scale  # noqa: B018


class Holder:
    d = Desc()
    p = property(Hostile._number)
    c = functools.cached_property(lambda self: scale)
    c.__set_name__(None, "c")
    m = Hostile._number

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return scale


class Meta(type):
    __call__ = __getitem__ = __add__ = __or__ = Hostile._number
    __instancecheck__ = __subclasscheck__ = __contains__ = __eq__ = __bool__ = Hostile._is
    __hash__ = __len__ = Hostile._whole
    __str__ = __repr__ = Hostile._text
    __iter__ = Hostile.__iter__
    __getattr__ = Holder.__getattr__


class WithMeta(metaclass=Meta):
    pass


class Left:
    def __add__(self, other):
        return scale

    def __radd__(self, other):
        return -scale

    def __lt__(self, other):
        return 1 if scale > 2.5 else 2

    def __gt__(self, other):
        return 3 if scale > 2.5 else 4


class Same(Left):
    pass


class Right(Left):
    def __radd__(self, other):
        return 2 * scale


class It:
    def __init__(self):
        self.k = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.k += 1
        if self.k > scale:
            raise StopIteration
        return scale


class ByNumber(collections.defaultdict):
    pass


def factory():
    return [scale]


@dataclasses.dataclass
class Listed:
    v: float
    empty: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Fielded(Listed):
    made: list = dataclasses.field(default_factory=factory)


def helper(v, *more):
    return scale * (v if type(v) in (int, float) else 1)


def less(a, b):
    return 1 if scale > 2.5 else -1


def gen():
    yield scale


h, g = Hostile(), Hostile(2)
key, num, st, dc, ls, tp = Key(1), Num(3), Str("b"), Dict(a=1.0), List([1.0, 2.0]), Tup([1.0, 2.0])
keyed, part, ho = {key: 1.0}, functools.partial(helper), Holder()
numbers, table, by_class = [1.0, 2.0], {"a": 2.0}, {Listed: 1.0}

# Expressions of these, by what C code does with them.
AREAS = {
    "comparing": """
        h == g; h != 1; 1 == h; h < g; 1 < h; [h] == [g]; [h] == [1]; (h,) < (g,); [h] < [1];
        {'a': h} == {'a': g}; h in [g]; h in (1, g); h in [1]; 1 in [h]""",
    "searching_and_hashing": """
        [g].index(h); [g].count(h); [g, 1].index(1); (g,).count(h); [g].remove(h); h in {1:
        2}; {h: 1}; {h}; {1: 2}.get(h); {1:2}[h]; {1: 2}.pop(h, 3); {}.setdefault(h, 1)""",
    "sets_and_dicts_made": """
        set([h]); frozenset([h]); dict([(h, 1)]); dict.fromkeys([h]); {1, 2} | {h}; {1,
        2}.add(h); {1}.update([h]); {}.update({h: 1}); {}.update([(h, 1)])""",
    "folding": """
        any([h]); all([h]); sum([h]); sum([1, h]); sum([1], h); max([h, g]); min(h, g); max(1,
        h); sorted([h, g]); [h, g].sort(); [1, 2, 3].sort(key=helper); sorted([1, 2],
        key=helper)""",
    "calling": """
        max([1, 2], key=helper); min([1, 2], key=part); sorted([1,2],
        key=functools.cmp_to_key(less)); list(map(helper, [1])); list(filter(helper, [1]));
        list(filter(None, [h])); list(map(h, [1])); list(map(ho.m, [1])); list(map(str, [h]));
        list(map(float, [h])); list(map(bool, [h])); list(map(operator.neg, [h]));
        list(map(len, [h])); list(map(part, [1])); list(map(operator.attrgetter('p'), [ho]));
        list(map(operator.attrgetter('d'), [ho])); list(map(operator.itemgetter(0), [h]));
        list(map(operator.methodcaller('m'), [ho])); list(map(getattr, [ho], ['p']))""",
    "itertools": """
        functools.reduce(helper, [1.0, 2.0]); functools.reduce(operator.add, [h, g]);
        functools.reduce(operator.add, [1, h]); list(itertools.accumulate([h, g]));
        list(itertools.accumulate([1, 2], helper)); list(itertools.starmap(helper, [(1,)]));
        list(itertools.chain(h)); list(itertools.chain.from_iterable([h]));
        list(itertools.takewhile(helper, [1, 2])); list(itertools.dropwhile(helper, [1, 2]));
        list(itertools.filterfalse(helper, [1, 2])); list(itertools.groupby([1, 2], helper));
        list(itertools.compress([1, 2], [h, g])); list(itertools.product(h, [1]));
        list(itertools.zip_longest(h, [1])); list(itertools.islice(h, 1));
        list(itertools.islice([1,2,3,4], h)); list(itertools.repeat(1, h)); [v for v, _ in
        itertools.groupby([h, g])]; list(itertools.count(h, 1).__repr__());
        next(itertools.cycle(h)); list(itertools.pairwise(h));
        list(itertools.permutations(h)); list(itertools.batched(h, 1)) if hasattr(itertools,
        'batched') else 0""",
    "iterating": """
        list(h); tuple(h); [*h]; (*h,); {*h}; set(h); sum(h); max(h); min(h); sorted(h);
        any(h); all(h); list(zip(h, h)); list(enumerate(h)); dict(h); {**h}; dict(**h);
        list(reversed(h)); list(iter(h)); next(iter(h)); [v for v in h]; helper(*h); 1.0 in h;
        list(range(h)); [1,2,3,4][h]; (1,2,3,4)[h]; [1,2,3,4][h:]; 'abcdef'[h]; 'abcdef'[h:];
        [1, 2] * h; 'ab' * h; range(9)[h]; slice(h, 3)""",
    "texts": """
        str(h); repr(h); f'{h}'; f'{h!r}'; f'{h:>3}'; '%s' % h; '%r' % (h,); '%d' % h; '%(a)s'
        % {'a': h}; '%(a)s' % dc; '{}'.format(h); '{0.v}'.format(h); '{0.p}'.format(ho);
        '{0.d}'.format(ho); '{0.zz}'.format(ho); '{0[1]}'.format(h); '{a}'.format(**dc);
        '{a}'.format_map(dc); ','.join([st]); ','.join(h); format(h); format(1.5, st);
        ascii(h); str([h]); repr({'a': h}); f'{[h]}'; '%s' % [h]; 'a'.join(ls); '
        '.join(map(str, [h])); str((h,))""",
    "numbers": """
        int(h); float(h); complex(h); bool(h); bool([h]); not h; 1 if h else 2; h and 1; h or
        1; abs(h); round(h); divmod(h, 1); pow(h, 2); pow(2, h); len(h); hash(h); hash((h,));
        math.sqrt(h); math.floor(h); math.ceil(h); math.trunc(h); math.fsum([h]);
        math.fsum(h); math.prod([h]); math.prod([1, h]); math.gcd(h, 4); math.isclose(h, 2);
        math.pow(h, 1); math.dist([h], [1]); math.hypot(h); math.factorial(h); bin(h); hex(h);
        chr(h); bytes(h); bytes([h]); bytearray(h); ord(st)""",
    "arithmetic": """
        -h; +num; ~num; h + 1; 1 + h; h * 2; 2 ** h; [h] + ls; ls + [1]; tp + (1,); num + 1; 1
        + num; num * 2; num < 4; num == 3; num in [3]; num in (1, 3); [1, 3].index(num); [1,
        2].count(num); sum([num]); max([num, 1]); sorted([num, 1]); int(num); float(num);
        str(num); f'{num}'; '%d' % num; '%s' % num; [1, 2, 3, 4][num]; range(num);
        list(range(num)); abs(num); bool(num); 1 if num else 2; math.sqrt(num); divmod(num,
        2); round(num); hash(num); {num: 1}; {3: 1}[num]; {3: 1}.get(num); {3} - {num};
        operator.index(num); x * num; x + num""",
    "operators": """
        operator.add(h, 1); operator.eq(h, g); operator.lt(h, g); operator.not_(h);
        operator.truth(h); operator.neg(h); operator.contains(h, 1); operator.contains([g],
        h); operator.getitem(h, 1); operator.index(h); operator.mul(2, h);
        operator.length_hint(h); operator.concat(ls, ls); operator.countOf([g], h);
        operator.indexOf([g], g); operator.iadd([1], h); operator.is_(h, g); operator.call(h)
        if hasattr(operator, 'call') else 0; operator.attrgetter('p')(ho);
        operator.attrgetter('d')(ho); operator.attrgetter('v.real')(h);
        operator.itemgetter(0)(h); operator.itemgetter('a')(dc);
        operator.methodcaller('m')(ho); operator.methodcaller('keys')(dc);
        Left() + Same(); Left() + Right(); Right() + Left(); Same() + Right(); 1 + Right();
        Left() < Same(); Same() < Left(); sum([Left(), Right()], 0)""",
    "dicts": """
        dict(dc); {**dc}; list(dc); dc['a']; dc['z']; dc.get('a'); dict.get(dc, 'a');
        dict.__getitem__(dc, 'a'); len(dc); dict.__len__(dc); 'a' in dc; 'q' in dc;
        list(dc.items()); [k for k in dc]; sorted(dc); (lambda **k: k['a'])(**dc);
        {}.update(dc); {'b': 1} | dc; dc | {'b': 2}; dc == {'a': 1.0}; copy.copy(dc);
        dict.items(dc); list(dict.keys(dc)); bool(dc); 1 if dc else 2; max(dc); zip(dc);
        list(zip(dc, dc)); list(enumerate(dc)); sum(map(len, dc));
        collections.OrderedDict(dc); collections.Counter(dc); collections.ChainMap(dc)['a'];
        collections.deque(dc)""",
    "lists": """
        list(ls); tuple(ls); [*ls]; sum(ls); max(ls); ls[0]; ls[:1]; len(ls); 1.0 in ls; ls ==
        [1.0, 2.0]; [1.0, 2.0] == ls; list(zip(ls)); list(map(float, ls));
        list(enumerate(ls)); [v for v in ls]; set(ls); sorted(ls); ls.index(1.0); ls.copy();
        list.__getitem__(ls, 0); list.__iter__(ls); next(list.__iter__(ls));
        list(reversed(ls)); [1].extend(ls); [1] + ls; ls * 2; bool(ls); 1 if ls else 2;
        any(ls); all(ls); collections.deque(ls); dict.fromkeys(ls); math.fsum(ls);
        math.prod(ls); ','.join(map(str, ls)); str(ls); flow.tensor(ls); flow.tensor(tp);
        flow.zeros(num)""",
    "tuples": """
        list(tp); tp[0]; len(tp); tp == (1.0, 2.0); tp < (3.,); sum(tp); max(tp); [*tp];
        hash(tp); {tp: 1}; 1.0 in tp; [v for v in tp]; max([tp, (1.,)]); sorted([tp, (0.,)]);
        helper(*tp); '%s %s' % tp; isinstance(tp, tuple); set([tp]); str(tp)""",
    "strings": """
        st == 'b'; st in ['b']; st in ('a', 'b'); 'b' == st; {'b': 1}.get(st); {'b': 1}[st];
        str(st); f'{st}'; '%s' % st; '{}'.format(st); st + 'a'; st.upper(); len(st); st in
        'abc'; 'abc'.index(st); [1, 'b'].count(st); {st: 1}; hash(st); st < 'c'; 'a' < st;
        ord(st); max([st, 'a']); bool(st); st[0]; st * 2; list(st); 'abc'.replace(st, 'z');
        getattr(ho, Str('p'))""",
    "keys": """
        key in keyed; keyed[key]; keyed[Key(2)]; keyed.get(Key(2)); Key(2) in keyed;
        list(keyed)[0] is key; {**keyed}; dict(keyed); Key(1) in {key}; {key} == {Key(1)};
        {key} | {Key(2)}; {key}.issubset({Key(2)}); {key} <= {Key(2)}; {key} - {Key(2)}; {key:
        1} == {Key(2): 1}; [key] == [Key(2)]; set(keyed); frozenset(keyed); keyed == {Key(2):
        1.0}; keyed.keys() == {Key(2)}; keyed.keys() & {Key(2)}; keyed.items() == {1:
        2}.items(); list(keyed.items()); len({key, Key(2)}); len(dict([(key, 1), (Key(2),
        2)])); collections.Counter([key, Key(2)]); dict.fromkeys([key, Key(2)]);
        functools.lru_cache()(helper)(1.0); copy.copy(key); copy.deepcopy(h)""",
    "attributes": """
        ho.p; ho.d; ho.c; ho.zz; getattr(ho, 'p'); getattr(ho, 'zz'); hasattr(ho, 'zz');
        vars(ho); ho.m(); Holder.p.fget(ho); Holder.p.__get__(ho); Holder.d; type(ho).d;
        super(Holder, ho).__init__(); object.__getattribute__(ho, 'p');
        object.__getattribute__(ho, 'd'); ho.__getattribute__('p'); Holder.m(ho);
        types.MethodType(helper, 1)(); setattr(ho, 'd', 1); Holder.__dict__['p'].fget(ho);
        Holder.__dict__['d'].__get__(ho, Holder)""",
    "metaclasses": """
        WithMeta(); WithMeta.zz; isinstance(h, WithMeta); issubclass(int, WithMeta); 1 in
        WithMeta; list(WithMeta); len(WithMeta); WithMeta[0]; WithMeta == int; WithMeta in
        [int]; {WithMeta: 1}; bool(WithMeta); 1 if WithMeta else 2; WithMeta + 1;
        str(WithMeta); f'{WithMeta}'; hash(WithMeta); isinstance(h, (int, WithMeta)); WithMeta
        | int; sum([WithMeta]); [v for v in WithMeta]; [WithMeta].index(int); '%s' % WithMeta;
        next(iter(WithMeta)); any([WithMeta]); max([WithMeta], key=helper); dict([(WithMeta,
        1)]); WithMeta is int; repr([WithMeta])""",
    "iterators": """
        list(It()); [v for v in It()]; sum(It()); max(It()); next(It()); tuple(It());
        list(zip(It())); list(map(helper, It())); list(gen()); next(gen()); sum(gen());
        [*gen()]; list(zip(gen())); tuple(gen()); set(gen()); dict(zip('a', gen()));
        max(gen()); sorted(gen()); list(enumerate(gen())); list(filter(None, gen()));
        list(itertools.chain(gen(), It())); (lambda *a: a[0])(*gen()); gen().__next__();
        gen().send(None); collections.deque(gen()); collections.deque(It());
        dict.fromkeys(gen()); [1].extend(It()); ','.join(str(v) for v in gen()); any(gen());
        [].__iadd__(It()); list(It())[0:1]; heapq.nsmallest(1, [h, g]); heapq.heappush([g],
        h); bisect.bisect([g, g], h); bisect.bisect([1, 2], 1, key=helper); heapq.heapify([h,
        g]); heapq.nlargest(1, [1, 2], key=helper); heapq.merge([h], [g]);
        collections.deque([g]).index(h); collections.deque([g]).count(h);
        collections.deque([g]).remove(h); h in collections.deque([g]); collections.deque([h])
        == collections.deque([g]); collections.defaultdict(helper)['q'];
        collections.defaultdict(gen)['q']; collections.OrderedDict([(h, 1)]);
        collections.OrderedDict({'a': h}) == {'a': g}; collections.Counter([h, g]);
        collections.Counter(h); collections.Counter('ab')[h]; functools.partial(h)(1);
        functools.partial(helper, h)(); functools.partialmethod(helper) and 0;
        functools.cmp_to_key(less)(1) < functools.cmp_to_key(less)(2);
        functools.total_ordering and 0; functools.singledispatch(helper)(1.0);
        staticmethod(helper)(1.0); classmethod(helper).__get__(1)();
        property(helper).__get__(1.0); property(helper).fget(1.0); range(3).index(h);
        range(3).count(h); h in range(3); 'a'.startswith(st); 'abc'.split(st); 'a'.center(h);
        'a'.ljust(num); (1).__add__(h); (1.0).__eq__(h); [].__eq__([h]); [g].__contains__(h);
        [g].__eq__([h]); (g,).__lt__((h,)); {'a': g}.__eq__({'a': h}); int.__add__(1, num);
        int('1', h); int('11', num); round(2.55, h); round(2.5, num); pow(2, h, 5);
        float.__add__(1., num); memoryview(b'ab')[h]; max(1, 2, key=helper); max([],
        default=h); sum([], h); next(iter([]), h); vars(h)['v']; type(h)(3).v;
        object.__eq__(h, g); object.__repr__(h) and 0; object.__format__(h, '');
        object.__str__(h); type.__repr__(WithMeta); str.__format__(st, ''); str.join(',',
        [st]); dict.update({}, dc); dict.update({}, h); list.extend([], h); list.__init__([],
        h); set.update(set(), h); dict.__init__({}, h); list.sort([h, g]); list.sort([1, 2],
        key=helper); tuple.__new__(tuple, h); int.__new__(int, h); str.__new__(str, h);
        float.__new__(float, h)""",
    "indices": """
        slice(1, 5).indices(h); slice(h, 5).indices(8); [1,2,3,4][slice(h, None)]; x * h; h *
        x; x + h; x == h; h == x; x < h; flow.add(x, h); flow.tensor([h]); flow.full((2,), h);
        x[h]; x[[h]]; x[h:]; x.pow(h); flow.pow(x, num); x.clamp(h, 5.0); flow.tensor(h);
        flow.tensor(num); x ** num; x / num; x.mul(num); flow.full((1,), num); x.add(1,
        alpha=num); flow.arange(num); x.repeat(num); x[num - num]; x.unsqueeze(num - num);
        flow.stack([x] * 2, dim=h); np.sqrt(h); np.array([h]); np.sum([h]); np.array(h);
        np.sqrt(num); np.add(1, num); np.maximum(1, num); np.prod(tp); np.prod(ls);
        np.float64(h); np.float64(num); np.isclose(num, 2); np.array([num]); np.asarray(tp);
        np.max(ls); np.int64(num); np.float32(h)""",
}
# What only asks: for a number, or from a count that it makes.
REFUSED = """
    float(h); int(h); abs(h); round(h); math.sqrt(h);
    collections.Counter('abba')['b']; Fielded(1).made[0]; x.storage_offset();
    len(str(list[int])); sum(by_class.values()); operator.attrgetter('p')(ho);
    operator.getitem(table, 'a'); operator.itemgetter(0, 1)(numbers)
"""
# What is observed, and so replayed.
UNDERSTOOD = [
    "operator.itemgetter(0)(numbers)",
    "max(table.items(), key=operator.itemgetter(1))[0]",
    "max(numbers, key=helper)",
    "sorted(numbers, key=lambda v: -v * scale)",
    "sum(map(helper, numbers))",
    "list(map(h, [1]))",
    "h + 1",
    "operator.add(h, 1)",
    "Left() + Same()",
    "Left() + Right()",
    "len(h)",
    "ho.p",
    "ho.d",
    "h[1]",
    "functools.reduce(lambda a, b: a * scale + b, numbers)",
    "list(itertools.starmap(helper, [(1,)]))",
    "list(itertools.chain.from_iterable([numbers, numbers]))",
    "f'{h}'",
    "any(v > scale for v in numbers)",
    "[*It()]",
    "Holder.d",
    "'a' in dc",
    "h in [1, g]",
    "dict(a=h)['a'].v",
    "list(zip(numbers, [h]))[0][1].v",
    "collections.defaultdict(lambda: scale)['q']",
    "list(reversed(numbers))",
    "math.prod(numbers)",
    "dict.get(dc, 'a')",
    "Listed(scale, empty=[scale]).empty + Listed(1).empty",
    "super(Dict, dc).__getitem__('a')",
    "max(numbers) if bool(h) else scale",
]
