"""Functions that read globals, closures and functions, each with a change of what they read."""

import collections
import contextlib
import functools

import oneflow_lite as flow
from tests.static.capture.outside_reads import Pair, Plain, config, setter

scale = 2.0
table = {"deep": [1.0, {"k": 3.0}]}


def helper(x, factor=2.0, *, offset=0.0):
    return x * factor + offset


def global_scalar(patch):
    return lambda x: x * scale, lambda: patch(globals(), "scale", 3.0)


def global_of_another_type(patch):
    patch(globals(), "scale", 1)
    return lambda x: x * scale, lambda: patch(globals(), "scale", 1.0)


def global_bool_for_int(patch):
    patch(globals(), "scale", 1)
    return lambda x: x * scale, lambda: patch(globals(), "scale", True)


def negative_zero(patch):
    patch(globals(), "scale", 0.0)
    return lambda x: x * scale, lambda: patch(globals(), "scale", -0.0)


def a_global_that_hides_a_builtin(patch):
    return lambda x: x * max(1, 2), lambda: patch(globals(), "max", min)


def global_function_replaced(patch):
    return lambda x: helper(x), lambda: patch(globals(), "helper", lambda x: x)


def code_replaced(patch):
    def inner(x):
        return x * 2

    def change():
        inner.__code__ = (lambda x: x * 3).__code__

    return lambda x: inner(x), change


def defaults_replaced(patch):
    def inner(x, k=2.0):
        return x * k

    return lambda x: inner(x), setter(inner, "__defaults__", (3.0,))


def keyword_defaults_changed(patch):
    def inner(x, *, k=2.0):
        return x * k

    return lambda x: inner(x), lambda: inner.__kwdefaults__.update(k=3.0)


def list_as_default(patch):
    def inner(x, ks=[2.0]):  # noqa: B006
        return x * ks[0]

    return lambda x: inner(x), lambda: inner.__defaults__[0].append(1.0)


def attribute_of_a_function(patch):
    def inner(x):
        return x * inner.k

    inner.k = 2.0
    return lambda x: inner(x), setter(inner, "k", 3.0)


def attribute_of_a_function_that_is_not_called(patch):
    def holder():
        return 0

    holder.k = 2.0
    return lambda x: x * holder.k, setter(holder, "k", 3.0)


def nested_container(patch):
    def change():
        patch(table["deep"][1], "k", 4.0)

    return lambda x: x * table["deep"][1]["k"], change


def closure_variable(patch):
    k = 2.0

    def change():
        nonlocal k
        k = 3.0

    return lambda x: x * k, change


def closure_of_an_inner_function(patch):
    k = 2.0

    def inner(x):
        return [x * k for _ in range(1)]

    def change():
        nonlocal k
        k = 3.0

    return lambda x: inner(x)[0], change


def attribute_of_a_users_module(patch):
    return lambda x: x * config.rate, lambda: patch(config, "rate", 0.25)


def function_of_the_package_replaced(patch):
    return lambda x: flow.relu(x), lambda: patch(flow, "relu", lambda x: x)


def partial(patch):
    options = [2.0]
    f = functools.partial(lambda ks, x: x * ks[0], options)
    return f, lambda: options.__setitem__(0, 3.0)


def partial_with_keywords(patch):
    f = functools.partial(helper, factor=2.0)
    return lambda x: f(x), lambda: f.keywords.update(factor=3.0)


def lambda_in_a_list(patch):
    fs = [lambda x: x * 2]
    return lambda x: fs[0](x), lambda: fs.__setitem__(0, lambda x: x * 3)


def what_a_decorated_function_reads(patch):
    k = 2.0

    @flow.no_grad()
    def inner(x):
        return x * k

    def change():
        nonlocal k
        k = 3.0

    return lambda x: inner(x), change


def what_a_wrapper_reads(patch):
    ks = [2.0]

    def twice(f):
        @functools.wraps(f)
        def wrapper(x):
            return f(f(x))

        return wrapper

    @twice
    def inner(x):
        return x * ks[0]

    return lambda x: inner(x), lambda: ks.__setitem__(0, 3.0)


def what_an_attribute_of_an_argument_reads(patch):
    obj = Plain(value=2.0)
    return functools.partial(lambda o, x: x * o.value, obj), setter(obj, "value", 3.0)


def what_the_default_of_a_dict_reads(patch):
    k = 2.0
    d = collections.defaultdict(lambda: k)

    def f(x):
        y = x * d["new"]
        del d["new"]
        return y

    def change():
        nonlocal k
        k = 3.0

    return f, change


class Made:
    def __new__(cls, k):
        made = super().__new__(cls)
        made.k = k * scale
        return made

    @classmethod
    def __class_getitem__(cls, k):
        return cls(k).k


def what_new_reads(patch):
    return lambda x: x * Made(2.0).k, lambda: patch(globals(), "scale", 3.0)


def what_a_class_method_of_an_operator_reads(patch):
    return lambda x: x * Made[2.0], lambda: patch(globals(), "scale", 3.0)


def named_tuple_made_in_the_call(patch):
    return lambda x: x * Pair(scale, 1).a, lambda: patch(globals(), "scale", 3.0)


def what_a_context_manager_reads(patch):
    ks = [2.0]

    @contextlib.contextmanager
    def scaled(x):
        yield x * ks[0]

    def f(x):
        with scaled(x) as y:
            return y

    return f, lambda: ks.__setitem__(0, 3.0)


def what_a_generator_reads(patch):
    ks = [2.0]

    def parts(x):
        for k in ks:
            yield x * k

    return lambda x: sum(parts(x)), lambda: ks.append(3.0)


def what_a_function_reads_that_is_an_argument_by_default(patch):
    ks = [2.0]

    def outer(x, f=lambda x: x * ks[0]):
        return f(x)

    return outer, lambda: ks.__setitem__(0, 3.0)


def bound_builtin_method(patch):
    d = {"k": 2.0}
    get = d.get
    return lambda x: x * get("k"), lambda: d.update(k=3.0)


def static_and_class_methods(patch):
    class Owner:
        k = 2.0

        @staticmethod
        def one(x):
            return x * scale

        @classmethod
        def two(cls, x):
            return cls.one(x) * cls.k

    return lambda x: Owner.two(x), lambda: setattr(Owner, "one", staticmethod(lambda x: x))


def name_of_a_function(patch):
    def inner(x):
        return x

    inner.__name__ = "a"
    return lambda x: x * (2 if inner.__name__ == "a" else 3), setter(inner, "__name__", "b")


def defaults_read_as_an_attribute(patch):
    def inner(x, k=2.0):
        return x

    return lambda x: x * inner.__defaults__[0], setter(inner, "__defaults__", (3.0,))
