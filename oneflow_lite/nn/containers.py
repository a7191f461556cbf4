"""Modules that hold modules or parameters by position or by name."""

from __future__ import annotations

import operator
import textwrap
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import islice
from typing import Any, Self

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    IndexRangeError,
    MissingMethodError,
    ModuleAttributeError,
    ModuleNameError,
    arg_error,
)
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.tensors.tensor import Tensor


def _position(owner: object, index: Any, length: int, insert: bool = False) -> int:
    """Return an index counted from 0; `insert` allows the place behind the end."""
    position = operator.index(index)
    highest = length + 1 if insert else length
    if not -length <= position < highest:
        raise arg_error(
            type(owner).__name__,
            "index",
            expected=f"{-length} to {highest - 1}",
            got=position,
            hint="count the entries with len()",
            kind=IndexRangeError,
        )
    return position + length if position < 0 else position


class _Numbered(Module):
    """The common base of Sequential and ModuleList: submodules named '0', '1', ..."""

    def _name_at(self, index: Any) -> str:
        position = _position(self, index, len(self))
        return next(islice(self._modules, position, None))

    def _renumber(self, modules: list[Module | None]) -> None:
        self._modules = {str(position): module for position, module in enumerate(modules)}

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index: Any) -> None:
        names = list(self._modules)
        chosen = names[index] if isinstance(index, slice) else [self._name_at(index)]
        self._renumber([module for name, module in self._modules.items() if name not in chosen])

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __iadd__(self, other: Iterable[Module]) -> Self:
        return self.extend(other)

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end."""
        given = _listed(self, "modules", modules)
        wrong = [each for each in given if each is not None and not isinstance(each, Module)]
        for module in wrong + given:  # a wrong entry raises before the first is added
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before `index`; modules behind it are renumbered."""
        before = list(self._modules.values())
        position = _position(self, index, len(self), insert=True)
        self.append(module)  # checks it
        self._renumber([*before[:position], module, *before[position:]])
        return self

    def pop(self, key: int | slice) -> Any:
        """Remove a module, or the modules of a slice, and return it."""
        module = self[key]
        del self[key]
        return module

    def __getitem__(self, index: Any) -> Any:
        return self._modules[self._name_at(index)]


