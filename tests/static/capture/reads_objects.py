"""Functions that read attributes and classes, each with a change of what they read."""

import abc
import dataclasses
import enum
import operator
import types

from tests.static.capture.outside_reads import Plain, setter


class Mode(enum.Enum):
    A = 1
    B = 2


class Derived(Plain):
    pass


class Slots:
    __slots__ = ("value",)


class Fallback:
    def __init__(self):
        self._known = {"value": 2.0}

    def __getattr__(self, name):
        return self._known[name]


@dataclasses.dataclass
class Data:
    value: float = 2.0


def attribute(patch):
    obj = Plain(value=2.0)
    return lambda x: x * obj.value, setter(obj, "value", 3.0)


def nested_attribute(patch):
    obj = Plain(inner=Plain(value=2.0))
    return lambda x: x * obj.inner.value, setter(obj.inner, "value", 3.0)


def attribute_by_method(patch):
    obj = Plain(value=2.0)
    return lambda x: obj.method(x), setter(obj, "value", 3.0)


def callable_object(patch):
    obj = Plain(value=2.0)
    return lambda x: obj(x), setter(obj, "value", 3.0)


def the_function_is_a_callable_object(patch):
    obj = Plain(value=2.0)
    return obj, setter(obj, "value", 3.0)


def the_function_is_a_method(patch):
    obj = Plain(value=2.0)
    return obj.method, setter(obj, "value", 3.0)


def attribute_by_property(patch):
    obj = Plain(value=2.0)
    return lambda x: x * obj.doubled, setter(obj, "value", 3.0)


def attribute_by_getattr(patch):
    obj = Plain(value=2.0)
    return lambda x: x * getattr(obj, "val" + "ue"), setter(obj, "value", 3.0)


def attribute_by_vars(patch):
    obj = Plain(value=2.0)
    return lambda x: x * vars(obj)["value"], setter(obj, "value", 3.0)


def attribute_by_mapped_getattr(patch):
    obj = Plain(value=2.0)
    return lambda x: x * next(map(getattr, [obj], ["val" + "ue"])), setter(obj, "value", 3.0)


def hasattr_asked(patch):
    obj = Plain(value=2.0)
    return lambda x: x * (2 if hasattr(obj, "extra") else 1), setter(obj, "extra", 3.0)


def attribute_that_was_missing(patch):
    obj = Plain(value=2.0)

    def f(x):
        try:
            return x * obj.extra
        except AttributeError:
            return x

    return f, setter(obj, "extra", 3.0)


def class_attribute(patch):
    obj = Plain(value=2.0)
    return lambda x: x * obj.shared, lambda: patch(Plain, "shared", 5.0)


def class_attribute_hidden_by_a_subclass(patch):
    obj = Derived(value=2.0)
    return lambda x: x * obj.shared, lambda: patch(Derived, "shared", 5.0)


def class_attribute_hidden_by_the_object(patch):
    obj = Plain(value=2.0)
    return lambda x: x * obj.shared, setter(obj, "shared", 5.0)


def method_replaced(patch):
    obj = Plain(value=2.0)
    return lambda x: obj.method(x), lambda: patch(Plain, "method", lambda self, x: x)


def operator_replaced(patch):
    obj = Plain(value=2.0)
    return lambda x: obj(x), lambda: patch(Plain, "__call__", lambda self, x: x)


def class_of_the_object_replaced(patch):
    obj = Plain(value=2.0)
    return lambda x: obj.method(x), setter(obj, "__class__", Derived)


def dict_of_the_object_replaced(patch):
    obj = Plain(value=2.0)
    return lambda x: obj.method(x), setter(obj, "__dict__", {"value": 3.0})


def slot(patch):
    obj = Slots()
    obj.value = 2.0
    return lambda x: x * obj.value, setter(obj, "value", 3.0)


def getattr_of_a_class(patch):
    obj = Fallback()
    return lambda x: x * obj.value, lambda: obj._known.update(value=3.0)


def dataclass(patch):
    obj = Data()
    return lambda x: x * obj.value, setter(obj, "value", 3.0)


def dataclass_made_in_the_call(patch):
    return lambda x: x * Data().value, setter(Data.__init__, "__defaults__", (3.0,))


def namespace(patch):
    obj = types.SimpleNamespace(value=2.0)
    return lambda x: x * obj.value, setter(obj, "value", 3.0)


def enum_member(patch):
    obj = Plain(mode=Mode.A)
    return lambda x: x * (2 if obj.mode is Mode.A else 3), setter(obj, "mode", Mode.B)


def a_store_that_left_the_same_value(patch):
    obj = Plain(mode="train")

    def f(x):
        obj.mode = "train"
        return x * 2

    return f, setter(obj, "mode", "eval")


def attribute_by_format(patch):
    obj = Plain(value=2.0)
    text = "{0.value}"
    return lambda x: x * float(text.format(obj)), setter(obj, "value", 3.0)


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


def class_of_a_class(patch):
    class Meta(type):
        k = 2.0

    class Owner(metaclass=Meta):
        pass

    return lambda x: x * Owner.k, lambda: setattr(Meta, "k", 3.0)


def base_of_a_class_replaced(patch):
    class Left:
        k = 2.0

    class Right:
        k = 3.0

    class Owner(Left):
        pass

    owner = Owner()
    return lambda x: x * owner.k, lambda: setattr(Owner, "__bases__", (Right,))


def inherited_attribute(patch):
    class Left:
        k = 2.0

    class Owner(Left):
        pass

    owner = Owner()
    return lambda x: x * owner.k, lambda: setattr(Left, "k", 3.0)


def super_method(patch):
    class Left:
        def f(self, x):
            return x * 2

    class Owner(Left):
        def f(self, x):
            return super().f(x)

    owner = Owner()
    return lambda x: owner.f(x), lambda: setattr(Left, "f", lambda self, x: x)


def pattern(patch):
    obj = Data(2.0)

    def f(x):
        match obj:
            case Data(value):
                return x * value

    return f, setter(obj, "value", 3.0)


def name_of_a_class(patch):
    class Owner:
        pass

    owner = Owner()
    f = lambda x: x * (2 if type(owner).__name__ == "Owner" else 3)  # noqa: E731
    return f, setter(Owner, "__name__", "Other")


def class_registered_with_another(patch):
    class Base(abc.ABC):  # noqa: B024
        pass

    class Other:
        pass

    other = Other()
    return lambda x: x * (2 if isinstance(other, Base) else 3), lambda: Base.register(Other)


def attribute_by_attrgetter(patch):
    obj = Plain(value=2.0)
    return lambda x: x * operator.attrgetter("value")(obj), setter(obj, "value", 3.0)


def truth_of_an_object(patch):
    class Owner:
        pass

    owner = Owner()
    return lambda x: x * (2 if owner else 3), setter(Owner, "__bool__", lambda self: False)
