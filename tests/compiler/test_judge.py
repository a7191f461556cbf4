"""The judge of `flow.compile` sees what a replay leaves out, and leaves the world as that does."""

from __future__ import annotations

import argparse
import collections
import contextlib
import enum
import functools
import random
import re
import sys
import threading
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import oneflow_lite as flow
from oneflow_lite.errors import CaptureError
from oneflow_lite.nn.hooks import EVERYWHERE
from oneflow_lite.nn.modules.module import register_module_forward_hook
from tests.judge import Judge, JudgeError, judge

nn = flow.nn
pytestmark = pytest.mark.unjudged("it has judges of its own")


class Box:
    rate = 2.0

    def __init__(self, **items: Any) -> None:
        self.__dict__.update(items)

    @functools.cached_property
    def made(self) -> float:
        return 1.0


class Slotted:
    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Words(dict[str, Any]):
    """A dict of the user's own."""


class Color(enum.Enum):
    RED = 1


class Reading:
    """A compiled function whose replay is what a test says."""

    def __init__(self, function: Any, replay: Any) -> None:
        self.__wrapped__, self.replay, self.hits = function, replay, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.hits += 1
        return self.replay(*args, **kwargs)

    def explain(self) -> Any:
        return SimpleNamespace(hits=self.hits)


def world() -> dict[str, Any]:
    """Return the globals of a little program."""
    flow.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Dropout(0.5))
    w = flow.tensor([1.0, 2.0], requires_grad=True)
    w.grad = flow.ones(2)
    optimizer = flow.optim.Adam([w], lr=0.1)
    base = flow.arange(6.0)

    def counter() -> Any:
        calls = 0

        def count(step: int) -> None:
            nonlocal calls
            calls += step

        return count

    def rows() -> Any:
        yield from range(9)

    return {
        "__name__": "a_program",
        "flow": flow, "nn": nn, "np": np, "random": random, "sys": sys,
        "Box": type("Box", (Box,), {"__module__": "a_program", "shared": []}), "Words": Words,
        "net": net, "w": w, "optimizer": optimizer, "base": base, "view": base[2:4],
        "detached": base.detach(), "plain": flow.zeros(2), "hidden": w * 2,
        "sched": flow.optim.lr_scheduler.StepLR(optimizer, 1),
        "box": Box(count=0, items=[1], table={"a": 1}), "slotted": Slotted(), "number": 1,
        "words": Words(a=1), "ordered": collections.OrderedDict(a=1, b=2), "kinds": {1, "a"},
        "queue": collections.deque([1, 2], 3), "counts": collections.Counter("ab"),
        "groups": collections.defaultdict(list), "options": argparse.Namespace(rate=1),
        "simple": SimpleNamespace(rate=1), "error": ValueError(1),
        "array": np.zeros(3), "strided": np.zeros((3, 2)).T, "count": counter(), "rows": rows(),
        "listed": iter([1, 2, 3]), "half": functools.partial(pow, 2), "helper": lambda: None,
        "everywhere": register_module_forward_hook,
        "own": flow.Generator().manual_seed(3), "rng": np.random.default_rng(3),
        "dice": random.Random(3), "Color": Color,
    }  # fmt: skip


def function(body: str, scope: dict[str, Any]) -> FunctionType:
    exec(f"def f(*args):\n    {body}", scope)
    made: FunctionType = scope.pop("f")
    return made


def ruling(plain: Any, replay: Any, *args: Any) -> str | None:
    """Return what the judge says of a replay."""
    compiled = Reading(plain, replay)
    judging = Judge(raises=False)
    with contextlib.suppress(ArithmeticError):
        judging(compiled, args, {}, None, ())
    assert compiled.hits == judging.calls == 1
    return judging.verdicts[0] if judging.verdicts else None


