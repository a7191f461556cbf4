"""Nothing is kept: what a recording relies on may die, and the recording goes with it."""

from __future__ import annotations

import functools
import gc
import linecache
import os
import sys
import threading
import weakref

import pytest

import oneflow_lite as flow
from oneflow_lite.arrays import locks
from oneflow_lite.compiler import source
from oneflow_lite.static.ir import location
from tests.compiler.constructs import forget

pytestmark = pytest.mark.unjudged("it looks at what is kept alive")
X = flow.ones(2, 4)
model: flow.nn.Module | None = None


def net():
    return flow.nn.Sequential(flow.nn.Linear(4, 8), flow.nn.Dropout(0.1), flow.nn.Linear(8, 1))


def references(net, *others):
    return [weakref.ref(x) for x in (net, net[0], net[0].weight, *others)]


def train(net, optimizer, x):
    optimizer.zero_grad()
    loss = net(x).mean()
    loss.backward()
    optimizer.step()
    return loss.detach()


class Trainer:
    def __init__(self):
        self.net = net()
        self.optimizer = flow.optim.Adam(self.net.parameters())
        self.calls = 0

    @flow.compile
    def fit(self, x):
        self.calls += 1
        self.last = train(self.net, self.optimizer, x)
        return self.last


def a_model_among_the_arguments():
    f, made = flow.compile(lambda net, x: net(x)), net()
    for _ in range(3):
        f(made, X)
    return f, references(made)


def a_model_and_its_optimizer():
    f, made = flow.compile(train), net()
    optimizer = flow.optim.Adam(made.parameters())
    for _ in range(4):
        f(made, optimizer, X)
    return f, references(made, optimizer)


def the_object_of_a_method():
    trainer = Trainer()
    for _ in range(4):
        trainer.fit(X)
    return Trainer.fit, references(trainer.net, trainer.optimizer, trainer)


def a_global_that_is_bound_again():
    global model
    f, model = flow.compile(lambda x: model(x)), net()
    found = references(model)
    for _ in range(3):
        f(X)
    model = None
    return f, found


def a_variable_around_it_that_is_bound_again():
    made = net()
    trainer = Trainer()

    @flow.compile
    def f(x):
        trainer.last = made(x)
        return trainer.last

    found = references(made, trainer)
    for _ in range(3):
        f(X)
    made = trainer = None
    return f, found


def an_attribute_that_is_set_again():
    trainer = Trainer()
    f, found = flow.compile(lambda x: trainer.net(x)), references(trainer.net)
    for _ in range(3):
        f(X)
    trainer.net = trainer.optimizer = None
    return f, found


@pytest.mark.parametrize(
    "work",
    [
        a_model_among_the_arguments,
        a_model_and_its_optimizer,
        the_object_of_a_method,
        a_global_that_is_bound_again,
        a_variable_around_it_that_is_bound_again,
        an_attribute_that_is_set_again,
    ],
    ids=lambda work: work.__name__,
)
def test_a_dead_model_is_freed_with_its_recordings(work):
    f, found = work()
    gc.collect()
    assert f.explain().hits >= 2
    assert [reference() for reference in found] == [None] * len(found)
    assert f.explain().kept == 0


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_refused_model_is_freed():
    f, made = flow.compile(lambda net, x: net(x).sum().item() * x), net()
    for _ in range(3):
        f(made, X)
    found = references(made)
    del made
    gc.collect()
    assert [reference() for reference in found] == [None] * 3
    assert not f._refusals


def test_what_was_compiled_is_freed():
    compiled, in_place = flow.compile(net()), net()
    in_place.compile()
    for call in (compiled, in_place):
        for _ in range(3):
            call(X).sum().backward()
    assert compiled.explain().hits == flow.explain(in_place).hits == 2
    found = [*references(compiled._orig_mod), *references(in_place)]
    del compiled, in_place, call
    gc.collect()
    assert [reference() for reference in found] == [None] * 6


def test_arguments_and_results_are_freed():
    f = flow.compile(lambda batch: {"y": batch["x"] * 2})
    x = flow.ones(3)
    found = [weakref.ref(x), weakref.ref(f({"x": x})["y"])]
    f({"x": x})
    del x
    assert [reference() for reference in found] == [None, None]
    assert f.explain().kept == 1


def test_a_model_that_lives_keeps_its_recordings():
    f, made = flow.compile(lambda net, x: net(x)), net()
    f(made, X)
    f(net(), X)
    gc.collect()
    assert f.explain().kept == 1
    f(made, X)
    assert (f.explain().captures, f.explain().hits) == (2, 1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # a fork beside a thread
def test_locks_go_and_are_free_in_a_child():
    before = len(locks._locks)
    functions = [flow.compile(lambda x: x * 2) for _ in range(10)]
    assert len(locks._locks) == before + 10
    lock = functions[0]._lock
    held, done = threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if not child:
        os._exit(0 if lock.acquire(blocking=False) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    done.set()
    thread.join()
    functions.clear()
    lock = thread = None
    gc.collect()
    assert len(locks._locks) == before


INNER = """
def f(x):
    double = lambda y: y * 2
    return sum([double(x) for _ in range(2)])
"""


@pytest.mark.parametrize("where", ["its own file", "one file", "no file"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_programs_that_come_and_go_leave_nothing(where, monkeypatch):
    """The caches by file and by code are bounded; all of a notebook's cells are files."""
    monkeypatch.setattr(source, "_MOST", 4)
    for name in ("_is_own", "_is_passed_over"):
        small = functools.lru_cache(4)(getattr(location, name).__wrapped__)
        monkeypatch.setattr(location, name, small)

    lines = INNER.splitlines(keepends=True)

    def run(number):
        file = "<one>" if where == "one file" else f"<{number}>"
        if where != "no file":
            linecache.cache.setdefault(file, (len(INNER), None, lines, file))
        names = {}
        exec(compile(INNER, file, "exec"), names)
        f = flow.compile(names["f"])
        for _ in range(3):
            f(X)
        if where == "its own file":
            del linecache.cache[file]

    def blocks_after(numbers):
        for number in numbers:
            run(number)
        gc.collect()
        return sys.getallocatedblocks()

    forget()
    try:
        before = blocks_after(range(30))
        assert blocks_after(range(30, 90)) - before < 60  # less than one for each
    finally:
        forget()
        linecache.cache.pop("<one>", None)


def test_an_array_that_a_program_held_dies_with_the_program():
    main = flow.static.Program()
    scale = flow.tensor([1.0, 2.0])
    with flow.static.program_guard(main):  # the startup program is the one of the process
        flow.static.data("x", [2]) * scale
    held = weakref.ref(scale._data)
    del main, scale
    gc.collect()
    assert held() is None
