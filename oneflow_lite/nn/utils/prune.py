"""Parameters with elements that are kept zero by a mask, applied before every forward."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, TypeVar

from oneflow_lite.arrays.refusals import guard_all
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DimError,
    FlowError,
    ModuleAttributeError,
    OptionError,
    arg_error,
)
from oneflow_lite.functors.creation import ones_like, zeros_like
from oneflow_lite.functors.distances import linalg_vector_norm as vector_norm
from oneflow_lite.functors.random import rand, rand_like
from oneflow_lite.functors.sorting import kthvalue, topk
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.utils.convert_parameters import parameters_to_vector
from oneflow_lite.ops.exposure import expose
from oneflow_lite.tensors.mode import no_grad
from oneflow_lite.tensors.tensor import Tensor

expose(globals())

M = TypeVar("M", bound=Module)


class BasePruningMethod(ABC):
    """The forward pre-hook that masks a parameter; a subclass defines `compute_mask`.

    A subclass also has `PRUNING_TYPE`: 'unstructured' when it looks at elements, 'structured' when
    at slices along its `dim`, 'global' when at the whole tensor. The type decides which part of a
    tensor the method gets to see after an earlier method has pruned it.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> from oneflow_lite.nn.utils import prune
    >>> class EverySecond(prune.BasePruningMethod):
    ...     PRUNING_TYPE = "unstructured"
    ...
    ...     def compute_mask(self, t, default_mask):
    ...         mask = default_mask.clone()
    ...         mask.view(-1)[::2] = 0
    ...         return mask
    >>> layer = flow.nn.Linear(2, 2)
    >>> method = EverySecond.apply(layer, "bias")
    >>> layer.bias_mask, (layer.bias == 0).tolist()
    (tensor([0., 1.]), [True, False])
    """

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask for a tensor that is multiplied by `default_mask` already."""

    def apply_mask(self, module: Module) -> Tensor:
        """Return the masked parameter."""
        original = getattr(module, f"{self._tensor_name}_orig")
        mask = getattr(module, f"{self._tensor_name}_mask")
        result: Tensor = mask.to(original.dtype) * original
        return result

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> BasePruningMethod:
        """Prune a parameter, on top of earlier pruning; return the hook.

        `name` becomes `name_orig`, beside the buffer `name_mask`.

        Parameters
        ----------
        module : Module
            Changed.
        name : str
            The parameter.
        *args, **kwargs
            Of the method's class.
        importance_scores : Tensor, optional
            Looked at in the place of the parameter; of its shape.
        """
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        keys = [key for key, hook in module._forward_pre_hooks.items() if _prunes(hook, name)]
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        _check_scores("importance_scores", scores, original)
        before: Any = module._forward_pre_hooks[keys[-1]] if keys else None
        if before is not None:
            container = before
            if not isinstance(before, PruningContainer):
                container = PruningContainer(before)
            # A new container, so that the module stays as it is when the method raises.
            container = container._with(method)
            method, default = container, getattr(module, f"{name}_mask").detach().clone()
        else:
            default = ones_like(original)
        with no_grad():
            mask = method.compute_mask(scores.detach(), default_mask=default)
        if before is None:
            del module._parameters[name]
            module.register_parameter(f"{name}_orig", original)
        else:
            del module._forward_pre_hooks[keys[-1]]
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self,
        t: Tensor,
        default_mask: Tensor | None = None,
        importance_scores: Tensor | None = None,
    ) -> Tensor:
        """Return a tensor with elements set to zero, without any module."""
        scores = t if importance_scores is None else importance_scores
        _check_scores("importance_scores", scores, t)
        mask = ones_like(t) if default_mask is None else default_mask
        with no_grad():
            mask = self.compute_mask(scores.detach(), default_mask=mask)
        return t * mask

    def remove(self, module: Module) -> None:
        """Make the parameter, with its zeros, an ordinary parameter again."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original: Any = module._parameters[f"{name}_orig"]
        original.data = weight.data
        del module._parameters[f"{name}_orig"], module._buffers[f"{name}_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods for a parameter; each prunes the elements that earlier methods left."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add a method for the same parameter.

        Raises
        ------
        ArgumentTypeError
            When it is no pruning method.
        ArgumentError
            When it is for another parameter.
        """
        op = "add_pruning_method"
        if not isinstance(method, BasePruningMethod):
            got = type(method).__name__
            raise _option_error(
                op, "method", "a pruning method", got, "make one", ArgumentTypeError
            )
        if method._tensor_name != self._tensor_name:
            expected = f"a method for the parameter {self._tensor_name!r}"
            raise _option_error(
                op, "method", expected, repr(method._tensor_name), "apply it by itself"
            )
        self._pruning_methods += (method,)

    def _with(self, method: BasePruningMethod) -> PruningContainer:
        return PruningContainer(*self, method)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return `default_mask`, from which the last method has pruned more."""
        method: Any = self._pruning_methods[-1]
        part: Any
        if method.PRUNING_TYPE == "unstructured":
            part = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise ModuleAttributeError(
                    f"{type(method).__name__}: a pruning method of type 'structured' has an "
                    "attribute dim; set it in __init__"
                )
            dim = method.dim + t.ndim if method.dim < 0 else method.dim
            _check_dim(t, dim)
            others = [other for other in range(t.ndim) if other != dim]
            part = (*[slice(None)] * dim, default_mask.sum(others) != 0)
        elif method.PRUNING_TYPE == "global":
            part = ...
        else:
            raise _option_error(
                type(method).__name__,
                "PRUNING_TYPE",
                "'unstructured', 'structured' or 'global'",
                repr(method.PRUNING_TYPE),
                "set it in the class",
            )
        mask = default_mask.to(t.dtype).clone()
        mask[part] = method.compute_mask(t[part], default_mask=default_mask[part]).to(t.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing, and makes parameter and mask as every method does."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the default mask."""
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> BasePruningMethod:  # type: ignore[override]
        """Register the hook and return it."""
        return super().apply(module, name)


