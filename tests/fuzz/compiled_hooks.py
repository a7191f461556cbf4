"""Writes hooks into random programs for `flow.compile`: on gradients and on modules."""

from __future__ import annotations

from tests.fuzz.compiled_words import lines
from tests.fuzz.compiled_writer import Writer

# What a hook on a gradient computes inside the function; most can be replayed.
INSIDE = lines("""
lambda d: d * 2; lambda d: d * 0.5; lambda d: None; lambda d: d.clamp(-1, 1); lambda d: d * d
lambda d: d.neg(); lambda d: flow.where(d > 0, d, 0 * d); lambda d: d + 1
""")

# Those of the world may also note what they see.
ON_LEAVES = lines("""
{p}.register_hook(lambda d: d * 0.5); {p}.register_hook(lambda d: log.append(d.clone()))
{p}.register_hook(lambda d: d.clamp(-0.5, 0.5))
{p}.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.clone()))
{p}.register_post_accumulate_grad_hook(lambda p: (p.grad.mul_(0.5), None)[1])
""")
PURE_ON_LEAVES = lines("""
{p}.register_hook(lambda d: d * 0.5); {p}.register_hook(lambda d: d.clamp(-0.5, 0.5))
{p}.register_post_accumulate_grad_hook(lambda p: (p.grad.mul_(0.5), None)[1])
""")
ON_MODULES = lines("""
net.register_forward_hook(lambda m, args, y: y * 2)
net.register_forward_hook(lambda m, args, y: None)
net.register_forward_pre_hook(lambda m, args: (args[0] * 0.5,))
net.register_forward_hook(lambda m, args, y: y + args[0].sum())
""")
# With these on a module, its calls are eager.
FULL_ON_MODULES = lines("""
net.register_full_backward_hook(lambda m, dx, dy: [d if d is None else d * 0.5 for d in dx])
net.register_full_backward_hook(lambda m, dx, dy: None)
net.register_full_backward_pre_hook(lambda m, dy: (dy[0] * 2,))
""")


class Hooks(Writer):
    """Writes hooks outside and inside of the function."""

    def hooks_world(self) -> None:
        self.setting("log, handles = [], []")
        on_leaves = PURE_ON_LEAVES if self.trains else ON_LEAVES
        hooks = [*on_leaves, *ON_MODULES]
        if self.rarely(8):
            hooks += FULL_ON_MODULES
            self.has_full_hooks = True
        for _ in range(self.number(0, 2)):
            leaf = self.pick(["w0", "w0", "params[0]"])
            self.setting(f"handles.append({self.pick(hooks).format(p=leaf)})")
        self.changes += [f"handles.append({hook.format(p='w0')})" for hook in hooks]
        self.changes += ["handles.pop().remove() if handles else None"] * 6

    def write_hook(self) -> None:
        """Set a hook on a tensor of the function."""
        inner = [name for name in self.tensors if name[0] == "t"]
        of = self.pick(inner or ["x"]) if not self.rarely(20) else self.tensor()
        what = self.pick(["hook"] * 6 + ["reads", "removed", "retained"])
        function = self.pick(INSIDE)
        if what == "reads" and inner:
            function = f"lambda d: d * {self.pick(inner)}.detach().sum()"
        if what == "removed":
            name = f"h{self.new()}"
            if self.add(f"{name} = {of}.register_hook({function})"):
                self.make(["{x} * {y}", "{x}.exp()"])
                self.add(f"{name}.remove()")
        elif what == "retained" and (self.trains or self.rarely(4)):
            self.add(f"{of}.retain_grad()")
            if self.trains and self.add(f"({of} * {of}).sum().backward(retain_graph=True)"):
                self.make([f"{of}.grad * {{x}}", f"{of}.grad"])
        else:
            self.add(f"{of}.register_hook({function})")
