"""Modules that hold other modules or parameters by position or by name."""

from __future__ import annotations

import operator
import textwrap
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Self, overload

from oneflow_lite.errors import ArgumentError, ArgumentTypeError, IndexRangeError, bad_argument
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.tensor import Tensor


def _position(owner: object, index: Any, length: int, insert: bool = False) -> int:
    """Return an index counted from 0; `insert` allows the place after the last one."""
    position = operator.index(index)
    highest = length + 1 if insert else length
    if not -length <= position < highest:
        raise bad_argument(
            IndexRangeError,
            type(owner).__name__,
            "index",
            expected=f"{-length} to {highest - 1}",
            got=position,
            mend="count the entries with len()",
        )
    return position + length if position < 0 else position


class _Numbered(Module):
    """Submodules named '0', '1', ...: what Sequential and ModuleList have in common."""

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
        for module in _listed(self, "modules", modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before `index`; the ones behind it are renumbered."""
        before = list(self._modules.values())
        position = _position(self, index, len(self), insert=True)
        self.append(module)  # checks it
        self._renumber([*before[:position], module, *before[position:]])
        return self

    def pop(self, key: Any) -> Any:
        """Remove a module, or those of a slice, and return it."""
        module = self[key]
        del self[key]
        return module

    def __getitem__(self, index: Any) -> Any:
        return self._modules[self._name_at(index)]


class Sequential(_Numbered):
    """Calls its modules one after the other, each on the output of the one before.

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

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *other)


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

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._modules.keys()

    def values(self) -> Iterable[Any]:
        """Return the modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return pairs of name and module."""
        return self._modules.items()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules by name, replacing those whose name is there already."""
        pairs = modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules
        for pair in _listed(self, "modules", pairs):
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise bad_argument(
                    ArgumentError,
                    "ModuleDict",
                    "modules",
                    expected="pairs (name, module)",
                    got=repr(pair),
                    mend="pass a dict",
                )
            self[pair[0]] = pair[1]


class ParameterList(Module):
    """A list of parameters that are registered; tensors become parameters on the way in.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> weights = flow.nn.ParameterList([flow.ones(2), flow.ones(3)])
    >>> len(weights), weights[1].requires_grad, list(weights.state_dict())
    (2, True, ['0', '1'])
    """

    def __init__(self, values: Iterable[Tensor] | None = None) -> None:
        super().__init__()
        if values is not None:
            self.extend(values)

    @overload
    def __getitem__(self, index: int) -> Parameter: ...
    @overload
    def __getitem__(self, index: slice) -> ParameterList: ...

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._parameters[str(_position(self, index, len(self)))]

    def __setitem__(self, index: int, value: Tensor) -> None:
        self.register_parameter(str(_position(self, index, len(self))), _as_parameter(value))

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parameters.values())

    def __iadd__(self, values: Iterable[Tensor]) -> Self:
        return self.extend(values)

    def append(self, value: Tensor) -> Self:
        """Add a parameter at the end."""
        self.register_parameter(str(len(self)), _as_parameter(value))
        return self

    def extend(self, values: Iterable[Tensor]) -> Self:
        """Add parameters at the end."""
        for value in _listed(self, "values", values):
            self.append(value)
        return self

    def __repr__(self) -> str:
        lines = [
            f"({name}): Parameter containing: [{value.dtype} of size "
            f"{'x'.join(map(str, value.shape))}{_where(value)}]"
            for name, value in self.named_parameters()
        ]
        body = "".join(f"\n  {line}" for line in lines)
        return f"{self._get_name()}({body}\n)" if lines else f"{self._get_name()}()"


def _where(value: Tensor) -> str:
    return "" if value.device.type == "cpu" else f" ({value.device})"


def _as_parameter(value: Any) -> Parameter:
    return value if isinstance(value, Parameter) else Parameter(value)


def _listed(owner: object, argument: str, values: Any) -> list[Any]:
    if isinstance(values, Iterable) and not isinstance(values, (str, Tensor)):
        return list(values)
    raise bad_argument(
        ArgumentTypeError,
        type(owner).__name__,
        argument,
        expected="a list",
        got=type(values).__name__,
        mend="put the entries into a list",
    )
