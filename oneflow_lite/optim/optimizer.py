"""Optimizer: parameter groups, state, and the walk over parameters that ends in update ops.

Every update is one registered op for each parameter. Values that may change between steps (lr,
momentum, the step count) reach it as tensors, and the state is there before the first update, so
that a step is the same list of ops every time. The kernel of an op says which tensors and options
it takes; an optimizer adds its defaults, their limits, and the first values of its state.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import is_
from typing import Any, ClassVar, Self

import numpy as np

from oneflow_lite.arrays.device import CPU, Device, on_device
from oneflow_lite.arrays.dtype import float32, float64
from oneflow_lite.arrays.refusals import guard_class
from oneflow_lite.errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    DTypeError,
    FlowError,
    InplaceError,
    MissingMethodError,
    MissingOptionError,
    ShapeError,
    arg_error,
    memory_for,
)
from oneflow_lite.nn.parameter import clear_grad
from oneflow_lite.ops.eager_loops import Updates
from oneflow_lite.ops.exposure import expose
from oneflow_lite.ops.op_expr import op_expr
from oneflow_lite.ops.registry import FUNCTORS
from oneflow_lite.optim.hooks import (
    Hooks,
    no_hooks,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    run_hooks,
    with_hooks,
)
from oneflow_lite.tensors.hooks import RemovableHandle, add_hook
from oneflow_lite.tensors.mode import enable_grad, local, no_grad, with_grad_mode
from oneflow_lite.tensors.tensor import Tensor, make_tensor

expose(globals())

# What is optimized: tensors, groups of them with options, or pairs with their names.
Parameters = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]

__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
    "required",
]

Group = dict[str, Any]
Limit = tuple[str, Callable[[Any], bool]]
_TYPE = ArgumentTypeError
Work = tuple[list[Any], dict[str, Any]]

required: Any = type("required", (), {"__repr__": lambda self: "<required parameter>"})()

AT_LEAST_0: Limit = ("a finite number of at least 0", lambda x: x >= 0 and x < math.inf)
LIMITS: dict[str, Limit] = {
    "betas": (
        "two numbers from 0 to below 1",
        lambda x: all(beta >= 0 and beta < 1 for beta in x),
    ),
    "differentiable": ("False: updates are written in place, outside the graph", lambda x: not x),
} | dict.fromkeys(("lr", "momentum", "weight_decay", "eps"), AT_LEAST_0)

# Inputs of update ops that are part of an option, and options that switch off at zero.
_PARTS = {
    name: (option, position)
    for option, names in {
        "betas": ("beta1", "beta2"),
        "etas": ("etaminus", "etaplus"),
        "step_sizes": ("step_size_min", "step_size_max"),
        "eps": ("eps1", "eps2"),
    }.items()
    for position, name in enumerate(names)
}
OFF_AT_0 = ("momentum", "dampening", "weight_decay")
_NUMBERS = ("step", "mu_product", "eta", "mu")  # state that is one number for each parameter


class Optimizer:
    """Base class of the optimizers: a subclass defines `step`, or names its update op.

    Parameters
    ----------
    params : iterable or None
        Of tensors, of pairs (name, tensor), or of dicts with the key `params` and options that
        differ from the defaults. With None, `minimize` takes the parameters of the Program that
        is captured.
    defaults : dict
        The options of groups that do not set their own.

    Notes
    -----
    All optimizers have common options. `lr` is the learning rate, a number or a tensor of one
    element; `weight_decay` is the share of a parameter that is added to its gradient, or, when it
    is decoupled, taken (times `lr`) from the parameter before the step; with `maximize` a step
    goes up instead of down. `foreach`, `fused` and `capturable` are accepted for scripts written
    for PyTorch: every update is one op in any case. `differentiable` must be False. Options out of
    their range raise `ArgumentError`, a `ValueError`.

    Attributes
    ----------
    param_groups : list of dict
        The options of each group, with its tensors under `params`; read at every step.
    state : dict
        The tensors and numbers that are kept for each parameter.
    """

    _op: ClassVar[str] = ""
    _state: ClassVar[dict[str, str]] = {}  # names, each with the option that asks for it, if any
    _starts: ClassVar[dict[str, Any]] = {}  # first values other than 0, or an option to read
    _limits: ClassVar[dict[str, Limit]] = {}
    _takes_complex: ClassVar[bool] = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):
            cls.step = with_hooks(vars(cls)["step"])  # type: ignore[method-assign]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Give also those whose class does not call `__init__` here what each optimizer needs."""
        self = super().__new__(cls)
        own = {"_hooks": no_hooks(), "_scalars": {}, "_together": Updates(), "_noted": {}}
        vars(self).update(own)
        return self

    _hooks: Hooks
    _scalars: dict[tuple[int, Device], tuple[tuple[Any, ...], list[Any]]]
    _together: Updates
    _noted: dict[str, bool]  # under "stepped", whether a step was taken since there is a scheduler
    _takes_program = False

    def __init__(self, params: Any, defaults: Group) -> None:
        self.defaults = defaults
        self.param_groups: list[Group] = []
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self._check_options(defaults)
        self._takes_program = params is None
        if params is None:
            self.add_param_group({"params": []})
            return
        if isinstance(params, (Tensor, dict)) or not isinstance(params, Iterable):
            expected = "an iterable of tensors or of dicts"
            got = type(params).__name__
            raise self._bad_params_error(
                expected, got, "pass module.parameters() or [tensor]", _TYPE
            )
        with memory_for(f"optim.{type(self).__name__}", params=type(params)):
            listed = list(params)
        if not listed:
            hint = "pass module.parameters(), and not an exhausted iterator"
            raise self._bad_params_error("at least one parameter", "none", hint)
        groups = listed if isinstance(listed[0], dict) else [{"params": listed}]
        for group in groups:
            self.add_param_group(group)

    def __getstate__(self) -> dict[str, Any]:
        # Copies have hooks and option tensors of their own, and no step that belongs to this one.
        own = ("_hooks", "_scalars", "_together", "step")
        return {k: v for k, v in vars(self).items() if k not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._together = Updates()

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
            When a parameter is not a leaf, appears twice or cannot be updated, or an option is
            wrong or missing.
        """
        op = type(self).__name__
        if not isinstance(param_group, dict) or "params" not in param_group:
            raise arg_error(
                op,
                "param_group",
                expected="a dict with the key 'params'",
                got=repr(type(param_group).__name__),
                hint="pass {'params': [...], 'lr': ...}",
                kind=ArgumentTypeError,
            )
        group = {**self.defaults, **param_group}
        names, tensors = self._listed(param_group["params"])
        known = {id(tensor) for other in self.param_groups for tensor in other["params"]}
        for tensor in tensors:
            if not tensor.is_leaf and not tensor.retains_grad:
                got = f"the result of {tensor.grad_fn}"
                raise self._bad_params_error("leaf tensors", got, "detach() it")
            if id(tensor) in known:
                raise self._bad_params_error(
                    "each parameter once", "one that was given twice", "drop it"
                )
            known.add(id(tensor))
            self._check_param(tensor)
        if names is not None:
            group["param_names"] = names
        if any(("param_names" in group) != ("param_names" in g) for g in self.param_groups):
            raise self._bad_params_error("names in all groups or none", "both", "name all or none")
        for name, value in group.items():
            if value is required:
                raise arg_error(
                    op, name, "a value in each group", "none", f"pass {name}=...", ArgumentError
                )
        self._check_options(group)
        group["params"] = tensors
        self.param_groups.append(group)

    def _check_options(self, group: Group) -> None:
        """Raise `ArgumentError` for options that make no sense."""
        cls: Any = type(self)
        op, defaults = cls.__name__, _defaults(cls)
        for name, value in group.items():
            if value is required:
                continue
            expected, holds = self._limits.get(name, ("", None))
            kind, wanted = _other_kind(defaults, name, value)
            expected = expected or wanted
            if kind is None and holds is not None and not holds(value):
                kind = ArgumentError
            if kind is not None:
                got = value if isinstance(value, Tensor) and value.numel() != 1 else repr(value)
                hint = f"the default is {defaults.get(name)!r}"
                raise arg_error(op, name, expected, got, hint, kind)
        if group.get("fused") and group.get("foreach"):
            raise arg_error(
                op, "fused", "one of fused and foreach", "both", "leave them out", ArgumentError
            )

    def _check_param(self, param: Tensor) -> None:
        """Raise `ArgumentError` for a parameter that this optimizer cannot update."""
        if not self._takes_complex and param.is_complex():
            raise self._bad_params_error("real parameters", "a complex one", "use Adam")

    # Steps

    profile_hook_step = staticmethod(with_hooks)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients, or with `set_to_none=False` fill them with zeros."""
        for group in self.param_groups:
            for param in group["params"]:
                clear_grad(param, set_to_none)

    @with_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss and its gradients anew; called first, with gradients enabled.

        Returns
        -------
        object
            The result of `closure`; None without it.
        """
        if not self._op:
            raise MissingMethodError(f"{type(self).__name__} does not define step(); define it")
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        update = FUNCTORS.get(self._op)
        outer, local.state = local.state, with_grad_mode(False)
        made: list[tuple[Tensor, dict[str, Any]]] = []
        try:
            try:
                work = self._work(made)
                if not local.state.general and self._together.done(self._op, work):
                    return loss
                self._check_work(work)
            except BaseException as error:
                for param, before in made:
                    self.state[param] = before
                    if not before:
                        del self.state[param]
                if isinstance(error, FlowError) or not isinstance(error, Exception):
                    raise
                raise self._explained(error) from None
            try:
                for inputs, attrs in work:
                    update(*inputs, **attrs)
            except Exception as error:
                error.add_note(f"in {type(self).__name__}.step(): {self._called(inputs[0])}")
                raise
        finally:  # an interrupt cannot part this, as the call at the end of a `with` block
            local.state = outer
        return loss

    def _explained(self, error: Exception) -> FlowError:
        """Return the error for groups or state that a step cannot read."""
        for group in self.param_groups:
            try:
                self._listed(group["params"])
                Optimizer._check_options(self, group)
            except FlowError as clearer:
                return clearer
            except Exception:
                break
        expected, got = "groups and state of an optimizer", f"{type(error).__name__}: {error}"
        hint = "assign no option, parameter or state of another kind"
        return arg_error(f"{type(self).__name__}.step", "self", expected, got, hint, _TYPE)

    def _work(self, made: list[tuple[Tensor, dict[str, Any]]]) -> list[Work]:
        """Return inputs and attributes of each update op of this step.

        All state is made here, before the first update is dispatched; `made` gets the parameters
        that had none, with what they had.
        """
        self._require_parameters()
        kept, _, flags = _recipe(self._op, *self._state)
        work: list[Work] = []
        read = set()
        for position, group in enumerate(self.param_groups):
            scalars: list[Any] = []
            device = None
            attrs = {name: group[name] for name in flags if name in group}
            if attrs and attrs != self._together.attrs.get(position):
                Optimizer._check_options(self, attrs)
                for name, value in attrs.items():  # AdamW has an attribute that is no option of it
                    default = op_expr(self._op).schema.attrs[name]
                    if isinstance(default, bool) and not is_flag(value):
                        raise self._option_error(name, "True or False", repr(value))
                self._together.attrs[position] = attrs
            used = [name if self._keeps(group, name) else "" for name in kept]
            any_used, own = any(used), [None] * len(used)
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                # Of an array of NumPy the device is known without asking.
                known = device is CPU and type(param._data) is np.ndarray
                if not known and param.device is not device:
                    device = param.device
                    read.add((position, device))
                    scalars = self._tensors(position, device, self._scalar_options(group))
                if any_used:
                    state = self.state[param]
                    try:
                        own = [state[name] if name else None for name in used]
                    except KeyError:
                        made.append((param, state.copy()))
                        self._prepare_state(group, param, state)
                        own = [state.get(name) for name in used]
                work.append(([param, grad, *own, *scalars], attrs))
        if len(read) < len(self._scalars):  # a replay, too, brings those up to date that none reads
            self.refresh_options()
        interpreter = local.state.interpreter
        if interpreter is not None:
            interpreter.before_run(self.refresh_options)
        return work

    def _check_work(self, work: list[Work]) -> None:
        """Raise for an update that cannot be taken, before the first update writes.

        Each step pays for it, so it looks at shapes and dtypes of gradients, and at all the rest
        where there are other arrays of parameters or states than in the step before.
        """
        kept = _recipe(self._op, *self._state)[0]
        end, known = 2 + len(kept), self._together.fitting
        present: list[Any] = []
        found: list[Any] = []
        try:
            arrays = [inputs[0]._data for inputs, _ in work]
            if self.state:
                present = [x._data for inputs, _ in work for x in inputs[2:end] if x is not None]
            present += arrays
            grads = [inputs[1]._data for inputs, _ in work]
            found = [[x.shape for x in grads], [x.dtype for x in grads]]
            same = len(present) == len(known) and all(map(is_, present, known))
            if same and found == self._together.grads:
                return
        except AttributeError:  # a gradient or a state that is no Tensor
            pass
        names = ["", *kept]
        for (param, *tensors), _ in work:
            data = param._data
            for name, x in zip(["parameter", *names[1:]], [param, *tensors[1:]], strict=False):
                memory = getattr(x, "_data", None)
                if type(memory) is np.ndarray and not memory.flags.writeable:
                    what = "" if x is param else f"state {name} of "
                    got, hint = "memory that is read-only or expanded", "clone() it"
                    raise self._unfit_error(what, param, "one to write", got, hint, InplaceError)
            for name, x in zip(names, tensors, strict=False):
                # None is a state that no option asks for, or that the user has put there.
                absent = x is None and self.state.get(param, {}).get(name, ()) is not None
                if not (absent or _alike(x, data)):
                    self._check_tensor(param, name, x)
            self._check_param(param)
        self._together.fitting, self._together.grads = present, found

    def _check_tensor(self, param: Tensor, name: str, value: Any) -> None:
        """Raise unless a gradient, or the state of this name, fits the parameter."""
        expected: str
        got: Any
        kind: type[FlowError]
        alone = name in _NUMBERS
        shape = param.shape if not name else () if alone else self._shape(param, name)
        if not isinstance(value, Tensor):
            expected, got, kind = "a Tensor", type(value).__name__, _TYPE
        elif value.shape != shape and not (alone and value.numel() == 1):
            expected, got, kind = f"shape {tuple(shape)}", value, ShapeError
        elif value.device != param.device:
            expected, got, kind = f"a tensor on {param.device}", value.device, DeviceError
        elif value.is_complex() and not param.is_complex():
            expected, got, kind = "real numbers", value.dtype, DTypeError
        elif name and not alone and value.dtype.kind != param.dtype.kind:
            expected, got, kind = f"numbers such as {param.dtype}", value.dtype, DTypeError
        else:
            return
        hint = "load a state dict that fits" if name else "call zero_grad(), and backward() again"
        what = f"state {name} of " if name else "gradient of "
        raise self._unfit_error(what, param, expected, got, hint, kind)

    def _unfit_error(
        self,
        what: str,
        param: Tensor,
        expected: str,
        got: Any,
        hint: str,
        kind: type[FlowError],
    ) -> FlowError:
        op, argument = f"{type(self).__name__}.step", what + self._called(param)
        return arg_error(op, argument, expected, got, hint, kind)

    def _called(self, param: Tensor) -> str:
        """Return the place of a parameter, and its name if there is one."""
        for number, group in enumerate(self.param_groups):
            for place, each in enumerate(group["params"]):
                if each is param:
                    name = f" ({group['param_names'][place]})" if "param_names" in group else ""
                    return f"parameter {place}{name} of group {number}"
        return "a parameter of no group"

    def _require_parameters(self) -> None:
        if self.takes_parameters():
            raise self._bad_params_error("parameters to update", "none", "pass module.parameters()")

    def takes_parameters(self) -> bool:
        """Return whether this optimizer was built without parameters and still waits for them."""
        return self._takes_program and not any(group["params"] for group in self.param_groups)

    def refresh_options(self, set_later: Mapping[tuple[int, str], Any] | None = None) -> None:
        """Bring the tensors from which updates read the options up to date, before a replay.

        `set_later` has options that will be set before the step, by group and name.
        """
        if self._noted:
            self._noted["stepped"] = True
        for position, device in list(self._scalars):
            later = {k: value for (i, k), value in (set_later or {}).items() if i == position}
            group = self.param_groups[position]
            self._tensors(
                position, device, self._scalar_options({**group, **later} if later else group)
            )

    def option_tensors(self) -> list[Tensor | None]:
        """Return the tensors from which updates read the options, in an order that stays."""
        return [tensor for _, tensors in self._scalars.values() for tensor in tensors]

    def own_tensors(self) -> Iterator[Tensor]:
        """Yield the tensors of the state, and the tensors that hold options."""
        for kept in self.state.values():
            yield from (value for value in kept.values() if isinstance(value, Tensor))
        for _, tensors in self._scalars.values():
            yield from (tensor for tensor in tensors if tensor is not None)

    def _scalar_options(self, group: Group) -> tuple[Any, ...]:
        """Return the options that the update op takes as 0-d tensors, None for an unused one."""
        values = []
        for name in _recipe(self._op, *self._state)[1]:
            option, position = _PARTS.get(name, (name, None))
            try:
                value = group[option] if position is None else group[option][position]
            except KeyError:
                raise self._option_error(option, "a value in each group", "none") from None
            off = name in OFF_AT_0 and not isinstance(value, Tensor) and not value
            values.append(None if off else value)
        return tuple(values)

    def _keeps(self, group: Group, name: str) -> bool:
        """Return whether a group's options ask for a state."""
        option = self._state[name]
        return not option or bool(group[option])

    def _prepare_state(self, group: Group, param: Tensor, state: dict[str, Any]) -> None:
        """Add to `state` the entries that the first update needs and does not find."""
        for name in self._state:
            if name not in state and self._keeps(group, name):
                if not state:
                    self._check_param(param)
                first = self._first(group, param, name, state)
                if first is not None:
                    state[name] = first

    def _first(
        self, group: Group, param: Tensor, name: str, state: dict[str, Any]
    ) -> Tensor | None:
        """Return a state as it is before the first update; None where a parameter lacks it."""
        value = self._starts.get(name, 0.0)
        value = number(group[value] if isinstance(value, str) else value)
        return new_number(param, value) if name in _NUMBERS else filled(param, value)

    def _tensors(self, position: int, device: Device, values: tuple[Any, ...]) -> list[Any]:
        """Return 0-d float64 tensors of a group's options.

        Each option keeps its tensor for life, and a changed value is written into the tensor: a
        recorded step then reads the new value.
        """
        if any([isinstance(value, Tensor) for value in values]):  # one elsewhere is a number here
            values = tuple(
                [number(x) if isinstance(x, Tensor) and x.device != device else x for x in values]
            )
        known, tensors = self._scalars.get((position, device), ((None,) * len(values), []))
        if tensors and all(map(_unchanged, known, values)):
            return tensors
        cls: Any = type(self)
        defaults = _defaults(cls)
        for name, value in zip(_recipe(self._op, *self._state)[1], values, strict=True):
            option, part = _PARTS.get(name, (name, None))
            default = defaults.get(option)
            default = default if part is None or not default else default[part]
            optional = name in OFF_AT_0 or default is None
            if not (is_number(value) or (value is None and optional and name != "lr")):
                raise self._option_error(option, "a number", repr(value))
            if option == "betas" and not 0 <= number(value) < 1:
                raise self._option_error(option, "numbers from 0 to below 1", repr(value))
        fresh: list[Any] = []
        with on_device(device) as xp:
            for i, value in enumerate(values):
                if value is None:
                    fresh.append(None)
                elif isinstance(value, Tensor):  # a learning rate that the user keeps as a tensor
                    kept = value.detach().to(device)
                    fresh.append(kept.reshape(()) if kept.ndim else kept)
                elif known[i] is None or isinstance(known[i], Tensor):
                    fresh.append(make_tensor(xp.asarray(value, dtype=float64)))
                else:
                    tensors[i]._data.fill(value)
                    fresh.append(tensors[i])
        self._scalars[position, device] = (values, fresh)
        return fresh

    # From where Programs are: `ops/homes.py`.
    minimize: Callable[..., tuple[list[Any], list[tuple[Tensor, Tensor]]]]

    # State

    def state_dict(self) -> dict[str, Any]:
        """Return the state by the parameters' positions, and the options of all groups.

        Parameters are numbered through all groups. The tensors are the optimizer's own, not copies;
        `flow.save` writes them.
        """
        run_hooks(self._hooks["state_dict_pre"], self)
        params = [param for group in self.param_groups for param in group["params"]]
        numbers = {id(param): number for number, param in enumerate(params)}
        groups = [
            {k: v for k, v in group.items() if k != "params"}
            | {"params": [numbers[id(param)] for param in group["params"]]}
            for group in self.param_groups
        ]
        state = {
            numbers[id(key)] if isinstance(key, Tensor) else key: copy.copy(kept)
            for key, kept in self.state.items()
            if not isinstance(kept, dict) or kept
        }
        found = {"state": state, "param_groups": groups}
        return dict(run_hooks(self._hooks["state_dict_post"], self, found))

    def load_state_dict(self, state_dict: Any) -> None:
        """Take over copies of the state and options that `state_dict` returned.

        Tensors are converted to the dtype and device of their parameter.

        Raises
        ------
        ArgumentError
            When groups, their sizes or the shapes of state tensors do not fit; the optimizer is
            unchanged then.
        """
        if not isinstance(state_dict, Mapping) or not {"state", "param_groups"} <= set(state_dict):
            raise self._misfit_error(
                "a dict with the keys 'state' and 'param_groups'", "another object"
            )
        state_dict = run_hooks(self._hooks["load_state_dict_pre"], self, dict(state_dict))
        try:
            state, new_groups = self._read_state(state_dict)
        except (
            AttributeError,
            IndexError,
            KeyError,
            TypeError,
            ValueError,
            OverflowError,
        ) as error:
            got = f"one with {type(error).__name__}: {error}"
            raise self._misfit_error("a dict as state_dict() returns it", got) from None
        for own, new in zip(self.param_groups, new_groups, strict=True):
            own.update(new)
        self.__setstate__({"state": state, "param_groups": self.param_groups})
        run_hooks(self._hooks["load_state_dict_post"], self)

    def _read_state(self, state_dict: Any) -> tuple[defaultdict[Any, Any], list[Group]]:
        """Return state and groups of a state dict; nothing of the optimizer changes."""
        loaded, groups = state_dict["param_groups"], self.param_groups
        if len(loaded) != len(groups):
            raise self._misfit_error(f"{len(groups)} parameter groups", len(loaded))
        params: dict[Any, Tensor] = {}
        for position, (theirs, own) in enumerate(zip(loaded, groups, strict=True)):
            if len(theirs["params"]) != len(own["params"]):
                raise self._misfit_error(
                    f"{len(own['params'])} parameters in group {position}", len(theirs["params"])
                )
            params.update(zip(theirs["params"], own["params"], strict=True))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for number, kept in state_dict["state"].items():
            if number not in params:
                if isinstance(number, int):
                    expected = "state of the parameters in the groups"
                    raise self._misfit_error(expected, f"number {number!r}")
                state[number] = copy.deepcopy(kept)  # what the user keeps under a name
                continue
            param = params[number]
            state[param] = {
                key: self._adopt(param, key, value)
                for key, value in kept.items()
                if value is not None or not self._op
            }
        cls: Any = type(self)
        new_groups, defaults = [], _defaults(cls)
        for theirs, own in zip(loaded, groups, strict=True):
            options = copy.deepcopy({k: v for k, v in theirs.items() if k != "params"})
            for name, value in options.items():
                kind, wanted = _other_kind(defaults, name, value)
                if kind is _TYPE:  # a scheduler may have left the limits of a number
                    raise self._misfit_error(f"{name!r} to be {wanted}", type(value).__name__)
            new_groups.append({**own, **options, "params": own["params"]})
        return state, new_groups

    def _adopt(self, param: Tensor, key: str, value: Any) -> Any:
        """Return a copy of a state value that fits the parameter."""
        if key in self._state and key not in _NUMBERS and not isinstance(value, Tensor):
            raise self._misfit_error(f"{key!r} to be a tensor", type(value).__name__)
        if key in _NUMBERS and key in self._state:
            return new_number(param, number(value))
        if isinstance(value, Mapping):
            return {k: self._adopt(param, k, v) for k, v in value.items()}
        if type(value) in (list, tuple):
            return type(value)(self._adopt(param, "", v) for v in value)
        if not isinstance(value, Tensor):
            return copy.deepcopy(value)
        if key in self._state and value.shape != (shape := self._shape(param, key)):
            raise self._misfit_error(f"{key!r} of shape {tuple(shape)}", tuple(value.shape))
        with no_grad():
            if param.is_global and value.shape == param.shape and param.ndim:
                return filled(param, 0.0).copy_(value)
            kept = value.detach().to(param.device)
            step = key == "step" or not param.is_floating_point()
            return (kept if step else kept.to(param.dtype)).clone()

    def _shape(self, param: Tensor, key: str) -> tuple[int, ...]:
        """Return the shape of a state."""
        return tuple(param.shape)

    def _misfit_error(self, expected: str, got: object) -> Exception:
        return arg_error(
            f"{type(self).__name__}.load_state_dict",
            "state_dict",
            expected=expected,
            got=got,
            hint="load the state of an optimizer of the same parameters",
            kind=ArgumentError,
        )

    # Hooks

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Have `hook(optimizer, args, kwargs)` called before each step.

        `args` begins with the optimizer. The hook may return new (args, kwargs).
        """
        return self._add_hook("step_pre", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Have `hook(optimizer, args, kwargs)` called after each step."""
        return self._add_hook("step_post", hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Have `hook(optimizer)` called before `state_dict`; with `prepend` before other hooks."""
        return self._add_hook("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Have `hook(optimizer, state_dict)` called after `state_dict`; it may return another."""
        return self._add_hook("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Have `hook(optimizer, state_dict)` called before loading; it may return another."""
        return self._add_hook("load_state_dict_pre", hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Have `hook(optimizer)` called after `load_state_dict`."""
        return self._add_hook("load_state_dict_post", hook, prepend)

    def _add_hook(
        self, kind: str, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        hooks = self._hooks[kind]
        others = dict(hooks) if prepend else {}
        handle = add_hook(f"{type(self).__name__}.register_{kind}_hook", hooks, hook)
        for key in others:  # what goes out and in again stands at the end
            hooks[key] = hooks.pop(key)
        return handle

    # Checks and text

    def _listed(self, params: Any) -> tuple[list[str] | None, list[Tensor]]:
        """Return the names (None without names) and the tensors of a group."""
        if isinstance(params, Tensor):
            return None, [params]
        if isinstance(params, (set, frozenset)) or not isinstance(params, Iterable):
            got = type(params).__name__
            raise self._bad_params_error("a list of tensors", got, "pass a list", _TYPE)
        entries = list(params)
        named = [entry for entry in entries if isinstance(entry, tuple)]
        if named and len(named) != len(entries):
            raise self._bad_params_error(
                "tensors, all with names or none", "both", "name all or none"
            )
        if any(len(entry) != 2 for entry in named):
            raise self._bad_params_error("pairs of name and tensor", "tuples", "name each tensor")
        names = [name for name, _ in named] if named else None
        tensors = [tensor for _, tensor in named] if named else entries
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                got = type(tensor).__name__
                raise self._bad_params_error("tensors", got, "pass module.parameters()", _TYPE)
        return names, tensors

    def _bad_params_error(
        self, expected: str, got: object, hint: str, kind: type[FlowError] = ArgumentError
    ) -> FlowError:
        return arg_error(type(self).__name__, "params", expected, got, hint, kind)

    def _option_error(self, option: str, expected: str, got: str) -> FlowError:
        op, kind = f"{type(self).__name__}.step", MissingOptionError if got == "none" else _TYPE
        return arg_error(op, option, expected, got, "assign one in param_groups", kind)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for position, group in enumerate(self.param_groups):
            lines += [""] * bool(position) + [f"Parameter Group {position}"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


def _alike(x: Any, data: Any) -> bool:
    """Return whether a tensor is, beyond doubt, like the array of its parameter."""
    array: Any = getattr(x, "_data", None)
    return type(array) is type(data) and array.shape == data.shape and array.dtype is data.dtype


def _unchanged(known: Any, value: Any) -> bool:
    """Return whether an option is unchanged; a tensor is the same option whatever it holds."""
    if known is value:
        return True
    return not isinstance(known, Tensor) and not isinstance(value, Tensor) and known == value


@functools.cache
def _recipe(op: str, *state: str) -> tuple[list[str], list[str], list[str]]:
    """Return the names of the states, the options and the attributes that an update op takes."""
    schema = op_expr(op).schema
    names = schema.inputs[2:]
    kept = [name for name in names if name in state]
    return kept, [name for name in names if name not in state], list(schema.attrs)


@functools.cache
def _defaults(cls: Any) -> dict[str, Any]:
    """Return the options that the constructor of an optimizer of this library names."""
    own = next(each for each in cls.__mro__ if each.__module__.startswith(__package__))
    parameters = {} if own is Optimizer else inspect.signature(own).parameters
    return {name: x.default for name, x in parameters.items() if name != "params"}


def is_number(value: Any) -> bool:
    """Return whether a value is one real number, maybe in a tensor or an array."""
    if isinstance(value, (Tensor, np.ndarray, np.generic)):
        return value.dtype.kind in "iuf" and math.prod(value.shape) == 1
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_flag(value: Any) -> bool:
    """Return whether a value says yes or no."""
    known = value is None or isinstance(value, (bool, np.bool_)) or type(value) is int
    return known and value in (None, 0, 1)


def _misfit(value: Any, default: Any, flag: bool) -> type[FlowError] | None:
    """Return the class of error for a value of another kind than the default, or None."""
    if flag:
        return None if is_flag(value) else _TYPE
    if isinstance(default, tuple):
        if not isinstance(value, (Sequence, np.ndarray)) or isinstance(value, str):
            return _TYPE
        if len(value) != len(default):
            return ArgumentError
        misfits = [_misfit(x, y, False) for x, y in zip(value, default, strict=True)]
        return next(filter(None, misfits), None)
    if value is None and default is None:
        return None
    if not is_number(value):
        several = isinstance(value, (Tensor, np.ndarray)) and math.prod(value.shape) != 1
        return ArgumentError if several else _TYPE
    return ArgumentError if value != value else None  # NaN


def _other_kind(
    defaults: dict[str, Any], name: str, value: Any
) -> tuple[type[FlowError] | None, str]:
    """Return the error for an option of another kind than its default, if any, and that kind."""
    default = defaults.get(name)
    flag = isinstance(default, bool) or (name in defaults and name in ("foreach", "fused"))
    if not flag and default is None:
        return None, ""
    return _misfit(value, default, flag), _kind_of(default, flag)


def _kind_of(default: Any, flag: bool) -> str:
    """Return the text for the kind of a default."""
    if flag:
        return "True or False"
    return f"{len(default)} numbers" if isinstance(default, tuple) else "a number"


def options(scope: dict[str, Any]) -> Group:
    """Return the defaults of an optimizer: the arguments of its constructor, from `locals()`."""
    return {k: v for k, v in scope.items() if k not in ("self", "params", "__class__")}


def number(value: Any) -> Any:
    """Return a Python number; a tensor is read behind the back of interpreters."""
    return value._data.item() if isinstance(value, Tensor) else value


def filled(param: Tensor, value: float, shape: tuple[int, ...] | None = None) -> Tensor:
    """Return a tensor laid out as `param`. No op makes it, so no recorded step makes it again.

    Real and imaginary part of a complex tensor both have the value.
    """
    data = param._data
    with on_device(param.device) as xp:
        made = xp.zeros_like(data) if shape is None else xp.zeros(shape, dtype=data.dtype)
        if value:
            made[...] = complex(value, value) if data.dtype.kind == "c" else value
        return make_tensor(made)


def new_number(param: Tensor, value: float) -> Tensor:
    """Return a number of the state, such as a step count, on the parameter's device."""
    with on_device(param.device) as xp:
        return make_tensor(xp.asarray(value, dtype=float32))


guard_class(Optimizer, but="step")  # whose hooks guard it
