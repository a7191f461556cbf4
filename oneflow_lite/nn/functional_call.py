"""A module called with other tensors in the place of its parameters and buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite.errors import ArgumentError, StateDictError, bad_argument
from oneflow_lite.nn.module import Module
from oneflow_lite.tensor import Tensor


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with tensors in the place of the parameters and buffers of these names.

    The module has its own again afterwards. A tensor for a parameter that is shared stands for it
    under all its names, unless `tie_weights` is False.

    Raises `StateDictError` for a name that the module lacks, or, with `strict`, one left out.

    >>> import oneflow_lite as flow
    >>> layer = flow.nn.Linear(1, 1)
    >>> given = {"weight": flow.tensor([[2.0]]), "bias": flow.tensor([1.0])}
    >>> flow.func.functional_call(layer, given, flow.tensor([3.0]))
    tensor([7.])
    """
    dicts = parameter_and_buffer_dicts
    given: dict[str, Tensor] = {}
    for each in [dicts] if isinstance(dicts, dict) else dicts:
        twice = given.keys() & each.keys()
        if twice:
            expected, mend = "each name in one dict", "leave one out"
            raise bad_argument(
                ArgumentError,
                "functional_call",
                "parameter_and_buffer_dicts",
                expected,
                sorted(twice),
                mend,
            )
        given.update(each)
    places: dict[str, tuple[dict[str, Any], str]] = {}
    for prefix, owner in module.named_modules(remove_duplicate=False):
        tables: tuple[dict[str, Any], ...] = (owner._parameters, owner._buffers)
        for table in tables:
            for name in table:
                places[f"{prefix}.{name}".lstrip(".")] = (table, name)
    unknown, missing = given.keys() - places.keys(), places.keys() - given.keys()
    if unknown or (strict and missing):
        what = f"names that it lacks: {sorted(unknown)}" if unknown else f"not {sorted(missing)}"
        raise StateDictError(
            f"functional_call(): expected names of {type(module).__name__}'s parameters and "
            f"buffers, got {what}; see named_parameters()"
        )
    if tie_weights:
        replaced = {id(places[name][0][places[name][1]]): given[name] for name in given}
        for name, (table, key) in places.items():
            if name not in given and table[key] is not None and id(table[key]) in replaced:
                given[name] = replaced[id(table[key])]
    before = [(*places[name], places[name][0][places[name][1]]) for name in given]
    try:
        for name, value in given.items():
            places[name][0][places[name][1]] = value
        positional = () if args is None else args if isinstance(args, tuple) else (args,)
        return module(*positional, **(kwargs or {}))
    finally:
        for table, key, value in before:
            table[key] = value
