"""The part of `Module` that finds its modules, parameters and buffers, in order and by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from oneflow_lite.errors import ArgumentError, ModuleAttributeError, arg_error
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.tensor import Tensor

if TYPE_CHECKING:
    from oneflow_lite.nn.module import Module


class Traversal:
    """Walks through a module and all below it; what occurs twice is yielded once."""

    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield this module and all below it, with dotted names; each once by default."""
        memo = set() if memo is None else memo
        module = cast("Module", self)
        if module in memo:
            return
        if remove_duplicate:
            memo.add(module)
        yield prefix, module
        for name, child in self._modules.items():
            if child is not None:
                below = f"{prefix}.{name}" if prefix else name
                yield from child.named_modules(memo, below, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yield this module and all below it, each once by default."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield the direct submodules with their names, each once."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """Yield the direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield the parameters with their dotted names; a shared one once by default."""
        return self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, each once; what an optimizer takes."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the buffers with their dotted names; a shared one once by default."""
        return self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        owners = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for owner_name, owner in owners:
            for name, member in get_members_fn(owner):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{owner_name}.{name}" if owner_name else name), member

    def get_submodule(self, target: str) -> Module:
        """Return the submodule of this dotted name; '' is the module itself.

        Raises
        ------
        ModuleAttributeError
            When a name on the way is no attribute, or no module.
        """
        module = cast("Module", self)
        for name in target.split(".") if target else ():
            module = module._get_module(name)
        return module

    def _get_module(self, name: str) -> Module:
        found = self._get_member(name)
        if not isinstance(found, Traversal):
            raise ModuleAttributeError(f"`{name}` is not an nn.Module")
        return cast("Module", found)

    def _get_member(self, name: str) -> Any:
        if not hasattr(self, name):
            raise ModuleAttributeError(f"{type(self).__name__} has no attribute `{name}`")
        return getattr(self, name)

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Set the submodule of this dotted name; what stands before the last dot is there.

        Parameters
        ----------
        target : str
            As "encoder.layer.0".
        module : Module
            What takes the place.
        strict : bool
            Whether there must be a submodule of this name already.

        Raises
        ------
        ModuleAttributeError
            When a name is missing, or something else than a module has it.
        ArgumentError
            When the name is empty or `module` is none.

        Examples
        --------
        >>> import oneflow_lite as flow
        >>> net = flow.nn.Sequential(flow.nn.Sequential(flow.nn.ReLU()))
        >>> net.set_submodule("0.0", flow.nn.Tanh())
        >>> net[0][0]
        Tanh()
        """
        if not target:
            raise arg_error(
                "set_submodule",
                "target",
                expected="the name of a submodule",
                got="''",
                hint="pass its path",
                kind=ArgumentError,
            )
        if not isinstance(module, Traversal):
            raise arg_error(
                "set_submodule",
                "module",
                expected="an nn.Module",
                got=type(module).__name__,
                hint="pass an instance",
                kind=ArgumentError,
            )
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            parent._get_module(name)
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter of this dotted name."""
        path, _, name = target.rpartition(".")
        found = self.get_submodule(path)._get_member(name)
        if not isinstance(found, Parameter):
            raise ModuleAttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer of this dotted name."""
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        found: Tensor = owner._get_member(name)
        if name not in owner._buffers:
            raise ModuleAttributeError(f"`{name}` is not a buffer")
        return found
