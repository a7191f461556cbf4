"""Weights in terms of their direction and their length, computed before every forward."""

from __future__ import annotations

from typing import Any, TypeVar

from oneflow_lite.arrays.refusals import guard_all, guarded
from oneflow_lite.errors import ArgumentError, HookError, arg_error
from oneflow_lite.functors.declaring.checks import check_tensor
from oneflow_lite.functors.distances import linalg_vector_norm as vector_norm
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.tensor import Tensor

M = TypeVar("M", bound=Module)


@guarded
def norm_except_dim(v: Tensor, pow: float = 2, dim: int = 0) -> Tensor:
    """Return the norm over all dimensions except `dim`, which keeps its place; for -1 over all.

    >>> import oneflow_lite as flow
    >>> flow.norm_except_dim(flow.ones(2, 4)).tolist()
    [[2.0], [2.0]]
    """
    if dim == -1:
        return vector_norm(v, pow)
    others = tuple(other for other in range(v.ndim) if other != dim % v.ndim)
    return vector_norm(v, pow, dim=others, keepdim=True) if others else v.abs()


def normed(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """Return v with the length g: g v / |v|."""
    return v * (g / norm_except_dim(v, 2, dim))


class WeightNorm:
    """The forward pre-hook that computes the weight of a module from its length and direction."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """Return g v / |v|."""
        v, g = getattr(module, f"{self.name}_v"), getattr(module, f"{self.name}_g")
        return normed(v, g, self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Replace a parameter by its length and direction, and register the hook."""
        warn_caller(
            "nn.utils.weight_norm is now nn.utils.parametrizations.weight_norm", FutureWarning
        )
        refuse_second("weight_norm", module, name, WeightNorm)
        hook = WeightNorm(name, dim)
        weight = check_tensor("weight_norm", name, getattr(module, name))
        length = norm_except_dim(weight.detach(), 2, hook.dim)
        del module._parameters[name]
        module.register_parameter(f"{name}_g", Parameter(length))
        module.register_parameter(f"{name}_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[f"{self.name}_g"], module._parameters[f"{self.name}_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Compute a weight as g v / |v| before every forward, from parameters of their own.

    `name` becomes `name_g`, the lengths over all dimensions but `dim` (one length for None), and
    `name_v`, the directions. `nn.utils.parametrizations.weight_norm` does the same in a newer way.
    Salimans and Kingma, Weight Normalization, 2016.

    Raises
    ------
    HookError
        When the parameter has weight normalization already.

    Warns
    -----
    FutureWarning
        On each call: `parametrizations.weight_norm` is the newer way.
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Take weight normalization off a module, whose weight is a parameter again.

    Raises
    ------
    ArgumentError
        When the parameter has no weight normalization.
    """
    take_hook("weight_norm", module, name, WeightNorm).remove(module)
    return module


def refuse_second(op: str, module: Module, name: str, kind: type) -> None:
    """Raise `HookError` when a parameter has a hook of this kind already."""
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, kind) and hook.name == name:  # type: ignore[attr-defined]
            raise HookError(
                f"{op}(): the parameter '{name}' has {op} already; take it off with remove_{op}() "
                "first"
            )


def take_hook(op: str, module: Module, name: str, kind: type) -> Any:
    """Remove and return the hook of this kind for a parameter."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and hook.name == name:  # type: ignore[attr-defined]
            del module._forward_pre_hooks[key]
            return hook
    raise arg_error(
        f"remove_{op}",
        "name",
        expected=f"a parameter with {op}",
        got=f"{name!r} of {module._get_name()}",
        hint=f"only what {op}() was applied to has it",
        kind=ArgumentError,
    )


guard_all(globals())
