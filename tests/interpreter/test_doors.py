"""The doors of the default interpreter do what its general walk does, for every op.

`AutogradInterpreter.enter`, `enter1` and `enter2` are `apply` written out. `Plain` takes each op
to `apply`, which runs the same samples; results, nodes, saved tensors and views must agree.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.interpreter.dispatch import dispatch, dispatch1, dispatch2
from oneflow_lite.interpreter.stack import (
    DEFAULT_STACK,
    NO_ATTRS,
    AutogradInterpreter,
    EagerInterpreter,
    Interpreter,
)
from oneflow_lite.ops.op_expr import OpExpr, op_expr
from oneflow_lite.tensors.mode import StateChange
from tests.op_samples import every_op, samples


class Plain(AutogradInterpreter):
    """Takes every op to `apply`."""

    def __init__(self) -> None:
        super().__init__(EagerInterpreter())

    def enter(self, op_expr: OpExpr, inputs: Any, attrs: Any = NO_ATTRS) -> Any:
        return self._apply(op_expr, inputs, attrs)

    enter1, enter2 = Interpreter.enter1, Interpreter.enter2


def told(x: Any) -> Any:
    """Return what a result is, without the identity of its objects."""
    if isinstance(x, (tuple, list)):
        return [told(each) for each in x]
    if not isinstance(x, flow.Tensor):
        return repr(x)
    data = x._data
    view = None
    if x._view is not None:
        view = [step[0].op_type_name for step in x._view.chain()], str(x._view.origin)
    return (
        *(data.shape, data.dtype, data.strides, np.asarray(data).tobytes()),
        *(x.requires_grad, x.is_leaf, x._version, x._inference, view),
    )


def graph(roots: Sequence[Any]) -> list[Any]:
    """Return the nodes behind some tensors: names, numbers, edges, outputs and saved tensors."""
    nodes: dict[int, int] = {}
    lines: list[Any] = []

    def number(node: Any) -> int | None:
        if node is None:
            return None
        if id(node) not in nodes:
            nodes[id(node)] = len(nodes)
            waiting.append(node)
        return nodes[id(node)]

    waiting: list[Any] = []
    lines.append([None if y._edge is None else (number(y._edge[0]), y._edge[1]) for y in roots])
    while waiting:
        node = waiting.pop(0)
        saved = told(node.saved_tensors) if node.edges else ()
        edges = [(number(sender), output) for sender, output in node.edges]
        lines.append(
            (
                node.name(),
                node.topological_nr,
                edges,
                list(map(repr, node.output_tensor_infos)),
                saved,
            )
        )
    return lines


def run(sample: Any, plain: bool, context: Callable[[], Any]) -> tuple[Any, Any, Any]:
    flow.manual_seed(3)
    stack = StateChange(interpreter=Plain()) if plain else contextlib.nullcontext()
    with np.errstate(all="ignore"), stack, context():
        tensors = sample.tensors()
        results = sample.call(*tensors)
        outputs = results if isinstance(results, (tuple, list)) else (results,)
        roots = [y for y in outputs if isinstance(y, flow.Tensor)]
        return told(results), graph([*roots, *tensors]), told(tensors)


MODES: dict[str, Callable[[], Any]] = {
    "recorded": contextlib.nullcontext,
    "no_grad": flow.no_grad,
    "inference": flow.inference_mode,
}


@pytest.mark.parametrize("op", every_op())
def test_doors_do_what_the_walk_does(op: str) -> None:
    for sample in samples(op):
        for name, context in MODES.items():
            try:
                run(sample, False, context)  # so that nothing is loaded late
            except Exception as error:
                with pytest.raises(type(error)) as caught:
                    run(sample, True, context)
                assert str(caught.value) == str(error)
                continue
            quick, walk = run(sample, False, context), run(sample, True, context)
            for have, want in zip(quick, walk, strict=True):
                assert have == want, (name, sample)


def test_each_door_marks_and_records_nothing_in_inference_mode() -> None:
    x = flow.tensor([1.0, -2.0], requires_grad=True)
    with flow.inference_mode(), flow.enable_grad():
        results = [flow.relu(x), x * x, flow.cat([x, x, x]), x.view(2, 1)]
    assert [y.is_inference() for y in results] == [True, True, True, False]  # a view is as its base
    assert not any(y.requires_grad for y in results)
    assert results[0].view(2, 1).is_inference()


# --- The way of an op ---------------------------------------------------------------------------


def frames(function: Callable[[], Any], *watched: Callable[..., Any]) -> list[tuple[str, str]]:
    """Return the calls of methods of an interpreter, as a breakpoint would meet them."""
    codes = {method.__code__ for method in watched}
    seen = []

    def profile(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in codes:
            seen.append((frame.f_code.co_name, frame.f_locals["op_expr"].op_type_name))

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return seen


def test_each_op_of_a_training_step_meets_the_interpreter() -> None:
    net = flow.nn.Sequential(flow.nn.Linear(3, 4), flow.nn.ReLU(), flow.nn.Linear(4, 1))
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1)
    x = flow.ones(2, 3)

    def step() -> None:
        optimizer.zero_grad()
        net(x).sum().backward()
        with flow.use_jit(False):
            optimizer.step()

    step()  # finds the kernels
    kind = AutogradInterpreter
    seen = frames(step, kind.enter, kind.enter1, kind.enter2, kind.apply)
    assert seen.count(("enter1", "relu")) == 1 and seen.count(("enter1", "sum")) == 1
    assert seen.count(("enter", "sgd_update")) == 4
    assert "apply" not in {method for method, _ in seen}  # all of it takes the quick way


def test_dispatch_asks_the_top_of_the_stack() -> None:
    class Doors(Interpreter):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def enter(self, op_expr: OpExpr, inputs: Any, attrs: Any = NO_ATTRS) -> Any:
            self.seen.append(f"enter {len(inputs)}")
            return super().enter(op_expr, inputs, attrs)

        def enter1(self, op_expr: OpExpr, x: Any, attrs: Any = NO_ATTRS) -> Any:
            self.seen.append("enter1")
            return super().enter1(op_expr, x, attrs)

        def enter2(self, op_expr: OpExpr, x: Any, y: Any, attrs: Any = NO_ATTRS) -> Any:
            self.seen.append("enter2")
            return super().enter2(op_expr, x, y, attrs)

    doors = Doors()
    x = flow.tensor([1.0, 2.0])
    with flow.push_interpreter(doors):
        dispatch1(op_expr("relu"), x)
        dispatch2(op_expr("mul"), x, x)
        dispatch(op_expr("where"), (x > 0, x, x))
    # The comparison has two operands, of which one is a number.
    assert doors.seen[:4] == ["enter1", "enter 1", "enter2", "enter 2"]
    assert doors.seen[-1] == "enter 3"


def test_an_operand_that_is_no_tensor_is_refused_at_each_door() -> None:
    for stack in (contextlib.nullcontext(), flow.push_interpreter(Interpreter())):
        with stack, pytest.raises(flow.errors.ArgumentTypeError, match="expected a Tensor"):
            dispatch1(op_expr("relu"), "text")  # type: ignore[arg-type]


def test_a_layer_is_added_once(monkeypatch) -> None:
    from oneflow_lite.interpreter.stack import add_layer

    class Layer(Interpreter):
        def __init__(self, inner: Interpreter) -> None:
            self.inner: Interpreter = inner

    below = DEFAULT_STACK.inner
    monkeypatch.setattr(DEFAULT_STACK, "inner", below)
    add_layer(Layer)
    add_layer(Layer)
    assert type(DEFAULT_STACK.inner) is Layer and DEFAULT_STACK.inner.inner is below
