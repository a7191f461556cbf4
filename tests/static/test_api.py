"""The names of `flow.static` and `flow.compile`, their parameters, and what each is known by."""

from __future__ import annotations

import inspect
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite import errors, static

SIGNATURES = {
    "static.data": "name, shape, dtype='float32'",
    "static.program_guard": "main_program, startup_program=None",
    "static.default_main_program": "",
    "static.default_startup_program": "",
    "static.append_backward": "loss, parameter_list=None, no_grad_set=None",
    "static.gradients": "targets, inputs",
    "static.save": "program, path",
    "static.load": "path",
    "static.nn.cond": "pred, true_fn, false_fn",
    "static.nn.while_loop": "cond, body, loop_vars",
    "static.nn.switch_case": "branch_index, branch_fns",
    "static.Program": "",
    "static.Program.global_block": "self",
    "static.Program.clone": "self, for_test=False",
    "static.Program.list_vars": "self",
    "static.Program.fingerprint": "self",
    "static.Program.to_dot": "self",
    "static.Executor": "place=None",
    "static.Executor.run": (
        "self, program=None, feed=None, fetch_list=None, scope=None, return_numpy=True"
    ),
    "static.Executor.analyse": "self, program=None, feed=None, fetch_list=None",
    "static.InterpreterCore": "program, feeds, fetches",
    "static.InterpreterCore.run": "self, feeds, externals",
    "static.Scope": "",
    "static.Scope.find_var": "self, name",
    "static.global_scope": "",
    "static.scope_guard": "scope",
    "optim.Optimizer.minimize": "self, loss",
    "compile": "model, *, fullgraph=False, mode=None",
}


@pytest.mark.parametrize(("name", "parameters"), SIGNATURES.items(), ids=SIGNATURES)
def test_a_signature_begins_as_it_is_known(name: str, parameters: str) -> None:
    """Names in order, and what may be left out; more may follow if it may be left out, too."""
    known = _signature(parameters)
    found = list(inspect.signature(attrgetter(name)(flow)).parameters.values())
    for want, have in zip(known, found, strict=False):
        assert (have.name, have.kind) == (want.name, want.kind)
        assert want.default in (want.empty, have.default)
    assert len(found) >= len(known)
    assert all(p.default is not p.empty for p in found[len(known) :])


def _signature(parameters: str) -> list[inspect.Parameter]:
    return list(inspect.signature(eval(f"lambda {parameters}: None")).parameters.values())


class Captured:
    """A training step, captured and analysed."""

    def __init__(self) -> None:
        self.main, self.startup = static.Program(), static.Program()
        with static.program_guard(self.main, self.startup):
            self.inside = static.default_main_program(), static.default_startup_program()
            self.x = static.data("x", [4, 3])
            self.loss = flow.nn.Linear(3, 2)(self.x).square().mean()
            self.optimizer = flow.optim.Adam(lr=0.1)  # it takes the parameters of the program
            self.ops, self.pairs = self.optimizer.minimize(self.loss)
        self.executor, self.scope = static.Executor(), static.Scope()
        self.core = self.executor.analyse(self.main, ["x"], [self.loss])


@pytest.fixture(scope="module")
def step() -> Captured:
    return Captured()


def test_the_guard_sets_the_default_programs(step: Captured) -> None:
    assert step.inside == (step.main, step.startup)
    assert static.default_main_program() is not step.main


def test_parts_of_a_program(step: Captured) -> None:
    block = step.main.global_block()
    assert step.main.blocks[0] is block
    assert block.parent is None
    assert isinstance(block, static.Block)
    for op in block.ops:
        assert isinstance(op, static.OpDesc)
        assert isinstance(op.type, str)
        assert set(op.outputs) <= set(block.vars)
        assert {name for name in op.inputs if name is not None} <= set(block.vars)
        assert isinstance(op.attrs, dict)
        assert op.location is not None
        assert op.location.filename == __file__
    assert [desc.name for desc in step.main.list_vars()] == list(block.vars)
    desc = block.vars["x"]
    assert isinstance(desc, static.VarDesc)
    assert (desc.name, desc.shape, desc.dtype) == ("x", (4, 3), np.float32)
    assert (desc.persistable, desc.stop_gradient, desc.need_check_feed) == (False, True, True)
    assert block.vars["parameter_0"].persistable


