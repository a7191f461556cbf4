"""`explain().why`: in what a call that is recorded anew differs from the one before."""

from __future__ import annotations

import pytest

import oneflow_lite as flow
from oneflow_lite import nn


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
    "number": ("n was 1, is 5, at {}:21 in f", lambda c, n, t: [flow.ones(3, 2), 5]),
    "word": ("mode was 'fast', is 'slow'", lambda c, n, t: [flow.ones(3, 2), 1, "slow"]),
    "class": (
        "Config.scale was 2.0, is 3.0, at {}:20 in f",
        lambda c, n, t: setattr(type(c), "scale", 3.0),
    ),
    "key": ("table['a'] was 1.0, is 'b', at {}:20 in f", lambda c, n, t: t.update(a="b")),
    "keys": ("whether table has the key 'a' was True, is False, at {}:20 in f",
             lambda c, n, t: t.clear()),
    "missing": (
        "type(Config.scale) is no longer there, at {}:20 in f",
        lambda c, n, t: delattr(type(c), "scale"),
    ),
    "hooks": (
        "whether net has hooks was False, is True, at {}:20 in f",
        lambda c, n, t: n.register_forward_hook(lambda *_: None),
    ),
    "layer": (
        "",  # the recording went with the layer
        lambda c, n, t: n.__setitem__(0, nn.Tanh()),
    ),
    "frozen": (
        "net[0].weight.requires_grad was True, is False",
        lambda c, n, t: n[0].weight.requires_grad_(False),
    ),
    "hook on a gradient": (
        "the hooks of net[0].weight was (), is a tuple",
        lambda c, n, t: n[0].weight.register_hook(lambda d: d),
    ),
    "moved": (
        "net[0].weight.dtype was float32, is float64",
        lambda c, n, t: setattr(n[0].weight, "data", n[0].weight.data.double()),
    ),
    "mode": (
        "the modes of autograd, the default dtype or device was (True, False, float32, cpu), "
        "is (False, False, float32, cpu)",
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
