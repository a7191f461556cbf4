"""`explain().why`: in what a call that is recorded anew differs from the one before."""

from __future__ import annotations

import linecache
import re

import pytest

import oneflow_lite as flow
from oneflow_lite import nn
from tests.compiler.reasons import check_reason


def settings():
    """Return a function, and what it reads outside."""

    class Config:
        scale = 2.0

    config, net, table = Config(), nn.Sequential(nn.Linear(2, 2)), {"a": 1.0}

    def f(x, n=1, mode="fast", **words):
        y = net(x) * config.scale * table["a"]
        return y * n if mode == "fast" and not words else y

    return f, config, net, table


CHANGES = {
    "shape": ("x.shape was (3, 2), is (4, 2)", lambda c, n, t: [flow.ones(4, 2)]),
    "dtype": ("x.dtype was float32, is float64", lambda c, n, t: [flow.ones(3, 2).double()]),
    "strides": ("x.strides was (8, 4), is (4, 12)", lambda c, n, t: [flow.ones(2, 3).t()]),
    "edge": (
        "whether x requires a gradient was False, is True",
        lambda c, n, t: [flow.ones(3, 2, requires_grad=True)],
    ),
    "number": ("n was 1, is 5, at {}:25 in f", lambda c, n, t: [flow.ones(3, 2), 5]),
    "word": ("mode was 'fast', is 'slow'", lambda c, n, t: [flow.ones(3, 2), 1, "slow"]),
    "class": (
        "Config.scale was 2.0, is 3.0, at {}:24 in f",
        lambda c, n, t: setattr(type(c), "scale", 3.0),
    ),
    "key": ("table['a'] was 1.0, is 'b', at {}:24 in f", lambda c, n, t: t.update(a="b")),
    "keys": ("whether 'a' is in table was True, is False, at {}:24 in f",
             lambda c, n, t: t.clear()),
    "missing": (
        "type(Config.scale) is no longer there, at {}:24 in f",
        lambda c, n, t: delattr(type(c), "scale"),
    ),
    "hooks": (
        "whether net has hooks was False, is True, at {}:24 in f",
        lambda c, n, t: n.register_forward_hook(lambda *_: None),
    ),
    "layer": (
        "net[0] stood for an object that is gone, at {}:24 in f",
        lambda c, n, t: n.__setitem__(0, nn.Tanh()),
    ),
    "frozen": (
        "net[0].weight.requires_grad was True, is False",
        lambda c, n, t: n[0].weight.requires_grad_(False),
    ),
    "hook on a gradient": (
        "the hooks of net[0].weight was (), is (the function neg,)",
        lambda c, n, t: n[0].weight.register_hook(flow.negative),
    ),
    "moved": (
        "net[0].weight.dtype was float32, is float64",
        lambda c, n, t: setattr(n[0].weight, "data", n[0].weight.data.double()),
    ),
    "mode": (
        "grad mode was True, is False",
        lambda c, n, t: None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.filterwarnings("ignore")
def test_why_a_call_was_recorded_anew(kind):
    f, config, net, table = settings()
    compiled = flow.compile(f)
    compiled(flow.ones(3, 2), 1, "fast")
    assert compiled.explain().why == ""
    compiled(flow.ones(3, 2), 1, "fast")
    said, change = CHANGES[kind]
    found = change(config, net, table)
    args = [flow.ones(3, 2), 1, "fast"]
    if isinstance(found, list):
        args[: len(found)] = found
    with flow.set_grad_enabled(kind != "mode"):
        try:
            compiled(*args)
        except (AttributeError, KeyError, TypeError, flow.errors.FlowError):
            assert kind in ("dtype", "missing", "key", "keys", "moved")
    assert compiled.explain().why == said.format(__file__)


HEAD = """
import abc
import copy
import random
import threading
import types
import warnings
import numpy as np
import oneflow_lite as flow
from oneflow_lite import nn
w = flow.tensor([1.0, 2.0], requires_grad=True)
v = flow.tensor([1.0, 2.0])
net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
lazy = nn.LazyLinear(2)
opt = flow.optim.SGD([w], lr=0.1)
numbers, table, words, lock = [1.0, 2.0], {"scale": 2.0}, {"a", "b"}, threading.Lock()
array = np.ones(2)
class Config:
    scale = 2.0
config, other = Config(), Config()
first = config
def plus(x): return x + config.scale
k, made = 2.0, None
""".lstrip()
# What a function of `x` and others does, a change between two calls, and what is said of it; # is
# the line of the statement that the reason is about.
CHANGED = [
    ("*args", "y = x * 1\nreturn y * args[0]  #", "k = 3.0", "x, k", "args[0] was 2.0, is 3.0, #"),
    ("**words", "return x * words['k']", "k = v", "x, k=k",
     "type(words['k']) was the class float, is the class Tensor"),
    ("**words", "return x", "k = {'n': 1}", "x, **({} if k == 2.0 else k)",
     "how many arguments, by name, was (1, ()), is (1, ('n',))"),
    ("", "return net(x)  #", "net = nn.Tanh()", "x",
     "net stood for an object that is gone, #"),
    ("", "return x * config.scale  #", "config = other", "x",
     "config was a Config, is another, #"),
    ("", "return x * array.shape[0]  #", "array = np.ones(3)", "x",
     "array stood for an object that is gone, #"),
    ("", "return x * w", "made = flow.inference_mode(); made.__enter__()", "x",
     "inference mode was False, is True"),
    ("", "return x * 2", "flow.set_default_dtype(flow.float64)", "x",
     "the default dtype was float32, is float64"),
    ("", "return x * ('a' in words)  #", "words.discard('a')", "x",
     "whether 'a' is in words was True, is False, #"),
    ("", "y = x * len(numbers)  #\nreturn y", "numbers.append(1.0)", "x",
     "len(numbers) was 2, is 3, #"),
    ("", "return x * isinstance(numbers, abc.ABC)  #", "type('T', (abc.ABC,), {}).register(Config)",
     "x", "the count of registrations with abstract classes was N, is N, #"),
    ("", "return x.add_(1) * v  #", "x = v[:]", "x",
     "it writes memory that is shared: x, #; v"),
    ("", "warnings.warn('hey')\nreturn x", "warnings.simplefilter('error')", "x",
     "a filter raises: hey"),
]  # fmt: skip
EAGER = [
    ("y = x * random.random()  #\nreturn y", "it calls random() of a Random, #"),
    ("y = x * np.random.rand()  #\nreturn y", "it calls rand(), #"),
    ("with lock:  #\n    return x", "it enters lock (a lock), #"),
    ("y = x + array  #\nreturn y", "it applies __add__ to a Tensor and array (a ndarray), #"),
    ("del table['scale']  #\ntable['scale'] = 2.0\nreturn x",
     "it deletes 'scale' of table (a dict), #"),
    ("y = f'{config}'  #\nreturn x", "it writes config (a Config) into a string, #"),
    ("c = copy.deepcopy(net)  #\nreturn c(x)", "it calls __reduce_ex__() of net (a Sequential), #"),
    ("y = x\nreturn config  #", "it returned an object of type Config, #"),
    ("y = plus(x)\nreturn numbers  #", "it returned a list or dict that is also elsewhere, #"),
    ("y = x * 2\ny.note = 1\nif x is not None:\n    return y  #\nreturn x",
     "it returned a tensor with attributes that were set on it, #"),
    ("y = plus(x)\nconfig.kept = iter([x])  #\nreturn y",
     "it put an object of type list_iterator into config.kept, #"),
    ("numbers.append(iter([x]))  #\nreturn x",
     "it put an object of type list_iterator into numbers (a list), #"),
    ("y = x * 2\nw.requires_grad_(not w.requires_grad)  #\nreturn y * w",
     "w began or ceased to require a gradient, #"),
    ("y = x * 2\nw.data = x  #\nreturn y", "w got an array that the call did not make, #"),
    (
        "y = x * w\nreturn flow.utils.checkpoint.checkpoint(net, y)  #",
        "its backward pass does more than compute: code of this package keeps state, #",
    ),
    ("y = x * w\ny.register_hook(\n    lambda d: d * config.scale  #\n)\nreturn -y",
     "its backward pass does more than compute: it reads config, #"),
    ("y = w.tolist()\nw.data = w.data * 2\nreturn y  #",
     "it read out w, which got another array, #"),
    ("y = lazy(x)  #\nreturn y", "lazy.weight gets its shape, #"),
    ("(x * w).sum().backward()\nopt.step()\nopt.param_groups[0]['lr'] = 0.2\nopt.step()  #\n"
     "opt.param_groups[0]['lr'] = 0.1\nw.grad = None\nreturn x",
     "it changes options of opt between two steps, #"),
]  # fmt: skip


def written(parameters: str, body: str) -> tuple[dict, str]:
    """Return a module with a function compiled, and the place that reasons name."""
    name = f"<reasons {len(linecache.cache)}>"
    lines = [f"def f({parameters}):", *[f"    {line}" for line in body.splitlines()]]
    text = HEAD + "\n".join(lines) + "\n"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {"__name__": "reasons"}
    exec(compile(text, name, "exec"), names)
    names["x"] = flow.tensor([1.0, 2.0])
    names["f"] = flow.compile(names["f"])
    at = [i for i, line in enumerate(text.splitlines(), 1) if line.endswith("  #")]
    where = "<lambda>" if "lambda d" in body else "f"
    return names, f"at {name}:{at[0]} in {where}" if at else ""


@pytest.mark.parametrize(("more", "body", "change", "call", "why"), CHANGED)
@pytest.mark.filterwarnings("ignore")
def test_a_change_is_said_with_its_line_and_variable(more, body, change, call, why):
    names, at = written(", ".join(filter(None, ("x", more))), body)
    for _ in range(2):
        exec(f"f({call})", names)
    try:
        exec(change, names)
        exec(f"f({call})", names)
    except UserWarning:
        pass
    finally:
        if names["made"] is not None:
            names["made"].__exit__(None, None, None)
        flow.set_default_dtype(flow.float32)
    said = re.sub(r"was \d\d+, is \d\d+", "was N, is N", names["f"].explain().why)
    assert said == why.replace("#", at)
    check_reason(said, ("x", "w", "args", "words", "n", "hey"))


@pytest.mark.parametrize(("body", "reason"), EAGER)
@pytest.mark.filterwarnings("ignore")
def test_a_refusal_is_said_with_its_line_and_variable(body, reason):
    names, at = written("x", body)
    for _ in range(4):
        names["f"](flow.tensor([1.0, 2.0]))
    assert names["f"].explain().reasons[:1] == [reason.replace("#", at)]
    check_reason(reason.replace("#", at.replace("<", "").replace(">", "")), ())
