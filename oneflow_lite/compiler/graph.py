"""`nn.Graph`, OneFlow's class of static graphs: what its `build` does is compiled."""

from __future__ import annotations

from typing import Any

from oneflow_lite.compiler.face import compile as compile_function, explain
from oneflow_lite.compiler.function import Explanation
from oneflow_lite.errors import MissingMethodError, type_error
from oneflow_lite.nn.module import Module
from oneflow_lite.optim.optimizer import Optimizer


class Graph:
    """A computation that is called as a whole: a subclass sets modules and defines `build`.

    With optimizers added, a call clears the gradients, runs `build`, which calls `backward()`, and
    makes their steps; schedulers step after it. Calls go as under `flow.compile`: the first calls
    are recorded, later calls replayed. After OneFlow's `nn.Graph`.

    Examples
    --------
    >>> import oneflow_lite as flow
    >>> class Training(flow.nn.Graph):
    ...     def __init__(self, model, optimizer):
    ...         super().__init__()
    ...         self.model = model
    ...         self.add_optimizer(optimizer)
    ...     def build(self, x, y):
    ...         loss = (self.model(x) - y).square().mean()
    ...         loss.backward()
    ...         return loss
    >>> seed = flow.manual_seed(0)
    >>> model = flow.nn.Linear(2, 1)
    >>> graph = Training(model, flow.optim.SGD(model.parameters(), lr=0.1))
    >>> x = flow.randn(8, 2)
    >>> losses = [graph(x, x.sum(1, keepdim=True)).item() for _ in range(20)]
    >>> losses[-1] < losses[0] / 10, graph.explain().hits
    (True, 18)
    """

    def __init__(self) -> None:
        self._optimizers: list[Optimizer] = []
        self._schedulers: list[Any] = []
        self._compiled = compile_function(self._step)

    def add_optimizer(self, optim: Optimizer, *, lr_sch: Any = None) -> None:
        """Have every call make a step of an optimizer, and then of its scheduler, if it has one.

        Raises
        ------
        ArgumentTypeError
            For anything but an Optimizer, and for a scheduler without `step`.
        """
        if not isinstance(optim, Optimizer):
            hint = "pass what flow.optim makes"
            raise type_error("add_optimizer", "optim", "an Optimizer", optim, hint)
        if lr_sch is not None and not callable(getattr(lr_sch, "step", None)):
            hint = "pass one of flow.optim.lr_scheduler"
            raise type_error("add_optimizer", "lr_sch", "a scheduler", lr_sch, hint)
        self._optimizers.append(optim)
        if lr_sch is not None:
            self._schedulers.append(lr_sch)

    def build(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result from the arguments of a call; every subclass defines it."""
        raise MissingMethodError(
            f'{type(self).__name__} is missing the required "build" function; define it'
        )

    def _step(self, *args: Any, **kwargs: Any) -> Any:
        for optimizer in self._optimizers:
            optimizer.zero_grad()
        result = self.build(*args, **kwargs)
        for optimizer in self._optimizers:
            optimizer.step()
        return result

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self._compiled(*args, **kwargs)
        for scheduler in self._schedulers:
            scheduler.step()
        return result

    def explain(self) -> Explanation:
        """Return how the calls went, as `flow.explain` does."""
        return explain(self._compiled)

    def _modules(self) -> dict[str, Module]:
        return {name: value for name, value in vars(self).items() if isinstance(value, Module)}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the modules, by the names they have here, and of the optimizers."""
        states: dict[str, Any] = {n: module.state_dict() for n, module in self._modules().items()}
        states["optimizers"] = [optimizer.state_dict() for optimizer in self._optimizers]
        return states

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a result of `state_dict`."""
        for name, module in self._modules().items():
            module.load_state_dict(state_dict[name])
        for optimizer, state in zip(self._optimizers, state_dict["optimizers"], strict=True):
            optimizer.load_state_dict(state)

    def __repr__(self) -> str:
        inside = "".join(f"\n  ({n}): {module!r}" for n, module in self._modules().items())
        return f"{type(self).__name__}({inside}\n)" if inside else f"{type(self).__name__}()"
