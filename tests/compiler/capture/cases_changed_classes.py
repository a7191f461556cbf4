"""Classes that change after a call was recorded: members come, or are replaced in a subclass."""

from __future__ import annotations

import dataclasses
import types

import oneflow_lite as flow
from oneflow_lite import nn
from tests.compiler.capture.worlds import attempt, tensor


def calls(compiled, f, change):
    f = compiled(f)
    for i in range(6):
        if i == 4:
            change()
        yield attempt(f, tensor(1.0, float(i)))


def a_class_method(compiled):
    class A:
        @classmethod
        def f(cls, x):
            return x * 2

    class B(A):
        pass

    def f(x):
        return B.f(x)

    def change():
        B.f = classmethod(lambda cls, x: x * 3)

    yield from calls(compiled, f, change)


def a_class_method_of_an_object(compiled):
    class A:
        @classmethod
        def f(cls, x):
            return x * 2

    class B(A):
        pass

    b = B()

    def f(x):
        return b.f(x)

    def change():
        B.f = classmethod(lambda cls, x: x * 3)

    yield from calls(compiled, f, change)


def a_descriptor(compiled):
    class P:
        def __init__(s, k):
            s.k = k

        def __get__(s, i, c):
            return s.k

    class A:
        k = P(2)

    class B(A):
        pass

    b = B()

    def f(x):
        return x * b.k

    def change():
        B.k = P(3)

    yield from calls(compiled, f, change)


def equality(compiled):
    class A:
        pass

    class B(A):
        pass

    a, b = B(), B()

    def f(x):
        return x * 2 if a == b else x

    def change():
        B.__eq__ = lambda s, o: True

    yield from calls(compiled, f, change)


def being_in_a_tuple(compiled):
    class A:
        pass

    class B(A):
        pass

    a, b = B(), B()

    def f(x):
        return x * 2 if a in (b,) else x

    def change():
        A.__eq__ = lambda s, o: True

    yield from calls(compiled, f, change)


def being_in_a_dict(compiled):
    class A:
        pass

    class B(A):
        pass

    a, b = B(), B()
    d = {b: 1}

    def f(x):
        return x * 2 if a in d else x

    def change():
        B.__eq__ = lambda s, o: True
        B.__hash__ = lambda s: 1
        nonlocal a
        d.clear()
        d[b] = 1

    yield from calls(compiled, f, change)


def truth(compiled):
    class A:
        pass

    class B(A):
        pass

    a = B()

    def f(x):
        return x * 2 if a else x

    def change():
        B.__len__ = lambda s: 0

    yield from calls(compiled, f, change)


def items_of_a_dict(compiled):
    class A(dict):
        pass

    a = A(k=2)

    def f(x):
        return x * a["k"]

    def change():
        A.__getitem__ = lambda s, k: 7

    yield from calls(compiled, f, change)


def elements_of_a_list(compiled):
    class A(list):
        pass

    a = A([2, 3])

    def f(x):
        return x * sum(a)

    def change():
        A.__iter__ = lambda s: iter([7])

    yield from calls(compiled, f, change)


def the_length_of_a_list(compiled):
    class A(list):
        pass

    a = A([2, 3])

    def f(x):
        return x * len(a)

    def change():
        A.__len__ = lambda s: 7

    yield from calls(compiled, f, change)


def keys_of_a_dict(compiled):
    class A(dict):
        pass

    a = A(k=2)

    def f(x):
        return x * (2 if "k" in a else 3)

    def change():
        A.__contains__ = lambda s, k: False

    yield from calls(compiled, f, change)


def all_attributes(compiled):
    class A:
        def __init__(s):
            s.k = 2

    a = A()

    def f(x):
        return x * a.k

    def change():
        A.__getattribute__ = lambda s, k: 7

    yield from calls(compiled, f, change)


def a_property_of_the_metaclass(compiled):
    class M(type):
        pass

    class A(metaclass=M):
        k = 2

    def f(x):
        return x * A.k

    def change():
        M.k = property(lambda s: 5)

    yield from calls(compiled, f, change)


def a_property_over_an_attribute(compiled):
    class A:
        def __init__(s):
            s.k = 2

    a = A()

    def f(x):
        return x * a.k

    def change():
        A.k = property(lambda s: 5, lambda s, v: None)

    yield from calls(compiled, f, change)