def test_a_symbolic_tensor_has_a_name(step: Captured) -> None:
    assert step.x.name == "x"
    assert step.loss.name in step.main.global_block().vars


def test_minimize_returns_ops_and_pairs(step: Captured) -> None:
    assert [op.type for op in step.ops] == ["adam_update"] * 2
    assert [parameter.name for parameter, _ in step.pairs] == ["parameter_0", "parameter_1"]
    assert [gradient.shape for _, gradient in step.pairs] == [(2, 3), (2,)]
    backward = [op.type for op in step.main.global_block().ops if op.role == "backward"]
    assert backward[0] == "fill_constant"


def test_append_backward_returns_pairs() -> None:
    with static.program_guard(static.Program(), static.Program()):
        loss = flow.nn.Linear(3, 2)(static.data("x", [4, 3])).sum()
        pairs = static.append_backward(loss)
    assert [(type(p), g.shape) for p, g in pairs] == [
        (flow.nn.Parameter, (2, 3)),
        (flow.nn.Parameter, (2,)),
    ]


def test_what_an_analysed_program_shows(step: Captured) -> None:
    core = step.core
    assert isinstance(core, static.InterpreterCore)
    names = [instruction.name for instruction in core.instructions]
    assert names[0] == "feed(x)"
    assert names[-1] == f"fetch({step.loss.name})"
    assert [type(count) for count in core.dependency_count] == [int] * len(names)
    assert len(core.downstream) == len(core.downstream_before_shrink) == len(names)
    for lives in (core.last_live_ops, core.last_live_ops_before_shrink):
        assert {name for users in lives.values() for name in users} <= set(names)
        assert "x" in lives
    assert core.memory_plan.places
    assert all(name in str(core) for name in names)


def test_analyse_takes_names_or_arrays_and_returns_one_object(step: Captured) -> None:
    feed = {"x": np.ones((4, 3), np.float32)}
    assert step.executor.analyse(step.main, feed, [step.loss.name]) is step.core


def test_run_returns_a_list_by_tensor_or_name(step: Captured) -> None:
    executor, scope = step.executor, step.scope
    assert executor.run(step.startup, scope=scope) == []
    feed = {"x": np.ones((4, 3), np.float32)}
    found = executor.run(step.main, feed, [step.loss, step.loss.name], scope)
    assert type(found) is list
    assert [type(array) for array in found] == [np.ndarray] * 2
    (as_tensor,) = executor.run(step.main, feed, [step.loss], scope, return_numpy=False)
    assert isinstance(as_tensor, flow.Tensor)


def test_an_unknown_feed_raises_and_that_is_documented(step: Captured) -> None:
    feed = {"x": np.ones((4, 3), np.float32), "z": np.ones(1, np.float32)}
    with pytest.raises(errors.ArgumentError, match="'z'"):
        step.executor.run(step.main, feed, [step.loss], step.scope)
    assert "unknown" in str(static.Executor.run.__doc__)


def test_save_and_load(step: Captured, tmp_path: Any) -> None:
    step.executor.run(step.startup, scope=step.scope)
    with static.scope_guard(step.scope):
        static.save(step.main, tmp_path / "step.safetensors")
    program, scope = static.load(tmp_path / "step.safetensors")
    assert program.fingerprint() == step.main.fingerprint()
    assert isinstance(scope, static.Scope)


def test_clone_for_test_has_no_updates(step: Captured) -> None:
    clone = step.main.clone(for_test=True)
    assert {op.role for op in clone.global_block().ops} == {"forward"}
    assert step.main.clone().fingerprint() == step.main.fingerprint()


def test_what_is_explained() -> None:
    double = flow.compile(lambda x: x * 2, fullgraph=True)
    for _ in range(3):
        double(flow.ones(2))
    said = double.explain()
    assert (said.captures, said.hits, said.fallbacks, said.reasons) == (1, 2, 0, [])


def test_a_compiled_module_is_explained_too() -> None:
    net = flow.compile(flow.nn.Linear(2, 1))
    net(flow.ones(1, 2))
    assert net.explain().captures == 1


def test_a_capture_error_is_a_runtime_error() -> None:
    assert issubclass(errors.CaptureError, RuntimeError)
    with pytest.raises(errors.CaptureError):
        flow.compile(lambda x: x.item() > 0, fullgraph=True)(flow.ones(()))
