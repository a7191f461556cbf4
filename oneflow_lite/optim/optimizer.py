"""Optimizer: parameter groups, state, and the walk over parameters that ends in update ops.

Every update is one registered op for each parameter. What may change between steps (lr, momentum,
the step count) reaches it as tensors, and the state is there before the first update, so that a
step is the same list of ops every time.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from oneflow_lite.autograd.mode import enable_grad, local, no_grad
from oneflow_lite.device import Device, on_device
from oneflow_lite.dtype import float32, float64
from oneflow_lite.errors import ArgumentError, ArgumentTypeError, FlowError, bad_argument
from oneflow_lite.nn.parameter import clear_grad
from oneflow_lite.tensor import Tensor, make_tensor

Group = dict[str, Any]
_TYPE = ArgumentTypeError
Work = tuple[Group, list[Any], Tensor, Tensor, dict[str, Any]]


class Optimizer:
    """Base class of the optimizers: a subclass defines `step`.

    Parameters
    ----------
    params : iterable or None
        Of tensors, of pairs (name, tensor), or of dicts with the key `params` and options that
        differ from the defaults. With None, `minimize` takes the parameters of the Program that
        is captured.
    defaults : dict
        The options of groups that do not set their own.

    Attributes
    ----------
    param_groups : list of dict
        The options of each group, with its tensors under `params`; read at every step.
    state : dict
        What is kept for each parameter.
    """

    def __init__(self, params: Any, defaults: Group) -> None:
        self.defaults = defaults
        self.param_groups: list[Group] = []
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.steps_in_programs = 0  # runs of Programs that take the step, as `minimize` captured it
        self._scalars: dict[tuple[int, Device], tuple[tuple[Any, ...], list[Any]]] = {}
        self._check_options(defaults)
        self._takes_program = params is None
        if params is None:
            self.add_param_group({"params": []})
            return
        if isinstance(params, (Tensor, dict)) or not isinstance(params, Iterable):
            raise bad_argument(
                ArgumentTypeError,
                type(self).__name__,
                "params",
                expected="an iterable of tensors or of dicts",
                got=type(params).__name__,
                mend="pass module.parameters() or [tensor]",
            )
        listed = list(params)
        if not listed:
            raise bad_argument(
                ArgumentError,
                type(self).__name__,
                "params",
                expected="at least one parameter",
                got="none",
                mend="pass module.parameters(), and not an exhausted iterator",
            )
        groups = listed if isinstance(listed[0], dict) else [{"params": listed}]
        for group in groups:
            self.add_param_group(group)

    # Groups

    def add_param_group(self, param_group: Any) -> None:
        """Add parameters with options of their own.

        Parameters
        ----------
        param_group : dict
            `params` (a tensor, or an iterable of tensors or of pairs (name, tensor)) and options.

        Raises
        ------
        ArgumentTypeError
            When it is no dict, or `params` holds something else than tensors, or is a set.
        ArgumentError
            When a parameter is not a leaf, appears twice, or an option is wrong or missing.
        """
        op = type(self).__name__
        if not isinstance(param_group, dict) or "params" not in param_group:
            raise bad_argument(
                ArgumentTypeError,
                op,
                "param_group",
                expected="a dict with the key 'params'",
                got=repr(type(param_group).__name__),
                mend="pass {'params': [...], 'lr': ...}",
            )
        group = {**self.defaults, **param_group}
        names, tensors = _listed(op, param_group["params"])
        known = {id(tensor) for other in self.param_groups for tensor in other["params"]}
        for tensor in tensors:
            if not tensor.is_leaf and not tensor.retains_grad:
                raise _bad_params(op, "leaf tensors", f"the result of {tensor.grad_fn}", "detach()")
            if id(tensor) in known:
                raise _bad_params(op, "each parameter once", "one that was given twice", "drop it")
            known.add(id(tensor))
        self._check_options(group)
        group["params"] = tensors
        if names is not None:
            group["param_names"] = names
        self.param_groups.append(group)

    def _check_options(self, group: Group) -> None:
        """Raise `ArgumentError` for options that make no sense."""

    # Steps

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients, or with `set_to_none=False` fill them with zeros."""
        for group in self.param_groups:
            for param in group["params"]:
                clear_grad(param, set_to_none)

    def _evaluate(self, closure: Callable[[], Any] | None) -> Any:
        """Call the closure of `step`, with gradients enabled, and return its loss."""
        if closure is None:
            return None
        with enable_grad():
            return closure()

    def _work(self) -> list[Work]:
        """Return group, scalars, parameter, gradient and state of each update of this step.

        All state is made here, before the first update is dispatched.
        """
        if self.takes_parameters():
            op = type(self).__name__
            raise _bad_params(op, "parameters to update", "none", "pass module.parameters()")
        work: list[Work] = []
        for position, group in enumerate(self.param_groups):
            scalars: list[Any] = []
            device = None
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if param.device is not device:
                    device = param.device
                    scalars = self._tensors(position, device, self._scalar_options(group))
                state = self.state[param]
                self._prepare_state(group, param, state)
                work.append((group, scalars, param, grad, state))
        interpreter = local.state.interpreter
        if interpreter is not None:
            interpreter.before_run(self.refresh_options)
        return work

    def takes_parameters(self) -> bool:
        """Return whether this optimizer was built without parameters and still waits for some."""
        return self._takes_program and not any(group["params"] for group in self.param_groups)

    def refresh_options(self) -> None:
        """Bring the tensors from which updates read the options up to date."""
        for position, device in list(self._scalars):
            group = self.param_groups[position]
            self._tensors(position, device, self._scalar_options(group))

    def option_values(self) -> list[Any]:
        """Return what the last step read of the options, in the order of `option_tensors`."""
        return [value for values, _ in self._scalars.values() for value in values]

    def option_tensors(self) -> list[Tensor | None]:
        """Return the tensors from which updates read the options, in an order that stays."""
        return [tensor for _, tensors in self._scalars.values() for tensor in tensors]

    def own_tensors(self) -> Iterator[Tensor]:
        """Go through the tensors of the state, and those that hold options."""
        for kept in self.state.values():
            yield from (value for value in kept.values() if isinstance(value, Tensor))
        for _, tensors in self._scalars.values():
            yield from (tensor for tensor in tensors if tensor is not None)

    def _scalar_options(self, group: Group) -> tuple[Any, ...]:
        """Return the options that the update op takes as 0-d tensors, None for an unused one."""
        return ()

    def _prepare_state(self, group: Group, param: Tensor, state: dict[str, Any]) -> None:
        """Add to `state` what the first update needs and does not find."""

    def _tensors(self, position: int, device: Device, values: tuple[Any, ...]) -> list[Any]:
        """Return 0-d float64 tensors of a group's options.

        Each option keeps one tensor for life and is written into it when it changed: a recorded
        step reads the new value from where it read the old one.
        """
        known, tensors = self._scalars.get((position, device), ((None,) * len(values), []))
        if tensors and all(map(_unchanged, known, values)):
            return tensors
        fresh: list[Any] = []
        with on_device(device) as xp:
            for i, value in enumerate(values):
                if value is None:
                    fresh.append(None)
                elif isinstance(value, Tensor):  # a learning rate that the user keeps as a tensor
                    fresh.append(value.detach().to(device))
                elif known[i] is None or isinstance(known[i], Tensor):
                    fresh.append(make_tensor(xp.asarray(value, dtype=float64)))
                else:
                    tensors[i]._data.fill(value)
                    fresh.append(tensors[i])
        self._scalars[position, device] = (values, fresh)
        return fresh

    if TYPE_CHECKING:
        step: Callable[..., Any]  # defined by each subclass

    def minimize(self, *args: Any, **kwargs: Any) -> tuple[list[Any], list[tuple[Tensor, Tensor]]]:
        """Take gradients and update: `static.minimize.minimize`, which takes this one's place."""
        import_module("oneflow_lite.static")
        return type(self).minimize(self, *args, **kwargs)

    # State

    def state_dict(self) -> dict[str, Any]:
        """Return the state by the parameters' positions, and the options of all groups.

        Parameters are numbered through all groups. The tensors are those of the optimizer, not
        copies; `flow.save` writes them.
        """
        params = [param for group in self.param_groups for param in group["params"]]
        numbers = {id(param): number for number, param in enumerate(params)}
        groups = [
            {**group, "params": [numbers[id(param)] for param in group["params"]]}
            for group in self.param_groups
        ]
        state = {numbers[id(param)]: dict(kept) for param, kept in self.state.items() if kept}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Any) -> None:
        """Take over copies of the state and options that `state_dict` returned.

        Tensors are converted to the dtype and device of their parameter.

        Raises
        ------
        ArgumentError
            When groups, their sizes or the shapes of state tensors do not fit; nothing has been
            changed then.
        """
        if not isinstance(state_dict, Mapping) or not {"state", "param_groups"} <= set(state_dict):
            raise self._misfit("a dict with the keys 'state' and 'param_groups'", "another object")
        loaded, groups = state_dict["param_groups"], self.param_groups
        if len(loaded) != len(groups):
            raise self._misfit(f"{len(groups)} parameter groups", len(loaded))
        params: dict[Any, Tensor] = {}
        for position, (theirs, own) in enumerate(zip(loaded, groups, strict=True)):
            if len(theirs["params"]) != len(own["params"]):
                raise self._misfit(
                    f"{len(own['params'])} parameters in group {position}", len(theirs["params"])
                )
            params.update(zip(theirs["params"], own["params"], strict=True))
        state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        for number, kept in state_dict["state"].items():
            if number not in params:
                raise self._misfit("state of the parameters in the groups", f"number {number!r}")
            param = params[number]
            state[param] = {key: self._adopt(param, key, value) for key, value in kept.items()}
        new_groups = []
        for theirs, own in zip(loaded, groups, strict=True):
            options = copy.deepcopy({k: v for k, v in theirs.items() if k != "params"})
            kept_names = {k: own[k] for k in ("params", "param_names") if k in own}
            new_groups.append({**own, **options, **kept_names})
        self.state = state
        for own, new in zip(groups, new_groups, strict=True):
            own.update(new)

    def _adopt(self, param: Tensor, key: str, value: Any) -> Any:
        """Return a copy of one state value that fits the parameter."""
        if key == "step":
            count = value.item() if isinstance(value, Tensor) else value
            return new_step(param, count)
        if not isinstance(value, Tensor):
            return copy.deepcopy(value)
        if value.shape != param.shape:
            raise self._misfit(f"{key!r} of shape {tuple(param.shape)}", tuple(value.shape))
        with no_grad():
            return value.detach().to(param.device).to(param.dtype).clone()

    def _misfit(self, expected: str, got: object) -> Exception:
        return bad_argument(
            ArgumentError,
            f"{type(self).__name__}.load_state_dict",
            "state_dict",
            expected=expected,
            got=got,
            mend="load the state of an optimizer of the same parameters",
        )

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for position, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {position}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