def a_property_over_an_attribute_of_a_new_object(compiled):
    class A:
        pass

    def f(x):
        a = A()
        a.k = 2
        return x * a.k

    def change():
        A.k = property(lambda s: 5, lambda s, v: None)

    yield from calls(compiled, f, change)


def equality_with_a_number(compiled):
    class A:
        pass

    def f(x):
        a = A()
        return x * (3 if a == 3 else 2)

    def change():
        A.__eq__ = lambda s, o: True

    yield from calls(compiled, f, change)


def how_attributes_of_a_new_object_are_set(compiled):
    class A:
        pass

    def f(x):
        a = A()
        a.k = 2
        return x * a.k

    def change():
        A.__init__ = lambda s: setattr(s, "z", 1)
        A.__setattr__ = lambda s, k, v: object.__setattr__(s, k, 9)

    yield from calls(compiled, f, change)


def truth_of_a_new_object(compiled):
    class A:
        pass

    def f(x):
        a = A()
        return x * (3 if a else 2)

    def change():
        A.__bool__ = lambda s: False

    yield from calls(compiled, f, change)


def what_a_class_makes(compiled):
    class A:
        pass

    def f(x):
        a = A()
        return f"{type(a).__name__}{isinstance(a, A)}" and x * 2

    def change():
        A.__new__ = lambda c: 5

    yield from calls(compiled, f, change)


def an_attribute_that_a_new_object_had_not(compiled):
    class A:
        pass

    def f(x):
        a = A()
        try:
            k = a.k
        except AttributeError:
            k = 4
        return x * k

    def change():
        A.k = 5

    yield from calls(compiled, f, change)


def attributes_that_a_new_object_had_not(compiled):
    class A:
        pass

    def f(x):
        a = A()
        try:
            k = a.k
        except AttributeError:
            k = 4
        return x * k

    def change():
        A.__getattr__ = lambda s, k: 6

    yield from calls(compiled, f, change)


def text(compiled):
    class A:
        def __init__(s):
            s.k = 2

    a = A()

    def f(x):
        return x * (3 if str(a)[:1] == "z" else 2)

    def change():
        A.__str__ = lambda s: "z"

    yield from calls(compiled, f, change)


def text_of_an_exception(compiled):
    class A(Exception):
        pass

    def f(x):
        a = A("k")
        return x * (3 if str(a)[:1] == "z" else 2)

    def change():
        A.__str__ = lambda s: "z"

    yield from calls(compiled, f, change)


def inequality(compiled):
    class A:
        pass

    a = A()

    def f(x):
        return x * len([k for k in [1, a] if k is not None and k != a])

    def change():
        A.__ne__ = lambda s, o: True

    yield from calls(compiled, f, change)


def hashes(compiled):
    class A:
        pass

    a = A()

    def f(x):
        s = {a, A()}
        return x * len(s)

    def change():
        A.__eq__ = lambda s, o: True
        A.__hash__ = lambda s: 1

    yield from calls(compiled, f, change)


def unpacking(compiled):
    class A(tuple):
        pass

    a = A((1, 2))

    def f(x):
        p, q = a
        return x * q

    def change():
        A.__iter__ = lambda s: iter([7, 7])

    yield from calls(compiled, f, change)


def entering(compiled):
    class A:
        def __enter__(s):
            return 2

        def __exit__(s, *e):
            return None

    a = A()

    def f(x):
        with a as k:
            return x * k

    def change():
        A.__enter__ = lambda s: 8

    yield from calls(compiled, f, change)


def addition(compiled):
    class A(float):
        pass

    a = A(2.0)

    def f(x):
        return x * (a + 1)

    def change():
        A.__add__ = lambda s, o: 9

    yield from calls(compiled, f, change)


def a_property_over_an_attribute_of_a_module(compiled):
    class B(nn.Module):
        def __init__(s):
            super().__init__()
            s.k = 2

        def forward(self, x):
            return x * self.k

    m = B()

    def f(x):
        return m(x)

    def change():
        B.k = property(lambda s: 9, lambda s, v: None)

    yield from calls(compiled, f, change)


