"""A module called with given tensors in the place of its parameters and buffers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oneflow_lite.arrays.refusals import guard_all, guarded
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    ModuleNameError,
    StateDictError,
    arg_error,
)
from oneflow_lite.nn.module import Module
from oneflow_lite.tensors.caller_warnings import warn_caller
from oneflow_lite.tensors.tensor import Tensor

_MISSING: Any = object()


@guarded
def call_with(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with these tensors in the places of its parameters and buffers.

    This is PyTorch's `torch.func.functional_call`. The module is afterwards as it was; gradients
    flow to the tensors that were given.

    Parameters
    ----------
    module : Module
        The module to call.
    parameter_and_buffer_dicts : dict of str to Tensor, or a sequence of such dicts
        By the names of `named_parameters()` and `named_buffers()`; a name that is not mentioned
        keeps the module's own tensor.
    args : tuple or one argument, optional
        Of the call.
    kwargs : dict, optional
        Of the call.
    tie_weights : bool
        Whether a value for one name of a shared tensor is taken for its other names, too.
    strict : bool
        Whether a missing or unexpected name is an error.

    Raises
    ------
    ArgumentError
        When a name stands in two of the dicts, or two values are given for a shared tensor.
    ArgumentTypeError
        When a value is no tensor, or the dicts are no mappings.
    StateDictError
        With `strict`, for missing and unexpected names.

    Notes
    -----
    A buffer that the call replaced, rather than wrote, is found in the dict afterwards.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> from oneflow_lite.nn.utils.stateless import call_with
    >>> layer = flow.nn.Linear(1, 1, bias=False)
    >>> weight = flow.tensor([[3.0]], requires_grad=True)
    >>> call_with(layer, {"weight": weight}, flow.tensor([[2.0]])).sum().backward()
    >>> weight.grad, layer.weight.grad
    (tensor([[2.]]), None)
    """
    tensors: Any = parameter_and_buffer_dicts
    if not isinstance(tensors, Mapping):
        tensors = _joined(parameter_and_buffer_dicts)
    given = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrized(module, tensors, tie_weights, strict):
        return module(*given, **(kwargs or {}))


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module as `torch.func.functional_call` does, from its old place, with a warning."""
    warn_caller("nn.utils.stateless.functional_call is now func.functional_call", FutureWarning)
    options = {"tie_weights": tie_weights, "strict": strict}
    return call_with(module, parameters_and_buffers, args, kwargs, **options)


def _joined(dicts: Any) -> dict[str, Tensor]:
    op, argument = "functional_call", "parameter_and_buffer_dicts"
    if not isinstance(dicts, Sequence) or not all(isinstance(each, Mapping) for each in dicts):
        raise arg_error(
            op,
            argument,
            expected="a dict of tensors by name, or a sequence of such dicts",
            got=type(dicts).__name__,
            hint="pass dict(module.named_parameters())",
            kind=ArgumentTypeError,
        )
    names = [name for each in dicts for name in each]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise arg_error(
            op,
            argument,
            expected="every name in one dict",
            got=f"{', '.join(repeated)} in several",
            hint="take it out of all but one",
            kind=ArgumentError,
        )
    return {name: value for each in dicts for name, value in each.items()}


@contextlib.contextmanager
def _reparametrized(
    module: Module, tensors: dict[str, Tensor], tie_weights: bool, strict: bool
) -> Iterator[None]:
    members = [
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ]
    wanted = _with_tied(members, tensors) if tie_weights else tensors
    if strict:
        _check_names(module, wanted, {name for name, _ in members})
    places: dict[str, tuple[Module, str]] = {}  # one for all names of a submodule
    before: dict[tuple[Module, str], Any] = {}
    put: dict[tuple[Module, str], Any] = {}
    try:
        for name, value in wanted.items():
            place = _place(module, name, value)
            # The first is the module's own: under another name lies what was put there since.
            before.setdefault(place, _swap(place, value))
            places[name], put[place] = place, value
        yield
    finally:
        left = {place: _swap(place, value) for place, value in before.items()}
        for name in tensors.keys() & places.keys():
            found = left[places[name]]
            # A buffer that the call replaced would be lost with the swap.
            if found is not _MISSING and found is not put[places[name]]:
                tensors[name] = found


def _check_names(module: Module, tensors: Mapping[str, Tensor], known: set[str]) -> None:
    problems = [
        f"{what} key(s): {', '.join(map(repr, sorted(names)))}."
        for what, names in (("Unexpected", {*tensors} - known), ("Missing", known - {*tensors}))
        if names
    ]
    if problems:
        raise StateDictError(
            f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(problems)
        )


def _with_tied(
    members: list[tuple[str, Tensor]], tensors: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Return the tensors, a shared tensor under all of its names in the module."""
    names_of: dict[int, list[str]] = {}
    for name, tensor in members:
        names_of.setdefault(id(tensor), []).append(name)
    tied = dict(tensors)
    for names in names_of.values():
        given = [name for name in names if name in tensors]
        if not given:
            continue
        if any(tensors[name] is not tensors[given[0]] for name in given[1:]):
            raise arg_error(
                "functional_call",
                "parameters_and_buffers",
                expected=f"one value for {', '.join(sorted(names))}, which are one tensor",
                got=f"{len(given)}",
                hint="pass tie_weights=False to untie them",
                kind=ArgumentError,
            )
        tied.update(dict.fromkeys(names, tensors[given[0]]))
    return tied


def _place(module: Module, name: Any, value: Any) -> tuple[Module, str]:
    """Return the module that has a tensor of this name, and its name there."""
    op, kind = "functional_call", ArgumentTypeError
    if not isinstance(name, str) or name.endswith(".") or not name:
        expected, hint = "names of tensors", "take them from named_parameters()"
        raise arg_error(
            op, "parameter_and_buffer_dicts", expected, repr(name), hint, ModuleNameError
        )
    if value is not None and not isinstance(value, Tensor):
        hint = "wrap the value with flow.tensor(...)"
        raise arg_error(op, name, "a Tensor", type(value).__name__, hint, kind)
    path, _, last = name.rpartition(".")
    owner = module.get_submodule(path)
    present = getattr(owner, last, None)
    if present is not None and not isinstance(present, Tensor):
        got = f"a {type(present).__name__} under it in the module"
        raise arg_error(op, name, "the name of a tensor", got, "name a parameter or buffer", kind)
    return owner, last


def _swap(place: tuple[Module, str], value: Any) -> Any:
    """Put a tensor in its place, or remove it for `_MISSING`; return the value before."""
    owner, last = place
    kinds: tuple[dict[str, Any], ...] = (owner._parameters, owner._buffers)
    for members in kinds:
        if last in members:  # past the checks of __setattr__: it need not be a Parameter
            before = members[last]
            if value is _MISSING:
                del members[last]
            else:
                members[last] = value
            return before
    before = getattr(owner, last, _MISSING)
    if value is not _MISSING:
        setattr(owner, last, value)
    elif before is not _MISSING:
        delattr(owner, last)
    return before


guard_all(globals())
