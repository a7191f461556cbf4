"""The part of `Module` that finds its modules, parameters and buffers, in order and by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from oneflow_lite.errors import ModuleAttributeError
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

    def modules(self) -> Iterator[Module]:
        """Yield this module and all below it, each once."""
        for _, module in self.named_modules():
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
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, each once; what an optimizer takes."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the buffers with their dotted names; a shared one once by default."""
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def _named_members(
        self, kind: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        owners = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for owner_name, owner in owners:
            for name, member in owner.__dict__[kind].items():
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{owner_name}.{name}" if owner_name else name), member

    def get_submodule(self, target: str) -> Module:
        """Return the submodule of this dotted name; '' is the module itself."""
        module = cast("Module", self)
        for name in target.split(".") if target else ():
            found = getattr(module, name)
            if not isinstance(found, Traversal):
                raise ModuleAttributeError(f"'{name}' in '{target}' is not an nn.Module")
            module = cast("Module", found)
        return module

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter of this dotted name."""
        found = self._get_member(target)
        if not isinstance(found, Parameter):
            raise ModuleAttributeError(f"'{target}' is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer of this dotted name."""
        path, _, name = target.rpartition(".")
        found = self.get_submodule(path)._buffers.get(name)
        if found is None:
            raise ModuleAttributeError(f"'{target}' is not a buffer")
        return found

    def _get_member(self, target: str) -> Any:
        path, _, name = target.rpartition(".")
        return getattr(self.get_submodule(path), name)