class Sequential(_Numbered):
    """Calls its modules in turn, each on the output of the previous module.

    Parameters
    ----------
    *args : Module
        The modules, or one `OrderedDict` of modules by name.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.Sequential(flow.nn.Linear(2, 3), flow.nn.ReLU())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for position, module in enumerate(args):
                self.add_module(str(position), module)

    def forward(self, input: Any) -> Any:
        """Pass `input` through every module."""
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return super().__getitem__(index)

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add modules at the end."""
        return super().extend(sequential)

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *self._checked(other))

    def __iadd__(self, other: Iterable[Module]) -> Self:  # type: ignore[misc]
        return super().extend(self._checked(other))

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*self._repeated(other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        return super().extend(self._repeated(other)[len(self) :])

    def _checked(self, other: Any) -> Sequential:
        if isinstance(other, Sequential):
            return other
        got, hint = type(other).__name__, "use extend() for others"
        raise arg_error("Sequential.+", "other", "a Sequential", got, hint, ArgumentError)

    def _repeated(self, times: Any) -> list[Module]:
        if isinstance(times, int) and times > 0:
            return list(self) * times
        kind = ArgumentError if isinstance(times, int) else ArgumentTypeError
        expected, hint = "an int of at least 1", "say how often"
        raise arg_error("Sequential.*", "other", expected, repr(times), hint, kind)


class ModuleList(_Numbered):
    """A list of modules that are registered as submodules; it has no `forward`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> flow.nn.ModuleList([flow.nn.Linear(2, 2) for _ in range(3)])
    ModuleList(
      (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return super().__getitem__(index)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        if not len(self):
            return f"{self._get_name()}()"
        # Neighbours that look alike share one line: (0-2): 3 x Linear(...)
        runs: list[tuple[int, int, str]] = []
        for position, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], position, text)
            else:
                runs.append((position, position, text))
        lines = [
            f"({first}): {text}"
            if first == last
            else f"({first}-{last}): {last - first + 1} x {text}"
            for first, last, text in runs
        ]
        body = textwrap.indent("\n".join(lines), "  ")
        return f"{self._get_name()}(\n{body}\n)"


class ModuleDict(Module):
    """Modules by name that are registered as submodules; it has no `forward`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> activations = flow.nn.ModuleDict({"relu": flow.nn.ReLU(), "tanh": flow.nn.Tanh()})
    >>> activations["relu"], list(activations)
    (ReLU(), ['relu', 'tanh'])
    """

    def __init__(
        self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None
    ) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove a module and return it."""
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        """Return the names."""
        return self._modules.keys()

    def values(self) -> ValuesView[Any]:
        """Return the modules."""
        return self._modules.values()

    def items(self) -> ItemsView[str, Any]:
        """Return pairs of name and module."""
        return self._modules.items()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules by name; a module of the same name is replaced."""
        for name, module in _pairs(self, "modules", modules):
            self[name] = module


class _Values(Module):
    """The common base of ParameterList and ParameterDict: values that are kept as attributes."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise MissingMethodError(f"{type(self).__name__} is not called; use what it holds")

    def _named(self) -> Iterable[tuple[Any, Any]]:
        """Return all values with their names."""
        return ()

    def extra_repr(self) -> str:
        """Return a line for each value."""
        return "\n".join([f"  ({name}): {_described(value)}" for name, value in self._named()])


def _stored(value: Any) -> Any:
    """Return a value as it is kept: a tensor as a parameter."""
    plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
    return Parameter(value) if plain else value


def _described(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    where = f" (GPU {value.device.index})" if value.is_cuda else ""
    size = "x".join(map(str, value.shape))
    return f"Parameter containing: [{value.dtype} of size {size}{where}]"


class ParameterList(_Values):
    """A list of values, in which tensors become parameters and parameters are registered.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> weights = flow.nn.ParameterList([flow.ones(2), flow.ones(3)])
    >>> len(weights), weights[1].requires_grad, list(weights.state_dict())
    (2, True, ['0', '1'])
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, str(_position(self, index, len(self))))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(_position(self, index, len(self))), _stored(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, str(position)) for position in range(self._size))

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def append(self, value: Any) -> Self:
        """Add a value at the end."""
        setattr(self, str(self._size), _stored(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add values at the end."""
        for value in [_stored(value) for value in _listed(self, "values", values)]:
            self.append(value)
        return self

    def _named(self) -> Iterable[tuple[Any, Any]]:
        return enumerate(self)


class ParameterDict(_Values):
    """A dict of values, in which tensors become parameters and parameters are registered.

    A plain dict is taken in the order of its sorted names, any other source in its own order.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> parameters = flow.nn.ParameterDict({"scale": flow.ones(2), "note": "no tensor"})
    >>> list(parameters), list(parameters.state_dict())
    (['note', 'scale'], ['scale'])
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise ModuleAttributeError(f"'{type(self).__name__}' object has no entry {key!r}")
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            got, hint = type(key).__name__, "name it with a string"
            raise arg_error("ParameterDict", "key", "a str", got, hint, ArgumentTypeError)
        setattr(self, key, _stored(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __or__(self, other: Any) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: Any) -> ParameterDict:
        made = ParameterDict(other)
        made.update(self)
        return made

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """Return a new ParameterDict with the same values."""
        return ParameterDict(self.items())

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return a value; `default` is set first where the name is missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all values."""
        for key in list(self):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove a value and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the last value and return it with its name."""
        if not self._keys:
            raise ModuleNameError("ParameterDict.popitem(): there is nothing left; ask len() first")
        key = next(reversed(self))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, or `default` where the name is missing."""
        return getattr(self, key) if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a new ParameterDict with `default` under every name."""
        return ParameterDict([(key, default) for key in keys])

    def keys(self) -> KeysView[str]:
        """Return the names."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Yield pairs of name and value."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """Yield the values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add values by name; a value of the same name is replaced."""
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            parameters = sorted(parameters.items(), key=operator.itemgetter(0))
        for key, value in _pairs(self, "parameters", parameters):
            self[key] = value

    def _named(self) -> Iterable[tuple[Any, Any]]:
        return self.items()


def _pairs(owner: object, argument: str, values: Any) -> list[tuple[Any, Any]]:
    """Return the pairs (name, value) of a mapping, a dict of ours, or an iterable of pairs."""
    given = values.items() if isinstance(values, (Mapping, ModuleDict, ParameterDict)) else values
    pairs = _listed(owner, argument, given)
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            kind = ArgumentError if isinstance(pair, Iterable) else ArgumentTypeError
            expected, hint = "pairs (name, value)", "pass a dict"
            raise arg_error(type(owner).__name__, argument, expected, repr(pair), hint, kind)
    return pairs


def _listed(owner: object, argument: str, values: Any) -> list[Any]:
    if isinstance(values, Iterable) and not isinstance(values, (str, Tensor)):
        return list(values)
    raise arg_error(
        type(owner).__name__,
        argument,
        expected="a list",
        got=type(values).__name__,
        hint="put the entries into a list",
        kind=ArgumentTypeError,
    )


guard_all(globals())