def a_descriptor_that_begins_to_set(compiled):
    class D:
        def __get__(s, i, c):
            return 2

    class A:
        k = D()

    a = A()
    a.__dict__["k"] = 3

    def f(x):
        return x * a.k

    def change():
        D.__set__ = lambda s, i, v: None

    yield from calls(compiled, f, change)


def a_value_that_begins_to_get(compiled):
    class D:
        pass

    class A:
        k = D()

    a = A()

    def f(x):
        return x * (2 if isinstance(a.k, D) else 5)

    def change():
        D.__get__ = lambda s, i, c: 7

    yield from calls(compiled, f, change)


def a_metaclass_that_makes_objects(compiled):
    class M(type):
        pass

    class A(metaclass=M):
        def __init__(s):
            s.k = 2

    def f(x):
        return x * A().k

    def change():
        M.__call__ = lambda c: types.SimpleNamespace(k=5)

    yield from calls(compiled, f, change)


def another_class(compiled):
    class A:
        def k(s):
            return 2

    class B:
        def k(s):
            return 5

    a = A()

    def f(x):
        return x * a.k()

    def change():
        a.__class__ = B

    yield from calls(compiled, f, change)


def a_parameter_behind_an_attribute(compiled):
    class N(nn.Module):
        def __init__(s):
            super().__init__()
            s.w = nn.Parameter(flow.ones(2))

        def forward(s, x):
            return x * s.w

    n = N()

    def f(x):
        return n(x)

    def change():
        vars(n)["w"] = flow.ones(2) * 5

    yield from calls(compiled, f, change)


def a_layer_behind_an_attribute(compiled):
    class N(nn.Module):
        def __init__(s):
            super().__init__()
            s.l = nn.Tanh()

        def forward(s, x):
            return s.l(x)

    n = N()

    def f(x):
        return n(x)

    def change():
        vars(n)["l"] = nn.ReLU()

    yield from calls(compiled, f, change)


def the_bases_of_an_exception(compiled):
    class E(Exception):
        pass

    class F(Exception):
        pass

    class G(E):
        pass

    def f(x):
        try:
            raise G
        except E:
            return x * 2
        except Exception:
            return x * 5

    def change():
        G.__bases__ = (F,)

    yield from calls(compiled, f, change)


def the_bases_of_an_object(compiled):
    class E:
        pass

    class F:
        pass

    class G(E):
        pass

    g = G()

    def f(x):
        return x * (2 if isinstance(g, E) else 5)

    def change():
        G.__bases__ = (F,)

    yield from calls(compiled, f, change)


def the_bases_of_a_class(compiled):
    class E:
        pass

    class F:
        pass

    class G(E):
        pass

    def f(x):
        return x * (2 if issubclass(G, E) else 5)

    def change():
        G.__bases__ = (F,)

    yield from calls(compiled, f, change)


def format_of_an_object(compiled):
    class A:
        def __str__(s):
            return "ab"

    a = A()

    def f(x):
        return x * len(f"{a}")

    def change():
        A.__format__ = lambda s, spec: "abcdef"

    yield from calls(compiled, f, change)


def a_post_init_that_comes_late(compiled):
    @dataclasses.dataclass
    class A:
        k: int = 2

    def f(x):
        return x * A().k

    def change():
        A.__post_init__ = lambda s: setattr(s, "k", 5)

    yield from calls(compiled, f, change)


def how_a_dataclass_sets_its_fields(compiled):
    @dataclasses.dataclass
    class A:
        k: int = 2

    def f(x):
        return x * A(3).k

    def change():
        A.__setattr__ = lambda s, n, v: object.__setattr__(s, n, 9)

    yield from calls(compiled, f, change)


def a_method_between_super_and_its_class(compiled):
    class A:
        def k(s):
            return 2

    class M(A):
        pass

    class B(M):
        def k(s):
            return super().k()

    b = B()

    def f(x):
        return x * b.k()

    def change():
        M.k = lambda s: 5

    yield from calls(compiled, f, change)


def an_attribute_that_super_had_not(compiled):
    class A:
        pass

    class B(A):
        def k(s):
            return getattr(super(), "h", 2)

    b = B()

    def f(x):
        return x * b.k()

    def change():
        A.h = 5

    yield from calls(compiled, f, change)


def an_attribute_between_super_and_its_class(compiled):
    class A:
        h = 2

    class M(A):
        pass

    class B(M):
        def k(s):
            return super().h

    b = B()

    def f(x):
        return x * b.k()

    def change():
        M.h = 5

    yield from calls(compiled, f, change)