# What a function does, and how the judge calls what is missing when a replay does not.
EFFECTS = {
    "box.count += 1": "the global box.count",
    "box.new = 1": "the global box.new",
    "del box.count": "the global box.count",
    "box.items.append(2)": "the global box.items[1]",
    "box.items[0] = 3": "the global box.items[0]",
    "box.items = [1]": "the global box.items",
    "box.table['b'] = 1": "the global box.table['b']",
    "box.table['a'] = 1.0": "the global box.table['a']",
    "box.table['a'] = True": "the global box.table['a']",
    "box.made": "the global box.made",
    "Box.rate = 3.0": "the global Box.rate",
    "Box.shared.append(1)": "the global Box.shared[0]",
    "Box.new = 1": "the global Box.new",
    "slotted.count += 1": "the global slotted.count",
    "del slotted.count": "the global slotted.count",
    "global number; number += 1": "the global number",
    "global fresh; fresh = 1": "the global fresh",
    "words['b'] = 1": "the global words['b']",
    "words.name = 1": "the global words.name",
    "ordered.move_to_end('a')": "the global ordered",
    "kinds.add(2)": "the global kinds's elements",
    "queue.append(3)": "the global queue[2]",
    "counts['a'] += 1": "the global counts['a']",
    "groups['a']": "the global groups['a']",
    "options.rate = 2": "the global options.rate",
    "simple.rate = 2": "the global simple.rate",
    "error.note = 2": "the global error.note",
    "array[1] = 1": "the global array's values",
    "strided[1, 1] = 1": "the global strided's values",
    "count(1)": "the variable calls",
    "next(rows)": "the global rows's place",
    "next(listed)": "the global listed's rest",
    "half.keywords['mod'] = 3": "the global half.keywords['mod']",
    "helper.calls = 1": "the global helper.calls",
    "helper.__defaults__ = (1,)": "the global helper.__defaults__",
    "plain.add_(1)": "the global plain's values",
    "plain.mul_(1)": "the global plain.memory.version",
    "plain.note = 1": "the global plain.note",
    "plain.requires_grad_()": "the global plain's place in the graph",
    "plain.data = flow.ones(2)": "the global plain's values",
    "plain.grad = flow.ones(2)": "the global plain.grad",
    "base.add_(1)": "the global base's values",
    "view.zero_()": "the global view's values",
    "detached.mul_(1)": "the global detached.memory.version",
    "w.grad = None": "the global w.grad",
    "w.grad = w.grad.clone()": "the global w.grad",
    "w.grad.add_(1)": "the global w.grad's values",
    "w.sum().backward()": "the global w.grad's values",
    "w.register_hook(print)": "the global w's hook 0",
    "w.register_post_accumulate_grad_hook(print)": "the global w's hook 0",
    "w.grad_fn_node.register_hook(print)": "the global w's hook 0",
    "hidden.retain_grad()": "the global hidden.retains_grad",
    "hidden.sum().backward()": "is freed",
    "optimizer.step()": "the global optimizer._scalars",
    "optimizer.param_groups[0]['lr'] = 1.0": "the global optimizer.param_groups[0]['lr']",
    "optimizer.zero_grad()": ".grad",
    "sched.last_epoch += 1": "the global sched.last_epoch",
    "net.eval()": "the global net.training",
    "net[1].running_mean.add_(1)": "running_mean']'s values",
    "net[0].bias = None": "bias",
    "net[2].p = 0.25": "the global net._modules['2'].p",
    "net.register_forward_hook(print)": "the global net._forward_hooks",
    "net(flow.ones(2, 2))": "the default generator",
    "flow.rand(2)": "the default generator's state",
    "own.manual_seed(4)": "the global own",
    "flow.rand(2, generator=own)": "the global own",
    "rng.random()": "the global rng's state",
    "dice.random()": "the global dice's state",
    "random.random()": "the generator of `random`",
    "np.random.rand()": "the generator of `numpy.random`",
    "flow.set_grad_enabled(False)": "grad mode",
    "flow.set_default_dtype(flow.float64)": "the default dtype",
    "print('hey')": "the output",
    "print('hey', file=sys.stderr)": "the output",
    "everywhere(print)": "the hooks on all modules",
    "args[0].add_(1)": "args[0]'s values",
    "args[1].append(1)": "args[1]",
    "args[2].count += 1": "args[2].count",
    "return 1": "the result",
    "raise ZeroDivisionError": "the exception",
}  # fmt: skip


@pytest.fixture(autouse=True)
def switches():
    """Put back what effects switch for the whole process, and a replay leaves switched."""
    yield
    flow.set_grad_enabled(True)
    flow.set_default_dtype(flow.float32)
    EVERYWHERE.clear()


@pytest.mark.parametrize("body", EFFECTS)
def test_an_effect_that_a_replay_leaves_out_is_named_and_taken_back(body):
    scope = world()
    plain = function(body, scope)
    args = (flow.zeros(2), [], Box(count=0))
    said = ruling(plain, function("pass", scope), *args)
    assert said is not None
    assert EFFECTS[body] in said
    # The plain function left nothing behind: as if it had not run, it is missed once more.
    again = ruling(plain, function("pass", scope), *args)
    assert again is not None
    assert re.sub(r"\d+", "", again) == re.sub(r"\d+", "", said)  # hooks have numbers of their own


