"""Writes control flow by values into random programs for `flow.compile`."""

from __future__ import annotations

from tests.fuzz.compiled_writer import Writer


class ControlFlow(Writer):
    """Writes `static.nn.cond` and `static.nn.while_loop`."""

    def floating(self) -> list[str]:
        """Choose two tensors of real numbers; an empty list when there are none."""
        found = [self.tensor(), self.tensor()]
        return found if all(self.env_of(x).is_floating_point() for x in found) else []

    def write_choice(self) -> None:
        chosen = self.floating()
        if not chosen:
            return  # the branches would give another dtype each
        a, b = chosen
        self.make(
            [
                f"flow.static.nn.cond({{x}}.sum() > {{s}}, lambda: {a} * {b}, lambda: {b} - {a})",
                f"flow.static.nn.cond({{x}}.mean() > 0, lambda: {a}.exp(), lambda: {a} * 2)",
            ]
        )

    def keeps_form(self, step: str, a: str) -> bool:
        """Return whether a step in `u` gives what is like `a`, as a loop must."""
        try:
            u, result = self.env_of(a), eval(step, {**self.env, "u": self.env_of(a)})
        except Exception:
            return False
        return bool(result.shape == u.shape and result.dtype == u.dtype)

    def write_repetition(self) -> None:
        """Repeat something as often as values say.

        A recorded loop requires a gradient where its body would give one, so there is an iteration,
        and the condition has no gradient.
        """
        chosen = self.floating()
        if not chosen:
            return
        a, b = chosen
        bound = self.pick(
            ["3", "2", "n", "1 + ({x}.detach() > {s}).sum()", "({x}.detach().sum() > {s}) * 2 + 1"]
        )
        going = f"i < {bound}"
        if self.rarely(3):
            going = f"flow.logical_and({going}, i < 1 + ({a}.detach().mean() > {{s}}))"
        step = self.pick(
            [f"u * {b}.sin()", f"u + {b}", "u.tanh()", "u * 0.5 + {y}", "u.exp() * 0.2", "u * u"]
            + [f"u - {b} * {b}", "flow.where(u > {s}, u, u * 0.5)", "u.cumsum(-1)", "u.clone()"]
        )
        step = self.filled(step)
        if not self.keeps_form(step, a):
            return
        loop = f"flow.static.nn.while_loop(lambda i, u: {going}, lambda i, u: [i + 1, {step}], "
        loop += f"[flow.tensor(0), {a}"
        self.make([loop + " * 1])[1]", loop + "])[1]", loop + "])[0] * {x}"])
