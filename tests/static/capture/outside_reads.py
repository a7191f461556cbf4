"""Functions that read from outside, each with a change of what they read."""

import abc
import collections
import contextlib
import dataclasses
import enum
import functools
import operator
import types

import oneflow_lite as flow
from oneflow_lite import nn

scale = 2.0
table = {"deep": [1.0, {"k": 3.0}]}
config = types.ModuleType("users_config")
config.rate = 0.5


class Mode(enum.Enum):
    A = 1
    B = 2


def helper(x, factor=2.0, *, offset=0.0):
    return x * factor + offset


class Plain:
    shared = 4.0

    def __init__(self, **values):
        self.__dict__.update(values)

    def method(self, x):
        return x * self.value

    def __call__(self, x):
        return self.method(x)

    @property
    def doubled(self):
        return self.value * 2


class Derived(Plain):
    pass


class Slots:
    __slots__ = ("value",)


class Fallback:
    def __init__(self):
        self._known = {"value": 2.0}

    def __getattr__(self, name):
        return self._known[name]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.drop = nn.Dropout(0.0)
        self.scale = 1.0

    def forward(self, x):
        return self.drop(self.linear(x)) * self.scale


class Options(list):
    pass


@dataclasses.dataclass
class Data:
    value: float = 2.0


Pair = collections.namedtuple("Pair", "a b")
READS = []


def read(world):
    READS.append(world)
    return world


def setter(target, name, value):
    return lambda: setattr(target, name, value)


@read
def global_scalar(patch):
    return lambda x: x * scale, lambda: patch(globals(), "scale", 3.0)


@read
def global_of_another_type(patch):
    patch(globals(), "scale", 1)
    return lambda x: x * scale, lambda: patch(globals(), "scale", 1.0)


@read
def global_bool_for_int(patch):
    patch(globals(), "scale", 1)
    return lambda x: x * scale, lambda: patch(globals(), "scale", True)


@read
def negative_zero(patch):
    patch(globals(), "scale", 0.0)
    return lambda x: x * scale, lambda: patch(globals(), "scale", -0.0)


@read
def a_global_that_hides_a_builtin(patch):
    return lambda x: x * max(1, 2), lambda: patch(globals(), "max", min)


@read
def global_function_replaced(patch):
    return lambda x: helper(x), lambda: patch(globals(), "helper", lambda x: x)


@read
def code_replaced(patch):
    def inner(x):
        return x * 2

    def change():
        inner.__code__ = (lambda x: x * 3).__code__

    return lambda x: inner(x), change


@read
def defaults_replaced(patch):
    def inner(x, k=2.0):
        return x * k

    return lambda x: inner(x), setter(inner, "__defaults__", (3.0,))


@read
def keyword_defaults_changed(patch):
    def inner(x, *, k=2.0):
        return x * k

    return lambda x: inner(x), lambda: inner.__kwdefaults__.update(k=3.0)


@read
def list_as_default(patch):
    def inner(x, ks=[2.0]):  # noqa: B006
        return x * ks[0]

    return lambda x: inner(x), lambda: inner.__defaults__[0].append(1.0)


@read
def attribute_of_a_function(patch):
    def inner(x):
        return x * inner.k

    inner.k = 2.0
    return lambda x: inner(x), setter(inner, "k", 3.0)


@read
def attribute_of_a_function_that_is_not_called(patch):
    def holder():
        return 0

    holder.k = 2.0
    return lambda x: x * holder.k, setter(holder, "k", 3.0)


@read
def nested_container(patch):
    def change():
        patch(table["deep"][1], "k", 4.0)

    return lambda x: x * table["deep"][1]["k"], change


@read
def closure_variable(patch):
    k = 2.0

    def change():
        nonlocal k
        k = 3.0

    return lambda x: x * k, change


@read
def closure_of_an_inner_function(patch):
    k = 2.0

    def inner(x):
        return [x * k for _ in range(1)]

    def change():
        nonlocal k
        k = 3.0

    return lambda x: inner(x)[0], change