def keys_that_are_filled_in(compiled):
    class D(dict):
        pass

    d = D()

    def f(x):
        try:
            return x * d["k"]
        except KeyError:
            return x

    def change():
        D.__missing__ = lambda s, k: 7

    yield from calls(compiled, f, change)


def elements_that_are_counted(compiled):
    class A:
        pass

    a, b = A(), A()
    found = [a]

    def f(x):
        return x * (found.count(b) + 2)

    def change():
        A.__eq__ = lambda s, o: True

    yield from calls(compiled, f, change)


def truth_of_a_list(compiled):
    class L(list):
        pass

    found = L()

    def f(x):
        return x * (2 if found else 3)

    def change():
        L.__bool__ = lambda s: True

    yield from calls(compiled, f, change)


def what_can_be_called(compiled):
    class A:
        pass

    a = A()

    def f(x):
        return x * (5 if callable(a) else 2)

    def change():
        A.__call__ = lambda s: 1

    yield from calls(compiled, f, change)


SPECIAL = {
    "__neg__": lambda x: -x,
    "__abs__": lambda x: abs(x),
    "__invert__": lambda x: ~(x > 0),
    "__iter__": lambda x: [each * 2 for each in x],
    "__float__": lambda x: (x * 2, float(x.sum())),
    "__int__": lambda x: (x * 2, int(x.shape[0] * flow.ones(()))),
    "__complex__": lambda x: (x * 2, complex(x.sum())),
    "__index__": lambda x: (x * 2, [1, 2, 3][flow.tensor(1)]),
    "__len__": lambda x: x * len(x),
    "__getitem__": lambda x: x[0],
    "__add__": lambda x: x + 1,
    "__rsub__": lambda x: 1 - x,
    "__lt__": lambda x: x < 1,
}


def special_methods_of_all_tensors(compiled):
    """They are another at some calls, which looks at more than the tensor."""
    factor = [3]
    for name, f in SPECIAL.items():
        f, own = compiled(f), vars(flow.Tensor)[name]

        def other(self, *args, own=own, name=name):
            found = own(self, *args)
            if name == "__iter__":
                return iter([each * factor[0] for each in found])
            return found * factor[0] // 2

        try:
            for i in range(12):
                if i in (3, 7, 10):
                    changed = i != 7
                    setattr(flow.Tensor, name, other if changed else own)
                factor[0] = 5 if i in (5, 6) else 3
                yield name, attempt(f, tensor(1.0, float(i)))
        finally:
            setattr(flow.Tensor, name, own)


class _Scaled(flow.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = flow.nn.Parameter(tensor(2.0, 3.0))
        self.calls = 0


def _methods_of_a_class(compiled, cls, name, change):
    """Another one at some calls, which looks at more than the object."""
    own, factor = vars(cls)[name], [3]

    def f(x, net):
        net.calls = 0
        return sum([x * net.weight, x])

    for net in (_Scaled(), flow.nn.Linear(2, 2, dtype=flow.float64)):
        g = compiled(lambda x, net=net: f(x, net))
        flow.nn.init.ones_(net.weight)
        try:
            for i in range(12):
                if i in (3, 7, 10):
                    setattr(cls, name, own if i == 7 else change(own, factor))
                factor[0] = 5 if i in (5, 6) else 3
                yield attempt(g, tensor(1.0, float(i))), vars(net).get("calls")
        finally:
            setattr(cls, name, own)


def how_all_modules_get_attributes(compiled):
    def change(own, factor):
        def other(self, name):
            return own(self, name) * factor[0] if name == "weight" else own(self, name)

        return other

    yield from _methods_of_a_class(compiled, flow.nn.Module, "__getattr__", change)


def how_all_modules_set_attributes(compiled):
    def change(own, factor):
        def other(self, name, value):
            own(self, name, factor[0] if name == "calls" else value)

        return other

    yield from _methods_of_a_class(compiled, flow.nn.Module, "__setattr__", change)


def how_all_tensors_are_summed(compiled):
    def change(own, factor):
        return lambda self, other: own(self, other) * factor[0]

    yield from _methods_of_a_class(compiled, flow.Tensor, "__radd__", change)