class RandomUnstructured(BasePruningMethod):
    """Prunes elements chosen at random."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        self.amount = _check_amount(amount)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask without as many elements."""
        return _without_least(self.amount, t, default_mask, lambda: -rand_like(t))

    @classmethod
    def apply(cls, module: Module, name: str, amount: float) -> BasePruningMethod:  # type: ignore[override]
        """Register the hook and return it."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(BasePruningMethod):
    """Prunes the elements of the smallest absolute value."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        self.amount = _check_amount(amount)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask without as many elements."""
        return _without_least(self.amount, t, default_mask, t.abs)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: float, importance_scores: Tensor | None = None
    ) -> BasePruningMethod:
        """Register the hook and return it."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class RandomStructured(BasePruningMethod):
    """Prunes slices along a dimension, chosen at random."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        self.amount, self.dim = _check_amount(amount), dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask without as many slices."""
        size, count = _slices(t, self.dim, self.amount)
        if not count:
            return default_mask
        drawn = rand(size)
        kept = drawn > kthvalue(drawn, count)[0]
        return _only(t, self.dim, kept.to(t.device), default_mask)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: float, dim: int = -1
    ) -> BasePruningMethod:
        """Register the hook and return it."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(BasePruningMethod):
    """Prunes the slices along a dimension that have the smallest norm of order n."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: float | str, dim: int = -1) -> None:
        self.amount, self.n, self.dim = _check_amount(amount), n, dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask without as many slices."""
        size, count = _slices(t, self.dim, self.amount)
        if not count:
            return default_mask
        others = tuple(other for other in range(t.ndim) if other != self.dim % t.ndim)
        norms = _norm(t, self.n, others)
        return _only(t, self.dim, topk(norms, size - count)[1], default_mask)

    @classmethod
    def apply(  # type: ignore[override]
        cls,
        module: Module,
        name: str,
        amount: float,
        n: float | str,
        dim: int,
        importance_scores: Tensor | None = None,
    ) -> BasePruningMethod:
        """Register the hook and return it."""
        scores = importance_scores
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=scores)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the product of both masks."""
        _check_scores("mask", self.mask, default_mask)
        return default_mask * self.mask.to(default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor) -> BasePruningMethod:  # type: ignore[override]
        """Register the hook and return it."""
        return super().apply(module, name, mask=mask)