@read
def attribute(patch):
    obj = Plain(value=2.0)
    return lambda x: x * obj.value, setter(obj, "value", 3.0)


@read
def nested_attribute(patch):
    obj = Plain(inner=Plain(value=2.0))
    return lambda x: x * obj.inner.value, setter(obj.inner, "value", 3.0)


@read
def attribute_by_method(patch):
    obj = Plain(value=2.0)
    return lambda x: obj.method(x), setter(obj, "value", 3.0)


@read
def callable_object(patch):
    obj = Plain(value=2.0)
    return lambda x: obj(x), setter(obj, "value", 3.0)


@read
def the_function_is_a_callable_object(patch):
    obj = Plain(value=2.0)
    return obj, setter(obj, "value", 3.0)


@read
def the_function_is_a_method(patch):
    obj = Plain(value=2.0)
    return obj.method, setter(obj, "value", 3.0)


@read
def attribute_by_property(patch):
    obj = Plain(value=2.0)
    return lambda x: x * obj.doubled, setter(obj, "value", 3.0)


@read
def attribute_by_getattr(patch):
    obj = Plain(value=2.0)
    return lambda x: x * getattr(obj, "val" + "ue"), setter(obj, "value", 3.0)


@read
def attribute_by_vars(patch):
    obj = Plain(value=2.0)
    return lambda x: x * vars(obj)["value"], setter(obj, "value", 3.0)


@read
def attribute_by_mapped_getattr(patch):
    obj = Plain(value=2.0)
    return lambda x: x * next(map(getattr, [obj], ["val" + "ue"])), setter(obj, "value", 3.0)


@read
def hasattr_asked(patch):
    obj = Plain(value=2.0)
    return lambda x: x * (2 if hasattr(obj, "extra") else 1), setter(obj, "extra", 3.0)


@read
def attribute_that_was_missing(patch):
    obj = Plain(value=2.0)

    def f(x):
        try:
            return x * obj.extra
        except AttributeError:
            return x

    return f, setter(obj, "extra", 3.0)


@read
def class_attribute(patch):
    obj = Plain(value=2.0)
    return lambda x: x * obj.shared, lambda: patch(Plain, "shared", 5.0)


@read
def class_attribute_hidden_by_a_subclass(patch):
    obj = Derived(value=2.0)
    return lambda x: x * obj.shared, lambda: patch(Derived, "shared", 5.0)


@read
def class_attribute_hidden_by_the_object(patch):
    obj = Plain(value=2.0)
    return lambda x: x * obj.shared, setter(obj, "shared", 5.0)


@read
def method_replaced(patch):
    obj = Plain(value=2.0)
    return lambda x: obj.method(x), lambda: patch(Plain, "method", lambda self, x: x)


@read
def operator_replaced(patch):
    obj = Plain(value=2.0)
    return lambda x: obj(x), lambda: patch(Plain, "__call__", lambda self, x: x)


@read
def class_of_the_object_replaced(patch):
    obj = Plain(value=2.0)
    return lambda x: obj.method(x), setter(obj, "__class__", Derived)


@read
def dict_of_the_object_replaced(patch):
    obj = Plain(value=2.0)
    return lambda x: obj.method(x), setter(obj, "__dict__", {"value": 3.0})


@read
def slot(patch):
    obj = Slots()
    obj.value = 2.0
    return lambda x: x * obj.value, setter(obj, "value", 3.0)


@read
def getattr_of_a_class(patch):
    obj = Fallback()
    return lambda x: x * obj.value, lambda: obj._known.update(value=3.0)


@read
def list_element(patch):
    xs = [1.0, 2.0]
    return lambda x: x * xs[1], lambda: xs.__setitem__(1, 3.0)


@read
def list_grown(patch):
    xs = [1.0, 2.0]
    return lambda x: x * sum(xs), lambda: xs.append(0)


@read
def long_list(patch):
    xs = [float(i) for i in range(100)]
    return lambda x: x * sum(xs), lambda: xs.__setitem__(50, -1.0)


