"""Writes gradients and training steps into random programs for `flow.compile`."""

from __future__ import annotations

from tests.fuzz.compiled_words import lines
from tests.fuzz.compiled_writer import Writer

OPTIMIZERS = lines("""
SGD({p}, lr=0.1); SGD({p}, lr=0.1, momentum=0.9); Adam({p}, lr=0.05); AdamW({p}, lr=0.05)
SGD({p}, lr=0.1, weight_decay=0.1, nesterov=True, momentum=0.5); Adam({p}, lr=0.05, amsgrad=True)
SGD({p}, lr=0.1, maximize=True); Adam({p}, lr=0.05, weight_decay=0.1, betas=(0.8, 0.9))
""")

SCHEDULERS = lines("""
StepLR(opt, 1, 0.5); ExponentialLR(opt, 0.7); CosineAnnealingLR(opt, 4); LinearLR(opt, 0.5, 1.0, 3)
MultiStepLR(opt, [1, 3], 0.3); LambdaLR(opt, lambda k: 1 / (k + 1))
""")

CLIPPING = lines("""
nn.utils.clip_grad_norm_(params, 0.5); nn.utils.clip_grad_value_(params, 0.2)
nn.utils.clip_grad_norm_(params, 1.0, norm_type=1); nn.utils.clip_grad_norm_([w0], 0.5)
nn.utils.clip_grad_norm_(params, 0.5, norm_type=float("inf"))
""")

# What may happen between calls of a function that trains.
CHANGES = lines("""
opt.step(); opt.zero_grad(set_to_none=False); opt.load_state_dict(opt.state_dict())
opt.param_groups[0]["weight_decay"] = 0.2; opt.param_groups[0]["lr"] = 0.3
opt.add_param_group({"params": [box.w], "lr": 0.2}); opt.zero_grad()
""")


class Training(Writer):
    """Writes gradients that are taken inside of the function, and what is done with them."""

    def optimizer_world(self) -> None:
        of = self.pick(["[w0]", "net.parameters()", "[w0, *net.parameters()]"])
        self.setting(f"params = list({of})")
        self.setting("params = params or [w0]")
        self.setting(f"opt = flow.optim.{self.pick(OPTIMIZERS).format(p='params')}")
        if self.trains:
            self.changes += [*CHANGES, *CLIPPING]
            if self.rarely(2):
                self.setting(f"sched = flow.optim.lr_scheduler.{self.pick(SCHEDULERS)}")
                self.changes += ["sched.step()"] * 12

    def write_gradient(self) -> None:
        """Take a gradient inside."""
        name, of, by = self.new(), self.tensor(), self.pick(["w0", "w0", "x", self.tensor()])
        more = ", create_graph=True" if self.rarely(3) else ", retain_graph=True"
        total = f"({of} * {of}).sum() + ({by} * {by}).sum()"
        self.add(f"{name} = flow.autograd.grad({total}, {by}{more})[0]", name)

    def write_backward(self) -> None:
        of = self.tensor()
        more = self.pick(["", "", "retain_graph=True"])
        if not self.add(f"({of}.sum() + (w0 * w0).sum()).backward({more})"):
            return
        what = self.pick(["read", "step", "clear", "nothing"])
        if what == "read":
            self.make(["w0.grad * {x}", "w0.grad"])
        elif what == "step":
            self.add("with flow.no_grad(): w0.sub_(w0.grad * 0.1)")
        if what in ("step", "clear"):
            self.add("w0.grad = None")

    def write_training(self) -> None:
        name = self.new()
        text = f"{name} = (net({self.tensor()}) ** 2).sum() + (w0 * {self.tensor()}).sum()"
        if self.add(text, name):
            if self.rarely(2):
                self.add("opt.zero_grad()")
            self.add(f"{name}.backward()")
            if self.rarely(3):
                clipping = self.pick(CLIPPING)
                norm = self.new()
                if "norm_" in clipping and self.rarely(2):
                    self.add(f"{norm} = {clipping}", norm)
                else:
                    self.add(clipping)
            self.add("opt.step()")
            if "sched" in self.env and self.rarely(40):
                self.add("sched.step()")
