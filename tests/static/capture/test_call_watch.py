"""What users' code calls while it is watched."""

import io
import math
import os
import sys
import time
from contextlib import redirect_stdout

import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.static.capture.call_watch import CallWatch
from oneflow_lite.static.capture.outside import Outside

hidden = {}
text = "a,b"


def reasons_of(fn, *args):
    outside = Outside.of(fn, args, {})
    with CallWatch() as watch:
        fn(*args)
    return watch.reasons(outside)


@pytest.mark.parametrize(
    "f, word",
    [
        (lambda x: print(end=""), "print()"),
        (lambda x: time.time(), "time()"),
        (lambda x: os.environ.get("HOME"), "environ"),
        (lambda x: os.getcwd(), "getcwd"),
        (lambda x: open(os.devnull).close(), "open()"),
        (lambda x: eval("1"), "eval()"),
        (lambda x: exec("1"), "exec()"),
        (lambda x: globals(), "globals()"),
        (lambda x: locals(), "locals()"),
        (lambda x: id(x), "id()"),
        (lambda x: hash("a"), "hash()"),
        (lambda x: sys.getrefcount(x), "getrefcount"),
        (lambda x: list(map(print, [])), "print()"),
        (lambda x: flow.manual_seed(1), "manual_seed()"),
        (lambda x: flow.set_default_dtype(flow.float32), "set_default_dtype()"),
        (lambda x: x.numpy().sum(), "sum"),
        (lambda x: __import__("math"), "__import__()"),
        (lambda x: int.__subclasses__(), "__subclasses__()"),
    ],
)
def test_calls_with_effects_or_hidden_state_are_reported(f, word):
    found = reasons_of(f, flow.ones(1))
    assert any(word in reason for reason in found), found


@pytest.mark.parametrize(
    "f",
    [
        lambda x: [abs(-1), max(1, 2), len([1]), sorted([2, 1], key=lambda v: -v), sum([1])],
        lambda x: text.split(",")[0].upper().join(["a"]),
        lambda x: math.sqrt(2.0) + math.pi,
        lambda x: {"a": 1}.get("a"),
        lambda x: isinstance(x, flow.Tensor) and callable(x),
        lambda x: [*map(str, range(3)), *reversed([1]), *filter(None, [0, 1])],
        lambda x: next(iter([1])),
        lambda x: sum(v for v in [1, 2] if v),
        lambda x: super(nn.Linear, nn.Linear(1, 1)).train(),
        lambda x: flow.nn.functional.relu(x).reshape(-1).sum(),
        lambda x: divmod(7, 2) + (round(2.5), pow(2, 3)),
    ],
)
def test_calls_without_effects_have_no_reason(f):
    assert reasons_of(f, flow.ones(1)) == []


def test_the_line_of_the_call_is_named():
    def f(x):
        return time.perf_counter()

    (reason, *_) = [r for r in reasons_of(f, 1) if "calls" in r]
    line = f.__code__.co_firstlineno + 1
    assert reason == f"f() calls perf_counter() in line {line} of {__file__}"


def test_calls_inside_of_hooks_and_forwards_are_seen():
    class Loud(nn.Module):
        def forward(self, x):
            print(end="")
            return x

    hooked = nn.Identity()
    hooked.register_forward_hook(lambda m, a, y: print(end=""))
    for module in (nn.Sequential(Loud()), hooked):
        assert any("print()" in r for r in reasons_of(module, flow.ones(1)))


def test_code_that_nothing_seen_leads_to_is_reported():
    class Hidden:
        """Keeps functions where no walk finds them."""

        def __init__(self):
            self.known = iter([eval("lambda x: x * 2")])

    found = reasons_of(lambda x, h: next(h.known)(x), flow.ones(1), Hidden())
    assert any("not understood" in reason for reason in found)


def test_a_profiler_that_was_set_before_goes_on():
    events = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, arg: events.append(frame.f_code.co_name))
    mine = sys.getprofile()
    try:
        with CallWatch() as watch:
            flow.relu(flow.ones(1))
        assert sys.getprofile() is mine
    finally:
        sys.setprofile(before)
    assert "relu" in events
    assert any(code.co_name == "relu" for code in watch.own)


def test_the_profiler_is_taken_off_after_an_error():
    with pytest.raises(ZeroDivisionError), CallWatch():
        raise ZeroDivisionError
    assert not isinstance(getattr(sys.getprofile(), "__self__", None), CallWatch)


def test_what_a_kernel_calls_is_the_ops_own():
    with redirect_stdout(io.StringIO()) as out:

        @flow.register_op("watched_loud")
        def loud(xp, x):
            print("kernel")
            return x + 1

        def f(x):
            y = loud(x)
            print("user")
            return y

        try:
            found = reasons_of(f, flow.ones(1))
        finally:
            for registry in ("KERNELS", "FUNCTORS"):
                getattr(flow.registry, registry).remove("watched_loud")
    assert out.getvalue() == "kernel\nuser\n"
    assert len([r for r in found if "calls print()" in r]) == 1


@pytest.mark.parametrize("name", ["cupy_tools", "namedtuple_models", "cupyx"])
def test_modules_of_users_are_watched_whatever_their_name(name):
    scope = {"__name__": name}
    exec(compile("def f(x):\n    print(end='')\n    return x", f"/home/{name}.py", "exec"), scope)
    assert any("print()" in reason for reason in reasons_of(scope["f"], flow.ones(1)))


def test_results_with_names_are_made_without_a_reason():
    assert reasons_of(lambda x: flow.topk(x, 1).values, flow.ones(3)) == []
    assert reasons_of(lambda x: x.max(dim=0).indices, flow.ones(3)) == []
