"""Writes random programs for `flow.compile` whose function is the `forward` of a module."""

from __future__ import annotations

from tests.fuzz.compiled_words import lines
from tests.fuzz.compiled_writer import Writer

CHANGES = lines("""
model.eval(); f.eval(); f.train(); model.train(); f.zero_grad(); model.load_state_dict(saved)
f.load_state_dict(saved); f.load_state_dict({k: v * 0.5 for k, v in f.state_dict().items()})
saved = {k: v.clone() for k, v in f.state_dict().items()}; f.requires_grad_(False)
model.requires_grad_(True); f.offset.mul_(0.5); model.offset = data((3,), 51); model.net = nn.Tanh()
f.weight.grad = data((2, 3), 52); f.weight.data.mul_(0.5); f.net.eval(); model.rate = 0.5
f.weight = nn.Parameter(data((2, 3), 53)); f.register_forward_hook(lambda m, args, out: None)
net(data((2, 3), 54)).sum().backward(); net.eval(); model.register_buffer("offset", data((3,), 55))
""")


class Modules(Writer):
    """Writes a module that holds the parameter, the buffer and the network."""

    def module_world(self) -> None:
        self.setting("class Model(nn.Module): rate = 0.75")
        self.setting("model = Model()")
        self.setting("model.weight = nn.Parameter(w0.detach())")
        self.setting("model.register_buffer('offset', b0)")
        if self.rarely(3):
            self.line("net = compiled(net)")
        self.setting("model.net = net")
        self.setting("w0 = model.weight")
        self.setting("saved = {k: v * 2 for k, v in model.state_dict().items()}")
        self.env["self"] = self.env["model"]
        self.shown.append("model")
        self.known += ["self.weight", "self.offset"] * 2
        self.changes += CHANGES * 2

    def write_member(self) -> None:
        self.make(
            ["self.net({x})", "self.net({x}) * {y}", "{x} * self.weight", "{x} * self.rate"]
            + ["{x} + self.offset", "self.weight", "{x} if self.training else {x} * 2"]
            + ["sum([p.sum() for p in self.parameters()]) + {x}"]
        )