@read
def list_in_another_order(patch):
    fs = [lambda x: x + 1, lambda x: x * 2]

    def f(x):
        for g in fs:
            x = g(x)
        return x

    return f, fs.reverse


@read
def dict_value(patch):
    d = {"a": 2.0, "b": 1}
    return lambda x: x * d["a"], lambda: d.update(a=3.0)


@read
def dict_in_another_order(patch):
    d = {"a": 2.0, "b": 1.0}

    def f(x):
        for k in d.values():
            x = x * 2 + k
        return x

    return f, lambda: d.__setitem__("a", d.pop("a"))


@read
def dict_with_number_keys(patch):
    d = {1: 2.0, 2: 3.0}
    return lambda x: x * next(iter(d)), lambda: (d.clear(), d.update({1.0: 2.0, 2: 3.0}))


@read
def set_element(patch):
    s = {1.0, 2.0}
    return lambda x: x * sum(s), lambda: s.add(3.0)


@read
def deque_element(patch):
    d = collections.deque([1.0, 2.0])
    return lambda x: x * d[0], d.rotate


@read
def list_subclass(patch):
    xs = Options([1.0, 2.0])
    return lambda x: x * xs[0], lambda: xs.__setitem__(0, 3.0)


@read
def attribute_of_a_list_subclass(patch):
    xs = Options([1.0])
    xs.value = 2.0
    return lambda x: x * xs.value, setter(xs, "value", 3.0)


@read
def default_dict(patch):
    d = collections.defaultdict(float, a=2.0)
    return lambda x: x * d["a"], lambda: d.update(a=3.0)


@read
def dataclass(patch):
    obj = Data()
    return lambda x: x * obj.value, setter(obj, "value", 3.0)


@read
def dataclass_made_in_the_call(patch):
    return lambda x: x * Data().value, setter(Data.__init__, "__defaults__", (3.0,))


@read
def named_tuple(patch):
    box = [Pair(2.0, [1.0])]
    return lambda x: x * box[0].b[0], lambda: box[0].b.append(2.0)


@read
def named_tuple_replaced(patch):
    box = [Pair(2.0, 1.0)]
    return lambda x: x * box[0].a, lambda: box.__setitem__(0, Pair(3.0, 1.0))


@read
def namespace(patch):
    obj = types.SimpleNamespace(value=2.0)
    return lambda x: x * obj.value, setter(obj, "value", 3.0)


@read
def attribute_of_a_users_module(patch):
    return lambda x: x * config.rate, lambda: patch(config, "rate", 0.25)


@read
def function_of_the_package_replaced(patch):
    return lambda x: flow.relu(x), lambda: patch(flow, "relu", lambda x: x)


@read
def partial(patch):
    options = [2.0]
    f = functools.partial(lambda ks, x: x * ks[0], options)
    return f, lambda: options.__setitem__(0, 3.0)


@read
def partial_with_keywords(patch):
    f = functools.partial(helper, factor=2.0)
    return lambda x: f(x), lambda: f.keywords.update(factor=3.0)


@read
def lambda_in_a_list(patch):
    fs = [lambda x: x * 2]
    return lambda x: fs[0](x), lambda: fs.__setitem__(0, lambda x: x * 3)


@read
def enum_member(patch):
    obj = Plain(mode=Mode.A)
    return lambda x: x * (2 if obj.mode is Mode.A else 3), setter(obj, "mode", Mode.B)


@read
def dtype(patch):
    obj = Plain(dtype=flow.float32)
    return lambda x: x.to(obj.dtype), setter(obj, "dtype", flow.float64)


@read
def tensor_replaced(patch):
    obj = Plain(w=flow.ones(2))
    return lambda x: x * obj.w, setter(obj, "w", flow.ones(2))


@read
def attribute_of_a_tensor(patch):
    w = flow.ones(2)
    w.factor = 2.0
    return lambda x: x * w.factor, setter(w, "factor", 3.0)


@read
def training_flag(patch):
    net = Net()
    return lambda x: net(x), net.eval