def _unchanged(known: Any, value: Any) -> bool:
    """Return whether an option is as it was; a tensor is one option whatever it holds."""
    if known is value:
        return True
    return not isinstance(known, Tensor) and not isinstance(value, Tensor) and known == value


def zeros_like(param: Tensor) -> Tensor:
    """Return zeros laid out as `param`; not an op, so that no recorded step makes them anew."""
    with on_device(param.device) as xp:
        return make_tensor(xp.zeros_like(param._data))


def new_step(param: Tensor, count: float = 0.0) -> Tensor:
    """Return a step count on the parameter's device."""
    with on_device(param.device) as xp:
        return make_tensor(xp.asarray(count, dtype=float32))


def check_not_negative(op: str, **options: Any) -> None:
    """Raise `ArgumentError` for the first option below zero (or NaN)."""
    for name, value in options.items():
        if not value >= 0:
            raise bad_argument(
                ArgumentError,
                op,
                name,
                expected="a number of at least 0",
                got=value,
                mend="pass a larger one",
            )


def check_not_differentiable(op: str, differentiable: bool) -> None:
    """Raise `ArgumentError` when gradients through the step are asked for."""
    if differentiable:
        raise bad_argument(
            ArgumentError,
            op,
            "differentiable",
            expected="False: updates are written in place, outside the graph",
            got=True,
            mend="write the update with flow.autograd.grad(create_graph=True)",
        )


def _listed(op: str, params: Any) -> tuple[list[str] | None, list[Tensor]]:
    """Return the names, when there are any, and the tensors of a group."""
    if isinstance(params, Tensor):
        return None, [params]
    if isinstance(params, (set, frozenset)) or not isinstance(params, Iterable):
        raise _bad_params(op, "a list of tensors", type(params).__name__, "pass a list", _TYPE)
    entries = list(params)
    named = [entry for entry in entries if isinstance(entry, tuple)]
    if named and len(named) != len(entries):
        raise _bad_params(op, "tensors, all with names or none", "both", "name all or none")
    names = [name for name, _ in named] if named else None
    tensors = [tensor for _, tensor in named] if named else entries
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            got = type(tensor).__name__
            raise _bad_params(op, "tensors", got, "pass module.parameters()", _TYPE)
    return names, tensors


def _bad_params(
    op: str, expected: str, got: object, mend: str, kind: type[FlowError] = ArgumentError
) -> FlowError:
    return bad_argument(kind, op, "params", expected=expected, got=got, mend=mend)