@pytest.mark.parametrize("body", EFFECTS)
def test_an_effect_that_a_replay_has_as_well_is_no_difference(body):
    scope = world()
    plain = function(body, scope)
    assert ruling(plain, plain, flow.zeros(2), [], Box(count=0)) is None


# Pairs of results: what the plain function returns, and what the replay does.
RESULTS = {
    "the last bit": ("x * 1", "x * 1.0000001", "the result's values"),
    "the sign of zero": ("x * 0", "x * -0.0", "the result's values"),
    "a nan": ("x + float('nan')", "x * 1", "the result's values"),
    "a dtype": ("x * 1", "x.double()", "the result.dtype"),
    "a shape": ("x * 1", "x[:1] * 1", "the result.shape"),
    "strides": ("m * 1", "turned * 1", "the result.stride()"),
    "a class": ("x * 1", "nn.Parameter(x * 1, False)", "the result's type"),
    "a gradient required": ("x * w", "(x * w).detach()", "the result's place in the graph"),
    "a leaf": ("x * w", "(x * w).detach().requires_grad_()", "the result's place in the graph"),
    "a version": ("(x * 1).add_(0)", "x * 1", "the result.memory.version"),
    "a view": ("x[:]", "x * 1", "the result's memory"),
    "a base": ("x[:]", "x.detach()", "the result._base"),
    "shared memory": ("x.detach()", "x.data", "the result.memory"),
    "the argument itself": ("x", "x[:]", "the result"),
    "an outer tensor": ("w", "w * 1", "the result"),
    "a gradient": ("w.grad", "w.grad.clone()", "the result"),
    "twice the same": ("[x * 1] * 2", "[x * 1, x * 1]", "the result[1]"),
    "one list twice": ("[[x]] * 2", "[[x], [x]]", "the result[1]"),
    "a list": ("[x]", "(x,)", "the result's type"),
    "an order": ("{'a': 1, 'b': 2}", "{'b': 2, 'a': 1}", "the result"),
    "a number": ("1", "2", "the result"),
    "a type of number": ("1", "1.0", "the result"),
    "a bool": ("1", "True", "the result"),
    "an array": ("x.numpy() * 1", "x.numpy() * 2", "the result's values"),
    "an object": ("Box(a=1)", "Box(a=2)", "the result.a"),
    "inference": ("flow.inference_mode()(flow.ones)(2)", "flow.ones(2)", "is_inference()"),
    "an attribute": ("box", "Box(**vars(box))", "the result"),
    "retaining": ("hidden", "hidden * 1", "the result"),
    "an exception": ("1 / 0", "x.no", "the exception"),
    "a message": ("1 / 0", "1 % 0", "the exception"),
}


@pytest.mark.parametrize("what", RESULTS)
def test_another_result_is_named(what):
    plain, other, named = RESULTS[what]
    scope = world() | {"x": flow.tensor([1.5, 2.5]), "m": flow.ones(2, 3)}
    scope["turned"] = flow.ones(3, 2).t()
    functions = [function(f"return {text}", scope) for text in (plain, other)]
    if what == "an exception":
        with pytest.raises(AttributeError):
            ruling(*functions)
        return
    said = ruling(*functions)
    assert said is not None
    assert named in said
    assert ruling(functions[0], functions[0]) is None
    assert ruling(functions[1], functions[1]) is None


def test_one_nan_is_as_good_as_another():
    bits = [0x7FC00000, 0xFFC00001]
    values = [flow.from_numpy(np.array([b], np.uint32).view(np.float32)) for b in bits]
    assert ruling(lambda: values[0] * 1, lambda: values[1] * 1) is None


def test_freed_nodes_of_an_outer_graph_are_missed():
    scope = world()
    hidden = (scope["w"] * scope["w"]).exp()

    def adding():
        scope["w"].grad.add_(scope["w"].detach())

    assert "exp_backward (0) is freed" in str(ruling(lambda: hidden.sum().backward(), adding))
    hidden.sum().backward()  # the graph is whole again