@read
def training_flag_of_a_submodule(patch):
    net = Net()
    return net, net.drop.eval


@read
def attribute_of_a_module(patch):
    net = Net()
    return net, setter(net, "scale", 2.0)


@read
def attribute_of_a_layer(patch):
    net = Net()
    return net, setter(net.drop, "p", 0.5)


@read
def parameter_replaced(patch):
    net = Net()
    return net, lambda: setattr(net.linear, "weight", nn.Parameter(flow.ones(2, 2)))


@read
def parameter_dropped(patch):
    net = Net()
    return net, setter(net.linear, "bias", None)


@read
def submodule_replaced(patch):
    net = Net()
    return net, lambda: setattr(net, "linear", nn.Linear(2, 2))


@read
def forward_of_one_layer_replaced(patch):
    net = Net()
    return net, setter(net.linear, "forward", lambda x: x)


@read
def forward_of_a_layer_class_replaced(patch):
    net = Net()
    return net, lambda: patch(nn.Linear, "forward", lambda self, x: x)


@read
def hook_added(patch):
    net = Net()
    return net, lambda: net.linear.register_forward_hook(lambda m, a, y: y * 2)


@read
def hook_removed(patch):
    net = Net()
    handle = net.register_forward_pre_hook(lambda m, a: None)
    return net, handle.remove


@read
def what_a_hook_reads(patch):
    net = Net()
    ks = [2.0]
    net.register_forward_hook(lambda m, a, y: y * ks[0])
    return net, lambda: ks.__setitem__(0, 3.0)


@read
def module_list_grown(patch):
    layers = nn.ModuleList([nn.Linear(2, 2)])

    def f(x):
        for layer in layers:
            x = layer(x)
        return x

    return f, lambda: layers.append(nn.Linear(2, 2))


@read
def what_a_decorated_function_reads(patch):
    k = 2.0

    @flow.no_grad()
    def inner(x):
        return x * k

    def change():
        nonlocal k
        k = 3.0

    return lambda x: inner(x), change


@read
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


@read
def what_an_attribute_of_an_argument_reads(patch):
    obj = Plain(value=2.0)
    return functools.partial(lambda o, x: x * o.value, obj), setter(obj, "value", 3.0)


@read
def a_store_that_left_the_same_value(patch):
    obj = Plain(mode="train")

    def f(x):
        obj.mode = "train"
        return x * 2

    return f, setter(obj, "mode", "eval")


@read
def attribute_by_format(patch):
    obj = Plain(value=2.0)
    text = "{0.value}"
    return lambda x: x * float(text.format(obj)), setter(obj, "value", 3.0)


@read
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


@read
def method_of_tensors_replaced(patch):
    return lambda x: x.relu(), lambda: patch(flow.Tensor, "relu", lambda x: x)


@read
def call_of_every_module_replaced(patch):
    net = Net()
    return net, lambda: patch(nn.Module, "__call__", lambda self, x: x)


class Made:
    def __new__(cls, k):
        made = super().__new__(cls)
        made.k = k * scale
        return made

    @classmethod
    def __class_getitem__(cls, k):
        return cls(k).k


@read
def what_new_reads(patch):
    return lambda x: x * Made(2.0).k, lambda: patch(globals(), "scale", 3.0)


@read
def what_a_class_method_of_an_operator_reads(patch):
    return lambda x: x * Made[2.0], lambda: patch(globals(), "scale", 3.0)


@read
def named_tuple_made_in_the_call(patch):
    return lambda x: x * Pair(scale, 1).a, lambda: patch(globals(), "scale", 3.0)


@read
def what_a_context_manager_reads(patch):
    ks = [2.0]

    @contextlib.contextmanager
    def scaled(x):
        yield x * ks[0]

    def f(x):
        with scaled(x) as y:
            return y

    return f, lambda: ks.__setitem__(0, 3.0)


@read
def what_a_generator_reads(patch):
    ks = [2.0]

    def parts(x):
        for k in ks:
            yield x * k

    return lambda x: sum(parts(x)), lambda: ks.append(3.0)


