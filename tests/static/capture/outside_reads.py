"""What functions that read from outside have in common, and how they are found.

Such a function takes `patch`, which sets something and takes it back after the test. It returns a
function of one tensor, and a function that changes what that reads.
"""

import collections
import inspect
import types

from oneflow_lite import nn

config = types.ModuleType("users_config")
config.rate = 0.5
Pair = collections.namedtuple("Pair", "a b")


def reads_of(module):
    """Return those functions that a module defines."""
    functions = [f for f in vars(module).values() if inspect.isfunction(f)]
    return [f for f in functions if inspect.getfullargspec(f).args == ["patch"]]


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


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.drop = nn.Dropout(0.0)
        self.scale = 1.0

    def forward(self, x):
        return self.drop(self.linear(x)) * self.scale


def setter(target, name, value):
    return lambda: setattr(target, name, value)
