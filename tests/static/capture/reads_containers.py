"""Functions that read containers, each with a change of what they read."""

import collections

from tests.static.capture.outside_reads import Pair, Plain, setter


class Options(list):
    pass


def list_element(patch):
    xs = [1.0, 2.0]
    return lambda x: x * xs[1], lambda: xs.__setitem__(1, 3.0)


def list_grown(patch):
    xs = [1.0, 2.0]
    return lambda x: x * sum(xs), lambda: xs.append(0)


def long_list(patch):
    xs = [float(i) for i in range(100)]
    return lambda x: x * sum(xs), lambda: xs.__setitem__(50, -1.0)


def list_in_another_order(patch):
    fs = [lambda x: x + 1, lambda x: x * 2]

    def f(x):
        for g in fs:
            x = g(x)
        return x

    return f, fs.reverse


def dict_value(patch):
    d = {"a": 2.0, "b": 1}
    return lambda x: x * d["a"], lambda: d.update(a=3.0)


def dict_in_another_order(patch):
    d = {"a": 2.0, "b": 1.0}

    def f(x):
        for k in d.values():
            x = x * 2 + k
        return x

    return f, lambda: d.__setitem__("a", d.pop("a"))


def dict_with_number_keys(patch):
    d = {1: 2.0, 2: 3.0}
    return lambda x: x * next(iter(d)), lambda: (d.clear(), d.update({1.0: 2.0, 2: 3.0}))


def set_element(patch):
    s = {1.0, 2.0}
    return lambda x: x * sum(s), lambda: s.add(3.0)


def deque_element(patch):
    d = collections.deque([1.0, 2.0])
    return lambda x: x * d[0], d.rotate


def list_subclass(patch):
    xs = Options([1.0, 2.0])
    return lambda x: x * xs[0], lambda: xs.__setitem__(0, 3.0)


def attribute_of_a_list_subclass(patch):
    xs = Options([1.0])
    xs.value = 2.0
    return lambda x: x * xs.value, setter(xs, "value", 3.0)


def default_dict(patch):
    d = collections.defaultdict(float, a=2.0)
    return lambda x: x * d["a"], lambda: d.update(a=3.0)


def named_tuple(patch):
    box = [Pair(2.0, [1.0])]
    return lambda x: x * box[0].b[0], lambda: box[0].b.append(2.0)


def named_tuple_replaced(patch):
    box = [Pair(2.0, 1.0)]
    return lambda x: x * box[0].a, lambda: box.__setitem__(0, Pair(3.0, 1.0))


def frozen_set_replaced(patch):
    obj = Plain(s=frozenset({1.0}))
    return lambda x: x * sum(obj.s), setter(obj, "s", frozenset({2.0}))


def tuple_with_a_list(patch):
    t = (1, [2.0])
    return lambda x: x * t[1][0], lambda: t[1].__setitem__(0, 3.0)


def key_of_a_dict(patch):
    key = Plain(value=2.0)
    d = {key: 1}
    return lambda x: x * next(iter(d)).value, setter(key, "value", 3.0)


def recursive_structure(patch):
    node = Plain(value=2.0)
    node.next = node
    return lambda x: x * node.next.next.value, setter(node, "value", 3.0)
