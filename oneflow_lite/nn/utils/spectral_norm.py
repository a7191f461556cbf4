"""Weights divided by their largest singular value, computed before every forward."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import ArgumentError, HookError, arg_error
from oneflow_lite.nn import functional as F
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.parameter import Parameter
from oneflow_lite.nn.utils.layers import default_dim
from oneflow_lite.nn.utils.weight_norm import refuse_second, take_hook
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor

M = TypeVar("M", bound=Module)


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """Return a weight as a matrix whose rows belong to the dimension `dim`."""
    if dim:
        weight = weight.permute(dim, *[other for other in range(weight.ndim) if other != dim])
    return weight.reshape(weight.shape[0], -1)


def check_iterations(op: str, n_power_iterations: int) -> int:
    """Return a number of iterations; raise `ArgumentError` unless it is above 0."""
    if n_power_iterations > 0:
        return n_power_iterations
    raise arg_error(
        op,
        "n_power_iterations",
        expected="a number above 0",
        got=n_power_iterations,
        hint="1 is enough for training",
        kind=ArgumentError,
    )


def random_unit_vector(weight: Tensor, size: int, eps: float) -> Tensor:
    """Return a direction to begin the power iteration with."""
    return F.normalize(weight.new_empty(size).normal_(0, 1), dim=0, eps=eps)


class SpectralNorm:
    """The forward pre-hook that computes the weight of a module."""

    _version: ClassVar[int] = 1  # of the entries of the state dict

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        self.name = name
        self.dim = dim
        self.n_power_iterations = check_iterations("spectral_norm", n_power_iterations)
        self.eps = eps

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """Return weight / (u W v); the iteration writes u and v in place."""
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
                # The next forward writes them before this one may have run backward.
                u, v = u.clone(), v.clone()
        result: Tensor = weight / u.dot(matrix.mv(v))
        return result

    def remove(self, module: Module) -> None:
        """Make the weight, as it is divided now, a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        weight = self.compute_weight(module, do_power_iteration=module.training)
        setattr(module, self.name, weight)

    @staticmethod
    def apply(
        module: Module, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> SpectralNorm:
        """Keep a parameter under another name, and register the hooks."""
        refuse_second("spectral_norm", module, name, SpectralNorm)
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise arg_error(
                "spectral_norm",
                "name",
                expected="a parameter",
                got=f"{name!r}, which is None",
                hint="name another one",
                kind=ArgumentError,
            )
        with no_grad():
            height, width = as_matrix(weight, dim).shape
            u = random_unit_vector(weight, height, eps)
            v = random_unit_vector(weight, width, eps)
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook


class SpectralNormStateDictHook:
    """Notes in the metadata of a state dict that it has the vector v."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Module, state_dict: Any, prefix: str, local_metadata: Any) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = f"{self.fn.name}.version"
        if key in versions:
            raise HookError(
                f"state_dict(): the metadata has the key {key!r} already; two spectral_norm hooks "
                "are on one parameter"
            )
        versions[key] = self.fn._version


class SpectralNormLoadStateDictPreHook:
    """Finds the vector v for state dicts of PyTorch before 1.0, which had the divided weight."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        hook = self.fn
        version = local_metadata.get("spectral_norm", {}).get(f"{hook.name}.version")
        key = prefix + hook.name
        has_all = all(key + suffix in state_dict for suffix in ("_orig", "_u", "_v"))
        if has_all and key not in state_dict if version is None else version >= 1:
            return  # a new state dict, with or without metadata
        missing = [key + suffix for suffix in ("_orig", "", "_u") if key + suffix not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else ())
            return
        with no_grad():
            original, u = state_dict[f"{key}_orig"], state_dict[f"{key}_u"]
            sigma = (original / state_dict.pop(key)).mean()
            matrix = as_matrix(original, hook.dim)
            v = (matrix.t().mm(matrix).pinverse() @ matrix.t()).mv(u)  # so that W v is along u
            state_dict[f"{key}_v"] = v * (sigma / u.dot(matrix.mv(v)))


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """Divide a weight by its largest singular value before every forward.

    The weight counts as a matrix. Power iteration finds the value, from the vectors of the forward
    before; in evaluation mode the vectors stay. `name` becomes `name_orig`, beside the buffers
    `name_u` and `name_v`. `nn.utils.parametrizations.spectral_norm` does the same in a newer way.
    Miyato et al., Spectral Normalization for Generative Adversarial Networks, 2018.

    Parameters
    ----------
    module : Module
        Changed and returned.
    name : str
        The parameter.
    n_power_iterations : int
        For each forward.
    eps : float
        The least norm that a vector is divided by.
    dim : int, optional
        The dimension of the outputs: 1 for transposed convolutions, otherwise 0.

    Raises
    ------
    HookError
        When the parameter has spectral normalization already.
    ArgumentError
        When `n_power_iterations` is not positive, or the parameter is None.
    """
    dim = default_dim(module) if dim is None else dim
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Take spectral normalization off a module, whose weight is a parameter again.

    Raises
    ------
    ArgumentError
        When the parameter has no spectral normalization.
    """
    hook = take_hook("spectral_norm", module, name, SpectralNorm)
    hook.remove(module)
    for hooks in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for key in [key for key, other in hooks.items() if getattr(other, "fn", None) is hook]:
            del hooks[key]
    return module


guard_all(globals())