def test_the_ops_are_compared_with_those_of_the_recording():
    f = flow.compile(lambda x: (x * 2.0).exp())
    with judge() as judged:
        f(flow.ones(2))
        f(flow.ones(2))
    assert (judged.calls, judged.verdicts) == (1, [])
    trace = f._recordings[0].trace
    x = flow.ones(2)
    for plain, said in {
        lambda x: (x * 2.0).exp(): None,
        lambda x: (x * 3.0).exp() * 0 + (x * 2.0).exp(): "op 0, mul(): input 1 is another number",
        lambda x: (x * 2.0).exp() * 1: "op 2: the plain function dispatches mul(), the recording",
        lambda x: x * 2.0: "op 1: the recording has exp(), the plain function none",
        lambda x: (x + 2.0).exp(): "op 0, add(): the name: the recording has mul",
        lambda x: (x[None] * 2.0).exp()[0]: "the name",
    }.items():
        judging = Judge(raises=False)
        judging(Reading(plain, lambda x: (x * 2.0).exp()), (x,), {}, trace, ())
        assert (said is None) == (not judging.verdicts)
        assert said is None or said in judging.verdicts[0]


def test_the_first_replays_may_be_enough():
    double = flow.compile(lambda x: x * 2)
    with judge(most=3) as judged:
        for _ in range(6):
            double(flow.ones(2))
    assert (judged.calls, double.explain().hits) == (3, 5)


def test_attributes_of_ops_are_compared():
    f = flow.compile(lambda x: x.sum(0))
    with judge():
        f(flow.ones(2, 2))
    judging = Judge(raises=False)
    trace = f._recordings[0].trace
    judging(Reading(lambda x: x.sum(1), lambda x: x.sum(0)), (flow.ones(2, 2),), {}, trace, ())
    assert "op 0, sum(): the attribute dim" in judging.verdicts[0]


def test_a_recording_that_does_not_match_twice_is_told():
    compiled = Reading(lambda: None, lambda: None)
    compiled.explain = lambda: SimpleNamespace(hits=0)
    judging = Judge(raises=False)
    judging(compiled, (), {}, None, ())
    assert "does not match any more" in judging.verdicts[0]


class TestTheMode:
    def test_it_is_off_by_default_and_may_be_nested(self):
        from oneflow_lite.compiler import recording as module

        assert module.judge is None
        with judge() as outer:
            with judge(raises=False) as inner:
                assert module.judge is inner
            assert module.judge is outer
        assert module.judge is None

    def test_training_steps_are_judged_without_a_word(self):
        net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Dropout(0.5), nn.Linear(3, 1))
        optimizer = flow.optim.AdamW(net.parameters(), lr=0.1)

        @flow.compile
        def step(x):
            optimizer.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        losses = []
        with judge() as judged:
            for _ in range(5):
                losses.append(step(flow.rand(4, 2)).item())
        assert judged.calls == step.explain().hits == 3
        assert len(set(losses)) == 5

    def test_control_flow_in_the_program_is_compared_up_to_rounding(self):
        w = flow.ones(2, requires_grad=True)
        f = flow.compile(lambda x: flow.static.nn.cond(x.sum() > 0, lambda: w.t() * x, lambda: -w))
        with judge() as judged:
            for sign in (1, -1, 1):
                f(flow.ones(2) * sign)
        assert judged.calls == 2

    def test_what_is_caught_inside_is_raised_at_the_end(self):
        with pytest.raises(JudgeError, match="the replay left 2"), judge() as judged:
            with contextlib.suppress(Exception):
                judged(Reading(lambda: 1, lambda: 2), (), {}, None, ())

    def test_calls_that_are_recorded_are_judged_on_demand(self):
        calls = []

        def f(x):
            calls.insert(0, 1)
            return x * 2

        compiled = flow.compile(f, fullgraph=True)
        with judge(recordings=True) as judged:
            with pytest.raises(CaptureError):
                compiled(flow.ones(2))
            flow.compile(lambda x: x + 1)(flow.ones(2))
        assert (judged.calls, calls) == (2, [])

    def test_random_numbers_on_cuda_are_not_judged(self, device):
        f = flow.compile(lambda x: x * flow.rand(2, device=device))
        with judge() as judged:
            for _ in range(3):
                f(flow.ones(2, device=device))
        assert f.explain().hits == 2
        assert judged.calls == (2 if device == "cpu" else 0)

    def test_threads_are_judged_one_after_the_other(self):
        w = flow.tensor([1.0, 2.0], requires_grad=True)
        f = flow.compile(lambda x: (x * w).tanh())
        wrong = []

        def work(k):
            for i in range(20):
                x = flow.tensor([k + 1.0, i])
                if not flow.equal(f(x), (x * w).tanh()):
                    wrong.append((k, i))

        with judge() as judged:
            threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert not wrong
        assert judged.calls == f.explain().hits > 30


def test_what_a_replay_prints_is_printed_once(capsys):
    assert ruling(lambda: print("hey"), lambda: print("hey")) is None
    assert capsys.readouterr().out == "hey\n"
