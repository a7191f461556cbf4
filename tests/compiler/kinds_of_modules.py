"""Classes of modules that users write, each in a way of its own. All compute `x * weight * scale`.

`KINDS` maps a name to what makes an instance. They stand at the top of a file, so that they pickle.
"""

from __future__ import annotations

import abc
import collections
import dataclasses
import typing

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.nn.utils import parametrize

KINDS: dict[str, typing.Callable[[], nn.Module]] = {}
T = typing.TypeVar("T")


def kind(cls):
    KINDS[cls.__name__] = cls
    return cls


@kind
class Plain(nn.Module):
    """Doubles, more or less."""

    scale = 2.0

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(flow.tensor([1.0, 2.0]))
        self.register_buffer("total", flow.zeros(2))

    def forward(self, x, times=1):
        return x * self.weight * self.scale * times

    def twice(self, x):
        return self(x) + self(x)

    def freeze(self):
        self.requires_grad_(False)
        return self


class WithKeywords(type(nn.Module)):
    def __new__(mcls, name, bases, members, *, size):
        return super().__new__(mcls, name, bases, members)

    def __init__(cls, name, bases, members, *, size):
        super().__init__(name, bases, members)
        cls.size = size

    def __call__(cls, *args):
        assert args == ("made",)
        return super().__call__()


class OwnMetaclass(Plain, metaclass=WithKeywords, size=2):
    pass


class NewArguments(Plain):
    def __new__(cls, size):
        assert size == 2
        return super().__new__(cls)

    def __init__(self, size):
        super().__init__()

    def __reduce__(self):
        return NewArguments, (2,), self.__dict__


@kind
class Slots(Plain):
    __slots__ = ("scale",)

    def __init__(self):
        super().__init__()
        self.scale = 2.0


class Registered(Plain):
    known: typing.ClassVar = {}

    def __init_subclass__(cls, key, **kwargs):
        super().__init_subclass__(**kwargs)
        assert key not in Registered.known
        Registered.known[key] = cls


@kind
class InRegistry(Registered, key="the only one"):
    pass


@kind
class OwnExplain(Plain):
    def explain(self):
        return "it doubles"


@kind
class OwnGetattr(Plain):
    def __getattr__(self, name):
        if name.startswith("weight_"):
            return self.weight
        return super().__getattr__(name)


@kind
class OwnGetattribute(Plain):
    def __getattribute__(self, name):
        if name == "scale":
            return 3.0
        return super().__getattribute__(name)


@kind
class OwnCall(Plain):
    def __call__(self, x, **kwargs):
        return super().__call__(x + 1, **kwargs) - 1


@kind
class OwnCallAlone(Plain):
    def __call__(self, x, times=1):
        return self.forward(x, times) + 1


@kind
class OwnSetattr(Plain):
    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        self.__dict__.setdefault("names", []).append(name)

    def __delattr__(self, name):
        super().__delattr__(name)
        self.names.append(f"no {name}")


@kind
class Properties(Plain):
    @property
    def scale(self):
        return self.__dict__.get("_scale", 2.0)

    @scale.setter
    def scale(self, value):
        self.__dict__["_scale"] = value

    @property
    def me(self):
        return self


@kind
@dataclasses.dataclass(eq=False)
class Data(Plain):
    scale: float = 2.0
    name: str = "data"

    def __post_init__(self):
        nn.Module.__init__(self)
        self.weight = nn.Parameter(flow.tensor([1.0, 2.0]))
        self.register_buffer("total", flow.zeros(2))


class Abstract(nn.Module, abc.ABC):
    @abc.abstractmethod
    def forward(self, x, times=1): ...


@kind
class Concrete(Abstract, Plain):
    def forward(self, x, times=1):
        return Plain.forward(self, x, times)


class GenericModule(Plain, typing.Generic[T]):
    pass


KINDS["GenericModule"] = GenericModule[int]


@kind
class Several(Plain):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Plain(), Plain()])

    def forward(self, x, times=1):
        for layer in self.layers:
            x = layer(x, times)
        return x

    def __len__(self):
        return len(self.layers)

    def __iter__(self):
        return iter(self.layers)

    def __getitem__(self, index):
        return self.layers[index]

    def __contains__(self, layer):
        return any(layer is each for each in self.layers)

    def __bool__(self):
        return False

    def __iadd__(self, layer):
        self.layers.append(layer)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.left = True


@kind
class AlsoADict(Plain, dict):
    def __hash__(self):
        return 1

    def __reduce__(self):
        return AlsoADict, (), self.__dict__


@kind
class Compared(Plain):
    def __eq__(self, other):
        return isinstance(other, Compared)

    def __hash__(self):
        return 7


@kind
class OwnCopies(Plain):
    def __copy__(self):
        return self.__deepcopy__({})

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        made.__dict__ = dict(self.__dict__)
        made._parameters = {"weight": nn.Parameter(self.weight.detach().clone())}
        return made

    def __getstate__(self):
        return {"state": {k: v for k, v in self.__dict__.items() if k != "note"}}

    def __setstate__(self, state):
        self.__dict__.update(state["state"])


class LazyScaling(nn.modules.lazy.LazyModuleMixin, Plain):
    cls_to_become = Plain

    def __init__(self):
        super().__init__()
        self.weight = nn.UninitializedParameter()

    def initialize_parameters(self, x, times=1):
        self.weight.materialize(x.shape)
        with flow.no_grad():
            self.weight.copy_(flow.tensor([1.0, 2.0]))


class Half(nn.Module):
    def forward(self, x):
        return x / 2


def parametrized():
    return parametrize.register_parametrization(Plain(), "weight", Half())


KINDS |= {
    "OwnMetaclass": lambda: OwnMetaclass("made"),
    "NewArguments": lambda: NewArguments(2),
    "Lazy": LazyScaling,
    "Parametrized": parametrized,
    "Sequential": lambda: nn.Sequential(collections.OrderedDict(first=Plain(), second=Plain())),
}