def identity(module: M, name: str) -> M:
    """Give a parameter a mask of ones; return the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: M, name: str, amount: float) -> M:
    """Prune elements of a parameter that are chosen at random; return the module.

    Parameters
    ----------
    module : Module
        Changed, and returned.
    name : str
        The parameter.
    amount : int or float
        The number of elements to prune of the elements left, or as a float their share.
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: M, name: str, amount: float, importance_scores: Tensor | None = None
) -> M:
    """Prune the elements of a parameter that are smallest in absolute value; return the module.

    The parameters are those of `random_unstructured`; `importance_scores`, of the parameter's
    shape, is looked at in its place.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> from oneflow_lite.nn.utils import prune
    >>> layer = prune.l1_unstructured(flow.nn.Linear(4, 2), "weight", amount=3)
    >>> int((layer.weight == 0).sum()), list(layer.state_dict())
    (3, ['bias', 'weight_orig', 'weight_mask'])
    >>> list(prune.remove(layer, "weight").state_dict())
    ['bias', 'weight']
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: M, name: str, amount: float, dim: int) -> M:
    """Prune slices along a dimension that are chosen at random; return the module.

    The parameters are those of `random_unstructured`; `amount` counts slices.
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: M,
    name: str,
    amount: float,
    n: float | str,
    dim: int,
    importance_scores: Tensor | None = None,
) -> M:
    """Prune the slices along a dimension that have the smallest norm of order n; return the module.

    `amount` counts slices. `n` is a number, infinity, or for matrices as slices 'fro' or 'nuc'.
    """
    scores = importance_scores
    LnStructured.apply(module, name, amount, n, dim, importance_scores=scores)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune elements of several parameters, ranked together in a single vector.

    Parameters
    ----------
    parameters : iterable of (Module, str)
        The modules, and the names of their parameters.
    pruning_method : class
        A method whose `PRUNING_TYPE` is 'unstructured'.
    importance_scores : dict, optional
        By (module, name), the tensor that is looked at in the place of the parameter.
    **kwargs
        Of the method's class, as `amount`.

    Raises
    ------
    ArgumentTypeError
        When the parameters are no pairs, the method is of another type, or the scores no dict.
    """
    op = "global_unstructured"
    if not isinstance(parameters, Iterable):
        got = type(parameters).__name__
        raise _option_error(
            op, "parameters", "pairs (module, name)", got, "list them", ArgumentTypeError
        )
    pairs = list(parameters)
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        expected, got = "a dict by (module, name)", type(scores).__name__
        raise _option_error(
            op, "importance_scores", expected, got, "pass a dict", ArgumentTypeError
        )
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        expected, got = "a method of type 'unstructured'", repr(method.PRUNING_TYPE)
        raise _option_error(
            op, "pruning_method", expected, got, "prune one by one", ArgumentTypeError
        )
    tensors = [getattr(module, name) for module, name in pairs]
    for pair, tensor in zip(pairs, tensors, strict=True):
        _check_scores("importance_scores", scores.get(pair, tensor), tensor)
    masks = [getattr(module, f"{name}_mask", None) for module, name in pairs]
    method._tensor_name = "all"
    with no_grad():
        joined = parameters_to_vector(
            [scores.get(pair, tensor) for pair, tensor in zip(pairs, tensors, strict=True)]
        )
        before = parameters_to_vector(
            [ones_like(t) if m is None else m for t, m in zip(tensors, masks, strict=True)]
        )
        final = PruningContainer(method).compute_mask(joined.detach(), before)
    start = 0
    for (module, name), tensor in zip(pairs, tensors, strict=True):
        end = start + tensor.numel()
        custom_from_mask(module, name, mask=final[start:end].view_as(tensor))
        start = end


def custom_from_mask(module: M, name: str, mask: Tensor) -> M:
    """Prune a parameter by a mask of its shape; return the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: M, name: str) -> M:
    """Make a pruned parameter, with its zeros, an ordinary parameter again; return the module.

    Raises
    ------
    ArgumentError
        When it is not pruned.
    """
    for key, hook in module._forward_pre_hooks.items():
        if _prunes(hook, name):
            hook.remove(module)  # type: ignore[attr-defined]
            del module._forward_pre_hooks[key]
            return module
    got = f"{name!r} of {module._get_name()}"
    raise _option_error("prune.remove", "name", "a pruned parameter", got, "see is_pruned()")