@read
def what_a_descriptor_reads(patch):
    class Scaled:
        def __init__(self):
            self.k = 2.0

        def __get__(self, obj, cls):
            return obj.value * self.k

    descriptor = Scaled()

    class Owner:
        scaled = descriptor
        value = 1.0

    owner = Owner()
    return lambda x: x * owner.scaled, setter(descriptor, "k", 3.0)


@read
def class_of_a_class(patch):
    class Meta(type):
        k = 2.0

    class Owner(metaclass=Meta):
        pass

    return lambda x: x * Owner.k, lambda: setattr(Meta, "k", 3.0)


@read
def base_of_a_class_replaced(patch):
    class Left:
        k = 2.0

    class Right:
        k = 3.0

    class Owner(Left):
        pass

    owner = Owner()
    return lambda x: x * owner.k, lambda: setattr(Owner, "__bases__", (Right,))


@read
def inherited_attribute(patch):
    class Left:
        k = 2.0

    class Owner(Left):
        pass

    owner = Owner()
    return lambda x: x * owner.k, lambda: setattr(Left, "k", 3.0)


@read
def super_method(patch):
    class Left:
        def f(self, x):
            return x * 2

    class Owner(Left):
        def f(self, x):
            return super().f(x)

    owner = Owner()
    return lambda x: owner.f(x), lambda: setattr(Left, "f", lambda self, x: x)


@read
def pattern(patch):
    obj = Data(2.0)

    def f(x):
        match obj:
            case Data(value):
                return x * value

    return f, setter(obj, "value", 3.0)


@read
def what_a_function_reads_that_is_an_argument_by_default(patch):
    ks = [2.0]

    def outer(x, f=lambda x: x * ks[0]):
        return f(x)

    return outer, lambda: ks.__setitem__(0, 3.0)


@read
def bound_builtin_method(patch):
    d = {"k": 2.0}
    get = d.get
    return lambda x: x * get("k"), lambda: d.update(k=3.0)


@read
def frozen_set_replaced(patch):
    obj = Plain(s=frozenset({1.0}))
    return lambda x: x * sum(obj.s), setter(obj, "s", frozenset({2.0}))


@read
def tuple_with_a_list(patch):
    t = (1, [2.0])
    return lambda x: x * t[1][0], lambda: t[1].__setitem__(0, 3.0)


@read
def key_of_a_dict(patch):
    key = Plain(value=2.0)
    d = {key: 1}
    return lambda x: x * next(iter(d)).value, setter(key, "value", 3.0)


@read
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


@read
def recursive_structure(patch):
    node = Plain(value=2.0)
    node.next = node
    return lambda x: x * node.next.next.value, setter(node, "value", 3.0)


@read
def name_of_a_function(patch):
    def inner(x):
        return x

    inner.__name__ = "a"
    return lambda x: x * (2 if inner.__name__ == "a" else 3), setter(inner, "__name__", "b")


@read
def name_of_a_class(patch):
    class Owner:
        pass

    owner = Owner()
    f = lambda x: x * (2 if type(owner).__name__ == "Owner" else 3)  # noqa: E731
    return f, setter(Owner, "__name__", "Other")


@read
def defaults_read_as_an_attribute(patch):
    def inner(x, k=2.0):
        return x

    return lambda x: x * inner.__defaults__[0], setter(inner, "__defaults__", (3.0,))


@read
def class_registered_with_another(patch):
    class Base(abc.ABC):  # noqa: B024
        pass

    class Other:
        pass

    other = Other()
    return lambda x: x * (2 if isinstance(other, Base) else 3), lambda: Base.register(Other)


@read
def attribute_by_attrgetter(patch):
    obj = Plain(value=2.0)
    return lambda x: x * operator.attrgetter("value")(obj), setter(obj, "value", 3.0)


@read
def truth_of_an_object(patch):
    class Owner:
        pass

    owner = Owner()
    return lambda x: x * (2 if owner else 3), setter(Owner, "__bool__", lambda self: False)