def is_pruned(module: Module) -> bool:
    """Return whether the module, or a module below it, has a pruned parameter."""
    hooks = (hook for below in module.modules() for hook in below._forward_pre_hooks.values())
    return any(isinstance(hook, BasePruningMethod) for hook in hooks)


def _prunes(hook: Any, name: str) -> bool:
    return isinstance(hook, BasePruningMethod) and hook._tensor_name == name


def _option_error(
    op: str,
    argument: str,
    expected: str,
    got: Any,
    hint: str,
    kind: type[FlowError] = ArgumentError,
) -> FlowError:
    return arg_error(op, argument, expected, got, hint, kind)


def _check_amount(amount: Any) -> Any:
    number: Any = amount
    hint = "give a number of elements, or a share of them"
    if not isinstance(amount, numbers.Real):
        got = repr(amount)
        raise _option_error("prune", "amount", "an int or a float", got, hint, ArgumentTypeError)
    if number < 0 or (not isinstance(amount, numbers.Integral) and number > 1):
        raise _option_error(
            "prune", "amount", "an int of at least 0, or a float up to 1", amount, hint
        )
    return amount


def _count(amount: Any, size: int) -> int:
    """Return the number of elements or slices to prune, out of `size`."""
    count = int(amount) if isinstance(amount, numbers.Integral) else round(amount * size)
    if count > size:
        raise _option_error(
            "prune", "amount", f"at most {size}, what there is to prune", amount, "less"
        )
    return count


def _check_scores(argument: str, scores: Tensor, tensor: Tensor) -> None:
    if scores.shape != tensor.shape:
        expected = f"shape {tuple(tensor.shape)}, that of the parameter"
        got = f"shape {tuple(scores.shape)}"
        raise _option_error(
            "prune", argument, expected, got, "give one for each element", OptionError
        )


def _check_dim(t: Tensor, dim: int) -> None:
    if not -t.ndim <= dim < t.ndim:
        expected = f"{-t.ndim} to {t.ndim - 1}"
        raise _option_error(
            "prune", "dim", expected, dim, "name a dimension of the tensor", DimError
        )


def _slices(t: Tensor, dim: int, amount: Any) -> tuple[int, int]:
    """Return the number of slices along a dimension, and the number to prune."""
    if t.ndim < 2:
        got = f"shape {tuple(t.shape)}"
        raise _option_error("prune", "t", "at least 2 dimensions", got, "prune it unstructured")
    _check_dim(t, dim)
    return t.shape[dim], _count(amount, t.shape[dim])


def _without_least(amount: Any, t: Tensor, default_mask: Tensor, scores: Any) -> Tensor:
    """Return the mask without the elements of the least scores.

    Scores are computed only when an element is to go, so that the generator stays untouched.
    """
    count = _count(amount, t.numel())
    mask = default_mask.clone()
    if count:
        mask.view(-1)[topk(scores().reshape(-1), count, largest=False)[1]] = 0
    return mask


def _only(t: Tensor, dim: int, kept: Tensor, default_mask: Tensor) -> Tensor:
    """Return the mask with only the slices that are kept."""
    mask: Tensor = zeros_like(t)
    mask[(*[slice(None)] * (dim % t.ndim), kept)] = 1
    mask *= default_mask.to(mask.dtype)
    return mask


def _norm(t: Tensor, n: Any, others: tuple[int, ...]) -> Tensor:
    """Return the norms of the slices."""
    if isinstance(n, str):
        result: Tensor = t.norm(n, dim=others)
        return result
    return vector_norm(t, n, dim=others)


guard_all(globals())
